"""A data source of Spark that reads nothing: rows that it has, in micro-batches.

It has the columns of Kafka's sources, and each of its tasks hands over the same record
batch. So a query over it takes what Spark and its Python processes take.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

__all__ = ["NothingSource"]

COLUMNS = (
    "key binary, value binary, topic string, partition int, offset bigint, "
    "timestamp timestamp, timestampType int"
)


class NothingSource(DataSource):  # type: ignore[misc]  # pyspark is not followed
    """Hands over rows of its own; the options are ``rows``, ``size``, ``limit``."""

    @classmethod
    def name(cls) -> str:
        return "nothing"

    def schema(self) -> str:
        return COLUMNS

    def streamReader(self, schema: StructType) -> NothingReader:
        names = ("rows", "size", "limit")
        return NothingReader(*(int(self.options[name]) for name in names))


class NothingReader(
    DataSourceStreamReader,  # type: ignore[misc]  # pyspark is not followed
    SupportsTriggerAvailableNow,  # type: ignore[misc]
):
    """Hands over a number of rows, of which a micro-batch has so many at most."""

    def __init__(self, rows: int, size: int, limit: int) -> None:
        self._rows = rows
        self._size = size
        self._limit = limit

    def prepareForTriggerAvailableNow(self) -> None:
        pass

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._limit)

    def initialOffset(self) -> dict[str, int]:
        return {"at": 0}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        return {"at": min(start["at"] + self._limit, self._rows)}

    def reportLatestOffset(self) -> dict[str, int]:
        return {"at": self._rows}

    def partitions(
        self, start: dict[str, int], end: dict[str, int]
    ) -> Sequence[InputPartition]:
        return [InputPartition(end["at"] - start["at"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield rows_of(partition.value, self._size)


@cache
def rows_of(count: int, size: int) -> pa.RecordBatch:
    """Return rows whose values have so many bytes; made once in a process."""
    import pyarrow as pa

    numbers = range(count)
    return pa.record_batch(
        {
            "key": pa.array([b"%08d" % n for n in numbers], pa.binary()),
            "value": pa.array([b"x" * size] * count, pa.binary()),
            "topic": pa.array(["nothing"] * count, pa.string()),
            "partition": pa.array([0] * count, pa.int32()),
            "offset": pa.array(numbers, pa.int64()),
            "timestamp": pa.array([0] * count, pa.timestamp("us", tz="UTC")),
            "timestampType": pa.array([0] * count, pa.int32()),
        }
    )
