"""The protocol of exactly once under a simulated scheduler of Spark.

Everything is real but Spark: the attempts are `TaskAttempt`, and the end of each run
is `VersionWrite`, on any Kafka. The scheduler runs the tasks of batch after batch, and
does to them what Spark and its machines can do:

- the process of an attempt dies at any request, before or after it is sent; the last
  request may reach the broker long after that;
- an attempt freezes in the middle, and goes on after another one has begun;
- two attempts run at once (speculation);
- the message of success is lost;
- the driver dies in the middle of a batch, at any request of its commit, or after it,
  with or without a call of ``abort``, and runs the batch again, with the same tasks or
  with others, while attempts of its former life still run.

A batch that was committed in part cannot be completed by other tasks: its driver says
so, and it is repeated until the tasks are those that had committed.

What is drawn comes from a seed. How attempts interleave depends on the event loop; on
virtual time, and with the embedded broker, it is the same in each run.

`WithoutMarker`, `OwnIds`, `MarkerFirst` and `WithoutOthers` are controls, which lack
one thing each. They must show duplicates: else the simulation proves nothing.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any
from uuid import uuid4
from zlib import crc32

import pyarrow as pa

from kafkaio._client import Client
from kafkaio._config import ClientConfig, ConsumerConfig, ProducerConfig
from kafkaio._consumer import Consumer
from kafkaio._net.dialling import TcpDial
from kafkaio._net.transport import Dial, DialOptions, FrameSinkPort, TransportPort
from kafkaio._producer import Producer
from kafkaio._producer.transaction import Transaction
from kafkaio.admin import Admin
from kafkaio.errors import BrokerNotAvailable, KafkaError, RequestTimeout
from kafkaio.protocol._message import Buffer
from kafkaio.spark._exactly_once import (
    AttemptFailed,
    TaskAttempt,
    TaskName,
    TaskResult,
    transactional_id,
)
from kafkaio.spark._judgement import VersionName, VersionWrite
from kafkaio.spark._kept import KeptProducers
from kafkaio.spark._marker_state import AppState, TaskReport
from kafkaio.spark._marker_stores import MarkerStorePort, store_of
from kafkaio.types import TopicPartition

__all__ = [
    "Cluster",
    "MarkerFirst",
    "OwnIds",
    "Plan",
    "Verdict",
    "WithoutMarker",
    "WithoutOthers",
    "batches_of",
    "read",
    "run",
]


#: Runs of a batch after which it is given up: without it, controls go on for ever.
MOST_RUNS = 60


@dataclass(frozen=True)
class Cluster:
    """A Kafka, and how to reach it."""

    bootstrap_servers: str
    dial: Dial = field(default_factory=TcpDial)

    def client(self, dial: Dial | None = None) -> Client:
        config = ClientConfig.of(self.bootstrap_servers, {})
        return Client.from_config(config, dial=dial or self.dial)

    def admin(self) -> Admin:
        config = ClientConfig.of(self.bootstrap_servers, {})
        return Admin.from_config(config, dial=self.dial)

    def consumer(self, topic: str, partitions: int, isolation: str) -> Consumer:
        options = {
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
            "isolation_level": isolation,
        }
        config = ConsumerConfig.of(self.bootstrap_servers, options)
        assign = [TopicPartition(topic, number) for number in range(partitions)]
        return Consumer.from_config(config, assign=assign, dial=self.dial)


@dataclass(frozen=True)
class Plan:
    """How much to do, and how often what goes wrong; times are in seconds.

    Attributes:
        tasks: the numbers of tasks that a batch may have; each run draws one of them.
        rows: the number of rows of a batch.
        store: where markers are kept: ``topic`` or ``groups``.
        keeps: how often a task is given to a process that has written it before, and
            has kept its producer; all others get a process of their own.
    """

    batches: int = 12
    tasks: tuple[int, ...] = (4,)
    rows: int = 160
    store: str = "topic"
    partitions: int = 4
    pause: float = 0.02
    dies: float = 0.35
    freezes: float = 0.15
    speculates: float = 0.25
    loses_success: float = 0.15
    restarts: float = 0.2
    dies_in_commit: float = 0.3
    keeps: float = 0.0


@dataclass
class Verdict:
    """What the readers saw, and what happened."""

    wanted: int
    duplicates: int
    missing: int
    logged: int
    events: Counter[str] = field(default_factory=Counter)


class _Dead(Exception):
    """The process of an attempt has died, or its message was lost."""


# ---- processes that die --------------------------------------------------------------


class _Process:
    """A process: its connections, and when it dies or freezes.

    Args:
        dial: makes its connections.
        dies_at: the number of the frame at which it dies; None to live on.
        is_sent: whether that frame still leaves, and `late` seconds after that arrives.
        freezes_at: the number of the frame at which it freezes, `late` seconds long.
    """

    def __init__(
        self,
        dial: Dial,
        *,
        dies_at: int | None,
        is_sent: bool,
        freezes_at: int | None,
        late: float,
    ) -> None:
        self._dial = dial
        self._dies_at = dies_at
        self._is_sent = is_sent
        self._freezes_at = freezes_at
        self._late = late
        self._frames = 0
        self._transports: list[_Mortal] = []
        self.died = asyncio.Event()

    def take_fate_of(self, other: _Process) -> None:
        """Live on, for another attempt, which ends as another process was to."""
        self._dies_at, self._freezes_at = other._dies_at, other._freezes_at
        self._is_sent, self._late = other._is_sent, other._late
        self._frames = 0

    async def dial(
        self, host: str, port: int, sink: FrameSinkPort, options: DialOptions
    ) -> TransportPort:
        if self.died.is_set():
            raise BrokerNotAvailable(f"{host}:{port}: the process is dead")
        mortal = _Mortal(self, sink)
        mortal.inner = await self._dial(host, port, mortal, options)
        self._transports.append(mortal)
        if self.died.is_set():
            mortal.inner.abort()
            raise BrokerNotAvailable(f"{host}:{port}: the process is dead")
        return mortal

    async def ended(self) -> None:
        """Wait until every connection has ended, after what was sent late."""
        for one in self._transports:
            await one.lost.wait()

    def wrote(self, transport: _Mortal, data: bytes) -> None:
        """Send a frame, or die at it."""
        if self.died.is_set():
            return
        self._frames += 1
        if self._frames == self._dies_at:
            self.die(transport if self._is_sent else None, data)
        elif self._frames == self._freezes_at:
            loop = asyncio.get_running_loop()
            for one in self._transports:
                one.hold()
            loop.call_later(self._late, self._thaw)
            transport.send(data)
        else:
            transport.send(data)

    def die(self, last: _Mortal | None = None, data: bytes = b"") -> None:
        """Die: no connection sends any more, but what has left arrives, late."""
        if self.died.is_set():
            return
        self.died.set()
        loop = asyncio.get_running_loop()
        for one in self._transports:
            one.cut()
            if one is last:
                loop.call_later(self._late, one.inner.write, [data])
                loop.call_later(self._late + 0.01, one.inner.close)
            else:
                loop.call_soon(one.inner.abort)

    def _thaw(self) -> None:
        for one in self._transports:
            one.release()


class _Mortal:
    """A connection of a process; a Transport, and the sink of the real one."""

    inner: TransportPort

    def __init__(self, process: _Process, sink: FrameSinkPort) -> None:
        self._process = process
        self._sink = sink
        self._held: list[bytes] | None = None
        self._is_cut = False
        self.lost = asyncio.Event()

    @property
    def received(self) -> int:
        return self.inner.received

    @property
    def unsent(self) -> int:
        return self.inner.unsent

    def write(self, parts: Sequence[Buffer]) -> None:
        if not self._is_cut:
            self._process.wrote(self, b"".join(parts))

    def send(self, data: bytes) -> None:
        if self._held is None:
            self.inner.write([data])
        else:
            self._held.append(data)

    def hold(self) -> None:
        if self._held is None:
            self._held = []

    def release(self) -> None:
        held, self._held = self._held or [], None
        if not self._is_cut:
            for data in held:
                self.inner.write([data])

    def close(self) -> None:
        if not self._is_cut:
            self.inner.close()

    def abort(self) -> None:
        if not self._is_cut:
            self.inner.abort()

    def limit_frames(self, size: int) -> None:
        self.inner.limit_frames(size)

    def cut(self) -> None:
        """End for this side alone: the other one may still get a last frame."""
        if not self._is_cut:
            self._is_cut = True
            asyncio.get_running_loop().call_soon(self._sink.connection_lost, None)

    def frame_received(self, frame: Buffer) -> None:
        if not self._is_cut:
            self._sink.frame_received(frame)

    def connection_lost(self, cause: BaseException | None) -> None:
        self.lost.set()
        if not self._is_cut:
            self._is_cut = True
            self._sink.connection_lost(cause)


# ---- protocols that lack something ---------------------------------------------------


class WithoutMarker(TaskAttempt):
    """Does not look whether the rows are in."""

    async def begin(self, tx: Transaction) -> AppState:
        return AppState.empty()


class OwnIds(TaskAttempt):
    """Has a transactional id of its own, so that attempts do not fence each other."""

    def producer(self) -> Producer:
        options = {"transactional_id": f"{self.name.transactional_id}-{uuid4().hex}"}
        return Producer(self.client, **options)  # type: ignore[arg-type]


class MarkerFirst(TaskAttempt):
    """Looks for the marker before it fences the other attempts."""

    looked: asyncio.Event | None = None
    go_on: asyncio.Event | None = None
    _early: AppState | None = None

    async def start(self, producer: Producer) -> None:
        await self.markers.prepare()
        self._early = await self.markers.look(self.name.scope, self.name.version)
        if self.looked is not None and self.go_on is not None:
            self.looked.set()
            await self.go_on.wait()
        await super().start(producer)

    async def begin(self, tx: Transaction) -> AppState:
        assert self._early is not None
        return self._early


class WithoutOthers(TaskAttempt):
    """Does not see that another run has begun the version, in other tasks."""

    async def begin(self, tx: Transaction) -> AppState:
        state = await super().begin(tx)
        state.open, state.is_begun_elsewhere = {}, False
        own = state.tasks.get(self.name.task)
        state.tasks = {} if own is None else {self.name.task: own}
        return state


# ---- the scheduler -------------------------------------------------------------------


@dataclass(eq=False)
class _Worker:
    """A process that runs attempts, and what it keeps."""

    process: _Process
    client: Client
    producers: KeptProducers
    is_started: bool = False


class _Scheduler:
    """Runs tasks as Spark does."""

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        plan: Plan,
        rng: Random,
        attempt: type[TaskAttempt],
        group: asyncio.TaskGroup,
    ) -> None:
        self._cluster = cluster
        self._topic = topic
        self._plan = plan
        self._rng = rng
        self._attempt = attempt
        self._group = group
        self._app = uuid4().hex[:8]
        # By the number of the task that they have run last.
        self._workers: dict[int, _Worker] = {}
        self.events: Counter[str] = Counter()

    async def run(self) -> None:
        """Run all batches."""
        for version in range(self._plan.batches):
            runs = 1
            while not await self._batch(version):
                self.events["restarts"] += 1
                if (runs := runs + 1) > MOST_RUNS:
                    self.events["given up"] += 1
                    break
        await self._abort(range(max(self._plan.tasks)))
        while self._workers:
            _, worker = self._workers.popitem()
            await self._end(worker)

    async def _batch(self, version: int) -> bool:
        # Returns whether the driver has noted the batch as done.
        plan, rng = self._plan, self._rng
        one = _Run(version, rng.choice(plan.tasks), uuid4().hex)
        is_restarted = rng.random() < plan.restarts
        tasks = [
            self._group.create_task(self._task(one, number))
            for number in range(one.tasks)
        ]
        if is_restarted and rng.random() < 0.5:
            # The driver dies in the middle; its executors may live on for a while.
            await asyncio.sleep(rng.random() * plan.pause * 10)
            reported = [not task.cancel() for task in tasks]
            if rng.random() < 0.5:
                unknown = [number for number, is_in in enumerate(reported) if not is_in]
                await self._abort(unknown)
            return False
        await asyncio.wait(tasks)
        is_done = await self._commit(one, [task.result() for task in tasks])
        return is_done and not is_restarted

    async def _commit(self, run: _Run, results: Sequence[TaskResult]) -> bool:
        """Do what the writer's `commit` does, in a process that may die of it."""
        plan, rng = self._plan, self._rng
        held = {number: it.held for number, it in enumerate(results) if it.held}
        reports = [
            TaskReport(number, it.outcome, it.found, it.expected, _producer_of(it))
            for number, it in enumerate(results)
        ]
        process = self._process(dies=plan.dies_in_commit, freezes=0.0)
        self.events["judged"] += not all(each.is_settled for each in reports)
        client = self._cluster.client(process.dial)
        worker = _Worker(process, client, KeptProducers(0))

        async def commit() -> None:
            await client.start()
            name = VersionName(app=self._app, version=run.version, run=run.id)
            markers = await self._markers(client)
            await VersionWrite(client, name, markers).commit(reports, held)

        error = await self._outlived(worker, asyncio.ensure_future(commit()))
        await self._end(worker)
        if error is None:
            return True
        self.events[f"commit: {type(error).__name__}"] += 1
        if not isinstance(error, _Dead | KafkaError):
            raise error
        if rng.random() < 0.7:
            await self._abort(sorted(held))
        return False

    async def _markers(self, client: Client) -> MarkerStorePort:
        if self._plan.store == "groups":
            return await store_of(client, topic=None, groups_at=self._topic)
        topic = f"{self._topic}-markers"
        return await store_of(client, topic=topic, groups_at=None)

    async def _abort(self, tasks: Sequence[int]) -> None:
        """Do what the writer's `abort` does."""
        self.events["ids fenced by the driver"] += len(tasks)
        ids = [transactional_id("kafkaio", self._app, number) for number in tasks]
        if ids:
            async with self._cluster.admin() as admin:
                await admin.fence_producers(ids, timeout=60)

    async def _task(self, run: _Run, number: int) -> TaskResult:
        """Run attempts of a task until one has told of its success."""
        rng = self._rng
        while True:
            running = [self._start(run, number)]
            if rng.random() < self._plan.speculates:
                self.events["speculated"] += 1
                await asyncio.sleep(rng.random() * self._plan.pause * 3)
                running.append(self._start(run, number))
            while running:
                done, _ = await asyncio.wait(
                    running, return_when=asyncio.FIRST_COMPLETED
                )
                for one in done:
                    if one.exception() is None:
                        return one.result()  # the other one may go on
                running = [one for one in running if one not in done]

    def _start(self, run: _Run, number: int) -> asyncio.Future[TaskResult]:
        # Not a child of the task: it lives on when the driver dies.
        self.events["attempts"] += 1
        done: asyncio.Future[TaskResult] = asyncio.get_running_loop().create_future()
        self._group.create_task(self._live(run, number, done))
        return done

    def _process(self, *, dies: float, freezes: float) -> _Process:
        rng = self._rng
        return _Process(
            self._cluster.dial,
            dies_at=rng.randrange(1, 25) if rng.random() < dies else None,
            is_sent=rng.random() < 0.5,
            freezes_at=rng.randrange(1, 25) if rng.random() < freezes else None,
            late=rng.random() * self._plan.pause * 10,
        )

    async def _live(
        self, run: _Run, number: int, done: asyncio.Future[TaskResult]
    ) -> None:
        """Run one attempt, in a process of its own or in one that has run others."""
        plan, rng = self._plan, self._rng
        process = self._process(dies=plan.dies, freezes=plan.freezes)
        loses = rng.random() < plan.loses_success
        worker = self._worker(process, number)
        work = asyncio.ensure_future(self._work(worker, run, number))

        def tell(error: BaseException | None) -> None:
            if done.done():
                return
            if error is None:
                done.set_result(work.result())
            else:
                done.set_exception(error)
                done.exception()  # the driver may not ask any more

        error = await self._outlived(worker, work, tell, loses=loses)
        if plan.keeps and not worker.process.died.is_set():
            former = self._workers.get(number)
            self._workers[number] = worker
            if former is not None:
                await self._end(former)
        else:
            await self._end(worker)
        if error is not None and not isinstance(
            error, AttemptFailed | RequestTimeout | _Dead
        ):
            raise error

    def _worker(self, process: _Process, number: int) -> _Worker:
        # Without workers that are kept, nothing more is drawn.
        if self._plan.keeps and self._rng.random() < self._plan.keeps:
            worker = self._workers.pop(number, None)
            if worker is not None:
                worker.process.take_fate_of(process)
                return worker
        return _Worker(process, self._cluster.client(process.dial), KeptProducers())

    async def _end(self, worker: _Worker) -> None:
        await worker.producers.close()
        await worker.client.close()
        await worker.process.ended()

    async def _outlived(
        self,
        worker: _Worker,
        work: asyncio.Future[Any],
        tell: Callable[[BaseException | None], None] | None = None,
        *,
        loses: bool = False,
    ) -> BaseException | None:
        """Wait for work in a process, or for its death; return why it failed."""
        process = worker.process
        death = asyncio.ensure_future(process.died.wait())
        await asyncio.wait([work, death], return_when=asyncio.FIRST_COMPLETED)
        error: BaseException | None = None
        if process.died.is_set():
            self.events["died"] += 1
            work.cancel()
            error = _Dead()
        elif work.exception() is not None:
            error = work.exception()
            self._count(error)
        elif loses:
            self.events["success lost"] += 1
            error = _Dead()
        death.cancel()
        if tell is not None:
            tell(error)
        await asyncio.wait([work, death])
        return error

    def _count(self, error: BaseException | None) -> None:
        self.events["fenced" if "taken over" in str(error) else "aborted"] += 1

    async def _work(self, worker: _Worker, run: _Run, number: int) -> TaskResult:
        client = worker.client
        if not worker.is_started:
            worker.is_started = True
            await client.start()
        self.events["kept"] += worker.producers.count
        attempt = self._attempt(
            client,
            TaskName(app=self._app, version=run.version, task=number),
            marker_topic=self._topic,
            config=ProducerConfig.of(self._cluster.bootstrap_servers, {"linger_ms": 0}),
            run=run.id,
            markers=await self._markers(client),
            producers=worker.producers if self._plan.keeps else None,
        )
        rows = range(self._plan.rows)[number :: run.tasks]
        batches = batches_of([f"{run.version}-{row}" for row in rows])
        result = await attempt.run(batches, self._put)
        self.events[result.outcome.value] += 1
        self.events["skipped" if result.is_skipped else "committed"] += 1
        return result

    async def _put(self, tx: Transaction, batch: pa.RecordBatch) -> None:
        for value in batch.column(0).to_pylist():
            row = value.encode()
            place = crc32(row) % self._plan.partitions
            _ = await tx.enqueue(self._topic, row, partition=place)
        await asyncio.sleep(self._rng.random() * self._plan.pause)


