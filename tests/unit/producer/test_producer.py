"""The producer against scripted brokers, on a virtual clock."""

from __future__ import annotations

import asyncio
import gc
import inspect
import re
from contextlib import suppress
from pydoc import plain, render_doc
from typing import Any

import pytest

from kafkaio._client.client import Client
from kafkaio._config import ClientConfig, ProducerConfig
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._producer import Producer
from kafkaio._producer.bulk import DeliveriesFailed
from kafkaio._producer.delivery import Delivery
from kafkaio.errors import (
    AuthorizationError,
    BrokerError,
    BufferFull,
    ClosedError,
    ConfigurationError,
    DeliveryTimeout,
    InternalError,
    InvalidTopic,
    KafkaError,
    KafkaTimeout,
    RecordTooLarge,
    UnknownTopicOrPartition,
    UnsupportedVersion,
    UsageError,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.init_producer_id import InitProducerIdResponse
from kafkaio.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from kafkaio.types import NewRecord, RecordMetadata, TopicPartition
from tests.fakes.broker import DEFAULT, DISCONNECT, HANG, FakeCluster
from tests.unit.producer.broker_log import Logs
from tests.unit.producer.conftest import MakeProducer


def elapsed() -> float:
    return asyncio.get_running_loop().time()


class Heard:
    """An observer that remembers."""

    def __init__(self) -> None:
        self.lost: list[tuple[TopicPartition, BaseException, int]] = []
        self.failed: list[tuple[TopicPartition, BaseException, int]] = []
        self.sent: list[tuple[TopicPartition, int, int]] = []

    def delivery_lost(self, tp: TopicPartition, error: BaseException, n: int) -> None:
        self.lost.append((tp, error, n))

    def record_failed(self, tp: TopicPartition, error: BaseException, n: int) -> None:
        self.failed.append((tp, error, n))

    def batch_sent(self, tp: TopicPartition, records: int, size: int) -> None:
        self.sent.append((tp, records, size))


# ---- sending -------------------------------------------------------------------------


async def test_send_returns_where_the_record_was_written(
    make: MakeProducer, logs: Logs
) -> None:
    async with make() as producer:
        first = await producer.send("one", b"a", timestamp=5)
        second = await producer.send("one", b"b", timestamp=6)
    assert first == RecordMetadata("one", 0, 0, 5)
    assert second == RecordMetadata("one", 0, 1, 6)
    assert logs.values("one") == [b"a", b"b"]


async def test_a_record_arrives_as_it_was_sent(make: MakeProducer, logs: Logs) -> None:
    async with make() as producer:
        await producer.send(
            "orders",
            bytearray(b"v"),
            key=memoryview(b"k"),
            headers={"a": b"1", "b": None},
            timestamp=77,
            partition=2,
        )
        await producer.send(
            "orders", None, headers=[("a", bytearray(b"2"))], partition=2
        )
    one, two = logs.log("orders", 2).records
    assert (one.key, one.value, one.headers, one.timestamp) == (
        b"k",
        b"v",
        (("a", b"1"), ("b", None)),
        77,
    )
    assert (two.key, two.value, two.headers) == (None, None, (("a", b"2"),))
    assert two.timestamp > 1_600_000_000_000


async def test_keys_go_where_java_puts_them(make: MakeProducer, logs: Logs) -> None:
    async with make() as producer:
        metas = [await producer.send("orders", b"", key=key) for key in (b"abc", b"21")]
    assert [meta.partition for meta in metas] == [
        479470107 % 3,
        (-973932308 & 0x7FFFFFFF) % 3,
    ]


async def test_a_lone_send_does_not_wait_out_linger(make: MakeProducer) -> None:
    async with make(linger_ms=3_000) as producer:
        start = elapsed()
        for _ in range(5):
            await producer.send("one", b"a")
        assert elapsed() - start < 0.01


async def test_records_gather_while_something_is_in_flight(
    make: MakeProducer, cluster: FakeCluster, logs: Logs
) -> None:
    async with make(linger_ms=1_000) as producer:
        await producer.send("one", b"warm up")
        gate = cluster.hold(ApiKey.PRODUCE)
        first = producer.enqueue_nowait("one", b"0")
        await cluster.received(ApiKey.PRODUCE, 2)
        rest = [producer.enqueue_nowait("one", b"%d" % i) for i in range(1, 50)]
        await asyncio.sleep(0.5)
        assert len(cluster.logged(ApiKey.PRODUCE)) == 2
        cluster.reset(ApiKey.PRODUCE)
        cluster.on(ApiKey.PRODUCE, logs.produce)
        gate.release()
        assert [(await d).offset for d in [first, *rest]] == list(range(1, 51))
        assert len(logs.log("one").batches) == 3


async def test_linger_is_an_upper_bound_from_the_first_record(
    make: MakeProducer, cluster: FakeCluster
) -> None:
    async with make(linger_ms=200) as producer:
        await producer.send("one", b"warm up")
        gate = cluster.hold(ApiKey.PRODUCE)
        producer.enqueue_nowait("one", b"0")
        await cluster.received(ApiKey.PRODUCE, 2)
        start = elapsed()
        for _ in range(10):  # steady traffic must not push the end further away
            producer.enqueue_nowait("one", b"x")
            await asyncio.sleep(0.05)
            if producer.statistics().buffer.batches_on_wire == 2:
                break
        assert 0.15 < elapsed() - start < 0.3
        gate.release()


async def test_full_batches_do_not_wait_and_five_requests_are_under_way(
    make: MakeProducer, cluster: FakeCluster, logs: Logs
) -> None:
    async with make(linger_ms=60_000, batch_size=1_000) as producer:
        await producer.send("one", b"warm up")
        gate = cluster.hold(ApiKey.PRODUCE)
        deliveries = [producer.enqueue_nowait("one", b"x" * 400) for _ in range(30)]
        await asyncio.sleep(1)
        # The fake reads one request at a time, so the connection tells how many wait.
        assert producer.statistics().buffer.batches_on_wire == 5
        cluster.reset(ApiKey.PRODUCE)
        cluster.on(ApiKey.PRODUCE, logs.produce)
        gate.release()
        await producer.flush()
        assert [d.result().offset for d in deliveries] == list(range(1, 31))
    assert [b.base_sequence for b in logs.log("one").batches] == [0, *range(1, 31, 2)]


async def test_a_record_that_comes_alone_leaves_at_once(make: MakeProducer) -> None:
    def on_wire() -> int:
        return producer.statistics().buffer.batches_on_wire

    async with make(linger_ms=60_000) as producer:
        for _ in range(2):  # the first asks for metadata too
            await producer.send("one", b"alone")
        for _ in range(3):
            delivery = producer.enqueue_nowait("one", b"alone")
            assert on_wire() == 1
            assert (await delivery).offset >= 0
            assert on_wire() == 0


async def test_records_that_come_together_soon_leave_together(
    make: MakeProducer, logs: Logs
) -> None:
    async with make() as producer:
        for _ in range(3):
            await producer.send("one", b"alone")
        for _ in range(4):
            pair = [producer.enqueue_nowait("one", b"of a pair") for _ in range(2)]
            for delivery in pair:
                await delivery
        for _ in range(3):
            await producer.send("one", b"alone")
    counts = [batch.count for batch in logs.log("one").batches]
    # The first of them still went alone; from then on they were waited for.
    assert counts == [1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1]


async def test_one_request_per_broker_carries_all_its_partitions(
    make: MakeProducer, cluster: FakeCluster
) -> None:
    cluster.add_topic("wide", 9)
    async with make() as producer:
        await producer.partitions_for("wide")
        for partition in range(9):
            producer.enqueue_nowait("wide", b"v", partition=partition)
        await producer.flush()
    requests = cluster.requests(ProduceRequest)
    assert len(requests) == 3
    assert all(len(r.topic_data[0].partition_data) == 3 for r in requests)


async def test_a_request_keeps_to_its_size_and_takes_turns(
    make: MakeProducer, cluster: FakeCluster
) -> None:
    cluster.add_topic("wide", 9)
    async with make(max_request_size=2_500) as producer:
        await producer.partitions_for("wide")
        for partition in range(9):
            for _ in range(2):
                producer.enqueue_nowait("wide", b"v" * 600, partition=partition)
        await producer.flush()
    sizes = [
        sum(len(p.records or b"") for p in t.partition_data)  # type: ignore[arg-type]
        for r in cluster.requests(ProduceRequest)
        for t in r.topic_data
    ]
    assert len(sizes) > 3
    assert max(sizes) <= 2_500


async def test_a_topic_without_ids_is_produced_by_name(
    make: MakeProducer, cluster: FakeCluster, logs: Logs
) -> None:
    cluster.limit_version(ApiKey.METADATA, 9)
    async with make() as producer:
        await producer.send("one", b"v")
    assert cluster.logged(ApiKey.PRODUCE)[0].version == 12
    assert logs.values("one") == [b"v"]


async def test_topic_ids_are_used_where_they_are_known(
    make: MakeProducer, cluster: FakeCluster
) -> None:
    async with make() as producer:
        await producer.send("one", b"v")
    assert cluster.logged(ApiKey.PRODUCE)[0].version == 13


@pytest.mark.parametrize("acks", [1, "all"])
async def test_acks(make: MakeProducer, cluster: FakeCluster, acks: Any) -> None:
    async with make(acks=acks) as producer:
        assert (await producer.send("one", b"v")).offset == 0
    assert cluster.requests(ProduceRequest)[0].acks == (-1 if acks == "all" else 1)


async def test_without_acks_nothing_is_waited_for(
    make: MakeProducer, cluster: FakeCluster, logs: Logs
) -> None:
    async with make(acks=0) as producer:
        metas = [await producer.send("one", b"%d" % i) for i in range(20)]
        await cluster.received(ApiKey.PRODUCE, 20)
    assert {meta.offset for meta in metas} == {-1}
    assert logs.values("one") == [b"%d" % i for i in range(20)]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
async def test_codecs(make: MakeProducer, logs: Logs, codec: str) -> None:
    async with make(compression_type=codec) as producer:
        for i in range(100):
            producer.enqueue_nowait("one", b"value %d" % i)
        await producer.flush()
    assert logs.values("one") == [b"value %d" % i for i in range(100)]
    assert {b.compression.name.lower() for b in logs.log("one").batches} == {codec}


async def test_zstd_wants_a_broker_that_knows_it(
    make: MakeProducer, cluster: FakeCluster
) -> None:
    cluster.limit_version(ApiKey.PRODUCE, 6)
    async with make(compression_type="zstd") as producer:
        with pytest.raises(UnsupportedVersion, match="zstd"):
            await producer.send("one", b"v")


async def test_log_append_time_is_the_brokers(
    make: MakeProducer, cluster: FakeCluster
) -> None:
    def produce(
        node: object, header: object, request: ProduceRequest
    ) -> ProduceResponse:
        return answer_all(request, base_offset=7, log_append_time_ms=99)

    cluster.on(ApiKey.PRODUCE, produce)
    async with make() as producer:
        assert await producer.send("one", b"v") == RecordMetadata("one", 0, 7, 99)


def answer_all(request: ProduceRequest, **fields: Any) -> ProduceResponse:
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    PartitionProduceResponse(index=data.index, **fields)
                    for data in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )


