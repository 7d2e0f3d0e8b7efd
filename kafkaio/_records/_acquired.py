"""Acquired records of a share group: the pure twin, which is the reference.

A leader acquires *ranges* of offsets for a member (KIP-932). `Acquired` is one such
range, with one byte for each offset: what became of it. To acknowledge a record costs
that byte and, once for many records, a call of the listener.
"""

from __future__ import annotations

from typing import Final, Protocol

from kafkaio.errors import UsageError

#: What became of an offset. The decisions have Kafka's numbers of acknowledge types,
#: apart from GAP, which is 0 there.
HELD: Final = 0  # locked, no decision
ACCEPT: Final = 1
RELEASE: Final = 2
REJECT: Final = 3
GAP: Final = 5  # there is no record at this offset
LOST: Final = 6  # the lock is gone
#: Added to a decision that the ledger has taken over, to send it.
TAKEN: Final = 16

_WORDS: Final = {
    ACCEPT: "accepted",
    RELEASE: "released",
    REJECT: "rejected",
    GAP: "passed over: there is no record",
    LOST: "lost: its lock is gone",
}


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
        deadline: when the lock of those that are held ends, on the clock of the loop.
        lost_because: why the lock of those that are lost is gone.
        is_queued: whether the listener has been notified, and has not taken the
            decisions yet.
    """

    __slots__ = (
        "deadline",
        "delivery_count",
        "first",
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
        raise NotImplementedError

    def refusal(self, offset: int) -> UsageError:
        """Return the error for a second decision."""
        state = self.states[offset - self.first] & ~TAKEN
        return UsageError(
            f"{self.topic}-{self.partition} at offset {offset} cannot be acknowledged: "
            f"it was {_WORDS[state]}"
        )
