"""Members that copy a topic in transactions: processes with a consumer and a producer.

A member has one transactional id, and runs one life after another. A life may be
*frozen*: nothing that it sends arrives, and nothing is told to it. Meanwhile the next
life of the same id runs, and the frozen one is thawed later: a zombie.
"""

from __future__ import annotations

import random
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Mapping,
    Sequence,
)
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any, Final, Protocol

import anyio
from anyio.abc import TaskGroup

from kafkaio import exactly_once
from kafkaio._config import ConsumerConfig, ProducerConfig
from kafkaio._consumer import Consumer
from kafkaio._net.transport import Dial
from kafkaio._producer import Producer
from kafkaio._producer.transaction import Transaction
from kafkaio._runtime.broadcast import Broadcast
from kafkaio.errors import (
    BrokerError,
    ClosedError,
    Fenced,
    KafkaError,
    KafkaTimeout,
    MembershipError,
    NetworkError,
    OutcomeUnknown,
    TransactionAborted,
)
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.types import Record, TopicPartition
from tests.sim.checker import Session
from tests.sim.copy_laws import Copied, CopyChecker, Life, value_of
from tests.sim.members import HEARTBEAT_SECONDS, OF_PROTOCOL
from tests.sim.scenario import COPIES, Scenario
from tests.sim.user import GROUP, TOPIC, background, numbers

__all__ = ["TIMEOUT", "Copier", "CopyEnvironment"]

#: ``transaction_timeout_ms``, in seconds.
TIMEOUT: Final = 20.0
_PRODUCER: Final[Mapping[str, object]] = {
    "transaction_timeout_ms": round(TIMEOUT * 1000),
    "max_block_ms": 20_000,
    "delivery_timeout_ms": 20_000,
    "request_timeout_ms": 8_000,
}
_CONSUMER: Final[Mapping[str, object]] = {
    "auto_offset_reset": "earliest",
    "enable_auto_commit": False,
}
_EXPECTED: Final = (KafkaTimeout, MembershipError, NetworkError)
#: What ends a transaction, and not the member that copies by hand.
_ABORTS: Final = (TransactionAborted, MembershipError)
_PAUSE: Final = 1.0
#: The share of transactions by hand that the user aborts.
_REGRETS: Final = 0.1
#: The share of lives by hand that work on several tasks at a time, and so on.
_SOMETIMES: Final = 0.3
#: Seconds of a transaction after which the group has given the member up.
_LONG: Final = 50.0


class CopyEnvironment(Protocol):
    """What members need of the run they are part of."""

    @property
    def scenario(self) -> Scenario:
        """The scenario."""

    @property
    def checker(self) -> CopyChecker:
        """Told of every transaction."""

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of the cluster."""

    def dial_of(self, client: str) -> Dial:
        """Return how a client connects to the cluster."""

    def say(self, what: str) -> None:
        """Write a line to the trace."""

    def vanished(self, client: str) -> None:
        """A process has crashed: nothing it sent later reaches the cluster."""

    def in_background(self, step: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run something that outlives the process."""

    def age(self, transactional_id: str) -> None:
        """Bring the epoch of an id near the last one, if that is possible now."""

    def is_open(self, client: str) -> bool:
        """Whether the coordinator has a transaction of a client open."""

    def may_be_fenced(self, client: str) -> bool:
        """Whether a client may be fenced without another one of its id."""


class _RegretError(Exception):
    """Raised by a user to abort a transaction."""


