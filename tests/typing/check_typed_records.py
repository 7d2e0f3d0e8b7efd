"""Keys and values with types, as type checkers infer them; never run.

Checked by mypy and by pyright, which must agree. What both refuse is in
``test_programs.py``.
"""

import json
import pickle
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, assert_type

import msgspec
import pydantic

import kafkaio
from kafkaio import (
    Batch,
    Consumer,
    Producer,
    Record,
    ShareBatch,
    ShareConsumer,
    ShareRecord,
    Topic,
    Transaction,
)
from kafkaio.arrow import records_to_table
from kafkaio.serde import DeserializationContext, SerializationContext

SERVERS = "localhost:9092"


@dataclass
class Order:
    id: int


class Payment(pydantic.BaseModel):
    amount: int


class Refund(msgspec.Struct):
    amount: int


# ---- functions and objects that serialize --------------------------------------------


def dump(order: Order) -> bytes:
    return json.dumps({"id": order.id}).encode()


def dump_for(order: Order, context: SerializationContext) -> bytes | None:
    return None if context.is_key else dump(order)


def load(data: bytes) -> Order:
    return Order(**json.loads(data))


def load_from(data: bytes, context: DeserializationContext) -> Order:
    assert_type(context.topic, str)
    return load(data)


class Orders:
    """A serde."""

    def serialize(self, value: Order, context: SerializationContext) -> bytes:
        return dump(value)

    def deserialize(self, data: bytes, context: DeserializationContext) -> Order:
        return load(data)


class AwaitedOrders:
    """A serde that is always awaited."""

    async def serialize(self, value: Order, context: SerializationContext) -> bytes:
        return dump(value)

    async def deserialize(self, data: bytes, context: DeserializationContext) -> Order:
        return load(data)


class CachedOrders:
    """A serde that is awaited now and then."""

    def serialize(
        self, value: Order, context: SerializationContext
    ) -> bytes | Awaitable[bytes]:
        return dump(value)

    def deserialize(
        self, data: bytes, context: DeserializationContext
    ) -> Order | Awaitable[Order]:
        return load(data)


class Payments:
    """A serde of another type."""

    def serialize(self, value: Payment, context: SerializationContext) -> bytes:
        return value.model_dump_json().encode()

    def deserialize(self, data: bytes, context: DeserializationContext) -> Payment:
        return Payment.model_validate_json(data)


Bytes = bytes | None
orders = Topic("orders", value=CachedOrders())
payments = Topic("payments", value=Payments())
keyed = Topic("keyed", key=Orders(), value=AwaitedOrders())


# ---- producers -----------------------------------------------------------------------


def producers(servers: Any, encoder: msgspec.json.Encoder) -> None:
    assert_type(Producer(SERVERS), Producer[Bytes, Bytes])
    assert_type(Producer(servers, acks="all"), Producer[Bytes, Bytes])
    assert_type(Producer(SERVERS, value_serializer=dump), Producer[Bytes, Order])
    assert_type(Producer(SERVERS, value_serializer=dump_for), Producer[Bytes, Order])
    assert_type(Producer(SERVERS, value_serializer=Orders()), Producer[Bytes, Order])
    awaited = Producer(SERVERS, value_serializer=AwaitedOrders())
    assert_type(awaited, Producer[Bytes, Order])
    cached = Producer(SERVERS, value_serializer=CachedOrders(), linger_ms=5)
    assert_type(cached, Producer[Bytes, Order])
    both = Producer(SERVERS, key_serializer=str.encode, value_serializer=dump)
    assert_type(both, Producer[str, Order])
    assert_type(Producer(SERVERS, key_serializer=str.encode), Producer[str, Bytes])
    of_pickle = Producer(SERVERS, value_serializer=pickle.dumps)
    assert_type(of_pickle, Producer[Bytes, Any])
    of_msgspec = Producer(SERVERS, value_serializer=encoder.encode)
    assert_type(of_msgspec, Producer[Bytes, Any])
    text = partial(str.encode, errors="replace")
    of_partial = Producer(SERVERS, value_serializer=text)
    assert of_partial.config.value_serializer  # mypy says Any, and pyright str
    # A lambda says nothing about what it takes: the annotation does.
    of_lambda: Producer[Bytes, Order] = Producer(
        SERVERS, value_serializer=lambda order: str(order.id).encode()
    )
    assert_type(of_lambda, Producer[Bytes, Order])
    # So it is where the types come from a file of options.
    read = Producer[str, Order].from_properties(
        {"bootstrap.servers": SERVERS}, key_serializer=str.encode, value_serializer=dump
    )
    assert_type(read, Producer[str, Order])
    config = kafkaio.ProducerConfig.of(SERVERS, {"value_serializer": dump})
    made = Producer[Bytes, Order].from_config(config)
    assert_type(made, Producer[Bytes, Order])
    assert_type(Producer.from_config(config), Producer[Bytes, Bytes])


