"""Consumers of a group that live, work, crash and come back."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping
from itertools import count
from typing import Final, Protocol

import anyio

from kafkaio._net.transport import Dial
from kafkaio._runtime.observer import Observer
from kafkaio._runtime.wakeup import Wakeup
from kafkaio.client.client import Client
from kafkaio.config import ConsumerConfig
from kafkaio.consumer import Batch, Consumer
from kafkaio.errors import KafkaError, KafkaTimeout, MembershipError, NetworkError
from kafkaio.testing.simulation.book import Book, Session
from kafkaio.testing.simulation.scenario import Scenario
from kafkaio.types import Record, TopicPartition

__all__ = [
    "GROUP",
    "HEARTBEAT_SECONDS",
    "SESSION_SECONDS",
    "TOPIC",
    "Member",
    "Surroundings",
]

TOPIC: Final = "orders"
GROUP: Final = "billing"
HEARTBEAT_SECONDS: Final = 5.0
SESSION_SECONDS: Final = 20.0
#: What the simulation runs consumers with, unless a scenario says otherwise: long
#: polls and rare commits, or an idle hour would take many times as long.
_OPTIONS: Final = {
    "auto_offset_reset": "earliest",
    "fetch_max_wait_ms": 25_000,
    "max_poll_interval_ms": 60_000,
    "auto_commit_interval_ms": 10_000,
}
#: The same, by group protocol; members of the newer one are told by the broker.
_OF_PROTOCOL: Final[Mapping[str, Mapping[str, object]]] = {
    "classic": {
        "heartbeat_interval_ms": round(HEARTBEAT_SECONDS * 1000),
        "session_timeout_ms": round(SESSION_SECONDS * 1000),
    },
    "consumer": {},
}
#: Seconds between the end of a consumer by an error and the next one.
_PAUSE: Final = 1.0
#: What the outside may do to a call; anything else is a mistake of the client's.
_EXPECTED: Final = (KafkaTimeout, MembershipError, NetworkError)


class Surroundings(Protocol):
    """Where members live."""

    scenario: Scenario
    book: Book

    @property
    def bootstrap_servers(self) -> str:
        """Where clients start from."""

    def dial_of(self, client: str) -> Dial:
        """The way to the cluster."""

    def say(self, what: str) -> None:
        """Note what happened."""

    def vanished(self, client: str) -> None:
        """A process is gone: nothing of it reaches the cluster any more."""


class _Ear(Observer):
    """Hears which commits failed that had to come before an end."""

    def __init__(self, member: Member) -> None:
        self._member = member

    def retrying(
        self, what: str, attempt: int, delay: float, cause: BaseException
    ) -> None:
        del attempt, delay
        if what in {"commit before revoke", "auto-commit"}:
            self._member.commit_failed(what, cause)


class Member:
    """One member of the group: a process that runs a consumer, again and again.

    Args:
        around: where it lives.
        number: which member it is.
    """

    def __init__(self, around: Surroundings, number: int) -> None:
        self.name = f"member-{number}"
        self.client_id = self.name
        self.session: Session | None = None
        #: Records that the user is to go back by, and in which partition.
        self.to_seek: list[tuple[int, int]] = []
        self._around = around
        self._book = around.book
        self._dice = around.scenario.dice(self.name)
        self._lives = count()
        self._stall = 0.0
        self._wanted = True
        self._pause = 0.0
        self._is_leaving = False
        self._is_closing = False
        self._process: anyio.CancelScope | None = None
        self._reading: anyio.CancelScope | None = None
        self._go_on = Wakeup()

    # ---- what happens to it ------------------------------------------------------

    def crash(self, seconds: float) -> None:
        """End the process at once, and start another after a while."""
        if self._process is not None:
            self._around.vanished(self.client_id)
        self.cancel(seconds)

    def cancel(self, seconds: float) -> None:
        """Cancel the task, and start another after a while."""
        if self._process is not None:
            if self.session is not None:
                self._book.disordered(self.session)  # it is not to commit, but leaves
            self._pause = seconds
            self._process.cancel()

    def leave(self, seconds: float | None) -> None:
        """Close the consumer in good order, and start another after a while.

        Args:
            seconds: for how long; None for good.
        """
        if seconds is None:
            self._wanted = False
            self._go_on.notify()
        else:
            self._pause = seconds
        self._is_leaving = True
        if self._reading is not None:
            self._reading.cancel()

    def stall(self, seconds: float) -> None:
        """Let the user's code take that long over the next record."""
        self._stall = seconds

    def end_stall(self) -> None:
        """Let the user's code work as usual again."""
        self._stall = 0.0
        self._go_on.notify()

    def commit_failed(self, what: str, cause: BaseException) -> None:
        """A commit failed; before an end, that means that records come again."""
        self._around.say(f"{self.client_id}: {what} failed: {cause!r}"[:200])
        if self.session is not None and (self._is_closing or "revoke" in what):
            self._book.disordered(self.session)

    # ---- its life ----------------------------------------------------------------

    async def live(self) -> None:
        """Run consumers until the member leaves for good."""
        while self._wanted:
            self._pause = _PAUSE
            self._is_leaving = False
            with anyio.CancelScope() as process:
                self._process = process
                await self._run()
            self._process = None
            if self._wanted:
                await self._go_on.wait(anyio.current_time() + self._pause)

    async def _run(self) -> None:
        self.client_id = f"{self.name}.{next(self._lives)}"
        style = self._dice.choice([self._iterate, self._poll, self._take_batches])
        consumer = self._consumer(auto_commit=style != self._take_batches)
        session = self.session = Session(
            self.client_id, lambda: consumer.group_metadata.member_id
        )
        self._book.began(session)
        self._around.say(f"{self.client_id} starts ({style.__name__.strip('_')})")
        in_order = False
        try:
            await consumer.start()
            with anyio.CancelScope() as self._reading:
                if not self._is_leaving:
                    await style(consumer, session)
            self._reading = None
            self._is_closing = True
            await consumer.close()
            in_order = True
        except KafkaError as error:
            self._raised(error)
        finally:
            self._reading = None
            if not in_order:
                with anyio.move_on_after(5.0):
                    await consumer.close(1.0)
            self._is_closing = False
            self._book.over(session, in_order=in_order)
            self._check_empty(consumer)
            self._around.say(f"{self.client_id} ended, in order: {in_order}")

    def _consumer(self, *, auto_commit: bool) -> Consumer:
        scenario = self._around.scenario
        options = {
            **_OPTIONS,
            **_OF_PROTOCOL[scenario.group_protocol],
            "client_id": self.client_id,
            "group_id": GROUP,
            "group_protocol": scenario.group_protocol,
            "enable_auto_commit": auto_commit,
            **scenario.consumer_options,
        }
        config = ConsumerConfig.of(self._around.bootstrap_servers, options)
        client = Client.from_config(
            config, _Ear(self), dial=self._around.dial_of(self.client_id)
        )
        return Consumer.from_config(
            config,
            client=client,
            topics=[TOPIC],
            on_assigned=self._told(self._book.assigned, "has"),
            on_revoked=self._told(self._book.asked_back, "gives back"),
            on_lost=self._told(self._book.lost, "lost"),
        )

    def _told(
        self, enter: Callable[[Session, Collection[int]], None], word: str
    ) -> Callable[[Collection[TopicPartition]], None]:
        def tell(partitions: Collection[TopicPartition]) -> None:
            numbers = sorted(tp.partition for tp in partitions)
            self._around.say(f"{self.client_id} {word} {numbers}")
            assert self.session is not None
            enter(self.session, numbers)

        return tell

    def _raised(self, error: KafkaError) -> None:
        self._around.say(f"{self.client_id} raised {error!r}"[:300])
        if not isinstance(error, _EXPECTED) and not error.retriable:
            self._book.break_law("raised", f"{self.client_id}: {error!r}")

    def _check_empty(self, consumer: Consumer) -> None:
        left = consumer.statistics()
        if left.buffered_bytes or left.fetches_in_flight or left.assigned:
            self._book.break_law("left behind", f"{self.client_id}: {left}")

    # ---- what its user does ------------------------------------------------------

    async def _iterate(self, consumer: Consumer, session: Session) -> None:
        stream = aiter(consumer)
        while True:
            record = await anext(stream)
            await self._handle(session, [record])
            self._seek_back(consumer, session)

    async def _poll(self, consumer: Consumer, session: Session) -> None:
        while True:
            poll = await consumer.poll(timeout=20.0, max_records=20)
            await self._handle(session, poll.records)
            self._seek_back(consumer, session)

    async def _take_batches(self, consumer: Consumer, session: Session) -> None:
        async for batch in consumer.batches(max_records=20, max_wait=0.3):
            await self._handle(session, batch.records)
            await self._commit(consumer, session, batch)
            self._seek_back(consumer, session)

    async def _commit(self, consumer: Consumer, session: Session, batch: Batch) -> None:
        try:
            await consumer.commit(batch)
        except _EXPECTED as error:
            self._around.say(f"{self.client_id} could not commit: {error!r}"[:200])
            self._book.disordered(session)

    async def _handle(self, session: Session, records: Collection[Record]) -> None:
        for record in records:
            self._book.handed_out(
                session, record.partition, record.offset, record.value
            )
        if records:
            await self._work()
        self._book.finished(session)

    async def _work(self) -> None:
        if self._stall:
            seconds, self._stall = self._stall, 0.0
            self._around.say(f"{self.client_id} stalls for {seconds:.1f} s")
            await self._go_on.wait(anyio.current_time() + seconds)
        elif self._dice.random() < 0.1:
            await anyio.sleep(_work_time(self._dice))

    def _seek_back(self, consumer: Consumer, session: Session) -> None:
        while self.to_seek:
            self._seek(consumer, session, *self.to_seek.pop())

    def _seek(
        self, consumer: Consumer, session: Session, partition: int, back: int
    ) -> None:
        tp = TopicPartition(TOPIC, partition)
        held = session.held.get(partition)
        if held is None or held.expected < 0 or tp in consumer.to_be_revoked:
            return
        offset = max(0, held.expected - back)
        self._around.say(f"{self.client_id} seeks {offset} of partition {partition}")
        consumer.seek(tp, offset)
        self._book.sought(session, partition, offset)


def _work_time(dice: random.Random) -> float:
    """Mostly milliseconds, at times seconds."""
    return float(0.01 * 300 ** dice.random())
