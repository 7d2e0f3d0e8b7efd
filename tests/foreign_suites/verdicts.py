"""Decides whether a run of a foreign suite is as it should be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import NamedTuple, TypeAlias

__all__ = ["End", "Outcome", "Outcomes", "Verdict", "counts", "judge"]


class Outcome(StrEnum):
    """How a test ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


class End(NamedTuple):
    """How a test ended, and why it failed.

    Attributes:
        outcome: the worst of its steps.
        reason: the first line of the exception.
    """

    outcome: Outcome
    reason: str = ""


#: By the test's id; a module that cannot be imported counts as one failed test.
Outcomes: TypeAlias = Mapping[str, End]


class Verdict(NamedTuple):
    """What differs from the expectation; a run is good if the first three are empty.

    Attributes:
        unexpected: failed, are not listed, and pass with aiokafka.
        stale: are listed, and pass.
        unknown: are listed, and did not run.
        listed: failed, as listed.
        shared: fail with aiokafka on the same broker as well.
    """

    unexpected: list[str]
    stale: list[str]
    unknown: list[str]
    listed: list[str]
    shared: list[str]

    @property
    def is_good(self) -> bool:
        """Whether nothing has to be done."""
        return not (self.unexpected or self.stale or self.unknown)


def judge(
    ours: Outcomes,
    theirs: Outcomes,
    listed: Mapping[str, str],
    either: Collection[str] = (),
) -> Verdict:
    """Compare a run on kafkaio with one on aiokafka, and with what is expected.

    Args:
        ours: the run on `kafkaio.aiokafka`.
        theirs: the run on aiokafka, on the same broker; what it does not have is taken
            as passed.
        listed: the expected deviations: reasons by id. An id without parameters stands
            for all cases of the test.
        either: those of them that may pass: their outcome depends on chance.
    """
    ran = {name: _entry(name, listed) for name in ours}
    known = set(ran.values())
    failed = sorted(name for name, end in ours.items() if end.outcome is Outcome.FAILED)
    also = {name for name, end in theirs.items() if end.outcome is Outcome.FAILED}
    return Verdict(
        unexpected=[n for n in failed if ran[n] is None and n not in also],
        stale=sorted(
            name
            for name, entry in ran.items()
            if entry and entry not in either and ours[name].outcome is Outcome.PASSED
        ),
        unknown=sorted(name for name in listed if name not in known),
        listed=[name for name in failed if ran[name]],
        shared=[name for name in failed if ran[name] is None and name in also],
    )


def _entry(name: str, listed: Mapping[str, str]) -> str | None:
    """Return the entry for a test: its id, or that of all its cases."""
    function = name.partition("[")[0]
    return next((each for each in (name, function) if each in listed), None)


def counts(outcomes: Outcomes) -> str:
    """Return such as ``308 passed, 2 failed, 1 skipped``."""
    counted = Counter(end.outcome for end in outcomes.values())
    return ", ".join(f"{counted[outcome]} {outcome}" for outcome in Outcome)
