"""The consumer's side of transactions: exactly once.

A transaction of a producer commits the offsets of the consumed records together with
the produced records. The producer sends the requests, and knows the consumer by the
ports of `kafkaio._transactional`. Nothing here imports the producer (ADR 21).

`TransactionOffsets` are offsets for one commit. They are fenced as plain commits are:
by a `Fence` before each request, and by the member's identity.

`JoinedTransaction` is a transaction that works on the consumer's records. From the
first record of a partition until the end of the transaction it holds the partition, so
a requested revocation waits, up to the group's deadline. There are two ways to end:

- *Committed* (`end`): the partitions are let go. If the revocation of one was
  requested, and all of it is committed, it is released without a further call of the
  user.
- *Aborted* (`rewind`): all records that were handed out must be handed out again.
  Partitions whose revocation was requested are released at once, and their next owner
  reads them from the committed offset. The positioner looks the others up again, as
  after an assignment, and nothing of them can be read before. Where nothing is
  committed, reading begins where the transaction began. So it does after a seek, or a
  reset of a position outside the log, if nothing was committed since: the committed
  offset may be far before or after it, and a reset to the end would skip the records of
  the transaction.

With ``io_thread`` the consumer lives in the I/O thread, and the transaction in the
user's. `JoinedAcross`, and `TransactionOffsets` with a ``thread``, cross by one
blocking turn of the I/O thread's loop, which no code of the user's can delay.
"""

from __future__ import annotations

from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Mapping,
)
from functools import partial
from typing import Any, Protocol, TypeVar
from uuid import UUID

from kafkaio._consumer.reading.progress import HandedOut
from kafkaio._consumer.reading.reader import Reader
from kafkaio._machines.membership.fence import Fence
from kafkaio._machines.membership.ledger import Claim
from kafkaio._machines.offsets import Commit
from kafkaio._machines.transaction_holds import TransactionHolds
from kafkaio._runtime.caller import caller, refer
from kafkaio._runtime.clock import now
from kafkaio.errors import KafkaError, PartitionLost, UsageError
from kafkaio.types import GroupMetadata, OffsetAndMetadata, TopicPartition

T = TypeVar("T")


class HoldingMemberPort(Protocol):
    """The group member whose partitions a transaction holds."""

    @property
    def assignment(self) -> Mapping[TopicPartition, int]:
        """Every partition owned now, with the number of its assignment."""
        ...

    @property
    def to_be_revoked(self) -> frozenset[TopicPartition]:
        """Partitions whose revocation is requested and that are still owned."""
        ...

    def hold(self, claims: Collection[Claim]) -> tuple[Claim, ...]:
        """Hold these assignments; returns those that are held."""
        ...

    def unhold(self, claims: Collection[Claim]) -> None:
        """End one hold of each of these."""

    def release(self, partitions: frozenset[TopicPartition]) -> None:
        """Let these be revoked without a further step of the user."""


