"""The ZooKeeper that stores the metadata of releases before KRaft."""

import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kafkaio.testing.kafka._launcher import Launcher
from kafkaio.testing.kafka._nodes import Node, free_ports
from kafkaio.testing.kafka._properties import Plan, Value, spell, zookeeper_properties
from kafkaio.testing.kafka._releases import KafkaNotStarted
from kafkaio.testing.kafka._storage import SCRAM_ITERATIONS

_POLL_SECONDS: Final = 0.05
_CONNECT_SECONDS: Final = 1.0
_TOOL_SECONDS: Final = 60.0
_CLIENT: Final = "CLIENT"
_MAIN: Final = "org.apache.zookeeper.server.ZooKeeperServerMain"
_DEFAULT_SESSION_MS: Final = 18000


class ZooKeeper:
    """A single ZooKeeper server, from the release's own dependencies."""

    def __init__(self, launcher: Launcher):
        self._launcher = launcher
        (port,) = free_ports(1)
        directory = launcher.directory / "node-zookeeper"
        self.node: Node = Node(0, directory, {_CLIENT: port})

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


def forget_after(plan: Plan, config: Mapping[str, Value]) -> float:
    """Return after how many seconds ZooKeeper forgets a broker that was killed.

    Until then the broker's old registration keeps it from starting again.
    """
    if not plan.release.zookeeper:
        return 0.0
    key = "zookeeper.session.timeout.ms"
    # The server checks once per tick, so a session may last one tick longer.
    return int(str(config.get(key, _DEFAULT_SESSION_MS))) / 1000 + 1.0
