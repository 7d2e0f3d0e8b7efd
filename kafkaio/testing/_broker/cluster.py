"""The state that all nodes of a cluster share: topics, leaders, configs, ids.

Replicas share one log, so a change of leader moves no data. What a real cluster needs
time for is to spread the news: a new leader acts, and a topic made by a Metadata
request exists, only ``metadata_delay`` seconds after the change. Until then nodes
answer as they would from old metadata.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Final
from uuid import UUID

from kafkaio._public import public
from kafkaio._runtime.clock import random_uuid
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import Request, Response
from kafkaio.testing._broker.clock import Clock
from kafkaio.testing._broker.configs import BROKER, BrokerConfigs
from kafkaio.testing._broker.partition import NO_LEADER, EmbeddedPartition
from kafkaio.testing._broker.producers import ProducerStates, TransactionMarker
from kafkaio.testing._broker.quotas import QuotaStore
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._broker.settings import TOPIC_DEFAULTS, TopicSettings, validate
from kafkaio.testing._broker.store import MemoryStore, StorePort
from kafkaio.testing._broker.versions import NEWEST, Rules, rules_of
from kafkaio.testing._log import Log

if TYPE_CHECKING:
    from kafkaio.testing._broker.group_config import GroupConfig

#: The ``visible_at`` of a topic that all nodes know as soon as it exists.
AT_ONCE: Final = -inf
OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
SHARE_STATE_TOPIC: Final = "__share_group_state"
#: The features whose highest level is in force in a new cluster.
_FINALIZED: Final = frozenset({"group.version", "share.version"})
_VERIFICATION: Final = "transaction.partition.verification.enable"
#: Expiration of a producer that writes nothing, and the interval of the check.
_PRODUCER_EXPIRATION: Final = ("producer.id.expiration.ms", 86_400_000)
_PRODUCER_CHECK: Final = ("producer.id.expiration.check.interval.ms", 600_000)
_LONGEST_NAME: Final = 249
# Ids handed out between two saves. A saved counter is ahead by as many, so that a
# process that was killed leaves no id to be handed out twice.
_PRODUCER_IDS: Final = 1000
_NAME_CHARACTERS: Final = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
)

#: Called with a partition whose leader changed, and the leader before.
LeaderChanged = Callable[[EmbeddedPartition, int], None]
#: Called with a partition to which a marker was written, and the marker.
MarkerWritten = Callable[[EmbeddedPartition, TransactionMarker], None]


#: Returns the partitions, by topic id, of a session that a request to a node uses.
SessionOf = Callable[[int, Request[Response]], Collection[tuple[UUID, int]]]


def _no_session(
    node_id: int, request: Request[Response]
) -> Collection[tuple[UUID, int]]:
    del node_id, request
    return ()


def java_hash(text: str) -> int:
    """Java's ``String.hashCode``, which places groups on offsets partitions."""
    value = 0
    units = text.encode("utf-16-be")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def _as_kafka_writes(value: UUID) -> str:
    return urlsafe_b64encode(value.bytes).decode().rstrip("=")


@public("kafkaio.testing")
@dataclass(slots=True)
class Topic:
    """One topic.

    Attributes:
        name: its name.
        topic_id: its id; a topic created again under the same name has another.
        settings: its configs.
        visible_at: the time of the cluster's clock from which nodes know of it.
        partitions: in the order of their numbers.
    """

    name: str
    topic_id: UUID
    settings: TopicSettings
    visible_at: float
    partitions: list[EmbeddedPartition] = field(default_factory=list)

    @property
    def is_internal(self) -> bool:
        """Whether it is a topic that brokers create for their own use."""
        return self.name in {OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC}


