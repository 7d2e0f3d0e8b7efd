"""What the three APIs of configs share: which resources there are, and their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.testing.broker.node import Node
from kafkaio.testing.broker.refusal import Refusal
from kafkaio.testing.broker.settings import (
    BROKER_DEFAULTS,
    TOPIC_DEFAULTS,
    Setting,
    validate,
)

__all__ = [
    "BROKER",
    "GROUP",
    "TOPIC",
    "change",
    "check_asked",
    "check_name",
    "known",
    "need",
]

TOPIC: Final = 2
BROKER: Final = 4
GROUP: Final = 32

# The settings of a group, as Kafka 4.3 has them, for groups of the new protocol.
_GROUP_DEFAULTS: Final[Mapping[str, Setting]] = {
    "consumer.heartbeat.interval.ms": Setting("int", "5000", least=5000, most=15_000),
    "consumer.session.timeout.ms": Setting("int", "45000", least=45_000, most=60_000),
}


class _Config(Protocol):
    name: str
    value: str | None


class _Resource(Protocol):
    @property
    def resource_type(self) -> int: ...
    @property
    def resource_name(self) -> str: ...
    @property
    def configs(self) -> Sequence[_Config]: ...


def known(resource_type: int) -> Mapping[str, Setting]:
    """The configs that a kind of resource has.

    Raises:
        Refusal: INVALID_REQUEST for a kind that is not there.
    """
    if resource_type == TOPIC:
        return TOPIC_DEFAULTS
    if resource_type == BROKER:
        return BROKER_DEFAULTS
    if resource_type == GROUP:
        return _GROUP_DEFAULTS
    raise Refusal(
        ErrorCode.INVALID_REQUEST, f"Unsupported resource type {resource_type}"
    )


def check_name(node: Node, resource_type: int, name: str) -> None:
    """Hold the name of a resource against what its kind may be called.

    Raises:
        Refusal: INVALID_TOPIC_EXCEPTION, INVALID_REQUEST.
    """
    if resource_type == TOPIC:
        node.cluster.check_name(name)
    elif resource_type == BROKER and name not in {"", str(node.node_id)}:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"this is not broker {name}")
    elif resource_type == GROUP and not name:
        raise Refusal(ErrorCode.INVALID_REQUEST, "a group has to have a name")


def need(node: Node, resource_type: int, name: str) -> dict[str, str]:
    """Where the configs that were set for a resource are kept.

    Raises:
        Refusal: UNKNOWN_TOPIC_OR_PARTITION.
    """
    if resource_type == TOPIC:
        return node.cluster.need_topic(name).settings.values
    return node.cluster.configs.setdefault((resource_type, name), {})


def check_asked(
    node: Node, asked: _Resource, among: Sequence[_Resource], needs_value: set[str]
) -> None:
    """What a broker looks at before it asks the controller for a change.

    Args:
        node: the broker.
        asked: a resource.
        among: all that the request is about.
        needs_value: the configs that cannot be set to nothing.

    Raises:
        Refusal: INVALID_REQUEST.
    """
    known(asked.resource_type)
    key = (asked.resource_type, asked.resource_name)
    names = [config.name for config in asked.configs]
    if [(one.resource_type, one.resource_name) for one in among].count(key) > 1:
        raise Refusal(ErrorCode.INVALID_REQUEST, "a resource may be named once only")
    if len(set(names)) < len(names):
        raise Refusal(ErrorCode.INVALID_REQUEST, "a config may be named once only")
    for config in asked.configs:
        if config.value is None and config.name in needs_value:
            raise Refusal(
                ErrorCode.INVALID_REQUEST, f"Null value not supported for {config.name}"
            )
    if asked.resource_type == BROKER:
        check_name(node, BROKER, asked.resource_name)


def change(
    node: Node, asked: _Resource, values: Mapping[str, str], *, validate_only: bool
) -> None:
    """What the controller does: set all configs of a resource, if they can be.

    Raises:
        Refusal: INVALID_REQUEST, INVALID_TOPIC_EXCEPTION, INVALID_CONFIG, or
            UNKNOWN_TOPIC_OR_PARTITION, looked for in this order.
    """
    kind, name = asked.resource_type, asked.resource_name
    if kind == TOPIC and not name:
        raise Refusal(ErrorCode.INVALID_REQUEST, "there are no defaults for topics")
    check_name(node, kind, name)
    for config, value in values.items():
        validate(known(kind), config, value)
    kept = need(node, kind, name)
    if validate_only:
        return
    kept.clear()
    kept.update(values)
    if kind == TOPIC:
        node.cluster.apply_settings(node.cluster.need_topic(name))
