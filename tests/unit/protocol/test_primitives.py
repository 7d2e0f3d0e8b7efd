"""Numbers, strings and tags."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest
from hypothesis import given, strategies as st

from kafkaio.errors import ProtocolError
from kafkaio.protocol import _primitives as p

U32 = st.integers(0, 2**32 - 1)
I32 = st.integers(-(2**31), 2**31 - 1)
I64 = st.integers(-(2**63), 2**63 - 1)

Write = Callable[[int], bytes]
Read = Callable[[bytes, int], tuple[int, int]]


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (0, "00"),
        (127, "7f"),
        (128, "8001"),
        (300, "ac02"),
        (2**14 - 1, "ff7f"),
        (2**14, "808001"),
        (2**31 - 1, "ffffffff07"),
        (2**32 - 1, "ffffffff0f"),
    ],
)
def test_uvarint_known_values(value: int, data: str) -> None:
    assert p.uvarint(value).hex() == data
    assert p.read_uvarint(bytes.fromhex(data), 0) == (value, len(data) // 2)


@pytest.mark.parametrize(
    ("value", "data"),
    [(0, "00"), (-1, "01"), (1, "02"), (63, "7e"), (-64, "7f"), (64, "8001")],
)
def test_zigzag_known_values(value: int, data: str) -> None:
    assert p.varint(value).hex() == p.varlong(value).hex() == data


@given(U32, st.binary(max_size=3))
def test_uvarint_round_trip(value: int, before: bytes) -> None:
    data = before + p.uvarint(value) + b"rest"
    assert p.read_uvarint(data, len(before)) == (value, len(data) - 4)


@given(I32)
def test_varint_round_trip(value: int) -> None:
    data = p.varint(value)
    assert p.read_varint(data, 0) == (value, len(data))
    assert len(data) <= 5


@given(I64)
def test_varlong_round_trip(value: int) -> None:
    data = p.varlong(value)
    assert p.read_varlong(data, 0) == (value, len(data))
    assert len(data) <= 10


@pytest.mark.parametrize(
    ("write", "value"),
    [
        (p.uvarint, -1),
        (p.uvarint, 2**32),
        (p.varint, 2**31),
        (p.varint, -(2**31) - 1),
        (p.varlong, 2**63),
        (p.varlong, -(2**63) - 1),
    ],
)
def test_numbers_out_of_range_are_not_written(write: Write, value: int) -> None:
    with pytest.raises(ProtocolError, match="is not a"):
        write(value)


@pytest.mark.parametrize(
    ("read", "data"),
    [
        (p.read_uvarint, b"\x80\x80\x80\x80\x80\x00"),  # six bytes
        (p.read_uvarint, b"\xff\xff\xff\xff\x1f"),  # 33 bits
        (p.read_varint, b"\xff\xff\xff\xff\xff"),
        (p.read_varlong, b"\xff" * 9 + b"\x02"),  # 65 bits
        (p.read_varlong, b"\x80" * 11),
    ],
)
def test_numbers_of_too_many_bits_are_refused(read: Read, data: bytes) -> None:
    with pytest.raises(ProtocolError, match="more than"):
        read(data, 0)


@given(U32.filter(lambda n: n > 127))
def test_a_cut_off_number_is_an_index_error(value: int) -> None:
    with pytest.raises(IndexError):
        p.read_uvarint(p.uvarint(value)[:-1], 0)


@given(st.none() | st.text(max_size=200))
def test_string_round_trips(value: str | None) -> None:
    compact = p.compact_string(value)
    assert p.read_compact_string(compact + b"x", 0) == (value, len(compact))
    classic = p.nullable_string(value)
    assert p.read_nullable_string(classic + b"x", 0) == (value, len(classic))


def test_string_known_values() -> None:
    assert p.compact_string(None) == b"\0"
    assert p.compact_string("") == b"\1"
    assert p.compact_string("ä") == b"\3\xc3\xa4"
    assert p.nullable_string(None) == b"\xff\xff"
    assert p.nullable_string("ab") == b"\0\2ab"


def test_the_longest_string_is_the_limit() -> None:
    longest = "x" * p.MAX_STRING
    assert p.read_compact_string(p.compact_string(longest), 0)[0] == longest
    assert p.read_nullable_string(p.nullable_string(longest), 0)[0] == longest
    for write in (p.compact_string, p.nullable_string):
        with pytest.raises(ProtocolError, match="too long to send"):
            write(longest + "x")
    with pytest.raises(ProtocolError, match="32768 bytes is too long"):
        p.read_compact_string(p.uvarint(32769) + b"x" * 32768, 0)


def test_strings_cut_off_or_not_utf8() -> None:
    with pytest.raises(IndexError, match="cut off"):
        p.read_compact_string(b"\3a", 0)
    with pytest.raises(IndexError):
        p.read_nullable_string(b"\0", 0)
    with pytest.raises(IndexError, match="cut off"):
        p.read_nullable_string(b"\0\2a", 0)
    with pytest.raises(ProtocolError, match="not UTF-8"):
        p.read_compact_string(b"\2\xff", 0)


def test_tags_are_skipped() -> None:
    data = b"\2" + b"\5\3abc" + b"\x80\1\0" + b"rest"
    assert p.skip_tags(data, 0) == len(data) - 4
    assert p.skip_tags(b"\0rest", 0) == 1


def test_tags_cut_off() -> None:
    with pytest.raises(ProtocolError, match="3 bytes is cut off"):
        p.skip_tags(b"\1\5\3ab", 0)
    with pytest.raises(IndexError):
        p.skip_tags(p.uvarint(p.MAX_TAGS) + b"\0\0" * 100, 0)


def test_more_tags_than_any_message_has_are_refused() -> None:
    data = p.uvarint(p.MAX_TAGS) + b"\0\0" * p.MAX_TAGS
    assert p.skip_tags(data, 0) == len(data)
    with pytest.raises(ProtocolError, match="1001 tagged fields"):
        p.skip_tags(p.uvarint(p.MAX_TAGS + 1) + b"\0\0" * 2000, 0)


def test_equal_uuids_are_one_object() -> None:
    data = UUID(int=7).bytes
    assert p.uuid_from(data) is p.uuid_from(bytes(data))
    assert p.uuid_from(data) == UUID(int=7)


@given(st.lists(st.binary(max_size=9), max_size=4))
def test_spread_takes_one_buffer_or_several(parts: list[bytes]) -> None:
    size, flat = p.spread(parts)
    assert b"".join(flat) == b"".join(parts)
    assert size == len(b"".join(parts))
    for one in (bytes, bytearray, memoryview):
        whole = one(b"".join(parts))
        size, flat = p.spread(whole)
        assert (size, b"".join(flat)) == (len(whole), b"".join(parts))


def test_spread_counts_bytes_not_items() -> None:
    wide = memoryview(b"12345678").cast("I")
    assert p.spread(wide)[0] == 8
