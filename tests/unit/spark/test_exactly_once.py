"""What an attempt of a task writes, and what it leaves to another one."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import AsyncExitStack
from typing import Any, TypeVar

import pyarrow as pa
import pytest

from kafkaio.client import Client
from kafkaio.config import ProducerConfig
from kafkaio.errors import BrokerNotAvailable, RequestTimeout, UnknownTopicOrPartition
from kafkaio.producer import Transaction
from kafkaio.protocol.api_keys import ApiKey
from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.spark.digest import RowDigest
from kafkaio.spark.exactly_once import (
    AttemptFailed,
    Put,
    ReplayMismatch,
    TaskAttempt,
    TaskName,
    TaskResult,
)
from kafkaio.testing import Broker
from kafkaio.testing.broker.faults import disconnect_before_write, drop, error
from kafkaio.types import OffsetAndMetadata, TopicPartition
from tests.spark.torture_protocol import (
    Cluster,
    MarkerFirst,
    OwnIds,
    Verdict,
    WithoutMarker,
    batches_of,
    read,
    run,
)
from tests.unit.producer.transactional import until
from tests.virtual_loop import VirtualClockLoop

T = TypeVar("T")
NAME = TaskName(app="orders", version=7, task=3)
ROWS = [f"row {number}" for number in range(25)]
VALUES = [row.encode() for row in ROWS]
MARKER_AT = TopicPartition("out", 0)


class World:
    """A cluster with the topic ``out``, and the processes that write to it."""

    def __init__(self, broker: Broker, stack: AsyncExitStack) -> None:
        self.broker = broker
        self.cluster = Cluster(broker.bootstrap_servers, broker.dial)
        self._stack = stack

    async def client(self) -> Client:
        return await self._stack.enter_async_context(self.cluster.client())

    async def attempt(
        self,
        name: TaskName = NAME,
        kind: type[TaskAttempt] = TaskAttempt,
        topic: str = "out",
        on_mismatch: Any = "fail",
        **options: Any,
    ) -> TaskAttempt:
        """An attempt in a process of its own."""
        servers = self.broker.bootstrap_servers
        return kind(
            await self.client(),
            name,
            marker_topic=topic,
            config=ProducerConfig.of(servers, {"linger_ms": 0, **options}),
            on_mismatch=on_mismatch,
        )

    async def write(self, rows: Iterable[str] = ROWS, **attempt: Any) -> TaskResult:
        """Run an attempt from begin to end."""
        made = await self.attempt(**attempt)
        return await made.run(batches_of(list(rows)), put)

    async def marker(self, name: TaskName = NAME) -> OffsetAndMetadata | None:
        client = await self.client()
        return (await client.committed(name.transactional_id, [MARKER_AT]))[MARKER_AT]

    async def seen(self, isolation: str = "read_committed") -> list[bytes | None]:
        """What readers see once no transaction is open."""
        await until(lambda: not self.broker.control.open_transactions())
        return sorted(await read(self.cluster, "out", 2, isolation), key=str)


async def put(tx: Transaction, batch: pa.RecordBatch) -> None:
    for number, value in enumerate(batch.column("value").to_pylist()):
        _ = await tx.enqueue("out", value.encode(), partition=number % 2)


def in_world(
    body: Callable[[World], Awaitable[T]], *, level: int = 2, **options: Any
) -> T:
    """Run a test on virtual time, in front of an embedded broker."""

    async def main() -> T:
        broker = Broker(
            memory_transport=True,
            topics={"out": 2},
            features={"transaction.version": level},
            **options,
        )
        async with asyncio.timeout(3600), AsyncExitStack() as stack, broker:
            return await body(World(broker, stack))

    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        return runner.run(main())


class Gate:
    """Where a `put` stops until the test lets it go on."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.opened = asyncio.Event()

    async def put(self, tx: Transaction, batch: pa.RecordBatch) -> None:
        await put(tx, batch)
        self.reached.set()
        await self.opened.wait()


def digest_of(rows: list[str]) -> RowDigest:
    digest = RowDigest()
    digest.add(pa.record_batch({"value": rows}))
    return digest


