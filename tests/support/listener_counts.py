"""What a real broker has counted on its SASL listener while something was done."""

from __future__ import annotations

from typing import Final, Self

from tests.support.kafka import Kafka

__all__ = ["ListenerCounts"]

_METRICS: Final = (
    "kafka.server:type=socket-server-metrics,listener=SASL,networkProcessor=*"
)


class ListenerCounts:
    """Differences of the broker's totals over the block; a context manager.

    Args:
        kafka: one broker, started with ``jmx=True``.
    """

    def __init__(self, kafka: Kafka) -> None:
        self._kafka = kafka
        self._before: dict[str, float] = {}
        self._after: dict[str, float] = {}

    async def __aenter__(self) -> Self:
        self._before = await self._read()
        return self

    async def __aexit__(self, *error: object) -> None:
        self._after = await self._read()

    def of(self, name: str) -> float:
        """The difference of one total, such as ``failed-authentication-total``."""
        return self._after[name] - self._before[name]

    @property
    def succeeded(self) -> float:
        """Logins that succeeded, the first of a connection and further ones."""
        again = self.of("successful-reauthentication-total")
        return self.of("successful-authentication-total") + again

    @property
    def refused(self) -> float:
        """Logins that were refused, the first of a connection and further ones."""
        again = self.of("failed-reauthentication-total")
        return self.of("failed-authentication-total") + again

    async def _read(self) -> dict[str, float]:
        """The totals over all network threads."""
        found: dict[str, float] = {}
        for name, value in (await self._kafka.metrics(1, _METRICS)).items():
            short = name.rpartition(":")[2]
            found[short] = found.get(short, 0) + value
        return found
