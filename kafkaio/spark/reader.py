"""Reading: a batch, and the tasks of batches and streams.

`KafkaReader` is pickled to the planner process of a query, which calls ``partitions``,
and with it to the workers, which call ``read``. It holds options and columns, and no
connection: those are kept by process (`kafkaio.spark.runtime`).

A task reads with `kafkaio.arrow.read_ranges`, on the event loop of its worker, one
coroutine for each record batch. Nothing is done for single records here, and no column
is copied.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from kafkaio.errors import OffsetOutOfRange
from kafkaio.spark import runtime
from kafkaio.spark.errors import (
    explained,
    listed,
    lost,
    plainly,
    plainly_each,
    warn_lost,
)
from kafkaio.spark.lookup import Lookup, ends_of
from kafkaio.spark.offsets import (
    inside,
    name_of,
    outside,
    ranges_between,
    remaining,
)
from kafkaio.spark.options import ReadOptions
from kafkaio.spark.planning import Task, plan
from kafkaio.spark.schema import Column, arrow_schemas
from kafkaio.spark.shipping import shipped
from kafkaio.types import OffsetRange, TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkaio.client.client import Client

__all__ = ["KafkaReader", "TaskPartition", "partitions_of", "read_task", "report"]


class TaskPartition(InputPartition):  # type: ignore[misc]  # pyspark is not followed
    """What one task reads, as Spark hands it to the task.

    Args:
        task: ranges, in the order in which they are read.
    """

    def __init__(self, task: Task) -> None:
        super().__init__(None)
        self.task = task

    def __repr__(self) -> str:
        ranges = (f"{name_of(tp)}[{start}, {end})" for tp, start, end in self.task)
        return f"TaskPartition({', '.join(ranges)})"


class KafkaReader(DataSourceReader):  # type: ignore[misc]  # pyspark is not followed
    """Reads topics once, between two offsets for each partition.

    The offsets are looked up when the query is planned: what is written later is not
    read.

    Args:
        options: of the read.
        columns: of the read.
    """

    def __init__(self, options: ReadOptions, columns: Sequence[Column]) -> None:
        self._options = options
        self._columns = tuple(columns)

    __reduce__ = shipped

    @plainly
    def partitions(self) -> list[TaskPartition]:
        """Return the tasks. Spark calls it in the planner process.

        Raises:
            DataSourceError: the cluster cannot be asked, or records were deleted.
        """
        options, lookup = self._options, Lookup(self._options)
        start, end = lookup.start_and_end()
        ranges, losses = ranges_between(start, end, {})
        earliest, latest = lookup.ends(start.keys())
        report(options, [*losses, *outside(ranges, earliest, latest)])
        return partitions_of(options, inside(ranges, earliest, latest))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the record batches of a task. Spark calls it in a worker.

        Raises:
            DataSourceError: records cannot be read.
        """
        if isinstance(partition, TaskPartition):
            task = read_task(self._options, self._columns, partition.task)
            return plainly_each(task)
        return iter(())  # Spark's stand-in where there are no tasks


def partitions_of(
    options: ReadOptions, ranges: Sequence[OffsetRange]
) -> list[TaskPartition]:
    """Return the tasks that read some ranges."""
    tasks = plan(
        ranges,
        min_partitions=options.min_partitions,
        max_records_per_partition=options.max_records_per_partition,
        min_records_per_task=options.min_records_per_task,
    )
    return [TaskPartition(task) for task in tasks]


def report(options: ReadOptions, losses: list[str]) -> None:
    """Raise an error for records that were lost, or log one warning for all.

    Raises:
        DataLost: there are some, and ``failOnDataLoss`` is true.
    """
    if losses and options.fail_on_data_loss:
        raise lost(losses)
    warn_lost(losses)


def read_task(
    options: ReadOptions, columns: Sequence[Column], task: Task
) -> Iterator[pa.RecordBatch]:
    """Read the ranges of a task, one after the other.

    Raises:
        DataSourceError: records cannot be read.
    """
    runtime.freeze()
    import pyarrow as pa

    asked, wanted = arrow_schemas(columns)
    batches = _batches(options, asked, list(task))
    try:
        with explained(f"reading {listed(map(_span, task))}"):
            while (batch := runtime.run(_next(batches))) is not None:
                yield pa.RecordBatch.from_arrays(batch.columns, schema=wanted)
    finally:
        runtime.run(batches.aclose())


def _span(within: OffsetRange) -> str:
    return f"{name_of(within.partition)} from {within.start} to {within.end}"


async def _next(batches: AsyncIterator[pa.RecordBatch]) -> pa.RecordBatch | None:
    return await anext(batches, None)


async def _batches(
    options: ReadOptions, schema: pa.Schema, ranges: list[OffsetRange]
) -> AsyncGenerator[pa.RecordBatch]:
    # Loaded in the worker, and not where the query is planned.
    from kafkaio.arrow import read_ranges

    client = await runtime.client(options.client_config(in_task=True))
    if not options.fail_on_data_loss:
        ranges = await _there(client, options, ranges)
    while ranges:
        try:
            async for batch in read_ranges(
                client,
                ranges,
                schema=schema,
                isolation_level=options.isolation_level,
                fetch_bytes=options.fetch_bytes,
            ):
                yield batch
            ranges = []
        except OffsetOutOfRange as error:
            if options.fail_on_data_loss:
                raise
            rest = remaining(
                ranges, TopicPartition(error.topic, error.partition), error.position
            )
            ranges = await _there(client, options, rest)


async def _there(
    client: Client, options: ReadOptions, ranges: list[OffsetRange]
) -> list[OffsetRange]:
    """Return what the logs have of ranges, with a warning for what they lack."""
    partitions = {r.partition for r in ranges}
    earliest, latest = await ends_of(client, partitions, options.isolation_level)
    warn_lost(outside(ranges, earliest, latest), {tp.topic for tp in partitions})
    return inside(ranges, earliest, latest)
