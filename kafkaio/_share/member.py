"""The task of one member of a share group: it runs the membership machine.

The machine (`kafkaio._machines.share.membership`) decides; this waits for an answer or
a deadline, passes it on, and performs the effects. Requests run in tasks beside the
loop, on a connection of their own to the coordinator, and at most one of a kind is in
flight. Nobody has to agree to a new assignment, so nothing else is waited for.

A pattern is matched here, against the names of all topics, each time that there is new
metadata: share groups have no patterns.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Sequence
from math import inf
from typing import TYPE_CHECKING, Final

from kafkaio._client.metadata import undescribed
from kafkaio._config import ShareConsumerConfig
from kafkaio._consumer.group.rpc import GroupRpc
from kafkaio._machines.api_versions import ApiVersions
from kafkaio._machines.backoff import Backoff
from kafkaio._machines.metadata import ClusterView
from kafkaio._machines.reactions import reaction
from kafkaio._machines.refresh import ALL_TOPICS, Topics
from kafkaio._machines.share.membership import (
    EndMembership,
    ForgetCoordinator,
    ReportError,
    SendShareHeartbeat,
    SetAssignment,
    ShareEffect,
    ShareMembership,
)
from kafkaio._machines.share.session import TopicIdPartition
from kafkaio._machines.share.states import ShareState
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._runtime.broadcast import Broadcast
from kafkaio._runtime.clock import now, random_uuid, roll
from kafkaio._runtime.scopes import CancelScope
from kafkaio._runtime.supervisor import Supervisor
from kafkaio._runtime.wakeup import Wakeup
from kafkaio._share.messages import assignment_of, heartbeat_request
from kafkaio.errors import (
    ClosedError,
    KafkaError,
    RequestTimeout,
    UnsupportedVersion,
)
from kafkaio.protocol import _api_numbers as apis
from kafkaio.protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from kafkaio.protocol.messages.share_fetch import ShareFetchRequest
from kafkaio.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

if TYPE_CHECKING:
    from kafkaio._client.ports import ClusterPort

#: The feature of the cluster that switches share groups on. Brokers list the requests
#: whether or not it is on.
_FEATURE: Final = "share.version"
#: The epoch of a heartbeat that joins.
_JOIN: Final = 0
#: Seconds without an assignment after which a member is taken to get none. The first
#: assignment of a cluster waits until its topic of share states was made, some 6 s.
_SPARED: Final = 10.0
#: Seconds that a request to leave is repeated, at most. Nobody waits for it: locks are
#: freed with the sessions, and the group forgets a silent member by itself.
_LEAVING: Final = 10.0


class ShareMember:
    """Joins a share group, stays in it, and passes on what it is to fetch.

    The synchronous methods may be called at any time in the event loop, also before
    `run`; their effects are performed in `run`.

    Args:
        cluster: finds the coordinator, and has the metadata.
        config: the consumer's options.
        on_assigned: called with the partitions to fetch from, when they change.
        on_error: called with errors that the user should see, and that may pass.

    Attributes:
        member_id: chosen here, and kept for life.
        changed: wakes the calls that wait for a change of the member's state.
        failure: why the group refuses this member for good; None if it does not.
    """

    def __init__(
        self,
        cluster: ClusterPort,
        config: ShareConsumerConfig,
        on_assigned: Callable[[frozenset[TopicIdPartition]], None],
        on_error: Callable[[KafkaError], None],
    ) -> None:
        self.member_id: str = str(random_uuid())
        self.changed: Broadcast = Broadcast()
        self.failure: KafkaError | None = None
        self._cluster = cluster
        self._config = config
        self._on_assigned = on_assigned
        self._on_error = on_error
        self._rpc = GroupRpc(cluster, config.group_id, cluster.observer)
        backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms)
        self._machine = ShareMembership(config.group_id, self.member_id, backoff)
        self._timeout = config.request_timeout_ms / 1000
        self._wakeup = Wakeup()
        self._effects: deque[ShareEffect] = deque()
        self._is_draining = False
        # By kind of request: cancels the one that is in flight.
        self._scopes: dict[str, CancelScope] = {}
        # None before `run` and after it: effects are kept until then, or dropped.
        self._tasks: Supervisor | None = None
        self._ended = Broadcast()
        self._has_ended = False
        # Whether a heartbeat was handed to a connection: then the coordinator may know
        # this member.
        self._has_sent = False
        # The request to leave that was decided last.
        self._leave_request: SendShareHeartbeat | None = None
        self._topics: frozenset[str] | re.Pattern[str] = frozenset()
        # What the machine is subscribed to; None before the first metadata.
        self._names: frozenset[str] | None = None
        self._watched: Topics | None = None
        # Topics that the brokers refuse to describe, once reported.
        self._refused = set[str]()
        self._assigned = frozenset[TopicIdPartition]()
        # When the heartbeat was sent that was accepted last.
        self._answered_at = -inf
        # Since when the member belongs to the group without an assignment.
        self._idle_since = inf

    def __repr__(self) -> str:
        return f"<ShareMember {self._machine}>"

    # ---- state -----------------------------------------------------------------------

    @property
    def connection_class(self) -> ConnectionClass:
        """The class of the connections that only this member uses."""
        return self._rpc.connection_class

    @property
    def state(self) -> ShareState:
        """The state of the machine."""
        return self._machine.state

    @property
    def member_epoch(self) -> int:
        """The epoch of the member; 0 while it has none."""
        return self._machine.member_epoch

    @property
    def coordinator(self) -> int | None:
        """Node id of the coordinator, None while it is unknown."""
        return self._rpc.coordinator.node_id

    @property
    def may_fetch(self) -> bool:
        """Whether the member may fetch: joined, and its session has not ended."""
        return self._machine.may_fetch

    # ---- the consumer ----------------------------------------------------------------

    def subscribe(self, topics: frozenset[str] | re.Pattern[str]) -> None:
        """Read these topics, or all whose name the pattern matches; () for none."""
        self._topics = topics
        self._refused.clear()
        self._watch()
        if isinstance(topics, frozenset):
            self._subscribe(topics)
            if any(map(self._cluster.view.topic_error, topics)):
                self._cluster.request_refresh()  # the error may be gone by now
        else:
            # With what is known, if anything is; the rest comes with the metadata.
            self._names = None
            self._match(self._cluster.view)
            self._cluster.request_refresh()

    def _subscribe(self, names: frozenset[str]) -> None:
        self._names = names
        self._feed(self._machine.subscribe(names, now()))

    def _watch(self) -> None:
        topics: Topics
        topics = self._topics if isinstance(self._topics, frozenset) else ALL_TOPICS
        if topics != self._watched:
            self._watched = topics
            self._cluster.watch_topics(self, topics or None)

    def _match(self, view: ClusterView) -> None:
        assert isinstance(self._topics, re.Pattern)
        hides = self._config.exclude_internal_topics
        names = frozenset(
            name
            for name in view.topics
            if self._topics.fullmatch(name)
            and view.partition_count(name) is not None
            and not (hides and view.is_internal(name))
        )
        if names != self._names:
            self._subscribe(names)

    def _metadata_updated(self, view: ClusterView) -> None:
        if isinstance(self._topics, re.Pattern):
            self._match(view)
        else:
            self._report_refused(self._topics, view)
        self.changed.notify_all()

    def _report_refused(self, topics: frozenset[str], view: ClusterView) -> None:
        # A missing topic may be created. A refusal is reported to the user, once.
        for topic in sorted(topics):
            error = view.topic_error(topic)
            if not error or reaction(apis.METADATA, error).retry:
                self._refused.discard(topic)
            elif topic not in self._refused:
                self._refused.add(topic)
                self._on_error(undescribed(topic, error))

    async def wait_joined(
        self, check: Callable[[], None], patience: float | None
    ) -> None:
        """Wait until the group has accepted this member, and there is something to do.

        That is an assignment, or to know that no topic exists that could be assigned.

        Args:
            check: called whenever something has happened meanwhile; what it raises
                ends the call.
            patience: seconds without a coordinator that accepts a heartbeat.

        Raises:
            KafkaError: the group refuses this member for good.
            RequestTimeout: no coordinator did so for so long.
            ClosedError: the membership has ended.
        """
        since = now()
        while True:
            check()
            if self.failure is not None:
                raise self.failure
            if self._is_settled():
                return
            due = inf
            if patience is not None:
                due = max(since, self._answered_at) + patience
            with CancelScope(deadline=min(due, self._spared_at)):
                await self.changed.wait()
            if patience is not None and now() >= due:
                raise self.no_answer(patience)

    def _is_settled(self) -> bool:
        if self._names is None:
            return False
        if not self._names:
            return True
        if not self._machine.is_joined:
            return False
        # The assignment comes with the answer to the join, or to a later heartbeat. A
        # member may also get none at all, if its group has an assignor that spares it.
        view = self._cluster.view
        exist = any(view.partition_count(name) for name in self._names)
        return bool(self._assigned) or not exist or now() >= self._spared_at

    @property
    def _spared_at(self) -> float:
        return self._idle_since + _SPARED

    def no_answer(self, within: float) -> RequestTimeout:
        """The error for a group that did not accept this member within some seconds."""
        failure = self._rpc.coordinator.failure or self._rpc.failure
        why = f"the member is {self._machine.state.name}"
        if failure is not None:
            why = f"the last failure: {failure}"
        error = RequestTimeout(
            f"share group {self._config.group_id!r} gave no assignment in {within:g} s;"
            f" {why}"
        )
        error.__cause__ = failure
        return error

    async def leave(self) -> None:
        """Leave the group and end `run`.

        Returns when the coordinator has answered, or when that is given up. If the call
        is cancelled, it goes on. Nothing happens if `run` has not begun or has ended.
        """
        self._feed(self._machine.close(now()))
        while self._tasks is not None:
            await self._ended.wait()

    def send_leave(self) -> None:
        """Send the request to leave if a connection is open, and wait for nothing."""
        for effect in self._machine.close(now()):
            if isinstance(effect, SendShareHeartbeat):
                self._leave_request = effect
        leave = self._leave_request
        if leave is None or self._rpc.has_sent_leave(leave.ticket):
            return
        connection = self._rpc.coordinator.ready(self.connection_class)
        if connection is not None and self._has_sent:
            self._rpc.sending_leave(leave.ticket)
            connection.submit(self._request(leave), timeout=self._timeout).cancel()

    # ---- the task --------------------------------------------------------------------

    async def run(self) -> None:
        """Take part in the group until `leave`, or until it refuses this member."""
        name = f"kafkaio share group {self._config.group_id}"
        crashes = list[BaseException]()

        def crashed(cause: BaseException) -> None:
            crashes.append(cause)
            self._wakeup.notify()

        tasks = self._tasks = Supervisor(name, crashed)
        unlisten = self._cluster.add_metadata_listener(self._metadata_updated)
        tasks.start()
        try:
            self._feed(())
            while not crashes:
                self._feed(self._machine.tick(now()), wakes=False)
                if self._machine.has_ended:
                    break
                await self._wakeup.wait(self._machine.next_deadline())
        finally:
            self._tasks = None
            unlisten()
            self._cluster.watch_topics(self, None)
            self._has_ended = True
            if crashes:
                self.send_leave()
            with CancelScope(shield=True):
                await tasks.aclose()
            self.changed.fail(self._why_ended)
            self._ended.notify_all()
        if crashes:
            raise crashes[0]

    def _why_ended(self) -> Exception:
        if self.failure is not None:
            return self.failure
        return ClosedError(f"the member of {self._config.group_id!r} has left")

    # ---- effects ---------------------------------------------------------------------

    def _feed(self, effects: Collection[ShareEffect], *, wakes: bool = True) -> None:
        self._effects.extend(effects)
        # Performing an effect may feed others: they are performed after it, by the same
        # loop, in the order in which the machine decided them.
        if self._tasks is None or self._is_draining:
            return
        self._is_draining = True
        try:
            while self._effects:
                self._perform(self._effects.popleft())
        finally:
            self._is_draining = False
            self.changed.notify_all()
            if wakes:
                self._wakeup.notify()

    def _perform(self, effect: ShareEffect) -> None:
        match effect:
            case SetAssignment(partitions):
                self._assigned = partitions
                self._on_assigned(partitions)
            case ForgetCoordinator():
                self._rpc.coordinator.forget()
            case ReportError(error):
                self._on_error(error)
            case EndMembership(error):
                self.failure = error
                self._on_error(error)
            case SendShareHeartbeat(member_epoch=epoch) if epoch < _JOIN:
                self._leave_request = effect
                self._start("leave", lambda: self._leave(effect))
            case SendShareHeartbeat():
                self._start("heartbeat", lambda: self._heartbeat(effect))

    def _start(
        self, kind: str, work: Callable[[], Coroutine[object, object, None]]
    ) -> None:
        if (before := self._scopes.pop(kind, None)) is not None:
            before.cancel()
        scope = self._scopes[kind] = CancelScope()

        async def run() -> None:
            with scope:
                await work()

        # While the tasks are being ended, their answers may still lead to effects.
        if self._tasks is not None and self._tasks.is_running:
            self._tasks.start_soon(run, kind)

    # ---- requests --------------------------------------------------------------------

    async def _heartbeat(self, effect: SendShareHeartbeat) -> None:
        try:
            effects = await self._ask(effect)
        except KafkaError as error:
            self._rpc.failure = error
            effects = self._machine.request_failed(effect.ticket, error, now(), roll())
        self._feed(effects)
        if not self._machine.is_joined or self._assigned:
            self._idle_since = inf
        elif self._idle_since == inf:
            self._idle_since = now()

    async def _ask(self, effect: SendShareHeartbeat) -> Sequence[ShareEffect]:
        timeout = min(self._timeout, effect.timeout)
        connection = await self._rpc.coordinator.connection(
            self.connection_class, now() + timeout
        )
        if effect.member_epoch == _JOIN:
            _check_offered(connection.versions)
        sent_at = now()
        answer = await self._rpc.coordinator.call_on(
            connection,
            self._request(effect),
            timeout=timeout,
            is_vital=True,
            on_sent=self._sent,
        )
        assignment = assignment_of(answer)
        if not answer.error_code:
            self._answered_at = sent_at
        self._rpc.heartbeat_answered(sent_at)
        self._rpc.answered(apis.SHARE_GROUP_HEARTBEAT, answer.error_code)
        return self._machine.heartbeat_answered(
            effect.ticket, answer, assignment, now(), roll()
        )

    def _sent(self) -> None:
        self._has_sent = True

    async def _leave(self, effect: SendShareHeartbeat) -> None:
        # On the connection of the heartbeats: a join that is under way may not overtake
        # the request.
        effects: Sequence[ShareEffect] = ()
        try:
            if self._has_sent:
                await self._rpc.leave(
                    effect.ticket,
                    lambda versions: self._request(effect),
                    lambda answer: answer.error_code,
                    self.connection_class,
                    _LEAVING,
                )
            error: KafkaError = ClosedError("there was nothing to leave")
        except KafkaError as failure:
            error = failure
        # The machine takes any end of this request for the end.
        effects = self._machine.request_failed(effect.ticket, error, now(), roll())
        self._feed(effects)

    def _request(self, effect: SendShareHeartbeat) -> ShareGroupHeartbeatRequest:
        config = self._config
        # Brokers refuse an empty rack.
        return heartbeat_request(config.group_id, config.client_rack or None, effect)


def _check_offered(versions: ApiVersions) -> None:
    """Check before the join that the cluster has share groups.

    Raises:
        UnsupportedVersion: it has not.
    """
    level = versions.finalized_features.get(_FEATURE, 0)
    if level < 1:
        raise UnsupportedVersion(
            "the cluster does not offer share groups: its feature "
            f"{_FEATURE} is {level}, and 1 is needed (Kafka 4.2 has it by default)"
        )
    for request in (
        ShareGroupHeartbeatRequest,
        ShareFetchRequest,
        ShareAcknowledgeRequest,
    ):
        versions.usable(request)
