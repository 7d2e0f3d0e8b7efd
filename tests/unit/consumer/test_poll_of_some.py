"""``poll(partitions=)``: records of some partitions, while the others stay."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import kafkaio
from kafkaio._consumer.reading.iterators import Poll
from kafkaio.errors import ArgumentTypeError, ArgumentValueError, UsageError
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.testing import Broker
from kafkaio.types import TopicPartition
from tests.fakes.broker import DEFAULT, HANG, FakeCluster, Outcome
from tests.sim.loop import VirtualClockLoop
from tests.unit.consumer.conftest import MakeConsumer
from tests.unit.consumer.fake_log import FakeLogs
from tests.unit.consumer.test_deserialization import PARTITIONS, Scripted, World
from tests.unit.consumer.test_io_thread import real

ORDERS = [TopicPartition("orders", n) for n in range(3)]
EARLIEST = {"auto_offset_reset": "earliest"}


def filled(logs: FakeLogs, count: int = 4) -> None:
    for tp in ORDERS:
        for n in range(count):
            logs.append(*tp, b"%d" % n)


async def test_only_these_are_taken_and_the_others_stay(
    logs: FakeLogs, make: MakeConsumer
):
    filled(logs)
    async with make(assign=ORDERS, **EARLIEST) as consumer:
        await consumer.poll(max_records=0)
        await asyncio.sleep(1)  # everything is fetched
        taken = await consumer.poll(partitions=[ORDERS[1]])
        assert [r.topic_partition for r in taken.records] == [ORDERS[1]] * 4
        none = await consumer.poll(partitions={ORDERS[1]}, timeout=0)
        assert none.records == []
        rest = await consumer.poll(timeout=0)
        assert sorted(rest.by_partition) == [ORDERS[0], ORDERS[2]]
        assert [*map(len, rest.by_partition.values())] == [4, 4]


async def test_a_poll_waits_for_its_partitions_alone(
    logs: FakeLogs, make: MakeConsumer
):
    async with make(assign=ORDERS, **EARLIEST) as consumer:
        waiting = asyncio.create_task(consumer.poll(partitions=[ORDERS[2]]))
        await asyncio.sleep(1)
        logs.append(*ORDERS[0], b"not this")
        await asyncio.sleep(1)
        assert not waiting.done()
        logs.append(*ORDERS[2], b"this")
        assert [r.value for r in (await waiting).records] == [b"this"]


async def test_it_finishes_the_records_of_its_partitions_alone(
    logs: FakeLogs, make: MakeConsumer
):
    filled(logs)
    async with make(
        assign=ORDERS, group_id="g", auto_commit_interval_ms=100, **EARLIEST
    ) as consumer:
        for tp in ORDERS[:2]:
            await consumer.poll(partitions=[tp])
        # Asks for more of the second: those of the first may be worked on.
        await consumer.poll(partitions=[ORDERS[1]], timeout=1)
        found = await consumer.committed(ORDERS)
        at = [None if each is None else each.offset for each in found.values()]
        assert at == [0, 4, 0]
        await consumer.poll(timeout=1)
        await asyncio.sleep(1)
        found = await consumer.committed(ORDERS)
        at = [None if each is None else each.offset for each in found.values()]
        assert at == [4, 4, 0]
        await consumer.commit()
        assert (await consumer.committed(ORDERS))[ORDERS[2]].offset == 4  # type: ignore[union-attr]


async def test_partitions_that_are_not_assigned(logs: FakeLogs, make: MakeConsumer):
    async with make(assign=ORDERS[:2], **EARLIEST) as consumer:
        with pytest.raises(UsageError, match="orders-2 is not assigned"):
            await consumer.poll(partitions=ORDERS)
        with pytest.raises(ArgumentValueError, match="leave it out to read all"):
            await consumer.poll(partitions=[])
        with pytest.raises(ArgumentTypeError):
            await consumer.poll(partitions=["orders"])  # type: ignore[list-item]
        waiting = asyncio.create_task(consumer.poll(partitions=[ORDERS[1]]))
        await asyncio.sleep(1)
        consumer.assign(ORDERS[:1])
        logs.append(*ORDERS[0], b"wakes the poll")
        with pytest.raises(UsageError, match="orders-1 is not assigned"):
            await waiting


async def test_the_error_of_another_partition_waits_for_its_own_poll(
    logs: FakeLogs, make: MakeConsumer
):
    filled(logs)
    async with make(assign=ORDERS, auto_offset_reset="none") as consumer:
        for tp in ORDERS[:2]:
            consumer.seek(tp, 2)
        taken = await consumer.poll(partitions=ORDERS[:2])
        assert {r.offset for r in taken.records} <= {2, 3}
        # It is ready, because there is an error to raise.
        assert (await consumer.poll(partitions=[ORDERS[2]], max_records=0)) == Poll([])
        with pytest.raises(Exception, match="orders-2"):
            await consumer.poll(partitions=[ORDERS[2]])


# With the small ones the others fill the buffer, each with its share and a fetch more.
@pytest.mark.parametrize("budget", [3_500, 5_000, 12_000])
async def test_what_nobody_reads_does_not_keep_the_others_from_being_fetched(
    budget: int, logs: FakeLogs, make: MakeConsumer
):
    value = bytes(1_000)
    for tp in ORDERS:
        for _ in range(100):
            logs.append(*tp, value)
    async with make(
        assign=ORDERS,
        fetch_buffer_bytes=budget,
        max_partition_fetch_bytes=4_000,
        **EARLIEST,
    ) as consumer:
        await consumer.poll(max_records=0)
        await asyncio.sleep(5)  # the buffer is full, of all partitions
        seen: list[int] = []
        while len(seen) < 100:
            poll = await consumer.poll(partitions=[ORDERS[0]], timeout=60)
            assert poll.records
            seen += [r.offset for r in poll.records]
        rest: dict[TopicPartition, list[int]] = {tp: [] for tp in ORDERS[1:]}
        while sum(map(len, rest.values())) < 200:
            for tp, records in (await consumer.poll(timeout=60)).by_partition.items():
                rest[tp] += [r.offset for r in records]
    assert [seen, *rest.values()] == [[*range(100)]] * 3


async def test_what_had_to_make_room_is_not_fetched_for_nobody(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    """A batch that fills the buffer was dropped, and fetched at once again."""
    logs.append(*ORDERS[1], bytes(4_000))
    fetches = 0

    def count(*_: Any) -> Outcome:
        nonlocal fetches
        fetches += 1
        return DEFAULT if fetches < 100 else HANG

    cluster.on(ApiKey.FETCH, count)
    async with make(assign=ORDERS, fetch_buffer_bytes=5_000, **EARLIEST) as consumer:
        await consumer.poll(partitions=[ORDERS[0]], timeout=2)
        assert fetches < 30
        logs.append(*ORDERS[0], b"read")
        poll = await consumer.poll(partitions=[ORDERS[0]], timeout=2)
        assert [r.value for r in poll.records] == [b"read"]
        poll = await consumer.poll(timeout=2)
        assert [len(r.value or b"") for r in poll.records] == [4_000]


async def test_nothing_is_taken_with_a_limit_of_0(logs: FakeLogs, make: MakeConsumer):
    async with make(assign=ORDERS, **EARLIEST) as consumer:
        assert await consumer.poll(max_records=0, timeout=1) == Poll([])
        waiting = asyncio.create_task(consumer.poll(max_records=0))
        await asyncio.sleep(1)
        assert not waiting.done()
        logs.append(*ORDERS[1], b"v")
        assert await waiting == Poll([])
        assert len((await consumer.poll(timeout=0)).records) == 1


def test_a_poll_that_was_made_by_hand() -> None:
    poll = Poll([made(0, 1), made(1, 5), made(0, 2)])
    assert poll.by_partition == {
        ORDERS[0]: [made(0, 1), made(0, 2)],
        ORDERS[1]: [made(1, 5)],
    }
    assert Poll([]).by_partition == {}


def made(partition: int, offset: int) -> Any:
    return kafkaio.Record("orders", partition, offset, -1, None, b"")


CHOICES = [
    frozenset(tp for n, tp in enumerate(PARTITIONS) if bits >> n & 1)
    for bits in range(1, 8)
]


@given(
    st.lists(
        st.tuples(st.integers(1, 9), st.sampled_from([None, *CHOICES])), max_size=30
    )
)
@settings(max_examples=100)
def test_every_record_comes_once_and_in_order(
    steps: list[tuple[int, frozenset[TopicPartition] | None]],
) -> None:
    async def check() -> None:
        world = World(Scripted({}))
        reader, seen = world.reader, dict.fromkeys(PARTITIONS, 0)
        for limit, among in steps:
            world.fetch()
            reader.finish(among)
            reader.check(among)
            was_ready = reader.is_ready(among)
            records, runs = reader.take_runs(limit, among)
            assert len(records) <= limit
            assert was_ready or not records
            if len(records) < limit:
                assert not reader.is_ready(among)
            for tp, found in Poll(records, _runs=runs).by_partition.items():
                assert among is None or tp in among
                assert [r.offset for r in found] == [
                    *range(seen[tp], seen[tp] + len(found))
                ]
                assert {r.topic_partition for r in found} == {tp}
                seen[tp] += len(found)
            assert [end for _, end in runs] == sorted(end for _, end in runs)
            for tp in PARTITIONS:
                assert reader.position(tp) == seen[tp]
                place = reader.ledger.unfinished_from(tp)
                assert place is None or place.offset <= seen[tp]
        await world.supervisor.aclose()

    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        runner.run(check())


@real
async def test_in_a_thread() -> None:
    async with Broker(topics={"t": 2}) as broker:
        zero, one = (TopicPartition("t", n) for n in range(2))
        async with (
            kafkaio.Producer(broker.bootstrap_servers) as producer,
            kafkaio.Consumer(
                broker.bootstrap_servers,
                topics="t",
                group_id="g",
                io_thread=True,
                auto_offset_reset="earliest",
            ) as consumer,
        ):
            for n in range(6):
                await producer.send("t", b"%d" % n, partition=n % 2)
            first = await consumer.poll(partitions=[one], max_records=2)
            assert [r.partition for r in first.records] == [1] * len(first.records)
            with pytest.raises(UsageError):
                await consumer.poll(partitions=[TopicPartition("t", 9)])
            others = (await consumer.poll(partitions=[zero])).records
            assert {r.partition for r in others} == {0}


@real
async def test_a_kept_poll_of_other_partitions_is_read_again_in_a_thread() -> None:
    async with Broker(topics={"t": 2}) as broker:
        zero, one = (TopicPartition("t", n) for n in range(2))
        async with (
            kafkaio.Producer(broker.bootstrap_servers) as producer,
            kafkaio.Consumer(
                broker.bootstrap_servers,
                assign=[zero, one],
                io_thread=True,
                auto_offset_reset="earliest",
            ) as consumer,
        ):
            await producer.send("t", b"0", partition=0)
            for turns in range(6):
                waiting = asyncio.ensure_future(consumer.poll(partitions=[one]))
                await asyncio.sleep(0.02)
                await producer.send("t", b"%d" % turns, partition=1)
                for _ in range(turns):
                    await asyncio.sleep(0)
                waiting.cancel()
                await asyncio.wait([waiting])
                got = [] if waiting.cancelled() else waiting.result().records
                # Whatever was on its way to that call, none of it comes here.
                others = await consumer.poll(partitions=[zero], timeout=0.05)
                assert {r.partition for r in others.records} <= {0}
                while not got:
                    got = (await consumer.poll(partitions=[one])).records
                assert [r.value for r in got] == [b"%d" % turns]


@pytest.mark.parametrize("is_object", [False, True])
async def test_a_deserializer_that_takes_none(
    is_object: bool, logs: FakeLogs, make: MakeConsumer
):
    class Tell:
        takes_none = True

        def __call__(self, data: bytes | None) -> str:
            return repr(data)

    class TellObject:
        takes_none = True

        def deserialize(self, data: bytes | None, context: object) -> str:
            return repr(data)

    logs.append(*ORDERS[0], b"v")
    tell: Any = TellObject() if is_object else Tell()
    async with make(
        assign=ORDERS, key_deserializer=tell, value_deserializer=tell, **EARLIEST
    ) as consumer:
        record = await anext(consumer)
        assert (record.key, record.value) == ("None", "b'v'")
        sizes = record.serialized_key_size, record.serialized_value_size
        assert sizes == (-1, 1)
