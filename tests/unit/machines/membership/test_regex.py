"""Which patterns may be matched by the broker."""

from __future__ import annotations

import re

import pytest

from kafkaio._machines.membership.kip848.regex import to_re2

SAME = [
    "orders",
    "orders-.*",
    r"a\.b\-c\_d",
    "a|b|",
    "(a|b)+x{2}y{2,}z{2,3}?",
    "(?:a|b)?c*?",
    "(?P<stem>a)b",
    r"[a-z][^0-9][]x][\w-]+[a.|(]",
    r"^\Aa\d\W\b\B$",
]
OWN = [
    "",
    "a++",
    "a*+",
    "a{,3}",
    "a{2000}",
    "a{x",
    "(?=a)b",
    "(?!a)b",
    "(?<=a)b",
    "(?<!a)b",
    r"(a)\1",
    "(?P<x>a)(?P=x)",
    "(?>a)b",
    "(?i:a)",
    "(?#why)a",
    "(a)?(?(1)b|c)",
    r"a\Z",
    r"\x41",
    r"\0",
    r"\n",
    r"[\b]",
    "[a[]",
    "ö",
]


@pytest.mark.parametrize("text", SAME)
def test_what_means_the_same_is_sent(text: str) -> None:
    assert to_re2(re.compile(text), hides_internal=True) == text


@pytest.mark.parametrize("text", OWN)
def test_what_may_not_is_matched_here(text: str) -> None:
    assert to_re2(re.compile(text), hides_internal=False) is None


def test_flags() -> None:
    harmless = re.ASCII | re.DOTALL | re.MULTILINE
    assert to_re2(re.compile("a.b", harmless), hides_internal=True) == "a.b"
    assert to_re2(re.compile("a", re.IGNORECASE), hides_internal=True) == "(?i)a"
    assert to_re2(re.compile("(?i)a"), hides_internal=True) == "(?i)a"
    assert to_re2(re.compile("a b", re.VERBOSE), hides_internal=True) is None


def test_a_pattern_for_everything_would_match_internal_topics() -> None:
    assert to_re2(re.compile(".*"), hides_internal=True) is None
    assert to_re2(re.compile(".*"), hides_internal=False) == ".*"
