"""The fetcher: ahead of the reader, within its budget, whatever brokers answer."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest

from kafkaio._consumer.fetch.fetcher import Fetcher
from kafkaio._consumer.fetch.targets import FetchTargets
from kafkaio._machines.fetch_session import FetchTarget
from kafkaio._machines.positions import FetchPoint, Positions
from kafkaio._records.batch import Compression
from kafkaio.errors import (
    AuthorizationError,
    CorruptRecord,
    InternalError,
    RecordTooLarge,
    UnsupportedVersion,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from kafkaio.protocol.messages.list_offsets import ListOffsetsResponse
from kafkaio.types import TopicPartition
from tests.fakes.broker import DISCONNECT, HANG, FakeCluster, Outcome
from tests.unit.consumer.conftest import MakeConsumer
from tests.unit.consumer.fake_log import (
    FakeLogs,
    name_follower,
    naming_follower,
    refusing,
)
from tests.unit.records.test_legacy import message
from tests.virtual_loop import VirtualClockLoop

ONE = TopicPartition("one", 0)
ORDERS = [TopicPartition("orders", n) for n in range(3)]
FIRST = {"assign": [ONE], "auto_offset_reset": "earliest"}


def fill(logs: FakeLogs, partition: TopicPartition = ONE, count: int = 5) -> None:
    for n in range(count):
        logs.append(*partition, b"%d" % n)


async def offsets(consumer: Any, count: int) -> list[int]:
    return [(await anext(consumer)).offset for _ in range(count)]


async def test_a_quiet_consumer_sends_few_fetches_and_reads_at_once(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    async with make(**FIRST) as consumer:
        await asyncio.sleep(20)
        fetches = cluster.requests(FetchRequest)
        assert [r.max_wait_ms for r in fetches[:5]] == [500, 500, 1000, 2000, 2000]
        assert len(fetches) <= 14
        fill(logs, count=1)
        async with asyncio.timeout(0.01):
            assert await offsets(consumer, 1) == [0]
        await asyncio.sleep(0.1)
        # From another offset, so the wait is as it was at first.
        assert cluster.requests(FetchRequest)[-1].max_wait_ms == 500


async def test_fetches_while_there_is_data_to_read(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    fill(logs)
    async with make(**FIRST) as consumer:
        await asyncio.sleep(0.1)
        # The first was answered at once; the second waits for more, and nobody reads.
        assert [
            r.topics[0].partitions[0].fetch_offset
            for r in cluster.requests(FetchRequest)
        ] == [0, 5]
        assert consumer.statistics().fetches_in_flight == 1
        assert "1 fetches in flight" in repr(consumer)
        assert await offsets(consumer, 5) == [0, 1, 2, 3, 4]


async def test_a_record_does_not_wait_until_the_next_fetch_is_sent(
    logs: FakeLogs, make: MakeConsumer
):
    async with make(assign=[ONE], auto_offset_reset="earliest") as consumer:
        for n in range(3):
            await asyncio.sleep(0.1)  # the fetch waits for data
            node = consumer._core.fetcher._loops[0]
            sent = node.count
            fill(logs, count=1)
            assert (await anext(consumer)).offset == n
            assert node.count == sent
            await asyncio.sleep(0)
            assert node.count == sent + 1


async def test_a_small_answer_that_cannot_be_judged_ends_the_consumer(
    logs: FakeLogs, make: MakeConsumer, monkeypatch: pytest.MonkeyPatch
):
    consumer = make(assign=[ONE], auto_offset_reset="earliest")

    def fail(tp: TopicPartition, fetched: Any) -> None:
        raise RuntimeError("a bug of ours")

    monkeypatch.setattr(consumer._core.reader, "add", fail)
    async with consumer:
        fill(logs, count=1)
        with pytest.raises(InternalError, match="a bug of ours"):
            await anext(consumer)


async def test_a_large_answer_is_worked_on_in_slices(
    cluster: FakeCluster,
    logs: FakeLogs,
    make: MakeConsumer,
    monkeypatch: pytest.MonkeyPatch,
):
    # As if every partition of an answer took longer than a slice.
    monkeypatch.setattr("kafkaio._consumer.fetch.answers._SLICE", -1.0)
    monkeypatch.setattr("kafkaio._fetching.messages._SMALL", -1)
    orders = [TopicPartition("orders", n) for n in range(3)]
    for tp in orders:
        cluster.move_leader(*tp, 0)
        logs.append(*tp, *[b"%d" % n for n in range(20)])
    consumer = make(assign=orders, auto_offset_reset="earliest")
    reader = consumer._core.reader
    add, added = reader.add, []

    def seek_between(tp: TopicPartition, fetched: Any) -> None:
        add(tp, fetched)
        added.append(tp)
        if len(added) == 1:
            other = orders[1] if tp == orders[2] else orders[2]
            asyncio.get_running_loop().call_soon(consumer.seek, other, 15)

    monkeypatch.setattr(reader, "add", seek_between)
    async with consumer:
        seen: dict[int, list[int]] = {0: [], 1: [], 2: []}
        for _ in range(45):
            record = await anext(consumer)
            seen[record.partition].append(record.offset)
        late = next(n for n in (1, 2) if seen[n][0] == 15)
        assert seen.pop(late) == list(range(15, 20))
        assert list(seen.values()) == [list(range(20))] * 2
        assert consumer.statistics().stale_answers == 1


async def test_the_session_carries_only_what_changed(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    partitions = [ONE, ORDERS[0]]  # both on node 0
    async with make(assign=partitions, auto_offset_reset="earliest") as consumer:
        await asyncio.sleep(1)
        fill(logs, count=1)
        await anext(consumer)
        await asyncio.sleep(1)
        first, *rest = cluster.requests(FetchRequest, 0)
        assert first.session_epoch == 0
        assert len(first.topics) == 2
        assert [r.session_epoch for r in rest] == list(range(1, len(rest) + 1))
        changed = [t.partitions[0].fetch_offset for r in rest for t in r.topics]
        assert changed == [1]
        consumer.pause(ONE)
        await asyncio.sleep(1)
        forgotten = [r.forgotten_topics_data for r in cluster.requests(FetchRequest, 0)]
        assert [len(f) for f in forgotten].count(1) == 1


async def test_while_nothing_changes_nothing_is_chosen(
    cluster: FakeCluster,
    logs: FakeLogs,
    make: MakeConsumer,
    monkeypatch: pytest.MonkeyPatch,
):
    chosen: list[int] = []
    usual = FetchTargets._target

    def counted(self: FetchTargets, point: FetchPoint) -> FetchTarget:
        chosen.append(point.offset)
        return usual(self, point)

    async with make(assign=[ONE, ORDERS[0]], auto_offset_reset="earliest") as consumer:
        fill(logs)
        assert await offsets(consumer, 5) == [0, 1, 2, 3, 4]
        await asyncio.sleep(2)
        monkeypatch.undo()  # nor compared
        monkeypatch.setattr(FetchTargets, "_target", counted)
        sent = len(cluster.requests(FetchRequest, 0))
        await asyncio.sleep(10)
        assert len(cluster.requests(FetchRequest, 0)) >= sent + 5
        assert not chosen
        fill(logs, count=1)
        assert await offsets(consumer, 1) == [5]
        assert 6 in chosen


@pytest.mark.parametrize("highest", [18, 12, 6, 4])
async def test_every_generation_of_brokers(
    highest: int, cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    cluster.limit_version(ApiKey.FETCH, highest)
    logs.grants_sessions = highest >= 7
    fill(logs)
    fill(logs, ORDERS[0])
    async with make(assign=[ONE, ORDERS[0]], auto_offset_reset="earliest") as consumer:
        assert sorted(await offsets(consumer, 10)) == sorted([*range(5), *range(5)])
    assert {e.version for e in cluster.logged(ApiKey.FETCH)} == {highest}


async def test_a_lost_session_is_made_anew(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    fill(logs, count=1)
    async with make(**FIRST) as consumer:
        await anext(consumer)
        logs.sessions.clear()
        await asyncio.sleep(1)
        for code in (
            ErrorCode.INVALID_FETCH_SESSION_EPOCH,
            ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
            ErrorCode.UNKNOWN_SERVER_ERROR,
        ):
            cluster.on(ApiKey.FETCH, FetchResponse(error_code=code), times=2)
            await asyncio.sleep(1)
        logs.append("one", 0, b"on")
        assert (await anext(consumer)).value == b"on"


async def test_an_answer_about_something_else_is_not_believed(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    fill(logs)
    stray = FetchResponse(session_id=4711)
    async with make(**FIRST) as consumer:
        await asyncio.sleep(0.2)
        cluster.on(ApiKey.FETCH, stray, times=1)
        await asyncio.sleep(1)
        assert await offsets(consumer, 5) == [0, 1, 2, 3, 4]
        assert cluster.requests(FetchRequest)[-1].session_id != 4711


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    ],
)
async def test_errors_that_pass(code: ErrorCode, logs: FakeLogs, make: MakeConsumer):
    fill(logs)
    logs.fail("one", 0, code, code)
    async with make(**FIRST) as consumer:
        assert await offsets(consumer, 5) == [0, 1, 2, 3, 4]


async def test_a_refusal_is_told_and_can_be_mended(logs: FakeLogs, make: MakeConsumer):
    fill(logs)
    logs.fail("one", 0, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    async with make(**FIRST) as consumer:
        with pytest.raises(AuthorizationError, match="one-0"):
            await anext(consumer)
        assert await offsets(consumer, 5) == [0, 1, 2, 3, 4]


async def test_a_moved_leader(cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer):
    fill(logs)
    async with make(**FIRST) as consumer:
        assert await offsets(consumer, 5) == [0, 1, 2, 3, 4]
        cluster.move_leader("one", 0, 2)
        logs.append("one", 0, b"moved")
        assert (await anext(consumer)).value == b"moved"
        assert cluster.requests(FetchRequest, 2)


@pytest.mark.parametrize("outcome", [DISCONNECT, HANG])
async def test_a_broker_without_answers_delays_no_other(
    outcome: Any, cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    for tp in ORDERS:
        fill(logs, tp)
    cluster.on(ApiKey.FETCH, outcome, node=0, times=20)
    async with make(assign=ORDERS, auto_offset_reset="earliest") as consumer:
        async with asyncio.timeout(2):
            found = [await anext(consumer) for _ in range(10)]
        assert {r.partition for r in found} == {1, 2}
        cluster.on(ApiKey.FETCH, logs.fetch)
        assert await offsets(consumer, 5) == [0, 1, 2, 3, 4]


async def test_a_full_partition_holds_no_other_back(logs: FakeLogs, make: MakeConsumer):
    big = b"x" * 600
    for _ in range(20):
        logs.append("one", 0, big)
    async with make(
        assign=[ONE, ORDERS[0]],  # on the same broker
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=1000,
        fetch_buffer_bytes=100_000,
    ) as consumer:
        await asyncio.sleep(5)
        assert 2000 <= consumer.statistics().buffered_bytes < 4000
        logs.append("orders", 0, b"small")
        await asyncio.sleep(0.6)
        found = [await anext(consumer) for _ in range(4)]
        assert b"small" in {r.value for r in found}
        rest = [await anext(consumer) for _ in range(17)]
        in_order = [r.offset for r in [*found, *rest] if r.topic == "one"]
        assert in_order == list(range(20))


async def test_a_paused_partition_uses_up_no_budget(logs: FakeLogs, make: MakeConsumer):
    for _ in range(20):
        logs.append("one", 0, b"x" * 600)
    async with make(
        assign=[ONE, ORDERS[0]],
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=1000,
        fetch_buffer_bytes=1500,
    ) as consumer:
        await asyncio.sleep(1)
        consumer.pause(ONE)
        assert consumer.statistics().buffered_bytes == 0
        fill(logs, ORDERS[0], 30)
        assert await offsets(consumer, 30) == list(range(30))
        consumer.resume(ONE)
        assert await offsets(consumer, 20) == list(range(20))


async def test_the_budget_bounds_what_is_fetched_ahead(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    for tp in ORDERS:
        for _ in range(50):
            logs.append(*tp, b"x" * 500)
    async with make(
        assign=ORDERS,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=2000,
        fetch_buffer_bytes=6000,
    ) as consumer:
        await asyncio.sleep(5)
        assert consumer.statistics().buffered_bytes <= 6000 + 3 * 600
        found = [await anext(consumer) for _ in range(150)]
        for tp in ORDERS:
            mine = [r.offset for r in found if r.partition == tp.partition]
            assert mine == list(range(50))


async def test_a_reader_that_waits_gets_all_of_the_buffer(
    logs: FakeLogs, make: MakeConsumer
):
    for _ in range(60):
        logs.append(*ONE, b"x" * 900)
    async with make(
        **FIRST, max_partition_fetch_bytes=10_000, fetch_buffer_bytes=20_000
    ) as consumer:
        await asyncio.sleep(5)
        assert 8_000 < consumer.statistics().buffered_bytes <= 12_000
        # More records than three fifths of the buffer hold.
        batches = consumer.batches(max_records=16, max_wait=5)
        count = len(await anext(batches))
        while count < 60:
            count += len(await anext(batches))
        assert consumer._core.fetcher._targets._ahead.size == 20_000


async def test_a_reader_that_waits_for_a_few_records_does_not(
    logs: FakeLogs, make: MakeConsumer
):
    async with make(**FIRST, fetch_buffer_bytes=20_000) as consumer:
        for n in range(5):
            fill(logs, count=1)
            assert await offsets(consumer, 1) == [n]
        assert consumer._core.fetcher._targets._ahead.size == 12_000


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ({"fetch_buffer_bytes": 10_000}, 2000),  # a fifth,
        ({"fetch_buffer_bytes": 10_000, "max_partition_fetch_bytes": 2200}, 2200),
        ({"fetch_buffer_bytes": 10_000, "max_partition_fetch_bytes": 9000}, 2500),
        ({"fetch_buffer_bytes": 25_000, "fetch_max_bytes": 4000}, 4000),
    ],
)
async def test_an_answer_has_a_fifth_of_the_buffer_at_most(
    cluster: FakeCluster,
    logs: FakeLogs,
    make: MakeConsumer,
    options: dict[str, int],
    limit: int,
) -> None:
    for tp in ORDERS:
        cluster.move_leader(*tp, 0)
        logs.append(*tp, b"x" * 50)
    options = {"max_partition_fetch_bytes": 1500} | options
    async with make(assign=ORDERS, auto_offset_reset="earliest", **options) as consumer:
        for _ in ORDERS:
            await anext(consumer)
    assert max(r.max_bytes for r in cluster.requests(FetchRequest)) == limit


async def test_a_batch_that_does_not_fit_makes_room_for_itself(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    logs.cuts_batches = True
    logs.append("one", 0, b"x" * 5000)
    logs.append("one", 0, b"y")
    async with make(**FIRST, max_partition_fetch_bytes=100) as consumer:
        assert await offsets(consumer, 2) == [0, 1]
    limits = [
        p.partition_max_bytes
        for r in cluster.requests(FetchRequest)
        for t in r.topics
        for p in t.partitions
    ]
    assert limits[0] == 100
    assert max(limits) > 5000
    assert limits[-1] == 100


async def test_a_batch_that_shows_nothing_of_its_size(
    logs: FakeLogs, make: MakeConsumer
):
    logs.cuts_batches = True
    logs.append("one", 0, b"x" * 500)
    async with make(**FIRST, max_partition_fetch_bytes=5) as consumer:
        assert await offsets(consumer, 1) == [0]


async def test_a_batch_beyond_every_limit(logs: FakeLogs, make: MakeConsumer):
    logs.cuts_batches = True
    logs.append("one", 0, b"x" * 5000)
    logs.append("one", 0, b"y")
    async with make(
        **FIRST, max_partition_fetch_bytes=100, max_response_size=4000
    ) as consumer:
        for _ in range(2):
            with pytest.raises(RecordTooLarge, match="max_response_size=4000"):
                await anext(consumer)
        consumer.seek(ONE, 1)
        assert await offsets(consumer, 1) == [1]


async def test_a_corrupt_batch_is_told_after_those_before_it(
    logs: FakeLogs, make: MakeConsumer
):
    fill(logs, count=2)
    log = logs.log("one")
    log.append([b"bad"])
    base, last, timestamp, batch = log.batches[2]
    log.batches[2] = (base, last, timestamp, batch[:-1] + b"?")
    fill(logs, count=1)
    async with make(**FIRST) as consumer:
        assert await offsets(consumer, 2) == [0, 1]
        for _ in range(2):
            with pytest.raises(CorruptRecord) as caught:
                await anext(consumer)
            assert "one-0 at offset 2" in caught.value.__notes__
        consumer.seek(ONE, 3)
        assert await offsets(consumer, 1) == [3]


@pytest.mark.parametrize("way", ["one", "batches", "tables"])
async def test_a_corrupt_batch_is_fetched_again(
    logs: FakeLogs, make: MakeConsumer, way: str
):
    fill(logs, count=3)
    log = logs.log("one")
    base, last, timestamp, batch = log.batches[1]
    log.batches[1] = (base, last, timestamp, batch[:-1] + b"?")
    async with make(**FIRST) as consumer:
        ways = {
            "one": consumer,
            "batches": consumer.batches(max_records=1),
            "tables": consumer.arrow_batches(),
        }
        await asyncio.sleep(0.1)  # all is fetched by then
        assert consumer._core.reader.buffers.all_at_hand == 3
        reading = aiter(ways[way])
        await anext(reading)
        with pytest.raises(CorruptRecord, match="at offset 1 has the checksum"):
            await anext(reading)
        assert await consumer.position(ONE) == 1
        log.batches[1] = (base, last, timestamp, batch)
        rest = [await anext(consumer) for _ in range(2)]
        assert [record.value for record in rest] == [b"1", b"2"]


@pytest.mark.parametrize("end", [0, 1000])
async def test_a_corrupt_batch_is_not_believed_where_it_ends(
    logs: FakeLogs, make: MakeConsumer, end: int
):
    logs.append("one", 0, *[b"%d" % n for n in range(5)])
    log = logs.log("one")
    base, last, timestamp, batch = log.batches[0]
    delta = end.to_bytes(4, "big")
    log.batches[0] = (base, last, timestamp, batch[:23] + delta + batch[27:])
    async with make(**FIRST) as consumer:
        consumer.seek(ONE, 3)
        with pytest.raises(CorruptRecord):
            await anext(consumer)
        log.batches[0] = (base, last, timestamp, batch)
        assert await offsets(consumer, 2) == [3, 4]


async def test_records_that_cannot_be_decompressed(logs: FakeLogs, make: MakeConsumer):
    fill(logs, count=1)
    log = logs.log("one")
    log.append([b"bad" * 100], compression=Compression.GZIP)
    base, last, timestamp, batch = log.batches[1]
    log.batches[1] = (base, last, timestamp, batch[:70] + b"????" + batch[74:])
    fill(logs, count=1)
    async with make(**FIRST, check_crcs=False) as consumer:
        assert await offsets(consumer, 1) == [0]
        for _ in range(2):
            with pytest.raises(CorruptRecord) as caught:
                await anext(consumer)
        assert "one-0 at offset 1" in caught.value.__notes__
        consumer.seek(ONE, 2)
        assert await offsets(consumer, 1) == [2]


async def test_a_broker_that_refuses_every_fetch_is_reported(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    told: list[tuple[str, str]] = []

    class Observer:
        def retrying(
            self, what: str, attempt: int, delay: float, error: Exception
        ) -> None:
            told.append((what, str(error)))

    refused = 5

    async def refuse(node: Any, header: Any, request: Any) -> FetchResponse:
        nonlocal refused
        if refused and request.topics:
            refused -= 1
            return FetchResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
        return await logs.fetch(node, header, request)

    fill(logs, count=1)
    cluster.on(ApiKey.FETCH, refuse)
    async with make(observer=Observer(), **FIRST) as consumer:
        assert await offsets(consumer, 1) == [0]
    assert len(told) == 5
    assert all(what.startswith("fetch from broker") for what, _ in told)
    assert all("UNKNOWN_SERVER_ERROR" in text for _, text in told)


async def test_an_old_message_that_cannot_be_decompressed(
    logs: FakeLogs, make: MakeConsumer
):
    fill(logs, count=3)
    log = logs.log("one")
    base, last, timestamp, _ = log.batches[1]
    log.batches[1] = (base, last, timestamp, message(1, 1, b"?" * 50, attributes=1))
    async with make(**FIRST) as consumer:
        assert await offsets(consumer, 1) == [0]
        for _ in range(2):
            with pytest.raises(CorruptRecord, match="gzip") as caught:
                await anext(consumer)
            assert (caught.value.topic_partition, caught.value.offset) == (ONE, 1)
        consumer.seek(ONE, caught.value.next_offset)
        assert await offsets(consumer, 1) == [2]


@pytest.mark.parametrize("until", [None, {ONE: 3}])
async def test_an_old_message_whose_offsets_cannot_be_read_is_no_raw_batch(
    logs: FakeLogs, make: MakeConsumer, until: Any
):
    fill(logs, count=3)
    log = logs.log("one")
    base, last, timestamp, _ = log.batches[1]
    # The offset of its first record is among the compressed bytes.
    log.batches[1] = (base, last, timestamp, message(1, 1, b"?" * 50, attributes=1))
    async with make(**FIRST) as consumer:
        batches = consumer.raw_batches(until=until)
        assert (await anext(batches)).first_offset == 0
        for _ in range(2):
            with pytest.raises(CorruptRecord, match="gzip") as caught:
                await anext(batches)
            assert (caught.value.topic_partition, caught.value.offset) == (ONE, 1)
            assert await consumer.position(ONE) == 1
        consumer.seek(ONE, caught.value.next_offset)
        assert (await anext(batches)).first_offset == 2


@pytest.mark.parametrize("how", ["records", "raw", "pause", "leader"])
async def test_reading_goes_on_in_the_middle_of_a_batch(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer, how: str
):
    """The end of a loop may be there, and anything may happen before the next step."""
    logs.append(*ONE, b"0", b"1", b"2")
    logs.append(*ONE, b"3")
    partitions = [ONE, ORDERS[1]]
    consumer = make(assign=partitions, auto_offset_reset="earliest")
    async with consumer, asyncio.timeout(60):
        # Both batches are there when the first is opened.
        assert (await consumer.poll(timeout=1, max_records=0)).records == []
        records = consumer.records(until={ONE: 2})
        assert [(await anext(records)).offset for _ in range(2)] == [0, 1]
        if how == "leader":  # of another partition
            cluster.move_leader("orders", 1, 0)
            consumer._core.cluster.request_refresh("one")
            await asyncio.sleep(1)
        else:
            consumer.pause(ONE)
            consumer.resume(ONE)
        if how == "records":
            assert await offsets(consumer, 2) == [2, 3]
        elif how == "raw":
            batches = consumer.raw_batches()
            starts = [(await anext(batches)).first_offset for _ in range(2)]
            assert starts == [2, 3]
        else:
            with pytest.raises(StopAsyncIteration):
                await anext(records)
            poll = await consumer.poll(timeout=1)
            poll2 = await consumer.poll(timeout=1)
            found = [*poll.records, *poll2.records]
            assert [record.offset for record in found] == [2, 3]


async def test_a_broker_that_is_too_old_is_told_at_once(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    cluster.limit_version(ApiKey.FETCH, -1)
    fill(logs)
    async with make(**FIRST) as consumer:
        with pytest.raises(UnsupportedVersion):
            await anext(consumer)
        assert consumer.statistics().state == "failed"
        with pytest.raises(UnsupportedVersion):
            await consumer.poll(timeout=1)


async def test_a_replica_that_a_broker_names_is_read_from(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    fill(logs)

    def refer(node: Any, header: Any, request: Any) -> FetchResponse:
        return naming_follower(cluster, request)

    cluster.on(ApiKey.FETCH, refer, node=0, times=1)
    async with make(**FIRST) as consumer:
        # Node 2 refuses, as it does not lead: then the leader is asked again.
        assert await offsets(consumer, 5) == [0, 1, 2, 3, 4]
        assert cluster.requests(FetchRequest, 2)


@pytest.mark.parametrize("failure", [HANG, DISCONNECT])
async def test_a_replica_that_does_not_answer_is_left(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer, failure: Outcome
):
    """Its leader counts it as in sync, and names it to whoever has a rack."""
    fill(logs)

    name_follower(cluster)
    cluster.on(ApiKey.FETCH, failure, node=2)
    async with make(**FIRST, client_rack="r") as consumer:
        async with asyncio.timeout(40):  # request_timeout_ms=30_000
            assert await offsets(consumer, 5) == [0, 1, 2, 3, 4]
        before = len(cluster.requests(FetchRequest, 2))
        logs.append("one", 0, b"later")
        async with asyncio.timeout(1):
            assert (await anext(consumer)).value == b"later"
        assert len(cluster.requests(FetchRequest, 2)) == before
        # In the end it has another chance.
        await asyncio.sleep(400)
        assert len(cluster.requests(FetchRequest, 2)) > before


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.CORRUPT_MESSAGE,
    ],
)
async def test_a_replica_that_refuses_is_not_named_again(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer, code: ErrorCode
):
    """Its leader has the records, and sends none to whoever has a rack."""
    fill(logs)

    def refuse(node: Any, header: Any, request: Any) -> Outcome:
        if len(cluster.requests(FetchRequest, 2)) > 50:
            return HANG
        return refusing(cluster, request, code)

    name_follower(cluster)
    cluster.on(ApiKey.FETCH, refuse, node=2)
    async with make(**FIRST, client_rack="r") as consumer:
        async with asyncio.timeout(1):
            assert await offsets(consumer, 5) == [0, 1, 2, 3, 4]
        assert len(cluster.requests(FetchRequest, 2)) == 1


async def test_a_replica_that_refuses_beside_a_quiet_leader(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    """What the leader is asked for already does not delay the partition."""
    fill(logs)
    refused = asyncio.Event()

    async def refuse(node: Any, header: Any, request: Any) -> FetchResponse:
        await refused.wait()
        return refusing(cluster, request, ErrorCode.OFFSET_OUT_OF_RANGE)

    cluster.on(ApiKey.FETCH, refuse, node=2)
    gate = cluster.hold(ApiKey.FETCH, node=0)
    partitions = [ONE, ORDERS[0]]
    options = {"auto_offset_reset": "earliest", "fetch_max_wait_ms": 400}
    async with make(assign=partitions, client_rack="r", **options) as consumer:
        asked = (await cluster.received(ApiKey.FETCH, node=0))[0].request
        cluster.reset(ApiKey.FETCH)
        cluster.on(ApiKey.FETCH, logs.fetch)
        cluster.on(ApiKey.FETCH, refuse, node=2)
        gate.release(1, naming_follower(cluster, asked))
        await asyncio.sleep(10)
        assert cluster.requests(FetchRequest, 0)[-1].max_wait_ms == 1_600
        refused.set()
        async with asyncio.timeout(0.1):
            assert await offsets(consumer, 5) == [0, 1, 2, 3, 4]


async def test_a_replica_that_the_metadata_lack(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    """A broker that is newer than the metadata, in the rack of the client."""
    fill(logs)
    cluster.stop(2)

    async with make(assign=[], client_rack="r", auto_offset_reset="earliest") as one:
        cluster.start(2)
        name_follower(cluster, most=50)
        one.assign([ONE])
        async with asyncio.timeout(1):
            assert await offsets(one, 5) == [0, 1, 2, 3, 4]
        # The metadata are fetched, and then it is read from.
        await asyncio.sleep(10)
        assert cluster.requests(FetchRequest, 2)


async def test_a_leader_that_names_itself(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    fill(logs)

    name_follower(cluster, 0, most=50)
    async with make(**FIRST, client_rack="r") as consumer:
        async with asyncio.timeout(1):
            assert await offsets(consumer, 5) == [0, 1, 2, 3, 4]


async def test_replicas_of_many_partitions_are_looked_at_once(
    cluster: FakeCluster,
    logs: FakeLogs,
    make: MakeConsumer,
    monkeypatch: pytest.MonkeyPatch,
):
    """Each look takes as long as there are partitions."""
    updates = 0
    update = Fetcher.update

    def counted(self: Fetcher) -> None:
        nonlocal updates
        updates += 1
        update(self)

    monkeypatch.setattr(Fetcher, "update", counted)
    cluster.add_topic("many", 100)
    for partition in cluster.topics["many"].partitions:
        partition.leader = 0
    many = [TopicPartition("many", n) for n in range(100)]

    before = 0

    def refer(node: Any, header: Any, request: Any) -> Outcome:
        nonlocal before
        before = updates
        topic = FetchableTopicResponse(topic_id=cluster.topics["many"].topic_id)
        topic.partitions += [
            PartitionData(partition_index=p.partition, preferred_read_replica=2)
            for p in request.topics[0].partitions
        ]
        return FetchResponse(session_id=request.session_id, responses=[topic])

    cluster.on(ApiKey.FETCH, HANG, node=2)
    cluster.on(ApiKey.FETCH, refer, node=0, times=1)
    options = {"auto_offset_reset": "earliest", "client_rack": "r"}
    async with make(assign=many, **options):
        asked = (await cluster.received(ApiKey.FETCH, node=2))[0].request
        assert len(asked.topics[0].partitions) == 100
        assert updates <= before + 3


async def test_a_leader_of_later_is_read_from_when_its_replica_is_left(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    """The word of a leader ends after a time, and nothing has to be fetched from it."""
    fill(logs)

    def refer(node: Any, header: Any, request: Any) -> FetchResponse:
        return naming_follower(cluster, request)

    cluster.on(ApiKey.FETCH, refer, node=0)
    leader = cluster.leader

    async def serve(node: Any, header: Any, request: Any) -> FetchResponse:
        cluster.leader = lambda *_: 2  # type: ignore[method-assign]
        try:
            return await logs.fetch(node, header, request)
        finally:
            cluster.leader = leader  # type: ignore[method-assign]

    cluster.on(ApiKey.FETCH, serve, node=2)
    loop = asyncio.get_running_loop()
    async with make(**FIRST, client_rack="r") as consumer:
        assert await offsets(consumer, 5) == [0, 1, 2, 3, 4]
        await asyncio.sleep(100)
        cluster.move_leader("one", 0, 1)
        consumer._core.cluster.request_refresh("one")
        last = began = loop.time()
        while last < began + 700:  # metadata_max_age_ms=300_000
            logs.append("one", 0, b"more")
            await anext(consumer)
            assert loop.time() < last + 5
            last = loop.time()
            await asyncio.sleep(1)
        assert cluster.requests(FetchRequest, 1)


@pytest.mark.parametrize(("cluster_id", "then"), [("fake-cluster", 0), ("copy", 5)])
async def test_a_topic_of_the_same_name(
    cluster: FakeCluster,
    logs: FakeLogs,
    make: MakeConsumer,
    cluster_id: str,
    then: int,
):
    """In another cluster it may be a copy, with the same offsets."""
    cluster.limit_version(ApiKey.FETCH, 12)  # by names
    fill(logs)
    async with make(**FIRST) as consumer:
        assert await offsets(consumer, 5) == [0, 1, 2, 3, 4]
        cluster.cluster_id = cluster_id
        cluster.topics["one"].topic_id = uuid.uuid4()
        fill(logs)
        consumer._core.cluster.request_refresh("one")
        await asyncio.sleep(1)
        async with asyncio.timeout(10):
            assert await offsets(consumer, 2) == [then, then + 1]


async def test_metadata_of_before_a_topic_was_created_again(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    """A broker that lags behind may be asked after one that does not."""
    cluster.limit_version(ApiKey.FETCH, 12)  # by names
    fill(logs)
    async with make(**FIRST) as consumer:
        assert await offsets(consumer, 2) == [0, 1]
        topic = cluster.topics["one"]
        former, new = topic.topic_id, uuid.uuid4()
        for topic.topic_id, then in [(new, [0, 1]), (former, [2]), (new, [3, 4])]:
            consumer._core.cluster.request_refresh("one")
            await asyncio.sleep(1)
            assert consumer._core.cluster.view.topic_id("one") == topic.topic_id
            assert await offsets(consumer, len(then)) == then


async def test_a_removed_broker_is_forgotten(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    async with make(assign=[ORDERS[2]]) as consumer:
        await asyncio.sleep(1)
        cluster.stop(2)
        cluster.move_leader("orders", 2, 1)
        await asyncio.sleep(10)
        assert list(consumer._core.fetcher._loops) == [1]
        fill(logs, ORDERS[2], 1)
        assert await offsets(consumer, 1) == [0]


async def test_a_leader_that_the_answer_names(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    fill(logs)
    async with make(**FIRST) as consumer:
        assert await offsets(consumer, 5) == [0, 1, 2, 3, 4]
        gate = cluster.hold(ApiKey.METADATA)  # only the hint can tell (KIP-951)
        cluster.move_leader("one", 0, 2)

        def hint(node: Any, header: Any, request: Any) -> FetchResponse:
            topic_id = cluster.topics["one"].topic_id
            data = PartitionData(
                error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER,
                current_leader=LeaderIdAndEpoch(leader_id=2, leader_epoch=1),
            )
            topics = [FetchableTopicResponse(topic_id=topic_id, partitions=[data])]
            at = cluster.nodes[2]
            there = NodeEndpoint(node_id=2, host=at.host, port=at.port)
            return FetchResponse(
                session_id=request.session_id,
                responses=topics,
                node_endpoints=[there],
            )

        cluster.on(ApiKey.FETCH, hint, node=0, times=1)
        logs.append("one", 0, b"moved")
        async with asyncio.timeout(2):
            assert (await anext(consumer)).value == b"moved"
        gate.release()
        cluster.reset(ApiKey.METADATA)


#: The end of a fetch or look-up mostly wakes who began it twice.
LAST_LOOK = 2


@pytest.mark.parametrize("what", ["fetch", "reset"])
async def test_a_retry_that_becomes_due_right_after_a_look_is_not_missed(
    what: str,
    cluster: FakeCluster,
    logs: FakeLogs,
    make: MakeConsumer,
    monkeypatch: pytest.MonkeyPatch,
):
    # A loaded machine takes the processor away after the look.
    part: type = FetchTargets if what == "fetch" else Positions
    look = "from_broker" if what == "fetch" else "resetting"
    loop, usual = asyncio.get_running_loop(), getattr(part, look)
    assert isinstance(loop, VirtualClockLoop)
    looks: list[float] = []

    def slow(*arguments: object) -> object:
        found = usual(*arguments)
        due = consumer._core.reader.positions.next_retry(loop.time())
        if due is not None:
            looks.append(due)
            if len(looks) == LAST_LOOK:
                loop.pass_time(due - loop.time())
        return found

    async with make(auto_offset_reset="earliest") as consumer:
        consumer.assign([ONE])
        await cluster.received(ApiKey.FETCH, 1)
        monkeypatch.setattr(part, look, slow)
        if what == "fetch":
            cluster.hold(ApiKey.METADATA)  # an answer would be a reason to look again
            logs.fail(*ONE, ErrorCode.OFFSET_NOT_AVAILABLE)
        else:
            cluster.on(ApiKey.LIST_OFFSETS, ListOffsetsResponse(), times=1)
            consumer.seek_to_beginning(ONE)
        fill(logs)
        async with asyncio.timeout(20):
            assert await offsets(consumer, 5) == [0, 1, 2, 3, 4]
        assert looks


async def test_who_leads_after_a_refusal_is_fetched_from(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    # Nothing was read, so the position needs no validation.
    async with make(**FIRST) as consumer:
        await cluster.received(ApiKey.FETCH, 1)
        cluster.move_leader(*ONE, (cluster.partition(*ONE).leader + 1) % 3)
        fill(logs)
        async with asyncio.timeout(60):
            assert await offsets(consumer, 5) == [0, 1, 2, 3, 4]
