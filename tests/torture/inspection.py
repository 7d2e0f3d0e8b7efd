"""What Kafka's own tools say about the topics, groups and files of a run."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

from kafkaio.testing.kafka._cluster import JvmCluster
from tests.support.java import JavaFailed, Toolbox
from tests.torture.brokers import OFFSETS, STATES, Brokers
from tests.torture.copied import (
    Coordinated,
    Replay,
    committed_by_dump,
    coordinated_by_dump,
    open_by_batches,
)

CONSOLE_CONSUMER: Final = "org.apache.kafka.tools.consumer.ConsoleConsumer"
_DUMP: Final = "org.apache.kafka.tools.DumpLogSegments"
_GROUPS: Final = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
_TRANSACTIONS: Final = "org.apache.kafka.tools.TransactionsCommand"
#: The console consumer ends when it has read nothing for so long.
_SILENCE_MS: Final = 15_000
_TOOL_SECONDS: Final = 300.0


class Inspection:
    """Asks the tools; each call is a JVM of its own.

    Args:
        tools: the tools.
        cluster: whose files are read; its brokers are up, and all replicas in sync.
        brokers: tell who leads.
        bootstrap: servers that the tools can reach.
    """

    def __init__(
        self, tools: Toolbox, cluster: JvmCluster, brokers: Brokers, bootstrap: str
    ) -> None:
        self._tools = tools
        self._cluster = cluster
        self._brokers = brokers
        self._bootstrap = bootstrap

    async def _run(self, main: str, *args: str) -> list[str]:
        output = await self._tools.run(main, *args, timeout=_TOOL_SECONDS)
        if output.returncode:
            raise JavaFailed(f"{main}: {output.stdout[-2000:]}{output.stderr[-2000:]}")
        return output.lines

    async def read_committed(self, topic: str) -> list[str]:
        """The values that the console consumer reads, read_committed."""
        return await self._run(
            CONSOLE_CONSUMER,
            *("--bootstrap-server", self._bootstrap, "--topic", topic),
            *("--from-beginning", "--isolation-level", "read_committed"),
            *("--timeout-ms", str(_SILENCE_MS)),
        )

    async def replay(self, topic: str) -> Replay:
        """What the files of the leaders contain."""
        files = self._files(topic)
        return committed_by_dump(await self._dump(files, "--print-data-log"))

    async def coordinated(self) -> Coordinated:
        """What the log of the transaction coordinators says."""
        files = self._files(STATES)
        return coordinated_by_dump(await self._dump(files, "--transaction-log-decoder"))

    async def open_offsets(self) -> set[tuple[str, int]]:
        """The transactions that are open at partitions with the groups' offsets."""
        return open_by_batches(await self._dump(self._files(OFFSETS)))

    async def _dump(self, files: Collection[Path], *options: str) -> list[str]:
        names = ",".join(map(str, files))
        return await self._run(_DUMP, *options, "--files", names)

    def _files(self, topic: str) -> list[Path]:
        """The segments of a topic at their leaders, in order."""
        found: list[Path] = []
        for partition, leader in sorted(self._brokers.leaders(topic).items()):
            data = self._cluster.nodes[leader].data
            found += sorted((data / f"{topic}-{partition}").glob("*.log"))
        return found

    async def hanging(self) -> list[str]:
        """The transactions that ``find-hanging`` finds, one line each."""
        lines: list[str] = []
        for node in self._cluster.node_ids:
            lines += await self._run(
                _TRANSACTIONS,
                *("--bootstrap-server", self._bootstrap, "find-hanging"),
                *("--broker-id", str(node), "--max-transaction-timeout", "0"),
            )
        return [line for line in lines if line.strip() and "ProducerId" not in line]

    async def offsets(self, group: str) -> tuple[dict[int, int], dict[int, int]]:
        """What the group has committed, and where the partitions end."""
        return read_offsets(
            await self._run(
                _GROUPS,
                *("--bootstrap-server", self._bootstrap),
                *("--describe", "--group", group),
            )
        )


def read_offsets(lines: Iterable[str]) -> tuple[dict[int, int], dict[int, int]]:
    """Read ``ConsumerGroupCommand --describe``: committed offsets and ends."""
    committed: dict[int, int] = {}
    ends: dict[int, int] = {}
    for line in lines:
        # GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG ...
        if found := re.match(r"\S+\s+\S+\s+(\d+)\s+(\d+|-)\s+(\d+|-)\s", line):
            partition, at, end = found.groups()
            if at != "-":
                committed[int(partition)] = int(at)
            if end != "-":
                ends[int(partition)] = int(end)
    return committed, ends
