"""Where a cluster keeps its logs and its metadata: in memory, or in a directory."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Final, NotRequired, Protocol, TypedDict

from kafkaio.testing.log import DiskStorage, MemoryStorage, Storage

__all__ = ["DiskStore", "Kept", "KeptTopic", "MemoryStore", "Store"]

_FILE: Final = "cluster.json"
_KEYS: Final = {"cluster_id", "next_producer_id", "topics"}


class KeptTopic(TypedDict):
    """What is kept of a topic; the lists are in the order of its partitions."""

    id: str
    configs: dict[str, str]
    replicas: list[list[int]]
    epochs: list[int]


class Kept(TypedDict):
    """What is kept of a cluster."""

    cluster_id: str
    next_producer_id: int
    topics: dict[str, KeptTopic]
    configs: NotRequired[list[tuple[int, str, dict[str, str]]]]


class Store(Protocol):
    """Where a cluster keeps what it has."""

    def partition(self, topic: str, index: int) -> Storage:
        """Where the log of a partition is."""

    def remove_partition(self, topic: str, index: int) -> None:
        """Throw the log of a partition away; it is closed."""

    def save(self, kept: Kept) -> None:
        """Keep the cluster's metadata in place of what was kept before."""

    def load(self) -> Kept | None:
        """What was saved last; None if nothing was."""


class MemoryStore:
    """Keeps everything in memory, and nothing beyond the process; a Store."""

    def __init__(self) -> None:
        self._partitions: dict[tuple[str, int], MemoryStorage] = {}

    def partition(self, topic: str, index: int) -> Storage:
        """Where the log of a partition is."""
        return self._partitions.setdefault((topic, index), MemoryStorage())

    def remove_partition(self, topic: str, index: int) -> None:
        """Throw the log of a partition away."""
        self._partitions.pop((topic, index), None)

    def save(self, kept: Kept) -> None:
        """Nothing: metadata lives as long as the cluster."""

    def load(self) -> Kept | None:
        """Nothing was saved."""
        return None


class DiskStore:
    """Keeps everything in a directory, as Kafka does its logs; a Store.

    Args:
        directory: made if it is not there.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def partition(self, topic: str, index: int) -> Storage:
        """Where the log of a partition is."""
        return DiskStorage(self._directory / f"{topic}-{index}")

    def remove_partition(self, topic: str, index: int) -> None:
        """Throw the log of a partition away."""
        shutil.rmtree(self._directory / f"{topic}-{index}", ignore_errors=True)

    def save(self, kept: Kept) -> None:
        """Keep the cluster's metadata; a crash leaves the old or the new."""
        new = self._directory / f"{_FILE}.new"
        new.write_text(json.dumps(kept, indent=1))
        new.replace(self._directory / _FILE)

    def load(self) -> Kept | None:
        """What was saved last; None if nothing was.

        Raises:
            ValueError: the file is not one of ours.
        """
        file = self._directory / _FILE
        try:
            read: Any = json.loads(file.read_text())
        except FileNotFoundError:
            return None
        except ValueError:
            raise ValueError(f"{file} is damaged") from None
        if not isinstance(read, dict) or not read.keys() >= _KEYS:
            raise ValueError(f"{file} was not written by an embedded broker")
        kept: Kept = read  # type: ignore[assignment]  # written by save
        return kept
