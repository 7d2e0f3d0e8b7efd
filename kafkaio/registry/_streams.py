"""TCP and TLS for httpcore, on asyncio alone.

httpcore and anyio leave a socket open here and there if a call is cancelled while it
connects, or shakes hands; in which places depends on their versions. So connections are
made as those to brokers are: by the same resolver, one attempt beside the other.

Invariant: a call that fails, or is cancelled, leaves no socket open. Closing waits for
nothing, so that a cancellation cannot interrupt it.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from types import ModuleType
from typing import Final

from kafkaio._net.race import Race
from kafkaio._net.resolver import Address, Resolver
from kafkaio._net.sockets import connected_socket
from kafkaio._net.transport import DialOptions
from kafkaio._runtime.clock import now

#: Only its options of sockets are used.
_OPTIONS: Final = DialOptions(timeout=0.0, max_frame_size=0)
#: Addresses of a name that an error names.
_NAMED: Final = 4


class Dialler:
    """Connects for httpcore's pools; one per event loop.

    Args:
        httpcore: the library, whose exceptions are raised.
    """

    def __init__(self, httpcore: ModuleType) -> None:
        self._httpcore = httpcore
        self._resolver = Resolver()
        self._open: set[Stream] = set()

    def close(self) -> None:
        """Close the streams that httpcore has left open, as old versions do."""
        for stream in [*self._open]:
            stream.abort()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[object] | None = None,
    ) -> Stream:
        """Connect to the first address of a host that answers.

        Raises:
            ConnectError: of httpcore; says what failed.
            ConnectTimeout: of httpcore.
        """
        del local_address, socket_options  # are not used
        seconds = timeout or 0.0
        until = now() + seconds
        try:
            found = await self._resolver.resolve(host, port, seconds)
        except TimeoutError:
            text = f"resolve name: no answer within {seconds:.3g} s"
            raise self._httpcore.ConnectTimeout(text) from None
        except (OSError, ValueError) as error:
            raise self._httpcore.ConnectError(f"resolve name: {error}") from None
        race = Race([partial(connected_socket, each, _OPTIONS) for each in found])
        sock = await race.run(until)
        if sock is None:
            raise self._failed(found, race, seconds)
        return Stream(self._httpcore, self._open, *await _streams(sock))

    async def sleep(self, seconds: float) -> None:
        """Wait; httpcore asks for it before it tries again, which nobody wants."""
        await asyncio.sleep(seconds)

    def _failed(self, found: list[Address], race: Race, seconds: float) -> Exception:
        reasons = [
            f"{found[place][1][0]!s}: {error}" for place, error in race.failures.items()
        ]
        error: Exception
        if len(reasons) == len(found):
            text = "; ".join(reasons[:_NAMED])
            error = self._httpcore.ConnectError(f"connect: {text}")
        else:
            text = f"connect: no answer within {seconds:.3g} s"
            error = self._httpcore.ConnectTimeout(text)
        return error


class Stream:
    """A connection, as httpcore uses it.

    Args:
        httpcore: the library.
        siblings: the streams that are open, to which it belongs until it is closed.
        reader: what arrives.
        writer: what is sent.
    """

    def __init__(
        self,
        httpcore: ModuleType,
        siblings: set[Stream],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._httpcore = httpcore
        self._siblings = siblings
        self._reader = reader
        self._writer = writer
        siblings.add(self)

    def abort(self) -> None:
        """Close it at once; may be called again."""
        self._siblings.discard(self)
        self._writer.transport.abort()

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return some bytes; none at the end.

        Raises:
            ReadError: of httpcore; the connection broke.
        """
        del timeout  # the whole request has one
        try:
            return await self._reader.read(max_bytes)
        except OSError as error:
            raise self._httpcore.ReadError(str(error)) from None

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send bytes.

        Raises:
            WriteError: of httpcore; the connection broke.
        """
        del timeout
        try:
            self._writer.write(buffer)
            await self._writer.drain()
        except OSError as error:
            raise self._httpcore.WriteError(str(error)) from None

    async def aclose(self) -> None:
        """Do the same as `abort`."""
        self.abort()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> Stream:
        """Encrypt the connection; it is closed if that fails.

        Raises:
            ConnectError: of httpcore; says what failed.
        """
        del timeout
        lower = self._writer.transport
        try:
            await self._writer.start_tls(ssl_context, server_hostname=server_hostname)
        except OSError as error:  # ssl.SSLError is a kind of it
            self._siblings.discard(self)
            lower.abort()
            reason = str(error) or type(error).__name__
            raise self._httpcore.ConnectError(f"TLS handshake: {reason}") from None
        except BaseException:
            self._siblings.discard(self)
            lower.abort()
            raise
        return self

    def get_extra_info(self, info: str) -> object:
        """Return what httpcore asks for, or None."""
        if info == "is_readable":
            # Of a connection that is kept: the peer has closed it.
            return self._reader.at_eof() or self._writer.is_closing()
        if info == "ssl_object":
            return self._writer.get_extra_info("ssl_object")
        return None


async def _streams(
    sock: socket.socket,
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return the streams of a connected socket, which is closed if that fails."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    try:
        transport, _ = await loop.create_connection(lambda: protocol, sock=sock)
    except BaseException:
        with suppress(OSError):
            sock.close()
        raise
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)
