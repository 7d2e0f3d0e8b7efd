"""Tools to test code that uses Kafka.

`Broker` is a Kafka cluster in the event loop, `GroupConfig` its settings for groups,
`SecurityConfig` those for authentication and rights.
The functions make faults for ``broker.faults.on``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkaio.testing._broker.faults import (
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
    from kafkaio.testing._embedded import Broker
    from kafkaio.testing._security.config import SecurityConfig
    from kafkaio.testing._security.oauthbearer import TokenClaims

__all__ = [
    "Broker",
    "GroupConfig",
    "SecurityConfig",
    "TokenClaims",
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
        "Broker": "_embedded",
        "GroupConfig": "_broker.group_config",
        "SecurityConfig": "_security.config",
        "TokenClaims": "_security.oauthbearer",
    }
    module = modules.get(name, "_broker.faults")
    value: object = getattr(import_module(f"{__name__}.{module}"), name)
    return value
