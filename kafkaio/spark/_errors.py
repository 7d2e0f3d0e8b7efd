"""Failures in the words of a Spark user: one sentence each, and of bounded length.

Spark shows an error of a Python data source as the last line of a traceback in the
driver. So that line names what failed (a partition or a host), in which process, and
what to do about it. `explained` makes such sentences of kafkaio's errors. `plainly`
leaves one frame of their traceback, so that the sentence is near the top of what
PySpark prints. Many partitions with one cause make one sentence: `lost`, `warn_lost`.
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
#: How many of many partitions an error or a warning names.
_NAMED: Final = 5
#: Limits the warnings of this process; made with the first.
_limiter: Limiter | None = None


@public("kafkaio.spark")
class DataSourceError(KafkaError):
    """The read or write failed; the message says where, why and what to do."""


@public("kafkaio.spark")
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
        # Often the error repeats its cause; of one without a text, the class is told.
        is_told = cause is None or (str(cause) and str(cause) in str(error))
        why = "" if is_told else f" ({type(cause).__name__}: {cause})"
        raise DataSourceError(
            f"{process()}: {what} failed: {type(error).__name__}: {error}{why}"
            + (f"; {advice}" if advice else "")
        ) from None


@contextmanager
def one_of_many() -> Iterator[None]:
    """Raise one error where an operation of `kafkaio.Admin` failed for several items.

    That is the first one that cannot pass, else the first one; the group is its cause.

    Raises:
        KafkaError: in place of an `AdminErrors`, which is no KafkaError.
    """
    try:
        yield
    except AdminErrors as errors:
        all_of = [each for each in errors.exceptions if isinstance(each, KafkaError)]
        raise next((e for e in all_of if not e.retriable), all_of[0]) from errors


def plainly(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function that Spark calls: of kafkaio's errors only one frame is left.

    PySpark prints a traceback before the error itself. Those errors say all that helps;
    the frames in which they arose are logged at the level DEBUG. Other errors keep all
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
    """Yield items; of kafkaio's errors that come instead only one frame is left."""
    try:
        yield from items
    except KafkaError as error:
        raise _plain(error) from None


def _plain(error: KafkaError) -> KafkaError:
    _log.debug("what Spark called has failed", exc_info=error)
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
        subject: what it happened to.
        text: the warning.
        count: how many warnings this one stands for.
    """
    # Loaded where something is wrong: this module is imported whenever Spark looks for
    # a format.
    from kafkaio._runtime.log import Limiter

    global _limiter
    _limiter = _limiter or Limiter()
    left_out = _limiter.admit(kind, subject, time.monotonic(), count)
    if left_out is not None:
        more = f" ({left_out} more since the last such warning)" if left_out else ""
        _log.warning("%s%s", text, more)
