"""Shell completion: the script of a shell, and names from the cluster."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem, get_completion_class

from kafkaio._cli.shell.command import command
from kafkaio._cli.shell.connection import ConnectionOptions
from kafkaio._cli.shell.given import Given
from kafkaio._cli.shell.session import CommandSession
from kafkaio._cli.text.exits import CommandFailed
from kafkaio.errors import KafkaError

if TYPE_CHECKING:
    from kafkaio.admin import Admin

#: How long Tab may take, in seconds; after that there are no names.
_SECONDS = 1.0


@command("completion", help="Print the completion of a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script.

    Put this into the start file of the shell, for example ~/.bashrc:
    eval "$(kafkaio completion bash)"
    """
    kind = get_completion_class(shell)
    assert kind is not None
    root = context.find_root().command
    click.echo(kind(root, {}, "kafkaio", "_KAFKAIO_COMPLETE").source())


def complete_topics(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the topics whose names begin so; none if the cluster is slow."""
    del parameter
    return _complete(context, incomplete, _topics)


def complete_groups(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the groups whose names begin so; none if the cluster is slow."""
    del parameter
    return _complete(context, incomplete, _groups)


async def _topics(admin: Admin) -> list[str]:
    return list(await admin.list_topics(timeout=_SECONDS))


async def _groups(admin: Admin) -> list[str]:
    return list(await admin.list_groups(timeout=_SECONDS))


def _complete(
    context: click.Context,
    incomplete: str,
    names: Callable[[Admin], Awaitable[list[str]]],
) -> list[CompletionItem]:
    import asyncio

    given = context.find_root().ensure_object(Given)
    given.timeout = _SECONDS

    async def ask() -> list[str]:
        session = CommandSession(given)
        session.connection = ConnectionOptions(given)  # Tab asks for no password
        async with session.admin() as admin:
            return await names(admin)

    try:
        found = asyncio.run(ask())
    except (KafkaError, ExceptionGroup, CommandFailed):
        return []
    return [CompletionItem(name) for name in found if name.startswith(incomplete)]
