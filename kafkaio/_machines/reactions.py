"""The reaction to each error code: one table for every part of the client.

`BASE` has every code that Kafka has; `OVERRIDES` has the APIs in which a code means
something else, or needs another reaction. `reaction` reads both. The table only names
the reaction: the owner of the request performs it.

Sources: Kafka's ``Errors`` (retriable, refresh metadata), and the Java client's
handlers for what is particular to an API.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto

from kafkaio._dataclass import dataclass, replace
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode


class ReactionStep(Enum):
    """The action of the owner of a request, besides retrying."""

    NONE = auto()
    #: Nothing is wrong: the effect of the request is there already.
    SUCCESS = auto()
    #: Start over from the bootstrap servers (KIP-1102).
    REBOOTSTRAP = auto()
    #: Fetch or share session: begin a new one.
    RESET_SESSION = auto()
    #: The position is outside the log: follow the reset policy.
    RESET_POSITION = auto()
    #: The batch is too large: split it, or fail its only record.
    SPLIT_BATCH = auto()
    #: A gap in the sequence numbers: wait for the batch that is missing, or bump the
    #: epoch.
    CHECK_SEQUENCE = auto()
    #: The open transaction can only be aborted.
    ABORT = auto()
    #: Take part in the rebalance, as the same member.
    REJOIN = auto()
    #: The generation has ended; the member id stays valid.
    RESET_GENERATION = auto()
    #: The coordinator no longer knows the member: everything is lost.
    RESET_MEMBER = auto()
    #: The member has a newer epoch: send the request again with it.
    REFRESH_MEMBER = auto()
    #: Another instance took over, or no retry can help: the owner ends.
    FATAL = auto()


class Harm(Enum):
    """The consequence of a failed record for its transaction."""

    #: It must be aborted.
    ABORT = auto()
    #: It must be aborted, and the next one needs another epoch: the sequence has a gap,
    #: or the record may still be written.
    BUMP = auto()
    #: The producer can no longer be used.
    FATAL = auto()


@dataclass(frozen=True, slots=True)
class Reaction:
    """The reaction to an error code.

    Attributes:
        retry: the same request may succeed later, after a back-off.
        refresh_metadata: the client's metadata is out of date.
        refind_coordinator: the coordinator has moved.
        reroute: the broker did nothing, because it is the wrong one, if only for the
            moment. The request can be repeated, perhaps elsewhere, without harm.
        step: the further action of the owner of the request.
    """

    retry: bool = False
    refresh_metadata: bool = False
    refind_coordinator: bool = False
    reroute: bool = False
    step: ReactionStep = ReactionStep.NONE


_FINAL = Reaction()
_RETRY = Reaction(retry=True)
_REFRESH = Reaction(retry=True, refresh_metadata=True)
_WRONG_LEADER = Reaction(retry=True, refresh_metadata=True, reroute=True)
_WRONG_COORDINATOR = Reaction(retry=True, refind_coordinator=True, reroute=True)
_LOADING = Reaction(retry=True, reroute=True)
_SESSION = Reaction(retry=True, step=ReactionStep.RESET_SESSION)

_E = ErrorCode

#: All error codes, by reaction.
_GROUPS: tuple[tuple[Reaction, tuple[ErrorCode, ...]], ...] = (
    (Reaction(step=ReactionStep.SUCCESS), (_E.NONE,)),
    (
        _RETRY,
        (
            _E.CORRUPT_MESSAGE,
            _E.REQUEST_TIMED_OUT,
            _E.NOT_ENOUGH_REPLICAS,
            _E.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
            _E.CONCURRENT_TRANSACTIONS,
            _E.OFFSET_NOT_AVAILABLE,
            _E.UNSTABLE_OFFSET_COMMIT,
            _E.THROTTLING_QUOTA_EXCEEDED,
            _E.SHARE_SESSION_LIMIT_REACHED,
        ),
    ),
    (
        _REFRESH,
        (
            _E.UNKNOWN_TOPIC_OR_PARTITION,
            # The broker lags behind the client, or the client has a wrong epoch, which
            # only new metadata can correct.
            _E.UNKNOWN_LEADER_EPOCH,
            _E.REPLICA_NOT_AVAILABLE,
            _E.NETWORK_EXCEPTION,
            _E.KAFKA_STORAGE_ERROR,
            _E.LISTENER_NOT_FOUND,
            _E.PREFERRED_LEADER_NOT_AVAILABLE,
            _E.ELIGIBLE_LEADERS_NOT_AVAILABLE,
            _E.ELECTION_NOT_NEEDED,
            _E.UNKNOWN_TOPIC_ID,
            _E.INCONSISTENT_TOPIC_ID,
        ),
    ),
    (
        _WRONG_LEADER,
        (
            _E.LEADER_NOT_AVAILABLE,
            _E.NOT_LEADER_OR_FOLLOWER,
            _E.FENCED_LEADER_EPOCH,
            _E.NOT_CONTROLLER,
        ),
    ),
    (_WRONG_COORDINATOR, (_E.COORDINATOR_NOT_AVAILABLE, _E.NOT_COORDINATOR)),
    (_LOADING, (_E.COORDINATOR_LOAD_IN_PROGRESS,)),
    (
        _SESSION,
        (
            _E.FETCH_SESSION_ID_NOT_FOUND,
            _E.INVALID_FETCH_SESSION_EPOCH,
            _E.SHARE_SESSION_NOT_FOUND,
            _E.INVALID_SHARE_SESSION_EPOCH,
        ),
    ),
    (replace(_SESSION, refresh_metadata=True), (_E.FETCH_SESSION_TOPIC_ID_ERROR,)),
    (Reaction(step=ReactionStep.REBOOTSTRAP), (_E.REBOOTSTRAP_REQUIRED,)),
    (
        _FINAL,
        (
            _E.UNKNOWN_SERVER_ERROR,
            _E.OFFSET_OUT_OF_RANGE,
            _E.INVALID_FETCH_SIZE,
            _E.BROKER_NOT_AVAILABLE,
            _E.MESSAGE_TOO_LARGE,
            _E.STALE_CONTROLLER_EPOCH,
            _E.OFFSET_METADATA_TOO_LARGE,
            _E.INVALID_TOPIC_EXCEPTION,
            _E.RECORD_LIST_TOO_LARGE,
            _E.INVALID_REQUIRED_ACKS,
            _E.ILLEGAL_GENERATION,
            _E.INCONSISTENT_GROUP_PROTOCOL,
            _E.INVALID_GROUP_ID,
            _E.UNKNOWN_MEMBER_ID,
            _E.INVALID_SESSION_TIMEOUT,
            _E.REBALANCE_IN_PROGRESS,
            _E.INVALID_COMMIT_OFFSET_SIZE,
            _E.TOPIC_AUTHORIZATION_FAILED,
            _E.GROUP_AUTHORIZATION_FAILED,
            _E.CLUSTER_AUTHORIZATION_FAILED,
            _E.INVALID_TIMESTAMP,
            _E.UNSUPPORTED_SASL_MECHANISM,
            _E.ILLEGAL_SASL_STATE,
            _E.UNSUPPORTED_VERSION,
            _E.TOPIC_ALREADY_EXISTS,
            _E.INVALID_PARTITIONS,
            _E.INVALID_REPLICATION_FACTOR,
            _E.INVALID_REPLICA_ASSIGNMENT,
            _E.INVALID_CONFIG,
            _E.INVALID_REQUEST,
            _E.UNSUPPORTED_FOR_MESSAGE_FORMAT,
            _E.POLICY_VIOLATION,
            _E.OUT_OF_ORDER_SEQUENCE_NUMBER,
            _E.DUPLICATE_SEQUENCE_NUMBER,
            _E.INVALID_PRODUCER_EPOCH,
            _E.INVALID_TXN_STATE,
            _E.INVALID_PRODUCER_ID_MAPPING,
            _E.INVALID_TRANSACTION_TIMEOUT,
            _E.TRANSACTION_COORDINATOR_FENCED,
            _E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            _E.SECURITY_DISABLED,
            _E.OPERATION_NOT_ATTEMPTED,
            _E.LOG_DIR_NOT_FOUND,
            _E.SASL_AUTHENTICATION_FAILED,
            _E.UNKNOWN_PRODUCER_ID,
            _E.REASSIGNMENT_IN_PROGRESS,
            _E.DELEGATION_TOKEN_AUTH_DISABLED,
            _E.DELEGATION_TOKEN_NOT_FOUND,
            _E.DELEGATION_TOKEN_OWNER_MISMATCH,
            _E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
            _E.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
            _E.DELEGATION_TOKEN_EXPIRED,
            _E.INVALID_PRINCIPAL_TYPE,
            _E.NON_EMPTY_GROUP,
            _E.GROUP_ID_NOT_FOUND,
            _E.TOPIC_DELETION_DISABLED,
            _E.UNSUPPORTED_COMPRESSION_TYPE,
            _E.STALE_BROKER_EPOCH,
            _E.MEMBER_ID_REQUIRED,
            _E.GROUP_MAX_SIZE_REACHED,
            _E.FENCED_INSTANCE_ID,
            _E.NO_REASSIGNMENT_IN_PROGRESS,
            _E.GROUP_SUBSCRIBED_TO_TOPIC,
            _E.INVALID_RECORD,
            _E.PRODUCER_FENCED,
            _E.RESOURCE_NOT_FOUND,
            _E.DUPLICATE_RESOURCE,
            _E.UNACCEPTABLE_CREDENTIAL,
            _E.INCONSISTENT_VOTER_SET,
            _E.INVALID_UPDATE_VERSION,
            _E.FEATURE_UPDATE_FAILED,
            _E.PRINCIPAL_DESERIALIZATION_FAILURE,
            _E.SNAPSHOT_NOT_FOUND,
            _E.POSITION_OUT_OF_RANGE,
            _E.DUPLICATE_BROKER_REGISTRATION,
            _E.BROKER_ID_NOT_REGISTERED,
            _E.INCONSISTENT_CLUSTER_ID,
            _E.TRANSACTIONAL_ID_NOT_FOUND,
            _E.INELIGIBLE_REPLICA,
            _E.NEW_LEADER_ELECTED,
            _E.OFFSET_MOVED_TO_TIERED_STORAGE,
            _E.FENCED_MEMBER_EPOCH,
            _E.UNRELEASED_INSTANCE_ID,
            _E.UNSUPPORTED_ASSIGNOR,
            _E.STALE_MEMBER_EPOCH,
            _E.MISMATCHED_ENDPOINT_TYPE,
            _E.UNSUPPORTED_ENDPOINT_TYPE,
            _E.UNKNOWN_CONTROLLER_ID,
            _E.UNKNOWN_SUBSCRIPTION_ID,
            _E.TELEMETRY_TOO_LARGE,
            _E.INVALID_REGISTRATION,
            _E.TRANSACTION_ABORTABLE,
            _E.INVALID_RECORD_STATE,
            _E.FENCED_STATE_EPOCH,
            _E.INVALID_VOTER_KEY,
            _E.DUPLICATE_VOTER,
            _E.VOTER_NOT_FOUND,
            _E.INVALID_REGULAR_EXPRESSION,
            _E.STREAMS_INVALID_TOPOLOGY,
            _E.STREAMS_INVALID_TOPOLOGY_EPOCH,
            _E.STREAMS_TOPOLOGY_FENCED,
            _E.GROUP_DELETION_FAILED,
            _E.STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED,
            _E.CONTROLLER_ID_NOT_REGISTERED,
        ),
    ),
)

#: The reaction to each code, unless the API has another.
BASE: Mapping[ErrorCode, Reaction] = {
    code: reaction for reaction, codes in _GROUPS for code in codes
}

_FATAL = Reaction(step=ReactionStep.FATAL)
_ABORT = Reaction(step=ReactionStep.ABORT)
_REFIND = Reaction(retry=True, refind_coordinator=True)
_REJOIN = Reaction(retry=True, step=ReactionStep.REJOIN)
_NEW_GENERATION = Reaction(step=ReactionStep.RESET_GENERATION)
_NEW_MEMBER = Reaction(step=ReactionStep.RESET_MEMBER)

#: Refused permanently by a group, whatever the request was. A missing right is not
#: among them: it may be granted later.
_GROUP_FATAL = {
    _E.INVALID_GROUP_ID: _FATAL,
    _E.FENCED_INSTANCE_ID: _FATAL,
}
#: Answers of the group coordinator to a member of the classic protocol.
_CLASSIC_MEMBER = {
    **_GROUP_FATAL,
    _E.ILLEGAL_GENERATION: _NEW_GENERATION,
    _E.UNKNOWN_MEMBER_ID: _NEW_MEMBER,
    _E.REBALANCE_IN_PROGRESS: _REJOIN,
}
#: Answers of the transaction coordinator to a producer.
_TRANSACTION = {
    _E.PRODUCER_FENCED: _FATAL,
    _E.INVALID_PRODUCER_EPOCH: _FATAL,
    _E.INVALID_TXN_STATE: _FATAL,
    # The coordinator has forgotten an id that was idle: another identity is needed.
    _E.INVALID_PRODUCER_ID_MAPPING: _ABORT,
    _E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: _FATAL,
    _E.CLUSTER_AUTHORIZATION_FAILED: _FATAL,
    _E.UNSUPPORTED_VERSION: _FATAL,
    _E.TRANSACTION_ABORTABLE: _ABORT,
    _E.TOPIC_AUTHORIZATION_FAILED: _ABORT,
    _E.GROUP_AUTHORIZATION_FAILED: _ABORT,
    _E.OPERATION_NOT_ATTEMPTED: _ABORT,
    _E.UNKNOWN_PRODUCER_ID: _ABORT,
}
_LEADER_LOOKUP = {
    # These APIs answer per partition, as Fetch does, that the leader is elsewhere.
    _E.UNKNOWN_TOPIC_OR_PARTITION: _WRONG_LEADER,
    _E.REPLICA_NOT_AVAILABLE: _WRONG_LEADER,
    _E.KAFKA_STORAGE_ERROR: _WRONG_LEADER,
    _E.UNKNOWN_LEADER_EPOCH: _WRONG_LEADER,
    _E.OFFSET_NOT_AVAILABLE: _LOADING,
}
_SHARE = {
    _E.UNKNOWN_MEMBER_ID: _NEW_MEMBER,
    _E.FENCED_MEMBER_EPOCH: _NEW_MEMBER,
}

#: The reactions that differ, by API.
OVERRIDES: Mapping[int, Mapping[ErrorCode, Reaction]] = {
    ApiKey.PRODUCE: {
        _E.DUPLICATE_SEQUENCE_NUMBER: Reaction(step=ReactionStep.SUCCESS),
        _E.MESSAGE_TOO_LARGE: Reaction(step=ReactionStep.SPLIT_BATCH),
        _E.OUT_OF_ORDER_SEQUENCE_NUMBER: Reaction(step=ReactionStep.CHECK_SEQUENCE),
        _E.UNKNOWN_PRODUCER_ID: Reaction(step=ReactionStep.CHECK_SEQUENCE),
        _E.INVALID_PRODUCER_EPOCH: _ABORT,
        _E.INVALID_TXN_STATE: _ABORT,
        _E.TRANSACTION_ABORTABLE: _ABORT,
        _E.INVALID_PRODUCER_ID_MAPPING: _ABORT,
        _E.PRODUCER_FENCED: _FATAL,
        _E.CLUSTER_AUTHORIZATION_FAILED: _FATAL,
        _E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: _FATAL,
    },
    ApiKey.FETCH: {
        _E.OFFSET_OUT_OF_RANGE: Reaction(step=ReactionStep.RESET_POSITION),
        _E.CORRUPT_MESSAGE: _FINAL,
        _E.UNKNOWN_SERVER_ERROR: _RETRY,
        _E.OFFSET_NOT_AVAILABLE: _REFRESH,
    },
    ApiKey.LIST_OFFSETS: {
        **_LEADER_LOOKUP,
        # The broker or the topic is too old for a look-up by time: no offset, no error.
        _E.UNSUPPORTED_FOR_MESSAGE_FORMAT: Reaction(step=ReactionStep.SUCCESS),
    },
    ApiKey.OFFSET_FOR_LEADER_EPOCH: _LEADER_LOOKUP,
    ApiKey.DELETE_RECORDS: {
        _E.UNKNOWN_TOPIC_OR_PARTITION: _WRONG_LEADER,
        _E.KAFKA_STORAGE_ERROR: _WRONG_LEADER,
    },
    ApiKey.DESCRIBE_PRODUCERS: {_E.UNKNOWN_TOPIC_OR_PARTITION: _WRONG_LEADER},
    ApiKey.METADATA: {
        # The answer describes a topic; the broker was not the wrong one.
        _E.LEADER_NOT_AVAILABLE: _REFRESH,
        _E.UNKNOWN_SERVER_ERROR: _RETRY,
        # A replica of some partition is down: no reason to ask again.
        _E.REPLICA_NOT_AVAILABLE: _FINAL,
    },
    ApiKey.FIND_COORDINATOR: {
        # No coordinator was found yet, so there is none to find again.
        _E.COORDINATOR_NOT_AVAILABLE: _LOADING,
        _E.NOT_COORDINATOR: _LOADING,
        _E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: _FATAL,
        _E.INVALID_GROUP_ID: _FATAL,
    },
    ApiKey.JOIN_GROUP: {
        **_CLASSIC_MEMBER,
        _E.MEMBER_ID_REQUIRED: _REJOIN,
        _E.INCONSISTENT_GROUP_PROTOCOL: _FATAL,
        _E.INVALID_SESSION_TIMEOUT: _FATAL,
        _E.UNSUPPORTED_VERSION: _FATAL,
    },
    ApiKey.SYNC_GROUP: {**_CLASSIC_MEMBER, _E.INCONSISTENT_GROUP_PROTOCOL: _FATAL},
    ApiKey.HEARTBEAT: _CLASSIC_MEMBER,
    ApiKey.LEAVE_GROUP: {
        # The member is gone already, as requested.
        _E.UNKNOWN_MEMBER_ID: Reaction(step=ReactionStep.SUCCESS),
        _E.FENCED_INSTANCE_ID: Reaction(step=ReactionStep.SUCCESS),
    },
    ApiKey.OFFSET_COMMIT: {
        **_CLASSIC_MEMBER,
        # No retry by itself: the member has to join the rebalance first.
        _E.REBALANCE_IN_PROGRESS: Reaction(step=ReactionStep.REJOIN),
        _E.REQUEST_TIMED_OUT: _REFIND,
        _E.STALE_MEMBER_EPOCH: Reaction(step=ReactionStep.REFRESH_MEMBER),
        _E.FENCED_MEMBER_EPOCH: _NEW_MEMBER,
    },
    ApiKey.OFFSET_FETCH: {
        **_GROUP_FATAL,
        _E.ILLEGAL_GENERATION: _NEW_GENERATION,
        _E.UNKNOWN_MEMBER_ID: _NEW_MEMBER,
        _E.UNKNOWN_TOPIC_OR_PARTITION: _FINAL,
        _E.STALE_MEMBER_EPOCH: Reaction(retry=True, step=ReactionStep.REFRESH_MEMBER),
        _E.FENCED_MEMBER_EPOCH: _NEW_MEMBER,
    },
    ApiKey.CONSUMER_GROUP_HEARTBEAT: {
        **_GROUP_FATAL,
        _E.UNKNOWN_MEMBER_ID: _NEW_MEMBER,
        _E.FENCED_MEMBER_EPOCH: _NEW_MEMBER,
        _E.UNRELEASED_INSTANCE_ID: _FATAL,
        _E.UNSUPPORTED_ASSIGNOR: _FATAL,
        _E.INVALID_REQUEST: _FATAL,
        _E.INVALID_REGULAR_EXPRESSION: _FATAL,
        _E.UNSUPPORTED_VERSION: _FATAL,
        # This group, or this cluster, has the other protocol.
        _E.GROUP_ID_NOT_FOUND: _FATAL,
        _E.INCONSISTENT_GROUP_PROTOCOL: _FATAL,
    },
    ApiKey.SHARE_GROUP_HEARTBEAT: {
        **_GROUP_FATAL,
        **_SHARE,
        _E.INVALID_REQUEST: _FATAL,
        _E.GROUP_MAX_SIZE_REACHED: _FATAL,
        _E.UNSUPPORTED_VERSION: _FATAL,
        # The group of that name is of another kind.
        _E.GROUP_ID_NOT_FOUND: _FATAL,
        _E.INCONSISTENT_GROUP_PROTOCOL: _FATAL,
    },
    ApiKey.SHARE_FETCH: _SHARE,
    ApiKey.SHARE_ACKNOWLEDGE: _SHARE,
    ApiKey.INIT_PRODUCER_ID: {
        **_TRANSACTION,
        # Once the right is granted, the same producer may try again.
        _E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: _ABORT,
        _E.CLUSTER_AUTHORIZATION_FAILED: _ABORT,
        _E.INVALID_TRANSACTION_TIMEOUT: _FATAL,
        _E.INVALID_REQUEST: _FATAL,
    },
    ApiKey.ADD_PARTITIONS_TO_TXN: _TRANSACTION,
    ApiKey.ADD_OFFSETS_TO_TXN: _TRANSACTION,
    ApiKey.END_TXN: {
        **_TRANSACTION,
        # Some brokers answer this although the transaction ends: the outcome is open.
        _E.UNKNOWN_SERVER_ERROR: _RETRY,
    },
    ApiKey.TXN_OFFSET_COMMIT: {
        **_TRANSACTION,
        # A successor or a timeout: the end of the transaction shows which.
        _E.INVALID_PRODUCER_EPOCH: _ABORT,
        _E.UNSUPPORTED_FOR_MESSAGE_FORMAT: _FATAL,
        _E.OFFSET_METADATA_TOO_LARGE: _ABORT,
        _E.INVALID_COMMIT_OFFSET_SIZE: _ABORT,
        _E.REQUEST_TIMED_OUT: _REFIND,
        _E.ILLEGAL_GENERATION: _ABORT,
        _E.UNKNOWN_MEMBER_ID: _ABORT,
        _E.FENCED_INSTANCE_ID: _ABORT,
        _E.STALE_MEMBER_EPOCH: _ABORT,
    },
    ApiKey.ELECT_LEADERS: {
        # The preferred replica leads already, or an election would change nothing.
        _E.ELECTION_NOT_NEEDED: Reaction(step=ReactionStep.SUCCESS),
        _E.PREFERRED_LEADER_NOT_AVAILABLE: _FINAL,
        _E.ELIGIBLE_LEADERS_NOT_AVAILABLE: _FINAL,
    },
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: {_E.THROTTLING_QUOTA_EXCEEDED: _FINAL},
    ApiKey.PUSH_TELEMETRY: {_E.THROTTLING_QUOTA_EXCEEDED: _FINAL},
}


def known_code(code: int) -> ErrorCode:
    """The error code of that number; UNKNOWN_SERVER_ERROR if it is a newer one."""
    return ErrorCode(code)


def reaction(api_key: int, code: int) -> Reaction:
    """Return the reaction to ``code`` in an answer of ``api_key``; never raises."""
    error = ErrorCode(code)
    particular = OVERRIDES.get(api_key)
    if particular is not None and error in particular:
        return particular[error]
    return BASE[error]


def is_foreign(api_key: int, code: int) -> bool:
    """Whether a code is an error that this API does not have, as far as is known.

    It may be one wrong answer, or one of a newer broker. Whether the request had an
    effect is unknown.
    """
    error = ErrorCode(code)
    base = BASE[error]
    is_known = base.retry or base.step is ReactionStep.SUCCESS
    return not is_known and error not in OVERRIDES.get(api_key, {})
