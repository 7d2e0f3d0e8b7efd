"""Sends records and counts the results, for ``produce``, ``copy`` and ``replay``."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import anyio

from kafkaio._cli.text.document import INTEGER, TEXT, Document
from kafkaio._cli.text.exits import Exit, short
from kafkaio._cli.text.output import error_row
from kafkaio.errors import KafkaError, RecordTooLarge

if TYPE_CHECKING:
    from kafkaio._cli.shell.session import CommandSession
    from kafkaio._producer import Delivery, Producer

#: The output of ``copy`` and ``replay``.
SENT: Final = Document(
    records=INTEGER, failed=INTEGER, **{"from": TEXT.hidden, "to": TEXT.hidden}
)
#: Pending deliveries at which the finished ones are counted.
_CHECK_EVERY: Final = 1000
#: The most failures that are printed. A cluster that is down fails all records alike.
_SHOWN: Final = 10
#: Seconds to wait for acknowledgements when the command is interrupted.
FLUSH_SECONDS: Final = 10.0


@dataclass
class SendSummary:
    """The results of records.

    Attributes:
        records: acknowledged records.
        failed: records that failed.
        partitions: acknowledged records by topic and partition.
        errors: the first failures, each with the number of the record.
    """

    records: int = 0
    failed: int = 0
    partitions: dict[tuple[str, int], int] = field(default_factory=dict)
    errors: list[tuple[int, Exception]] = field(default_factory=list)


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
            self._failed(number, error)
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

    @asynccontextmanager
    async def to_the_end(
        self,
        session: CommandSession,
        what: str,
        finish: Callable[[], Awaitable[None]] | None = None,
    ) -> AsyncIterator[None]:
        """Wait for all records after a block, and report the failed ones.

        If the block is interrupted or fails, it waits for `FLUSH_SECONDS` at most.

        Args:
            session: the command.
            what: the participle for messages: ``sent``.
            finish: called before the wait, to send the records that are left.
        """
        try:
            yield
            await self._finish(finish)
        except BaseException:
            # Ctrl+C arrives as a cancellation, which is over when this runs: the await
            # below is possible. The first error is the one that is raised.
            with suppress(KafkaError), anyio.move_on_after(FLUSH_SECONDS):
                await self._finish(finish)
            raise
        finally:
            self.report(session, what)

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
                self._failed(number, error)
                continue
            found = delivery.result()
            place = found.topic, found.partition
            sent.records += 1
            sent.partitions[place] = sent.partitions.get(place, 0) + 1

    def _failed(self, number: int, error: Exception) -> None:
        self.sent.failed += 1
        if len(self.sent.errors) < _SHOWN:
            self.sent.errors.append((number, error))

    @property
    def unsettled(self) -> int:
        """The number of records that are neither acknowledged nor failed."""
        return len(self._pending)

    def report(self, session: CommandSession, what: str) -> None:
        """Print the failures, and set the exit code for them."""
        sent = self.sent
        for number, error in sent.errors:
            session.note(f"record {number}: {short(error)}")
        if sent.failed > len(sent.errors):
            session.note(f"and {sent.failed - len(sent.errors)} more")
        if sent.failed or self.unsettled:
            lost = f"{sent.failed} failed, {self.unsettled} are not acknowledged"
            session.note(f"{sent.records} records {what}, {lost}")
            session.exit_with(Exit.PARTIAL if sent.records else Exit.FAILED)


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
