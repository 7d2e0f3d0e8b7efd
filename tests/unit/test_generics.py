"""Classes with types of keys and values, at run time."""

from __future__ import annotations

import copy
import inspect
import pickle
import subprocess
import sys
from typing import Any, Generic, TypeVar, get_args, get_origin, get_type_hints

import pytest

import kafkaio
from kafkaio import types
from kafkaio._consumer.parallel.dead_letter import through
from kafkaio._records._impl import converted
from kafkaio.errors import ConfigurationError

GENERIC = [
    *("Batch", "BatchIterator", "Consumer", "Lane", "LaneBatches", "LaneIterator"),
    *("NewRecord", "Poll", "Producer", "Record", "Topic", "Transaction"),
]
T = TypeVar("T")


class Order:
    pass


def dump(value: Order) -> bytes:
    return b""


def load(data: bytes) -> Order:
    return Order()


@pytest.mark.parametrize("name", GENERIC)
def test_a_class_takes_types(name: str) -> None:
    kind = getattr(kafkaio, name)
    alias = kind[bytes, Order]
    assert get_origin(alias) is kind
    assert get_args(alias) == (bytes, Order)
    assert kind[T, Order][bytes] == alias
    assert repr(alias).startswith(f"kafkaio.{name}[bytes, ")
    assert pickle.loads(pickle.dumps(alias)) == alias
    assert copy.deepcopy(alias) == alias


def test_types_in_annotations_are_found() -> None:
    def handle(record: kafkaio.Record[str, Order]) -> kafkaio.Poll[str, T]:
        raise NotImplementedError

    hints = get_type_hints(handle)
    assert hints["record"] == kafkaio.Record[str, Order]
    assert hints["return"] == kafkaio.Poll[str, T]
    assert inspect.signature(handle, eval_str=True).return_annotation == hints["return"]


@pytest.mark.parametrize("kind", [kafkaio.Record, types.Record])
def test_a_record_is_made_by_a_class_with_types(kind: Any) -> None:
    record = kind[str, bytes]("t", 0, 1, 2, "k", b"v")
    assert record == kind("t", 0, 1, 2, "k", b"v")
    assert isinstance(record, kind)
    assert isinstance(record, types.Record)
    assert record != kind("t", 0, 1, 2, "k", b"w")


def test_a_record_of_objects_is_pickled() -> None:
    plain = kafkaio.Record("t", 0, 1, 2, None, None)
    record = converted(plain, "key", frozenset([1]))
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(record, protocol)) == record
    assert type(record)[str, int] is not None


def test_frozen_values_are_made_by_classes_with_types() -> None:
    new = kafkaio.NewRecord[str, Order](Order(), key="k")
    assert new.key == "k"
    assert kafkaio.Poll[bytes, bytes]([]).records == []


def test_clients_are_made_by_classes_with_types() -> None:
    producer = kafkaio.Producer[bytes, Order]("a:1", value_serializer=dump)
    assert type(producer) is kafkaio.Producer
    assert producer.config.value_serializer is dump
    consumer = kafkaio.Consumer[bytes, Order]("a:1", value_deserializer=load)
    assert type(consumer) is kafkaio.Consumer


def test_classes_are_derived_from() -> None:
    class Orders(kafkaio.Consumer[bytes, Order]):
        pass

    class Typed(kafkaio.Producer[bytes, T], Generic[T]):
        pass

    assert isinstance(Orders("a:1"), kafkaio.Consumer)
    assert Orders.__mro__[1] is kafkaio.Consumer
    assert isinstance(Typed[Order]("a:1"), Typed)


def test_no_code_needs_typing_extensions() -> None:
    code = (
        "import sys; sys.modules['typing_extensions'] = None\n"
        "import kafkaio, kafkaio.serde\n"
        "kafkaio.Producer[bytes, int]; kafkaio.Consumer; kafkaio.Topic"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# ---- (de)serializers beside options --------------------------------------------------


def test_serializers_by_keyword() -> None:
    properties = {"bootstrap.servers": "a:1", "value.serializer": repr}
    made = kafkaio.Producer[str, Order].from_properties(
        properties, key_serializer=str.encode, value_serializer=dump
    )
    assert made.config.key_serializer is str.encode
    assert made.config.value_serializer is dump
    assert properties["value.serializer"] is repr
    kept = kafkaio.Producer.from_properties(properties)
    assert kept.config.value_serializer is repr


async def test_deserializers_by_keyword() -> None:
    consumer = kafkaio.Consumer[bytes, Order].from_properties(
        {"bootstrap.servers": "a:1"}, value_deserializer=load
    )
    assert consumer._config.value_deserializer is load
    assert consumer._config.key_deserializer is None


@pytest.mark.parametrize("kind", [kafkaio.Producer, kafkaio.Consumer])
def test_properties_that_are_no_mapping(kind: Any) -> None:
    name = "value_serializer" if kind is kafkaio.Producer else "value_deserializer"
    with pytest.raises(ConfigurationError, match="must be a mapping, not list"):
        kind.from_properties([], **{name: str})


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (kafkaio.Producer, "key_serializer"),
        (kafkaio.Producer, "value_serializer"),
        (kafkaio.Consumer, "key_deserializer"),
        (kafkaio.Consumer, "value_deserializer"),
    ],
)
def test_a_function_is_checked_as_an_option(kind: Any, name: str) -> None:
    for value in (7, "", b"", [], ()):
        with pytest.raises(ConfigurationError, match=f"^{name}"):
            kind("a:1", **{name: value})
    with pytest.raises(ConfigurationError, match=name.replace("_", ".")[:3]):
        kind.from_properties({"bootstrap.servers": "a:1"}, **{name: 7})
    assert kind("a:1", **{name: None}) is not None
    parameters = inspect.signature(kind).parameters
    assert parameters[name].default is None
    assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY


# ---- dead letters --------------------------------------------------------------------


class Sent:
    """A transaction that keeps what is sent in it."""

    def __init__(self) -> None:
        self.sent: list[tuple[object, ...]] = []

    async def send(self, topic: Any, value: Any, *, key: Any, headers: Any) -> None:
        self.sent.append((topic, value, key, headers))


async def test_a_dead_letter_in_a_transaction_stays_bytes() -> None:
    tx: Any = Sent()
    letter = kafkaio.DeadLetter(tx, "dead")
    record = kafkaio.Record("t", 0, 1, 2, b"k", b"v", (("h", b"x"),))
    await through(tx, letter)(record, ValueError("no"))
    ((topic, value, key, headers),) = tx.sent
    assert (topic.name, topic.key, topic.value) == ("dead", None, None)
    assert (value, key) == (b"v", b"k")
    assert headers[0] == ("h", b"x")
    assert dict(headers)["dead-letter-error"] == b"builtins.ValueError"
