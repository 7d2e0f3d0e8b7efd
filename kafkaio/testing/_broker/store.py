"""Stores for a cluster's logs and metadata: in memory, or in a directory."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Final, NotRequired, Protocol, TypedDict

from kafkaio.testing._broker.lock import DirectoryLock
from kafkaio.testing._broker.quotas import SavedQuota
from kafkaio.testing._log import DiskStorage, MemoryStorage, StoragePort

_FILE: Final = "cluster.json"
_KEYS: Final = {"cluster_id", "configs", "next_producer_id", "topics"}


class SavedTopic(TypedDict):
    """The saved metadata of a topic; the lists are in the order of its partitions."""

    id: str
    configs: dict[str, str]
    replicas: list[list[int]]
    epochs: list[int]


class SavedCluster(TypedDict):
    """The saved metadata of a cluster."""

    cluster_id: str
    next_producer_id: int
    topics: dict[str, SavedTopic]
    configs: list[tuple[int, str, dict[str, str]]]
    #: A cluster that an older version of kafkaio has saved has none.
    quotas: NotRequired[list[SavedQuota]]


class StorePort(Protocol):
    """Keeps the logs and the metadata of a cluster."""

    def acquire(self) -> None:
        """Take the store for one cluster alone.

        Raises:
            OSError: another cluster uses it.
        """

    def release(self) -> None:
        """Let others use it. May be called again."""

    def partition(self, topic: str, index: int) -> StoragePort:
        """The storage of a partition's log."""

    def remove_partition(self, topic: str, index: int) -> None:
        """Delete the log of a partition, which is closed."""

    def save(self, saved: SavedCluster) -> None:
        """Save the cluster's metadata in place of what was saved before."""

    def load(self) -> SavedCluster | None:
        """Return what was saved last; None if nothing was."""


class MemoryStore:
    """A Store in memory: nothing outlives the object."""

    def __init__(self) -> None:
        self._partitions: dict[tuple[str, int], MemoryStorage] = {}

    def acquire(self) -> None:
        """Do nothing: nobody else can reach it."""

    def release(self) -> None:
        """Do nothing."""

    def partition(self, topic: str, index: int) -> StoragePort:
        """The storage of a partition's log."""
        return self._partitions.setdefault((topic, index), MemoryStorage())

    def remove_partition(self, topic: str, index: int) -> None:
        """Delete the log of a partition."""
        self._partitions.pop((topic, index), None)

    def save(self, saved: SavedCluster) -> None:
        """Do nothing: the cluster itself holds its metadata."""

    def load(self) -> SavedCluster | None:
        """Return None: nothing is ever saved."""
        return None


class DiskStore:
    """A Store in a directory, with Kafka's layout of logs.

    Args:
        directory: created if it does not exist.

    Raises:
        OSError: the directory cannot be created.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._lock = DirectoryLock(directory)

    def acquire(self) -> None:
        """Lock the directory.

        Raises:
            OSError: another broker uses it, of this process or of another one.
        """
        self._lock.acquire()

    def release(self) -> None:
        """Unlock the directory. May be called again."""
        self._lock.release()

    def partition(self, topic: str, index: int) -> StoragePort:
        """The storage of a partition's log."""
        return DiskStorage(self._directory / f"{topic}-{index}")

    def remove_partition(self, topic: str, index: int) -> None:
        """Delete the log of a partition."""
        shutil.rmtree(self._directory / f"{topic}-{index}", ignore_errors=True)

    def save(self, saved: SavedCluster) -> None:
        """Save the cluster's metadata; after a crash the file is the old or the new."""
        new = self._directory / f"{_FILE}.new"
        new.write_text(json.dumps(saved, indent=1))
        # In one step: after a crash the file is the old one or the new one.
        new.replace(self._directory / _FILE)

    def load(self) -> SavedCluster | None:
        """Return what was saved last; None if nothing was.

        Raises:
            ValueError: the file is damaged, or was not written by `save`.
        """
        file = self._directory / _FILE
        try:
            read: Any = json.loads(file.read_text())
        except FileNotFoundError:
            return None
        except ValueError:
            raise ValueError(f"{file} is damaged") from None
        # A directory of a real Kafka, or of another program, is left alone.
        if not isinstance(read, dict) or not read.keys() >= _KEYS:
            raise ValueError(f"{file} was not written by an embedded broker")
        saved: SavedCluster = read  # type: ignore[assignment]  # written by save
        return saved
