"""Batches of message format 2: built, patched, read back and broken."""

from __future__ import annotations

import struct
import tracemalloc

import pytest
from crc32c import crc32c
from hypothesis import given, strategies as st

from kafkaio._records.batch import (
    BatchBuilder,
    Compression,
    Compressor,
    Decompressor,
    RecordBatch,
    encode_batch,
    first_batch_size,
    read_batches,
    with_base_offset,
    with_log_append_time,
)
from kafkaio._records.legacy import LegacyBatch
from kafkaio.errors import CorruptRecord, RecordTooLarge, UsageError
from kafkaio.types import Record, TimestampType
from tests.unit.records.strategies import plain_records, record_lists

NOW = 1_700_000_000_000
SOME = [
    (NOW, b"key", b"value", (("name", b"1"),)),
    (NOW - 5, None, b"v" * 300, ()),
    (NOW + 90_000, b"", None, (("absent", None),)),
]
PATCHED = {0: "q", 8: "i", 16: "b", 21: "h", 23: "i", 27: "q", 35: "q", 57: "i"}


def patched(batch: bytes, position: int, value: int, *, mend: bool = True) -> bytes:
    copy = bytearray(batch)
    struct.pack_into(">" + PATCHED[position], copy, position, value)
    if mend:
        struct.pack_into(">I", copy, 17, crc32c(bytes(copy[21:])))
    return bytes(copy)


def only(data: bytes, **options: object) -> RecordBatch:
    (batch,) = read_batches(data, **options)
    assert isinstance(batch, RecordBatch)
    return batch


def plain(records: list[Record]) -> list[tuple]:
    return [(r.timestamp, r.key, r.value, r.headers) for r in records]


@given(
    records=record_lists,
    codec=st.sampled_from(Compression),
    base=st.integers(0, 2**62),
    epoch=st.integers(-1, 2**31 - 1),
)
def test_round_trip(records: list, codec: Compression, base: int, epoch: int) -> None:
    data = encode_batch(
        records, base_offset=base, leader_epoch=epoch, compression=codec
    )
    batch = only(data)
    decoded = batch.decode("orders", 3)
    assert plain(decoded) == records
    assert [r.offset for r in decoded] == list(range(base, base + len(records)))
    assert {(r.topic, r.partition, r.leader_epoch) for r in decoded} == {
        ("orders", 3, epoch)
    }
    assert {r.timestamp_type for r in decoded} == {TimestampType.CREATE}
    assert (batch.base_offset, batch.count) == (base, len(records))
    assert batch.next_offset == batch.last_offset + 1 == base + len(records)
    assert batch.compression is codec
    assert batch.max_timestamp == max(r[0] for r in records)
    assert batch.base_timestamp == records[0][0]
    assert batch.size_bytes == len(data)


def test_header_carries_the_producer_state() -> None:
    builder = BatchBuilder(transactional=True)
    assert builder.try_append(NOW, None, b"v") == 0
    first = only(
        builder.build(
            producer_id=2**62,
            producer_epoch=7,
            base_sequence=2**31 - 1,
            partition_leader_epoch=4,
        )
    )
    assert (first.producer_id, first.producer_epoch) == (2**62, 7)
    assert (first.base_sequence, first.leader_epoch) == (2**31 - 1, 4)
    assert first.is_transactional
    assert not first.is_control
    assert not first.has_delete_horizon
    assert first.magic == 2
    again = only(builder.build())
    assert (again.producer_id, again.producer_epoch) == (-1, -1)
    assert (again.base_sequence, again.leader_epoch) == (-1, -1)
    assert plain(again.decode("t", 0)) == plain(first.decode("t", 0))


class CountingCompressor(Compressor):
    calls = 0

    def compress(self, data: bytes | bytearray | memoryview) -> bytes:
        self.calls += 1
        return super().compress(data)


