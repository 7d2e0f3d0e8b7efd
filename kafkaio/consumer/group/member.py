"""The place of one consumer in its group: the task around the membership machine.

One loop: wait for an input or a deadline, ask the machine, perform its effects. No
step of the loop waits for anything else. Requests run beside it, at most one of a
kind, and their answers are inputs; what the host has to await (commits, the user's
callbacks) is done one after another by a second loop, so that heartbeats go on.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from enum import Enum

import anyio

from kafkaio._machines.membership import effects as fx
from kafkaio._machines.membership.ledger import Claim
from kafkaio._machines.membership.protocol import Effects, Membership
from kafkaio._machines.metadata import ClusterView
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._runtime.clock import now, roll
from kafkaio._runtime.supervisor import Supervisor, TaskScope
from kafkaio._runtime.wakeup import Wakeup
from kafkaio.client.broadcast import Broadcast
from kafkaio.config import ConsumerConfig
from kafkaio.consumer.commits.committer import OffsetCommitter
from kafkaio.consumer.group.handover import CallbackQueue, GroupHost
from kafkaio.consumer.group.protocols import MemberProtocol
from kafkaio.consumer.group.rpc import GroupCluster, GroupRpc
from kafkaio.consumer.group.statistics import GroupStatistics
from kafkaio.consumer.group.topics import GroupTopics
from kafkaio.errors import ClosedError, KafkaError, UsageError
from kafkaio.types import GroupMetadata, TopicPartition

__all__ = ["GroupHost", "GroupMember"]


class GroupMember:
    """Joins a group, stays in it, and says who owns what.

    The synchronous methods may be called at any time on the loop, also before
    ``run``; what they ask for happens in ``run``.
    """

    def __init__(
        self,
        cluster: GroupCluster,
        config: ConsumerConfig,
        host: GroupHost,
        committer: OffsetCommitter,
    ) -> None:
        if config.group_id is None:
            raise UsageError("a group_id is needed to take part in a group")
        self._cluster = cluster
        self._config = config
        self._host = host
        self._rpc = GroupRpc(cluster, config.group_id)
        self._protocol = MemberProtocol.first_choice(self._rpc, config)
        self._topics = GroupTopics(cluster, config, self._member)
        self._callbacks = CallbackQueue(host, self._member, self._feed, self._joined)
        self._wakeup = Wakeup()
        self._effects: deque[fx.Effect] = deque()
        self._scopes: dict[str, TaskScope] = {}
        self._tasks: Supervisor | None = None
        self._failure: BaseException | None = None
        #: Tells whenever the member may stand otherwise.
        self.changed = Broadcast()
        self._first = Broadcast()
        self._ended = Broadcast()
        # The last request to leave the group, and who waits for the member's end.
        self._leave_request: fx.Send | None = None
        self._parting = Broadcast()
        self._is_joined = self._is_draining = False
        self._has_run = self._has_ended = False
        self._lost = frozenset[TopicPartition]()
        self._lost_count = self._rebalances = 0
        committer.attach(self)

    def __repr__(self) -> str:
        member = self._member
        return (
            f"<GroupMember {self.group_id!r} {member.group_protocol} "
            f"{member.state.name} {member.generation} | "
            f"{len(member.ledger.owned)} assigned, "
            f"{len(member.ledger.pending)} to be revoked>"
        )

    @property
    def _member(self) -> Membership:
        return self._protocol.member

    # ---- what can be read ----------------------------------------------------------

    @property
    def group_id(self) -> str:
        """Name of the group."""
        return self._rpc.group_id

    @property
    def lane(self) -> ConnectionClass:
        """The connections that are this member's alone."""
        return self._rpc.lane

    @property
    def state(self) -> Enum:
        """Where the member stands."""
        return self._member.state

    @property
    def assignment(self) -> Mapping[TopicPartition, int]:
        """Every partition owned now, with the number of its assignment."""
        return self._member.ledger.numbers

    @property
    def committable(self) -> Mapping[TopicPartition, int]:
        """What may be committed: what is owned, and what is withheld and free."""
        free = self.free
        # Every commit asks, and hardly ever is something withheld.
        return {**self.assignment, **free} if free else self.assignment

    @property
    def free(self) -> Mapping[TopicPartition, int]:
        """What is withheld for us and that nobody has."""
        return self._member.free

    @property
    def ignores_withholding(self) -> bool:
        """Whether the group's assignor ignores withholding: a rewind cannot work."""
        return self._member.ignores_withholding

    @property
    def to_be_revoked(self) -> frozenset[TopicPartition]:
        """Partitions that are to be given back and are still owned."""
        return self._member.ledger.pending

    @property
    def revoke_due(self) -> float | None:
        """When the first of them is lost if it is still owned; None without any."""
        return self._member.ledger.next_deadline()

    @property
    def next_to_go(self) -> frozenset[TopicPartition]:
        """Those of them that the user's next step gives up, unless they are held."""
        return self._member.ledger.next_to_go

    def claims(self, partitions: Iterable[TopicPartition]) -> tuple[Claim, ...]:
        """The assignments of those partitions that are assigned."""
        return self._member.ledger.claims(partitions)

    @property
    def lost(self) -> frozenset[TopicPartition]:
        """Partitions lost since ``clear_lost``, and not assigned again since."""
        return self._lost

    @property
    def metadata(self) -> GroupMetadata:
        """Who we are to the coordinator."""
        member = self._member
        return GroupMetadata(
            group_id=self.group_id,
            generation=member.generation,
            member_id=member.member_id,
            group_instance_id=self._config.group_instance_id,
            topics=frozenset(tp.topic for tp in member.ledger.owned),
        )

    @property
    def is_subscribed(self) -> bool:
        """Whether the group decides what this consumer reads."""
        return self._topics.pattern is not None or self._member.topics is not None

    @property
    def uses_member_epoch(self) -> bool:
        """Whether fetches of offsets are fenced by the member's epoch (KIP-848)."""
        return self._member.uses_member_epoch

    def statistics(self) -> GroupStatistics:
        """A snapshot."""
        member = self._member
        return GroupStatistics(
            protocol=member.group_protocol,
            state=member.state.name,
            generation=member.generation,
            member_id=member.member_id,
            coordinator=self._rpc.node_id,
            is_leader=member.is_leader,
            assigned=len(member.ledger.owned),
            to_be_revoked=len(member.ledger.pending),
            rebalances=self._rebalances,
            lost=self._lost_count,
        )

    # ---- the user's side -------------------------------------------------------------

    def subscribe(self, topics: frozenset[str] | re.Pattern[str]) -> None:
        """Read these topics, or all whose name the pattern matches, now and later."""
        if isinstance(topics, frozenset):
            # The same topics again make no rebalance that could be waited for.
            self._is_joined = self._is_joined and topics == self._member.topics
        self._feed(self._topics.subscribe(topics))
        self._topics.watch()

    def unsubscribe(self) -> None:
        """Read nothing: give everything up and leave the group."""
        self._is_joined = False
        self._feed(self._topics.unsubscribe())
        self._topics.watch()

    def told(self) -> None:
        """The user knows of every revoke requested so far."""
        self._member.ledger.report()

    def step_taken(self) -> None:
        """The user asked for more: revokes that it was told of may complete now."""
        if self._member.ledger.pending:
            self._feed(self._member.step_taken(now()))

    def delay(self, partitions: Iterable[TopicPartition]) -> frozenset[TopicPartition]:
        """Let the next step pass without giving these up; not those returned."""
        return self._member.ledger.delay(partitions)

    def hold(self, claims: Iterable[Claim]) -> tuple[Claim, ...]:
        """Keep these assignments until `unhold`; those kept are returned."""
        return self._member.ledger.hold(claims)

    def unhold(self, claims: Iterable[Claim]) -> None:
        """End one hold of each of these."""
        self._feed(self._member.unhold(tuple(claims), now()))
        self._release_idle(self._member.ledger.pending)

    def release(self, partitions: frozenset[TopicPartition]) -> None:
        """The user is done with these: the group may have them without a step."""
        self._feed(self._member.release(partitions, now()))

    def withhold(self, partitions: frozenset[TopicPartition]) -> None:
        """Have these given to nobody, until they are left out again."""
        self._feed(self._member.withhold(partitions, now()))

    def polled(self, at: float) -> None:
        """The user is alive (``max_poll_interval_ms``)."""
        if effects := self._member.polled(at):
            self._feed(effects)

    def clear_lost(self) -> None:
        """The lost partitions were reported to the user."""
        self._lost = frozenset()

    def enforce_rebalance(self, reason: str = "") -> None:
        """Make the group rebalance (KIP-568); where the brokers divide, ask them."""
        asked = reason or "the user asked for a rebalance"
        self._feed(self._member.enforce_rebalance(asked, now()))

    @property
    def is_joining(self) -> bool:
        """Whether the answer to a JoinGroup will tell the generation."""
        return self._member.is_joining

    def commit_refused(self, code: int, identity: GroupMetadata) -> None:
        """The coordinator refused a commit under that identity."""
        who = identity.member_id, identity.generation
        self._feed(self._member.commit_refused(code, who, now(), roll()))

    async def wait_joined(self, check: Callable[[], None] | None = None) -> None:
        """Wait until the first assignment has been taken over, callback included.

        Args:
            check: called whenever an error is reported meanwhile; may raise it.

        Raises:
            KafkaError: the coordinator refused us for good.
            ClosedError: the membership has ended.
        """
        while not self._is_joined or self._has_ended:
            await self._first.wait()
            if check is not None:
                check()

    async def leave(self, patience: float | None = None) -> None:
        """Give everything up, leave the group and end ``run``.

        Returns when that is done; a caller in a hurry cancels it. Nothing happens if
        ``run`` has not begun or has ended.

        Args:
            patience: seconds to wait for holds and callbacks before what is left is
                lost; None waits until the group's deadline.
        """
        self._feed(self._member.close(now()))
        with anyio.move_on_after(patience):
            await self._wait_ended()
        if self._tasks is not None:
            self._abandon()
            await self._wait_ended()

    async def leave_at_once(self) -> None:
        """Lose everything, and return when the coordinator has answered to the leave.

        Callbacks that run are not waited for. If the call is cancelled, the request
        may have been sent. Nothing happens if ``run`` has not begun or has ended, or
        if the group does not know this member.
        """
        self._abandon()
        while self._tasks is not None and not self._member.has_ended:
            await self._parting.wait()

    def _abandon(self) -> None:
        self._feed(self._member.close(now()))
        self._callbacks.hurry()
        self._feed(self._member.lose_all(now()))

    def say_goodbye(self) -> None:
        """Leave the group if a connection is open, and wait for nothing.

        For a membership whose task is being cancelled, which performs nothing any
        more. The coordinator need not wait for the end of the session.
        """
        member = self._member
        for effect in (*member.close(now()), *member.lose_all(now())):
            if isinstance(effect, fx.Send) and effect.is_leave:
                self._leave_request = effect
        if self._leave_request is not None and not self._rpc.has_sent(
            self._leave_request.ticket
        ):
            self._protocol.requests.send_at_once(self._leave_request)

    async def _wait_ended(self) -> None:
        if self._tasks is not None:
            await self._ended.wait()

    # ---- the task --------------------------------------------------------------------

    async def run(self) -> None:
        """Take part in the group until ``leave``.

        Raises:
            KafkaError: the coordinator refused us for good.
            UsageError: it has run already.
        """
        if self._has_run:
            raise UsageError("a membership runs once")
        self._has_run = True
        self._tell_protocol(None)
        unlisten = self._cluster.add_metadata_listener(self._metadata_updated)
        try:
            await self._live()
        finally:
            self._tasks = None
            unlisten()
            self._topics.unwatch()
            self._has_ended = True
            self._first.fail(self._why_ended)
            self.changed.fail(self._why_ended)
            self._ended.tell()
            self._parting.tell()
        if self._failure is not None:
            raise self._failure

    async def _live(self) -> None:
        name = f"kafkaio group {self._rpc.group_id}"
        tasks = self._tasks = Supervisor(name, self._crashed)
        tasks.start()
        try:
            tasks.start_soon(self._callbacks.run, "callbacks")
            await self._loop()
        except Exception as error:  # noqa: BLE001  (raised again by run)
            self._crashed(error)
        except BaseException:
            self.say_goodbye()
            # Nobody else would ever learn that it is gone.
            self._crashed(ClosedError(f"{name}: cancelled from outside"))
            raise
        finally:
            with anyio.CancelScope(shield=True):
                await tasks.aclose()

    async def _loop(self) -> None:
        at = now()
        while self._failure is None:
            self._effects.extend(self._member.tick(at))
            self._drain()
            self._topics.watch()
            if self._member.has_ended:
                await self._callbacks.drained()
                return
            due = self._member.next_deadline()
            notified = await self._wakeup.wait(due)
            # A timer may fire a clock's tick early: what it was set for is due then.
            at = now() if notified or due is None else max(now(), due)

    def _crashed(self, cause: BaseException) -> None:
        # A crash of any part ends the whole at once, and is what `run` raises.
        self._failure = self._failure or cause
        self._wakeup.notify()

    def _feed(self, effects: Collection[fx.Effect]) -> None:
        # What the machine has decided is done at once: a user who reads on meanwhile
        # could otherwise step past a request that nobody has been told of.
        self._effects.extend(effects)
        self._drain()
        self._wakeup.notify()

    def _drain(self) -> None:
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
            self.changed.tell()
            self._parting.tell()

    def _perform(self, effect: fx.Effect) -> None:
        match effect:
            case fx.ForgetCoordinator():
                self._rpc.forget()
            case fx.ResolveTopics() | fx.RefreshTopics() | fx.NameTopics():
                self._ask("topics", lambda: self._topics.perform(effect))
            case fx.MatchTopics():
                self._topics.match_here()
            case fx.RequestRevoke():
                self._request_revoke(effect)
            case fx.Revoke() | fx.Assign() | fx.Lose():
                self._hand_over(effect)
            case fx.Report():
                self._host.failed(effect.error)
                self._first.tell()
            case fx.Fail():
                self._failure = self._failure or effect.error
                self._report()
            case fx.FallBack():
                self._fall_back(effect.error)
            case fx.Send():
                self._send(effect)

    def _fall_back(self, error: KafkaError) -> None:
        # Nothing has happened to the member but that it was refused.
        self._protocol = MemberProtocol.classic(self._rpc, self._config)
        self._callbacks.member = self._member
        self._tell_protocol(error)
        self._feed(self._topics.hand_over(self._member))

    def _send(self, effect: fx.Send) -> None:
        if effect.is_leave:
            self._leave_request = effect
        self._ask(_kind(effect), lambda: self._protocol.requests.perform(effect))

    def _ask(
        self, kind: str, work: Callable[[], Coroutine[object, object, Effects]]
    ) -> None:
        # One of a kind: the machine has given up on the one before.
        if (before := self._scopes.pop(kind, None)) is not None:
            before.cancel()
        scope = self._scopes[kind] = TaskScope()

        async def run() -> None:
            with scope:
                self._feed(await work())

        # Tasks that are being ended may have wishes, too: nobody performs them.
        if self._tasks is not None and self._tasks.is_running:
            self._tasks.start_soon(run, kind)

    def _request_revoke(self, effect: fx.RequestRevoke) -> None:
        self._host.revoke_requested(effect.partitions, effect.deadline)
        if effect.is_leaving:
            self._feed(self._member.release(effect.partitions, now()))
        else:
            self._release_idle(effect.partitions)
        self._report()

    def _release_idle(self, partitions: frozenset[TopicPartition]) -> None:
        if idle := self._host.idle(partitions):
            self._feed(self._member.release(idle, now()))

    def _hand_over(self, effect: fx.Revoke | fx.Assign | fx.Lose) -> None:
        match effect:
            case fx.Lose(partitions):
                self._lost |= partitions
                self._lost_count += len(partitions)
                self._report(lost=partitions)
                if self._callbacks.is_busy:
                    # Their turn may be far off, behind a callback of the user: what
                    # is not ours any more must not be handed out till then.
                    self._host.stop_handing_out(partitions)
            case fx.Assign(added, _):
                self._lost -= added
                self._rebalances += 1
                self._report(assigned=added)
            case fx.Revoke():
                self._report(revoked=effect.partitions)
        self._callbacks.put(effect)

    def _report(
        self,
        assigned: Collection[TopicPartition] = (),
        revoked: Collection[TopicPartition] = (),
        lost: Collection[TopicPartition] = (),
    ) -> None:
        self._cluster.observer.rebalance(
            self._member.state.name, assigned, revoked, lost
        )

    def _tell_protocol(self, cause: KafkaError | None) -> None:
        self._cluster.observer.group_protocol(
            self._rpc.group_id, self._member.group_protocol, cause
        )

    def _metadata_updated(self, view: ClusterView) -> None:
        self._feed(self._topics.updated(view))

    def _joined(self) -> None:
        self._is_joined = True
        self._first.tell()

    def _why_ended(self) -> Exception:
        if isinstance(self._failure, Exception):
            return self._failure
        return ClosedError(f"the member of {self.group_id!r} has left")


def _kind(effect: fx.Send) -> str:
    # A heartbeat that follows a leave does not replace it.
    return "leave" if effect.is_leave else type(effect).__name__
