"""Ranges of offsets, and what clients look up, on real brokers."""

from __future__ import annotations

import asyncio
import random
import re
import select
import uuid
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from kafkaio import Client, Consumer, OffsetRange, Producer
from kafkaio._client import Leader
from kafkaio._client.client import cluster_of
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._runtime.clock import wall_ms
from kafkaio.arrow import read_ranges
from kafkaio.errors import OffsetOutOfRange, UnknownTopicOrPartition
from kafkaio.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from kafkaio.types import (
    GroupMetadata,
    OffsetAndMetadata,
    Record,
    TopicPartition,
)
from tests.integration.committed import librdkafkas, settled
from tests.support.patience import HANGS

pytestmark = pytest.mark.timeout(120)

SCHEMA = pa.schema(
    [
        ("offset", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("timestamp", pa.timestamp("ms", tz="UTC")),
        ("timestamp_type", pa.int32()),
        ("leader_epoch", pa.int32()),
        (
            "headers",
            pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())])),
        ),
    ]
)
ISOLATED = "read_committed"
Row = tuple[object, ...]


def row_of(record: Record) -> Row:
    pairs = [{"name": name, "value": value} for name, value in record.headers]
    return (
        record.offset,
        record.key,
        record.value,
        record.timestamp,
        int(record.timestamp_type),
        record.leader_epoch,
        pairs or None,
    )


async def consumed(servers: str, tp: TopicPartition, isolation: Any) -> list[Row]:
    """What a consumer reads of a partition, up to its end."""
    rows: list[Row] = []
    async with (
        asyncio.timeout(HANGS),
        Consumer(
            servers,
            assign=[tp],
            auto_offset_reset="earliest",
            isolation_level=isolation,
        ) as consumer,
    ):
        end = (await consumer.end_offsets([tp]))[tp]
        while await consumer.position(tp) < end:
            rows += map(row_of, (await consumer.poll(timeout=0.1)).records)
    return rows


async def ranged(
    client: Client, ranges: list[OffsetRange], isolation: Any, fetch_bytes: int
) -> list[Row]:
    """What `read_ranges` reads."""
    rows: list[Row] = []
    reader = read_ranges(
        client,
        ranges,
        schema=SCHEMA,
        isolation_level=isolation,
        fetch_bytes=fetch_bytes,
    )
    async with asyncio.timeout(HANGS):
        async for batch in reader:
            batch.validate(full=True)
            times = batch["timestamp"].cast(pa.int64()).to_pylist()
            for row, time in zip(batch.to_pylist(), times, strict=True):
                rows.append(tuple({**row, "timestamp": time}.values()))
    return rows


async def assert_random_ranges(servers: str, tp: TopicPartition, seed: int) -> None:
    """Ranges hold what a consumer reads between their offsets."""
    async with Client(servers) as client, asyncio.timeout(HANGS):
        for isolation in ("read_uncommitted", "read_committed"):
            whole, compared = await consumed(servers, tp, isolation), []
            while not compared:
                compared = await compare(client, tp, isolation, whole, seed)
                # The log cleaner may have worked meanwhile.
                now = await consumed(servers, tp, isolation)
                if now != whole:
                    whole, compared = now, []
            assert whole
            for found, expected in compared:
                assert found == expected


async def compare(
    client: Client, tp: TopicPartition, isolation: Any, whole: list[Row], seed: int
) -> list[tuple[list[Row], list[Row]]]:
    """Read random ranges; return what was found, and what a consumer has read."""
    dice = random.Random(seed)
    [end] = (await client.offsets({tp: "latest"}, isolation_level=isolation)).values()
    assert end is not None
    compared = []
    for _ in range(10):
        cuts = sorted(dice.choices(range(end.offset + 1), k=4))
        ranges = [OffsetRange(tp, *cuts[2:]), OffsetRange(tp, *cuts[:2])]
        expected = [
            row
            for _, start, stop in ranges
            for row in whole
            if start <= int(str(row[0])) < stop
        ]
        fetch_bytes = dice.choice([500, 5_000, 4 * 2**20])
        compared.append(
            (await ranged(client, ranges, isolation, fetch_bytes), expected)
        )
    return compared


async def transact(producer: Producer, topic: str, n: int, *, commits: bool) -> None:
    """Write some records in a transaction of their own."""
    async with producer.transaction() as tx:
        for each in range(n % 4 + 1):
            await tx.send(topic, b"t%d-%d" % (n, each), key=b"t%d" % n, partition=0)
        if not commits:
            await tx.abort()


