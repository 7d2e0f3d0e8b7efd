"""How long a commit of offsets is tried, by the reason for it (ADR 33).

Two things bound a commit. Its *time* ends all attempts: a coordinator that cannot be
found, does not answer or refuses for the moment. Its *doubt* ends the attempts at
partitions whose topic the coordinator does not know: the topic was deleted, and no
repetition can change that; or the coordinator is behind, which passes within moments.
The client's own metadata decides between the two where it can.
"""

from __future__ import annotations

from math import inf
from typing import Final, Self

from kafkaio._named_tuple import NamedTuple
from kafkaio.protocol._error_codes import ErrorCode

#: The answers of coordinators for a topic or a partition that they do not know.
UNKNOWN_TOPIC: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
#: Seconds of doubt for commits that the user asked for, and for those of transactions.
#: A new topic or partition reaches every broker in less.
ASKED_FOR: Final = 3.0
#: Seconds of doubt for all others: a partition waits to be released, or the next
#: automatic commit tries again.
_UNASKED: Final = 1.0
#: Most seconds of a commit before a release, also of a transaction's that keeps
#: partitions from it. A coordinator that failed has a successor by then (a broker
#: counts as failed after 9 s), and before that the group cannot go on either, since it
#: has the same coordinator. After that, the rest of the group would wait only to spare
#: this member repeated records.
BEFORE_RELEASE: Final = 12.0


class Patience(NamedTuple):
    """How long one commit is tried.

    Attributes:
        time: seconds for all attempts.
        doubt: seconds for partitions whose topic the coordinator does not know, while
            the client's metadata has them.
    """

    time: float
    doubt: float = ASKED_FOR

    @classmethod
    def automatic(cls, time: float) -> Self:
        """Of an automatic commit, which is repeated with the next interval."""
        return cls(time, _UNASKED)

    @classmethod
    def before_release(cls, limit: float, *deadlines: float) -> Self:
        """Of a commit before partitions are released.

        Args:
            limit: seconds that any call of the client may take.
            deadlines: seconds until the partitions are lost, and until whatever else
                ends the release: the rest needs time, too.
        """
        left = min(deadlines, default=inf) / 2
        return cls(max(0.0, min(limit, left, BEFORE_RELEASE)), _UNASKED)


class Doubt:
    """Whether a coordinator is still asked for topics that it does not know.

    Args:
        seconds: how long, from its first answer on.
    """

    __slots__ = ("_seconds", "_until")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = inf

    def is_over(self, at: float) -> bool:
        """Whether to give up, now that the coordinator said so at that time, too."""
        self._until = min(self._until, at + self._seconds)
        return at >= self._until
