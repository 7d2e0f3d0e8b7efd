"""A random script on three nodes: who leads, who coordinates, and what others say."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random
from typing import Final
from uuid import UUID

from kafkaio._records.builder import encode_batch
from kafkaio.protocol.messages import (
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeLogDirsRequest,
    DescribeTopicPartitionsRequest,
    FetchRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetForLeaderEpochRequest,
    ProduceRequest,
)
from kafkaio.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
)
from kafkaio.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsTopic,
)
from kafkaio.protocol.messages.describe_configs import DescribeConfigsResource
from kafkaio.protocol.messages.describe_log_dirs import DescribableLogDirTopic
from kafkaio.protocol.messages.describe_topic_partitions import TopicRequest
from kafkaio.protocol.messages.fetch import FetchPartition, FetchTopic
from kafkaio.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsTopic,
)
from kafkaio.protocol.messages.metadata import MetadataRequestTopic
from kafkaio.protocol.messages.offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkaio.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kafkaio.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kafkaio.protocol.messages.produce import PartitionProduceData, TopicProduceData
from kafkaio.testing._broker.cluster import OFFSETS_TOPIC
from tests.integration.differential.pair import Pair
from tests.integration.differential.plain import Plain, without_disk
from tests.integration.differential.topics import without_configs

_NOBODY: Final = UUID(int=0)
_NOW: Final = 1_790_000_000_000
_NODES: Final = (1, 2, 3)
#: Replicas of the topic's partitions, the preferred leader first.
_REPLICAS: Final = ([1, 2], [2, 3], [3, 1], [2, 1])
_GROUPS: Final = tuple(f"g{number}" for number in range(6))
_OFFSETS_PARTITIONS: Final = 50

#: Stops a node of both, or starts it again.
Act = Callable[[int], Awaitable[None]]


async def place_offsets(pair: Pair) -> None:
    """Create the topic of committed offsets with the same leaders on both."""
    replicas = [
        CreatableReplicaAssignment(
            partition_index=n, broker_ids=[(n + step) % 3 + 1 for step in range(3)]
        )
        for n in range(_OFFSETS_PARTITIONS)
    ]
    topic = CreatableTopic(
        name=OFFSETS_TOPIC,
        num_partitions=-1,
        replication_factor=-1,
        assignments=replicas,
        configs=[CreatableTopicConfig(name="cleanup.policy", value="compact")],
    )
    await pair.ask(
        CreateTopicsRequest(topics=[topic], timeout_ms=9000),
        7,
        pick=without_configs,
    )
    groups = [f"g{number}" for number in range(32)]
    for node in _NODES:
        find = FindCoordinatorRequest(coordinator_keys=groups)
        await pair.agree(find, 6, f"anyone@{node}")
        asked = [OffsetFetchRequestGroup(group_id=name) for name in groups]
        await pair.agree(OffsetFetchRequest(groups=asked), 8, f"anyone@{node}")


class NodeScript:
    """Steps chosen by dice, each on one of three nodes."""

    def __init__(
        self, pair: Pair, dice: Random, prefix: str, stop: Act, start: Act
    ) -> None:
        self.pair = pair
        self.dice = dice
        self.topic = f"{prefix}-t"
        self.topic_id = _NOBODY
        self.ends = [0] * len(_REPLICAS)
        self.times = 0
        self.down: int | None = None
        self.restarts = False
        self._stop = stop
        self._start = start

    async def run(self, steps: int) -> None:
        """Create the topic, take that many steps, and leave all nodes up."""
        topic = CreatableTopic(
            name=self.topic,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                CreatableReplicaAssignment(partition_index=n, broker_ids=nodes)
                for n, nodes in enumerate(_REPLICAS)
            ],
            configs=[
                CreatableTopicConfig(name="min.insync.replicas", value="1"),
                CreatableTopicConfig(name="retention.ms", value="-1"),
            ],
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=9000)
        (made,) = (await self.pair.ask(request, 7, pick=without_configs))["topics"]
        assert not made["error_code"]
        await self._settle()
        self.restarts = self.dice.random() < 0.3
        kinds = (
            [self.produce] * 5
            + [self.fetch] * 5
            + [self.list_offsets, self.epochs, self.epochs, self.delete_records]
            + [self.metadata, self.partitions, self.cluster, self.configs]
            + [self.sizes, self.coordinator, self.commit, self.commit]
            + [self.committed, self.heartbeat]
        )
        for step in range(steps):
            if self.restarts and step in {steps // 3, 2 * steps // 3}:
                await self.restart()
            await self.dice.choice(kinds)()
        if self.down is not None:
            await self.restart()

    def wrong(self, chance: float = 0.1) -> bool:
        """Whether the next thing is to be wrong."""
        return self.dice.random() < chance

    def _who(self) -> str:
        up = [node for node in _NODES if node != self.down]
        return f"anyone@{self.dice.choice(up)}"

    def _index(self) -> int:
        return self.dice.randrange(len(_REPLICAS))

    async def restart(self) -> None:
        """Stop a node, or start the one that is down."""
        if self.down is None:
            self.down = self.dice.choice(_NODES)
            await self._stop(self.down)
        else:
            node, self.down = self.down, None
            await self._start(node)
        await self._settle()

    async def _settle(self) -> None:
        """Wait until all nodes that are up tell the same of both."""
        asked = [MetadataRequestTopic(name=self.topic)]
        request = MetadataRequest(topics=asked, allow_auto_topic_creation=False)
        up = [node for node in _NODES if node != self.down]
        for node in up:
            told = {"error_code": -1, "partitions": []}
            while told["error_code"] or not self._is_settled(told, up):
                answer = await self.pair.agree(
                    request, 12, f"anyone@{node}", pick=_anyone_controls
                )
                (told,) = answer["topics"]
            self.topic_id = told["topic_id"]
        for node in up:
            # Leaders lead a moment after all say that they do.
            for version in (1, 9):
                await self.pair.agree(
                    self._offsets(range(len(_REPLICAS)), -1, -1),
                    version,
                    f"anyone@{node}",
                )
            asked_groups = [OffsetFetchRequestGroup(group_id=name) for name in _GROUPS]
            await self.pair.agree(
                OffsetFetchRequest(groups=asked_groups), 8, f"anyone@{node}"
            )

    @staticmethod
    def _is_settled(told: Plain, up: list[int]) -> bool:
        """Whether all replicas that are up are in sync."""
        return all(
            set(one["isr_nodes"]) >= set(one["replica_nodes"]) & set(up)
            for one in told["partitions"]
        )

    # The data plane

    async def produce(self) -> None:
        """Write to a node that may lead."""
        version, index = self.dice.randint(3, 13), self._index()
        self.times += 1
        rows = [(_NOW + self.times, None, b"v" * self.dice.choice([1, 100]), ())]
        by_id = version >= 13
        topic = TopicProduceData(
            name="" if by_id else self.topic,
            topic_id=self.topic_id if by_id else _NOBODY,
            partition_data=[
                PartitionProduceData(index=index, records=encode_batch(rows))
            ],
        )
        # What its leader alone has may be lost with a real one.
        acks = -1 if self.restarts else self.dice.choice([-1, -1, 1])
        request = ProduceRequest(acks=acks, timeout_ms=9000, topic_data=[topic])
        answer = await self.pair.ask(request, version, self._who())
        (told,) = answer["responses"][0]["partition_responses"]
        if not told["error_code"]:
            self.ends[index] = told["base_offset"] + 1

    async def fetch(self) -> None:
        """Read from a node that may lead, follow, or have no replica at all."""
        version, index = self.dice.randint(4, 18), self._index()
        part = FetchPartition(
            partition=index,
            fetch_offset=self.dice.randint(0, max(0, self.ends[index] - 1)),
            partition_max_bytes=1 << 20,
            current_leader_epoch=self._epoch() if version >= 9 else -1,
        )
        by_id = version >= 13
        topic = FetchTopic(
            topic="" if by_id else self.topic,
            topic_id=self.topic_id if by_id else _NOBODY,
            partitions=[part],
        )
        rack = self.dice.choice(["", "", "r1", "r2", "r3", "far"])
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1 << 20,
            topics=[topic],
            session_epoch=-1,
            rack_id=rack if version >= 11 else "",
        )
        # A follower hears of what it may tell with its next fetch.
        await self.pair.agree(request, version, self._who())

    def _epoch(self) -> int:
        return self.dice.choice([-1, -1, 0, 1, 7])

    def _offsets(
        self, indexes: range | list[int], timestamp: int, epoch: int
    ) -> ListOffsetsRequest:
        parts = [
            ListOffsetsPartition(
                partition_index=index, timestamp=timestamp, current_leader_epoch=epoch
            )
            for index in indexes
        ]
        topic = ListOffsetsTopic(name=self.topic, partitions=parts)
        return ListOffsetsRequest(replica_id=-1, topics=[topic])

    async def list_offsets(self) -> None:
        """Look an offset up where it may not be known."""
        version = self.dice.randint(1, 11)
        epoch = self._epoch() if version >= 4 else -1
        request = self._offsets([self._index()], self.dice.choice([-1, -2, 0]), epoch)
        await self.pair.agree(request, version, self._who())

    async def epochs(self) -> None:
        """Ask where leader epochs end."""
        part = OffsetForLeaderPartition(
            partition=self._index(),
            current_leader_epoch=self._epoch(),
            leader_epoch=self.dice.choice([0, 0, 1, 2]),
        )
        request = OffsetForLeaderEpochRequest(
            replica_id=-1,
            topics=[OffsetForLeaderTopic(topic=self.topic, partitions=[part])],
        )
        await self.pair.agree(request, 4, self._who())

    async def delete_records(self) -> None:
        """Cut a log off at its front."""
        index = self._index()
        part = DeleteRecordsPartition(
            partition_index=index, offset=self.dice.choice([0, self.ends[index] // 2])
        )
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=self.topic, partitions=[part])],
            timeout_ms=9000,
        )
        await self.pair.ask(request, 2, self._who())

    # What there is

    async def metadata(self) -> None:
        """Ask who leads."""
        asked = [MetadataRequestTopic(name=name) for name in (self.topic, "nothing")]
        request = MetadataRequest(topics=asked, allow_auto_topic_creation=False)
        version = self.dice.randint(4, 13)
        await self.pair.agree(request, version, self._who(), pick=_anyone_controls)

    async def partitions(self) -> None:
        """Ask who leads, page by page."""
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=self.topic)],
            response_partition_limit=self.dice.choice([1, 3, 2000]),
        )
        await self.pair.agree(request, 0, self._who())

    async def cluster(self) -> None:
        """Ask who is up."""
        request = DescribeClusterRequest(include_fenced_brokers=self.wrong(0.5))
        await self.pair.agree(request, 2, self._who(), pick=_anyone_controls)

    async def configs(self) -> None:
        """Ask a node for its configs, or another's."""
        resource = DescribeConfigsResource(
            resource_type=4,
            resource_name=str(self.dice.choice([*_NODES, 9])),
            configuration_keys=["nothing"],
        )
        request = DescribeConfigsRequest(resources=[resource])
        await self.pair.ask(request, 4, self._who())

    async def sizes(self) -> None:
        """Ask a node what it has replicas of."""
        parts = DescribableLogDirTopic(
            topic=self.topic, partitions=list(range(len(_REPLICAS)))
        )
        request = DescribeLogDirsRequest(topics=[parts])
        await self.pair.agree(request, 5, self._who(), pick=without_disk)

    # Groups

    async def coordinator(self) -> None:
        """Ask who coordinates."""
        request = FindCoordinatorRequest(coordinator_keys=list(_GROUPS))
        await self.pair.agree(request, 6, self._who())

    async def commit(self) -> None:
        """Commit to a node that may coordinate the group."""
        part = OffsetCommitRequestPartition(
            partition_index=self._index(), committed_offset=self.dice.randrange(9)
        )
        request = OffsetCommitRequest(
            group_id=self.dice.choice(_GROUPS),
            topics=[OffsetCommitRequestTopic(name=self.topic, partitions=[part])],
        )
        await self.pair.ask(request, self.dice.randint(2, 9), self._who())

    async def committed(self) -> None:
        """Look commits up."""
        topics = [
            OffsetFetchRequestTopics(name=self.topic, partition_indexes=[0, 1, 2, 3])
        ]
        groups = [
            OffsetFetchRequestGroup(group_id=name, topics=topics) for name in _GROUPS
        ]
        request = OffsetFetchRequest(groups=groups)
        await self.pair.ask(request, 9, self._who())

    async def heartbeat(self) -> None:
        """Be nobody's member, here or there."""
        request = HeartbeatRequest(
            group_id=self.dice.choice(_GROUPS), generation_id=1, member_id="me"
        )
        await self.pair.ask(request, self.dice.randint(0, 4), self._who())


def _anyone_controls(answer: Plain) -> Plain:
    """Leave out the controller: real nodes name any, for each passes its work on."""
    return {**answer, "controller_id": None}


async def nodes(pair: Pair, dice: Random, prefix: str, stop: Act, start: Act) -> None:
    """The data plane, metadata and offsets, from nodes that lead and others."""
    await NodeScript(pair, dice, prefix, stop, start).run(40)
