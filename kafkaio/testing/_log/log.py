"""`Log`: the batches of one partition, in segments.

The list of segments is replaced, never changed in place, so that an iteration over it
is not affected. Every operation on files is ordered so that a power cut in the middle
leaves a log that can be opened: comments say how.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Self

from kafkaio._named_tuple import NamedTuple
from kafkaio._records.compression import BytesLike
from kafkaio.testing._log.admission import admit, place, split
from kafkaio.testing._log.cleaner import NO_HORIZON, Cleaner
from kafkaio.testing._log.config import LogConfig
from kafkaio.testing._log.epochs import EpochEntry
from kafkaio.testing._log.errors import (
    BatchListTooLargeError,
    InvalidBatchError,
    OffsetOutOfRangeError,
)
from kafkaio.testing._log.formats import AbortedTransaction, ProducerEntry
from kafkaio.testing._log.recovery import Recovery, recover, write_start
from kafkaio.testing._log.segment import MAX_RELATIVE, Segment
from kafkaio.testing._log.storage import StoragePort
from kafkaio.testing._log.transactions import AbortedTransactions, Snapshots

_UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class Appended:
    """The place of appended batches.

    Attributes:
        base_offset: offset of the first record.
        last_offset: offset of the last record.
        log_append_time: the timestamp that the broker gave all records, -1 if they
            keep the producer's.
    """

    base_offset: int
    last_offset: int
    log_append_time: int


class TimestampOffset(NamedTuple):
    """A record found by its timestamp."""

    offset: int
    timestamp: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class SegmentInfo:
    """The present state of one segment.

    Attributes:
        base_offset: the offset in its name.
        next_offset: the offset after its last batch.
        size_bytes: size of its batches in bytes.
        max_timestamp: the greatest timestamp, -1 if none.
    """

    base_offset: int
    next_offset: int
    size_bytes: int
    max_timestamp: int


class Log:
    """The log of one partition, in Kafka's file format.

    Open it with `open`. It is not thread-safe. All times are arguments, in milliseconds
    since the epoch.

    What was flushed survives a power cut. A segment is flushed before the next one
    begins, so a power cut can damage only the newest.

    Attributes:
        config: its configs; can be replaced at any time.
        producers: returns the state of all producers; a snapshot of it is written
            whenever a segment is complete.
        recovery: what `open` found and repaired.
    """

    __slots__ = (
        "_aborted",
        "_bases",
        "_cleaned_to",
        "_dirty_since_ms",
        "_epochs",
        "_next_horizon",
        "_segments",
        "_snapshots",
        "_start_offset",
        "_storage",
        "_unflushed",
        "config",
        "producers",
        "recovery",
    )

    def __init__(
        self, storage: StoragePort, config: LogConfig, found: Recovery
    ) -> None:
        self.config: LogConfig = config
        self.recovery: Recovery = found
        self._storage = storage
        self._epochs = found.epochs
        self._start_offset = found.start_offset
        self._set_segments(found.segments)
        self._unflushed = 0
        self._dirty_since_ms = 0
        # The end of the last pass of `compact`; unknown after a truncation.
        self._cleaned_to = 0
        self._next_horizon = NO_HORIZON
        self.producers: Callable[[], list[ProducerEntry]] = list
        self._aborted = AbortedTransactions(storage, self._bases)
        self._snapshots = Snapshots(storage)

    @classmethod
    def open(cls, storage: StoragePort, config: LogConfig, now_ms: int) -> Self:
        """Open the log in ``storage``, or create one.

        Each batch is verified. The first bad one and everything after it is removed, so
        that a log always opens; `recovery` says what was lost.

        Raises:
            OSError: a file cannot be read or written.
        """
        found = recover(storage, config.index_interval_bytes, now_ms)
        return cls(storage, config, found)

    # State

    @property
    def start_offset(self) -> int:
        """The first offset that can be read."""
        return self._start_offset

    @property
    def end_offset(self) -> int:
        """The offset that the next record gets."""
        return self._segments[-1].next_offset

    @property
    def size_bytes(self) -> int:
        """Size of all batches in bytes."""
        return sum(segment.size_bytes for segment in self._segments)

    @property
    def segments(self) -> tuple[SegmentInfo, ...]:
        """The segments, oldest first; batches are appended to the last one."""
        return tuple(
            SegmentInfo(s.base_offset, s.next_offset, s.size_bytes, s.max_timestamp)
            for s in self._segments
        )

    @property
    def leader_epochs(self) -> tuple[EpochEntry, ...]:
        """The known leader epochs, oldest first."""
        return self._epochs.entries

    def _set_segments(self, segments: tuple[Segment, ...]) -> None:
        # Replaced as a whole, never changed in place: iterations are not affected.
        self._segments = segments
        self._bases = [segment.base_offset for segment in segments]

    # Writing

    def append(self, batch: BytesLike, *, leader_epoch: int, now_ms: int) -> Appended:
        """Append one or more batches as a leader, which sets offsets and epoch.

        All of them are checked before the first is appended: headers, checksums, and
        the structure of the records. Records are decoded into objects only if the log
        is compacted, because then they need keys.

        Raises:
            LogError: the batches are refused; see `kafkaio.testing._log.errors`.
        """
        admitted = admit(batch, self.config, leader_epoch, now_ms)
        size = sum(header.size for header, _ in admitted)
        # Batches of one request stay in one segment, as in Kafka, so together they must
        # fit.
        if size > self.config.segment_bytes:
            raise BatchListTooLargeError(
                f"{size} bytes at once, a segment can have {self.config.segment_bytes}"
            )
        base_offset = self.end_offset
        last_offset = base_offset - 1 + sum(h.record_count for h, _ in admitted)
        newest = max(header.max_timestamp for header, _ in admitted)
        self._roll_if_due(last_offset, size, newest, now_ms)
        if self._epochs.assign(leader_epoch, base_offset):
            self._epochs.save()
        active = self._segments[-1]
        for header, stamped in admitted:
            active.append(*place(header, stamped, active.next_offset))
        self._flush_if_many(self.end_offset - base_offset, now_ms)
        is_stamped = self.config.has_log_append_time
        return Appended(base_offset, last_offset, now_ms if is_stamped else -1)

    def append_as_follower(self, batches: BytesLike, *, now_ms: int) -> None:
        """Append batches of a leader's log; they keep offsets, epochs and times.

        Raises:
            CorruptBatchError: a batch is incomplete or damaged.
            InvalidBatchError: an offset is below `end_offset`.
        """
        before = self.end_offset
        # All are verified before the first is appended, so that a bad one leaves the
        # log as it was.
        verified = list(split(batches))
        expected = before
        for header, _ in verified:
            if header.base_offset < expected:
                raise InvalidBatchError(
                    f"offset {header.base_offset} is below the expected {expected}"
                )
            expected = header.next_offset
        is_new_epoch = False
        for header, raw in verified:
            timestamp = header.max_timestamp
            self._roll_if_due(header.last_offset, header.size, timestamp, now_ms)
            is_new_epoch |= self._epochs.assign(header.leader_epoch, header.base_offset)
            self._segments[-1].append(header, raw)
        if is_new_epoch:
            self._epochs.save()
        self._flush_if_many(self.end_offset - before, now_ms)

    def assign_epoch(self, leader_epoch: int) -> None:
        """Record that ``leader_epoch`` begins at `end_offset`."""
        if self._epochs.assign(leader_epoch, self.end_offset):
            self._epochs.save()

    def _roll_if_due(
        self, last_offset: int, size: int, timestamp: int, now_ms: int
    ) -> None:
        active = self._segments[-1]
        if not active.size_bytes:
            return
        age = now_ms - active.created_ms
        # By the times of the records, as in Kafka: old records that are copied roll
        # segments as they did when they were new.
        if active.first_timestamp >= 0 and timestamp >= 0:
            age = timestamp - active.first_timestamp
        is_full = active.size_bytes > self.config.segment_bytes - size
        # The indexes have offsets relative to the base, in four bytes.
        is_far = last_offset - active.base_offset > MAX_RELATIVE
        if is_full or is_far or age > self.config.segment_ms:
            self.roll(now_ms)

    def roll(self, now_ms: int) -> None:
        """Flush and complete the newest segment, and begin another.

        Nothing happens if the newest is empty.
        """
        active = self._segments[-1]
        if not active.size_bytes:
            return
        # Flushed before the next segment exists: so a power cut damages none but the
        # newest.
        active.seal()
        fresh = self._new_segment(self.end_offset, now_ms)
        self._set_segments((*self._segments, fresh))
        self._storage.sync()
        self._unflushed = 0
        self.write_snapshot()

    def _new_segment(self, base_offset: int, now_ms: int) -> Segment:
        interval = self.config.index_interval_bytes
        return Segment(self._storage, base_offset, interval, now_ms)

    def flush(self) -> None:
        """Flush everything that was appended: a power cut cannot lose it any more."""
        self._segments[-1].flush()
        self._unflushed = 0

    def flush_if_due(self, now_ms: int) -> bool:
        """Flush if something has waited for ``flush_ms``; return whether it was so."""
        is_due = now_ms - self._dirty_since_ms >= self.config.flush_ms
        if not (self._unflushed and is_due):
            return False
        self.flush()
        return True

    def _flush_if_many(self, records: int, now_ms: int) -> None:
        # The time counts from the oldest record that is not flushed.
        if not self._unflushed:
            self._dirty_since_ms = now_ms
        self._unflushed += records
        if self._unflushed >= self.config.flush_messages:
            self.flush()
        else:
            self.flush_if_due(now_ms)

    def close(self) -> None:
        """Flush and close all files. The storage can be opened as a log again."""
        self._segments[-1].seal()
        for segment in self._segments:
            segment.close()

    # Transactions

    def write_snapshot(self) -> None:
        """Write a snapshot of the producers at the end of the log."""
        self._snapshots.write(self.end_offset, self.producers())
        self._snapshots.tidy(self._bases)

    def read_snapshot(self) -> tuple[int, list[ProducerEntry]] | None:
        """Return the newest snapshot with its offset; None if there is none."""
        return self._snapshots.newest(self.end_offset)

    def aborted_between(self, start: int, end: int) -> list[AbortedTransaction]:
        """The aborted transactions with an offset from ``start`` up to ``end``."""
        return self._aborted.between(start, end)

    def add_aborted(self, entry: AbortedTransaction) -> None:
        """Record a transaction whose abort marker was appended last."""
        self._aborted.add(entry, self._bases[-1])

    def restore_aborted(
        self, since: int, entries: Iterable[AbortedTransaction]
    ) -> None:
        """Replace the aborted transactions whose marker is at ``since`` or later."""
        # The files may be from before a crash: what the batches say counts.
        kept = [one for one in self._aborted.entries if one.last_offset < since]
        self._aborted.replace((*kept, *entries), self._bases, self.end_offset)

    def _rearrange(self) -> None:
        """Write the files of aborted transactions anew after a change of segments."""
        if self._aborted.entries:
            self.restore_aborted(self.end_offset, ())

    # Reading

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        min_one: bool = True,
        up_to: int | None = None,
    ) -> bytes:
        """Read whole batches, from the one that has ``offset`` or else the next one.

        As in Kafka, one call reads from one segment.

        Args:
            offset: where to begin.
            max_bytes: the most bytes to read.
            min_one: whether the first batch may be larger than that.
            up_to: end of what may be read: a high watermark or last stable offset. It
                applies to the first batch, too. None for the end of the log.

        Returns:
            The batches; empty if there are none.

        Raises:
            OffsetOutOfRangeError: ``offset`` is below the start or above the end.
        """
        end = self.end_offset
        if not self._start_offset <= offset <= end:
            raise OffsetOutOfRangeError(
                f"offset {offset} is not in {self._start_offset} to {end}"
            )
        limit = end if up_to is None else up_to
        # The segments after it are looked at, too: compaction may have removed the last
        # batches of this one.
        first = max(bisect_right(self._bases, offset) - 1, 0)
        for segment in self._segments[first:]:
            # Also for the first batch: a reader must not see beyond the high watermark,
            # whatever `min_one` says.
            if segment.base_offset >= limit:
                break
            if offset < segment.next_offset:
                return segment.read(offset, max_bytes, limit, min_one=min_one)
        return b""

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """Find the first record whose timestamp is at least ``timestamp``."""
        for segment in self._segments:
            found = segment.first_at(timestamp, self._start_offset)
            if found is not None:
                return TimestampOffset(*found)
        return None

    def max_timestamp(self) -> TimestampOffset | None:
        """Find the first record with the greatest timestamp (KIP-734).

        As in Kafka, the result can be below `start_offset`, if a segment still has it.
        """
        best = max(self._segments, key=lambda segment: segment.max_timestamp)
        if best.max_timestamp < 0:
            return None
        found = best.first_at(best.max_timestamp, best.base_offset)
        return None if found is None else TimestampOffset(*found)

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """The greatest epoch that is at most ``leader_epoch``, and its end (KIP-320).

        Returns:
            ``(-1, -1)`` if ``leader_epoch`` is newer than all known epochs.
        """
        return self._epochs.end_offset_for(leader_epoch, self.end_offset)

    # Deletion

    def delete_records(self, before: int) -> int:
        """Move the start up to ``before``, never down; return the start offset.

        Raises:
            OffsetOutOfRangeError: ``before`` is above the end.
        """
        if before > self.end_offset:
            raise OffsetOutOfRangeError(
                f"offset {before} is above the end, {self.end_offset}"
            )
        if before > self._start_offset:
            self._start_offset = before
            # Before segments are removed: after a power cut in between, the start is
            # known and the rest is removed then.
            write_start(self._storage, before)
            self._epochs.truncate_start(before)
            self._epochs.save()
        # Segments that are entirely below the start are removed, except the newest.
        kept = self._segments
        while len(kept) > 1 and kept[1].base_offset <= self._start_offset:
            kept = kept[1:]
        self._drop_oldest(len(self._segments) - len(kept))
        return self._start_offset

    def _drop_oldest(self, count: int) -> None:
        # The list first, then the files: a read finds the segment or a later start.
        dropped = self._segments[:count]
        if not dropped:
            return
        self._set_segments(self._segments[count:])
        first = self._segments[0].base_offset
        if first > self._start_offset:
            self._start_offset = first
            self._epochs.truncate_start(first)
            self._epochs.save()
        for segment in dropped:
            segment.remove()
            # One by one, so that a power cut cannot leave a gap between two segments.
            self._storage.sync()
        self._rearrange()

    def truncate_to(self, offset: int) -> None:
        """Remove ``offset`` and everything after it, as a follower that has diverged.

        Only whole batches are removed, so `end_offset` can become lower than
        ``offset``, but not lower than `start_offset`. If ``offset`` itself is below
        `start_offset`, the log becomes empty and starts at ``offset``.
        """
        if offset >= self.end_offset:
            return
        if offset < self._start_offset:
            self.truncate_fully(offset)
            return
        self._cleaned_to = _UNKNOWN
        kept = list(self._segments)
        # From the end, so that a power cut cannot leave a gap between two segments.
        while len(kept) > 1 and kept[-1].base_offset >= offset:
            kept.pop().remove()
            self._storage.sync()
        kept[-1].truncate_to(offset)
        self._set_segments(tuple(kept))
        self._rearrange()
        if self.end_offset < self._start_offset:
            # The batch that contained the start was removed.
            self.truncate_fully(self._start_offset)
            return
        self._epochs.truncate_end(self.end_offset)
        self._epochs.save()

    def truncate_fully(self, start_offset: int) -> None:
        """Remove everything; the log starts and ends at ``start_offset``."""
        created_ms = self._segments[-1].created_ms
        self._cleaned_to = _UNKNOWN
        for segment in reversed(self._segments):
            segment.remove()
            self._storage.sync()
        self._start_offset = start_offset
        write_start(self._storage, start_offset)
        self._set_segments((self._new_segment(start_offset, created_ms),))
        self._storage.sync()
        self._rearrange()
        self._epochs.truncate_end(0)
        self._epochs.save()

    def apply_retention(self, now_ms: int, *, up_to: int | None = None) -> int:
        """Delete the oldest segments: too old, beyond the size limit, or unreadable.

        Args:
            now_ms: the time.
            up_to: only segments that end at this offset or before: the high watermark.
                None for the end of the log.

        Returns:
            The number of deleted segments.
        """
        limit = self.end_offset if up_to is None else up_to
        # The newest segment is never removed; when all is expired, an empty one takes
        # its place.
        if self.config.is_deleted and self._is_all_expired(now_ms, limit):
            self.roll(now_ms)
        excess = self.size_bytes - self.config.retention_bytes
        count = 0
        for segment in self._segments[:-1]:
            # Segments below the start are removed whatever the cleanup policy is.
            is_needed = segment.next_offset > self._start_offset
            is_over = self.config.retention_bytes >= 0 and excess >= segment.size_bytes
            is_over = is_over or self._is_expired(segment, now_ms)
            is_kept = is_needed and not (self.config.is_deleted and is_over)
            # From the oldest on without gaps, and not beyond the high watermark.
            if is_kept or segment.next_offset > limit:
                break
            excess -= segment.size_bytes
            count += 1
        self._drop_oldest(count)
        return count

    def _is_expired(self, segment: Segment, now_ms: int) -> bool:
        limit = self.config.retention_ms
        return 0 <= limit < now_ms - segment.largest_timestamp

    def _is_all_expired(self, now_ms: int, limit: int) -> bool:
        return self.end_offset <= limit and all(
            self._is_expired(segment, now_ms) for segment in self._segments
        )

    def compact(self, now_ms: int, *, up_to: int | None = None) -> bool:
        """Compact all segments but the newest: keep the newest record of each key.

        Nothing happens if the cleanup policy does not include compaction, or if nothing
        has changed since the last pass.

        Tombstones stay for ``delete_retention_ms`` after the first pass that meets
        them. The newest batch of each producer stays, without records if necessary.
        Offsets never change. Control records stay; aborted records are removed, and
        never replace an older record.

        Args:
            now_ms: the time.
            up_to: only segments that end at this offset or before: the last stable
                offset. None for the end of the log.

        Returns:
            Whether any segment was rewritten.
        """
        if not self.config.is_compacted:
            return False
        limit = self.end_offset if up_to is None else up_to
        cleaner = Cleaner(self._storage, self.config, now_ms, self._aborted.covers)
        cleanable = cleaner.cleanable(self._segments, limit)
        end = cleanable[-1].next_offset if cleanable else 0
        if end == self._cleaned_to and now_ms < self._next_horizon:
            return False  # no new segment to clean, and no tombstone to remove
        segments, is_changed = cleaner.clean(self._segments, cleanable)
        self._set_segments(segments)
        left = cleaner.cleanable(segments, limit)
        self._cleaned_to = left[-1].next_offset if left else 0
        self._next_horizon = cleaner.next_horizon
        self._rearrange()
        return is_changed
