"""Runs Java programs in a temporary directory, and ends them in every case."""

import contextlib
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from kafkaio.testing.kafka._guard import Guard
from kafkaio.testing.kafka._jars import fetch_jars, pinned
from kafkaio.testing.kafka._java import ClassArchive, Java, find_java, jvm_flags
from kafkaio.testing.kafka._nodes import JvmNode
from kafkaio.testing.kafka._releases import KafkaNotStarted, Release

_TRAIN_SECONDS: Final = (
    60.0  # writing a class archive takes up to 5 s on an idle machine
)
_LOG_FLAGS: Final = (
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=info",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
    "-Dzookeeper.jmx.log4j.disable=true",  # 3.4 insists on a log4j we leave out
)


class Launcher:
    """The Java, the jars, the directory and the processes of one cluster.

    Any thread may call it. A lock is held over each step that makes a process or
    a file, and ``close`` takes it too; after ``close`` no step begins.
    """

    def __init__(
        self, release: Release, heap: str, *, fast: bool, plugins: Sequence[Path] = ()
    ):
        self._release = release
        self._flags = [*jvm_flags(heap, fast=fast), *_LOG_FLAGS]
        self._lock = threading.RLock()
        self._closed = threading.Event()
        self._java = Java(Path(), 0)
        self._classpath: Sequence[Path] = ()
        self._plugins = tuple(plugins)
        self._archive: ClassArchive | None = None
        self._directory = Path()
        self._guard: Guard | None = None
        self._nodes: list[JvmNode] = []
        self._others: list[JvmNode] = []
        self._archiving: JvmNode | None = None

    @property
    def directory(self) -> Path:
        """The directory of all files; ``close`` removes it."""
        return self._directory

    @property
    def _archive_output(self) -> Path:
        return self._directory / "classes.archive"

    def check(self) -> None:
        """Raise KafkaNotStarted if ``close`` was called."""
        if self._closed.is_set():
            raise KafkaNotStarted("closed while it was starting")

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """Delay ``close`` while a process or a file is created.

        Raises:
            KafkaNotStarted: ``close`` was called.
        """
        with self._lock:
            self.check()
            yield

    def prepare(self) -> None:
        """Find Java, fetch the jars, make the directory.

        Raises:
            KafkaNotStarted: One of these steps failed.
        """
        self._java = find_java(self._release.minimum_java)
        jars = pinned(self._release.version, "broker")
        self._classpath = fetch_jars(jars, self.check)
        self._archive = ClassArchive(self._java, self._classpath, self._flags)
        with self.step():
            self._directory = Path(tempfile.mkdtemp(prefix="kafkaio-"))
            self._guard = Guard(self._directory)
            if self._release.zookeeper:
                self.add_flag(f"-Djdk.net.hosts.file={self._write_hosts()}")

    def _write_hosts(self) -> Path:
        """Write a hosts file for Java in which "127.0.0.1/<unresolved>" is a name.

        ZooKeeper 3.4 takes a host from the text Java makes of an address, and from
        Java 14 on that text has this ending (ZOOKEEPER-3779).
        """
        file = self._directory / "hosts"
        names = ["localhost", socket.gethostname(), "127.0.0.1/<unresolved>"]
        file.write_text(f"127.0.0.1 {' '.join(names)}\n", "utf-8")
        return file

    def command(self, main: str, *args: str | Path) -> list[str | Path]:
        """Return the command line of a Java main on the broker's class path."""
        # The archive holds the classes of Kafka alone, which come first.
        path = os.pathsep.join(map(str, [*self._classpath, *self._plugins]))
        return [self._java.path, *self._flags, "-cp", path, main, *args]

    def add_flag(self, flag: str) -> None:
        """Add a flag for every Java that is started from now on."""
        self._flags.append(flag)

    def launch(
        self, node: JvmNode, main: str, *args: str | Path, flags: Sequence[str] = ()
    ) -> None:
        """Start a node; the first one writes the class archive if there is none.

        Args:
            node: The node.
            main: The Java main.
            *args: What it is given.
            flags: Further flags of this Java.

        Raises:
            KafkaNotStarted: ``close`` was called.
        """
        java, *rest = self.command(main, *args)
        with self.step():
            assert self._guard is not None  # prepare() made it
            assert self._archive is not None
            extra = self._archive.use_flags()
            if main == "kafka.Kafka" and self._archiving in {None, node}:
                extra += self._archive.train_flags(self._archive_output)
                self._archiving = node
            if node not in self._nodes:
                self._nodes.append(node)
            node.spawn([java, *extra, *flags, *rest], self._guard)

    def spawn(self, node: JvmNode, command: Sequence[str | Path]) -> None:
        """Start a process other than a broker; ``wipe`` leaves it alone.

        Raises:
            KafkaNotStarted: ``close`` was called.
        """
        with self.step():
            assert self._guard is not None  # prepare() made it
            self._others.append(node)
            node.spawn(command, self._guard)

    def wipe(self) -> None:
        """End all nodes and remove their directories, for another attempt."""
        with self.step():
            self._kill_all()
            self._archiving = None
            for entry in self._directory.glob("node*"):
                shutil.rmtree(entry)

    def close(self) -> None:
        """End all nodes and remove the directory; a second call does nothing."""
        self._closed.set()
        with self._lock:
            if self._guard is None:
                return
            try:
                self._keep_archive()
            finally:
                self._kill_all()
                for other in self._others:
                    other.kill()
                self._guard.close()
                self._guard = None

    def _kill_all(self) -> None:
        for node in self._nodes:
            node.kill()
        self._nodes.clear()

    def _keep_archive(self) -> None:
        """Have the chosen node write the class archive, if there is none."""
        archiving, archive = self._archiving, self._archive
        if archiving is None or archive is None or archiving.pid is None:
            return
        if archive.path.exists() or not archive.train_flags(self._archive_output):
            return
        archiving.terminate(_TRAIN_SECONDS)
        if archiving.returncode in {0, 143}:  # 143: the JVM ended by SIGTERM, in order
            archive.keep(self._archive_output)
