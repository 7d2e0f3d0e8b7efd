"""Connects over TCP and TLS to the first address of a name that answers.

All addresses of the name are tried (``use_all_dns_ips``, KIP-602), one beside the other
where one takes long (``race.py``). An address whose TLS handshake fails, or hangs,
leaves the rest of the time to the others. An error names the step that failed, for
every address.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from functools import partial
from typing import Final

from kafkaio._dataclass import dataclass
from kafkaio._net.race import Attempt, Race
from kafkaio._net.resolver import Resolver
from kafkaio._net.sockets import connected_socket
from kafkaio._net.tls import TlsLayer, explained, is_refusal
from kafkaio._net.transport import (
    Dial,
    DialledTransport,
    DialOptions,
    FrameSink,
    Transport,
)
from kafkaio._runtime.clock import now
from kafkaio.errors import AuthenticationError, BrokerNotAvailable

__all__ = ["TcpDial"]

#: How many addresses an error names.
_NAMED: Final = 8


class TcpDial(Dial):
    """Connects over TCP, with TLS where the options have a context; one per client."""

    def __init__(self) -> None:
        self._resolver = Resolver()

    async def __call__(
        self, host: str, port: int, sink: FrameSink, options: DialOptions
    ) -> Transport:
        """Connect; if it fails, or is cancelled, nothing is left open.

        Args:
            host: name or address; with TLS the certificate has to be valid for it. A
                dot at the end of a name is for the name server alone.
            port: port number.
            sink: receives what arrives.
            options: limits and socket options.

        Returns:
            A connected transport.

        Raises:
            BrokerNotAvailable: no address could be reached; the message names the step
                and the cause for each.
            AuthenticationError: the TLS handshake failed, and no address was left.
        """
        until = now() + options.timeout
        failures = _Failures(host, port)
        routes = await self._routes(host, port, options)
        while (found := await _first(routes, until, failures)) is not None:
            route, sock = found
            # A handshake that hangs leaves the other addresses their share of the time.
            limit = max(0.0, until - now()) / (len(routes) + 1)
            step = "TLS handshake" if options.ssl_context else "open"
            try:
                async with asyncio.timeout(limit):
                    return await _wrap(sock, host, port, sink, options)
            except OSError as error:  # TimeoutError and ssl.SSLError are kinds of it
                failures.add(route, step, error, limit)
        raise failures.error()

    async def _routes(self, host: str, port: int, options: DialOptions) -> list[_Route]:
        """The ways to reach a host, in the order in which to try them."""
        try:
            found = await self._resolver.resolve(host, port, options.timeout)
        except (OSError, ValueError) as error:
            reason = _reason(error, "resolve name", options.timeout)
            what = f"{host}:{port}: resolve name: {reason}"
            raise BrokerNotAvailable(what) from error
        return [
            _Route(str(address[1][0]), partial(connected_socket, address, options))
            for address in found
        ]


@dataclass(frozen=True, slots=True)
class _Route:
    """One way to reach a host, and its name for errors."""

    name: str
    connect: Attempt


async def _first(
    routes: list[_Route], until: float, failures: _Failures
) -> tuple[_Route, socket.socket] | None:
    """Connect by the first route that can be used.

    That route, and those that cannot be used, are taken from the list.

    Returns:
        The route and its socket; None if no route is left, or no time.
    """
    if not routes:
        return None
    began, race = now(), Race([route.connect for route in routes])
    sock = await race.run(until)
    for place, error in race.failures.items():
        if not isinstance(error, OSError):  # a bug, or a misconfiguration
            if sock is not None:
                sock.close()
            raise error
        failures.add(routes[place], "connect", error)
    if sock is None:
        for place in range(len(routes)):
            if place not in race.failures:
                late = TimeoutError()
                failures.add(routes[place], "connect", late, now() - began)
        return None
    assert race.winner is not None
    winner = routes[race.winner]
    routes[:] = [
        route
        for place, route in enumerate(routes)
        if place != race.winner and place not in race.failures
    ]
    return winner, sock


class _Failures:
    """Why routes to a host could not be used, in the order in which they failed."""

    def __init__(self, host: str, port: int) -> None:
        self._address = f"{host}:{port}"
        self._texts: list[str] = []
        self._last: OSError = TimeoutError("there was no time left")

    def add(self, route: _Route, step: str, error: OSError, limit: float = 0.0) -> None:
        """Note that a step has failed; ``limit`` is the time that it had."""
        self._texts.append(f"{route.name}: {step}: {_reason(error, step, limit)}")
        self._last = error

    def error(self) -> BrokerNotAvailable | AuthenticationError:
        """What to raise."""
        shown = self._texts[:_NAMED] or [str(self._last)]
        if len(self._texts) > _NAMED:
            shown.append(f"and {len(self._texts) - _NAMED} more")
        what = f"{self._address}: " + "; ".join(shown)
        cause = self._last
        error: BrokerNotAvailable | AuthenticationError = BrokerNotAvailable(what)
        if is_refusal(cause):
            error = AuthenticationError(
                what,
                mechanism="TLS",
                broker=self._address,
                step="TLS handshake",
                reason=str(cause),
            )
        error.__cause__ = cause
        return error


def _reason(error: Exception, step: str, limit: float) -> str:
    if type(error) is TimeoutError and not error.errno:
        return f"no answer within {round(limit, 2):g} s"
    if step == "TLS handshake":
        return explained(error)
    return str(error) or type(error).__name__


async def _wrap(
    sock: socket.socket, host: str, port: int, sink: FrameSink, options: DialOptions
) -> Transport:
    """Make the transport of a connected socket; the socket is closed if that fails."""
    loop = asyncio.get_running_loop()
    address = f"{host}:{port}"
    transport = DialledTransport(options.max_frame_size, sink, options.large, address)
    context, layer = options.ssl_context, None
    lower: asyncio.BaseProtocol = transport
    try:
        if context is not None:
            lower = layer = TlsLayer(transport, context, certified_name(host), address)
        await loop.create_connection(lambda: lower, sock=sock)
        if layer is not None:
            await layer.secured
        transport.adopt()
    except BaseException:
        if layer is not None:
            layer.abort()
        with suppress(OSError):
            sock.close()
        raise
    return transport


def certified_name(host: str) -> str:
    """The name that a certificate has for a host.

    The dot that ends an absolute name (``broker.ns.svc.cluster.local.``) is neither in
    certificates nor in SNI (RFC 6066), nor is the scope of an IPv6 address.
    """
    return host.partition("%")[0].removesuffix(".")
