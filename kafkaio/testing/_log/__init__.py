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
)
from kafkaio.testing._log.errors import (
    BatchTooLargeError as BatchTooLargeError,
)
from kafkaio.testing._log.errors import (
    CorruptBatchError as CorruptBatchError,
)
from kafkaio.testing._log.errors import (
    InvalidBatchError as InvalidBatchError,
)
from kafkaio.testing._log.errors import (
    InvalidTimestampError as InvalidTimestampError,
)
from kafkaio.testing._log.errors import (
    LogError as LogError,
)
from kafkaio.testing._log.errors import (
    OffsetOutOfRangeError as OffsetOutOfRangeError,
)
from kafkaio.testing._log.formats import AbortedTransaction as AbortedTransaction
from kafkaio.testing._log.formats import ProducerEntry as ProducerEntry
from kafkaio.testing._log.header import LogBatchHeader as LogBatchHeader
from kafkaio.testing._log.header import read_header as read_header
from kafkaio.testing._log.log import Appended as Appended
from kafkaio.testing._log.log import Log as Log
from kafkaio.testing._log.log import SegmentInfo as SegmentInfo
from kafkaio.testing._log.log import TimestampOffset as TimestampOffset
from kafkaio.testing._log.storage import (
    DiskStorage as DiskStorage,
)
from kafkaio.testing._log.storage import (
    MemoryStorage as MemoryStorage,
)
from kafkaio.testing._log.storage import (
    StoragePort as StoragePort,
)
from kafkaio.testing._log.storage import (
    StoredFilePort as StoredFilePort,
)
