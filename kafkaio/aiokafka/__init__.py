"""The names of aiokafka 0.14, on kafkaio.

A program moves by its imports: ``from kafkaio.aiokafka import AIOKafkaConsumer``.
Options, defaults and behaviour are those of aiokafka. What cannot be the same is
refused or warned of by name, and stands in the table of docs/migration/aiokafka.md.

It is imported only by those who import it: ``import kafkaio`` does not load it.
"""

from kafkaio.aiokafka._install import install, uninstall
from kafkaio.aiokafka.abc import ConsumerRebalanceListener
from kafkaio.aiokafka.client import AIOKafkaClient
from kafkaio.aiokafka.consumer import AIOKafkaConsumer
from kafkaio.aiokafka.errors import ConsumerStoppedError, IllegalOperation
from kafkaio.aiokafka.producer import AIOKafkaProducer
from kafkaio.aiokafka.structs import (
    ConsumerRecord,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    TopicPartition,
)

__all__ = [
    "AIOKafkaClient",
    "AIOKafkaConsumer",
    "AIOKafkaProducer",
    "ConsumerRebalanceListener",
    "ConsumerRecord",
    "ConsumerStoppedError",
    "IllegalOperation",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "TopicPartition",
    "install",
    "uninstall",
]

#: The version of aiokafka whose names these are.
__version__ = "0.14.0"
