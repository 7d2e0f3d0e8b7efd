"""The interface to a cluster, which JVMs, Docker and external clusters implement."""

from collections.abc import Mapping
from typing import Protocol

from kafkaio._public import public
from kafkaio.testing._security.files import Certificates
from kafkaio.testing.kafka._wire import Address


@public("kafkaio.testing.kafka")
class Engine(Protocol):
    """A cluster under blocking, thread-safe control; ``Kafka`` makes it async."""

    @property
    def node_ids(self) -> list[int]:
        """The ids of the nodes it can control; empty if it cannot."""

    @property
    def certificates(self) -> Certificates | None:
        """The TLS files for clients, if it has TLS listeners."""

    def open(self) -> None:
        """Start all nodes and wait until they are ready."""

    def close(self) -> None:
        """Stop all nodes and remove their files; aborts an ``open`` in progress."""

    def addresses(self, listener: str) -> list[Address]:
        """Return host and port of each node's listener."""

    def kill(self, node_id: int) -> None:
        """Kill a node."""

    def stop(self, node_id: int) -> None:
        """Shut a node down: its leaderships move first."""

    def start(self, node_id: int, *, wait: bool = True) -> None:
        """Start a node that has stopped, and wait until it is ready."""

    def pause(self, node_id: int) -> None:
        """Pause a node; its sockets stay open."""

    def resume(self, node_id: int) -> None:
        """Resume a paused node."""

    def log(self, node_id: int) -> str:
        """Return what a node has logged."""


class ContainerPort(Protocol):
    """One broker's container."""

    def start(self) -> None:
        """Create it, or start it again."""

    def kill(self) -> None:
        """Kill it."""

    def stop(self) -> None:
        """Shut it down, and wait."""

    def pause(self) -> None:
        """Pause it."""

    def resume(self) -> None:
        """Resume it."""

    def log(self) -> str:
        """Return its output so far."""

    def remove(self) -> None:
        """Remove it with its data."""


class DockerPort(Protocol):
    """The part of a Docker engine that a cluster needs."""

    @property
    def host(self) -> str:
        """The address at which the engine's published ports are reached."""

    def container(
        self, image: str, alias: str, port: int, environment: Mapping[str, str]
    ) -> ContainerPort:
        """Return a container to start, on the network all of them share."""

    def close(self) -> None:
        """Remove the network."""
