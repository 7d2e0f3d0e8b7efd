"""Tools to test code that uses Kafka.

`Broker` is a Kafka cluster in the event loop, `GroupConfig` its settings for groups.
The functions make faults for ``broker.faults.on``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkaio.testing.broker.faults import (
        corrupt_bytes,
        delay,
        disconnect_after_write,
        disconnect_before_write,
        drop,
        duplicate,
        error,
        half_frame,
        metadata_lag,
        reorder,
        throttle,
    )
    from kafkaio.testing.broker.group_config import GroupConfig
    from kafkaio.testing.embedded import Broker

__all__ = [
    "Broker",
    "GroupConfig",
    "corrupt_bytes",
    "delay",
    "disconnect_after_write",
    "disconnect_before_write",
    "drop",
    "duplicate",
    "error",
    "half_frame",
    "metadata_lag",
    "reorder",
    "throttle",
]


def __getattr__(name: str) -> object:
    # Imported on first use: the fixtures of a real Kafka do not need the broker.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    modules = {"Broker": "embedded", "GroupConfig": "broker.group_config"}
    module = modules.get(name, "broker.faults")
    value: object = getattr(import_module(f"{__name__}.{module}"), name)
    return value
