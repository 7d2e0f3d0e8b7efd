"""The grammar of sasl.jaas.config; test_jaas_java.py asks Java itself."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from kafkaio._config.jaas import LoginModule, parse_jaas
from kafkaio.errors import ConfigurationError

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
VALUES = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


def quoted(value: str) -> str:
    """A value as users quote it for Java."""
    for character, escape in (
        ("\\", "\\\\"),
        ('"', '\\"'),
        ("\n", "\\n"),
        ("\r", "\\r"),
    ):
        value = value.replace(character, escape)
    return f'"{value}"'


@given(VALUES, VALUES)
def test_what_is_quoted_comes_back(user: str, password: str) -> None:
    text = f"{PLAIN} required username={quoted(user)} password={quoted(password)};"
    module = parse_jaas(text)
    assert module.options == {"username": user, "password": password}
    assert (module.name, module.kind) == (PLAIN, "PlainLoginModule")


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    for each in (text, f"{PLAIN} required {text};", f'{PLAIN} required a="{text}";'):
        try:
            parse_jaas(each)
        except ConfigurationError as error:
            assert "sasl.jaas.config" in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("", {}),
        ("a=b", {"a": "b"}),
        ("a = b-c.d$1_é", {"a": "b-c.d$1_é"}),
        ("a='it\"s' 'b'=\"c\"", {"a": 'it"s', "b": "c"}),
        ("/* first */ a=b // c=d\n e=f / g=h", {"a": "b", "e": "f"}),
        (r'a="\101\7\0\t\q\400"', {"a": "A\7\0\tq 0"}),
        ('a="${env:PASSWORD}"', {"a": "${env:PASSWORD}"}),
        (
            "useKeyTab=true useTicketCache=false",
            {"useKeyTab": "true", "useTicketCache": "false"},
        ),
    ],
)
def test_options(text: str, options: dict[str, str]) -> None:
    assert parse_jaas(f"{PLAIN} required\n  {text}\n;").options == options


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it is empty"),
        (" // nothing", "it is empty"),
        ("= required;", "begin with the class"),
        ("12 required;", "begin with the class"),
        (PLAIN, "required, or another control flag"),
        (f"{PLAIN} perhaps;", "required, or another control flag"),
        (f"{PLAIN} required", "no semicolon"),
        (f'{PLAIN} required password="alice-secret"', "no semicolon"),
        (f"{PLAIN} required password=12;", "option 'password' has no value"),
        (f"{PLAIN} required password alice-secret;", "option 'password' has no value"),
        (f"{PLAIN} required password=;", "option 'password' has no value"),
        (f"{PLAIN} required =alice-secret;", "stand before each value"),
        (f"{PLAIN} required; {PLAIN} required;", "more than one login module"),
    ],
)
def test_what_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem) as caught:
        parse_jaas(text)
    assert "alice-secret" not in str(caught.value)


def test_no_value_is_shown() -> None:
    module = LoginModule(PLAIN, {"username": "alice", "password": "alice-secret"})
    assert repr(module) == f"<LoginModule {PLAIN}: username, password>"
