"""How `benchmarks/rows` chooses rows, makes values, and computes figures."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from benchmarks.rows import __main__ as command, machine
from benchmarks.rows.harness import environment, values
from benchmarks.rows.model import (
    COUNT,
    CPU,
    IDLE,
    MEDIAN,
    MEMORY,
    PROCESS,
    RATE,
    TIME,
    Measure,
)
from benchmarks.rows.table import ROWS

RESULT = {"count": 4, "cpu": 0.002, "wall": 0.5, "median": 0.003, "memory": 7.5}


@pytest.mark.parametrize(
    ("measure", "figure"),
    [
        (CPU, 500.0),
        (PROCESS, 2.0),
        (TIME, 500.0),
        (MEDIAN, 3.0),
        (RATE, 0.008),
        (COUNT, 8.0),
        (IDLE, 0.4),
        (MEMORY, 7.5),
    ],
    ids=lambda value: value.name if isinstance(value, Measure) else None,
)
def test_a_figure_of_a_result(measure: Measure, figure: float) -> None:
    assert measure.of(RESULT, {"size": 1_000}) == pytest.approx(figure)


@pytest.mark.parametrize("size", [1, 100, 1_024, 5_000_000])
def test_values_have_their_size_and_are_lines(size: int) -> None:
    made = values(size)
    assert {len(value) for value in made} == {size}
    assert not any(b"\n" in value for value in made)
    assert values(size) == made


def test_rows_are_chosen_by_the_beginnings_of_their_names() -> None:
    assert command.chosen(None) == list(ROWS)
    assert [row.name for row in command.chosen("far-20,idle")] == ["far-20", "idle-200"]
    assert not command.chosen("nothing")


def test_a_run_is_not_slowed_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONASYNCIODEBUG", "1")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert not environment().keys() & {"PYTHONASYNCIODEBUG", "PYTHONDONTWRITEBYTECODE"}
    assert environment()["PATH"] == os.environ["PATH"]


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_what_children_spent_is_ours() -> None:
    before, all_before = machine.ours(), machine.busy()
    code = "import time\nwhile time.process_time() < 0.3: pass"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert 0.25 <= machine.ours() - before <= machine.busy() - all_before + 0.1
