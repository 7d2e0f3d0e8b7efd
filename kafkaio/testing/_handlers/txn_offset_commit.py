"""TxnOffsetCommit, versions 0 to 5: offsets as part of a transaction (KIP-98, KIP-447).

A request without a member id is not fenced by the group. A member id has to be that of
a member in the current generation or epoch; whether the member owns the partitions is
not checked, except for a former epoch of a KIP-848 member.
"""

from __future__ import annotations

from typing import Final

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kafkaio.testing._broker.node import BrokerNode
from kafkaio.testing._broker.producers import ProducerBatch
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._groups.classic import ClassicGroup
from kafkaio.testing._groups.coordinator import EmbeddedGroupCoordinator, coordinator_of
from kafkaio.testing._groups.offsets import Committed, Place
from kafkaio.testing._groups.share import ShareGroup
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._security.acls import Operation, ResourceType
from kafkaio.testing._transactions.coordinator import coordinator_of as transactions_of
from kafkaio.testing._transactions.verification import Speaker, ask

#: Clients from here on know TRANSACTION_ABORTABLE (KIP-890).
_FIRST_TO_ABORT: Final = 4
#: From here on the coordinator adds its own partition (KIP-890).
_FIRST_WITH_BUMP: Final = 5
# A leader that cannot verify is, for a group, an offsets partition that cannot be used.
_COORDINATOR_CODES: Final = {
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE
}


@handler(TxnOffsetCommitRequest, by_partition=True)
async def handle(
    context: RequestContext[TxnOffsetCommitRequest],
) -> TxnOffsetCommitResponse:
    """Commit offsets; an error of the whole request goes to every partition."""
    request = context.request
    coordinator = coordinator_of(context.cluster)
    cluster = coordinator.cluster
    answer = TxnOffsetCommitResponse()
    positions: dict[Place, Committed] = {}
    rights = context.rights
    denied = rights.denied(
        Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id
    ) or rights.denied(Operation.READ, ResourceType.GROUP, request.group_id)
    accepted: list[TxnOffsetCommitResponsePartition] = []
    for topic in request.topics:
        answered = TxnOffsetCommitResponseTopic(name=topic.name)
        answer.topics.append(answered)
        count = cluster.partition_count(topic.name)
        refused = denied or rights.denied(
            Operation.READ, ResourceType.TOPIC, topic.name
        )
        for one in topic.partitions:
            code = refused or context.connection.error_for(
                topic.name, one.partition_index
            )
            if not code and not 0 <= one.partition_index < count:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            result = TxnOffsetCommitResponsePartition(
                partition_index=one.partition_index, error_code=code or 0
            )
            answered.partitions.append(result)
            if not code:
                accepted.append(result)
                positions[topic.name, one.partition_index] = _position(
                    coordinator, topic.name, one
                )
    if positions:
        code = _commit(context, coordinator, positions)
        for result in accepted:
            result.error_code = code
        await transactions_of(context.cluster).written(request.transactional_id)
    return answer


def _position(
    coordinator: EmbeddedGroupCoordinator,
    topic: str,
    one: TxnOffsetCommitRequestPartition,
) -> Committed:
    return Committed(
        one.committed_offset,
        one.committed_leader_epoch,
        one.committed_metadata or "",
        coordinator.wall_ms(),
        None,
        coordinator.cluster.topic_id(topic),
    )


def _commit(
    context: RequestContext[TxnOffsetCommitRequest],
    coordinator: EmbeddedGroupCoordinator,
    positions: dict[Place, Committed],
) -> ErrorCode:
    request, node = context.request, context.node
    error = coordinator.refuse(node.node_id, request.group_id)
    if not error:
        error = _verify(node, context.version, request)
    if not error:
        error = _check(node, coordinator, request, positions)
    if error:
        return error
    longest = coordinator.config.offset_metadata_max_bytes
    if any(len(one.metadata) > longest for one in positions.values()):
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    producer = (request.producer_id, request.producer_epoch)
    coordinator.commit(request.group_id, positions, producer)
    return ErrorCode.NONE


def _verify(
    node: BrokerNode, version: int, request: TxnOffsetCommitRequest
) -> ErrorCode:
    """Verify or add the partition of the group's offsets, as its leader."""
    cluster = node.cluster
    bumps = version >= _FIRST_WITH_BUMP
    partition = cluster.offsets_partition(request.group_id)
    place = (partition.topic, partition.index)
    producer = (request.producer_id, request.producer_epoch)
    partition.open()
    try:
        # The leader of the offsets' partition fences producers as for any other.
        partition.producers.check_epoch(*producer)
        if not bumps and not cluster.verifies_transactions:
            return ErrorCode.NONE
        batch = ProducerBatch(*producer, -1, 1, is_transactional=True)
        if not partition.producers.begin_verification(batch, is_from_zero=False):
            return ErrorCode.NONE
    except Refusal as refusal:
        return refusal.code
    speaker = Speaker(request.transactional_id, bumps, version >= _FIRST_TO_ABORT)
    code = ask(cluster, speaker, producer, [place])[place]
    return _COORDINATOR_CODES.get(code, code)


def _check(
    node: BrokerNode,
    coordinator: EmbeddedGroupCoordinator,
    request: TxnOffsetCommitRequest,
    positions: dict[Place, Committed],
) -> ErrorCode:
    """Check that the producer speaks for a member, if it names one."""
    group = coordinator.find(request.group_id)
    member_id, epoch = request.member_id, request.generation_id_or_member_epoch
    if group is None:
        return ErrorCode.ILLEGAL_GENERATION if epoch >= 0 else ErrorCode.NONE
    if isinstance(group, ShareGroup):
        return ErrorCode.GROUP_ID_NOT_FOUND
    if isinstance(group, ClassicGroup):
        is_strict = node.broker.release >= "3"
        return group.check_transactional_commit(
            member_id, request.group_instance_id, epoch, is_strict=is_strict
        )
    if not member_id and epoch < 0:
        return ErrorCode.NONE
    slots = frozenset(
        (topic_id, index)
        for topic, index in positions
        if (topic_id := coordinator.cluster.topic_id(topic)) is not None
    )
    code = group.check_commit(member_id, epoch, slots)
    # Producers know this error of classic groups only.
    if code == ErrorCode.STALE_MEMBER_EPOCH:
        return ErrorCode.ILLEGAL_GENERATION
    return code
