"""Streams through Spark Connect: each ends by itself, or when it is stopped.

The client of Spark Connect and its server are processes of their own. What a stream
does in Python runs in processes that the server starts.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import kafkaio
from kafkaio.spark import foreach_batch_writer, lag
from kafkaio.testing import Broker

#: A stream that does not end within these seconds fails its test.
LIMIT = 120
pytestmark = pytest.mark.timeout(300)


class Pipe:
    """Copies the topic ``in`` to ``out`` of a broker."""

    def __init__(self, spark: SparkSession, servers: str, checkpoint: Path) -> None:
        self.spark = spark
        self.where = {"kafka.bootstrap.servers": servers}
        self.checkpoint = str(checkpoint)

    def read(self, **options: str) -> DataFrame:
        source = {"subscribe": "in", "startingOffsets": "earliest", **options}
        stream = self.spark.readStream.format("kafkaio").schema("value string")
        return stream.options(**self.where, **source).load()

    def into(self, stream: DataFrame, **options: str) -> StreamingQuery:
        """Start a write that reads what there is."""
        sink = {"topic": "out", "checkpointLocation": self.checkpoint, **options}
        write = stream.writeStream.format("kafkaio").options(**self.where, **sink)
        return write.trigger(availableNow=True).start()

    def written(self) -> list[int]:
        """The numbers that are in ``out``, and committed."""
        rows = self.spark.read.format("kafkaio").schema("value string")
        committed = {"subscribe": "out", "kafka.isolation.level": "read_committed"}
        found = rows.options(**self.where, **committed).load().collect()
        return sorted(int(row["value"]) for row in found)


async def fill(servers: str, numbers: range) -> None:
    async with kafkaio.Producer(servers) as producer:
        await producer.send_many("in", [b"%d" % n for n in numbers])


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(topics={"in": 3, "out": 2}) as broker:
        await fill(broker.bootstrap_servers, range(300))
        yield broker


@pytest.fixture
def pipe(remote: SparkSession, broker: Broker, tmp_path: Path) -> Iterator[Pipe]:
    yield Pipe(remote, broker.bootstrap_servers, tmp_path / "checkpoint")
    for query in remote.streams.active:
        query.stop()


def ended(query: StreamingQuery) -> None:
    """Wait until a query ends by itself; raises what it failed of."""
    assert query.awaitTermination(LIMIT), query.status
    assert query.exception() is None


def until(condition: Callable[[], bool], query: StreamingQuery) -> None:
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert query.exception() is None
        assert time.monotonic() < deadline, query.status
        time.sleep(0.1)


async def test_available_now_ends_and_goes_on(pipe: Pipe, broker: Broker) -> None:
    once = {"exactlyOnce": "true"}
    limited = {"maxOffsetsPerTrigger": "100"}

    def run() -> list[int]:
        query = pipe.into(pipe.read(**limited), **once)
        ended(query)
        progress = [json.loads(each.json) for each in query.recentProgress]
        return [sum(lag(each).values()) for each in progress]

    behind = await asyncio.to_thread(run)
    assert len(behind) >= 3
    assert behind[0] == pytest.approx(200, abs=3)
    assert behind[-1] == 0
    await fill(broker.bootstrap_servers, range(300, 400))
    await asyncio.to_thread(run)
    assert await asyncio.to_thread(pipe.written) == list(range(400))


async def test_foreach_batch_writes_once(pipe: Pipe) -> None:
    def run() -> None:
        sink = {"topic": "out", "exactlyOnce": "true", "txnAppId": "connect-streams"}
        write = foreach_batch_writer(
            {**pipe.where, **sink}, select=lambda batch: batch.select("value")
        )
        for name in ("first", "second"):
            # The second begins anew, with the same batches: nothing is written again.
            query = (
                pipe.read(maxOffsetsPerTrigger="100")
                .writeStream.foreachBatch(write)
                .option("checkpointLocation", f"{pipe.checkpoint}-{name}")
                .trigger(availableNow=True)
                .start()
            )
            ended(query)

    await asyncio.to_thread(run)
    assert await asyncio.to_thread(pipe.written) == list(range(300))


async def test_foreach_batch_without_an_id_says_what_it_needs(pipe: Pipe) -> None:
    def run() -> str:
        sink = {"topic": "out", "exactlyOnce": "true"}
        write = foreach_batch_writer({**pipe.where, **sink})
        query = (
            pipe.read()
            .writeStream.foreachBatch(write)
            .option("checkpointLocation", pipe.checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        with pytest.raises(Exception, match="txnAppId"):
            query.awaitTermination(LIMIT)
        return str(query.exception())

    assert "needs txnAppId here" in await asyncio.to_thread(run)


async def test_a_stream_that_runs_is_stopped(pipe: Pipe, broker: Broker) -> None:
    def start() -> StreamingQuery:
        sink = {"topic": "out", "checkpointLocation": pipe.checkpoint}
        write = pipe.read().writeStream.format("kafkaio").options(**pipe.where, **sink)
        query = write.trigger(processingTime="100 milliseconds").start()
        until(lambda: len(pipe.written()) == 300, query)
        return query

    query = await asyncio.to_thread(start)
    await fill(broker.bootstrap_servers, range(300, 350))

    def stop() -> None:
        until(lambda: len(pipe.written()) == 350, query)
        query.stop()
        assert query.awaitTermination(LIMIT)
        assert not query.isActive

    await asyncio.to_thread(stop)
    assert await asyncio.to_thread(pipe.written) == list(range(350))
