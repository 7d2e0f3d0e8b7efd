"""A transactional producer, a member and a reader that send single requests by hand.

Nothing here retries a request or reacts to a code, unless its name says so: a test
sees what the broker answered. Requests go through the connections of a
`kafkaio.Client`, which finds leaders and coordinators.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, NamedTuple

from kafkaio._client import Client, CoordinatorKind
from kafkaio._client.client import cluster_of
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._records.batch import BatchBuilder, RecordBatch, read_batches
from kafkaio._runtime.clock import wall_ms
from kafkaio.protocol._codec import encode
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import Request, ResponseT
from kafkaio.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafkaio.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from kafkaio.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from kafkaio.protocol.messages.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
)
from kafkaio.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    ProducerState,
    TopicRequest,
)
from kafkaio.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    TransactionState,
)
from kafkaio.protocol.messages.end_txn import EndTxnRequest
from kafkaio.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionData,
)
from kafkaio.protocol.messages.init_producer_id import InitProducerIdRequest
from kafkaio.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kafkaio.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kafkaio.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafkaio.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafkaio.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkaio.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from kafkaio.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkaio.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from kafkaio.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kafkaio.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kafkaio.types import TopicPartition

E = ErrorCode

#: What a coordinator answers while it loads, and while a transaction is being ended.
PASSING: Final = frozenset(
    {
        E.CONCURRENT_TRANSACTIONS,
        E.COORDINATOR_LOAD_IN_PROGRESS,
        E.COORDINATOR_NOT_AVAILABLE,
        E.NOT_COORDINATOR,
    }
)
_ANSWER_SECONDS: Final = 20.0
_LIMIT_SECONDS: Final = 40.0
#: The pace of questions that are repeated until the answer is another.
_PACE_SECONDS: Final = 0.01
_SUBSCRIPTION_VERSION: Final = 1
#: The replica id of whom an isolation level is meant for; 0 is that of a broker.
_CONSUMER: Final = -1


class Identity(NamedTuple):
    """A producer id and epoch; by default of a producer that has none yet."""

    producer_id: int = -1
    epoch: int = -1

    def moved(self, epochs: int) -> Identity:
        """The same producer id with an epoch so much higher."""
        return Identity(self.producer_id, self.epoch + epochs)


class Versions(NamedTuple):
    """The highest versions of requests that a protocol of transactions has."""

    produce: int
    end_txn: int
    txn_offset_commit: int


#: The protocol before KIP-890's second part: partitions are added by request.
OLD: Final = Versions(11, 4, 4)
#: That of KIP-890's second part: an end raises the epoch. Topics go by name.
NEW: Final = Versions(12, 5, 5)


class Member(NamedTuple):
    """What a group knows of a member; by default of a committer that is none."""

    member_id: str = ""
    generation: int = -1
    instance_id: str | None = None


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Ask again and again, at a slow pace, until it is so."""
    async with asyncio.timeout(_LIMIT_SECONDS):
        while not await condition():  # noqa: ASYNC110  (a broker tells nobody)
            await asyncio.sleep(_PACE_SECONDS)


