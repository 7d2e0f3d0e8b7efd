"""The metadata of the cluster, and how an answer changes it.

`ClusterView` is an immutable snapshot, which any layer may keep. `merge` makes the next
snapshot from the last one, a Metadata answer, and the `Epochs` seen so far. A
partition's leader epoch only grows while its topic stays the same, so an answer from a
broker that lags behind cannot bring an old leader back (KIP-320).

The rules, each of them a law in the tests:

* The epochs of answers before version 9 are unreliable (brokers before 2.4). They are
  ignored, and the leaders are taken as they are.
* If the epoch is older than one already seen, the partition stays as it was cached,
  unless many answers in a row say so: then the one seen was wrong.
* A topic with another id is another topic: all epochs of the old one are void.
* A partition with an error may have a useful epoch, which counts.
* A topic whose partitions have a hole, or one of them twice, stays as it was cached,
  and is fetched again.
* An answer without brokers changes nothing.
* An answer that no cluster gives changes nothing either: too many brokers, names of
  topics that Kafka does not allow, partitions with negative numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from kafkaio._dataclass import dataclass, replace
from kafkaio._machines.reactions import reaction
from kafkaio._public import public
from kafkaio.errors import ProtocolError
from kafkaio.protocol import _api_numbers as apis
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import ZERO_UUID
from kafkaio.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafkaio.types import Broker, TopicPartition

if TYPE_CHECKING:  # few clients ask controllers
    from kafkaio.protocol.messages.describe_cluster import DescribeClusterResponse

#: The longest name of a topic (Kafka's own limit).
MAX_TOPIC_NAME = 249
#: The most brokers if the caller sets no limit.
MAX_BROKERS = 10_000
#: The first version of Metadata whose leader epochs can be trusted.
RELIABLE_EPOCHS_SINCE = 9


class EndpointPort(Protocol):
    """A broker's address in an answer: a `Broker`, or a part of any message."""

    @property
    def node_id(self) -> int:
        """Number of the broker."""

    @property
    def host(self) -> str:
        """Its host name or address."""

    @property
    def port(self) -> int:
        """Its port."""

    @property
    def rack(self) -> str | None:
        """Its rack; None if it has none."""


_NOTHING: Mapping[int, PartitionView] = MappingProxyType({})


@public("kafkaio")
@dataclass(frozen=True, slots=True)
class PartitionView:
    """A partition as the cluster described it last.

    Attributes:
        topic: name of the topic.
        partition: number of the partition.
        leader: node id of the leader, -1 while there is none.
        leader_epoch: the leader's epoch, -1 if it is unknown.
        replicas: node ids of all replicas, the preferred leader first.
        isr: node ids of the replicas in sync.
        offline: node ids of the replicas that are down.
        error: why the broker could not describe the partition fully.
    """

    topic: str
    partition: int
    leader: int = -1
    leader_epoch: int = -1
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    offline: tuple[int, ...] = ()
    error: ErrorCode = ErrorCode.NONE


@public("kafkaio")
@dataclass(frozen=True, slots=True)
class TopicView:
    """A topic as the cluster described it last.

    Attributes:
        name: name of the topic.
        topic_id: id of the topic, None if the brokers (before 2.8) have none.
        is_internal: whether the topic is one of Kafka's own.
        error: why the topic could not be described; it then has no partitions.
        partitions: the partitions by number, in ascending order.
    """

    name: str
    topic_id: UUID | None = None
    is_internal: bool = False
    error: ErrorCode = ErrorCode.NONE
    partitions: Mapping[int, PartitionView] = field(default_factory=dict)