class JoinableConsumerPort(Protocol):
    """The consumer, as a transaction needs it.

    Attributes:
        reader: the part that hands out records.
    """

    reader: Reader

    def identity(self) -> GroupMetadata:
        """Return the group and the member's place in it, as they are now."""
        ...

    @property
    def is_fenced(self) -> bool:
        """Whether the group decides what this consumer may commit."""
        ...

    def fence(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> Fence | None:
        """Return the fence of a commit of offsets; None checks none."""
        ...

    def topic_ids(self, topics: Iterable[str]) -> dict[str, UUID]:
        """Return the ids of topics in the client's metadata, as far as known."""
        ...

    def lacks(self, partitions: Collection[TopicPartition]) -> bool:
        """Whether metadata lacks partitions that a coordinator does not know."""
        ...

    def commit_again(self, code: int, identity: GroupMetadata) -> bool:
        """Whether to commit again after a refusal of that identity."""
        ...

    def committed_in_transaction(self, commit: Commit, seconds: float) -> None:
        """Note that a transaction has committed offsets."""

    @property
    def transaction_member(self) -> HoldingMemberPort | None:
        """The member whose group decides what is read; None without a subscription."""
        ...

    @property
    def may_rewind(self) -> bool:
        """Whether anything can be read after a rewind."""
        ...

    def transaction_left(self) -> None:
        """Note that the transaction has ended."""

    def begin_again(
        self, places: Mapping[TopicPartition, OffsetAndMetadata], *, is_unknown: bool
    ) -> None:
        """Read partitions from their committed offsets, or from these places.

        Args:
            places: where the transaction began to read them.
            is_unknown: whether the transaction may have committed offsets.
        """

    async def wait_until_placed(self, partitions: Collection[TopicPartition]) -> None:
        """Wait until the committed offsets of partitions are looked up."""


class ThreadPort(Protocol):
    """Runs functions in the I/O thread."""

    def ask(self, work: Callable[[], T]) -> T:
        """Call a function there, and block until it has returned."""
        ...

    def call(self, work: Callable[[], Awaitable[T]]) -> Coroutine[Any, Any, T]:
        """Call a coroutine function there, and wait for it."""
        ...


class TransactionOffsets:
    """Offsets that a transaction commits; a `GroupOffsetsPort`.

    Args:
        commit: the offsets: some.
        port: the consumer.
        topic_ids: the ids that topics had when their records were handed out; None for
            those of now.

    Attributes:
        offsets: offsets of the next records to read.
        topic_ids: the ids of topics; those that are not known are left out.
        is_fenced: whether the consumer is subscribed.
        thread: where the consumer lives; None for the thread of the transaction.

    Raises:
        PartitionLost: a partition is not assigned.
    """

    def __init__(
        self,
        commit: Commit,
        port: JoinableConsumerPort,
        topic_ids: Mapping[str, UUID] | None = None,
    ) -> None:
        self._commit = commit
        self._port = port
        self._made_at = now()
        # Made with the offsets: an assignment that begins later is not theirs.
        self._fence = port.fence(commit.offsets)
        self.offsets: Mapping[TopicPartition, OffsetAndMetadata] = commit.offsets
        if topic_ids is None:
            topic_ids = port.topic_ids({tp.topic for tp in commit.offsets})
        self.topic_ids: Mapping[str, UUID] = topic_ids
        self.is_fenced: bool = port.is_fenced
        self.thread: ThreadPort | None = None

    def __repr__(self) -> str:
        return f"<TransactionOffsets {dict(self.offsets)}>"

    def _ask(self, work: Callable[[], T]) -> T:
        return work() if self.thread is None else self.thread.ask(work)

    def identity(self) -> GroupMetadata:
        """Return the group and the member's place in it, as they are now."""
        return self._ask(self._port.identity)

    def check(self) -> None:
        """Raise PartitionLost if an assignment of the offsets has ended."""
        if self._fence is not None:
            self._ask(self._fence.check)

    def lacks(self, partitions: Collection[TopicPartition]) -> bool:
        """Whether the consumer's metadata, too, lacks one of these partitions.

        It lacks those of a topic that was deleted and made again, too.
        """
        return self._ask(partial(self._lacks, partitions))

    def _lacks(self, partitions: Collection[TopicPartition]) -> bool:
        # First, because it requests newer metadata.
        if self._port.lacks(partitions):
            return True
        now_known = self._port.topic_ids({tp.topic for tp in partitions})
        return any(
            before != now_known.get(topic, before)
            for topic, before in self.topic_ids.items()
        )

    def refused(self, code: int, identity: GroupMetadata) -> bool:
        """Whether to commit again: the member has, or will get, another place."""
        return self._ask(partial(self._port.commit_again, code, identity))

    def committed(self) -> None:
        """Note that the transaction has committed the offsets."""
        self._ask(self._committed)

    def _committed(self) -> None:
        self._port.committed_in_transaction(self._commit, now() - self._made_at)


class JoinedTransaction:
    """A transaction at work; a `JoinedConsumerPort`.

    Records that were handed out before and are not finished belong to it, too: the
    program may work on them within the transaction.

    Args:
        port: the consumer.
        on_revoke: called when a partition is to be revoked, also within this call.
        on_lost: called when a partition was lost, also within this call.
    """

    def __init__(
        self,
        port: JoinableConsumerPort,
        on_revoke: Callable[[], None],
        on_lost: Callable[[KafkaError], None],
    ) -> None:
        self._port = port
        self._reader = port.reader
        # The member at the beginning, whose holds these are.
        self._member = port.transaction_member
        self._on_revoke = on_revoke
        self._on_lost = on_lost
        self._task = refer(caller())
        self._holds = TransactionHolds()
        # The ids of topics at the first record that was taken. A topic that is made
        # again before the commit has another one, and its offsets are refused.
        self._topic_ids: dict[str, UUID] = {}
        self._has_ended = False
        reader = self._reader
        reader.sync()
        going = self._going()
        for tp in [*reader.ledger.unfinished]:
            place = reader.ledger.unfinished_from(tp)
            if place is not None and tp not in going:
                self._hold(tp, place)
        reader.watch(self._begin)

    def __repr__(self) -> str:
        return f"<JoinedTransaction {sorted(self._holds.partitions)}>"

    def _begin(self, tp: TopicPartition) -> None:
        # Called before records are taken, once per chunk. A partition that was lost may
        # be assigned again, and has to be read again from there after an abort.
        if self._claim(tp) not in self._holds:
            at = self._reader.positions[tp]
            epoch = at.position_epoch
            self._hold(tp, OffsetAndMetadata(at.position, leader_epoch=epoch))

    def _claim(self, tp: TopicPartition) -> Claim:
        if self._member is not None:
            return Claim(tp, self._member.assignment.get(tp, -1))
        positions = self._reader.positions
        return Claim(tp, positions[tp].number if tp in positions else -1)

    def _hold(self, tp: TopicPartition, place: OffsetAndMetadata) -> None:
        claim = self._claim(tp)
        self._holds.add(claim, place)
        if tp.topic not in self._topic_ids:
            self._topic_ids |= self._port.topic_ids((tp.topic,))
        if self._member is not None:
            self._member.hold((claim,))
        self.update()

    def _numbers(self) -> Mapping[TopicPartition, int]:
        if self._member is not None:
            return self._member.assignment
        reader = self._reader
        return {tp: reader.positions[tp].number for tp in reader.positions}

    def _pending(self) -> frozenset[TopicPartition]:
        return frozenset() if self._member is None else self._member.to_be_revoked

    def _going(self) -> frozenset[TopicPartition]:
        """Partitions on their way out, of whose records none will be worked on.

        Where several tasks divide the records, those that were handed out and not begun
        are left to the next owner. Held, such a partition would end each transaction as
        it begins, for as long as its release takes: a callback, or a deadline.
        """
        pending, divider = self._pending(), self._reader.divider
        if divider is None or not pending:
            return frozenset()
        return frozenset(filter(divider.may_go, pending))

    def update(self) -> None:
        """Report requested revocations and losses of its partitions."""
        changes = self._holds.update(self._numbers(), self._pending())
        if changes.requested:
            self._on_revoke()
        if changes.lost:
            self._on_lost(self._lost())

    def _lost(self) -> PartitionLost:
        names = ", ".join(
            f"{tp.topic}-{tp.partition}" for tp in sorted(self._holds.lost)
        )
        return PartitionLost(
            f"lost while a transaction worked on their records: {names}"
        )

    def check_plain_commit(self, partitions: Collection[TopicPartition]) -> None:
        """Check a commit that is not the transaction's.

        Raises:
            UsageError: the transaction works on one of the partitions.
        """
        for tp in sorted(self._holds.partitions.intersection(partitions)):
            raise UsageError(
                f"a transaction works on records of {tp.topic}-{tp.partition}, and "
                "commits their offsets: call Transaction.commit_offsets, or nothing"
            )

    def left(self, task: object) -> None:
        """Hold nothing any longer if that task began this: it closes the consumer."""
        # Closing waits for holds, and would wait for its own task's forever.
        if self._task() is task and self._member is not None and not self._has_ended:
            self._member.unhold(self._holds.claims)
            self._member = None

    def handed_out(self, mark: HandedOut | None = None) -> TransactionOffsets | None:
        """Return the offsets of records handed out and not committed; None for none.

        Args:
            mark: the moment of the call, if the user is in another thread.

        Raises:
            PartitionLost: an assignment of it has ended.
        """
        if self._has_ended:
            return None
        self.update()
        if self._holds.lost:
            raise self._lost()
        reader, partitions = self._reader, self._holds.partitions
        reader.acknowledge(partitions, mark)
        reader.sync()
        commit = reader.ledger.finished(partitions)
        if not commit.offsets:
            return None
        return TransactionOffsets(commit, self._port, self._topic_ids)

    def end(self) -> None:
        """Let go of the partitions. May be called again."""
        if self._has_ended:
            return
        reader, going = self._reader, self._pending() & self._holds.partitions
        reader.sync()
        ledger = reader.ledger
        self._leave(
            frozenset(tp for tp in going if not ledger.has_unfinished({tp})),
        )

    async def rewind(self, *, is_unknown: bool = False) -> None:
        """Go back to the committed offsets, drop fetched records, and let go.

        If the call is cancelled, the consumer goes back all the same.
        """
        if self._has_ended:
            return
        self.update()
        reader, going = self._reader, self._pending() & self._holds.partitions
        reader.sync()
        places = {
            tp: at for tp, at in self._holds.kept().items() if tp in reader.positions
        }
        back = {tp: at for tp, at in places.items() if tp not in going}
        for tp in going & places.keys():
            # A commit in the user's callback must not take the records for done.
            reader.seek(tp, places[tp].offset, places[tp].leader_epoch)
        if self._port.may_rewind:
            self._port.begin_again(back, is_unknown=is_unknown)
        self._leave(going)
        # The first wait of the call: one that is cancelled has gone back all the same.
        await self._port.wait_until_placed(back)

    def _leave(self, done: frozenset[TopicPartition]) -> None:
        self._has_ended = True
        self._reader.watch(None)
        self._port.transaction_left()
        member, claims = self._member, self._holds.claims
        if member is not None:
            if done:
                member.release(done)
            if claims:
                member.unhold(claims)


class JoinedAcross:
    """`JoinedTransaction` of a consumer with an I/O thread.

    Args:
        inside: the transaction.
        thread: where it lives.
        mark: returns how much the user was handed by now; for the user's thread.
        settle: returns records to the reader that the user has not taken; for the I/O
            thread.
    """

    def __init__(
        self,
        inside: JoinedTransaction,
        thread: ThreadPort,
        mark: Callable[[], HandedOut],
        settle: Callable[[], None],
    ) -> None:
        self._inside = inside
        self._thread = thread
        self._mark = mark
        self._settle = settle

    def handed_out(self) -> TransactionOffsets | None:
        """Return the offsets of records handed out and not committed; None for none."""
        found = self._thread.ask(partial(self._inside.handed_out, self._mark()))
        if found is not None:
            found.thread = self._thread
        return found

    def end(self) -> None:
        """Let go of the partitions. May be called again."""
        self._thread.ask(self._inside.end)

    async def rewind(self, *, is_unknown: bool = False) -> None:
        """Go back to the committed offsets, drop fetched records, and let go."""

        async def work() -> None:
            self._settle()
            await self._inside.rewind(is_unknown=is_unknown)

        await self._thread.call(work)