class Cluster:
    """Sends a request once to the leader or coordinator of something."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._cluster = cluster_of(client)

    async def _ask(
        self, node_id: int, request: Request[ResponseT], version: int
    ) -> ResponseT:
        connection = await self._cluster.connection(node_id, ConnectionClass.SHARED)
        return await connection.call(
            request, timeout=_ANSWER_SECONDS, max_version=version
        )

    async def any(self, request: Request[ResponseT], version: int) -> ResponseT:
        """Ask any broker."""
        return await self._ask(
            next(iter(self._client.cluster.brokers)), request, version
        )

    async def leader_of(self, tp: TopicPartition) -> int:
        """The node id of a partition's leader; of any broker if there is none."""
        if tp.topic.startswith("absent"):
            return next(iter(self._client.cluster.brokers))
        view = await self._cluster.wait_for_topics([tp.topic])
        leader = view.leader(tp)
        assert leader is not None
        return leader

    async def leader(
        self, tp: TopicPartition, request: Request[ResponseT], version: int
    ) -> ResponseT:
        """Ask the leader of a partition."""
        return await self._ask(await self.leader_of(tp), request, version)

    async def group(
        self, group_id: str, request: Request[ResponseT], version: int
    ) -> ResponseT:
        """Ask the coordinator of a group."""
        node = await self._cluster.coordinator(CoordinatorKind.GROUP, group_id)
        return await self._ask(node, request, version)

    async def transaction(
        self, name: str, request: Request[ResponseT], version: int
    ) -> ResponseT:
        """Ask the coordinator of a transactional id."""
        return await self._ask(await self.coordinator_of(name), request, version)

    async def coordinator_of(self, name: str) -> int:
        """The node id of the coordinator of a transactional id."""
        return await self._cluster.coordinator(CoordinatorKind.TRANSACTION, name)

    async def group_coordinator_of(self, group: str) -> int:
        """The node id of the coordinator of a group."""
        return await self._cluster.coordinator(CoordinatorKind.GROUP, group)

    def forget(self, kind: CoordinatorKind, key: str) -> None:
        """Forget who the coordinator is, whoever it was."""
        for node_id in self._client.cluster.brokers:
            self._cluster.forget_coordinator(kind, key, node_id)

    async def partitions(self, topic: str) -> list[TopicPartition]:
        """All partitions of a topic."""
        view = await self._cluster.wait_for_topics([topic])
        count = view.partition_count(topic) or 0
        return [TopicPartition(topic, index) for index in range(count)]

    async def replicas_of(self, tp: TopicPartition) -> list[int]:
        """The node ids of a partition's replicas."""
        view = await self._cluster.wait_for_topics([tp.topic])
        (found,) = (one for one in view.partitions(tp.topic) if one.partition == tp[1])
        return list(found.replicas)

    async def topic_id(self, topic: str) -> object:
        """The id of a topic."""
        view = await self._cluster.wait_for_topics([topic])
        return view.topic_id(topic)


