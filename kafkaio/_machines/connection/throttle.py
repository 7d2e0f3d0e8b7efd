"""When a broker's quota makes the client pause (KIP-219).

A broker that enforces a quota answers first, with the time by which the quota was
exceeded, and then reads nothing more from the connection for that time. In older
versions of an API it delays the answer instead, so the client has to do nothing. From
the version in ``THROTTLED_FROM`` on it relies on the client to pause. The window of a
quota is a second, and eleven are counted: no honest broker demands more than some
minutes, and one that demands 24 days is wrong. So the pause has a limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._message import Response

#: The version of each API from which the client has to pause by itself. An API that is
#: not listed is younger than the rule, and follows it from version 0.
THROTTLED_FROM: Final[Mapping[int, int]] = MappingProxyType(
    {
        ApiKey.PRODUCE: 6,
        ApiKey.FETCH: 8,
        ApiKey.LIST_OFFSETS: 3,
        ApiKey.METADATA: 6,
        ApiKey.OFFSET_COMMIT: 4,
        ApiKey.OFFSET_FETCH: 4,
        ApiKey.FIND_COORDINATOR: 2,
        ApiKey.JOIN_GROUP: 3,
        ApiKey.HEARTBEAT: 2,
        ApiKey.LEAVE_GROUP: 2,
        ApiKey.SYNC_GROUP: 2,
        ApiKey.DESCRIBE_GROUPS: 2,
        ApiKey.LIST_GROUPS: 2,
        ApiKey.API_VERSIONS: 2,
        ApiKey.CREATE_TOPICS: 3,
        ApiKey.DELETE_TOPICS: 2,
        ApiKey.DELETE_RECORDS: 1,
        ApiKey.INIT_PRODUCER_ID: 1,
        ApiKey.ADD_PARTITIONS_TO_TXN: 1,
        ApiKey.ADD_OFFSETS_TO_TXN: 1,
        ApiKey.END_TXN: 1,
        ApiKey.TXN_OFFSET_COMMIT: 1,
        ApiKey.DESCRIBE_ACLS: 1,
        ApiKey.CREATE_ACLS: 1,
        ApiKey.DELETE_ACLS: 1,
        ApiKey.DESCRIBE_CONFIGS: 2,
        ApiKey.ALTER_CONFIGS: 1,
        ApiKey.ALTER_REPLICA_LOG_DIRS: 1,
        ApiKey.DESCRIBE_LOG_DIRS: 1,
        ApiKey.CREATE_PARTITIONS: 1,
        ApiKey.CREATE_DELEGATION_TOKEN: 1,
        ApiKey.RENEW_DELEGATION_TOKEN: 1,
        ApiKey.EXPIRE_DELEGATION_TOKEN: 1,
        ApiKey.DESCRIBE_DELEGATION_TOKEN: 1,
        ApiKey.DELETE_GROUPS: 1,
    }
)


def pause_after(response: Response, version: int, longest: float) -> float:
    """Seconds to pause after an answer of that version, at most ``longest``."""
    throttle_ms: int = getattr(response, "throttle_time_ms", 0)
    if throttle_ms <= 0 or version < THROTTLED_FROM.get(response.API_KEY, 0):
        return 0.0
    return min(throttle_ms / 1000, longest)
