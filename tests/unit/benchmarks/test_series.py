"""What `benchmarks/rows` makes of figures: ratios, bars, and rows that have fallen."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from benchmarks.rows import compare, page, series
from benchmarks.rows.model import CPU, MEMORY, RATE, TIME, Bar, Measure, Row, Topic, Way
from benchmarks.rows.series import FALLEN, LAST, LEAST, Entry, better_of, falls, parse
from benchmarks.rows.table import ROWS

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


def entry(machine: str = "one", **ratios: float) -> Entry:
    return Entry("abc", "2026-01-01", machine, 3.0, ratios)


# ---- the series


def test_an_entry_is_a_line() -> None:
    first, second = entry(a=0.5), entry("two", b=1.25)
    assert parse(f"{first.line()}\n\n{second.line()}\n") == [first, second]


def test_a_fall_is_more_than_a_fifth_of_the_median() -> None:
    before = [entry(a=ratio) for ratio in (0.9, 1.0, 5.0)]
    assert not falls(entry(a=1.2), before)
    [fall] = falls(entry(a=1.21), before)
    assert (fall.key, fall.before, fall.now) == ("a", 1.0, 1.21)
    assert str(fall) == "a: 1.21, and before 1.00 (1.21)"


def test_a_row_that_becomes_better_has_not_fallen() -> None:
    assert not falls(entry(a=0.1), [entry(a=1.0)] * LEAST)


def test_another_machine_does_not_count() -> None:
    assert not falls(entry(a=9.0), [entry("two", a=1.0)] * LAST)


def test_too_few_entries_say_nothing() -> None:
    assert not falls(entry(a=9.0), [entry(a=1.0)] * (LEAST - 1))


def test_a_new_row_has_not_fallen_and_one_that_is_gone_neither() -> None:
    assert not falls(entry(new=9.0), [entry(old=1.0)] * LEAST)


def test_only_the_last_entries_count() -> None:
    old, last = [entry(a=0.1)] * 50, [entry(a=1.0)] * LAST
    assert not falls(entry(a=1.1), old + last)
    assert falls(entry(a=1.1), last + old)


def test_the_worst_comes_first() -> None:
    before = [entry(a=1.0, b=0.1)] * LEAST
    assert [fall.key for fall in falls(entry(a=2.0, b=0.5), before)] == ["b", "a"]


def test_a_second_run_can_only_better_what_it_measured() -> None:
    first = entry(a=2.0, b=1.0, c=0.5)
    assert better_of(first, entry(a=1.0, b=3.0)) == entry(a=1.0, b=1.0, c=0.5)


RATIO = st.floats(0.01, 100)


@given(st.lists(RATIO, min_size=LEAST, max_size=3 * LAST), RATIO)
def test_what_has_fallen_is_above_the_bound(before: list[float], now: float) -> None:
    middle = statistics.median(before[-LAST:])
    found = falls(entry(a=now), [entry(a=ratio) for ratio in before])
    assert bool(found) == (now > middle * FALLEN)


# ---- ratios


def row(measure: Measure, **bars: Bar) -> Row:
    ways = (
        Way("kafkaio", "one", "`one`", {measure.name: bars.get("one", Bar())}),
        Way("kafkaio", "two", "`two`", {"other": Bar()}),
        Way("franz-go", "f"),
        Way("aiokafka", "a", "`x`"),
        Way("aiokafka", "b", "`y`"),
    )
    return Row(
        name="r", title="R", section="S", ways=ways, topic=Topic(), measures=(measure,)
    )


def run(measure: Measure, **medians: float) -> Mapping[str, object]:
    labels = {
        "one": "kafkaio `one`",
        "two": "kafkaio `two`",
        "franz": "franz-go",
        "x": "aiokafka `x`",
        "y": "aiokafka `y`",
    }
    ways = {
        labels[name]: {measure.name: {"median": median, "all": [median]}}
        for name, median in medians.items()
    }
    return {"rows": {"r": {"ways": ways}}}


def test_a_cost_is_compared_with_the_least() -> None:
    found = run(CPU, one=2.0, two=0.5, franz=1.0, x=6.0, y=4.0)
    first, second = compare.Run(found, [row(CPU)]).lines()
    assert first.peers == {"franz-go": 1.0, "aiokafka": 4.0}
    assert (first.key, first.fastest, first.ratio) == ("r/cpu/one", "franz-go", 2.0)
    assert (first.bar, first.is_held) == (1.0, False)
    assert (second.ratio, second.bar, second.is_held) == (0.5, None, None)


def test_a_rate_is_compared_with_the_greatest() -> None:
    found = run(RATE, one=100.0, franz=50.0, x=200.0, y=100.0)
    bar = Bar(0.9, client="franz-go")
    [line] = compare.Run(found, [row(RATE, one=bar)]).lines()
    assert (line.fastest, line.ratio) == ("aiokafka", 2.0)
    assert (line.bar, line.is_held) == (45.0, True)


@pytest.mark.parametrize(("figure", "is_held"), [(39.0, True), (41.0, False)])
def test_a_bar_of_the_figure_itself(figure: float, is_held: bool) -> None:
    found = run(MEMORY, one=figure, franz=1.0)
    [line] = compare.Run(found, [row(MEMORY, one=Bar(absolute=40))]).lines()
    assert line.is_held is is_held


def test_a_bar_of_another_way() -> None:
    found = run(TIME, one=1.1, two=1.0, franz=9.0)
    [first, _] = compare.Run(found, [row(TIME, one=Bar(1.2, way="`two`"))]).lines()
    assert (first.bar, first.is_held) == (1.2, True)


def test_a_bar_whose_base_was_not_measured_is_none() -> None:
    found = run(TIME, one=1.1, franz=9.0)
    bar = Bar(1.2, way="`two`", row="elsewhere")
    [line] = compare.Run(found, [row(TIME, one=bar)]).lines()
    assert line.is_held is None


# ---- the table, and what the repository has


def test_names_of_rows_and_keys_of_lines_are_unique() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)
    for row in ROWS:
        labels = [way.label for way in row.ways]
        assert len(set(labels)) == len(labels)


def test_every_bar_is_of_something_that_is_measured() -> None:
    ways = {(row.name, way.label) for row in ROWS for way in row.ways}
    for row in ROWS:
        measures = {measure.name for measure in row.measures}
        for way in row.ways:
            assert way.bars.keys() <= measures, (row.name, way.label)
            for bar in way.bars.values():
                base = f"kafkaio {bar.way}" if bar.way else bar.client
                name = bar.row or row.name
                assert not base or (name, base) in ways, (row.name, bar)


def test_the_page_has_the_table_of_the_figures() -> None:
    figures = json.loads((BENCHMARKS / "figures.json").read_text())
    text = (BENCHMARKS.parent / "docs" / "performance.md").read_text()
    assert page.written(text, figures) == text
    readme = (BENCHMARKS.parent / "README.md").read_text()
    assert page.brief(readme, figures) == readme


def test_the_readme_names_lines_that_exist() -> None:
    ways = {
        (row.name, measure.name, way.call.replace("`", "").replace(" ", "-"))
        for row in ROWS
        for measure in row.measures
        for way in row.ways
        if way.client == "kafkaio"
    }
    for key in page.BRIEF:
        name, measure, *call = key.split("/")
        assert (name, measure, "".join(call)) in ways, key


def test_a_page_without_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="no markers of rows"):
        page.between("no page", "rows", [])


def test_every_program_exists() -> None:
    work = BENCHMARKS / "rows" / "work"
    go = (BENCHMARKS / "go" / "main.go").read_text()
    for row in ROWS:
        for way in row.ways:
            module, _, name = way.program.partition(".")
            if way.client == "franz-go":
                assert f'"{module}": ' in go, way
            else:
                program = f"async def {name}(spec"
                assert program in (work / f"{module}.py").read_text(), way


def test_the_series_can_be_read() -> None:
    for each in series.parse((BENCHMARKS / "series.jsonl").read_text()):
        assert each.ratios
        assert each.machine


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        (None, ""),
        (0.0293, "0.029"),
        (0.283, "0.28"),
        (2.361, "2.36"),
        (18.32, "18.3"),
        (383.2, "383"),
        (15082.7, "15,083"),
    ],
)
def test_a_figure_has_three_digits_that_count(figure: float | None, text: str) -> None:
    assert page.number(figure) == text
