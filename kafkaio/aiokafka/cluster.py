"""`ClusterMetadata`: what a client knows of its cluster."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeAlias

from kafkaio import ClusterView, TopicPartition
from kafkaio.aiokafka import errors
from kafkaio.aiokafka._hosts import collect_hosts
from kafkaio.aiokafka.structs import BrokerMetadata, PartitionMetadata

if TYPE_CHECKING:
    from kafkaio.protocol.messages import MetadataResponse

__all__ = ["ClusterMetadata"]

_log = logging.getLogger(__name__)
#: Called with the metadata when it has changed.
MetadataListener: TypeAlias = "Callable[[ClusterMetadata], object]"
#: The partitions of topics, by name and number.
_Partitions: TypeAlias = dict[str, dict[int, PartitionMetadata]]


class ClusterMetadata:
    """Brokers, topics and partitions of a cluster; asks nobody by itself.

    Args:
        configs: ``bootstrap_servers``, which `brokers` returns until brokers are known;
            ``retry_backoff_ms`` and ``metadata_max_age_ms`` are kept in ``config``.

    Attributes:
        config: the options.
        controller: the broker that serves the controller's requests; None if unknown.
        internal_topics: names of Kafka's own topics.
        unauthorized_topics: names of topics that the principal may not describe.
        need_all_topic_metadata: whether errors of single topics are not logged.
    """

    DEFAULT_CONFIG: Mapping[str, object] = {
        "retry_backoff_ms": 100,
        "metadata_max_age_ms": 300_000,
        "bootstrap_servers": [],
    }

    def __init__(self, **configs: object) -> None:
        self._brokers: dict[int, BrokerMetadata] = {}
        self._partitions: _Partitions = {}
        # The topics that came with the last view; see `merge`.
        self._viewed: frozenset[str] = frozenset()
        self._future: Future[ClusterMetadata] | None = None
        self._listeners: set[MetadataListener] = set()
        self.need_all_topic_metadata = False
        self.unauthorized_topics: set[str] = set()
        self.internal_topics: set[str] = set()
        self.controller: BrokerMetadata | None = None
        self.config: dict[str, object] = {
            name: configs.get(name, default)
            for name, default in self.DEFAULT_CONFIG.items()
        }
        self._bootstrap = _bootstrap_brokers(self.config["bootstrap_servers"])

    def __str__(self) -> str:
        return (
            f"ClusterMetadata(brokers: {len(self._brokers)}, "
            f"topics: {len(self._partitions)})"
        )

    def is_bootstrap(self, node_id: int | str) -> bool:
        """Whether this is the id of a bootstrap server, whose number is not known."""
        return node_id in self._bootstrap

    def brokers(self) -> set[BrokerMetadata]:
        """Return the brokers; the bootstrap servers while none is known."""
        return {*(self._brokers or self._bootstrap).values()}

    def broker_metadata(self, broker_id: int | str) -> BrokerMetadata | None:
        """Return a broker by its id; None if there is none."""
        if isinstance(broker_id, str):
            return self._bootstrap.get(broker_id)
        return self._brokers.get(broker_id)

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """Return the partitions of a topic; None if the topic is not known."""
        found = self._partitions.get(topic)
        return None if found is None else {*found}

    def available_partitions_for_topic(self, topic: str) -> set[int] | None:
        """Return the partitions that have a leader; None if the topic is not known."""
        found = self._partitions.get(topic)
        if found is None:
            return None
        return {number for number, each in found.items() if each.leader != -1}

    def leader_for_partition(self, partition: TopicPartition) -> int | None:
        """Return the id of the leader: -1 if there is none, None if it is not known."""
        found = self._partitions.get(partition.topic, {}).get(partition.partition)
        return None if found is None else found.leader

    def partitions_for_broker(self, broker_id: int) -> set[TopicPartition] | None:
        """Return the partitions that a broker leads; None if there are none."""
        return {
            TopicPartition(topic, number)
            for topic, partitions in self._partitions.items()
            for number, each in partitions.items()
            if each.leader == broker_id
        } or None

    def topics(self, exclude_internal_topics: bool = True) -> set[str]:  # noqa: FBT001,FBT002
        """Return the names of the topics known, without Kafka's own by default."""
        return {*self._partitions} - (
            self.internal_topics if exclude_internal_topics else set()
        )

    def request_update(self) -> Future[ClusterMetadata]:
        """Return a future of the next update, which somebody else has to make."""
        if self._future is None or self._future.done():
            self._future = Future()
        return self._future

    def failed_update(self, exception: BaseException | None) -> None:
        """Note that an update failed: who waits for it gets the exception."""
        future, self._future = self._future, None
        if future is not None:
            future.set_exception(exception)

    def update_metadata(self, metadata: MetadataResponse) -> None:
        """Replace what is known by an answer of a broker.

        Args:
            metadata: a ``kafkaio.messages.MetadataResponse``.
        """
        if not metadata.brokers:
            _log.warning("an answer without brokers is ignored")
            self.failed_update(errors.MetadataEmptyBrokerList(metadata))
            return
        self._brokers = {
            each.node_id: BrokerMetadata(each.node_id, each.host, each.port, each.rack)
            for each in metadata.brokers
        }
        self.controller = self._brokers.get(metadata.controller_id)
        named = [(topic.name or "", topic) for topic in metadata.topics]
        self.internal_topics = {name for name, topic in named if topic.is_internal}
        self.unauthorized_topics = set()
        self._partitions = {}
        for name, topic in named:
            if topic.error_code:
                self._note_failure(name, topic.error_code)
                continue
            self._partitions[name] = {
                each.partition_index: PartitionMetadata(
                    name,
                    each.partition_index,
                    each.leader_id,
                    [*each.replica_nodes],
                    [*each.isr_nodes],
                    _error_of(each.error_code),
                )
                for each in topic.partitions
            }
        self._changed()

    def merge(self, view: ClusterView) -> None:
        """Take over what a client of kafkaio knows by now.

        Topics that never came with a view stay as they are: such a client knows only
        those that it uses. Those that came with the last one and are not in this one
        are gone.
        """
        for name in self._viewed - view.by_name.keys():
            self._partitions.pop(name, None)
        self._viewed = frozenset(view.by_name)
        self._brokers = {
            each.node_id: BrokerMetadata(each.node_id, each.host, each.port, each.rack)
            for each in view.brokers.values()
        }
        self.controller = self._brokers.get(view.controller_id)
        for name, topic in view.by_name.items():
            self._partitions.pop(name, None)
            self.unauthorized_topics.discard(name)
            if topic.error:
                self._note_failure(name, int(topic.error))
                continue
            if topic.is_internal:
                self.internal_topics.add(name)
            self._partitions[name] = {
                number: PartitionMetadata(
                    name, number, each.leader, [*each.replicas], [*each.isr], None
                )
                for number, each in topic.partitions.items()
            }
        self._changed()

    def _note_failure(self, topic: str, code: int) -> None:
        kind = errors.for_code(code)
        if kind is errors.TopicAuthorizationFailedError:
            self.unauthorized_topics.add(topic)
        if not self.need_all_topic_metadata:
            _log.warning("topic %s cannot be described: %s", topic, kind.message)

    def _changed(self) -> None:
        future, self._future = self._future, None
        if future is not None:
            future.set_result(self)
        for listener in [*self._listeners]:
            listener(self)

    def add_listener(self, listener: MetadataListener) -> None:
        """Call a function with this object at each update."""
        self._listeners.add(listener)

    def remove_listener(self, listener: MetadataListener) -> None:
        """Call it no longer.

        Raises:
            KeyError: it was not added.
        """
        self._listeners.remove(listener)

    def with_partitions(
        self, partitions_to_add: Iterable[PartitionMetadata]
    ) -> ClusterMetadata:
        """Return a copy that has more partitions."""
        copy = ClusterMetadata(**self.config)
        copy._brokers = {**self._brokers}
        copy._partitions = {name: {**each} for name, each in self._partitions.items()}
        copy.internal_topics = {*self.internal_topics}
        copy.unauthorized_topics = {*self.unauthorized_topics}
        for each in partitions_to_add:
            copy._partitions.setdefault(each.topic, {})[each.partition] = each
        return copy


def _bootstrap_brokers(servers: object) -> dict[str, BrokerMetadata]:
    if not isinstance(servers, str | list | tuple):
        return {}
    return {
        f"bootstrap-{number}": BrokerMetadata(f"bootstrap-{number}", host, port, None)
        for number, (host, port, _) in enumerate(
            collect_hosts(servers, randomize=False)
        )
    }


def _error_of(code: int) -> errors.KafkaError | None:
    return errors.for_code(code)() if code else None
