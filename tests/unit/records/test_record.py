"""The record class: the compiled one behaves as the typed one does."""

from __future__ import annotations

import copy
import copyreg
import dataclasses
import gc
import pickle
import sys
import weakref
from types import ModuleType
from typing import Any

import pytest

import kafkaio
from kafkaio._records import _impl
from kafkaio._records._layout import Origin
from kafkaio.types import Record as TypedRecord, TimestampType, TopicPartition
from tests.unit.records.strategies import field, origin, record, varint

FIELDS = {
    "topic": "orders",
    "partition": 3,
    "offset": 2**40,
    "timestamp": 1_700_000_000_000,
    "key": b"key",
    "value": b"value",
    "headers": (("name", b"1"), ("other", None)),
    "timestamp_type": TimestampType.LOG_APPEND,
    "leader_epoch": 7,
}


def decoded(codec: ModuleType, data: bytes, **changes: object) -> TypedRecord:
    at: Origin = origin(**changes)
    (made,) = codec.decode_records(data, 0, 1, at)
    return made


def test_made_by_keyword_has_its_fields(codec: ModuleType) -> None:
    made = codec.Record(**FIELDS)
    assert {name: getattr(made, name) for name in FIELDS} == FIELDS
    assert made.topic_partition == TopicPartition("orders", 3)


def test_defaults(codec: ModuleType) -> None:
    made = codec.Record("orders", 3, 5, -1, None, None)
    assert (made.headers, made.timestamp_type, made.leader_epoch) == (
        (),
        TimestampType.CREATE,
        -1,
    )


def test_missing_and_unknown_fields(codec: ModuleType) -> None:
    with pytest.raises(TypeError):
        codec.Record("orders", 3, 5)
    with pytest.raises(TypeError):
        codec.Record(**FIELDS, colour="red")


def test_decoded_is_equal_to_made(twins: tuple[ModuleType, ModuleType]) -> None:
    headers = varint(2) + field(b"name") + field(b"1") + field(b"b") + field(None)
    data = record(key=b"k", headers=headers)
    records = [
        made
        for codec in twins
        for made in (
            decoded(codec, data),
            codec.Record(
                "orders",
                3,
                100,
                1_700_000_000_000,
                b"k",
                b"v",
                (("name", b"1"), ("b", None)),
                TimestampType.CREATE,
                5,
            ),
        )
    ]
    assert all(one == other for one in records for other in records)
    assert len({hash(made) for made in records}) == 1
    assert len({repr(made) for made in records}) == 1


@pytest.mark.parametrize("name", FIELDS)
def test_each_field_tells_records_apart(codec: ModuleType, name: str) -> None:
    other = {"topic": "x", "key": b"x", "value": None, "headers": ()}.get(name, 2)
    assert codec.Record(**FIELDS) != codec.Record(**FIELDS | {name: other})


def test_is_unlike_anything_else(codec: ModuleType) -> None:
    made = codec.Record(**FIELDS)
    assert made != tuple(FIELDS.values())
    assert (made == None) is False  # noqa: E711 - the operator itself is tested


def test_repr_names_every_field(codec: ModuleType) -> None:
    text = ", ".join(f"{name}={value!r}" for name, value in FIELDS.items())
    assert repr(codec.Record(**FIELDS)) == f"Record({text})"


@pytest.mark.parametrize("name", FIELDS)
def test_is_frozen(codec: ModuleType, name: str) -> None:
    made = codec.Record(**FIELDS)
    with pytest.raises(dataclasses.FrozenInstanceError, match=f"field '{name}'"):
        setattr(made, name, FIELDS[name])
    with pytest.raises(dataclasses.FrozenInstanceError, match=f"field '{name}'"):
        delattr(made, name)
    assert getattr(made, name) == FIELDS[name]


def test_takes_no_other_attribute(codec: ModuleType) -> None:
    made = codec.Record(**FIELDS)
    with pytest.raises((dataclasses.FrozenInstanceError, TypeError)):
        made.colour = "red"
    assert not hasattr(made, "__dict__")


def test_matches(codec: ModuleType) -> None:
    match codec.Record(**FIELDS):
        case codec.Record(topic, 3, value=b"value"):
            assert topic == "orders"
        case _:
            pytest.fail("it did not match")
    match codec.Record(**FIELDS):
        case TypedRecord(key=key):
            assert key == b"key"
        case _:
            pytest.fail("it did not match the typed class")


def test_is_an_instance_of_the_typed_class(codec: ModuleType) -> None:
    assert isinstance(codec.Record(**FIELDS), TypedRecord)
    assert not isinstance(b"", TypedRecord)


def test_works_as_a_dataclass(codec: ModuleType) -> None:
    made = codec.Record(**FIELDS)
    assert dataclasses.asdict(made) == FIELDS
    assert dataclasses.replace(made, key=b"x") == codec.Record(**FIELDS | {"key": b"x"})
    assert type(dataclasses.replace(made, offset=1)) is codec.Record
    if sys.version_info >= (3, 13):
        assert copy.replace(made, offset=1).offset == 1


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickled_is_of_the_class_of_this_process(
    codec: ModuleType, protocol: int
) -> None:
    made = codec.Record(**FIELDS)
    again = pickle.loads(pickle.dumps(made, protocol))
    assert again == made
    assert type(again) is _impl.Record is kafkaio.Record


