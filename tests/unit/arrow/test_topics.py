"""Topics as Arrow tables, without an event loop and on one."""

from __future__ import annotations

import asyncio
import gc
import threading
import warnings
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest

import kafkaio
from kafkaio import (
    ArgumentTypeError,
    ArgumentValueError,
    BrokerNotAvailable,
    Client,
    ClientConfig,
    ClosedError,
    ConfigurationError,
    NewRecord,
    OffsetOutOfRange,
    RequestTimeout,
    TopicPartition,
    UnknownTopicOrPartition,
    UsageError,
)
from kafkaio.protocol._api_keys import ApiKey
from tests.support.served import ServedBroker

pa = pytest.importorskip("pyarrow", exc_type=ImportError)
from kafkaio.arrow import (  # noqa: E402
    read_batches,
    read_batches_async,
    read_table,
    read_table_async,
    schema,
)

NOON = datetime(2026, 3, 14, 12, tzinfo=UTC)
HEADERS = [("trace", b"1"), ("empty", None)]


def at(minutes: int) -> int:
    """Milliseconds of a time after noon."""
    return round((NOON + timedelta(minutes=minutes)).timestamp() * 1000)


def sent(n: int, partition: int) -> NewRecord:
    """The record that is written as the n-th of a partition, n minutes after noon."""
    value = b"%d of %d" % (n, partition)
    key = None if n % 2 else b"%d" % n
    return NewRecord(value, key, HEADERS, timestamp=at(n), partition=partition)


@pytest.fixture(scope="module")
def served() -> Iterator[ServedBroker]:
    """Three nodes; ``orders`` has ten records in each of three partitions."""
    with ServedBroker(nodes=3) as served:
        served.create("orders", 3)
        served.create("empty", 2)
        served.send("orders", [sent(n, p) for p in range(3) for n in range(10)])
        yield served


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """No test leaves a thread behind."""
    yield
    gc.collect()
    for thread in threading.enumerate():
        if thread.name.startswith("the reader of"):
            thread.join(10)
            assert not thread.is_alive()


def tp(partition: int, topic: str = "orders") -> TopicPartition:
    return TopicPartition(topic, partition)


def places(table: Any) -> dict[int, list[int]]:
    """The offsets of the rows, by partition."""
    found: dict[int, list[int]] = {}
    for row in table.select(["partition", "offset"]).to_pylist():
        found.setdefault(row["partition"], []).append(row["offset"])
    return found


def ordered(table: Any) -> Any:
    """The rows by partition: a leader that is late does not hold up the others."""
    place = [("partition", "ascending"), ("offset", "ascending")]
    return table.sort_by(place).combine_chunks()


