"""``kafkaio elect``: elects the leaders of partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from kafkaio._cli.shell.command import YES, Group, asynchronous
from kafkaio._cli.shell.session import CommandSession
from kafkaio._cli.text.document import BOOLEAN, PARTITION, Document, rows
from kafkaio._cli.text.exits import CommandFailed, Exit
from kafkaio._cli.text.named import by_name, outcomes, partition_name, partitions_meant
from kafkaio._cli.text.values import partition_row
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    from kafkaio.admin import Admin
    from kafkaio.admin._types import ElectionName

_ELECTIONS: Final = Document(
    elections=rows(
        **PARTITION, elected=BOOLEAN.doc("false if it is the leader already.")
    )
)

elect: Group = Group("elect", help="Elect the leaders of partitions.")


@elect.command("preferred", prints=_ELECTIONS)
@click.argument("where", nargs=-1, metavar="TOPIC[:PARTITIONS]...")
@click.option("--all", "everything", is_flag=True, help="All partitions.")
@asynchronous
async def _preferred(
    session: CommandSession, where: tuple[str, ...], *, everything: bool
) -> None:
    """Let the first replica lead, where it is in sync."""
    # Exactly one of both: no names must not mean all partitions.
    if bool(where) == everything:
        raise CommandFailed("name topics or partitions, or --all", Exit.USAGE)
    async with session.admin() as admin:
        partitions = None if everything else await partitions_meant(admin, where)
        await _elect(session, admin, "preferred", partitions)


@elect.command("unclean", prints=_ELECTIONS)
@click.argument("where", nargs=-1, required=True, metavar="TOPIC[:PARTITIONS]...")
@YES
@asynchronous
async def _unclean(
    session: CommandSession, where: tuple[str, ...], *, yes: bool
) -> None:
    """Let any live replica lead where no replica in sync is alive. May lose records."""
    async with session.admin() as admin:
        partitions = await partitions_meant(admin, where)
        names = map(partition_name, partitions)
        effects = [f"elect, and maybe lose records of: {name}" for name in names]
        session.confirm(effects, yes=yes)
        await _elect(session, admin, "unclean", partitions)


async def _elect(
    session: CommandSession,
    admin: Admin,
    election: ElectionName,
    partitions: list[TopicPartition] | None,
) -> None:
    results = await outcomes(admin.elect_leaders(election, partitions))
    done = session.good(by_name(results, partition_name))
    elections = [
        {**partition_row(tp), "elected": new} for tp, new in sorted(done.items())
    ]
    session.show(_ELECTIONS, elections=elections)
