"""Scripted brokers on an in-memory network: the other end for unit tests.

They speak the protocol's bytes, but hold no logs and no groups. A test scripts what it
needs, per API, and everything else is refused by closing the connection:

    async with FakeCluster(nodes=3, topics={"orders": 6}) as cluster:
        cluster.on(ApiKey.PRODUCE, lambda node, header, request: ProduceResponse(...))
        async with Client.from_config(config, dial=cluster.dial) as client:
            ...
            await cluster.received(ApiKey.PRODUCE)          # until one has come
            assert cluster.requests(ProduceRequest)[0].acks == -1

ApiVersions, Metadata and FindCoordinator are answered from the state of the cluster,
which a test may change at any time (``move_leader``, ``stop``, ``topics``, ...).
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

from kafkaio._net.memory import MemoryNetwork, MemoryTransport
from kafkaio._net.transport import DialOptions, FrameSinkPort, TransportPort
from kafkaio.errors import ProtocolError
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._headers import (
    decode_request,
    decode_request_header,
    encode_response_parts,
)
from kafkaio.protocol._message import Buffer, Request, Response
from kafkaio.protocol._requests import request_type
from kafkaio.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
)
from kafkaio.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kafkaio.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

__all__ = [
    "DEFAULT",
    "DISCONNECT",
    "HANG",
    "NO_REPLY",
    "FakeCluster",
    "FakeNode",
    "FakePartition",
    "FakeTopic",
    "Gate",
    "Logged",
    "Raw",
]

RequestT = TypeVar("RequestT", bound=Request[Any])


class _Word:
    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


#: Handlers return: close the connection, without an answer.
DISCONNECT = _Word("DISCONNECT")
#: Answer nothing, and go on with the next request (as a broker does with acks=0).
NO_REPLY = _Word("NO_REPLY")
#: Answer nothing any more on this connection.
HANG = _Word("HANG")
#: Let the handler before this one, or the cluster itself, answer.
DEFAULT = _Word("DEFAULT")


@dataclass(frozen=True)
class Raw:
    """Bytes to write instead of an answer, the length of the frame included."""

    data: bytes


Outcome: TypeAlias = Response | _Word | Raw
#: (node, header, request) -> what to do; may be awaited.
Handler: TypeAlias = Callable[["FakeNode", Any, Any], Outcome | Awaitable[Outcome]]


@dataclass
class FakePartition:
    """One partition as the metadata shows it."""

    leader: int
    epoch: int = 0
    replicas: list[int] = field(default_factory=list)
    isr: list[int] = field(default_factory=list)
    offline: list[int] = field(default_factory=list)
    error: int = 0


@dataclass
class FakeTopic:
    """One topic as the metadata shows it."""

    topic_id: uuid.UUID
    partitions: list[FakePartition]
    is_internal: bool = False
    error: int = 0


@dataclass
class FakeNode:
    """One broker."""

    node_id: int
    host: str
    port: int
    rack: str | None = None
    is_up: bool = True
    #: Lowest and highest version by API key; change them before a client connects.
    versions: dict[int, tuple[int, int]] = field(default_factory=dict)
    #: Brokers before 2.4 tell nothing with error 35.
    is_old: bool = False


@dataclass(frozen=True)
class Logged:
    """A request that came in."""

    node_id: int
    header: Any
    request: Any
    connection: int

    @property
    def api(self) -> ApiKey:
        return ApiKey(self.header.request_api_key)

    @property
    def version(self) -> int:
        return int(self.header.request_api_version)


class Gate:
    """Holds requests of one API back until they are let through."""

    def __init__(self) -> None:
        self._parked: deque[asyncio.Future[Outcome]] = deque()

    @property
    def waiting(self) -> int:
        """How many requests are held back now."""
        return sum(not future.done() for future in self._parked)

    def hold(self, node: FakeNode, header: Any, request: Any) -> Awaitable[Outcome]:
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._parked.append(future)
        return future

    def release(self, count: int | None = None, outcome: Outcome = DEFAULT) -> None:
        """Let the oldest ones (all) go on, to the handler before the gate."""
        for _ in range(len(self._parked) if count is None else count):
            future = self._parked.popleft()
            if not future.done():
                future.set_result(outcome)


@dataclass
class _Rule:
    handler: Handler
    node_id: int | None
    times: int | None

    def applies(self, node: FakeNode) -> bool:
        return self.times != 0 and self.node_id in (None, node.node_id)


#: What a broker offers only with a plug-in for clients' metrics.
_TELEMETRY: Final = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}


def _all_versions() -> dict[int, tuple[int, int]]:
    found = {}
    for key in ApiKey:
        if key in _TELEMETRY:
            continue
        try:
            kind = request_type(key)
        except ProtocolError:  # Kafka has removed it
            continue
        found[int(key)] = (kind.MIN_VERSION, kind.MAX_VERSION)
    return found


class FakeCluster:
    """Some scripted brokers; node ids are 0, 1, ... and ports 9092, 9093, ..."""

    def __init__(
        self,
        nodes: int = 1,
        *,
        topics: Mapping[str, int] | None = None,
        features: Mapping[str, int] | None = None,
        host: str = "broker",
    ) -> None:
        self.network = MemoryNetwork()
        known = _all_versions()
        self.nodes = {
            n: FakeNode(n, f"{host}{n}", 9092 + n, versions=dict(known))
            for n in range(nodes)
        }
        self.topics: dict[str, FakeTopic] = {}
        for name, count in (topics or {}).items():
            self.add_topic(name, count)
        #: Finalized features and their epoch.
        self.features = dict(features or {})
        self.features_epoch = 0 if features else -1
        self.cluster_id = "fake-cluster"
        self.controller_id = 0
        #: Coordinators that were set; others follow from the key.
        self.coordinators: dict[tuple[int, str], int] = {}
        #: Every request that could be read, in the order of arrival.
        self.log: list[Logged] = []
        #: What went wrong inside the fake; checked when it closes.
        self.failures: list[BaseException] = []
        self.connections_accepted = 0
        self._rules: dict[int, list[_Rule]] = {}
        self._conversations: list[_Conversation] = []
        self._arrivals: list[asyncio.Future[None]] = []
        self._default: dict[int, Handler] = {
            ApiKey.API_VERSIONS: self._api_versions,
            ApiKey.METADATA: self._metadata,
            ApiKey.FIND_COORDINATOR: self._find_coordinator,
        }
        for node in self.nodes.values():
            self._listen(node)

    async def __aenter__(self) -> FakeCluster:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()
        if exc[0] is None and self.failures:
            raise self.failures[0]

    async def aclose(self) -> None:
        """Close all connections and end what handlers still do."""
        tasks = [c.task for c in self._conversations if c.task is not None]
        self.drop_connections()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)

    # ---- for clients ---------------------------------------------------------------

    @property
    def bootstrap_servers(self) -> tuple[tuple[str, int], ...]:
        """What ``ClientConfig.bootstrap_servers`` wants."""
        return tuple((node.host, node.port) for node in self.nodes.values())

    @property
    def bootstrap(self) -> str:
        """The same as one string."""
        return ",".join(f"{host}:{port}" for host, port in self.bootstrap_servers)

    async def dial(
        self, host: str, port: int, sink: FrameSinkPort, options: DialOptions
    ) -> TransportPort:
        """The cluster's Dial."""
        return await self.network.dial(host, port, sink, options)

    # ---- the script ------------------------------------------------------------------

    def on(
        self,
        api: ApiKey,
        handler: Handler | Outcome,
        *,
        node: int | None = None,
        times: int | None = None,
    ) -> None:
        """Answer an API by a handler, or always with the same outcome.

        The handler set last goes first. With ``times`` it serves so many requests, and
        then those before it do; so does each request that it returns DEFAULT for.
        """
        if not callable(handler):
            outcome = handler
            handler = lambda *_: outcome  # noqa: E731
        self._rules.setdefault(api, []).insert(0, _Rule(handler, node, times))

    def reset(self, api: ApiKey) -> None:
        """Forget the handlers of an API."""
        self._rules.pop(api, None)

    def hold(self, api: ApiKey, *, node: int | None = None) -> Gate:
        """Hold back requests of an API, until the gate lets them through."""
        gate = Gate()
        self.on(api, gate.hold, node=node)
        return gate

    def delay(self, api: ApiKey, seconds: float, *, node: int | None = None) -> None:
        """Answer an API later; best under a virtual clock."""

        async def wait(*_: object) -> Outcome:
            await asyncio.sleep(seconds)
            return DEFAULT

        self.on(api, wait, node=node)

    # ---- faults ----------------------------------------------------------------------

    def drop_connections(self, node: int | None = None) -> int:
        """Close the connections to one node, or to all; how many there were."""
        chosen = [c for c in self._conversations if node in (None, c.node.node_id)]
        for conversation in chosen:
            conversation.close()
        return len(chosen)

    def stop(self, node: int) -> None:
        """Take a node down: connections break, new ones are refused."""
        self.nodes[node].is_up = False
        self.network.unlisten(self.nodes[node].host, self.nodes[node].port)
        self.drop_connections(node)

    def start(self, node: int) -> None:
        """Bring a node up again, at the address it has now."""
        self.nodes[node].is_up = True
        self._listen(self.nodes[node])

    def stall(self, node: int) -> None:
        """Let nothing arrive from a node on its present connections: it hangs."""
        for conversation in self._conversations:
            if conversation.node.node_id == node:
                conversation.transport.stall()

    def deafen(self, node: int) -> None:
        """Let a node read nothing more from its present connections."""
        for conversation in self._conversations:
            if conversation.node.node_id == node:
                conversation.client.stall()

    def flow(self, node: int) -> None:
        """End a stall, and deafness; what was held up arrives."""
        for conversation in self._conversations:
            if conversation.node.node_id == node:
                conversation.transport.flow()
                conversation.client.flow()

    # ---- state -----------------------------------------------------------------------

    def add_topic(self, name: str, partitions: int = 1, **attributes: Any) -> FakeTopic:
        """Create a topic; the leaders go round."""
        ids = list(self.nodes)
        topic = FakeTopic(
            # Stable from run to run, and different from topic to topic.
            uuid.UUID(bytes=hashlib.md5(name.encode()).digest()),
            [
                FakePartition(ids[index % len(ids)], replicas=list(ids), isr=list(ids))
                for index in range(partitions)
            ],
            **attributes,
        )
        self.topics[name] = topic
        return topic

    def partition(self, topic: str, partition: int) -> FakePartition:
        """The state of a partition, to look at or to change."""
        return self.topics[topic].partitions[partition]

    def leader(self, topic: str, partition: int) -> int:
        """The node that leads a partition."""
        return self.partition(topic, partition).leader

    def move_leader(self, topic: str, partition: int, node: int) -> None:
        """Elect another leader, in a new epoch; -1 for none."""
        state = self.partition(topic, partition)
        state.leader = node
        state.epoch += 1
        state.error = ErrorCode.LEADER_NOT_AVAILABLE if node < 0 else 0

    def coordinator(self, key: str, kind: int = 0) -> int:
        """The coordinator of a group (kind 0) or transactional id (kind 1)."""
        ids = list(self.nodes)
        return self.coordinators.get((kind, key), ids[sum(key.encode()) % len(ids)])

    def move_coordinator(self, key: str, node: int, kind: int = 0) -> None:
        """Make a node the coordinator; -1: the coordinator is not available."""
        self.coordinators[kind, key] = node

    def limit_version(self, api: ApiKey, highest: int, node: int | None = None) -> None:
        """Make brokers older: they know an API up to this version (-1: not at all)."""
        for each in self.nodes.values():
            if node in (None, each.node_id):
                low, _ = each.versions.pop(api)
                if highest >= 0:
                    each.versions[api] = (min(low, highest), highest)

    # ---- looking back ----------------------------------------------------------------

    def logged(self, api: ApiKey, node: int | None = None) -> list[Logged]:
        """Requests of an API, with header, version and node."""
        return [
            entry
            for entry in self.log
            if entry.api == api and node in (None, entry.node_id)
        ]

    def requests(self, kind: type[RequestT], node: int | None = None) -> list[RequestT]:
        """Requests of a class, in the order of arrival."""
        return [entry.request for entry in self.logged(ApiKey(kind.API_KEY), node)]

    async def received(
        self, api: ApiKey, count: int = 1, *, node: int | None = None
    ) -> list[Logged]:
        """Wait until that many requests of an API have come."""
        while len(found := self.logged(api, node)) < count:
            arrival: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._arrivals.append(arrival)
            await arrival
        return found

    def connections(self, node: int | None = None) -> int:
        """How many connections are open."""
        return sum(node in (None, c.node.node_id) for c in self._conversations)

    # ---- inside ----------------------------------------------------------------------

    def _listen(self, node: FakeNode) -> None:
        def accept(transport: MemoryTransport) -> FrameSinkPort:
            self.connections_accepted += 1
            conversation = _Conversation(
                self, node, transport, self.connections_accepted
            )
            self._conversations.append(conversation)
            return conversation

        self.network.listen(node.host, node.port, accept)

    def forget(self, conversation: _Conversation) -> None:
        if conversation in self._conversations:
            self._conversations.remove(conversation)

    def note(self, entry: Logged) -> None:
        self.log.append(entry)
        arrivals, self._arrivals = self._arrivals, []
        for arrival in arrivals:
            if not arrival.done():
                arrival.set_result(None)

    def handlers(self, api: int, node: FakeNode) -> list[Handler]:
        """Who may answer, first one first; uses up ``times`` as it is consumed."""
        rules = [rule for rule in self._rules.get(api, ()) if rule.applies(node)]
        found = [self._counted(rule) for rule in rules]
        if api in self._default:
            found.append(self._default[api])
        return found

    def _counted(self, rule: _Rule) -> Handler:
        def handle(node: FakeNode, header: Any, request: Any) -> Any:
            if rule.times is not None:
                rule.times -= 1
            return rule.handler(node, header, request)

        return handle

    # ---- what the cluster answers by itself ------------------------------------------

    def _api_versions(
        self, node: FakeNode, header: Any, request: ApiVersionsRequest
    ) -> ApiVersionsResponse:
        named = request.cluster_id, request.node_id
        if (request.cluster_id is None) != (request.node_id == -1):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        if named not in {(None, -1), (self.cluster_id, node.node_id)}:
            return ApiVersionsResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
        return ApiVersionsResponse(
            api_keys=[
                ApiVersion(api_key=key, min_version=low, max_version=high)
                for key, (low, high) in node.versions.items()
            ],
            finalized_features_epoch=self.features_epoch,
            finalized_features=[
                FinalizedFeatureKey(name=name, max_version_level=level)
                for name, level in self.features.items()
            ],
        )

    def _metadata(
        self, node: FakeNode, header: Any, request: MetadataRequest
    ) -> MetadataResponse:
        version = header.request_api_version
        everything = request.topics is None or (version == 0 and not request.topics)
        wanted = (
            [(name, topic.topic_id) for name, topic in self.topics.items()]
            if everything
            else [(t.name, t.topic_id) for t in request.topics or ()]
        )
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(
                    node_id=each.node_id, host=each.host, port=each.port, rack=each.rack
                )
                for each in self.nodes.values()
                if each.is_up
            ],
            cluster_id=self.cluster_id,
            controller_id=self.controller_id,
            topics=[self._topic(name, topic_id) for name, topic_id in wanted],
        )

    def _topic(self, name: str | None, topic_id: uuid.UUID) -> MetadataResponseTopic:
        if not name:
            by_id = {topic.topic_id: name for name, topic in self.topics.items()}
            if topic_id not in by_id:
                return MetadataResponseTopic(
                    error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id
                )
            name = by_id[topic_id]
        topic = self.topics.get(name)
        if topic is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return MetadataResponseTopic(error_code=code, name=name)
        return MetadataResponseTopic(
            error_code=topic.error,
            name=name,
            topic_id=topic.topic_id,
            is_internal=topic.is_internal,
            partitions=[
                MetadataResponsePartition(
                    error_code=state.error,
                    partition_index=index,
                    leader_id=state.leader,
                    leader_epoch=state.epoch,
                    replica_nodes=state.replicas,
                    isr_nodes=state.isr,
                    offline_replicas=state.offline,
                )
                for index, state in enumerate(topic.partitions)
            ],
        )

    def _find_coordinator(
        self, node: FakeNode, header: Any, request: FindCoordinatorRequest
    ) -> FindCoordinatorResponse:
        if header.request_api_version >= 4:
            return FindCoordinatorResponse(
                coordinators=[
                    self._coordinator(key, request.key_type)
                    for key in request.coordinator_keys
                ]
            )
        found = self._coordinator(request.key, request.key_type)
        return FindCoordinatorResponse(
            error_code=found.error_code,
            error_message=found.error_message,
            node_id=found.node_id,
            host=found.host,
            port=found.port,
        )

    def _coordinator(self, key: str, kind: int) -> Coordinator:
        node = self.nodes.get(self.coordinator(key, kind))
        if node is None or not node.is_up:
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE
            return Coordinator(key=key, node_id=-1, port=-1, error_code=code)
        return Coordinator(
            key=key, node_id=node.node_id, host=node.host, port=node.port
        )