@public("kafkaio")
@dataclass(frozen=True, slots=True)
class ClusterView:
    """An immutable snapshot of the cluster's metadata.

    Attributes:
        brokers: brokers alive, by node id.
        controller_id: node id of a broker that serves the controller's requests, -1
            while there is none.
        cluster_id: the cluster's id, None while unknown.
        by_name: the topics described last, including those with an error.
        number: counts the snapshots of one client; 0 while nothing is known.
    """

    brokers: Mapping[int, Broker] = field(default_factory=dict)
    controller_id: int = -1
    cluster_id: str | None = None
    by_name: Mapping[str, TopicView] = field(default_factory=dict)
    number: int = 0
    # Derived from by_name: answers of newer brokers name topics by their ids.
    _names: Mapping[UUID, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = {t.topic_id: t.name for t in self.by_name.values() if t.topic_id}
        object.__setattr__(self, "_names", names)

    @property
    def topics(self) -> frozenset[str]:
        """Names of the topics that are known to exist."""
        return frozenset(
            name for name, topic in self.by_name.items() if not topic.error
        )

    def topic_error(self, name: str) -> ErrorCode:
        """Why ``name`` could not be described; NONE if it was, or is unknown."""
        topic = self.by_name.get(name)
        return topic.error if topic is not None else ErrorCode.NONE

    def topic_id(self, name: str) -> UUID | None:
        """The id of the topic ``name``, None if it is unknown."""
        topic = self.by_name.get(name)
        return topic.topic_id if topic is not None else None

    def topic_name(self, topic_id: UUID) -> str | None:
        """The name of the topic that has this id, None if it is unknown."""
        return self._names.get(topic_id)

    def partition_count(self, name: str) -> int | None:
        """How many partitions ``name`` has, None while that is unknown."""
        topic = self.by_name.get(name)
        return len(topic.partitions) or None if topic is not None else None

    def partitions(self, name: str) -> tuple[PartitionView, ...]:
        """The partitions of ``name`` in ascending order; empty if unknown."""
        topic = self.by_name.get(name)
        return tuple(topic.partitions.values()) if topic is not None else ()

    def partition(self, tp: TopicPartition) -> PartitionView | None:
        """The partition ``tp``, None if it is unknown."""
        topic = self.by_name.get(tp.topic)
        return topic.partitions.get(tp.partition) if topic is not None else None

    def leader(self, tp: TopicPartition) -> int | None:
        """Node id of the leader of ``tp``, None while it has none or is unknown."""
        found = self.partition(tp)
        return found.leader if found is not None and found.leader >= 0 else None

    def leaders(self, partitions: Iterable[TopicPartition]) -> list[int | None]:
        """The result of `leader` for each of some partitions."""
        found: list[int | None] = []
        for tp in partitions:
            topic = self.by_name.get(tp.topic)
            known = topic.partitions.get(tp.partition) if topic is not None else None
            if known is None or known.leader < 0:
                found.append(None)
            else:
                found.append(known.leader)
        return found

    def unseen(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Those of some partitions that are unknown."""
        topics = self.by_name
        return [
            tp
            for tp in partitions
            if tp.topic not in topics or tp.partition not in topics[tp.topic].partitions
        ]

    def lacks(self, tp: TopicPartition) -> bool:
        """Whether a broker was asked for the topic of ``tp`` and lacks the partition.

        False while nothing is known of the topic, and if this client may not see it.
        """
        topic = self.by_name.get(tp.topic)
        if topic is None:
            return False
        if topic.error:
            return topic.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return bool(topic.partitions) and tp.partition not in topic.partitions

    def is_internal(self, name: str) -> bool:
        """Whether ``name`` is one of Kafka's own topics."""
        topic = self.by_name.get(name)
        return topic is not None and topic.is_internal


#: Answers in a row with an older epoch after which they are taken as right, and the
#: newest epoch seen as wrong. Answers come a second apart at most, and brokers lag
#: behind for seconds.
_REFUTATIONS = 20


class Epochs:
    """The newest leader epoch seen of each partition, from any source.

    It outlives snapshots: if a topic disappears for a moment and returns with the same
    id, an old leader of it is still recognised. An epoch that no later answer confirms
    is dropped after a while: one wrong answer must not void all that follow.
    """

    __slots__ = ("_ids", "_refuted", "_seen")

    def __init__(self) -> None:
        self._seen: dict[str, dict[int, int]] = {}
        self._ids: dict[str, UUID] = {}
        # How many answers in a row had an older epoch than the newest one seen.
        self._refuted: dict[TopicPartition, int] = {}

    def get(self, tp: TopicPartition) -> int:
        """The newest epoch seen of ``tp``, -1 if none was."""
        return self._seen.get(tp.topic, {}).get(tp.partition, -1)

    def raise_to(self, tp: TopicPartition, epoch: int) -> bool:
        """Note ``epoch``. Returns whether it is newer than those seen before."""
        newest = self.get(tp)
        if epoch >= newest and self._refuted:
            self._refuted.pop(tp, None)
        if epoch <= newest:
            return False
        self._seen.setdefault(tp.topic, {})[tp.partition] = epoch
        return True

    def is_stale(self, tp: TopicPartition, epoch: int) -> bool:
        """Whether ``epoch``, of a whole answer, is older than the newest one seen.

        The newest one seen is forgotten once many answers in a row were older.
        """
        if epoch >= self.get(tp):
            return False
        count = self._refuted.get(tp, 0) + 1
        if count < _REFUTATIONS:
            self._refuted[tp] = count
            return True
        self.drop(tp)
        return False

    def drop(self, tp: TopicPartition) -> None:
        """Forget what was seen of ``tp``."""
        self._refuted.pop(tp, None)
        self._seen.get(tp.topic, {}).pop(tp.partition, None)

    def drop_topic(self, name: str) -> None:
        """Forget everything about a topic."""
        self._seen.pop(name, None)
        self._ids.pop(name, None)
        self._refuted = {tp: n for tp, n in self._refuted.items() if tp.topic != name}

    def identify(self, name: str, topic_id: UUID | None) -> None:
        """Note the id of ``name``; an id that differs voids the epochs."""
        if topic_id is None:
            return
        if self._ids.get(name, topic_id) != topic_id:
            self._seen.pop(name, None)
        self._ids[name] = topic_id

    def has_id(self, name: str) -> bool:
        """Whether an id of the topic ``name`` has been seen."""
        return name in self._ids

    def retain(self, names: Iterable[str]) -> None:
        """Forget every topic that is not among ``names``."""
        kept = set(names)
        for name in [name for name in self._seen if name not in kept]:
            self.drop_topic(name)


#: Seconds that brokers may take to describe a topic that they have just created.
_CREATING = 0.5
#: Seconds after which a topic that stays unavailable is reported again: each pause is
#: twice the one before, up to an hour.
_REPORT_PAUSE = 30.0
_LONGEST_REPORT_PAUSE = 3600.0


class UnavailableTopics:
    """The topics wanted by name that cannot be used.

    Each is reported at once, and again after pauses that grow: a group on a misspelt
    topic looks healthy otherwise, and the first report is long gone from the log. A
    topic without a leader is not among them, because that passes.

    Args:
        may_create: whether a request for an unknown topic may create it. The first
            answers then do not know it yet, so it is reported a moment later.
    """

    def __init__(self, *, may_create: bool) -> None:
        self._grace = _CREATING if may_create else 0.0
        self._since: dict[str, float] = {}
        # When each is reported again, and the pause after that.
        self._again: dict[str, tuple[float, float]] = {}

    def update(
        self, view: ClusterView, wanted: Set[str], now: float
    ) -> tuple[tuple[str, ErrorCode], ...]:
        """Check a new snapshot. Returns the topics to report, and why each fails.

        Args:
            view: the newest snapshot.
            wanted: the topics wanted; all others are forgotten.
            now: the time.
        """
        self._again = {
            name: again
            for name, again in self._again.items()
            if name in wanted and name not in view.topics
        }
        self._since = {
            name: self._since.get(name, now)
            for name in wanted
            if view.topic_error(name) in _UNUSABLE
        }
        found = list[tuple[str, ErrorCode]]()
        for name, since in sorted(self._since.items()):
            error = view.topic_error(name)
            is_unknown = error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            due, pause = self._again.get(name, (since, _REPORT_PAUSE))
            grace = self._grace if is_unknown else 0.0
            if now < max(due, since + grace):
                continue
            longer = min(2 * pause, _LONGEST_REPORT_PAUSE)
            self._again[name] = now + pause, longer
            found.append((name, error))
        return tuple(found)


#: Errors of a topic that do not pass by waiting.
_UNUSABLE = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }
)


