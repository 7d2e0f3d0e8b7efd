"""What TLS costs: CPU of asyncio's, uvloop's and kafkaio's layer, and of whole clients.

``python -m benchmarks.tls layers`` moves frames over one connection to a TLS server in
another process, and prints microseconds of CPU per MiB. ``python -m benchmarks.tls
clients`` starts a Kafka, and prints microseconds of CPU per record of 100 bytes for
kafkaio, confluent-kafka and aiokafka (those that are installed), over plaintext and
TLS. Each run is a process of its own, the ways take turns, and the figures are medians
and ranges. The CPU time is the client's, user and system, of all its threads.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TOPIC = "tls"
PARTITIONS = 4
VALUE = b"x" * 100
MIB = 2**20


def cpu() -> float:
    """Seconds of CPU of this process."""
    return time.process_time()


# ---- layers ------------------------------------------------------------------------


def serve(folder: Path) -> None:
    """Answer each frame of 12 bytes (kind, size, count) with frames, or count them."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        while True:
            plain, _ = listener.accept()
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with context.wrap_socket(plain, server_side=True) as peer:
                answer(peer)


def answer(peer: ssl.SSLSocket) -> None:
    order = peer.recv(16)
    size, count = (int.from_bytes(order[at : at + 4], "big") for at in (8, 12))
    frame = size.to_bytes(4, "big") + bytes(size)
    if order[4:8] == b"send":
        for _ in range(count):
            peer.sendall(frame)
    else:
        left = len(frame) * count
        space = memoryview(bytearray(MIB))
        while left:
            left -= peer.recv_into(space, min(left, MIB))
        peer.sendall(b"\0\0\0\1.")
    peer.recv(1)


