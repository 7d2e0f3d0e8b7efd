"""DescribeConfigs, versions 1 to 4 (KIP-133, KIP-226, KIP-569)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from kafkaio.testing._broker.configs import (
    BROKER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    BrokerConfigs,
    ConfigOrigin,
    Synonym,
    base_name,
    facts,
)
from kafkaio.testing._broker.node import BrokerNode
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._broker.settings import TOPIC_DEFAULTS, Setting
from kafkaio.testing._broker.telemetry import SUBSCRIPTION_CONFIGS
from kafkaio.testing._handlers._configs import (
    check_name,
    check_right,
    configured,
    known,
)
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._security.acls import Operation

_UNKNOWN: Final = 0
_KINDS: Final = {
    "boolean": 1, "string": 2, "int": 3, "short": 4, "long": 5, "double": 6, "list": 7,
    "class": 8, "password": 9
}  # fmt: skip


@handler(DescribeConfigsRequest, by_partition=True)
async def handle(
    context: RequestContext[DescribeConfigsRequest],
) -> DescribeConfigsResponse:
    """Describe the configs of topics, brokers and groups."""
    request = context.request
    unknown = None
    try:
        for asked in request.resources:
            known(asked.resource_type)
    except Refusal as refusal:
        unknown = refusal  # one unknown type fails every resource, as in Kafka
    return DescribeConfigsResponse(
        results=[
            _one(context, asked, unknown, with_synonyms=request.include_synonyms)
            for asked in request.resources
        ]
    )


def _one(
    context: RequestContext[DescribeConfigsRequest],
    asked: DescribeConfigsResource,
    unknown: Refusal | None,
    *,
    with_synonyms: bool,
) -> DescribeConfigsResult:
    node = context.node
    result = DescribeConfigsResult(
        resource_type=asked.resource_type, resource_name=asked.resource_name
    )
    if unknown is not None:
        unknown.write_to(result)
        return result
    try:
        check_right(context, asked, Operation.DESCRIBE_CONFIGS)
        context.connection.check(asked.resource_name)
        check_name(node, asked.resource_type, asked.resource_name)
        configured(node, asked.resource_type, asked.resource_name)
    except Refusal as refusal:
        refusal.write_to(result)
        if refusal.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            result.error_message = ""  # as Kafka, in this answer only
        return result
    kind, name = asked.resource_type, asked.resource_name
    if kind == TOPIC:
        found = _of_topic(node, name)
    elif kind == GROUP:
        found = _of_group(node, name)
    elif kind == CLIENT_METRICS:
        found = _of_subscription(node, name)
    else:
        found = _of_brokers(node, name)
    wanted = asked.configuration_keys
    result.configs = [one for one in found if not wanted or one.name in wanted]
    if not with_synonyms:
        for one in result.configs:
            one.synonyms = []
    return result


def _of_topic(node: BrokerNode, name: str) -> Iterable[DescribeConfigsResourceResult]:
    topic, configs = node.cluster.require_topic(name), node.cluster.configs
    for config, setting in TOPIC_DEFAULTS.items():
        synonyms = configs.topic_synonyms(config, topic.settings.values, node.node_id)
        value = topic.settings.get(config)
        yield _config(config, setting, synonyms, value)


def _of_group(node: BrokerNode, name: str) -> Iterable[DescribeConfigsResourceResult]:
    for config, setting in facts().groups.items():
        synonyms = node.cluster.configs.group_synonyms(config, name, node.node_id)
        yield _config(config, setting, synonyms, synonyms[0].value)


def _of_subscription(
    node: BrokerNode, name: str
) -> Iterable[DescribeConfigsResourceResult]:
    values = node.cluster.configs.of(CLIENT_METRICS, name)
    for config, setting in SUBSCRIPTION_CONFIGS.items():
        default = setting.default or ""
        synonyms = [Synonym(config, default, ConfigOrigin.DEFAULT)]
        if config in values:
            own = Synonym(config, values[config], ConfigOrigin.CLIENT_METRICS)
            synonyms.insert(0, own)
        yield _config(config, setting, synonyms, synonyms[0].value)


def _of_brokers(node: BrokerNode, name: str) -> Iterable[DescribeConfigsResourceResult]:
    """The configs of a broker; without a name, the dynamic configs of the cluster."""
    configs, known_configs = node.cluster.configs, facts()
    own = node.own_configs()
    always = known_configs.brokers.keys() - known_configs.internal
    # Plug-ins have configs of their own, which are described where they are set.
    for config in always | _set_for(configs, node, own):
        synonyms = configs.broker_synonyms(config, node.node_id, own)
        if not name:
            synonyms = [one for one in synonyms if one.source == ConfigOrigin.CLUSTER]
            if not synonyms:
                continue
        value = synonyms[0].value if synonyms else None
        yield _broker_config(config, synonyms, value)


def _set_for(configs: BrokerConfigs, node: BrokerNode, own: Iterable[str]) -> set[str]:
    """The names of all configs that are set, whether or not Kafka knows them."""
    levels = (
        configs.of(BROKER, str(node.node_id)),
        configs.of(BROKER, ""),
        configs.static,
        own,
    )
    return set().union(*levels)


def _broker_config(
    name: str, synonyms: list[Synonym], value: str | None
) -> DescribeConfigsResourceResult:
    setting = facts().brokers.get(base_name(name))
    result = _config(name, setting, synonyms, value)
    # Kafka describes a config with the prefix of a listener as read-only, too.
    result.read_only = facts().modes.get(name, "read-only") == "read-only"
    return result


def _config(
    name: str, setting: Setting | None, synonyms: list[Synonym], value: str | None
) -> DescribeConfigsResourceResult:
    is_secret = setting is None or setting.kind == "password"
    return DescribeConfigsResourceResult(
        name=name,
        # A config that Kafka does not know may be a secret.
        value=None if is_secret else value,
        config_source=synonyms[0].source if synonyms else ConfigOrigin.DEFAULT,
        is_sensitive=is_secret,
        synonyms=[
            DescribeConfigsSynonym(
                name=one.name,
                value=None if is_secret else one.value,
                source=one.source,
            )
            for one in synonyms
        ],
        config_type=_UNKNOWN if setting is None else _KINDS[setting.kind],
        documentation=None,  # as of a config that has none, or if it is not asked for
    )
