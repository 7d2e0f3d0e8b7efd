"""What a producer reports to observers, and the headers that an observer injects."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import kafkaio
from kafkaio._config import ConsumerConfig, ProducerConfig
from kafkaio._consumer import Consumer
from kafkaio._producer import Producer
from kafkaio._runtime.observer import AcknowledgedBatch, Observer
from kafkaio.errors import KafkaTimeout, UsageError
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing import Broker
from kafkaio.types import Headers, NewRecord, TopicPartition
from tests.fakes.broker import HANG, FakeCluster
from tests.unit.producer.broker_log import Logs
from tests.unit.producer.conftest import MakeProducer

ONE = TopicPartition("one", 0)


class Heard(Observer):
    def __init__(self) -> None:
        self.acknowledged: list[AcknowledgedBatch] = []
        self.retried: list[tuple[Any, ...]] = []
        self.split: list[tuple[Any, ...]] = []
        self.steps: list[tuple[str, str, float]] = []

    def batch_acknowledged(self, batch: AcknowledgedBatch) -> None:
        self.acknowledged.append(batch)

    def batch_retried(self, *event: Any) -> None:
        self.retried.append(event)

    def batch_split(self, *event: Any) -> None:
        self.split.append(event)

    def transaction_step(
        self, transactional_id: str, step: str, seconds: float
    ) -> None:
        self.steps.append((transactional_id, step, seconds))


@pytest.mark.parametrize("acks", ["all", "0"])
async def test_an_acknowledged_batch(
    acks: str, cluster: FakeCluster, logs: Logs, make: MakeProducer
) -> None:
    heard = Heard()
    cluster.delay(ApiKey.PRODUCE, 0.25)
    more = {"enable_idempotence": False} if acks == "0" else {}
    async with make(heard, acks=acks, compression_type="gzip", **more) as producer:
        deliveries = [await producer.enqueue("one", bytes(1000)) for _ in range(3)]
        for delivery in deliveries:
            await delivery
    [batch] = heard.acknowledged
    assert (batch.partition, batch.records, batch.attempts) == (ONE, 3, 1)
    assert 3000 < batch.size < 3200
    assert 60 < batch.wire_size < 300
    assert batch.queue_seconds == pytest.approx(0, abs=0.05)
    assert batch.seconds == pytest.approx(0 if acks == "0" else 0.25, abs=0.05)


@pytest.mark.parametrize("acks", ["all", "0"])
async def test_which_broker_acknowledged_a_batch(acks: str) -> None:
    heard = Heard()
    options: Any = {"acks": acks, "linger_ms": 0}
    if acks == "0":
        options["enable_idempotence"] = False
    async with (
        Broker(nodes=3, first_node_id=5, topics={"t": 6}) as broker,
        Producer(broker.bootstrap_servers, observer=heard, **options) as producer,
    ):
        for partition in range(6):
            await producer.send("t", b"x", partition=partition)
        view = producer._cluster.view
    written = [TopicPartition("t", partition) for partition in range(6)]
    leaders = {tp: view.leader(tp) for tp in written}
    assert {each.partition: each.node_id for each in heard.acknowledged} == leaders
    assert {*leaders.values()} == {5, 6, 7}


async def test_a_batch_that_is_sent_again(
    cluster: FakeCluster, logs: Logs, make: MakeProducer
) -> None:
    heard = Heard()
    codes = [ErrorCode.NOT_ENOUGH_REPLICAS] * 2
    logs.refuse = lambda *_: codes.pop() if codes else 0
    async with make(heard, retry_backoff_ms=100) as producer:
        await producer.send("one", b"x")
    assert [event[:3] for event in heard.retried] == [(ONE, 1, 1), (ONE, 1, 2)]
    assert "NOT_ENOUGH_REPLICAS" in str(heard.retried[0][3])
    [batch] = heard.acknowledged
    assert batch.attempts == 3
    assert batch.queue_seconds < 0.05


async def test_a_batch_that_is_too_large(
    cluster: FakeCluster, logs: Logs, make: MakeProducer
) -> None:
    heard = Heard()
    limit = ErrorCode.MESSAGE_TOO_LARGE
    logs.refuse = lambda topic, index, batch: limit if batch.count > 1 else 0
    async with make(heard) as producer:
        deliveries = [await producer.enqueue("one", bytes(100)) for _ in range(2)]
        for delivery in deliveries:
            await delivery
    assert heard.split == [(ONE, 2)]
    assert [batch.records for batch in heard.acknowledged] == [1, 1]


async def test_waits_for_the_buffer_are_counted(
    cluster: FakeCluster, logs: Logs, make: MakeProducer
) -> None:
    cluster.on(ApiKey.PRODUCE, HANG)
    producer = make(
        buffer_memory=20_000, batch_size=10_000, max_block_ms=500, linger_ms=0
    )
    await producer.start()
    with pytest.raises(ExceptionGroup) as failed:
        await producer.send_many("one", [bytes(5000)] * 20)
    assert failed.value.subgroup(KafkaTimeout) is not None
    statistics = producer.statistics()
    assert statistics.buffer_memory == 20_000
    assert statistics.room_timeouts == 1
    assert statistics.waited_for_room == pytest.approx(0.5, abs=0.05)


async def test_steps_of_transactions() -> None:
    heard = Heard()
    async with Broker(topics={"t": 1}, memory_transport=True) as broker:
        options: Any = {"transactional_id": "billing"}
        config = ProducerConfig.of(broker.bootstrap_servers, options)
        async with Producer.from_config(
            config, observer=heard, dial=broker.dial
        ) as producer:
            async with producer.transaction() as tx:
                await tx.send("t", b"x")
            tx = producer.transaction()
            await tx.begin()
            await tx.send("t", b"x")
            await tx.abort()
    assert {name for name, _, _ in heard.steps} == {"billing"}
    steps = [step for _, step, _ in heard.steps]
    assert steps == ["init", "begin", "commit", "begin", "abort"]
    assert all(0 <= seconds < 60 for _, _, seconds in heard.steps)


# ---- inject ------------------------------------------------------------------------


class Injects:
    """Adds the topic and a number to the headers."""

    def __init__(self) -> None:
        self.count = 0

    def inject(self, topic: str, headers: Headers) -> Headers:
        assert isinstance(headers, tuple)
        self.count += 1
        return (*headers, (topic, str(self.count).encode()))


async def test_every_way_to_send_a_record_injects() -> None:
    injects = Injects()
    async with Broker(topics={"one": 1}, memory_transport=True) as broker:
        config = ProducerConfig.of(broker.bootstrap_servers, {})
        async with Producer.from_config(
            config, observer=injects, dial=broker.dial
        ) as producer:
            await producer.send("one", b"a")
            await (await producer.enqueue("one", b"b", headers=(("h", b"1"),)))
            await producer.enqueue_nowait("one", b"c")
            await producer.send_many("one", [b"d", NewRecord(b"e", key=b"k")])
        async with Consumer.from_config(
            ConsumerConfig.of(
                broker.bootstrap_servers, {"auto_offset_reset": "earliest"}
            ),
            assign=[ONE],
            dial=broker.dial,
        ) as consumer:
            written = [await anext(consumer) for _ in range(5)]
    assert [[*record.headers] for record in written] == [
        [("one", b"1")],
        [("h", b"1"), ("one", b"2")],
        [("one", b"3")],
        [("one", b"4")],
        [("one", b"5")],
    ]


async def test_records_of_transactions_are_injected() -> None:
    injects = Injects()
    async with Broker(topics={"one": 1}, memory_transport=True) as broker:
        options: Any = {"transactional_id": "billing"}
        config = ProducerConfig.of(broker.bootstrap_servers, options)
        async with Producer.from_config(
            config, observer=injects, dial=broker.dial
        ) as producer:
            with pytest.raises(UsageError):
                await producer.send("one", b"outside")
            before = injects.count
            async with producer.transaction() as tx:
                await tx.send("one", b"a")
                await (await tx.enqueue("one", b"b"))
                await tx.enqueue_nowait("one", b"c")
    assert injects.count - before == 3


async def test_several_observers_inject_and_one_that_raises_changes_nothing() -> None:
    reports: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, c: reports.append(c))

    class Bad:
        def inject(self, topic: str, headers: Headers) -> Headers:
            raise ValueError("oops")

    first, last = Injects(), Injects()
    async with Broker(topics={"one": 1}) as broker:
        async with kafkaio.Producer(
            broker.bootstrap_servers, observer=[first, Bad(), last]
        ) as producer:
            await producer.send("one", b"a")
        async with kafkaio.Consumer(
            broker.bootstrap_servers, topics="one", auto_offset_reset="earliest"
        ) as consumer:
            record = await anext(consumer)
    assert record.headers == (("one", b"1"), ("one", b"1"))
    assert [report["message"] for report in reports] == ["observer failed in inject"]


async def test_without_inject_records_take_the_short_path(make: MakeProducer) -> None:
    plain, injected = make(Heard()), make(Injects())
    assert plain._direct is plain._open_batches
    assert injected._direct is None
    assert not injected._intake.is_plain
    assert plain._intake._records._inject is None
