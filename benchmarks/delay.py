"""How fast a producer with default options is when the broker is far away.

    python benchmarks/delay.py [--delay-ms 20,50] [--clients kafkaio,confluent]

The benchmark starts an Apache Kafka on this machine, with a listener for each delay.
The listener advertises a proxy in a process of its own. The proxy delays each byte by
half of the delay on its way to the broker, and by the other half on its way back, and
limits nothing else. So the delay is the time of a round trip.

Each run is a new process that writes records of 1 KiB without keys and checks every
acknowledgement. Clients and delays take turns. The output is the medians, in MB/s, and
the range. ``confluent`` needs confluent-kafka, which by default is not idempotent,
unlike kafkaio, and has any number of requests in flight; ``confluent-idempotent`` has
five. ``franz-go`` needs the compiled program of ``benchmarks/README.md``, named in the
environment variable ``FRANZBENCH``. ``--option name=value`` (a number) is an option of
kafkaio's producer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections import deque
from collections.abc import Mapping, Sequence

import kafkaio
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.kafka._cluster import JvmCluster

#: Limits the disk space of the topics.
CONFIG = {
    "log.segment.bytes": 64 * 1024 * 1024,
    "log.retention.bytes": 64 * 1024 * 1024,
    "log.retention.check.interval.ms": 5_000,
    "log.segment.delete.delay.ms": 1_000,
}
NODE = 1

Options = Mapping[str, int]


# The proxy.


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


async def proxy(routes: Sequence[tuple[float, int, int]]) -> None:
    """Serve for ever.

    Args:
        routes: seconds of a round trip, port of the proxy, port of the broker.
    """
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


async def add_listeners(
    kafka: Kafka, delays: Sequence[float]
) -> list[tuple[float, int, int]]:
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


# The clients, used as a good user would.


async def with_kafkaio(
    bootstrap: str, topic: str, value: bytes, records: int, options: Options
) -> float:
    producer = kafkaio.Producer(bootstrap, **options)  # type: ignore[arg-type]
    async with producer:
        await producer.send(topic, value)
        start = time.perf_counter()
        sent: list[kafkaio.Delivery] = []
        for _ in range(records):
            try:
                sent.append(producer.enqueue_nowait(topic, value))
            except kafkaio.BufferFull:
                sent.append(await producer.enqueue(topic, value))
        await producer.flush()
        spent = time.perf_counter() - start
        for delivery in sent:
            delivery.result()
    return spent


async def with_confluent(
    bootstrap: str, topic: str, value: bytes, records: int, options: Options
) -> float:
    import confluent_kafka

    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, **options})
    problems: list[object] = []
    acknowledged = 0

    def delivered(error: object, message: object) -> None:
        nonlocal acknowledged
        acknowledged += 1
        if error is not None:
            problems.append(error)

    producer.produce(topic, value, on_delivery=delivered)
    producer.flush()
    start = time.perf_counter()
    for number in range(records):
        while True:
            try:
                producer.produce(topic, value, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.05)
        if not number & 1023:
            producer.poll(0)
    producer.flush()
    spent = time.perf_counter() - start
    if problems or acknowledged != records + 1:
        raise RuntimeError(f"{acknowledged} acknowledged; {problems[:1]}")
    return spent


async def with_franz_go(
    bootstrap: str, topic: str, value: bytes, records: int, options: Options
) -> float:
    del options
    with tempfile.NamedTemporaryFile() as pool:
        pool.write(value)
        pool.flush()
        spec = {
            "kind": "produce",
            "bootstrap": bootstrap,
            "topic": topic,
            "records": records,
            "pool_file": pool.name,
            "compression": "none",
            "defaults": True,
            "idempotent": True,
        }
        process = await asyncio.create_subprocess_exec(
            os.environ["FRANZBENCH"], json.dumps(spec), stdout=subprocess.PIPE
        )
        out, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError("franz-go failed")
    figures = json.loads(out.partition(b"RESULT ")[2])
    if figures["count"] != records:
        raise RuntimeError(f"{figures['count']} acknowledged")
    seconds: float = figures["wall"]
    return seconds


async def with_idempotence(
    bootstrap: str, topic: str, value: bytes, records: int, options: Options
) -> float:
    options = {**options, "enable.idempotence": True}
    return await with_confluent(bootstrap, topic, value, records, options)


CLIENTS = {
    "kafkaio": with_kafkaio,
    "confluent": with_confluent,
    "confluent-idempotent": with_idempotence,
    "franz-go": with_franz_go,
}


def cpu_time() -> float:
    """Seconds of this process and of those that it waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def work(text: str) -> None:
    """Run one client in this process, and print MB/s and CPU per record."""
    spec = json.loads(text)
    size, records = spec["size"], spec["records"]
    run = CLIENTS[spec["client"]]
    before = cpu_time()
    seconds = asyncio.run(
        run(spec["bootstrap"], spec["topic"], b"v" * size, records, spec["options"])
    )
    spent = (cpu_time() - before) / records
    print(json.dumps([size * records / seconds / 1e6, spent * 1e6]))