class RawProducer:
    """A transactional producer by hand; a call returns the codes it was answered.

    Args:
        cluster: where requests go.
        name: the transactional id.
        versions: the protocol, `OLD` or `NEW`.
        timeout_ms: the transaction timeout.

    Attributes:
        who: what the coordinator gave last; ``init`` and ``end`` adopt it.
    """

    def __init__(
        self,
        cluster: Cluster,
        name: str,
        versions: Versions,
        timeout_ms: int = 60_000,
    ) -> None:
        self.cluster = cluster
        self.name = name
        self.versions = versions
        self.timeout_ms = timeout_ms
        self.who = Identity()

    @property
    def is_new(self) -> bool:
        """Whether it speaks the newer protocol."""
        return self.versions is NEW

    # ---- requests ----------------------------------------------------------------

    async def init(self, who: Identity | None = None, version: int = 5) -> ErrorCode:
        """InitProducerId, for a new life or with an identity to raise."""
        producer_id, epoch = who or Identity()
        request = InitProducerIdRequest(
            transactional_id=self.name,
            transaction_timeout_ms=self.timeout_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
        )
        # Nobody coordinates an empty id.
        found = await self.cluster.transaction(self.name or "empty", request, version)
        if not found.error_code:
            self.who = Identity(found.producer_id, found.producer_epoch)
        return E(found.error_code)

    async def start(self) -> Identity:
        """InitProducerId for a new life, until it succeeds; return the identity."""

        async def is_started() -> bool:
            code = await self.init()
            assert code in {E.NONE, *PASSING}
            if code not in {E.NONE, E.CONCURRENT_TRANSACTIONS}:
                self.cluster.forget(CoordinatorKind.TRANSACTION, self.name)
            return code == E.NONE

        await until(is_started)
        return self.who

    async def add(
        self, *places: TopicPartition, who: Identity | None = None, version: int = 3
    ) -> list[ErrorCode]:
        """AddPartitionsToTxn; a code for each partition, in the order given."""
        producer_id, epoch = who or self.who
        topics = {tp.topic: [] for tp in places}  # type: dict[str, list[int]]
        for tp in places:
            topics[tp.topic].append(tp.partition)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=name, partitions=numbers)
                for name, numbers in topics.items()
            ],
        )
        answer = await self.cluster.transaction(self.name, request, version)
        found = {
            (topic.name, one.partition_index): E(one.partition_error_code)
            for topic in answer.results_by_topic_v3_and_below
            for one in topic.results_by_partition
        }
        return [found[tp.topic, tp.partition] for tp in places]

    async def add_offsets(
        self, group: str, who: Identity | None = None, version: int = 4
    ) -> ErrorCode:
        """AddOffsetsToTxn."""
        producer_id, epoch = who or self.who
        request = AddOffsetsToTxnRequest(
            transactional_id=self.name,
            producer_id=producer_id,
            producer_epoch=epoch,
            group_id=group,
        )
        answer = await self.cluster.transaction(self.name, request, version)
        return E(answer.error_code)

    async def write(
        self,
        tp: TopicPartition,
        sequence: int,
        values: Sequence[bytes] = (b"v",),
        *,
        who: Identity | None = None,
        version: int | None = None,
        name: str | None = "",
        at_ms: int | None = None,
    ) -> ErrorCode:
        """Produce a batch to a partition's leader; ``name=None`` names no id."""
        producer_id, epoch = who or self.who
        builder = BatchBuilder(transactional=True)
        for value in values:
            builder.try_append(at_ms or wall_ms(), None, value, ())
        batch = builder.build(
            producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence
        )
        data = PartitionProduceData(index=tp.partition, records=batch)
        request = ProduceRequest(
            transactional_id=self.name if name == "" else name,
            acks=-1,
            timeout_ms=5_000,
            topic_data=[TopicProduceData(name=tp.topic, partition_data=[data])],
        )
        version = version or self.versions.produce
        answer = await self.cluster.leader(tp, request, version)
        (found,) = answer.responses[0].partition_responses
        return E(found.error_code)

    async def commit_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, int],
        member: Member = Member(),  # noqa: B008  (it cannot change)
        *,
        who: Identity | None = None,
        version: int | None = None,
    ) -> list[ErrorCode]:
        """TxnOffsetCommit; a code for each partition, in the order given."""
        producer_id, epoch = who or self.who
        topics = [
            TxnOffsetCommitRequestTopic(
                name=tp.topic,
                partitions=[
                    TxnOffsetCommitRequestPartition(
                        partition_index=tp.partition, committed_offset=offset
                    )
                ],
            )
            for tp, offset in offsets.items()
        ]
        request = TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=group,
            producer_id=producer_id,
            producer_epoch=epoch,
            generation_id_or_member_epoch=member.generation,
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            topics=topics,
        )
        version = version or self.versions.txn_offset_commit
        answer = await self.cluster.group(group, request, version)
        found = {
            (topic.name, one.partition_index): E(one.error_code)
            for topic in answer.topics
            for one in topic.partitions
        }
        return [found[tp.topic, tp.partition] for tp in offsets]

    async def end(
        self,
        *,
        commit: bool,
        who: Identity | None = None,
        version: int | None = None,
    ) -> ErrorCode:
        """EndTxn."""
        producer_id, epoch = who or self.who
        request = EndTxnRequest(
            transactional_id=self.name,
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=commit,
        )
        version = version or self.versions.end_txn
        found = await self.cluster.transaction(self.name, request, version)
        if not found.error_code and found.producer_id >= 0:
            self.who = Identity(found.producer_id, found.producer_epoch)
        return E(found.error_code)

    # ---- several requests, which have to succeed -------------------------------------

    async def enter(self, *places: TopicPartition) -> None:
        """In the older protocol, add partitions; wait for markers written before."""
        if self.is_new:
            return

        async def are_added() -> bool:
            codes = await self.add(*places)
            assert set(codes) <= {E.NONE, E.CONCURRENT_TRANSACTIONS}
            return not any(codes)

        await until(are_added)

    async def send(
        self, tp: TopicPartition, sequence: int, values: Sequence[bytes] = (b"v",)
    ) -> None:
        """Write a batch; wait for markers of the transaction before."""
        await self.enter(tp)

        async def is_written() -> bool:
            code = await self.write(tp, sequence, values)
            # The transaction before is being ended; or that could not be verified.
            assert code in {E.NONE, E.CONCURRENT_TRANSACTIONS, E.NOT_ENOUGH_REPLICAS}, (
                code
            )
            return code == E.NONE

        await until(is_written)

    async def finish(self, *, commit: bool) -> Identity:
        """End the transaction and wait for its markers; return who ended it."""
        before = self.who
        assert await self.end(commit=commit) == E.NONE
        await self.settled(before, commit=commit)
        return before

    async def settled(self, before: Identity, *, commit: bool) -> None:
        """Wait for the markers: the same end again is then not concurrent any more."""

        async def is_settled() -> bool:
            code = await self.end(commit=commit, who=before)
            assert code in {E.NONE, E.CONCURRENT_TRANSACTIONS}
            return code == E.NONE

        await until(is_settled)


