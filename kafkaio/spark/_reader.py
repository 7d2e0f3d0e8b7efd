"""Reading: a batch, and the tasks of batches and streams.

Spark pickles `KafkaReader` to the planner process of a query, which calls
``partitions``, and to the workers, which call ``read``. It holds options and columns,
and no connection: `kafkaio.spark._runtime` keeps those for each process.

A task reads with `kafkaio.arrow.read_ranges`, on the event loop of its worker, one
coroutine for each record batch. No Python code runs for single records, and no column
is copied.
"""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Iterator,
    Mapping,
    Sequence,
)
from typing import TYPE_CHECKING
from uuid import UUID

from pyspark.sql.datasource import DataSourceReader, InputPartition

from kafkaio.errors import OffsetOutOfRange, UnknownTopicOrPartition
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.spark import _runtime as runtime
from kafkaio.spark._errors import (
    explained,
    listed,
    lost,
    plainly,
    plainly_each,
    warn_lost,
)
from kafkaio.spark._lookup import PlanLookup, ends_of
from kafkaio.spark._offsets import (
    another_topic,
    inside,
    name_of,
    outside,
    ranges_between,
    remade,
)
from kafkaio.spark._options import ReadOptions
from kafkaio.spark._planning import Task, plan
from kafkaio.spark._schema import ReadColumn, arrow_schemas
from kafkaio.spark._shipping import shipped
from kafkaio.types import OffsetRange

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkaio._client.client import Client


class TaskPartition(InputPartition):  # type: ignore[misc]  # pyspark is not followed
    """The ranges of one task, which Spark passes to it.

    Args:
        task: ranges, in the order in which they are read.
        topic_ids: the ids that topics had when the task was planned; those of other
            topics are left out.
    """

    def __init__(self, task: Task, topic_ids: Mapping[str, UUID]) -> None:
        super().__init__(None)
        self.task = task
        topics = {each.partition.topic for each in task}
        self.topic_ids: dict[str, UUID] = {
            t: topic_ids[t] for t in topics if t in topic_ids
        }

    def __repr__(self) -> str:
        ranges = (f"{name_of(tp)}[{start}, {end})" for tp, start, end in self.task)
        return f"TaskPartition({', '.join(ranges)})"


