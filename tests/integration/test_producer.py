"""The producer against real brokers, read back through raw Fetch requests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from typing import Any

import anyio.to_thread
import pyarrow as pa
import pytest

from kafkaio._client.client import Client
from kafkaio._client.destinations import Leader
from kafkaio._machines.partitioner import key_partition
from kafkaio._producer import Producer
from kafkaio._records.batch import read_batches
from kafkaio.errors import (
    BrokerError,
    DeliveryTimeout,
    RecordTooLarge,
    UnknownTopicOrPartition,
)
from kafkaio.protocol._message import ZERO_UUID
from kafkaio.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kafkaio.serde import SerializationContext, Topic
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.kafka._releases import find_release
from kafkaio.testing.pytest_plugin import TopicFactory
from kafkaio.types import Record, TopicPartition
from tests.support.java import Toolbox
from tests.support.patience import HANGS

pytestmark = pytest.mark.timeout(180)

#: Brokers that cannot tell which record of a batch they refuse (KIP-467), and say of
#: an invalid record that the batch is corrupt: which may be the network's fault.
BEFORE_2_4 = {"2.1"}


async def read_all(
    client: Client, topic: str, partition: int, count: int
) -> list[Record]:
    """The first ``count`` records of a partition, and whatever stands behind them."""
    tp = TopicPartition(topic, partition)
    records: list[Record] = []
    async with asyncio.timeout(HANGS):
        while True:
            view = await client._cluster.wait_for_topics([topic])
            offset = records[-1].offset + 1 if records else 0
            request = FetchRequest(
                max_wait_ms=200 if len(records) >= count else 1_000,
                min_bytes=1,
                topics=[
                    FetchTopic(
                        topic=topic,
                        topic_id=view.topic_id(topic) or ZERO_UUID,
                        partitions=[
                            FetchPartition(
                                partition=partition,
                                fetch_offset=offset,
                                partition_max_bytes=1 << 20,
                            )
                        ],
                    )
                ],
            )
            response = await client.request(request, Leader(tp))
            assert response.error_code == 0
            (found,) = response.responses[0].partitions
            assert found.error_code == 0
            got = [
                record
                for batch in read_batches(bytes(found.records or b""))  # type: ignore[arg-type]
                for record in batch.decode(topic, partition, offset)
            ]
            records += got
            if not got and len(records) >= count:
                return records


@pytest.mark.parametrize(
    ("acks", "codec"),
    [("all", "none"), (1, "gzip"), ("all", "snappy"), (1, "lz4"), ("all", "zstd")],
)
async def test_records_arrive_as_they_were_sent(
    real_kafka: Kafka, topic: TopicFactory, acks: Any, codec: Any
) -> None:
    # The timestamps are old, and retention would delete the records by them.
    name = topic(partitions=2, config={"retention.ms": "-1"})
    async with Client(real_kafka.bootstrap_servers) as client:
        async with Producer(client, acks=acks, compression_type=codec) as producer:
            deliveries = [
                await producer.enqueue(
                    name,
                    b"value %d" % i,
                    key=b"key %d" % i,
                    headers=[("n", b"%d" % i), ("none", None)],
                    timestamp=1_700_000_000_000 + i,
                    partition=i % 2,
                )
                for i in range(400)
            ]
            metas = [await delivery for delivery in deliveries]
        for partition in range(2):
            records = await read_all(client, name, partition, 200)
            numbers = list(range(partition, 400, 2))
            assert [r.value for r in records] == [b"value %d" % n for n in numbers]
            assert [r.key for r in records] == [b"key %d" % n for n in numbers]
            assert [r.headers for r in records] == [
                (("n", b"%d" % n), ("none", None)) for n in numbers
            ]
            assert [(r.offset, r.timestamp) for r in records] == [
                (metas[n].offset, metas[n].timestamp) for n in numbers
            ]


class Sometimes:
    """Serializes every seventh number late, and notes in a header which."""

    def serialize(
        self, value: int, context: SerializationContext
    ) -> bytes | Awaitable[bytes]:
        return self._late(value, context) if value % 7 == 0 else b"%d" % value

    async def _late(self, value: int, context: SerializationContext) -> bytes:
        await asyncio.sleep(0.001 * (value % 3))
        context.headers.append((context.field, context.topic.encode()))
        return b"%d" % value

    def deserialize(self, data: bytes, context: object) -> int:
        del context
        return int(data)


async def test_calls_keep_their_order_while_a_serializer_is_awaited(
    real_kafka: Kafka, topic: TopicFactory
) -> None:
    name, other = topic(), topic()
    numbers = Topic(name, value=Sometimes())
    async with Client(real_kafka.bootstrap_servers) as client:
        async with Producer(client) as producer, asyncio.TaskGroup() as group:
            for number in range(0, 500, 5):
                group.create_task(producer.send(numbers, number))
                group.create_task(producer.send(name, b"%d" % (number + 1)))
                group.create_task(producer.send_many(numbers, [number + 2, number + 3]))
                group.create_task(producer.send(numbers, number + 4))
                group.create_task(producer.send(other, b"%d" % number))
        records = await read_all(client, name, 0, 500)
        assert [int(record.value or b"") for record in records] == [*range(500)]
        for number, record in enumerate(records):
            is_late = number % 7 == 0 and number % 5 != 1
            assert record.headers == ((("value", name.encode()),) if is_late else ())
        others = await read_all(client, other, 0, 100)
        assert [int(record.value or b"") for record in others] == [*range(0, 500, 5)]


async def test_without_acks(real_kafka: Kafka, topic: TopicFactory) -> None:
    name = topic()
    async with (
        Client(real_kafka.bootstrap_servers) as client,
        Producer(client, acks=0) as producer,
    ):
        metas = await producer.send_many(name, [b"%d" % i for i in range(500)])
        assert {meta.offset for meta in metas} == {-1}
        records = await read_all(client, name, 0, 500)
    assert [int(r.value or b"") for r in records] == list(range(500))


async def test_rows_of_a_table(real_kafka: Kafka, topic: TopicFactory) -> None:
    name = topic(3)
    now = time.time_ns() // 1_000_000
    table = pa.table(
        {
            "id": [f"key-{n % 50}" if n % 7 else None for n in range(5_000)],
            "body": [f"value {n}" if n % 11 else None for n in range(5_000)],
            "at": pa.array(range(now, now + 5_000), pa.timestamp("ms")),
            "tags": pa.array(
                [[("n", b"%d" % n)] * (n % 3) for n in range(5_000)],
                pa.map_(pa.string(), pa.binary()),
            ),
        }
    )
    async with (
        Client(real_kafka.bootstrap_servers) as client,
        Producer(client, compression_type="lz4") as producer,
    ):
        written = await producer.send_table(
            name, table, key="id", value="body", timestamp="at", headers="tags"
        )
        rows = zip(written.to_pylist(), table.to_pylist(), strict=True)
        expected = {
            (to["partition"], to["offset"]): (
                row["id"] and row["id"].encode(),
                row["body"] and row["body"].encode(),
                now + n,
                tuple(row["tags"]),
            )
            for n, (to, row) in enumerate(rows)
        }
        assert len(expected) == 5_000
        for partition in range(3):
            count = sum(1 for place in expected if place[0] == partition)
            for record in await read_all(client, name, partition, count):
                found = (record.key, record.value, record.timestamp, record.headers)
                assert found == expected.pop((partition, record.offset))
                if record.key is not None:
                    assert partition == key_partition(record.key, 3)
    assert not expected


async def test_log_append_time_is_told(real_kafka: Kafka, topic: TopicFactory) -> None:
    name = topic(config={"message.timestamp.type": "LogAppendTime"})
    async with Producer(real_kafka.bootstrap_servers) as producer:
        meta = await producer.send(name, b"v", timestamp=5)
        metas = await producer.send_many(name, [b"v", b"w"])
        written = await producer.send_table(name, pa.table({"value": ["v", "w"]}))
    assert meta.timestamp > 1_600_000_000_000
    assert [meta.timestamp for meta in metas] == [metas[0].timestamp] * 2
    assert written["timestamp"].to_pylist()[0].timestamp() > 1_600_000_000


async def test_what_is_too_large_is_divided_or_fails_alone(
    real_kafka: Kafka, topic: TopicFactory
) -> None:
    name = topic(config={"max.message.bytes": "2000"})
    async with Client(real_kafka.bootstrap_servers) as client:
        async with Producer(client, batch_size=16_384) as producer:
            await producer.partitions_for(name)
            good = [producer.enqueue_nowait(name, b"%04d" % i * 50) for i in range(60)]
            large = producer.enqueue_nowait(name, b"x" * 5_000)
            good += [producer.enqueue_nowait(name, b"%04d" % i) for i in range(60, 90)]
            with pytest.raises(RecordTooLarge):
                await large
            assert [(await d).offset for d in good] == list(range(90))
        records = await read_all(client, name, 0, 90)
    assert [int((r.value or b"")[:4]) for r in records] == list(range(90))


async def test_a_poison_record_fails_alone(
    real_kafka: Kafka, topic: TopicFactory, kafka_version: str
) -> None:
    # A compacted topic takes no record without a key: INVALID_RECORD, by index.
    name = topic(config={"cleanup.policy": "compact"})
    if kafka_version in BEFORE_2_4:
        await fail_with_the_whole_batch(real_kafka, name)
        return
    async with Client(real_kafka.bootstrap_servers) as client:
        async with Producer(client) as producer:
            await producer.partitions_for(name)
            deliveries = [
                producer.enqueue_nowait(name, b"v", key=None if i == 5 else b"k%d" % i)
                for i in range(12)
            ]
            with pytest.raises(BrokerError, match="INVALID_RECORD"):
                await deliveries[5]
            good = [d for i, d in enumerate(deliveries) if i != 5]
            assert [(await d).offset for d in good] == list(range(11))
        records = await read_all(client, name, 0, 11)
    assert [r.key for r in records] == [b"k%d" % i for i in range(12) if i != 5]


async def fail_with_the_whole_batch(kafka: Kafka, name: str) -> None:
    async with Client(kafka.bootstrap_servers, request_timeout_ms=3_000) as client:
        async with Producer(client, delivery_timeout_ms=5_000) as producer:
            await producer.partitions_for(name)
            deliveries = [
                producer.enqueue_nowait(name, b"v", key=None if i == 5 else b"k%d" % i)
                for i in range(12)
            ]
            for delivery in deliveries:
                with pytest.raises(DeliveryTimeout, match="CORRUPT_MESSAGE"):
                    await delivery
            # What comes after is written, and nothing of the batch is.
            assert (await producer.send(name, b"v", key=b"after")).offset == 0
        records = await read_all(client, name, 0, 1)
    assert [r.key for r in records] == [b"after"]


async def test_an_unknown_topic_is_named(real_kafka: Kafka) -> None:
    async with Producer(
        real_kafka.bootstrap_servers, allow_auto_create_topics=False, max_block_ms=2_000
    ) as producer:
        with pytest.raises(UnknownTopicOrPartition, match="no-such-topic"):
            await producer.send("no-such-topic", b"v")


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["kill", "pause"])
async def test_losing_a_leader_loses_repeats_and_reorders_nothing(
    real_kafka_cluster: Kafka, cluster_topic: TopicFactory, fault: str
) -> None:
    name = cluster_topic(
        partitions=3, replication_factor=3, config={"min.insync.replicas": "2"}
    )
    count = 6_000
    engine = real_kafka_cluster.engine
    async with Client(
        real_kafka_cluster.bootstrap_servers, request_timeout_ms=5_000
    ) as client:
        async with Producer(client, batch_size=2_000) as producer:
            await producer.partitions_for(name)
            leader = client.cluster.leader(TopicPartition(name, 0))
            assert leader is not None
            deliveries = []
            for i in range(count):
                value = b"%06d" % i + b"x" * 100
                delivery = await producer.enqueue(name, value, partition=i % 3)
                deliveries.append(delivery)
                if i % 20 == 0:
                    await asyncio.sleep(0.005)
                if i == count // 4:
                    act = engine.kill if fault == "kill" else engine.pause
                    await anyio.to_thread.run_sync(act, leader)
                if i == count // 2:
                    if fault == "kill":
                        await anyio.to_thread.run_sync(engine.start, leader)
                    else:
                        await anyio.to_thread.run_sync(engine.resume, leader)
            await producer.flush(timeout=100)
            for delivery in deliveries:
                assert delivery.exception() is None
        for partition in range(3):
            records = await read_all(client, name, partition, count // 3)
            numbers = [int((r.value or b"")[:6]) for r in records]
            assert numbers == list(range(partition, count, 3))
            for number, record in zip(numbers, records, strict=True):
                assert deliveries[number].result().offset in {record.offset, -1}


@pytest.mark.slow
async def test_delivery_timeout_with_a_paused_broker(
    real_kafka_cluster: Kafka, cluster_topic: TopicFactory
) -> None:
    # Older brokers would wait for more replicas in sync than there are.
    name = cluster_topic(
        partitions=1, replication_factor=1, config={"min.insync.replicas": "1"}
    )
    engine = real_kafka_cluster.engine
    async with Producer(
        real_kafka_cluster.bootstrap_servers,
        delivery_timeout_ms=4_000,
        request_timeout_ms=1_500,
    ) as producer:
        await producer.send(name, b"before")
        leader = producer._cluster.view.leader(TopicPartition(name, 0))
        assert leader is not None
        await anyio.to_thread.run_sync(engine.pause, leader)
        start = asyncio.get_running_loop().time()
        try:
            with pytest.raises(DeliveryTimeout, match="4 s"):
                async with asyncio.timeout(HANGS):  # nobody wakes the leader meanwhile
                    await producer.send(name, b"during")
            assert asyncio.get_running_loop().time() - start > 3.9
        finally:
            await anyio.to_thread.run_sync(engine.resume, leader)
        async with asyncio.timeout(HANGS):
            while True:  # until the broker is back in the cluster
                try:
                    await producer.send(name, b"after")
                    break
                except DeliveryTimeout:
                    continue


@pytest.mark.kafka_versions("2.1", "4.4+")
@pytest.mark.parametrize("which", ["kafkaio", "java"])
async def test_records_without_a_key_stay_in_the_rack(
    real_kafka_cluster: Kafka, cluster_topic: TopicFactory, which: str
) -> None:
    servers, topic = real_kafka_cluster.bootstrap_servers, cluster_topic(6)
    home = real_kafka_cluster.node_ids[1]
    values = [b"%d" % number for number in range(300)]
    options = {"client_rack": f"r{home}"}
    async with asyncio.timeout(HANGS), Client(servers, **options) as client:
        if which == "java":
            # So many small batches that each partition of the rack gets some.
            properties = {
                "partitioner.rack.aware": "true",
                "client.rack": f"r{home}",
                "batch.size": "100",
            }
            words = [f"--command-property={k}={v}" for k, v in properties.items()]
            output = await Toolbox(find_release()).run(
                *("org.apache.kafka.tools.ConsoleProducer", "--topic", topic),
                *("--bootstrap-server", servers, *words),
                stdin="".join(f"{value.decode()}\n" for value in values),
            )
            assert output.returncode == 0, output.stderr
        else:
            async with Producer(
                client, partitioner_rack_aware=True, batch_size=100
            ) as producer:
                await producer.send_many(topic, values)
        view = await client._cluster.wait_for_topics([topic])
        inside = {n.partition for n in view.partitions(topic) if n.leader == home}
        sizes = {
            number: len(await read_all(client, topic, number, 0)) for number in range(6)
        }
    assert {number for number, size in sizes.items() if size} == inside
    assert sum(sizes.values()) == len(values)
