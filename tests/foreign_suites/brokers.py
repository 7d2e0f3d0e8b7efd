"""The brokers that foreign suites run on: embedded and real, with equal listeners."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from kafkaio.testing import Broker, SecurityConfig
from kafkaio.testing.kafka import Kafka

__all__ = ["BROKERS", "USER", "Address", "forwarded", "started"]

#: The kinds of brokers.
BROKERS: Final = ("kafka", "embedded")
#: The user of the SASL listeners; the password is the same.
USER: Final = "test"
_NEWEST: Final = "4.4"


class Address(NamedTuple):
    """Where a broker is, as a pytest of another process is told it.

    Attributes:
        plain, ssl, sasl: ``host:port`` of the listeners.
        authority: the certificate to trust.
        certificate: a client's certificate and key in one file.
        version: the release of Kafka.
    """

    plain: str
    ssl: str
    sasl: str
    authority: str
    certificate: str
    version: str


@asynccontextmanager
async def started(
    kind: str, config: Mapping[str, str | float]
) -> AsyncIterator[Address]:
    """Run a broker that checks rights where an ACL names the resource.

    Args:
        kind: one of `BROKERS`.
        config: properties of the broker.
    """
    users = {USER: USER}
    broker: Broker | Kafka
    if kind == "embedded":
        security = SecurityConfig(allow_if_no_acl=True)
        options = {**config, "group.initial.rebalance.delay.ms": 0}
        broker = Broker(
            sasl=True,
            tls=True,
            acls=True,
            users=users,
            security=security,
            config=options,
        )
    else:
        rights = {"allow.everyone.if.no.acl.found": "true"}
        broker = Kafka(
            version=_NEWEST,
            sasl=True,
            tls=True,
            acls=True,
            users=users,
            config={**rights, **config},
        )
    async with broker:
        certificates = broker.certificates
        yield Address(
            broker.bootstrap("PLAINTEXT"),
            broker.bootstrap("SSL"),
            broker.bootstrap("SASL"),
            str(certificates.authority),
            str(Path(certificates.clients[USER])),
            f"{_NEWEST}.0",
        )


@asynccontextmanager
async def forwarded(port: int | None, address: Address) -> AsyncIterator[None]:
    """Forward connections to a port of this machine to a broker.

    Clients need it to bootstrap alone: the broker tells them where it is.

    Args:
        port: the port; None does nothing.
        address: where the broker is.

    Raises:
        OSError: something listens at the port.
    """
    if port is None:
        yield
        return
    host, _, there = address.plain.rpartition(":")

    async def forward(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        back, on = await asyncio.open_connection(host, int(there))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_pump(reader, on))
            tasks.create_task(_pump(back, writer))

    server = await asyncio.start_server(forward, "localhost", port)
    try:
        yield
    finally:
        server.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until one side closes, and close the other then."""
    with suppress(ConnectionError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()
