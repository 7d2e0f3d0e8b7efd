"""The header of a batch and the way from it to the records: the twins agree."""

from __future__ import annotations

import importlib
import itertools
import struct
from types import ModuleType

import pytest
from hypothesis import given, strategies as st

from kafkaio._records._layout import BATCH_HEADER, DecodedColumns
from kafkaio._records.batch import Compression, encode_batch
from kafkaio.errors import CorruptRecord
from kafkaio.types import TimestampType
from tests.unit.records.strategies import MAX_INT64
from tests.unit.records.test_codecs import NOW, law

NAMES = (
    "base_offset",
    "last_offset",
    "next_offset",
    "leader_epoch",
    "magic",
    "checksum",
    "compression",
    "timestamp_type",
    "is_transactional",
    "is_control",
    "has_delete_horizon",
    "base_timestamp",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "count",
    "size_bytes",
)


def header_class(codec: ModuleType) -> type:
    if codec.__name__.endswith("_pure"):
        return importlib.import_module("kafkaio._records._header").BatchHeader
    return codec.BatchHeader


def story(codec: ModuleType, data: bytes) -> object:
    try:
        header = header_class(codec)(data)
    except CorruptRecord as error:
        return str(error)
    told: list[object] = [getattr(header, name) for name in NAMES]
    told += [type(fact) for fact in told]
    told.append(header.origin("orders", 3, 5))
    told.append(header.computed_checksum())
    told.append(header.renumbered(0x12, 2**40, 7, 2**31 - 1, -1))
    told.append(header.renumbered(0x12, 2**40, 7, 2**31 - 1, -1, whole=True))
    header.detach()
    told.append(header.computed_checksum())
    for position in (0, 61, len(data), len(data) + 1):
        try:
            cursor = header.cursor(data, position, "orders", 3, 5)
        except CorruptRecord as error:
            told.append(str(error))
        else:
            told += [cursor.remaining, cursor.next_offset, list(cursor)]
    return told


def ints(bits: int) -> st.SearchStrategy[int]:
    least = -(2 ** (bits - 1))
    return st.integers(least, -least - 1)


headers = st.tuples(
    ints(64) | st.integers(0, 1_000) | st.integers(MAX_INT64 - 9, MAX_INT64),
    ints(32),
    ints(32),
    st.integers(-128, 127),
    st.integers(0, 2**32 - 1),
    ints(16) | st.integers(0, 127),
    ints(32) | st.integers(0, 9),
    ints(64),
    ints(64),
    ints(64),
    ints(16),
    ints(32),
    ints(32) | st.integers(0, 9),
).map(lambda fields: struct.pack(BATCH_HEADER, *fields))


@law
@given(header=headers, rest=st.binary(max_size=30))
def test_twins_read_a_header_alike(twins: tuple, header: bytes, rest: bytes) -> None:
    pure, compiled = (story(codec, header + rest) for codec in twins)
    assert pure == compiled


@law
@given(
    count=st.integers(1, 4),
    compression=st.sampled_from(Compression),
    flip=st.none() | st.tuples(st.integers(0, 200), st.integers(1, 255)),
)
def test_twins_read_a_batch_alike(
    twins: tuple, count: int, compression: Compression, flip: tuple | None
) -> None:
    rows = [(NOW + n, b"k", b"v%d" % n, ()) for n in range(count)]
    data = bytearray(encode_batch(rows, base_offset=4, compression=compression))
    if flip is not None:
        data[flip[0] % len(data)] ^= flip[1]
    pure, compiled = (story(codec, bytes(data)) for codec in twins)
    assert pure == compiled


@pytest.mark.parametrize("size", [0, 1, 60])
def test_too_short(codec: ModuleType, size: int) -> None:
    with pytest.raises(CorruptRecord, match=f"a batch of {size} bytes"):
        header_class(codec)(bytes(size))


def test_cursor_of_a_batch_with_log_append_time(codec: ModuleType) -> None:
    data = bytearray(encode_batch([(NOW, None, b"v", ())]))
    data[22] |= 8
    header = header_class(codec)(bytes(data))
    (record,) = header.cursor(bytes(data), 61, "orders", 3, 0)
    assert header.timestamp_type is TimestampType.LOG_APPEND
    assert record.timestamp_type is TimestampType.LOG_APPEND
    assert record.timestamp == header.max_timestamp == NOW


# ---- several batches with one cursor


def headers_of(codec: ModuleType, data: bytes) -> list:
    view, at, found = memoryview(data), 0, []
    while at < len(data):
        end = at + 12 + int.from_bytes(data[at + 8 : at + 12], "big")
        found.append(header_class(codec)(view[at:end]))
        at = end
    return found


def joined(codec: ModuleType, headers: list, start: int = 0) -> tuple:
    """Return a cursor over as many of the batches as can be had, and their number."""
    first, *others = headers
    cursor = first.cursor(first._data, 61, "orders", 3, start)
    count = 1
    for other in others:
        if not other.extend(cursor, True):
            break
        count += 1
    return cursor, count


def encoded(counts: list[int], gaps: list[int], **changes: object) -> bytes:
    data, offset = b"", 4
    for count, gap in zip(counts, gaps, strict=True):
        rows = [
            (NOW + n + offset, b"k", b"%d" % (offset + n), ()) for n in range(count)
        ]
        data += encode_batch(rows, base_offset=offset, **changes)
        offset += count + gap
    return data


