"""`RecordsToDelete`."""

from __future__ import annotations

from kafkaio._public import public

__all__ = ["RecordsToDelete"]


@public("kafkaio.aiokafka.admin")
class RecordsToDelete:
    """Which records of a partition to delete.

    Args:
        before_offset: those before this offset; -1 for all that can be read.
    """

    def __init__(self, before_offset: int) -> None:
        self.before_offset = before_offset
