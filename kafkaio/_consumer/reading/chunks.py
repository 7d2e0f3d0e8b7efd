"""Chunks: the step from fetched record batches to records for the user.

When its turn comes, a batch is checked (CRC), filtered (``isolation_level``) and
decompressed; its records are the *chunk* of its partition. Small uncompressed batches
that follow it become part of the chunk, because opening one takes as long as reading
tens of records. After a chunk, the next partition has its turn. Errors are raised in
order: after all records before them were handed out, and only by a step that has not
taken a record, because that record would be lost with the error.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from kafkaio._consumer.batch import (
    DecodedPiece,
    Frame,
    Piece,
    TablePiece,
    columns_at_once,
    size_of,
)
from kafkaio._consumer.reading.buffers import (
    Buffers,
    Failure,
    PartitionBuffer,
)
from kafkaio._consumer.reading.deserialization import Deserialization
from kafkaio._consumer.reading.preparation import Preparation
from kafkaio._consumer.reading.progress import ReadProgress, Turn
from kafkaio._fetching.parts import unreadable
from kafkaio._machines.offsets import OffsetLedger
from kafkaio._machines.positions import FetchPoint, PartitionPosition, Positions
from kafkaio._records.batch import Batch, Handout, RecordBatch, RecordCursor
from kafkaio.errors import (
    CorruptRecord,
    LogTruncated,
    OffsetOutOfRange,
    RecordTooLarge,
)
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    from kafkaio._records.raw import RawBatch

PieceT = TypeVar("PieceT", bound=TablePiece)

_NO_END: Final = 2**63
#: Batches are added to a chunk of fewer bytes. All of them are checked before the first
#: record is handed out, and should still be in the processor's cache then.
_SMALL_CHUNK: Final = 65_536


class ChunkListenerPort(Protocol):
    """Is notified about the chunks."""

    def made_room(self) -> None:
        """Note that fewer bytes are buffered."""

    def fetch_more(self) -> None:
        """Note that a partition can be fetched again."""

    def reset_position(self, tp: TopicPartition) -> None:
        """Apply the reset policy: the position is outside the log."""

    def wake(self) -> None:
        """Wake a read that waits."""


class Chunks:
    """Opens chunks and takes records of them.

    Args:
        buffers: the fetched batches.
        positions: where each partition is read.
        ledger: the records handed out.
        handout: the source of records that are iterated over one by one.
        progress: has the chunk of the handout.
        listener: is notified about the chunks.
        deserialization: deserializes the records.
        checks_crcs: the option ``check_crcs``.

    Attributes:
        preparation: decompresses large batches in the background.
    """

    def __init__(  # noqa: PLR0913
        self,
        buffers: Buffers,
        positions: Positions,
        ledger: OffsetLedger,
        handout: Handout,
        progress: ReadProgress,
        listener: ChunkListenerPort,
        deserialization: Deserialization,
        *,
        checks_crcs: bool,
    ) -> None:
        self._buffers = buffers
        self._positions = positions
        self._ledger = ledger
        self._handout = handout
        self._progress = progress
        self._listener = listener
        self._checks_crcs = checks_crcs
        self._deserialization = deserialization
        self.preparation: Preparation = Preparation(buffers, listener.wake, self._break)
        # Where reading ends in this step, and the buffers that are there.
        self._ends: Mapping[TopicPartition, int] = {}
        self._at_end: list[PartitionBuffer] = []

    # Reading to an end

    @contextmanager
    def before(self, ends: Mapping[TopicPartition, int]) -> Iterator[None]:
        """Hand out no record of these partitions from their ends on, in the block.

        Args:
            ends: the offset of the first record that is left out.
        """
        self._ends = ends
        chunk = self._progress.turn.buffer
        if chunk is not None and self._is_at_end(chunk):
            self.turn_over(chunk)
        for buffer in [it for it in self._buffers.ready if self._is_at_end(it)]:
            self._set_aside(buffer)
        try:
            yield
        finally:
            self._ends = {}
            at_end, self._at_end = self._at_end, []
            for buffer in at_end:
                self._buffers.bring_back(buffer)

    def _is_at_end(self, buffer: PartitionBuffer) -> bool:
        end = self._ends.get(buffer.tp)
        return end is not None and self._positions[buffer.tp].position >= end

    def _set_aside(self, buffer: PartitionBuffer) -> None:
        # In a row of partitions to read, it would be found again and again.
        self._buffers.set_aside(buffer)
        self._at_end.append(buffer)

    def _reach_end(self, buffer: PartitionBuffer, end: int) -> None:
        # What is buffered begins at the end, or has no record before it.
        tp = buffer.tp
        entry = self._positions[tp]
        if entry.position < end:
            epoch = entry.position_epoch
            self._positions.advance(tp, end, epoch)
            self._ledger.skipped(tp, end, epoch)
        self._set_aside(buffer)

    # The order of reading

    def find(
        self, among: Collection[TopicPartition] | None = None, *, may_fail: bool = True
    ) -> bool:
        """Find a chunk with records, and let the handout take from it.

        Args:
            among: the partitions to read; None for all.
            may_fail: whether to raise an error that comes next. Otherwise the result is
                False, and a later step raises it.

        Returns:
            Whether there is such a chunk.

        Raises:
            Exception: the error that comes next.
        """
        if (chunk := self._progress.turn.buffer) is not None:
            if chunk.can_hand_out and (among is None or chunk.tp in among):
                return True
            self.turn_over(chunk)
        ready = self._buffers.ready
        while ready and (among is None or self._buffers.turn_to(among)):
            buffer = ready[0]
            cursor = buffer.chunk
            is_open = (cursor is not None and cursor.remaining) or self._open(buffer)
            if is_open and buffer.undeserialized is None:
                self._progress.begin(buffer, self._progress.turn)
                return True
            # The caller has taken records, which an exception would lose.
            if buffer.must_raise and not may_fail:
                return False
            self._raise_failure(buffer)
            self._buffers.drop_if_empty(buffer)
        return False

    def turn_over(self, buffer: PartitionBuffer) -> None:
        """End the turn of a partition, after a chunk or a run of chunks."""
        chunk = buffer.chunk
        if chunk is not None and chunk.remaining:
            self._progress.leave_partition(buffer.tp)
        else:
            self._close(buffer)
        ready = self._buffers.ready
        if ready and ready[0] is buffer:
            ready.rotate(-1)
        if not buffer.batches:
            self._buffers.drop_if_empty(buffer)

    def bring_forward(self, max_records: int) -> None:
        """Let a partition that has that many records be next, if there is one."""
        ready = self._buffers.ready
        for _ in range(len(ready)):
            if ready[0].at_hand >= max_records:
                return
            ready.rotate(-1)

    # Taking

    def run(
        self, buffer: PartitionBuffer, limit: int
    ) -> Iterator[tuple[Piece, Frame | None]]:
        """Take records of one partition, chunk by chunk.

        Yields:
            The records of a chunk, and the fetch response that they are in. Nothing if
            the next record cannot be deserialized now.
        """
        yield from self._run(buffer, limit, self._take)

    def run_of_columns(
        self, buffer: PartitionBuffer, limit: int
    ) -> Iterator[tuple[TablePiece, Frame | None]]:
        """Take records of one partition for a table, without making them if possible.

        Otherwise as `run`.

        Raises:
            ConfigurationError: a deserializer cannot make columns at all.
        """
        yield from self._run(buffer, limit, self._take_columns)

    def _run(
        self,
        buffer: PartitionBuffer,
        limit: int,
        take: Callable[[PartitionBuffer, int], PieceT],
    ) -> Iterator[tuple[PieceT, Frame | None]]:
        # The frame is read after each piece, as the next chunk may be in another one.
        piece: PieceT | None = take(buffer, limit)
        while piece is not None and size_of(piece):
            yield piece, buffer.frame
            limit -= size_of(piece)
            piece = self._take_next(buffer, limit, take)
        self.turn_over(buffer)

    def take_of(
        self, tp: TopicPartition, limit: int, *, raw: bool, may_fail: bool = True
    ) -> Piece | None:
        """Take records of one partition up to the end of a chunk.

        Args:
            tp: the partition.
            limit: most records.
            raw: whether to leave deserializing to the caller.
            may_fail: see `find`.

        Returns:
            The records; None if there are none now.

        Raises:
            Exception: the error that comes next.
        """
        buffer = self._buffers.get(tp)
        if buffer is None or not buffer.is_queued:
            return None
        if raw:
            buffer.undeserialized = None
        if not self._is_open(buffer, may_fail=may_fail):
            return None
        self._progress.begin(buffer, self._progress.turn)
        assert buffer.chunk is not None
        if raw:
            piece: Piece = buffer.chunk.cut(limit)
        else:
            piece = self._take(buffer, limit)
        self.turn_over(buffer)
        if size_of(piece):
            return piece
        if may_fail:
            self._raise_failure(buffer)
        return None

    def find_of(self, tp: TopicPartition, turn: Turn) -> bool:
        """Find a chunk of one partition, and let a lane's handout take from it.

        Returns:
            Whether there is one that can be handed out now.

        Raises:
            Exception: the error that comes next.
        """
        # A subscription may have brought other deserializers since the last call.
        turn.handout.convert = self._handout.convert
        buffer = self._buffers.get(tp)
        if buffer is None or not buffer.is_queued:
            return False
        if turn.buffer is buffer and buffer.can_hand_out:
            return True
        if turn.buffer is not None:
            self.turn_over(turn.buffer)
        if not self._is_open(buffer):
            return False
        self._progress.begin(buffer, turn)
        return True

    def _is_open(self, buffer: PartitionBuffer, *, may_fail: bool = True) -> bool:
        # Whether the next record can be handed out; else raise what comes next.
        if (buffer.left or self._open(buffer)) and buffer.undeserialized is None:
            return True
        if may_fail or not buffer.must_raise:
            self._raise_failure(buffer)
            self._buffers.drop_if_empty(buffer)
        return False

    def pass_over(self, tp: TopicPartition) -> None:
        """Skip markers and records of aborted transactions after the last record.

        Position and ledger are moved behind them. Nothing happens while the chunk has
        records left.
        """
        buffer = self._buffers.get(tp)
        if buffer is None or not buffer.is_queued or buffer.left:
            return
        self._close(buffer)
        with suppress(CorruptRecord):  # the next step raises it
            while buffer.batches:
                batch, isolation, _ = buffer.batches[0]
                if self._checks_crcs:
                    batch.check_crc()
                if isolation.passes(batch):
                    break
                self._buffers.pop_batch(buffer)
                self._left_out(buffer, batch)
        self._buffers.drop_if_empty(buffer)

    def _take_columns(self, buffer: PartitionBuffer, limit: int) -> TablePiece:
        assert buffer.chunk is not None
        rule = self._deserialization.deserializers.rule(buffer.tp.topic)
        if self._handout.convert is not None and rule.to_columns is not None:
            raw = buffer.chunk.copy().cut(limit)
            columns = columns_at_once(raw, rule.to_columns)
            if columns is not None:
                buffer.chunk.skip(raw.remaining)
                return columns
        # One by one: a schema is awaited, or the record that is not valid is found.
        return self._take(buffer, limit)

    def _take(self, buffer: PartitionBuffer, limit: int) -> Piece:
        assert buffer.chunk is not None
        if self._handout.convert is None:
            return buffer.chunk.cut(limit)
        rule = self._deserialization.deserializers.rule(buffer.tp.topic)
        if rule.to_columns is None:
            return self._handout.take_run(limit)
        raw = buffer.chunk.copy()
        records = self._handout.take_run(limit)
        return DecodedPiece(records, raw.cut(len(records)), rule.to_columns)

    def _take_next(
        self,
        buffer: PartitionBuffer,
        limit: int,
        take: Callable[[PartitionBuffer, int], PieceT],
    ) -> PieceT | None:
        if limit <= 0 or buffer.left or not buffer.batches:
            return None
        self._close(buffer)
        # Records were taken: the error waits for a step that has none.
        with suppress(Exception):  # the next step raises it again
            if self._open(buffer):
                self._progress.begin(buffer, self._progress.turn)
                return take(buffer, limit)
        return None

    # Whole batches

    def take_raw(self, most: int) -> list[RawBatch] | None:
        """Take a run of record batches as they were fetched; None without one now.

        Args:
            most: a run of so many bytes takes no further batch.

        Raises:
            Exception: the error that comes next.
        """
        if (chunk := self._progress.turn.buffer) is not None:
            self.turn_over(chunk)
        ready = self._buffers.ready
        while ready:
            buffer = ready[0]
            if buffer.left:
                # The bytes of the batch are gone: only a part was read as records.
                self._fetch_again(buffer)
                continue
            found = self._next(buffer)
            if found is not None:
                try:
                    return self._hand_out_raw(buffer, found, most)
                except (CorruptRecord, RecordTooLarge) as error:
                    # The offsets of formats 0 and 1 are among the compressed bytes.
                    self._break(buffer, error)
            self._raise_failure(buffer)
            self._buffers.drop_if_empty(buffer)
        return None

    def take_raw_here(
        self, ends: Mapping[TopicPartition, int] | None, most: int
    ) -> list[RawBatch] | None:
        """Take a run of record batches; None if that needs a read.

        That is so if no whole batch is at hand in the partition whose turn it is, or if
        an error, a cut or an end of reading comes next.

        Args:
            ends: as for `before`, of all partitions; a new one may have none yet. None
                to read without an end.
            most: as for `take_raw`.
        """
        ready = self._buffers.ready
        if not ready or self._progress.turn.buffer is not None:
            return None
        buffer = ready[0]
        end = _NO_END if ends is None else ends.get(buffer.tp, -1)
        if buffer.left or not buffer.batches or buffer.batches[0][0].next_offset > end:
            return None
        found = self._next(buffer)
        # The first batch may have been left out, and a later one reach beyond the end.
        if found is None or found[0].next_offset > end:
            return None
        try:
            return self._hand_out_raw(buffer, found, most, end)
        except (CorruptRecord, RecordTooLarge):
            return None  # the read finds it again

    def _fetch_again(self, buffer: PartitionBuffer) -> None:
        # From the position, which is in the middle of a batch.
        self._progress.leave_partition(buffer.tp)
        self._buffers.drop(buffer.tp)
        self._positions.fetch_again(buffer.tp)
        self._listener.fetch_more()
        self._listener.made_room()

    def _hand_out_raw(
        self,
        buffer: PartitionBuffer,
        found: tuple[Batch, int, int | None],
        most: int,
        stop: int = _NO_END,
    ) -> list[RawBatch]:
        # Imported late: few consumers read whole batches.
        from kafkaio._records.raw import RawBatch

        batch, position, end = found
        tp, number = buffer.tp, self._ledger.number(buffer.tp)
        place = position, batch.next_offset if end is None else end
        first = RawBatch(tp, batch, place, -1 if number is None else number)
        # First: a transaction holds the partition before anything of it is taken.
        if self._progress.on_begin is not None:
            self._progress.on_begin(tp)
        self._buffers.pop_batch(buffer)
        run, is_cut = [first], first.next_offset < batch.next_offset
        if not is_cut and batch.size_bytes < most:
            self._add_following(buffer, run, most, stop if end is None else end)
        self._buffers.clear_chunk(buffer)
        last = run[-1]
        self._positions.advance(tp, last.next_offset, last.leader_epoch)
        self._ledger.handed(tp, last.next_offset, last.leader_epoch)
        self._progress.took_whole(tp, run)
        if is_cut:
            self._fetch_again(buffer)
        else:  # the next partition has its turn
            self._buffers.ready.rotate(-1)
            self._buffers.drop_if_empty(buffer)
        self._listener.made_room()
        return run

    def _add_following(
        self, buffer: PartitionBuffer, run: list[RawBatch], most: int, stop: int
    ) -> None:
        # Add the batches that follow the first one of a run. The run ends before one
        # that is left out, cut, broken or of an old format: that has a turn of its own.
        frame = buffer.frame
        if frame is None:
            return
        make, tp, number = type(run[0]), buffer.tp, run[0].assignment
        offset, left = run[0].next_offset, most - run[0].size_bytes
        checks_crcs = self._checks_crcs
        for batch, isolation, of_frame in buffer.batches:
            after = batch.next_offset
            if (
                left <= 0
                or of_frame is not frame
                or not isinstance(batch, RecordBatch)
                or batch.is_control
                or not batch.count
                or not offset <= batch.base_offset < after <= stop
                or not isolation.passes(batch)
                or (checks_crcs and batch.computed_checksum() != batch.checksum)
            ):
                break
            run.append(make(tp, batch, (offset, after), number))
            offset, left = after, left - batch.size_bytes
        if len(run) > 1:
            self._buffers.extend_chunk(buffer, len(run) - 1)

    # One chunk

    def _next(self, buffer: PartitionBuffer) -> tuple[Batch, int, int | None] | None:
        # Return the next batch that has records for the user, which stays where it is,
        # with the position in it and the end of reading. None if no such batch is here,
        # or if the next one cannot be read.
        tp = buffer.tp
        while buffer.batches and buffer.broken is None:
            batch, isolation, _ = buffer.batches[0]
            position = self._positions[tp].position
            end = self._ends.get(tp)
            is_sound = True
            try:
                if end is not None and _begins_at(end, batch, position):
                    self._reach_end(buffer, end)
                    return None
                if self._checks_crcs:
                    is_sound = False
                    # Now, and not on arrival: its bytes pass through the processor's
                    # cache once.
                    batch.check_crc()
                    is_sound = True
                # The filter sees every batch in order, even one that the position has
                # passed, because markers change its state.
                is_wanted = isolation.passes(batch) and batch.next_offset > position
            except (CorruptRecord, RecordTooLarge) as error:
                if is_sound or isinstance(error, RecordTooLarge):
                    self._break(buffer, error)
                else:
                    unreadable(error, batch, tp, position, is_sound=False)
                    self._refuse(buffer, error)
                return None
            if is_wanted and batch.count:
                return batch, position, end
            self._buffers.pop_batch(buffer)
            self._left_out(buffer, batch)
        return None

    def _open(self, buffer: PartitionBuffer) -> bool:
        # Open the next batch that has records for the user. False if no such batch is
        # here, or if the next one cannot be read.
        tp = buffer.tp
        while (found := self._next(buffer)) is not None:
            batch, position, end = found
            cut: int | None = None
            try:
                if not self.preparation.is_ready(buffer):
                    return False
                chunk = batch.iterate(tp.topic, tp.partition, position)
                if end is not None and batch.next_offset > end:
                    cut, chunk = end, _before(chunk, end)
                    if not chunk.remaining:
                        self._reach_end(buffer, end)
                        return False
            except (CorruptRecord, RecordTooLarge) as error:
                self._break(buffer, error)
                return False
            # Only now: a batch that raised, or is being decompressed, stays the first.
            self._buffers.pop_batch(buffer)
            if chunk.remaining:
                buffer.open_chunk(chunk, batch.leader_epoch)
                if cut is not None:
                    self._fetch_from(buffer, cut)
                elif end is None and buffer.frame is not None:
                    self._extend(buffer, chunk, buffer.frame)
                self._listener.made_room()
                return True
            self._left_out(buffer, batch)
        return False

    def _fetch_from(self, buffer: PartitionBuffer, end: int) -> None:
        # The rest of the batch, after the end of the chunk, is not here any more.
        self._buffers.drop_batches(buffer)
        self._positions.fetch_again(buffer.tp, end)
        self._listener.fetch_more()

    def _extend(
        self, buffer: PartitionBuffer, chunk: RecordCursor, frame: Frame
    ) -> None:
        # Add the batches that follow to a small chunk. One that cannot be added stays
        # the first, and has its turn later: if it is corrupt, that raises.
        checks_crcs, count = self._checks_crcs, 0
        for batch, isolation, of_frame in buffer.batches:
            if (
                chunk.bytes_left >= _SMALL_CHUNK
                or of_frame is not frame
                # Reading a marker would need its checksum first.
                or batch.is_control
                or not isolation.passes(batch)
                or not batch.extend(chunk, checks_crcs)
            ):
                break
            count += 1
        if count:
            self._buffers.extend_chunk(buffer, count)

    def _left_out(self, buffer: PartitionBuffer, batch: Batch) -> None:
        # Skip a batch, already removed, that has no records for the user.
        self._buffers.clear_chunk(buffer)
        self._listener.made_room()
        # A batch before the position is possible: fetches begin at whole batches.
        tp, end = buffer.tp, batch.next_offset
        if end > self._positions[tp].position:
            self._positions.advance(tp, end, batch.leader_epoch)
            self._ledger.skipped(tp, end, batch.leader_epoch)

    def _close(self, buffer: PartitionBuffer) -> None:
        self._progress.leave_partition(buffer.tp)
        self._buffers.clear_chunk(buffer)
        self._listener.made_room()

    def _break(
        self, buffer: PartitionBuffer, error: CorruptRecord | RecordTooLarge
    ) -> None:
        # Keep the batch and the error: finding it again may take as long as it takes to
        # decompress up to the limit.
        tp, batch = buffer.tp, buffer.batches[0][0]
        position = self._positions[tp].position
        unreadable(error, batch, tp, position, is_sound=self._checks_crcs)
        buffer.broken = error

    def _refuse(self, buffer: PartitionBuffer, error: CorruptRecord) -> None:
        # Nothing in a corrupt batch is reliable, not even its end. The network may be
        # the cause, so the batch is fetched again after the error was raised.
        entry = self._positions[buffer.tp]
        point = FetchPoint(buffer.tp, entry.position, entry.token)
        self._buffers.refuse(buffer, Failure(error, point))
        self._positions.fetch_again(buffer.tp)
        self._listener.made_room()

    def _raise_failure(self, buffer: PartitionBuffer) -> None:
        if (error := buffer.undeserialized) is not None:
            buffer.undeserialized = None
            ready = self._buffers.ready
            if ready and ready[0] is buffer:
                ready.rotate(-1)  # the other partitions are read meanwhile
            self._deserialization.raised(buffer, error)
            raise error
        if (broken := buffer.broken) is not None:
            ready = self._buffers.ready
            if ready and ready[0] is buffer:
                ready.rotate(-1)  # the other partitions are read meanwhile
            raise broken.with_traceback(None)
        failure = buffer.failure
        if failure is None or buffer.batches:
            return
        # Before raising: while a failure is set, nothing is fetched.
        self._buffers.set_failure(buffer, None)
        self._listener.fetch_more()
        if failure.error is not None:
            self._positions.fetch_again(buffer.tp)
            raise failure.error
        self._listener.reset_position(failure.point.tp)


def _begins_at(end: int, batch: Batch, position: int) -> bool:
    """Whether what is to be read of a batch begins at an offset, or after it."""
    # In that order: the base offset of formats 0 and 1 is among the compressed bytes.
    return position >= end or (batch.next_offset > end and batch.base_offset >= end)


def _before(chunk: RecordCursor, end: int) -> RecordCursor:
    """Return a cursor over the records before an offset."""
    records = chunk.copy().take(chunk.remaining)
    return chunk.cut(sum(record.offset < end for record in records))


def no_position(tp: TopicPartition, entry: PartitionPosition) -> OffsetOutOfRange:
    """Return the error for a partition without a position and without a policy."""
    topic, partition = tp
    if (cut := entry.truncation) is not None:
        return LogTruncated(topic, partition, cut.position, cut.end)
    what = (
        f"{topic}-{partition} has no committed offset"
        if entry.outside < 0
        else f"offset {entry.outside} is outside the log of {topic}-{partition}"
    )
    return OffsetOutOfRange(
        f"{what} and auto_offset_reset is none: seek, or choose a policy",
        topic=topic,
        partition=partition,
        position=entry.outside,
    )
