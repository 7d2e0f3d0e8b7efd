"""The exceptions of aiokafka 0.14, by its names.

Each class is two things at once: the class of aiokafka's tree, with ``errno``,
``message``, ``description``, ``retriable`` and ``invalid_metadata``, and a subclass of
the exception of kafkaio that it stands for. So ``except errors.KafkaConnectionError``
and ``except kafkaio.NetworkError`` catch the same, and ``except kafkaio.KafkaError``
catches all.

`KafkaError` is the root of all but `ConsumerStoppedError` and `IllegalOperation`, as it
is there.
"""

from __future__ import annotations

import kafkaio
from kafkaio.aiokafka._pickling import restored

__all__ = [
    "AuthenticationFailedError",
    "AuthenticationMethodNotSupported",
    "BrokerNotAvailableError",
    "BrokerResponseError",
    "Cancelled",
    "ClusterAuthorizationFailedError",
    "CommitFailedError",
    "ConcurrentTransactions",
    "ConsumerStoppedError",
    "CoordinatorLoadInProgressError",
    "CoordinatorNotAvailableError",
    "CorrelationIdError",
    "CorruptRecordException",
    "DelegationTokenAuthDisabled",
    "DelegationTokenAuthorizationFailed",
    "DelegationTokenExpired",
    "DelegationTokenNotFound",
    "DelegationTokenOwnerMismatch",
    "DelegationTokenRequestNotAllowed",
    "DuplicateSequenceNumber",
    "FetchSessionIdNotFound",
    "GroupAuthorizationFailedError",
    "GroupCoordinatorNotAvailableError",
    "GroupIdNotFound",
    "GroupLoadInProgressError",
    "IllegalArgumentError",
    "IllegalGenerationError",
    "IllegalOperation",
    "IllegalSaslStateError",
    "IllegalStateError",
    "IncompatibleBrokerVersion",
    "InconsistentGroupProtocolError",
    "InvalidCommitOffsetSizeError",
    "InvalidConfigurationError",
    "InvalidFetchRequestError",
    "InvalidFetchSessionEpoch",
    "InvalidGroupIdError",
    "InvalidMessageError",
    "InvalidPartitionsError",
    "InvalidPrincipalType",
    "InvalidProducerEpoch",
    "InvalidProducerIdMapping",
    "InvalidReplicationAssignmentError",
    "InvalidReplicationFactorError",
    "InvalidRequestError",
    "InvalidRequiredAcksError",
    "InvalidSessionTimeoutError",
    "InvalidTimestampError",
    "InvalidTopicError",
    "InvalidTransactionTimeout",
    "InvalidTxnState",
    "KafkaConfigurationError",
    "KafkaConnectionError",
    "KafkaError",
    "KafkaProtocolError",
    "KafkaStorageError",
    "KafkaTimeoutError",
    "KafkaUnavailableError",
    "LeaderNotAvailableError",
    "ListenerNotFound",
    "LogDirNotFound",
    "MemberIdRequired",
    "MessageSizeTooLargeError",
    "MetadataEmptyBrokerList",
    "NoBrokersAvailable",
    "NoError",
    "NoOffsetForPartitionError",
    "NodeNotReadyError",
    "NonEmptyGroup",
    "NotControllerError",
    "NotCoordinatorError",
    "NotCoordinatorForGroupError",
    "NotEnoughReplicasAfterAppendError",
    "NotEnoughReplicasError",
    "NotLeaderForPartitionError",
    "OffsetMetadataTooLargeError",
    "OffsetOutOfRangeError",
    "OperationNotAttempted",
    "OutOfOrderSequenceNumber",
    "PolicyViolationError",
    "ProducerClosed",
    "ProducerFenced",
    "QuotaViolationError",
    "ReassignmentInProgress",
    "RebalanceInProgressError",
    "RecordListTooLargeError",
    "RecordTooLargeError",
    "ReplicaNotAvailableError",
    "RequestTimedOutError",
    "SaslAuthenticationFailed",
    "SecurityDisabled",
    "StaleControllerEpochError",
    "StaleLeaderEpochCodeError",
    "StaleMetadata",
    "TooManyInFlightRequests",
    "TopicAlreadyExistsError",
    "TopicAuthorizationFailedError",
    "TransactionCoordinatorFenced",
    "TransactionalIdAuthorizationFailed",
    "UnknownError",
    "UnknownMemberIdError",
    "UnknownProducerId",
    "UnknownTopicOrPartitionError",
    "UnrecognizedBrokerVersion",
    "UnsupportedCodecError",
    "UnsupportedForMessageFormatError",
    "UnsupportedSaslMechanismError",
    "UnsupportedVersionError",
    "for_code",
    "kafka_errors",
]