@dataclass(frozen=True, slots=True)
class Merged:
    """The result of `merge`.

    Attributes:
        view: the new snapshot.
        progressed: whether it differs from the snapshot before.
        unsettled: topics to fetch again: a partition without a leader, an answer older
            than one seen before, an error that may pass.
    """

    view: ClusterView
    progressed: bool
    unsettled: frozenset[str]


def merge(
    old: ClusterView,
    epochs: Epochs,
    response: MetadataResponse,
    version: int,
    *,
    partial: bool,
    max_brokers: int = MAX_BROKERS,
) -> Merged | None:
    """Make the snapshot that follows ``old``.

    Args:
        old: the snapshot so far.
        epochs: the newest epochs seen; updated.
        response: a broker's answer.
        version: the version of the answer.
        partial: whether the request was for some of the wanted topics, so that the
            others stay as they are. Otherwise topics that the answer omits are gone.
        max_brokers: the most brokers that a cluster may have.

    Returns:
        The new snapshot; None if the answer names no broker and so changes nothing.

    Raises:
        ProtocolError: the answer is impossible for a cluster.
    """
    if not response.brokers:
        return None
    _check_counts(response, max_brokers)
    merger = _Merger(old, epochs, trust_epochs=version >= RELIABLE_EPOCHS_SINCE)
    described = {
        topic.name: merger.topic(topic.name, topic)
        for topic in response.topics
        if topic.name is not None
    }
    topics = {**old.by_name, **described} if partial else described
    brokers = {
        b.node_id: Broker(b.node_id, b.host, b.port, b.rack) for b in response.brokers
    }
    view = ClusterView(
        brokers=brokers,
        controller_id=response.controller_id,
        cluster_id=response.cluster_id or old.cluster_id,
        by_name=topics,
        number=old.number,
    )
    progressed = view != old
    return Merged(
        replace(view, number=old.number + 1), progressed, frozenset(merger.unsettled)
    )


