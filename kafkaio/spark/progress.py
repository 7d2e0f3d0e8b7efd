"""The lag of streaming queries, from what Spark reports of their progress."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql.streaming.listener import StreamingQueryListener

from kafkaio._runtime.observer import Observer
from kafkaio.errors import ConfigurationError
from kafkaio.spark.offsets import from_json, lag_of
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import (
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
        StreamingQueryProgress,
    )

__all__ = ["LagListener", "lag"]

_log = logging.getLogger("kafkaio.spark")


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
    """Read offsets as Spark reports them: JSON, or what it stands for."""
    try:
        found = json.loads(value) if isinstance(value, str) else value
        return from_json(found) if isinstance(found, Mapping) else None
    except (ValueError, ConfigurationError):
        return None  # another kind of source


class LagListener(StreamingQueryListener):  # type: ignore[misc]  # pyspark is not followed
    """Reports the lag of every streaming query to an observer.

    ``spark.streams.addListener(LagListener(observer))``. The observer's ``query_lag``
    is called after each micro-batch, in a thread of the driver; see `kafkaio.Observer`.

    Args:
        observer: an object with a method ``query_lag(query, lag)``.
    """

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Do nothing."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Report the lag after a micro-batch; an observer that raises is logged."""
        progress = event.progress
        found = lag(progress)
        if not found:
            return
        try:
            self._observer.query_lag(progress.name or str(progress.id), found)
        except Exception:  # noqa: BLE001 - an observer must not end the query
            _log.exception("observer failed in query_lag")

    def onQueryIdle(self, event: object) -> None:
        """Do nothing."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Do nothing."""
