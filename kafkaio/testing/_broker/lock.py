"""The lock of a data directory: one broker at a time uses it.

As Kafka does, a broker locks the file ``.lock`` in its directory for as long as it
runs. The system releases the lock when the process ends, however it ends, so the file
itself means nothing and stays.
"""

from __future__ import annotations

import errno
import sys
from io import FileIO
from pathlib import Path
from typing import Final

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_FILE: Final = ".lock"
#: The errors of systems while another process holds the lock.
_HELD: Final = frozenset({errno.EAGAIN, errno.EACCES, errno.EDEADLK})


class DirectoryLock:
    """The lock of one directory, also against other brokers of the same process.

    Args:
        directory: the directory, which exists.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        # An object and no number: a broker that is forgotten gives its lock back.
        self._file: FileIO | None = None

    def acquire(self) -> None:
        """Take the lock. It does not wait.

        Raises:
            OSError: another broker holds the lock, or the file cannot be locked.
        """
        file = FileIO(self._directory / _FILE, "a+")
        try:
            _lock(file.fileno())
        except OSError as error:
            file.close()
            if error.errno not in _HELD:
                raise
            raise OSError(
                errno.EAGAIN,
                f"another broker uses this directory: it holds the lock of {_FILE}",
                str(self._directory),
            ) from None
        self._file = file

    def release(self) -> None:
        """Give the lock back. May be called again."""
        file, self._file = self._file, None
        if file is not None:
            # A process that was forked meanwhile has the descriptor, too, so closing
            # this one would not end the lock.
            _unlock(file.fileno())
            file.close()


# `flock` belongs to the open file, not to the process as the locks of `lockf` do: so it
# holds between two brokers of one process, and closing another descriptor of the same
# file does not release it.
if sys.platform == "win32":

    def _lock(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)

    def _unlock(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)

else:

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)
