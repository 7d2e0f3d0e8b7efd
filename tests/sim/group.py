"""A producer and a consumer group: what happens in a run, and its checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import anyio
from anyio.abc import TaskGroup

from kafkaio._net.transport import Dial
from kafkaio._records.batch import read_batches
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._headers import decode_request
from kafkaio.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
)
from kafkaio.protocol.messages.join_group import JoinGroupRequest
from kafkaio.protocol.messages.offset_commit import OffsetCommitRequest
from tests.sim.checker import Checker, Session
from tests.sim.injector import OTHER, FaultInjector
from tests.sim.members import Member
from tests.sim.network import Wire
from tests.sim.revocations import Watch
from tests.sim.scenario import Fault
from tests.sim.stage import LOOK_EVERY, SETTLE_SECONDS, Stage, Tally
from tests.sim.user import GROUP, TOPIC
from tests.sim.writer import Writer

__all__ = ["GroupPlay"]

#: Seconds until every partition must have one settled owner.
_ASSIGN_SECONDS: Final = 200.0
#: Requests that commit, or that report the partitions of a member.
_WATCHED: Final = {
    ApiKey.OFFSET_COMMIT,
    ApiKey.JOIN_GROUP,
    ApiKey.LEAVE_GROUP,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
}
_READ_BYTES: Final = 1 << 20


class GroupPlay:
    """A producer writes to a topic, and the members of one group read it.

    Args:
        stage: the cluster, the network and the clock.
    """

    def __init__(self, stage: Stage) -> None:
        self.scenario = stage.scenario
        self._stage = stage
        self._broker = stage.broker
        self.checker = Checker(
            self, stage.scenario.partitions, stage.now, stage.violated
        )
        self._members: list[Member] = []
        self._is_settled = False
        self._tasks: TaskGroup | None = None

    @property
    def tally(self) -> Tally:
        """What has happened."""
        found = self.checker
        return Tally(found.acknowledged, found.failed, found.delivered, found.repeated)

    def check_end(self) -> None:
        """Check what is left at the end."""
        self.checker.check_acknowledged()

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
        return self._stage.bootstrap_servers

    def dial_of(self, client: str) -> Dial:
        """Return how a client connects to the cluster."""
        return self._stage.dial_of(client)

    def say(self, what: str) -> None:
        """Write a line to the trace."""
        self._stage.say(what)

    def vanished(self, client: str) -> None:
        """A process has crashed: nothing it sent later reaches the cluster."""
        self._stage.vanished(client)

    # ---- what is noticed ---------------------------------------------------------

    def wrote(self, wire: Wire, frame: bytes) -> None:
        """Look at a request that leaves a client."""
        api = int.from_bytes(frame[:2], "big")
        if api in _WATCHED:
            self._watch(wire.client, frame, lambda: wire.is_open)

    def received(self, wire: Wire, frame: bytes) -> None:
        """Answers are not looked at."""

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

    async def work(self, faults: Sequence[Fault]) -> None:
        """Let everything happen, and wait until all is read and committed."""
        writer = Writer(self)
        async with anyio.create_task_group() as self._tasks:
            self._tasks.start_soon(writer.run)
            for _ in range(self.scenario.members):
                self._enter()
            injector = FaultInjector(
                self._broker,
                self._stage.network,
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
        watch = Watch(self.checker, self._stage.now, goes_on=goes_on)
        while not self._is_settled:
            await anyio.sleep(LOOK_EVERY)
            watch.look(is_calm=injector.is_calm)

    async def _settle(self) -> None:
        """Wait until every partition is assigned, read and committed."""
        for law, left, seconds in (
            ("never assigned", self.checker.unassigned, _ASSIGN_SECONDS),
            ("never read", self.checker.unread, SETTLE_SECONDS),
            ("never committed", self.checker.uncommitted, SETTLE_SECONDS),
        ):
            deadline = self._stage.now() + seconds
            while there := left():
                if self._stage.now() > deadline:
                    self.checker.break_law(law, f"by partition: {there}")
                await anyio.sleep(LOOK_EVERY)
