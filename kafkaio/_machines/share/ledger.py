"""What is locked for a share consumer, and what it decided about it.

The ledger has every acquired range (`kafkaio._records.batch.Acquired`) until each of
its offsets was acknowledged, or lost. It makes the acknowledgements of a request, and
takes the answer. A partition's acknowledgements in one request stand or fall together,
so after 121 (INVALID_RECORD_STATE) they are sent again in halves, until the offsets are
found whose lock is gone. Acknowledgements of ranges whose lock is gone by our clock are
not sent: one of them would void the others.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from kafkaio._dataclass import dataclass
from kafkaio._records.batch import Acquired
from kafkaio.errors import AcknowledgeFailed, LockLost
from kafkaio.types import TopicPartition

#: Kafka's number of the acknowledge type that renews a lock (KIP-1222).
RENEW = 4


class AcquiredRange(NamedTuple):
    """A range of offsets that a leader says it has acquired."""

    first: int
    last: int
    delivery_count: int


class AckRange(NamedTuple):
    """A range of offsets in an acknowledgement; the kind is Kafka's number."""

    first: int
    last: int
    kind: int


@dataclass(frozen=True, slots=True, eq=False)
class AckPlan:
    """The acknowledgements of one request to one leader.

    Attributes:
        node_id: the leader.
        ranges: by partition, sorted by offset, not overlapping.
        renews: whether any of them renews a lock, which the request has to say.
        sent_at: when the plan was made: renewed locks count from here.
    """

    node_id: int
    ranges: Mapping[TopicPartition, tuple[AckRange, ...]]
    renews: bool
    sent_at: float


class LedgerListenerPort(Protocol):
    """Is notified about what became of acknowledgements and locks."""

    def notify(self, node_id: int) -> None:
        """Note that there is something to send to a leader, perhaps later."""

    def confirmed(self, acquired: Acquired, ranges: Sequence[AckRange]) -> None:
        """Note that the leader has taken decisions."""

    def failed(self, acquired: Acquired, error: AcknowledgeFailed) -> None:
        """Note that decisions about a range did not count, or that it is unknown."""

    def lost(self, acquired: Acquired, error: LockLost) -> None:
        """Note that records that were held are not locked any more."""

    def renewed(self, acquired: Acquired, first: int, last: int) -> None:
        """Note that locks were renewed; ``acquired.deadline`` is the new one."""

    def acked(self, acquired: Acquired, offset: int) -> Awaitable[None]:
        """Return what is done when the leader has answered; see `AcquiredListenerPort`.

        The ledger, which is the listener of each range, passes it on.
        """
        ...


class ShareLedger:
    """All acquired ranges of one share consumer.

    Times are seconds on the clock of the loop. ``lock`` is the duration of locks as the
    latest answer of a leader gave it, counted from when the request was sent.

    Args:
        listener: is notified.
        linger: seconds that a decision waits for others, at most.
        max_processing: seconds for which held offsets are renewed after they were
            handed out.
    """

    def __init__(
        self, listener: LedgerListenerPort, *, linger: float, max_processing: float
    ) -> None:
        raise NotImplementedError

    @property
    def locked(self) -> int:
        """How many offsets are locked as far as is known: held, or not answered."""
        raise NotImplementedError

    def locked_at(self, node_id: int) -> int:
        """The same for one leader."""
        raise NotImplementedError

    def decided(self, acquired: Acquired) -> None:
        """Note that there are decisions; see `AcquiredListenerPort`."""
        raise NotImplementedError

    def acked(self, acquired: Acquired, offset: int) -> Awaitable[None]:
        """Return what is done when the leader has answered; see `LedgerListenerPort`."""
        raise NotImplementedError

    def live(self) -> Iterable[Acquired]:
        """Return the ranges of which an offset is held, or has no answer yet."""
        raise NotImplementedError

    def acquired(
        self,
        node_id: int,
        tp: TopicPartition,
        ranges: Sequence[AcquiredRange],
        *,
        lock: float,
        sent_at: float,
    ) -> tuple[Acquired, ...]:
        """Take over what a leader has acquired.

        Raises:
            ProtocolError: ranges are reversed, unsorted, overlap each other or what is
                held, or have an impossible count. Nothing was taken over.
        """
        raise NotImplementedError

    def plan(self, node_id: int, now: float, *, may_renew: bool) -> AckPlan | None:
        """Take everything that is to be sent to a leader now; None for nothing.

        Decisions whose lock has ended are not among it: they have failed.
        """
        raise NotImplementedError

    def answered(
        self,
        plan: AckPlan,
        codes: Mapping[TopicPartition, int],
        now: float,
        lock: float,
    ) -> None:
        """Take the answer. A partition without a code counts as one with code 0.

        121: the halves are sent again. Codes that say that the leader has moved, or
        that the partition is gone: lost. Other retriable codes: sent again while the
        lock holds.
        """
        raise NotImplementedError

    def unanswered(
        self, plan: AckPlan, error: AcknowledgeFailed | None, now: float
    ) -> None:
        """Note that no answer will come: it is unknown whether the decisions count."""
        raise NotImplementedError

    def refused(self, plan: AckPlan, now: float) -> None:
        """Note that the whole request was refused: everything is sent again."""
        raise NotImplementedError

    def connection_lost(self, node_id: int, why: str, now: float) -> None:
        """Note that the leader has freed all locks: its connection is gone."""
        raise NotImplementedError

    def partition_lost(
        self, node_id: int, tp: TopicPartition, why: str, now: float
    ) -> None:
        """Note that a leader has freed the locks of a partition: it leads no more."""
        raise NotImplementedError

    def expire(self, now: float) -> None:
        """Note the locks that have ended by the clock."""
        raise NotImplementedError

    def next_send(self, node_id: int) -> float | None:
        """When a request must be sent to a leader: for decisions, or to renew locks."""
        raise NotImplementedError

    def next_expiry(self) -> float | None:
        """When `expire` is to be called next."""
        raise NotImplementedError

    def release_all(self) -> None:
        """Release everything that is held: the consumer closes."""
        raise NotImplementedError
