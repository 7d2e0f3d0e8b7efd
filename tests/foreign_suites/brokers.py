"""The brokers that foreign suites run on, embedded and real, with the same listeners."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

from kafkaio.testing import Broker, SecurityConfig
from kafkaio.testing.kafka import Kafka

__all__ = ["BROKERS", "USER", "Address", "started"]

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
