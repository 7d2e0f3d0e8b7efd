"""Names and ids that begin with a dash, as options do."""

from __future__ import annotations

from uuid import UUID

import click
import pytest

from kafkaio._cli.root import root
from tests.support.cli import run

#: Ids that click would read as options: ``-v``, ``-b VALUE``, ``-X``, and no option.
IDS = (
    "-vAAAAAAAAAAAAAAAAAAAA",
    "-bAAAAAAAAAAAAAAAAAAAA",
    "-XAAAAAAAAAAAAAAAAAAAA",
    "-qAAAAAAAAAAAAAAAAAAAA",
    "--AAAAAAAAAAAAAAAAAAAA",
)


def parsed(*words: str) -> dict[str, object]:
    """What the command of the first two words understands of the others."""
    group = root.get_command(click.Context(root), words[0])
    assert isinstance(group, click.Group)
    found = group.commands[words[1]]
    context = click.Context(found, info_name=words[1])
    found.parse_args(context, list(words[2:]))
    return context.params


@pytest.mark.parametrize("name", IDS)
def test_the_id_of_a_token_is_no_option(name: str) -> None:
    for words in (
        (name, "--period", "60s"),
        ("--period", "60s", name),
        ("--json", name, "--period=60s"),
        ("--period", "60s", "--", name),
    ):
        assert parsed("tokens", "renew", *words) == {
            "token_id": name,
            "period": "60s",
        }
    assert parsed("tokens", "expire", "-y", name)["token_id"] == name
    # What follows an option that takes a value is its value.
    found = parsed("tokens", "renew", "--period", name, "x")
    assert found == {"token_id": "x", "period": name}


def test_no_option_looks_like_an_id() -> None:
    for group, command in (
        *(("tokens", "renew"), ("tokens", "expire")),
        *(("quorum", "add-voter"), ("quorum", "remove-voter")),
    ):
        with pytest.raises(click.UsageError, match="No such option"):
            parsed(group, command, "--an-option-which-none-has")
        with pytest.raises(click.UsageError, match="Missing parameter"):
            parsed(group, command, "--json")


@pytest.mark.parametrize(
    "text",
    [
        "-----------___--AAAAAQ",
        "+++++++++++///++AAAAAQ==",
        "fbefbefb-efbe-fbef-bfff-ffbe00000001",
    ],
)
def test_ids_of_directories_are_read_as_kafka_writes_them(text: str) -> None:
    found = parsed("quorum", "remove-voter", "9", text, "--yes")
    assert found["directory_id"] == UUID("fbefbefb-efbe-fbef-bfff-ffbe00000001")
    words = ("9", text, "C://a:1", "C://b:2")
    found = parsed("quorum", "add-voter", *words)
    assert found["endpoint"] == ("C://a:1", "C://b:2")


@pytest.mark.parametrize("text", ["", "x", "-" * 21, "A" * 23, "A" * 21 + "ä"])
def test_what_is_no_id_of_a_directory(text: str) -> None:
    result = run("quorum", "remove-voter", "--yes", "--", "9", text).check(2)
    assert "Invalid value for 'DIRECTORY_ID'" in result.err


@pytest.mark.parametrize(
    ("words", "example"),
    [
        (("topics", "describe", "-q"), "kafkaio topics describe -- -q"),
        (("topics", "delete", "--yes", "-zz"), "kafkaio topics delete -- -zz"),
        (("topics", "describe", "--zzzzzz"), "kafkaio topics describe -- --zzzzzz"),
        (("groups", "describe", "-qx"), "kafkaio groups describe -- -qx"),
        (("consume", "-e", "-Q"), "kafkaio consume -- -Q"),
        (("topics", "create", "-vx"), "kafkaio topics create -- -vx"),
        (("topics", "describe", "-b"), "kafkaio topics describe -- -b"),
        (("topics", "delete", "-bills"), "kafkaio topics delete -- -bills"),
    ],
)
def test_an_error_says_where_such_a_name_goes(
    words: tuple[str, ...], example: str
) -> None:
    result = run(*words).check(2)
    assert result.err.endswith(
        f"(a name that begins with - goes behind --: {example})\n"
    )
    assert result.err.startswith(f"kafkaio {words[0]}")


@pytest.mark.parametrize(
    "words",
    [
        ("topics", "list", "--regx"),  # the message suggests --regex
        ("cluster", "describe", "-q"),  # it takes no name
        ("topics", "describe", "--timeout", "x", "t"),
        ("topics", "delete", "-v"),
        ("topics", "-q"),
    ],
)
def test_other_errors_do_not(words: tuple[str, ...]) -> None:
    assert "behind --" not in run(*words).check(2).err
