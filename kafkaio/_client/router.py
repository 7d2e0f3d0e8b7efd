"""Routing: the broker that a destination is now, and what a wrong one puts in doubt."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, assert_never

from kafkaio._client.destinations import (
    ANY,
    AnyBroker,
    Broker,
    Controller,
    ControllerType,
    Destination,
    GroupCoordinator,
    Leader,
    TransactionCoordinator,
)
from kafkaio._client.finder import CoordinatorFinder
from kafkaio._client.metadata import MetadataUpdater
from kafkaio._client.nodes import ASKED, Nodes
from kafkaio._client.retry import RetryLater
from kafkaio._machines.coordinators import CoordinatorKind
from kafkaio._machines.reactions import Reaction
from kafkaio._net.connection import Connection
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._net.pool import Pool
from kafkaio.errors import (
    BrokerNotAvailable,
    KafkaError,
    NetworkError,
    UnsupportedVersion,
)
from kafkaio.protocol._broker_errors import broker_error
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.types import TopicPartition

ItemT = TypeVar("ItemT")


class Router:
    """Resolves destinations to node ids, from what is known or by asking.

    Args:
        pool: the connections.
        nodes: the brokers to choose from.
        metadata: the view of the cluster.
        finder: the coordinators.
        uses_controllers: whether the nodes are controllers (KIP-919). Only the active
            one answers all requests, so that "any broker" is that one. Controllers have
            neither leaders of partitions nor coordinators.
    """

    def __init__(
        self,
        pool: Pool,
        nodes: Nodes,
        metadata: MetadataUpdater,
        finder: CoordinatorFinder,
        *,
        uses_controllers: bool = False,
    ) -> None:
        self._uses_controllers = uses_controllers
        self._pool = pool
        self._nodes = nodes
        self._metadata = metadata
        self._finder = finder

    # ---- where to send to ----------------------------------------------------------

    def known(self, to: Destination) -> int | None:
        """Return the node id of a destination if it is known without a request."""
        if self._uses_controllers:
            to = _at_controllers(to)
        match to:
            case AnyBroker.ANY:
                # Without an open connection, `locate` makes one.
                ready = self._nodes.any_ready()
                return None if ready is None else ready.node_id
            case Broker(node_id=node_id):
                found: int | None = node_id
            case ControllerType.CONTROLLER:
                found = self._metadata.view.controller_id
            case Leader() if self._uses_controllers:
                return None
            case Leader(partition=tp):
                # The metadata describes only topics in use, and forgets them when idle.
                self._metadata.use([tp.topic])
                found = self._metadata.view.leader(tp)
            case GroupCoordinator() | TransactionCoordinator():
                return self._finder.cache.get(*_coordinator(to))
            case never:
                assert_never(never)
        # Metadata and coordinators may name a broker that has left the cluster.
        return found if found in self._nodes.known else None

    def by_broker(
        self, destination: Callable[[ItemT], Destination], items: Sequence[ItemT]
    ) -> tuple[dict[int, list[ItemT]], dict[Destination, list[ItemT]]]:
        """Sort items by broker, as `known` does for each.

        Args:
            destination: returns where an item belongs.
            items: the items.

        Returns:
            The items by the node ids of their brokers, and those whose brokers are not
            known by destination.
        """
        known: dict[int, list[ItemT]] = defaultdict(list)
        others: dict[Destination, list[ItemT]] = defaultdict(list)
        nodes = self._nodes_of(destination, items)
        for item, node_id in zip(items, nodes, strict=True):
            if node_id is None:
                others[destination(item)].append(item)
            else:
                known[node_id].append(item)
        return known, others

    def _nodes_of(
        self, destination: Callable[[ItemT], Destination], items: Sequence[ItemT]
    ) -> list[int | None]:
        """Return the result of `known` for the destination of each item."""
        # Partitions and groups may be thousands: they are looked up at once, without a
        # destination object for each.
        named: Sequence[Any] = items
        if destination is Leader and not self._uses_controllers:
            self._metadata.use({tp.topic for tp in named})
            nodes = self._nodes.known
            leaders = self._metadata.view.leaders(named)
            return [leader if leader in nodes else None for leader in leaders]
        if destination is GroupCoordinator and not self._uses_controllers:
            return self._finder.cache.coordinators(CoordinatorKind.GROUP, named)
        found: dict[Destination, int | None] = {}
        each = [destination(item) for item in items]
        for to in each:
            if to not in found:
                found[to] = self.known(to)
        return [found[to] for to in each]

    async def locate(self, to: Destination) -> int:
        """Return the node id of a destination; look up a coordinator if necessary.

        Raises:
            RetryLater: the metadata does not name it; ``wait`` waits for newer.
            UnsupportedVersion: controllers have neither leaders nor coordinators.
            KafkaError: the lookup of the coordinator failed.
        """
        if self._uses_controllers:
            to = _at_controllers(to)
            if isinstance(to, Leader | GroupCoordinator | TransactionCoordinator):
                raise UnsupportedVersion(
                    "controllers have no records and no groups: a client with "
                    "bootstrap_controllers cannot ask for them"
                )
        node_id = self.known(to)
        if node_id is not None:
            return node_id
        match to:
            case AnyBroker.ANY:
                return (await self._nodes.any_connection()).node_id
            case Broker(node_id=node_id):
                raise self._unlisted(node_id)
            case ControllerType.CONTROLLER:
                raise self._no_controller()
            case Leader(partition=tp):
                raise self._no_leader(tp)
            case GroupCoordinator() | TransactionCoordinator():
                return await self._finder.find(*_coordinator(to))
            case never:
                assert_never(never)

    @property
    def has_choice(self) -> bool:
        """Whether any of several brokers can answer what any broker can."""
        return len(self._nodes.known) >= ASKED

    async def another(self, node_id: int) -> int:
        """Return a broker to ask beside one that is silent."""
        return (await self._nodes.any_connection({node_id})).node_id

    def _unlisted(self, node_id: int) -> RetryLater:
        listed = ", ".join(map(str, sorted(self._nodes.known))) or "none yet"
        return self._later(
            BrokerNotAvailable(
                f"broker {node_id} is not in the cluster; its brokers are {listed}"
            )
        )

    def _no_controller(self) -> RetryLater:
        node_id = self._metadata.view.controller_id
        if node_id >= 0:
            return self._unlisted(node_id)
        return self._later(BrokerNotAvailable("the cluster has no controller now"))

    def _no_leader(self, tp: TopicPartition) -> RetryLater:
        view = self._metadata.view
        leader = view.leader(tp)
        if leader is not None:
            return self._unlisted(leader)
        count = view.partition_count(tp.topic)
        if count is None:
            why = self._metadata.why_missing([tp.topic])
            # Perhaps nobody has asked for the topic before: that is not a failure.
            return RetryLater(
                why,
                lambda: self._metadata.wait_for_topics([tp.topic]),
                is_failure=False,
            )
        if view.partition(tp) is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            what = f"topic {tp.topic!r} has {count} partitions, no {tp.partition}"
        else:
            code = ErrorCode.LEADER_NOT_AVAILABLE
            what = f"{tp.topic}-{tp.partition} has no leader now"
        return self._later(broker_error(code, what))

    def _later(self, reason: KafkaError) -> RetryLater:
        return RetryLater(reason, self.refreshed)

    async def refreshed(self) -> None:
        """Request metadata and wait until the next attempt has ended, well or not.

        The attempts of the metadata have their own back-off.

        Raises:
            AuthenticationError: all brokers refuse the client.
        """
        self._metadata.request()
        await self._metadata.attempt_ended()

    async def connection(
        self, node_id: int, connection_class: ConnectionClass
    ) -> Connection:
        """Return the connection to a broker; open it if necessary.

        Raises:
            NetworkError: it cannot be made; see `unreachable`.
        """
        try:
            return await self._pool.connection(node_id, connection_class)
        except NetworkError:
            self.unreachable(node_id)
            raise

    def why_held(self, node_id: int, connection_class: ConnectionClass) -> str:
        """Return why a broker gets no requests now, for errors; empty if it does."""
        connection = self._pool.ready(node_id, connection_class)
        return "" if connection is None else connection.why_held()

    def why_unlocated(self) -> str:
        """Return what delays finding brokers, for errors; empty for nothing."""
        return self._finder.why_late() or self._metadata.why_late()

    # ---- what to forget ------------------------------------------------------------

    def unreachable(self, node_id: int) -> None:
        """Drop what may be out of date, because a broker could not be reached."""
        # It may have left the cluster, or come back under another address, and its
        # groups may have other coordinators by now.
        self._finder.cache.forget_node(node_id)
        self._metadata.request()

    def react(self, to: Destination, node_id: int, reaction: Reaction) -> None:
        """Perform the reaction to the error code of an answer.

        Args:
            to: the destination of the request.
            node_id: the broker that it was sent to.
            reaction: the reaction to the error code of its answer.
        """
        if reaction.refind_coordinator and isinstance(
            to, GroupCoordinator | TransactionCoordinator
        ):
            # Only if it is still this node: a lookup for another request, answered in
            # between, may have found the right one.
            self._finder.cache.forget(*_coordinator(to), node_id)
        if reaction.refresh_metadata:
            topics = [to.partition.topic] if isinstance(to, Leader) else []
            self._metadata.request(topics)


def _at_controllers(to: Destination) -> Destination:
    return Controller if to is ANY else to


def _coordinator(
    to: GroupCoordinator | TransactionCoordinator,
) -> tuple[CoordinatorKind, str]:
    if isinstance(to, GroupCoordinator):
        return CoordinatorKind.GROUP, to.group_id
    return CoordinatorKind.TRANSACTION, to.transactional_id