async def test_random_ranges_are_what_a_consumer_reads(
    real_kafka: Kafka, topic: TopicFactory
) -> None:
    """Batches of every size, compressed or not, and transactions of both ends."""
    servers, name = real_kafka.bootstrap_servers, topic()
    dice = random.Random(17)
    transactional_id = f"ranges-{uuid.uuid4()}"
    async with (
        Producer(servers, transactional_id=transactional_id) as transactional,
        Producer(servers, compression_type="lz4", linger_ms=5) as packed,
        Producer(servers, linger_ms=0) as plain,
    ):
        for n in range(30):
            if n % 3 == 0:
                await transact(transactional, name, n, commits=n % 2 == 0)
                continue
            producer = packed if n % 3 == 1 else plain
            for each in range(dice.randrange(1, 20)):
                await producer.enqueue(
                    name,
                    None if each == 5 else b"%d-%d" % (n, each) * 10,
                    key=b"%d" % each if each % 2 else None,
                    headers=[("h", b"%d" % n)] * (each % 3),
                    partition=0,
                )
            await producer.flush()
    await settled(servers, name, 1)
    await assert_random_ranges(servers, TopicPartition(name, 0), 5)


async def test_aborted_transactions_as_librdkafka_sees_them(
    real_kafka: Kafka, topic: TopicFactory
) -> None:
    servers, name = real_kafka.bootstrap_servers, topic()
    tp = TopicPartition(name, 0)
    producers = [
        Producer(servers, transactional_id=f"ranges-{uuid.uuid4()}") for _ in range(3)
    ]
    dice = random.Random(3)
    async with producers[0], producers[1], producers[2]:
        for n in range(8):
            # Three at a time, so that their records and markers are interleaved.
            await asyncio.gather(
                *(
                    transact(producer, name, 3 * n + k, commits=dice.random() < 0.5)
                    for k, producer in enumerate(producers)
                )
            )
    await settled(servers, name, 1)
    async with Client(servers) as client:
        [end] = (await client.offsets({tp: "latest"})).values()
        assert end is not None
        rows = await ranged(
            client, [OffsetRange(tp, 0, end.offset)], "read_committed", 900
        )
    expected = await librdkafkas(servers, name)
    assert sorted(row[2] for row in rows) == expected  # type: ignore[type-var]
    assert 0 < len(rows) < end.offset


@pytest.mark.not_embedded("waits for a real log cleaner; units show the embedded one")
async def test_a_compacted_topic(real_kafka: Kafka, topic: TopicFactory) -> None:
    servers = real_kafka.bootstrap_servers
    name = topic(
        config={
            "cleanup.policy": "compact",
            "segment.ms": "100",
            "min.cleanable.dirty.ratio": "0.01",
            "delete.retention.ms": "0",
        }
    )
    tp = TopicPartition(name, 0)
    transactional_id = f"ranges-{uuid.uuid4()}"
    written = 0
    async with (
        asyncio.timeout(HANGS),
        Producer(servers, transactional_id=transactional_id) as transactional,
        Producer(servers) as producer,
    ):
        while True:
            # Each round ends a segment, and leaves the cleaner something to do.
            for n in range(20):
                key = b"%d" % (n % 7)
                await producer.send(name, b"%d" % written, key=key, partition=0)
                written += 1
            await transact(transactional, name, written, commits=written % 40 == 0)
            left = len(await consumed(servers, tp, "read_uncommitted"))
            if written > 100 and left < written // 2:
                break
    await settled(servers, name, 1)
    await assert_random_ranges(servers, tp, 9)


@pytest.mark.not_embedded("a stopped event loop would stop the embedded broker, too")
def test_the_next_answer_comes_while_the_event_loop_is_stopped(
    real_kafka: Kafka, topic: TopicFactory
) -> None:
    """As Spark reads: one step, then work without the loop."""
    name = topic()
    servers = real_kafka.bootstrap_servers
    runner = asyncio.Runner()
    fetches: list[int] = []

    class Sent:
        def request_sent(self, api: str, version: int, node_id: int, size: int) -> None:
            if api == "Fetch":
                fetches.append(node_id)

    client = Client(servers, observer=Sent())

    async def fill() -> None:
        async with Producer(servers, batch_size=1_000) as producer:
            for _ in range(50):
                await producer.enqueue(name, b"v" * 500, partition=0)
            await producer.flush()
        await client.start()

    with runner:
        try:
            runner.run(fill())
            reader = read_ranges(
                client, [OffsetRange(TopicPartition(name, 0), 0, 50)], fetch_bytes=2_000
            )
            loop = runner.get_loop()
            rows = loop.run_until_complete(anext(reader)).num_rows
            cluster = cluster_of(client)
            fetching = cluster.ready_connection(
                cluster.view.leader(TopicPartition(name, 0)) or 0,
                ConnectionClass.FETCH.of(0),
            )
            assert fetching is not None
            assert len(fetches) == 2
            if fetching.in_flight:  # else the answer was quicker than the step
                transport: Any = fetching._transport
                socket = transport._transport.get_extra_info("socket")
                readable, _, _ = select.select([socket.fileno()], [], [], 30)
                assert readable  # nobody has run the loop since
            while batch := loop.run_until_complete(anext(reader, None)):
                rows += batch.num_rows
            assert rows == 50
        finally:
            runner.run(client.close())


