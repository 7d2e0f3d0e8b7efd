"""The root of all commands: finds a command and imports its module."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Final

import click

from kafkaio._cli.registry import BARE, COMMANDS
from kafkaio._cli.shell.command import (
    SETTINGS,
    BaseCommand,
    BaseGroup,
    advised,
    common_options,
    no_command,
)
from kafkaio._cli.shell.given import Given
from kafkaio._version import __version__

_WITHOUT: Final = "Without a cluster"


class Root(BaseGroup):
    """Finds commands in `kafkaio._cli.registry`."""

    #: Whether the help is written: then commands are outlines, without their modules.
    _is_helping = False

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help without importing any command."""
        self._is_helping = True
        super().format_help(ctx, formatter)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the order of the help."""
        del ctx
        return [*(n for section in COMMANDS.values() for n in section), *BARE]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command."""
        # rich-click asks for every command of the list, which would import them all.
        if self._is_helping:
            return _outline(cmd_name)
        if cmd_name in BARE:
            return _bare(cmd_name)
        for section in COMMANDS.values():
            if cmd_name in section:
                module = import_module(f"kafkaio._cli.{section[cmd_name].module}")
                found = getattr(module, cmd_name.replace("-", "_"))
                assert isinstance(found, click.Command)
                return found
        return None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words up to the name of the command."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            raise advised(error, ctx) from None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; suggest one for an unknown word of other tools."""
        if args and not args[0].startswith("-"):
            found = self.get_command(ctx, args[0])
            if found is None:
                raise no_command(ctx, args[0], self._meant(ctx, args))
        return super().resolve_command(ctx, args)

    def _meant(self, ctx: click.Context, args: list[str]) -> str:
        from kafkaio._cli.text.habits import command_for, subcommand_for

        # `kafkaio topic remove t` is answered with "topics delete": both words are
        # translated, the second by the subcommands of the first.
        meant = command_for(args[0], self.list_commands(ctx))
        found = self.get_command(ctx, meant)
        if isinstance(found, click.Group) and len(args) > 1:
            return subcommand_for(meant, args[1], found.commands) or meant
        return meant

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Write the list of commands, by section."""
        del ctx
        for title, section in COMMANDS.items():
            if section:
                with formatter.section(title):
                    formatter.write_dl([(n, each.help) for n, each in section.items()])
        with formatter.section(_WITHOUT):
            formatter.write_dl(list(BARE.items()))


def _outline(name: str) -> click.Command:
    """Return a command that has a help and nothing else, in a panel of rich-click."""
    made = BaseCommand(name, help=BARE.get(name))
    made.panel = _WITHOUT  # type: ignore[attr-defined]  # rich-click's
    for title, section in COMMANDS.items():
        if name in section:
            made.help = section[name].help
            made.panel = title  # type: ignore[attr-defined]
    return made


def _bare(name: str) -> click.Command:
    """Return a command that passes its arguments to `kafkaio._cli.local`."""

    def run(words: tuple[str, ...]) -> None:
        from kafkaio._cli.local.bare import run_bare

        context = click.get_current_context()
        given = context.find_root().ensure_object(Given)
        code = run_bare([name, *words], given.format)
        if code:
            context.exit(code)

    return BaseCommand(
        name,
        callback=run,
        params=[click.Argument(["words"], nargs=-1, type=click.UNPROCESSED)],
        help=BARE[name] + ".",
        # Its own parser answers --help and reports unknown options.
        add_help_option=False,
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )


def _version(context: click.Context, parameter: click.Parameter, value: object) -> None:
    del parameter
    if value:
        sys.stdout.write(f"kafkaio {__version__}\n")
        context.exit()


root: Root = Root(
    "kafkaio",
    help="Tools of kafkaio, the Kafka client for asyncio.",
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_version,
            help="Show the version and exit.",
        ),
        *common_options(),
    ],
    context_settings=SETTINGS,
    no_args_is_help=True,
)
