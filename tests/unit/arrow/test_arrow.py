"""Batches as tables and tables as records."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys

import pytest

from kafkaio._records.batch import (
    BatchBuilder,
    Compression,
    converted,
    encode_batch,
    read_batches,
)
from kafkaio.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    CorruptRecord,
    UsageError,
)
from kafkaio.types import NewRecord, Record, TopicPartition

pa = pytest.importorskip("pyarrow", exc_type=ImportError)
from kafkaio import arrow  # noqa: E402

NOW = 1_700_000_000_000
TIME = dt.datetime.fromtimestamp(NOW / 1000, dt.UTC)
ORDERS = TopicPartition("orders", 3)
PLACES = TopicPartition("places", 0)
ROWS = [
    (NOW, b"k0", b"v0", ()),
    (NOW + 1, None, b"v1", (("trace", b"1"), ("é", None))),
    (NOW + 2, b"k2", None, ()),
]


def batch_of(rows: list, base: int = 0, compression: Compression = Compression.NONE):
    (batch,) = read_batches(
        encode_batch(rows, base_offset=base, compression=compression)
    )
    return batch


def test_schema() -> None:
    names = ["topic", "partition", "offset", "timestamp", "key", "value"]
    assert arrow.schema().names == names
    assert arrow.schema(headers=True).names == [*names, "headers"]


@pytest.mark.parametrize("compression", Compression)
def test_batches_to_table(compression: Compression) -> None:
    parts = [
        (ORDERS, batch_of(ROWS, 10, compression), 11),
        (ORDERS, batch_of(ROWS[:1], 13, compression), 0),
        (PLACES, batch_of(ROWS, 50, compression), 0),
    ]
    table = arrow.batches_to_table(parts, headers=True)
    table.validate(full=True)
    assert table.schema == arrow.schema(headers=True)
    assert table["topic"].to_pylist() == ["orders"] * 3 + ["places"] * 3
    assert table["partition"].to_pylist() == [3] * 3 + [0] * 3
    assert table["offset"].to_pylist() == [11, 12, 13, 50, 51, 52]
    assert table["timestamp"][0].as_py() == TIME + dt.timedelta(milliseconds=1)
    assert table["key"].to_pylist() == [None, b"k2", b"k0", b"k0", None, b"k2"]
    assert table["value"].to_pylist() == [b"v1", None, b"v0", b"v0", b"v1", None]
    assert table["headers"].to_pylist()[:2] == [
        [{"name": "trace", "value": b"1"}, {"name": "é", "value": None}],
        [],
    ]


def test_no_batches() -> None:
    table = arrow.batches_to_table([])
    assert (table.num_rows, table.schema) == (0, arrow.schema())


def test_batch_with_nothing_after_the_start() -> None:
    table = arrow.batches_to_table([(ORDERS, batch_of(ROWS), 3)])
    assert (table.num_rows, table.schema) == (0, arrow.schema())


def test_a_timestamp_that_is_none_is_null() -> None:
    rows = [(-1, None, b"v", ()), (NOW, None, b"v", ())]
    table = arrow.batches_to_table([(ORDERS, batch_of(rows), 0)])
    assert table["timestamp"].to_pylist() == [None, TIME]


def test_table_builder_begins_a_chunk_where_one_is_full() -> None:
    batch = batch_of(ROWS)
    builder = arrow.TableBuilder(limit=batch.size_bytes - 61)
    for tp in (ORDERS, PLACES, ORDERS):
        builder.add(tp, batch)
    assert builder.length == 9
    table = builder.finish()
    assert [len(chunk) for chunk in table["offset"].chunks] == [3, 3, 3]
    assert table["partition"].to_pylist() == [3] * 3 + [0] * 3 + [3] * 3
    assert (builder.length, builder.finish().num_rows) == (0, 0)
    builder.add(PLACES, batch, 2)
    assert builder.finish()["topic"].to_pylist() == ["places"]


@pytest.mark.parametrize("expected", [0, 3, 7, 2**40])
@pytest.mark.parametrize("size", [0, 40, 100_000])
def test_table_builder_when_records_come_in_other_sizes_than_expected(
    expected: int, size: int
) -> None:
    rows = [[(0, b"k" * size, b"v" * size, ())] * n for n in (1, 4, 2)]
    rows[0] = [(0, None, b"v" * 40, ())]
    builder = arrow.TableBuilder()
    for part in rows:
        cursor = batch_of(part).iterate("orders", 3)
        builder.add_cursor(ORDERS, cursor, expected)
        assert cursor.remaining == len(part)
    table = builder.finish()
    table.validate(full=True)
    assert table["key"].to_pylist() == [None] + [b"k" * size] * 6
    assert table["value"].to_pylist() == [b"v" * 40] + [b"v" * size] * 6


def test_table_builder_and_a_batch_past_the_limit() -> None:
    with pytest.raises(UsageError, match="too much"):
        arrow.TableBuilder(limit=10).add(ORDERS, batch_of(ROWS))


def test_a_corrupt_batch_leaves_the_rest() -> None:
    data = bytearray(encode_batch(ROWS))
    data[61] ^= 0xFF
    (corrupt,) = read_batches(data, check_crcs=False)
    builder = arrow.TableBuilder()
    builder.add(ORDERS, batch_of(ROWS))
    with pytest.raises(CorruptRecord):
        builder.add(PLACES, corrupt)
    table = builder.finish()
    table.validate(full=True)
    assert table["topic"].to_pylist() == ["orders"] * 3


def test_records_to_table_is_like_the_batch() -> None:
    batch = batch_of(ROWS, 10)
    table = arrow.records_to_table(batch.decode("orders", 3), headers=True)
    assert table.equals(arrow.batches_to_table([(ORDERS, batch, 0)], headers=True))
    assert table.schema == arrow.schema(headers=True)


def test_records_to_table_with_deserialized_values() -> None:
    records = [
        converted(record, None, {"n": record.offset})
        for record in batch_of(ROWS).decode("orders", 3)
    ]
    table = arrow.records_to_table(records)
    assert table["value"].to_pylist() == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert table["key"].to_pylist() == [None] * 3
    assert table.schema.names == arrow.schema().names


def test_no_records() -> None:
    table = arrow.records_to_table([])
    assert (table.num_rows, table.schema) == (0, arrow.schema())


BINARY = [
    pa.binary(),
    pa.large_binary(),
    pa.string(),
    pa.large_string(),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.int64(), pa.large_binary()),
]


WORD = b"longer than what a view holds in itself"


def sent(table: object, **names: object) -> list[Record]:
    builder = BatchBuilder(target_size=2**30)
    for rows in arrow.rows_from_table(table, now=NOW, **names):
        assert rows.append_to(builder) == rows.length
    (batch,) = read_batches(builder.build())
    return batch.decode("orders", 3)


def column(words: list[str | None], kind: object) -> object:
    """Make an array; Arrow itself makes only some kinds of dictionaries of a list."""
    if not pa.types.is_dictionary(kind):
        return pa.array(words, kind)
    places = pa.array(
        range(len(words)), kind.index_type, mask=[w is None for w in words]
    )
    return pa.DictionaryArray.from_arrays(places, pa.array(words, kind.value_type))


@pytest.mark.parametrize("kind", BINARY, ids=str)
def test_rows_from_table(kind: object) -> None:
    keys = column(["a", None, "b", "a", "é"], kind)
    values = column([None, "", "v2", "v3", "v4"], kind)
    times = pa.array([NOW + n for n in range(5)], pa.timestamp("ms", tz="UTC"))
    whole = pa.table({"k": keys, "value": values, "t": times})
    table = pa.concat_tables([whole.slice(1, 3), whole.slice(0, 0), whole.slice(4)])
    records = sent(table, key="k", timestamp="t")
    assert [record.key for record in records] == [None, b"b", b"a", "é".encode()]
    assert [record.value for record in records] == [b"", b"v2", b"v3", b"v4"]
    assert [record.timestamp - NOW for record in records] == [1, 2, 3, 4]
    expected = [
        NewRecord(record.value, record.key, timestamp=record.timestamp)
        for record in records
    ]
    assert list(arrow.records_from_table(table, key="k", timestamp="t")) == expected


def test_other_types_of_bytes() -> None:
    fixed = pa.table({"value": pa.array([b"ab", None], pa.binary(2))})
    assert [record.value for record in sent(fixed)] == [b"ab", None]
    nulls = pa.table({"value": pa.nulls(2)})
    assert [record.value for record in sent(nulls)] == [None, None]
    if hasattr(pa, "binary_view"):
        views = pa.table({"value": pa.array([b"ab", None], pa.binary_view())})
        assert [record.value for record in sent(views)] == [b"ab", None]


@pytest.mark.skipif(not hasattr(pa, "string_view"), reason="this Arrow has no views")
@pytest.mark.parametrize("kind", ["string_view", "binary_view"])
def test_a_dictionary_of_views(kind: str) -> None:
    words = pa.array([b"ab", None, WORD]).view(pa.string())
    places = pa.array([2, 0, None, 1, 2], pa.uint32())
    column = pa.DictionaryArray.from_arrays(places, words.cast(getattr(pa, kind)()))
    table = pa.table({"value": column}).slice(1)
    assert [record.value for record in sent(table)] == [b"ab", None, None, WORD]


def test_empty_values() -> None:
    table = pa.table({"value": pa.array([b"", b""])})
    assert [record.value for record in sent(table)] == [b"", b""]


def test_a_record_batch_is_taken_too() -> None:
    chunk = pa.RecordBatch.from_pydict({"a": [b"x"], "b": [b"y"]})
    (record,) = sent(chunk, key="a", value="b")
    assert (record.key, record.value) == (b"x", b"y")
    assert list(arrow.records_from_table(chunk, value=None)) == [NewRecord(None)]


@pytest.mark.parametrize(
    "times",
    [
        pa.array([NOW * 1000 + 999, None], pa.timestamp("us")),
        pa.array([NOW, None], pa.int64()),
        pa.array([None, NOW, None], pa.int64()).slice(1),
        pa.array([NOW, None], pa.uint64()),
    ],
    ids=str,
)
def test_timestamps(times: object) -> None:
    table = pa.table({"value": [b"a", b"b"], "t": times})
    assert [record.timestamp for record in sent(table)] == [NOW, NOW]
    records = list(arrow.records_from_table(table, timestamp="t"))
    assert [record.timestamp for record in records] == [NOW, None]
    (rows,) = arrow.rows_from_table(table, now=5, timestamp="t")
    assert isinstance(rows.timestamps, memoryview)
    assert rows.timestamps.cast("B").cast("q").tolist() == [NOW, 5]


def test_rows_go_on_in_the_next_batch() -> None:
    table = pa.table({"value": [b"%03d" % n for n in range(100)]})
    (rows,) = arrow.rows_from_table(table, now=NOW)
    start, counts = 0, []
    while start < rows.length:
        builder = BatchBuilder(target_size=200)
        counts.append(rows.append_to(builder, start))
        start += counts[-1]
    assert sum(counts) == 100
    assert len(counts) > 5


PAIRS = [[("a", b"1"), ("é", None)], None, [], [("c", b"22")]]
ENTRY = pa.struct([("name", pa.string()), ("value", pa.binary())])
HEADERS = {
    "map": pa.array(PAIRS, pa.map_(pa.string(), pa.binary())),
    "map of text": pa.array(
        [row and [(n, v and v.decode()) for n, v in row] for row in PAIRS],
        pa.map_(pa.binary(), pa.large_string()),
    ),
    "list": pa.array(
        [row and [{"name": n, "value": v} for n, v in row] for row in PAIRS],
        pa.list_(ENTRY),
    ),
}
HEADERS["large list"] = HEADERS["list"].cast(pa.large_list(ENTRY))


@pytest.mark.parametrize("layout", HEADERS)
def test_headers_of_rows(layout: str) -> None:
    expected = [tuple(row or ()) for row in PAIRS]
    table = pa.table({"value": [b"v"] * 4, "h": HEADERS[layout]})
    for first, count in ((0, 4), (1, 3), (0, 1), (3, 1), (1, 2)):
        found = sent(table.slice(first, count), headers="h")
        assert [record.headers for record in found] == expected[first : first + count]


def test_no_headers_and_headers_without_values() -> None:
    table = pa.table(
        {
            "value": [b"v"],
            "none": pa.nulls(1),
            "bare": pa.array(
                [[("a", None)]],
                pa.list_(pa.struct([("n", pa.string()), ("v", pa.null())])),
            ),
        }
    )
    assert sent(table, headers="none")[0].headers == ()
    assert sent(table, headers="bare")[0].headers == (("a", None),)


@pytest.mark.parametrize(
    ("column", "match"),
    [
        (pa.array([b"x"]), "column 'h' is binary; headers"),
        (pa.array([[b"x"]]), "headers must be lists"),
        (pa.array([[{"a": 1, "b": 2, "c": 3}]]), "headers must be lists"),
        (pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int32())), "'h' is int32"),
        (pa.array([[(1, b"a")]], pa.map_(pa.int32(), pa.binary())), "'h' is int32"),
        (pa.array([[(b"\xff", b"")]], pa.map_(pa.binary(), pa.binary())), "not UTF-8"),
        (pa.array([[{"n": None, "v": b""}]]), "without a name"),
        (pa.array([[None]], pa.list_(ENTRY)), "without a name"),
    ],
)
def test_headers_that_cannot_be_sent(column: object, match: str) -> None:
    table = pa.table({"value": [b"v"], "h": column})
    with pytest.raises(ArgumentValueError, match=match):
        list(arrow.rows_from_table(table, now=NOW, headers="h"))


def test_columns_that_cannot_be_sent() -> None:
    table = pa.table({"value": [b"v"], "n": [1], "x": [1.5]})
    with pytest.raises(ArgumentValueError, match="column 'n' is int64"):
        list(arrow.rows_from_table(table, now=NOW, key="n"))
    with pytest.raises(ArgumentValueError, match="column 'x' is double"):
        list(arrow.records_from_table(table, timestamp="x"))
    late = pa.table({"value": [b"v"], "t": pa.array([2**64 - 1], pa.uint64())})
    with pytest.raises(ArgumentValueError, match=r"column 't': .* not in range"):
        list(arrow.rows_from_table(late, now=NOW, timestamp="t"))
    with pytest.raises(ArgumentValueError, match="no column 'y'"):
        list(arrow.rows_from_table(table, now=NOW, key="y"))
    with pytest.raises(ArgumentValueError, match="no column 'y'"):
        arrow.split_by_key(table, "y", 3)


def test_what_is_no_table() -> None:
    with pytest.raises(ArgumentTypeError, match=r"RecordBatch of pyarrow, not .*dict"):
        list(arrow.rows_from_table({"value": [b"v"]}, now=NOW))


def test_split_by_key() -> None:
    # 21 and foobar are from Kafka's own tests of murmur2.
    keys = ["21", None, "foobar", "21", None, "abc"]
    table = pa.table({"k": keys, "n": range(6)})
    chunked = pa.concat_tables([table.slice(0, 4), table.slice(4)])
    parts = [
        (partition, rows["n"].to_pylist())
        for partition, rows in arrow.split_by_key(chunked, "k", 1_000)
    ]
    hashes = {"21": -973932308, "foobar": -790332482, "abc": 479470107}
    where = {key: (h & 0x7FFFFFFF) % 1_000 for key, h in hashes.items()}
    expected = [
        (-1, [1, 4]),
        (where["21"], [0, 3]),
        (where["foobar"], [2]),
        (where["abc"], [5]),
    ]
    assert parts == sorted(expected)


def test_split_without_keys_or_rows() -> None:
    table = pa.table({"k": pa.nulls(2)})
    ((partition, rows),) = arrow.split_by_key(table, "k", 3)
    assert (partition, rows.num_rows) == (-1, 2)
    assert arrow.split_by_key(table.slice(0, 0), "k", 3) == []


@pytest.mark.slow
def test_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "try:\n    import kafkaio.arrow\n"
        "except ImportError as error:\n    print(error)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "pip install 'kafkaio[arrow]'" in answer.stdout
