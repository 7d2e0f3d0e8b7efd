"""``kafkaio groups``: lists, describes, watches, resets and deletes groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from kafkaio._cli.groups.lag import watching
from kafkaio._cli.groups.reset import add_reset
from kafkaio._cli.shell.command import YES, Group, asynchronous
from kafkaio._cli.shell.completion import complete_groups
from kafkaio._cli.shell.session import Session
from kafkaio._cli.shell.watch import Look, watch
from kafkaio._cli.text.named import no_group, not_of_consumers, outcomes, partition_name
from kafkaio._cli.text.output import Column, Table
from kafkaio._cli.text.values import chosen, has_pattern, partition_row
from kafkaio.errors import KafkaError

if TYPE_CHECKING:
    from kafkaio.admin import Admin, GroupDescription, GroupListing, GroupMember

groups: Group = Group("groups", help="List, describe, reset and delete groups.")

#: The values of `kafkaio.GroupType` and `kafkaio.GroupState`, which are not loaded for
#: the help.
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


def _filtered(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options of commands that choose among all groups."""
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
    """Return the groups that are meant."""
    known = await admin.list_groups(
        states=states or None, types=types or None, timeout=timeout
    )
    names = chosen("group", patterns, known, regex=regex)
    return [known[name] for name in names if name in known]


async def _names(
    admin: Admin,
    patterns: Sequence[str],
    *,
    regex: bool,
    types: Sequence[str] | None = None,
) -> list[str]:
    """Return the names of the groups that patterns mean."""
    if patterns and not has_pattern(patterns, regex=regex):
        return list(dict.fromkeys(patterns))
    known = await admin.list_groups(types=types)
    return chosen("group", patterns, known, regex=regex)


# ---- list, describe, watch ----------------------------------------------------------


@groups.command("list")
@_filtered
@asynchronous
async def list_groups(
    session: Session, patterns: tuple[str, ...], **options: Any
) -> None:
    """List the groups of all types."""
    async with session.admin() as admin:
        listed = await _listed(admin, patterns, **options)
    results: dict[str, GroupListing | KafkaError] = {it.group_id: it for it in listed}
    if not any(options.values()):  # else it may be there, and not be wanted
        for name in patterns:
            if name not in results and not has_pattern([name], regex=False):
                results[name] = no_group(name)
    found = session.good(results)
    rows = [
        {
            "group": each.group_id,
            "type": each.type,
            "protocol_type": each.protocol_type,
            "state": each.state,
            "coordinator": each.coordinator,
        }
        for each in found.values()
    ]
    session.show(
        {"groups": rows}, Table(rows, ("group", "type", "state", "coordinator"))
    )


_MEMBERS = (
    "group",
    "state",
    "member_id",
    "instance_id",
    "client_id",
    "host",
    "assignment",
)


@groups.command("describe")
@click.argument("patterns", nargs=-1, shell_complete=complete_groups)
@click.option("--regex", is_flag=True, help="Groups are regular expressions.")
@asynchronous
async def describe_groups(
    session: Session, patterns: tuple[str, ...], *, regex: bool
) -> None:
    """Describe groups of consumers and their members.

    `kafkaio lag` shows their offsets.
    """
    async with session.admin() as admin:
        names = await _names(
            admin, patterns, regex=regex, types=("classic", "consumer")
        )
        results = await outcomes(admin.describe_consumer_groups(names))
        failed = [n for n, it in results.items() if isinstance(it, KafkaError)]
        found = session.good({**results, **await not_of_consumers(admin, failed)})
    documents = [_described(each) for each in found.values()]
    rows = [
        {"group": each.group_id, "state": each.state, **_member(member)}
        for each in found.values()
        for member in each.members
    ]
    rows += [
        {"group": each.group_id, "state": each.state}
        for each in found.values()
        if not each.members
    ]
    session.show({"groups": documents}, Table(rows, _MEMBERS))


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


