"""`AIOKafkaProducer` on the embedded broker, and aiokafka's in the same programs."""

from __future__ import annotations

import asyncio
import gc
import pickle
import warnings
from collections.abc import AsyncIterator
from types import MethodType
from typing import Any

import pytest
import pytest_asyncio

import kafkaio
from kafkaio import ErrorCode
from kafkaio._machines.partitioner import key_partition
from kafkaio.aiokafka import AIOKafkaProducer, errors
from kafkaio.testing import Broker, Fault, disconnect_before_write, drop, error
from tests.unit.aiokafka.side import SIDES, Side, side

TOPIC_AUTHORIZATION_FAILED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest_asyncio.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(topics={"t": 3}, auto_create_topics=False) as broker:
        yield broker


@pytest.fixture
def it(name: str) -> Side:
    return side(name)


async def written(broker: Broker, topic: str = "t") -> list[kafkaio.Record]:
    """Return what readers of committed records see, by partition."""
    places = [kafkaio.TopicPartition(topic, number) for number in range(3)]
    async with kafkaio.Consumer(
        broker.bootstrap_servers,
        assign=places,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    ) as consumer:
        ends = await consumer.end_offsets(places)
        records: list[kafkaio.Record] = []
        while [tp for tp, end in ends.items() if await consumer.position(tp) < end]:
            records += (await consumer.poll(timeout=0.1)).records
    return sorted(records, key=lambda record: (record.partition, record.offset))


async def values(broker: Broker) -> list[bytes | None]:
    return [record.value for record in await written(broker)]


# ---- sending -------------------------------------------------------------------------


@SIDES
async def test_send_returns_a_future_of_asyncio(it: Side, broker: Broker) -> None:
    called: list[asyncio.Future[Any]] = []
    async with it.producer(broker.bootstrap_servers) as producer:
        futures = [await producer.send("t", b"%d" % n, partition=1) for n in range(5)]
        assert all(isinstance(each, asyncio.Future) for each in futures)
        futures[0].add_done_callback(called.append)
        done, pending = await asyncio.wait(futures, timeout=10)
        assert (len(done), pending) == (5, set())
        assert [each.result().offset for each in futures] == [0, 1, 2, 3, 4]
        assert called == [futures[0]]
        assert await asyncio.shield(futures[4]) == futures[4].result()


@SIDES
async def test_where_a_record_was_written(it: Side, broker: Broker) -> None:
    async with it.producer(broker.bootstrap_servers) as producer:
        at = await producer.send_and_wait(
            "t", b"v", key=b"k", timestamp_ms=123_123_123, headers=[("h", b"1")]
        )
        sent = await producer.send("t", b"v", b"k", timestamp_ms=5)
        later = await sent
    assert isinstance(at, it.top.structs.RecordMetadata)
    assert (at.topic, at.partition, at.offset) == ("t", 2, 0)
    assert at.topic_partition == it.top.TopicPartition("t", 2)
    assert (at.timestamp, at.timestamp_type) == (123_123_123, 0)
    assert (later.offset, later.timestamp) == (1, 5)
    (first, _) = await written(broker)
    assert (first.key, first.value, first.headers) == (b"k", b"v", (("h", b"1"),))


@SIDES
@pytest.mark.parametrize("how", ["a class", "an instrumentation", "a test"])
async def test_whoever_replaces_send_sees_send_and_wait(
    it: Side, broker: Broker, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[object, ...]] = []
    kind = it.top.AIOKafkaProducer
    before = kind.send

    async def send(self: Any, *given: Any) -> Any:
        seen.append(given)
        return await before(self, *given)

    if how == "a class":
        kind = type("Own", (kind,), {"send": send})
    elif how == "an instrumentation":
        monkeypatch.setattr(kind, "send", send)
    async with kind(bootstrap_servers=broker.bootstrap_servers) as producer:
        if how == "a test":
            monkeypatch.setattr(producer, "send", MethodType(send, producer))
        at = await producer.send_and_wait("t", b"v", partition=1, headers=[("h", b"1")])
    assert at.partition == 1
    assert seen == [("t", b"v", None, 1, None, [("h", b"1")])]


