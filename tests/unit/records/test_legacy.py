"""Message formats 0 and 1: messages, wrappers, and what old writers got wrong."""

from __future__ import annotations

import struct
import zlib

import lz4.frame
import pytest
from hypothesis import given, strategies as st

from kafkaio._records.batch import (
    Compression,
    Compressor,
    first_batch_size,
    read_batches,
)
from kafkaio._records.legacy import LegacyBatch, _fix_lz4_header
from kafkaio.errors import CorruptRecord, RecordTooLarge
from kafkaio.types import Record, TimestampType

NOW = 1_700_000_000_000
CODECS = [Compression.GZIP, Compression.SNAPPY, Compression.LZ4]
STAMPED = 0x08


def field(data: bytes | None) -> bytes:
    return (
        struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data
    )


def message(
    magic: int,
    offset: int,
    value: bytes | None,
    *,
    key: bytes | None = None,
    attributes: int = 0,
    timestamp: int = NOW,
) -> bytes:
    body = struct.pack(">bb", magic, attributes)
    if magic == 1:
        body += struct.pack(">q", timestamp)
    body += field(key) + field(value)
    body = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", offset, len(body)) + body


def wrapper(
    magic: int,
    offset: int,
    inner: bytes,
    codec: Compression = Compression.GZIP,
    **options: int,
) -> bytes:
    attributes = codec | options.pop("attributes", 0)
    value = Compressor(codec).compress(inner)
    return message(magic, offset, value, attributes=attributes, **options)


def only(data: bytes, **options: object) -> LegacyBatch:
    (batch,) = read_batches(data, **options)
    assert isinstance(batch, LegacyBatch)
    return batch


def with_own_crc(data: bytes) -> bytes:
    return data[:12] + struct.pack(">I", zlib.crc32(data[16:])) + data[16:]


fields = st.none() | st.binary(max_size=40)


@given(key=fields, value=fields, offset=st.integers(0, 2**62))
def test_format_0(key: bytes | None, value: bytes | None, offset: int) -> None:
    data = message(0, offset, value, key=key)
    batch = only(data)
    assert batch.decode("orders", 3) == [
        Record("orders", 3, offset, -1, key, value, (), TimestampType.NONE, -1)
    ]
    assert (batch.magic, batch.max_timestamp) == (0, -1)
    assert batch.timestamp_type is TimestampType.NONE
    assert batch.size_bytes == len(data)
    assert batch.base_offset == batch.last_offset == batch.next_offset - 1 == offset


@given(
    key=fields,
    value=fields,
    timestamp=st.integers(-1, 2**63 - 1),
    kind=st.sampled_from([TimestampType.CREATE, TimestampType.LOG_APPEND]),
)
def test_format_1(
    key: bytes | None, value: bytes | None, timestamp: int, kind: TimestampType
) -> None:
    attributes = STAMPED if kind is TimestampType.LOG_APPEND else 0
    batch = only(
        message(1, 8, value, key=key, timestamp=timestamp, attributes=attributes)
    )
    assert batch.decode("orders", 3) == [
        Record("orders", 3, 8, timestamp, key, value, (), kind, -1)
    ]
    assert batch.max_timestamp == batch.base_timestamp == timestamp


def test_attributes_that_the_formats_do_not_have() -> None:
    batch = only(message(1, 0, b"v"))
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (-1,) * 3
    assert batch.leader_epoch == -1
    assert not batch.is_control
    assert not batch.is_transactional
    assert not batch.has_delete_horizon
    assert batch.control_type() is None
    assert batch.count == 1
    assert repr(batch) == "<LegacyBatch v1 to 0 none | 35 bytes>"


@pytest.mark.parametrize("codec", CODECS)
def test_wrapper_of_format_0_has_absolute_offsets(codec: Compression) -> None:
    inner = b"".join(message(0, 10 + i, b"%d" % i) for i in (0, 1, 5))
    batch = only(wrapper(0, 15, inner, codec))
    assert batch.compression is codec
    assert (batch.base_offset, batch.last_offset, batch.count) == (10, 15, 3)
    records = batch.decode("t", 0)
    assert [(r.offset, r.value, r.timestamp) for r in records] == [
        (10, b"0", -1),
        (11, b"1", -1),
        (15, b"5", -1),
    ]


