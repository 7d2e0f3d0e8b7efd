"""Injects the faults of a schedule, and ends them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from typing import Final, Protocol, TypeAlias

import anyio

from kafkaio.testing._broker import faults as broken
from kafkaio.testing._embedded import Broker
from tests.sim.checker import Session
from tests.sim.network import Network
from tests.sim.scenario import Fault, Kind
from tests.sim.user import GROUP, TOPIC
from tests.sim.writer import WRITER

__all__ = ["OTHER", "Action", "FaultInjector", "Subject"]

#: Seconds after which a fault of requests ends, whether or not it took effect.
_RULE_ENDS: Final = 40.0
#: Injects one fault, and returns when it has ended.
Action: TypeAlias = Callable[[Fault], Coroutine[object, object, None]]
#: The most additional seconds on a slow connection.
_SLOWNESS: Final = 2.0
#: Seconds between two seeks, and the most records of a seek back.
_SEEK_EVERY: Final = 1.7
_SEEK_BACK: Final = 15
#: Every client, to the network.
_ALL: Final = ""
#: A topic without records.
OTHER: Final = "returns"
#: Faults that do not keep the other members from reading what they are assigned.
_HARMLESS: Final = {
    Kind.MOVE_COORDINATOR,
    Kind.CRASH,
    Kind.CANCEL,
    Kind.LEAVE,
    Kind.JOIN,
    Kind.STALL,
    Kind.REBALANCE,
    Kind.EXPEL,
    Kind.SUBSCRIBE,
    Kind.GROW,
}
#: Seconds after which clients have recovered from any other fault.
_RECOVERS: Final = 40.0


class Subject(Protocol):
    """A process that faults befall."""

    @property
    def client_id(self) -> str:
        """The name of its connections."""

    @property
    def session(self) -> Session | None:
        """Its consumer, where it can seek."""

    @property
    def seeks_due(self) -> list[tuple[int, int]]:
        """Seeks to do: the partition, and the number of records to go back by."""

    def crash(self, seconds: float) -> None:
        """End the process at once, and start another after a while."""

    def cancel(self, seconds: float) -> None:
        """Cancel the task, and start another after a while."""

    def leave(self, seconds: float | None) -> None:
        """End normally, and start another after a while; None for never."""

    def stall(self, seconds: float) -> None:
        """Make the user's code take that long for the next record."""

    def end_stall(self) -> None:
        """End a stall of the user's code."""

    def subscribe(self, topics: Collection[str]) -> None:
        """Change the subscription; no topics means to unsubscribe."""


