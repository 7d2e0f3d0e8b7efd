"""The Kafka client for asyncio: producers and consumers on one event loop.

``Producer``, ``Consumer`` and ``Client`` are all there is to begin with; every
exception is a name of this package too, and a kind of `KafkaError`. ``messages``
holds every message of the protocol. Heavy optional parts are modules of their own,
such as `kafkaio.testing`.
"""

from kafkaio._records._impl import ACCELERATED as accelerated
from kafkaio._records._impl import Record
from kafkaio._runtime.observer import Observer
from kafkaio.client import (
    ANY,
    Broker,
    Client,
    Controller,
    Destination,
    GroupCoordinator,
    Leader,
    TransactionCoordinator,
)
from kafkaio.config import ClientConfig, ConsumerConfig, ProducerConfig
from kafkaio.consumer import Batch, Consumer, Poll
from kafkaio.errors import (
    AuthenticationError,
    AuthorizationError,
    BrokerError,
    BrokerNotAvailable,
    BufferFull,
    ClosedError,
    CommitFailed,
    ConfigurationError,
    ConnectionLost,
    CorruptRecord,
    DeliveryTimeout,
    Fenced,
    GroupError,
    InternalError,
    KafkaError,
    KafkaTimeout,
    MembershipError,
    NetworkError,
    OffsetOutOfRange,
    PartitionLost,
    ProtocolError,
    RebalanceInProgress,
    RecordTooLarge,
    RequestTimeout,
    UnknownTopicOrPartition,
    UnsupportedVersion,
    UsageError,
)
from kafkaio.producer import DeliveriesFailed, Delivery, Producer
from kafkaio.protocol import messages
from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.types import (
    GroupMetadata,
    NewRecord,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    RecordMetadata,
    TimestampType,
    TopicPartition,
)

__all__ = [
    "ANY",
    "AuthenticationError",
    "AuthorizationError",
    "Batch",
    "Broker",
    "BrokerError",
    "BrokerNotAvailable",
    "BufferFull",
    "Client",
    "ClientConfig",
    "ClosedError",
    "CommitFailed",
    "ConfigurationError",
    "ConnectionLost",
    "Consumer",
    "ConsumerConfig",
    "Controller",
    "CorruptRecord",
    "DeliveriesFailed",
    "Delivery",
    "DeliveryTimeout",
    "Destination",
    "ErrorCode",
    "Fenced",
    "GroupCoordinator",
    "GroupError",
    "GroupMetadata",
    "InternalError",
    "KafkaError",
    "KafkaTimeout",
    "Leader",
    "MembershipError",
    "NetworkError",
    "NewRecord",
    "Observer",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "OffsetOutOfRange",
    "PartitionLost",
    "Poll",
    "Producer",
    "ProducerConfig",
    "ProtocolError",
    "RebalanceInProgress",
    "Record",
    "RecordMetadata",
    "RecordTooLarge",
    "RequestTimeout",
    "TimestampType",
    "TopicPartition",
    "TransactionCoordinator",
    "UnknownTopicOrPartition",
    "UnsupportedVersion",
    "UsageError",
    "accelerated",
    "messages",
]