def test_copied(codec: ModuleType) -> None:
    made = decoded(codec, record(key=b"k"))
    assert copy.copy(made) == copy.deepcopy(made) == made


def test_decoded_fields_are_exact_and_shared(codec: ModuleType) -> None:
    data = record(key=b"a long key") + record(value=None, offset_delta=1)
    first, second = codec.decode_records(data, 0, 2, origin())
    assert type(first.key) is bytes
    assert first.key == b"a long key"
    assert second.value is None
    assert first.topic is second.topic


def test_keeps_no_more_than_itself(codec: ModuleType) -> None:
    data = record(key=b"k", value=b"v" * 100)
    before = sys.getrefcount(data)
    made = decoded(codec, data)
    assert sys.getrefcount(data) == before
    assert made.value == b"v" * 100


def test_a_compiled_record_is_not_tracked_by_the_collector(
    twins: tuple[ModuleType, ModuleType],
) -> None:
    made = decoded(twins[1], record())
    assert not gc.is_tracked(made)
    assert sys.getsizeof(made) <= 80


def test_headers_are_not_bytes(twins: tuple[ModuleType, ModuleType]) -> None:
    with pytest.raises(TypeError, match="not bytes"):
        twins[1].Record(**FIELDS | {"headers": b"\2\2a"})


class Thing:
    """What a deserializer may return."""


def test_converted(codec: ModuleType) -> None:
    made = codec.Record(**FIELDS)
    changed = codec.converted(made, "key", {"a": 1})
    assert (changed.key, changed.value) == ("key", {"a": 1})
    expected = FIELDS | {"key": "key", "value": {"a": 1}}
    assert dataclasses.asdict(changed) == expected
    assert changed == codec.Record(**expected)
    assert repr(changed) == repr(codec.Record(**expected))
    assert made == codec.Record(**FIELDS)
    assert isinstance(changed, codec.Record)
    assert codec.converted(changed, b"key", b"value") == made


def test_converted_is_frozen_and_pickled(codec: ModuleType) -> None:
    changed = codec.converted(codec.Record(**FIELDS), "key", {"a": 1})
    with pytest.raises(dataclasses.FrozenInstanceError):
        changed.value = 1
    again = pickle.loads(pickle.dumps(changed))
    assert again == changed
    assert isinstance(again, kafkaio.Record)
    assert copy.deepcopy(changed) == changed


def test_cycle_through_a_converted_record_is_collected(codec: ModuleType) -> None:
    thing = Thing()
    thing.record = codec.converted(codec.Record(**FIELDS), None, thing)  # type: ignore[attr-defined]
    gone = weakref.ref(thing)
    del thing
    gc.collect()
    assert gone() is None


def test_sizes_as_they_were_serialized(codec: ModuleType) -> None:
    def sizes(record: Any) -> tuple[int, int]:
        return record.serialized_key_size, record.serialized_value_size

    made = codec.Record(**FIELDS | {"key": b"key", "value": b""})
    assert sizes(made) == (3, 0)
    assert sizes(codec.Record("orders", 3, 5, -1, None, None)) == (-1, -1)
    assert sizes(decoded(codec, record(key=b"k"))) == (1, 1)
    changed = codec.converted(made, "some key", [1, 2])
    assert sizes(changed) == sizes(codec.converted(changed, None, None)) == (3, 0)
    for copied in (pickle.loads(pickle.dumps(changed)), copy.deepcopy(changed)):
        assert (copied, sizes(copied)) == (changed, (3, 0))
    assert sizes(codec.converted(made, 1, 2, (7, 8))) == (7, 8)
    # Of a pickle from before there were sizes.
    rebuild, fields = copyreg.dispatch_table[TypedRecord](changed)
    assert sizes(rebuild(*fields[:9])) == (-1, -1)


#: Names that follow one another, some alike in length, first and last byte.
NAMES = [
    b"trace",
    b"trqce",
    b"trace",
    b"",
    b"t",
    b"\xc3\xa4",
    b"\xc3\xa5",
    b"t\xffe",
    b"t\xfee",
    b"trace\0",
    b"n" * 48,
    b"n" * 49,
    b"n" * 20 + b"m" + b"n" * 27,
]


def test_names_of_headers_are_those_in_the_bytes(codec: ModuleType) -> None:
    for names in (NAMES, NAMES[::-1], NAMES * 3):
        headers = varint(len(names)) + b"".join(
            field(name) + field(b"%d" % number) for number, name in enumerate(names)
        )
        data = record(key=b"k", headers=headers)
        (made,) = codec.decode_records(data, 0, 1, origin())
        for _ in range(2):
            assert made.headers == tuple(
                (name.decode(errors="replace"), b"%d" % number)
                for number, name in enumerate(names)
            )
