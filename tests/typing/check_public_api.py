"""What type checkers tell users; checked by `mypy tests/typing`, never run."""

from collections.abc import Sequence, Set
from datetime import UTC, datetime
from typing import Literal, assert_type

import kafkaio
from kafkaio import messages
from kafkaio.admin import Settled, settled


async def produce() -> None:
    async with kafkaio.Producer("localhost:9092", acks="all", linger_ms=5) as producer:
        meta = await producer.send("t", b"v", key=b"k", headers=[("a", b"1")])
        assert_type(meta, kafkaio.RecordMetadata)
        delivery = await producer.enqueue("t", b"v", headers={"a": None})
        assert_type(delivery.is_done, bool)
        assert_type(await delivery, kafkaio.RecordMetadata)
        another: kafkaio.Delivery = producer.enqueue_nowait("t", None)
        assert another is not delivery
        metas = await producer.send_many("t", [b"a", kafkaio.NewRecord(b"c", key=b"k")])
        assert_type(metas, Sequence[kafkaio.RecordMetadata])
        await producer.flush(timeout=30)


async def in_parallel(producer: kafkaio.Producer, consumer: kafkaio.Consumer) -> None:
    async def handle(record: kafkaio.Record) -> None:
        assert record.value

    async def bury(record: kafkaio.Record, error: Exception) -> int:
        return len(record.value or b"")

    await consumer.run(handle, concurrency=100, ordering="key")
    retry = kafkaio.Retry(attempts=3, on=(OSError,))
    await consumer.run(handle, retry=retry, dead_letter=bury)
    await consumer.run(handle, dead_letter=kafkaio.DeadLetter(producer, "t.dead"))
    await consumer.run(handle, ordering="keys")  # type: ignore[call-overload]
    await consumer.run(print)  # type: ignore[arg-type]
    async for lane in consumer.partitions():
        assert_type(lane, kafkaio.Lane)
        async with lane:
            async for record in lane:
                assert_type(record, kafkaio.Record)
                await lane.commit(record)
            async for batch in lane.batches(max_records=10):
                assert_type(batch, kafkaio.Batch)
                await lane.commit(batch)
            await lane.commit(17)
            await lane.commit("17")  # type: ignore[arg-type]


async def consume() -> None:
    def lost(partitions: Set[kafkaio.TopicPartition]) -> None:
        assert partitions

    async with kafkaio.Consumer(
        ["a:1", "b"], topics=["t"], group_id="g", on_lost=lost, session_timeout_ms=6000
    ) as consumer:
        async for record in consumer:
            assert_type(record, kafkaio.Record)
            assert_type(record.key, bytes | None)
            await consumer.commit(record)
        async for batch in consumer.batches(max_records=500, max_wait=0.2):
            assert_type(batch, kafkaio.Batch)
            await consumer.commit(batch)
        poll = await consumer.poll(timeout=1.0, max_records=500)
        assert_type(poll.lost, frozenset[kafkaio.TopicPartition])
        tp = kafkaio.TopicPartition("t", 0)
        await consumer.commit({tp: 5})
        await consumer.commit(tp)
        await consumer.commit([tp])
        await consumer.commit(consumer.assignment)
        await consumer.commit({tp: kafkaio.OffsetAndMetadata(5, "note")})


async def to_an_end(consumer: kafkaio.Consumer[str, int]) -> None:
    tp = kafkaio.TopicPartition("t", 0)
    async for record in consumer.records(until="latest"):
        assert_type(record, kafkaio.Record[str, int])
    async for batch in consumer.batches(until={tp: 5}):
        assert_type(batch, kafkaio.Batch[str, int])
    consumer.arrow_batches(until=datetime.now(UTC))
    assert_type(await consumer.read_to_end(), list[kafkaio.Record[str, int]])
    consumer.records()  # type: ignore[call-arg]
    consumer.records(until="soon")  # type: ignore[arg-type]


async def called_back(producer: kafkaio.Producer) -> None:
    def report(delivery: kafkaio.Delivery) -> None:
        assert_type(delivery.result().topic_partition, kafkaio.TopicPartition)

    def wrong(delivery: int) -> None:
        assert delivery

    delivery = await producer.enqueue("t", b"v")
    delivery.add_done_callback(report)
    delivery.add_done_callback(wrong)  # type: ignore[arg-type]
    assert_type(delivery.remove_done_callback(report), int)


async def names_of_other_clients(
    producer: kafkaio.Producer, consumer: kafkaio.Consumer
) -> None:
    """Type checkers go on to report them."""
    await producer.send_and_wait("t", b"v")  # type: ignore[attr-defined]
    await producer.send("t", b"v", b"k")  # type: ignore[call-overload]
    await producer.send("t", b"v", timestamp_ms=5)  # type: ignore[call-overload]
    await consumer.getmany()  # type: ignore[attr-defined]
    await consumer.poll(timeout_ms=5)  # type: ignore[call-arg]
    consumer.assignment()  # type: ignore[operator]


