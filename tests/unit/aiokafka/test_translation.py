"""What kafkaio raises becomes an exception of aiokafka, and stays what it was."""

from __future__ import annotations

import copy
import pickle

import pytest

import kafkaio
from kafkaio.aiokafka import errors
from kafkaio.aiokafka._translation import translated, translating

RECORD = kafkaio.Record("t", 0, 1, 2, None, b"v")


def broker_error(code: int, *, retriable: bool = False) -> kafkaio.BrokerError:
    name = kafkaio.ErrorCode(code).name
    return kafkaio.BrokerError("refused", code=code, name=name, retriable=retriable)


TOO_LARGE_TO_READ = kafkaio.RecordTooLarge("large")
TOO_LARGE_TO_READ.topic_partition = kafkaio.TopicPartition("t", 0)

#: Each with the class of aiokafka that it becomes.
CASES: list[tuple[Exception, type[Exception]]] = [
    (kafkaio.ConnectionLost("x"), errors.KafkaConnectionError),
    (kafkaio.BrokerNotAvailable("x"), errors.KafkaConnectionError),
    (kafkaio.AuthenticationError("x"), errors.AuthenticationFailedError),
    (kafkaio.AuthenticationError("x"), errors.KafkaConnectionError),
    (kafkaio.RequestTimeout("x"), errors.RequestTimedOutError),
    (kafkaio.DeliveryTimeout("x"), errors.RequestTimedOutError),
    (kafkaio.KafkaTimeout("x"), errors.KafkaTimeoutError),
    (kafkaio.OutcomeUnknown("x"), errors.KafkaTimeoutError),
    (kafkaio.BufferFull("x"), errors.KafkaTimeoutError),
    (kafkaio.RecordTooLarge("x"), errors.MessageSizeTooLargeError),
    (TOO_LARGE_TO_READ, errors.RecordTooLargeError),
    (kafkaio.UnsupportedVersion("x"), errors.IncompatibleBrokerVersion),
    (kafkaio.UsageError("x"), errors.IllegalStateError),
    (kafkaio.ClosedError("x"), errors.IllegalStateError),
    (kafkaio.CorruptRecord("x"), errors.CorruptRecordException),
    (kafkaio.ProtocolError("x"), errors.KafkaProtocolError),
    (kafkaio.CommitFailed("x"), errors.CommitFailedError),
    (kafkaio.PartitionLost("x"), errors.CommitFailedError),
    (kafkaio.RebalanceInProgress("x"), errors.CommitFailedError),
    (kafkaio.TransactionAborted("x", reason="late"), errors.KafkaError),
    (kafkaio.InternalError("x"), errors.KafkaError),
    (kafkaio.LogTruncated("t", 0, 5, 3), errors.OffsetOutOfRangeError),
    (kafkaio.OffsetOutOfRange("x"), errors.OffsetOutOfRangeError),
    (kafkaio.Fenced("x", code=90, name="PRODUCER_FENCED"), errors.ProducerFenced),
    (kafkaio.Fenced("x", code=47, name="OLD"), errors.ProducerFenced),
    (kafkaio.Fenced("x", code=82, name="FENCED"), errors.UnknownError),
    (
        kafkaio.UnknownTopicOrPartition("x", code=3, name="UNKNOWN"),
        errors.UnknownTopicOrPartitionError,
    ),
    *((broker_error(code), kind) for code, kind in errors.kafka_errors.items()),
]
#: 47 is a producer that is fenced, whatever its class.
CASES = [
    (error, kind) for error, kind in CASES if kind is not errors.InvalidProducerEpoch
]


@pytest.mark.parametrize(("error", "kind"), CASES)
def test_classes(error: Exception, kind: type[Exception]) -> None:
    found = translated(error)
    assert isinstance(found, kind)
    assert isinstance(found, type(error))
    assert isinstance(found, errors.KafkaError)
    assert found.__cause__ is error
    assert found.args == error.args
    assert str(error.args[0]) in str(found)
    assert found.retriable is kind.retriable or kind is errors.KafkaConnectionError


@pytest.mark.parametrize(("error", "kind"), CASES)
def test_pickles_and_copies(error: Exception, kind: type[Exception]) -> None:
    found = translated(error)
    for again in (pickle.loads(pickle.dumps(found)), copy.copy(found)):
        assert type(again) is type(found)
        assert (str(again), vars(again)) == (str(found), vars(found))


@pytest.mark.parametrize("kind", [*errors.kafka_errors.values(), errors.KafkaError])
def test_exceptions_that_a_program_makes(kind: type[errors.KafkaError]) -> None:
    again = pickle.loads(pickle.dumps(kind("text", 1)))
    assert (type(again), again.args) == (kind, ("text", 1))


def test_a_class_of_both_is_made_once() -> None:
    first, second = (translated(kafkaio.ConnectionLost(text)) for text in "ab")
    assert type(first) is type(second)
    assert type(first).__name__ == "KafkaConnectionError"
    with pytest.raises(ConnectionError):
        raise first


@pytest.mark.parametrize(
    "error",
    [
        kafkaio.ConfigurationError("option"),
        kafkaio.ArgumentTypeError("argument"),
        kafkaio.ArgumentValueError("argument"),
        errors.KafkaError("of aiokafka"),
        errors.IllegalOperation("of aiokafka"),
        errors.ConsumerStoppedError("of aiokafka"),
        kafkaio.SerializationError("of kafkaio itself"),
        OSError("of nobody"),
    ],
)
def test_what_stays_as_it_is(error: Exception) -> None:
    assert translated(error) is error
    with pytest.raises(type(error)) as raised, translating():
        raise error
    assert raised.value is error
    assert error.__cause__ is None


def test_what_a_deserializer_raised_is_raised() -> None:
    reason = ValueError("no JSON")
    error = kafkaio.DeserializationError("x", is_key=False, record=RECORD)
    error.__cause__ = reason
    with pytest.raises(ValueError, match="no JSON") as raised, translating():
        raise error
    assert raised.value is reason
    assert reason.__cause__ is None


def test_closed_and_late_objects_are_named_by_the_caller() -> None:
    closed = translated(kafkaio.ClosedError("x"), closed=errors.ConsumerStoppedError)
    assert type(closed) is errors.ConsumerStoppedError
    late = translated(kafkaio.KafkaTimeout("x"), late=errors.KafkaConnectionError)
    assert isinstance(late, errors.KafkaConnectionError)
    assert isinstance(late, TimeoutError)
    # The broker's own limit is not the caller's.
    request = kafkaio.RequestTimeout("x")
    found = translated(request, late=errors.KafkaConnectionError)
    assert isinstance(found, errors.RequestTimedOutError)


def test_the_cause_is_kept_by_the_context() -> None:
    with pytest.raises(errors.KafkaConnectionError) as raised, translating():
        raise kafkaio.ConnectionLost("gone") from OSError("reset")
    assert isinstance(raised.value.__cause__, kafkaio.ConnectionLost)
    assert isinstance(raised.value.__cause__.__cause__, OSError)


def test_row_codes_that_aiokafka_does_not_know() -> None:
    """An error code that aiokafka has no class for is an UnknownError with the code."""
    found = translated(broker_error(100, retriable=True))
    assert isinstance(found, errors.UnknownError)
    assert (found.code, found.name, found.errno) == (100, "UNKNOWN_TOPIC_ID", -1)
    assert found.retriable
