"""A real Kafka for tests, from Maven's jars on a local Java, or Docker."""

from kafkaio.testing.kafka.kafka import Kafka
from kafkaio.testing.kafka.options import ClusterOptions
from kafkaio.testing.kafka.releases import KafkaNotStarted
from kafkaio.testing.kafka.source import real_kafka
from kafkaio.testing.kafka.tools import Output
from kafkaio.testing.kafka.wire import TopicNotCreated
from kafkaio.testing.security.files import Certificates

__all__ = [
    "Certificates",
    "ClusterOptions",
    "Kafka",
    "KafkaNotStarted",
    "Output",
    "TopicNotCreated",
    "real_kafka",
]
