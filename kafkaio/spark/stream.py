"""Reading a stream: which offsets each micro-batch reads.

Spark keeps one `KafkaStreamReader` in a process of the driver for as long as a query
runs. It calls, in this order: ``prepareForTriggerAvailableNow`` (with that trigger),
``getDefaultReadLimit``, ``initialOffset``, then for each micro-batch ``latestOffset``,
``reportLatestOffset``, ``partitions``, and with the next micro-batch ``commit``.
``initialOffset`` is called again and must not change, so it is kept. A micro-batch that
is repeated after a restart begins with ``partitions``, in another process.

``read`` is called on copies in the workers, which have the options and the columns and
nothing else of this object's state.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from kafkaio.spark.errors import DataSourceError, plainly, plainly_each, warn
from kafkaio.spark.lookup import Lookup
from kafkaio.spark.offsets import (
    Ranges,
    TriggerDelay,
    from_json,
    limited,
    outside,
    ranges_between,
    to_json,
)
from kafkaio.spark.options import ReadOptions
from kafkaio.spark.reader import TaskPartition, partitions_of, read_task, report
from kafkaio.spark.schema import Column
from kafkaio.spark.shipping import shipped
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["KafkaStreamReader"]

_Json: TypeAlias = dict[str, dict[str, int]]


class KafkaStreamReader(
    DataSourceStreamReader,  # type: ignore[misc]  # pyspark is not followed
    SupportsTriggerAvailableNow,  # type: ignore[misc]
):
    """Reads topics in micro-batches.

    Args:
        options: of the read.
        columns: of the read.
    """

    def __init__(self, options: ReadOptions, columns: Sequence[Column]) -> None:
        self._options = options
        self._columns = tuple(columns)
        self._lookup = Lookup(options)
        self._is_available_now = False
        self._initial: dict[TopicPartition, int] | None = None
        # The latest offsets that were looked up; with Trigger.AvailableNow the first
        # ones, at which the query ends.
        self._latest: dict[TopicPartition, int] | None = None
        self._delay: TriggerDelay | None = None
        if options.min_offsets_per_trigger is not None:
            self._delay = TriggerDelay(
                options.min_offsets_per_trigger, options.max_trigger_delay
            )

    __reduce__ = shipped

    def prepareForTriggerAvailableNow(self) -> None:
        """Read what there is at the first micro-batch, and end there.

        The offsets to end at are looked up with the first micro-batch, so that they are
        not before the offsets to start at.
        """
        self._is_available_now = True

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return how much a micro-batch reads at most, or at least."""
        most = self._options.max_offsets_per_trigger
        least = self._options.min_offsets_per_trigger
        if most is not None:
            return ReadMaxRows(most)
        return ReadAllAvailable() if least is None else ReadMinRows(least)

    @plainly
    def initialOffset(self) -> _Json:
        """Return where a stream without a checkpoint starts.

        Raises:
            DataSourceError: the cluster cannot be asked, or has no such topic.
            ConfigurationError: the options do not fit the partitions.
        """
        _write_compact_json()
        if self._initial is None:
            self._initial = self._lookup.start()
        return to_json(self._initial)

    @plainly
    def latestOffset(self, start: _Json, limit: ReadLimit) -> _Json:
        """Return where the next micro-batch ends; ``start`` if there is none yet.

        Raises:
            DataSourceError: the cluster cannot be asked, or has no such topic.
        """
        _write_compact_json()
        begin = from_json(start)
        if self._latest is None or not self._is_available_now:
            self._latest = self._lookup.latest(begin)
        latest = self._latest
        if isinstance(limit, ReadAllAvailable):
            return to_json(latest)
        if self._waits(begin, latest):
            return start
        if not isinstance(limit, ReadMaxRows):
            return to_json(latest)
        earliest, _ = self._lookup.ends(latest.keys() - begin.keys())
        return to_json(limited(limit.max_rows, begin, latest, earliest))

    def _waits(
        self, start: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]
    ) -> bool:
        """Return whether there is too little for a micro-batch."""
        if self._delay is None or self._is_available_now:
            return False
        return self._delay.waits(time.monotonic(), start, latest)

    def reportLatestOffset(self) -> _Json | None:
        """Return the latest offsets, from which progress tells the lag."""
        return None if self._latest is None else to_json(self._latest)

    @plainly
    def partitions(self, start: _Json, end: _Json) -> list[TaskPartition]:
        """Return the tasks of a micro-batch: the same for the same offsets.

        Raises:
            DataSourceError: the cluster cannot be asked, or records were deleted.
        """
        begin, until = from_json(start), from_json(end)
        moved = {tp for tp, offset in until.items() if offset != begin.get(tp)}
        earliest, latest = self._lookup.ends(moved)
        found: Ranges = ranges_between(begin, until, earliest)
        missing = outside(found.ranges, earliest, latest)
        report(self._options, [*found.losses, *missing])
        return partitions_of(self._options, found.ranges)

    def commit(self, end: _Json) -> None:
        """Commit the end of a finished micro-batch to ``commitGroupId``.

        Spark needs it for nothing, so a failure is logged alone.
        """
        group = self._options.commit_group_id
        if group is None:
            return
        try:
            self._lookup.commit(group, from_json(end))
        except DataSourceError as error:
            # Each micro-batch may fail in the same way.
            warn("commit failed", group, str(error))

    def read(self, partition: TaskPartition) -> Iterator[pa.RecordBatch]:
        """Return the record batches of a task. Spark calls it in a worker.

        Raises:
            DataSourceError: records cannot be read.
        """
        task = read_task(self._options, self._columns, partition.task)
        return plainly_each(task)


def _write_compact_json() -> None:
    """Make this process write JSON without spaces, as Spark's own connector does.

    pyspark writes offsets with ``json.dumps(offset)``, and Spark puts its bytes into
    the checkpoint. The process is Spark's, runs this one stream and nothing else.
    """
    encoder = getattr(json, "_default_encoder", None)
    if isinstance(encoder, json.JSONEncoder):
        encoder.item_separator, encoder.key_separator = ",", ":"
