"""The group settings of the embedded broker, and Kafka's configs for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from kafkaio._public import public

#: Which groups can change their protocol while they have members (KIP-848).
MigrationPolicy: TypeAlias = Literal[
    "bidirectional", "upgrade", "downgrade", "disabled"
]


#: Kafka's broker config for each setting that has one; for durations, how many of its
#: units make a second.
_NAMES: Final[Mapping[str, tuple[str, float | None]]] = {
    "initial_rebalance_delay": ("group.initial.rebalance.delay.ms", 1000),
    "min_session_timeout": ("group.min.session.timeout.ms", 1000),
    "max_session_timeout": ("group.max.session.timeout.ms", 1000),
    "max_size": ("group.max.size", None),
    "offset_metadata_max_bytes": ("offset.metadata.max.bytes", None),
    "offsets_retention": ("offsets.retention.minutes", 1 / 60),
    "consumer_session_timeout": ("group.consumer.session.timeout.ms", 1000),
    "consumer_heartbeat_interval": ("group.consumer.heartbeat.interval.ms", 1000),
    "assignment_interval": ("group.consumer.assignment.interval.ms", 1000),
    "regex_refresh_interval": ("group.consumer.regex.refresh.interval.ms", 1000),
    "migration_policy": ("group.consumer.migration.policy", None),
    "share_session_timeout": ("group.share.session.timeout.ms", 1000),
    "share_heartbeat_interval": ("group.share.heartbeat.interval.ms", 1000),
    "share_assignment_interval": ("group.share.assignment.interval.ms", 1000),
    "share_max_size": ("group.share.max.size", None),
}
#: The configs of a KIP-848 or a share group, and the broker configs that they override.
_OF_A_GROUP: Final[Mapping[str, str]] = {
    "consumer.session.timeout.ms": "group.consumer.session.timeout.ms",
    "consumer.heartbeat.interval.ms": "group.consumer.heartbeat.interval.ms",
    "consumer.assignment.interval.ms": "group.consumer.assignment.interval.ms",
    "share.session.timeout.ms": "group.share.session.timeout.ms",
    "share.heartbeat.interval.ms": "group.share.heartbeat.interval.ms",
    "share.assignment.interval.ms": "group.share.assignment.interval.ms",
}


@public("kafkaio.testing")
@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """The group settings of a ``Broker``. Durations are in seconds.

    The defaults are Kafka's, except for the pauses that only cost time in a test: the
    initial rebalance delay (Kafka: 3 s) and the pauses between two target assignments
    (Kafka 4.3: 1 s) are 0.

    Attributes:
        initial_rebalance_delay: how long an empty classic group waits for more members
            after the first has joined.
        min_session_timeout: the shortest session timeout of a classic member.
        max_session_timeout: the longest session timeout of a classic member.
        max_size: the most members that a group can have.
        offset_metadata_max_bytes: the most bytes of metadata with a committed offset.
        offsets_retention: how long an empty group keeps its committed offsets.
        load_time: how long a coordinator answers COORDINATOR_LOAD_IN_PROGRESS after it
            became the coordinator, or after its first request since the start.
        consumer_session_timeout: the session timeout of KIP-848 members.
        consumer_heartbeat_interval: the heartbeat interval of KIP-848 members.
        assignment_interval: the least time between two target assignments of a KIP-848
            group.
        regex_refresh_interval: how often subscribed patterns are matched against the
            topics again.
        migration_policy: which groups can change their protocol while they have
            members: ``group.consumer.migration.policy``.
        share_session_timeout: the session timeout of members of share groups.
        share_heartbeat_interval: their heartbeat interval.
        share_assignment_interval: the least time between two target assignments of a
            share group.
        share_max_size: the most members that a share group can have.
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
    share_session_timeout: float = 45.0
    share_heartbeat_interval: float = 5.0
    share_assignment_interval: float = 0.0
    share_max_size: int = 200

    @property
    def allows_upgrade(self) -> bool:
        """Whether a classic group with members can become a KIP-848 group."""
        return self.migration_policy in {"bidirectional", "upgrade"}

    @property
    def allows_downgrade(self) -> bool:
        """Whether a KIP-848 group with only classic members left becomes classic."""
        return self.migration_policy in {"bidirectional", "downgrade"}

    def as_configs(self) -> dict[str, str]:
        """Return these settings as broker configs, by Kafka's names."""
        found = {}
        for setting, (name, per_second) in _NAMES.items():
            value = getattr(self, setting)
            found[name] = str(
                value if per_second is None else round(value * per_second)
            )
        return found

    def with_configs(self, configs: Mapping[str, str]) -> GroupConfig:
        """Return these settings, overridden by configs of a broker."""
        changed: dict[str, Any] = {}
        for setting, (name, per_second) in _NAMES.items():
            if name not in configs:
                continue
            text = configs[name].strip()
            if per_second is not None:
                changed[setting] = int(text) / per_second
            elif setting == "migration_policy":
                changed[setting] = text.lower()
            else:
                changed[setting] = int(text)
        return replace(self, **changed) if changed else self

    def of_group(self, configs: Mapping[str, str]) -> GroupConfig:
        """Return these settings, overridden by the configs of a group."""
        own = {
            _OF_A_GROUP[name]: configs[name] for name in _OF_A_GROUP if name in configs
        }
        return self.with_configs(own)
