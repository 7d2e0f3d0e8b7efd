"""``kafkaio groups reset``: new offsets of groups, shown or written.

The options are those of kafka-consumer-groups.sh, whose CSV is read (``--from-file``)
and written (``--export``): ``topic,partition,offset``, with the group before them where
there are several groups.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import click

from kafkaio._cli.shell.command import Group, asynchronous, command
from kafkaio._cli.shell.completion import complete_groups
from kafkaio._cli.shell.session import CommandSession
from kafkaio._cli.text.document import (
    EXECUTED,
    INTEGER,
    PARTITION,
    TEXT,
    Document,
    rows,
)
from kafkaio._cli.text.exits import CommandFailed, Exit
from kafkaio._cli.text.source import text_of
from kafkaio._cli.text.values import duration_of, partition_row, time_of
from kafkaio._cli.topics.offsets import partitions_of
from kafkaio.errors import KafkaError
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    from kafkaio.admin import Admin, OffsetReset
    from kafkaio.admin._types import OffsetTarget

_RESET: Final = Document(
    offsets=rows(group=TEXT, **PARTITION, before=INTEGER.or_null, after=INTEGER),
    executed=EXECUTED,
)
_FLAGS = ("to_earliest", "to_latest", "to_current")
_VALUES = ("to_datetime", "to_offset", "by_duration", "shift_by", "from_file")


def add_reset(groups: Group) -> None:
    """Add the command to its group."""
    groups.add_command(_reset)


def _places(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options for the target of a reset."""
    for decorate in (
        click.option(
            "--from-file",
            metavar="CSV",
            help="Offsets of a file, as --export prints it; - is stdin.",
        ),
        click.option(
            "--shift-by", type=int, metavar="N", help="N records forward, or back."
        ),
        click.option(
            "--by-duration",
            metavar="DURATION",
            help="The first record of the last 90s, 2h30m, 7d or P1DT2H.",
        ),
        click.option("--to-offset", type=click.IntRange(0), metavar="OFFSET"),
        click.option(
            "--to-datetime",
            metavar="TIME",
            help="The first record since a time: ISO 8601 (UTC) or @MILLISECONDS.",
        ),
        click.option("--to-current", is_flag=True, help="What is committed now."),
        click.option("--to-latest", is_flag=True, help="The end of the logs."),
        click.option("--to-earliest", is_flag=True, help="The start of the logs."),
    ):
        function = decorate(function)
    return function


@command("reset", prints=_RESET)
@click.argument("groups", nargs=-1, required=True, shell_complete=complete_groups)
@_places
@click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="TOPIC[:PARTITIONS]",
    help="Only these; all that have an offset otherwise. Can be repeated.",
)
@click.option("--execute", is_flag=True, help="Write the offsets.")
@click.option("--dry-run", is_flag=True, help="Only show them, which is the default.")
@click.option("--export", is_flag=True, help="Print CSV of the new offsets.")
@asynchronous
async def _reset(
    session: CommandSession, groups: tuple[str, ...], **options: Any
) -> None:
    """Move the committed offsets of groups that have no members.

    Shows the new offsets, and writes them with --execute. An offset outside of the log
    becomes the nearest one that the log has.
    """
    execute = bool(options["execute"])
    if execute and options["dry_run"]:
        raise click.UsageError("--execute and --dry-run exclude each other")
    _check_one(options)
    file = options["from_file"]
    given = {} if file is None else _read_file(file, groups)
    resets: dict[str, Mapping[TopicPartition, OffsetReset] | KafkaError] = {}
    async with session.admin() as admin:
        partitions = None
        if options["topics"]:
            partitions = await partitions_of(session, admin, options["topics"])
        # None of the named topics exists: that is noted as a failure, and no group is
        # reset.
        for group in () if partitions == [] else groups:
            try:
                changes = await _reset_one(admin, group, partitions, given, options)
                # Without named topics only partitions with an offset are reset. A group
                # with none would look as if it had been reset.
                is_without = not changes and partitions is None and file is None
                resets[group] = _no_offsets(group) if is_without else changes
            except KafkaError as error:
                resets[group] = error
            # One partition that fails fails its group; the first error stands for all.
            except ExceptionGroup as error:
                raise CommandFailed(f"{group}: {error.exceptions[0]}") from error
    _show(session, session.good(resets), options, with_group=len(groups) > 1)


def _no_offsets(group: str) -> KafkaError:
    return KafkaError(
        f"group {group!r} has no committed offsets: name a topic with --topic"
    )


