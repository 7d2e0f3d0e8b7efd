"""``kafkaio groups``: lists, describes, watches, resets and deletes groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from kafkaio._cli.groups.lag import watching
from kafkaio._cli.groups.reset import add_reset
from kafkaio._cli.shell.command import YES, Group, asynchronous
from kafkaio._cli.shell.completion import complete_groups
from kafkaio._cli.shell.session import CommandSession
from kafkaio._cli.shell.watch import Snapshot, watch
from kafkaio._cli.text.document import (
    INTEGER,
    PARTITION,
    TEXT,
    TIME,
    Document,
    fields,
    many,
    rows,
)
from kafkaio._cli.text.named import no_group, not_of_consumers, outcomes, partition_name
from kafkaio._cli.text.output import Table
from kafkaio._cli.text.values import chosen, has_pattern, partition_row
from kafkaio.errors import KafkaError

if TYPE_CHECKING:
    from kafkaio.admin import Admin, GroupDescription, GroupListing, GroupMember
    from kafkaio.admin._types import GroupTypeName

groups: Group = Group("groups", help="List, describe, reset and delete groups.")

#: The values of `kafkaio.GroupType` and `kafkaio.GroupState`, which are not loaded for
#: the help; a test compares them.
TYPES: Final = ("classic", "consumer", "share", "streams")
STATES: Final = (
    "PreparingRebalance",
    "CompletingRebalance",
    "Assigning",
    "Reconciling",
    "Stable",
    "Empty",
    "Dead",
    "NotReady",
)


_PARTITION_NAMES: Final = many(TEXT.doc("topic-partition"))


def _state_style(value: object) -> str:
    return {"Stable": "green", "Empty": "dim"}.get(str(value), "yellow")


_LISTED: Final = Document(
    groups=rows(
        group=TEXT,
        type=TEXT,
        protocol_type=TEXT.hidden,
        state=TEXT.or_null,
        coordinator=INTEGER,
    )
)
_MEMBERS: Final = rows(
    member_id=TEXT,
    # Of a static member (KIP-345).
    instance_id=TEXT.or_null,
    client_id=TEXT,
    host=TEXT,
    rack=TEXT.or_null.hidden,
    # Null in a classic group, as the target assignment is: both are of KIP-848.
    member_epoch=INTEGER.or_null.hidden,
    assignment=_PARTITION_NAMES,
    target_assignment=_PARTITION_NAMES.or_null.hidden,
)
_DESCRIBED: Final = Document(
    groups=rows(
        group=TEXT,
        type=TEXT,
        protocol_type=TEXT,
        state=TEXT,
        coordinator=INTEGER,
        assignor=TEXT,
        # Null in a classic group. The assignment is behind while its epoch is lower.
        group_epoch=INTEGER.or_null,
        assignment_epoch=INTEGER.or_null,
        members=_MEMBERS,
    )
)
_WATCHED: Final = fields(
    time=TIME.hidden,
    group=TEXT,
    type=TEXT,
    state=TEXT.or_null.column(style=_state_style),
    members=INTEGER.or_null,
    partitions=INTEGER.or_null,
    lag=INTEGER.or_null,
    coordinator=INTEGER,
).doc("A line of --jsonl.")
_OFFSETS: Final = Document(
    offsets=rows(
        group=TEXT,
        **PARTITION,
        offset=INTEGER,
        leader_epoch=INTEGER.or_null.hidden,
        metadata=TEXT,
    )
)
_NAMES: Final = Document(groups=rows(group=TEXT))
_DELETED_OFFSETS: Final = Document(offsets=rows(group=TEXT, **PARTITION))
_REMOVED: Final = Document(
    members=rows(group=TEXT, member=TEXT.doc("The instance id, or the member id."))
)


def _filtered(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options of commands that select among all groups."""
    for decorate in (
        click.option(
            "--type",
            "types",
            multiple=True,
            type=click.Choice(TYPES, case_sensitive=False),
            help="Only groups of a type; can be repeated.",
        ),
        click.option(
            "--state",
            "states",
            multiple=True,
            type=click.Choice(STATES, case_sensitive=False),
            help="Only groups in a state; can be repeated.",
        ),
        click.option("--regex", is_flag=True, help="Groups are regular expressions."),
        click.argument("patterns", nargs=-1, shell_complete=complete_groups),
    ):
        function = decorate(function)
    return function


async def _listed(
    admin: Admin,
    patterns: Sequence[str],
    *,
    regex: bool,
    states: Sequence[str],
    types: Sequence[str],
    timeout: float | None = None,
) -> list[GroupListing]:
    """Return the groups that match."""
    from kafkaio.admin import GroupState, GroupType

    known = await admin.list_groups(
        states=[*map(GroupState, states)] or None,
        types=[*map(GroupType, types)] or None,
        timeout=timeout,
    )
    names = chosen("group", patterns, known, regex=regex)
    return [known[name] for name in names if name in known]


