"""When a client asks for a new bearer token.

Invariant: after a token was obtained, the next is due before it ends; after a failure,
not before the back-off is over. All times are in seconds on one clock, the clock of
``Token.expires``.
"""

from __future__ import annotations

from typing import Final

from kafkaio._dataclass import dataclass
from kafkaio._machines.backoff import Backoff

#: A new token is asked for at this share of the life that the old one had left, less
#: up to `JITTER`, so that the clients of one cluster do not all ask at once.
SHARE: Final = 0.8
JITTER: Final = 0.1
#: Never sooner than this many seconds after the last token: a provider may return
#: tokens that are about to end.
PAUSE: Final = 1.0


@dataclass(slots=True)
class TokenRefresh:
    """Decides when to ask the provider.

    Attributes:
        backoff: the wait after a failure.
        due: when to ask next.
        expires: when the present token ends; minus infinity without one.
        failures: failed attempts since the last token.
    """

    backoff: Backoff
    due: float = float("-inf")
    expires: float = float("-inf")
    failures: int = 0

    def is_valid(self, now: float) -> bool:
        """Whether the present token can be used."""
        return now < self.expires

    def may_ask(self, now: float) -> bool:
        """Whether a caller without a valid token may ask now: no back-off is on."""
        return not self.failures or now >= self.due

    def obtained(self, now: float, expires: float, roll: float) -> None:
        """A token came.

        Args:
            now: the time.
            expires: when the token ends; later than ``now``.
            roll: a random number in [0, 1).
        """
        self.failures, self.expires = 0, expires
        life = (expires - now) * SHARE * (1 - JITTER * roll)
        self.due = now + max(life, PAUSE)

    def failed(self, now: float, roll: float) -> None:
        """An attempt brought no token; the present one stays in use until its end."""
        self.due = now + self.backoff.delay(self.failures, roll)
        self.failures += 1
