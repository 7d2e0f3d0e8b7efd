"""What the APIs of transactions share."""

from __future__ import annotations

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.request_header import RequestHeader


def fencing_code(code: ErrorCode, header: RequestHeader, since: int) -> ErrorCode:
    """Return INVALID_PRODUCER_EPOCH for PRODUCER_FENCED before a version has it."""
    is_fenced = code == ErrorCode.PRODUCER_FENCED
    if is_fenced and header.request_api_version < since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
