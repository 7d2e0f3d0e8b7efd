"""Map the error codes of brokers to exceptions."""

from __future__ import annotations

from collections.abc import Mapping

from kafkaio.errors import (
    AuthorizationError,
    BrokerError,
    Fenced,
    GroupError,
    InvalidTopic,
    OffsetOutOfRange,
    UnknownTopicOrPartition,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode

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
        ErrorCode.GROUP_DELETION_FAILED,
        ErrorCode.STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED,
    ),
}

_CLASSES = {code: kind for kind, codes in _CODES.items() for code in codes}

#: The resource that each refusal is about.
_RESOURCES: Mapping[ErrorCode, str] = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "topic",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "group",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "cluster",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "transactional id",
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "delegation token",
}
#: The right that a request needs on a resource, as Kafka's documentation lists them
#: ("Authorization and ACLs").
_RIGHTS: Mapping[str, Mapping[int, str]] = {
    "topic": {
        ApiKey.PRODUCE: "WRITE",
        ApiKey.FETCH: "READ",
        ApiKey.LIST_OFFSETS: "DESCRIBE",
        ApiKey.METADATA: "DESCRIBE",
        ApiKey.OFFSET_COMMIT: "READ",
        ApiKey.OFFSET_FETCH: "DESCRIBE",
        ApiKey.CREATE_TOPICS: "CREATE",
        ApiKey.DELETE_TOPICS: "DELETE",
        ApiKey.DELETE_RECORDS: "DELETE",
        ApiKey.OFFSET_FOR_LEADER_EPOCH: "DESCRIBE",
        ApiKey.ADD_PARTITIONS_TO_TXN: "WRITE",
        ApiKey.TXN_OFFSET_COMMIT: "READ",
        ApiKey.DESCRIBE_CONFIGS: "DESCRIBE_CONFIGS",
        ApiKey.ALTER_CONFIGS: "ALTER_CONFIGS",
        ApiKey.INCREMENTAL_ALTER_CONFIGS: "ALTER_CONFIGS",
        ApiKey.CREATE_PARTITIONS: "ALTER",
        ApiKey.OFFSET_DELETE: "READ",
        ApiKey.DESCRIBE_PRODUCERS: "READ",
        ApiKey.CONSUMER_GROUP_HEARTBEAT: "DESCRIBE",
        ApiKey.CONSUMER_GROUP_DESCRIBE: "DESCRIBE",
        ApiKey.DESCRIBE_TOPIC_PARTITIONS: "DESCRIBE",
    },
    "group": {
        ApiKey.OFFSET_COMMIT: "READ",
        ApiKey.OFFSET_FETCH: "DESCRIBE",
        ApiKey.FIND_COORDINATOR: "DESCRIBE",
        ApiKey.JOIN_GROUP: "READ",
        ApiKey.HEARTBEAT: "READ",
        ApiKey.LEAVE_GROUP: "READ",
        ApiKey.SYNC_GROUP: "READ",
        ApiKey.DESCRIBE_GROUPS: "DESCRIBE",
        ApiKey.ADD_OFFSETS_TO_TXN: "READ",
        ApiKey.TXN_OFFSET_COMMIT: "READ",
        ApiKey.DELETE_GROUPS: "DELETE",
        ApiKey.OFFSET_DELETE: "DELETE",
        ApiKey.CONSUMER_GROUP_HEARTBEAT: "READ",
        ApiKey.CONSUMER_GROUP_DESCRIBE: "DESCRIBE",
    },
    "cluster": {
        ApiKey.CREATE_TOPICS: "CREATE",
        ApiKey.METADATA: "CREATE",
        ApiKey.WRITE_TXN_MARKERS: "ALTER",
        ApiKey.DESCRIBE_ACLS: "DESCRIBE",
        ApiKey.CREATE_ACLS: "ALTER",
        ApiKey.DELETE_ACLS: "ALTER",
        ApiKey.DESCRIBE_CONFIGS: "DESCRIBE_CONFIGS",
        ApiKey.ALTER_CONFIGS: "ALTER_CONFIGS",
        ApiKey.INCREMENTAL_ALTER_CONFIGS: "ALTER_CONFIGS",
        ApiKey.ALTER_REPLICA_LOG_DIRS: "ALTER",
        ApiKey.DESCRIBE_LOG_DIRS: "DESCRIBE",
        ApiKey.LIST_GROUPS: "DESCRIBE",
        ApiKey.ELECT_LEADERS: "ALTER",
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: "ALTER",
        ApiKey.LIST_PARTITION_REASSIGNMENTS: "DESCRIBE",
        ApiKey.DESCRIBE_CLUSTER: "DESCRIBE",
        ApiKey.DESCRIBE_CLIENT_QUOTAS: "DESCRIBE_CONFIGS",
        ApiKey.ALTER_CLIENT_QUOTAS: "ALTER_CONFIGS",
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: "DESCRIBE",
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS: "ALTER",
        ApiKey.DESCRIBE_QUORUM: "DESCRIBE",
        ApiKey.UPDATE_FEATURES: "ALTER",
        ApiKey.UNREGISTER_BROKER: "ALTER",
        ApiKey.UNREGISTER_CONTROLLER: "ALTER",
        ApiKey.ADD_RAFT_VOTER: "ALTER",
        ApiKey.REMOVE_RAFT_VOTER: "ALTER",
    },
    "transactional id": {
        ApiKey.PRODUCE: "WRITE",
        ApiKey.FIND_COORDINATOR: "DESCRIBE",
        ApiKey.INIT_PRODUCER_ID: "WRITE",
        ApiKey.ADD_PARTITIONS_TO_TXN: "WRITE",
        ApiKey.ADD_OFFSETS_TO_TXN: "WRITE",
        ApiKey.END_TXN: "WRITE",
        ApiKey.TXN_OFFSET_COMMIT: "WRITE",
        ApiKey.DESCRIBE_TRANSACTIONS: "DESCRIBE",
    },
}
#: Requests that a right on any topic allows, too.
_IDEMPOTENT = frozenset({ApiKey.INIT_PRODUCER_ID, ApiKey.PRODUCE})


