"""What became of acknowledgements and locks: futures, counts, and reports.

The ledger calls this for ranges, never for single records. A future is made only where
somebody awaits ``record.acked``, and `flush` and `commit` compare bytes: what was
decided when they were called with what has an answer now.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from typing import Any, Final

from kafkaio._machines.share.ledger import AckRange
from kafkaio._records.batch import (
    ACCEPT,
    DONE,
    FAILED,
    GAP,
    LOST,
    REJECT,
    RELEASE,
    STATE,
    TAKEN,
    Acquired,
)
from kafkaio._runtime.observer import AcknowledgedPart, Observer
from kafkaio.errors import AcknowledgeFailed, KafkaError, LockLost, RequestTimeout
from kafkaio.types import TopicPartition

_DECISIONS: Final = (ACCEPT, RELEASE, REJECT, GAP)
#: For `bytes.translate`: 1 for what is decided and has no answer, 0 for all else.
_PENDING: Final = bytes(
    each in _DECISIONS or (each & TAKEN > 0 and each & ~TAKEN in _DECISIONS)
    for each in range(256)
)
#: Kafka's number of a gap in acknowledgements.
_GAP_KIND: Final = 0


class Acknowledgements:
    """Listens to the ledger: settles what is awaited, counts, reports.

    Args:
        group_id: the group, for reports.
        observer: gets the reports.
        on_notify: called with a leader to which there is something to send.

    Attributes:
        acquired, redelivered: offsets that were locked for this consumer, and those of
            them that were delivered before.
        accepted, released, rejected: decisions that leaders have confirmed.
        failed: decisions that did not count, or may not have.
        lost: offsets whose lock was gone before a decision.
        on_lost: called with the range, as long as there are handlers.
        on_range: called with a range whose locks were lost or renewed; None if nobody
            keeps a copy of it.
        renewed: offsets whose lock was renewed, each time.
    """

    def __init__(
        self, group_id: str, observer: Observer, on_notify: Callable[[int], None]
    ) -> None:
        self.acquired: int = 0
        self.redelivered: int = 0
        self.accepted: int = 0
        self.released: int = 0
        self.rejected: int = 0
        self.failed_count: int = 0
        self.lost_count: int = 0
        self.renewed_count: int = 0
        self._group_id = group_id
        self._observer = observer
        self._on_notify = on_notify
        self.on_lost: Callable[[Acquired], None] | None = None
        self.on_range: Callable[[Acquired], None] | None = None
        # The futures of each range that somebody awaits, by offset.
        self._awaited: dict[Acquired, dict[int, list[asyncio.Future[None]]]] = {}
        self._flushes: dict[_Flush, None] = {}
        # The first failure of each partition since the last flush or commit.
        self._failures: dict[TopicPartition, AcknowledgeFailed] = {}
        # What the answer that is being processed has confirmed and renewed.
        self._confirmed: dict[TopicPartition, list[int]] = {}
        self._renewed: dict[TopicPartition, int] = {}
        # Why nothing will be answered any more; None while it may be.
        self._end: Callable[[], KafkaError] | None = None

    # ---- the ledger ------------------------------------------------------------------

    def notify(self, node_id: int) -> None:
        """See `LedgerListenerPort`."""
        self._on_notify(node_id)

    def confirmed(self, acquired: Acquired, ranges: Sequence[AckRange]) -> None:
        """See `LedgerListenerPort`."""
        tp = TopicPartition(acquired.topic, acquired.partition)
        counts = self._confirmed.setdefault(tp, [0, 0, 0, 0])
        for run in ranges:
            counts[run.kind] += run.last - run.first + 1
        self._settle(acquired, None)

    def failed(self, acquired: Acquired, error: AcknowledgeFailed) -> None:
        """See `LedgerListenerPort`."""
        self.failed_count += error.last_offset - error.first_offset + 1
        self._failures.setdefault(error.topic_partition, error)
        for flush in self._flushes:
            flush.failed(acquired, error)
        self._settle(acquired, error)
        self._observer.acknowledgement_failed(
            self._group_id,
            error.topic_partition,
            error.first_offset,
            error.last_offset,
            error,
        )

    def lost(self, acquired: Acquired, error: LockLost) -> None:
        """See `LedgerListenerPort`."""
        self.lost_count += error.last_offset - error.first_offset + 1
        self._settle(acquired, error)
        if self.on_range is not None:
            self.on_range(acquired)
        if self.on_lost is not None:
            self.on_lost(acquired)
        self._observer.lock_lost(
            self._group_id,
            error.topic_partition,
            error.first_offset,
            error.last_offset,
            error,
        )

    def renewed(self, acquired: Acquired, first: int, last: int) -> None:
        """See `LedgerListenerPort`."""
        tp = TopicPartition(acquired.topic, acquired.partition)
        self._renewed[tp] = self._renewed.get(tp, 0) + last - first + 1
        if self.on_range is not None:
            self.on_range(acquired)

    def report(self, node_id: int, seconds: float) -> None:
        """Report what an answer has confirmed and renewed, after it was processed."""
        confirmed, self._confirmed = self._confirmed, {}
        renewed, self._renewed = self._renewed, {}
        parts = dict[TopicPartition, AcknowledgedPart]()
        for tp, counts in confirmed.items():
            part = AcknowledgedPart(
                accepted=counts[ACCEPT],
                released=counts[RELEASE],
                rejected=counts[REJECT],
                gaps=counts[_GAP_KIND],
            )
            parts[tp] = part
            self.accepted += part.accepted
            self.released += part.released
            self.rejected += part.rejected
        if parts:
            self._observer.records_acknowledged(self._group_id, node_id, seconds, parts)
        for tp, count in renewed.items():
            self.renewed_count += count
            self._observer.locks_renewed(self._group_id, node_id, tp, count)

    # ---- one record ------------------------------------------------------------------

    def acked(self, acquired: Acquired, offset: int) -> Awaitable[None]:
        """Return what is done when the leader has answered; see `EnginePort`."""
        return _Acked(self, acquired, offset)

    def future_of(self, acquired: Acquired, offset: int) -> asyncio.Future[None]:
        """Return a future for the answer to the decision about one offset."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if not _settled(future, acquired, offset, None):
            if self._end is not None:
                future.set_exception(self._end())
            else:
                of_range = self._awaited.setdefault(acquired, {})
                of_range.setdefault(offset, []).append(future)
        return future

    def _settle(self, acquired: Acquired, error: AcknowledgeFailed | None) -> None:
        for flush in [*self._flushes]:
            flush.settle(acquired)
        awaited = self._awaited.get(acquired)
        if awaited is None:
            return
        for offset, futures in [*awaited.items()]:
            is_named = error and error.first_offset <= offset <= error.last_offset
            its = error if is_named else None
            futures[:] = [f for f in futures if not _settled(f, acquired, offset, its)]
            if not futures:
                del awaited[offset]
        if not awaited:
            del self._awaited[acquired]

    # ---- all of them -----------------------------------------------------------------

    @property
    def is_awaited(self) -> bool:
        """Whether somebody waits for answers, so that acknowledgements do not linger.

        A call that waits for a record without a decision counts, too: the decision has
        to be made first, and there are few such calls.
        """
        return bool(self._flushes or self._awaited)

    async def flush(self, live: Iterable[Acquired], timeout: float) -> None:
        """Wait for the answers to all decisions so far; see `EnginePort.flush`."""
        results = await self._answers(live, timeout)
        for error in results.values():
            if error is not None:
                raise error

    async def commit(
        self, live: Iterable[Acquired], timeout: float
    ) -> dict[TopicPartition, KafkaError | None]:
        """The same, with the results by partition."""
        return await self._answers(live, timeout)

    async def _answers(
        self, live: Iterable[Acquired], timeout: float
    ) -> dict[TopicPartition, KafkaError | None]:
        # What fails from now on is in the flush, too: each failure is raised once by
        # the calls that waited for it, and by the next one if none did.
        flush = _Flush(live)
        if flush.is_waiting and self._end is not None:
            raise self._end()
        self._flushes[flush] = None
        try:
            await flush.wait(timeout)
        finally:
            del self._flushes[flush]
        results: dict[TopicPartition, KafkaError | None] = dict(flush.results)
        before, self._failures = self._failures, {}
        results.update(before)
        for tp, count in flush.unanswered().items():
            if results.get(tp) is None:
                results[tp] = RequestTimeout(
                    f"{count} acknowledgements of {tp.topic}-{tp.partition} were not "
                    f"answered within {timeout:g} s; they may count nevertheless"
                )
        return results

    def end(self, why: Callable[[], KafkaError]) -> None:
        """Fail everything that is awaited, now and later: no answer will come."""
        self._end = why
        awaited, self._awaited = self._awaited, {}
        for of_range in awaited.values():
            for futures in of_range.values():
                for future in futures:
                    if not future.done():
                        future.set_exception(why())
        for flush in self._flushes:
            flush.end(why())


