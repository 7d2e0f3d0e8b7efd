"""Offsets in a table of an SQLite database."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Mapping
from contextlib import closing

from kafkaio.consumer.stores.blocking import BlockingStore
from kafkaio.errors import UsageError
from kafkaio.types import OffsetAndMetadata, TopicPartition

__all__ = ["SQLiteOffsetStore"]

_CREATE = """
CREATE TABLE IF NOT EXISTS kafkaio_offsets (
    group_id TEXT NOT NULL,
    topic TEXT NOT NULL,
    partition INTEGER NOT NULL,
    offset INTEGER NOT NULL,
    leader_epoch INTEGER NOT NULL,
    metadata TEXT NOT NULL,
    PRIMARY KEY (group_id, topic, partition)
) WITHOUT ROWID
"""
_READ = """
SELECT offset, metadata, leader_epoch FROM kafkaio_offsets
WHERE group_id = ? AND topic = ? AND partition = ?
"""
_WRITE = """
INSERT OR REPLACE INTO kafkaio_offsets
    (group_id, topic, partition, offset, leader_epoch, metadata)
VALUES (?, ?, ?, ?, ?, ?)
"""


class SQLiteOffsetStore(BlockingStore):
    """Offsets in the table ``kafkaio_offsets``; a commit is one transaction.

    Each call opens the database in a thread and closes it again. Members may share a
    file on one machine.

    Args:
        path: file of the database; it is made when it is first needed.
        busy_timeout: seconds to wait for others who write to it.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, busy_timeout: float = 5.0
    ) -> None:
        super().__init__()
        self._path = os.fspath(path)
        if self._path in {"", ":memory:"}:
            raise UsageError("offsets in memory are gone with it: give a file's path")
        self._busy_timeout = busy_timeout

    def __repr__(self) -> str:
        return f"SQLiteOffsetStore({self._path!r})"

    @staticmethod
    def put(
        connection: sqlite3.Connection,
        group_id: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
    ) -> None:
        """Write the rows in a transaction of yours, which you commit.

        Results that are written in the same transaction stay in step with the
        offsets: with ``enable_auto_commit=False`` each record counts once.

        Raises:
            sqlite3.Error: the database cannot be written.
        """
        connection.execute(_CREATE)
        connection.executemany(
            _WRITE,
            [
                (group_id, *tp, at.offset, at.leader_epoch, at.metadata)
                for tp, at in offsets.items()
            ],
        )

    def _load(
        self, group_id: str, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        found = dict[TopicPartition, OffsetAndMetadata]()
        with closing(self._connect()) as connection, connection:
            connection.execute(_CREATE)
            for tp in partitions:
                row = connection.execute(_READ, (group_id, *tp)).fetchone()
                if row is not None:
                    found[tp] = OffsetAndMetadata(*row)
        return found

    def _commit(
        self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None:
        with closing(self._connect()) as connection, connection:
            self.put(connection, group_id, offsets)

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=self._busy_timeout)
