"""The command ``kafkaio``: parses the command line and runs a subcommand."""

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
    """Run a command and return its exit code.

    A command that fails prints one line to stderr, and the exit code is 2. After Ctrl+C
    the exit code is 130.

    Args:
        arguments: the arguments of the command; None for those of the process.

    Raises:
        SystemExit: after ``--help`` or ``--version``, or for invalid arguments.
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
        # The reader of the output has closed it, for example `head`. Python would
        # print an error at exit when it flushes stdout; stderr is closed to hide it.
        sys.stderr.close()
        return 1
    return code
