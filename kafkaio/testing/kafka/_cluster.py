"""A cluster of JVMs that this process starts, under blocking control.

Any thread may call it, and no event loop is involved, so one cluster can serve
a whole test session whose tests have a loop each.
"""

import contextlib
import secrets
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kafkaio.testing._security.files import Certificates
from kafkaio.testing.kafka._launcher import Launcher
from kafkaio.testing.kafka._nodes import JvmNode, free_ports
from kafkaio.testing.kafka._options import ClusterOptions
from kafkaio.testing.kafka._properties import (
    CONTROLLER,
    PLAINTEXT,
    SASL_LISTENERS,
    BrokerTlsFiles,
    Plan,
    Properties,
    server_properties,
    spell,
)
from kafkaio.testing.kafka._releases import KafkaNotStarted
from kafkaio.testing.kafka._sidecar import Sidecar
from kafkaio.testing.kafka._storage import (
    VOTERS_FILE,
    bootstrap_checkpoint,
    meta_properties,
    random_uuid,
    voters_checkpoint,
)
from kafkaio.testing.kafka._wire import Address, metadata

_POLL_SECONDS: Final = 0.03
_STOP_SECONDS: Final = 20.0
_PORT_ATTEMPTS: Final = 3
_PORT_TAKEN: Final = "Address already in use"
_SALT_BYTES: Final = 24


class _PortTaken(KafkaNotStarted):
    """Another process took a port after we chose it and before the broker bound it."""