class KafkaError(kafkaio.KafkaError, RuntimeError):
    """The root of the tree.

    Attributes:
        retriable: whether the same call may succeed later.
        invalid_metadata: whether the error says that metadata is out of date.
    """

    retriable = False
    invalid_metadata: bool = False

    def __init__(self, *args: object) -> None:
        # Not by super(): some classes of kafkaio need more than a message, and those
        # that are an OSError read their arguments as errno and text.
        BaseException.__init__(self, *args)

    def __str__(self) -> str:
        name = type(self).__name__
        return f"{name}: {BaseException.__str__(self)}" if self.args else name

    def __reduce__(self) -> tuple[object, ...]:
        return restored, (type(self), self.args, vars(self))


class IllegalStateError(KafkaError, kafkaio.UsageError):
    """The call is not possible in the present state."""


class IllegalArgumentError(KafkaError, kafkaio.ArgumentValueError):
    """An argument has an invalid value."""


class NoBrokersAvailable(KafkaError, kafkaio.BrokerNotAvailable):
    """No broker could be reached."""

    retriable = True
    invalid_metadata = True


class NodeNotReadyError(KafkaError, kafkaio.BrokerNotAvailable):
    """The broker is not known, or cannot be reached now."""

    retriable = True


class KafkaProtocolError(KafkaError, kafkaio.ProtocolError):
    """Bytes from the broker break the protocol."""

    retriable = True


class CorrelationIdError(KafkaProtocolError):
    """An answer belongs to another request."""

    retriable = True


class Cancelled(KafkaError):
    """The request was given up."""

    retriable = True


class TooManyInFlightRequests(KafkaError):
    """The connection has as many requests in flight as it may have."""

    retriable = True


class StaleMetadata(KafkaError):
    """The metadata of the cluster is out of date."""

    retriable = True
    invalid_metadata = True


class MetadataEmptyBrokerList(KafkaError):
    """The metadata of the cluster names no broker."""

    retriable = True


class UnrecognizedBrokerVersion(KafkaError, kafkaio.UnsupportedVersion):
    """The version of the broker cannot be told."""


class IncompatibleBrokerVersion(KafkaError, kafkaio.UnsupportedVersion):
    """The broker supports no version of the request that can express the call."""


class CommitFailedError(KafkaError, kafkaio.CommitFailed):
    """The commit was refused: the partitions belong to other members by now."""

    def __init__(self, *args: object) -> None:
        super().__init__(
            "the commit was refused: the group has rebalanced, and the partitions "
            "belong to other members by now. Either the time between two reads exceeds "
            "max_poll_interval_ms: raise it, or read fewer records at a time "
            "(max_poll_records). Or the member was removed for want of heartbeats, for "
            "example because the event loop was blocked",
            *args,
        )


class AuthenticationMethodNotSupported(KafkaError, kafkaio.AuthenticationError):
    """The broker does not offer the way to log in."""

    mechanism = ""
    broker = ""
    step = ""
    reason = ""


class AuthenticationFailedError(KafkaError, kafkaio.AuthenticationError):
    """The broker refused the login."""

    retriable = False
    mechanism = ""
    broker = ""
    step = ""
    reason = ""


class KafkaUnavailableError(KafkaError, kafkaio.NetworkError):
    """The cluster cannot be reached."""


class KafkaTimeoutError(KafkaError, kafkaio.KafkaTimeout):
    """A time limit was reached."""


class KafkaConnectionError(KafkaError, kafkaio.NetworkError):
    """The connection to a broker failed, or none could be made."""

    retriable = True
    invalid_metadata = True


class UnsupportedCodecError(KafkaError, kafkaio.ProtocolError):
    """The compression of a batch is not supported."""


