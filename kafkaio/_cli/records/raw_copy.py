"""``kafkaio copy --raw``: copies record batches as they were fetched."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import IO, TYPE_CHECKING, Final, Self

from kafkaio._cli.records.sending import (
    CHECK_SECONDS,
    COMMIT_SECONDS,
    CountingProducer,
    SendSummary,
    commit_copied,
    to_the_end,
)
from kafkaio._named_tuple import NamedTuple
from kafkaio._runtime.clock import now
from kafkaio._runtime.scopes import move_on_after
from kafkaio.errors import RecordTooLarge

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from kafkaio._cli.records.ranges import BoundedReader, RawRuns
    from kafkaio._cli.shell.progress import ProgressBar
    from kafkaio._cli.shell.session import CommandSession
    from kafkaio._consumer import Consumer
    from kafkaio._producer import Producer
    from kafkaio._producer.raw import RawDelivery
    from kafkaio._producer.transaction import Transaction
    from kafkaio._records.raw import RawBatch
    from kafkaio.types import RecordMetadata, TopicPartition

#: Bytes of batches of a partition that are taken in at once. It takes half a
#: millisecond, and of several partitions each has batches for the next request.
_RUN_BYTES: Final = 131_072
#: Pending deliveries at which the finished ones are counted.
_CHECK_EVERY: Final = 25
#: Part of the producer's buffer that is filled. Where it is full, each batch waits for
#: the one before it; here many have left when the copy goes on.
_FILLED: Final = 0.5
#: Seconds for which a transaction takes batches.
_TAKING: Final = 0.2


class OffsetRun(NamedTuple):
    """Consecutive offsets that became consecutive offsets.

    Attributes:
        source: the first offset in the source.
        target: the first offset in the destination.
        records: how many they are.
    """

    source: int
    target: int
    records: int


def offset_runs(
    source: Sequence[int], written: Sequence[RecordMetadata]
) -> Iterator[OffsetRun]:
    """Yield the runs of offsets that went together.

    Args:
        source: offsets, ascending.
        written: where the record of each of them is now, ascending.
    """
    if not source:
        return
    count, first, last = len(source), source[0], written[0].offset
    if source[-1] - first == written[-1].offset - last == count - 1:
        # A batch that was written as it was: the ends say it all.
        yield OffsetRun(first, last, count)
        return
    begun = OffsetRun(first, last, 0)
    for offset, place in zip(source, written, strict=True):
        size = begun.records
        if (offset, place.offset) == (begun.source + size, begun.target + size):
            begun = begun._replace(records=size + 1)
        else:
            yield begun
            begun = OffsetRun(offset, place.offset, 1)
    yield begun


class OffsetMap:
    """Writes which offsets of the source became which of the destination.

    Args:
        path: the file; None to write nothing.
        destination: name of the destination.
    """

    def __init__(self, path: Path | None, destination: str) -> None:
        self._path = path
        self._destination = destination
        self._file: IO[str] | None = None

    def __enter__(self) -> Self:
        # Appended to, so that a copy which goes on with its group adds to the map.
        if self._path is not None:
            self._file = self._path.open("a", encoding="utf-8")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()

    def add(
        self,
        source: TopicPartition,
        offsets: Sequence[int],
        written: Sequence[RecordMetadata],
    ) -> None:
        """Write a line for each run of records of one partition."""
        if self._file is None:
            return
        for run in offset_runs(offsets, written):
            line = {
                "from": source.topic,
                "to": self._destination,
                "partition": source.partition,
                "offset": run.source,
                "to_offset": run.target,
                "records": run.records,
            }
            self._file.write(json.dumps(line) + "\n")

    def flush(self) -> None:
        """Give the lines to the operating system."""
        if self._file is not None:
            self._file.flush()


class RawCopier:
    """Copies the batches of a consumer into the same partitions of another topic.

    Args:
        consumer: has the batches.
        producer: writes them.
        destination: the topic to write to.
        offsets: gets the offsets that were acknowledged.
        progress: shows the number of records.
    """

    def __init__(
        self,
        consumer: Consumer,
        producer: Producer,
        destination: str,
        offsets: OffsetMap,
        progress: ProgressBar,
    ) -> None:
        self._consumer = consumer
        self._producer = producer
        self._destination = destination
        self._offsets = offsets
        self._progress = progress
        self._sent = SendSummary()
        # In the order of sending, each with the partition that its batches were read
        # from, and with their size.
        self._pending: deque[tuple[TopicPartition, RawDelivery, int]] = deque()
        self._pending_bytes = 0
        self._most_bytes = producer.config.buffer_memory * _FILLED
        # So many are pending when the finished ones are counted next.
        self._check_at = _CHECK_EVERY
        # The offset after the last batch taken of each partition.
        self._done: dict[TopicPartition, int] = {}

    async def copy(
        self, session: CommandSession, reader: BoundedReader, *, is_group: bool
    ) -> SendSummary:
        """Copy, and commit the offsets of acknowledged batches; return the result.

        The first failure ends the copy, so that the group's offset stays before the
        failed batch.
        """
        due = now() + COMMIT_SECONDS
        settle = partial(self._settle, commits=is_group)
        async with to_the_end(settle, partial(self._report, session)):
            runs = reader.raw_batches()
            while run := await runs.take(_RUN_BYTES):
                await self._send(run)
                if now() >= due:
                    await settle()
                    due = now() + COMMIT_SECONDS
                if self._sent.failed:
                    break
        return self._sent

    async def _send(self, run: Sequence[RawBatch]) -> None:
        first, last = run[0], run[-1]
        try:
            delivery = await self._producer.enqueue_raw(
                run, self._destination, first.partition
            )
        except RecordTooLarge as error:
            if len(run) == 1:
                self._sent.add_failure(first.first_offset, error, first.count)
                return
            # Nothing was taken in: each by itself, up to the one that is meant.
            for batch in run:
                if not self._sent.failed:
                    await self._send([batch])
            return
        tp, size = first.topic_partition, sum(batch.size_bytes for batch in run)
        self._pending.append((tp, delivery, size))
        self._pending_bytes += size
        self._done[tp] = last.next_offset
        if self._pending_bytes > self._most_bytes:
            while self._pending_bytes > self._most_bytes / 2:
                await self._count_next()
        elif len(self._pending) >= self._check_at:
            while self._pending and self._pending[0][1].is_done:
                await self._count_next()
        else:
            return
        self._check_at = len(self._pending) + _CHECK_EVERY

    async def _settle(self, *, commits: bool) -> None:
        """Wait for the copies, and commit the offsets if no copy failed."""
        # The order matters: an offset that is committed before its copy is acknowledged
        # loses the batch in a crash.
        await self._producer.flush()
        while self._pending:
            await self._count_next()
        self._offsets.flush()
        if not commits or self._sent.failed or not self._done:
            return
        await commit_copied(self._consumer, self._done)
        self._done.clear()

    async def _count_next(self) -> None:
        """Wait for the oldest delivery, and count its records."""
        from kafkaio._producer.bulk import DeliveriesFailed

        tp, delivery, size = self._pending[0]
        offsets = delivery.offsets
        try:
            written = await delivery
        except DeliveriesFailed as error:
            first = next(iter(error.exceptions))
            self._sent.add_failure(offsets[0], first, len(error.failures))
            offsets = [offsets[at] for at in error.delivered]
            written = [*error.delivered.values()]
        # Only now: if the wait is cancelled, the delivery is not settled yet.
        self._pending.popleft()
        self._pending_bytes -= size
        count = len(written)
        self._sent.records += count
        self._progress.add(count)
        self._offsets.add(tp, offsets, written)

    def _report(self, session: CommandSession) -> None:
        unsettled = sum(len(delivery) for _, delivery, _ in self._pending)
        self._sent.report(session, "copied", unsettled, "batch at offset")

    async def exactly_once(self, reader: BoundedReader) -> SendSummary:
        """Copy in transactions, which commit the group's offsets, too."""
        from kafkaio._exactly_once import in_transactions

        producer = CountingProducer(self._producer)

        async def copy_all(tx: Transaction, batches: list[RawBatch]) -> None:
            sent = [
                (tp, await tx.enqueue_raw([*run], self._destination, tp.partition))
                for tp, run in groupby(batches, attrgetter("topic_partition"))
            ]
            producer.sent = await self._note_written(sent)

        taker = _RawTaker(self._consumer, reader.raw_batches(), self._most_bytes)
        await in_transactions(
            self._consumer, producer, taker, copy_all, max_wait=_TAKING
        )
        return SendSummary(producer.committed)

    async def _note_written(
        self, sent: Sequence[tuple[TopicPartition, RawDelivery]]
    ) -> int:
        """Write the offsets of a transaction's batches; return the number of records.

        That comes before the commit. If the transaction is aborted, or the process
        ends, the batches are copied again, and then the last line counts; after the
        commit, lines could be missing.
        """
        from kafkaio._producer.bulk import DeliveriesFailed

        count = 0
        for tp, delivery in sent:
            try:
                written = await delivery
            except DeliveriesFailed:
                break  # the commit raises it, and decides whether to try again
            self._offsets.add(tp, delivery.offsets, written)
            self._progress.add(len(written))
            count += len(written)
        self._offsets.flush()
        return count