class _Process:
    """One life of a member.

    Args:
        environment: the run that it is part of.
        life: the life, to the checker.
        rng: draws what the user decides.
        work: does a piece of work, which may take long.
    """

    def __init__(
        self,
        environment: CopyEnvironment,
        life: Life,
        rng: random.Random,
        work: Callable[[], Awaitable[None]],
    ) -> None:
        self.life = life
        self._environment = environment
        self._checker = environment.checker
        self._rng = rng
        # What else goes on in the process.
        self._others = environment.scenario.rng(f"{life.name} besides")
        self._work = work
        self._entry: Copied | None = None
        self._tx: Transaction | None = None
        self.leaving = anyio.Event()
        self.over = anyio.Event()
        self._reading: anyio.CancelScope | None = None
        self.scope = anyio.CancelScope()

    def leave(self) -> None:
        """End in order."""
        self.leaving.set()
        if self._reading is not None:
            self._reading.cancel()

    # ---- its life ----------------------------------------------------------------

    async def run(self) -> None:
        """Copy until told to leave, or until an error ends it."""
        say, life = self._environment.say, self.life
        consumer, producer = self._consumer(), self._producer()
        name = self._rng.choice(self._environment.scenario.styles)
        say(f"{life.name} starts ({name})")
        life.to_be_revoked = lambda: numbers(consumer.to_be_revoked)
        in_order = False
        with self.scope:
            try:
                await producer.start()
                self._checker.initialised(life)
                await consumer.start()
                await self._copy(name, consumer, producer)
                await consumer.close()
                life.is_closing = True
                await producer.close()
                in_order = True
            except KafkaError as error:
                self._raised(error)
            finally:
                life.is_closing = True
                life.to_be_revoked = tuple
                if not in_order:
                    await self._close(consumer, producer)
        life.to_be_revoked = tuple
        life.is_over = True
        say(f"{life.name} ended, in order: {in_order}")
        self.over.set()

    async def _close(self, consumer: Consumer, producer: Producer) -> None:
        """Close both; a cancelled task may do so, unless it is cancelled again."""
        try:
            with anyio.CancelScope(shield=self._rng.random() < 1 / 2):
                await consumer.close(1.0)
        finally:
            with anyio.CancelScope(shield=self._rng.random() < 1 / 2):
                await producer.close(1.0)

    async def _copy(self, name: str, consumer: Consumer, producer: Producer) -> None:
        copy = {"exactly once": self._loop, "run": self._run, "by hand": self._by_hand}
        if self._rng.random() < 1 / 2:

            async def close() -> None:
                await self.leaving.wait()
                await consumer.close()

            async with background() as start:
                start(close)
                await copy[name](consumer, producer)
                self.leaving.set()
            return
        with anyio.CancelScope() as self._reading:
            if not self.leaving.is_set():
                await copy[name](consumer, producer)

    def _raised(self, error: KafkaError) -> None:
        self._environment.say(f"{self.life.name} raised {error!r}"[:300])
        code = error.code if isinstance(error, BrokerError) else None
        # A successor that begins with the first epoch of another producer id.
        is_unmapped = code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
        # A successor that speaks the older protocol, as the level was lowered: its
        # epoch is the next one, which the coordinator takes for a repetition of the
        # abort (as Kafka 4.3 does), after another verdict.
        is_outlived = code == ErrorCode.INVALID_TXN_STATE and self.life.is_fenced_out
        if isinstance(error, Fenced) or is_unmapped or is_outlived:
            is_known = self.life.is_fenced_out or self._environment.may_be_fenced(
                self.life.name
            )
        else:
            is_known = isinstance(error, (*_EXPECTED, ClosedError)) or error.retriable
        if not is_known:
            self._checker.break_law("raised", f"{self.life.name}: {error!r}")

    # ---- its clients ---------------------------------------------------------------

    def _consumer(self) -> Consumer:
        scenario = self._environment.scenario
        options = {
            **_CONSUMER,
            **OF_PROTOCOL[scenario.group_protocol],
            "client_id": self.life.name,
            "group_id": GROUP,
            **scenario.consumer_options,
        }
        config = ConsumerConfig.of(self._environment.bootstrap_servers, options)
        self.life.patience = config.max_poll_interval_ms / 1000 + HEARTBEAT_SECONDS
        return Consumer.from_config(
            config,
            dial=self._environment.dial_of(self.life.name),
            topics=[TOPIC],
            on_revoked=self._revoked,
            on_lost=self._lost,
        )

    def _producer(self) -> Producer:
        scenario = self._environment.scenario
        options = {
            **_PRODUCER,
            "client_id": self.life.name,
            "transactional_id": self.life.transactional_id,
            **scenario.producer_options,
        }
        config = ProducerConfig.of(self._environment.bootstrap_servers, options)
        return Producer.from_config(
            config, dial=self._environment.dial_of(self.life.name)
        )

    def _revoked(self, partitions: Collection[TopicPartition]) -> None:
        mine = numbers(partitions)
        self._environment.say(f"{self.life.name} revoked {mine}")
        # Who is cancelled, or closes the consumer, waits for an abort a second only.
        is_closing = (
            self.scope.cancel_called or self.leaving.is_set() or self.life.is_closing
        )
        is_open = not is_closing and (
            self._is_working() or self._environment.is_open(self.life.name)
        )
        self._checker.revoked(self.life, mine, is_open=is_open)

    def _is_working(self) -> bool:
        # Also before anything of it was sent.
        return self._tx is not None and self._tx._run.outcome is None

    def _lost(self, partitions: Collection[TopicPartition]) -> None:
        mine = numbers(partitions)
        self._environment.say(f"{self.life.name} lost {mine}")
        self._checker.lost(self.life, mine)

    # ---- what its user does --------------------------------------------------------

    def _enter(self, tx: Transaction) -> Copied:
        if self._tx is not tx or self._entry is None:
            self._tx = tx
            entry = self._entry = self._checker.began(self.life)
            self._environment.in_background(
                lambda: self._checker.watch(entry, tx.outcome)
            )
        return self._entry

    async def _send(self, tx: Transaction, record: Record) -> None:
        entry = self._enter(tx)
        place, key = (record.partition, record.offset), record.key or b""
        value = value_of(key, place, entry)
        if self._rng.random() < _SOMETIMES:
            await tx.send(COPIES, value, key=key)
        else:
            _ = await tx.enqueue(COPIES, value, key=key)
        entry.values.append(value)

    async def _send_all(self, tx: Transaction, records: Sequence[Record]) -> None:
        if records:
            entry = self._enter(tx)
            entry.inputs += [(one.partition, one.offset) for one in records]
            await self._work()
        for record in records:
            await self._send(tx, record)

    async def _loop(self, consumer: Consumer, producer: Producer) -> None:
        most, wait = self._rng.choice((1, 5, 50)), self._rng.choice((0.0, 0.2, 3.0))

        others = anyio.CancelScope()

        async def occupy() -> None:
            with others, suppress(KafkaError):
                while True:
                    await anyio.sleep(self._others.uniform(5.0, 60.0))
                    await self._occupy(producer)

        async with background() as start:
            if self._others.random() < _SOMETIMES:
                start(occupy)
            try:
                await exactly_once(
                    consumer, producer, self._send_all, max_records=most, max_wait=wait
                )
            finally:
                others.cancel()

    async def _occupy(self, producer: Producer) -> None:
        """Have a transaction of another task: the loop has to wait for its turn.

        Meanwhile it does not poll, and may lose what it has polled last.
        """
        with suppress(TransactionAborted):
            async with producer.transaction():
                await anyio.sleep(self._others.choice((0.1, _LONG)))

    async def _run(self, consumer: Consumer, producer: Producer) -> None:
        async def handle(tx: Transaction, record: Record) -> None:
            self._enter(tx).inputs.append((record.partition, record.offset))
            await self._work()
            await self._send(tx, record)

        await consumer.run(
            handle,
            producer=producer,
            concurrency=self._rng.choice((1, 10)),
            ordering=self._rng.choice(("key", "partition")),
            max_records=self._rng.choice((1, 5, 50)),
            max_wait=self._rng.choice((0.0, 0.2, 3.0)),
        )

    async def _by_hand(self, consumer: Consumer, producer: Producer) -> None:
        while True:
            tx = producer.transaction(consumer)
            try:
                async with tx:
                    await self._one_by_hand(consumer, tx)
            except _ABORTS as error:
                self._environment.say(f"{self.life.name}: {error!r}"[:200])
                await anyio.sleep(self._rng.uniform(0.1, 2.0))
            except _RegretError:
                pass
            except OutcomeUnknown as error:
                self._environment.say(f"{self.life.name}: {error!r}"[:200])
                await tx.outcome

    async def _one_by_hand(self, consumer: Consumer, tx: Transaction) -> None:
        for _ in range(self._rng.randint(1, 3)):
            found = await consumer.poll(timeout=4.0, max_records=20)
            await self._send_all(tx, found.records)
            # Some programs do not ask whether to end soon.
            if tx.is_ending and self._rng.random() > _SOMETIMES:
                break
            if found.records and self._rng.random() < _SOMETIMES:
                await tx.commit_offsets(consumer)
            if found.records and self._rng.random() < _SOMETIMES:
                self._environment.in_background(partial(_commit, tx, consumer))
        if self._rng.random() < _REGRETS:
            # Commits of other tasks are on their way.
            await anyio.sleep(self._others.choice((0.0, 0.004, 0.008)))
            raise _RegretError


