"""The task of one group member: it runs the membership machine of its protocol.

The machine (`kafkaio._machines.membership`) decides, and does nothing itself. The loop
is here: wait for an input or a deadline, pass it to the machine, perform the effects.

Rules that keep the member in its group:

- No step of the loop waits for anything else. Requests run in tasks beside it, and
  their answers are inputs.
- At most one request of a kind is in flight: a new one cancels the one before, because
  the machine no longer needs its answer.
- What the consumer has to await (commits, the user's callbacks) is done one after
  another by `CallbackQueue`, in a task of its own, so that heartbeats go on.
- Effects are performed at once when an input is fed, also by a synchronous call of the
  user's: a user who reads on must not take a step past a revocation that was requested
  and is not reported yet.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from enum import Enum
from math import inf
from typing import TYPE_CHECKING

from kafkaio._config import ConsumerConfig
from kafkaio._consumer.group.handover import AssignmentPort, CallbackQueue
from kafkaio._consumer.group.protocols import MemberProtocol
from kafkaio._consumer.group.rpc import GroupRpc
from kafkaio._consumer.group.topics import GroupTopics
from kafkaio._dataclass import dataclass
from kafkaio._machines.membership import effects as fx
from kafkaio._machines.membership.fence import Fence
from kafkaio._machines.membership.ledger import Claim
from kafkaio._machines.membership.protocol import Effects, Membership
from kafkaio._machines.metadata import ClusterView
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._runtime.broadcast import Broadcast
from kafkaio._runtime.clock import now, roll
from kafkaio._runtime.scopes import CancelScope, move_on_after
from kafkaio._runtime.supervisor import Supervisor
from kafkaio._runtime.wakeup import Wakeup
from kafkaio.errors import ClosedError, KafkaError, RequestTimeout, UsageError
from kafkaio.types import GroupMetadata, TopicPartition

if TYPE_CHECKING:
    from kafkaio._client.ports import ClusterPort


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStatistics:
    """A snapshot of a group member.

    Attributes:
        protocol: ``consumer`` (KIP-848) or ``classic``.
        state: name of the member's state.
        generation: the generation of the group that the member belongs to; with KIP-848
            its member epoch. -1 for none.
        member_id: the member's id, empty if it has none.
        coordinator: node id of the group coordinator, None while it is unknown.
        is_leader: whether this member computes the group's assignment; always False
            with KIP-848.
        assigned: number of partitions owned.
        to_be_revoked: number of those whose revocation is requested.
        rebalances: how many assignments were taken over.
        lost: how many partitions were lost.
    """

    protocol: str
    state: str
    generation: int
    member_id: str
    coordinator: int | None
    is_leader: bool
    assigned: int
    to_be_revoked: int
    rebalances: int
    lost: int


class ConsumerMember:
    """Joins a group, stays in it, and knows which partitions it owns.

    The synchronous methods may be called at any time in the event loop, also before
    `run`; their effects are performed in `run`.

    Args:
        cluster: finds the coordinator, and has the metadata.
        config: the consumer's options; they name a group.
        listener: the consumer, which takes over what happens to its partitions.
    """

    def __init__(
        self,
        cluster: ClusterPort,
        config: ConsumerConfig,
        listener: AssignmentPort,
    ) -> None:
        if config.group_id is None:
            raise UsageError("a group_id is needed to take part in a group")
        self._cluster = cluster
        self._config = config
        self._listener = listener
        self._rpc = GroupRpc(cluster, config.group_id, cluster.observer)
        protocol = MemberProtocol.first_choice(self._rpc, config)
        self._machine: Membership = protocol.member
        self._requests = protocol.requests
        self._topics = GroupTopics(cluster, config, self._machine)
        self._callbacks = CallbackQueue(
            *(listener, self._machine, self._feed),
            joined=self._joined,
            drained=self._check_rebalance,
        )
        self._wakeup = Wakeup()
        self._effects: deque[fx.Effect] = deque()
        # By kind of request: cancels the one that is in flight.
        self._scopes: dict[str, CancelScope] = {}
        # None before `run` and after it: effects are kept until then, or dropped.
        self._tasks: Supervisor | None = None
        self._failure: BaseException | None = None
        #: Name of the group.
        self.group_id: str = config.group_id
        #: Wakes the calls that wait for a change of the member's state.
        self.changed: Broadcast = Broadcast()
        self._ended = Broadcast()
        # The request to leave the group, until it is answered for good or given up; and
        # wakes the calls that wait for that.
        self._leave_request: fx.SendGroupRequest | None = None
        self._leaving = Broadcast()
        self._is_joined = self._is_draining = False
        self._has_run = self._has_ended = False
        self._metadata = GroupMetadata(group_id=config.group_id)
        # The last one that was taken.
        self._fence: Fence | None = None
        self._lost = frozenset[TopicPartition]()
        self._lost_count = self._rebalances = 0
        # Since when the partitions are being divided anew; None while they are not.
        self._rebalances_since: float | None = None
        self._is_leaving = False

    def __repr__(self) -> str:
        machine = self._machine
        return (
            f"<ConsumerMember {self.group_id!r} {machine.group_protocol} "
            f"{machine.state.name} {machine.generation} | "
            f"{len(machine.ledger.owned)} assigned, "
            f"{len(machine.ledger.pending)} to be revoked>"
        )

    # ---- state -----------------------------------------------------------------------

    @property
    def connection_class(self) -> ConnectionClass:
        """The class of the connections that only this member uses."""
        return self._rpc.connection_class

    @property
    def state(self) -> Enum:
        """The state of the machine."""
        return self._machine.state

    @property
    def assignment(self) -> Mapping[TopicPartition, int]:
        """Every partition owned now, with the number of its assignment."""
        return self._machine.ledger.numbers

    def fence(self, partitions: Collection[TopicPartition]) -> Fence | None:
        """Return the fence of a commit of these partitions.

        None after the end of the subscription, if this member owns none of them: any
        consumer may commit any partition of a group without members. Partitions that it
        still owns then are fenced until they are released.

        Raises:
            PartitionLost: a partition is not assigned to this member (any more).
        """
        fence = self._fence
        if fence is not None and fence.serves(partitions):
            return fence
        fence = self._machine.fence(partitions)
        lost = fence.lost()
        if lost is None:
            self._fence = fence
            return fence
        if fence.is_foreign and not self.is_subscribed:
            return None
        raise lost

    @property
    def free(self) -> Mapping[TopicPartition, int]:
        """The partitions that are withheld and that no member owns."""
        return self._machine.free

    @property
    def ignores_withholding(self) -> bool:
        """Whether the group's assignor ignores withholding: a rewind cannot work."""
        return self._machine.ignores_withholding

    @property
    def to_be_revoked(self) -> frozenset[TopicPartition]:
        """Partitions whose revocation is requested and that are still owned."""
        return self._machine.ledger.pending

    @property
    def revoke_due(self) -> float | None:
        """When the first of those is lost if it is still owned; None without any."""
        return self._machine.ledger.next_deadline()

    @property
    def next_to_go(self) -> frozenset[TopicPartition]:
        """Those of them that the user's next step releases, unless they are held."""
        return self._machine.ledger.next_to_go

    def claims(self, partitions: Iterable[TopicPartition]) -> tuple[Claim, ...]:
        """The assignments of those partitions that are owned."""
        return self._machine.ledger.claims(partitions)

    @property
    def lost(self) -> frozenset[TopicPartition]:
        """Partitions lost since `clear_lost`, and not assigned again since."""
        return self._lost

    def identity(self) -> GroupMetadata:
        """Return who this member is at the coordinator; one object until that changes.

        A commit asks for it each time.
        """
        machine, known = self._machine, self._metadata
        generation, topics = machine.generation, machine.ledger.topics
        if (
            known.generation == generation
            and known.member_id == machine.member_id
            and known.topics is topics
        ):
            return known
        self._metadata = GroupMetadata(
            group_id=self.group_id,
            generation=generation,
            member_id=machine.member_id,
            group_instance_id=self._config.group_instance_id,
            topics=topics,
        )
        return self._metadata

    @property
    def is_subscribed(self) -> bool:
        """Whether this member subscribes to topics."""
        return self._topics.pattern is not None or self._machine.topics is not None

    @property
    def uses_member_epoch(self) -> bool:
        """Whether fetches of offsets are fenced by the member's epoch (KIP-848)."""
        return self._machine.uses_member_epoch

    @property
    def is_joining(self) -> bool:
        """Whether the answer to a JoinGroup or SyncGroup decides on the generation."""
        return self._machine.is_joining

    def statistics(self) -> GroupStatistics:
        """A snapshot."""
        machine = self._machine
        return GroupStatistics(
            protocol=machine.group_protocol,
            state=machine.state.name,
            generation=machine.generation,
            member_id=machine.member_id,
            coordinator=self._rpc.coordinator.node_id,
            is_leader=machine.is_leader,
            assigned=len(machine.ledger.owned),
            to_be_revoked=len(machine.ledger.pending),
            rebalances=self._rebalances,
            lost=self._lost_count,
        )

    # ---- the consumer ----------------------------------------------------------------

    def subscribe(self, topics: frozenset[str] | re.Pattern[str]) -> None:
        """Read these topics, or all whose name the pattern matches, now and later."""
        if isinstance(topics, frozenset):
            # Subscribing to the same topics causes no rebalance that could be awaited.
            self._is_joined = self._is_joined and topics == self._machine.topics
        self._feed(self._topics.subscribe(topics))
        self._topics.watch()

    def unsubscribe(self) -> None:
        """Read nothing: release all partitions and leave the group."""
        self._is_joined = False
        self._feed(self._topics.unsubscribe())
        self._topics.watch()

    def reported(self) -> None:
        """The user knows of every revocation requested so far."""
        self._machine.ledger.report()

    def step_taken(self) -> None:
        """The user asked for more records: reported revocations may complete now."""
        if self._machine.ledger.pending:
            self._feed(self._machine.step_taken(now()))

    def delay(self, partitions: Iterable[TopicPartition]) -> frozenset[TopicPartition]:
        """Let the next step not release these; returns those for which it is late."""
        return self._machine.ledger.delay(partitions)

    def hold(self, claims: Iterable[Claim]) -> tuple[Claim, ...]:
        """Hold these assignments until `unhold`; returns those that are held."""
        return self._machine.ledger.hold(claims)

    def unhold(self, claims: Iterable[Claim]) -> None:
        """End one hold of each of these."""
        self._feed(self._machine.unhold(tuple(claims), now()))
        self._release_idle(self._machine.ledger.pending)

    def release(self, partitions: frozenset[TopicPartition]) -> None:
        """The user is done with these: they may be revoked without a further step."""
        self._feed(self._machine.release(partitions, now()))

    def withhold(self, partitions: frozenset[TopicPartition]) -> None:
        """Have no member own these, until a later call leaves them out."""
        self._feed(self._machine.withhold(partitions, now()))

    def polled(self, at: float) -> None:
        """The user's code was running at that time (``max_poll_interval_ms``)."""
        if effects := self._machine.polled(at):
            self._feed(effects)

    def clear_lost(self) -> None:
        """The lost partitions were reported to the user."""
        self._lost = frozenset()

    def enforce_rebalance(self, reason: str = "") -> None:
        """Make the group rebalance (KIP-568); with KIP-848, ask the coordinator to."""
        asked = reason or "the user asked for a rebalance"
        self._feed(self._machine.enforce_rebalance(asked, now()))

    def commit_refused(self, code: int, identity: GroupMetadata) -> None:
        """The coordinator refused a commit under that identity."""
        who = identity.member_id, identity.generation
        self._feed(self._machine.commit_refused(code, who, now(), roll()))

    def restore_generation(self) -> bool:
        """Return to the generation before, if the present one was never completed.

        Called when the coordinator refuses a commit under the present one. Returns
        whether the generation has changed.
        """
        return self._machine.restore_generation()

    async def wait_joined(
        self,
        check: Callable[[], None] | None = None,
        patience: float | None = None,
    ) -> None:
        """Wait until the first assignment has been taken over, callback included.

        Args:
            check: called whenever something has happened meanwhile; what it raises
                ends the call.
            patience: seconds without a coordinator that takes part. A rebalance that
                waits for other members may take longer. None waits without a limit.

        Raises:
            KafkaError: the coordinator refused this member for good.
            RequestTimeout: no coordinator took part for so long; see `no_assignment`.
            ClosedError: the membership has ended.
        """
        since = now()
        while not self._is_joined or self._has_ended:
            due = self._patience_end(since, patience)
            with CancelScope(deadline=due):
                await self.changed.wait()
            if check is not None:
                check()
            if patience is not None and now() >= self._patience_end(since, patience):
                raise self.no_assignment(patience)

    def _patience_end(self, since: float, patience: float | None) -> float:
        if patience is None or self._rpc.is_parked:
            return inf
        return max(since, self._machine.accepted_at, self._rpc.alive_at) + patience

    def no_assignment(self, within: float) -> RequestTimeout:
        """The error for an assignment that did not come within so many seconds.

        It names the last failure, which is its cause, or what the group waits for.
        """
        rpc = self._rpc
        failure = rpc.coordinator.failure or rpc.failure
        if rpc.is_parked:
            why, failure = "the coordinator waits for other members", None
        elif failure is not None:
            why = f"the last failure: {failure}"
        else:
            why = f"the member is {self._machine.state.name}"
        error = RequestTimeout(
            f"group {self.group_id!r} gave no assignment in {within:g} s; {why}"
        )
        error.__cause__ = failure
        return error

    async def leave(self, patience: float | None = None) -> None:
        """Release all partitions, leave the group and end `run`.

        Returns when that is done. If the call is cancelled, it goes on. Nothing happens
        if `run` has not begun or has ended.

        Args:
            patience: seconds to wait for holds and callbacks before what is left is
                lost; None waits until the group's deadline.
        """
        # First: the revocations of a member that leaves are no longer reported as a
        # rebalance.
        self._is_leaving = True
        self._feed(self._machine.close(now()))
        with move_on_after(patience):
            await self._wait_ended()
        # Holds and callbacks had their time.
        if self._tasks is not None:
            self._lose_all()
            await self._wait_ended()

    async def leave_now(self) -> None:
        """Lose all partitions, and return when the coordinator has answered the leave.

        Callbacks that run are not waited for. If the call is cancelled, the request
        may have been sent. Nothing happens if `run` has not begun, or if the group does
        not know this member.
        """
        self._lose_all()
        while self._tasks is not None and not self._has_left:
            await self._leaving.wait()
        if self._tasks is None:
            await self.finish_leaving()

    async def finish_leaving(self) -> None:
        """Leave the group after a failure, if the coordinator may not know of it yet.

        A failure ends `run` at once, and the coordinator would otherwise keep the
        partitions from the other members until the session ends. Returns when the
        coordinator has answered, or when that is given up. If the call is cancelled,
        the request may have been sent.
        """
        await self._wait_ended()
        leave = self._leave_request
        if self._has_ended and leave is not None:
            await self._perform_leave(leave)

    @property
    def _has_left(self) -> bool:
        return self._machine.has_ended and self._leave_request is None

    def _lose_all(self) -> None:
        self._is_leaving = True
        self._feed(self._machine.close(now()))
        self._callbacks.cancel_revoke()
        self._feed(self._machine.lose_all(now()))

    def send_leave(self) -> None:
        """Send the request to leave if a connection is open, and wait for nothing.

        For a member whose task ends by a failure or is being cancelled, and so performs
        no more effects. The coordinator need not wait for the end of the session then.
        """
        machine = self._machine
        for effect in (*machine.close(now()), *machine.lose_all(now())):
            if isinstance(effect, fx.SendGroupRequest) and effect.is_leave:
                self._leave_request = effect
        leave = self._leave_request
        if leave is not None and not self._rpc.has_sent_leave(leave.ticket):
            self._requests.send_at_once(leave)

    async def _wait_left(self) -> None:
        while self._failure is None and not self._has_left:
            await self._leaving.wait()

    async def _wait_ended(self) -> None:
        if self._tasks is not None:
            await self._ended.wait()

    # ---- the task --------------------------------------------------------------------

    async def run(self) -> None:
        """Take part in the group until `leave`.

        Raises:
            KafkaError: the coordinator refused this member for good.
            UsageError: it has run already.
        """
        if self._has_run:
            raise UsageError("a membership runs once")
        self._has_run = True
        self._report_protocol(None)
        unlisten = self._cluster.add_metadata_listener(self._metadata_updated)
        try:
            await self._run_tasks()
        finally:
            # First: effects are dropped from now on, and nobody waits for them.
            self._tasks = None
            unlisten()
            self._topics.unwatch()
            self._has_ended = True
            self.changed.fail(self._why_ended)
            self._ended.notify_all()
            self._leaving.notify_all()
        if self._failure is not None:
            raise self._failure

    async def _run_tasks(self) -> None:
        name = f"kafkaio group {self._rpc.group_id}"
        tasks = self._tasks = Supervisor(name, self._crashed)
        tasks.start()
        try:
            tasks.start_soon(self._callbacks.run, "callbacks")
            await self._loop()
        except Exception as error:  # noqa: BLE001  (raised again by run)
            self._crashed(error)
        except BaseException:
            # Otherwise the calls that wait for the member would wait for ever.
            self._crashed(ClosedError(f"{name}: cancelled from outside"))
            raise
        finally:
            if self._failure is not None:
                self.send_leave()
            with CancelScope(shield=True):
                await tasks.aclose()

    async def _loop(self) -> None:
        at = now()
        while self._failure is None:
            self._effects.extend(self._machine.tick(at))
            self._drain()
            self._topics.watch()
            if self._machine.has_ended:
                await self._callbacks.drained()
                await self._wait_left()
                return
            due = self._machine.next_deadline()
            notified = await self._wakeup.wait(due)
            # A timer may fire a tick of the clock before ``due``: its steps are due
            # all the same.
            at = now() if notified or due is None else max(now(), due)

    def _crashed(self, cause: BaseException) -> None:
        # A crash of any part ends the whole at once, and `run` raises it.
        self._failure = self._failure or cause
        self._wakeup.notify()
        self._leaving.notify_all()

    # ---- effects ---------------------------------------------------------------------

    def _feed(self, effects: Collection[fx.Effect]) -> None:
        self._effects.extend(effects)
        self._drain()
        self._wakeup.notify()

    def _drain(self) -> None:
        # Performing an effect may feed others: they are performed after it, by the same
        # loop, in the order in which the machine decided them.
        if self._tasks is None or self._is_draining:
            return
        self._is_draining = True
        try:
            while self._effects:
                self._perform(self._effects.popleft())
        except Exception as error:  # noqa: BLE001  (raised again by run)
            self._failure = self._failure or error
        finally:
            self._is_draining = False
            self._check_rebalance()
            self.changed.notify_all()
            self._leaving.notify_all()

    def _perform(self, effect: fx.Effect) -> None:
        self._note_rebalance(effect)
        match effect:
            case fx.ForgetCoordinator():
                self._rpc.coordinator.forget()
            case fx.ResolveTopics() | fx.RefreshTopics() | fx.NameTopics():
                self._start("topics", lambda: self._topics.perform(effect))
            case fx.MatchTopics():
                self._topics.match_here()
            case fx.RequestRevoke():
                self._request_revoke(effect)
            case fx.Revoke() | fx.Assign() | fx.Lose():
                self._hand_over(effect)
            case fx.ReportError():
                self._listener.failed(effect.error)
            case fx.Fail():
                self._failure = self._failure or effect.error
                self._report()
            case fx.FallBack():
                self._fall_back(effect.error)
            case fx.SendGroupRequest():
                self._send(effect)

    def _fall_back(self, error: KafkaError) -> None:
        # The KIP-848 member was refused before it had any state to keep.
        protocol = MemberProtocol.classic(self._rpc, self._config)
        self._machine, self._requests = protocol.member, protocol.requests
        self._callbacks.member = self._machine
        self._report_protocol(error)
        self._feed(self._topics.hand_over(self._machine))

    def _send(self, effect: fx.SendGroupRequest) -> None:
        if effect.is_leave:
            self._leave_request = effect
            self._start(_kind(effect), lambda: self._perform_leave(effect))
            return
        if self._leave_request is not None and _kind(self._leave_request) == _kind(
            effect
        ):
            self._leave_request = None  # the member joins again, under the same id
        self._start(_kind(effect), lambda: self._requests.perform(effect))

    async def _perform_leave(self, leave: fx.SendGroupRequest) -> Effects:
        effects = await self._requests.perform(leave)
        if self._leave_request is leave:
            self._leave_request = None
        return effects

    def _start(
        self, kind: str, work: Callable[[], Coroutine[object, object, Effects]]
    ) -> None:
        if (before := self._scopes.pop(kind, None)) is not None:
            before.cancel()
        scope = self._scopes[kind] = CancelScope()

        async def run() -> None:
            with scope:
                self._feed(await work())

        # While the tasks are being ended, their answers may still lead to effects.
        if self._tasks is not None and self._tasks.is_running:
            self._tasks.start_soon(run, kind)

    def _request_revoke(self, effect: fx.RequestRevoke) -> None:
        self._listener.revoke_requested(effect.partitions, effect.deadline)
        if effect.is_leaving:
            self._feed(self._machine.release(effect.partitions, now()))
        else:
            self._release_idle(effect.partitions)
        self._report()

    def _release_idle(self, partitions: frozenset[TopicPartition]) -> None:
        if idle := self._listener.idle(partitions):
            self._feed(self._machine.release(idle, now()))

    def _hand_over(self, effect: fx.Revoke | fx.Assign | fx.Lose) -> None:
        match effect:
            case fx.Lose(partitions):
                self._lost |= partitions
                self._lost_count += len(partitions)
                self._report(lost=partitions)
                if self._callbacks.is_busy:
                    # The call may wait for a long time, behind a callback of the
                    # user's. Until then no record of a lost partition may be handed
                    # out.
                    self._listener.stop_handing_out(partitions)
            case fx.Assign(added, _):
                self._lost -= added
                self._rebalances += 1
                self._report(assigned=added)
            case fx.Revoke():
                self._report(revoked=effect.partitions)
        self._callbacks.put(effect)

    # ---- reports ---------------------------------------------------------------------

    def _note_rebalance(self, effect: fx.Effect) -> None:
        match effect:
            case fx.SendJoin() | fx.RequestRevoke() | fx.Revoke() | fx.Assign():
                self._begin_rebalance()
            case fx.SendConsumerGroupHeartbeat(is_new=True):
                self._begin_rebalance()
            case fx.ReportError(error) | fx.Fail(error):
                self._end_rebalance(error)
            case fx.Lose():
                self._end_rebalance(None)
            case _:
                pass

    def _begin_rebalance(self) -> None:
        if self._rebalances_since is None and not self._is_leaving:
            self._rebalances_since = now()

    def _end_rebalance(self, error: BaseException | None) -> None:
        self._rebalances_since = None
        if not self._is_leaving:
            self._cluster.observer.rebalance_failed(self.group_id, error)

    def _check_rebalance(self) -> None:
        """Report the end of a rebalance, once the member owns its assignment."""
        since, member = self._rebalances_since, self._machine
        if since is None or self._callbacks.is_busy or member.state.name != "STABLE":
            return
        self._rebalances_since = None
        self._cluster.observer.rebalance_completed(self.group_id, now() - since)

    def _report(
        self,
        assigned: Collection[TopicPartition] = (),
        revoked: Collection[TopicPartition] = (),
        lost: Collection[TopicPartition] = (),
    ) -> None:
        self._cluster.observer.rebalance(
            self._machine.state.name, assigned, revoked, lost
        )

    def _report_protocol(self, cause: KafkaError | None) -> None:
        self._cluster.observer.group_protocol(
            self._rpc.group_id, self._machine.group_protocol, cause
        )

    def _metadata_updated(self, view: ClusterView) -> None:
        self._feed(self._topics.updated(view))

    def _joined(self) -> None:
        self._is_joined = True
        self.changed.notify_all()

    def _why_ended(self) -> Exception:
        if isinstance(self._failure, Exception):
            return self._failure
        return ClosedError(f"the member of {self.group_id!r} has left")


def _kind(effect: fx.SendGroupRequest) -> str:
    # With KIP-848 a heartbeat leaves. It takes the place of the one before, and one
    # that joins again takes its place.
    return type(effect).__name__
