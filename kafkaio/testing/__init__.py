"""Tools to test code that uses Kafka.

`Broker` is a Kafka cluster in the event loop, `GroupConfig` its settings for groups,
`SecurityConfig` those for authentication and rights. The functions make faults for
``broker.faults.on``. The other classes are those of a broker's attributes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkaio.testing._broker.clock import Clock
    from kafkaio.testing._broker.cluster import Topic
    from kafkaio.testing._broker.control import Control, OpenTransaction
    from kafkaio.testing._broker.faults import (
        Fault,
        Faults,
        Rule,
        close_at,
        corrupt_bytes,
        delay,
        disconnect_after_write,
        disconnect_before_write,
        drop,
        duplicate,
        endless_challenges,
        error,
        foreign_nonce,
        garbage,
        half_frame,
        invert_at,
        iteration_count,
        metadata_lag,
        reorder,
        stall_at,
        throttle,
        wrong_correlation_id,
        wrong_signature,
    )
    from kafkaio.testing._broker.group_config import GroupConfig
    from kafkaio.testing._broker.node import BrokerNode, LoggedRequest
    from kafkaio.testing._broker.telemetry import PushedTelemetry
    from kafkaio.testing._embedded import Broker
    from kafkaio.testing._security.acls import (
        Acl,
        AclFilter,
        AclStore,
        Operation,
        PatternType,
        Permission,
        ResourceType,
    )
    from kafkaio.testing._security.config import SecurityConfig
    from kafkaio.testing._security.credentials import Credentials
    from kafkaio.testing._security.oauthbearer import TokenClaims
    from kafkaio.testing._security.security import Security
    from kafkaio.testing._security.session import Authentications

__all__ = [
    "Acl",
    "AclFilter",
    "AclStore",
    "Authentications",
    "Broker",
    "BrokerNode",
    "Clock",
    "Control",
    "Credentials",
    "Fault",
    "Faults",
    "GroupConfig",
    "LoggedRequest",
    "OpenTransaction",
    "Operation",
    "PatternType",
    "Permission",
    "PushedTelemetry",
    "ResourceType",
    "Rule",
    "Security",
    "SecurityConfig",
    "TokenClaims",
    "Topic",
    "close_at",
    "corrupt_bytes",
    "delay",
    "disconnect_after_write",
    "disconnect_before_write",
    "drop",
    "duplicate",
    "endless_challenges",
    "error",
    "foreign_nonce",
    "garbage",
    "half_frame",
    "invert_at",
    "iteration_count",
    "metadata_lag",
    "reorder",
    "stall_at",
    "throttle",
    "wrong_correlation_id",
    "wrong_signature",
]


def __getattr__(name: str) -> object:
    # Imported on first use: the fixtures of a real Kafka do not need the broker.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    modules = {
        "Acl": "_security.acls",
        "AclFilter": "_security.acls",
        "AclStore": "_security.acls",
        "Authentications": "_security.session",
        "Broker": "_embedded",
        "BrokerNode": "_broker.node",
        "Clock": "_broker.clock",
        "Control": "_broker.control",
        "Credentials": "_security.credentials",
        "GroupConfig": "_broker.group_config",
        "LoggedRequest": "_broker.node",
        "OpenTransaction": "_broker.control",
        "Operation": "_security.acls",
        "PatternType": "_security.acls",
        "Permission": "_security.acls",
        "PushedTelemetry": "_broker.telemetry",
        "ResourceType": "_security.acls",
        "Security": "_security.security",
        "SecurityConfig": "_security.config",
        "TokenClaims": "_security.oauthbearer",
        "Topic": "_broker.cluster",
    }
    module = modules.get(name, "_broker.faults")
    value: object = getattr(import_module(f"{__name__}.{module}"), name)
    return value
