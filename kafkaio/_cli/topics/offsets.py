"""``kafkaio offsets``: offsets of partitions: ends, offsets of a time, others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import click

from kafkaio._cli.shell.command import asynchronous, command
from kafkaio._cli.shell.completion import complete_topics
from kafkaio._cli.shell.session import CommandSession
from kafkaio._cli.text.document import (
    INTEGER,
    PARTITION,
    TEXT,
    TIME_OR_NULL,
    Document,
    rows,
)
from kafkaio._cli.text.named import outcomes
from kafkaio._cli.text.values import (
    chosen,
    moment_of,
    partition_row,
    partitions_of_topic,
    time_at,
)
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    from kafkaio.admin import Admin, TopicDescription


_OFFSETS: Final = Document(
    offsets=rows(
        **PARTITION,
        at=TEXT.doc("The place, as it was asked for."),
        offset=INTEGER.or_null,
        timestamp=TIME_OR_NULL,
    )
)


@command("offsets", help="Show offsets of partitions.", prints=_OFFSETS)
@click.argument(
    "topics", nargs=-1, metavar="TOPIC[:PARTITIONS]...", shell_complete=complete_topics
)
@click.option(
    "--at",
    "places",
    multiple=True,
    metavar="PLACE",
    help=(
        "earliest, latest, max-timestamp, earliest-local, latest-tiered, "
        "earliest-pending-upload, or a time: ISO 8601 or @MILLISECONDS. Can be "
        "repeated; earliest and latest by default."
    ),
)
@click.option("--regex", is_flag=True, help="Topics are regular expressions.")
@click.option("--internal", is_flag=True, help="Kafka's own topics as well.")
@click.option(
    "--read-committed", is_flag=True, help="latest is the last stable offset."
)
@asynchronous
async def offsets(
    session: CommandSession,
    topics: tuple[str, ...],
    *,
    places: tuple[str, ...],
    **more: bool,
) -> None:
    """Show offsets of partitions.

    For a time it is the first record of that time or a later one. The timestamp is that
    of the record, if the broker reports it. A topic can be a glob.
    """
    # Parsed before the cluster is reached: a mistake costs no connection.
    moments = {text: moment_of(text) for text in places or ("earliest", "latest")}
    async with session.admin() as admin:
        wanted = await partitions_of(
            session, admin, topics, regex=more["regex"], internal=more["internal"]
        )
        placed = []
        # One call for each place: a call has one place for each partition.
        for text, moment in moments.items():
            asked: Any = dict.fromkeys(wanted, moment)
            found = await outcomes(
                admin.list_offsets(
                    asked,
                    isolation_level=(
                        "read_committed"
                        if more["read_committed"]
                        else "read_uncommitted"
                    ),
                )
            )
            placed += [
                {
                    **partition_row(partition),
                    "at": text,
                    "offset": it.offset if it is not None else None,
                    "timestamp": time_at(it.timestamp if it is not None else None),
                }
                for partition, it in session.good(found).items()
            ]
    placed.sort(key=lambda row: (str(row["topic"]), int(str(row["partition"]))))
    session.show(_OFFSETS, offsets=placed)


async def partitions_of(
    session: CommandSession,
    admin: Admin,
    texts: Iterable[str],
    *,
    regex: bool = False,
    internal: bool = False,
) -> list[TopicPartition]:
    """Return the partitions of ``TOPIC`` or ``TOPIC:0,1``, globs included.

    Topics that do not exist are noted as failures.

    Args:
        session: the command.
        admin: asks the cluster.
        texts: the topics; all if empty.
        regex: whether the topics are regular expressions.
        internal: whether patterns match internal topics, too.
    """
    # A regular expression may contain a colon, so it takes no partitions.
    wanted = [(text, None) if regex else partitions_of_topic(text) for text in texts]
    known = await admin.list_topics(internal=internal)
    numbers: dict[str, list[int] | None] = {}
    for pattern, given in wanted or [("*", None)]:
        patterns = [pattern] if wanted else []
        names = chosen("topic", patterns, known, regex=regex)
        for name in names:
            before = numbers.get(name, [])
            # None stands for all partitions. A topic that is named twice has the
            # partitions of both.
            if given is None or before is None:
                numbers[name] = None
            else:
                numbers[name] = [*before, *given]
    described = session.good(
        await outcomes(admin.describe_topics(numbers)), is_lookup=True
    )
    return [
        TopicPartition(each.name, number)
        for each in described.values()
        for number in dict.fromkeys(
            numbers[each.name] or [partition.partition for partition in each.partitions]
        )
    ]


async def ends_of(
    session: CommandSession, admin: Admin, topics: Iterable[TopicDescription]
) -> list[dict[str, object]]:
    """Return a row for each partition of topics: the start and the end of its log."""
    wanted = [
        TopicPartition(topic.name, each.partition)
        for topic in topics
        for each in topic.partitions
    ]
    # A look-up: a partition counts as a success when its end is known, too.
    starts = session.good(
        await outcomes(admin.list_offsets(dict.fromkeys(wanted, "earliest"))),
        is_lookup=True,
    )
    ends = session.good(
        await outcomes(admin.list_offsets(dict.fromkeys(starts, "latest")))
    )
    found = []
    for partition, end in ends.items():
        start = starts[partition]
        if start is not None and end is not None:
            row = {"start": start.offset, "end": end.offset}
            found.append(
                {**partition_row(partition), **row, "count": end.offset - start.offset}
            )
    return found
