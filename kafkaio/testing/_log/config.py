"""The topic configs that concern a log, by Kafka's names in snake case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Self

_NEVER = 2**63 - 1
_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Configs of a log: rolling, flushing, retention, compaction. Defaults are Kafka's.

    Attributes:
        cleanup_policy: ``delete``, ``compact``, or both separated by a comma.
        segment_bytes: the most bytes of a segment.
        segment_ms: age at which a segment is rolled, counted from its first record.
        retention_ms: age at which a segment is deleted, -1 for never.
        retention_bytes: size beyond which the oldest segments are deleted, -1 for no
            limit.
        flush_messages: number of records after which the log is flushed.
        flush_ms: milliseconds after which the log is flushed.
        index_interval_bytes: bytes of log between two index entries.
        delete_retention_ms: how long a tombstone stays after compaction has met it.
        min_compaction_lag_ms: age below which compaction does not remove a record.
        max_message_bytes: the most bytes of a batch.
        message_timestamp_type: ``CreateTime`` or ``LogAppendTime``.
        message_timestamp_before_max_ms: how far a timestamp may lie in the past.
        message_timestamp_after_max_ms: how far a timestamp may lie in the future.
    """

    cleanup_policy: str = "delete"
    segment_bytes: int = 2**30
    segment_ms: int = 7 * _DAY_MS
    retention_ms: int = 7 * _DAY_MS
    retention_bytes: int = -1
    flush_messages: int = _NEVER
    flush_ms: int = _NEVER
    index_interval_bytes: int = 4096
    delete_retention_ms: int = _DAY_MS
    min_compaction_lag_ms: int = 0
    # 1 MiB, and the offset and the size that stand before each batch.
    max_message_bytes: int = 1_048_588
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = _NEVER
    message_timestamp_after_max_ms: int = _HOUR_MS

    @classmethod
    def from_topic(cls, configs: Mapping[str, str]) -> Self:
        """Make a LogConfig of topic configs by Kafka's names; ignore all others.

        Raises:
            ValueError: a value is not a number.
        """
        values: dict[str, str | int] = {}
        for field in fields(cls):
            # A field has the name of Kafka's config.
            text = configs.get(field.name.replace("_", "."))
            if text is not None:
                values[field.name] = int(text) if field.type == "int" else text
        return cls(**values)  # type: ignore[arg-type] # each by its field's type

    @property
    def is_compacted(self) -> bool:
        """Whether compaction applies."""
        return "compact" in self.cleanup_policy

    @property
    def is_deleted(self) -> bool:
        """Whether retention applies."""
        return "delete" in self.cleanup_policy

    @property
    def has_log_append_time(self) -> bool:
        """Whether the broker sets the timestamps."""
        return self.message_timestamp_type == "LogAppendTime"
