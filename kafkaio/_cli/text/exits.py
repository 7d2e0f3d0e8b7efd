"""Exit codes, and what a person reads when a command fails.

| code | means |
|---|---|
| 0 | everything that was asked for was done |
| 1 | it failed: nothing was done, or the answer is "no" |
| 2 | the command line, a file of it or an option of it is wrong; nothing was sent |
| 3 | some items failed, the others were done |
| 130 | ended by Ctrl+C |
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
    USAGE = 2
    PARTIAL = 3
    INTERRUPTED = 130


class CommandFailed(Exception):
    """A command failed; the message says why in one line.

    Attributes:
        code: the exit code.
    """

    def __init__(self, message: str, code: Exit = Exit.FAILED) -> None:
        super().__init__(message)
        self.code = code


@contextmanager
def usage(*kinds: type[Exception], prefix: str = "") -> Iterator[None]:
    """Report errors of a block as a wrong command line or file.

    Args:
        kinds: their classes.
        prefix: what comes before the message.
    """
    try:
        yield
    except kinds as error:
        raise CommandFailed(f"{prefix}{error}", Exit.USAGE) from None


#: What brokers tell of their own insides before the words "needs DESCRIBE permission".
_INSIDES = re.compile(r"Request\(processor=.*\) (?=needs )", re.DOTALL)
_NO_NAMES: Mapping[str, str] = MappingProxyType({})
_CODE = re.compile(r" \[([A-Z_]+), code -?\d+\]")


#: Control characters, and what stands for them.
_CONTROLS: Final = {
    code: repr(chr(code))[1:-1] for code in (*range(0x20), *range(0x7F, 0xA0))
}


def visible(text: str) -> str:
    r"""Return a text in one line that does nothing to a terminal but to be shown.

    Names come from the cluster, and a client may call itself what it wants: a control
    character is shown as Python writes it, such as ``\x1b``.
    """
    return text.translate(_CONTROLS)


def short(error: BaseException, names: Mapping[str, str] = _NO_NAMES) -> str:
    """Return the message of an error in one line, without the broker's insides.

    Args:
        error: the error.
        names: what is typed for the parameters of the command, see `as_typed`.
    """
    text = " ".join(str(error).split())
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
    # Messages put quotes around names.
    is_named = name.replace("'", "") in text.replace("'", "")
    yield text if is_named else f"{name}: {text}"


def code_of(error: BaseException) -> Exit:
    """Return the exit code for an error that ends a command."""
    if isinstance(error, CommandFailed):
        return error.code
    if isinstance(error, AdminErrors):
        return Exit.PARTIAL if error.results else Exit.FAILED
    if isinstance(error, UsageError) and not isinstance(error, UnsupportedVersion):
        return Exit.USAGE
    return Exit.FAILED


def code_of_items(errors: Iterable[KafkaError], *, succeeded: bool) -> Exit:
    """Return the exit code of a command on several items."""
    if not any(True for _ in errors):
        return Exit.OK
    return Exit.PARTIAL if succeeded else Exit.FAILED
