"""``kafkaio users``: users that log in with SCRAM, and their passwords."""

from __future__ import annotations

import os
import sys
from typing import Final

import click

from kafkaio._cli.shell.command import YES, Group, asynchronous
from kafkaio._cli.shell.session import CommandSession, ask_secret
from kafkaio._cli.text.document import INTEGER, TEXT, Document, picked, rows
from kafkaio._cli.text.exits import CommandFailed, Exit
from kafkaio._cli.text.named import outcomes

#: The source of a new password without a terminal; there is no option for it, because
#: other users see the arguments of a process.
_VARIABLE: Final = "KAFKAIO_NEW_PASSWORD"
#: Kafka's limit. The client hashes the password, and brokers would refuse the result of
#: more iterations only after that.
_MOST_ITERATIONS: Final = 16_384
_USERS: Final = Document(users=rows(user=TEXT, mechanism=TEXT, iterations=INTEGER))
_DELETED: Final = Document(users=rows(user=TEXT, mechanism=TEXT))
_MECHANISMS: Final = click.Choice(
    ["SCRAM-SHA-256", "SCRAM-SHA-512"], case_sensitive=False
)


users: Group = Group("users", help="List, set and delete SCRAM passwords.")


@users.command("list", prints=_USERS)
@click.argument("user", nargs=-1)
@asynchronous
async def _list(session: CommandSession, user: tuple[str, ...]) -> None:
    """List users and the mechanisms for which they have a password."""
    names = list(dict.fromkeys(user)) or None
    async with session.admin() as admin:
        results = await outcomes(admin.describe_user_scram_credentials(names))
    credentials = [
        {"user": name, "mechanism": it.mechanism, "iterations": it.iterations}
        for name, own in sorted(session.good(results).items())
        for it in own
    ]
    session.show(_USERS, users=credentials)


@users.command("set", prints=_USERS)
@click.argument("user")
@click.option(
    "--mechanism",
    type=_MECHANISMS,
    multiple=True,
    default=("SCRAM-SHA-512",),
    show_default=True,
    help="What the password is for; can be repeated.",
)
@click.option(
    "--iterations",
    type=click.IntRange(1, _MOST_ITERATIONS),
    default=8_192,
    show_default=True,
    help="How often it is hashed.",
)
@asynchronous
async def _set(
    session: CommandSession, user: str, mechanism: tuple[str, ...], iterations: int
) -> None:
    """Set the password of a user, who is created if there is none of that name.

    The password is asked for, or taken from the variable KAFKAIO_NEW_PASSWORD. Brokers
    get its salted hash alone.
    """
    from kafkaio.admin import ScramMechanism, ScramUpsertion

    password = _password(user)
    kinds = [ScramMechanism(each) for each in dict.fromkeys(mechanism)]
    async with session.admin() as admin:
        results = await outcomes(
            admin.alter_user_scram_credentials(
                [ScramUpsertion(user, kind, password, iterations) for kind in kinds],
            )
        )
    changed = [
        {"user": name, "mechanism": kind, "iterations": iterations}
        for name in session.good(results)
        for kind in kinds
    ]
    session.show(_USERS, users=changed)


@users.command("delete", prints=_DELETED)
@click.argument("user", nargs=-1, required=True)
@click.option(
    "--mechanism",
    type=_MECHANISMS,
    multiple=True,
    help="Whose password is deleted; all that a user has by default.",
)
@YES
@asynchronous
async def _delete(
    session: CommandSession,
    user: tuple[str, ...],
    mechanism: tuple[str, ...],
    *,
    yes: bool,
) -> None:
    """Delete the passwords of users."""
    from kafkaio.admin import ScramDeletion, ScramMechanism

    chosen = [ScramMechanism(each) for each in dict.fromkeys(mechanism)]
    async with session.admin() as admin:
        known = session.good(
            await outcomes(
                admin.describe_user_scram_credentials(list(dict.fromkeys(user)))
            ),
            is_lookup=True,
        )
        # Without --mechanism all mechanisms that a user has: the protocol deletes one.
        deletions = [
            ScramDeletion(name, kind)
            for name, credentials in known.items()
            for kind in chosen or [it.mechanism for it in credentials]
        ]
        effects = [f"delete: {it.mechanism} password of {it.user}" for it in deletions]
        if deletions:
            session.confirm(effects, yes=yes)
        results = await outcomes(admin.alter_user_scram_credentials(deletions))
    done = session.good(results)
    deleted = [picked(_DELETED.row, it) for it in deletions if it.user in done]
    session.show(_DELETED, users=deleted)


def _password(user: str) -> str:
    """The new password: from the environment, or typed at the terminal."""
    given = os.environ.get(_VARIABLE)
    if given:
        return given
    if not sys.stdin.isatty():
        message = f"set {_VARIABLE}: cannot ask for it, stdin is not a terminal"
        raise CommandFailed(message, Exit.USAGE)
    return ask_secret(f"new password of {user}", twice=True)
