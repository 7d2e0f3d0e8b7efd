"""One run of a scenario: cluster, producer and group on one loop, on virtual time."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import anyio
from anyio.abc import TaskGroup

from kafkaio._net.memory import MemoryTransport
from kafkaio._net.transport import Dial
from kafkaio._records.batch import read_batches
from kafkaio._runtime import clock
from kafkaio.protocol.api_keys import ApiKey
from kafkaio.protocol.headers import decode_request
from kafkaio.protocol.message import Buffer
from kafkaio.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
)
from kafkaio.protocol.messages.join_group import JoinGroupRequest
from kafkaio.protocol.messages.offset_commit import OffsetCommitRequest
from kafkaio.testing.broker.group_config import GroupConfig
from kafkaio.testing.embedded import Broker
from tests.sim.checker import Checker, Session
from tests.sim.injector import OTHER, FaultInjector
from tests.sim.loop import VirtualClockLoop
from tests.sim.members import (
    HEARTBEAT_SECONDS,
    SESSION_SECONDS,
    Member,
)
from tests.sim.network import Network
from tests.sim.revocations import Watch
from tests.sim.scenario import Fault, Scenario, draw_faults
from tests.sim.trace import Trace
from tests.sim.user import GROUP, TOPIC
from tests.sim.violation import Violation
from tests.sim.writer import Writer

__all__ = ["Outcome", "run"]

#: Seconds since the Unix epoch at which every run begins.
_EPOCH: Final = 1_750_000_000
#: Seconds until everything must be read and committed after the last fault.
_SETTLE_SECONDS: Final = 300.0
_LOOK_EVERY: Final = 1.0
#: Seconds until every partition must have one settled owner.
_ASSIGN_SECONDS: Final = 200.0
#: Seconds for bytes in flight to arrive, after everything was closed.
_DRAIN_SECONDS: Final = 30.0
_LENGTH_SIZE: Final = 4
#: Requests that commit, or that report the partitions of a member.
_WATCHED: Final = {
    ApiKey.OFFSET_COMMIT,
    ApiKey.JOIN_GROUP,
    ApiKey.LEAVE_GROUP,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
}
_READ_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one run.

    Attributes:
        scenario: the scenario.
        faults: its schedule.
        violations: the laws that were broken; the run ends with the first.
        digest: equal for runs in which the same happened at the same times.
        seconds: simulated seconds.
        acknowledged: the number of acknowledged records.
        failed: the number of failed deliveries, whose records may have been written.
        delivered: the number of records that consumers returned.
        repeated: how many of those had been returned before.
        requests: the number of requests that clients sent.
        last_lines: the last lines of the trace.
    """

    scenario: Scenario
    faults: tuple[Fault, ...]
    violations: tuple[Violation, ...]
    digest: str
    seconds: float
    acknowledged: int
    failed: int
    delivered: int
    repeated: int
    requests: int
    last_lines: tuple[str, ...]


def run(scenario: Scenario, faults: Sequence[Fault] | None = None) -> Outcome:
    """Run a scenario once, until its end or the first violation.

    A run does not depend on the time of day, on other threads or on the order of sets:
    the same scenario and faults give the same digest in every process. No event loop
    may be running in this thread.

    Args:
        scenario: the scenario.
        faults: the schedule; by default it is drawn from the scenario's seed.
    """
    schedule = draw_faults(scenario) if faults is None else tuple(faults)
    runner = asyncio.Runner(loop_factory=VirtualClockLoop)
    loop = runner.get_loop()
    world = _World(scenario, loop.time)
    loop.set_exception_handler(world.unhandled)

    def wall_ns() -> int:
        return _EPOCH * 10**9 + round(loop.time() * 10**9)

    with clock.replaced(wall_ns, scenario.rng("client")):
        try:
            runner.run(world.live(schedule))
        except RuntimeError as error:
            # Raised by the loop itself: a deadlock or a livelock.
            world.stuck(error)
        finally:
            with suppress(RuntimeError):  # tasks may still be stuck
                runner.close()
            loop.close()
            gc.collect()  # reports coroutines that were never awaited
    return Outcome(
        scenario,
        schedule,
        tuple(world.violations),
        world.trace.digest,
        loop.time(),
        world.checker.acknowledged,
        world.checker.failed,
        world.checker.delivered,
        world.checker.repeated,
        world.requests,
        tuple(world.trace.last),
    )