class KafkaConfigurationError(KafkaError, kafkaio.ConfigurationError):
    """An option is invalid."""


class QuotaViolationError(KafkaError):
    """A quota of the broker was exceeded."""


class ConsumerStoppedError(kafkaio.ClosedError):
    """The consumer was stopped: before the call, or while it waited."""


class IllegalOperation(kafkaio.UsageError):
    """The call needs an option that was not given, such as ``group_id``."""


class NoOffsetForPartitionError(KafkaError, kafkaio.OffsetOutOfRange):
    """The partition has no position, and ``auto_offset_reset`` is ``none``."""

    code = 1
    name = "OFFSET_OUT_OF_RANGE"
    topic = ""
    partition = -1
    position = -1
    earliest = -1
    latest = -1


class RecordTooLargeError(KafkaError, kafkaio.RecordTooLarge):
    """A record exceeds what the consumer may fetch at a time."""


class ProducerClosed(KafkaError, kafkaio.ClosedError):
    """The producer is closed."""


class ProducerFenced(KafkaError, kafkaio.Fenced):
    """A newer producer has the same transactional id, or the transaction timed out."""

    code = 90
    name = "PRODUCER_FENCED"

    def __init__(
        self,
        msg: str = (
            "a newer producer has the same transactional_id, or the transaction took "
            "longer than transaction_timeout_ms"
        ),
    ) -> None:
        super().__init__(msg)


class BrokerResponseError(KafkaError, kafkaio.BrokerError):
    """The broker returned an error code.

    Attributes:
        errno: the number on the wire.
        message: the name that aiokafka has for it.
        description: what it says.
    """

    errno: int = -1
    message: str = "UNKNOWN"
    description: str = ""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.code: int = self.errno
        self.name = kafkaio.ErrorCode(self.errno).name

    def __str__(self) -> str:
        return f"[Error {self.errno}] {super().__str__()}"


class NoError(BrokerResponseError):
    """No error."""

    errno = 0
    message = "NO_ERROR"
    description = "No error."


class UnknownError(BrokerResponseError):
    """The broker failed, or sent a code that is not in this list."""

    errno = -1
    message = "UNKNOWN"
    description = "The broker failed, or sent a code that is not in this list."


class OffsetOutOfRangeError(BrokerResponseError, kafkaio.OffsetOutOfRange):
    """The log of the partition has no such offset."""

    errno = 1
    message = "OFFSET_OUT_OF_RANGE"
    description = "The log of the partition has no such offset."


class CorruptRecordException(BrokerResponseError, kafkaio.CorruptRecord):
    """A record batch fails its checksum, or has no valid size."""

    errno = 2
    message = "CORRUPT_MESSAGE"
    description = "A record batch fails its checksum, or has no valid size."


#: An earlier name.
InvalidMessageError = CorruptRecordException


class UnknownTopicOrPartitionError(
    BrokerResponseError, kafkaio.UnknownTopicOrPartition
):
    """The broker has no such topic or partition."""

    errno = 3
    message = "UNKNOWN_TOPIC_OR_PARTITION"
    description = "The broker has no such topic or partition."
    retriable = True
    invalid_metadata = True


class InvalidFetchRequestError(BrokerResponseError):
    """The size that a fetch asks for is not valid."""

    errno = 4
    message = "INVALID_FETCH_SIZE"
    description = "The size that a fetch asks for is not valid."


class LeaderNotAvailableError(BrokerResponseError):
    """The partition has no leader now: an election is under way."""

    errno = 5
    message = "LEADER_NOT_AVAILABLE"
    description = "The partition has no leader now: an election is under way."
    retriable = True
    invalid_metadata = True


class NotLeaderForPartitionError(BrokerResponseError):
    """The broker is not the leader of the partition any more."""

    errno = 6
    message = "NOT_LEADER_FOR_PARTITION"
    description = "The broker is not the leader of the partition any more."
    retriable = True
    invalid_metadata = True


class RequestTimedOutError(BrokerResponseError, kafkaio.RequestTimeout):
    """The request was not answered within its time limit."""

    errno = 7  # type: ignore[mutable-override]  # of OSError
    message = "REQUEST_TIMED_OUT"
    description = "The request was not answered within its time limit."
    retriable = True


