"""Batches, deserializers, transactions, topics without a group, and its whole life."""

from __future__ import annotations

import asyncio
import re

import pytest

from kafkaio._client.client import Client
from kafkaio._config import ClientConfig
from kafkaio._consumer import Consumer
from kafkaio._records.batch import BatchBuilder, with_base_offset
from kafkaio.errors import (
    AuthorizationError,
    BrokerNotAvailable,
    ClosedError,
    ConfigurationError,
    DeserializationError,
    InternalError,
    UnknownTopicOrPartition,
    UsageError,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.fetch import FetchRequest
from kafkaio.protocol.messages.metadata import MetadataRequest
from kafkaio.types import Record, TopicPartition
from tests.fakes.broker import FakeCluster
from tests.unit.consumer.conftest import MakeConsumer
from tests.unit.consumer.fake_log import FakeLogs, Log

ONE = TopicPartition("one", 0)
ORDERS = [TopicPartition("orders", n) for n in range(3)]
FIRST = {"assign": [ONE], "auto_offset_reset": "earliest"}


# Batches


async def test_batches_are_of_one_partition_each(logs: FakeLogs, make: MakeConsumer):
    for tp in ORDERS:
        for n in range(4):
            logs.append(*tp, b"%d" % (2 * n), b"%d" % (2 * n + 1))
    async with make(assign=ORDERS, auto_offset_reset="earliest") as consumer:
        await asyncio.sleep(1)
        seen: dict[int, list[int]] = {0: [], 1: [], 2: []}
        sizes = []
        async for batch in consumer.batches(max_records=5):
            assert {r.topic_partition for r in batch} == {batch.topic_partition}
            seen[batch.partition] += [r.offset for r in batch]
            sizes.append(len(batch))
            if sum(sizes) == 24:
                break
        assert seen == {n: list(range(8)) for n in range(3)}
        assert max(sizes) == 5


async def test_a_batch_waits_until_it_is_full_or_time_is_up(
    logs: FakeLogs, make: MakeConsumer
):
    loop = asyncio.get_running_loop()
    async with make(**FIRST) as consumer:
        batches = consumer.batches(max_records=4, max_wait=2.0)
        waiting = asyncio.create_task(anext(batches))
        await asyncio.sleep(1)
        begun = loop.time()
        logs.append("one", 0, b"a", b"b")
        assert len(await waiting) == 2
        assert 1.9 < loop.time() - begun < 2.2
        waiting = asyncio.create_task(anext(batches))
        logs.append("one", 0, b"c", b"d")
        await asyncio.sleep(0.5)
        logs.append("one", 0, b"e", b"f", b"g")
        assert len(await waiting) == 4
        assert len(await anext(batches)) == 1
    assert batches.__aiter__() is batches


async def test_a_busy_partition_does_not_starve_a_quiet_one(
    logs: FakeLogs, make: MakeConsumer
):
    logs.append("orders", 0, b"quiet")
    for _ in range(50):
        logs.append("one", 0, b"a", b"b")
    async with make(assign=[ONE, ORDERS[0]], auto_offset_reset="earliest") as consumer:
        batches = consumer.batches(max_records=2, max_wait=0.1)
        seen = []
        for _ in range(50):
            seen.append((await anext(batches)).topic)
            await asyncio.sleep(0.01)
        assert "orders" in seen


async def test_poll_returns_when_time_is_up(logs: FakeLogs, make: MakeConsumer):
    loop = asyncio.get_running_loop()
    async with make(**FIRST) as consumer:
        begun = loop.time()
        poll = await consumer.poll(timeout=1.5)
        assert poll.records == []
        assert poll.to_be_revoked == poll.lost == frozenset()
        assert loop.time() - begun == pytest.approx(1.5, abs=0.01)
        with pytest.raises(UsageError, match="max_records=-1"):
            await consumer.poll(max_records=-1)
        logs.append("one", 0, *[b"x"] * 700)
        assert (await consumer.poll(max_records=0)).records == []  # it waited for some
        assert len((await consumer.poll()).records) == 500


async def test_a_reader_with_data_lets_other_tasks_run(
    logs: FakeLogs, make: MakeConsumer
):
    heard = asyncio.Event()
    logs.append("one", 0, *[b"x"] * 2000)
    async with make(**FIRST) as consumer:
        await asyncio.sleep(1)
        # As if the user had worked for a while without any await.
        consumer._core.time_slice.end = 0.0
        asyncio.get_running_loop().call_soon(heard.set)
        for _ in range(300):
            await anext(consumer)
        assert heard.is_set()
        begun = asyncio.get_running_loop().time()
        for _ in range(1000):
            await anext(consumer)
        assert asyncio.get_running_loop().time() == begun  # none of them waited


# Deserializers


async def test_deserializers(logs: FakeLogs, make: MakeConsumer):
    logs.append("one", 0, b"1", b"2", b"x", b"4")
    logs.log("one").append([None])
    async with make(**FIRST, value_deserializer=int) as consumer:
        assert (await anext(consumer)).value == 1
        assert [r.value for r in (await consumer.poll()).records] == [2]
        for _ in range(2):
            with pytest.raises(DeserializationError, match="invalid literal") as caught:
                await anext(consumer)
            assert "the value of one-0 at offset 2" in str(caught.value)
            with pytest.raises(DeserializationError, match="invalid literal"):
                await anext(consumer.batches())
        assert await consumer.position(ONE) == 2
        consumer.seek(ONE, 3)
        assert [r.value for r in (await consumer.poll()).records] == [4, None]


# Transactions


def transactional(log: Log, producer_id: int, *values: bytes) -> int:
    builder = BatchBuilder(transactional=True)
    for value in values:
        builder.try_append(1000, None, value, ())
    batch = builder.build(producer_id=producer_id, producer_epoch=0, base_sequence=0)
    return log.raw(with_base_offset(batch, log.end, 0), len(values))


def interleaved(logs: FakeLogs) -> None:
    log = logs.log("one")
    first = transactional(log, 1, b"aborted")
    transactional(log, 2, b"committed")
    transactional(log, 1, b"aborted too")
    last = log.marker(1, commit=False)
    log.aborted.append((1, first, last))
    log.marker(2, commit=True)
    transactional(log, 1, b"later")
    log.marker(1, commit=True)
    log.last_stable = log.end
    transactional(log, 3, b"open")


async def test_read_committed(logs: FakeLogs, make: MakeConsumer):
    interleaved(logs)
    options = {**FIRST, "isolation_level": "read_committed", "group_id": "g"}
    async with make(**options) as consumer:
        poll = await consumer.poll(timeout=1)
        assert [r.value for r in poll.records] == [b"committed", b"later"]
        assert (await consumer.poll(timeout=1)).records == []
        assert await consumer.end_offsets([ONE]) == {ONE: 7}
        assert await consumer.lag() == {ONE: 0}
        await consumer.commit()
        # Past the last marker, which no one will ever see.
        assert logs.committed["one", 0] == 7


async def test_read_uncommitted_sees_all_but_the_markers(
    logs: FakeLogs, make: MakeConsumer
):
    interleaved(logs)
    async with make(**FIRST) as consumer:
        found = [(await anext(consumer)).value for _ in range(5)]
    assert found == [b"aborted", b"committed", b"aborted too", b"later", b"open"]


# Topics without a group


async def test_partitions_that_are_added_are_read_from_their_start(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    calls: list[tuple[str, frozenset[TopicPartition]]] = []
    logs.append("one", 0, b"old")
    async with make(
        topics=["one"],
        metadata_max_age_ms=1000,
        on_assigned=lambda partitions: calls.append(("assigned", partitions)),
        on_revoked=lambda partitions: calls.append(("revoked", partitions)),
    ) as consumer:
        added = TopicPartition("one", 1)
        cluster.topics["one"].partitions.append(cluster.partition("one", 0))
        logs.append("one", 1, b"new")
        assert (await anext(consumer)).value == b"new"
        assert consumer.assignment == {ONE, added}
        consumer.unsubscribe()
        await asyncio.sleep(1)
        assert consumer.assignment == frozenset()
    assert calls[:2] == [("assigned", {ONE}), ("assigned", {added})]


async def test_a_pattern_without_a_group(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    cluster.add_topic("__internal", is_internal=True)
    pattern = re.compile(r"or.*|__.*")
    async with make(topics=pattern, metadata_max_age_ms=1000) as consumer:
        assert consumer.assignment == set(ORDERS)
        cluster.add_topic("order")
        logs.append("order", 0, b"first")
        assert (await anext(consumer)).value == b"first"
    async with make(topics=pattern, exclude_internal_topics=False) as consumer:
        assert TopicPartition("__internal", 0) in consumer.assignment


async def test_changing_what_is_read(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    for tp in [ONE, *ORDERS]:
        logs.append(*tp, b"x")
    async with make(auto_offset_reset="earliest") as consumer:
        assert consumer.assignment == frozenset()
        consumer.assign([ONE])
        assert (await anext(consumer)).topic == "one"
        with pytest.raises(UsageError, match="unsubscribe first"):
            consumer.subscribe("orders")
        consumer.assign([ONE, ORDERS[1]])
        assert (await anext(consumer)).topic_partition == ORDERS[1]
        assert await consumer.position(ONE) == 1  # undisturbed
        consumer.unsubscribe()
        assert consumer.assignment == frozenset()
        consumer.subscribe(["orders"])
        found = {(await anext(consumer)).partition for _ in range(3)}
        assert found == {0, 1, 2}
        with pytest.raises(UsageError, match="unsubscribe first"):
            consumer.assign([ONE])


async def test_a_topic_that_is_not_there(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    async with make(default_api_timeout_ms=3000) as consumer:
        consumer.subscribe("late")
        with pytest.raises(Exception, match="late"):
            await anext(consumer)
        cluster.add_topic("late")
        consumer._core.cluster.request_refresh("late")
        await asyncio.sleep(5)
        logs.append("late", 0, b"x")
        assert (await anext(consumer)).value == b"x"


async def test_a_new_wish_does_not_wait_for_the_one_before(
    logs: FakeLogs, make: MakeConsumer
):
    logs.append("one", 0, b"x")
    async with make(auto_offset_reset="earliest") as consumer:
        consumer.subscribe("never")
        await asyncio.sleep(1)
        consumer.subscribe("orders")
        consumer.subscribe("one")
        async with asyncio.timeout(1):
            assert (await anext(consumer)).topic == "one"
        assert consumer.assignment == {ONE}
        assert not consumer._core.reader.has_failed


@pytest.mark.parametrize(
    ("wished", "code", "kind", "match"),
    [
        (TopicPartition("never", 0), 0, UnknownTopicOrPartition, "'never'"),
        (TopicPartition("one", 7), 0, UnknownTopicOrPartition, "has no partition 7"),
        (
            ORDERS[0],
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            AuthorizationError,
            "'orders'",
        ),
    ],
)
async def test_fixed_partitions_that_cannot_be_had_are_told(
    cluster: FakeCluster,
    logs: FakeLogs,
    make: MakeConsumer,
    wished: TopicPartition,
    code: int,
    kind: type[Exception],
    match: str,
):
    cluster.topics["orders"].error = code
    logs.append("one", 0, b"x", b"y")
    options = {"auto_offset_reset": "earliest", "default_api_timeout_ms": 3000}
    async with make(**options) as consumer:
        consumer.assign([ONE, wished])
        asked = len(cluster.requests(MetadataRequest))
        await asyncio.sleep(20)
        # Nobody is asked in a hurry, and who has not heard yet is told once.
        assert len(cluster.requests(MetadataRequest)) - asked < 80
        with pytest.raises(kind, match=match):
            await anext(consumer)
        assert (await anext(consumer)).value == b"x"  # the others are read
        consumer.assign([ONE])
        assert (await anext(consumer)).value == b"y"


async def test_a_partition_that_is_newer_than_the_view_is_had(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    async with make(auto_offset_reset="earliest") as consumer:
        cluster.add_topic("one", partitions=2)
        consumer.assign([TopicPartition("one", 1)])
        logs.append("one", 1, b"new")
        assert (await anext(consumer)).value == b"new"


# Life


async def test_what_a_callback_raises_reaches_the_caller(
    logs: FakeLogs, make: MakeConsumer
):
    async def fail(partitions: object) -> None:
        await asyncio.sleep(0)
        raise ZeroDivisionError("mine")

    consumer = make(topics="one", on_assigned=fail)
    with pytest.raises(ZeroDivisionError, match="mine"):
        await consumer.start()
    assert consumer.statistics().state == "closed"


async def test_a_crash_reaches_the_reader_at_once(logs: FakeLogs, make: MakeConsumer):
    async with make(**FIRST) as consumer:
        waiting = asyncio.create_task(anext(consumer))
        await asyncio.sleep(1)

        async def crash() -> None:
            raise ZeroDivisionError("a bug")

        consumer._core._supervisor.start_soon(crash, "crash")
        with pytest.raises(InternalError, match="a bug") as raised:
            await waiting
        assert isinstance(raised.value.__cause__, ZeroDivisionError)
        with pytest.raises(InternalError, match="a bug"):
            await consumer.poll()
        assert consumer.statistics().state == "failed"
        assert "failed" in repr(consumer)


async def test_a_crash_in_a_callback_reaches_the_reader_at_once(
    logs: FakeLogs, make: MakeConsumer
):
    def crash() -> None:
        raise ZeroDivisionError("a bug")

    async with make(**FIRST) as consumer:
        waiting = asyncio.create_task(anext(consumer))
        await asyncio.sleep(1)
        consumer._core.fetcher.update = crash  # type: ignore[method-assign]
        consumer._core.wake_tasks()
        with pytest.raises(InternalError, match="a bug"):
            await asyncio.wait_for(waiting, 1)
        assert consumer.statistics().state == "failed"


async def test_closing_is_bounded_and_can_be_repeated(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    loop = asyncio.get_running_loop()
    logs.append("one", 0, b"a", b"b")
    await make(**FIRST).close()  # never started
    consumer = make(**FIRST, group_id="g")
    await consumer.start()
    await anext(consumer)
    await anext(consumer)
    cluster.hold(ApiKey.OFFSET_COMMIT)
    begun = loop.time()
    await consumer.close(timeout=2.0)
    assert loop.time() - begun < 2.5
    await consumer.close()
    with pytest.raises(ClosedError):
        await consumer.start()
    with pytest.raises(ClosedError, match="closed"):
        await consumer.commit()


async def test_closing_while_starting(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    cluster.hold(ApiKey.LIST_OFFSETS)
    consumer = make(**FIRST)
    starting = asyncio.create_task(consumer.start())
    await asyncio.sleep(1)
    await consumer.close(timeout=1.0)
    with pytest.raises(ClosedError):
        await starting


async def test_no_broker_at_all(cluster: FakeCluster, make: MakeConsumer):
    for node in cluster.nodes:
        cluster.stop(node)
    with pytest.raises(BrokerNotAvailable):
        await make(**FIRST).start(timeout=3)


async def test_sharing_a_client(cluster: FakeCluster, logs: FakeLogs):
    logs.append("one", 0, b"x")
    config = ClientConfig(bootstrap_servers=cluster.bootstrap_servers)
    async with Client.from_config(config, dial=cluster.dial) as client:
        with pytest.raises(UsageError, match="client_id"):
            Consumer(client, client_id="mine")
        with pytest.raises(UsageError, match="observer"):
            Consumer(client, observer=object())
        for _ in range(2):
            async with Consumer(
                client, assign=[ONE], auto_offset_reset="earliest"
            ) as consumer:
                assert (await anext(consumer)).value == b"x"
        assert client.statistics().state == "running"
        epochs = [r.session_epoch for r in cluster.requests(FetchRequest)]
        assert epochs.count(0) == 2


def test_making_one_wrongly():
    with pytest.raises(ConfigurationError, match="auto_offset_reset"):
        Consumer(auto_ofset_reset="latest")  # type: ignore[call-arg]
    with pytest.raises(UsageError, match="not both"):
        Consumer(topics="t", assign=[])
    with pytest.raises(UsageError, match="topic must not be empty"):
        Consumer(topics=[""])
    with pytest.raises(UsageError, match="not a TopicPartition"):
        Consumer(assign=["orders"])  # type: ignore[list-item]
    consumer = Consumer.from_properties(
        {"bootstrap.servers": "a:1", "group.id": "g", "max.poll.records": "7"},
        topics="t",
    )
    assert repr(consumer).startswith("<Consumer 'g' new")


def test_a_deserialized_record_is_a_record():
    assert Record("t", 0, 0, 0, None, None).topic_partition == TopicPartition("t", 0)
