"""The APIs of the embedded broker: one module each, named as the API.

A module has ``VERSIONS``, the oldest and the newest version that it serves, and
``handle(node, header, request, connection)``. It may have ``BY_PARTITION = True`` where
faults are errors of partitions (``connection.error_for``), and ``TOLD_LOWEST`` where
ApiVersions tells of an older version than is served, as Kafka does of Produce.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from kafkaio.protocol.api_keys import ApiKey
from kafkaio.testing.broker.node import Handler
from kafkaio.testing.broker.versions import highest_versions

__all__ = ["handlers_of"]


@cache
def _all() -> tuple[Handler, ...]:
    found = []
    for module_info in iter_modules(__path__):
        if module_info.name.startswith("_"):
            continue
        module = import_module(f"{__name__}.{module_info.name}")
        lowest, highest = module.VERSIONS
        found.append(
            Handler(
                ApiKey[module_info.name.upper()],
                lowest,
                highest,
                module.handle,
                getattr(module, "BY_PARTITION", False),
                getattr(module, "TOLD_LOWEST", lowest),
            )
        )
    return tuple(found)


def handlers_of(release: str) -> dict[int, Handler]:
    """What serves the APIs of a release of Kafka, by the number of the API.

    Raises:
        ValueError: if the release is not known.
    """
    caps = highest_versions(release)
    return {
        handler.api: Handler(
            handler.api,
            handler.lowest,
            min(handler.highest, caps[handler.api]),
            handler.handle,
            handler.by_partition,
            handler.told_lowest,
        )
        for handler in _all()
        if handler.api in caps and caps[handler.api] >= handler.lowest
    }