@SIDES
async def test_an_instrumentation_asks_before_the_first_record(
    it: Side, broker: Broker
) -> None:
    async with it.producer(broker.bootstrap_servers) as producer:
        assert await producer.client._wait_on_metadata("t") == {0, 1, 2}
        wanted = producer._partition("t", None, b"k", b"v", b"k", b"v")
        assert (await producer.send_and_wait("t", b"v", key=b"k")).partition == wanted


@SIDES
async def test_the_brokers_time_is_told(it: Side, broker: Broker) -> None:
    async with kafkaio.Admin(broker.bootstrap_servers) as admin:
        stamped = {"message.timestamp.type": "LogAppendTime"}
        await admin.create_topics([kafkaio.NewTopic("stamped", 1, configs=stamped)])
    async with it.producer(broker.bootstrap_servers) as producer:
        at = await producer.send_and_wait("stamped", b"v", timestamp_ms=5)
        later = await (await producer.send("stamped", b"v"))
    assert (at.timestamp_type, later.timestamp_type) == (1, 1)
    assert at.timestamp > 5


@SIDES
async def test_flush_returns_when_the_futures_are_done(
    it: Side, broker: Broker
) -> None:
    async with it.producer(broker.bootstrap_servers, linger_ms=200) as producer:
        futures = [await producer.send("t", b"v") for _ in range(20)]
        assert not any(each.done() for each in futures)
        await producer.flush()
        assert all(each.done() for each in futures)
    assert all(each.result().topic == "t" for each in futures)


@SIDES
async def test_serializers_see_none(it: Side, broker: Broker) -> None:
    def dumps(given: object) -> bytes:
        return repr(given).encode()

    async with it.producer(
        broker.bootstrap_servers, key_serializer=dumps, value_serializer=dumps
    ) as producer:
        await producer.send_and_wait("t", {"a": 1})
        await producer.send_and_wait("t", None, key=7)
    records = await written(broker)
    assert {(each.key, each.value) for each in records} == {
        (b"None", b"{'a': 1}"),
        (b"7", b"None"),
    }


@SIDES
async def test_a_serializer_that_raises(it: Side, broker: Broker) -> None:
    def fail(given: object) -> bytes:
        raise LookupError(given)

    async with it.producer(broker.bootstrap_servers, value_serializer=fail) as producer:
        with pytest.raises(LookupError):
            await producer.send("t", b"v")
    assert await values(broker) == []


@SIDES
@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ({"value": None}, AssertionError),
        ({"value": b"v", "partition": 3}, AssertionError),
        ({"value": b"v", "partition": -1}, AssertionError),
        ({"value": "text"}, TypeError),
        ({"value": b"v", "key": 7}, TypeError),
        ({"value": b"v", "timestamp_ms": "now"}, TypeError),
    ],
    ids=str,
)
async def test_a_call_that_is_refused(
    it: Side, broker: Broker, call: dict[str, Any], kind: type[Exception]
) -> None:
    async with it.producer(broker.bootstrap_servers) as producer:
        with pytest.raises(kind):
            await producer.send("t", **call)
        with pytest.raises(kind):
            await producer.send_and_wait("t", **call)
    assert await values(broker) == []


@SIDES
async def test_a_fraction_of_a_millisecond_is_cut(it: Side, broker: Broker) -> None:
    async with it.producer(broker.bootstrap_servers) as producer:
        at = await producer.send_and_wait("t", b"v", timestamp_ms=1_700_000_000_000.9)
    assert at.timestamp == 1_700_000_000_000


