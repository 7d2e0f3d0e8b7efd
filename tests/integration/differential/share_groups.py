"""Scripts of share groups (KIP-932): a random one, and probes step by step.

What is not compared, beside what ``plain.py`` leaves out:

- The first heartbeats of a group: Kafka makes the state of its partitions after it has
  answered, the embedded broker before (`Sharing.begin` waits until both are there).
- Which partitions members have: Kafka takes them in the order of a map by the hash of
  the topic's id, which a broker chooses. How many they have is compared.
- The assignment epoch of a group without members, which Kafka 4.3 does not raise.
- The time at which what a member held is free after its session has ended: Kafka tells
  nobody. The probes wait for it with a fetch that has nothing else to bring.
- Which of several partitions is read first, if not all can be: the order of a map.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

from kafkaio._records.builder import encode_batch
from kafkaio._runtime.clock import wall_ms
from kafkaio.protocol.messages import (
    AlterShareGroupOffsetsRequest,
    ConsumerGroupHeartbeatRequest,
    CreateTopicsRequest,
    DeleteGroupsRequest,
    DeleteShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
    IncrementalAlterConfigsRequest,
    ListGroupsRequest,
    ProduceRequest,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
)
from kafkaio.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from kafkaio.protocol.messages.create_topics import CreatableTopic
from kafkaio.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequestTopic,
)
from kafkaio.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequestGroup,
)
from kafkaio.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
)
from kafkaio.protocol.messages.produce import PartitionProduceData, TopicProduceData
from kafkaio.protocol.messages.share_acknowledge import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
)
from kafkaio.protocol.messages.share_fetch import (
    AcknowledgementBatch as FetchAcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ForgottenTopic,
)
from tests.integration.differential.pair import PATIENCE, Difference, Pair
from tests.integration.differential.plain import Plain

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
_GROUP: Final = 32
_ATTEMPTS: Final = 5

#: First offset, last offset, and one type or one for each offset.
Ack = tuple[int, int, list[int]]


@dataclass(slots=True)
class Actor:
    """A member: what it knows of itself and of its session."""

    name: str
    epoch: int = 0
    session: int = 0
    #: What it was given and has not answered for, by partition.
    held: dict[int, list[int]] = field(default_factory=dict)


class Sharing:
    """A share group with a topic of its own, on both brokers."""

    def __init__(self, pair: Pair, prefix: str, partitions: int = 1) -> None:
        self.pair = pair
        self.topic = f"{prefix}-topic"
        self.group = ""
        self.partitions = partitions
        # Of today, or retention deletes what is written.
        self.timestamp = wall_ms()

    async def begin(self, **configs: str | int) -> None:
        """Make the topic and the group, and wait until both brokers have its state."""
        defaults: dict[str, str | int] = {
            "share.auto.offset.reset": "earliest",
            "share.record.lock.duration.ms": 30_000,
        }
        for number in range(_ATTEMPTS):
            # Kafka may need an epoch more until the group has its state: not again.
            self.group = f"{self.topic}-{number}"
            await self.configure(**(defaults | configs))
            if number == 0:
                await self._create_topic()
            if await self._has_keeper():
                return
        raise AssertionError("the epochs of new groups are never the same")

    async def _create_topic(self) -> None:
        answer = await self.pair.ask(
            CreateTopicsRequest(
                topics=[
                    CreatableTopic(
                        name=self.topic,
                        num_partitions=self.partitions,
                        replication_factor=1,
                    )
                ],
                timeout_ms=10_000,
            ),
            7,
            pick=_without_configs,
        )
        (created,) = answer["topics"]
        assert created["error_code"] == 0, answer
        self.pair.ids[self.topic] = created["topic_id"]

    async def _has_keeper(self) -> bool:
        """Let a member join; return whether both brokers count alike."""
        keeper = Actor("keeper")
        # By the last answer: the first ones of Kafka have no assignment yet.
        async with asyncio.timeout(4 * PATIENCE):
            while not await self._is_assigned(keeper):  # noqa: ASYNC110  (two brokers)
                await asyncio.sleep(0.05)
        if len({await self._epoch(number, keeper) for number in (0, 1)}) > 1:
            return False
        await self.beat(keeper)
        # Loads every share partition while it is empty. Its session stays open, or the
        # next fetch would load them again.
        for index in range(self.partitions):
            await self._load(keeper, index)
        await self.leave(keeper)
        return True

    async def _is_assigned(self, keeper: Actor) -> bool:
        """Send a heartbeat to both; return whether both members have an assignment."""
        request = self._beat(keeper, 0, [self.topic])
        answers = [await side.ask(request, 1, "keeper") for side in self.pair.sides]
        given = [one.assignment for one in answers]
        keeper.epoch = answers[-1].member_epoch
        return all(one is not None and one.topic_partitions for one in given)

    async def _epoch(self, side: int, keeper: Actor) -> int:
        request = self._beat(keeper, 0, [self.topic])
        return (await self.pair.sides[side].ask(request, 1, "keeper")).member_epoch

    async def _load(self, keeper: Actor, index: int) -> None:
        """Fetch until both have loaded a share partition; the two count alike."""
        answer: Plain = None
        for _ in range(40):
            try:
                answer = await self.fetch(keeper, add=(index,), wait=100)
            except Difference:
                keeper.session += 1
                continue
            if not any(one["error_code"] for one in _parts(answer)):
                return
        raise AssertionError(answer)

    # ---- requests ----------------------------------------------------------------

    async def configure(self, **configs: str | int) -> Plain:
        """Set configs of the group."""
        return await self.pair.ask(
            IncrementalAlterConfigsRequest(
                resources=[
                    AlterConfigsResource(
                        resource_type=_GROUP,
                        resource_name=self.group,
                        configs=[
                            AlterableConfig(
                                name=name, config_operation=0, value=str(value)
                            )
                            for name, value in configs.items()
                        ],
                    )
                ]
            ),
            1,
        )

    async def produce(self, size: int, partition: int = 0) -> None:
        """Append a batch of so many records."""
        rows = ((self.timestamp, None, b"%d" % n, ()) for n in range(size))
        records = encode_batch(rows)
        data = PartitionProduceData(index=partition, records=records)
        topic = TopicProduceData(name=self.topic, partition_data=[data])
        request = ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=[topic])
        await self.pair.ask(request, 9)

    def _beat(
        self, actor: Actor, epoch: int, names: list[str] | None
    ) -> ShareGroupHeartbeatRequest:
        return ShareGroupHeartbeatRequest(
            group_id=self.group,
            member_id=actor.name,
            member_epoch=epoch,
            subscribed_topic_names=names,
        )

    async def beat(
        self, actor: Actor, epoch: int | None = None, names: list[str] | None = None
    ) -> Plain:
        """Send a heartbeat; one with epoch 0 subscribes to the topic, if not told."""
        told = actor.epoch if epoch is None else epoch
        if not told and names is None:
            names = [self.topic]
        request = self._beat(actor, told, names)
        answer = await self.pair.ask(request, 1, actor.name, _counted)
        if not answer["error_code"]:
            actor.epoch = max(answer["member_epoch"], 0)
        return answer

    async def leave(self, actor: Actor) -> Plain:
        """Leave the group; the session goes on."""
        return await self.beat(actor, -1)

    async def fetch(
        self,
        actor: Actor,
        most: int = 100,
        *,
        add: Sequence[int] = (),
        forget: Sequence[int] = (),
        acks: dict[int, list[Ack]] | None = None,
        wait: int = 0,
        exact: bool = True,
        size: int = 1000,
        epoch: int | None = None,
        renews: bool = False,
        version: int = 2,
    ) -> Plain:
        """Send a ShareFetch; take in what it brings."""
        acks = acks or {}
        topic_id = self.pair.ids[self.topic]
        named = sorted({*add, *acks})
        told = actor.session if epoch is None else epoch
        request = ShareFetchRequest(
            group_id=self.group,
            member_id=actor.name,
            share_session_epoch=told,
            max_wait_ms=0 if renews else wait,
            min_bytes=0 if renews else 1,
            max_bytes=0 if renews else 1 << 20,
            max_records=0 if renews else most,
            batch_size=size,
            share_acquire_mode=int(exact) if version > 1 else 0,
            is_renew_ack=renews,
            topics=[
                FetchTopic(
                    topic_id=topic_id,
                    partitions=[
                        FetchPartition(
                            partition_index=index,
                            acknowledgement_batches=[
                                FetchAcknowledgementBatch(
                                    first_offset=first,
                                    last_offset=last,
                                    acknowledge_types=types,
                                )
                                for first, last, types in acks.get(index, ())
                            ],
                        )
                        for index in named
                    ],
                )
            ]
            if named
            else [],
            forgotten_topics_data=[
                ForgottenTopic(topic_id=topic_id, partitions=list(forget))
            ]
            if forget
            else [],
        )
        answer = await self.pair.ask(request, version, actor.name)
        if not answer["error_code"]:
            actor.session = told + 1 if told >= 0 else 0
            if told < 0:
                actor.held.clear()
            self._take(actor, answer, acks)
        return answer

    def _take(self, actor: Actor, answer: Plain, acks: dict[int, list[Ack]]) -> None:
        for part in _parts(answer):
            index = part["partition_index"]
            held = actor.held.setdefault(index, [])
            if not part["acknowledge_error_code"]:
                _answered(held, acks.get(index, ()))
            for one in part["acquired_records"]:
                held += range(one["first_offset"], one["last_offset"] + 1)
            held.sort()

    async def acknowledge(
        self,
        actor: Actor,
        acks: dict[int, list[Ack]],
        *,
        renews: bool = False,
        epoch: int | None = None,
    ) -> Plain:
        """Send a ShareAcknowledge."""
        told = actor.session if epoch is None else epoch
        request = ShareAcknowledgeRequest(
            group_id=self.group,
            member_id=actor.name,
            share_session_epoch=told,
            is_renew_ack=renews,
            topics=[
                AcknowledgeTopic(
                    topic_id=self.pair.ids[self.topic],
                    partitions=[
                        AcknowledgePartition(
                            partition_index=index,
                            acknowledgement_batches=[
                                AcknowledgementBatch(
                                    first_offset=first,
                                    last_offset=last,
                                    acknowledge_types=types,
                                )
                                for first, last, types in sent
                            ],
                        )
                        for index, sent in acks.items()
                    ],
                )
            ],
        )
        answer = await self.pair.ask(request, 2, actor.name)
        if not answer["error_code"]:
            actor.session = told + 1 if told >= 0 else 0
            for topic in answer["responses"]:
                for part in topic["partitions"]:
                    index = part["partition_index"]
                    if not part["error_code"]:
                        _answered(actor.held.get(index, []), acks[index])
        return answer

    async def lock_lasts(self, actor: Actor, milliseconds: int) -> None:
        """Wait until both say that locks last so long: configs take time to get round.

        By acknowledgements of nothing, so that both count the same number of requests.
        """
        told: list[int] = []

        def pick(answer: Plain) -> Plain:
            told.append(answer["acquisition_lock_timeout_ms"])
            return {**answer, "acquisition_lock_timeout_ms": milliseconds}

        async with asyncio.timeout(PATIENCE):
            while told[-2:] != [milliseconds] * 2:
                request = ShareAcknowledgeRequest(
                    group_id=self.group,
                    member_id=actor.name,
                    share_session_epoch=actor.session,
                )
                await self.pair.ask(request, 2, actor.name, pick)
                actor.session += 1

    # ---- administration ----------------------------------------------------------

    async def describe(self) -> Plain:
        """Describe the group and its offsets."""
        asked = DescribeShareGroupOffsetsRequestGroup(group_id=self.group, topics=None)
        # The state is written after the answer that it is about.
        await self.pair.agree(DescribeShareGroupOffsetsRequest(groups=[asked]), 1)
        return await self.pair.ask(
            ShareGroupDescribeRequest(
                group_ids=[self.group], include_authorized_operations=True
            ),
            1,
            pick=_counted,
        )

    async def alter(self, start: int, topic: str | None = None) -> Plain:
        """Set the first offset of the first partition."""
        partition = AlterShareGroupOffsetsRequestPartition(
            partition_index=0, start_offset=start
        )
        named = AlterShareGroupOffsetsRequestTopic(
            topic_name=topic or self.topic, partitions=[partition]
        )
        request = AlterShareGroupOffsetsRequest(group_id=self.group, topics=[named])
        return await self.pair.ask(request, 0)

    async def forget(self, *topics: str) -> Plain:
        """Delete the offsets of topics."""
        named = [DeleteShareGroupOffsetsRequestTopic(topic_name=one) for one in topics]
        request = DeleteShareGroupOffsetsRequest(group_id=self.group, topics=named)
        return await self.pair.ask(request, 0)


def _counted(answer: Plain) -> Plain:
    """Leave out what is not compared: which partitions, epochs without members."""
    if isinstance(answer, list):
        return [_counted(one) for one in answer]
    if not isinstance(answer, dict):
        return answer
    if answer.get("group_state") == "Empty":
        answer = {**answer, "assignment_epoch": 0}
    return {
        name: len(value) if name == "partitions" else _counted(value)
        for name, value in answer.items()
    }


def _without_configs(answer: Plain) -> Plain:
    (topic,) = answer["topics"]
    return {"topics": [{**topic, "configs": []}]}


def _parts(answer: Plain) -> list[Plain]:
    return [part for topic in answer["responses"] for part in topic["partitions"]]


def _answered(held: list[int], acks: Sequence[Ack]) -> None:
    for first, last, types in acks:
        for offset in range(first, last + 1):
            kind = types[offset - first if len(types) > 1 else 0]
            if kind != RENEW and offset in held:
                held.remove(offset)


class ShareScript:
    """Steps chosen by dice, of three members that share a partition."""

    def __init__(self, pair: Pair, dice: Random, prefix: str) -> None:
        self.dice = dice
        self.sharing = Sharing(pair, prefix)
        self.actors = [Actor(f"{prefix}-{name}") for name in "abc"]

    async def run(self, steps: int) -> None:
        """Take that many steps."""
        limit = self.dice.choice([2, 3, 5, 6])
        locks = self.dice.choice([100, 2000])
        await self.sharing.begin(
            **{
                "share.delivery.count.limit": limit,
                "share.partition.max.record.locks": locks,
            }
        )
        kinds = (
            [self.fetch] * 12
            + [self.acknowledge] * 10
            + [self.produce] * 5
            + [self.beat, self.beat, self.stray, self.open, self.renew, self.look]
        )
        for _ in range(steps):
            await self.dice.choice(kinds)(self.dice.choice(self.actors))

    async def produce(self, actor: Actor) -> None:
        """Append batches of several sizes."""
        del actor
        for _ in range(self.dice.randint(1, 3)):
            size = self.dice.choice([1, 1, 2, 5, 20])
            await self.sharing.produce(size)

    async def open(self, actor: Actor) -> None:
        """Open a session, in place of the one there may be; locks go on."""
        await self.sharing.fetch(actor, self.dice.choice([1, 5]), add=(0,), epoch=0)

    async def fetch(self, actor: Actor) -> None:
        """Fetch, perhaps with acknowledgements."""
        if not actor.session:
            await self.open(actor)
            return
        acks = self._acks(actor) if self.dice.random() < 0.5 else {}
        await self.sharing.fetch(
            actor,
            self.dice.choice([1, 2, 3, 7, 100]),
            acks=acks,
            exact=self.dice.random() < 0.5,
            size=self.dice.choice([1, 3, 1000]),
            version=self.dice.choice([1, 2, 2]),
        )

    def _acks(self, actor: Actor) -> dict[int, list[Ack]]:
        """Answer for some of what it holds; now and then for what it does not."""
        found: dict[int, list[Ack]] = {}
        for index, held in actor.held.items():
            acks: list[Ack] = []
            for offset in held:
                if self.dice.random() < 0.3:
                    continue
                kind = self.dice.choice([ACCEPT, ACCEPT, RELEASE, RELEASE, REJECT, GAP])
                if acks and acks[-1][1] == offset - 1 and self.dice.random() < 0.7:
                    first, _, types = acks[-1]
                    grown = [*types] if len(types) > 1 else types * (offset - first)
                    acks[-1] = (first, offset, [*grown, kind])
                else:
                    acks.append((offset, offset, [kind]))
            if self.dice.random() < 0.1:
                offset = (held or [0])[-1] + self.dice.randint(1, 30)
                acks.append((offset, offset, [ACCEPT]))
            if acks:
                found[index] = acks
        return found

    async def acknowledge(self, actor: Actor) -> None:
        """Answer for some of what it holds."""
        acks = self._acks(actor)
        if actor.session and acks:
            await self.sharing.acknowledge(actor, acks)

    async def renew(self, actor: Actor) -> None:
        """Renew some, and answer for the rest."""
        acks = {
            index: [(one, one, [self.dice.choice([RENEW, ACCEPT])]) for one in held]
            for index, held in actor.held.items()
            if held
        }
        if actor.session and acks:
            await self.sharing.acknowledge(actor, acks, renews=True)

    async def stray(self, actor: Actor) -> None:
        """Send what is wrong: an epoch, an order, a number of types, a type."""
        wrong: list[list[Ack]] = [
            [(3, 3, [ACCEPT]), (2, 2, [ACCEPT])],
            [(0, 3, [ACCEPT, ACCEPT])],
            [(0, 0, [RENEW])],
            [(0, 0, [9])],
            [(5, 4, [ACCEPT])],
            [(0, 0, [])],
            [(100_000, 100_001, [ACCEPT])],
        ]
        if not actor.session or self.dice.random() < 0.3:
            epoch = actor.session + 5
            await self.sharing.fetch(actor, epoch=epoch)
            # As if it had not been sent.
            return
        index = self.dice.choice([0, 0, 7])
        await self.sharing.acknowledge(actor, {index: self.dice.choice(wrong)})

    async def beat(self, actor: Actor) -> None:
        """Join, say that it is alive, or leave; who fetches is not asked for it."""
        sharing, roll = self.sharing, self.dice.random()
        if not actor.epoch or roll < 0.1:
            await sharing.beat(actor, 0)
        elif roll < 0.2:
            await sharing.beat(actor, actor.epoch + self.dice.choice([-1, 1]))
        elif roll < 0.3:
            await sharing.leave(actor)
        else:
            await sharing.beat(actor)

    async def look(self, actor: Actor) -> None:
        """Describe the group."""
        del actor
        await self.sharing.describe()


async def share_groups(pair: Pair, dice: Random, prefix: str) -> None:
    """Run a random script of a share group."""
    await ShareScript(pair, dice, prefix).run(60)


# ---- probes --------------------------------------------------------------------------


async def _acknowledging(pair: Pair, prefix: str) -> None:
    """Types, orders and epochs of acknowledgements, and renewals."""
    one = Sharing(pair, f"{prefix}-acks")
    await one.begin()
    await one.produce(50)
    a = Actor("a")
    await one.beat(a)
    await one.fetch(a, add=(0,), acks={0: [(0, 1, [ACCEPT])]}, epoch=0)
    await one.fetch(a, 10, add=(0,), exact=False)
    await one.fetch(a, epoch=77)
    acks: list[Ack] = [(0, 4, [ACCEPT]), (5, 5, [RELEASE]), (6, 6, [REJECT])]
    await one.acknowledge(a, {0: acks})
    for sent in (
        [(0, 4, [ACCEPT])],
        [(48, 49, [ACCEPT])],
        [(9, 9, [ACCEPT]), (8, 8, [ACCEPT])],
        [(7, 9, [ACCEPT, ACCEPT])],
        [(7, 7, [RENEW])],
        [(7, 7, [9])],
    ):
        await one.acknowledge(a, {0: sent})
    await one.acknowledge(a, {0: [(7, 7, [RENEW])]}, renews=True)
    await one.acknowledge(a, {0: [(7, 7, [RENEW]), (8, 8, [ACCEPT])]}, renews=True)
    await one.fetch(a, 10)
    await one.fetch(a, 0, acks={0: [(9, 9, [ACCEPT])]})
    await one.fetch(a, acks={0: [(7, 7, [RENEW])]}, renews=True)
    await one.acknowledge(a, {7: [(0, 0, [ACCEPT])]})
    await one.acknowledge(a, {0: [(10, 10, [ACCEPT])]}, epoch=0)
    await one.acknowledge(a, {0: [(10, 10, [ACCEPT])]}, epoch=-1)
    await one.acknowledge(a, {0: [(11, 11, [ACCEPT])]})
    await one.leave(a)
    await one.beat(a, 5)


async def _connections(pair: Pair, prefix: str) -> None:
    """Single records, whole batches, and what the end of a connection frees."""
    one = Sharing(pair, f"{prefix}-links")
    await one.begin()
    for _ in range(40):
        await one.produce(1)
    a, b = Actor("a"), Actor("b")
    for actor in (a, b):
        await one.beat(actor)
    await one.fetch(a, 10, add=(0,), exact=False)
    await one.fetch(b, 7, add=(0,))
    await one.fetch(a, 5)
    await one.fetch(a, 3, acks={0: [(0, 9, [ACCEPT])]})
    await one.acknowledge(b, {0: [(17, 17, [ACCEPT])]})
    await one.fetch(a, 100)
    pair.hang_up("b")
    # Nothing else is there: it waits for what b has held.
    await one.fetch(a, 5, wait=3000)
    b.session = 0
    await one.fetch(b, 100, add=(0,))
    await one.fetch(b, epoch=-1)
    await one.fetch(a, 100, wait=3000)
    await one.acknowledge(b, {0: [(20, 20, [ACCEPT])]})


async def _deliveries(pair: Pair, prefix: str) -> None:
    """Every delivery up to the limit, by releases and by time, and the lag."""
    one = Sharing(pair, f"{prefix}-limit")
    await one.begin(**{"share.delivery.count.limit": 3})
    for name, value in (
        ("share.record.lock.duration.ms", "1"),
        ("share.isolation.level", "x"),
        ("share.nonsense", "x"),
    ):
        await one.configure(**{name: value})
    await one.produce(4)
    a = Actor("a")
    await one.beat(a)
    await one.fetch(a, add=(0,), exact=False)
    while held := a.held[0]:
        await one.acknowledge(a, {0: [(n, n, [RELEASE]) for n in held]})
        await one.fetch(a, exact=False)
    await one.describe()
    await one.alter(0)
    await one.forget(one.topic)
    await pair.ask(DeleteGroupsRequest(groups_names=[one.group]), 2)
    await one.configure(**{"share.record.lock.duration.ms": 1000})
    await one.lock_lasts(a, 1000)
    await one.produce(2)
    await one.fetch(a)
    # Its locks end by time; nothing else is there to wait for.
    await one.fetch(a, wait=3000)


async def _together(pair: Pair, prefix: str) -> None:
    """All acknowledgements of a partition, or none."""
    one = Sharing(pair, f"{prefix}-together")
    await one.begin()
    for _ in range(10):
        await one.produce(1)
    a, b = Actor("a"), Actor("b")
    for actor in (a, b):
        await one.beat(actor)
        await one.fetch(actor, 5, add=(0,))
    await one.acknowledge(a, {0: [(0, 0, [ACCEPT]), (5, 5, [ACCEPT])]})
    await one.acknowledge(a, {0: [(0, 4, [RELEASE])]})
    await one.fetch(a, 5)


async def _limits(pair: Pair, prefix: str) -> None:
    """Large batches, the limit of locks, forgotten partitions, strangers."""
    one = Sharing(pair, f"{prefix}-limits")
    await one.begin(**{"share.partition.max.record.locks": 100})
    await one.produce(1000)
    a, b = Actor("a"), Actor("b")
    for actor in (a, b):
        await one.beat(actor)
    await one.fetch(a, 20, add=(0,), size=5, exact=False)
    await one.fetch(a, 1000, exact=False)
    await one.fetch(b, 1000, add=(0,))
    await one.leave(a)
    await one.fetch(a, 5)
    await one.acknowledge(a, {0: [(0, 899, [ACCEPT]), (900, 999, [RELEASE])]})
    await one.fetch(b, 5)
    await one.fetch(b, 5, epoch=0, add=(0,))
    await one.fetch(b, 5, forget=(0,))
    await one.fetch(b, 5)
    await one.acknowledge(b, {0: [(900, 900, [ACCEPT])]})
    stranger = Actor("not-a-uuid")
    await one.fetch(stranger, 3, add=(0,))
    await one.fetch(Actor(""), 3, add=(0,))
    for epoch, names in ((0, []), (-2, None)):
        await one.beat(Actor("c"), epoch, names)
    await one.beat(Actor(""), 0)
    # A group has one kind.
    await pair.ask(
        ConsumerGroupHeartbeatRequest(
            group_id=one.group,
            member_id="k",
            member_epoch=0,
            rebalance_timeout_ms=1000,
            subscribed_topic_names=[one.topic],
            topic_partitions=[],
        ),
        1,
    )


async def _offsets(pair: Pair, prefix: str) -> None:
    """Offsets that an administrator alters, and what leaders make of it."""
    one = Sharing(pair, f"{prefix}-offsets")
    await one.begin()
    await one.produce(4)
    a = Actor("a")
    await one.beat(a)
    await one.fetch(a, add=(0,))
    await one.acknowledge(a, {0: [(0, 3, [ACCEPT])]})
    await one.leave(a)
    await one.alter(0)
    # The session of the keeper is open: the leader goes on with what it has.
    await one.fetch(a)
    await one.produce(1)
    await one.fetch(a)
    await one.acknowledge(a, {0: [(4, 4, [ACCEPT])]})
    await one.fetch(a, wait=1000)
    await one.acknowledge(a, {0: [(0, 4, [ACCEPT])]})
    await one.alter(2)
    await one.alter(0, "absent")
    await one.describe()
    await one.forget(one.topic, "absent")
    await one.forget(one.topic)
    pick = _of_group(one.group)
    await pair.ask(ListGroupsRequest(types_filter=["share"]), 5, pick=pick)
    await pair.ask(DeleteGroupsRequest(groups_names=[one.group]), 2)
    await pair.ask(ListGroupsRequest(types_filter=["share"]), 5, pick=pick)


def _of_group(group: str):
    def pick(answer: Plain) -> Plain:
        groups = [one for one in answer["groups"] if one["group_id"] == group]
        return {**answer, "groups": groups}

    return pick


async def share_probes(pair: Pair, dice: Random, prefix: str) -> None:
    """Run two of the probes, chosen by dice: some of them take a second."""
    probes = [_acknowledging, _connections, _deliveries, _together, _limits, _offsets]
    for probe in dice.sample(probes, 2):
        with pair.named(probe.__name__):
            await probe(pair, prefix)
