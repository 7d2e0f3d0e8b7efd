"""References to secrets in the values of options: ``${env:NAME}`` and two more forms.

They are those of Kafka's configuration providers (KIP-297, KIP-421, KIP-887):

- ``${env:NAME}``: a variable of the environment;
- ``${file:/path:key}``: a key of a file of Java properties;
- ``${dir:/path:file}``: the whole content of a file.

A reference may be the whole value or a part of it. It is resolved in the process that
uses the value. The secret itself is never pickled, logged or shown in an error.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from kafkaio.errors import ConfigurationError

_REFERENCE = re.compile(r"\$\{(env|file|dir):([^}]*)\}")
# Java's format: the first "=", ":" or blank that has no backslash ends the key.
_SEPARATOR = re.compile(r"(?<!\\)[=:\s]")
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def has_reference(value: str) -> bool:
    """Return whether a value has a reference."""
    return _REFERENCE.search(value) is not None


def is_reference(value: str) -> bool:
    """Return whether a value is one reference and nothing else."""
    return _REFERENCE.fullmatch(value.strip()) is not None


def resolve(name: str, value: str) -> str:
    """Return a value with its references resolved in this process.

    Args:
        name: the option, for messages.
        value: the text of the option; may have any number of references.

    Raises:
        ConfigurationError: the variable, the file or the key does not exist. The
            message names the reference, and not its value.
    """
    return _REFERENCE.sub(lambda found: _look_up(name, found), value)


def _look_up(name: str, found: re.Match[str]) -> str:
    kind, place = found[1], found[2]
    if kind == "env":
        value = os.environ.get(place)
        missing = f"the environment has no variable {place!r}"
    else:
        # The last colon divides: a path of Windows has one of its own.
        path, _, key = place.rpartition(":")
        value, missing = (_of_file if kind == "file" else _of_directory)(path, key)
    if value is None:
        raise ConfigurationError(f"{name}: {found[0]} cannot be resolved: {missing}")
    return value


def _of_file(path: str, key: str) -> tuple[str | None, str]:
    text, missing = _text_of(path)
    if text is None:
        return None, missing
    return parse_properties(text).get(key), f"{path!r} has no key {key!r}"


def _of_directory(path: str, file: str) -> tuple[str | None, str]:
    return _text_of(os.path.join(path, file))


def _text_of(path: str) -> tuple[str | None, str]:
    try:
        return Path(path).read_text(encoding="utf-8"), ""
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        return None, f"{path!r} cannot be read ({reason})"


def parse_properties(text: str) -> dict[str, str]:
    """Read the text of Java properties: comments, continued lines and escapes."""
    found: dict[str, str] = {}
    # A line goes on if it ends with an odd number of backslashes: an even number are
    # escaped backslashes. Blanks at the start of the next line do not count.
    joined = re.sub(r"(?<!\\)((?:\\\\)*)\\\r?\n[ \t\f]*", r"\1", text)
    for raw in joined.splitlines():
        line = raw.lstrip()
        if not line or line[0] in "#!":
            continue
        # A line without a separator is a key with an empty value.
        cut = _SEPARATOR.search(line)
        key, rest = (line[: cut.start()], line[cut.start() :]) if cut else (line, "")
        value = re.sub(r"^\s*[=:]?\s*", "", rest, count=1)
        found[_unescaped(key)] = _unescaped(value)
    return found


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(
        lambda found: (
            chr(int(found[1][1:], 16))
            if len(found[1]) > 1
            else _ESCAPED.get(found[1], found[1])
        ),
        text,
    )