class Metrics:
    def request_sent(self, api: str, version: int, node_id: int, size: int) -> None: ...


def configure(properties: dict[str, object]) -> None:
    heard: list[object] = [Metrics(), kafkaio.Observer()]
    client = kafkaio.Client(bootstrap_servers="a:1", log=False, observer=heard)
    kafkaio.Producer(bootstrap_servers=client, linger_ms=5)
    kafkaio.Producer(bootstrap_servers=["a:1", "b"], log=True, observer=Metrics())
    kafkaio.Consumer(bootstrap_servers="a:1", topics="t", check_crcs=False)
    kafkaio.Producer(bootstrap="a:1")  # type: ignore[call-arg]
    kafkaio.Producer("a:1", group_id="g")  # type: ignore[call-arg]
    kafkaio.Consumer("a:1", log="no")  # type: ignore[call-overload]
    assert_type(kafkaio.__version__, str)
    assert_type(kafkaio.Producer.from_properties(properties), kafkaio.Producer)


async def request() -> None:
    async with kafkaio.Client("localhost:9092") as client:
        reply = await client.request(messages.ListGroupsRequest(), to=kafkaio.ANY)
        assert_type(reply, messages.ListGroupsResponse)
        tp = kafkaio.TopicPartition("t", 0)
        for place in (
            kafkaio.Broker(3),
            kafkaio.Controller,
            kafkaio.Leader(tp),
            kafkaio.GroupCoordinator("g"),
            kafkaio.TransactionCoordinator("t"),
        ):
            await client.request(messages.MetadataRequest(topics=None), to=place)


def read_options(producer: kafkaio.ProducerConfig, own: kafkaio.ConsumerConfig) -> None:
    assert_type(producer.linger_ms, float)
    assert_type(producer.acks, Literal["all", -1, 0, 1])
    assert_type(producer.compression_zstd_level, int | None)
    assert_type(producer.client_id, str)
    assert_type(own.group_id, str | None)
    assert_type(own.offset_store, kafkaio.OffsetStore | None)
    kafkaio.ConsumerConfig(bootstrap_servers=(("a", 1),), group_id="g")
    kafkaio.ConsumerConfig(linger_ms=5)  # type: ignore[call-arg]
    kafkaio.ProducerConfig(linger_ms="5")  # type: ignore[arg-type]
    producer.linger_ms = 6  # type: ignore[misc]


def wrong_arguments(producer: kafkaio.Producer) -> None:
    try:
        one = producer.enqueue_nowait("t", b"v", partition=-1)
        assert_type(one.is_done, bool)
    except kafkaio.ArgumentValueError as error:
        of_python: ValueError = error
        assert_type(str(of_python), str)
        of_kafkaio: kafkaio.UsageError = error
        assert_type(of_kafkaio.retriable, bool)
    except kafkaio.ArgumentTypeError as error:
        other: TypeError = error
        raise other from None


def wrong() -> None:
    kafkaio.Producer(linger="5")  # type: ignore[call-arg]
    kafkaio.Producer(acks=2)  # type: ignore[arg-type]
    kafkaio.Consumer(isolation_level="dirty")  # type: ignore[call-overload]


async def administer(tp: kafkaio.TopicPartition) -> None:
    async with kafkaio.Admin("localhost:9092", client_id="me") as admin:
        listed = await admin.list_transactions(states=["Ongoing"])
        assert_type(listed, list[kafkaio.TransactionListing])
        assert_type(listed[0].state, kafkaio.TransactionState)
        assert_type(
            await admin.describe_transactions(["a"]),
            dict[str, kafkaio.TransactionDescription],
        )
        fenced = await settled(admin.fence_producers(["a"]))
        assert_type(fenced, Settled[str, kafkaio.ProducerIdAndEpoch])
        assert_type(fenced.found, dict[str, kafkaio.ProducerIdAndEpoch])
        assert_type(fenced.failed, dict[str, kafkaio.KafkaError])
        assert_type(
            await settled(admin.list_offsets({tp: "latest"})),
            Settled[kafkaio.TopicPartition, kafkaio.OffsetAndTimestamp | None],
        )
        assert_type(
            await admin.describe_producers([tp]),
            dict[kafkaio.TopicPartition, tuple[kafkaio.ProducerState, ...]],
        )
        for hanging in await admin.find_hanging_transactions(topics="t"):
            assert_type(hanging, kafkaio.HangingTransaction)
            await admin.abort_transaction(hanging.partition, hanging.start_offset)
        await admin.abort_transaction(tp, "0")  # type: ignore[arg-type]
