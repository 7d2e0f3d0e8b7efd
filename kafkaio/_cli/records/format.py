r"""The format language of ``-f``, which writes records and reads input.

The language is that of rpk and kcl. The same format both writes and reads:

| token | meaning |
|---|---|
| ``%t %k %v`` | topic, key, value |
| ``%T %K %V`` | the length of each in bytes |
| ``%H``, ``%h{...}`` | the number of headers; each of them, by ``%k %K %v %V`` |
| ``%p %o %e`` | partition, offset, leader epoch |
| ``%d`` | timestamp in milliseconds; ``%d{strftime[%F %T]}`` in UTC |
| ``%a{timestamp-type}`` | who set the timestamp: ``CreateTime``, ``LogAppendTime`` |
| ``%i`` | the number of the record, from 1 |
| ``%% %{ %}`` | a percent sign, braces |
| ``\t \n \r \\ \xNN`` | a tab, line breaks, a backslash, a byte |

Numbers take ``{ascii}`` (the default), ``{hex}``, ``{hex64}`` to ``{hex4}``,
``{big64}`` to ``{big8}``, ``{little64}`` to ``{little8}``, ``{byte}``; larger numbers
are cut. Text takes ``{hex}``, ``{base64}``, ``{base64raw}``, ``{unpack[...]}`` (only
to write), ``{re[...]}`` (only to read). An argument is enclosed in any number of
``[``, ``{`` or ``#``, and as many of their counterparts: ``re##[a-z]##``.

`scan` turns a format into parts; `kafkaio._cli.records.rendering` and
`kafkaio._cli.records.input` make functions of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias


class FormatError(ValueError):
    """A format is invalid; the message shows it with a caret under the place.

    Attributes:
        reason: the reason.
        layout: the format.
        position: the index of the error in the format.
    """

    def __init__(self, reason: str, layout: str, position: int) -> None:
        self.reason = reason
        self.layout = layout
        self.position = position
        # One column for each character: the caret stands under the right one.
        shown = "".join(c if c.isprintable() else "?" for c in layout)
        super().__init__(f"{reason}\n  {shown}\n  {' ' * position}^")


@dataclass(frozen=True, slots=True)
class Literal:
    """Bytes that stand for themselves.

    Attributes:
        data: the bytes.
        position: index into the format, as in all parts.
    """

    data: bytes
    position: int


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a record.

    Attributes:
        name: the letter of the token.
        kind: its encoding, ``ascii`` or ``big32``, or digits: a constant.
        position: index into the format.
    """

    name: str
    kind: str
    position: int


@dataclass(frozen=True, slots=True)
class Text:
    """Bytes of a record, or an attribute that is written as text.

    Attributes:
        name: the letter of the token: ``t``, ``k``, ``v``, or ``d``, ``a``.
        how: empty, ``hex``, ``base64``, ``base64raw``, ``unpack``, ``re``; for dates
            ``strftime``.
        argument: the text in the brackets.
        position: index into the format.
    """

    name: str
    how: str
    argument: str
    position: int


@dataclass(frozen=True, slots=True)
class Headers:
    """Each header of a record.

    Attributes:
        parts: the format of one header; ``k`` is its name, ``v`` its value.
        position: index into the format.
    """

    parts: tuple[Part, ...]
    position: int


Part: TypeAlias = Literal | Number | Text | Headers

#: Lengths of topic, key and value; number of headers; partition, offset, epoch, date,
#: index.
NUMBERS: Final = frozenset("TKVHpoedi")
_TEXTS: Final = frozenset("tkv")
_IN_HEADERS: Final = frozenset("kvKV")
_ESCAPED: Final = {"t": b"\t", "n": b"\n", "r": b"\r", "\\": b"\\"}
_HEX: Final = re.compile("[0-9a-fA-F]{2}")
_SIZES: Final = ("64", "32", "16", "8")
#: The encodings of numbers.
KINDS: Final = frozenset(
    {"ascii", "hex", "hex4", "byte"}
    | {f"{name}{size}" for name in ("hex", "big", "little") for size in _SIZES}
)
_TEXT_KINDS: Final = frozenset({"hex", "base64", "base64raw"})
#: Brackets around an argument, and their counterparts.
_MIRROR: Final = {"[": "]", "{": "}", "#": "#"}
#: Tokens of rpk that are not supported, with the reason.
_NOT_SUPPORTED: Final = {
    "x": "a consumer does not keep the producer id",
    "y": "a consumer does not keep the producer epoch",
    "[": "the log start offset is shown by 'kafkaio topics offsets'",
    "|": "the last stable offset is shown by 'kafkaio topics offsets'",
    "]": "the high watermark is shown by 'kafkaio topics offsets'",
}


