"""Records as columns and columns as records, on both codecs."""

from __future__ import annotations

import importlib
import re
from array import array
from itertools import accumulate, pairwise
from types import ModuleType

import pytest
from hypothesis import given, settings, strategies as st

from kafkaio._records._layout import (
    BinaryColumn,
    BinaryView,
    Columns,
    DecodedColumns,
    Destinations,
    HeaderView,
)
from kafkaio._records._murmur2 import key_partition
from kafkaio._records.batch import (
    BatchBuilder,
    Compression,
    encode_batch,
    read_batches,
)
from kafkaio.errors import CorruptRecord, UsageError
from tests.unit.records.strategies import (
    MAX_INT64,
    field,
    fields,
    headers,
    origin,
    record,
    record_lists,
    timestamps,
    varint,
)
from tests.unit.records.test_codecs import CORRUPT, NOW, forged_records, law, write
from tests.unit.records.test_cursor import cursor_class


def columnar(codec: ModuleType) -> ModuleType:
    if codec.__name__.endswith("_pure"):
        return importlib.import_module("kafkaio._records._columns")
    return codec


def numbers(kind: str, data: bytearray) -> list[int]:
    return array(kind, bytes(data)).tolist()


def values_of(column: BinaryColumn, count: int) -> list[bytes | None]:
    places = numbers("i", column.offsets)
    assert len(places) == count + 1
    assert places[0] == 0
    assert places[-1] == len(column.data)
    found: list[bytes | None] = []
    for index, (start, end) in enumerate(pairwise(places)):
        if (
            column.validity is not None
            and not column.validity[index // 8] >> (index % 8) & 1
        ):
            assert start == end
            found.append(None)
        else:
            found.append(bytes(column.data[start:end]))
    assert column.null_count == found.count(None)
    assert (column.validity is None) == (column.null_count == 0)
    if column.validity is not None:
        assert len(column.validity) == (count + 7) // 8
    return found


def rows_of(columns: Columns) -> list[tuple]:
    assert columns.headers is not None
    starts = numbers("i", columns.headers.offsets)
    names = values_of(columns.headers.names, starts[-1])
    values = values_of(columns.headers.values, starts[-1])
    assert None not in names
    pairs = [
        tuple(
            (name.decode(), value)
            for name, value in zip(names[start:end], values[start:end], strict=True)
        )
        for start, end in pairwise(starts)
    ]
    return list(
        zip(
            numbers("q", columns.offsets),
            numbers("q", columns.timestamps),
            values_of(columns.keys, columns.length),
            values_of(columns.values, columns.length),
            pairs,
            strict=True,
        )
    )


@settings(law, max_examples=40)
@given(batches=st.lists(record_lists, max_size=3), start=st.integers(90, 120))
def test_columns_hold_what_the_records_hold(
    codec: ModuleType, batches: list, start: int
) -> None:
    builder = columnar(codec).ColumnsBuilder(DecodedColumns(headers=True))
    expected = []
    for records in batches:
        data, base = write(codec, records)
        args = (data, 0, len(records), origin(base_timestamp=base, start_offset=start))
        assert builder.add(*args)
        expected += [
            (made.offset, made.timestamp, made.key, made.value, made.headers)
            for made in codec.decode_records(*args)
        ]
        assert builder.length == len(expected)
    columns = builder.finish()
    assert columns.length == len(expected)
    assert rows_of(columns) == expected
    assert builder.finish().length == builder.length == 0


@law
@given(
    batches=st.lists(
        st.tuples(
            st.lists(forged_records, max_size=5), st.sampled_from([0, 0, 0, 0, 1, -1])
        ),
        max_size=4,
    ),
    headers=st.booleans(),
)
def test_twins_gather_alike(twins: tuple, batches: list, headers: bool) -> None:
    stories = []
    for codec in twins:
        builder = columnar(codec).ColumnsBuilder(DecodedColumns(headers=headers))
        story: list[object] = []
        for records, off_by in batches:
            data = b"".join(records)
            try:
                builder.add(data, 0, len(records) + off_by, origin())
            except CorruptRecord as error:
                story.append(str(error))
            story.append(builder.length)
        stories.append((story, builder.finish(), builder.finish()))
    assert stories[0] == stories[1]


@law
@given(
    batches=st.lists(st.tuples(record_lists, st.booleans()), max_size=5),
    start=st.integers(90, 110),
    headers=st.booleans(),
    room=st.integers(-1, 10_000),
)
def test_twins_gather_alike_from_cursors(
    twins: tuple, batches: list, start: int, headers: bool, room: int
) -> None:
    """Also between batches, after corrupt ones, and after `reserve`."""
    found = []
    for codec in twins:
        builder = columnar(codec).ColumnsBuilder(DecodedColumns(headers=headers))
        builder.reserve(room, room)
        for records, comes_whole in batches:
            data, base = write(codec, records)
            shared = origin(base_timestamp=base, start_offset=start)
            args = (data, 0, len(records), shared)
            with pytest.raises(CorruptRecord):
                builder.add(data + b"\0", 0, len(records), shared)
            if comes_whole:
                builder.add(*args)
            else:
                assert builder.add_cursor(cursor_class(codec)(*args, MAX_INT64))
        found.append(builder.finish())
    assert found[0] == found[1]
    times = numbers("q", found[0].timestamps)
    assert found[0].timeless == times.count(-1)


@law
@given(
    batches=st.lists(record_lists, max_size=4),
    start=st.integers(95, 110),
    end=st.integers(95, 120),
    wanted=st.builds(DecodedColumns, *[st.booleans()] * 5),
)
def test_what_is_not_wanted_is_left_out(
    twins: tuple, batches: list, start: int, end: int, wanted: DecodedColumns
) -> None:
    """Columns that nobody wants, and records from an offset on."""
    found = []
    for codec in twins:
        everything = columnar(codec).ColumnsBuilder(DecodedColumns(headers=True))
        builder = columnar(codec).ColumnsBuilder(wanted)
        expected = 0
        for records in batches:
            data, base = write(codec, records)
            view = memoryview(data)
            shared = origin(base_timestamp=base, start_offset=start)
            with pytest.raises(CorruptRecord):
                builder.add(data + b"\0", 0, len(records), shared, end)
            assert builder.add(view, 0, len(records), shared, end)
            assert everything.add(data, 0, len(records), shared, end)
            made = codec.decode_records(data, 0, len(records), shared)
            expected += sum(record.offset < end for record in made)
            assert builder.length == expected
            assert builder.size == everything.size
        columns, whole = builder.finish(), everything.finish()
        assert columns.length == whole.length
        for name in wanted._fields:
            is_wanted = getattr(wanted, name)
            assert getattr(columns, name) == (
                getattr(whole, name) if is_wanted else None
            )
        assert columns.timeless == (whole.timeless if wanted.timestamps else 0)
        found.append(columns)
    assert found[0] == found[1]


@pytest.mark.parametrize("size", [0, 63, 64, 8_191, 8_192, 1_048_575, 1_048_576])
def test_numbers_of_every_length(codec: ModuleType, size: int) -> None:
    """Lengths and deltas that take one to four bytes, in each place of a record."""
    data = record(
        key=b"k" * size, value=b"v" * size, timestamp_delta=size, offset_delta=size
    )
    data += record(timestamp_delta=-size, offset_delta=size)
    shared = origin(last_offset_delta=size)
    for part, start in ((data, 0), (data, 101), (data[:-1], 0), (data + b"\0", 0)):
        builder = columnar(codec).ColumnsBuilder()
        args = (part, 0, 2, shared._replace(start_offset=start))
        try:
            expected = codec.decode_records(*args)
        except CorruptRecord as error:
            with pytest.raises(CorruptRecord, match=re.escape(str(error))):
                builder.add(*args)
            continue
        builder.add(*args)
        columns = builder.finish()
        assert values_of(columns.keys, len(expected)) == [it.key for it in expected]
        assert values_of(columns.values, len(expected)) == [it.value for it in expected]
        assert numbers("q", columns.offsets) == [it.offset for it in expected]
        assert numbers("q", columns.timestamps) == [it.timestamp for it in expected]


@pytest.mark.parametrize("case", CORRUPT)
def test_a_corrupt_batch_leaves_no_trace(codec: ModuleType, case: str) -> None:
    data, count, changes = CORRUPT[case]
    good = record(key=b"k", headers=varint(1) + field(b"n") + field(b"v"))
    builder = columnar(codec).ColumnsBuilder(DecodedColumns(headers=True))
    builder.add(good, 0, 1, origin())
    with pytest.raises(CorruptRecord):
        builder.add(data, 0, count, origin(**changes))
    with pytest.raises(CorruptRecord):
        builder.add(good + b"\0", 0, 1, origin())
    builder.add(good, 0, 1, origin())
    row = (100, NOW, b"k", b"v", (("n", b"v"),))
    assert rows_of(builder.finish()) == [row, row]


def test_limit(codec: ModuleType) -> None:
    data = record(value=b"v" * 50)
    builder = columnar(codec).ColumnsBuilder(limit=2 * len(data))
    added = [builder.add(data, 0, 1, origin()) for _ in range(3)]
    assert added == [True, True, False]
    assert builder.finish().length == 2
    assert builder.add(data, 0, 1, origin())
    builder.finish()
    with pytest.raises(UsageError, match="too much for columns"):
        builder.add(data * 3, 0, 3, origin())


def test_limit_past_32_bits(codec: ModuleType) -> None:
    with pytest.raises(UsageError, match="at most 2147483647"):
        columnar(codec).ColumnsBuilder(limit=2**31)


def test_header_names_that_are_not_utf8_are_replaced(codec: ModuleType) -> None:
    name = b"\xff" * 2_000
    data = record(headers=varint(2) + (field(name) + field(b"1")) * 2) * 3
    builder = columnar(codec).ColumnsBuilder(DecodedColumns(headers=True))
    builder.add(data, 0, 3, origin())
    rows = rows_of(builder.finish())
    assert [row[4] for row in rows] == [(("\ufffd" * 2_000, b"1"),) * 2] * 3


@pytest.mark.parametrize("compression", Compression)
def test_columns_of_a_batch(compression: Compression) -> None:
    pairs = (("n", b"1"),)
    data = encode_batch(
        [(NOW, b"k", None, pairs), (NOW + 1, None, b"v", ())],
        base_offset=7,
        compression=compression,
    )
    (batch,) = read_batches(data)
    assert rows_of(batch.columns(headers=True)) == [
        (7, NOW, b"k", None, pairs),
        (8, NOW + 1, None, b"v", ()),
    ]
    assert batch.columns(8).length == 1
    assert batch.columns().headers is None
    assert (batch.keys(), batch.values(8)) == ([b"k", None], [b"v"])


# Columns to records.


def view_of(
    values: list[bytes | None], *, width: int, pad: int, has_validity: bool
) -> BinaryView:
    # As a slice of an Arrow array would be: its first value is not the buffers' first.
    padded = [b"pad"] * pad + values
    ends = [0]
    bits = bytearray((len(padded) + 7) // 8)
    for index, value in enumerate(padded):
        ends.append(ends[-1] + len(value or b""))
        bits[index >> 3] |= (value is not None) << (index & 7)
    return BinaryView(
        bytes(bits) if has_validity or None in values else None,
        array("i" if width == 4 else "q", ends).tobytes(),
        b"".join(value or b"" for value in padded),
        pad,
        width,
    )


views = st.fixed_dictionaries(
    {
        "width": st.sampled_from([4, 8]),
        "pad": st.integers(0, 10),
        "has_validity": st.booleans(),
    }
)


@law
@given(
    rows=st.lists(st.tuples(timestamps, fields, fields), max_size=20),
    target=st.integers(0, 2_000),
    layout=views,
    start=st.integers(0, 20),
)
def test_append_columns_is_as_if_appended_one_by_one(
    codec: ModuleType, rows: list, target: int, layout: dict, start: int
) -> None:
    start = min(start, len(rows))
    single, bulk = codec.RecordWriter(target), codec.RecordWriter(target)
    appended = 0
    for row in rows[start:]:
        if single.try_append(*row) < 0:
            break
        appended += 1
    times = array("q", [row[0] for row in rows])
    keys = view_of([row[1] for row in rows], **layout)
    values = view_of([row[2] for row in rows], **layout)
    several = columnar(codec).Rows(len(rows), times, keys, values)
    assert several.length == len(rows)
    assert several.timestamps is times
    assert several.append_to(bulk, start) == appended
    assert bulk.section() == single.section()
    assert bulk.max_timestamp == single.max_timestamp


def test_one_timestamp_and_missing_columns(codec: ModuleType) -> None:
    writer = codec.RecordWriter(1_000)
    rows = columnar(codec).Rows
    assert rows(2, NOW, None, None).append_to(writer) == 2
    keys = view_of([b"a", b"b"], width=4, pad=0, has_validity=False)
    assert rows(2, NOW, keys, None).append_to(writer, 1) == 1
    assert rows(3, NOW, None, None).append_to(writer, 3) == 0
    other = codec.RecordWriter(1_000)
    for key in (None, None, b"b"):
        other.try_append(NOW, key, None)
    assert writer.section() == other.section()


GOOD = view_of([b"a", b"bc"], width=4, pad=0, has_validity=True)
WRONG: dict[str, BinaryView] = {
    "too few offsets": GOOD._replace(offsets=bytes(11)),
    "too little validity": GOOD._replace(validity=b""),
    "validity ends before the slice": GOOD._replace(
        offsets=bytes(80), validity=b"\xff", first=7
    ),
    "width of two": GOOD._replace(width=2),
    "first below zero": GOOD._replace(first=-1),
    "first past the end": GOOD._replace(first=2),
    "first far past the end": GOOD._replace(first=2**60),
    "value past the data": GOOD._replace(data=b"a"),
    "value before the data": GOOD._replace(offsets=array("i", [-1, 0, 1]).tobytes()),
    "value ends before it begins": GOOD._replace(
        offsets=array("i", [0, 2, 1]).tobytes()
    ),
    "offsets that only 64 bits hold": GOOD._replace(
        offsets=array("q", [0, 1, 2**40]).tobytes(), width=8
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_inconsistent_columns(twins: tuple[ModuleType, ModuleType], case: str) -> None:
    messages = set()
    for codec in twins:
        module = columnar(codec)
        for action in (
            lambda m=module, c=codec: m.Rows(2, NOW, WRONG[case], None).append_to(
                c.RecordWriter(999)
            ),
            lambda m=module: m.Rows(2, NOW, None, WRONG[case]).check(),
            lambda m=module: [
                m.Rows(2, NOW, None, WRONG[case]).record(row) for row in (0, 1)
            ],
            lambda m=module: m.column_partitions(WRONG[case], 0, 2, 6),
        ):
            with pytest.raises(UsageError) as caught:
                action()
            messages.add(str(caught.value))
    assert len(messages) == 1


def test_rows_that_do_not_exist(codec: ModuleType) -> None:
    module = columnar(codec)
    writer = codec.RecordWriter(1_000)
    for start, stop in ((-1, 1), (2, 1), (0, 3)):
        with pytest.raises(UsageError):
            module.Rows(stop, NOW, GOOD, None).append_to(writer, start)
        with pytest.raises(UsageError):
            module.column_partitions(GOOD, start, stop, 6)
    for row in (-1, 2):
        with pytest.raises(UsageError, match=f"no row {row}"):
            module.Rows(2, NOW, GOOD, None).record(row)
    with pytest.raises(UsageError, match="cannot be -1 rows"):
        module.Rows(-1, NOW, GOOD, None)
    with pytest.raises(UsageError, match="fewer than 2"):
        module.Rows(2, array("q", [NOW]), GOOD, None)
    with pytest.raises(UsageError, match="for 0"):
        module.column_partitions(GOOD, 0, 2, 0)
    assert writer.count == 0


@pytest.mark.parametrize("wrong", [-2, MAX_INT64])
def test_impossible_timestamp_in_a_column(codec: ModuleType, wrong: int) -> None:
    writer = codec.RecordWriter(1_000)
    rows = columnar(codec).Rows
    several = rows(2, array("q", [NOW, wrong]), GOOD, None)
    with pytest.raises(UsageError, match=f"the timestamp {wrong}"):
        several.append_to(writer)
    assert writer.count == 1
    with pytest.raises(UsageError, match=f"the timestamp {wrong}"):
        several.check()
    with pytest.raises(UsageError, match=f"the timestamp {wrong}"):
        several.record(1)
    with pytest.raises(UsageError, match=f"the timestamp {wrong}"):
        rows(2, wrong, GOOD, None)


def test_a_producer_takes_no_row_without_a_time(codec: ModuleType) -> None:
    rows = columnar(codec).Rows(2, array("q", [NOW, -1]), GOOD, None)
    assert rows.append_to(codec.RecordWriter(1_000)) == 2
    with pytest.raises(UsageError, match="the timestamp -1"):
        rows.check()


def header_view(rows: list, layout: dict) -> HeaderView:
    pairs = [pair for row in rows for pair in row]
    return HeaderView(
        array("q", accumulate(len(row) for row in rows)),
        view_of([name.encode() for name, _ in pairs], **layout),
        view_of([value for _, value in pairs], **layout),
    )


@law
@given(
    rows=st.lists(
        st.tuples(timestamps, fields, fields, headers),
        max_size=9,
    ),
    target=st.integers(0, 500),
    layout=views,
)
def test_rows_with_headers_are_as_if_appended_one_by_one(
    codec: ModuleType, rows: list, target: int, layout: dict
) -> None:
    rows = [(abs(t), k, v, tuple(h)) for t, k, v, h in rows]
    columns = columnar(codec).Rows(
        len(rows),
        array("q", [row[0] for row in rows]),
        view_of([row[1] for row in rows], **layout),
        view_of([row[2] for row in rows], **layout),
        header_view([row[3] for row in rows], layout),
    )
    assert [columns.record(at) for at in range(len(rows))] == rows
    sizes = [BatchBuilder.size_of(*row[1:]) for row in rows]
    assert columns.check() == max(sizes, default=0)
    single, bulk = codec.RecordWriter(target), codec.RecordWriter(target)
    appended = 0
    for row in rows:
        if single.try_append(*row) < 0:
            break
        appended += 1
    assert columns.append_to(bulk) == appended
    assert bulk.section() == single.section()


NAMED = HeaderView(array("q", [1, 2]), GOOD, GOOD)
NULL = view_of([b"a", None], width=4, pad=0, has_validity=True)
WRONG_HEADERS = {
    "too few ends": NAMED._replace(ends=array("q", [1])),
    "ends below zero": NAMED._replace(ends=array("q", [1, -1])),
    "ends that go back": NAMED._replace(ends=array("q", [2, 1])),
    "an end below zero": NAMED._replace(ends=array("q", [-1, 2])),
    "an end past the last": NAMED._replace(ends=array("q", [3, 2])),
    "too few names": NAMED._replace(ends=array("q", [1, 3])),
    "too few values": NAMED._replace(values=GOOD._replace(offsets=bytes(8))),
    "no name": NAMED._replace(names=NULL),
}


@pytest.mark.parametrize("case", WRONG_HEADERS)
def test_inconsistent_headers(twins: tuple[ModuleType, ModuleType], case: str) -> None:
    messages = set()
    for codec in twins:
        rows = columnar(codec).Rows
        for action in (
            lambda r=rows: r(2, NOW, None, None, WRONG_HEADERS[case]).check(),
            lambda r=rows, c=codec: r(
                2, NOW, None, None, WRONG_HEADERS[case]
            ).append_to(c.RecordWriter(999)),
        ):
            with pytest.raises(UsageError) as caught:
                action()
            messages.add(str(caught.value))
    assert len(messages) == 1


def test_where_rows_are_to_go(codec: ModuleType) -> None:
    rows = columnar(codec).Rows
    plain = rows(2, NOW, GOOD, None)
    assert plain.destination(1) == (None, None)
    assert plain.reach() == {None: -1}
    assert rows(0, NOW, None, None).reach() == {}
    numbers, partitions = array("i", [1, 0, 0, 1, 0]), array("i", [-1, 2, -1, 0, 1])
    own = rows(5, NOW, None, None, None, Destinations(("a", "b"), numbers, partitions))
    assert [own.destination(row) for row in range(5)] == [
        ("b", None),
        ("a", 2),
        ("a", None),
        ("b", 0),
        ("a", 1),
    ]
    assert own.reach() == {"b": 0, "a": 2}
    assert own.check() > 0
    topics = rows(2, NOW, None, None, None, Destinations(("a",), array("i", [0, 0])))
    assert topics.destination(1) == ("a", None)
    assert topics.reach() == {"a": -1}
    named = rows(2, NOW, None, None, None, Destinations(partitions=partitions))
    assert [named.destination(row) for row in range(2)] == [(None, None), (None, 2)]
    assert named.reach() == {None: 2}
    for row in (-1, 5):
        with pytest.raises(UsageError, match=f"no row {row}"):
            own.destination(row)


@pytest.mark.parametrize("number", [-1, 2, -(2**31)])
def test_rows_of_no_topic(codec: ModuleType, number: int) -> None:
    own = Destinations(("a", "b"), array("i", [0, number]))
    rows = columnar(codec).Rows(2, NOW, None, None, None, own)
    assert rows.destination(0) == ("a", None)
    for ask in (rows.check, rows.reach, lambda: rows.destination(1)):
        with pytest.raises(UsageError, match=f"row 1 .* no number {number}"):
            ask()


@pytest.mark.parametrize(
    "given",
    [
        Destinations(["a"], bytes(8)),  # type: ignore[arg-type]
        Destinations((b"a",), bytes(8)),  # type: ignore[arg-type]
        Destinations(("a",), bytes(7)),
        Destinations(partitions=bytes(7)),
    ],
)
def test_destinations_that_are_none(codec: ModuleType, given: Destinations) -> None:
    with pytest.raises(UsageError, match=r"tuple of str|fewer than 2"):
        columnar(codec).Rows(2, NOW, None, None, None, given)


def test_headers_without_values(codec: ModuleType) -> None:
    rows = columnar(codec).Rows(
        2, NOW, None, GOOD, HeaderView(array("q", [2, 2]), GOOD, None)
    )
    assert rows.record(0)[3] == (("a", None), ("bc", None))
    assert rows.record(1)[3] == ()
    writer = codec.RecordWriter(999)
    assert rows.append_to(writer) == 2
    assert writer.count == 2


@law
@given(keys=st.lists(fields, max_size=20), layout=views, count=st.integers(1, 99))
def test_partitions_of_a_column(
    codec: ModuleType, keys: list, layout: dict, count: int
) -> None:
    view = view_of(keys, **layout)
    found = columnar(codec).column_partitions(view, 0, len(keys), count)
    assert numbers("i", found) == [
        -1 if key is None else key_partition(key, count) for key in keys
    ]
