"""The names of the package for type checkers; see ``__init__.py``."""

# A star takes what `__all__` of the module lists.
from kafkaio._client import (
    ANY as ANY,
    Broker as Broker,
    Client as Client,
    ClientStatistics as ClientStatistics,
    ClusterView as ClusterView,
    Controller as Controller,
    Destination as Destination,
    GroupCoordinator as GroupCoordinator,
    Leader as Leader,
    PartitionView as PartitionView,
    TopicView as TopicView,
    TransactionCoordinator as TransactionCoordinator,
)
from kafkaio._config import (
    ClientConfig as ClientConfig,
    ConsumerConfig as ConsumerConfig,
    ProducerConfig as ProducerConfig,
    ShareConsumerConfig as ShareConsumerConfig,
)
from kafkaio._config.options import (
    ClientOptions as ClientOptions,
    ConsumerOptions as ConsumerOptions,
    ProducerOptions as ProducerOptions,
    ShareConsumerOptions as ShareConsumerOptions,
)
from kafkaio._consumer import (
    Assigned as Assigned,
    Batch as Batch,
    BatchIterator as BatchIterator,
    Consumer as Consumer,
    ConsumerStatistics as ConsumerStatistics,
    Hold as Hold,
    Lost as Lost,
    PartitionStatistics as PartitionStatistics,
    Poll as Poll,
    RawBatchIterator as RawBatchIterator,
    Rebalances as Rebalances,
    RecordIterator as RecordIterator,
    Revoked as Revoked,
    RevokeRequested as RevokeRequested,
    TableIterator as TableIterator,
)
from kafkaio._consumer.parallel import (
    DeadLetter as DeadLetter,
    Lane as Lane,
    LaneBatches as LaneBatches,
    LaneIterator as LaneIterator,
    RecordSender as RecordSender,
)
from kafkaio._consumer.stores.base import (
    DualOffsetStore as DualOffsetStore,
    KafkaOffsetStore as KafkaOffsetStore,
)
from kafkaio._consumer.stores.file import (
    FileOffsetStore as FileOffsetStore,
)
from kafkaio._consumer.stores.sqlite import (
    SQLiteOffsetStore as SQLiteOffsetStore,
)
from kafkaio._consumer.stores.zookeeper import (
    ZooKeeperOffsetStore as ZooKeeperOffsetStore,
)
from kafkaio._exactly_once import (
    exactly_once as exactly_once,
)
from kafkaio._machines.accumulator import BufferStatistics as BufferStatistics
from kafkaio._machines.membership.layout import Layout as Layout
from kafkaio._machines.membership.subscription import (
    Assignor as Assignor,
    Subscription as Subscription,
)
from kafkaio._machines.retries import (
    Retry as Retry,
)
from kafkaio._net.connection import ConnectionStatistics as ConnectionStatistics
from kafkaio._net.connection_class import ConnectionClass as ConnectionClass
from kafkaio._net.transport import Dial as Dial
from kafkaio._producer import (
    Delivery as Delivery,
    Producer as Producer,
    ProducerStatistics as ProducerStatistics,
)
from kafkaio._producer.bulk import (
    DeliveriesFailed as DeliveriesFailed,
    TableDelivery as TableDelivery,
)
from kafkaio._producer.raw import RawDelivery as RawDelivery
from kafkaio._producer.transaction import (
    Transaction as Transaction,
    TransactionOutcome as TransactionOutcome,
)
from kafkaio._records._impl import (
    Record as Record,
    RowReceipts as RowReceipts,
    ShareRecord as ShareRecord,
    accelerated as accelerated,
)
from kafkaio._records.raw import RawBatch as RawBatch
from kafkaio._runtime.observer import (
    AcknowledgedBatch as AcknowledgedBatch,
    AcknowledgedPart as AcknowledgedPart,
    AcquiredPart as AcquiredPart,
    FetchedPart as FetchedPart,
    Observed as Observed,
    Observer as Observer,
    add_default_observer as add_default_observer,
    remove_default_observer as remove_default_observer,
)
from kafkaio._share import (
    ShareBatch as ShareBatch,
    ShareBatchIterator as ShareBatchIterator,
    ShareConsumer as ShareConsumer,
    ShareConsumerStatistics as ShareConsumerStatistics,
    ShareRecordIterator as ShareRecordIterator,
)
from kafkaio._topic import (
    DeserializationContext as DeserializationContext,
    SerializationContext as SerializationContext,
    Topic as Topic,
)
from kafkaio._transactional import TransactionalConsumer as TransactionalConsumer
from kafkaio._version import (
    __version__ as __version__,
)
from kafkaio.admin import *  # noqa: F403
from kafkaio.errors import *  # noqa: F403
from kafkaio.protocol import (
    messages as messages,
)
from kafkaio.protocol._error_codes import (
    ErrorCode as ErrorCode,
)
from kafkaio.types import (
    GroupMetadata as GroupMetadata,
    Metric as Metric,
    NewRecord as NewRecord,
    OffsetAndMetadata as OffsetAndMetadata,
    OffsetAndTimestamp as OffsetAndTimestamp,
    OffsetRange as OffsetRange,
    OffsetStore as OffsetStore,
    RecordMetadata as RecordMetadata,
    TimestampType as TimestampType,
    TopicPartition as TopicPartition,
)

__all__: list[str]
