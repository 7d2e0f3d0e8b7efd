"""The ZooKeeper that stores the metadata of releases before KRaft."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from kafkaio.testing.kafka._launcher import Launcher
from kafkaio.testing.kafka._nodes import JvmNode, free_ports
from kafkaio.testing.kafka._options import ClusterOptions
from kafkaio.testing.kafka._properties import Properties, Value, spell
from kafkaio.testing.kafka._releases import KafkaNotStarted
from kafkaio.testing.kafka._sidecar import Sidecar
from kafkaio.testing.kafka._storage import SCRAM_ITERATIONS

_POLL_SECONDS: Final = 0.05
_CONNECT_SECONDS: Final = 1.0
_TOOL_SECONDS: Final = 60.0
_CLIENT: Final = "CLIENT"
_MAIN: Final = "org.apache.zookeeper.server.ZooKeeperServerMain"
_SESSION: Final = "zookeeper.session.timeout.ms"
_DEFAULT_SESSION_MS: Final = 18000
_FAST_SESSION_MS: Final = 2000


class ZooKeeper:
    """A single ZooKeeper server, from the release's own dependencies."""

    def __init__(self, launcher: Launcher):
        self._launcher = launcher
        (port,) = free_ports(1)
        directory = launcher.directory / "node-zookeeper"
        self.node: JvmNode = JvmNode(0, directory, {_CLIENT: port})

    @property
    def connect(self) -> str:
        """The ``zookeeper.connect`` property."""
        host, port = self.node.address(_CLIENT)
        return f"{host}:{port}"

    def start(self, timeout: float) -> None:
        """Start it and wait until it accepts connections.

        Raises:
            KafkaNotStarted: It ended, or took longer than ``timeout`` seconds.
        """
        with self._launcher.step():
            self.node.data.mkdir(parents=True)
            file = self.node.directory / "zookeeper.properties"
            port = self.node.ports[_CLIENT]
            file.write_text(spell(zookeeper_properties(port, self.node.data)), "utf-8")
        self._launcher.launch(self.node, _MAIN, file)
        end = time.monotonic() + timeout
        while not self._answers():
            self._launcher.check()
            if self.node.pid is None or time.monotonic() > end:
                raise KafkaNotStarted(f"no ZooKeeper:\n{self.node.complaint()}")
            time.sleep(_POLL_SECONDS)

    def _answers(self) -> bool:
        address = self.node.address(_CLIENT)
        try:
            with socket.create_connection(address, _CONNECT_SECONDS) as connection:
                return bool(connection.getsockname() != connection.getpeername())
        except OSError:
            return False

    def add_scram_users(self, users: Mapping[str, str]) -> None:
        """Store SCRAM credentials, which brokers read from ZooKeeper (KIP-84).

        Raises:
            KafkaNotStarted: The tool failed; the message is its output.
        """
        for user, password in users.items():
            secret = f"[iterations={SCRAM_ITERATIONS},password={password}]"
            command = self._launcher.command(
                "kafka.admin.ConfigCommand",
                *("--zookeeper", self.connect, "--alter"),
                *("--entity-type", "users", "--entity-name", user),
                *("--add-config", f"SCRAM-SHA-256={secret},SCRAM-SHA-512={secret}"),
            )
            self._launcher.check()
            self._run(command)

    def _run(self, command: list[str | Path]) -> None:
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=_TOOL_SECONDS, check=False
        )
        if answer.returncode:
            raise KafkaNotStarted(f"kafka-configs: {answer.stdout}{answer.stderr}")


class ZooKeeperSidecar(Sidecar):
    """A ZooKeeper beside brokers that keep their metadata there."""

    def __init__(self) -> None:
        self._server: ZooKeeper | None = None
        self._is_fast = True

    def start(self, launcher: Launcher, options: ClusterOptions) -> None:
        """Start a new ZooKeeper: one that knows no broker of an attempt that failed."""
        self._is_fast = options.fast
        self._server = server = ZooKeeper(launcher)
        server.start(options.start_timeout)
        if options.sasl:
            server.add_scram_users(options.accounts)

    def configure(self, properties: Properties, listeners: Sequence[str]) -> Properties:
        """Return where ZooKeeper is, and how soon it forgets a broker."""
        del properties, listeners
        assert self._server is not None
        found: Properties = {
            "zookeeper.connect": self._server.connect,
            "zookeeper.connection.timeout.ms": 20000,
        }
        if self._is_fast:
            found[_SESSION] = _FAST_SESSION_MS
        return found

    def restart_delay(self, properties: Properties) -> float:
        """Return after how many seconds ZooKeeper forgets a broker that was killed."""
        return forget_after(properties)


def forget_after(config: Mapping[str, Value]) -> float:
    """Return after how many seconds ZooKeeper forgets a broker that was killed.

    Until then the broker's old registration keeps it from starting again.
    """
    # The server checks once per tick, so a session may last one tick longer.
    return int(str(config.get(_SESSION, _DEFAULT_SESSION_MS))) / 1000 + 1.0


def zookeeper_properties(port: int, data: Path) -> Properties:
    """Return the configuration of a lone ZooKeeper on 127.0.0.1."""
    return {
        "dataDir": data,
        "clientPort": port,
        "clientPortAddress": "127.0.0.1",
        "maxClientCnxns": 0,
        "tickTime": 500,
        "admin.enableServer": "false",
    }
