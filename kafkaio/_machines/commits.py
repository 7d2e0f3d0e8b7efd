"""Which calls to commit offsets are answered by which request.

One request is on its way at a time. The calls that come meanwhile are merged into the
next one: per partition it carries what the last of them wants, which is what would
stand in the end had each been sent by itself. A call ends when each of its partitions
was taken, in its own name or in that of a later call merged over it; or when one of
them was refused.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum

from kafkaio._dataclass import dataclass
from kafkaio.types import OffsetAndMetadata, TopicPartition

__all__ = ["Answer", "CommitQueue", "Fate", "Merge"]

#: What a partition costs beside its names, about: as a record that the broker writes.
_ENTRY = 64


class Answer(Enum):
    """What the coordinator says of one partition."""

    #: It is committed.
    TAKEN = "taken"
    #: Not now: it is to be sent again.
    AGAIN = "again"
    #: Never, whatever its offset.
    REFUSED = "refused"
    #: Not what was sent; another offset or other metadata may be taken.
    UNFIT = "unfit"


@dataclass(frozen=True, slots=True)
class Merge:
    """What goes into one request.

    Attributes:
        offsets: what to commit.
        owners: the call whose offset of a partition that is.
        calls: the calls it is for, in their order.
    """

    offsets: Mapping[TopicPartition, OffsetAndMetadata]
    owners: Mapping[TopicPartition, int]
    calls: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Fate:
    """What an answer means for one call.

    Attributes:
        call: its number.
        answer: ``TAKEN``: all the rest of it is committed. ``REFUSED``: it has failed.
            ``AGAIN``: it waits for the next request.
        partition: the first that was refused, or that is to be sent again.
        has_ended: whether the call has. One that has failed goes on while another's
            offset stood before one of its own.
    """

    call: int
    answer: Answer
    partition: TopicPartition | None
    has_ended: bool


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
        # What of each call was not taken yet; never empty.
        self._rest: dict[int, dict[TopicPartition, OffsetAndMetadata]] = {}

    def __repr__(self) -> str:
        return f"<CommitQueue {len(self._rest)} calls>"

    @property
    def calls(self) -> Collection[int]:
        """The calls that have not ended, the oldest first."""
        return self._rest.keys()

    def join(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> int:
        """Take in a call, behind all others; its number.

        Args:
            offsets: what to commit: something.
        """
        number = self._next
        self._next += 1
        self._rest[number] = dict(offsets)
        return number

    def withdraw(self, call: int) -> None:
        """Forget a call. What is on its way for it may take effect all the same."""
        self._rest.pop(call, None)

    def merge(self) -> Merge:
        """What to send next: the oldest calls, as many as go into one request."""
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
        self, merge: Merge, answers: Mapping[TopicPartition, Answer]
    ) -> list[Fate]:
        """Take in the answer to a request.

        What another call's offset was unfit for is sent again without that call.

        Args:
            merge: what was sent.
            answers: what was said of each of its partitions.

        Returns:
            Each call of it that has failed or ended or was told to wait, in the order
            of the calls.
        """
        fates = list[Fate]()
        for call in merge.calls:
            rest = self._rest.get(call)
            if rest is None:
                continue  # withdrawn meanwhile
            fate = _fate(call, rest, merge, answers)
            if fate is None:
                continue
            if fate.has_ended:
                del self._rest[call]
            fates.append(fate)
        return fates


def _fate(
    call: int,
    rest: dict[TopicPartition, OffsetAndMetadata],
    merge: Merge,
    answers: Mapping[TopicPartition, Answer],
) -> Fate | None:
    waits: TopicPartition | None = None
    refused: TopicPartition | None = None
    for tp in sorted(rest):
        answer = answers[tp]
        if answer is Answer.TAKEN:
            del rest[tp]
        elif answer is Answer.AGAIN:
            waits = waits or tp
        elif answer is Answer.REFUSED or merge.owners[tp] == call:
            refused = refused or tp
            del rest[tp]
    if refused is not None:
        return Fate(call, Answer.REFUSED, refused, not rest or waits is not None)
    if not rest:
        return Fate(call, Answer.TAKEN, None, has_ended=True)
    return None if waits is None else Fate(call, Answer.AGAIN, waits, has_ended=False)


def _size(tp: TopicPartition, at: OffsetAndMetadata) -> int:
    return _ENTRY + len(tp.topic) + len(at.metadata)
