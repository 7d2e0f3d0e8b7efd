"""Helpers of the APIs that read and alter configs: resources, their names, checks.

A broker checks a request to alter configs (`check_asked`), then the controller does
(`change`), as in Kafka: that decides which of several errors is answered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import Request, Response
from kafkaio.testing._broker.configs import (
    BROKER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    base_name,
    facts,
)
from kafkaio.testing._broker.node import BrokerNode
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._broker.settings import (
    TOPIC_DEFAULTS,
    Setting,
    mismatch,
    validate,
)
from kafkaio.testing._broker.telemetry import SUBSCRIPTION_CONFIGS, check_subscription
from kafkaio.testing._handlers._handler import RequestContext
from kafkaio.testing._security.acls import Operation, ResourceType

_MIN_ISR: Final = "min.insync.replicas"
_CLEANERS: Final = "log.cleaner.threads"
_DEDUPE_BUFFER: Final = "log.cleaner.dedupe.buffer.size"
_LEAST_BUFFER: Final = 1 << 20
#: Numbers of threads: one change can at most double or halve them.
_THREADS: Final = frozenset(
    {
        "background.threads",
        _CLEANERS,
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.fetchers",
        "remote.log.manager.copier.thread.pool.size",
        "remote.log.manager.expiration.thread.pool.size",
        "remote.log.manager.follower.thread.pool.size",
        "remote.log.reader.threads",
    }
)
#: A group's config whose limits are not named by the usual pattern.
_STANDBYS: Final = {
    "streams.num.standby.replicas": (
        "group.streams.min.standby.replicas",
        "group.streams.max.standby.replicas",
    )
}


class _ConfigPort(Protocol):
    name: str
    value: str | None


class _ResourceNamePort(Protocol):
    @property
    def resource_type(self) -> int: ...
    @property
    def resource_name(self) -> str: ...


class _ResourcePort(_ResourceNamePort, Protocol):
    @property
    def configs(self) -> Sequence[_ConfigPort]: ...


def known(resource_type: int) -> Mapping[str, Setting]:
    """The configs of a type of resource, by name.

    Raises:
        Refusal: INVALID_REQUEST for an unknown type.
    """
    if resource_type == TOPIC:
        return TOPIC_DEFAULTS
    if resource_type == BROKER:
        return facts().brokers
    if resource_type == GROUP:
        return facts().groups
    if resource_type == CLIENT_METRICS:
        return SUBSCRIPTION_CONFIGS
    raise Refusal(
        ErrorCode.INVALID_REQUEST, f"Unsupported resource type {resource_type}"
    )


def check_right(
    context: RequestContext[Request[Response]],
    asked: _ResourceNamePort,
    operation: Operation,
) -> None:
    """Check that a client may see or change the configs of a resource.

    Raises:
        Refusal: TOPIC_AUTHORIZATION_FAILED, GROUP_AUTHORIZATION_FAILED, or
            CLUSTER_AUTHORIZATION_FAILED for a broker or a subscription of metrics.
    """
    # Kafka has no right on a single broker: they belong to the cluster.
    if asked.resource_type in {BROKER, CLIENT_METRICS}:
        context.rights.require(operation, ResourceType.CLUSTER)
    else:
        kind = ResourceType.TOPIC
        if asked.resource_type == GROUP:
            kind = ResourceType.GROUP
        context.rights.require(operation, kind, asked.resource_name)


def check_name(node: BrokerNode, resource_type: int, name: str) -> None:
    """Check the name of a resource.

    Raises:
        Refusal: INVALID_TOPIC_EXCEPTION, INVALID_REQUEST.
    """
    if resource_type == TOPIC:
        node.cluster.check_name(name)
    # A broker answers for itself and for the cluster; the client sends the request to
    # the node in question.
    elif resource_type == BROKER and name not in {"", str(node.node_id)}:
        raise Refusal(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {node.node_id}, but received {name}",
        )
    elif resource_type == GROUP and not name:
        raise Refusal(ErrorCode.INVALID_REQUEST, "the name of a group is empty")
    elif resource_type == CLIENT_METRICS and not name:
        raise Refusal(ErrorCode.INVALID_REQUEST, "the name of a subscription is empty")


def configured(node: BrokerNode, resource_type: int, name: str) -> Mapping[str, str]:
    """The configs that are set for a resource.

    Raises:
        Refusal: UNKNOWN_TOPIC_OR_PARTITION if it is a topic that does not exist.
    """
    if resource_type == TOPIC:
        topic = node.cluster.known(name)
        if topic is None:
            text = f"The topic '{name}' does not exist."
            raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
        return topic.settings.values
    return node.cluster.configs.of(resource_type, name)


def check_asked(
    context: RequestContext[Request[Response]],
    asked: _ResourcePort,
    among: Sequence[_ResourcePort],
    needs_value: set[str],
    check_broker_configs: Callable[[], None] = lambda: None,
) -> None:
    """Check what a broker checks before it forwards a change to the controller.

    Args:
        context: the request.
        asked: one resource of the request.
        among: all resources of the request.
        needs_value: the configs whose value must not be null.
        check_broker_configs: checks the configs if the resource is a broker.

    Raises:
        Refusal: INVALID_REQUEST, or the client may not change the configs.
    """
    known(asked.resource_type)
    key = (asked.resource_type, asked.resource_name)
    names = [config.name for config in asked.configs]
    # Which of the two is meant cannot be known.
    if [(one.resource_type, one.resource_name) for one in among].count(key) > 1:
        raise Refusal(ErrorCode.INVALID_REQUEST, "a resource is named twice")
    if len(set(names)) < len(names):
        raise Refusal(ErrorCode.INVALID_REQUEST, "a config is named twice")
    for config in asked.configs:
        if config.value is None and config.name in needs_value:
            raise Refusal(
                ErrorCode.INVALID_REQUEST, f"Null value not supported for {config.name}"
            )
    if asked.resource_type == BROKER:
        # Before 4.4, everybody was told what is wrong with the configs of a broker.
        right = (Operation.ALTER_CONFIGS, ResourceType.CLUSTER)
        is_first = context.cluster.rules.is_right_first
        if is_first and (code := context.rights.denied(*right)):
            raise Refusal(code)  # without a text, as Kafka
        check_name(context.node, BROKER, asked.resource_name)
        check_broker_configs()
    check_right(context, asked, Operation.ALTER_CONFIGS)


def change(
    node: BrokerNode,
    asked: _ResourcePort,
    values: Mapping[str, str],
    *,
    validate_only: bool,
) -> None:
    """Do what the controller does: check all configs of a resource and set them.

    Raises:
        Refusal: INVALID_REQUEST, INVALID_TOPIC_EXCEPTION, INVALID_CONFIG, or
            UNKNOWN_TOPIC_OR_PARTITION, checked in this order.
    """
    kind, name = asked.resource_type, asked.resource_name
    if kind == TOPIC and not name:
        raise Refusal(ErrorCode.INVALID_REQUEST, "the name of a topic is empty")
    check_name(node, kind, name)
    if kind == BROKER:
        check_broker(node, name, values)
        _check_min_isr(node, name, values)
    elif kind == GROUP:
        _check_group(node, name, values)
    elif kind == CLIENT_METRICS:
        check_subscription(values)
    else:
        for config, value in values.items():
            validate(TOPIC_DEFAULTS, config, value)
    # Last, as in Kafka: a topic that does not exist is found after its configs were
    # checked.
    configured(node, kind, name)
    if validate_only:
        return
    if kind == TOPIC:
        topic = node.cluster.require_topic(name)
        topic.settings.values.clear()
        topic.settings.values.update(values)
        node.cluster.apply_settings(topic)
    else:
        node.cluster.set_configs(kind, name, values)


def check_broker(node: BrokerNode, name: str, values: Mapping[str, str]) -> None:
    """Check all dynamic configs of a broker, or of the cluster, by Kafka's rules.

    Configs that Kafka does not know are allowed, because plugins have their own.

    Args:
        node: the broker that is asked.
        name: the id of that broker; empty for the cluster.
        values: the configs by name.

    Raises:
        Refusal: INVALID_REQUEST.
    """
    known_configs = facts()
    modes = known_configs.modes
    fixed = [one for one in values if modes.get(one) == "read-only"]
    # All names in one refusal, so that a client need not try one by one.
    _refuse_all("Cannot update these configs dynamically", fixed)
    bare = [one for one in values if modes.get(one) == "per-listener"]
    _refuse_all("These configs need the prefix of a listener", bare)
    for config, value in values.items():
        # The prefix of a listener does not change the type of a config.
        setting = known_configs.brokers.get(base_name(config))
        reason = None if setting is None else mismatch(setting, value)
        if reason is not None:
            text = f"Invalid value {value} for configuration {config}: {reason}"
            raise Refusal(ErrorCode.INVALID_REQUEST, text)
    if not name:
        own = {"per-broker", "per-listener"}
        single = [one for one in values if modes.get(base_name(one)) in own]
        _refuse_all("These configs can be set for one broker only", single)
    if "listeners" in values:
        raise Refusal(
            ErrorCode.INVALID_REQUEST,
            "The embedded broker keeps the listeners that it was started with.",
        )
    _check_threads(node, values)


def _refuse_all(reason: str, configs: Sequence[str]) -> None:
    if configs:
        text = f"{reason}: [{', '.join(sorted(configs))}]"
        raise Refusal(ErrorCode.INVALID_REQUEST, text)


def _check_threads(node: BrokerNode, values: Mapping[str, str]) -> None:
    """Check the limits of the numbers of threads, and of the buffer that they share."""
    for config in _THREADS.intersection(values):
        # From what is in force, not from what was set for this resource.
        now = int(node.cluster.configs.in_force(config) or 0)
        # Kafka resizes pools of threads while they run.
        if not now // 2 <= int(values[config]) <= now * 2:
            raise Refusal(
                ErrorCode.INVALID_REQUEST,
                f"{config}={values[config]}: at most double or half of {now} at a time",
            )
    if not values.keys().isdisjoint({_CLEANERS, _DEDUPE_BUFFER}):
        threads, size = (
            int(values.get(one) or node.cluster.configs.in_force(one) or 0)
            for one in (_CLEANERS, _DEDUPE_BUFFER)
        )
        # The buffer is divided among the threads.
        if not threads or size // threads <= _LEAST_BUFFER:
            raise Refusal(
                ErrorCode.INVALID_REQUEST,
                f"{_DEDUPE_BUFFER} must be more than 1 MiB for each cleaner thread.",
            )


def _check_min_isr(node: BrokerNode, name: str, values: Mapping[str, str]) -> None:
    """Refuse changes that eligible leader replicas (KIP-966) do not allow."""
    if not node.cluster.rules.has_eligible_replicas:
        return
    before = node.cluster.configs.of(BROKER, name)
    if name and before.get(_MIN_ISR) != values.get(_MIN_ISR):
        text = f"Broker-level {_MIN_ISR} cannot be altered while ELR is enabled."
        raise Refusal(ErrorCode.INVALID_CONFIG, text)
    if not name and _MIN_ISR not in values:
        text = f"Cluster-level {_MIN_ISR} cannot be removed while ELR is enabled."
        raise Refusal(ErrorCode.INVALID_CONFIG, text)


def _check_group(node: BrokerNode, name: str, values: Mapping[str, str]) -> None:
    """Check all configs of a group by Kafka's rules.

    Raises:
        Refusal: INVALID_CONFIG.
    """
    del name
    in_force = node.cluster.configs.in_force
    groups = facts().groups
    for config in values:
        if config not in groups:
            text = f"Unknown group config name: {config}"
            raise Refusal(ErrorCode.INVALID_CONFIG, text)
    for config, value in values.items():
        validate(groups, config, value, "group")
        kind, _, rest = config.partition(".")
        limits = (f"group.{kind}.min.{rest}", f"group.{kind}.max.{rest}")
        # The limits of a group's config are configs of the broker.
        least, most = map(in_force, _STANDBYS.get(config, limits))
        if least is not None and int(value) < int(least):
            text = f"{config} must be at least {least}"
            raise Refusal(ErrorCode.INVALID_CONFIG, text)
        if most is not None and int(value) > int(most):
            text = f"{config} must be at most {most}"
            raise Refusal(ErrorCode.INVALID_CONFIG, text)
    for kind in ("consumer", "share", "streams"):
        names = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        session, beat = (
            int(values.get(one) or in_force(f"group.{one}") or 0) for one in names
        )
        if not values.keys().isdisjoint(names) and session <= beat:
            text = f"{names[0]} must be greater than {names[1]}"
            raise Refusal(ErrorCode.INVALID_CONFIG, text)
