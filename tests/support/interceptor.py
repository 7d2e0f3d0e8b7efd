"""A proxy before one broker that reads requests, and refuses, loses or holds them.

It shows how a client reacts to answers that a broker cannot be made to give. A request
that is refused never reaches the broker: as after a real refusal, nothing has happened
there. A request whose answer is lost has reached it.

The proxy passes answers on in the order of their requests. Answers that name brokers
name the proxy, so a client finds no way around it. There must be one broker only.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Self

from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._framing import FrameBuffer
from kafkaio.protocol._headers import (
    decode_request,
    decode_response,
    encode_response,
)
from kafkaio.protocol._message import Response
from kafkaio.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
from kafkaio.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from kafkaio.protocol.messages.end_txn import EndTxnResponse
from kafkaio.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorResponse,
)
from kafkaio.protocol.messages.init_producer_id import InitProducerIdResponse
from kafkaio.protocol.messages.metadata import MetadataResponse
from kafkaio.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from kafkaio.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

_HOST: Final = "127.0.0.1"
_READ_BYTES: Final = 65_536
_MAX_FRAME: Final = 100_000_000


def refusal(api_key: int, request: Any, code: int) -> Response:
    """The answer that says a code of everything that a request names."""
    match api_key:
        case ApiKey.INIT_PRODUCER_ID:
            return InitProducerIdResponse(error_code=code)
        case ApiKey.END_TXN:
            return EndTxnResponse(error_code=code)
        case ApiKey.ADD_OFFSETS_TO_TXN:
            return AddOffsetsToTxnResponse(error_code=code)
        case ApiKey.FIND_COORDINATOR:
            return FindCoordinatorResponse(
                error_code=0 if request.coordinator_keys else code,
                coordinators=[
                    Coordinator(key=key, node_id=-1, error_code=code)
                    for key in request.coordinator_keys
                ],
            )
        case ApiKey.ADD_PARTITIONS_TO_TXN:
            return AddPartitionsToTxnResponse(
                results_by_topic_v3_and_below=[
                    AddPartitionsToTxnTopicResult(
                        name=topic.name,
                        results_by_partition=[
                            AddPartitionsToTxnPartitionResult(
                                partition_index=index, partition_error_code=code
                            )
                            for index in topic.partitions
                        ],
                    )
                    for topic in request.v3_and_below_topics
                ]
            )
        case ApiKey.TXN_OFFSET_COMMIT:
            return TxnOffsetCommitResponse(
                topics=[
                    TxnOffsetCommitResponseTopic(
                        name=topic.name,
                        partitions=[
                            TxnOffsetCommitResponsePartition(
                                partition_index=each.partition_index, error_code=code
                            )
                            for each in topic.partitions
                        ],
                    )
                    for topic in request.topics
                ]
            )
        case ApiKey.PRODUCE:
            return ProduceResponse(
                responses=[
                    TopicProduceResponse(
                        name=topic.name,
                        topic_id=topic.topic_id,
                        partition_responses=[
                            PartitionProduceResponse(
                                index=each.index, error_code=code, base_offset=-1
                            )
                            for each in topic.partition_data
                        ],
                    )
                    for topic in request.topic_data
                ]
            )
        case _:
            raise AssertionError(f"no refusal of {api_key} is known")


@dataclass
class Seen:
    """A request that a client sent.

    Attributes:
        api_key: which one.
        version: of the request.
        request: the message.
    """

    api_key: int
    version: int
    request: Any


@dataclass(eq=False)
class Rule:
    """What happens to the next requests of an API.

    Attributes:
        api_key: the API.
        what: ``refuse``: answer with `code`. ``lose``: the request is executed, its
            answer is lost with the connection. ``cut``: the request is lost so.
            ``late``: so it is for the client; the broker gets it after `release`, on
            a connection of its own.
            ``hold``: the answer waits for `release`. ``hold-request``: so does the
            request.
        times: how many requests it applies to.
        skip: how many requests come before.
        code: of a refusal.
        accepts: which requests count; None for all.
        then: called when a request meets the rule; for ``hold`` and ``lose``, when
            the broker has answered.
        met: set at the same time.
        release: lets what is held go on.
        late: how many late requests the broker has answered.
    """

    api_key: int
    what: Literal["refuse", "lose", "cut", "late", "hold", "hold-request"]
    times: int = 1
    skip: int = 0
    code: int = 0
    then: Callable[[], object] | None = None
    accepts: Callable[[Any], bool] | None = None
    met: asyncio.Event = field(default_factory=asyncio.Event)
    release: asyncio.Event = field(default_factory=asyncio.Event)
    late: int = 0

    def tell(self) -> None:
        self.met.set()
        if self.then is not None:
            self.then()


@dataclass(eq=False)
class _Awaited:
    """An answer that the client waits for."""

    api_key: int
    version: int
    correlation_id: int
    rule: Rule | None
    own: bytes | None = None


class _Link:
    """One client's connection, and the one to the broker behind it."""

    def __init__(
        self,
        proxy: Interceptor,
        client: asyncio.StreamWriter,
        broker: asyncio.StreamWriter,
    ) -> None:
        self._proxy = proxy
        self._client = client
        self._broker = broker
        self._awaited: deque[_Awaited] = deque()

    def cut(self) -> None:
        self._client.transport.abort()
        self._broker.transport.abort()

    async def requests(self, source: asyncio.StreamReader) -> None:
        frames = FrameBuffer(_MAX_FRAME)
        while data := await source.read(_READ_BYTES):
            for frame in frames.feed(data):
                await self._request(bytes(frame))
        self.cut()

    async def _request(self, frame: bytes) -> None:
        header, request = decode_request(frame)
        api_key, version = header.request_api_key, header.request_api_version
        self._proxy.seen.append(Seen(api_key, version, request))
        rule = self._proxy.rule_for(api_key, request)
        awaited = _Awaited(api_key, version, header.correlation_id, rule)
        if rule is not None and rule.what == "refuse":
            answer = refusal(api_key, request, rule.code)
            awaited.own = encode_response(answer, version, header.correlation_id)
            self._awaited.append(awaited)
            rule.tell()
            self._flush()
            return
        if rule is not None and rule.what in {"cut", "late"}:
            rule.tell()
            self.cut()
            if rule.what == "late":
                self._proxy.deliver_late(rule, frame)
            return
        if rule is not None and rule.what == "hold-request":
            rule.tell()
            await rule.release.wait()
        self._awaited.append(awaited)
        self._broker.write(len(frame).to_bytes(4, "big") + frame)
        await self._broker.drain()

    def _flush(self) -> None:
        while self._awaited and (own := self._awaited[0].own) is not None:
            self._awaited.popleft()
            self._client.write(own)

    async def answers(self, source: asyncio.StreamReader) -> None:
        frames = FrameBuffer(_MAX_FRAME)
        while data := await source.read(_READ_BYTES):
            for frame in frames.feed(data):
                if not await self._answer(bytes(frame)):
                    return
        self.cut()

    async def _answer(self, frame: bytes) -> bool:
        awaited = self._awaited[0]
        rule = awaited.rule
        if rule is not None and rule.what != "hold-request":
            rule.tell()
            if rule.what == "lose":
                self.cut()
                return False
            await rule.release.wait()
        self._awaited.popleft()
        self._client.write(self._rewritten(awaited, frame))
        self._flush()
        await self._client.drain()
        return True

    def _rewritten(self, awaited: _Awaited, frame: bytes) -> bytes:
        kind: type[Response]
        if awaited.api_key == ApiKey.METADATA:
            kind = MetadataResponse
        elif awaited.api_key == ApiKey.FIND_COORDINATOR:
            kind = FindCoordinatorResponse
        else:
            return len(frame).to_bytes(4, "big") + frame
        answer: Any = decode_response(kind, awaited.version, frame)
        named = [answer] if kind is FindCoordinatorResponse else answer.brokers
        for each in (*named, *getattr(answer, "coordinators", ())):
            if each.port > 0:
                each.host, each.port = _HOST, self._proxy.port
        return encode_response(answer, awaited.version, awaited.correlation_id)


