"""The lag of streaming queries, computed from Spark's reports of their progress."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.streaming.listener import StreamingQueryListener

from kafkaio._public import public
from kafkaio._runtime.observer import Observer
from kafkaio.errors import ConfigurationError
from kafkaio.spark._observe import ObservedQuery, offsets_behind
from kafkaio.spark._offsets import from_json, lag_of
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import (
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
        StreamingQueryProgress,
    )

_log = logging.getLogger("kafkaio.spark")


@public("kafkaio.spark")
def lag(
    progress: StreamingQueryProgress | Mapping[str, object] | None,
) -> dict[TopicPartition, int]:
    """Return how many offsets a streaming query is behind, by partition.

    These are the latest offsets at the start of the last micro-batch, less those at
    which it ended. Offsets of compacted and aborted records count. Sources of other
    kinds are left out; so is a source that has not reported its latest offsets yet.

    Args:
        progress: ``query.lastProgress``, or the progress of a listener's event; None
            before the first micro-batch.
    """
    found: dict[TopicPartition, int] = {}
    for end, latest in _sources(progress):
        behind, ahead = _offsets(end), _offsets(latest)
        if behind is not None and ahead is not None:
            found |= lag_of(behind, ahead)
    return found


def _sources(progress: object) -> list[tuple[object, object]]:
    if progress is None:
        return []
    if isinstance(progress, Mapping):
        sources = progress["sources"]
        return [(s.get("endOffset"), s.get("latestOffset")) for s in sources]
    return [(s.endOffset, s.latestOffset) for s in getattr(progress, "sources", ())]


def _offsets(value: object) -> dict[TopicPartition, int] | None:
    """Read offsets as Spark reports them: as JSON, or already decoded."""
    try:
        found = json.loads(value) if isinstance(value, str) else value
        return from_json(found) if isinstance(found, Mapping) else None
    except (ValueError, ConfigurationError):
        # A query may have sources of other kinds, with offsets of other forms.
        return None


@public("kafkaio.spark")
def source_metrics(
    progress: StreamingQueryProgress | Mapping[str, object] | None,
) -> dict[str, float]:
    """Return the metrics that Spark's own connector has for a source.

    These are ``minOffsetsBehindLatest``, ``maxOffsetsBehindLatest`` and
    ``avgOffsetsBehindLatest``, over the partitions of all sources of the query that are
    Kafka topics. Spark takes none from a data source in Python, so that ``metrics`` of
    its progress is empty.

    Args:
        progress: as for `lag`.

    Returns:
        The figures by name; none before the first micro-batch.
    """
    return offsets_behind(lag(progress))


@public("kafkaio.spark")
class LagListener(StreamingQueryListener):  # type: ignore[misc]  # pyspark is not followed
    """Reports the lag of every streaming query to an observer.

    ``spark.streams.addListener(LagListener(observer))``. After each micro-batch the
    observer's ``query_lag(query, lag)`` is called, in a thread of the driver; see
    `kafkaio.Observer`. A query is reported as ``started`` with its first micro-batch,
    and as ``closed`` when it ends, so that the observers of ``kafkaio.metrics`` have
    its figures. Errors of an observer are logged, and do not end the query.

    Args:
        observer: an object with some methods of an observer; or a function, which is
            called as ``query_lag`` is.
    """

    def __init__(
        self,
        observer: Observer | Callable[[str, Mapping[TopicPartition, int]], object],
    ) -> None:
        self._observer = observer
        # By the ids of their runs: a query keeps its own id over restarts. Observers
        # have weak references only, so the queries are kept alive here.
        self._queries: dict[str, tuple[str, ObservedQuery]] = {}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Do nothing."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Report the lag after a micro-batch."""
        progress = event.progress
        found = lag(progress)
        if not found:
            return
        # Started here, and not in `onQueryStarted`: a query without a source of Kafka
        # never gets here, and has no lag to observe.
        run, name = str(progress.runId), progress.name or str(progress.id)
        is_new = run not in self._queries
        query = self._queries.setdefault(run, (name, ObservedQuery()))[1]
        query.progressed(found)
        if is_new:
            self._notify("started", "query", name, query)
        self._notify("query_lag", name, found)

    def onQueryIdle(self, event: object) -> None:
        """Do nothing."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Report that the query has ended."""
        found = self._queries.pop(str(event.runId), None)
        if found is not None:
            self._notify("closed", "query", *found)

    def _notify(self, method: str, *arguments: object) -> None:
        observer = self._observer
        report = getattr(observer, method, None)
        if report is None and method == "query_lag" and callable(observer):
            report = observer
        if report is None:
            return
        try:
            report(*arguments)
        except Exception:  # noqa: BLE001 - an observer must not end the query
            _log.exception("observer failed in %s", method)
