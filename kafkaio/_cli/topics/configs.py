"""``kafkaio configs``: shows and changes configs of topics, brokers and others."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Final

import click

from kafkaio._cli.shell.command import DRY_RUN, Group, asynchronous, pairs
from kafkaio._cli.shell.session import CommandSession
from kafkaio._cli.text.document import BOOLEAN, EXECUTED, TEXT, Document, one_of, rows
from kafkaio._cli.text.named import brokers_there, outcomes
from kafkaio._cli.text.output import Table
from kafkaio.errors import KafkaError

if TYPE_CHECKING:
    from kafkaio.admin import Admin, ConfigChange, ConfigEntry, ConfigResource

#: Types of configs whose name is the node id of a broker.
_OF_BROKERS: Final = frozenset({"broker", "broker logger"})

configs: Group = Group("configs", help="Show and change configs.")

#: The values of `kafkaio.ConfigResourceType`, which is not loaded for the help, by the
#: words of the command line.
KINDS: Final[Mapping[str, str]] = {
    "topic": "topic",
    "broker": "broker",
    "logger": "broker logger",
    "group": "group",
    "client-metrics": "client metrics",
}

_KIND: Final = one_of(*KINDS)
_NULL: Final = "null if there is none, or it is secret."


def _source_style(value: object) -> str:
    return "dim" if str(value) in {"default", "static"} else "bold"


def _changed(*kinds: str) -> Document:
    return Document(
        configs=rows(
            kind=_KIND,
            name=TEXT,
            key=TEXT,
            value=TEXT.or_null,
            change=one_of(*kinds),
        ),
        executed=EXECUTED,
    )


_CONFIGS: Final = Document(
    configs=rows(
        kind=_KIND.hidden,
        name=TEXT,
        key=TEXT,
        value=TEXT.or_null.doc(_NULL),
        source=TEXT.column(style=_source_style),
        type=TEXT.hidden,
        is_read_only=BOOLEAN.hidden,
        is_sensitive=BOOLEAN.hidden,
        documentation=TEXT.or_null.hidden,
        synonyms=rows(name=TEXT, value=TEXT.or_null, source=TEXT).hidden,
    )
)
_SET: Final = _changed("set", "append", "subtract", "delete")
_UNSET: Final = _changed("delete")
_RESOURCES: Final = Document(resources=rows(kind=_KIND, name=TEXT))

#: Names of secret configs of brokers, perhaps after the prefix of a listener. Brokers
#: hide secret values that they store; this is for values that are being set.
_SECRETS: Final = re.compile(
    r"(.*\.)?(.*pass(word|phrase)|.*secret(\.key)?|.*master\.key|sasl\.jaas\.config|"
    r"ssl\.keystore\.(key|certificate\.chain)|ssl\.truststore\.certificates)"
)
#: The name of the defaults of all brokers in Kafka's tools; empty in the protocol.
_ALL_BROKERS = "default"


def _kind(function: Callable[..., None]) -> Callable[..., None]:
    """Add the argument for the kind of resource."""
    return click.argument("kind", type=click.Choice(list(KINDS)))(function)


def _resource(kind: str, name: str) -> ConfigResource:
    from kafkaio.admin import ConfigResource, ConfigResourceType

    if kind == "broker" and name == _ALL_BROKERS:
        name = ""
    return ConfigResource(ConfigResourceType(KINDS[kind]), name)


def config_changes(
    values: Mapping[str, str], deleted: Iterable[str]
) -> list[ConfigChange]:
    """Return the changes that set some configs and delete others."""
    from kafkaio.admin import ConfigChange, ConfigChangeType

    return [
        *(ConfigChange(name, value) for name, value in values.items()),
        *(ConfigChange(name, None, ConfigChangeType.DELETE) for name in deleted),
    ]


def is_secret(name: str) -> bool:
    """Return whether a config is secret; its name may have a listener's prefix."""
    return _SECRETS.fullmatch(name) is not None


def _named(resource: ConfigResource) -> dict[str, object]:
    kinds = {value: key for key, value in KINDS.items()}
    name = resource.name
    return {"kind": kinds[resource.type], "name": name or _ALL_BROKERS}


#: Sources of values that were set for the resource itself, by kind. The others are
#: defaults, which ``get`` leaves out.
_OWN_SOURCES = {
    "topic": {"topic"},
    "broker": {"broker", "broker default"},
    "group": {"group"},
    "client-metrics": {"client metrics"},
    "logger": {"broker logger"},
}