@groups.command("watch")
@_filtered
@watching
@asynchronous
async def watch_groups(
    session: Session,
    patterns: tuple[str, ...],
    *,
    interval: float,
    rounds: int | None,
    **options: Any,
) -> None:
    """Show groups, their members and their lag again and again, until Ctrl+C."""
    async with session.admin() as admin:

        async def look(seconds: float) -> Look:
            found = await _listed(admin, patterns, timeout=seconds, **options)
            rows = await _watched(admin, found, seconds)
            return Look(rows, [Table(rows, _WATCHED)])

        await watch(session, look, interval=interval, rounds=rounds)


def _state_style(value: object) -> str:
    return {"Stable": "green", "Empty": "dim"}.get(str(value), "yellow")


_WATCHED = (
    "group",
    "type",
    Column("state", style=_state_style),
    "members",
    "partitions",
    "lag",
    "coordinator",
)


async def _watched(
    admin: Admin, listed: Sequence[GroupListing], seconds: float
) -> list[dict[str, object]]:
    names = [it.group_id for it in listed if str(it.type) in {"classic", "consumer"}]
    described = await outcomes(admin.describe_consumer_groups(names, timeout=seconds))
    lags = await outcomes(admin.lag(names, timeout=seconds))
    rows = []
    for each in listed:
        members = getattr(described.get(each.group_id), "members", None)
        behind: Any = lags.get(each.group_id)
        partitions = getattr(behind, "partitions", None)
        rows.append(
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
    return rows


# ---- offsets ------------------------------------------------------------------------


@groups.command("offsets")
@click.argument("patterns", nargs=-1, shell_complete=complete_groups)
@click.option("--regex", is_flag=True, help="Groups are regular expressions.")
@click.option(
    "--require-stable", is_flag=True, help="Wait for transactions that are open."
)
@asynchronous
async def group_offsets(
    session: Session, patterns: tuple[str, ...], *, regex: bool, require_stable: bool
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
        empty = [
            name
            for name, it in results.items()
            if not isinstance(it, KafkaError) and set(it.values()) <= {None}
        ]
        errors = await not_of_consumers(admin, failed)
        errors |= await not_of_consumers(admin, empty, unknown=True)
        found = session.good({**results, **errors})
    rows = [
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
    session.show(
        {"offsets": rows},
        Table(rows, ("group", "topic", "partition", "offset", "metadata")),
    )


add_reset(groups)


# ---- delete -------------------------------------------------------------------------


@groups.command("delete")
@click.argument("patterns", nargs=-1, required=True, shell_complete=complete_groups)
@click.option("--regex", is_flag=True, help="Groups are regular expressions.")
@YES
@asynchronous
async def delete_groups(
    session: Session, patterns: tuple[str, ...], *, regex: bool, yes: bool
) -> None:
    """Delete groups that have no members, with their committed offsets."""
    async with session.admin() as admin:
        names = await _names(admin, patterns, regex=regex)
        effects = [f"delete group {name} and its committed offsets" for name in names]
        session.confirm(effects, yes=yes)
        results = await outcomes(admin.delete_consumer_groups(names))
    _show_names(session, session.good(results))


def _show_names(session: Session, names: Mapping[str, None]) -> None:
    rows = [{"group": name} for name in names]
    session.show({"groups": rows}, Table(rows, ("group",)))


@groups.command("delete-offsets")
@click.argument("group", shell_complete=complete_groups)
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC[:PARTITIONS]...")
@YES
@asynchronous
async def delete_offsets(
    session: Session, group: str, topics: tuple[str, ...], *, yes: bool
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
    rows = [{"group": group, **partition_row(tp)} for tp in session.good(results)]
    session.show({"offsets": rows}, Table(rows, ("group", "topic", "partition")))


@groups.command("remove-members")
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
    session: Session,
    group: str,
    *,
    instance_ids: tuple[str, ...],
    every: bool,
    reason: str | None,
    yes: bool,
) -> None:
    """Remove members from a group, which rebalances without them."""
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
    rows = [{"group": group, "member": each} for each in session.good(results)]
    session.show({"members": rows}, Table(rows, ("group", "member")))
