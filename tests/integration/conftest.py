"""Topics on the real brokers, for every test below this directory.

With ``KAFKAIO_KAFKA=embedded`` the embedded broker takes their place, and all tests run
on it, unchanged, but those that are marked as ``not_embedded``, with the reason.
"""

from __future__ import annotations

import pytest

from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory, topic_factory


@pytest.fixture
def topic(real_kafka: Kafka, request: pytest.FixtureRequest) -> TopicFactory:
    """Make topics with new names on `real_kafka`."""
    return topic_factory(real_kafka, request)


@pytest.fixture
def cluster_topic(
    real_kafka_cluster: Kafka, request: pytest.FixtureRequest
) -> TopicFactory:
    """Make topics with new names on `real_kafka_cluster`."""
    return topic_factory(real_kafka_cluster, request)
