"""A cluster in containers, through testcontainers, where a Docker engine answers.

Each broker runs Apache's own image. Its client listener is on the same port
inside and outside, chosen beforehand, for a broker tells clients its address.
"""

import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kafkaio.testing._security.files import Certificates
from kafkaio.testing.kafka._engine import ContainerPort, DockerPort
from kafkaio.testing.kafka._nodes import free_ports
from kafkaio.testing.kafka._options import ClusterOptions
from kafkaio.testing.kafka._properties import (
    CONTROLLER,
    PLAINTEXT,
    Plan,
    server_properties,
)
from kafkaio.testing.kafka._releases import KafkaNotStarted
from kafkaio.testing.kafka._storage import random_uuid
from kafkaio.testing.kafka._wire import Address, metadata

_IMAGE: Final = "apache/kafka"
_DATA: Final = Path("/var/lib/kafka/data")
_CONTROLLER_PORT: Final = 9093
_INTERNAL_PORT: Final = 19092
_INTERNAL: Final = "INTERNAL"
_POLL_SECONDS: Final = 0.1
_PING_SECONDS: Final = 3
_UNIX: Final = "unix://"
_DEFAULT_HOST: Final = "unix:///var/run/docker.sock"


def _listens(path: str) -> bool:
    """Return whether a process accepts connections on a Unix socket.

    Asked first because the docker package leaks a socket when nothing does.
    """
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(_PING_SECONDS)
        try:
            probe.connect(path)
        except OSError:
            return False
        return True


def docker_answers() -> bool:
    """Return whether testcontainers is installed and a Docker engine answers."""
    try:
        from testcontainers.core.docker_client import DockerClient, get_docker_host
    except ImportError:
        return False
    host = get_docker_host() or os.environ.get("DOCKER_HOST") or _DEFAULT_HOST
    if host.startswith(_UNIX) and not _listens(host.removeprefix(_UNIX)):
        return False
    try:
        client = DockerClient(timeout=_PING_SECONDS).client
    except Exception:  # noqa: BLE001 - errors of docker and requests
        return False
    try:
        # The socket may be there without an engine behind it.
        return bool(client.ping())
    except Exception:  # noqa: BLE001 - as above
        return False
    finally:
        client.close()


def can_contain(options: ClusterOptions) -> bool:
    """Return whether a cluster of containers has these options."""
    return not (
        options.sasl
        or options.tls
        or options.acls
        or options.dynamic_voters
        or options.plugins
        or options.features
        or options.release.zookeeper
    )


def environment_name(key: str) -> str:
    """Return the variable that sets a broker property in Apache's image."""
    # The notation of Apache's image, in this order: dots become underscores last.
    spelled = key.replace("_", "__").replace("-", "___").replace(".", "_")
    return f"KAFKA_{spelled.upper()}"


def alias(node_id: int) -> str:
    """Return the name of a broker on the containers' network."""
    return f"kafka-{node_id}"


def environment(plan: Plan, node_id: int, client: Address) -> dict[str, str]:
    """Return the environment of one broker's container.

    Args:
        plan: What the cluster's nodes share.
        node_id: This node's id.
        client: Host and port at which clients reach this node.
    """
    host, port = client
    found = server_properties(plan, node_id, {CONTROLLER: 0, PLAINTEXT: port}, _DATA)
    found |= {
        "controller.quorum.voters": ",".join(
            f"{each}@{alias(each)}:{_CONTROLLER_PORT}"
            for each in range(1, plan.brokers + 1)
        ),
        "inter.broker.listener.name": _INTERNAL,
        "listeners": f"PLAINTEXT://:{port},{_INTERNAL}://:{_INTERNAL_PORT},"
        f"{CONTROLLER}://:{_CONTROLLER_PORT}",
        "advertised.listeners": f"PLAINTEXT://{host}:{port},"
        f"{_INTERNAL}://{alias(node_id)}:{_INTERNAL_PORT}",
        "listener.security.protocol.map": ",".join(
            f"{name}:PLAINTEXT" for name in (PLAINTEXT, _INTERNAL, CONTROLLER)
        ),
    }
    return {environment_name(key): str(value) for key, value in found.items()}


