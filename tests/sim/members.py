"""Members of the group: processes that run a consumer, crash and start again."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping
from itertools import count
from typing import Final, Protocol

import anyio

from kafkaio._config import ConsumerConfig
from kafkaio._consumer import Consumer
from kafkaio._net.transport import Dial
from kafkaio._runtime.broadcast import Broadcast
from kafkaio._runtime.observer import Observer
from kafkaio.errors import BrokerError, ClosedError, KafkaError, UsageError
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.types import TopicPartition
from tests.sim.checker import Checker, Session
from tests.sim.scenario import Scenario
from tests.sim.styles import STYLES, Style
from tests.sim.user import (
    EXPECTED,
    GROUP,
    TOPIC,
    User,
    background,
    numbers,
)

__all__ = [
    "HEARTBEAT_SECONDS",
    "OF_PROTOCOL",
    "SESSION_SECONDS",
    "Environment",
    "Member",
]

HEARTBEAT_SECONDS: Final = 5.0
SESSION_SECONDS: Final = 20.0
#: Options of all consumers, which a scenario may override: long polls and rare commits,
#: because idle requests are what a simulated hour costs most.
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
#: Options by group protocol; with KIP-848 the broker sets session and heartbeat.
OF_PROTOCOL: Final[Mapping[str, Mapping[str, object]]] = {
    "classic": _CLASSIC,
    "eager": {**_CLASSIC, "partition_assignment_strategy": ["range"]},
    "consumer": {"group_protocol": "consumer"},
}
#: Seconds from the end of a consumer by an error to the start of the next one.
_PAUSE: Final = 1.0
#: Seconds for which closing a consumer waits at least for users who keep partitions.
_CLOSING: Final = 20.0


class Environment(Protocol):
    """What members need of the run they are part of."""

    scenario: Scenario
    checker: Checker

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of the cluster."""

    def dial_of(self, client: str) -> Dial:
        """Return how a client connects to the cluster."""

    def say(self, what: str) -> None:
        """Write a line to the trace."""

    def is_member(self, member_id: str) -> bool:
        """Whether the group coordinator has a member of this id."""

    def vanished(self, client: str) -> None:
        """A process has crashed: nothing it sent later reaches the cluster."""


class _CommitFailures(Observer):
    """Reports failures of commits before a revocation or a close."""

    def __init__(self, member: Member) -> None:
        self._member = member

    def retrying(
        self, what: str, attempt: int, delay: float, cause: BaseException
    ) -> None:
        del attempt, delay
        if what in {"commit before revoke", "auto-commit"}:
            self._member.commit_failed(what, cause)


