"""What the parts of a share consumer need of each other.

The *engine* (`core`, `member`, `leaders`) keeps the membership, the sessions and the
ledger, and brings fetched data. The *reader* keeps fetched data until it is handed out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from kafkaio._named_tuple import NamedTuple

if TYPE_CHECKING:
    from kafkaio._records.batch import Acquired
    from kafkaio._runtime.observer import Observer
    from kafkaio.errors import KafkaError
    from kafkaio.protocol._message import Buffer
    from kafkaio.types import TopicPartition


class FetchedPart(NamedTuple):
    """What one answer brought of one partition.

    Attributes:
        tp: the partition.
        node_id: the leader.
        acquired: what was acquired, sorted; only these offsets may be handed out.
        data: whole record batches, perhaps more than was acquired.
    """

    tp: TopicPartition
    node_id: int
    acquired: tuple[Acquired, ...]
    data: Buffer


class ReaderPort(Protocol):
    """The reader, as the engine uses it.

    Attributes:
        on_handed: called with a partition and a number of records that were taken of
            it; None without an observer.
    """

    on_handed: Callable[[TopicPartition, int], None] | None

    @property
    def wants(self) -> bool:
        """Whether records are to be fetched: somebody reads, or is about to.

        False while nobody iterates, polls or runs: an idle consumer locks nothing.
        """
        ...

    @property
    def buffered(self) -> int:
        """How many acquired records are fetched and not handed out."""
        ...

    @property
    def buffered_bytes(self) -> int:
        """Their size."""
        ...

    def received(self, part: FetchedPart) -> None:
        """Take fetched data. Offsets in it that are lost later are not handed out.

        If nobody reads any more, it is released at once.
        """

    def failed(self, error: Exception) -> None:
        """Raise an error from the next read, once; wake who waits."""

    def interrupt(self) -> None:
        """Wake who waits, and hand out nothing more: the consumer closes or failed.

        What is buffered is released. `EnginePort.check` says what to raise.
        """


class HandlersPort(Protocol):
    """Work on records in tasks of the consumer, which closing waits for: `run`."""

    @property
    def most_records(self) -> int:
        """How many records may be locked while it goes on; ``max_in_flight`` at most.

        Locks run, so that more than handlers can begin soon would be of no use.
        """
        ...

    @property
    def max_processing(self) -> float | None:
        """How long locks are renewed in place of ``max_processing_ms``, in seconds."""
        ...

    def lost(self, acquired: Acquired) -> None:
        """Note that locks of a range are gone: work on its records is of no use."""

    def begin_draining(self) -> None:
        """Begin no more work."""

    async def drain(self) -> None:
        """Return when all work has ended."""

    def stop(self) -> None:
        """Cancel the work that goes on: the time for it is over."""


class WorkPort(Protocol):
    """The engine, as ``run`` uses it."""

    @property
    def observer(self) -> Observer:
        """Observes what happens."""
        ...

    def check(self) -> None:
        """Raise if the consumer is closed, or a background task has crashed."""

    async def wait_for_news(self, until: float | None) -> None:
        """Wait for `notify`, or until that time. One task at a time."""

    def notify(self) -> None:
        """Wake who waits for news: data came, an error came, the consumer closes."""

    def begin_work(self, handlers: HandlersPort) -> None:
        """Have closing wait for these, up to its time limit, until `end_work`."""

    def bound_work(self, handlers: HandlersPort) -> None:
        """Note that ``most_records`` of these has changed."""

    def end_work(self, handlers: HandlersPort) -> None:
        """Note that these have ended."""


class EnginePort(Protocol):
    """The engine, as the reader, `run` and the public class use it."""

    @property
    def observer(self) -> Observer:
        """Observes what happens."""
        ...

    def wake(self) -> None:
        """Check what can be fetched or sent: there is room, or somebody reads.

        To be called when `ReaderPort.wants` changes, and when the buffer gets empty.
        """

    def check(self) -> None:
        """Raise if the consumer is closed, or a background task has crashed."""

    async def wait_for_news(self, until: float | None) -> None:
        """Wait for `notify`, or until that time. One task at a time."""

    def notify(self) -> None:
        """Wake who waits for news: data came, an error came, the consumer closes."""

    def acked(self, acquired: Acquired, offset: int) -> Awaitable[None]:
        """Return what is done when the leader has answered the acknowledgement.

        Raises when awaited:
            AcknowledgeFailed: it did not count, or that is unknown; `LockLost` if the
                lock is gone.
        """
        ...

    async def flush(self, timeout: float) -> None:
        """Send every decision, and wait for the answers.

        Raises:
            AcknowledgeFailed: some did not count, now or since the last flush or
                commit; of several, the first.
            RequestTimeout: time is up.
        """

    async def commit(
        self, timeout: float
    ) -> Mapping[TopicPartition, KafkaError | None]:
        """The same, with the result of each partition that had decisions."""
        ...

    def begin_work(self, handlers: HandlersPort) -> None:
        """Have closing wait for these, up to its time limit, until `end_work`."""

    def end_work(self, handlers: HandlersPort) -> None:
        """Note that these have ended."""
