"""How a broker's code says no: an error code, carried by an exception."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kafkaio.protocol.error_codes import ErrorCode

__all__ = ["Malformed", "Refusal"]


class _Answer(Protocol):
    error_code: int
    error_message: str | None


class Refusal(Exception):
    """An error code that is to be answered.

    Args:
        code: the error code.
        message: for the answers that have room for one.
        bad_records: positions of the records at fault, where single ones are.
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str | None = None,
        bad_records: Sequence[int] = (),
    ) -> None:
        super().__init__(f"{code.name}: {message or ''}")
        self.code = code
        self.message = message
        self.bad_records = tuple(bad_records)

    def write_to(self, answer: _Answer) -> None:
        """Tell the code, and the message, in an answer that has room for both."""
        answer.error_code = self.code
        answer.error_message = self.message


class Malformed(Refusal):
    """A refusal of what could not be made out, before anything was looked at."""
