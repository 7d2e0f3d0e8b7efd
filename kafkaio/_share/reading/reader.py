"""The reader of a share consumer: what was fetched, until it is handed out.

It is synchronous: its caller waits, the reader never does. A record is taken and
returned in one step without an await in between, so a cancelled call has taken nothing.

As with `kafkaio.Consumer`, there is a short path and a long path to the next record. On
the short path iteration takes records out of the handout, which calls `_refill` for
more. The long path is a read (`ShareReads.read`), which first raises what must be
raised. The order of records means nothing in a share group. So an error is raised by
the next step, and the records beside it go on.

Whoever reads is a *holder*: an iterator, a poll, ``run``. While there is one, records
are fetched, at most one round ahead. Without one, what is buffered is given back at
once: an idle consumer locks nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeAlias

from kafkaio._config import ShareConsumerConfig
from kafkaio._consumer.batch import DecodedPiece, Frame, Piece, size_of
from kafkaio._consumer.reading.buffers import Buffers, Fetched, PartitionBuffer
from kafkaio._consumer.reading.deserialization import Deserialization
from kafkaio._consumer.reading.deserializers import is_passing
from kafkaio._consumer.reading.preparation import Preparation, Spawn
from kafkaio._consumer.wanted import ReadSelection
from kafkaio._fetching.parts import located, unreadable
from kafkaio._records._acquired import ACCEPT, GAP, REJECT, RELEASE
from kafkaio._records._impl import accelerated
from kafkaio._records.batch import (
    Acquired,
    AcquiredCursor,
    Batch,
    Decompressor,
    Handout,
    read_batches,
)
from kafkaio._runtime.clock import is_replaced, now
from kafkaio._runtime.time_slice import SLICE
from kafkaio._share.batch import Part, ShareBatch
from kafkaio._share.ports import FetchedPart
from kafkaio._share.reading.acquisition import (
    END,
    Acquisition,
    Claim,
    claims,
    count_of,
    decide_between,
)
from kafkaio.errors import CorruptRecord, DeserializationError, RecordTooLarge
from kafkaio.types import AnyRecord, TopicPartition

#: A buffer of this reader.
_Buffer: TypeAlias = PartitionBuffer[Claim]
_DECISIONS: Final = {"release": RELEASE, "reject": REJECT}


class ShareReader:
    """The fetched records of a share consumer.

    Args:
        config: the consumer's options.
        on_change: called when there may be something to fetch or to send.
        on_news: called to wake a read that waits.

    Attributes:
        buffers: the batches that were fetched and not handed out.
        errors: what the next steps raise.
        allowance: returns how many records may be handed out before the event loop gets
            a turn; 0 if it should get one now.
        handout: the source of records that are iterated over one by one.
        deserialization: deserializes the records.
        on_handed: called with a partition and a number of records that were taken of
            it; None without an observer.
        show: returns the range that records refer to, in place of one of the ledger;
            None if it is the same.
    """

    def __init__(
        self,
        config: ShareConsumerConfig,
        *,
        on_change: Callable[[], None],
        on_news: Callable[[], None],
    ) -> None:
        self.buffers: Buffers[Claim] = Buffers(count_of)
        self.errors: deque[Exception] = deque()
        self.allowance: Callable[[], int] = lambda: 0
        self.on_handed: Callable[[TopicPartition, int], None] | None = None
        self.show: Callable[[Acquired], Acquired] | None = None
        self._on_change = on_change
        self._on_news = on_news
        self._is_implicit = config.acknowledgement == "implicit"
        # Whether the next step accepts what was handed out before.
        self._accepts = self._is_implicit
        # Whether records are handed out as they came.
        self._is_raw = False
        self._undeserializable = _DECISIONS[config.undeserializable]
        self._patience = config.default_api_timeout_ms / 1000
        self._checks_crcs = config.check_crcs
        self._max_decompressed = config.max_decompressed_batch_size
        self._decompressor = Decompressor()
        self.deserialization: Deserialization = Deserialization(
            config, self.buffers, self.pause, self._wake
        )
        self._preparation = Preparation(self.buffers, self._wake, self._break)
        # The compiled handout has a clock of its own, which costs less.
        self.handout: Handout = Handout(
            self._refill,
            self.deserialization.convert,
            None if accelerated and not is_replaced() else now,
        )
        self._holder: object = None
        # Whether the next step must be a read.
        self._is_interrupted = True
        # The buffer that the handout takes from, and how many records of its chunk were
        # handed out before.
        self._chunk: _Buffer | None = None
        self._begun_at = 0
        # The records of the chunk before this offset are accepted, or the user's.
        self._settled = -1
        # What the last step handed out at once: a poll, or a batch.
        self._last: list[Part] = []
        # By partition: the offset of a record whose deserializer fails for a reason
        # that passes, and since when.
        self._failing: dict[TopicPartition, tuple[int, float]] = {}

    def prepare_with(self, spawn: Spawn) -> None:
        """Run what takes time in tasks; see `Preparation` and `Deserialization`."""
        self._preparation.spawn = self.deserialization.spawn = spawn

    def deserialize_as(self, wanted: ReadSelection) -> None:
        """Use the serdes of the topics of a selection, and the options for others."""
        deserializers = self.deserialization.deserializers
        if deserializers.use(wanted.typed_after(deserializers.topics)):
            self._convert()
            self.deserialization.start_over()

    def _convert(self) -> None:
        self.handout.convert = None if self._is_raw else self.deserialization.convert

    def hand_to_tasks(self, *, begins: bool) -> None:
        """Begin to hand records to many tasks, or end that.

        In between, records are handed out as they came, and the tasks deserialize them;
        and each task decides about its records, also with implicit acknowledgement.
        """
        self._is_raw = begins
        self._accepts = not begins and self._is_implicit
        self._convert()
        self.deserialization.start_over()
        self.pause()

    # The engine's side (`ReaderPort`)

    @property
    def wants(self) -> bool:
        """Whether records are to be fetched: there is a holder."""
        return self._holder is not None

    @property
    def buffered(self) -> int:
        """How many acquired records are fetched and not handed out.

        Locks that were lost since are counted until reading comes to them.
        """
        return sum(buffer.left + buffer.waiting for buffer in self.buffers)

    @property
    def buffered_bytes(self) -> int:
        """Their size, compressed or not."""
        chunk = sum(
            buffer.chunk.bytes_left
            for buffer in self.buffers
            if buffer.chunk is not None and buffer.chunk.remaining
        )
        return self.buffers.unread + chunk

    def received(self, part: FetchedPart) -> None:
        """Take fetched data; it is given back at once if nobody reads."""
        show = self.show
        acquired = part.acquired if show is None else [*map(show, part.acquired)]
        acquisition = Acquisition(acquired)
        if not self.wants:
            acquisition.decide_rest(RELEASE)
            return
        batches: list[Batch] = []
        error: CorruptRecord | None = None
        try:
            # In a loop: the batches before a corrupt one are good.
            for batch in read_batches(
                part.data,
                check_crcs=False,
                max_decompressed=self._max_decompressed,
                decompressor=self._decompressor,
            ):
                batches.append(batch)  # noqa: PERF402
        except CorruptRecord as corrupt:
            error = corrupt
        end = max([acquisition.at, *(batch.next_offset for batch in batches)])
        rest = Acquisition(acquired)
        rest.assign(end)
        # Nothing shows that there is no record behind the data: it is not a gap.
        lost = rest.decide_rest(RELEASE if error is None else REJECT)
        if error is not None and lost:
            located(error, part.tp, end)
            self.failed(error)
        frame = Frame(len(part.data))
        for batch, claim in claims(acquisition, batches):
            self.buffers.add(part.tp, Fetched([batch], claim, frame))
        self.buffers.compact()
        self._on_news()

    def failed(self, error: Exception) -> None:
        """Raise an error from the next step, once; repetitions are left out."""
        # By text: each partition or broker makes an object of its own for one cause.
        if all(repr(error) != repr(waiting) for waiting in self.errors):
            self.errors.append(error)
        self._wake()

    def interrupt(self) -> None:
        """Hand out nothing more, and release what is buffered: the consumer ends."""
        self._give_back()
        self._wake()

    # Who reads

    def step(self, holder: object) -> None:
        """Note that a holder asks for records: it is done with what it was handed.

        Implicit acknowledgement accepts that now. Another holder's reading is over.
        """
        before = self._holder
        if before is not holder:
            self._holder = holder
            if before is not None and not self._accepts:
                self._release_last()
        self._finish()
        if before is None:
            self._on_change()

    def end(self, holder: object, *, keeps_last: bool = False) -> None:
        """Note that a holder reads no more: give back what it has no use for.

        That is the record (or the batch) that it was handed last, if there is no
        decision, and everything buffered.

        Args:
            holder: who has read; nothing happens if another one reads by now.
            keeps_last: whether the user keeps what was handed out last.
        """
        if self._holder is not holder:
            return
        self._holder = None
        if not keeps_last:
            self._release_last()
        self._give_back()
        self.pause()
        self._on_change()

    def accept(self) -> None:
        """Accept everything that was handed out, with implicit acknowledgement."""
        if self._accepts:
            self._finish()

    def forget_last(self, *, at_all: bool = False) -> None:
        """Note that the last step's records are the user's alone: `poll` or ``run``.

        Leaving does not release them. Implicit acknowledgement still accepts them.

        Args:
            at_all: whether somebody else accepts them.
        """
        if at_all or not self._accepts:
            self._last.clear()

    def _finish(self) -> None:
        # The user is done with everything that was handed out.
        handout, cursor = self.handout, self.handout.cursor
        if isinstance(cursor, AcquiredCursor):
            end = cursor.next_offset
            if self._accepts:
                decide_between(cursor.acquired, self._settled, end, ACCEPT)
            self._settled = handout.mark = end
        if self._last:
            if self._accepts:
                for part in self._last:
                    decide_between(part.acquired, part.first, part.end, ACCEPT)
            self._last.clear()

    def _release_last(self) -> None:
        # Of the chunk, the last record is between the mark and the next one; with
        # implicit acknowledgement, the ones before are finished.
        handout, cursor = self.handout, self.handout.cursor
        if isinstance(cursor, AcquiredCursor):
            mark, end = max(handout.mark, self._settled), cursor.next_offset
            if self._accepts:
                decide_between(cursor.acquired, self._settled, mark, ACCEPT)
            decide_between(cursor.acquired, mark, end, RELEASE)
            self._settled = handout.mark = end
        for part in self._last:
            decide_between(part.acquired, part.first, part.end, RELEASE)
        self._last.clear()

    def _give_back(self) -> None:
        # Release everything that is buffered.
        self._leave()
        for buffer in [*self.buffers]:
            if isinstance(buffer.chunk, AcquiredCursor):
                buffer.chunk.decide_rest(RELEASE)
            for _, claim, _ in buffer.batches:
                claim.acquisition.decide_rest(RELEASE)
            self.buffers.forget(buffer.tp)
        self._failing.clear()

    def pause(self) -> None:
        """Close the short path: the next step must be a read."""
        self._is_interrupted = True
        # Without credit the compiled stream calls `_refill` before the next record.
        self.handout.credit = 0

    def _wake(self) -> None:
        self.pause()
        self._on_news()

    # Taking

    def check(self) -> None:
        """Raise the next error that the user must get, and open the short path.

        Raises:
            Exception: a batch that cannot be read, a record that cannot be
                deserialized, or an error of the engine; each is raised once.
        """
        if self.errors:
            raise self.errors.popleft()
        self._is_interrupted = False

    def has_any(self) -> bool:
        """Whether there may be something to take or to raise."""
        return bool(self.buffers.ready or self.errors)

    def has_full(self, max_records: int) -> bool:
        """Whether some partition has at least that many records to take."""
        return self.buffers.has_full(max_records)

    def _refill(self) -> bool:
        # Called when the allowance or the chunk of the handout is used up. Returns
        # whether the short path can go on, after the steps that a read would take.
        if self._is_interrupted or self.errors:
            return False
        handout = self.handout
        if handout.credit <= 0:
            allowance = self.allowance()
            if allowance <= 0:
                return False
            handout.grant(allowance, SLICE)
        self._finish()
        return self._find() is not None and not self.errors

    def take_one(self) -> AnyRecord | None:
        """Take the next record; None if there is none now."""
        while self._find():
            self.handout.grant(max(1, self.allowance()), SLICE)
            # None if its deserializer has to be awaited, or raised: `_find` goes on.
            if (record := self.handout.take()) is not None:
                return record
        return None

    def take(self, max_records: int) -> list[AnyRecord]:
        """Take the records that are there, partition by partition."""
        taken: list[AnyRecord] = []
        while len(taken) < max_records and (buffer := self._find()):
            chunk = _cursor_of(buffer)
            first = chunk.next_offset
            try:
                taken += self.handout.take_run(max_records - len(taken))
            finally:
                self._handed_run(chunk, first)
        # The next step must be a read, which settles the records of this one.
        self.pause()
        return taken

    def take_batch(
        self, max_records: int, *, prefer_full: bool = False
    ) -> ShareBatch | None:
        """Take records of one partition, as many as are there up to the limit.

        Args:
            max_records: the limit.
            prefer_full: take a partition that has that many, if there is one.
        """
        if prefer_full:
            self._bring_forward(max_records)
        while buffer := self._find():
            parts, pieces, frames = list[Part](), list[Piece](), list[Frame | None]()
            left, tp = max_records, buffer.tp
            while left > 0 and buffer is not None and buffer.tp == tp:
                frames.append(buffer.frame)
                piece, part = self._take_piece(buffer, left)
                if not size_of(piece):
                    frames.pop()
                    break
                parts.append(part)
                pieces.append(piece)
                left -= size_of(piece)
                buffer = self._next_of(buffer)
            if pieces:
                self._turn_over()
                self.pause()
                return ShareBatch(tp, pieces, frames, parts)
        return None

    def _next_of(self, buffer: _Buffer) -> _Buffer | None:
        # The next chunk of the same partition, if it is there.
        if buffer.left or not buffer.batches:
            return None
        self._close(buffer)
        if self._open(buffer) and buffer.undeserialized is None:
            self._begin(buffer)
            return buffer
        return None

    def _take_piece(self, buffer: _Buffer, limit: int) -> tuple[Piece, Part]:
        chunk = _cursor_of(buffer)
        first = chunk.next_offset
        piece = self._piece(buffer, chunk, limit)
        return piece, self._handed_run(chunk, first)

    def _piece(self, buffer: _Buffer, chunk: AcquiredCursor, limit: int) -> Piece:
        if self.handout.convert is not None:
            rule = self.deserialization.deserializers.rule(buffer.tp.topic)
            if rule.to_columns is None:
                return self.handout.take_run(limit)
            raw = chunk.copy()
            records = self.handout.take_run(limit)
            cut = raw.cut(len(records))
            return DecodedPiece(records, cut, rule.to_columns)
        # Records that were lost while they waited are not in it.
        return chunk.cut(limit)

    def _handed_run(self, chunk: AcquiredCursor, first: int) -> Part:
        # Note that the records of a chunk from an offset on were handed out at once.
        end = chunk.next_offset
        part = Part(chunk.acquired, first, end)
        if end > first:
            self._last.append(part)
        self._settled = self.handout.mark = end
        return part

    # The order of reading

    def _find(self) -> _Buffer | None:
        # Find a chunk with records, and let the handout take from it.
        if (chunk := self._chunk) is not None:
            if chunk.can_hand_out:
                return chunk
            self._turn_over()
        ready = self.buffers.ready
        while ready:
            buffer = ready[0]
            is_open = bool(buffer.left) or self._open(buffer)
            if buffer.undeserialized is not None:
                self._undeserialized(buffer, buffer.undeserialized)
            elif is_open:
                self._begin(buffer)
                return buffer
            else:
                self.buffers.drop_if_empty(buffer)
        return None

    def _begin(self, buffer: _Buffer) -> None:
        if self._chunk is buffer and self.handout.cursor is buffer.chunk:
            return
        self._leave()
        chunk = _cursor_of(buffer)
        self._chunk = buffer
        self._begun_at = buffer.handed
        self.handout.cursor = chunk
        self._settled = self.handout.mark = chunk.next_offset

    def _leave(self) -> None:
        # Let the handout take no more of the chunk, which stays in its buffer.
        buffer = self._chunk
        if buffer is None:
            return
        self._chunk = self.handout.cursor = None
        if self.on_handed is not None and buffer.handed > self._begun_at:
            self.on_handed(buffer.tp, buffer.handed - self._begun_at)

    def _turn_over(self) -> None:
        # End the turn of a partition, after a chunk or a run of chunks.
        buffer = self._chunk
        if buffer is None:
            return
        self._leave()
        if not buffer.left:
            self.buffers.clear_chunk(buffer)
        ready = self.buffers.ready
        if ready and ready[0] is buffer:
            ready.rotate(-1)
        self.buffers.drop_if_empty(buffer)
        if not ready:
            self._on_change()  # the next round can be fetched

    def _close(self, buffer: _Buffer) -> None:
        if self._chunk is buffer:
            self._leave()
        self.buffers.clear_chunk(buffer)

    def _bring_forward(self, max_records: int) -> None:
        # Let a partition that has that many records be next, if there is one.
        self._turn_over()
        ready = self.buffers.ready
        for _ in range(len(ready)):
            if ready[0].at_hand >= max_records:
                return
            ready.rotate(-1)

    # Opening batches

    def _open(self, buffer: _Buffer) -> bool:
        # Open the next batch that has records for the user. False if no such batch is
        # here, or if the next one is being decompressed.
        while buffer.batches:
            batch, claim, _ = buffer.batches[0]
            if not self._is_sound(buffer, batch, claim.acquisition):
                continue
            try:
                chunk = self._chunk_of(buffer, batch, claim.acquisition)
            except (CorruptRecord, RecordTooLarge) as error:
                self._break(buffer, error)
                continue
            if buffer.is_aside:
                return False
            # Only now: a batch that is being decompressed stays the first.
            claim.acquisition.assign(batch.next_offset)
            self.buffers.pop_batch(buffer)
            if chunk is not None and chunk.remaining:
                buffer.open_chunk(chunk, batch.leader_epoch)
                return True
            self.buffers.clear_chunk(buffer)
        return False

    def _is_sound(
        self, buffer: _Buffer, batch: Batch, acquisition: Acquisition
    ) -> bool:
        # Now, and not on arrival: its bytes pass through the processor's cache once.
        # Nobody needs the batch if its records were lost, or released, meanwhile.
        if not acquisition.is_over:
            try:
                if self._checks_crcs:
                    batch.check_crc()
                _check_place(buffer, acquisition)
            except CorruptRecord as error:
                self._give_up(buffer, error, is_sound=False)
                return False
        return True

    def _chunk_of(
        self, buffer: _Buffer, batch: Batch, acquisition: Acquisition
    ) -> AcquiredCursor | None:
        # None if there are no records for the user, or not yet.
        if batch.is_control:
            acquisition.decide(batch.next_offset, GAP)
            return None
        if not acquisition.holds(batch.next_offset):
            return None
        if not self._preparation.is_ready(buffer):
            return None
        topic, partition = buffer.tp
        # Over the whole batch, from which the acquired records are chosen.
        cursor = batch.iterate(topic, partition)
        return AcquiredCursor(cursor, acquisition.ranges, acquisition.at)

    def _break(self, buffer: _Buffer, error: CorruptRecord | RecordTooLarge) -> None:
        # The first batch of a buffer cannot be decompressed or decoded.
        self._give_up(buffer, error, is_sound=self._checks_crcs)

    def _give_up(
        self,
        buffer: _Buffer,
        error: CorruptRecord | RecordTooLarge,
        *,
        is_sound: bool,
    ) -> None:
        # The records of a corrupt batch are rejected. One that is only too large for
        # this consumer is released: another member may have a larger limit.
        batch, claim, _ = buffer.batches[0]
        self.buffers.pop_batch(buffer)
        self.buffers.clear_chunk(buffer)
        acquisition = claim.acquisition
        unreadable(error, batch, buffer.tp, acquisition.at, is_sound=is_sound)
        end = batch.next_offset if is_sound else _end_of_unsound(buffer, acquisition)
        is_corrupt = isinstance(error, CorruptRecord)
        if acquisition.decide(end, REJECT if is_corrupt else RELEASE):
            self.failed(error)

    # Deserializing

    def _undeserialized(self, buffer: _Buffer, error: Exception) -> None:
        # The next record of a chunk cannot be deserialized. If the reason passes, it is
        # tried again while its lock is kept: to deliver it again and again would end in
        # its archive.
        buffer.undeserialized = None
        chunk = _cursor_of(buffer)
        record = next(chunk.copy(), None)
        if record is None:  # lost since
            chunk.skip(1)
            return
        if is_passing(error) and self._is_patient(buffer.tp, record.offset):
            self.deserialization.raised(buffer, error)
            return
        self._failing.pop(buffer.tp, None)
        rejects = isinstance(error, DeserializationError)
        decision = self._undeserializable if rejects else RELEASE
        chunk.skip(1)
        decide_between(chunk.acquired, record.offset, record.offset + 1, decision)
        self.failed(error)

    def _is_patient(self, tp: TopicPartition, offset: int) -> bool:
        moment = now()
        place, since = self._failing.get(tp, (offset, moment))
        if place != offset:
            since = moment
        self._failing[tp] = offset, since
        return moment - since < self._patience


def _cursor_of(buffer: _Buffer) -> AcquiredCursor:
    chunk = buffer.chunk
    assert isinstance(chunk, AcquiredCursor), "every chunk of this reader is one"
    return chunk


def _check_place(buffer: _Buffer, acquisition: Acquisition) -> None:
    # The checksum does not cover where a batch begins. One that claims to be behind its
    # place would make gaps of records that exist.
    if len(buffer.batches) < 2:
        return
    (batch, _, _), (following, claim, _) = buffer.batches[0], buffer.batches[1]
    if claim.acquisition is not acquisition or following.magic != 2:
        return
    if following.base_offset < batch.next_offset:
        raise CorruptRecord(
            f"the batch of offsets up to {batch.last_offset} stands before one that "
            f"begins at {following.base_offset}"
        )


def _end_of_unsound(buffer: _Buffer, acquisition: Acquisition) -> int:
    # Nothing in a corrupt batch is reliable, not even its end. The batch behind it says
    # where it begins.
    if buffer.batches:
        batch, claim, _ = buffer.batches[0]
        if claim.acquisition is acquisition:
            with suppress(CorruptRecord, RecordTooLarge):
                return batch.base_offset
    return END
