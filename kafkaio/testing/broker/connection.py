"""One client's connection: requests are served one by one and answered in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kafkaio._net.transport import Transport
from kafkaio._runtime.clock import now
from kafkaio._runtime.wakeup import Wakeup
from kafkaio.errors import KafkaError
from kafkaio.protocol.api_keys import ApiKey, request_type
from kafkaio.protocol.codec import decode_from
from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.protocol.headers import (
    decode_request_header,
    encode_response_parts,
)
from kafkaio.protocol.message import Buffer, Request, Response
from kafkaio.protocol.messages.api_versions import ApiVersionsRequest
from kafkaio.protocol.messages.request_header import RequestHeader
from kafkaio.testing.broker.faults import Action, Rule
from kafkaio.testing.broker.mentions import mentions
from kafkaio.testing.broker.refusal import Refusal

if TYPE_CHECKING:
    from kafkaio.testing.broker.node import Handler, Node

__all__ = ["ServerConnection"]


class _Rejected(Exception):
    """The connection has to be closed."""


@dataclass(slots=True)
class _Exchange:
    """A request, what befalls it, and its answer.

    Attributes:
        header: the request's header.
        rules: the faults that befall it.
        counted: those among them that count once, and did.
        response: the answer; None if there is none.
    """

    header: RequestHeader
    rules: list[Rule] = field(default_factory=list)
    counted: set[int] = field(default_factory=set)
    response: Response | None = None

    def seconds(self, action: Action) -> float:
        """How long the faults of a kind last together; 0 without one."""
        if not self.rules:
            return 0.0
        faults = (rule.fault for rule in self.rules)
        return sum(fault.seconds for fault in faults if fault.action is action)

    def has(self, action: Action) -> bool:
        """Whether a fault of a kind is among them."""
        return any(rule.fault.action is action for rule in self.rules)

    def count(self, rule: Rule) -> None:
        """Count a rule once for a request, however many partitions it befell."""
        if id(rule) not in self.counted:
            self.counted.add(id(rule))
            rule.count += 1


class ServerConnection:
    """Serves one connection; a FrameSink. Handlers may look at its attributes.

    Attributes:
        node: the node that was dialled.
        client_host: where the client is.
    """

    def __init__(self, node: Node, transport: Transport, client_host: str) -> None:
        self.node = node
        self.client_host = client_host
        self._transport = transport
        self._frames: deque[Buffer] = deque()
        self._wakeup = Wakeup()
        self._is_open = True
        # The request that is being handled.
        self._current = _Exchange(RequestHeader())

    @property
    def is_open(self) -> bool:
        """Whether anybody is there to hear an answer."""
        return self._is_open

    # ---- what the transport calls ------------------------------------------------

    def frame_received(self, frame: Buffer) -> None:
        """Take one request."""
        self._frames.append(frame)
        self._wakeup.notify()

    def connection_lost(self, cause: BaseException | None) -> None:
        """The client went away."""
        del cause
        self._is_open = False
        self._frames.clear()
        self.node.connections.pop(self, None)
        self._wakeup.notify()

    # ---- what handlers call ------------------------------------------------------

    def error_for(self, topic: str, partition: int = -1) -> ErrorCode | None:
        """The error that a fault has in store for a partition of this request."""
        for rule in self._current.rules:
            if rule.fault.action is Action.ERROR and rule.covers(topic, partition):
                self._current.count(rule)
                return rule.fault.code
        return None

    def check(self, topic: str, partition: int = -1) -> None:
        """Fail where a fault has an error in store for a partition.

        Without a partition it is for answers that tell errors of other things, such
        as topics or resources, by their names.

        Raises:
            Refusal: with that error.
        """
        code = self.error_for(topic, partition)
        if code is not None:
            raise Refusal(code)

    def metadata_lag(self) -> float:
        """Seconds until nodes learn of what this request changes: a fault."""
        return self._current.seconds(Action.METADATA_LAG)

    # ---- what the node calls -----------------------------------------------------

    def abort(self) -> None:
        """Break the connection off."""
        self._is_open = False
        self._transport.abort()
        self._wakeup.notify()

    def resumed(self) -> None:
        """Go on: the node is paused no more."""
        self._wakeup.notify()

    async def run(self) -> None:
        """Serve requests until the connection ends."""
        while self._is_open:
            if not self._frames or self.node.is_paused:
                await self._wakeup.wait()
                continue
            try:
                for exchange in await self._serve(self._frames.popleft()):
                    await self._answer(exchange)
            except _Rejected:
                self.abort()
            except Exception as cause:  # noqa: BLE001  (one request, not the node)
                self.node.report(cause)
                self.abort()

    # ---- serving -----------------------------------------------------------------

    async def _serve(self, frame: Buffer) -> list[_Exchange]:
        """Serve a request, and those that a fault lets overtake it.

        Returns:
            What is to be answered, in the order in which it was asked.
        """
        try:
            header, position = decode_request_header(frame)
            handler = self.node.handler(header.request_api_key)
            version = header.request_api_version
            if handler is None or not handler.speaks(version):
                self._refuse_version(header)
                return []
            kind = request_type(header.request_api_key)
            # Bytes behind the request are ignored, as Kafka does: librdkafka 2.16
            # leaves some behind when it asks for all topics.
            request, _ = decode_from(kind, version, frame, position)
        except KafkaError:
            # What cannot be understood is not answered; Kafka closes, too.
            raise _Rejected from None
        self.node.log_request(header)
        exchange = _Exchange(header)
        exchange.rules = self.node.faults.striking(
            header.request_api_key,
            self.node.node_id,
            header.client_id,
            lambda topic, index: mentions(self.node, request, topic, index),
        )
        overtaking: list[_Exchange] = []
        if exchange.rules:
            overtaking = await self._befall_before(exchange)
        self._current = exchange
        exchange.response = await self._handle(handler, exchange, request)
        return [exchange, *overtaking]

    async def _befall_before(self, exchange: _Exchange) -> list[_Exchange]:
        if exchange.has(Action.DISCONNECT_BEFORE):
            raise _Rejected
        delay = exchange.seconds(Action.DELAY)
        if delay:
            await asyncio.sleep(delay)
        if exchange.has(Action.REORDER):
            return await self._overtake(now() + exchange.seconds(Action.REORDER))
        return []

    async def _overtake(self, until: float) -> list[_Exchange]:
        """Serve the request behind, if one comes in time."""
        while self._is_open and not self._frames:
            # Every notification may be for something else.
            if not await self._wakeup.wait(until) and not self._frames:
                return []
        return await self._serve(self._frames.popleft()) if self._frames else []

    async def _handle(
        self, handler: Handler, exchange: _Exchange, request: Request[Response]
    ) -> Response | None:
        if exchange.rules:
            refused = self._top_level_error(exchange, request)
            if refused is not None:
                return refused
            if exchange.has(Action.DUPLICATE):
                first = await handler.handle(self.node, exchange.header, request, self)
                await handler.handle(self.node, exchange.header, request, self)
                return first
        return await handler.handle(self.node, exchange.header, request, self)

    def _refuse_version(self, header: RequestHeader) -> None:
        """ApiVersions always gets an answer, in version 0 (KIP-511)."""
        handler = self.node.handler(ApiKey.API_VERSIONS)
        if header.request_api_key != ApiKey.API_VERSIONS or handler is None:
            raise _Rejected
        answer = ApiVersionsRequest.response_type()(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            api_keys=self.node.advertised(ApiKey.API_VERSIONS),
        )
        self._write(encode_response_parts(answer, 0, header.correlation_id))

    def _top_level_error(
        self, exchange: _Exchange, request: Request[Response]
    ) -> Response | None:
        """The answer that is nothing but an error, if there is one for all of it."""
        kind = request.response_type()
        if not any(field.name == "error_code" for field in kind.SCHEMA):
            return None
        if self.node.answers_by_partition(request.API_KEY):
            return None
        for rule in exchange.rules:
            if rule.fault.action is Action.ERROR:
                exchange.count(rule)
                response = kind()
                response.error_code = rule.fault.code  # type: ignore[attr-defined]  # looked up in the schema above
                return response
        return None

    # ---- answering ---------------------------------------------------------------

    async def _answer(self, exchange: _Exchange) -> None:
        while self.node.is_paused and self._is_open:
            await self._wakeup.wait()
        response, header = exchange.response, exchange.header
        if response is None:
            return
        mute = exchange.seconds(Action.THROTTLE)
        if mute and hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = round(mute * 1000)
        parts = encode_response_parts(
            response, header.request_api_version, header.correlation_id
        )
        if exchange.rules:
            await self._send_with_faults(parts, exchange)
        else:
            self._write(parts)
        if mute:
            await asyncio.sleep(mute)

    async def _send_with_faults(self, parts: list[Buffer], exchange: _Exchange) -> None:
        if exchange.has(Action.DISCONNECT_AFTER):
            raise _Rejected
        if exchange.has(Action.DROP):
            while self._is_open:
                self._frames.clear()
                await self._wakeup.wait()
        elif exchange.has(Action.HALF_FRAME):
            data = b"".join(parts)
            self._write([data[: len(data) // 2]])
            self._transport.close()
        elif exchange.has(Action.CORRUPT):
            broken = bytearray(b"".join(parts))
            broken[max(8, len(broken) // 2)] ^= 0xFF
            self._write([bytes(broken)])
        else:
            self._write(parts)

    def _write(self, parts: Sequence[Buffer]) -> None:
        if self._is_open:
            self._transport.write(parts)
