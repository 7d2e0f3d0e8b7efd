"""A real Kafka for tests, from Maven's jars on a local Java, or Docker."""

from kafkaio.testing._security.files import Certificates
from kafkaio.testing.kafka._engine import Engine
from kafkaio.testing.kafka._kafka import Kafka
from kafkaio.testing.kafka._options import ClusterOptions
from kafkaio.testing.kafka._releases import KafkaNotStarted, Release
from kafkaio.testing.kafka._source import real_kafka
from kafkaio.testing.kafka._wire import TopicNotCreated

__all__ = [
    "Certificates",
    "ClusterOptions",
    "Engine",
    "Kafka",
    "KafkaNotStarted",
    "Release",
    "TopicNotCreated",
    "real_kafka",
]
