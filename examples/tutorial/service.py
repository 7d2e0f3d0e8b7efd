"""Read orders and write an invoice for each, until SIGTERM."""

import asyncio
import json
import os
import signal
from collections.abc import Set

import kafkaio

BOOTSTRAP = os.environ.get("BOOTSTRAP", "localhost:9092")


async def bill(producer: kafkaio.Producer, record: kafkaio.Record) -> None:
    """Write the invoice for one order; return when it is acknowledged."""
    order = json.loads(record.value or b"")
    invoice = {"order": order["number"], "total": order["price"] * order["quantity"]}
    await producer.send("invoices", json.dumps(invoice).encode(), key=record.key)
    print(f"invoice for order {order['number']}", flush=True)


def assigned(partitions: Set[kafkaio.TopicPartition]) -> None:
    print("assigned:", *sorted(tp.partition for tp in partitions), flush=True)


def revoked(partitions: Set[kafkaio.TopicPartition]) -> None:
    print("revoked:", *sorted(tp.partition for tp in partitions), flush=True)


async def serve(bootstrap: str, stopping: asyncio.Event) -> None:
    """Serve until the event is set, and finish what was begun."""
    consumer = kafkaio.Consumer(
        bootstrap,
        topics="orders",
        group_id="billing",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        on_assigned=assigned,
        on_revoked=revoked,
    )
    async with kafkaio.Producer(bootstrap) as producer, consumer:
        while not stopping.is_set():
            poll = await consumer.poll(timeout=0.5, max_records=100)
            for record in poll.records:
                await bill(producer, record)
            await consumer.commit()


async def main() -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    await serve(BOOTSTRAP, stopping)
    print("stopped", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
