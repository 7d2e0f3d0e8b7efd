"""Handing records out: synchronous, so that no cancellation can come in between.

The reader joins what the machines decide (where each partition stands, what is
finished) with what is buffered. Its caller waits; the reader never does. A record is
taken and returned in one step without any await, so a cancelled call has taken
nothing.

Progress inside the chunk that is being handed out is one index. It reaches the
machines when somebody looks (`sync`), not with every record.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from kafkaio._machines.offsets import OffsetLedger
from kafkaio._machines.positions import Positions, Reset
from kafkaio._records.batch import converted
from kafkaio.config import ConsumerConfig, Deserializer
from kafkaio.consumer.buffers import Buffers, Fetched, PartitionBuffer
from kafkaio.errors import CorruptRecord, OffsetOutOfRange
from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.types import Record, TopicPartition

__all__ = ["Reader"]

#: Records handed out before the iterator looks at the clock.
_CREDIT: Final = 64


class Reader:
    """Everything that is read, by partition, and the user's place in it.

    Args:
        config: the consumer's options.
        on_change: called when there may be something new to fetch or to look up.
        on_news: called when a waiting reader should look again.
    """

    def __init__(
        self,
        config: ConsumerConfig,
        *,
        on_change: Callable[[], None],
        on_news: Callable[[], None],
    ) -> None:
        self.policy = Reset.of(config.auto_offset_reset)
        self.positions = Positions(self.policy)
        self.ledger = OffsetLedger()
        self.buffers = Buffers()
        #: The fetcher wants to hear when no more bytes than that are buffered.
        self.wake_below = -1
        #: Called then.
        self.on_room: Callable[[], None] = _nothing
        #: Records that may be handed out before the caller must look at the clock.
        self.credit = 0
        #: Whether the next step must take the long way round.
        self.must_look = True
        self._errors: deque[BaseException] = deque()
        self._on_change = on_change
        self._on_news = on_news
        self._key_deserializer = config.key_deserializer
        self._value_deserializer = config.value_deserializer
        self._deserializes = bool(config.key_deserializer or config.value_deserializer)
        self._chunk: PartitionBuffer | None = None
        # Records handed out of the chunks before this one; never goes back.
        self._taken = 0

    @property
    def progress(self) -> int:
        """A number that grows whenever the user takes something, and only then."""
        return self._taken + (0 if self._chunk is None else self._chunk.index)

    # What the background reports

    def fail(self, error: BaseException) -> None:
        """Raise ``error`` from the next step, once."""
        self._errors.append(error)
        self.must_look = True
        self._on_news()

    def tell(self) -> None:
        """There is something that the next step must look at."""
        self.must_look = True
        self._on_news()

    def add(self, tp: TopicPartition, fetched: Fetched) -> None:
        """Buffer what was fetched of an assigned partition."""
        if fetched.batches:
            self.positions.fetched(tp, fetched.batches[-1].next_offset)
        self.buffers.add(tp, fetched)
        self._on_news()

    # Assignment and the user's wishes

    def assign(self, tp: TopicPartition, *, has_commits: bool) -> int:
        """Begin a new assignment of a partition and return its number."""
        self.unassign(tp)
        number = self.positions.assign(tp, has_commits=has_commits)
        self.ledger.open(tp, number)
        self.must_look = True
        self._on_change()
        return number

    def unassign(self, tp: TopicPartition) -> None:
        """End a partition's assignment and drop everything known of it."""
        self._leave_chunk(tp)
        self.positions.unassign(tp)
        self.ledger.close(tp)
        self.buffers.forget(tp)

    def revoke_requested(self, tp: TopicPartition) -> None:
        """Hand out and fetch no more of a partition; commits of it go on."""
        self._leave_chunk(tp)
        self.buffers.drop(tp)
        self.positions.revoke_requested(tp)
        self.must_look = True
        self._on_news()

    def pause(self, tp: TopicPartition) -> None:
        """Hand out and fetch no more until `resume`; what is buffered stays."""
        self._leave_chunk(tp)
        self.positions.pause(tp)
        self.buffers.hold(tp)
        self._on_change()

    def resume(self, tp: TopicPartition) -> None:
        """End a pause."""
        self.positions.resume(tp)
        self.buffers.release(tp)
        self._on_change()
        self._on_news()

    def seek(self, tp: TopicPartition, offset: int, epoch: int = -1) -> None:
        """Read on at ``offset``; all before it counts as finished."""
        self._leave_chunk(tp)
        self.buffers.drop(tp)
        self.positions.seek(tp, offset, epoch)
        self.ledger.positioned(tp, offset, epoch, committed=False)
        self.must_look = True
        self._on_change()

    def seek_to(self, tp: TopicPartition, reset: Reset) -> None:
        """Look a new position up for a partition, whatever it is now."""
        self._leave_chunk(tp)
        self.buffers.drop(tp)
        self.positions.seek_to(tp, reset)
        self.ledger.unpositioned(tp)
        self.must_look = True
        self._on_change()

    # Reading

    def step(self) -> None:
        """The user asks for more: finish what was handed out, raise what went wrong.

        Raises:
            Exception: whatever the background reported; each report is raised once.
            OffsetOutOfRange: a partition has no position and no policy to find one;
                raised by every step until a seek.
        """
        self.finish()
        self.raise_errors()
        for tp in self.positions.stranded():
            self.raise_stranded(tp)
        self.must_look = False

    def raise_errors(self) -> None:
        """Raise the first error that the background reported, once."""
        if self._errors:
            raise self._errors.popleft()

    def raise_stranded(self, tp: TopicPartition) -> None:
        """Raise if a partition has no position, and nothing will find one."""
        if tp in self.positions.stranded():
            raise OffsetOutOfRange(
                f"{_name(tp)} has no valid position and auto_offset_reset is none: "
                "seek, or choose a policy",
                code=ErrorCode.OFFSET_OUT_OF_RANGE,
                name=ErrorCode.OFFSET_OUT_OF_RANGE.name,
            )

    def finish(self) -> None:
        """Everything handed out so far is finished."""
        chunk = self._chunk
        if chunk is not None:
            chunk.mark = chunk.index
            self.sync()
        self.ledger.finish()

    def sync(self) -> None:
        """Bring the machines up to date with the chunk that is being handed out."""
        chunk = self._chunk
        if chunk is None or chunk.index == 0:
            return
        handed = chunk.handed_offset
        self.positions.advance(chunk.tp, handed, chunk.epoch)
        self.ledger.handed(chunk.tp, handed, chunk.epoch)
        if chunk.mark:
            self.ledger.finished_to(chunk.tp, chunk.finished_offset, chunk.epoch)

    def next_nowait(self) -> Record | None:
        """Step and take one record, if it is at hand and nothing else is to be done.

        Returns:
            None where the caller must go the long way: `step`, look at the clock,
            `take_one`.
        """
        chunk = self._chunk
        if chunk is None or self.must_look or self.credit <= 0:
            return None
        index = chunk.index
        if index >= len(chunk.records) or self._deserializes:
            return None
        self.credit -= 1
        chunk.mark = index
        chunk.index = index + 1
        return chunk.records[index]

    def take_one(self) -> Record | None:
        """Take the next record: None where none is at hand."""
        records = self._take_run(1)
        self.credit = _CREDIT
        return records[0] if records else None

    def take(self, max_records: int) -> list[Record]:
        """Take what is at hand, one partition after the other.

        Raises:
            KafkaError: the next record cannot be had; only where none was taken.
        """
        taken: list[Record] = []
        while len(taken) < max_records:
            try:
                run = self._take_run(max_records - len(taken))
            except Exception:
                if taken:
                    break  # raised again by the next step, which starts with it
                raise
            if not run:
                break
            taken += run
        self.must_look = True  # the next step must finish what this one took
        return taken

    def take_partition(self, max_records: int, *, prefer_full: bool) -> list[Record]:
        """Take records of one partition, as many as are at hand up to the limit.

        Args:
            max_records: the limit.
            prefer_full: begin with a partition that has that many, if one does.
        """
        if prefer_full:
            self._bring_forward(max_records)
        taken = self._take_run(max_records)
        while taken and len(taken) < max_records:
            buffer = self._chunk
            if buffer is None or buffer.tp != taken[0].topic_partition:
                break
            if buffer.index >= len(buffer.records) and not buffer.batches:
                break
            try:
                more = self._take_from(buffer, max_records - len(taken))
            except Exception:  # noqa: BLE001  (raised again by the next step)
                break
            if not more:
                break
            taken += more
        self._turn_over()
        self.must_look = True
        return taken

    def has_full(self, max_records: int) -> bool:
        """Whether some partition has at least that many records at hand."""
        return any(buffer.at_hand >= max_records for buffer in self.buffers.ready)

    def has_any(self) -> bool:
        """Whether there is anything at hand to take or to raise."""
        return bool(self.buffers.ready or self._errors)

    def _bring_forward(self, max_records: int) -> None:
        ready = self.buffers.ready
        for _ in range(len(ready)):
            if ready[0].at_hand >= max_records:
                return
            ready.rotate(-1)

    def _take_run(self, max_records: int) -> list[Record]:
        # Records of one chunk, at most max_records of them.
        chunk = self._chunk
        if chunk is not None:
            if chunk.index < len(chunk.records):
                return self._hand_out(chunk, max_records)
            self._turn_over()
        ready = self.buffers.ready
        while ready:
            buffer = ready[0]
            taken = self._take_from(buffer, max_records)
            if taken:
                return taken
            self.buffers.drop_if_empty(buffer)
        return []

    def _take_from(self, buffer: PartitionBuffer, max_records: int) -> list[Record]:
        if buffer.index >= len(buffer.records):
            self._close_chunk(buffer)
            if not self._open_chunk(buffer):
                self._raise_failure(buffer)
                return []
        self._chunk = buffer
        return self._hand_out(buffer, max_records)

    def _turn_over(self) -> None:
        # After a chunk, or a run of them, the next partition has its turn.
        chunk = self._chunk
        if chunk is None:
            return
        if chunk.index >= len(chunk.records):
            self._close_chunk(chunk)
        else:
            self._drop_chunk(chunk)
        ready = self.buffers.ready
        if ready and ready[0] is chunk:
            self.buffers.rotate()
        self.buffers.drop_if_empty(chunk)

    def _close_chunk(self, buffer: PartitionBuffer) -> None:
        if self._chunk is buffer:
            self._drop_chunk(buffer)
        buffer.clear_chunk()

    def _open_chunk(self, buffer: PartitionBuffer) -> bool:
        # Decode the next batch that has records for the user.
        tp = buffer.tp
        while buffer.batches:
            batch, sieve = buffer.batches[0]
            position = self.positions[tp].position
            records: list[Record] = []
            try:
                if sieve.passes(batch) and batch.next_offset > position:
                    records = batch.decode(tp.topic, tp.partition, position)
            except CorruptRecord as error:
                error.add_note(_place(tp, position))
                raise
            self.buffers.pop_batch(buffer)
            self._made_room()
            if records:
                buffer.records = records
                buffer.next_offset = batch.next_offset
                buffer.epoch = batch.leader_epoch
                return True
            if batch.next_offset > position:
                self.positions.advance(tp, batch.next_offset, batch.leader_epoch)
                self.ledger.skipped(tp, batch.next_offset, batch.leader_epoch)
        return False

    def _hand_out(self, buffer: PartitionBuffer, max_records: int) -> list[Record]:
        start = buffer.index
        if not self._deserializes:
            run = buffer.records[start : start + max_records]
            buffer.index = start + len(run)
            return run
        for record in buffer.records[start : start + max_records]:
            try:
                buffer.records[buffer.index] = self._deserialize(record)
            except Exception:
                if buffer.index > start:
                    break  # raised by the next step, which starts with this record
                raise
            buffer.index += 1
        return buffer.records[start : buffer.index]

    def _deserialize(self, record: Record) -> Record:
        key = _convert(self._key_deserializer, record.key, record, "key")
        value = _convert(self._value_deserializer, record.value, record, "value")
        return converted(record, key, value)

    def _raise_failure(self, buffer: PartitionBuffer) -> None:
        failure = buffer.failure
        if failure is None:
            return
        buffer.failure = None
        self._on_change()
        if failure.error is None:
            self.reset_position(failure.point.tp)
            return
        self.positions.fetch_again(buffer.tp)
        raise failure.error

    def reset_position(self, tp: TopicPartition) -> None:
        """The position is outside the log: follow the policy, or strand."""
        self.positions.out_of_range(tp, self.positions[tp].token)
        self.ledger.unpositioned(tp)
        self.must_look = True
        self._on_change()
        self._on_news()

    def _made_room(self) -> None:
        if self.buffers.size <= self.wake_below:
            self.wake_below = -1
            self.on_room()

    def _leave_chunk(self, tp: TopicPartition) -> None:
        # The rest of the chunk stays in its buffer, in its turn.
        if self._chunk is not None and self._chunk.tp == tp:
            self._drop_chunk(self._chunk)

    def _drop_chunk(self, chunk: PartitionBuffer) -> None:
        self.sync()
        self._taken += chunk.index
        self._chunk = None


def _nothing() -> None:
    """Nobody waits for room."""


def _convert(
    deserializer: Deserializer | None, data: bytes | None, record: Record, part: str
) -> object:
    if deserializer is None or data is None:
        return data
    try:
        return deserializer(data)
    except Exception as error:
        tp = record.topic_partition
        error.add_note(f"deserializing the {part} of {_place(tp, record.offset)}")
        raise


def _name(tp: TopicPartition) -> str:
    return f"{tp.topic}-{tp.partition}"


def _place(tp: TopicPartition, offset: int) -> str:
    return f"{_name(tp)} at offset {offset}"
