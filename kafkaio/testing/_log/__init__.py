"""The log of the embedded broker: Kafka's file format, on disk or in memory.

`Log` is the log of one partition. It consists of segments (``segment``), each a file
of batches with two indexes (``index``). Leader epochs are in ``epochs``, the checks of
what is appended in ``admission``, aborted transactions and snapshots of producers in
``transactions``, compaction in ``cleaner``, and what happens when a log is opened in
``recovery``. ``storage`` says what a power cut can do to a file.
"""

from kafkaio.testing._log.config import LogConfig
from kafkaio.testing._log.epochs import EpochEntry
from kafkaio.testing._log.errors import (
    BatchListTooLargeError,
    BatchTooLargeError,
    CorruptBatchError,
    InvalidBatchError,
    InvalidTimestampError,
    LogError,
    OffsetOutOfRangeError,
)
from kafkaio.testing._log.formats import AbortedTransaction, ProducerEntry
from kafkaio.testing._log.header import BatchHeader, read_header
from kafkaio.testing._log.log import Appended, Log, SegmentInfo, TimestampOffset
from kafkaio.testing._log.storage import (
    DiskStorage,
    MemoryStorage,
    Storage,
    StoredFile,
)

__all__ = [
    "AbortedTransaction",
    "Appended",
    "BatchHeader",
    "BatchListTooLargeError",
    "BatchTooLargeError",
    "CorruptBatchError",
    "DiskStorage",
    "EpochEntry",
    "InvalidBatchError",
    "InvalidTimestampError",
    "Log",
    "LogConfig",
    "LogError",
    "MemoryStorage",
    "OffsetOutOfRangeError",
    "ProducerEntry",
    "SegmentInfo",
    "Storage",
    "StoredFile",
    "TimestampOffset",
    "read_header",
]
