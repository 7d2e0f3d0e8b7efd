"""A stream that cannot be read: fails with the first thing that Spark asks for.

Spark's process of a stream reports an error in the making of a reader as one of its
own (an UnboundLocalError), and ours is somewhere above it. What a reader that was made
raises is reported as it is.

State: the error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from kafkaio.errors import KafkaError
from kafkaio.spark._errors import plainly


class RefusedStreamReader(DataSourceStreamReader):  # type: ignore[misc]  # not followed
    """Raises why a stream cannot be read, whatever is asked of it.

    Args:
        error: why.
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
