"""``kafkaio copy``: copies records from one topic to another."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from kafkaio._cli.records.compiled import Compiled
from kafkaio._cli.records.filters import Filter, compile_filter
from kafkaio._cli.records.places import PLACE_RANGE, PlaceRange
from kafkaio._cli.records.raw_copy import OffsetMap, RawCopier
from kafkaio._cli.records.sending import (
    CHECK_SECONDS,
    COMMIT_SECONDS,
    SENT,
    CountingProducer,
    RecordSender,
    SendSummary,
    commit_copied,
    show_sent,
)
from kafkaio._cli.shell.command import asynchronous, command
from kafkaio._cli.shell.progress import ProgressBar
from kafkaio._runtime.clock import now
from kafkaio._runtime.group import TaskGroup

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafkaio._cli.records.ranges import BoundedReader
    from kafkaio._cli.shell.session import CommandSession
    from kafkaio._consumer import Consumer
    from kafkaio._producer import Producer
    from kafkaio._producer.transaction import Transaction
    from kafkaio.types import Record, TopicPartition


class _CopyOptions(TypedDict):
    """The options of the command."""

    to_bootstrap: str | None
    to_profile: str | None
    partitions: bool
    group: str | None
    offset: PlaceRange
    follow: bool
    keep: Filter | None
    exactly_once: bool
    raw: bool
    offset_map: Path | None


@command("copy", help="Copy records from one topic to another.", prints=SENT)
@click.argument("source")
@click.argument("destination", metavar="DEST")
@click.option("--to-bootstrap", metavar="HOST:PORT,...", help="The cluster of DEST.")
@click.option("--to-profile", metavar="NAME", help="The cluster of DEST, by profile.")
@click.option("--partitions", is_flag=True, help="Keep the number of the partition.")
@click.option("-g", "--group", help="Go on where this group stopped.")
@click.option(
    "-o",
    "--offset",
    type=PLACE_RANGE,
    default=PlaceRange(),
    help="Where to begin, or A..B.",
)
@click.option("--follow", is_flag=True, help="Go on after the end as it is now.")
@click.option(
    "--filter",
    "keep",
    type=Compiled("expression", compile_filter),
    help="Copy only these; see kafkaio consume.",
)
@click.option(
    "--exactly-once", is_flag=True, help="In transactions, within one cluster."
)
@click.option(
    "--raw",
    is_flag=True,
    help="Copy compressed batches as they are, with --partitions.",
)
@click.option(
    "--offset-map",
    type=click.Path(dir_okay=False, path_type=Path),
    help="With --raw: write here which offsets became which, as JSON lines.",
)
@asynchronous
async def copy(
    session: CommandSession,
    source: str,
    destination: str,
    **options: Unpack[_CopyOptions],
) -> None:
    """Copy keys, values, headers and timestamps.

    With --group, offsets are committed after the copies are acknowledged: what was
    copied since the last commit may be copied again. With --exactly-once nothing is.

    With --raw, batches are neither decompressed nor compressed again, and the number of
    the partition is kept. Where batches are large that takes about a fifth of the CPU.
    It works with --exactly-once, too.
    """
    from kafkaio._cli.records.ranges import ReadPlan, begin

    group = options["group"]
    _check(source, destination, options)
    # Aborted records are never copied: the copy would make them committed.
    settings: dict[str, object] = {
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "isolation_level": "read_committed",
        "group_id": group,
    }
    plan = ReadPlan(
        [source],
        places=options["offset"],
        is_group=group is not None,
        stops=not options["follow"],
        patience=session.connection.timeout,
    )
    topics = None if group is None else [source]
    async with (
        session.consumer(forced=settings, topics=topics) as consumer,
        _producer(session, options) as producer,
    ):
        reader = await begin(consumer, plan)
        with ProgressBar(f"{source} to {destination}", reader.total) as progress:
            copier = _Copier(consumer, producer, destination, options, progress)
            if options["raw"]:
                with OffsetMap(options["offset_map"], destination) as offsets:
                    raw = RawCopier(consumer, producer, destination, offsets, progress)
                    if options["exactly_once"]:
                        sent = await raw.exactly_once(reader)
                    else:
                        is_group = group is not None
                        sent = await raw.copy(session, reader, is_group=is_group)
            elif options["exactly_once"]:
                sent = await copier.exactly_once(reader)
            else:
                sent = await copier.at_least_once(session, reader)
        reader.note_if_left_out(session, group)
    show_sent(session, sent, source, destination)


def _check(source: str, destination: str, options: _CopyOptions) -> None:
    is_elsewhere = options["to_bootstrap"] or options["to_profile"]
    if options["to_bootstrap"] and options["to_profile"]:
        raise click.UsageError("--to-bootstrap and --to-profile exclude each other")
    if source == destination and not is_elsewhere:
        raise click.UsageError("a topic cannot be copied to itself")
    if options["exactly_once"] and is_elsewhere:
        raise click.UsageError("--exactly-once works within one cluster only")
    if options["exactly_once"] and options["group"] is None:
        raise click.UsageError("--exactly-once needs a --group, which keeps the place")
    if options["raw"]:
        if options["keep"] is not None:
            raise click.UsageError("--raw and --filter exclude each other")
    elif options["offset_map"] is not None:
        raise click.UsageError("--offset-map needs --raw")
    if options["group"] is not None and options["offset"] != PlaceRange():
        raise click.UsageError("--group and --offset exclude each other")


def _producer(
    session: CommandSession, options: _CopyOptions
) -> AbstractAsyncContextManager[Producer]:
    """Return the producer, of the other cluster if there is one.

    The options of the source serve another address, too; a profile has its own.
    """
    from kafkaio._cli.shell.connection import ConnectionOptions
    from kafkaio._config import ProducerConfig
    from kafkaio._producer import Producer

    settings: dict[str, object] = {}
    if options["exactly_once"]:
        # Derived from the group: a second copy with the same group fences the first,
        # and the next run aborts what a crashed one left open.
        settings["transactional_id"] = f"kafkaio-copy-{options['group']}"
    servers, profile = options["to_bootstrap"], options["to_profile"]
    if servers is None and profile is None:
        return session.producer(forced=settings)
    given = replace(session.given, bootstrap_server=servers)
    if profile is not None:
        given = replace(given, profile=profile, config=None, properties={})
    other = ConnectionOptions(given, ask=session.connection.ask)
    made = Producer.from_properties(other.properties(ProducerConfig, forced=settings))
    return session.started(made)


class _Copier:
    """Copies the records of a consumer."""

    def __init__(
        self,
        consumer: Consumer,
        producer: Producer,
        destination: str,
        options: _CopyOptions,
        progress: ProgressBar,
    ) -> None:
        self._consumer = consumer
        self._producer = producer
        self._destination = destination
        self._keeps_partitions = options["partitions"]
        self._keep = options["keep"]
        self._is_group = options["group"] is not None
        self._progress = progress
        # The offset after the last record taken of each partition.
        self._done: dict[TopicPartition, int] = {}

    async def at_least_once(
        self, session: CommandSession, reader: BoundedReader
    ) -> SendSummary:
        """Copy, and commit the offsets of acknowledged copies; return the result.

        The first failure ends the copy, so that the group's offset stays before the
        failed record.
        """
        sender = RecordSender(self._producer)
        send, destination = sender.send, self._destination
        keeps_partitions = self._keeps_partitions
        # By time and not by count: a commit waits until all copies are acknowledged.
        due = now() + COMMIT_SECONDS
        settle = partial(self._settle, sender)
        async with sender.to_the_end(session, "copied", settle):
            async for batch, end in reader.batches():
                for record in self._wanted(batch, end):
                    timestamp = record.timestamp
                    await send(
                        destination,
                        record.value,
                        record.key,
                        record.headers,
                        None if timestamp < 0 else timestamp,
                        record.partition if keeps_partitions else None,
                    )
                self._progress.add(sender.number - self._progress.done)
                self._done[batch.topic_partition] = end or batch.last_offset + 1
                if now() >= due:
                    await settle()
                    due = now() + COMMIT_SECONDS
                if sender.sent.failed:
                    break
        return sender.sent

    def _wanted(self, records: Iterable[Record], end: int | None) -> Iterable[Record]:
        if end is not None:
            records = (record for record in records if record.offset < end)
        return records if self._keep is None else filter(self._keep, records)

    async def _settle(self, sender: RecordSender) -> None:
        """Wait for the copies, and commit the offsets if no copy failed."""
        # The order matters: an offset that is committed before its copy is acknowledged
        # loses the record in a crash.
        await sender.flush()
        if not self._is_group or sender.sent.failed or not self._done:
            return
        await commit_copied(self._consumer, self._done)
        self._done.clear()

    async def exactly_once(self, reader: BoundedReader) -> SendSummary:
        """Copy in transactions, which commit the group's offsets, too."""
        from kafkaio import exactly_once

        producer = CountingProducer(self._producer)

        async def copy_all(tx: Transaction, records: list[Record]) -> None:
            # Filtered records count, too: their offsets are committed with the others.
            for record in records:
                self._done[record.topic_partition] = record.offset + 1
            wanted = list(self._wanted(records, None))
            for record in wanted:
                _ = await tx.enqueue(
                    self._destination,
                    record.value,
                    key=record.key,
                    headers=record.headers,
                    timestamp=None if record.timestamp < 0 else record.timestamp,
                    partition=record.partition if self._keeps_partitions else None,
                )
            producer.sent = len(wanted)
            self._progress.add(len(wanted))

        async def close_at_the_end() -> None:
            while True:
                await asyncio.sleep(CHECK_SECONDS)
                if await self._is_over(reader, producer):
                    await self._consumer.close()
                    return

        # exactly_once ends when the consumer is closed, and checks no end of its own.
        async with TaskGroup() as tasks:
            if reader.has_end:
                tasks.start_soon(close_at_the_end)
            await exactly_once(self._consumer, producer, copy_all)
        return SendSummary(producer.committed)

    async def _is_over(self, reader: BoundedReader, producer: CountingProducer) -> bool:
        """Whether everything up to the end was read and committed.

        Markers of transactions can follow the last record, and then no committed offset
        reaches the end. In that case the position must be at the end, all polled
        records must be committed, and no transaction may be open: a transaction begins
        when records are polled, and an aborted one counts as open until the next one.
        """
        assigned = self._consumer.assignment
        positions = {tp: await self._consumer.position(tp) for tp in assigned}
        committed = await self._consumer.committed(assigned)
        for tp in assigned:
            end, found = reader.end_of(tp), committed[tp]
            offset = 0 if found is None else found.offset
            if end is None or offset >= end:
                continue
            if (
                producer.is_open
                or positions[tp] < end
                or offset < self._done.get(tp, 0)
            ):
                return False
        return bool(assigned)
