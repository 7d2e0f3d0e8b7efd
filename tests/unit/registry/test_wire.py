"""How records name their schemas, as bytes."""

from __future__ import annotations

import struct
from contextlib import suppress
from uuid import UUID

import pytest
from hypothesis import given, strategies as st

from kafkaio.errors import SerializationError
from kafkaio.registry._wire import (
    MOST_INDEXES,
    naming_header,
    pack_guid,
    pack_indexes,
    pack_prefix,
    parse_indexes,
    parse_prefix,
)

IDS = st.integers(1, 2**31 - 1)
INDEXES = st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=MOST_INDEXES)


@given(IDS, st.binary())
def test_a_prefix_is_read_as_written(schema_id: int, payload: bytes) -> None:
    found = parse_prefix(pack_prefix(schema_id) + payload)
    assert (found.id, found.start, found.indexes) == (schema_id, 5, None)


@given(st.uuids(), st.booleans(), st.binary(max_size=20))
def test_a_header_is_read_as_written(guid: UUID, is_key: bool, rest: bytes) -> None:
    name = "__key_schema_id" if is_key else "__value_schema_id"
    other = "__value_schema_id" if is_key else "__key_schema_id"
    headers = [("a", b"1"), (other, b"no"), (name, pack_guid(guid) + rest)]
    found = naming_header(headers, is_key=is_key)
    assert found is not None
    assert (found.id, found.start, found.indexes) == (guid, 0, rest)


@given(INDEXES, st.binary())
def test_indexes_are_read_as_written(indexes: list[int], payload: bytes) -> None:
    packed = pack_indexes(indexes)
    found, place = parse_indexes(b"12345" + packed + payload, 5)
    assert list(found) == indexes
    assert place == 5 + len(packed)


@given(st.binary())
def test_any_bytes_give_a_name_or_one_error(data: bytes) -> None:
    for read in (
        lambda: parse_prefix(data),
        lambda: parse_indexes(data, 0),
        lambda: naming_header([("__value_schema_id", data)], is_key=False),
        lambda: naming_header([("apicurio.value.contentId", data)], is_key=False),
    ):
        with suppress(SerializationError):
            read()


def test_bytes_as_the_format_has_them() -> None:
    assert pack_prefix(1) == b"\0\0\0\0\1"
    assert pack_indexes([0]) == b"\0"
    assert pack_indexes([1]) == b"\x02\x02"
    assert pack_indexes([2, 0]) == b"\x04\x04\x00"
    assert parse_indexes(b"\x02\x00", 0) == ((0,), 2)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "missing"),
        (b"\0\0\0", "truncated: 3 of 5 bytes"),
        (b"\x7f12345", "unknown magic byte 0x7f"),
        (b'{"a": 1}', "kafkaio.serde.Json"),
        (b"\0\xff\xff\xff\xff", "no such id"),
        (b"\0\0\0\0\0", "no such id"),
        (struct.pack(">Bq", 0, 17) + b"x", "Apicurio's native form, the id 17"),
        (b"\3\0" + bytes(16) + b"x", "AWS Glue"),
        (b"\3\5" + bytes(16), "AWS Glue"),
        (b"\3\1" + bytes(16), "unknown magic byte 0x03"),
        (b"\3\0", "unknown magic byte 0x03"),
    ],
)
def test_a_prefix_that_is_none_is_one_clear_error(data: bytes, reason: str) -> None:
    with pytest.raises(SerializationError, match=reason):
        parse_prefix(data)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "truncated"),
        (b"\x04\x02", "truncated"),
        (b"\x01", "a list of -1 message indexes"),
        (b"\x02\x01", "the message index -1 is negative"),
        (b"\xca\x01", "a list of 101 message indexes"),
        (b"\xfe\xff\xff\xff\x0f", "a list of 2147483647 message indexes"),
        (b"\xff\xff\xff\xff\xff\xff", "longer than an int32"),
    ],
)
def test_indexes_that_make_no_sense_are_one_clear_error(
    data: bytes, reason: str
) -> None:
    with pytest.raises(SerializationError, match=reason):
        parse_indexes(data, 0)


def test_no_header_names_the_schema() -> None:
    assert naming_header([("a", b"1"), ("apicurio.value.x", b"")], is_key=False) is None


def test_the_last_of_several_headers_counts() -> None:
    first, last = UUID(int=1), UUID(int=2)
    headers = [
        ("__value_schema_id", pack_guid(first)),
        ("__value_schema_id", pack_guid(last)),
    ]
    found = naming_header(headers, is_key=False)
    assert found is not None
    assert found.id == last


def test_a_header_can_have_an_id() -> None:
    found = naming_header([("__key_schema_id", b"\0\0\0\0\7")], is_key=True)
    assert found is not None
    assert (found.id, found.start) == (7, 0)


@pytest.mark.parametrize(
    "value", [None, b"", b"\1", b"\1" + bytes(15), b"\2" * 17, b"\1" * 1_000_000]
)
def test_a_malformed_header_is_one_clear_error(value: bytes | None) -> None:
    with pytest.raises(SerializationError, match="must be 0x01 and a GUID"):
        naming_header([("__value_schema_id", value)], is_key=False)


def test_apicurio_names_schemas_by_their_content() -> None:
    headers = [
        ("apicurio.value.encoding", b"BINARY"),
        ("apicurio.value.contentId", struct.pack(">q", 9)),
        ("apicurio.value.globalId", struct.pack(">q", 12)),
    ]
    found = naming_header(headers, is_key=False)
    assert found is not None
    assert (found.id, found.start) == (9, 0)
    assert naming_header(headers, is_key=True) is None


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ([("apicurio.value.globalId", bytes(8))], "apicurio.registry.use-id=contentId"),
        ([("apicurio.value.contentId", b"1")], "must be an int64"),
        (
            [
                ("apicurio.value.contentId", bytes(8)),
                ("apicurio.value.encoding", b"JSON"),
            ],
            "apicurio.registry.avro.encoding=BINARY",
        ),
    ],
)
def test_what_apicurio_writes_otherwise_is_refused_by_name(
    headers: list[tuple[str, bytes | None]], reason: str
) -> None:
    with pytest.raises(SerializationError, match=reason):
        naming_header(headers, is_key=False)
