"""A random script of classic groups: members that do right and wrong."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from kafkaio.protocol.messages import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    SyncGroupRequest,
)
from kafkaio.protocol.messages.join_group import JoinGroupRequestProtocol
from kafkaio.protocol.messages.leave_group import MemberIdentity
from kafkaio.protocol.messages.sync_group import SyncGroupRequestAssignment
from tests.integration.differential.offsets import commit, delete_offsets, fetch
from tests.integration.differential.pair import Pair, Question, Waiting
from tests.integration.differential.plain import Plain

#: Of version 0, to topic "t", without user data.
SUBSCRIPTION = bytes.fromhex("0000 00000001 0001 74 ffffffff")
_STRANGE = JoinGroupRequestProtocol(name="strange", metadata=b"?")
_RANGE = JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)
_STICKY = JoinGroupRequestProtocol(name="sticky", metadata=SUBSCRIPTION)
_MIXES = ([_RANGE], [_RANGE, _STICKY], [_STICKY, _RANGE], [_RANGE], [_STRANGE], [])


@dataclass(slots=True)
class Actor:
    """Somebody with a connection; what it knows of itself."""

    name: str
    instance: str | None = None
    member_id: str = ""
    generation: int = -1
    protocol: str | None = None
    members: tuple[str, ...] = ()
    waiting: Waiting | None = None


class ClassicScript:
    """Steps chosen by dice, on one group."""

    def __init__(self, pair: Pair, dice: Random, prefix: str) -> None:
        self.pair = pair
        self.dice = dice
        self.group = f"{prefix}-classic"
        self.actors = [Actor("a"), Actor("b"), Actor("c", instance="i")]
        self.actors.append(Actor("d", instance=dice.choice(["i", "j"])))
        #: The member id and the instance id of who leads.
        self.leader: tuple[str, str | None] = "", None

    async def run(self, steps: int) -> None:
        """Take that many steps."""
        kinds = (
            [self.join] * 8
            + [self.sync] * 5
            + [self.heartbeat] * 3
            + [self.leave, self.commit, self.commit, self.fetch, self.look, self.look]
            + [self.delete]
        )
        for _ in range(steps):
            free = [one for one in self.actors if one.waiting is None]
            if free:
                await self.dice.choice(kinds)(self.dice.choice(free))
            else:
                await self.look(self.actors[0])
            await self.settle()

    def _leads(self, actor: Actor) -> bool:
        """Whether it is the leader: it stays, for who comes next is Java's secret.

        The first member in a hash map by member ids, which the broker draws.
        """
        member_id, instance = self.leader
        return actor.member_id == member_id or (
            instance is not None and actor.instance == instance
        )

    def wrong(self, chance: float = 0.1) -> bool:
        """Whether the next thing is to be wrong."""
        return self.dice.random() < chance

    def _id(self, actor: Actor) -> str:
        return "nobody" if self.wrong() else actor.member_id

    def _generation(self, actor: Actor) -> int:
        return actor.generation + self.dice.choice([-1, 1] if self.wrong() else [0])

    async def settle(self) -> None:
        """Let actors learn what they were answered."""
        await self.pair.settle()
        for actor in self.actors:
            if actor.waiting is None or actor.waiting.answer is None:
                continue
            answer, actor.waiting = actor.waiting.answer, None
            if "generation_id" in answer:
                self._joined(actor, answer)

    def _joined(self, actor: Actor, answer: Plain) -> None:
        if answer["error_code"] in {0, 79}:
            actor.member_id = answer["member_id"]
        if answer["error_code"]:
            return
        actor.generation = answer["generation_id"]
        actor.protocol = answer["protocol_name"]
        actor.members = tuple(one["member_id"] for one in answer["members"])
        leaders = [one for one in self.actors if one.member_id == answer["leader"]]
        self.leader = answer["leader"], leaders[0].instance if leaders else None

    async def join(self, actor: Actor) -> None:
        """Join, for the first time or again, or with what must be refused."""
        version = self.dice.randint(5 if actor.instance else 0, 9)
        request = JoinGroupRequest(
            group_id="" if self.wrong(0.02) else self.group,
            session_timeout_ms=1 if self.wrong(0.05) else 60_000,
            rebalance_timeout_ms=60_000,
            member_id="" if self.wrong() else self._id(actor),
            group_instance_id=actor.instance,
            protocol_type="connect" if self.wrong(0.05) else "consumer",
            protocols=list(self.dice.choice(_MIXES[: 6 if self.wrong(0.3) else 4])),
        )
        actor.waiting = await self.pair.start(Question(request, version, actor.name))

    async def sync(self, actor: Actor) -> None:
        """Ask for the assignment; as the leader, make it."""
        version = self.dice.randint(3 if actor.instance else 0, 5)
        protocol = "other" if self.wrong(0.05) else actor.protocol
        request = SyncGroupRequest(
            group_id="" if self.wrong(0.02) else self.group,
            generation_id=self._generation(actor),
            member_id=self._id(actor),
            group_instance_id=actor.instance,
            protocol_type=None if version < 5 or self.wrong() else "consumer",
            protocol_name=None if version < 5 or self.wrong() else protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=one, assignment=b"for %d" % number)
                for number, one in enumerate(actor.members)
                if not self.wrong(0.05)
            ],
        )
        actor.waiting = await self.pair.start(Question(request, version, actor.name))

    async def heartbeat(self, actor: Actor) -> None:
        """Say that it is alive."""
        request = HeartbeatRequest(
            group_id="" if self.wrong(0.02) else self.group,
            generation_id=self._generation(actor),
            member_id=self._id(actor),
            group_instance_id=actor.instance,
        )
        version = self.dice.randint(3 if actor.instance else 0, 4)
        await self.pair.ask(request, version)

    async def leave(self, actor: Actor) -> None:
        """Leave, by one's own name or another's; from version 3 on several at once."""
        leaving = [actor, *self.dice.sample(self.actors, self.dice.randint(0, 1))]
        if any(map(self._leads, leaving)) or any(one.waiting for one in leaving):
            # Kafka never answers the SyncGroup of a member that has left.
            return
        leavers = [
            MemberIdentity(
                member_id="" if one.instance and self.wrong(0.5) else self._id(one),
                group_instance_id=one.instance,
            )
            for one in leaving
        ]
        version = self.dice.randint(3 if actor.instance else 0, 5)
        if version < 3:
            request = LeaveGroupRequest(group_id=self.group, member_id=self._id(actor))
        else:
            request = LeaveGroupRequest(group_id=self.group, members=leavers)
        await self.pair.ask(request, version)

    async def commit(self, actor: Actor) -> None:
        """Commit as a member, or as one that is none."""
        is_nobody = self.wrong()
        await commit(
            self.pair,
            self.dice,
            self.group,
            "" if is_nobody else self._id(actor),
            -1 if is_nobody else self._generation(actor),
            actor.instance,
        )

    async def fetch(self, actor: Actor) -> None:
        """Look at what was committed, or forget it."""
        del actor
        if self.wrong(0.3):
            await delete_offsets(self.pair, self.dice, self.group)
        else:
            await fetch(self.pair, self.dice, [self.group])

    async def look(self, actor: Actor) -> None:
        """Describe the group and list all."""
        del actor
        groups = [self.group, *(["no-such-group"] if self.wrong(0.3) else [])]
        describe = DescribeGroupsRequest(groups=groups)
        await self.pair.ask(describe, self.dice.randint(0, 6))
        version = self.dice.randint(0, 5)
        request = ListGroupsRequest()
        if version >= 4:
            states = ["Stable", "empty", "PreparingRebalance", "Unheard-of"]
            request.states_filter = self.dice.sample(states, self.dice.randint(0, 2))
        if version >= 5:
            kinds = ["classic", "Consumer", "unheard-of"]
            request.types_filter = self.dice.sample(kinds, self.dice.randint(0, 1))
        await self.pair.ask(request, version, pick=self._ours)

    def _ours(self, answer: Plain) -> Plain:
        groups = [one for one in answer["groups"] if one["group_id"] == self.group]
        return {**answer, "groups": groups}

    async def delete(self, actor: Actor) -> None:
        """Delete the group, which fails while it has members."""
        del actor
        request = DeleteGroupsRequest(groups_names=[self.group])
        if self.wrong(0.3):
            request.groups_names.append(self.dice.choice(["", "no-such-group"]))
        await self.pair.ask(request, self.dice.randint(0, 2))


async def classic_groups(pair: Pair, dice: Random, prefix: str) -> None:
    """JoinGroup, SyncGroup, Heartbeat, LeaveGroup, offsets, describe, list, delete."""
    await ClassicScript(pair, dice, prefix).run(40)
