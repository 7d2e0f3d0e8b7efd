"""The guide's page on schemas: its programs run, and its table of failures is true."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import Any

import pytest
import trustme

import kafkaio
from kafkaio import TopicPartition
from kafkaio.registry import Avro, JsonSchema, Registry, Schema
from kafkaio.serde import DeserializationContext, Json, SerializationContext, String
from kafkaio.testing import Broker, RegistryRule, SchemaRegistry
from tests.pages import python_blocks, run_block
from tests.support.patience import HANGS

PAGE = "guide/schemas.md"
LOCAL = "localhost:9092"
ORDERS = TopicPartition("orders", 0)
#: As the page has it.
ORDER = """
{"type": "record", "name": "Order", "fields": [
  {"name": "id", "type": "long"},
  {"name": "customer", "type": "string"},
  {"name": "cents", "type": "long"}
]}
"""


@dataclass
class Order:
    id: int
    customer: str
    cents: int


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    topics = {"orders": 1, "payments": 1, "latest-orders": 1, "orders.dead": 1}
    async with Broker(topics=topics) as broker, asyncio.timeout(HANGS):
        yield broker


@pytest.fixture
async def schemas() -> AsyncIterator[SchemaRegistry]:
    async with SchemaRegistry() as registry:
        yield registry


def blocks(broker: Broker | None = None, schemas: SchemaRegistry | None = None) -> Any:
    """The blocks of the page, by the words that only one of them has."""
    places = {}
    if broker is not None:
        places[LOCAL] = broker.bootstrap_servers
    if schemas is not None:
        places["http://localhost:8081"] = schemas.url
    found = python_blocks(PAGE, places)

    def with_words(words: str) -> str:
        (block,) = [block for block in found if words in block]
        return block

    return with_words


async def test_a_typed_topic(
    broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    block = blocks(broker)
    names = await run_block(block("value=Json(Order))\n\n\nasync"))
    assert capsys.readouterr().out == "b'anna' 1250\n"

    @dataclass
    class Payment:
        cents: int

    payments = kafkaio.Topic("payments", key=String(), value=Json(Payment))
    latest = await run_block(
        block("nullable(Json(Order))"),
        {"kafkaio": kafkaio, "Json": Json, "String": String, "Order": names["Order"]},
    )
    async with kafkaio.Producer(broker.bootstrap_servers) as producer:
        await producer.send(payments, Payment(7), key="anna")
        await producer.send(latest["latest"], None, key="anna")
    names |= {"Payment": Payment, "Json": Json, "String": String}
    several = run_block(block("match record.value"), names)
    expected = {"order 1250\n", "payment 7\n"}
    task = asyncio.ensure_future(several)
    seen: set[str] = set()
    while seen != expected and not task.done():
        await asyncio.sleep(0.01)
        seen |= set(capsys.readouterr().out.splitlines(keepends=True))
    task.cancel()
    await asyncio.wait([task])
    assert seen == expected
    async with kafkaio.Consumer(
        broker.bootstrap_servers, topics=latest["latest"], auto_offset_reset="earliest"
    ) as consumer:
        record = await anext(consumer)
        assert (record.key, record.value) == ("anna", None)


async def test_functions(broker: Broker) -> None:
    names: dict[str, Any] = {"kafkaio": kafkaio, "Order": Order}
    names = await run_block(blocks(broker)("def dump"), names)
    producer: kafkaio.Producer[Any, Order] = names["producer"]
    consumer: kafkaio.Consumer[Any, Order] = names["consumer"]
    async with producer, consumer:
        await producer.send("orders", Order(1, "anna", 1250))
        assert (await anext(consumer)).value == Order(1, "anna", 1250)


async def test_types_that_are_named(broker: Broker) -> None:
    def dump(order: Order) -> bytes:
        return b"dumped"

    names = {"kafkaio": kafkaio, "Order": Order, "dump": dump}
    await run_block(blocks(broker)("by_properties"), names)
    order = Order(1, "anna", 1250)
    for name, written in (("by_lambda", b"1"), ("by_properties", b"dumped")):
        async with names[name] as producer:  # type: ignore[attr-defined]
            await producer.send("orders", order)
            await producer.send("orders", None)  # a tombstone
        async with kafkaio.Consumer(broker.bootstrap_servers, assign=[ORDERS]) as last:
            end = await last.position(ORDERS)
            last.seek(ORDERS, end - 2)
            assert [(await anext(last)).value for _ in "ab"] == [written, None]


async def test_an_object_that_waits(broker: Broker) -> None:
    fetched: list[str] = []

    async def fetch_key(topic: str) -> bytes:
        await asyncio.sleep(0)
        fetched.append(topic)
        return b"!"

    names: dict[str, Any] = {
        "SerializationContext": SerializationContext,
        "Awaitable": Awaitable,
        "fetch_key": fetch_key,
        "encrypt": lambda value, key: value + key,
    }
    names = await run_block(blocks()("class Encrypted"), names)
    async with kafkaio.Producer(
        broker.bootstrap_servers, value_serializer=names["Encrypted"]()
    ) as producer:
        with pytest.raises(kafkaio.ConfigurationError, match="await enqueue"):
            _ = producer.enqueue_nowait("orders", b"a")
        await producer.send("orders", b"a")
        await producer.enqueue_nowait("orders", b"b")
    assert fetched == ["orders"]
    async with kafkaio.Consumer(
        broker.bootstrap_servers, topics="orders", auto_offset_reset="earliest"
    ) as consumer:
        assert [(await anext(consumer)).value for _ in "ab"] == [b"a!", b"b!"]


async def test_the_registry(
    broker: Broker, schemas: SchemaRegistry, capsys: pytest.CaptureFixture[str]
) -> None:
    block = blocks(broker, schemas)
    await run_block(block("await avro.prepare"))
    assert capsys.readouterr().out == "anna 1250\n"
    page = (Path(__file__).parents[3] / "docs" / PAGE).read_text()
    (shown,) = re.findall(r"^00 .*$", page, re.MULTILINE)
    async with kafkaio.Consumer(
        broker.bootstrap_servers, topics="orders", auto_offset_reset="earliest"
    ) as consumer:
        value = (await anext(consumer)).value
    assert value is not None
    assert value[:1] + value[5:] == bytes.fromhex(shown)[:1] + bytes.fromhex(shown)[5:]


async def test_subjects_checks_and_references(
    schemas: SchemaRegistry, capsys: pytest.CaptureFixture[str]
) -> None:
    block = blocks()
    async with Registry(schemas.url) as registry:
        names: dict[str, Any] = {"Avro": Avro, "Order": Order, "registry": registry}
        await run_block(block("avro = Avro(Order, registry, subject="), names)
        await names["avro"].prepare("orders")
        (subject,) = await registry.subjects()
        assert subject.startswith("orders-")
        assert subject.endswith("Order")
        refund = make_dataclass("Refund", [("id", int)])
        names |= {"Refund": refund, "kafkaio": kafkaio}
        await run_block(block("OneOf(avro, refund)"), names)
        events = names["events"].value
        await events.prepare("events")
        context = SerializationContext("events", [], is_key=False)
        assert isinstance(events.serialize(refund(1), context), bytes)
        names["text"] = ORDER
        await run_block(block("compatibility.reasons"), names)
        assert re.fullmatch(r"\d+ 1\n", capsys.readouterr().out)
        names["text"] = ORDER.replace(
            '"cents", "type": "long"', '"cents", "type": "int"'
        )
        with pytest.raises(SystemExit, match="cents"):
            await run_block(block("compatibility.reasons"), names)
        names["customer_text"] = (
            '{"type": "record", "name": "Customer", "namespace": "shop", '
            '"fields": [{"name": "name", "type": "string"}]}'
        )
        names["order_text"] = (
            '{"type": "record", "name": "Order", "namespace": "shop", '
            '"fields": [{"name": "customer", "type": "shop.Customer"}]}'
        )
        await run_block(block("SchemaReference("), names)
        await names["avro"].prepare("references")
        order = await registry.latest("references-value")
        assert order.schema.references[0].name == "shop.Customer"


async def test_reaching_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REGISTRY_PASSWORD", "a secret")
    trustme.CA().cert_pem.write_to_path("ca.pem")
    names = await run_block(blocks()("registry-2.example.com"), {"Registry": Registry})
    await run_block(blocks()("Registry.from_properties"), names)
    assert "a secret" not in repr(names["registry"])
    assert "registry-1.example.com" in repr(names["registry"])


CHANGES = {
    ("Avro", "BACKWARD"): {"add", "remove"},
    ("Avro", "FORWARD"): {"add", "remove", "add without default"},
    ("Avro", "FULL"): {"add", "remove"},
    ("JsonSchema", "BACKWARD"): {"add"},
    ("JsonSchema", "FORWARD"): {"remove"},
    ("JsonSchema", "FULL"): set(),
}


@pytest.mark.parametrize(("kind", "level"), CHANGES)
async def test_which_changes_are_allowed(kind: str, level: str) -> None:
    serde: Any = {"Avro": Avro, "JsonSchema": JsonSchema}[kind]
    old = make_dataclass("Order", [("id", int)])
    new = make_dataclass(
        "Order", [("id", int), ("currency", str, field(default="EUR"))]
    )
    bare = make_dataclass("Order", [("id", int), ("currency", str)])
    changes = {
        "add": (old, new),
        "remove": (new, old),
        "add without default": (old, bare),
    }
    allowed = set()
    async with SchemaRegistry(compatibility=level) as schemas:
        registry = Registry(schemas.url)
        for subject, (before, after) in changes.items():
            await registry.register(subject, serde(before, registry).schema)
            with suppress(kafkaio.SchemaError):
                await registry.register(subject, serde(after, registry).schema)
                allowed.add(subject)
    assert allowed == CHANGES[kind, level]


async def test_readers_of_both_schemas(broker: Broker, schemas: SchemaRegistry) -> None:
    registry = Registry(schemas.url)
    names = await run_block(blocks()("# new"), {"dataclass": dataclass})
    old = kafkaio.Topic("orders", value=Avro(Order, registry))
    new: kafkaio.Topic[Any, Any] = kafkaio.Topic(
        "orders", value=Avro(names["Order"], registry)
    )
    async with kafkaio.Producer(broker.bootstrap_servers) as producer:
        await producer.send(old, Order(1, "anna", 1250))
        await producer.send(new, names["Order"](2, "ben", 50, "USD"))
    found = []
    for topic in (old, new):
        async with kafkaio.Consumer(
            broker.bootstrap_servers, topics=topic, auto_offset_reset="earliest"
        ) as consumer:
            found.append([(await anext(consumer)).value for _ in range(2)])
    assert found[0] == [Order(1, "anna", 1250), Order(2, "ben", 50)]
    assert [order.currency for order in found[1]] == ["EUR", "USD"]


async def test_tables(
    broker: Broker, schemas: SchemaRegistry, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow", exc_type=ImportError)
    topic = kafkaio.Topic("orders", value=Avro(Order, Registry(schemas.url)))
    async with kafkaio.Producer(broker.bootstrap_servers) as producer:
        await producer.send_many(topic, [Order(1, "anna", 1250), Order(2, "ben", 50)])
    block = blocks(broker)("table.flatten()")
    table = asyncio.ensure_future(
        run_block(block, {"kafkaio": kafkaio, "orders": topic})
    )
    output = ""
    while output != "1300\n":  # the block prints, and reads on
        await asyncio.sleep(0.01)
        assert not table.done(), await table
        output += capsys.readouterr().out
    table.cancel()
    await asyncio.wait([table])


# "When something fails"


Send = Callable[[kafkaio.Producer, kafkaio.Topic[Any, Any], Order], Awaitable[object]]
WAYS: dict[str, Send] = {
    "send": lambda producer, topic, order: producer.send(topic, order),
    "enqueue": lambda producer, topic, order: producer.enqueue(topic, order),
    "send_many": lambda producer, topic, order: producer.send_many(topic, [order]),
}


def take_down(schemas: SchemaRegistry, requests: str = "* *") -> RegistryRule:
    return schemas.faults.on(requests, status=503, message="down")


async def end(broker: Broker) -> int:
    async with kafkaio.Consumer(broker.bootstrap_servers, assign=[ORDERS]) as consumer:
        return (await consumer.end_offsets([ORDERS]))[ORDERS]


@pytest.mark.parametrize("way", WAYS)
async def test_sending_while_it_is_down(
    way: str, broker: Broker, schemas: SchemaRegistry
) -> None:
    registry = Registry(schemas.url, retries=0)
    topic = kafkaio.Topic("orders", value=Avro(Order, registry))
    async with kafkaio.Producer(broker.bootstrap_servers) as producer:
        down = take_down(schemas)
        with pytest.raises(kafkaio.RegistryError) as caught:
            await WAYS[way](producer, topic, Order(1, "anna", 1))
        assert caught.value.retriable
        assert caught.value.status == 503
        await producer.flush()
        assert await end(broker) == 0
        schemas.faults.remove(down)
        await WAYS[way](producer, topic, Order(2, "anna", 1))
        take_down(schemas)
        await WAYS[way](producer, topic, Order(3, "anna", 1))
        await producer.flush()
    assert await end(broker) == 2


@pytest.mark.parametrize("way", WAYS)
async def test_a_schema_that_is_refused(
    way: str, broker: Broker, schemas: SchemaRegistry
) -> None:
    registry = Registry(schemas.url)
    await registry.register(
        "orders-value",
        Schema(ORDER.replace('"cents", "type": "long"', '"cents", "type": "string"')),
    )
    topic = kafkaio.Topic("orders", value=Avro(Order, registry))
    absent = kafkaio.Topic("payments", value=Avro(Order, registry, register=False))
    async with kafkaio.Producer(broker.bootstrap_servers) as producer:
        for refused, subject in ((topic, "orders-value"), (absent, "payments-value")):
            with pytest.raises(kafkaio.SchemaError) as caught:
                await WAYS[way](producer, refused, Order(1, "anna", 1))
            assert caught.value.subject == subject
            assert not caught.value.retriable
    assert await end(broker) == 0


@pytest.mark.parametrize("way", WAYS)
async def test_a_value_that_does_not_fit(
    way: str, broker: Broker, schemas: SchemaRegistry
) -> None:
    topic = kafkaio.Topic("orders", value=Avro(Order, Registry(schemas.url)))
    wrong: Any = Order(1, "anna", "much")  # type: ignore[arg-type]
    async with kafkaio.Producer(broker.bootstrap_servers) as producer:
        with pytest.raises(kafkaio.SerializationError) as caught:
            await WAYS[way](producer, topic, wrong)
    assert caught.value.field == "cents"
    assert await end(broker) == 0


async def test_reading_while_it_is_down(
    broker: Broker, schemas: SchemaRegistry
) -> None:
    writing = kafkaio.Topic("orders", value=Avro(Order, Registry(schemas.url)))
    registry = Registry(schemas.url, retries=0)
    reading = kafkaio.Topic("orders", value=Avro(Order, registry))
    async with (
        kafkaio.Producer(broker.bootstrap_servers) as producer,
        kafkaio.Consumer(
            broker.bootstrap_servers, topics=reading, auto_offset_reset="earliest"
        ) as consumer,
    ):
        down = take_down(schemas, "GET /schemas/*")
        await producer.send(writing, Order(1, "anna", 1))
        for _ in range(2):
            with pytest.raises(kafkaio.RegistryError) as caught:
                await anext(consumer)
            assert caught.value.retriable
        assert await consumer.position(ORDERS) == 0
        schemas.faults.remove(down)
        assert (await anext(consumer)).value == Order(1, "anna", 1)
        take_down(schemas)
        await producer.send(writing, Order(2, "anna", 1))
        assert (await anext(consumer)).value == Order(2, "anna", 1)


BAD = {
    "no such id": b"\0\0\0\x30\x39\x02",
    "no format": b"two apples",
    "cut off": b"\0\0\0",
}


@pytest.mark.parametrize("name", BAD)
async def test_a_record_that_cannot_be_deserialized(
    name: str, broker: Broker, schemas: SchemaRegistry
) -> None:
    topic = kafkaio.Topic("orders", value=Avro(Order, Registry(schemas.url)))
    async with (
        kafkaio.Producer(broker.bootstrap_servers) as producer,
        kafkaio.Consumer(
            broker.bootstrap_servers, topics=topic, auto_offset_reset="earliest"
        ) as consumer,
    ):
        await producer.send("orders", BAD[name])
        await producer.send(topic, Order(2, "anna", 1))
        is_unknown = name == "no such id"
        cause = kafkaio.SchemaError if is_unknown else kafkaio.SerializationError
        for again in (False, True):
            with pytest.raises(kafkaio.DeserializationError) as caught:
                await anext(consumer)
            error = caught.value
            assert error.record.value == BAD[name]
            assert type(error.__cause__) is cause
            if again:
                consumer.seek(error.topic_partition, error.next_offset)
        assert (await anext(consumer)).value == Order(2, "anna", 1)
    asked = [r for r in schemas.requests if r.path == "/schemas/ids/12345"]
    assert len(asked) == is_unknown  # it is remembered


async def test_a_login_that_is_refused(broker: Broker) -> None:
    async with SchemaRegistry(users={"alice": "secret"}) as schemas:
        registry = Registry(schemas.url)
        topic = kafkaio.Topic("orders", value=Avro(Order, registry))
        async with (
            kafkaio.Producer(broker.bootstrap_servers) as producer,
            kafkaio.Consumer(
                broker.bootstrap_servers, topics=topic, auto_offset_reset="earliest"
            ) as consumer,
        ):
            with pytest.raises(kafkaio.RegistryError) as refused:
                await producer.send(topic, Order(1, "anna", 1))
            assert refused.value.status == 401
            assert not refused.value.retriable
            with pytest.raises(kafkaio.RegistryError, match="401"):
                await registry.latest("orders-value")  # as a consumer does at its start
            await producer.send("orders", BAD["no such id"])
            for _ in range(2):  # it is tried again, and no record is to blame
                with pytest.raises(kafkaio.RegistryError, match="401"):
                    await anext(consumer)
            assert await consumer.position(kafkaio.TopicPartition("orders", 0)) == 0


async def test_an_expired_password_sends_nothing_to_the_dead_letter(
    broker: Broker,
) -> None:
    dead: list[kafkaio.Record] = []
    done = asyncio.Event()
    asked: list[int] = []

    class Passwords:
        """What a program does that gets a new password in the meantime."""

        def __init__(self) -> None:
            self.inner = Avro(Order, Registry(schemas.url))

        def serialize(self, value: Order, context: SerializationContext) -> bytes:
            raise NotImplementedError

        async def deserialize(
            self, data: bytes, context: DeserializationContext
        ) -> Order:
            asked.append(1)
            if len(asked) == 3:
                right = Registry(schemas.url, basic_auth=("alice", "secret"))
                self.inner = Avro(Order, right)
            found = self.inner.deserialize(data, context)
            return found if isinstance(found, Order) else await found

    async with SchemaRegistry(users={"alice": "secret"}) as schemas:
        right = Registry(schemas.url, basic_auth=("alice", "secret"))
        writing = kafkaio.Topic("orders", value=Avro(Order, right))
        async with kafkaio.Producer(broker.bootstrap_servers) as producer:
            await producer.send(writing, Order(1, "anna", 1))

        async def handle(record: kafkaio.Record[bytes | None, Order]) -> None:
            assert record.value == Order(1, "anna", 1)
            done.set()

        async def bury(record: kafkaio.Record, _: Exception) -> None:
            dead.append(record)

        async with kafkaio.Consumer(
            broker.bootstrap_servers,
            topics=kafkaio.Topic("orders", value=Passwords()),
            auto_offset_reset="earliest",
            group_id="passwords",
        ) as consumer:
            running = asyncio.create_task(consumer.run(handle, dead_letter=bury))
            await done.wait()
            await consumer.close()
            await running
        assert not dead
        assert len(asked) >= 3


async def test_run_waits_for_the_registry_and_leaves_out_what_is_broken(
    broker: Broker, schemas: SchemaRegistry
) -> None:
    writing = kafkaio.Topic("orders", value=Avro(Order, Registry(schemas.url)))
    registry = Registry(schemas.url, retries=0)
    reading = kafkaio.Topic("orders", value=Avro(Order, registry))
    retrying = asyncio.Event()
    seen: list[int] = []
    both = asyncio.Event()

    class Observer:
        def retrying(self, *facts: object) -> None:
            if any(isinstance(fact, kafkaio.RegistryError) for fact in facts):
                retrying.set()

    async def handle(record: kafkaio.Record[Any, Order]) -> None:
        seen.append(record.value.id)
        if len(seen) == 2:
            both.set()

    down = take_down(schemas, "GET /schemas/*")
    async with (
        kafkaio.Producer(broker.bootstrap_servers) as producer,
        kafkaio.Consumer(
            broker.bootstrap_servers,
            topics=reading,
            group_id="billing",
            auto_offset_reset="earliest",
            observer=Observer(),
        ) as consumer,
        kafkaio.Consumer(
            broker.bootstrap_servers, topics="orders.dead", auto_offset_reset="earliest"
        ) as dead,
        asyncio.TaskGroup() as tasks,
    ):
        await producer.send(writing, Order(1, "anna", 1))
        await producer.send("orders", b"two apples")
        await producer.send(writing, Order(3, "anna", 1))
        letters = kafkaio.DeadLetter(producer, "orders.dead")
        tasks.create_task(consumer.run(handle, dead_letter=letters))
        await retrying.wait()
        assert seen == []
        schemas.faults.remove(down)
        assert (await anext(dead)).value == b"two apples"
        await both.wait()
        assert sorted(seen) == [1, 3]
        await consumer.close()
