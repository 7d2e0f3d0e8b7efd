"""The Kafka client for asyncio: producers and consumers on one event loop.

``Producer``, ``Consumer``, ``Admin`` and ``Client`` are the names to begin with. Every
exception is a name of this package too, and a `KafkaError`. ``messages`` holds every
message of the protocol. Heavy optional parts are modules of their own, such as
`kafkaio.testing`.

Names are loaded when they are first used: a program that only produces never loads
the consumer. ``__init__.pyi`` shows them to type checkers.
"""

from kafkaio import errors
from kafkaio._public import lazy
from kafkaio._version import __version__ as __version__
from kafkaio.errors import *  # noqa: F403

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "kafkaio._client": (
            *("ANY", "Broker", "Client", "ClientStatistics", "ClusterView"),
            *("Controller", "Destination", "GroupCoordinator", "Leader"),
            *("PartitionView", "TopicView", "TransactionCoordinator"),
        ),
        "kafkaio._config": (
            *("ClientConfig", "ConsumerConfig", "ProducerConfig"),
            "ShareConsumerConfig",
        ),
        "kafkaio._config.options": (
            *("ClientOptions", "ConsumerOptions", "ProducerOptions"),
            "ShareConsumerOptions",
        ),
        "kafkaio._consumer": (
            *("Assigned", "Batch", "BatchIterator", "Consumer"),
            *("ConsumerStatistics", "Hold", "Lost", "PartitionStatistics", "Poll"),
            *("RawBatchIterator", "Rebalances", "RecordIterator", "Revoked"),
            *("RevokeRequested", "TableIterator"),
        ),
        "kafkaio._consumer.parallel": (
            *("DeadLetter", "Lane", "LaneBatches", "LaneIterator", "RecordSender"),
        ),
        "kafkaio._consumer.stores.base": ("DualOffsetStore", "KafkaOffsetStore"),
        "kafkaio._consumer.stores.file": ("FileOffsetStore",),
        "kafkaio._consumer.stores.sqlite": ("SQLiteOffsetStore",),
        "kafkaio._consumer.stores.zookeeper": ("ZooKeeperOffsetStore",),
        "kafkaio._exactly_once": ("exactly_once",),
        "kafkaio._machines.membership.layout": ("Layout",),
        "kafkaio._machines.membership.subscription": ("Assignor", "Subscription"),
        "kafkaio._machines.retries": ("Retry",),
        "kafkaio._machines.accumulator": ("BufferStatistics",),
        "kafkaio._net.connection": ("ConnectionStatistics",),
        "kafkaio._net.connection_class": ("ConnectionClass",),
        "kafkaio._net.transport": ("Dial",),
        "kafkaio._producer": ("Delivery", "Producer", "ProducerStatistics"),
        "kafkaio._producer.bulk": ("DeliveriesFailed", "TableDelivery"),
        "kafkaio._producer.raw": ("RawDelivery",),
        "kafkaio._producer.transaction": ("Transaction", "TransactionOutcome"),
        "kafkaio._records._impl": (
            *("Record", "RowReceipts", "ShareRecord", "accelerated"),
        ),
        "kafkaio._records.raw": ("RawBatch",),
        "kafkaio._share": (
            *("ShareBatch", "ShareBatchIterator", "ShareConsumer"),
            *("ShareConsumerStatistics", "ShareRecordIterator"),
        ),
        "kafkaio._transactional": ("TransactionalConsumer",),
        "kafkaio._runtime.observer": (
            *("AcknowledgedBatch", "AcknowledgedPart", "AcquiredPart"),
            *("FetchedPart", "Observed", "Observer", "add_default_observer"),
            "remove_default_observer",
        ),
        "kafkaio.admin": ("Admin",),
        "kafkaio.protocol": ("messages",),
        "kafkaio.protocol._error_codes": ("ErrorCode",),
        "kafkaio._topic": ("DeserializationContext", "SerializationContext", "Topic"),
        "kafkaio.types": (
            *("GroupMetadata", "Metric", "NewRecord", "OffsetAndMetadata"),
            *("OffsetAndTimestamp", "OffsetRange", "OffsetStore", "RecordMetadata"),
            *("TimestampType", "TopicPartition"),
        ),
    },
    # Pickles of records name these functions; users do not.
    hidden={
        "_restore_record": "kafkaio._records._impl",
        "_restore_share_record": "kafkaio._records._impl",
    },
    # The values of Admin: kafkaio.NewTopic is kafkaio.admin.NewTopic.
    others="kafkaio.admin",
)
__all__ += ["__version__", *errors.__all__]
