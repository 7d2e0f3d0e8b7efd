"""The errors of a log, each with the error code with which a broker answers."""

from __future__ import annotations

from typing import ClassVar

from kafkaio.protocol._error_codes import ErrorCode


class LogError(Exception):
    """A log refused an operation and did not change.

    Attributes:
        error_code: the code with which a broker answers.
    """

    error_code: ClassVar[ErrorCode] = ErrorCode.UNKNOWN_SERVER_ERROR


class OffsetOutOfRangeError(LogError, LookupError):
    """An offset is below the start of the log or above its end."""

    error_code = ErrorCode.OFFSET_OUT_OF_RANGE


class CorruptBatchError(LogError):
    """Bytes are not a valid batch: its lengths, checksum or offsets do not agree."""

    error_code = ErrorCode.CORRUPT_MESSAGE


class InvalidBatchError(LogError):
    """A batch is intact, but not allowed in this log: its format, or a missing key."""

    error_code = ErrorCode.INVALID_RECORD


class InvalidTimestampError(LogError):
    """A batch's timestamps are too far from the broker's clock."""

    error_code = ErrorCode.INVALID_TIMESTAMP


class BatchTooLargeError(LogError):
    """A batch is larger than ``max_message_bytes``."""

    error_code = ErrorCode.MESSAGE_TOO_LARGE


class BatchListTooLargeError(LogError):
    """The batches of one append are together larger than a segment can be."""

    error_code = ErrorCode.RECORD_LIST_TOO_LARGE
