"""The versions of each API that the broker serves, by release of Kafka.

The highest are those of the ApiVersions response of that release. They are known here
because ApiVersions is answered before any other handler is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from kafkaio.protocol._api_keys import ApiKey


@dataclass(frozen=True, slots=True)
class ServedVersions:
    """The versions of an API in one release.

    Attributes:
        lowest: the oldest version that is served.
        highest: the newest version that is served.
        advertised_lowest: the oldest version that ApiVersions reports.
    """

    lowest: int
    highest: int
    advertised_lowest: int


#: A release of Kafka whose API versions a broker can serve.
Release: TypeAlias = Literal["2.1", "2.8", "3.9", "4.0", "4.2", "4.3", "4.4"]
#: All of them, oldest first.
RELEASES: Final[tuple[Release, ...]] = (
    "2.1",
    "2.8",
    "3.9",
    "4.0",
    "4.2",
    "4.3",
    "4.4",
)
#: The newest, which a broker serves unless it is told otherwise.
NEWEST: Final[Release] = "4.4"

# The highest version in each of the releases; None where the API came later.
_HIGHEST: Final[Mapping[ApiKey, tuple[int | None, ...]]] = {
    ApiKey.PRODUCE: (7, 9, 11, 12, 13, 13, 13),
    ApiKey.FETCH: (10, 12, 17, 17, 18, 18, 18),
    ApiKey.LIST_OFFSETS: (4, 6, 9, 10, 11, 11, 11),
    ApiKey.METADATA: (7, 11, 12, 13, 13, 13, 13),
    ApiKey.OFFSET_COMMIT: (6, 8, 9, 9, 10, 10, 10),
    ApiKey.OFFSET_FETCH: (5, 7, 9, 9, 10, 10, 10),
    ApiKey.FIND_COORDINATOR: (2, 3, 6, 6, 6, 6, 6),
    ApiKey.JOIN_GROUP: (3, 7, 9, 9, 9, 9, 9),
    ApiKey.HEARTBEAT: (2, 4, 4, 4, 4, 4, 4),
    ApiKey.LEAVE_GROUP: (2, 4, 5, 5, 5, 5, 5),
    ApiKey.SYNC_GROUP: (2, 5, 5, 5, 5, 5, 5),
    ApiKey.DESCRIBE_GROUPS: (2, 5, 5, 6, 6, 6, 6),
    ApiKey.LIST_GROUPS: (2, 4, 5, 5, 5, 5, 5),
    ApiKey.SASL_HANDSHAKE: (1, 1, 1, 1, 1, 1, 1),
    ApiKey.API_VERSIONS: (2, 3, 4, 4, 4, 4, 5),
    ApiKey.CREATE_TOPICS: (3, 7, 7, 7, 7, 7, 7),
    ApiKey.DELETE_TOPICS: (3, 6, 6, 6, 6, 6, 6),
    ApiKey.DELETE_RECORDS: (1, 2, 2, 2, 2, 2, 2),
    ApiKey.INIT_PRODUCER_ID: (1, 4, 5, 5, 5, 5, 5),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (2, 4, 4, 4, 4, 4, 4),
    ApiKey.ADD_PARTITIONS_TO_TXN: (1, 3, 5, 5, 5, 5, 5),
    ApiKey.ADD_OFFSETS_TO_TXN: (1, 3, 4, 4, 4, 4, 4),
    ApiKey.END_TXN: (1, 3, 4, 5, 5, 5, 5),
    ApiKey.WRITE_TXN_MARKERS: (0, 1, 1, 1, 2, 2, 2),
    ApiKey.TXN_OFFSET_COMMIT: (2, 3, 4, 5, 5, 5, 6),
    ApiKey.DESCRIBE_ACLS: (1, 2, 3, 3, 3, 3, 3),
    ApiKey.CREATE_ACLS: (1, 2, 3, 3, 3, 3, 3),
    ApiKey.DELETE_ACLS: (1, 2, 3, 3, 3, 3, 3),
    ApiKey.DESCRIBE_CONFIGS: (2, 4, 4, 4, 4, 4, 4),
    ApiKey.ALTER_CONFIGS: (1, 2, 2, 2, 2, 2, 2),
    ApiKey.ALTER_REPLICA_LOG_DIRS: (1, 2, 2, 2, 2, 2, 2),
    ApiKey.DESCRIBE_LOG_DIRS: (1, 2, 4, 4, 4, 5, 5),
    ApiKey.SASL_AUTHENTICATE: (0, 2, 2, 2, 2, 2, 2),
    ApiKey.CREATE_PARTITIONS: (1, 3, 3, 3, 3, 3, 3),
    ApiKey.CREATE_DELEGATION_TOKEN: (1, 2, 3, 3, 3, 3, 3),
    ApiKey.RENEW_DELEGATION_TOKEN: (1, 2, 2, 2, 2, 2, 2),
    ApiKey.EXPIRE_DELEGATION_TOKEN: (1, 2, 2, 2, 2, 2, 2),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: (1, 2, 3, 3, 3, 3, 3),
    ApiKey.DELETE_GROUPS: (1, 2, 2, 2, 2, 2, 3),
    ApiKey.ELECT_LEADERS: (None, 2, 2, 2, 2, 2, 2),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (None, 1, 1, 1, 1, 1, 1),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (None, 0, 0, 0, 1, 1, 1),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (None, 0, 0, 0, 0, 0, 0),
    ApiKey.OFFSET_DELETE: (None, 0, 0, 0, 0, 0, 0),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (None, 1, 1, 1, 1, 1, 1),
    ApiKey.ALTER_CLIENT_QUOTAS: (None, 1, 1, 1, 1, 1, 1),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (None, 0, 0, 0, 0, 0, 0),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (None, 0, 0, 0, 0, 0, 0),
    ApiKey.DESCRIBE_QUORUM: (None, None, 2, 2, 2, 2, 2),
    ApiKey.UPDATE_FEATURES: (None, 0, 1, 2, 2, 2, 2),
    ApiKey.DESCRIBE_CLUSTER: (None, 0, 1, 2, 2, 2, 2),
    ApiKey.DESCRIBE_PRODUCERS: (None, 0, 0, 0, 0, 0, 0),
    ApiKey.UNREGISTER_BROKER: (None, None, 0, 0, 0, 0, 0),
    ApiKey.DESCRIBE_TRANSACTIONS: (None, None, 0, 0, 0, 0, 0),
    ApiKey.LIST_TRANSACTIONS: (None, None, 1, 1, 2, 2, 2),
    ApiKey.LIST_CONFIG_RESOURCES: (None, None, 0, 0, 1, 1, 1),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: (None, None, 0, 0, 0, 0, 0),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: (None, None, None, 0, 1, 1, 1),
    ApiKey.CONSUMER_GROUP_DESCRIBE: (None, None, None, 0, 1, 1, 1),
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: (None, None, 0, 0, 0, 0, 0),
    ApiKey.PUSH_TELEMETRY: (None, None, 0, 0, 0, 0, 0),
    ApiKey.SHARE_GROUP_HEARTBEAT: (None, None, None, None, 1, 1, 1),
    ApiKey.SHARE_GROUP_DESCRIBE: (None, None, None, None, 1, 1, 1),
    ApiKey.SHARE_FETCH: (None, None, None, None, 2, 2, 2),
    ApiKey.SHARE_ACKNOWLEDGE: (None, None, None, None, 2, 2, 2),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: (None, None, None, None, 1, 1, 1),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: (None, None, None, None, 0, 0, 0),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: (None, None, None, None, 0, 0, 0),
    ApiKey.UNREGISTER_CONTROLLER: (None, None, None, None, None, None, 0),
}

#: The oldest version that is served, where it is not 0: Kafka 4 has none before it.
_LOWEST: Final[Mapping[ApiKey, int]] = {
    ApiKey.PRODUCE: 3,
    ApiKey.FETCH: 4,
    ApiKey.LIST_OFFSETS: 1,
    ApiKey.OFFSET_COMMIT: 2,
    ApiKey.OFFSET_FETCH: 1,
    ApiKey.CREATE_TOPICS: 2,
    ApiKey.DELETE_TOPICS: 1,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: 2,
    ApiKey.WRITE_TXN_MARKERS: 1,
    ApiKey.DESCRIBE_ACLS: 1,
    ApiKey.CREATE_ACLS: 1,
    ApiKey.DELETE_ACLS: 1,
    ApiKey.DESCRIBE_CONFIGS: 1,
    ApiKey.ALTER_REPLICA_LOG_DIRS: 1,
    ApiKey.DESCRIBE_LOG_DIRS: 1,
    ApiKey.CREATE_DELEGATION_TOKEN: 1,
    ApiKey.RENEW_DELEGATION_TOKEN: 1,
    ApiKey.EXPIRE_DELEGATION_TOKEN: 1,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: 1,
    ApiKey.SHARE_GROUP_HEARTBEAT: 1,
    ApiKey.SHARE_GROUP_DESCRIBE: 1,
    ApiKey.SHARE_FETCH: 1,
    ApiKey.SHARE_ACKNOWLEDGE: 1,
}
#: The oldest version that ApiVersions reports, where it is older than the oldest that
#: is served. Kafka does the same for Produce, because old librdkafka versions need it.
_ADVERTISED_LOWEST: Final[Mapping[ApiKey, int]] = {ApiKey.PRODUCE: 0}


# The highest level of each feature in each of the releases; None where it came later.
# They are those that change what the broker serves.
_FEATURES: Final[Mapping[str, tuple[int | None, ...]]] = {
    "group.version": (None, None, None, 1, 1, 1, 1),
    "transaction.version": (None, None, None, 2, 2, 2, 2),
    # 2 brings the dead letters of share groups (KIP-1191).
    "share.version": (None, None, None, None, 1, 1, 2),
}


@dataclass(frozen=True, slots=True)
class Rules:
    """What a cluster of a release does, and one of another does not.

    Attributes:
        highest_levels: the features that the broker has, and their highest levels
            (KIP-584, KIP-1022); empty before 4.0.
        verifies_transactions: leaders ask the coordinator before the first batch of a
            transaction (KIP-890; in Kafka from 3.6 on).
        checks_first_sequence: leaders want the first sequence of a new epoch to be 0
            in the newer protocol of transactions; from 4.1 on.
        has_eligible_replicas: new clusters have eligible leader replicas (KIP-966).
        is_right_first: who may not alter the configs of brokers is told that, and not
            what is wrong with them.
        has_epochs_of_4_4: a KIP-848 group starts an epoch for another assignor, and the
            target of one that becomes empty has its epoch at once.
    """

    highest_levels: Mapping[str, int]
    verifies_transactions: bool
    checks_first_sequence: bool
    has_eligible_replicas: bool
    is_right_first: bool
    has_epochs_of_4_4: bool


def rules_of(release: str) -> Rules:
    """What a cluster of a release does.

    Raises:
        ValueError: the release is not one of ``RELEASES``.
    """
    column = RELEASES.index(release_of(release))
    levels = {name: row[column] for name, row in _FEATURES.items()}

    def is_from(first: Release) -> bool:
        return column >= RELEASES.index(first)

    return Rules(
        {name: level for name, level in levels.items() if level is not None},
        verifies_transactions=is_from("3.9"),
        checks_first_sequence=is_from("4.2"),
        has_eligible_replicas=is_from("4.2"),
        is_right_first=is_from("4.4"),
        has_epochs_of_4_4=is_from("4.4"),
    )


def release_of(name: str) -> Release:
    """Return the release of a name.

    Raises:
        ValueError: it is not one of ``RELEASES``.
    """
    for release in RELEASES:
        if name == release:
            return release
    known = ", ".join(RELEASES)
    raise ValueError(f"as_version={name!r}: must be one of {known}")


def versions_of(release: str) -> dict[ApiKey, ServedVersions]:
    """The versions of every API that a release has and the broker serves.

    Raises:
        ValueError: the release is not one of ``RELEASES``.
    """
    column = RELEASES.index(release_of(release))
    found = {}
    for api, row in _HIGHEST.items():
        lowest, highest = _LOWEST.get(api, 0), row[column]
        if highest is not None and highest >= lowest:
            advertised = _ADVERTISED_LOWEST.get(api, lowest)
            found[api] = ServedVersions(lowest, highest, advertised)
    return found
