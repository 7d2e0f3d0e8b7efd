"""Messages of `kafkaio.Admin` in the words of the command line.

The messages name Python arguments: ``force=True``, ``fence_producers(['a'])``,
"duration_ms must not be negative". On the command line they become ``--force``,
``kafkaio transactions fence a``, "--open-for must not be negative". The parameters of
the running command supply the names of its options.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

#: Methods that messages suggest, with the equivalent commands.
CALLS: Final[Mapping[str, str]] = {"fence_producers": "kafkaio transactions fence"}
#: Arguments of Admin whose command has a parameter of another name.
OTHER_NAMES: Final[Mapping[str, str]] = {
    "duration_ms": "open_for",
    "max_transaction_timeout_ms": "max_transaction_timeout",
    "states": "state",
    "types": "kinds",
}

_CALL: Final = re.compile(r"\b(?P<name>\w+)\(\[?(?P<value>[^()\[\]]*)\]?\)")
#: ``name=value`` outside of quotes and words: not in 'force=True', nor in a--b=c.
_GIVEN: Final = re.compile(
    r"(?<![\w'\"-])(?P<name>[a-z_]+)=(?P<value>'[^']*'|\[[^\]]*\]|[\w.+-]*\w)"
)
#: A message about an argument begins with its name.
_FIRST: Final = re.compile(r"(?P<name>[a-z_]+)(?=:| must | needs )")
_CONSTANT: Final = re.compile(r"[A-Z_]{2,}")


def as_typed(text: str, names: Mapping[str, str]) -> str:
    """Return a message about a wrong call as a message about a wrong command line.

    Args:
        text: the message of a `kafkaio.errors.UsageError`.
        names: the option with its dashes, or the argument's name in the help, by
            parameter of the command.
    """

    def called(found: re.Match[str]) -> str:
        command = CALLS.get(found["name"])
        return f"{command} {_plain(found['value'])}" if command else found[0]

    def given(found: re.Match[str]) -> str:
        name, value = _typed(found["name"], names), _plain(found["value"])
        # A flag has no form for False, so the message keeps its words.
        if name is None or value == "False":
            return found[0]
        # An argument is typed without its name.
        if not name.startswith("-"):
            return value
        return name if value == "True" else f"{name} {value}"

    def first(found: re.Match[str]) -> str:
        return _typed(found["name"], names) or found[0]

    text = _CALL.sub(called, text)
    text = _GIVEN.sub(given, text)
    return _FIRST.sub(first, text, count=1) if _FIRST.match(text) else text


def _typed(name: str, names: Mapping[str, str]) -> str | None:
    return names.get(name) or names.get(OTHER_NAMES.get(name, ""))


def _plain(value: str) -> str:
    """Return a Python value as a word of the command line."""
    text = value.strip("[]'")
    # Enumerations: READ_COMMITTED is typed read-committed.
    is_constant = _CONSTANT.fullmatch(text) is not None
    return text.lower().replace("_", "-") if is_constant else text
