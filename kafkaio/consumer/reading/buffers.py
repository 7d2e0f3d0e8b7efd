"""What was fetched and not handed out yet.

Batches are kept as they came, in the frame that an answer came in; records are made of
them when the user takes them: fetching ahead costs no objects and no copies. One batch
per partition at most, its *chunk*, is decompressed and being handed out at a time.

A frame stays in memory until the last of its batches has been read, so that is how it
is counted. What may stay for long, that of paused partitions, is copied out of it; so
is all that waits when frames of which little is left use up the room.
"""

from __future__ import annotations

from collections import deque
from typing import TypeAlias

from kafkaio._dataclass import dataclass
from kafkaio._machines.positions import FetchPoint
from kafkaio._machines.read_committed import ReadCommitted, ReadUncommitted
from kafkaio._records.batch import LegacyBatch, RecordBatch, RecordCursor
from kafkaio.errors import KafkaError
from kafkaio.types import TopicPartition

__all__ = ["Buffers", "Failure", "Fetched", "Frame", "PartitionBuffer", "Sieve"]

#: What decides which batches of one response the user gets to see.
Sieve: TypeAlias = ReadCommitted | ReadUncommitted


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a partition's fetched data ends: raised once the data before it is read.

    Attributes:
        error: what to raise; None where the position is outside the log, which the
            reset policy decides about.
        point: the fetch that failed.
    """

    error: KafkaError | None
    point: FetchPoint


class Frame:
    """What one answer came in, which every batch of it keeps in memory.

    Attributes:
        size: bytes of it that are records.
        in_use: batches that were not read to their end yet.
    """

    __slots__ = ("in_use", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.in_use = 0


@dataclass(frozen=True, slots=True)
class Fetched:
    """The usable part of one partition's response.

    Attributes:
        batches: whole batches, in order.
        sieve: which of them the user gets to see.
        frame: what they are in.
        failure: why there is no more after them, if there is a reason.
    """

    batches: list[RecordBatch | LegacyBatch]
    sieve: Sieve
    frame: Frame
    failure: Failure | None = None


#: A batch, what decides about it, and its frame: None where it has its own bytes.
Waiting: TypeAlias = tuple[RecordBatch | LegacyBatch, Sieve, Frame | None]


class PartitionBuffer:
    """One partition's batches and the chunk of records that is being handed out.

    Attributes:
        chunk: the records left of the chunk, None where there is no chunk.
        count: records that the chunk had at first.
        epoch: leader epoch of the chunk.
        frame: what the chunk is in; None where it has its bytes to itself.
        failure: raised when everything before it was handed out.
        is_queued: whether the buffer stands in the order of reading.
        size: bytes of the batches kept.
        waiting: records in those batches, as their headers have it.
    """

    __slots__ = (
        "batches",
        "chunk",
        "count",
        "epoch",
        "failure",
        "frame",
        "is_queued",
        "size",
        "tp",
        "waiting",
    )

    def __init__(self, tp: TopicPartition) -> None:
        self.tp = tp
        self.batches: deque[Waiting] = deque()
        self.size = 0
        self.waiting = 0
        self.failure: Failure | None = None
        self.is_queued = False
        self.chunk: RecordCursor | None = None
        self.frame: Frame | None = None
        self.count = 0
        self.epoch = -1

    @property
    def left(self) -> int:
        """Records of the chunk that were not handed out yet."""
        return 0 if self.chunk is None else self.chunk.remaining

    @property
    def handed(self) -> int:
        """Records of the chunk that were handed out."""
        return self.count - self.left

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing at all to hand out or to raise."""
        return not (self.batches or self.left or self.failure)

    @property
    def at_hand(self) -> int:
        """Records that can be taken, at most: the sieve may leave some out."""
        return self.left + self.waiting

    def open_chunk(self, chunk: RecordCursor, epoch: int) -> None:
        """Begin to hand these records out."""
        self.chunk = chunk
        self.count = chunk.remaining
        self.epoch = epoch


