"""``kafkaio reassign``: plans and performs moves of replicas to other brokers.

It reads and writes the files of kafka-reassign-partitions; ``plan --json`` prints such
a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import click

from kafkaio._cli.reassignment.files import (
    BadFile,
    assignment_document,
    read_assignment,
    read_topics,
)
from kafkaio._cli.reassignment.plan import Impossible, moved_replicas, plan
from kafkaio._cli.shell.command import Group, asynchronous
from kafkaio._cli.shell.session import CommandSession
from kafkaio._cli.text.document import (
    BOOLEAN,
    INTEGER,
    PARTITION,
    TEXT,
    Document,
    constant,
    many,
    one_of,
    rows,
)
from kafkaio._cli.text.exits import CommandFailed, Exit, usage
from kafkaio._cli.text.named import by_name, known_brokers, outcomes, partition_name
from kafkaio._cli.text.output import Table
from kafkaio._cli.text.sizes import BadSize, size_of
from kafkaio._cli.text.source import text_of
from kafkaio._cli.text.values import partition_row
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    from kafkaio._cli.reassignment.moves import Replicas
    from kafkaio.admin import Admin

_NODES: Final = many(INTEGER)
_REPLICAS: Final = rows(**PARTITION, replicas=_NODES, log_dirs=many(TEXT))
#: The table of ``plan`` is that of ``execute``; its document is the tool's file.
_MOVES: Final = rows(**PARTITION, before=_NODES, after=_NODES)
_PLAN: Final = Document(
    version=constant(1),
    partitions=_REPLICAS.doc("As kafka-reassign-partitions reads it."),
    before=_REPLICAS.doc("To undo it."),
    copied_replicas=INTEGER,
)
_MOVED: Final = Document(executed=BOOLEAN, partitions=_MOVES, copied_replicas=INTEGER)
_STATES: Final = Document(
    done=BOOLEAN,
    partitions=rows(
        **PARTITION,
        replicas=_NODES,
        wanted=_NODES,
        state=one_of("done", "moving", "different"),
    ),
)
_CANCELLED: Final = Document(
    executed=BOOLEAN, partitions=rows(**PARTITION, adding=_NODES, removing=_NODES)
)
_FILE: Final = click.argument("file", metavar="FILE")
_EXECUTE: Final = click.option(
    "--execute", "--yes", "execute", is_flag=True, help="Do it; else it is only shown."
)


reassign: Group = Group(
    "reassign", help="Plan, start, watch and cancel moves of replicas."
)


# ---- plan ----------------------------------------------------------------------------


@reassign.command("plan", prints=_PLAN)
@click.argument("topic", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All topics but internal ones.")
@click.option(
    "--topics-to-move-json-file",
    "topics_file",
    metavar="FILE",
    help="The topics, as kafka-reassign-partitions reads them.",
)
@click.option("--broker", type=int, multiple=True, metavar="ID", help="Only on these.")
@click.option(
    "--without", type=int, multiple=True, metavar="ID", help="On none of these."
)
@click.option(
    "--replication-factor",
    type=click.IntRange(min=1),
    metavar="N",
    help="Replicas of each partition; as many as there are by default.",
)
@click.option("--disable-rack-aware", is_flag=True, help="Racks do not count.")
@asynchronous
async def _plan(  # noqa: PLR0913 - an argument for each option
    session: CommandSession,
    topic: tuple[str, ...],
    topics_file: str | None,
    broker: tuple[int, ...],
    without: tuple[int, ...],
    replication_factor: int | None,
    *,
    everything: bool,
    disable_rack_aware: bool,
) -> None:
    """Balance the replicas of topics over brokers and racks, with few moves.

    With --json it prints a file for ``execute`` and for kafka-reassign-partitions.

    Example: kafkaio reassign plan --all --json > moves.json

    Example: kafkaio reassign plan orders --without 3 --json > moves.json
    """
    from kafkaio._cli.reassignment.moves import replicas_of

    if sum(map(bool, (topic, everything, topics_file))) != 1:
        message = "name topics, or give --all or --topics-to-move-json-file"
        raise CommandFailed(message, Exit.USAGE)
    async with session.admin() as admin:
        racks = await _racks(admin, broker, without, aware=not disable_rack_aware)
        topics = _topics_of(topics_file) if topics_file else [*dict.fromkeys(topic)]
        current = await replicas_of(admin, topics or await admin.list_topics())
    # The plan has the partitions that change; it is empty if all is balanced.
    try:
        wanted = plan(current, racks, replication_factor)
    except Impossible as error:
        raise CommandFailed(str(error)) from None
    before = assignment_document({tp: current[tp] for tp in wanted})
    session.show(
        _PLAN,
        Table(_rows(current, wanted), _MOVES.columns()),
        **assignment_document(wanted),
        before=before["partitions"],
        copied_replicas=moved_replicas(current, wanted),
    )


async def _racks(
    admin: Admin, chosen: tuple[int, ...], without: tuple[int, ...], *, aware: bool
) -> dict[int, str | None]:
    """The brokers that may have replicas, with their racks."""
    alive = {it.node_id: it.rack for it in (await admin.describe_cluster()).brokers}
    return {
        node: alive[node] if aware else None
        for node in known_brokers(chosen, alive)
        if node not in without
    }


def _rows(current: Replicas, wanted: Replicas) -> list[dict[str, object]]:
    return [
        {**partition_row(tp), "before": current.get(tp), "after": after}
        for tp, after in sorted(wanted.items())
    ]


# ---- execute, verify, cancel ---------------------------------------------------------


@reassign.command("execute", prints=_MOVED)
@_FILE
@click.option(
    "--throttle",
    metavar="SIZE",
    help="Bytes per second for each broker, such as 10MB, until all have moved.",
)
@click.option("--no-wait", is_flag=True, help="Do not wait until all have moved.")
@_EXECUTE
@asynchronous
async def _execute(
    session: CommandSession,
    file: str,
    throttle: str | None,
    *,
    no_wait: bool,
    execute: bool,
) -> None:
    """Move replicas as a file says; - reads stdin. Without --execute it is only shown.

    A throttle is removed when all have moved; with --no-wait, or if it is interrupted,
    ``verify --clear-throttle`` removes it.
    """
    from kafkaio._cli.reassignment.moves import (
        clear_throttle,
        set_throttle,
        wait_until_moved,
        wait_until_seen,
    )

    wanted, rate = _read(file), _rate(throttle)
    async with session.admin() as admin:
        current = await _current(admin, wanted)
        moves = _rows(current, wanted)
        copied = moved_replicas(current, wanted)
        if not execute:
            session.show(
                _MOVED, executed=False, partitions=moves, copied_replicas=copied
            )
            session.note("nothing was done: do it with --execute")
            return
        # The throttle comes first: a move begins at once, at full speed.
        if rate is not None:
            await set_throttle(admin, current, wanted, rate)
        done = await _start(session, admin, wanted)
        if not no_wait:
            # Only the moves that were accepted; a refused one would never end.
            await wait_until_moved(admin, list(done))
            await wait_until_seen(admin, {tp: wanted[tp] for tp in done})
            if rate is not None:
                await clear_throttle(admin, {tp.topic for tp in wanted})
    moves = _rows(current, {tp: wanted[tp] for tp in done})
    session.show(_MOVED, executed=True, partitions=moves, copied_replicas=copied)


async def _start(
    session: CommandSession,
    admin: Admin,
    wanted: Mapping[TopicPartition, tuple[int, ...] | None],
) -> list[TopicPartition]:
    results = await outcomes(admin.alter_partition_reassignments(wanted))
    return list(session.good(by_name(results, partition_name)))


@reassign.command("verify", prints=_STATES)
@_FILE
@click.option("--wait", is_flag=True, help="Wait until nothing moves any more.")
@click.option(
    "--clear-throttle", "clear", is_flag=True, help="Remove the throttle if all moved."
)
@asynchronous
async def _verify(
    session: CommandSession, file: str, *, wait: bool, clear: bool
) -> None:
    """Show how far the moves of a file have come; - reads stdin.

    The exit code is 1 unless all replicas are where the file wants them.
    """
    from kafkaio._cli.reassignment.moves import (
        clear_throttle,
        wait_until_moved,
        wait_until_seen,
    )

    wanted = _read(file)
    async with session.admin() as admin:
        if wait:
            await wait_until_moved(admin, list(wanted))
            await wait_until_seen(admin, wanted)
        current = await _current(admin, wanted)
        moving = await admin.list_partition_reassignments(wanted)
        states = [
            partition_row(tp)
            | {"replicas": current[tp], "wanted": there}
            | {"state": _state(tp in moving, current[tp], there)}
            for tp, there in sorted(wanted.items())
        ]
        is_done = all(row["state"] == "done" for row in states)
        # A throttle that is removed early would let the rest move at full speed.
        if clear and is_done:
            await clear_throttle(admin, {tp.topic for tp in wanted})
    session.show(_STATES, done=is_done, partitions=states)
    # For scripts that wait for the end of a move.
    if not is_done:
        session.exit_with(Exit.FAILED)


def _state(is_moving: bool, current: tuple[int, ...], wanted: tuple[int, ...]) -> str:  # noqa: FBT001
    # While a replica is added, the current ones include it and equal neither list.
    if is_moving:
        return "moving"
    return "done" if current == wanted else "different"


@reassign.command("cancel", prints=_CANCELLED)
@click.argument("file", metavar="[FILE]", required=False)
@click.option("--all", "everything", is_flag=True, help="Whatever moves.")
@_EXECUTE
@asynchronous
async def _cancel(
    session: CommandSession, file: str | None, *, everything: bool, execute: bool
) -> None:
    """Stop moves: those of a file, or all; replicas stay where they were before."""
    if (file is None) != everything:
        raise CommandFailed("give either a file or --all", Exit.USAGE)
    wanted = None if file is None else _read(file)
    async with session.admin() as admin:
        moving = await admin.list_partition_reassignments(wanted)
        moves = [
            partition_row(tp)
            | {"adding": it.adding_replicas, "removing": it.removing_replicas}
            for tp, it in moving.items()
        ]
        # None as the new replicas cancels a move in the protocol.
        done = (
            await _start(session, admin, dict.fromkeys(moving))
            if execute
            else list(moving)
        )
    moves = [row for row, tp in zip(moves, moving, strict=True) if tp in done]
    session.show(_CANCELLED, executed=execute, partitions=moves)
    if moves and not execute:
        session.note("nothing was done: do it with --execute")


async def _current(
    admin: Admin, wanted: Replicas
) -> dict[TopicPartition, tuple[int, ...]]:
    """The replicas of the partitions, all of which must exist."""
    from kafkaio._cli.reassignment.moves import replicas_of

    found = await replicas_of(admin, sorted({tp.topic for tp in wanted}))
    for tp in wanted:
        if tp not in found:
            raise CommandFailed(f"partition {partition_name(tp)} does not exist")
    return {tp: found[tp] for tp in wanted}


# ---- arguments -----------------------------------------------------------------------


def _read(file: str) -> dict[TopicPartition, tuple[int, ...]]:
    with usage(BadFile, prefix=f"{file}: "):
        return read_assignment(text_of(file))


def _topics_of(file: str) -> list[str]:
    with usage(BadFile, prefix=f"{file}: "):
        return read_topics(text_of(file))


def _rate(throttle: str | None) -> int | None:
    if throttle is None:
        return None
    with usage(BadSize, prefix="--throttle: "):
        rate = int(size_of(throttle))
    if rate < 1:
        raise CommandFailed("--throttle: it must be at least 1", Exit.USAGE)
    return rate
