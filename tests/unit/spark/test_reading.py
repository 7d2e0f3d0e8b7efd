"""Lookups, tasks and streams against the embedded broker, without a Spark session."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest
from pyspark import cloudpickle
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadMaxRows,
    ReadMinRows,
)
from pyspark.sql.types import StructType

from kafkaio import Admin, Client, NewTopic, Producer, TopicPartition
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.spark import _runtime as runtime, lag
from kafkaio.spark._errors import DataLost, DataSourceError
from kafkaio.spark._lookup import PlanLookup
from kafkaio.spark._options import ReadOptions
from kafkaio.spark._reader import KafkaReader, TaskPartition, read_task
from kafkaio.spark._schema import ReadColumn, default_schema
from kafkaio.spark._source import KafkaSource
from kafkaio.spark._stream import KafkaStreamReader
from kafkaio.testing import Broker
from kafkaio.testing._broker.faults import error
from kafkaio.types import OffsetRange
from tests.unit.spark.conftest import Serving

COLUMNS = [
    ReadColumn("offset", "offset", "bigint"),
    ReadColumn("value", "value", "string"),
]
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def servers() -> Iterator[str]:
    """A broker in a thread, with ten records in each of two partitions."""
    ready, ended = threading.Event(), asyncio.Event()
    found: list[str] = []
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        async with Broker(topics={"t": 2}) as broker:
            found.append(broker.bootstrap_servers)
            async with Producer(found[0]) as producer:
                for n in range(20):
                    await producer.send("t", b"%d" % n, partition=n % 2)
            ready.set()
            await ended.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert ready.wait(10)
    yield found[0]
    runtime._home().end()
    loop.call_soon_threadsafe(ended.set)
    thread.join(10)
    loop.close()


def options(servers: str, *, is_stream: bool = False, **given: Any) -> ReadOptions:
    own = {"kafka.bootstrap.servers": servers, "subscribe": "t"}
    return ReadOptions.of({**own, **given}, is_stream=is_stream)


def stream(servers: str, **given: str) -> KafkaStreamReader:
    return KafkaStreamReader(options(servers, is_stream=True, **given), COLUMNS)


def task_of(*ranges: OffsetRange, **topic_ids: UUID) -> TaskPartition:
    return TaskPartition(ranges, topic_ids)


def only_offsets(offsets: Mapping[str, Mapping[str, int]]) -> dict[str, object]:
    """Offsets without the ids of topics."""
    return {topic: numbers for topic, numbers in offsets.items() if numbers}


def values(batches: Iterator[object]) -> list[str]:
    return [value for batch in batches for value in batch.to_pydict()["value"]]  # type: ignore[attr-defined]


def test_a_batch(servers: str) -> None:
    reader: KafkaReader = cloudpickle.loads(
        cloudpickle.dumps(KafkaReader(options(servers), COLUMNS))
    )
    tasks = cloudpickle.loads(cloudpickle.dumps(reader.partitions()))
    assert [task.task for task in tasks] == [
        (OffsetRange(T0, 0, 10),),
        (OffsetRange(T1, 0, 10),),
    ]
    assert repr(tasks[0]) == "TaskPartition(t-0[0, 10))"
    assert values(reader.read(tasks[1])) == [str(n) for n in range(1, 20, 2)]
    assert list(reader.read(InputPartition(None))) == []


def test_a_task_that_is_not_read_to_its_end(servers: str) -> None:
    task = task_of(OffsetRange(T0, 0, 10))
    batches = read_task(options(servers), COLUMNS, task)
    next(batches)
    batches.close()  # type: ignore[attr-defined]


def test_a_task_whose_records_are_gone(servers: str) -> None:
    task = task_of(OffsetRange(T0, 30, 35))
    with pytest.raises(DataSourceError) as caught:
        list(read_task(options(servers), COLUMNS, task))
    text = str(caught.value)
    assert "reading t-0 from 30 to 35 failed: OffsetOutOfRange" in text
    assert "set failOnDataLoss=false" in text
    lenient = options(servers, failOnDataLoss="false")
    assert list(read_task(lenient, COLUMNS, task)) == []
    both = task_of(OffsetRange(T0, 8, 35), OffsetRange(T1, 9, 10))
    assert values(read_task(lenient, COLUMNS, both)) == ["16", "18", "19"]


def test_an_error_names_the_first_ranges_of_a_task(servers: str) -> None:
    task = task_of(*(OffsetRange(T0, n, n + 1) for n in range(30, 40)))
    with pytest.raises(DataSourceError) as caught:
        list(read_task(options(servers), COLUMNS, task))
    text = str(caught.value)
    assert "t-0 from 34 to 35, and 5 more failed: OffsetOutOfRange" in text


def test_a_batch_of_what_the_log_does_not_have(
    servers: str, caplog: pytest.LogCaptureFixture
) -> None:
    bounds: dict[str, Any] = {"endingOffsets": '{"t":{"0":11,"1":4}}'}
    with pytest.raises(DataLost, match="t-0 is to be read from 0 to 11, but its log"):
        KafkaReader(options(servers, **bounds), COLUMNS).partitions()
    lenient = options(servers, **bounds, failOnDataLoss="false")
    with caplog.at_level(logging.WARNING, "kafkaio.spark"):
        found = KafkaReader(lenient, COLUMNS).partitions()
    assert [task.task[0].end for task in found] == [10, 4]
    assert "records may have been lost: t-0" in caplog.text


def test_a_partition_that_does_not_exist(servers: str) -> None:
    given = {"kafka.bootstrap.servers": servers, "assign": '{"t":[0,5]}'}
    reader = KafkaReader(ReadOptions.of(given, is_stream=False), COLUMNS)
    with pytest.raises(DataSourceError, match="no such partition: t-5"):
        reader.partitions()


def test_micro_batches(servers: str) -> None:
    reader = stream(servers, startingOffsets="earliest", maxOffsetsPerTrigger="6")
    assert reader.reportLatestOffset() is None
    assert reader.getDefaultReadLimit() == ReadMaxRows(6)
    start = reader.initialOffset()
    assert start == reader.initialOffset()
    assert only_offsets(start) == {"t": {"0": 0, "1": 0}}
    end = reader.latestOffset(start, ReadMaxRows(6))
    assert only_offsets(end) == {"t": {"0": 3, "1": 3}}
    assert start.keys() == end.keys()
    everything = reader.latestOffset(start, ReadAllAvailable())
    assert only_offsets(everything) == {"t": {"0": 10, "1": 10}}
    assert reader.reportLatestOffset() == {"t": {"0": 10, "1": 10}}
    (task,) = reader.partitions(start, end)
    assert task.task == (OffsetRange(T0, 0, 3), OffsetRange(T1, 0, 3))
    # The same plan in another process.
    again = stream(servers, maxOffsetsPerTrigger="6").partitions(start, end)
    assert [each.task for each in again] == [task.task]
    assert values(reader.read(task)) == ["0", "2", "4", "1", "3", "5"]
    assert reader.partitions(end, end) == []
    reader.commit(end)


def test_a_new_partition_is_read_from_its_first_offset(servers: str) -> None:
    reader = stream(servers)
    end = reader.latestOffset({"t": {"0": 4}}, ReadMaxRows(8))
    assert only_offsets(end) == {"t": {"0": 7, "1": 5}}
    (task,) = reader.partitions({"t": {"0": 4}}, end)
    assert task.task == (OffsetRange(T0, 4, 7), OffsetRange(T1, 0, 5))


def test_a_micro_batch_waits(servers: str) -> None:
    reader = stream(servers, minOffsetsPerTrigger="100")
    assert reader.getDefaultReadLimit() == ReadMinRows(100)
    start = {"t": {"0": 0, "1": 0}}
    everything = {"t": {"0": 10, "1": 10}}
    first = reader.latestOffset(start, ReadMinRows(100))
    assert only_offsets(first) == everything
    assert reader.latestOffset(start, ReadMinRows(100)) == start
    assert reader.latestOffset(start, ReadAllAvailable()) == first
    reader.prepareForTriggerAvailableNow()
    assert reader.latestOffset(start, ReadMinRows(100)) == first


def test_what_available_now_reads_is_settled_once(servers: str) -> None:
    reader = stream(servers)
    assert reader.getDefaultReadLimit() == ReadAllAvailable()
    reader.prepareForTriggerAvailableNow()
    start = reader.initialOffset()
    assert reader.latestOffset(start, ReadAllAvailable()) == start

    async def more() -> None:
        async with Producer(servers) as producer:
            await producer.send("t", b"new", partition=0)

    asyncio.run(more())
    assert reader.latestOffset(start, ReadAllAvailable()) == start


def test_offsets_that_went_back(servers: str) -> None:
    reader = stream(servers, **{"fetchOffset.retryIntervalMs": "1"})
    start = {"t": {"0": 99, "1": 0}}
    end = reader.latestOffset(start, ReadAllAvailable())
    assert only_offsets(end) == {"t": {"0": 10, "1": 10}}
    with pytest.raises(DataLost, match="the end of t-0 went back from 99 to 10"):
        reader.partitions(start, end)


def make_again(servers: str, counts: Mapping[int, int]) -> UUID:
    """Delete the topic, make it again with so many records; returns its id."""

    async def work() -> UUID:
        async with Admin(servers) as admin, Producer(servers) as producer:
            await admin.delete_topics(["t"])
            await admin.create_topics([NewTopic("t", len(counts), 1)])
            for partition, count in counts.items():
                for n in range(count):
                    await producer.send("t", b"new %d" % n, partition=partition)
        async with Client(servers) as client:
            topic_id = (await client.find_topics("t"))["t"].topic_id
            assert topic_id is not None
            return topic_id

    return asyncio.run(work())


#: What the new topic has; more than the old one had.
NEW = {0: 12, 1: 11}
#: Looks again for ids that are others without waiting long.
QUICK = {"fetchOffset.retryIntervalMs": "1"}
LENIENT = {**QUICK, "failOnDataLoss": "false"}
REMADE = "topic 't' was deleted and made again: its id is"


def test_a_longer_topic_that_was_made_again_is_not_read_on(servers: str) -> None:
    reader = stream(servers, startingOffsets="earliest", **QUICK)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    make_again(servers, NEW)
    # The query goes on, or another process goes on from its checkpoint.
    for each in (reader, stream(servers, **QUICK)):
        with pytest.raises(DataLost, match=REMADE):
            each.latestOffset(end, ReadAllAvailable())
    # The micro-batch that was planned before is repeated.
    with pytest.raises(DataLost, match=REMADE):
        stream(servers, **QUICK).partitions(start, end)


def test_a_topic_that_was_made_again_is_read_from_its_beginning(
    servers: str, caplog: pytest.LogCaptureFixture
) -> None:
    reader = stream(servers, startingOffsets="earliest", **LENIENT)
    start = reader.initialOffset()
    middle = reader.latestOffset(start, ReadMaxRows(8))
    make_again(servers, NEW)
    with caplog.at_level(logging.WARNING, "kafkaio.spark"):
        # What was planned of the old one is left out.
        assert stream(servers, **LENIENT).partitions(start, middle) == []
        assert caplog.text.count(REMADE) == 1
        caplog.clear()
        half = reader.latestOffset(middle, ReadMaxRows(10))
        end = reader.latestOffset(half, ReadAllAvailable())
        assert caplog.text == ""
        tasks = [*reader.partitions(middle, half), *reader.partitions(half, end)]
        assert caplog.text.count(REMADE) == 1
    assert sum(each.end - each.start for t in tasks for each in t.task) == 23
    found = [value for task in tasks for value in values(reader.read(task))]
    assert sorted(found) == sorted(f"new {n}" for c in NEW.values() for n in range(c))
    assert reader.latestOffset(end, ReadAllAvailable()) == end


def test_an_end_without_ids_is_compared_with_its_start(servers: str) -> None:
    """Spark's own connector has planned the micro-batch that is repeated."""
    reader = stream(servers, startingOffsets="earliest", **QUICK)
    start = reader.initialOffset()
    end = {"t": {"0": 4, "1": 4}}
    assert len(reader.partitions(start, end)) == 1
    assert len(reader.partitions(only_offsets(start), end)) == 1  # type: ignore[arg-type]
    make_again(servers, NEW)
    with pytest.raises(DataLost, match=REMADE):
        reader.partitions(start, end)
    # Without ids nothing tells it.
    assert len(reader.partitions(only_offsets(start), end)) == 1  # type: ignore[arg-type]


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_task_does_not_read_a_topic_made_again_since_it_was_planned(
    servers: str, caplog: pytest.LogCaptureFixture, *, is_stream: bool
) -> None:
    if is_stream:
        planner = stream(servers, startingOffsets="earliest")
        start = planner.initialOffset()
        end = planner.latestOffset(start, ReadAllAvailable())
        [task] = planner.partitions(start, end)
    else:
        task, _ = KafkaReader(options(servers), COLUMNS).partitions()
    # A worker that knows the old topic.
    assert values(read_task(options(servers), COLUMNS, task))
    new_id = make_again(servers, NEW)
    with pytest.raises(DataLost, match="'t' was deleted and created again"):
        list(read_task(options(servers), COLUMNS, task))
    lenient = options(servers, is_stream=is_stream, **LENIENT)
    with caplog.at_level(logging.WARNING, "kafkaio.spark"):
        assert list(read_task(lenient, COLUMNS, task)) == []
    assert REMADE in caplog.text
    [after, _] = KafkaReader(options(servers), COLUMNS).partitions()
    assert after.topic_ids == {"t": new_id}
    assert len(values(read_task(options(servers), COLUMNS, after))) == 12