@dataclass(frozen=True)
class _Run:
    """One execution of a batch's write."""

    version: int
    tasks: int
    id: str


def _producer_of(result: TaskResult) -> int:
    return -1 if result.held is None else result.held.producer_id


async def batches_of(
    values: Sequence[str], size: int = 10
) -> AsyncIterator[pa.RecordBatch]:
    """The input of a task."""
    for start in range(0, len(values), size):
        yield pa.record_batch({"value": pa.array(values[start : start + size])})


async def run(
    cluster: Cluster,
    topic: str,
    seed: int,
    *,
    plan: Plan | None = None,
    attempt: type[TaskAttempt] = TaskAttempt,
) -> Verdict:
    """Run a plan in an empty topic, and count what readers see."""
    plan = plan or Plan()
    async with asyncio.TaskGroup() as group:
        scheduler = _Scheduler(cluster, topic, plan, Random(seed), attempt, group)
        await scheduler.run()
    committed = await read(cluster, topic, plan.partitions, "read_committed")
    logged = await read(cluster, topic, plan.partitions, "read_uncommitted")
    wanted = {
        f"{version}-{row}".encode()
        for version in range(plan.batches)
        for row in range(plan.rows)
    }
    seen = Counter(committed)
    return Verdict(
        wanted=len(wanted),
        duplicates=len(committed) - len(seen),
        missing=len(wanted - set(seen)),
        logged=len(logged),
        events=scheduler.events,
    )


async def read(
    cluster: Cluster, topic: str, partitions: int, isolation: str
) -> list[bytes | None]:
    """Return the values of a topic, up to where its readers can get now."""
    values: list[bytes | None] = []
    async with cluster.consumer(topic, partitions, isolation) as consumer:
        ends = await consumer.end_offsets(consumer.assignment)
        while True:
            values += [one.value for one in (await consumer.poll(timeout=0.1)).records]
            places = [await consumer.position(tp) for tp in ends]
            if all(at >= end for at, end in zip(places, ends.values(), strict=True)):
                return values
