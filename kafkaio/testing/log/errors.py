"""What a log refuses, each with the error code that a broker answers it by."""

from __future__ import annotations

from typing import ClassVar

from kafkaio.protocol.error_codes import ErrorCode

__all__ = [
    "BatchListTooLargeError",
    "BatchTooLargeError",
    "CorruptBatchError",
    "InvalidBatchError",
    "InvalidTimestampError",
    "LogError",
    "OffsetOutOfRangeError",
]


class LogError(Exception):
    """A log refused an operation, and is as it was before.

    Attributes:
        error_code: what a broker answers.
    """

    error_code: ClassVar[ErrorCode] = ErrorCode.UNKNOWN_SERVER_ERROR


class OffsetOutOfRangeError(LogError, LookupError):
    """The log has no such offset, neither now nor as its next one."""

    error_code = ErrorCode.OFFSET_OUT_OF_RANGE


class CorruptBatchError(LogError):
    """Bytes are no batch: lengths, checksum or offsets contradict themselves."""

    error_code = ErrorCode.CORRUPT_MESSAGE


class InvalidBatchError(LogError):
    """A batch is whole, but this log does not take it: its format, or a missing key."""

    error_code = ErrorCode.INVALID_RECORD


class InvalidTimestampError(LogError):
    """A batch's timestamps are too far from the broker's clock."""

    error_code = ErrorCode.INVALID_TIMESTAMP


class BatchTooLargeError(LogError):
    """A batch is larger than ``max_message_bytes``."""

    error_code = ErrorCode.MESSAGE_TOO_LARGE


class BatchListTooLargeError(LogError):
    """What is appended at once is larger than a segment may be."""

    error_code = ErrorCode.RECORD_LIST_TOO_LARGE
