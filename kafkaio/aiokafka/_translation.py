"""Exceptions of kafkaio as those of aiokafka.

What is raised is always a subclass of both: of the class of aiokafka that callers
expect, and of the class that kafkaio raised. Where `kafkaio.aiokafka.errors` has no
such class, one is made: the class of aiokafka, by the same name, with the other as a
second base.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce

import kafkaio
from kafkaio.aiokafka import errors
from kafkaio.aiokafka._pickling import restored


@contextmanager
def translating(
    *,
    closed: type[Exception] = errors.IllegalStateError,
    late: type[errors.KafkaError] = errors.KafkaTimeoutError,
) -> Iterator[None]:
    """Raise what kafkaio raises inside as aiokafka's exceptions, with it as the cause.

    Args:
        closed: what `kafkaio.ClosedError` becomes.
        late: what the end of a time limit becomes.
    """
    try:
        yield
    except kafkaio.KafkaError as error:
        known = translated(error, closed=closed, late=late)
        if known is error:
            raise
        raise known from (error if known is not error.__cause__ else known.__cause__)


def translated(
    error: Exception,
    *,
    closed: type[Exception] = errors.IllegalStateError,
    late: type[errors.KafkaError] = errors.KafkaTimeoutError,
) -> Exception:
    """Return the exception of aiokafka for one of kafkaio, with that as its cause.

    An exception that aiokafka's users would see, too, is returned as it is: one of
    aiokafka's, a wrong argument (which is a `TypeError` or a `ValueError`), and what a
    serializer or deserializer raised.

    Args:
        error: the exception.
        closed: what `kafkaio.ClosedError` becomes.
        late: what the end of a time limit becomes.
    """
    if isinstance(error, kafkaio.SerializationError | kafkaio.DeserializationError):
        cause = error.__cause__
        return cause if isinstance(cause, Exception) else error
    if not isinstance(error, kafkaio.KafkaError) or isinstance(error, _AS_THEY_ARE):
        return error
    return made(_kind_of(error, closed, late), error)


def _kind_of(
    error: kafkaio.KafkaError, closed: type[Exception], late: type[errors.KafkaError]
) -> type[Exception]:
    if isinstance(error, kafkaio.TransactionAborted):
        # A commit of aiokafka raises what the transaction cannot be committed for. One
        # that took too long looks to it like a newer producer.
        cause = error.__cause__
        if error.reason == "timed out":
            return errors.ProducerFenced
        if isinstance(cause, kafkaio.KafkaError):
            return _kind_of(cause, closed, late)
    if isinstance(error, kafkaio.DeliveryTimeout):
        # A record of aiokafka fails by what has failed last; a time limit it is, too.
        last = error.__cause__
        if not isinstance(last, kafkaio.KafkaError):
            return _both(errors.RequestTimedOutError, late)
        return _both(_kind_of(last, closed, late), late)
    if isinstance(error, kafkaio.ClosedError):
        return closed
    if isinstance(error, kafkaio.BrokerError):
        return _of_broker(error)
    if isinstance(error, kafkaio.KafkaTimeout) and not isinstance(
        error, kafkaio.RequestTimeout
    ):
        return late
    if isinstance(error, kafkaio.RecordTooLarge) and error.topic_partition:
        return errors.RecordTooLargeError
    return next(
        (theirs for ours, theirs in _KINDS if isinstance(error, ours)),
        errors.KafkaError,
    )


#: What is returned as it is.
_AS_THEY_ARE = (
    errors.KafkaError,
    errors.ConsumerStoppedError,
    errors.IllegalOperation,
    kafkaio.ConfigurationError,
    kafkaio.ArgumentTypeError,
    kafkaio.ArgumentValueError,
    kafkaio.RegistryError,
)
#: The class of aiokafka for each of kafkaio; the first that fits.
_KINDS: tuple[tuple[type[kafkaio.KafkaError], type[errors.KafkaError]], ...] = (
    (kafkaio.RecordTooLarge, errors.MessageSizeTooLargeError),
    (kafkaio.UnsupportedVersion, errors.IncompatibleBrokerVersion),
    (kafkaio.BufferFull, errors.KafkaTimeoutError),
    (kafkaio.UsageError, errors.IllegalStateError),
    (kafkaio.RequestTimeout, errors.RequestTimedOutError),
    (kafkaio.AuthenticationError, errors.AuthenticationFailedError),
    (kafkaio.NetworkError, errors.KafkaConnectionError),
    (kafkaio.CorruptRecord, errors.CorruptRecordException),
    (kafkaio.ProtocolError, errors.KafkaProtocolError),
    (kafkaio.RebalanceInProgress, errors.CommitFailedError),
    (kafkaio.CommitFailed, errors.CommitFailedError),
    (kafkaio.PartitionLost, errors.CommitFailedError),
)
#: The codes by which a broker tells a producer that another one has its place.
_FENCED_PRODUCER = (47, 90)


def _of_broker(error: kafkaio.BrokerError) -> type[errors.KafkaError]:
    if error.code in _FENCED_PRODUCER:
        return errors.ProducerFenced
    return errors.for_code(error.code)


def made(kind: type[Exception], error: kafkaio.KafkaError) -> Exception:
    """Return an exception of ``kind`` that says what ``error`` says, its cause."""
    if isinstance(error, kafkaio.AuthenticationError):
        # aiokafka logs the refusal and raises that no server could be reached.
        kind = _both(kind, errors.KafkaConnectionError)
    both = _both(kind, type(error))
    found = restored(both, error.args, vars(error))
    if kind is not errors.UnknownError:
        # Whether it can be retried is then what aiokafka says of the class.
        vars(found).pop("retriable", None)
    found.__cause__ = error
    return found


#: The classes that were made: at most one for each two classes.
_MADE: dict[tuple[type[Exception], type[Exception]], type[Exception]] = {}


def _both(kind: type[Exception], other: type[Exception]) -> type[Exception]:
    """Return ``kind`` if it is a subclass of ``other``, else a class that is both."""
    if issubclass(kind, other):
        return kind
    if (found := _MADE.get((kind, other))) is None:
        parts = (*getattr(kind, "_parts", (kind,)), other)
        attributes = {
            "__module__": kind.__module__,
            "__doc__": kind.__doc__,
            "__reduce__": _reduce,
            "_parts": parts,
        }
        found = type(kind.__name__, (kind, other), attributes)
        _MADE[kind, other] = found
    return found


def _reduce(self: Exception) -> tuple[object, ...]:
    # A class that is made here cannot be imported; those that it is made of can.
    parts: tuple[type[Exception], ...] = getattr(type(self), "_parts", ())
    return _restored, (parts, self.args, vars(self))


def _restored(
    parts: tuple[type[Exception], ...],
    args: tuple[object, ...],
    attributes: dict[str, object],
) -> Exception:
    return restored(reduce(_both, parts), args, attributes)
