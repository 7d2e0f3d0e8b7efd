"""Incremental fetch sessions, the broker's side (KIP-227, KIP-516)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.testing.broker.refusal import Refusal

__all__ = ["Asked", "FetchSession", "FetchSessions", "PartitionKey"]

#: Topic, by name up to Fetch v12 and by id from v13 on, and partition number.
PartitionKey = tuple[str | UUID, int]

NO_SESSION: Final = 0
FIRST_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_LAST_EPOCH: Final = 2**31 - 1


@dataclass(slots=True)
class Asked:
    """What a client wants of one partition, and what it was told last.

    The ``told`` fields are -1 where it has to be told in any case.
    """

    offset: int
    max_bytes: int
    leader_epoch: int = -1
    last_fetched_epoch: int = -1
    told_watermark: int = -1
    told_start: int = -1


@dataclass(slots=True)
class FetchSession:
    """What one client fetches from one node. Its id is 0 if it is not kept.

    Attributes:
        session_id: its number.
        epoch: the epoch that the next request has to have.
        by_id: whether topics are told by id.
        is_full: whether the answer names every partition, changed or not.
        partitions: what is fetched, in the order in which it is answered.
    """

    session_id: int
    by_id: bool
    is_full: bool
    epoch: int = 1
    partitions: dict[PartitionKey, Asked] = field(default_factory=dict)

    def update(
        self,
        changed: Iterable[tuple[PartitionKey, Asked]],
        forgotten: Iterable[PartitionKey],
    ) -> None:
        """Apply an incremental request."""
        for key, asked in changed:
            before = self.partitions.get(key)
            if before is not None:
                asked.told_watermark = before.told_watermark
                asked.told_start = before.told_start
            self.partitions[key] = asked
        for key in forgotten:
            self.partitions.pop(key, None)

    def move_back(self, key: PartitionKey) -> None:
        """Let other partitions go first next time."""
        self.partitions[key] = self.partitions.pop(key)


class FetchSessions:
    """The sessions of one node.

    Args:
        slots: how many there may be; the one used longest ago makes room.
    """

    def __init__(self, slots: int = 1000) -> None:
        self._slots = slots
        self._sessions: dict[int, FetchSession] = {}
        self._last_id = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, session_id: int) -> Collection[PartitionKey]:
        """What a session has; nothing if it is not known."""
        known = self._sessions.get(session_id)
        return () if known is None else known.partitions

    def find(
        self,
        session_id: int,
        epoch: int,
        changed: Sequence[tuple[PartitionKey, Asked]],
        forgotten: Iterable[PartitionKey],
        *,
        by_id: bool,
    ) -> FetchSession:
        """The session that a request belongs to, brought up to date.

        Raises:
            Refusal: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH,
                FETCH_SESSION_TOPIC_ID_ERROR.
        """
        if epoch in {FIRST_EPOCH, FINAL_EPOCH}:
            self._sessions.pop(session_id, None)
            keep = epoch == FIRST_EPOCH and bool(changed)
            session = FetchSession(NO_SESSION, by_id, is_full=True)
            if keep:
                self._keep(session)
            session.partitions.update(changed)
            return session
        known = self._sessions.pop(session_id, None)
        if known is None:
            raise Refusal(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        self._sessions[session_id] = known
        if known.epoch != epoch:
            raise Refusal(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if known.by_id != by_id:
            raise Refusal(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        known.epoch = 1 if epoch == _LAST_EPOCH else epoch + 1
        known.is_full = False
        known.update(changed, forgotten)
        if not known.partitions:
            del self._sessions[session_id]
            # What was asked for and forgotten at once is answered, this once.
            last = FetchSession(NO_SESSION, by_id, is_full=True)
            last.partitions.update(changed)
            return last
        return known

    def _keep(self, session: FetchSession) -> None:
        if len(self._sessions) >= self._slots:
            del self._sessions[next(iter(self._sessions))]
        self._last_id = self._last_id % _LAST_EPOCH + 1
        session.session_id = self._last_id
        self._sessions[session.session_id] = session
