"""``kafkaio topics``: lists, describes, creates, changes and deletes topics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import click

from kafkaio._cli.shell.command import DRY_RUN, YES, Group, asynchronous, pairs
from kafkaio._cli.shell.completion import complete_topics
from kafkaio._cli.shell.session import CommandSession
from kafkaio._cli.text.document import (
    BOOLEAN,
    EXECUTED,
    INTEGER,
    PARTITION,
    TEXT,
    UUID,
    Document,
    many,
    picked,
    rows,
)
from kafkaio._cli.text.named import outcomes
from kafkaio._cli.text.output import Table
from kafkaio._cli.text.values import chosen, has_pattern
from kafkaio._cli.topics.configs import config_changes
from kafkaio._cli.topics.offsets import ends_of
from kafkaio.errors import BrokerError, KafkaError, UnknownTopicOrPartition

if TYPE_CHECKING:
    from kafkaio.admin import (
        Admin,
        ConfigChange,
        LogDirectory,
        PartitionDescription,
    )

#: Seconds to wait for sizes. They come from every broker, and one that is down must not
#: hold up the description.
_LOG_DIRS_SECONDS = 5.0

#: Ids of topics came with Kafka 2.8 (KIP-516).
_LISTED: Final = Document(
    topics=rows(
        name=TEXT,
        partitions=INTEGER,
        is_internal=BOOLEAN.hidden,
        topic_id=UUID.hidden,
    )
)
_PARTITIONS: Final = rows(
    topic=TEXT,
    partition=INTEGER.column(style=lambda value: "bold"),
    # Null while no replica can lead.
    leader=INTEGER.or_null.column(
        style=lambda value: "bold red" if value is None else "green"
    ),
    leader_epoch=INTEGER.or_null.column("EPOCH"),
    replicas=many(INTEGER),
    isr=many(INTEGER),
    # Replicas out of sync that may lead all the same (KIP-966); empty before Kafka 4.0.
    elr=many(INTEGER),
    last_known_elr=many(INTEGER).hidden,
    offline_replicas=many(INTEGER),
    size=INTEGER.or_null.doc("Bytes of the leader's log; null if they cannot be had."),
)
_DESCRIBED: Final = Document(
    topics=rows(name=TEXT, topic_id=UUID, is_internal=BOOLEAN, partitions=_PARTITIONS)
)
_ENDS: Final = Document(
    partitions=rows(**PARTITION, start=INTEGER, end=INTEGER, count=INTEGER)
)
_CREATED: Final = Document(
    topics=rows(
        name=TEXT,
        partitions=INTEGER.or_null,
        replication_factor=INTEGER.or_null,
        topic_id=UUID.hidden,
    ),
    executed=EXECUTED,
)
_NAMES: Final = Document(topics=rows(name=TEXT), executed=EXECUTED)
_GROWN: Final = Document(
    topics=rows(name=TEXT, partitions=INTEGER.doc("How many there are now.")),
    executed=EXECUTED,
)

topics: Group = Group("topics", help="List, create, change and delete topics.")


def _selecting(function: Callable[..., None]) -> Callable[..., None]:
    """Add the arguments and options of commands that select topics by pattern."""
    for decorate in (
        click.option("--internal", is_flag=True, help="Kafka's own topics as well."),
        click.option(
            "--regex", is_flag=True, help="Patterns are regular expressions, not globs."
        ),
        click.argument("patterns", nargs=-1, shell_complete=complete_topics),
    ):
        function = decorate(function)
    return function


def _by_health(function: Callable[..., None]) -> Callable[..., None]:
    for decorate in (
        click.option("--unavailable", is_flag=True, help="Only without a leader."),
        click.option(
            "--under-replicated", is_flag=True, help="Only with replicas out of sync."
        ),
    ):
        function = decorate(function)
    return function


async def _names(
    admin: Admin, patterns: Sequence[str], *, regex: bool, internal: bool
) -> list[str]:
    """Return the names of the topics that match patterns."""
    # Plain names need no list, which a user may not be allowed to see whole.
    if patterns and not has_pattern(patterns, regex=regex):
        return list(dict.fromkeys(patterns))
    known = await admin.list_topics(internal=internal)
    return chosen("topic", patterns, known, regex=regex)


def _is_meant(
    partition: PartitionDescription, *, under_replicated: bool, unavailable: bool
) -> bool:
    """Return whether a partition has one of the selected faults, if any is selected."""
    if not (under_replicated or unavailable):
        return True
    # With both options a partition has either fault.
    return (under_replicated and len(partition.isr) < len(partition.replicas)) or (
        unavailable and partition.leader is None
    )


# ---- list and describe --------------------------------------------------------------


@topics.command("list", prints=_LISTED)
@_selecting
@_by_health
@asynchronous
async def list_topics(
    session: CommandSession,
    patterns: tuple[str, ...],
    *,
    regex: bool,
    internal: bool,
    **only: bool,
) -> None:
    """List topics."""
    async with session.admin() as admin:
        known = await admin.list_topics(internal=internal)
        names = chosen("topic", patterns, known, regex=regex)
        found = {name: known[name] for name in names if name in known}
        missing = [name for name in names if name not in known]
        # The list of topics has no replicas. Only the filters need a description, and
        # names that are not in the list, for the broker's reason.
        described: Mapping[Any, Any] = {}
        if any(only.values()) or missing:
            wanted = [*found, *missing] if any(only.values()) else missing
            answers = await outcomes(admin.describe_topics(wanted))
            described = session.good({**found, **answers})
    if any(only.values()):
        found = {
            name: each
            for name, each in found.items()
            if name in described
            and any(_is_meant(it, **only) for it in described[name].partitions)
        }
    session.show(_LISTED, topics=[picked(_LISTED.row, it) for it in found.values()])


@topics.command("describe", prints=_DESCRIBED)
@_selecting
@_by_health
@asynchronous
async def describe_topics(
    session: CommandSession,
    patterns: tuple[str, ...],
    *,
    regex: bool,
    internal: bool,
    **only: bool,
) -> None:
    """Describe topics: leaders, replicas, sizes.

    The size is that of the leader's log in bytes.
    """
    async with session.admin() as admin:
        names = await _names(admin, patterns, regex=regex, internal=internal)
        described = session.good(await outcomes(admin.describe_topics(names)))
        sizes = await _sizes(admin)
    documents: list[dict[str, object]] = []
    every: list[dict[str, object]] = []
    for each in described.values():
        partitions = [
            _partition_row(
                each.name, it, sizes.get((each.name, it.partition, it.leader))
            )
            for it in each.partitions
            if _is_meant(it, **only)
        ]
        every += partitions
        if partitions or not any(only.values()):
            documents.append(
                {
                    "name": each.name,
                    "topic_id": each.topic_id,
                    "is_internal": each.is_internal,
                    "partitions": partitions,
                }
            )
    table = Table(every, _PARTITIONS.columns())
    session.show(_DESCRIBED, table, topics=documents)


async def _sizes(admin: Admin) -> dict[tuple[str, int, int | None], int]:
    """Return the size of each replica by topic, partition and broker.

    Sizes of brokers that do not answer soon, or refuse, are missing.
    """
    logs: Mapping[int, Mapping[str, LogDirectory] | KafkaError] = {}
    with suppress(KafkaError):
        logs = await outcomes(admin.describe_log_dirs(timeout=_LOG_DIRS_SECONDS))
    return {
        (tp.topic, tp.partition, node): replica.size
        for node, directories in logs.items()
        if not isinstance(directories, KafkaError)
        for directory in directories.values()
        for tp, replica in directory.replicas.items()
        # A future replica is a copy on its way to another directory of the same broker.
        if not replica.is_future
    }


def _partition_row(
    topic: str, partition: PartitionDescription, size: int | None
) -> dict[str, object]:
    return {
        "topic": topic,
        "partition": partition.partition,
        "leader": partition.leader,
        "leader_epoch": partition.leader_epoch,
        "replicas": partition.replicas,
        "isr": partition.isr,
        "elr": partition.elr,
        "last_known_elr": partition.last_known_elr,
        "offline_replicas": partition.offline_replicas,
        "size": size,
    }


@topics.command("offsets", prints=_ENDS)
@_selecting
@asynchronous
async def topic_offsets(
    session: CommandSession, patterns: tuple[str, ...], *, regex: bool, internal: bool
) -> None:
    """Show the first and the last offset of each partition."""
    async with session.admin() as admin:
        names = await _names(admin, patterns, regex=regex, internal=internal)
        described = session.good(
            await outcomes(admin.describe_topics(names)), is_lookup=True
        )
        ends = await ends_of(session, admin, described.values())
    session.show(_ENDS, partitions=ends)


# ---- create, change, delete ---------------------------------------------------------


def _assignments(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> dict[int, list[int]] | None:
    """Parse ``0:1,1:2``, the replicas of each partition, as kafka-topics.sh does."""
    if value is None:
        return None
    try:
        return {
            number: [int(node) for node in part.split(":")]
            for number, part in enumerate(value.split(","))
        }
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is not NODE:NODE,NODE:NODE", context, parameter
        ) from None


@topics.command("create", prints=_CREATED)
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option(
    "-p",
    "--partitions",
    type=click.IntRange(1),
    help="How many; the brokers' default otherwise.",
)
@click.option(
    "-r",
    "--replication-factor",
    type=click.IntRange(1),
    help="Replicas of each partition.",
)
@click.option(
    "--replica-assignment",
    metavar="NODE:NODE,...",
    callback=_assignments,
    help="Nodes of the replicas, a comma between partitions.",
)
@click.option(
    "-c",
    "--topic-config",
    metavar="KEY=VALUE",
    multiple=True,
    callback=pairs,
    help="A config of the topics; can be repeated.",
)
@click.option("--if-not-exists", is_flag=True, help="Accept a topic that exists.")
@DRY_RUN
@click.option(
    "--no-wait", is_flag=True, help="Do not wait until all brokers know them."
)
@asynchronous
async def create_topics(
    session: CommandSession,
    names: tuple[str, ...],
    *,
    topic_config: dict[str, str],
    if_not_exists: bool,
    **options: Any,
) -> None:
    """Create topics."""
    from kafkaio.admin import NewTopic

    wanted = [
        NewTopic(
            name,
            options["partitions"],
            options["replication_factor"],
            assignments=options["replica_assignment"],
            configs=topic_config or None,
        )
        for name in names
    ]
    async with session.admin() as admin:
        results = await outcomes(
            admin.create_topics(
                wanted,
                validate_only=options["dry_run"],
                wait=not options["no_wait"],
            )
        )
    # A topic that exists is neither a success nor a failure: it has no row.
    if if_not_exists:
        results = _without(results, "TOPIC_ALREADY_EXISTS")
    created = [picked(_CREATED.row, it) for it in session.good(results).values()]
    session.show(_CREATED, topics=created, executed=not options["dry_run"])


def _without(results: Mapping[Any, Any], code: str) -> dict[Any, Any]:
    """Return the results without the failures with one code."""
    return {
        item: value
        for item, value in results.items()
        if not (isinstance(value, BrokerError) and value.name == code)
    }


@topics.command("delete", prints=_NAMES)
@click.argument("patterns", nargs=-1, required=True, shell_complete=complete_topics)
@click.option(
    "--regex", is_flag=True, help="Patterns are regular expressions, not globs."
)
@click.option("--if-exists", is_flag=True, help="Accept a topic that does not exist.")
@YES
@asynchronous
async def delete_topics(
    session: CommandSession,
    patterns: tuple[str, ...],
    *,
    regex: bool,
    if_exists: bool,
    yes: bool,
) -> None:
    """Delete topics with all of their records.

    At a terminal it asks first; elsewhere it needs --yes.
    """
    async with session.admin() as admin:
        names = await _names(admin, patterns, regex=regex, internal=False)
        session.confirm(
            [f"delete topic {name} and its records" for name in names], yes=yes
        )
        results: Mapping[Any, Any] = await outcomes(admin.delete_topics(names))
    if if_exists:
        results = {
            name: value
            for name, value in results.items()
            if not isinstance(value, UnknownTopicOrPartition)
        }
    _show_changed(session, session.good(results))


def _show_changed(
    session: CommandSession, names: Iterable[object], *, executed: bool = True
) -> None:
    session.show(_NAMES, topics=[{"name": it} for it in names], executed=executed)


@topics.command("alter", prints=_NAMES)
@click.argument("patterns", nargs=-1, required=True, shell_complete=complete_topics)
@click.option(
    "--regex", is_flag=True, help="Patterns are regular expressions, not globs."
)
@click.option(
    "-c",
    "--topic-config",
    metavar="KEY=VALUE",
    multiple=True,
    callback=pairs,
    help="A config to set; can be repeated.",
)
@click.option(
    "-d",
    "--delete-config",
    metavar="KEY",
    multiple=True,
    help="A config whose default is to hold again.",
)
@click.option(
    "-p",
    "--partitions",
    type=click.IntRange(1),
    help="How many partitions there are to be.",
)
@DRY_RUN
@asynchronous
async def alter_topics(
    session: CommandSession,
    patterns: tuple[str, ...],
    *,
    topic_config: dict[str, str],
    delete_config: tuple[str, ...],
    dry_run: bool,
    **options: Any,
) -> None:
    """Change configs or the number of partitions of topics."""
    changes = config_changes(topic_config, delete_config)
    count = options["partitions"]
    if not changes and count is None:
        raise click.UsageError("give one of -c, -d, -p")
    async with session.admin() as admin:
        names = await _names(admin, patterns, regex=options["regex"], internal=False)
        if count is not None:
            counts = dict.fromkeys(names, count)
            results: Mapping[Any, Any] = await outcomes(
                admin.create_partitions(counts, validate_only=dry_run)
            )
            # Configs are changed only where the partitions could be.
            names = list(session.good(results))
        if changes and names:
            names = await _alter(session, admin, names, changes, dry_run=dry_run)
    _show_changed(session, names, executed=not dry_run)


async def _alter(
    session: CommandSession,
    admin: Admin,
    names: Sequence[str],
    changes: Sequence[ConfigChange],
    *,
    dry_run: bool,
) -> list[str]:
    """Change the configs of topics; return the names of those that were changed."""
    from kafkaio.admin import ConfigResource, ConfigResourceType

    wanted = {ConfigResource(ConfigResourceType.TOPIC, name): changes for name in names}
    results = await outcomes(
        admin.incremental_alter_configs(wanted, validate_only=dry_run)
    )
    named: dict[str, KafkaError | None] = {it.name: results[it] for it in results}
    return list(session.good(named))


@topics.command("add-partitions", prints=_GROWN)
@click.argument(
    "names", nargs=-1, required=True, metavar="NAME...", shell_complete=complete_topics
)
@click.option("-n", "--num", type=click.IntRange(1), help="How many to add.")
@click.option(
    "--total", type=click.IntRange(1), help="How many there are to be, instead."
)
@DRY_RUN
@asynchronous
async def add_partitions(
    session: CommandSession,
    names: tuple[str, ...],
    *,
    num: int | None,
    total: int | None,
    dry_run: bool,
) -> None:
    """Add partitions to topics.

    Records of a key may go to another partition from then on.
    """
    if (num is None) == (total is None):
        raise click.UsageError("give either --num or --total")
    async with session.admin() as admin:
        described = session.good(
            await outcomes(admin.describe_topics(names)), is_lookup=True
        )
        counts = {
            each.name: total or len(each.partitions) + (num or 0)
            for each in described.values()
        }
        results = await outcomes(admin.create_partitions(counts, validate_only=dry_run))
        grown = [
            {"name": name, "partitions": counts[name]} for name in session.good(results)
        ]
    session.show(_GROWN, topics=grown, executed=not dry_run)


@topics.command("wait", prints=_NAMES)
@click.argument(
    "names", nargs=-1, required=True, metavar="NAME...", shell_complete=complete_topics
)
@asynchronous
async def wait_for_topics(session: CommandSession, names: tuple[str, ...]) -> None:
    """Wait until every broker knows a leader of every partition.

    The exit code is 1 if that takes longer than --timeout.
    """
    async with session.admin() as admin:
        await admin.wait_for_topics(names)
    _show_changed(session, dict.fromkeys(names))
