"""`AIOKafkaConsumer` on the embedded broker, and aiokafka's in the same programs."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

import kafkaio
from kafkaio import TopicPartition
from kafkaio.aiokafka import AIOKafkaConsumer, errors
from kafkaio.aiokafka.abc import ConsumerRebalanceListener
from kafkaio.aiokafka.structs import ConsumerRecord
from kafkaio.testing import Broker, drop
from tests.unit.aiokafka.side import SIDES, Side, side

ZERO, ONE = (TopicPartition("t", number) for number in range(2))
EARLIEST = {"auto_offset_reset": "earliest"}


@pytest_asyncio.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(topics={"t": 2, "u": 1}, auto_create_topics=False) as broker:
        yield broker


@pytest.fixture
def it(name: str) -> Side:
    return side(name)


async def write(broker: Broker, *values: bytes | None, **where: Any) -> None:
    async with kafkaio.Producer(broker.bootstrap_servers) as producer:
        for number, value in enumerate(values):
            place = {"topic": "t", "partition": number % 2, **where}
            await producer.send(place.pop("topic"), value, **place)


def consumer_of(it: Side, broker: Broker, *topics: str, **options: Any) -> Any:
    kind = it.top.AIOKafkaConsumer
    servers = broker.bootstrap_servers
    return kind(*topics, bootstrap_servers=servers, **{**EARLIEST, **options})


def ours(broker: Broker, *topics: str, **options: Any) -> AIOKafkaConsumer:
    consumer: AIOKafkaConsumer = consumer_of(
        side("kafkaio.aiokafka"), broker, *topics, **options
    )
    return consumer


def tp_of(it: Side, tp: TopicPartition) -> Any:
    return it.top.TopicPartition(*tp)


# ---- the same program on both --------------------------------------------------------


@SIDES
async def test_records_one_by_one_and_many(it: Side, broker: Broker) -> None:
    await write(broker, *(b"%d" % n for n in range(8)), key=b"key")
    async with consumer_of(it, broker, "t", group_id="g") as consumer:
        assert consumer.subscription() == {"t"}
        assert consumer.assignment() == {ZERO, ONE}
        record = await consumer.getone()
        assert isinstance(record, it.top.ConsumerRecord)
        assert (record.serialized_key_size, record.serialized_value_size) == (3, 1)
        assert (record.timestamp_type, record.headers) == (0, ())
        seen = [record]
        while len(seen) < 8:
            found = await consumer.getmany(timeout_ms=5000, max_records=3)
            for tp, records in found.items():
                assert {(r.topic, r.partition) for r in records} == {tp}
                seen += records
        assert sorted(r.value for r in seen) == [b"%d" % n for n in range(8)]
        assert await consumer.getmany() == {}
        assert [await consumer.position(tp_of(it, tp)) for tp in (ZERO, ONE)] == [4, 4]
        assert consumer.highwater(tp_of(it, ZERO)) == 4
        assert consumer.last_stable_offset(tp_of(it, ZERO)) in (-1, 4)


@SIDES
async def test_each_task_reads_its_partition(it: Side, broker: Broker) -> None:
    await write(broker, *(b"%d" % n for n in range(20)))
    async with consumer_of(it, broker, "t") as consumer:

        async def work(tp: Any) -> list[int]:
            return [(await consumer.getone(tp)).offset for _ in range(10)]

        async with asyncio.timeout(20):
            found = await asyncio.gather(work(tp_of(it, ZERO)), work(tp_of(it, ONE)))
    assert [*found] == [[*range(10)]] * 2


@SIDES
async def test_stop_ends_what_waits(it: Side, broker: Broker) -> None:
    consumer = consumer_of(it, broker, "t", group_id="g")
    await consumer.start()

    async def iterate() -> list[object]:
        return [record async for record in consumer]

    waiting = [
        asyncio.ensure_future(each)
        for each in (consumer.getone(), consumer.getmany(timeout_ms=60_000), iterate())
    ]
    await asyncio.sleep(0)
    await consumer.stop()
    one, many, iterated = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(one, it.errors.ConsumerStoppedError)
    assert (many, iterated) == ({}, [])
    for call in (consumer.getone, consumer.getmany):
        with pytest.raises(it.errors.ConsumerStoppedError):
            await call()
    with pytest.raises(it.errors.ConsumerStoppedError):
        consumer.__aiter__()
    await consumer.stop()


@SIDES
async def test_arguments_that_are_refused(it: Side, broker: Broker) -> None:
    consumer = consumer_of(it, broker)
    for wrong in ({}, {"topics": ["a"], "pattern": "b"}, {"topics": "t"}):
        with pytest.raises(TypeError):
            consumer.subscribe(**wrong)
    with pytest.raises(TypeError):
        consumer.subscribe(["t"], listener=object())
    with pytest.raises(ValueError, match="not a valid pattern"):
        consumer.subscribe(pattern="(")
    consumer.subscribe(["t"])
    with pytest.raises(it.errors.IllegalStateError):
        consumer.assign([tp_of(it, ZERO)])
    with pytest.raises(it.errors.IllegalStateError):
        consumer.subscribe(pattern="t")
    await consumer.stop()


@SIDES
async def test_numbers_and_partitions_that_are_refused(
    it: Side, broker: Broker
) -> None:
    consumer = consumer_of(it, broker, "t")
    for records in (0, "1", -1):
        with pytest.raises(ValueError, match="max_poll_records"):
            consumer_of(it, broker, max_poll_records=records)
    await consumer.start()
    zero = tp_of(it, ZERO)
    with pytest.raises(AssertionError):
        await consumer.getone("t")
    with pytest.raises(ValueError, match="max_records"):
        await consumer.getmany(max_records=0)
    for offset in (-1, "", 1.5):
        with pytest.raises(ValueError, match="positive"):
            consumer.seek(zero, offset)
    for call in ("seek_to_beginning", "seek_to_end", "seek_to_committed"):
        with pytest.raises(TypeError):
            await getattr(consumer, call)(1)
        with pytest.raises(it.errors.IllegalStateError):
            await getattr(consumer, call)(it.top.TopicPartition("t", 9))
    with pytest.raises(TypeError):
        consumer.pause("t")
    with pytest.raises(it.errors.IllegalStateError):
        consumer.pause(it.top.TopicPartition("t", 9))
    with pytest.raises(it.errors.IllegalStateError):
        await consumer.position(it.top.TopicPartition("t", 9))
    for call in (consumer.highwater, consumer.last_stable_offset):
        with pytest.raises(AssertionError):
            call(it.top.TopicPartition("t", 9))
    with pytest.raises(ValueError, match="cannot be negative"):
        await consumer.offsets_for_times({zero: -1})
    with pytest.raises(it.errors.IllegalOperation):
        await consumer.commit()
    with pytest.raises(it.errors.IllegalOperation):
        await consumer.committed(zero)
    await consumer.stop()


@SIDES
async def test_commits_in_all_forms(it: Side, broker: Broker) -> None:
    await write(broker, *(b"%d" % n for n in range(8)))
    zero, one = tp_of(it, ZERO), tp_of(it, ONE)
    options = {"group_id": "g", "enable_auto_commit": False}
    async with consumer_of(it, broker, "t", **options) as consumer:
        assert await consumer.committed(zero) is None
        for form in (1, (2, "text"), it.top.OffsetAndMetadata(3, "")):
            await consumer.commit({zero: form})
        assert await consumer.committed(zero) == 3
        for wrong in ({}, "t", {zero: (1, "a", 2)}):
            with pytest.raises(ValueError):  # noqa: PT011 - it has the offsets alone
                await consumer.commit(wrong)
        for also in ({"t": 1}, {zero: (1, b"")}):
            with pytest.raises(TypeError):
                await consumer.commit(also)
        with pytest.raises(it.errors.IllegalStateError, match="is not assigned"):
            await consumer.commit({it.top.TopicPartition("t", 9): 1})
        await consumer.getone(one)
        await consumer.commit()
        assert await consumer.committed(one) == 1
        assert await consumer.seek_to_committed(one) == {one: 1}
        assert (await consumer.getone(one)).offset == 1
        consumer.unsubscribe()
        with pytest.raises(it.errors.IllegalStateError, match="Not subscribed"):
            await consumer.commit()


@SIDES
async def test_positions_and_offsets(it: Side, broker: Broker) -> None:
    await write(broker, *(b"%d" % n for n in range(6)))
    zero, one = tp_of(it, ZERO), tp_of(it, ONE)
    async with consumer_of(it, broker) as consumer:
        consumer.assign([zero, one])
        assert await consumer.beginning_offsets([zero]) == {zero: 0}
        assert await consumer.end_offsets([zero, one]) == {zero: 3, one: 3}
        found = await consumer.offsets_for_times({zero: 0, one: 2**60})
        assert (found[zero].offset, found[one]) == (0, None)
        assert await consumer.seek_to_end(zero)
        assert await consumer.position(zero) == 3
        consumer.pause(zero)
        assert consumer.paused() == {zero}
        assert await consumer.seek_to_beginning()
        assert (await consumer.getone()).partition == 1
        consumer.resume(zero)
        consumer.seek(zero, 2)
        record = await consumer.getone(zero)
        assert (record.offset, consumer.paused()) == (2, set())
        assert await consumer.topics() == {"t", "u"}
        await consumer._client.force_metadata_update()
        assert consumer.partitions_for_topic("t") == {0, 1}


@SIDES
async def test_deserializers_are_called_with_none(it: Side, broker: Broker) -> None:
    await write(broker, None, b"v", partition=0)

    def tell(data: bytes | None) -> str:
        return f"<{data!r}>"

    options = {"key_deserializer": tell, "value_deserializer": tell}
    async with consumer_of(it, broker, "t", **options) as consumer:
        records = [await consumer.getone() for _ in range(2)]
    assert [(r.key, r.value) for r in records] == [
        ("<None>", "<None>"),
        ("<None>", "<b'v'>"),
    ]
    assert [r.serialized_value_size for r in records] == [-1, 1]
    assert [r.serialized_key_size for r in records] == [-1, -1]


@SIDES
async def test_what_a_deserializer_raises(it: Side, broker: Broker) -> None:
    await write(broker, b"1", b"x", partition=0)
    async with consumer_of(it, broker, "t", value_deserializer=int) as consumer:
        assert (await consumer.getone()).value == 1
        with pytest.raises(ValueError, match="invalid literal"):
            await consumer.getone()


@SIDES
async def test_without_a_policy_for_positions(it: Side, broker: Broker) -> None:
    await write(broker, b"1", b"2")
    options = {"group_id": "g", "auto_offset_reset": "none"}
    async with consumer_of(it, broker, "u", **options) as consumer:
        place = it.top.TopicPartition("u", 0)
        for call in (consumer.getone, consumer.getmany):
            with pytest.raises(it.errors.NoOffsetForPartitionError):
                await (call() if call == consumer.getone else call(timeout_ms=5000))
        consumer.seek(place, 99)
        with pytest.raises(it.errors.OffsetOutOfRangeError):
            await consumer.getone(place)


@SIDES
async def test_a_pattern_matches_the_beginning(it: Side, broker: Broker) -> None:
    for name in ("orders", "orders-eu", "my-orders"):
        broker.create_topic(name, 1)
    await write(broker, b"v", topic="orders-eu", partition=0)
    consumer = consumer_of(it, broker, group_id="g")
    consumer.subscribe(pattern="^order")
    async with consumer:
        assert consumer.subscription() == {"orders", "orders-eu"}
        assert {tp.topic for tp in consumer.assignment()} == {"orders", "orders-eu"}
        assert (await consumer.getone()).value == b"v"


@SIDES
async def test_reading_waits_until_something_is_assigned(
    it: Side, broker: Broker
) -> None:
    await write(broker, b"v", topic="u", partition=0)
    async with consumer_of(it, broker) as consumer:
        reading = asyncio.ensure_future(consumer.getone())
        await asyncio.sleep(0)
        assert not reading.done()
        consumer.assign([it.top.TopicPartition("u", 0)])
        assert (await asyncio.wait_for(reading, 20)).value == b"v"
        consumer.unsubscribe()
        assert consumer.assignment() == set()
        consumer.subscribe(["u"])
        assert (await asyncio.wait_for(consumer.getone(), 20)).value == b"v"


def listener_of(it: Side, heard: list[tuple[str, set[Any]]]) -> Any:
    base: Any = it.top.ConsumerRebalanceListener

    class Listener(base):  # type: ignore[misc]
        def on_partitions_revoked(self, revoked: set[Any]) -> None:
            heard.append(("revoked", revoked))

        async def on_partitions_assigned(self, assigned: set[Any]) -> None:
            heard.append(("assigned", assigned))
            raise ValueError("is logged")

    return Listener()


@SIDES
async def test_a_listener_hears_of_each_rebalance(it: Side, broker: Broker) -> None:
    heard: list[tuple[str, set[Any]]] = []
    consumer = consumer_of(it, broker, group_id="g", heartbeat_interval_ms=100)
    consumer.subscribe(["t"], listener=listener_of(it, heard))
    async with consumer:
        assert heard == [("revoked", set()), ("assigned", {ZERO, ONE})]
        async with consumer_of(it, broker, "t", group_id="g") as other:
            async with asyncio.timeout(20):
                while len(heard) < 4:
                    await consumer.getmany(timeout_ms=50)
            assert heard[2:] == [
                ("revoked", {ZERO, ONE}),
                ("assigned", consumer.assignment()),
            ]
            assert consumer.assignment() | other.assignment() == {ZERO, ONE}
            assert len(consumer.assignment()) == len(other.assignment()) == 1
        assert len(heard) in (4, 6)
        count = len(heard)
    assert len(heard) == count


@SIDES
async def test_a_consumer_that_is_not_stopped_warns(it: Side, broker: Broker) -> None:
    consumer = consumer_of(it, broker, "t")
    told: list[Any] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: told.append(context["message"]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del consumer
        gc.collect()
    loop.set_exception_handler(None)
    assert told == ["Unclosed AIOKafkaConsumer"]
    assert [w for w in caught if "Unclosed AIOKafkaConsumer" in str(w.message)]


@SIDES
def test_made_outside_of_a_loop(it: Side) -> None:
    with pytest.raises(RuntimeError):
        it.top.AIOKafkaConsumer("t")
    loop = asyncio.new_event_loop()
    with pytest.warns(DeprecationWarning, match="loop"):
        consumer = it.top.AIOKafkaConsumer("t", loop=loop)
    loop.run_until_complete(consumer.stop())
    loop.close()


# ---- ours ----------------------------------------------------------------------------


async def test_what_libraries_read(broker: Broker) -> None:
    consumer = ours(broker, "t", group_id="g", client_id="me")
    was_closed: object = consumer._closed
    assert (was_closed, consumer._group_id) == (False, "g")
    assert consumer._client._client_id == "me"
    assert consumer._client._bootstrap_servers == broker.bootstrap_servers
    assert consumer._subscription.topics == {"t"}
    assert consumer._subscription.subscription is not None
    assert consumer._subscription.subscription.assignment is None
    async with consumer:
        assert consumer._coordinator is not None
        assert consumer._coordinator.member_id.startswith("me-")
        assert consumer._coordinator.generation == 1
        assert consumer._subscription.subscription.assignment is not None
        assert consumer._subscription.subscription.assignment.tps == {ZERO, ONE}
    is_closed: object = consumer._closed
    assert is_closed


async def test_errors_are_those_of_both(broker: Broker) -> None:
    async with ours(broker, "u", group_id="g", auto_offset_reset="none") as consumer:
        with pytest.raises(kafkaio.OffsetOutOfRange) as caught:
            await consumer.getone()
        assert isinstance(caught.value, errors.KafkaError)
        assert caught.value.topic == "u"


@pytest.mark.parametrize("how", ["done", "raised", "elsewhere"])
async def test_row_stop_commits_what_is_done(broker: Broker, how: str) -> None:
    await write(broker, *(b"%d" % n for n in range(4)), partition=0)
    consumer = ours(broker, "t", group_id="g")
    await consumer.start()
    await consumer.getmany(timeout_ms=5000, max_records=1)
    await consumer.getmany(timeout_ms=5000, max_records=1)
    if how == "done":
        await consumer.stop()
    elif how == "elsewhere":
        await asyncio.create_task(consumer.stop())
    else:
        with suppress(ZeroDivisionError):
            try:
                raise ZeroDivisionError
            finally:
                await consumer.stop()
    async with ours(broker, group_id="g") as after:
        assert await after.committed(ZERO) == (2 if how == "done" else 1)


async def test_row_an_iteration_raises_errors_of_reading(broker: Broker) -> None:
    await write(broker, b"x", partition=0)
    async with ours(broker, "t", value_deserializer=int) as consumer:
        with pytest.raises(ValueError, match="invalid literal"):
            async for _ in consumer:
                pass


async def test_row_last_poll_timestamp_is_refused(broker: Broker) -> None:
    async with ours(broker, "t") as consumer:
        with pytest.raises(NotImplementedError, match="last_poll_timestamp"):
            consumer.last_poll_timestamp(ZERO)


async def test_row_getmany_without_a_limit_has_one(broker: Broker) -> None:
    async with ours(broker, "t") as consumer:
        assert consumer._most == 10_000


async def test_row_a_rebalance_waits_for_the_next_read(broker: Broker) -> None:
    with pytest.warns(UserWarning, match="rebalance_timeout_ms has no effect"):
        consumer = ours(
            broker,
            "t",
            group_id="g",
            rebalance_timeout_ms=5,
            heartbeat_interval_ms=50,
        )
    await write(broker, b"0", b"1")
    async with consumer, asyncio.timeout(30):
        await consumer.getone()
        other = ours(broker, "t", group_id="g")
        joining = asyncio.create_task(other.start())
        # Until it has worked on the record, it keeps the partitions.
        native = consumer._native
        assert native is not None
        while not native.to_be_revoked:  # noqa: ASYNC110 - a property
            await asyncio.sleep(0.01)
        assert consumer.assignment() == {ZERO, ONE}
        assert not joining.done()
        while not joining.done():
            await consumer.getmany(timeout_ms=20)
        await other.stop()


async def test_row_an_assignment_of_nothing_is_told_at_the_start(
    broker: Broker,
) -> None:
    heard: list[tuple[str, set[Any]]] = []
    ready = ours(broker, "u", group_id="g")
    consumer = ours(broker, group_id="g")
    consumer.subscribe(["u"], listener=listener_of(side("kafkaio.aiokafka"), heard))
    async with ready, asyncio.timeout(30):
        joining = asyncio.create_task(consumer.start())
        while not joining.done():
            await ready.getmany(timeout_ms=20)
        await joining
        empty = {"ready": ready, "consumer": consumer}
        if not consumer.assignment():
            assert heard == [("revoked", set()), ("assigned", set())]
        assert sorted(len(each.assignment()) for each in empty.values()) == [0, 1]
        await consumer.stop()


async def test_row_consumer_timeout_ms_has_no_effect(broker: Broker) -> None:
    await write(broker, b"v")
    async with ours(broker, "t", consumer_timeout_ms=0) as consumer:
        assert (await consumer.getone()).value == b"v"


async def test_row_checksum_is_not_there(broker: Broker) -> None:
    await write(broker, b"v")
    async with ours(broker, "t") as consumer:
        assert not hasattr(await consumer.getone(), "checksum")


async def test_row_auto_offset_reset_has_three_values() -> None:
    with pytest.raises(ValueError, match="auto_offset_reset is 'begin'"):
        AIOKafkaConsumer(auto_offset_reset="begin")


async def test_a_start_that_failed_may_be_made_again(broker: Broker) -> None:
    consumer = ours(broker, "new", request_timeout_ms=500)
    with pytest.raises(errors.UnknownTopicOrPartitionError):
        await consumer.start()
    with pytest.raises(errors.IllegalStateError, match="not started"):
        await consumer.getone()
    broker.create_topic("new", 1)
    async with consumer:
        assert consumer.assignment() == {TopicPartition("new", 0)}
        with pytest.raises(AssertionError, match="twice"):
            await consumer.start()
    with pytest.raises(errors.ConsumerStoppedError):
        await consumer.start()


async def test_stop_in_a_listener_is_refused(broker: Broker) -> None:
    consumer = ours(broker, group_id="g")
    raised: list[BaseException] = []

    class Listener(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked: Any) -> None:
            pass

        async def on_partitions_assigned(self, assigned: Any) -> None:
            try:
                await consumer.stop()
            except errors.IllegalStateError as error:
                raised.append(error)

    consumer.subscribe(["t"], listener=Listener())
    async with consumer:
        assert "call it in another task" in str(raised[0])
        assert await consumer.getmany() == {}


async def test_commits_of_a_listener_count(broker: Broker) -> None:
    await write(broker, *(b"%d" % n for n in range(6)))
    consumer = ours(
        broker, group_id="g", enable_auto_commit=False, heartbeat_interval_ms=100
    )

    class Listener(ConsumerRebalanceListener):
        async def on_partitions_revoked(self, revoked: Any) -> None:
            if revoked:
                await consumer.commit()

        def on_partitions_assigned(self, assigned: Any) -> None:
            pass

    consumer.subscribe(["t"], listener=Listener())
    async with consumer:
        assert isinstance(await consumer.getone(ZERO), ConsumerRecord)
        assert isinstance(await consumer.getone(ONE), ConsumerRecord)

        async def read() -> None:
            async with asyncio.timeout(20):
                while len(consumer.assignment()) != 1:
                    await consumer.getmany(timeout_ms=20, max_records=1)

        reading = asyncio.create_task(read())
        async with ours(broker, "t", group_id="g") as other:
            await reading
            (tp,) = other.assignment()
            assert (await other.committed(tp) or 0) >= 1
            assert await other.position(tp) == await other.committed(tp)


async def test_row_a_consumer_that_is_not_started(broker: Broker) -> None:
    consumer = ours(broker, "t", group_id="g")
    for call in (consumer.getone, consumer.getmany, consumer.topics):
        with pytest.raises((errors.IllegalStateError, errors.NodeNotReadyError)):
            await call()
    with pytest.raises(errors.IllegalStateError):
        consumer.seek(ZERO, 0)
    with pytest.raises(errors.IllegalStateError):
        consumer.pause(ZERO)
    await consumer.stop()


async def test_row_a_consumer_that_is_stopped_has_no_partitions(broker: Broker) -> None:
    consumer = ours(broker, "t", group_id="g")
    await consumer.start()
    await consumer.stop()
    assert not consumer.assignment()
    assert not consumer.paused()
    with pytest.raises(errors.IllegalStateError):
        await consumer.position(ZERO)
    with pytest.raises(errors.ConsumerStoppedError):
        await consumer.commit()
    with pytest.raises(errors.ConsumerStoppedError):
        await consumer.committed(ZERO)
    with pytest.raises(errors.IllegalStateError):
        consumer.subscribe(["u"])
    consumer.unsubscribe()
    await consumer.stop()


async def test_row_start_waits_for_the_listener(broker: Broker) -> None:
    told = asyncio.Event()

    class Slow(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked: object) -> None: ...

        async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
            await asyncio.sleep(0.01)
            told.set()

    consumer = ours(broker, group_id="g")
    consumer.subscribe(["t"], listener=Slow())
    async with consumer:
        assert told.is_set()


async def test_row_commits_have_a_time_limit(broker: Broker) -> None:
    async with ours(broker, "t", group_id="g", request_timeout_ms=300) as consumer:
        broker.faults.on("OffsetCommit", drop())
        broker.faults.on("OffsetFetch", drop())
        with pytest.raises(errors.RequestTimedOutError):
            await consumer.commit({ZERO: 1})
        with pytest.raises(errors.RequestTimedOutError):
            await consumer.committed(ZERO)
        broker.faults.clear()


async def test_row_negative_offsets_are_not_committed(broker: Broker) -> None:
    async with ours(broker, "t", group_id="g") as consumer:
        for offset in (-1, -5, 2**63):
            with pytest.raises(ValueError, match="offset"):
                await consumer.commit({ZERO: offset})
        assert await consumer.committed(ZERO) is None


async def test_row_seek_to_committed_goes_to_zero_too(broker: Broker) -> None:
    await write(broker, b"0", b"1", partition=0)
    async with ours(broker, "t", group_id="g", enable_auto_commit=False) as consumer:
        await consumer.commit({ZERO: 0})
        assert (await consumer.getone(ZERO)).offset == 0
        assert await consumer.seek_to_committed(ZERO) == {ZERO: 0}
        assert (await consumer.getone(ZERO)).offset == 0


async def test_row_a_partition_that_does_not_exist(broker: Broker) -> None:
    async with ours(broker, request_timeout_ms=500) as consumer:
        consumer.assign([TopicPartition("t", 9)])
        with pytest.raises(errors.UnknownTopicOrPartitionError):
            await consumer.getone()


async def test_row_records_cannot_be_changed(broker: Broker) -> None:
    await write(broker, b"0")
    async with ours(broker, "t") as consumer:
        record = await consumer.getone()
    with pytest.raises(AttributeError):
        record.value = b"1"
    assert replace(record, value=b"1").value == b"1"
    made = ConsumerRecord(
        topic="t",
        partition=0,
        offset=0,
        timestamp=record.timestamp,
        timestamp_type=0,
        key=None,
        value=b"0",
        checksum=None,
        serialized_key_size=-1,
        serialized_value_size=1,
        headers=(),
    )
    assert made == record
    assert record == made
    assert replace(made, value=b"1") != record
    assert record != replace(made, offset=1)
    assert made != 1
