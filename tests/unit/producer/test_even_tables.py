"""Rows without keys are spread evenly over the partitions, and cheaply."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from kafkaio._config import ProducerConfig
from kafkaio._producer import Producer
from kafkaio.protocol._api_keys import ApiKey
from tests.fakes.broker import HANG, FakeCluster
from tests.unit.producer.broker_log import Logs
from tests.virtual_loop import VirtualClockLoop

TOPICS = {"even": 8, "other": 3, "many": 60}
RELAXED = settings(max_examples=15, suppress_health_check=list(HealthCheck))


def run(coroutine: Any) -> Any:
    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        return runner.run(coroutine)


def table_of(rows: int, size: int = 5) -> pa.Table:
    return pa.table({"value": pa.array([b"v" * size] * rows, pa.binary())})


async def written(
    tasks: Sequence[Sequence[pa.Table]],
    topic: str = "even",
    options: Mapping[str, object] | None = None,
    **arguments: Any,
) -> tuple[Counter[int], int]:
    """Write tables, those of a task by one producer; return rows by partition."""
    async with FakeCluster(nodes=2, topics=TOPICS) as cluster:
        logs = Logs(cluster)
        config = ProducerConfig.of(cluster.bootstrap, dict(options or {}))
        for tables in tasks:
            async with Producer.from_config(config, dial=cluster.dial) as producer:
                for table in tables:
                    await producer.enqueue_table(topic, table, **arguments)
        found = {n: logs.log(topic, n) for n in range(TOPICS[topic])}
        batches = sum(len(log.batches) for log in found.values())
        return Counter({n: len(log.records) for n, log in found.items()}), batches


def ratio(rows: Counter[int]) -> float:
    return max(rows.values()) / max(1, min(rows.values()))


@pytest.mark.parametrize("size", [1, 5, 100])
@pytest.mark.parametrize("tasks", [1, 2, 4])
async def test_tasks_of_a_job_fill_the_partitions_evenly(size: int, tasks: int) -> None:
    rows, batches = await written([[table_of(20_000 // tasks, size)]] * tasks)
    assert rows.total() == 20_000
    assert ratio(rows) <= 1.01
    # No more than a batch for a partition, or one for each 64 KB.
    assert batches <= max(9 * tasks, 20_000 * (size + 8) // 65_536 + 9 * tasks)


@RELAXED
@given(
    st.lists(
        st.lists(st.integers(2_500, 10_000), min_size=1, max_size=3),
        min_size=1,
        max_size=4,
    ),
    st.integers(0, 60),
)
def test_large_tables_are_even_each_by_itself(
    tasks: list[list[int]], size: int
) -> None:
    size += 10
    found = [[table_of(rows, size) for rows in tables] for tables in tasks]
    rows, _ = run(written(found))
    # A run is a row longer than another at most.
    assert max(rows.values()) - min(rows.values()) <= 16 * sum(map(len, tasks))
    assert ratio(rows) <= 1.05


@pytest.mark.parametrize("rows", [10, 100])
async def test_small_tables_of_one_producer_are_even_together(rows: int) -> None:
    count = 20_000 // rows
    found, batches = await written([[table_of(rows, 60)] * count])
    assert found.total() == 20_000
    assert ratio(found) <= 1.5
    assert batches <= 20_000 * 70 // 16_384 + 8  # they are not shattered


async def test_a_table_that_is_too_small_for_all_partitions_is_not_shattered() -> None:
    rows, batches = await written([[table_of(2_000)]], "many")
    assert rows.total() == 2_000
    assert batches <= 8
    # The next ones go on from there.
    rows, _ = await written([[table_of(2_000)] * 60], "many")
    assert ratio(rows) <= 1.5


async def test_rows_with_keys_stay_with_them() -> None:
    keys = [b"%d" % (n % 97) if n % 3 else None for n in range(9_000)]
    table = table_of(9_000, 20).append_column("k", pa.array(keys, pa.binary()))
    rows, _ = await written([[table]], "other", key="k")
    without, _ = await written([[table.filter(pa.compute.is_valid(table["k"]))]],
                               "other", key="k")  # fmt: skip
    keyless = Counter({n: rows[n] - without[n] for n in rows})
    assert keyless.total() == 3_000
    assert ratio(keyless) <= 1.01
    # Those with keys go where they would go without the others.
    assert without.total() == 6_000


async def test_keys_that_are_ignored_count_for_nothing() -> None:
    keys = pa.array([b"same"] * 8_000, pa.binary())
    table = table_of(8_000, 20).append_column("k", keys)
    options = {"partitioner_ignore_keys": True}
    rows, _ = await written([[table]], options=options, key="k")
    assert ratio(rows) <= 1.01


async def test_rows_of_several_topics_are_even_in_each() -> None:
    names = pa.array(["even", "other"] * 10_000).dictionary_encode()
    table = table_of(20_000, 60).append_column("t", names)
    async with FakeCluster(nodes=2, topics=TOPICS) as cluster:
        logs = Logs(cluster)
        config = ProducerConfig.of(cluster.bootstrap, {})
        async with Producer.from_config(config, dial=cluster.dial) as producer:
            await producer.enqueue_table(None, table, topic_column="t")
        for topic in ("even", "other"):
            counts = [len(logs.log(topic, n).records) for n in range(TOPICS[topic])]
            assert sum(counts) == 10_000
            assert max(counts) <= 1.5 * min(counts)


async def test_a_partition_of_its_own_is_obeyed() -> None:
    table = table_of(9_000).append_column("p", pa.array([2, None, 5] * 3_000))
    rows, _ = await written([[table]], partition_column="p")
    assert rows[2] == 3_000 + rows[0]
    assert rows[5] == 3_000 + rows[1]
    rows, _ = await written([[table_of(9_000)]], partition=6)
    assert rows[6] == 9_000


async def test_records_between_tables_stay_together() -> None:
    async with FakeCluster(nodes=2, topics=TOPICS) as cluster:
        logs = Logs(cluster)
        config = ProducerConfig.of(cluster.bootstrap, {})
        async with Producer.from_config(config, dial=cluster.dial) as producer:
            for _ in range(30):
                await producer.enqueue("even", b"single")
                await producer.enqueue_table("even", table_of(3_000))
        places = {
            n for n in range(8) if b"single" in logs.values("even", n)
        }  # KIP-794: one partition takes 64 KB
        assert len(places) == 1


async def test_a_table_that_is_cancelled_lends_nothing() -> None:
    async with FakeCluster(nodes=2, topics=TOPICS) as cluster:
        logs = Logs(cluster)
        config = ProducerConfig.of(cluster.bootstrap, {"buffer_memory": 30_000})
        async with Producer.from_config(config, dial=cluster.dial) as producer:
            first = await producer.send("even", b"single")
            cluster.on(ApiKey.PRODUCE, HANG, times=2)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1):
                    await producer.enqueue_table("even", table_of(9_000))
            sticky = producer._intake._accumulator.backlog.topics["even"].sticky
            assert sticky.partition == first.partition
        assert logs.values("even", first.partition)[0] == b"single"


async def test_a_table_leaves_out_partitions_whose_broker_is_slow() -> None:
    async with FakeCluster(nodes=2, topics=TOPICS) as cluster:
        logs = Logs(cluster)

        async def slow(node: Any, header: Any, request: Any) -> Any:
            if node.node_id == 1:
                await asyncio.sleep(5)
            return logs.produce(node, header, request)

        cluster.on(ApiKey.PRODUCE, slow)
        options = {"buffer_memory": 2_000_000, "batch_size": 16_384}
        config = ProducerConfig.of(cluster.bootstrap, options)
        async with Producer.from_config(config, dial=cluster.dial) as producer:
            for _ in range(10):
                await producer.enqueue_table("even", table_of(10_000, 90))
        leaders = {n: cluster.leader("even", n) for n in range(8)}
        per_node = Counter[int]()
        for n, leader in leaders.items():
            per_node[leader] += len(logs.log("even", n).records)
        slow_rows, quick_rows = sorted(per_node.values())
        assert per_node.total() == 100_000
        assert quick_rows > 2 * slow_rows