class KafkaReader(DataSourceReader):  # type: ignore[misc]  # pyspark is not followed
    """Reads topics once, between two offsets for each partition.

    The offsets are looked up when the query is planned: later records are not read.

    Args:
        options: of the read.
        columns: of the read.
    """

    def __init__(self, options: ReadOptions, columns: Sequence[ReadColumn]) -> None:
        self._options = options
        self._columns = tuple(columns)

    __reduce__ = shipped

    @plainly
    def partitions(self) -> list[TaskPartition]:
        """Return the tasks. Spark calls it in the planner process.

        Raises:
            DataSourceError: the cluster cannot be asked, or records were deleted.
        """
        options, lookup = self._options, PlanLookup(self._options)
        start, end = lookup.start_and_end()
        # Asked again afterwards, because bounds by offset or time may be outside of the
        # logs, and because a topic may be made again between the two look-ups.
        before = dict(lookup.topic_ids)
        ranges, losses = ranges_between(start, end, {})
        earliest, latest = lookup.ends(start.keys(), before)
        now = lookup.topic_ids
        losses += [another_topic(t, before, now) for t in remade(before, now)]
        report(options, [*losses, *outside(ranges, earliest, latest)])
        return partitions_of(options, inside(ranges, earliest, latest), now)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the record batches of a task. Spark calls it in a worker.

        Raises:
            DataSourceError: records cannot be read.
        """
        if isinstance(partition, TaskPartition):
            return plainly_each(read_task(self._options, self._columns, partition))
        # Spark makes one task with a partition of its own where there are no tasks.
        return iter(())


def partitions_of(
    options: ReadOptions, ranges: Sequence[OffsetRange], topic_ids: Mapping[str, UUID]
) -> list[TaskPartition]:
    """Return the tasks that read some ranges.

    Args:
        options: of the read.
        ranges: the ranges to read.
        topic_ids: the ids of their topics, as far as brokers have them.
    """
    tasks = plan(
        ranges,
        min_partitions=options.min_partitions,
        max_records_per_partition=options.max_records_per_partition,
        min_records_per_task=options.min_records_per_task,
    )
    return [TaskPartition(task, topic_ids) for task in tasks]


def report(options: ReadOptions, losses: list[str]) -> None:
    """Raise an error for records that were lost, or log one warning for all.

    Raises:
        DataLost: there are some, and ``failOnDataLoss`` is true.
    """
    if losses and options.fail_on_data_loss:
        raise lost(losses)
    warn_lost(losses)


def read_task(
    options: ReadOptions, columns: Sequence[ReadColumn], partition: TaskPartition
) -> Iterator[pa.RecordBatch]:
    """Read the ranges of a task, many with one request.

    The records of a range come in their order, and the ranges in theirs, unless the
    leader of one does not answer for a while.

    Raises:
        DataSourceError: records cannot be read.
    """
    runtime.freeze()
    import pyarrow as pa

    asked, wanted = arrow_schemas(columns)
    batches = _batches(options, asked, partition)
    try:
        with explained(f"reading {listed(map(_span, partition.task))}"):
            while (batch := runtime.run(_next(batches))) is not None:
                # The same columns under the names of the user's schema: no copy.
                yield pa.RecordBatch.from_arrays(batch.columns, schema=wanted)
    finally:
        # Spark closes the generator early, as for `limit(10)`: the fetches in flight
        # must end, since the client stays for the next task.
        runtime.run(batches.aclose())


def _span(within: OffsetRange) -> str:
    return f"{name_of(within.partition)} from {within.start} to {within.end}"


async def _next(batches: AsyncIterator[pa.RecordBatch]) -> pa.RecordBatch | None:
    return await anext(batches, None)


async def _batches(
    options: ReadOptions, schema: pa.Schema, partition: TaskPartition
) -> AsyncGenerator[pa.RecordBatch]:
    # Loaded in the worker, and not where the query is planned.
    from kafkaio.arrow import read_ranges

    client = await runtime.client(options.client_config(in_task=True))
    ranges, topic_ids = list(partition.task), partition.topic_ids
    if not options.fail_on_data_loss:
        ranges = await _there(client, options, ranges, topic_ids)
    while ranges:
        reader = read_ranges(
            client,
            ranges,
            schema=schema,
            isolation_level=options.isolation_level,
            fetch_bytes=options.fetch_bytes,
            topic_ids=topic_ids,
        )
        try:
            async for batch in reader:
                yield batch
            ranges = []
        except OffsetOutOfRange:
            if options.fail_on_data_loss:
                raise
            # Retention has deleted records since the plan: read the rest.
            ranges = await _there(client, options, reader.remaining(), topic_ids)
        except UnknownTopicOrPartition as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_ID:
                raise
            # The next attempt of the task leaves the topic out, if it may.
            raise lost([str(error)]) from None


async def _there(
    client: Client,
    options: ReadOptions,
    ranges: list[OffsetRange],
    topic_ids: Mapping[str, UUID],
) -> list[OffsetRange]:
    """Return the parts of ranges that the logs have; warn of missing parts."""
    partitions = {r.partition for r in ranges}
    earliest, latest, now = await ends_of(client, partitions, topic_ids, options)
    others = remade(topic_ids, now)
    ranges = [r for r in ranges if r.partition.topic not in others]
    losses = [
        *(another_topic(topic, topic_ids, now) for topic in others),
        *outside(ranges, earliest, latest),
    ]
    warn_lost(losses, {tp.topic for tp in partitions})
    return inside(ranges, earliest, latest)
