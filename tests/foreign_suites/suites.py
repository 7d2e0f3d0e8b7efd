"""The suites of other projects, and where each of them comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

__all__ = ["SUITES", "Archive", "Repository", "Suite"]


class Archive(NamedTuple):
    """A source distribution on PyPI that carries its tests.

    Attributes:
        requirement: the name and version.
    """

    requirement: str


class Repository(NamedTuple):
    """A git repository, for a project whose source distribution has no tests.

    Attributes:
        url: where to clone it from.
        tag: the tag of the release.
    """

    url: str
    tag: str


class Suite(NamedTuple):
    """A suite of tests that were written for aiokafka.

    Attributes:
        source: where the tests come from.
        packages: what has to be installed to run them.
        folders: what is taken from the source.
        tests: the files and folders that pytest runs.
        options: further arguments of pytest.
        plugins: modules of this folder that stand in place of what the suite expects
            of its surroundings.
        port: where the suite looks for a broker on this machine; None if it is told.
        broker_config: properties of the brokers, by Kafka's names.
        minutes: how long one run may take.
    """

    source: Archive | Repository
    packages: tuple[str, ...]
    folders: tuple[str, ...]
    tests: tuple[str, ...]
    options: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    port: int | None = None
    broker_config: Mapping[str, str | float] = {}
    minutes: float = 20


_AIOKAFKA: Final = "aiokafka==0.14.0"
#: What aiokafka's own image of Kafka sets.
_TWO_PARTITIONS: Final = {"num.partitions": 2}

SUITES: Final[Mapping[str, Suite]] = {
    "aiokafka": Suite(
        source=Repository("https://github.com/aio-libs/aiokafka.git", "v0.14.0"),
        packages=(
            _AIOKAFKA,
            "pytest-asyncio",
            "pytest-mock",
            "cramjam",
            "docker",  # its helper modules import it
        ),
        folders=("tests", "pyproject.toml"),
        tests=(
            "tests/coordinator/test_assignors.py",
            "tests/test_admin.py",
            "tests/test_client.py",
            "tests/test_cluster.py",
            "tests/test_consumer.py",
            "tests/test_helpers.py",
            "tests/test_partitioner.py",
            "tests/test_pep492.py",
            "tests/test_producer.py",
            "tests/test_rack_awareness.py",
            "tests/test_sasl.py",
            "tests/test_transactional_consumer.py",
            "tests/test_transactional_producer.py",
        ),
        # Its conftest.py starts containers; the plugin has the same fixtures.
        options=("--noconftest", "-o", "asyncio_default_fixture_loop_scope=function"),
        plugins=("suite_internals", "suite_aiokafka"),
        broker_config=_TWO_PARTITIONS,
        minutes=25,
    ),
    "faststream": Suite(
        source=Repository("https://github.com/ag2ai/faststream.git", "0.7.4"),
        packages=(
            "faststream[kafka,cli,otel,prometheus]==0.7.4",
            _AIOKAFKA,
            "dirty-equals",
            "email-validator",
            "fastapi",
            "freezegun",
            "httpx",
            "msgspec",
            "pydantic-settings",
            "pytest-asyncio",
            "pytest-rerunfailures",
            "python-multipart",
            "PyYAML",
        ),
        folders=("tests", "pyproject.toml"),
        tests=("tests/brokers/kafka",),
        port=9092,
    ),
    "taskiq": Suite(
        source=Archive("taskiq-aio-kafka==1.0.0"),
        # Its partitioner of kafka-python is called, which that of version 3 cannot be.
        packages=("taskiq-aio-kafka==1.0.0", "kafka-python<3", _AIOKAFKA, "anyio"),
        folders=("tests", "pyproject.toml"),
        tests=("tests",),
    ),
    "opentelemetry": Suite(
        source=Archive("opentelemetry-instrumentation-aiokafka==0.66b1"),
        packages=(
            "opentelemetry-instrumentation-aiokafka==0.66b1",
            "opentelemetry-test-utils==0.66b1",
            "opentelemetry-sdk",
            _AIOKAFKA,
        ),
        folders=("tests",),
        tests=("tests",),
    ),
}
