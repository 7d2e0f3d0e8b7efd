"""Ranges of offsets: `read_ranges` against scripted brokers and the embedded one."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

import pytest

from kafkaio._client import Client, Controller
from kafkaio._config import ClientConfig, ProducerConfig
from kafkaio._machines.ranges import Choice, RangeSchedule
from kafkaio._producer import Producer
from kafkaio._records.batch import (
    BatchBuilder,
    Compression,
    encode_batch,
    with_base_offset,
)
from kafkaio.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    AuthorizationError,
    ClosedError,
    CorruptRecord,
    LogTruncated,
    OffsetOutOfRange,
    RecordTooLarge,
    RequestTimeout,
    UnknownTopicOrPartition,
    UsageError,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicState,
)
from kafkaio.protocol.messages.fetch import (
    FetchRequest,
    FetchResponse,
)
from kafkaio.protocol.messages.list_offsets import ListOffsetsRequest
from kafkaio.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
)
from kafkaio.testing import (
    Broker,
    disconnect_after_write,
    disconnect_before_write,
    error,
    half_frame,
)
from kafkaio.types import OffsetRange, TopicPartition
from tests.fakes.broker import DISCONNECT, HANG, FakeCluster, Outcome
from tests.unit.consumer.fake_log import (
    FakeLogs,
    name_follower,
    naming_follower,
    refusing,
)
from tests.unit.records.test_legacy import message
from tests.virtual_loop import VirtualClockLoop

pa = pytest.importorskip("pyarrow", exc_type=ImportError)
from kafkaio.arrow import RangeReader, read_ranges, schema  # noqa: E402

ONE = TopicPartition("one", 0)
ORDERS = [TopicPartition("orders", number) for number in range(3)]
#: The columns of Spark's connector.
SPARK = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("timestamp_type", pa.int32()),
        (
            "headers",
            pa.list_(
                pa.field(
                    "element",
                    pa.struct([("key", pa.string()), ("value", pa.binary())]),
                )
            ),
        ),
        ("leader_epoch", pa.int32()),
    ]
)


def headers_of(name: str, value: str) -> Any:
    """A column of headers whose struct has fields of these names."""
    pair = pa.struct([(name, pa.string()), (value, pa.binary())])
    return pa.field("headers", pa.list_(pair))


OFFSETS = pa.schema([("offset", pa.int64()), ("value", pa.binary())])


@pytest.fixture
async def cluster() -> AsyncIterator[FakeCluster]:
    async with FakeCluster(nodes=3, topics={"orders": 3, "one": 1}) as cluster:
        yield cluster


@pytest.fixture
def logs(cluster: FakeCluster) -> FakeLogs:
    return FakeLogs(cluster)


@pytest.fixture(autouse=True)
async def nothing_left() -> AsyncIterator[None]:
    """No test leaves a task behind."""
    before = asyncio.all_tasks()
    yield
    for _ in range(3):
        await asyncio.sleep(0)
    assert not {task for task in asyncio.all_tasks() if task not in before} - {
        asyncio.current_task()
    }


def client_of(home: Any, **options: Any) -> Client:
    is_fake = isinstance(home, FakeCluster)
    servers = home.bootstrap if is_fake else home.bootstrap_servers
    config = ClientConfig.of(servers, options)
    return Client.from_config(config, dial=home.dial)


def producer_of(broker: Broker, **options: Any) -> Producer:
    config = ProducerConfig.of(broker.bootstrap_servers, options)
    return Producer.from_config(config, dial=broker.dial)


def fill(logs: FakeLogs, tp: TopicPartition = ONE, count: int = 5) -> None:
    """Write batches of one record each."""
    for _ in range(count):
        logs.append(*tp, b"%d" % logs.log(*tp).end)


async def offsets_of(reader: Iterable[Any] | RangeReader) -> list[int]:
    found: list[int] = []
    async for batch in reader:  # type: ignore[union-attr]
        batch.validate(full=True)
        found += batch["offset"].to_pylist()
    return found


def between(start: int, end: int, tp: TopicPartition = ONE) -> OffsetRange:
    return OffsetRange(tp, start, end)


class TestWhatIsRead:
    """Which records a range has, and in which order."""

    async def test_ranges_in_their_order(
        self, cluster: FakeCluster, logs: FakeLogs
    ) -> None:
        for tp in ORDERS:
            fill(logs, tp, 10)
        ranges = [
            between(7, 9, ORDERS[2]),
            between(3, 3, ORDERS[0]),
            between(0, 10, ORDERS[1]),
            between(2, 4, ORDERS[2]),
        ]
        async with client_of(cluster) as client:
            found = [
                (row["partition"], row["offset"])
                async for batch in read_ranges(client, ranges)
                for row in batch.to_pylist()
            ]
        assert found == [
            (tp.partition, offset)
            for tp, start, end in ranges
            for offset in range(start, end)
        ]

    async def test_a_range_inside_a_batch(
        self, cluster: FakeCluster, logs: FakeLogs
    ) -> None:
        logs.append(*ONE, *[b"%d" % n for n in range(20)])
        async with client_of(cluster) as client:
            assert await offsets_of(read_ranges(client, [between(3, 7)])) == [
                3,
                4,
                5,
                6,
            ]
        assert len(cluster.requests(FetchRequest)) == 1

    @pytest.mark.parametrize("ranges", [[], [between(4, 4)], [between(9, 9)] * 2])
    async def test_nothing_is_asked_for_empty_ranges(
        self, cluster: FakeCluster, logs: FakeLogs, ranges: list[OffsetRange]
    ) -> None:
        async with client_of(cluster) as client:
            before = len(cluster.logged(ApiKey.METADATA))
            assert await offsets_of(read_ranges(client, ranges)) == []
            assert len(cluster.logged(ApiKey.METADATA)) == before
        assert not cluster.requests(FetchRequest)

    async def test_nothing_is_fetched_from_the_end_on(
        self, cluster: FakeCluster, logs: FakeLogs
    ) -> None:
        fill(logs, count=30)
        async with client_of(cluster) as client:
            reader = read_ranges(client, [between(0, 10), between(20, 30)])
            assert await offsets_of(reader) == [*range(10), *range(20, 30)]
        asked = [
            request.topics[0].partitions[0].fetch_offset
            for request in cluster.requests(FetchRequest)
        ]
        assert all(offset < 10 or offset >= 20 for offset in asked)

    @pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
    async def test_offsets_without_records(
        self, cluster: FakeCluster, logs: FakeLogs, isolation: Any
    ) -> None:
        """A gap of compaction at the start, and a marker at the end of the range."""
        log = logs.log(*ONE)
        log.start, log.end = 0, 5  # nothing is left of 0 to 4
        fill(logs, count=3)
        log.marker(7, commit=True)
        fill(logs, count=1)
        async with client_of(cluster) as client:
            found = await offsets_of(
                read_ranges(client, [between(0, 9)], isolation_level=isolation)
            )
            assert found == [5, 6, 7]
            only_gaps = [between(0, 5), between(8, 9)]
            assert await offsets_of(read_ranges(client, only_gaps)) == []

    async def test_aborted_transactions_are_left_out(
        self, cluster: FakeCluster, logs: FakeLogs
    ) -> None:
        log = logs.log(*ONE)
        fill(logs, count=1)
        builder = BatchBuilder(transactional=True)
        for _ in range(2):
            builder.try_append(1, None, b"x", ())
        batch = builder.build(producer_id=7, producer_epoch=0, base_sequence=0)
        log.raw(with_base_offset(batch, 1, 0), 2)
        log.marker(7, commit=False)
        log.aborted.append((7, 1, 3))
        fill(logs, count=1)
        async with client_of(cluster) as client:
            everything = read_ranges(client, [between(0, 5)])
            assert await offsets_of(everything) == [0, 1, 2, 4]
            for start, end, expected in [(0, 5, [0, 4]), (2, 4, []), (1, 3, [])]:
                reader = read_ranges(
                    client, [between(start, end)], isolation_level="read_committed"
                )
                assert await offsets_of(reader) == expected

    @pytest.mark.parametrize("magic", [0, 1])
    async def test_old_formats(
        self, cluster: FakeCluster, logs: FakeLogs, magic: int
    ) -> None:
        log = logs.log(*ONE)
        for n in range(4):
            log.raw(message(magic=magic, offset=n, key=b"k", value=b"%d" % n), 1)
        async with client_of(cluster) as client:
            [batch] = [
                b async for b in read_ranges(client, [between(1, 3)], schema=SPARK)
            ]
        rows = batch.to_pylist()
        assert [row["offset"] for row in rows] == [1, 2]
        assert {row["timestamp_type"] for row in rows} == {-1 if magic == 0 else 0}
        assert {row["leader_epoch"] for row in rows} == {-1}
        assert (batch["timestamp"].null_count > 0) == (magic == 0)

    @pytest.mark.parametrize("compression", Compression)
    async def test_compressed_batches(
        self, cluster: FakeCluster, logs: FakeLogs, compression: Compression
    ) -> None:
        for _ in range(3):
            logs.append(*ONE, *[b"v" * 50] * 20, compression=compression)
        async with client_of(cluster) as client:
            reader = read_ranges(client, [between(5, 55)], fetch_bytes=300)
            assert await offsets_of(reader) == [*range(5, 55)]


class TestFetching:
    """When fetches are sent, and what they ask for."""

    async def test_the_next_fetch_is_sent_before_a_batch_is_handed_out(
        self, cluster: FakeCluster, logs: FakeLogs
    ) -> None:
        fill(logs, count=20)
        ranges = [between(0, 10), between(12, 20)]
        async with client_of(cluster) as client:
            reader = read_ranges(client, ranges, fetch_bytes=200)
            seen: list[int] = []
            while True:
                batch = await anext(reader)
                # Not even one turn of the loop later.
                [fetching] = [
                    connection
                    for connection in client.statistics().connections
                    if connection.connection_class.kind == "fetch"
                ]
                seen += batch["offset"].to_pylist()
                if seen[-1] == 19:
                    assert fetching.in_flight == 0
                    break
                assert fetching.in_flight == 1
                assert fetching.bytes_unsent == 0
            assert seen == [*range(10), *range(12, 20)]
            with pytest.raises(StopAsyncIteration):
                await anext(reader)

    async def test_a_fetch_asks_for_what_the_range_is_likely_to_take(
        self, cluster: FakeCluster, logs: FakeLogs
    ) -> None:
        for _ in range(100):
            logs.append(*ONE, *[b"v" * 1000] * 10)
        async with client_of(cluster) as client:
            reader = read_ranges(client, [between(0, 5), between(0, 1000)])
            assert len(await offsets_of(reader)) == 1005
        sizes = [request.max_bytes for request in cluster.requests(FetchRequest)]
        assert sizes[0] == 5 * 1024 + 65_536
        assert sizes[1] > 1_000_000
        assert len(sizes) == 2

    async def test_a_batch_larger_than_a_fetch(
        self, cluster: FakeCluster, logs: FakeLogs
    ) -> None:
        """A broker older than 0.10.1 sends as many bytes as it was asked for."""
        logs.cuts_batches = True
        logs.append(*ONE, b"v" * 5_000)
        fill(logs, count=2)
        async with client_of(cluster) as client:
            reader = read_ranges(client, [between(0, 3)], fetch_bytes=100)
            assert await offsets_of(reader) == [0, 1, 2]
        sizes = [request.max_bytes for request in cluster.requests(FetchRequest)]
        assert sizes[0] == 100
        assert sizes[1] > 5_000
        assert sizes[2] == 100

    async def test_a_batch_that_shows_nothing_of_its_size(
        self, cluster: FakeCluster, logs: FakeLogs
    ) -> None:
        logs.cuts_batches = True
        fill(logs, count=1)
        async with client_of(cluster) as client:
            reader = read_ranges(client, [between(0, 1)], fetch_bytes=5)
            assert await offsets_of(reader) == [0]

    async def test_a_batch_beyond_every_limit(
        self, cluster: FakeCluster, logs: FakeLogs
    ) -> None:
        logs.cuts_batches = True
        fill(logs, count=1)
        logs.append(*ONE, b"v" * 200_000)
        async with client_of(cluster, max_response_size=100_000) as client:
            reader = read_ranges(client, [between(0, 2)], fetch_bytes=150)
            assert (await anext(reader))["offset"].to_pylist() == [0]
            for _ in range(2):
                with pytest.raises(RecordTooLarge, match="one-0 at offset 1 takes"):
                    await anext(reader)

    async def test_readers_side_by_side(
        self, cluster: FakeCluster, logs: FakeLogs
    ) -> None:
        for tp in ORDERS:
            fill(logs, tp, 30)
        async with client_of(cluster) as client:
            readers = [
                read_ranges(client, [between(n, 30, ORDERS[n])], fetch_bytes=300)
                for n in range(3)
            ]
            found = await asyncio.gather(*map(offsets_of, readers))
            assert found == [[*range(n, 30)] for n in range(3)]
            connections = len(client.statistics().connections)
            for _ in range(5):
                reader = read_ranges(client, [between(0, 30, ORDERS[0])])
                await offsets_of(reader)
            assert len(client.statistics().connections) == connections

    async def test_a_reader_that_waits_delays_no_other(
        self, cluster: FakeCluster, logs: FakeLogs
    ) -> None:
        fill(logs, count=3)
        async with client_of(cluster) as client:
            waiting = read_ranges(client, [between(3, 4)])
            step = asyncio.ensure_future(anext(waiting))
            await asyncio.sleep(0.1)
            began = asyncio.get_running_loop().time()
            assert await offsets_of(read_ranges(client, [between(0, 3)])) == [0, 1, 2]
            assert asyncio.get_running_loop().time() == began
            fill(logs, count=1)
            assert (await step)["offset"].to_pylist() == [3]

    @pytest.mark.parametrize("version", [4, 7, 11, 12, 13, 17])
    async def test_every_generation_of_brokers(
        self, cluster: FakeCluster, logs: FakeLogs, version: int
    ) -> None:
        cluster.limit_version(ApiKey.FETCH, version)
        fill(logs, count=5)
        async with client_of(cluster) as client:
            reader = read_ranges(client, [between(1, 5)], fetch_bytes=100)
            assert await offsets_of(reader) == [1, 2, 3, 4]

    async def test_a_replica_that_a_broker_names(
        self, cluster: FakeCluster, logs: FakeLogs
    ) -> None:
        fill(logs)

        def refer(node: Any, header: Any, request: Any) -> FetchResponse:
            return naming_follower(cluster, request)

        cluster.on(ApiKey.FETCH, refer, node=0, times=1)
        async with client_of(cluster, client_rack="r") as client:
            # Node 2 refuses, as it does not lead: then the leader is asked again.
            assert await offsets_of(read_ranges(client, [between(0, 5)])) == [*range(5)]
        assert cluster.requests(FetchRequest, 2)
        # Without a rack at last: the leader might name it again.
        racks = [request.rack_id for request in cluster.requests(FetchRequest)]
        assert racks == ["r", "r", ""]

    @pytest.mark.parametrize(
        "failure", [HANG, DISCONNECT, ErrorCode.UNKNOWN_SERVER_ERROR]
    )
    async def test_a_replica_that_does_not_answer(
        self, cluster: FakeCluster, logs: FakeLogs, failure: Outcome
    ) -> None:
        """Its leader counts it as in sync, and names it to whoever has a rack."""
        fill(logs)

        def refuse(node: Any, header: Any, request: Any) -> FetchResponse:
            return FetchResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)

        is_code = isinstance(failure, ErrorCode)
        name_follower(cluster)
        cluster.on(ApiKey.FETCH, refuse if is_code else failure, node=2)
        async with client_of(cluster, client_rack="r") as client:
            reader = read_ranges(client, [between(0, 5)])
            assert await offsets_of(reader) == [*range(5)]
        assert len(cluster.requests(FetchRequest, 2)) == 1

    @pytest.mark.parametrize("follower", [2, 7])
    async def test_a_replica_that_refuses_or_is_unknown(
        self, cluster: FakeCluster, logs: FakeLogs, follower: int
    ) -> None:
        fill(logs)

        def refuse(node: Any, header: Any, request: Any) -> FetchResponse:
            return refusing(cluster, request, ErrorCode.OFFSET_OUT_OF_RANGE)

        name_follower(cluster, follower, most=50)
        cluster.on(ApiKey.FETCH, refuse, node=2)
        async with client_of(cluster, client_rack="r") as client:
            reader = read_ranges(client, [between(0, 5)])
            async with asyncio.timeout(1):
                assert await offsets_of(reader) == [*range(5)]
        assert len(cluster.requests(FetchRequest, 2)) <= 1


class TestErrors:
    """What goes wrong, and that nothing is lost or read twice."""

    @pytest.mark.parametrize(
        "code",
        [
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.FENCED_LEADER_EPOCH,
            ErrorCode.UNKNOWN_LEADER_EPOCH,
            ErrorCode.OFFSET_NOT_AVAILABLE,
            ErrorCode.KAFKA_STORAGE_ERROR,
            ErrorCode.UNKNOWN_TOPIC_ID,
        ],
    )
    async def test_errors_that_pass(
        self, cluster: FakeCluster, logs: FakeLogs, code: ErrorCode
    ) -> None:
        fill(logs, count=10)
        logs.fail(*ONE, 0, code, 0, code, code)
        async with client_of(cluster) as client:
            reader = read_ranges(client, [between(0, 10)], fetch_bytes=200)
            assert await offsets_of(reader) == [*range(10)]

    async def test_a_retry_that_becomes_due_while_others_are_chosen(
        self, cluster: FakeCluster, logs: FakeLogs, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualClockLoop)
        choose = RangeSchedule.choose

        def choose_slowly(*args: Any) -> Choice:
            choice = choose(*args)
            loop.pass_time(1.0)
            return choice

        fill(logs, count=10)
        logs.fail(*ONE, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        async with client_of(cluster) as client:
            reader = read_ranges(client, [between(0, 10)])
            monkeypatch.setattr(RangeSchedule, "choose", choose_slowly)
            since = loop.time()
            assert await offsets_of(reader) == [*range(10)]
        assert loop.time() - since < 15  # and not the time limit of a call

    async def test_a_refusal(self, cluster: FakeCluster, logs: FakeLogs) -> None:
        fill(logs)
        logs.fail(*ONE, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        async with client_of(cluster) as client:
            reader = read_ranges(client, [between(1, 5)])
            with pytest.raises(AuthorizationError, match="fetch one-0 from offset 1"):
                await anext(reader)
            assert await offsets_of(reader) == [1, 2, 3, 4]  # it can be mended

    @pytest.mark.parametrize(("start", "has"), [(2, "5 to 8"), (9, "5 to 8")])
    async def test_a_range_that_the_log_does_not_have(
        self, cluster: FakeCluster, logs: FakeLogs, start: int, has: str
    ) -> None:
        log = logs.log(*ONE)
        log.start = log.end = 5
        fill(logs, count=3)
        async with client_of(cluster) as client:
            reader = read_ranges(client, [between(start, 20)])
            with pytest.raises(OffsetOutOfRange, match=f"{start} to 20 .* {has}") as it:
                await anext(reader)
            assert (it.value.topic, it.value.partition) == ONE
            assert it.value.position == start
            assert (it.value.earliest, it.value.latest) == (5, 8)

    async def test_bounds_that_cannot_be_looked_up(
        self, cluster: FakeCluster, logs: FakeLogs
    ) -> None:
        logs.log(*ONE).start = logs.log(*ONE).end = 5
        logs.refusals[ONE] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        async with client_of(cluster) as client:
            with pytest.raises(OffsetOutOfRange, match="range 0 to 3 of one-0") as it:
                await anext(read_ranges(client, [between(0, 3)]))
        assert isinstance(it.value.__cause__, AuthorizationError)
        assert it.value.earliest == it.value.latest == -1
        assert cluster.requests(ListOffsetsRequest)

    async def test_an_end_that_the_log_does_not_reach(
        self, cluster: FakeCluster, logs: FakeLogs
    ) -> None:
        fill(logs, count=3)
        logs.log(*ONE).last_stable = 2
        async with client_of(cluster, default_api_timeout_ms=3_000) as client:
            reader = read_ranges(
                client, [between(0, 4)], isolation_level="read_committed"
            )
            assert (await anext(reader))["offset"].to_pylist() == [0, 1]
            began = asyncio.get_running_loop().time()
            with pytest.raises(
                RequestTimeout,
                match=r"one-0 from offset 2 to 4 .* within 3 s.*stable offset is 2",
            ):
                await anext(reader)
            assert 2 < asyncio.get_running_loop().time() - began <= 3.5
            fill(logs, count=1)
            logs.log(*ONE).last_stable = None
            assert await offsets_of(reader) == [2, 3]

    async def test_a_missing_topic_and_a_missing_partition(
        self, cluster: FakeCluster, logs: FakeLogs
    ) -> None:
        async with client_of(cluster) as client:
            began = asyncio.get_running_loop().time()
            absent = between(0, 1, TopicPartition("absent", 0))
            with pytest.raises(UnknownTopicOrPartition, match="absent"):
                await anext(read_ranges(client, [absent]))
            assert asyncio.get_running_loop().time() - began < 1
            ninth = between(0, 1, TopicPartition("one", 9))
            with pytest.raises(UnknownTopicOrPartition, match="no partition 9"):
                await anext(read_ranges(client, [ninth]))

    async def test_a_partition_without_a_leader(
        self, cluster: FakeCluster, logs: FakeLogs
    ) -> None:
        fill(logs)
        async with client_of(cluster, default_api_timeout_ms=2_000) as client:
            cluster.move_leader("one", 0, -1)
            reader = read_ranges(client, [between(0, 5)])
            with pytest.raises(RequestTimeout, match="one-0 has no leader now"):
                await anext(reader)
            cluster.move_leader("one", 0, 1)
            assert await offsets_of(reader) == [*range(5)]

    async def test_a_broker_that_does_not_answer(
        self, cluster: FakeCluster, logs: FakeLogs
    ) -> None:
        fill(logs)
        cluster.on(ApiKey.FETCH, lambda *_: HANG, times=1)
        async with client_of(cluster, request_timeout_ms=2_000) as client:
            reader = read_ranges(client, [between(0, 5)])
            assert await offsets_of(reader) == [*range(5)]

    @pytest.mark.parametrize(("cut_at", "says"), [(1, 1), (0, -1)])
    async def test_a_new_leader_that_has_lost_what_was_read(
        self, cluster: FakeCluster, logs: FakeLogs, cut_at: int, says: int
    ) -> None:
        fill(logs, count=20)
        async with client_of(cluster) as client:
            reader = read_ranges(client, [between(0, 20)], fetch_bytes=200)
            found = (await anext(reader))["offset"].to_pylist()
            cluster.move_leader("one", 0, 2)
            logs.log(*ONE).truncate(cut_at)
            logs.append(*ONE, *[b"other"] * 20, epoch=cluster.partition("one", 0).epoch)
            with pytest.raises(LogTruncated, match="one-0 was read up to") as it:
                await offsets_of(reader)
            assert found == [*range(it.value.position)]
            assert it.value.diverging_offset == says

    async def test_a_new_leader_that_has_what_was_read(
        self, cluster: FakeCluster, logs: FakeLogs
    ) -> None:
        fill(logs, count=20)
        async with client_of(cluster) as client:
            reader = read_ranges(client, [between(0, 20)], fetch_bytes=200)
            found = (await anext(reader))["offset"].to_pylist()
            cluster.move_leader("one", 0, 2)
            logs.refusals[ONE] = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            asyncio.get_running_loop().call_later(3, logs.refusals.clear)
            assert found + await offsets_of(reader) == [*range(20)]
            assert cluster.requests(OffsetForLeaderEpochRequest)

    async def test_a_corrupt_batch_is_told_after_those_before_it(
        self, cluster: FakeCluster, logs: FakeLogs
    ) -> None:
        fill(logs, count=5)
        log = logs.log(*ONE)
        base, last, timestamp, batch = log.batches[2]
        log.batches[2] = (base, last, timestamp, batch[:-1] + b"?")
        async with client_of(cluster) as client:
            reader = read_ranges(client, [between(0, 5)])
            assert (await anext(reader))["offset"].to_pylist() == [0, 1]
            for _ in range(2):
                with pytest.raises(CorruptRecord, match="checksum") as it:
                    await anext(reader)
                assert "one-0 at offset 2" in it.value.__notes__
            log.batches[2] = (base, last, timestamp, batch)
            assert await offsets_of(reader) == [2, 3, 4]

    @pytest.mark.parametrize("end", [0, 1000])
    async def test_a_corrupt_batch_is_not_believed_where_it_ends(
        self, cluster: FakeCluster, logs: FakeLogs, end: int
    ) -> None:
        logs.append(*ONE, *[b"%d" % n for n in range(5)])
        log = logs.log(*ONE)
        base, last, timestamp, batch = log.batches[0]
        delta = end.to_bytes(4, "big")
        log.batches[0] = (base, last, timestamp, batch[:23] + delta + batch[27:])
        async with client_of(cluster) as client:
            reader = read_ranges(client, [between(3, 5)])
            with pytest.raises(CorruptRecord):
                await anext(reader)
            log.batches[0] = (base, last, timestamp, batch)
            assert await offsets_of(reader) == [3, 4]

    async def test_bytes_that_are_no_batch(
        self, cluster: FakeCluster, logs: FakeLogs
    ) -> None:
        fill(logs, count=1)
        log = logs.log(*ONE)
        log.raw(b"\0" * 8 + b"\xff" * 60, 1)
        async with client_of(cluster) as client:
            reader = read_ranges(client, [between(0, 2)])
            assert (await anext(reader))["offset"].to_pylist() == [0]
            with pytest.raises(CorruptRecord, match="length"):
                await anext(reader)

    async def test_answers_about_something_else(
        self, cluster: FakeCluster, logs: FakeLogs
    ) -> None:
        fill(logs)

        def empty(*_: Any) -> FetchResponse:
            return FetchResponse()

        def refused(*_: Any) -> FetchResponse:
            return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)

        cluster.on(ApiKey.FETCH, refused, times=1)
        cluster.on(ApiKey.FETCH, empty, times=1)
        async with client_of(cluster) as client:
            reader = read_ranges(client, [between(0, 5)])
            assert await offsets_of(reader) == [*range(5)]


class TestLeaving:
    """Cancellation, closing, and several tasks."""

    async def test_a_step_that_is_cancelled_has_taken_nothing(
        self, cluster: FakeCluster, logs: FakeLogs
    ) -> None:
        fill(logs, count=40)
        dice = random.Random(5)
        async with client_of(cluster) as client:
            ranges = [between(0, 20), between(25, 40)]
            reader = read_ranges(client, ranges, fetch_bytes=200)
            found: list[int] = []
            cancelled = 0
            while True:
                step = asyncio.ensure_future(anext(reader, None))
                for _ in range(dice.randrange(12)):
                    await asyncio.sleep(0)
                if not step.done():
                    step.cancel()
                    cancelled += 1
                try:
                    batch = await step
                except asyncio.CancelledError:
                    continue
                if batch is None:
                    break
                found += batch["offset"].to_pylist()
            assert found == [*range(20), *range(25, 40)]
            assert cancelled > 5

    async def test_closing_early(self, cluster: FakeCluster, logs: FakeLogs) -> None:
        fill(logs, count=40)
        async with client_of(cluster) as client:
            async with aclosing(
                read_ranges(client, [between(0, 40)], fetch_bytes=200)
            ) as reader:
                await anext(reader)
            with pytest.raises(StopAsyncIteration):
                await anext(reader)
            await reader.aclose()
            # Its connection serves the next reader.
            connections = len(client.statistics().connections)
            assert await offsets_of(read_ranges(client, [between(0, 40)])) == [
                *range(40)
            ]
            assert len(client.statistics().connections) == connections

    async def test_a_reader_that_is_forgotten(
        self, cluster: FakeCluster, logs: FakeLogs
    ) -> None:
        fill(logs, count=40)
        async with client_of(cluster) as client:
            for _ in range(3):
                await anext(read_ranges(client, [between(0, 40)], fetch_bytes=200))
            await asyncio.sleep(0.1)
            fetching = [
                connection
                for connection in client.statistics().connections
                if connection.connection_class.kind == "fetch"
            ]
            assert len(fetching) == 1

    async def test_one_task_at_a_time(
        self, cluster: FakeCluster, logs: FakeLogs
    ) -> None:
        async with client_of(cluster) as client:
            reader = read_ranges(client, [between(0, 1)])
            step = asyncio.ensure_future(anext(reader))
            await asyncio.sleep(0.1)
            with pytest.raises(UsageError, match="another task"):
                await anext(reader)
            with pytest.raises(UsageError, match="another task"):
                await reader.aclose()
            fill(logs, count=1)
            await step

    async def test_a_client_that_is_closed(
        self, cluster: FakeCluster, logs: FakeLogs
    ) -> None:
        async with client_of(cluster) as client:
            reader = read_ranges(client, [between(0, 1)])
            step = asyncio.ensure_future(anext(reader))
            await asyncio.sleep(0.1)
        with pytest.raises(ClosedError):
            await step
        with pytest.raises(ClosedError):
            await anext(reader)


class TestSchema:
    """Columns and their forms."""

    @staticmethod
    async def table(client: Client, chosen: Any, end: int = 4) -> Any:
        reader = read_ranges(client, [between(0, end)], schema=chosen)
        batches = [batch async for batch in reader]
        for batch in batches:
            batch.validate(full=True)
            assert batch.schema.equals(chosen, check_metadata=True)
        return pa.Table.from_batches(batches, chosen)

    @pytest.fixture
    async def client(
        self, cluster: FakeCluster, logs: FakeLogs
    ) -> AsyncIterator[Client]:
        rows = [
            (1_000, b"k", b"v\xc3\xa9", (("h", b"1"), ("i", None))),
            (-1, None, b"w", ()),
            (2_001, b"k2", None, (("j", b""),)),
        ]
        log = logs.log(*ONE)
        log.raw(encode_batch(rows, base_offset=0, leader_epoch=3), 3)
        log.raw(encode_batch(rows[:1], base_offset=3, leader_epoch=4), 1)
        async with client_of(cluster) as client:
            yield client

    async def test_as_spark_has_it(self, client: Client) -> None:
        table = await self.table(client, SPARK)
        times = [datetime.fromtimestamp(t / 1000, UTC) for t in (1_000, 2_001)]
        assert table.to_pydict() == {
            "key": [b"k", None, b"k2", b"k"],
            "value": [b"v\xc3\xa9", b"w", None, b"v\xc3\xa9"],
            "topic": ["one"] * 4,
            "partition": [0] * 4,
            "offset": [0, 1, 2, 3],
            "timestamp": [times[0], None, times[1], times[0]],
            "timestamp_type": [0] * 4,
            "headers": [
                [{"key": "h", "value": b"1"}, {"key": "i", "value": None}],
                None,
                [{"key": "j", "value": b""}],
                [{"key": "h", "value": b"1"}, {"key": "i", "value": None}],
            ],
            "leader_epoch": [3, 3, 3, 4],
        }

    async def test_as_kafkaio_has_it(self, client: Client) -> None:
        table = await self.table(client, schema(headers=True))
        assert table["headers"].to_pylist()[:2] == [
            [{"name": "h", "value": b"1"}, {"name": "i", "value": None}],
            [],
        ]
        assert table["topic"].to_pylist() == ["one"] * 4
        default = [b async for b in read_ranges(client, [between(0, 4)])]
        assert default[0].schema == schema()

    @pytest.mark.parametrize("name", SPARK.names)
    async def test_one_column_alone(self, client: Client, name: str) -> None:
        whole = await self.table(client, SPARK)
        alone = await self.table(client, pa.schema([SPARK.field(name)]))
        assert alone[name].to_pylist() == whole[name].to_pylist()

    async def test_text(self, client: Client, logs: FakeLogs) -> None:
        text = pa.schema([("value", pa.string()), ("key", pa.string())])
        table = await self.table(client, text)
        assert table["value"].to_pylist() == ["vé", "w", None, "vé"]
        logs.append(*ONE, b"\xff")
        with pytest.raises(ArgumentValueError, match=r"a value of one-0 from .* UTF-8"):
            await self.table(client, text, 5)

    @pytest.mark.parametrize("index", [pa.int8(), pa.int32(), pa.uint16()])
    async def test_topics_as_dictionaries(self, client: Client, index: Any) -> None:
        table = await self.table(
            client, pa.schema([("topic", pa.dictionary(index, pa.string()))])
        )
        assert table["topic"].to_pylist() == ["one"] * 4

    async def test_times(self, client: Client, logs: FakeLogs) -> None:
        zone = pa.schema([("timestamp", pa.timestamp("ms", tz="Europe/Berlin"))])
        table = await self.table(client, zone)
        assert table["timestamp"].cast(pa.int64()).to_pylist() == [
            1_000,
            None,
            2_001,
            1_000,
        ]
        log = logs.log(*ONE)
        log.raw(encode_batch([(2**60, None, b"", ())], base_offset=4), 1)
        with pytest.raises(ArgumentValueError, match="does not fit in microseconds"):
            await self.table(
                client, pa.schema([("timestamp", pa.timestamp("us", tz="UTC"))]), 5
            )

    @pytest.mark.parametrize(
        ("fields", "words"),
        [
            ([], "must have columns"),
            ([("key", pa.binary())] * 2, "each once"),
            ([("size", pa.int64())], "no column 'size'; the columns are key, value"),
            ([("key", pa.int64())], "column 'key' cannot be int64"),
            ([("topic", pa.binary())], "column 'topic' cannot be"),
            (
                [("topic", pa.dictionary(pa.int8(), pa.binary()))],
                "column 'topic' cannot be",
            ),
            ([("partition", pa.int64())], "column 'partition' cannot be"),
            ([("offset", pa.int32())], "column 'offset' cannot be"),
            ([("timestamp", pa.int64())], "column 'timestamp' cannot be"),
            ([("timestamp", pa.timestamp("us"))], "column 'timestamp' cannot be"),
            ([("timestamp", pa.timestamp("s", "UTC"))], "column 'timestamp' cannot"),
            ([("timestamp_type", pa.int8())], "column 'timestamp_type' cannot be"),
            ([("headers", pa.binary())], "column 'headers' cannot be"),
            ([("headers", pa.list_(pa.binary()))], "column 'headers' cannot be"),
            ([headers_of("k", "value")], "column 'headers' cannot be"),
            ([headers_of("key", "v")], "column 'headers' cannot be"),
            ([pa.field("key", pa.binary(), nullable=False)], "make it nullable"),
        ],
    )
    async def test_what_is_refused(
        self, client: Client, fields: list[Any], words: str
    ) -> None:
        with pytest.raises(ArgumentValueError, match=words):
            read_ranges(client, [], schema=pa.schema(fields))

    async def test_arguments(self, client: Client) -> None:
        def read(*args: Any, **options: Any) -> None:
            read_ranges(*args, **options)

        for wrong in (None, 5, [ONE], [(ONE, 0)], [(ONE, 0, True)], [("one", 0, 1)]):
            with pytest.raises(ArgumentTypeError):
                read(client, wrong)
        for start, end in ((-1, 5), (5, 4)):
            with pytest.raises(ArgumentValueError, match=f"from {start} to {end}"):
                read(client, [(ONE, start, end)])
        with pytest.raises(ArgumentTypeError, match="Client"):
            read("localhost", [])
        with pytest.raises(ArgumentTypeError, match="Schema"):
            read(client, [], schema=["value"])
        with pytest.raises(ArgumentValueError, match="isolation_level"):
            read(client, [], isolation_level=1)
        with pytest.raises(ArgumentValueError, match="fetch_bytes"):
            read(client, [], fetch_bytes=0)
        with pytest.raises(ArgumentValueError, match="max_response_size"):
            read(client, [], fetch_bytes=2**31)

    async def test_a_batch_that_would_be_too_large_is_cut(
        self, client: Client, logs: FakeLogs, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("kafkaio.arrow._ENOUGH", 1_000)
        for _ in range(4):
            logs.append(*ONE, *[b"v" * 2_000] * 3, compression=Compression.GZIP)
        reader = read_ranges(client, [between(4, 15)], schema=OFFSETS)
        found = [batch["offset"].to_pylist() async for batch in reader]
        assert found == [[4, 5, 6], [7, 8, 9], [10, 11, 12], [13, 14]]


class TestEmbedded:
    """Against the embedded broker, which moves, breaks and cleans."""

    async def test_faults_lose_nothing_and_repeat_nothing(self) -> None:
        broker = Broker(
            nodes=3, topics={"t": 3}, replication_factor=3, memory_transport=True
        )
        async with broker:
            async with producer_of(broker, batch_size=200) as producer:
                for n in range(600):
                    await producer.enqueue("t", b"%d" % n, partition=n % 3)
                await producer.flush()
            broker.faults.on("Fetch", disconnect_before_write(rate=0.1, seed=1))
            broker.faults.on("Fetch", disconnect_after_write(rate=0.1, seed=2))
            broker.faults.on("Fetch", half_frame(rate=0.1, seed=3))
            broker.faults.on(
                "Fetch", error(ErrorCode.NOT_LEADER_OR_FOLLOWER, rate=0.1, seed=4)
            )
            ranges = [
                OffsetRange(TopicPartition("t", n), 10 * n, 200 - n) for n in range(3)
            ]
            dice = random.Random(7)
            async with client_of(broker, retry_backoff_ms=1) as client:
                found = []
                reader = read_ranges(client, ranges, fetch_bytes=600)
                async for batch in reader:
                    found += [
                        (row["partition"], row["offset"], row["value"])
                        for row in batch.to_pylist()
                    ]
                    if dice.random() < 0.3:
                        tp = ("t", dice.randrange(3))
                        broker.control.move_leader(tp, dice.randrange(3))
        assert found == [
            (n, offset, b"%d" % (3 * offset + n))
            for n in range(3)
            for offset in range(10 * n, 200 - n)
        ]

    async def test_compaction_and_transactions(self) -> None:
        """Ranges of a log with holes have what a consumer would read."""
        broker = Broker(memory_transport=True)
        async with broker:
            broker.create_topic(
                "c",
                1,
                configs={"cleanup.policy": "compact", "segment.bytes": "1024"},
            )
            tp = TopicPartition("c", 0)
            plain = producer_of(broker, batch_size=300)
            transactional = producer_of(broker, transactional_id="x")
            async with plain, transactional:
                for n in range(40):
                    if n % 4:
                        key = b"%d" % (n % 5)
                        await plain.send("c", b"%d" % n, key=key, partition=0)
                        continue
                    await self._transact(transactional, n, aborts=n % 8 == 0)
                broker.control.tidy()
                # Compaction may have removed what was aborted before.
                await self._transact(transactional, 40, aborts=True)
            async with client_of(broker) as client:
                [end] = (await client.offsets({tp: "latest"})).values()
                assert end is not None
                for isolation in ("read_uncommitted", "read_committed"):
                    whole = await self._rows(client, tp, 0, end.offset, isolation)
                    assert 5 < len(whole) < 40
                    dice = random.Random(3)
                    for _ in range(20):
                        ends = sorted(dice.choices(range(end.offset + 1), k=2))
                        rows = await self._rows(client, tp, *ends, isolation)
                        assert rows == [
                            row for row in whole if ends[0] <= row[0] < ends[1]
                        ]
                    values = {value for _, value in whole}
                    assert (b"a40" in values) == (isolation == "read_uncommitted")

    @staticmethod
    async def _transact(producer: Producer, n: int, *, aborts: bool) -> None:
        value = b"a%d" % n if aborts else b"c%d" % n
        async with producer.transaction() as tx:
            await tx.send("c", value, key=value, partition=0)
            if aborts:
                await tx.abort()

    @staticmethod
    async def _rows(
        client: Client, tp: TopicPartition, start: int, end: int, isolation: Any
    ) -> list[tuple[int, bytes]]:
        reader = read_ranges(
            client,
            [OffsetRange(tp, start, end)],
            schema=OFFSETS,
            isolation_level=isolation,
            fetch_bytes=400,
        )
        return [
            (row["offset"], row["value"])
            async for batch in reader
            for row in batch.to_pylist()
        ]

    async def test_a_topic_made_again_has_other_records(self) -> None:
        async with Broker(topics={"t": 1}, memory_transport=True) as broker:
            await self._fill(broker)
            async with client_of(broker, retry_backoff_ms=1) as client:
                reader = read_ranges(
                    client,
                    [OffsetRange(TopicPartition("t", 0), 0, 100)],
                    fetch_bytes=400,
                )
                await anext(reader)
                await client.request(
                    DeleteTopicsRequest(
                        topics=[DeleteTopicState(name="t")], timeout_ms=1_000
                    ),
                    Controller,
                )
                broker.create_topic("t", 1)
                await self._fill(broker)
                with pytest.raises(UnknownTopicOrPartition, match="'t' was deleted"):
                    await offsets_of(reader)

    @staticmethod
    async def _fill(broker: Broker) -> None:
        async with producer_of(broker, batch_size=200) as producer:
            for n in range(100):
                await producer.enqueue("t", b"%d" % n, partition=0)
            await producer.flush()

    async def test_a_leader_that_dies(self) -> None:
        broker = Broker(
            nodes=3, topics={"t": 1}, replication_factor=3, memory_transport=True
        )
        async with broker:
            tp = TopicPartition("t", 0)
            await self._fill(broker)
            async with client_of(broker) as client:
                reader = read_ranges(client, [OffsetRange(tp, 0, 100)], fetch_bytes=400)
                found = (await anext(reader))["offset"].to_pylist()
                await broker.control.kill(broker.control.leader(tp))
                found += await offsets_of(reader)
                assert found == [*range(100)]