@pytest.mark.parametrize("codec", CODECS)
def test_wrapper_of_format_1_has_relative_offsets(codec: Compression) -> None:
    inner = b"".join(message(1, i, b"%d" % i, timestamp=NOW + i) for i in (0, 1, 5))
    batch = only(wrapper(1, 15, inner, codec, timestamp=NOW + 5))
    assert (batch.base_offset, batch.last_offset, batch.next_offset) == (10, 15, 16)
    assert batch.max_timestamp == NOW + 5
    records = batch.decode("t", 0)
    assert [(r.offset, r.timestamp) for r in records] == [
        (10, NOW),
        (11, NOW + 1),
        (15, NOW + 5),
    ]
    assert [r.offset for r in batch.decode("t", 0, 11)] == [11, 15]


def test_wrapper_at_offset_0_has_inner_offsets_from_0() -> None:
    inner = b"".join(message(1, i, b"v") for i in range(3))
    assert [r.offset for r in only(wrapper(1, 0, inner)).decode("t", 0)] == [0, 1, 2]


def test_log_append_time_of_the_wrapper_replaces_the_inner_ones() -> None:
    inner = b"".join(message(1, i, b"v", timestamp=5) for i in range(2))
    batch = only(wrapper(1, 9, inner, attributes=STAMPED, timestamp=NOW))
    assert {(r.timestamp, r.timestamp_type) for r in batch.decode("t", 0)} == {
        (NOW, TimestampType.LOG_APPEND)
    }


@pytest.mark.parametrize("content_size", [False, True])
def test_lz4_of_format_0_has_a_wrong_header_checksum(content_size: bool) -> None:
    inner = message(0, 3, b"v" * 100)
    frame = lz4.frame.compress(inner, block_linked=False, store_size=content_size)
    end = 14 if content_size else 6
    broken = bytearray(frame)
    broken[end] ^= 0x5A
    assert _fix_lz4_header(bytes(broken)) == frame
    data = message(0, 3, bytes(broken), attributes=Compression.LZ4)
    (record,) = only(data).decode("t", 0)
    assert record.value == b"v" * 100
    # In format 1 the checksum is right, so a wrong one means corruption.
    data = message(1, 3, bytes(broken), attributes=Compression.LZ4)
    with pytest.raises(CorruptRecord):
        only(data).decode("t", 0)


@given(data=st.binary(max_size=20))
def test_fixing_changes_at_most_one_byte(data: bytes) -> None:
    mended = _fix_lz4_header(data)
    assert len(mended) == len(data)
    assert sum(a != b for a, b in zip(data, mended, strict=True)) <= 1


def test_checksum() -> None:
    data = bytearray(message(1, 7, b"value"))
    data[-1] ^= 1
    with pytest.raises(CorruptRecord, match="message at offset 7 has the checksum"):
        list(read_batches(data))
    assert len(only(bytes(data), check_crcs=False).decode("t", 0)) == 1


def test_checksum_of_an_inner_message() -> None:
    inner = bytearray(message(1, 0, b"value"))
    inner[-1] ^= 1
    data = wrapper(1, 7, bytes(inner))
    with pytest.raises(CorruptRecord, match="checksum"):
        only(data).decode("t", 0)
    assert len(only(data, check_crcs=False).decode("t", 0)) == 1


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (message(1, 1, None, attributes=Compression.GZIP), "no value"),
        (wrapper(1, 1, b""), "no record"),
        (wrapper(1, 1, message(0, 0, b"v")), "another format"),
        (wrapper(1, 1, wrapper(1, 0, message(1, 0, b"v"))), "compressed ones"),
        (wrapper(1, 1, message(1, 0, b"v")[:-1]), "claims"),
        (wrapper(1, 1, message(1, 0, b"v") + b"\0"), "ends within"),
        (wrapper(1, 1, struct.pack(">qi", 0, 3) + bytes(20)), "claims 3 bytes"),
        (wrapper(1, 1, message(1, 5, b"v") + message(1, 9, b"v")), "offsets"),
        (message(1, 1, b"no gzip", attributes=Compression.GZIP), "gzip"),
    ],
)
def test_broken_wrapper(data: bytes, reason: str) -> None:
    with pytest.raises(CorruptRecord, match=reason):
        only(data).decode("t", 0)


