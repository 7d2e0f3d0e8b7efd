"""The facts about Kafka's configs in ``configs.json``."""

from __future__ import annotations

import json

import pytest

from codegen.config_facts import TARGET, rendered, row


@pytest.mark.parametrize(
    ("valid", "limits"),
    [
        (None, []),
        ("non-empty string", []),
        ("[1,...]", [None, 1]),
        ("[0,...,86400]", [None, 0, 86400]),
        ("[-2,...]", [None, -2]),
        ("[0.0,...,1.0]", [None, 0.0, 1.0]),
        ("[1,...,3] or -1", [["-1", "1", "2", "3"]]),
        ("[compact, delete]", [["compact", "delete"]]),
        ("(case insensitive) [A, B]", [["A", "B", "a", "b"]]),
        (
            "[latest, by_duration:PnDTnHnMn.nS]",
            [["latest", "by_duration:PnDTnHnMn.nS"]],
        ),
    ],
)
def test_valid_values(valid: str | None, limits: list[object]) -> None:
    assert row("int", "1", valid, "read-only") == ["int", "1", "read-only", *limits]


def test_the_file_has_a_line_for_each_config() -> None:
    facts = {
        "broker": {"a": ["int", None, None, "read-only"]},
        "internal": {},
        "group": {"g": ["string", "x", None, None]},
        "topic": {"t": [["a.hours", "3600000"]]},
    }
    text = rendered(json.dumps(facts))
    assert json.loads(text) == {
        "broker": {"a": ["int", None, "read-only"]},
        "internal": {},
        "group": {"g": ["string", "x"]},
        "topic": {"t": [["a.hours", 3600000]]},
    }
    assert len(TARGET.read_text().splitlines()) > 340
