"""The position of each assigned partition: where reading goes on.

A partition goes through stages::

    UNPOSITIONED -- committed offset found --------> FETCHING
    UNPOSITIONED -- none, a reset policy ----------> RESETTING
    UNPOSITIONED -- none, no policy ---------------> NO_OFFSET
    RESETTING ----- found -------------------------> FETCHING
    FETCHING ------ out of range, a policy --------> RESETTING
    FETCHING ------ out of range, no policy -------> NO_OFFSET
    FETCHING ------ another leader ----------------> VALIDATING
    VALIDATING ---- the log agrees ----------------> FETCHING
    VALIDATING ---- the log is truncated, a policy -> FETCHING there, or RESETTING
    VALIDATING ---- the log is truncated, none -----> NO_OFFSET

Without a committed offset, a partition that was added after those that the group reads
has a reset policy of its own.

A seek leads from every stage to FETCHING, a seek to the beginning or the end to
RESETTING. A position whose leader epoch is known, from a commit, a seek or the record
before it, is validated with every leader that it meets (KIP-320): after an unclean
election the new leader's log may lack records that were read.

A pause and a requested revocation are not stages: they stop fetching or delivery, and
keep the position. A reset is looked up even during a requested revocation, because the
partition needs a position until the revocation completes, which may take long.

There are two offsets: ``fetch_offset`` is where the next request reads, ``position`` is
the next record to hand out. The records between them are buffered.

Look-ups and fetches may be answered late. Each carries the `PositionToken` of its
start: the number of the assignment, and the era, which every seek and reset ends. A
reply with an old token is dropped before it reaches the table, so a seek during a
look-up wins.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from kafkaio._machines.positions.stages import (
    LOOKING_UP,
    TRANSITIONS,
    FetchPoint,
    PartitionPosition,
    PositionEvent,
    PositionStage,
    PositionToken,
    Reset,
    ResetTo,
    Truncation,
    Unvalidated,
)
from kafkaio.errors import InternalError
from kafkaio.types import TopicPartition

_EARLIEST: Final = Reset(ResetTo.EARLIEST)


class Positions:
    """Every assigned partition's position.

    Args:
        policy: the reset policy for partitions without a usable offset; None leaves
            them without a position until a seek.
        new_policy: the reset policy for partitions that are new.

    Attributes:
        changes: a number that grows with everything that may change the result of
            `fetchable`, the passing of time left out; see `next_retry`.
    """

    __slots__ = (
        "_last_number",
        "_new_policy",
        "_partitions",
        "_policy",
        "_stages",
        "changes",
    )

    def __init__(
        self, policy: Reset | None, new_policy: Reset | None = _EARLIEST
    ) -> None:
        self._policy = policy
        self._new_policy = new_policy
        self._partitions: dict[TopicPartition, PartitionPosition] = {}
        # Invariant: each partition is in the dictionary of its stage, and in no other.
        self._stages: dict[PositionStage, dict[TopicPartition, PartitionPosition]] = {
            stage: {} for stage in PositionStage
        }
        self._last_number = 0
        self.changes: int = 0

    def __repr__(self) -> str:
        stages = [p.stage.name.lower() for p in self._partitions.values()]
        counts = ", ".join(f"{stages.count(s)} {s}" for s in dict.fromkeys(stages))
        return f"<Positions {counts or 'none'}>"

    def __contains__(self, tp: object) -> bool:
        return tp in self._partitions

    def __getitem__(self, tp: TopicPartition) -> PartitionPosition:
        return self._partitions[tp]

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._partitions)

    def __len__(self) -> int:
        return len(self._partitions)

    def items(self) -> tuple[tuple[TopicPartition, PartitionPosition], ...]:
        """Return a copy of all entries, which later assignments do not change."""
        return tuple(self._partitions.items())

    def get(self, tp: TopicPartition) -> PartitionPosition | None:
        """The partition's state; None if it is not assigned."""
        return self._partitions.get(tp)

    # Assignment

    def assign(
        self, tp: TopicPartition, *, has_commits: bool, is_new: bool = False
    ) -> int:
        """Begin a new assignment of a partition and return its number.

        Args:
            tp: the partition; if it is assigned already, its state is replaced.
            has_commits: whether there may be a committed offset to look up.
            is_new: without commits: whether the partition is new.
        """
        self.unassign(tp)
        # Numbers are never reused: a token of an earlier assignment of the same
        # partition is recognized however late its reply comes.
        self._last_number += 1
        self.changes += 1
        entry = PartitionPosition(self._last_number, self._policy)
        self._partitions[tp] = self._stages[entry.stage][tp] = entry
        if not has_commits:
            self._reset(
                tp, entry, PositionEvent.UNCOMMITTED, self._policy_of(is_new=is_new)
            )
        return entry.number

    def unassign(self, tp: TopicPartition) -> None:
        """End a partition's assignment: all its tokens become invalid."""
        entry = self._partitions.pop(tp, None)
        if entry is not None:
            del self._stages[entry.stage][tp]
            self.changes += 1

    def revoke_requested(self, tp: TopicPartition) -> None:
        """Stop handing out and fetching; the position stays valid until the end."""
        entry = self._partitions[tp]
        self.changes += 1
        entry.is_revoking = True
        # The caller drops the buffered records. The era stays, so that a reset under
        # way still counts; `accepts` refuses the answers to fetches.
        entry.fetch_offset = entry.position

    def pause(self, tp: TopicPartition) -> None:
        """Stop a partition; its position and its buffered records stay."""
        self._partitions[tp].is_paused = True
        self.changes += 1

    def resume(self, tp: TopicPartition) -> None:
        """End a pause."""
        self._partitions[tp].is_paused = False
        self.changes += 1

    # Finding a position

    def unpositioned(self, now: float) -> dict[TopicPartition, PositionToken]:
        """Partitions whose committed offset has to be looked up now."""
        return {
            tp: entry.token for tp, entry in self._due(PositionStage.UNPOSITIONED, now)
        }

    def resetting(
        self, now: float
    ) -> dict[TopicPartition, tuple[PositionToken, Reset]]:
        """Partitions whose reset has to be looked up now, and where each leads."""
        return {
            tp: (entry.token, entry.reset)
            for tp, entry in self._due(PositionStage.RESETTING, now, also_revoking=True)
            if entry.reset is not None
        }

    def committed_found(
        self, tp: TopicPartition, token: PositionToken, offset: int, epoch: int = -1
    ) -> bool:
        """Take a committed offset; return False if the reply came too late."""
        return self._found(tp, token, PositionEvent.COMMITTED, offset, epoch)

    def committed_missing(
        self, tp: TopicPartition, token: PositionToken, *, is_new: bool = False
    ) -> bool:
        """Note that no offset is committed: reset, if there is a policy.

        Args:
            tp: the partition.
            token: the token of the look-up.
            is_new: whether the partition is new.

        Returns:
            Whether the partition is now without a usable offset.
        """
        entry = self._current(tp, token)
        if entry is None or entry.stage is not PositionStage.UNPOSITIONED:
            return False
        return self._reset(
            tp, entry, PositionEvent.UNCOMMITTED, self._policy_of(is_new=is_new)
        )

    def reset_found(
        self, tp: TopicPartition, token: PositionToken, offset: int
    ) -> bool:
        """Take the offset of a reset; return False if the reply came too late.

        It has no epoch, because no record before it was read (KIP-320).
        """
        return self._found(tp, token, PositionEvent.FOUND, offset, -1)

    def out_of_range(
        self, tp: TopicPartition, token: PositionToken, *, is_new: bool = False
    ) -> bool:
        """Note that the position is outside the log: reset, if there is a policy.

        Args:
            tp: the partition.
            token: the token of the fetch.
            is_new: whether the topic was deleted and created again since the position
                was found. Without a policy the partition then has no offset either.

        Returns:
            Whether the partition is now without a usable offset.
        """
        entry = self._current(tp, token)
        if entry is None or entry.stage is not PositionStage.FETCHING:
            return False
        # "none" means that the user decides about every gap, so the policy of new
        # partitions does not replace it here.
        policy = None if self._policy is None else self._policy_of(is_new=is_new)
        # `_reset` clears it; the error for the user names the offset.
        outside = entry.position
        has_no_offset = self._reset(tp, entry, PositionEvent.OUT_OF_RANGE, policy)
        entry.outside = outside
        return has_no_offset

    # Validating with the leader (KIP-320)

    def leader_seen(self, tp: TopicPartition, leader_epoch: int) -> bool:
        """Note that the partition has a leader of that epoch.

        Returns:
            Whether the position has to be validated now, because the leader's log may
            lack records that were read. The caller must drop all buffered records.
        """
        entry = self._partitions[tp]
        if (
            entry.stage is not PositionStage.FETCHING
            or leader_epoch <= entry.leader_epoch
        ):
            return False
        # Without an epoch there is nothing to compare. If the last record read is of
        # this leader's epoch, its log has the record.
        if entry.position_epoch in {-1, leader_epoch}:
            entry.leader_epoch = leader_epoch
            return False
        self._fire(tp, entry, PositionEvent.UNVALIDATED)
        self.fetch_again(tp)
        return True

    def validating(self, now: float) -> dict[TopicPartition, Unvalidated]:
        """Partitions whose position has to be validated now."""
        return {
            tp: Unvalidated(entry.token, entry.position, entry.position_epoch)
            for tp, entry in self._due(PositionStage.VALIDATING, now)
        }

    def validated(
        self, tp: TopicPartition, token: PositionToken, leader_epoch: int
    ) -> None:
        """Note that the leader of that epoch has the records that were read."""
        entry = self._validating(tp, token)
        if entry is not None:
            self._fire(tp, entry, PositionEvent.VALIDATED)
            entry.leader_epoch = leader_epoch
            entry.retry_at = 0.0
            entry.attempts = 0

    def diverged(
        self,
        tp: TopicPartition,
        token: PositionToken,
        end: int,
        epoch: int,
        leader_epoch: int,
    ) -> Truncation | None:
        """Note that the leader's log lacks records that were read: go back, or reset.

        Args:
            tp: the partition.
            token: the token of the request.
            end: the offset up to which the log may still agree, -1 if unknown.
            epoch: the epoch of the record before ``end``.
            leader_epoch: the epoch of the leader that answered.

        Returns:
            The truncation; None if the answer came too late.
        """
        entry = self._validating(tp, token)
        if entry is None:
            return None
        truncation = Truncation(entry.position, end)
        # Without a policy the user gets an error, even if the end of the common part is
        # known (KIP-320): records that were processed are gone.
        if self._policy is None:
            self._reset(tp, entry, PositionEvent.OUT_OF_RANGE, None)
            entry.truncation = truncation
        elif end < 0:
            self._reset(tp, entry, PositionEvent.OUT_OF_RANGE, self._policy)
        else:
            self._fire(tp, entry, PositionEvent.TRUNCATED)
            self._put(entry, end, epoch)
            # `end` comes from this leader, so it needs no validation with it.
            entry.leader_epoch = leader_epoch
        return truncation

    def _validating(
        self, tp: TopicPartition, token: PositionToken
    ) -> PartitionPosition | None:
        entry = self._current(tp, token)
        if entry is None or entry.stage is not PositionStage.VALIDATING:
            return None
        return entry

    def retry_later(
        self, tp: TopicPartition, token: PositionToken, until: float
    ) -> None:
        """Note that a look-up or fetch failed: do not retry it before ``until``."""
        entry = self._current(tp, token)
        if entry is not None:
            entry.retry_at = until
            entry.attempts += 1
            self.changes += 1

    def next_retry(self, now: float) -> float | None:
        """When the next retry is due; None if no partition waits for one."""
        waiting = [e.retry_at for e in self._partitions.values() if e.retry_at > now]
        return min(waiting, default=None)

    # Seeking

    def seek(self, tp: TopicPartition, offset: int, epoch: int = -1) -> None:
        """Go on at ``offset``. Look-ups and fetches under way become invalid."""
        entry = self._partitions[tp]
        self._fire(tp, entry, PositionEvent.SEEK)
        self._set(tp, entry, offset, epoch)

    def seek_to(self, tp: TopicPartition, reset: Reset) -> None:
        """Look up a new position, whatever the present one is."""
        entry = self._partitions[tp]
        self._fire(tp, entry, PositionEvent.RESET_REQUESTED)
        entry.reset = reset
        self._unset(entry)

    def seek_to_committed(self, tp: TopicPartition) -> None:
        """Look up the committed offset again, whatever the position is."""
        entry = self._partitions[tp]
        self._fire(tp, entry, PositionEvent.REWOUND)
        entry.reset = self._policy
        self._unset(entry)

    def is_looking_for_commit(self, tp: TopicPartition) -> bool:
        """Whether a partition will be read from its committed offset, once known."""
        entry = self._partitions.get(tp)
        return (
            entry is not None
            and entry.stage is PositionStage.UNPOSITIONED
            and not entry.is_revoking
        )

    # Reading

    def fetchable(self, now: float) -> list[FetchPoint]:
        """Partitions to fetch now, in the order in which they got their positions."""
        return [
            entry.fetch_point(tp)
            for tp, entry in self._due(PositionStage.FETCHING, now)
            if not entry.is_paused
        ]

    def accepts(self, point: FetchPoint) -> bool:
        """Whether the answer to a fetch from ``point`` is still needed."""
        entry = self._current(point.tp, point.token)
        return (
            entry is not None
            and entry.stage is PositionStage.FETCHING
            and entry.fetch_offset == point.offset
            and not entry.is_revoking
        )

    def fetched(self, tp: TopicPartition, next_offset: int) -> None:
        """Note that batches up to ``next_offset`` are buffered: fetch on from there."""
        entry = self._partitions[tp]
        if next_offset < entry.fetch_offset:
            raise InternalError(f"a fetch of {tp} went back to {next_offset}: {entry}")
        entry.fetch_offset = next_offset
        entry.attempts = 0
        entry.retry_at = 0.0
        self.changes += 1

    def advance(self, tp: TopicPartition, offset: int, epoch: int) -> None:
        """Note that the records before ``offset`` were handed out, or left out."""
        entry = self._partitions[tp]
        if not entry.position <= offset <= entry.fetch_offset:
            raise InternalError(f"position of {tp} cannot go to {offset}: {entry}")
        entry.position = offset
        entry.position_epoch = epoch

    def fetch_again(self, tp: TopicPartition, offset: int = -1) -> None:
        """Note that buffered records were dropped: fetch them again.

        Args:
            tp: the partition.
            offset: the first of them, if those before it are still buffered.
        """
        entry = self._partitions[tp]
        entry.fetch_offset = max(entry.position, offset)
        # A fetch under way would continue the records that were dropped.
        entry.era += 1
        self.changes += 1

    def without_offset(self) -> Collection[TopicPartition]:
        """Partitions that need a seek: a live view, which costs nothing."""
        return self._stages[PositionStage.NO_OFFSET].keys()

    def waiting(self) -> dict[TopicPartition, PositionToken]:
        """Partitions that wait for their position, with the tokens of their stages."""
        return {
            tp: entry.token
            for stage in LOOKING_UP
            for tp, entry in self._stages[stage].items()
            if not entry.is_revoking
        }

    def is_settled(self) -> bool:
        """Whether no partition waits for its position."""
        return not self.waiting()

    @property
    def has_found(self) -> bool:
        """Whether reading may return a record, or raise for a missing offset."""
        return bool(
            self._stages[PositionStage.FETCHING]
            or self._stages[PositionStage.NO_OFFSET]
        )

    def _due(
        self, stage: PositionStage, now: float, *, also_revoking: bool = False
    ) -> Iterator[tuple[TopicPartition, PartitionPosition]]:
        for tp, entry in self._stages[stage].items():
            if entry.retry_at <= now and (also_revoking or not entry.is_revoking):
                yield tp, entry

    def _current(
        self, tp: TopicPartition, token: PositionToken
    ) -> PartitionPosition | None:
        entry = self._partitions.get(tp)
        return entry if entry is not None and entry.token == token else None

    def _found(
        self,
        tp: TopicPartition,
        token: PositionToken,
        event: PositionEvent,
        offset: int,
        epoch: int,
    ) -> bool:
        entry = self._current(tp, token)
        if entry is None:
            return False
        self._fire(tp, entry, event)
        self._set(tp, entry, offset, epoch)
        return True

    def _policy_of(self, *, is_new: bool) -> Reset | None:
        return self._new_policy if is_new else self._policy

    def _reset(
        self,
        tp: TopicPartition,
        entry: PartitionPosition,
        event: PositionEvent,
        policy: Reset | None,
    ) -> bool:
        entry.reset = policy
        self._fire(tp, entry, PositionEvent.NO_POLICY if policy is None else event)
        self._unset(entry)
        return policy is None

    def _fire(
        self, tp: TopicPartition, entry: PartitionPosition, event: PositionEvent
    ) -> None:
        # A pair without an entry is a bug here: old replies never come this far.
        try:
            stage = TRANSITIONS[entry.stage, event]
        except KeyError:
            raise InternalError(
                f"{event.name} while {entry.stage.name}: {entry}"
            ) from None
        # Also where the stage stays: the offset is changed next.
        self.changes += 1
        if stage is not entry.stage:
            del self._stages[entry.stage][tp]
            self._stages[stage][tp] = entry
            entry.stage = stage

    def _set(
        self, tp: TopicPartition, entry: PartitionPosition, offset: int, epoch: int
    ) -> None:
        self._put(entry, offset, epoch)
        # The epoch was given by a commit or by the user, perhaps long ago: the log may
        # have been truncated since (KIP-320).
        if epoch >= 0:
            self._fire(tp, entry, PositionEvent.UNVALIDATED)

    def _put(self, entry: PartitionPosition, offset: int, epoch: int) -> None:
        self._unset(entry)
        entry.position = entry.fetch_offset = offset
        entry.position_epoch = epoch

    def _unset(self, entry: PartitionPosition) -> None:
        entry.era += 1
        entry.position = entry.fetch_offset = entry.position_epoch = -1
        entry.leader_epoch = -1
        entry.truncation = None
        entry.outside = -1
        entry.retry_at = 0.0
        entry.attempts = 0
