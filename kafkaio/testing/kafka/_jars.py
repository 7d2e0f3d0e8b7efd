"""Kafka's jars: resolved by jgo, checked against digests this package ships.

The table ``jars.json`` lists, for each release, the jars a broker needs and those
the command line tools need on top, with their SHA-256. ``python -m codegen.pin_jars``
in the repository writes it.
"""

import functools
import hashlib
import importlib.resources
import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kafkaio.testing.kafka._releases import KafkaNotStarted

if TYPE_CHECKING:
    from jgo.maven import MavenContext

_DOWNLOADS_AT_ONCE: Final = 8
_HTTP_TIMEOUT_SECONDS: Final = 60
# zstd-jni publishes a jar per platform, a tenth of the size of the one for all.
_CLASSIFIERS: Final = {
    ("linux", "x86_64"): "linux_amd64",
    ("linux", "aarch64"): "linux_aarch64",
    ("darwin", "x86_64"): "darwin_x86_64",
    ("darwin", "arm64"): "darwin_aarch64",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Jar:
    """One pinned jar.

    Attributes:
        group: The Maven group, dots between its parts.
        artifact: The artifact's name.
        version: The artifact's version.
        sha256: The digest of the jar, in hexadecimal.
        classified: Digests of smaller jars for one platform, by classifier.
    """

    group: str
    artifact: str
    version: str
    sha256: str
    classified: dict[str, str] = field(default_factory=dict)

    def variant(self, system: str, machine: str) -> tuple[str, str]:
        """Return classifier ('' for none) and digest of the jar for a platform."""
        classifier = _CLASSIFIERS.get((system, machine), "")
        if classifier in self.classified:
            return classifier, self.classified[classifier]
        return "", self.sha256


def cache_directory() -> Path:
    """Return the directory for jars and class archives.

    ``$KAFKAIO_CACHE``, else ``kafkaio`` below ``$XDG_CACHE_HOME`` or ``~/.cache``.
    """
    if override := os.environ.get("KAFKAIO_CACHE"):
        return Path(override)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "kafkaio"


@functools.cache
def _table() -> dict[str, dict[str, list[Jar]]]:
    package = importlib.resources.files("kafkaio.testing.kafka")
    raw = json.loads(package.joinpath("jars.json").read_text("utf-8"))
    return {
        version: {name: [Jar(**jar) for jar in jars] for name, jars in sets.items()}
        for version, sets in raw.items()
    }


def pinned(version: str, jar_set: str) -> list[Jar]:
    """Return the pinned jars of a full version; the set is broker or tools.

    Raises:
        KafkaNotStarted: The version has no table.
    """
    try:
        return _table()[version][jar_set]
    except KeyError:
        raise KafkaNotStarted(f"no jars are pinned for Kafka {version}") from None


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def maven_context() -> "MavenContext":
    """Return jgo's view of the machine: its own settings, its own repositories.

    Raises:
        KafkaNotStarted: jgo is not installed; it comes with the extra ``kafka``.
    """
    try:
        from jgo.config import GlobalSettings
        from jgo.maven import MavenContext
    except ImportError as error:
        raise KafkaNotStarted(f"{error}: install kafkaio[kafka]") from error
    settings = GlobalSettings.load()
    return MavenContext(repo_cache=settings.repo_cache, timeout=_HTTP_TIMEOUT_SECONDS)


def _store(source: Path, target: Path) -> None:
    """Copy into the cache in one step, so that a reader never sees half a jar."""
    # In the same directory, so that the rename is one step.
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".part-")
    os.close(handle)
    try:
        shutil.copyfile(source, name)
        Path(name).chmod(0o644)
        Path(name).replace(target)
    finally:
        Path(name).unlink(missing_ok=True)


def _fetch(jar: Jar, context: "MavenContext", directory: Path) -> Path:
    classifier, digest = jar.variant(sys.platform, platform.machine())
    suffix = f"-{classifier}" if classifier else ""
    target = directory / f"{jar.artifact}-{jar.version}{suffix}.jar"
    # Checked each time: a cache that was cut off or changed is replaced.
    if target.exists() and sha256_of(target) == digest:
        return target
    component = context.project(jar.group, jar.artifact).at_version(jar.version)
    artifact = component.artifact(classifier=classifier)
    name = f"{jar.group}:{jar.artifact}:{jar.version}{suffix}"
    try:
        source = Path(artifact.resolve())
    # jgo raises errors of several libraries.
    except Exception as error:
        raise KafkaNotStarted(f"jgo could not fetch {name}: {error}") from error
    found = sha256_of(source)
    if found != digest:
        raise KafkaNotStarted(f"{name} has SHA-256 {found}, pinned is {digest}")
    _store(source, target)
    return target


def fetch_jars(
    jars: Iterable[Jar], check: Callable[[], None] = lambda: None
) -> list[Path]:
    """Return local, checked copies of the jars, fetching those that are missing.

    Safe when several processes fetch at once.

    Args:
        jars: What to fetch.
        check: Called before each jar; what it raises ends the fetching early.

    Raises:
        KafkaNotStarted: A jar could not be fetched or is not the pinned one.
    """
    directory = cache_directory() / "jars"
    directory.mkdir(parents=True, exist_ok=True)
    context = maven_context()

    def fetch(jar: Jar) -> Path:
        check()
        return _fetch(jar, context, directory)

    with ThreadPoolExecutor(_DOWNLOADS_AT_ONCE) as pool:
        return list(pool.map(fetch, jars))
