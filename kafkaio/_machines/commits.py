"""Merges calls that commit offsets into few requests.

One request is in flight at a time. The calls that come in the meantime are merged into
the next one. For each partition it carries the offset of the last of these calls: the
result is the same as if each call had been sent by itself. A call ends when each of its
partitions is committed, by its own offset or by that of a later call merged over it, or
is refused: a refusal of one partition does not keep the others from being committed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum
from types import MappingProxyType

from kafkaio._dataclass import dataclass
from kafkaio.types import OffsetAndMetadata, TopicPartition

_NO_OWNERS: Mapping[TopicPartition, int] = MappingProxyType({})
#: About how many bytes a partition costs beside its names, as a record of the broker.
_ENTRY = 64


class CommitAnswer(Enum):
    """The answer of the coordinator for one partition."""

    #: It is committed.
    COMMITTED = "committed"
    #: Not now: the offset has to be sent again.
    RETRY = "retry"
    #: Never, whatever its offset.
    REFUSED = "refused"
    #: This offset or its metadata is invalid; others may be committed.
    INVALID = "invalid"
    #: The topic is not known: refused for a call that gives it up, ``RETRY`` otherwise.
    UNKNOWN = "unknown"


@dataclass(slots=True)
class Merge:
    """The content of one request.

    Attributes:
        offsets: the offsets to commit.
        owners: for each partition, the call that its offset comes from; empty if there
            is one call alone.
        calls: the calls that the request serves, in their order.
    """

    offsets: Mapping[TopicPartition, OffsetAndMetadata]
    owners: Mapping[TopicPartition, int]
    calls: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """The meaning of an answer for one call.

    Attributes:
        call: its number.
        committed: its partitions that are committed by this answer.
        refused: its partitions that were refused; the call has failed.
        waits: its partitions that have to be sent again.
        has_ended: whether nothing of the call is left to be sent.
    """

    call: int
    committed: tuple[TopicPartition, ...] = ()
    refused: tuple[TopicPartition, ...] = ()
    waits: tuple[TopicPartition, ...] = ()
    has_ended: bool = False


class CommitQueue:
    """The calls that have not ended, in their order.

    Args:
        limit: about how many bytes one request may carry for more than one call, so
            that the broker can write all of it at once. The first call is sent as a
            whole.
    """

    __slots__ = ("_limit", "_next", "_rest")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._next = 0
        # Invariant: the offsets of each call that are not committed yet; never empty.
        # They are replaced and never changed: a request may have them.
        self._rest: dict[int, Mapping[TopicPartition, OffsetAndMetadata]] = {}

    def __repr__(self) -> str:
        return f"<CommitQueue {len(self._rest)} calls>"

    @property
    def calls(self) -> Collection[int]:
        """The calls that have not ended, the oldest first."""
        return self._rest.keys()

    def add(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> int:
        """Add a call behind all others. Returns its number.

        Args:
            offsets: the offsets to commit; not empty, and never changed afterwards.
        """
        number = self._next
        self._next += 1
        self._rest[number] = offsets
        return number

    def withdraw(self, call: int) -> None:
        """Forget a call. A request in flight for it may still take effect."""
        self._rest.pop(call, None)

    def merge(self) -> Merge:
        """Return the next request: the oldest calls, as many as fit into one."""
        if len(self._rest) == 1:
            ((call, rest),) = self._rest.items()
            return Merge(rest, _NO_OWNERS, (call,))
        offsets = dict[TopicPartition, OffsetAndMetadata]()
        owners = dict[TopicPartition, int]()
        calls = list[int]()
        size = 0
        for call, rest in self._rest.items():
            size += sum(
                _size(tp, at) - (_size(tp, offsets[tp]) if tp in offsets else 0)
                for tp, at in rest.items()
            )
            if calls and size > self._limit:
                break
            offsets |= rest
            owners |= dict.fromkeys(rest, call)
            calls.append(call)
        return Merge(offsets, owners, tuple(calls))

    def answered(
        self,
        merge: Merge,
        answers: Mapping[TopicPartition, CommitAnswer],
        giving_up: Collection[int] = (),
    ) -> list[CallOutcome]:
        """Apply the answer to a request.

        If an offset was invalid, the calls that were merged under it are sent again,
        with their own offsets.

        Args:
            merge: the request.
            answers: the answer for each of its partitions.
            giving_up: the calls that do not wait for topics that are not known.

        Returns:
            The outcome of each of its calls that was not withdrawn, in their order.
        """
        outcomes = list[CallOutcome]()
        for call in merge.calls:
            rest = self._rest.get(call)
            if rest is None:
                continue  # withdrawn meanwhile
            outcome = _outcome(call, rest, merge, answers, gives_up=call in giving_up)
            if outcome.has_ended:
                del self._rest[call]
            else:
                done = {*outcome.committed, *outcome.refused}
                self._rest[call] = {tp: rest[tp] for tp in rest if tp not in done}
            outcomes.append(outcome)
        return outcomes

    def committed(self, call: int) -> Collection[TopicPartition] | None:
        """Apply an answer that committed all of a request to one of its calls.

        Returns:
            The partitions that the call had left; None if it was withdrawn.
        """
        return self._rest.pop(call, None)


def _outcome(
    call: int,
    rest: Mapping[TopicPartition, OffsetAndMetadata],
    merge: Merge,
    answers: Mapping[TopicPartition, CommitAnswer],
    *,
    gives_up: bool,
) -> CallOutcome:
    committed, refused, waits = [], [], []
    for tp in sorted(rest):
        answer = answers[tp]
        if answer is CommitAnswer.UNKNOWN:
            answer = CommitAnswer.REFUSED if gives_up else CommitAnswer.RETRY
        if answer is CommitAnswer.COMMITTED:
            committed.append(tp)
        elif answer is CommitAnswer.RETRY:
            waits.append(tp)
        elif answer is CommitAnswer.REFUSED or merge.owners.get(tp, call) == call:
            refused.append(tp)
    # An offset that another call's invalid one replaced is in none of the lists.
    has_ended = len(committed) + len(refused) == len(rest)
    return CallOutcome(
        call, tuple(committed), tuple(refused), tuple(waits), has_ended=has_ended
    )


def _size(tp: TopicPartition, at: OffsetAndMetadata) -> int:
    return _ENTRY + len(tp.topic) + len(at.metadata)
