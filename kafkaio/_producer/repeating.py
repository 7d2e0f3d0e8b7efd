"""How requests of transactions are repeated: the waits, and which answers count.

`kafkaio._client.coordination` repeats a request to a coordinator. The classes here tell
it how long to wait in between (`Busy`, `Pace`), remember whether an attempt may take
effect although no answer came (`Unanswered`), and have an answer that makes no sense
asked for again (`Doubts`). `kafkaio._producer.transaction_manager` uses them, and
`kafkaio._producer.detached`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kafkaio._machines.reactions import is_foreign
from kafkaio._machines.sequence import IdAndEpoch
from kafkaio._machines.transaction import End, Protocol
from kafkaio._runtime.clock import now
from kafkaio.errors import KafkaError
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._broker_errors import broker_error
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

#: Seconds for which an answer that makes no sense is asked for again, and the code that
#: has that done.
_DOUBTED: Final = 10.0
ASK_AGAIN: Final = ErrorCode.REQUEST_TIMED_OUT
#: From this version on, EndTxn means TV2; below it, TV1.
END_TV2: Final = 5
#: Seconds between two attempts while another transaction of the id is being ended.
_BUSY_PACE: Final = 0.02
#: The same when that takes long.
_BUSY_SLOW: Final = 1.0
#: Seconds between two looks whether the markers of a transaction are written.
MARKER_PACE: Final = 0.001


class Unanswered:
    """Whether a request was sent that may take effect although no answer came.

    Args:
        on_lost: called when it is sent again, and the attempt before was not answered.

    Attributes:
        is_pending: whether the last attempt has no answer.
        was_lost: whether an attempt before it got none; the answer to a later one says
            nothing of it.
    """

    __slots__ = ("_on_lost", "is_pending", "was_lost")

    def __init__(self, on_lost: Callable[[], None] | None = None) -> None:
        self._on_lost = on_lost
        self.is_pending: bool = False
        self.was_lost: bool = False

    @property
    def may_arrive(self) -> bool:
        """Whether an attempt may still take effect."""
        return self.is_pending or self.was_lost

    def sent(self) -> None:
        """Note that the request was handed to a connection."""
        if self.is_pending:
            self.was_lost = True
            if self._on_lost is not None:
                self._on_lost()
        self.is_pending = True

    def answered(self) -> None:
        """Note that the last attempt was answered."""
        self.is_pending = False


class Doubts:
    """Has what may be one bad answer asked for again, for some seconds.

    Args:
        api: the API of the request.
        now: tells the time.
    """

    __slots__ = ("_api", "_now", "_until")

    def __init__(self, api: int, now: Callable[[], float]) -> None:
        self._api = api
        self._now = now
        self._until = now() + _DOUBTED

    def are_left(self) -> bool:
        """Whether to ask again."""
        return self._now() < self._until

    def code(self, found: int) -> int:
        """The code to go by: of one that the API does not have, to ask again."""
        return ASK_AGAIN if is_foreign(self._api, found) and self.are_left() else found


def end_request(transactional_id: str, request: End) -> EndTxnRequest:
    """Return the message of a machine's request to end a transaction."""
    return EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=request.identity.producer_id,
        producer_epoch=request.identity.epoch,
        committed=request.is_commit,
    )


def is_doubtful(request: End, answer: EndTxnResponse) -> bool:
    """Whether the answer makes no sense: the error, or the identity that it gives."""
    if answer.error_code:
        return is_foreign(ApiKey.END_TXN, answer.error_code)
    if request.protocol is not Protocol.TV2:
        return False
    given = IdAndEpoch(answer.producer_id, answer.producer_epoch)
    return not given.may_follow(request.identity)


class Busy:
    """Waits while another transaction of the id is being ended; not for ever.

    A coordinator that never comes to an end with it (KAFKA-19999) says so for ever.

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
    """Waits while the markers of the transaction before are written: they take a ms.

    Args:
        at_once: so many attempts follow without a pause.
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
