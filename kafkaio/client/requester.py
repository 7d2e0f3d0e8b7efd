"""Sends a request to where it belongs, and again for as long as that helps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar, assert_never

import anyio

from kafkaio._dataclass import dataclass
from kafkaio._machines.backoff import Backoff
from kafkaio._machines.coordinators import CoordinatorKind
from kafkaio._machines.reactions import reaction
from kafkaio._machines.routing import misrouted
from kafkaio._net.connection import Connection
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._net.pool import Pool
from kafkaio._runtime.clock import roll
from kafkaio._runtime.observer import Observer
from kafkaio.client.broadcast import Broadcast
from kafkaio.client.destinations import (
    AnyBroker,
    Broker,
    ControllerType,
    Destination,
    GroupCoordinator,
    Leader,
    TransactionCoordinator,
)
from kafkaio.client.finder import CoordinatorFinder
from kafkaio.client.metadata import MetadataKeeper
from kafkaio.client.nodes import Nodes
from kafkaio.config import ClientConfig
from kafkaio.errors import BrokerNotAvailable, KafkaError, NetworkError, RequestTimeout
from kafkaio.protocol.api_keys import ApiKey
from kafkaio.protocol.broker_errors import broker_error
from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.protocol.message import Request, ResponseT

__all__ = ["Errand", "Requester"]

T = TypeVar("T")

_LANES = {
    ApiKey.FETCH: ConnectionClass.FETCH,
    ApiKey.SHARE_FETCH: ConnectionClass.FETCH,
    ApiKey.PRODUCE: ConnectionClass.PRODUCE,
    ApiKey.JOIN_GROUP: ConnectionClass.COORDINATOR,
    ApiKey.SYNC_GROUP: ConnectionClass.COORDINATOR,
}

#: Seconds that a coordinator may take beyond the group's rebalance timeout.
JOIN_MARGIN = 5.0


class _Unknown(Exception):
    """The metadata does not tell where a request belongs; ``reason`` says more."""

    def __init__(self, reason: KafkaError) -> None:
        super().__init__(str(reason))
        self.reason = reason


@dataclass(frozen=True, slots=True)
class _Target:
    """The broker chosen, and the coordinator's key if that was why."""

    connection: Connection
    coordinator: tuple[CoordinatorKind, str] | None = None


@dataclass(slots=True)
class Errand:
    """What is tried, for messages to name it.

    Attributes:
        what: names it.
        topic: the topic that has to be described first, if there is one.
        stage: how far the present attempt has come.
    """

    what: str
    topic: str | None = None
    stage: str = "it waits for its turn"


