"""`Log`: the batches of one partition replica, in segments."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import NamedTuple, Self

from kafkaio._records.compression import BytesLike
from kafkaio.testing.log.admission import admit, place, split
from kafkaio.testing.log.cleaner import NO_HORIZON, Cleaner
from kafkaio.testing.log.config import LogConfig
from kafkaio.testing.log.epochs import EpochEntry
from kafkaio.testing.log.errors import (
    BatchListTooLargeError,
    InvalidBatchError,
    OffsetOutOfRangeError,
)
from kafkaio.testing.log.recovery import Recovery, recover, write_start
from kafkaio.testing.log.segment import MAX_RELATIVE, Segment
from kafkaio.testing.log.storage import Storage

__all__ = ["Appended", "Log", "SegmentInfo", "TimestampOffset"]

_UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class Appended:
    """Where batches went.

    Attributes:
        base_offset: offset of the first record.
        last_offset: offset of the last one.
        log_append_time: the timestamp that all records were given, -1 where they
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
    """One segment as it is now.

    Attributes:
        base_offset: the offset it is named by.
        next_offset: the offset after its last batch.
        size_bytes: bytes of its batches.
        max_timestamp: the greatest timestamp, -1 if none.
    """

    base_offset: int
    next_offset: int
    size_bytes: int
    max_timestamp: int


