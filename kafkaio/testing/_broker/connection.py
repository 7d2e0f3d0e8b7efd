"""The server side of one client connection.

Requests of a connection are served one at a time and answered in the order in which
they came, as Kafka does. A connection sees its node through the `NodePort` protocol
alone; the handlers of the APIs are reached through it.

The faults that apply to a request (see ``kafkaio.testing._broker.faults``) take effect
here: before the handler runs (delay, reorder, disconnect before), in its place (an
error for the whole answer), or when the answer is written.
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from kafkaio._net.transport import TransportPort
from kafkaio._runtime.clock import now
from kafkaio._runtime.wakeup import Wakeup
from kafkaio.errors import KafkaError
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._codec import decode_from
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._headers import (
    decode_request_header,
    encode_response_parts,
)
from kafkaio.protocol._message import Buffer, Request, Response
from kafkaio.protocol._requests import request_type
from kafkaio.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest
from kafkaio.protocol.messages.request_header import RequestHeader
from kafkaio.testing._broker.cut import Cut
from kafkaio.testing._broker.faults import CUTS, Action, Fault, Rule
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._security.session import Closed, SaslSession

#: Kafka's default of socket.request.max.bytes.
MAX_REQUEST_BYTES: Final = 104_857_600
_ANONYMOUS: Final = "User:ANONYMOUS"


class ApiPort(Protocol):
    """One API, as a connection sees it before it serves a request."""

    @property
    def by_partition(self) -> bool:
        """Whether an answer has an error code for each partition or other part."""

    def speaks(self, version: int) -> bool:
        """Whether a version of the API is served."""


class NodePort(Protocol):
    """The node that accepted a connection, as the connection sees it."""

    is_paused: bool

    @property
    def apis(self) -> Mapping[int, ApiPort]:
        """The APIs of this release of Kafka, by Kafka's number."""

    def advertised(self, only: ApiKey | None = None) -> list[ApiVersion]:
        """The APIs and versions that ApiVersions reports."""

    def begin(self, header: RequestHeader, request: Request[Response]) -> list[Rule]:
        """Log a request; return the faults that apply to it."""

    async def handle(
        self,
        header: RequestHeader,
        request: Request[Response],
        connection: ServerConnection,
    ) -> Response | None:
        """Serve a request; None if it has no answer."""

    def in_background(self, work: Callable[[], Coroutine[None, None, None]]) -> None:
        """Run something until it ends, or until the node stops."""

    def disconnected(self, connection: ServerConnection) -> None:
        """Remove a connection that has ended."""

    def report(self, cause: BaseException) -> None:
        """Report a bug of the embedded broker to the event loop."""


class _CloseConnection(Exception):
    """The connection has to be closed without an answer."""


@dataclass(slots=True)
class Peer:
    """The other end of a connection.

    Attributes:
        host: the client's address.
        listener: the name of the listener that it connected to.
        protocol: the security protocol of that listener.
        subject: the principal of the client's certificate; None without one.
        sasl: its authentication; None if the listener has no SASL.
        refusal_delay: seconds until a refusal is told and the connection closed.
        max_receive_bytes: the largest request before it has authenticated.
        reached: the address of this machine that it connected to; empty in memory.
    """

    host: str
    listener: str = "PLAINTEXT"
    protocol: str = "PLAINTEXT"
    subject: str | None = None
    sasl: SaslSession | None = None
    refusal_delay: float = 0.0
    max_receive_bytes: int = 524_288
    reached: str = ""


@dataclass(slots=True)
class _Exchange:
    """A request, the faults that apply to it, and its answer.

    Attributes:
        header: the request's header.
        rules: the faults that apply.
        counted: ids of the error rules that were counted for this request already.
        response: the answer; None if there is none.
    """

    header: RequestHeader
    rules: list[Rule] = field(default_factory=list)
    counted: set[int] = field(default_factory=set)
    response: Response | None = None

    def seconds(self, action: Action) -> float:
        """The sum of the durations of the faults of one kind; 0 without one."""
        if not self.rules:
            return 0.0
        faults = (rule.fault for rule in self.rules)
        return sum(fault.seconds for fault in faults if fault.action is action)

    def has(self, action: Action) -> bool:
        """Whether a fault of this kind applies."""
        return any(rule.fault.action is action for rule in self.rules)

    def count(self, rule: Rule) -> None:
        """Count a rule once per request, however many partitions it applied to."""
        if id(rule) not in self.counted:
            self.counted.add(id(rule))
            rule.count += 1


