"""Members of a share group: what happens in a run, and its checks."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from itertools import count
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup

from kafkaio._config import ShareConsumerConfig
from kafkaio._net.transport import Dial
from kafkaio._runtime.broadcast import Broadcast
from kafkaio._share.consumer import ShareConsumer
from kafkaio.errors import (
    AcknowledgeFailed,
    ClosedError,
    KafkaError,
    KafkaTimeout,
    LockLost,
    MembershipError,
    NetworkError,
    Reject,
    Release,
    UsageError,
)
from kafkaio.testing._broker.configs import GROUP as GROUP_CONFIGS
from kafkaio.testing._share.leaders import share_leaders_of
from tests.sim.injector import FaultInjector
from tests.sim.network import Wire
from tests.sim.scenario import Fault, Scenario
from tests.sim.share_laws import Handed, ShareChecker, Shared, ShareLife, Truth
from tests.sim.stage import LOOK_EVERY, SETTLE_SECONDS, Stage, Tally
from tests.sim.user import GROUP, TOPIC, background
from tests.sim.writer import Writer

__all__ = ["SharePlay"]

#: Seconds that a record is locked.
LOCK_SECONDS: Final = 10.0
_EXPECTED: Final = (KafkaTimeout, MembershipError, NetworkError, AcknowledgeFailed)
_PAUSE: Final = 1.0
_SOMETIMES: Final = 0.2
_OPTIONS: Final = {
    "fetch_max_wait_ms": 3_000,
    "metadata_max_age_ms": 30_000,
    "default_api_timeout_ms": 60_000,
}


class ShareMember:
    """One member: a process that runs one consumer after the other.

    Args:
        play: the run that it is part of.
        number: its number.
    """

    def __init__(self, play: SharePlay, number: int) -> None:
        self.name = f"member-{number}"
        self.client_id = self.name
        self.session = None
        self.seeks_due: list[tuple[int, int]] = []
        self._play = play
        self._checker = play.checker
        self._rng: random.Random = play.scenario.rng(self.name)
        self._lives = count()
        self._stall = 0.0
        self._wanted = True
        self._pause = 0.0
        self._leaving = anyio.Event()
        self._process: anyio.CancelScope | None = None
        self._reading: anyio.CancelScope | None = None
        self._go_on = Broadcast()
        self._consumer: ShareConsumer[Any, Any] | None = None

    # ---- what happens to it ----------------------------------------------------------

    def crash(self, seconds: float) -> None:
        """End the process at once, and start another after a while."""
        if self._process is not None:
            self._play.vanished(self.client_id)
        self.cancel(seconds)

    def cancel(self, seconds: float) -> None:
        """Cancel the task, and start another after a while."""
        if self._process is not None:
            self._pause = seconds
            self._process.cancel()

    def leave(self, seconds: float | None) -> None:
        """Close the consumer normally, and start another after a while; or never."""
        if seconds is None:
            self._wanted = False
            self._go_on.notify_all()
        else:
            self._pause = seconds
        self._leaving.set()
        if self._reading is not None:
            self._reading.cancel()

    def stall(self, seconds: float) -> None:
        """Make the user's code take that long for the next record."""
        self._stall = seconds

    def end_stall(self) -> None:
        """End a stall of the user's code."""
        self._stall = 0.0
        self._go_on.notify_all()

    def subscribe(self, topics: Collection[str]) -> None:
        """Change the subscription; no topics means to unsubscribe."""
        del topics

    # ---- its life --------------------------------------------------------------------

    async def live(self) -> None:
        """Run consumers until the member leaves for ever."""
        while self._wanted:
            self._pause = _PAUSE
            self._leaving = anyio.Event()
            with anyio.CancelScope() as process:
                self._process = process
                await self._run()
            self._process = None
            if self._wanted:
                with anyio.move_on_after(self._pause):
                    await self._go_on.wait()

    async def _run(self) -> None:
        self.client_id = f"{self.name}.{next(self._lives)}"
        style = self._rng.choice(self._play.scenario.styles)
        consumer = self._make(style)
        life = ShareLife(
            self.client_id,
            lambda: consumer.statistics().member_id,
            consumer._config.max_in_flight
            if consumer._config.acquire_mode == "record_limit"
            else None,
        )
        self._checker.lives.append(life)
        self._play.say(f"{self.client_id} starts ({style})")
        in_order = False
        try:
            await consumer.start()
            await self._read(_User(self, life, consumer), style)
            self._reading = None
            await consumer.close()
            in_order = True
        except KafkaError as error:
            self._raised(error)
        finally:
            self._reading = None
            try:
                if not in_order:
                    # A cancelled task may still close, unless it is cancelled again.
                    with anyio.CancelScope(shield=self._rng.random() < 1 / 2):
                        await consumer.close(1.0)
            finally:
                life.is_over = True
                self._check_empty(consumer)
                self._play.say(f"{self.client_id} ended, in order: {in_order}")

    def _make(self, style: str) -> ShareConsumer[Any, Any]:
        options = {
            **_OPTIONS,
            "client_id": self.client_id,
            "group_id": GROUP,
            "acquire_mode": self._rng.choice(("record_limit", "batch_optimized")),
            "max_in_flight": self._rng.choice((1, 5, 20, 100)),
            "ack_linger_ms": self._rng.choice((0, 5, 1000)),
            "renew_locks": self._rng.random() < 1 / 2,
            "max_processing_ms": self._rng.choice((5_000, 25_000, 60_000)),
            "acknowledgement": "implicit" if style == "implicit" else "explicit",
            **self._play.scenario.consumer_options,
        }
        config = ShareConsumerConfig.of(self._play.bootstrap_servers, options)
        return ShareConsumer.from_config(
            config, dial=self._play.dial_of(self.client_id), topics=[TOPIC]
        )

    async def _read(self, user: _User, style: str) -> None:
        read = {
            "iterate": user.iterate,
            "implicit": user.implicit,
            "batches": user.batches,
            "poll": user.poll,
            "run": user.run,
        }[style]

        async def close() -> None:
            await self._leaving.wait()
            await user.consumer.close()

        if self._rng.random() < 1 / 2:
            async with background() as start:
                start(close)
                await self._read_on(read)
                self._leaving.set()
            return
        with anyio.CancelScope() as self._reading:
            if not self._leaving.is_set():
                await self._read_on(read)

    async def _read_on(self, read: Callable[[], Awaitable[None]]) -> None:
        while not self._leaving.is_set():
            try:
                await read()
            except (NetworkError, KafkaTimeout, AcknowledgeFailed) as error:
                self._play.say(f"{self.client_id} goes on after {error!r}"[:200])

    def _raised(self, error: KafkaError) -> None:
        self._play.say(f"{self.client_id} raised {error!r}"[:300])
        if isinstance(error, ClosedError) and self._leaving.is_set():
            return
        if not (isinstance(error, _EXPECTED) or error.retriable):
            self._checker.break_law("raised", f"{self.client_id}: {error!r}")

    def _check_empty(self, consumer: ShareConsumer[Any, Any]) -> None:
        left = consumer.statistics()
        if left.buffered_bytes or left.fetches_in_flight or left.in_flight:
            self._checker.break_law("left behind", f"{self.client_id}: {left}")

    # ---- what its user does ----------------------------------------------------------

    async def work(self) -> None:
        """Do a piece of work, which may take long."""
        if self._stall:
            seconds, self._stall = self._stall, 0.0
            self._play.say(f"{self.client_id} stalls for {seconds:.1f} s")
            with anyio.move_on_after(seconds):
                await self._go_on.wait()
        elif self._rng.random() < _SOMETIMES and not self.is_hurried:
            # Mostly milliseconds, sometimes several locks.
            await anyio.sleep(0.01 * 3000 ** self._rng.random())

    async def rest(self, choices: Sequence[float]) -> None:
        """Read nothing for a while."""
        seconds = self._rng.choice(choices)
        await anyio.sleep(0.0 if self.is_hurried else seconds)

    @property
    def is_hurried(self) -> bool:
        """Whether everything has to be done soon."""
        return self._play.is_late

    def in_background(self, step: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run something that outlives the process."""
        self._play.in_background(step)

    @property
    def is_leaving(self) -> bool:
        """Whether the consumer is being closed."""
        return self._leaving.is_set()

    @property
    def rng(self) -> random.Random:
        """Draws what the user decides."""
        return self._rng

    @property
    def checker(self) -> ShareChecker:
        """Told of everything that happens."""
        return self._checker


class _User:
    """The code of a user with one consumer."""

    def __init__(
        self, member: ShareMember, life: ShareLife, consumer: ShareConsumer[Any, Any]
    ) -> None:
        self.consumer = consumer
        self._member = member
        self._life = life
        self._rng = member.rng

    def _take(self, record: Shared) -> Handed:
        entry = self._member.checker.handed(self._life, record)
        self._member.in_background(lambda: self._watch(entry))
        return entry

    async def _watch(self, entry: Handed) -> None:
        """Wait for what becomes of a record."""
        try:
            await entry.record.acked
        except LockLost:
            end = "lost"
        except AcknowledgeFailed:
            end = "unknown"
        except ClosedError:
            end = "over"
        else:
            end = "confirmed"
        self._member.checker.ended(entry, end)

    def _decide(self, entry: Handed) -> None:
        chance = self._rng.random()
        decision = (
            "accept" if chance > 0.2 else "reject" if chance < 0.05 else "release"
        )
        record = entry.record
        if record.is_lost:
            return
        try:
            {
                "accept": record.ack,
                "reject": record.reject,
                "release": record.release,
            }[decision]()
        except UsageError:
            # The consumer closes, and has released it.
            if not self._member.is_leaving:
                raise
        else:
            entry.decision = decision

    async def iterate(self) -> None:
        """Iterate, and break at times."""
        async for record in self.consumer:
            entry = self._take(record)
            await self._member.work()
            if self._rng.random() < 0.03:
                break  # which releases it
            self._decide(entry)
            if entry.decision and self._rng.random() < 0.1:
                await record.acked
            if self._rng.random() < 0.02:
                await self.consumer.flush()
            if self._rng.random() < 0.02:
                # Nobody reads meanwhile, so that nothing may be locked.
                break
        await self._member.rest((0.0, 0.5, 15.0))

    async def implicit(self) -> None:
        """Iterate; each step accepts the record before."""
        async for record in self.consumer:
            entry = self._take(record)
            await self._member.work()
            if self._rng.random() < 0.05:
                self._decide(entry)
            if self._rng.random() < 0.03:
                break
            # The next step accepts it, whether or not it finds another record.
            entry.is_finished = True
        await self._member.rest((0.0, 0.5))

    async def batches(self) -> None:
        """Read batches, and acknowledge most of them as a whole."""
        most, wait = self._rng.choice((1, 7, 50)), self._rng.choice((0.0, 0.3))
        async for batch in self.consumer.batches(max_records=most, max_wait=wait):
            entries = [self._take(record) for record in batch.records]
            await self._member.work()
            if self._rng.random() < 0.03:
                return
            if self._rng.random() < 0.3:
                for entry in entries:
                    self._decide(entry)
                continue
            for entry in entries:
                if not entry.record.is_lost:
                    entry.decision = "accept"
            batch.ack()

    async def poll(self) -> None:
        """Poll, and decide in other tasks, in any order."""
        async with background() as start:
            while True:
                most = self._rng.choice((None, 1, 10))
                for record in await self.consumer.poll(timeout=5.0, max_records=most):
                    start(self._work_on, self._take(record))
                if self._rng.random() < 0.05:
                    await self.consumer.commit()
                if self._rng.random() < 0.05:
                    await self._member.rest((0.1, 20.0))

    async def _work_on(self, entry: Handed) -> None:
        await self._member.work()
        if self._rng.random() < 0.02 and not self._member.is_hurried:
            return  # forgotten: its lock runs out
        self._decide(entry)

    async def run(self) -> None:
        """Have several handlers work."""

        async def handle(record: Shared) -> None:
            entry = self._take(record)
            await self._member.work()
            chance = self._rng.random()
            if chance < 0.05:
                entry.decision = "release"
                raise Release("not now")
            if chance < 0.1:
                entry.decision = "reject"
                raise Reject("never")
            if chance < 0.15:
                entry.decision = "release"
                raise RuntimeError("a handler's own error")
            if not record.is_lost:
                entry.decision = "accept"

        await self.consumer.run(handle, concurrency=self._rng.choice((1, 3, 20)))


class SharePlay:
    """A producer writes to a topic, and the members of one share group work on it.

    Args:
        stage: the cluster, the network and the clock.
    """

    def __init__(self, stage: Stage) -> None:
        self.scenario: Scenario = stage.scenario
        self._stage = stage
        self._broker = stage.broker
        cluster = stage.broker._cluster
        limit = (10, 5, 3)[stage.scenario.seed % 3]
        cluster.configs.set(
            GROUP_CONFIGS,
            GROUP,
            {
                "share.auto.offset.reset": "earliest",
                "share.record.lock.duration.ms": str(round(LOCK_SECONDS * 1000)),
                "share.delivery.count.limit": str(limit),
            },
        )
        truth = Truth(
            share_leaders_of(cluster),
            GROUP,
            lambda: list(self._broker.topics[TOPIC].partitions),
            stage.break_law,
        )
        self.checker = ShareChecker(
            stage.now, stage.break_law, truth, lambda: self._is_calm(), limit
        )
        self._truth = truth
        self._members: list[ShareMember] = []
        #: Whether all faults have ended: users are quick now.
        self.is_late = False
        self._is_settled = False
        self._is_written = False
        self._tasks: TaskGroup | None = None
        self._injector: FaultInjector | None = None

    def _is_calm(self) -> bool:
        return self._injector is not None and self._injector.is_calm

    @property
    def tally(self) -> Tally:
        """What has happened."""
        found = self.checker
        return Tally(found.acknowledged, found.failed, found.delivered, found.repeated)

    def check_end(self) -> None:
        """Check what is left at the end."""
        self.checker.check_end()

    # ---- what members ask --------------------------------------------------------

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of the cluster."""
        return self._stage.bootstrap_servers

    def dial_of(self, client: str) -> Dial:
        """Return how a client connects to the cluster."""
        return self._stage.dial_of(client)

    def say(self, what: str) -> None:
        """Write a line to the trace."""
        self._stage.say(what)

    def vanished(self, client: str) -> None:
        """A process has crashed: nothing it sent later reaches the cluster."""
        self._stage.vanished(client)

    def in_background(self, step: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run something that outlives the process."""
        assert self._tasks is not None
        self._tasks.start_soon(step)

    def wrote(self, wire: Wire, frame: bytes) -> None:
        """Requests are not looked at."""

    def received(self, wire: Wire, frame: bytes) -> None:
        """Answers are not looked at."""

    # ---- its life --------------------------------------------------------------------

    async def work(self, faults: Sequence[Fault]) -> None:
        """Let everything happen, and wait until every record is done."""
        writer = Writer(self)
        async with anyio.create_task_group() as self._tasks:
            self._tasks.start_soon(self._write, writer)
            for _ in range(self.scenario.members):
                self._enter()
            self._tasks.start_soon(self._watch)
            self._injector = FaultInjector(
                self._broker,
                self._stage.network,
                self._members,
                self._enter,
                lambda _: None,
                self.say,
            )
            await self._injector.run(faults, self.scenario.seconds)
            writer.stop()
            self.is_late = True
            self.say("-- all faults have ended, and nothing is written")
            await self._settle()
            self._is_settled = True
            for member in self._members:
                member.leave(None)

    def _enter(self) -> ShareMember:
        assert self._tasks is not None
        member = ShareMember(self, len(self._members))
        self._members.append(member)
        self._tasks.start_soon(member.live, name=member.name)
        return member

    async def _write(self, writer: Writer) -> None:
        await writer.run()
        self._is_written = True

    async def _watch(self) -> None:
        while not self._is_settled:
            await anyio.sleep(LOOK_EVERY)
            self.checker.look()

    async def _settle(self) -> None:
        """Wait until every record is done."""
        for law, left in (
            ("never written", lambda: not self._is_written),
            ("never done", self._truth.undone),
        ):
            deadline = self._stage.now() + SETTLE_SECONDS
            while there := left():
                if self._stage.now() > deadline:
                    self._stage.break_law(law, f"by partition: {there}")
                await anyio.sleep(LOOK_EVERY)
