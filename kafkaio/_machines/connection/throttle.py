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

from kafkaio.protocol import _api_numbers as apis
from kafkaio.protocol._message import Response

#: The version of each API from which the client has to pause by itself. An API that is
#: not listed is younger than the rule, and follows it from version 0.
THROTTLED_FROM: Final[Mapping[int, int]] = MappingProxyType(
    {
        apis.PRODUCE: 6,
        apis.FETCH: 8,
        apis.LIST_OFFSETS: 3,
        apis.METADATA: 6,
        apis.OFFSET_COMMIT: 4,
        apis.OFFSET_FETCH: 4,
        apis.FIND_COORDINATOR: 2,
        apis.JOIN_GROUP: 3,
        apis.HEARTBEAT: 2,
        apis.LEAVE_GROUP: 2,
        apis.SYNC_GROUP: 2,
        apis.DESCRIBE_GROUPS: 2,
        apis.LIST_GROUPS: 2,
        apis.API_VERSIONS: 2,
        apis.CREATE_TOPICS: 3,
        apis.DELETE_TOPICS: 2,
        apis.DELETE_RECORDS: 1,
        apis.INIT_PRODUCER_ID: 1,
        apis.ADD_PARTITIONS_TO_TXN: 1,
        apis.ADD_OFFSETS_TO_TXN: 1,
        apis.END_TXN: 1,
        apis.TXN_OFFSET_COMMIT: 1,
        apis.DESCRIBE_ACLS: 1,
        apis.CREATE_ACLS: 1,
        apis.DELETE_ACLS: 1,
        apis.DESCRIBE_CONFIGS: 2,
        apis.ALTER_CONFIGS: 1,
        apis.ALTER_REPLICA_LOG_DIRS: 1,
        apis.DESCRIBE_LOG_DIRS: 1,
        apis.CREATE_PARTITIONS: 1,
        apis.CREATE_DELEGATION_TOKEN: 1,
        apis.RENEW_DELEGATION_TOKEN: 1,
        apis.EXPIRE_DELEGATION_TOKEN: 1,
        apis.DESCRIBE_DELEGATION_TOKEN: 1,
        apis.DELETE_GROUPS: 1,
    }
)


def pause_after(response: Response, version: int, longest: float) -> float:
    """Seconds to pause after an answer of that version, at most ``longest``."""
    throttle_ms: int = getattr(response, "throttle_time_ms", 0)
    if throttle_ms <= 0 or version < THROTTLED_FROM.get(response.API_KEY, 0):
        return 0.0
    return min(throttle_ms / 1000, longest)
