"""Acquired records of a share group: the pure twin, which is the reference.

A leader acquires *ranges* of offsets for a member (KIP-932). `Acquired` is one such
range, with one byte for each offset: what became of it. To acknowledge a record costs
that byte and, once for many records, a call of the listener.
"""

from __future__ import annotations

import re
from typing import Final, Protocol

from kafkaio.errors import UsageError

#: What became of an offset. The decisions have Kafka's numbers of acknowledge types,
#: apart from GAP, which is 0 there.
HELD: Final = 0  # locked, no decision
ACCEPT: Final = 1
RELEASE: Final = 2
REJECT: Final = 3
GAP: Final = 5  # there is no record at this offset
LOST: Final = 6  # the lock is gone; what was decided, if anything, does not count
FAILED: Final = 7  # it was decided, and that did not count, or that is unknown
#: Added to a decision that the ledger has taken over, to send it.
TAKEN: Final = 16
#: Added instead of it once the leader has confirmed the decision.
DONE: Final = 32
#: The decision, or what else became of the offset.
STATE: Final = 15

_WORDS: Final = {
    ACCEPT: "accepted",
    RELEASE: "released",
    REJECT: "rejected",
    GAP: "passed over: there is no record",
    LOST: "lost: its lock is gone",
    FAILED: "acknowledged before, and the leader did not confirm that",
}
_DECISIONS: Final = (ACCEPT, RELEASE, REJECT, GAP)
_HELD_RUNS: Final = re.compile(rb"\x00+", re.DOTALL)
_DECIDED_RUNS: Final = re.compile(rb"\x01+|\x02+|\x03+|\x05+", re.DOTALL)


def _table(changes: dict[int, int]) -> bytes:
    # For `bytes.translate`.
    return bytes(changes.get(state, state) for state in range(256))


_TAKE: Final = _table({each: each + TAKEN for each in _DECISIONS})
_CONFIRM: Final = _table({each + TAKEN: each + DONE for each in _DECISIONS})
_FAIL: Final = _table({each + TAKEN: FAILED for each in _DECISIONS})
_LOSE: Final = _table(
    {HELD: LOST}
    | dict.fromkeys(_DECISIONS, LOST)
    | {d + TAKEN: LOST for d in _DECISIONS}
)


class AcquiredListenerPort(Protocol):
    """Is notified about decisions; the ledger of the share consumer."""

    def decided(self, acquired: Acquired) -> None:
        """Note that there are decisions; called once until they are taken."""


class Acquired:
    """A range of offsets of one partition that is locked for this consumer.

    Args:
        topic: name of the topic.
        partition: number of the partition.
        first: the first offset.
        last: the last offset.
        delivery_count: which delivery of these records this is, 1 for the first.
        node_id: the leader that acquired them.
        listener: is notified about decisions.

    Attributes:
        states: one byte for each offset; see the constants of this module.
        held: number of offsets without a decision.
        handed_to: the offset up to which records were handed out, this one excluded;
            the reader sets it.
        deadline: when the lock of those that are held ends, on the clock of the loop;
            of the first that ends, where they differ.
        lost_because: why the lock of those that are lost is gone.
        is_queued: whether the listener has been notified, and has not taken the
            decisions yet.
    """

    __slots__ = (
        "deadline",
        "delivery_count",
        "first",
        "handed_to",
        "held",
        "is_queued",
        "last",
        "listener",
        "lost_because",
        "node_id",
        "partition",
        "states",
        "topic",
    )

    def __init__(  # noqa: PLR0913
        self,
        topic: str,
        partition: int,
        first: int,
        last: int,
        delivery_count: int,
        node_id: int,
        listener: AcquiredListenerPort,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.first = first
        self.last = last
        self.delivery_count = delivery_count
        self.node_id = node_id
        self.listener = listener
        self.states: bytearray = bytearray(last - first + 1)
        self.held: int = len(self.states)
        self.handed_to: int = first
        self.deadline: float = 0.0
        self.lost_because: str = ""
        self.is_queued: bool = False

    def decide(self, offset: int, decision: int) -> None:
        """Decide what becomes of one offset.

        Raises:
            UsageError: it was decided before, or its lock is gone.
        """
        place = offset - self.first
        if self.states[place]:
            raise self.refusal(offset)
        self.states[place] = decision
        self.held -= 1
        if not self.is_queued:
            self.is_queued = True
            self.listener.decided(self)

    def decide_range(self, first: int, last: int, decision: int) -> int:
        """Decide what becomes of the offsets that are held; return how many."""
        start, end = max(first - self.first, 0), max(last - self.first + 1, 0)
        before = self.states[start:end]
        count = before.count(HELD)
        if count:
            self.states[start:end] = before.replace(b"\0", bytes((decision,)))
            self.held -= count
            if not self.is_queued:
                self.is_queued = True
                self.listener.decided(self)
        return count

    def held_runs(self, first: int, last: int) -> list[tuple[int, int]]:
        """Return the runs of offsets within these that are held: first and last."""
        start, end = max(first - self.first, 0), max(last - self.first + 1, 0)
        base = self.first
        runs = _HELD_RUNS.finditer(self.states, start, end)
        return [(base + run.start(), base + run.end() - 1) for run in runs]

    def take_decisions(self, most: int) -> list[tuple[int, int, int]]:
        """Take over decisions: runs of first offset, last offset and decision.

        Args:
            most: the most runs to take. If there are more, ``is_queued`` stays True,
                and the listener is not notified again.
        """
        base, taken = self.first, list[tuple[int, int, int]]()
        end = len(self.states)
        for run in _DECIDED_RUNS.finditer(self.states):
            start, stop = run.span()
            if len(taken) == most:
                end = start
                break
            taken.append((base + start, base + stop - 1, self.states[start]))
        else:
            self.is_queued = False
        self.states[:end] = self.states[:end].translate(_TAKE)
        return taken

    def confirm(self, first: int, last: int) -> None:
        """Note that the leader has confirmed the decisions that were taken over."""
        self._translate(first, last, _CONFIRM)

    def fail(self, first: int, last: int) -> None:
        """Note that the decisions that were taken over did not count."""
        self._translate(first, last, _FAIL)

    def lose(self, first: int, last: int) -> None:
        """Note that the lock is gone of all that the leader has not confirmed."""
        start, end = max(first - self.first, 0), max(last - self.first + 1, 0)
        self.held -= self.states.count(HELD, start, end)
        self._translate(first, last, _LOSE)

    def _translate(self, first: int, last: int, table: bytes) -> None:
        start, end = max(first - self.first, 0), max(last - self.first + 1, 0)
        self.states[start:end] = self.states[start:end].translate(table)

    def refusal(self, offset: int) -> UsageError:
        """Return the error for a second decision."""
        state = self.states[offset - self.first] & STATE
        return UsageError(
            f"{self.topic}-{self.partition} at offset {offset} cannot be acknowledged: "
            f"it was {_WORDS[state]}"
        )
