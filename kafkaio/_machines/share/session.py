"""The share session with one leader: its epoch, and which partitions it has.

Every ShareFetch and ShareAcknowledge to a leader carries the next epoch of one
sequence, so one request at a time is in flight to a leader. Epoch 0 opens a session,
without acknowledgements; -1 closes it and releases what is locked.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final
from uuid import UUID

from kafkaio._named_tuple import NamedTuple
from kafkaio.errors import InternalError
from kafkaio.protocol._error_codes import ErrorCode

_OPENS: Final = 0
_CLOSES: Final = -1
_LAST_EPOCH: Final = 2**31 - 1
#: There is no session, or it is at another epoch, or there is no room for one.
_ENDS_SESSION: Final = frozenset(
    {
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    }
)


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
    """The session with one leader. ``fetch`` or ``acknowledge``, then the answer.

    Planning changes nothing: a request may be lost, and only its answer proves what the
    leader has. In case of doubt the session is opened anew with epoch 0, which is
    always correct: what is locked stays locked.

    Attributes:
        is_open: whether the leader has answered the request that opened it, and nothing
            ended it since. Only then acknowledgements can be sent.
    """

    __slots__ = ("_epoch", "_may_exist", "_partitions", "is_open")

    def __init__(self) -> None:
        self.is_open: bool = False
        self._epoch = _OPENS
        # Whether the leader may have a session of this member on this connection.
        self._may_exist = False
        # Invariant: while the session is open, these are the partitions it has.
        self._partitions = dict[TopicIdPartition, None]()

    def __repr__(self) -> str:
        state = "open" if self.is_open else "to be opened"
        return (
            f"<ShareSession {state} {self._epoch} | {len(self._partitions)} partitions>"
        )

    @property
    def partitions(self) -> Collection[TopicIdPartition]:
        """The partitions that the leader has in the session."""
        return self._partitions.keys()

    def fetch(self, wanted: Collection[TopicIdPartition]) -> SessionPlan:
        """Plan a ShareFetch for a session that shall have these partitions."""
        known = self._partitions
        # A set for the look-ups, and the order of the caller for the request.
        distinct = dict.fromkeys(wanted)
        self._may_exist = True
        return SessionPlan(
            self._epoch,
            tuple(each for each in distinct if each not in known),
            tuple(each for each in known if each not in distinct),
        )

    def acknowledge(self) -> SessionPlan:
        """Plan a ShareAcknowledge, which changes no partitions; not at epoch 0.

        Raises:
            InternalError: the session is not open.
        """
        if not self.is_open:
            raise InternalError("acknowledgements need an open share session")
        return SessionPlan(self._epoch, (), ())

    def answered(self, plan: SessionPlan, error_code: int) -> None:
        """Note the answer. 122, 123 and 133 end the session; others advance it.

        Errors below the top level are no error here. After another error at the top it
        is unknown whether partitions were added or forgotten, or whether there is a
        session at all, so that it is opened anew unless the plan changed nothing.
        """
        if plan.epoch == _CLOSES:
            self.reset()
        elif error_code in _ENDS_SESSION:
            self._reopen()
            self._may_exist = error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
        elif error_code and (plan.epoch == _OPENS or plan.added or plan.forgotten):
            self._reopen()
        else:
            self._advance(plan)

    def unanswered(self, plan: SessionPlan) -> None:
        """Note that no answer will come: the epoch is in doubt, so it opens anew."""
        del plan  # whatever it was, the leader may have done it or not
        self._reopen()

    def broken(self) -> None:
        """Open anew: the leader broke the protocol. It still has the session."""
        self._reopen()

    def reset(self) -> None:
        """Open anew: the connection is gone, and with it the session."""
        self._reopen()
        self._may_exist = False

    def close(self) -> SessionPlan | None:
        """Plan the last request, with epoch -1; None if there is nothing to close.

        The leader compares no epochs here, so that a session in doubt is closed, too.
        """
        return SessionPlan(_CLOSES, (), ()) if self._may_exist else None

    def _advance(self, plan: SessionPlan) -> None:
        for each in plan.forgotten:
            del self._partitions[each]
        self._partitions.update(dict.fromkeys(plan.added))
        # 0 would open another one.
        self._epoch = 1 if plan.epoch == _LAST_EPOCH else plan.epoch + 1
        self.is_open = True

    def _reopen(self) -> None:
        self._epoch = _OPENS
        self._partitions = {}
        self.is_open = False
