"""What can run a cluster: our own JVMs, Docker, or someone else."""

from typing import Protocol

from kafkaio.testing.kafka.certs import Certificates
from kafkaio.testing.kafka.wire import Address


class Engine(Protocol):
    """A cluster under blocking, thread-safe control; `Kafka` makes it async."""

    @property
    def node_ids(self) -> list[int]:
        """The ids of the nodes it can control; empty if it cannot."""

    @property
    def certificates(self) -> Certificates | None:
        """The TLS files for clients, if it has TLS listeners."""

    def open(self) -> None:
        """Start all nodes and wait until they are ready."""

    def close(self) -> None:
        """End all nodes and remove what they left; ends an `open` under way."""

    def addresses(self, listener: str) -> list[Address]:
        """Return host and port of each node's listener."""

    def kill(self, node_id: int) -> None:
        """End a node at once."""

    def stop(self, node_id: int) -> None:
        """End a node in order: it hands its leaderships over first."""

    def start(self, node_id: int, *, wait: bool = True) -> None:
        """Start a node that has ended, and wait until it is ready."""

    def pause(self, node_id: int) -> None:
        """Halt a node; its sockets stay open."""

    def resume(self, node_id: int) -> None:
        """Let a halted node go on."""

    def log(self, node_id: int) -> str:
        """Return what a node has logged."""
