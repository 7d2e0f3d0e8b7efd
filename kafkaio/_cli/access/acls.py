"""``kafkaio acls``: access control lists, by the options of kafka-acls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from kafkaio._cli.shell.command import YES, Group, asynchronous
from kafkaio._cli.shell.session import CommandSession
from kafkaio._cli.text.document import TEXT, Document, picked, rows
from kafkaio._cli.text.exits import CommandFailed, Exit, usage
from kafkaio._cli.text.named import by_name, outcomes

if TYPE_CHECKING:
    from kafkaio._cli.access.acl_arguments import Grant, Resource
    from kafkaio.admin import AclBinding, AclBindingFilter

F = TypeVar("F", bound=Callable[..., Any])

_ACLS: Final = Document(
    acls=rows(
        principal=TEXT,
        host=TEXT,
        permission=TEXT,
        operation=TEXT,
        resource_type=TEXT,
        resource_name=TEXT,
        pattern_type=TEXT,
    )
)
#: Parameters of options with the types of the resources that they name.
_KINDS: Final = {
    "topic": "TOPIC",
    "group": "GROUP",
    "transactional_id": "TRANSACTIONAL_ID",
    "delegation_token": "DELEGATION_TOKEN",
    "user_principal": "USER",
}


acls: Group = Group("acls", help="List, create and delete ACLs.")


def _repeated(name: str, metavar: str, text: str) -> Callable[[F], F]:
    return click.option(name, multiple=True, metavar=metavar, help=text)


def _subjects(patterns: str, default: str) -> Callable[[F], F]:
    """The options for principals, operations and resources."""
    options = (
        _repeated("--topic", "NAME", "A topic; can be repeated, as all of these."),
        _repeated("--group", "NAME", "A group."),
        click.option("--cluster", is_flag=True, help="The cluster."),
        _repeated("--transactional-id", "ID", "A transactional id."),
        _repeated("--delegation-token", "ID", "A delegation token."),
        _repeated("--user-principal", "NAME", "A user, for rights on users."),
        click.option(
            "--pattern",
            type=click.Choice(patterns.split("|"), case_sensitive=False),
            default=default,
            show_default=True,
            help="How names are taken.",
        ),
        _repeated("--operation", "NAME", "What is done, such as READ."),
        _repeated("--allow-principal", "USER", "A principal to allow."),
        _repeated("--deny-principal", "USER", "A principal to deny."),
        _repeated("--allow-host", "ADDRESS", "Where those come from."),
        _repeated("--deny-host", "ADDRESS", "Where those come from."),
    )
    # Decorators apply from the last to the first, and the help has the opposite order.
    return lambda function: reduce(lambda f, option: option(f), options[::-1], function)


_FILTER: Final = _subjects("any|match|literal|prefixed", "any")
_PRINCIPAL: Final = _repeated("--principal", "USER", "A principal.")


@acls.command("list", prints=_ACLS)
@_FILTER
@_PRINCIPAL
@asynchronous
async def _list(session: CommandSession, /, **chosen: Any) -> None:
    """List entries: all, or those that match the options.

    Example: kafkaio acls list --topic orders --pattern match
    """
    wanted = _filters(chosen)
    async with session.admin() as admin:
        found: dict[AclBinding, None] = {}
        for each in wanted:
            found |= dict.fromkeys(await admin.describe_acls(each))
    _show(session, found)


@acls.command("create", prints=_ACLS)
@_subjects("literal|prefixed", "literal")
@click.option("--producer", is_flag=True, help="All that a producer needs.")
@click.option("--consumer", is_flag=True, help="All that a consumer needs.")
@click.option("--idempotent", is_flag=True, help="With --producer: before Kafka 2.8.")
@asynchronous
async def _create(session: CommandSession, /, **chosen: Any) -> None:
    """Create an entry for every combination of the options.

    Example: kafkaio acls create --allow-principal alice --operation read --topic t

    Example: kafkaio acls create --allow-principal alice --consumer --topic t --group g
    """
    wanted = _bindings(chosen)
    async with session.admin() as admin:
        results = await outcomes(admin.create_acls(wanted))
    _show(session, session.good(by_name(results, _named)))


@acls.command("delete", prints=_ACLS)
@_FILTER
@_PRINCIPAL
@YES
@asynchronous
async def _delete(session: CommandSession, /, *, yes: bool, **chosen: Any) -> None:
    """Delete the entries that match the options, of which there must be one.

    Example: kafkaio acls delete --principal alice --topic orders --yes
    """
    from kafkaio.admin import AclBindingFilter

    wanted = _filters(chosen)
    # Without options the filter matches every entry of the cluster.
    if wanted == [AclBindingFilter()]:
        message = "name a resource, an operation or a principal of the entries"
        raise CommandFailed(message, Exit.USAGE)
    async with session.admin() as admin:
        if not yes:
            # Filters can match the same entry; it is shown and deleted once.
            found = [it for each in wanted for it in await admin.describe_acls(each)]
            effects = [f"delete: {_named(it)}" for it in dict.fromkeys(found)]
            if effects:
                session.confirm(effects, yes=False)
        results = await outcomes(admin.delete_acls(wanted))
    deleted = session.good(by_name(results, _filter_named))
    _show(session, dict.fromkeys(it for them in deleted.values() for it in them))


def _show(session: CommandSession, bindings: Iterable[AclBinding]) -> None:
    found = [picked(_ACLS.row, it) for it in sorted(bindings, key=_named)]
    session.show(_ACLS, acls=found)


def _named(it: AclBinding) -> str:
    return (
        f"{it.principal} from {it.host}: {it.permission} {it.operation} on "
        f"{it.resource_type} {it.resource_name} ({it.pattern_type})"
    )


def _filter_named(it: AclBindingFilter) -> str:
    return (
        f"{it.principal or 'ANY'} from {it.host or 'ANY'}: {it.permission} "
        f"{it.operation} on {it.resource_type} {it.resource_name or 'ANY'}"
    )


def _resources(chosen: Mapping[str, Any]) -> list[Resource]:
    from kafkaio._cli.access.acl_arguments import CLUSTER
    from kafkaio.admin import AclResourceType

    found = [
        (AclResourceType(kind), name)
        for key, kind in _KINDS.items()
        for name in chosen[key]
    ]
    return [*found, CLUSTER] if chosen["cluster"] else found


def _filters(chosen: Mapping[str, Any]) -> list[AclBindingFilter]:
    from kafkaio._cli.access.acl_arguments import (
        BadAcl,
        Principals,
        filters_of,
        operation_of,
        principal_of,
    )
    from kafkaio.admin import AclPatternType

    with usage(BadAcl):
        return filters_of(
            _resources(chosen),
            [operation_of(text) for text in chosen["operation"]],
            Principals(
                allow=[principal_of(text) for text in chosen["allow_principal"]],
                deny=[principal_of(text) for text in chosen["deny_principal"]],
                allow_hosts=chosen["allow_host"],
                deny_hosts=chosen["deny_host"],
                either=[principal_of(text) for text in chosen["principal"]],
            ),
            AclPatternType(chosen["pattern"].upper()),
        )


def _bindings(chosen: Mapping[str, Any]) -> list[AclBinding]:
    from kafkaio._cli.access.acl_arguments import (
        BadAcl,
        Principals,
        bindings_of,
        principal_of,
    )
    from kafkaio.admin import AclPatternType

    with usage(BadAcl):
        made = bindings_of(
            _grants(chosen),
            Principals(
                allow=[principal_of(text) for text in chosen["allow_principal"]],
                deny=[principal_of(text) for text in chosen["deny_principal"]],
                allow_hosts=chosen["allow_host"],
                deny_hosts=chosen["deny_host"],
            ),
            AclPatternType(chosen["pattern"].upper()),
        )
    if not made:
        raise CommandFailed(
            "name a resource, an operation (or --producer, --consumer) and a principal",
            Exit.USAGE,
        )
    return made


def _grants(chosen: Mapping[str, Any]) -> list[Grant]:
    from kafkaio._cli.access.acl_arguments import (
        consumer_grants,
        operation_of,
        producer_grants,
    )

    found: list[Grant] = []
    # The rights of --producer, --consumer and --operation add up.
    if chosen["producer"]:
        ids, idempotent = chosen["transactional_id"], chosen["idempotent"]
        found += producer_grants(chosen["topic"], ids, idempotent=idempotent)
    if chosen["consumer"]:
        found += consumer_grants(chosen["topic"], chosen["group"])
    operations = [operation_of(text) for text in chosen["operation"]]
    return found + [(it, op) for it in _resources(chosen) for op in operations]
