"""The value of ``sasl.jaas.config``: a login module of Java and its options.

The form is that of Java's clients (KIP-85)::

    org.apache.kafka.common.security.plain.PlainLoginModule required
        username="alice" password="..." ;

A word ends at a space, ``=`` or ``;``. Values in single or double quotes may have any
character; a backslash escapes one. Java reads the text with its ``StreamTokenizer``,
and so does this module: an unquoted number is not a value, and ``/`` begins a comment.

No error and no ``repr`` shows a value. State: none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from kafkaio._config.msk import OPTIONS as MSK_OPTIONS
from kafkaio.errors import ConfigurationError

#: Options of Java's login modules, whose names an error may show.
_OPTIONS: Final = frozenset(
    {
        *("username", "password", "tokenauth", "keyTab", "principal", "serviceName"),
        *("useKeyTab", "useTicketCache", "ticketCache", "storeKey", "debug"),
        *("clientId", "clientSecret", "scope"),
        *MSK_OPTIONS,
    }
)
_FLAGS: Final = frozenset({"required", "requisite", "sufficient", "optional"})
#: Spaces and comments: ``/*...*/``, and from any other ``/`` to the end of the line;
#: the character behind a lone ``/`` may be that end, and does not count.
_BLANK: Final = re.compile(
    r"(?:[\x00-\x20]|/\*.*?(?:\*/|\Z)|//[^\r\n]*|/(?![/*]).?[^\r\n]*)+", re.DOTALL
)
_WORD: Final = re.compile(
    r"[A-Za-z_$\x80-\U0010ffff][\w$.\-\x80-\U0010ffff]*", re.ASCII
)
_NUMBER: Final = re.compile(r"-?[0-9.]*[0-9][0-9.]*")
#: A text in quotes ends at the quote, or without an error at the end of the line.
_QUOTED: Final = re.compile(
    r"(?P<quote>[\"'])(?P<text>(?:\\.|(?!(?P=quote))[^\\\r\n])*)(?:(?P=quote)|\Z|(?=[\r\n]))",
    re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_ESCAPED: Final = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}


class LoginModule:
    """A login module and its options; the values are never shown.

    Args:
        name: the class, with its package.
        options: values by name.
    """

    __slots__ = ("name", "options")

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        self.name: str = name
        self.options: Mapping[str, str] = options

    def __repr__(self) -> str:
        return f"<LoginModule {self.name}: {', '.join(self.options)}>"

    @property
    def kind(self) -> str:
        """The class without its package, which vendors change."""
        return self.name.rpartition(".")[2]


#: A word, a text in quotes, or one other character; and whether it is one of the first
#: two, as ``=`` and ``"="`` differ.
_Token: TypeAlias = tuple[str, bool]


def parse_jaas(text: str) -> LoginModule:
    """Read the value of ``sasl.jaas.config``.

    Raises:
        ConfigurationError: it is not one login module with its options.
    """
    tokens = _tokens(text)
    name, is_text = next(tokens, ("", True))
    if not is_text:
        raise _wrong("it does not begin with the class of a login module")
    if not name:
        raise _wrong("it is empty")
    flag, is_text = next(tokens, ("", False))
    if not is_text or flag.lower() not in _FLAGS:
        raise _wrong("required, or another control flag, has to follow the class")
    options = dict(_options(tokens))
    if next(tokens, None) is not None:
        raise _wrong("more than one login module, or text after the semicolon")
    return LoginModule(name, options)


def _options(tokens: Iterator[_Token]) -> Iterator[tuple[str, str]]:
    for key, is_text in tokens:
        if (key, is_text) == (";", False):
            return
        if not is_text:
            raise _wrong("the name of an option has to stand before each value")
        sign, (value, is_text) = next(tokens, None), next(tokens, ("", False))
        if sign != ("=", False) or not is_text:
            # Where quotes are missing, a part of a value stands where a name belongs.
            name = key if key in _OPTIONS else "name"
            what = f"option {key!r}" if key in _OPTIONS else "an option"
            raise _wrong(
                f"{what} has no value; the form is "
                f'{name}="...", and a value that is not a word needs the quotes'
            )
        yield key, value
    raise _wrong("no semicolon at its end")


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        if blank := _BLANK.match(text, at):
            at = blank.end()
        elif found := _WORD.match(text, at):
            at = found.end()
            yield found[0], True
        elif found := _QUOTED.match(text, at):
            at = found.end()
            yield _ESCAPE.sub(_unescaped, found["text"]), True
        elif found := _NUMBER.match(text, at):
            at = found.end()
            yield "", False
        else:
            at += 1
            yield text[at - 1], False


def _unescaped(found: re.Match[str]) -> str:
    escaped = found[1]
    if escaped[0] in "01234567":
        return chr(int(escaped, 8))
    return _ESCAPED.get(escaped, escaped)


def _wrong(what: str) -> ConfigurationError:
    return ConfigurationError(
        f"sasl.jaas.config: {what}. It is "
        'package.LoginModule required name="value" ... ;'
    )
