"""Fetch sessions (KIP-227): what of a fetch a broker knows already need not be sent.

A session is the broker's memory of one consumer's partitions, with their offsets and
limits. Its id is the broker's choice, its epoch counts the requests. A request names
what has changed since the one before; a response names the partitions that have
news. ``build`` decides what to send and changes nothing: a request may be lost, and
only an answer (``acked``) shows what the broker believes. After anything doubtful
the session is closed and made anew by a full request, which is always right.

Ids and epochs: (0, 0) asks for a session, (id, 0) for a new one instead of ``id``,
(id, n) with n >= 1 goes on with it, (id, -1) closes it. The epoch after 2^31-1 is 1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.types import TopicPartition

__all__ = ["FetchPlan", "FetchSession", "FetchTarget"]

_NO_SESSION: Final = 0
_FIRST_EPOCH: Final = 0
_LAST_EPOCH: Final = -1
_MAX_EPOCH: Final = 2**31 - 1
_NO_ID: Final = UUID(int=0)


@dataclass(frozen=True, slots=True)
class FetchTarget:
    """What to fetch of one partition.

    Attributes:
        offset: where to read from.
        max_bytes: bytes wanted at most; the broker may send one larger batch.
        leader_epoch: epoch of the leader that the client knows, -1 if unknown.
        topic_id: id of the topic; the zero UUID where it is not known.
    """

    offset: int
    max_bytes: int
    leader_epoch: int = -1
    topic_id: UUID = _NO_ID


@dataclass(frozen=True, slots=True)
class FetchPlan:
    """One fetch request, as a session decided it.

    Attributes:
        session_id: id to send.
        epoch: epoch to send.
        wanted: every partition that the broker shall fetch.
        to_send: those that must stand in the request, in the order wanted.
        forgotten: partitions to take out of the session, with their topics' ids.
        by_id: whether the request names topics by id (Fetch >= 13).
    """

    session_id: int
    epoch: int
    wanted: Mapping[TopicPartition, FetchTarget]
    to_send: Mapping[TopicPartition, FetchTarget]
    forgotten: tuple[tuple[TopicPartition, UUID], ...]
    by_id: bool

    @property
    def is_full(self) -> bool:
        """Whether the request names every partition wanted."""
        return self.epoch in {_FIRST_EPOCH, _LAST_EPOCH}


class FetchSession:
    """One broker's session. ``build``, send, then ``acked`` or ``failed``; repeat.

    Invariant: where ``epoch`` is not 0, ``partitions`` is what the broker fetches,
    as of the last answer.
    """

    __slots__ = ("_by_id", "_partitions", "epoch", "session_id")

    def __init__(self) -> None:
        self.session_id = _NO_SESSION
        self.epoch = _FIRST_EPOCH
        self._partitions: Mapping[TopicPartition, FetchTarget] = {}
        self._by_id = False

    def __repr__(self) -> str:
        return (
            f"<FetchSession {self.session_id} epoch {self.epoch} | "
            f"{len(self._partitions)} partitions>"
        )

    @property
    def partitions(self) -> Collection[TopicPartition]:
        """The partitions that the broker remembers."""
        return self._partitions.keys()

    def build(
        self, wanted: Mapping[TopicPartition, FetchTarget], *, by_id: bool
    ) -> FetchPlan:
        """Decide what the next request must say. Changes nothing.

        Args:
            wanted: every partition to fetch, in the order of preference.
            by_id: whether every topic's id is known, so that ids may be used. A
                session cannot go on with names after ids: that takes a new one.
        """
        if self.epoch == _FIRST_EPOCH or by_id != self._by_id:
            return FetchPlan(
                self.session_id, _FIRST_EPOCH, dict(wanted), dict(wanted), (), by_id
            )
        known = self._partitions
        # A topic made anew under its old name is another topic: the old id is
        # forgotten and the new one added.
        forgotten = tuple(
            (tp, target.topic_id)
            for tp, target in known.items()
            if (new := wanted.get(tp)) is not target
            and (new is None or (by_id and new.topic_id != target.topic_id))
        )
        changed = {
            tp: target
            for tp, target in wanted.items()
            if (old := known.get(tp)) is not target and old != target
        }
        return FetchPlan(
            self.session_id, self.epoch, dict(wanted), changed, forgotten, by_id
        )

    def acked(
        self, plan: FetchPlan, session_id: int, answered: Iterable[TopicPartition]
    ) -> bool:
        """Take note of an answer without a top-level error.

        Args:
            plan: what was sent.
            session_id: the answer's session id; 0 where the broker grants none.
            answered: the partitions that the answer is about.

        Returns:
            Whether the answer fits the request. Otherwise the session starts anew,
            and nothing of the answer may be believed.
        """
        stray = any(tp not in plan.wanted for tp in answered)
        wrong_session = not plan.is_full and session_id not in {0, plan.session_id}
        if stray or wrong_session:
            self.reset()
            return False
        self._partitions = plan.wanted
        self._by_id = plan.by_id
        self.session_id = session_id
        if session_id == _NO_SESSION:
            self.epoch = _FIRST_EPOCH
        elif plan.epoch == _MAX_EPOCH:
            self.epoch = 1
        else:
            self.epoch = plan.epoch + 1
        return True

    def failed(self, code: int) -> None:
        """Take note of a top-level error: the next request is a full one."""
        if code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self.session_id = _NO_SESSION
        self.reset()

    def reset(self) -> None:
        """Give the session up (no answer, a lost connection): ask for a new one.

        The id is kept, so that the full request closes the old session.
        """
        self.epoch = _FIRST_EPOCH

    def build_close(self) -> FetchPlan | None:
        """Decide how to close the session: None where there is none to close."""
        if self.session_id == _NO_SESSION:
            return None
        return FetchPlan(self.session_id, _LAST_EPOCH, {}, {}, (), self._by_id)
