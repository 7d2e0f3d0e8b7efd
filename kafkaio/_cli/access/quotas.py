"""``kafkaio quotas``: limits for users, client ids and IP addresses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from kafkaio._cli.shell.command import DRY_RUN, Group, asynchronous
from kafkaio._cli.shell.session import CommandSession
from kafkaio._cli.text.document import NUMBER, TEXT, Document, rows
from kafkaio._cli.text.exits import usage
from kafkaio._cli.text.named import by_name, outcomes

if TYPE_CHECKING:
    from kafkaio.admin import QuotaEntity, QuotaName

F = TypeVar("F", bound=Callable[..., Any])

_KINDS: Final = ("user", "client_id", "ip")
#: What kafka-configs prints for the default entity.
_DEFAULT: Final = "<default>"
_QUOTAS: Final = Document(
    quotas=rows(
        user=TEXT.or_null.doc(
            "<default> for the quota of all without one; null if it names none."
        ),
        client_id=TEXT.or_null,
        ip=TEXT.or_null,
        quota=TEXT,
        value=NUMBER.or_null.doc("null if it was removed."),
    )
)


quotas: Group = Group("quotas", help="Describe, set and remove quotas.")


def _entity(*, with_any: bool) -> Callable[[F], F]:
    """The options for the entity of quotas."""
    options: list[Callable[[F], F]] = []
    for kind, metavar in (("user", "NAME"), ("client-id", "ID"), ("ip", "ADDRESS")):
        what = f"A {kind.replace('-', ' ')}" if kind != "ip" else "An IP address"
        options += [
            click.option(f"--{kind}", metavar=metavar, help=f"{what}."),
            click.option(
                f"--default-{kind}", is_flag=True, help=f"All without one, as {kind}."
            ),
        ]
        # A filter can match any name of a kind; a change needs one name (KIP-546).
        if with_any:
            options.append(
                click.option(f"--any-{kind}", is_flag=True, help=f"Any {kind}.")
            )
    # Decorators apply from the last to the first, and the help has the opposite order.
    return lambda function: reduce(lambda f, option: option(f), options[::-1], function)


@quotas.command("describe", prints=_QUOTAS)
@_entity(with_any=True)
@click.option("--strict", is_flag=True, help="Only quotas that name nothing else.")
@asynchronous
async def _describe(session: CommandSession, /, *, strict: bool, **chosen: Any) -> None:
    """Show quotas: all, or those that match the options."""
    from kafkaio._cli.access.quota_arguments import BadQuota, filter_of

    with usage(BadQuota):
        user, client_id, ip = (_name(kind, chosen) for kind in _KINDS)
        wanted = filter_of(user, client_id, ip, strict=strict)
    async with session.admin() as admin:
        found = await admin.describe_client_quotas(wanted)
    _show(session, found)


@quotas.command("set", prints=_QUOTAS)
@click.argument("quota", nargs=-1, required=True, metavar="NAME=NUMBER...")
@_entity(with_any=False)
@DRY_RUN
@asynchronous
async def _set(
    session: CommandSession, /, quota: tuple[str, ...], *, dry_run: bool, **chosen: Any
) -> None:
    """Set quotas of one user, client id or IP address; others stay as they are.

    Bytes may have a unit: 10MB is 10,000,000 and 10MiB is 10,485,760.

    Example: kafkaio quotas set --user alice producer_byte_rate=10MB
    """
    from kafkaio._cli.access.quota_arguments import BadQuota, quotas_of

    with usage(BadQuota):
        who, wanted = _who(chosen), quotas_of(quota)
    await _alter(session, who, wanted, dry_run=dry_run)


@quotas.command("unset", prints=_QUOTAS)
@click.argument("quota", nargs=-1, required=True, metavar="NAME...")
@_entity(with_any=False)
@DRY_RUN
@asynchronous
async def _unset(
    session: CommandSession, /, quota: tuple[str, ...], *, dry_run: bool, **chosen: Any
) -> None:
    """Remove quotas of one user, client id or IP address.

    Example: kafkaio quotas unset --user alice producer_byte_rate
    """
    from kafkaio._cli.access.quota_arguments import BadQuota

    with usage(BadQuota):
        who = _who(chosen)
    await _alter(session, who, dict.fromkeys(quota), dry_run=dry_run)


async def _alter(
    session: CommandSession,
    who: QuotaEntity,
    wanted: Mapping[str, float | None],
    *,
    dry_run: bool,
) -> None:
    async with session.admin() as admin:
        results = await outcomes(
            admin.alter_client_quotas({who: wanted}, validate_only=dry_run)
        )
    # The rows have the values as they were given: None for a quota that was removed.
    done = session.good(by_name(results, _named))
    _show(session, dict.fromkeys(done, wanted))


def _show(
    session: CommandSession, found: Mapping[QuotaEntity, Mapping[str, float | None]]
) -> None:
    limited = [
        {**_parts(who), "quota": name, "value": value}
        for who, limits in sorted(found.items(), key=lambda item: _named(item[0]))
        for name, value in sorted(limits.items())
    ]
    session.show(_QUOTAS, quotas=limited)


def _parts(who: QuotaEntity) -> dict[str, object]:
    """The names of an entity; None for a kind that it does not have."""
    from kafkaio.admin import QuotaName

    names = {kind: getattr(who, kind) for kind in _KINDS}
    return {k: _DEFAULT if n is QuotaName.DEFAULT else n for k, n in names.items()}


def _named(who: QuotaEntity) -> str:
    parts = _parts(who).items()
    return ", ".join(f"{kind} {name}" for kind, name in parts if name is not None)


def _name(kind: str, chosen: Mapping[str, Any]) -> str | QuotaName | None:
    """The name of a kind, its default, or any name."""
    from kafkaio._cli.access.quota_arguments import BadQuota
    from kafkaio.admin import QuotaName

    given: list[str | QuotaName] = []
    if chosen[kind] is not None:
        given.append(chosen[kind])
    if chosen[f"default_{kind}"]:
        given.append(QuotaName.DEFAULT)
    if chosen.get(f"any_{kind}"):
        given.append(QuotaName.ANY)
    # --user, --default-user and --any-user set the same key of the filter.
    if len(given) > 1:
        kind = kind.replace("_", "-")
        raise BadQuota(f"--{kind} and --default-{kind} exclude each other")
    return given[0] if given else None


def _who(chosen: Mapping[str, Any]) -> QuotaEntity:
    from kafkaio._cli.access.quota_arguments import entity_of
    from kafkaio.admin import QuotaName

    names = [_name(kind, chosen) for kind in _KINDS]
    user, client_id, ip = (None if n is QuotaName.ANY else n for n in names)
    return entity_of(user, client_id, ip)
