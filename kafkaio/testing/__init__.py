"""What users need to test against Kafka.

`Broker` is a cluster in the event loop; the functions beside it are what can go wrong
with it, for ``broker.faults.on``.
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
    from kafkaio.testing.embedded import Broker
    from kafkaio.testing.groups.config import GroupConfig

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
    # On first use: the fixtures of a real Kafka have no need of it.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    homes = {"Broker": "embedded", "GroupConfig": "groups.config"}
    home = homes.get(name, "broker.faults")
    value: object = getattr(import_module(f"{__name__}.{home}"), name)
    return value
