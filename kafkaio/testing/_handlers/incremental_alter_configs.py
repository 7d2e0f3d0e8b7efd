"""IncrementalAlterConfigs, versions 0 and 1 (KIP-339)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Final

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kafkaio.testing._broker.node import BrokerNode
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._broker.settings import Setting
from kafkaio.testing._handlers._configs import (
    change,
    check_asked,
    check_broker,
    configured,
    known,
)
from kafkaio.testing._handlers._handler import RequestContext, handler

_SET: Final = 0
_DELETE: Final = 1
_APPEND: Final = 2
_SUBTRACT: Final = 3
_OPERATIONS: Final = frozenset({_SET, _DELETE, _APPEND, _SUBTRACT})


@handler(IncrementalAlterConfigsRequest, by_partition=True)
async def handle(
    context: RequestContext[IncrementalAlterConfigsRequest],
) -> IncrementalAlterConfigsResponse:
    """Change single configs. A resource gets all of its changes or none."""
    request, node = context.request, context.node
    refused: dict[int, Refusal] = {}
    for number, asked in enumerate(request.resources):
        # Only a deletion needs no value.
        given = {one.name for one in asked.configs if one.config_operation != _DELETE}
        try:
            context.connection.check(asked.resource_name)
            check_asked(
                context,
                asked,
                request.resources,
                given,
                partial(_check_broker, node, asked),
            )
        except Refusal as refusal:
            refused[number] = refusal
    passed = [n for n in range(len(request.resources)) if n not in refused]
    operations = {
        one.config_operation for n in passed for one in request.resources[n].configs
    }
    # The controller refuses all resources if one has an unknown operation.
    fails = not operations <= _OPERATIONS
    for number in passed:
        if fails:
            refused[number] = Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
            continue
        try:
            _alter(
                node,
                request.resources[number],
                validate_only=request.validate_only,
            )
        except Refusal as refusal:
            refused[number] = refusal
    return IncrementalAlterConfigsResponse(
        responses=[
            _result(asked, refused.get(number))
            for number, asked in enumerate(request.resources)
        ]
    )


def _result(
    asked: AlterConfigsResource, refusal: Refusal | None
) -> AlterConfigsResourceResponse:
    result = AlterConfigsResourceResponse(
        resource_type=asked.resource_type,
        resource_name=asked.resource_name,
        error_message=None,
    )
    if refusal is not None:
        refusal.write_to(result)
    return result


def _check_broker(node: BrokerNode, asked: AlterConfigsResource) -> None:
    """Check what a broker checks before the controller: its own configs."""
    for config in asked.configs:
        if config.config_operation not in _OPERATIONS:
            raise Refusal(
                ErrorCode.INVALID_REQUEST,
                f"Unknown operations type {config.config_operation}",
            )
    check_broker(node, asked.resource_name, _changed(node, asked))


def _alter(
    node: BrokerNode, asked: AlterConfigsResource, *, validate_only: bool
) -> None:
    change(node, asked, _changed(node, asked), validate_only=validate_only)


def _changed(node: BrokerNode, asked: AlterConfigsResource) -> Mapping[str, str]:
    """All configs that a resource has after the change."""
    settings = known(asked.resource_type)
    values: dict[str, str] = {}
    with suppress(Refusal):  # `change` refuses a topic that does not exist, later
        values |= configured(node, asked.resource_type, asked.resource_name)
    for config in asked.configs:
        _change(values, settings.get(config.name), config)
    return values


def _change(
    values: dict[str, str], setting: Setting | None, config: AlterableConfig
) -> None:
    operation = config.config_operation
    if operation == _DELETE:
        values.pop(config.name, None)
        return
    value = config.value or ""
    if operation == _SET:
        values[config.name] = value
        return
    if setting is None or setting.kind != "list":
        raise Refusal(
            ErrorCode.INVALID_CONFIG, f"the type of {config.name} is not list"
        )
    items = values.get(config.name, setting.default or "").split(",")
    given = value.split(",")
    if operation == _APPEND:
        # Appending what is there already changes nothing.
        items += [item for item in given if item not in items]
    else:
        items = [item for item in items if item not in given]
    values[config.name] = ",".join(item for item in items if item)
