"""A network in memory that takes time, and that can be cut."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final

from kafkaio._net.memory import MemoryNetwork, MemoryTransport
from kafkaio._net.transport import Dial, DialOptions, FrameSink, Transport
from kafkaio.errors import BrokerNotAvailable
from kafkaio.protocol.message import Buffer

__all__ = ["Network", "OnWrite", "Weather"]

#: Told of what a client writes: its name, its end of the connection, the node's port,
#: the bytes of the frame.
OnWrite = Callable[[str, MemoryTransport, int, Sequence[Buffer]], None]

#: Two things never arrive at one moment on one connection: timers keep no order then.
_TICK: Final = 1e-6
#: Most seconds that a straggler takes longer than others.
_STRAGGLES: Final = 1.5


@dataclass(frozen=True, slots=True)
class Weather:
    """How long things are under way.

    Attributes:
        least: seconds that everything takes.
        most: seconds that nothing takes longer than, but for stragglers.
        stragglers: the share of those that take up to 1.5 seconds longer, as after a
            lost packet; what is written behind one waits for it.
    """

    least: float = 0.0005
    most: float = 0.005
    stragglers: float = 0.0


class _Way:
    """One direction of one connection."""

    def __init__(self, dice: random.Random, weather: Weather) -> None:
        self._dice = dice
        self._least = weather.least
        self._spread = weather.most - weather.least
        self._stragglers = weather.stragglers
        self._last = 0.0
        #: Most seconds that everything takes longer.
        self.slowness = 0.0
        self._held: list[Callable[[], None]] | None = None

    def carry(self, arrive: Callable[[], None]) -> None:
        """Let something arrive after those before it, when it has had its time."""
        if self._held is not None:
            self._held.append(arrive)
            return
        loop = asyncio.get_running_loop()
        spread = self._spread + self.slowness
        if self._dice.random() < self._stragglers:
            spread += _STRAGGLES
        due = loop.time() + self._least + spread * self._dice.random()
        self._last = max(self._last + _TICK, due)
        loop.call_at(self._last, arrive)

    def hold(self) -> None:
        """Let nothing arrive any more; what is under way does."""
        self._held = self._held or []

    def release(self) -> None:
        """Let everything arrive that was held up, and what comes."""
        held, self._held = self._held or [], None
        for arrive in held:
            self.carry(arrive)


class _ClientEnd(MemoryTransport):
    """A client's end, with a word about every frame that it writes."""

    def __init__(
        self, max_frame_size: int, way: _Way, told: Callable[[Sequence[Buffer]], None]
    ) -> None:
        super().__init__(max_frame_size, way.carry)
        self._told = told

    def write(self, parts: Sequence[Buffer]) -> None:
        """Send bytes."""
        if self.is_open:
            self._told(parts)
        super().write(parts)


class _Link:
    """One connection between a client and a node."""

    def __init__(
        self, client: str, port: int, ends: tuple[MemoryTransport, MemoryTransport]
    ) -> None:
        self.client = client
        self.port = port
        self.ends = ends
        self.ways: tuple[_Way, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether one of the ends has not learned that the connection ended."""
        return any(end.is_open for end in self.ends)


class Network(MemoryNetwork):
    """Every connection between clients and nodes, in the hand of a simulation.

    Time on the way is drawn anew for every write, by a connection's own dice: how
    one connection fares does not depend on what others do.

    Args:
        seed: for the dice.
        weather: how long things are under way.
        on_write: told of every frame that a client writes.
    """

    def __init__(self, seed: int, weather: Weather, on_write: OnWrite) -> None:
        super().__init__()
        self._seed = seed
        self._weather = weather
        self._on_write = on_write
        self._links: list[_Link] = []
        self._numbers: dict[tuple[str, int], count[int]] = {}
        # Most seconds that things take longer between a client and a port.
        self._slow: dict[tuple[str, int], float] = {}
        # Pairs of client and port that cannot hear each other; "" is every client.
        self._cuts: dict[tuple[str, int], int] = {}
        self._gone: set[str] = set()
        # Set, and another in its place, whenever one of them ends.
        self._healed = asyncio.Event()

    @property
    def open_links(self) -> list[str]:
        """The connections there are, by client and port."""
        self._sweep()
        return [f"{link.client} to {link.port}" for link in self._links]

    def dial_of(self, client: str) -> Dial:
        """How a client dials, so that it is known by its name."""

        async def dial(
            host: str, port: int, sink: FrameSink, options: DialOptions
        ) -> Transport:
            await asyncio.sleep(self._weather.most)
            if client in self._gone:
                raise BrokerNotAvailable(f"{client} is gone")
            while self._is_cut(client, port):
                await self._healed.wait()
            return self._connect(client, (host, port), sink, options)

        return dial

    def _connect(
        self,
        client: str,
        address: tuple[str, int],
        sink: FrameSink,
        options: DialOptions,
    ) -> Transport:
        host, port = address
        number = next(self._numbers.setdefault((client, port), count()))
        # A text, whose seed is the same in every process.
        dice = random.Random(f"{self._seed} {client} {port} {number}")
        there, back = _Way(dice, self._weather), _Way(dice, self._weather)

        def told(parts: Sequence[Buffer]) -> None:
            self._on_write(client, near, port, parts)

        near = _ClientEnd(options.max_frame_size, there, told)
        far = MemoryTransport(options.max_frame_size, back.carry)
        self.join(host, port, near, far, sink)
        self._sweep()
        link = _Link(client, port, (near, far))
        link.ways = there, back
        there.slowness = back.slowness = self._slow.get((client, port), 0.0)
        self._links.append(link)
        return near

    def _sweep(self) -> None:
        self._links = [link for link in self._links if link.is_open]

    # ---- what a simulation does --------------------------------------------------

    def cut(self, client: str, port: int) -> None:
        """Let nothing through between a client, or all for "", and a node."""
        self._cuts[client, port] = self._cuts.get((client, port), 0) + 1
        for way in self._ways(client, port):
            way.hold()

    def heal(self, client: str, port: int) -> None:
        """Undo one ``cut``; what was held up arrives once nothing else is cut."""
        left = self._cuts.pop((client, port)) - 1
        if left:
            self._cuts[client, port] = left
        for link in self._links:
            if not self._is_cut(link.client, link.port):
                for way in link.ways:
                    way.release()
        self._healed.set()
        self._healed = asyncio.Event()

    def slow_down(self, client: str, port: int, seconds: float) -> None:
        """Let everything between a client and a node take up to that much longer."""
        self._slow[client, port] = seconds
        for way in self._ways(client, port):
            way.slowness = seconds

    def remove(self, client: str) -> None:
        """Break a client's connections off, and let it make no more."""
        self._gone.add(client)
        self.reset(client)

    def reset(self, client: str) -> None:
        """Break a client's connections off."""
        for link in self._links:
            if link.client == client:
                link.ends[0].reset(ConnectionResetError("reset by the simulation"))

    def _ways(self, client: str, port: int) -> list[_Way]:
        return [
            way
            for link in self._links
            if client in {"", link.client} and port == link.port
            for way in link.ways
        ]

    def _is_cut(self, client: str, port: int) -> bool:
        return (client, port) in self._cuts or ("", port) in self._cuts
