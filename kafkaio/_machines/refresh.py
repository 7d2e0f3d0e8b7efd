"""When metadata is fetched, and of which topics.

One request is in flight at a time. A refresh is due when one was requested, when an
answer was incomplete, and after ``metadata_max_age_ms``. Between two refreshes there is
a back-off, which grows with failures and also with answers that brought nothing new.
Topics that are wanted for the first time do not wait for it: they are fetched at once,
by themselves, as a partial update.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import Enum, auto
from math import inf
from typing import Final, Literal, TypeAlias

from kafkaio._dataclass import dataclass
from kafkaio._machines.backoff import Backoff
from kafkaio._machines.metadata import Merged


class AllTopics(Enum):
    """The type of ``ALL_TOPICS``."""

    ALL_TOPICS = auto()


#: Every topic of the cluster, whatever its name.
ALL_TOPICS: Final = AllTopics.ALL_TOPICS

#: Some topics, or all of them.
Topics: TypeAlias = Collection[str] | Literal[AllTopics.ALL_TOPICS]


@dataclass(frozen=True, slots=True)
class RefreshRequest:
    """The content of one Metadata request.

    Attributes:
        topics: names of the topics; None for all topics.
        partial: whether these are only some of the wanted topics.
        number: how many refreshes had been requested when the request was made.
    """

    topics: frozenset[str] | None
    partial: bool
    number: int


class Interest:
    """Topics whose metadata is needed, and their owners.

    A watched topic stays until its owner withdraws it. A topic that was only used is
    forgotten when it has not been used for ``idle`` seconds.
    """

    def __init__(self, idle: float) -> None:
        self._idle = idle
        self._owners: dict[object, frozenset[str]] = {}
        self._all: set[object] = set()
        self._used: dict[str, float] = {}

    def watch(self, owner: object, topics: Topics | None) -> None:
        """Replace the topics that ``owner`` watches; None withdraws them."""
        self._owners.pop(owner, None)
        self._all.discard(owner)
        if topics is ALL_TOPICS:
            self._all.add(owner)
        elif topics is not None:
            self._owners[owner] = frozenset(topics)

    def use(self, topics: Iterable[str], now: float) -> bool:
        """Note that ``topics`` are used now; return whether one was not before."""
        is_new = False
        for topic in topics:
            is_new = is_new or topic not in self._used
            self._used[topic] = now
        return is_new

    def expire(self, now: float) -> None:
        """Forget what has not been used for too long."""
        self._used = {t: at for t, at in self._used.items() if now - at < self._idle}

    def names(self) -> frozenset[str]:
        """The topics that are wanted by name."""
        return frozenset(self._used).union(*self._owners.values())

    def topics(self) -> frozenset[str] | None:
        """The topics wanted; None for all topics."""
        return None if self._all else self.names()


class RefreshSchedule:
    """Decides when the next Metadata request is sent, and for which topics.

    Args:
        backoff: the wait between refreshes.
        max_age: seconds after which metadata is fetched again in any case.
        idle: seconds after which a topic that nobody watches is forgotten.
        rebootstrap_after: seconds without a successful refresh after which the client
            starts over from the bootstrap servers (KIP-1102); infinite for never.
    """

    def __init__(
        self,
        backoff: Backoff,
        *,
        max_age: float,
        idle: float,
        rebootstrap_after: float = inf,
    ) -> None:
        self.interest = Interest(idle)
        self._backoff = backoff
        self._max_age = max_age
        self._rebootstrap_after = rebootstrap_after
        # Counts requests for a full refresh. A request that is made while another is in
        # flight is not satisfied by its answer, which may be older.
        self._asked = 1
        self._satisfied = 0
        # Wanted topics that no answer has described yet.
        self._new: frozenset[str] = frozenset()
        self._described: frozenset[str] = frozenset()
        self._in_flight = False
        self._failures = 0
        self._idle_answers = 0
        self._fresh_until = -inf
        # When the request was made whose answer was the last full one.
        self._began_at = self._answered_for = -inf
        self._not_before = -inf
        self._failing_until = -inf
        # When the first attempt since the last success began.
        self._trying_since: float | None = None

    @property
    def failures(self) -> int:
        """How many attempts in a row have failed."""
        return self._failures

    @property
    def is_wanted(self) -> bool:
        """Whether a refresh is wanted: in its back-off or in flight."""
        return self._in_flight or self._asked > self._satisfied or bool(self._new)

    def watch(self, owner: object, topics: Topics | None) -> None:
        """Replace the topics that ``owner`` watches; None withdraws them."""
        had_all = self.interest.topics() is None
        self.interest.watch(owner, topics)
        if topics is ALL_TOPICS and not had_all:
            self.request(at_once=True)
        self._note_new()

    def use(self, topics: Iterable[str], now: float) -> None:
        """Note that ``topics`` are used: they are kept while they are used again."""
        if self.interest.use(topics, now):
            self._note_new()

    def _note_new(self) -> None:
        new = self.interest.names() - self._described
        if new - self._new:
            self._idle_answers = 0
        self._new = new

    def request(self, *, at_once: bool = False) -> None:
        """Request a full refresh, ``at_once`` or after the back-off in force."""
        self._asked += 1
        if at_once:
            self._not_before = self._failing_until

    def demand(self, now: float, recent: float) -> int | None:
        """Request a full refresh at once, unless the last one is recent.

        Args:
            now: the time.
            recent: how old the metadata may be, in seconds.

        Returns:
            A number for `is_satisfied`; None if no refresh is needed.
        """
        is_open = self._asked > self._satisfied
        if now - self._answered_for < recent and not is_open:
            return None
        self.request(at_once=True)
        return self._asked

    def is_satisfied(self, asked: int) -> bool:
        """Whether a request that was made after `demand` has been answered."""
        return self._satisfied >= asked

    def next_at(self) -> float:
        """When the next request is due; infinite while one is in flight."""
        if self._in_flight:
            return inf
        full = self._fresh_until if self._asked == self._satisfied else -inf
        due = max(full, self._not_before)
        return min(due, self._failing_until) if self._new else due

    def begin(self, now: float) -> RefreshRequest:
        """Decide the content of the request that is due."""
        assert not self._in_flight
        self._in_flight = True
        self._began_at = now
        self.interest.expire(now)
        if self._trying_since is None:
            self._trying_since = now
        is_full_due = self._asked > self._satisfied or now >= self._fresh_until
        if self._new and not (is_full_due and now >= self._not_before):
            return RefreshRequest(self._new, partial=True, number=self._asked)
        return RefreshRequest(self.interest.topics(), partial=False, number=self._asked)

    def succeeded(
        self, request: RefreshRequest, merged: Merged, now: float, roll: float
    ) -> None:
        """Note that an answer came.

        Args:
            request: the content of the request.
            merged: what the answer changed.
            now: the time.
            roll: a random number in [0, 1).
        """
        self._in_flight = False
        self._failures = 0
        self._failing_until = -inf
        self._trying_since = None
        self._idle_answers = 0 if merged.progressed else self._idle_answers + 1
        self._not_before = now + self._backoff.delay(self._idle_answers, roll)
        if request.partial:
            self._described |= request.topics or frozenset()
        else:
            listed = frozenset(merged.view.by_name)
            self._described = listed if request.topics is None else request.topics
            self._satisfied = request.number
            self._answered_for = self._began_at
            self._fresh_until = now + self._max_age
        if merged.unsettled:
            self._asked += 1
        self._note_new()

    def failed(self, now: float, roll: float) -> float:
        """Note that the attempt failed; returns the back-off in seconds."""
        self._in_flight = False
        delay = self._backoff.delay(self._failures, roll)
        self._failures += 1
        self._not_before = self._failing_until = now + delay
        return delay

    def abandoned(self) -> None:
        """Note that the attempt was cancelled before it was made."""
        self._in_flight = False

    def rebootstrap_at(self) -> float:
        """When to start over from the bootstrap servers, unless a refresh succeeds."""
        if self._trying_since is None:
            return inf
        return self._trying_since + self._rebootstrap_after

    def rebootstrapped(self, now: float) -> None:
        """Note that the client starts over: a request to a bootstrap server is due."""
        self._trying_since = now
        self._asked += 1
        self._not_before = self._failing_until = -inf
