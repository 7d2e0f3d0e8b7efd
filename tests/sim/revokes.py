"""What has to hold while users keep partitions that their group asks for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from typing import Final

from tests.sim.book import Book, Held, Session

__all__ = ["PATIENCE", "Keep", "Watch", "keeping"]

#: Seconds after its deadline at which a partition has to be gone.
_LATE: Final = 2.0
#: Seconds for which the other partitions may be silent at most.
PATIENCE: Final = 15.0


class Keep:
    """The user's reasons to keep some partitions, which come and go.

    Args:
        session: whose.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._held: list[Held] = []

    def only(self, partitions: Collection[int] = ()) -> None:
        """Keep these from now on, and none of those before.

        One that is not assigned, or is given up already, is left out.
        """
        for held in self._held:
            held.keeps -= 1
        mine = self._session.held
        found = [mine[partition] for partition in partitions if partition in mine]
        self._held = [held for held in found if not held.is_asked_back]
        for held in self._held:
            held.keeps += 1


@contextmanager
def keeping(session: Session, partitions: Collection[int]) -> Generator[None]:
    """Keep partitions meanwhile."""
    keep = Keep(session)
    keep.only(partitions)
    try:
        yield
    finally:
        keep.only()


class Watch:
    """Looks at the members again and again, for what shows in what does not happen.

    Args:
        book: the accounts.
        clock: what time it is.
        goes_on: whether a member's other partitions are read while it gives some up.
    """

    def __init__(
        self, book: Book, clock: Callable[[], float], *, goes_on: bool
    ) -> None:
        self._book = book
        self._clock = clock
        self._goes_on = goes_on

    def look(self, *, is_calm: bool) -> None:
        """Check that no deadline has passed, and that records come all the while.

        Args:
            is_calm: whether nothing keeps clients from reading.
        """
        now = self._clock()
        for session in self._book.sessions:
            self._check_deadlines(session, now)
            for partition in session.to_be_revoked():
                if partition in session.held:
                    session.held[partition].is_requested = True
            if is_calm and self._goes_on and not session.is_at_work:
                self._check_flow(session, now)
            else:
                _forget(session)

    def _check_deadlines(self, session: Session, now: float) -> None:
        for partition, held in session.held.items():
            if now > held.deadline + _LATE and not held.is_asked_back:
                self._book.break_law(
                    "kept for too long",
                    f"{session.name}, partition {partition}: until {held.deadline:.3f}",
                )

    def _check_flow(self, session: Session, now: float) -> None:
        kept = [p for p, one in session.held.items() if one.keeps and one.is_requested]
        if not kept:
            _forget(session)
            return
        self._book.read_logs()
        for partition, held in session.held.items():
            is_due = not (held.is_requested or held.is_asked_back or held.keeps)
            if not is_due or not self._book.behind(partition, held):
                held.quiet = float("inf")
                continue
            held.quiet = min(held.quiet, now)
            if now - held.quiet > PATIENCE:
                self._book.break_law(
                    "stopped by a revoke",
                    f"{session.name}, partition {partition}: nothing came"
                    f" for {PATIENCE:.0f} s, while {kept} are kept",
                )


def _forget(session: Session) -> None:
    for held in session.held.values():
        held.quiet = float("inf")
