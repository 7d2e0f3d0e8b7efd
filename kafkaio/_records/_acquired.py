"""Acquired records of a share group: the pure twins, which are the reference.

A leader acquires *ranges* of offsets for a member (KIP-932). `Acquired` is one such
range, with one byte for each offset: what became of it. To acknowledge a record costs
that byte and, once for many records, a call of the listener.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable
from dataclasses import FrozenInstanceError
from typing import Any, Final, Protocol, TypeAlias

from kafkaio._generic import K_co, V_co
from kafkaio._public import public
from kafkaio.errors import UsageError
from kafkaio.types import AnyRecord, Header, Record, TimestampType, sizes_of

#: What became of an offset. The decisions have Kafka's numbers of acknowledge types,
#: apart from GAP, which is 0 there.
HELD: Final = 0  # locked, no decision
ACCEPT: Final = 1
RELEASE: Final = 2
REJECT: Final = 3
GAP: Final = 5  # there is no record at this offset
LOST: Final = 6  # the lock is gone; what was decided, if anything, does not count
FAILED: Final = 7  # it was decided, and that did not count, or that is unknown
COPY: Final = 8  # there never was a lock: a record that is a copy, or made by hand
#: Added to a decision that the ledger has taken over, to send it.
TAKEN: Final = 16
#: Added instead of it once the leader has confirmed the decision.
DONE: Final = 32
#: The decision, or what else became of the offset.
STATE: Final = 15

_WORDS: Final = {
    ACCEPT: "it was accepted",
    RELEASE: "it was released",
    REJECT: "it was rejected",
    GAP: "it was passed over, because there is no record",
    LOST: "its lock is gone",
    FAILED: "it was acknowledged before, and the leader did not confirm that",
    COPY: "this is a copy without a lock; only the record that the consumer returned "
    "can be acknowledged",
}
_DECISIONS: Final = (ACCEPT, RELEASE, REJECT, GAP)
# Compiled when used: all clients load this module, and few have share groups.
_HELD_RUNS: Final = rb"\x00+"
_DECIDED_RUNS: Final = rb"\x01+|\x02+|\x03+|\x05+"


def _table(changes: dict[int, int]) -> bytes:
    return bytes.maketrans(bytes(changes), bytes(changes.values()))


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

    def acked(self, acquired: Acquired, offset: int) -> Awaitable[None]:
        """Return what is done when the leader has answered the acknowledgement."""
        ...

    def has_ended(self, acquired: Acquired, offset: int) -> bool:
        """Whether the lock of an offset without a decision has ended by the clock."""
        ...


class Acquired:
    """A range of offsets of one partition that is locked for this consumer.

    Args:
        topic: name of the topic.
        partition: number of the partition.
        first: the first offset.
        last: the last offset.
        delivery_count: which delivery of these records this is, 1 for the first.
        node_id: the leader that acquired them.
        listener: is notified about decisions; None if there is no lock.

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
        listener: AcquiredListenerPort | None,
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
            UsageError: it was decided before, its lock is gone, or it is not part of
                the range.
        """
        place = offset - self.first
        if not 0 <= place < len(self.states) or self.states[place]:
            raise self.refusal(offset)
        self.states[place] = decision
        self.held -= 1
        self._notify()

    def decide_range(self, first: int, last: int, decision: int) -> int:
        """Decide what becomes of the offsets that are held; return how many.

        Offsets that are not part of the range are ignored.
        """
        start = max(first - self.first, 0)
        end = min(last - self.first + 1, len(self.states))
        if start >= end:
            return 0
        part = self.states[start:end]
        count = part.count(HELD)
        if count:
            self.states[start:end] = part.replace(b"\0", bytes((decision,)))
            self.held -= count
            self._notify()
        return count

    def is_held(self, offset: int) -> bool:
        """Whether an offset of the range is locked, and was not decided."""
        place = offset - self.first
        return 0 <= place < len(self.states) and not self.states[place]

    def is_lost(self, offset: int) -> bool:
        """Whether the lock of an offset of the range is gone.

        The clock is asked as well: after the loop was blocked, or the process paused, a
        handler may go on before anything else has noticed the end of the lock.
        """
        place = offset - self.first
        if not 0 <= place < len(self.states):
            return False
        if self.states[place] == HELD and self.listener is not None:
            return self.listener.has_ended(self, offset)
        return self.states[place] & STATE == LOST

    def acked(self, offset: int) -> Awaitable[None]:
        """Return what is done when the leader has answered the acknowledgement.

        Raises:
            UsageError: there never was a lock.
        """
        if self.listener is None:
            raise self.refusal(offset)
        return self.listener.acked(self, offset)

    def refusal(self, offset: int) -> UsageError:
        """Return the error for a decision that cannot be taken."""
        return refusal_of(self, offset)

    def _notify(self) -> None:
        if not self.is_queued and self.listener is not None:
            self.is_queued = True
            self.listener.decided(self)

    def held_runs(self, first: int, last: int) -> list[tuple[int, int]]:
        """Return the runs of offsets within these that are held: first and last."""
        start, end = max(first - self.first, 0), max(last - self.first + 1, 0)
        base = self.first
        runs = re.compile(_HELD_RUNS).finditer(self.states, start, end)
        return [(base + run.start(), base + run.end() - 1) for run in runs]

    def take_decisions(self, most: int) -> list[tuple[int, int, int]]:
        """Take over decisions: runs of first offset, last offset and decision.

        Args:
            most: the most runs to take. If there are more, ``is_queued`` stays True,
                and the listener is not notified again.
        """
        base, taken = self.first, list[tuple[int, int, int]]()
        end = len(self.states)
        for run in re.finditer(_DECIDED_RUNS, self.states):
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

    def __repr__(self) -> str:
        return (
            f"<Acquired {self.topic}-{self.partition} {self.first}-{self.last} | "
            f"{self.held} held, delivery {self.delivery_count}>"
        )


def refusal_of(acquired: Acquired, offset: int) -> UsageError:
    """Return the error for a decision that cannot be taken, of either codec."""
    place = offset - acquired.first
    if 0 <= place < len(acquired.states):
        state = acquired.states[place] & STATE
        reason = _WORDS.get(state, "it is not decided")
        if state == LOST and acquired.lost_because:
            reason += f": {acquired.lost_because}"
    else:
        reason = f"the range has the offsets {acquired.first} to {acquired.last}"
    return UsageError(
        f"{acquired.topic}-{acquired.partition} at offset {offset} cannot be "
        f"acknowledged: {reason}"
    )


def without_lock(
    record: AnyRecord, delivery_count: int = 1, deadline: float = 0.0
) -> Acquired:
    """Return the range of a record that has no lock: it refuses decisions."""
    place = (record.topic, record.partition, record.offset, record.offset)
    acquired = Acquired(*place, delivery_count, -1, None)
    acquired.states[0] = COPY
    acquired.held = 0
    acquired.deadline = deadline
    return acquired


@public("kafkaio")
class ShareRecord(Record[K_co, V_co]):
    """A record of a share group: a `Record` that its consumer can acknowledge.

    It was delivered to this consumer alone, and is locked until it is acknowledged or
    the lock ends (KIP-932). ``ack``, ``release`` and ``reject`` decide what becomes of
    it; one of them can be called, once, from any task of the consumer's event loop, or
    in the thread that works on the record. They send nothing by themselves: the
    decision joins the next request to the partition's leader. ``await record.acked``
    waits for the answer.

    Share records with equal fields are equal, also to a `Record`; how often they were
    delivered does not count. A copy, pickled or not, has the fields, the delivery count
    and the deadline, but no lock: it cannot be acknowledged, and its ``is_lost`` is
    False. The same holds for a record made by hand, such as in a test of a handler.

    With the compiled codec, ``kafkaio.ShareRecord`` is a compiled class with the same
    behaviour.

    Args:
        topic: name of the topic.
        partition: number of the partition.
        offset: position in the partition's log.
        timestamp: milliseconds since the Unix epoch, -1 if there is none.
        key: the key, as bytes or deserialized; None if the record has no key.
        value: the value, as bytes or deserialized; None for a tombstone.
        headers: pairs of name and value in the order in which they were written.
        timestamp_type: who set the timestamp.
        leader_epoch: epoch of the leader that appended the record, -1 if unknown.
        delivery_count: which delivery it is.
        lock_deadline: when its lock ends.
    """

    __slots__ = ("_acquired",)
    _acquired: Acquired

    def __init__(  # noqa: PLR0913 - the fields of a record
        self,
        topic: str,
        partition: int,
        offset: int,
        timestamp: int,
        key: K_co,
        value: V_co,
        headers: tuple[Header, ...] = (),
        timestamp_type: TimestampType = TimestampType.CREATE,
        leader_epoch: int = -1,
        *,
        delivery_count: int = 1,
        lock_deadline: float = 0.0,
    ) -> None:
        super().__init__(
            topic,
            partition,
            offset,
            timestamp,
            key,
            value,
            headers,
            timestamp_type,
            leader_epoch,
        )
        acquired = without_lock(self, delivery_count, lock_deadline)
        object.__setattr__(self, "_acquired", acquired)

    @property
    def delivery_count(self) -> int:
        """Which delivery of the record this is: 1 for the first.

        It counts each time that the record was given to a member, and released, or not
        acknowledged before the lock ended. The broker archives a record that reaches
        the group's limit (5 by default) and delivers it no more.
        """
        return self._acquired.delivery_count

    @property
    def lock_deadline(self) -> float:
        """When the lock ends, in seconds on the scale of ``time.monotonic``.

        It moves while the consumer renews the lock. On the clock of the machine that
        received the record.
        """
        return self._acquired.deadline

    @property
    def is_lost(self) -> bool:
        """Whether the lock is gone: the record will be delivered again, or was."""
        return self._acquired.is_lost(self.offset)

    @property
    def acked(self) -> Awaitable[None]:
        """Wait until the leader has answered the acknowledgement.

        It can be awaited several times, and cancelled: the acknowledgement stays.

        Raises when awaited:
            AcknowledgeFailed: it did not count, or that is unknown; `LockLost` if the
                lock is gone.

        Raises:
            UsageError: this is a copy, which has no lock.
        """
        return self._acquired.acked(self.offset)

    def ack(self) -> None:
        """Accept the record: it is done, and is not delivered again.

        Raises:
            UsageError: it was decided before, its lock is gone, or this is a copy; the
                message says which.
        """
        self._acquired.decide(self.offset, ACCEPT)

    def release(self) -> None:
        """Give the record back: it is delivered again, to any member of the group.

        Raises:
            UsageError: as ``ack``.
        """
        self._acquired.decide(self.offset, RELEASE)

    def reject(self) -> None:
        """Refuse the record for good: it is not delivered again.

        Raises:
            UsageError: as ``ack``.
        """
        self._acquired.decide(self.offset, REJECT)

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return _fields_of(self) == _fields_of(other)

    def __hash__(self) -> int:
        return hash(_fields_of(self))

    def __repr__(self) -> str:
        names = (*Record.__match_args__, "delivery_count")
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"ShareRecord({fields})"

    def __replace__(self, **changes: Any) -> AnyShareRecord:
        more = {
            "delivery_count": self.delivery_count,
            "lock_deadline": self.lock_deadline,
        }
        fields = dict(zip(Record.__match_args__, _fields_of(self), strict=True))
        return type(self)(**fields | more | changes)  # type: ignore[arg-type]  # by name


#: A share record inside a consumer: only the consumer itself knows the types of its
#: keys and values, by those of its deserializers.
AnyShareRecord: TypeAlias = ShareRecord[Any, Any]


def _fields_of(record: AnyRecord) -> tuple[object, ...]:
    return tuple([getattr(record, name) for name in Record.__match_args__])


def acquired_of(record: AnyShareRecord) -> Acquired:
    """Return the range that a share record is part of."""
    return record._acquired


def settle(record: AnyShareRecord, decision: int) -> bool:
    """Decide what becomes of a record, unless that is decided, or its lock is gone.

    Returns:
        Whether it was undecided.
    """
    acquired, offset = record._acquired, record.offset
    if not acquired.is_held(offset):
        return False
    acquired.decide(offset, decision)
    return True


class _Draft(Record[K_co, V_co]):
    """A `ShareRecord` whose fields can be set; its class is changed to that then."""

    __slots__ = ("_acquired",)
    __setattr__ = object.__setattr__


def share_record(
    record: AnyRecord,
    acquired: Acquired,
    key: object,
    value: object,
    sizes: tuple[int, int] | None = None,
) -> AnyShareRecord:
    """Return a record with its range, and with a key and value that can be anything."""
    draft: Any = object.__new__(_Draft)
    for name in Record.__match_args__:
        setattr(draft, name, getattr(record, name))
    draft.key = key
    draft.value = value
    draft._sizes = sizes_of(record) if sizes is None else sizes
    draft._acquired = acquired
    draft.__class__ = ShareRecord
    made: AnyShareRecord = draft
    return made
