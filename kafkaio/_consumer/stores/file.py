"""Offsets in files, one file for each partition of a group."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from urllib.parse import quote

from kafkaio._consumer.stores.blocking import ThreadedStore
from kafkaio._public import public
from kafkaio.errors import OffsetStoreError
from kafkaio.types import GroupMetadata, OffsetAndMetadata, TopicPartition


@public("kafkaio")
class FileOffsetStore:
    """Offsets in ``directory/GROUP/TOPIC/PARTITION``, as JSON.

    A file is replaced as a whole and is on the disk when the commit returns. So a crash
    leaves either the offset before the commit or the one after it. Members may share a
    directory, also over a network, because only the owner of a partition writes its
    file. A commit of several partitions replaces one file after another, in order.

    Args:
        directory: the directory; it is created when it is first needed.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self._threads = ThreadedStore(self._load, self._commit)
        self._directory = Path(directory)

    def __repr__(self) -> str:
        return f"FileOffsetStore({str(self._directory)!r})"

    async def load(
        self, group: GroupMetadata, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """Read the group's offsets of these partitions, those that there are.

        Raises:
            OffsetStoreError: a file does not hold an offset.
            OSError: a file cannot be read.
        """
        return await self._threads.load(group, partitions)

    async def commit(
        self, group: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None:
        """Replace the files of these partitions.

        If the call is cancelled, they may still be written, but never over the offsets
        of a later call.

        Raises:
            OSError: a file cannot be written.
        """
        await self._threads.commit(group, offsets)

    def _path(self, group_id: str, tp: TopicPartition) -> Path:
        return self._directory.joinpath(
            _name(group_id), _name(tp.topic), str(tp.partition)
        )

    def _load(
        self, group_id: str, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        found = dict[TopicPartition, OffsetAndMetadata]()
        for tp in partitions:
            path = self._path(group_id, tp)
            try:
                found[tp] = _decode(path.read_bytes())
            except FileNotFoundError:
                continue
            except ValueError as error:
                raise OffsetStoreError(f"{path} holds no offset: {error}") from error
        return found

    def _commit(
        self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None:
        # In a fixed order: a crash in between leaves the first partitions committed.
        for tp in sorted(offsets):
            path = self._path(group_id, tp)
            path.parent.mkdir(parents=True, exist_ok=True)
            _replace(path, _encode(offsets[tp]))


def _name(text: str) -> str:
    # A group may have any name, which must not lead to another directory.
    quoted = quote(text, safe="")
    return quoted.replace(".", "%2E") if quoted.startswith(".") else quoted


def _encode(offset: OffsetAndMetadata) -> bytes:
    fields = {
        "offset": offset.offset,
        "leader_epoch": offset.leader_epoch,
        "metadata": offset.metadata,
    }
    return json.dumps(fields).encode() + b"\n"


def _decode(data: bytes) -> OffsetAndMetadata:
    match json.loads(data):
        case {
            "offset": int(offset),
            "leader_epoch": int(epoch),
            "metadata": str(metadata),
        }:
            return OffsetAndMetadata(offset, metadata, epoch)
        case other:
            raise ValueError(f"{other!r}")


def _replace(path: Path, data: bytes) -> None:
    # In the same directory: a rename is atomic within one file system only.
    number, name = tempfile.mkstemp(prefix=".new-", dir=path.parent)
    try:
        with open(number, "wb") as file:
            file.write(data)
            file.flush()
            # Before the rename: a crash could leave the new name on an empty file.
            os.fsync(number)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
    # The new name of the file is on the disk once its directory is.
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
