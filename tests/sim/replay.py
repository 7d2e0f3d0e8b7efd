"""Reads a partition's log as a read_committed reader must see it.

It is written for itself: it reads markers from the log, and not the lists of aborted
transactions that brokers send, which the consumers of this project go by.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kafkaio._records.batch import read_batches
from kafkaio.testing._broker.partition import EmbeddedPartition

__all__ = ["Replay"]

_READ_BYTES: Final = 1 << 20
_COMMIT: Final = 1


class Replay:
    """The records of one partition, by the markers that follow them.

    Attributes:
        committed: the values that a read_committed reader sees now, in order.
        decided: whether each value of an ended transaction was committed.
        unexpected: the offsets of records that were written without a transaction.
    """

    def __init__(self, partition: Callable[[], EmbeddedPartition]) -> None:
        self._partition = partition
        self._next = 0
        # Per batch of records: its values; then their verdict, in a list of one.
        self._batches: list[tuple[list[bytes], list[bool]]] = []
        self._open: dict[int, list[tuple[list[bytes], list[bool]]]] = {}
        self.committed: list[bytes] = []
        self.decided: dict[bytes, bool] = {}
        self.unexpected: list[int] = []

    @property
    def has_open(self) -> bool:
        """Whether the end of a transaction is missing."""
        return bool(self._open)

    def go_on(self) -> None:
        """Read what was written since the last call."""
        partition = self._partition()
        name, index, log = partition.topic, partition.index, partition.log
        while self._next < log.end_offset:
            for batch in read_batches(log.read(self._next, _READ_BYTES)):
                records = batch.decode(name, index, self._next)
                pid = batch.producer_id
                if batch.is_control:
                    is_commit = (records[0].key or bytes(4))[3] == _COMMIT
                    for values, told in self._open.pop(pid, ()):
                        told.append(is_commit)
                        self.decided.update(dict.fromkeys(values, is_commit))
                elif batch.is_transactional:
                    verdict: list[bool] = []
                    entry = ([record.value or b"" for record in records], verdict)
                    self._open.setdefault(pid, []).append(entry)
                    self._batches.append(entry)
                else:
                    self.unexpected.append(batch.base_offset)
                self._next = batch.last_offset + 1
        self._advance()

    def _advance(self) -> None:
        done = 0
        for values, verdict in self._batches:
            if not verdict:
                break  # the last stable offset
            if verdict[0]:
                self.committed += values
            done += 1
        del self._batches[:done]
