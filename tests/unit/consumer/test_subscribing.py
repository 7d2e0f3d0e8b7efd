"""What is read, and what is not: nothing at all, topics that are not there, the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

from kafkaio._consumer import Consumer
from kafkaio.errors import (
    AuthorizationError,
    ClosedError,
    InvalidTopic,
    UnknownTopicOrPartition,
    UsageError,
)
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.join_group import JoinGroupRequest
from kafkaio.types import Record, TopicPartition
from tests.fakes.broker import FakeCluster
from tests.unit.consumer.conftest import MakeConsumer
from tests.unit.consumer.fake_log import FakeLogs
from tests.unit.consumer.group_fakes import FakeGroup, until

ORDERS = [TopicPartition("orders", n) for n in range(3)]
MEMBER: dict[str, Any] = {
    "group_id": "g",
    "group_protocol": "classic",
    "auto_offset_reset": "earliest",
    "heartbeat_interval_ms": 1000,
    "session_timeout_ms": 10_000,
    "max_poll_interval_ms": 60_000,
}
ALONE: dict[str, Any] = {"auto_offset_reset": "earliest"}
NOTHING = "not subscribed to any topics"


async def handle(record: Record) -> None:
    raise AssertionError(record)


async def first_lane(consumer: Consumer) -> None:
    await anext(consumer.partitions())


READS: dict[str, Callable[[Consumer], Coroutine[Any, Any, object]]] = {
    "poll": lambda consumer: consumer.poll(),
    "no time": lambda consumer: consumer.poll(timeout=0),
    "anext": lambda consumer: consumer.__anext__(),
    "iterator": lambda consumer: anext(aiter(consumer)),  # type: ignore[arg-type, return-value]
    "batches": lambda consumer: consumer.batches().__anext__(),
    "run": lambda consumer: consumer.run(handle),
    "partitions": first_lane,
}
reads = pytest.mark.parametrize("read", READS.values(), ids=READS)


@pytest.fixture
async def group(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
) -> AsyncIterator[FakeGroup]:
    group = FakeGroup(cluster)
    yield group
    group.close()


class Heard:
    """Hears of topics that cannot be used."""

    def __init__(self) -> None:
        self.topics: list[tuple[str, str]] = []

    def topic_unavailable(self, topic: str, cause: BaseException) -> None:
        assert repr(topic) in str(cause)
        self.topics.append((topic, type(cause).__name__))


# ---- nothing -----------------------------------------------------------------------


@reads
async def test_reading_nothing(
    make: MakeConsumer, read: Callable[[Consumer], Coroutine[Any, Any, object]]
) -> None:
    async with make(**ALONE) as consumer:
        with pytest.raises(UsageError, match=NOTHING):
            await read(consumer)


@reads
@pytest.mark.parametrize("options", [MEMBER, ALONE], ids=["group", "alone"])
async def test_unsubscribing_while_a_read_waits(
    group: FakeGroup,
    make: MakeConsumer,
    read: Callable[[Consumer], Coroutine[Any, Any, object]],
    options: dict[str, Any],
) -> None:
    async with make(topics="orders", **options) as consumer:
        if read is READS["no time"]:
            consumer.unsubscribe()

        async def reading() -> None:
            lanes = consumer.partitions() if read is first_lane else None
            while lanes is not None:
                # Those that there are end by themselves.
                async with await anext(lanes) as lane:
                    assert [record async for record in lane] == []
            await read(consumer)

        waiting = asyncio.ensure_future(reading())
        await asyncio.sleep(1)
        if read is not READS["no time"]:
            assert not waiting.done()
            consumer.unsubscribe()
        with pytest.raises(UsageError, match=NOTHING):
            async with asyncio.timeout(5):
                await waiting


async def test_no_topics_and_no_partitions_are_nothing(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    logs.append(*ORDERS[0], b"x")
    async with make(topics=[], **MEMBER) as consumer:
        with pytest.raises(UsageError, match=NOTHING):
            await anext(consumer)
        consumer.subscribe("orders")  # later is early enough
        assert (await anext(consumer)).value == b"x"
        consumer.subscribe([])
        await until(lambda: len(group.left) == 1)
        consumer.assign([ORDERS[0]])
        assert consumer.assignment == {ORDERS[0]}
        consumer.assign([])
        assert consumer.assignment == frozenset()
        with pytest.raises(UsageError, match=NOTHING):
            await consumer.poll()
    with pytest.raises(ClosedError):
        await consumer.poll()


# ---- the end of a subscription -----------------------------------------------------


async def test_an_assignment_is_empty_once_unsubscribed(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    for tp in ORDERS:
        logs.append(*tp, b"x", b"y")
    seen: list[object] = []

    async def revoked(partitions: frozenset[TopicPartition]) -> None:
        seen.append((set(partitions), consumer.assignment))
        for tp in partitions:  # it may still look, and commit
            seen.append(await consumer.position(tp))
        await consumer.commit({ORDERS[0]: 1})

    consumer = make(topics="orders", on_revoked=revoked, **MEMBER)
    async with consumer:
        await consumer.poll(max_records=1)
        assert consumer.assignment == set(ORDERS)
        consumer.unsubscribe()
        assert consumer.assignment == frozenset()
        assert consumer.statistics().assigned == 0
        await until(lambda: len(group.left) == 1)
        assert seen == [(set(ORDERS), frozenset()), *seen[1:]]
        assert sorted(seen[1:]) == [0, 0, 1]  # type: ignore[type-var]
        assert group.offsets[ORDERS[0]].offset == 1


@pytest.mark.parametrize("options", [MEMBER, ALONE], ids=["group", "alone"])
async def test_the_same_again_at_once_is_another_subscription(
    group: FakeGroup,
    cluster: FakeCluster,
    logs: FakeLogs,
    make: MakeConsumer,
    options: dict[str, Any],
) -> None:
    calls: list[tuple[str, int]] = []
    for tp in ORDERS:
        logs.append(*tp, b"old")
    async with make(
        topics="orders",
        on_assigned=lambda tps: calls.append(("+", len(tps))),
        on_revoked=lambda tps: calls.append(("-", len(tps))),
        **(options | {"auto_offset_reset": "latest"}),
    ) as consumer:
        for tp in ORDERS:
            logs.append(*tp, b"buffered")
        first = await anext(consumer)
        consumer.unsubscribe()
        consumer.subscribe("orders")
        assert consumer.assignment == frozenset()  # not yet, and no more
        await until(lambda: consumer.assignment == set(ORDERS))
        assert calls == [("+", 3), ("-", 3), ("+", 3)]
        if options is MEMBER:
            assert group.left == ["member-1"]
            joins = {r.member_id for r in cluster.requests(JoinGroupRequest)}
            assert joins == {"", "member-1", "member-2"}
            # Where the group stood: the record handed out was not finished.
            again = [await anext(consumer) for _ in ORDERS]
            assert first in again
        else:
            # ``latest``, and not what a partition has that has only just appeared.
            assert (await consumer.poll(timeout=5)).records == []


async def test_an_assignment_that_a_callback_held_up_is_not_read(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    # The group assigns, the callback of the assignment before is busy, and the user
    # unsubscribes: what is assigned late is of a subscription that has ended.
    gate = asyncio.Event()

    async def assigned(partitions: object) -> None:
        await gate.wait()

    for tp in ORDERS:
        logs.append(*tp, b"x")
    consumer = make(topics="orders", on_assigned=assigned, **MEMBER)
    starting = asyncio.create_task(consumer.start())
    await until(lambda: bool(consumer.assignment))
    consumer.unsubscribe()
    consumer.subscribe("one")
    assert consumer.assignment == frozenset()
    logs.append("one", 0, b"y")
    gate.set()
    await starting
    assert (await anext(consumer)).value == b"y"


# ---- topics that cannot be read ----------------------------------------------------


@pytest.mark.parametrize("options", [MEMBER, ALONE], ids=["group", "alone"])
@pytest.mark.parametrize(
    ("code", "error"),
    [
        (ErrorCode.INVALID_TOPIC_EXCEPTION, InvalidTopic),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, AuthorizationError),
    ],
)
async def test_a_topic_that_is_refused(
    group: FakeGroup,
    cluster: FakeCluster,
    make: MakeConsumer,
    options: dict[str, Any],
    code: ErrorCode,
    error: type[Exception],
) -> None:
    cluster.add_topic("a b/c").error = code
    heard = Heard()
    begun = asyncio.get_running_loop().time()
    consumer = make(heard, topics=["a b/c", "orders"], **options)
    with pytest.raises(error, match="'a b/c'"):
        await consumer.start()
    assert asyncio.get_running_loop().time() - begun < 1
    assert heard.topics == [("a b/c", error.__name__)]


async def test_a_topic_that_is_refused_later(
    group: FakeGroup, cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
) -> None:
    async def read(consumer: Consumer, count: int) -> None:
        while count > 0:
            count -= len((await consumer.poll()).records)

    cluster.add_topic("bad").error = ErrorCode.INVALID_TOPIC_EXCEPTION
    async with make(topics="orders", metadata_max_age_ms=5_000, **MEMBER) as consumer:
        for _ in range(2):
            consumer.subscribe(["bad", "orders"])
            with pytest.raises(InvalidTopic, match="'bad'"):
                await read(consumer, 1)
            # Told once, though it is looked at again; the other topic is read on.
            await asyncio.sleep(20)
            logs.append(*ORDERS[0], b"x")
            await read(consumer, 1)
            consumer.subscribe("orders")


@pytest.mark.parametrize("creates", [False, True])
async def test_a_missing_topic_is_told_to_the_observer(
    group: FakeGroup, cluster: FakeCluster, make: MakeConsumer, *, creates: bool
) -> None:
    heard = Heard()
    async with make(
        heard, topics="later", allow_auto_create_topics=creates, **MEMBER
    ) as consumer:
        begun = asyncio.get_running_loop().time()
        await until(lambda: bool(heard.topics))
        assert asyncio.get_running_loop().time() - begun < 2
        await asyncio.sleep(20)
        assert (await consumer.poll(timeout=0)).records == []
        assert heard.topics == [("later", "UnknownTopicOrPartition")]
        cluster.add_topic("later")
        await until(lambda: bool(consumer.assignment))
        cluster.topics["later"].error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        consumer._core.cluster.request_refresh()
        await until(lambda: len(heard.topics) == 2)


async def test_a_missing_topic_without_a_group(make: MakeConsumer) -> None:
    heard = Heard()
    consumer = make(heard, topics="later", default_api_timeout_ms=2_000, **ALONE)
    with pytest.raises(UnknownTopicOrPartition, match="'later'"):
        await consumer.start()
    assert heard.topics == [("later", "UnknownTopicOrPartition")]


# ---- what offsets and partitions look like -------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {ORDERS[0]: "5"},
        {ORDERS[0]: 5.0},
        {ORDERS[0]: True},
        {ORDERS[0]: None},
        {ORDERS[0]: (5, "")},
        {"orders": 5},
        {("orders", "0"): 5},
        {("orders", -1): 5},
        {("orders", 0, 1): 5},
        {5: 5},
        5,
        "orders",
    ],
    ids=repr,
)
async def test_no_commit_and_no_seek_without_sense(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer, wrong: Any
) -> None:
    async with make(topics="orders", **MEMBER) as consumer:
        with pytest.raises(UsageError):
            await consumer.commit(wrong)
        if isinstance(wrong, dict):
            ((tp, offset),) = wrong.items()
            with pytest.raises(UsageError):
                consumer.seek(tp, offset)
            with pytest.raises(UsageError):
                await consumer.rewind({tp: [offset]})
        assert not group.offsets


async def test_partitions_that_are_none(make: MakeConsumer, logs: FakeLogs) -> None:
    async with make(topics="orders", **ALONE) as consumer:
        for call in (consumer.pause, consumer.resume, consumer.seek_to_end):
            with pytest.raises(UsageError, match="not a TopicPartition"):
                call("orders")
        with pytest.raises(UsageError, match="not a TopicPartition"):
            await consumer.position("orders")  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="not a TopicPartition"):
            await consumer.end_offsets(["orders"])  # type: ignore[list-item]
        with pytest.raises(UsageError, match="milliseconds"):
            await consumer.offsets_for_times({ORDERS[0]: "1"})  # type: ignore[dict-item]
        with pytest.raises(UsageError, match="topic must be str"):
            consumer.subscribe([5])  # type: ignore[list-item]