async def produce(plain: Producer, typed: Producer[str, Order]) -> None:
    await plain.send("t", b"v", key=b"k")
    await plain.send("t", None)
    await typed.send("orders", Order(1), key="k")
    await typed.send("orders", None, key="k")  # a tombstone
    first = await typed.enqueue("orders", Order(1))
    second = typed.enqueue_nowait("orders", Order(1), key="k")
    assert_type([first, second], list[kafkaio.Delivery])
    await typed.send_many("orders", [Order(1), None, kafkaio.NewRecord(Order(2))])
    await typed.send_many("orders", [kafkaio.NewRecord(Order(2), key="k")])
    for producer in (plain, typed):
        # The types of a topic win over those of the producer.
        await producer.send(orders, Order(1), key=b"k")
        await producer.send(payments, Payment(amount=1))
        assert (await producer.enqueue(keyed, Order(1), key=Order(2))).is_done
        assert producer.enqueue_nowait(keyed, None, key=Order(2)).is_done
        await producer.send_many(orders, [Order(1), None])
        await producer.send_many(orders, [kafkaio.NewRecord(Order(2), key=b"k")])
        await producer.send(Topic("plain"), b"v", key=b"k")


def write_orders(producer: Producer[bytes, Order]) -> None:
    """A function that writes orders takes whatever can do so."""


def contravariance(anything: Producer[object, object]) -> None:
    write_orders(anything)
    write_orders(Producer(SERVERS, value_serializer=dump))


# ---- topics --------------------------------------------------------------------------

assert_type(orders, Topic[Bytes, Order])
assert_type(keyed, Topic[Order, Order])
assert_type(Topic("plain"), Topic[Bytes, Bytes])
assert_type(Topic("keys", key=Orders()), Topic[Order, Bytes])


# ---- consumers -----------------------------------------------------------------------