async def measure(spec: Mapping[str, object]) -> tuple[float, float]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, __file__, "--work", json.dumps(spec), stdout=subprocess.PIPE
    )
    out, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"{spec} failed")
    rate, spent = json.loads(out)
    return rate, spent


async def compare(
    args: argparse.Namespace, kafka: Kafka, routes: Sequence[tuple[float, int, int]]
) -> None:
    found: dict[tuple[float, str], list[tuple[float, float]]] = {}
    clients = args.clients.split(",")
    for _ in range(args.repeat):
        for delay, port, _ in routes:
            for client in clients:
                topic = f"delay-{uuid.uuid4().hex[:8]}"
                await kafka.create_topic(topic, args.partitions)
                spec = {
                    "client": client,
                    "bootstrap": f"127.0.0.1:{port}",
                    "topic": topic,
                    "records": args.records,
                    "size": args.size,
                    "options": dict(args.option) if client == "kafkaio" else {},
                }
                found.setdefault((delay, client), []).append(await measure(spec))
    print("round trip   client                   MB/s        range   CPU us per record")
    for (delay, client), runs in found.items():
        rates = [rate for rate, _ in runs]
        spread = f"{min(rates):.0f} to {max(rates):.0f}"
        spent = statistics.median(each for _, each in runs)
        print(
            f"{1000 * delay:7.0f} ms   {client:20}"
            f"{statistics.median(rates):8.1f}{spread:>13}{spent:20.2f}"
        )


async def main(args: argparse.Namespace) -> None:
    delays = [float(delay) / 1000 for delay in args.delay_ms.split(",")]
    async with Kafka(fast=False, heap="1g", config=CONFIG) as kafka:
        routes = await add_listeners(kafka, delays)
        proxying = await asyncio.create_subprocess_exec(
            sys.executable,
            __file__,
            "--proxy",
            json.dumps(routes),
            stdout=subprocess.PIPE,
        )
        try:
            assert proxying.stdout is not None
            await proxying.stdout.readline()
            await compare(args, kafka, routes)
        finally:
            proxying.kill()
            await proxying.wait()


def option(text: str) -> tuple[str, int]:
    name, _, value = text.partition("=")
    return name, int(value)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--delay-ms",
        default="20,50",
        help="of a round trip; several separated by commas",
    )
    parser.add_argument("--clients", default="kafkaio,confluent,confluent-idempotent")
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--partitions", type=int, default=6)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--option", type=option, action="append", default=[])
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--proxy", type=json.loads, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    asked = arguments()
    if asked.work:
        work(asked.work)
    elif asked.proxy:
        asyncio.run(proxy(asked.proxy))
    else:
        asyncio.run(main(asked))
