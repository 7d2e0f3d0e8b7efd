"""What is kept of groups is Kafka's own: each goes on with the other's groups."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Self

import pytest

from kafkaio._records.batch import read_batches
from kafkaio._records.builder import encode_batch
from kafkaio.protocol._codec import encode
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages import (
    ConsumerGroupDescribeRequest,
    FetchRequest,
    FindCoordinatorRequest,
    JoinGroupRequest,
    ProduceRequest,
    SyncGroupRequest,
)
from kafkaio.protocol.messages.consumer_group_describe import (
    DescribedGroup,
)
from kafkaio.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatResponse,
)
from kafkaio.protocol.messages.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
)
from kafkaio.protocol.messages.fetch import FetchPartition, FetchTopic
from kafkaio.protocol.messages.join_group import JoinGroupRequestProtocol
from kafkaio.protocol.messages.produce import PartitionProduceData, TopicProduceData
from kafkaio.testing import Broker
from kafkaio.testing._broker.cluster import OFFSETS_TOPIC, java_hash
from kafkaio.testing._groups.cluster_port import KeyValue
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.kafka._releases import find_release
from tests.integration.differential.heartbeats import beat, joining
from tests.integration.differential.pair import Side
from tests.support.java import Toolbox
from tests.support.patience import HANGS

pytestmark = [
    pytest.mark.kafka_versions("newest"),
    pytest.mark.not_embedded("is about both brokers in any case"),
    pytest.mark.asyncio(loop_scope="module"),
]

SHARDS = 50
#: Only this client may write to a topic of the brokers' own.
ADMIN = "__admin_client"
DUMP = "org.apache.kafka.tools.DumpLogSegments"
#: The kinds of records of a group of the consumer protocol.
KINDS = {3, 5, 6, 7, 8, 16}


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(HANGS):
        while not await condition():  # noqa: ASYNC110  (a broker tells nobody)
            await asyncio.sleep(0.05)


class Members:
    """A group of both protocols, one member of which has yet to give something up."""

    def __init__(self, side: Side, group: str) -> None:
        self.side = side
        self.group = group
        self.shard = abs(java_hash(group)) % SHARDS

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.side.close()

    async def find(self) -> None:
        """Wait until the group has a coordinator."""
        find = FindCoordinatorRequest(coordinator_keys=[self.group])

        async def is_there() -> bool:
            return not (await self.side.ask(find, 6)).coordinators[0].error_code

        await until(is_there)

    async def describe(self) -> DescribedGroup:
        request = ConsumerGroupDescribeRequest(group_ids=[self.group])
        (found,) = (await self.side.ask(request, 1)).groups
        found.members.sort(key=lambda one: one.member_id)
        for one in found.members:  # in the order of a Java map, keyed by random ids
            for what in (one.assignment, one.target_assignment):
                what.topic_partitions.sort(key=lambda topic: topic.topic_name)
        return found

    async def is_loaded(self) -> bool:
        """Whether the coordinator knows if there is such a group."""
        known = {ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND}
        return (await self.describe()).error_code in known

    async def beat(
        self, member_id: str, epoch: int, **fields: object
    ) -> ConsumerGroupHeartbeatResponse:
        request = beat(self.group, member_id, epoch)
        if epoch == 0:
            request = joining(self.group, member_id)
            request.rebalance_timeout_ms = 300_000
            request.server_assignor = "range"
        for name, value in fields.items():
            setattr(request, name, value)
        answer = await self.side.ask(request, 1)
        assert not answer.error_code, answer
        return answer

    async def gather(self) -> DescribedGroup:
        await self.find()
        await until(self.is_loaded)
        first = await self.beat("a", 0, subscribed_topic_names=["t"], rack_id="r1")
        await self.beat("s", 0, instance_id="i", subscribed_topic_regex="^u$")

        async def has_matched() -> bool:
            return (await self.beat("s", 2, instance_id="i")).member_epoch > 2

        await until(has_matched)
        joined = await self.side.ask(self._join(), 9)
        assert not joined.error_code
        sync = SyncGroupRequest(
            group_id=self.group,
            generation_id=joined.generation_id,
            member_id="c",
            protocol_type="consumer",
            protocol_name="range",
        )
        assert not (await self.side.ask(sync, 5)).error_code
        revoked = await self.beat("a", first.member_epoch)
        assert revoked.assignment is not None
        found = await self.describe()
        assert [one.member_type for one in found.members] == [1, 0, 1]
        return found

    async def go_on(self, group: DescribedGroup) -> None:
        """Let members of the consumer protocol send heartbeats as if nothing was."""
        for one in group.members:
            if one.member_type:
                epoch, instance = one.member_epoch, one.instance_id
                await self.beat(one.member_id, epoch, instance_id=instance)

    def _join(self) -> JoinGroupRequest:
        said = encode(ConsumerProtocolSubscription(topics=["t", "u"]), 1)
        protocol = JoinGroupRequestProtocol(name="range", metadata=b"\x00\x01" + said)
        return JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=60_000,
            rebalance_timeout_ms=300_000,
            member_id="c",
            protocol_type="consumer",
            protocols=[protocol],
        )


async def written(members: Members) -> list[KeyValue]:
    """Read everything in the shard of a group."""
    asked = FetchPartition(
        partition=members.shard, fetch_offset=0, partition_max_bytes=1 << 20
    )
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 20,
        topics=[FetchTopic(topic=OFFSETS_TOPIC, partitions=[asked])],
    )
    answer = await members.side.ask(request, 11)
    data = answer.responses[0].partitions[0].records
    assert isinstance(data, bytes | bytearray | memoryview)
    return [
        (record.key, record.value)
        for batch in read_batches(bytes(data))
        for record in batch.decode(OFFSETS_TOPIC, members.shard, 0)
        if record.key is not None
    ]


async def write(members: Members, records: list[KeyValue]) -> None:
    """Add to the shard of a group, behind the back of its coordinator."""
    batch = encode_batch((0, key, value, ()) for key, value in records)
    data = PartitionProduceData(index=members.shard, records=batch)
    topic = TopicProduceData(name=OFFSETS_TOPIC, partition_data=[data])
    request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic])
    answer = await members.side.ask(request, 11, ADMIN)
    assert not answer.responses[0].partition_responses[0].error_code


@pytest.mark.timeout(120)
async def test_we_go_on_with_a_group_of_a_real_broker(
    kafka: Kafka, embedded: Broker
) -> None:
    with (
        Members(Side(kafka.bootstrap_servers), "theirs") as real,
        Members(Side(embedded.bootstrap_servers), "theirs") as ours,
    ):
        expected = await real.gather()
        records = await written(real)
        assert {int.from_bytes(key[:2]) for key, _ in records} >= KINDS
        await ours.find()
        # The coordinator reads them when it is first asked for the group.
        await write(ours, records)
        found = await ours.describe()
        # Kafka tells by another number what topics were, so they are taken for others.
        now = found.group_epoch, found.group_state
        assert now == (expected.group_epoch + 1, "Assigning")
        found.group_epoch = expected.group_epoch
        found.group_state = expected.group_state
        assert found == expected
        await ours.go_on(expected)


@pytest.mark.timeout(120)
async def test_a_real_broker_goes_on_with_a_group_of_ours(
    kafka: Kafka, embedded: Broker
) -> None:
    with Members(Side(embedded.bootstrap_servers), "ours") as ours:
        expected = await ours.gather()
        with Members(Side(kafka.bootstrap_servers), "ours") as real:
            await real.find()
            await write(real, await written(ours))
        # It reads them when it starts.
        await kafka.restart(1)
        with Members(Side(kafka.bootstrap_servers), "ours") as real:
            await until(real.is_loaded)
            assert await real.describe() == expected
            await real.go_on(expected)


async def test_kafkas_log_dump_reads_our_groups(tmp_path: Path) -> None:
    async with Broker(topics={"t": 3, "u": 3}, data_dir=tmp_path) as broker:
        with Members(Side(broker.bootstrap_servers), "g") as members:
            await members.gather()
            await members.beat("a", -1)
            await members.beat("s", -1, instance_id="i")
    segment = tmp_path / f"{OFFSETS_TOPIC}-{members.shard}" / f"{0:020}.log"
    output = await Toolbox(find_release()).run(
        DUMP, "--offsets-decoder", "--files", str(segment)
    )
    assert output.returncode == 0, output.stderr
    told = [_key_and_value(line) for line in output.lines if " key: " in line]
    kept = {int(key["type"]) for key, value in told if value is not None}
    gone = {int(key["type"]) for key, value in told if value is None}
    # The last member of the protocol left: all of it is taken back for a classic group.
    assert (kept, gone) == (KINDS | {2}, KINDS)


def _key_and_value(line: str) -> tuple[dict[str, Any], dict[str, Any] | None]:
    key, _, value = line.partition(" key: ")[2].partition(" payload: ")
    return json.loads(key), None if value == "<DELETE>" else json.loads(value)
