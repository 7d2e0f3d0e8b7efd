"""The leader epochs of a log and the offsets at which they begin (KIP-101)."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise

from kafkaio._named_tuple import NamedTuple
from kafkaio.testing._log.storage import StoragePort, read_whole, write_whole

#: Kafka's name for the file.
EPOCH_FILE = "leader-epoch-checkpoint"
_VERSION = 0


class EpochEntry(NamedTuple):
    """The first offset that a leader of ``epoch`` appended."""

    epoch: int
    start_offset: int


def read_epochs(data: bytes) -> list[EpochEntry]:
    """Read a leader epoch checkpoint: version, count, then a line for each epoch.

    Raises:
        ValueError: it is malformed, or epochs or offsets do not grow.
    """
    lines = data.decode("ascii").split("\n")
    if int(lines[0]) != _VERSION:
        raise ValueError(f"a leader epoch checkpoint has the version {lines[0]}")
    if len(lines) == 1:
        raise ValueError("a leader epoch checkpoint ends after its version")
    count = int(lines[1])
    rows = [tuple(map(int, line.split())) for line in lines[2 : 2 + count]]
    if len(rows) != count or any(len(row) != 2 for row in rows):
        raise ValueError(f"a leader epoch checkpoint does not have {count} entries")
    entries = [EpochEntry(epoch, start) for epoch, start in rows]
    if not _is_growing(entries):
        raise ValueError("the entries of a leader epoch checkpoint do not grow")
    return entries


def _is_growing(entries: list[EpochEntry]) -> bool:
    return all(
        one.epoch < two.epoch and one.start_offset < two.start_offset
        for one, two in pairwise(entries)
    )


class LeaderEpochs:
    """The epochs of one log, each with the offset at which it begins; both grow.

    Args:
        storage: has the checkpoint file.
    """

    __slots__ = ("_entries", "_storage")

    def __init__(self, storage: StoragePort) -> None:
        self._storage = storage
        self._entries: list[EpochEntry] = []

    @property
    def entries(self) -> tuple[EpochEntry, ...]:
        """The epochs, oldest first."""
        return tuple(self._entries)

    @property
    def latest(self) -> int:
        """The newest epoch, -1 if none is known."""
        return self._entries[-1].epoch if self._entries else -1

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Add an epoch that begins at ``start_offset``, if it is newer than all.

        Returns:
            Whether it was added; the caller has to `save` it.
        """
        if epoch <= self.latest:
            return False
        # An epoch in which nothing was appended is dropped, as in Kafka.
        while self._entries and self._entries[-1].start_offset >= start_offset:
            self._entries.pop()
        self._entries.append(EpochEntry(epoch, start_offset))
        return True

    def end_offset_for(self, epoch: int, end_offset: int) -> tuple[int, int]:
        """The greatest known epoch that is at most ``epoch``, and its end offset.

        Returns:
            ``(-1, -1)`` if ``epoch`` is newer than all known epochs; ``epoch`` itself
            with the first known offset if it is older than all (KIP-101, KIP-279).
        """
        if epoch < 0 or not self._entries or epoch > self.latest:
            return -1, -1
        if epoch == self.latest:
            return epoch, end_offset
        above = bisect_right(self._entries, epoch, key=lambda entry: entry.epoch)
        end = self._entries[above].start_offset
        return (self._entries[above - 1].epoch if above else epoch), end

    def truncate_end(self, end_offset: int) -> None:
        """Remove epochs that begin at ``end_offset`` or later."""
        while self._entries and self._entries[-1].start_offset >= end_offset:
            self._entries.pop()

    def truncate_start(self, start_offset: int) -> None:
        """Remove epochs that end before ``start_offset``."""
        below = bisect_right(
            self._entries, start_offset, key=lambda entry: entry.start_offset
        )
        if below:
            # The epoch in which the start lies goes on, with fewer records.
            first = EpochEntry(self._entries[below - 1].epoch, start_offset)
            self._entries[:below] = [first]

    def save(self) -> None:
        """Write the checkpoint."""
        lines = [str(_VERSION), str(len(self._entries))]
        lines += [f"{epoch} {start}" for epoch, start in self._entries]
        write_whole(self._storage, EPOCH_FILE, ("\n".join(lines) + "\n").encode())

    def merge_checkpoint(self) -> None:
        """Use the start offsets of the checkpoint where they are lower.

        Compaction may have removed the first batch of an epoch, so that the batches
        show a later start. A checkpoint that cannot be read is ignored.
        """
        try:
            saved = read_epochs(read_whole(self._storage, EPOCH_FILE))
        except (ValueError, IndexError):
            return
        starts = dict(saved)
        merged = [
            EpochEntry(epoch, min(start, starts.get(epoch, start)))
            for epoch, start in self._entries
        ]
        if _is_growing(merged):
            self._entries = merged
