"""Decides whether a run of a foreign suite is as it should be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple, TypeAlias

__all__ = ["Outcome", "Outcomes", "Verdict", "counts", "judge"]


class Outcome(StrEnum):
    """How a test ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


#: By the test's id; a module that cannot be imported counts as one failed test.
Outcomes: TypeAlias = Mapping[str, Outcome]


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


def judge(ours: Outcomes, theirs: Outcomes, listed: Mapping[str, str]) -> Verdict:
    """Compare a run on kafkaio with one on aiokafka, and with what is expected.

    Args:
        ours: the run on `kafkaio.aiokafka`.
        theirs: the run on aiokafka, on the same broker; what it does not have is taken
            as passed.
        listed: the expected deviations: reasons by id.
    """
    failed = sorted(name for name, end in ours.items() if end is Outcome.FAILED)
    also = {name for name, end in theirs.items() if end is Outcome.FAILED}
    return Verdict(
        unexpected=[name for name in failed if name not in listed and name not in also],
        stale=sorted(n for n in listed if ours.get(n) is Outcome.PASSED),
        unknown=sorted(name for name in listed if name not in ours),
        listed=[name for name in failed if name in listed],
        shared=[name for name in failed if name in also and name not in listed],
    )


def counts(outcomes: Outcomes) -> str:
    """Return such as ``308 passed, 2 failed, 1 skipped``."""
    counted = Counter(outcomes.values())
    return ", ".join(f"{counted[outcome]} {outcome}" for outcome in Outcome)