#: Texts of error codes, for answers without a message. Those about rights are missing:
#: `broker_error` names the right.
_MEANINGS: Mapping[ErrorCode, str] = {
    ErrorCode.OFFSET_OUT_OF_RANGE: "the log has no such offset",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "there is no such topic or partition",
    ErrorCode.UNKNOWN_TOPIC_ID: "there is no topic with this id any more",
    ErrorCode.LEADER_NOT_AVAILABLE: "the partition has no leader now",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "the leader of the partition has changed",
    ErrorCode.REQUEST_TIMED_OUT: "the broker did not do it in time",
    ErrorCode.BROKER_NOT_AVAILABLE: "the broker is not available",
    ErrorCode.REPLICA_NOT_AVAILABLE: "the replica is not available",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "the coordinator is still loading",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "the coordinator is not available",
    ErrorCode.NOT_COORDINATOR: "the coordinator has moved",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "no topic can have this name",
    ErrorCode.NOT_ENOUGH_REPLICAS: "too few replicas are in sync",
    ErrorCode.TOPIC_ALREADY_EXISTS: "the topic exists",
    ErrorCode.INVALID_PARTITIONS: "the number of partitions is not possible",
    ErrorCode.INVALID_REPLICATION_FACTOR: "the cluster has too few brokers for it",
    ErrorCode.INVALID_CONFIG: "a config is not possible",
    ErrorCode.NOT_CONTROLLER: "the controller has changed",
    ErrorCode.INVALID_REQUEST: "the broker takes the request for invalid",
    ErrorCode.POLICY_VIOLATION: "a policy of the brokers forbids it",
    ErrorCode.KAFKA_STORAGE_ERROR: "the broker cannot use a log directory",
    ErrorCode.LOG_DIR_NOT_FOUND: "the broker has no such log directory",
    ErrorCode.NON_EMPTY_GROUP: "the group has members",
    ErrorCode.GROUP_ID_NOT_FOUND: "there is no such group",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "the group is subscribed to the topic",
    ErrorCode.UNKNOWN_MEMBER_ID: "the group has no such member",
    ErrorCode.INVALID_GROUP_ID: "no group can have this name",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "there is no such transactional id",
    ErrorCode.CONCURRENT_TRANSACTIONS: "another transaction has not ended yet",
    ErrorCode.UNSUPPORTED_VERSION: "the broker does not have it",
    ErrorCode.SECURITY_DISABLED: "the brokers have no authorizer",
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "the brokers have no delegation tokens",
    ErrorCode.DELEGATION_TOKEN_NOT_FOUND: "there is no such delegation token",
    ErrorCode.RESOURCE_NOT_FOUND: "there is no such resource",
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: "a quota of the brokers is used up",
    ErrorCode.ELECTION_NOT_NEEDED: "the leader is the right one",
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: "no replica can be elected",
    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS: "no reassignment is under way",
}


def meaning(code: int) -> str:
    """Return what an error code says in words; empty if the name has to do."""
    return _MEANINGS.get(ErrorCode(code), "")


def sentence(code: int, what: str) -> str:
    """Return a message for an answer that has a code and no words."""
    said = meaning(code)
    return f"{what}: {said}" if said else what


def broker_error(
    code: int,
    message: str,
    *,
    api: int = -1,
    topic: str = "",
    group: str = "",
    transactional_id: str = "",
) -> BrokerError:
    """Return the exception for an error code; ``message`` says what was refused.

    A newer broker may send a code that this release does not know. The exception then
    has the name UNKNOWN_SERVER_ERROR and is not retriable, but keeps the code.

    Args:
        code: the error code of an answer.
        message: what was refused.
        api: Kafka's number of the request, so that an `AuthorizationError` can say
            which right is missing; -1 if there was none.
        topic: the topic that the request was about, for the same purpose.
        group: the group that it was about.
        transactional_id: the transactional id that it was about.
    """
    # A code that is not known becomes UNKNOWN_SERVER_ERROR, which is not repeated.
    known = ErrorCode(code)
    kind = _CLASSES.get(known, BrokerError)
    if kind is AuthorizationError:
        resource = _RESOURCES[known]
        names = {"topic": topic, "group": group, "transactional id": transactional_id}
        return _unauthorized(known, message, api, resource, names.get(resource, ""))
    return kind(message, code=code, name=known.name, retriable=known.retriable)


def _unauthorized(
    code: ErrorCode, message: str, api: int, kind: str, name: str
) -> AuthorizationError:
    right = _RIGHTS.get(kind, {}).get(api, "")
    where = f"{kind} {name!r}" if name else f"the {kind}"
    if kind == "cluster" and api in _IDEMPOTENT:
        right = "IDEMPOTENT_WRITE"
        needs = (
            "the principal needs WRITE on a topic, or IDEMPOTENT_WRITE on the cluster"
        )
    elif kind == "topic" and api == ApiKey.METADATA:
        # Brokers hide what a principal may not describe: the answer is the same.
        what = where if name else "such topic"
        needs = f"there is no {what}, or the principal may not DESCRIBE it"
    elif right:
        needs = f"the principal needs {right} on {where}"
    else:
        needs = ""
    return AuthorizationError(
        f"{message}; {needs}" if needs else message,
        code=code,
        name=code.name,
        retriable=code.retriable,
        resource_type=kind,
        resource=name,
        operation=right,
    )
