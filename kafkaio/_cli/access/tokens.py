"""``kafkaio tokens``: delegation tokens; their secrets are shown only on demand."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Final

import click

from kafkaio._cli.shell.command import YES, Group, asynchronous
from kafkaio._cli.shell.session import CommandSession
from kafkaio._cli.text.document import TEXT, TIME_OR_NULL, Document, many, rows
from kafkaio._cli.text.exits import CommandFailed, usage
from kafkaio._cli.text.ids import Id
from kafkaio._cli.text.output import Table
from kafkaio._cli.text.values import duration_of

if TYPE_CHECKING:
    from kafkaio.admin import Admin, DelegationToken

#: In JSON the key stays, so programs need not know the option.
_HIDDEN: Final = "[hidden]"
_TOKENS: Final = Document(
    tokens=rows(
        token_id=TEXT,
        owner=TEXT,
        # Who created the token, perhaps for another owner (KIP-373).
        requester=TEXT.or_null,
        renewers=many(TEXT),
        issue_time=TIME_OR_NULL,
        expiry_time=TIME_OR_NULL,
        max_time=TIME_OR_NULL,
        hmac=TEXT.doc("[hidden] without --show-secrets.").hidden,
    )
)
_FACTS: Final = [column.key for column in _TOKENS.row.columns()]
#: Renewing and expiring are answered with the new time alone.
_EXPIRY: Final = Document(
    tokens=rows(token_id=TEXT, owner=TEXT, expiry_time=TIME_OR_NULL)
)
_SHOW: Final = click.option(
    "--show-secrets", is_flag=True, help="Show the hmac, which is the password."
)


tokens: Group = Group(
    "tokens", help="Create, renew, expire and list delegation tokens."
)


@tokens.command("list", prints=_TOKENS)
@click.option("--owner", multiple=True, metavar="USER", help="Whose; can be repeated.")
@_SHOW
@asynchronous
async def _list(
    session: CommandSession, owner: tuple[str, ...], *, show_secrets: bool
) -> None:
    """List the tokens that you may see."""
    owners = _principals(owner) or None
    async with session.admin() as admin:
        found = await admin.describe_delegation_token(owners)
    _show(session, found, show_secrets=show_secrets)


@tokens.command("create", prints=_TOKENS)
@click.option("--owner", metavar="USER", help="Whom it is for; you by default.")
@click.option("--renewer", multiple=True, metavar="USER", help="Who may renew it.")
@click.option("--max-lifetime", metavar="DURATION", help="Its longest life.")
@_SHOW
@asynchronous
async def _create(
    session: CommandSession,
    owner: str | None,
    renewer: tuple[str, ...],
    max_lifetime: str | None,
    *,
    show_secrets: bool,
) -> None:
    """Create a token. Its hmac is shown with --show-secrets, here or by ``list``."""
    renewers = _principals(renewer)
    (owner,) = _principals([owner]) if owner is not None else [None]
    async with session.admin() as admin:
        token = await admin.create_delegation_token(
            renewers=renewers, owner=owner, max_lifetime=_seconds(max_lifetime)
        )
    _show(session, [token], show_secrets=show_secrets)


@tokens.command("renew", prints=_EXPIRY)
@click.argument("token_id", type=Id())
@click.option("--period", metavar="DURATION", help="How long from now.")
@asynchronous
async def _renew(session: CommandSession, token_id: str, period: str | None) -> None:
    """Let a token live on; brokers say how long by default."""
    async with session.admin() as admin:
        token = await _known(admin, token_id)
        expires = await admin.renew_delegation_token(token, period=_seconds(period))
    _show_time(session, token, expires)


@tokens.command("expire", prints=_EXPIRY)
@click.argument("token_id", type=Id())
@click.option("--period", metavar="DURATION", help="In that time, not now.")
@YES
@asynchronous
async def _expire(
    session: CommandSession, token_id: str, period: str | None, *, yes: bool
) -> None:
    """Let a token expire at once, or soon."""
    async with session.admin() as admin:
        token = await _known(admin, token_id)
        session.confirm([f"expire: token {token_id} of {token.owner}"], yes=yes)
        expires = await admin.expire_delegation_token(token, period=_seconds(period))
    _show_time(session, token, expires)


async def _known(admin: Admin, token_id: str) -> DelegationToken:
    """The token of an id.

    The protocol identifies a token by its hmac, which is a password. It is looked up so
    that it never stands on a command line.
    """
    for token in await admin.describe_delegation_token():
        if token.token_id == token_id:
            return token
    # Brokers list only tokens that the user may see.
    raise CommandFailed(f"token {token_id!r} does not exist, or you may not see it")


def _show(
    session: CommandSession, found: Iterable[DelegationToken], *, show_secrets: bool
) -> None:
    columns = _TOKENS.row.columns(*(["hmac"] if show_secrets else []))
    shown = [
        {name: getattr(it, name) for name in _FACTS}
        | {"hmac": it.password if show_secrets else _HIDDEN}
        for it in found
    ]
    session.show(_TOKENS, Table(shown, columns), tokens=shown)


def _show_time(
    session: CommandSession, token: DelegationToken, expires: datetime
) -> None:
    row = {"token_id": token.token_id, "owner": token.owner, "expiry_time": expires}
    session.show(_EXPIRY, tokens=[row])


def _principals(texts: Iterable[str]) -> list[str]:
    from kafkaio._cli.access.acl_arguments import BadAcl, principal_of

    with usage(BadAcl):
        return list(dict.fromkeys(principal_of(text) for text in texts))


def _seconds(text: str | None) -> float | None:
    return None if text is None else duration_of(text).total_seconds()
