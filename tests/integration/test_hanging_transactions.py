"""Transactions of ours end, whatever becomes of their requests; others hang.

The brokers take writes to partitions that are in no transaction, as all did before 3.6.
A write that arrives after its transaction has ended then begins one that nobody ends:
it hangs. Scripts of single requests show that; a producer of ours leaves nothing open,
with its connections cut, and its requests late, at each step.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Literal

import pytest

from kafkaio import GroupMetadata, KafkaError, Producer
from kafkaio._client import Client
from kafkaio._producer.transaction import TransactionOutcome
from kafkaio.errors import Fenced
from kafkaio.protocol._api_keys import ApiKey as A
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory, topic_factory
from kafkaio.types import TopicPartition
from tests.integration.committed import assert_committed, group_offsets
from tests.support.interceptor import Interceptor, Rule
from tests.support.patience import HANGS
from tests.support.raw_transactions import (
    OLD,
    Cluster,
    Identity,
    RawProducer,
    ends,
    fetch_offset,
    producers,
    until,
    visible,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(120),
    pytest.mark.kafka_versions("2.8+"),
    pytest.mark.not_embedded("has a Kafka of its own, with a setting of its own"),
]

#: What the coordinator allows each transaction here, in milliseconds.
TIMEOUT_MS = 3_000
STEPS = [
    *(A.INIT_PRODUCER_ID, A.ADD_PARTITIONS_TO_TXN, A.PRODUCE),
    *(A.ADD_OFFSETS_TO_TXN, A.TXN_OFFSET_COMMIT, A.END_TXN),
]


@pytest.fixture
async def cluster(unverified: Kafka) -> AsyncIterator[Cluster]:
    async with Client(unverified.bootstrap_servers) as client:
        yield Cluster(client)


@pytest.fixture
def new_topic(unverified: Kafka, request: pytest.FixtureRequest) -> TopicFactory:
    return topic_factory(unverified, request)


async def open_in(cluster: Cluster, tp: TopicPartition) -> list[int]:
    """The producer ids that have a transaction open in a partition."""
    return [
        one.producer_id
        for one in await producers(cluster, tp)
        if one.current_txn_start_offset >= 0
    ]


async def is_unstable(cluster: Cluster, group: str, tp: TopicPartition) -> bool:
    """Whether the offset of a group is in an open transaction."""
    code, _ = await fetch_offset(cluster, group, tp)
    assert code in {E.NONE, E.UNSTABLE_OFFSET_COMMIT}
    return code == E.UNSTABLE_OFFSET_COMMIT


def new_id() -> str:
    return f"txn-{uuid.uuid4()}"


# ---- by hand -------------------------------------------------------------------------


async def aborted_by_hand(cluster: Cluster, tp: TopicPartition) -> RawProducer:
    """A producer of the old protocol that has aborted a write, and ends no epoch."""
    raw = RawProducer(cluster, new_id(), OLD, TIMEOUT_MS)
    await raw.start()
    await raw.send(tp, 0, [b"aborted"])
    await raw.finish(commit=False)
    return raw


async def bumped(raw: RawProducer) -> Identity:
    """Ask for the next epoch (KIP-360); returns the one before."""
    before = raw.who

    async def is_bumped() -> bool:
        return await raw.init(before) == E.NONE

    await until(is_bumped)
    return before


async def test_a_late_write_hangs(cluster: Cluster, new_topic: TopicFactory) -> None:
    """A script without bumps; coordinators abort what they know, and not this."""
    tp, other = TopicPartition(new_topic(), 0), TopicPartition(new_topic(), 0)
    raw = await aborted_by_hand(cluster, tp)
    assert await raw.write(tp, 1, [b"late"]) == E.NONE
    later = RawProducer(cluster, new_id(), OLD, TIMEOUT_MS)
    await later.start()
    await later.send(other, 0)
    assert await open_in(cluster, other)

    async def is_aborted() -> bool:
        return not await open_in(cluster, other)

    await until(is_aborted)  # its time ran out
    assert await open_in(cluster, tp) == [raw.who.producer_id]
    found = await ends(cluster, tp)
    assert found.last_stable_offset < found.high_watermark


async def test_a_bump_alone_keeps_no_late_write_out(
    cluster: Cluster, new_topic: TopicFactory
) -> None:
    """The log does not know the epoch yet, and the next marker commits the write."""
    tp = TopicPartition(new_topic(), 0)
    raw = await aborted_by_hand(cluster, tp)
    before = await bumped(raw)
    assert await raw.write(tp, 1, [b"late"], who=before) == E.NONE
    assert await open_in(cluster, tp)
    await raw.send(tp, 0, [b"next"])
    await raw.finish(commit=True)
    assert await visible(cluster, tp) == [b"late", b"next"]


async def test_a_marker_of_the_next_epoch_keeps_it_out(
    cluster: Cluster, new_topic: TopicFactory
) -> None:
    tp = TopicPartition(new_topic(), 0)
    raw = await aborted_by_hand(cluster, tp)
    before = await bumped(raw)
    await raw.enter(tp)
    await raw.finish(commit=False)
    late = await raw.write(tp, 1, [b"late"], who=before)
    assert late == E.INVALID_PRODUCER_EPOCH
    assert not await open_in(cluster, tp)


# ---- ours ----------------------------------------------------------------------------


class Ours:
    """A producer of ours behind a proxy, and what it leaves."""

    def __init__(self, wire: Interceptor, cluster: Cluster, topic: str) -> None:
        self.wire = wire
        self.cluster = cluster
        self.topic = topic
        self.group = new_id()
        self.name = new_id()
        self.producer = self._new()
        self.committed: list[bytes] = []
        self.offset: int | None = None

    def _new(self) -> Producer:
        return Producer(
            self.wire.servers,
            transactional_id=self.name,
            transaction_timeout_ms=TIMEOUT_MS,
            delivery_timeout_ms=900,
            request_timeout_ms=400,
            max_block_ms=1500,
            linger_ms=0,
        )

    async def transact(self, value: bytes, at: int) -> bool:
        """Write to both partitions and commit an offset; whether it was committed."""
        tx = self.producer.transaction()
        with suppress(KafkaError):
            async with tx:
                for partition in range(2):
                    await tx.enqueue(self.topic, value, partition=partition)
                place = {TopicPartition(self.topic, 0): at}
                await tx.commit_offsets(GroupMetadata(self.group), place)
        for rule in self.wire.rules:
            if rule.what != "hold-request":
                rule.times = 0
        is_committed = await tx.outcome is TransactionOutcome.COMMITTED
        if is_committed:
            self.committed += [value] * 2
            self.offset = at
        return is_committed

    async def settled(self) -> None:
        """Wait until the next transaction could begin."""
        tx = self.producer.transaction()
        await tx.begin()
        await tx.abort()

    async def settled_or_fenced(self) -> None:
        """The same; a transaction whose time ran out fences in the old protocol."""
        try:
            await self.settled()
        except Fenced:
            assert self.wire.of(A.ADD_PARTITIONS_TO_TXN)
            await self.producer.close()
            self.producer = self._new()
            await self.producer.start()

    async def nothing_hangs(self) -> None:
        """Wait until no transaction is open in a log."""
        places = [TopicPartition(self.topic, index) for index in range(2)]

        async def is_over() -> bool:
            found = [await open_in(self.cluster, tp) for tp in places]
            return not any(found) and not await is_unstable(
                self.cluster, self.group, places[0]
            )

        await until(is_over)

    async def check(self, servers: str) -> None:
        await self.nothing_hangs()
        await assert_committed(servers, self.topic, self.committed, 2)
        assert await group_offsets(servers, self.group, self.topic) == [self.offset]


async def delivered(*rules: Rule, count: int) -> None:
    """Let late requests arrive, and wait until they have."""
    for rule in rules:
        rule.release.set()
    async with asyncio.timeout(HANGS):
        while sum(rule.late for rule in rules) < count:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("times", [1, 1000], ids=["once", "until it gives up"])
@pytest.mark.parametrize("what", ["cut", "lose", "late"])
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name.lower())
async def test_nothing_of_ours_hangs(
    unverified: Kafka,
    cluster: Cluster,
    new_topic: TopicFactory,
    step: A,
    what: Literal["cut", "lose", "late"],
    times: int,
) -> None:
    servers = unverified.bootstrap_servers
    async with asyncio.timeout(HANGS), Interceptor(servers) as wire:
        ours = Ours(wire, cluster, new_topic(2))
        async with ours.producer:
            assert await ours.transact(b"first", 1)
            rule = wire.add(Rule(step, what, times))
            if step is A.INIT_PRODUCER_ID:
                # Asked for where a write is given up in the old protocol.
                wire.add(Rule(A.PRODUCE, "cut", 1000))
            is_committed = await ours.transact(b"second", 2)
            if times == 1 and step is not A.INIT_PRODUCER_ID:
                assert is_committed
            if times == 1:
                await ours.settled()
            else:
                await ours.settled_or_fenced()
            if what == "late":
                late = len([one for one in wire.caught if one is rule])
                await delivered(rule, count=late)
                await ours.nothing_hangs()
            assert await ours.transact(b"third", 3)
            await ours.producer.close()
        await ours.check(servers)


@pytest.mark.parametrize("step", [A.PRODUCE, A.TXN_OFFSET_COMMIT])
async def test_what_arrives_before_the_seal_is_aborted_by_it(
    unverified: Kafka, cluster: Cluster, new_topic: TopicFactory, step: A
) -> None:
    """Between the abort and the next epoch, a log still takes what is late."""
    servers = unverified.bootstrap_servers
    async with asyncio.timeout(HANGS), Interceptor(servers) as wire:
        ours = Ours(wire, cluster, new_topic(2))
        async with ours.producer:
            assert await ours.transact(b"first", 1)
            rule = wire.add(Rule(step, "late", 1000))
            bump = wire.add(Rule(A.INIT_PRODUCER_ID, "hold-request"))
            assert not await ours.transact(b"second", 2)
            late = len([one for one in wire.caught if one is rule])
            assert late
            if wire.of(A.ADD_PARTITIONS_TO_TXN):
                async with asyncio.timeout(HANGS):
                    await bump.met.wait()
            await delivered(rule, count=late)
            bump.release.set()
            await ours.settled()
            await ours.nothing_hangs()
            assert await ours.transact(b"third", 3)
        await ours.check(servers)


async def test_closing_waits_for_the_seal(
    unverified: Kafka, cluster: Cluster, new_topic: TopicFactory
) -> None:
    servers = unverified.bootstrap_servers
    async with asyncio.timeout(HANGS), Interceptor(servers) as wire:
        ours = Ours(wire, cluster, new_topic(2))
        async with ours.producer:
            assert await ours.transact(b"first", 1)
            rule = wire.add(Rule(A.PRODUCE, "late", 1000))
            assert not await ours.transact(b"second", 2)
        late = len([one for one in wire.caught if one is rule])
        assert late
        await delivered(rule, count=late)
        await ours.check(servers)
