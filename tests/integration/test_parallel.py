"""Working in parallel while groups rebalance: on the embedded broker and a real Kafka.

Values are ``key sequence``. Of each key the records come in the order of their
sequence numbers, each exactly once, whoever works on them.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import cycle, islice

import pytest

from kafkaio import (
    Consumer,
    DeadLetter,
    Lane,
    NewRecord,
    Producer,
    Record,
    Retry,
    TopicPartition,
)
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing import Broker
from kafkaio.testing._broker.faults import delay, disconnect_after_write, error
from kafkaio.testing.kafka import Kafka
from tests.support.patience import HANGS

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.kafka("embedded", "real", partitions=6),
]

KEYS = [b"key-%02d" % n for n in range(40)]
PARTITIONS = 6


class Ledger:
    """What was worked on, by every member: it checks the order as it goes."""

    def __init__(self) -> None:
        self.done: Counter[tuple[bytes, int]] = Counter()
        self.at_work: set[bytes] = set()
        self.last: dict[bytes, int] = dict.fromkeys(KEYS, -1)
        self.wrong: list[str] = []
        self.by: Counter[str] = Counter()
        self.may_repeat = False

    def handler(self, who: str) -> Callable[[Record], Awaitable[None]]:
        paces = cycle([0, 0, 0, 0.001, 0, 0.01, 0.003])

        async def handle(record: Record) -> None:
            key, number = self.begin(record)
            try:
                await asyncio.sleep(next(paces))
            finally:
                self.at_work.discard(key)
            self.end(key, number)
            self.by[who] += 1

        return handle

    def begin(self, record: Record) -> tuple[bytes, int]:
        assert record.key is not None
        assert record.value is not None
        key, number = record.key, int(record.value.split()[1])
        if key in self.at_work:
            self.wrong.append(f"{key!r} at work twice: {number}")
        if number != self.last[key] + 1 and not (
            self.may_repeat and number <= self.last[key]
        ):
            self.wrong.append(f"{key!r}: {number} after {self.last[key]}")
        self.at_work.add(key)
        return key, number

    def end(self, key: bytes, number: int) -> None:
        self.last[key] = max(self.last[key], number)
        self.done[key, number] += 1

    async def wait(self, count: int) -> None:
        await until(lambda: len(self.done) >= count)

    def check(self, count: int) -> None:
        assert not self.wrong
        assert len(self.done) == count
        if not self.may_repeat:
            assert self.done.total() == count


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
def group() -> str:
    return f"parallel-{uuid.uuid4().hex[:8]}"


def records(rounds: Iterable[int]) -> list[NewRecord]:
    return [
        NewRecord(b"%s %d" % (key, number), key=key)
        for number in rounds
        for key in KEYS
    ]


#: The consumer protocol is what a member takes where the cluster has it.
CLASSIC = {"group_protocol": "classic", "heartbeat_interval_ms": 200}
PROTOCOLS = {
    "auto": {},
    "cooperative": {**CLASSIC},
    "eager": {**CLASSIC, "partition_assignment_strategy": ["range"]},
}


def member(
    kafka: Broker | Kafka,
    topic: str,
    group: str,
    name: str,
    protocol: str = "cooperative",
) -> Consumer:
    return Consumer(
        kafka.bootstrap_servers,
        topics=topic,
        group_id=group,
        client_id=name,
        auto_offset_reset="earliest",
        auto_commit_interval_ms=500,
        retry_backoff_ms=20,
        **PROTOCOLS[protocol],  # type: ignore[arg-type]  # options by name
    )


@asynccontextmanager
async def at_work(consumer: Consumer, handler: object) -> AsyncIterator[None]:
    """Run the handler in a task of its own; at the end close, and let it end."""
    async with asyncio.TaskGroup() as tasks:
        await consumer.start()
        tasks.create_task(consumer.run(handler, ordering="key"))  # type: ignore[arg-type]
        try:
            yield
        finally:
            await consumer.close()


@asynccontextmanager
async def all_at_work(crew: Sequence[Consumer], ledger: Ledger) -> AsyncIterator[None]:
    """Have each keep its own account in the ledger."""
    async with AsyncExitStack() as stack:
        for n, consumer in enumerate(crew):
            work = at_work(consumer, ledger.handler(f"m-{n}"))
            await stack.enter_async_context(work)
        yield


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(HANGS):
        while not condition():  # noqa: ASYNC110  (any of several objects may change)
            await asyncio.sleep(0.02)


async def committed_to_the_end(kafka: Broker | Kafka, topic: str, group: str) -> bool:
    partitions = [TopicPartition(topic, n) for n in range(PARTITIONS)]
    async with Consumer(kafka.bootstrap_servers, group_id=group) as consumer:
        ends = await consumer.end_offsets(partitions)
        found = await consumer.committed(partitions)
        return all((at.offset if at else 0) == ends[tp] for tp, at in found.items())


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_members_come_and_go_and_nothing_is_done_twice(
    kafka_broker: Broker | Kafka,
    kafka_topic: str,
    group: str,
    ledger: Ledger,
    protocol: str,
) -> None:
    async with AsyncExitStack() as stack:
        producer = await stack.enter_async_context(
            Producer(kafka_broker.bootstrap_servers)
        )
        crew = [
            member(kafka_broker, kafka_topic, group, f"m-{n}", protocol)
            for n in range(3)
        ]

        async def produce(rounds: range) -> None:
            for number in rounds:
                await producer.send_many(kafka_topic, records([number]))

        first, second, third = (
            at_work(consumer, ledger.handler(f"m-{n}"))
            for n, consumer in enumerate(crew)
        )
        await stack.enter_async_context(first)
        async with second:
            await produce(range(20))
            await stack.enter_async_context(third)
            await produce(range(20, 60))
            await until(lambda: all(member.assignment for member in crew))
            await produce(range(60, 70))
        await produce(range(70, 80))
        await ledger.wait(80 * len(KEYS))
    ledger.check(80 * len(KEYS))
    assert len(ledger.by) == 3
    assert await committed_to_the_end(kafka_broker, kafka_topic, group)


@pytest.mark.parametrize("protocol", ["auto", "cooperative"])
async def test_lanes_come_and_go_and_nothing_is_done_twice(
    kafka_broker: Broker | Kafka,
    kafka_topic: str,
    group: str,
    ledger: Ledger,
    protocol: str,
) -> None:
    async def body(lane: Lane, who: str) -> None:
        handle = ledger.handler(who)
        async with lane:
            async for record in lane:
                await handle(record)

    @asynccontextmanager
    async def bodies(number: int) -> AsyncIterator[None]:
        name = f"m-{number}"
        consumer = member(kafka_broker, kafka_topic, group, name, protocol)
        await consumer.start()

        async def dispatch() -> None:
            async with asyncio.TaskGroup() as tasks:
                async for lane in consumer.partitions():
                    tasks.create_task(body(lane, f"m-{number}"))

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(dispatch())
            try:
                yield
            finally:
                await consumer.close()

    async with Producer(kafka_broker.bootstrap_servers) as producer, bodies(0):
        async with bodies(1):
            await producer.send_many(kafka_topic, records(range(15)))
            async with bodies(2):
                await producer.send_many(kafka_topic, records(range(15, 30)))
                await ledger.wait(20 * len(KEYS))
            await producer.send_many(kafka_topic, records(range(30, 35)))
        await ledger.wait(35 * len(KEYS))
    ledger.check(35 * len(KEYS))
    assert await committed_to_the_end(kafka_broker, kafka_topic, group)


async def test_what_fails_is_tried_again_and_buried(
    kafka_broker: Broker | Kafka,
    kafka_topic: str,
    group: str,
    kafka_topics: Callable[..., str],
) -> None:
    tries: Counter[bytes] = Counter()
    grave = kafka_topics()

    async def handle(record: Record) -> None:
        value = record.value or b""
        tries[value] += 1
        if value.endswith(b" 3"):
            raise ValueError("never")
        if value.endswith(b" 5") and tries[value] < 3:
            raise ConnectionError("not now")

    consumer = member(kafka_broker, kafka_topic, group, "m")
    async with (
        Producer(kafka_broker.bootstrap_servers) as producer,
        asyncio.TaskGroup() as tasks,
    ):
        await producer.send_many(kafka_topic, records(range(8)))
        await consumer.start()
        tasks.create_task(
            consumer.run(
                handle,
                retry=Retry(attempts=3, backoff_ms=5, on=(ConnectionError,)),
                dead_letter=DeadLetter(producer, grave),
            )
        )
        async with (
            asyncio.timeout(HANGS),
            Consumer(
                kafka_broker.bootstrap_servers,
                topics=grave,
                auto_offset_reset="earliest",
            ) as graves,
        ):
            dead = [await anext(graves) for _ in KEYS]
            await until(lambda: len(tries) == 8 * len(KEYS))
        await consumer.close()
    assert sorted(r.value or b"" for r in dead) == [b"%s 3" % key for key in KEYS]
    headers = dict(dead[0].headers)
    assert headers["dead-letter-topic"] == kafka_topic.encode()
    assert headers["dead-letter-error"] == b"builtins.ValueError"
    assert {tries[b"%s 5" % key] for key in KEYS} == {3}
    assert tries.total() == 10 * len(KEYS)
    assert await committed_to_the_end(kafka_broker, kafka_topic, group)


@pytest.mark.kafka("embedded", partitions=6, nodes=3)
async def test_faults_that_cost_no_membership_repeat_nothing(
    kafka_broker: Broker, kafka_topic: str, group: str, ledger: Ledger
) -> None:
    faults, control = kafka_broker.faults, kafka_broker.control
    faults.on("OffsetCommit", error(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, rate=0.3))
    faults.on("OffsetCommit", disconnect_after_write(rate=0.1, seed=1))
    faults.on("Fetch", disconnect_after_write(rate=0.05, seed=2))
    faults.on("Heartbeat", delay(0.3, rate=0.2, seed=3))
    crew = [member(kafka_broker, kafka_topic, group, f"m-{n}") for n in range(3)]
    async with (
        Producer(kafka_broker.bootstrap_servers) as producer,
        all_at_work(crew, ledger),
    ):
        nodes = cycle(range(3))
        for number in range(12):
            await producer.send_many(
                kafka_topic, records(range(5 * number, 5 * number + 5))
            )
            match number % 3:
                case 0:
                    control.force_rebalance(group)
                case 1:
                    control.move_coordinator(group, next(nodes))
                case _:
                    tp = TopicPartition(kafka_topic, number % PARTITIONS)
                    control.move_leader(tp, next(nodes))
            await asyncio.sleep(0.2)
        await ledger.wait(60 * len(KEYS))
        faults.clear()
    ledger.check(60 * len(KEYS))
    assert await committed_to_the_end(kafka_broker, kafka_topic, group)


@pytest.mark.kafka("embedded", partitions=3)
@pytest.mark.parametrize("way", ["lanes", "run"])
async def test_a_slow_partition_holds_no_other_back(
    kafka_broker: Broker, kafka_topic: str, way: str
) -> None:
    """Every answer has some of the slow one's records, and is not read to its end."""
    consumer = Consumer(
        kafka_broker.bootstrap_servers,
        topics=kafka_topic,
        auto_offset_reset="earliest",
        fetch_buffer_bytes=100_000,
        max_partition_fetch_bytes=20_000,
        max_poll_records=10,
    )
    done: Counter[int] = Counter()
    never = asyncio.Event()

    async def handle(record: Record) -> None:
        if record.partition == 0:
            await never.wait()
        done[record.partition] += 1

    async def body(lane: Lane) -> None:
        async for record in lane:
            await handle(record)

    async def read(tasks: asyncio.TaskGroup) -> None:
        if way == "run":
            await consumer.run(handle, concurrency=4, ordering="partition")
        async for lane in consumer.partitions():
            tasks.create_task(body(lane))

    async with (
        Producer(kafka_broker.bootstrap_servers) as producer,
        consumer,
        asyncio.TaskGroup() as tasks,
    ):
        reading = tasks.create_task(read(tasks))
        for number in range(1, 151):
            slow = NewRecord(b"slow", partition=0)
            others = [NewRecord(b"x" * 3000, partition=n) for n in (1, 2, 1, 2)]
            await producer.send_many(kafka_topic, [slow, *others])
            await until(lambda: done[1] == done[2] == 2 * number)  # noqa: B023
        assert not done[0]
        never.set()
        await until(lambda: done[0] == 150)
        reading.cancel()
        await consumer.close()


def identity(consumer: Consumer) -> tuple[str, int]:
    metadata = consumer.group_metadata
    return metadata.member_id, metadata.generation


@pytest.mark.kafka("embedded", partitions=6)
async def test_members_that_are_expelled_lose_nothing(
    kafka_broker: Broker, kafka_topic: str, group: str, ledger: Ledger
) -> None:
    ledger.may_repeat = True
    crew = [member(kafka_broker, kafka_topic, group, f"m-{n}") for n in range(2)]
    async with (
        Producer(kafka_broker.bootstrap_servers) as producer,
        all_at_work(crew, ledger),
    ):
        for number, consumer in enumerate(islice(cycle(crew), 6)):
            await producer.send_many(
                kafka_topic, records(range(10 * number, 10 * number + 10))
            )
            await ledger.wait(10 * number * len(KEYS))
            await until(lambda: all(member.assignment for member in crew))
            before = identity(consumer)
            kafka_broker.control.expel_member(group, before[0])
            await until(lambda: identity(consumer) != before)  # noqa: B023
        await ledger.wait(60 * len(KEYS))
    assert not [w for w in ledger.wrong if "after" in w]
    assert len(ledger.done) == 60 * len(KEYS)
