"""Batches that are written as they were fetched."""

from __future__ import annotations

from typing import Any

import crc32c
import pytest
from hypothesis import given, strategies as st

from kafkaio._records.batch import (
    Batch,
    Compression,
    PlainRecord,
    encode_batch,
    read_batches,
    with_base_offset,
    with_log_append_time,
)
from kafkaio._records.raw import EncodedBatch, RawBatch, plain_records
from kafkaio.errors import CorruptRecord
from kafkaio.types import TimestampType, TopicPartition

TP = TopicPartition("t", 3)
_ATTRIBUTES = 21

keys = st.none() | st.binary(max_size=20)
headers = st.lists(st.tuples(st.text(max_size=5), keys), max_size=2).map(tuple)
records = st.lists(
    st.tuples(st.integers(0, 2**45), keys, keys, headers), min_size=1, max_size=20
)


def batch_of(
    plain: list[Any], base: int = 0, codec: Compression = Compression.NONE, **how: Any
) -> bytes:
    return encode_batch(plain, base_offset=base, compression=codec, **how)


def parsed(data: bytes) -> Batch:
    [batch] = read_batches(data)
    return batch


def raw(data: bytes, first: int = 0, end: int = 2**62) -> RawBatch:
    return RawBatch(TP, parsed(data), (first, end), 7)


def changed(data: bytes, at: int, new: bytes) -> bytes:
    """Return a batch with other bytes in its header, and the checksum for them."""
    made = bytearray(data)
    made[at : at + len(new)] = new
    made[17:21] = crc32c.crc32c(bytes(made[_ATTRIBUTES:])).to_bytes(4, "big")
    return bytes(made)


def plain(found: RawBatch) -> list[PlainRecord]:
    return [record for _, record in plain_records(found)]


@given(
    plain_=records,
    base=st.integers(0, 2**50),
    codec=st.sampled_from(Compression),
    was_transactional=st.booleans(),
    is_transactional=st.booleans(),
    numbers=st.tuples(
        st.integers(-1, 2**63 - 1), st.integers(-1, 32767), st.integers(-1, 2**31 - 1)
    ),
)
def test_only_the_header_is_new(
    plain_: list[Any],
    base: int,
    codec: Compression,
    *,
    was_transactional: bool,
    is_transactional: bool,
    numbers: tuple[int, int, int],
) -> None:
    data = batch_of(
        plain_, base, codec, transactional=was_transactional, leader_epoch=5
    )
    encoded = EncodedBatch(raw(data), transactional=is_transactional)
    made = encoded.build(
        producer_id=numbers[0], producer_epoch=numbers[1], base_sequence=numbers[2]
    )

    assert b"".join(encoded.build_parts(*numbers)) == made
    batch = parsed(made)  # which checks the checksum
    assert made[61:] == data[61:]
    assert (batch.base_offset, batch.last_offset) == (0, len(plain_) - 1)
    assert batch.leader_epoch == -1
    assert batch.is_transactional == is_transactional
    found = batch.producer_id, batch.producer_epoch, batch.base_sequence
    assert found == numbers
    assert len(made) == encoded.size_bytes
    assert encoded.count == batch.count == len(plain_)
    assert encoded.compression is codec
    assert list(encoded.records()) == plain(raw(data))
    # A batch that was made of it is as good as the first one.
    again = EncodedBatch(raw(with_base_offset(made, base, 9)))
    assert again.build()[61:] == data[61:]


def test_the_records_of_a_large_batch_are_not_copied() -> None:
    small, large = (
        EncodedBatch(raw(batch_of([(5, None, b"v" * size, ())])))
        for size in (1_000, 20_000)
    )
    first, rest = small.build_parts(7, 1, 5)
    assert (first, rest) == (
        small.build(producer_id=7, producer_epoch=1, base_sequence=5),
        b"",
    )
    header, records = large.build_parts(7, 1, 5)
    assert isinstance(records, memoryview)
    assert header + records == large.build(
        producer_id=7, producer_epoch=1, base_sequence=5
    )
    assert records.obj is large.build_parts(8, 2, 6)[1].obj