def consumers(servers: Any, decoder: msgspec.json.Decoder[Refund]) -> None:
    assert_type(Consumer(SERVERS), Consumer[Bytes, Bytes])
    assert_type(Consumer(servers, topics=["t"]), Consumer[Bytes, Bytes])
    found = Consumer(SERVERS, topics="t", value_deserializer=load)
    assert_type(found, Consumer[Bytes, Order])
    found = Consumer(SERVERS, topics="t", value_deserializer=load_from)
    assert_type(found, Consumer[Bytes, Order])
    assert_type(
        Consumer(SERVERS, topics="t", value_deserializer=Orders()),
        Consumer[Bytes, Order],
    )
    assert_type(
        Consumer(SERVERS, topics="t", value_deserializer=AwaitedOrders()),
        Consumer[Bytes, Order],
    )
    assert_type(
        Consumer(SERVERS, topics="t", value_deserializer=CachedOrders()),
        Consumer[Bytes, Order],
    )
    assert_type(
        Consumer(
            SERVERS,
            key_deserializer=AwaitedOrders(),
            value_deserializer=AwaitedOrders(),
        ),
        Consumer[Order, Order],
    )
    assert_type(
        Consumer(
            SERVERS, key_deserializer=AwaitedOrders(), value_deserializer=Payments()
        ),
        Consumer[Order, Payment],
    )
    assert_type(
        Consumer(
            SERVERS, key_deserializer=bytes.decode, value_deserializer=AwaitedOrders()
        ),
        Consumer[str, Order],
    )
    assert_type(
        Consumer(
            SERVERS,
            topics="t",
            key_deserializer=bytes.decode,
            value_deserializer=json.loads,
        ),
        Consumer[str, Any],
    )
    assert_type(
        Consumer(SERVERS, value_deserializer=Payment.model_validate_json),
        Consumer[Bytes, Payment],
    )
    assert_type(
        Consumer(SERVERS, value_deserializer=decoder.decode), Consumer[Bytes, Refund]
    )
    assert_type(
        Consumer(SERVERS, key_deserializer=int.from_bytes), Consumer[int, Bytes]
    )
    assert_type(
        Consumer[Bytes, Order].from_properties(
            {"bootstrap.servers": SERVERS}, value_deserializer=load
        ),
        Consumer[Bytes, Order],
    )
    config = kafkaio.ConsumerConfig.of(SERVERS, {})
    assert_type(
        Consumer[Bytes, Order].from_config(config, topics=orders),
        Consumer[Bytes, Order],
    )


def typed_topics(names: list[str]) -> None:
    assert_type(Consumer(SERVERS, topics=orders), Consumer[Bytes, Order])
    assert_type(Consumer(SERVERS, topics=[orders]), Consumer[Bytes, Order])
    assert_type(
        Consumer(SERVERS, topics=(keyed,), group_id="g"), Consumer[Order, Order]
    )
    # Topics of several types: mypy joins them, unless it is told what is meant.
    several: Consumer[Bytes, Order | Payment] = Consumer(
        SERVERS, topics=[orders, payments]
    )
    several.subscribe(orders)
    several.subscribe([orders, payments])
    several.subscribe("orders")
    # With names, whose values are bytes or what the options make, it is anything.
    mixed = Consumer(SERVERS, topics=[orders, "names"])
    assert_type(mixed, Consumer[object, object])
    mixed = Consumer(SERVERS, topics=[orders, *names], value_deserializer=json.loads)
    assert_type(mixed, Consumer[object, object])
    plain: Consumer[Bytes, Order | Bytes] = Consumer(
        SERVERS, topics=[orders, Topic("names")]
    )
    assert plain.assignment


async def consume(consumer: Consumer[str, Order]) -> None:
    assert_type(aiter(consumer), AsyncIterator[Record[str, Order]])
    async for record in consumer:
        assert_type(record, Record[str, Order])
        assert_type(record.key, str)
        assert_type(record.value.id, int)
        await consumer.commit(record)
    poll = await consumer.poll()
    assert_type(poll.records, list[Record[str, Order]])
    async for batch in consumer.batches():
        assert_type(batch, Batch[str, Order])
        assert_type(batch.values(), list[Order])
        assert_type(batch.keys(), list[str])
        assert_type([each.value for each in batch], list[Order])
        await consumer.commit(batch)
    async for lane in consumer.partitions():
        assert_type(lane, kafkaio.Lane[str, Order])
        async for record in lane:
            assert_type(record.value, Order)
            await lane.commit(record)
        async for batch in lane.batches():
            assert_type(batch.first, Record[str, Order])


# ---- share consumers -----------------------------------------------------------------


