"""The diagrams in the docs are those of the tables that the code runs by."""

import pytest

from codegen import diagrams
from kafkaio._machines.membership.ledger import Move, Stage


def test_the_pages_are_current() -> None:
    assert diagrams.main(["--check"]) == 0


def test_a_diagram_draws_every_change() -> None:
    table = {
        (Stage.ASSIGNED, Move.REQUEST): Stage.REPORTED,
        (Stage.ASSIGNED, Move.REPORT): Stage.REPORTED,
        (Stage.REPORTED, Move.REPORT): Stage.REPORTED,
        (Stage.REPORTED, Move.LOSE): Stage.LOST,
    }
    drawn = diagrams.diagram(table, Stage.ASSIGNED, [Stage.LOST], omit="LO.*")
    assert drawn.splitlines()[2:-1] == [
        "    [*] --> ASSIGNED",
        "    ASSIGNED --> REPORTED: request, report",
        "    LOST --> [*]",
    ]


def test_hidden_states_are_not_drawn() -> None:
    table = {
        (Stage.ASSIGNED, Move.REQUEST): Stage.REPORTED,
        (Stage.REPORTED, Move.LOSE): Stage.LOST,
    }
    drawn = diagrams.diagram(table, Stage.ASSIGNED, [], hide=[Stage.LOST])
    assert "LOST" not in drawn
    assert "ASSIGNED --> REPORTED: request" in drawn


def test_a_page_without_a_place_is_an_error() -> None:
    with pytest.raises(SystemExit, match="no place for the diagram 'revoke'"):
        diagrams.updated("nothing", diagrams.memberships())
