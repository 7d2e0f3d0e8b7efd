"""A real standalone cluster of Spark on this machine: a master and some workers.

The jars that pip installs with pyspark are enough for it. Each worker starts executors
as processes of its own: they end with it, and all of it ends with this process, also
when that is killed.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Final, Self, TypeVar

import psutil
import pyspark

from kafkaio.testing.kafka._guard import Guard
from kafkaio.testing.kafka._nodes import JvmNode
from tests.spark.sessions import SHORT_LIVED, environment

T = TypeVar("T")

_START_SECONDS: Final = 60.0
_END_SECONDS: Final = 10.0
_PAUSE_SECONDS: Final = 0.05
_DEPLOY: Final = "org.apache.spark.deploy"
_ADDRESS: Final = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED: Final = "Successfully registered with master"


__all__ = ["Standalone"]


class ClusterNotStarted(Exception):
    """A process of the cluster ended, or did not come up in time; has its log."""


class Standalone:
    """A master and workers of one core each, as a context manager.

    Args:
        workers: how many.
        memory: what each worker may give to executors.

    Attributes:
        url: the master's address, for ``SparkSession.builder.master``.
        workers: the processes of the workers.
    """

    def __init__(self, workers: int = 2, memory: str = "1g") -> None:
        self._count = workers
        self._memory = memory
        self._end = ExitStack()
        self._directory = Path()
        self.url = ""
        self.workers: list[JvmNode] = []

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._directory = Path(tempfile.mkdtemp(prefix="kafkaio-spark-"))
            stack.callback(shutil.rmtree, self._directory, ignore_errors=True)
            guard = Guard(self._directory)
            stack.callback(guard.close)
            self._start(guard, stack)
            self._end = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._end.close()

    def _start(self, guard: Guard, stack: ExitStack) -> None:
        master = self._node(0, stack)
        arguments = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        master.spawn(self._command(f"{_DEPLOY}.master.Master", *arguments), guard)
        self.url = _wait(master, lambda: _found(_ADDRESS, master.log()))
        for number in range(1, self._count + 1):
            worker = self._node(number, stack)
            own = ["--cores", "1", "--memory", self._memory]
            files = ["--work-dir", str(worker.directory / "work")]
            main = f"{_DEPLOY}.worker.Worker"
            rest = [*arguments, *own, *files, self.url]
            worker.spawn(self._command(main, *rest), guard)
            self.workers.append(worker)
        for worker in self.workers:
            _wait(worker, partial(_has_registered, worker))

    def _node(self, number: int, stack: ExitStack) -> JvmNode:
        directory = self._directory / f"node{number}"
        directory.mkdir()
        node = JvmNode(number, directory, {})
        stack.callback(_end, node)
        return node

    def _command(self, main: str, *arguments: str) -> list[str | Path]:
        home = Path(pyspark.__file__).parent
        variables = {
            **environment(),
            "SPARK_HOME": str(home),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": SHORT_LIVED,
            "SPARK_LOCAL_DIRS": str(self._directory / "local"),
        }
        given = [f"{name}={value}" for name, value in variables.items()]
        return ["env", *given, home / "bin" / "spark-class", main, *arguments]

    def executors(self) -> list[psutil.Process]:
        """Return the JVMs of the executors that run now."""
        return [p for node in self.workers for p in _children(node) if _is_java(p)]

    def python_workers(self) -> list[psutil.Process]:
        """Return the Python processes below the executors: daemons and workers."""
        return [
            python
            for executor in self.executors()
            for python in executor.children(recursive=True)
        ]


def _end(node: JvmNode) -> None:
    """End a process, with executors and their Pythons: they are in its group."""
    group = node.pid
    node.terminate(_END_SECONDS)
    if group is not None:
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


def _children(node: JvmNode) -> list[psutil.Process]:
    return [] if node.pid is None else psutil.Process(node.pid).children()


def _is_java(process: psutil.Process) -> bool:
    return "java" in process.name()


def _has_registered(worker: JvmNode) -> bool:
    return _REGISTERED in worker.log()


def _found(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found[1] if found else ""


def _wait(node: JvmNode, condition: Callable[[], T]) -> T:
    """Wait until a condition holds; the process may not end before."""
    limit = time.monotonic() + _START_SECONDS
    while not (value := condition()):
        if node.returncode is not None or time.monotonic() > limit:
            raise ClusterNotStarted(f"{node}: {node.complaint()}")
        time.sleep(_PAUSE_SECONDS)
    return value
