"""The command line: one parser, one function for each command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from kafkaio.cli import broker, log

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, and return its exit code.

    Args:
        arguments: the words after the command's name, by default the process's own.
    """
    parser = argparse.ArgumentParser(
        prog="kafkaio", description="Tools of kafkaio, the Kafka client for asyncio."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    broker.add_command(commands)
    log.add_commands(commands)
    chosen = parser.parse_args(arguments)
    try:
        code: int = chosen.run(chosen, sys.stdout)
    except BrokenPipeError:
        # Whoever read the output has seen enough, `head` for one.
        sys.stderr.close()
        return 1
    return code