async def _names(
    admin: Admin,
    patterns: Sequence[str],
    *,
    regex: bool,
    types: Iterable[GroupTypeName] | None = None,
) -> list[str]:
    """Return the names of the groups that match patterns."""
    # Plain names need no list: each coordinator would be asked for its groups.
    if patterns and not has_pattern(patterns, regex=regex):
        return list(dict.fromkeys(patterns))
    known = await admin.list_groups(types=types)
    return chosen("group", patterns, known, regex=regex)


# ---- list, describe, watch ----------------------------------------------------------


@groups.command("list", prints=_LISTED)
@_filtered
@asynchronous
async def list_groups(
    session: CommandSession, patterns: tuple[str, ...], **options: Any
) -> None:
    """List the groups of all types."""
    async with session.admin() as admin:
        listed = await _listed(admin, patterns, **options)
    results: dict[str, GroupListing | KafkaError] = {it.group_id: it for it in listed}
    # With a filter, a named group that is not listed may exist and not pass.
    if not any(options.values()):
        for name in patterns:
            if name not in results and not has_pattern([name], regex=False):
                results[name] = no_group(name)
    found = session.good(results)
    listings = [
        {
            "group": each.group_id,
            "type": each.type,
            "protocol_type": each.protocol_type,
            "state": each.state,
            "coordinator": each.coordinator,
        }
        for each in found.values()
    ]
    session.show(_LISTED, groups=listings)


@groups.command("describe", prints=_DESCRIBED)
@click.argument("patterns", nargs=-1, shell_complete=complete_groups)
@click.option("--regex", is_flag=True, help="Groups are regular expressions.")
@asynchronous
async def describe_groups(
    session: CommandSession, patterns: tuple[str, ...], *, regex: bool
) -> None:
    """Describe groups of consumers and their members.

    `kafkaio lag` shows their offsets.
    """
    async with session.admin() as admin:
        names = await _names(
            admin, patterns, regex=regex, types=("classic", "consumer")
        )
        results = await outcomes(admin.describe_consumer_groups(names))
        # For a group of another type the broker's error is replaced by one that names
        # the command to use.
        failed = [n for n, it in results.items() if isinstance(it, KafkaError)]
        found = session.good({**results, **await not_of_consumers(admin, failed)})
    documents = [_described(each) for each in found.values()]
    members = [
        {"group": each.group_id, "state": each.state, **_member(member)}
        for each in found.values()
        for member in each.members
    ]
    # A group without members has a row, too.
    members += [
        {"group": each.group_id, "state": each.state}
        for each in found.values()
        if not each.members
    ]
    columns = [*_DESCRIBED.row.only("group", "state"), *_MEMBERS.columns()]
    session.show(_DESCRIBED, Table(members, columns), groups=documents)


def _described(group: GroupDescription) -> dict[str, object]:
    return {
        "group": group.group_id,
        "type": group.type,
        "protocol_type": group.protocol_type,
        "state": group.state,
        "coordinator": group.coordinator,
        "assignor": group.assignor,
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "members": [_member(each) for each in group.members],
    }


def _member(member: GroupMember) -> dict[str, object]:
    target = member.target_assignment
    return {
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "client_id": member.client_id,
        "host": member.host,
        "rack": member.rack,
        "member_epoch": member.member_epoch,
        "assignment": sorted(member.assignment),
        "target_assignment": None if target is None else sorted(target),
    }


@groups.command("watch", prints={"watch": _WATCHED})
@_filtered
@watching
@asynchronous
async def watch_groups(
    session: CommandSession,
    patterns: tuple[str, ...],
    *,
    interval: float,
    rounds: int | None,
    **options: Any,
) -> None:
    """Show groups, their members and their lag again and again, until Ctrl+C."""
    async with session.admin() as admin:

        async def observe(seconds: float) -> Snapshot:
            found = await _listed(admin, patterns, timeout=seconds, **options)
            seen = await _watched(admin, found, seconds)
            return Snapshot(seen, [Table(seen, _WATCHED.columns())])

        await watch(session, observe, interval=interval, rounds=rounds)


async def _watched(
    admin: Admin, listed: Sequence[GroupListing], seconds: float
) -> list[dict[str, object]]:
    # Share groups and streams groups have neither of these figures. A group whose
    # figures fail stays in the table, without them.
    names = [it.group_id for it in listed if str(it.type) in {"classic", "consumer"}]
    described = await outcomes(admin.describe_consumer_groups(names, timeout=seconds))
    lags = await outcomes(admin.lag(names, timeout=seconds))
    seen: list[dict[str, object]] = []
    for each in listed:
        members = getattr(described.get(each.group_id), "members", None)
        behind: Any = lags.get(each.group_id)
        partitions = getattr(behind, "partitions", None)
        seen.append(
            {
                "group": each.group_id,
                "type": each.type,
                "state": each.state,
                "members": None if members is None else len(members),
                "partitions": None if partitions is None else len(partitions),
                "lag": None if partitions is None else behind.total,
                "coordinator": each.coordinator,
            }
        )
    return seen