def _check_one(options: Mapping[str, Any]) -> None:
    # 0 is a value of --shift-by and of --to-offset.
    said = [name for name in _FLAGS if options[name]]
    said += [name for name in _VALUES if options[name] is not None]
    if len(said) != 1:
        every = ", ".join(f"--{name.replace('_', '-')}" for name in _FLAGS + _VALUES)
        raise click.UsageError(f"give one of {every}")


async def _reset_one(
    admin: Admin,
    group: str,
    partitions: list[TopicPartition] | None,
    given: Mapping[str, Mapping[TopicPartition, int]],
    options: Mapping[str, Any],
) -> Mapping[TopicPartition, OffsetReset]:
    """Reset one group, or compute the result."""
    dry_run = not options["execute"]
    if options["shift_by"]:
        return await admin.reset_offsets(
            group, shift_by=options["shift_by"], partitions=partitions, dry_run=dry_run
        )
    target = await _target(admin, group, partitions, given, options)
    if isinstance(target, Mapping):
        if not target:
            return {}
        return await admin.reset_offsets(group, target, dry_run=dry_run)
    return await admin.reset_offsets(
        group, target, partitions=partitions, dry_run=dry_run
    )


async def _target(
    admin: Admin,
    group: str,
    partitions: list[TopicPartition] | None,
    given: Mapping[str, Mapping[TopicPartition, int]],
    options: Mapping[str, Any],
) -> OffsetTarget:
    """Return the target of a group's offsets."""
    if options["to_earliest"]:
        return "earliest"
    if options["to_latest"]:
        return "latest"
    if options["to_datetime"] is not None:
        return time_of(options["to_datetime"])
    if options["by_duration"] is not None:
        return _since(options["by_duration"])
    if options["from_file"] is not None:
        own = given.get(group, {})
        return {
            tp: offset
            for tp, offset in own.items()
            if partitions is None or tp in partitions
        }
    committed = (await admin.list_consumer_group_offsets({group: partitions}))[group]
    current = {tp: it.offset for tp, it in committed.items() if it is not None}
    # A shift by 0 arrives here, too, and keeps what is committed.
    if options["to_current"] or options["shift_by"] is not None:
        return current
    return dict.fromkeys(partitions or current, options["to_offset"])


def _since(text: str) -> timedelta:
    duration = duration_of(text)
    if duration > datetime.now(UTC) - datetime.fromtimestamp(0, UTC):
        raise click.UsageError(f"{text!r} ago is before 1970")
    return duration


def _read_file(
    path: str, groups: tuple[str, ...]
) -> dict[str, dict[TopicPartition, int]]:
    """Read CSV of kafka-consumer-groups.sh.

    Raises:
        CommandFailed: the file cannot be read; the message has the number of the line.
    """
    text = text_of(path)
    found: dict[str, dict[TopicPartition, int]] = {}
    for number, row in enumerate(csv.reader(io.StringIO(text)), 1):
        if not row:
            continue
        # The script leaves the group out if there is only one; four fields have it.
        named = row if len(groups) > 1 or len(row) == 4 else [groups[0], *row]
        try:
            group, topic, partition, offset = (each.strip() for each in named)
            place = TopicPartition(topic, int(partition))
            found.setdefault(group, {})[place] = int(offset)
        except ValueError:
            form = "group,topic,partition,offset"
            if len(groups) == 1:
                form = "topic,partition,offset"
            raise CommandFailed(
                f"{path}:{number}: {','.join(row)!r} is not {form}", Exit.USAGE
            ) from None
    return found


def _show(
    session: CommandSession,
    resets: Mapping[str, Mapping[TopicPartition, OffsetReset]],
    options: Mapping[str, Any],
    *,
    with_group: bool,
) -> None:
    moved = [
        {
            "group": group,
            **partition_row(partition),
            "before": it.before,
            "after": it.after,
        }
        for group, changes in resets.items()
        for partition, it in changes.items()
    ]
    if options["export"]:
        _export(session, moved, with_group=with_group)
        return
    session.show(_RESET, offsets=moved, executed=bool(options["execute"]))
    if moved and not (options["execute"] or options["dry_run"]):
        session.note("nothing was done: do it with --execute")


def _export(
    session: CommandSession, moved: Iterable[Mapping[str, object]], *, with_group: bool
) -> None:
    writer = csv.writer(session.out.out, lineterminator="\n")
    # The script reads the group only if there are several.
    keys = ("group", "topic", "partition", "after")
    for row in moved:
        writer.writerow([row[key] for key in keys[0 if with_group else 1 :]])
