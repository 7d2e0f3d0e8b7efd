"""What Spark's Python processes load, hold open, and leave behind when they die."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import psutil
import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import DataFrame, Row, SparkSession

from kafkaio import Producer
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory

T = TypeVar("T")

#: A name of ours, and the few that every `import kafkaio` loads.
LIGHT = {
    *("pyspark_kafkaio", "kafkaio.spark", "kafkaio.spark._source"),
    "kafkaio.spark._errors",
    *("kafkaio", "kafkaio._version", "kafkaio.errors"),
    *("kafkaio._dataclass", "kafkaio._public", "kafkaio.types"),
}
MOST_CONNECTIONS = 8
#: Enough that a reader is not done before its rows are taken: more than sockets hold.
RECORDS, SIZE = 40_000, 1_000
LIMIT_SECONDS = 120.0


def fill(servers: str, topic: str, records: int, size: int = 8) -> None:
    async def send() -> None:
        async with Producer(servers, batch_size=1 << 18) as producer:
            values = pa.array([b"x" * size] * records, pa.binary())
            await producer.send_table(topic, pa.table({"value": values}))

    asyncio.run(send())


def until(condition: Callable[[], T]) -> T:
    limit = time.monotonic() + LIMIT_SECONDS
    while not (value := condition()):
        assert time.monotonic() < limit, "the condition did not come true"
        time.sleep(0.02)
    return value


def pythons() -> list[psutil.Process]:
    """The Python processes of Spark, below its JVM."""
    below = psutil.Process().children(recursive=True)
    return [process for process in below if is_of_spark(process)]


def is_of_spark(process: psutil.Process) -> bool:
    try:
        words = process.cmdline()
    except psutil.NoSuchProcess:
        return False
    return "-m" in words and any(word.startswith("pyspark.") for word in words)


def connections(process: psutil.Process, servers: str) -> int:
    """The number of connections that a process has to brokers."""
    ports = {int(server.rpartition(":")[2]) for server in servers.split(",")}
    try:
        found = process.net_connections("tcp")
    except psutil.NoSuchProcess:
        return 0
    return sum(bool(each.raddr) and each.raddr.port in ports for each in found)


def own_memory(process: psutil.Process) -> int:
    """The bytes of memory that a process shares with no other."""
    try:
        used: int = process.memory_full_info().uss
    except psutil.NoSuchProcess:
        return 0  # Spark ends workers that had nothing to do for a minute
    return used


def test_the_module_that_spark_finds_is_light() -> None:
    """Spark loads it whenever it looks for a format of any name."""
    code = (
        "import sys, pyspark.sql.datasource; known = set(sys.modules)\n"
        "import pyspark_kafkaio\n"
        "print(*(set(sys.modules) - known))\n"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert set(out.stdout.split()) <= LIGHT


@pytest.mark.nightly
@pytest.mark.parametrize(
    "batches", [15, pytest.param(1000, marks=pytest.mark.timeout(3600))]
)
def test_micro_batches_share_connections_and_memory(
    spark: SparkSession,
    real_kafka: Kafka,
    topic: TopicFactory,
    tmp_path: Path,
    batches: int,
) -> None:
    servers, name = real_kafka.bootstrap_servers, topic(partitions=2)
    fill(servers, name, 10 * batches)
    most: list[int] = []
    memory: list[float] = []
    rows: list[int] = []

    def look(batch: DataFrame, _: int) -> None:
        rows.append(batch.count())
        found = pythons()
        most.append(max(connections(process, servers) for process in found))
        memory.append(sum(map(own_memory, found)) / 2**20)

    read = spark.readStream.format("kafkaio").options(
        **{"kafka.bootstrap.servers": servers, "subscribe": name},
        startingOffsets="earliest",
        maxOffsetsPerTrigger="10",
    )
    write = read.load().writeStream.foreachBatch(look).trigger(availableNow=True)
    write.option("checkpointLocation", str(tmp_path / "c")).start().awaitTermination()
    assert sum(rows) == 10 * batches
    assert len(rows) >= batches
    assert 0 < max(most) <= MOST_CONNECTIONS
    # Until then all processes have come up, and have done all that there is.
    begun = len(memory) // 5
    growth = max(memory[-begun:]) - max(memory[begun : 2 * begun])
    assert growth < 30, memory


class Gate:
    """Stops a query after its first rows, until a test says so.

    Args:
        directory: where its files are.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def count(self, rows: DataFrame) -> int:
        """Count rows; each task that comes first to the gate stops there."""
        directory = str(self.directory)

        def counted(found: Iterator[Row]) -> Iterator[int]:
            context = TaskContext.get()
            assert context is not None
            (Path(directory) / f"attempt-{context.attemptNumber()}").touch()
            total = 0
            for _ in found:
                total += 1
                if total > 1:
                    continue
                (Path(directory) / "came").touch()
                while not (Path(directory) / "open").exists():
                    time.sleep(0.02)
            yield total

        totals: list[int] = rows.select("value").rdd.mapPartitions(counted).collect()
        return sum(totals)

    def wait(self, query: Future[int]) -> None:
        """Wait until rows have come."""
        until(lambda: (self.directory / "came").exists() or query.done())
        assert not query.done()

    def open(self) -> None:
        (self.directory / "open").touch()

    @property
    def attempts(self) -> set[str]:
        return {path.name for path in self.directory.glob("attempt-*")}


