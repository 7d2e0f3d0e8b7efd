"""Map the error codes of brokers to exceptions."""

from __future__ import annotations

from kafkaio.errors import (
    AuthorizationError,
    BrokerError,
    Fenced,
    GroupError,
    InvalidTopic,
    OffsetOutOfRange,
    UnknownTopicOrPartition,
)
from kafkaio.protocol.error_codes import ErrorCode

__all__ = ["broker_error"]

_CODES: dict[type[BrokerError], tuple[ErrorCode, ...]] = {
    AuthorizationError: (
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ),
    UnknownTopicOrPartition: (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    ),
    InvalidTopic: (ErrorCode.INVALID_TOPIC_EXCEPTION,),
    OffsetOutOfRange: (ErrorCode.OFFSET_OUT_OF_RANGE,),
    Fenced: (
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
    ),
    GroupError: (
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.INVALID_SESSION_TIMEOUT,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
        ErrorCode.NON_EMPTY_GROUP,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.MEMBER_ID_REQUIRED,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        ErrorCode.UNRELEASED_INSTANCE_ID,
        ErrorCode.UNSUPPORTED_ASSIGNOR,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.INVALID_REGULAR_EXPRESSION,
        ErrorCode.STREAMS_INVALID_TOPOLOGY,
        ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH,
        ErrorCode.STREAMS_TOPOLOGY_FENCED,
    ),
}

_CLASSES = {code: kind for kind, codes in _CODES.items() for code in codes}


def broker_error(code: int, message: str) -> BrokerError:
    """Return the exception for an error code; ``message`` says what was refused.

    A newer broker may send a code that this release does not know. The exception then
    has the name UNKNOWN_SERVER_ERROR and is not retriable, but keeps the code.
    """
    known = ErrorCode(code)
    kind = _CLASSES.get(known, BrokerError)
    return kind(message, code=code, name=known.name, retriable=known.retriable)
