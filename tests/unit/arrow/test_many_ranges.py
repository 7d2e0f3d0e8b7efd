"""Many ranges at once: requests, leaders that do not answer, topics made again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import pytest

from kafkaio._client import Client, Controller
from kafkaio._config import ClientConfig, ProducerConfig
from kafkaio._producer import Producer
from kafkaio.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    CorruptRecord,
    NetworkError,
    OffsetOutOfRange,
    RequestTimeout,
    UnknownTopicOrPartition,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicState,
)
from kafkaio.protocol.messages.fetch import FetchRequest
from kafkaio.testing import Broker, delay, error
from kafkaio.types import OffsetRange, TopicPartition
from tests.fakes.broker import HANG, FakeCluster
from tests.unit.consumer.fake_log import FakeLogs

pa = pytest.importorskip("pyarrow", exc_type=ImportError)
from kafkaio.arrow import RangeReader, read_ranges, schema  # noqa: E402

MANY = [TopicPartition("many", number) for number in range(6)]
TEXT = pa.schema(
    [("partition", pa.int32()), ("offset", pa.int64()), ("value", pa.string())]
)
Place = tuple[int, int]


@pytest.fixture
async def cluster() -> AsyncIterator[FakeCluster]:
    async with FakeCluster(nodes=3, topics={"many": 6, "other": 1}) as cluster:
        yield cluster


@pytest.fixture
def logs(cluster: FakeCluster) -> FakeLogs:
    """Five records in each partition, in batches of their own."""
    logs = FakeLogs(cluster)
    for tp in [*MANY, TopicPartition("other", 0)]:
        for n in range(5):
            logs.append(*tp, b"%d" % n)
    return logs


def client_of(home: Any, **options: Any) -> Client:
    is_fake = isinstance(home, FakeCluster)
    servers = home.bootstrap if is_fake else home.bootstrap_servers
    config = ClientConfig.of(servers, options)
    return Client.from_config(config, dial=home.dial)


def whole(count: int = 5, partitions: list[TopicPartition] = MANY) -> list[OffsetRange]:
    return [OffsetRange(tp, 0, count) for tp in partitions]


async def places_of(reader: RangeReader) -> list[Place]:
    found: list[Place] = []
    async for batch in reader:
        batch.validate(full=True)
        pairs = zip(batch["partition"], batch["offset"], strict=True)
        found += [(partition.as_py(), offset.as_py()) for partition, offset in pairs]
    return found


def expected(partitions: list[int], count: int = 5) -> list[Place]:
    return [(partition, n) for partition in partitions for n in range(count)]


def time() -> float:
    return asyncio.get_running_loop().time()


class TestRequests:
    """How many requests it takes, and what comes together."""

    @pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
    @pytest.mark.parametrize("nodes", [1, 3])
    async def test_one_request_for_each_leader(
        self, nodes: int, isolation: Any
    ) -> None:
        broker = Broker(nodes=nodes, topics={"wide": 100}, memory_transport=True)
        async with broker:
            await fill(broker, "wide", 500, 100)
            rule = broker.faults.on("Fetch", delay(0.02))
            ranges = [OffsetRange(TopicPartition("wide", n), 0, 5) for n in range(100)]
            async with client_of(broker) as client:
                began = time()
                reader = read_ranges(client, ranges, isolation_level=isolation)
                assert sorted(await places_of(reader)) == expected([*range(100)])
                assert time() - began < 0.2
            assert rule.count <= 2 * nodes

    async def test_thousands_of_ranges(self) -> None:
        async with Broker(topics={"wide": 2_000}, memory_transport=True) as broker:
            await fill(broker, "wide", 2_000, 2_000)
            rule = broker.faults.on("Fetch", delay(0))
            ranges = [
                OffsetRange(TopicPartition("wide", n), 0, 1) for n in range(2_000)
            ]
            async with client_of(broker) as client:
                batches = [b async for b in read_ranges(client, ranges)]
            assert sum(batch.num_rows for batch in batches) == 2_000
            assert rule.count <= 4
            assert len(batches) <= 4

    async def test_ranges_share_batches(
        self, cluster: FakeCluster, logs: FakeLogs
    ) -> None:
        other = TopicPartition("other", 0)
        chosen = pa.schema([*schema(), ("leader_epoch", pa.int32())])
        async with client_of(cluster) as client:
            reader = read_ranges(
                client, whole(2, [MANY[0], other, MANY[3]]), schema=chosen
            )
            batches = [batch async for batch in reader]
        rows = [row for batch in batches for row in batch.to_pylist()]
        # All of them are at one leader.
        assert len(batches) == len(cluster.requests(FetchRequest)) == 1
        assert [(row["topic"], row["partition"], row["offset"]) for row in rows] == [
            ("many", 0, 0),
            ("many", 0, 1),
            ("other", 0, 0),
            ("other", 0, 1),
            ("many", 3, 0),
            ("many", 3, 1),
        ]
        assert {row["leader_epoch"] for row in rows} == {0}

    async def test_a_range_without_records_between_others(
        self, cluster: FakeCluster, logs: FakeLogs
    ) -> None:
        logs.log(*MANY[3]).marker(7, commit=True)
        ranges = [
            OffsetRange(MANY[0], 0, 2),
            OffsetRange(MANY[3], 5, 6),
            OffsetRange(TopicPartition("other", 0), 1, 3),
        ]
        for kind in (pa.string(), pa.dictionary(pa.int16(), pa.string())):
            async with client_of(cluster) as client:
                reader = read_ranges(client, ranges, schema=pa.schema({"topic": kind}))
                [batch] = [batch async for batch in reader]
            batch.validate(full=True)
            assert batch["topic"].to_pylist() == ["many", "many", "other", "other"]

    async def test_a_batch_that_does_not_fit_beside_others(self) -> None:
        """A broker sends a large batch of the first partition alone."""
        async with Broker(topics={"t": 8}, memory_transport=True) as broker:
            config = ProducerConfig.of(broker.bootstrap_servers, {})
            producer = Producer.from_config(config, dial=broker.dial)
            async with producer:
                for n in range(16):
                    await producer.send("t", b"v" * 90_000, partition=n % 8)
            ranges = [OffsetRange(TopicPartition("t", n), 0, 2) for n in range(8)]
            rule = broker.faults.on("Fetch", delay(0))
            async with client_of(broker) as client:
                reader = read_ranges(client, ranges)
                assert await places_of(reader) == expected([*range(8)], 2)
                # The topic's first answer tells how large its records are.
                assert rule.count <= 5
                small = read_ranges(client, ranges, fetch_bytes=1_000)
                assert await places_of(small) == expected([*range(8)], 2)

    async def test_batches_of_very_different_sizes(self) -> None:
        """Nothing waits for a range that an answer had no room for."""
        broker = Broker(topics={"t": 20}, memory_transport=True)
        async with broker:
            config = ProducerConfig.of(broker.bootstrap_servers, {})
            async with Producer.from_config(config, dial=broker.dial) as producer:
                for n in range(400):
                    size = 150_000 if n % 37 == 0 else n * 7_919 % 9_000
                    await producer.send("t", b"v" * size, partition=n % 20)
            ranges = [OffsetRange(TopicPartition("t", n), 0, 20) for n in range(20)]
            async with client_of(broker) as client:
                for fetch_bytes in (3_000, 100_000, 1_000_000):
                    began = time()
                    reader = read_ranges(client, ranges, fetch_bytes=fetch_bytes)
                    assert await places_of(reader) == expected([*range(20)], 20)
                    assert time() - began < 0.5  # nobody was waited for

    async def test_faults_of_single_partitions(self) -> None:
        async with Broker(topics={"t": 8}, memory_transport=True) as broker:
            await fill(broker, "t", 800, 8)
            for n, code in enumerate(
                (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.OFFSET_NOT_AVAILABLE)
            ):
                rule = error(code, rate=0.3, seed=n)
                for number in (n, n + 4):
                    broker.faults.on("Fetch", rule, partition=("t", number))
            ranges = [OffsetRange(TopicPartition("t", n), n, 100) for n in range(8)]
            async with client_of(broker, retry_backoff_ms=1) as client:
                reader = read_ranges(client, ranges, fetch_bytes=2_000)
                assert sorted(await places_of(reader)) == [
                    (n, offset) for n in range(8) for offset in range(n, 100)
                ]


async def fill(broker: Broker, topic: str, count: int, partitions: int) -> None:
    config = ProducerConfig.of(broker.bootstrap_servers, {"batch_size": 500})
    async with Producer.from_config(config, dial=broker.dial) as producer:
        for n in range(count):
            await producer.enqueue(topic, b"%d" % n, partition=n % partitions)
        await producer.flush()


class TestLeaders:
    """One leader fails, the others go on."""

    #: The partitions of node 0, and the others.
    HELD, FREE = [0, 3], [1, 2, 4, 5]

    @pytest.mark.parametrize("is_gone", [False, True])
    async def test_a_leader_that_does_not_answer_holds_no_others(
        self, cluster: FakeCluster, logs: FakeLogs, *, is_gone: bool
    ) -> None:
        cluster.on(ApiKey.FETCH, lambda *_: HANG, node=0)
        async with client_of(cluster, default_api_timeout_ms=40_000) as client:
            if is_gone:
                await client.offsets(dict.fromkeys(MANY, "latest"))
                cluster.stop(0)
            began, found = time(), list[Place]()
            reader = read_ranges(client, whole())
            while len(found) < 20:
                batch = await anext(reader)
                found += [
                    (row["partition"], row["offset"]) for row in batch.to_pylist()
                ]
            assert found == expected(self.FREE)
            assert time() - began < 1
            assert reader.remaining() == [OffsetRange(MANY[n], 0, 5) for n in self.HELD]
            began = time()
            with pytest.raises(RequestTimeout, match="many-0 from offset 0 to 5") as it:
                await anext(reader)
            assert 30 < time() - began < 41
            assert isinstance(it.value.__cause__, NetworkError | RequestTimeout)
            if is_gone:
                cluster.start(0)
            cluster.reset(ApiKey.FETCH)
            cluster.on(ApiKey.FETCH, logs.fetch)
            assert await places_of(reader) == expected(self.HELD)
            assert reader.remaining() == []

    @pytest.mark.parametrize("delays", [(0.3, 0, 0), (2.4, 2, 2.2)])
    async def test_a_leader_that_is_late_comes_in_its_turn(
        self, cluster: FakeCluster, logs: FakeLogs, delays: tuple[float, ...]
    ) -> None:
        for node, seconds in enumerate(delays):
            cluster.delay(ApiKey.FETCH, seconds, node=node)
        async with client_of(cluster) as client:
            assert await places_of(read_ranges(client, whole())) == expected(
                [*range(6)]
            )

    async def test_a_range_that_has_no_records_yet_holds_no_others(
        self, cluster: FakeCluster, logs: FakeLogs
    ) -> None:
        logs.log(*MANY[1]).last_stable = 3
        async with client_of(cluster) as client:
            reader = read_ranges(client, whole(), isolation_level="read_committed")
            found = list[Place]()
            while len(found) < 28:
                batch = await anext(reader)
                found += [
                    (row["partition"], row["offset"]) for row in batch.to_pylist()
                ]
            assert sorted(found) == sorted(
                set(expected([*range(6)])) - {(1, 3), (1, 4)}
            )
            assert reader.remaining() == [OffsetRange(MANY[1], 3, 5)]
            logs.log(*MANY[1]).last_stable = None
            assert await places_of(reader) == [(1, 3), (1, 4)]

    async def test_an_error_of_one_range_is_told_in_its_turn(
        self, cluster: FakeCluster, logs: FakeLogs
    ) -> None:
        logs.log(*MANY[3]).start = 2
        async with client_of(cluster) as client:
            reader = read_ranges(client, whole())
            found = list[Place]()
            while len(found) < 15:
                rows = (await anext(reader)).to_pylist()
                found += [(row["partition"], row["offset"]) for row in rows]
            with pytest.raises(OffsetOutOfRange, match="many-3 cannot be read") as it:
                await anext(reader)
            assert found == expected([0, 1, 2])
            assert (it.value.partition, it.value.position) == (3, 0)
            assert reader.remaining() == [OffsetRange(MANY[n], 0, 5) for n in (3, 4, 5)]
            await reader.aclose()
            assert len(reader.remaining()) == 3

    async def test_a_corrupt_batch_leaves_the_others_as_they_are(
        self, cluster: FakeCluster, logs: FakeLogs
    ) -> None:
        log = logs.log(*MANY[3])
        base, last, timestamp, batch = log.batches[1]
        log.batches[1] = (base, last, timestamp, batch[:-1] + b"?")
        async with client_of(cluster) as client:
            reader = read_ranges(client, whole(5, [MANY[0], MANY[3], MANY[1]]))
            first = (await anext(reader)).to_pylist()
            assert [(row["partition"], row["offset"]) for row in first] == [
                *expected([0]),
                (3, 0),
            ]
            for _ in range(2):
                with pytest.raises(CorruptRecord, match="checksum"):
                    await anext(reader)
            log.batches[1] = (base, last, timestamp, batch)
            assert await places_of(reader) == [
                *[(3, n) for n in range(1, 5)],
                *expected([1]),
            ]

    async def test_a_value_that_has_no_form_leaves_the_others_as_they_are(
        self, cluster: FakeCluster, logs: FakeLogs
    ) -> None:
        logs.append(*MANY[3], b"\xff")
        async with client_of(cluster) as client:
            reader = read_ranges(client, whole(6, [MANY[3]]), schema=TEXT)
            with pytest.raises(ArgumentValueError, match="a value of many-3 from"):
                await anext(reader)
            ranges = [*whole(5, MANY[:1]), *whole(6, [MANY[3]]), *whole(5, MANY[1:2])]
            reader = read_ranges(client, ranges, schema=TEXT)
            first = (await anext(reader)).to_pylist()
            assert [(row["partition"], row["offset"]) for row in first] == expected([0])
            for _ in range(2):
                with pytest.raises(ArgumentValueError, match="a value of many-3 from"):
                    await anext(reader)

    async def test_steps_that_are_cancelled_have_taken_nothing(
        self, cluster: FakeCluster, logs: FakeLogs
    ) -> None:
        cluster.delay(ApiKey.FETCH, 0.01)
        async with client_of(cluster) as client:
            reader = read_ranges(client, whole(), fetch_bytes=200)
            found, turns = list[Place](), 0
            while reader.remaining():
                turns += 1
                step = asyncio.ensure_future(anext(reader, None))
                for _ in range(turns % 13):
                    await asyncio.sleep(0)
                step.cancel()
                try:
                    batch = await step
                except asyncio.CancelledError:
                    await asyncio.sleep(0.01)
                    continue
                if batch is not None:
                    rows = batch.to_pylist()
                    found += [(row["partition"], row["offset"]) for row in rows]
            assert sorted(found) == expected([*range(6)])
            assert turns > 12


class TestTopicIds:
    """Topics that are deleted and made again."""

    @pytest.fixture
    async def broker(self) -> AsyncIterator[Broker]:
        async with Broker(nodes=3, memory_transport=True) as broker:
            broker.create_topic("t", 3)
            await fill(broker, "t", 30, 3)
            yield broker

    RANGES = whole(10, [TopicPartition("t", n) for n in range(3)])

    @staticmethod
    async def make_again(broker: Broker, count: int = 30) -> UUID:
        """Delete the topic, make it again and fill it; returns its id."""
        async with client_of(broker) as client:
            request = DeleteTopicsRequest(
                topics=[DeleteTopicState(name="t")], timeout_ms=1_000
            )
            await client.request(request, Controller)
            broker.create_topic("t", 3)
            await fill(broker, "t", count, 3)
            await client.offsets({TopicPartition("t", 0): "latest"})
            found = client.cluster.topic_id("t")
            assert found is not None
            return found

    @pytest.mark.parametrize("says_id", [False, True])
    async def test_a_client_that_is_kept_reads_the_new_topic(
        self, broker: Broker, *, says_id: bool
    ) -> None:
        metadata = broker.faults.on("Metadata", delay(0))
        async with client_of(broker) as kept:
            assert len(await places_of(read_ranges(kept, self.RANGES))) == 30
            new_id = await self.make_again(broker)
            before = metadata.count
            reader = read_ranges(
                kept, self.RANGES, topic_ids={"t": new_id} if says_id else None
            )
            assert await places_of(reader) == expected([0, 1, 2], 10)
            if says_id:
                # The view was known to be old, and no fetch was refused.
                assert metadata.count - before == 1
            before = metadata.count
            again = read_ranges(kept, self.RANGES, topic_ids={"t": new_id})
            assert len(await places_of(again)) == 30
            assert metadata.count == before

    @pytest.mark.parametrize("is_kept", [False, True])
    async def test_a_topic_with_another_id_is_not_read(
        self, broker: Broker, *, is_kept: bool
    ) -> None:
        async with client_of(broker) as client:
            await client.offsets({TopicPartition("t", 0): "latest"})
            old_id = client.cluster.topic_id("t")
            assert old_id is not None
            await self.make_again(broker)
            fresh = client if is_kept else client_of(broker)
            if not is_kept:
                await fresh.start()
            reader = read_ranges(fresh, self.RANGES, topic_ids={"t": old_id})
            with pytest.raises(UnknownTopicOrPartition, match="'t' was deleted and"):
                await anext(reader)
            await fresh.close()

    async def test_all_ranges_of_a_topic_are_of_one_id(self, broker: Broker) -> None:
        """Also those of which nothing was read when it was made again."""
        await fill(broker, "t", 300, 3)
        ranges = whole(100, [TopicPartition("t", n) for n in range(3)])
        async with client_of(broker, retry_backoff_ms=1) as client:
            reader = read_ranges(client, ranges, fetch_bytes=400)
            await anext(reader)
            await self.make_again(broker, 400)
            with pytest.raises(UnknownTopicOrPartition, match="'t' was deleted and"):
                await places_of(reader)
            assert len(reader.remaining()) == 3

    async def test_brokers_that_are_asked_by_name(self) -> None:
        """Metadata have ids from 2.8 on, fetches from 3.1 on."""
        made = Broker(as_version="2.8", memory_transport=True)
        async with made as broker:
            broker.create_topic("t", 3)
            await fill(broker, "t", 300, 3)
            ranges = whole(100, [TopicPartition("t", n) for n in range(3)])
            async with client_of(broker, metadata_max_age_ms=1_000) as client:
                old_id = (await client.find_topics("t"))["t"].topic_id
                assert old_id is not None
                reader = read_ranges(client, ranges, fetch_bytes=400)
                await anext(reader)
                await self.make_again(broker, 400)
                await asyncio.sleep(3)  # the view is refreshed
                with pytest.raises(UnknownTopicOrPartition, match="'t' was deleted"):
                    await places_of(reader)
                again = read_ranges(client, ranges, topic_ids={"t": old_id})
                with pytest.raises(UnknownTopicOrPartition, match="'t' was deleted"):
                    await anext(again)

    @pytest.mark.parametrize(
        "code", [ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID]
    )
    async def test_a_broker_that_does_not_know_the_topic_yet(
        self, broker: Broker, code: ErrorCode
    ) -> None:
        broker.faults.on("Fetch", error(code, times=2))
        async with client_of(broker) as client:
            reader = read_ranges(client, self.RANGES)
            assert sorted(await places_of(reader)) == expected([0, 1, 2], 10)

    async def test_arguments(self, broker: Broker) -> None:
        def read(ids: Any) -> None:
            read_ranges(client, self.RANGES, topic_ids=ids)

        async with client_of(broker) as client:
            for wrong in (5, ["t"], {"t": "id"}, {5: uuid4()}):
                with pytest.raises(ArgumentTypeError, match="topic_ids must"):
                    read(wrong)
