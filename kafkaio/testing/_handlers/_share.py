"""The parts that ShareFetch and ShareAcknowledge have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol
from uuid import UUID

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import Request, Response
from kafkaio.testing._broker.partition import NO_LEADER, EmbeddedPartition
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._handlers._handler import RequestContext
from kafkaio.testing._security.acls import Operation, ResourceType
from kafkaio.testing._share.leaders import LedPartition, ShareLeaders
from kafkaio.testing._share.partition import AckBatch, AckType, Decisions
from kafkaio.testing._share.sessions import SharedPartition
from kafkaio.testing._share.states import ShareKey

#: The errors that an answer has as a whole; all others are those of partitions.
_OF_SESSIONS: Final = frozenset(
    {
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
    }
)
_NOT_HERE: Final = "This server does not host this topic-partition."
_HINTED: Final = {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH}


class SentBatchPort(Protocol):
    """A batch of acknowledgements, in either API."""

    first_offset: int
    last_offset: int
    acknowledge_types: list[int]


class LeaderPort(Protocol):
    """The leader of a partition, in the answer of either API."""

    leader_id: int
    leader_epoch: int


def check_enabled(context: RequestContext[Request[Response]]) -> None:
    """Check that the level of ``share.version`` allows share groups."""
    if not context.cluster.has_share_groups:
        raise Refusal(ErrorCode.UNSUPPORTED_VERSION)


def check_member(context: RequestContext[Request[Response]]) -> None:
    """Check that the request names a group and a member."""
    if not getattr(context.request, "group_id", None):
        # As Kafka does, which has no check for it.
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
    if not getattr(context.request, "member_id", None):
        raise Refusal(ErrorCode.INVALID_REQUEST)


def check_faults(context: RequestContext[Request[Response]]) -> None:
    """Refuse the whole request, if a fault demands an error of sessions."""
    context.connection.check_whole(_OF_SESSIONS)


def find_partition(
    context: RequestContext[Request[Response]], key: SharedPartition
) -> EmbeddedPartition:
    """Return a partition that the client may read.

    Raises:
        Refusal: UNKNOWN_TOPIC_ID, TOPIC_AUTHORIZATION_FAILED,
            UNKNOWN_TOPIC_OR_PARTITION.
    """
    topic_id, index = key
    topic = context.cluster.known_by_id(topic_id)
    if topic is None:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_ID)
    context.rights.require(Operation.READ, ResourceType.TOPIC, topic.name)
    context.connection.check(topic.name, index)
    if not 0 <= index < len(topic.partitions):
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return topic.partitions[index]


def read_acks(sent: Sequence[SentBatchPort], *, renews: bool) -> list[AckBatch]:
    """Read the acknowledgements of a partition.

    Raises:
        Refusal: INVALID_REQUEST if they are not sorted, overlap, or have a wrong
            number of types or a type that does not exist or needs a renewal request.
    """
    known = set(AckType) if renews else set(AckType) - {AckType.RENEW}
    before = -1
    found: list[AckBatch] = []
    for one in sent:
        types, count = one.acknowledge_types, one.last_offset - one.first_offset + 1
        if (
            count < 1
            or one.first_offset <= before
            or len(types) not in {1, count}
            or not known.issuperset(types)
        ):
            raise Refusal(ErrorCode.INVALID_REQUEST)
        before = one.last_offset
        found.append(AckBatch(one.first_offset, one.last_offset, tuple(types)))
    return found


class Acknowledging:
    """The acknowledgements of one request: first checked, then applied in its order.

    Args:
        context: the request.
        leaders: the leaders of the cluster.
        group: the group.
        member: the member that acknowledges.
        renews: whether the request may renew locks.
    """

    def __init__(
        self,
        context: RequestContext[Request[Response]],
        leaders: ShareLeaders,
        group: str,
        member: str,
        *,
        renews: bool,
    ) -> None:
        self._context = context
        self._leaders = leaders
        self._group = group
        self._member = member
        self._renews = renews
        self._refused: dict[SharedPartition, Refusal | None] = {}
        self._decided: list[tuple[SharedPartition, LedPartition, Decisions]] = []

    def judge(self, sent: Mapping[SharedPartition, Sequence[SentBatchPort]]) -> None:
        """Check what each partition has."""
        for key, batches in sent.items():
            self._refused[key] = None
            try:
                led, decided = self._judge_one(key, batches)
            except Refusal as refusal:
                self._refused[key] = refusal
            else:
                self._decided.append((key, led, decided))

    def settle(self) -> dict[SharedPartition, Refusal | None]:
        """Apply what was found right; return the errors by partition."""
        for key, led, decided in self._decided:
            try:
                self._leaders.settle(led, decided)
            except Refusal as refusal:
                self._refused[key] = refusal
        self._decided.clear()
        return self._refused

    def _judge_one(
        self, key: SharedPartition, sent: Sequence[SentBatchPort]
    ) -> tuple[LedPartition, Decisions]:
        # In this order, as in Kafka.
        acks = read_acks(sent, renews=self._renews)
        find_partition(self._context, key)
        led = self._leaders.led(ShareKey(self._group, *key))
        if led is None or led.log.leader != self._context.node.node_id:
            raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, _NOT_HERE)
        return led, self._leaders.judge(led, self._member, acks)


class LeaderHints:
    """The current leaders that an answer tells, and their addresses (KIP-951)."""

    def __init__(self, context: RequestContext[Request[Response]]) -> None:
        self._context = context
        self._leaders: set[int] = set()

    def add(self, key: SharedPartition, code: ErrorCode, leader: LeaderPort) -> None:
        """Tell the leader of a partition, if an error says that the node is not it."""
        topic = self._context.cluster.known_by_id(key[0])
        if code not in _HINTED or topic is None:
            return
        partition = topic.partitions[key[1]]
        if partition.is_leader_known and partition.leader != NO_LEADER:
            leader.leader_id = partition.leader
            leader.leader_epoch = partition.leader_epoch
            self._leaders.add(partition.leader)

    def endpoints(self) -> Iterable[tuple[int, str, int, str | None]]:
        """Yield id, host, port and rack of the leaders that were told."""
        for leader in sorted(self._leaders):
            peer = self._context.node.broker.nodes[leader]
            host, port = peer.address(self._context.connection)
            yield leader, host, port, peer.rack


def by_topic_id(
    keys: Iterable[SharedPartition],
) -> dict[UUID, list[SharedPartition]]:
    """Group partitions by topic, in their order."""
    found: dict[UUID, list[SharedPartition]] = {}
    for key in keys:
        found.setdefault(key[0], []).append(key)
    return found
