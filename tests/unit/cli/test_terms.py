"""Errors of `kafkaio.Admin` name what is typed, not what a program calls."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

import kafkaio.admin
from kafkaio._cli.root import root
from kafkaio._cli.shell.command import typed_names
from kafkaio._cli.text.exits import lines_of
from kafkaio._cli.text.terms import CALLS, OTHER_NAMES, as_typed
from kafkaio.errors import KafkaError, UsageError

#: Arguments that messages name with a value, and that no command gives.
NEVER = {"allow_replication_factor_change"}


def names(group: str, command: str) -> dict[str, str]:
    found = root.get_command(click.Context(root), group)
    assert isinstance(found, click.Group)
    return typed_names(found.commands[command])


@pytest.mark.parametrize(
    ("command", "text", "typed"),
    [
        (
            "transactions abort",
            "to abort all, use fence_producers(['a']); force=True aborts it here alone",
            "to abort all, use kafkaio transactions fence a; --force aborts it here "
            "alone",
        ),
        (
            "transactions list",
            "duration_ms must not be negative: -5",
            "--open-for must not be negative: -5",
        ),
        (
            "transactions list",
            "pattern needs version 2 of the request, the broker knows 1",
            "--pattern needs version 2 of the request, the broker knows 1",
        ),
        (
            "transactions list",
            "states: the brokers do not know PrepareEpochFence",
            "--state: the brokers do not know PrepareEpochFence",
        ),
        (
            "tokens create",
            "max_lifetime=0.0 must be above 0, and finite",
            "--max-lifetime 0.0 must be above 0, and finite",
        ),
        (
            "transactions abort",
            "partition: there is no partition 1",
            "TOPIC:PARTITION: there is no partition 1",
        ),
        (
            "configs list",
            "the broker lists client metrics alone: types=[CLIENT_METRICS]",
            "the broker lists client metrics alone: client-metrics",
        ),
        # What a user typed stays as it is.
        ("transactions abort", "there is no 'force=True'", "there is no 'force=True'"),
        ("transactions abort", "x-force=True (y)", "x-force=True (y)"),
        ("transactions abort", "wait(1) for topic must", "wait(1) for topic must"),
    ],
)
def test_messages_name_options(command: str, text: str, typed: str) -> None:
    group, name = command.split()
    assert as_typed(text, names(group, name)) == typed


def test_only_errors_of_arguments_are_translated() -> None:
    known = names("transactions", "abort")
    assert [*lines_of(UsageError("use force=True"), known)] == ["use --force"]
    assert [*lines_of(KafkaError("use force=True"), known)] == ["use force=True"]
    assert [*lines_of(UsageError("use force=True"))] == ["use force=True"]


def test_no_message_of_admin_is_left_out() -> None:
    """What messages advise, as calls or as arguments, is known here."""
    typed = {
        each.name
        for group in root.list_commands(click.Context(root))
        if isinstance(
            found := root.get_command(click.Context(root), group), click.Group
        )
        for command in found.commands.values()
        for each in command.params
    }
    calls: set[str] = set()
    arguments: set[str] = set()
    for path in Path(kafkaio.admin.__path__[0]).glob("*.py"):
        for text in re.findall(r'f?"([^"\n]*)"', path.read_text("utf-8")):
            text = re.sub(r"\{[^{}]*\}", "", text)
            calls |= set(re.findall(r"(\w+)\(\[", text))
            arguments |= set(re.findall(r"\b([a-z_]+)=(?:True|False|\[)", text))
    assert calls == {*CALLS}
    assert "force" in arguments
    left_out = {each for each in arguments if OTHER_NAMES.get(each, each) not in typed}
    assert left_out == NEVER
    assert {*OTHER_NAMES.values()} <= typed
