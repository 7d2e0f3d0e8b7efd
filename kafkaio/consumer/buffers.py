"""What was fetched and not handed out yet.

Batches are kept as they came, one copy of their bytes each; records are made of them
when the user takes them: fetching ahead costs no objects. One batch per partition at
most, its *chunk*, is decompressed and being handed out at a time.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TypeAlias

from kafkaio._machines.positions import FetchPoint
from kafkaio._machines.read_committed import ReadCommitted, ReadUncommitted
from kafkaio._records.batch import LegacyBatch, RecordBatch, RecordCursor
from kafkaio.errors import KafkaError
from kafkaio.types import TopicPartition

__all__ = ["Buffers", "Failure", "Fetched", "PartitionBuffer", "Sieve"]

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


@dataclass(frozen=True, slots=True)
class Fetched:
    """The usable part of one partition's response.

    Attributes:
        batches: whole batches, in order.
        sieve: which of them the user gets to see.
        failure: why there is no more after them, if there is a reason.
    """

    batches: list[RecordBatch | LegacyBatch]
    sieve: Sieve
    failure: Failure | None = None


class PartitionBuffer:
    """One partition's batches and the chunk of records that is being handed out.

    Attributes:
        chunk: the records left of the chunk, None where there is no chunk.
        count: records that the chunk had at first.
        epoch: leader epoch of the chunk.
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
        "is_queued",
        "size",
        "tp",
        "waiting",
    )

    def __init__(self, tp: TopicPartition) -> None:
        self.tp = tp
        self.batches: deque[tuple[RecordBatch | LegacyBatch, Sieve]] = deque()
        self.size = 0
        self.waiting = 0
        self.failure: Failure | None = None
        self.is_queued = False
        self.chunk: RecordCursor | None = None
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

    def clear_chunk(self) -> None:
        """Forget the chunk."""
        self.chunk = None
        self.count = 0


class Buffers:
    """Every partition's buffer, and the order in which they are read.

    Invariant: ``ready`` holds the buffers that are not empty and whose partition is
    not held back, each once (and one that was just emptied, until its turn is over).
    ``size`` counts the partitions that are not held back: what a pause keeps must not
    stop the fetching of others.
    """

    def __init__(self) -> None:
        self._buffers: dict[TopicPartition, PartitionBuffer] = {}
        self._held: set[TopicPartition] = set()
        self.ready: deque[PartitionBuffer] = deque()
        self.size = 0

    def get(self, tp: TopicPartition) -> PartitionBuffer | None:
        """The partition's buffer: None where nothing is kept of it."""
        return self._buffers.get(tp)

    def size_of(self, tp: TopicPartition) -> int:
        """Bytes kept of a partition."""
        buffer = self._buffers.get(tp)
        return 0 if buffer is None else buffer.size

    def has_failed(self, tp: TopicPartition) -> bool:
        """Whether a failure waits to be raised: nothing more is fetched till then."""
        buffer = self._buffers.get(tp)
        return buffer is not None and buffer.failure is not None

    def add(self, tp: TopicPartition, fetched: Fetched) -> None:
        """Keep what was fetched, after what is there already."""
        buffer = self._buffers.get(tp)
        if buffer is None:
            buffer = self._buffers[tp] = PartitionBuffer(tp)
        for batch in fetched.batches:
            buffer.batches.append((batch, fetched.sieve))
            buffer.size += batch.size_bytes
            buffer.waiting += batch.count
        if tp not in self._held:
            self.size += sum(batch.size_bytes for batch in fetched.batches)
        buffer.failure = fetched.failure
        self._enqueue(buffer)

    def pop_batch(self, buffer: PartitionBuffer) -> None:
        """Take the first batch out: it is in the chunk now, or left out."""
        batch, _ = buffer.batches.popleft()
        buffer.size -= batch.size_bytes
        buffer.waiting -= batch.count
        if buffer.tp not in self._held:
            self.size -= batch.size_bytes

    def rotate(self) -> None:
        """Let the next partition have its turn."""
        self.ready.rotate(-1)

    def drop_if_empty(self, buffer: PartitionBuffer) -> None:
        """Take a buffer with nothing left out of the order."""
        if buffer.is_empty:
            self._dequeue(buffer)

    def hold(self, tp: TopicPartition) -> None:
        """Hold a partition back, with what is kept of it."""
        if tp in self._held:
            return
        buffer = self._buffers.get(tp)
        if buffer is not None:
            self.size -= buffer.size
            self._dequeue(buffer)
        self._held.add(tp)

    def release(self, tp: TopicPartition) -> None:
        """Let a partition that was held back be read again."""
        if tp not in self._held:
            return
        self._held.discard(tp)
        buffer = self._buffers.get(tp)
        if buffer is not None:
            self.size += buffer.size
            self._enqueue(buffer)

    def drop(self, tp: TopicPartition) -> None:
        """Forget everything kept of a partition; it stays held back if it was."""
        buffer = self._buffers.pop(tp, None)
        if buffer is None:
            return
        if tp not in self._held:
            self.size -= buffer.size
            self._dequeue(buffer)

    def forget(self, tp: TopicPartition) -> None:
        """Forget a partition altogether, its pause included."""
        self.drop(tp)
        self._held.discard(tp)

    def _enqueue(self, buffer: PartitionBuffer) -> None:
        if buffer.is_queued or buffer.is_empty or buffer.tp in self._held:
            return
        buffer.is_queued = True
        self.ready.append(buffer)

    def _dequeue(self, buffer: PartitionBuffer) -> None:
        if buffer.is_queued:
            buffer.is_queued = False
            self.ready.remove(buffer)
