"""Moving a whole group to other offsets while all of its members run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from kafkaio._client.client import Client
from kafkaio._config import ClientConfig
from kafkaio._consumer import Consumer
from kafkaio._machines.membership.subscription import (
    decode_assignment,
    encode_assignment,
)
from kafkaio._producer import Producer
from kafkaio._runtime.clock import now
from kafkaio.errors import (
    AdminErrors,
    AuthorizationError,
    ClosedError,
    PartitionLost,
    RequestTimeout,
    RewindRefused,
    UnknownTopicOrPartition,
    UsageError,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kafkaio.protocol.messages.sync_group import SyncGroupResponse
from kafkaio.testing import Broker, error as fault
from kafkaio.types import GroupMetadata, OffsetAndMetadata, Record, TopicPartition
from tests.fakes.broker import DEFAULT, FakeCluster
from tests.unit.consumer.conftest import MakeConsumer
from tests.unit.consumer.fake_log import FakeLogs
from tests.unit.consumer.group_fakes import FakeGroup, virtual
from tests.unit.consumer.in_parallel import MEMBER, ORDERS, eventually
from tests.unit.consumer.test_consumer_group import Coordinator

if TYPE_CHECKING:
    from kafkaio._consumer.consumer import RewindTo

EAGER = MEMBER | {"partition_assignment_strategy": ["range"]}
COUNT = 10


@pytest.fixture
async def group(cluster: FakeCluster, logs: FakeLogs) -> AsyncIterator[FakeGroup]:
    fill(logs)
    group = FakeGroup(cluster)
    yield group
    group.close()


def fill(logs: FakeLogs) -> None:
    for tp in ORDERS:
        logs.append(*tp, *(b"%d" % number for number in range(COUNT)))


class Seen:
    """Which offsets were handed out, by partition, by whomever."""

    def __init__(self) -> None:
        self.offsets: dict[TopicPartition, list[int]] = {tp: [] for tp in ORDERS}

    async def __call__(self, record: Record) -> None:
        self.offsets[record.topic_partition].append(record.offset)

    def clear(self) -> None:
        for offsets in self.offsets.values():
            offsets.clear()

    @property
    def is_all(self) -> bool:
        return all(offsets[-1:] == [COUNT - 1] for offsets in self.offsets.values())


class Shelf:
    """An offset store that all members share."""

    def __init__(self) -> None:
        self.offsets: dict[TopicPartition, OffsetAndMetadata] = {}

    async def load(
        self, group: GroupMetadata, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        return {tp: self.offsets[tp] for tp in partitions if tp in self.offsets}

    async def commit(
        self, group: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None:
        self.offsets |= offsets


@asynccontextmanager
async def reading(seen: Seen, *consumers: Consumer) -> AsyncIterator[None]:
    """Have every consumer iterate in a task of its own."""

    async def read(consumer: Consumer) -> None:
        async for record in consumer:
            await seen(record)

    async with asyncio.TaskGroup() as tasks:
        readers = [tasks.create_task(read(consumer)) for consumer in consumers]
        yield
        for reader in readers:
            reader.cancel()


def shared(*consumers: Consumer) -> bool:
    owned = [tp for consumer in consumers for tp in consumer.assignment]
    return sorted(owned) == ORDERS and all(c.assignment for c in consumers)


@pytest.mark.parametrize("options", [MEMBER, EAGER], ids=["cooperative", "eager"])
async def test_whoever_owns_them_reads_from_there_on(
    options: dict[str, Any], group: FakeGroup, make: MakeConsumer
) -> None:
    one, two, three = (make(**options) for _ in range(3))
    seen = Seen()
    async with one, two, three, reading(seen, one, two, three):
        await eventually(lambda: shared(one, two, three) and seen.is_all)
        for consumer in (one, two, three):
            await consumer.commit()
        seen.clear()
        to: dict[TopicPartition, RewindTo] = {
            ORDERS[1]: OffsetAndMetadata(0, "x"),
            ORDERS[0]: 4,
        }
        assert list((await two.rewind(to)).items()) == [(ORDERS[1], 0), (ORDERS[0], 4)]
        # Nobody has had a record of them since, and all that come are from there.
        assert group.offsets[ORDERS[0]].offset == 4
        assert group.offsets[ORDERS[1]] == OffsetAndMetadata(0, "x")
        assert not any(seen.offsets.values())
        await eventually(lambda: seen.offsets[ORDERS[1]][-1:] == [COUNT - 1])
        await eventually(lambda: seen.offsets[ORDERS[0]][-1:] == [COUNT - 1])
        await eventually(lambda: shared(one, two, three))
    assert seen.offsets[ORDERS[0]] == list(range(4, COUNT))
    assert seen.offsets[ORDERS[1]] == list(range(COUNT))
    assert seen.offsets[ORDERS[2]] == []
    assert {group.offsets[tp].offset for tp in ORDERS} == {COUNT}


@pytest.mark.parametrize("options", [MEMBER, EAGER], ids=["cooperative", "eager"])
async def test_from_within_the_loop_that_reads(
    options: dict[str, Any], group: FakeGroup, make: MakeConsumer
) -> None:
    times = 0
    found: list[int] = []
    async with make(**options) as consumer:
        async for record in consumer:
            if record.partition == 0:
                found.append(record.offset)
                if record.offset == 5 and times < 2:
                    times += 1
                    await consumer.rewind({record.topic_partition: 3})
            if found[-5:] == [5, 6, 7, 8, 9]:
                break
    assert found == [0, 1, 2, 3, 4, 5, 3, 4, 5, 3, 4, 5, 6, 7, 8, 9]


async def test_one_who_polls_and_rewinds_what_another_one_has(
    group: FakeGroup, make: MakeConsumer
) -> None:
    one, two = make(**MEMBER), make(**MEMBER)
    seen = Seen()
    async with one, two, reading(seen, two):
        while not shared(one, two) or not seen.is_all:
            for record in (await one.poll(timeout=0.1)).records:
                await seen(record)
        seen.clear()
        (theirs, *_) = two.assignment
        await one.rewind({theirs: 7})
        while seen.offsets[theirs][-1:] != [COUNT - 1]:
            for record in (await one.poll(timeout=0.1)).records:
                await seen(record)
    assert seen.offsets[theirs] == [7, 8, 9]


async def test_work_in_hand_is_finished_and_cannot_be_committed_after(
    group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    one, two = make(**MEMBER), make(**MEMBER, enable_auto_commit=False)
    async with one, reading(Seen(), one), two:
        while not shared(one, two):
            await two.poll(timeout=1)
        for tp in ORDERS:
            logs.append(*tp, b"new")
        (record,) = (await two.poll(timeout=30)).records
        rewind = asyncio.create_task(one.rewind({record.topic_partition: 2}))
        await eventually(lambda: bool(two.to_be_revoked))
        await asyncio.sleep(5)
        assert not rewind.done()
        await two.commit(record)  # still ours
        assert group.offsets[record.topic_partition].offset == record.offset + 1
        await two.poll(timeout=0.1)  # told
        await two.poll(timeout=0.1)  # and given up
        await rewind
        with pytest.raises(PartitionLost):
            await two.commit(record)
        assert group.offsets[record.topic_partition].offset == 2


async def test_run_and_lanes_end_their_work_first(
    group: FakeGroup, make: MakeConsumer
) -> None:
    one, two, three = make(**MEMBER), make(**MEMBER), make(**MEMBER)
    seen = Seen()

    async def lanes(consumer: Consumer) -> None:
        async with asyncio.TaskGroup() as bodies:
            async for lane in consumer.partitions():
                bodies.create_task(body(lane))

    async def body(lane: Any) -> None:
        async for record in lane:
            await seen(record)

    async with one, two, three, asyncio.TaskGroup() as tasks:
        works = [
            tasks.create_task(one.run(seen, concurrency=4, ordering="partition")),
            tasks.create_task(lanes(two)),
        ]
        async with reading(seen, three):
            await eventually(lambda: shared(one, two, three) and seen.is_all)
            seen.clear()
            await three.rewind(dict.fromkeys(ORDERS, 6))
            await eventually(lambda: seen.is_all)
        for work in works:
            work.cancel()
    assert seen.offsets == {key: [6, 7, 8, 9] for key in ORDERS}


@pytest.mark.parametrize("ago", [timedelta(hours=1), "by_duration:PT1H"])
async def test_to_where_a_reset_leads(
    ago: timedelta, group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    logs.log(*ORDERS[2]).start = 2
    places: dict[TopicPartition, RewindTo] = {
        ORDERS[0]: "latest",
        ORDERS[1]: ago,
        ORDERS[2]: "earliest",
    }
    async with make(**MEMBER) as consumer:
        moved = await consumer.rewind(places)
        assert moved == dict(zip(ORDERS, [COUNT, COUNT, 2], strict=True))
        found = await consumer.committed(ORDERS)
        assert [at.offset for at in found.values() if at] == [COUNT, COUNT, 2]
        assert await consumer.rewind({}) == {}


async def test_what_a_store_outside_kafka_has_is_moved(
    group: FakeGroup, make: MakeConsumer
) -> None:
    store = Shelf()
    one, two = (make(**MEMBER, offset_store=store) for _ in range(2))
    seen = Seen()
    async with one, reading(seen, one), two, reading(seen, two):
        await eventually(lambda: shared(one, two) and seen.is_all)
        seen.clear()
        await one.rewind(dict.fromkeys(ORDERS, 8))
        await eventually(lambda: seen.is_all)
    assert seen.offsets == {key: [8, 9] for key in ORDERS}
    assert not group.offsets
    assert {at.offset for at in store.offsets.values()} == {COUNT}


async def test_time_runs_out_where_somebody_holds_on(
    group: FakeGroup, make: MakeConsumer
) -> None:
    one, two = make(**MEMBER), make(**MEMBER)
    seen = Seen()
    async with one, reading(seen, one), two, reading(seen, two):
        await eventually(lambda: shared(one, two) and seen.is_all)
        await one.commit()
        await two.commit()
        (theirs, *_) = two.assignment
        listening = two.wait_for_revoke()
        rewind = asyncio.create_task(one.rewind({theirs: 1}, timeout=10))
        async with listening:
            with pytest.raises(RequestTimeout, match="did not release them within"):
                await rewind
        await eventually(lambda: shared(one, two))
        assert group.offsets[theirs].offset == COUNT
        await two.rewind({theirs: COUNT - 1})
        await eventually(lambda: seen.offsets[theirs][-2:] == [COUNT - 1] * 2)


async def test_a_group_that_moves_on_meanwhile_is_asked_again(
    group: FakeGroup, cluster: FakeCluster, make: MakeConsumer
) -> None:
    refused = 0

    def refuse(node: Any, header: Any, request: Any) -> Any:
        nonlocal refused
        wanted = request.topics[0].partitions[0].committed_offset
        if wanted != 3 or refused:
            return DEFAULT
        refused += 1
        group.forget(request.member_id)
        return OffsetCommitResponse(
            topics=[
                OffsetCommitResponseTopic(
                    name="orders",
                    partitions=[
                        OffsetCommitResponsePartition(
                            partition_index=0, error_code=ErrorCode.UNKNOWN_MEMBER_ID
                        )
                    ],
                )
            ]
        )

    cluster.on(ApiKey.OFFSET_COMMIT, refuse)
    one = make(**MEMBER)
    seen = Seen()
    async with one, reading(seen, one):
        await eventually(lambda: seen.is_all)
        seen.clear()
        await one.rewind({ORDERS[0]: 3})
        assert refused == 1
        await eventually(lambda: seen.offsets[ORDERS[0]][-1:] == [COUNT - 1])
    assert seen.offsets[ORDERS[0]] == list(range(3, COUNT))


async def test_a_commit_that_is_refused_for_good_ends_it(
    group: FakeGroup, cluster: FakeCluster, make: MakeConsumer
) -> None:
    code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    reply = OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name="orders",
                partitions=[
                    OffsetCommitResponsePartition(partition_index=0, error_code=code)
                ],
            )
        ]
    )
    async with make(**MEMBER, enable_auto_commit=False) as consumer:
        cluster.on(ApiKey.OFFSET_COMMIT, lambda *_: reply)
        with pytest.raises(AuthorizationError):
            await consumer.rewind({ORDERS[0]: 3})
        await eventually(lambda: shared(consumer))


async def test_a_leader_of_another_client_does_not_listen(
    cluster: FakeCluster, group: FakeGroup, make: MakeConsumer
) -> None:
    share: Callable[[str], SyncGroupResponse] = group._share

    def plain(member_id: str) -> SyncGroupResponse:
        reply = share(member_id)
        reply.assignment = encode_assignment(decode_assignment(reply.assignment))
        return reply

    group._share = plain  # type: ignore[method-assign]  # a leader that says less
    async with make(**MEMBER) as consumer:
        with pytest.raises(RewindRefused, match="which cannot withhold"):
            await consumer.rewind({ORDERS[0]: 3})
        await eventually(lambda: shared(consumer))
        assert not group.offsets


async def test_where_the_brokers_divide_only_what_is_ours_can_be_moved(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
) -> None:
    fill(logs)
    cluster.features["group.version"] = 1
    Coordinator(cluster, share=ORDERS[:2])
    seen = Seen()
    async with make(**MEMBER) as consumer, reading(seen, consumer):
        await eventually(lambda: seen.offsets[ORDERS[1]][-1:] == [COUNT - 1])
        seen.clear()
        with pytest.raises(RewindRefused, match="cannot withhold orders-2") as refused:
            await consumer.rewind(dict.fromkeys(ORDERS, 9))
        assert refused.value.item == ORDERS[2]
        assert refused.value.results == dict.fromkeys(ORDERS[:2], 9)
        await eventually(lambda: seen.offsets[ORDERS[1]][-1:] == [COUNT - 1])
        seen.clear()
        await consumer.rewind({ORDERS[1]: 8})
        await eventually(lambda: seen.offsets[ORDERS[1]][-1:] == [COUNT - 1])
    assert seen.offsets[ORDERS[1]] == [8, 9]


@virtual
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("patience", [0.0, 0.3, 2.0, 7.0])
async def test_what_changes_hands_meanwhile_is_read_from_there_by_the_next_owner(
    protocol: str, patience: float
) -> None:
    async with AsyncExitStack() as stack:
        broker = await stack.enter_async_context(
            Broker(topics={"orders": 3}, memory_transport=True)
        )
        config = ClientConfig.of(broker.bootstrap_servers, {})
        clients = [
            await stack.enter_async_context(
                Client.from_config(config, dial=broker.dial)
            )
            for _ in range(2)
        ]
        async with Producer(clients[0]) as producer:
            for number in range(3 * COUNT):
                await producer.send("orders", b"x", partition=number % 3)
        one, two = (
            Consumer(
                client,
                topics="orders",
                group_id="g",
                auto_offset_reset="earliest",
                group_protocol=protocol,
            )
            for client in clients
        )
        seen = Seen()
        await stack.enter_async_context(one)
        await stack.enter_async_context(reading(seen, one))
        await eventually(lambda: seen.is_all)
        seen.clear()
        # Whoever joins takes a partition of those that are being moved.
        rewind = asyncio.create_task(one.rewind(dict.fromkeys(ORDERS, 7)))
        await asyncio.sleep(patience)
        await stack.enter_async_context(two)
        await stack.enter_async_context(reading(seen, two))
        await rewind
        await eventually(lambda: seen.is_all and shared(one, two))
    assert seen.offsets == {tp: [7, 8, 9] for tp in ORDERS}


async def test_closing_ends_it(group: FakeGroup, make: MakeConsumer) -> None:
    one, two = make(**MEMBER), make(**MEMBER)
    async with one, two, reading(Seen(), two):
        await eventually(lambda: shared(one, two))
        (theirs, *_) = two.assignment
        listening = two.wait_for_revoke()
        rewind = asyncio.create_task(one.rewind({theirs: 1}))
        async with listening:
            await one.close()
            with pytest.raises(ClosedError):
                await rewind


@pytest.mark.parametrize(
    "place", [-1, "none", "by_duration:soon", "yesterday", timedelta(seconds=-1)]
)
async def test_there_is_no_such_place(
    place: RewindTo, group: FakeGroup, make: MakeConsumer
) -> None:
    async with make(**MEMBER) as consumer:
        with pytest.raises(UsageError):
            await consumer.rewind({ORDERS[0]: place})


async def test_who_cannot_rewind(group: FakeGroup, make: MakeConsumer) -> None:
    alone = make(topics="orders")
    fixed = make(assign=ORDERS, group_id="g")
    async with alone, fixed:
        for consumer in (alone, fixed):
            with pytest.raises(UsageError, match="only a group"):
                await consumer.rewind({ORDERS[0]: 0})
    async with make(**MEMBER) as consumer:
        with pytest.raises(UnknownTopicOrPartition):
            await consumer.rewind({TopicPartition("orders", 99): 0})


MISSING = TopicPartition("orders", 99)
NOWHERE = TopicPartition("no-such-topic", 0)


async def test_each_partition_is_moved_or_fails_for_itself(
    group: FakeGroup, make: MakeConsumer
) -> None:
    async with make(**MEMBER) as consumer:
        to: dict[TopicPartition, RewindTo] = {MISSING: "latest", ORDERS[1]: "latest"}
        with pytest.raises(UnknownTopicOrPartition) as one:
            await consumer.rewind(to)
        assert one.value.item == MISSING
        assert one.value.results == {ORDERS[1]: COUNT}
        assert group.offsets[ORDERS[1]].offset == COUNT
        to = {NOWHERE: 1, ORDERS[1]: 3, MISSING: 2, ORDERS[0]: "earliest"}
        with pytest.raises(AdminErrors) as two:
            await consumer.rewind(to, timeout=8)
        assert [error.item for error in two.value.exceptions] == [NOWHERE, MISSING]
        assert two.value.results == {ORDERS[1]: 3, ORDERS[0]: 0}
        assert group.offsets[ORDERS[1]].offset == 3


async def test_a_partition_that_is_held_keeps_no_other(
    group: FakeGroup, make: MakeConsumer
) -> None:
    one, two = make(**MEMBER), make(**MEMBER)
    seen = Seen()
    async with one, reading(seen, one), two, reading(seen, two):
        await eventually(lambda: shared(one, two) and seen.is_all)
        for consumer in (one, two):
            await consumer.commit()
        seen.clear()
        (held, *_) = two.assignment
        (free, *_) = one.assignment
        rewind = asyncio.create_task(one.rewind({held: 1, free: 8}, timeout=10))
        async with two.wait_for_revoke():
            with pytest.raises(RequestTimeout, match="did not release them") as caught:
                await rewind
        assert caught.value.item == held
        assert caught.value.results == {free: 8}
        await eventually(lambda: shared(one, two))
        await eventually(lambda: seen.offsets[free] == [8, 9])
        assert seen.offsets[held] == []


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@virtual
async def test_a_leader_that_is_silent_keeps_no_other(protocol: str) -> None:
    async with (
        Broker(nodes=3, topics={"orders": 3}, memory_transport=True) as broker,
        Client.from_config(
            ClientConfig.of(broker.bootstrap_servers, {}), dial=broker.dial
        ) as client,
        Consumer(
            client, topics="orders", group_id="g", group_protocol=protocol
        ) as consumer,
    ):
        async with Producer(client) as producer:
            for tp in ORDERS:
                for _ in range(COUNT):
                    await producer.send("orders", b"x", partition=tp.partition)
        broker.faults.on(
            "ListOffsets",
            fault(ErrorCode.NOT_LEADER_OR_FOLLOWER),
            partition=ORDERS[1],
        )
        begun = now()
        with pytest.raises(RequestTimeout, match="offsets to go to") as caught:
            await consumer.rewind(dict.fromkeys(ORDERS, "latest"))
        assert caught.value.item == ORDERS[1]
        assert caught.value.results == {ORDERS[0]: COUNT, ORDERS[2]: COUNT}
        assert now() - begun < 30


async def test_a_commit_that_is_refused_keeps_no_other(
    group: FakeGroup, cluster: FakeCluster, make: MakeConsumer
) -> None:
    def refuse(node: Any, header: Any, request: Any) -> Any:
        reply = group._commit(node, header, request)
        for topic in reply.topics:
            for each in topic.partitions:
                if each.partition_index == 1:
                    each.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return reply

    async with make(**MEMBER, enable_auto_commit=False) as consumer:
        cluster.on(ApiKey.OFFSET_COMMIT, refuse)
        with pytest.raises(AuthorizationError) as caught:
            await consumer.rewind(dict.fromkeys(ORDERS, 3))
        assert caught.value.item == ORDERS[1]
        assert caught.value.results == {ORDERS[0]: 3, ORDERS[2]: 3}
