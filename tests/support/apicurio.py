"""Apicurio Registry, a real schema registry with Confluent's API, on this machine.

Its archive comes from Maven once, and its digest is checked. Each instance has its
database in a directory of its own, which outlives `Apicurio.restart`. If it cannot be
had or does not start, the tests that need it fail.
"""

from __future__ import annotations

import fcntl
import shutil
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from kafkaio.testing.kafka._guard import Guard
from kafkaio.testing.kafka._jars import cache_directory, maven_context, sha256_of
from kafkaio.testing.kafka._java import find_java
from kafkaio.testing.kafka._nodes import JvmNode, free_ports
from kafkaio.testing.kafka._releases import KafkaNotStarted
from tests.support.patience import HANGS

__all__ = ["Apicurio", "ApicurioNotStarted"]

_VERSION: Final = "3.3.3"
_SHA256: Final = "8bc6751c76d963734224b01d5e7f84ccb3cb61c87d3bd77c36c35f10a5cbed63"
_JAVA: Final = 21
_DOWNLOADS: Final = 2
_FLAGS: Final = (
    *("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"),
    "-Djava.net.preferIPv4Stack=true",
)
_HTTP: Final = "HTTP"
_MANAGEMENT: Final = "MANAGEMENT"
_POLL_SECONDS: Final = 0.05
_ANSWER_SECONDS: Final = 5.0
_STOP_SECONDS: Final = 30.0
#: What it writes when it has started.
_STARTED: Final = "Listening on: http"
#: Characters of its log in an error, whose end says why it ended.
_SHOWN: Final = 3000
#: Where Confluent's API stands, and what is there without a subject.
_API: Final = "/apis/ccompat/v7"


class ApicurioNotStarted(RuntimeError):
    """The registry could not be fetched, or did not start."""


def _fetch() -> Path:
    """Return the directory of the program; fetch and unpack it if it is missing."""
    place = cache_directory() / "programs" / f"apicurio-registry-{_VERSION}"
    if place.exists():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    # One process fetches it: jgo takes the half of a file, which another one is
    # writing, for the whole.
    with (place.parent / f"{place.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            _unpack(_archive(), place)
    return place


def _archive() -> Path:
    """Return the archive, which is fetched again if a download was cut off."""
    found = ""
    for _ in range(_DOWNLOADS):
        try:
            component = maven_context().project("io.apicurio", "apicurio-registry-app")
            artifact = component.at_version(_VERSION).artifact(
                classifier="all", packaging="tar.gz"
            )
            archive = Path(artifact.resolve())
        # jgo raises errors of several libraries.
        except Exception as error:
            raise ApicurioNotStarted(f"no Apicurio {_VERSION}: {error}") from error
        if (found := sha256_of(archive)) == _SHA256:
            return archive
        archive.unlink()
    raise ApicurioNotStarted(f"Apicurio has SHA-256 {found}, pinned is {_SHA256}")


def _unpack(archive: Path, place: Path) -> None:
    # Beside its place, and renamed when it is whole: it may be interrupted.
    near = Path(tempfile.mkdtemp(prefix=".apicurio-", dir=place.parent))
    try:
        with tarfile.open(archive) as content:
            content.extractall(near, filter="data")
        near.rename(place)
    finally:
        shutil.rmtree(near, ignore_errors=True)


class Apicurio:
    """A registry in a process of its own; a context manager.

    Its process starts with the block, and `wait` returns when it answers.

    Attributes:
        url: the address of Confluent's API.
    """

    def __init__(self) -> None:
        port, management = free_ports(2)
        self.url: str = f"http://127.0.0.1:{port}{_API}"
        self._ports = {_HTTP: port, _MANAGEMENT: management}
        self._directory = Path()
        self._node = JvmNode(0, self._directory, self._ports)
        self._guard: Guard | None = None
        self._seen = 0

    def __repr__(self) -> str:
        return f"<Apicurio {self.url} pid={self._node.pid}>"

    def __enter__(self) -> Self:
        """Start it; `wait` returns when it answers."""
        self._directory = Path(tempfile.mkdtemp(prefix="kafkaio-apicurio-"))
        self._node = JvmNode(0, self._directory, self._ports)
        self._guard = Guard(self._directory)
        try:
            self.start()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    def _close(self) -> None:
        self._node.kill()
        if self._guard is not None:
            self._guard.close()
            self._guard = None

    def start(self) -> None:
        """Start it again after `stop` or `kill`, on the same port.

        Raises:
            ApicurioNotStarted: it could not be fetched, or there is no Java for it.
        """
        assert self._guard is not None
        program = _fetch()
        try:
            java = find_java(_JAVA)
        except KafkaNotStarted as error:
            raise ApicurioNotStarted(str(error)) from error
        settings = {
            "quarkus.http.host": "127.0.0.1",
            "quarkus.http.port": self._ports[_HTTP],
            # Else each wants port 9000 of all interfaces, and a second one ends.
            "quarkus.management.host": "127.0.0.1",
            "quarkus.management.port": self._node.ports[_MANAGEMENT],
            "apicurio.storage.sql.kind": "h2",
            # What is written is on disk at once, so that it outlives a kill.
            "apicurio.datasource.url": (
                f"jdbc:h2:file:{self._directory / 'registry'};WRITE_DELAY=0"
            ),
        }
        flags = [f"-D{name}={value}" for name, value in settings.items()]
        command: list[str | Path] = [
            java.path,
            *_FLAGS,
            *flags,
            "-jar",
            program / "quarkus-run.jar",
        ]
        self._seen = len(self._node.log())
        self._node.spawn(command, self._guard)

    def wait(self, timeout: float = HANGS) -> None:
        """Return when it answers.

        Raises:
            ApicurioNotStarted: it ended, or does not answer in time.
        """
        end = time.monotonic() + timeout
        while not self._answers():
            if self._node.pid is None or time.monotonic() > end:
                raise ApicurioNotStarted(f"no Apicurio:\n{self._node.log()[-_SHOWN:]}")
            time.sleep(_POLL_SECONDS)

    def _answers(self) -> bool:
        # A request that comes before it has started can keep it from starting.
        if _STARTED not in self._node.log()[self._seen :]:
            return False
        try:
            with urllib.request.urlopen(
                f"{self.url}/subjects", timeout=_ANSWER_SECONDS
            ) as reply:
                return bool(reply.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def stop(self) -> None:
        """End it in order; what it knows stays."""
        self._node.terminate(_STOP_SECONDS)

    def pause(self) -> None:
        """Let it hang: it accepts connections and answers nothing."""
        self._node.pause()

    def resume(self) -> None:
        """End `pause`."""
        self._node.resume()