class JvmCluster:
    """Brokers on 127.0.0.1 that run as child processes; an ``Engine``.

    Args:
        options: The options of the cluster.
        sidecars: Servers that run beside the brokers. A release without KRaft needs
            one that configures ``zookeeper.connect``.

    Attributes:
        options: The options of the cluster.
        nodes: The brokers by id, from 1.
        certificates: The TLS files for clients, once open, if ``tls`` was set.
    """

    def __init__(self, options: ClusterOptions, sidecars: Sequence[Sidecar] = ()):
        self.options = options
        self._sidecars = tuple(sidecars)
        self.nodes: dict[int, JvmNode] = {}
        self.certificates: Certificates | None = None
        self._launcher = Launcher(
            options.release, options.heap, fast=options.fast, plugins=options.plugins
        )
        self._plan = Plan(release=options.release)
        self._tls: BrokerTlsFiles | None = None
        self._cluster_id = random_uuid()

    @property
    def node_ids(self) -> list[int]:
        """The ids of the brokers."""
        return list(self.nodes)

    @property
    def directory(self) -> Path:
        """The parent of the nodes' directories; ``close`` removes it."""
        return self._launcher.directory

    def addresses(self, listener: str) -> list[Address]:
        """Return host and port of each node's listener.

        Raises:
            KeyError: The cluster has no such listener.
        """
        return [node.address(listener) for node in self.nodes.values()]

    def log(self, node_id: int) -> str:
        """Return what a node has logged."""
        return self.nodes[node_id].log()

    # Start and stop

    def open(self) -> None:
        """Start all nodes, and wait until each knows all others.

        Raises:
            KafkaNotStarted: A step failed, or ``close`` was called meanwhile.
        """
        if self.options.release.zookeeper and not self._sidecars:
            raise KafkaNotStarted(
                f"Kafka {self.options.release.short} keeps its metadata in ZooKeeper, "
                "which this package does not start: use a newer release, the embedded "
                "broker, or a cluster that runs ($KAFKAIO_BOOTSTRAP)"
            )
        self._launcher.prepare()
        if self.options.tls:
            self._make_certificates()
        for last in [False] * (_PORT_ATTEMPTS - 1) + [True]:
            try:
                self._open_nodes()
            except _PortTaken:
                if last:
                    raise
                # All nodes again: they know each other by their ports.
                self._launcher.wipe()
            else:
                return

    def close(self) -> None:
        """End all nodes and remove their files; a second call does nothing."""
        self._launcher.close()

    def _make_certificates(self) -> None:
        try:
            from kafkaio.testing.kafka._certs import make_certificates
        except ImportError as error:
            raise KafkaNotStarted(f"{error}: install kafkaio[kafka]") from error
        with self._launcher.step():
            self.certificates, self._tls = make_certificates(
                self._launcher.directory / "tls", self.options.accounts
            )

    def _open_nodes(self) -> None:
        for sidecar in self._sidecars:
            sidecar.start(self._launcher, self.options)
        self._lay_out()
        for node in self.nodes.values():
            with self._launcher.step():
                self._format(node)
            self._launch(node)
        for node in self.nodes.values():
            self._wait_ready(node)

    def _lay_out(self) -> None:
        """Choose the ports of the nodes, and the settings that they share."""
        options = self.options
        plan = Plan(
            release=options.release,
            dynamic_voters=options.dynamic_voters,
            brokers=options.brokers,
            users=options.accounts if options.sasl else None,
            tls=self._tls,
            reauth_ms=options.reauth_ms,
            acls=options.acls,
            delegation_tokens=options.delegation_tokens,
            rack=options.rack,
            fast=options.fast,
            config=options.config,
        )
        names = plan.listeners
        if not options.release.zookeeper:
            names = [CONTROLLER, *names]
        for sidecar in self._sidecars:
            names = [*names, *sidecar.ports]
        ports = iter(free_ports(options.brokers * len(names)))
        self.nodes = {
            node_id: JvmNode(
                node_id,
                self._launcher.directory / f"node{node_id}",
                {name: next(ports) for name in names},
            )
            for node_id in range(1, options.brokers + 1)
        }
        if not options.release.zookeeper:
            plan = plan.with_voters(
                {node.id: node.ports[CONTROLLER] for node in self.nodes.values()}
            )
        self._plan = plan

    def _properties(self, node: JvmNode) -> Properties:
        # A broker would take the port of a sidecar for a listener.
        others = {name for sidecar in self._sidecars for name in sidecar.ports}
        ports = {name: port for name, port in node.ports.items() if name not in others}
        found = server_properties(self._plan, node.id, ports, node.data)
        listeners = [name for name in ports if name in SASL_LISTENERS]
        for sidecar in self._sidecars:
            found |= sidecar.configure(found, listeners)
        # Once more at the end: the user's properties override those of sidecars, too.
        return found | dict(self.options.config or {})

    def _format(self, node: JvmNode) -> None:
        node.data.mkdir(parents=True)
        file = node.directory / "server.properties"
        file.write_text(spell(self._properties(node)), "utf-8")
        if self.options.release.zookeeper:
            return
        directory_id, now_ms = random_uuid(), time.time_ns() // 1_000_000
        (node.data / "meta.properties").write_text(
            meta_properties(self._cluster_id, node.id, directory_id), "utf-8"
        )
        checkpoint = bootstrap_checkpoint(
            self.options.levels,
            self.options.accounts if self.options.sasl else {},
            now_ms=now_ms,
            salt=secrets.token_bytes(_SALT_BYTES),
        )
        (node.data / "bootstrap.checkpoint").write_bytes(checkpoint)
        # The first node is the only voter; the others find it and ask to join
        # (KIP-853).
        if self.options.dynamic_voters and node is self.nodes[min(self.nodes)]:
            port = node.ports[CONTROLLER]
            voters = voters_checkpoint(
                node.id, directory_id, CONTROLLER, port, now_ms=now_ms
            )
            file = node.data / VOTERS_FILE
            file.parent.mkdir()
            file.write_bytes(voters)

    def _launch(self, node: JvmNode) -> None:
        file = node.directory / "server.properties"
        flags = [flag for sidecar in self._sidecars for flag in sidecar.flags(node)]
        self._launcher.launch(node, "kafka.Kafka", file, flags=flags)

    def _running(self) -> list[JvmNode]:
        return [
            node
            for node in self.nodes.values()
            if node.pid is not None and not node.paused
        ]

    def _wait_ready(self, node: JvmNode) -> None:
        """Wait until a node answers and knows every node that runs."""
        end = time.monotonic() + self.options.start_timeout
        while not self._is_ready(node):
            self._launcher.check()
            if node.pid is None:
                problem = f"node {node.id} ended with {node.returncode}"
                # Between the choice of a port and its use another process can take it.
                taken = _PORT_TAKEN in node.log()
                kind = _PortTaken if taken else KafkaNotStarted
                raise kind(f"{problem}:\n{node.complaint()}")
            if time.monotonic() > end:
                raise KafkaNotStarted(
                    f"node {node.id} was not ready after "
                    f"{self.options.start_timeout} s:\n{node.complaint()}"
                )
            time.sleep(_POLL_SECONDS)

    def _is_ready(self, node: JvmNode) -> bool:
        running = {each.id: each.address(PLAINTEXT) for each in self._running()}
        with contextlib.suppress(OSError):
            known = metadata(node.address(PLAINTEXT)).brokers
            # Its address, too: a node that has started again may know another by its
            # old one.
            return running.items() <= known.items()
        return False

    # One node

    def kill(self, node_id: int) -> None:
        """Kill a node (SIGKILL)."""
        self.nodes[node_id].kill()

    def stop(self, node_id: int) -> None:
        """Shut a node down (SIGTERM): its leaderships move first."""
        self.nodes[node_id].terminate(_STOP_SECONDS)

    def start(self, node_id: int, *, wait: bool = True) -> None:
        """Start a node that has stopped, with its data, on the same ports.

        Args:
            node_id: Which one.
            wait: Return only when all nodes that run know one another.

        Raises:
            KafkaNotStarted: It did not come up.
        """
        node = self.nodes[node_id]
        if node.pid is None:
            # Its old registration would keep it from starting.
            self._wait_forgotten(node)
            self._launch(node)
        if wait:
            self._wait_ready(node)
            for other in self._running():
                self._wait_ready(other)

    def _wait_forgotten(self, node: JvmNode) -> None:
        properties = self._properties(node)
        delays = [sidecar.restart_delay(properties) for sidecar in self._sidecars]
        again = node.ended_at + max(delays, default=0.0)
        while time.monotonic() < again:
            self._launcher.check()
            time.sleep(_POLL_SECONDS)

    def pause(self, node_id: int) -> None:
        """Pause a node (SIGSTOP): it hangs, and its sockets stay open."""
        self.nodes[node_id].pause()

    def resume(self, node_id: int) -> None:
        """Resume a paused node (SIGCONT)."""
        self.nodes[node_id].resume()
