"""What partitions come and go, seen from the reader: group, fixed, or all of a topic.

`PartitionAssignment` is what the group member talks to. `GrouplessAssigner` stands in
for the group where topics are read without one: it assigns every partition, also those
that appear later. A partition that appears while we read is new, so it is read from its
start, whatever ``auto_offset_reset`` says: nothing written to it is missed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio

from kafkaio._machines.positions import Reset, ResetTo
from kafkaio._machines.refresh import ALL_TOPICS
from kafkaio._runtime.wakeup import Wakeup
from kafkaio.consumer.rebalance.callbacks import Callbacks
from kafkaio.consumer.rebalance.events import RebalanceFeed
from kafkaio.consumer.wanted import Wanted
from kafkaio.errors import KafkaError, PartitionLost, UsageError
from kafkaio.protocol.messages.metadata import MetadataRequest
from kafkaio.types import Record, TopicPartition

if TYPE_CHECKING:
    from kafkaio.consumer.core import Core

__all__ = ["GrouplessAssigner", "PartitionAssignment"]

_NOTHING: frozenset[TopicPartition] = frozenset()


class PartitionAssignment:
    """Carries out what happens to the assignment.

    Args:
        core: the consumer's inner works.
        callbacks: the user's.
    """

    def __init__(self, core: Core, callbacks: Callbacks) -> None:
        self.core = core
        self.callbacks = replace(callbacks, report=self._callback_failed)
        self._parting_failure: BaseException | None = None
        #: What listeners hear.
        self.feed = RebalanceFeed()
        #: Whether partitions were asked back or lost since the last poll returned.
        self.has_news = False
        # Lost before the last poll returned, which told of them; and since.
        self._lost_told: frozenset[TopicPartition] = _NOTHING
        self._lost_since: frozenset[TopicPartition] = _NOTHING
        # Whether the task that reads waits for a rewind: it takes no step meanwhile.
        self._is_user_waiting = False
        # Lost, and the user has heard neither of that nor of a new assignment.
        self._unheard: frozenset[TopicPartition] = _NOTHING
        # What the group assigned: it goes the group's way, whatever is wanted by now.
        self._of_group: frozenset[TopicPartition] = _NOTHING
        # And what it had assigned once: others may have been further since.
        self._given_back: frozenset[TopicPartition] = _NOTHING
        # What the group has still to get back of a subscription that has ended.
        self._parting: frozenset[TopicPartition] = _NOTHING
        # Without a group: what the topics subscribed to brought; and what went with
        # the subscription, which the user has not been told of.
        self._of_topics: frozenset[TopicPartition] = _NOTHING
        self._gone: frozenset[TopicPartition] = _NOTHING

    # What the user hears and says

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions assigned by the present subscription, or assigned fixed."""
        mine = frozenset(self.core.reader.positions)
        if not self._parting:
            return mine
        return mine - self._parting.difference(self.core.wanted.partitions or ())

    @property
    def to_be_revoked(self) -> frozenset[TopicPartition]:
        """Partitions that the user's next step gives up, unless they are held."""
        group = self.core.member
        return _NOTHING if group is None else group.next_to_go

    @property
    def lost_now(self) -> frozenset[TopicPartition]:
        """Partitions that the last poll told to be lost, or that were lost since."""
        return self._lost_told | self._lost_since

    def fence(self, partitions: Collection[TopicPartition]) -> None:
        """Refuse what this member may not commit: a broker would accept it.

        Raises:
            PartitionLost: a partition is not assigned to this member any more, or was
                lost and is assigned again, which the user cannot know of yet.
        """
        if not self._is_member:
            return
        ledger = self.core.reader.ledger
        group = self.core.member
        assert group is not None
        for tp in sorted(partitions):
            is_unheard = tp in self._unheard and not ledger.has_handed(tp)
            # What is lost leaves the ledger later: when the callback's turn has come.
            if tp not in ledger or is_unheard or tp in group.lost:
                raise _lost(tp, "is not assigned to this consumer any more")

    def fence_handed(self, partitions: Collection[TopicPartition]) -> None:
        """Refuse partitions of which nothing was handed out that may be committed.

        Raises:
            PartitionLost: a partition is not assigned to this member any more, or was
                lost and is assigned again, which the user cannot know of yet.
            UsageError: a partition is not assigned.
        """
        self.fence(partitions)
        for tp in sorted(partitions):
            if tp not in self.core.reader.ledger:
                if tp in self._given_back:
                    raise _lost(tp, "is not assigned to this consumer any more")
                raise UsageError(f"{tp.topic}-{tp.partition} is not assigned")

    def fence_lost(self, partitions: Collection[TopicPartition]) -> None:
        """Refuse what was lost, and not given up, before the consumer was closed.

        Raises:
            PartitionLost: a partition was lost since the last poll.
        """
        for tp in sorted(self.lost_now.intersection(partitions)):
            raise _lost(tp, "was lost before the consumer was closed")

    def fence_record(self, record: Record) -> None:
        """Refuse a record of an assignment by the group that has ended.

        Raises:
            PartitionLost: it was not handed out under the present assignment.
        """
        tp, ledger = record.topic_partition, self.core.reader.ledger
        is_of_old = (
            ledger.is_from_old_assignment(tp, record.offset)
            if self._is_member
            else tp in self._given_back and tp not in ledger
        )
        if is_of_old:
            raise _lost(tp, "was given back, or taken, since the record was read")

    @property
    def _is_member(self) -> bool:
        core = self.core
        return core.wanted.is_subscription and core.member is not None

    def delay(self, partitions: Collection[TopicPartition]) -> bool:
        """Keep the partitions through the next step; False if it is too late for some.

        Their records that were handed out are not finished by that step.
        """
        chosen = frozenset(TopicPartition(*tp) for tp in partitions)
        group = self.core.member
        if group is None:
            return not chosen
        late = group.delay(chosen)
        self.core.reader.ledger.keep((chosen & group.to_be_revoked) - late)
        return not late and not chosen & self.lost_now

    def step_taken(self, *, polls: bool) -> None:
        """The user asks for more: what it was told of, and has not delayed, may go.

        An iterator tells nothing: its step lets go whatever was asked for before.
        """
        if polls:
            self._lost_told = _NOTHING
        group = self.core.member
        if group is None or not group.to_be_revoked:
            return
        if not polls:
            group.told()
        group.step_taken()
        self.core.reader.ledger.keep(_NOTHING)

    def poll_ended(self) -> None:
        """A poll returns, and tells all news."""
        self.has_news = False
        self._lost_told, self._lost_since = self._lost_since, _NOTHING
        self._unheard = _NOTHING
        if self.core.member is not None:
            self.core.member.told()
            self.core.member.clear_lost()

    @contextmanager
    def rewinding(self) -> Iterator[None]:
        """The caller waits for a rewind; who reads in the same task, steps by that."""
        group = self.core.member
        assert group is not None  # else there is nothing to rewind
        if self._is_user_waiting or not self.core.reading.is_by_caller:
            yield
            return
        self._is_user_waiting = True
        try:
            group.release(self.idle(group.to_be_revoked))
            yield
        finally:
            self._is_user_waiting = False

    def part(self, owned: Collection[TopicPartition]) -> None:
        """The subscription ends: what the group assigned is about to be given up.

        It is not the user's any more, though commits of it go on until it is.
        """
        self._parting |= self._of_group.union(owned)

    # What the group coordinator calls

    def revoke_requested(
        self, partitions: frozenset[TopicPartition], deadline: float
    ) -> None:
        """Hand out and fetch no more of the partitions; wake a waiting poll."""
        self.has_news = True
        self.withhold(partitions)
        self.feed.requested(partitions, deadline)

    def withhold(self, partitions: frozenset[TopicPartition]) -> None:
        """Hand out and fetch no more of the partitions."""
        for tp in partitions:
            if tp in self.core.reader.positions:
                self.core.reader.revoke_requested(tp)

    def idle(self, partitions: frozenset[TopicPartition]) -> frozenset[TopicPartition]:
        """Those of the partitions that need no further step of the user.

        Whoever divides the records among several tasks knows them. Else they are all
        of them before the user has read anything. While an iterator waits for its
        next record, those whose records are finished: that is the step. A poll comes
        back, and a user who works will be back: their next step decides. One who waits
        for a rewind is done with what it was handed.
        """
        core, divider = self.core, self.core.reader.divider
        if divider is not None:
            return frozenset(filter(divider.may_go, partitions))
        if core.polls is None or self._is_user_waiting:
            return partitions
        if core.polls or not core.reading.is_on:
            return _NOTHING
        core.reader.sync()
        ledger = core.reader.ledger
        return frozenset(tp for tp in partitions if not ledger.has_unfinished({tp}))

    def failed(self, error: KafkaError) -> None:
        """Raise this where the user calls next."""
        self.core.reader.fail(error)

    async def revoking(self, partitions: frozenset[TopicPartition]) -> None:
        """The partitions are about to be given up: commit, tell the user, let go.

        Those that are lost during the commit are left to `lost`, and so are all if
        this takes too long and is cancelled.
        """
        core = self.core
        before = self._numbers()
        if core.auto_commits:
            await self._commit(partitions)
        after = self._numbers()
        left = frozenset(tp for tp in partitions if before.get(tp) == after.get(tp))
        await self.callbacks.revoked(left & set(core.reader.positions))
        self._let_go(left)
        self._assign_left_over()
        self.feed.revoked(left)

    async def lost(self, partitions: frozenset[TopicPartition]) -> None:
        """The partitions are gone."""
        mine = partitions & set(self.core.reader.positions)
        self.has_news = True
        self._lost_since |= mine
        self._unheard |= mine
        self._let_go(partitions)
        self._assign_left_over()
        self.feed.lost(mine)
        self.core.reader.tell()
        await self.callbacks.lost(mine)

    async def assigned(
        self, added: frozenset[TopicPartition], owned: frozenset[TopicPartition]
    ) -> None:
        """Partitions were added to the assignment, which now is ``owned``."""
        self._watch(owned)
        self._of_group |= added
        for tp in sorted(added):
            self.core.reader.assign(tp, has_commits=True)
        group = self.core.member
        if group is not None and (late := added & group.to_be_revoked):
            self.withhold(late)  # asked back while a callback held this up
        if self.callbacks.on_assigned or self.feed.is_heard:
            self._unheard -= added
        self.feed.assigned(added)
        await self.callbacks.assigned(added)

    async def left(self) -> None:
        """The consumer closes: what it still has is given up."""
        mine = frozenset(self.core.reader.positions)
        if self.core.wanted.is_subscription:
            await self.callbacks.revoked(mine)
            self.feed.revoked(mine)
        self._let_go(mine)

    # Without a group

    def assign_fixed(self, partitions: Collection[TopicPartition]) -> None:
        """Read exactly these partitions; those read already go on undisturbed.

        What the group has not got back yet is committed and given up first.
        """
        reader = self.core.reader
        kept = self._of_group.union(partitions)
        gone = frozenset(tp for tp in reader.positions if tp not in kept)
        added = [tp for tp in partitions if tp not in reader.positions]
        self._report(added, gone)
        self._gone |= gone & self._of_topics
        self._of_topics = _NOTHING
        self._let_go(gone)
        self._watch(partitions)
        for tp in partitions:
            if tp not in reader.positions:
                has_commits = self.core.committer is not None
                reader.assign(tp, has_commits=has_commits)

    async def assign_topics(
        self, partitions: Collection[TopicPartition], *, from_start: bool
    ) -> None:
        """Read these partitions, all of the topics wanted; no commits exist.

        Args:
            partitions: every partition there is.
            from_start: whether those added are new, and so are read from their start.
        """
        reader = self.core.reader
        gone = frozenset(tp for tp in reader.positions if tp not in partitions)
        added = frozenset(tp for tp in partitions if tp not in reader.positions)
        self._of_topics = frozenset(partitions)
        self._let_go(gone)
        for tp in sorted(added):
            reader.assign(tp, has_commits=False)
            if from_start:
                reader.seek_to(tp, Reset(ResetTo.EARLIEST))
        self._report(added, gone)
        self.feed.revoked(gone)
        self.feed.assigned(added)
        await self.callbacks.revoked(gone)
        await self.callbacks.assigned(added)

    def _report(
        self, added: Collection[TopicPartition], gone: Collection[TopicPartition]
    ) -> None:
        if added or gone:
            self.core.cluster.observer.assignment_changed(added, gone)

    async def tell_gone(self) -> None:
        """Tell the user of partitions that went with a subscription without a group."""
        gone, self._gone = self._gone, _NOTHING
        if gone:
            self.feed.revoked(gone)
            await self.callbacks.revoked(gone)

    def raise_parting_failure(self) -> None:
        """Raise what a callback raised while the consumer closed; once."""
        failure, self._parting_failure = self._parting_failure, None
        if failure is not None:
            raise failure

    def _callback_failed(self, error: BaseException) -> None:
        # It belongs to the user's next call, and while that closes there is no other.
        if self.core.state == "closing":
            self._parting_failure = self._parting_failure or error
        else:
            self.core.reader.fail(error)

    def _assign_left_over(self) -> None:
        # Fixed partitions may have had to wait until the group had them back.
        if self.core.wanted.partitions is not None:
            self.assign_fixed(self.core.wanted.partitions)

    def _numbers(self) -> Mapping[TopicPartition, int]:
        group = self.core.member
        return {} if group is None else group.assignment

    async def _commit(self, partitions: Collection[TopicPartition]) -> None:
        core = self.core
        timeout = core.config.default_api_timeout_ms / 1000
        try:
            await core.commit_finished(timeout, partitions)
        except KafkaError as error:
            # The partitions go whether that worked or not; their next owner reads
            # the records again. The user's callback can still try.
            core.cluster.observer.retrying("commit before revoke", 1, 0.0, error)
            core.cluster.observer.commit_failed(core.config.group_id or "", error)

    def _watch(self, partitions: Collection[TopicPartition]) -> None:
        names = {tp.topic for tp in partitions}
        self.core.cluster.watch_topics(self.core, names or None)

    def _let_go(self, partitions: Collection[TopicPartition]) -> None:
        core = self.core
        self._given_back |= self._of_group.intersection(partitions)
        self._of_group -= frozenset(partitions)
        self._parting -= frozenset(partitions)
        for tp in partitions:
            core.reader.unassign(tp)
            core.fetcher.forget(tp)
        if partitions:
            core.positions_changed()


