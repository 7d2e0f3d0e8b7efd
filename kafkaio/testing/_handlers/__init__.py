"""The APIs of the embedded broker: one module each, named after the API.

A module has a function ``handle``, decorated by `handler`, and is imported with the
first request to its API: a test that only produces pays for no groups.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from kafkaio.protocol._api_keys import ApiKey
from kafkaio.testing._broker.node import HandlerPort, ServedApi
from kafkaio.testing._broker.versions import versions_of


@cache
def _handler_of(api: ApiKey) -> HandlerPort:
    found: HandlerPort = import_module(f"{__name__}.{api.name.lower()}").handle
    return found


def apis_of(release: str) -> dict[int, ServedApi]:
    """The APIs that a release of Kafka has and the broker serves, by Kafka's number.

    Raises:
        ValueError: the release is not known.
    """
    return {
        api: ServedApi(api, versions, _handler_of)
        for api, versions in versions_of(release).items()
    }
