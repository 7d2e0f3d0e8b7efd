"""The classes of commands, with the options that all of them have.

They are click's, and rich-click's at a terminal. rich-click takes twice the time to
load and draws boxes, so programs get click's plain help.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import click

from kafkaio._cli.shell.given import Given
from kafkaio._cli.text.ids import Id
from kafkaio._cli.text.values import Seconds

if TYPE_CHECKING:
    from kafkaio._cli.text.document import Document, Shape

if TYPE_CHECKING or not sys.stdout.isatty():
    BaseCommand = click.Command
    BaseGroup = click.Group
else:
    import rich_click

    BaseCommand = rich_click.RichCommand
    BaseGroup = rich_click.RichGroup

#: What a command prints, by the names of the schemas.
Printed: TypeAlias = "Mapping[str, Document | Shape]"

#: Options of every command. No command may give them another meaning.
COMMON: Final = frozenset(
    {
        *("-b", "--bootstrap-server", "-X", "--config", "--profile", "--timeout"),
        *("--json", "--jsonl", "-v", "--verbose", "-h", "--help"),
    }
)
#: Commands after whose arguments people may type a password. The error for a word too
#: many does not repeat it: logs keep stderr.
_SECRETIVE: Final = frozenset({"kafkaio users set"})
_EXTRA: Final = "Got unexpected extra argument"
SETTINGS: Final[dict[str, Any]] = {
    "help_option_names": ["-h", "--help"],
    "max_content_width": 100,
}


def common_options(*, hidden: bool = False) -> list[click.Option]:
    """Return the options of every command.

    Groups take them before the name of the subcommand, too, where they are hidden: the
    help of each command shows them once.
    """

    def option(*names: str, help: str, **more: Any) -> click.Option:  # noqa: A002
        return click.Option(
            names, help=help, callback=_keep, expose_value=False, hidden=hidden, **more
        )

    return [
        option(
            "-b",
            "--bootstrap-server",
            metavar="HOST:PORT,...",
            help="Brokers to connect to first.",
        ),
        option(
            "-X",
            "properties",
            metavar="KEY=VALUE",
            multiple=True,
            help="An option by Java's or librdkafka's name; can be repeated.",
        ),
        option("--config", metavar="FILE", help="Options from .properties or .toml."),
        option("--profile", metavar="NAME", help="A profile of config.toml."),
        option(
            "--timeout",
            type=Seconds(),
            metavar="SECONDS",
            help="Time for each call of the cluster (default: 30).",
        ),
        option("--json", is_flag=True, help="Print one JSON document."),
        option("--jsonl", is_flag=True, help="Print a line of JSON for each row."),
        option("-v", "--verbose", is_flag=True, help="Show tracebacks and the log."),
    ]


def _keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Keep the value of a common option for `CommandSession`."""
    # click calls this for options that were not given, too. Their values must not
    # replace those given before the name of the subcommand.
    if value is None or value is False or value == ():
        return
    given = context.find_root().ensure_object(Given)
    name = str(parameter.name)
    if name == "properties":
        given.properties.update(pairs(context, parameter, value))
    elif name in {"json", "jsonl"}:
        if given.format not in {"", name}:
            raise click.UsageError("--json and --jsonl exclude each other", context)
        given.format = name
    else:
        setattr(given, name, value)


