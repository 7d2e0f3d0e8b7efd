"""How requests of transactions are repeated: the waits, and which answers count.

`kafkaio._client.coordination` repeats a request to a coordinator. `Busy` and `Pace`
give it the waits in between. `Unanswered` remembers whether an attempt may take effect
though no answer came. `Doubts` has an answer that makes no sense asked for again, and
`EndAttempts` holds all of that for one EndTxn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kafkaio._dataclass import dataclass
from kafkaio._machines.reactions import is_foreign
from kafkaio._machines.sequence import IdAndEpoch
from kafkaio._machines.transaction import End, Protocol
from kafkaio._runtime.clock import now
from kafkaio.errors import KafkaError
from kafkaio.protocol import _api_numbers as apis
from kafkaio.protocol._broker_errors import broker_error
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

#: Seconds for which an answer that makes no sense is asked for again: one bad answer
#: must not end a producer.
_DOUBTED: Final = 10.0
#: The code of such an answer: `kafkaio._machines.reactions` repeats the request.
ASK_AGAIN: Final = ErrorCode.REQUEST_TIMED_OUT
#: From this version on, EndTxn means TV2; below it, TV1.
_END_TV2: Final = 5
#: Seconds between two attempts while another transaction of the id is being ended.
_BUSY_PACE: Final = 0.02
#: The same when that takes long.
_BUSY_SLOW: Final = 1.0
#: Seconds between two questions whether the markers of a transaction are written.
MARKER_PACE: Final = 0.001


@dataclass(slots=True, eq=False)
class Unanswered:
    """Whether a request was sent that may take effect although no answer came.

    Attributes:
        on_lost: called when it is sent again, and the attempt before was not answered.
        is_pending: whether the last attempt has no answer.
        was_lost: whether an attempt before it got none. The answer to a later attempt
            does not show whether that one took effect.
    """

    on_lost: Callable[[], None] | None = None
    is_pending: bool = False
    was_lost: bool = False

    @property
    def may_arrive(self) -> bool:
        """Whether an attempt may still take effect."""
        return self.is_pending or self.was_lost

    def sent(self) -> None:
        """Note that the request was handed to a connection."""
        if self.is_pending:
            self.was_lost = True
            if self.on_lost is not None:
                self.on_lost()
        self.is_pending = True

    def answered(self) -> None:
        """Note that the last attempt was answered."""
        self.is_pending = False


class Doubts:
    """Decides for some seconds that a bad answer is asked for again.

    Args:
        api: the API of the request.
    """

    __slots__ = ("_api", "_until")

    def __init__(self, api: int) -> None:
        self._api = api
        self._until: float | None = None

    def are_left(self) -> bool:
        """Whether to ask again; the time begins with the first call."""
        at = now()
        if self._until is None:
            self._until = at + _DOUBTED
        return at < self._until

    def code(self, found: int) -> int:
        """Return the code; `ASK_AGAIN` in place of one that the API does not have."""
        return ASK_AGAIN if is_foreign(self._api, found) and self.are_left() else found


class EndAttempts:
    """The attempts at one EndTxn.

    Args:
        transactional_id: the transactional id.
        request: the end.
        on_lost: called when it is sent again, and the attempt before was not answered.

    Attributes:
        message: the request for the coordinator.
        unanswered: whether an attempt may take effect though no answer came.
        is_tv2: whether the protocol is TV2.
        min_version: the lowest version of EndTxn that means the protocol.
        max_version: the highest one; None for the highest known.
    """

    __slots__ = (
        "_doubts",
        "_request",
        "is_tv2",
        "max_version",
        "message",
        "min_version",
        "unanswered",
    )

    def __init__(
        self,
        transactional_id: str,
        request: End,
        on_lost: Callable[[], None] | None = None,
    ) -> None:
        self.message: EndTxnRequest = EndTxnRequest(
            transactional_id=transactional_id,
            producer_id=request.identity.producer_id,
            producer_epoch=request.identity.epoch,
            committed=request.is_commit,
        )
        self._request = request
        self._doubts: Doubts | None = None
        self.unanswered: Unanswered = Unanswered(on_lost)
        self.is_tv2: bool = request.protocol is Protocol.TV2
        self.min_version: int = _END_TV2 if self.is_tv2 else 0
        self.max_version: int | None = None if self.is_tv2 else _END_TV2 - 1

    def code(self, answer: EndTxnResponse) -> int:
        """Return the error code of an answer, or that of none.

        The outcome stays open after an answer that makes no sense, in its error or in
        the identity that it gives. So it counts as no answer, for some seconds.
        """
        code = answer.error_code
        if code:
            is_doubtful = is_foreign(apis.END_TXN, code)
        else:
            is_doubtful = self.is_tv2 and not IdAndEpoch(
                answer.producer_id, answer.producer_epoch
            ).may_follow(self._request.identity)
        if is_doubtful:
            self._doubts = self._doubts or Doubts(apis.END_TXN)
            if self._doubts.are_left():
                return ASK_AGAIN
        self.unanswered.is_pending = False
        return code


class Busy:
    """Waits while another transaction of the id is being ended, but not forever.

    A coordinator that never completes it (KAFKA-19999) would answer that forever.

    Args:
        name: the transactional id, for messages.
        limit: seconds after which it is given up.
        node_id: returns the coordinator.
    """

    __slots__ = ("_limit", "_name", "_node_id", "_since")

    def __init__(
        self, name: str, limit: float, node_id: Callable[[], int | None]
    ) -> None:
        self._name = name
        self._limit = limit
        self._node_id = node_id
        self._since: float | None = None

    def __call__(self, code: int) -> float | None:
        """Return the seconds to wait after an error code; None for the back-off."""
        if code != ErrorCode.CONCURRENT_TRANSACTIONS:
            self._since = None
            return None
        at = now()
        if self._since is None:
            self._since = at
        waited = at - self._since
        if waited >= self._limit:
            error = KafkaError(
                f"{self._name}: its coordinator, broker {self._node_id()}, has been "
                f"busy with a transaction of it for {waited:.0f} s and does not come to"
                " an end; this producer is over. A partition without a leader can be "
                "the reason, or transaction.version=0 under a producer of level 2"
            )
            error.__cause__ = broker_error(code, self._name)
            raise error
        return max(_BUSY_PACE, min(waited / 10, _BUSY_SLOW))


class Pace:
    """Waits while the markers of the transaction before are written, about a ms.

    Args:
        at_once: number of attempts that follow without a pause.
    """

    __slots__ = ("_delay", "_left")

    def __init__(self, at_once: int) -> None:
        self._left = at_once
        self._delay = MARKER_PACE / 2

    def __call__(self, code: int) -> float | None:
        """Return the seconds to wait after an error code; None for the back-off."""
        if code != ErrorCode.CONCURRENT_TRANSACTIONS:
            return None
        if self._left:
            self._left -= 1
            return 0.0
        self._delay = min(2 * self._delay, _BUSY_PACE)
        return self._delay
