"""``kafkaio client-metrics``: which metrics clients push to the brokers (KIP-714)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from kafkaio._cli.shell.command import YES, Group, asynchronous
from kafkaio._cli.shell.session import Session
from kafkaio._cli.text.exits import CommandFailed, Exit
from kafkaio._cli.text.named import by_name, outcomes
from kafkaio._cli.text.output import Table

if TYPE_CHECKING:
    from kafkaio.admin import Admin, ConfigEntry, ConfigResource

_COLUMNS: Final = ("name", "metrics", "interval_ms", "match")
_CONFIGS: Final = {"metrics": "metrics", "interval_ms": "interval.ms", "match": "match"}


client_metrics: Group = Group(
    "client-metrics", help="Show and change client metrics subscriptions."
)


@client_metrics.command("list")
@asynchronous
async def _list(session: Session) -> None:
    """List the names of the subscriptions (Kafka 3.7)."""
    async with session.admin() as admin:
        rows = [{"name": name} for name in await _names(admin)]
    session.show({"subscriptions": rows}, Table(rows, ("name",)))


@client_metrics.command("describe")
@click.argument("name", nargs=-1)
@asynchronous
async def _describe(session: Session, name: tuple[str, ...]) -> None:
    """Show subscriptions: all, or those of some names."""
    async with session.admin() as admin:
        known = await _names(admin)
        for each in name:
            if each not in known:
                raise CommandFailed(f"there is no subscription {each!r}")
        names = list(dict.fromkeys(name)) or known
        await _show(session, admin, names)


@client_metrics.command("set")
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
    session: Session,
    name: str,
    metrics: str | None,
    interval_ms: int | None,
    match: str | None,
) -> None:
    """Make or change a subscription; what is not given stays as it is."""
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
    session.show({"subscriptions": [row]}, Table([row], tuple(row)))


@client_metrics.command("delete")
@click.argument("name")
@YES
@asynchronous
async def _delete(session: Session, name: str, *, yes: bool) -> None:
    """Delete a subscription."""
    from kafkaio.admin import ConfigChange, ConfigChangeType

    async with session.admin() as admin:
        if name not in await _names(admin):
            raise CommandFailed(f"there is no subscription {name!r}")
        session.confirm([f"delete: subscription {name}"], yes=yes)
        configs = (await admin.describe_configs([_resource(name)]))[_resource(name)]
        changes = [
            ConfigChange(each.name, None, ConfigChangeType.DELETE)
            for each in configs.values()
            if _is_set(each)
        ]
        await admin.incremental_alter_configs({_resource(name): changes})
    row = {"name": name}
    session.show({"subscriptions": [row]}, Table([row], ("name",)))


def _resource(name: str) -> ConfigResource:
    from kafkaio.admin import ConfigResource, ConfigResourceType

    return ConfigResource(ConfigResourceType.CLIENT_METRICS, name)


def _is_set(entry: ConfigEntry) -> bool:
    return entry.source == "client metrics"


async def _names(admin: Admin) -> list[str]:
    found = await admin.list_config_resources(["client metrics"])
    return [it.name for it in found]


async def _show(session: Session, admin: Admin, names: list[str]) -> None:
    results = await outcomes(
        admin.describe_configs([_resource(name) for name in names])
    )
    found = session.good(by_name(results, lambda it: it.name))
    rows = []
    for resource, configs in found.items():
        values = {key: configs.get(name) for key, name in _CONFIGS.items()}
        row: dict[str, object] = {"name": resource.name}
        row |= {key: None if it is None else it.value for key, it in values.items()}
        row["interval_ms"] = _number(row["interval_ms"])
        rows.append(row)
    session.show({"subscriptions": rows}, Table(rows, _COLUMNS))


def _number(value: object) -> int | None:
    text = str(value)
    return int(text) if text.isdecimal() else None