def share_consumers(servers: Any) -> None:
    assert_type(ShareConsumer(SERVERS, group_id="g"), ShareConsumer[Bytes, Bytes])
    assert_type(
        ShareConsumer(servers, topics="t", value_deserializer=load),
        ShareConsumer[Bytes, Order],
    )
    assert_type(
        ShareConsumer(
            SERVERS,
            key_deserializer=bytes.decode,
            value_deserializer=AwaitedOrders(),
            acknowledgement="implicit",
        ),
        ShareConsumer[str, Order],
    )
    assert_type(ShareConsumer(SERVERS, topics=orders), ShareConsumer[Bytes, Order])
    assert_type(ShareConsumer(SERVERS, topics=[keyed]), ShareConsumer[Order, Order])
    mixed = ShareConsumer(SERVERS, topics=[orders, "names"])
    assert_type(mixed, ShareConsumer[object, object])
    assert_type(
        ShareConsumer[Bytes, Order].from_properties(
            {"bootstrap.servers": SERVERS}, value_deserializer=load
        ),
        ShareConsumer[Bytes, Order],
    )
    config = kafkaio.ShareConsumerConfig.of(SERVERS, {"group_id": "g"})
    assert_type(
        ShareConsumer[Bytes, Order].from_config(config, topics=orders),
        ShareConsumer[Bytes, Order],
    )


async def share(consumer: ShareConsumer[str, Order]) -> None:
    async for record in consumer:
        assert_type(record, ShareRecord[str, Order])
        assert_type(record.value.id, int)
        assert_type(record.ack(), None)
        assert_type(await record.acked, None)
    assert_type(await consumer.poll(), list[ShareRecord[str, Order]])
    async for batch in consumer.batches(max_records=5, max_wait=0.5):
        assert_type(batch, ShareBatch[str, Order])
        assert_type(batch[0], ShareRecord[str, Order])
        assert_type(batch[1:], list[ShareRecord[str, Order]])
        assert_type(batch.values(), list[Order])
        assert_type(batch.ack(), int)
        batch.release(batch[1:])
    assert_type(
        await consumer.commit(),
        dict[kafkaio.TopicPartition, kafkaio.KafkaError | None],
    )


async def handlers(
    consumer: Consumer[str, Order], producer: Producer, other: Producer[str, Order]
) -> None:
    async def handle(record: Record[str, Order]) -> None: ...

    async def anything(record: Record[object, object]) -> None: ...

    async def bury(record: Record, error: Exception) -> None:
        assert_type(record.value, Bytes)  # as it came

    async def work(tx: Transaction[str, Order], record: Record[str, Order]) -> None:
        await tx.send("out", record.value, key=record.key)
        await tx.send(payments, Payment(amount=1))

    async def copy(tx: Transaction, records: list[Record[str, Order]]) -> None:
        await tx.send_many("out", [dump(record.value) for record in records])

    await consumer.run(handle)
    await consumer.run(anything, ordering="partition", dead_letter=bury)
    await consumer.run(handle, dead_letter=kafkaio.DeadLetter(producer, "dead"))
    await consumer.run(
        work, producer=other, dead_letter=kafkaio.DeadLetter(producer, "dead")
    )
    await kafkaio.exactly_once(consumer, producer, copy)
    async with other.transaction(consumer) as tx:
        assert_type(tx, Transaction[str, Order])
        await tx.commit_offsets(consumer)


def covariance(consumer: Consumer[str, Order], record: Record[str, Order]) -> None:
    of_anything: Consumer[object, object] = consumer
    anything: Record[object, object] = record
    assert of_anything.assignment
    assert anything.offset


def tables(records: list[Record[str, Order]]) -> None:
    assert records_to_table(records).num_rows


def literals(tp: kafkaio.TopicPartition) -> Awaitable[object]:
    Consumer(SERVERS, auto_offset_reset="earliest", isolation_level="read_committed")
    Consumer(SERVERS, auto_offset_reset=timedelta(hours=1), group_protocol="classic")
    kafkaio.ProducerConfig(compression_type="zstd", acks=1)
    consumer = Consumer(SERVERS)
    return consumer.rewind({tp: "earliest"})


async def of_functions(
    serialize: Callable[[Order], bytes], deserialize: Callable[[bytes], Order]
) -> Sequence[Order]:
    async with (
        Producer(SERVERS, value_serializer=serialize) as producer,
        Consumer(SERVERS, topics="t", value_deserializer=deserialize) as consumer,
    ):
        assert_type(producer, Producer[Bytes, Order])
        await producer.send("t", Order(1))
        return [record.value async for record in consumer]