class Interceptor:
    """The proxy.

    Args:
        servers: ``host:port`` of the broker.

    Attributes:
        seen: the requests that were sent, in their order.
        rules: what was added, in that order.
        caught: the rule that each request has met, of those that met one.
        port: where the proxy listens.
    """

    def __init__(self, servers: str) -> None:
        host, port = servers.rsplit(":", 1)
        self._broker = (host, int(port))
        self.rules: list[Rule] = []
        self._links: set[_Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.seen: list[Seen] = []
        self.caught: list[Rule] = []
        self.port = 0

    @property
    def servers(self) -> str:
        """Bootstrap servers, by way of the proxy."""
        return f"{_HOST}:{self.port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, _HOST, 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *error: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def add(self, rule: Rule) -> Rule:
        """Apply a rule from now on."""
        self.rules.append(rule)
        return rule

    def refuse(self, api_key: int, code: int, times: int = 1, skip: int = 0) -> Rule:
        """Answer the next requests with a code."""
        return self.add(Rule(api_key, "refuse", times, skip, code))

    def lose(self, api_key: int, times: int = 1, skip: int = 0) -> Rule:
        """Lose the answers to the next requests."""
        return self.add(Rule(api_key, "lose", times, skip))

    def hold(self, api_key: int, skip: int = 0) -> Rule:
        """Hold the answer to the next request."""
        return self.add(Rule(api_key, "hold", skip=skip))

    def cut(self) -> None:
        """Cut all connections."""
        for link in list(self._links):
            link.cut()

    def deliver_late(self, rule: Rule, frame: bytes) -> None:
        """Send a request whose client is gone once the rule lets it go on."""

        async def deliver() -> None:
            await rule.release.wait()
            answers, broker = await asyncio.open_connection(*self._broker)
            try:
                broker.write(len(frame).to_bytes(4, "big") + frame)
                size = int.from_bytes(await answers.readexactly(4), "big")
                await answers.readexactly(size)
            finally:
                broker.close()
            rule.late += 1

        self._tasks.add(asyncio.create_task(deliver()))

    def rule_for(self, api_key: int, request: Any) -> Rule | None:
        """The rule that a request meets; it is used up by that."""
        for rule in self.rules:
            if rule.api_key != api_key or not rule.times:
                continue
            if rule.accepts is not None and not rule.accepts(request):
                continue
            if rule.skip:
                rule.skip -= 1
                return None
            rule.times -= 1
            self.caught.append(rule)
            return rule
        return None

    def of(self, api_key: int) -> list[Seen]:
        """The requests of one API."""
        return [each for each in self.seen if each.api_key == api_key]

    async def _accept(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            answers, broker = await asyncio.open_connection(*self._broker)
        except OSError:
            writer.transport.abort()
            self._tasks.discard(task)
            return
        link = _Link(self, writer, broker)
        self._links.add(link)
        try:
            with suppress(OSError):
                await asyncio.gather(link.requests(reader), link.answers(answers))
        finally:
            link.cut()
            self._links.discard(link)
            self._tasks.discard(task)
