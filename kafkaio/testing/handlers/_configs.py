"""What the three APIs of configs share: which resources there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.testing.broker.node import Node
from kafkaio.testing.broker.refusal import Refusal
from kafkaio.testing.broker.settings import BROKER_DEFAULTS, TOPIC_DEFAULTS, Setting

__all__ = ["BROKER", "GROUP", "TOPIC", "known", "replace", "stored"]

TOPIC: Final = 2
BROKER: Final = 4
GROUP: Final = 32

# The settings of a group, as Kafka 4.3 has them, for groups of the new protocol.
_GROUP_DEFAULTS: Final[Mapping[str, Setting]] = {
    "consumer.heartbeat.interval.ms": Setting("int", "5000"),
    "consumer.session.timeout.ms": Setting("int", "45000"),
}


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


def replace(node: Node, resource_type: int, name: str, values: dict[str, str]) -> None:
    """Set the configs of a resource that ``stored`` has found."""
    kept = stored(node, resource_type, name)
    kept.clear()
    kept.update(values)
    if resource_type == TOPIC:
        node.cluster.apply_settings(node.cluster.need_topic(name))


def stored(node: Node, resource_type: int, name: str) -> dict[str, str]:
    """Where the configs that were set for a resource are kept.

    Raises:
        Refusal: UNKNOWN_TOPIC_OR_PARTITION, INVALID_REQUEST.
    """
    if resource_type == TOPIC:
        node.cluster.check_name(name)
        topic = node.cluster.known(name)
        if topic is None:
            raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return topic.settings.values
    if resource_type == BROKER and name not in {"", *map(str, node.broker.nodes)}:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"there is no broker {name}")
    return node.cluster.configs.setdefault((resource_type, name), {})