def test_a_retry_does_not_compress_again() -> None:
    compressor = CountingCompressor(Compression.ZSTD)
    builder = BatchBuilder(compressor=compressor)
    builder.try_append(NOW, None, b"v" * 500)
    batches = {builder.build(producer_id=1, producer_epoch=e) for e in range(3)}
    assert compressor.calls == 1
    assert len(batches) == 3
    for data in batches:
        assert plain(only(data).decode("t", 0)) == [(NOW, None, b"v" * 500, ())]


def test_level_reaches_the_codec() -> None:
    sizes = []
    for level in (1, 9):
        builder = BatchBuilder(
            compression=Compression.GZIP, level=level, target_size=10**6
        )
        for number in range(2_000):
            builder.try_append(NOW + number, None, b"%d" % (number**3))
        sizes.append(len(builder.build()))
    assert sizes[1] < sizes[0]


def test_a_built_batch_takes_no_more() -> None:
    builder = BatchBuilder()
    assert builder.try_append(NOW, None, b"v") == 0
    before = builder.build()
    assert builder.try_append(NOW, None, b"v") == -1
    assert builder.build() == before


def test_an_empty_batch_cannot_be_built() -> None:
    with pytest.raises(UsageError, match="without records"):
        BatchBuilder().build()


@given(record=plain_records)
def test_size_of_is_an_upper_bound_and_a_close_one(record: tuple) -> None:
    _, key, value, headers = record
    builder = BatchBuilder(target_size=0)
    builder.try_append(*record)
    size = len(builder.build())
    bound = BatchBuilder.size_of(key, value, headers)
    assert size == builder.size_bytes <= bound <= size + 20 + 10 * len(headers)
    assert BatchBuilder.size_of(key, value, dict(headers)) <= bound


def test_target_size_is_for_the_uncompressed_batch() -> None:
    builder = BatchBuilder(compression=Compression.GZIP, target_size=1_000)
    while builder.try_append(NOW, None, b"a" * 100) >= 0:
        pass
    assert builder.count == 8
    assert 890 < builder.size_bytes <= 1_000
    assert len(builder.build()) < 200


@given(
    records=record_lists,
    promises=st.lists(st.sampled_from([0, 61, 500, 5_000, 2**31 - 1]), min_size=1),
)
def test_what_is_promised_changes_no_record(records: list, promises: list) -> None:
    builder = BatchBuilder(target_size=10**9)
    builder.promise(promises[0])
    for number, record in enumerate(records):
        builder.try_append(*record)
        builder.promise(promises[number % len(promises)])
    assert list(builder.records()) == records


def taken(promised: int) -> tuple[int, int]:
    """Memory of a batch of 100,000 bytes, as it fills and as it leaves."""
    tracemalloc.start()
    builder = BatchBuilder(target_size=1_000_000)
    builder.promise(promised)
    before, _ = tracemalloc.get_traced_memory()
    while builder.size_bytes < 100_000:
        builder.try_append(NOW, None, b"v" * 100)
    filled, _ = tracemalloc.get_traced_memory()
    builder.promise(0)
    left, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return filled - before, left - before


def test_no_more_memory_is_taken_than_was_promised() -> None:
    filled, left = taken(1_000_000)
    assert filled <= 200_000
    assert left <= 113_000
    filled, left = taken(105_000)
    assert filled <= 113_000
    filled, left = taken(0)
    assert filled <= 113_000


@given(records=record_lists, codec=st.sampled_from(Compression))
def test_records_gives_back_what_was_appended(
    records: list, codec: Compression
) -> None:
    builder = BatchBuilder(compression=codec, target_size=10**9)
    assert list(builder.records()) == []
    for record in records:
        builder.try_append(*record)
    assert list(builder.records()) == records
    builder.build()
    assert list(builder.records()) == records


