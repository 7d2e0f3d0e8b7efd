"""The ports of the consumer for `Consumer.run` and `Consumer.partitions`."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Protocol, TypeVar

from kafkaio._consumer.reading.divider import DividerPort
from kafkaio._consumer.reading.exclusive import UserCode
from kafkaio._consumer.reading.reader import Reader
from kafkaio._machines.offsets import Commit
from kafkaio._machines.transaction import TransactionOutcome
from kafkaio._runtime.observer import Observer
from kafkaio._runtime.supervisor import Child
from kafkaio._runtime.time_slice import TimeSlice
from kafkaio._topic import Topic
from kafkaio._transactional import TransactionalConsumer
from kafkaio.types import Header, TopicPartition


class DividingPort(Protocol):
    """A consumer whose records are divided.

    Attributes:
        reader: has the records.
        time_slice: decides when a task that never waits gives the event loop a turn.
    """

    reader: Reader
    time_slice: TimeSlice

    def dividing(self, divider: DividerPort) -> AbstractContextManager[None]:
        """Divide the records within the block; no other task may read."""
        ...

    def release(self, tp: TopicPartition) -> None:
        """Release a partition that was requested back, unless the user holds it."""

    def check(self, *, while_closing: bool = False) -> None:
        """Raise unless the consumer is running, or also closing."""

    def check_wanted(self) -> None:
        """Raise if the consumer has no topics and no partitions to read."""

    async def wait_for_news(self, until: float | None) -> bool:
        """Wait for an event of the consumer; return whether the time is over."""
        ...


class RunPort(DividingPort, Protocol):
    """The consumer of `Consumer.run`.

    Attributes:
        user_code: the tasks that run the user's code.
    """

    user_code: UserCode

    @property
    def observer(self) -> Observer:
        """Observes retries."""
        ...

    def notify(self) -> None:
        """Wake the tasks that are in `wait_for_news`."""


class LanesPort(DividingPort, Protocol):
    """The consumer of `Consumer.partitions`."""

    @property
    def may_read(self) -> bool:
        """Whether the consumer is running and has something to read."""
        ...

    def spawn(self, child: Child, name: str) -> None:
        """Run a task until the consumer closes."""

    def awaits_commit(self, tp: TopicPartition) -> bool:
        """Whether finished records of a partition wait for the user to commit them."""
        ...

    async def commit(self, commit: Commit, within: float) -> None:
        """Commit offsets, in the order of the calls."""


class EndingTransactionPort(Protocol):
    """A transaction, as far as a loop of transactions needs it."""

    @property
    def is_ending(self) -> bool:
        """Whether the transaction should take no more records, and end soon."""
        ...

    @property
    def outcome(self) -> Awaitable[TransactionOutcome]:
        """How the transaction ended, once that is known."""
        ...


class OpenTransactionPort(EndingTransactionPort, Protocol):
    """A transaction, as far as `Consumer.run` needs it: `kafkaio.Transaction`."""

    async def send(
        self,
        topic: Topic[bytes | None, bytes | None],
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Sequence[Header] = (),
    ) -> object:
        """Write a record."""
        ...


TransactionT_co = TypeVar("TransactionT_co", bound=OpenTransactionPort, covariant=True)


class TransactionMakerPort(Protocol[TransactionT_co]):
    """Makes transactions: `kafkaio.Producer` with a ``transactional_id``."""

    def transaction(
        self, consumer: TransactionalConsumer, /
    ) -> AbstractAsyncContextManager[TransactionT_co]:
        """Return a transaction that works on a consumer's records."""
        ...
