"""Real brokers for every test below this directory.

Imported, not named as `pytest_plugins`, which pytest reads at the top level only.
"""

from kafkaio.testing.pytest_plugin import (
    cluster_topic,
    kafka_version,
    pytest_addoption,
    pytest_collection_modifyitems,
    real_kafka,
    real_kafka_cluster,
    shared_kafka_cluster,
    topic,
)

__all__ = [
    "cluster_topic",
    "kafka_version",
    "pytest_addoption",
    "pytest_collection_modifyitems",
    "real_kafka",
    "real_kafka_cluster",
    "shared_kafka_cluster",
    "topic",
]