async def layer(way: str, port: int, folder: Path, kind: str, size: int) -> None:
    """Move 256 MiB in frames of a size, and print microseconds of CPU per MiB."""
    from kafkaio._net.dialling import TcpDial
    from kafkaio._net.transport import (
        DialOptions,
        TcpTransport,
        TransportPort,
    )

    count = 256 * MIB // size
    context = ssl.create_default_context(cafile=folder / "ca.pem")
    done = asyncio.get_running_loop().create_future()
    left = count if kind == "send" else 1

    class Sink:
        def frame_received(self, frame: Any) -> None:
            nonlocal left
            left -= 1
            if not left:
                done.set_result(None)

        def connection_lost(self, cause: BaseException | None) -> None:
            if not done.done():
                done.set_exception(ConnectionError(str(cause)))

    transport: TransportPort
    if way.endswith("ours"):
        options = DialOptions(timeout=10, max_frame_size=2**30, ssl_context=context)
        transport = await TcpDial()("localhost", port, Sink(), options)
    else:
        sock = socket.create_connection(("127.0.0.1", port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setblocking(False)  # noqa: FBT003
        _, transport = await asyncio.get_running_loop().create_connection(
            lambda: TcpTransport(2**30, Sink()),
            sock=sock,
            ssl=context,
            server_hostname="localhost",
        )
    begin = cpu()
    order = kind.encode() + size.to_bytes(4, "big") + count.to_bytes(4, "big")
    transport.write([(12).to_bytes(4, "big"), order])
    if kind == "take":
        head, body = size.to_bytes(4, "big"), memoryview(bytes(size))
        for _ in range(count):
            transport.write([head, body])
            while transport.unsent > 4 * MIB:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
    await done
    print((cpu() - begin) / 256 * 1e6)
    transport.close()


def layers(folder: Path, repeat: int) -> None:
    """Compare the layers."""
    certify(folder)
    server = subprocess.Popen(  # noqa: S603 - this program
        [sys.executable, "-m", "benchmarks.tls", "serve", "--folder", str(folder)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        ways = ["asyncio", "ours"]
        if importlib.util.find_spec("uvloop"):
            ways += ["uvloop", "uvloop-ours"]
        for kind in "send", "take":
            for size in 2_000, 20_000, 200_000, 2_000_000:
                name = f"{'received' if kind == 'send' else 'sent'}, {size:,} bytes"
                common = ["--port", port, "--kind", kind, "--size", str(size)]
                compare(name, "layer", ways, [*common, "--folder", str(folder)], repeat)
    finally:
        server.terminate()
        server.wait()


def certify(folder: Path) -> None:
    import trustme

    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    leaf = authority.issue_cert("localhost")
    leaf.private_key_and_cert_chain_pem.write_to_path(folder / "server.pem")


# ---- clients -----------------------------------------------------------------------


def secured(ca: str | None) -> dict[str, Any]:
    if not ca:
        return {}
    return {"security_protocol": "SSL", "ssl_context": _context(ca)}


def _context(ca: str) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=ca)


def report(begin: float, count: int) -> None:
    print((cpu() - begin) / count * 1e6)


def use_the_layer_of_the_loop() -> None:
    """Make kafkaio connect with TLS of the event loop."""
    from kafkaio._net import transport

    async def wrap(
        sock: socket.socket, host: str, port: int, sink: Any, options: Any
    ) -> transport.TransportPort:
        _, made = await asyncio.get_running_loop().create_connection(
            lambda: transport.TcpTransport(
                options.max_frame_size, sink, options.large, f"{host}:{port}"
            ),
            sock=sock,
            ssl=options.ssl_context,
            server_hostname=host if options.ssl_context else None,
        )
        return made

    transport._wrap = wrap


async def kafkaio_client(servers: str, ca: str | None, kind: str, count: int) -> None:
    import kafkaio

    if kind == "produce":
        async with kafkaio.Producer(servers, **secured(ca)) as producer:
            for _ in range(1_000):
                await producer.enqueue(TOPIC, VALUE)
            await producer.flush()
            begin = cpu()
            for _ in range(count):
                await producer.enqueue(TOPIC, VALUE)
            await producer.flush()
            report(begin, count)
        return
    places = [kafkaio.TopicPartition(TOPIC, each) for each in range(PARTITIONS)]
    async with kafkaio.Consumer(
        servers, assign=places, auto_offset_reset="earliest", **secured(ca)
    ) as consumer:
        left, begin = count, cpu()
        async for batch in consumer.batches(max_records=2_000):
            left -= len(batch.values())
            if left <= 0:
                break
        report(begin, count)


async def aiokafka_client(servers: str, ca: str | None, kind: str, count: int) -> None:
    import aiokafka

    count //= 10  # ten times slower
    if kind == "produce":
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=servers,
            acks="all",
            enable_idempotence=True,
            linger_ms=5,
            **secured(ca),
        )
        await producer.start()
        for _ in range(1_000):
            await producer.send(TOPIC, VALUE)
        await producer.flush()
        begin = cpu()
        for _ in range(count):
            await producer.send(TOPIC, VALUE)
        await producer.flush()
        report(begin, count)
        await producer.stop()
        return
    consumer = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=servers, auto_offset_reset="earliest", **secured(ca)
    )
    await consumer.start()
    consumer.assign([aiokafka.TopicPartition(TOPIC, n) for n in range(PARTITIONS)])
    left, begin = count, cpu()
    while left > 0:
        found = await consumer.getmany(timeout_ms=1000, max_records=2_000)
        left -= sum(map(len, found.values()))
    report(begin, count)
    await consumer.stop()


def confluent_client(servers: str, ca: str | None, kind: str, count: int) -> None:
    import confluent_kafka

    options: dict[str, Any] = {"bootstrap.servers": servers}
    if ca:
        options |= {"security.protocol": "SSL", "ssl.ca.location": ca}
    if kind == "produce":
        options |= {"enable.idempotence": True, "linger.ms": 5}
        producer = confluent_kafka.Producer(
            {**options, "queue.buffering.max.messages": 1_000_000}
        )
        for _ in range(1_000):
            producer.produce(TOPIC, VALUE)
        producer.flush()
        begin = cpu()
        for number in range(count):
            while True:
                try:
                    producer.produce(TOPIC, VALUE)
                    break
                except BufferError:
                    producer.poll(0.01)
            if number % 500 == 0:
                producer.poll(0)
        producer.flush()
        report(begin, count)
        return
    options |= {"group.id": "x", "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer({**options, "enable.auto.commit": False})
    consumer.assign(
        [confluent_kafka.TopicPartition(TOPIC, n, 0) for n in range(PARTITIONS)]
    )
    left, begin = count, cpu()
    while left > 0:
        left -= len([each.value() for each in consumer.consume(2_000, 1.0)])
    report(begin, count)
    consumer.close()


async def clients(repeat: int, count: int) -> None:
    """Compare the clients, on a Kafka of their own."""
    from kafkaio.testing.kafka import Kafka

    ways = ["kafkaio", "kafkaio-asyncio", "kafkaio-uvloop"]
    ways += [
        name
        for name, module in (("confluent", "confluent_kafka"), ("aiokafka", "aiokafka"))
        if importlib.util.find_spec(module)
    ]
    async with Kafka(tls=True, fast=False) as kafka:
        await kafka.create_topic(TOPIC, PARTITIONS)
        for kind in "produce", "consume":
            for listener in "PLAINTEXT", "SSL":
                more = ["--servers", kafka.bootstrap(listener), "--kind", kind]
                if listener == "SSL":
                    more += ["--ca", str(kafka.certificates.authority)]
                more += ["--count", str(count)]
                name = f"{kind}, {listener}"
                await asyncio.to_thread(compare, name, "client", ways, more, repeat)


# ---- turns -------------------------------------------------------------------------


def compare(
    title: str, command: str, ways: list[str], more: list[str], repeat: int
) -> None:
    """Run each way in a process of its own, in turns, and print the medians."""
    found: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(repeat):
        for way in ways:
            text = subprocess.run(  # noqa: S603 - this program
                [sys.executable, "-m", "benchmarks.tls", command, "--way", way, *more],
                check=True,
                stdout=subprocess.PIPE,
                text=True,
            ).stdout
            found[way].append(float(text))
    print(f"\n{title}")
    for way, figures in found.items():
        middle = statistics.median(figures)
        print(f"  {way:15} {middle:9.2f}   {min(figures):9.2f} to {max(figures):.2f}")
    sys.stdout.flush()


def run(way: str, work: Callable[[], Any]) -> None:
    """Run a coroutine on the loop that the way names."""
    if way == "kafkaio-asyncio":
        use_the_layer_of_the_loop()
    if way.startswith("uvloop") or way.endswith("uvloop"):
        import uvloop

        uvloop.run(work())
    else:
        asyncio.run(work())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "what", choices=["layers", "clients", "serve", "layer", "client"]
    )
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--count", type=int, default=2_000_000, help="records")
    # What the processes get that a comparison starts.
    for name in "way", "port", "folder", "kind", "size", "servers", "ca":
        parser.add_argument(f"--{name}", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.what == "layers":
        with tempfile.TemporaryDirectory() as folder:
            layers(Path(folder), given.repeat)
    elif given.what == "clients":
        asyncio.run(clients(given.repeat, given.count))
    elif given.what == "serve":
        serve(Path(given.folder))
    elif given.what == "layer":
        folder, size = Path(given.folder), int(given.size)
        port = int(given.port)
        run(given.way, lambda: layer(given.way, port, folder, given.kind, size))
    elif given.way == "confluent":
        confluent_client(given.servers, given.ca, given.kind, given.count)
    else:
        client = aiokafka_client if given.way == "aiokafka" else kafkaio_client
        run(given.way, lambda: client(given.servers, given.ca, given.kind, given.count))


if __name__ == "__main__":
    main()
