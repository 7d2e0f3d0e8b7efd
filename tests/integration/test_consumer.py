"""The consumer against a real Kafka. Records are written by plain Produce requests."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Mapping

import pytest

from kafkaio._client import Client, CoordinatorKind, Leader, TransactionCoordinator
from kafkaio._consumer import Consumer
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._records.batch import BatchBuilder, Compression, encode_batch
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import ZERO_UUID
from kafkaio.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from kafkaio.protocol.messages.end_txn import EndTxnRequest
from kafkaio.protocol.messages.init_producer_id import InitProducerIdRequest
from kafkaio.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.kafka._releases import find_release
from kafkaio.testing.pytest_plugin import TopicFactory
from kafkaio.types import OffsetAndMetadata, TopicPartition
from tests.integration.groups import until
from tests.support.patience import HANGS

pytestmark = pytest.mark.timeout(120)


async def write(
    client: Client,
    tp: TopicPartition,
    values: list[bytes],
    compression: Compression = Compression.NONE,
) -> int:
    """Append one batch and return its first offset."""
    batch = encode_batch(
        [(time.time_ns() // 1_000_000, None, value, ()) for value in values],
        compression=compression,
    )
    return await append(client, tp, batch)


async def append(
    client: Client,
    tp: TopicPartition,
    batch: bytes,
    transactional_id: str | None = None,
) -> int:
    view = await client._cluster.wait_for_topics([tp.topic])
    topic_id = view.topic_id(tp.topic) or ZERO_UUID  # brokers before 2.8 have none
    data = PartitionProduceData(index=tp.partition, records=batch)
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=10_000,
        topic_data=[
            TopicProduceData(name=tp.topic, topic_id=topic_id, partition_data=[data])
        ],
    )
    answer = await client.request(request, Leader(tp))
    done = answer.responses[0].partition_responses[0]
    assert done.error_code == 0
    return done.base_offset


async def read(consumer: Consumer, count: int) -> list[bytes | None]:
    async with asyncio.timeout(HANGS):
        return [(await anext(consumer)).value for _ in range(count)]


def numbers(stem: str, count: int) -> list[bytes]:
    return [f"{stem}-{n}".encode() for n in range(count)]


async def test_every_codec(real_kafka: Kafka, topic: TopicFactory):
    tp = TopicPartition(topic(), 0)
    async with Client(real_kafka.bootstrap_servers) as client:
        wanted = []
        for codec in Compression:
            values = numbers(codec.name, 50)
            wanted += values
            await write(client, tp, values, codec)
        async with Consumer(
            client, assign=[tp], auto_offset_reset="earliest"
        ) as consumer:
            assert await read(consumer, len(wanted)) == wanted
            assert await consumer.position(tp) == len(wanted)
            assert await consumer.lag() == {tp: 0}
            assert await consumer.beginning_offsets([tp]) == {tp: 0}


async def test_a_record_after_start_is_seen(real_kafka: Kafka, topic: TopicFactory):
    tp = TopicPartition(topic(), 0)
    async with Client(real_kafka.bootstrap_servers) as client:
        await write(client, tp, [b"before"])
        async with Consumer(real_kafka.bootstrap_servers, topics=tp.topic) as consumer:
            await write(client, tp, [b"after"])
            assert await read(consumer, 1) == [b"after"]


async def test_a_time_before_now_on_an_empty_topic(
    real_kafka: Kafka, topic: TopicFactory
):
    tp = TopicPartition(topic(), 0)
    async with (
        Client(real_kafka.bootstrap_servers) as client,
        Consumer(
            client, topics=tp.topic, auto_offset_reset="by_duration:PT1H"
        ) as consumer,
    ):
        await write(client, tp, [b"first"])
        assert await read(consumer, 1) == [b"first"]


async def test_auto_commit_and_resume(real_kafka: Kafka, topic: TopicFactory):
    tp = TopicPartition(topic(), 0)
    group = f"group-{uuid.uuid4().hex[:8]}"
    async with Client(real_kafka.bootstrap_servers) as client:
        await write(client, tp, numbers("r", 5))

        def consumer() -> Consumer:
            return Consumer(
                client, assign=[tp], group_id=group, auto_offset_reset="earliest"
            )

        async with consumer() as first:
            assert await read(first, 3) == numbers("r", 3)
        async with consumer() as second:
            # The third was handed out but never finished.
            found = await second.committed()
            assert found[tp] is not None
            assert found[tp].offset == 2
            assert await read(second, 3) == numbers("r", 5)[2:]
            await second.commit({tp: 5})
        async with consumer() as third:
            assert await third.position(tp) == 5


async def test_a_thousand_commits_at_once(real_kafka: Kafka, topic: TopicFactory):
    heard: list[dict[TopicPartition, OffsetAndMetadata]] = []

    class Listener:
        def offsets_committed(
            self, offsets: dict[TopicPartition, OffsetAndMetadata], seconds: float
        ) -> None:
            heard.append(offsets)

    name = topic(partitions=3)
    tps = [TopicPartition(name, number) for number in range(3)]
    group = f"group-{uuid.uuid4().hex[:8]}"
    async with (
        Client(real_kafka.bootstrap_servers, observer=Listener()) as client,
        Consumer(client, topics=name, group_id=group) as consumer,
    ):
        async with asyncio.TaskGroup() as tasks:
            for n in range(999):
                what = {tps[n % 3]: OffsetAndMetadata(n, f"call {n}")}
                tasks.create_task(consumer.commit(what))
        last = {tp: OffsetAndMetadata(n, f"call {n}") for n, tp in enumerate(tps, 996)}
        assert await consumer.committed() == last
        assert len(heard) <= 2
        assert heard[-1] == last


async def test_pause_resume_and_seek(real_kafka: Kafka, topic: TopicFactory):
    name = topic(partitions=2)
    left, right = TopicPartition(name, 0), TopicPartition(name, 1)
    async with (
        Client(real_kafka.bootstrap_servers) as client,
        Consumer(client, assign=[left, right]) as consumer,
    ):
        consumer.pause(left)
        await write(client, left, numbers("left", 3))
        await write(client, right, numbers("right", 3))
        assert await read(consumer, 3) == numbers("right", 3)
        poll = await consumer.poll(timeout=0.5)
        assert poll.records == []
        consumer.resume(left)
        assert await read(consumer, 3) == numbers("left", 3)
        consumer.seek(right, 1)
        assert await read(consumer, 2) == numbers("right", 3)[1:]
        consumer.seek_to_beginning()
        assert sorted(await read(consumer, 6)) == sorted(
            numbers("left", 3) + numbers("right", 3)
        )


async def test_two_members_share_a_topic(real_kafka: Kafka, topic: TopicFactory):
    name = topic(partitions=4)
    group = f"group-{uuid.uuid4().hex[:8]}"
    options = {"group_id": group, "auto_offset_reset": "earliest"}
    async with Client(real_kafka.bootstrap_servers) as client:
        for n in range(4):
            await write(client, TopicPartition(name, n), numbers(f"p{n}", 2))
        async with Consumer(
            real_kafka.bootstrap_servers, topics=name, **options
        ) as one:
            assert len(one.assignment) == 4
            first = await read(one, 8)
            assert len(set(first)) == 8
            async with Consumer(
                real_kafka.bootstrap_servers, topics=name, **options
            ) as two:
                async with asyncio.timeout(HANGS):
                    while len(one.assignment) != 2 or len(two.assignment) != 2:
                        await one.poll(timeout=0.1)
                        await two.poll(timeout=0.1)
                assert one.assignment | two.assignment == {
                    TopicPartition(name, n) for n in range(4)
                }
                for n in range(4):
                    await write(client, TopicPartition(name, n), [b"again-%d" % n])
                found: list[bytes | None] = []
                async with asyncio.timeout(HANGS):
                    while len(found) < 4:
                        for consumer in (one, two):
                            poll = await consumer.poll(timeout=0.1)
                            found += [r.value for r in poll.records]
                # All that was finished was committed before partitions moved.
                assert sorted(found) == [b"again-%d" % n for n in range(4)]


async def test_read_committed(
    real_kafka: Kafka, topic: TopicFactory, kafka_version: str
):
    adds_implicitly = "transaction.version" in find_release(kafka_version).features
    tp = TopicPartition(topic(), 0)
    name = f"tx-{uuid.uuid4().hex[:8]}"
    async with Client(real_kafka.bootstrap_servers) as client:
        for values, commits in (([b"aborted"], False), ([b"committed"], True)):
            await transact(
                client, name, tp, values, commits=commits, adds=not adds_implicitly
            )
        await write(client, tp, [b"plain"])
        options = {"assign": [tp], "auto_offset_reset": "earliest"}
        async with Consumer(
            client, **options, isolation_level="read_committed"
        ) as consumer:
            assert await read(consumer, 2) == [b"committed", b"plain"]
        async with Consumer(client, **options) as consumer:
            assert await read(consumer, 3) == [b"aborted", b"committed", b"plain"]


async def transact(
    client: Client,
    name: str,
    tp: TopicPartition,
    values: list[bytes],
    *,
    commits: bool,
    adds: bool,
) -> None:
    """Write one batch in a transaction of its own.

    Args:
        client: the way to the cluster.
        name: the transactional id.
        tp: where to write.
        values: the records.
        commits: commit the transaction, or abort it.
        adds: add the partition first; with transaction.version 2 brokers do that by
            themselves (KIP-890).
    """
    coordinator = TransactionCoordinator(name)
    init = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=30_000)
    begun = await client.request(init, coordinator)
    while begun.error_code == ErrorCode.CONCURRENT_TRANSACTIONS:
        await asyncio.sleep(0.05)  # the markers of the one before are on their way
        begun = await client.request(init, coordinator)
    assert begun.error_code == 0
    builder = BatchBuilder(transactional=True)
    for value in values:
        builder.try_append(time.time_ns() // 1_000_000, None, value, ())
    producer_id, epoch = begun.producer_id, begun.producer_epoch
    if adds:
        add = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=tp.topic, partitions=[tp.partition])
            ],
        )
        await add_partition(client, name, add)
    batch = builder.build(
        producer_id=producer_id, producer_epoch=epoch, base_sequence=0
    )
    await append(client, tp, batch, transactional_id=name)
    ended = await client.request(
        EndTxnRequest(
            transactional_id=name,
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=commits,
        ),
        coordinator,
    )
    assert ended.error_code == 0


async def add_partition(
    client: Client, name: str, request: AddPartitionsToTxnRequest
) -> None:
    while True:
        node_id = await client._cluster.coordinator(CoordinatorKind.TRANSACTION, name)
        connection = await client._cluster.connection(
            node_id, ConnectionClass.COORDINATOR
        )
        # Later versions are for brokers among themselves.
        answer = await connection.call(request, timeout=30, max_version=3)
        (topic,) = answer.results_by_topic_v3_and_below
        (partition,) = topic.results_by_partition
        if partition.partition_error_code != ErrorCode.CONCURRENT_TRANSACTIONS:
            assert partition.partition_error_code == 0
            return
        await asyncio.sleep(0.05)  # the markers of the one before are on their way


async def test_a_leader_that_is_killed_and_restarted(
    real_kafka_cluster: Kafka, cluster_topic: TopicFactory
):
    kafka = real_kafka_cluster
    name = cluster_topic(partitions=3, replication_factor=3)
    partitions = [TopicPartition(name, n) for n in range(3)]
    async with (
        Client(kafka.bootstrap_servers) as client,
        Consumer(
            kafka.bootstrap_servers, assign=partitions, auto_offset_reset="earliest"
        ) as consumer,
    ):
        wanted: dict[int, list[bytes]] = {n: [] for n in range(3)}
        found: dict[int, list[bytes | None]] = {n: [] for n in range(3)}

        async def round_trip(stem: str) -> None:
            for tp in partitions:
                values = numbers(stem, 20)
                wanted[tp.partition] += values
                await write(client, tp, values)
            async with asyncio.timeout(HANGS):
                while found != wanted:
                    record = await anext(consumer)
                    found[record.partition].append(record.value)
                    assert record.offset == len(found[record.partition]) - 1

        await round_trip("before")
        victim = client.cluster.leader(partitions[0])
        assert victim is not None
        await kafka.kill(victim)
        await round_trip("while it is down")
        await kafka.restart(victim)
        await round_trip("after")


class Missing:
    """The partitions without a position that were told of, and why."""

    def __init__(self) -> None:
        self.reasons: dict[TopicPartition, str] = {}

    def positions_missing(self, reasons: Mapping[TopicPartition, str]) -> None:
        self.reasons |= reasons


async def test_it_starts_without_the_partition_of_a_node_that_is_down(
    real_kafka_cluster: Kafka, cluster_topic: TopicFactory
):
    kafka = real_kafka_cluster
    name = cluster_topic(partitions=3, replication_factor=1)
    partitions = [TopicPartition(name, n) for n in range(3)]
    observer = Missing()
    async with Client(kafka.bootstrap_servers) as client:
        for tp in partitions:
            await write(client, tp, [b"before"])
        victim = client.cluster.leader(partitions[0])
    assert victim is not None
    await kafka.kill(victim)
    is_down = True
    try:
        async with Consumer(
            kafka.bootstrap_servers,
            topics=name,
            group_id=name,
            auto_offset_reset="earliest",
            observer=observer,
        ) as consumer:
            async with asyncio.timeout(HANGS):
                found = {(await anext(consumer)).partition for _ in range(2)}
            assert found == {1, 2}
            assert set(observer.reasons) == {partitions[0]}
            await kafka.restart(victim)
            is_down = False
            async with asyncio.timeout(HANGS):
                assert (await anext(consumer)).partition == 0
    finally:
        if is_down:
            await kafka.restart(victim)


class Fetches:
    """The brokers that were fetched from."""

    def __init__(self) -> None:
        self.nodes: set[int] = set()

    def request_sent(self, api: str, version: int, node_id: int, size: int) -> None:
        if api == "Fetch":
            self.nodes.add(node_id)


@pytest.mark.kafka_versions("2.8+")  # KIP-392 came with 2.4
async def test_the_replica_in_the_own_rack_is_read_from(
    real_kafka_cluster: Kafka, cluster_topic: TopicFactory
):
    tp = TopicPartition(cluster_topic(partitions=1, replication_factor=3), 0)
    servers = real_kafka_cluster.bootstrap_servers
    async with Client(servers) as client:
        await write(client, tp, numbers("before", 3))
        leader = client.cluster.leader(tp)
        follower = next(n for n in real_kafka_cluster.node_ids if n != leader)
        heard = Fetches()
        async with Consumer(
            servers,
            assign=[tp],
            auto_offset_reset="earliest",
            client_rack=f"r{follower}",
            observer=heard,
        ) as consumer:
            assert await read(consumer, 3) == numbers("before", 3)
            await write(client, tp, numbers("after", 3))
            assert await read(consumer, 3) == numbers("after", 3)
            assert heard.nodes == {leader, follower}
            heard.nodes.clear()
            await write(client, tp, [b"last"])
            assert await read(consumer, 1) == [b"last"]
            assert heard.nodes <= {follower}


class FetchTimes:
    """Notes when fetches are sent, on the event loop's clock."""

    def __init__(self) -> None:
        self.sent: list[float] = []

    def request_sent(self, api: str, version: int, node_id: int, size: int) -> None:
        if api == "Fetch":
            self.sent.append(asyncio.get_running_loop().time())

    @property
    def last_wait(self) -> float:
        """Seconds between the last two."""
        return self.sent[-1] - self.sent[-2] if len(self.sent) > 1 else 0.0


async def test_a_quiet_broker_keeps_fetches_longer_and_no_record(
    real_kafka: Kafka, topic: TopicFactory
):
    name, fetches = topic(2), FetchTimes()
    first, second = (TopicPartition(name, n) for n in range(2))
    async with (
        asyncio.timeout(HANGS),
        Client(real_kafka.bootstrap_servers) as client,
        Consumer(
            real_kafka.bootstrap_servers,
            assign=[first],
            auto_offset_reset="earliest",
            observer=fetches,
        ) as consumer,
    ):
        waiting = asyncio.ensure_future(anext(consumer))
        await until(lambda: fetches.last_wait >= 1.5)
        # The fetch that waits is the one that brings it.
        sent = len(fetches.sent)
        await write(client, first, [b"first"])
        assert (await waiting).value == b"first"
        assert len(fetches.sent) <= sent + 1

        await until(lambda: fetches.last_wait >= 1.5)
        sent = len(fetches.sent)
        consumer.assign([first, second])
        waiting = asyncio.ensure_future(anext(consumer))
        # Beside it, once: the partition is empty.
        await until(lambda: len(fetches.sent) > sent)
        await write(client, second, [b"second"])
        assert (await waiting).value == b"second"
