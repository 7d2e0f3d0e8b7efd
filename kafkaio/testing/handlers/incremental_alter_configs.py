"""IncrementalAlterConfigs, versions 0 and 1 (KIP-339)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kafkaio.protocol.messages.request_header import RequestHeader
from kafkaio.testing.broker.connection import ServerConnection
from kafkaio.testing.broker.node import Node
from kafkaio.testing.broker.refusal import Refusal
from kafkaio.testing.broker.settings import Setting, validate
from kafkaio.testing.handlers._configs import TOPIC, known, replace, stored

_SET: Final = 0
_DELETE: Final = 1
_APPEND: Final = 2
_SUBTRACT: Final = 3


async def handle(
    node: Node,
    header: RequestHeader,
    request: IncrementalAlterConfigsRequest,
    connection: ServerConnection,
) -> IncrementalAlterConfigsResponse:
    """Change single configs; each resource changes as a whole or not at all."""
    del header
    response = IncrementalAlterConfigsResponse()
    for asked in request.resources:
        result = AlterConfigsResourceResponse(
            resource_type=asked.resource_type, resource_name=asked.resource_name
        )
        try:
            connection.check(asked.resource_name)
            _alter(node, asked, validate_only=request.validate_only)
        except Refusal as refusal:
            result.error_code = refusal.code
            result.error_message = refusal.message
        response.responses.append(result)
    return response


def _alter(node: Node, asked: AlterConfigsResource, *, validate_only: bool) -> None:
    settings = known(asked.resource_type)
    # What cannot be for any resource is refused before this one is looked for.
    changed = _changed({}, settings, asked)
    given = {one.name for one in asked.configs if one.config_operation == _SET}
    _check(settings, {name: changed[name] for name in given & changed.keys()})
    if asked.resource_type == TOPIC and not asked.resource_name:
        raise Refusal(ErrorCode.INVALID_REQUEST, "there are no defaults for topics")
    values = stored(node, asked.resource_type, asked.resource_name)
    changed = _changed(values, settings, asked)
    _check(settings, changed)
    if not validate_only:
        replace(node, asked.resource_type, asked.resource_name, changed)


def _changed(
    values: Mapping[str, str],
    settings: Mapping[str, Setting],
    asked: AlterConfigsResource,
) -> dict[str, str]:
    changed = dict(values)
    for config in asked.configs:
        _change(changed, settings.get(config.name), config)
    return changed


def _check(settings: Mapping[str, Setting], values: Mapping[str, str]) -> None:
    for name, value in values.items():
        validate(settings, name, value)


def _change(
    values: dict[str, str], setting: Setting | None, config: AlterableConfig
) -> None:
    operation = config.config_operation
    if operation == _DELETE:
        values.pop(config.name, None)
        return
    if config.value is None:
        raise Refusal(
            ErrorCode.INVALID_REQUEST, f"Null value not supported for {config.name}"
        )
    if operation == _SET:
        values[config.name] = config.value
        return
    if operation not in {_APPEND, _SUBTRACT}:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"unknown operation {operation}")
    if setting is None or setting.kind != "list":
        raise Refusal(
            ErrorCode.INVALID_CONFIG, f"{config.name} is no list to add to or take from"
        )
    items = values.get(config.name, setting.default).split(",")
    given = config.value.split(",")
    if operation == _APPEND:
        items += [item for item in given if item not in items]
    else:
        items = [item for item in items if item not in given]
    values[config.name] = ",".join(item for item in items if item)
