"""The Kafka releases a test can run, and what differs between them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from kafkaio._public import public


@public("kafkaio.testing.kafka")
class KafkaNotStarted(RuntimeError):
    """A broker could not be started; the message says which step failed."""


@public("kafkaio.testing.kafka")
@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One Kafka release.

    Attributes:
        version: The full version, such as ``4.3.1``.
        scala: The Scala version in the core artifact's name.
        zookeeper: Brokers register in ZooKeeper; no KRaft, no feature levels.
        features: The feature levels that ``kafka-storage format`` would finalize.
        minimum_java: The oldest Java that runs it.
    """

    version: str
    scala: str = "2.13"
    zookeeper: bool = False
    features: dict[str, int] = field(default_factory=dict)
    minimum_java: int = 17

    @property
    def short(self) -> str:
        """The minor release, such as ``4.3``."""
        return ".".join(self.version.split(".")[:2])


_RELEASES: Final = (
    Release(
        version="4.4.0",
        features={
            "metadata.version": 33,
            "eligible.leader.replicas.version": 1,
            "group.version": 1,
            "share.version": 2,
            "streams.version": 1,
            "transaction.version": 2,
        },
    ),
    Release(
        version="4.3.1",
        features={
            "metadata.version": 30,
            "eligible.leader.replicas.version": 1,
            "group.version": 1,
            "share.version": 1,
            "streams.version": 1,
            "transaction.version": 2,
        },
    ),
    Release(
        version="4.2.2",
        features={
            "metadata.version": 29,
            "eligible.leader.replicas.version": 1,
            "group.version": 1,
            "share.version": 1,
            "streams.version": 1,
            "transaction.version": 2,
        },
    ),
    Release(
        version="4.0.2",
        features={
            "metadata.version": 25,
            "group.version": 1,
            "transaction.version": 2,
        },
    ),
    Release(version="3.9.2", features={"metadata.version": 21}, minimum_java=11),
    Release(version="2.8.2", zookeeper=True, minimum_java=8),
    Release(version="2.1.1", scala="2.12", zookeeper=True, minimum_java=8),
)
RELEASES: Final = {release.short: release for release in _RELEASES}
#: The newest of them, which runs unless another is asked for.
DEFAULT_VERSION: Final = "4.4"
_NEWEST: Final = "newest"


def find_release(version: str = DEFAULT_VERSION) -> Release:
    """Return the release for a minor (``4.3``) or a full version (``4.3.1``).

    Raises:
        KafkaNotStarted: No such release is pinned.
    """
    for release in _RELEASES:
        if version in {release.short, release.version}:
            return release
    known = ", ".join(release.version for release in _RELEASES)
    raise KafkaNotStarted(f"Kafka {version} is not pinned for tests; known: {known}")


def is_among(version: str, wanted: Iterable[str]) -> bool:
    """Return whether a minor version is one of those that a test names.

    Args:
        version: the minor version of a release, such as ``4.3``.
        wanted: minor versions; ``4.0+`` is every release from 4.0 on, ``newest`` the
            newest alone.
    """
    return any(_fits(version, one) for one in wanted)


def _fits(version: str, wanted: str) -> bool:
    if wanted.endswith("+"):
        return _numbers(version) >= _numbers(wanted[:-1])
    return version == (DEFAULT_VERSION if wanted == _NEWEST else wanted)


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]
