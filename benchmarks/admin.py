"""What an administrator's calls cost, beside confluent-kafka and kafka-python.

Run it from the root of the repository as ``python -m benchmarks.admin``. It starts an
Apache Kafka of one node, makes topics with some thousand partitions and groups with
offsets, and calls the same operations of all clients in turn, so that whatever else the
machine does hits all of them. Processor time is that of this process, threads included;
the medians of the rounds are compared. The first round is not counted.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any

import kafkaio
from kafkaio.testing.kafka import Kafka

TOPIC, GROUP = "admin-bench", "admin-bench"
MOST = 2_000


class Measured:
    """The processor time and the time of one client's calls."""

    def __init__(self) -> None:
        self.cpu: list[float] = []
        self.wall: list[float] = []

    def add(self, cpu: float, wall: float) -> None:
        self.cpu.append(cpu)
        self.wall.append(wall)

    @property
    def middle(self) -> tuple[float, float]:
        """Medians in milliseconds, without the first."""
        return (
            statistics.median(self.cpu[1:]) * 1000,
            statistics.median(self.wall[1:]) * 1000,
        )


async def measure(
    call: Callable[[], Awaitable[Any]], calls: int
) -> tuple[float, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(calls):
        await call()
    return (time.process_time() - cpu) / calls, (time.perf_counter() - wall) / calls


async def compare(
    name: str, cases: dict[str, Callable[[], Awaitable[Any]]], rounds: int, calls: int
) -> None:
    found = {client: Measured() for client in cases}
    for _ in range(rounds + 1):
        for client, call in cases.items():
            gc.collect()  # nobody pays for what the one before left behind
            found[client].add(*await measure(call, calls))
    ours = found["kafkaio"].middle
    print(name)
    for client, measured in found.items():
        cpu, wall = measured.middle
        ratios = f"kafkaio's is {ours[0] / cpu:4.2f} and {ours[1] / wall:4.2f} of it"
        print(f"  {client:14} cpu {cpu:8.2f} ms  wall {wall:8.2f} ms  {ratios}")


def by_threads(servers: str) -> tuple[Any, Any]:
    import confluent_kafka.admin
    import kafka

    confluent = confluent_kafka.admin.AdminClient({"bootstrap.servers": servers})
    python = kafka.KafkaAdminClient(bootstrap_servers=servers)
    return confluent, python


async def run(  # noqa: C901, PLR0915 - a list of cases
    servers: str, args: argparse.Namespace
) -> None:
    import confluent_kafka as ck
    from confluent_kafka.admin import OffsetSpec as CkSpec
    from kafka import TopicPartition as KpPartition

    confluent, python = by_threads(servers)
    async with kafkaio.Client(servers) as client, kafkaio.Admin(client) as admin:
        for count in args.partitions:
            # Controllers refuse more partitions at a time.
            sizes = {
                f"{TOPIC}-{count}-{number}": min(MOST, count - number * MOST)
                for number in range(-(-count // MOST))
            }
            for topic, size in sizes.items():
                new = kafkaio.NewTopic(topic, size, 1)
                await admin.create_topics([new], timeout=300)
            places = [(topic, n) for topic, size in sizes.items() for n in range(size)]
            latest = CkSpec.latest()
            ours = {kafkaio.TopicPartition(*place): "latest" for place in places}
            theirs = {ck.TopicPartition(*place): latest for place in places}
            pythons = {KpPartition(*place): -1 for place in places}
            topics = list(sizes)

            async def confluent_offsets(theirs: Any = theirs) -> None:
                futures = confluent.list_offsets(theirs).values()
                await asyncio.to_thread(lambda: [each.result() for each in futures])

            async def python_offsets(pythons: Any = pythons) -> None:
                await asyncio.to_thread(python.list_partition_offsets, pythons)

            async def confluent_topic(topics: list[str] = topics) -> None:
                names = ck.TopicCollection(topics)
                futures = confluent.describe_topics(names).values()
                await asyncio.to_thread(lambda: [each.result() for each in futures])

            async def python_topic(topics: list[str] = topics) -> None:
                await asyncio.to_thread(python.describe_topics, topics)

            calls = max(1, 5_000 // count)
            offsets: dict[str, Callable[[], Awaitable[Any]]] = {
                "kafkaio": lambda ours=ours: admin.list_offsets(ours),  # type: ignore[misc]
                "confluent-kafka": confluent_offsets,
            }
            if hasattr(python, "list_partition_offsets"):
                offsets["kafka-python"] = python_offsets
            await compare(
                f"list_offsets, {count} partitions", offsets, args.rounds, calls
            )
            await compare(
                f"describe_topics, {count} partitions",
                {
                    "kafkaio": lambda topics=topics: admin.describe_topics(topics),  # type: ignore[misc]
                    "confluent-kafka": confluent_topic,
                    "kafka-python": python_topic,
                },
                args.rounds,
                calls,
            )
        names = [f"{GROUP}-{number}" for number in range(args.groups)]
        tp = kafkaio.TopicPartition(f"{TOPIC}-{args.partitions[0]}-0", 0)
        for name in names:
            await admin.alter_consumer_group_offsets(name, {tp: 0})

        async def confluent_groups() -> None:
            # Its own time is too short for so many requests of one group each.
            futures = confluent.describe_consumer_groups(
                names, request_timeout=60
            ).values()
            await asyncio.to_thread(lambda: [each.result() for each in futures])

        async def python_groups() -> None:
            await asyncio.to_thread(python.describe_groups, names)

        groups: dict[str, Callable[[], Awaitable[Any]]] = {
            "kafkaio": lambda: admin.describe_consumer_groups(names),
            "confluent-kafka": confluent_groups,
        }
        if hasattr(python, "describe_groups"):
            groups["kafka-python"] = python_groups
        await compare(f"describe {args.groups} groups", groups, args.rounds, 3)
    python.close()


async def main() -> None:
    assert __doc__
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--partitions", type=int, nargs="+", default=[500, 10_000])
    parser.add_argument("--groups", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    async with Kafka(1) as kafka:
        await run(kafka.bootstrap_servers, args)


if __name__ == "__main__":
    asyncio.run(main())
