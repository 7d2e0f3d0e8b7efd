"""Where a log keeps its bytes: a directory, or memory.

A log uses flat names and four operations on files: read anywhere, append, truncate,
flush. What a power cut may do is therefore easily said: of an append that was not
flushed any part may be missing or nonsense, and a name that was made, replaced or
removed may be as it was before until `Storage.sync`.
"""

from __future__ import annotations

import contextlib
import os
from io import FileIO
from pathlib import Path
from typing import Protocol

from kafkaio._records.compression import BytesLike

__all__ = [
    "DiskStorage",
    "MemoryStorage",
    "Storage",
    "StoredFile",
    "read_whole",
    "write_whole",
]

_SCRATCH_SUFFIX = ".tmp"


class StoredFile(Protocol):
    """One open file."""

    @property
    def size(self) -> int:
        """Bytes in the file."""
        ...

    def read(self, position: int, count: int) -> bytes:
        """Return at most ``count`` bytes from ``position``, fewer at the end."""
        ...

    def append(self, data: BytesLike) -> None:
        """Write at the end, all or nothing; a power cut may undo it until `flush`."""
        ...

    def truncate(self, size: int) -> None:
        """Cut the file off; a power cut may undo it until `flush`."""
        ...

    def flush(self) -> None:
        """Return once no power cut can undo what was done to the file."""
        ...

    def close(self) -> None:
        """Give the handle back; the next use opens the file again."""
        ...


class Storage(Protocol):
    """The files of one log."""

    def names(self) -> list[str]:
        """The names of all files, sorted."""
        ...

    def open(self, name: str) -> StoredFile:
        """Open a file, which is made if there is none."""
        ...

    def remove(self, name: str) -> None:
        """Remove a closed file, if there is one."""
        ...

    def replace(self, old: str, new: str) -> None:
        """Give a closed file a new name, in one step, whatever had that name."""
        ...

    def sync(self) -> None:
        """Return once no power cut can undo what was done to the names."""
        ...

    def close(self) -> None:
        """Give back all handles, and flush nothing: so a killed broker leaves it."""
        ...


def read_whole(storage: Storage, name: str) -> bytes:
    """Return what a file holds, nothing if there is none."""
    if name not in storage.names():
        return b""
    file = storage.open(name)
    try:
        return file.read(0, file.size)
    finally:
        file.close()


def write_whole(storage: Storage, name: str, data: bytes) -> None:
    """Replace a small file: a power cut leaves the old one or the new one."""
    scratch = name + _SCRATCH_SUFFIX
    file = storage.open(scratch)
    try:
        file.truncate(0)
        file.append(data)
        file.flush()
    finally:
        file.close()
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
        """Memory has nowhere to flush to."""

    def close(self) -> None:
        """Memory has no handle."""


class MemoryStorage:
    """Files that live as long as this object; a log can be opened on it again."""

    __slots__ = ("_files",)

    def __init__(self) -> None:
        self._files: dict[str, _MemoryFile] = {}

    def names(self) -> list[str]:
        """The names of all files, sorted."""
        return sorted(self._files)

    def open(self, name: str) -> StoredFile:
        """Open a file, which is made if there is none."""
        return self._files.setdefault(name, _MemoryFile())

    def remove(self, name: str) -> None:
        """Remove a file, if there is one."""
        self._files.pop(name, None)

    def replace(self, old: str, new: str) -> None:
        """Give a file a new name, whatever had that name."""
        self._files[new] = self._files.pop(old)

    def sync(self) -> None:
        """Memory has nowhere to sync to."""

    def close(self) -> None:
        """Memory has no handle."""


class _DiskFile:
    """A file that is opened when used, so that cold segments cost no handle."""

    __slots__ = ("_handle", "_open_files", "_path", "size")

    def __init__(self, path: Path, open_files: set[_DiskFile]) -> None:
        self._path = path
        self._open_files = open_files
        self._handle: FileIO | None = None
        self.size = os.fstat(self._opened().fileno()).st_size

    def _opened(self) -> FileIO:
        if self._handle is None:
            # Appending is by position, not by mode: truncation must hold for it too.
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
                # An unbuffered write may be short, say where the disk is nearly full.
                rest = rest[handle.write(rest) :]
        except BaseException:
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
    """The files of one directory, which is made if there is none.

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

    def open(self, name: str) -> StoredFile:
        """Open a file, which is made if there is none."""
        return _DiskFile(self._directory / name, self._open_files)

    def remove(self, name: str) -> None:
        """Remove a file, if there is one."""
        (self._directory / name).unlink(missing_ok=True)

    def replace(self, old: str, new: str) -> None:
        """Give a file a new name, in one step, whatever had that name."""
        (self._directory / old).replace(self._directory / new)

    def sync(self) -> None:
        """Flush the directory, where the system can (Windows cannot, nor need it)."""
        if os.name != "posix":
            return
        handle = os.open(self._directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def close(self) -> None:
        """Give back all handles, and flush nothing: so a killed broker leaves it."""
        for file in list(self._open_files):
            file.close()
