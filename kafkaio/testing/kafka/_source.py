"""Choose the Kafka of a test: a running cluster, Docker, or jars on this machine."""

import os
from typing import Final, NoReturn, Unpack

from kafkaio._public import public
from kafkaio.testing._security.files import Certificates
from kafkaio.testing.kafka._cluster import JvmCluster
from kafkaio.testing.kafka._docker import DockerCluster, can_contain, docker_answers
from kafkaio.testing.kafka._embedded import EmbeddedEngine
from kafkaio.testing.kafka._engine import Engine
from kafkaio.testing.kafka._kafka import Kafka
from kafkaio.testing.kafka._options import ClusterOptions, Options
from kafkaio.testing.kafka._properties import PLAINTEXT
from kafkaio.testing.kafka._releases import DEFAULT_VERSION, KafkaNotStarted
from kafkaio.testing.kafka._wire import Address, metadata

KAFKA_VARIABLE: Final = "KAFKAIO_KAFKA"
BOOTSTRAP_VARIABLE: Final = "KAFKAIO_BOOTSTRAP"
_PROBE_SECONDS: Final = 5.0


def parse_bootstrap(text: str) -> list[Address]:
    """Return the addresses in ``host:port,[::1]:port``.

    Raises:
        ValueError: A part is not ``host:port``.
    """
    addresses = []
    for part in filter(None, map(str.strip, text.split(","))):
        # From the right: an IPv6 address has colons.
        host, colon, port = part.rpartition(":")
        if not colon or not host or not port.isdecimal():
            raise ValueError(f"not host:port: {part!r}")
        addresses.append((host.strip("[]"), int(port)))
    if not addresses:
        raise ValueError("no host:port given")
    return addresses


class ExternalCluster:
    """A running cluster, which can be used but not controlled; an ``Engine``."""

    def __init__(self, bootstrap: str):
        self._addresses = parse_bootstrap(bootstrap)
        self.node_ids: list[int] = []
        self.certificates: Certificates | None = None

    def open(self) -> None:
        """Check that one of the addresses answers.

        Raises:
            KafkaNotStarted: None does.
        """
        problems = []
        for address in self._addresses:
            try:
                metadata(address, timeout=_PROBE_SECONDS)
            except OSError as error:
                problems.append(f"{address[0]}:{address[1]}: {error}")
            else:
                return
        raise KafkaNotStarted(f"{BOOTSTRAP_VARIABLE}: {'; '.join(problems)}")

    def close(self) -> None:
        """Do nothing: the cluster goes on."""

    def addresses(self, listener: str) -> list[Address]:
        """Return the addresses given.

        Raises:
            KeyError: The listener is not PLAINTEXT.
        """
        if listener != PLAINTEXT:
            raise KeyError(listener)
        return list(self._addresses)

    def _refuse(self) -> NoReturn:
        raise RuntimeError(
            f"the cluster of {BOOTSTRAP_VARIABLE} is not ours to control"
        )

    def kill(self, node_id: int) -> None:
        """Raise RuntimeError: the cluster cannot be controlled."""
        self._refuse()

    def stop(self, node_id: int) -> None:
        """Raise RuntimeError: the cluster cannot be controlled."""
        self._refuse()

    def start(self, node_id: int, *, wait: bool = True) -> None:
        """Raise RuntimeError: the cluster cannot be controlled."""
        self._refuse()

    def pause(self, node_id: int) -> None:
        """Raise RuntimeError: the cluster cannot be controlled."""
        self._refuse()

    def resume(self, node_id: int) -> None:
        """Raise RuntimeError: the cluster cannot be controlled."""
        self._refuse()

    def log(self, node_id: int) -> str:
        """Raise RuntimeError: the cluster cannot be controlled."""
        self._refuse()


def is_embedded() -> bool:
    """Whether the embedded broker takes the place of a real Kafka.

    Raises:
        KafkaNotStarted: ``$KAFKAIO_KAFKA`` has an unknown value.
    """
    wanted = os.environ.get(KAFKA_VARIABLE, "")
    if wanted not in {"", "embedded"}:
        raise KafkaNotStarted(f"{KAFKA_VARIABLE}={wanted!r}: it can be 'embedded'")
    return bool(wanted)


def _choose(options: ClusterOptions) -> Engine:
    if is_embedded():
        return EmbeddedEngine(options)
    # Before Docker: it is what the user has named.
    if bootstrap := os.environ.get(BOOTSTRAP_VARIABLE):
        return ExternalCluster(bootstrap)
    if can_contain(options) and docker_answers():
        return DockerCluster(options)
    return JvmCluster(options)


@public("kafkaio.testing.kafka")
def real_kafka(
    brokers: int = 1, version: str = DEFAULT_VERSION, **options: Unpack[Options]
) -> Kafka:
    """Return a Kafka from the first source that this machine has.

    1. ``$KAFKAIO_KAFKA=embedded``: not a real one, but `kafkaio.testing.Broker` in a
       thread, for a suite that has to run without one.
    2. ``$KAFKAIO_BOOTSTRAP``: a running cluster; its nodes cannot be controlled.
    3. Docker, where an engine answers and testcontainers is installed (the
       package's extra ``docker``), for clusters without SASL, TLS, feature
       levels and ZooKeeper.
    4. Kafka's jars on a local Java (the extra ``kafka``).

    Blocks for a moment, to look for a Docker engine.

    Args:
        brokers: How many brokers.
        version: A minor (``4.3``) or full (``4.3.1``) version.
        **options: See ``ClusterOptions``.

    Raises:
        KafkaNotStarted: The version is not pinned. (Entering the returned cluster
            raises it if the chosen source does not work.)
    """
    wanted = ClusterOptions(brokers=brokers, version=version, **options)
    # The options are checked before a source is looked for.
    return Kafka.on(_choose(wanted), wanted)
