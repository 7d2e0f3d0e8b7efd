"""``kafkaio produce``: sends the records of stdin or a file."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Final, TypedDict, Unpack

import click

from kafkaio._cli.records.compiled import Compiled
from kafkaio._cli.records.encoding import RecordEncoder, SchemaChoice
from kafkaio._cli.records.input import (
    FormatReader,
    InputError,
    InputReaderPort,
    InputRecord,
)
from kafkaio._cli.records.record_json import JsonReader
from kafkaio._cli.records.sides import REGISTERED, Sides, formats, sides
from kafkaio._cli.shell.command import REGISTRY, asynchronous, command
from kafkaio._cli.shell.progress import ProgressBar
from kafkaio._cli.text.document import INTEGER, PARTITION, Document, rows
from kafkaio._cli.text.exits import CommandFailed
from kafkaio._cli.text.schema_files import schema_of_file
from kafkaio.errors import KafkaError

if TYPE_CHECKING:
    from kafkaio._cli.records.sending import RecordSender
    from kafkaio._cli.shell.session import CommandSession


_SENT: Final = Document(
    records=INTEGER.doc("Acknowledged records."),
    failed=INTEGER,
    partitions=rows(**PARTITION, records=INTEGER),
)


#: Ids are int32.
_MOST_ID: Final = 2**31 - 1


class _ProduceOptions(TypedDict):
    """The options of the command."""

    partition: int | None
    key: str | None
    headers: tuple[tuple[str, bytes], ...]
    reader: InputReaderPort | None
    file: str | None
    compression: str | None
    tombstone: bool
    serde: Sides[str]
    schema: Sides[str]
    schema_id: Sides[str]
    subject: Sides[str]
    message: Sides[str]
    registry: str | None


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
@click.option(
    "-s",
    "--serde",
    multiple=True,
    callback=formats,
    metavar="FORMAT",
    help="Encode values: avro, json, protobuf, string, long, ...; key=FORMAT for keys.",
)
@REGISTRY
@click.option(
    "--schema",
    multiple=True,
    callback=sides,
    metavar="FILE",
    help="A schema to register and to write by; key=FILE for keys.",
)
@click.option(
    "--schema-id",
    multiple=True,
    callback=sides,
    metavar="ID",
    help="The id of the schema, or key=ID.",
)
@click.option(
    "--subject",
    multiple=True,
    callback=sides,
    metavar="SUBJECT",
    help="The subject, whose latest schema it is (default: TOPIC-value).",
)
@click.option(
    "--message",
    multiple=True,
    callback=sides,
    metavar="NAME",
    help="The message of a Protobuf schema (default: its first).",
)
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
    _check_serde(options)
    serde = options["serde"]
    reader = options["reader"] or FormatReader(r"%v\n")
    if is_json:
        reader = JsonReader(serde)
    encoder = _encoder(session, options) if any(serde) else None
    settings: dict[str, object] = {}
    if options["compression"] is not None:
        settings["compression_type"] = options["compression"]
    async with session.producer(forced=settings) as producer:
        if encoder is not None and topic:
            await encoder.prepare(topic)
        sender = RecordSender(producer)
        input_sender = _InputSender(sender, topic, options, encoder)
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


def _encoder(session: CommandSession, options: _ProduceOptions) -> RecordEncoder:
    """Return what encodes keys and values; check the options for it."""
    choices = Sides(_choice(options, is_key=True), _choice(options, is_key=False))
    registry = partial(session.registry, options["registry"])
    return RecordEncoder(options["serde"], choices, registry)


def _check_serde(options: _ProduceOptions) -> None:
    """Refuse options that have no effect without the format that they are for."""
    names = ("schema", "schema_id", "subject", "message")
    for is_key, side in ((True, "the key"), (False, "the value")):
        name = options["serde"].of(is_key=is_key)
        for option in names:
            given: Sides[str] = options[option]  # type: ignore[literal-required]
            wanted = ["protobuf"] if option == "message" else [*REGISTERED]
            if given.of(is_key=is_key) is not None and name not in wanted:
                raise click.UsageError(
                    f"--{option.replace('_', '-')} for {side} needs "
                    f"-s {'key=' if is_key else ''}{' or '.join(wanted)}"
                )
    if options["registry"] is not None and not {*options["serde"]} & {*REGISTERED}:
        raise click.UsageError(f"--registry needs -s {', '.join(REGISTERED)}")


def _choice(options: _ProduceOptions, *, is_key: bool) -> SchemaChoice:
    language = options["serde"].of(is_key=is_key)
    file, number = (options[n].of(is_key=is_key) for n in ("schema", "schema_id"))
    subject, message = (options[n].of(is_key=is_key) for n in ("subject", "message"))
    if number is None:
        schema = None if file is None else schema_of_file(file, language)
        return SchemaChoice(schema, None, subject, message)
    if file is not None or subject is not None:
        raise click.UsageError("--schema-id excludes --schema and --subject")
    if not number.isdecimal() or not 0 < int(number) <= _MOST_ID:
        raise click.UsageError(f"--schema-id {number!r} is not the id of a schema")
    return SchemaChoice(None, int(number), None, message)


class _InputSender:
    """Completes records of the input with the options, and sends them."""

    def __init__(
        self,
        sender: RecordSender,
        topic: str | None,
        options: _ProduceOptions,
        encoder: RecordEncoder | None = None,
    ) -> None:
        self._sender = sender
        self._encoder = encoder
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
                Or a record does not fit its schema; those after it are dropped.
            KafkaError: a record cannot be sent, for example because its topic does not
                exist; the records after it are dropped.
        """
        waiting = self._waiting
        waiting.extend(records)
        while waiting:
            try:
                await self._send(waiting[0])
            except (KafkaError, InputError):
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
        key = self._key if written.key is None else written.key
        encoder = self._encoder
        if encoder is not None:
            headers = encoder.own_headers(headers)
            key = await encoder.encode(topic, key, written.line, is_key=True)
            value = await encoder.encode(topic, value, written.line, is_key=False)
        await self._sender.send(
            topic,
            value,
            key,
            headers,
            written.timestamp,
            written.partition if self._partition is None else self._partition,
        )
