"""What all commands share: how they refuse, in one line, with exit code 2."""

from __future__ import annotations

import argparse
from typing import NoReturn

__all__ = ["CommandFailed", "Parser"]


class CommandFailed(Exception):
    """A command cannot do what it was asked for; the message says why, in one line."""


class Parser(argparse.ArgumentParser):
    """A parser that refuses with one line: the usage is for ``--help``."""

    def error(self, message: str) -> NoReturn:
        """End the process with exit code 2."""
        self.exit(2, f"{self.prog}: {message}\n")
