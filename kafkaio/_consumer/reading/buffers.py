"""Records that were fetched and not handed out yet.

Record batches stay as they were fetched, in the bytes of their fetch response; records
are created when the user takes them. So fetching ahead creates no objects and no
copies. Of each partition at most one batch, its *chunk*, is decompressed and being
handed out.

A fetch response (`Frame`) stays in memory until the last of its batches was read, so
all of its bytes count against the fetch buffer until then. Batches that may wait long
are copied out of it: those of paused partitions at once, all others when little is left
unread of the responses that fill the buffer (`Buffers.compact`).

Each batch has a *tag*: what its reader has to know of it. A consumer's is the filter by
isolation level; a share consumer's is what was acquired of the batch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Protocol, TypeAlias

from kafkaio._consumer.batch import Frame
from kafkaio._dataclass import dataclass
from kafkaio._fetching.parts import IsolationFilter
from kafkaio._generic import Generic
from kafkaio._machines.positions import FetchPoint
from kafkaio._records.batch import Batch, RecordCursor
from kafkaio.errors import KafkaError
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    TagT = TypeVar("TagT", default=IsolationFilter)
else:
    from typing import TypeVar

    TagT = TypeVar("TagT")


@dataclass(frozen=True, slots=True)
class Failure:
    """The error that follows a partition's fetched data.

    It is raised when the data before it was handed out.

    Attributes:
        error: the error to raise; None if the position is outside the log, so that the
            reset policy decides.
        point: the fetch that failed.
    """

    error: KafkaError | None
    point: FetchPoint


@dataclass(frozen=True, slots=True)
class Fetched(Generic[TagT]):
    """The usable part of one partition in a fetch response.

    Attributes:
        batches: whole batches, in order.
        tag: of each of these batches.
        frame: the fetch response that they are in.
        failure: the error that follows them, if there is one.
    """

    batches: list[Batch]
    tag: TagT
    frame: Frame
    failure: Failure | None = None


#: A batch, its tag, and its fetch response; None if the batch has its own bytes.
Waiting: TypeAlias = tuple[Batch, TagT, Frame | None]


class AheadPort(Protocol):
    """What is done for a partition that waits for its deserializer."""

    def detach(self) -> None:
        """Copy the bytes that it needs, and release the fetch response."""

    def drop(self) -> None:
        """End it: the buffer is dropped."""


class PartitionBuffer(Generic[TagT]):
    """The batches of one partition, and its chunk.

    Attributes:
        tp: the partition.
        batches: the batches that wait, in order.
        chunk: cursor of the chunk, at the next record to hand out; None without one.
        count: number of records that the chunk had at first.
        epoch: leader epoch of the chunk.
        tag: the tag of the batch that became the chunk; None without a chunk.
        frame: fetch response of the chunk; None if the chunk has its own bytes.
        failure: raised when everything before it was handed out.
        broken: why the first of the batches cannot be read, once that was found. It is
            raised until the partition is moved.
        undeserialized: why the next record cannot be deserialized; raised once, and
            then the record is tried again.
        ahead: the records that were deserialized before their turn; None without any.
        is_aside: whether a task decompresses the first of the batches, or deserializes
            the next record.
        is_queued: whether the buffer is in `Buffers.ready`.
        size: bytes of the batches that wait.
        waiting: number of records in these batches, as far as is known.
    """

    __slots__ = (
        "ahead",
        "batches",
        "broken",
        "chunk",
        "count",
        "epoch",
        "failure",
        "frame",
        "is_aside",
        "is_queued",
        "size",
        "tag",
        "tp",
        "undeserialized",
        "waiting",
    )

    def __init__(self, tp: TopicPartition) -> None:
        self.tp: TopicPartition = tp
        self.batches: deque[Waiting[TagT]] = deque()
        self.size: int = 0
        self.waiting: int = 0
        self.failure: Failure | None = None
        self.broken: KafkaError | None = None
        self.undeserialized: Exception | None = None
        self.ahead: AheadPort | None = None
        self.is_aside: bool = False
        self.is_queued: bool = False
        self.chunk: RecordCursor | None = None
        self.tag: TagT | None = None
        self.frame: Frame | None = None
        self.count: int = 0
        self.epoch: int = -1

    @property
    def left(self) -> int:
        """Number of records of the chunk that were not handed out."""
        return 0 if self.chunk is None else self.chunk.remaining

    @property
    def handed(self) -> int:
        """Number of records of the chunk that were handed out."""
        chunk = self.chunk
        return self.count if chunk is None else self.count - chunk.remaining

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to hand out and nothing to raise."""
        return not (self.batches or self.left or self.failure)

    @property
    def at_hand(self) -> int:
        """The most records that can be taken now; the filter may leave some out."""
        if self.undeserialized is not None:
            return 0
        return self.left + (0 if self.broken else self.waiting)

    @property
    def must_raise(self) -> bool:
        """Whether an error comes next, and no record."""
        if self.undeserialized is not None:
            return True
        if self.left:
            return False
        return self.broken is not None or (
            self.failure is not None and not self.batches
        )

    @property
    def can_hand_out(self) -> bool:
        """Whether the chunk has a record that can be handed out, as far as is known."""
        return bool(self.left) and not (
            self.is_aside or self.undeserialized is not None
        )

    def open_chunk(self, chunk: RecordCursor, epoch: int) -> None:
        """Begin to hand out the records of a chunk."""
        self.chunk = chunk
        self.count = chunk.remaining
        self.epoch = epoch


