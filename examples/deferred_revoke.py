"""Hand partitions over while their records are still being worked on (KIP-983).

    python examples/deferred_revoke.py                  # on the embedded broker
    python examples/deferred_revoke.py --form events
    python examples/deferred_revoke.py --bootstrap localhost:9092

Two members of a group work on orders, each order in a task of its own, many at the same
time and in any order. Then a third member joins. The members that must release
partitions keep them until the orders that they have begun are done and committed. All
other partitions go on. So no order is done twice, and none is skipped.

There are two forms: the loop of the KIP, with ``poll`` and ``delay_revoke``; and
events, with a hold that is open while the work on the partitions is finished.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import AsyncExitStack
from typing import Literal
from uuid import uuid4

import kafkaio
from kafkaio import TopicPartition
from kafkaio.protocol.messages.create_topics import CreatableTopic
from kafkaio.testing import Broker

PARTITIONS = 6


class Work:
    """The orders that one member works on, in tasks beside the one that reads.

    Args:
        tasks: the task group of the tasks.
        seconds: how long an order takes.
        done: counts the orders that are done, by all members.
    """

    def __init__(
        self, tasks: asyncio.TaskGroup, seconds: float, done: Counter[bytes]
    ) -> None:
        self.done = done
        self._tasks = tasks
        self._seconds = seconds
        # By partition: the tasks of the orders in work, the offset after the last one
        # begun, and the committed offset.
        self._working: dict[TopicPartition, dict[int, asyncio.Task[None]]] = {}
        self._ends: dict[TopicPartition, int] = {}
        self._committed: dict[TopicPartition, int] = {}

    def start(self, records: Iterable[kafkaio.Record]) -> None:
        for record in records:
            tp = record.topic_partition
            task = self._tasks.create_task(self._handle(record))
            self._working.setdefault(tp, {})[record.offset] = task
            self._ends[tp] = record.offset + 1

    async def _handle(self, record: kafkaio.Record) -> None:
        await asyncio.sleep(self._seconds * (1 + record.offset % 3))
        self.done[record.value or b""] += 1
        del self._working[record.topic_partition][record.offset]

    def finished(self) -> dict[TopicPartition, int]:
        """Return the offsets up to which all is done, if they are not committed yet."""
        found = {tp: min(self._working[tp], default=n) for tp, n in self._ends.items()}
        return {tp: n for tp, n in found.items() if n > self._committed.get(tp, 0)}

    def committed(self, offsets: dict[TopicPartition, int]) -> None:
        self._committed |= offsets

    def still_working(
        self, partitions: Collection[TopicPartition]
    ) -> set[TopicPartition]:
        """Return the partitions with orders that are not done or not committed."""
        ends, committed = self._ends, self._committed
        return {tp for tp in partitions if ends.get(tp) != committed.get(tp)}

    async def drain(self, partitions: Collection[TopicPartition]) -> None:
        tasks = [t for tp in partitions for t in self._working.get(tp, {}).values()]
        if tasks:
            await asyncio.wait(tasks)

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """Stop the work on partitions that are not assigned any more."""
        for tp in partitions:
            for task in self._working.pop(tp, {}).values():
                task.cancel()
            self._ends.pop(tp, None)
            self._committed.pop(tp, None)


# ---- the two forms -------------------------------------------------------------------


async def commit_finished(consumer: kafkaio.Consumer, work: Work) -> None:
    offsets = work.finished()
    await consumer.commit(offsets)
    work.committed(offsets)


async def poll_loop(
    consumer: kafkaio.Consumer, work: Work, is_over: Callable[[], bool]
) -> None:
    """The loop of the KIP."""
    while not is_over():
        poll = await consumer.poll(timeout=0.1, max_records=100)
        work.start(poll.records)
        await commit_finished(consumer, work)
        if busy := work.still_working(poll.to_be_revoked):
            consumer.delay_revoke(busy)
        work.forget(poll.lost)
    await commit_finished(consumer, work)


async def read_and_listen(
    consumer: kafkaio.Consumer, work: Work, is_over: Callable[[], bool]
) -> None:
    """Read batches in one task, and handle rebalances in another."""

    async def listen() -> None:
        async for event in consumer.rebalances():
            match event:
                case kafkaio.RevokeRequested(partitions):
                    async with event.hold():
                        await work.drain(partitions)
                        # All orders of these partitions are done. Those of others
                        # may not be, so only these are committed.
                        await consumer.commit(partitions)
                        work.forget(partitions)
                case kafkaio.Lost(partitions):
                    work.forget(partitions)
                case _:
                    pass

    async with asyncio.TaskGroup() as tasks:
        listening = tasks.create_task(listen())
        reading = tasks.create_task(read_batches(consumer, work))
        while not is_over():
            await asyncio.sleep(0.1)
            await commit_finished(consumer, work)
        reading.cancel()
        listening.cancel()
    await commit_finished(consumer, work)


async def read_batches(consumer: kafkaio.Consumer, work: Work) -> None:
    async for batch in consumer.batches(max_records=100):
        work.start(batch)


Form = Callable[[kafkaio.Consumer, Work, Callable[[], bool]], Awaitable[None]]
Protocol = Literal["auto", "classic"]
FORMS: dict[str, Form] = {"loop": poll_loop, "events": read_and_listen}


# ---- a group that tries both ---------------------------------------------------------


class Trial:
    """A group whose members work in the given form until all orders are done.

    Args:
        bootstrap: servers of the cluster.
        protocol: the group protocol.
        form: how the members work.
        count: number of orders.
        seconds: how long an order takes.
    """

    def __init__(
        self, bootstrap: str, protocol: Protocol, form: Form, count: int, seconds: float
    ) -> None:
        self._bootstrap = bootstrap
        self._protocol = protocol
        self._form = form
        self._count = count
        self._seconds = seconds
        self._topic = f"deferred-revoke-{uuid4().hex[:8]}"
        self._done: Counter[bytes] = Counter()
        self._lost = 0
        self._began = time.perf_counter()
        self._joined: dict[str, asyncio.Event] = {}

    def _is_over(self) -> bool:
        return len(self._done) == self._count

    def _note(self, text: str) -> None:
        print(f"{time.perf_counter() - self._began:6.2f} s  {text}", flush=True)

    async def run(self) -> bool:
        """Run the group, and return whether every order was done exactly once."""
        async with kafkaio.Client(self._bootstrap) as client:
            await create_topic(client, self._topic)
        async with asyncio.TaskGroup() as members:
            for name in ("member-1", "member-2"):
                await self._join(members, name)
            half = self._count // 2
            await self._send_orders(range(half))
            self._note(f"member-3 joins; {half - len(self._done)} orders are in work")
            await self._join(members, "member-3")
            await self._send_orders(range(half, self._count))
        twice = self._done.total() - len(self._done)
        print(
            f"{len(self._done)} of {self._count} orders done, {twice} of them twice, "
            f"{self._lost} partitions lost"
        )
        return not twice and not self._lost

    async def _join(self, members: asyncio.TaskGroup, name: str) -> None:
        joined = self._joined[name] = asyncio.Event()
        members.create_task(self._run_member(name))
        await joined.wait()

    async def _run_member(self, name: str) -> None:
        consumer = kafkaio.Consumer(
            self._bootstrap,
            topics=self._topic,
            group_id=self._topic,
            client_id=name,
            auto_offset_reset="earliest",
            enable_auto_commit=False,  # Work knows what is finished
            group_protocol=self._protocol,
            heartbeat_interval_ms=500,  # of the classic protocol
        )
        async with asyncio.TaskGroup() as tasks:
            reporting = tasks.create_task(self._report(name, consumer))
            async with consumer:
                work = Work(tasks, self._seconds, self._done)
                await self._form(consumer, work, self._is_over)
            await reporting

    async def _report(self, name: str, consumer: kafkaio.Consumer) -> None:
        async for event in consumer.rebalances():
            numbers = ", ".join(str(tp.partition) for tp in sorted(event.partitions))
            did = {
                kafkaio.Assigned: "was assigned",
                kafkaio.RevokeRequested: "is requested to release",
                kafkaio.Revoked: "released",
                kafkaio.Lost: "LOST",
            }
            self._note(f"{name} {did[type(event)]} {numbers}")
            if isinstance(event, kafkaio.Assigned):
                self._joined[name].set()
            if isinstance(event, kafkaio.Lost):
                self._lost += len(event.partitions)

    async def _send_orders(self, numbers: range) -> None:
        """Send orders, a few at a time."""
        async with kafkaio.Producer(self._bootstrap) as producer:
            for number in numbers:
                value, place = b"order-%d" % number, number % PARTITIONS
                sent = await producer.enqueue(self._topic, value, partition=place)
                if place == 0:
                    await sent


async def create_topic(client: kafkaio.Client, topic: str) -> None:
    wanted = CreatableTopic(name=topic, num_partitions=PARTITIONS, replication_factor=1)
    reply = await client.request(
        kafkaio.messages.CreateTopicsRequest(topics=[wanted], timeout_ms=30_000),
        to=kafkaio.Controller,
    )
    if reply.topics[0].error_code:
        raise SystemExit(f"cannot create {topic}: {reply.topics[0].error_message}")


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--bootstrap", help="a running Kafka")
    parser.add_argument("--form", choices=FORMS, help="only this one")
    parser.add_argument("--protocol", choices=("auto", "classic"), default="auto")
    parser.add_argument("--orders", type=int, default=600)
    parser.add_argument(
        "--seconds", type=float, default=4.0, help="time that an order takes"
    )
    args = parser.parse_args()
    fine = True
    async with AsyncExitStack() as stack:
        bootstrap = args.bootstrap
        if bootstrap is None:
            broker = await stack.enter_async_context(Broker())
            bootstrap = broker.bootstrap_servers
        for name in [args.form] if args.form else FORMS:
            print(f"form: {name}", flush=True)
            trial = Trial(
                bootstrap, args.protocol, FORMS[name], args.orders, args.seconds
            )
            fine &= await trial.run()
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
