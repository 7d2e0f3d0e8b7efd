"""Whole runs, short ones: the long ones are ``nox -s simulate``."""

from dataclasses import replace

import anyio
import anyio.lowlevel
import pytest

from tests.fakes.planted import a_commit_after_giving_up
from tests.sim import Fault, Kind, Scenario, run, shrink, simulate
from tests.sim.__main__ import main
from tests.sim.members import Member
from tests.sim.writer import Writer


def test_minutes_with_faults_break_no_law_and_can_be_repeated() -> None:
    scenario = Scenario(seed=1, seconds=60, fault_every=4)
    first, second = run(scenario), run(scenario)
    assert first == second
    assert not first.violations
    assert first.acknowledged + first.failed > 50
    assert first.delivered >= first.acknowledged
    assert len(first.faults) == 15
    other = run(scenario, first.faults[1:])
    assert other.digest != first.digest


def test_a_failure_is_shrunk_to_what_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    a_commit_after_giving_up(monkeypatch)
    scenario = Scenario(
        seed=18, seconds=60, members=1, fault_every=0, period=0.2, styles=("poll",)
    )
    harmless = [Fault(at, Kind.RESET, 0) for at in (10.0, 11.0, 12.0)]
    joining = Fault(20.0, Kind.JOIN, 0, 30.0)
    failed = run(scenario, [*harmless, joining, Fault(50.0, Kind.RESET)])
    assert failed.violations[0].law == "committed after release"
    short = shrink(failed)
    assert short.faults == (joining,)
    assert short.violations[0].law == "committed after release"
    assert short.seconds < 60


def test_there_is_nothing_to_shrink_where_nothing_failed() -> None:
    outcome = run(Scenario(seconds=10, fault_every=0))
    assert shrink(outcome) is outcome


def test_what_a_cancelled_member_did_not_commit_comes_again() -> None:
    scenario = Scenario(seed=7, part=1, seconds=60, period=0.2, styles=("poll",))
    scenario = replace(scenario, group_protocol="consumer")
    outcome = run(scenario, [Fault(25.071, Kind.CANCEL, 2, 0.7)])
    assert outcome.repeated
    assert not outcome.violations


def test_a_run_that_goes_on_for_ever_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Member, "leave", lambda *_: None)
    outcome = run(Scenario(seconds=10, members=1, fault_every=0))
    assert [violation.law for violation in outcome.violations] == ["never ended"]
    assert "member-0" in outcome.violations[0].detail


def test_a_run_that_goes_round_in_circles_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def spin(self: Writer) -> None:
        del self
        await anyio.sleep(5)
        while True:
            await anyio.lowlevel.checkpoint()

    monkeypatch.setattr(Writer, "run", spin)
    outcome = run(Scenario(seconds=10, members=1, fault_every=0))
    assert [violation.law for violation in outcome.violations] == ["stuck"]
    assert "livelock" in outcome.violations[0].detail


def test_hours_are_cut_into_runs() -> None:
    heard: list[int] = []
    report = simulate(
        Scenario(seconds=36, part=4),
        hours=0.02,
        on_outcome=lambda outcome: heard.append(outcome.scenario.part),
    )
    assert heard == [4, 5]
    assert report.failure is None
    assert "in 2 runs" in str(report)
    assert report.digest == simulate(Scenario(seconds=36, part=4), hours=0.02).digest


def test_the_command_tells_what_came_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--hours", "0.01", "--minutes", "0.5", "--seed", "5", "--verbose"]
    assert main(asked) == 0
    told = capsys.readouterr().out
    assert "part 0: " in told
    assert "runs that failed  0" in told


def test_the_command_fails_with_the_schedule(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    a_commit_after_giving_up(monkeypatch)
    asked = ["--minutes", "0.5", "--fault-every", "5", "--seed", "2"]
    assert main([*asked, "--no-shrink", "--seeds", "1"]) == 1
    told = capsys.readouterr().out
    assert "committed after release" in told
    again = "--scenario faults --seed 2 --seeds 1 --part 0 --minutes 0.5"
    assert f"again: python -m tests.sim {again}" in told


def test_hours_and_seeds_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--hours", "1", "--seeds", "2"])
    assert "give hours or seeds" in capsys.readouterr().err


def test_the_command_runs_seeds_of_a_group_that_never_rests(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = ["--scenario", "rebalance", "--seeds", "2", "--minutes", "0.3"]
    assert main([*asked, "--group-protocol", "eager", "--verbose"]) == 0
    told = capsys.readouterr().out
    assert "seed 1 part 0: " in told
    assert "in 2 runs" in told
