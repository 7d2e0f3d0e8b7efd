"""The command line: one parser, one function for each command."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from kafkaio import __version__
from kafkaio.cli import broker, log
from kafkaio.cli.parsing import CommandFailed, Parser

__all__ = ["main"]

_REFUSED = 2
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, and return its exit code.

    What a command cannot do it says in one line on stderr; the exit code is 2 then.

    Args:
        arguments: the words after the command's name, by default the process's own.

    Raises:
        SystemExit: after ``--help`` or ``--version``, or if the words are wrong.
    """
    parser = Parser(
        prog="kafkaio", description="Tools of kafkaio, the Kafka client for asyncio."
    )
    parser.add_argument("--version", action="version", version=f"kafkaio {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    broker.add_command(commands)
    log.add_commands(commands)
    chosen = parser.parse_args(arguments)
    try:
        code: int = chosen.run(chosen, sys.stdout)
    except CommandFailed as failure:
        sys.stderr.write(f"{chosen.command}: {failure}\n")
        return _REFUSED
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has seen enough, `head` for one.
        sys.stderr.close()
        return 1
    return code
