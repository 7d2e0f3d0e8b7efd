"""Connects over TCP and TLS to the first address of a name that answers.

All addresses of the name are tried (``use_all_dns_ips``, KIP-602), one beside the other
where one takes long (``race.py``). An address whose TLS handshake fails, or hangs,
leaves the rest of the time to the others. An error names the step that failed, for
every address.

By a proxy the same holds for the proxy's own addresses. Names are looked up by the
client or by the proxy, as the proxy's scheme says.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from kafkaio._dataclass import dataclass
from kafkaio._net.race import STAGGER, Attempt, Race
from kafkaio._net.resolver import Address, Resolver
from kafkaio._net.sockets import connected_socket
from kafkaio._net.transport import (
    Dial,
    DialledTransport,
    DialOptions,
    FrameSinkPort,
    ProxyRefused,
    TransportPort,
)
from kafkaio._runtime.clock import now
from kafkaio._runtime.scopes import CancelScope
from kafkaio.errors import AuthenticationError, BrokerNotAvailable

if TYPE_CHECKING:
    from kafkaio._config.proxy import Proxy

#: Seconds that a proxy has for one address before the next is tried beside it: it makes
#: two connections.
PROXY_STAGGER: Final = 1.0
#: The part of the time to connect that a proxy may take.
_OF_PROXY: Final = 0.95
#: How many addresses an error names.
_NAMED: Final = 8
#: How many silent addresses are remembered.
_REMEMBERED: Final = 1_000


class TcpDial(Dial):
    """Connects over TCP, with TLS where the options have a context; one per client."""

    def __init__(self) -> None:
        self._resolver = Resolver()
        self._silent = _Silent()

    async def __call__(
        self, host: str, port: int, sink: FrameSinkPort, options: DialOptions
    ) -> TransportPort:
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
                and the cause for each, and the proxy if there is one.
            AuthenticationError: the TLS handshake failed, and no address was left; or
                the proxy does not accept the login.
        """
        until = now() + options.timeout
        failures = _Failures(f"{host}:{port}")
        routes = await self._routes(host, port, options, until)
        self._silent.put_last(routes)
        stagger = STAGGER if options.proxy is None else PROXY_STAGGER
        while found := await _first(routes, until, failures, stagger):
            route, sock = found
            # A handshake that hangs leaves the other addresses their share of the time.
            limit = max(0.0, until - now()) / (len(routes) + 1)
            step = "TLS handshake" if options.ssl_context else "open"
            try:
                async with asyncio.timeout(limit):
                    transport = await _wrap(sock, host, port, sink, options)
            except OSError as error:  # TimeoutError and ssl.SSLError are kinds of it
                failures.add(route, step, error, limit)
                if isinstance(error, TimeoutError):
                    self._silent.ended(route, received=0)
            else:
                transport.on_end = partial(self._silent.ended, route)
                return transport
        raise failures.error()

    async def _routes(
        self, host: str, port: int, options: DialOptions, until: float
    ) -> list[_Route]:
        """The ways to reach a host, in the order in which to try them."""
        proxy = options.proxy
        if proxy is not None and proxy.resolves_names:
            target = (host, port)
            connect = partial(self._by_proxy, proxy, target, options, until)
            return [_Route(f"proxy {proxy}", target, connect)]
        try:
            found = await self._resolver.resolve(host, port, until - now())
        except (OSError, ValueError) as error:
            reason = _reason(error, "resolve name", options.timeout)
            what = f"{host}:{port}: resolve name: {reason}"
            raise BrokerNotAvailable(what) from error
        direct = [_direct(address, options) for address in found]
        if proxy is None:
            return direct
        return [
            _Route(
                f"{each.name} by proxy {proxy}",
                each.address,
                partial(self._by_proxy, proxy, (each.name, port), options, until),
            )
            for each in direct
        ]

    async def _by_proxy(
        self, proxy: Proxy, target: tuple[str, int], options: DialOptions, until: float
    ) -> socket.socket:
        """Connect to a proxy, and by it to a host.

        Raises:
            ProxyRefused: the proxy does not accept the login.
            OSError: says which of the two could not be reached.
        """
        from kafkaio._net.tunnel import open_tunnel  # needs the extra

        # Less than the whole has, so that an error says which step was late.
        seconds = _OF_PROXY * max(0.0, until - now())
        limit = now() + seconds
        try:
            found = await self._resolver.resolve(proxy.host, proxy.port, seconds)
        except (OSError, ValueError) as error:
            reason = _reason(error, "resolve name", seconds)
            raise OSError(f"resolve the proxy's name: {reason}") from error
        failures = _Failures("the proxy cannot be reached")
        routes = [_direct(address, options) for address in found]
        reached = await _first(routes, limit, failures)
        if reached is None:
            raise OSError(str(failures.error()))
        sock = reached[1]
        try:
            with CancelScope(deadline=limit) as scope:
                await open_tunnel(proxy, sock, *target)
        except BaseException:
            sock.close()
            raise
        if scope.cancelled_caught:
            sock.close()
            raise OSError(f"the proxy did not answer within {seconds:.3g} s")
        return sock


