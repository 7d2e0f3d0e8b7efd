"""The serdes that write what Kafka's own serializers for Java write."""

from __future__ import annotations

import math
import struct
from contextlib import suppress
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, strategies as st

from kafkaio.errors import ArgumentTypeError, ArgumentValueError, SerializationError
from kafkaio.serde import (
    Boolean,
    Bytes,
    DeserializationContext,
    Double,
    Float,
    Integer,
    Long,
    SerializationContext,
    Short,
    String,
    Uuid,
    nullable,
    of,
)

WRITING = SerializationContext("t", [], is_key=False)
READING = DeserializationContext("t", [], is_key=False)

SERDES = {
    "short": Short(),
    "integer": Integer(),
    "long": Long(),
    "float": Float(),
    "double": Double(),
    "boolean": Boolean(),
    "uuid": Uuid(),
    "string": String(),
    "bytes": Bytes(),
}
#: What Java's serializers made: tests/integration/test_serde_java.py asks them again.
VECTORS: list[tuple[str, Any, str]] = [
    ("short", 1, "0001"),
    ("short", -2, "fffe"),
    ("short", 32767, "7fff"),
    ("short", -32768, "8000"),
    ("integer", 1, "00000001"),
    ("integer", -2, "fffffffe"),
    ("integer", 2147483647, "7fffffff"),
    ("integer", -2147483648, "80000000"),
    ("long", 1, "0000000000000001"),
    ("long", -2, "fffffffffffffffe"),
    ("long", 9223372036854775807, "7fffffffffffffff"),
    ("long", -9223372036854775808, "8000000000000000"),
    ("float", 1.5, "3fc00000"),
    ("float", -0.0, "80000000"),
    ("float", math.inf, "7f800000"),
    ("double", 1.5, "3ff8000000000000"),
    ("double", 0.1, "3fb999999999999a"),
    ("double", -math.inf, "fff0000000000000"),
    ("boolean", True, "01"),
    ("boolean", False, "00"),
    (
        "uuid",
        UUID("123e4567-e89b-12d3-a456-426614174000"),
        b"123e4567-e89b-12d3-a456-426614174000".hex(),
    ),
    ("string", "Zürich €", "5ac3bc7269636820e282ac"),
    ("string", "", ""),
    ("bytes", b"\x00\xff", "00ff"),
]


@pytest.mark.parametrize(("name", "value", "written"), VECTORS)
def test_the_bytes_are_those_of_java(name: str, value: Any, written: str) -> None:
    serde: Any = SERDES[name]
    assert serde.serialize(value, WRITING).hex() == written
    read = serde.deserialize(bytes.fromhex(written), READING)
    assert read == value
    assert type(read) is type(value)


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "short": st.integers(-(2**15), 2**15 - 1),
    "integer": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "boolean": st.booleans(),
    "uuid": st.uuids(),
    "string": st.text(),
    "bytes": st.binary(),
}


@pytest.mark.parametrize("name", SERDES)
@given(data=st.data())
def test_what_is_written_is_read(name: str, data: st.DataObject) -> None:
    serde: Any = SERDES[name]
    value = data.draw(VALUES[name])
    assert serde.deserialize(serde.serialize(value, WRITING), READING) == value


@pytest.mark.parametrize("name", SERDES)
@given(data=st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(name: str, data: bytes) -> None:
    serde: Any = SERDES[name]
    with suppress(SerializationError):
        value = serde.deserialize(data, READING)
        again = serde.serialize(value, WRITING)
        # NaN has several forms, and a UUID may be in capitals.
        assert again == data or value != value or again == data.lower()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("short", 2**15), ("short", -(2**15) - 1), ("integer", 2**31)),
        *(("long", 2**63), ("float", 1e39), ("double", 10**400)),
        *(("short", True), ("long", "1"), ("long", 1.0), ("double", "1")),
        *(("boolean", 1), ("uuid", str(UUID(int=1))), ("string", b"a")),
        *(("bytes", "a"), ("string", "\ud800"), ("double", False)),
    ],
)
def test_a_value_that_does_not_fit_is_refused(name: str, value: object) -> None:
    serde: Any = SERDES[name]
    with pytest.raises(SerializationError, match=r"\(\)"):
        serde.serialize(value, WRITING)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        *(
            ("short", b"\0"),
            ("integer", b"\0" * 5),
            ("long", b""),
            ("float", b"\0" * 8),
        ),
        *(("double", b"\0" * 4), ("boolean", b""), ("boolean", b"\2")),
        *(("uuid", b"1" * 35), ("uuid", b"x" * 36), ("string", b"\xff")),
    ],
)
def test_bytes_of_something_else_are_refused(name: str, data: bytes) -> None:
    serde: Any = SERDES[name]
    with pytest.raises(SerializationError):
        serde.deserialize(data, READING)


def test_nan_is_written_as_java_writes_it() -> None:
    assert Double().serialize(math.nan, WRITING).hex() == "7ff8000000000000"
    assert math.isnan(Float().deserialize(struct.pack(">f", math.nan), READING))


def test_an_integer_is_a_number() -> None:
    assert Double().serialize(1, WRITING) == Double().serialize(1.0, WRITING)


def test_bytes_of_other_kinds_are_taken() -> None:
    assert Bytes().serialize(bytearray(b"ab"), WRITING) == b"ab"  # type: ignore[arg-type]
    view = memoryview(b"ab")
    assert type(Bytes().serialize(view, WRITING)) is bytes  # type: ignore[arg-type]


def test_a_string_has_an_encoding() -> None:
    latin = String(encoding="latin-1")
    assert latin.serialize("é", WRITING) == b"\xe9"
    assert latin.deserialize(b"\xe9", READING) == "é"
    assert repr(latin) == "String('latin-1')"
    with pytest.raises(SerializationError, match="character at 1"):
        latin.serialize("a€", WRITING)
    with pytest.raises(ArgumentValueError, match="klingon"):
        String("klingon")


def test_two_functions_make_a_serde() -> None:
    amounts = of(lambda amount: b"%d" % amount, int)
    assert amounts.serialize(5, WRITING) == b"5"
    assert amounts.deserialize(b"5", READING) == 5
    with pytest.raises(ValueError, match="invalid literal"):
        amounts.deserialize(b"x", READING)


def test_the_functions_of_a_serde_are_checked() -> None:
    async def later(value: bytes) -> bytes:
        return value

    with pytest.raises(ArgumentTypeError, match="deserialize is a coroutine function"):
        of(bytes, later)
    with pytest.raises(ArgumentTypeError, match="serialize must be a function"):
        of(5, bytes)  # type: ignore[arg-type]


def test_nullable_changes_the_type_alone() -> None:
    serde = Long()
    assert nullable(serde) is serde  # type: ignore[comparison-overlap]
