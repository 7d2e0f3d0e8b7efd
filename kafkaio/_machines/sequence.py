"""Sequence numbers: why an idempotent producer writes nothing twice or out of order.

Theory (KIP-98, KIP-360, KIP-679). A producer has an identity: its id and its epoch.
Each batch carries the identity and the sequence number of its first record, counted per
partition. The broker appends a batch only if it continues the sequence, and recognises
the last five batches of each partition when they are sent again. So up to five batches
may be *under way* (numbered, and neither acknowledged nor failed), provided that

* a batch is numbered when it is first sent, and its number does not change while the
  batch may have been appended;
* after a failure, batches are sent again in order, and only the lowest one under way
  may be sent again.

A broker that has no state of a producer accepts any number as the first one. If the
first batch were lost and the second not, the second would be appended and the first
could not follow. So until the first batch of a numbering is acknowledged, it is the
only one under way.

A batch that fails for good leaves a gap that no later batch can cross. Then the
partition is *settling*. No new batch is numbered. Each batch whose outcome is uncertain
(sent, never answered) is sent once more with its old number; the answer shows whether
it was appended. When no batch is on the wire or uncertain any more, either there turns
out to be no gap, or the remaining batches are numbered from 0 in a new epoch. For a
producer without transactions that is the next epoch, taken without asking the broker;
after 32767 a new id is needed. A transactional producer never takes an epoch by itself,
because the coordinator would not know it: the gap is reported, the transaction is
aborted, and the next identity comes from the coordinator. Other partitions change to
the new identity when they have nothing under way. So no partition has batches of two
epochs under way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from kafkaio._dataclass import dataclass
from kafkaio._generic import Generic

#: Brokers recognise this many batches per producer and partition.
MAX_UNDER_WAY = 5
#: Epochs are int16, and brokers accept none after this one.
LAST_EPOCH = 32767
_MODULUS = 2**31
UNNUMBERED = -1


def advance(sequence: int, count: int) -> int:
    """Return the sequence number ``count`` records later: 0 follows 2**31 - 1."""
    return (sequence + count) % _MODULUS


def _is_ahead(a: int, b: int) -> bool:
    # Numbers wrap around: a comes after b if that is the shorter distance.
    return 0 < (a - b) % _MODULUS < _MODULUS // 2


@dataclass(frozen=True, slots=True)
class IdAndEpoch:
    """The id and epoch by which brokers know a producer."""

    producer_id: int
    epoch: int

    def may_follow(self, other: IdAndEpoch) -> bool:
        """Whether a coordinator may give this one at the end of a transaction (TV2).

        That is the next epoch, or the one after it if the coordinator has taken one to
        abort the transaction; or a new id, when the epochs of the old one are used up.
        """
        if self.producer_id == other.producer_id:
            return other.epoch < self.epoch <= other.epoch + 2
        return self.producer_id >= 0 and self.epoch == 0


class ProducerIdentity:
    """The identity of one producer, which all its partitions share.

    Args:
        is_transactional: whether the identity comes from a transaction coordinator
            alone.

    Attributes:
        current: the identity, None while one must be requested.
        has_gap: whether a sequence of a transactional producer has a gap, so that
            another identity is needed.
        is_first_checked: whether brokers refuse a first number other than 0 under a new
            epoch, as they do in TV2 (KIP-890) since Kafka 4.1. Then a lost first batch
            cannot be overtaken, and several may be under way from the beginning.
    """

    __slots__ = ("_is_transactional", "current", "has_gap", "is_first_checked")

    def __init__(self, *, is_transactional: bool = False) -> None:
        self._is_transactional = is_transactional
        self.current: IdAndEpoch | None = None
        self.has_gap: bool = False
        self.is_first_checked: bool = False

    def obtained(self, identity: IdAndEpoch) -> None:
        """Set the identity that the broker gave."""
        self.current = identity
        self.has_gap = False

    def bump(self) -> IdAndEpoch | None:
        """Go to the next epoch; None if the broker has to give one.

        That is so when the epochs of this id are used up, and with transactions.
        """
        if self._is_transactional:
            self.has_gap = True
            return None
        if self.current is None:
            return None
        if self.current.epoch >= LAST_EPOCH:
            self.current = None
            return None
        self.current = IdAndEpoch(self.current.producer_id, self.current.epoch + 1)
        return self.current


class NumberedPort(Protocol):
    """A batch, as far as its sequence is concerned.

    Attributes:
        identity: the identity it was numbered under, None before.
        base_sequence: number of its first record, -1 before.
        is_on_wire: whether it was sent, and neither answered nor lost.
        is_uncertain: whether an earlier attempt was never answered, so that the batch
            may be in the log.
    """

    identity: IdAndEpoch | None
    base_sequence: int
    is_on_wire: bool
    is_uncertain: bool

    @property
    def count(self) -> int:
        """Records in the batch; fixed from the moment it is first sent."""


BatchT = TypeVar("BatchT", bound=NumberedPort)


class PartitionSequence(Generic[BatchT]):
    """The sequence of one partition.

    Attributes:
        under_way: batches numbered and not done, lowest first: on the wire or waiting
            to be sent again.
        is_settling: whether there may be a gap; no new batch is numbered meanwhile.
        next_sequence: number of the next new batch.
        expected: number after the last one acknowledged, which the broker expects.
    """

    __slots__ = (
        "_identity",
        "_is_known",
        "_producer",
        "expected",
        "is_settling",
        "next_sequence",
        "under_way",
    )

    def __init__(self, producer: ProducerIdentity) -> None:
        self._producer = producer
        self._identity: IdAndEpoch | None = None
        # Whether a batch of the current numbering was acknowledged.
        self._is_known = False
        # Invariant: all have self._identity, and contiguous numbers that end at
        # next_sequence, unless is_settling.
        self.under_way: list[BatchT] = []
        self.is_settling: bool = False
        self.next_sequence: int = 0
        self.expected: int = 0

    def sendable(self, head: BatchT | None) -> BatchT | None:
        """Return the batch that may be sent now, if any.

        Args:
            head: the first batch that waits to be sent, numbered or not.
        """
        if self.is_settling:
            self.settle()
            if self.is_settling:
                return self._uncertain()
        if head is None:
            return None
        if head.identity is not None:
            return head if head is self.under_way[0] else None
        is_free = self._is_known or self._producer.is_first_checked
        if len(self.under_way) >= (MAX_UNDER_WAY if is_free else 1):
            return None
        known = self._identity
        if known is not None and known is self._producer.current:
            return head
        return head if self._take_identity() else None

    def _uncertain(self) -> BatchT | None:
        if any(batch.is_on_wire for batch in self.under_way):
            return None
        return next((batch for batch in self.under_way if batch.is_uncertain), None)

    def _take_identity(self) -> bool:
        """Take over another identity of the producer; return whether there is one."""
        current = self._producer.current
        known = self._identity
        if self.under_way or current is known or current == known:
            return known is not None
        if current is None:
            return False
        self._restart(current)
        return True

    def _restart(self, identity: IdAndEpoch) -> None:
        self._identity = identity
        self.next_sequence = self.expected = 0
        self._is_known = False

    def sent(self, batch: BatchT) -> None:
        """Note that ``batch`` is sent now; a new one is numbered here."""
        if batch.identity is None:
            self._number(batch)
            self.under_way.append(batch)
        batch.is_on_wire = True

    def _number(self, batch: BatchT) -> None:
        batch.identity = self._identity
        batch.base_sequence = self.next_sequence
        self.next_sequence = (self.next_sequence + batch.count) % _MODULUS

    def acked(self, batch: BatchT) -> None:
        """Note that the broker has ``batch``."""
        batch.is_on_wire = False
        self.under_way.remove(batch)
        self._is_known = True
        end = (batch.base_sequence + batch.count) % _MODULUS
        # The first condition holds for nearly all, and saves the call.
        if batch.base_sequence == self.expected or _is_ahead(end, self.expected):
            self.expected = end

    def refused(self, batch: BatchT) -> None:
        """Note that the broker did not append ``batch``, which is sent again."""
        batch.is_on_wire = False

    def lost(self, batch: BatchT) -> None:
        """Note that no answer came, or one that leaves open whether it was appended."""
        batch.is_on_wire = False
        batch.is_uncertain = True

    def out_of_order(self, batch: BatchT) -> None:
        """Note that the broker saw a gap before ``batch``, which is sent again.

        If it is the batch that the broker should expect (or one before that), then the
        broker has lost what it had acknowledged, and waiting does not help. Otherwise
        an earlier batch is still to arrive.
        """
        batch.is_on_wire = batch.is_uncertain = False
        if not _is_ahead(batch.base_sequence, self.expected):
            self.forgotten(batch)

    def forgotten(self, batch: BatchT) -> None:
        """Note that the broker has lost the state of the sequence of ``batch``.

        Then none of the batches after it can have been appended either.
        """
        batch.is_on_wire = batch.is_uncertain = False
        self.is_settling = True
        later = self.under_way.index(batch) + 1
        for follower in self.under_way[later:]:
            follower.is_uncertain = False

    def failed(self, batch: BatchT) -> None:
        """Note that ``batch`` failed: there is a gap before what follows it."""
        batch.is_on_wire = False
        self.under_way.remove(batch)
        self.is_settling = True

    def expired(self, batch: BatchT) -> None:
        """Note that ``batch``, which is on the wire, has failed for its senders.

        Its answer still counts, so it stays under way until it is answered or lost.
        """
        assert batch.is_on_wire
        self.is_settling = True

    def replaced(self, batch: BatchT, parts: Sequence[BatchT]) -> None:
        """Replace ``batch``, which was refused, by ``parts``.

        If the parts have as many records, they take over its numbers, one after the
        other. Otherwise they and all that follow are numbered anew.
        """
        at = self.under_way.index(batch)
        self.under_way[at : at + 1] = parts
        sequence = batch.base_sequence
        for part in parts:
            part.identity = batch.identity
            part.base_sequence = sequence
            sequence = advance(sequence, part.count)
        if sequence != advance(batch.base_sequence, batch.count):
            self.is_settling = True

    def settle(self) -> None:
        """End the settling if the outcome of all that was under way is certain.

        Nothing changes while the identity to number the rest under is missing.
        """
        if any(batch.is_on_wire or batch.is_uncertain for batch in self.under_way):
            return
        if not self.under_way and self.expected == self.next_sequence:
            self.is_settling = False
            return
        identity = self._new_identity()
        if identity is None:
            return
        self._restart(identity)
        for batch in self.under_way:
            self._number(batch)
        self.is_settling = False

    def _new_identity(self) -> IdAndEpoch | None:
        # Another partition may have bumped the epoch already, and one new epoch is
        # enough for all of them.
        current = self._producer.current
        return current if current != self._identity else self._producer.bump()