class Member:
    """One member of the group: a process that runs one consumer after the other.

    Args:
        environment: the run that it is part of.
        number: its number.
    """

    def __init__(self, environment: Environment, number: int) -> None:
        self.name = f"member-{number}"
        self.client_id = self.name
        self.session: Session | None = None
        #: Seeks to do: the partition, and the number of records to go back by.
        self.seeks_due: list[tuple[int, int]] = []
        self._environment = environment
        self._checker = environment.checker
        self._rng = environment.scenario.rng(self.name)
        self._lives = count()
        # All ids by which the group has assigned or revoked partitions.
        self._ids: set[str] = set()
        self._stall = 0.0
        self._wanted = True
        self._pause = 0.0
        self._leaving = anyio.Event()
        self._is_closing = False
        self._is_static = self._rng.random() < environment.scenario.static
        self._consumes: Consumer | None = None
        self._commits = False
        self._process: anyio.CancelScope | None = None
        self._reading: anyio.CancelScope | None = None
        self._go_on = Broadcast()
        # Notified when topics are subscribed again, or the member leaves.
        self._resubscribed = Broadcast()

    # ---- what happens to it ------------------------------------------------------

    def crash(self, seconds: float) -> None:
        """End the process at once, and start another after a while."""
        if self._process is not None:
            self._environment.vanished(self.client_id)
        self.cancel(seconds)

    def cancel(self, seconds: float) -> None:
        """Cancel the task, and start another after a while."""
        if self._process is not None:
            if self.session is not None:
                self._checker.commit_failed_for(self.session)  # closes without a commit
                self.session.patience = 0.0
            self._pause = seconds
            self._process.cancel()

    def leave(self, seconds: float | None) -> None:
        """Close the consumer normally, and start another after a while.

        Args:
            seconds: how long after; None for never.
        """
        if seconds is None:
            self._wanted = False
            self._go_on.notify_all()
        else:
            self._pause = seconds
        self._leaving.set()
        self._resubscribed.notify_all()
        if self._reading is not None:
            self._reading.cancel()

    def stall(self, seconds: float) -> None:
        """Make the user's code take that long for the next record."""
        self._stall = seconds

    def subscribe(self, topics: Collection[str]) -> None:
        """Change the subscription; no topics means to unsubscribe."""
        if self._consumes is None or self._is_closing or self.session is None:
            return
        self._environment.say(f"{self.client_id} wants {topics}")
        if topics:
            self._consumes.subscribe(topics)
            self._resubscribed.notify_all()
            self.session.patience = float("inf")
        else:
            self.session.patience = 0.0  # its user keeps nothing
            if not self._commits:
                self._checker.commit_failed_for(self.session)
            self._consumes.unsubscribe()

    def end_stall(self) -> None:
        """End a stall of the user's code."""
        self._stall = 0.0
        self._go_on.notify_all()

    def commit_failed(self, what: str, cause: BaseException) -> None:
        """A commit failed; before a revocation or a close, records then come again."""
        self._environment.say(f"{self.client_id}: {what} failed: {cause!r}"[:200])
        if self.session is not None and (self._is_closing or "revoke" in what):
            self._checker.commit_failed_for(self.session)

    # ---- its life ----------------------------------------------------------------

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
        name = self._rng.choice(self._environment.scenario.styles)
        style, auto_commit = STYLES[name], STYLES[name].auto_commit
        if auto_commit is None:
            auto_commit = self._rng.random() < 1 / 2
        config = self._settings(auto_commit=auto_commit)
        consumer = self._consumer(config)
        session = self.session = Session(
            self.client_id,
            lambda: consumer.group_metadata.member_id,
            lambda: numbers(consumer.to_be_revoked),
        )
        self.seeks_due.clear()
        self._checker.began(session)
        self._environment.say(
            f"{self.client_id} starts ({name}, commits: {auto_commit})"
        )
        in_order = False
        try:
            await consumer.start()
            self._consumes, self._commits = consumer, auto_commit
            await self._read(style, self._user(consumer, session, config))
            self._reading = self._consumes = None
            self._is_closing = True
            await consumer.close()
            in_order = True
        except KafkaError as error:
            self._raised(error)
        finally:
            self._reading = self._consumes = None
            session.patience = 0.0  # nothing is kept any more
            try:
                if not in_order:
                    # A cancelled task may still close, unless it is cancelled again.
                    with anyio.CancelScope(shield=self._rng.random() < 1 / 2):
                        await consumer.close(1.0)
            finally:
                self._is_closing = False
                self._checker.over(session, in_order=in_order)
                self._check_empty(consumer)
                self._environment.say(f"{self.client_id} ended, in order: {in_order}")

    async def _read(self, style: Style, user: User) -> None:
        """Read until the member leaves."""

        async def close() -> None:
            await self._leaving.wait()
            user.session.patience = anyio.current_time() + _CLOSING
            self._is_closing = True
            await user.consumer.close()

        if style.ends_by_closing:
            async with background() as start:
                start(close)
                await self._read_on(style, user)
            return
        with anyio.CancelScope() as self._reading:
            if not self._leaving.is_set():
                await self._read_on(style, user)
        user.session.patience = 0.0  # no work is in progress

    async def _read_on(self, style: Style, user: User) -> None:
        """Read, and go on reading after a time without a subscription."""
        while True:
            try:
                await style.read(user)
            except ClosedError:
                raise
            except UsageError:
                if self.session is None or self.session.patience > 0:
                    raise  # it is subscribed
            else:
                return
            while user.session.patience <= 0 and not self._leaving.is_set():
                await self._resubscribed.wait()
            if self._leaving.is_set():
                return

    def _settings(self, *, auto_commit: bool) -> ConsumerConfig:
        scenario = self._environment.scenario
        options = {
            **_OPTIONS,
            **OF_PROTOCOL[scenario.group_protocol],
            "client_id": self.client_id,
            "group_id": GROUP,
            "group_instance_id": self.name if self._is_static else None,
            "enable_auto_commit": auto_commit,
            **scenario.consumer_options,
        }
        return ConsumerConfig.of(self._environment.bootstrap_servers, options)

    def _consumer(self, config: ConsumerConfig) -> Consumer:
        return Consumer.from_config(
            config,
            observer=_CommitFailures(self),
            dial=self._environment.dial_of(self.client_id),
            topics=[TOPIC],
            on_assigned=self._told(self._checker.assigned, "assigned"),
            on_revoked=self._told(self._checker.revoked, "revoked"),
            on_lost=self._told(self._checker.lost, "lost"),
        )

    def _user(
        self, consumer: Consumer, session: Session, config: ConsumerConfig
    ) -> User:
        return User(
            consumer=consumer,
            session=session,
            checker=self._checker,
            rng=self._rng,
            auto_commit=config.enable_auto_commit,
            patience=config.max_poll_interval_ms / 1000 - 2 * HEARTBEAT_SECONDS,
            work=self._work,
            seek_back=lambda: self._seek_back(consumer, session),
            say=lambda what: self._environment.say(f"{session.name} {what}"),
        )

    def _told(
        self, enter: Callable[[Session, Collection[int]], None], word: str
    ) -> Callable[[Collection[TopicPartition]], None]:
        def tell(partitions: Collection[TopicPartition]) -> None:
            mine = numbers(partitions)
            self._environment.say(f"{self.client_id} {word} {mine}")
            assert self.session is not None
            self._ids |= {self.session.member_id()} - {""}
            enter(self.session, mine)

        return tell

    def _raised(self, error: KafkaError) -> None:
        self._environment.say(f"{self.client_id} raised {error!r}"[:300])
        is_known = isinstance(error, EXPECTED) or error.retriable
        if not (is_known or self._is_taken(error)):
            self._checker.break_law("raised", f"{self.client_id}: {error!r}")

    def _is_taken(self, error: KafkaError) -> bool:
        """Whether the group has another member as this static member."""
        if not (self._is_static and isinstance(error, BrokerError)):
            return False
        if error.code == ErrorCode.FENCED_INSTANCE_ID:
            # Kafka writes a classic group to the log when its leader has assigned. If
            # the coordinator moves before that, the new one knows a static member that
            # joined again by its previous id, and fences the id that it has now.
            assert self.session is not None
            is_new = self.session.joins_as not in self._ids
            return is_new and any(map(self._environment.is_member, self._ids))
        # Left by a crash, until its session times out.
        return error.code == ErrorCode.UNRELEASED_INSTANCE_ID

    def _check_empty(self, consumer: Consumer) -> None:
        left = consumer.statistics()
        if left.buffered_bytes or left.fetches_in_flight or left.assigned:
            self._checker.break_law("left behind", f"{self.client_id}: {left}")

    # ---- what its user does ------------------------------------------------------

    async def _work(self) -> None:
        if self._stall:
            seconds, self._stall = self._stall, 0.0
            self._environment.say(f"{self.client_id} stalls for {seconds:.1f} s")
            with anyio.move_on_after(seconds):
                await self._go_on.wait()
        elif self._rng.random() < 0.1:
            await anyio.sleep(_work_time(self._rng))

    def _seek_back(self, consumer: Consumer, session: Session) -> None:
        while self.seeks_due:
            self._seek(consumer, session, *self.seeks_due.pop())

    def _seek(
        self, consumer: Consumer, session: Session, partition: int, back: int
    ) -> None:
        tp = TopicPartition(TOPIC, partition)
        held = session.held.get(partition)
        if held is None or held.expected < 0 or tp in consumer.to_be_revoked:
            return
        offset = max(0, held.expected - back)
        self._environment.say(
            f"{self.client_id} seeks {offset} of partition {partition}"
        )
        consumer.seek(tp, offset)
        self._checker.seeked(session, partition, offset)


def _work_time(rng: random.Random) -> float:
    """Return seconds: mostly milliseconds, sometimes whole seconds."""
    return float(0.01 * 300 ** rng.random())
