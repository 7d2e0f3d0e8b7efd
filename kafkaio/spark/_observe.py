"""The lag of streaming queries as metrics, which Spark lacks for a Python source.

Spark's own connector has ``minOffsetsBehindLatest``, ``maxOffsetsBehindLatest`` and
``avgOffsetsBehindLatest`` in ``progress.sources[].metrics``. A data source in Python
cannot add metrics there (Spark 4.3). `source_metrics` computes the same figures from
the offsets of the progress, and `ObservedQuery` gives them to the gauges of observers
(`kafkaio.metrics`).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kafkaio._dataclass import dataclass
from kafkaio.types import TopicPartition


def offsets_behind(lag: Mapping[TopicPartition, int]) -> dict[str, float]:
    """Return the metrics of Spark's own connector for the lags of partitions.

    Args:
        lag: how many offsets behind each partition is.

    Returns:
        The least, the greatest and the average, by the connector's names; an empty dict
        without partitions.
    """
    if not lag:
        return {}
    behind = lag.values()
    return {
        "minOffsetsBehindLatest": min(behind),
        "maxOffsetsBehindLatest": max(behind),
        "avgOffsetsBehindLatest": sum(behind) / len(behind),
    }


@dataclass(frozen=True, slots=True)
class QueryStatistics:
    """The lag of a streaming query at the end of its last micro-batch.

    Attributes:
        lag: how many offsets behind each partition was.
        metrics: the metrics of Spark's own connector, by its names.
    """

    lag: Mapping[TopicPartition, int]
    metrics: Mapping[str, float]


class ObservedQuery:
    """A streaming query that runs, as observers see it.

    It is written by the thread of Spark's listeners, and read in any thread.
    """

    __slots__ = ("__weakref__", "_statistics")

    def __init__(self) -> None:
        self._statistics = QueryStatistics(MappingProxyType({}), MappingProxyType({}))

    def progressed(self, lag: Mapping[TopicPartition, int]) -> None:
        """Set the present lag."""
        # A new object each time: readers of other threads never see half of a change.
        self._statistics = QueryStatistics(
            MappingProxyType(dict(lag)), MappingProxyType(offsets_behind(lag))
        )

    def statistics(self) -> QueryStatistics:
        """Return the lag at the end of the last micro-batch."""
        return self._statistics
