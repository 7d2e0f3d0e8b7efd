"""Fetch sessions (KIP-227): a fetch request names only what has changed.

In a session the broker remembers one consumer's partitions, with their offsets and
limits. The broker chooses its id; its epoch counts the requests. A request names the
changes since the previous one, and a response the partitions with news.

``build`` decides what to send and changes nothing: a request may be lost, and only an
answer (``acked``) proves what the broker remembers. In case of doubt the session is
replaced by a new one, with a full request, which is always correct.

Ids and epochs: (0, 0) asks for a session, (id, 0) for a new one instead of ``id``,
(id, n) with n >= 1 continues it, (id, -1) closes it. The epoch after 2^31-1 is 1.

`FetchWait` says how long the broker may keep a fetch that finds nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.types import TopicPartition

_NO_SESSION: Final = 0
_FIRST_EPOCH: Final = 0
_LAST_EPOCH: Final = -1
_MAX_EPOCH: Final = 2**31 - 1
_NO_ID: Final = UUID(int=0)

#: The first wait of a fetch that leaves a full partition out: short, so that the
#: partition is fetched again before the user has read all of it.
_SHORT_MS: Final = 20
#: The most milliseconds that a quiet broker keeps a fetch, and that number as a
#: multiple of ``fetch_max_wait_ms``, which stays the measure: what only a new fetch can
#: notice is noticed in that order of time.
_QUIET_MS: Final = 2_000
_QUIET_WAITS: Final = 4


@dataclass(frozen=True, slots=True)
class FetchTarget:
    """The entry of one partition in a fetch.

    Attributes:
        offset: offset to read from.
        max_bytes: most bytes to send; the broker may send one larger batch.
        leader_epoch: epoch of the leader that the client knows, -1 if unknown.
        topic_id: id of the topic; the zero UUID if it is unknown.
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
        wanted: all partitions to fetch.
        to_send: those that the request has to name, in the order of preference.
        forgotten: partitions to remove from the session, with their topics' ids.
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
        """Whether the request names all partitions to fetch."""
        return self.epoch in {_FIRST_EPOCH, _LAST_EPOCH}


class FetchSession:
    """One broker's session. ``build``, send, then ``acked`` or ``failed``; repeat.

    Invariant: unless ``epoch`` is 0, ``partitions`` are those that the broker
    remembered at its last answer.
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
        """Plan the next request, without changing anything.

        Args:
            wanted: every partition to fetch, in the order of preference. It is kept,
                and must not be changed afterwards. With the same object as before
                nothing is compared, so that an idle session costs the same however
                many partitions it has.
            by_id: whether every topic's id is known, so that ids can be used. A
                session cannot change between names and ids; that takes a new one.
        """
        # A full request with the old id closes the old session and asks for a new one.
        if self.epoch == _FIRST_EPOCH or by_id != self._by_id:
            return FetchPlan(self.session_id, _FIRST_EPOCH, wanted, wanted, (), by_id)
        known = self._partitions
        if wanted is known:
            return FetchPlan(self.session_id, self.epoch, wanted, {}, (), by_id)
        # A topic that was deleted and created again is another topic: the old id is
        # removed and the new one added. Targets that have not moved are the same
        # objects as before, so most comparisons end with `is`.
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
        return FetchPlan(self.session_id, self.epoch, wanted, changed, forgotten, by_id)

    def acked(
        self, plan: FetchPlan, session_id: int, answered: Iterable[TopicPartition]
    ) -> bool:
        """Apply an answer without a top-level error.

        Args:
            plan: the plan that was sent.
            session_id: the answer's session id; 0 if the broker grants none.
            answered: the partitions in the answer.

        Returns:
            Whether the answer fits the request. If it does not, a new session begins,
            and the answer must be ignored.
        """
        # An answer never has a partition that was not asked for. Its session id is that
        # of the request, or 0 where the broker keeps no session.
        stray = any(tp not in plan.wanted for tp in answered)
        wrong_session = not plan.is_full and session_id not in {0, plan.session_id}
        if stray or wrong_session:
            self.reset()
            return False
        self._partitions = plan.wanted
        self._by_id = plan.by_id
        self.session_id = session_id
        # A broker without room for another session answers with id 0: each request is
        # full then. The epoch wraps to 1, because 0 would ask for a new session.
        if session_id == _NO_SESSION:
            self.epoch = _FIRST_EPOCH
        elif plan.epoch == _MAX_EPOCH:
            self.epoch = 1
        else:
            self.epoch = plan.epoch + 1
        return True

    def failed(self, code: int) -> None:
        """Apply a top-level error: the next request is a full one.

        A full request may be refused because of the session id that it was to close:
        Kafka 4.3 answers the largest id with UNKNOWN_SERVER_ERROR every time. So the
        second error in a row also discards the id.
        """
        was_full = self.epoch == _FIRST_EPOCH
        if was_full or code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self.session_id = _NO_SESSION
        self.reset()

    def reset(self) -> None:
        """Ask for a new session, because an answer or the connection was lost.

        The id is kept, so that the full request closes the old session.
        """
        self.epoch = _FIRST_EPOCH

    def build_close(self) -> FetchPlan | None:
        """Plan the request that closes the session; None without a session."""
        if self.session_id == _NO_SESSION:
            return None
        return FetchPlan(self.session_id, _LAST_EPOCH, {}, {}, (), self._by_id)


class FetchWait:
    """Chooses how long the broker may keep each fetch that finds nothing.

    A fetch that leaves a full partition out waits briefly: the user may have read some
    of it in a moment. While the user does not read, short waits would only be extra
    requests, so they double.

    A fetch of all partitions waits for ``fetch_max_wait_ms``. If every partition was
    quiet for that long, the next fetch waits longer: as the broker answers with the
    first byte, no record is later for it, and an idle consumer sends fewer requests.

    Args:
        max_wait_ms: the option ``fetch_max_wait_ms``.
        min_bytes: the option ``fetch_min_bytes``.
    """

    __slots__ = ("_asked", "_longest_ms", "_max_wait_ms", "_ms", "_progress", "_short")

    def __init__(self, max_wait_ms: int, min_bytes: int) -> None:
        self._max_wait_ms = max_wait_ms
        longest = min(_QUIET_WAITS * max_wait_ms, _QUIET_MS)
        if min_bytes > 1:
            # Fewer bytes than these are answered when the wait is over.
            longest = 0
        self._longest_ms = max(max_wait_ms, longest)
        self._ms = max_wait_ms
        self._asked: object = None
        self._short = _SHORT_MS
        self._progress = -1

    def __repr__(self) -> str:
        return f"<FetchWait {self._ms} ms>"

    def of(self, asked: object) -> int:
        """Return the milliseconds to wait with a fetch that leaves nothing out.

        Args:
            asked: what is asked for: the same object while that does not change.
        """
        if asked is not self._asked:
            self._asked, self._ms = asked, self._max_wait_ms
        return self._ms

    def short(self, progress: int) -> int:
        """Return the milliseconds to wait with a fetch that leaves a partition out.

        Args:
            progress: a number that grows whenever the user takes something.
        """
        self._asked = None
        if progress != self._progress:
            self._progress, self._short = progress, _SHORT_MS
        else:
            self._short = min(2 * self._short, self._max_wait_ms)
        return min(self._short, self._max_wait_ms)

    def answered(self, *, has_news: bool) -> None:
        """Note an answer.

        Args:
            has_news: whether there is something about any partition in it.
        """
        if has_news:
            self._ms = self._max_wait_ms
        else:
            self._ms = min(2 * self._ms, self._longest_ms)
