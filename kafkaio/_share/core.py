"""The core of a share consumer: it connects the parts, and has the calls that wait.

One supervisor owns all background tasks: the member, one for each leader, and one that
watches the locks. They meet in the ledger and in the reader, which are synchronous. If
one of them crashes, every call that waits fails at once, with the cause, and so does
every later call.

The core is the engine (`EnginePort`); the reader is made with it, and attached to it.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from math import inf
from threading import get_ident
from typing import Final
from uuid import UUID

from kafkaio._client.cluster import Cluster
from kafkaio._config import ShareConsumerConfig
from kafkaio._machines.metadata import ClusterView
from kafkaio._machines.share.ledger import ShareLedger
from kafkaio._machines.share.session import TopicIdPartition
from kafkaio._records.batch import Acquired
from kafkaio._runtime.clock import now, roll
from kafkaio._runtime.group import TaskGroup
from kafkaio._runtime.lifecycle import Lifecycle, LifecycleState
from kafkaio._runtime.loop import running_loop
from kafkaio._runtime.observer import Observer, observes
from kafkaio._runtime.scopes import CancelScope, move_on_after
from kafkaio._runtime.supervisor import Child, Supervisor
from kafkaio._runtime.wakeup import Wakeup
from kafkaio._share.acknowledging import Acknowledgements
from kafkaio._share.dead_letters import dead_letter_topic
from kafkaio._share.leaders import ShareLeaders
from kafkaio._share.member import ShareMember
from kafkaio._share.ports import HandlersPort, ReaderPort
from kafkaio._share.statistics import ShareConsumerStatistics
from kafkaio.errors import ClosedError, KafkaError, LockLost, RequestTimeout
from kafkaio.types import Metric, TopicPartition

#: Seconds that closing may take, unless the caller sets another limit.
CLOSE_TIMEOUT: Final = 30.0
#: Updates of the metadata that a start waits for: the first may have been requested
#: before the topics were named.
_LOOKS: Final = 2
#: Seconds for closing after a start that failed.
AFTER_START: Final = 1.0
#: How much of the time to close may be spent on handlers.
_DRAINING: Final = 0.8
#: Most seconds for the last requests in a cancelled close.
_LEAVING_AT_ONCE: Final = 0.5
#: Fewest seconds for them: else a broker may not read what was written before the
#: connection was closed.
_LEAVING_AT_LEAST: Final = 0.04
#: Fewest seconds that cancelled tasks get to end.
_CANCELLED: Final = 0.1


class ShareCore:
    """Everything behind one share consumer, on one event loop, except the reader.

    `attach` comes before everything else.

    Args:
        cluster: the cluster.
        config: the consumer's options.
        owns_cluster: whether to start and close the cluster.

    Attributes:
        life: the lifecycle.
        cluster: the cluster.
        config: the consumer's options.
        owns_cluster: whether to start and close the cluster.
        ledger: what is locked.
        subscription: the topics or the pattern; empty for nothing.
    """

    def __init__(
        self, cluster: Cluster, config: ShareConsumerConfig, *, owns_cluster: bool
    ) -> None:
        self.cluster = cluster
        self.config = config
        self.owns_cluster = owns_cluster
        self.life: Lifecycle = Lifecycle("share consumer", config.group_id)
        self.life.add_crash_listener(self._crashed)
        self.subscription: frozenset[str] | re.Pattern[str] = frozenset()
        self._supervisor = Supervisor("kafkaio share consumer", self.life.crashed)
        self._news = Wakeup()
        self._locks = Wakeup()
        # The clock of the loop. Work on a record may be in a thread of its own, and ask
        # there whether the lock has ended.
        self._clock: Callable[[], float] = lambda: -inf
        self._thread = 0
        self._acks = Acknowledgements(config.group_id, cluster.observer, self._notified)
        self.ledger: ShareLedger = ShareLedger(
            self._acks,
            linger=config.ack_linger_ms / 1000,
            max_processing=config.max_processing_ms / 1000,
            jitter=roll(),
            clock=lambda: self._clock(),
            defer=self._defer,
        )
        self._member = ShareMember(cluster, config, self._assigned, self._failed)
        self._handlers: dict[HandlersPort, None] = {}
        self._undo: list[Callable[[], None]] = []
        self._has_left = False
        # Seconds that reads have waited for records.
        self._idle = 0.0
        # When the last decision was made, since when the program has all records that
        # it may have, and whether it was reported that it decides about none.
        self._decided_at = -inf
        self._full_since: float | None = None
        self._is_stall_reported = False
        self._are_letters_reported = False

    def attach(self, reader: ReaderPort) -> None:
        """Use this reader."""
        self._reader = reader
        self._leaders = ShareLeaders(
            self.cluster,
            self.config,
            self._member.member_id,
            self.ledger,
            self._acks,
            reader,
            may_fetch=self._may_fetch,
            start_soon=self._supervisor.start_soon,
            on_answer=self._answered,
        )

    # ---- start -----------------------------------------------------------------------

    @property
    def state(self) -> str:
        """The state of the lifecycle, in small letters."""
        return self.life.state.value

    async def start(self, within: float | None) -> None:
        """Start; return when the member has joined, and knows what to fetch.

        Raises:
            KafkaError: the group refuses this member, or no coordinator answers.
        """
        self.life.begin()
        self._clock = running_loop().time
        self._thread = get_ident()
        try:
            await self._begin(within)
        except BaseException:
            with CancelScope(shield=True):
                await self._close(AFTER_START)
            raise
        self.cluster.observer.started("share_consumer", self.config.group_id, self)

    async def _begin(self, within: float | None) -> None:
        deadline = inf if within is None else now() + within
        if self.owns_cluster:
            # Outside of the scope below: it keeps the limit, and says what it lacks.
            await self.cluster.start(within)
        with CancelScope(deadline=deadline):
            self._undo += [
                self.cluster.add_metadata_listener(self._on_metadata),
                self.cluster.add_crash_listener(self.life.crashed),
            ]
            self._supervisor.start(self._watch_locks)
            self.life.started()
            self._report_reads()
            self._add_to_telemetry()
            self._member.subscribe(self.subscription)
            self._supervisor.start_soon(self._member.run, "group")
            if self.subscription:
                await self._join(within)
            return
        assert within is not None
        raise self._member.no_answer(within)

    async def _join(self, within: float | None) -> None:
        limit = self.config.default_api_timeout_ms / 1000
        with suppress(RequestTimeout):
            await self._find_topics(limit)
        # A coordinator that answers may take long. One that is silent, or refuses for a
        # passing reason, ends a start without a time limit.
        await self._member.wait_joined(
            self._check_life, limit if within is None else None
        )

    async def _find_topics(self, limit: float) -> None:
        # Else it would be unknown whether there is anything that can be assigned.
        for _ in range(_LOOKS):
            topics, view = self.subscription, self.cluster.view
            if isinstance(topics, frozenset):
                if all(map(partial(_is_described, view), topics)):
                    return
                self.cluster.request_refresh(*topics)
            else:
                self.cluster.request_refresh()
            await self.cluster.wait_for_update(limit)

    def _add_to_telemetry(self) -> None:
        remove = self.cluster.telemetry.add_user(
            "consumer.share", self, self._resource, self._report_reads
        )
        if not self.owns_cluster:  # else the last push comes after all else has ended
            self._undo.append(remove)

    def _report_reads(self) -> None:
        # Counting what is handed out costs something, so it is done for those who ask.
        is_observed = observes(self.observer, "records_handed_out")
        self._reader.on_handed = (
            self.observer.records_handed_out if is_observed else None
        )

    def _resource(self) -> dict[str, str]:
        """Return the labels of the metrics of this consumer, by Java's names."""
        return {
            "group_id": self.config.group_id,
            "group_member_id": self._member.member_id,
        }

    # ---- close -----------------------------------------------------------------------

    async def close(self, within: float | None) -> None:
        """Close, in bounded time and in every state. May be called again.

        Nothing more is fetched or handed out. Handlers of `run` get most of the time to
        end. Then what has no decision is released, the last acknowledgements are sent,
        the sessions and the membership end, and the connections are closed.

        If the call is cancelled, handlers are not waited for, and the last requests get
        half a second.
        """
        await self._close(within)

    async def _close(self, within: float | None) -> None:
        limit = CLOSE_TIMEOUT if within is None else within
        before = self.life.begin_close()
        if before is None:
            with move_on_after(limit):
                await self.life.closed()
            return
        deadline = now() + limit
        self._stop_reading()
        part = self._leave if before is LifecycleState.RUNNING else self._leave_group
        await self.life.close(partial(part, deadline), partial(self._end, deadline))

    def _stop_reading(self) -> None:
        self._leaders.stop()
        for handlers in self._handlers:
            handlers.begin_draining()
        self._reader.interrupt()
        self._news.notify()

    async def _leave(self, deadline: float) -> None:
        await self._drain(deadline - now())
        with CancelScope(deadline=deadline):
            await self._send_last(deadline)
            self._has_left = True

    async def _drain(self, within: float) -> None:
        # Handlers go on, and their locks are renewed, as far as time allows.
        handlers = [*self._handlers]
        try:
            with move_on_after(_DRAINING * within):
                for each in handlers:
                    await each.drain()
        finally:
            for each in handlers:
                each.stop()

    async def _send_last(self, deadline: float) -> None:
        self.ledger.release_all()
        # Beside each other: neither waits for the other, and one of them may hang.
        async with TaskGroup() as tasks:
            tasks.start_soon(self._leaders.close, deadline)
            tasks.start_soon(self._member.leave)

    async def _leave_group(self, deadline: float) -> None:
        # For a consumer that failed, or did not start: the coordinator may still count
        # its member. What is locked is freed with the connections.
        del deadline
        self._member.send_leave()
        self._has_left = True

    async def _end(self, deadline: float) -> None:
        try:
            if not self._has_left:
                # No time is left for handlers, or the call was cancelled.
                left = min(deadline - now(), _LEAVING_AT_ONCE)
                with move_on_after(max(left, _LEAVING_AT_LEAST)):
                    await self._send_last(inf)
        finally:
            is_news = self.life.ended()
            self._leave_cluster()
            await self._end_tasks(deadline)
            if is_news:
                self.cluster.observer.closed(
                    "share_consumer", self.config.group_id, self
                )

    async def _end_tasks(self, deadline: float) -> None:
        try:
            with CancelScope(deadline=max(deadline, now() + _CANCELLED)):
                await self._supervisor.aclose()
        finally:
            self._acks.end(self.life.why_unusable)
            if self.owns_cluster:
                await self.cluster.close(max(0.0, deadline - now()))
            else:
                self._end_connections()

    def _leave_cluster(self) -> None:
        for undo in self._undo:
            undo()
        self._undo.clear()

    def _end_connections(self) -> None:
        # An administrator's change of offsets has no effect while a connection of this
        # consumer is open: the leader keeps the share partition for it.
        self._leaders.end()
        self.cluster.end_class(self._member.connection_class)

    def abandon(self) -> None:
        """End soon, and wait for nothing: the consumer was collected while open.

        May be called in any thread. The member leaves the group if a connection is
        open, and all locks are freed with the connections.
        """
        self.life.soon(self._abandon)

    def _abandon(self) -> None:
        self.life.abandon()
        self._member.send_leave()
        self._leave_cluster()
        self._supervisor.cancel()
        if self.owns_cluster:
            self.cluster.abandon()
        else:
            self._end_connections()

    # ---- whether it can be used ------------------------------------------------------

    def check(self) -> None:
        """Raise unless the consumer can be used.

        Raises:
            ClosedError: it was not started, is closed, or belongs to another event
                loop or process.
            KafkaError: a background task crashed, or the group refuses this member for
                good.
        """
        self._check_life()
        if self._member.failure is not None:
            raise self._member.failure

    def _check_life(self) -> None:
        self.life.check(LifecycleState.STARTING)

    def check_open(self) -> None:
        """Raise ClosedError if it is closed; it need not have been started."""
        self.life.check_process()
        if self.life.state in {LifecycleState.CLOSING, LifecycleState.CLOSED}:
            raise self.life.why_unusable()

    def _crashed(self, cause: BaseException) -> None:
        del cause  # the lifecycle has it
        self._stop_reading()
        self._member.changed.notify_all()
        self._acks.end(self.life.why_unusable)

    def _failed(self, error: KafkaError) -> None:
        self._reader.failed(error)
        if self._member.failure is not None:
            # Nothing more is handed out; what is in hands can be acknowledged still.
            self._reader.interrupt()
        self._news.notify()

    # ---- what to read ----------------------------------------------------------------

    def subscribe(self, topics: frozenset[str] | re.Pattern[str]) -> None:
        """Read these topics, or all whose name the pattern matches; () for none.

        Raises:
            ClosedError: the consumer is closed.
        """
        self.check_open()
        self.subscription = topics
        if self.life.state in {LifecycleState.RUNNING, LifecycleState.STARTING}:
            self._member.subscribe(topics)

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that this consumer may fetch from."""
        return self._leaders.partitions.named

    def _assigned(self, partitions: frozenset[TopicIdPartition]) -> None:
        self._leaders.assign(partitions)

    def _may_fetch(self) -> bool:
        return self._member.may_fetch

    def _on_metadata(self, view: ClusterView) -> None:
        del view  # the cluster has it
        self._leaders.update()

    # ---- the reader's side -----------------------------------------------------------

    @property
    def observer(self) -> Observer:
        """Observes what happens."""
        return self.cluster.observer

    def wake(self) -> None:
        """See `EnginePort`."""
        self._leaders.wake()
        if self.ledger.locked >= self.config.max_in_flight:
            self._locks.notify()  # the program may have all of them now

    def _answered(self, node_id: int) -> None:
        self._leaders.wake_others(node_id)
        self._locks.notify()

    async def wait_for_news(self, until: float | None) -> None:
        """See `EnginePort`."""
        began = now()
        try:
            await self._news.wait(until)
        finally:
            self._idle += now() - began

    def notify(self) -> None:
        """See `EnginePort`."""
        self._news.notify()

    def spawn(self, child: Child, name: str) -> None:
        """Run a task in the background until the consumer closes."""
        self._supervisor.start_soon(child, name)

    async def broker_dead_letters(self) -> str | None:
        """Return the topic of the dead letters that the brokers write; None for none.

        Raises:
            ClosedError: the consumer is not running.
        """
        self.check()
        group = self.config.group_id
        limit = self.config.default_api_timeout_ms / 1000
        try:
            topic = await dead_letter_topic(self.cluster, group, limit)
        except ClosedError:
            raise
        except KafkaError as error:
            self.observer.group_configs_unknown(group, error)
            return None
        if topic is not None and not self._are_letters_reported:
            self._are_letters_reported = True
            self.observer.dead_letters_at_broker(group, topic)
        return topic

    def decided_late(self, acquired: Acquired, first: int, last: int) -> None:
        """Note decisions of another thread that came when the locks were gone."""
        tp = TopicPartition(acquired.topic, acquired.partition)
        error = LockLost(
            f"{tp.topic}-{tp.partition} at offsets {first} to {last} was acknowledged "
            f"when its lock was gone: {acquired.lost_because}",
            topic_partition=tp,
            first_offset=first,
            last_offset=last,
        )
        self._acks.failed(acquired, error)

    def watch_ranges(self, on_range: Callable[[Acquired], None]) -> None:
        """Call a function with each range whose locks were lost or renewed."""
        self._acks.on_range = on_range

    def begin_work(self, handlers: HandlersPort) -> None:
        """See `EnginePort`."""
        self._handlers[handlers] = None
        self._acks.on_lost = handlers.lost
        self._bound(handlers)

    def bound_work(self, handlers: HandlersPort) -> None:
        """See `EnginePort`."""
        self._bound(handlers)

    def end_work(self, handlers: HandlersPort) -> None:
        """See `EnginePort`."""
        self._handlers.pop(handlers, None)
        self._acks.on_lost = None
        self._bound(None)

    def _bound(self, handlers: HandlersPort | None) -> None:
        # One call of `run` at a time.
        config = self.config
        most, longest = config.max_in_flight, config.max_processing_ms / 1000
        if handlers is not None:
            most = min(most, handlers.most_records)
            if handlers.max_processing is not None:
                longest = handlers.max_processing
        self.ledger.max_processing = longest
        self._leaders.limit(most)

    # ---- acknowledgements ------------------------------------------------------------

    def _defer(self, acquired: Acquired) -> bool:
        # A record may be decided in the thread that has worked on it. The codec takes
        # the decision in one step; the ledger belongs to the loop.
        if get_ident() == self._thread:
            return False
        self.life.soon(partial(self.ledger.decided, acquired))
        return True

    def _notified(self, node_id: int) -> None:
        self._decided_at = now()
        self._is_stall_reported = False
        self._leaders.wake_one(node_id)

    def acked(self, acquired: Acquired, offset: int) -> Awaitable[None]:
        """See `EnginePort`."""
        return self._acks.acked(acquired, offset)

    async def flush(self, timeout: float) -> None:
        """See `EnginePort`."""
        self._check_answers()
        self._leaders.wake()
        await self._acks.flush(self.ledger.live, timeout)

    async def commit(
        self, timeout: float
    ) -> Mapping[TopicPartition, KafkaError | None]:
        """See `EnginePort`."""
        self._check_answers()
        self._leaders.wake()
        return await self._acks.commit(self.ledger.live, timeout)

    def _check_answers(self) -> None:
        # Also while it closes: handlers may want proof.
        self.life.check(LifecycleState.STARTING, LifecycleState.CLOSING)

    # ---- locks -----------------------------------------------------------------------

    async def _watch_locks(self) -> None:
        """Report locks that have ended by the clock, and consumers that stall."""
        while True:
            moment, before = now(), self.ledger.locked
            self.ledger.expire(moment)
            if self.ledger.locked < before:
                self._leaders.wake()  # there is room
            times = (self.ledger.next_expiry(), self._check_stall(moment))
            await self._locks.wait(
                min((time for time in times if time is not None), default=None)
            )

    def _check_stall(self, moment: float) -> float | None:
        """Report that nothing can be fetched; return when to check again."""
        # What costs least comes first: this runs after each answer.
        most = self.config.max_in_flight
        is_full = self.ledger.locked >= most
        if self._is_stall_reported or not is_full or not self._has_all(most):
            self._full_since = None
            return None
        if self._full_since is None:
            self._full_since = moment
        since = max(self._decided_at, self._full_since)
        # Compared as it is waited for: a difference may be rounded the other way.
        due = since + self.ledger.longest_lock
        if moment < due:
            return due
        held, silent = self.ledger.held, moment - since
        self._is_stall_reported = True
        self.observer.acknowledgements_missing(self.config.group_id, held, silent)
        return None

    def _has_all(self, most: int) -> bool:
        # Whether the program has so many records, and asks for more.
        reader = self._reader
        return reader.wants and not reader.buffered and self.ledger.held >= most

    # ---- figures ---------------------------------------------------------------------

    def statistics(self) -> ShareConsumerStatistics:
        """Return a snapshot of the consumer."""
        member, acks, leaders = self._member, self._acks, self._leaders
        return ShareConsumerStatistics(
            state=self.state,
            group=member.state.name,
            member_id=member.member_id,
            member_epoch=member.member_epoch,
            coordinator=member.coordinator,
            assigned=len(leaders.partitions),
            leaders=leaders.sessions,
            in_flight=self.ledger.locked,
            buffered=self._reader.buffered,
            buffered_bytes=self._reader.buffered_bytes,
            fetches_in_flight=leaders.fetches_in_flight,
            acquired=acks.acquired,
            redelivered=acks.redelivered,
            accepted=acks.accepted,
            released=acks.released,
            rejected=acks.rejected,
            failed=acks.failed_count,
            lost=acks.lost_count,
            renewed=acks.renewed_count,
            idle_seconds=self._idle,
        )

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


def _is_described(view: ClusterView, topic: str) -> bool:
    return view.partition_count(topic) is not None or bool(view.topic_error(topic))
