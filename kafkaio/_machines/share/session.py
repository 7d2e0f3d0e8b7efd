"""The share session with one leader: its epoch, and which partitions it has.

Every ShareFetch and ShareAcknowledge to a leader carries the next epoch of one
sequence, so one request at a time is in flight to a leader. Epoch 0 opens a session,
without acknowledgements; -1 closes it and releases what is locked.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple
from uuid import UUID


class TopicIdPartition(NamedTuple):
    """A partition by the id of its topic."""

    topic_id: UUID
    partition: int


class SessionPlan(NamedTuple):
    """What one request says of the session.

    Attributes:
        epoch: 0 opens the session, -1 closes it.
        added: the partitions that the session gets with it.
        forgotten: the partitions that leave the session with it.
    """

    epoch: int
    added: tuple[TopicIdPartition, ...]
    forgotten: tuple[TopicIdPartition, ...]


class ShareSession:
    """The session with one leader.

    Attributes:
        is_open: whether the leader has answered the request that opened it, and nothing
            ended it since. Only then acknowledgements can be sent.
    """

    is_open: bool

    def fetch(self, wanted: Collection[TopicIdPartition]) -> SessionPlan:
        """Plan a ShareFetch for a session that shall have these partitions."""
        raise NotImplementedError

    def acknowledge(self) -> SessionPlan:
        """Plan a ShareAcknowledge, which changes no partitions; not at epoch 0."""
        raise NotImplementedError

    def answered(self, plan: SessionPlan, error_code: int) -> None:
        """Note the answer. 122, 123 and 133 end the session; others advance it."""
        raise NotImplementedError

    def unanswered(self, plan: SessionPlan) -> None:
        """Note that no answer will come: the epoch is in doubt, so it opens anew."""
        raise NotImplementedError

    def reset(self) -> None:
        """Open anew: the connection is gone, or the leader broke the protocol."""
        raise NotImplementedError

    def close(self) -> SessionPlan | None:
        """Plan the last request, with epoch -1; None if there is nothing to close."""
        raise NotImplementedError