class _World:
    """Everything in one run."""

    def __init__(self, scenario: Scenario, now: Callable[[], float]) -> None:
        self.scenario = scenario
        self.violations: list[Violation] = []
        self.trace = Trace()
        self.requests = 0
        self.checker = Checker(self, scenario.partitions, now, self._violated)
        self._now = now
        self._network = Network(
            scenario.rng("network").getrandbits(64), scenario.latency, self._on_write
        )
        self._broker = Broker(
            nodes=scenario.nodes,
            topics={TOPIC: scenario.partitions, OTHER: 1},
            memory_transport=self._network,
            groups=GroupConfig(
                consumer_session_timeout=SESSION_SECONDS,
                consumer_heartbeat_interval=HEARTBEAT_SECONDS,
            ),
        )
        self._members: list[Member] = []
        self._is_settled = False
        self._all: anyio.CancelScope | None = None
        self._tasks: TaskGroup | None = None

    # ---- what the checker asks ------------------------------------------------------

    def written(self, partition: int, start: int) -> list[bytes]:
        """The values in a partition's log from an offset on."""
        log = self._broker.topics[TOPIC].partitions[partition].log
        values: list[bytes] = []
        while start < log.end_offset:
            for batch in read_batches(log.read(start, _READ_BYTES)):
                records = batch.decode(TOPIC, partition, start)
                values.extend(record.value or b"" for record in records)
                start = batch.last_offset + 1
        return values

    def committed(self, partition: int) -> int:
        """The group's committed offset, -1 for none."""
        found = self._broker.control.committed(GROUP, (TOPIC, partition))
        return -1 if found is None else found

    def is_member(self, member_id: str) -> bool:
        """Whether the group coordinator has a member of this id."""
        return member_id in self._broker.control.members(GROUP)

    # ---- what members ask --------------------------------------------------------

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of the cluster."""
        return self._broker.bootstrap_servers

    def dial_of(self, client: str) -> Dial:
        """Return how a client connects to the cluster."""
        return self._network.dial_of(client)

    def say(self, what: str) -> None:
        """Write a line to the trace."""
        self.trace.say(self._now(), what)

    def vanished(self, client: str) -> None:
        """A process has crashed: nothing it sent later reaches the cluster."""
        self._network.remove(client)

    # ---- what is noticed ---------------------------------------------------------

    def _violated(self, violation: Violation) -> None:
        self.violations.append(violation)
        self.trace.say(violation.at, f"VIOLATION {violation.law}: {violation.detail}")
        if self._all is not None:
            self._all.cancel()
            # The order in which cancelled tasks end is not defined.
            self.trace.end()

    def stuck(self, error: RuntimeError) -> None:
        """The loop has stopped: it can run nothing any more."""
        self._all = None
        self.checker.break_law("stuck", str(error))

    def unhandled(
        self, loop: asyncio.AbstractEventLoop, context: dict[str, object]
    ) -> None:
        """An error was reported to the event loop, because no task awaits it."""
        del loop
        error = context.get("exception")
        self.checker.break_law("unhandled", f"{context.get('message')}: {error!r}")

    def _on_write(
        self, client: str, end: MemoryTransport, port: int, parts: Sequence[Buffer]
    ) -> None:
        frame = b"".join(parts)
        self.requests += 1
        self.trace.add(self._now(), f"{client} to {port}", frame)
        api = int.from_bytes(frame[_LENGTH_SIZE : _LENGTH_SIZE + 2], "big")
        if api in _WATCHED:
            self._watch(client, frame[_LENGTH_SIZE:], lambda: end.is_open)

    def _watch(self, client: str, frame: bytes, is_open: Callable[[], bool]) -> None:
        session = next(
            (m.session for m in self._members if m.client_id == client), None
        )
        if session is None or session.is_over:
            return
        _, request = decode_request(frame)
        if isinstance(request, OffsetCommitRequest):
            offsets = {
                part.partition_index: part.committed_offset
                for topic in request.topics
                if topic.name != OTHER
                for part in topic.partitions
            }
            self.checker.committing(session, offsets, is_open)
        elif isinstance(request, ConsumerGroupHeartbeatRequest):
            self._heard(session, request)
        else:
            if isinstance(request, JoinGroupRequest):
                session.joins_as = request.member_id
            self.checker.reported(session)

    def _heard(self, session: Session, beat: ConsumerGroupHeartbeatRequest) -> None:
        """Most heartbeats do not list partitions; the last one releases all."""
        if beat.member_epoch < 0:
            self.checker.reported(session)
        elif beat.topic_partitions is not None:
            topic_id = self._broker.topics[TOPIC].topic_id
            mine = [t for t in beat.topic_partitions if t.topic_id == topic_id]
            self.checker.reported(session, {p for one in mine for p in one.partitions})

    # ---- its life ----------------------------------------------------------------

    async def live(self, faults: Sequence[Fault]) -> None:
        """Run the whole scenario, and check what is left at the end."""
        loop = asyncio.get_running_loop()
        over_at = self.scenario.seconds + 2 * _SETTLE_SECONDS
        timers = [
            loop.call_at(over_at, self._never_ended),
            # For tasks that ignore their cancellation.
            loop.call_at(over_at + _SETTLE_SECONDS, loop.stop),
        ]
        async with self._broker:
            with anyio.CancelScope() as self._all:
                await self._work(faults)
                self.checker.check_acknowledged()
                await anyio.sleep(_DRAIN_SECONDS)
                if left := self._network.open_links:
                    self.checker.break_law("connections left", ", ".join(left))
            self._all = None
        for timer in timers:
            timer.cancel()
        left_tasks = asyncio.all_tasks() - {asyncio.current_task()}
        if left_tasks:
            names = sorted(task.get_name() for task in left_tasks)
            self.checker.break_law("tasks left", ", ".join(names))

    def _never_ended(self) -> None:
        names = sorted({task.get_name() for task in asyncio.all_tasks()})
        self.checker.break_law("never ended", ", ".join(names))

    async def _work(self, faults: Sequence[Fault]) -> None:
        writer = Writer(self)
        async with anyio.create_task_group() as self._tasks:
            self._tasks.start_soon(writer.run)
            for _ in range(self.scenario.members):
                self._enter()
            injector = FaultInjector(
                self._broker,
                self._network,
                self._members,
                self._enter,
                self._grow,
                self.say,
            )
            self._tasks.start_soon(self._watch_revokes, injector)
            await injector.run(faults, self.scenario.seconds)
            writer.stop()
            self.say("-- all faults have ended, and nothing is written")
            await self._settle()
            self._is_settled = True
            for member in self._members:
                member.leave(None)

    def _enter(self) -> Member:
        assert self._tasks is not None
        member = Member(self, len(self._members))
        self._members.append(member)
        self._tasks.start_soon(member.live, name=member.name)
        return member

    def _grow(self, count: int) -> None:
        self._broker.control.add_partitions(TOPIC, count)
        self.checker.grew(count)

    async def _watch_revokes(self, injector: FaultInjector) -> None:
        goes_on = self.scenario.group_protocol != "eager"
        watch = Watch(self.checker, self._now, goes_on=goes_on)
        while not self._is_settled:
            await anyio.sleep(_LOOK_EVERY)
            watch.look(is_calm=injector.is_calm)

    async def _settle(self) -> None:
        """Wait until every partition is assigned, read and committed."""
        for law, left, seconds in (
            ("never assigned", self.checker.unassigned, _ASSIGN_SECONDS),
            ("never read", self.checker.unread, _SETTLE_SECONDS),
            ("never committed", self.checker.uncommitted, _SETTLE_SECONDS),
        ):
            deadline = self._now() + seconds
            while there := left():
                if self._now() > deadline:
                    self.checker.break_law(law, f"by partition: {there}")
                await anyio.sleep(_LOOK_EVERY)
