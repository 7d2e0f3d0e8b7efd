"""What a run of a foreign suite is judged to be."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from tests.foreign_suites.__main__ import deviations, listed
from tests.foreign_suites.suites import SUITES
from tests.foreign_suites.verdicts import End, Outcome, counts, judge

LISTED = {"m.py::inside": "reads what is internal", "m.py::cases": "the same"}


def ends(**outcomes: str) -> Mapping[str, End]:
    return {f"m.py::{name}": End(Outcome(word)) for name, word in outcomes.items()}


def cases(first: str, second: str) -> Mapping[str, End]:
    outcomes = zip("ab", (first, second), strict=True)
    return {f"m.py::cases[{case}]": End(Outcome(word)) for case, word in outcomes}


def test_what_fails_as_listed_is_good() -> None:
    ours = {**ends(public="passed", inside="failed"), **cases("failed", "failed")}
    verdict = judge(ours, {}, LISTED)
    assert verdict.is_good
    assert len(verdict.listed) == 3


def test_what_fails_and_is_not_listed() -> None:
    verdict = judge(ends(public="failed"), ends(public="passed"), {})
    assert verdict.unexpected == ["m.py::public"]
    assert not verdict.is_good


def test_what_fails_with_aiokafka_too_is_not_ours() -> None:
    verdict = judge(ends(public="failed"), ends(public="failed"), {})
    assert verdict.shared == ["m.py::public"]
    assert verdict.is_good


def test_what_is_listed_and_passes() -> None:
    ours = {**ends(inside="passed"), **cases("failed", "passed")}
    verdict = judge(ours, {}, LISTED)
    assert verdict.stale == ["m.py::cases[b]", "m.py::inside"]
    assert not verdict.is_good


def test_what_may_pass_or_fail() -> None:
    for outcome in ("passed", "failed"):
        ours = ends(inside=outcome)
        assert judge(ours, {}, {"m.py::inside": "chance"}, ["m.py::inside"]).is_good


def test_what_is_listed_and_is_not_there() -> None:
    verdict = judge(ends(inside="skipped"), {}, LISTED)
    assert verdict.unknown == ["m.py::cases"]
    assert not verdict.is_good


def test_counts() -> None:
    found = counts(ends(a="passed", b="passed", c="skipped"))
    assert found == "2 passed, 0 failed, 1 skipped"


def test_each_deviation_has_a_reason() -> None:
    """A difference names the test of its row in the page on aiokafka."""
    page = Path(__file__).parents[3] / "docs" / "migration" / "aiokafka.md"
    rows = re.findall(r"`(test_row_\w+)`", page.read_text(encoding="utf-8"))
    for name in SUITES:
        assert all(len(reason) > 10 for reason in listed(name).values())
        assert set(deviations(name).get("differs", {}).values()) <= set(rows)