async def loaded(cluster: Cluster, groups: Sequence[str]) -> None:
    """Wait until the coordinators of groups answer; the first use creates them."""
    for group in groups:

        async def answers(group: str = group) -> bool:
            code, _ = await fetch_offset(cluster, group, TopicPartition("absent", 0))
            if code in PASSING:
                cluster.forget(CoordinatorKind.GROUP, group)
            return code not in PASSING

        await until(answers)


async def in_sync(cluster: Cluster, *topics: str) -> None:
    """Wait until all replicas of all partitions of some topics are in sync."""

    async def are_in_sync() -> bool:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=n) for n in topics])
        answer = await cluster.any(request, 9)
        return all(
            sorted(one.isr_nodes) == sorted(one.replica_nodes)
            for topic in answer.topics
            for one in topic.partitions
        )

    await until(are_in_sync)


# ---- members of groups ---------------------------------------------------------------


async def join_classic(cluster: Cluster, group: str, topic: str) -> Member:
    """Join a group of the classic protocol that has no other member."""
    said = encode(ConsumerProtocolSubscription(topics=[topic]), _SUBSCRIPTION_VERSION)
    metadata = _SUBSCRIPTION_VERSION.to_bytes(2) + said
    joined = JoinGroupResponse()

    async def is_member() -> bool:
        nonlocal joined
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            member_id=joined.member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
        )
        answer = await cluster.group(group, request, 6)
        if answer.error_code in PASSING:
            cluster.forget(CoordinatorKind.GROUP, group)
        else:
            joined = answer
        return not answer.error_code

    await until(is_member)
    member = Member(joined.member_id, joined.generation_id)
    request = SyncGroupRequest(
        group_id=group,
        generation_id=member.generation,
        member_id=member.member_id,
        assignments=[
            SyncGroupRequestAssignment(member_id=member.member_id, assignment=b"")
        ],
    )
    assert (await cluster.group(group, request, 4)).error_code == E.NONE
    return member


async def leave_classic(cluster: Cluster, group: str, member: Member) -> None:
    """Leave a group of the classic protocol."""
    request = LeaveGroupRequest(
        group_id=group, members=[MemberIdentity(member_id=member.member_id)]
    )
    answer = await cluster.group(group, request, 4)
    assert (answer.error_code, answer.members[0].error_code) == (E.NONE, E.NONE)


