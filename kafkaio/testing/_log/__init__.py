"""The log of the embedded broker: Kafka's file format, on disk or in memory.

`Log` is the log of one partition. It consists of segments (``segment``), each a file
of batches with two indexes (``index``). Leader epochs are in ``epochs``, the checks of
what is appended in ``admission``, aborted transactions and snapshots of producers in
``transactions``, compaction in ``cleaner``, and what happens when a log is opened in
``recovery``. ``storage`` says what a power cut can do to a file.
"""

from kafkaio.testing._log.config import LogConfig as LogConfig
from kafkaio.testing._log.epochs import EpochEntry as EpochEntry
from kafkaio.testing._log.errors import (
    BatchListTooLargeError as BatchListTooLargeError,
    BatchTooLargeError as BatchTooLargeError,
    CorruptBatchError as CorruptBatchError,
    InvalidBatchError as InvalidBatchError,
    InvalidTimestampError as InvalidTimestampError,
    LogError as LogError,
    OffsetOutOfRangeError as OffsetOutOfRangeError,
)
from kafkaio.testing._log.formats import (
    AbortedTransaction as AbortedTransaction,
    ProducerEntry as ProducerEntry,
)
from kafkaio.testing._log.header import (
    LogBatchHeader as LogBatchHeader,
    read_header as read_header,
)
from kafkaio.testing._log.log import (
    Appended as Appended,
    Log as Log,
    SegmentInfo as SegmentInfo,
    TimestampOffset as TimestampOffset,
)
from kafkaio.testing._log.storage import (
    DiskStorage as DiskStorage,
    MemoryStorage as MemoryStorage,
    StoragePort as StoragePort,
    StoredFilePort as StoredFilePort,
)
