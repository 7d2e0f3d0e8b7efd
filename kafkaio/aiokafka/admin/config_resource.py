"""`ConfigResource`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

__all__ = ["ConfigResource", "ConfigResourceType"]


class ConfigResourceType(IntEnum):
    """What has configs."""

    BROKER = 4
    TOPIC = 2


class ConfigResource:
    """A topic or a broker, and some of its configs.

    Args:
        resource_type: the kind, or its name in any case.
        name: name of the topic, or id of the broker.
        configs: values by name. To describe, the names alone count; None, or none, for
            all configs.

    Raises:
        KeyError: there is no such kind.
    """

    def __init__(
        self,
        resource_type: ConfigResourceType | str,
        name: str | int,
        configs: Mapping[str, str | None] | None = None,
    ) -> None:
        if not isinstance(resource_type, ConfigResourceType):
            resource_type = ConfigResourceType[str(resource_type).upper()]
        self.resource_type = resource_type
        self.name = name
        self.configs = configs