@pytest.mark.parametrize("codec", [4, 5, 7])
def test_codecs_that_the_formats_do_not_have(codec: int) -> None:
    with pytest.raises(CorruptRecord, match="attributes"):
        list(read_batches(message(1, 0, b"v", attributes=codec)))


def test_negative_offset() -> None:
    with pytest.raises(CorruptRecord, match="offset -1"):
        list(read_batches(message(1, -1, b"v")))


def test_fields_past_the_message() -> None:
    good = message(1, 0, b"value", key=b"key")
    for position, size in ((26, 99), (26, -2), (33, 6), (33, 4), (33, -9)):
        data = bytearray(good)
        struct.pack_into(">i", data, position, size)
        with pytest.raises(CorruptRecord):
            list(read_batches(with_own_crc(bytes(data))))


def test_length_below_that_of_an_absent_value() -> None:
    data = bytearray(message(1, 0, None))
    struct.pack_into(">i", data, 30, -2)
    with pytest.raises(CorruptRecord, match="claims -2 bytes"):
        list(read_batches(with_own_crc(bytes(data))))


def test_message_that_ends_before_its_fields() -> None:
    for magic, least in ((0, 14), (1, 22)):
        good = message(magic, 0, None)
        assert len(good) == 12 + least
        for size in range(14, least):
            data = bytearray(good[: 12 + size])
            struct.pack_into(">i", data, 8, size)
            with pytest.raises(CorruptRecord):
                list(read_batches(with_own_crc(bytes(data))))
    # The key takes the four bytes where the value's length should be.
    data = bytearray(message(0, 0, None))
    struct.pack_into(">i", data, 18, 4)
    with pytest.raises(CorruptRecord, match="before its value"):
        list(read_batches(with_own_crc(bytes(data))))


def test_limit_of_decompression() -> None:
    data = wrapper(1, 0, message(1, 0, bytes(5_000)))
    with pytest.raises(RecordTooLarge, match="batch_size=4000 bytes"):
        only(data, max_decompressed=4_000).decode("t", 0)


def test_cut_messages_are_left_out() -> None:
    data = message(1, 0, b"v") + message(0, 1, b"w")
    assert first_batch_size(data) == 35
    for size in range(35, len(data)):
        assert [b.last_offset for b in read_batches(data[:size])] == [0]


@given(data=st.binary(min_size=2, max_size=60), magic=st.integers(0, 1))
def test_forged_wrappers_raise_nothing_else(data: bytes, magic: int) -> None:
    inner = struct.pack(">qi", data[0], len(data)) + data
    for codec in CODECS:
        try:
            for batch in read_batches(wrapper(magic, 9, inner, codec)):
                batch.decode("t", 0)
        except CorruptRecord:
            pass
    for candidate in (
        message(magic, 9, data, attributes=data[0] & 0x0F),
        with_own_crc(inner[:16] + bytes((magic,)) + inner[17:]),
    ):
        try:
            for batch in read_batches(candidate):
                assert batch.count == len(batch.decode("t", 0))
        except (CorruptRecord, RecordTooLarge):  # forged sizes of snappy, too
            pass


@given(position=st.integers(0, 10_000), flip=st.integers(1, 255))
def test_one_flipped_byte_is_noticed(position: int, flip: int) -> None:
    # The offset is outside the checksum; a length that grew looks like a cut message.
    data = bytearray(wrapper(1, 9, message(1, 0, b"v" * 50)))
    position %= len(data)
    data[position] ^= flip
    try:
        batches = list(read_batches(data))
        values = [r.value for b in batches for r in b.decode("t", 0)]
    except CorruptRecord:
        return
    assert (values == [b"v" * 50] and position < 8) or (
        batches == [] and 8 <= position < 12
    )