class EmbeddedCluster:
    """The state that a real cluster keeps in its metadata log.

    Args:
        node_ids: the nodes, all up.
        clock: the clock of all nodes.
        metadata_delay: seconds until nodes know of a new leader, or of a topic that a
            Metadata request created.
        store: where logs and metadata are kept.
        configs: configs of brokers and groups.

    Attributes:
        live: ids of the nodes that are up.
        topics: every topic, visible or not, by name.
    """

    def __init__(
        self,
        node_ids: list[int],
        clock: Clock,
        metadata_delay: float,
        store: StorePort | None = None,
        configs: BrokerConfigs | None = None,
    ) -> None:
        self.clock = clock
        self.cluster_id: str = _as_kafka_writes(random_uuid())
        self.live: set[int] = set(node_ids)
        self.topics: dict[str, Topic] = {}
        #: Configs of brokers and groups.
        self.configs: BrokerConfigs = configs or BrokerConfigs()
        #: What its release does.
        self.rules: Rules = rules_of(NEWEST)
        #: Called after every change of a leader.
        self.leader_changed: list[LeaderChanged] = []
        #: Called after every marker that was written.
        self.marker_written: list[MarkerWritten] = []
        #: The nodes that hang: they do nothing, but count as up.
        self.paused: set[int] = set()
        #: The nodes that were unregistered, and not started since.
        self.unregistered: set[int] = set()
        #: The nodes whose controllers were unregistered, and which are down since.
        self.unregistered_controllers: set[int] = set()
        #: The quotas of clients.
        self.quotas: QuotaStore = QuotaStore()
        #: The number of changes of the metadata.
        self.metadata_offset: int = 0
        #: Finalized levels of features, and an epoch that grows with each change.
        self.features: dict[str, int] = {}
        self.features_epoch: int = 1
        # When idle producers were looked for.
        self._producers_checked_ms = self.clock.wall_ms()
        #: Returns the partitions of the share session of a request to a node.
        self.share_session: SessionOf = _no_session
        #: Called after every change of a feature's level.
        self.feature_changed: list[Callable[[str, int], None]] = []
        #: Called after every change of the configs of brokers or groups.
        self.configs_changed: list[Callable[[], None]] = []
        #: Settings for the group coordinators, which are created on first use.
        self.group_config: GroupConfig | None = None
        self.node_ids: list[int] = node_ids
        self._metadata_delay = metadata_delay
        self._store: StorePort = store or MemoryStore()
        self._by_id: dict[UUID, Topic] = {}
        self._fenced: dict[int, int] = {}
        self._next_leader = 0
        self._next_producer_id = 0

    # ---- looking up --------------------------------------------------------------

    @property
    def controller_id(self) -> int:
        """The node that clients send cluster-wide changes to."""
        return min(self.live, default=-1)

    def known(self, name: str) -> Topic | None:
        """A topic that nodes know of; None if there is none."""
        return self._if_visible(self.topics.get(name))

    def known_by_id(self, topic_id: UUID) -> Topic | None:
        """A topic that nodes know of, by its id; None if there is none."""
        return self._if_visible(self._by_id.get(topic_id))

    def _if_visible(self, topic: Topic | None) -> Topic | None:
        # A topic exists at once, and nodes learn of it later, as metadata spreads in a
        # real cluster.
        if topic is None or topic.visible_at > self.clock.now():
            return None
        return topic

    def visible(self) -> list[Topic]:
        """Every topic that nodes know of, sorted by name."""
        now = self.clock.now()
        topics = (self.topics[name] for name in sorted(self.topics))
        return [topic for topic in topics if topic.visible_at <= now]

    def partition(self, topic: str, index: int) -> EmbeddedPartition | None:
        """A partition that nodes know of; None if there is none."""
        found = self.known(topic)
        if found is None or not 0 <= index < len(found.partitions):
            return None
        return found.partitions[index]

    def require_partition(self, topic: str, index: int) -> EmbeddedPartition:
        """A partition that nodes know of.

        Raises:
            Refusal: UNKNOWN_TOPIC_OR_PARTITION.
        """
        found = self.partition(topic, index)
        if found is None:
            raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return found

    def require_topic(self, name: str) -> Topic:
        """A topic that nodes know of.

        Raises:
            Refusal: UNKNOWN_TOPIC_OR_PARTITION.
        """
        found = self.known(name)
        if found is None:
            raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return found

    def partitions(self) -> Iterator[EmbeddedPartition]:
        """Every partition of every topic."""
        for topic in self.topics.values():
            yield from topic.partitions

    # ---- transactions ------------------------------------------------------------

    @property
    def transaction_version(self) -> int:
        """The finalized level of ``transaction.version``."""
        return self.features.get("transaction.version", 0)

    def level_of(self, name: str) -> int:
        """The finalized level of a feature."""
        default = self.rules.highest_levels.get(name, 0) if name in _FINALIZED else 0
        return self.features.get(name, default)

    @property
    def has_consumer_groups(self) -> bool:
        """Whether the level of ``group.version`` allows groups of KIP-848."""
        return self.level_of("group.version") > 0

    @property
    def has_share_groups(self) -> bool:
        """Whether the level of ``share.version`` allows share groups (KIP-932)."""
        return self.level_of("share.version") > 0

    def set_feature(self, name: str, level: int) -> None:
        """Change the finalized level of a feature.

        Raises:
            ValueError: the feature or level does not exist.
        """
        highest = self.rules.highest_levels.get(name)
        if highest is None:
            known = ", ".join(self.rules.highest_levels)
            raise ValueError(f"{name!r} is not one of {known}")
        if not 0 <= level <= highest:
            raise ValueError(f"{name}={level}: must be 0 to {highest}")
        if self.level_of(name) != level:
            self.features[name] = level
            self.features_epoch += 1
            for notify in list(self.feature_changed):
                notify(name, level)

    @property
    def verifies_transactions(self) -> bool:
        """Whether leaders refuse batches of transactions that do not have them."""
        enabled = self.configs.in_force(_VERIFICATION)
        return self.rules.verifies_transactions and enabled != "false"

    def acts(self, node_id: int) -> bool:
        """Whether a node is up and does not hang."""
        return node_id in self.live and node_id not in self.paused

    def write_marker(
        self, partition: EmbeddedPartition, marker: TransactionMarker
    ) -> None:
        """Append the marker that ends a transaction.

        Raises:
            Refusal: INVALID_PRODUCER_EPOCH or TRANSACTION_COORDINATOR_FENCED.
        """
        partition.append_marker(marker)
        # Over a copy: the first group of a cluster adds its coordinator.
        for notify in list(self.marker_written):
            notify(partition, marker)

    def transactions_partition(self, transactional_id: str) -> EmbeddedPartition:
        """The partition of a transactional id; its leader coordinates the id.

        Creates ``__transaction_state`` if there is none yet.
        """
        topic = self.topics.get(TRANSACTIONS_TOPIC) or self._create_internal(
            TRANSACTIONS_TOPIC, "transaction.state.log"
        )
        # Kafka's own hash: a log that a real broker wrote has the id in the same
        # partition.
        number = abs(java_hash(transactional_id)) % len(topic.partitions)
        return topic.partitions[number]

    # ---- groups ------------------------------------------------------------------

    def share_state_topic(self) -> Topic:
        """The topic that the states of share partitions are written to.

        Creates it if there is none yet.
        """
        return self.topics.get(SHARE_STATE_TOPIC) or self._create_internal(
            SHARE_STATE_TOPIC, "share.coordinator.state.topic"
        )

    def offsets_partition(self, group: str) -> EmbeddedPartition:
        """The partition of a group's offsets; its leader coordinates the group.

        Creates ``__consumer_offsets`` if there is none yet.
        """
        topic = self.topics.get(OFFSETS_TOPIC) or self._create_internal(
            OFFSETS_TOPIC, "offsets.topic"
        )
        # Kafka's own hash: a log that a real broker wrote has the group in the same
        # partition.
        number = abs(java_hash(group)) % len(topic.partitions)
        return topic.partitions[number]

    def _create_internal(self, name: str, prefix: str) -> Topic:
        def config(key: str, default: int) -> int:
            return int(self.configs.static.get(f"{prefix}.{key}", default))

        configs = {
            "cleanup.policy": "compact",
            "segment.bytes": str(config("segment.bytes", 104_857_600)),
        }
        factor = min(config("replication.factor", 3), len(self.live))
        partitions = config("num.partitions", 50)
        # Without the metadata delay: a request to a group waits for its coordinator.
        return self.create_topic(name, partitions, factor, configs, AT_ONCE)

    # ---- changes -----------------------------------------------------------------

    def new_producer_id(self) -> int:
        """Return a producer id that was never handed out before."""
        self._next_producer_id += 1
        # Ids are reserved in blocks, as in Kafka: what is saved is ahead of what was
        # handed out, so that no id comes twice after a restart.
        if self._next_producer_id % _PRODUCER_IDS == 1:
            self.save()
        return self._next_producer_id

    def fence_producer(self, producer_id: int) -> int:
        """Raise the lowest epoch accepted from a producer id; return that epoch."""
        # Above every epoch that any partition has seen, so that the producer is fenced
        # in all.
        epochs = (one.producers.epochs.get(producer_id, 0) for one in self.partitions())
        before = max(epochs, default=0)
        self._fenced[producer_id] = max(before, self._fenced.get(producer_id, 0)) + 1
        return self._fenced[producer_id]

    def check_name(self, name: str) -> None:
        """Check a topic's name against Kafka's rules.

        Raises:
            Refusal: INVALID_TOPIC_EXCEPTION.
        """
        if (
            not 0 < len(name) <= _LONGEST_NAME
            or name in {".", ".."}
            or not set(name) <= _NAME_CHARACTERS
        ):
            raise Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"invalid name {name!r}")

    def check_absent(self, name: str) -> None:
        """Check that a topic of that name could be created.

        Raises:
            Refusal: INVALID_TOPIC_EXCEPTION, TOPIC_ALREADY_EXISTS.
        """
        self.check_name(name)
        if name in self.topics:
            raise Refusal(
                ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists."
            )

    def check_configs(self, configs: Mapping[str, str | None]) -> None:
        """Check the names and values of a topic's configs.

        Raises:
            Refusal: INVALID_CONFIG.
        """
        for config, value in configs.items():
            validate(TOPIC_DEFAULTS, config, value)

    def check_new(
        self, name: str, partitions: int, factor: int, configs: Mapping[str, str | None]
    ) -> None:
        """Check everything that ``create_topic`` checks.

        Raises:
            Refusal: INVALID_TOPIC_EXCEPTION, TOPIC_ALREADY_EXISTS, INVALID_CONFIG,
                INVALID_REPLICATION_FACTOR or INVALID_PARTITIONS.
        """
        self.check_absent(name)
        self.check_configs(configs)
        if factor <= 0:
            raise Refusal(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                "Replication factor must be larger than 0.",
            )
        if partitions <= 0:
            raise Refusal(
                ErrorCode.INVALID_PARTITIONS,
                "Number of partitions must be larger than 0.",
            )
        if factor > len(self.live):
            raise Refusal(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"Unable to replicate the partition {factor} time(s): only"
                f" {len(self.live)} broker(s) are registered.",
            )

    def create_topic(
        self,
        name: str,
        partitions: int,
        factor: int,
        configs: Mapping[str, str] | None = None,
        visible_at: float | None = None,
        topic_id: UUID | None = None,
    ) -> Topic:
        """Create a topic.

        Args:
            name: its name.
            partitions: how many.
            factor: replicas of each partition.
            configs: those that differ from the defaults.
            visible_at: when nodes know of it, by the cluster's clock; None for the
                metadata delay from now, `AT_ONCE` for no delay.
            topic_id: its id; None for a random one.

        Raises:
            Refusal: as `check_new`.
        """
        self.check_new(name, partitions, factor, configs or {})
        assignment = self.choose_replicas(partitions, factor)
        return self.add_topic(name, assignment, configs, visible_at, topic_id)

    def choose_replicas(self, partitions: int, factor: int) -> list[list[int]]:
        """Choose the replicas of new partitions among the nodes that are up."""
        return [self._choose_replicas_of_one(factor) for _ in range(partitions)]

    def add_topic(
        self,
        name: str,
        assignment: list[list[int]],
        configs: Mapping[str, str] | None = None,
        visible_at: float | None = None,
        topic_id: UUID | None = None,
    ) -> Topic:
        """Create a topic with these replicas, without any check."""
        if visible_at is None:
            visible_at = self.clock.now() + self._metadata_delay
        settings = TopicSettings(configs, self.configs.topic_defaults)
        topic = Topic(name, topic_id or random_uuid(), settings, visible_at)
        self._extend(topic, assignment)
        self.topics[name] = self._by_id[topic.topic_id] = topic
        self.save()
        return topic

    def add_partitions(self, topic: Topic, assignment: list[list[int]] | int) -> None:
        """Add partitions to a topic.

        Args:
            topic: the topic.
            assignment: the replicas of each new partition, or how many to add.
        """
        if isinstance(assignment, int):
            factor = min(len(topic.partitions[0].replicas), len(self.live))
            assignment = self.choose_replicas(assignment, factor)
        self._extend(topic, assignment)
        self.save()

    def _open_log(self, topic: Topic, index: int) -> Log:
        storage = self._store.partition(topic.name, index)
        return Log.open(storage, topic.settings.log_config, self.clock.wall_ms())

    def _extend(self, topic: Topic, assignment: list[list[int]]) -> None:
        for replicas in assignment:
            index = len(topic.partitions)
            partition = EmbeddedPartition(
                topic.name,
                topic.topic_id,
                index,
                replicas,
                topic.settings,
                partial(self._open_log, topic, index),
            )
            partition.producers = ProducerStates(self._fenced)
            partition.now = self.clock.now
            partition.isr = [node for node in replicas if node in self.live]
            # The preferred leader is down: the first replica that is up leads.
            if partition.leader not in self.live:
                partition.leader = partition.isr[0] if partition.isr else NO_LEADER
            topic.partitions.append(partition)

    def _choose_replicas_of_one(self, factor: int) -> list[int]:
        """Choose replicas for one partition; leaders rotate over the nodes up."""
        nodes = [node for node in self.node_ids if node in self.live]
        # Each partition begins at the next node, so that leaders are spread evenly.
        first = self._next_leader % len(nodes)
        self._next_leader += 1
        return [nodes[(first + step) % len(nodes)] for step in range(factor)]

    def delete_topic(self, topic: Topic) -> None:
        """Delete a topic and its logs; fetches that wait for it return."""
        del self.topics[topic.name], self._by_id[topic.topic_id]
        for partition in topic.partitions:
            # Before the log is closed: fetches that wait read again and find no leader.
            partition.elect(NO_LEADER)
            partition.close()
            self._store.remove_partition(topic.name, partition.index)
        self.save()

    # ---- leaders -----------------------------------------------------------------

    def move_leader(self, partition: EmbeddedPartition, node_id: int) -> None:
        """Make another node the leader; it becomes a replica if it is not one."""
        if node_id not in partition.replicas:
            partition.replicas.append(node_id)
        partition.set_isr([*partition.isr, node_id])
        self._elect(partition, node_id)
        self.save()

    def set_replicas(
        self, partition: EmbeddedPartition, replicas: Sequence[int]
    ) -> None:
        """Move a partition to other nodes; its leader stays if it is among them."""
        partition.replicas = list(replicas)
        # Replicas share one log, so new ones are in sync at once.
        partition.set_isr(node for node in replicas if node in self.live)
        if partition.leader not in partition.isr:
            self._elect_one(partition)
        self.save()

    def elect_unclean(self, partition: EmbeddedPartition) -> bool:
        """Let any replica that is up lead, with what it has of the log.

        Returns:
            False if none is up.
        """
        leader = next((node for node in partition.replicas if node in self.live), None)
        if leader is None:
            return False
        partition.truncate_to_replica(leader)
        partition.set_isr([leader])
        self._elect(partition, leader)
        self.save()
        return True

    def set_isr(self, partition: EmbeddedPartition, isr: list[int]) -> None:
        """Set the in-sync replicas; the leader has to be among them."""
        partition.set_isr(isr)
        partition.wake()

    def node_down(self, node_id: int) -> None:
        """Remove a node: partitions that it led get another leader, or none."""
        self.live.discard(node_id)
        for partition in self.partitions():
            if node_id not in partition.replicas:
                continue
            # The last in-sync replica stays in the ISR, or no replica could ever
            # become leader again.
            if partition.isr != [node_id]:
                partition.set_isr(node for node in partition.isr if node != node_id)
            if partition.leader == node_id:
                self._elect_one(partition)
        self.save()

    def unregister(self, node_id: int) -> None:
        """Forget a node until it is up again; one that is up takes no more part."""
        self.unregistered.add(node_id)
        self.node_down(node_id)

    def node_up(self, node_id: int) -> None:
        """Add a node again; it may lead those of its partitions without a leader."""
        self.live.add(node_id)
        self.unregistered.discard(node_id)
        self.unregistered_controllers.discard(node_id)
        for partition in self.partitions():
            if node_id not in partition.replicas:
                continue
            if partition.leader == NO_LEADER:
                self._elect_one(partition)
            # A replica cannot get in sync without a leader to follow.
            if node_id not in partition.isr and partition.leader != NO_LEADER:
                partition.set_isr([*partition.isr, node_id])
        self.save()

    def _elect_one(self, partition: EmbeddedPartition) -> None:
        """Elect an in-sync replica that is up; any other only if the topic allows it.

        An unclean leader truncates the log to what that replica had.
        """
        leader = next((node for node in partition.isr if node in self.live), NO_LEADER)
        if leader == NO_LEADER and partition.settings.elects_unclean:
            up = (node for node in partition.replicas if node in self.live)
            leader = next(up, NO_LEADER)
            if leader != NO_LEADER:
                partition.truncate_to_replica(leader)
        self._elect(partition, leader)

    def _elect(self, partition: EmbeddedPartition, leader: int) -> None:
        before = partition.leader
        # The leader epoch grows only with a change, so that clients are not sent to
        # look up what they know.
        if before == leader:
            return
        delay = self._metadata_delay
        partition.elect(leader, self.clock.now() + delay if delay else AT_ONCE)
        # Over a copy: a coordinator that is created meanwhile adds itself.
        for notify in list(self.leader_changed):
            notify(partition, before)

    # ---- configs -----------------------------------------------------------------

    def apply_settings(self, topic: Topic) -> None:
        """Apply changed configs of a topic."""
        self._apply_settings(topic.partitions)
        self.save()

    def _apply_settings(self, partitions: Iterable[EmbeddedPartition]) -> None:
        for partition in partitions:
            partition.apply_settings()
            if partition.leader == NO_LEADER:
                self._elect_one(partition)

    def set_configs(self, kind: int, name: str, values: Mapping[str, str]) -> None:
        """Replace all configs of a broker, the cluster or a group, and apply them."""
        self.configs.set(kind, name, values)
        if kind == BROKER:
            self._apply_settings(self.partitions())
        for notify in list(self.configs_changed):
            notify()
        self.save()

    # ---- storage -----------------------------------------------------------------

    def save(self) -> None:
        """Save the metadata: everything that the logs do not hold."""
        self.metadata_offset += 1
        self._store.save(
            {
                "cluster_id": self.cluster_id,
                # Ahead by a block: ids up to here may be handed out before the next
                # save.
                "next_producer_id": self._next_producer_id + _PRODUCER_IDS,
                "topics": {
                    topic.name: {
                        "id": str(topic.topic_id),
                        "configs": topic.settings.values,
                        "replicas": [part.replicas for part in topic.partitions],
                        "epochs": [part.leader_epoch for part in topic.partitions],
                    }
                    for topic in self.topics.values()
                },
                "configs": self.configs.saved(),
                "quotas": self.quotas.saved(),
            }
        )

    def load(self) -> None:
        """Load what an earlier process saved; every leader epoch grows by one.

        Raises:
            OSError: the store cannot be read or written.
            ValueError: the store holds something else.
        """
        saved = self._store.load()
        if saved is None:
            self.save()
            return
        self.cluster_id = saved["cluster_id"]
        self._next_producer_id = saved["next_producer_id"]
        self.configs.restore(saved["configs"])
        self.quotas.restore(saved.get("quotas", ()))
        for name, found in saved["topics"].items():
            # A directory can be opened with fewer nodes than wrote it: replicas of
            # nodes that are gone are left out.
            replicas = [
                [node for node in nodes if node in self.node_ids] or self.node_ids[:1]
                for nodes in found["replicas"]
            ]
            settings = TopicSettings(found["configs"], self.configs.topic_defaults)
            topic = Topic(name, UUID(found["id"]), settings, AT_ONCE)
            self._extend(topic, replicas)
            for partition, epoch in zip(topic.partitions, found["epochs"], strict=True):
                # A restart is a change of the leader: clients with the epoch from
                # before are fenced.
                partition.leader_epoch = epoch + 1
            self.topics[name] = self._by_id[topic.topic_id] = topic
        self.save()

    def flush(self) -> None:
        """Flush every log that ``flush.ms`` demands to flush by now."""
        now_ms = self.clock.wall_ms()
        for partition in list(self.partitions()):
            partition.flush_if_due(now_ms)

    def tidy(self) -> None:
        """Apply retention and compaction to every log, and forget idle producers."""
        now_ms = self.clock.wall_ms()
        for partition in list(self.partitions()):
            partition.tidy(now_ms)
        # Idle producers have an interval of their own, which is longer than that of
        # retention.
        if now_ms >= self._producers_checked_ms + self._config_ms(_PRODUCER_CHECK):
            self._producers_checked_ms = now_ms
            oldest_ms = now_ms - self._config_ms(_PRODUCER_EXPIRATION)
            for partition in list(self.partitions()):
                partition.producers.expire(oldest_ms)

    def _config_ms(self, config: tuple[str, int]) -> int:
        name, default = config
        return int(self.configs.in_force(name) or default)

    def close(self) -> None:
        """Save the metadata and close every log."""
        self.save()
        for partition in self.partitions():
            partition.close()