def _lost(tp: TopicPartition, why: str) -> PartitionLost:
    return PartitionLost(f"{tp.topic}-{tp.partition} {why}")


class GrouplessAssigner:
    """Sees to it that what is wanted is there, and assigns it where there is no group.

    Topics are found out about and all their partitions assigned. Fixed partitions are
    assigned already: the user is told of those that the cluster does not have, or does
    not let us see.

    Args:
        host: carries it out.
    """

    def __init__(self, host: PartitionAssignment) -> None:
        self._host = host
        self._wakeup = Wakeup()
        # What was wanted when partitions were assigned last: what appears in it
        # afterwards is new.
        self._done_for: Wanted | None = None
        # A wait that ends when something else is wanted than this.
        self._wait: tuple[Wanted, anyio.CancelScope] | None = None

    def wake(self) -> None:
        """Look again: the wanted or the cluster changed."""
        self._wakeup.notify()
        if self._wait is not None and self._wait[0] != self._host.core.wanted:
            self._wait[1].cancel()

    def start_over(self) -> None:
        """What is wanted next is new, even if it was wanted before."""
        self._done_for = None

    async def run(self) -> None:
        """Assign what there is, whenever it changes."""
        core = self._host.core
        pause = core.config.retry_backoff_max_ms / 1000
        while True:
            await self._wakeup.wait()
            wanted = core.wanted
            try:
                await self.look(core.config.default_api_timeout_ms / 1000)
            except KafkaError as error:
                core.reader.fail(error)
                # The view that says so came with a wake-up of its own.
                with self._waiting(wanted):
                    await anyio.sleep(pause)
                self.wake()

    async def look(self, within: float) -> None:
        """Assign what there is now, once it is known.

        Raises:
            UnknownTopicOrPartition: a topic wanted by name, or a partition, is not
                there in time.
            AuthorizationError: a topic may not be described to us.
        """
        core = self._host.core
        await self._host.tell_gone()
        wanted = core.wanted
        if wanted.is_subscription and core.member is not None:
            self._done_for = None
            return
        is_new = self._done_for != wanted
        if is_new:
            with self._waiting(wanted) as scope:
                await self._discover(wanted, within)
            if scope.cancelled_caught or core.wanted != wanted:
                return  # whoever changed the wanted has woken us
            self._done_for = wanted
        if wanted.is_subscription:
            there = wanted.partitions_in(
                core.cluster.view, with_internal=not self._hides_internal
            )
            await self._host.assign_topics(there, from_start=not is_new)

    @contextmanager
    def _waiting(self, wanted: Wanted) -> Iterator[anyio.CancelScope]:
        # Whoever wants something else need not wait until this is found.
        with anyio.CancelScope() as scope:
            self._wait = wanted, scope
            try:
                yield scope
            finally:
                self._wait = None

    async def _discover(self, wanted: Wanted, within: float) -> None:
        core = self._host.core
        cluster = core.cluster
        if wanted.partitions is not None:
            await core.cluster.wait_for_partitions(wanted.partitions, within)
            return
        names = wanted.topics
        if wanted.pattern is not None:
            answer = await cluster.request(MetadataRequest(topics=None), timeout=within)
            names = frozenset(
                topic.name
                for topic in answer.topics
                if topic.name is not None
                and wanted.matches(topic.name)
                and not (topic.is_internal and self._hides_internal)
            )
        cluster.watch_topics(self._host.core, ALL_TOPICS if wanted.pattern else names)
        await cluster.wait_for_topics(names or (), within)

    @property
    def _hides_internal(self) -> bool:
        return self._host.core.config.exclude_internal_topics
