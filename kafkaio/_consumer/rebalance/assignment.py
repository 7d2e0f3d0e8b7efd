"""The consumer's partitions: changes of the assignment by the group or the user.

Who decides. A group member decides which partitions are assigned, and calls
`PartitionAssignment` as its `AssignmentPort`. Fixed partitions are assigned by the
user (`PartitionAssignment.assign_fixed`). Topics that are read without a group are
assigned by `GrouplessAssigner`. Partitions that the group assigned are given back to
the group in its own time, whatever the user subscribes to meanwhile.

How a partition is revoked. The stages of one assignment, with their order, stand in
`kafkaio._machines.membership.ledger`; here they meet the reader and the user:

1. *Requested*: `revoke_requested` stops handing out and fetching records of it, and
   wakes a poll that waits. Commits of it are accepted until it is released.
2. *Reported*: a poll that returns reports it (`poll_ended`); an iterator has nothing to
   report by, so its next step counts as the report.
3. *Ready*: the user's next step (`step_taken`) releases the partition, because it shows
   that the user is done with the records that it was handed; unless the user delays it
   (`delay`). Partitions of which nothing is being worked on need no step: `idle` names
   them. A hold keeps a partition in this stage.
4. *Completing*: `revoking` commits finished records, waits for commits on their way
   (`Core.settle_commits` bounds both), calls the user's callback, and drops the
   partition. Then another member may have it.

If this takes longer than the group allows, or the group went on without this member,
the partition is *lost* at any of these stages. Another member may have it already. The
reader drops it when the user's callbacks before it have returned; until then
`ConsumerMember.lost` names it, so that no commit of it is sent.

Invariants: a partition that is released or lost is dropped from the reader before its
event is delivered. `assignment` never contains a partition of a subscription that has
ended, though the reader keeps it until it is released.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from kafkaio._client.cluster import Cluster
from kafkaio._config import ConsumerConfig
from kafkaio._consumer.group.member import ConsumerMember
from kafkaio._consumer.reading.exclusive import ExclusiveReading
from kafkaio._consumer.reading.reader import Reader
from kafkaio._consumer.rebalance.callbacks import Callbacks
from kafkaio._consumer.rebalance.feed import RebalanceFeed
from kafkaio._consumer.wanted import ReadSelection
from kafkaio._dataclass import replace
from kafkaio._machines.refresh import Topics
from kafkaio.errors import KafkaError
from kafkaio.types import TopicPartition

_NOTHING: frozenset[TopicPartition] = frozenset()


class ConsumerPort(Protocol):
    """The consumer, for its assignment."""

    @property
    def wanted(self) -> ReadSelection:
        """The selection of the user."""
        ...

    @property
    def state(self) -> str:
        """The state of its life."""
        ...

    @property
    def polls(self) -> bool | None:
        """Whether the user polled when it read last: None before it ever read."""
        ...

    @property
    def reading(self) -> ExclusiveReading:
        """Whether a task waits for records now, and which one."""
        ...

    async def settle_commits(
        self, partitions: Collection[TopicPartition], due: float | None
    ) -> None:
        """Commit finished records of these, and end commits on their way.

        Args:
            partitions: which ones.
            due: when they are lost; None for never.
        """
        ...

    def positions_changed(self) -> None:
        """Wake the calls that wait for positions: some were dropped."""
        ...

    def assignment_changed(self) -> None:
        """Have an open transaction check which partitions were requested or lost."""


class PartitionAssignment:
    """Carries out changes of the assignment, and reports them to the user.

    Args:
        consumer: settles commits, and has the selection.
        reader: hands the records out.
        cluster: keeps metadata of the topics fresh.
        config: the consumer's options.
        callbacks: the user's callbacks.
        forget: called with each partition that was dropped, to stop fetching it.
    """

    def __init__(
        self,
        consumer: ConsumerPort,
        reader: Reader,
        cluster: Cluster,
        config: ConsumerConfig,
        callbacks: Callbacks,
        forget: Callable[[TopicPartition], None],
    ) -> None:
        self.consumer = consumer
        self.reader = reader
        self.callbacks: Callbacks = replace(callbacks, report=self._callback_failed)
        self._cluster = cluster
        self._config = config
        self._forget = forget
        self._member: ConsumerMember | None = None
        self._close_failure: BaseException | None = None
        #: Delivers the events of `Consumer.rebalances`.
        self.feed: RebalanceFeed = RebalanceFeed()
        #: Whether partitions were requested or lost since the last poll returned.
        self.has_news: bool = False
        # Lost before the last poll returned, which reported it; and lost since then.
        self._lost_reported: frozenset[TopicPartition] = _NOTHING
        self._lost_since: frozenset[TopicPartition] = _NOTHING
        # Whether the task that reads waits for a rewind: it takes no step meanwhile.
        self._is_user_waiting = False
        #: Partitions that were lost, while neither the loss nor a later assignment was
        #: reported to the user.
        self.unreported: frozenset[TopicPartition] = _NOTHING
        # Partitions that the group has assigned: they are given back to the group,
        # whatever is wanted by now.
        self._of_group: frozenset[TopicPartition] = _NOTHING
        #: Partitions that the group had assigned once: others may have read them
        #: further since.
        self.given_back: frozenset[TopicPartition] = _NOTHING
        # Partitions of an ended subscription that the group has still to get back.
        self._unsubscribed: frozenset[TopicPartition] = _NOTHING

    def attach(self, member: ConsumerMember) -> None:
        """Take part in a group by this member."""
        self._member = member
        self.feed.attach(member)

    # ---- the user --------------------------------------------------------------------

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions assigned by the present subscription, or assigned fixed."""
        mine = frozenset(self.reader.positions)
        if not self._unsubscribed:
            return mine
        return mine - self._unsubscribed.difference(
            self.consumer.wanted.partitions or ()
        )

    @property
    def is_member(self) -> bool:
        """Whether the consumer is subscribed as a member of a group."""
        return self.consumer.wanted.is_subscription and self._member is not None

    @property
    def to_be_revoked(self) -> frozenset[TopicPartition]:
        """Partitions that the user's next step releases, unless they are held."""
        return _NOTHING if self._member is None else self._member.next_to_go

    @property
    def lost_now(self) -> frozenset[TopicPartition]:
        """Partitions that the last poll reported as lost, or that were lost since."""
        return self._lost_reported | self._lost_since

    @property
    def lost_before_callback(self) -> frozenset[TopicPartition]:
        """Partitions that were lost, also while the callback for that still waits.

        They leave the reader only when all callbacks before it have returned.
        """
        return _NOTHING if self._member is None else self._member.lost

    def delay(self, partitions: Collection[TopicPartition]) -> bool:
        """Keep the partitions through the next step; False if that is late for some.

        Their records that were handed out are not finished by that step.
        """
        chosen = frozenset(TopicPartition(*tp) for tp in partitions)
        member = self._member
        if member is None:
            return not chosen
        late = member.delay(chosen)
        self.reader.ledger.keep((chosen & member.to_be_revoked) - late)
        return not late and not chosen & self.lost_now

    def step_taken(self, *, polls: bool) -> None:
        """The user asks for more records: this makes reported partitions ready.

        Args:
            polls: whether it asks by a poll, which reports requests when it returns.
                An iterator does not report: what was requested before its step counts
                as reported.
        """
        if polls:
            self._lost_reported = _NOTHING
        member = self._member
        if member is None or not member.to_be_revoked:
            return
        if not polls:
            member.reported()
        member.step_taken()
        self.reader.ledger.keep(_NOTHING)

    def poll_ended(self) -> None:
        """A poll returns, and with it reports everything that happened before."""
        self.has_news = False
        self._lost_reported, self._lost_since = self._lost_since, _NOTHING
        self.unreported = _NOTHING
        if self._member is not None:
            self._member.reported()
            self._member.clear_lost()

    @contextmanager
    def rewinding(self) -> Iterator[None]:
        """The caller waits for a rewind; in the task that reads, that is a step."""
        member = self._member
        assert member is not None  # otherwise there is nothing to rewind
        if self._is_user_waiting or not self.consumer.reading.is_by_caller:
            yield
            return
        self._is_user_waiting = True
        try:
            member.release(self.idle(member.to_be_revoked))
            yield
        finally:
            self._is_user_waiting = False

    def unsubscribed(self, owned: Collection[TopicPartition]) -> None:
        """Note the end of the subscription: its partitions will be released.

        It no longer belongs to `assignment`. Commits of it are accepted until it is
        released.

        Args:
            owned: the partitions of the group member.
        """
        self._unsubscribed |= self._of_group.union(owned)

    def raise_close_failure(self) -> None:
        """Raise, once, the error of a callback while the consumer closed."""
        failure, self._close_failure = self._close_failure, None
        if failure is not None:
            raise failure

    # ---- calls of the group member ---------------------------------------------------

    def revoke_requested(
        self, partitions: frozenset[TopicPartition], deadline: float
    ) -> None:
        """Stop handing out and fetching the partitions; wake a poll that waits."""
        self.has_news = True
        self.stop_handing_out(partitions)
        self.feed.requested(partitions, deadline)

    def stop_handing_out(self, partitions: frozenset[TopicPartition]) -> None:
        """Stop handing out and fetching the partitions."""
        for tp in partitions:
            if tp in self.reader.positions:
                self.reader.revoke_requested(tp)
        self.consumer.assignment_changed()

    def idle(self, partitions: frozenset[TopicPartition]) -> frozenset[TopicPartition]:
        """Those of the partitions that need no further step of the user.

        Where records are divided among several tasks, the divider knows. Otherwise:

        - all of them before the user has read anything;
        - all of them while the user waits for a rewind: it is done with its records;
        - those whose records are finished while an iterator waits for a record: asking
          for that record was the step;
        - none while a poll waits, or while the user works on records: the poll returns
          and reports the request, and the user's next step decides.
        """
        consumer, reader, divider = self.consumer, self.reader, self.reader.divider
        if divider is not None:
            return frozenset(filter(divider.may_go, partitions))
        if consumer.polls is None or self._is_user_waiting:
            return partitions
        if consumer.polls or not consumer.reading.is_on:
            return _NOTHING
        reader.sync()
        ledger = reader.ledger
        return frozenset(tp for tp in partitions if not ledger.has_unfinished({tp}))

    def failed(self, error: KafkaError) -> None:
        """Raise this from the user's next call."""
        self.reader.fail(error)

    async def revoking(self, partitions: frozenset[TopicPartition]) -> None:
        """Release the partitions: commit, call back, drop.

        Those that are lost while the commit is under way are left to `lost`; so are all
        of them if the call takes too long and is cancelled.
        """
        before = self._claim_numbers()
        await self._settle_commits(partitions)
        after = self._claim_numbers()
        left = frozenset(tp for tp in partitions if before.get(tp) == after.get(tp))
        await self.callbacks.revoked(left & set(self.reader.positions))
        self.drop(left)
        self._assign_waiting()
        self.feed.revoked(left)

    async def lost(self, partitions: frozenset[TopicPartition]) -> None:
        """Drop partitions that are lost, then call back."""
        mine = partitions & set(self.reader.positions)
        self.has_news = True
        self._lost_since |= mine
        self.unreported |= mine
        self.drop(partitions)
        self._assign_waiting()
        self.feed.lost(mine)
        self.reader.wake()
        await self.callbacks.lost(mine)

    async def assigned(
        self, added: frozenset[TopicPartition], owned: frozenset[TopicPartition]
    ) -> None:
        """Begin to read partitions that were added; now ``owned`` is the assignment."""
        self._watch(owned)
        self._of_group |= added
        for tp in sorted(added):
            self.reader.assign(tp, has_commits=True)
        member = self._member
        if member is not None and (late := added & member.to_be_revoked):
            # Requested while this call waited for callbacks before it: the request
            # found them unknown to the reader.
            self.stop_handing_out(late)
        if self.callbacks.on_assigned or self.feed.is_observed:
            self.unreported -= added
        self.feed.assigned(added)
        await self.callbacks.assigned(added)

    async def left(self) -> None:
        """Release all partitions that are still assigned: the consumer closes."""
        mine = frozenset(self.reader.positions)
        if self.consumer.wanted.is_subscription:
            await self.callbacks.revoked(mine)
            self.feed.revoked(mine)
        self.drop(mine)

    # ---- without a group -------------------------------------------------------------

    def assign_fixed(self, partitions: Collection[TopicPartition]) -> None:
        """Read exactly these partitions; those read already go on undisturbed.

        Partitions that the group has not got back yet stay until they are released, and
        are assigned again then if they are among these.
        """
        reader = self.reader
        kept = self._of_group.union(partitions)
        gone = frozenset(tp for tp in reader.positions if tp not in kept)
        added = [tp for tp in partitions if tp not in reader.positions]
        self._report_change(added, gone)
        self.drop(gone)
        self._watch(partitions)
        for tp in added:
            reader.assign(tp, has_commits=self._config.group_id is not None)

    async def announce(
        self, added: frozenset[TopicPartition], gone: frozenset[TopicPartition]
    ) -> None:
        """Report an assignment that was made without a group."""
        self._report_change(added, gone)
        self.feed.revoked(gone)
        self.feed.assigned(added)
        await self.callbacks.revoked(gone)
        await self.callbacks.assigned(added)

    async def announce_unsubscribed(self, gone: frozenset[TopicPartition]) -> None:
        """Report partitions that went with a subscription without a group."""
        if gone:
            self.feed.revoked(gone)
            await self.callbacks.revoked(gone)

    # ---- both ------------------------------------------------------------------------

    def drop(self, partitions: Collection[TopicPartition]) -> None:
        """End the reader's assignment of the partitions."""
        self.given_back |= self._of_group.intersection(partitions)
        self._of_group -= frozenset(partitions)
        self._unsubscribed -= frozenset(partitions)
        for tp in partitions:
            self.reader.unassign(tp)
            self._forget(tp)
        if partitions:
            self.consumer.assignment_changed()
            self.consumer.positions_changed()

    def watch_topics(self, topics: Topics | None) -> None:
        """Keep metadata of these topics fresh, instead of those before."""
        self._cluster.watch_topics(self, topics)

    def _watch(self, partitions: Collection[TopicPartition]) -> None:
        self.watch_topics({tp.topic for tp in partitions} or None)

    def _assign_waiting(self) -> None:
        # Fixed partitions that the group owned had to wait until they were released.
        if self.consumer.wanted.partitions is not None:
            self.assign_fixed(self.consumer.wanted.partitions)

    def _claim_numbers(self) -> Mapping[TopicPartition, int]:
        return {} if self._member is None else self._member.assignment

    async def _settle_commits(self, partitions: Collection[TopicPartition]) -> None:
        member = self._member
        due = None if member is None else member.revoke_due
        try:
            await self.consumer.settle_commits(partitions, due)
        except KafkaError as error:
            # The partitions are released in any case; their next owner reads the
            # records again. The user's callback can still try to commit.
            observer = self._cluster.observer
            observer.retrying("commit before revoke", 1, 0.0, error)
            observer.commit_failed(self._config.group_id or "", error)

    def _callback_failed(self, error: BaseException) -> None:
        # The user's next call raises it, and for one that closes that is the close.
        if self.consumer.state == "closing":
            self._close_failure = self._close_failure or error
        else:
            self.reader.fail(error)

    def _report_change(
        self, added: Collection[TopicPartition], gone: Collection[TopicPartition]
    ) -> None:
        if added or gone:
            self._cluster.observer.assignment_changed(added, gone)
