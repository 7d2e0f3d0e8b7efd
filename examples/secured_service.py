"""A service that logs in, and goes on through sessions that end and a wrong password.

    python examples/secured_service.py                              # a demonstration
    KAFKA_USER=orders KAFKA_PASSWORD=... python examples/secured_service.py \\
        --bootstrap broker1:9093 --ca ca.pem

The client encrypts its connections by TLS, trusts the authority in --ca, and logs in by
SCRAM-SHA-512. User and password come from the environment. The broker limits sessions:
the client logs in again on the living connections, and no record waits (KIP-368).
Without --bootstrap the service runs on an embedded broker with sessions of two seconds,
and shows what a wrong password gives.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from collections import Counter
from typing import Any

import kafkaio
from kafkaio.testing import Broker

TOPIC = "orders"


class Logins(kafkaio.Observer):
    """Counts logins by connection."""

    def __init__(self) -> None:
        self.count: Counter[tuple[int, str]] = Counter()

    def authenticated(
        self, node_id: int, connection_class: str, *facts: object, is_renewal: bool
    ) -> None:
        self.count[node_id, connection_class] += 1


def options(bootstrap: str, ca: str) -> dict[str, Any]:
    return {
        "bootstrap_servers": bootstrap,
        "security_protocol": "SASL_SSL",
        "ssl_truststore_location": ca,
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_username": os.environ["KAFKA_USER"],
        "sasl_password": os.environ["KAFKA_PASSWORD"],
    }


async def serve(bootstrap: str, ca: str, seconds: float) -> None:
    """Send a record each 50 ms, and read them all."""
    logins = Logins()
    secured = options(bootstrap, ca)
    sent: list[bytes] = []
    read: list[bytes | None] = []
    async with (
        kafkaio.Producer(observer=logins, **secured) as producer,
        kafkaio.Consumer(
            topics=TOPIC, group_id="orders", auto_offset_reset="earliest", **secured
        ) as consumer,
        asyncio.timeout(seconds + 30),
    ):
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while loop.time() < until:
            sent.append(b"order %d" % len(sent))
            await producer.send(TOPIC, sent[-1])
            await asyncio.sleep(0.05)
        while len(read) < len(sent):
            read += [
                record.value for record in (await consumer.poll(timeout=1)).records
            ]
    print(f"sent {len(sent)}, read {len(set(read))}")
    print(f"most logins of a connection: {max(logins.count.values())}")


async def show_a_wrong_password(bootstrap: str, ca: str) -> None:
    wrong = options(bootstrap, ca) | {"sasl_password": "a typing error"}
    try:
        async with kafkaio.Client(**wrong):
            pass
    except kafkaio.AuthenticationError as error:
        print(f"refused: {error.reason}")


async def demonstrate() -> None:
    os.environ |= {"KAFKA_USER": "orders", "KAFKA_PASSWORD": "a long secret"}
    users = {"orders": "a long secret"}
    async with Broker(sasl=True, tls=True, users=users, reauth_ms=2_000) as broker:
        bootstrap = broker.bootstrap("SASL_SSL")
        ca = str(broker.certificates.authority)
        await serve(bootstrap, ca, seconds=5.0)
        await show_a_wrong_password(bootstrap, ca)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", help="host:port of brokers with SASL_SSL")
    parser.add_argument("--ca", default="", help="PEM file of the authority to trust")
    parser.add_argument("--seconds", type=float, default=60.0)
    given = parser.parse_args()
    if given.bootstrap is None:
        asyncio.run(demonstrate())
    else:
        asyncio.run(serve(given.bootstrap, given.ca, given.seconds))


if __name__ == "__main__":
    main()
