"""The core of a consumer: it connects the parts, and has the calls that wait.

One supervisor owns all background tasks: a fetch loop per broker, the positioner (which
looks positions up), the auto-committer (which also shows signs of life), and either the
membership in the group or, without a group, the assigner. They meet in the reader,
which is synchronous. If one of them crashes, every call that waits fails at once, with
the cause, and so does every later call.

`threaded.core.ThreadedCore` has the same methods as `Core` and runs them in a thread of
its own; `Consumer` works on either.
"""

from __future__ import annotations

import asyncio
from collections.abc import (
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import contextmanager, suppress
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import UUID

from kafkaio._client.cluster import Cluster
from kafkaio._client.offsets import LATEST, OffsetLookup
from kafkaio._config import ConsumerConfig
from kafkaio._consumer.autocommit import AutoCommitter
from kafkaio._consumer.commit import (
    ToCommit,
    commit_of,
    partitions_alone,
    partitions_with_offsets,
)
from kafkaio._consumer.commits.committer import OffsetCommitter
from kafkaio._consumer.fetch.answers import LogEnds
from kafkaio._consumer.fetch.fetcher import Fetcher
from kafkaio._consumer.fetch.positioner import Positioner
from kafkaio._consumer.fetch.resets import NewcomerLookup
from kafkaio._consumer.group.member import ConsumerMember
from kafkaio._consumer.reading.exclusive import ExclusiveReading, UserCode
from kafkaio._consumer.reading.iterators import (
    BatchIterator,
    Poll,
    RawBatchIterator,
    RecordIterator,
    RecordStream,
    TableIterator,
)
from kafkaio._consumer.reading.progress import HandedOut
from kafkaio._consumer.reading.reader import Reader, Taken
from kafkaio._consumer.rebalance.assignment import PartitionAssignment
from kafkaio._consumer.rebalance.callbacks import Callbacks, PartitionsCallback
from kafkaio._consumer.rebalance.events import Hold, RevokeRequested
from kafkaio._consumer.rebalance.feed import Rebalances
from kafkaio._consumer.rebalance.groupless import GrouplessAssigner
from kafkaio._consumer.rebalance.guard import CommitGuard
from kafkaio._consumer.statistics import ConsumerStatistics, PartitionStatistics
from kafkaio._consumer.wanted import ReadSelection
from kafkaio._machines.membership.fence import Fence
from kafkaio._machines.metadata import ClusterView
from kafkaio._machines.offsets import Commit
from kafkaio._machines.patience import ASKED_FOR, Patience
from kafkaio._machines.positions import Reset
from kafkaio._runtime.broadcast import Broadcast
from kafkaio._runtime.caller import caller
from kafkaio._runtime.clock import now
from kafkaio._runtime.lifecycle import Lifecycle, LifecycleState
from kafkaio._runtime.log import listed_by_reason
from kafkaio._runtime.observer import Observer, observes
from kafkaio._runtime.scopes import CancelScope, move_on_after
from kafkaio._runtime.supervisor import Child, Supervisor
from kafkaio._runtime.time_slice import TimeSlice
from kafkaio._runtime.wakeup import Wakeup
from kafkaio.errors import (
    AuthorizationError,
    ClosedError,
    CorruptRecord,
    KafkaError,
    RecordTooLarge,
    RequestTimeout,
    UsageError,
)
from kafkaio.protocol.messages.metadata import MetadataRequest
from kafkaio.types import (
    AnyRecord,
    GroupMetadata,
    Metric,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    TopicPartition,
)

if TYPE_CHECKING:
    from kafkaio._client.fanout import Results
    from kafkaio._client.log_ranges import Edge
    from kafkaio._consumer.group.rewind import Rewinder
    from kafkaio._consumer.parallel.handlers import Handler
    from kafkaio._consumer.parallel.lanes import LaneIterator, Lanes
    from kafkaio._consumer.parallel.run import OnDead, TransactionalRun
    from kafkaio._consumer.reading.divider import DividerPort
    from kafkaio._consumer.reading.until import ReadUntil
    from kafkaio._consumer.transactions import JoinedTransaction, TransactionOffsets
    from kafkaio._machines.retries import Retry
    from kafkaio._machines.schedule import Ordering

T = TypeVar("T")

#: Seconds that closing may take, unless the caller sets another limit.
CLOSE_TIMEOUT: Final = 30.0
#: Fewest seconds that cancelled tasks get to end.
_CANCELLED: Final = 0.1
#: Seconds of the time to close that are reserved for leaving the group.
_LEAVING: Final = 1.0
#: Seconds for closing after a start that failed.
AFTER_START: Final = 1.0
#: Most seconds for leaving the group in a cancelled close.
_LEAVING_AT_ONCE: Final = 0.5
#: Fewest seconds for leaving the group. Without any, brokers may not read what was
#: written before the connection was closed (Kafka 2.1: every second time).
_LEAVING_AT_LEAST: Final = 0.04
#: How much of the time to close may be spent on work that several tasks began.
_DRAINING: Final = 0.8
#: Most seconds of the commit before `run` raises for a batch that cannot be read.
_COMMITTING: Final = 5.0
#: Records that are handed out between two readings of the loop's clock. In between,
#: each record reads a clock that costs less and is less exact.
_ALLOWANCE: Final = 256
#: Looked at for each record that crosses from an I/O thread, and for each commit.
_RUNNING: Final = LifecycleState.RUNNING
_STARTING: Final = LifecycleState.STARTING
_CLOSING: Final = LifecycleState.CLOSING


def _is_refused_topic(error: BaseException) -> bool:
    """Whether an error is about a right that is missing for one topic."""
    return isinstance(error, AuthorizationError) and error.resource_type == "topic"


class Core:
    """Everything behind one consumer, on one event loop.

    Args:
        cluster: the cluster.
        config: the consumer's options.
        owns_cluster: whether to start and close the cluster.
        on_assigned, on_revoked, on_lost: the user's callbacks, or None.

    Attributes:
        life: the lifecycle.
        wanted: the selection of topics or partitions.
        reader: hands the records out.
        assigned: the assignment.
        member: the membership in the group; None without a group, like the next one.
        committer: commits and fetches offsets.
        fetcher: fetches records.
        reading: lets one task read at a time.
        user_code: the tasks that run code of the user's.
        time_slice: when the event loop is to get a turn.
        polls: whether the last read was a poll; None before the first read.
    """

    # Of more than thirty attributes Python 3.11 finds each by a look-up in a dict.
    __slots__ = (
        "__weakref__", "_assigner", "_autocommit", "_clock", "_close_by",
        "_commit_ended", "_guard", "_has_left", "_idle", "_is_waking", "_lanes",
        "_lookup", "_newcomers", "_news", "_places", "_positioned",
        "_positioner", "_rewinder", "_supervisor", "_takes_part",
        "_transaction", "_undo", "assigned", "cluster", "committer", "config",
        "fetcher", "life", "member", "owns_cluster", "polls", "reader",
        "reading", "time_slice", "user_code", "wanted",
    )  # fmt: skip

    def __init__(
        self,
        cluster: Cluster,
        config: ConsumerConfig,
        *,
        owns_cluster: bool,
        on_assigned: PartitionsCallback | None,
        on_revoked: PartitionsCallback | None,
        on_lost: PartitionsCallback | None,
    ) -> None:
        self.cluster = cluster
        self.config = config
        self.wanted: ReadSelection = ReadSelection()
        self.life: Lifecycle = Lifecycle(
            "consumer", config.group_id or config.client_id
        )
        self.life.add_crash_listener(self._on_crash)
        self.owns_cluster = owns_cluster
        self._supervisor = Supervisor("kafkaio consumer", self.life.crashed)
        self._news = Wakeup()
        self._positioned = Broadcast()
        self._is_waking = False
        self.time_slice: TimeSlice = TimeSlice()
        self.reading: ExclusiveReading = ExclusiveReading()
        self.user_code: UserCode = UserCode()
        self.polls: bool | None = None
        # How long reads have waited for records, and since when one does: together, as
        # another thread may read them.
        self._idle = 0.0, inf
        self._clock: Callable[[], float] = float
        self.reader: Reader = Reader(
            config, on_change=self.wake_tasks, on_news=self._news.notify
        )
        self.reader.allowance = self._allowance
        self.reader.is_awaited = lambda: self._idle[1] != inf
        self.reader.prepare_with(self._supervisor.start_soon)
        self._lanes: Lanes | None = None
        # The transaction that works on records handed out. Where those that were
        # aborted had begun to read, with the number of the partition's assignment: for
        # partitions without a committed offset, and where it does not count.
        self._transaction: JoinedTransaction | None = None
        self._places: dict[TopicPartition, tuple[int, OffsetAndMetadata]] = {}
        # Removes what this added to the cluster.
        self._undo: list[Callable[[], None]] = []
        # Wakes calls that wait for commits on their way; and when closing has to end.
        self._commit_ended = Broadcast()
        self._close_by = inf
        # Whether commits, holds and callbacks had their time when this closed.
        self._has_left = False
        self._make_fetch_parts()
        self._make_assignment(
            Callbacks(
                on_assigned, on_revoked, on_lost, self.reader.fail, self.user_code
            )
        )
        self._make_group_parts()

    def _make_fetch_parts(self) -> None:
        config, spawn = self.config, self._supervisor.start_soon
        isolation_level = int(config.isolation_level == "read_committed")
        self.fetcher: Fetcher = Fetcher(self.cluster, config, self.reader, spawn)
        self._lookup = OffsetLookup(self.cluster, isolation_level)
        is_grouped = config.group_id is not None
        self._newcomers = NewcomerLookup(
            self.cluster, config, self._with_offsets if is_grouped else None
        )
        self.reader.is_created_again = self._newcomers.is_created_again
        self._positioner = Positioner(
            self.cluster,
            config,
            self.reader,
            self._lookup,
            self._fetch_committed if is_grouped else None,
            self._newcomers,
            self.positions_changed,
            spawn,
        )

    def _make_assignment(self, callbacks: Callbacks) -> None:
        cluster, config, reader = self.cluster, self.config, self.reader
        self.assigned: PartitionAssignment = PartitionAssignment(
            self, reader, cluster, config, callbacks, self.fetcher.forget
        )
        self._guard = CommitGuard(reader.ledger, self.assigned)
        self._assigner = GrouplessAssigner(
            lambda: self.wanted, self.assigned, reader, cluster, config
        )

    def _make_group_parts(self) -> None:
        self.committer: OffsetCommitter | None = None
        self.member: ConsumerMember | None = None
        # Moves the whole group to other offsets; None before it is first used.
        self._rewinder: Rewinder | None = None
        # Whether the member was started, and not left since.
        self._takes_part = False
        if self.config.group_id is not None:
            committer = OffsetCommitter(self.cluster, self.config, self.identity)
            member = ConsumerMember(self.cluster, self.config, self.assigned)
            committer.attach(member)
            self.committer, self.member = committer, member
            self.assigned.attach(member)
        self._autocommit = AutoCommitter(
            self.config,
            self.cluster,
            self.reader,
            self.reading,
            self.member,
            self._commit,
            self._supervisor.start_soon,
        )

    # Start

    @property
    def state(self) -> str:
        """The state of the lifecycle, in small letters."""
        return self.life.state.value

    async def start(self, within: float | None) -> None:
        """Start; return when there is an assignment and every position is known."""
        self.life.begin()
        self._clock = asyncio.get_running_loop().time
        self.time_slice.start()
        try:
            limit = self.config.default_api_timeout_ms / 1000
            deadline = now() + (limit if within is None else within)
            if self.owns_cluster:
                # The first metadata describes them, without a request of its own.
                fixed = self.wanted.partitions or ()
                self.cluster.request_refresh(*(tp.topic for tp in fixed))
                await self.cluster.start(within)
            self._undo = [
                self.cluster.add_metadata_listener(self._on_metadata),
                self.cluster.add_crash_listener(self.life.crashed),
            ]
            self._report_reads()
            self._supervisor.start(self._positioner.run, self._autocommit.run)
            self.life.started()
            self._add_to_telemetry()
            with self._autocommit.starting():
                await self._begin(self.wanted, deadline, within)
                self._supervisor.start_soon(self._assigner.run, "assign")
                if within is None:  # the other members may have taken their time
                    deadline = now() + limit
                await self._wait_for_positions(deadline)
        except BaseException:
            with CancelScope(shield=True):
                await self._close(AFTER_START)
            raise
        self.cluster.observer.started("consumer", self._name, self)

    async def _begin(
        self, wanted: ReadSelection, deadline: float, within: float | None
    ) -> None:
        if wanted.partitions:
            await self.cluster.wait_for_partitions(wanted.partitions, deadline - now())
        self.apply(wanted)
        if wanted.is_subscription and self.member is not None:
            await self._wait_joined(self.member, within)
        elif wanted.is_subscription:
            await self._assigner.update(deadline - now())

    async def _wait_joined(self, member: ConsumerMember, within: float | None) -> None:
        # A rebalance takes as long as the other members take, so only a time limit of
        # the user's ends that. Without one, a coordinator that cannot be found, or that
        # refuses for a passing reason all the time, ends it.
        limit = self.config.default_api_timeout_ms / 1000
        patience = limit if within is None else None
        with move_on_after(within) as waiting:
            await member.wait_joined(self.reader.raise_errors, patience)
        if waiting.cancelled_caught:
            assert within is not None
            raise member.no_assignment(within)

    async def _wait_for_positions(self, deadline: float) -> None:
        # One partition that cannot be read keeps the others from nothing: the
        # positioner goes on asking, and has reported what is missing.
        positions, positioner = self.reader.positions, self._positioner
        while not positions.is_settled():
            self.reader.raise_errors(but=_is_refused_topic)
            self.check()
            if positioner.is_to_wait_for(found=self._finds_others):
                if await self._repositioned(deadline):
                    continue
                if not self._finds_others():
                    self.reader.raise_errors()
                    missing = listed_by_reason(positioner.lacks())
                    raise RequestTimeout(f"no position was found in time: {missing}")
                positioner.report_missing()
            break
        # If there are others, the error of a topic that may not be read is raised by
        # the first step.
        self.reader.raise_errors(
            but=_is_refused_topic if self._finds_others() else None
        )

    def _finds_others(self) -> bool:
        """Whether this consumer, or another member of its group, can read something."""
        positions, wanted = self.reader.positions, self.wanted
        if positions.has_found:
            return True
        if self.member is None or not wanted.is_subscription:
            return False
        view = self.cluster.view
        its = wanted.partitions_in(
            view, with_internal=not self.config.exclude_internal_topics
        )
        return any(view.leader(tp) is not None and tp not in positions for tp in its)

    async def _repositioned(self, deadline: float) -> bool:
        # Wait until positions are found or dropped; False if none is in time.
        with move_on_after(deadline - now()):
            await self._positioned.wait()
            return True
        return False

    @property
    def _api_timeout(self) -> float:
        return self.config.default_api_timeout_ms / 1000

    @property
    def _name(self) -> str:
        return self.config.group_id or self.config.client_id

    # Close

    async def close(self, within: float | None) -> None:
        """Close, in bounded time and in every state. May be called again.

        If the call is cancelled, the member leaves the group at once, and everything
        ends; in the background if the call is cancelled again.

        Raises:
            UsageError: it is called in a callback or handler, and would wait for it.
            Exception: raised by a callback meanwhile.
        """
        await self._close(within)
        self.assigned.raise_close_failure()

    async def _close(self, within: float | None) -> None:
        limit = CLOSE_TIMEOUT if within is None else within
        if self.life.state in {LifecycleState.CLOSING, LifecycleState.CLOSED}:
            if not self.user_code.have_caller:
                self._stop_waiting_for(caller())
                with move_on_after(limit):
                    await self.life.closed()
            return
        if self.user_code.have_caller:
            raise UsageError(
                "close() waits for handlers and callbacks to end, and for this one, "
                "too: call it in another task"
            )
        was_running = self.life.begin_close() is LifecycleState.RUNNING
        self._stop_waiting_for(caller())
        if was_running and self.reader.divider is not None:
            self.reader.divider.begin_draining()
        self.reader.interrupt()
        self._news.notify()
        self._positioned.fail(self.life.why_unusable)
        deadline = now() + limit
        await self.life.close(
            partial(self._leave if was_running else self._leave_group, deadline),
            partial(self._end, deadline),
        )

    def _stop_waiting_for(self, closing: asyncio.Task[object] | None) -> None:
        # The task that closes is in here, so its holds and lanes have ended.
        self.assigned.feed.left(closing)
        if self._transaction is not None:
            self._transaction.left(closing)
        if self.reader.divider is not None:
            self.reader.divider.leave(closing)

    async def _leave(self, deadline: float) -> None:
        self._close_by = deadline
        await self._drain(deadline - now())
        with CancelScope(deadline=deadline):
            self.fetcher.close_sessions()
            # A commit may have to wait until a coordinator that died has a successor.
            patience = Patience.before_release(self._api_timeout, deadline - now())
            by, on_their_way = now() + patience.time, self.reader.ledger.in_flight()
            await self._autocommit.commit_quietly(patience)
            await self._wait_for_commits(on_their_way, by)
            if self.member is not None and self._takes_part:
                # Leaving takes time, too; holds have the rest.
                left = max(0.0, deadline - now())
                await self.member.leave(left - min(_LEAVING, left / 4))
            await self.assigned.left()
            self._has_left = True

    async def _leave_group(self, deadline: float) -> None:
        # For a consumer that failed or never ran: the coordinator may still count its
        # member.
        if self.member is not None and self._takes_part:
            with CancelScope(deadline=deadline):
                await self.member.finish_leaving()
        self._has_left = True

    async def _drain(self, within: float) -> None:
        # Wait for the work that several tasks began, as far as time allows.
        divider = self.reader.divider
        if divider is not None:
            try:
                with move_on_after(_DRAINING * within):
                    await divider.drain()
            finally:
                divider.stop()

    async def _leave_now(self, deadline: float) -> None:
        # No time is left for commits, holds and callbacks. The member leaves all the
        # same: else the group would keep its partitions until the session ends.
        left = min(deadline - now(), _LEAVING_AT_ONCE)
        if self.member is not None and self._takes_part:
            with move_on_after(max(left, _LEAVING_AT_LEAST)):
                await self.member.leave_now()

    async def _end(self, deadline: float) -> None:
        try:
            if not self._has_left:
                await self._leave_now(deadline)
        finally:
            is_news = self.life.ended()
            self._leave_cluster()
            await self._end_tasks(deadline)
            if is_news:
                self.cluster.observer.closed("consumer", self._name, self)

    async def _end_tasks(self, deadline: float) -> None:
        try:
            # A callback that suppresses its cancellation delays nobody: its task ends
            # when the callback does.
            with CancelScope(deadline=max(deadline, now() + _CANCELLED)):
                await self._supervisor.aclose()
        finally:
            self.assigned.feed.end()
            for tp in list(self.reader.positions):  # no time was left for these
                self.reader.unassign(tp)
            if self.owns_cluster:
                await self.cluster.close(max(0.0, deadline - now()))
            else:
                self._end_connections()

    def _leave_cluster(self) -> None:
        for undo in self._undo:
            undo()
        self._undo.clear()
        self.assigned.watch_topics(None)

    def _end_connections(self) -> None:
        self.cluster.end_class(self.fetcher.connection_class)
        if self.member is not None:
            self.cluster.end_class(self.member.connection_class)

    def abandon(self) -> None:
        """End soon, and wait for nothing: the consumer was collected while open.

        May be called in any thread. The member leaves the group if a connection is
        open.
        """
        self.life.soon(self._abandon)

    def _abandon(self) -> None:
        self.life.abandon()
        if self.member is not None and self._takes_part:
            self.member.send_leave()
        self._leave_cluster()
        self._supervisor.cancel()
        self.assigned.feed.end()
        if self.owns_cluster:
            self.cluster.abandon()
        else:
            self._end_connections()

    # Whether it can be used

    def check(self, *, while_closing: bool = False) -> None:
        """Raise unless the consumer can be used.

        Args:
            while_closing: whether it can be used while it closes.

        Raises:
            ClosedError: it was not started, is closed, or belongs to another event
                loop or process.
            KafkaError: a background task crashed.
        """
        if while_closing:
            self.life.check(LifecycleState.STARTING, LifecycleState.CLOSING)
        else:
            self.life.check(LifecycleState.STARTING)

    def check_open(self) -> None:
        """Raise ClosedError if it is closed; it need not have been started."""
        self.life.check_process()
        if self.life.state in {LifecycleState.CLOSING, LifecycleState.CLOSED}:
            raise self.life.why_unusable()

    @property
    def is_closed(self) -> bool:
        """Whether the user has closed it, and no crash had ended it."""
        return self.life.is_closed

    def check_wanted(self) -> None:
        """Raise UsageError if nothing is to be read, so that no record can come."""
        if self.wanted.is_nothing:
            raise UsageError(
                "the consumer is not subscribed to any topics and has no partitions "
                "assigned: call subscribe() or assign() before reading"
            )

    def is_interrupted(self) -> bool:
        """Whether something must be reported to the user before the next record.

        May be read in any thread.
        """
        return (
            self.assigned.has_news
            or bool(self.reader.errors)
            or self.life.state is not _RUNNING
        )

    def _on_crash(self, cause: BaseException) -> None:
        del cause  # the lifecycle has it
        self.assigned.feed.end(self.life.why_unusable())
        self.reader.interrupt()
        self._news.notify()
        self._positioned.notify_all()

    # The selection

    def apply(self, wanted: ReadSelection) -> None:
        """Read something else from now on; the work for that is in the background.

        Raises:
            UsageError: topics are subscribed to and partitions are given, or the other
                way round.
            ClosedError: the consumer is closed.
        """
        self.check_open()
        if wanted.is_subscription and self.wanted.partitions is not None:
            raise UsageError("partitions are assigned: unsubscribe first")
        if wanted.partitions is not None and self.wanted.is_subscription:
            raise UsageError("topics are subscribed to: unsubscribe first")
        self.wanted = wanted
        self.reader.deserialize_as(wanted)
        if self.life.state not in {LifecycleState.RUNNING, LifecycleState.STARTING}:
            return
        if wanted.is_nothing:
            self.reader.wake()  # a read that waits would wait for ever
            self._assigner.start_over()
        if self._newcomers.subscribe(wanted) and self.member is not None:
            self._supervisor.start_soon(self._newcomers.list_topics, "list topics")
        if wanted.is_subscription and self.member is not None:
            self._subscribe(self.member)
            return
        if self._takes_part and self.member is not None:
            self.assigned.unsubscribed(self.member.assignment)
            self.member.unsubscribe()
        if not wanted.is_subscription:
            self.assigned.assign_fixed(wanted.partitions or ())
        self._assigner.wake()

    def _subscribe(self, member: ConsumerMember) -> None:
        wanted = self.wanted
        member.subscribe(wanted.pattern or wanted.topics or frozenset())
        if not self._takes_part:
            self._takes_part = True
            self._supervisor.start_soon(member.run, "group")

    def _report_reads(self) -> None:
        is_observed = observes(self.observer, "records_handed_out")
        self.reader.report_to(self.observer.records_handed_out if is_observed else None)

    def _add_to_telemetry(self) -> None:
        remove = self.cluster.telemetry.add_user(
            "consumer", self, self._resource, self._report_reads
        )
        if not self.owns_cluster:  # else the last push comes after all else has ended
            self._undo.append(remove)

    def _resource(self) -> dict[str, str]:
        """Return the labels of the metrics of this consumer, by Java's names."""
        if self.config.group_id is None:
            return {}
        found = {"group_id": self.config.group_id}
        if self.config.group_instance_id is not None:
            found["group_instance_id"] = self.config.group_instance_id
        if member := self.identity().member_id:
            found["group_member_id"] = member
        return found

    async def client_instance_id(self, within: float) -> UUID:
        """Return the id by which the brokers know this client.

        Raises:
            ClosedError: the consumer is closed, or not started.
            KafkaError: as in `TelemetryPusher.instance_id`.
        """
        self.check()
        return await self.cluster.telemetry.instance_id(within)

    def register_metric(self, metric: Metric) -> None:
        """Push a metric of the application, too."""
        self.cluster.telemetry.register(metric)

    def unregister_metric(self, metric: Metric) -> None:
        """Push a metric no longer."""
        self.cluster.telemetry.unregister(metric)

    def identity(self) -> GroupMetadata:
        """Return who commits: the member, or the group alone without a member."""
        member = self.member
        if member is not None and self._takes_part:
            return member.identity()
        return GroupMetadata(group_id=self.config.group_id or "")

    def assignment(self) -> frozenset[TopicPartition]:
        """Return the partitions that are assigned."""
        return self.assigned.assignment

    def paused(self) -> frozenset[TopicPartition]:
        """Return the partitions that are paused."""
        positions = self.reader.positions
        return frozenset(tp for tp in positions if positions[tp].is_paused)

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        """Pause partitions."""
        for tp in self._chosen(partitions):
            self.reader.pause(tp)

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        """End the pause of partitions."""
        for tp in self._chosen(partitions):
            self.reader.resume(tp)

    def _chosen(self, partitions: Collection[TopicPartition]) -> list[TopicPartition]:
        self.life.check_process()
        for tp in partitions:
            if tp not in self.reader.positions:
                raise _not_assigned(tp)
        return list(partitions)

    def statistics(self) -> ConsumerStatistics:
        """Return a snapshot of the consumer."""
        group = None if self.member is None else self.member.statistics()
        return ConsumerStatistics(
            state=self.state,
            group=None if group is None else group.state,
            group_protocol=None if group is None else group.protocol,
            generation=-1 if group is None else group.generation,
            assigned=len(self.assigned.assignment),
            paused=len(self.paused()),
            to_be_revoked=0 if group is None else group.to_be_revoked,
            fetches_in_flight=self.fetcher.in_flight,
            buffered_bytes=self.reader.buffers.unread,
            stale_answers=self.fetcher.stale_answers,
            idle_seconds=self._idle_seconds(),
            partitions={
                tp: self._place_of(tp, place.position)
                for tp, place in self.reader.positions.items()
            },
            unavailable_topics=self._unavailable_topics(),
        )

    def _unavailable_topics(self) -> dict[str, str]:
        view, wanted = self.cluster.view, self.wanted
        names = wanted.topics or {tp.topic for tp in wanted.partitions or ()}
        return {
            name: error.name
            for name in sorted(names)
            if (error := view.topic_error(name))
        }

    def _idle_seconds(self) -> float:
        waited, since = self._idle
        # The caller may be in another thread, without an event loop.
        return waited + (0.0 if since == inf else self._clock() - since)

    def _place_of(self, tp: TopicPartition, at: int) -> PartitionStatistics:
        ends = self.fetcher.ends_of(tp)
        if ends is None or at < 0:
            return PartitionStatistics(position=at)
        end = self._end_of(ends)
        return PartitionStatistics(
            position=at,
            lag=None if end < 0 else max(0, end - at),
            lead=None if ends.log_start < 0 else max(0, at - ends.log_start),
        )

    def wake_tasks(self) -> None:
        """Wake the tasks that fetch and look positions up, because something changed.

        Many changes in one turn of the event loop wake them once.
        """
        if self.life.state is LifecycleState.RUNNING and not self._is_waking:
            self._is_waking = True
            self._supervisor.call_soon(self._wake_tasks)

    def _wake_tasks(self) -> None:
        self._is_waking = False
        if self.life.state is LifecycleState.RUNNING:
            self.fetcher.update()
            self._positioner.wake()

    def positions_changed(self) -> None:
        """Wake the calls that wait for positions."""
        self._positioned.notify_all()
        self._news.notify()
        self.wake_tasks()

    def _on_metadata(self, view: ClusterView) -> None:
        self._newcomers.described(view)
        self.wake_tasks()
        self._assigner.wake()

    # Reading

    def stream(
        self, wait: Callable[[], Coroutine[Any, Any, AnyRecord]]
    ) -> RecordStream:
        """Return an iterator over records, which calls ``wait`` if there is none."""
        self.check_open()
        return RecordStream(self.reader.handout, wait)

    async def take_next(self) -> AnyRecord:
        """Return the next record, if possible without waiting."""
        record = self.reader.handout.take()
        return await self.next_record() if record is None else record

    async def next_record(self) -> AnyRecord:
        """Return the next record; wait for it as long as it takes."""
        record = await self.read(self.reader.take_one, _never)
        assert record is not None  # without a time limit
        return record

    async def poll(
        self,
        limit: int,
        wait: float | None,
        among: frozenset[TopicPartition] | None = None,
    ) -> Poll[Any, Any]:
        """Take the records that are there; wait only if there are none.

        Args:
            limit: most records; with 0, wait for some and take none.
            wait: seconds; None without a limit.
            among: the partitions to read; None for all.
        """
        self.check()
        deadline = None if wait is None else now() + wait
        reader, assigned = self.reader, self.assigned
        if among is not None:
            self._chosen(among)

        def take() -> Taken | None:
            if not limit:
                is_done = assigned.has_news or reader.is_ready(among)
                return Taken([], ()) if is_done else None
            taken = reader.take_runs(limit, among)
            if taken.records or assigned.has_news:
                return taken
            if among and not any(tp in reader.positions for tp in among):
                raise _not_assigned(min(among))  # by a call of assign(), meanwhile
            return None

        taken = await self.read(
            take, lambda: deadline, polls=True, among=among, takes=limit > 0
        )
        records, runs = taken or ([], ())
        assigned.poll_ended()
        return Poll(records, assigned.to_be_revoked, assigned.lost_now, runs)

    def batches(
        self, owner: object, limit: int, wait: float, edge: Edge | None = None
    ) -> BatchIterator[Any, Any]:
        """Return an iterator over batches, which keeps ``owner`` alive."""
        return BatchIterator(self._reads(edge), self.reader, limit, wait, owner)

    def raw_batches(self, owner: object, edge: Edge | None = None) -> RawBatchIterator:
        """Return an iterator over raw batches, which keeps ``owner`` alive."""
        reads = self._reads(edge)
        ends = None if isinstance(reads, Core) else reads.ends
        here = partial(self.reader.take_raw_here, ends)
        return RawBatchIterator(reads, self.reader, here, owner)

    def tables(
        self,
        owner: object,
        limit: int,
        wait: float,
        edge: Edge | None = None,
        *,
        headers: bool,
    ) -> TableIterator:
        """Return an iterator over tables, which keeps ``owner`` alive."""
        return TableIterator(
            self._reads(edge), self.reader, limit, wait, headers=headers, owner=owner
        )

    def _reads(self, edge: Edge | None) -> Core | ReadUntil:
        self.check_open()
        return self if edge is None else self.until(edge)

    async def read(
        self,
        take: Callable[[], T | None],
        until: Callable[[], float | None],
        *,
        polls: bool = False,
        steps: bool = True,
        among: Collection[TopicPartition] | None = None,
        takes: bool = True,
    ) -> T | None:
        """Wait until ``take`` returns something; None when time is up.

        Every await comes before the taking, so a cancelled call has taken nothing.

        Args:
            take: takes records that are fetched; returns None for none.
            until: when to stop waiting; called after each time that nothing was taken.
            polls: whether the caller reports requested revocations to the user.
            steps: whether what was handed out is finished by this; False for a read
                that goes on with another one.
            among: the partitions to read; None for all.
            takes: whether to raise what the user must get before the next record.
        """
        with self.reading:
            self.reader.interrupt()  # nobody else may take a record meanwhile
            if self.time_slice.is_over:
                await self.time_slice.give_way()
            if steps:
                self.step(polls=polls, among=among)
            while True:
                if self.life.state is not LifecycleState.RUNNING:
                    self.check()
                if takes:
                    self.reader.check(among)
                self.check_wanted()
                taken = take()
                if taken is not None:
                    return taken
                if await self.wait_for_news(until()):
                    return None

    # Reading to an end

    def until(self, edge: Edge, within: float = inf) -> ReadUntil:
        """Return what reads the assigned partitions to an end, in that many seconds."""
        # Imported late: most consumers read without one.
        from kafkaio._arguments import level_of
        from kafkaio._consumer.reading.until import ReadUntil

        self.check_open()
        level = level_of(self.config.isolation_level)
        patience = self.config.default_api_timeout_ms / 1000
        return ReadUntil(self, edge, level, patience, within)

    def to_be_read(self) -> Collection[TopicPartition]:
        """Return the partitions of which records may come."""
        return self.assigned.assignment - self.assigned.to_be_revoked

    def is_assigning(self) -> bool:
        """Whether the group is about to assign partitions."""
        return (
            self.member is not None
            and self._takes_part
            and self.member.state.name != "STABLE"
        )

    def lack(self, tp: TopicPartition) -> str:
        """Return what a partition lacks to be read."""
        if self.reader.positions[tp].position < 0:
            return self._positioner.lack(tp)
        error = self.cluster.view.topic_error(tp.topic)
        return error.name if error else "no records came"

    def records(self, owner: object, edge: Edge) -> RecordIterator[Any, Any]:
        """Return an iterator over records before an end, which keeps ``owner``."""
        until, reader = self.until(edge), self.reader
        cursor: object = None

        async def read() -> AnyRecord:
            nonlocal cursor
            cursor = None
            record = await until.read(reader.take_one, _never)
            assert record is not None  # without a time limit
            cursor = reader.handout.cursor
            return record

        return RecordIterator(self, lambda: reader.take_here(cursor), read, owner)

    async def read_to_end(self, edge: Edge, within: float) -> list[AnyRecord]:
        """Return all records before an end."""
        until = self.until(edge, within)
        return await until.read_all(self.config.max_poll_records)

    async def wait_for_news(self, until: float | None) -> bool:
        """Wait until something has happened; return whether time is up."""
        waited, since = self._idle[0], now()
        self._idle = waited, since
        try:
            has_news = await self._news.wait(until)
        finally:
            moment = self.time_slice.renew()
            self._idle = waited + moment - since, inf
        return not has_news and until is not None and moment >= until

    def step(
        self, *, polls: bool, among: Collection[TopicPartition] | None = None
    ) -> None:
        """Finish the records handed out: the user asks for more.

        Partitions whose revocation was reported before are released.

        Args:
            polls: whether the user asks by a poll.
            among: the partitions that the user asks for; None for all. Records of the
                others may still be worked on.
        """
        self.check()
        self.polls = polls
        self.reader.select(among)
        self.reader.finish(among)
        self.assigned.step_taken(polls=polls)

    def passing(self, error: BaseException) -> tuple[int, float] | None:
        """Return what is known of a failure to deserialize that passes.

        Returns:
            How many attempts have failed in a row, and the seconds before the next one;
            None for any other error.
        """
        return self.reader.deserialization.passing(error)

    def _allowance(self) -> int:
        return 0 if self.time_slice.is_over else _ALLOWANCE

    # DividingPort the records among several tasks

    def lanes(self, owner: object) -> LaneIterator[Any, Any]:
        """Return an iterator over lanes, which keeps ``owner`` alive."""
        from kafkaio._consumer.parallel.lanes import LaneIterator

        return LaneIterator(self.all_lanes(), owner)

    def all_lanes(self) -> Lanes:
        """Return the lanes of this consumer."""
        if self._lanes is None:
            from kafkaio._consumer.parallel.lanes import Lanes

            self._lanes = Lanes(
                self,
                max_records=self.config.max_poll_records,
                timeout=self.config.default_api_timeout_ms / 1000,
            )
        return self._lanes

    async def run(
        self,
        handler: Handler,
        concurrency: int,
        ordering: Ordering,
        retry: Retry | None,
        dead_letter: OnDead | None,
        transactions: TransactionalRun | None = None,
    ) -> None:
        """Call a handler with each record, as ``Consumer.run`` describes."""
        if transactions is None:
            self.check()
        else:
            self._check_transactional()
        from kafkaio._consumer.parallel.run import Runner
        from kafkaio._machines.schedule import Schedule

        limit = max(2 * concurrency, self.config.max_poll_records)
        runner = Runner(
            self,
            handler,
            Schedule(ordering, limit),
            concurrency=concurrency,
            retry=retry,
            on_dead=dead_letter,
            transactions=transactions,
        )
        if transactions is not None:
            await runner.run()
            return
        with self._autocommit.enabled():
            try:
                await runner.run()
            except (CorruptRecord, RecordTooLarge):
                # The caller may seek past it, or be started again elsewhere.
                await self._autocommit.commit_quietly(Patience.automatic(_COMMITTING))
                raise

    @contextmanager
    def dividing(self, divider: DividerPort) -> Iterator[None]:
        """Let the records be divided within the block; no other task may read.

        Records that were handed out before count as finished. Records that were handed
        out within the block and are not finished at its end are read again.

        Raises:
            UsageError: another task reads.
        """
        with self.reading:
            reader = self.reader
            self.step(polls=False)
            reader.set_aside()
            reader.divider = divider
            for tp in reader.positions:
                divider.assigned(tp)
            try:
                yield
            finally:
                reader.set_aside()
                reader.divider = None
                reader.take_back()

    def release(self, tp: TopicPartition) -> None:
        """Release a partition with a requested revocation, unless the user holds it."""
        if self.member is not None:
            self.member.release(frozenset({tp}))

    @property
    def observer(self) -> Observer:
        """The observer of the cluster."""
        return self.cluster.observer

    @property
    def may_read(self) -> bool:
        """Whether the consumer is running and something is to be read."""
        return self.life.state is LifecycleState.RUNNING and not self.wanted.is_nothing

    def awaits_commit(self, tp: TopicPartition) -> bool:
        """Whether finished records of a partition wait for the user to commit them."""
        if self.auto_commits or self.committer is None:
            return False
        return self.reader.ledger.is_due(tp)

    def notify(self) -> None:
        """Wake the task that waits for news."""
        self._news.notify()

    def spawn(self, child: Child, name: str) -> None:
        """Run a task in the background until the consumer closes."""
        self._supervisor.start_soon(child, name)

    # Positions and offsets of logs

    async def position(self, tp: TopicPartition, within: float) -> int:
        """Return the position of an assigned partition, when it is known."""
        self.life.check_process()
        deadline = now() + within
        while True:
            if (at := self._position(tp)) >= 0:
                return at
            self.check()
            self.reader.raise_without_position(tp)
            if not await self._repositioned(deadline):
                raise RequestTimeout(
                    f"the position of {tp.topic}-{tp.partition} is not known yet: "
                    f"{self._positioner.lack(tp)}"
                )

    def _position(self, tp: TopicPartition) -> int:
        self.life.check_process()
        if (position := self.reader.position(tp)) is None:
            raise _not_assigned(tp)
        return position

    def seek(self, tp: TopicPartition, where: OffsetAndMetadata) -> None:
        """Read an assigned partition from an offset."""
        self._chosen([tp])
        self.reader.seek(tp, where.offset, where.leader_epoch)

    def seek_to(self, partitions: Collection[TopicPartition], reset: Reset) -> None:
        """Look up new positions of these partitions, or of all that are assigned."""
        for tp in self._chosen(partitions or self.assignment()):
            self.reader.seek_to(tp, reset)

    async def offsets(
        self, times: Mapping[TopicPartition, int], within: float
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the offsets of times, of `EARLIEST` or of `LATEST`."""
        self.check(while_closing=True)
        return await self._lookup.offsets(times, within=within)

    async def ends(
        self, partitions: Collection[TopicPartition], which: int, within: float
    ) -> dict[TopicPartition, int]:
        """Return the `EARLIEST` or `LATEST` offsets of partitions."""
        found = await self.offsets(dict.fromkeys(partitions, which), within)
        return {tp: end.offset for tp, end in found.items() if end is not None}

    async def lag(
        self, partitions: Collection[TopicPartition], within: float
    ) -> dict[TopicPartition, int]:
        """Return how far these or all assigned partitions are behind their ends."""
        deadline = now() + within
        chosen = self._chosen(partitions or self.assignment())
        ends = await self.ends(chosen, LATEST, within)
        return {
            tp: max(0, ends[tp] - await self.position(tp, deadline - now()))
            for tp in chosen
            if tp in self.reader.positions
        }

    def log_ends(self, tp: TopicPartition) -> LogEnds | None:
        """Return the ends of a partition's log, as the last fetch reported them."""
        self._chosen([tp])
        return self.fetcher.ends_of(tp)

    def current_lag(self, tp: TopicPartition) -> int | None:
        """Return how far a partition is behind its end, as the last fetch reported."""
        ends, at = self.log_ends(tp), self._position(tp)
        if ends is None or at < 0:
            return None
        end = self._end_of(ends)
        return None if end < 0 else max(0, end - at)

    def _end_of(self, ends: LogEnds) -> int:
        reads_committed = self.config.isolation_level == "read_committed"
        return ends.last_stable if reads_committed else ends.high_watermark

    # Topics of the cluster

    async def topics(self, within: float) -> frozenset[str]:
        """Return the names of all topics, as a broker knows them now."""
        self.check(while_closing=True)
        answer = await self.cluster.request(
            MetadataRequest(topics=None), timeout=within
        )
        hides_internal = self.config.exclude_internal_topics
        return frozenset(
            topic.name
            for topic in answer.topics
            if topic.name is not None and not (topic.is_internal and hides_internal)
        )

    async def partitions_for_topic(self, topic: str, within: float) -> frozenset[int]:
        """Return the numbers of a topic's partitions, as a broker knows them now."""
        self.check(while_closing=True)
        found = await self.cluster.partitions_for([topic], within)
        return frozenset(found[topic])

    # Committed offsets

    @property
    def auto_commits(self) -> bool:
        """Whether finished records are committed automatically."""
        return self._autocommit.is_enabled

    def group_committer(self) -> OffsetCommitter:
        """Return the committer of the group.

        Raises:
            UsageError: the consumer has no group.
        """
        if self.committer is None:
            raise UsageError("offsets are kept for a group: give a group_id")
        return self.committer

    def commit_for_user(
        self, what: ToCommit | None, within: float, mark: HandedOut | None = None
    ) -> Coroutine[Any, Any, None]:
        """Commit as ``Consumer.commit`` describes: what, is decided within this call.

        Args:
            what: what to commit.
            within: seconds.
            mark: the moment of the call, if the user is in another thread.
        """
        partitions = None if what is None else partitions_alone(what)
        try:
            self.life.check(_STARTING, _CLOSING)
        except ClosedError:
            self._guard.check_closed(partitions or partitions_with_offsets(what))
            raise
        return self.commit(self._named(what, partitions, mark), within)

    def _named(
        self,
        what: object,
        partitions: Collection[TopicPartition] | None,
        mark: HandedOut | None,
    ) -> Commit:
        if what is not None and partitions is None:
            commit = commit_of(what, self.reader, self._guard.check_record)
            self._guard.check(commit.offsets)
            return commit
        if partitions:
            self._guard.check_handed(partitions)
        self.group_committer()
        self.reader.acknowledge(partitions, mark)
        return self.reader.ledger.finished(partitions)

    def commit(self, commit: Commit, within: float) -> Coroutine[Any, Any, None]:
        """Commit offsets for the user, in the order of the calls."""
        if self._transaction is not None:
            self._transaction.check_plain_commit(commit.offsets)
        self._autocommit.superseded(commit.offsets)
        return self._commit(commit, within)

    async def settle_commits(
        self, partitions: Collection[TopicPartition], due: float | None
    ) -> None:
        """Commit the finished records of partitions, before they are released.

        Commits of them that are on their way end as well: they were begun while the
        partitions were assigned, and would be refused after the release. Only a part of
        the time that is left is spent on both.

        Args:
            partitions: which ones.
            due: when they are lost; None for never.

        Raises:
            KafkaError: something could not be committed.
        """
        at = now()
        lost_in = inf if due is None else due - at
        # Closing has further things to do: this gets half of the time that is left.
        closing = (self._close_by - at) / 2
        patience = Patience.before_release(self._api_timeout, lost_in, closing)
        by = at + patience.time
        on_their_way = self.reader.ledger.in_flight(partitions)
        try:
            await self._autocommit.settle(partitions, by, patience.doubt)
        finally:
            await self._wait_for_commits(on_their_way, by)

    async def _wait_for_commits(self, serials: frozenset[int], by: float) -> None:
        with CancelScope(deadline=by):
            while serials & self.reader.ledger.in_flight():
                await self._commit_ended.wait()

    async def _commit(
        self, commit: Commit, within: float, doubt: float = ASKED_FOR
    ) -> None:
        committer, offsets = self.group_committer(), commit.offsets
        if not offsets:
            return
        ledger = self.reader.ledger
        call = committer.begin(offsets, within, doubt, self._clock())
        ledger.sent(commit)
        try:
            # Mostly its request is on its way, and the answer commits all of it.
            # The loop has its turns while the answer is awaited, which begins a slice.
            # A store may not have waited.
            if (answer := call.answer) is None:
                await committer.finish(call)
                if self.config.offset_store is None:
                    self.time_slice.renew()
            elif not committer.settle(call, await answer, self.time_slice.renew()):
                await committer.finish(call)
        finally:
            committer.leave(call)
            ledger.answered(commit)
            if taken := call.taken:
                is_whole = len(taken) == len(offsets)
                self._committed(commit if is_whole else commit.of(taken))
            self._commit_ended.notify_all()

    def _committed(self, commit: Commit) -> None:
        if self._places:
            for tp in commit.offsets:
                self._places.pop(tp, None)
        self.reader.committed(commit)

    async def committed(
        self, partitions: Collection[TopicPartition] | None, within: float
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the committed offsets of these or of all assigned partitions."""
        self.check(while_closing=True)
        chosen = self.assignment() if partitions is None else partitions
        committer = self.group_committer()
        return dict(await committer.fetch(chosen, timeout=within)) if chosen else {}

    async def _fetch_committed(
        self, partitions: Collection[TopicPartition], within: float
    ) -> Results[TopicPartition, OffsetAndMetadata | None]:
        results = await self.group_committer().fetch_each(partitions, within)
        if self._places:
            is_apart = self.reader.ledger.is_apart
            results.found = {
                tp: (self._place(tp) or at) if is_apart(tp) else (at or self._place(tp))
                for tp, at in results.found.items()
            }
        return results

    async def _with_offsets(
        self, partitions: Collection[TopicPartition], within: float
    ) -> Collection[TopicPartition]:
        found = await self.group_committer().last_committed(partitions, within)
        return [tp for tp, at in found.items() if at is not None]

    async def rewind(
        self, to: Mapping[TopicPartition, OffsetAndMetadata | Reset], within: float
    ) -> dict[TopicPartition, int]:
        """Move the whole group to other offsets, as ``Consumer.rewind`` describes."""
        self.check()
        member, committer = self.member, self.committer
        if member is None or committer is None or not self.wanted.is_subscription:
            raise UsageError("only a group that is subscribed to topics can be rewound")
        from kafkaio._client.fanout import Results
        from kafkaio._consumer.group.rewind import Moved, Rewinder, outcome

        if self._rewinder is None:
            self._rewinder = Rewinder(member, committer, self.cluster, self._lookup)
        rewinder = self._rewinder
        deadline = now() + within
        places = await rewinder.find(to, within)
        moved: Moved = Results(failed=places.failed)
        if places.found:
            with self.assigned.rewinding():
                moved.add(await rewinder.rewind(places.found, deadline - now()))
        return outcome(to, moved)

    # Transactions of a producer

    def _check_transactional(self) -> None:
        self.check()
        self.group_committer()
        if self.auto_commits:
            raise UsageError(
                "a transaction commits the offsets: set enable_auto_commit=False"
            )
        if self.config.offset_store is not None:
            raise UsageError(
                "a transaction commits offsets in Kafka: leave out the offset_store"
            )

    def offsets_in_transaction(
        self, what: object, mark: HandedOut | None = None
    ) -> TransactionOffsets | None:
        """Return the offsets that ``commit(what)`` would commit, for a transaction.

        Args:
            what: what to commit.
            mark: the moment of the call, if the user is in another thread.
        """
        from kafkaio._consumer.transactions import TransactionOffsets

        self._check_transactional()
        partitions = None if what is None else partitions_alone(what)
        commit = self._named(what, partitions, mark)
        return TransactionOffsets(commit, self) if commit.offsets else None

    def join_transaction(
        self, on_revoke: Callable[[], None], on_lost: Callable[[KafkaError], None]
    ) -> JoinedTransaction:
        """Begin to hold the partitions of records handed out, for one transaction."""
        self._check_transactional()
        if self._transaction is not None:
            raise UsageError(
                "a transaction works on the records of this consumer: end it first"
            )
        from kafkaio._consumer.transactions import JoinedTransaction

        self._transaction = JoinedTransaction(self, on_revoke, on_lost)
        return self._transaction

    @property
    def transaction_member(self) -> ConsumerMember | None:
        """The member, if the consumer is subscribed; None otherwise."""
        return self.member if self.assigned.is_member else None

    @property
    def is_fenced(self) -> bool:
        """Whether this consumer may commit only partitions that it owns."""
        return self.group_committer().is_fenced

    def fence(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> Fence | None:
        """Return the fence of a commit of offsets; None checks none."""
        return self.group_committer().fence(offsets)

    def topic_ids(self, topics: Iterable[str]) -> dict[str, UUID]:
        """Return the ids of topics in the client's metadata, as far as known."""
        view = self.cluster.view
        return {name: found for name in topics if (found := view.topic_id(name))}

    def lacks(self, partitions: Collection[TopicPartition]) -> bool:
        """Whether metadata lacks partitions that a coordinator does not know."""
        return self.group_committer().lacks(partitions)

    def commit_again(self, code: int, identity: GroupMetadata) -> bool:
        """Whether a transaction commits again after a refusal of that identity."""
        return self.group_committer().refused(code, identity)

    def committed_in_transaction(self, commit: Commit, seconds: float) -> None:
        """Note that a transaction has committed offsets, which took ``seconds``."""
        self._autocommit.superseded(commit.offsets)
        self.reader.ledger.sent(commit)
        self.reader.ledger.answered(commit)
        self._committed(commit)
        self.observer.offsets_committed(commit.offsets, seconds)

    def assignment_changed(self) -> None:
        """Have an open transaction check which partitions were requested or lost."""
        if self._transaction is not None:
            self._transaction.update()
        self._positioned.notify_all()

    def transaction_left(self) -> None:
        """Note that the transaction has ended."""
        self._transaction = None

    @property
    def may_rewind(self) -> bool:
        """Whether anything can be read after a rewind."""
        return self.life.state is LifecycleState.RUNNING

    def begin_again(
        self, places: Mapping[TopicPartition, OffsetAndMetadata], *, is_unknown: bool
    ) -> None:
        """Read partitions from their committed offsets, or from these places."""
        for tp, place in places.items():
            self._places[tp] = self.reader.positions[tp].number, place
            if is_unknown:
                self.reader.ledger.perhaps_committed(tp)
            self.reader.seek_to_committed(tp)

    def _place(self, tp: TopicPartition) -> OffsetAndMetadata | None:
        number, place = self._places.get(tp, (-1, None))
        return place if self.reader.ledger.number(tp) == number else None

    async def wait_until_placed(self, partitions: Collection[TopicPartition]) -> None:
        """Wait until the committed offsets of partitions are looked up.

        Raises:
            RequestTimeout: they are not, after ``default_api_timeout_ms``.
        """
        deadline = now() + self.config.default_api_timeout_ms / 1000
        positions = self.reader.positions
        while self.may_rewind and any(map(positions.is_looking_for_commit, partitions)):
            with suppress(ClosedError):  # nothing will be read any more
                if not await self._repositioned(deadline):
                    missing = listed_by_reason(self._positioner.lacks())
                    raise RequestTimeout(
                        "the committed offsets were not found in time, after a "
                        f"transaction was aborted: {missing}"
                    )
        if self.life.state is LifecycleState.FAILED:
            self.check()

    # Rebalances

    def group_metadata(self) -> GroupMetadata:
        """Return the identity of this consumer in its group.

        Raises:
            UsageError: the consumer has no group.
        """
        self.life.check_process()
        self.group_committer()
        return self.identity()

    def to_be_revoked(self) -> frozenset[TopicPartition]:
        """Return the partitions that the next step releases."""
        return self.assigned.to_be_revoked

    def lost(self) -> frozenset[TopicPartition]:
        """Return the partitions that the last poll reported as lost, or lost since."""
        return self.assigned.lost_now

    def delay_revoke(self, partitions: Collection[TopicPartition]) -> bool:
        """Keep partitions through the next poll."""
        self.life.check_process()
        return self.assigned.delay(partitions)

    def enforce_rebalance(self, reason: str) -> None:
        """Make the group divide its partitions anew.

        Raises:
            UsageError: this consumer is not a member of a group.
            ClosedError: it is closed.
        """
        self.check_open()
        if self.member is None or not self.wanted.is_subscription:
            raise UsageError("only a member of a group can ask for a rebalance")
        self.member.enforce_rebalance(reason)

    def rebalances(self) -> Rebalances:
        """Return an iterator over the events of rebalances from now on."""
        self.life.check_process()
        return Rebalances(self.assigned.feed)

    async def next_revoke(self) -> tuple[RevokeRequested, Hold]:
        """Return the next request of a revocation, and the hold of its partitions.

        Raises:
            UsageError: the consumer has no group.
        """
        self.life.check_process()
        self.group_committer()
        return await self.assigned.feed.next_request()


def _never() -> None:
    """Return None: the read has no time limit."""


def _not_assigned(tp: TopicPartition) -> UsageError:
    return UsageError(f"{tp.topic}-{tp.partition} is not assigned to this consumer")
