"""``io_thread=True``: the consumer in a thread of its own, and the user in theirs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import wraps
from typing import Any, TypeVar

import pytest

from kafkaio._client.client import Client
from kafkaio._config import ConsumerConfig
from kafkaio._consumer import Consumer
from kafkaio._consumer.core import Core
from kafkaio._consumer.parallel import Lane
from kafkaio._consumer.rebalance.events import Assigned, Revoked, RevokeRequested
from kafkaio._consumer.threaded.core import ThreadedCore
from kafkaio._exactly_once import exactly_once
from kafkaio._producer import Producer
from kafkaio._runtime.thread import LoopThread
from kafkaio._transactional import GroupOffsetsPort
from kafkaio.errors import ClosedError, PartitionLost, UsageError
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing import Broker
from kafkaio.testing._broker.group_config import GroupConfig
from kafkaio.types import Record, TopicPartition
from tests.unit.consumer.fake_transactions import FakeProducer, FakeTransaction
from tests.unit.consumer.test_cancel import Read, batch, poll, table

T = TypeVar("T")
COUNT = 400
SESSION = 0.6
CLASSIC: dict[str, Any] = {
    "group_protocol": "classic",
    "session_timeout_ms": int(SESSION * 1000),
    "heartbeat_interval_ms": 100,
}
ZERO, ONE = TopicPartition("t", 0), TopicPartition("t", 1)


def real(
    test: Callable[..., Coroutine[Any, Any, None]],
) -> Callable[..., None]:
    """Run a test on a loop whose clock is the real one, as it is in the thread."""

    @wraps(test)
    def run(*args: object, **kwargs: object) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(60):
                await test(*args, **kwargs)

        asyncio.run(bounded())
        names = {thread.name for thread in threading.enumerate()}
        assert not names & {"kafkaio I/O", "broker"}

    return run


class Impatient:
    """Limits too short to read anything in, until one is long enough on this machine.

    They shrink again with everything that was read, so that each step of a read is cut
    off once in a while.
    """

    def __init__(self) -> None:
        self._turn = 0
        self._seen = 0
        self._unit = 0.0001

    def limit(self, seen: int) -> float:
        self._unit *= 1.05 if seen == self._seen else 0.9
        self._turn, self._seen = self._turn + 1, seen
        return self._unit * (self._turn % 7)


class Cluster:
    """A broker that goes on while the loop of the test is blocked."""

    def __init__(self, broker: Broker, thread: LoopThread) -> None:
        self.broker = broker
        self.servers = broker.bootstrap_servers
        self.ask = thread.call_blocking

    def consumer(self, **options: Any) -> Consumer:
        base = {"topics": "t", "group_id": "g", "auto_offset_reset": "earliest"}
        return Consumer(self.servers, io_thread=True, **(base | CLASSIC | options))

    def members(self) -> list[str]:
        return self.ask(lambda: self.broker.control.members("g"))

    def committed(self, tp: TopicPartition) -> int | None:
        return self.ask(lambda: self.broker.control.committed("g", tp))

    def heartbeats(self) -> int:
        def count() -> int:
            log = self.broker.requests
            return sum(request.api == ApiKey.HEARTBEAT for request in log)

        return self.ask(count)


@asynccontextmanager
async def cluster(count: int = COUNT) -> AsyncIterator[Cluster]:
    thread = LoopThread("broker")
    thread.start()
    broker = Broker(topics={"t": 2}, groups=GroupConfig(min_session_timeout=0.1))
    await thread.call(broker.__aenter__)
    try:
        async with Producer(broker.bootstrap_servers) as producer:
            for n in range(count):
                await producer.enqueue("t", b"%d" % n, partition=n % 2)
        yield Cluster(broker, thread)
    finally:
        await thread.call(lambda: broker.__aexit__(None, None, None))
        await thread.aclose()


def block_until(condition: Callable[[], bool]) -> None:
    """Keep the loop of the test from turning."""
    pause = threading.Event()
    while not condition():
        pause.wait(0.01)


def in_order(records: list[Record]) -> bool:
    return all(
        [r.offset for r in records if r.partition == n] == list(range(COUNT // 2))
        for n in (0, 1)
    )


@real
async def test_a_partition_of_a_hanging_node_does_not_keep_it_from_starting():
    async with Broker(nodes=3, topics={"t": 6}) as broker:
        leaders = [broker.control.leader(("t", n)) for n in range(6)]
        other = {broker.control.coordinator("g")}
        hanging = next(node for node in leaders if node not in other)
        async with Producer(broker.bootstrap_servers) as producer:
            for n in range(6):
                await producer.send("t", b"v", partition=n)
        broker.control.pause(hanging)
        consumer = Consumer(
            broker.bootstrap_servers,
            io_thread=True,
            topics="t",
            group_id="g",
            auto_offset_reset="earliest",
        )
        await consumer.start(timeout=5)
        seen = set[int]()
        while len(seen) < sum(leader != hanging for leader in leaders):
            seen |= {r.partition for r in (await consumer.poll(timeout=1)).records}
        assert seen == {n for n in range(6) if leaders[n] != hanging}
        broker.control.resume(hanging)
        await consumer.close(timeout=3)


@real
async def test_no_batches_without_sense() -> None:
    async with cluster(1) as kafka, kafka.consumer() as consumer:
        async for lane in consumer.partitions():
            async with lane:
                for batches in (consumer.batches, consumer.arrow_batches, lane.batches):
                    with pytest.raises(UsageError, match="max_records"):
                        batches(max_records=0)
                    with pytest.raises(UsageError, match="max_wait"):
                        batches(max_wait=float("nan"))
            break


@real
async def test_every_record_once_and_commits_of_what_is_finished() -> None:
    async with cluster() as at, at.consumer() as consumer:
        assert isinstance(consumer._core, ThreadedCore)
        assert consumer.assignment == {ZERO, ONE}
        assert "STABLE" in repr(consumer)
        records = []
        async for record in consumer:
            records.append(record)
            if len(records) == 100:
                tp = record.topic_partition
                # As many as a chunk has crossed, and this is the last handed out.
                await consumer.commit()
                assert at.committed(tp) == record.offset + 1
                assert await consumer.position(tp) == record.offset + 1
                assert sum((await consumer.lag()).values()) == COUNT - 100
            if len(records) == COUNT:
                break
        assert in_order(records)
        await consumer.commit({ZERO: 7})
        assert (await consumer.committed([ZERO]))[ZERO].offset == 7  # type: ignore[union-attr]
        assert (await consumer.end_offsets([ONE]))[ONE] == COUNT // 2


@pytest.mark.parametrize("read", [poll, batch, table])
@real
async def test_a_commit_takes_everything_handed_out_and_nothing_more(
    *, read: Read
) -> None:
    async with cluster() as at, at.consumer(enable_auto_commit=False) as consumer:
        handed = dict[TopicPartition, int]()
        seen = 0
        while seen < COUNT:
            # Cancelled once it has read: what crossed is not the user's.
            cut = asyncio.ensure_future(read(consumer))
            await asyncio.sleep(0)
            cut.cancel()
            with suppress(asyncio.CancelledError):
                handed |= {r.topic_partition: r.offset + 1 for r in await cut}
            await consumer.commit()
            assert {tp: at.committed(tp) or 0 for tp in (ZERO, ONE)} == {
                tp: handed.get(tp, 0) for tp in (ZERO, ONE)
            }
            handed |= {r.topic_partition: r.offset + 1 for r in await read(consumer)}
            await consumer.commit(list(handed))
            assert {tp: at.committed(tp) for tp in handed} == handed
            seen = sum(handed.values())


@real
async def test_a_lane_commits_everything_that_it_has_handed_out() -> None:
    async with cluster() as at, at.consumer(enable_auto_commit=False) as consumer:
        lanes = consumer.partitions()
        both = [await anext(lanes) for _ in range(2)]
        for count in range(1, 6):
            for lane in both:
                assert (await anext(lane)).offset == count - 1
            await both[0].commit()
            assert at.committed(both[0].topic_partition) == count
            assert (at.committed(both[1].topic_partition) or 0) == count - 1
            await consumer.commit()
            assert at.committed(both[1].topic_partition) == count


@real
async def test_a_blocked_loop_costs_no_membership() -> None:
    async with cluster() as at:
        async with at.consumer() as consumer:
            generation, members = consumer.group_metadata.generation, at.members()
            records = [await anext(consumer)]
            enough = at.heartbeats() + int(3 * SESSION / 0.1)
            block_until(lambda: at.heartbeats() >= enough)
            assert at.members() == members
            records += [await anext(consumer) for _ in range(COUNT - 1)]
            assert in_order(records)
            assert consumer.group_metadata.generation == generation
        # The last one was not finished: its successor was not asked for.
        done = (at.committed(ZERO) or 0) + (at.committed(ONE) or 0)
        assert done == COUNT - 1


@real
async def test_who_does_not_read_on_leaves_the_group_all_the_same() -> None:
    async with (
        cluster() as at,
        at.consumer(max_poll_interval_ms=1000, session_timeout_ms=900) as consumer,
    ):
        first = [await anext(consumer) for _ in range(10)]
        block_until(lambda: not at.members())
        # What is at hand was lost: it is read again, from what was committed.
        assert consumer.lost == {ZERO, ONE}
        again = [await anext(consumer) for _ in range(COUNT)]
        assert in_order(again)
        assert again[: len(first)] == first


async def one_record(consumer: Consumer) -> list[Record]:
    return [await anext(consumer)]


async def one_poll(consumer: Consumer) -> list[Record]:
    return (await consumer.poll()).records


async def one_batch(consumer: Consumer) -> list[Record]:
    # From another iterator each time: none may keep what nobody got.
    return (await anext(consumer.batches())).records


@pytest.mark.parametrize("forms", [[one_record], [one_batch], [one_poll, one_record]])
@real
async def test_a_cancelled_read_takes_nothing(
    forms: list[Callable[[Consumer], Coroutine[Any, Any, list[Record]]]],
) -> None:
    async with cluster() as at, at.consumer(max_poll_records=7) as consumer:
        records: list[Record] = []
        limits = Impatient()
        for turn in range(100_000):
            with suppress(TimeoutError):
                async with asyncio.timeout(limits.limit(len(records))):
                    records += await forms[turn % len(forms)](consumer)
            if len(records) >= COUNT:
                break
        assert in_order(records)


@real
async def test_polls_and_iterators_take_turns() -> None:
    async with cluster() as at, at.consumer() as consumer:
        records = [await anext(consumer) for _ in range(3)]
        while len(records) < 50:
            records += (await consumer.poll(max_records=10)).records
        async for batch in consumer.batches(max_records=9):
            records += batch.records
            if len(records) > 100:
                break
        records += [await anext(consumer) for _ in range(3)]
        async for table in consumer.arrow_batches(max_records=50):
            seen = len(records)
            consumer.seek(ZERO, 0)
            consumer.seek(ONE, 0)
            assert 0 < table.num_rows <= 50
            assert seen > 100
            break
        records = []
        while len(records) < COUNT:
            records += (await consumer.poll()).records
        assert in_order(records)


@real
async def test_what_changes_the_order_takes_back_what_is_at_hand() -> None:
    async with cluster() as at, at.consumer() as consumer:
        first = await anext(consumer)
        other = ONE if first.partition == 0 else ZERO
        consumer.pause(first.topic_partition)
        assert consumer.paused == {first.topic_partition}
        rest = [await anext(consumer) for _ in range(COUNT // 2)]
        assert {r.topic_partition for r in rest} == {other}
        consumer.resume(first.topic_partition)
        assert (await anext(consumer)).offset == first.offset + 1
        consumer.seek_to_beginning(other)
        consumer.pause(first.topic_partition)
        again = await anext(consumer)
        assert (again.topic_partition, again.offset) == (other, 0)


@real
async def test_the_task_that_reads_can_rewind_its_group() -> None:
    async with cluster() as at, at.consumer() as consumer:
        for _ in range(50):
            await anext(consumer)
        await consumer.rewind({ZERO: 0, ONE: "earliest"}, timeout=5)
        assert in_order([await anext(consumer) for _ in range(COUNT)])


@real
async def test_handlers_run_in_the_users_loop() -> None:
    async with cluster() as at, at.consumer() as consumer:
        here, seen = asyncio.get_running_loop(), list[Record]()
        done = asyncio.Event()

        async def handle(record: Record) -> None:
            assert asyncio.get_running_loop() is here
            seen.append(record)
            if len(seen) == COUNT:
                done.set()

        running = asyncio.ensure_future(
            consumer.run(handle, concurrency=8, ordering="partition")
        )
        await done.wait()
        await consumer.close()
        await running
        assert in_order(seen)
        assert at.committed(ZERO) == at.committed(ONE) == COUNT // 2


@real
async def test_what_a_handler_raises_comes_out_of_run() -> None:
    async with cluster() as at, at.consumer() as consumer:
        buried: list[Record] = []

        async def fail(record: Record) -> None:
            raise ZeroDivisionError(record.offset)

        async def bury(record: Record, error: Exception) -> None:
            buried.append(record)
            if len(buried) == 5:
                raise error

        with pytest.raises(ZeroDivisionError):
            await consumer.run(fail, dead_letter=bury, concurrency=1)
        assert len(buried) == 5


@real
@pytest.mark.parametrize("where", ["handler", "dead letter"])
async def test_who_was_not_cancelled_ends_the_run_as_without_a_thread(
    where: str,
) -> None:
    async with cluster() as at, at.consumer() as consumer:
        asked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        asked.cancel()
        buried: list[Record] = []

        async def handle(record: Record) -> None:
            if where == "dead letter":
                raise ZeroDivisionError
            await asked

        async def bury(record: Record, error: Exception) -> None:
            buried.append(record)
            await asked

        with pytest.raises(ClosedError, match=r"the handler of .* was cancelled"):
            await consumer.run(handle, dead_letter=bury, concurrency=1)
        assert len(buried) == (where == "dead letter")


@real
async def test_a_handler_that_is_no_coroutine_function_ends_the_run() -> None:
    async with cluster() as at, at.consumer() as consumer:
        seen: list[Record] = []
        buried: list[Record] = []

        async def bury(record: Record, error: Exception) -> None:
            buried.append(record)

        handle: Any = seen.append
        with pytest.raises(UsageError, match="needs a coroutine function"):
            await consumer.run(handle, dead_letter=bury, concurrency=1)
        assert (len(seen), buried) == (1, [])


@pytest.mark.parametrize("in_batches", [False, True])
@real
async def test_lanes_have_their_bodies_in_the_users_loop(*, in_batches: bool) -> None:
    async with cluster() as at, at.consumer(enable_auto_commit=False) as consumer:
        seen: list[Record] = []

        async def body(lane: Lane) -> None:
            async with lane:
                if in_batches:
                    async for batch in lane.batches(max_records=30):
                        seen.extend(batch)
                        await lane.commit(batch)
                else:
                    async for record in lane:
                        seen.append(record)
                    await lane.commit()

        async def work() -> None:
            async with asyncio.TaskGroup() as tasks:
                async for lane in consumer.partitions():
                    tasks.create_task(body(lane))

        working = asyncio.ensure_future(work())
        await until(lambda: len(seen) == COUNT)
        await consumer.close()
        await working
        assert in_order(seen)
        assert at.committed(ZERO) == at.committed(ONE) == COUNT // 2


@real
async def test_closing_waits_for_bodies_that_are_not_in_a_block() -> None:
    async with cluster() as at, at.consumer() as consumer:
        lane = await anext(consumer.partitions())
        taken, done = asyncio.Event(), list[int]()

        async def body() -> None:
            await anext(lane)
            taken.set()
            await asyncio.sleep(0.2)
            done.append(1)

        working = asyncio.ensure_future(body())
        await taken.wait()
        await consumer.close(20)
        assert done
        await working


@real
async def test_a_cancelled_step_of_a_lane_takes_nothing() -> None:
    async with cluster() as at, at.consumer(assign=[ZERO], topics=None) as consumer:
        lane = await anext(consumer.partitions())
        offsets: list[int] = []
        limits = Impatient()
        for turn in range(100_000):
            with suppress(TimeoutError):
                async with asyncio.timeout(limits.limit(len(offsets))):
                    if turn % 2:
                        offsets += [(await anext(lane)).offset]
                    else:
                        # From another iterator each time.
                        batch = await anext(lane.batches(max_records=3))
                        offsets += [record.offset for record in batch]
            if len(offsets) >= COUNT // 2:
                break
        assert offsets == list(range(COUNT // 2))
        await lane.close()


@real
async def test_a_hand_over_waits_for_who_holds() -> None:
    calls: list[tuple[str, int]] = []

    async def on_assigned(partitions: object) -> None:
        calls.append(("assigned", threading.get_ident()))

    def on_revoked(partitions: object) -> None:
        calls.append(("revoked", threading.get_ident()))

    async with (
        cluster() as at,
        at.consumer(
            on_assigned=on_assigned, on_revoked=on_revoked, max_poll_records=20
        ) as owner,
    ):
        events = owner.rebalances()
        records = [await anext(owner) for _ in range(5)]
        joining = asyncio.ensure_future((other := at.consumer()).start())
        request = await anext(events)
        assert isinstance(request, RevokeRequested)
        (asked,) = request.partitions
        async with request.hold() as held:
            assert held == {asked}
            assert owner.to_be_revoked <= {asked}
            # None of its records is handed out any more.
            records += [await anext(owner) for _ in range(30)]
            assert all(r.topic_partition != asked for r in records[5:])
            assert asked in owner.assignment
        await anext(owner)
        assert await anext(events) == Revoked(frozenset({asked}))
        await joining
        await until(lambda: other.assignment == {asked})
        # Not one record of it twice.
        mine = [r.offset for r in records if r.topic_partition == asked]
        assert (await anext(other)).offset == len(mine)
        await other.close()
        assert isinstance(await anext(events), Assigned)
        await events.aclose()
    assert {ident for _, ident in calls} == {threading.get_ident()}
    assert {name for name, _ in calls} == {"assigned", "revoked"}


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.01)


async def close_in_a_hold(consumer: Consumer) -> None:
    asyncio.get_running_loop().call_later(0.1, consumer.unsubscribe)
    async with consumer.wait_for_revoke():
        await consumer.close(20)


async def close_while_an_event_is_looked_at(consumer: Consumer) -> None:
    asyncio.get_running_loop().call_later(0.1, consumer.unsubscribe)
    seen = []
    async for event in consumer.rebalances():
        await consumer.close(20)
        seen.append(type(event))
    assert seen == [RevokeRequested, Revoked]


async def close_in_a_lane(consumer: Consumer) -> None:
    async for lane in consumer.partitions():
        async with lane:
            await anext(lane)
            await consumer.close(20)
            assert not lane.is_lost


@pytest.mark.parametrize(
    "close", [close_in_a_hold, close_while_an_event_is_looked_at, close_in_a_lane]
)
@real
async def test_closing_does_not_wait_for_what_its_own_task_holds(
    close: Callable[[Consumer], Coroutine[Any, Any, None]],
) -> None:
    async with cluster() as at:
        consumer = at.consumer()
        await consumer.start()
        began = asyncio.get_running_loop().time()
        await close(consumer)
        assert asyncio.get_running_loop().time() < began + 4  # and not 16
        assert consumer.statistics().state == "closed"
        assert at.members() == []


@real
async def test_a_request_is_held_while_the_block_runs() -> None:
    async with cluster() as at, at.consumer() as owner:
        waiting = owner.wait_for_revoke()
        joining = asyncio.ensure_future((other := at.consumer()).start())
        # The task between costs a turn of the loop.
        request = await asyncio.create_task(waiting.__aenter__())
        await asyncio.sleep(0.1)
        assert len(owner.assignment) == 2
        hold = request.hold()
        assert hold.take() == request.partitions
        await waiting.__aexit__(None, None, None)
        assert len(owner.assignment) == 2
        hold.release()
        await owner.close()
        await joining
        await until(lambda: len(other.assignment) == 2)
        await other.close()


@real
async def test_a_request_whose_caller_was_cancelled_is_returned_again() -> None:
    async with cluster() as at, at.consumer() as owner:
        core = owner._core
        assert isinstance(core, ThreadedCore)
        feed = core._core.assigned.feed
        await anext(owner)  # a reader at work: nothing goes before its next step
        waiting = owner.wait_for_revoke()
        entering = asyncio.ensure_future(waiting.__aenter__())
        joining = asyncio.ensure_future((other := at.consumer()).start())
        await asyncio.sleep(0)
        # The request comes to the thread, and not to the task that waits for it.
        block_until(lambda: core.ask(lambda: bool(feed._returned)))
        entering.cancel()
        await asyncio.wait([entering])
        assert entering.cancelled()
        async with asyncio.timeout(5), owner.wait_for_revoke() as event:
            assert event.partitions <= owner.assignment
        await owner.close()
        await joining
        await other.close()


@real
async def test_several_close_it() -> None:
    async with cluster() as at:
        begun, gate = asyncio.Event(), asyncio.Event()

        async def on_revoked(partitions: object) -> None:
            begun.set()
            await gate.wait()

        consumer = at.consumer(on_revoked=on_revoked)
        await consumer.start()
        first = asyncio.ensure_future(consumer.close())
        await begun.wait()
        await consumer.close(timeout=0.01)
        assert not first.done()
        assert consumer.statistics().state == "closing"
        second = asyncio.ensure_future(consumer.close())
        gate.set()
        await second
        assert consumer.statistics().state == "closed"
        await first
        assert at.members() == []


@real
async def test_a_read_may_follow_one_that_was_cancelled_twice() -> None:
    async with cluster() as at, at.consumer() as consumer:
        seen = 0
        for turn in range(60):
            reading = asyncio.ensure_future(consumer.poll(timeout=1, max_records=3))
            for _ in range(2):
                for _ in range(turn % 6):
                    await asyncio.sleep(0)
                reading.cancel()
            await asyncio.wait([reading])
            if not reading.cancelled():
                seen += len(reading.result().records)
            seen += len((await consumer.poll(timeout=1, max_records=3)).records)
        assert seen > 100


@real
async def test_a_listener_whose_task_was_cancelled_keeps_nothing() -> None:
    async with cluster() as at, at.consumer() as consumer:
        events = consumer.rebalances()
        step = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0)
        step.cancel()
        await asyncio.wait([step])
        async with asyncio.timeout(10), at.consumer() as other:
            while not other.assignment:  # noqa: ASYNC110  (of another thread)
                await asyncio.sleep(0.01)
        assert events is not None  # somebody refers to it all the time


@real
async def test_a_cancelled_start_or_close_leaves_the_group() -> None:
    async with cluster() as at:
        before = asyncio.all_tasks()
        for step in range(12):
            consumer = at.consumer()
            starting = asyncio.ensure_future(consumer.start())
            await asyncio.sleep(0.004 * step)
            starting.cancel()
            await asyncio.wait([starting])
            if starting.cancelled():
                assert at.members() == []
                continue
            closing = asyncio.ensure_future(consumer.close())
            for _ in range(2):
                await asyncio.sleep(0)
                closing.cancel()
            await asyncio.wait([closing])
            assert at.members() == []
        async with asyncio.timeout(5):
            while asyncio.all_tasks() - before:  # noqa: ASYNC110
                await asyncio.sleep(0.01)


@real
async def test_a_start_that_succeeds_while_it_is_cancelled_leaves_the_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with cluster() as at:
        consumer = at.consumer()
        assert isinstance(consumer._core, ThreadedCore)
        core = consumer._core._core
        start, starting = Core.start, asyncio.ensure_future(consumer.start())
        loop = asyncio.get_running_loop()

        async def start_and_cancel(core: Core, within: float | None) -> None:
            await start(core, within)
            loop.call_soon_threadsafe(starting.cancel)

        monkeypatch.setattr(Core, "start", start_and_cancel)
        await asyncio.wait([starting])
        assert starting.cancelled()
        assert core.state == "closed"
        assert at.members() == []


@real
async def test_a_handler_cannot_wait_for_the_end_but_begin_it() -> None:
    async with cluster() as at:
        consumer = at.consumer()
        await consumer.start()
        closing: list[asyncio.Task[None]] = []

        async def handle(record: Record) -> None:
            if closing:
                await consumer.close()  # it goes on by itself
                return
            with pytest.raises(UsageError, match="in another task"):
                await consumer.close()
            closing.append(asyncio.create_task(consumer.close()))

        await consumer.run(handle, concurrency=1)
        await asyncio.wait(closing)
        assert at.members() == []


@real
async def test_a_crash_in_the_thread_is_heard() -> None:
    async with cluster() as at, at.consumer() as consumer:
        assert isinstance(consumer._core, ThreadedCore)
        await anext(consumer)

        def cancel() -> None:
            for task in asyncio.all_tasks():
                if "fetch from" in task.get_name():
                    task.cancel()

        consumer._core.thread.call_blocking(cancel)
        with pytest.raises(ClosedError, match="cancelled from outside"):  # noqa: PT012
            for _ in range(COUNT + 1):
                await anext(consumer)


@real
async def test_closing_joins_the_thread_whatever_the_cluster_does() -> None:
    async with cluster() as at:
        consumer = at.consumer()
        await consumer.close()  # never started
        consumer = at.consumer()
        await consumer.start()
        at.ask(lambda: at.broker.control.pause(0))
        begun = asyncio.get_running_loop().time()
        await consumer.close(0.5)
        assert asyncio.get_running_loop().time() - begun < 3.0
        await consumer.close()
        assert consumer.statistics().state == "closed"
        with pytest.raises(ClosedError):
            await anext(consumer)
        at.ask(lambda: at.broker.control.resume(0))


@real
async def test_what_does_not_go_together() -> None:
    async with cluster(0) as at, Client(at.servers) as client:
        with pytest.raises(UsageError, match="shared"):
            Consumer(client, topics="t", io_thread=True)


@real
async def test_a_subclass_has_a_thread_too() -> None:
    class Mine(Consumer):
        async def two(self) -> list[Record]:
            return [await anext(self), await anext(self)]

    async with cluster() as at:
        config = ConsumerConfig.of(
            at.servers, {"io_thread": True, "auto_offset_reset": "earliest"}
        )
        consumers = [
            Mine(at.servers, topics="t", io_thread=True, auto_offset_reset="earliest"),
            Mine.from_config(config, topics="t"),
        ]
        for consumer in consumers:
            assert type(consumer) is Mine
            async with consumer:
                names = {thread.name for thread in threading.enumerate()}
                assert "kafkaio I/O" in names
                assert len(await consumer.two()) == 2


@real
async def test_a_transaction_of_the_users_thread() -> None:
    lost: list[BaseException] = []
    async with cluster() as at, at.consumer(enable_auto_commit=False) as consumer:
        tx = consumer._join_transaction(list, lost.append)
        seen = [await anext(consumer) for _ in range(10)]
        found = tx.handed_out()
        assert found is not None
        assert found.is_fenced
        assert found.identity() == consumer.group_metadata
        # What crossed with these and was not taken is not handed out.
        handed = {r.topic_partition: r.offset + 1 for r in seen}
        offsets = {tp: o.offset for tp, o in found.offsets.items() if o.offset}
        assert offsets == handed
        found.check()
        assert not found.refused(ErrorCode.GROUP_AUTHORIZATION_FAILED, found.identity())
        await tx.rewind()
        again = [await anext(consumer) for _ in range(10)]
        assert again == seen
        tx.end()
    assert not lost


@real
async def test_a_transaction_is_asked_to_end_in_the_users_thread() -> None:
    told: list[int] = []
    asked = asyncio.Event()

    def note() -> None:
        told.append(threading.get_ident())
        asked.set()

    async with cluster() as at, at.consumer(enable_auto_commit=False) as consumer:
        tx = consumer._join_transaction(note, ignore)
        records: list[Record] = []
        while len(records) < COUNT:
            records += (await consumer.poll()).records
        found = tx.handed_out()
        assert found is not None
        assert {o.offset for o in found.offsets.values()} == {COUNT // 2}
        # As the transaction would: its own request, and then the news of it.
        core = consumer._core
        assert isinstance(core, ThreadedCore)
        committer = core._core.group_committer()
        await core.call(lambda: committer.commit(found.offsets, timeout=9))
        found.committed()
        async with at.consumer(enable_auto_commit=False, topics=None) as other:
            other.subscribe("t")
            reading = asyncio.ensure_future(one_record(other))
            await asked.wait()
            assert told[0] == threading.get_ident()
            assert consumer.assignment == {ZERO, ONE}
            assert consumer._offsets_in_transaction() is None
            tx.end()
            while len(consumer.assignment) == 2:
                await consumer.poll(timeout=0.1)
            reading.cancel()


def ignore(error: BaseException) -> None:
    """Do nothing."""


@real
async def test_a_loss_is_told_in_the_users_thread() -> None:
    lost: list[tuple[int, BaseException]] = []
    told = asyncio.Event()

    def note(error: BaseException) -> None:
        lost.append((threading.get_ident(), error))
        told.set()

    async with (
        cluster() as at,
        at.consumer(
            enable_auto_commit=False, max_poll_interval_ms=1000, session_timeout_ms=900
        ) as consumer,
    ):
        tx = consumer._join_transaction(list, note)
        assert (await consumer.poll()).records
        await told.wait()
        ((thread, error),) = lost
        assert thread == threading.get_ident()
        assert isinstance(error, PartitionLost)
        with pytest.raises(PartitionLost):
            tx.handed_out()
        await tx.rewind()


@real
async def test_run_in_transactions_needs_its_producer_in_the_same_thread() -> None:
    producer: Any = None

    class Transacts:
        def transaction(self, consumer: object) -> Any:
            raise NotImplementedError

    producer = Transacts()
    async with cluster(0) as at, at.consumer(enable_auto_commit=False) as consumer:
        with pytest.raises(UsageError, match="io_thread"):
            await consumer.run(one_record, producer=producer)


@real
async def test_the_loop_of_transactions_runs_in_the_users_thread() -> None:
    async def work(tx: FakeTransaction, records: list[Record]) -> None:
        if len(producer.all) == 2:
            tx.doom = PartitionLost("for the test")
        for record in records:
            await tx.send("out", (record.partition, record.offset))

    async def commit(offsets: GroupOffsetsPort) -> None:
        core = consumer._core
        assert isinstance(core, ThreadedCore)
        committer = core._core.group_committer()
        await core.call(lambda: committer.commit(offsets.offsets, timeout=9))

    producer = FakeProducer(commit)
    done = asyncio.Event()
    async with cluster() as at, at.consumer(enable_auto_commit=False) as consumer:

        async def at_end() -> None:
            if at.committed(ZERO) == at.committed(ONE) == COUNT // 2:
                done.set()

        producer.at_end = at_end
        running = asyncio.ensure_future(
            exactly_once(consumer, producer, work, max_records=50)
        )
        await done.wait()
        await consumer.close()
        await running
    places = [(n, offset) for n in (0, 1) for offset in range(COUNT // 2)]
    assert sorted(producer.committed) == places  # type: ignore[type-var]


@real
async def test_a_deserializer_that_was_cancelled_is_not_the_fault_of_the_record():
    class Cancelled:
        async def deserialize(self, data, context):
            raise asyncio.CancelledError

    dead: list[Record] = []

    async def bury(record, error):
        dead.append(record)

    async def handle(record): ...

    async with Broker(topics={"t": 1}) as broker:
        async with Producer(broker.bootstrap_servers) as producer:
            await producer.send("t", b"v")
        async with Consumer(
            broker.bootstrap_servers,
            topics="t",
            group_id="g",
            io_thread=True,
            auto_offset_reset="earliest",
            value_deserializer=Cancelled(),
        ) as consumer:
            with pytest.raises(ClosedError, match="deserializer of t-0 at offset 0"):
                await anext(consumer)
            with pytest.raises(ClosedError, match="deserializer of t-0 at offset 0"):
                await consumer.run(handle, dead_letter=bury)
    assert not dead
