"""Runs the commands that need kafkaio alone: ``broker`` and ``log``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from kafkaio._cli.local.parsing import Parser, add_formats
from kafkaio._cli.text.exits import CommandFailed, Exit
from kafkaio._version import __version__


def run_bare(arguments: Sequence[str], output_format: str = "") -> int:
    """Run ``broker`` or ``log``; return the exit code.

    A command that fails prints one line to stderr, and the exit code is 2. It is 1 if
    the output cannot be written.

    Args:
        arguments: the words of the command line.
        output_format: ``json`` or ``jsonl``, if the option came before the words.

    Raises:
        SystemExit: after ``--help`` or ``--version``, or for invalid arguments.
    """
    from kafkaio._cli.local import broker, log

    parser = Parser(
        prog="kafkaio",
        description="Tools of kafkaio, the Kafka client for asyncio.",
        epilog="There are more commands: pip install 'kafkaio[cli]'",
    )
    parser.add_argument("--version", action="version", version=f"kafkaio {__version__}")
    add_formats(parser)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    broker.add_command(commands)
    log.add_commands(commands)
    chosen = parser.parse_args(arguments)
    # The option after the command's name wins over the one before it.
    chosen.format = getattr(chosen, "format", output_format)
    try:
        code: int = chosen.run(chosen, sys.stdout)
        sys.stdout.flush()
    except CommandFailed as failure:
        sys.stderr.write(f"{chosen.command}: {failure}\n")
        return Exit.USAGE
    except BrokenPipeError:
        raise  # an OSError, which main() handles without a message
    except OSError as error:
        sys.stderr.write(f"{chosen.command}: {error}\n")
        return Exit.FAILED
    return code
