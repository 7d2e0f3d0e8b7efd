"""``kafkaio share-groups``: share groups and their offsets (KIP-932)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal

import click

from kafkaio._cli.shell.command import YES, Group, asynchronous
from kafkaio._cli.shell.session import CommandSession
from kafkaio._cli.text.document import (
    BOOLEAN,
    INTEGER,
    PARTITION,
    TEXT,
    Document,
    many,
    rows,
)
from kafkaio._cli.text.exits import CommandFailed, Exit
from kafkaio._cli.text.named import by_name, outcomes, partition_name, partitions_meant
from kafkaio._cli.text.output import Table
from kafkaio._cli.text.values import partition_row, time_of
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    from kafkaio.admin import Admin, ShareGroupDescription

_LISTED: Final = Document(
    groups=rows(group=TEXT, state=TEXT.or_null, coordinator=INTEGER)
)
#: A partition can be assigned to several members: they share its records.
_MEMBERS: Final = rows(
    member_id=TEXT,
    client_id=TEXT,
    host=TEXT,
    rack=TEXT.or_null.hidden,
    member_epoch=INTEGER.hidden,
    subscription=many(TEXT),
    assignment=rows(**PARTITION),
)
_DESCRIBED: Final = Document(
    groups=rows(
        group=TEXT,
        state=TEXT,
        coordinator=INTEGER,
        assignor=TEXT,
        group_epoch=INTEGER,
        assignment_epoch=INTEGER,
        members=_MEMBERS,
    )
)
_DELETED: Final = Document(groups=rows(group=TEXT))
#: Null where the group has no offset yet.
_OFFSETS: Final = Document(
    offsets=rows(
        group=TEXT, **PARTITION, start_offset=INTEGER.or_null, lag=INTEGER.or_null
    )
)
_RESET: Final = Document(
    executed=BOOLEAN,
    partitions=rows(**PARTITION, before=INTEGER.or_null, after=INTEGER),
)

share_groups: Group = Group(
    "share-groups", help="List, describe, reset and delete share groups."
)


@share_groups.command("list", prints=_LISTED)
@asynchronous
async def _list(session: CommandSession) -> None:
    """List the share groups of the cluster."""
    async with session.admin() as admin:
        found = await admin.list_groups(types=["share"])
    listed = [
        {"group": name, "state": it.state, "coordinator": it.coordinator}
        for name, it in found.items()
    ]
    session.show(_LISTED, groups=listed)


@share_groups.command("describe", prints=_DESCRIBED)
@click.argument("group", nargs=-1, required=True)
@asynchronous
async def _describe(session: CommandSession, group: tuple[str, ...]) -> None:
    """Describe groups and their members."""
    names = list(dict.fromkeys(group))
    async with session.admin() as admin:
        results = await outcomes(admin.describe_share_groups(names))
    found = session.good(results).values()
    columns = [*_DESCRIBED.row.only("group", "state"), *_MEMBERS.columns()]
    table = Table([row for it in found for row in _member_rows(it)], columns)
    session.show(_DESCRIBED, table, groups=[_document(it) for it in found])


def _document(it: ShareGroupDescription) -> dict[str, object]:
    return {
        "group": it.group_id,
        "state": it.state,
        "coordinator": it.coordinator,
        "assignor": it.assignor,
        "group_epoch": it.group_epoch,
        "assignment_epoch": it.assignment_epoch,
        "members": [
            {
                "member_id": each.member_id,
                "client_id": each.client_id,
                "host": each.host,
                "rack": each.rack,
                "member_epoch": each.member_epoch,
                "subscription": each.subscription,
                "assignment": [partition_row(tp) for tp in sorted(each.assignment)],
            }
            for each in it.members
        ],
    }


def _member_rows(it: ShareGroupDescription) -> list[dict[str, object]]:
    """A row for each member, or one for a group without members."""
    group: dict[str, object] = {"group": it.group_id, "state": it.state}
    return [
        {
            **group,
            "member_id": each.member_id,
            "client_id": each.client_id,
            "host": each.host,
            "subscription": each.subscription,
            "assignment": each.assignment,
        }
        for each in it.members
    ] or [group]


@share_groups.command("delete", prints=_DELETED)
@click.argument("group", nargs=-1, required=True)
@YES
@asynchronous
async def _delete(
    session: CommandSession, group: tuple[str, ...], *, yes: bool
) -> None:
    """Delete groups without members, with their offsets."""
    names = list(dict.fromkeys(group))
    async with session.admin() as admin:
        # DeleteGroups deletes groups of any type. The description fails for those that
        # are not share groups, so they are left out.
        known = session.good(
            await outcomes(admin.describe_share_groups(names)), is_lookup=True
        )
        if known:
            session.confirm([f"delete: share group {name}" for name in known], yes=yes)
        results = await outcomes(admin.delete_share_groups(known))
    session.show(_DELETED, groups=[{"group": it} for it in session.good(results)])


@share_groups.command("offsets", prints=_OFFSETS)
@click.argument("group", nargs=-1, required=True)
@asynchronous
async def _offsets(session: CommandSession, group: tuple[str, ...]) -> None:
    """Show the first offset that is not finished in each partition, and the lag."""
    names = list(dict.fromkeys(group))
    async with session.admin() as admin:
        results = await outcomes(admin.list_share_group_offsets(names))
    offsets = [
        {"group": name, **partition_row(tp)}
        | {"start_offset": None if it is None else it.start_offset}
        | {"lag": None if it is None else it.lag}
        for name, own in session.good(results).items()
        for tp, it in own.items()
    ]
    session.show(_OFFSETS, offsets=offsets)


@share_groups.command("reset", prints=_RESET)
@click.argument("group")
@click.option(
    "--topic",
    multiple=True,
    metavar="TOPIC[:PARTITIONS]",
    help="Only there; all partitions that the group has an offset in by default.",
)
@click.option("--to-earliest", is_flag=True, help="To the first record.")
@click.option("--to-latest", is_flag=True, help="To the end.")
@click.option("--to-datetime", metavar="TIME", help="To a time, in ISO 8601.")
@click.option("--execute", is_flag=True, help="Do it; else it is only shown.")
@asynchronous
async def _reset(  # noqa: PLR0913 - an argument for each option
    session: CommandSession,
    group: str,
    topic: tuple[str, ...],
    to_datetime: str | None,
    *,
    to_earliest: bool,
    to_latest: bool,
    execute: bool,
) -> None:
    """Set where a group without members goes on; records are delivered again.

    It has no effect on a partition while a connection of a former member is open.
    Without --execute it is only shown.
    """
    moment = _moment(to_datetime, to_earliest=to_earliest, to_latest=to_latest)
    async with session.admin() as admin:
        before = await _before(admin, group, topic)
        targets = await _targets(session, admin, list(before), moment)
        # Without --execute the rows are those of all targets.
        done: Mapping[TopicPartition, object] = targets
        if execute:
            results = await outcomes(admin.alter_share_group_offsets(group, targets))
            done = session.good(by_name(results, partition_name))
    moved = [
        {**partition_row(tp), "before": before[tp], "after": targets[tp]}
        for tp in sorted(done)
    ]
    session.show(_RESET, executed=execute, partitions=moved)
    if moved and not execute:
        session.note("nothing was done: do it with --execute")


async def _before(
    admin: Admin, group: str, topics: tuple[str, ...]
) -> dict[TopicPartition, int | None]:
    """The offsets of the group in the selected partitions."""
    offsets = (await admin.list_share_group_offsets([group]))[group]
    # A partition that is named may have no offset yet; the reset sets its first one.
    known = {tp: None if it is None else it.start_offset for tp, it in offsets.items()}
    if not topics:
        if not known:
            raise CommandFailed(f"share group {group!r} has no offsets: name a topic")
        return known
    return {tp: known.get(tp) for tp in await partitions_meant(admin, topics)}


async def _targets(
    session: CommandSession,
    admin: Admin,
    partitions: list[TopicPartition],
    moment: Literal["earliest", "latest"] | datetime,
) -> dict[TopicPartition, int]:
    """The offsets at a moment; the end of a log without a later record."""
    results = await outcomes(admin.list_offsets(dict.fromkeys(partitions, moment)))
    found = session.good(by_name(results, partition_name), is_lookup=True)
    # Brokers have no offset for a time after the last record.
    without = [tp for tp, it in found.items() if it is None]
    ends = await admin.list_offsets(dict.fromkeys(without, "latest"))
    return {tp: it.offset for tp, it in {**found, **ends}.items() if it is not None}


def _moment(
    text: str | None, *, to_earliest: bool, to_latest: bool
) -> Literal["earliest", "latest"] | datetime:
    # Exactly one of the three, and no default: a reset delivers records again.
    if sum((to_earliest, to_latest, text is not None)) != 1:
        message = "give one of --to-earliest, --to-latest, --to-datetime"
        raise CommandFailed(message, Exit.USAGE)
    if text is None:
        return "earliest" if to_earliest else "latest"
    return time_of(text)
