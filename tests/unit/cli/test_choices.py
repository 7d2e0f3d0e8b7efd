"""Words that commands take, beside the enumerations that they stand for."""

from __future__ import annotations

import click
import pytest

from kafkaio._cli.access.acls import acls
from kafkaio._cli.access.users import users
from kafkaio._cli.cluster.api_versions import spoken
from kafkaio._cli.cluster.transactions import transactions
from kafkaio.admin import AclPatternType, ScramMechanism, TransactionState
from kafkaio.protocol._api_keys import ApiKey


def words(group: click.Group, command: str, name: str) -> set[str]:
    (choice,) = (
        each.type for each in group.commands[command].params if each.name == name
    )
    assert isinstance(choice, click.Choice)
    return set(choice.choices)


@pytest.mark.parametrize("command", ["set", "delete"])
def test_every_mechanism_can_be_chosen(command: str) -> None:
    known = {each.value for each in ScramMechanism if each.name != "UNKNOWN"}
    assert words(users, command, "mechanism") == known


def test_every_state_can_be_chosen() -> None:
    known = {each.value for each in TransactionState if each.name != "UNKNOWN"}
    assert words(transactions, "list", "state") == known


def test_every_pattern_can_be_chosen() -> None:
    known = {each.value.lower() for each in AclPatternType if each.name != "UNKNOWN"}
    assert words(acls, "list", "pattern") == known
    assert words(acls, "create", "pattern") == known - {"any", "match"}


def test_what_both_speak_is_the_highest_in_common() -> None:
    theirs = {ApiKey.METADATA: (0, 5), ApiKey.PRODUCE: (0, 2), 9_999: (0, 1)}
    rows = {
        row["api_key"]: row for row in spoken({int(k): v for k, v in theirs.items()})
    }
    assert rows[ApiKey.METADATA]["highest"] == 5
    assert rows[ApiKey.PRODUCE]["highest"] is None
    assert rows[ApiKey.FETCH]["broker_max"] is None
    assert rows[ApiKey.FETCH]["api"] == "Fetch"
    assert (rows[9_999]["api"], rows[9_999]["client_max"]) == ("9999", None)
