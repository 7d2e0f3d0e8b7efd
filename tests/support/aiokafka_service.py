"""A service that was written for aiokafka: one program, run with either client.

``python aiokafka_service.py`` runs it on aiokafka, and ``python -m kafkaio.aiokafka
aiokafka_service.py`` on kafkaio. It tells on standard output what it does, one line for
each step, and ends at SIGTERM with the record in hand finished.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Collection

import aiokafka
from aiokafka.errors import IllegalStateError, KafkaError

#: Seconds between two records, so that members keep up with the load.
PACE = 0.01


def tell(*words: object) -> None:
    """Write a line that the other side can read at once."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


class Listener(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]
    """Tells which partitions the member has."""

    def on_partitions_revoked(
        self, revoked: Collection[aiokafka.TopicPartition]
    ) -> None:
        tell("revoked", *sorted(each.partition for each in revoked))

    def on_partitions_assigned(
        self, assigned: Collection[aiokafka.TopicPartition]
    ) -> None:
        tell("assigned", *sorted(each.partition for each in assigned))


async def consume(servers: str, topic: str, group: str, stop: asyncio.Event) -> None:
    """Take record after record, and commit each when the work on it is done."""
    consumer = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=servers,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        heartbeat_interval_ms=200,
        session_timeout_ms=6000,
    )
    consumer.subscribe([topic], listener=Listener())
    await consumer.start()
    try:
        while not stop.is_set():
            found = await consumer.getmany(timeout_ms=200, max_records=1)
            for partition, records in found.items():
                for record in records:
                    await handle(consumer, partition, record)
    finally:
        await consumer.stop()


async def handle(
    consumer: aiokafka.AIOKafkaConsumer,
    partition: aiokafka.TopicPartition,
    record: aiokafka.ConsumerRecord,
) -> None:
    """Do the work on a record, and commit it."""
    number = int(record.value)
    tell("took", number)
    try:
        await consumer.commit({partition: record.offset + 1})
    except (IllegalStateError, KafkaError) as error:
        # The partition is another member's by now, which begins with this record.
        tell("refused", number, type(error).__name__)
    else:
        tell("done", number)


async def produce(servers: str, topic: str, first: int, stop: asyncio.Event) -> None:
    """Write numbers from `first` on, each when the one before is acknowledged."""
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=servers, acks="all")
    await producer.start()
    number = first
    try:
        while not stop.is_set():
            value = str(number).encode()
            await producer.send_and_wait(topic, value, key=value)
            tell("sent", number)
            number += 1
            await asyncio.sleep(PACE)
    finally:
        await producer.stop()


async def main(kind: str, servers: str, topic: str, detail: str) -> None:
    """Run as a member of the group `detail`, or as a producer from that number on."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    tell("client", aiokafka.__name__)
    if kind == "produce":
        await produce(servers, topic, int(detail), stop)
    else:
        await consume(servers, topic, detail, stop)
    tell("stopped")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
