"""The files of a log: in a directory or in memory.

A log uses a flat directory and four operations on files: read at a position, append,
truncate, flush. So it is easy to say what a power cut can do. Any part of an append
that was not flushed can be missing or garbage. A file that was created, replaced or
removed can be as it was before, until `StoragePort.sync`.
"""

from __future__ import annotations

import contextlib
import os
from io import FileIO
from pathlib import Path
from typing import Protocol

from kafkaio._records.compression import BytesLike

_SCRATCH_SUFFIX = ".tmp"


class StoredFilePort(Protocol):
    """One open file."""

    @property
    def size(self) -> int:
        """Size of the file in bytes."""
        ...

    def read(self, position: int, count: int) -> bytes:
        """Return at most ``count`` bytes from ``position``, fewer at the end."""
        ...

    def append(self, data: BytesLike) -> None:
        """Write at the end, all or nothing; a power cut can undo it until `flush`."""
        ...

    def truncate(self, size: int) -> None:
        """Shorten the file to ``size`` bytes; a power cut can undo it until `flush`."""
        ...

    def flush(self) -> None:
        """Make all changes of the file durable."""
        ...

    def close(self) -> None:
        """Close the file; it is opened again on next use."""
        ...


class StoragePort(Protocol):
    """The files of one log."""

    def names(self) -> list[str]:
        """The names of all files, sorted."""
        ...

    def open(self, name: str) -> StoredFilePort:
        """Open a file; create it if it does not exist."""
        ...

    def remove(self, name: str) -> None:
        """Remove a closed file, if there is one."""
        ...

    def replace(self, old: str, new: str) -> None:
        """Rename a closed file in one step; it replaces a file of the new name."""
        ...

    def sync(self) -> None:
        """Make all created, replaced and removed files durable."""
        ...

    def close(self) -> None:
        """Close all files without a flush, as when the process is killed."""
        ...


def read_whole(storage: StoragePort, name: str) -> bytes:
    """Return the content of a file, empty if the file does not exist."""
    if name not in storage.names():
        return b""
    file = storage.open(name)
    try:
        return file.read(0, file.size)
    finally:
        file.close()


def write_whole(storage: StoragePort, name: str, data: bytes) -> None:
    """Replace a small file; after a power cut it is the old one or the new one."""
    scratch = name + _SCRATCH_SUFFIX
    file = storage.open(scratch)
    try:
        # A crash may have left a longer one.
        file.truncate(0)
        file.append(data)
        file.flush()
    finally:
        file.close()
    # The content is durable before the name is.
    storage.replace(scratch, name)
    storage.sync()


class _MemoryFile:
    __slots__ = ("_data",)

    def __init__(self) -> None:
        self._data = bytearray()

    @property
    def size(self) -> int:
        return len(self._data)

    def read(self, position: int, count: int) -> bytes:
        return bytes(self._data[position : position + count])

    def append(self, data: BytesLike) -> None:
        self._data += data

    def truncate(self, size: int) -> None:
        del self._data[size:]

    def flush(self) -> None:
        """Do nothing: memory needs no flush."""

    def close(self) -> None:
        """Do nothing: no file handle is kept."""


class MemoryStorage:
    """Files in memory, as long as this object lives. A log can be reopened on it."""

    __slots__ = ("_files",)

    def __init__(self) -> None:
        self._files: dict[str, _MemoryFile] = {}

    def names(self) -> list[str]:
        """The names of all files, sorted."""
        return sorted(self._files)

    def open(self, name: str) -> StoredFilePort:
        """Open a file; create it if it does not exist."""
        return self._files.setdefault(name, _MemoryFile())

    def remove(self, name: str) -> None:
        """Remove a file, if there is one."""
        self._files.pop(name, None)

    def replace(self, old: str, new: str) -> None:
        """Rename a file; it replaces a file of the new name."""
        self._files[new] = self._files.pop(old)

    def sync(self) -> None:
        """Do nothing: memory needs no flush."""

    def close(self) -> None:
        """Do nothing: no file handle is kept."""


class _DiskFile:
    """A file that is opened on use, so that old segments need no file handle."""

    __slots__ = ("_handle", "_open_files", "_path", "size")

    def __init__(self, path: Path, open_files: set[_DiskFile]) -> None:
        self._path = path
        self._open_files = open_files
        self._handle: FileIO | None = None
        self.size = os.fstat(self._opened().fileno()).st_size

    def _opened(self) -> FileIO:
        if self._handle is None:
            # Not in append mode: appends write at `size`, which truncation changes.
            flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
            self._handle = FileIO(os.open(self._path, flags, 0o644), "r+")
            self._open_files.add(self)
        return self._handle

    def read(self, position: int, count: int) -> bytes:
        handle = self._opened()
        handle.seek(position)
        return handle.read(max(min(count, self.size - position), 0))

    def append(self, data: BytesLike) -> None:
        handle = self._opened()
        handle.seek(self.size)
        rest = memoryview(data)
        try:
            while rest:
                # An unbuffered write can be short, for example on a nearly full disk.
                rest = rest[handle.write(rest) :]
        except BaseException:
            # The part that was written is taken back, so that the next append does not
            # follow half a batch.
            with contextlib.suppress(OSError):
                handle.truncate(self.size)
            raise
        self.size += len(data)

    def truncate(self, size: int) -> None:
        self._opened().truncate(size)
        self.size = size

    def flush(self) -> None:
        os.fsync(self._opened().fileno())

    def close(self) -> None:
        if self._handle is not None:
            self._handle.close()
            self._handle = None
            self._open_files.discard(self)


class DiskStorage:
    """The files of one directory, which is created if it does not exist.

    Args:
        directory: the partition's directory; Kafka names it ``topic-partition``.
    """

    __slots__ = ("_directory", "_open_files")

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._open_files: set[_DiskFile] = set()

    def names(self) -> list[str]:
        """The names of all files, sorted."""
        return sorted(p.name for p in self._directory.iterdir() if p.is_file())

    def open(self, name: str) -> StoredFilePort:
        """Open a file; create it if it does not exist."""
        return _DiskFile(self._directory / name, self._open_files)

    def remove(self, name: str) -> None:
        """Remove a file, if there is one."""
        (self._directory / name).unlink(missing_ok=True)

    def replace(self, old: str, new: str) -> None:
        """Rename a file in one step; it replaces a file of the new name."""
        (self._directory / old).replace(self._directory / new)

    def sync(self) -> None:
        """Flush the directory; Windows neither can nor needs to."""
        if os.name != "posix":
            return
        handle = os.open(self._directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def close(self) -> None:
        """Close all files without a flush, as when the process is killed."""
        for file in list(self._open_files):
            file.close()