class _Acked:
    """What ``record.acked`` returns; the future is made when it is awaited."""

    __slots__ = ("_acks", "_acquired", "_offset")

    def __init__(self, acks: Acknowledgements, acquired: Acquired, offset: int) -> None:
        self._acks = acks
        self._acquired = acquired
        self._offset = offset

    def __await__(self) -> Generator[Any, None, None]:
        return self._acks.future_of(self._acquired, self._offset).__await__()


class _Flush:
    """Waits until what was decided when it was made has an answer.

    Attributes:
        results: by partition that had decisions: the first failure, or None.
    """

    def __init__(self, live: Iterable[Acquired]) -> None:
        self.results: dict[TopicPartition, KafkaError | None] = {}
        # By range: a byte of 1 for each offset that is decided and has no answer, as
        # one number.
        self._pending = dict[Acquired, int]()
        for acquired in live:
            if pending := _pending(acquired):
                self._pending[acquired] = pending
                self.results[TopicPartition(acquired.topic, acquired.partition)] = None
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if not self._pending:
            self._done.set_result(None)

    @property
    def is_waiting(self) -> bool:
        """Whether something has no answer yet."""
        return not self._done.done()

    async def wait(self, timeout: float) -> None:
        """Wait until all is answered, or the time is over."""
        if not self._done.done():
            # Raises nothing when the time is over, and leaves the future as it is.
            await asyncio.wait([self._done], timeout=timeout)
        if self._done.done():
            self._done.result()

    def settle(self, acquired: Acquired) -> None:
        """Note that something became of a range."""
        before = self._pending.get(acquired)
        if before is None:
            return
        if left := before & _pending(acquired):
            self._pending[acquired] = left
            return
        del self._pending[acquired]
        if not self._pending and not self._done.done():
            self._done.set_result(None)

    def failed(self, acquired: Acquired, error: AcknowledgeFailed) -> None:
        """Note a failure, before `settle`."""
        tp = error.topic_partition
        if acquired in self._pending and self.results[tp] is None:
            self.results[tp] = error

    def unanswered(self) -> dict[TopicPartition, int]:
        """Return how many decisions of each partition have no answer."""
        found = dict[TopicPartition, int]()
        for acquired, left in self._pending.items():
            tp = TopicPartition(acquired.topic, acquired.partition)
            found[tp] = found.get(tp, 0) + left.bit_count()
        return found

    def end(self, error: KafkaError) -> None:
        """Fail it: no answer will come."""
        if not self._done.done():
            self._done.set_exception(error)


def _pending(acquired: Acquired) -> int:
    return int.from_bytes(acquired.states.translate(_PENDING), "little")


def _settled(
    future: asyncio.Future[None],
    acquired: Acquired,
    offset: int,
    error: AcknowledgeFailed | None,
) -> bool:
    """Settle a future if the offset has its answer; return whether it is done."""
    if future.done():
        return True
    state = acquired.states[offset - acquired.first]
    if state & DONE:
        future.set_result(None)
    elif state in {LOST, FAILED}:
        future.set_exception(error or _error_of(acquired, offset, state & STATE))
    else:
        return False
    return True


def _error_of(acquired: Acquired, offset: int, state: int) -> AcknowledgeFailed:
    tp = TopicPartition(acquired.topic, acquired.partition)
    kind: type[AcknowledgeFailed] = LockLost if state == LOST else AcknowledgeFailed
    why = acquired.lost_because or "the leader did not confirm it"
    return kind(
        f"the acknowledgement of {tp.topic}-{tp.partition} at offset {offset} did not "
        f"count: {why}",
        topic_partition=tp,
        first_offset=offset,
        last_offset=offset,
    )