async def test_records_that_were_deleted(
    real_kafka: Kafka, topic: TopicFactory
) -> None:
    servers, name = real_kafka.bootstrap_servers, topic()
    tp = TopicPartition(name, 0)
    async with Producer(servers) as producer, Client(servers) as client:
        for n in range(20):
            await producer.enqueue(name, b"%d" % n, partition=0)
        await producer.flush()
        deletion = DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(
                    name=name,
                    partitions=[DeleteRecordsPartition(partition_index=0, offset=7)],
                )
            ],
            timeout_ms=10_000,
        )
        await client.request(deletion, Leader(tp))
        with pytest.raises(OffsetOutOfRange, match=r"5 to 12 .* log has 7 to 20") as it:
            await anext(read_ranges(client, [OffsetRange(tp, 5, 12)]))
        assert (it.value.earliest, it.value.latest) == (7, 20)
        rows = await ranged(client, [OffsetRange(tp, 7, 20)], "read_committed", 10_000)
        assert [row[0] for row in rows] == [*range(7, 20)]


async def test_a_leader_that_is_killed(
    real_kafka_cluster: Kafka, cluster_topic: TopicFactory
) -> None:
    kafka = real_kafka_cluster
    name = cluster_topic(partitions=3, replication_factor=3)
    async with (
        Producer(kafka.bootstrap_servers) as producer,
        Client(kafka.bootstrap_servers) as client,
    ):
        for n in range(300):
            await producer.enqueue(name, b"%d" % n * 20, partition=n % 3)
        await producer.flush()
        ranges = [OffsetRange(TopicPartition(name, n), n, 100 - n) for n in range(3)]
        reader = read_ranges(client, ranges, fetch_bytes=1_000)
        found = []
        victim: int | None = None
        async with asyncio.timeout(HANGS):
            async for batch in reader:
                rows = batch.to_pylist()
                found += [(row["partition"], row["offset"]) for row in rows]
                if victim is None:
                    victim = client.cluster.leader(ranges[0].partition)
                    assert victim is not None
                    await kafka.kill(victim)
        assert victim is not None
        await kafka.restart(victim)
    # The ranges of other leaders may have gone first.
    for tp, start, end in ranges:
        read = [offset for partition, offset in found if partition == tp.partition]
        assert read == [*range(start, end)]


async def test_what_clients_look_up(real_kafka: Kafka, topic: TopicFactory) -> None:
    servers, name = real_kafka.bootstrap_servers, topic(partitions=2)
    first, second = TopicPartition(name, 0), TopicPartition(name, 1)
    group = f"ranges-{uuid.uuid4()}"
    early = wall_ms() - 10_000  # a broker deletes what is too old before the marker
    async with (
        Producer(servers, transactional_id=group) as producer,
        Client(servers) as client,
    ):
        async with producer.transaction() as tx:
            for time in (early, early + 1_000):
                await tx.send(name, b"v", partition=0, timestamp=time)
            offsets = {first: OffsetAndMetadata(1, "mark")}
            await tx.commit_offsets(GroupMetadata(group), offsets)
        # Stable: also directly after the commit, whose marker may be on its way.
        found = await client.committed(group, [first, second])
        assert found == {first: OffsetAndMetadata(1, "mark"), second: None}
        await settled(servers, name, 2)
        assert await client.partitions_for(name) == {name: [0, 1]}
        pattern = re.compile(re.escape(name[:-1]) + ".")
        assert name in await client.partitions_for(pattern)
        assert not await client.partitions_for(re.compile("__.*"))
        with pytest.raises(UnknownTopicOrPartition):
            await client.partitions_for([name, name + "-absent"])
        async with asyncio.timeout(HANGS):
            both, ends = (first, second), [0, 0]
            while ends != [3, 0]:  # two records and, soon, a marker
                places = (await client.offsets(dict.fromkeys(both, "latest"))).values()
                ends = [-1 if at is None else at.offset for at in places]
        moments = await client.offsets({first: early + 1, second: early + 1})
        assert [at and at.offset for at in moments.values()] == [1, None]


