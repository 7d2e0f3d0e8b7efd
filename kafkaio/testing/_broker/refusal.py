"""The exception with which the broker's code refuses: it carries an error code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kafkaio.protocol._error_codes import ErrorCode


class _ErrorFieldsPort(Protocol):
    error_code: int
    error_message: str | None


class Refusal(Exception):
    """The error code to answer with.

    Args:
        code: the error code.
        message: for the answers that have a field for it.
        bad_records: positions in the batch of the records that are at fault, if
            single records are.
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
        self.bad_records: tuple[int, ...] = tuple(bad_records)

    def write_to(self, answer: _ErrorFieldsPort) -> None:
        """Write the code and the message to an answer."""
        answer.error_code = self.code
        answer.error_message = self.message


class Malformed(Refusal):
    """Refuses data that cannot be parsed, before any other check."""
