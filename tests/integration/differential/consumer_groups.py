"""A random script of groups of the consumer protocol (KIP-848)."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from random import Random
from uuid import UUID

from kafkaio.protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
)
from kafkaio.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from kafkaio.protocol.messages.leave_group import MemberIdentity
from kafkaio.testing._groups.java import text_hash
from tests.integration.differential.heartbeats import beat
from tests.integration.differential.offsets import commit, delete_offsets, fetch
from tests.integration.differential.pair import Pair
from tests.integration.differential.plain import Plain

Owned = dict[UUID, list[int]]


@dataclass(slots=True)
class Actor:
    """A member, or one that will be or was; what it knows of itself."""

    member_id: str
    instance: str | None = None
    epoch: int = 0
    owned: Owned = field(default_factory=dict)


def _member_ids(prefix: str) -> list[str]:
    """Return four ids that no two of share a bucket of a small map of Java.

    Within a bucket the order is that of an older map, by which it was filled.
    """
    found: dict[int, str] = {}
    for number in count():
        member_id = f"{prefix}-{number}"
        code = text_hash(member_id)
        found.setdefault((code ^ code >> 16) & 15, member_id)
        if len(found) == 4:
            break
    return list(found.values())


class ConsumerScript:
    """Steps chosen by dice, on one group."""

    def __init__(self, pair: Pair, dice: Random, prefix: str) -> None:
        self.pair = pair
        self.dice = dice
        self.group = f"{prefix}-consumer"
        # Where subscriptions differ, the uniform assignor of Kafka follows the order
        # of maps within maps; ours does not.
        self.is_alike = dice.random() < 0.5
        self.names = [dice.choice([["t"], ["t", "u"]])]
        if not self.is_alike:
            # Not an empty one: with it, a new member does not count when Kafka asks
            # whether all read the same, and nothing may be everybody's subscription.
            self.names = [["t"], ["t"], ["t", "u"], ["u"], ["absent"]]
        one, two, three, four = _member_ids(prefix)
        self.actors = [
            Actor(one),
            Actor(two),
            Actor(three, instance="i"),
            Actor(four, instance=dice.choice(["i", "j"])),
        ]

    async def run(self, steps: int) -> None:
        """Take that many steps."""
        kinds = (
            [self.join] * 5
            + [self.beat] * 8
            + [self.acknowledge] * 8
            + [self.full, self.full, self.change, self.leave, self.stray]
            + [self.commit, self.fetch, self.look, self.look, self.administer]
        )
        for _ in range(steps):
            await self.dice.choice(kinds)(self.dice.choice(self.actors))

    def wrong(self, chance: float = 0.1) -> bool:
        """Whether the next thing is to be wrong."""
        return self.dice.random() < chance

    async def send(self, actor: Actor, request: ConsumerGroupHeartbeatRequest) -> None:
        """Send a heartbeat, which may not say all it should; take its answer in."""
        version = 1
        if request.subscribed_topic_regex is None and self.wrong(0.3):
            version = 0
        answer = await self.pair.ask(request, version)
        if answer["error_code"] in {25, 110}:
            actor.epoch, actor.owned = 0, {}
        if answer["error_code"]:
            return
        actor.epoch = max(answer["member_epoch"], 0)
        self._take(actor, answer)

    def _take(self, actor: Actor, answer: Plain) -> None:
        if answer["member_epoch"] <= 0:
            actor.owned = {}
        if answer["assignment"] is not None:
            actor.owned = {
                one["topic_id"]: one["partitions"]
                for one in answer["assignment"]["topic_partitions"]
            }

    def _request(self, actor: Actor, epoch: int) -> ConsumerGroupHeartbeatRequest:
        return beat(self.group, actor.member_id, epoch, actor.instance)

    def _subscribe(self, request: ConsumerGroupHeartbeatRequest) -> None:
        request.subscribed_topic_names = list(self.dice.choice(self.names))
        assignors = [None, "range", "uniform"] if self.is_alike else ["range"]
        request.server_assignor = self.dice.choice(assignors)
        if self.wrong(0.05):
            request.server_assignor = "nothing"

    async def join(self, actor: Actor) -> None:
        """Join, for the first time or again."""
        if actor.epoch and not self.wrong(0.3):
            return
        request = self._request(actor, 0)
        self._subscribe(request)
        request.rebalance_timeout_ms = -1 if self.wrong(0.03) else 60_000
        request.topic_partitions = None if self.wrong(0.03) else []
        if self.wrong(0.03):
            request.subscribed_topic_names = None
        request.rack_id = self.dice.choice([None, None, "r1", ""])
        await self.send(actor, request)

    def _epoch(self, actor: Actor) -> int:
        return actor.epoch + self.dice.choice([-1, 1] if self.wrong(0.05) else [0])

    async def beat(self, actor: Actor) -> None:
        """Say nothing but that it is alive."""
        await self.send(actor, self._request(actor, self._epoch(actor)))

    def _owned(
        self, actor: Actor
    ) -> list[ConsumerGroupHeartbeatRequestTopicPartitions]:
        return [
            ConsumerGroupHeartbeatRequestTopicPartitions(
                topic_id=topic_id, partitions=partitions
            )
            for topic_id, partitions in actor.owned.items()
        ]

    async def acknowledge(self, actor: Actor) -> None:
        """Say what it has."""
        request = self._request(actor, self._epoch(actor))
        request.topic_partitions = self._owned(actor)
        await self.send(actor, request)

    async def full(self, actor: Actor) -> None:
        """Say everything, as after an error."""
        request = self._request(actor, self._epoch(actor))
        request.topic_partitions = self._owned(actor)
        request.rebalance_timeout_ms = 60_000
        self._subscribe(request)
        await self.send(actor, request)

    async def change(self, actor: Actor) -> None:
        """Subscribe to something else."""
        request = self._request(actor, self._epoch(actor))
        self._subscribe(request)
        await self.send(actor, request)

    async def leave(self, actor: Actor) -> None:
        """Leave, for good or for a while."""
        epoch = self.dice.choice([-1, -2] if actor.instance else [-1, -1, -1, -2])
        await self.send(actor, self._request(actor, epoch))

    async def stray(self, actor: Actor) -> None:
        """Send what no client should."""
        request = self._request(actor, self.dice.choice([-3, 0, 1, 1000]))
        kind = self.dice.randrange(4)
        if kind == 0:
            request.group_id = self.dice.choice(["", "no-such-group"])
        elif kind == 1:
            request.member_id = self.dice.choice(["", "nobody"])
        elif kind == 2:
            request.instance_id = self.dice.choice(["", "other"])
        await self.pair.ask(request, self.dice.randint(0, 1))

    async def commit(self, actor: Actor) -> None:
        """Commit as a member, or as one that is none."""
        member, epoch = actor.member_id, self._epoch(actor)
        if self.wrong():
            member, epoch = "", -1
        await commit(self.pair, self.dice, self.group, member, epoch, actor.instance)

    async def fetch(self, actor: Actor) -> None:
        """Look up what was committed, as a member or as anybody; or forget it."""
        if self.wrong(0.3):
            await delete_offsets(self.pair, self.dice, self.group)
        elif self.wrong(0.5):
            await fetch(self.pair, self.dice, [self.group])
        else:
            epoch = self._epoch(actor)
            await fetch(self.pair, self.dice, [self.group], actor.member_id, epoch)

    async def look(self, actor: Actor) -> None:
        """Describe the group by both APIs, and list it."""
        del actor
        version = self.dice.randint(0, 1)
        describe = ConsumerGroupDescribeRequest(group_ids=[self.group])
        await self.pair.ask(describe, version)
        version = self.dice.randint(0, 6)
        await self.pair.ask(DescribeGroupsRequest(groups=[self.group]), version)
        version = self.dice.randint(0, 5)
        request = ListGroupsRequest()
        if version >= 5 and self.wrong(0.5):
            request.types_filter = ["consumer"]
        await self.pair.ask(request, version, pick=self._ours)

    def _ours(self, answer: Plain) -> Plain:
        groups = [one for one in answer["groups"] if one["group_id"] == self.group]
        return {**answer, "groups": groups}

    async def administer(self, actor: Actor) -> None:
        """Delete the group, remove a member, or speak the other protocol."""
        kind = self.dice.randrange(3)
        if kind == 0:
            request = DeleteGroupsRequest(groups_names=[self.group])
            await self.pair.ask(request, self.dice.randint(0, 2))
        elif kind == 1:
            by_instance = actor.instance is not None and self.wrong(0.5)
            leaver = MemberIdentity(
                member_id="" if by_instance else actor.member_id,
                group_instance_id=actor.instance,
            )
            leave = LeaveGroupRequest(group_id=self.group, members=[leaver])
            await self.pair.ask(leave, 5)
        else:
            beat = HeartbeatRequest(
                group_id=self.group,
                member_id=actor.member_id,
                generation_id=actor.epoch,
            )
            await self.pair.ask(beat, 4)


async def consumer_groups(pair: Pair, dice: Random, prefix: str) -> None:
    """ConsumerGroupHeartbeat, ConsumerGroupDescribe and offsets of such groups."""
    await ConsumerScript(pair, dice, prefix).run(60)