async def test_many_ranges_of_a_wide_topic(
    real_kafka_cluster: Kafka, cluster_topic: TopicFactory
) -> None:
    """Three leaders, a request or two for each, in both isolation levels."""
    servers = real_kafka_cluster.bootstrap_servers
    name = cluster_topic(partitions=60, replication_factor=1)
    fetches: list[int] = []

    class Sent:
        def request_sent(self, api: str, version: int, node_id: int, size: int) -> None:
            if api == "Fetch":
                fetches.append(node_id)

    async with (
        Producer(servers, transactional_id=f"ranges-{uuid.uuid4()}") as producer,
        Client(servers, observer=Sent()) as client,
    ):
        for commits in (True, False):
            async with producer.transaction() as tx:
                for n in range(300):
                    await tx.enqueue(name, b"%d" % n, partition=n % 60)
                await producer.flush()
                if not commits:
                    await tx.abort()
        await settled(servers, name, 60)
        partitions = [TopicPartition(name, n) for n in range(60)]
        ends = await client.offsets(dict.fromkeys(partitions, "latest"))
        ranges = [
            OffsetRange(tp, 0, 0 if end is None else end.offset)
            for tp, end in ends.items()
        ]
        for isolation, count in (("read_uncommitted", 600), ("read_committed", 300)):
            fetches.clear()
            rows = await ranged(client, ranges, isolation, 4 * 2**20)
            assert len(rows) == count
            assert len(fetches) <= 6


async def test_a_client_that_is_kept_learns_of_a_topic_that_was_made_again(
    real_kafka: Kafka, topic: TopicFactory
) -> None:
    kafka, name = real_kafka, topic()
    tp = TopicPartition(name, 0)

    async def fill(count: int) -> UUID:
        async with Producer(kafka.bootstrap_servers) as producer:
            for n in range(count):
                await producer.enqueue(name, b"%d" % n, partition=0)
            await producer.flush()
        async with Client(kafka.bootstrap_servers) as planner:
            await planner.offsets({tp: "latest"})
            found = planner.cluster.topic_id(name)
            assert found is not None
            return found

    async with Client(kafka.bootstrap_servers) as kept:
        old_id = await fill(10)
        assert len(await ranged(kept, [OffsetRange(tp, 0, 10)], ISOLATED, 10_000)) == 10
        for _ in range(2):
            await asyncio.to_thread(kafka.delete_topics_blocking, [name])
            await kafka.create_topic(name, 1)
            new_id = await fill(15)
            ranges = [OffsetRange(tp, 0, 15)]
            assert len(await ranged(kept, ranges, ISOLATED, 10_000)) == 15
            reader = read_ranges(kept, ranges, topic_ids={name: old_id})
            with pytest.raises(UnknownTopicOrPartition, match="was deleted and"):
                await anext(reader)
            reader = read_ranges(kept, ranges, topic_ids={name: new_id})
            assert (await anext(reader)).num_rows == 15


async def test_a_leader_that_hangs_holds_no_others(
    real_kafka_cluster: Kafka, cluster_topic: TopicFactory
) -> None:
    kafka = real_kafka_cluster
    name = cluster_topic(partitions=30, replication_factor=1)
    partitions = [TopicPartition(name, n) for n in range(30)]
    async with (
        Producer(kafka.bootstrap_servers) as producer,
        Client(kafka.bootstrap_servers) as client,
    ):
        for n in range(150):
            await producer.enqueue(name, b"%d" % n, partition=n % 30)
        await producer.flush()
        await client.offsets(dict.fromkeys(partitions, "latest"))
        held = client.cluster.leader(partitions[0])
        assert held is not None
        free = [tp for tp in partitions if client.cluster.leader(tp) != held]
        reader = read_ranges(client, [OffsetRange(tp, 0, 5) for tp in partitions])
        await kafka.pause(held)
        try:
            rows = []
            async with asyncio.timeout(20):  # less than a request's limit
                while len(rows) < 5 * len(free):
                    rows += (await anext(reader)).to_pylist()
        finally:
            await kafka.resume(held)
        assert {row["partition"] for row in rows} == {tp.partition for tp in free}
        async with asyncio.timeout(60):
            rows += [row async for batch in reader for row in batch.to_pylist()]
    assert len(rows) == 150
