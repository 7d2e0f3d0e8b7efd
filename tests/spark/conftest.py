"""A Spark session, a real Kafka, and a cluster of Spark, for every test below here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory, topic_factory
from tests.spark.sessions import Sessions, Settings, end_queries
from tests.spark.standalone import Standalone

#: A variable that the JVM and its Python workers have from the beginning.
PASSWORD_VARIABLE: Final = "KAFKAIO_TEST_PASSWORD"
USER_PASSWORD: Final = "alice-secret"
os.environ[PASSWORD_VARIABLE] = USER_PASSWORD


@pytest.fixture
def topic(real_kafka: Kafka, request: pytest.FixtureRequest) -> TopicFactory:
    """Make topics with new names on `real_kafka`."""
    return topic_factory(real_kafka, request)


@pytest.fixture(scope="session")
def sessions() -> Iterator[Sessions]:
    """The session of this process, for tests that want settings of their own."""
    with Sessions() as sessions:
        yield sessions


@pytest.fixture(scope="session")
def spark_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where sessions keep their files."""
    return tmp_path_factory.mktemp("spark")


@pytest.fixture
def spark(sessions: Sessions, spark_directory: Path) -> Iterator[SparkSession]:
    """A session on two threads, with four attempts of a task; its queries end."""
    session = sessions.get(Settings(directory=spark_directory))
    yield session
    end_queries(session)


@pytest.fixture
def unix_spark(sessions: Sessions, spark_directory: Path) -> Iterator[SparkSession]:
    """The same; Python workers are reached by Unix sockets."""
    session = sessions.get(Settings(directory=spark_directory, unix_sockets=True))
    yield session
    end_queries(session)


@pytest.fixture(scope="session")
def standalone() -> Iterator[Standalone]:
    """A master and two workers, with a core and a gigabyte each."""
    with Standalone() as cluster:
        yield cluster


@pytest.fixture
def cluster_spark(
    sessions: Sessions, spark_directory: Path, standalone: Standalone
) -> Iterator[SparkSession]:
    """A session on `standalone`, with an executor on each worker."""
    settings = Settings(
        directory=spark_directory,
        master=standalone.url,
        config={"spark.executor.memory": "512m", "spark.task.maxFailures": "4"},
    )
    session = sessions.get(settings)
    yield session
    end_queries(session)
