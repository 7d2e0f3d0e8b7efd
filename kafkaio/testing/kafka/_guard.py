"""Ends the brokers when the process that started them has ended.

Run as a script, in a session of its own. Its standard input is a pipe from that
process: lines ``+PID`` and ``-PID`` say which processes to watch. When the pipe closes,
for whatever reason, the guard kills each process that is left and removes the
directory that is named on its command line. So even a SIGKILL leaves nothing behind.
(A parent-death signal does not suffice: it is bound to the thread that started the
child.)
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Final

_CLEANUP_ATTEMPTS: Final = 20
_CLEANUP_PAUSE_SECONDS: Final = 0.1
#: To remove gigabytes of logs takes long on a busy disk.
_CLOSE_TIMEOUT_SECONDS: Final = 120


def _handle(pid: int) -> int | None:
    """Return a handle of the process that stays valid if its pid is reused."""
    if not hasattr(os, "pidfd_open"):
        return None
    with contextlib.suppress(OSError):
        # A number of a process can be given to another one; a handle cannot.
        return os.pidfd_open(pid)
    return None


def _kill(pid: int, handle: int | None) -> None:
    with contextlib.suppress(OSError):
        if handle is not None and hasattr(signal, "pidfd_send_signal"):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGKILL)


def watch(lines: Iterable[str], directory: Path) -> None:
    """Read the lines to their end, then kill and remove what is left."""
    watched: dict[int, int | None] = {}
    for line in lines:
        pid = int(line[1:])
        if line[0] == "+":
            watched[pid] = _handle(pid)
        elif (handle := watched.pop(pid, None)) is not None:
            os.close(handle)
    # The pipe has ended, so the parent has, in whatever way.
    for pid, handle in watched.items():
        _kill(pid, handle)
    for _ in range(_CLEANUP_ATTEMPTS):
        shutil.rmtree(directory, ignore_errors=True)
        if not directory.exists():
            return
        time.sleep(_CLEANUP_PAUSE_SECONDS)  # a dying broker still writes


class Guard:
    """A guard process for a directory and child processes, as the parent sees it."""

    def __init__(self, directory: Path):
        self._process = subprocess.Popen(
            # Isolated and without site-packages: it starts in milliseconds, and nothing
            # of the environment breaks it.
            [sys.executable, "-I", "-S", __file__, directory],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            text=True,
            bufsize=1,
        )

    @property
    def _input(self) -> IO[str]:
        pipe = self._process.stdin
        assert pipe is not None  # asked for above
        return pipe

    def add(self, pid: int) -> None:
        """Watch a process."""
        self._input.write(f"+{pid}\n")

    def remove(self, pid: int) -> None:
        """Forget a process that has ended."""
        self._input.write(f"-{pid}\n")

    def close(self) -> None:
        """Have the guard kill what is left and remove the directory; wait for it."""
        with contextlib.suppress(OSError):
            self._input.close()
        # Nothing is left when this returns.
        self._process.wait(_CLOSE_TIMEOUT_SECONDS)


if __name__ == "__main__":
    watch(sys.stdin, Path(sys.argv[1]))
