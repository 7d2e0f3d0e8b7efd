"""TxnOffsetCommit, versions 0 to 6: offsets as part of a transaction (KIP-98, KIP-447).

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
#: Topics by their ids, and the errors of groups of KIP-848 (KIP-1319).
_FIRST_WITH_IDS: Final = 6
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
        name, refused = topic.name, denied
        if context.version >= _FIRST_WITH_IDS:
            name = cluster.topic_name(topic.topic_id) or ""
            if not name:
                refused = refused or ErrorCode.UNKNOWN_TOPIC_ID
        refused = refused or rights.denied(Operation.READ, ResourceType.TOPIC, name)
        answered = TxnOffsetCommitResponseTopic(
            name=topic.name, topic_id=topic.topic_id
        )
        answer.topics.append(answered)
        for one in topic.partitions:
            code = refused or _refuse(context, name, one.partition_index)
            result = TxnOffsetCommitResponsePartition(
                partition_index=one.partition_index, error_code=code
            )
            answered.partitions.append(result)
            if not code:
                accepted.append(result)
                positions[name, one.partition_index] = _position(coordinator, name, one)
    if positions:
        code = _commit(context, coordinator, positions)
        for result in accepted:
            result.error_code = code
        await transactions_of(context.cluster).written(request.transactional_id)
    return answer


def _refuse(
    context: RequestContext[TxnOffsetCommitRequest], name: str, index: int
) -> ErrorCode:
    """Return why an offset of this partition cannot be committed; NONE if it can."""
    if code := context.connection.error_for(name, index):
        return ErrorCode(code)
    topic = context.cluster.known(name)
    if topic is None or not 0 <= index < len(topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE


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
        error = _check(context, coordinator, positions)
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
    context: RequestContext[TxnOffsetCommitRequest],
    coordinator: EmbeddedGroupCoordinator,
    positions: dict[Place, Committed],
) -> ErrorCode:
    """Check that the producer speaks for a member, if it names one."""
    request = context.request
    has_new_errors = context.version >= _FIRST_WITH_IDS
    group = coordinator.find(request.group_id)
    member_id, epoch = request.member_id, request.generation_id_or_member_epoch
    if group is None:
        if epoch < 0:
            return ErrorCode.NONE
        if has_new_errors:
            return ErrorCode.GROUP_ID_NOT_FOUND
        return ErrorCode.ILLEGAL_GENERATION
    if isinstance(group, ShareGroup):
        return ErrorCode.GROUP_ID_NOT_FOUND
    if isinstance(group, ClassicGroup):
        is_strict = context.node.broker.release >= "3"
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
    # Before, producers know this error of classic groups only.
    if code == ErrorCode.STALE_MEMBER_EPOCH and not has_new_errors:
        return ErrorCode.ILLEGAL_GENERATION
    return code
