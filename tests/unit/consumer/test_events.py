"""What a consumer reports to observers for metrics, and its statistics."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from kafkaio._config import ConsumerConfig, ProducerConfig
from kafkaio._consumer import Consumer
from kafkaio._producer import Producer
from kafkaio._runtime.observer import FetchedPart, Observer
from kafkaio.errors import AuthorizationError
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.join_group import JoinGroupResponse
from kafkaio.testing import Broker
from kafkaio.types import OffsetAndMetadata, TopicPartition
from tests.fakes.broker import FakeCluster
from tests.unit.consumer.conftest import MakeConsumer
from tests.unit.consumer.fake_log import FakeLogs
from tests.unit.consumer.group_fakes import FakeGroup
from tests.unit.consumer.test_in_a_group import MEMBER, group, settle

__all__ = ["group"]

ONE = TopicPartition("one", 0)
EARLIEST = {"auto_offset_reset": "earliest"}
ALONE: dict[str, Any] = {"assign": [ONE], **EARLIEST}


class Heard(Observer):
    def __init__(self) -> None:
        self.fetches: list[tuple[int, float, dict[TopicPartition, FetchedPart]]] = []
        self.handed: list[tuple[TopicPartition, int]] = []
        self.commits: list[tuple[dict[TopicPartition, OffsetAndMetadata], float]] = []
        self.heartbeats: list[tuple[str, float]] = []
        self.rebalances: list[tuple[str, float]] = []
        self.failures: list[tuple[str, BaseException | None]] = []

    def fetch_answered(
        self,
        node_id: int,
        seconds: float,
        parts: Mapping[TopicPartition, FetchedPart],
    ) -> None:
        self.fetches.append((node_id, seconds, dict(parts)))

    def records_handed_out(self, partition: TopicPartition, records: int) -> None:
        self.handed.append((partition, records))

    def offsets_committed(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], seconds: float
    ) -> None:
        self.commits.append((dict(offsets), seconds))

    def heartbeat_answered(self, group: str, seconds: float) -> None:
        self.heartbeats.append((group, seconds))

    def rebalance_completed(self, group: str, seconds: float) -> None:
        self.rebalances.append((group, seconds))

    def rebalance_failed(self, group: str, error: BaseException | None) -> None:
        self.failures.append((group, error))


async def test_a_fetch_and_what_was_taken_of_it(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
) -> None:
    # Together they are too large for one chunk.
    logs.append("one", 0, b"a", b"b" * 70_000)
    logs.append("one", 0, b"c")
    heard = Heard()
    async with make(heard, **ALONE) as consumer:
        await anext(consumer)
        assert heard.handed == []
        await anext(consumer)
        await anext(consumer)
        assert heard.handed == [(ONE, 2)]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(10):
                await anext(consumer)
        assert heard.handed == [(ONE, 2), (ONE, 1)]
    node, seconds, parts = next(fetch for fetch in heard.fetches if fetch[2])
    assert node == cluster.leader("one", 0)
    assert 0 <= seconds < 1
    assert parts[ONE].records == 3
    assert 2 * 61 < parts[ONE].size - 70_000 < 300
    empty = [fetch for fetch in heard.fetches if not fetch[2]]
    assert empty


async def test_small_batches_that_follow_one_another_are_read_as_one(
    logs: FakeLogs, make: MakeConsumer
) -> None:
    for value in (b"a", b"b", b"c"):
        logs.append("one", 0, value)
    logs.log("one", 0).marker(7, commit=True)
    for value in (b"e", b"f" * 70_000, b"g"):
        logs.append("one", 0, value)
    heard = Heard()
    values = []
    async with make(heard, isolation_level="read_committed", **ALONE) as consumer:
        async for record in consumer:
            values.append(record.value[:1])
            if len(values) == 6:
                break
        assert (await consumer.poll(timeout=1)).records == []
        assert await consumer.position(ONE) == 7
    assert values == [b"a", b"b", b"c", b"e", b"f", b"g"]
    assert heard.handed == [(ONE, 3), (ONE, 2), (ONE, 1)]


@pytest.mark.parametrize("way", ["poll", "batches", "run"])
async def test_each_way_to_read_counts_each_record_once(
    way: str, logs: FakeLogs, make: MakeConsumer
) -> None:
    for n in range(4):
        logs.append("one", 0, *(b"%d" % n for n in range(5)))
    heard = Heard()
    seen = 0
    async with make(heard, **ALONE) as consumer:
        if way == "poll":
            while seen < 20:
                seen += len((await consumer.poll(max_records=3)).records)
        elif way == "batches":
            async for batch in consumer.batches(max_records=7, max_wait=0.0):
                seen += len(batch)
                if seen >= 20:
                    break
        else:
            done = asyncio.Event()

            async def handle(record: Any) -> None:
                nonlocal seen
                seen += 1
                if seen == 20:
                    done.set()

            task = asyncio.ensure_future(consumer.run(handle))
            await done.wait()
            task.cancel()
            await asyncio.wait([task])
    assert seen == 20
    assert sum(count for _, count in heard.handed) == 20
    assert {tp for tp, _ in heard.handed} == {ONE}


async def test_figures_of_partitions_and_idle_time(
    logs: FakeLogs, make: MakeConsumer
) -> None:
    logs.append("one", 0, b"a", b"b", b"c", b"d")
    async with make(**ALONE) as consumer:
        # Without a fetch its ends are not known; the consumer fetches ahead.
        [place] = consumer.statistics().partitions.values()
        assert place.position == 0
        batch = await anext(consumer.batches(max_records=3, max_wait=0.0))
        assert len(batch) == 3
        statistics = consumer.statistics()
        place = statistics.partitions[ONE]
        assert (place.position, place.lag, place.lead) == (3, 1, 3)
        before = statistics.idle_seconds
        await anext(consumer)
        reading = asyncio.ensure_future(anext(consumer))
        await asyncio.sleep(5)
        assert consumer.statistics().idle_seconds - before == pytest.approx(5, abs=0.1)
        reading.cancel()
        await asyncio.wait([reading])
        await asyncio.sleep(5)
        assert consumer.statistics().idle_seconds - before == pytest.approx(5, abs=0.1)
    assert consumer.statistics().partitions == {}


async def test_a_partition_that_goes_while_another_thread_reads(
    make: MakeConsumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    partitions = [TopicPartition("orders", number) for number in range(3)]
    async with make(assign=partitions, auto_offset_reset="earliest") as consumer:
        core = consumer._core
        ends_of = core.fetcher.ends_of

        def then_gone(tp: TopicPartition) -> object:
            for each in partitions:
                core.reader.positions.unassign(each)
            return ends_of(tp)

        monkeypatch.setattr(core.fetcher, "ends_of", then_gone)
        assert list(core.statistics().partitions) == partitions


async def test_commits_have_their_time(
    cluster: FakeCluster, group: FakeGroup, logs: FakeLogs, make: MakeConsumer
) -> None:
    logs.append("orders", 0, b"a")
    heard = Heard()
    async with make(heard, **MEMBER, enable_auto_commit=False) as consumer:
        await anext(consumer)
        cluster.delay(ApiKey.OFFSET_COMMIT, 0.5)
        await consumer.commit()
    [(offsets, seconds)] = heard.commits
    assert offsets[TopicPartition("orders", 0)].offset == 1
    assert seconds == pytest.approx(0.5, abs=0.1)


async def test_rebalances_and_heartbeats_have_their_time(
    cluster: FakeCluster, group: FakeGroup, make: MakeConsumer
) -> None:
    heard, other = Heard(), Heard()
    cluster.delay(ApiKey.HEARTBEAT, 0.25)
    async with make(heard, **MEMBER) as first:
        await settle(first)
        assert [name for name, _ in heard.rebalances] == ["g"]
        async with make(other, **MEMBER) as second:
            await settle(first, second)
            assert len(other.rebalances) >= 1
            assert len(heard.rebalances) >= 2
        await settle(first)
    assert all(0 <= seconds < 60 for _, seconds in heard.rebalances)
    assert heard.failures == other.failures == []
    assert heard.heartbeats
    assert heard.heartbeats[0] == ("g", pytest.approx(0.25, abs=0.05))


async def test_a_refused_member_is_a_failed_rebalance(
    cluster: FakeCluster, group: FakeGroup, make: MakeConsumer
) -> None:
    refused = JoinGroupResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    cluster.on(ApiKey.JOIN_GROUP, refused)
    heard = Heard()
    consumer = make(heard, **MEMBER)
    with pytest.raises(AuthorizationError):
        await consumer.start()
    [(name, error)] = heard.failures
    assert name == "g"
    assert isinstance(error, AuthorizationError)
    assert heard.rebalances == []


async def test_rebalances_of_kip_848_have_their_time() -> None:
    heard = Heard()
    async with Broker(topics={"orders": 2}, memory_transport=True) as broker:
        options: Any = {"group_id": "g", "group_protocol": "consumer"}
        config = ConsumerConfig.of(broker.bootstrap_servers, options)
        async with Consumer.from_config(
            config, topics="orders", observer=heard, dial=broker.dial
        ) as consumer:
            # Started: it has its assignment.
            assert len(consumer.assignment) == 2
            assert consumer.statistics().group_protocol == "consumer"
    assert [name for name, _ in heard.rebalances] == ["g"]
    assert 0 <= heard.rebalances[0][1] < 60
    assert heard.failures == []
    assert heard.heartbeats[0][0] == "g"


async def test_offsets_in_a_transaction_have_their_time() -> None:
    heard, steps = Heard(), Steps()
    async with Broker(topics={"orders": 1, "out": 1}, memory_transport=True) as broker:
        servers, dial = broker.bootstrap_servers, broker.dial
        about: Any = {"transactional_id": "billing"}
        producing = ProducerConfig.of(servers, about)
        about = {"group_id": "g", "enable_auto_commit": False, **EARLIEST}
        config = ConsumerConfig.of(servers, about)
        async with (
            Producer.from_config(producing, observer=steps, dial=dial) as producer,
            Consumer.from_config(
                config, topics="orders", observer=heard, dial=dial
            ) as consumer,
        ):
            async with producer.transaction() as tx:
                await tx.send("orders", b"x")
            async with producer.transaction(consumer=consumer) as tx:
                record = await anext(consumer)
                await tx.send("out", record.value)
            assert steps.heard[-3:] == ["begin", "send_offsets", "commit"]
            [(offsets, seconds)] = heard.commits
    assert offsets[TopicPartition("orders", 0)].offset == 1
    assert 0 <= seconds < 60


class Steps(Observer):
    def __init__(self) -> None:
        self.heard: list[str] = []

    def transaction_step(
        self, transactional_id: str, step: str, seconds: float
    ) -> None:
        assert seconds >= 0
        self.heard.append(step)
