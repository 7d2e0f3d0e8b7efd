"""Asks a proxy for a connection to a broker: by SOCKS 5 (RFC 1928) or CONNECT.

The socket to the proxy is connected already, and becomes the connection to the broker.
Loaded only where a client has a proxy: python-socks and h11 come with an extra.
"""

from __future__ import annotations

import asyncio
import base64
import socket
from typing import Final

import h11
from python_socks import ProxyError, ProxyType
from python_socks.async_.asyncio import Proxy as SocksProxy

from kafkaio._config.proxy import Proxy
from kafkaio._net.transport import ProxyRefused

#: Bytes of the head of an answer to CONNECT, at most.
_LONGEST_HEAD: Final = 65_536
#: Bytes read from a proxy at a time.
_READ: Final = 4_096
#: Seconds for python-socks, which must have a limit: more than any caller waits.
_NO_LIMIT: Final = 86_400
#: Characters of a proxy's own words that an error repeats.
_WORDS: Final = 200
#: The texts of python-socks for a login that is required or refused; it has no codes.
_REFUSALS: Final = (
    "No acceptable authentication methods",
    "Username and password authentication failure",
)
#: The answer of a proxy that wants a login, or another one.
_AUTHENTICATION_REQUIRED: Final = 407


async def open_tunnel(proxy: Proxy, sock: socket.socket, host: str, port: int) -> None:
    """Turn a connection to a proxy into a connection to a broker.

    The caller limits the time, and closes the socket if the call fails.

    Args:
        proxy: the proxy.
        sock: connected to the proxy, and not blocking.
        host: the broker's address, or a name that the proxy is to look up.
        port: its port.

    Raises:
        ProxyRefused: the proxy does not accept the login.
        OSError: the proxy does not reach the broker, or the peer is not a proxy.
    """
    try:
        if proxy.scheme == "http":
            await _connect(proxy, sock, host, port)
        else:
            await _socks(proxy, sock, host, port)
    except (ValueError, OverflowError, h11.LocalProtocolError) as error:
        # The advertised host is not a valid name, or the port is over 65535.
        what = f"the proxy cannot be asked for {host[:_WORDS]!r}, port {port}"
        raise OSError(f"{what}: {str(error)[:_WORDS]}") from None


class _Connected(SocksProxy):
    # python-socks asks this for a connection to the proxy itself, as for that to the
    # first of several proxies: so names, addresses and socket options are ours.

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(ProxyType.SOCKS5, "", 0)
        self._sock = sock

    async def connect(self, *_: object, **__: object) -> socket.socket:
        return self._sock


async def _socks(proxy: Proxy, sock: socket.socket, host: str, port: int) -> None:
    by = SocksProxy(
        ProxyType.SOCKS5,
        proxy.host,
        proxy.port,
        username=proxy.username,
        password=proxy.password,
        rdns=True,  # a name that comes here is for the proxy
        forward=_Connected(sock),
    )
    try:
        await by.connect(host, port, timeout=_NO_LIMIT)
    except ProxyError as error:
        text = str(error)[:_WORDS]
        if text.startswith(_REFUSALS):
            raise ProxyRefused(_refusal(proxy, text)) from None
        raise OSError(f"the proxy says: {text}") from None


async def _connect(proxy: Proxy, sock: socket.socket, host: str, port: int) -> None:
    loop = asyncio.get_running_loop()
    name = f"[{host}]" if ":" in host else host.encode("idna").decode("ascii")
    target = f"{name}:{port}"
    headers = [("Host", target)]
    if proxy.username is not None:
        login = f"{proxy.username}:{proxy.password}".encode()
        basic = base64.b64encode(login).decode("ascii")
        headers.append(("Proxy-Authorization", f"Basic {basic}"))
    peer = h11.Connection(h11.CLIENT, max_incomplete_event_size=_LONGEST_HEAD)
    request = h11.Request(method="CONNECT", target=target, headers=headers)
    data = (peer.send(request) or b"") + (peer.send(h11.EndOfMessage()) or b"")
    await loop.sock_sendall(sock, data)
    answer = await _answer(peer, sock)
    if answer.status_code // 100 != 2:
        reason = bytes(answer.reason).decode("latin-1")[:_WORDS]
        text = f"{answer.status_code} {reason}".rstrip()
        if answer.status_code == _AUTHENTICATION_REQUIRED:
            raise ProxyRefused(_refusal(proxy, text))
        raise OSError(f"the proxy says: {text}")
    if peer.trailing_data[0]:
        # The broker never speaks first.
        raise OSError("the proxy sent more than its answer")


async def _answer(peer: h11.Connection, sock: socket.socket) -> h11.Response:
    """Read the head of the answer, and not a byte that comes after it."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            event = peer.next_event()
        except h11.RemoteProtocolError as error:
            raise OSError(f"it is not an HTTP proxy: {error}") from None
        if isinstance(event, h11.Response):
            return event
        if event is h11.NEED_DATA:
            peer.receive_data(await loop.sock_recv(sock, _READ))
        elif isinstance(event, h11.ConnectionClosed):
            raise ConnectionResetError("the proxy closed the connection")


def _refusal(proxy: Proxy, text: str) -> str:
    what = (
        "wants a user and a password"
        if proxy.username is None
        else ("does not accept the user and the password")
    )
    return f"the proxy {what}: {text}"