# ---- arguments -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"topic": 5}, TypeError),
        ({"topic": ""}, ValueError),
        ({"value": "text"}, TypeError),
        ({"value": 5}, TypeError),
        ({"key": "text"}, TypeError),
        ({"headers": "text"}, TypeError),
        ({"headers": 5}, TypeError),
        ({"headers": [("a",)]}, TypeError),
        ({"headers": [b"ab"]}, TypeError),
        ({"headers": [(b"a", b"b")]}, TypeError),
        ({"headers": [("a", "b")]}, TypeError),
        ({"timestamp": 1.5}, TypeError),
        ({"timestamp": -1}, ValueError),
        ({"timestamp": 2**63 - 1}, ValueError),
        ({"timestamp": 2**63}, ValueError),
        ({"headers": [("\ud800", b"a")]}, ValueError),
        ({"partition": -1}, ValueError),
        ({"partition": True}, TypeError),
        ({"partition": "0"}, TypeError),
    ],
)
async def test_wrong_arguments_raise_before_anything_is_queued(
    make: MakeProducer, arguments: dict[str, Any], error: type[Exception]
) -> None:
    arguments = {"topic": "one", "value": b"v", **arguments}
    async with make() as producer:
        for _ in range(2):  # also when the topic is known and its batch is open
            with pytest.raises(error):
                await producer.send(**arguments)
            with pytest.raises(error):
                producer.enqueue_nowait(**arguments)
            assert producer.statistics().buffer.used_bytes == 0
            await producer.send("one", b"good")
            producer.enqueue_nowait("one", b"good")
            with pytest.raises(error):
                producer.enqueue_nowait(**arguments)
            await producer.flush()


async def test_serializers(make: MakeProducer, logs: Logs) -> None:
    def value(v: object) -> bytes | None:
        return str(v).encode() if v != "drop" else None

    async with make(
        value_serializer=value, key_serializer=lambda k: b"key"
    ) as producer:
        await producer.send("one", 12, key=object())
        await producer.send("one", None)
        await producer.send("one", "drop")
    assert [(r.key, r.value) for r in logs.log("one").records] == [
        (b"key", b"12"),
        (None, None),
        (None, None),
    ]


async def test_a_serializer_must_return_bytes(make: MakeProducer) -> None:
    async with make(value_serializer=str) as producer:
        with pytest.raises(TypeError, match="value must be bytes"):
            await producer.send("one", 12)


async def test_a_custom_partitioner_decides(make: MakeProducer, logs: Logs) -> None:
    asked = []

    def last(topic: str, key: Any, value: Any, count: int) -> int:
        asked.append((topic, key, value, count))
        return count - 1

    async with make(partitioner=last) as producer:
        assert (await producer.send("orders", b"v", key=b"k")).partition == 2
        assert (await producer.send("orders", b"v", partition=0)).partition == 0
    assert asked == [("orders", b"k", b"v", 3)]


async def test_a_custom_partitioner_may_send(make: MakeProducer, logs: Logs) -> None:
    written: list[Delivery] = []

    def logging(topic: str, *_: object) -> int:
        if topic == "orders":
            written.append(producer.enqueue_nowait("one", b"to a topic new here"))
        return 0

    async with make(partitioner=logging) as producer:
        await producer.send("orders", b"v")  # designated when metadata comes
        await written[0]


async def test_a_partitioner_cannot_cancel_the_producer(
    make: MakeProducer, logs: Logs
) -> None:
    asked: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    asked.cancel()

    def asking(topic: str, key: bytes | None, *_: object) -> int:
        return asked.result() if key == b"ask" else 0

    async with make(partitioner=asking) as producer:
        # First while the metadata is on its way, then at once.
        for _ in range(2):
            sent = await asyncio.gather(
                producer.send("one", b"before"),
                producer.send("one", b"v", key=b"ask"),
                producer.send("one", b"after"),
                return_exceptions=True,
            )
            assert isinstance(sent[1], KafkaError)
            assert isinstance(sent[1].__cause__, asyncio.CancelledError)
    assert logs.values("one") == [b"before", b"after"] * 2


async def test_a_custom_partitioner_cannot_leave_the_topic(make: MakeProducer) -> None:
    async with make(partitioner=lambda *_: 9) as producer:
        with pytest.raises(ValueError, match="partitioner returned 9"):
            await producer.send("one", b"v")  # designated when metadata comes
        with pytest.raises(ValueError, match="partitioner returned 9"):
            producer.enqueue_nowait("one", b"v")
        assert producer.statistics().buffer.used_bytes == 0


