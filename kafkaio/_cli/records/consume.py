"""``kafkaio consume``: prints records, or writes them to a file."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import closing, suppress
from functools import partial
from typing import TYPE_CHECKING, Final, TypedDict, Unpack

import click

from kafkaio._cli.records.compiled import Compiled
from kafkaio._cli.records.decoded import ShownRecord
from kafkaio._cli.records.decoding import (
    DecodingFailures,
    RecordChooser,
    RecordDecoder,
    UndecodableRecord,
)
from kafkaio._cli.records.filters import Filter, compile_filter
from kafkaio._cli.records.places import BEGINNING, PLACE_RANGE, Place, PlaceRange
from kafkaio._cli.records.record_json import envelope_of, json_of
from kafkaio._cli.records.rendering import Renderer, compile_format, compile_kcat_format
from kafkaio._cli.records.sides import REGISTERED, Sides, formats
from kafkaio._cli.shell.command import REGISTRY, asynchronous, command
from kafkaio._cli.shell.progress import ProgressBar
from kafkaio._cli.text.document import (
    ANYTHING,
    BYTES,
    INTEGER,
    TEXT,
    TIMESTAMP,
    Document,
    Shape,
    fields,
    many,
    one_of,
    reference,
    rows,
)
from kafkaio._cli.text.exits import CommandFailed
from kafkaio._cli.text.values import has_pattern
from kafkaio._runtime.scopes import move_on_after
from kafkaio.errors import KafkaError

if TYPE_CHECKING:
    from kafkaio._cli.records.sinks import RecordSinkPort
    from kafkaio._cli.shell.session import CommandSession
    from kafkaio._consumer import Batch, Consumer
    from kafkaio.types import TopicPartition

_SHOWN: Final = ANYTHING.doc(
    'Text, {"base64": ...} if the bytes are not UTF-8, or null; with -s what was '
    "decoded."
)
_SCHEMA_ID: Final = Shape({"type": ["integer", "string"]}).doc(
    "Of the schema by which it was decoded, if there is one; a GUID is a string."
)
#: `json_of` writes the records, a line at a time.
_PRINTS: Final = {
    "consume": Document(records=many(reference("line"))),
    "line": fields(
        topic=TEXT,
        partition=INTEGER,
        offset=INTEGER,
        timestamp=TIMESTAMP,
        timestamp_type=one_of("none", "create", "append"),
        key=_SHOWN,
        value=_SHOWN,
        headers=rows(name=TEXT, value=BYTES),
        leader_epoch=INTEGER.doc("-1 if unknown."),
        delivery_count=INTEGER.doc("1 for the first; with --share.").optional,
        key_schema_id=_SCHEMA_ID.optional,
        value_schema_id=_SCHEMA_ID.optional,
    ),
}
#: Seconds for the commit of an interrupted command: a person waits for its end.
_COMMIT_SECONDS = 0.5


class _ConsumeOptions(TypedDict):
    """The options of the command."""

    group: str | None
    share: str | None
    on_error: str | None
    partition: tuple[int, ...]
    offset: PlaceRange
    stop: bool
    count: int | None
    keep: Filter | None
    format: Renderer | None
    kcat_format: Renderer | None
    envelope: bool
    to_arrow: str | None
    to_parquet: str | None
    read_committed: bool
    serde: Sides[str]
    registry: str | None
    skip_errors: bool


@command("consume", help="Print records, or write them to a file.", prints=_PRINTS)
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...")
@click.option("-g", "--group", help="Read as a member of a group, and commit.")
@click.option(
    "--share",
    metavar="GROUP",
    help="Read as a worker of a share group, and accept what was printed.",
)
@click.option(
    "-p", "--partition", type=int, multiple=True, help="Only this; repeatable."
)
@click.option(
    "-o",
    "--offset",
    type=PLACE_RANGE,
    default=PlaceRange(),
    show_default="beginning",
    help="beginning, end, N, -N before the end, @TIME, or A..B.",
)
@click.option(
    "-e", "--exit", "stop", is_flag=True, help="Stop at the end as it is now."
)
@click.option("-c", "--count", type=click.IntRange(min=1), help="Stop after N records.")
@click.option(
    "--filter",
    "keep",
    type=Compiled("expression", compile_filter),
    help="Such as: key == 'a' and value contains 'b'.",
)
@click.option(
    "-f",
    "--format",
    type=Compiled("format", compile_format),
    help=r"rpk's language, such as '%t %p %o %k %v\n' (default: %v\n).",
)
@click.option(
    "--kcat-format",
    type=Compiled("format", compile_kcat_format),
    help=r"kcat's language, such as '%k %s\n'.",
)
@click.option("-J", "--envelope", is_flag=True, help="kcat's JSON envelope, by line.")
@click.option("--to-arrow", metavar="FILE", help="Write a file of Arrow.")
@click.option("--to-parquet", metavar="FILE", help="Write a file of Parquet.")
@click.option(
    "--read-committed", is_flag=True, help="No records of aborted transactions."
)
@click.option(
    "-s",
    "--serde",
    multiple=True,
    callback=formats,
    metavar="FORMAT",
    help="Decode values: avro, json, protobuf, string, long, ...; key=FORMAT for keys.",
)
@REGISTRY
@click.option(
    "--skip-errors",
    is_flag=True,
    help="Go on after what -s cannot decode, with exit code 3 in the end.",
)
@click.option(
    "--on-error",
    type=click.Choice(["release", "reject"]),
    help="With --share, for what -s cannot decode: again (default), or never again.",
)
@asynchronous
async def consume(
    session: CommandSession, topics: tuple[str, ...], **options: Unpack[_ConsumeOptions]
) -> None:
    """Print records until Ctrl+C, a number of them, or the end."""
    _check(session, topics, options)
    if options["share"] is not None:
        await _print_queue(session, topics, options, options["share"])
    else:
        await _print_logs(session, topics, options)


async def _print_queue(
    session: CommandSession,
    topics: tuple[str, ...],
    options: _ConsumeOptions,
    group: str,
) -> None:
    from kafkaio._cli.records.share import SharePrinter, share_settings

    count = options["count"]
    failures = DecodingFailures(session, is_fatal=not options["skip_errors"])
    decoder = _decoder(session, options)
    async with session.share_consumer(share_settings(group, count), topics) as share:
        with (
            closing(_sink(session, options, failures, decoder)) as sink,
            ProgressBar(
                ", ".join(topics), count, is_shown=not sys.stdout.isatty()
            ) as progress,
            failures,
        ):
            chooser = RecordChooser(decoder, None, failures)
            rejects = options["on_error"] == "reject"
            printer = SharePrinter(
                sink, chooser, progress, count=count, rejects=rejects
            )
            await printer.run(share)
            # Proof that what was printed does not come again. After Ctrl+C, closing
            # sends what was accepted, too.
            await share.flush(session.connection.timeout)


async def _print_logs(
    session: CommandSession, topics: tuple[str, ...], options: _ConsumeOptions
) -> None:
    from kafkaio._cli.records.ranges import ReadPlan, begin

    group = options["group"]
    settings: dict[str, object] = {
        "group_id": group,
        "enable_auto_commit": group is not None,
        "auto_offset_reset": options["offset"].start.kind if group else "earliest",
    }
    if options["read_committed"]:
        settings["isolation_level"] = "read_committed"
    is_group = group is not None
    plan = ReadPlan(
        topics,
        options["partition"],
        options["offset"],
        is_group,
        options["stop"],
        session.connection.timeout,
    )
    wanted = list(topics) if is_group else None
    async with session.consumer(forced=settings, topics=wanted) as consumer:
        reader = await begin(consumer, plan)
        is_shown = _file(options) is not None or not sys.stdout.isatty()
        failures = DecodingFailures(session, is_fatal=not options["skip_errors"])
        decoder = _decoder(session, options)
        with (
            closing(_sink(session, options, failures, decoder)) as sink,
            ProgressBar(", ".join(topics), reader.total, is_shown=is_shown) as progress,
            failures,
        ):
            chooser = RecordChooser(decoder, options["keep"], failures)
            printer = _RecordPrinter(sink, progress, chooser, options["count"])
            try:
                async for batch, end in reader.batches():
                    await printer.take(batch, end)
                    if printer.is_full:
                        break
                reader.note_if_left_out(session, group)
                await printer.commit(consumer, is_group=is_group)
            finally:
                # Ctrl+C cancels the loop above between two batches. The records that
                # were printed are committed, so the group does not read them again. A
                # failure of that must not replace the error that ended the loop.
                with suppress(KafkaError), move_on_after(_COMMIT_SECONDS):
                    await printer.commit(consumer, is_group=is_group)


def _file(options: _ConsumeOptions) -> str | None:
    return options["to_arrow"] or options["to_parquet"]


def _check(
    session: CommandSession, topics: Iterable[str], options: _ConsumeOptions
) -> None:
    """Refuse options that exclude each other, and patterns."""
    for topic in topics:
        if has_pattern([topic], regex=False):
            raise click.UsageError(f"{topic!r} is a pattern: name topics")
    ways = {
        "--format": options["format"],
        "--kcat-format": options["kcat_format"],
        "--envelope": options["envelope"],
        f"--{session.out.format}": session.out.format,
        "--to-arrow": options["to_arrow"],
        "--to-parquet": options["to_parquet"],
    }
    chosen = [name for name, value in ways.items() if value]
    if len(chosen) > 1:
        raise click.UsageError(f"{' and '.join(chosen)} exclude each other")
    _check_serde(options)
    _check_share(options)
    if options["group"] is None:
        return
    if options["partition"]:
        raise click.UsageError("--group and --partition exclude each other")
    # A group begins at its committed offsets. --offset becomes auto.offset.reset, which
    # has no other values.
    if options["offset"].start not in (BEGINNING, Place("latest")):
        raise click.UsageError(
            "with --group, --offset is beginning or end, and counts for partitions "
            "without a committed offset; kafkaio groups reset moves a group"
        )


def _check_serde(options: _ConsumeOptions) -> None:
    serde = options["serde"]
    if options["registry"] is not None and not {*serde} & {*REGISTERED}:
        raise click.UsageError(f"--registry needs -s {', '.join(REGISTERED)}")
    if options["skip_errors"] and not any(serde):
        raise click.UsageError("--skip-errors needs -s")


def _check_share(options: _ConsumeOptions) -> None:
    group = options["share"]
    if group is None:
        if options["on_error"] is not None:
            raise click.UsageError("--on-error needs --share")
        return
    from kafkaio._cli.records.share import check_share

    if not group:
        raise click.UsageError("--share names a group, and this name is empty")
    if options["on_error"] is not None and not any(options["serde"]):
        raise click.UsageError("--on-error needs -s")
    default = {"offset": PlaceRange()}
    check_share(
        group,
        {
            name: value
            for name, value in options.items()
            if value and value != default.get(name)
        },
    )


def _decoder(session: CommandSession, options: _ConsumeOptions) -> RecordDecoder | None:
    if not any(options["serde"]):
        return None
    registry = partial(session.registry, options["registry"])
    return RecordDecoder(options["serde"], registry)


def _sink(
    session: CommandSession,
    options: _ConsumeOptions,
    failures: DecodingFailures,
    decoder: RecordDecoder | None,
) -> RecordSinkPort:
    from kafkaio._cli.records.sinks import ArrowSink, JsonSink, TextSink, line_of

    if (path := _file(options)) is not None:
        columns = None if decoder is None else decoder.columns
        is_parquet = options["to_parquet"] is not None
        return ArrowSink(path, is_parquet=is_parquet, decoded=columns)
    out = session.out.out.buffer
    if session.out.format == "json":
        return JsonSink(out, failures.rows)
    if session.out.format == "jsonl":
        return TextSink(out, line_of(json_of))
    if options["envelope"]:
        return TextSink(out, line_of(envelope_of))
    given = options["format"] or options["kcat_format"]
    return TextSink(out, given or compile_format(r"%v\n"))


class _RecordPrinter:
    """Writes the records of batches to a sink that are chosen, up to a limit."""

    def __init__(
        self,
        sink: RecordSinkPort,
        progress: ProgressBar,
        chooser: RecordChooser,
        count: int | None,
    ) -> None:
        self._sink = sink
        self._progress = progress
        self._chooser = chooser
        self._left = count
        # The batch not committed yet, or the offsets up to which it was written.
        self._last: Batch | dict[TopicPartition, int] | None = None

    @property
    def is_full(self) -> bool:
        """Whether --count records were written."""
        return self._left == 0

    async def take(self, batch: Batch, end: int | None) -> None:
        """Write the records of a batch that are chosen.

        Raises:
            CommandFailed: one cannot be decoded; those before it are written.
            RegistryError: the registry failed; none of the batch is written.
        """
        # Without a choice or a limit the sink gets the batch itself: Arrow reads it by
        # columns and makes no records.
        if end is None and self._chooser.takes_all and self._left is None:
            self._sink.write(batch)
            self._last = batch
            self._progress.add(len(batch))
            return
        found: list[ShownRecord] = []
        failure: UndecodableRecord | None = None
        try:
            async for record in self._chooser.chosen(batch, end):
                found.append(record)
                if len(found) == self._left:
                    break
        except UndecodableRecord as error:
            failure = error
        self._sink.write(found)
        self._progress.add(len(found))
        if self._left is not None:
            self._left -= len(found)
        self._last = batch
        if end is not None:
            self._last = {batch.topic_partition: end}
        # The records after the last one written are not read by this group yet.
        if self.is_full:
            self._last = {batch.topic_partition: found[-1].offset + 1}
        if failure is not None:
            self._last = {batch.topic_partition: failure.record.offset}
            raise CommandFailed(str(failure)) from failure

    async def commit(self, consumer: Consumer, *, is_group: bool) -> None:
        """Commit the last batch as far as it was written, once.

        The batches before it are finished, and the consumer commits them when it
        closes.
        """
        if is_group and self._last is not None:
            await consumer.commit(self._last)
        self._last = None
