"""A broker that is far away: a proxy that delays what goes to it and comes back.

`add_listeners` gives a Kafka of ours a listener for each delay, which advertises the
proxy's port, and `proxying` runs the proxy in a process of its own. It delays each byte
by half of the delay on its way to the broker, and by the other half on its way back,
and limits nothing else. So the delay is the time of a round trip.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Sequence

from kafkaio.testing.kafka import Kafka
from kafkaio.testing.kafka._cluster import JvmCluster

NODE = 1

#: Seconds of a round trip, port of the proxy, port of the broker.
Route = tuple[float, int, int]


class Pipe(asyncio.Protocol):
    """One end of a proxied connection; passes data on to the other end, later."""

    def __init__(self, delay: float, target: tuple[str, int] | None = None) -> None:
        self._delay = delay
        self._target = target
        self._loop = asyncio.get_running_loop()
        self._held: deque[tuple[float, bytes | None]] = deque()
        self._transport: asyncio.Transport | None = None
        self._is_timed = False
        self.other: Pipe | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.get_extra_info("socket").setsockopt(
            socket.IPPROTO_TCP, socket.TCP_NODELAY, 1
        )
        if self._target is not None:
            self._dialling = self._loop.create_task(self._dial(*self._target))

    async def _dial(self, host: str, port: int) -> None:
        # Bytes that arrive before the broker is connected are kept.
        far = Pipe(self._delay)
        far.other = self
        await self._loop.create_connection(lambda: far, host, port)
        self.other = far
        self._plan()

    def data_received(self, data: bytes) -> None:
        self._hold(data)

    def connection_lost(self, error: Exception | None) -> None:
        self._hold(None)

    def _hold(self, data: bytes | None) -> None:
        self._held.append((self._loop.time() + self._delay, data))
        self._plan()

    def _plan(self) -> None:
        if self._held and self.other is not None and not self._is_timed:
            self._is_timed = True
            self._loop.call_at(self._held[0][0], self._pass_on)

    def _pass_on(self) -> None:
        self._is_timed = False
        far = None if self.other is None else self.other._transport
        while self._held and self._held[0][0] <= self._loop.time():
            _, data = self._held.popleft()
            if far is not None and not far.is_closing():
                far.close() if data is None else far.write(data)
        self._plan()


async def proxy(routes: Sequence[Route]) -> None:
    """Serve for ever."""
    loop = asyncio.get_running_loop()
    for delay, port, broker in routes:

        def accept(delay: float = delay, broker: int = broker) -> Pipe:
            return Pipe(delay / 2, ("127.0.0.1", broker))

        await loop.create_server(accept, "127.0.0.1", port)
    print("ready", flush=True)
    await asyncio.Event().wait()


def free_ports(count: int) -> list[int]:
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


async def add_listeners(kafka: Kafka, delays: Sequence[float]) -> list[Route]:
    """Give the broker a listener for each delay, which advertises the proxy's port."""
    ports = free_ports(2 * len(delays))
    routes = list(zip(delays, ports[::2], ports[1::2], strict=True))
    assert isinstance(kafka.engine, JvmCluster)
    file = kafka.engine.directory / f"node{NODE}" / "server.properties"
    await kafka.stop(NODE)
    lines = dict(line.split("=", 1) for line in file.read_text().splitlines())
    for number, (_, here, broker) in enumerate(routes):
        name = f"FAR{number}"
        lines["listeners"] += f",{name}://127.0.0.1:{broker}"
        lines["advertised.listeners"] += f",{name}://127.0.0.1:{here}"
        lines["listener.security.protocol.map"] += f",{name}:PLAINTEXT"
    file.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    await kafka.start(NODE)
    return routes


@contextlib.contextmanager
def proxying(routes: Sequence[Route]) -> Iterator[None]:
    """Run the proxy while the body runs."""
    command = [sys.executable, __file__, json.dumps(routes)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)  # noqa: S603 - this
    try:
        assert process.stdout is not None
        process.stdout.readline()  # it serves
        yield
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    asyncio.run(proxy(json.loads(sys.argv[1])))
