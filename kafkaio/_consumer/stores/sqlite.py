"""Offsets in a table of an SQLite database."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Mapping
from contextlib import closing

from kafkaio._consumer.stores.blocking import ThreadedStore
from kafkaio._public import public
from kafkaio.errors import ArgumentValueError
from kafkaio.types import GroupMetadata, OffsetAndMetadata, TopicPartition

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


@public("kafkaio")
class SQLiteOffsetStore:
    """Offsets in the table ``kafkaio_offsets``; a commit is one transaction.

    Each call opens the database in a thread and closes it again. Members on one machine
    may share a file.

    Args:
        path: file of the database; it is created when it is first needed.
        busy_timeout: seconds to wait while another connection writes to it.

    Raises:
        ArgumentValueError: the path stands for a database in memory.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, busy_timeout: float = 5.0
    ) -> None:
        self._threads = ThreadedStore(self._load, self._commit)
        self._path = os.fspath(path)
        if self._path in {"", ":memory:"}:
            raise ArgumentValueError(
                "a database in memory loses its offsets: give the path of a file"
            )
        self._busy_timeout = busy_timeout

    def __repr__(self) -> str:
        return f"SQLiteOffsetStore({self._path!r})"

    async def load(
        self, group: GroupMetadata, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """Read the group's offsets of these partitions, those that there are.

        Raises:
            sqlite3.Error: the database cannot be read.
        """
        return await self._threads.load(group, partitions)

    async def commit(
        self, group: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None:
        """Write offsets in one transaction.

        If the call is cancelled, they may still be written, but never over the offsets
        of a later call.

        Raises:
            sqlite3.Error: the database cannot be written.
        """
        await self._threads.commit(group, offsets)

    @staticmethod
    def put(
        connection: sqlite3.Connection,
        group_id: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
    ) -> None:
        """Write offsets in the caller's transaction, which the caller commits.

        Results that are written in the same transaction stay consistent with the
        offsets: with ``enable_auto_commit=False`` each record takes effect once.

        Args:
            connection: to the database of this store.
            group_id: the group.
            offsets: offsets of the next records to read.

        Raises:
            sqlite3.Error: the database cannot be written.
        """
        # The database may be the caller's own, in which the table does not exist yet.
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
        # The connection as a context manager ends the transaction; it does not close.
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