class TestWhatIsRead:
    def test_everything(self, served: ServedBroker) -> None:
        table = read_table(served.servers, "orders")
        table.validate(full=True)
        assert table.schema == schema()
        assert table.num_rows == 30
        assert table["topic"].to_pylist() == ["orders"] * 30
        assert places(table) == {p: [*range(10)] for p in range(3)}
        table = ordered(table)
        expected = [sent(n, p) for p in range(3) for n in range(10)]
        assert table["value"].to_pylist() == [each.value for each in expected]
        assert table["key"].to_pylist() == [each.key for each in expected]
        times = table["timestamp"].cast(pa.int64()).to_pylist()
        assert times == [each.timestamp for each in expected]
        assert table["timestamp"].type.tz == "UTC"

    def test_topics_and_partitions(self, served: ServedBroker) -> None:
        some = read_table(served.servers, tp(1))
        assert places(some) == {1: [*range(10)]}
        mixed: list[Any] = ["empty", tp(2), tp(0), tp(2)]
        assert {*places(read_table(served.servers, mixed))} == {0, 2}
        assert read_table(served.servers, "empty").schema == schema()
        assert read_table(served.servers, "empty").num_rows == 0

    def test_columns_by_name_and_type(self, served: ServedBroker) -> None:
        chosen: list[Any] = [
            ["value", "offset"],
            {"value": "string", "timestamp": pa.timestamp("us", tz="UTC")},
            {"headers": None, "topic": pa.string(), "leader_epoch": None},
            pa.schema([("key", pa.string())]),
        ]
        first, second, third, fourth = (
            read_table(served.servers, tp(0), columns=columns) for columns in chosen
        )
        assert first.schema.names == ["value", "offset"]
        assert first["value"][3].as_py() == b"3 of 0"
        assert second["value"][3].as_py() == "3 of 0"
        assert second["timestamp"][1].as_py() == NOON + timedelta(minutes=1)
        headers = [{"name": n, "value": v} for n, v in HEADERS]
        assert third["headers"][0].as_py() == headers
        assert third["topic"].type == pa.string()
        assert set(third["leader_epoch"].to_pylist()) == {0}
        assert fourth["key"].to_pylist()[:4] == ["0", None, "2", None]

    def test_what_is_written_later_is_not_read(self, served: ServedBroker) -> None:
        served.create("growing")
        served.send("growing", [b"1", b"2"])
        reader = read_batches(served.servers, "growing")
        served.send("growing", [b"3"])
        assert reader.read_all()["value"].to_pylist() == [b"1", b"2"]

    def test_transactions(self, served: ServedBroker) -> None:
        def read() -> list[Any]:
            levels: list[Any] = ["read_committed", "read_uncommitted"]
            begin: dict[TopicPartition, Any] = {tp(0, "paid"): 5}
            return [
                read_table(served.servers, "paid", start=start, isolation_level=level)
                for level in levels
                # The last stable offset is 4, and 5 is not after the end of the log.
                for start in ({}, begin)
            ]

        async def write() -> list[Any]:
            async with kafkaio.Producer(
                served.servers, transactional_id="tables"
            ) as producer:
                async with producer.transaction() as kept:
                    await kept.send("paid", b"kept")
                with suppress(EOFError):
                    async with producer.transaction() as aborted:
                        await aborted.send("paid", b"aborted")
                        raise EOFError
                async with producer.transaction() as still_open:
                    await still_open.send("paid", b"open")
                    return await asyncio.to_thread(read)

        served.create("paid")
        values = [table["value"].to_pylist() for table in served.run(write())]
        assert values == [[b"kept"], [], [b"kept", b"aborted", b"open"], []]