class Buffers:
    """Every partition's buffer, and the order in which they are read.

    Invariant: ``ready`` holds the buffers that are not empty and whose partition is
    not held back, each once (and one that was just emptied, until its turn is over).
    ``unread`` counts the batches that wait, and ``size`` the bytes that are kept for
    them and for the chunks, both of the partitions that are not held back: what a
    pause keeps must not stop the fetching of others.
    """

    def __init__(self) -> None:
        self._buffers: dict[TopicPartition, PartitionBuffer] = {}
        self._held: set[TopicPartition] = set()
        self.ready: deque[PartitionBuffer] = deque()
        self.size = 0
        self.unread = 0

    def get(self, tp: TopicPartition) -> PartitionBuffer | None:
        """The partition's buffer: None where nothing is kept of it."""
        return self._buffers.get(tp)

    def size_of(self, tp: TopicPartition) -> int:
        """Bytes kept of a partition."""
        buffer = self._buffers.get(tp)
        return 0 if buffer is None else buffer.size

    def has_full(self, max_records: int) -> bool:
        """Whether some partition has at least that many records at hand."""
        return any(buffer.at_hand >= max_records for buffer in self.ready)

    @property
    def all_at_hand(self) -> int:
        """Records that can be taken, at most."""
        return sum(buffer.at_hand for buffer in self.ready)

    def at_hand(self, tp: TopicPartition) -> int:
        """Records of a partition that can be taken, at most."""
        buffer = self._buffers.get(tp)
        return buffer.at_hand if buffer is not None and buffer.is_queued else 0

    def has_failed(self, tp: TopicPartition) -> bool:
        """Whether a failure waits to be raised: nothing more is fetched till then."""
        buffer = self._buffers.get(tp)
        return buffer is not None and buffer.failure is not None

    def add(self, tp: TopicPartition, fetched: Fetched) -> None:
        """Keep what was fetched, after what is there already."""
        buffer = self._buffers.get(tp)
        if buffer is None:
            buffer = self._buffers[tp] = PartitionBuffer(tp)
        frame = None if tp in self._held else fetched.frame
        size = 0
        for batch in fetched.batches:
            if frame is None:
                batch.detach()
            else:
                self._use(frame)
            buffer.batches.append((batch, fetched.sieve, frame))
            size += batch.size_bytes
            buffer.waiting += batch.count
        buffer.size += size
        if frame is not None:
            self.unread += size
        buffer.failure = fetched.failure
        self._enqueue(buffer)

    def pop_batch(self, buffer: PartitionBuffer) -> None:
        """Take the first batch out: it is in the chunk now, or left out."""
        self.clear_chunk(buffer)
        batch, _, buffer.frame = buffer.batches.popleft()
        size = batch.size_bytes
        buffer.size -= size
        buffer.waiting -= batch.count
        self.unread -= size
        if buffer.frame is None:
            self.size -= size

    def clear_chunk(self, buffer: PartitionBuffer) -> None:
        """Forget the chunk, which was read or is not wanted any more."""
        buffer.chunk = None
        buffer.count = 0
        if buffer.frame is not None:
            self._done_with(buffer.frame)
            buffer.frame = None

    def refuse(self, buffer: PartitionBuffer, failure: Failure) -> None:
        """Let a failure stand in place of all that is kept of a partition."""
        while buffer.batches:
            self.pop_batch(buffer)
        self.clear_chunk(buffer)
        buffer.failure = failure

    def drop_if_empty(self, buffer: PartitionBuffer) -> None:
        """Take a buffer with nothing left out of the order."""
        if buffer.is_empty:
            self._dequeue(buffer)

    def compact(self) -> bool:
        """Copy what waits out of its frames, if that frees more than it copies.

        A partition that is read slowly keeps whole frames in memory, of which others
        have read their part: without this it would hold their fetching back.

        Returns:
            Whether something was freed.
        """
        if self.size <= 2 * self.unread:
            return False
        before = self.size
        for buffer in self.ready:
            self._detach(buffer)
        return self.size < before

    def hold(self, tp: TopicPartition) -> None:
        """Hold a partition back, with what is kept of it."""
        if tp in self._held:
            return
        self._held.add(tp)
        buffer = self._buffers.get(tp)
        if buffer is not None:
            self._set_apart(buffer)
            self._dequeue(buffer)

    def release(self, tp: TopicPartition) -> None:
        """Let a partition that was held back be read again."""
        if tp not in self._held:
            return
        self._held.discard(tp)
        buffer = self._buffers.get(tp)
        if buffer is not None:
            self.size += buffer.size
            self.unread += buffer.size
            self._enqueue(buffer)

    def drop(self, tp: TopicPartition) -> None:
        """Forget everything kept of a partition; it stays held back if it was."""
        buffer = self._buffers.pop(tp, None)
        if buffer is None or tp in self._held:
            return
        self.unread -= buffer.size
        for batch, _, frame in buffer.batches:
            if frame is None:
                self.size -= batch.size_bytes
            else:
                self._done_with(frame)
        self.clear_chunk(buffer)
        self._dequeue(buffer)

    def forget(self, tp: TopicPartition) -> None:
        """Forget a partition altogether, its pause included."""
        self.drop(tp)
        self._held.discard(tp)

    def _set_apart(self, buffer: PartitionBuffer) -> None:
        # Its own bytes do not count either while it is held back.
        self._detach(buffer)
        self.size -= buffer.size
        self.unread -= buffer.size

    def _detach(self, buffer: PartitionBuffer) -> None:
        # Keep nothing but its own bytes.
        apart: deque[Waiting] = deque()
        for batch, sieve, frame in buffer.batches:
            if frame is not None:
                batch.detach()
                self._done_with(frame)
                self.size += batch.size_bytes
            apart.append((batch, sieve, None))
        buffer.batches = apart
        if buffer.chunk is not None and buffer.frame is not None:
            buffer.chunk.detach()
            self._done_with(buffer.frame)
            buffer.frame = None

    def _use(self, frame: Frame) -> None:
        if not frame.in_use:
            self.size += frame.size
        frame.in_use += 1

    def _done_with(self, frame: Frame) -> None:
        frame.in_use -= 1
        if not frame.in_use:
            self.size -= frame.size

    def _enqueue(self, buffer: PartitionBuffer) -> None:
        if buffer.is_queued or buffer.is_empty or buffer.tp in self._held:
            return
        buffer.is_queued = True
        self.ready.append(buffer)

    def _dequeue(self, buffer: PartitionBuffer) -> None:
        if buffer.is_queued:
            buffer.is_queued = False
            if self.ready[-1] is buffer:  # it had its turn
                self.ready.pop()
            else:
                self.ready.remove(buffer)
