"""The APIs of the embedded broker: one module each, named after the API.

A module has a function ``handle(node, header, request, connection)`` and is imported
with the first request to its API. What has to be known earlier is here: the oldest
version that is served (the newest is that of the release, see
``kafkaio.testing._broker.versions``), and whether the answers have an error code for
each partition or other part, which a fault then sets (``connection.error_for``).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Final

from kafkaio.protocol._api_keys import ApiKey
from kafkaio.testing._broker.node import Handle, Handler
from kafkaio.testing._broker.versions import highest_versions

#: The oldest version that is served, where it is not 0.
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
}

#: The oldest version that ApiVersions reports, where it is older than the oldest that
#: is served. Kafka does the same for Produce, because old librdkafka versions need it.
_ADVERTISED_LOWEST: Final[Mapping[ApiKey, int]] = {ApiKey.PRODUCE: 0}

#: APIs whose answers have several error codes, for partitions, topics or the like.
_BY_PARTITION: Final = frozenset(
    {
        ApiKey.PRODUCE,
        ApiKey.FETCH,
        ApiKey.LIST_OFFSETS,
        ApiKey.METADATA,
        ApiKey.OFFSET_COMMIT,
        ApiKey.OFFSET_FETCH,
        ApiKey.FIND_COORDINATOR,
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.DELETE_RECORDS,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        ApiKey.ADD_PARTITIONS_TO_TXN,
        ApiKey.WRITE_TXN_MARKERS,
        ApiKey.TXN_OFFSET_COMMIT,
        ApiKey.DESCRIBE_PRODUCERS,
        ApiKey.DESCRIBE_TRANSACTIONS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.ELECT_LEADERS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.UPDATE_FEATURES,
    }
)


@cache
def _handle_of(api: ApiKey) -> Handle:
    handle: Handle = import_module(f"{__name__}.{api.name.lower()}").handle
    return handle


def handlers_of(release: str) -> dict[int, Handler]:
    """The handlers of the APIs that a release of Kafka has, by the API's number.

    Raises:
        ValueError: the release is not known.
    """
    return {
        api: Handler(
            api,
            _LOWEST.get(api, 0),
            highest,
            _handle_of,
            api in _BY_PARTITION,
            _ADVERTISED_LOWEST.get(api, _LOWEST.get(api, 0)),
        )
        for api, highest in highest_versions(release).items()
        if highest >= _LOWEST.get(api, 0)
    }