class DockerCluster:
    """Brokers in containers; an ``Engine``.

    Args:
        options: The options; SASL, TLS and feature levels are not possible here.
        connect: Returns the Docker engine to use.
    """

    def __init__(
        self, options: ClusterOptions, connect: Callable[[], DockerPort] | None = None
    ):
        if not can_contain(options):
            raise ValueError(
                "containers have no SASL, TLS, ACLs, feature levels, ZooKeeper"
            )
        self.certificates: Certificates | None = None
        self._options = options
        self._connect = connect or _connect
        self._docker: DockerPort | None = None
        self._addresses: dict[int, Address] = {}
        self._containers: dict[int, ContainerPort] = {}
        self._running: set[int] = set()
        self._paused: set[int] = set()
        self._lock = threading.RLock()
        self._closed = threading.Event()

    @property
    def node_ids(self) -> list[int]:
        """The ids of the brokers."""
        return list(self._containers)

    def addresses(self, listener: str) -> list[Address]:
        """Return host and port of each broker.

        Raises:
            KeyError: A listener other than PLAINTEXT is asked for.
        """
        if listener != PLAINTEXT:
            raise KeyError(listener)
        return list(self._addresses.values())

    def open(self) -> None:
        """Start all containers and wait until each broker knows all others.

        Raises:
            KafkaNotStarted: A step failed, or ``close`` was called meanwhile.
        """
        with self._lock:
            self._check()
            docker = self._docker = self._connect()
        options = self._options
        # Chosen before the start: a broker advertises the port at which clients reach
        # it.
        ports = free_ports(options.brokers)
        self._addresses = {
            node_id: (docker.host, port) for node_id, port in enumerate(ports, 1)
        }
        plan = Plan(
            release=options.release,
            brokers=options.brokers,
            rack=options.rack,
            fast=options.fast,
            config=options.config,
        )
        image = f"{_IMAGE}:{options.release.version}"
        cluster = {"CLUSTER_ID": random_uuid()}
        heap = {"KAFKA_HEAP_OPTS": f"-Xmx{options.heap}"}
        for node_id, address in self._addresses.items():
            variables = environment(plan, node_id, address) | cluster | heap
            with self._lock:
                self._check()
                container = docker.container(
                    image, alias(node_id), address[1], variables
                )
                # Before it is started, so that `close` removes it also if the start
                # fails.
                self._containers[node_id] = container
                container.start()
                self._running.add(node_id)
        # After all were started: a broker is ready only when it has a quorum.
        for node_id in self._containers:
            self._wait_ready(node_id)

    def close(self) -> None:
        """Remove all containers and their network; a second call does nothing."""
        # Before the lock: a start that waits for a broker sees it and gives up.
        self._closed.set()
        with self._lock:
            for container in self._containers.values():
                container.remove()
            self._containers.clear()
            if self._docker is not None:
                self._docker.close()
                self._docker = None

    def _check(self) -> None:
        if self._closed.is_set():
            raise KafkaNotStarted("closed while it was starting")

    def _wait_ready(self, node_id: int) -> None:
        end = time.monotonic() + self._options.start_timeout
        while not self._is_ready(node_id):
            self._check()
            if time.monotonic() > end:
                log = self.log(node_id)
                raise KafkaNotStarted(f"container {node_id} is not ready:\n{log}")
            time.sleep(_POLL_SECONDS)

    def _is_ready(self, node_id: int) -> bool:
        try:
            known = metadata(self._addresses[node_id]).brokers
        except OSError:
            return False
        # A paused broker is not waited for.
        return self._running - self._paused <= known.keys()

    def kill(self, node_id: int) -> None:
        """Kill a broker."""
        self._containers[node_id].kill()
        self._running.discard(node_id)

    def stop(self, node_id: int) -> None:
        """Shut a broker down."""
        self._containers[node_id].stop()
        self._running.discard(node_id)

    def start(self, node_id: int, *, wait: bool = True) -> None:
        """Start a broker that has stopped, with its data, on the same port.

        Raises:
            KafkaNotStarted: It did not come up.
        """
        self._containers[node_id].start()
        self._running.add(node_id)
        if wait:
            for running in sorted(self._running - self._paused):
                self._wait_ready(running)

    def pause(self, node_id: int) -> None:
        """Pause a broker; its sockets stay open."""
        self._containers[node_id].pause()
        self._paused.add(node_id)

    def resume(self, node_id: int) -> None:
        """Resume a paused broker."""
        self._containers[node_id].resume()
        self._paused.discard(node_id)

    def log(self, node_id: int) -> str:
        """Return what a broker has logged."""
        return self._containers[node_id].log()


def _connect() -> DockerPort:
    # Imported late: the extra ``docker`` may not be installed.
    from kafkaio.testing.kafka._containers import TestcontainersDocker

    return TestcontainersDocker()
