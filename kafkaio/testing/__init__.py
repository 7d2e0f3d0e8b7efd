"""What users need to test against Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkaio.testing.embedded import Broker

__all__ = ["Broker"]


def __getattr__(name: str) -> object:
    # On first use: the fixtures of a real Kafka have no need of it.
    if name == "Broker":
        from kafkaio.testing.embedded import Broker

        return Broker
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
