"""A real Kafka for tests, from Maven's jars on a local Java, or Docker."""

from kafkaio.testing.kafka.engine import Certificates
from kafkaio.testing.kafka.kafka import Kafka
from kafkaio.testing.kafka.options import ClusterOptions
from kafkaio.testing.kafka.releases import KafkaNotStarted
from kafkaio.testing.kafka.source import real_kafka
from kafkaio.testing.kafka.toolbox import (
    JavaFailed,
    JavaProgram,
    Output,
    RunningJava,
    Toolbox,
)
from kafkaio.testing.kafka.wire import TopicNotCreated

__all__ = [
    "Certificates",
    "ClusterOptions",
    "JavaFailed",
    "JavaProgram",
    "Kafka",
    "KafkaNotStarted",
    "Output",
    "RunningJava",
    "Toolbox",
    "TopicNotCreated",
    "real_kafka",
]
