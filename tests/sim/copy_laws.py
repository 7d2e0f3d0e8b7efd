"""The laws of exactly once: what is copied in transactions is copied once.

Members copy a topic to another one. Each value of the output names the partition and
the offset of its input, and the transaction that it was written in. The checker is told
of each transaction, of what it worked on and sent, and of its outcome. It compares that
with the logs (by `tests.sim.replay`), with the committed offsets, and with what a
read_committed consumer returns:

1. The committed output is the input, each record once, in order per key.
2. Committed offsets and committed output agree whenever no marker is missing.
3. No record of an aborted transaction is committed, and no transaction half.
4. After a fence nothing of the fenced producer becomes visible.
6. A partition is not revoked while a transaction works on its records, and it is not
   kept past the deadline.
7. The last stable offset moves on.
8. Every outcome becomes known, and is true to the log.

The laws of requests are in `tests.sim.requests`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from kafkaio._producer.transaction import TransactionOutcome
from kafkaio.errors import OutcomeUnknown
from tests.sim.replay import Replay

__all__ = ["Copied", "CopyChecker", "Life", "value_of"]

#: Place of an input record: partition and offset.
Place = tuple[int, int]

_LATE: Final = 5.0


@dataclass(slots=True, eq=False)
class Life:
    """One process: a consumer and a producer, from their start to their end.

    Attributes:
        name: its client id.
        transactional_id: of its producer; earlier lives of the id are fenced.
        number: its number among the lives of the transactional id.
        is_fenced_out: whether a later life of the id has begun.
        is_closing: whether its producer is being closed, or will be at once.
        is_over: whether its process has ended.
        to_be_revoked: the partitions whose revocation is requested.
        asked: when the revocation of each was requested.
        patience: the most seconds from then to its revocation or loss.
    """

    name: str
    transactional_id: str
    number: int
    is_fenced_out: bool = False
    is_closing: bool = False
    is_over: bool = False
    to_be_revoked: Callable[[], Collection[int]] = tuple
    asked: dict[int, float] = field(default_factory=dict)
    patience: float = float("inf")


@dataclass(slots=True, eq=False)
class Copied:
    """One transaction.

    Attributes:
        number: its number in the run.
        life: who runs it.
        began: when its first record was handed out.
        inputs: the places of the records that it worked on.
        values: what it sent, and was taken in.
        outcome: how it ended, as its ``outcome`` says; None while that is unknown.
        is_unknown: whether its outcome will never be known.
        lost: the partitions that were lost meanwhile; they may be assigned again.
        must_abort: whether the coordinator has refused to add something to it.
    """

    number: int
    life: Life
    began: float
    inputs: list[Place] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)
    outcome: TransactionOutcome | None = None
    is_unknown: bool = False
    lost: set[int] = field(default_factory=set)
    must_abort: bool = False

    @property
    def is_over(self) -> bool:
        """Whether its outcome was told."""
        return self.outcome is not None or self.is_unknown


class CopyChecker:
    """Records what happens, and checks the laws.

    Args:
        clock: returns the time.
        violated: called with the name of a broken law, and the details.
        committed: returns the group's committed offset of a partition, -1 for none.
        markers_missing: whether an ended transaction waits for its markers, or nobody
            knows.
        inputs: returns the keys in the log of each partition of the input.
        replays: read the partitions of the output.
        may_be_fenced: whether a life may be fenced without another life of its id.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        violated: Callable[[str, str], None],
        committed: Callable[[int], int],
        markers_missing: Callable[[], bool],
        inputs: Callable[[], Sequence[Sequence[bytes]]],
        replays: Sequence[Replay],
        may_be_fenced: Callable[[str], bool],
    ) -> None:
        self._clock = clock
        self.break_law = violated
        self._committed = committed
        self._markers_missing = markers_missing
        self._inputs = inputs
        self._replays = replays
        self._may_be_fenced = may_be_fenced
        self._seen = [0] * len(replays)
        self._decided = [0] * len(replays)
        # Of each committed place: the transaction; of each key: the last place.
        self._copied: dict[Place, int] = {}
        # The same, also where an open transaction still hides it from readers.
        self._done: dict[Place, int] = {}
        self._last: dict[bytes, tuple[int, int]] = {}
        self._prefix: dict[int, int] = {}
        self.transactions: list[Copied] = []
        self.lives: list[Life] = []
        self.sent_records = self.acknowledged = self.failed = self.read = 0
        self._frozen: dict[str, set[int]] = {}
        self._read = [0] * len(replays)
        self._verdicts: dict[int, bool] = {}

    # ---- the writer of the input ---------------------------------------------------

    def sent(self) -> int:
        """A record of the input is about to be enqueued; return its number."""
        self.sent_records += 1
        return self.sent_records - 1

    def acked(self, number: int, place: Place) -> None:
        """A record of the input was acknowledged."""
        del number, place
        self.acknowledged += 1

    def failed_to_send(self, number: int) -> None:
        """A record of the input may have been written, or not."""
        del number
        self.failed += 1

    # ---- the members ---------------------------------------------------------------

    def began(self, life: Life) -> Copied:
        """A life works on the first record of a transaction."""
        entry = Copied(len(self.transactions), life, self._clock())
        self.transactions.append(entry)
        return entry

    async def watch(
        self, entry: Copied, outcome: Awaitable[TransactionOutcome]
    ) -> None:
        """Wait for the outcome of a transaction."""
        try:
            entry.outcome = await outcome
            if entry.must_abort and _is_commit(entry.outcome):
                self.break_law("committed after a refusal", _name(entry))
        except OutcomeUnknown:
            entry.is_unknown = True
            life = entry.life
            is_over = life.is_closing or life.is_fenced_out
            if not is_over and not self._may_be_fenced(life.name):
                self.break_law("outcome not known", f"{_name(entry)}")

    def initialised(self, life: Life) -> None:
        """The producer of a life has its identity: those before it are fenced."""
        self.look()
        for other in self.lives:
            if other.transactional_id == life.transactional_id and other is not life:
                other.is_fenced_out = True
        self._frozen[life.transactional_id] = {
            one.number
            for one in self.transactions
            if one.life.transactional_id == life.transactional_id
            and one.life.number < life.number
            and one.number not in self._verdicts
        }

    def revoked(
        self, life: Life, partitions: Collection[int], *, is_open: bool
    ) -> None:
        """A consumer gives partitions up; whether its transaction is not ended."""
        entry = self._current(life)
        if entry is None or not is_open:
            return
        works_on = {p for p, _ in entry.inputs} - entry.lost
        for partition in sorted(works_on.intersection(partitions)):
            self.break_law("revoked in a transaction", f"{_name(entry)}: {partition}")

    def lost(self, life: Life, partitions: Collection[int]) -> None:
        """A consumer has lost partitions."""
        entry = self._current(life)
        if entry is not None:
            entry.lost |= set(partitions)

    def must_abort(self, name: str) -> None:
        """The coordinator has refused to add something for the life of this name."""
        for life in self.lives:
            entry = self._current(life) if life.name == name else None
            if entry is not None:
                entry.must_abort = True

    def _current(self, life: Life) -> Copied | None:
        mine = (one for one in reversed(self.transactions) if one.life is life)
        entry = next(mine, None)
        return None if entry is None or entry.is_over else entry

    # ---- the reader ----------------------------------------------------------------

    def reads(self, partition: int, value: bytes) -> None:
        """The read_committed consumer has returned a record."""
        replay = self._replays[partition]
        replay.go_on()
        at = self._read[partition]
        self._read[partition] += 1
        self.read += 1
        expected = replay.committed[at] if at < len(replay.committed) else None
        if value != expected:
            self.break_law(
                "read what is not committed",
                f"partition {partition}: {value!r} for {expected!r}, number {at}",
            )

    # ---- checks --------------------------------------------------------------------

    def look(self) -> None:
        """Check what can be said at any time."""
        for partition, replay in enumerate(self._replays):
            replay.go_on()
            if replay.unexpected:
                self.break_law("written without a transaction", f"{replay.unexpected}")
            self._check_committed(partition, replay)
            self._check_decided(partition, replay)
        if not self._markers_missing():
            self._check_offsets()
            self._check_whole()
        self._check_deadlines()

    def _check_committed(self, partition: int, replay: Replay) -> None:
        for value in replay.committed[self._seen[partition] :]:
            key, place, number = _parse(value)
            where = f"{place} in partition {partition}, by transaction {number}"
            if place in self._copied:
                self.break_law("copied twice", f"{where}, and {self._copied[place]}")
            self._copied[place] = number
            if self._last.get(key, (place[0], -1)) >= place:
                self.break_law("out of order", f"{where}, after {self._last[key]}")
            self._last[key] = place
        self._seen[partition] = len(replay.committed)

    def _check_decided(self, partition: int, replay: Replay) -> None:
        decided = list(replay.decided.items())[self._decided[partition] :]
        self._decided[partition] = len(replay.decided)
        for value, is_commit in decided:
            _, place, number = _parse(value)
            if is_commit:
                self._done[place] = number
            entry = self.transactions[number]
            before = self._verdicts.setdefault(number, is_commit)
            if before is not is_commit:
                self.break_law("half committed", _name(entry))
            frozen = self._frozen.get(entry.life.transactional_id, ())
            if is_commit and number in frozen:
                self.break_law("visible after the fence", _name(entry))
            told = entry.outcome
            if told is not None and is_commit is not _is_commit(told):
                self.break_law("outcome not true", f"{_name(entry)}: {told}")

    def _check_offsets(self) -> None:
        """Committed offsets and committed output agree."""
        copied: dict[int, int] = {}
        for partition, offset in self._done:
            copied[partition] = max(copied.get(partition, 0), offset + 1)
        for partition in range(len(self._inputs())):
            at = max(0, self._committed(partition))
            done = copied.get(partition, 0)
            if at != done:
                self.break_law(
                    "offsets and output differ",
                    f"partition {partition}: {at} committed, {done} copied",
                )
            start = self._prefix.get(partition, 0)
            for offset in range(start, at):
                if (partition, offset) not in self._done:
                    self.break_law("lost", f"record {offset} of partition {partition}")
            self._prefix[partition] = at

    def _check_whole(self) -> None:
        """What a committed transaction has sent is all there."""
        for entry in self.transactions:
            if entry.outcome is not TransactionOutcome.COMMITTED or not entry.values:
                continue
            for value in entry.values:
                _, place, number = _parse(value)
                if self._done.get(place) != number:
                    self.break_law("half committed", f"{_name(entry)}: no {place}")
            entry.values.clear()

    def _check_deadlines(self) -> None:
        now = self._clock()
        for life in self.lives:
            if life.is_over:
                continue
            asked = set(life.to_be_revoked())
            life.asked = {p: life.asked.get(p, now) for p in asked}
            for partition, since in life.asked.items():
                if now > since + life.patience + _LATE:
                    self.break_law(
                        "held past the deadline",
                        f"{life.name}, partition {partition}, since {since:.3f}",
                    )

    # ---- the end -------------------------------------------------------------------

    def uncopied(self) -> dict[int, int]:
        """The number of records of each partition that are not copied."""
        self.look()
        left = {
            partition: len(keys) - max(0, self._committed(partition))
            for partition, keys in enumerate(self._inputs())
        }
        return {partition: count for partition, count in left.items() if count}

    def unread(self) -> dict[int, int]:
        """The number of copies of each partition that were not read."""
        left = {
            partition: len(replay.committed) - self._read[partition]
            for partition, replay in enumerate(self._replays)
        }
        return {partition: count for partition, count in left.items() if count}

    def unstable(self) -> list[int]:
        """The partitions of the output with an open transaction."""
        return [p for p, replay in enumerate(self._replays) if replay.has_open]

    def check_end(self) -> None:
        """Check what must hold when everything has ended."""
        self.look()
        places = {
            (partition, offset): key
            for partition, keys in enumerate(self._inputs())
            for offset, key in enumerate(keys)
        }
        if missing := sorted(places.keys() ^ self._copied.keys()):
            self.break_law("not copied", f"{missing[:10]}")
        for entry in self.transactions:
            if not entry.is_over:
                self.break_law("no outcome", _name(entry))


def _is_commit(outcome: TransactionOutcome) -> bool:
    return outcome is TransactionOutcome.COMMITTED


def _name(entry: Copied) -> str:
    return f"transaction {entry.number} of {entry.life.name}"


def _parse(value: bytes) -> tuple[bytes, Place, int]:
    key, partition, offset, number = value.rsplit(b"|", 3)
    return key, (int(partition), int(offset)), int(number)


def value_of(key: bytes, place: Place, entry: Copied) -> bytes:
    """Return the value of a copy."""
    return b"%s|%d|%d|%d" % (key, *place, entry.number)
