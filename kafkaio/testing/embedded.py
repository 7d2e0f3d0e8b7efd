"""``Broker``: a Kafka cluster in the event loop, for development and tests only."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final
from uuid import UUID

from kafkaio._net.memory import MemoryNetwork
from kafkaio._net.transport import DialOptions, FrameSink, Transport
from kafkaio._runtime.supervisor import Supervisor
from kafkaio.testing.broker.clock import Clock
from kafkaio.testing.broker.cluster import AT_ONCE, Cluster, Topic
from kafkaio.testing.broker.configs import BROKER, Configs
from kafkaio.testing.broker.control import Control
from kafkaio.testing.broker.faults import Faults
from kafkaio.testing.broker.listener import Listener, MemoryListener, TcpListener
from kafkaio.testing.broker.node import LoggedRequest, Node
from kafkaio.testing.broker.properties import (
    Address,
    changed_config,
    checked_config,
    listener,
)
from kafkaio.testing.broker.store import DiskStore, MemoryStore
from kafkaio.testing.groups.config import GroupConfig
from kafkaio.testing.handlers import handlers_of

if TYPE_CHECKING:
    from kafkaio.testing.groups.coordinator import GroupCoordinator

__all__ = ["Broker"]

_FIRST_MEMORY_PORT: Final = 9092
_MIN_ISR: Final = "min.insync.replicas"
_LOGGED: Final = 10_000
# How often logs flush what is due, and after how many times they forget and compact,
# too: not sooner than Kafka's first check, for tests like to write old timestamps.
_FLUSH_SECONDS: Final = 1.0
_FLUSHES: Final = 30
#: Releases whose new clusters have eligible leader replicas (KIP-966).
_WITH_ELIGIBLE_REPLICAS: Final = frozenset({"4.3"})


class Broker:
    """A Kafka cluster in this event loop, that any Kafka client can talk to.

    For development and tests only: replicas of a partition share one log, so nothing
    can be lost or lag behind as it could in production; there are no transactions.

    ::

        async with Broker(nodes=3, topics={"orders": 6}) as broker:
            async with kafkaio.Producer(broker.bootstrap_servers) as producer:
                await producer.send("orders", b"one")

    Args:
        nodes: how many.
        topics: topics that are there from the start, with their partitions.
        data_dir: where logs are kept; None keeps them in memory.
        as_version: the release of Kafka whose API versions are told; the oldest
            is "2.1".
        host: the address to listen at, and to tell clients.
        port: of the first node, the others follow; 0 takes ports that are free.
        auto_create_topics: whether asking for an unknown topic creates it.
        default_partitions: partitions of a topic whose number is not told.
        replication_factor: of topics whose number is not told; at most 3 without it.
        first_node_id: their ids count from it.
        racks: the racks of the nodes, in their order (KIP-392).
        config: configs of the brokers by Kafka's names, as a ``server.properties`` has
            them; they precede the arguments here that say the same. Those that the
            embedded broker has no use for are kept, and told by DescribeConfigs.
        metadata_delay: seconds until nodes know of a new leader, or of a topic that a
            request for its metadata created; until then, nobody acts as the leader, and
            clients are told of the old one. A real cluster needs them, too; 0 for none.
            Topics of CreateTopics are known when it is answered: the fault
            `metadata_lag` delays them.
        memory_transport: no ports, only ``dial``, for
            ``Client.from_config(config, dial=broker.dial)``; or a network to use.
        clock: what time it is, in place of the loop's and the wall's.
        groups: settings of the group coordinators.

    Attributes:
        control: stops nodes, moves leaders and coordinators, drives groups.
        faults: lets requests fail.
        nodes: the nodes by id.
        requests: the last 10,000 requests, oldest first.
    """

    def __init__(  # noqa: PLR0913  (settings by name, as a fixture writes them)
        self,
        *,
        nodes: int = 1,
        topics: Mapping[str, int] | None = None,
        data_dir: str | Path | None = None,
        as_version: str = "4.3",
        host: str = "127.0.0.1",
        port: int = 0,
        auto_create_topics: bool = True,
        default_partitions: int = 1,
        replication_factor: int | None = None,
        first_node_id: int = 0,
        racks: Sequence[str] = (),
        config: Mapping[str, str | float] | None = None,
        metadata_delay: float = 0.01,
        memory_transport: bool | MemoryNetwork = False,
        clock: Clock | None = None,
        groups: GroupConfig | None = None,
    ) -> None:
        if nodes < 1:
            raise ValueError(f"nodes={nodes}: there has to be one")
        self.release = as_version
        given = checked_config(config or {})
        groups = (groups or GroupConfig()).with_configs(given)
        static = groups.as_configs() | {
            "auto.create.topics.enable": str(auto_create_topics).lower(),
            "num.partitions": str(default_partitions),
            "default.replication.factor": str(replication_factor or min(nodes, 3)),
        }
        configs = Configs(changed_config(static) | given)
        if as_version in _WITH_ELIGIBLE_REPLICAS:
            # As Kafka does where a cluster is made: it has to be the same for all.
            isr = {_MIN_ISR: configs.in_force(_MIN_ISR) or "1"}
            configs.set(BROKER, "", isr)
        self._take_over(configs)
        self.requests: deque[LoggedRequest] = deque(maxlen=_LOGGED)
        self._topics = dict(topics or {})
        self._network = MemoryNetwork() if memory_transport is True else None
        if isinstance(memory_transport, MemoryNetwork):
            self._network = memory_transport
        store = MemoryStore() if data_dir is None else DiskStore(Path(data_dir))
        first_node_id = int(given.get("node.id", given.get("broker.id", first_node_id)))
        self._cluster = Cluster(
            [first_node_id + index for index in range(nodes)],
            clock or Clock(),
            metadata_delay,
            store,
            configs,
        )
        self._cluster.has_eligible_replicas = as_version in _WITH_ELIGIBLE_REPLICAS
        self._supervisor = Supervisor("embedded broker", self._tidying_failed)
        self._cluster.group_config = groups
        self.nodes: dict[int, Node] = {}
        self.control = Control(
            self._cluster, self.nodes, lambda: self._coordinator().levers
        )
        handlers = handlers_of(as_version)
        self.faults = Faults(
            lambda api: api in handlers and handlers[api].can_refuse, self.nodes.keys()
        )
        if "broker.rack" in given:
            racks = [*racks, *[given["broker.rack"]] * nodes]
        for index, node in enumerate(self._new_nodes(given, Address(host, port))):
            node.faults = self.faults
            node.handlers = handlers
            node.rack = racks[index] if index < len(racks) else None
            self.nodes[node.node_id] = node

    def _take_over(self, configs: Configs) -> None:
        """Do as configs say that nothing changes while the brokers run."""
        self.auto_create_topics = (
            configs.in_force("auto.create.topics.enable") == "true"
        )
        self.default_partitions = int(configs.in_force("num.partitions") or 1)
        factor = configs.in_force("default.replication.factor")
        self.default_replication_factor = int(factor or 1)

    def _new_nodes(self, config: Mapping[str, str], address: Address) -> Iterator[Node]:
        """Make the nodes: the ports of all but the first follow that of the first."""
        bound = listener(config, "listeners") or address
        told = listener(config, "advertised.listeners")
        # Told nothing else, clients of a broker on all interfaces are on this machine.
        host = told.host if told else bound.host or "localhost"
        for index, node_id in enumerate(self._cluster.node_ids):
            at = self._listener(bound.host or "0.0.0.0", bound.port, index)  # noqa: S104  (listeners=PLAINTEXT://:9092 says so)
            node = Node(node_id, host, at, self._cluster, self)
            if told is not None and told.port:
                node.advertised_port = told.port + index
            yield node

    def _coordinator(self) -> GroupCoordinator:
        # Loaded when first needed, as handlers are: a broker has to start fast.
        from kafkaio.testing.groups.coordinator import coordinator_of

        return coordinator_of(self._cluster)

    def _listener(self, host: str, port: int, index: int) -> Listener:
        if self._network is not None:
            port = (port or _FIRST_MEMORY_PORT) + index
            return MemoryListener(self._network, host, port)
        return TcpListener(host, port + index if port else 0)

    def __repr__(self) -> str:
        up = sum(node.is_up for node in self.nodes.values())
        return (
            f"<Broker as {self.release}, for tests only | {up} of {len(self.nodes)}"
            f" nodes up, {len(self._cluster.topics)} topics>"
        )

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all nodes, for a client's configuration."""
        return ",".join(f"{node.host}:{node.port}" for node in self.nodes.values())

    @property
    def topics(self) -> Mapping[str, Topic]:
        """The topics there are, whether the nodes have heard of them or not."""
        return self._cluster.topics

    async def __aenter__(self) -> Broker:
        """Start; return when clients can connect and know the topics.

        Raises:
            OSError: an address or the directory cannot be used.
            ValueError: the directory holds something else.
        """
        try:
            self._cluster.load()
            for node in self.nodes.values():
                await node.start()
            self._supervisor.start(self._tidy)
            for name, partitions in self._topics.items():
                if name not in self._cluster.topics:
                    self.create_topic(name, partitions)
        except BaseException:
            await self._stop()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Break all connections off, end all tasks and close the logs."""
        await self._stop()

    async def _tidy(self) -> None:
        while True:
            for _ in range(_FLUSHES):
                await asyncio.sleep(_FLUSH_SECONDS)
                self._cluster.flush()
            self._cluster.tidy()

    def _tidying_failed(self, cause: BaseException) -> None:
        asyncio.get_running_loop().call_exception_handler(
            {"message": "embedded broker: a log cannot be tidied", "exception": cause}
        )

    async def _stop(self) -> None:
        await self._supervisor.aclose()
        for node in self.nodes.values():
            await node.stop()
        # Nobody follows the leaders where no request was ever about a group.
        if self._cluster.leader_changed:
            self._coordinator().close()
        self._cluster.close()

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int | None = None,
        configs: Mapping[str, str] | None = None,
        *,
        topic_id: UUID | None = None,
    ) -> None:
        """Create a topic that all nodes know of at once; needs no running loop.

        Its id is drawn unless one is given.

        Raises:
            Refusal: with the error code that a client would have got.
        """
        factor = replication_factor or self.default_replication_factor
        self._cluster.create_topic(name, partitions, factor, configs, AT_ONCE, topic_id)

    async def dial(
        self, host: str, port: int, sink: FrameSink, options: DialOptions
    ) -> Transport:
        """Connect in memory: a Dial, for ``Client.from_config(config, dial=...)``.

        Raises:
            BrokerNotAvailable: nobody listens there, as on a node that is down.
            RuntimeError: the broker listens on ports.
        """
        if self._network is None:
            raise RuntimeError("dial is for a Broker(memory_transport=True)")
        return await self._network.dial(host, port, sink, options)

    def record(self, request: LoggedRequest) -> None:
        """Add to the request log."""
        self.requests.append(request)
