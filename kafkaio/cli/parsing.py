"""The parser and the error of all commands: a failure is one line and exit code 2."""

from __future__ import annotations

import argparse
from typing import NoReturn

__all__ = ["CommandFailed", "Parser"]


class CommandFailed(Exception):
    """A command failed; the message says why in one line."""


class Parser(argparse.ArgumentParser):
    """A parser that reports an error in one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        """Print the message to stderr and exit with code 2."""
        self.exit(2, f"{self.prog}: {message}\n")