def told(cursor, steps: list[tuple[str, int]]) -> list[object]:
    facts: list[object] = []
    for step, number in steps:
        if step == "cut":
            piece = cursor.cut(number)
            facts.append([(record, piece.next_offset) for record in piece])
        elif step == "copy":
            facts.append([*cursor.copy()])
        elif step == "detach":
            cursor.detach()
        elif step == "skip":
            cursor.skip(number)
        else:
            facts.append(getattr(cursor, step)(number))
        facts.append((cursor.remaining, cursor.next_offset))
    return facts + [(record, cursor.next_offset) for record in cursor]


moves = st.lists(
    st.tuples(
        st.sampled_from(
            ["cut", "copy", "detach", "skip", "take", "take_keys", "take_values"]
        ),
        st.integers(0, 7),
    ),
    max_size=6,
)


@law
@given(
    counts=st.lists(st.integers(1, 4), min_size=1, max_size=5),
    gap=st.integers(0, 2),
    start=st.integers(0, 12),
    moves=moves,
)
def test_one_cursor_reads_batches_as_several_do(
    codec: ModuleType, counts: list[int], gap: int, start: int, moves: list
) -> None:
    data = encoded(counts, [gap] * len(counts))
    headers = headers_of(codec, data)
    while len(headers) > 1 and headers[0].next_offset <= start:
        del headers[0]
    expected, ends = [], []
    for header in headers:
        apart = header.cursor(header._data, 61, "orders", 3, start)
        for record in apart:
            expected.append(record)
            ends.append(apart.next_offset)
    cursor, count = joined(codec, headers, start)
    assert cursor.remaining == len(expected) or not cursor.remaining
    if not cursor.remaining:
        return  # the first one begins and ends before the start
    assert count == len(headers)
    assert cursor.bytes_left >= sum(header.size_bytes for header in headers) - 61
    copy = cursor.copy()
    assert [(record, copy.next_offset) for record in copy] == [
        *zip(expected, ends, strict=True)
    ]
    told(cursor, moves)
    assert (cursor.remaining, cursor.next_offset) == (0, headers[-1].next_offset)


@law
@given(
    counts=st.lists(st.integers(0, 4), min_size=2, max_size=4),
    gap=st.integers(0, 1),
    start=st.integers(0, 9),
    flip=st.none() | st.tuples(st.integers(0, 600), st.integers(1, 255)),
    check_crc=st.booleans(),
    moves=moves,
)
def test_twins_read_batches_alike(
    twins: tuple,
    counts: list[int],
    gap: int,
    start: int,
    flip: tuple[int, int] | None,
    check_crc: bool,
    moves: list,
) -> None:
    def read(codec: ModuleType) -> object:
        try:
            first, *others = headers_of(codec, bytes(data))
            cursor = first.cursor(first._data, 61, "orders", 3, start)
        except CorruptRecord as error:
            return str(error)
        added = itertools.takewhile(
            lambda other: other.extend(cursor, check_crc), others
        )
        return [len([*added]), *told(cursor, moves)]

    batches = [encoded([max(count, 1)], [0]) for count in counts]
    data, offset = bytearray(), 4
    for batch, count in zip(batches, counts, strict=True):
        data += offset.to_bytes(8, "big") + batch[8:]
        offset += max(count, 1) + gap
    if flip is not None:
        at = flip[0] % len(data)
        lengths = set()
        place = 0
        for batch in batches:  # a wrong length is found before there is a header
            lengths.update(range(place + 8, place + 12))
            place += len(batch)
        if at not in lengths:
            data[at] ^= flip[1]
    pure, compiled = (read(codec) for codec in twins)
    assert pure == compiled


@pytest.mark.parametrize(
    "case",
    ["epoch", "compressed", "control", "before", "stamped", "apart", "copied", "crc"],
)
def test_batches_that_differ_are_read_apart(codec: ModuleType, case: str) -> None:
    data = bytearray(encoded([2, 3], [0, 0]))
    size = 12 + int.from_bytes(data[8:12], "big")
    if case == "epoch":
        data[size + 15] ^= 1
    elif case == "compressed":
        rows = [(NOW, None, b"v", ())]
        data[size:] = encode_batch(rows, base_offset=6, compression=Compression.GZIP)
    elif case == "control":
        data[size + 22] |= 32
    elif case == "stamped":
        data[size + 22] |= 8
    elif case == "before":
        data[size + 7] = 5
    elif case == "crc":
        data[-1] ^= 1
    one, other = headers_of(codec, bytes(data))
    if case == "apart":
        other = headers_of(codec, bytes(data))[1]
    if case == "copied":
        other.detach()
    cursor = one.cursor(one._data, 61, "orders", 3, 0)
    check = case in {"crc", "apart", "copied", "epoch", "before"}
    assert not other.extend(cursor, check)
    assert [record.offset for record in cursor] == [4, 5]
    # Nor to a cursor that is at its end.
    assert not headers_of(codec, bytes(data))[1].extend(cursor, check)


def test_columns_of_a_cursor_over_several_batches(codec: ModuleType) -> None:
    columns = importlib.import_module(
        "kafkaio._records._columns"
        if codec.__name__.endswith("_pure")
        else codec.__name__
    )
    headers = headers_of(codec, encoded([2, 3, 1], [0, 1, 0]))
    for skipped in range(6):
        cursor, count = joined(codec, headers)
        assert count == 3
        cursor.skip(skipped)
        for piece in (cursor, cursor.copy().cut(3)):
            builder = columns.ColumnsBuilder(DecodedColumns(headers=False))
            assert builder.add_cursor(piece)
            made = builder.finish()
            offsets = [record.offset for record in piece.copy()]
            assert list(memoryview(made.offsets).cast("q")) == offsets
