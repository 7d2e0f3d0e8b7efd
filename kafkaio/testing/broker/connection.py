"""One client's connection: requests are served one by one and answered in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from kafkaio._net.transport import Transport
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
from kafkaio.testing.broker.refusal import Refusal

if TYPE_CHECKING:
    from kafkaio.testing.broker.node import Node

__all__ = ["ServerConnection"]


class _Rejected(Exception):
    """The connection has to be closed."""


class ErrorField(Protocol):
    """An answer that has one error code for all of it."""

    error_code: int


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
        # What befalls the request that is being served.
        self._rules: list[Rule] = []
        self._counted: set[int] = set()

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
        for rule in self._rules:
            if rule.fault.action is Action.ERROR and rule.covers(topic, partition):
                self._count(rule)
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

    def _count(self, rule: Rule) -> None:
        """Count a rule once for a request, however many partitions it befell."""
        if id(rule) not in self._counted:
            self._counted.add(id(rule))
            rule.count += 1

    # ---- serving -----------------------------------------------------------------

    def abort(self) -> None:
        """Break the connection off."""
        self._is_open = False
        self._transport.abort()
        self._wakeup.notify()

    async def run(self) -> None:
        """Serve requests until the connection ends."""
        while self._is_open:
            if not self._frames:
                await self._wakeup.wait()
                continue
            try:
                await self._serve(self._frames.popleft())
            except _Rejected:
                self.abort()
            except Exception as cause:  # noqa: BLE001  (one request, not the node)
                self.node.report(cause)
                self.abort()

    async def _serve(self, frame: Buffer) -> None:
        try:
            header, position = decode_request_header(frame)
            handler = self.node.handler(header.request_api_key)
            version = header.request_api_version
            if handler is None or not handler.speaks(version):
                self._refuse_version(header)
                return
            kind = request_type(header.request_api_key)
            # Bytes behind the request are ignored, as Kafka does: librdkafka 2.16
            # leaves some behind when it asks for all topics.
            request, _ = decode_from(kind, version, frame, position)
        except KafkaError:
            # What cannot be understood is not answered; Kafka closes, too.
            raise _Rejected from None
        self.node.log_request(header)
        self._counted.clear()
        self._rules = self.node.striking(header)
        await self._befall_before()
        response = self._top_level_error(request)
        if response is None:
            response = await handler.handle(self.node, header, request, self)
        if response is not None:
            await self._answer(response, header)

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

    async def _befall_before(self) -> None:
        for rule in self._rules:
            if rule.fault.action is Action.DELAY:
                await asyncio.sleep(rule.fault.seconds)
            elif rule.fault.action is Action.DISCONNECT_BEFORE:
                raise _Rejected

    def _top_level_error(self, request: Request[Response]) -> Response | None:
        """The answer that is nothing but an error, if there is one for all of it."""
        kind = request.response_type()
        if not any(field.name == "error_code" for field in kind.SCHEMA):
            return None
        if self.node.answers_by_partition(request.API_KEY):
            return None
        for rule in self._rules:
            if rule.fault.action is Action.ERROR:
                self._count(rule)
                response = kind()
                response.error_code = rule.fault.code  # type: ignore[attr-defined]  # looked up in the schema above
                return response
        return None

    async def _answer(self, response: Response, header: RequestHeader) -> None:
        mute = 0.0
        actions = set()
        for rule in self._rules:
            actions.add(rule.fault.action)
            if rule.fault.action is Action.THROTTLE:
                mute = max(mute, rule.fault.seconds)
        if mute and hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = round(mute * 1000)
        parts = encode_response_parts(
            response, header.request_api_version, header.correlation_id
        )
        await self._send(parts, actions)
        if mute:
            await asyncio.sleep(mute)

    async def _send(self, parts: list[Buffer], actions: set[Action]) -> None:
        if Action.DISCONNECT_AFTER in actions:
            raise _Rejected
        if Action.DROP in actions:
            while self._is_open:
                self._frames.clear()
                await self._wakeup.wait()
            return
        if Action.HALF_FRAME in actions:
            data = b"".join(parts)
            self._write([data[: len(data) // 2]])
            self._transport.close()
            return
        if Action.CORRUPT in actions:
            broken = bytearray(b"".join(parts))
            broken[max(8, len(broken) // 2)] ^= 0xFF
            parts = [bytes(broken)]
        self._write(parts)

    def _write(self, parts: Sequence[Buffer]) -> None:
        if self._is_open:
            self._transport.write(parts)