def test_a_task_whose_ids_are_unknown_reads_what_there_is(servers: str) -> None:
    task = task_of(OffsetRange(T0, 0, 3))
    assert len(values(read_task(options(servers), COLUMNS, task))) == 3
    make_again(servers, NEW)
    assert values(read_task(options(servers), COLUMNS, task)) == [
        "new 0",
        "new 1",
        "new 2",
    ]
    with pytest.raises(DataLost):
        list(read_task(options(servers), COLUMNS, task_of(*task.task, t=uuid4())))


def test_records_that_are_lost_in_the_middle_of_a_task(servers: str) -> None:
    """The ranges before and after are read once, whatever has come of them."""
    task = task_of(OffsetRange(T0, 2, 35), OffsetRange(T1, 5, 8))
    lenient = options(servers, failOnDataLoss="false")
    assert values(read_task(lenient, COLUMNS, task)) == [
        *[str(2 * n) for n in range(2, 10)],
        *[str(2 * n + 1) for n in range(5, 8)],
    ]


def test_a_commit_for_lag_tools(servers: str) -> None:
    reader = stream(servers, commitGroupId="g")
    reader.commit({"t": {"0": 3, "1": 4}})

    async def committed() -> Mapping[TopicPartition, object]:
        async with Client(servers) as client:
            return await client.committed("g", [T0, T1])

    found = asyncio.run(committed())
    assert {tp: each.offset for tp, each in found.items()} == {T0: 3, T1: 4}  # type: ignore[attr-defined]