# ---- one attempt ---------------------------------------------------------------------


@pytest.mark.parametrize("level", [1, 2])
def test_rows_and_marker_are_committed(level: int) -> None:
    async def body(world: World) -> None:
        result = await world.write()
        digest = digest_of(ROWS)
        assert result == TaskResult(rows=25, digest=str(digest), is_skipped=False)
        assert await world.seen() == sorted(VALUES)
        marker = await world.marker()
        assert marker is not None
        assert (marker.offset, marker.metadata) == (8, digest.metadata())
        assert json.loads(marker.metadata)["rows"] == 25

    in_world(body, level=level)


def test_the_names_do_not_have_the_attempt() -> None:
    name = TaskName(app="a", version=1, task=2, prefix="team")
    assert name.transactional_id == "team-a-2"
    assert str(name) == "task 2 of batch 1 of 'a'"


def test_the_identity_is_taken_before_the_marker_is_read() -> None:
    async def body(world: World) -> None:
        await world.write()
        asked = [
            one.api
            for one in world.broker.requests
            if one.api in {ApiKey.INIT_PRODUCER_ID, ApiKey.OFFSET_FETCH}
        ]
        assert asked == [ApiKey.INIT_PRODUCER_ID, ApiKey.OFFSET_FETCH]

    in_world(body)


def test_a_task_without_rows_has_a_marker() -> None:
    async def body(world: World) -> None:
        assert (await world.write([])).rows == 0
        marker = await world.marker()
        assert marker is not None
        assert marker.offset == 8
        with pytest.raises(ReplayMismatch, match='"rows": 25'):
            await world.write()

    in_world(body)


def test_batch_after_batch() -> None:
    async def body(world: World) -> None:
        for version in range(3):
            name = TaskName(app="orders", version=version, task=3)
            assert not (await world.write([f"{version}"], name=name)).is_skipped
        assert await world.seen() == [b"0", b"1", b"2"]

    in_world(body)


def test_an_input_that_fails_leaves_nothing() -> None:
    async def broken() -> AsyncIterator[pa.RecordBatch]:
        async for batch in batches_of(ROWS):
            yield batch
        raise ZeroDivisionError

    async def body(world: World) -> None:
        attempt = await world.attempt()
        with pytest.raises(ZeroDivisionError):
            await attempt.run(broken(), put)
        assert not world.broker.control.open_transactions()
        assert await world.seen() == []
        assert await world.marker() is None
        assert not (await world.write()).is_skipped
        assert await world.seen() == sorted(VALUES)

    in_world(body)


def test_rows_that_are_refused_leave_nothing() -> None:
    async def body(world: World) -> None:
        world.broker.faults.on("Produce", error(ErrorCode.INVALID_RECORD, 1))
        with pytest.raises(AttemptFailed, match=r"committed nothing: .*INVALID_RECORD"):
            await world.write()
        assert await world.seen() == []
        assert not (await world.write()).is_skipped

    in_world(body)


def test_a_marker_topic_that_is_missing() -> None:
    async def body(world: World) -> None:
        with pytest.raises(UnknownTopicOrPartition, match="nowhere"):
            await world.write(topic="nowhere")

    in_world(body, auto_create_topics=False)


def test_a_missing_topic_is_created_as_by_any_producer() -> None:
    async def body(world: World) -> None:
        assert (await world.write(topic="markers")).rows == 25

    in_world(body)


def test_a_client_is_used_again() -> None:
    async def body(world: World) -> None:
        first = await world.attempt()
        await first.run(batches_of(ROWS), put)
        count = len(first.client.statistics().connections)
        name = TaskName(app="orders", version=8, task=3)
        config = ProducerConfig.of(world.broker.bootstrap_servers, {"linger_ms": 0})
        second = TaskAttempt(first.client, name, marker_topic="out", config=config)
        await second.run(batches_of(ROWS), put)
        assert len(first.client.statistics().connections) == count

    in_world(body)


