"""A cluster that is far away: every byte takes half a round trip, in both directions.

On virtual time, and with the embedded broker, nothing else takes any time. So what an
operation takes, divided by the round trip, is the number of round trips that it waits
for, one after the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from kafkaio._net.transport import Dial, DialOptions, FrameSinkPort, TransportPort
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._message import Buffer

__all__ = ["Asked", "Far"]

#: Seconds between two arrivals on one way: equal timers have no order.
_TICK: Final = 1e-6
_LENGTH_SIZE: Final = 4


class Asked(NamedTuple):
    """A request that has left.

    Attributes:
        at: when, by the clock of the loop.
        api: what it asks.
    """

    at: float
    api: ApiKey


class Far:
    """Connects to a cluster that is far away.

    Args:
        dial: connects to it as if it were near.
        round_trip: seconds from a request to its answer.

    Attributes:
        round_trip: the same.
        asked: all requests that have left, in order.
        dialled: how many connections were made.
    """

    def __init__(self, dial: Dial, round_trip: float = 0.02) -> None:
        self._dial = dial
        self.round_trip = round_trip
        self.asked: list[Asked] = []
        self.dialled = 0

    async def __call__(
        self, host: str, port: int, sink: FrameSinkPort, options: DialOptions
    ) -> TransportPort:
        """Connect; that takes a round trip as well."""
        self.dialled += 1
        await asyncio.sleep(self.round_trip)
        end = await self._dial(host, port, _FarSink(sink, self._way()), options)
        far: Any = _FarEnd(end, self._way(), self._note)
        transport: TransportPort = far
        return transport

    def trips_since(self, at: float) -> float:
        """How many round trips fit into the time since then."""
        return (asyncio.get_running_loop().time() - at) / self.round_trip

    def _way(self) -> _Way:
        return _Way(self.round_trip / 2)

    def _note(self, data: bytes) -> None:
        at = asyncio.get_running_loop().time()
        while data:
            end = _LENGTH_SIZE + int.from_bytes(data[:_LENGTH_SIZE], "big")
            api = int.from_bytes(data[_LENGTH_SIZE : _LENGTH_SIZE + 2], "big")
            self.asked.append(Asked(at, ApiKey(api)))
            data = data[end:]


class _Way:
    """One direction of one connection."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._last = 0.0

    def carry(self, arrive: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        self._last = max(self._last + _TICK, loop.time() + self._seconds)
        loop.call_at(self._last, arrive)


class _FarSink:
    def __init__(self, sink: FrameSinkPort, way: _Way) -> None:
        self._sink = sink
        self._way = way
        self.connection_lost = sink.connection_lost

    def frame_received(self, frame: Buffer) -> None:
        data = bytes(frame)
        self._way.carry(lambda: self._sink.frame_received(data))


class _FarEnd:
    def __init__(self, end: Any, way: _Way, note: Callable[[bytes], None]) -> None:
        self._end = end
        self._way = way
        self._note = note

    def write(self, parts: Sequence[Buffer]) -> None:
        data = b"".join(parts)
        self._note(data)
        self._way.carry(lambda: self._end.write([data]))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._end, name)
