"""What all nodes of a cluster agree on: topics, leaders, configs, ids."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Final
from uuid import UUID

from kafkaio._runtime.clock import random_uuid
from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.testing.broker.clock import Clock
from kafkaio.testing.broker.configs import BROKER, Configs
from kafkaio.testing.broker.partition import NO_LEADER, Partition
from kafkaio.testing.broker.producers import ProducerStates
from kafkaio.testing.broker.refusal import Refusal
from kafkaio.testing.broker.settings import TOPIC_DEFAULTS, TopicSettings, validate
from kafkaio.testing.broker.store import MemoryStore, Store
from kafkaio.testing.log import Log

if TYPE_CHECKING:
    from kafkaio.testing.groups.config import GroupConfig

__all__ = ["AT_ONCE", "OFFSETS_TOPIC", "Cluster", "Topic", "java_hash"]

#: For what nodes know of as soon as it is so.
AT_ONCE: Final = -inf
OFFSETS_TOPIC: Final = "__consumer_offsets"
_LONGEST_NAME: Final = 249
# A process that ends without a word has given out at most so many since it saved.
_PRODUCER_IDS: Final = 1000
_NAME_CHARACTERS: Final = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
)

#: Told of a partition whose leader changed, and who led it before.
LeaderChanged = Callable[[Partition, int], None]


def java_hash(text: str) -> int:
    """Java's ``String.hashCode``, which places groups on offsets partitions."""
    value = 0
    units = text.encode("utf-16-be")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def _as_kafka_writes(value: UUID) -> str:
    return urlsafe_b64encode(value.bytes).decode().rstrip("=")


@dataclass(slots=True)
class Topic:
    """One topic.

    Attributes:
        name: its name.
        topic_id: its id; a topic made anew under the name has another.
        partitions: in the order of their numbers.
        settings: its configs.
        visible_at: the time of the loop's clock from which nodes know of it.
    """

    name: str
    topic_id: UUID
    settings: TopicSettings
    visible_at: float
    partitions: list[Partition] = field(default_factory=list)

    @property
    def is_internal(self) -> bool:
        """Whether the brokers made it for themselves."""
        return self.name == OFFSETS_TOPIC