def controllers_as_brokers(response: DescribeClusterResponse) -> MetadataResponse:
    """Turn a controller's description of the quorum into an answer for `merge`.

    The nodes of the next snapshot are then the controllers, and its controller is the
    active one (KIP-919). Controllers describe no topics.
    """
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(
                node_id=it.broker_id, host=it.host, port=it.port, rack=it.rack
            )
            for it in response.brokers
        ],
        cluster_id=response.cluster_id,
        controller_id=response.controller_id,
        error_code=response.error_code,
    )


def _check_counts(response: MetadataResponse, max_brokers: int) -> None:
    if len(response.brokers) > max_brokers:
        raise ProtocolError(
            f"a Metadata answer names {len(response.brokers)} brokers; max_brokers "
            f"allows {max_brokers}"
        )
    for topic in response.topics:
        if topic.name is not None and len(topic.name) > MAX_TOPIC_NAME:
            raise ProtocolError(
                f"a Metadata answer names a topic of {len(topic.name)} characters; "
                f"Kafka allows {MAX_TOPIC_NAME}"
            )
        if any(p.partition_index < 0 for p in topic.partitions):
            raise ProtocolError(
                f"a Metadata answer gives topic {topic.name!r} a partition with a "
                "negative number"
            )


def _is_whole(topic: MetadataResponseTopic) -> bool:
    """Whether the partitions of a topic are numbered from 0 without a hole."""
    numbers = {p.partition_index for p in topic.partitions}
    return len(numbers) == len(topic.partitions) and (
        not numbers or max(numbers) == len(numbers) - 1
    )


