"""A network in memory that takes time, and that can be cut."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from itertools import count
from typing import Final

from kafkaio._net.memory import MemoryNetwork, MemoryTransport
from kafkaio._net.transport import Dial, DialOptions, FrameSink, Transport
from kafkaio.protocol.message import Buffer

__all__ = ["Network", "OnWrite"]

#: Told of what a client writes: its name, the node's port, the bytes of the frame.
OnWrite = Callable[[str, int, Sequence[Buffer]], None]

#: Two things never arrive at one moment on one connection: timers keep no order then.
_TICK: Final = 1e-6


class _Way:
    """One direction of one connection."""

    def __init__(self, dice: random.Random, least: float, most: float) -> None:
        self._dice = dice
        self._least = least
        self._spread = most - least
        self._last = 0.0
        self._held: list[Callable[[], None]] | None = None

    def carry(self, arrive: Callable[[], None]) -> None:
        """Let something arrive after those before it, when it has had its time."""
        if self._held is not None:
            self._held.append(arrive)
            return
        loop = asyncio.get_running_loop()
        due = loop.time() + self._least + self._spread * self._dice.random()
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
        latency: least and most seconds from one end to the other.
        on_write: told of every frame that a client writes.
    """

    def __init__(
        self, seed: int, latency: tuple[float, float], on_write: OnWrite
    ) -> None:
        super().__init__()
        self._seed = seed
        self._latency = latency
        self._on_write = on_write
        self._links: list[_Link] = []
        self._numbers: dict[tuple[str, int], count[int]] = {}
        # Pairs of client and port that cannot hear each other; "" is every client.
        self._cuts: dict[tuple[str, int], int] = {}
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
            await asyncio.sleep(self._latency[1])
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
        there, back = _Way(dice, *self._latency), _Way(dice, *self._latency)

        def told(parts: Sequence[Buffer]) -> None:
            self._on_write(client, port, parts)

        near = _ClientEnd(options.max_frame_size, there, told)
        far = MemoryTransport(options.max_frame_size, back.carry)
        self.join(host, port, near, far, sink)
        self._sweep()
        link = _Link(client, port, (near, far))
        link.ways = there, back
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

    def reset(self, client: str, port: int | None = None) -> None:
        """Break a client's connections off, to one node or to all."""
        for link in self._links:
            if link.client == client and port in {None, link.port}:
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
