"""The programs of the how-to on tables, with the libraries: ``nightly(tables)``."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kafkaio import ArgumentValueError, NewRecord, OffsetOutOfRange, TopicPartition
from kafkaio.arrow import read_batches, read_table
from tests.pages import python_blocks
from tests.support.served import ServedBroker

PAGE = "howto/tables.md"
ORDERS = [
    *({"customer": "ada", "amount": amount} for amount in (1.5, 2.5)),
    *({"customer": "bob", "amount": amount} for amount in (8.0, 16.0, 32.0)),
]


def new_orders(count: int = 1) -> list[NewRecord]:
    """Orders, one after the other, over three partitions."""
    return [
        NewRecord(json.dumps(order).encode(), b"%d" % n, partition=n % 3)
        for _ in range(count)
        for n, order in enumerate(ORDERS)
    ]


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedBroker]:
    monkeypatch.chdir(tmp_path)
    with ServedBroker(nodes=2) as served:
        for topic in ("orders", "prices"):
            served.create(topic, 3)
        served.send("orders", new_orders())
        yield served


def program(served: ServedBroker, library: str) -> dict[str, Any]:
    """The names of the one program of the page that imports a library."""
    blocks = python_blocks(PAGE, {"localhost:9092": served.servers})
    imports = re.compile(rf"^(import|from) {library}\b", re.MULTILINE)
    (block,) = (block for block in blocks if imports.search(block))
    names: dict[str, Any] = {"__name__": "program"}
    exec(compile(block, f"<{library}>", "exec"), names)
    return names


def test_duckdb(served: ServedBroker, capsys: pytest.CaptureFixture[str]) -> None:
    program(served, "duckdb")["main"]()
    assert capsys.readouterr().out == "bob 56.0\nada 4.0\n"


def test_polars(served: ServedBroker, capsys: pytest.CaptureFixture[str]) -> None:
    program(served, "polars")["main"]()
    assert capsys.readouterr().out == "[('bob', 56.0), ('ada', 4.0)]\n"


def test_pandas(served: ServedBroker, capsys: pytest.CaptureFixture[str]) -> None:
    program(served, "pandas")["main"]()
    totals, newest = capsys.readouterr().out.splitlines()
    assert totals == "{'ada': 4.0, 'bob': 56.0}"
    assert datetime.fromisoformat(newest).date() == datetime.now(UTC).date()


@pytest.mark.parametrize("library", ["deltalake", "pyiceberg"])
def test_a_table_that_grows(
    served: ServedBroker, library: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main = program(served, library)["main"]
    main()
    main()  # nothing is new
    served.send("orders", new_orders(2))
    main()
    said = capsys.readouterr().out.splitlines()
    assert said == ["5 orders", "5 orders", "15 orders"]
    # Deleted before it was read: an error, and nothing is appended.
    served.send("orders", new_orders(3))
    end = read_table(served.servers, TopicPartition("orders", 0)).num_rows
    served.delete({TopicPartition("orders", 0): end - 1})
    with pytest.raises(Exception, match="cannot be read from offset"):
        main()
    assert not capsys.readouterr().out


class TestReaders:
    """What the page says of readers, in the libraries that take one."""

    def test_duckdb(self, served: ServedBroker) -> None:
        duckdb = pytest.importorskip("duckdb", exc_type=ImportError)
        orders = read_batches(served.servers, ["orders", "prices"], max_records=2)
        query = "SELECT topic, count(*), max(timestamp) FROM orders GROUP BY topic"
        ((topic, count, newest),) = duckdb.sql(query).fetchall()
        assert (topic, count) == ("orders", 5)
        assert newest.utcoffset().total_seconds() == 0
        with pytest.raises(duckdb.Error, match="already been consumed"):
            duckdb.sql("SELECT * FROM orders").fetchall()
        served.send("orders", [b"\xff"])
        orders = read_batches(served.servers, "orders", columns={"value": "string"})
        with pytest.raises(duckdb.Error, match="is not UTF-8"):
            duckdb.sql("SELECT * FROM orders").fetchall()
        assert orders is not None  # DuckDB finds it by its name

    def test_polars(self, served: ServedBroker) -> None:
        polars = pytest.importorskip("polars", exc_type=ImportError)
        served.send("prices", [b"1"])
        reader = read_batches(
            served.servers, ["orders", "prices"], columns=["topic", "headers", "offset"]
        )
        frame = polars.from_arrow(reader)
        assert frame["topic"].to_list() == ["orders"] * 5 + ["prices"]
        assert frame["headers"].to_list() == [[]] * 6

    def test_all_columns_in_delta(self, served: ServedBroker) -> None:
        deltalake = pytest.importorskip("deltalake", exc_type=ImportError)
        columns = ["topic", "headers", "value", "timestamp_type", "leader_epoch"]
        reader = read_batches(served.servers, "orders", columns=columns)
        deltalake.write_deltalake("lake", reader)
        found = deltalake.DeltaTable("lake").to_pyarrow_table()
        assert found.schema.names == columns
        assert found["topic"].to_pylist() == ["orders"] * 5

    def test_what_pandas_has_is_taken(self, served: ServedBroker) -> None:
        pandas = pytest.importorskip("pandas", exc_type=ImportError)
        before = pandas.Timestamp.now(tz="Europe/Berlin") - pandas.Timedelta(hours=1)
        table = read_table(served.servers, "orders", start=before)
        ends = table.to_pandas().groupby("partition")["offset"].max() + 1
        served.send("orders", new_orders())
        start = {TopicPartition("orders", n): offset for n, offset in ends.items()}
        assert read_table(served.servers, "orders", start=start).num_rows == 5

    def test_datasets_of_pyarrow(self, served: ServedBroker) -> None:
        dataset = pytest.importorskip("pyarrow.dataset", exc_type=ImportError)
        reader = read_batches(served.servers, "orders")
        dataset.write_dataset(reader, "lake", format="parquet")
        assert dataset.dataset("lake").count_rows() == 5
        # The error is ours: nothing stands between the source and pyarrow.
        served.send("orders", [b"\xff"])
        reader = read_batches(served.servers, "orders", columns={"value": "string"})
        with pytest.raises(ArgumentValueError, match="is not UTF-8"):
            dataset.write_dataset(reader, "other", format="parquet")
        served.delete({TopicPartition("orders", 0): 1})
        start = {TopicPartition("orders", 0): 0}
        reader = read_batches(served.servers, "orders", start=start)
        with pytest.raises(OffsetOutOfRange):
            reader.read_all()


def test_the_page_on_other_libraries(
    served: ServedBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = python_blocks("howto/libraries.md", {"localhost:9092": served.servers})
    (block,) = (block for block in blocks if "import polars" in block)
    names: dict[str, Any] = {"__name__": "program"}
    exec(block, names)
    asyncio.run(names["main"]())
    assert capsys.readouterr().out == "rows: 5\n"
