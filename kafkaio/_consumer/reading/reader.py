"""The reader: everything between the fetched batches and the user.

It combines the machines (positions, finished records) with the buffers. It is
synchronous: its caller waits, the reader never does. A record is taken and returned in
one step without an await in between, so a cancelled call has taken nothing.

There is a short path and a long path to the next record. On the short path iteration
takes records out of the handout, which calls `Reader._refill` for more. The long path
is a read by the core, which first handles errors, events and revocations. Everything
that the user must be informed of closes the short path until the next read
(`Reader.interrupt`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, TypeAlias

from kafkaio._config import ConsumerConfig
from kafkaio._consumer.batch import AnyBatch, Batch, Piece, TablePiece, end_of, size_of
from kafkaio._consumer.reading.buffers import Buffers, Fetched
from kafkaio._consumer.reading.chunks import Chunks, no_position
from kafkaio._consumer.reading.deserialization import Deserialization
from kafkaio._consumer.reading.deserializers import Deserialize, Rule
from kafkaio._consumer.reading.preparation import Spawn
from kafkaio._consumer.reading.progress import (
    HandedOut,
    HandoffPort,
    ReadProgress,
    Turn,
)
from kafkaio._consumer.wanted import ReadSelection
from kafkaio._machines.offsets import Commit, OffsetLedger
from kafkaio._machines.positions import Positions, Reset
from kafkaio._named_tuple import NamedTuple
from kafkaio._records._impl import accelerated
from kafkaio._records.batch import Handout
from kafkaio._runtime.clock import is_replaced, now
from kafkaio._runtime.time_slice import SLICE
from kafkaio.types import AnyRecord, OffsetAndMetadata, Record, TopicPartition

if TYPE_CHECKING:
    from kafkaio._consumer.reading.divider import DividerPort
    from kafkaio._records.raw import RawBatch

#: A partition, and the number of records taken by the end of a run of its records.
Run: TypeAlias = tuple[TopicPartition, int]


class Taken(NamedTuple):
    """Records that were taken.

    Attributes:
        records: the records.
        runs: consecutive records of one partition each, in order.
    """

    records: list[Record]
    runs: Sequence[Run]


class Reader:
    """The assigned partitions, their fetched records, and the user's positions.

    Args:
        config: the consumer's options.
        on_change: called when there may be something to fetch or to look up.
        on_news: called to wake a read that waits.

    Attributes:
        policy: the reset policy; None to raise for a missing offset.
        positions: the position of each partition.
        ledger: the records handed out, finished and committed.
        buffers: the records fetched and not handed out.
        wake_below: ``on_room`` is called once at most this many bytes are unread.
        on_room: called when there is room to fetch more.
        selected: the partitions that are read; None for all that are assigned.
        is_awaited: returns whether a read waits for records.
        allowance: returns how many records may be handed out before the event loop
            gets a turn; 0 if it should get one now.
        is_created_again: whether a partition's topic was deleted and created again.
        errors: errors of background tasks, to be raised; readable in any thread.
        deserialization: deserializes the records that are handed out here.
        deserialize: deserializes a record, or begins to; None if records stay as they
            are.
        handout: the source of records that are iterated over one by one.
    """

    def __init__(
        self,
        config: ConsumerConfig,
        *,
        on_change: Callable[[], None],
        on_news: Callable[[], None],
    ) -> None:
        self.policy: Reset | None = Reset.of(config.auto_offset_reset)
        self.positions: Positions = Positions(
            self.policy, Reset.of(config.auto_offset_reset_new_partitions)
        )
        self.is_created_again: Callable[[TopicPartition], bool] = lambda _: False
        self.ledger: OffsetLedger = OffsetLedger()
        self.buffers: Buffers = Buffers()
        self.wake_below: int = -1
        self.selected: frozenset[TopicPartition] | None = None
        self.is_awaited: Callable[[], bool] = lambda: False
        self.on_room: Callable[[], None] = lambda: None
        self.allowance: Callable[[], int] = lambda: 0
        self.errors: deque[BaseException] = deque()
        self._on_change = on_change
        self._on_news = on_news
        self.deserialization: Deserialization = Deserialization(
            config, self.buffers, self.interrupt, self.wake
        )
        self.deserialize: Deserialize | None = (
            self.deserialization.deserializers.deserialize
        )
        self.handout: Handout = self._handout(self._refill)
        self._progress = ReadProgress(self.positions, self.ledger, self.handout)
        self._chunks = Chunks(
            self.buffers,
            self.positions,
            self.ledger,
            self.handout,
            self._progress,
            self,
            self.deserialization,
            checks_crcs=config.check_crcs,
        )
        # Whether the next step must be a read by the core.
        self._is_interrupted = True

    @property
    def progress(self) -> int:
        """A number that grows whenever the user takes something, and only then."""
        return self._progress.count

    @property
    def is_divided(self) -> bool:
        """Whether several tasks read, each at its own pace."""
        return self._progress.divider is not None

    @property
    def divider(self) -> DividerPort | None:
        """Divides the records among several tasks; None while one task reads."""
        return self._progress.divider

    @divider.setter
    def divider(self, divider: DividerPort | None) -> None:
        self._progress.divider = divider

    def watch(self, on_begin: Callable[[TopicPartition], None] | None) -> None:
        """Call a function with a partition before records of it are taken.

        It is called once for each chunk, from the next record on.

        Args:
            on_begin: the function; None for no longer.
        """
        # The chunk being handed out would otherwise go on without a call.
        if on_begin is not None:
            self.set_aside()
        self._progress.on_begin = on_begin

    def prepare_with(self, spawn: Spawn) -> None:
        """Run what takes time in tasks; see `Preparation` and `Deserialization`."""
        self._chunks.preparation.spawn = self.deserialization.spawn = spawn

    def deserialize_as(self, wanted: ReadSelection) -> None:
        """Use the serdes of the topics of a selection, and the options for others."""
        deserializers = self.deserialization.deserializers
        if deserializers.use(wanted.typed_after(deserializers.topics)):
            self.deserialize = deserializers.deserialize
            self.handout.convert = self.deserialization.convert
            self._progress.interrupt()  # lanes take it over with their next step
            self.deserialization.start_over()

    def report_to(
        self, on_handed: Callable[[TopicPartition, int], None] | None
    ) -> None:
        """Call a function with a partition and a number of records that were taken.

        Args:
            on_handed: the function, which must not raise; None for no longer.
        """
        self._progress.on_handed = on_handed

    def hand_off_to(self, handoff: HandoffPort) -> None:
        """Hand the records that are taken on to another thread."""
        self._progress.handoff = handoff

    def interrupt(self) -> None:
        """Close the short path: the next step must be a read by the core."""
        self._is_interrupted = True
        # Without credit the compiled stream calls `_refill` before the next record.
        self.handout.credit = 0
        self._progress.interrupt()

    # Reports of background tasks

    def fail(self, error: BaseException) -> None:
        """Raise ``error`` from the next step, once. Repetitions are left out."""
        # By text: each partition or broker makes an object of its own for one cause.
        if all(repr(error) != repr(waiting) for waiting in self.errors):
            self.errors.append(error)
        self.wake()

    def wake(self) -> None:
        """Wake a read that waits, and make the next step a read by the core."""
        self.interrupt()
        self._on_news()

    def truncated(self, tp: TopicPartition) -> None:
        """Note that the log lost records of a partition that were handed out."""
        # To the divider this is a new assignment: the records that it has are of a log
        # that does not exist any more.
        if (divider := self._progress.divider) is not None:
            divider.assigned(tp)
            # The answer may come after a request for the partition, which still holds.
            if self.positions[tp].is_revoking:
                divider.revoke_requested(tp)
        self.wake()

    def add(self, tp: TopicPartition, fetched: Fetched) -> None:
        """Buffer records fetched from an assigned partition."""
        if fetched.batches:
            # A corrupt batch may have any offset: the position never goes back here.
            # The error is raised when it is the batch's turn.
            end = max(self.positions[tp].fetch_offset, fetched.batches[-1].next_offset)
            self.positions.fetched(tp, end)
        self.buffers.add(tp, fetched)
        self._on_news()

    # Decisions of the group and of the user

    def assign(
        self, tp: TopicPartition, *, has_commits: bool, is_new: bool = False
    ) -> int:
        """Begin a new assignment of a partition, and return its number."""
        self.unassign(tp)
        number = self.positions.assign(tp, has_commits=has_commits, is_new=is_new)
        self.ledger.open(tp, number)
        if (divider := self._progress.divider) is not None:
            divider.assigned(tp)
        self.interrupt()
        self._on_change()
        return number

    def unassign(self, tp: TopicPartition) -> None:
        """End a partition's assignment, and drop everything of it."""
        # The chunk is left before positions and ledger forget the partition: leaving it
        # brings both up to date.
        divider = self._progress.divider
        if divider is not None and tp in self.positions:
            divider.unassigned(tp)
        self._progress.leave_partition(tp)
        self.positions.unassign(tp)
        self.ledger.close(tp)
        self.buffers.forget(tp)
        self.deserialization.forget_partition(tp)

    def revoke_requested(self, tp: TopicPartition) -> None:
        """Stop reading and fetching a partition; offsets of it can be committed."""
        self._progress.leave_partition(tp)
        # Before the buffer is dropped: commits that follow may then include markers at
        # the end, without which the group keeps a lag.
        self._chunks.pass_over(tp)
        self.buffers.drop(tp)
        self.positions.revoke_requested(tp)
        if (divider := self._progress.divider) is not None:
            divider.revoke_requested(tp)
        self.wake()

    def pause(self, tp: TopicPartition) -> None:
        """Stop reading and fetching until `resume`; buffered records stay."""
        self._progress.leave_partition(tp)
        self.positions.pause(tp)
        self.buffers.pause(tp)
        self._on_change()

    def resume(self, tp: TopicPartition) -> None:
        """End a pause."""
        self.positions.resume(tp)
        self.buffers.resume(tp)
        self._on_change()
        self._on_news()

    def seek(self, tp: TopicPartition, offset: int, epoch: int = -1) -> None:
        """Read a partition from ``offset``; everything before it counts as finished."""
        # Leave first: it notes the records handed out at the old position.
        self._progress.leave_partition(tp)
        self.buffers.drop(tp)
        self.positions.seek(tp, offset, epoch)
        self.ledger.positioned(tp, offset, epoch, committed=False)
        self.interrupt()
        self._on_change()

    def seek_to(self, tp: TopicPartition, reset: Reset) -> None:
        """Look up a new position for a partition, in place of its present one."""
        self._progress.leave_partition(tp)
        self.buffers.drop(tp)
        self.positions.seek_to(tp, reset)
        self.ledger.unpositioned(tp)
        self.interrupt()
        self._on_change()

    def seek_to_committed(self, tp: TopicPartition) -> None:
        """Read a partition from its committed offset again, once that is looked up."""
        self._progress.leave_partition(tp)
        self.buffers.drop(tp)
        self.positions.seek_to_committed(tp)
        self.ledger.unpositioned(tp)
        self.interrupt()
        self._on_change()

    # Reading

    def check(self, among: Collection[TopicPartition] | None = None) -> None:
        """Raise errors that the user must get, and open the short path again.

        Args:
            among: the partitions to read; None for all. The position of another is
                missed by the read that asks for it.

        Raises:
            Exception: an error of a background task; each is raised once.
            OffsetOutOfRange: a partition has no position and no policy to find one;
                raised by every step until a seek. `LogTruncated` if the reason is that
                the log lost records that were read.
        """
        self.raise_errors()
        for tp in self.positions.without_offset():
            if among is None or tp in among:
                self.raise_without_position(tp)
        # With a divider every step is a read by the core.
        self._is_interrupted = self._progress.divider is not None

    def raise_errors(self, but: Callable[[BaseException], bool] | None = None) -> None:
        """Raise the first error of a background task, once.

        Args:
            but: selects errors that stay for a later step; None for none.
        """
        for error in self.errors:
            if but is None or not but(error):
                self.errors.remove(error)
                raise error

    def raise_without_position(self, tp: TopicPartition) -> None:
        """Raise if a partition has no position, and no policy finds one."""
        if tp in self.positions.without_offset():
            raise no_position(tp, self.positions[tp])

    @property
    def has_failed(self) -> bool:
        """Whether `check` would raise."""
        return bool(self.errors or self.positions.without_offset())

    def has_any(self) -> bool:
        """Whether there may be something to take or to raise."""
        return bool(self.buffers.ready or self.errors)

    def _refill(self) -> bool:
        # Called when the allowance or the chunk of the handout is used up. Returns
        # whether the short path can go on, after the steps that a read would take.
        if self._is_interrupted:
            return False
        handout = self.handout
        if handout.credit <= 0:
            allowance = self.allowance()
            if allowance <= 0:
                return False
            handout.grant(allowance, SLICE)
        cursor, chunk = handout.cursor, self._progress.turn.buffer
        if cursor is not None and chunk is not None:
            if cursor.remaining:
                return True
            # Asking for the next record finishes the last one of this chunk.
            handout.mark = cursor.next_offset
            self._chunks.turn_over(chunk)
        self.ledger.finish()
        return self._chunks.find()

    def turn(self, refill: Callable[[], bool]) -> Turn:
        """Return a turn for a lane; see `Handout` for ``refill``."""
        return Turn(self._handout(refill))

    def _handout(self, refill: Callable[[], bool]) -> Handout:
        # The compiled handout has a clock of its own, which costs less.
        clock = None if accelerated and not is_replaced() else now
        return Handout(refill, self.deserialization.convert, clock)

    def find_of(self, tp: TopicPartition, turn: Turn) -> bool:
        """Find records of a partition for a lane's turn; see `Chunks.find_of`."""
        return self._chunks.find_of(tp, turn)

    def step_of(self, tp: TopicPartition) -> None:
        """Finish the records handed out of a lane's partition: it asks for more."""
        self._progress.finish_lane(tp)
        self._progress.step_taken()

    def take_one(self) -> Record | None:
        """Take the next record; None if there is none now."""
        while self._chunks.find():
            self.handout.grant(max(1, self.allowance()), SLICE)
            # None if its deserializer has to be awaited, or raised: `find` goes on.
            if (record := self.handout.take()) is not None:
                return record
        return None

    def take(self, max_records: int) -> list[Record]:
        """Take the records that are there, partition by partition.

        Raises:
            Exception: the error that comes next, if there is no record before it.
        """
        return self.take_runs(max_records).records

    def take_runs(
        self, max_records: int, among: Collection[TopicPartition] | None = None
    ) -> Taken:
        """Take the records that are there, as `take`, and note whose they are.

        Args:
            max_records: most records.
            among: the partitions to read; None for all.

        Raises:
            Exception: the error that comes next, if there is no record before it.
        """
        taken: list[Record] = []
        runs: list[Run] = []
        while len(taken) < max_records:
            try:
                if not self._chunks.find(among, may_fail=not taken):
                    break
                chunk = self._progress.turn.buffer
                taken += self.handout.take_run(max_records - len(taken))
            except Exception:
                if taken:
                    break  # the next step raises it again, as it begins there
                raise
            assert chunk is not None
            runs.append((chunk.tp, len(taken)))
        # The next step must be a read, which finishes the records of this one.
        self.interrupt()
        return Taken(taken, runs)

    def is_ready(self, among: Collection[TopicPartition] | None) -> bool:
        """Whether there may be something of these partitions to take or to raise."""
        if among is None:
            return self.has_any() or bool(self.positions.without_offset())
        return bool(
            self.errors
            or any(buffer.tp in among for buffer in self.buffers.ready)
            or any(tp in among for tp in self.positions.without_offset())
        )

    def select(self, partitions: Collection[TopicPartition] | None) -> None:
        """Note which partitions are read: they are fetched before all others.

        Args:
            partitions: read from now on beside those that were named before; None for
                all that are assigned.
        """
        if partitions is None:
            if self.selected is not None:
                self.selected = None
                self._on_change()
        elif self.selected is None or not self.selected.issuperset(partitions):
            self.selected = (self.selected or frozenset()).union(partitions)
            self._on_change()

    def take_batch(
        self, max_records: int, *, prefer_full: bool = False
    ) -> AnyBatch | None:
        """Take records of one partition, as many as are there up to the limit.

        Args:
            max_records: the limit.
            prefer_full: take a partition that has that many, if there is one.

        Raises:
            Exception: the error that comes next.
        """
        if prefer_full:
            self._chunks.bring_forward(max_records)
        while self._chunks.find():
            buffer = self._progress.turn.buffer
            assert buffer is not None
            if run := [*self._chunks.run(buffer, max_records)]:
                self.interrupt()
                number = self.ledger.number(buffer.tp)
                pieces = [piece for piece, _ in run]
                frames = [frame for _, frame in run]
                number = -1 if number is None else number
                return Batch(buffer.tp, pieces, number, frames)
        return None

    def take_raw(self, most: int) -> list[RawBatch] | None:
        """Take a run of record batches as they were fetched; None without one now.

        Args:
            most: a run of so many bytes takes no further batch.

        Raises:
            Exception: the error that comes next.
        """
        return self._chunks.take_raw(most)

    def take_raw_here(
        self, ends: Mapping[TopicPartition, int] | None, most: int
    ) -> list[RawBatch] | None:
        """Take a run of record batches; None if that needs a read.

        Args:
            ends: as for `before`; None to read without an end.
            most: as for `take_raw`.
        """
        if self._is_interrupted or self.allowance() <= 0:
            return None
        self.ledger.finish()
        return self._chunks.take_raw_here(ends, most)

    def take_pieces(
        self, max_records: int
    ) -> Iterator[tuple[TopicPartition, TablePiece]]:
        """Take the records that are there of any partitions, chunk by chunk.

        It stops before a topic with other serdes than those of the records before.

        Raises:
            Exception: the error that comes next, if there is no record before it.
        """
        deserializers = self.deserialization.deserializers
        first: Rule | None = None
        left = max_records
        try:
            while left > 0 and self._chunks.find(may_fail=left == max_records):
                buffer = self._progress.turn.buffer
                assert buffer is not None
                # The columns of topics with other serdes may have other types.
                rule = deserializers.rule(buffer.tp.topic)
                if first is not None and rule is not first:
                    break
                first = rule
                for piece, _ in self._chunks.run_of_columns(buffer, left):
                    left -= size_of(piece)
                    yield buffer.tp, piece
        except Exception:
            if left == max_records:
                raise
            # The next step raises it again, as it begins there.
        self.interrupt()

    def take_of(
        self, tp: TopicPartition, limit: int, *, raw: bool, may_fail: bool = True
    ) -> Piece | None:
        """Take records of one partition; see `Chunks.take_of`."""
        return self._chunks.take_of(tp, limit, raw=raw, may_fail=may_fail)

    def pass_over(self, tp: TopicPartition, offset: int) -> None:
        """Count the records of a partition before ``offset`` as handed out.

        The caller hands out something else in their place, which is finished in the
        same way.
        """
        self._progress.leave_partition(tp)
        self.buffers.drop(tp)
        position = self.positions[tp]
        self.positions.fetched(tp, max(offset, position.fetch_offset))
        self.positions.advance(tp, offset, -1)
        self.positions.fetch_again(tp)
        self.ledger.handed(tp, offset)
        self._on_change()

    def before(
        self, ends: Mapping[TopicPartition, int]
    ) -> AbstractContextManager[None]:
        """Hand out no record from an end on; see `Chunks.before`."""
        return self._chunks.before(ends)

    def begin_again_if_beyond(self, tp: TopicPartition, end: int) -> None:
        """Fetch a partition again if its open chunk may have records from an end on."""
        buffer = self.buffers.get(tp)
        if buffer is not None and buffer.left:
            entry = self.positions[tp]
            if entry.position < end < entry.fetch_offset:
                self.seek(tp, entry.position, entry.position_epoch)

    def take_here(self, cursor: object) -> AnyRecord | None:
        """Take the next record of a chunk; None if that needs a read.

        Args:
            cursor: that of the chunk which the last read has opened.
        """
        handout = self.handout
        is_there = cursor is not None and handout.cursor is cursor
        if not is_there or handout.credit <= 0 or self._is_interrupted:
            return None
        assert handout.cursor is not None
        return handout.take() if handout.cursor.remaining else None

    def set_aside(self) -> None:
        """Leave the chunks of all handouts, so that positions and ledger are exact."""
        self._progress.leave_all()
        self.interrupt()

    def take_back(self, *partitions: TopicPartition) -> None:
        """Hand out unfinished records of these or of all partitions again."""
        for tp in partitions or tuple(self.positions):
            self._progress.leave_partition(tp)
            if (place := self.ledger.unfinished_from(tp)) is not None:
                self.seek(tp, place.offset, place.leader_epoch)

    # Finished records

    def sync(self, tp: TopicPartition | None = None) -> None:
        """Bring the machines up to date; see `ReadProgress.sync`."""
        self._progress.sync(tp)

    def finish(self, partitions: Collection[TopicPartition] | None = None) -> None:
        """Finish everything that was handed out, of these or of all partitions."""
        self._progress.finish(partitions)

    def acknowledge(
        self,
        partitions: Collection[TopicPartition] | None = None,
        mark: HandedOut | None = None,
    ) -> None:
        """Finish records that were handed out; see `ReadProgress.acknowledge`."""
        self._progress.acknowledge(partitions, mark)

    def committed(self, commit: Commit) -> None:
        """Note that a commit succeeded."""
        progress = self._progress
        progress.sync()
        self.ledger.committed(commit)
        if (divider := progress.divider) is not None:
            divider.committed()

    def place_after(self, what: AnyRecord | AnyBatch) -> OffsetAndMetadata:
        """Return where reading goes on if a record or a batch was the last of all."""
        self.sync(what.topic_partition)
        self._chunks.pass_over(what.topic_partition)
        return self.ledger.after(what.topic_partition, end_of(what))

    def position(self, tp: TopicPartition) -> int | None:
        """Return the user's position in a partition; see `ReadProgress.position`."""
        return self._progress.position(tp)

    def read_now(self) -> Collection[TopicPartition]:
        """Return the partitions that the last step may have handed out records of."""
        return self._progress.read_now()

    # Notifications about chunks (`ChunkListenerPort`)

    def made_room(self) -> None:
        """Wake the fetcher if it waits for room and there is some."""
        if self.buffers.unread <= self.wake_below:
            self.wake_below = -1
            self.on_room()

    def fetch_more(self) -> None:
        """Note that a partition can be fetched again."""
        self._on_change()

    def reset_position(self, tp: TopicPartition) -> None:
        """Apply the reset policy: the position of a partition is outside the log."""
        self._progress.leave_partition(tp)
        self._reset_position(tp, is_new=self.is_created_again(tp))
        self.wake()

    def created_again(self, tp: TopicPartition) -> None:
        """Find another position: the topic was deleted and created again."""
        self._progress.leave_partition(tp)
        self.buffers.drop(tp)
        self._reset_position(tp, is_new=True)
        self.truncated(tp)

    def _reset_position(self, tp: TopicPartition, *, is_new: bool) -> None:
        self.positions.out_of_range(tp, self.positions[tp].token, is_new=is_new)
        self.ledger.unpositioned(tp)
        self._on_change()