class Buffers(Generic[TagT]):
    """The buffers of all partitions, and the order in which they are read.

    Invariants, with the buffers of paused partitions left out, because a pause must
    not stop the fetching of other partitions:

    - `ready` has every buffer that is not empty, once. A buffer that was just emptied
      stays there until its turn is over. Buffers that were set aside are not in it.
    - `unread` is the number of bytes of all batches that wait.
    - `size` is the number of bytes in memory for these batches and for the chunks.

    Args:
        count: returns how many records of a batch with a tag there are to hand out;
            None for the number in its header.

    Attributes:
        ready: the buffers to read from, in turn.
        size: see above.
        unread: see above.
        changes: a number that grows when the size or the failure of a partition's
            buffer changes.
    """

    def __init__(self, count: Callable[[Batch, TagT], int] | None = None) -> None:
        self._count = count
        self._buffers: dict[TopicPartition, PartitionBuffer[TagT]] = {}
        self._paused: set[TopicPartition] = set()
        self.ready: deque[PartitionBuffer[TagT]] = deque()
        self.size: int = 0
        self.unread: int = 0
        self.changes: int = 0

    def __iter__(self) -> Iterator[PartitionBuffer[TagT]]:
        return iter(self._buffers.values())

    def get(self, tp: TopicPartition) -> PartitionBuffer[TagT] | None:
        """Return a partition's buffer; None if nothing of it is kept."""
        return self._buffers.get(tp)

    def size_of(self, tp: TopicPartition) -> int:
        """Return the number of bytes of a partition's batches."""
        buffer = self._buffers.get(tp)
        return 0 if buffer is None else buffer.size

    def has_nothing(self, tp: TopicPartition) -> bool:
        """Whether nothing of a partition is kept, nor is a fetch response for it."""
        buffer = self._buffers.get(tp)
        return buffer is None or (buffer.is_empty and buffer.frame is None)

    def has_full(self, max_records: int) -> bool:
        """Whether some partition has at least that many records to take."""
        return any(buffer.at_hand >= max_records for buffer in self.ready)

    def turn_to(self, partitions: Collection[TopicPartition]) -> bool:
        """Let a buffer of these partitions be next; return whether there is one."""
        ready = self.ready
        for _ in range(len(ready)):
            if ready[0].tp in partitions:
                return True
            ready.rotate(-1)
        return False

    @property
    def has_any(self) -> bool:
        """Whether some partition has records to take now."""
        return any(buffer.at_hand for buffer in self.ready)

    @property
    def all_at_hand(self) -> int:
        """The most records of all partitions that can be taken now."""
        return sum(buffer.at_hand for buffer in self.ready)

    def at_hand(self, tp: TopicPartition) -> int:
        """Return the most records of a partition that can be taken now."""
        buffer = self._buffers.get(tp)
        return buffer.at_hand if buffer is not None and buffer.is_queued else 0

    def must_raise(self, tp: TopicPartition) -> bool:
        """Whether an error of a partition comes next, and can be raised now."""
        buffer = self._buffers.get(tp)
        return buffer is not None and buffer.is_queued and buffer.must_raise

    def is_broken(self, tp: TopicPartition) -> bool:
        """Whether the next batch of a partition is known to be unreadable."""
        buffer = self._buffers.get(tp)
        return buffer is not None and buffer.broken is not None

    def add(self, tp: TopicPartition, fetched: Fetched[TagT]) -> None:
        """Append fetched batches to a partition's buffer."""
        buffer = self._buffers.get(tp)
        if buffer is None:
            buffer = self._buffers[tp] = PartitionBuffer(tp)
        # A pause may last for hours, and must not keep a response of other partitions.
        frame = None if tp in self._paused else fetched.frame
        tag, count, size = fetched.tag, self._count, 0
        for batch in fetched.batches:
            if frame is None:
                batch.detach()
            else:
                self._keep(frame)
            buffer.batches.append((batch, tag, frame))
            size += batch.size_bytes
            buffer.waiting += batch.count if count is None else count(batch, tag)
        # Paused partitions are not counted at all, so that the others are fetched on.
        buffer.size += size
        if frame is not None:
            self.unread += size
        buffer.failure = fetched.failure
        self.changes += 1
        self._enqueue(buffer)

    def pop_batch(self, buffer: PartitionBuffer[TagT]) -> None:
        """Remove the first batch: it becomes the chunk, or is left out."""
        self.clear_chunk(buffer)
        buffer.broken = None
        # The chunk keeps the frame: its records may point into the response's bytes.
        batch, tag, buffer.frame = buffer.batches.popleft()
        buffer.tag = tag
        size = batch.size_bytes
        buffer.size -= size
        self.changes += 1
        count = self._count
        buffer.waiting -= batch.count if count is None else count(batch, tag)
        self.unread -= size
        if buffer.frame is None:
            self.size -= size

    def extend_chunk(self, buffer: PartitionBuffer[TagT], count: int) -> None:
        """Remove the first batches: they were taken together with the chunk.

        Args:
            buffer: the buffer; these batches are in the fetch response of its chunk.
            count: the number of batches.
        """
        frame, size, records = buffer.frame, 0, 0
        assert frame is not None
        for _ in range(count):
            batch = buffer.batches.popleft()[0]
            size += batch.size_bytes
            records += batch.count
        frame.in_use -= count  # the chunk goes on using it
        buffer.size -= size
        buffer.waiting -= records
        buffer.count += records
        self.unread -= size
        self.changes += 1

    def drop_batches(self, buffer: PartitionBuffer[TagT]) -> None:
        """Drop what follows the chunk of a partition that is not paused."""
        self._release_batches(buffer)
        buffer.batches.clear()
        buffer.size = buffer.waiting = 0
        self.set_failure(buffer, None)

    def clear_chunk(self, buffer: PartitionBuffer[TagT]) -> None:
        """Drop the chunk, which was read or is not needed any more."""
        buffer.chunk = buffer.tag = None
        buffer.undeserialized = None
        buffer.count = 0
        if buffer.frame is not None:
            self._release(buffer.frame)
            buffer.frame = None

    def refuse(self, buffer: PartitionBuffer[TagT], failure: Failure) -> None:
        """Replace everything in a buffer by a failure."""
        while buffer.batches:
            self.pop_batch(buffer)
        self.clear_chunk(buffer)
        self.set_failure(buffer, failure)

    def set_failure(
        self, buffer: PartitionBuffer[TagT], failure: Failure | None
    ) -> None:
        """Set what is raised after the last record; None once it was raised.

        Until it was raised nothing more is fetched of the partition.
        """
        buffer.failure = failure
        self.changes += 1

    def set_aside(self, buffer: PartitionBuffer[TagT]) -> None:
        """Leave a buffer out of the reading until `bring_back`."""
        buffer.is_aside = True
        self._dequeue(buffer)

    def bring_back(self, buffer: PartitionBuffer[TagT]) -> None:
        """Let a buffer that was set aside be read again, unless it was dropped."""
        # A seek or a revocation may have replaced it while it was set aside.
        buffer.is_aside = False
        if self._buffers.get(buffer.tp) is buffer:
            self._enqueue(buffer)

    def drop_if_empty(self, buffer: PartitionBuffer[TagT]) -> None:
        """Remove a buffer from `ready` if it is empty."""
        if buffer.is_empty:
            self._dequeue(buffer)

    def compact(self) -> bool:
        """Copy unread batches out of their responses, if that frees more than it takes.

        A partition that is read slowly keeps whole responses in memory, of which the
        other partitions are read already. Without this it would delay their fetching.

        Returns:
            Whether memory was freed.
        """
        # Worthwhile only if more than half of the bytes in memory are read already.
        if self.size <= 2 * self.unread:
            return False
        before = self.size
        for buffer in self._buffers.values():
            if buffer.is_queued or buffer.ahead is not None:
                self.detach(buffer)
        return self.size < before

    def pause(self, tp: TopicPartition) -> None:
        """Keep a partition's data, and do not read it until `resume`."""
        if tp in self._paused:
            return
        self._paused.add(tp)
        buffer = self._buffers.get(tp)
        if buffer is not None:
            self._exclude(buffer)
            self._dequeue(buffer)

    def resume(self, tp: TopicPartition) -> None:
        """Let a paused partition be read again."""
        if tp not in self._paused:
            return
        self._paused.discard(tp)
        buffer = self._buffers.get(tp)
        if buffer is not None:
            self.size += buffer.size
            self.unread += buffer.size
            self._enqueue(buffer)

    def drop(self, tp: TopicPartition) -> None:
        """Drop a partition's data; a paused partition stays paused."""
        # The bytes of a paused partition were subtracted when the pause began.
        buffer = self._buffers.pop(tp, None)
        self.changes += 1
        if buffer is not None and buffer.ahead is not None:
            buffer.ahead.drop()
        if buffer is None or tp in self._paused:
            return
        self._release_batches(buffer)
        self.clear_chunk(buffer)
        self._dequeue(buffer)

    def forget(self, tp: TopicPartition) -> None:
        """Drop a partition's data and its pause."""
        self.drop(tp)
        self._paused.discard(tp)

    def _exclude(self, buffer: PartitionBuffer[TagT]) -> None:
        # First copied, then subtracted: during the pause its own bytes do not count.
        self.detach(buffer)
        self.size -= buffer.size
        self.unread -= buffer.size

    def detach(self, buffer: PartitionBuffer[TagT]) -> None:
        """Keep copies of a buffer's own bytes, and release the fetch responses."""
        if buffer.ahead is not None:
            buffer.ahead.detach()
        apart: deque[Waiting[TagT]] = deque()
        for batch, tag, frame in buffer.batches:
            if frame is not None:
                batch.detach()
                self._release(frame)
                self.size += batch.size_bytes
            apart.append((batch, tag, None))
        buffer.batches = apart
        if buffer.chunk is not None and buffer.frame is not None:
            buffer.chunk.detach()
            self._release(buffer.frame)
            buffer.frame = None

    def _release_batches(self, buffer: PartitionBuffer[TagT]) -> None:
        self.unread -= buffer.size
        for batch, _, frame in buffer.batches:
            if frame is None:
                self.size -= batch.size_bytes
            else:
                self._release(frame)

    def _keep(self, frame: Frame) -> None:
        if not frame.in_use:
            self.size += frame.size
        frame.in_use += 1

    def _release(self, frame: Frame) -> None:
        frame.in_use -= 1
        if not frame.in_use:
            self.size -= frame.size

    def _enqueue(self, buffer: PartitionBuffer[TagT]) -> None:
        if buffer.is_queued or buffer.is_empty or buffer.is_aside:
            return
        if buffer.tp in self._paused:
            return
        buffer.is_queued = True
        self.ready.append(buffer)

    def _dequeue(self, buffer: PartitionBuffer[TagT]) -> None:
        if buffer.is_queued:
            buffer.is_queued = False
            # Usually its turn is over and it was rotated to the end, where removing it
            # takes no search.
            if self.ready[-1] is buffer:
                self.ready.pop()
            else:
                self.ready.remove(buffer)