def scan(layout: str) -> tuple[Part, ...]:
    """Return the parts of a format.

    Raises:
        FormatError: a token is unknown, or braces do not match.
    """
    return _Scanner(layout).parts(len(layout))


def escape(layout: str, position: int) -> tuple[bytes, int]:
    r"""Read an escape such as ``\n``.

    Args:
        layout: the format.
        position: the index of the backslash.

    Returns:
        What it stands for, and the index after it.

    Raises:
        FormatError: the escape is unknown.
    """
    letter = layout[position + 1 : position + 2]
    if letter in _ESCAPED:
        return _ESCAPED[letter], position + 2
    if letter == "x":
        if found := _HEX.match(layout, position + 2):
            return bytes.fromhex(found[0]), found.end()
        raise FormatError(r"\x needs two hexadecimal digits", layout, position)
    raise FormatError(rf"unknown escape \{letter}", layout, position)


class _Scanner:
    """Reads a format from left to right.

    Args:
        layout: the format.
        position: the index to begin at.
        is_header: whether the format is the inside of ``%h{...}``.
    """

    def __init__(
        self, layout: str, position: int = 0, *, is_header: bool = False
    ) -> None:
        self.layout = layout
        self.position = position
        self._is_header = is_header

    def parts(self, end: int) -> tuple[Part, ...]:
        """Read up to an index."""
        # Characters and escapes that follow one another become one literal.
        found: list[Part] = []
        literal, start = b"", self.position
        while self.position < end:
            start = self.position if not literal else start
            if (data := self._literal()) is not None:
                literal += data
                continue
            if literal:
                found.append(Literal(literal, start))
                literal = b""
            found.append(self._token(end))
        if literal:
            found.append(Literal(literal, start))
        return tuple(found)

    def _literal(self) -> bytes | None:
        """Read a character that stands for itself, or an escape."""
        at = self.position
        letter = self.layout[at]
        if letter == "\\":
            data, self.position = escape(self.layout, at)
            return data
        if letter != "%":
            self.position += 1
            return letter.encode()
        if self.layout[at + 1 : at + 2] in ("%", "{", "}"):
            self.position += 2
            return self.layout[at + 1].encode()
        return None

    def _token(self, end: int) -> Part:
        at = self.position
        name = self.layout[at + 1 : min(at + 2, end)]
        known = _IN_HEADERS if self._is_header else NUMBERS | _TEXTS | {"h", "a"}
        if name not in known or not name:
            raise self._unknown(name, at)
        self.position = at + 2
        has_brace = self.layout[self.position : self.position + 1] == "{"
        if has_brace:
            self.position += 1
        if name == "h":
            return self._headers(at, has_brace=has_brace)
        if name == "a":
            return self._attribute(at, has_brace=has_brace)
        if not has_brace:
            return (
                Text(name, "", "", at) if name in _TEXTS else Number(name, "ascii", at)
            )
        if name in _TEXTS:
            return self._text(name, at)
        return self._number(name, at)

    def _unknown(self, name: str, at: int) -> FormatError:
        if not name:
            return FormatError("the format ends within a token", self.layout, at)
        if self._is_header:
            reason = f"%{name} is not a token of a header: those are %k %v %K %V"
        elif name in _NOT_SUPPORTED:
            reason = f"%{name} is not supported: {_NOT_SUPPORTED[name]}"
        else:
            reason = f"unknown token %{name}"
        return FormatError(reason, self.layout, at)

    def _number(self, name: str, at: int) -> Part:
        # %d is the one number that can be written as text.
        if name == "d":
            for how in ("strftime", "go"):
                if self.layout.startswith(how, self.position):
                    return self._date(how, at)
        start = self.position
        kind = self._word()
        # A constant such as %V{8} is a length in input; only reading takes it.
        if kind not in KINDS and not (kind.isdecimal() and int(kind)):
            raise FormatError(
                f"unknown way {kind!r} to write a number", self.layout, start
            )
        return Number(name, kind, at)

    def _date(self, how: str, at: int) -> Text:
        if how == "go":
            raise FormatError(
                "Go's layouts of times are not supported: use strftime",
                self.layout,
                self.position,
            )
        return Text("d", how, self._bracketed(how), at)

    def _text(self, name: str, at: int) -> Text:
        for how in ("unpack", "re"):
            if self.layout.startswith(how, self.position):
                return Text(name, how, self._bracketed(how), at)
        start = self.position
        how = self._word()
        if how not in _TEXT_KINDS:
            raise FormatError(f"unknown way {how!r} to write text", self.layout, start)
        return Text(name, how, "", at)

    def _attribute(self, at: int, *, has_brace: bool) -> Text:
        start = self.position
        what = self._word() if has_brace else ""
        if what != "timestamp-type":
            reason = (
                "%a takes {timestamp-type}: records do not keep more of their batch"
            )
            raise FormatError(reason, self.layout, start if has_brace else at)
        return Text("a", "", what, at)

    def _headers(self, at: int, *, has_brace: bool) -> Headers:
        if not has_brace:
            raise FormatError("%h needs a format in braces", self.layout, at)
        start = self.position
        end = self._closing(start)
        inner = _Scanner(self.layout, start, is_header=True)
        parts = inner.parts(end)
        self.position = end + 1
        return Headers(parts, at)

    def _closing(self, start: int) -> int:
        """Return the index of the brace that closes the one before ``start``."""
        # Escapes and tokens are skipped in pairs: neither \{ nor %{ opens a brace.
        depth, at = 1, start
        while at < len(self.layout):
            letter = self.layout[at]
            if letter in "%\\" and self.layout[at + 1 : at + 2] in (
                "{",
                "}",
                "%",
                "\\",
            ):
                at += 2
                continue
            depth += (letter == "{") - (letter == "}")
            if not depth:
                return at
            at += 1
        raise FormatError("this brace is not closed", self.layout, start - 1)

    def _word(self) -> str:
        """Read up to the closing brace, and the brace."""
        start = self.position
        end = self.layout.find("}", start)
        if end < 0:
            raise FormatError("this brace is not closed", self.layout, start - 1)
        self.position = end + 1
        return self.layout[start:end]

    def _bracketed(self, how: str) -> str:
        """Read the argument of ``strftime``, and the closing brace."""
        # As many closing brackets as opening ones, so the argument may have fewer.
        start = self.position + len(how)
        at = start
        opening = self.layout[start : start + 1]
        while opening in _MIRROR and self.layout[at : at + 1] == opening:
            at += 1
        if at == start:
            reason = f"{how} needs an argument in brackets, such as {how}[...]"
            raise FormatError(reason, self.layout, start)
        closing = _MIRROR[opening] * (at - start) + "}"
        end = self.layout.find(closing, at)
        if end < 0:
            reason = f"no {closing} closes this bracket"
            raise FormatError(reason, self.layout, start)
        self.position = end + len(closing)
        return self.layout[at:end]


def require(parts: Sequence[Part], layout: str, check: Callable[[Part], str]) -> None:
    """Raise for parts that one direction, writing or reading, does not support.

    Args:
        parts: the parts, those of headers included.
        layout: the format.
        check: returns why a part is refused, or an empty string.

    Raises:
        FormatError: a part is refused.
    """
    for part in parts:
        if reason := check(part):
            raise FormatError(reason, layout, part.position)
        if isinstance(part, Headers):
            require(part.parts, layout, check)