class _Merger:
    """One run of `merge`: the topics of one answer."""

    def __init__(self, old: ClusterView, epochs: Epochs, *, trust_epochs: bool) -> None:
        self._old = old
        self._epochs = epochs
        self._trust_epochs = trust_epochs
        self.unsettled: set[str] = set()

    def topic(self, name: str, topic: MetadataResponseTopic) -> TopicView:
        topic_id = topic.topic_id if topic.topic_id != ZERO_UUID else None
        self._epochs.identify(name, topic_id)
        error = ErrorCode(topic.error_code)
        if error:
            return self._failed_topic(name, topic, topic_id, error)
        former = self._old.by_name.get(name)
        if not _is_whole(topic):
            # No broker describes a part of a topic, or a partition twice. Producers
            # derive the numbers of the partitions from their count.
            self.unsettled.add(name)
            broken = ErrorCode.LEADER_NOT_AVAILABLE
            return former or TopicView(name, topic_id, topic.is_internal, broken)
        # A cached partition may replace a stale one only if the topic is the same.
        same = former is not None and former.topic_id in {topic_id, None}
        cached = former.partitions if former is not None and same else _NOTHING
        partitions = {
            p.partition_index: self._partition(name, p, cached.get(p.partition_index))
            for p in sorted(topic.partitions, key=lambda p: p.partition_index)
        }
        return TopicView(
            name,
            topic_id,
            topic.is_internal,
            ErrorCode.NONE,
            MappingProxyType(partitions),
        )

    def _failed_topic(
        self,
        name: str,
        topic: MetadataResponseTopic,
        topic_id: UUID | None,
        error: ErrorCode,
    ) -> TopicView:
        if reaction(apis.METADATA, error).refresh_metadata:
            self.unsettled.add(name)
        gone = error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if gone and not self._epochs.has_id(name):
            # A topic created again under the old name counts its epochs from 0, and
            # without topic ids nothing else shows it.
            self._epochs.drop_topic(name)
        return TopicView(name, topic_id, topic.is_internal, error)

    def _partition(
        self, name: str, p: MetadataResponsePartition, cached: PartitionView | None
    ) -> PartitionView:
        tp = TopicPartition(name, p.partition_index)
        error = ErrorCode(p.error_code)
        if reaction(apis.METADATA, error).refresh_metadata or p.leader_id < 0:
            self.unsettled.add(name)
        epoch = p.leader_epoch if self._trust_epochs else -1
        if not self._trust_epochs:
            self._epochs.drop(tp)
        elif epoch >= 0 and self._epochs.is_stale(tp, epoch):
            self.unsettled.add(name)
            if cached is not None:
                return cached
            # Nothing is cached, so the partition is kept without its stale leader.
            p, epoch = replace(p, leader_id=-1), -1
        else:
            self._epochs.raise_to(tp, epoch)
        return PartitionView(
            topic=name,
            partition=p.partition_index,
            leader=p.leader_id,
            leader_epoch=epoch,
            replicas=tuple(p.replica_nodes),
            isr=tuple(p.isr_nodes),
            offline=tuple(p.offline_replicas),
            error=error,
        )


def with_leader(
    view: ClusterView,
    epochs: Epochs,
    tp: TopicPartition,
    leader: tuple[int, int],
    endpoints: Iterable[EndpointPort] = (),
) -> ClusterView | None:
    """Apply a new leader that a Produce or Fetch answer names (KIP-951).

    Args:
        view: the snapshot so far.
        epochs: the newest epochs seen; updated.
        tp: the partition that has another leader now.
        leader: node id of that leader, and its epoch.
        endpoints: the addresses in the same answer.

    Returns:
        The new snapshot; None if the hint is incomplete, not newer than what is known,
        or names a broker whose address is unknown.
    """
    known = view.partition(tp)
    leader_id, leader_epoch = leader
    if known is None or leader_id < 0 or leader_epoch <= known.leader_epoch:
        return None
    brokers = {
        **view.brokers,
        **{e.node_id: Broker(e.node_id, e.host, e.port, e.rack) for e in endpoints},
    }
    if leader_id not in brokers or leader_epoch < epochs.get(tp):
        return None
    epochs.raise_to(tp, leader_epoch)
    topic = view.by_name[tp.topic]
    led = replace(
        known, leader=leader_id, leader_epoch=leader_epoch, error=ErrorCode.NONE
    )
    partitions = MappingProxyType({**topic.partitions, tp.partition: led})
    return replace(
        view,
        brokers=brokers,
        by_name={**view.by_name, tp.topic: replace(topic, partitions=partitions)},
        number=view.number + 1,
    )
