"""Messages of `kafkaio.Admin` in the words of the command line.

The messages speak of Python: ``force=True``, ``fence_producers(['a'])``, "duration_ms
must not be negative". Whoever types a command reads ``--force``,
``kafkaio transactions fence a``, "--open-for must not be negative". The parameters of
the command that runs say what its options are called.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

#: Methods that messages advise to call, and the commands that do the same.
CALLS: Final[Mapping[str, str]] = {"fence_producers": "kafkaio transactions fence"}
#: Arguments of Admin whose names differ from the parameters of commands.
OTHER_NAMES: Final[Mapping[str, str]] = {
    "duration_ms": "open_for",
    "max_transaction_timeout_ms": "max_transaction_timeout",
    "states": "state",
    "types": "kinds",
}

_CALL: Final = re.compile(r"\b(?P<name>\w+)\(\[?(?P<value>[^()\[\]]*)\]?\)")
_GIVEN: Final = re.compile(
    r"(?<![\w'\"-])(?P<name>[a-z_]+)=(?P<value>'[^']*'|\[[^\]]*\]|[\w.+-]*\w)"
)
_FIRST: Final = re.compile(r"(?P<name>[a-z_]+)(?=:| must | needs )")
_CONSTANT: Final = re.compile(r"[A-Z_]{2,}")


def as_typed(text: str, names: Mapping[str, str]) -> str:
    """Return a message about a wrong call as one about a wrong command line.

    Args:
        text: the message of a `kafkaio.errors.UsageError`.
        names: what is typed for each parameter of the command: an option with its
            dashes, or what the help calls an argument.
    """

    def called(found: re.Match[str]) -> str:
        command = CALLS.get(found["name"])
        return f"{command} {_plain(found['value'])}" if command else found[0]

    def given(found: re.Match[str]) -> str:
        name, value = _typed(found["name"], names), _plain(found["value"])
        if name is None or value == "False":
            return found[0]
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
    """Return a value of Python as it is typed."""
    text = value.strip("[]'")
    is_constant = _CONSTANT.fullmatch(text) is not None
    return text.lower().replace("_", "-") if is_constant else text
