"""Fetching ahead of the reader: one loop per broker, one fetch session each.

A loop keeps one fetch in flight, which overlaps with the user's work: the next one is
sent as soon as the last was answered, while its data waits in the buffers. `targets`
decides the partitions and the sizes of a fetch; `answers` processes the results.

A broker answers a fetch when one of its partitions has data, or after
``fetch_max_wait_ms``. A partition that was left out because its share of the buffer is
full would have to wait for that answer once it is read. So a fetch that leaves one out
asks for a shorter wait, which grows while the user does not read. Partitions that
become fetchable while a fetch waits are fetched beside it, see `side_fetch`.

Fetching needs a cluster and `RecordsPort`; it does not depend on consumers or groups.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING
from uuid import UUID

from kafkaio._config import ConsumerConfig
from kafkaio._consumer.fetch.answers import FetchAnswers, LogEnds
from kafkaio._consumer.fetch.node import BrokerFetcher
from kafkaio._consumer.fetch.targets import FetchTargets, RecordsPort
from kafkaio._machines.metadata import ClusterView
from kafkaio._machines.positions import PositionStage
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._runtime.supervisor import Child
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    from kafkaio._client.ports import ClusterPort


class Fetcher:
    """Runs a fetch loop for each broker that leads a partition to read.

    Args:
        cluster: the way to the cluster.
        config: the consumer's options.
        records: has the positions, and takes the fetched records.
        start_soon: starts a loop in the background.

    Attributes:
        connection_class: the connections of these fetches alone: a broker answers in
            order, so other requests would wait behind a fetch.
    """

    def __init__(
        self,
        cluster: ClusterPort,
        config: ConsumerConfig,
        records: RecordsPort,
        start_soon: Callable[[Child, str], None],
    ) -> None:
        self.connection_class: ConnectionClass = ConnectionClass.FETCH.of(self)
        self._cluster = cluster
        self._config = config
        self._records = records
        self._start_soon = start_soon
        self._loops: dict[int, BrokerFetcher] = {}
        self._targets = FetchTargets(cluster, config, records, self._loops)
        self._answers = FetchAnswers(
            cluster, config, records, self._targets, self.update, cluster.observer
        )
        records.on_room = self.wake
        # The cluster and the topic that each partition's position belongs to.
        self._topics: dict[TopicPartition, tuple[str | None, UUID]] = {}
        # Of topics that were created again, the ids that they had before.
        self._former: dict[str, UUID] = {}
        # The metadata that they were compared with.
        self._seen: ClusterView | None = None

    @property
    def in_flight(self) -> int:
        """Fetches without an answer yet."""
        return sum(loop.is_fetching for loop in self._loops.values())

    @property
    def stale_answers(self) -> int:
        """Number of partitions in answers whose data was dropped as outdated."""
        return self._answers.stale

    def ends_of(self, tp: TopicPartition) -> LogEnds | None:
        """Return the bounds of a partition's log; None before its first fetch."""
        return self._answers.ends.get(tp)

    def update(self) -> None:
        """Start missing loops and wake all: positions, metadata or room changed."""
        self._targets.count_brokers()
        self._see_topics()
        self._see_leaders()
        leaderless, brokers = set(), self._targets.brokers
        has_followers = brokers.has_followers
        nodes: dict[int, None] = {}
        # Also those that wait after an error: once they are due, only a loop that
        # already runs notices it.
        for point in self._records.positions.fetchable(math.inf):
            node_id = brokers.node_of(point.tp)
            if node_id is None:
                leaderless.add(point.tp.topic)
                continue
            nodes[node_id] = None
            # The leader goes on when its follower is left, also by the passing of time,
            # and nothing calls this then.
            if has_followers:
                leader = self._cluster.view.leader(point.tp)
                nodes[node_id if leader is None else leader] = None
        for node_id in nodes:
            if node_id not in self._loops:
                self._start(node_id)
        if leaderless:
            self._cluster.request_refresh(*sorted(leaderless))
        self._prepare()
        self.wake()
        for loop in self._loops.values():
            loop.side.wake()

    def _start(self, node_id: int) -> None:
        loop = BrokerFetcher(
            node_id,
            self._cluster,
            self._config,
            self._targets,
            self._answers,
            connection_class=self.connection_class,
            on_free=self.wake,
            on_end=self._ended,
        )
        self._loops[node_id] = loop
        self._start_soon(loop.run, f"fetch from broker {node_id}")
        self._start_soon(loop.side.run, f"catch up with broker {node_id}")

    def _prepare(self) -> None:
        """Connect to leaders while the positions of their partitions are looked up."""
        for tp in self._records.positions.waiting():
            node_id = self._targets.brokers.node_of(tp)
            if node_id is not None and node_id not in self._loops:
                self._cluster.prepare(node_id, self.connection_class)

    def _ended(self, node_id: int) -> None:
        self._loops.pop(node_id, None)
        self._targets.forget_broker(node_id)

    def _see_topics(self) -> None:
        # A topic that was deleted and created again has another log, of which the
        # position says nothing, even if it is inside. Another cluster may have a copy
        # of the topic, with its offsets.
        records, view = self._records, self._cluster.view
        if view is self._seen and len(self._topics) == len(records.positions):
            return
        self._seen = view
        for tp in records.positions:
            topic_id, stage = view.topic_id(tp.topic), records.positions[tp].stage
            if stage is PositionStage.VALIDATING:
                self._seen = None  # its position is kept: look again
            # A broker that lags behind may show the former id once more.
            elif topic_id is not None and topic_id != self._former.get(tp.topic):
                topic = view.cluster_id, topic_id
                cluster_id, former_id = self._topics.get(tp, topic)
                self._topics[tp] = topic
                is_another = former_id != topic_id and cluster_id == view.cluster_id
                if is_another:
                    self._former[tp.topic] = former_id
                # A position that is being looked up will be of the new topic.
                if is_another and stage is PositionStage.FETCHING:
                    records.created_again(tp)
                    self._cluster.observer.new_partitions([tp])

    def _see_leaders(self) -> None:
        # A new leader's log may lack records that the old one sent (KIP-320): buffered
        # data is dropped, and the position is validated before the next fetch.
        records, view = self._records, self._cluster.view
        for tp in records.positions:
            partition, entry = view.partition(tp), records.positions[tp]
            if partition is None or entry.stage is not PositionStage.FETCHING:
                continue
            if partition.leader_epoch <= entry.leader_epoch:
                continue
            # The position lags behind records handed out one by one; dropping the
            # buffer before it is up to date would hand them out twice.
            records.set_aside()
            if records.positions.leader_seen(tp, partition.leader_epoch):
                records.buffers.drop(tp)

    def wake(self) -> None:
        """Wake every loop: there is room, or something else to fetch."""
        for loop in self._loops.values():
            loop.wake()

    def forget(self, tp: TopicPartition) -> None:
        """Drop the state of a partition that is not assigned any more."""
        self._targets.forget(tp)
        self._answers.forget(tp)
        self._topics.pop(tp, None)

    def close_sessions(self) -> None:
        """Close the fetch sessions at the brokers, without waiting for answers."""
        for loop in self._loops.values():
            loop.close_session()
