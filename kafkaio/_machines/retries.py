"""Whether and when the handler of ``Consumer.run`` is called again for a record."""

from __future__ import annotations

from kafkaio._dataclass import dataclass
from kafkaio._machines.backoff import Backoff
from kafkaio._public import public
from kafkaio.errors import ArgumentValueError


@public("kafkaio")
@dataclass(frozen=True, slots=True)
class Retry:
    """How often ``Consumer.run`` calls its handler for one record, and how soon.

    The wait doubles with each failure and is spread by 20 % to both sides. While a
    record waits, records that must not run beside it wait too; others go on.

    Attributes:
        attempts: calls of the handler in all, 1 at least.
        backoff_ms: the wait after the first failure, in milliseconds.
        backoff_max_ms: the longest wait before it is spread, in milliseconds.
        on: exceptions after which to call the handler again.

    Raises:
        ArgumentValueError: a number is out of range.
    """

    attempts: int = 5
    backoff_ms: int = 100
    backoff_max_ms: int = 10_000
    on: tuple[type[Exception], ...] = (Exception,)

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.backoff_ms < 0 or self.backoff_max_ms < 0:
            raise ArgumentValueError(
                f"{self}: attempts must be at least 1, and no wait may be negative"
            )

    def delay(self, error: Exception, attempts: int, roll: float) -> float | None:
        """Seconds to wait before the next attempt; None for no more attempts.

        Args:
            error: raised by the handler.
            attempts: how often it was called for the record.
            roll: a random number in [0, 1).
        """
        if attempts >= self.attempts or not isinstance(error, self.on):
            return None
        backoff = Backoff(self.backoff_ms, self.backoff_max_ms)
        return backoff.delay(attempts - 1, roll)
