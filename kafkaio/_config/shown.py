"""How the value of an option is shown in an error: only where it cannot be a secret.

People give a password to the option beside the one that is meant, write a server as a
URL with its user, or break a file of properties so that a part of a key stands where a
name belongs. Errors go to logs and to trackers of errors, so none repeats such a value:

- of the options of a login and of TLS, a value is shown only if it resembles one of the
  few words that the option knows;
- of all others, numbers and plain words: what a password looks like is left out
  (ADR 40);
- of a server, what stands behind the last ``@``;
- of a file, a value that has the form of a path.

Whatever is not shown is described by its type.
"""

from __future__ import annotations

import re
from typing import Final

_LOGIN: Final = ("sasl", "ssl", "security", "proxy")
#: A number, perhaps with a unit.
_NUMBER: Final = re.compile(r"[-+]?[0-9][0-9_.,]{0,18} ?[A-Za-z%]{0,4}")
#: Words of letters alone, each in one case, with at most three digits behind them.
_WORDS: Final = re.compile(
    r"(?:[a-z]+|[A-Z][a-z]*|[A-Z]+)(?:[-_. :,](?:[a-z]+|[A-Z][a-z]*|[A-Z]+))*"
    r"[-_.]?[0-9]{0,3}"
)
_MOST: Final = 40
#: The name of an option, in any of the usual spellings.
_NAME: Final = re.compile(
    r"[a-z][a-z0-9]*(?:[._-][a-z0-9]+)*|[a-z]+(?:[A-Z][a-z]+)*|[A-Z]+(?:_[A-Z]+)*"
)
_LONGEST_NAME: Final = 80
#: Hosts, ports and what people write around them.
_ADDRESS: Final = re.compile(r"[\w.:/\[\]%-]{1,120}", re.ASCII)
#: A port, or the end of an IPv6 address.
_PORT: Final = re.compile(r"[0-9]*|[0-9a-fA-F]{1,4}\]?|/*")
_TOKEN: Final = re.compile(r"eyJ[\w-]{10,}")
_ROOTED: Final = re.compile(r"(?:~|\.{1,2})?[/\\]|[A-Za-z]:[/\\]")
_EXTENSION: Final = re.compile(r"[^\s=+]+\.[A-Za-z][A-Za-z0-9]{0,7}")
_LONGEST_PATH: Final = 1024


def shown(name: str, value: object) -> str:
    """Return an option with its value, or with the type of a value that is not shown.

    Args:
        name: the option, in either spelling.
        value: what was given.
    """
    is_login = name.replace(".", "_").startswith(_LOGIN)
    if value is None or isinstance(value, bool):
        may_show = True
    elif isinstance(value, int | float):
        may_show = not is_login
    else:
        may_show = isinstance(value, str) and not is_login and _is_plain(value)
    return f"{name}={value!r}" if may_show else f"{name} ({described(value)})"


def described(value: object) -> str:
    """Return what a value is, and nothing of what it holds."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return type(value).__name__


def shown_name(name: object) -> str:
    """Return the name of an option that does not exist, if it has the form of a name.

    A line of a key stands for a name where the lines of a file were broken.
    """
    if (
        isinstance(name, str)
        and len(name) <= _LONGEST_NAME
        and _NAME.fullmatch(name) is not None
    ):
        return repr(name)
    return f"({described(name)})"


def shown_server(text: str) -> str:
    """Return an address without the user and the password that stand before it."""
    before, at, address = text.rpartition("@")
    scheme = before.partition("://")[0] + "://" if "://" in before else ""
    # Behind the host of a URL a token may follow.
    host = re.split(r"(?<![:/])/|[?#;]", address, maxsplit=1)[0]
    if not _ADDRESS.fullmatch(scheme + host) or _TOKEN.search(host):
        return f"({described(text)})"
    name, colon, port = host.rpartition(":")
    if colon and not _PORT.fullmatch(port):
        # A user and a password, without a host.
        host = f"{name}:***"
    return repr(f"{scheme}***@{host}" if at else host)


def shown_path(name: str, path: str) -> str:
    """Return an option with the path that it names.

    Args:
        name: the option.
        path: what was given; it may be the content, or a password.
    """
    return f"{name}={path!r}" if _is_path(path) else f"{name} ({described(path)})"


def shown_file(path: str) -> str:
    """Return the path of a file as it is; or that it has not the form of a path."""
    return path if _is_path(path) else "the file (its path has not the form of one)"


def _is_path(path: str) -> bool:
    has_form = _ROOTED.match(path) or _EXTENSION.fullmatch(path)
    is_text = "\n" in path or path.endswith("=") or _TOKEN.search(path)
    return bool(has_form and not is_text and len(path) <= _LONGEST_PATH)


def _is_plain(text: str) -> bool:
    return len(text) <= _MOST and bool(
        not text or _NUMBER.fullmatch(text) or _WORDS.fullmatch(text)
    )
