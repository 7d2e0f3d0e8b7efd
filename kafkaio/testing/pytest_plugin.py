"""pytest fixtures that hand a real Kafka to tests.

Name this module as ``pytest_plugins`` in your top `conftest.py`, or import what you
need from it into any other `conftest.py`.

The clusters live as long as the session and belong to no event loop. The Kafka
version is chosen by ``--kafka-version`` or ``$KAFKAIO_KAFKA_VERSION``. A cluster
that cannot start is an error of every test that asks for it, never a skip.
"""

import os
import re
import uuid
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, Protocol

import pytest

# Imported where it is used: it needs the extra `kafka`, and takes its time.
if TYPE_CHECKING:
    from kafkaio.testing.kafka import Kafka

VERSION_VARIABLE: Final = "KAFKAIO_KAFKA_VERSION"
_CLUSTER_BROKERS: Final = 3
_LONGEST_STEM: Final = 80


class TopicFactory(Protocol):
    """Creates a topic under a new name, and returns the name."""

    def __call__(
        self,
        partitions: int = 1,
        replication_factor: int | None = None,
        config: Mapping[str, str] | None = None,
    ) -> str:
        """Create a topic and return its name once its leaders are known."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--kafka-version``."""
    parser.addoption(
        "--kafka-version",
        help="Kafka version of the real brokers, such as 4.3 or 3.9",
    )


def _chosen(config: pytest.Config) -> str:
    from kafkaio.testing.kafka.releases import DEFAULT_VERSION, find_release

    # Unknown, too, when a conftest.py below the top imported the option too late.
    option = config.getoption("--kafka-version", default=None)
    wanted = option or os.environ.get(VERSION_VARIABLE) or DEFAULT_VERSION
    return find_release(str(wanted)).short


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Leave out tests marked ``kafka_versions`` for versions other than this run's."""
    markers = [(item, item.get_closest_marker("kafka_versions")) for item in items]
    marked = {item: marker.args for item, marker in markers if marker is not None}
    if not marked:
        return
    chosen = _chosen(config)
    left_out = [item for item, versions in marked.items() if chosen not in versions]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def _unique(stem: str) -> str:
    """Return a new topic name that tells which test made it."""
    clean = re.sub(r"[^a-zA-Z0-9._-]+", "-", stem)[:_LONGEST_STEM]
    return f"{clean}-{uuid.uuid4().hex[:8]}"


def _factory(kafka: "Kafka", request: pytest.FixtureRequest) -> TopicFactory:
    stem = str(request.node.name)

    def create(
        partitions: int = 1,
        replication_factor: int | None = None,
        config: Mapping[str, str] | None = None,
    ) -> str:
        return kafka.create_topic_blocking(
            _unique(stem), partitions, replication_factor, config
        )

    return create


@pytest.fixture(scope="session")
def kafka_version(request: pytest.FixtureRequest) -> str:
    """The Kafka version of this run, such as ``4.3``."""
    return _chosen(request.config)


@pytest.fixture(scope="session")
def real_kafka(kafka_version: str) -> "Iterator[Kafka]":
    """One real broker, shared by the session: leave its node alone."""
    from kafkaio.testing.kafka import real_kafka as choose

    with choose(1, kafka_version) as kafka:
        yield kafka


@pytest.fixture(scope="session")
def shared_kafka_cluster(kafka_version: str) -> "Iterator[Kafka]":
    """The three brokers behind `real_kafka_cluster`."""
    from kafkaio.testing.kafka import real_kafka as choose

    with choose(_CLUSTER_BROKERS, kafka_version) as kafka:
        yield kafka


@pytest.fixture
def real_kafka_cluster(shared_kafka_cluster: "Kafka") -> "Iterator[Kafka]":
    """Three real brokers, shared by the session; every node is up again after a test.

    So a test may kill, stop or pause nodes as it likes.
    """
    yield shared_kafka_cluster
    engine = shared_kafka_cluster.engine
    for node_id in engine.node_ids:
        engine.resume(node_id)
    for node_id in engine.node_ids:
        engine.start(node_id, wait=False)
    for node_id in engine.node_ids:
        engine.start(node_id)


@pytest.fixture
def topic(real_kafka: "Kafka", request: pytest.FixtureRequest) -> TopicFactory:
    """Make topics with new names on `real_kafka`.

    ::

        name = topic(partitions=3)
    """
    return _factory(real_kafka, request)


@pytest.fixture
def cluster_topic(
    real_kafka_cluster: "Kafka", request: pytest.FixtureRequest
) -> TopicFactory:
    """Make topics with new names on `real_kafka_cluster`."""
    return _factory(real_kafka_cluster, request)
