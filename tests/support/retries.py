"""An observer that notes why a client tries again."""

from __future__ import annotations

import kafkaio
from kafkaio.errors import BrokerError


class Retries(kafkaio.Observer):
    """Notes the codes that are the reason for another attempt.

    Attributes:
        codes: these, in the order of the attempts.
    """

    def __init__(self) -> None:
        self.codes: list[int] = []

    def retrying(
        self, what: str, attempt: int, delay: float, error: BaseException
    ) -> None:
        if isinstance(error, BrokerError):
            self.codes.append(error.code)
