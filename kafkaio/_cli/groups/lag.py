"""``kafkaio lag``: how far groups are behind, once or repeatedly."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import click

from kafkaio._cli.shell.command import asynchronous, command
from kafkaio._cli.shell.completion import complete_groups
from kafkaio._cli.shell.session import CommandSession
from kafkaio._cli.shell.watch import Snapshot, watch
from kafkaio._cli.text.document import (
    INTEGER,
    NUMBER,
    PARTITION,
    TEXT,
    TIME,
    Document,
    Shape,
    fields,
    rows,
)
from kafkaio._cli.text.exits import Exit, short
from kafkaio._cli.text.named import not_of_consumers, outcomes
from kafkaio._cli.text.output import Row, Table, TableColumn
from kafkaio._cli.text.values import Seconds, chosen, has_pattern, partition_row
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    from kafkaio.admin import Admin, GroupLag


def watching(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options of commands that watch."""
    for decorate in (
        click.option(
            "--rounds", type=click.IntRange(1), help="End after so many looks."
        ),
        click.option(
            "--interval",
            type=Seconds(0.1),
            default=2.0,
            show_default=True,
            metavar="SECONDS",
            help="Time between two looks.",
        ),
    ):
        function = decorate(function)
    return function


def _style(value: object) -> str:
    if not isinstance(value, int):
        return "dim"
    return "green" if not value else "yellow"


_CONSUMED: Final = NUMBER.or_null.column("CONSUMED/S").hidden
_PRODUCED: Final = NUMBER.or_null.column("PRODUCED/S").hidden
_RATES: Final = ("consumed_per_second", "produced_per_second")
_PARTITION: Final[Mapping[str, Shape]] = {
    "group": TEXT,
    **PARTITION,
    "committed": INTEGER.or_null,
    "end": INTEGER.or_null,
    "lag": INTEGER.or_null.column(style=_style),
    "seconds_behind": NUMBER.or_null.doc("Only with --time.").hidden,
    "consumed_per_second": _CONSUMED.doc("Only with --watch, from the second look on."),
    "produced_per_second": _PRODUCED.doc("Likewise."),
    "error": TEXT.or_null.hidden,
}
_GROUP: Final[Mapping[str, Shape]] = {
    "group": TEXT,
    "partitions": INTEGER,
    "lag": INTEGER.column(style=_style),
    "seconds_behind": NUMBER.or_null.hidden,
    "consumed_per_second": _CONSUMED,
    "produced_per_second": _PRODUCED,
}
_LAG: Final = Document(partitions=rows(**_PARTITION), groups=rows(**_GROUP))
_LINE: Final = fields(time=TIME.hidden, **_PARTITION).doc(
    "A line of --watch --jsonl: a partition."
)
_TOTAL_LINE: Final = fields(time=TIME.hidden, **_GROUP).doc(
    "A line of --watch --total --jsonl: a group."
)


@command(
    "lag",
    help="Show how far groups are behind.",
    prints={"lag": _LAG, "line": _LINE, "total_line": _TOTAL_LINE},
)
@click.argument("groups", nargs=-1, shell_complete=complete_groups)
@click.option("--regex", is_flag=True, help="Groups are regular expressions.")
@click.option("--total", is_flag=True, help="Only the sum of each group.")
@click.option(
    "--time",
    "with_time",
    is_flag=True,
    help="Read the next record of each partition, for the seconds behind.",
)
@click.option("--read-committed", is_flag=True, help="Up to the last stable offset.")
@click.option(
    "--watch", "-w", "is_watching", is_flag=True, help="Look again and again."
)
@watching
@asynchronous
async def lag(session: CommandSession, groups: tuple[str, ...], **options: Any) -> None:
    """Show how far groups are behind the ends of the logs.

    Groups can be globs; without any, it is all groups of consumers. With --watch there
    are rates as well, of what is committed and what is produced.
    """
    async with session.admin() as admin:
        view = _View(session, admin, groups, options)
        if options["is_watching"]:
            await watch(
                session,
                view.observe,
                interval=options["interval"],
                rounds=options["rounds"],
            )
            return
        found = session.good(await view.ask(None))
        partitions, totals = await view.rows(found)
    for row in partitions:
        if row["error"] is not None:
            session.note(f"{row['topic']}-{row['partition']}: {row['error']}")
            session.exit_with(Exit.PARTIAL)
    tables = [Table(totals, view.total_columns())]
    if not options["total"]:
        tables.insert(0, Table(partitions, view.columns()))
    # In a pipe one table only, so that all lines have the same columns.
    if not session.out.is_terminal:
        del tables[1:]
    session.show(_LAG, *tables, partitions=partitions, groups=totals)


