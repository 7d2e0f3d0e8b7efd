"""The Kafka client for asyncio: producers and consumers on one event loop.

``Producer``, ``Consumer``, ``Admin`` and ``Client`` are the names to begin with. Every
exception is a name of this package too, and a `KafkaError`. ``messages`` holds every
message of the protocol. Heavy optional parts are modules of their own, such as
`kafkaio.testing`.

Names are loaded when they are first used: a program that only produces never loads
the consumer.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from kafkaio._version import __version__
from kafkaio.errors import (
    AdminErrors,
    ArgumentTypeError,
    ArgumentValueError,
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
    InvalidTopic,
    KafkaError,
    KafkaTimeout,
    LogTruncated,
    MembershipError,
    NetworkError,
    OffsetOutOfRange,
    OffsetStoreError,
    OutcomeUnknown,
    PartitionLost,
    ProtocolError,
    RebalanceInProgress,
    RecordTooLarge,
    RequestTimeout,
    RewindRefused,
    TransactionAborted,
    UnknownTopicOrPartition,
    UnsupportedVersion,
    UsageError,
)
from kafkaio.types import (
    GroupMetadata,
    NewRecord,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    OffsetRange,
    OffsetStore,
    RecordMetadata,
    TimestampType,
    TopicPartition,
)

if TYPE_CHECKING:
    from kafkaio._exactly_once import exactly_once
    from kafkaio._machines.retries import Retry
    from kafkaio._records._impl import ACCELERATED as accelerated
    from kafkaio._records._impl import Record
    from kafkaio._runtime.observer import Observer
    from kafkaio.admin import (
        AclOperation,
        Admin,
        ConfigEntry,
        ConfigSource,
        CreatedTopic,
        HangingTransaction,
        NewTopic,
        PartitionDescription,
        ProducerIdAndEpoch,
        ProducerState,
        TopicDescription,
        TopicListing,
        TransactionDescription,
        TransactionListing,
        TransactionState,
    )
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
    from kafkaio.consumer import (
        Assigned,
        Assignor,
        Batch,
        Consumer,
        DeadLetter,
        Lane,
        Layout,
        Lost,
        Poll,
        Revoked,
        RevokeRequested,
        Subscription,
    )
    from kafkaio.consumer.stores.base import DualOffsetStore, KafkaOffsetStore
    from kafkaio.consumer.stores.file import FileOffsetStore
    from kafkaio.consumer.stores.sqlite import SQLiteOffsetStore
    from kafkaio.consumer.stores.zookeeper import ZooKeeperOffsetStore
    from kafkaio.producer import (
        DeliveriesFailed,
        Delivery,
        Producer,
        TableDelivery,
        Transaction,
        TransactionOutcome,
    )
    from kafkaio.protocol import messages
    from kafkaio.protocol.error_codes import ErrorCode

__all__ = [
    "ANY",
    "AclOperation",
    "Admin",
    "AdminErrors",
    "ArgumentTypeError",
    "ArgumentValueError",
    "Assigned",
    "Assignor",
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
    "ConfigEntry",
    "ConfigSource",
    "ConfigurationError",
    "ConnectionLost",
    "Consumer",
    "ConsumerConfig",
    "Controller",
    "CorruptRecord",
    "CreatedTopic",
    "DeadLetter",
    "DeliveriesFailed",
    "Delivery",
    "DeliveryTimeout",
    "Destination",
    "DualOffsetStore",
    "ErrorCode",
    "Fenced",
    "FileOffsetStore",
    "GroupCoordinator",
    "GroupError",
    "GroupMetadata",
    "HangingTransaction",
    "InternalError",
    "InvalidTopic",
    "KafkaError",
    "KafkaOffsetStore",
    "KafkaTimeout",
    "Lane",
    "Layout",
    "Leader",
    "LogTruncated",
    "Lost",
    "MembershipError",
    "NetworkError",
    "NewRecord",
    "NewTopic",
    "Observer",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "OffsetOutOfRange",
    "OffsetRange",
    "OffsetStore",
    "OffsetStoreError",
    "OutcomeUnknown",
    "PartitionDescription",
    "PartitionLost",
    "Poll",
    "Producer",
    "ProducerConfig",
    "ProducerIdAndEpoch",
    "ProducerState",
    "ProtocolError",
    "RebalanceInProgress",
    "Record",
    "RecordMetadata",
    "RecordTooLarge",
    "RequestTimeout",
    "Retry",
    "RevokeRequested",
    "Revoked",
    "RewindRefused",
    "SQLiteOffsetStore",
    "Subscription",
    "TableDelivery",
    "TimestampType",
    "TopicDescription",
    "TopicListing",
    "TopicPartition",
    "Transaction",
    "TransactionAborted",
    "TransactionCoordinator",
    "TransactionDescription",
    "TransactionListing",
    "TransactionOutcome",
    "TransactionState",
    "UnknownTopicOrPartition",
    "UnsupportedVersion",
    "UsageError",
    "ZooKeeperOffsetStore",
    "__version__",
    "accelerated",
    "exactly_once",
    "messages",
]

#: The module and the name there of everything that is loaded on first use. An empty
#: name means the module itself.
_HOMES = {
    "Record": ("kafkaio._records._impl", "Record"),
    "accelerated": ("kafkaio._records._impl", "ACCELERATED"),
    "Observer": ("kafkaio._runtime.observer", "Observer"),
    "Admin": ("kafkaio.admin", "Admin"),
    "AclOperation": ("kafkaio.admin", "AclOperation"),
    "ConfigEntry": ("kafkaio.admin", "ConfigEntry"),
    "ConfigSource": ("kafkaio.admin", "ConfigSource"),
    "CreatedTopic": ("kafkaio.admin", "CreatedTopic"),
    "NewTopic": ("kafkaio.admin", "NewTopic"),
    "PartitionDescription": ("kafkaio.admin", "PartitionDescription"),
    "TopicDescription": ("kafkaio.admin", "TopicDescription"),
    "TopicListing": ("kafkaio.admin", "TopicListing"),
    "HangingTransaction": ("kafkaio.admin", "HangingTransaction"),
    "ProducerIdAndEpoch": ("kafkaio.admin", "ProducerIdAndEpoch"),
    "ProducerState": ("kafkaio.admin", "ProducerState"),
    "TransactionDescription": ("kafkaio.admin", "TransactionDescription"),
    "TransactionListing": ("kafkaio.admin", "TransactionListing"),
    "TransactionState": ("kafkaio.admin", "TransactionState"),
    "ANY": ("kafkaio.client", "ANY"),
    "Broker": ("kafkaio.client", "Broker"),
    "Client": ("kafkaio.client", "Client"),
    "Controller": ("kafkaio.client", "Controller"),
    "Destination": ("kafkaio.client", "Destination"),
    "GroupCoordinator": ("kafkaio.client", "GroupCoordinator"),
    "Leader": ("kafkaio.client", "Leader"),
    "TransactionCoordinator": ("kafkaio.client", "TransactionCoordinator"),
    "ClientConfig": ("kafkaio.config", "ClientConfig"),
    "ConsumerConfig": ("kafkaio.config", "ConsumerConfig"),
    "ProducerConfig": ("kafkaio.config", "ProducerConfig"),
    "Assigned": ("kafkaio.consumer", "Assigned"),
    "Assignor": ("kafkaio.consumer", "Assignor"),
    "Batch": ("kafkaio.consumer", "Batch"),
    "Consumer": ("kafkaio.consumer", "Consumer"),
    "DeadLetter": ("kafkaio.consumer", "DeadLetter"),
    "Lane": ("kafkaio.consumer", "Lane"),
    "Layout": ("kafkaio.consumer", "Layout"),
    "Lost": ("kafkaio.consumer", "Lost"),
    "Retry": ("kafkaio._machines.retries", "Retry"),
    "Poll": ("kafkaio.consumer", "Poll"),
    "RevokeRequested": ("kafkaio.consumer", "RevokeRequested"),
    "Revoked": ("kafkaio.consumer", "Revoked"),
    "Subscription": ("kafkaio.consumer", "Subscription"),
    "FileOffsetStore": ("kafkaio.consumer.stores.file", "FileOffsetStore"),
    "ZooKeeperOffsetStore": (
        "kafkaio.consumer.stores.zookeeper",
        "ZooKeeperOffsetStore",
    ),
    "SQLiteOffsetStore": ("kafkaio.consumer.stores.sqlite", "SQLiteOffsetStore"),
    "DualOffsetStore": ("kafkaio.consumer.stores.base", "DualOffsetStore"),
    "KafkaOffsetStore": ("kafkaio.consumer.stores.base", "KafkaOffsetStore"),
    "DeliveriesFailed": ("kafkaio.producer", "DeliveriesFailed"),
    "Delivery": ("kafkaio.producer", "Delivery"),
    "Producer": ("kafkaio.producer", "Producer"),
    "TableDelivery": ("kafkaio.producer", "TableDelivery"),
    "Transaction": ("kafkaio.producer", "Transaction"),
    "TransactionOutcome": ("kafkaio.producer", "TransactionOutcome"),
    "exactly_once": ("kafkaio._exactly_once", "exactly_once"),
    "messages": ("kafkaio.protocol.messages", ""),
    "ErrorCode": ("kafkaio.protocol.error_codes", "ErrorCode"),
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(home[0])
    value: object = getattr(module, home[1]) if home[1] else module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
