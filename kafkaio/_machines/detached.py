"""A transaction whose end is left to another process, and the answers to its EndTxn.

A producer writes a transaction, waits until all is acknowledged, and goes. One request
is left, EndTxn. Any process may send it that knows the transactional id and the
identity: `DetachedTransaction` has both. The coordinator decides once, so a repeated
EndTxn finds out the decision:

================  ==============================  ==================================
code              of a commit                     of an abort
================  ==============================  ==================================
0                 committed, now or before        aborted, now or before
INVALID_TXN_STATE it was aborted                  it was committed
a fencing code    a newer producer has the id, whose start aborted an open one
================  ==============================  ==================================

If a commit was sent before and not answered, a fencing code leaves the outcome open: it
may have been committed before the newer producer came.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from kafkaio._dataclass import dataclass
from kafkaio._machines.sequence import IdAndEpoch
from kafkaio._machines.transaction import FENCING, End, Protocol
from kafkaio.protocol._error_codes import ErrorCode

#: The level of transaction.version that each protocol stands for.
_LEVELS: Final = {Protocol.TV1: 1, Protocol.TV2: 2}


@dataclass(frozen=True, slots=True)
class DetachedTransaction:
    """A transaction that is open at the broker, and that any process may end.

    It can be pickled, compared and sent to another process.

    Attributes:
        transactional_id: the transactional id of its producer.
        producer_id: the producer id that it was written under.
        producer_epoch: the epoch that it was written under.
        level: the level of ``transaction.version`` that it was written with: 2, or 1
            for all before that.
        is_empty: whether nothing was written in it: the broker knows nothing of it, and
            there is nothing to end.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    level: int = 2
    is_empty: bool = False

    @classmethod
    def of(
        cls, transactional_id: str, end: End, *, is_empty: bool
    ) -> DetachedTransaction:
        """Make one from the request that its producer would send."""
        return cls(
            transactional_id,
            end.identity.producer_id,
            end.identity.epoch,
            level=_LEVELS[end.protocol],
            is_empty=is_empty,
        )

    def end(self, *, commit: bool) -> End:
        """Return the request that ends it."""
        protocol = Protocol.TV2 if self.level >= _LEVELS[Protocol.TV2] else Protocol.TV1
        return End(IdAndEpoch(self.producer_id, self.producer_epoch), protocol, commit)


class DetachedEnd(Enum):
    """The meaning of an answer to EndTxn for a detached transaction."""

    #: It has ended as it was asked to.
    DONE = auto()
    #: It had ended before, the other way.
    OTHERWISE = auto()
    #: Another producer has the transactional id: nothing of it is open.
    FENCED = auto()
    #: A commit was sent and not answered, and the outcome cannot be found out.
    UNKNOWN = auto()
    #: The coordinator refuses, for another reason.
    REFUSED = auto()


def end_of(code: int, *, is_commit: bool, was_lost: bool) -> DetachedEnd:
    """Return the meaning of an answer to EndTxn.

    Args:
        code: its error code, none that is to be retried.
        is_commit: whether the transaction was to be committed.
        was_lost: whether the same request was sent before, and got no answer.
    """
    if code == ErrorCode.NONE:
        return DetachedEnd.DONE
    if code == ErrorCode.INVALID_TXN_STATE:
        return DetachedEnd.OTHERWISE
    if is_commit and was_lost:
        return DetachedEnd.UNKNOWN
    return DetachedEnd.FENCED if code in FENCING else DetachedEnd.REFUSED
