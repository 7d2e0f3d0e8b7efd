"""Topics to read, and rows as Spark's own connector and kafkaio read them."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

from kafkaio import Client, Controller, Leader, Producer, TopicPartition
from kafkaio.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kafkaio.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kafkaio.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkaio.testing.kafka import Kafka

T = TypeVar("T")
Rows = list[tuple[object, ...]]

#: Timestamps of records that tests write: one second apart, from the day before on, so
#: that each process of a test run has the same. Those older than a week are deleted by
#: the default retention.
FIRST_TIMESTAMP = (int(time.time()) // 86_400 - 1) * 86_400_000
SOURCES = ("kafka", "kafkaio")
#: What a query raises: the driver's errors, and what the JVM raised.
FAILURES = (PySparkException, Py4JJavaError)


class Reading:
    """Topics of a Kafka, read by both sources of a session."""

    def __init__(self, spark: SparkSession, kafka: Kafka) -> None:
        self.spark = spark
        self.kafka = kafka
        self.servers = {"kafka.bootstrap.servers": kafka.bootstrap_servers}

    # ---- reading -------------------------------------------------------------------

    def load(self, source: str, options: Mapping[str, str]) -> DataFrame:
        """A batch read."""
        return self.spark.read.format(source).options(**self.servers, **options).load()

    def rows(self, source: str, options: Mapping[str, str]) -> Rows:
        """What a batch read gives, by topic, partition and offset."""
        found = [tuple(row) for row in self.load(source, options).collect()]
        return sorted(found, key=lambda row: row[2:5])

    def digests(self, source: str, options: Mapping[str, str]) -> Rows:
        """Number of rows, ends, and checksums of a batch read, by partition.

        The checksum of a column is a sum of hashes of its values with their offsets.
        """
        sums = [
            f"sum(cast(xxhash64(offset, {column}) as decimal(38, 0)))"
            for column in ("key", "value", "headers", "timestamp", "timestampType")
        ]
        frame = self.load(source, {**options, "includeHeaders": "true"})
        found = frame.groupBy("topic", "partition").agg(
            *map(
                expr,
                (
                    "count(*)",
                    "min(offset)",
                    "max(offset)",
                    "count(key)",
                    "count(value)",
                ),
            ),
            *map(expr, ("count(headers)", *sums)),
        )
        return sorted(tuple(row) for row in found.collect())

    def both(self, **options: str) -> Rows:
        """The rows that both sources read; fails if they differ."""
        theirs, ours = (self.rows(source, options) for source in SOURCES)
        assert ours == theirs
        return ours

    def both_refuse(self, **options: str) -> str:
        """The error of kafkaio, where Spark's own connector fails as well."""
        errors = []
        for source in SOURCES:
            try:
                rows = self.rows(source, options)
            except FAILURES as error:
                errors.append(str(error))
            else:
                raise AssertionError(f"{source} read {len(rows)} rows")
        return errors[1]

    def error(self, **options: str) -> str:
        """The error of kafkaio."""
        try:
            self.rows("kafkaio", options)
        except FAILURES as error:
            return str(error)
        raise AssertionError("nothing was raised")

    # ---- writing -------------------------------------------------------------------

    def with_client(self, call: Callable[[Client], Awaitable[T]]) -> T:
        """Run a coroutine with a client."""

        async def work() -> T:
            async with Client(self.kafka.bootstrap_servers) as client:
                return await call(client)

        return asyncio.run(work())

    def fill(
        self, topic: str, count: int, *, partitions: int = 1, first: int = 0
    ) -> None:
        """Write records with all that a record can have or lack.

        They go to the partitions in turn, a second apart.
        """

        async def work() -> None:
            async with Producer(self.kafka.bootstrap_servers) as producer:
                for n in range(first, first + count):
                    _ = await producer.enqueue(
                        topic,
                        None if n % 7 == 6 else f"value {n}".encode(),
                        key=None if n % 3 == 2 else f"key {n}".encode(),
                        headers=[("a", b"1"), ("b", None)] if n % 5 == 0 else (),
                        timestamp=FIRST_TIMESTAMP + n * 1000,
                        partition=n % partitions,
                    )
                await producer.flush()

        asyncio.run(work())

    def fill_with_transactions(self, topic: str, count: int, partitions: int) -> None:
        """Write transactions of three records, of which every third is aborted."""

        async def work() -> None:
            async with Producer(
                self.kafka.bootstrap_servers, transactional_id=topic
            ) as producer:
                for n in range(count):
                    transaction = producer.transaction()
                    await transaction.begin()
                    for k in range(3):
                        await transaction.send(
                            topic, b"%d-%d" % (n, k), partition=(n + k) % partitions
                        )
                    if n % 3 == 1:
                        await transaction.abort()
                    else:
                        await transaction.commit()

        asyncio.run(work())

    def fill_and_compact(self, topic: str, count: int) -> None:
        """Write records of four keys in segments of their own; return when compacted.

        Every eighth record is a tombstone.

        The topic needs ``cleanup.policy=compact`` and `COMPACTED`.
        """

        async def work(client: Client) -> None:
            await client.request(
                IncrementalAlterConfigsRequest(
                    resources=[
                        AlterConfigsResource(
                            resource_type=4,  # all brokers
                            configs=[
                                AlterableConfig(
                                    name="log.cleaner.backoff.ms", value="50"
                                )
                            ],
                        )
                    ]
                ),
                Controller,
            )
            async with Producer(client) as producer:
                for n in range(count):
                    await producer.send(
                        topic,
                        None if n % 8 == 7 else b"value %d" % n,
                        key=b"key %d" % (n % 4),
                        timestamp=FIRST_TIMESTAMP + n * 1000,
                    )
            await _until(lambda: _is_compacted(client, topic, count))

        self.with_client(work)

    def delete_records(self, topic: str, before: Mapping[int, int]) -> None:
        """Delete the records before an offset of each partition."""

        async def work(client: Client) -> None:
            for number, offset in before.items():
                reply = await client.request(
                    DeleteRecordsRequest(
                        topics=[
                            DeleteRecordsTopic(
                                name=topic,
                                partitions=[
                                    DeleteRecordsPartition(
                                        partition_index=number, offset=offset
                                    )
                                ],
                            )
                        ],
                        timeout_ms=10_000,
                    ),
                    Leader(TopicPartition(topic, number)),
                )
                assert reply.topics[0].partitions[0].error_code == 0

        self.with_client(work)

    def add_partitions(self, topic: str, count: int) -> None:
        """Give a topic that many partitions; return when all have leaders."""

        async def work(client: Client) -> None:
            reply = await client.request(
                CreatePartitionsRequest(
                    topics=[
                        CreatePartitionsTopic(name=topic, count=count, assignments=None)
                    ],
                    timeout_ms=10_000,
                ),
                Controller,
            )
            assert reply.results[0].error_code == 0
            await _until(lambda: _has(client, topic, count))

        self.with_client(work)

    def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The ends of logs."""

        async def work(client: Client) -> dict[TopicPartition, int]:
            found = await client.offsets(dict.fromkeys(partitions, "latest"))
            return {tp: each.offset for tp, each in found.items() if each is not None}

        return self.with_client(work)


#: Topic properties by which each record is a segment that is compacted at once.
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.0001",
}


async def _until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Ask again and again, until something holds."""
    for pause in itertools.repeat(0.05):
        if await holds():
            break
        await asyncio.sleep(pause)


async def _has(client: Client, topic: str, partitions: int) -> bool:
    return len((await client.partitions_for(topic))[topic]) == partitions


async def _is_compacted(client: Client, topic: str, end: int) -> bool:
    from kafkaio import OffsetRange
    from kafkaio.arrow import read_ranges

    ranges = [OffsetRange(TopicPartition(topic, 0), 0, end)]
    rows: int = sum([batch.num_rows async for batch in read_ranges(client, ranges)])
    return rows < end // 2
