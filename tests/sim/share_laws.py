"""The laws of a share group, and what they are checked by.

1. An acknowledgement that was confirmed holds: the broker has the record as done. It is
   not handed out again, but by a consumer that had it before and could not know yet,
   and its acknowledgement does not count then.
2. A record that is handed out again while an earlier hand-out has no answer is a
   duplicate that was announced: the lock of the earlier one is lost, or its
   acknowledgement failed, or its consumer has ended.
3. While nothing disturbs the cluster, no record is in the hands of two, and no consumer
   with ``record_limit`` has more locked than ``max_in_flight``.
4. Delivery counts never fall.
5. Every record ends: accepted or rejected by a member, or archived after as many
   deliveries as the group allows.
6. Every acknowledgement is answered, or fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from kafkaio._records.batch import (
    ACCEPT,
    HELD,
    REJECT,
    RELEASE,
    STATE,
    ShareRecord,
    acquired_of,
)
from kafkaio.testing._broker.partition import EmbeddedPartition
from kafkaio.testing._share.inflight import RecordState
from kafkaio.testing._share.leaders import LedPartition, ShareLeaders
from kafkaio.testing._share.partition import Acquire, AcquiredRange, Fetched
from kafkaio.testing._share.states import ShareKey

__all__ = ["Handed", "ShareChecker", "ShareLife", "Truth"]

#: Place of a record: partition and offset.
Place = tuple[int, int]
Shared = ShareRecord[bytes | None, bytes | None]

#: How a hand-out may end without a duplicate being a surprise.
_ANNOUNCED: Final = {"released", "lost", "unknown", "over"}


@dataclass(slots=True, eq=False)
class ShareLife:
    """One process with a consumer, from its start to its end.

    Attributes:
        name: its client id.
        member_id: returns its id in the group.
        most: the most records that it may have locked; None for no exact limit.
        is_over: whether its process has ended.
    """

    name: str
    member_id: Callable[[], str] = str
    most: int | None = None
    is_over: bool = False


@dataclass(slots=True, eq=False)
class Handed:
    """One record as it was handed out.

    Attributes:
        life: who got it.
        place: the partition and offset.
        count: which delivery it was.
        record: the record.
        decision: what its user decided: accept, release or reject; empty for nothing.
        is_finished: whether its user has finished it without a decision, which accepts
            it with the next step if acknowledgement is implicit.
        end: how that ended, as far as its user knows; empty for not yet.
        is_superseded: whether it was handed out again before the end.
    """

    life: ShareLife
    place: Place
    count: int
    record: Shared
    decision: str = ""
    end: str = ""
    is_superseded: bool = False
    is_finished: bool = False

    @property
    def decided(self) -> str:
        """What became of it in its consumer."""
        acquired = acquired_of(self.record)
        state = acquired.states[self.record.offset - acquired.first] & STATE
        return {ACCEPT: "accept", RELEASE: "release", REJECT: "reject"}.get(state, "")

    @property
    def is_held(self) -> bool:
        """Whether its consumer has neither decided about it nor lost it."""
        acquired = acquired_of(self.record)
        return acquired.states[self.record.offset - acquired.first] == HELD

    def __str__(self) -> str:
        partition, offset = self.place
        return (
            f"{partition}/{offset} as delivery {self.count} to {self.life.name}"
            f" ({self.decision or 'no decision'}, {self.end or 'no answer'})"
        )


class Truth:
    """What the leaders of the group know; acquisitions are noted as they happen.

    Args:
        leaders: the leaders.
        group: the group.
        logs: the partitions of the topic, by number.
        violated: called with the name of a broken law, and the details.
    """

    def __init__(
        self,
        leaders: ShareLeaders,
        group: str,
        logs: Callable[[], Sequence[EmbeddedPartition]],
        violated: Callable[[str, str], None],
    ) -> None:
        self._leaders = leaders
        self._group = group
        self._logs = logs
        self._violated = violated
        #: The highest number of deliveries of each place.
        self.deliveries: dict[Place, int] = {}
        self._acquire = leaders.acquire
        leaders.acquire = self._acquired  # type: ignore[method-assign]

    def _acquired(
        self, led: LedPartition, ask: Acquire, read: Fetched
    ) -> list[AcquiredRange]:
        found = self._acquire(led, ask, read)
        for first, last, count in found:
            for offset in range(first, last + 1):
                place = led.log.index, offset
                before = self.deliveries.get(place, 0)
                if count < before:
                    self._violated("count fell", f"{place}: {count} after {before}")
                self.deliveries[place] = count
        return found

    def states(self, partition: int) -> Iterator[tuple[int, int, RecordState]]:
        """Yield what is not done, and what is done behind that."""
        log = self._logs()[partition]
        key = ShareKey(self._group, log.topic_id, partition)
        led = self._leaders.led(key)
        if led is not None:
            for first, last, delivery in led.machine.states():
                yield first, last, delivery.state
            return
        kept = self._leaders.states.get(key)
        if kept is not None:
            for first, last, state, _ in kept.image.runs:
                yield first, last, state

    def start(self, partition: int) -> int:
        """The offset before which everything is done."""
        log = self._logs()[partition]
        key = ShareKey(self._group, log.topic_id, partition)
        led = self._leaders.led(key)
        if led is not None:
            return led.machine.start
        kept = self._leaders.states.get(key)
        return -1 if kept is None else kept.image.start

    def is_done(self, place: Place) -> bool:
        """Whether a record is never delivered again."""
        partition, offset = place
        if offset < self.start(partition):
            return True
        return any(
            state.is_final
            for first, last, state in self.states(partition)
            if first <= offset <= last
        )

    def undone(self) -> dict[int, int]:
        """The number of records of each partition that are not done."""
        left: dict[int, int] = {}
        for partition, log in enumerate(self._logs()):
            done = sum(
                last - max(first, self.start(partition)) + 1
                for first, last, state in self.states(partition)
                if state.is_final and last >= self.start(partition)
            )
            count = log.log.end_offset - max(self.start(partition), 0) - done
            if count:
                left[partition] = count
        return left

    def locked(self, member_id: str) -> int:
        """How many records a member has locked."""
        return sum(
            last - first + 1
            for log in self._logs()
            if (led := self._leaders.led(self._key(log))) is not None
            for first, last, delivery in led.machine.locks()
            if delivery.member == member_id
        )

    def _key(self, log: EmbeddedPartition) -> ShareKey:
        return ShareKey(self._group, log.topic_id, log.index)


@dataclass(slots=True)
class ShareChecker:
    """Records what happens, and checks the laws.

    Args:
        clock: returns the time.
        break_law: called with the name of a broken law, and the details.
        truth: what the leaders know.
        is_calm: whether nothing disturbs the cluster, nor has recently.
        limit: how often a record is delivered at most.
    """

    clock: Callable[[], float]
    break_law: Callable[[str, str], None]
    truth: Truth
    is_calm: Callable[[], bool]
    limit: int
    lives: list[ShareLife] = field(default_factory=list)
    entries: dict[Place, list[Handed]] = field(default_factory=dict)
    sent_records: int = 0
    acknowledged: int = 0
    failed: int = 0
    delivered: int = 0
    repeated: int = 0

    # ---- the writer ------------------------------------------------------------------

    def sent(self) -> int:
        """A record is about to be enqueued; return its number."""
        self.sent_records += 1
        return self.sent_records - 1

    def acked(self, number: int, place: Place) -> None:
        """A record was written."""
        del number, place
        self.acknowledged += 1

    def failed_to_send(self, number: int) -> None:
        """A record may have been written, or not."""
        del number
        self.failed += 1

    # ---- the members -----------------------------------------------------------------

    def handed(self, life: ShareLife, record: Shared) -> Handed:
        """A consumer has handed a record out."""
        place = record.partition, record.offset
        entry = Handed(life, place, record.delivery_count, record)
        before = self.entries.setdefault(place, [])
        self.delivered += 1
        self.repeated += bool(before)
        if record.is_lost:
            self.break_law("handed out after loss", str(entry))
        for other in before:
            self._check_again(entry, other)
        before.append(entry)
        return entry

    def _check_again(self, entry: Handed, other: Handed) -> None:
        if other.end in {"accepted", "rejected"}:
            # One that is cut off from a leader that has died cannot know that, and has
            # to learn it later.
            entry.is_superseded = True
            if other.life is entry.life or self.is_calm():
                what = f"{entry}, after {other}"
                self.break_law("handed out after it was done", what)
        if other.end or other.life.is_over:
            return
        other.is_superseded = True
        is_live = other.is_held
        if other.life is entry.life and is_live:
            self.break_law("handed out twice", f"{entry}, after {other}")
        if is_live and other.record.lock_deadline > self.clock() and self.is_calm():
            self.break_law("in two hands", f"{entry}, and {other}")

    def ended(self, entry: Handed, end: str) -> None:
        """The user knows what became of its decision, or of the lock."""
        if end == "confirmed":
            decided = entry.decided
            if entry.is_finished and not entry.decision and decided == "accept":
                entry.decision = decided
            end = f"{decided}d" if decided == "release" else f"{decided}ed"
            # What its user has not decided may be released, and nothing else.
            if decided not in {"release", entry.decision}:
                self.break_law("confirmed as something else", f"{entry}: {end}")
        entry.end = end
        if end not in {"accepted", "rejected"}:
            return
        if not self.truth.is_done(entry.place):
            self.break_law("confirmed and not done", str(entry))

    # ---- checks ----------------------------------------------------------------------

    def look(self) -> None:
        """Check what can be said at any time."""
        if not self.is_calm():
            return
        for life in self.lives:
            if life.most is None or life.is_over:
                continue
            locked = self.truth.locked(life.member_id())
            if locked > life.most:
                self.break_law(
                    "too many locked", f"{life.name}: {locked} for {life.most}"
                )

    def check_end(self) -> None:
        """Check what must hold when everything has ended."""
        for place, count in self.truth.deliveries.items():
            entries = self.entries.get(place, [])
            is_decided = any(
                e.decision in {"accept", "reject"} or e.is_finished for e in entries
            )
            if not is_decided and count < self.limit:
                self.break_law("done by nobody", f"{place}, delivered {count} times")
            for entry in entries:
                if not entry.end:
                    self.break_law("no answer", str(entry))
                elif (
                    entry.is_superseded
                    and entry.end not in _ANNOUNCED
                    # The other one is told, or the leader confirms in silence what is
                    # done: below the start of the partition.
                    and any(e.end not in {*_ANNOUNCED, entry.end} for e in entries)
                ):
                    self.break_law("a duplicate without a word", str(entry))
        if left := self.truth.undone():
            self.break_law("never done", f"by partition: {left}")
