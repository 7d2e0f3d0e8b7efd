"""Produce, consume in a group, rebalance, and check that nothing was lost.

    python examples/quickstart.py                      # starts a Kafka of its own
    python examples/quickstart.py --brokers 3 --kill   # ... and kills a broker of it
    python examples/quickstart.py --bootstrap localhost:9092

A hundred thousand records with keys and headers are produced by many coroutines.
Two members of a group consume them; when a third of them is read, a third member
joins and the partitions are shared out again. At the end the multiset of what was
consumed is compared with what was produced.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import Counter
from collections.abc import Set
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from uuid import uuid4

import kafkaio
from kafkaio.protocol.messages.create_topics import CreatableTopic
from kafkaio.testing.kafka import Kafka

PARTITIONS = 12
COROUTINES = 200


@dataclass
class Progress:
    """What the members of the group have seen so far."""

    target: int
    seen: Counter[bytes] = field(default_factory=Counter)
    events: list[str] = field(default_factory=list)
    started: float = field(default_factory=time.perf_counter)
    a_third: asyncio.Event = field(default_factory=asyncio.Event)
    all_of_it: asyncio.Event = field(default_factory=asyncio.Event)

    def note(self, text: str) -> None:
        line = f"{time.perf_counter() - self.started:6.2f} s  {text}"
        self.events.append(line)
        print(line, flush=True)

    def add(self, records: list[kafkaio.Record]) -> None:
        self.seen.update(r.value for r in records if r.value is not None)
        if len(self.seen) * 3 >= self.target:
            self.a_third.set()
        if len(self.seen) == self.target:
            self.all_of_it.set()


async def produce(bootstrap: str, topic: str, count: int, progress: Progress) -> None:
    async with kafkaio.Producer(bootstrap, compression_type="lz4") as producer:

        async def share(first: int) -> None:
            for number in range(first, count, COROUTINES):
                await producer.send(
                    topic,
                    b"record-%08d" % number,
                    key=b"customer-%04d" % (number % 5000),
                    headers=[("coroutine", b"%d" % first)],
                )

        async with asyncio.TaskGroup() as group:
            for first in range(COROUTINES):
                group.create_task(share(first))
    progress.note(f"produced {count:,} records from {COROUTINES} coroutines")


async def consume(bootstrap: str, topic: str, name: str, progress: Progress) -> int:
    """Be one member of the group until all records were seen; return our share."""

    def names(partitions: Set[kafkaio.TopicPartition]) -> str:
        return ", ".join(str(tp.partition) for tp in sorted(partitions)) or "none"

    taken = 0
    async with kafkaio.Consumer(
        bootstrap,
        topics=topic,
        group_id="quickstart",
        client_id=name,
        auto_offset_reset="earliest",
        on_assigned=lambda tps: progress.note(f"{name} was assigned {names(tps)}"),
        on_revoked=lambda tps: progress.note(f"{name} gave back {names(tps)}"),
        on_lost=lambda tps: progress.note(f"{name} LOST {names(tps)}"),
    ) as consumer:
        while not progress.all_of_it.is_set():
            poll = await consumer.poll(timeout=0.2)
            progress.add(list(poll.records))
            taken += len(poll.records)
    return taken


async def kill_one_broker(kafka: Kafka, progress: Progress) -> None:
    await progress.a_third.wait()
    victim = 2
    await kafka.kill(victim)
    progress.note(f"broker {victim} was killed with SIGKILL")
    await kafka.restart(victim)
    progress.note(f"broker {victim} is back")


async def run(bootstrap: str, count: int, kafka: Kafka | None) -> bool:
    topic = f"quickstart-{uuid4().hex[:8]}"
    replicas = min(3, len(bootstrap.split(",")))
    async with kafkaio.Client(bootstrap) as client:
        await create_topic(client, topic, replicas)
    progress = Progress(count)
    async with asyncio.TaskGroup() as group:
        tasks = {
            name: group.create_task(consume(bootstrap, topic, name, progress))
            for name in ("member-1", "member-2")
        }
        group.create_task(produce(bootstrap, topic, count, progress))
        if kafka is not None:
            group.create_task(kill_one_broker(kafka, progress))
        await progress.a_third.wait()
        progress.note("member-3 joins")
        tasks["member-3"] = group.create_task(
            consume(bootstrap, topic, "member-3", progress)
        )
    return report(progress, {name: task.result() for name, task in tasks.items()})


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


def report(progress: Progress, shares: dict[str, int]) -> bool:
    produced = Counter(b"record-%08d" % n for n in range(progress.target))
    lost = produced - progress.seen
    twice = progress.seen - produced
    for name, taken in shares.items():
        print(f"{name} consumed {taken:,} records")
    print(f"lost: {lost.total():,}, more than once: {twice.total():,}")
    if twice and any("LOST" in event for event in progress.events):
        print("(a member lost partitions before it could commit what it had read)")
        twice.clear()
    return not lost and not twice


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--bootstrap", help="a Kafka that runs already")
    parser.add_argument("--brokers", type=int, choices=(1, 3), default=1)
    parser.add_argument("--kill", action="store_true", help="kill a broker meanwhile")
    parser.add_argument("--records", type=int, default=100_000)
    args = parser.parse_args()
    if args.kill and (args.bootstrap or args.brokers == 1):
        parser.error("--kill wants --brokers 3")
    async with AsyncExitStack() as stack:
        kafka = None
        bootstrap = args.bootstrap
        if bootstrap is None:
            print(
                f"starting Apache Kafka with {args.brokers} broker(s) ...", flush=True
            )
            kafka = await stack.enter_async_context(Kafka(brokers=args.brokers))
            bootstrap = kafka.bootstrap_servers
        same = await run(bootstrap, args.records, kafka if args.kill else None)
    print("what was consumed is what was produced" if same else "MISMATCH")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
