"""Share sessions (KIP-932): which partitions a member fetches from one node.

A session belongs to a group and a member. It ends with the connection that opened it,
but any connection may use it: nothing is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Final, TypeAlias
from uuid import UUID

from kafkaio._named_tuple import NamedTuple
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing._broker.refusal import Refusal

#: A partition: the topic's id, and its number.
SharedPartition: TypeAlias = tuple[UUID, int]

FIRST_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_LAST_EPOCH: Final = 2**31 - 1


class SessionKey(NamedTuple):
    """Whose session it is."""

    group: str
    member: str


@dataclass(slots=True)
class ShareSession:
    """What a member fetches.

    Attributes:
        key: whose it is.
        connection: the connection that opened it.
        epoch: the epoch that the next request has to have.
        partitions: the partitions in the order in which they are read, and whether the
            next answer has to name each in any case: one that was added later, or had
            an error.
    """

    key: SessionKey
    connection: Hashable
    epoch: int = 1
    partitions: dict[SharedPartition, bool] = field(default_factory=dict)

    def update(
        self, added: Iterable[SharedPartition], forgotten: Iterable[SharedPartition]
    ) -> None:
        """Add and remove partitions."""
        is_new = self.epoch > 1
        for one in added:
            self.partitions.setdefault(one, is_new)
        for one in forgotten:
            self.partitions.pop(one, None)


@dataclass(slots=True)
class _Opened:
    key: SessionKey
    is_stale: bool = False


class ShareSessions:
    """The sessions of one node.

    Args:
        limit: how many there may be.
    """

    def __init__(self, limit: int = 2000) -> None:
        self.limit = limit
        self._sessions: dict[SessionKey, ShareSession] = {}
        # The last session that each connection has opened.
        self._opened: dict[Hashable, _Opened] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def find(self, key: SessionKey) -> ShareSession | None:
        """Return a session; None if there is none."""
        return self._sessions.get(key)

    def remove_where(self, is_gone: Callable[[SessionKey], bool]) -> int:
        """Remove sessions; return how many."""
        gone = [key for key in self._sessions if is_gone(key)]
        for key in gone:
            self.remove(key)
        return len(gone)

    def require(self, key: SessionKey) -> ShareSession:
        """Return a session.

        Raises:
            Refusal: SHARE_SESSION_NOT_FOUND.
        """
        found = self._sessions.get(key)
        if found is None:
            raise Refusal(ErrorCode.SHARE_SESSION_NOT_FOUND)
        return found

    def open(self, key: SessionKey, connection: Hashable) -> ShareSession:
        """Open a session, in place of the one that the member may have.

        Raises:
            Refusal: SHARE_SESSION_LIMIT_REACHED; the old session is gone.
        """
        self.remove(key)
        if len(self._sessions) >= self.limit:
            raise Refusal(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        session = self._sessions[key] = ShareSession(key, connection)
        self._opened[connection] = _Opened(key)
        return session

    def advance(self, key: SessionKey, epoch: int) -> ShareSession:
        """Return the session of a request after the first.

        Raises:
            Refusal: SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH.
        """
        session = self.require(key)
        if session.epoch != epoch:
            raise Refusal(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        session.epoch = 1 if epoch == _LAST_EPOCH else epoch + 1
        return session

    def remove(self, key: SessionKey) -> ShareSession | None:
        """Remove a session and return it; None if there is none."""
        session = self._sessions.pop(key, None)
        if session is not None:
            opened = self._opened.get(session.connection)
            # A later end of that connection must not end the member's next session.
            if opened is not None:
                opened.is_stale = True
        return session

    def remove_all(self) -> list[ShareSession]:
        """Forget every session and return them."""
        found = list(self._sessions.values())
        self._sessions.clear()
        return found

    def disconnected(
        self, connection: Hashable
    ) -> tuple[ShareSession | None, str | None]:
        """End what a connection opened.

        Returns:
            The session that ended with it, if any; and the group of which no member has
            a session any more, if it is one.
        """
        opened = self._opened.pop(connection, None)
        if opened is None:
            return None, None
        ended = None if opened.is_stale else self.remove(opened.key)
        group = opened.key.group
        is_empty = all(key.group != group for key in self._sessions)
        return ended, group if is_empty else None