class Requester:
    """Routes, sends, reads what came back as far as routing goes, and tries again.

    Args:
        config: the client's options.
        pool: the connections.
        nodes: brokers to choose from.
        metadata: the view of the cluster.
        finder: the coordinators.
        observer: hears of retries.
    """

    def __init__(
        self,
        config: ClientConfig,
        pool: Pool,
        nodes: Nodes,
        metadata: MetadataKeeper,
        finder: CoordinatorFinder,
        observer: Observer,
    ) -> None:
        self._timeout = config.request_timeout_ms / 1000
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms)
        self._pool = pool
        self._nodes = nodes
        self._metadata = metadata
        self._finder = finder
        self._observer = observer
        #: Fails once the client is closed or has crashed; nothing else happens to it.
        self.ended = Broadcast()

    async def request(
        self, request: Request[ResponseT], to: Destination, deadline: float
    ) -> ResponseT:
        """Send ``request`` until it has an answer that is not about routing.

        Raises:
            RequestTimeout: the deadline has passed; names the last failure.
            KafkaError: what asking again cannot change.
        """
        what = f"{request.NAME.removesuffix('Request')} to {_named(to)}"
        errand = Errand(what, to.partition.topic if isinstance(to, Leader) else None)

        async def attempt() -> ResponseT:
            return await self._attempt(request, to, errand)

        return await self.persist(attempt, errand, deadline)

    async def persist(
        self, attempt: Callable[[], Awaitable[T]], errand: Errand, deadline: float
    ) -> T:
        """Repeat ``attempt`` with a back-off while its failures may pass.

        Raises:
            RequestTimeout: the deadline has passed; names and has as its cause the
                last failure.
            KafkaError: a failure that is not retriable.
        """
        last: KafkaError | None = None
        attempts = 0
        with anyio.CancelScope(deadline=deadline):
            while True:
                try:
                    return await attempt()
                except _Unknown as unknown:
                    last = unknown.reason
                    attempts += 1
                    self._observer.retrying(errand.what, attempts, 0.0, last)
                    await self._learn_more()
                except KafkaError as error:
                    if not error.retriable:
                        raise
                    last = error
                    delay = self._backoff.delay(attempts, roll())
                    attempts += 1
                    self._observer.retrying(errand.what, attempts, delay, error)
                    await self._pause(delay)
        raise self._too_late(errand, last)

    def _too_late(self, errand: Errand, last: KafkaError | None) -> RequestTimeout:
        topic = errand.topic
        if topic is not None and self._metadata.view.partition_count(topic) is None:
            last = self._metadata.why_missing([topic])
        last = last or self._metadata.failure
        told = errand.stage if last is None else str(last)
        error = RequestTimeout(f"{errand.what} has no answer in time: {told}")
        error.__cause__ = last
        return error

    async def _pause(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            await self.ended.wait()

    async def _learn_more(self) -> None:
        """Wait until metadata was asked for once more; that has its own back-off."""
        self._metadata.request()
        await self._metadata.attempted.wait()

    async def _attempt(
        self, request: Request[ResponseT], to: Destination, errand: Errand
    ) -> ResponseT:
        errand.stage = "it waits for a connection"
        target = await self._route(
            to, _LANES.get(ApiKey(request.API_KEY), ConnectionClass.SHARED)
        )
        connection = target.connection
        broker = connection.broker
        errand.stage = f"it waits for the answer of {broker.host}:{broker.port}"
        if _is_oneway(request):
            connection.submit_oneway(request)
            # No broker answers this, so there is nothing to say but that it left.
            return request.response_type()()
        try:
            response = await connection.call(request, timeout=self._patience(request))
        except NetworkError:
            self._blame(connection.node_id)
            raise
        code = misrouted(response)
        if code is None:
            return response
        error = broker_error(code, f"{errand.what} ({broker.host}:{broker.port})")
        if self._react(request.API_KEY, code, target):
            raise _Unknown(error)
        raise error

    def _patience(self, request: Request[ResponseT]) -> float:
        if request.API_KEY == ApiKey.JOIN_GROUP:
            # Whoever has such a request has loaded it.
            from kafkaio.protocol.messages.join_group import JoinGroupRequest

            assert isinstance(request, JoinGroupRequest)
            # The coordinator answers when all members are there.
            rebalance = max(request.rebalance_timeout_ms, request.session_timeout_ms)
            return max(self._timeout, rebalance / 1000 + JOIN_MARGIN)
        return self._timeout

    def _blame(self, node_id: int) -> None:
        """A broker could not be reached: what we know of it may be out of date."""
        self._finder.cache.forget_node(node_id)
        self._metadata.request()

    def _react(self, api_key: int, code: ErrorCode, target: _Target) -> bool:
        """Act on a misrouted request; whether metadata has to tell where it belongs."""
        wanted = reaction(api_key, code)
        if wanted.refind_coordinator and target.coordinator is not None:
            self._finder.cache.forget(*target.coordinator, target.connection.node_id)
        return wanted.refresh_metadata

    # ---- routing -------------------------------------------------------------------

    async def _route(self, to: Destination, lane: ConnectionClass) -> _Target:
        match to:
            case AnyBroker.ANY:
                return _Target(await self._any(lane))
            case Broker(node_id=node_id):
                return _Target(await self._connect(self._listed(node_id), lane))
            case ControllerType.CONTROLLER:
                return _Target(await self._connect(self._controller(), lane))
            case Leader():
                return _Target(await self._connect(await self._leader(to), lane))
            case GroupCoordinator(group_id=key):
                return await self._coordinator(CoordinatorKind.GROUP, key, lane)
            case TransactionCoordinator(transactional_id=key):
                return await self._coordinator(CoordinatorKind.TRANSACTION, key, lane)
            case never:
                assert_never(never)

    async def _any(self, lane: ConnectionClass) -> Connection:
        shared = await self._nodes.any_connection()
        if lane == ConnectionClass.SHARED:
            return shared
        return await self._connect(shared.node_id, lane)

    async def _connect(self, node_id: int, lane: ConnectionClass) -> Connection:
        try:
            return await self._pool.connection(node_id, lane)
        except NetworkError:
            self._blame(node_id)
            raise

    def _listed(self, node_id: int) -> int:
        brokers = self._nodes.known
        if node_id not in brokers:
            listed = ", ".join(map(str, sorted(brokers))) or "none yet"
            raise _Unknown(
                BrokerNotAvailable(
                    f"broker {node_id} is not in the cluster; its brokers are {listed}"
                )
            )
        return node_id

    def _controller(self) -> int:
        node_id = self._metadata.view.controller_id
        if node_id < 0:
            raise _Unknown(BrokerNotAvailable("the cluster has no controller now"))
        return self._listed(node_id)

    async def _leader(self, to: Leader) -> int:
        tp = to.partition
        self._metadata.use([tp.topic])
        view = self._metadata.view
        leader = view.leader(tp)
        if leader is not None:
            return self._listed(leader)
        if view.partition_count(tp.topic) is None:
            view = await self._metadata.wait_for_topics([tp.topic])
        if view.partition(tp) is None:
            count = view.partition_count(tp.topic)
            raise _Unknown(
                broker_error(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    f"topic {tp.topic!r} has {count} partitions, no {tp.partition}",
                )
            )
        leader = view.leader(tp)
        if leader is None:
            what = f"{tp.topic}-{tp.partition} has no leader now"
            raise _Unknown(broker_error(ErrorCode.LEADER_NOT_AVAILABLE, what))
        return self._listed(leader)

    async def _coordinator(
        self, kind: CoordinatorKind, key: str, lane: ConnectionClass
    ) -> _Target:
        node_id = await self._finder.find(kind, key)
        return _Target(await self._connect(node_id, lane), (kind, key))


def _is_oneway(request: Request[ResponseT]) -> bool:
    # ProduceRequest is for producers to load.
    return request.API_KEY == ApiKey.PRODUCE and getattr(request, "acks", -1) == 0


def _named(to: Destination) -> str:
    match to:
        case AnyBroker.ANY:
            return "any broker"
        case Broker(node_id=node_id):
            return f"broker {node_id}"
        case ControllerType.CONTROLLER:
            return "the controller"
        case Leader(partition=tp):
            return f"the leader of {tp.topic}-{tp.partition}"
        case GroupCoordinator(group_id=key):
            return f"the coordinator of group {key!r}"
        case TransactionCoordinator(transactional_id=key):
            return f"the coordinator of transactional id {key!r}"
        case never:
            assert_never(never)
