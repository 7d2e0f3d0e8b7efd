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

#: Seconds that a completion may take. A shell waits for it, and without a cluster there
#: is nothing to offer.
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
    """Return the topics with this prefix; none if the cluster does not answer soon."""
    del parameter
    return _complete(context, incomplete, _topics)


def complete_groups(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the groups with this prefix; none if the cluster does not answer soon."""
    del parameter
    return _complete(context, incomplete, _groups)


def complete_subjects(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the subjects with this prefix; none if the registry is not there soon."""
    del parameter
    url = context.params.get("registry")

    async def names(session: CommandSession) -> list[str]:
        async with session.registry(url) as registry:
            return await registry.subjects(incomplete)

    return _asked(context, incomplete, names)


async def _topics(admin: Admin) -> list[str]:
    return list(await admin.list_topics(timeout=_SECONDS))


async def _groups(admin: Admin) -> list[str]:
    return list(await admin.list_groups(timeout=_SECONDS))


def _complete(
    context: click.Context,
    incomplete: str,
    names: Callable[[Admin], Awaitable[list[str]]],
) -> list[CompletionItem]:
    async def ask(session: CommandSession) -> list[str]:
        async with session.admin() as admin:
            return await names(admin)

    return _asked(context, incomplete, ask)


def _asked(
    context: click.Context,
    incomplete: str,
    names: Callable[[CommandSession], Awaitable[list[str]]],
) -> list[CompletionItem]:
    import asyncio

    given = context.find_root().ensure_object(Given)
    given.timeout = _SECONDS

    async def ask() -> list[str]:
        session = CommandSession(given)
        # Without `ask`: a prompt for a password would spoil the line that is typed.
        session.connection = ConnectionOptions(given)
        return await names(session)

    try:
        found = asyncio.run(ask())
    # A message would spoil the line that is typed.
    except (KafkaError, ExceptionGroup, CommandFailed):
        return []
    return [CompletionItem(name) for name in found if name.startswith(incomplete)]