@SIDES
async def test_a_record_that_is_too_large(it: Side, broker: Broker) -> None:
    async with it.producer(
        broker.bootstrap_servers, max_request_size=1_000
    ) as producer:
        with pytest.raises(it.errors.MessageSizeTooLargeError):
            await producer.send("t", b"x" * 2_000)
        await producer.send_and_wait("t", b"x" * 500)


@SIDES
async def test_a_record_that_the_topic_does_not_take(it: Side, broker: Broker) -> None:
    async with kafkaio.Admin(broker.bootstrap_servers) as admin:
        small = {"max.message.bytes": "500"}
        await admin.create_topics([kafkaio.NewTopic("small", 1, configs=small)])
    async with it.producer(broker.bootstrap_servers) as producer:
        with pytest.raises(it.errors.MessageSizeTooLargeError):
            await producer.send_and_wait("small", b"x" * 2_000)


@SIDES
async def test_a_topic_that_does_not_exist(it: Side, broker: Broker) -> None:
    async with it.producer(
        broker.bootstrap_servers, request_timeout_ms=300
    ) as producer:
        with pytest.raises(it.errors.UnknownTopicOrPartitionError):
            await producer.send("none", b"v")
        with pytest.raises(it.errors.UnknownTopicOrPartitionError):
            await producer.partitions_for("none")


@SIDES
async def test_partitions_are_a_set(it: Side, broker: Broker) -> None:
    async with it.producer(broker.bootstrap_servers) as producer:
        assert await producer.partitions_for("t") == {0, 1, 2}


@SIDES
async def test_without_acknowledgement_the_result_is_none(
    it: Side, broker: Broker
) -> None:
    async with it.producer(broker.bootstrap_servers, acks=0) as producer:
        assert await producer.send_and_wait("t", b"v") is None
        assert await (await producer.send("t", b"v")) is None
        batch = producer.create_batch()
        batch.append(timestamp=None, key=None, value=b"v")
        assert await (await producer.send_batch(batch, "t", partition=0)) is None


@SIDES
async def test_the_partitioner_gets_what_aiokafkas_gets(
    it: Side, broker: Broker
) -> None:
    calls: list[tuple[bytes | None, list[int], list[int]]] = []

    def last(key: bytes | None, every: list[int], available: list[int]) -> int:
        calls.append((key, sorted(every), sorted(available)))
        return max(every)

    async with it.producer(
        broker.bootstrap_servers, partitioner=last, key_serializer=str.encode
    ) as producer:
        at = await producer.send_and_wait("t", b"v", key="k")
        named = await producer.send_and_wait("t", b"v", key="k", partition=0)
    assert (at.partition, named.partition) == (2, 0)
    assert calls == [(b"k", [0, 1, 2], [0, 1, 2])]


@SIDES
async def test_a_keys_partition_is_javas(it: Side, broker: Broker) -> None:
    async with it.producer(broker.bootstrap_servers) as producer:
        places = [
            (await producer.send_and_wait("t", b"v", key=b"%d" % n)).partition
            for n in range(20)
        ]
        # Instrumentations ask for the partition before they send.
        key = b"7"
        assert producer._partition("t", None, key, b"v", key, b"v") == places[7]
        assert producer._partition("t", 1, key, b"v", key, b"v") == 1
        assert producer._partition("t", None, None, b"v", None, b"v") in {0, 1, 2}
    assert places == [key_partition(b"%d" % n, 3) for n in range(20)]


# ---- failures and cancellation -------------------------------------------------------


@SIDES
async def test_a_record_that_fails(it: Side, broker: Broker) -> None:
    broker.faults.on("Produce", error(TOPIC_AUTHORIZATION_FAILED, times=2))
    refused = it.errors.TopicAuthorizationFailedError
    async with it.producer(broker.bootstrap_servers) as producer:
        future = await producer.send("t", b"v")
        with pytest.raises(refused):
            await future
        assert type(future.exception()) is refused
        with pytest.raises(refused):
            await producer.send_and_wait("t", b"v")
        assert (await producer.send_and_wait("t", b"v")).offset == 0