def response_with(kind: type[Request[Response]], code: ErrorCode) -> Response:
    """A response to a kind of request, with an error code if it has that field."""
    response = kind.response_type()()
    if hasattr(response, "error_code"):
        response.error_code = code
    return response


class ServerConnection:
    """Serves one connection; a FrameSinkPort.

    Handlers get it to read ``client_host`` and ``is_open``, to look for the error of a
    fault (`check`, `error_for`), and to `abort` it.

    Attributes:
        client_host: the client's address.
        peer: the client, and the listener that it connected to.
        sasl: the client's authentication; None if the listener has no SASL.
    """

    def __init__(self, server: NodePort, transport: TransportPort, peer: Peer) -> None:
        self.client_host: str = peer.host
        self.peer = peer
        self.sasl: SaslSession | None = peer.sasl
        self._is_refused = False
        self._server = server
        self._transport = transport
        if peer.sasl is not None:
            transport.limit_frames(peer.max_receive_bytes)
        self._frames: deque[Buffer] = deque()
        self._wakeup = Wakeup()
        self._is_open = True
        self._when_closed: list[Callable[[], None]] = []
        # The request that is being handled; there is one at a time.
        self._current = _Exchange(RequestHeader())

    @property
    def is_open(self) -> bool:
        """Whether the client is still connected."""
        return self._is_open

    # ---- what the transport calls ------------------------------------------------

    def frame_received(self, frame: Buffer) -> None:
        """Queue one request."""
        self._frames.append(frame)
        self._wakeup.notify()

    def connection_lost(self, cause: BaseException | None) -> None:
        """Forget what is queued: the client has disconnected."""
        del cause
        self._is_open = False
        self._frames.clear()
        self._server.disconnected(self)
        self._wakeup.notify()
        self._closed()

    # ---- what handlers call ------------------------------------------------------

    @property
    def principal(self) -> str:
        """The principal of the client, such as ``User:alice``."""
        if self.sasl is None:
            return self.peer.subject or _ANONYMOUS
        identity = self.sasl.identity
        return _ANONYMOUS if identity is None else f"User:{identity.name}"

    async def refuse(self) -> None:
        """Wait as Kafka does before it refuses; the next answer is the last one.

        Kafka answers what comes meanwhile, if the client had authenticated before.
        """
        self._is_refused = True
        until = now() + self.peer.refusal_delay
        if self.sasl is None or not self.sasl.is_served:
            await asyncio.sleep(self.peer.refusal_delay)
            return
        while self._is_open and (self._frames or await self._wakeup.wait(until)):
            if self._frames:
                for exchange in await self._serve(self._frames.popleft()):
                    await self._answer(exchange)

    def authenticated(self) -> None:
        """Take requests of any size that Kafka takes, from now on."""
        self._transport.limit_frames(MAX_REQUEST_BYTES)

    def lie(self, *actions: Action) -> Fault | None:
        """The fault of one of these kinds, if one applies to this request; it counts.

        For what only a handler can get wrong.
        """
        for rule in self._current.rules:
            if rule.fault.action in actions and not rule.is_spent:
                self._current.count(rule)
                return rule.fault
        return None

    def error_for(self, topic: str, partition: int = -1) -> ErrorCode | None:
        """The error that a fault demands for a partition of this request, if any."""
        for rule in self._current.rules:
            # The first rule decides, in the order in which the test made them.
            if rule.fault.action is Action.ERROR and rule.covers(topic, partition):
                self._current.count(rule)
                return rule.fault.code
        return None

    def check_whole(self, codes: Collection[ErrorCode]) -> None:
        """Raise the error that a fault demands, if it is one of these.

        For an API with an error code for each partition, some of whose errors are those
        of a whole request.

        Raises:
            Refusal: with that error.
        """
        for rule in self._current.rules:
            fault = rule.fault
            if fault.action is Action.ERROR and fault.code in codes:
                self._current.count(rule)
                raise Refusal(fault.code)

    def check(self, topic: str, partition: int = -1) -> None:
        """Raise the error that a fault demands for a partition, if any.

        Without a partition, ``topic`` is the name of whatever the answer has an error
        code for, such as a topic or a resource.

        Raises:
            Refusal: with that error.
        """
        code = self.error_for(topic, partition)
        if code is not None:
            raise Refusal(code)

    def when_closed(self, callback: Callable[[], None]) -> None:
        """Call a function when the connection ends; at once if it has ended."""
        if self._is_open:
            self._when_closed.append(callback)
        else:
            callback()

    def forget_close(self, callback: Callable[[], None]) -> None:
        """Do not call a function any more; it may have been called."""
        if callback in self._when_closed:
            self._when_closed.remove(callback)

    def metadata_lag(self) -> float:
        """Seconds by which a fault delays what nodes know of this request's change."""
        return self._current.seconds(Action.METADATA_LAG)

    # ---- what the node calls -----------------------------------------------------

    def abort(self) -> None:
        """Close the connection at once, dropping what was not yet written."""
        self._is_open = False
        self._transport.abort()
        self._wakeup.notify()
        self._closed()

    def _closed(self) -> None:
        callbacks, self._when_closed = self._when_closed, []
        for callback in callbacks:
            callback()

    def resumed(self) -> None:
        """Continue: the node is no longer paused."""
        self._wakeup.notify()

    async def run(self) -> None:
        """Serve requests until the connection ends."""
        while self._is_open:
            # A paused node still receives: requests wait here, as in the buffers of a
            # process that hangs.
            if not self._frames or self._server.is_paused:
                await self._wakeup.wait()
                continue
            try:
                for exchange in await self._serve(self._frames.popleft()):
                    await self._answer(exchange)
                # After the answer: the client has to learn why before the connection
                # ends.
                if self._is_refused:
                    self._transport.close()
                    self._is_open = False
            except _CloseConnection:
                self.abort()
            except Exception as cause:  # noqa: BLE001  (fails one request, not the node)
                self._server.report(cause)
                self.abort()

    # ---- serving -----------------------------------------------------------------

    async def _serve(self, frame: Buffer) -> list[_Exchange]:
        """Serve a request, and those that overtake it because of a fault.

        Returns:
            The exchanges to answer, in the order of their requests.
        """
        if self.sasl is not None and self.sasl.is_raw:
            return await self._serve_token(self.sasl, frame)
        try:
            header, position = decode_request_header(frame)
            api = self._server.apis.get(header.request_api_key)
            version = header.request_api_version
            # Before the authentication is looked at, so that ApiVersions of a newer
            # client gets an answer (KIP-511).
            if api is None or not api.speaks(version):
                self._refuse_version(header)
                return []
            code = ErrorCode.NONE
            if self.sasl is not None:
                # Before the body is parsed: bytes of a stranger are not decoded.
                code = await self._admit(self.sasl, header.request_api_key)
            kind = request_type(header.request_api_key)
            # Bytes after the request are ignored, as in Kafka: librdkafka 2.16 leaves
            # some there when it asks for all topics.
            request, _ = decode_from(kind, version, frame, position)
        except KafkaError:
            # As Kafka, which closes the connection if a request cannot be parsed.
            raise _CloseConnection from None
        if code:
            return [_Exchange(header, response=response_with(kind, code))]
        exchange = _Exchange(header, self._server.begin(header, request))
        overtaking: list[_Exchange] = []
        if exchange.rules:
            overtaking = await self._apply_faults_before(exchange)
        self._current = exchange
        exchange.response = await self._handle(api, exchange, request)
        return [exchange, *overtaking]

    async def _admit(self, sasl: SaslSession, api: int) -> ErrorCode:
        """Return the error for a request that comes at the wrong time; NONE for none.

        Raises:
            _CloseConnection: Kafka does not answer it.
        """
        try:
            code = sasl.admit(api)
        except Closed as closed:
            if closed.is_late:
                await self.refuse()
            raise _CloseConnection from None
        if code:
            await self.refuse()
        return code

    async def _serve_token(self, sasl: SaslSession, frame: Buffer) -> list[_Exchange]:
        """Answer a token without a header by such a token (KIP-43)."""
        try:
            step = sasl.authenticate(bytes(frame), 0)
        except Closed:
            raise _CloseConnection from None
        if step.code:
            await self.refuse()
            raise _CloseConnection
        if sasl.is_complete:
            self.authenticated()
        self._write([struct.pack(">i", len(step.data)), step.data])
        return []

    async def _apply_faults_before(self, exchange: _Exchange) -> list[_Exchange]:
        if exchange.has(Action.DISCONNECT_BEFORE):
            raise _CloseConnection
        delay = exchange.seconds(Action.DELAY)
        if delay:
            await asyncio.sleep(delay)
        if exchange.has(Action.REORDER):
            return await self._overtake(now() + exchange.seconds(Action.REORDER))
        return []

    async def _overtake(self, until: float) -> list[_Exchange]:
        """Serve the next request first, if one comes before the deadline."""
        while self._is_open and not self._frames:
            # A notification may have another cause than a new frame.
            if not await self._wakeup.wait(until) and not self._frames:
                return []
        return await self._serve(self._frames.popleft()) if self._frames else []

    async def _handle(
        self, api: ApiPort, exchange: _Exchange, request: Request[Response]
    ) -> Response | None:
        if exchange.rules:
            refused = self._top_level_error(api, exchange, request)
            if refused is not None:
                return refused
            if exchange.has(Action.DUPLICATE):
                # The client gets the answer of the first; the second is what a request
                # that was sent again does.
                first = await self._server.handle(exchange.header, request, self)
                await self._again(exchange, request)
                return first
        return await self._server.handle(exchange.header, request, self)

    async def _again(self, exchange: _Exchange, request: Request[Response]) -> None:
        """Serve a request a second time, at once or later."""
        seconds = exchange.seconds(Action.DUPLICATE)
        if not seconds:
            await self._server.handle(exchange.header, request, self)
            return
        # Without the faults of whatever this connection serves by then.
        other = ServerConnection(self._server, self._transport, self.peer)

        async def later() -> None:
            await asyncio.sleep(seconds)
            await self._server.handle(exchange.header, request, other)

        self._server.in_background(later)

    def _refuse_version(self, header: RequestHeader) -> None:
        """Answer an unknown version of ApiVersions in version 0 (KIP-511).

        Raises:
            _CloseConnection: for any other API, as in Kafka.
        """
        is_served = ApiKey.API_VERSIONS in self._server.apis
        if header.request_api_key != ApiKey.API_VERSIONS or not is_served:
            raise _CloseConnection
        answer = ApiVersionsRequest.response_type()(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            api_keys=self._server.advertised(ApiKey.API_VERSIONS),
        )
        self._write(encode_response_parts(answer, 0, header.correlation_id))

    def _top_level_error(
        self, api: ApiPort, exchange: _Exchange, request: Request[Response]
    ) -> Response | None:
        """The answer that a fault replaces by an error; None where none does so."""
        kind = request.response_type()
        if not any(field.name == "error_code" for field in kind.SCHEMA):
            return None
        # The handler puts the error where it belongs, see `error_for`.
        if api.by_partition:
            return None
        for rule in exchange.rules:
            if rule.fault.action is Action.ERROR:
                exchange.count(rule)
                return response_with(type(request), rule.fault.code)
        return None

    # ---- answering ---------------------------------------------------------------

    async def _answer(self, exchange: _Exchange) -> None:
        # The node may have been paused while the request was served, such as a Fetch
        # that waits.
        while self._server.is_paused and self._is_open:
            await self._wakeup.wait()
        response, header = exchange.response, exchange.header
        if response is None:
            return
        throttle = exchange.seconds(Action.THROTTLE)
        if throttle and hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = round(throttle * 1000)
        parts = encode_response_parts(
            response, header.request_api_version, header.correlation_id
        )
        if exchange.rules:
            await self._send_with_faults(parts, exchange)
        else:
            self._write(parts)
        if throttle:
            # Kafka answers at once and then stops reading from the connection
            # (KIP-219).
            await asyncio.sleep(throttle)

    async def _send_with_faults(self, parts: list[Buffer], exchange: _Exchange) -> None:
        if exchange.has(Action.DISCONNECT_AFTER):
            raise _CloseConnection
        data = b"".join(parts)
        if exchange.has(Action.CORRELATION_ID):
            # The correlation id stands behind the size of the frame.
            data = data[:4] + bytes(byte ^ 0x55 for byte in data[4:8]) + data[8:]
        for rule in exchange.rules:
            if rule.fault.action is Action.GARBAGE:
                data = rule.fault.data
        for rule in exchange.rules:
            if rule.fault.action in CUTS:
                await self._send_cut(Cut(rule.fault), data)
                return
        if exchange.has(Action.DROP):
            await self._stall()
        elif exchange.has(Action.HALF_FRAME):
            self._write([data[: len(data) // 2]])
            self._transport.close()
        elif exchange.has(Action.CORRUPT):
            broken = bytearray(data)
            # Behind size and correlation id: the client finds the request, and the
            # damage in its answer.
            broken[max(8, len(broken) // 2)] ^= 0xFF
            self._write([bytes(broken)])
        else:
            self._write([data])

    async def _send_cut(self, cut: Cut, data: bytes) -> None:
        self._write([cut.cut(data)])
        if cut.is_closed:
            self._transport.close()
        elif cut.is_stalled:
            await self._stall()

    async def _stall(self) -> None:
        """Answer nothing until the client has disconnected."""
        while self._is_open:
            self._frames.clear()
            await self._wakeup.wait()

    def _write(self, parts: Sequence[Buffer]) -> None:
        if self._is_open:
            self._transport.write(parts)
