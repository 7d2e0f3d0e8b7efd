"""Failures in the words of a Spark user: one sentence each.

Spark shows an error of a Python data source as the last line of a traceback in the
driver. So that line names what failed (a partition or a host), in which process, and
what to do about it. `explained` makes such sentences of kafkaio's errors.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from kafkaio.errors import (
    AuthenticationError,
    AuthorizationError,
    BrokerNotAvailable,
    ConfigurationError,
    CorruptRecord,
    KafkaError,
    KafkaTimeout,
    NetworkError,
    OffsetOutOfRange,
    UnknownTopicOrPartition,
)

__all__ = ["DataLost", "DataSourceError", "explained", "lost", "process"]


class DataSourceError(KafkaError):
    """The read or write failed; the message says where, why and what to do."""


class DataLost(DataSourceError):
    """Records that were to be read do not exist, and ``failOnDataLoss`` is true."""


#: What to do about an error, by its class; the first that fits.
_ADVICE: tuple[tuple[type[KafkaError], str], ...] = (
    (
        UnknownTopicOrPartition,
        "check the topic's name, or create the topic",
    ),
    (
        AuthorizationError,
        "grant the principal Describe and Read on topics that it reads, Write on those "
        "that it writes, and the rights that the guide names for exactlyOnce",
    ),
    (
        AuthenticationError,
        "check kafka.security.protocol and what the brokers demand",
    ),
    (
        BrokerNotAvailable,
        "check kafka.bootstrap.servers, and that this host reaches the brokers under "
        "their advertised addresses",
    ),
    (
        OffsetOutOfRange,
        "the records were deleted; set failOnDataLoss=false to read what there is",
    ),
    (
        CorruptRecord,
        "the broker's log or the network is damaged; read another range, or restore "
        "the partition",
    ),
    (
        KafkaTimeout,
        "check that this host reaches the brokers under their advertised addresses, "
        "or raise kafka.request.timeout.ms and kafka.default.api.timeout.ms, and when "
        "writing kafka.max.block.ms and kafka.delivery.timeout.ms",
    ),
    (
        NetworkError,
        "check that this host reaches the brokers under their advertised addresses",
    ),
)


def process() -> str:
    """Return the name of this process: a task of Spark, or planning in the driver."""
    from pyspark import TaskContext

    context = TaskContext.get()
    host = f"host {os.uname().nodename}, pid {os.getpid()}"
    if context is None:
        return f"planning ({host})"
    return f"task {context.partitionId()} ({host})"


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Turn an error of kafkaio into a `DataSourceError` of one sentence.

    Args:
        what: what the block does, such as ``"reading orders-0"``.

    Raises:
        DataSourceError: in place of any other `KafkaError`, but for a
            ConfigurationError, which says all itself.
    """
    try:
        yield
    except (DataSourceError, ConfigurationError):
        raise
    except KafkaError as error:
        advice = next((a for kind, a in _ADVICE if isinstance(error, kind)), "")
        cause = error.__cause__
        # Often the error repeats its cause; of one without a text, the class is told.
        is_told = cause is None or (str(cause) and str(cause) in str(error))
        why = "" if is_told else f" ({type(cause).__name__}: {cause})"
        raise DataSourceError(
            f"{process()}: {what} failed: {type(error).__name__}: {error}{why}"
            + (f"; {advice}" if advice else "")
        ) from None


def lost(sentences: list[str]) -> DataLost:
    """Return the error for records that do not exist any more."""
    return DataLost(
        f"{process()}: records may have been lost: {'; '.join(sentences)}; they were "
        "deleted by retention, or the topic was deleted; set failOnDataLoss=false to "
        "go on with the records that there are"
    )
