"""A network in memory with latency, which can be cut."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Final

from kafkaio._net.memory import MAX_REQUEST_BYTES, MemoryNetwork, MemoryTransport
from kafkaio._net.transport import Dial, DialOptions, FrameSinkPort, TransportPort
from kafkaio.errors import BrokerNotAvailable
from kafkaio.protocol._message import Buffer

__all__ = ["Latency", "Network", "OnFrame", "OnWrite", "Wire"]

#: Called when a client writes a frame, with the connection and the bytes.
OnWrite = Callable[["Wire", Sequence[Buffer]], None]
#: Called when a client receives a frame, with the connection and its bytes.
OnFrame = Callable[["Wire", Buffer], None]

#: Seconds between two arrivals on one connection: equal timers have no order.
_TICK: Final = 1e-6
#: The most seconds that a straggler is delayed.
_STRAGGLES: Final = 1.5


@dataclass(frozen=True, slots=True)
class Latency:
    """How long bytes are in flight.

    Attributes:
        least: the fewest seconds.
        most: the most seconds, unless a write is a straggler.
        stragglers: the share of writes that take up to 1.5 seconds longer, as after a
            lost packet; later writes on the connection wait for them.
    """

    least: float = 0.0005
    most: float = 0.005
    stragglers: float = 0.0


class _Way:
    """One direction of one connection."""

    def __init__(self, rng: random.Random, latency: Latency) -> None:
        self._rng = rng
        self._least = latency.least
        self._spread = latency.most - latency.least
        self._stragglers = latency.stragglers
        self._last = 0.0
        #: The most additional seconds of every write.
        self.slowness = 0.0
        self._held: list[Callable[[], None]] | None = None

    def carry(self, arrive: Callable[[], None]) -> None:
        """Schedule an arrival, after all earlier ones."""
        if self._held is not None:
            self._held.append(arrive)
            return
        loop = asyncio.get_running_loop()
        spread = self._spread + self.slowness
        if self._rng.random() < self._stragglers:
            spread += _STRAGGLES
        due = loop.time() + self._least + spread * self._rng.random()
        self._last = max(self._last + _TICK, due)
        loop.call_at(self._last, arrive)

    def hold(self) -> None:
        """Hold up what is sent from now on; what is in flight arrives."""
        self._held = self._held or []

    def release(self) -> None:
        """Deliver what was held up, and what comes."""
        held, self._held = self._held or [], None
        for arrive in held:
            self.carry(arrive)


class _ClientEnd(MemoryTransport):
    """A client's end of a connection, which reports every frame that it writes."""

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


class Wire:
    """One connection, as its client knows it.

    Attributes:
        client: the client's name.
        port: the node's port.
        end: the client's end.
    """

    __slots__ = ("client", "end", "port")

    def __init__(self, client: str, port: int) -> None:
        self.client = client
        self.port = port
        self.end: MemoryTransport | None = None

    @property
    def is_open(self) -> bool:
        """Whether the client's end is open."""
        return self.end is not None and self.end.is_open


class _Sink:
    """Receives a client's frames, and reports them first."""

    def __init__(self, sink: FrameSinkPort, told: Callable[[Buffer], None]) -> None:
        self._sink = sink
        self._told = told
        self.connection_lost = sink.connection_lost

    def frame_received(self, frame: Buffer) -> None:
        """Take one frame."""
        self._told(frame)
        self._sink.frame_received(frame)


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
        """Whether an end does not know yet that the connection was closed."""
        return any(end.is_open for end in self.ends)


class Network(MemoryNetwork):
    """Every connection between clients and nodes, controlled by a simulation.

    The latency of each write is drawn by random numbers of its connection, so that it
    does not depend on what other connections do.

    Args:
        seed: seeds the random numbers.
        latency: how long bytes are in flight.
        on_write: called with every frame that a client writes.
        on_frame: called with every frame that a client receives.
    """

    def __init__(
        self, seed: int, latency: Latency, on_write: OnWrite, on_frame: OnFrame
    ) -> None:
        super().__init__()
        self._seed = seed
        self._latency = latency
        self._on_write = on_write
        self._on_frame = on_frame
        self._links: list[_Link] = []
        self._numbers: dict[tuple[str, int], count[int]] = {}
        # The most additional seconds between a client and a port.
        self._slow: dict[tuple[str, int], float] = {}
        # Pairs of client and port that are cut off, and how often; "" is every client.
        self._cuts: dict[tuple[str, int], int] = {}
        self._gone: set[str] = set()
        # Set and replaced whenever a cut ends.
        self._healed = asyncio.Event()

    @property
    def open_links(self) -> list[str]:
        """The open connections, by client and port."""
        self._sweep()
        return [f"{link.client} to {link.port}" for link in self._links]

    def dial_of(self, client: str) -> Dial:
        """Return how a client connects, so that the network knows it by its name."""

        async def dial(
            host: str, port: int, sink: FrameSinkPort, options: DialOptions
        ) -> TransportPort:
            await asyncio.sleep(self._latency.most)
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
        sink: FrameSinkPort,
        options: DialOptions,
    ) -> TransportPort:
        host, port = address
        number = next(self._numbers.setdefault((client, port), count()))
        # A string: its seed is the same in every process.
        rng = random.Random(f"{self._seed} {client} {port} {number}")
        there, back = _Way(rng, self._latency), _Way(rng, self._latency)

        wire = Wire(client, port)
        near = _ClientEnd(options.max_frame_size, there, partial(self._on_write, wire))
        wire.end = near
        far = MemoryTransport(MAX_REQUEST_BYTES, back.carry)
        self.join(host, port, near, far, _Sink(sink, partial(self._on_frame, wire)))
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
        """Cut the connections of a client, or of all for "", to a node."""
        self._cuts[client, port] = self._cuts.get((client, port), 0) + 1
        for way in self._ways(client, port):
            way.hold()

    def heal(self, client: str, port: int) -> None:
        """Undo one ``cut``; what was held up arrives unless another cut is left."""
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
        """Add up to so many seconds to everything between a client and a node."""
        self._slow[client, port] = seconds
        for way in self._ways(client, port):
            way.slowness = seconds

    def remove(self, client: str) -> None:
        """Reset a client's connections, and refuse new ones."""
        self._gone.add(client)
        self.reset(client)

    def reset(self, client: str) -> None:
        """Reset a client's connections."""
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
