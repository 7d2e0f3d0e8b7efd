"""How long an authentication holds, and when the next one is due (KIP-368).

A broker that limits sessions gives the lifetime in its last answer. After its end the
broker closes the connection at the next request, without an answer. An authentication
revives it, also after the end. Two authentications within a second are refused.
"""

from __future__ import annotations

from math import inf
from typing import Final

from kafkaio._dataclass import dataclass

#: The part of a session after which it is renewed, at the earliest and at the latest.
_EARLIEST: Final = 0.85
_LATEST: Final = 0.95
#: Seconds before the end at which it is renewed at the latest, but not before
#: `_EARLIEST`: what was sent before the renewal waits for a busy broker, too.
_AHEAD: Final = 0.3
#: Seconds between two authentications; brokers refuse the second one within 1.0.
_APART: Final = 1.1
#: Sessions of fewer seconds end before a second authentication is allowed and done.
_SHORTEST: Final = 1.3
#: The part of a session, and the most seconds, by which it ends earlier for the client:
#: a request needs some time to reach the broker.
_MARGIN: Final = 0.02
_LONGEST_MARGIN: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticatedSession:
    """The time between an authentication and the one that has to follow it.

    Attributes:
        began_at: when the broker's last answer came.
        lifetime: seconds, given by the broker; 0 for no limit.
        ends_at: when the broker may refuse requests; ``inf`` if it never does.
        renew_at: when the next authentication is due; ``inf`` for never.
        renewable_at: the earliest moment at which the broker accepts one.
        lasts: seconds from an authentication to the end of its session; ``inf`` for no
            end. Sessions of one connection mostly last equally long.
        is_short: whether it ends before that, so that another connection is needed.
    """

    began_at: float
    lifetime: float = 0.0
    ends_at: float = inf
    renew_at: float = inf
    renewable_at: float
    lasts: float = inf
    is_short: bool = False

    @classmethod
    def begun(
        cls, now: float, sent_at: float, lifetime: float, roll: float
    ) -> AuthenticatedSession:
        """A session that begins.

        Args:
            now: when the broker's last answer came.
            sent_at: when the request for it was written: the broker counts from a
                moment between the two.
            lifetime: seconds, given by the broker; 0 for no limit.
            roll: a random number in [0, 1), so that the connections of a client are
                not all renewed at the same moment.
        """
        renewable_at = now + _APART
        if not lifetime:
            return cls(began_at=now, renewable_at=renewable_at)
        margin = min(_MARGIN * lifetime, _LONGEST_MARGIN)
        is_short = lifetime < _SHORTEST
        latest = max(_EARLIEST, min(_LATEST, 1 - _AHEAD / lifetime))
        renew_at = sent_at + lifetime * (_EARLIEST + (latest - _EARLIEST) * roll)
        return cls(
            began_at=now,
            lifetime=lifetime,
            ends_at=sent_at + lifetime - margin,
            renew_at=renew_at if is_short else max(renew_at, renewable_at),
            renewable_at=renewable_at,
            lasts=lifetime - margin,
            is_short=is_short,
        )
