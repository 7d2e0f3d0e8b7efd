"""The consumer's side of a transaction, for a producer in another thread.

The consumer's core runs in the I/O thread, and the producer in the user's. Each method
crosses by one blocking turn of the I/O thread's loop, which no code of the user's can
delay; `rewind`, which waits, is awaited.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Protocol, TypeVar

from kafkaio.consumer.reading.progress import HandedOut
from kafkaio.consumer.transactions import JoinedTransaction, TransactionOffsets
from kafkaio.types import GroupMetadata, OffsetAndMetadata, TopicPartition

__all__ = ["JoinedAcross", "TransactionOffsetsAcross"]

T = TypeVar("T")


class ThreadPort(Protocol):
    """Runs functions in the I/O thread."""

    def ask(self, work: Callable[[], T]) -> T:
        """Call a function there, and block until it has returned."""
        ...

    def call(self, work: Callable[[], Awaitable[T]]) -> Coroutine[Any, Any, T]:
        """Call a coroutine function there, and wait for it."""
        ...


class TransactionOffsetsAcross:
    """`TransactionOffsets` of a consumer with an I/O thread.

    Args:
        inside: the offsets.
        thread: where they live.
    """

    def __init__(self, inside: TransactionOffsets, thread: ThreadPort) -> None:
        self._inside = inside
        self._thread = thread
        #: Offsets of the next records to read.
        self.offsets: Mapping[TopicPartition, OffsetAndMetadata] = inside.offsets
        #: Whether the consumer is subscribed, so that brokers must check its place.
        self.is_fenced: bool = inside.is_fenced

    def identity(self) -> GroupMetadata:
        """Return the group and the member's place in it, as they are now."""
        return self._thread.ask(self._inside.identity)

    def check(self) -> None:
        """Check that the offsets may still be committed.

        Raises:
            PartitionLost: an assignment that they belong to has ended.
        """
        self._thread.ask(self._inside.check)

    def refused(self, code: int, identity: GroupMetadata) -> bool:
        """Whether to commit again: the member has, or will get, another place.

        Args:
            code: the coordinator's error code for a request.
            identity: the identity in that request.
        """
        return self._thread.ask(partial(self._inside.refused, code, identity))

    def committed(self) -> None:
        """Note that the transaction has committed the offsets."""
        self._thread.ask(self._inside.committed)


class JoinedAcross:
    """`JoinedTransaction` of a consumer with an I/O thread.

    Args:
        inside: the transaction.
        thread: where it lives.
        mark: returns how much the user was handed by now; for the user's thread.
        settle: returns to the reader what the user has not taken; for the I/O thread.
    """

    def __init__(
        self,
        inside: JoinedTransaction,
        thread: ThreadPort,
        mark: Callable[[], HandedOut],
        settle: Callable[[], None],
    ) -> None:
        self._inside = inside
        self._thread = thread
        self._mark = mark
        self._settle = settle

    def handed_out(self) -> TransactionOffsetsAcross | None:
        """Return what was handed out and is not committed; None if there is nothing.

        Raises:
            PartitionLost: an assignment of it has ended.
        """
        found = self._thread.ask(partial(self._inside.handed_out, self._mark()))
        return None if found is None else TransactionOffsetsAcross(found, self._thread)

    def end(self) -> None:
        """Let go of the partitions. May be called again."""
        self._thread.ask(self._inside.end)

    async def rewind(self) -> None:
        """Go back to the committed offsets, drop what was fetched, and let go.

        Raises:
            RequestTimeout: the committed offsets are not known yet. They are looked up
                further, and nothing is read until they are known.
        """

        async def work() -> None:
            self._settle()
            await self._inside.rewind()

        await self._thread.call(work)