def test_a_commit_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    given = {
        "kafka.request.timeout.ms": "200",
        "fetchOffset.numRetries": "1",
        "fetchOffset.retryIntervalMs": "1",
        "commitGroupId": "g",
    }
    reader = stream("127.0.0.1:1", **given)
    with caplog.at_level(logging.WARNING, "kafkaio.spark"):
        reader.commit({"t": {"0": 3}})
    assert "committing offsets to group 'g' failed: BrokerNotAvailable" in caplog.text
    runtime._home().end()


def test_a_commit_that_fails_for_several_partitions_is_logged(
    serving: Serving, caplog: pytest.LogCaptureFixture
) -> None:
    given = serving(OffsetCommit=error(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    reader = stream(given["kafka.bootstrap.servers"], commitGroupId="g")
    with caplog.at_level(logging.WARNING, "kafkaio.spark"):
        reader.commit({"t": {"0": 5, "1": 5}})
    assert "committing offsets to group 'g' failed: Authorization" in caplog.text


def test_offsets_of_a_deleted_topic_are_not_committed(servers: str) -> None:
    stream(servers, commitGroupId="g").commit({"gone": {"0": 3}, "t": {"0": 5}})


def test_of_many_topics_one_is_missing(servers: str) -> None:
    there, gone = [T0, T1], [TopicPartition("gone", 0), TopicPartition("t", 7)]
    earliest, latest = PlanLookup(options(servers)).ends([*there, *gone], {})
    assert earliest == {T0: 0, T1: 0}
    assert latest == {T0: 10, T1: 10}


def test_the_source_makes_readers(servers: str) -> None:
    given = {"kafka.bootstrap.servers": servers, "subscribe": "t"}
    source = KafkaSource(given)
    assert source.name() == "kafkaio"
    assert source.schema() == default_schema(includes_headers=False)
    schema = StructType().add("value", "string").add("OFFSET", "long")
    assert isinstance(source.reader(schema), KafkaReader)
    assert isinstance(source.streamReader(schema), KafkaStreamReader)
    (first, _) = source.reader(schema).partitions()
    assert isinstance(first, TaskPartition)


def test_lag_of_what_spark_reports() -> None:
    ours = SimpleNamespace(endOffset='{"t":{"0":3}}', latestOffset='{"t":{"0":5}}')
    other = SimpleNamespace(endOffset='{"logOffset":3}', latestOffset=None)
    progress = SimpleNamespace(sources=[ours, other])
    assert lag(progress) == {T0: 2}
    end = {"t": {"0": 3}, f"kafkaio.topic-id:t:{uuid4()}": {}}
    rows = [{"endOffset": end, "latestOffset": {"t": {"0": 9}}}]
    assert lag({"sources": rows}) == {T0: 6}
    assert lag(None) == {}
