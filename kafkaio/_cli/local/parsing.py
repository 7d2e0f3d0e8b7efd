"""The parser of the commands that need no extra."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn


class Parser(argparse.ArgumentParser):
    """A parser that reports an error in one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        """Print the message to stderr and exit with code 2."""
        self.exit(2, f"{self.prog}: {message}\n")

    def parse_args(  # type: ignore[override]  # no namespace is ever given
        self, args: Sequence[str] | None = None
    ) -> argparse.Namespace:
        """Parse; what is not known is named without its value, with an advice."""
        found, rest = super().parse_known_args(args)
        if rest:
            command = getattr(found, "command", self.prog)
            self.exit(2, f"{command}: {_unknown(rest, command)}\n")
        return found


def _unknown(words: Sequence[str], command: str) -> str:
    """The message for words that a command does not take; values may be secrets."""
    names = [word.partition("=")[0] for word in words if word.startswith("-")]
    if not names:
        return f"{len(words)} words too many"
    # Loaded for mistakes alone.
    from kafkaio._cli.text.habits import option_hint

    hint = option_hint(command.split()[1:], names[0])
    return f"No such option {names[0]!r}{f': {hint}' if hint else ''}"


def add_formats(parser: argparse.ArgumentParser) -> None:
    """Add ``--json`` and ``--jsonl``: the last one given is kept as ``format``.

    Without one there is no such attribute, so that a subcommand keeps what was given
    before its name.
    """
    formats = parser.add_mutually_exclusive_group()
    for name, text in (
        ("json", "print one JSON document"),
        ("jsonl", "print a line of JSON for each row"),
    ):
        formats.add_argument(
            f"--{name}",
            dest="format",
            action="store_const",
            const=name,
            default=argparse.SUPPRESS,
            help=text,
        )