class BrokerNotAvailableError(BrokerResponseError):
    """The broker is not available."""

    errno = 8
    message = "BROKER_NOT_AVAILABLE"
    description = "The broker is not available."


class ReplicaNotAvailableError(BrokerResponseError):
    """The broker does not have the replica."""

    errno = 9
    message = "REPLICA_NOT_AVAILABLE"
    description = "The broker does not have the replica."


class MessageSizeTooLargeError(BrokerResponseError, kafkaio.RecordTooLarge):
    """A record is larger than the producer or the broker allows."""

    errno = 10
    message = "MESSAGE_SIZE_TOO_LARGE"
    description = "A record is larger than the producer or the broker allows."


class StaleControllerEpochError(BrokerResponseError):
    """The controller is not the current one."""

    errno = 11
    message = "STALE_CONTROLLER_EPOCH"
    description = "The controller is not the current one."


class OffsetMetadataTooLargeError(BrokerResponseError):
    """The text beside a committed offset is longer than the broker allows."""

    errno = 12
    message = "OFFSET_METADATA_TOO_LARGE"
    description = "The text beside a committed offset is longer than the broker allows."


class StaleLeaderEpochCodeError(BrokerResponseError):
    """The broker was disconnected before it had answered."""

    errno = 13
    message = "STALE_LEADER_EPOCH_CODE"
    description = "The broker was disconnected before it had answered."


class GroupLoadInProgressError(BrokerResponseError):
    """The coordinator is still loading its state."""

    errno = 14
    message = "COORDINATOR_LOAD_IN_PROGRESS"
    description = "The coordinator is still loading its state."
    retriable = True


#: An earlier name.
CoordinatorLoadInProgressError = GroupLoadInProgressError


class GroupCoordinatorNotAvailableError(BrokerResponseError):
    """The coordinator is not available."""

    errno = 15
    message = "COORDINATOR_NOT_AVAILABLE"
    description = "The coordinator is not available."
    retriable = True


#: An earlier name.
CoordinatorNotAvailableError = GroupCoordinatorNotAvailableError


class NotCoordinatorForGroupError(BrokerResponseError):
    """The broker is not the coordinator any more."""

    errno = 16
    message = "NOT_COORDINATOR"
    description = "The broker is not the coordinator any more."
    retriable = True


#: An earlier name.
NotCoordinatorError = NotCoordinatorForGroupError


class InvalidTopicError(BrokerResponseError, kafkaio.InvalidTopic):
    """The name of the topic is illegal, or the topic is internal."""

    errno = 17
    message = "INVALID_TOPIC"
    description = "The name of the topic is illegal, or the topic is internal."


class RecordListTooLargeError(BrokerResponseError):
    """A record batch is larger than a segment of the log."""

    errno = 18
    message = "RECORD_LIST_TOO_LARGE"
    description = "A record batch is larger than a segment of the log."


class NotEnoughReplicasError(BrokerResponseError):
    """Fewer replicas are in sync than the topic demands."""

    errno = 19
    message = "NOT_ENOUGH_REPLICAS"
    description = "Fewer replicas are in sync than the topic demands."
    retriable = True


class NotEnoughReplicasAfterAppendError(BrokerResponseError):
    """The records were written, but to fewer replicas than the topic demands."""

    errno = 20
    message = "NOT_ENOUGH_REPLICAS_AFTER_APPEND"
    description = (
        "The records were written, but to fewer replicas than the topic demands."
    )
    retriable = True


class InvalidRequiredAcksError(BrokerResponseError):
    """The number of acknowledgements is none of -1, 0 and 1."""

    errno = 21
    message = "INVALID_REQUIRED_ACKS"
    description = "The number of acknowledgements is none of -1, 0 and 1."


class IllegalGenerationError(BrokerResponseError, kafkaio.GroupError):
    """The generation is not the current one of the group."""

    errno = 22
    message = "ILLEGAL_GENERATION"
    description = "The generation is not the current one of the group."


class InconsistentGroupProtocolError(BrokerResponseError, kafkaio.GroupError):
    """The member has no assignor that all members of the group have."""

    errno = 23
    message = "INCONSISTENT_GROUP_PROTOCOL"
    description = "The member has no assignor that all members of the group have."


