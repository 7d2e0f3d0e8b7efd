"""A cluster whose clients go through proxies, and the weather in these proxies.

Each node has a second listener, CHAOS, which advertises a proxy. Brokers talk to each
other, and the director to them, through the listener PLAINTEXT, which is calm.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, assert_never

from kafkaio.testing.kafka._cluster import JvmCluster
from kafkaio.testing.kafka._nodes import JvmNode, free_ports
from kafkaio.testing.kafka._options import ClusterOptions
from kafkaio.testing.kafka._properties import PLAINTEXT, Properties
from tests.support.kafka import sidecars_of

CHAOS: Final = "CHAOS"
_READ_BYTES: Final = 65_536
_HOST: Final = "127.0.0.1"

Weather: TypeAlias = Literal["cut", "stall", "delay", "swallow"]
_WEATHERS: Final[dict[Weather, int]] = {"cut": 3, "stall": 2, "delay": 3, "swallow": 2}


class ProxiedCluster(JvmCluster):
    """A cluster with the listener CHAOS.

    Attributes:
        routes: the ports of each node's proxy and of its listener, by node id.
    """

    def __init__(self, options: ClusterOptions) -> None:
        super().__init__(options, sidecars_of(options))
        ports = iter(free_ports(2 * options.brokers))
        self.routes: dict[int, tuple[int, int]] = {
            node: (next(ports), next(ports)) for node in range(1, options.brokers + 1)
        }

    def _properties(self, node: JvmNode) -> Properties:
        found = super()._properties(node)
        proxy, listener = self.routes[node.id]
        for key, more in (
            ("listeners", f"{CHAOS}://{_HOST}:{listener}"),
            ("advertised.listeners", f"{CHAOS}://{_HOST}:{proxy}"),
            ("listener.security.protocol.map", f"{CHAOS}:{PLAINTEXT}"),
        ):
            found[key] = f"{found[key]},{more}"
        return found

    @property
    def chaotic_servers(self) -> str:
        """Bootstrap servers whose brokers are reached through the proxies."""
        return ",".join(f"{_HOST}:{proxy}" for proxy, _ in self.routes.values())


@dataclass(eq=False)
class _Link:
    """A proxied connection.

    Attributes:
        client: towards the client.
        broker: towards the broker.
        swallows: whether answers are read and dropped.
    """

    client: asyncio.StreamWriter
    broker: asyncio.StreamWriter
    swallows: bool = False

    def cut(self) -> None:
        """Reset both connections."""
        self.client.transport.abort()
        self.broker.transport.abort()


@dataclass(eq=False)
class _Proxy:
    """The proxy of one broker; every connection to it has the same weather.

    Attributes:
        port: of the broker's listener.
        links: the connections that are open.
        delay: seconds by which everything is late.
        flows: unset while nothing is passed on.
    """

    port: int
    links: set[_Link] = field(default_factory=set)
    delay: float = 0.0
    flows: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Pass on what one client and the broker say, until either has ended."""
        try:
            answers, broker = await asyncio.open_connection(_HOST, self.port)
        except OSError:
            writer.transport.abort()
            return
        link = _Link(writer, broker)
        self.links.add(link)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._pass_on(reader, link, link.broker))
                tasks.create_task(self._pass_on(answers, link, link.client))
        finally:
            self.links.discard(link)
            link.cut()

    async def _pass_on(
        self, source: asyncio.StreamReader, link: _Link, sink: asyncio.StreamWriter
    ) -> None:
        with suppress(OSError):
            while data := await source.read(_READ_BYTES):
                await self.flows.wait()
                if self.delay:
                    await asyncio.sleep(self.delay)
                if link.swallows and sink is link.client:
                    continue
                sink.write(data)
                await sink.drain()
        # Either end closes both: a half-open connection would never be noticed.
        link.cut()


class Chaos:
    """The proxies of a cluster.

    Args:
        cluster: its routes.
        tell: hears of each weather, and of the node.
    """

    def __init__(
        self, cluster: ProxiedCluster, tell: Callable[[str, int], None]
    ) -> None:
        self._cluster = cluster
        self._tell = tell
        self._proxies: dict[int, _Proxy] = {}
        self._servers: list[asyncio.Server] = []

    async def start(self) -> None:
        """Listen; nothing is disturbed before `run`."""
        for node, (port, listener) in self._cluster.routes.items():
            proxy = _Proxy(listener)
            proxy.flows.set()
            self._proxies[node] = proxy
            server = await asyncio.start_server(proxy.serve, _HOST, port)
            self._servers.append(server)

    async def close(self) -> None:
        """Stop listening, and cut every connection."""
        for server in self._servers:
            server.close()
        for proxy in self._proxies.values():
            for link in list(proxy.links):
                link.cut()
        for server in self._servers:
            await server.wait_closed()

    async def run(
        self, rng: random.Random, pause: Callable[[float], Awaitable[bool]]
    ) -> None:
        """Disturb one proxy after the other, until `pause` tells that it is over."""
        while await pause(rng.expovariate(1 / 1.5)):
            (what,) = rng.choices(list(_WEATHERS), list(_WEATHERS.values()))
            node = rng.choice(list(self._proxies))
            self._tell(f"proxy-{what}", node)
            await self._disturb(what, self._proxies[node], rng, pause)

    async def _disturb(
        self,
        what: Weather,
        proxy: _Proxy,
        rng: random.Random,
        pause: Callable[[float], Awaitable[bool]],
    ) -> None:
        match what:
            case "cut":
                for link in list(proxy.links):
                    if rng.random() < 0.7:
                        link.cut()
            case "stall":
                proxy.flows.clear()
                await pause(rng.uniform(0.2, 4.0))
                proxy.flows.set()
            case "delay":
                proxy.delay = rng.choice((0.005, 0.02, 0.1))
                await pause(rng.uniform(0.5, 3.0))
                proxy.delay = 0.0
            case "swallow":  # requests are executed, answers never come
                muted = list(proxy.links)
                for link in muted:
                    link.swallows = True
                await pause(rng.uniform(0.02, 1.0))
                for link in muted:
                    link.cut()
            case _:
                assert_never(what)
