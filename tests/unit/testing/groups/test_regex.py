"""Patterns that a real Kafka 4.3 accepts or refuses, and what they match."""

from __future__ import annotations

import pytest

from kafkaio.testing._groups.regex import InvalidPatternError, compile_re2, is_re2

#: As ConsumerGroupHeartbeat v1 answered for each; 128 for the refused.
TAKEN = [
    "", "a.*", "(?P<n>a)", "(?<n>a)", "(?P<1>a)", "a{2,3}", "a{1000}", "a*?", "(?i)a",
    "a(?i)b", "(a(?i)b)c", "(?i:a)", "(?U)a*", "(?U:a)", "(?-i)a", "(?si-m:a)",
    r"\d+", r"\z", r"\A", r"\bfoo\b", r"\pL", r"\p{Greek}", r"\p{^Lu}", r"\P{Lu}",
    r"\x41", r"\x{41}", r"\Qa.b\E", r"\Qab", "[[:alpha:]]", "[[:^alpha:]]", "[:alpha:]",
    "[[a]", "a|b", "|", "()", "(a|)", "(|a)*", "^*", "$*", r"\b*", r"[\d-x]", r"[\pL]",
    r"\_", r"\-", "\\\u00e9", "a{,3}", "]", "[]a]", "[^a]", "[a&&b]", "[a-a]", "a{0}",
    r"\0", "a{2}?",
]  # fmt: skip
REFUSED = [
    "(", ")", "a)", "(?i", "(?:", "a(?=b)", "(?<!a)b", "(?P=n)", "(?>a)", "(?#c)a",
    "(?x)a", "(?a)a", "(?L)a", "(?(1)a|b)", "(?P<>a)", "(?P<a-b>c)",
    "(?P<n>a)(?P<n>b)", r"(a)\1", r"\8", r"\Z", r"\u0041", r"\N{DIGIT ONE}", r"\C",
    r"\p{Nope}", r"\pX", r"\p{L", r"\x4", r"\x{}", r"\x{110000}", "[", "[a-", "[z-a]",
    "[]", "[[:nope:]]", r"[\1]", r"[\z]", r"[a-\d]", "[a--b]", "a{1001}", "a{3,2}",
    "x{2147483648}", "a*+", "a++", "a**", "a{2}*", "*a", "+", "?", "a|*", "(*)",
    "(?i)*", "\\",
]  # fmt: skip


@pytest.mark.parametrize("pattern", TAKEN)
def test_taken(pattern: str) -> None:
    assert is_re2(pattern)


@pytest.mark.parametrize("pattern", REFUSED)
def test_refused(pattern: str) -> None:
    assert not is_re2(pattern)
    with pytest.raises(InvalidPatternError):
        compile_re2(pattern)


@pytest.mark.parametrize(
    ("pattern", "matched", "not_matched"),
    [
        ("a.*", ["a", "ab"], ["ba"]),
        ("(?i)ab", ["aB"], ["a"]),
        ("(a(?i)b)c", ["aBc"], ["aBC", "Abc"]),
        ("a|(?i)b", ["a", "B"], ["A"]),
        ("(?U)a+", ["aaa"], [""]),
        (r"\pL+", ["abZ"], ["a1"]),
        (r"\P{Lu}", ["a"], ["A"]),
        (r"\p{Latin}\p{Common}", ["a-"], ["aa"]),
        (r"\p{Greek}", [], ["a"]),
        (r"[\pN_]+", ["1_2"], ["a"]),
        (r"\Qa.b\Ec", ["a.bc"], ["axbc"]),
        (r"\Qa.", ["a."], ["ab"]),
        (r"\x{61}\x62", ["ab"], ["AB"]),
        ("[[:digit:]-]+", ["1-2"], ["a"]),
        ("[[:^digit:]]", ["a"], ["1"]),
        (r"[\d-x]", ["-", "x", "5"], ["a"]),
        ("[^]a]", ["b"], ["]", "a"]),
        ("a{,3}", ["a{,3}"], ["aa"]),
        ("a{2}?b", ["aab"], ["ab"]),
        (r"a\z", ["a"], ["ab"]),
        ("[a&&b]+", ["a&b"], ["c"]),
    ],
)
def test_what_patterns_match(
    pattern: str, matched: list[str], not_matched: list[str]
) -> None:
    match = compile_re2(pattern).fullmatch
    assert all(match(name) for name in matched)
    assert not any(match(name) for name in not_matched)
