"""What must hold while users keep partitions whose revocation is requested."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from typing import Final

from tests.sim.checker import Checker, Held, Session

__all__ = ["PATIENCE", "Keep", "Watch", "keeping"]

#: Seconds after its deadline by which a partition must be lost.
_LATE: Final = 2.0
#: The most seconds without a record from the partitions that are not kept.
PATIENCE: Final = 15.0


class Keep:
    """One reason of a user to keep partitions.

    Args:
        session: the user's consumer.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._held: list[Held] = []

    def only(self, partitions: Collection[int] = ()) -> None:
        """Keep these partitions from now on, instead of those before.

        One that is not assigned, or is given up already, is record skipped.
        """
        for held in self._held:
            held.keeps -= 1
        mine = self._session.held
        found = [mine[partition] for partition in partitions if partition in mine]
        self._held = [held for held in found if not held.is_revoked]
        for held in self._held:
            held.keeps += 1


@contextmanager
def keeping(session: Session, partitions: Collection[int]) -> Generator[None]:
    """Keep partitions for the duration of the block."""
    keep = Keep(session)
    keep.only(partitions)
    try:
        yield
    finally:
        keep.only()


class Watch:
    """Watches the members for what should happen and does not.

    Args:
        checker: the state of all consumers.
        clock: returns the time.
        goes_on: whether a member reads its other partitions while some are revoked.
    """

    def __init__(
        self, checker: Checker, clock: Callable[[], float], *, goes_on: bool
    ) -> None:
        self._checker = checker
        self._clock = clock
        self._goes_on = goes_on

    def look(self, *, is_calm: bool) -> None:
        """Check that no deadline has passed, and that records keep coming.

        Args:
            is_calm: whether no fault keeps clients from reading.
        """
        now = self._clock()
        for session in self._checker.sessions:
            self._check_deadlines(session, now)
            for partition in session.to_be_revoked():
                if partition in session.held:
                    session.held[partition].is_revoke_requested = True
            if is_calm and self._goes_on and not session.is_at_work:
                self._check_flow(session, now)
            else:
                _forget(session)

    def _check_deadlines(self, session: Session, now: float) -> None:
        for partition, held in session.held.items():
            if now > held.deadline + _LATE and not held.is_revoked:
                self._checker.break_law(
                    "held past the deadline",
                    f"{session.name}, partition {partition}: until {held.deadline:.3f}",
                )

    def _check_flow(self, session: Session, now: float) -> None:
        kept = [
            p
            for p, one in session.held.items()
            if one.keeps and one.is_revoke_requested
        ]
        if not kept:
            _forget(session)
            return
        self._checker.read_logs()
        for partition, held in session.held.items():
            is_due = not (held.is_revoke_requested or held.is_revoked or held.keeps)
            if not is_due or not self._checker.behind(partition, held):
                held.quiet = float("inf")
                continue
            held.quiet = min(held.quiet, now)
            if now - held.quiet > PATIENCE:
                self._checker.break_law(
                    "stopped by a revoke",
                    f"{session.name}, partition {partition}: nothing came"
                    f" for {PATIENCE:.0f} s, while {kept} are kept",
                )


def _forget(session: Session) -> None:
    for held in session.held.values():
        held.quiet = float("inf")
