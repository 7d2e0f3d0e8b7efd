"""``kafkaio produce``: sends the records of stdin or a file."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, TypedDict, Unpack

import click

from kafkaio._cli.records.compiled import Compiled
from kafkaio._cli.records.input import (
    FormatReader,
    InputError,
    InputReaderPort,
    InputRecord,
)
from kafkaio._cli.records.record_json import JsonReader
from kafkaio._cli.shell.command import asynchronous, command
from kafkaio._cli.shell.progress import ProgressBar
from kafkaio._cli.text.document import INTEGER, PARTITION, Document, rows
from kafkaio._cli.text.exits import CommandFailed
from kafkaio.errors import KafkaError

if TYPE_CHECKING:
    from kafkaio._cli.records.sending import RecordSender
    from kafkaio._cli.shell.session import CommandSession


_SENT: Final = Document(
    records=INTEGER.doc("Acknowledged records."),
    failed=INTEGER,
    partitions=rows(**PARTITION, records=INTEGER),
)


class _ProduceOptions(TypedDict):
    """The options of the command."""

    partition: int | None
    key: str | None
    headers: tuple[tuple[str, bytes], ...]
    reader: InputReaderPort | None
    file: str | None
    compression: str | None
    tombstone: bool


def _headers(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[str, bytes], ...]:
    """Parse ``NAME=VALUE``; a name may be repeated."""
    found = []
    for text in values:
        name, equals, value = text.partition("=")
        if not equals:
            # The message does not repeat the text: it may be a token.
            raise click.BadParameter("it is not NAME=VALUE", context, parameter)
        found.append((name, value.encode()))
    return tuple(found)


@command(
    "produce",
    help="Send records, by default one of each line of stdin.",
    prints=_SENT,
)
@click.argument("topic", required=False)
@click.option("-p", "--partition", type=click.IntRange(min=0), help="Send to this one.")
@click.option("-k", "--key", help="The key of records that the input has no key of.")
@click.option(
    "-H",
    "--header",
    "headers",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_headers,
    help="A header of every record; repeatable.",
)
@click.option(
    "-f",
    "--format",
    "reader",
    type=Compiled("format", FormatReader),
    help=r"How to read the input, such as '%k\t%v\n' (default: %v\n).",
)
@click.option("--file", metavar="FILE", help="Read this instead of stdin.")
@click.option(
    "-z",
    "--compression",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    help="How to compress batches.",
)
@click.option("-Z", "--tombstone", is_flag=True, help="An empty value deletes its key.")
@asynchronous
async def produce(
    session: CommandSession, topic: str | None, **options: Unpack[_ProduceOptions]
) -> None:
    """Send records as they are read; with --jsonl the input is lines of JSON."""
    from kafkaio._cli.records.sending import RecordSender, failures
    from kafkaio._cli.text.source import pieces

    # The option of the output is that of the input here, so that `consume --jsonl` can
    # be piped into `produce --jsonl`.
    is_json = session.out.format == "jsonl"
    if is_json and options["reader"] is not None:
        raise click.UsageError("--jsonl and --format exclude each other")
    reader = JsonReader() if is_json else options["reader"] or FormatReader(r"%v\n")
    settings: dict[str, object] = {}
    if options["compression"] is not None:
        settings["compression_type"] = options["compression"]
    async with session.producer(forced=settings) as producer:
        sender = RecordSender(producer)
        input_sender = _InputSender(sender, topic, options)
        with ProgressBar("produce", is_shown=options["file"] is not None) as progress:
            async with sender.to_the_end(session, "sent", input_sender.take_the_rest):
                try:
                    async for piece in pieces(options["file"]):
                        await input_sender.take(reader.feed(piece))
                        progress.add(sender.number - progress.done)
                    await input_sender.take(reader.finish())
                except InputError as error:
                    # The records before the error are sent all the same.
                    await input_sender.take_the_rest()
                    await sender.flush()
                    text = f"{error}; the records before it are sent"
                    raise CommandFailed(text) from None
    if session.out.format == "json":
        partitions = [
            {"topic": name, "partition": number, "records": count}
            for (name, number), count in sorted(sender.sent.partitions.items())
        ]
        document = {
            "records": sender.sent.records,
            "failed": sender.sent.failed,
            "partitions": partitions,
        }
        session.out.show(_SENT.made(failures(sender.sent), document))


class _InputSender:
    """Completes records of the input with the options, and sends them."""

    def __init__(
        self, sender: RecordSender, topic: str | None, options: _ProduceOptions
    ) -> None:
        self._sender = sender
        self._topic = topic
        self._partition = options["partition"]
        self._key = None if options["key"] is None else options["key"].encode()
        self._headers = options["headers"]
        self._has_tombstones = options["tombstone"]
        # Records that were read and not sent. A cancellation leaves them here: Ctrl+C
        # must not lose lines that were typed.
        self._waiting: deque[InputRecord] = deque()

    async def take(self, records: Iterable[InputRecord]) -> None:
        """Send records, after those that a cancelled call left.

        Raises:
            click.UsageError: a record has no topic.
            InputError: the input is invalid; the next call sends the records before it.
            KafkaError: a record cannot be sent, for example because its topic does not
                exist; the records after it are dropped.
        """
        waiting = self._waiting
        waiting.extend(records)
        while waiting:
            try:
                await self._send(waiting[0])
            except KafkaError:
                waiting.clear()
                raise
            # Removed after the await: a cancelled send has taken nothing in.
            waiting.popleft()

    async def take_the_rest(self) -> None:
        """Send the records that a cancelled or failed call left."""
        await self.take(())

    async def _send(self, written: InputRecord) -> None:
        topic = written.topic if self._topic is None else self._topic
        if not topic:
            # Records after it would have no topic either.
            self._waiting.clear()
            raise click.UsageError("name a TOPIC, or have one in the input (%t)")
        value = written.value
        # A format cannot write null; an empty value is the only sign for it.
        if not value and self._has_tombstones:
            value = None
        headers = [*written.headers, *self._headers]
        await self._sender.send(
            topic,
            value,
            self._key if written.key is None else written.key,
            headers,
            written.timestamp,
            written.partition if self._partition is None else self._partition,
        )
