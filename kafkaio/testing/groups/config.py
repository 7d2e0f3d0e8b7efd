"""What can be set about groups in the embedded broker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["GroupConfig", "MigrationPolicy"]


#: Which groups change their protocol while they have members (KIP-848).
MigrationPolicy: TypeAlias = Literal[
    "bidirectional", "upgrade", "downgrade", "disabled"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """The broker's group settings; durations in seconds.

    The defaults are Kafka's, but for the two pauses that only cost time in a test:
    the initial rebalance delay (Kafka: 3 s) and the pause between two computations
    of an assignment (Kafka 4.3: 1 s) are 0.

    Attributes:
        initial_rebalance_delay: how long an empty classic group waits for more
            members after the first.
        min_session_timeout: the shortest session a classic member may ask for.
        max_session_timeout: the longest.
        max_size: members that one group may have.
        offset_metadata_max_bytes: the longest metadata of a committed offset.
        offsets_retention: how long an empty group keeps its offsets.
        load_time: how long a coordinator answers that it is loading: one that moved,
            and one that is asked for the first time after a start.
        consumer_session_timeout: session of members of the consumer protocol.
        consumer_heartbeat_interval: how often they are told to send heartbeats.
        assignment_interval: the least time between two target assignments.
        regex_refresh_interval: how often patterns are matched against new topics.
        migration_policy: ``group.consumer.migration.policy``: which groups change
            their protocol while they have members.
    """

    initial_rebalance_delay: float = 0.0
    min_session_timeout: float = 6.0
    max_session_timeout: float = 1800.0
    max_size: int = 2**31 - 1
    offset_metadata_max_bytes: int = 4096
    offsets_retention: float = 7 * 86400.0
    load_time: float = 0.0
    consumer_session_timeout: float = 45.0
    consumer_heartbeat_interval: float = 5.0
    assignment_interval: float = 0.0
    regex_refresh_interval: float = 600.0
    migration_policy: MigrationPolicy = "bidirectional"

    @property
    def allows_upgrade(self) -> bool:
        """Whether a classic group becomes one of the consumer protocol."""
        return self.migration_policy in {"bidirectional", "upgrade"}

    @property
    def allows_downgrade(self) -> bool:
        """Whether a group that the last such member left becomes a classic one."""
        return self.migration_policy in {"bidirectional", "downgrade"}