# ---- deliveries ----------------------------------------------------------------------


async def test_a_delivery_is_awaited_once_often_or_never(make: MakeProducer) -> None:
    async with make() as producer:
        delivery = await producer.enqueue("one", b"v")
        assert not delivery.is_done
        assert repr(delivery) == "<Delivery one on its way>"
        with pytest.raises(UsageError):
            delivery.result()
        with pytest.raises(UsageError):
            delivery.exception()
        assert await delivery == await delivery == delivery.result()
        assert delivery.is_done
        assert delivery.exception() is None
        assert repr(delivery) == "<Delivery one-0 done, offset 0>"
        await producer.enqueue("one", b"never awaited")


async def test_cancelling_one_awaiter_harms_no_other(
    make: MakeProducer, cluster: FakeCluster, logs: Logs
) -> None:
    async with make() as producer:
        await producer.send("one", b"warm up")
        gate = cluster.hold(ApiKey.PRODUCE)
        delivery = producer.enqueue_nowait("one", b"v")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await delivery

        async def wait(delivery: Delivery) -> RecordMetadata:
            return await delivery

        tasks = [asyncio.create_task(wait(delivery)) for _ in range(3)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.sleep(0)
        gate.release()
        cluster.reset(ApiKey.PRODUCE)
        cluster.on(ApiKey.PRODUCE, logs.produce)
        gate.release()
        assert (await tasks[0]).offset == (await tasks[2]).offset == 1
        assert tasks[1].cancelled()


async def test_a_failure_that_nobody_awaited_is_reported_once_per_batch(
    make: MakeProducer, logs: Logs
) -> None:
    heard = Heard()
    logs.refuse = lambda *_: ErrorCode.TOPIC_AUTHORIZATION_FAILED
    async with make(heard) as producer:
        await producer.partitions_for("one")
        deliveries = [producer.enqueue_nowait("one", b"v") for _ in range(5)]
        with pytest.raises(AuthorizationError):
            await deliveries[0]
        assert isinstance(deliveries[1].exception(), AuthorizationError)
        assert "AuthorizationError" in repr(deliveries[2])
        del deliveries
        gc.collect()
    ((tp, error, count),) = heard.lost
    assert (tp, count) == (TopicPartition("one", 0), 3)
    assert isinstance(error, AuthorizationError)
    assert [(tp, count) for tp, _, count in heard.failed] == [(tp, 5)]


async def test_awaited_failures_are_not_reported_as_lost(
    make: MakeProducer, logs: Logs
) -> None:
    heard = Heard()
    logs.refuse = lambda *_: ErrorCode.TOPIC_AUTHORIZATION_FAILED
    async with make(heard) as producer:
        with pytest.raises(AuthorizationError, match="one-0"):
            await producer.send("one", b"v")
        gc.collect()
    assert heard.lost == []


# ---- several at once -----------------------------------------------------------------


async def test_send_many(make: MakeProducer, logs: Logs) -> None:
    async with make() as producer:
        metas = await producer.send_many(
            "orders",
            [
                NewRecord(b"a", partition=1, timestamp=3, headers={"h": b"1"}),
                NewRecord(b"b", key=b"k", partition=1),
                NewRecord(None, partition=0),
            ],
        )
        assert await producer.send_many("orders", []) == []
        assert len(await producer.send_many("orders", (b"x", None))) == 2
    assert [(m.partition, m.offset) for m in metas] == [(1, 0), (1, 1), (0, 0)]
    assert logs.log("orders", 1).records[0].headers == (("h", b"1"),)


async def test_send_many_checks_all_before_it_takes_in_one(make: MakeProducer) -> None:
    async with make() as producer:
        with pytest.raises(TypeError):
            await producer.send_many("one", [b"a", "b"])
        with pytest.raises(TypeError, match="sequence"):
            await producer.send_many("one", b"abc")
        with pytest.raises(RecordTooLarge):
            await producer.send_many("one", [b"a", b"x" * (2 << 20)])
        for bad in ({"timestamp": 2**63 - 1}, {"headers": [("\ud800", b"")]}):
            with pytest.raises(ValueError, match=r"timestamp|Unicode"):
                await producer.send_many("one", [b"a", NewRecord(b"b", **bad)])
        assert producer.statistics().buffer.used_bytes == 0


async def test_send_many_says_which_failed(make: MakeProducer, logs: Logs) -> None:
    async with make() as producer:
        await producer.partitions_for("one")
        with pytest.raises(DeliveriesFailed) as caught:
            await producer.send_many("one", [b"a", b"POISON", b"c", b"POISON"])
    group = caught.value
    assert sorted(group.failures) == [1, 3]
    assert {i: m.offset for i, m in group.delivered.items()} == {0: 0, 2: 1}
    assert "2 of 4 records failed (index 1, 3)" in str(group)
    part = group.subgroup(lambda e: e is group.failures[1])
    assert isinstance(part, DeliveriesFailed)
    assert list(part.failures) == [1]
    assert logs.values("one") == [b"a", b"c"]


async def test_send_many_larger_than_the_buffer(make: MakeProducer, logs: Logs) -> None:
    async with make(buffer_memory=20_000, batch_size=2_000) as producer:
        metas = await producer.send_many("one", [b"x" * 500] * 200)
    assert [m.offset for m in metas] == list(range(200))


# ---- back-pressure -------------------------------------------------------------------


def test_enqueue_nowait_is_a_method_like_the_others() -> None:
    method = Producer.enqueue_nowait
    signature = inspect.signature(method)
    assert signature == inspect.signature(Producer.enqueue).replace(
        return_annotation="Delivery"
    )
    assert list(signature.parameters) == [
        *("self", "topic", "value", "key", "headers", "timestamp", "partition")
    ]
    assert (method.__name__, method.__module__) == (
        *("enqueue_nowait", "kafkaio._producer.producer"),
    )
    producer = Producer()
    assert producer.enqueue_nowait.__self__ is producer
    assert "enqueue_nowait" not in vars(producer)
    assert "or raise BufferFull" in plain(render_doc(producer.enqueue_nowait))
    # From Python 3.13 on, each parameter has a line of its own.
    text = " ".join(plain(render_doc(Producer)).replace("|", " ").split())
    assert re.search(r"enqueue_nowait\( ?self, topic: 'str ", text)


async def test_a_subclass_overrides_enqueue_nowait(
    cluster: FakeCluster, logs: Logs
) -> None:
    class Tagging(Producer):
        tagged = 0

        def enqueue_nowait(self, topic: str, value: object, **options: Any) -> Delivery:
            self.tagged += 1
            assert isinstance(value, bytes)
            return super().enqueue_nowait(topic, b"tagged " + value, **options)

    config = ProducerConfig.of(cluster.bootstrap, {})
    async with Tagging.from_config(config, dial=cluster.dial) as producer:
        await producer.enqueue_nowait("one", b"0")
        deliveries = [producer.enqueue_nowait("one", b"%d" % n) for n in range(1, 9)]
        for delivery in deliveries:
            await delivery
        assert producer.tagged == 9
    assert logs.values("one") == [b"tagged %d" % n for n in range(9)]


async def test_enqueue_waits_for_room_first_come_first_served(
    make: MakeProducer, cluster: FakeCluster, logs: Logs
) -> None:
    async with make(buffer_memory=3_000, batch_size=1_000) as producer:
        await producer.partitions_for("one")
        gate = cluster.hold(ApiKey.PRODUCE)
        order: list[int] = []

        async def enqueue(i: int) -> None:
            await producer.enqueue("one", b"%03d" % i + b"x" * 600)
            order.append(i)

        tasks = [asyncio.create_task(enqueue(i)) for i in range(12)]
        await asyncio.sleep(1)
        assert len(order) < 6
        assert producer.statistics().waiting_for_room == 12 - len(order)
        assert producer.statistics().buffer.used_bytes <= 3_000
        with pytest.raises(BufferFull):
            producer.enqueue_nowait("one", b"")
        cluster.reset(ApiKey.PRODUCE)
        cluster.on(ApiKey.PRODUCE, logs.produce)
        gate.release()
        await asyncio.gather(*tasks)
        await producer.flush()
    assert order == list(range(12))
    assert [int(v[:3]) for v in logs.values("one")] == order


async def test_room_that_sending_alone_makes_is_given_out(
    make: MakeProducer, logs: Logs
) -> None:
    # With acks=0 there is no answer after which those who wait could be looked at.
    async with make(acks=0, enable_idempotence=False, buffer_memory=200) as producer:
        for number in range(3):  # a connection that opens would be news, too
            await producer.send("orders", b"first", partition=number)
        await asyncio.sleep(1)
        start = elapsed()
        await asyncio.gather(
            *(producer.send("orders", b"v" * 20, partition=n % 3) for n in range(9))
        )
        assert elapsed() - start < 1
    assert [len(logs.log("orders", n).values) for n in range(3)] == [4] * 3


async def test_without_acks_records_wait_in_the_buffer_for_a_broker_that_reads_nothing(
    make: MakeProducer, cluster: FakeCluster, logs: Logs
) -> None:
    memory = 4_000_000
    async with make(acks=0, buffer_memory=memory, max_block_ms=500) as producer:
        for partition in (0, 1):
            await producer.send("orders", b"first", partition=partition)
        cluster.deafen(0)
        for _ in range(60):  # 6 MB: more than the buffer has
            with suppress(KafkaTimeout):
                await producer.enqueue("orders", b"v" * 100_000, partition=0)
        connections = producer._cluster.statistics().connections
        unsent = sum(one.bytes_unsent for one in connections)
        assert 0 < unsent < producer.statistics().buffer.used_bytes < memory
        await producer.send("orders", b"next", partition=1)
        with pytest.raises(KafkaTimeout, match="on the wire"):
            await producer.flush(timeout=0.1)
        cluster.flow(0)
        await producer.flush()
    values = logs.values("orders", 0)
    assert len(values) == 1 + 60 - producer.statistics().room_timeouts
    assert logs.values("orders", 1) == [b"first", b"next"]


async def test_without_acks_a_broker_that_reads_nothing_is_left(
    make: MakeProducer, cluster: FakeCluster, logs: Logs
) -> None:
    async with make(acks=0) as producer:
        await producer.send("one", b"first")
        cluster.deafen(0)
        start = elapsed()
        await producer.send("one", b"next")  # again, on another connection
        # The longest throttle, and request_timeout_ms.
        assert elapsed() - start == pytest.approx(60 + 30, abs=0.2)
        assert producer.statistics().buffer.used_bytes == 0
    assert logs.values("one") == [b"first", b"next"]


async def test_without_acks_records_expire_that_a_broker_does_not_read(
    make: MakeProducer, cluster: FakeCluster
) -> None:
    limits = {"request_timeout_ms": 1000, "delivery_timeout_ms": 1000, "linger_ms": 0}
    async with make(acks=0, **limits) as producer:
        await producer.send("one", b"first")
        cluster.deafen(0)
        with pytest.raises(DeliveryTimeout, match=r"has not taken \d+ bytes"):
            await producer.send("one", b"next")


async def test_requests_may_wait_for_each_other(
    make: MakeProducer, cluster: FakeCluster, logs: Logs
) -> None:
    """The broker, or the way to it, is slow, and yet goes on."""

    async def slow(*_: object) -> Any:
        await asyncio.sleep(0.7)
        return DEFAULT

    heard = Heard()
    async with make(heard, request_timeout_ms=1_000, batch_size=1) as producer:
        await producer.send("one", b"first")
        cluster.on(ApiKey.PRODUCE, slow)
        start = elapsed()
        sent = [producer.enqueue_nowait("one", b"%d" % n) for n in range(10)]
        assert [(await each).offset for each in sent] == [*range(1, 11)]
        assert elapsed() - start == pytest.approx(7.0, abs=0.1)
        # One that hangs is found out as soon as before.
        cluster.on(ApiKey.PRODUCE, HANG, times=1)
        await producer.send("one", b"last")
        assert elapsed() - start == pytest.approx(7.0 + 1.0 + 0.7, abs=0.2)
    assert len(cluster.requests(ProduceRequest)) == 1 + 10 + 2
    assert len(logs.values("one")) == 12


async def test_waiting_for_room_ends_after_max_block(
    make: MakeProducer, cluster: FakeCluster
) -> None:
    async with make(buffer_memory=2_000, max_block_ms=500) as producer:
        await producer.partitions_for("one")
        cluster.on(ApiKey.PRODUCE, HANG)
        producer.enqueue_nowait("one", b"x" * 1_500)
        start = elapsed()
        with pytest.raises(KafkaTimeout, match="max_block_ms=500"):
            await producer.enqueue("one", b"x" * 1_500)
        assert elapsed() - start == pytest.approx(0.5, abs=0.01)
        assert producer.statistics().waiting_for_room == 0
        await producer.close(timeout=0)


async def test_a_cancelled_wait_takes_nothing_in(
    make: MakeProducer, cluster: FakeCluster, logs: Logs
) -> None:
    async with make(buffer_memory=2_000, batch_size=500) as producer:
        await producer.partitions_for("one")
        gate = cluster.hold(ApiKey.PRODUCE)
        producer.enqueue_nowait("one", b"0" * 1_500)
        tasks = [
            asyncio.create_task(producer.enqueue("one", b"%d" % i * 1_000))
            for i in range(1, 5)
        ]
        await asyncio.sleep(1)
        tasks[1].cancel()
        cluster.reset(ApiKey.PRODUCE)
        cluster.on(ApiKey.PRODUCE, logs.produce)
        gate.release()
        await asyncio.gather(*tasks, return_exceptions=True)
        await producer.flush()
        assert producer.statistics().buffer.used_bytes == 0
    assert [v[:1] for v in logs.values("one")] == [b"0", b"1", b"3", b"4"]


async def test_room_granted_to_one_who_was_cancelled_goes_to_the_next(
    make: MakeProducer, cluster: FakeCluster, logs: Logs
) -> None:
    async with make(buffer_memory=2_000) as producer:
        await producer.partitions_for("one")
        gate = cluster.hold(ApiKey.PRODUCE)
        first = producer.enqueue_nowait("one", b"0" * 1_500)
        tasks = [
            asyncio.create_task(producer.enqueue("one", b"%d" % i * 1_500))
            for i in range(1, 3)
        ]
        await cluster.received(ApiKey.PRODUCE)
        cluster.reset(ApiKey.PRODUCE)
        cluster.on(ApiKey.PRODUCE, logs.produce)
        gate.release()
        while not first.is_done:  # noqa: ASYNC110 - turn by turn, to hit the race
            await asyncio.sleep(0)
        tasks[0].cancel()  # its room is granted by now, but it has not run
        assert isinstance(
            (await asyncio.gather(*tasks, return_exceptions=True))[0],
            asyncio.CancelledError,
        )
        await producer.flush()
        assert producer.statistics().buffer.used_bytes == 0
    assert [v[:1] for v in logs.values("one")] == [b"0", b"2"]


async def test_a_record_that_can_never_fit_fails_at_once(make: MakeProducer) -> None:
    async with make(max_request_size=1_000) as producer:
        with pytest.raises(RecordTooLarge, match="max_request_size=1000"):
            await producer.send("one", b"x" * 1_000)
        with pytest.raises(RecordTooLarge):
            producer.enqueue_nowait("one", b"x" * 1_000)


async def test_a_tight_loop_of_enqueues_lets_the_sender_work(
    make: MakeProducer, cluster: FakeCluster
) -> None:
    async with make(batch_size=1_000) as producer:
        await producer.send("one", b"")
        for _ in range(200):
            await producer.enqueue("one", b"x" * 2_000)
        assert len(cluster.logged(ApiKey.PRODUCE)) > 3


async def test_batches_grow_while_all_requests_are_out(
    make: MakeProducer, cluster: FakeCluster, logs: Logs
) -> None:
    heard = Heard()
    values = [b"%06d" % number + b"x" * 1_000 for number in range(3_000)]
    async with make(heard) as producer:
        await producer.send("one", b"")
        cluster.delay(ApiKey.PRODUCE, 0.02)
        sent = [await producer.enqueue("one", value) for value in values]
        await producer.flush()
        assert [d.result().offset for d in sent] == list(range(1, 3_001))
    assert logs.values("one") == [b"", *values]
    sizes = [size for _, _, size in heard.sent]
    assert len(sizes) < 15
    assert 900_000 < max(sizes) <= 1_000_000


@pytest.mark.parametrize(
    ("options", "largest"),
    [({"batch_size": 20_000}, 20_000), ({"max_request_size": 50_000}, 50_000)],
)
async def test_what_is_asked_for_bounds_the_batches(
    make: MakeProducer, cluster: FakeCluster, options: Any, largest: int
) -> None:
    heard = Heard()
    async with make(heard, **options) as producer:
        await producer.send("one", b"")
        cluster.delay(ApiKey.PRODUCE, 0.02)
        for _ in range(500):
            await producer.enqueue("one", b"x" * 1_000)
    sizes = [size for _, _, size in heard.sent]
    assert 0.9 * largest < max(sizes) <= largest


async def test_the_loop_has_a_turn_between_compressed_requests(
    make: MakeProducer, cluster: FakeCluster
) -> None:
    turns: list[int] = []
    turn = 0

    class Sent:
        def batch_sent(self, tp: TopicPartition, records: int, size: int) -> None:
            turns.append(turn)

    async with make(Sent(), compression_type="lz4") as producer:
        await producer.send("one", b"")
        turns.clear()
        for _ in range(2_500):
            producer.enqueue_nowait("one", b"x" * 1_000)
        while len(turns) < 3:
            await asyncio.sleep(0)
            turn += 1
        await producer.flush()
    assert len(set(turns)) == len(turns)


# ---- metadata ------------------------------------------------------------------------


async def test_records_for_an_unknown_topic_wait_in_order_and_hold_up_nobody(
    make: MakeProducer, cluster: FakeCluster, logs: Logs
) -> None:
    async with make(max_block_ms=60_000) as producer:
        waiting = [producer.enqueue_nowait("new", b"%d" % i) for i in range(10)]
        assert (await producer.send("one", b"v")).offset == 0
        cluster.add_topic("new", 1)
        assert [(await d).offset for d in waiting] == list(range(10))
    assert logs.values("new") == [b"%d" % i for i in range(10)]


async def test_an_unknown_topic_fails_after_max_block(make: MakeProducer) -> None:
    heard = Heard()
    async with make(heard, max_block_ms=700) as producer:
        start = elapsed()
        with pytest.raises(UnknownTopicOrPartition, match="'nosuch'"):
            await producer.send("nosuch", b"v")
        assert elapsed() - start == pytest.approx(0.7, abs=0.05)
    assert [(tp.topic, n) for tp, _, n in heard.failed] == [("nosuch", 1)]


async def test_a_partition_that_does_not_exist_holds_up_no_other(
    make: MakeProducer, cluster: FakeCluster, logs: Logs
) -> None:
    async with make(max_block_ms=3_000) as producer:
        missing = producer.enqueue_nowait("one", b"m", partition=1)
        assert (await producer.send("one", b"v")).partition == 0
        with pytest.raises(
            UnknownTopicOrPartition, match="no partition 1, only 0 to 0"
        ):
            await missing
        later = producer.enqueue_nowait("one", b"l", partition=1)
        cluster.topics["one"].partitions += cluster.topics["orders"].partitions[:1]
        assert (await later).partition == 1
    assert logs.values("one", 1) == [b"l"]


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, AuthorizationError),
        (ErrorCode.INVALID_TOPIC_EXCEPTION, InvalidTopic),
    ],
)
async def test_a_topic_that_is_refused_fails_at_once(
    make: MakeProducer, cluster: FakeCluster, code: ErrorCode, error: type[Exception]
) -> None:
    heard: list[tuple[str, type[BaseException]]] = []

    class Hears:
        def topic_unavailable(self, topic: str, cause: BaseException) -> None:
            heard.append((topic, type(cause)))

    cluster.topics["one"].error = code
    async with make(Hears()) as producer:
        start = elapsed()
        with pytest.raises(error, match="'one'"):
            await producer.send("one", b"v")
        assert elapsed() - start < 1
        with pytest.raises(error):
            await producer.partitions_for("one")
        assert heard == [("one", error)]


