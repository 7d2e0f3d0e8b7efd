"""Helpers of the APIs of transactions."""

from __future__ import annotations

from kafkaio.protocol._error_codes import ErrorCode


def fencing_code(code: ErrorCode, version: int, since: int) -> ErrorCode:
    """Return INVALID_PRODUCER_EPOCH for PRODUCER_FENCED before a version has it."""
    if code == ErrorCode.PRODUCER_FENCED and version < since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
