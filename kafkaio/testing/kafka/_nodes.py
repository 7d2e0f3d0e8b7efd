"""One process of the cluster: a broker, or ZooKeeper."""

import contextlib
import os
import re
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from kafkaio.testing.kafka._guard import Guard
from kafkaio.testing.kafka._wire import Address

# Below Linux's ephemeral range (32768-60999): no outgoing connection can take the
# port between the moment we choose it and the moment the broker binds it.
_LOWEST_PORT: Final = 20000
_HIGHEST_PORT: Final = 32000
_COMPLAINT_CHARS: Final = 3000
_PROBLEM: Final = re.compile(
    r"^.*(?: (?:ERROR|FATAL) |Exception in thread)", re.MULTILINE
)


def free_ports(count: int) -> list[int]:
    """Return free ports on 127.0.0.1, below the ephemeral range."""
    # All are held until the last is found, so that none comes twice.
    with contextlib.ExitStack() as held:
        ports: dict[int, None] = {}
        while len(ports) < count:
            probe = held.enter_context(socket.socket())
            # Allows a port in TIME_WAIT. It also allows to bind one port twice.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # By chance and not in a row: test runs side by side do not try the same
            # ports.
            port = _LOWEST_PORT + secrets.randbelow(_HIGHEST_PORT - _LOWEST_PORT)
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                ports[port] = None
        return list(ports)


def _wait_stopped(pid: int) -> None:
    """Wait until no thread of a child process runs any more, or it has ended.

    The signal reaches one thread. Until that thread gets a processor, the others go on,
    and a broker answers requests that were sent after the signal.
    """
    if hasattr(os, "waitid"):  # macOS has it from Python 3.13 on
        with contextlib.suppress(ChildProcessError):  # it has ended, and was waited for
            os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)


class JvmNode:
    """A process with a directory, a log file and ports.

    Attributes:
        id: The broker id; 0 for ZooKeeper.
        directory: Its properties, log and data.
        ports: Its ports on 127.0.0.1, by listener.
        paused: It is stopped by SIGSTOP.
        ended_at: When it last ended, on the monotonic clock; 0 if it never did.
    """

    def __init__(self, node_id: int, directory: Path, ports: Mapping[str, int]):
        self.id = node_id
        self.directory = directory
        self.ports: dict[str, int] = dict(ports)
        self.paused: bool = False
        self.ended_at: float = 0.0
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: Guard | None = None

    def __repr__(self) -> str:
        state = "down" if self.pid is None else "paused" if self.paused else "up"
        return f"<JvmNode {self.id} {state} pid={self.pid} ports={self.ports}>"

    @property
    def data(self) -> Path:
        """The directory of its data."""
        return self.directory / "data"

    @property
    def log_file(self) -> Path:
        """The file of its standard output and error."""
        return self.directory / "node.log"

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        process = self._process
        return process.pid if process and process.poll() is None else None

    @property
    def returncode(self) -> int | None:
        """Its exit code; None while it runs or before it first ran."""
        return self._process.poll() if self._process else None

    def address(self, listener: str) -> Address:
        """Return host and port of a listener."""
        return "127.0.0.1", self.ports[listener]

    def log(self) -> str:
        """Return what it has written so far."""
        if not self.log_file.exists():
            return ""
        return self.log_file.read_text("utf-8", "replace")

    def complaint(self) -> str:
        """Return the errors in its log, for a message, or else the end of the log."""
        log = self.log()
        found = _PROBLEM.search(log)
        if found is None:
            return log[-_COMPLAINT_CHARS:]
        return log[found.start() : found.start() + _COMPLAINT_CHARS]

    def spawn(self, command: Sequence[str | Path], guard: Guard) -> None:
        """Start the process; the guard ends it with this process at the latest."""
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.directory,
                # Not with the group of the terminal: Ctrl-C ends the tests, which then
                # end their brokers in order.
                start_new_session=True,
            )
        self._guard = guard
        # At once: what ends this process now must not leave that one behind.
        guard.add(self._process.pid)
        self.paused = False

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, if it runs."""
        if self._process is not None:
            self._process.send_signal(number)

    def kill(self) -> None:
        """Kill it (SIGKILL) and wait for its end."""
        if self.pid is not None:
            self.signal(signal.SIGKILL)
        self._reap(None)

    def terminate(self, timeout: float) -> None:
        """Shut it down (SIGTERM) and wait; kill it after ``timeout`` seconds."""
        if self.pid is None:
            return
        # A stopped process does not take SIGTERM.
        self.resume()
        self.signal(signal.SIGTERM)
        try:
            self._reap(timeout)
        except subprocess.TimeoutExpired:
            self.kill()

    def _reap(self, timeout: float | None) -> None:
        if self._process is None:
            return
        self._process.wait(timeout)
        if self._guard is not None:
            with contextlib.suppress(OSError, ValueError):  # the guard is closed
                self._guard.remove(self._process.pid)
            self._guard = None
            self.ended_at = time.monotonic()
        self.paused = False

    def pause(self) -> None:
        """Pause it (SIGSTOP) and wait until it hangs; its sockets stay open."""
        self.signal(signal.SIGSTOP)
        if (pid := self.pid) is not None:
            _wait_stopped(pid)
        self.paused = self.pid is not None

    def resume(self) -> None:
        """Resume it (SIGCONT)."""
        if self.paused:
            self.signal(signal.SIGCONT)
        self.paused = False
