"""TCP sockets with the options of a client."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import Final

from kafkaio._net.resolver import Address
from kafkaio._net.transport import DialOptions

#: Keep-alive probes of a connection that receives nothing, by the names of the systems:
#: the first after a minute, then every ten seconds; after three the connection is dead.
#: Routers on the way, which forget idle connections after 350 s or less, see traffic.
#: Linux, Windows and macOS (TCP_KEEPALIVE) count in seconds.
_KEEP_ALIVE: Final = {
    "TCP_KEEPIDLE": 60,
    "TCP_KEEPALIVE": 60,
    "TCP_KEEPINTVL": 10,
    "TCP_KEEPCNT": 3,
}


async def connected_socket(address: Address, options: DialOptions) -> socket.socket:
    """Connect a new socket to an address.

    If it fails, or is cancelled, nothing is left open.

    Raises:
        OSError: no socket can be made, or the address cannot be reached.
    """
    family, where = address
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)  # noqa: FBT003
        _set_options(sock, options)
        try:
            await asyncio.get_running_loop().sock_connect(sock, where)
        except (ValueError, OverflowError) as error:  # a port over 65535, a zero byte
            raise OSError(str(error)) from error
        # After connecting: the option would limit the time for that, too.
        _set(sock, "TCP_USER_TIMEOUT", round(options.user_timeout * 1000))
    except BaseException:
        sock.close()
        raise
    return sock


def _set_options(sock: socket.socket, options: DialOptions) -> None:
    # Requests are written whole, so a delay (Nagle) would gain nothing.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE.items():
        _set(sock, name, value)
    if options.send_buffer_bytes >= 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, options.send_buffer_bytes)
    if options.receive_buffer_bytes >= 0:
        size = options.receive_buffer_bytes
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)


def _set(sock: socket.socket, name: str, value: int) -> None:
    """Set an option of TCP that not every system has."""
    option: int | None = getattr(socket, name, None)
    if option is not None:
        with suppress(OSError):  # the system is older than Python's headers
            sock.setsockopt(socket.IPPROTO_TCP, option, value)
