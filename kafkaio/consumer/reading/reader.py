"""Handing records out: synchronous, so that no cancellation can come in between.

The reader joins what the machines decide (where each partition stands, what is
finished) with what is buffered. Its caller waits; the reader never does. A record is
taken and returned in one step without any await, so a cancelled call has taken
nothing.

Progress inside the chunk that is being handed out is kept in its cursor, and in the
handout that iteration takes records from. It reaches the machines when somebody looks
(`sync`), not with every record.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from kafkaio._machines.offsets import OffsetLedger
from kafkaio._machines.positions import FetchPoint, Positions, Reset
from kafkaio._records.batch import Handout
from kafkaio.config import ConsumerConfig
from kafkaio.consumer.batch import Batch, Piece, size_of
from kafkaio.consumer.reading.buffers import (
    Buffers,
    Failure,
    Fetched,
    Frame,
    PartitionBuffer,
)
from kafkaio.consumer.reading.deserializing import deserializing
from kafkaio.consumer.reading.divider import Divider
from kafkaio.consumer.reading.opening import open_batch, placed
from kafkaio.consumer.reading.stranded import stranded
from kafkaio.errors import CorruptRecord
from kafkaio.types import Record, TopicPartition

if TYPE_CHECKING:
    from kafkaio.consumer.threaded.handoff import Moment, Window

__all__ = ["Reader"]


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
        self._checks_crcs = config.check_crcs
        self.policy = Reset.of(config.auto_offset_reset)
        self.positions = Positions(self.policy)
        self.ledger = OffsetLedger()
        self.buffers = Buffers()
        #: The fetcher wants to hear when no more bytes than that are unread.
        self.wake_below = -1
        #: Called then.
        self.on_room: Callable[[], None] = lambda: None
        #: Asked for leave to hand more records out before the loop gets a turn.
        self.more_credit: Callable[[], int] = lambda: 0
        #: Who divides the records among several tasks; None while one reads alone.
        self.divider: Divider | None = None
        #: Who hands on elsewhere what was taken here, if anybody does.
        self.window: Window | None = None
        #: What the background reported; may be looked at in any thread.
        self.errors: deque[BaseException] = deque()
        self._on_change = on_change
        self._on_news = on_news
        #: What deserializes a record: None where nothing does.
        self.deserialize = deserializing(config)
        #: What iteration takes records from, one by one.
        self.handout = Handout(self._refill, self.deserialize)
        # Whether the next step must take the long way round.
        self._must_look = True
        # What the handout stands in.
        self._chunk: PartitionBuffer | None = None
        # What `sync` told the machines last of it: handed out, finished.
        self._synced = (-1, -1)
        # Records handed out of the chunks before this one; never goes back.
        self._taken = 0

    @property
    def progress(self) -> int:
        """A number that grows whenever the user takes something, and only then."""
        taken = self._taken + (0 if self._chunk is None else self._chunk.handed)
        return taken if self.window is None else taken + self.window.progress

    def must_look(self) -> None:
        """The next step is to take the long way round."""
        self._must_look = True
        self.handout.credit = 0

    # What the background reports

    def fail(self, error: BaseException) -> None:
        """Raise ``error`` from the next step, once, unless its like waits already."""
        if all(repr(error) != repr(waiting) for waiting in self.errors):
            self.errors.append(error)
        self.tell()

    def tell(self) -> None:
        """There is something that the next step must look at."""
        self.must_look()
        self._on_news()

    def truncated(self, tp: TopicPartition) -> None:
        """Say that the log lost records of a partition that were handed out."""
        if self.divider is not None:
            self.divider.assigned(tp)  # what was handed out is of another log
        self.tell()

    def add(self, tp: TopicPartition, fetched: Fetched) -> None:
        """Buffer what was fetched of an assigned partition."""
        if fetched.batches:
            # Not back, whatever a corrupt batch says: it is told in its turn.
            end = max(self.positions[tp].fetch_offset, fetched.batches[-1].next_offset)
            self.positions.fetched(tp, end)
        self.buffers.add(tp, fetched)
        self._on_news()

    # Assignment and the user's wishes

    def assign(self, tp: TopicPartition, *, has_commits: bool) -> int:
        """Begin a new assignment of a partition and return its number."""
        self.unassign(tp)
        number = self.positions.assign(tp, has_commits=has_commits)
        self.ledger.open(tp, number)
        if self.divider is not None:
            self.divider.assigned(tp)
        self.must_look()
        self._on_change()
        return number

    def unassign(self, tp: TopicPartition) -> None:
        """End a partition's assignment and drop everything known of it."""
        if self.divider is not None and tp in self.positions:
            self.divider.unassigned(tp)
        self._leave_chunk(tp)
        self.positions.unassign(tp)
        self.ledger.close(tp)
        self.buffers.forget(tp)

    def revoke_requested(self, tp: TopicPartition) -> None:
        """Hand out and fetch no more of a partition; commits of it go on."""
        self._leave_chunk(tp)
        self.buffers.drop(tp)
        self.positions.revoke_requested(tp)
        if self.divider is not None:
            self.divider.revoke_requested(tp)
        self.tell()

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
        self.must_look()
        self._on_change()

    def seek_to(self, tp: TopicPartition, reset: Reset) -> None:
        """Look a new position up for a partition, whatever it is now."""
        self._leave_chunk(tp)
        self.buffers.drop(tp)
        self.positions.seek_to(tp, reset)
        self.ledger.unpositioned(tp)
        self.must_look()
        self._on_change()

    # ExclusiveReading

    def look(self) -> None:
        """Raise what went wrong, and look no more till something happens.

        Raises:
            Exception: whatever the background reported; each report is raised once.
            OffsetOutOfRange: a partition has no position and no policy to find one;
                raised by every step until a seek. `LogTruncated` if that is so because
                its log lost what was read.
        """
        self.raise_errors()
        for tp in self.positions.without_offset():
            self.raise_stranded(tp)
        self._must_look = self.divider is not None

    def raise_errors(self) -> None:
        """Raise the first error that the background reported, once."""
        if self.errors:
            raise self.errors.popleft()

    def raise_stranded(self, tp: TopicPartition) -> None:
        """Raise if a partition has no position, and nothing will find one."""
        if tp in self.positions.without_offset():
            raise stranded(tp, self.positions[tp])

    def finish(self) -> None:
        """Everything handed out so far is finished."""
        if (cursor := self.handout.cursor) is not None:
            self.handout.mark = cursor.next_offset
            self.sync()
        self.ledger.finish()

    def acknowledge(
        self,
        partitions: Collection[TopicPartition] | None = None,
        moment: Moment | None = None,
    ) -> None:
        """The user is done with what it was handed of these, or of all partitions.

        Not where handlers of `Consumer.run` have the records: they finish one by one.

        Args:
            partitions: open ones; None for all.
            moment: when the user said so, where it is in another thread.
        """
        self.sync()
        if self.divider is not None and not self.divider.has_order:
            return
        ledger = self.ledger
        chosen = [
            tp for tp in ledger.unfinished if partitions is None or tp in partitions
        ]
        if self.window is not None and moment is not None:
            self.window.acknowledge(moment, chosen)
            return
        for tp in chosen:
            ledger.finish_of(tp)

    def read_now(self) -> Collection[TopicPartition]:
        """Partitions of which the last step may have handed out records."""
        unfinished = self.ledger.unfinished
        return [tp for tp in unfinished if not self.positions[tp].is_revoking]

    def sync(self) -> None:
        """Bring the machines up to date with what is being handed out."""
        if self.divider is not None:
            self.divider.sync()
        if self.window is not None:
            self.window.sync()
        chunk, cursor = self._chunk, self.handout.cursor
        if chunk is None or cursor is None or cursor.remaining == chunk.count:
            return
        place = handed, mark = cursor.next_offset, self.handout.mark
        if place != self._synced:
            self._synced = place
            self.positions.advance(chunk.tp, handed, chunk.epoch)
            self.ledger.handed(chunk.tp, handed, chunk.epoch, finished=mark)

    def _refill(self) -> bool:
        # The handout is out of credit or out of records: go on without waiting where
        # nothing else is to be done but what the last steps of `take_one` do.
        if self._must_look:
            return False
        handout = self.handout
        if handout.credit <= 0:
            handout.credit = self.more_credit()
            if handout.credit <= 0:
                return False
        cursor, chunk = handout.cursor, self._chunk
        if cursor is not None and chunk is not None:
            if cursor.remaining:
                return True
            handout.mark = cursor.next_offset
            self._turn_over(chunk)
        self.ledger.finish()
        return self._find_chunk()

    def take_one(self) -> Record | None:
        """Take the next record: None where none is at hand."""
        if not self._find_chunk():
            return None
        self.handout.credit = max(1, self.more_credit())
        return self.handout.take()

    def take(self, max_records: int) -> list[Record]:
        """Take what is at hand, one partition after the other.

        Raises:
            KafkaError: the next record cannot be had; only where none was taken.
        """
        taken: list[Record] = []
        while len(taken) < max_records:
            try:
                if not self._find_chunk(may_fail=not taken):
                    break
                taken += self.handout.take_run(max_records - len(taken))
            except Exception:
                if taken:
                    break  # raised again by the next step, which starts with it
                raise
        self.must_look()  # the next step must finish what this one took
        return taken

    def take_batch(
        self, max_records: int, *, prefer_full: bool = False
    ) -> Batch | None:
        """Take records of one partition, as many as are at hand up to the limit.

        Args:
            max_records: the limit.
            prefer_full: begin with a partition that has that many, if one does.
        """
        if prefer_full:
            self._bring_forward(max_records)
        if not self._find_chunk():
            return None
        buffer = self._chunk
        assert buffer is not None
        run = [*self._run(buffer, max_records)]
        self.must_look()
        number = self.ledger.number(buffer.tp)
        pieces, frames = [piece for piece, _ in run], [frame for _, frame in run]
        return Batch(buffer.tp, pieces, -1 if number is None else number, frames)

    def take_pieces(self, max_records: int) -> Iterator[tuple[TopicPartition, Piece]]:
        """Take what is at hand of any partitions, one batch after the other.

        Raises:
            KafkaError: the next record cannot be had; only where none was taken.
        """
        left = max_records
        try:
            while left > 0 and self._find_chunk(may_fail=left == max_records):
                assert self._chunk is not None
                tp = self._chunk.tp
                for piece, _ in self._run(self._chunk, left):
                    left -= size_of(piece)
                    yield tp, piece
        except Exception:
            if left == max_records:
                raise
            # Raised again by the next step, which starts with it.
        self.must_look()

    def _run(
        self, buffer: PartitionBuffer, limit: int
    ) -> Iterator[tuple[Piece, Frame | None]]:
        # Records of one partition, batch by batch, and what each is in.
        piece: Piece | None = self._take_piece(buffer, limit)
        while piece is not None:
            yield piece, buffer.frame
            limit -= size_of(piece)
            piece = self._next_piece(buffer, limit)
        self._turn_over(buffer)

    def _next_piece(self, buffer: PartitionBuffer, limit: int) -> Piece | None:
        if limit <= 0 or buffer.left or not buffer.batches:
            return None
        self._close_chunk(buffer)
        with suppress(Exception):  # raised again by the next step
            if self._open_chunk(buffer):
                self._begin(buffer)
                return self._take_piece(buffer, limit)
        return None

    # For whoever divides the records

    def take_of(self, tp: TopicPartition, limit: int, *, raw: bool) -> Piece | None:
        """Take records of one partition, ``limit`` at most; None where none is at hand.

        Raw, they are as they came: deserializing is left to the caller.
        """
        buffer = self.buffers.get(tp)
        if buffer is None or not buffer.is_queued:
            return None
        if not (buffer.left or self._open_chunk(buffer)):
            self._raise_failure(buffer)
            self.buffers.drop_if_empty(buffer)
            return None
        self._begin(buffer)
        assert buffer.chunk is not None
        piece = buffer.chunk.cut(limit) if raw else self._take_piece(buffer, limit)
        self._turn_over(buffer)
        return piece

    @property
    def has_failed(self) -> bool:
        """Whether there is something to raise that came from the background."""
        return bool(self.errors or self.positions.without_offset())

    def set_aside(self) -> None:
        """Leave the chunk that is being handed out, for others to take from."""
        if self._chunk is not None:
            self._drop_chunk(self._chunk)
        self.must_look()

    def take_back(self, *partitions: TopicPartition) -> None:
        """Hand out again what is not finished, of these or of all partitions."""
        for tp in partitions or tuple(self.positions):
            if (place := self.ledger.unfinished_from(tp)) is not None:
                self.seek(tp, place.offset, place.leader_epoch)

    def _take_piece(self, buffer: PartitionBuffer, limit: int) -> Piece:
        if self.deserialize is not None:
            return self.handout.take_run(limit)
        assert buffer.chunk is not None
        return buffer.chunk.cut(limit)

    def has_any(self) -> bool:
        """Whether there is anything at hand to take or to raise."""
        return bool(self.buffers.ready or self.errors)

    def _bring_forward(self, max_records: int) -> None:
        ready = self.buffers.ready
        for _ in range(len(ready)):
            if ready[0].at_hand >= max_records:
                return
            ready.rotate(-1)

    def _find_chunk(self, *, may_fail: bool = True) -> bool:
        # Whether there are records at hand; the handout stands in them then.
        if (chunk := self._chunk) is not None:
            if chunk.left:
                return True
            self._turn_over(chunk)
        ready = self.buffers.ready
        while ready:
            buffer = ready[0]
            if buffer.left or self._open_chunk(buffer):
                self._begin(buffer)
                return True
            if buffer.failure is not None and not may_fail:
                return False
            self._raise_failure(buffer)
            self.buffers.drop_if_empty(buffer)
        return False

    def _begin(self, buffer: PartitionBuffer) -> None:
        self._chunk = buffer
        self._synced = (-1, -1)
        self.handout.cursor = buffer.chunk
        self.handout.mark = -1

    def _turn_over(self, buffer: PartitionBuffer) -> None:
        # After a chunk, or a run of them, the next partition has its turn.
        if buffer.left:
            self._drop_chunk(buffer)
        else:
            self._close_chunk(buffer)
        ready = self.buffers.ready
        if ready and ready[0] is buffer:
            ready.rotate(-1)
        self.buffers.drop_if_empty(buffer)

    def _close_chunk(self, buffer: PartitionBuffer) -> None:
        if self._chunk is buffer:
            self._drop_chunk(buffer)
        self.buffers.clear_chunk(buffer)
        self._made_room()

    def _open_chunk(self, buffer: PartitionBuffer) -> bool:
        # Decompress and check the next batch that has records for the user.
        tp = buffer.tp
        while buffer.batches:
            batch, sieve, _ = buffer.batches[0]
            position = self.positions[tp].position
            try:
                if self._checks_crcs:  # now: its bytes come near the processor once
                    batch.check_crc()
            except CorruptRecord as error:
                self._refuse(buffer, placed(error, tp, position))
                return False
            chunk = open_batch(batch, sieve, tp, position)
            self.buffers.pop_batch(buffer)
            if chunk is not None and chunk.remaining:
                buffer.open_chunk(chunk, batch.leader_epoch)
                self._made_room()
                return True
            self.buffers.clear_chunk(buffer)
            self._made_room()
            if batch.next_offset > position:
                self.positions.advance(tp, batch.next_offset, batch.leader_epoch)
                self.ledger.skipped(tp, batch.next_offset, batch.leader_epoch)
        return False

    def _refuse(self, buffer: PartitionBuffer, error: CorruptRecord) -> None:
        # Not even where such a batch ends is to be believed. The network may be to
        # blame, so it is fetched again once the error was raised.
        entry = self.positions[buffer.tp]
        point = FetchPoint(buffer.tp, entry.position, entry.token)
        self.buffers.refuse(buffer, Failure(error, point))
        self.positions.fetch_again(buffer.tp)
        self._made_room()

    def _raise_failure(self, buffer: PartitionBuffer) -> None:
        failure = buffer.failure
        if failure is None:
            return
        buffer.failure = None
        self._on_change()
        if failure.error is not None:
            self.positions.fetch_again(buffer.tp)
            raise failure.error
        self.reset_position(failure.point.tp)

    def reset_position(self, tp: TopicPartition) -> None:
        """The position is outside the log: follow the policy, or strand."""
        self._leave_chunk(tp)
        self.positions.out_of_range(tp, self.positions[tp].token)
        self.ledger.unpositioned(tp)
        self._on_change()
        self.tell()

    def _made_room(self) -> None:
        if self.buffers.unread <= self.wake_below:
            self.wake_below = -1
            self.on_room()

    def _leave_chunk(self, tp: TopicPartition) -> None:
        # The rest of the chunk stays in its buffer, in its turn.
        if self._chunk is not None and self._chunk.tp == tp:
            self._drop_chunk(self._chunk)

    def _drop_chunk(self, chunk: PartitionBuffer) -> None:
        self.sync()
        self._taken += chunk.handed
        self._chunk = self.handout.cursor = None