async def test_a_partition_that_a_topic_does_not_have_is_told_at_once(
    make: MakeProducer, cluster: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[tuple[TopicPartition, str]] = []

    class Hears:
        def partition_unavailable(
            self, tp: TopicPartition, cause: BaseException
        ) -> None:
            heard.append((tp, str(cause)))

    async with make(Hears()) as producer:
        await producer.send("one", b"v", partition=0)
        start = elapsed()
        waiting = [await producer.enqueue("one", b"v", partition=7) for _ in range(3)]
        while not heard:  # noqa: ASYNC110 - the observer hears of it
            await asyncio.sleep(0.01)
        assert elapsed() - start < 1
        assert "records wait for one-7: topic 'one' has no partition 7" in caplog.text
        await producer.send("one", b"v", partition=0)
        other = await producer.enqueue("one", b"v", partition=9)
        assert not waiting[0].is_done
        with pytest.raises(UnknownTopicOrPartition, match="no partition 7, only 0 to"):
            await waiting[0]
        with pytest.raises(UnknownTopicOrPartition):
            await other
    assert [tp.partition for tp, _ in heard] == [7, 9]


@pytest.mark.parametrize("is_known", [False, True])
async def test_lost_records_are_counted(
    make: MakeProducer,
    cluster: FakeCluster,
    caplog: pytest.LogCaptureFixture,
    is_known: bool,
) -> None:
    heard = Heard()
    producer = make(heard)
    await producer.start()
    if is_known:
        await producer.partitions_for("orders")
    cluster.on(ApiKey.METADATA, lambda *_: HANG)
    cluster.on(ApiKey.PRODUCE, lambda *_: HANG)
    for number in range(600):
        await producer.enqueue("orders", b"v", partition=number % 3)
        await producer.enqueue("orders", b"v")
    await asyncio.sleep(0.1)
    await producer.close(timeout=0)
    assert sum(count for _, _, count in heard.lost) == 1_200
    assert len(heard.lost) <= 4
    lines = [line for line in caplog.messages if "not delivered" in line]
    told = [int(part) for line in lines for part in re.findall(r" (\d+) rec", line)]
    assert sum(told) == 1_200
    assert not any("--1" in line for line in lines)


async def test_what_the_log_has_left_out_is_told_at_the_end(
    make: MakeProducer, cluster: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    producer = make(max_block_ms=100)
    await producer.start()
    cluster.on(ApiKey.METADATA, lambda *_: HANG)
    for _ in range(3):
        await producer.enqueue("orders", b"v")
        await asyncio.sleep(0.2)
    await producer.close(timeout=0)
    lines = [line for line in caplog.messages if "not delivered" in line]
    assert "orders: 1 record was not delivered" in lines[0]
    assert "orders: 2 more were not delivered since" in lines[1]


async def test_partitions_for(make: MakeProducer) -> None:
    async with make() as producer:
        assert await producer.partitions_for("orders") == (0, 1, 2)
        with pytest.raises(UnknownTopicOrPartition):
            await producer.partitions_for("nosuch", timeout=0.5)


async def test_a_partition_without_a_leader_delays_nobody(
    make: MakeProducer, cluster: FakeCluster
) -> None:
    cluster.move_leader("orders", 1, -1)
    async with make() as producer:
        stuck = producer.enqueue_nowait("orders", b"v", partition=1)
        await producer.send("orders", b"v", partition=0)
        assert not stuck.is_done
        cluster.move_leader("orders", 1, 2)
        assert (await stuck).partition == 1


# ---- faults --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
    ],
)
@pytest.mark.parametrize("options", [{}, {"acks": 1}])
async def test_passing_errors_are_retried(
    make: MakeProducer, logs: Logs, code: ErrorCode, options: Any
) -> None:
    left = [code] * 3
    logs.refuse = lambda *_: left.pop() if left else 0
    async with make(**options) as producer:
        deliveries = [producer.enqueue_nowait("one", b"%d" % i) for i in range(3)]
        await producer.flush()
        assert [d.result().offset for d in deliveries] == [0, 1, 2]


