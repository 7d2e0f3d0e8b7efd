"""Consumers of a group that live, work, crash and come back."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping
from itertools import count
from typing import Final, Protocol

import anyio

from kafkaio._net.transport import Dial
from kafkaio._runtime.observer import Observer
from kafkaio.client.broadcast import Broadcast
from kafkaio.client.client import Client
from kafkaio.config import ConsumerConfig
from kafkaio.consumer import Consumer
from kafkaio.errors import BrokerError, ClosedError, KafkaError, UsageError
from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.types import TopicPartition
from tests.sim.book import Book, Session
from tests.sim.desk import (
    EXPECTED,
    GROUP,
    TOPIC,
    Desk,
    beside,
    numbers,
)
from tests.sim.scenario import Scenario
from tests.sim.styles import STYLES, Style

__all__ = ["HEARTBEAT_SECONDS", "SESSION_SECONDS", "Member", "Surroundings"]

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
_CLASSIC: Final[Mapping[str, object]] = {
    "group_protocol": "classic",
    "heartbeat_interval_ms": round(HEARTBEAT_SECONDS * 1000),
    "session_timeout_ms": round(SESSION_SECONDS * 1000),
}
#: The same, by group protocol; members of the newer one are told by the broker.
_OF_PROTOCOL: Final[Mapping[str, Mapping[str, object]]] = {
    "classic": _CLASSIC,
    "eager": {**_CLASSIC, "partition_assignment_strategy": ["range"]},
    "consumer": {"group_protocol": "consumer"},
}
#: Seconds between the end of a consumer by an error and the next one.
_PAUSE: Final = 1.0
#: Seconds for which closing a consumer surely waits for whoever keeps partitions.
_CLOSING: Final = 20.0


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

    def is_member(self, member_id: str) -> bool:
        """Whether the group's coordinator takes somebody for a member."""

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
        # By which ids the group has ever given or taken partitions.
        self._ids: set[str] = set()
        self._stall = 0.0
        self._wanted = True
        self._pause = 0.0
        self._leaving = anyio.Event()
        self._is_closing = False
        self._is_static = self._dice.random() < around.scenario.static
        self._consumes: Consumer | None = None
        self._commits = False
        self._process: anyio.CancelScope | None = None
        self._reading: anyio.CancelScope | None = None
        self._go_on = Broadcast()
        # Happens when something is subscribed to again, or the member leaves.
        self._resubscribed = Broadcast()

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
                self.session.patience = 0.0
            self._pause = seconds
            self._process.cancel()

    def leave(self, seconds: float | None) -> None:
        """Close the consumer in good order, and start another after a while.

        Args:
            seconds: for how long; None for good.
        """
        if seconds is None:
            self._wanted = False
            self._go_on.tell()
        else:
            self._pause = seconds
        self._leaving.set()
        self._resubscribed.tell()
        if self._reading is not None:
            self._reading.cancel()

    def stall(self, seconds: float) -> None:
        """Let the user's code take that long over the next record."""
        self._stall = seconds

    def subscribe(self, topics: Collection[str]) -> None:
        """Let the user want other topics; nothing, where there are none."""
        if self._consumes is None or self._is_closing or self.session is None:
            return
        self._around.say(f"{self.client_id} wants {topics}")
        if topics:
            self._consumes.subscribe(topics)
            self._resubscribed.tell()
            self.session.patience = float("inf")
        else:
            self.session.patience = 0.0  # its user gives it all up
            if not self._commits:
                self._book.disordered(self.session)
            self._consumes.unsubscribe()

    def end_stall(self) -> None:
        """Let the user's code work as usual again."""
        self._stall = 0.0
        self._go_on.tell()

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
        name = self._dice.choice(self._around.scenario.styles)
        style, auto_commit = STYLES[name], STYLES[name].auto_commit
        if auto_commit is None:
            auto_commit = self._dice.random() < 1 / 2
        config = self._settings(auto_commit=auto_commit)
        consumer = self._consumer(config)
        session = self.session = Session(
            self.client_id,
            lambda: consumer.group_metadata.member_id,
            lambda: numbers(consumer.to_be_revoked),
        )
        self.to_seek.clear()
        self._book.began(session)
        self._around.say(f"{self.client_id} starts ({name}, commits: {auto_commit})")
        in_order = False
        try:
            await consumer.start()
            self._consumes, self._commits = consumer, auto_commit
            await self._read(style, self._desk(consumer, session, config))
            self._reading = self._consumes = None
            self._is_closing = True
            await consumer.close()
            in_order = True
        except KafkaError as error:
            self._raised(error)
        finally:
            self._reading = self._consumes = None
            session.patience = 0.0  # nobody keeps anything any more
            try:
                if not in_order:
                    # A task that is cancelled once may take its leave all the same.
                    with anyio.CancelScope(shield=self._dice.random() < 1 / 2):
                        await consumer.close(1.0)
            finally:
                self._is_closing = False
                self._book.over(session, in_order=in_order)
                self._check_empty(consumer)
                self._around.say(f"{self.client_id} ended, in order: {in_order}")

    async def _read(self, style: Style, desk: Desk) -> None:
        """Read until it is time to leave."""

        async def close() -> None:
            await self._leaving.wait()
            desk.session.patience = anyio.current_time() + _CLOSING
            self._is_closing = True
            await desk.consumer.close()

        if style.ends_by_closing:
            async with beside() as start:
                start(close)
                await self._read_on(style, desk)
            return
        with anyio.CancelScope() as self._reading:
            if not self._leaving.is_set():
                await self._read_on(style, desk)
        desk.session.patience = 0.0  # nobody works any more

    async def _read_on(self, style: Style, desk: Desk) -> None:
        """Read, also after a time in which nothing was subscribed to."""
        while True:
            try:
                await style.read(desk)
            except ClosedError:
                raise
            except UsageError:
                if self.session is None or self.session.patience > 0:
                    raise  # it wants something
            else:
                return
            while desk.session.patience <= 0 and not self._leaving.is_set():
                await self._resubscribed.wait()
            if self._leaving.is_set():
                return

    def _settings(self, *, auto_commit: bool) -> ConsumerConfig:
        scenario = self._around.scenario
        options = {
            **_OPTIONS,
            **_OF_PROTOCOL[scenario.group_protocol],
            "client_id": self.client_id,
            "group_id": GROUP,
            "group_instance_id": self.name if self._is_static else None,
            "enable_auto_commit": auto_commit,
            **scenario.consumer_options,
        }
        return ConsumerConfig.of(self._around.bootstrap_servers, options)

    def _consumer(self, config: ConsumerConfig) -> Consumer:
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

    def _desk(
        self, consumer: Consumer, session: Session, config: ConsumerConfig
    ) -> Desk:
        return Desk(
            consumer=consumer,
            session=session,
            book=self._book,
            dice=self._dice,
            auto_commit=config.enable_auto_commit,
            patience=config.max_poll_interval_ms / 1000 - 2 * HEARTBEAT_SECONDS,
            work=self._work,
            seek_back=lambda: self._seek_back(consumer, session),
            say=lambda what: self._around.say(f"{session.name} {what}"),
        )

    def _told(
        self, enter: Callable[[Session, Collection[int]], None], word: str
    ) -> Callable[[Collection[TopicPartition]], None]:
        def tell(partitions: Collection[TopicPartition]) -> None:
            mine = numbers(partitions)
            self._around.say(f"{self.client_id} {word} {mine}")
            assert self.session is not None
            self._ids |= {self.session.member_id()} - {""}
            enter(self.session, mine)

        return tell

    def _raised(self, error: KafkaError) -> None:
        self._around.say(f"{self.client_id} raised {error!r}"[:300])
        is_known = isinstance(error, EXPECTED) or error.retriable
        if not (is_known or self._is_taken(error)):
            self._book.break_law("raised", f"{self.client_id}: {error!r}")

    def _is_taken(self, error: KafkaError) -> bool:
        """Whether the group believes somebody else to be this static member."""
        if not (self._is_static and isinstance(error, BrokerError)):
            return False
        if error.code == ErrorCode.FENCED_INSTANCE_ID:
            # Kafka writes a classic group down when its leader has shared out. If the
            # coordinator moves before, the new one knows a member that joined anew,
            # or its next life, by the id from before, and refuses the one it has.
            assert self.session is not None
            is_new = self.session.joins_as not in self._ids
            return is_new and any(map(self._around.is_member, self._ids))
        # As it was left by a crash, until its session ends.
        return error.code == ErrorCode.UNRELEASED_INSTANCE_ID

    def _check_empty(self, consumer: Consumer) -> None:
        left = consumer.statistics()
        if left.buffered_bytes or left.fetches_in_flight or left.assigned:
            self._book.break_law("left behind", f"{self.client_id}: {left}")

    # ---- what its user does ------------------------------------------------------

    async def _work(self) -> None:
        if self._stall:
            seconds, self._stall = self._stall, 0.0
            self._around.say(f"{self.client_id} stalls for {seconds:.1f} s")
            with anyio.move_on_after(seconds):
                await self._go_on.wait()
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
