"""Fetching ahead of the reader: one loop per broker, one fetch session each.

A loop keeps one fetch in flight, which overlaps with the user's work: the next goes
out as soon as the last was answered, while its data waits in the buffers. What a loop
may fetch, and how much, is decided in `targets`; what an answer says is judged in
`answers`.

A broker answers a fetch when one of its partitions has data, or after
``fetch_max_wait_ms``. A partition that was left out has to wait for that answer when
it is empty again; so a fetch that leaves one out asks for a shorter wait, which grows
while the user does not read. What becomes fetchable while a fetch waits is fetched
beside it, see `side_fetch`.

Nothing here knows of consumers or groups: fetching needs a cluster and `RecordsPort`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from kafkaio._client.ports import ClusterPort
from kafkaio._config import ConsumerConfig
from kafkaio._consumer.fetch.answers import FetchAnswers, LogEnds
from kafkaio._consumer.fetch.node import BrokerFetcher
from kafkaio._consumer.fetch.targets import FetchTargets, RecordsPort
from kafkaio._machines.positions import PositionStage
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._runtime.supervisor import Child
from kafkaio.types import TopicPartition


class Fetcher:
    """Runs a fetch loop for each broker that leads a partition to read.

    Args:
        cluster: the way to the cluster.
        config: the consumer's options.
        records: takes what is fetched, and knows what is wanted.
        start_soon: starts a loop in the background.

    Attributes:
        connection_class: the connections that carry these fetches and nobody else's,
            which would have to wait behind them.
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

    @property
    def in_flight(self) -> int:
        """Fetches without an answer yet."""
        return sum(loop.is_fetching for loop in self._loops.values())

    @property
    def stale_answers(self) -> int:
        """How many partitions' data was dropped because their position was left."""
        return self._answers.stale

    def ends_of(self, tp: TopicPartition) -> LogEnds | None:
        """What the last fetch said of a partition's log; None before the first."""
        return self._answers.ends.get(tp)

    def update(self) -> None:
        """Positions, metadata or room changed: start loops, and have all look again."""
        self._targets.count_brokers()
        self._see_leaders()
        leaderless = set()
        # Those that wait after an error, too: when they are due, only loops look.
        for point in self._records.positions.fetchable(math.inf):
            node_id = self._targets.brokers.node_of(point.tp)
            if node_id is None:
                leaderless.add(point.tp.topic)
            elif node_id not in self._loops:
                self._start(node_id)
        if leaderless:
            self._cluster.request_refresh(*sorted(leaderless))
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

    def _ended(self, node_id: int) -> None:
        self._loops.pop(node_id, None)

    def _see_leaders(self) -> None:
        # A new leader's log need not have what the old one sent (KIP-320): such data
        # is dropped, and the position is validated before it is fetched again.
        records, view = self._records, self._cluster.view
        for tp in records.positions:
            partition, entry = view.partition(tp), records.positions[tp]
            if partition is None or entry.stage is not PositionStage.FETCHING:
                continue
            if partition.leader_epoch <= entry.leader_epoch:
                continue
            records.set_aside()  # the positions must say how far it was read
            if records.positions.leader_seen(tp, partition.leader_epoch):
                records.buffers.drop(tp)

    def wake(self) -> None:
        """Have every loop look again: there is room, or something else to fetch."""
        for loop in self._loops.values():
            loop.wake()

    def forget(self, tp: TopicPartition) -> None:
        """Drop what is known of a partition that is not assigned any more."""
        self._targets.forget(tp)
        self._answers.forget(tp)

    def close_sessions(self) -> None:
        """Tell the brokers that they may drop our sessions; wait for no answer."""
        for loop in self._loops.values():
            loop.close_session()