@configs.command("get", prints=_CONFIGS)
@_kind
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("-k", "--key", "keys", multiple=True, help="Only this; can be repeated.")
@click.option(
    "-a", "--all", "every", is_flag=True, help="With those that are defaults."
)
@click.option("--synonyms", is_flag=True, help="Where values could come from.")
@click.option("--documentation", is_flag=True, help="What Kafka says of them.")
@asynchronous
async def get_configs(
    session: CommandSession,
    kind: str,
    names: tuple[str, ...],
    *,
    keys: tuple[str, ...],
    every: bool,
    **more: bool,
) -> None:
    """Show configs of KIND NAME.

    Without --all and --key only those that were set. A broker is named by its node id;
    `default` stands for the defaults of all brokers. Values that are secret are null.
    """
    resources = [_resource(kind, name) for name in dict.fromkeys(names)]
    async with session.admin() as admin:
        await _check_brokers(admin, resources)
        found = session.good(
            await outcomes(
                admin.describe_configs(
                    resources,
                    include_synonyms=more["synonyms"],
                    include_documentation=more["documentation"],
                )
            )
        )
    wanted = [
        {**_named(resource), **_entry(each)}
        for resource, entries in found.items()
        for each in sorted(entries.values(), key=lambda it: it.name)
        if _is_wanted(each, keys, None if every else _OWN_SOURCES[kind])
    ]
    also = [key for key in ("synonyms", "documentation") if more[key]]
    session.show(_CONFIGS, Table(wanted, _CONFIGS.row.columns(*also)), configs=wanted)


def _is_wanted(
    entry: ConfigEntry, keys: Collection[str], sources: Collection[str] | None
) -> bool:
    """Return whether to show a config: a named one, or one with such a source."""
    if keys:
        return entry.name in keys
    return sources is None or str(entry.source) in sources


def _entry(entry: ConfigEntry) -> dict[str, object]:
    return {
        "key": entry.name,
        "value": entry.value,
        "source": entry.source,
        "type": entry.type,
        "is_read_only": entry.is_read_only,
        "is_sensitive": entry.is_sensitive,
        "documentation": entry.documentation,
        "synonyms": entry.synonyms,
    }


@configs.command("set", prints=_SET)
@_kind
@click.argument("name")
@click.argument(
    "values", nargs=-1, required=True, callback=pairs, metavar="KEY=VALUE..."
)
@click.option("--append", is_flag=True, help="Add the values to lists.")
@click.option("--subtract", is_flag=True, help="Take the values from lists.")
@DRY_RUN
@asynchronous
async def set_configs(
    session: CommandSession,
    kind: str,
    name: str,
    values: dict[str, str],
    *,
    dry_run: bool,
    **how: bool,
) -> None:
    """Set configs of KIND NAME; all others keep their values.

    Values that are secret are not printed.
    """
    from kafkaio.admin import ConfigChange, ConfigChangeType

    # Appending and subtracting need the broker to change the list: a client that reads
    # it and writes it back would undo a change in between (KIP-339).
    if all(how.values()):
        raise click.UsageError("--append and --subtract exclude each other")
    kind_of_change = ConfigChangeType.SET
    if any(how.values()):
        name_of_change = next(each for each in how if how[each])
        kind_of_change = ConfigChangeType(name_of_change)
    changes = [
        ConfigChange(key, value, kind_of_change) for key, value in values.items()
    ]
    await _change(session, _resource(kind, name), changes, dry_run=dry_run)


@configs.command("unset", prints=_UNSET)
@_kind
@click.argument("name")
@click.argument("keys", nargs=-1, required=True, metavar="KEY...")
@DRY_RUN
@asynchronous
async def unset_configs(
    session: CommandSession,
    kind: str,
    name: str,
    keys: tuple[str, ...],
    *,
    dry_run: bool,
) -> None:
    """Reset configs to their defaults."""
    changes = config_changes({}, dict.fromkeys(keys))
    await _change(session, _resource(kind, name), changes, dry_run=dry_run)


async def _change(
    session: CommandSession,
    resource: ConfigResource,
    changes: list[ConfigChange],
    *,
    dry_run: bool,
) -> None:
    async with session.admin() as admin:
        await _check_brokers(admin, [resource])
        results: Mapping[ConfigResource, KafkaError | None]
        results = await outcomes(
            admin.incremental_alter_configs({resource: changes}, validate_only=dry_run)
        )
    changed = [
        {
            **_named(resource),
            "key": change.name,
            "value": None if is_secret(change.name) else change.value,
            "change": change.type,
        }
        for resource in session.good(results)
        for change in changes
    ]
    session.show(_SET, configs=changed, executed=not dry_run)


async def _check_brokers(admin: Admin, resources: Iterable[ConfigResource]) -> None:
    """Check that brokers exist; Admin would wait until they appear.

    Raises:
        CommandFailed: a broker does not exist.
    """
    wanted = [
        int(each.name)
        for each in resources
        # The defaults of all brokers have an empty name; brokers refuse other names.
        if each.type in _OF_BROKERS and each.name.isdecimal()
    ]
    if wanted:
        await brokers_there(admin, wanted)


@configs.command("list", prints=_RESOURCES)
@click.argument("kinds", nargs=-1, type=click.Choice(list(KINDS)), metavar="[KIND]...")
@asynchronous
async def list_configs(session: CommandSession, kinds: tuple[str, ...]) -> None:
    """List the resources with configs (Kafka 4.1)."""
    from kafkaio.admin import ConfigResourceType

    async with session.admin() as admin:
        found = await admin.list_config_resources(
            [ConfigResourceType(KINDS[kind]) for kind in kinds] or None
        )
    session.show(_RESOURCES, resources=[_named(each) for each in found])