def pairs(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    """Parse ``KEY=VALUE`` of an option that can be repeated; a callback for click."""
    found = {}
    for text in values:
        name, equals, value = text.partition("=")
        if not name.strip() or not equals:
            # The message does not repeat the text: it may be a password alone.
            raise click.BadParameter("it is not KEY=VALUE", context, parameter)
        found[name.strip()] = value
    return found


#: Options that several commands share.
YES: Final = click.option("-y", "--yes", is_flag=True, help="Do not ask.")
REGISTRY: Final = click.option(
    "-r",
    "--registry",
    metavar="URL",
    help="The schema registry (default: http://localhost:8081).",
)
DRY_RUN: Final = click.option(
    "--dry-run", is_flag=True, help="Only check whether it could be done."
)


class Command(BaseCommand):
    """A command with the options that all commands have.

    Args:
        args: as for click's.
        prints: the declaration of its output: the document of ``--json``, or several
            declarations by the names of their schemas.
        more: as for click's.

    Attributes:
        prints: the declarations by the names of their schemas.
    """

    def __init__(
        self, *args: Any, prints: Document | Printed | None = None, **more: Any
    ) -> None:
        more.setdefault("context_settings", SETTINGS)
        more["params"] = [*(more.get("params") or ()), *common_options()]
        super().__init__(*args, **more)
        if prints is not None and not isinstance(prints, Mapping):
            prints = {str(self.name): prints}
        self.prints: Printed = prints or {}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words after the name; explain names that look like options."""
        words = list(args)
        if any(isinstance(each.type, Id) for each in self.params):
            args = list(Id.guarded(words, self._names(with_value=True)))
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error = advised(error, ctx)
            name = self._name_like_an_option(error, words)
            if not name:
                raise error from None
            raise click.UsageError(
                f"{error.format_message()} (a name that begins with - goes behind --: "
                f"{ctx.command_path} -- {name})",
                ctx,
            ) from None

    def _name_like_an_option(self, error: click.UsageError, words: list[str]) -> str:
        """Return the word that was probably meant as a name; empty if there is none.

        Topics and groups can have names such as -x. click takes such a word for an
        option: an unknown one, one without its value, or, if the name is made of
        options of this command, one that is set while an argument is missing.
        """
        if not any(isinstance(each, click.Argument) for each in self.params):
            return ""
        known: set[str] = set()
        if isinstance(error, click.NoSuchOption) and not error.possibilities:
            name = error.option_name
            # A word can have several short options, of which the error names one.
            pattern = (
                f"-[^-]*{re.escape(name[1])}" if len(name) == 2 else re.escape(name)
            )
            pattern += ".*"
        elif isinstance(error, click.BadOptionUsage) and not any(
            each[:1] != "-" for each in words
        ):
            pattern = re.escape(error.option_name)
        elif isinstance(error, click.MissingParameter):
            known, pattern = self._names(), "-.*"
        else:
            return ""
        found = (w for w in words if re.fullmatch(pattern, w, re.DOTALL))
        name = next((each for each in found if each not in known), "")
        # The text after "=" is the value of an option, and may be a password.
        return name.partition("=")[0]

    def _names(self, *, with_value: bool = False) -> set[str]:
        """Return the names of the options, or of those whose value is the next word."""
        return {
            name
            for each in self.params
            if isinstance(each, click.Option) and not (with_value and each.is_flag)
            for name in (*each.opts, *each.secondary_opts)
        }


class Group(BaseGroup):
    """A command with subcommands; takes the common options before their names."""

    command_class: type[click.Command] | None = Command

    def __init__(self, *args: Any, **more: Any) -> None:
        more.setdefault("context_settings", SETTINGS)
        more["params"] = [*(more.get("params") or ()), *common_options(hidden=True)]
        super().__init__(*args, **more)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words up to the name of the subcommand."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            raise advised(error, ctx) from None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the subcommand; suggest one for an unknown word of other tools."""
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            from kafkaio._cli.text.habits import subcommand_for

            meant = subcommand_for(str(self.name), args[0], self.commands)
            raise no_command(ctx, args[0], meant)
        return super().resolve_command(ctx, args)


def no_command(ctx: click.Context, word: str, meant: str) -> click.UsageError:
    hint = f" Did you mean kafkaio {meant}?" if meant else ""
    return click.UsageError(f"No such command {word!r}.{hint}", ctx)


def advised(error: click.UsageError, ctx: click.Context) -> click.UsageError:
    """Return the error, with the equivalent of another tool's option."""
    error.ctx = error.ctx or ctx
    if ctx.command_path in _SECRETIVE and error.message.startswith(_EXTRA):
        return click.UsageError(_EXTRA, ctx)
    if not isinstance(error, click.NoSuchOption):
        return error
    from kafkaio._cli.text.habits import option_hint

    path = ctx.command_path.split()[1:]
    above = ctx.command if isinstance(ctx.command, click.Group) else None
    if above is None and ctx.parent is not None:
        above = ctx.parent.command if isinstance(ctx.parent.command, Group) else None
    names = above.commands if isinstance(above, Group) else {}
    hint = option_hint(path, error.option_name, names)
    if not hint:
        return error
    return click.UsageError(f"No such option {error.option_name!r}: {hint}", ctx)


def command(name: str, **more: Any) -> Callable[[Callable[..., None]], Command]:
    """Make a command without subcommands, such as ``lag``, of a function."""
    return click.command(name, cls=Command, **more)


def typed_names(command: click.Command) -> dict[str, str]:
    """Return the word that stands for each parameter of a command in messages.

    It is the longest name of an option, and the name of an argument in the help.
    """
    return {
        str(each.name): (
            max(each.opts, key=len)
            if isinstance(each, click.Option)
            else each.human_readable_name.strip("[].")
        )
        for each in command.params
    }


def asynchronous(function: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Make a coroutine function the body of a command.

    It is called with a `CommandSession` and the command's own options and arguments.
    """

    @wraps(function)
    def run(*args: object, **options: object) -> None:
        # Imported when a command runs: a help needs neither the loop nor a client.
        import asyncio

        from kafkaio._cli.shell.session import CommandSession

        context = click.get_current_context()
        given = context.find_root().ensure_object(Given)
        given.command = context.command_path
        given.names = typed_names(context.command)
        session = CommandSession(given)

        async def work() -> None:
            await function(session, *args, **options)

        asyncio.run(work())
        code = session.finish()
        if code:
            context.exit(int(code))

    return run
