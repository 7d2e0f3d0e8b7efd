"""The bars that `benchmarks/transactions.py` prints beside kafkaio's medians."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.transactions import (
    BARS,
    CLUSTER,
    CPU_PER_RECORD,
    EXTRA_SPEC,
    SCENARIOS,
    Medians,
    bar_lines,
    transaction_figures,
)


def medians(*rows: tuple[str, str, Mapping[str, float]]) -> Medians:
    runs = [{"ok": True, "scenario": s, "client": c, "found": f} for s, c, f in rows]
    return Medians(runs, lambda row: row["found"])


def test_every_bar_is_of_a_scenario_and_a_client_that_exist() -> None:
    assert BARS.keys() | CLUSTER <= SCENARIOS.keys()
    for bars in BARS.values():
        for bar in bars:
            assert not bar.scenario or bar.scenario in SCENARIOS
            assert set(bar.against) <= {"kafkaio", "confluent", "aiokafka", "java"}


def test_each_scenario_sets_what_the_runner_or_we_know() -> None:
    known = {"kind", "partitions", "records", "value", "size", *EXTRA_SPEC}
    for _, settings in SCENARIOS.values():
        assert settings.keys() <= known


def test_the_better_of_two_clients_counts() -> None:
    found = medians(
        ("x1-1", "kafkaio", {"txn/s": 129.0}),
        ("x1-1", "java", {"txn/s": 60.0}),
        ("x1-1", "confluent", {"txn/s": 100.0}),
    )
    (line,) = bar_lines(found, ["kafkaio"])
    assert "at least    130.000 (1.3 of confluent's 100.000; ratio 1.29)" in line
    assert line.endswith("MISSED")


def test_a_bar_of_what_is_at_most() -> None:
    found = medians(
        ("x1-1", "kafkaio", {"transaction p90 ms": 5.0}),
        ("x1-1", "java", {"transaction p90 ms": 10.0}),
    )
    (line,) = bar_lines(found, ["kafkaio"])
    assert "at most      5.000 (0.5 of java's 10.000; ratio 0.50)" in line
    assert line.endswith("held")


def test_our_own_plain_cpu_and_a_constant() -> None:
    found = medians(
        ("x1-1000", "kafkaio-options", {"cpu ms/txn": 1.8}),
        ("x1-plain", "kafkaio-options", {CPU_PER_RECORD: 1.3}),
        ("x1-plain", "kafkaio", {CPU_PER_RECORD: 9.9}),
    )
    (line,) = bar_lines(found, ["kafkaio-options"])
    assert "at most      1.750 (1.0 of kafkaio-options's 1.300 + 0.45;" in line
    assert line.endswith("MISSED")


def test_medians_leave_out_runs_that_failed() -> None:
    rates = (100.0, 300.0, 200.0)
    runs = [
        {"ok": True, "scenario": "x1-1", "client": "java", "rate": rate}
        for rate in rates
    ]
    runs.append({"ok": False, "scenario": "x1-1", "client": "java"})
    found = Medians(runs, lambda row: {"txn/s": row["rate"]})
    assert found.of("x1-1", "java", "txn/s") == 200.0
    assert found.of("x1-1", "java", "krec/s") is None
    assert found.of("x1-1", "kafkaio", "txn/s") is None


def test_the_figures_of_a_run() -> None:
    spread = {"p50": 1.0, "p90": 2.0, "p99": 3.0, "max": 4.0}
    row = {
        "kind": "transact",
        "wall": 2.0,
        "cpu": 0.5,
        "count": 1000,
        "transactions": 100,
        "transaction_ms": spread,
    }
    found = transaction_figures(row, {"other %": 7.0})
    assert found == {
        "txn/s": 50.0,
        "cpu ms/txn": 5.0,
        "other %": 7.0,
        "krec/s": 0.5,
        CPU_PER_RECORD: 500.0,
        "transaction p50 ms": 1.0,
        "transaction p90 ms": 2.0,
        "transaction p99 ms": 3.0,
    }
    copied = row | {"kind": "copy", "transactions": 0}
    assert "txn/s" not in transaction_figures(copied, {})
    assert transaction_figures({"kind": "produce"}, {"MB/s": 1.0}) == {"MB/s": 1.0}
