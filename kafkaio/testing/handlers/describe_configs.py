"""DescribeConfigs, versions 1 to 4 (KIP-133, KIP-226, KIP-569)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafkaio.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from kafkaio.protocol.messages.request_header import RequestHeader
from kafkaio.testing.broker.connection import ServerConnection
from kafkaio.testing.broker.node import Node
from kafkaio.testing.broker.refusal import Refusal
from kafkaio.testing.broker.settings import Setting
from kafkaio.testing.handlers._configs import (
    BROKER,
    GROUP,
    TOPIC,
    check_name,
    known,
    need,
)

_KINDS: Final = {
    "boolean": 1, "string": 2, "int": 3, "long": 5, "double": 6, "list": 7
}  # fmt: skip
_SOURCES: Final = {TOPIC: 1, BROKER: 2, GROUP: 8}
_FROM_DEFAULTS: Final = 5


async def handle(
    node: Node,
    header: RequestHeader,
    request: DescribeConfigsRequest,
    connection: ServerConnection,
) -> DescribeConfigsResponse:
    """Tell the configs of topics, brokers and groups."""
    del header
    unknown = None
    try:
        for asked in request.resources:
            known(asked.resource_type)
    except Refusal as refusal:
        unknown = refusal  # of all of them
    return DescribeConfigsResponse(
        results=[
            _one(
                node,
                asked,
                connection,
                unknown,
                with_synonyms=request.include_synonyms,
            )
            for asked in request.resources
        ]
    )


def _one(
    node: Node,
    asked: DescribeConfigsResource,
    connection: ServerConnection,
    unknown: Refusal | None,
    *,
    with_synonyms: bool,
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(
        resource_type=asked.resource_type, resource_name=asked.resource_name
    )
    if unknown is not None:
        unknown.write_to(result)
        return result
    try:
        connection.check(asked.resource_name)
        check_name(node, asked.resource_type, asked.resource_name)
        values = need(node, asked.resource_type, asked.resource_name)
    except Refusal as refusal:
        refusal.write_to(result)
        return result
    wanted = asked.configuration_keys
    source = _SOURCES[asked.resource_type]
    result.configs = [
        _told(name, setting, values, source, with_synonyms=with_synonyms)
        for name, setting in known(asked.resource_type).items()
        if not wanted or name in wanted
    ]
    return result


def _told(
    name: str,
    setting: Setting,
    values: Mapping[str, str],
    source: int,
    *,
    with_synonyms: bool,
) -> DescribeConfigsResourceResult:
    synonyms = [
        DescribeConfigsSynonym(name=name, value=setting.default, source=_FROM_DEFAULTS)
    ]
    if name in values:
        synonyms.insert(
            0, DescribeConfigsSynonym(name=name, value=values[name], source=source)
        )
    return DescribeConfigsResourceResult(
        name=name,
        value=values.get(name, setting.default),
        config_source=source if name in values else _FROM_DEFAULTS,
        synonyms=synonyms if with_synonyms else [],
        config_type=_KINDS[setting.kind],
    )