async def test_a_lost_answer_is_found_to_be_written(
    make: MakeProducer, cluster: FakeCluster, logs: Logs
) -> None:
    def write_and_cut(node: Any, header: Any, request: Any) -> Any:
        logs.produce(node, header, request)
        return DISCONNECT

    cluster.on(ApiKey.PRODUCE, write_and_cut, times=1)
    async with make() as producer:
        meta = await producer.send("one", b"v")
        assert meta.offset == 0  # the broker tells where its duplicate is
        assert (await producer.send("one", b"w")).offset == 1
    assert logs.values("one") == [b"v", b"w"]


async def test_a_moved_leader_is_followed(
    make: MakeProducer, cluster: FakeCluster, logs: Logs
) -> None:
    async with make() as producer:
        await producer.send("one", b"a")
        cluster.move_leader("one", 0, 2)
        assert (await producer.send("one", b"b")).offset == 1
    assert cluster.requests(ProduceRequest, 2)


async def test_a_leader_hint_makes_waiting_needless(
    make: MakeProducer, cluster: FakeCluster, logs: Logs
) -> None:
    def hint(node: Any, header: Any, request: ProduceRequest) -> Any:
        if node.node_id == cluster.leader("one", 0):
            return DEFAULT
        state = cluster.partition("one", 0)
        return answer_all(
            request,
            error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER,
            current_leader=LeaderIdAndEpoch(
                leader_id=state.leader, leader_epoch=state.epoch
            ),
        )

    cluster.on(ApiKey.PRODUCE, hint)
    async with make(retry_backoff_ms=30_000, retry_backoff_max_ms=30_000) as producer:
        await producer.send("one", b"a")
        cluster.move_leader("one", 0, 1)
        start = elapsed()
        assert (await producer.send("one", b"b")).offset == 1
        assert elapsed() - start < 1