class Cluster:
    """The state that a real cluster keeps in its metadata log.

    Args:
        node_ids: the nodes, all up.
        clock: what time it is.
        metadata_delay: seconds until nodes know of a new leader, or of a topic that a
            request for its metadata created.
        store: where logs are kept, and what has to survive the process.
        configs: of brokers and groups.
    """

    def __init__(
        self,
        node_ids: list[int],
        clock: Clock,
        metadata_delay: float,
        store: Store | None = None,
        configs: Configs | None = None,
    ) -> None:
        self.clock = clock
        self.cluster_id = _as_kafka_writes(random_uuid())
        self.live = set(node_ids)
        self.topics: dict[str, Topic] = {}
        #: Configs of brokers and groups.
        self.configs = configs or Configs()
        #: Whether a partition has eligible leader replicas (KIP-966).
        self.has_eligible_replicas = False
        #: Told of every change of a leader, after it happened.
        self.leader_changed: list[LeaderChanged] = []
        #: Told that configs of brokers or groups changed.
        self.configs_changed: list[Callable[[], None]] = []
        #: For whoever coordinates groups.
        self.group_config: GroupConfig | None = None
        self.node_ids = node_ids
        self._metadata_delay = metadata_delay
        self._store: Store = store or MemoryStore()
        self._by_id: dict[UUID, Topic] = {}
        self._fenced: dict[int, int] = {}
        self._next_leader = 0
        self._next_producer_id = 0

    # ---- looking up --------------------------------------------------------------

    @property
    def controller_id(self) -> int:
        """The node to send cluster-wide changes to."""
        return min(self.live, default=-1)

    def known(self, name: str) -> Topic | None:
        """A topic, if word of it has got round."""
        return self._if_visible(self.topics.get(name))

    def known_by_id(self, topic_id: UUID) -> Topic | None:
        """A topic by its id, if word of it has got round."""
        return self._if_visible(self._by_id.get(topic_id))

    def _if_visible(self, topic: Topic | None) -> Topic | None:
        if topic is None or topic.visible_at > self.clock.now():
            return None
        return topic

    def visible(self) -> list[Topic]:
        """Every topic that nodes know of, by name."""
        now = self.clock.now()
        topics = (self.topics[name] for name in sorted(self.topics))
        return [topic for topic in topics if topic.visible_at <= now]

    def partition(self, topic: str, index: int) -> Partition | None:
        """A partition that nodes know of."""
        found = self.known(topic)
        if found is None or not 0 <= index < len(found.partitions):
            return None
        return found.partitions[index]

    def need_partition(self, topic: str, index: int) -> Partition:
        """A partition that nodes know of.

        Raises:
            Refusal: UNKNOWN_TOPIC_OR_PARTITION.
        """
        found = self.partition(topic, index)
        if found is None:
            raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return found

    def need_topic(self, name: str) -> Topic:
        """A topic that nodes know of.

        Raises:
            Refusal: UNKNOWN_TOPIC_OR_PARTITION.
        """
        found = self.known(name)
        if found is None:
            raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return found

    def partitions(self) -> Iterator[Partition]:
        """Every partition there is."""
        for topic in self.topics.values():
            yield from topic.partitions

    # ---- groups ------------------------------------------------------------------

    def offsets_partition(self, group: str) -> Partition:
        """The partition that a group's offsets belong to; its leader coordinates."""
        topic = self.topics.get(OFFSETS_TOPIC) or self._create_offsets_topic()
        number = abs(java_hash(group)) % len(topic.partitions)
        return topic.partitions[number]

    def _create_offsets_topic(self) -> Topic:
        def told(what: str, default: int) -> int:
            return int(self.configs.static.get(f"offsets.topic.{what}", default))

        configs = {
            "cleanup.policy": "compact",
            "segment.bytes": str(told("segment.bytes", 104_857_600)),
        }
        factor = min(told("replication.factor", 3), len(self.live))
        partitions = told("num.partitions", 50)
        return self.create_topic(OFFSETS_TOPIC, partitions, factor, configs, AT_ONCE)

    # ---- changes -----------------------------------------------------------------

    def new_producer_id(self) -> int:
        """A producer id that nobody had."""
        self._next_producer_id += 1
        if self._next_producer_id % _PRODUCER_IDS == 1:
            self.save()
        return self._next_producer_id

    def fence_producer(self, producer_id: int) -> int:
        """Let a producer id in with a greater epoch only; return that."""
        epochs = (one.producers.epochs.get(producer_id, 0) for one in self.partitions())
        before = max(epochs, default=0)
        self._fenced[producer_id] = max(before, self._fenced.get(producer_id, 0)) + 1
        return self._fenced[producer_id]

    def check_name(self, name: str) -> None:
        """Hold a topic's name against Kafka's rules.

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
        """Say whether a topic of that name could be made.

        Raises:
            Refusal: INVALID_TOPIC_EXCEPTION, TOPIC_ALREADY_EXISTS.
        """
        self.check_name(name)
        if name in self.topics:
            raise Refusal(
                ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists."
            )

    def check_configs(self, configs: Mapping[str, str | None]) -> None:
        """Hold configs of a topic against what is known of them.

        Raises:
            Refusal: INVALID_CONFIG.
        """
        for config, value in configs.items():
            validate(TOPIC_DEFAULTS, config, value)

    def check_new(
        self, name: str, partitions: int, factor: int, configs: Mapping[str, str | None]
    ) -> None:
        """Say whether ``create_topic`` may be called.

        Raises:
            Refusal: with the reason.
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
        """Create a topic; nodes learn of it a little later, or when it is told.

        Its id is drawn unless one is given.

        Raises:
            Refusal: with the reason why not.
        """
        self.check_new(name, partitions, factor, configs or {})
        assignment = self.place(partitions, factor)
        return self.place_topic(name, assignment, configs, visible_at, topic_id)

    def place(self, partitions: int, factor: int) -> list[list[int]]:
        """Choose the replicas of new partitions among the nodes that are up."""
        return [self._place(factor) for _ in range(partitions)]

    def place_topic(
        self,
        name: str,
        assignment: list[list[int]],
        configs: Mapping[str, str] | None = None,
        visible_at: float | None = None,
        topic_id: UUID | None = None,
    ) -> Topic:
        """Create a topic whose replicas were chosen, without any check."""
        if visible_at is None:
            visible_at = self.clock.now() + self._metadata_delay
        settings = TopicSettings(configs, self.configs.topic_defaults)
        topic = Topic(name, topic_id or random_uuid(), settings, visible_at)
        self._extend(topic, assignment)
        self.topics[name] = self._by_id[topic.topic_id] = topic
        self.save()
        return topic

    def add_partitions(self, topic: Topic, assignment: list[list[int]] | int) -> None:
        """Add partitions to a topic: as many, or with these replicas."""
        if isinstance(assignment, int):
            factor = min(len(topic.partitions[0].replicas), len(self.live))
            assignment = self.place(assignment, factor)
        self._extend(topic, assignment)
        self.save()

    def _open_log(self, topic: Topic, index: int) -> Log:
        storage = self._store.partition(topic.name, index)
        return Log.open(storage, topic.settings.log_config, self.clock.wall_ms())

    def _extend(self, topic: Topic, assignment: list[list[int]]) -> None:
        for replicas in assignment:
            index = len(topic.partitions)
            partition = Partition(
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
            if partition.leader not in self.live:
                partition.leader = partition.isr[0] if partition.isr else NO_LEADER
            topic.partitions.append(partition)

    def _place(self, factor: int) -> list[int]:
        """Replicas for one partition: leaders go round the nodes that are up."""
        nodes = [node for node in self.node_ids if node in self.live]
        first = self._next_leader % len(nodes)
        self._next_leader += 1
        return [nodes[(first + step) % len(nodes)] for step in range(factor)]

    def delete_topic(self, topic: Topic) -> None:
        """Delete a topic; its fetches end."""
        del self.topics[topic.name], self._by_id[topic.topic_id]
        for partition in topic.partitions:
            partition.elect(NO_LEADER)
            partition.close()
            self._store.remove_partition(topic.name, partition.index)
        self.save()

    # ---- leaders -----------------------------------------------------------------

    def move_leader(self, partition: Partition, node_id: int) -> None:
        """Let another node lead; it becomes a replica if it was none."""
        if node_id not in partition.replicas:
            partition.replicas.append(node_id)
        partition.set_isr([*partition.isr, node_id])
        self._elect(partition, node_id)
        self.save()

    def set_isr(self, partition: Partition, isr: list[int]) -> None:
        """Say which replicas are in sync; the leader has to be one."""
        partition.set_isr(isr)
        partition.wake()

    def node_down(self, node_id: int) -> None:
        """Take a node out; what it led goes to another replica, or has no leader."""
        self.live.discard(node_id)
        for partition in self.partitions():
            if node_id not in partition.replicas:
                continue
            # The last in-sync replica stays one, or nobody could ever lead again.
            if partition.isr != [node_id]:
                partition.set_isr(node for node in partition.isr if node != node_id)
            if partition.leader == node_id:
                self._elect_one(partition)
        self.save()

    def node_up(self, node_id: int) -> None:
        """Take a node in again; it leads what has no leader and is in its care."""
        self.live.add(node_id)
        for partition in self.partitions():
            if node_id not in partition.replicas:
                continue
            if partition.leader == NO_LEADER:
                self._elect_one(partition)
            # Nobody gets in sync but with a leader.
            if node_id not in partition.isr and partition.leader != NO_LEADER:
                partition.set_isr([*partition.isr, node_id])
        self.save()

    def _elect_one(self, partition: Partition) -> None:
        """Let a replica lead that is up and in sync, or the topic's unclean choice."""
        leader = next((node for node in partition.isr if node in self.live), NO_LEADER)
        if leader == NO_LEADER and partition.settings.elects_unclean:
            up = (node for node in partition.replicas if node in self.live)
            leader = next(up, NO_LEADER)
            if leader != NO_LEADER:
                partition.cut_to(leader)
        self._elect(partition, leader)

    def _elect(self, partition: Partition, leader: int) -> None:
        before = partition.leader
        if before == leader:
            return
        delay = self._metadata_delay
        partition.elect(leader, self.clock.now() + delay if delay else AT_ONCE)
        for tell in list(self.leader_changed):
            tell(partition, before)

    # ---- what survives the process -----------------------------------------------

    def apply_settings(self, topic: Topic) -> None:
        """Let changed configs of a topic take effect."""
        self._apply_settings(topic.partitions)
        self.save()

    def _apply_settings(self, partitions: Iterable[Partition]) -> None:
        for partition in partitions:
            partition.apply_settings()
            if partition.leader == NO_LEADER:
                self._elect_one(partition)

    def set_configs(self, kind: int, name: str, values: Mapping[str, str]) -> None:
        """Set all configs of a broker, the cluster or a group; they take effect."""
        self.configs.set(kind, name, values)
        if kind == BROKER:
            self._apply_settings(self.partitions())
        for tell in list(self.configs_changed):
            tell()
        self.save()

    def save(self) -> None:
        """Keep what logs do not tell."""
        self._store.save(
            {
                "cluster_id": self.cluster_id,
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
                "configs": self.configs.kept(),
            }
        )

    def load(self) -> None:
        """Take up what an earlier process kept; every leader epoch is a new one.

        Raises:
            OSError: nothing can be read or written there.
            ValueError: what is there was not kept by a cluster.
        """
        kept = self._store.load()
        if kept is None:
            self.save()
            return
        self.cluster_id = kept["cluster_id"]
        self._next_producer_id = kept["next_producer_id"]
        if "configs" in kept:  # files of the time before have none
            self.configs.restore(kept["configs"])
        for name, told in kept["topics"].items():
            replicas = [
                [node for node in nodes if node in self.node_ids] or self.node_ids[:1]
                for nodes in told["replicas"]
            ]
            settings = TopicSettings(told["configs"], self.configs.topic_defaults)
            topic = Topic(name, UUID(told["id"]), settings, AT_ONCE)
            self._extend(topic, replicas)
            for partition, epoch in zip(topic.partitions, told["epochs"], strict=True):
                partition.leader_epoch = epoch + 1
            self.topics[name] = self._by_id[topic.topic_id] = topic
        self.save()

    def flush(self) -> None:
        """Let every log flush what is due."""
        now_ms = self.clock.wall_ms()
        for partition in list(self.partitions()):
            partition.flush_if_due(now_ms)

    def tidy(self) -> None:
        """Let every log forget and compact what is due."""
        now_ms = self.clock.wall_ms()
        for partition in list(self.partitions()):
            partition.tidy(now_ms)

    def close(self) -> None:
        """Close every log."""
        self.save()
        for partition in self.partitions():
            partition.close()