@dataclass
class _View:
    """Takes snapshots, and compares each with the one before for the rates."""

    session: CommandSession
    admin: Admin
    groups: Sequence[str]
    options: Mapping[str, Any]
    #: Committed offset and end by group and partition, in the snapshot before.
    before: dict[tuple[str, TopicPartition], tuple[int | None, int | None]] = field(
        default_factory=dict
    )
    #: The monotonic time of that snapshot; None before the first one.
    seen_at: float | None = None

    async def ask(self, timeout: float | None) -> Mapping[str, Any]:
        """Ask for the lag of the groups that match now.

        Patterns are matched again for each snapshot: groups come and go.
        """
        is_regex = self.options["regex"]
        names = list(dict.fromkeys(self.groups))
        if not names or has_pattern(names, regex=is_regex):
            known = await self.admin.list_groups(
                types=("classic", "consumer"), timeout=timeout
            )
            names = chosen("group", self.groups, known, regex=is_regex)
        found = await outcomes(
            self.admin.lag(
                names,
                isolation_level=(
                    "read_committed"
                    if self.options["read_committed"]
                    else "read_uncommitted"
                ),
                timeout=timeout,
            )
        )
        # A watch shows a group as soon as it has an offset, so a group without one is
        # not a failure there.
        if timeout is not None:
            return found
        empty = [name for name, it in found.items() if not getattr(it, "partitions", 0)]
        return {**found, **await not_of_consumers(self.admin, empty, unknown=True)}

    async def observe(self, seconds: float) -> Snapshot:
        """Return what is seen now, for `watch`."""
        found = await self.ask(seconds)
        errors = [each for each in found.values() if isinstance(each, Exception)]
        # One group that fails is enough: the table would lack it without a word.
        if errors:
            raise errors[0]
        rows, totals = await self.rows(found)
        # The partitions come first, so the sums stay at the bottom of the screen.
        tables = [Table(totals, self.total_columns())]
        if not self.options["total"]:
            tables.insert(0, Table(rows, self.columns()))
        return Snapshot(totals if self.options["total"] else rows, tables)

    async def rows(
        self, found: Mapping[str, GroupLag]
    ) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
        """Return a row for each partition, and one for each group."""
        import time

        # Before the clock is read: fetching records takes up to some seconds.
        behind = await self._seconds_behind(found)
        now = time.monotonic()
        elapsed = now - self.seen_at if self.seen_at is not None else 0.0
        rows, totals, seen = [], [], {}
        for group, each in found.items():
            own = []
            for partition, it in each.partitions.items():
                committed = it.committed.offset if it.committed is not None else None
                place = group, partition
                seen[place] = committed, it.end
                old = self.before.get(place, (None, None))
                own.append(
                    {
                        "group": group,
                        **partition_row(partition),
                        "committed": committed,
                        "end": it.end,
                        "lag": it.lag,
                        "seconds_behind": behind.get(place),
                        "consumed_per_second": _rate(old[0], committed, elapsed),
                        "produced_per_second": _rate(old[1], it.end, elapsed),
                        "error": short(it.error) if it.error is not None else None,
                    }
                )
            rows += own
            totals.append(_total(group, own))
        self.before, self.seen_at = seen, now
        return rows, totals

    async def _seconds_behind(
        self, found: Mapping[str, GroupLag]
    ) -> dict[tuple[str, TopicPartition], float]:
        if not self.options["with_time"]:
            return {}
        from kafkaio._cli.groups.next_records import ages

        wanted: dict[tuple[str, TopicPartition], int] = {}
        behind: dict[tuple[str, TopicPartition], float] = {}
        for group, each in found.items():
            for partition, it in each.partitions.items():
                if it.committed is not None and it.lag:
                    wanted[group, partition] = it.committed.offset
                # Without lag no record is waiting; it is not fetched.
                elif it.lag == 0:
                    behind[group, partition] = 0.0
        return behind | await ages(self.session, wanted)

    def columns(self) -> list[TableColumn]:
        """Return the columns of the partitions."""
        return _LINE.columns(*self._more())

    def total_columns(self) -> list[TableColumn]:
        """Return the columns of the groups."""
        return _TOTAL_LINE.columns(*self._more())

    def _more(self) -> list[str]:
        behind = ["seconds_behind"] if self.options["with_time"] else []
        return [*behind, *(_RATES if self.options["is_watching"] else ())]


def _rate(before: int | None, after: int | None, elapsed: float) -> float | None:
    # The first snapshot has no rate, nor a partition that was not committed before.
    if before is None or after is None or elapsed <= 0:
        return None
    return round((after - before) / elapsed, 1)


def _total(group: str, rows: Sequence[Row]) -> dict[str, object]:
    """Return the row of a group: sums, and the seconds of the slowest partition."""

    def known(key: str) -> list[float]:
        return [v for row in rows if isinstance(v := row[key], int | float)]

    behind = known("seconds_behind")
    consumed, produced = known("consumed_per_second"), known("produced_per_second")
    return {
        "group": group,
        "partitions": len(rows),
        "lag": int(sum(known("lag"))),
        "seconds_behind": max(behind) if behind else None,
        "consumed_per_second": round(sum(consumed), 1) if consumed else None,
        "produced_per_second": round(sum(produced), 1) if produced else None,
    }
