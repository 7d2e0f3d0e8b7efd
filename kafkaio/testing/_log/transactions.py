"""The aborted transactions of a log, and its snapshots of producers.

Both are files beside the segments, in Kafka's formats. A segment's ``.txnindex`` has
the transactions whose abort marker is in the segment. A ``.snapshot`` has the state of
all producers at the offset in its name, so that it need not be found by reading the
whole log. What a file lacks after a crash follows from the batches behind it: restoring
the producers replays those, and adds the aborted transactions again.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

from kafkaio.testing._log.formats import (
    AbortedTransaction,
    ProducerEntry,
    encode_producer_snapshot,
    encode_transaction_index,
    read_producer_snapshot,
    read_transaction_index,
)
from kafkaio.testing._log.header import LogBatchHeader
from kafkaio.testing._log.segment import name_of
from kafkaio.testing._log.storage import StoragePort, read_whole, write_whole

_INDEX = ".txnindex"
_SNAPSHOT = re.compile(r"(\d{20})\.snapshot")


class AbortedTransactions:
    """The aborted transactions of one log, in the order of their markers.

    Args:
        storage: has the files.
        bases: base offsets of the segments, in order.
    """

    __slots__ = ("_entries", "_storage")

    def __init__(self, storage: StoragePort, bases: Sequence[int]) -> None:
        self._storage = storage
        self._entries: list[AbortedTransaction] = []
        for base in bases:
            data = read_whole(storage, name_of(base, _INDEX))
            try:
                self._entries += read_transaction_index(data)
            except ValueError:
                # Cut off by a crash: it is written again when the log is replayed.
                continue

    @property
    def entries(self) -> tuple[AbortedTransaction, ...]:
        """All of them."""
        return tuple(self._entries)

    def add(self, entry: AbortedTransaction, base_offset: int) -> None:
        """Add one; its marker was appended to the segment of that base offset."""
        self._entries.append(entry)
        file = self._storage.open(name_of(base_offset, _INDEX))
        file.append(encode_transaction_index([entry]))
        file.close()

    def between(self, start: int, end: int) -> list[AbortedTransaction]:
        """Those with an offset from ``start`` up to, not including, ``end``."""
        # Sorted by markers, so those that ended before `start` are skipped at once.
        first = bisect_left(self._entries, start, key=lambda one: one.last_offset)
        return [one for one in self._entries[first:] if one.first_offset < end]

    def covers(self, header: LogBatchHeader) -> bool:
        """Whether a batch is part of an aborted transaction."""
        # Markers stay: they end the transaction for a reader.
        if not header.is_transactional or header.is_control:
            return False
        offset = header.base_offset
        return any(
            one.producer_id == header.producer_id
            for one in self.between(offset, offset + 1)
        )

    def replace(
        self, entries: Iterable[AbortedTransaction], bases: Sequence[int], end: int
    ) -> None:
        """Replace all of them, and write the files of segments that are changed.

        Args:
            entries: the aborted transactions, in the order of their markers.
            bases: base offsets of the segments, in order.
            end: the end of the log; entries beyond it, or before the first segment,
                are left out.
        """
        # A transaction stays as long as its marker is in the log.
        self._entries = [one for one in entries if bases[0] <= one.last_offset < end]
        wanted: dict[str, list[AbortedTransaction]] = {}
        for one in self._entries:
            base = bases[bisect_right(bases, one.last_offset) - 1]
            wanted.setdefault(name_of(base, _INDEX), []).append(one)
        for name in self._storage.names():
            if name.endswith(_INDEX) and name not in wanted:
                self._storage.remove(name)
        for name, found in wanted.items():
            data = encode_transaction_index(found)
            # Most segments are unchanged: only what differs is written.
            if read_whole(self._storage, name) != data:
                write_whole(self._storage, name, data)


class Snapshots:
    """The snapshots of the producers of one log.

    Args:
        storage: has the files.
    """

    __slots__ = ("_storage",)

    def __init__(self, storage: StoragePort) -> None:
        self._storage = storage

    def _offsets(self) -> list[int]:
        names = map(_SNAPSHOT.fullmatch, self._storage.names())
        return sorted(int(found[1]) for found in names if found)

    def write(self, offset: int, producers: Sequence[ProducerEntry]) -> None:
        """Write what is known of all producers at an offset, unless there are none."""
        if producers:
            data = encode_producer_snapshot(producers)
            write_whole(self._storage, name_of(offset, ".snapshot"), data)

    def newest(self, end: int) -> tuple[int, list[ProducerEntry]] | None:
        """Return the newest snapshot that is intact, with its offset; None for none.

        Snapshots beyond ``end`` are removed: they are from before a truncation.
        """
        for offset in reversed(self._offsets()):
            name = name_of(offset, ".snapshot")
            if offset <= end:
                try:
                    return offset, read_producer_snapshot(
                        read_whole(self._storage, name)
                    )
                except ValueError:
                    pass
            self._storage.remove(name)
        return None

    def tidy(self, bases: Sequence[int]) -> None:
        """Remove those that are neither at a segment's begin nor the newest."""
        for offset in self._offsets()[:-1]:
            if offset not in bases:
                self._storage.remove(name_of(offset, ".snapshot"))