def _drop(outcome: Coroutine[Any, Any, Any], _task: asyncio.Task[None]) -> None:
    if inspect.getcoroutinestate(outcome) == inspect.CORO_CREATED:
        outcome.close()


class _Conversation:
    """One connection as the broker sees it: one request at a time, in order."""

    def __init__(
        self,
        cluster: FakeCluster,
        node: FakeNode,
        transport: MemoryTransport,
        number: int,
    ) -> None:
        self.cluster = cluster
        self.node = node
        self.transport = transport
        self.number = number
        self.task: asyncio.Task[None] | None = None
        self._frames: deque[Buffer] = deque()
        self._hangs = False

    @property
    def client(self) -> MemoryTransport:
        """The other end."""
        peer = self.transport._peer
        assert peer is not None
        return peer

    def frame_received(self, frame: Buffer) -> None:
        self._frames.append(frame)
        self._serve_next()

    def connection_lost(self, cause: BaseException | None) -> None:
        self.cluster.forget(self)
        self._frames.clear()
        if self.task is not None:
            self.task.cancel()

    def close(self) -> None:
        self.cluster.forget(self)
        self._frames.clear()
        self.transport.close()

    def _serve_next(self) -> None:
        while self._frames and self.task is None and not self._hangs:
            frame = self._frames.popleft()
            try:
                header, request = self._read(frame)
                if request is None:
                    continue
                handlers = self.cluster.handlers(header.request_api_key, self.node)
                self._try(handlers, header, request)
            except Exception as error:  # noqa: BLE001
                self.cluster.failures.append(error)
                self.close()

    def _read(self, frame: Buffer) -> tuple[Any, Any]:
        header, _ = decode_request_header(frame)
        api, version = header.request_api_key, header.request_api_version
        low, high = self.node.versions.get(api, (0, -1))
        if api == ApiKey.API_VERSIONS and not low <= version <= high:
            self._refuse_version(header, low, high)
            return header, None
        if not low <= version <= high:
            raise AssertionError(
                f"{ApiKey(api).name} v{version} is not in {low}-{high}"
            )
        _, request = decode_request(frame)
        self.cluster.note(Logged(self.node.node_id, header, request, self.number))
        return header, request

    def _refuse_version(self, header: Any, low: int, high: int) -> None:
        response = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
        if not self.node.is_old:
            key = ApiKey.API_VERSIONS
            response.api_keys = [
                ApiVersion(api_key=key, min_version=low, max_version=high)
            ]
        self._write(encode_response_parts(response, 0, header.correlation_id))

    def _try(self, handlers: list[Handler], header: Any, request: Any) -> None:
        """Ask one handler after the other until one has an answer."""
        while handlers:
            outcome = handlers.pop(0)(self.node, header, request)
            if not isinstance(outcome, (Response, _Word, Raw)):
                waiting = self._await(outcome, handlers, header, request)
                self.task = asyncio.get_running_loop().create_task(waiting)
                # A connection that ends before the task begins leaves it unawaited.
                if inspect.iscoroutine(outcome):
                    self.task.add_done_callback(partial(_drop, outcome))
                return
            if outcome is not DEFAULT:
                self._perform(outcome, header, request)
                return
        name = ApiKey(header.request_api_key).name
        raise AssertionError(f"the test has no handler for {name}")

    async def _await(
        self,
        outcome: Awaitable[Outcome],
        handlers: list[Handler],
        header: Any,
        request: Any,
    ) -> None:
        try:
            result = await outcome
            self.task = None
            if result is DEFAULT:
                self._try(handlers, header, request)
            else:
                self._perform(result, header, request)
        except Exception as error:  # noqa: BLE001
            self.cluster.failures.append(error)
            self.close()
        self._serve_next()

    def _perform(self, outcome: Outcome, header: Any, request: Any) -> None:
        if outcome is DISCONNECT:
            self.close()
        elif outcome is HANG:
            self._hangs = True
        elif isinstance(outcome, Raw):
            self._write([outcome.data])
        elif isinstance(outcome, Response) and getattr(request, "acks", -1) != 0:
            version = header.request_api_version
            self._write(encode_response_parts(outcome, version, header.correlation_id))

    def _write(self, parts: list[Buffer]) -> None:
        self.transport.write(parts)
