"""``kafkaio client-metrics``: subscriptions to metrics of clients (KIP-714)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from kafkaio._cli.shell.command import YES, Group, asynchronous
from kafkaio._cli.shell.session import CommandSession
from kafkaio._cli.text.document import INTEGER, TEXT, Document, rows
from kafkaio._cli.text.exits import CommandFailed, Exit
from kafkaio._cli.text.named import by_name, outcomes
from kafkaio._cli.text.output import Table

if TYPE_CHECKING:
    from kafkaio.admin import Admin, ConfigEntry, ConfigResource

#: ``set`` prints the changed settings alone, so the others are optional.
_SUBSCRIPTIONS: Final = Document(
    subscriptions=rows(
        name=TEXT,
        metrics=TEXT.or_null.optional,
        interval_ms=INTEGER.or_null.optional,
        match=TEXT.or_null.optional,
    )
)
_NAMES: Final = Document(subscriptions=rows(name=TEXT))
#: A subscription is a resource of configs: its keys here, and their names in Kafka.
_CONFIGS: Final = {"metrics": "metrics", "interval_ms": "interval.ms", "match": "match"}


client_metrics: Group = Group(
    "client-metrics", help="Show and change client metrics subscriptions."
)


@client_metrics.command("list", prints=_NAMES)
@asynchronous
async def _list(session: CommandSession) -> None:
    """List the names of the subscriptions (Kafka 3.7)."""
    async with session.admin() as admin:
        names = await _names(admin)
    session.show(_NAMES, subscriptions=[{"name": name} for name in names])


@client_metrics.command("describe", prints=_SUBSCRIPTIONS)
@click.argument("name", nargs=-1)
@asynchronous
async def _describe(session: CommandSession, name: tuple[str, ...]) -> None:
    """Show subscriptions: all, or those of some names."""
    async with session.admin() as admin:
        known = await _names(admin)
        for each in name:
            if each not in known:
                raise CommandFailed(f"subscription {each!r} does not exist")
        names = list(dict.fromkeys(name)) or known
        await _show(session, admin, names)


@client_metrics.command("set", prints=_SUBSCRIPTIONS)
@click.argument("name")
@click.option(
    "--metrics",
    metavar="PREFIXES",
    help="Prefixes of names with commas between them; * for all metrics.",
)
@click.option(
    "--interval-ms",
    type=click.IntRange(min=1),
    metavar="MS",
    help="How often clients push; brokers take 100 to 3,600,000.",
)
@click.option("--match", metavar="LIST", help="Which clients, such as client_id=app-.*")
@asynchronous
async def _set(
    session: CommandSession,
    name: str,
    metrics: str | None,
    interval_ms: int | None,
    match: str | None,
) -> None:
    """Make or change a subscription; other settings keep their values."""
    from kafkaio.admin import ConfigChange

    given = {"metrics": metrics, "interval_ms": interval_ms, "match": match}
    changes = [
        ConfigChange(_CONFIGS[key], str(value))
        for key, value in given.items()
        if value is not None
    ]
    if not changes:
        message = "give one of --metrics, --interval-ms, --match"
        raise CommandFailed(message, Exit.USAGE)
    async with session.admin() as admin:
        await admin.incremental_alter_configs({_resource(name): changes})
    row = {"name": name, **{key: v for key, v in given.items() if v is not None}}
    table = Table([row], _SUBSCRIPTIONS.row.only(*row))
    session.show(_SUBSCRIPTIONS, table, subscriptions=[row])


@client_metrics.command("delete", prints=_NAMES)
@click.argument("name")
@YES
@asynchronous
async def _delete(session: CommandSession, name: str, *, yes: bool) -> None:
    """Delete a subscription."""
    from kafkaio.admin import ConfigChange, ConfigChangeType

    async with session.admin() as admin:
        if name not in await _names(admin):
            raise CommandFailed(f"subscription {name!r} does not exist")
        session.confirm([f"delete: subscription {name}"], yes=yes)
        # A subscription exists as long as it has a config: deleting all of them deletes
        # it. The protocol has no other way (KIP-714).
        configs = (await admin.describe_configs([_resource(name)]))[_resource(name)]
        changes = [
            ConfigChange(each.name, None, ConfigChangeType.DELETE)
            for each in configs.values()
            if _is_set(each)
        ]
        await admin.incremental_alter_configs({_resource(name): changes})
    session.show(_NAMES, subscriptions=[{"name": name}])


def _resource(name: str) -> ConfigResource:
    from kafkaio.admin import ConfigResource, ConfigResourceType

    return ConfigResource(ConfigResourceType.CLIENT_METRICS, name)


def _is_set(entry: ConfigEntry) -> bool:
    return entry.source == "client metrics"


async def _names(admin: Admin) -> list[str]:
    found = await admin.list_config_resources(["client metrics"])
    return [it.name for it in found]


async def _show(session: CommandSession, admin: Admin, names: list[str]) -> None:
    results = await outcomes(
        admin.describe_configs([_resource(name) for name in names])
    )
    found = session.good(by_name(results, lambda it: it.name))
    subscriptions = []
    for resource, configs in found.items():
        values = {key: configs.get(name) for key, name in _CONFIGS.items()}
        row: dict[str, object] = {"name": resource.name}
        row |= {key: None if it is None else it.value for key, it in values.items()}
        row["interval_ms"] = _number(row["interval_ms"])
        subscriptions.append(row)
    session.show(_SUBSCRIPTIONS, subscriptions=subscriptions)


def _number(value: object) -> int | None:
    # Values of configs are text; this one is a number in JSON.
    text = str(value)
    return int(text) if text.isdecimal() else None