class Log:
    """The log of one partition replica, in the files of Kafka's own format.

    Open it with `open`. Calls do not wait and are not to be made by two threads at a
    time. Every time is passed in: milliseconds since the epoch.

    What was flushed survives a power cut. A segment is flushed before the next one
    is begun, so only the newest can be damaged by one.

    Attributes:
        config: what it obeys; may be replaced at any time.
        recovery: what `open` found and repaired.
    """

    __slots__ = (
        "_bases",
        "_cleaned_to",
        "_dirty_since_ms",
        "_epochs",
        "_next_horizon",
        "_segments",
        "_start_offset",
        "_storage",
        "_unflushed",
        "config",
        "recovery",
    )

    def __init__(self, storage: Storage, config: LogConfig, found: Recovery) -> None:
        self.config = config
        self.recovery = found
        self._storage = storage
        self._epochs = found.epochs
        self._start_offset = found.start_offset
        self._set_segments(found.segments)
        self._unflushed = 0
        self._dirty_since_ms = 0
        # What `compact` left off at; that of an emptied or truncated log is unknown.
        self._cleaned_to = 0
        self._next_horizon = NO_HORIZON

    @classmethod
    def open(cls, storage: Storage, config: LogConfig, now_ms: int) -> Self:
        """Open the log in ``storage``, or begin one.

        Each batch is verified. From the first bad one on all is removed, be it cut
        off or nonsense, so that a log always opens; `recovery` tells what was lost.
        """
        found = recover(storage, config.index_interval_bytes, now_ms)
        return cls(storage, config, found)

    # What there is

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
        """Bytes of all batches."""
        return sum(segment.size_bytes for segment in self._segments)

    @property
    def segments(self) -> tuple[SegmentInfo, ...]:
        """The segments, oldest first; the last one is appended to."""
        return tuple(
            SegmentInfo(s.base_offset, s.next_offset, s.size_bytes, s.max_timestamp)
            for s in self._segments
        )

    @property
    def leader_epochs(self) -> tuple[EpochEntry, ...]:
        """The known leader epochs, oldest first."""
        return self._epochs.entries

    def _set_segments(self, segments: tuple[Segment, ...]) -> None:
        # Replaced as a whole, never changed: who iterates is not disturbed.
        self._segments = segments
        self._bases = [segment.base_offset for segment in segments]

    # Writing

    def append(self, batch: BytesLike, *, leader_epoch: int, now_ms: int) -> Appended:
        """Append one batch or several as a leader does: offsets and epoch are set.

        All are checked before the first is appended: headers, checksums, and that the
        records are what they say of themselves. They are made into objects only where
        the log is compacted, which demands keys.

        Raises:
            LogError: the batches are not taken; see `kafkaio.testing.log.errors`.
        """
        admitted = admit(batch, self.config, leader_epoch, now_ms)
        size = sum(header.size for header, _ in admitted)
        if size > self.config.segment_bytes:
            raise BatchListTooLargeError(
                f"{size} bytes at once, a segment takes {self.config.segment_bytes}"
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
        """Append what a leader's log holds: offsets, epochs and times are kept.

        Raises:
            CorruptBatchError: a batch is not whole.
            InvalidBatchError: an offset is below `end_offset`.
        """
        before = self.end_offset
        verified = list(split(batches))
        expected = before
        for header, _ in verified:
            if header.base_offset < expected:
                raise InvalidBatchError(
                    f"offset {header.base_offset} comes where {expected} is due"
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
        """Note that a leader of ``leader_epoch`` begins at `end_offset`."""
        if self._epochs.assign(leader_epoch, self.end_offset):
            self._epochs.save()

    def _roll_if_due(
        self, last_offset: int, size: int, timestamp: int, now_ms: int
    ) -> None:
        active = self._segments[-1]
        if not active.size_bytes:
            return
        age = now_ms - active.created_ms
        if active.first_timestamp >= 0 and timestamp >= 0:
            age = timestamp - active.first_timestamp
        is_full = active.size_bytes > self.config.segment_bytes - size
        is_far = last_offset - active.base_offset > MAX_RELATIVE
        if is_full or is_far or age > self.config.segment_ms:
            self.roll(now_ms)

    def roll(self, now_ms: int) -> None:
        """End the newest segment, which is flushed, and begin another.

        Nothing happens where the newest is empty.
        """
        active = self._segments[-1]
        if not active.size_bytes:
            return
        active.seal()
        fresh = self._new_segment(self.end_offset, now_ms)
        self._set_segments((*self._segments, fresh))
        self._storage.sync()
        self._unflushed = 0

    def _new_segment(self, base_offset: int, now_ms: int) -> Segment:
        interval = self.config.index_interval_bytes
        return Segment(self._storage, base_offset, interval, now_ms)

    def flush(self) -> None:
        """Return once no power cut can take what was appended."""
        self._segments[-1].flush()
        self._unflushed = 0

    def flush_if_due(self, now_ms: int) -> bool:
        """Flush what waits for ``flush_ms``; returns whether there was any."""
        is_due = now_ms - self._dirty_since_ms >= self.config.flush_ms
        if not (self._unflushed and is_due):
            return False
        self.flush()
        return True

    def _flush_if_many(self, records: int, now_ms: int) -> None:
        if not self._unflushed:
            self._dirty_since_ms = now_ms
        self._unflushed += records
        if self._unflushed >= self.config.flush_messages:
            self.flush()
        else:
            self.flush_if_due(now_ms)

    def close(self) -> None:
        """Flush, and give back what is open. `open` may follow on the same storage."""
        self._segments[-1].seal()
        for segment in self._segments:
            segment.close()

    # Reading

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        min_one: bool = True,
        up_to: int | None = None,
    ) -> bytes:
        """Read whole batches, the first of which has ``offset`` or is the next after.

        As Kafka does, it reads from one segment at a time.

        Args:
            offset: where to begin.
            max_bytes: bytes at most.
            min_one: whether the first batch may be larger than that.
            up_to: offset that no batch may reach: a high watermark or last stable
                offset. Holds for the first batch too.

        Returns:
            The batches, nothing if there are none.

        Raises:
            OffsetOutOfRangeError: ``offset`` is below the start or above the end.
        """
        end = self.end_offset
        if not self._start_offset <= offset <= end:
            raise OffsetOutOfRangeError(
                f"offset {offset} is not in {self._start_offset} to {end}"
            )
        limit = end if up_to is None else up_to
        first = max(bisect_right(self._bases, offset) - 1, 0)
        for segment in self._segments[first:]:
            if segment.base_offset >= limit:
                break
            if offset < segment.next_offset:
                return segment.read(offset, max_bytes, limit, min_one=min_one)
        return b""

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """Find the first record, by offset, whose timestamp is not smaller."""
        for segment in self._segments:
            found = segment.first_at(timestamp, self._start_offset)
            if found is not None:
                return TimestampOffset(*found)
        return None

    def max_timestamp(self) -> TimestampOffset | None:
        """Find the first record that has the greatest timestamp (KIP-734).

        As in Kafka, among what the segments hold: it may be below `start_offset`.
        """
        best = max(self._segments, key=lambda segment: segment.max_timestamp)
        if best.max_timestamp < 0:
            return None
        found = best.first_at(best.max_timestamp, best.base_offset)
        return None if found is None else TimestampOffset(*found)

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """The greatest epoch up to ``leader_epoch``, and where it ended (KIP-320).

        Returns:
            ``(-1, -1)`` where ``leader_epoch`` is newer than all that are known.
        """
        return self._epochs.end_offset_for(leader_epoch, self.end_offset)

    # Forgetting

    def delete_records(self, before: int) -> int:
        """Make ``before`` the start, unless it is above; returns the start offset.

        Raises:
            OffsetOutOfRangeError: ``before`` is above the end.
        """
        if before > self.end_offset:
            raise OffsetOutOfRangeError(
                f"offset {before} is above the end, {self.end_offset}"
            )
        if before > self._start_offset:
            self._start_offset = before
            write_start(self._storage, before)
            self._epochs.truncate_start(before)
            self._epochs.save()
        # Only what is wholly below goes; the newest segment stays.
        kept = self._segments
        while len(kept) > 1 and kept[1].base_offset <= self._start_offset:
            kept = kept[1:]
        self._drop_oldest(len(self._segments) - len(kept))
        return self._start_offset

    def _drop_oldest(self, count: int) -> None:
        # The names first: who reads now finds either the segment or another start.
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
            # One by one, so that no power cut leaves a hole between two segments.
            self._storage.sync()

    def truncate_to(self, offset: int) -> None:
        """Remove ``offset`` and all after it, as a follower does that diverged.

        A batch is removed as a whole, so `end_offset` may come out lower, but not
        below `start_offset`. For an ``offset`` below that the log is emptied and
        starts at ``offset``.
        """
        if offset >= self.end_offset:
            return
        if offset < self._start_offset:
            self.truncate_fully(offset)
            return
        self._cleaned_to = _UNKNOWN
        kept = list(self._segments)
        # From the end, so that no power cut leaves a hole between two segments.
        while len(kept) > 1 and kept[-1].base_offset >= offset:
            kept.pop().remove()
            self._storage.sync()
        kept[-1].truncate_to(offset)
        self._set_segments(tuple(kept))
        if self.end_offset < self._start_offset:
            # The batch that had the start went as a whole.
            self.truncate_fully(self._start_offset)
            return
        self._epochs.truncate_end(self.end_offset)
        self._epochs.save()

    def truncate_fully(self, start_offset: int) -> None:
        """Remove all; the log starts and ends at ``start_offset``."""
        created_ms = self._segments[-1].created_ms
        self._cleaned_to = _UNKNOWN
        for segment in reversed(self._segments):
            segment.remove()
            self._storage.sync()
        self._start_offset = start_offset
        write_start(self._storage, start_offset)
        self._set_segments((self._new_segment(start_offset, created_ms),))
        self._storage.sync()
        self._epochs.truncate_end(0)
        self._epochs.save()

    def apply_retention(self, now_ms: int, *, up_to: int | None = None) -> int:
        """Delete the oldest segments that are too old, or too many, or not readable.

        Args:
            now_ms: now.
            up_to: offset that no deleted segment may pass: the high watermark.

        Returns:
            How many were deleted.
        """
        limit = self.end_offset if up_to is None else up_to
        if self.config.is_deleted and self._is_all_expired(now_ms, limit):
            self.roll(now_ms)
        excess = self.size_bytes - self.config.retention_bytes
        count = 0
        for segment in self._segments[:-1]:
            is_needed = segment.next_offset > self._start_offset
            is_over = self.config.retention_bytes >= 0 and excess >= segment.size_bytes
            is_over = is_over or self._is_expired(segment, now_ms)
            is_kept = is_needed and not (self.config.is_deleted and is_over)
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
        """Keep, below the newest segment, of each key the newest record.

        Nothing happens unless the config's cleanup policy says so, nor where nothing
        has changed since the last pass.

        Tombstones stay for ``delete_retention_ms`` after the first pass that meets
        them; of each producer the newest batch stays, if need be without records.
        Offsets never change. Markers stay, and so does what they aborted.

        Args:
            now_ms: now.
            up_to: offset that no cleaned segment may pass: the last stable offset.

        Returns:
            Whether anything was rewritten.
        """
        if not self.config.is_compacted:
            return False
        limit = self.end_offset if up_to is None else up_to
        cleaner = Cleaner(self._storage, self.config, now_ms)
        cleanable = cleaner.cleanable(self._segments, limit)
        end = cleanable[-1].next_offset if cleanable else 0
        if end == self._cleaned_to and now_ms < self._next_horizon:
            return False  # nothing has become old since the last pass
        segments, is_changed = cleaner.clean(self._segments, cleanable)
        self._set_segments(segments)
        left = cleaner.cleanable(segments, limit)
        self._cleaned_to = left[-1].next_offset if left else 0
        self._next_horizon = cleaner.next_horizon
        return is_changed
