"""Metrics of real brokers, read by JMX."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import Final

from kafkaio.testing.kafka._nodes import JvmNode
from kafkaio.testing.kafka._sidecar import Sidecar

#: Not a listener of Kafka: the port at which a node's Java serves metrics.
JMX: Final = "JMX"


class JmxSidecar(Sidecar):
    """Has the brokers serve their metrics, for ``Kafka.metrics``."""

    ports: tuple[str, ...] = (JMX,)

    def flags(self, node: JvmNode) -> Sequence[str]:
        """Return the flags by which a broker serves its metrics."""
        return jmx_flags(node.ports[JMX])


def jmx_flags(port: int) -> list[str]:
    """Return the flags by which a Java serves its metrics on 127.0.0.1, unguarded."""
    name = "-Dcom.sun.management.jmxremote"
    return [
        f"{name}.port={port}",
        f"{name}.rmi.port={port}",
        f"{name}.host=127.0.0.1",
        f"{name}.authenticate=false",
        f"{name}.ssl=false",
        "-Djava.rmi.server.hostname=127.0.0.1",
    ]


def numbers(lines: Iterable[str]) -> dict[str, float]:
    """Read ``name=value`` lines; values that are not numbers are left out."""
    found = {}
    for line in lines:
        name, _, value = line.rpartition("=")
        with contextlib.suppress(ValueError):
            found[name] = float(value)
    return found
