"""The consumer's inner works: its tasks, and the calls that wait for them.

Tasks, all owned by one supervisor: a fetch loop per broker, the positioner, the
keeper (auto-commit, signs of life), and either the group coordinator's loop or, when
topics are read without a group, the assigner. They meet in the reader, which is
synchronous. A crash of any of them fails whoever waits, at once and with the cause.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import anyio

from kafkaio._machines.metadata import ClusterView
from kafkaio._machines.offsets import Commit
from kafkaio._runtime.clock import now
from kafkaio._runtime.ending import Ending
from kafkaio._runtime.observer import Observer
from kafkaio._runtime.supervisor import Child, Supervisor
from kafkaio._runtime.thread import caller
from kafkaio._runtime.time_slice import TimeSlice
from kafkaio._runtime.unclosed import Home
from kafkaio._runtime.wakeup import Wakeup
from kafkaio.client.broadcast import Broadcast
from kafkaio.client.cluster import Cluster
from kafkaio.config import ConsumerConfig
from kafkaio.consumer.autocommit import AutoCommitter
from kafkaio.consumer.commits.committer import OffsetCommitter
from kafkaio.consumer.fetch.fetcher import Fetcher
from kafkaio.consumer.fetch.lookup import OffsetLookup
from kafkaio.consumer.fetch.positioner import Positioner
from kafkaio.consumer.group.member import GroupMember
from kafkaio.consumer.group.rewind import Rewinder
from kafkaio.consumer.reading.divider import Divider
from kafkaio.consumer.reading.exclusive import ExclusiveReading, Insiders
from kafkaio.consumer.reading.reader import Reader
from kafkaio.consumer.rebalance.assignment import PartitionAssignment
from kafkaio.consumer.rebalance.callbacks import Callbacks, PartitionsCallback
from kafkaio.consumer.rebalance.fence import CommitFence
from kafkaio.consumer.rebalance.groupless import GrouplessAssigner
from kafkaio.consumer.wanted import Wanted
from kafkaio.errors import ClosedError, RequestTimeout, UsageError
from kafkaio.types import GroupMetadata, OffsetAndMetadata, Record, TopicPartition

if TYPE_CHECKING:
    from kafkaio.consumer.threaded.handoff import Moment

__all__ = ["CLOSE_TIMEOUT", "Core"]

T = TypeVar("T")

#: Seconds that closing may take unless the caller says otherwise.
CLOSE_TIMEOUT: Final = 30.0
#: Seconds that cancelled tasks have to end, at least.
_ENDING: Final = 0.1
#: Seconds of these that are kept for telling the group.
_LEAVING: Final = 1.0
#: Seconds for telling the group that a cancelled start has ended, with all the rest.
_AFTER_START: Final = 1.0
#: Seconds that a cancelled close has for telling the group.
_LEAVING_AT_ONCE: Final = 0.5
#: Seconds that one without time has for it. Without any, brokers may not read what was
#: written before the connection was closed (Kafka 2.1: every second time).
_LEAVING_AT_LEAST: Final = 0.04
#: How much of the time to close may be spent on work that was begun.
_DRAINING: Final = 0.8
#: Records handed out before the iterator looks at the clock.
_CREDIT: Final = 64


class Core:
    """Everything behind one consumer.

    Args:
        cluster: the way to the cluster.
        owns_cluster: whether to start and close it.
        config: the consumer's options.
        on_assigned, on_revoked, on_lost: the user's callbacks, or None.
    """

    #: Where it was started; None before.
    home: Home | None = None
    # Whether holds, commits and callbacks had their time when this closed.
    _has_parted = False

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
        self.wanted = Wanted()
        self._owns_cluster = owns_cluster
        self._news = Wakeup()
        self._positioned = Broadcast()
        self.reader = Reader(config, on_change=self.look, on_news=self._news.notify)
        self.reader.more_credit = self._more_credit
        self._supervisor = Supervisor("kafkaio consumer", self._crashed)
        self.fetcher = Fetcher(
            cluster, config, self.reader, self._supervisor.start_soon
        )
        isolation = int(config.isolation_level == "read_committed")
        self.lookup = OffsetLookup(cluster, isolation)
        #: Who runs the user's callbacks and handlers.
        self.insiders = Insiders()
        self.assigned = self._make_assignment(
            Callbacks(on_assigned, on_revoked, on_lost, self.reader.fail, self.insiders)
        )
        self.fence = CommitFence(self.reader.ledger, self.assigned)
        #: Whether the user polled when it read last: None before it ever read.
        self.polls: bool | None = None
        self.committer: OffsetCommitter | None = None
        self.member: GroupMember | None = None
        self.rewinder: Rewinder | None = None
        if config.group_id is not None:
            self._make_group_parts()
        self._assigner = GrouplessAssigner(
            lambda: self.wanted, self.assigned, self.reader, cluster, config
        )
        self._positioner = Positioner(
            cluster,
            config,
            self.reader,
            self.lookup,
            None if config.group_id is None else self._fetch_committed,
            self.positions_changed,
            self._supervisor.start_soon,
        )
        self._autocommit = AutoCommitter(self)
        self._state = "new"
        self._fatal: BaseException | None = None
        self.time_slice = TimeSlice()
        self._takes_part = self._is_looking = False
        self._undo: list[Callable[[], None]] = []
        self.reading = ExclusiveReading()
        self._ending = Ending("kafkaio consumer: close")
        #: Whether finished records are committed without being asked to.
        self.auto_commits = config.enable_auto_commit and config.group_id is not None

    def _make_assignment(self, callbacks: Callbacks) -> PartitionAssignment:
        return PartitionAssignment(
            self,
            self.reader,
            self.cluster,
            self.config,
            callbacks,
            self.fetcher.forget,
        )

    def _make_group_parts(self) -> None:
        committer = OffsetCommitter(self.cluster, self.config, self.identity)
        coordinator = GroupMember(self.cluster, self.config, self.assigned)
        committer.attach(coordinator)
        self.committer, self.member = committer, coordinator
        self.rewinder = Rewinder(coordinator, committer)
        self.assigned.attach(coordinator)

    # Life

    @property
    def owns_cluster(self) -> bool:
        """Whether the client lives and ends with this."""
        return self._owns_cluster

    @property
    def has_word(self) -> bool:
        """Whether something happened that the reader is to hear of before it reads on.

        May be asked in any thread.
        """
        return (
            self.assigned.has_news
            or bool(self.reader.errors)
            or self._fatal is not None
            or self._state != "running"
        )

    @property
    def state(self) -> str:
        """``new``, ``starting``, ``running``, ``failed``, ``closing`` or ``closed``."""
        return "failed" if self._fatal and self._state == "running" else self._state

    @property
    def left_open(self) -> str | None:
        """What is open, in words: None where it is not, or is about to be closed."""
        is_open = self._state in {"starting", "running"}
        if not is_open or self.home is None or self.home.is_elsewhere:
            return None
        return f"the consumer {self._name!r}"

    @property
    def _name(self) -> str:
        return self.config.group_id or self.config.client_id

    async def start(self, within: float | None) -> None:
        """Begin; return when there is an assignment and every position is known."""
        if self._state != "new":
            raise ClosedError(f"the consumer is {self._state}: it starts once")
        self._state = "starting"
        self.home = Home("the consumer")
        self.time_slice.start()
        try:
            limit = self.config.default_api_timeout_ms / 1000
            deadline = now() + (limit if within is None else within)
            if self._owns_cluster:
                await self.cluster.start(within)
            self._undo = [
                self.cluster.add_metadata_listener(self._on_metadata),
                self.cluster.add_crash_listener(self._crashed),
            ]
            self._supervisor.start(self._positioner.run, self._autocommit.run)
            self._state = "running"
            with self._autocommit.awaited():
                await self._begin(self.wanted, deadline, within)
                self._supervisor.start_soon(self._assigner.run, "assign")
                if within is None:  # the other members may have taken their time
                    deadline = now() + limit
                await self._wait_for_positions(deadline)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self.close(_AFTER_START)
            raise
        self.cluster.observer.started("consumer", self._name)

    async def _begin(
        self, wanted: Wanted, deadline: float, within: float | None
    ) -> None:
        if wanted.partitions:
            await self.cluster.wait_for_partitions(wanted.partitions, deadline - now())
        self.apply(wanted)
        if wanted.is_subscription and self.member is not None:
            await self._wait_joined(self.member, within)
        elif wanted.is_subscription:
            await self._assigner.look(deadline - now())

    async def _wait_joined(
        self, coordinator: GroupMember, within: float | None
    ) -> None:
        # Without a limit of the user's: the other members may take their time.
        with anyio.move_on_after(within) as waiting:
            await coordinator.wait_joined(self.reader.raise_errors)
        if waiting.cancelled_caught:
            raise RequestTimeout(f"the group gave no assignment in {within} s")

    async def _wait_for_positions(self, deadline: float) -> None:
        positions = self.reader.positions
        while not positions.is_settled():
            self.reader.raise_errors()
            self.check()
            if not await self.repositioned(deadline):
                raise RequestTimeout(f"no position was found in time: {positions}")
        self.reader.raise_errors()

    async def repositioned(self, deadline: float) -> bool:
        """Wait until positions are found or let go; False if none is in time."""
        with anyio.move_on_after(deadline - now()):
            await self._positioned.wait()
            return True
        return False

    async def close(self, within: float | None = None) -> None:
        """End, in bounded time and in every state. May be called again.

        If the call is cancelled, the group is told at once that the member leaves, and
        everything ends; in the background if the call is cancelled again.

        Raises:
            UsageError: it would wait for its caller.
        """
        limit = CLOSE_TIMEOUT if within is None else within
        if self._state in {"closing", "closed"}:
            if not self.insiders.have_caller:
                self._let_go(caller())
                with anyio.move_on_after(limit):
                    await self._ending.wait()
            return
        if self.insiders.have_caller:
            raise UsageError(
                "close() waits for handlers and callbacks to end, and for this one, "
                "too: call it in another task"
            )
        was_running = self._state == "running" and self._fatal is None
        self._state = "closing"
        self._let_go(caller())
        if was_running and self.reader.divider is not None:
            self.reader.divider.begin_draining()
        self.reader.must_look()
        self._news.notify()
        self._positioned.fail(lambda: ClosedError("the consumer is closed"))
        deadline = now() + limit
        self._has_parted = not was_running
        await self._ending.begin(
            partial(self._part, deadline) if was_running else None,
            partial(self._end, deadline),
        )

    def abandon(self) -> None:
        """Begin to end all, and wait for nothing; for a consumer that was forgotten.

        The group is told that the member leaves, if a connection is open.
        """
        self._state = "closed"
        if self.member is not None and self._takes_part:
            self.member.send_leave()
        for undo in self._undo:
            undo()
        self.assigned.watch_topics(None)
        self._supervisor.cancel()
        self.assigned.feed.end()
        if self._owns_cluster:
            self.cluster.abandon()
        else:
            self._end_connections()

    def _let_go(self, closing: asyncio.Task[object] | None) -> None:
        # It is in here, and not at work on what it holds.
        self.assigned.feed.left(closing)
        if self.reader.divider is not None:
            self.reader.divider.left(closing)

    async def _end(self, deadline: float) -> None:
        try:
            if not self._has_parted:
                await self._part_at_once(deadline)
        finally:
            was_open = self._state != "closed" and self.home is not None
            self._state = "closed"
            for undo in self._undo:
                undo()
            self._undo.clear()
            self.assigned.watch_topics(None)
            await self._end_tasks(deadline)
            if was_open:
                self.cluster.observer.closed("consumer", self._name)

    async def _end_tasks(self, deadline: float) -> None:
        try:
            # A callback of the user's that does not let itself be cancelled holds
            # nobody up: its task ends when it does.
            with anyio.CancelScope(deadline=max(deadline, now() + _ENDING)):
                await self._supervisor.aclose()
        finally:
            self.assigned.feed.end()
            for tp in list(self.reader.positions):  # no time was left for these
                self.reader.unassign(tp)
            if self._owns_cluster:
                await self.cluster.close(max(0.0, deadline - now()))
            else:
                self._end_connections()

    def _end_connections(self) -> None:
        self.cluster.end_class(self.fetcher.connection_class)
        if self.member is not None:
            self.cluster.end_class(self.member.connection_class)

    async def _part(self, deadline: float) -> None:
        await self._drain(deadline - now())
        with anyio.CancelScope(deadline=deadline):
            self.fetcher.close_sessions()
            await self._autocommit.commit_quietly()
            if self.member is not None and self._takes_part:
                # Leaving takes a moment too: who holds partitions has the rest.
                left = max(0.0, deadline - now())
                await self.member.leave(left - min(_LEAVING, left / 4))
            await self.assigned.left()
            self._has_parted = True

    async def _part_at_once(self, deadline: float) -> None:
        # No time is left for commits, holds and callbacks. The group is told even so,
        # or it would keep the partitions for this member until its session ends.
        left = min(deadline - now(), _LEAVING_AT_ONCE)
        if self.member is not None and self._takes_part:
            with anyio.move_on_after(max(left, _LEAVING_AT_LEAST)):
                await self.member.leave_at_once()

    def check_open(self) -> None:
        """Raise ClosedError if it is closed; it need not have been started."""
        if self._state in {"closing", "closed"}:
            raise ClosedError(f"the consumer is {self._state}")

    def check(self, *, is_parting_ok: bool = False) -> None:
        """Raise unless the consumer is running.

        Args:
            is_parting_ok: whether it will do that it is about to be closed.

        Raises:
            ClosedError: it is not.
            BaseException: the crash of a background task.
        """
        if self._fatal is not None and self._state == "running":
            raise self._fatal
        if self._state in {"running", "starting"}:
            return
        if is_parting_ok and self._state == "closing":
            return
        self.check_open()
        raise ClosedError("the consumer was not started")

    def check_wanted(self) -> None:
        """Raise UsageError if nothing is to be read: no record could ever come."""
        if self.wanted.is_nothing:
            raise UsageError(
                "the consumer is not subscribed to any topics and has no partitions "
                "assigned: call subscribe() or assign() before reading"
            )

    def _crashed(self, cause: BaseException) -> None:
        if self._fatal is None:
            self._fatal = cause
            self.assigned.feed.end(cause)
        self.reader.must_look()
        self._news.notify()
        self._positioned.tell()

    # What is read

    def apply(self, wanted: Wanted) -> None:
        """Take up what the user wants to read; in the background if need be."""
        self.check_open()
        if wanted.is_subscription and self.wanted.partitions is not None:
            raise UsageError("partitions are assigned: unsubscribe first")
        if wanted.partitions is not None and self.wanted.is_subscription:
            raise UsageError("topics are subscribed to: unsubscribe first")
        self.wanted = wanted
        if self._state not in {"running", "starting"}:
            return
        if wanted.is_nothing:
            self.reader.tell()  # whoever waits for a record would wait for ever
            self._assigner.start_over()
        if wanted.is_subscription and self.member is not None:
            self._subscribe(self.member)
            return
        if self._takes_part and self.member is not None:
            self.assigned.unsubscribed(self.member.assignment)
            self.member.unsubscribe()
        if not wanted.is_subscription:
            self.assigned.assign_fixed(wanted.partitions or ())
        self._assigner.wake()

    def _subscribe(self, coordinator: GroupMember) -> None:
        wanted = self.wanted
        coordinator.subscribe(wanted.pattern or wanted.topics or frozenset())
        if not self._takes_part:
            self._takes_part = True
            self._supervisor.start_soon(coordinator.run, "group")

    def identity(self) -> GroupMetadata:
        """Who commits: a member of the group, or nobody in particular."""
        if self.member is not None and self._takes_part:
            return self.member.metadata
        return GroupMetadata(group_id=self.config.group_id or "")

    def look(self) -> None:
        """Something changed: every task looks again soon at what it has to do.

        Many changes in one turn of the loop cost one look.
        """
        if self._state == "running" and not self._is_looking:
            self._is_looking = True
            self._supervisor.call_soon(self._look)

    def _look(self) -> None:
        self._is_looking = False
        if self._state == "running" and self._fatal is None:
            self.fetcher.update()
            self._positioner.wake()

    def positions_changed(self) -> None:
        """Positions were found or let go: whoever waits for them looks again."""
        self._positioned.tell()
        self._news.notify()
        self.look()

    def _on_metadata(self, cluster: ClusterView) -> None:
        del cluster  # the fetcher reads the cluster's view
        self.look()
        self._assigner.wake()

    # ExclusiveReading

    async def read(
        self,
        take: Callable[[], T | None],
        until: Callable[[], float | None],
        *,
        polls: bool = False,
    ) -> T | None:
        """Wait until ``take`` brings something; None when time is up.

        Every await comes before the taking: a cancelled call has taken nothing.

        Args:
            take: takes what is at hand; None for nothing.
            until: when to stop waiting; asked after each time nothing was taken.
            polls: whether the caller tells the user what the group asks for.
        """
        with self.reading:
            self.reader.must_look()  # nobody else may take a record meanwhile
            if self.time_slice.is_over:
                await self.time_slice.give_way()
            self.step(polls=polls)
            while True:
                self.check()
                self.reader.look()
                self.check_wanted()
                taken = take()
                if taken is not None:
                    return taken
                if await self.wait_for_news(until()):
                    return None

    async def wait_for_news(self, until: float | None) -> bool:
        """Wait until there is something to look at; returns whether time is up."""
        has_news = await self._news.wait(until)
        moment = self.time_slice.renew()
        return not has_news and until is not None and moment >= until

    def step(self, *, polls: bool) -> None:
        """The user asks for more: what was handed out before is finished.

        What the group asked back before may go.
        """
        self.check()
        if self.home is not None:
            self.home.check()
        self.polls = polls
        self.reader.finish()
        self.assigned.step_taken(polls=polls)

    async def next_record(self) -> Record:
        """The next record, waiting for it as long as it takes."""
        record = await self.read(self.reader.take_one, _never)
        assert record is not None  # without a time limit
        return record

    def _more_credit(self) -> int:
        return 0 if self.time_slice.is_over else _CREDIT

    # For what divides the records

    @contextmanager
    def dividing(self, divider: Divider) -> Iterator[None]:
        """Let the records be divided within the block; nobody else may read.

        What was handed out before counts as finished. What was handed out within the
        block and is not finished at its end is read again.

        Raises:
            UsageError: another task reads already.
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
                reader.sync()
                reader.divider = None
                reader.take_back()

    def release(self, tp: TopicPartition) -> None:
        """Release a partition that was requested back, unless the user holds it."""
        if self.member is not None:
            self.member.release(frozenset({tp}))

    async def _drain(self, within: float) -> None:
        # Let what several tasks work on be finished, as far as time allows.
        divider = self.reader.divider
        if divider is not None:
            try:
                with anyio.move_on_after(_DRAINING * within):
                    await divider.drain()
            finally:
                divider.stop()

    @property
    def observer(self) -> Observer:
        """Hears what happens."""
        return self.cluster.observer

    @property
    def may_read(self) -> bool:
        """Whether the consumer is running and something is to be read."""
        return self.state == "running" and not self.wanted.is_nothing

    def awaits_commit(self, tp: TopicPartition) -> bool:
        """Whether finished records of a partition wait for the user to commit them."""
        if self.auto_commits or self.committer is None:
            return False
        return self.reader.ledger.is_due(tp)

    def notify(self) -> None:
        """Wake who waits for news."""
        self._news.notify()

    def spawn(self, child: Child, name: str) -> None:
        """Run a task for as long as the consumer is open."""
        self._supervisor.start_soon(child, name)

    # Offsets

    async def commit(self, commit: Commit, within: float) -> None:
        """Commit offsets, in the order of the calls."""
        committer = self.group_committer()
        if not commit.offsets:
            return
        ledger = self.reader.ledger
        ledger.sent(commit)
        try:
            await committer.commit(commit.offsets, timeout=within)
        finally:
            ledger.answered(commit)
        self.reader.sync()
        ledger.committed(commit)
        if self.reader.divider is not None:
            self.reader.divider.committed()

    async def commit_finished(
        self, within: float, partitions: Collection[TopicPartition] | None = None
    ) -> None:
        """Commit what is finished and not committed yet."""
        self.reader.sync()
        await self.commit(self.reader.ledger.due(partitions), within)

    async def commit_handed(
        self,
        within: float,
        partitions: Collection[TopicPartition] | None = None,
        moment: Moment | None = None,
    ) -> None:
        """Commit what the user was handed: it says by that that it is done with it.

        Args:
            within: seconds.
            partitions: assigned ones; None for all.
            moment: when the user said so, where it is in another thread.
        """
        self.group_committer()
        self.reader.acknowledge(partitions, moment)
        await self.commit(self.reader.ledger.finished(partitions), within)

    def group_committer(self) -> OffsetCommitter:
        """What commits for the group.

        Raises:
            UsageError: there is no group.
        """
        if self.committer is None:
            raise UsageError("offsets are kept for a group: give a group_id")
        return self.committer

    async def _fetch_committed(
        self, partitions: Collection[TopicPartition], within: float
    ) -> Mapping[TopicPartition, OffsetAndMetadata | None]:
        return await self.group_committer().fetch(partitions, timeout=within)


def _never() -> None:
    """No time limit."""
