"""Lookups, tasks and streams against the embedded broker, without a Spark session."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadMaxRows,
    ReadMinRows,
)
from pyspark.sql.types import StructType

from kafkaio import Client, Producer, TopicPartition
from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.spark import lag, runtime
from kafkaio.spark.errors import DataLost, DataSourceError
from kafkaio.spark.lookup import Lookup
from kafkaio.spark.options import ReadOptions
from kafkaio.spark.reader import KafkaReader, TaskPartition, read_task
from kafkaio.spark.schema import Column, default_schema
from kafkaio.spark.source import KafkaSource
from kafkaio.spark.stream import KafkaStreamReader
from kafkaio.testing import Broker
from kafkaio.testing.broker.faults import error
from kafkaio.types import OffsetRange

COLUMNS = [Column("offset", "offset", "bigint"), Column("value", "value", "string")]
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
    batches = read_task(options(servers), COLUMNS, (OffsetRange(T0, 0, 10),))
    next(batches)
    batches.close()  # type: ignore[attr-defined]


def test_a_task_whose_records_are_gone(servers: str) -> None:
    task = (OffsetRange(T0, 30, 35),)
    with pytest.raises(DataSourceError) as caught:
        list(read_task(options(servers), COLUMNS, task))
    text = str(caught.value)
    assert "reading t-0 from 30 to 35 failed: OffsetOutOfRange" in text
    assert "set failOnDataLoss=false" in text
    lenient = options(servers, failOnDataLoss="false")
    assert list(read_task(lenient, COLUMNS, task)) == []
    both = (OffsetRange(T0, 8, 35), OffsetRange(T1, 9, 10))
    assert values(read_task(lenient, COLUMNS, both)) == ["16", "18", "19"]


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
    assert start == reader.initialOffset() == {"t": {"0": 0, "1": 0}}
    end = reader.latestOffset(start, ReadMaxRows(6))
    assert end == {"t": {"0": 3, "1": 3}}
    assert reader.latestOffset(start, ReadAllAvailable()) == {"t": {"0": 10, "1": 10}}
    assert reader.reportLatestOffset() == {"t": {"0": 10, "1": 10}}
    (task,) = reader.partitions(start, end)
    assert task.task == (OffsetRange(T0, 0, 3), OffsetRange(T1, 0, 3))
    # The same plan in another process.
    again = stream(servers, maxOffsetsPerTrigger="6").partitions(start, end)
    assert [each.task for each in again] == [task.task]
    assert values(reader.read(task)) == ["0", "2", "4", "1", "3", "5"]
    assert reader.partitions(end, end) == []
    reader.commit(end)
    # What is written into checkpoints has no spaces in this process from now on.
    assert json.dumps(end) == '{"t":{"0":3,"1":3}}'
    json._default_encoder.item_separator = ", "  # type: ignore[attr-defined]
    json._default_encoder.key_separator = ": "  # type: ignore[attr-defined]


def test_a_new_partition_is_read_from_its_first_offset(servers: str) -> None:
    reader = stream(servers)
    end = reader.latestOffset({"t": {"0": 4}}, ReadMaxRows(8))
    assert end == {"t": {"0": 7, "1": 5}}
    (task,) = reader.partitions({"t": {"0": 4}}, end)
    assert task.task == (OffsetRange(T0, 4, 7), OffsetRange(T1, 0, 5))


def test_a_micro_batch_waits(servers: str) -> None:
    reader = stream(servers, minOffsetsPerTrigger="100")
    assert reader.getDefaultReadLimit() == ReadMinRows(100)
    start = {"t": {"0": 0, "1": 0}}
    everything = {"t": {"0": 10, "1": 10}}
    assert reader.latestOffset(start, ReadMinRows(100)) == everything
    assert reader.latestOffset(start, ReadMinRows(100)) == start
    assert reader.latestOffset(start, ReadAllAvailable()) == everything
    reader.prepareForTriggerAvailableNow()
    assert reader.latestOffset(start, ReadMinRows(100)) == everything


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
    assert end == {"t": {"0": 10, "1": 10}}
    with pytest.raises(DataLost, match="the end of t-0 went back from 99 to 10"):
        reader.partitions(start, end)


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
    serving: Callable[..., dict[str, str]], caplog: pytest.LogCaptureFixture
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
    earliest, latest = Lookup(options(servers)).ends([*there, *gone])
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
    rows = [{"endOffset": {"t": {"0": 3}}, "latestOffset": {"t": {"0": 9}}}]
    assert lag({"sources": rows}) == {T0: 6}
    assert lag(None) == {}
