"""What an attempt of a task writes, and what it leaves to another one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, TypeVar

import pyarrow as pa
import pytest

from kafkaio._client import Client
from kafkaio._config import ProducerConfig
from kafkaio._producer.transaction import Transaction
from kafkaio.errors import BrokerNotAvailable, RequestTimeout
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.spark._digest import RowDigest
from kafkaio.spark._exactly_once import (
    AttemptFailed,
    Put,
    ReplayMismatch,
    TaskAttempt,
    TaskName,
    TaskResult,
)
from kafkaio.spark._judgement import VersionName, VersionWrite
from kafkaio.spark._marker_groups import GroupMarkers
from kafkaio.spark._marker_log import TopicMarkers
from kafkaio.spark._marker_state import (
    AppState,
    Outcome,
    RowsMarker,
    RowSum,
    TaskReport,
)
from kafkaio.spark._marker_stores import MarkerStorePort
from kafkaio.testing import Broker
from kafkaio.testing._broker.faults import disconnect_before_write, drop, error
from kafkaio.types import TopicPartition
from tests.spark.torture_protocol import (
    Cluster,
    MarkerFirst,
    OwnIds,
    Plan,
    Verdict,
    WithoutMarker,
    WithoutOthers,
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
STORES = ["topic", "groups"]


class World:
    """A cluster with the topic ``out``, and the processes that write to it."""

    def __init__(self, broker: Broker, stack: AsyncExitStack, store: str) -> None:
        self.broker = broker
        self.cluster = Cluster(broker.bootstrap_servers, broker.dial)
        self._stack = stack
        self._store = store

    async def client(self) -> Client:
        return await self._stack.enter_async_context(self.cluster.client())

    async def attempt(
        self,
        name: TaskName = NAME,
        kind: type[TaskAttempt] = TaskAttempt,
        on_mismatch: Any = "fail",
        run: str = "run",
        **options: Any,
    ) -> TaskAttempt:
        """An attempt in a process of its own."""
        servers = self.broker.bootstrap_servers
        client = await self.client()
        return kind(
            client,
            name,
            marker_topic="out",
            config=ProducerConfig.of(servers, {"linger_ms": 0, **options}),
            on_mismatch=on_mismatch,
            run=run,
            markers=self.markers(client),
        )

    def markers(self, client: Client) -> MarkerStorePort:
        if self._store == "groups":
            return GroupMarkers(client, "out")
        return TopicMarkers(client, "markers")

    async def write(self, rows: Iterable[str] = ROWS, **attempt: Any) -> TaskResult:
        """Run an attempt from begin to end."""
        made = await self.attempt(**attempt)
        return await made.run(batches_of(list(rows)), put)

    async def state(self, name: TaskName = NAME) -> AppState:
        """What the markers say, as a driver sees them."""
        markers = self.markers(await self.client())
        return await markers.look(name.scope, name.version)

    async def marker(self, name: TaskName = NAME) -> RowsMarker | None:
        await until(lambda: not self.broker.control.open_transactions())
        found = (await self.state(name)).tasks.get(name.task)
        return None if found is None else replace(found, timestamp=-1)

    async def end(
        self,
        results: list[TaskResult],
        run: str = "run",
        *,
        is_strict: bool = True,
        version: int = 7,
    ) -> None:
        """Do what the driver does when all tasks have reported."""
        client = await self.client()
        name = VersionName(app="orders", version=version, run=run)
        end = VersionWrite(client, name, self.markers(client), is_strict=is_strict)
        reports = [
            TaskReport(
                task,
                each.outcome,
                each.found,
                each.expected,
                -1 if each.held is None else each.held.producer_id,
            )
            for task, each in enumerate(results)
        ]
        held = {task: each.held for task, each in enumerate(results) if each.held}
        await end.commit(reports, held)

    async def cluster_sees(self, isolation: str) -> list[bytes | None]:
        """What readers see at this moment."""
        return sorted(await read(self.cluster, "out", 2, isolation), key=str)

    async def seen(self, isolation: str = "read_committed") -> list[bytes | None]:
        """What readers see once no transaction is open."""
        await until(lambda: not self.broker.control.open_transactions())
        return await self.cluster_sees(isolation)


async def put(tx: Transaction, batch: pa.RecordBatch) -> None:
    for number, value in enumerate(batch.column("value").to_pylist()):
        _ = await tx.enqueue("out", value.encode(), partition=number % 2)


def in_world(
    body: Callable[[World], Awaitable[T]],
    *,
    level: int = 2,
    store: str = "topic",
    **options: Any,
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
            return await body(World(broker, stack, store))

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


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("level", [1, 2])
def test_rows_and_marker_are_committed(level: int, store: str) -> None:
    async def body(world: World) -> None:
        result = await world.write()
        digest = digest_of(ROWS)
        assert (result.rows, result.digest) == (25, str(digest))
        assert result.outcome is Outcome.WRITTEN
        assert not result.is_skipped
        assert await world.seen() == sorted(VALUES)
        assert await world.marker() == RowsMarker(7, "run", digest.found)

    in_world(body, level=level, store=store)


def test_the_names_do_not_have_the_attempt() -> None:
    name = TaskName(app="a", version=1, task=2, prefix="team")
    assert name.transactional_id == "team-a-2"
    assert str(name) == "task 2 of batch 1 of 'a'"


def test_what_an_attempt_asks_comes_in_its_order() -> None:
    """Five round trips: what a task costs where the way to the cluster is long."""

    async def body(world: World) -> None:
        attempt = await world.attempt()
        await attempt.run(batches_of(ROWS), put)
        name = TaskName(app="orders", version=8, task=3)
        config = ProducerConfig.of(world.broker.bootstrap_servers, {"linger_ms": 0})
        again = TaskAttempt(
            attempt.client,
            name,
            marker_topic="out",
            config=config,
            run="next",
            markers=attempt.markers,
        )
        await until(lambda: not world.broker.control.open_transactions())
        before = len(world.broker.requests)
        await again.run(batches_of(ROWS), put)
        asked = [one.api for one in world.broker.requests][before:]
        steps = {
            ApiKey.INIT_PRODUCER_ID,
            ApiKey.PRODUCE,
            ApiKey.FETCH,
            ApiKey.END_TXN,
        }
        assert set(asked) <= steps | {ApiKey.FIND_COORDINATOR, ApiKey.API_VERSIONS}
        in_order = [api for api in asked if api in steps]
        assert in_order[:3] == [
            ApiKey.INIT_PRODUCER_ID,
            ApiKey.PRODUCE,
            ApiKey.FETCH,
        ]
        assert in_order[-1] == ApiKey.END_TXN

    in_world(body)


def test_a_task_without_rows_has_a_marker() -> None:
    async def body(world: World) -> None:
        assert (await world.write([])).rows == 0
        assert await world.marker() == RowsMarker(7, "run", RowSum())
        with pytest.raises(ReplayMismatch, match="25 rows, digest"):
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

    in_world(body, store="groups")


def test_a_client_is_used_again() -> None:
    async def body(world: World) -> None:
        first = await world.attempt()
        await first.run(batches_of(ROWS), put)
        count = len(first.client.statistics().connections)
        name = TaskName(app="orders", version=8, task=3)
        config = ProducerConfig.of(world.broker.bootstrap_servers, {"linger_ms": 0})
        second = TaskAttempt(
            first.client,
            name,
            marker_topic="out",
            config=config,
            run="run",
            markers=first.markers,
        )
        await second.run(batches_of(ROWS), put)
        assert len(first.client.statistics().connections) == count

    in_world(body)


def test_a_cluster_before_level_2_is_warned_of(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafkaio.spark._exactly_once._warned", set())
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


# ---- a repetition by another run -----------------------------------------------------


def of_task(task: int, tasks: int, version: int = 7) -> tuple[TaskName, list[str]]:
    return TaskName(app="orders", version=version, task=task), ROWS[task::tasks]


async def run_of(
    world: World, run: str, tasks: int, only: Iterable[int] | None = None, **more: Any
) -> list[TaskResult]:
    """Run tasks of a version, one after the other."""
    results = []
    for task in range(tasks) if only is None else only:
        name, rows = of_task(task, tasks)
        results.append(await world.write(rows, name=name, run=run, **more))
    return results


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("tasks", [1, 2, 3, 5])
@pytest.mark.parametrize("is_ended", [True, False])
def test_a_version_that_is_in_is_not_written_again_by_other_tasks(
    tasks: int, store: str, is_ended: bool
) -> None:
    # Without the end, the driver died before it noted that the version is in.
    async def body(world: World) -> None:
        first = await run_of(world, "one", 2)
        if is_ended:
            await world.end(first, "one")
        again = await run_of(world, "two", tasks)
        assert await world.cluster_sees("read_committed") == sorted(VALUES)
        await world.end(again, "two")
        assert await world.seen() == sorted(VALUES)
        done = (await world.state()).done
        assert done is not None
        assert done.rows == digest_of(ROWS).found
        third = await run_of(world, "three", 4)
        assert {each.outcome for each in third} == {Outcome.DONE}
        await world.end(third, "three")
        assert await world.seen() == sorted(VALUES)

    in_world(body, store=store)


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("only", [[0], [1], [0, 2], [2, 3]])
def test_a_version_that_is_in_in_part_is_completed_by_the_same_tasks(
    only: list[int], store: str
) -> None:
    async def body(world: World) -> None:
        await run_of(world, "one", 4, only)
        again = await run_of(world, "two", 4)
        verified = [n for n, it in enumerate(again) if it.outcome is Outcome.VERIFIED]
        assert verified == only
        await world.end(again, "two")
        assert await world.seen() == sorted(VALUES)

    in_world(body, store=store)


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("is_strict", [True, False])
def test_a_version_that_is_in_in_part_is_not_doubled_by_other_tasks(
    store: str, is_strict: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def body(world: World) -> None:
        await run_of(world, "one", 2, [0])
        again = await run_of(world, "two", 4)
        assert Outcome.HELD in {each.outcome for each in again}
        if is_strict:
            with pytest.raises(ReplayMismatch, match=r"25 rows.*13 rows"):
                await world.end(again, "two")
        else:
            await world.end(again, "two", is_strict=False)
        assert await world.seen() == sorted(VALUES[0::2])
        assert not world.broker.control.open_transactions()
        if is_strict:
            # The tasks that had begun it can complete it.
            third = await run_of(world, "three", 2)
            await world.end(third, "three")
            assert await world.seen() == sorted(VALUES)
        else:
            done = (await world.state()).done
            assert done is not None
            assert done.rows == digest_of(ROWS[0::2]).found

    in_world(body, store=store)
    assert is_strict or "other rows" in caplog.text


def test_a_repetition_commits_by_itself_what_needs_no_judgement() -> None:
    async def body(world: World) -> None:
        await run_of(world, "one", 4, [0, 1])
        again = await run_of(world, "two", 4, [0, 1])
        await until(lambda: not world.broker.control.open_transactions())
        again += await run_of(world, "two", 4, [2, 3])
        outcomes = [each.outcome for each in again]
        assert outcomes == [Outcome.VERIFIED] * 2 + [Outcome.WRITTEN] * 2
        assert await world.seen() == sorted(VALUES)

    in_world(body)


@pytest.mark.parametrize("store", STORES)
def test_an_attempt_of_a_dead_driver_is_fenced_before_a_repetition_is_committed(
    store: str,
) -> None:
    async def body(world: World) -> None:
        gate = Gate()
        name, rows = of_task(3, 4)
        attempt = await world.attempt(name=name, run="one")
        async with asyncio.TaskGroup() as group:
            early = group.create_task(failing(attempt, rows, gate.put))
            await gate.reached.wait()
            # The next driver has fewer tasks: none of them has this id.
            again = await run_of(world, "two", 2)
            assert {each.outcome for each in again} == {Outcome.HELD}
            await world.end(again, "two")
            gate.opened.set()
        assert "has committed nothing" in str(early.result())
        assert await world.seen() == sorted(VALUES)

    in_world(body, store=store)


async def failing(attempt: TaskAttempt, rows: list[str], put: Put) -> AttemptFailed:
    with pytest.raises(AttemptFailed) as caught:
        await attempt.run(batches_of(rows), put)
    return caught.value


@pytest.mark.parametrize("store", STORES)
def test_what_was_left_open_too_long_is_repeated(store: str) -> None:
    async def body(world: World) -> None:
        await run_of(world, "one", 2, [1])
        again = await run_of(world, "two", 2, transaction_timeout_ms=1000)
        assert [each.outcome for each in again] == [Outcome.HELD, Outcome.VERIFIED]
        await until(lambda: not world.broker.control.open_transactions())
        with pytest.raises(AttemptFailed, match="has to be repeated"):
            await world.end(again, "two")
        third = await run_of(world, "three", 2)
        await world.end(third, "three")
        assert await world.seen() == sorted(VALUES)

    in_world(body, store=store)


@pytest.mark.parametrize("counts", [(2, 4), (4, 2), (1, 3), (3, 1)])
@pytest.mark.parametrize("on_mismatch", ["fail", "warn"])
def test_attempts_without_a_driver_do_not_double(
    counts: tuple[int, int], on_mismatch: str
) -> None:
    async def body(world: World) -> None:
        before, after = counts
        await run_of(world, "", before)
        for task in range(after):
            name, rows = of_task(task, after)
            try:
                result = await world.write(
                    rows, name=name, run="", on_mismatch=on_mismatch
                )
            except ReplayMismatch:
                assert on_mismatch == "fail"
            else:
                assert result.is_skipped
        assert await world.seen() == sorted(VALUES)

    in_world(body, store="groups")


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


def simulated(
    seed: int, attempt: type[TaskAttempt] = TaskAttempt, **plan: Any
) -> Verdict:
    async def main() -> Verdict:
        async with Broker(memory_transport=True, topics={"out": 4}) as broker:
            cluster = Cluster(broker.bootstrap_servers, broker.dial)
            return await run(cluster, "out", seed, plan=Plan(**plan), attempt=attempt)

    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        return runner.run(main())


@pytest.fixture
def _quiet() -> Iterator[None]:
    logger = logging.getLogger("kafkaio")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(level)


def seeds(count: int, *, each_change: int) -> list[object]:
    """The first seeds are tried with each change, all of them at night."""
    at_night = [
        pytest.param(seed, marks=pytest.mark.nightly)
        for seed in range(each_change, count)
    ]
    return [*range(each_change), *at_night]


@pytest.mark.slow
@pytest.mark.usefixtures("_quiet")
@pytest.mark.parametrize("seed", seeds(6, each_change=2))
def test_every_row_once_under_any_schedule(seed: int) -> None:
    verdict = simulated(seed, batches=8)
    assert (verdict.duplicates, verdict.missing) == (0, 0)
    # Else nothing was tried.
    assert verdict.logged > verdict.wanted
    assert all(verdict.events[what] for what in ("fenced", "died", "skipped"))


@pytest.mark.slow
@pytest.mark.usefixtures("_quiet")
def test_the_schedules_find_that_there_is_no_marker() -> None:
    assert simulated(0, WithoutMarker, batches=4).duplicates > 0


@pytest.mark.slow
@pytest.mark.usefixtures("_quiet")
def test_the_schedules_find_ids_of_attempts() -> None:
    assert simulated(0, OwnIds, batches=6, store="groups").duplicates > 0


@pytest.mark.slow
@pytest.mark.usefixtures("_quiet")
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("seed", seeds(3, each_change=1))
def test_every_row_once_whatever_the_number_of_tasks(seed: int, store: str) -> None:
    verdict = simulated(
        seed, tasks=(1, 2, 4, 5), restarts=0.5, batches=6, rows=60, store=store
    )
    assert (verdict.duplicates, verdict.missing) == (0, 0)
    assert verdict.events["judged"]


@pytest.mark.slow
@pytest.mark.usefixtures("_quiet")
def test_the_schedules_find_runs_that_do_not_see_one_another() -> None:
    verdict = simulated(
        1, WithoutOthers, tasks=(1, 2, 4, 5), restarts=0.7, batches=6, rows=60
    )
    assert verdict.duplicates > 0