@dataclass(frozen=True, slots=True)
class _Route:
    """One way to reach a host, and its name for errors."""

    name: str
    address: tuple[str | int | bytes, ...]
    connect: Attempt


class _Silent:
    """Addresses that accepted the last connection, and sent nothing on it.

    A process that hangs, and a load balancer without a broker behind it, accept
    connections. Without this, other addresses of the name would never be tried, because
    the first attempt succeeds each time.
    """

    def __init__(self) -> None:
        # The latest last.
        self._addresses: dict[tuple[str | int | bytes, ...], None] = {}

    def ended(self, route: _Route, received: int) -> None:
        """Note that a connection has ended, and how many bytes it received."""
        self._addresses.pop(route.address, None)
        if not received:
            self._addresses[route.address] = None
            if len(self._addresses) > _REMEMBERED:
                del self._addresses[next(iter(self._addresses))]

    def put_last(self, routes: list[_Route]) -> None:
        """Put the routes to such addresses behind the others, the latest last."""
        order = {address: place for place, address in enumerate(self._addresses, 1)}
        routes.sort(key=lambda route: order.get(route.address, 0))


def _direct(address: Address, options: DialOptions) -> _Route:
    connect = partial(connected_socket, address, options)
    return _Route(str(address[1][0]), address[1], connect)


async def _first(
    routes: list[_Route], until: float, failures: _Failures, stagger: float = STAGGER
) -> tuple[_Route, socket.socket] | None:
    """Connect by the first route that can be used.

    That route, and those that cannot be used, are taken from the list.

    Returns:
        The route and its socket; None if no route is left, or no time.
    """
    if not routes:
        return None
    began, race = now(), Race([route.connect for route in routes], stagger)
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
                failures.add(routes[place], "connect", late, until - began)
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

    def __init__(self, address: str) -> None:
        self._address = address
        self._texts: list[str] = []
        self._last: OSError = TimeoutError("no time was left")

    def add(self, route: _Route, step: str, error: OSError, limit: float = 0.0) -> None:
        """Note that a step has failed; ``limit`` is the time that it had."""
        self._texts.append(f"{route.name}: {step}: {_reason(error, step, limit)}")
        self._last = error

    def error(self) -> BrokerNotAvailable | AuthenticationError:
        """Make the exception to raise."""
        shown = self._texts[:_NAMED] or [str(self._last)]
        if len(self._texts) > _NAMED:
            shown.append(f"and {len(self._texts) - _NAMED} more")
        what = f"{self._address}: " + "; ".join(shown)
        cause = self._last
        error: BrokerNotAvailable | AuthenticationError = BrokerNotAvailable(what)
        if _is_refusal(cause) or isinstance(cause, ProxyRefused):
            by_proxy = isinstance(cause, ProxyRefused)
            error = AuthenticationError(
                what,
                mechanism="" if by_proxy else "TLS",
                broker=self._address,
                step="connect" if by_proxy else "TLS handshake",
                reason=str(cause),
            )
        error.__cause__ = cause
        return error


def _reason(error: Exception, step: str, limit: float) -> str:
    if type(error) is TimeoutError and not error.errno:
        return f"no answer within {round(limit, 2):g} s"
    if step == "TLS handshake":
        from kafkaio._net.tls import explained

        return explained(error)
    return str(error) or type(error).__name__


def _is_refusal(cause: BaseException | None) -> bool:
    """Whether TLS was refused, by us or by the peer, rather than interrupted."""
    return isinstance(cause, ssl.SSLError) and not isinstance(
        cause, (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)
    )


async def _wrap(
    sock: socket.socket, host: str, port: int, sink: FrameSinkPort, options: DialOptions
) -> DialledTransport:
    """Make the transport of a connected socket; the socket is closed if that fails."""
    loop = asyncio.get_running_loop()
    address = f"{host}:{port}"
    context, layer = options.ssl_context, None
    transport = DialledTransport(
        options.max_frame_size,
        sink,
        options.large,
        address,
        is_over_tls=context is not None,
    )
    lower: asyncio.BaseProtocol = transport
    try:
        if context is not None:
            from kafkaio._net.tls import TlsLayer

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
