"""Sends records and counts the results, for ``produce``, ``copy`` and ``replay``."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from kafkaio._cli.text.document import INTEGER, TEXT, Document
from kafkaio._cli.text.exits import Exit, short
from kafkaio._cli.text.output import error_row
from kafkaio._runtime.scopes import move_on_after
from kafkaio.errors import KafkaError, RecordTooLarge

if TYPE_CHECKING:
    from kafkaio._cli.shell.session import CommandSession
    from kafkaio._consumer import Consumer
    from kafkaio._producer import Delivery, Producer, ProducerStatistics
    from kafkaio._producer.transaction import Transaction
    from kafkaio._transactional import TransactionalConsumer
    from kafkaio.types import TopicPartition

#: The output of ``copy`` and ``replay``.
SENT: Final = Document(
    records=INTEGER, failed=INTEGER, **{"from": TEXT.hidden, "to": TEXT.hidden}
)
#: Pending deliveries at which the finished ones are counted.
_CHECK_EVERY: Final = 1000
#: The most failures that are printed. A cluster that is down fails all records alike.
_SHOWN: Final = 10
#: Seconds to wait for acknowledgements when the command is interrupted.
_FLUSH_SECONDS: Final = 10.0
#: Seconds between two commits of a copy. They bound what is copied twice after a crash.
COMMIT_SECONDS: Final = 5.0
#: Seconds between two checks whether the transactions of a copy have reached the end.
CHECK_SECONDS: Final = 0.1


@dataclass
class SendSummary:
    """The results of records.

    Attributes:
        records: acknowledged records.
        failed: records that failed.
        partitions: acknowledged records by topic and partition.
        errors: the first failures, each with the number of the record.
        more: failures after these.
    """

    records: int = 0
    failed: int = 0
    partitions: dict[tuple[str, int], int] = field(default_factory=dict)
    errors: list[tuple[int, Exception]] = field(default_factory=list)
    more: int = 0

    def add_failure(self, number: int, error: Exception, count: int = 1) -> None:
        """Count records that failed; the first few errors are kept."""
        self.failed += count
        if len(self.errors) < _SHOWN:
            self.errors.append((number, error))
        else:
            self.more += 1

    def report(
        self, session: CommandSession, what: str, unsettled: int, kind: str = "record"
    ) -> None:
        """Print the failures, and set the exit code for them.

        Args:
            session: the command.
            what: the participle for messages: ``sent``.
            unsettled: the number of records that are neither acknowledged nor failed.
            kind: what the numbers of ``errors`` count.
        """
        for number, error in self.errors:
            session.note(f"{kind} {number}: {short(error)}")
        if self.more:
            session.note(f"and {self.more} more")
        if self.failed or unsettled:
            lost = f"{self.failed} failed, {unsettled} are not acknowledged"
            session.note(f"{self.records} records {what}, {lost}")
            session.exit_with(Exit.PARTIAL if self.records else Exit.FAILED)


@asynccontextmanager
async def to_the_end(
    finish: Callable[[], Awaitable[None]], report: Callable[[], None]
) -> AsyncIterator[None]:
    """Finish after a block, and report.

    If the block is interrupted or fails, it waits for ten seconds at most.
    """
    try:
        yield
        await finish()
    except BaseException:
        # Ctrl+C arrives as a cancellation, which is over when this runs: the await
        # below is possible. The first error is the one that is raised.
        with suppress(KafkaError), move_on_after(_FLUSH_SECONDS):
            await finish()
        raise
    finally:
        report()


async def commit_copied(consumer: Consumer, done: Mapping[TopicPartition, int]) -> None:
    """Commit the offsets after what was copied."""
    # A partition that was revoked meanwhile belongs to another member, which copies
    # again from the last commit.
    assigned = consumer.assignment
    await consumer.commit({tp: at for tp, at in done.items() if tp in assigned})


class RecordSender:
    """Sends records with a producer; a failed record does not stop the others.

    Args:
        producer: the producer.

    Attributes:
        sent: the results of settled records.
        number: the number of records taken in.
    """

    def __init__(self, producer: Producer) -> None:
        self.sent: SendSummary = SendSummary()
        self.number: int = 0
        self._producer = producer
        # In the order of sending, each with its number for messages.
        self._pending: deque[tuple[int, Delivery]] = deque()

    async def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        headers: list[tuple[str, bytes | None]] | tuple[tuple[str, bytes | None], ...],
        timestamp: int | None,
        partition: int | None,
    ) -> None:
        """Take a record in; waits only for buffer memory.

        A record that is too large counts as failed. Other errors are raised, because
        they concern the records after it, too.
        """
        number = self.number + 1
        try:
            delivery = await self._producer.enqueue(
                topic,
                value,
                key=key,
                headers=headers,
                timestamp=timestamp,
                partition=partition,
            )
        except RecordTooLarge as error:
            self.number = number
            self.sent.add_failure(number, error)
            return
        # Counted after the await: a cancelled call has taken no record in.
        self.number = number
        self._pending.append((number, delivery))
        if len(self._pending) >= _CHECK_EVERY:
            self._count_settled()

    async def flush(self) -> None:
        """Wait until all records are settled."""
        try:
            await self._producer.flush()
        finally:
            self._count_settled()

    def to_the_end(
        self,
        session: CommandSession,
        what: str,
        finish: Callable[[], Awaitable[None]] | None = None,
    ) -> AbstractAsyncContextManager[None]:
        """Wait for all records after a block, and report the failed ones.

        Args:
            session: the command.
            what: the participle for messages: ``sent``.
            finish: called before the wait, to send the records that are left.
        """
        return to_the_end(
            partial(self._finish, finish), partial(self.report, session, what)
        )

    async def _finish(self, finish: Callable[[], Awaitable[None]] | None) -> None:
        if finish is not None:
            await finish()
        await self.flush()

    def _count_settled(self) -> None:
        """Count settled deliveries, the oldest first."""
        pending, sent = self._pending, self.sent
        while pending and pending[0][1].is_done:
            number, delivery = pending.popleft()
            error = delivery.exception()
            if error is not None:
                self.sent.add_failure(number, error)
                continue
            found = delivery.result()
            place = found.topic, found.partition
            sent.records += 1
            sent.partitions[place] = sent.partitions.get(place, 0) + 1

    @property
    def unsettled(self) -> int:
        """The number of records that are neither acknowledged nor failed."""
        return len(self._pending)

    def report(self, session: CommandSession, what: str) -> None:
        """Print the failures, and set the exit code for them."""
        self.sent.report(session, what, self.unsettled)


def show_sent(
    session: CommandSession, sent: SendSummary, source: str, destination: str
) -> None:
    """Print the number of records sent from one topic to another."""
    found: dict[str, object] = {"records": sent.records, "failed": sent.failed}
    found |= {"from": source, "to": destination}
    document = SENT.made(failures(sent), found)
    session.out.show(document, SENT.table(found), is_row=True)


def failures(sent: SendSummary) -> list[dict[str, object]]:
    """Return the entries of failures for ``errors``."""
    return [
        {**error_row(error), "item": f"record {number}"}
        for number, error in sent.errors
    ]


class CountingProducer:
    """A producer for `exactly_once` that counts the records of its transactions.

    Args:
        producer: has a transactional id.

    Attributes:
        is_open: whether a transaction is open.
        sent: records that the open transaction has sent.
        committed: records of committed transactions.
    """

    def __init__(self, producer: Producer) -> None:
        self.is_open = False
        self.sent = 0
        self.committed = 0
        self._producer = producer

    def transaction(
        self, consumer: TransactionalConsumer, /
    ) -> AbstractAsyncContextManager[Transaction]:
        """Return a transaction, which is open from now on."""
        transaction = self._producer.transaction(consumer)
        self.is_open, self.sent = True, 0
        return self._noted(transaction)

    @asynccontextmanager
    async def _noted(
        self, transaction: AbstractAsyncContextManager[Transaction]
    ) -> AsyncIterator[Transaction]:
        # An exception leaves is_open true, and the count as it was: the records are
        # read again in another transaction.
        async with transaction as tx:
            yield tx
        self.is_open = False
        self.committed += self.sent

    def statistics(self) -> ProducerStatistics:
        """Return the statistics of the producer."""
        return self._producer.statistics()