class _RawTaker:
    """Takes raw batches for transactions; see `kafkaio._exactly_once.TakerPort`.

    Args:
        consumer: the consumer.
        runs: its batches.
        most_bytes: a transaction with so many takes no more.
    """

    def __init__(self, consumer: Consumer, runs: RawRuns, most_bytes: float) -> None:
        self._consumer = consumer
        self._runs = runs
        self._most_bytes = most_bytes
        # The offset after the last batch that was taken of each partition.
        self._taken: dict[TopicPartition, int] = {}

    async def first(self) -> list[RawBatch] | None:
        """Wait for a batch; None if everything was read and committed."""
        while True:
            if run := await self._take(self._most_bytes):
                return run
            if await self._is_committed():
                return None
            # A transaction was aborted, and the consumer is on its way back.
            await asyncio.sleep(CHECK_SECONDS)

    async def more(
        self,
        taken: list[RawBatch],
        timeout: float,
    ) -> list[RawBatch] | None:
        """Take more batches; None if there is none, or enough of them."""
        left = self._most_bytes - sum(batch.size_bytes for batch in taken)
        if left <= 0:
            return None
        # A cancelled step takes no batch, so none is lost here.
        with move_on_after(timeout):
            return await self._take(left) or None
        return []

    def place(self, item: RawBatch) -> tuple[TopicPartition, int]:
        """Return the partition of a batch, and the offset after it."""
        return item.topic_partition, item.next_offset

    async def _take(self, left: float) -> list[RawBatch]:
        run = await self._runs.take(max(min(int(left), _RUN_BYTES), 1))
        if run:
            self._taken[run[0].topic_partition] = run[-1].next_offset
        return run

    async def _is_committed(self) -> bool:
        """Whether what was taken of the assigned partitions is committed."""
        open_ones = self._consumer.assignment & self._taken.keys()
        committed = await self._consumer.committed(open_ones)
        for tp in open_ones:
            found = committed[tp]
            if found is not None and found.offset >= self._taken[tp]:
                del self._taken[tp]
        return self._consumer.assignment.isdisjoint(self._taken)