class InvalidGroupIdError(BrokerResponseError, kafkaio.GroupError):
    """The name of the group is not valid."""

    errno = 24
    message = "INVALID_GROUP_ID"
    description = "The name of the group is not valid."


class UnknownMemberIdError(BrokerResponseError, kafkaio.GroupError):
    """The group has no such member."""

    errno = 25
    message = "UNKNOWN_MEMBER_ID"
    description = "The group has no such member."


class InvalidSessionTimeoutError(BrokerResponseError, kafkaio.GroupError):
    """The session timeout is outside the bounds of the broker."""

    errno = 26
    message = "INVALID_SESSION_TIMEOUT"
    description = "The session timeout is outside the bounds of the broker."


class RebalanceInProgressError(
    BrokerResponseError, kafkaio.RebalanceInProgress, kafkaio.GroupError
):
    """The group is rebalancing: the member has to join again."""

    errno = 27
    message = "REBALANCE_IN_PROGRESS"
    description = "The group is rebalancing: the member has to join again."


class InvalidCommitOffsetSizeError(BrokerResponseError, kafkaio.GroupError):
    """The commit is larger than the broker allows."""

    errno = 28
    message = "INVALID_COMMIT_OFFSET_SIZE"
    description = "The commit is larger than the broker allows."


class TopicAuthorizationFailedError(BrokerResponseError, kafkaio.AuthorizationError):
    """The principal has no right to do that to the topic."""

    errno = 29
    message = "TOPIC_AUTHORIZATION_FAILED"
    description = "The principal has no right to do that to the topic."


class GroupAuthorizationFailedError(BrokerResponseError, kafkaio.AuthorizationError):
    """The principal has no right to do that to the group."""

    errno = 30
    message = "GROUP_AUTHORIZATION_FAILED"
    description = "The principal has no right to do that to the group."


class ClusterAuthorizationFailedError(BrokerResponseError, kafkaio.AuthorizationError):
    """The principal has no right to do that to the cluster."""

    errno = 31
    message = "CLUSTER_AUTHORIZATION_FAILED"
    description = "The principal has no right to do that to the cluster."


class InvalidTimestampError(BrokerResponseError):
    """The timestamp of a record is further from now than the topic allows."""

    errno = 32
    message = "INVALID_TIMESTAMP"
    description = "The timestamp of a record is further from now than the topic allows."


class UnsupportedSaslMechanismError(BrokerResponseError, kafkaio.AuthenticationError):
    """The broker does not offer the SASL mechanism."""

    errno = 33
    message = "UNSUPPORTED_SASL_MECHANISM"
    description = "The broker does not offer the SASL mechanism."


class IllegalSaslStateError(BrokerResponseError, kafkaio.AuthenticationError):
    """The request is not possible at this step of the login."""

    errno = 34
    message = "ILLEGAL_SASL_STATE"
    description = "The request is not possible at this step of the login."


class UnsupportedVersionError(BrokerResponseError, kafkaio.UnsupportedVersion):
    """The broker does not support the version of the request."""

    errno = 35
    message = "UNSUPPORTED_VERSION"
    description = "The broker does not support the version of the request."


class TopicAlreadyExistsError(BrokerResponseError):
    """The topic exists."""

    errno = 36
    message = "TOPIC_ALREADY_EXISTS"
    description = "The topic exists."


class InvalidPartitionsError(BrokerResponseError):
    """The number of partitions is not possible."""

    errno = 37
    message = "INVALID_PARTITIONS"
    description = "The number of partitions is not possible."


class InvalidReplicationFactorError(BrokerResponseError):
    """The replication factor is not possible, or exceeds the number of brokers."""

    errno = 38
    message = "INVALID_REPLICATION_FACTOR"
    description = (
        "The replication factor is not possible, or exceeds the number of brokers."
    )


class InvalidReplicationAssignmentError(BrokerResponseError):
    """The assignment of replicas to brokers is not possible."""

    errno = 39
    message = "INVALID_REPLICATION_ASSIGNMENT"
    description = "The assignment of replicas to brokers is not possible."


