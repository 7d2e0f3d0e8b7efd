"""The command ``kafkaio``: runs a subcommand, prints its errors, returns its exit code.

``broker`` and ``log`` work without the extra ``cli``. Without it, every other command
prints what to install.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from io import TextIOWrapper
from typing import TYPE_CHECKING, Final

from kafkaio._cli.registry import BARE, COMMANDS
from kafkaio._cli.text.exits import CommandFailed, Exit, code_of, lines_of
from kafkaio.errors import KafkaError

if TYPE_CHECKING:
    from kafkaio._cli.shell.given import Given

_UTF_8: Final = frozenset({"utf-8", "utf8"})
_INSTALL = "needs more packages: pip install 'kafkaio[cli]'"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; see `kafkaio._cli.text.exits`.

    A command that fails prints one line to stderr.

    Args:
        arguments: the arguments of the command; None for those of the process.

    Raises:
        SystemExit: after ``--help`` or ``--version`` of ``broker`` and ``log``, or for
            invalid arguments of theirs.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    _prepare_streams()
    for word in words:
        if not _is_text(word):
            sys.stderr.write(f"kafkaio: {word!a} is not text in UTF-8\n")
            return Exit.USAGE
    try:
        code = _run(words)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # The reader of the output closed the pipe, as `head` does. Python would print
        # an error at exit when it flushes stdout.
        _forget_output()
        return Exit.FAILED
    return code


def _prepare_streams() -> None:
    """Replace closed streams, and print UTF-8 to programs.

    A terminal has its own encoding; characters that it lacks are shown as escapes.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        # A shell closes a stream by `>&-`; Python then has None in its place.
        if getattr(sys, name) is None:
            # It stays open until the process ends, as the stream would.
            opened = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115
            setattr(sys, name, opened)
    out = sys.stdout
    if isinstance(out, TextIOWrapper) and out.encoding.lower() not in _UTF_8:
        if out.isatty():
            out.reconfigure(errors="backslashreplace")
        else:
            out.reconfigure(encoding="utf-8")


def _is_text(word: str) -> bool:
    """Whether a word was decoded: bytes that are not UTF-8 become lone surrogates."""
    return not any("\ud800" <= letter <= "\udfff" for letter in word)


def _run(words: list[str]) -> int:
    is_completion = "_KAFKAIO_COMPLETE" in os.environ
    # With these two as the first word neither click nor the commands are loaded. While
    # a shell asks for completions, the words are incomplete, and click answers.
    if words and words[0] in BARE and not is_completion:
        from kafkaio._cli.local.bare import run_bare

        return run_bare(words)
    if find_spec("click") is not None and find_spec("rich") is not None:
        return _run_root(words)
    # The extra is missing. Options may come before the command, so any word counts.
    others = {name for section in COMMANDS.values() for name in section}
    name = next((each for each in words if each in others), "")
    if name:
        sys.stderr.write(f"kafkaio {name}: {_INSTALL}\n")
        return Exit.USAGE
    from kafkaio._cli.local.bare import run_bare

    return run_bare(words)


def _run_root(words: list[str]) -> int:
    import click

    from kafkaio._cli.root import root
    from kafkaio._cli.shell.given import Given

    given = Given()
    try:
        code = root.main(words, "kafkaio", standalone_mode=False, obj=given)
    except click.exceptions.NoArgsIsHelpError as error:
        sys.stderr.write(error.format_message() + "\n")
        return Exit.USAGE
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "kafkaio"
        sys.stderr.write(f"{path}: {error.format_message()}\n")
        return Exit.USAGE
    except click.Abort as error:
        # click raises Abort for Ctrl+C and for the end of stdin at a prompt.
        if isinstance(error.__cause__ or error.__context__, KeyboardInterrupt):
            return Exit.INTERRUPTED
        return Exit.FAILED
    except BrokenPipeError:
        raise  # an OSError, which main() handles without a message
    except (CommandFailed, KafkaError, ExceptionGroup, OSError) as error:
        return _failed(error, given)
    return code if isinstance(code, int) else Exit.OK


def _failed(error: Exception, given: Given) -> int:
    """Print an error in one line, with ``-v`` after its traceback."""
    if given.verbose:
        import traceback

        sys.stderr.write("".join(traceback.format_exception(error)))
    for line in lines_of(error, given.names):
        sys.stderr.write(f"{given.command}: {line}\n")
    return code_of(error)


def _forget_output() -> None:
    """Close stderr, so that the flush of stdout at exit prints no error."""
    sys.stderr.close()
