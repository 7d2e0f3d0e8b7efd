"""Exit codes, and the messages of a command that fails.

| code | meaning |
|---|---|
| 0 | everything was done |
| 1 | the command failed: nothing was done, or the answer is "no" |
| 2 | the command line, or a file or an option of it, is wrong; nothing was sent |
| 3 | some items failed, the others succeeded |
| 130 | interrupted by Ctrl+C |
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import IntEnum
from types import MappingProxyType
from typing import Final

from kafkaio._cli.text.terms import as_typed
from kafkaio.errors import AdminErrors, KafkaError, UnsupportedVersion, UsageError


class Exit(IntEnum):
    """The exit codes of all commands."""

    OK = 0
    FAILED = 1
    #: The code of argparse and click for a wrong command line.
    USAGE = 2
    PARTIAL = 3
    #: What shells report for a process that SIGINT ends: 128 + 2.
    INTERRUPTED = 130


class CommandFailed(Exception):
    """A command failed; the message is one line.

    Attributes:
        code: the exit code.
    """

    def __init__(self, message: str, code: Exit = Exit.FAILED) -> None:
        super().__init__(message)
        self.code = code


@contextmanager
def usage(*kinds: type[Exception], prefix: str = "") -> Iterator[None]:
    """Turn errors of a block into a `CommandFailed` for a wrong command line or file.

    Args:
        kinds: the classes of the errors.
        prefix: text before the message, such as the name of a file.
    """
    try:
        yield
    except kinds as error:
        raise CommandFailed(f"{prefix}{error}", Exit.USAGE) from None


#: Brokers put a dump of their request object before "needs DESCRIBE permission". It has
#: addresses and class names, and is longer than the message.
_INSIDES = re.compile(r"Request\(processor=.*\) (?=needs )", re.DOTALL)
_NO_NAMES: Mapping[str, str] = MappingProxyType({})
#: The name of an error code is enough for a person; the number stays in ``--json``.
_CODE = re.compile(r" \[([A-Z_]+), code -?\d+\]")
#: The control characters C0, DEL and C1 with their escapes. C1 counts: some terminals
#: take U+009B for the start of an escape sequence, as they do ESC [.
_CONTROLS: Final = {
    code: repr(chr(code))[1:-1] for code in (*range(0x20), *range(0x7F, 0xA0))
}


def visible(text: str) -> str:
    r"""Return a text in one line that cannot control a terminal.

    Names come from the cluster, and a client chooses its name freely. Control
    characters are shown as Python escapes them, such as ``\x1b``.
    """
    return text.translate(_CONTROLS)


def short(error: BaseException, names: Mapping[str, str] = _NO_NAMES) -> str:
    """Return the message of an error in one line, without details of the broker.

    Args:
        error: the error.
        names: the options and arguments of the command by parameter, see `as_typed`.
    """
    text = " ".join(str(error).split())
    # Only a wrong call names Python arguments; a broker's message may look like one.
    if isinstance(error, UsageError):
        text = as_typed(text, names)
    text = _CODE.sub(r" [\1]", _INSIDES.sub("", text))
    return visible(text) or type(error).__name__


def lines_of(
    error: BaseException, names: Mapping[str, str] = _NO_NAMES
) -> Iterator[str]:
    """Yield one line for an error, or for each error of a group; see `short`."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from lines_of(each, names)
        return
    text = short(error, names)
    item = getattr(error, "item", None)
    name = "" if item is None else visible(str(item))
    # Messages quote names, so quotes are left out of the comparison.
    is_named = name.replace("'", "") in text.replace("'", "")
    yield text if is_named else f"{name}: {text}"


def code_of(error: BaseException) -> Exit:
    """Return the exit code for an error that ends a command."""
    if isinstance(error, CommandFailed):
        return error.code
    if isinstance(error, AdminErrors):
        return Exit.PARTIAL if error.results else Exit.FAILED
    # UnsupportedVersion is a UsageError because a program asks too much of an old
    # broker. On the command line nothing was mistyped.
    if isinstance(error, UsageError) and not isinstance(error, UnsupportedVersion):
        return Exit.USAGE
    return Exit.FAILED


def code_of_items(errors: Iterable[KafkaError], *, succeeded: bool) -> Exit:
    """Return the exit code of a command on several items."""
    if not any(True for _ in errors):
        return Exit.OK
    return Exit.PARTIAL if succeeded else Exit.FAILED
