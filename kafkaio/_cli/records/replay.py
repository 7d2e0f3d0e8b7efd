"""``kafkaio replay``: sends the records of a range again, at their recorded pace."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from kafkaio._cli.records.compiled import Compiled
from kafkaio._cli.records.filters import Filter, compile_filter
from kafkaio._cli.records.places import PLACE_RANGE, PlaceRange
from kafkaio._cli.records.sending import SENT, RecordSender, show_sent
from kafkaio._cli.shell.command import asynchronous, command
from kafkaio._cli.shell.progress import ProgressBar
from kafkaio._runtime.clock import now

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from kafkaio._cli.records.ranges import BoundedReader
    from kafkaio._cli.shell.session import CommandSession
    from kafkaio._consumer import Batch, Consumer
    from kafkaio.types import Record, TopicPartition

#: Records of a partition that wait until the partition is paused. It bounds the memory
#: when one partition is far ahead of another in time.
_AHEAD = 1000
#: Seconds. A record whose time comes sooner is sent at once, without a timer.
_SLACK = 0.005


class _ReplayOptions(TypedDict):
    """The options of the command."""

    offset: PlaceRange
    partition: tuple[int, ...]
    speed: float
    keep: Filter | None
    partitions: bool
    keep_timestamps: bool


@command(
    "replay",
    help="Send the records of a range again, at their recorded pace.",
    prints=SENT,
)
@click.argument("source")
@click.argument("destination", metavar="DEST")
@click.option(
    "-o",
    "--offset",
    type=PLACE_RANGE,
    default=PlaceRange(),
    help="The range, such as @A..@B.",
)
@click.option(
    "-p", "--partition", type=int, multiple=True, help="Only this; repeatable."
)
@click.option(
    "--speed",
    type=click.FloatRange(min=0),
    default=1.0,
    metavar="FACTOR",
    help="2 is twice as fast; 0 does not wait at all.",
)
@click.option(
    "--filter",
    "keep",
    type=Compiled("expression", compile_filter),
    help="Only these; see kafkaio consume.",
)
@click.option("--partitions", is_flag=True, help="Keep the number of the partition.")
@click.option("--keep-timestamps", is_flag=True, help="Do not set new timestamps.")
@asynchronous
async def replay(
    session: CommandSession,
    source: str,
    destination: str,
    **options: Unpack[_ReplayOptions],
) -> None:
    """Send records again; stops at the end as it was at the start.

    A record waits until as much time has passed since the first one as lay between
    their timestamps. The records of all partitions are sent in the order of their
    timestamps, those of one partition in the order of their offsets.
    """
    from kafkaio._cli.records.ranges import NO_GROUP, ReadPlan, begin

    settings = {**NO_GROUP, "auto_offset_reset": "earliest"}
    plan = ReadPlan([source], options["partition"], options["offset"], stops=True)
    async with (
        session.consumer(forced=settings) as consumer,
        session.producer() as producer,
    ):
        reader = await begin(consumer, plan)
        sender = RecordSender(producer)
        with ProgressBar(f"{source} to {destination}", reader.total) as progress:
            paced = _PacedSender(sender, destination, options, progress)
            merge = _TimestampMerge(consumer, reader)
            async with sender.to_the_end(session, "replayed"):
                async for record in merge.records():
                    await paced.send(record)
    show_sent(session, sender.sent, source, destination)


class _TimestampMerge:
    """Merges the records of several partitions by timestamp.

    A record waits until every partition that is not at its end has a record. Partitions
    with enough waiting records are paused.
    """

    def __init__(self, consumer: Consumer, reader: BoundedReader) -> None:
        self._consumer = consumer
        self._reader = reader
        self._waiting: dict[TopicPartition, deque[Record]] = {
            tp: deque() for tp in consumer.assignment
        }

    async def records(self) -> AsyncIterator[Record]:
        """Yield all records up to the end."""
        # None comes when nothing arrived for a while: a partition may have ended since.
        async for step in self._reader.steps(_AHEAD):
            if step is not None:
                self._add(*step)
            while self._is_complete():
                yield self._oldest()
        while any(self._waiting.values()):
            yield self._oldest()

    def _add(self, batch: Batch, end: int | None) -> None:
        tp = batch.topic_partition
        waiting = self._waiting[tp]
        waiting.extend(r for r in batch if end is None or r.offset < end)
        if len(waiting) >= _AHEAD and self._reader.is_open(tp):
            self._consumer.pause(tp)

    def _is_complete(self) -> bool:
        """Whether no record that may come is older than the waiting ones."""
        if not any(self._waiting.values()):
            return False
        return all(
            waiting or not self._reader.is_open(tp)
            for tp, waiting in self._waiting.items()
        )

    def _oldest(self) -> Record:
        tp, waiting = min(
            ((tp, records) for tp, records in self._waiting.items() if records),
            key=lambda item: item[1][0].timestamp,
        )
        record = waiting.popleft()
        if not waiting and self._reader.is_open(tp):
            self._consumer.resume(tp)
        return record


class _PacedSender:
    """Sends each record at its time."""

    def __init__(
        self,
        sender: RecordSender,
        destination: str,
        options: _ReplayOptions,
        progress: ProgressBar,
    ) -> None:
        self._sender = sender
        self._destination = destination
        self._options = options
        self._progress = progress
        # The clock at the first record, and its timestamp.
        self._origin: tuple[float, int] | None = None

    async def send(self, record: Record) -> None:
        """Wait for the time of a record, then send it."""
        keep = self._options["keep"]
        if keep is not None and not keep(record):
            return
        await self._wait(record.timestamp)
        keeps_time = self._options["keep_timestamps"] and record.timestamp >= 0
        await self._sender.send(
            self._destination,
            record.value,
            record.key,
            record.headers,
            record.timestamp if keeps_time else None,
            record.partition if self._options["partitions"] else None,
        )
        self._progress.add(1)

    async def _wait(self, timestamp: int) -> None:
        speed = self._options["speed"]
        if not speed or timestamp < 0:
            return
        if self._origin is None:
            self._origin = now(), timestamp
        # Relative to the first record and not to the one before: delays do not add up.
        began, first = self._origin
        left = began + (timestamp - first) / 1000 / speed - now()
        if left > _SLACK:
            await asyncio.sleep(left)
