"""A random script of a group that changes its protocol while it has members (KIP-848).

Who leads a classic group that was another before is Java's secret: the first member in
a hash map, by ids that the broker draws. So nothing here depends on it: every member
sends the same assignment, and says something new whenever it joins.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random

from kafkaio.protocol._codec import encode
from kafkaio.protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    SyncGroupRequest,
)
from kafkaio.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from kafkaio.protocol.messages.consumer_protocol_assignment import (
    ConsumerProtocolAssignment,
    TopicPartition as AssignedTopic,
)
from kafkaio.protocol.messages.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
    TopicPartition as OwnedTopic,
)
from kafkaio.protocol.messages.join_group import JoinGroupRequestProtocol
from kafkaio.protocol.messages.leave_group import MemberIdentity
from kafkaio.protocol.messages.sync_group import SyncGroupRequestAssignment
from kafkaio.testing._groups.embedded_protocol import read_assignment
from tests.integration.differential.heartbeats import beat, joining
from tests.integration.differential.offsets import PARTITIONS, TOPICS, commit, fetch
from tests.integration.differential.pair import Pair, Question, Waiting
from tests.integration.differential.plain import Plain

_VERSION = 1
_CLASSIC = "classic"
_CONSUMER = "consumer"
#: The member is gone, or has to begin anew.
_LOST = {25, 82, 110}
_MEMBER_ID_REQUIRED = 79
_REBALANCE = 27
_SHORT_MS = 700


@dataclass(slots=True)
class Actor:
    """Somebody with a connection; what it knows of itself."""

    name: str
    fixed_id: str
    instance: str | None = None
    speaks: str | None = None
    member_id: str = ""
    epoch: int = -1
    owned: dict[str, list[int]] = field(default_factory=dict)
    waiting: Waiting | None = None
    has_to_sync: bool = False

    def forget(self) -> None:
        """Be nobody again."""
        self.speaks, self.member_id, self.epoch = None, "", -1
        self.owned, self.has_to_sync = {}, False


class MigrationScript:
    """Steps chosen by dice, on one group."""

    def __init__(self, pair: Pair, dice: Random, prefix: str) -> None:
        self.pair = pair
        self.dice = dice
        self.group = f"{prefix}-migration"
        # Range sorts members by their ids: a broker's begin with the name, too.
        instances = [None, None, "i", dice.choice([None, "j"])]
        self.actors = [
            Actor(name, f"{name}-{prefix}.", instance)
            for name, instance in zip("abcd", instances, strict=True)
        ]
        self._numbers = count()

    async def run(self, steps: int) -> None:
        """Take that many steps."""
        kinds = (
            [self.join_classic] * 5
            + [self.join_consumer] * 3
            + [self.keep_up] * 14
            + [self.leave, self.leave, self.stray, self.stray]
            + [self.commit, self.fetch, self.look, self.look]
        )
        for _ in range(steps):
            free = [one for one in self.actors if one.waiting is None]
            if free:
                await self.dice.choice(kinds)(self.dice.choice(free))
            await self.settle()

    def wrong(self, chance: float = 0.1) -> bool:
        """Whether the next thing is to be wrong."""
        return self.dice.random() < chance

    async def settle(self) -> None:
        """Let actors learn what they were answered."""
        await self.pair.settle()
        for actor in self.actors:
            if actor.waiting is not None and actor.waiting.answer is not None:
                answer, actor.waiting = actor.waiting.answer, None
                if "generation_id" in answer:
                    self._joined(actor, answer)
                else:
                    self._synced(actor, answer)

    def _joined(self, actor: Actor, answer: Plain) -> None:
        error = answer["error_code"]
        if error in {0, _MEMBER_ID_REQUIRED}:
            actor.speaks, actor.member_id = _CLASSIC, answer["member_id"]
        elif error in _LOST:
            actor.forget()
        if not error:
            actor.epoch = answer["generation_id"]
            actor.has_to_sync = True

    def _synced(self, actor: Actor, answer: Plain) -> None:
        actor.has_to_sync = False
        if answer["error_code"] in _LOST:
            actor.forget()
        elif not answer["error_code"]:
            assigned = read_assignment(bytes(answer["assignment"]))
            actor.owned = {
                one.topic: one.partitions for one in assigned.assigned_partitions
            }

    # The classic protocol

    async def _is_mixed(self) -> bool:
        request = ConsumerGroupDescribeRequest(group_ids=[self.group])
        (found,) = (await self.pair.ask(request, 1))["groups"]
        return not found["error_code"] and bool(found["members"])

    async def join_classic(self, actor: Actor) -> None:
        """Join, or join again, by the classic protocol."""
        if actor.speaks == _CONSUMER and actor.instance is None:
            # It would leave a member behind that nobody speaks for.
            return
        member_id = actor.member_id if actor.speaks == _CLASSIC else ""
        if not member_id and actor.instance is None and await self._is_mixed():
            member_id = actor.fixed_id
        await self._send_join(actor, member_id)

    async def _send_join(self, actor: Actor, member_id: str) -> None:
        metadata = self._subscription(actor)
        protocols = self.dice.choice([["range"], ["range"], ["range", "roundrobin"]])
        if self.wrong(0.05):
            protocols = self.dice.choice([[], ["strange"]])
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=60_000,
            rebalance_timeout_ms=60_000,
            member_id=member_id,
            group_instance_id=actor.instance,
            protocol_type="connect" if self.wrong(0.03) else "consumer",
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=metadata)
                for name in protocols
            ],
        )
        version = self.dice.randint(5, 9)
        question = Question(request, version, actor.name, _without_leader)
        actor.waiting = await self.pair.start(question)

    def _subscription(self, actor: Actor) -> bytes:
        topics = self.dice.choice([["t"], ["t", "u"], ["t", "u"]])
        owned = actor.owned if self.wrong(0.8) else {}
        said = ConsumerProtocolSubscription(
            topics=topics,
            user_data=b"%d" % next(self._numbers),
            owned_partitions=[
                OwnedTopic(topic=name, partitions=numbers)
                for name, numbers in owned.items()
            ],
        )
        return _VERSION.to_bytes(2) + encode(said, _VERSION)

    async def sync(self) -> None:
        """Let all who have joined ask for their partitions, at once."""
        syncing = [one for one in self.actors if one.has_to_sync and not one.waiting]
        assignments = self._assignments([one for one in self.actors if one.member_id])
        for actor in syncing:
            request = SyncGroupRequest(
                group_id=self.group,
                generation_id=actor.epoch,
                member_id=actor.member_id,
                group_instance_id=actor.instance,
                protocol_type="consumer",
                protocol_name="range",
                assignments=assignments,
            )
            question = Question(request, 5, actor.name, _by_topic)
            actor.waiting = await self.pair.start(question)

    def _assignments(self, actors: Sequence[Actor]) -> list[SyncGroupRequestAssignment]:
        version = _VERSION.to_bytes(2)
        return [
            SyncGroupRequestAssignment(
                member_id=actor.member_id,
                assignment=version
                + encode(
                    ConsumerProtocolAssignment(
                        assigned_partitions=[
                            AssignedTopic(topic=topic, partitions=mine)
                            for topic in TOPICS
                            if (mine := list(range(place, PARTITIONS, len(actors))))
                        ]
                    ),
                    _VERSION,
                ),
            )
            for place, actor in enumerate(actors)
        ]

    async def _heartbeat(self, actor: Actor) -> None:
        request = HeartbeatRequest(
            group_id=self.group,
            generation_id=self._epoch(actor),
            member_id=actor.member_id,
            group_instance_id=actor.instance,
        )
        answer = await self.pair.ask(request, self.dice.randint(3, 4))
        if answer["error_code"] in _LOST:
            actor.forget()
        elif answer["error_code"] == _REBALANCE and self.wrong(0.8):
            await self._send_join(actor, actor.member_id)

    # The consumer protocol

    async def join_consumer(self, actor: Actor) -> None:
        """Join, or join again, by the consumer protocol."""
        if actor.speaks == _CLASSIC and actor.instance is None and actor.member_id:
            return
        if actor.speaks != _CONSUMER:
            actor.member_id = actor.fixed_id
        request = joining(self.group, actor.member_id, actor.instance)
        request.subscribed_topic_names = self.dice.choice([["t"], ["t", "u"]])
        request.server_assignor = "range"
        await self._send_beat(actor, request)

    def _beat(self, actor: Actor, epoch: int) -> ConsumerGroupHeartbeatRequest:
        return beat(self.group, actor.member_id, epoch, actor.instance)

    async def _send_beat(
        self, actor: Actor, request: ConsumerGroupHeartbeatRequest
    ) -> None:
        answer = await self.pair.ask(request, 1)
        if answer["error_code"]:
            if answer["error_code"] in _LOST or request.member_epoch == 0:
                actor.forget()
            return
        actor.speaks, actor.has_to_sync = _CONSUMER, False
        actor.epoch = answer["member_epoch"]
        if answer["assignment"] is not None:
            names = {topic_id: name for name, topic_id in self.pair.ids.items()}
            actor.owned = {
                names[one["topic_id"]]: one["partitions"]
                for one in answer["assignment"]["topic_partitions"]
            }

    async def _acknowledge(self, actor: Actor) -> None:
        request = self._beat(actor, self._epoch(actor))
        if self.wrong(0.7):
            request.topic_partitions = [
                ConsumerGroupHeartbeatRequestTopicPartitions(
                    topic_id=self.pair.ids[name], partitions=numbers
                )
                for name, numbers in actor.owned.items()
            ]
        await self._send_beat(actor, request)

    # Both

    def _epoch(self, actor: Actor) -> int:
        return actor.epoch + self.dice.choice([-1, 1] if self.wrong(0.03) else [0])

    async def keep_up(self, actor: Actor) -> None:
        """Do what a client does."""
        if any(one.has_to_sync and not one.waiting for one in self.actors):
            await self.sync()
        elif actor.speaks == _CONSUMER:
            await self._acknowledge(actor)
        elif actor.speaks == _CLASSIC and actor.epoch < 0:
            await self._send_join(actor, actor.member_id)
        elif actor.speaks == _CLASSIC:
            await self._heartbeat(actor)

    async def leave(self, actor: Actor) -> None:
        """Leave, by the protocol that one speaks or by the classic one."""
        if not actor.member_id:
            return
        if actor.speaks == _CONSUMER and self.wrong(0.7):
            epoch = self.dice.choice([-1, -2] if actor.instance else [-1])
            await self.pair.ask(self._beat(actor, epoch), 1)
        else:
            leaving = [actor]
            others = [one for one in self.actors if one.member_id and not one.waiting]
            if self.wrong(0.3):
                leaving = others or leaving
            members = [
                MemberIdentity(member_id=one.member_id, group_instance_id=one.instance)
                for one in leaving
            ]
            request = LeaveGroupRequest(group_id=self.group, members=members)
            await self.pair.ask(request, 5)
            for one in leaving:
                one.forget()
        actor.forget()

    async def stray(self, actor: Actor) -> None:
        """Speak for somebody else, or by the protocol that one does not speak."""
        other = self.dice.choice(self.actors)
        kind = self.dice.randrange(3)
        if kind == 0:
            beat = HeartbeatRequest(
                group_id=self.group,
                member_id=other.member_id,
                group_instance_id=actor.instance,
                generation_id=other.epoch,
            )
            await self.pair.ask(beat, 4)
        elif kind == 1 and other.speaks == _CONSUMER:
            sync = SyncGroupRequest(
                group_id=self.group,
                member_id=other.member_id,
                generation_id=other.epoch,
                protocol_type="consumer",
                protocol_name="range",
            )
            await self.pair.ask(sync, 5)
        elif kind == 2:
            request = self._beat(other, max(other.epoch, 1))
            request.instance_id = actor.instance
            # It makes a classic member one of the other protocol. If that is the only
            # one left, and names no assignor, the group falls back to the uniform one,
            # whose choice depends on the ids that each broker drew.
            request.server_assignor = "range"
            if other.speaks != _CONSUMER and other.member_id:
                await self.pair.ask(request, 1)

    async def commit(self, actor: Actor) -> None:
        """Commit as a member, or as one that is none."""
        member, epoch = actor.member_id, self._epoch(actor)
        if self.wrong():
            member, epoch = "", -1
        await commit(self.pair, self.dice, self.group, member, epoch, actor.instance)

    async def fetch(self, actor: Actor) -> None:
        """Look up what was committed, as a member or as anybody."""
        if self.wrong(0.5) or not actor.member_id:
            await fetch(self.pair, self.dice, [self.group])
        else:
            epoch = max(self._epoch(actor), 0)
            await fetch(self.pair, self.dice, [self.group], actor.member_id, epoch)

    async def look(self, actor: Actor) -> None:
        """Describe the group by both APIs, and list it."""
        del actor
        describe = ConsumerGroupDescribeRequest(group_ids=[self.group])
        await self.pair.ask(describe, 1)
        version = self.dice.randint(0, 6)
        groups = DescribeGroupsRequest(groups=[self.group])
        await self.pair.ask(groups, version, pick=_each_by_topic)
        await self.pair.ask(ListGroupsRequest(), 5, pick=self._ours)

    def _ours(self, answer: Plain) -> Plain:
        groups = [one for one in answer["groups"] if one["group_id"] == self.group]
        return {**answer, "groups": groups}


def _without_leader(answer: Plain) -> Plain:
    left_out = {"leader", "members", "skip_assignment"}
    return {name: value for name, value in answer.items() if name not in left_out}


async def migrations(pair: Pair, dice: Random, prefix: str) -> None:
    """Both protocols in one group, and its way from one to the other and back."""
    await MigrationScript(pair, dice, prefix).run(80)


async def late_members(pair: Pair, group: str) -> None:
    """Let classic members be late: to sync, and to join again when they are told to."""

    async def join_consumer(member_id: str) -> None:
        request = joining(group, member_id)
        request.subscribed_topic_names = ["t"]
        request.server_assignor = "range"
        assert not (await pair.ask(request, 1))["error_code"]

    async def join() -> int:
        said = encode(ConsumerProtocolSubscription(topics=["t"]), _VERSION)
        metadata = _VERSION.to_bytes(2) + said
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=60_000,
            rebalance_timeout_ms=_SHORT_MS,
            member_id="c",
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
        )
        answer = await pair.ask(request, 9, pick=_without_leader)
        epoch: int = answer["generation_id"]
        return epoch

    async def is_gone() -> bool:
        request = ConsumerGroupDescribeRequest(group_ids=[group])
        (found,) = (await pair.agree(request, 1))["groups"]
        return "c" not in {one["member_id"] for one in found["members"]}

    async def removed() -> None:
        loop = asyncio.get_running_loop()
        since = loop.time()
        async with asyncio.timeout(10):
            while not await is_gone():  # noqa: ASYNC110  (a broker tells nobody)
                await asyncio.sleep(0.05)
        assert loop.time() - since > _SHORT_MS / 2000

    await join_consumer("a")
    await join()
    await removed()
    epoch = await join()
    sync = SyncGroupRequest(group_id=group, generation_id=epoch, member_id="c")
    assert not (await pair.ask(sync, 4))["error_code"]
    await join_consumer("b")
    heard = HeartbeatRequest(group_id=group, generation_id=epoch, member_id="c")
    assert (await pair.ask(heard, 4))["error_code"] == _REBALANCE
    await removed()


def _by_topic(answer: Plain) -> Plain:
    """Order an assignment by topic: the broker's own comes in that of a Java map."""
    return {**answer, "assignment": _ordered(bytes(answer["assignment"]))}


def _each_by_topic(answer: Plain) -> Plain:
    """Order the assignment of every member by topic."""
    for group in answer["groups"]:
        for member in group["members"]:
            blob = bytes(member["member_assignment"])
            member["member_assignment"] = _ordered(blob)
    return answer


def _ordered(blob: bytes) -> bytes:
    if not blob:
        return blob
    assigned = read_assignment(blob)
    assigned.assigned_partitions.sort(key=lambda one: one.topic)
    version = int.from_bytes(blob[:2])
    return blob[:2] + encode(assigned, version)
