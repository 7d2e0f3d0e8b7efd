"""The parser of the commands that work without the extra ``cli``."""

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
        """Parse; report an unknown option without its value, with a hint."""
        # argparse's own error repeats unknown words, whose values may be passwords.
        found, rest = super().parse_known_args(args)
        if rest:
            command = getattr(found, "command", self.prog)
            self.exit(2, f"{command}: {_unknown(rest, command)}\n")
        return found


def _unknown(words: Sequence[str], command: str) -> str:
    """The message for unknown words; it leaves values out, which may be secrets."""
    names = [word.partition("=")[0] for word in words if word.startswith("-")]
    if not names:
        return f"{len(words)} words too many"
    # Imported only after a mistake.
    from kafkaio._cli.text.habits import option_hint

    hint = option_hint(command.split()[1:], names[0])
    return f"No such option {names[0]!r}{f': {hint}' if hint else ''}"


def add_formats(parser: argparse.ArgumentParser) -> None:
    """Add ``--json`` and ``--jsonl``, which set ``format``.

    The attribute has no default: the parser of a subcommand would overwrite the value
    given before the subcommand's name.
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