@SIDES
async def test_records_of_a_batch_fail_by_exceptions_of_their_own(
    it: Side, broker: Broker
) -> None:
    broker.faults.on("Produce", error(TOPIC_AUTHORIZATION_FAILED, times=1))
    async with it.producer(broker.bootstrap_servers) as producer:
        first, second = [await producer.send("t", b"v", partition=0) for _ in range(2)]
        await asyncio.wait([first, second])
        assert first.exception() is not second.exception()
        assert first.exception().args == second.exception().args


@SIDES
async def test_an_error_that_nobody_reads_is_reported_by_asyncio(
    it: Side, broker: Broker
) -> None:
    reports: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: reports.append(context)
    )
    broker.faults.on("Produce", error(TOPIC_AUTHORIZATION_FAILED, times=1))
    async with it.producer(broker.bootstrap_servers) as producer:
        await producer.send("t", b"v")
        await producer.flush()
    gc.collect()
    (report,) = reports
    assert report["message"] == "Future exception was never retrieved"
    assert isinstance(report["exception"], it.errors.TopicAuthorizationFailedError)


async def test_such_an_error_is_not_reported_twice(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.faults.on("Produce", error(TOPIC_AUTHORIZATION_FAILED, times=1))
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers) as it:
        future = await it.send("t", b"v")
        assert future.cancel()
        await it.flush()
        del future
        gc.collect()
        await asyncio.sleep(0)
    assert "lost" not in caplog.text
    assert "TOPIC_AUTHORIZATION_FAILED" not in caplog.text


@SIDES
async def test_to_cancel_the_future_does_nothing_to_the_record(
    it: Side, broker: Broker
) -> None:
    async with it.producer(broker.bootstrap_servers, linger_ms=50) as producer:
        future = await producer.send("t", b"v")
        assert future.cancel()
        await producer.flush()
    assert await values(broker) == [b"v"]


