"""The nightly guard, from the figures of a run to its verdict, without a broker."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.rows import __main__ as command, guard
from benchmarks.rows.model import CPU, Row, Topic, Way
from benchmarks.rows.series import LEAST, parse

Guard = Callable[..., int]


def row(name: str) -> Row:
    ways = (Way("kafkaio", "p.one", "`one`"), Way("franz-go", "p"))
    return Row(name=name, title="R", section="S", ways=ways, topic=Topic())


ROWS = (row("r"), row("other"))


def run_of(failed: dict[str, str] | None = None, **ours: float) -> dict[str, Any]:
    """Return a run in which the other client spends 1 in each row."""
    return {
        "date": "2026-01-01T00:00:00+00:00",
        "machine": {"cpu": "a processor", "cores": 2},
        "other": 3.0,
        "rows": {
            name: {
                "ways": {
                    "kafkaio `one`": {"cpu": {"median": figure, "all": [figure]}},
                    "franz-go": {"cpu": {"median": 1.0, "all": [1.0]}},
                }
            }
            for name, figure in ours.items()
        },
        "failed": failed or {},
    }


@pytest.fixture
def series(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "series.jsonl"
    monkeypatch.setattr(guard, "SERIES", path)
    monkeypatch.setattr(guard, "ROWS", ROWS)
    monkeypatch.setattr(guard, "head", lambda: "abc")
    return path


@pytest.fixture
def guarded(series: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Guard:
    """Run the guard on figures; `again` are those of rows that are measured again."""
    assert not series.exists()

    def guarded(run: dict[str, Any], *options: str, again: Any = None) -> int:
        async def measure(
            rows: Sequence[Row], rounds: int, bootstrap: str | None
        ) -> dict[str, Any]:
            assert again is not None, "nothing had fallen"
            assert bootstrap is None
            assert rounds == guard.AGAIN
            assert [each.name for each in rows] == [*again["rows"]]
            return again

        monkeypatch.setattr(guard, "measure", measure)
        path = tmp_path / "run.json"
        path.write_text(json.dumps(run))
        monkeypatch.setattr(sys, "argv", ["guard", "--run", str(path), *options])
        return guard.main()

    return guarded


def begun(guarded: Guard) -> None:
    for _ in range(LEAST):
        assert guarded(run_of(r=0.5, other=0.9), "--append") == 0


def test_an_empty_series_begins_with_the_first_run(
    guarded: Guard, series: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guarded(run_of(r=0.5)) == 0
    assert not series.exists()
    assert guarded(run_of(r=0.5), "--append") == 0
    assert guarded(run_of(r=0.4), "--append") == 0
    entries = parse(series.read_text())
    assert [each.ratios for each in entries] == [{"r/cpu/one": 0.5}, {"r/cpu/one": 0.4}]
    assert {each.machine for each in entries} == {"a processor, 2 cores"}
    assert capsys.readouterr().out.splitlines()[-1] == entries[-1].line()


def test_a_row_that_fell_twice_fails(
    guarded: Guard, capsys: pytest.CaptureFixture[str]
) -> None:
    begun(guarded)
    assert guarded(run_of(r=0.61, other=0.9), again=run_of(r=0.7)) == 1
    assert "FALLEN: r/cpu/one: 0.61, and before 0.50" in capsys.readouterr().out


def test_a_row_that_fell_once_passes(guarded: Guard, series: Path) -> None:
    begun(guarded)
    found = run_of(r=0.61, other=0.9)
    assert guarded(found, "--append", again=run_of(r=0.5)) == 0
    assert parse(series.read_text())[-1].ratios == {
        "r/cpu/one": 0.5,
        "other/cpu/one": 0.9,
    }


def test_a_row_that_fell_and_then_could_not_be_measured_fails(guarded: Guard) -> None:
    begun(guarded)
    again = {**run_of({"r": "no broker"}), "rows": {"r": {"ways": {}}}}
    assert guarded(run_of(r=0.61, other=0.9), again=again) == 1


def test_a_row_within_a_fifth_passes(guarded: Guard) -> None:
    begun(guarded)
    assert guarded(run_of(r=0.6, other=1.08)) == 0


def test_a_row_that_could_not_be_measured_fails(
    guarded: Guard, capsys: pytest.CaptureFixture[str]
) -> None:
    begun(guarded)
    assert guarded(run_of({"r": "Failed: no broker"}, other=0.9)) == 1
    assert "FAILED: r: Failed: no broker" in capsys.readouterr().out


class OneFails:
    """A bench whose first row fails in a way that nobody expects."""

    def __init__(self) -> None:
        self.places = {"near": "broker:9092"}
        self.other: list[float] = []

    async def measure(self, row: Row, rounds: int) -> dict[str, dict[str, list[float]]]:
        self.other.append(1.0)
        if row.name == "r":
            raise ValueError("no JSON")
        return {way.label: {CPU.name: [2.0] * rounds} for way in row.ways}


async def test_a_row_that_fails_does_not_end_the_run() -> None:
    bench: Any = OneFails()
    found, failed = await command.measure_each(bench, ROWS, 3)
    assert [*found] == ["other"]
    assert failed == {"r": "ValueError: no JSON"}
