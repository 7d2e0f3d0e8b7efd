"""Errors and warnings of Spark: one sentence, of bounded length, near the top."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Generator, Iterator
from importlib.util import find_spec

import pytest
from pyspark.sql.types import StructType

import kafkaio.spark
from kafkaio.errors import (
    AdminErrors,
    ArgumentTypeError,
    ConfigurationError,
    KafkaError,
    NetworkError,
    UsageError,
)
from kafkaio.spark import _errors as errors
from kafkaio.spark._errors import (
    DataLost,
    explained,
    listed,
    lost,
    one_of_many,
    plainly,
    plainly_each,
    warn_lost,
)
from kafkaio.spark._options import ReadOptions
from kafkaio.spark._reader import KafkaReader, TaskPartition, read_task, report
from kafkaio.spark._schema import ReadColumn
from kafkaio.spark._source import KafkaSource
from kafkaio.spark._stream import KafkaStreamReader
from kafkaio.types import OffsetRange, TopicPartition

MANY = [
    f"orders-{n} is to be read from 0 to 9, but the partition is gone"
    for n in range(300)
]


def frames(error: BaseException) -> list[str]:
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


def options(**given: str) -> ReadOptions:
    own = {"kafka.bootstrap.servers": "localhost:1", "subscribe": "t", **given}
    return ReadOptions.of(own, is_stream=False)


# ---- one sentence, near the top


def deep(depth: int, error: Exception) -> None:
    if depth:
        deep(depth - 1, error)
    raise error


def test_of_our_errors_one_frame_is_left(caplog: pytest.LogCaptureFixture) -> None:
    failing = plainly(deep)
    error = ConfigurationError("option x is unknown")
    error.add_note("a note")
    with (
        caplog.at_level(logging.DEBUG, "kafkaio.spark"),
        pytest.raises(ConfigurationError) as caught,
    ):
        failing(5, error)
    assert caught.value is error
    assert frames(error)[1:] == ["call"]
    assert error.__notes__ == ["a note"]
    assert "in deep" in caplog.text  # the rest is in the log
    others = RuntimeError("unexpected")
    with pytest.raises(RuntimeError):
        failing(5, others)
    assert frames(others).count("deep") == 6


def test_what_is_yielded_fails_plainly() -> None:
    def items() -> Iterator[int]:
        yield 1
        deep(5, KafkaError("broken"))

    found = plainly_each(items())
    assert next(found) == 1
    with pytest.raises(KafkaError) as caught:
        next(found)
    assert "deep" not in frames(caught.value)


def test_a_reader_that_is_given_up_is_closed() -> None:
    ended = []

    def items() -> Generator[int]:
        try:
            yield 1
        finally:
            ended.append(True)

    found = plainly_each(items())
    next(found)
    found.close()  # type: ignore[attr-defined]
    assert ended == [True]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda source: source.reader(StructType()), "exactly one of subscribe"),
        (
            lambda source: source.streamReader(StructType()).initialOffset(),
            "exactly one of subscribe",
        ),
        (
            lambda source: source.writer(StructType(), overwrite=True),
            "cannot be overwritten",
        ),
        (
            lambda source: source.streamWriter(StructType(), overwrite=False),
            "the column 'value' is missing",
        ),
    ],
)
def test_what_spark_calls_first_fails_plainly(
    call: Callable[[KafkaSource], object], message: str
) -> None:
    source = KafkaSource({"kafka.bootstrap.servers": "localhost:1"})
    with pytest.raises(KafkaError, match=message) as caught:
        call(source)
    lines = traceback.format_exception(caught.value)
    assert frames(caught.value)[-1] == "call"
    assert len(frames(caught.value)) == 3  # this test, the lambda, and one of ours
    assert message in lines[-1]


def test_planning_and_tasks_fail_plainly() -> None:
    quick = {"kafka.request.timeout.ms": "200", "kafka.default.api.timeout.ms": "200"}
    reader = KafkaReader(options(**quick), [ReadColumn("value", "value", "binary")])
    with pytest.raises(KafkaError, match="BrokerNotAvailable") as caught:
        reader.partitions()
    assert frames(caught.value)[1:] == ["call"]
    task = TaskPartition((OffsetRange(TopicPartition("t", 0), 0, 5),), {})
    with pytest.raises(KafkaError, match="reading t-0 from 0 to 5 failed") as caught:
        list(reader.read(task))
    assert frames(caught.value)[1:] == ["plainly_each"]


# ---- of bounded length


def test_many_things_are_listed_as_the_first_few() -> None:
    assert listed([]) == ""
    assert listed("abcde") == "a, b, c, d, e"
    assert listed("abcdefg", "; ") == "a; b; c; d; e; and 2 more"


def test_many_losses_are_one_error() -> None:
    text = str(lost(MANY))
    assert "records may have been lost in 300 cases: orders-0 is to be read" in text
    assert "orders-4 is to be read from 0 to 9" in text
    assert "orders-5" not in text
    assert "and 295 more; they were deleted by retention" in text
    assert len(text) < 1_000
    assert "records may have been lost: orders-0 is" in str(lost(MANY[:1]))
    with pytest.raises(DataLost, match="in 300 cases"):
        report(options(), MANY)


def test_many_losses_are_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    lenient = options(failOnDataLoss="false")
    with caplog.at_level(logging.WARNING, "kafkaio.spark"):
        report(lenient, [])
        assert caplog.records == []
        report(lenient, MANY)
    assert len(caplog.records) == 1
    assert "in 300 cases" in caplog.text
    assert len(caplog.text) < 1_000
    caplog.clear()
    with caplog.at_level(logging.DEBUG, "kafkaio.spark"):
        report(lenient, MANY)
    assert len(caplog.records) == 301  # each partition is named


def test_tasks_of_a_process_warn_once_in_a_while(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = [1_000.0]
    monkeypatch.setattr("time.monotonic", lambda: at[0])
    with caplog.at_level(logging.WARNING, "kafkaio.spark"):
        for sentence in MANY[:50]:
            warn_lost([sentence], {"orders"})
        warn_lost(["payments-0 is gone"], {"payments"})
        at[0] += 60
        warn_lost(MANY[:2], {"orders"})
        warn_lost([], {"orders"})
    first, other, later = (record.getMessage() for record in caplog.records)
    assert "orders-0" in first
    assert "payments-0" in other
    assert later.endswith("(49 more since the last such warning)")


def test_a_commit_that_fails_again_and_again_is_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    given = {
        "kafka.bootstrap.servers": "localhost:1",
        "subscribe": "t",
        "commitGroupId": "g",
        "kafka.request.timeout.ms": "100",
        "kafka.default.api.timeout.ms": "100",
    }
    reader = KafkaStreamReader(ReadOptions.of(given, is_stream=True), [])
    with caplog.at_level(logging.WARNING, "kafkaio.spark"):
        for offset in range(3):
            reader.commit({"t": {"0": offset}})
    (record,) = (each for each in caplog.records if each.name == "kafkaio.spark")
    assert "committing offsets to group 'g' failed" in record.getMessage()


def test_a_task_of_many_ranges_names_a_few() -> None:
    quick = {"kafka.request.timeout.ms": "200", "kafka.default.api.timeout.ms": "200"}
    task = tuple(OffsetRange(TopicPartition("t", n), 0, 5) for n in range(400))
    columns = [ReadColumn("value", "value", "binary")]
    with pytest.raises(KafkaError, match="t-4 from 0 to 5, and 395 more fail"):
        list(read_task(options(**quick), columns, TaskPartition(task, {})))


def test_an_error_of_an_argument_is_explained() -> None:
    with (
        pytest.raises(errors.DataSourceError, match="writing to t failed: ArgumentTy"),
        explained("writing to t"),
    ):
        raise ArgumentTypeError("column 'topic', row 0: a topic cannot be null")


def test_one_error_stands_for_those_of_many_items() -> None:
    passing = NetworkError("away")
    final = UsageError("wrong")
    for given, told in (([passing, final], final), ([passing, passing], passing)):
        with pytest.raises(KafkaError) as caught, one_of_many():
            raise AdminErrors.of("fetch", given, {})
        assert caught.value is told


def test_no_public_name_is_that_of_a_module() -> None:
    """Else it is one or the other, by which of them was loaded first."""
    for name in kafkaio.spark.__all__:
        assert find_spec(f"kafkaio.spark.{name}") is None
