"""A small server of HTTP/1.1 on the event loop: h11 and asyncio's protocols.

It has no task: a request is handed to a function as soon as it is complete, and that
function answers by the `Exchange` now or later. A connection serves its requests one
after the other, as HTTP demands.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import h11

#: Bytes of a body. Larger ones are refused: no schema is that large.
_LARGEST_BODY: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request as it was received.

    Attributes:
        method: the method.
        target: path and query.
        headers: the headers by their names in lower case.
        body: the body.
    """

    method: str
    target: str
    headers: dict[str, str] = field(repr=False)  # logins are among them
    body: bytes = field(repr=False)


class Exchange:
    """One request and its answer. What is done once its connection is lost is lost."""

    def __init__(self, request: HttpRequest, connection: _Connection) -> None:
        self.request = request
        self._connection = connection

    @property
    def is_open(self) -> bool:
        """Whether an answer would reach the client."""
        return self._connection.current is self

    def answer(
        self, status: int, headers: Sequence[tuple[str, str]], body: bytes
    ) -> None:
        """Send the answer."""
        if self.is_open:
            self._connection.answer(status, headers, body)

    def disconnect(self) -> None:
        """Close the connection without an answer."""
        if self.is_open:
            self._connection.abort()


#: Called with each request.
Serve = Callable[[Exchange], None]


class _Connection(asyncio.Protocol):
    """One connection of a client."""

    def __init__(self, serve: Serve, connections: set[_Connection]) -> None:
        import h11

        self._serve = serve
        self._connections = connections
        self._http = h11.Connection(h11.SERVER)
        self._transport: asyncio.Transport | None = None
        self._head: h11.Request | None = None
        self._body = bytearray()
        self._is_stepping = False
        self.current: Exchange | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # uvloop's has another base class
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self.current = None
        self._connections.discard(self)

    def data_received(self, data: bytes) -> None:
        self._http.receive_data(data)
        self._step()

    def eof_received(self) -> bool:
        self._http.receive_data(b"")
        self._step()
        # A client that has sent everything may still read the answer.
        return self.current is not None

    def abort(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def _step(self) -> None:
        """Take what has arrived. An answer given meanwhile goes on in this loop."""
        import h11

        if self._is_stepping:
            return
        self._is_stepping = True
        try:
            while self.current is None and self._transport is not None:
                event = self._http.next_event()
                if event is h11.NEED_DATA or event is h11.PAUSED:
                    return
                self._take(event)
        except h11.RemoteProtocolError as error:
            self._refuse(error.error_status_hint)
        finally:
            self._is_stepping = False

    def _take(self, event: object) -> None:
        import h11

        match event:
            case h11.Request():
                self._head = event
                self._body.clear()
                if self._http.they_are_waiting_for_100_continue:
                    self._send(h11.InformationalResponse(status_code=100, headers=[]))
            case h11.Data():
                self._body += event.data
                if len(self._body) > _LARGEST_BODY:
                    self._refuse(413)
            case h11.EndOfMessage():
                self._begin()
            case h11.ConnectionClosed():
                self._close()
            case _:
                pass

    def _begin(self) -> None:
        head = self._head
        assert head is not None  # h11 gives it before the end
        headers = {
            name.decode(): value.decode("latin-1") for name, value in head.headers
        }
        request = HttpRequest(
            head.method.decode(), head.target.decode(), headers, bytes(self._body)
        )
        self._body.clear()
        self.current = Exchange(request, self)
        self._serve(self.current)

    def answer(
        self, status: int, headers: Sequence[tuple[str, str]], body: bytes
    ) -> None:
        """Send the answer to the current request, and go on with the next one."""
        import h11

        self.current = None
        sent = [*headers, ("Content-Length", str(len(body)))]
        self._send(h11.Response(status_code=status, headers=sent))
        self._send(h11.Data(data=body))
        self._send(h11.EndOfMessage())
        if self._http.our_state is h11.MUST_CLOSE:
            self._close()
            return
        self._http.start_next_cycle()
        self._step()

    def _refuse(self, status: int) -> None:
        import h11

        if self._http.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            headers = [("Content-Length", "0"), ("Connection", "close")]
            self._send(h11.Response(status_code=status, headers=headers))
            self._send(h11.EndOfMessage())
        self._close()

    def _send(
        self,
        event: h11.InformationalResponse | h11.Response | h11.Data | h11.EndOfMessage,
    ) -> None:
        data = self._http.send(event)
        if self._transport is not None and data:
            self._transport.write(data)

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()
            self._transport = None


class HttpServer:
    """A server on 127.0.0.1. It keeps its port when it is opened again.

    Args:
        serve: called with each request.
        port: the port; 0 takes a free one.
        tls: the TLS settings; None for none.
    """

    def __init__(
        self, serve: Serve, port: int = 0, tls: ssl.SSLContext | None = None
    ) -> None:
        self._serve = serve
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._connections: set[_Connection] = set()
        self.port: int = port

    @property
    def is_open(self) -> bool:
        """Whether it listens."""
        return self._server is not None

    async def open(self) -> None:
        """Listen.

        Raises:
            OSError: the port is taken.
            ImportError: h11 is not installed; it comes with ``kafkaio[registry]``.
        """
        try:
            import h11
        except ImportError as error:
            raise ImportError(f"{error}: install kafkaio[registry]") from error
        del h11
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _Connection(self._serve, self._connections),
            "127.0.0.1",
            self.port,
            ssl=self._tls,
        )
        self.port = self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        """Stop listening, and close each connection without an answer."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.disconnect()

    def disconnect(self) -> None:
        """Close each connection without an answer."""
        for connection in list(self._connections):
            connection.abort()