class FaultInjector:
    """Injects faults into the cluster, the network and the members.

    Args:
        broker: the cluster.
        network: the network.
        members: the members of the group; the list may grow.
        enter: starts another member, and returns it.
        grow: adds partitions.
        say: writes a line to the trace.
        more: further actions by their kinds; each returns when its fault has ended, or
            gets how long it may last from `lasts`.
    """

    def __init__(
        self,
        broker: Broker,
        network: Network,
        members: Sequence[Subject],
        enter: Callable[[], Subject],
        grow: Callable[[int], None],
        say: Callable[[str], None],
        more: Mapping[Kind, Action] | None = None,
    ) -> None:
        self._broker = broker
        self._control = broker.control
        self._network = network
        self._members = members
        self._enter = enter
        self._grow_by = grow
        self._say = say
        self._node_ids = sorted(broker.nodes)
        self._healing = anyio.Event()
        self._actions: Mapping[Kind, Action] = {
            **(more or {}),
            Kind.KILL: self._take_down,
            Kind.STOP: self._take_down,
            Kind.PAUSE: self._pause,
            Kind.CUT: self._cut,
            Kind.SLOW: self._slow_down,
            Kind.JOIN: self._join,
            Kind.ERROR: self._break_requests,
            Kind.DELAY: self._break_requests,
            Kind.DISCONNECT_BEFORE: self._break_requests,
            Kind.DISCONNECT_AFTER: self._break_requests,
            Kind.HALF_FRAME: self._break_requests,
            Kind.DUPLICATE: self._break_requests,
            Kind.DROP: self._break_requests,
            Kind.CRASH: self._befall_member,
            Kind.CANCEL: self._befall_member,
            Kind.LEAVE: self._befall_member,
            Kind.STALL: self._befall_member,
            Kind.RESET: self._befall_member,
            Kind.SEEK: self._seek,
            Kind.MOVE_LEADER: self._move_leader,
            Kind.MOVE_COORDINATOR: self._move_coordinator,
            Kind.REBALANCE: self._disturb_group,
            Kind.EXPEL: self._disturb_group,
            Kind.FREEZE: self._freeze,
            Kind.SUBSCRIBE: self._subscribe,
            Kind.GROW: self._grow,
        }
        self._harmful = 0
        self._calm_at = 0.0

    @property
    def is_calm(self) -> bool:
        """Whether no fault keeps clients from reading, or has recently."""
        return not self._harmful and anyio.current_time() >= self._calm_at

    async def run(self, faults: Sequence[Fault], until: float) -> None:
        """Inject each fault at its time; return when all have ended."""
        async with anyio.create_task_group() as tasks:
            for fault in faults:
                await anyio.sleep_until(fault.at)
                self._say(f"-- {fault}")
                tasks.start_soon(self._do, fault)
            await anyio.sleep_until(until)
            self._healing.set()
        self._broker.faults.clear()
        for member in self._members:
            member.end_stall()

    async def _do(self, fault: Fault) -> None:
        is_harmful = fault.kind not in _HARMLESS
        self._harmful += is_harmful
        await self._actions[fault.kind](fault)
        if is_harmful:
            self._harmful -= 1
            self._calm_at = anyio.current_time() + _RECOVERS

    async def lasts(self, seconds: float) -> None:
        """Wait so long, or until all faults end."""
        with anyio.move_on_after(seconds):
            await self._healing.wait()

    # ---- nodes -------------------------------------------------------------------

    async def _take_down(self, fault: Fault) -> None:
        node_id = self._node_ids[fault.target]
        up = [node.node_id for node in self._broker.nodes.values() if node.is_up]
        if node_id not in up or len(up) == 1:
            return
        if fault.kind is Kind.KILL:
            await self._control.kill(node_id)
        else:
            await self._control.stop(node_id)
        await self.lasts(fault.seconds)
        await self._control.restart(node_id)

    async def _pause(self, fault: Fault) -> None:
        port = self._broker.nodes[self._node_ids[fault.target]].port
        self._network.cut(_ALL, port)
        await self.lasts(fault.seconds)
        self._network.heal(_ALL, port)

    async def _cut(self, fault: Fault) -> None:
        who, port = self._pair(fault)
        self._network.cut(who, port)
        await self.lasts(fault.seconds)
        self._network.heal(who, port)

    async def _slow_down(self, fault: Fault) -> None:
        who, port = self._pair(fault)
        self._network.slow_down(who, port, _SLOWNESS)
        await self.lasts(fault.seconds)
        self._network.slow_down(who, port, 0.0)

    def _pair(self, fault: Fault) -> tuple[str, int]:
        """Return a client, which may be the writer, and the port of a node."""
        member, number = divmod(fault.target, len(self._node_ids))
        is_member = member < len(self._members)
        who = self._members[member].client_id if is_member else WRITER
        return who, self._broker.nodes[self._node_ids[number]].port

    async def _move_leader(self, fault: Fault) -> None:
        count = len(self._broker.topics[TOPIC].partitions)
        which, partition = divmod(fault.target, count)
        node_id = self._node_ids[which % len(self._node_ids)]
        if self._broker.nodes[node_id].is_up:
            self._control.move_leader((TOPIC, partition), node_id)

    async def _move_coordinator(self, fault: Fault) -> None:
        node_id = self._node_ids[fault.target]
        if self._broker.nodes[node_id].is_up:
            self._control.move_coordinator(GROUP, node_id)

    # ---- requests ----------------------------------------------------------------

    async def _break_requests(self, fault: Fault) -> None:
        rule = self._broker.faults.on(fault.api, _broken(fault))
        await self.lasts(_RULE_ENDS)
        self._broker.faults.remove(rule)

    # ---- members -----------------------------------------------------------------

    async def _befall_member(self, fault: Fault) -> None:
        member = self._members[fault.target]
        match fault.kind:
            case Kind.CRASH:
                member.crash(fault.seconds)
            case Kind.CANCEL:
                member.cancel(fault.seconds)
            case Kind.LEAVE:
                member.leave(fault.seconds)
            case Kind.STALL:
                member.stall(fault.seconds)
            case _:
                self._network.reset(member.client_id)

    async def _freeze(self, fault: Fault) -> None:
        who = self._members[fault.target].client_id
        ports = [node.port for node in self._broker.nodes.values()]
        for port in ports:
            self._network.cut(who, port)
        await self.lasts(fault.seconds)
        for port in ports:
            self._network.heal(who, port)

    async def _subscribe(self, fault: Fault) -> None:
        member = self._members[fault.target]
        # Half of the time it unsubscribes.
        member.subscribe([TOPIC, OTHER] if int(fault.at) % 2 else [])
        await self.lasts(fault.seconds)
        member.subscribe([TOPIC])

    async def _grow(self, fault: Fault) -> None:
        self._grow_by(1 + fault.target)

    async def _seek(self, fault: Fault) -> None:
        count = len(self._broker.topics[TOPIC].partitions)
        partition = fault.target % count
        for number in range(1 + int(fault.seconds / _SEEK_EVERY)):
            for member in self._members:
                if member.session is not None and partition in member.session.held:
                    member.seeks_due.append((partition, number % _SEEK_BACK))
            await self.lasts(_SEEK_EVERY)

    async def _join(self, fault: Fault) -> None:
        member = self._enter()
        await self.lasts(fault.seconds)
        member.leave(None)

    async def _disturb_group(self, fault: Fault) -> None:
        members = self._control.members(GROUP)
        if not members:
            return
        if fault.kind is Kind.REBALANCE:
            self._control.force_rebalance(GROUP)
        else:
            self._control.expel_member(GROUP, members[fault.target % len(members)])


def _broken(fault: Fault) -> broken.Fault:
    match fault.kind:
        case Kind.ERROR:
            return broken.error(fault.code, fault.times)
        case Kind.DELAY:
            return broken.delay(fault.seconds, fault.times)
        case Kind.DISCONNECT_BEFORE:
            return broken.disconnect_before_write(fault.times)
        case Kind.DISCONNECT_AFTER:
            return broken.disconnect_after_write(fault.times)
        case Kind.DUPLICATE:
            return broken.duplicate(fault.times)
        case Kind.DROP:
            return broken.drop(fault.times)
        case _:
            return broken.half_frame(fault.times)