class TestPlaces:
    """Where ranges begin and end."""

    @pytest.mark.parametrize(
        ("start", "end", "expected"),
        [
            ({tp(0): 3, tp(1): 10}, "latest", ([*range(3, 10)], [], [*range(10)])),
            ("earliest", {tp(0): 3, tp(1): 0}, ([0, 1, 2], [], [*range(10)])),
            ({tp(0): 3}, {("orders", 0): 5}, ([3, 4], [*range(10)], [*range(10)])),
            (NOON + timedelta(minutes=8), "latest", ([8, 9],) * 3),
            ("earliest", NOON + timedelta(minutes=2), ([0, 1],) * 3),
            (at(4), at(5), ([4],) * 3),
            (at(30), "latest", ([],) * 3),
            ("earliest", at(30), ([*range(10)],) * 3),
            (at(5), at(4), ([],) * 3),
            ("latest", "latest", ([],) * 3),
            ("earliest", "earliest", ([],) * 3),
            (
                {tp(0): NOON, tp(1): 9, tp(2): "latest"},
                "latest",
                ([*range(10)], [9], []),
            ),
            ({tp(0): 9}, NOON + timedelta(minutes=2), ([], [0, 1], [0, 1])),
        ],
    )
    def test_ranges(
        self, served: ServedBroker, start: Any, end: Any, expected: Any
    ) -> None:
        table = read_table(served.servers, "orders", start=start, end=end)
        assert places(table) == {p: rows for p, rows in enumerate(expected) if rows}

    def test_numbers_of_numpy(self, served: ServedBroker) -> None:
        # As they come out of a data frame.
        numpy = pytest.importorskip("numpy", exc_type=ImportError)
        place = TopicPartition("orders", numpy.int32(1))
        table = read_table(served.servers, place, start={place: numpy.int64(8)})
        assert places(table) == {1: [8, 9]}

    @pytest.mark.parametrize(
        ("wrong", "reason"),
        [
            ({"start": datetime(2026, 3, 14)}, "has no time zone"),  # noqa: DTZ001
            ({"start": 17}, r"start=17 would be a time .* an offset for each"),
            ({"end": -1}, "before 1970"),
            ({"start": "begin"}, "'begin' is not a place"),
            ({"start": {tp(0): -1}}, "the negative offset -1"),
            ({"start": {tp(0, "other"): 1}}, "start names other-0, which is not read"),
            ({"start": {tp(0): 5}, "end": {tp(0): 4}}, "end at 4, before its start 5"),
            ({"isolation_level": "serializable"}, "isolation_level"),
            ({"columns": ["nothing"]}, "there is no column 'nothing'; the columns are"),
            ({"columns": {"key": "int32"}}, "column 'key' cannot be int32"),
            ({"columns": {"key": "text"}}, "column 'key'"),
            ({"columns": []}, "a schema must have columns"),
            ({"fetch_bytes": 2**31}, "must be less than max_response_size"),
            ({"topic": []}, "not nothing"),
            ({"topic": ""}, "topic must not be empty"),
        ],
    )
    def test_impossible_values(self, wrong: dict[str, Any], reason: str) -> None:
        given: dict[str, Any] = {"topic": "orders", **wrong}
        for read in (read_table, read_batches, read_batches_async):
            with pytest.raises(ArgumentValueError, match=reason):
                read("localhost:9", **given)

    @pytest.mark.parametrize(
        "wrong",
        [
            {"start": 1.5},
            {"end": {0: 5}},
            {"start": {tp(0): None}},
            {"columns": "value"},
            {"columns": 3},
            {"columns": {"key": 3}},
            {"topic": 3},
            {"topic": [3]},
            {"topic": b"orders"},
            {"fetch_bytes": "1"},
        ],
    )
    def test_wrong_types(self, wrong: dict[str, Any]) -> None:
        given: dict[str, Any] = {"topic": "orders", **wrong}
        with pytest.raises(ArgumentTypeError):
            read_table("localhost:9", **given)

    def test_what_there_is_not(self, served: ServedBroker) -> None:
        for topic, start in (
            ("missing", "earliest"),
            (tp(7), "earliest"),
            ("orders", {tp(7): 0}),
        ):
            with pytest.raises(UnknownTopicOrPartition):
                read_batches(served.servers, topic, start=start)  # type: ignore[arg-type]

    def test_a_log_that_is_shorter_than_the_start(self, served: ServedBroker) -> None:
        # As after a topic was deleted and made again: nothing is skipped in silence.
        for level in ("read_committed", "read_uncommitted"):
            with pytest.raises(OffsetOutOfRange, match="its log ends at 10") as failure:
                read_table(
                    served.servers, "orders", start={tp(0): 11}, isolation_level=level
                )
            error = failure.value
            assert (error.topic, error.partition, error.position) == ("orders", 0, 11)

    def test_deleted_records(self, served: ServedBroker) -> None:
        served.create("short")
        served.send("short", [b"%d" % n for n in range(6)])
        served.delete({tp(0, "short"): 4})
        whole = read_table(served.servers, "short")
        assert whole["value"].to_pylist() == [b"4", b"5"]
        before = read_table(served.servers, "short", end={tp(0, "short"): 3})
        assert before.num_rows == 0
        with pytest.raises(OffsetOutOfRange, match="its log has 4 to 6"):
            read_table(served.servers, "short", start={tp(0, "short"): 2})

    def test_a_topic_that_is_made_again_meanwhile(self, served: ServedBroker) -> None:
        served.create("again")
        served.send("again", [b"old"])
        reader = read_batches(served.servers, "again")
        served.drop("again")
        served.create("again")
        served.send("again", [b"new"])
        with pytest.raises(UnknownTopicOrPartition):
            reader.read_all()
        assert read_table(served.servers, "again")["value"].to_pylist() == [b"new"]

    def test_a_client_that_is_older_than_the_topic(self, served: ServedBroker) -> None:
        def make_again() -> None:
            served.drop("younger")
            served.create("younger")
            served.send("younger", [b"new"])

        async def read() -> list[list[bytes]]:
            async with Client(served.servers) as client:
                before = await read_table_async(client, "younger")
                await asyncio.to_thread(make_again)
                after = await read_table_async(client, "younger")
            return [before["value"].to_pylist(), after["value"].to_pylist()]

        served.create("younger")
        served.send("younger", [b"old", b"older"])
        assert asyncio.run(read()) == [[b"old", b"older"], [b"new"]]

    @pytest.mark.parametrize("start", ["earliest", NOON + timedelta(minutes=1)])
    def test_retention_meanwhile(self, served: ServedBroker, start: Any) -> None:
        name = f"retained-{start == 'earliest'}"
        served.create(name, 2)
        for n in range(6):
            # Each a batch of its own, so that the first answer has one.
            served.send(name, [sent(n, p) for p in range(2)])
        reader = read_batches(served.servers, name, start=start, fetch_bytes=1)
        served.delete({tp(1, name): 4})
        table = reader.read_all()
        first = 0 if start == "earliest" else 1
        assert places(table) == {0: [*range(first, 6)], 1: [4, 5]}

    def test_a_gap_in_the_middle(self, served: ServedBroker) -> None:
        served.create("gap")
        for n in range(6):
            served.send("gap", [sent(n, 0)])
        reader = read_batches(served.servers, "gap", fetch_bytes=1)
        assert reader.read_next_batch()["offset"].to_pylist() == [0]
        served.delete({tp(0, "gap"): 4})
        with pytest.raises(OffsetOutOfRange):
            reader.read_all()