@given(
    plain_=records,
    base=st.integers(0, 1000),
    codec=st.sampled_from(Compression),
    bounds=st.tuples(st.integers(0, 1030), st.integers(0, 1030)),
)
def test_it_stands_for_the_records_between_two_offsets(
    plain_: list[Any], base: int, codec: Compression, bounds: tuple[int, int]
) -> None:
    first, end = bounds
    batch = raw(batch_of(plain_, base, codec), first, end)

    offsets = [record.offset for record in batch.records()]
    expected = [at for at in range(base, base + len(plain_)) if first <= at < end]
    assert offsets == expected
    assert batch.is_whole == (len(expected) == len(plain_))
    assert [offset for offset, _ in plain_records(batch)] == expected


def test_what_it_tells() -> None:
    data = batch_of(
        [(5, b"k", b"v", ()), (9, None, None, ())], 40, Compression.GZIP, leader_epoch=2
    )
    batch = raw(data)

    assert batch.topic_partition == TP
    assert (batch.base_offset, batch.last_offset, batch.next_offset) == (40, 41, 42)
    assert (batch.count, batch.size_bytes) == (2, len(data))
    assert batch.compression_type == "gzip"
    assert (batch.base_timestamp, batch.max_timestamp) == (5, 9)
    assert batch.timestamp_type is TimestampType.CREATE
    numbers = batch.producer_id, batch.producer_epoch, batch.base_sequence
    assert numbers == (-1, -1, -1)
    assert (batch.leader_epoch, batch.message_format, batch.assignment) == (2, 2, 7)
    assert batch.data == data
    assert batch.data.readonly
    assert "offsets 40-41" in repr(batch)


def test_it_keeps_nothing_of_the_response() -> None:
    data = bytearray(batch_of([(1, b"k", b"v", ())]))
    batch = raw(data)  # type: ignore[arg-type]
    whole = bytes(data)
    data[:] = bytes(len(data))
    assert batch.data == whole


TWO = batch_of([(5, b"k", b"v", ()), (9, None, None, ())])


@pytest.mark.parametrize(
    "data",
    [
        with_log_append_time(TWO, 1234),
        # Compaction removed a record: the offsets are more than the records.
        changed(TWO, 23, (7).to_bytes(4, "big")),
    ],
)
def test_what_a_header_cannot_express(data: bytes) -> None:
    assert not raw(data).is_whole
    assert len(raw(data).records()) == 2


def test_the_mark_of_a_delete_horizon_is_the_brokers() -> None:
    data = changed(TWO, _ATTRIBUTES, (1 << 6).to_bytes(2, "big"))
    batch = raw(data)

    assert batch.is_whole
    made = EncodedBatch(batch).build()
    assert made[_ATTRIBUTES : _ATTRIBUTES + 2] == bytes(2)
    assert [record[0] for record in plain(raw(made))] == [5, 9]


def test_records_that_cannot_be_read_are_written_all_the_same() -> None:
    compressed = batch_of([(5, b"k", b"v" * 99, ())], codec=Compression.ZSTD)
    batch = raw(changed(compressed, 63, b"????"))

    with pytest.raises(CorruptRecord):
        batch.records()
    encoded = EncodedBatch(batch)
    assert encoded.build()[61:] == batch.data[61:]
    with pytest.raises(CorruptRecord):
        list(encoded.records())


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.ZSTD])
def test_more_records_than_the_bytes_can_hold(codec: Compression) -> None:
    data = batch_of([(5, b"k", b"v", ())] * 3, codec=codec)
    most = 2**31 - 1
    data = changed(data, 23, (most - 1).to_bytes(4, "big"))
    batch = raw(changed(data, 57, most.to_bytes(4, "big")))

    assert batch.next_offset - batch.first_offset == batch.count == most
    assert not batch.is_whole
    with pytest.raises(CorruptRecord):
        batch.records()
