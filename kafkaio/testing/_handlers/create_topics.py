"""CreateTopics, versions 2 to 7 (KIP-464, KIP-525)."""

from __future__ import annotations

from collections.abc import Mapping

from kafkaio._runtime.clock import random_uuid
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafkaio.testing._broker.cluster import AT_ONCE
from kafkaio.testing._broker.configs import ConfigOrigin
from kafkaio.testing._broker.node import BrokerNode
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._broker.settings import TOPIC_DEFAULTS, TopicSettings
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._handlers._rights import Rights
from kafkaio.testing._security.acls import Operation, ResourceType


@handler(CreateTopicsRequest, by_partition=True)
async def handle(context: RequestContext[CreateTopicsRequest]) -> CreateTopicsResponse:
    """Create topics. All nodes know them when this is answered.

    The fault ``metadata_lag`` delays that.
    """
    request = context.request
    rights = context.rights
    names = [asked.name for asked in request.topics]
    # None of them is created: which of the two is meant cannot be known.
    twice = {name for name in names if names.count(name) > 1}
    return CreateTopicsResponse(
        topics=[
            _denied(rights, asked.name)
            or _with_rights(
                _one(context, asked, validate_only=request.validate_only),
                rights,
            )
            for asked in request.topics
            if asked.name not in twice
        ]
        + [
            CreatableTopicResult(
                name=name,
                error_code=ErrorCode.INVALID_REQUEST,
                error_message="Duplicate topic name.",
            )
            for name in sorted(twice)
        ]
    )


def _denied(rights: Rights, name: str) -> CreatableTopicResult | None:
    """The answer for a topic that the client may not create; None if it may."""
    code = rights.denied_creation(name)
    if not code:
        return None
    return CreatableTopicResult(
        name=name, error_code=code, error_message="Authorization failed."
    )


def _with_rights(result: CreatableTopicResult, rights: Rights) -> CreatableTopicResult:
    """Take out of an answer the configs that the client may not see (KIP-525)."""
    if not result.error_code:
        code = rights.denied(
            Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, result.name
        )
        if code:
            # The topic exists all the same; only its configs are withheld.
            result.topic_config_error_code = code
            result.num_partitions = result.replication_factor = -1
            result.configs = []
    return result


def _one(
    context: RequestContext[CreateTopicsRequest],
    asked: CreatableTopic,
    *,
    validate_only: bool,
) -> CreatableTopicResult:
    node = context.node
    result = CreatableTopicResult(name=asked.name, error_message=None)
    configs = {config.name: config.value for config in asked.configs}
    cluster = context.cluster
    try:
        context.connection.check(asked.name)
        cluster.check_absent(asked.name)
        cluster.check_configs(configs)
        assignment = _assignment(node, asked)
        count = len(assignment) or asked.num_partitions
        factor = len(assignment[0]) if assignment else asked.replication_factor
        if count == -1:
            count = node.broker.default_partitions
        if factor == -1:
            # A default must not fail because nodes are down.
            factor = min(node.broker.default_replication_factor, len(cluster.live))
        cluster.check_new(asked.name, count, factor, configs)
        # check_new has refused any value that is None.
        values = {name: value or "" for name, value in configs.items()}
        if validate_only:
            # As Kafka, which answers with a random id even if nothing is created.
            result.topic_id = random_uuid()
        else:
            lag = context.connection.metadata_lag()
            visible_at = cluster.clock.now() + lag if lag else AT_ONCE
            replicas = assignment or cluster.choose_replicas(count, factor)
            made = cluster.add_topic(asked.name, replicas, values, visible_at)
            result.topic_id = made.topic_id
    except Refusal as refusal:
        refusal.write_to(result)
        return result
    result.num_partitions = count
    result.replication_factor = factor
    result.configs = _configs(node, values)
    return result


def _assignment(node: BrokerNode, asked: CreatableTopic) -> list[list[int]]:
    """The replicas that the client chose, by partition; empty if it chose none."""
    if not asked.assignments:
        return []
    if asked.num_partitions != -1 or asked.replication_factor != -1:
        raise Refusal(
            ErrorCode.INVALID_REQUEST,
            "A manual assignment was specified, so the number of partitions and the"
            " replication factor must be -1.",
        )
    chosen = {one.partition_index: one.broker_ids for one in asked.assignments}
    if sorted(chosen) != list(range(len(asked.assignments))):
        raise Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The partitions must be numbered from 0, without gaps.",
        )
    for replicas in chosen.values():
        check_replicas(node, replicas, len(chosen[0]))
    return [list(chosen[index]) for index in sorted(chosen)]


def check_replicas(node: BrokerNode, replicas: list[int], factor: int) -> None:
    """Check the replicas that a client chose for a partition.

    Raises:
        Refusal: INVALID_REPLICA_ASSIGNMENT.
    """
    if (
        not replicas
        or len(replicas) != factor
        or len(set(replicas)) != len(replicas)
        or not set(replicas) <= set(node.broker.nodes)
    ):
        raise Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"cannot place a partition {replicas}"
        )


def _configs(
    node: BrokerNode, values: Mapping[str, str]
) -> list[CreatableTopicConfigs]:
    configs = node.cluster.configs
    settings = TopicSettings(values, configs.topic_defaults)
    found = []
    for name in TOPIC_DEFAULTS:
        synonyms = configs.topic_synonyms(name, values, node.node_id)
        source = synonyms[0].source if synonyms else ConfigOrigin.DEFAULT
        value = settings.get(name)
        found.append(
            CreatableTopicConfigs(name=name, value=value, config_source=source)
        )
    return found
