"""Reading a stream: decides which offsets each micro-batch reads.

Spark keeps one `KafkaStreamReader` in a process of the driver for as long as a query
runs. It calls, in this order: ``prepareForTriggerAvailableNow`` (with that trigger),
``getDefaultReadLimit``, ``initialOffset``, then for each micro-batch ``latestOffset``,
``reportLatestOffset``, ``partitions``, and with the next micro-batch ``commit``.
``initialOffset`` is called again and must not change, so it is kept. A micro-batch that
is repeated after a restart begins with ``partitions``, in another process.

The ids of the topics are stored with the offsets (`kafkaio.spark._offsets`). Where a
topic has another id than in the checkpoint, it was deleted and made again: the old
offsets mean nothing in the new topic, even if that is longer.

``read`` is called on copies in the workers, of which only the options and the columns
are used.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias
from uuid import UUID

from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from kafkaio.spark._errors import DataSourceError, lost, plainly, plainly_each, warn
from kafkaio.spark._lookup import PlanLookup
from kafkaio.spark._offsets import (
    PlannedRanges,
    TriggerDelay,
    another_topic,
    from_json,
    limited,
    outside,
    ranges_between,
    remade,
    to_json,
    topic_ids_of,
    without,
)
from kafkaio.spark._options import ReadOptions
from kafkaio.spark._reader import TaskPartition, partitions_of, read_task, report
from kafkaio.spark._schema import ReadColumn
from kafkaio.spark._shipping import shipped
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

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

    def __init__(self, options: ReadOptions, columns: Sequence[ReadColumn]) -> None:
        self._options = options
        self._columns = tuple(columns)
        self._lookup = PlanLookup(options)
        self._is_available_now = False
        self._initial: _Json | None = None
        # The last answer for the latest offsets; with Trigger.AvailableNow the first
        # one, at which the query ends.
        self._latest: dict[TopicPartition, int] | None = None
        # The ids of their topics.
        self._topic_ids: dict[str, UUID] = {}
        self._delay: TriggerDelay | None = None
        if options.min_offsets_per_trigger is not None:
            self._delay = TriggerDelay(
                options.min_offsets_per_trigger, options.max_trigger_delay
            )

    __reduce__ = shipped

    def prepareForTriggerAvailableNow(self) -> None:
        """Read the records that exist at the first micro-batch, and end there.

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
        if self._initial is None:
            self._initial = to_json(self._lookup.start(), self._lookup.topic_ids)
        return self._initial

    @plainly
    def latestOffset(self, start: _Json, limit: ReadLimit) -> _Json:
        """Return where the next micro-batch ends; ``start`` if there is none yet.

        Raises:
            DataSourceError: the cluster cannot be asked, or has no such topic.
            DataLost: a topic was made again, and ``failOnDataLoss`` is true.
        """
        begin, ids = from_json(start), topic_ids_of(start)
        if self._latest is None or not self._is_available_now:
            self._latest = self._lookup.latest(begin, ids)
            self._topic_ids = dict(self._lookup.topic_ids)
        others = remade(ids, self._topic_ids)
        if others and self._options.fail_on_data_loss:
            raise lost([another_topic(t, ids, self._topic_ids) for t in others])
        # `partitions` warns, and reads these topics from their beginnings.
        begin, latest = without(begin, others), self._latest
        if not isinstance(limit, ReadAllAvailable) and self._waits(begin, latest):
            return start
        if isinstance(limit, ReadMaxRows):
            # New partitions begin at their earliest offset, which the share of the
            # limit depends on.
            earliest, _ = self._lookup.ends(latest.keys() - begin.keys(), {})
            latest = limited(limit.max_rows, begin, latest, earliest)
        return to_json(latest, self._topic_ids)

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
        # From the offsets alone, and not from what `latestOffset` has found: after a
        # restart another process gets the same offsets, and must plan the same tasks.
        begin, until = from_json(start), from_json(end)
        before, planned = topic_ids_of(start), topic_ids_of(end)
        new = remade(before, planned)
        losses = [another_topic(topic, before, planned) for topic in new]
        begin = without(begin, new)
        moved = {tp for tp, offset in until.items() if offset != begin.get(tp)}
        expected = before | planned
        earliest, latest = self._lookup.ends(moved, expected)
        now = self._lookup.topic_ids
        # The end offsets of a topic that was made again since then mean nothing in the
        # new topic. The next micro-batch reads that from its beginning.
        topics = {tp.topic for tp in moved}
        gone = [topic for topic in remade(expected, now) if topic in topics]
        losses += [another_topic(topic, expected, now) for topic in gone]
        found: PlannedRanges = ranges_between(
            without(begin, gone), without(until, gone), earliest
        )
        missing = outside(found.ranges, earliest, latest)
        report(self._options, [*losses, *found.losses, *missing])
        return partitions_of(self._options, found.ranges, now)

    def commit(self, end: _Json) -> None:
        """Commit the end of a finished micro-batch to ``commitGroupId``.

        Spark does not need it, so a failure is only logged.
        """
        group = self._options.commit_group_id
        if group is None:
            return
        try:
            self._lookup.commit(group, from_json(end))
        except DataSourceError as error:
            # Limited: each micro-batch may fail in the same way.
            warn("commit failed", group, str(error))

    def read(self, partition: TaskPartition) -> Iterator[pa.RecordBatch]:
        """Return the record batches of a task. Spark calls it in a worker.

        Raises:
            DataSourceError: records cannot be read.
        """
        return plainly_each(read_task(self._options, self._columns, partition))