async def test_delivery_timeout_says_the_last_cause(
    make: MakeProducer, logs: Logs
) -> None:
    logs.refuse = lambda *_: ErrorCode.NOT_ENOUGH_REPLICAS
    heard = Heard()
    async with make(heard, delivery_timeout_ms=3_000, request_timeout_ms=1_000) as p:
        start = elapsed()
        with pytest.raises(DeliveryTimeout, match="NOT_ENOUGH_REPLICAS") as caught:
            await p.send("one", b"v")
        assert elapsed() - start == pytest.approx(3, abs=0.05)
        assert isinstance(caught.value.__cause__, BrokerError)
        assert p.statistics().buffer.used_bytes == 0
    assert [n for _, _, n in heard.failed] == [1]


async def test_delivery_timeout_with_a_dead_broker(
    make: MakeProducer, cluster: FakeCluster
) -> None:
    async with make(delivery_timeout_ms=4_000, request_timeout_ms=1_000) as producer:
        leader = cluster.leader("one", 0)
        await producer.partitions_for("one")
        cluster.stop(leader)
        start = elapsed()
        with pytest.raises(DeliveryTimeout, match="never sent"):
            await producer.send("one", b"v")
        assert elapsed() - start == pytest.approx(4, abs=0.1)


async def test_delivery_timeout_with_a_broker_that_hangs_and_recovery(
    make: MakeProducer, cluster: FakeCluster, logs: Logs
) -> None:
    async with make(delivery_timeout_ms=3_000, request_timeout_ms=2_000) as producer:
        await producer.send("one", b"a")
        cluster.on(ApiKey.PRODUCE, HANG, times=2)
        start = elapsed()
        with pytest.raises(DeliveryTimeout, match="sent"):
            await producer.send("one", b"b")
        assert elapsed() - start == pytest.approx(3, abs=0.1)
        assert (await producer.send("one", b"c")).offset == 1
    assert logs.values("one") == [b"a", b"c"]


async def test_a_batch_that_is_too_large_is_divided(
    make: MakeProducer, logs: Logs
) -> None:
    logs.max_message_bytes = 1_000
    async with make(compression_type="none") as producer:
        await producer.partitions_for("one")
        deliveries = [
            producer.enqueue_nowait("one", b"%03d" % i * 30) for i in range(50)
        ]
        await producer.flush()
        assert [d.result().offset for d in deliveries] == list(range(50))
    assert len({id(d) for d in deliveries}) == 50
    assert logs.values("one") == [b"%03d" % i * 30 for i in range(50)]


async def test_a_record_too_large_for_the_topic_fails_alone(
    make: MakeProducer, logs: Logs
) -> None:
    logs.max_message_bytes = 1_000
    async with make() as producer:
        await producer.partitions_for("one")
        before = producer.enqueue_nowait("one", b"before")
        large = producer.enqueue_nowait("one", b"x" * 2_000)
        after = [producer.enqueue_nowait("one", b"%d" % i) for i in range(20)]
        with pytest.raises(RecordTooLarge, match=r"max\.message\.bytes"):
            await large
        assert (await before).offset == 0
        assert [(await d).offset for d in after] == list(range(1, 21))
        assert producer.statistics().producer_epoch == 1


@pytest.mark.parametrize("options", [{}, {"acks": 1}])
async def test_a_poison_record_fails_alone(
    make: MakeProducer, logs: Logs, options: Any
) -> None:
    heard = Heard()
    async with make(heard, **options) as producer:
        await producer.partitions_for("one")
        good = [producer.enqueue_nowait("one", b"%d" % i) for i in range(3)]
        bad = producer.enqueue_nowait("one", b"POISON")
        good += [producer.enqueue_nowait("one", b"%d" % i) for i in range(3, 6)]
        with pytest.raises(BrokerError, match="poison"):
            await bad
        assert [(await d).offset for d in good] == list(range(6))
        only = producer.enqueue_nowait("one", b"POISON")
        with pytest.raises(BrokerError, match="poison"):
            await only
        assert (await producer.send("one", b"next")).offset == 6
        assert producer.statistics().buffer.used_bytes == 0
    assert logs.values("one") == [b"%d" % i for i in range(6)] + [b"next"]
    assert [n for _, _, n in heard.failed] == [1, 1]


async def test_a_broker_that_lost_the_sequence_gets_a_new_epoch(
    make: MakeProducer, logs: Logs
) -> None:
    async with make() as producer:
        for i in range(3):
            await producer.send("one", b"%d" % i)
        # Data loss: the log is one batch shorter, and the state with it.
        (known,) = logs.log("one").producers.values()
        known.batches.pop()
        logs.log("one").records.pop()
        assert (await producer.send("one", b"3")).offset == 2
        assert producer.statistics().producer_epoch == 1
        await producer.send("one", b"4")
    assert [(b.producer_epoch, b.base_sequence) for b in logs.log("one").batches][
        -2:
    ] == [
        (1, 0),
        (1, 1),
    ]


