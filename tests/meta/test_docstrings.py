"""The code in docstrings runs as it stands; what needs a real Kafka does so elsewhere.

Those are run by ``tests/integration/test_docstrings.py``; here their names are checked.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Annotated, NamedTuple

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

import kafkaio
from kafkaio._client.retry import Attempts, RetryPolicy
from kafkaio._machines.backoff import Backoff
from kafkaio._runtime.observer import guarded
from kafkaio.errors import ConnectionLost, KafkaError
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.registry import Registry, Schema
from kafkaio.serde import DeserializationContext, SerializationContext
from kafkaio.testing import Broker, RegistryRule, SchemaRegistry
from kafkaio.testing._broker import faults
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import topic_factory
from tests import sim
from tests.docstrings import blocks, run
from tests.support.java import JavaProgram, Toolbox
from tests.support.registries import FakeRegistry

BLOCKS = dict(blocks())
#: What is drawn, and is no code.
DIAGRAMS = {
    "kafkaio._config.jaas",
    "kafkaio._machines.membership.ledger",
    "kafkaio._machines.offsets",
    "kafkaio._machines.positions.positions",
    "kafkaio._machines.sasl.exchange",
    "kafkaio._machines.sasl.gssapi",
    "kafkaio._machines.sasl.scram",
    "kafkaio._machines.schedule",
    "kafkaio._client.fanout",
    "kafkaio.errors",
}
#: What needs a real Kafka, and the classes of the names in it.
ON_KAFKA: dict[str, dict[str, object]] = {
    "kafkaio.testing.kafka._kafka:Kafka": {"kafka": Kafka, "kafkaio": kafkaio},
    "kafkaio._producer.producer:Producer.transaction": {"producer": kafkaio.Producer},
    "tests.support.java:JavaProgram": {"program": JavaProgram, "toolbox": Toolbox},
}
RUN: dict[str, Callable[[str, Broker, pytest.FixtureRequest], Awaitable[None]]] = {}


def runs(
    name: str,
) -> Callable[[Callable[[str, Broker, pytest.FixtureRequest], Awaitable[None]]], None]:
    return partial(RUN.__setitem__, name)


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(nodes=3) as broker:
        yield broker


@runs("kafkaio._topic:Topic")
async def _(code: str, broker: Broker, request: pytest.FixtureRequest) -> None:
    sent: list[object] = []

    class Recorder:
        async def send(self, *arguments: object, key: bytes) -> None:
            sent.extend([*arguments, key])

    names = {"kafkaio": kafkaio, "Order": Order, "producer": Recorder()}
    await run(code, {**names, "Json": lambda kind: OrderSerde()})
    topic, *rest = sent
    assert isinstance(topic, kafkaio.Topic)
    assert isinstance(topic.value, OrderSerde)
    assert rest == [Order(7), b"customer-7"]


@runs("kafkaio.arrow:read_batches_async")
async def _(code: str, broker: Broker, request: pytest.FixtureRequest) -> None:
    arrow = pytest.importorskip("kafkaio.arrow", exc_type=ImportError)
    broker.create_topic("orders")
    async with kafkaio.Producer(broker.bootstrap_servers) as producer:
        await producer.send("orders", b"one")
    counts: list[int] = []
    names = {"read_batches_async": arrow.read_batches_async, "print": counts.append}
    await run(code.replace("localhost:9092", broker.bootstrap_servers), names)
    assert counts == [1]


@runs("kafkaio._client.retry")
async def _(code: str, broker: Broker, request: pytest.FixtureRequest) -> None:
    answers = [ConnectionLost("once"), None]
    reasons: list[KafkaError] = []

    async def ask() -> KafkaError | None:
        return answers.pop(0)

    policy = RetryPolicy(Backoff(1, 1), guarded(None))
    names = {"Attempts": Attempts, "policy": policy, "ask": ask}
    await run(code, {**names, "forget_what_was_wrong": reasons.append})
    assert len(reasons) == 1
    assert answers == []


@runs("kafkaio.protocol.messages")
async def _(code: str, broker: Broker, request: pytest.FixtureRequest) -> None:
    names: dict[str, object] = {"messages": kafkaio.messages}
    await run(code, names)
    assert isinstance(names["request"], kafkaio.messages.OffsetFetchRequest)
    async with kafkaio.Client(broker.bootstrap_servers) as client:
        to = kafkaio.GroupCoordinator("billing")
        reply = await client.request(names["request"], to=to)
        assert [group.error_code for group in reply.groups] == [0]


class Order(NamedTuple):
    number: int


class OrderSerde:
    def serialize(self, value: Order, context: SerializationContext) -> bytes:
        return str(value.number).encode()

    def deserialize(self, data: bytes, context: DeserializationContext) -> Order:
        return Order(int(data))


@runs("kafkaio.registry._client:Registry")
async def _(code: str, broker: Broker, request: pytest.FixtureRequest) -> None:
    async with FakeRegistry() as fake:
        names = {"Registry": Registry, "Schema": Schema, "text": '"string"'}
        await run(code.replace("http://localhost:8081", fake.url), names)
        assert [asked.path for asked in fake.asked] == [
            *("/subjects/orders-value/versions", "/subjects/orders-value"),
        ]


@dataclass
class Purchase:
    number: int


@dataclass
class Refund:
    number: int


def _runs_with_a_registry(place: str, serde: str, kinds: dict[str, object]) -> None:
    @runs(place)
    async def _(code: str, broker: Broker, request: pytest.FixtureRequest) -> None:
        names = {"Registry": Registry, "kafkaio": kafkaio, **kinds}
        names[serde] = getattr(kafkaio.registry, serde)
        await run(code, names)
        assert isinstance(names["orders"], kafkaio.Topic)


_runs_with_a_registry("kafkaio.registry._avro:Avro", "Avro", {"Order": Purchase})
_runs_with_a_registry(
    "kafkaio.registry._json:JsonSchema", "JsonSchema", {"Order": Purchase}
)
_runs_with_a_registry(
    "kafkaio.registry._protobuf:Protobuf", "Protobuf", {"OrderMessage": Timestamp}
)


@runs("kafkaio.registry._one_of:OneOf")
async def _(code: str, broker: Broker, request: pytest.FixtureRequest) -> None:
    names: dict[str, object] = {"Created": Purchase, "Cancelled": Refund}
    names |= {
        name: getattr(kafkaio.registry, name) for name in kafkaio.registry.__all__
    }
    names |= {"kafkaio": kafkaio, "registry": Registry("http://localhost:8081")}
    await run(code, names)
    assert isinstance(names["orders"], kafkaio.Topic)


@runs("kafkaio.registry._avro_classes:AvroAs")
async def _(code: str, broker: Broker, request: pytest.FixtureRequest) -> None:
    names: dict[str, object] = {"Annotated": Annotated, "Decimal": Decimal}
    names |= {"AvroAs": kafkaio.registry.AvroAs, "decimal": kafkaio.registry.decimal}
    await run(code, names)


@runs("kafkaio.testing._broker.faults")
async def _(code: str, broker: Broker, request: pytest.FixtureRequest) -> None:
    names = {k: v for k, v in vars(faults).items() if not k.startswith("_")}
    await run(code, {**names, "broker": broker, "ErrorCode": ErrorCode})


@runs("kafkaio.testing._embedded:Broker")
async def _(code: str, broker: Broker, request: pytest.FixtureRequest) -> None:
    await run(code, {"Broker": Broker, "kafkaio": kafkaio})


@runs("kafkaio.testing._schema_registry:SchemaRegistry")
async def _(code: str, broker: Broker, request: pytest.FixtureRequest) -> None:
    names: dict[str, object] = {"SchemaRegistry": SchemaRegistry, "Schema": Schema}
    await run(code, names)
    assert str(names["url"]).startswith("http://127.0.0.1:")


@runs("kafkaio.testing._registry.faults:RegistryFaults.on")
async def _(code: str, broker: Broker, request: pytest.FixtureRequest) -> None:
    names: dict[str, object] = {"registry": SchemaRegistry()}
    await run(code, names)
    assert isinstance(names["hanging"], RegistryRule)


@runs("kafkaio.testing.pytest_plugin")
async def _(code: str, broker: Broker, request: pytest.FixtureRequest) -> None:
    names: dict[str, object] = {}
    await run(code, names)
    at = broker.bootstrap_servers
    broker.create_topic("orders")
    async with (
        kafkaio.Producer(at) as producer,
        kafkaio.Consumer(at, topics="orders", auto_offset_reset="earliest") as consumer,
    ):
        test = names["test_orders"]
        assert callable(test)
        await test(producer, consumer, "orders")


@runs("kafkaio.testing.pytest_plugin:kafka_topics")
async def _(code: str, broker: Broker, request: pytest.FixtureRequest) -> None:
    names: dict[str, object] = {"kafka_topics": topic_factory(broker, request)}
    await run(code, names)
    assert isinstance(names["name"], str)


@runs("tests.sim")
async def _(code: str, broker: Broker, request: pytest.FixtureRequest) -> None:
    def simulate(*args: object, **options: object) -> sim.Report:
        inspect.signature(sim.simulate).bind(*args, **options)
        return sim.Report(())  # the hundred hours take minutes

    names = {name: getattr(sim, name) for name in sim.__all__}
    await run(code, {**names, "simulate": simulate})


def test_every_block_is_known() -> None:
    assert sorted(name for name, _ in blocks()) == sorted([*RUN, *DIAGRAMS, *ON_KAFKA])


@pytest.mark.parametrize("name", sorted(RUN))
async def test_it_runs(
    name: str, broker: Broker, request: pytest.FixtureRequest
) -> None:
    await RUN[name](BLOCKS[name], broker, request)


@pytest.mark.parametrize("name", sorted(DIAGRAMS))
def test_a_diagram_is_no_code(name: str) -> None:
    with pytest.raises(SyntaxError):
        ast.parse(BLOCKS[name])


@pytest.mark.parametrize("name", sorted(ON_KAFKA))
def test_what_needs_a_real_kafka_names_what_there_is(name: str) -> None:
    checked = 0
    for node in ast.walk(ast.parse(BLOCKS[name])):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = ON_KAFKA[name].get(node.value.id)
            if owner is not None:
                assert hasattr(owner, node.attr), f"{node.value.id}.{node.attr}"
                checked += 1
    assert checked
