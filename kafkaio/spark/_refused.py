"""The reader of a stream whose options are wrong: its first call raises the error.

If making a reader fails, Spark's process of the stream reports an UnboundLocalError of
its own, and ours is somewhere above it. Errors of an existing reader are reported as
they are.

State: the error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from kafkaio.errors import KafkaError
from kafkaio.spark._errors import plainly


class RefusedStreamReader(DataSourceStreamReader):  # type: ignore[misc]  # not followed
    """Raises an error in every method.

    Args:
        error: says why the stream cannot be read.
    """

    def __init__(self, error: KafkaError) -> None:
        self._error = error

    def _refuse(self) -> NoReturn:
        raise self._error

    @plainly
    def initialOffset(self) -> dict[str, dict[str, int]]:
        """Raise the error: the first call of a new query."""
        self._refuse()

    @plainly
    def latestOffset(self) -> dict[str, dict[str, int]]:
        """Raise the error: the first call of a query with a checkpoint."""
        self._refuse()

    @plainly
    def partitions(self, start: object, end: object) -> list[InputPartition]:
        """Raise the error: the first call where a micro-batch is repeated."""
        self._refuse()

    @plainly
    def read(self, partition: InputPartition) -> Iterator[tuple[object, ...]]:
        """Raise the error; never called."""
        self._refuse()