class TestServers:
    def test_forms(self, served: ServedBroker) -> None:
        config = ClientConfig.from_properties({"bootstrap.servers": served.servers})
        for servers in (served.servers.split(","), config):
            assert read_table(servers, "orders").num_rows == 30
        with pytest.raises(ArgumentValueError, match="has its options already"):
            read_table(config, "orders", client_id="me")

    def test_options(self, served: ServedBroker) -> None:
        read_table(served.servers, tp(0), client_id="a-notebook")
        assert any(r.client_id == "a-notebook" for r in served.broker.requests)
        with pytest.raises(ConfigurationError, match="clientid"):
            read_table(served.servers, "orders", clientid="me")  # type: ignore[call-arg]

    def test_nobody_answers(self) -> None:
        for read in (read_table, read_batches):
            with pytest.raises(BrokerNotAvailable):
                read("127.0.0.1:9", "orders", default_api_timeout_ms=100)

    def test_a_client_is_refused_where_the_caller_blocks(self) -> None:
        client: Any = Client("localhost:9")
        for read in (read_table, read_batches):
            with pytest.raises(ArgumentTypeError, match="read_table_async"):
                read(client, "orders")


class TestReader:
    """`read_batches`."""

    def test_it_is_a_reader_of_arrow(self, served: ServedBroker) -> None:
        reader = read_batches(served.servers, "orders", max_records=4)
        assert isinstance(reader, pa.RecordBatchReader)
        assert reader.schema == schema()
        batches = [*reader]
        assert max(batch.num_rows for batch in batches) == 4
        table = ordered(pa.Table.from_batches(batches))
        assert table.equals(ordered(read_table(served.servers, "orders")))

    def test_memory_is_bounded(self, served: ServedBroker) -> None:
        served.create("large")
        for _ in range(20):
            served.send("large", [bytes(50_000)])
        reader = read_batches(served.servers, "large", fetch_bytes=60_000)
        reader.read_next_batch()

        def fetches() -> int:
            return sum(r.api is ApiKey.FETCH for r in served.broker.requests)

        before = fetches()
        # Another reader reads everything meanwhile; the first one has not gone on.
        rows = read_table(served.servers, "large", fetch_bytes=60_000).num_rows
        assert rows == 20
        assert 20 <= fetches() - before <= 22
        assert reader.read_all().num_rows == 19

    def test_a_failure_is_never_taken_for_the_end(self, served: ServedBroker) -> None:
        served.create("bad", 2)
        served.send("bad", [NewRecord(b"good", partition=0)])
        served.send("bad", [NewRecord(b"\xff", partition=1)])
        reader = read_batches(served.servers, "bad", columns={"value": "string"})
        assert reader.read_next_batch()["value"].to_pylist() == ["good"]
        with pytest.raises(ArgumentValueError, match="not UTF-8"):
            reader.read_next_batch()
        with pytest.raises(ClosedError, match="failed before: ArgumentValueError"):
            reader.read_next_batch()

    def test_a_cluster_that_is_gone(self) -> None:
        with ServedBroker() as dying:
            dying.create("orders")
            for n in range(4):
                dying.send("orders", [sent(n, 0)])
            reader = read_batches(
                dying.servers, "orders", fetch_bytes=1, default_api_timeout_ms=300
            )
            assert reader.read_next_batch()["offset"].to_pylist() == [0]
        with pytest.raises(RequestTimeout):
            reader.read_all()
        with pytest.raises(ClosedError, match="failed before: RequestTimeout"):
            reader.read_all()

    def test_no_rows_in_a_batch(self) -> None:
        for read in (read_batches, read_batches_async):
            with pytest.raises(ArgumentValueError, match="max_records=0"):
                read("localhost:9", "orders", max_records=0)

    def test_left_before_the_end(self, served: ServedBroker) -> None:
        reader = read_batches(served.servers, "orders", max_records=1)
        reader.read_next_batch()
        names = [thread.name for thread in threading.enumerate()]
        assert "the reader of orders" in names
        del reader  # `nothing_left` waits for its end

    async def test_where_a_loop_runs(self, served: ServedBroker) -> None:
        assert read_table(served.servers, "orders").num_rows == 30
        reader = read_batches(served.servers, ["orders", "empty"])
        assert reader.read_all().num_rows == 30