@pytest.mark.parametrize("log_start_offset", [-1, 5])
async def test_an_unknown_producer_id_is_recovered_from(
    make: MakeProducer, cluster: FakeCluster, logs: Logs, log_start_offset: int
) -> None:
    def unknown(node: Any, header: Any, request: ProduceRequest) -> Any:
        return answer_all(
            request,
            error_code=ErrorCode.UNKNOWN_PRODUCER_ID,
            log_start_offset=log_start_offset,
        )

    async with make() as producer:
        await producer.send("one", b"a")
        cluster.on(ApiKey.PRODUCE, unknown, times=1)
        assert (await producer.send("one", b"b")).offset == 1
        assert producer.statistics().producer_epoch == (log_start_offset != -1)


async def test_without_idempotence_sequence_errors_are_final(
    make: MakeProducer, logs: Logs
) -> None:
    logs.refuse = lambda *_: ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    async with make(enable_idempotence=False) as producer:
        with pytest.raises(BrokerError, match="OUT_OF_ORDER"):
            await producer.send("one", b"v")
        assert producer.statistics().producer_id == -1


async def test_retries_run_out(make: MakeProducer, cluster: FakeCluster) -> None:
    cluster.on(ApiKey.PRODUCE, DISCONNECT)
    async with make(retries=2) as producer:
        with pytest.raises(Exception, match="broker0") as caught:
            await producer.send("one", b"v")
        assert not isinstance(caught.value, DeliveryTimeout)
    assert len(cluster.logged(ApiKey.PRODUCE)) == 3


async def test_the_answers_to_an_unidempotent_duplicate_and_a_lone_bad_record(
    make: MakeProducer, cluster: FakeCluster
) -> None:
    codes = [ErrorCode.INVALID_RECORD, ErrorCode.DUPLICATE_SEQUENCE_NUMBER]

    def answer(node: Any, header: Any, request: ProduceRequest) -> Any:
        errors = [BatchIndexAndErrorMessage(batch_index=77)]  # of no record
        return answer_all(request, error_code=codes.pop(), record_errors=errors)

    cluster.on(ApiKey.PRODUCE, answer)
    async with make() as producer:
        await producer.send("one", b"v")  # a duplicate is a success
        with pytest.raises(BrokerError, match="INVALID_RECORD"):
            await producer.send("one", b"v")


async def test_a_closed_producer_takes_back_the_room_it_granted(
    make: MakeProducer, cluster: FakeCluster
) -> None:
    producer = make(buffer_memory=2_000)
    await producer.start()
    await producer.partitions_for("one")
    gate = cluster.hold(ApiKey.PRODUCE)
    first = producer.enqueue_nowait("one", b"x" * 1_500)
    waiting = asyncio.create_task(producer.enqueue("one", b"x" * 1_500))
    await cluster.received(ApiKey.PRODUCE)
    cluster.reset(ApiKey.PRODUCE)
    Logs(cluster)
    gate.release()
    while not first.is_done:  # noqa: ASYNC110 - turn by turn, to hit the race
        await asyncio.sleep(0)
    await producer.close(timeout=0)
    with pytest.raises(ClosedError):
        await waiting
    assert producer.statistics().buffer.used_bytes == 0


async def test_send_many_tells_of_what_could_not_be_taken_in(
    make: MakeProducer, cluster: FakeCluster
) -> None:
    async with make(buffer_memory=2_000, max_block_ms=300) as producer:
        await producer.partitions_for("one")
        cluster.on(ApiKey.PRODUCE, HANG, times=1)
        with pytest.raises(DeliveriesFailed) as caught:
            await producer.send_many("one", [b"x" * 1_500, b"y" * 1_500, b"z"])
        assert sorted(caught.value.failures) == [1, 2]
        assert isinstance(caught.value.failures[1], KafkaTimeout)
        assert caught.value.delivered[0].offset == 0


async def test_a_partitioner_may_raise_what_it_likes(make: MakeProducer) -> None:
    class OddError(Exception):
        def __new__(cls, one: object, two: object) -> OddError:
            return super().__new__(cls)

        def __init__(self, one: object, two: object) -> None:
            super().__init__(one)

    def odd(*_: object) -> int:
        raise OddError(1, 2)

    async with make(partitioner=odd) as producer:
        with pytest.raises(OddError):
            await producer.send("one", b"v")


async def test_a_partition_left_out_of_the_answer_is_sent_again(
    make: MakeProducer, cluster: FakeCluster
) -> None:
    cluster.on(ApiKey.PRODUCE, ProduceResponse(), times=1)
    async with make() as producer:
        assert (await producer.send("one", b"v")).offset == 0


# ---- identity ------------------------------------------------------------------------


async def test_the_identity_is_asked_for_until_it_comes(
    make: MakeProducer, cluster: FakeCluster
) -> None:
    codes = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.CONCURRENT_TRANSACTIONS]

    def busy(*_: object) -> Any:
        return InitProducerIdResponse(error_code=codes.pop()) if codes else DEFAULT

    cluster.on(ApiKey.INIT_PRODUCER_ID, busy)
    async with make() as producer:
        await producer.send("one", b"v")
        assert producer.statistics().producer_id == 1001
        assert "id=1001/0" in repr(producer)


async def test_no_right_to_be_idempotent_fails_records_and_is_recovered_from(
    make: MakeProducer, cluster: FakeCluster
) -> None:
    forbidden = InitProducerIdResponse(
        error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    )
    cluster.on(ApiKey.INIT_PRODUCER_ID, forbidden)
    heard = Heard()
    async with make(heard) as producer:
        for _ in range(2):
            with pytest.raises(AuthorizationError, match="producer id"):
                await producer.send("one", b"v")
        cluster.reset(ApiKey.INIT_PRODUCER_ID)
        cluster.on(ApiKey.INIT_PRODUCER_ID, InitProducerIdResponse(producer_id=5))
        assert (await producer.send("one", b"v")).offset == 0
    assert len(heard.failed) == 2


async def test_who_may_do_nothing_learns_of_the_topic_first(
    make: MakeProducer, cluster: FakeCluster
) -> None:
    # Without a right on any topic there is none to an id either. The id is refused
    # before Metadata is answered: the topic is the better reason.
    forbidden = InitProducerIdResponse(
        error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    )
    cluster.on(ApiKey.INIT_PRODUCER_ID, forbidden)
    cluster.topics["one"].error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    cluster.delay(ApiKey.METADATA, 0.5)
    async with make() as producer:
        with pytest.raises(AuthorizationError, match="DESCRIBE") as caught:
            await producer.send("one", b"v")
    assert (caught.value.resource_type, caught.value.resource) == ("topic", "one")


async def test_used_up_epochs_ask_for_a_new_id(make: MakeProducer, logs: Logs) -> None:
    async with make() as producer:
        await producer.send("one", b"a")
        identity = producer._identity
        assert identity is not None
        assert identity.current is not None
        identity.current = type(identity.current)(identity.current.producer_id, 32767)
        logs.log("one").producers[identity.current.producer_id].epoch = 32767
        logs.log("one").producers[identity.current.producer_id].batches.clear()
        await producer.send("one", b"b")
        with pytest.raises(BrokerError):
            await producer.send("one", b"POISON")
        assert (await producer.send("one", b"c")).offset == 2
        assert producer.statistics().producer_id == 1002
        assert producer.statistics().producer_epoch == 0


# ---- life ----------------------------------------------------------------------------


async def test_nothing_happens_in_the_constructor() -> None:
    producer = Producer("nowhere:1", linger_ms=7)
    assert producer.config.linger_ms == 7
    name = producer.config.client_id
    assert repr(producer).startswith(f"<Producer {name!r} new | 0 topics")
    with pytest.raises(ClosedError, match="not started"):
        await producer.send("one", b"v")
    await producer.close()
    await producer.close()
    with pytest.raises(ClosedError):
        await producer.start()


def test_from_properties() -> None:
    producer = Producer.from_properties(
        {"bootstrap.servers": "a:1,b:2", "linger.ms": "20", "acks": "1"}
    )
    assert producer.config.linger_ms == 20
    assert producer.config.required_acks == 1
    assert producer.config.bootstrap_servers == (("a", 1), ("b", 2))


