"""The parser of the commands that need no extra."""

from __future__ import annotations

import argparse
from typing import NoReturn

__all__ = ["Parser", "add_formats"]


class Parser(argparse.ArgumentParser):
    """A parser that reports an error in one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        """Print the message to stderr and exit with code 2."""
        self.exit(2, f"{self.prog}: {message}\n")


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