class TestOnALoop:
    """`read_table_async` and `read_batches_async`; each test has a loop of its own."""

    def test_the_same_rows(self, served: ServedBroker) -> None:
        async def read() -> Any:
            async with Client(served.servers) as client:
                by_client = await read_table_async(client, "orders")
                async with read_batches_async(
                    client, "orders", max_records=7
                ) as reader:
                    batches = [batch async for batch in reader]
                assert client.statistics().state == "running"
            return by_client, batches, await read_table_async(served.servers, "orders")

        table = ordered(read_table(served.servers, "orders"))
        by_client, batches, by_servers = asyncio.run(read())
        assert table.equals(ordered(by_client))
        assert table.equals(ordered(by_servers))
        assert table.equals(ordered(pa.Table.from_batches(batches)))
        assert max(batch.num_rows for batch in batches) == 7

    def test_its_life(self, served: ServedBroker) -> None:
        async def read() -> None:
            reader = read_batches_async(served.servers, "orders", max_records=4)
            assert (await anext(reader)).num_rows == 4  # it begins by itself
            assert reader.schema == schema()
            await reader.aclose()
            await reader.aclose()
            assert [batch async for batch in reader] == []
            with pytest.raises(ClosedError, match="the reader of orders is closed"):
                await reader.start()

        asyncio.run(read())

    def test_read_to_its_end_it_is_closed(self, served: ServedBroker) -> None:
        async def read() -> int:
            reader = read_batches_async(served.servers, "orders")
            return sum([batch.num_rows async for batch in reader])

        assert asyncio.run(read()) == 30  # and no ResourceWarning

    def test_left_open_it_warns(self, served: ServedBroker) -> None:
        async def read() -> None:
            reader = read_batches_async(served.servers, "orders", max_records=1)
            await anext(reader)

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            asyncio.run(read())
            gc.collect()
        (warning,) = (w for w in caught if w.category is ResourceWarning)
        assert "was started and never closed" in str(warning.message)

    def test_it_begins_anew_after_a_failure(self, served: ServedBroker) -> None:
        async def read() -> int:
            reader = read_batches_async(served.servers, "later")
            with pytest.raises(UnknownTopicOrPartition):
                await reader.start()
            await asyncio.to_thread(served.create, "later")
            await asyncio.to_thread(served.send, "later", [b"1"])
            return sum([batch.num_rows async for batch in reader])

        assert asyncio.run(read()) == 1

    def test_one_task_at_a_time(self, served: ServedBroker) -> None:
        async def read() -> None:
            async with read_batches_async(served.servers, "orders") as reader:
                async with asyncio.TaskGroup() as group:
                    first = group.create_task(anext(reader))
                    await asyncio.sleep(0)
                    for call in (reader.start, reader.aclose, reader.__anext__):
                        with pytest.raises(UsageError, match="another task"):
                            await call()
                assert first.result().num_rows > 0

        asyncio.run(read())

    def test_cancelled_it_closes(self, served: ServedBroker) -> None:
        async def read() -> None:
            # It waits for the end, which the log does not reach.
            await read_table_async(
                served.servers, tp(0), end={tp(0): 11}, client_id="waits"
            )

        async def begin_and_cancel() -> None:
            async with anyio.create_task_group() as group:
                group.start_soon(read)
                while not any(  # noqa: ASYNC110 - until the broker was asked
                    request.client_id == "waits" and request.api is ApiKey.FETCH
                    for request in served.broker.requests
                ):
                    await asyncio.sleep(0.001)
                group.cancel_scope.cancel()

        asyncio.run(begin_and_cancel())  # and no ResourceWarning
