"""The broker's side of incremental fetch sessions (KIP-227, KIP-516).

A full request (epoch 0) names every partition and opens a session; the requests that
follow name only what changed. The answer to an incremental request names a partition
only if there is news of it: the session remembers what the client was sent last.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing._broker.refusal import Refusal

#: Topic (by name up to Fetch v12, by id from v13 on) and partition number.
PartitionKey = tuple[str | UUID, int]

NO_SESSION: Final = 0
FIRST_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_LAST_EPOCH: Final = 2**31 - 1


@dataclass(slots=True)
class SessionPartition:
    """One partition of a session: the request for it, and the last answer.

    Attributes:
        offset: where to read.
        max_bytes: the most to read.
        leader_epoch: the client's leader epoch; -1 for none.
        last_fetched_epoch: epoch of the client's last record; -1 for none.
        sent_watermark: the high watermark that the client was sent last.
        sent_start: the log start offset that it was sent last. Both are -1 if the
            next answer has to name the partition in any case.
    """

    offset: int
    max_bytes: int
    leader_epoch: int = -1
    last_fetched_epoch: int = -1
    sent_watermark: int = -1
    sent_start: int = -1


@dataclass(slots=True)
class ServedFetchSession:
    """The partitions that one client fetches from one node.

    Attributes:
        session_id: its id; 0 if the node does not keep the session.
        by_id: whether topics are named by id.
        is_full: whether the answer names every partition, changed or not.
        epoch: the epoch that the next request has to have.
        partitions: what is fetched, in the order in which it is answered.
    """

    session_id: int
    by_id: bool
    is_full: bool
    epoch: int = 1
    partitions: dict[PartitionKey, SessionPartition] = field(default_factory=dict)

    def update(
        self,
        changed: Iterable[tuple[PartitionKey, SessionPartition]],
        forgotten: Iterable[PartitionKey],
    ) -> None:
        """Apply an incremental request."""
        for key, asked in changed:
            before = self.partitions.get(key)
            if before is not None:
                # The last answer stays valid when the client changes its request.
                asked.sent_watermark = before.sent_watermark
                asked.sent_start = before.sent_start
            self.partitions[key] = asked
        for key in forgotten:
            self.partitions.pop(key, None)

    def move_back(self, key: PartitionKey) -> None:
        """Move a partition to the end, so that others are read first next time."""
        self.partitions[key] = self.partitions.pop(key)


class FetchSessions:
    """The sessions of one node.

    Args:
        slots: how many there may be; a new one replaces the least recently used.
    """

    def __init__(self, slots: int = 1000) -> None:
        self._slots = slots
        self._sessions: dict[int, ServedFetchSession] = {}
        self._last_id = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, session_id: int) -> Collection[PartitionKey]:
        """The partitions of a session; none if it is not known."""
        known = self._sessions.get(session_id)
        return () if known is None else known.partitions

    def find(
        self,
        session_id: int,
        epoch: int,
        changed: Sequence[tuple[PartitionKey, SessionPartition]],
        forgotten: Iterable[PartitionKey],
        *,
        by_id: bool,
    ) -> ServedFetchSession:
        """Apply a request to its session, and return the session.

        Args:
            session_id: the request's session id; 0 for none.
            epoch: the request's epoch: 0 opens a session, -1 closes it.
            changed: the partitions that the request names.
            forgotten: the partitions that the request removes.
            by_id: whether the request names topics by id.

        Raises:
            Refusal: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH,
                FETCH_SESSION_TOPIC_ID_ERROR.
        """
        if epoch in {FIRST_EPOCH, FINAL_EPOCH}:
            # A full request ends the session that it names, whether it opens another or
            # not.
            self._sessions.pop(session_id, None)
            keep = epoch == FIRST_EPOCH and bool(changed)
            session = ServedFetchSession(NO_SESSION, by_id, is_full=True)
            if keep:
                self._keep(session)
            session.partitions.update(changed)
            return session
        # Taken out and put back at the end: the order of the dictionary is that of the
        # last use.
        known = self._sessions.pop(session_id, None)
        if known is None:
            raise Refusal(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        self._sessions[session_id] = known
        # A request of the session was lost, or came twice: the client opens a new
        # session.
        if known.epoch != epoch:
            raise Refusal(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if known.by_id != by_id:
            raise Refusal(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        known.epoch = 1 if epoch == _LAST_EPOCH else epoch + 1
        known.is_full = False
        known.update(changed, forgotten)
        if not known.partitions:
            del self._sessions[session_id]
            # A partition that the request both names and forgets is answered once.
            last = ServedFetchSession(NO_SESSION, by_id, is_full=True)
            last.partitions.update(changed)
            return last
        return known

    def _keep(self, session: ServedFetchSession) -> None:
        if len(self._sessions) >= self._slots:
            # The least recently used one.
            del self._sessions[next(iter(self._sessions))]
        self._last_id = self._last_id % _LAST_EPOCH + 1
        session.session_id = self._last_id
        self._sessions[session.session_id] = session
