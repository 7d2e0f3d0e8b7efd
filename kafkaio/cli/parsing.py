"""The parser of the commands that need no extra."""

from __future__ import annotations

import argparse
from typing import NoReturn

__all__ = ["Parser"]


class Parser(argparse.ArgumentParser):
    """A parser that reports an error in one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        """Print the message to stderr and exit with code 2."""
        self.exit(2, f"{self.prog}: {message}\n")