class ConsumerMember:
    """A member of a group of the consumer protocol (KIP-848), heartbeat by heartbeat.

    Attributes:
        owned: the partitions that it was assigned and says that it has.
    """

    def __init__(self, cluster: Cluster, group: str, topic: str, name: str) -> None:
        self._cluster = cluster
        self._group = group
        self._topic = topic
        self._name = name
        self.epoch = 0
        self.owned: set[int] = set()

    @property
    def member(self) -> Member:
        """Who it is now."""
        return Member(self._name, self.epoch)

    async def beat(self, epoch: int | None = None) -> None:
        """One heartbeat that says what it owns; take over what is assigned."""
        is_joining = not self.epoch
        owned = ConsumerGroupHeartbeatRequestTopicPartitions(
            topic_id=await self._cluster.topic_id(self._topic),  # type: ignore[arg-type]
            partitions=sorted(self.owned),
        )
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group,
            member_id=self._name,
            member_epoch=self.epoch if epoch is None else epoch,
            rebalance_timeout_ms=30_000 if is_joining else -1,
            subscribed_topic_names=[self._topic] if is_joining else None,
            topic_partitions=[owned] if self.owned else [],
        )
        answer = await self._cluster.group(self._group, request, 1)
        if answer.error_code in PASSING:
            self._cluster.forget(CoordinatorKind.GROUP, self._group)
            return
        assert answer.error_code == E.NONE, answer.error_message
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.owned = {
                index
                for one in answer.assignment.topic_partitions
                for index in one.partitions
            }

    async def owning(self, count: int) -> None:
        """Send heartbeats until it has so many partitions."""

        async def has_them() -> bool:
            await self.beat()
            return len(self.owned) == count

        await until(has_them)
        await self.beat()  # so that the group knows

    async def leave(self) -> None:
        """Leave the group."""
        await self.beat(-1)


async def commit_plain(
    cluster: Cluster, group: str, tp: TopicPartition, offset: int, member: Member
) -> ErrorCode:
    """OffsetCommit, outside any transaction."""
    partition = OffsetCommitRequestPartition(
        partition_index=tp.partition, committed_offset=offset
    )
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=member.generation,
        member_id=member.member_id,
        topics=[OffsetCommitRequestTopic(name=tp.topic, partitions=[partition])],
    )
    answer = await cluster.group(group, request, 9)
    return E(answer.topics[0].partitions[0].error_code)


async def fetch_offset(
    cluster: Cluster, group: str, tp: TopicPartition, *, stable: bool = True
) -> tuple[ErrorCode, int]:
    """OffsetFetch of one partition: code and offset."""
    topic = OffsetFetchRequestTopic(name=tp.topic, partition_indexes=[tp.partition])
    request = OffsetFetchRequest(group_id=group, topics=[topic], require_stable=stable)
    answer = await cluster.group(group, request, 7)
    if answer.error_code:
        return E(answer.error_code), -1
    (found,) = answer.topics[0].partitions
    return E(found.error_code), found.committed_offset


# ---- what readers and operators see --------------------------------------------------


class Ends(NamedTuple):
    """How far readers with read_uncommitted and with read_committed get."""

    high_watermark: int
    last_stable_offset: int


async def ends(cluster: Cluster, tp: TopicPartition) -> Ends:
    """The end offsets of both isolation levels by ListOffsets."""
    found: list[int] = []
    for isolation in (0, 1):
        partition = ListOffsetsPartition(partition_index=tp.partition, timestamp=-1)
        request = ListOffsetsRequest(
            replica_id=_CONSUMER,
            isolation_level=isolation,
            topics=[ListOffsetsTopic(name=tp.topic, partitions=[partition])],
        )
        answer = await cluster.leader(tp, request, 5)
        (one,) = answer.topics[0].partitions
        assert one.error_code == E.NONE
        found.append(one.offset)
    return Ends(*found)


async def led(cluster: Cluster, tp: TopicPartition) -> None:
    """Wait until the leader of a new partition acts, which is after it is known."""

    async def is_led() -> bool:
        partition = ListOffsetsPartition(partition_index=tp.partition, timestamp=-2)
        topic = ListOffsetsTopic(name=tp.topic, partitions=[partition])
        request = ListOffsetsRequest(replica_id=_CONSUMER, topics=[topic])
        answer = await cluster.leader(tp, request, 5)
        (found,) = answer.topics[0].partitions
        assert found.error_code in {E.NONE, E.NOT_LEADER_OR_FOLLOWER}
        return found.error_code == E.NONE

    await until(is_led)


