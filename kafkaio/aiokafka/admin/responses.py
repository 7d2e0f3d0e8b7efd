"""What the admin client returns, with the attributes of aiokafka's responses.

The rows are named tuples: ``topic, code, message = response.topic_errors[0]`` works as
``response.topic_errors[0].error_code`` does.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TypedDict

from kafkaio._named_tuple import NamedTuple

__all__ = [
    "AlterConfigsResponse",
    "AlteredResource",
    "BrokerDescription",
    "ClusterDescription",
    "ConfigEntry",
    "ConfigSynonym",
    "CreatePartitionsResponse",
    "CreateTopicsResponse",
    "DeleteTopicsResponse",
    "DescribeConfigsResponse",
    "DescribeGroupsResponse",
    "DescribedGroup",
    "DescribedResource",
    "GroupMember",
    "PartitionDescription",
    "Response",
    "TopicDescription",
    "TopicError",
    "TopicErrorCode",
]


class TopicError(NamedTuple):
    """What came of a topic.

    Attributes:
        topic: name of the topic.
        error_code: 0 for success; ``errors.for_code`` has its class.
        error_message: the broker's words; None if it had none.
    """

    topic: str
    error_code: int
    error_message: str | None


class TopicErrorCode(NamedTuple):
    """What came of a topic that was to be deleted.

    Attributes:
        topic: name of the topic.
        error_code: 0 for success.
    """

    topic: str
    error_code: int


class ConfigSynonym(NamedTuple):
    """Where the value of a config may come from.

    Attributes:
        config_name: name of the config there.
        config_value: the value there; None if it is not shown.
        config_source: the number that Kafka has for the place.
    """

    config_name: str
    config_value: str | None
    config_source: int


class ConfigEntry(NamedTuple):
    """A config of a resource.

    Attributes:
        config_names: its name; aiokafka has the plural, too.
        config_value: its value; None if it has none, or it is not shown.
        read_only: whether it cannot be altered.
        config_source: the number that Kafka has for where the value comes from.
        is_sensitive: whether the value is not shown.
        config_synonyms: the places that may have a value; empty unless asked for.
    """

    config_names: str
    config_value: str | None
    read_only: bool
    config_source: int
    is_sensitive: bool
    config_synonyms: list[ConfigSynonym]


class DescribedResource(NamedTuple):
    """The configs of a resource.

    Attributes:
        error_code: 0 for success.
        error_message: the broker's words; None or empty if it had none.
        resource_type: 2 for a topic, 4 for a broker.
        resource_name: name of the topic, or id of the broker.
        config_entries: the configs.
    """

    error_code: int
    error_message: str | None
    resource_type: int
    resource_name: str
    config_entries: list[ConfigEntry]


class AlteredResource(NamedTuple):
    """What came of a resource whose configs were to be altered.

    Attributes:
        error_code: 0 for success.
        error_message: the broker's words; None or empty if it had none.
        resource_type: 2 for a topic, 4 for a broker.
        resource_name: name of the topic, or id of the broker.
    """

    error_code: int
    error_message: str | None
    resource_type: int
    resource_name: str


class GroupMember(NamedTuple):
    """A member of a group.

    Attributes:
        member_id: the id that the coordinator has for it.
        client_id: name of its client.
        client_host: where it connects from.
        member_metadata: its subscription, encoded.
        member_assignment: its assignment, encoded.
    """

    member_id: str
    client_id: str
    client_host: str
    member_metadata: bytes
    member_assignment: bytes


class _Group(NamedTuple):
    error_code: int
    group: str
    state: str
    protocol_type: str
    protocol: str
    members: list[GroupMember]


class DescribedGroup(_Group):
    """A group of the classic protocol: a tuple of the first six.

    Attributes:
        error_code: 0 for success.
        group: name of the group.
        state: such as ``Stable`` or ``Empty``; ``Dead`` for a group that is not there.
        protocol_type: ``consumer`` for consumers.
        protocol: the assignor in use.
        members: its members.
        authorized_operations: the rights on it, as bits; the least number unless asked
            for. aiokafka drops it.
    """

    authorized_operations: int = -(2**31)


@dataclass(frozen=True)
class Response:
    """The answer of a broker.

    Attributes:
        throttle_time_ms: milliseconds for which a quota delayed the answer.
    """

    throttle_time_ms: int

    def to_object(self) -> dict[str, object]:
        """Return the answer as dicts, lists and plain values."""
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self)}


@dataclass(frozen=True)
class CreateTopicsResponse(Response):
    """The answer to `AIOKafkaAdminClient.create_topics`.

    Attributes:
        topic_errors: what came of each topic.
    """

    topic_errors: list[TopicError]


@dataclass(frozen=True)
class DeleteTopicsResponse(Response):
    """The answer to `AIOKafkaAdminClient.delete_topics`.

    Attributes:
        topic_error_codes: what came of each topic.
    """

    topic_error_codes: list[TopicErrorCode]


@dataclass(frozen=True)
class CreatePartitionsResponse(Response):
    """The answer to `AIOKafkaAdminClient.create_partitions`.

    Attributes:
        topic_errors: what came of each topic.
    """

    topic_errors: list[TopicError]


@dataclass(frozen=True)
class DescribeConfigsResponse(Response):
    """The answer to `AIOKafkaAdminClient.describe_configs`.

    Attributes:
        resources: the resources that one broker was asked for.
    """

    resources: list[DescribedResource]


@dataclass(frozen=True)
class AlterConfigsResponse(Response):
    """The answer to `AIOKafkaAdminClient.alter_configs`.

    Attributes:
        resources: what came of those that one broker was asked to alter.
    """

    resources: list[AlteredResource]


@dataclass(frozen=True)
class DescribeGroupsResponse(Response):
    """The answer to `AIOKafkaAdminClient.describe_consumer_groups`.

    Attributes:
        groups: the groups of one coordinator.
    """

    groups: list[DescribedGroup]


class PartitionDescription(TypedDict):
    """A partition, as ``describe_topics`` returns it."""

    error_code: int
    partition: int
    leader: int
    replicas: list[int]
    isr: list[int]
    offline_replicas: list[int]


class TopicDescription(TypedDict):
    """A topic, as ``describe_topics`` returns it."""

    error_code: int
    topic: str
    is_internal: bool
    partitions: list[PartitionDescription]


class BrokerDescription(TypedDict):
    """A broker, as ``describe_cluster`` returns it."""

    node_id: int
    host: str
    port: int
    rack: str | None


class ClusterDescription(TypedDict):
    """The cluster, as ``describe_cluster`` returns it."""

    throttle_time_ms: int
    brokers: list[BrokerDescription]
    cluster_id: str | None
    controller_id: int


def _plain(value: object) -> object:
    if isinstance(value, list):
        return [_plain(each) for each in value]
    # Named tuples are the only tuples in responses.
    names: tuple[str, ...] = getattr(value, "_fields", ())
    if names and isinstance(value, tuple):
        return {name: _plain(each) for name, each in zip(names, value, strict=True)}
    return value
