"""``close(timeout)`` keeps its bound, whatever the consumer is at."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeAlias

import pytest

from kafkaio._client.client import Client
from kafkaio._config import ClientConfig, ConsumerConfig, ProducerConfig
from kafkaio._consumer import Consumer
from kafkaio._net.transport import DialOptions, FrameSinkPort, TransportPort
from kafkaio._producer import Producer
from kafkaio._runtime.clock import now
from kafkaio.errors import ClosedError
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing import Broker
from kafkaio.testing._broker.faults import delay, error
from kafkaio.types import Record, TopicPartition
from tests.unit.consumer.group_fakes import until, virtual
from tests.virtual_loop import VirtualClockLoop

HOUR = 3600.0
#: What the last turns of the loop may add.
SLACK = 0.05
CLASSIC: dict[str, Any] = {
    "group_id": "g",
    "group_protocol": "classic",
    "partition_assignment_strategy": "range",
}
NEWER: dict[str, Any] = {"group_id": "g", "group_protocol": "consumer"}


class Scene:
    """A cluster, its consumers, and what goes on beside."""

    def __init__(self, broker: Broker, protocol: dict[str, Any]) -> None:
        self.broker = broker
        self.protocol = protocol
        self.beside: list[asyncio.Future[Any]] = []
        self.others: list[Consumer] = []

    def consumer(self, dial: Any = None, **more: Any) -> Consumer:
        callbacks = {n: more.pop(n) for n in list(more) if n.startswith("on_")}
        config = ConsumerConfig.of(
            self.broker.bootstrap_servers,
            {"auto_offset_reset": "earliest", **self.protocol, **more},
        )
        return Consumer.from_config(
            config, dial=dial or self.broker.dial, topics="t", **callbacks
        )

    async def started(self, **more: Any) -> Consumer:
        consumer = self.consumer(**more)
        await consumer.start()
        return consumer

    def start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Future[Any]:
        task = asyncio.ensure_future(work)
        self.beside.append(task)
        return task

    async def hold_on(self, consumer: Consumer) -> None:
        """Wait until the consumer holds what the group requests, for ever."""
        holds = asyncio.Event()

        async def hold() -> None:
            async with consumer.wait_for_revoke():
                holds.set()
                await for_ever()

        self.start(hold())
        await holds.wait()

    def joins(self) -> Consumer:
        """Another consumer begins to join the group."""
        consumer = self.consumer()
        self.others.append(consumer)
        self.start(consumer.start())
        return consumer

    async def fill(self, count: int = 200) -> None:
        config = ClientConfig.of(self.broker.bootstrap_servers, {})
        async with (
            Client.from_config(config, dial=self.broker.dial) as client,
            Producer(client) as producer,
        ):
            for number in range(count):
                await producer.enqueue("t", b"x" * 1000, partition=number % 2)

    async def end(self) -> None:
        for consumer in self.others:
            await consumer.close(1.0)
        for task in self.beside:
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task


@asynccontextmanager
async def scene(protocol: dict[str, Any]) -> AsyncIterator[Scene]:
    async with Broker(nodes=2, topics={"t": 2}, memory_transport=True) as broker:
        scene = Scene(broker, protocol)
        yield scene
        await scene.end()


State: TypeAlias = Callable[[Scene], Coroutine[Any, Any, Consumer]]


async def for_ever(*_: object) -> None:
    await asyncio.sleep(HOUR)


async def never_started(scene: Scene) -> Consumer:
    return scene.consumer()


async def connecting(scene: Scene) -> Consumer:
    async def dial(
        host: str, port: int, sink: FrameSinkPort, _: DialOptions
    ) -> TransportPort:
        await for_ever(host, port, sink)
        raise AssertionError

    consumer = scene.consumer(dial=dial)
    scene.start(consumer.start())
    return consumer


async def at_bootstrap_servers_that_hang(scene: Scene) -> Consumer:
    hang(scene)
    consumer = scene.consumer()
    scene.start(consumer.start())
    return consumer


def hang(scene: Scene) -> None:
    for node_id in (0, 1):
        scene.broker.control.pause(node_id)


async def all_brokers_dead(scene: Scene) -> Consumer:
    consumer = await scene.started()
    for node_id in (0, 1):
        await scene.broker.control.kill(node_id)
    return consumer


async def all_brokers_hang(scene: Scene) -> Consumer:
    await scene.fill()
    consumer = await scene.started()
    await consumer.poll()
    await consumer.poll(timeout=0.1)  # so that there is something to commit
    hang(scene)
    return consumer


async def the_coordinator_hangs(scene: Scene) -> Consumer:
    await scene.fill()
    consumer = await scene.started()
    await consumer.poll()
    await consumer.poll(timeout=0.1)
    scene.broker.control.pause(scene.broker.control.coordinator("g"))
    scene.start(consumer.commit())
    return consumer


def waiting_for(api: str) -> State:
    async def begin(scene: Scene) -> Consumer:
        scene.broker.faults.on(api, delay(HOUR))
        consumer = scene.consumer()
        scene.start(consumer.start())
        return consumer

    begin.__name__ = f"waiting_for_{api}"
    return begin


async def parked_in_a_group_that_holds(scene: Scene) -> Consumer:
    owner = await scene.started()
    scene.others.append(owner)
    consumer = scene.joins()
    scene.others.remove(consumer)
    await scene.hold_on(owner)
    return consumer


async def holding(scene: Scene) -> Consumer:
    consumer = await scene.started()
    scene.joins()
    await scene.hold_on(consumer)
    return consumer


async def in_the_middle_of_a_commit(scene: Scene) -> Consumer:
    consumer = await scene.started()
    scene.broker.faults.on("OffsetCommit", delay(HOUR))
    scene.start(consumer.commit({TopicPartition("t", 0): 0}))
    return consumer


async def lanes_are_stuck(scene: Scene) -> Consumer:
    await scene.fill()
    consumer = await scene.started()

    async def body() -> None:
        async for lane in consumer.partitions():
            async with lane:
                async for _ in lane:
                    await for_ever()

    scene.start(body())
    return consumer


async def handlers_are_stuck(scene: Scene) -> Consumer:
    await scene.fill()
    consumer = await scene.started()
    scene.start(consumer.run(for_ever, concurrency=10))
    return consumer


async def full_buffers(scene: Scene) -> Consumer:
    await scene.fill(2000)
    return await scene.started(
        max_partition_fetch_bytes=100_000, fetch_max_bytes=100_000
    )


async def a_fetch_in_flight(scene: Scene) -> Consumer:
    consumer = await scene.started(fetch_max_wait_ms=100_000)
    scene.start(consumer.poll())
    return consumer


def stuck_in(callback: str) -> State:
    async def begin(scene: Scene) -> Consumer:
        consumer = scene.consumer(**{callback: for_ever})
        starting = scene.start(consumer.start())
        if callback != "on_assigned":
            await starting
        if callback == "on_lost":
            (member,) = scene.broker.control.members("g")
            scene.broker.control.expel_member("g", member)
            await until(lambda: not consumer.assignment)
        if callback == "on_revoked":
            scene.joins()
        return consumer

    begin.__name__ = f"stuck_in_{callback}"
    return begin


STATES: list[State] = [
    never_started,
    connecting,
    at_bootstrap_servers_that_hang,
    all_brokers_dead,
    all_brokers_hang,
    the_coordinator_hangs,
    *map(waiting_for, ["Metadata", "FindCoordinator", "OffsetFetch", "ListOffsets"]),
    parked_in_a_group_that_holds,
    holding,
    in_the_middle_of_a_commit,
    lanes_are_stuck,
    handlers_are_stuck,
    full_buffers,
    a_fetch_in_flight,
    *map(stuck_in, ["on_assigned", "on_revoked", "on_lost"]),
]
CLASSIC_STATES = [*STATES, *map(waiting_for, ["JoinGroup", "SyncGroup"])]
NEWER_STATES = [*STATES, waiting_for("ConsumerGroupHeartbeat")]


def refuses_changes(consumer: Consumer) -> None:
    changes: list[Callable[[], None]] = [
        lambda: consumer.subscribe("u"),
        consumer.unsubscribe,
        lambda: consumer.assign([TopicPartition("t", 0)]),
        consumer.enforce_rebalance,
    ]
    for change in changes:
        with pytest.raises(ClosedError, match="is closed"):
            change()


@virtual
async def test_what_is_closed_takes_up_no_other_topics() -> None:
    async with scene(NEWER) as at:
        consumer = await at.started()
        await consumer.close()
        refuses_changes(consumer)


@pytest.mark.parametrize("io_thread", [False, True])
async def test_nor_does_what_was_closed_before_it_began(*, io_thread: bool) -> None:
    consumer = Consumer(group_id="g", topics="t", io_thread=io_thread)
    await consumer.close()
    refuses_changes(consumer)


@pytest.mark.parametrize(
    ("protocol", "state", "limit"),
    [
        *((CLASSIC, state, limit) for state in CLASSIC_STATES for limit in (0.0, 2.0)),
        *((NEWER, state, 2.0) for state in NEWER_STATES),
    ],
    ids=lambda it: getattr(it, "__name__", str(it)) if callable(it) else None,
)
@virtual
async def test_a_consumer(protocol: dict[str, Any], state: State, limit: float) -> None:
    async with scene(protocol) as at:
        async with asyncio.timeout(60):
            consumer = await state(at)
        await asyncio.sleep(1)
        begun = now()
        await consumer.close(limit)
        assert now() - begun <= limit + SLACK
        assert consumer.statistics().state == "closed"
        await consumer.close(limit)
        assert now() - begun <= limit + SLACK


def test_a_callback_that_refuses_to_be_cancelled() -> None:
    # Not on the virtual clock: it stands still while something is cancelled again and
    # again.
    asyncio.run(close_in_spite_of_a_callback())


async def close_in_spite_of_a_callback() -> None:
    let_go = asyncio.Event()

    async def on_revoked(_: object) -> None:
        while not let_go.is_set():
            with suppress(asyncio.CancelledError):  # as code does that catches too much
                await asyncio.sleep(0.01)

    async with scene(CLASSIC) as at:
        consumer = await at.started(on_revoked=on_revoked)
        begun = now()
        await consumer.close(0.3)
        assert now() - begun < 2.0
        let_go.set()
        await asyncio.sleep(0.1)  # the task ends now, before the loop does


# ---- producers


async def idle(at: Scene, producer: Producer) -> None:
    del at
    await producer.start()


async def new(at: Scene, producer: Producer) -> None:
    """Nothing was done yet."""


async def starting(at: Scene, producer: Producer) -> None:
    hang(at)
    at.start(producer.start())


async def undelivered(at: Scene, producer: Producer) -> None:
    await producer.start()
    await producer.send("t", b"x", partition=0)
    hang(at)
    for _ in range(100):
        producer.enqueue_nowait("t", b"x" * 1000)


async def a_dead_cluster(at: Scene, producer: Producer) -> None:
    await producer.start()
    await producer.send("t", b"x", partition=0)
    for node_id in (0, 1):
        await at.broker.control.kill(node_id)
    producer.enqueue_nowait("t", b"x")


async def no_metadata(at: Scene, producer: Producer) -> None:
    await producer.start()
    hang(at)
    at.start(producer.send("another", b"x"))


async def no_room(at: Scene, producer: Producer) -> None:
    await undelivered(at, producer)
    for _ in range(3):
        at.start(producer.send("t", b"x" * 60_000))


async def flushing(at: Scene, producer: Producer) -> None:
    await undelivered(at, producer)
    at.start(producer.flush())


PRODUCER_STATES = [
    new,
    starting,
    idle,
    undelivered,
    a_dead_cluster,
    no_metadata,
    no_room,
    flushing,
]


def producer_of(at: Scene) -> Producer:
    options = {"buffer_memory": 200_000, "request_timeout_ms": 5_000}
    config = ProducerConfig.of(at.broker.bootstrap_servers, options)
    return Producer.from_config(config, dial=at.broker.dial)


@pytest.mark.parametrize("limit", [0.0, 2.0])
@pytest.mark.parametrize("state", PRODUCER_STATES, ids=lambda it: it.__name__)
@virtual
async def test_a_producer(
    state: Callable[[Scene, Producer], Coroutine[Any, Any, None]], limit: float
) -> None:
    async with scene(CLASSIC) as at:
        producer = producer_of(at)
        await state(at, producer)
        await asyncio.sleep(1)
        begun = now()
        await producer.close(limit)
        assert now() - begun <= limit + SLACK
        assert producer.statistics().state == "closed"
        await asyncio.sleep(0.01)
        # Whoever waits has heard.
        assert all(task.done() for task in at.beside)


@virtual
async def test_leaving_by_an_exception_waits_for_one_attempt_at_most() -> None:
    async with scene(CLASSIC) as at:
        begun = 0.0
        with pytest.raises(ZeroDivisionError):  # noqa: PT012
            async with producer_of(at) as producer:
                sent = await producer.enqueue("t", b"x")
                await producer.flush()
                hang(at)
                unsent = await producer.enqueue("t", b"x")
                begun = now()
                raise ZeroDivisionError
        assert now() - begun <= 5.0 + SLACK
        assert sent.exception() is None
        assert isinstance(unsent.exception(), ClosedError)


@virtual
async def test_leaving_by_an_exception_sends_what_can_be_sent() -> None:
    async with scene(CLASSIC) as at:
        with pytest.raises(ZeroDivisionError):  # noqa: PT012
            async with producer_of(at) as producer:
                delivery = await producer.enqueue("t", b"x")
                raise ZeroDivisionError
        assert delivery.exception() is None


# ---- cancelled calls


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def quiet(before: set[asyncio.Task[Any]]) -> None:
    """Wait until no task is left but those of before, without another call."""
    async with asyncio.timeout(5):
        while asyncio.all_tasks() - before:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def cancelled_at(work: Coroutine[Any, Any, None], *at: int) -> None:
    """Run something, and cancel it at these turns of the loop."""
    task = asyncio.ensure_future(work)
    for count in at:
        await turns(count)
        task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        await task


@pytest.mark.parametrize("again", [(), (1,), (3,)])
@virtual
async def test_a_producer_whose_close_is_cancelled_ends_even_so(
    again: tuple[int, ...],
) -> None:
    async with scene(CLASSIC) as at:
        before = asyncio.all_tasks()
        for turn in range(14):
            producer = producer_of(at)
            await producer.start()
            await producer.send("t", b"x", partition=0)
            await cancelled_at(producer.close(), turn, *again)
            if producer.statistics().state == "running":  # it had not begun
                await producer.close()
            await quiet(before)
            await producer.close()
            assert not producer._cluster.statistics().connections


@virtual
async def test_what_is_not_sent_fails_when_closing_is_cancelled() -> None:
    async with scene(CLASSIC) as at:
        producer = producer_of(at)
        await undelivered(at, producer)
        delivery = producer.enqueue_nowait("t", b"x")
        begun = now()
        await cancelled_at(producer.close(), 20)
        assert now() - begun < 3.0
        with pytest.raises(ClosedError, match="before the record was"):
            await delivery


@pytest.mark.parametrize("protocol", [CLASSIC, NEWER], ids=["classic", "newer"])
@pytest.mark.parametrize("again", [(), (1,), (1, 1)])
@virtual
async def test_a_consumer_whose_close_is_cancelled_leaves_the_group(
    protocol: dict[str, Any], again: tuple[int, ...]
) -> None:
    async with scene(protocol) as at:
        await at.fill()
        before = asyncio.all_tasks()
        for turn in range(1, 14, 3):
            consumer = await at.started()
            await consumer.poll(timeout=1)
            assert at.broker.control.members("g")
            await cancelled_at(consumer.close(), turn, *again)
            await quiet(before)
            assert at.broker.control.members("g") == []
            await consumer.close()


@pytest.mark.parametrize("protocol", [CLASSIC, NEWER], ids=["classic", "newer"])
@virtual
async def test_a_consumer_without_time_to_close_leaves_the_group(
    protocol: dict[str, Any],
) -> None:
    async with scene(protocol) as at:
        before = asyncio.all_tasks()
        consumer = await at.started()
        await consumer.close(timeout=0)
        await quiet(before)
        assert at.broker.control.members("g") == []


@pytest.mark.parametrize("protocol", [CLASSIC, NEWER], ids=["classic", "newer"])
@virtual
async def test_a_consumer_that_is_held_leaves_the_group_when_its_close_is_cancelled(
    protocol: dict[str, Any],
) -> None:
    async with scene(protocol) as at:
        consumer = await at.started()

        async def hold() -> None:
            async with consumer.wait_for_revoke():
                await for_ever()

        holding = at.start(hold())
        await asyncio.sleep(1)
        closing = asyncio.ensure_future(consumer.close())
        await asyncio.sleep(5)
        assert at.broker.control.members("g")
        closing.cancel()
        await asyncio.wait([closing])
        assert at.broker.control.members("g") == []
        assert not holding.done()


@pytest.mark.parametrize("protocol", [CLASSIC, NEWER], ids=["classic", "newer"])
@pytest.mark.parametrize("again", [(), (1,)])
@virtual
async def test_a_consumer_whose_start_is_cancelled_leaves_the_group(
    protocol: dict[str, Any], again: tuple[int, ...]
) -> None:
    async with scene(protocol) as at:
        for api in ("FindCoordinator", "JoinGroup", "SyncGroup", "LeaveGroup"):
            at.broker.faults.on(api, delay(0.02))
        at.broker.faults.on("ConsumerGroupHeartbeat", delay(0.02))
        before = asyncio.all_tasks()
        for step in range(1, 30):
            starting = asyncio.ensure_future((consumer := at.consumer()).start())
            await asyncio.sleep(0.01 * step)
            starting.cancel()
            for count in again:
                await turns(count)
                starting.cancel()
            await asyncio.wait([starting])
            if not starting.cancelled():
                await consumer.close()
            await quiet(before)
            assert at.broker.control.members("g") == []


@pytest.mark.parametrize("protocol", [CLASSIC, NEWER], ids=["classic", "newer"])
@virtual
async def test_a_consumer_whose_tasks_are_all_cancelled_leaves_the_group(
    protocol: dict[str, Any],
) -> None:
    async with scene(protocol) as at:
        before = asyncio.all_tasks()
        consumer = await at.started()
        assert at.broker.control.members("g")
        for task in asyncio.all_tasks() - before:
            if "kafkaio consumer" in task.get_name():
                task.cancel()
        await until(lambda: not at.broker.control.members("g"))
        assert now() < 1.0  # the session lasts for 45 seconds
        with suppress(Exception):
            await consumer.close()


@virtual
async def test_a_static_member_stays_when_its_close_is_cancelled() -> None:
    async with scene(CLASSIC) as at:
        consumer = await at.started(group_instance_id="i")
        await cancelled_at(consumer.close(), 3)
        assert at.broker.control.members("g")


async def left_in_the_midst(at: Scene, turn: int) -> None:
    """The loop ends while a consumer and a producer close."""
    consumer, producer = await at.started(), producer_of(at)
    await producer.start()
    for each in (consumer.close(), producer.close()):
        task = asyncio.ensure_future(each)
        await turns(turn)
        task.cancel()
        await turns(1)
        task.cancel()


@pytest.mark.parametrize("turn", [1, 2, 5])
def test_the_loop_may_end_while_something_closes(turn: int) -> None:
    reports: list[dict[str, Any]] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(
            lambda _, report: reports.append(report)
        )
        broker = Broker(nodes=2, topics={"t": 2}, memory_transport=True)
        await broker.__aenter__()
        await left_in_the_midst(Scene(broker, NEWER), turn)
        await broker.__aexit__(None, None, None)

    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        runner.run(main())
    assert reports == []


@pytest.mark.parametrize("protocol", [CLASSIC, NEWER], ids=["classic", "kip848"])
@pytest.mark.parametrize("runs", [True, False], ids=["run", "iteration"])
@virtual
async def test_closing_commits_once_the_coordinator_answers_again(
    runs: bool, protocol: dict[str, Any]
) -> None:
    async with scene(protocol) as at:
        await at.fill(10)
        consumer = await at.started(
            enable_auto_commit=not runs, auto_commit_interval_ms=500
        )
        seen: list[Record] = []

        async def handle(record: Record) -> None:
            seen.append(record)

        async def read() -> None:
            if runs:
                await consumer.run(handle)
                return
            async for record in consumer:
                seen.append(record)

        reading = at.start(read())
        loading = error(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, times=12)
        at.broker.faults.on("OffsetCommit", loading)
        await until(lambda: len(seen) == 10)
        await consumer.close()
        with suppress(ClosedError):
            await reading
        left = [at.broker.control.committed("g", ("t", number)) for number in range(2)]
        # The last record of an iteration was not finished by asking for the next one.
        assert sum(offset or 0 for offset in left) >= 10 - (not runs)
