"""Whether the brokers write the dead letters of a share group (KIP-1191).

Since Kafka 4.4 they do so for what is rejected, and for what reaches the limit of
deliveries, where the group has a topic for it. They write nothing, and tell nobody, if
the topic does not exist, does not allow it, or has a name without the prefix that the
brokers ask for. So each of these is checked: a dead letter that nobody writes is lost,
and one that is written twice is not.
"""

from __future__ import annotations

from typing import Final

from kafkaio._client.cluster import Cluster
from kafkaio._client.destinations import ANY, Destination
from kafkaio._runtime.clock import now
from kafkaio.protocol import _api_numbers as apis
from kafkaio.protocol._broker_errors import broker_error, sentence
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kafkaio.types import Broker

#: The level of the feature ``share.version`` from which brokers write dead letters.
_LEVEL: Final = 2
# Kafka's numbers of the kinds of resources.
_TOPIC, _BROKER, _GROUP = 2, 4, 32

_OF_GROUP: Final = "errors.deadletterqueue.topic.name"
_OF_TOPIC: Final = "errors.deadletterqueue.group.enable"
_OF_BROKER: Final = "errors.deadletterqueue.topic.name.prefix"


async def dead_letter_topic(
    cluster: Cluster, group_id: str, timeout: float
) -> str | None:
    """Return the topic to which the brokers write the dead letters of a group.

    Returns:
        None if they write none, as far as that can be known.

    Raises:
        KafkaError: it cannot be known: the principal may not describe the configs, or
            no broker has answered in time.
    """
    if cluster.features.levels.get("share.version", 0) < _LEVEL:
        return None
    deadline = now() + timeout
    topic = await _config(cluster, (_GROUP, group_id, _OF_GROUP), ANY, deadline)
    if not topic:
        return None
    if await _config(cluster, (_TOPIC, topic, _OF_TOPIC), ANY, deadline) != "true":
        return None
    node_id = min(cluster.view.brokers, default=-1)
    place = (_BROKER, str(node_id), _OF_BROKER)
    prefix = await _config(cluster, place, Broker(node_id), deadline)
    return topic if topic.startswith(prefix or "") else None


async def _config(
    cluster: Cluster,
    place: tuple[int, str, str],
    to: Destination,
    deadline: float,
) -> str | None:
    kind, name, key = place
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=[key]
    )
    answer = await cluster.request(
        DescribeConfigsRequest(resources=[resource]),
        to,
        timeout=max(0.0, deadline - now()),
    )
    for result in answer.results:
        if (result.resource_type, result.resource_name) != (kind, name):
            continue
        if kind == _TOPIC and result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return None
        if result.error_code:
            what = f"describing {key} of {name!r} failed"
            text = result.error_message or sentence(result.error_code, what)
            raise broker_error(result.error_code, text, api=apis.DESCRIBE_CONFIGS)
        return next((each.value for each in result.configs if each.name == key), None)
    return None