class InvalidConfigurationError(BrokerResponseError):
    """A config of the topic or broker is not valid."""

    errno = 40
    message = "INVALID_CONFIG"
    description = "A config of the topic or broker is not valid."


class NotControllerError(BrokerResponseError):
    """The broker is not the controller."""

    errno = 41
    message = "NOT_CONTROLLER"
    description = "The broker is not the controller."
    retriable = True


class InvalidRequestError(BrokerResponseError):
    """The broker takes the request for invalid."""

    errno = 42
    message = "INVALID_REQUEST"
    description = "The broker takes the request for invalid."


class UnsupportedForMessageFormatError(BrokerResponseError):
    """The message format of the topic does not support it."""

    errno = 43
    message = "UNSUPPORTED_FOR_MESSAGE_FORMAT"
    description = "The message format of the topic does not support it."


class PolicyViolationError(BrokerResponseError):
    """A policy of the cluster forbids it."""

    errno = 44
    message = "POLICY_VIOLATION"
    description = "A policy of the cluster forbids it."


class OutOfOrderSequenceNumber(BrokerResponseError):
    """A sequence number of the producer is missing: records were lost."""

    errno = 45
    message = "OUT_OF_ORDER_SEQUENCE_NUMBER"
    description = "A sequence number of the producer is missing: records were lost."


class DuplicateSequenceNumber(BrokerResponseError):
    """The broker has the sequence number of the producer already."""

    errno = 46
    message = "DUPLICATE_SEQUENCE_NUMBER"
    description = "The broker has the sequence number of the producer already."


class InvalidProducerEpoch(BrokerResponseError, kafkaio.Fenced):
    """A newer producer has the same transactional id."""

    errno = 47
    message = "INVALID_PRODUCER_EPOCH"
    description = "A newer producer has the same transactional id."


class InvalidTxnState(BrokerResponseError):
    """The transaction is not in a state that allows it."""

    errno = 48
    message = "INVALID_TXN_STATE"
    description = "The transaction is not in a state that allows it."


class InvalidProducerIdMapping(BrokerResponseError):
    """The transactional id has another producer id."""

    errno = 49
    message = "INVALID_PRODUCER_ID_MAPPING"
    description = "The transactional id has another producer id."


class InvalidTransactionTimeout(BrokerResponseError):
    """The time limit exceeds transaction.max.timeout.ms of the broker."""

    errno = 50
    message = "INVALID_TRANSACTION_TIMEOUT"
    description = "The time limit exceeds transaction.max.timeout.ms of the broker."


class ConcurrentTransactions(BrokerResponseError):
    """Another operation on the transaction has not ended yet."""

    errno = 51
    message = "CONCURRENT_TRANSACTIONS"
    description = "Another operation on the transaction has not ended yet."


class TransactionCoordinatorFenced(BrokerResponseError):
    """The transaction coordinator is not the current one."""

    errno = 52
    message = "TRANSACTION_COORDINATOR_FENCED"
    description = "The transaction coordinator is not the current one."


class TransactionalIdAuthorizationFailed(
    BrokerResponseError, kafkaio.AuthorizationError
):
    """The principal has no right to use the transactional id."""

    errno = 53
    message = "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
    description = "The principal has no right to use the transactional id."


class SecurityDisabled(BrokerResponseError):
    """The cluster has no authorizer."""

    errno = 54
    message = "SECURITY_DISABLED"
    description = "The cluster has no authorizer."


class OperationNotAttempted(BrokerResponseError):
    """The broker did not try it, because another part of the request failed."""

    errno = 55
    message = "OPERATION_NOT_ATTEMPTED"
    description = (
        "The broker did not try it, because another part of the request failed."
    )


class KafkaStorageError(BrokerResponseError):
    """The broker cannot use the disk of the partition."""

    errno = 56
    message = "KAFKA_STORAGE_ERROR"
    description = "The broker cannot use the disk of the partition."
    retriable = True
    invalid_metadata = True


class LogDirNotFound(BrokerResponseError):
    """The broker has no such log directory."""

    errno = 57
    message = "LOG_DIR_NOT_FOUND"
    description = "The broker has no such log directory."