def test_repr() -> None:
    builder = BatchBuilder(compression=Compression.LZ4)
    builder.try_append(NOW, None, b"v")
    assert repr(builder) == "<BatchBuilder open lz4 | 1 records, 69 bytes>"
    data = builder.build()
    assert repr(builder) == "<BatchBuilder built lz4 | 1 records, 69 bytes>"
    assert repr(only(data)) == f"<RecordBatch 0-0 lz4 | 1 records, {len(data)} bytes>"


def test_log_append_time() -> None:
    batch = only(with_log_append_time(encode_batch(SOME), NOW + 7))
    assert batch.timestamp_type is TimestampType.LOG_APPEND
    assert batch.max_timestamp == NOW + 7
    decoded = batch.decode("t", 0)
    assert {(r.timestamp, r.timestamp_type) for r in decoded} == {
        (NOW + 7, TimestampType.LOG_APPEND)
    }


def test_delete_horizon_is_the_base_timestamp() -> None:
    batch = only(patched(encode_batch(SOME), 21, 0x40))
    assert batch.has_delete_horizon
    assert batch.base_timestamp == NOW


def test_start_offset() -> None:
    batch = only(encode_batch(SOME, base_offset=10))
    assert [r.offset for r in batch.decode("t", 0, 11)] == [11, 12]
    assert batch.decode("t", 0, 13) == []


def test_a_batch_that_compaction_emptied() -> None:
    header = patched(encode_batch(SOME, base_offset=50)[:61], 57, 0)
    batch = only(patched(header, 8, 49))
    assert batch.count == 0
    assert batch.decode("t", 0) == []
    assert batch.next_offset == 53


def test_batches_follow_each_other_and_the_last_may_be_cut() -> None:
    first = encode_batch(SOME, base_offset=0)
    second = encode_batch(SOME, base_offset=3)
    for cut in range(len(second)):
        batches = list(read_batches(first + second[:cut]))
        assert [b.base_offset for b in batches] == [0]
    assert [b.base_offset for b in read_batches(first + second)] == [0, 3]
    assert list(read_batches(b"")) == []


def test_reading_is_lazy() -> None:
    first = encode_batch(SOME)
    broken = patched(encode_batch(SOME, base_offset=3), 16, 9, mend=False)
    batches = read_batches(first + broken)
    assert next(batches).base_offset == 0
    with pytest.raises(CorruptRecord, match="offset 3 has the magic byte 9"):
        next(batches)


def test_a_detached_batch_outlives_the_buffer() -> None:
    buffer = bytearray(encode_batch(SOME))
    batch = only(memoryview(buffer))
    with pytest.raises(BufferError):
        buffer.clear()  # the batch refers to it
    batch.detach()
    buffer[:] = bytes(len(buffer))
    assert plain(batch.decode("t", 0)) == SOME
    assert plain(list(batch.iterate("t", 0))) == SOME
    batch.detach()
    buffer.clear()


def test_a_detached_cursor_outlives_the_buffer() -> None:
    buffer = bytearray(encode_batch(SOME))
    batch = only(memoryview(buffer))
    cursor = batch.iterate("t", 0)
    first = cursor.cut(1)
    del batch
    first.detach()
    cursor.detach()
    first.detach()
    buffer[:] = bytes(len(buffer))
    assert plain([*first, *cursor]) == SOME
    buffer.clear()
    cursor.stop()
    cursor.detach()
    assert list(cursor) == []


def test_formats_may_be_mixed() -> None:
    legacy = struct.pack(">qiIbbii", 4, 14, 0, 0, 0, -1, -1)
    batches = list(read_batches(legacy + encode_batch(SOME), check_crcs=False))
    assert [type(b) for b in batches] == [LegacyBatch, RecordBatch]


def test_first_batch_size() -> None:
    data = encode_batch(SOME)
    assert first_batch_size(data[:16]) is None
    assert first_batch_size(b"") is None
    for cut in range(17, len(data) + 1):
        assert first_batch_size(data[:cut]) == len(data)
    assert first_batch_size(data + data) == len(data)


