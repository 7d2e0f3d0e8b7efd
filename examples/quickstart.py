"""Produce, consume in a group, rebalance, and check that nothing was lost.

    python examples/quickstart.py                      # on the embedded broker
    python examples/quickstart.py --brokers 3 --kill   # ... and one of three is killed
    python examples/quickstart.py --kafka              # on an Apache Kafka
    python examples/quickstart.py --bootstrap localhost:9092

Many coroutines produce a hundred thousand records with keys and headers. Two members of
a group consume the first half of them. Then a third member joins, the group divides the
partitions again, and the three consume the other half. At the end the records that were
consumed are compared with those that were produced.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import Counter
from collections.abc import Sequence, Set
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from uuid import uuid4

import kafkaio
from kafkaio.protocol.messages.create_topics import CreatableTopic
from kafkaio.testing import Broker
from kafkaio.testing.kafka import Kafka

PARTITIONS = 12
COROUTINES = 200


@dataclass
class Progress:
    """What the members of the group have seen so far."""

    target: int
    seen: Counter[bytes] = field(default_factory=Counter)
    owned: dict[str, Set[kafkaio.TopicPartition]] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    reading: set[str] = field(default_factory=set)
    started: float = field(default_factory=time.perf_counter)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    def note(self, text: str) -> None:
        print(f"{time.perf_counter() - self.started:6.2f} s  {text}", flush=True)

    async def add(self, records: Sequence[kafkaio.Record]) -> None:
        self.seen.update(r.value for r in records if r.value is not None)
        if records:
            await self.notify()

    async def notify(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    async def wait_members(self, *names: str) -> None:
        """Wait until each of these members has partitions."""
        async with self.changed:
            await self.changed.wait_for(lambda: all(self.owned.get(n) for n in names))

    async def stop_reading(self, name: str) -> None:
        """Wait until every member has stopped reading.

        A record is finished when its member asks for the next one, so the last records
        of a member are not finished. When the first member leaves, another member that
        still reads would get its partitions, and read these records again.
        """
        self.reading.discard(name)
        await self.notify()
        async with self.changed:
            await self.changed.wait_for(lambda: not self.reading)

    @property
    def is_complete(self) -> bool:
        return len(self.seen) == self.target


async def produce(
    bootstrap: str, topic: str, numbers: range, progress: Progress
) -> None:
    async with kafkaio.Producer(bootstrap, compression_type="lz4") as producer:

        async def produce_part(part: range) -> None:
            for number in part:
                await producer.send(
                    topic,
                    b"record-%08d" % number,
                    key=b"customer-%04d" % (number % 5000),
                    headers=[("coroutine", b"%d" % part.start)],
                )

        async with asyncio.TaskGroup() as group:
            for first in range(COROUTINES):
                group.create_task(produce_part(numbers[first::COROUTINES]))
    progress.note(f"produced {len(numbers):,} records from {COROUTINES} coroutines")


async def consume(bootstrap: str, topic: str, name: str, progress: Progress) -> int:
    """Be one member of the group until all records were seen.

    Returns:
        The number of records that this member has read.
    """

    async def changed(event: str, partitions: Set[kafkaio.TopicPartition]) -> None:
        progress.owned[name] = consumer.assignment
        numbers = ", ".join(str(tp.partition) for tp in sorted(partitions))
        if partitions:
            progress.note(f"{name} {event} {numbers}")
        if event == "LOST":
            progress.lost.append(name)
        await progress.notify()

    taken = 0
    consumer = kafkaio.Consumer(
        bootstrap,
        topics=topic,
        group_id="quickstart",
        client_id=name,
        auto_offset_reset="earliest",
        heartbeat_interval_ms=500,
        on_assigned=partial(changed, "was assigned"),
        on_revoked=partial(changed, "released"),
        on_lost=partial(changed, "LOST"),
    )
    async with consumer:
        progress.reading.add(name)
        while not progress.is_complete:
            poll = await consumer.poll(timeout=0.2)
            await progress.add(poll.records)
            taken += len(poll.records)
        await progress.stop_reading(name)
    return taken


async def kill_one_broker(cluster: Kafka | Broker, progress: Progress) -> None:
    victim = 2
    control = cluster.control if isinstance(cluster, Broker) else cluster
    await control.kill(victim)
    progress.note(f"broker {victim} was killed")
    await control.restart(victim)
    progress.note(f"broker {victim} is back")


async def run(bootstrap: str, count: int, victims: Kafka | Broker | None) -> bool:
    topic = f"quickstart-{uuid4().hex[:8]}"
    async with kafkaio.Client(bootstrap) as client:
        await create_topic(client, topic, min(3, len(bootstrap.split(","))))
    progress = Progress(count)
    members: dict[str, asyncio.Task[int]] = {}
    async with asyncio.TaskGroup() as group:

        def join(name: str) -> None:
            work = consume(bootstrap, topic, name, progress)
            members[name] = group.create_task(work)

        join("member-1")
        join("member-2")
        await progress.wait_members("member-1", "member-2")
        await produce(bootstrap, topic, range(count // 2), progress)
        progress.note("member-3 joins")
        join("member-3")
        await progress.wait_members("member-3")
        if victims is not None:
            group.create_task(kill_one_broker(victims, progress))
        await produce(bootstrap, topic, range(count // 2, count), progress)
    return report(progress, {name: task.result() for name, task in members.items()})


async def create_topic(client: kafkaio.Client, topic: str, replicas: int) -> None:
    wanted = CreatableTopic(
        name=topic, num_partitions=PARTITIONS, replication_factor=replicas
    )
    reply = await client.request(
        kafkaio.messages.CreateTopicsRequest(topics=[wanted], timeout_ms=30_000),
        to=kafkaio.Controller,
    )
    if reply.topics[0].error_code:
        raise SystemExit(f"cannot create {topic}: {reply.topics[0].error_message}")


def report(progress: Progress, counts: dict[str, int]) -> bool:
    produced = Counter(b"record-%08d" % n for n in range(progress.target))
    lost = produced - progress.seen
    twice = progress.seen - produced
    for name, taken in counts.items():
        print(f"{name} consumed {taken:,} records")
    print(f"lost: {lost.total():,}, more than once: {twice.total():,}")
    if twice and progress.lost:
        print(f"(lost partitions before their commit: {', '.join(progress.lost)})")
        twice.clear()
    return not lost and not twice


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--bootstrap", help="a running Kafka")
    parser.add_argument("--kafka", action="store_true", help="start an Apache Kafka")
    parser.add_argument("--brokers", type=int, choices=(1, 3), default=1)
    parser.add_argument("--kill", action="store_true", help="kill a broker meanwhile")
    parser.add_argument("--records", type=int, default=100_000)
    args = parser.parse_args()
    if args.kill and (args.bootstrap or args.brokers == 1):
        parser.error("--kill needs --brokers 3")
    async with AsyncExitStack() as stack:
        cluster: Kafka | Broker | None = None
        if args.bootstrap is None:
            name = "Apache Kafka" if args.kafka else "the embedded broker"
            print(f"starting {name} with {args.brokers} broker(s) ...", flush=True)
            made = Kafka(args.brokers) if args.kafka else Broker(nodes=args.brokers)
            cluster = await stack.enter_async_context(made)
        bootstrap = args.bootstrap if cluster is None else cluster.bootstrap_servers
        same = await run(bootstrap, args.records, cluster if args.kill else None)
    print("what was consumed is what was produced" if same else "MISMATCH")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
