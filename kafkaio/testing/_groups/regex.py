r"""RE2 patterns, with which brokers match topics (KIP-848), translated for ``re``.

RE2 has no look-around and no back-references, but a few things that Python lacks:
``\z``, ``\pL``, ``\x{41}``, ``\Q...\E``, ``[[:alpha:]]``, ``(?U)``. Topic names are
ASCII, so character classes are translated for ASCII only.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Callable
from typing import Final

_ASCII: Final = "".join(map(chr, range(128)))
_LARGEST_REPEAT: Final = 1000
_SAME: Final = frozenset("AbBdDsSwWaftnrv")
_POSIX: Final = {
    "alnum": string.ascii_letters + string.digits,
    "alpha": string.ascii_letters,
    "ascii": _ASCII,
    "blank": " \t",
    "cntrl": "".join(map(chr, [*range(32), 127])),
    "digit": string.digits,
    "graph": string.ascii_letters + string.digits + string.punctuation,
    "lower": string.ascii_lowercase,
    "print": string.ascii_letters + string.digits + string.punctuation + " ",
    "punct": string.punctuation,
    "space": string.whitespace,
    "upper": string.ascii_uppercase,
    "word": string.ascii_letters + string.digits + "_",
    "xdigit": string.hexdigits,
}
#: Members that cannot begin a range: a dash after them stands for itself.
_NO_ENDS: Final = frozenset({r"\d", r"\D", r"\s", r"\S", r"\w", r"\W", "-"})
_CATEGORIES: Final = frozenset(
    {"C", "Cc", "Cf", "Co", "Cs", "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me"}
    | {"Mn", "N", "Nd", "Nl", "No", "P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps"}
    | {"S", "Sc", "Sk", "Sm", "So", "Z", "Zl", "Zp", "Zs"}
)
_SCRIPTS: Final = frozenset(
    {"Arabic", "Armenian", "Bengali", "Common", "Cyrillic", "Devanagari", "Ethiopic"}
    | {"Georgian", "Greek", "Gujarati", "Gurmukhi", "Han", "Hangul", "Hebrew"}
    | {"Hiragana", "Inherited", "Kannada", "Katakana", "Khmer", "Lao", "Latin"}
    | {"Malayalam", "Mongolian", "Myanmar", "Oriya", "Sinhala", "Tamil", "Telugu"}
    | {"Thaana", "Thai", "Tibetan"}
)
_GROUP: Final = re.compile(
    r"\?(?:P?<(?P<name>\w+)>|(?P<flags>[imsU]*(?:-[imsU]+)?)(?P<end>[:)]))", re.ASCII
)
_REPEAT: Final = re.compile(r"\{(\d+)(,(\d*))?\}")
_POSIX_CLASS: Final = re.compile(r"\[:(\^?)(\w+):\]")


class InvalidPatternError(ValueError):
    """The pattern is not valid in RE2."""


def compile_re2(pattern: str) -> re.Pattern[str]:
    """Translate and compile an RE2 pattern, to match whole names with.

    Raises:
        InvalidPatternError: it is not valid in RE2.
    """
    translated = _Translator(pattern).translate()
    try:
        # RE2 knows \d, \s and \w of ASCII only.
        return re.compile(translated, re.ASCII)
    except (re.error, OverflowError) as error:
        raise InvalidPatternError(f"{pattern!r}: {error}") from error


def is_re2(pattern: str) -> bool:
    """Whether a pattern is valid in RE2."""
    try:
        compile_re2(pattern)
    except InvalidPatternError:
        return False
    return True


class _Translator:
    """Translates a pattern for Python in one pass."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._out: list[str] = []
        #: For each open group: how many groups that we added end with it.
        self._open: list[int] = [0]
        self._names: set[str] = set()
        self._can_repeat = False

    def translate(self) -> str:
        steps: dict[str, Callable[[], None]] = {
            "\\": self._escape,
            "[": self._class,
            "(": self._begin,
            ")": self._end,
            "*": self._repeat,
            "+": self._repeat,
            "?": self._repeat,
            "{": self._count,
            "|": self._alternative,
        }
        while self._at < len(self._pattern):
            steps.get(self._pattern[self._at], self._plain)()
        if len(self._open) > 1:
            raise self._error("a group is not closed")
        return "".join(self._out) + ")" * self._open[0]

    def _error(self, why: str) -> InvalidPatternError:
        return InvalidPatternError(f"{self._pattern!r} at {self._at}: {why}")

    def _put(self, text: str, length: int, *, can_repeat: bool = True) -> None:
        self._out.append(text)
        self._at += length
        self._can_repeat = can_repeat

    def _plain(self) -> None:
        character = self._pattern[self._at]
        # In a group, because Python does not allow to repeat an anchor.
        self._put(f"(?:{character})" if character in "^$" else character, 1)

    def _alternative(self) -> None:
        self._put("|", 1, can_repeat=False)

    # Repetitions

    def _repeat(self) -> None:
        self._repeated(self._pattern[self._at], 1)

    def _repeated(self, text: str, length: int) -> None:
        """Write a repetition; lazy ones become greedy: whole names match alike."""
        if not self._can_repeat:
            raise self._error("nothing to repeat")
        self._put(text, length, can_repeat=False)
        # The sign for a lazy repetition.
        if self._pattern[self._at : self._at + 1] == "?":
            self._at += 1

    def _count(self) -> None:
        found = _REPEAT.match(self._pattern, self._at)
        if found is None:
            # A brace that begins no repetition stands for itself.
            self._put("\\{", 1)
            return
        low, high = int(found[1]), int(found[3] or found[1])
        if not low <= high <= _LARGEST_REPEAT:
            raise self._error("a repetition is too large, or its limits are reversed")
        self._repeated(found[0], len(found[0]))

    # Groups

    def _begin(self) -> None:
        self._at += 1
        if self._pattern[self._at : self._at + 1] != "?":
            self._push("(")
            return
        found = _GROUP.match(self._pattern, self._at)
        if found is None:
            raise self._error("RE2 has no such kind of group")
        self._at = found.end()
        if found["name"] is not None:
            if found["name"] in self._names:
                raise self._error(f"there are two groups {found['name']}")
            self._names.add(found["name"])
            self._push("(")
            return
        # U swaps greedy and lazy, which makes no difference for whole names.
        flags = "(?" + found["flags"].replace("U", "").rstrip("-") + ":"
        if found["end"] == ":":
            self._push(flags)
        else:
            # Python has flags inside a group only, so we begin a group here.
            self._put(flags, 0, can_repeat=False)
            self._open[-1] += 1

    def _push(self, text: str) -> None:
        self._put(text, 0, can_repeat=False)
        self._open.append(0)

    def _end(self) -> None:
        if len(self._open) == 1:
            raise self._error("a closing parenthesis without an opening one")
        self._put(")" * (self._open.pop() + 1), 1)

    # Characters

    def _escape(self) -> None:
        if self._pattern.startswith("\\Q", self._at):
            rest = self._pattern[self._at + 2 :]
            literal, _, _ = rest.partition("\\E")
            self._put(re.escape(literal), min(len(literal) + 4, len(rest) + 2))
            return
        self._put(*self._character(in_class=False))

    def _character(self, *, in_class: bool) -> tuple[str, int]:
        """Return the translation of an escape, and the escape's length."""
        text = self._pattern[self._at : self._at + 2]
        kind = text[1:]
        if kind in {"p", "P"}:
            return self._property(in_class=in_class)
        if kind == "x":
            return self._hexadecimal()
        if kind == "z" and not in_class:
            return "(?:\\Z)", 2
        if kind == "0" or kind in _SAME:
            # In a group, because Python does not allow to repeat an anchor.
            return (f"(?:{text})" if kind in "AbB" and not in_class else text), 2
        if kind and not (kind.isascii() and kind.isalnum()):
            return re.escape(kind), 2
        raise self._error("RE2 has no such escape")

    def _hexadecimal(self) -> tuple[str, int]:
        found = re.compile(r"\\x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]{1,6})\})").match(
            self._pattern, self._at
        )
        if found is None or int(found[1] or found[2], 16) > 0x10FFFF:
            raise self._error("not the number of a character")
        return re.escape(chr(int(found[1] or found[2], 16))), len(found[0])

    def _property(self, *, in_class: bool) -> tuple[str, int]:
        found = re.compile(r"\\([pP])(?:(\w)|\{(\^?)(\w+)\})").match(
            self._pattern, self._at
        )
        name = found and (found[2] or found[4])
        if not found or name not in _CATEGORIES | _SCRIPTS | {"Any"}:
            raise self._error("RE2 has no such character class")
        is_negated = (found[1] == "P") != bool(found[3])
        # Names of topics are ASCII, so the class needs no other characters.
        members = [one for one in _ASCII if _is_in(one, name) != is_negated]
        return _members("".join(members), in_class=in_class), len(found[0])

    def _class(self) -> None:
        """Translate a character class, member by member."""
        parts = ["["]
        self._at += 1
        if self._pattern.startswith("^", self._at):
            parts.append("^")
            self._at += 1
        first = self._at
        while self._at == first or not self._pattern.startswith("]", self._at):
            if self._at >= len(self._pattern):
                raise self._error("a character class is not closed")
            text, length = self._member()
            is_dash = text == "-" and (len(parts[-1]) > 2 or parts[-1] in _NO_ENDS)
            parts.append("\\-" if is_dash else text)
            self._at += length
        self._put("".join(parts) + "]", 1)

    def _member(self) -> tuple[str, int]:
        posix = _POSIX_CLASS.match(self._pattern, self._at)
        if posix is not None:
            if posix[2] not in _POSIX:
                raise self._error("RE2 has no such character class")
            members = [
                one for one in _ASCII if (one in _POSIX[posix[2]]) != bool(posix[1])
            ]
            return _members("".join(members), in_class=True), len(posix[0])
        character = self._pattern[self._at]
        if character == "\\":
            return self._character(in_class=True)
        # Characters that Python may give a meaning to inside a class one day.
        return ("\\" + character if character in "[&~|]" else character), 1


def _is_in(character: str, name: str) -> bool:
    """Whether an ASCII character has a property of Unicode."""
    if name in _CATEGORIES:
        return unicodedata.category(character).startswith(name)
    is_latin = character in string.ascii_letters
    return (
        name == "Any"
        or (name == "Latin" and is_latin)
        or (name == "Common" and not is_latin)
    )


def _members(characters: str, *, in_class: bool) -> str:
    """Return a class of these characters, or with ``in_class`` only its members."""
    inside = re.escape(characters)
    if in_class:
        return inside
    return f"[{inside}]" if inside else r"[^\s\S]"
