"""What logins cost: CPU of many connections by SCRAM, and of sessions of two seconds.

``python -m benchmarks.logins connections`` lets a client connect to a cluster of 200
brokers, and 200 clients to one broker, by SCRAM-SHA-256 with 4,096 iterations, for
kafkaio and aiokafka, and prints milliseconds of CPU for each connection. The cluster is
an embedded one, in another process.
``python -m benchmarks.logins sessions`` produces to a broker that ends sessions after
two seconds and to one that does not, and prints microseconds of CPU per record of 100
bytes. Each run is a process of its own, the ways take turns, and the figures are
medians and ranges of the client's CPU, user and system, of all its threads.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import sys
import time
from typing import Any

COUNT = 200
TOPIC = "logins"
VALUE = b"x" * 100
USER, PASSWORD = "alice", "alice-secret"
SESSION_MS = 2_000


def login(servers: str, mechanism: str) -> dict[str, Any]:
    return {
        "bootstrap_servers": servers,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
    }


def report(begin: float) -> None:
    print((time.process_time() - begin) / COUNT * 1e3)


async def clients_of_kafkaio(options: dict[str, Any]) -> None:
    """Let clients log in, each with a connection of its own."""
    import kafkaio

    clients = [kafkaio.Client(**options) for _ in range(COUNT + 1)]
    await clients[0].start()  # what is loaded once
    begin = time.process_time()
    await asyncio.gather(*(client.start() for client in clients[1:]))
    report(begin)
    await asyncio.gather(*(client.close() for client in clients))


async def brokers_of_kafkaio(options: dict[str, Any]) -> None:
    """Let a client log in to all brokers."""
    from kafkaio import Client, messages
    from kafkaio._client import Broker

    async with Client(**options) as client:
        request = messages.MetadataRequest(topics=[])
        begin = time.process_time()
        await asyncio.gather(
            *(client.request(request, to=Broker(n)) for n in range(COUNT))
        )
        report(begin)


async def clients_of_aiokafka(options: dict[str, Any]) -> None:
    """Let clients log in, each with a connection of its own."""
    from aiokafka.client import AIOKafkaClient

    clients = [AIOKafkaClient(**options) for _ in range(COUNT + 1)]
    await clients[0].bootstrap()
    begin = time.process_time()
    await asyncio.gather(*(client.bootstrap() for client in clients[1:]))
    report(begin)
    await asyncio.gather(*(client.close() for client in clients))


async def brokers_of_aiokafka(options: dict[str, Any]) -> None:
    """Let a client log in to all brokers."""
    from aiokafka.client import AIOKafkaClient
    from aiokafka.protocol.metadata import MetadataRequest

    client = AIOKafkaClient(**options)
    await client.bootstrap()
    begin = time.process_time()
    await asyncio.gather(*(client.send(n, MetadataRequest([])) for n in range(COUNT)))
    report(begin)
    await client.close()


CONNECT = {
    ("clients", "kafkaio"): clients_of_kafkaio,
    ("clients", "aiokafka"): clients_of_aiokafka,
    ("brokers", "kafkaio"): brokers_of_kafkaio,
    ("brokers", "aiokafka"): brokers_of_aiokafka,
}


def connect(kind: str, way: str, servers: str) -> None:
    prefix = "sasl_" if way == "kafkaio" else "sasl_plain_"
    options = login(servers, "SCRAM-SHA-256")
    options |= {f"{prefix}username": USER, f"{prefix}password": PASSWORD}
    if way == "kafkaio":
        # All begin at once, and the cluster has one processor: as aiokafka, which has
        # no such limit, none tries again.
        limit = "socket_connection_setup_timeout"
        options |= {f"{limit}_ms": 60_000, f"{limit}_max_ms": 60_000}
    asyncio.run(CONNECT[kind, way](options))


async def serve() -> None:
    """Run the cluster until the standard input ends."""
    from kafkaio.testing import Broker

    async with Broker(nodes=COUNT, sasl=True) as broker:
        print(broker.bootstrap("SASL").partition(",")[0], flush=True)
        await asyncio.to_thread(sys.stdin.read)


async def produce(servers: str, mechanism: str, count: int) -> None:
    """Print microseconds of CPU per record."""
    import kafkaio
    from kafkaio.security import UnsecuredToken

    options = login(servers, mechanism)
    if mechanism == "OAUTHBEARER":
        options["sasl_oauth_token_provider"] = UnsecuredToken(USER)
    else:
        options |= {"sasl_username": USER, "sasl_password": PASSWORD}
    async with kafkaio.Producer(**options) as producer:
        for _ in range(1_000):
            await producer.enqueue(TOPIC, VALUE)
        await producer.flush()
        begin = time.process_time()
        for _ in range(count):
            await producer.enqueue(TOPIC, VALUE)
        await producer.flush()
        print((time.process_time() - begin) / count * 1e6)


def connections(repeat: int) -> None:
    command = [sys.executable, "-m", "benchmarks.logins", "serve"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as server:  # noqa: S603 - this program
        assert server.stdout is not None
        servers = server.stdout.readline().strip()
        for kind in "brokers", "clients":
            more = ["--kind", kind, "--servers", servers]
            ways = {
                name: ["connect", "--way", name, *more]
                for name in ("kafkaio", "aiokafka")
            }
            compare(f"ms for each of {COUNT} {kind}", ways, repeat)


async def sessions(repeat: int, count: int) -> None:
    from kafkaio.testing.kafka import Kafka

    async with (
        Kafka(sasl=True, fast=False, reauth_ms=SESSION_MS) as renewed,
        Kafka(sasl=True, fast=False) as free,
    ):
        for kafka in (renewed, free):
            await kafka.create_topic(TOPIC, 4, config={"retention.bytes": "100000000"})
        for mechanism in "PLAIN", "SCRAM-SHA-512", "OAUTHBEARER":
            more = ["--mechanism", mechanism, "--count", str(count)]
            ways = {
                name: ["produce", "--servers", kafka.bootstrap("SASL"), *more]
                for name, kafka in (("two seconds", renewed), ("no limit", free))
            }
            title = f"us per record, {mechanism}"
            await asyncio.to_thread(compare, title, ways, repeat)


def compare(title: str, ways: dict[str, list[str]], repeat: int) -> None:
    """Run each way in a process of its own, in turns, and print the medians."""
    found: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(repeat):
        for way, more in ways.items():
            text = subprocess.run(  # noqa: S603 - this program
                [sys.executable, "-m", "benchmarks.logins", *more],
                check=True,
                stdout=subprocess.PIPE,
                text=True,
            ).stdout
            found[way].append(float(text))
    print(f"\n{title}")
    for way, figures in found.items():
        middle = statistics.median(figures)
        print(f"  {way:15} {middle:9.3f}   {min(figures):9.3f} to {max(figures):.3f}")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "what", choices=["connections", "sessions", "serve", "connect", "produce"]
    )
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--count", type=int, default=5_000_000, help="records")
    # What the processes get that a comparison starts.
    for name in "way", "kind", "servers", "mechanism":
        parser.add_argument(f"--{name}", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.what == "connections":
        connections(given.repeat)
    elif given.what == "sessions":
        asyncio.run(sessions(given.repeat, given.count))
    elif given.what == "serve":
        asyncio.run(serve())
    elif given.what == "connect":
        connect(given.kind, given.way, given.servers)
    else:
        asyncio.run(produce(given.servers, given.mechanism, given.count))


if __name__ == "__main__":
    main()
