"""Errors for users of Spark: one sentence each, of bounded length.

Spark shows an error of a Python data source as the last line of a traceback in the
driver. So that line names the partition or host, the process, and the remedy.
`explained` turns kafkaio's errors into such sentences. `plainly` leaves one frame of
their traceback, so that PySpark prints the sentence near the top. Many partitions with
one cause make one sentence: `lost`, `warn_lost`.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from itertools import islice
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

from kafkaio._public import public
from kafkaio.errors import (
    AdminErrors,
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

if TYPE_CHECKING:
    from kafkaio._runtime.log import Limiter

P = ParamSpec("P")
T = TypeVar("T")

_log = logging.getLogger("kafkaio.spark")
#: The most partitions that an error or a warning names: a topic may have thousands.
_NAMED: Final = 5
#: Limits the warnings of this process; made with the first.
_limiter: Limiter | None = None


@public("kafkaio.spark")
class DataSourceError(KafkaError):
    """The read or write failed; the message says where, why and what to do."""


@public("kafkaio.spark")
class DataLost(DataSourceError):
    """Records that were to be read do not exist, and ``failOnDataLoss`` is true."""


#: The remedy for an error, by its class. The first that fits counts, so subclasses
#: stand before their bases.
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
    # With the host: Spark's own traceback does not name it, and many causes (DNS, a
    # firewall, a missing file) concern one host.
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
        what: the work of the block, such as ``"reading orders-0"``.

    Raises:
        DataSourceError: in place of any other `KafkaError`, but for a
            ConfigurationError, which says all itself; and in place of AdminErrors, of
            which `one_of_many` chooses one.
    """
    try:
        with one_of_many():
            yield
    except (DataSourceError, ConfigurationError):
        raise
    except KafkaError as error:
        advice = next((a for kind, a in _ADVICE if isinstance(error, kind)), "")
        cause = error.__cause__
        # Many errors repeat their cause. The class is shown of a cause without a text.
        is_told = cause is None or (str(cause) and str(cause) in str(error))
        why = "" if is_told else f" ({type(cause).__name__}: {cause})"
        raise DataSourceError(
            f"{process()}: {what} failed: {type(error).__name__}: {error}{why}"
            + (f"; {advice}" if advice else "")
            # No chain: Spark would print each traceback of it above the sentence.
        ) from None


@contextmanager
def one_of_many() -> Iterator[None]:
    """Raise one error where an operation of `kafkaio.Admin` failed for several items.

    That is the first error that is not retriable, else the first one. The group is its
    cause.

    Raises:
        KafkaError: in place of an `AdminErrors`, which is not a KafkaError.
    """
    try:
        yield
    except AdminErrors as errors:
        all_of = [each for each in errors.exceptions if isinstance(each, KafkaError)]
        raise next((e for e in all_of if not e.retriable), all_of[0]) from errors


def plainly(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function that Spark calls: kafkaio's errors keep one frame only.

    PySpark prints a traceback before the error itself. Kafkaio's errors explain
    themselves; their frames are logged at the level DEBUG. Other errors keep all
    frames.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except KafkaError as error:
            raise _plain(error) from None

    return call


def plainly_each(items: Iterator[T]) -> Iterator[T]:
    """Yield items; errors of kafkaio keep one frame only, as with `plainly`."""
    try:
        yield from items
    except KafkaError as error:
        raise _plain(error) from None


def _plain(error: KafkaError) -> KafkaError:
    _log.debug("a call of Spark has failed", exc_info=error)
    return error.with_traceback(None)


def listed(items: Iterable[str], separator: str = ", ") -> str:
    """Return the first few items as text, and how many more there are."""
    rest = iter(items)
    named = separator.join(islice(rest, _NAMED))
    more = sum(1 for _ in rest)
    return f"{named}{separator}and {more} more" if more else named


def lost(sentences: Sequence[str]) -> DataLost:
    """Return the error for records that do not exist any more."""
    return DataLost(
        f"{process()}: {_lost(sentences)}; they were deleted by retention, or the "
        "topic was deleted; set failOnDataLoss=false to go on with the records that "
        "there are"
    )


def _lost(sentences: Sequence[str]) -> str:
    where = "" if len(sentences) == 1 else f" in {len(sentences)} cases"
    return f"records may have been lost{where}: {listed(sentences, '; ')}"


def warn_lost(sentences: Sequence[str], topics: Collection[str] = ()) -> None:
    """Log one warning for all records that do not exist any more.

    At the level DEBUG each partition is named.

    Args:
        sentences: one for each partition; nothing is logged if there is none.
        topics: their topics, in a task; about the same ones the tasks of a process warn
            once in a while, as each of them finds the same.
    """
    if not sentences:
        return
    text = f"{process()}: {_lost(sentences)}"
    if topics:
        warn("records lost", frozenset(topics), text, len(sentences))
    else:
        _log.warning("%s", text)
    for sentence in sentences:
        _log.debug("records may have been lost: %s", sentence)


def warn(kind: str, subject: object, text: str, count: int = 1) -> None:
    """Log a warning that may come again and again: once in 30 seconds in a process.

    Args:
        kind: what happened.
        subject: its object, such as a topic.
        text: the warning.
        count: how many warnings this one stands for.
    """
    # Loaded only where something is wrong: Spark imports this module whenever it looks
    # for a format.
    from kafkaio._runtime.log import Limiter

    global _limiter
    _limiter = _limiter or Limiter()
    left_out = _limiter.admit(kind, subject, time.monotonic(), count)
    if left_out is not None:
        more = f" ({left_out} more since the last such warning)" if left_out else ""
        _log.warning("%s%s", text, more)