# ---- offsets ------------------------------------------------------------------------


@groups.command("offsets", prints=_OFFSETS)
@click.argument("patterns", nargs=-1, shell_complete=complete_groups)
@click.option("--regex", is_flag=True, help="Groups are regular expressions.")
@click.option(
    "--require-stable", is_flag=True, help="Wait for transactions that are open."
)
@asynchronous
async def group_offsets(
    session: CommandSession,
    patterns: tuple[str, ...],
    *,
    regex: bool,
    require_stable: bool,
) -> None:
    """Show what groups have committed."""
    async with session.admin() as admin:
        names = await _names(
            admin, patterns, regex=regex, types=("classic", "consumer")
        )
        results = await outcomes(
            admin.list_consumer_group_offsets(names, require_stable=require_stable)
        )
        failed = [n for n, it in results.items() if isinstance(it, KafkaError)]
        # Brokers answer for a group that does not exist as for one without offsets.
        empty = [
            name
            for name, it in results.items()
            if not isinstance(it, KafkaError) and set(it.values()) <= {None}
        ]
        errors = await not_of_consumers(admin, failed)
        errors |= await not_of_consumers(admin, empty, unknown=True)
        found = session.good({**results, **errors})
    offsets = [
        {
            "group": group,
            **partition_row(partition),
            "offset": it.offset,
            "leader_epoch": it.leader_epoch if it.leader_epoch >= 0 else None,
            "metadata": it.metadata,
        }
        for group, committed in found.items()
        for partition, it in committed.items()
        if it is not None
    ]
    session.show(_OFFSETS, offsets=offsets)


add_reset(groups)


# ---- delete -------------------------------------------------------------------------


@groups.command("delete", prints=_NAMES)
@click.argument("patterns", nargs=-1, required=True, shell_complete=complete_groups)
@click.option("--regex", is_flag=True, help="Groups are regular expressions.")
@YES
@asynchronous
async def delete_groups(
    session: CommandSession, patterns: tuple[str, ...], *, regex: bool, yes: bool
) -> None:
    """Delete groups that have no members, with their committed offsets."""
    async with session.admin() as admin:
        names = await _names(admin, patterns, regex=regex)
        effects = [f"delete group {name} and its committed offsets" for name in names]
        session.confirm(effects, yes=yes)
        results = await outcomes(admin.delete_consumer_groups(names))
    session.show(_NAMES, groups=[{"group": name} for name in session.good(results)])


@groups.command("delete-offsets", prints=_DELETED_OFFSETS)
@click.argument("group", shell_complete=complete_groups)
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC[:PARTITIONS]...")
@YES
@asynchronous
async def delete_offsets(
    session: CommandSession, group: str, topics: tuple[str, ...], *, yes: bool
) -> None:
    """Delete what a group has committed for topics that it does not read."""
    from kafkaio._cli.topics.offsets import partitions_of

    async with session.admin() as admin:
        wanted = await partitions_of(session, admin, topics)
        effects = [
            f"delete the offset of group {group} in {partition_name(tp)}"
            for tp in wanted
        ]
        session.confirm(effects, yes=yes)
        results = await outcomes(admin.delete_consumer_group_offsets(group, wanted))
    deleted = [{"group": group, **partition_row(tp)} for tp in session.good(results)]
    session.show(_DELETED_OFFSETS, offsets=deleted)


@groups.command("remove-members", prints=_REMOVED)
@click.argument("group", shell_complete=complete_groups)
@click.option(
    "--instance-id",
    "instance_ids",
    multiple=True,
    metavar="ID",
    help="A static member; can be repeated.",
)
@click.option("--all", "every", is_flag=True, help="All members, instead.")
@click.option("--reason", help="For the log of the broker.")
@YES
@asynchronous
async def remove_members(
    session: CommandSession,
    group: str,
    *,
    instance_ids: tuple[str, ...],
    every: bool,
    reason: str | None,
    yes: bool,
) -> None:
    """Remove members from a group, which rebalances without them."""
    # As in Java's Admin: static members by their id, or all members (KIP-345).
    if bool(instance_ids) == every:
        raise click.UsageError("give either --instance-id or --all")
    who = ", ".join(instance_ids) if instance_ids else "all members"
    async with session.admin() as admin:
        session.confirm([f"remove {who} from group {group}"], yes=yes)
        results = await outcomes(
            admin.remove_members_from_consumer_group(
                group, instance_ids or None, reason=reason
            )
        )
    removed = [{"group": group, "member": each} for each in session.good(results)]
    session.show(_REMOVED, members=removed)