def test_a_cluster_before_level_2_is_warned_of(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafkaio.spark.exactly_once._warned", set())
    in_world(lambda world: world.write())
    assert not caplog.records
    in_world(lambda world: world.write(), level=1)
    in_world(lambda world: world.write(), level=1)
    (record,) = caplog.records
    assert "transaction.version 1" in record.getMessage()


# ---- another attempt -----------------------------------------------------------------


def test_what_is_in_is_not_written_again() -> None:
    async def body(world: World) -> None:
        first = await world.write()
        again = await world.write(reversed(ROWS))
        assert again.is_skipped
        assert (again.rows, again.digest) == (first.rows, first.digest)
        assert await world.seen("read_uncommitted") == sorted(VALUES)

    in_world(body)


@pytest.mark.parametrize("rows", [ROWS[1:], [*ROWS[1:], "other"], [*ROWS, "more"]])
def test_other_rows_are_seen(rows: list[str]) -> None:
    async def body(world: World) -> None:
        await world.write()
        with pytest.raises(ReplayMismatch, match="task 3 of batch 7 of 'orders'"):
            await world.write(rows)
        assert await world.seen() == sorted(VALUES)

    in_world(body)


def test_other_rows_can_be_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    async def body(world: World) -> None:
        await world.write()
        assert (await world.write(["other"], on_mismatch="warn")).is_skipped
        assert await world.seen() == sorted(VALUES)

    in_world(body)
    (record,) = caplog.records
    assert "other rows" in record.getMessage()


def test_a_later_marker_says_that_rows_are_in_but_not_which(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def body(world: World) -> None:
        await world.write(name=TaskName(app="orders", version=9, task=3))
        result = await world.write(["other"])
        assert result.is_skipped
        assert result.rows == 1

    in_world(body)
    (record,) = caplog.records
    assert "batch 9 was committed already" in record.getMessage()


@pytest.mark.parametrize("metadata", ["", "hello", "[]", "7"])
def test_a_marker_of_somebody_else(metadata: str) -> None:
    class Foreign(TaskAttempt):
        async def marker(self) -> OffsetAndMetadata | None:
            return OffsetAndMetadata(8, metadata)

    async def body(world: World) -> None:
        with pytest.raises(
            ReplayMismatch, match=re.escape(metadata or "nothing noted")
        ):
            await world.write(kind=Foreign)

    in_world(body)


def test_a_commit_whose_readers_wait_is_seen() -> None:
    async def body(world: World) -> None:
        world.broker.control.delay_markers(5)
        await world.write()
        assert await read(world.cluster, "out", 2, "read_committed") == []
        assert (await world.write()).is_skipped
        assert await world.seen() == sorted(VALUES)

    in_world(body)


@pytest.mark.parametrize("level", [1, 2])
def test_a_later_attempt_fences_an_earlier_one(level: int) -> None:
    async def body(world: World) -> None:
        gate, attempt = Gate(), await world.attempt()
        async with asyncio.TaskGroup() as group:
            early = group.create_task(fenced(attempt, gate.put))
            await gate.reached.wait()
            assert not (await world.write()).is_skipped
            gate.opened.set()
        error = early.result()
        assert "another attempt has taken over" in str(error)
        assert "kafka.transaction.timeout.ms=60000" in str(error)
        assert error.retriable
        assert await world.seen() == sorted(VALUES)
        assert (await world.write()).is_skipped

    in_world(body, level=level)


async def fenced(attempt: TaskAttempt, put: Put) -> AttemptFailed:
    with pytest.raises(AttemptFailed) as caught:
        await attempt.run(batches_of(ROWS), put)
    return caught.value


@pytest.mark.parametrize("is_taken", [True, False])
def test_a_commit_without_an_answer_is_found_out_by_the_next_attempt(
    is_taken: bool,
) -> None:
    async def body(world: World) -> None:
        fault = drop() if is_taken else disconnect_before_write()
        rule = world.broker.faults.on("EndTxn", fault)
        options: dict[str, Any] = {"max_block_ms": 2000, "request_timeout_ms": 1000}
        with pytest.raises(AttemptFailed, match="is not known"):
            await world.write(**options)
        world.broker.faults.remove(rule)
        again = await world.write()
        assert again.rows == 25
        assert await world.seen() == sorted(VALUES)

    in_world(body)


def test_a_cluster_that_is_away(caplog: pytest.LogCaptureFixture) -> None:
    async def body(world: World) -> None:
        attempt = await world.attempt()
        await world.broker.control.kill(0)
        with pytest.raises((BrokerNotAvailable, RequestTimeout)):
            await attempt.run(batches_of(ROWS), put)

    in_world(body)
    assert caplog.records


# ---- why each step is there ----------------------------------------------------------


def test_without_a_marker_a_lost_success_doubles() -> None:
    async def body(world: World) -> None:
        await world.write(kind=WithoutMarker)
        await world.write(kind=WithoutMarker)
        assert await world.seen() == sorted(VALUES * 2)

    in_world(body)


@pytest.mark.parametrize("kind", [TaskAttempt, OwnIds])
def test_with_ids_of_their_own_attempts_do_not_fence_each_other(
    kind: type[TaskAttempt],
) -> None:
    async def body(world: World) -> list[bytes | None]:
        gate, attempt = Gate(), await world.attempt(kind=kind)
        async with asyncio.TaskGroup() as group:
            early = group.create_task(ended(attempt, gate.put))
            await gate.reached.wait()
            await world.write(kind=kind)
            gate.opened.set()
        assert early.result() is (kind is OwnIds)
        return await world.seen()

    times = 1 if kind is TaskAttempt else 2
    assert in_world(body) == sorted(VALUES * times)


async def ended(attempt: TaskAttempt, put: Put) -> bool:
    try:
        await attempt.run(batches_of(ROWS), put)
    except AttemptFailed:
        return False
    return True


class InOrder(TaskAttempt):
    """Stops where `MarkerFirst` does, with the steps in their right order."""

    looked: asyncio.Event
    go_on: asyncio.Event

    async def start(self, producer: Any) -> None:
        self.looked.set()
        await self.go_on.wait()
        await super().start(producer)


@pytest.mark.parametrize("kind", [InOrder, MarkerFirst])
def test_a_marker_that_is_read_too_early_doubles(
    kind: type[InOrder | MarkerFirst],
) -> None:
    # The early attempt finds no marker; the other one writes all and commits. Then
    # nothing is left that the early one could fence.
    async def body(world: World) -> list[bytes | None]:
        attempt = await world.attempt(kind=kind)
        assert isinstance(attempt, kind)
        attempt.looked, attempt.go_on = asyncio.Event(), asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(attempt.run(batches_of(ROWS), put))
            await attempt.looked.wait()
            assert not (await world.write()).is_skipped
            attempt.go_on.set()
        return await world.seen()

    times = 1 if kind is InOrder else 2
    assert in_world(body) == sorted(VALUES * times)


# ---- a scheduler that does all that Spark can do -------------------------------------


def simulated(seed: int, attempt: type[TaskAttempt] = TaskAttempt) -> Verdict:
    async def main() -> Verdict:
        async with Broker(memory_transport=True, topics={"out": 4}) as broker:
            cluster = Cluster(broker.bootstrap_servers, broker.dial)
            return await run(cluster, "out", seed, attempt=attempt)

    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        return runner.run(main())


@pytest.fixture
def _quiet() -> Iterator[None]:
    logger = logging.getLogger("kafkaio")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(level)


@pytest.mark.slow
@pytest.mark.usefixtures("_quiet")
@pytest.mark.parametrize("seed", range(10))
def test_every_row_once_under_any_schedule(seed: int) -> None:
    verdict = simulated(seed)
    assert (verdict.duplicates, verdict.missing) == (0, 0)
    # Else nothing was tried.
    assert verdict.logged > verdict.wanted
    assert all(verdict.events[what] for what in ("fenced", "died", "skipped"))


@pytest.mark.slow
@pytest.mark.usefixtures("_quiet")
def test_the_schedules_find_that_there_is_no_marker() -> None:
    assert simulated(0, WithoutMarker).duplicates > 0


@pytest.mark.slow
@pytest.mark.usefixtures("_quiet")
def test_the_schedules_find_ids_of_attempts() -> None:
    assert simulated(0, OwnIds).duplicates > 0