async def stable(cluster: Cluster, tp: TopicPartition) -> None:
    """Wait until no transaction is open in a partition."""

    async def is_stable() -> bool:
        high_watermark, last_stable_offset = await ends(cluster, tp)
        return high_watermark == last_stable_offset

    await until(is_stable)


async def fetch(
    cluster: Cluster, tp: TopicPartition, offset: int = 0, isolation: int = 0
) -> PartitionData:
    """Fetch once, without waiting for records to come."""
    partition = FetchPartition(
        partition=tp.partition, fetch_offset=offset, partition_max_bytes=1 << 20
    )
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 20,
        isolation_level=isolation,
        topics=[FetchTopic(topic=tp.topic, partitions=[partition])],
    )
    answer = await cluster.leader(tp, request, 11)
    (found,) = answer.responses[0].partitions
    assert found.error_code == E.NONE
    return found


def batches(data: PartitionData) -> list[RecordBatch]:
    """The batches of a fetch."""
    found = read_batches(bytes(data.records or b""))
    return [one for one in found if isinstance(one, RecordBatch)]


async def visible(cluster: Cluster, tp: TopicPartition) -> list[bytes]:
    """The values that a read_committed reader is left with, up to the last stable."""
    data = await fetch(cluster, tp, isolation=1)
    aborted = {
        (one.producer_id, one.first_offset) for one in data.aborted_transactions or ()
    }
    dropped: set[int] = set()
    found: list[bytes] = []
    for batch in batches(data):
        for producer_id, first in list(aborted):
            if first <= batch.last_offset:
                dropped.add(producer_id)
                aborted.discard((producer_id, first))
        if batch.is_control:
            dropped.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in dropped):
            found += [
                record.value or b"" for record in batch.decode(tp.topic, tp.partition)
            ]
    return found


async def producers(cluster: Cluster, tp: TopicPartition) -> list[ProducerState]:
    """DescribeProducers (Kafka 2.8 or newer)."""
    topic = TopicRequest(name=tp.topic, partition_indexes=[tp.partition])
    answer = await cluster.leader(tp, DescribeProducersRequest(topics=[topic]), 0)
    (found,) = answer.topics[0].partitions
    assert found.error_code == E.NONE
    return found.active_producers


async def describe(cluster: Cluster, name: str) -> TransactionState:
    """DescribeTransactions (Kafka 3.0 or newer)."""
    request = DescribeTransactionsRequest(transactional_ids=[name])
    answer = await cluster.transaction(name, request, 0)
    (found,) = answer.transaction_states
    return found


async def write_marker(
    cluster: Cluster,
    tp: TopicPartition,
    who: Identity,
    *,
    coordinator_epoch: int,
    commit: bool = False,
    transaction_version: int | None = None,
) -> ErrorCode:
    """WriteTxnMarkers to a leader: version 2 if it is told a transaction version."""
    topic = WritableTxnMarkerTopic(name=tp.topic, partition_indexes=[tp.partition])
    marker = WritableTxnMarker(
        producer_id=who.producer_id,
        producer_epoch=who.epoch,
        transaction_result=commit,
        topics=[topic],
        coordinator_epoch=coordinator_epoch,
        transaction_version=transaction_version or 0,
    )
    version = 1 if transaction_version is None else 2
    request = WriteTxnMarkersRequest(markers=[marker])
    answer = await cluster.leader(tp, request, version)
    return E(answer.markers[0].topics[0].partitions[0].error_code)


__all__ = [
    "NEW",
    "OLD",
    "PASSING",
    "Cluster",
    "ConsumerMember",
    "Ends",
    "Identity",
    "Member",
    "RawProducer",
    "Versions",
    "batches",
    "commit_plain",
    "describe",
    "ends",
    "fetch",
    "fetch_offset",
    "in_sync",
    "join_classic",
    "leave_classic",
    "led",
    "loaded",
    "producers",
    "stable",
    "until",
    "visible",
    "write_marker",
]