def reading(spark: SparkSession, servers: str, topic: str, **more: str) -> DataFrame:
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic, **more}
    return spark.read.format("kafkaio").options(**options).load()


def test_a_worker_that_is_killed_while_it_reads(
    spark: SparkSession, real_kafka: Kafka, topic: TopicFactory, tmp_path: Path
) -> None:
    servers, name = real_kafka.bootstrap_servers, topic()
    fill(servers, name, RECORDS, SIZE)
    gate = Gate(tmp_path)
    with ThreadPoolExecutor(1) as threads:
        query = threads.submit(gate.count, reading(spark, servers, name))
        gate.wait(query)
        readers = [p for p in pythons() if connections(p, servers)]
        assert readers
        for reader in readers:
            reader.kill()
        gate.open()
        assert query.result() == RECORDS
    assert len(gate.attempts) == 2
    assert reading(spark, servers, name).count() == RECORDS


def failure(call: Callable[[], object]) -> str:
    """The line of an error that says what kafkaio has found."""
    with pytest.raises(Exception, match="DataSourceError") as caught:
        call()
    lines = [
        line for line in str(caught.value).splitlines() if "DataSourceError" in line
    ]
    return lines[-1]


def is_idle(spark: SparkSession) -> bool:
    status = spark.sparkContext.statusTracker()
    return not status.getActiveJobsIds() and not status.getActiveStageIds()


def test_no_broker(spark: SparkSession) -> None:
    quick = {"kafka.request.timeout.ms": "300", "fetchOffset.numRetries": "0"}
    found = failure(reading(spark, "127.0.0.1:1", "t", **quick).count)
    assert "planning" in found
    assert "127.0.0.1:1" in found
    assert "kafka.bootstrap.servers" in found
    assert is_idle(spark)


def test_no_topic(spark: SparkSession, real_kafka: Kafka) -> None:
    found = failure(reading(spark, real_kafka.bootstrap_servers, "no-such").count)
    assert "planning" in found
    assert "no-such" in found
    assert "check the topic's name" in found
    assert is_idle(spark)


def test_a_broker_that_is_lost_while_a_task_reads(
    spark: SparkSession, tmp_path: Path
) -> None:
    quick = {"kafka.request.timeout.ms": "500", "kafka.default.api.timeout.ms": "500"}
    gate = Gate(tmp_path)
    with Kafka() as kafka, ThreadPoolExecutor(1) as threads:
        kafka.create_topic_blocking("t")
        fill(kafka.bootstrap_servers, "t", RECORDS, SIZE)
        rows = reading(spark, kafka.bootstrap_servers, "t", **quick)
        query = threads.submit(gate.count, rows)
        gate.wait(query)
        kafka.engine.kill(1)
        gate.open()
        found = failure(query.result)
    assert "task 0" in found
    assert "t-0" in found
    assert len(gate.attempts) == 4
    until(lambda: is_idle(spark))
