"""When a client asks for a telemetry subscription and pushes metrics (KIP-714).

A client first asks any broker for its subscription (GetTelemetrySubscriptions). It then
pushes the metrics that were asked for at the interval of the subscription
(PushTelemetry), and asks again when a broker no longer knows the subscription. The
broker gives the client its instance id with the first subscription, and the client
keeps it.

======================  ========================  ====================================
error                   of a subscription         of a push
======================  ========================  ====================================
42, 87 (and 35)         stop                      stop
117                     ask after the interval    ask at once
76                      ask after the interval    ask at once; no longer compress so
89, 118, any other      ask after the interval    ask after the interval
no answer               ask after the interval    ask after the interval
======================  ========================  ====================================

"The interval" is that of the last subscription, or `DEFAULT_INTERVAL`. So whatever the
brokers answer, at most one subscription and one push are sent in an interval, except
for the subscription that follows a push at once.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from enum import Enum
from math import inf
from typing import Final
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._error_codes import ErrorCode

#: Seconds between two requests until a broker has named an interval, as in Java.
DEFAULT_INTERVAL: Final = 300.0

_ZERO: Final = UUID(int=0)
_EVERYTHING: Final = "*"
_FATAL: Final = frozenset(
    {
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_RECORD,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)
_AT_ONCE: Final = frozenset(
    {ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE}
)


class TelemetryStep(Enum):
    """The request that is due next."""

    SUBSCRIBE = "subscribe"
    PUSH = "push"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySubscription:
    """The metrics that a broker wants from this client.

    Attributes:
        instance_id: the id of the client.
        subscription_id: identifies the subscription.
        compression: the codec for pushes, by its number; 0 for none.
        interval: seconds between two pushes.
        max_bytes: most bytes of a push, as sent; 0 for no limit.
        is_delta: whether sums are the increase since the last push.
        prefixes: beginnings of the names of the wanted metrics; ``*`` for all.
    """

    instance_id: UUID
    subscription_id: int
    compression: int
    interval: float
    max_bytes: int
    is_delta: bool
    prefixes: tuple[str, ...]

    def wants(self, name: str) -> bool:
        """Whether a metric of that name is to be pushed."""
        return _EVERYTHING in self.prefixes or name.startswith(self.prefixes)


class TelemetryMachine:
    """Decides what is sent, and when. Times are in seconds of one clock.

    Args:
        codecs: the numbers of the compression codecs that can be used.

    Attributes:
        step: the request that is sent next.
        due: when it is sent; infinite if nothing is.
        instance_id: the id of this client; None until a broker has assigned it.
        subscription: the wanted metrics; None before the first answer.
    """

    def __init__(self, codecs: Collection[int] = ()) -> None:
        self._codecs = frozenset(codecs)
        self.step: TelemetryStep = TelemetryStep.SUBSCRIBE
        self.due: float = -inf
        self.instance_id: UUID | None = None
        self.subscription: TelemetrySubscription | None = None

    @property
    def has_ended(self) -> bool:
        """Whether nothing more is sent."""
        return self.step is TelemetryStep.NOTHING

    @property
    def interval(self) -> float:
        """Seconds between two requests."""
        return DEFAULT_INTERVAL if self.subscription is None else self._subscribed

    @property
    def _subscribed(self) -> float:
        assert self.subscription is not None
        return self.subscription.interval

    def subscribed(  # noqa: PLR0913 - the fields of the answer
        self,
        now: float,
        roll: float,
        *,
        instance_id: UUID,
        subscription_id: int,
        accepted: Sequence[int],
        interval: float,
        max_bytes: int,
        is_delta: bool,
        prefixes: Iterable[str],
    ) -> None:
        """Take over a subscription.

        Args:
            now: the time.
            roll: a random number from 0 to 1. It spreads the first pushes of clients
                that started together over 0.5 to 1.5 intervals.
            instance_id: the id that the broker assigns, or knows already.
            subscription_id: identifies the subscription.
            accepted: codecs that the broker accepts, in the order of its preference.
            interval: seconds between two pushes.
            max_bytes: most bytes of a push.
            is_delta: whether sums are to be the increase since the last push.
            prefixes: beginnings of the names of the wanted metrics; none for no
                metrics, ``*`` for all.
        """
        if self.has_ended:
            return
        if self.instance_id is None:
            # The zero id stands for "none yet" in requests, and no broker assigns it.
            if instance_id == _ZERO:
                self.unanswered(now)
                return
            self.instance_id = instance_id
        # The first id is kept, whatever later answers name: the application may have
        # published it.
        usable = [one for one in accepted if one in self._codecs]
        self.subscription = TelemetrySubscription(
            instance_id=self.instance_id,
            subscription_id=subscription_id,
            compression=usable[0] if usable else 0,
            interval=interval if interval > 0 else DEFAULT_INTERVAL,
            max_bytes=max(0, max_bytes),
            is_delta=is_delta,
            prefixes=tuple(prefixes),
        )
        if self.subscription.prefixes:
            # Spread, so that clients that were started together do not push together.
            self._set(TelemetryStep.PUSH, now + (0.5 + roll) * self.interval)
        else:
            self._set(TelemetryStep.SUBSCRIBE, now + self.interval)

    def pushed(self, now: float) -> None:
        """Note that a broker took a push."""
        self._set(TelemetryStep.PUSH, now + self.interval)

    def refused(self, code: int, now: float) -> None:
        """Note that a broker refused a request, with a code of ``ErrorCode``."""
        if code in _FATAL:
            self._set(TelemetryStep.NOTHING, inf)
        elif self.step is TelemetryStep.PUSH and code in _AT_ONCE:
            if code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE:
                # For good: otherwise each push would be refused and asked about again,
                # at once and for ever, by a broker that lists a codec it cannot read.
                assert self.subscription is not None
                self._codecs -= {self.subscription.compression}
            self._set(TelemetryStep.SUBSCRIBE, now)
        else:
            self.unanswered(now)

    def unanswered(self, now: float) -> None:
        """Note that a request had no answer, or could not be sent."""
        self._set(TelemetryStep.SUBSCRIBE, now + self.interval)

    def terminate(self) -> bool:
        """End; nothing is sent any more.

        Returns:
            Whether one last push is to be sent, which says that it is the last.
        """
        is_pushing = self.step is TelemetryStep.PUSH
        self._set(TelemetryStep.NOTHING, inf)
        return is_pushing

    def _set(self, step: TelemetryStep, due: float) -> None:
        # The end is final: an answer that comes late does not start anything again.
        if not self.has_ended:
            self.step, self.due = step, due


class PushedSums:
    """The growing sums as they were pushed, to compute their increase since then.

    An increase that a broker refused is part of the next push. An increase whose push
    had no answer counts as pushed: losing it is better than counting it twice.
    """

    __slots__ = ("_pending", "_pushed")

    def __init__(self) -> None:
        self._pushed: dict[Hashable, float] = {}
        self._pending: Mapping[Hashable, float] = {}

    @property
    def is_pending(self) -> bool:
        """Whether a push with sums is being sent."""
        return bool(self._pending)

    def increase(self, key: Hashable, total: float) -> float:
        """Return how much a sum has grown since the last push that had it."""
        return max(0.0, total - self._pushed.get(key, 0.0))

    def sending(self, totals: Mapping[Hashable, float]) -> None:
        """Note the sums of a push that is being sent."""
        self._pending = totals

    def settle(self, *, is_refused: bool) -> None:
        """Note the result of that push."""
        if not is_refused:
            self._pushed.update(self._pending)
        self._pending = {}