async def _commit(tx: Transaction, consumer: Consumer) -> None:
    """Commit offsets in another task than the one that ends the transaction."""
    with suppress(KafkaError):
        await tx.commit_offsets(consumer)


class Copier:
    """A member that copies: one process of its transactional id after the other.

    Args:
        environment: the run that it is part of.
        number: its number.
    """

    #: It has nothing to seek.
    session: Session | None = None

    def __init__(self, environment: CopyEnvironment, number: int) -> None:
        self.name = f"copier-{number}"
        self.client_id = self.name
        self.transactional_id = self.name
        self.seeks_due: list[tuple[int, int]] = []
        self._environment = environment
        self._rng = environment.scenario.rng(self.name)
        self._lives = count()
        self._stall = 0.0
        self._wanted = True
        self._is_old = False
        self._pause = 0.0
        self._processes: list[_Process] = []
        self._process: _Process | None = None
        self._replaced = anyio.Event()
        self._go_on = Broadcast()

    # ---- what happens to it ------------------------------------------------------

    def crash(self, seconds: float) -> None:
        """End the process at once, and start another after a while."""
        if self._process is not None:
            self._environment.vanished(self.client_id)
        self.cancel(seconds)

    def cancel(self, seconds: float) -> None:
        """Cancel the task, and start another after a while."""
        if self._process is not None:
            self._pause = seconds
            self._process.scope.cancel()

    def leave(self, seconds: float | None) -> None:
        """End normally, and start another after a while; None for never."""
        if seconds is None:
            self._wanted = False
            self._go_on.notify_all()
            for process in self._processes:
                process.leave()
        elif self._process is not None:
            self._pause = seconds
            self._process.leave()

    def replace(self) -> None:
        """Start the next life, while this one has not ended."""
        self._replaced.set()

    def age(self) -> None:
        """End this life, and begin the next one near the last epoch."""
        self._is_old = True
        self.cancel(0.1)

    def stall(self, seconds: float) -> None:
        """Make the user's code take that long for the next record."""
        self._stall = seconds

    def end_stall(self) -> None:
        """End a stall of the user's code."""
        self._stall = 0.0
        self._go_on.notify_all()

    def subscribe(self, topics: Collection[str]) -> None:
        """Nothing: its subscription stays."""

    # ---- its life ----------------------------------------------------------------

    async def live(self) -> None:
        """Run processes until the member leaves for ever."""
        async with anyio.create_task_group() as tasks:
            while self._wanted:
                self._pause, self._replaced = _PAUSE, anyio.Event()
                process = self._process = self._next()
                self._processes.append(process)
                tasks.start_soon(process.run, name=process.life.name)
                await self._until_over(tasks, process)
                self._process = None
                if self._wanted:
                    with anyio.move_on_after(self._pause):
                        await self._go_on.wait()

    async def _until_over(self, tasks: TaskGroup, process: _Process) -> None:
        done, replaced = anyio.Event(), self._replaced

        async def wait(event: anyio.Event) -> None:
            await event.wait()
            done.set()

        async with anyio.create_task_group() as waiting:
            waiting.start_soon(wait, process.over)
            waiting.start_soon(wait, replaced)
            await done.wait()
            waiting.cancel_scope.cancel()
        del tasks

    def _next(self) -> _Process:
        number = next(self._lives)
        self.client_id = f"{self.name}.{number}"
        if self._is_old:
            self._is_old = False
            self._environment.age(self.transactional_id)
        life = Life(self.client_id, self.transactional_id, number)
        self._environment.checker.lives.append(life)
        # A zombie draws what it does for itself.
        rng = self._environment.scenario.rng(self.client_id)
        return _Process(self._environment, life, rng, self._work)

    async def _work(self) -> None:
        if self._stall:
            seconds, self._stall = self._stall, 0.0
            self._environment.say(f"{self.client_id} stalls for {seconds:.1f} s")
            with anyio.move_on_after(seconds):
                await self._go_on.wait()
        elif self._rng.random() < 0.1:
            await anyio.sleep(0.01 * 300 ** self._rng.random())
