"""Names that programs import from ``aiokafka.consumer.fetcher``.

Fetching itself is kafkaio's, so there is no `Fetcher`.
"""

from kafkaio.aiokafka.errors import RecordTooLargeError

__all__ = [
    "READ_COMMITTED",
    "READ_UNCOMMITTED",
    "UNKNOWN_OFFSET",
    "OffsetResetStrategy",
    "RecordTooLargeError",
]

#: Stands for an offset that is not known.
UNKNOWN_OFFSET = -1
READ_UNCOMMITTED = 0
READ_COMMITTED = 1


class OffsetResetStrategy:
    """Where to begin without a valid offset, as brokers are asked for it."""

    LATEST = -1
    EARLIEST = -2
    NONE = 0

    @classmethod
    def from_str(cls, name: str) -> int:
        """Return the strategy of an option ``auto_offset_reset``."""
        return {"latest": cls.LATEST, "earliest": cls.EARLIEST}.get(name, cls.NONE)

    @classmethod
    def to_str(cls, value: int) -> str:
        """Return the option of a strategy."""
        names = {cls.LATEST: "latest", cls.EARLIEST: "earliest", cls.NONE: "none"}
        return names.get(value, f"timestamp({value})")