class SaslAuthenticationFailed(BrokerResponseError, kafkaio.AuthenticationError):
    """The broker refused the login."""

    errno = 58
    message = "SASL_AUTHENTICATION_FAILED"
    description = "The broker refused the login."


class UnknownProducerId(BrokerResponseError):
    """The broker has no records of the producer any more."""

    errno = 59
    message = "UNKNOWN_PRODUCER_ID"
    description = "The broker has no records of the producer any more."


class ReassignmentInProgress(BrokerResponseError):
    """The partition is being reassigned."""

    errno = 60
    message = "REASSIGNMENT_IN_PROGRESS"
    description = "The partition is being reassigned."


class DelegationTokenAuthDisabled(BrokerResponseError):
    """The cluster has no delegation tokens."""

    errno = 61
    message = "DELEGATION_TOKEN_AUTH_DISABLED"
    description = "The cluster has no delegation tokens."


class DelegationTokenNotFound(BrokerResponseError):
    """There is no such delegation token."""

    errno = 62
    message = "DELEGATION_TOKEN_NOT_FOUND"
    description = "There is no such delegation token."


class DelegationTokenOwnerMismatch(BrokerResponseError):
    """The principal is neither owner nor renewer of the delegation token."""

    errno = 63
    message = "DELEGATION_TOKEN_OWNER_MISMATCH"
    description = "The principal is neither owner nor renewer of the delegation token."


class DelegationTokenRequestNotAllowed(BrokerResponseError):
    """The connection is not one that delegation tokens are given to."""

    errno = 64
    message = "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"
    description = "The connection is not one that delegation tokens are given to."


class DelegationTokenAuthorizationFailed(
    BrokerResponseError, kafkaio.AuthorizationError
):
    """The principal has no right to the delegation token."""

    errno = 65
    message = "DELEGATION_TOKEN_AUTHORIZATION_FAILED"
    description = "The principal has no right to the delegation token."


class DelegationTokenExpired(BrokerResponseError):
    """The delegation token has expired."""

    errno = 66
    message = "DELEGATION_TOKEN_EXPIRED"
    description = "The delegation token has expired."


class InvalidPrincipalType(BrokerResponseError):
    """There is no such kind of principal."""

    errno = 67
    message = "INVALID_PRINCIPAL_TYPE"
    description = "There is no such kind of principal."


class NonEmptyGroup(BrokerResponseError, kafkaio.GroupError):
    """The group has members."""

    errno = 68
    message = "NON_EMPTY_GROUP"
    description = "The group has members."


class GroupIdNotFound(BrokerResponseError, kafkaio.GroupError):
    """There is no such group."""

    errno = 69
    message = "GROUP_ID_NOT_FOUND"
    description = "There is no such group."


class FetchSessionIdNotFound(BrokerResponseError):
    """The broker has forgotten the fetch session."""

    errno = 70
    message = "FETCH_SESSION_ID_NOT_FOUND"
    description = "The broker has forgotten the fetch session."


class InvalidFetchSessionEpoch(BrokerResponseError):
    """The epoch of the fetch session is not the expected one."""

    errno = 71
    message = "INVALID_FETCH_SESSION_EPOCH"
    description = "The epoch of the fetch session is not the expected one."


class ListenerNotFound(BrokerResponseError):
    """The leader has no listener of the name by which the client is connected."""

    errno = 72
    message = "LISTENER_NOT_FOUND"
    description = (
        "The leader has no listener of the name by which the client is connected."
    )


class MemberIdRequired(BrokerResponseError, kafkaio.GroupError):
    """The member has to join again with the id that it was given."""

    errno = 79
    message = "MEMBER_ID_REQUIRED"
    description = "The member has to join again with the id that it was given."


def _subclasses(kind: type[BrokerResponseError]) -> list[type[BrokerResponseError]]:
    found = []
    for each in kind.__subclasses__():
        found += [each, *_subclasses(each)]
    return found


#: The class of each error code.
kafka_errors: dict[int, type[BrokerResponseError]] = {
    kind.errno: kind for kind in _subclasses(BrokerResponseError)
}


def for_code(error_code: int) -> type[BrokerResponseError]:
    """Return the class of an error code; `UnknownError` for one that has none."""
    return kafka_errors.get(error_code, UnknownError)