def test_unknown_options_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="linger_ms"):
        Producer("a:1", lingerms=5)  # type: ignore[call-arg]


async def test_sends_after_close_are_refused(make: MakeProducer) -> None:
    producer = make()
    async with producer:
        await producer.send("one", b"v")
    for call in (producer.send("one", b"v"), producer.enqueue("one", b"v")):
        with pytest.raises(ClosedError, match="is closed"):
            await call
    with pytest.raises(ClosedError):
        producer.enqueue_nowait("one", b"v")
    with pytest.raises(ClosedError):
        await producer.flush()
    assert producer.statistics().state == "closed"


async def test_close_sends_what_was_enqueued(make: MakeProducer, logs: Logs) -> None:
    async with make(linger_ms=60_000) as producer:
        deliveries = [producer.enqueue_nowait("one", b"%d" % i) for i in range(10)]
        start = elapsed()
    assert elapsed() - start < 1
    assert logs.values("one") == [b"%d" % i for i in range(10)]
    assert [d.result().offset for d in deliveries] == list(range(10))


async def test_close_keeps_its_timeout_and_fails_the_rest(
    make: MakeProducer, cluster: FakeCluster
) -> None:
    producer = make(buffer_memory=3_000)
    await producer.start()
    await producer.partitions_for("one")
    cluster.on(ApiKey.PRODUCE, HANG)
    sent = producer.enqueue_nowait("one", b"v")
    unknown = producer.enqueue_nowait("nosuch", b"v")
    waiting = asyncio.create_task(producer.enqueue("one", b"x" * 2_900))
    await cluster.received(ApiKey.PRODUCE)
    start = elapsed()
    await asyncio.gather(producer.close(timeout=2), producer.close())
    assert elapsed() - start == pytest.approx(2, abs=0.1)
    with pytest.raises(ClosedError, match="may have been written"):
        await sent
    with pytest.raises(ClosedError, match="before the record was sent"):
        await unknown
    with pytest.raises(ClosedError):
        await waiting


async def test_a_cancelled_close_fails_the_rest_at_once(
    make: MakeProducer, cluster: FakeCluster
) -> None:
    producer = make()
    await producer.start()
    await producer.partitions_for("one")
    cluster.on(ApiKey.PRODUCE, HANG)
    sent = producer.enqueue_nowait("one", b"v")
    task = asyncio.create_task(producer.close())
    await cluster.received(ApiKey.PRODUCE)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert isinstance(sent.exception(), ClosedError)
    assert producer.statistics().state == "closed"


async def test_close_without_a_cluster_is_bounded(
    make: MakeProducer, cluster: FakeCluster
) -> None:
    producer = make()
    await producer.start()
    for node in cluster.nodes:
        cluster.stop(node)
    delivery = producer.enqueue_nowait("one", b"v")
    start = elapsed()
    await producer.close(timeout=1)
    assert elapsed() - start < 7
    assert isinstance(delivery.exception(), ClosedError)


async def test_start_fails_without_a_cluster(
    make: MakeProducer, cluster: FakeCluster
) -> None:
    for node in cluster.nodes:
        cluster.stop(node)
    producer = make()
    with pytest.raises(Exception, match="broker0"):
        await producer.start(timeout=1)
    assert producer.statistics().state == "closed"


async def test_flush_waits_for_what_came_before(
    make: MakeProducer, cluster: FakeCluster, logs: Logs
) -> None:
    async with make(linger_ms=60_000) as producer:
        await producer.send("one", b"warm up")
        gate = cluster.hold(ApiKey.PRODUCE)
        deliveries = [producer.enqueue_nowait("one", b"v") for _ in range(5)]
        await cluster.received(ApiKey.PRODUCE, 2)
        deliveries += [producer.enqueue_nowait("one", b"v") for _ in range(5)]
        with pytest.raises(KafkaTimeout, match="2 on the wire"):
            await producer.flush(timeout=1)
        cluster.reset(ApiKey.PRODUCE)
        cluster.on(ApiKey.PRODUCE, logs.produce)
        gate.release()
        await producer.flush()
        assert all(d.is_done for d in deliveries)
        await producer.flush(timeout=0.1)


async def test_a_shared_client_is_left_open(cluster: FakeCluster, logs: Logs) -> None:
    config = ClientConfig.of(cluster.bootstrap, {"client_id": "shared"})
    async with Client.from_config(config, dial=cluster.dial) as client:
        with pytest.raises(ConfigurationError, match="observer"):
            Producer(client, observer=object())
        async with Producer(client, linger_ms=1) as one, Producer(client) as two:
            assert one.config.client_id == "shared"
            await one.send("one", b"a")
            await two.send("one", b"b")
            classes = [c.connection_class for c in client.statistics().connections]
            assert classes.count(ConnectionClass.PRODUCE) == 1
        assert (await client._cluster.wait_for_topics(["one"], 1)).partition_count(
            "one"
        ) == 1
    assert logs.values("one") == [b"a", b"b"]


async def test_a_shared_client_that_closes_fails_what_is_left(
    cluster: FakeCluster, logs: Logs
) -> None:
    config = ClientConfig.of(cluster.bootstrap, {})
    async with Client.from_config(config, dial=cluster.dial) as client:
        producer = Producer(client)
        await producer.start()
        await producer.partitions_for("one")
        cluster.on(ApiKey.PRODUCE, HANG)
        delivery = producer.enqueue_nowait("one", b"v")
        await cluster.received(ApiKey.PRODUCE)
    with pytest.raises(ClosedError, match="client was closed"):
        await delivery
    with pytest.raises(ClosedError, match="client was closed"):
        await producer.send("one", b"v")
    await producer.close()


@pytest.mark.parametrize(
    ("part", "method"), [("completion", "acknowledged"), ("outbox", "outlook")]
)
async def test_a_crash_fails_everything_with_its_cause(
    make: MakeProducer, monkeypatch: pytest.MonkeyPatch, part: str, method: str
) -> None:
    async with make(buffer_memory=3_000) as producer:
        await producer.partitions_for("one")
        deliveries = [producer.enqueue_nowait("one", b"x" * 500) for _ in range(3)]
        waiting = asyncio.create_task(producer.enqueue("one", b"x" * 2_000))

        def broken(*_: object) -> None:
            raise ZeroDivisionError("a bug")

        monkeypatch.setattr(getattr(producer._accumulator, part), method, broken)
        for delivery in deliveries:
            with pytest.raises(InternalError, match="a bug") as caught:
                await delivery
            assert isinstance(caught.value.__cause__, ZeroDivisionError)
        with pytest.raises(InternalError):
            await waiting
        with pytest.raises(InternalError):
            await producer.send("one", b"v")
        assert producer.statistics().state == "failed"


async def test_no_task_is_left(make: MakeProducer, cluster: FakeCluster) -> None:
    before = asyncio.all_tasks()
    async with make() as producer:
        await producer.send("one", b"v")
        assert len(asyncio.all_tasks()) > len(before)
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


@pytest.mark.parametrize("is_plain", [True, False])
async def test_a_subclass_may_put_its_own_in_the_place(
    cluster: FakeCluster, logs: Logs, is_plain: bool
) -> None:
    class Counting(Producer):
        count = 0

        def enqueue_nowait(self, *args: Any, **kwargs: Any) -> Delivery:
            self.count += 1
            return super().enqueue_nowait(*args, **kwargs)

    options = {} if is_plain else {"value_serializer": str.encode}
    config = ProducerConfig.of(cluster.bootstrap, options)
    value = b"v" if is_plain else "v"
    async with Counting.from_config(config, dial=cluster.dial) as producer:
        deliveries = [producer.enqueue_nowait("one", value) for _ in range(3)]
        assert [(await each).offset for each in deliveries] == [0, 1, 2]
    assert producer.count == 3
    assert logs.values("one") == [b"v"] * 3
