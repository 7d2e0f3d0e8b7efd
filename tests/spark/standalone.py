"""A standalone cluster of Spark: a master and two workers, of the jars in pyspark."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

import pyspark

__all__ = ["Standalone"]

WORKERS = 2
#: Seconds that a part of the cluster may take to come up.
UP = 60.0
MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"


class Standalone:
    """Starts the processes of a cluster, and ends them with all that they started.

    Args:
        directory: where logs, and the directories of executors, are written.

    Attributes:
        url: the master's address, for ``SparkSession.builder.master``.
    """

    def __init__(self, directory: Path) -> None:
        self.url: str = ""
        self._directory = directory
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        port = _free_port()
        self.url = f"spark://127.0.0.1:{port}"
        try:
            self._start("master", MASTER, "--port", str(port), "--webui-port", "0")
            _until(lambda: _is_open(port), self._log("master"))
            for number in range(WORKERS):
                limits = ("--cores", "1", "--memory", "1g", "--webui-port", "0")
                self._start(f"worker-{number}", WORKER, *limits, self.url)
            _until(self._is_complete, self._log("master"))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        for process in self._processes:
            # Each leads a group, in which its executors and their Pythons are, too.
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        for process in self._processes:
            process.wait()
        self._processes.clear()

    def _start(self, name: str, main: str, *arguments: str) -> None:
        home = Path(pyspark.__file__).parent
        environment = os.environ | {
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_WORKER_DIR": str(self._directory / "work"),
            "SPARK_LOCAL_DIRS": str(self._directory / "local"),
            "PYSPARK_PYTHON": sys.executable,
        }
        with self._log(name).open("wb") as log:
            process = subprocess.Popen(
                [home / "bin/spark-class", main, "--host", "127.0.0.1", *arguments],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._processes.append(process)

    def _log(self, name: str) -> Path:
        return self._directory / f"{name}.log"

    def _is_complete(self) -> bool:
        return self._log("master").read_text().count("Registering worker") >= WORKERS


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def _is_open(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def _until(condition: Callable[[], bool], log: Path) -> None:
    end = time.monotonic() + UP
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"not up within {UP} s; its log: {log.read_text()}")
        time.sleep(0.1)
