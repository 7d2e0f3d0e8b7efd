"""``kafkaio records``: deletes records at the beginning of partitions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import click

from kafkaio._cli.shell.command import YES, Group, asynchronous
from kafkaio._cli.shell.session import CommandSession
from kafkaio._cli.text.document import INTEGER, PARTITION, Document, rows
from kafkaio._cli.text.exits import CommandFailed, Exit
from kafkaio._cli.text.named import by_name, outcomes, partition_name, partition_of
from kafkaio._cli.text.source import text_of
from kafkaio._cli.text.values import partition_row
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    from kafkaio.admin import Admin

_LATEST: Final = "latest"
_DELETED: Final = Document(
    partitions=rows(**PARTITION, start_before=INTEGER, start=INTEGER, deleted=INTEGER)
)

Ends: TypeAlias = dict[TopicPartition, int | Literal["latest"]]


records: Group = Group("records", help="Delete records of partitions.")


@records.command("delete", prints=_DELETED)
@click.argument("end", nargs=-1, metavar="TOPIC:PARTITION@OFFSET...")
@click.option(
    "--offset-json-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What to delete, as kafka-delete-records reads it.",
)
@YES
@asynchronous
async def _delete(
    session: CommandSession,
    end: tuple[str, ...],
    offset_json_file: Path | None,
    *,
    yes: bool,
) -> None:
    """Delete the records before an offset of a partition; ``latest`` deletes all.

    Example: kafkaio records delete orders:0@1200 orders:1@latest --yes
    """
    if bool(end) == (offset_json_file is not None):
        message = "give either TOPIC:PARTITION@OFFSET or --offset-json-file"
        raise CommandFailed(message, Exit.USAGE)
    wanted = _ends(end) if offset_json_file is None else _read(offset_json_file)
    async with session.admin() as admin:
        # Brokers answer with the new start offset; the rows have the old one, too. The
        # question leaves out partitions that do not exist.
        before = await _starts(session, admin, wanted)
        effects = [_effect(tp, start, wanted[tp]) for tp, start in before.items()]
        if effects:
            session.confirm(effects, yes=yes)
        results = await outcomes(
            admin.delete_records({tp: wanted[tp] for tp in before})
        )
    done = session.good(by_name(results, partition_name))
    deleted = [
        partition_row(tp)
        | {"start_before": before[tp], "start": start}
        | {"deleted": start - before[tp]}
        for tp, start in done.items()
    ]
    session.show(_DELETED, partitions=deleted)


async def _starts(
    session: CommandSession, admin: Admin, wanted: Ends
) -> dict[TopicPartition, int]:
    """The start offsets of the partitions that exist."""
    results = await outcomes(admin.list_offsets(dict.fromkeys(wanted, "earliest")))
    found = session.good(by_name(results, partition_name), is_lookup=True)
    return {tp: it.offset for tp, it in found.items() if it is not None}


def _effect(tp: TopicPartition, start: int, end: int | str) -> str:
    last = "the end" if end == _LATEST else f"offset {end}"
    return f"delete: records of {partition_name(tp)} from offset {start} to {last}"


def _ends(texts: tuple[str, ...]) -> Ends:
    found: Ends = {}
    for text in texts:
        where, at, offset = text.rpartition("@")
        if not at or not (offset == _LATEST or offset.isdecimal()):
            message = f"{text!r} is not TOPIC:PARTITION@OFFSET, such as orders:0@1200"
            raise CommandFailed(message, Exit.USAGE)
        tp = partition_of(where)
        if tp in found:
            message = f"{partition_name(tp)} occurs twice"
            raise CommandFailed(message, Exit.USAGE)
        found[tp] = "latest" if offset == _LATEST else int(offset)
    return found


def _read(path: Path) -> Ends:
    """Read the file of kafka-delete-records, in which -1 is the end."""
    try:
        document: object = json.loads(text_of(path))
    except ValueError as error:
        message = f"{path}: not JSON: {error}"
        raise CommandFailed(message, Exit.USAGE) from None
    entries = document.get("partitions") if isinstance(document, dict) else None
    if not isinstance(entries, list) or not entries:
        raise CommandFailed(f"{path}: partitions: a list is missing", Exit.USAGE)
    found: Ends = {}
    for at, entry in enumerate(entries):
        tp, offset = _entry(f"{path}: partitions[{at}]", entry)
        if tp in found:
            message = f"{path}: {partition_name(tp)} occurs twice"
            raise CommandFailed(message, Exit.USAGE)
        found[tp] = "latest" if offset == -1 else offset
    return found


def _entry(where: str, entry: object) -> tuple[TopicPartition, int]:
    # An entry that is not an object has no fields, so it is refused below.
    fields: Mapping[str, object] = entry if isinstance(entry, dict) else {}
    topic, partition, offset = (
        fields.get(name) for name in ("topic", "partition", "offset")
    )
    if (
        isinstance(topic, str)
        and isinstance(partition, int)
        and isinstance(offset, int)
        and partition >= 0
        and offset >= -1
    ):
        return TopicPartition(topic, partition), offset
    message = f"{where} needs a topic, a partition and an offset"
    raise CommandFailed(message, Exit.USAGE)