@pytest.mark.parametrize("length", [-1, 0, 13, 48])
def test_impossible_length(length: int) -> None:
    data = patched(encode_batch(SOME), 8, length, mend=False)
    with pytest.raises(CorruptRecord, match=f"length {length}"):
        list(read_batches(data))


@pytest.mark.parametrize("magic", [-1, 3, 100])
def test_unknown_magic(magic: int) -> None:
    data = patched(encode_batch(SOME), 16, magic, mend=False)
    with pytest.raises(CorruptRecord, match="magic byte"):
        first_batch_size(data)


@pytest.mark.parametrize(
    ("position", "value", "message"),
    [
        (0, -1, "offset -1"),
        (0, 2**63 - 2, "offset"),
        (21, 5, "attributes"),
        (23, -1, "offset delta -1"),
        (57, -1, "-1 records"),
    ],
)
def test_inconsistent_header(position: int, value: int, message: str) -> None:
    with pytest.raises(CorruptRecord, match=message):
        list(read_batches(patched(encode_batch(SOME), position, value)))


def test_too_short_for_a_header() -> None:
    with pytest.raises(CorruptRecord, match="too short"):
        RecordBatch(bytes(60), Decompressor())


def test_count_that_does_not_match() -> None:
    for count in (0, 2, 4, 2**31 - 1):
        batch = only(patched(encode_batch(SOME), 57, count))
        with pytest.raises(CorruptRecord):
            batch.decode("t", 0)


def test_crc_can_be_left_unchecked() -> None:
    data = bytearray(encode_batch(SOME))
    data[17] ^= 1
    with pytest.raises(CorruptRecord, match="checksum"):
        list(read_batches(data))
    batch = only(bytes(data), check_crcs=False)
    assert plain(batch.decode("t", 0)) == SOME


def test_limit_of_decompression() -> None:
    data = encode_batch([(NOW, None, bytes(10_000), ())], compression=Compression.ZSTD)
    assert len(only(data, max_decompressed=10_100).decode("t", 0)) == 1
    with pytest.raises(RecordTooLarge, match="batch_size=9000 bytes"):
        only(data, max_decompressed=9_000).decode("t", 0)


@given(
    codec=st.sampled_from(Compression),
    position=st.integers(0, 10_000),
    flip=st.integers(1, 255),
)
def test_one_flipped_byte_is_noticed(
    codec: Compression, position: int, flip: int
) -> None:
    # Bytes 0 to 7 (base offset) and 12 to 15 (leader epoch) are outside the checksum,
    # because the leader writes them: there a flip shows in the offset or the epoch and
    # in nothing else. A length that grew looks like a batch that was cut off.
    data = bytearray(encode_batch(SOME, base_offset=9, compression=codec))
    position %= len(data)
    data[position] ^= flip
    try:
        batches = list(read_batches(data))
    except CorruptRecord:
        return
    if not batches:
        assert 8 <= position < 12
        size = first_batch_size(data)
        assert size is not None
        assert size > len(data)
    else:
        assert position < 8 or 12 <= position < 16
        assert plain(batches[0].decode("t", 0)) == SOME


@given(data=st.binary(max_size=120), check=st.booleans(), magic=st.integers(0, 2))
def test_arbitrary_bytes_raise_nothing_else(
    data: bytes, check: bool, magic: int
) -> None:
    forged = bytearray(data)
    if len(data) > 20:
        struct.pack_into(">i", forged, 8, len(data) - 12)
        forged[0] = 0
        forged[16] = magic
    for candidate in (data, bytes(forged)):
        try:
            for batch in read_batches(candidate, check_crcs=check):
                assert isinstance(batch.decode("t", 0), list)
                batch.control_type()
        except CorruptRecord:
            pass


def test_with_base_offset_keeps_the_checksum() -> None:
    data = encode_batch(SOME)
    placed = with_base_offset(data, 77, 5)
    assert placed[17:] == data[17:]
    assert (only(placed).base_offset, only(placed).leader_epoch) == (77, 5)
