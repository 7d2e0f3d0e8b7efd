"""Expressions of ``--filter``, which select records. Nothing is evaluated as Python.

    key == "k1" and not value contains "test"
    partition in (0, 3) or offset >= 100
    header.trace ~ "^00-" and value != null
    value.customer.id == "7" and value.lines.0.amount > 9.5

Fields are ``topic partition offset timestamp key value`` and ``header.NAME`` (the last
header of that name; null if there is none). ``key.NAME`` and ``value.NAME`` are inside
of JSON, or of what was decoded: a name of an object, or the place in a list; null if
there is none. They are compared by ``== != < <= > >=``,
``in (...)``, ``contains``, ``startswith``, ``endswith`` and ``~``, which searches for a
regular expression. Bytes are compared with the UTF-8 of text. ``and`` binds more
tightly than ``or``. Comparisons of null are false, except ``==`` and ``!=``.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable
from typing import Final, TypeAlias

from kafkaio._cli.records.decoded import DecodedRecord, ShownRecord, utf_8, write_json
from kafkaio._cli.records.format import FormatError
from kafkaio._named_tuple import NamedTuple

Filter: TypeAlias = Callable[[ShownRecord], bool]
_Value: TypeAlias = int | float | bytes | None
_Read: TypeAlias = Callable[[ShownRecord], _Value]

#: Text in double quotes has the escapes of JSON; in single quotes it has none, for
#: regular expressions. Any other character is a token that no rule takes.
_TOKENS: Final = re.compile(
    r"""\s*(?:(?P<number>-?\d+(?:\.\d+)?)|(?P<text>"(?:[^"\\]|\\.)*"|'[^'\\]*')
    |(?P<word>[A-Za-z_][\w.-]*)|(?P<sign>==|!=|<=|>=|[<>~(),])|(?P<wrong>\S))""",
    re.VERBOSE,
)
_COMPARE: Final[dict[str, Callable[..., bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ON_BYTES: Final[dict[str, Callable[[bytes, bytes], bool]]] = {
    "contains": operator.contains,
    "startswith": bytes.startswith,
    "endswith": bytes.endswith,
}
_NUMBERS: Final[dict[str, _Read]] = {
    "partition": operator.attrgetter("partition"),
    "offset": operator.attrgetter("offset"),
    "timestamp": operator.attrgetter("timestamp"),
}
_BYTES: Final[dict[str, _Read]] = {
    "topic": lambda record: record.topic.encode(),
    "key": operator.attrgetter("key"),
    "value": operator.attrgetter("value"),
}


#: What a field can be compared with.
_NUMBER: Final = "number"
_TEXT: Final = "text"
_ANY: Final = "any"


class _Token(NamedTuple):
    kind: str
    text: str
    position: int


def compile_filter(expression: str) -> Filter:
    """Compile an expression to a function.

    Raises:
        FormatError: the expression is wrong; the message has a caret under the place.
    """
    parser = _Parser(expression)
    found = parser.either()
    parser.end()
    return found


class _Parser:
    """Reads an expression from left to right."""

    def __init__(self, expression: str) -> None:
        self._expression = expression
        self._tokens = [
            _Token(
                str(m.lastgroup), str(m[str(m.lastgroup)]), m.start(str(m.lastgroup))
            )
            for m in _TOKENS.finditer(expression)
        ]
        self._tokens.append(_Token("end", "", len(expression)))
        self._at = 0

    def end(self) -> None:
        """Raise unless all tokens were read."""
        if self._token.kind != "end":
            raise self._error("expected 'and', 'or' or the end")

    def either(self) -> Filter:
        """Read terms with ``or``."""
        # Recursive descent: either() reads "or", _both() "and", _one() "not" and
        # parentheses, _comparison() the rest. Each level calls the one that binds more.
        terms = [self._both()]
        while self._took("or"):
            terms.append(self._both())
        if len(terms) == 1:
            return terms[0]
        return lambda record: any(term(record) for term in terms)

    def _both(self) -> Filter:
        terms = [self._one()]
        while self._took("and"):
            terms.append(self._one())
        if len(terms) == 1:
            return terms[0]
        return lambda record: all(term(record) for term in terms)

    def _one(self) -> Filter:
        if self._took("not"):
            term = self._one()
            return lambda record: not term(record)
        if self._took("("):
            inside = self.either()
            self._require(")")
            return inside
        return self._comparison()

    def _comparison(self) -> Filter:
        read, kind = self._field()
        sign = self._token
        if sign.text in _COMPARE:
            self._at += 1
            return _compared(read, sign.text, self._literal(kind))
        if self._took("in"):
            values = self._list(kind)
            return lambda record: read(record) in values
        # Numbers have no text to search in.
        if kind == _NUMBER or sign.text not in {*_ON_BYTES, "~"}:
            raise self._error("expected a comparison such as ==")
        self._at += 1
        if sign.text == "~":
            return _matching(read, self._pattern())
        return _on_bytes(read, _ON_BYTES[sign.text], self._text())

    def _field(self) -> tuple[_Read, str]:
        token = self._token
        name = token.text if token.kind == "word" else ""
        first, _, rest = name.partition(".")
        if name in _NUMBERS:
            read, kind = _NUMBERS[name], _NUMBER
        elif name in _BYTES:
            read, kind = _BYTES[name], _TEXT
        elif rest and first == "header":
            read, kind = _header(rest), _TEXT
        elif rest and first in {"key", "value"}:
            read, kind = _inside(rest.split("."), is_key=first == "key"), _ANY
        else:
            fields = [*_BYTES, *_NUMBERS, "header.NAME", "key.NAME", "value.NAME"]
            raise self._error(f"expected a field: {', '.join(fields)}")
        self._at += 1
        return read, kind

    def _list(self, kind: str) -> frozenset[_Value]:
        self._require("(")
        values = {self._literal(kind)}
        while self._took(","):
            values.add(self._literal(kind))
        self._require(")")
        return frozenset(values)

    def _literal(self, kind: str) -> _Value:
        token = self._token
        if kind != _TEXT and token.kind == "number":
            self._at += 1
            return float(token.text) if "." in token.text else int(token.text)
        if kind == _NUMBER:
            raise self._error("expected a number")
        if self._took("null"):
            return None
        if kind == _ANY and (self._took("true") or self._took("false")):
            return token.text.encode()
        return self._text()

    def _text(self) -> bytes:
        token = self._token
        if token.kind != "text":
            raise self._error("expected text in quotes")
        self._at += 1
        if token.text.startswith("'"):
            return token.text[1:-1].encode()
        try:
            return str(json.loads(token.text)).encode()
        except ValueError:
            self._at -= 1  # the caret points at the text, not behind it
            raise self._error("an escape in this text is wrong") from None

    def _pattern(self) -> re.Pattern[bytes]:
        text = self._text()
        try:
            return re.compile(text)
        except re.error as error:
            self._at -= 1
            raise self._error(f"the regular expression is wrong: {error}") from None

    @property
    def _token(self) -> _Token:
        return self._tokens[self._at]

    def _took(self, text: str) -> bool:
        token = self._token
        found = token.kind in ("word", "sign") and token.text == text
        self._at += found
        return found

    def _require(self, text: str) -> None:
        if not self._took(text):
            raise self._error(f"expected {text!r}")

    def _error(self, reason: str) -> FormatError:
        return FormatError(reason, self._expression, self._token.position)


def _header(name: str) -> _Read:
    def read(record: ShownRecord) -> _Value:
        # Headers may repeat a name. The last one counts, as for Java's lastHeader.
        for each, value in reversed(record.headers):
            if each == name:
                return value
        return None

    return read


def _inside(names: list[str], *, is_key: bool) -> _Read:
    """Return a function that reads a part of a key or a value."""

    def read(record: ShownRecord) -> _Value:
        tree = _tree(record, is_key=is_key)
        for name in names:
            if isinstance(tree, dict):
                tree = tree.get(name)
            elif isinstance(tree, list) and name.isdecimal():
                tree = next(iter(tree[int(name) : int(name) + 1]), None)
            else:
                return None
        if tree is None or (
            isinstance(tree, int | float) and not isinstance(tree, bool)
        ):
            return tree
        return utf_8(tree if isinstance(tree, str) else write_json(tree))

    return read


def _tree(record: ShownRecord, *, is_key: bool) -> object:
    """Return what was decoded of a record, else what its bytes are as JSON."""
    if isinstance(record, DecodedRecord):
        decoded = record.decoded_key if is_key else record.decoded_value
        if decoded is not None:
            return decoded.tree
    data = record.key if is_key else record.value
    try:
        return None if data is None else json.loads(data)
    except (ValueError, RecursionError):
        return None


def _compared(read: _Read, sign: str, literal: _Value) -> Filter:
    compare = _COMPARE[sign]
    # Equality is defined for null; an order of bytes and None would raise.
    if sign in ("==", "!="):
        return lambda record: compare(read(record), literal)
    if literal is None:
        return lambda _: False

    def is_kept(record: ShownRecord) -> bool:
        value = read(record)
        if value is None or isinstance(value, bytes) is not isinstance(literal, bytes):
            return False
        return compare(value, literal)

    return is_kept


def _on_bytes(
    read: _Read, holds: Callable[[bytes, bytes], bool], text: bytes
) -> Filter:
    def is_kept(record: ShownRecord) -> bool:
        value = read(record)
        return isinstance(value, bytes) and holds(value, text)

    return is_kept


def _matching(read: _Read, pattern: re.Pattern[bytes]) -> Filter:
    def is_kept(record: ShownRecord) -> bool:
        value = read(record)
        return isinstance(value, bytes) and pattern.search(value) is not None

    return is_kept