@SIDES
async def test_to_cancel_who_waits_does_nothing_to_the_record(
    it: Side, broker: Broker
) -> None:
    async with it.producer(broker.bootstrap_servers, linger_ms=50) as producer:
        await producer.partitions_for("t")
        task = asyncio.create_task(producer.send_and_wait("t", b"v", partition=0))
        other = await producer.send("t", b"w", partition=0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await other
    assert b"w" in await values(broker)


@SIDES
@pytest.mark.parametrize("options", [{}, {"acks": "all"}, {"enable_idempotence": True}])
async def test_order_outlives_repeated_requests(
    it: Side, broker: Broker, options: dict[str, Any]
) -> None:
    broker.faults.on("Produce", disconnect_before_write(rate=0.3, seed=7))
    async with it.producer(
        broker.bootstrap_servers, max_batch_size=100, retry_backoff_ms=1, **options
    ) as producer:
        futures = [await producer.send("t", b"%d" % n, partition=0) for n in range(40)]
        offsets = [(await each).offset for each in futures]
    assert offsets == sorted(offsets)
    assert await values(broker) == [b"%d" % n for n in range(40)]


@SIDES
@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (drop(), "RequestTimedOutError"),
        (disconnect_before_write(), "KafkaConnectionError"),
        (error(ErrorCode.NOT_LEADER_OR_FOLLOWER), "NotLeaderForPartitionError"),
        (error(ErrorCode.NOT_ENOUGH_REPLICAS), "NotEnoughReplicasError"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_time_limit_is_what_failed_last(
    it: Side, broker: Broker, fault: Fault, kind: str
) -> None:
    broker.faults.on("Produce", fault)
    async with it.producer(
        broker.bootstrap_servers, request_timeout_ms=300
    ) as producer:
        with pytest.raises(getattr(it.errors, kind)) as caught:
            await producer.send_and_wait("t", b"v")
        broker.faults.clear()
    if it.is_ours:
        assert isinstance(caught.value, errors.KafkaTimeoutError)
        assert isinstance(caught.value, kafkaio.DeliveryTimeout)
        again = pickle.loads(pickle.dumps(caught.value))
        assert type(again) is type(caught.value)
        assert str(again) == str(caught.value)


@SIDES
async def test_records_that_are_too_large_together(it: Side, broker: Broker) -> None:
    """aiokafka refuses all of them."""
    async with kafkaio.Admin(broker.bootstrap_servers) as admin:
        small = {"max.message.bytes": "500"}
        await admin.create_topics([kafkaio.NewTopic("small", 1, configs=small)])
    async with it.producer(broker.bootstrap_servers, linger_ms=50) as producer:
        blocking = await producer.send("t", b"v")
        futures = [await producer.send("small", b"x" * 200) for _ in range(6)]
        await blocking
        await asyncio.wait(futures)
        if it.is_ours:
            assert [each.result().offset for each in futures] == [*range(6)]
        else:
            refused = it.errors.MessageSizeTooLargeError
            assert {type(each.exception()) for each in futures} == {refused}


# ---- batches -------------------------------------------------------------------------


@SIDES
async def test_a_batch_is_written(it: Side, broker: Broker) -> None:
    async with it.producer(
        broker.bootstrap_servers, value_serializer=str.encode
    ) as producer:
        await producer.send_and_wait("t", "before", partition=1)
        batch = producer.create_batch()
        for number in range(10):
            batch.append(timestamp=number, key=None, value=str(number))
        future = await producer.send_batch(batch, "t", partition=1)
        at = await future
        assert (at.topic, at.partition, at.offset) == ("t", 1, 1)
        assert at.topic_partition == it.top.TopicPartition("t", 1)
    records = (await written(broker))[1:]
    assert [record.value for record in records] == [b"%d" % n for n in range(10)]
    assert [record.timestamp for record in records] == [*range(10)]


@SIDES
async def test_a_batch_for_any_partition(it: Side, broker: Broker) -> None:
    """FastStream leaves it to the partitioner."""
    calls: list[bytes | None] = []

    def last(key: bytes | None, every: list[int], _available: list[int]) -> int:
        calls.append(key)
        return max(every)

    async with it.producer(broker.bootstrap_servers, partitioner=last) as producer:
        batch = producer.create_batch()
        batch.append(timestamp=None, key=b"k", value=b"v")
        at = await (await producer.send_batch(batch, "t", partition=None))
    assert (at.partition, calls) == (2, [None])


@SIDES
async def test_an_empty_batch_writes_nothing(it: Side, broker: Broker) -> None:
    async with it.producer(broker.bootstrap_servers) as producer:
        future = await producer.send_batch(producer.create_batch(), "t", partition=0)
        assert await future is None
    assert await values(broker) == []


@SIDES
async def test_a_batch_for_no_partition(it: Side, broker: Broker) -> None:
    async with it.producer(broker.bootstrap_servers) as producer:
        batch = producer.create_batch()
        batch.append(timestamp=None, key=None, value=b"v")
        with pytest.raises(AssertionError):
            await producer.send_batch(batch, "t", partition=9)


@SIDES
async def test_a_batch_that_fails(it: Side, broker: Broker) -> None:
    broker.faults.on("Produce", error(TOPIC_AUTHORIZATION_FAILED, times=1))
    async with it.producer(broker.bootstrap_servers) as producer:
        batch = producer.create_batch()
        for _ in range(3):
            batch.append(timestamp=None, key=None, value=b"v")
        with pytest.raises(it.errors.TopicAuthorizationFailedError):
            await (await producer.send_batch(batch, "t", partition=0))


@SIDES
async def test_batches_keep_their_order(it: Side, broker: Broker) -> None:
    async with it.producer(broker.bootstrap_servers) as producer:
        futures, wanted = [], []
        for first in range(0, 3_000, 300):
            batch = producer.create_batch()
            for number in range(first, first + 300):
                value = b"%d" % number
                assert batch.append(timestamp=None, key=None, value=value) is not None
                wanted.append(value)
            futures.append(await producer.send_batch(batch, "t", partition=0))
        offsets = [(await each).offset for each in futures]
    assert offsets == [*range(0, 3_000, 300)]
    assert await values(broker) == wanted


# ---- life ----------------------------------------------------------------------------


@SIDES
async def test_stop_sends_what_is_left(it: Side, broker: Broker) -> None:
    producer = it.producer(broker.bootstrap_servers, linger_ms=100)
    await producer.start()
    future = await producer.send("t", b"v")
    await producer.stop()
    assert producer._closed is True
    assert future.result().topic == "t"
    await producer.stop()
    await producer.flush()


@SIDES
async def test_stop_without_start(it: Side) -> None:
    producer = it.producer("127.0.0.1:1")
    await producer.stop()
    await producer.stop()
    assert producer._closed is True


@SIDES
async def test_a_stopped_producer_takes_nothing(it: Side, broker: Broker) -> None:
    producer = it.producer(broker.bootstrap_servers)
    await producer.start()
    await producer.send_and_wait("t", b"v")
    batch = producer.create_batch()
    await producer.stop()
    with pytest.raises(it.errors.ProducerClosed):
        await producer.send("t", b"v")
    with pytest.raises(it.errors.ProducerClosed):
        await producer.send_and_wait("t", b"v")
    with pytest.raises(it.errors.ProducerClosed):
        await producer.send_batch(batch, "t", partition=0)


@SIDES
async def test_the_context_stops_it_whatever_happens(it: Side, broker: Broker) -> None:
    producer = it.producer(broker.bootstrap_servers)

    async def fail() -> None:
        async with producer as entered:
            assert entered is producer
            raise LookupError

    with pytest.raises(LookupError):
        await fail()
    assert producer._closed is True


@SIDES
async def test_no_server_answers(it: Side) -> None:
    producer = it.producer("127.0.0.1:1", request_timeout_ms=300)
    with pytest.raises(it.errors.KafkaConnectionError):
        await producer.start()
    await producer.stop()


@SIDES
async def test_start_may_be_tried_again(it: Side) -> None:
    broker = Broker(topics={"t": 3})
    async with broker:
        servers = broker.bootstrap_servers
    producer = it.producer(servers, request_timeout_ms=300)
    with pytest.raises(it.errors.KafkaConnectionError):
        await producer.start()
    port = int(servers.rpartition(":")[2])
    async with Broker(topics={"t": 3}, port=port):
        await producer.start()
        await producer.send_and_wait("t", b"v")
        await producer.stop()


async def test_it_is_of_use_only_between_start_and_stop(broker: Broker) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    with pytest.raises(errors.IllegalStateError):
        await producer.send("t", b"v")
    with pytest.raises(errors.IllegalStateError):
        await producer.partitions_for("t")
    await producer.flush()
    await producer.start()
    await producer.start()
    await producer.stop()
    with pytest.raises(errors.ProducerClosed):
        await producer.start()


@SIDES
async def test_one_that_was_not_stopped_is_reported(it: Side, broker: Broker) -> None:
    reports: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: reports.append(context["message"]))
    producer = it.producer(broker.bootstrap_servers)
    await producer.start()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del producer
        gc.collect()
        messages = [str(each.message) for each in caught]
        for _ in range(5):
            # They refer to the producer, and those of its parts to these. The parts end
            # in the event loop.
            caught.clear()
            gc.collect()
            await asyncio.sleep(0)
    assert any("Unclosed AIOKafkaProducer" in each for each in messages)
    assert "Unclosed AIOKafkaProducer" in reports
