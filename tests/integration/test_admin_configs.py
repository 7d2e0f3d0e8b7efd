"""Configs by `kafkaio.Admin`, on real brokers and on the embedded one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from kafkaio.admin import (
    Admin,
    ConfigChange,
    ConfigChangeType,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
)
from kafkaio.errors import (
    AdminErrors,
    ArgumentValueError,
    BrokerError,
    UnknownTopicOrPartition,
)
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

TOPIC, BROKER = ConfigResourceType.TOPIC, ConfigResourceType.BROKER


@pytest.fixture
async def admin(real_kafka: Kafka) -> AsyncIterator[Admin]:
    async with Admin(real_kafka.bootstrap_servers) as admin:
        yield admin


async def own(admin: Admin, resource: ConfigResource) -> dict[str, str | None]:
    """What is set for the resource itself."""
    entries = (await admin.describe_configs([resource]))[resource]
    sources = {ConfigSource.TOPIC, ConfigSource.BROKER, ConfigSource.BROKER_DEFAULT}
    return {
        name: entry.value
        for name, entry in entries.items()
        if entry.source in sources and name != "min.insync.replicas"  # by the cluster
    }


async def test_single_configs_are_changed(admin: Admin, topic: TopicFactory) -> None:
    name = topic()
    resource = ConfigResource(TOPIC, name)
    set_up = [
        ConfigChange("retention.ms", "60000"),
        ConfigChange("cleanup.policy", "delete"),
        ConfigChange("segment.bytes", "2000000"),
    ]
    assert await admin.incremental_alter_configs({resource: set_up}) == {resource: None}
    changes = [
        ConfigChange("retention.ms", None, ConfigChangeType.DELETE),
        ConfigChange("cleanup.policy", "compact", ConfigChangeType.APPEND),
    ]
    await admin.incremental_alter_configs({resource: changes}, validate_only=True)
    assert await own(admin, resource) == {each.name: each.value for each in set_up}
    await admin.incremental_alter_configs({resource: changes})
    while (now := await own(admin, resource)).get("retention.ms"):
        pass  # the brokers learn of it a moment later
    assert now == {"cleanup.policy": "delete,compact", "segment.bytes": "2000000"}
    less = ConfigChange("cleanup.policy", "delete", ConfigChangeType.SUBTRACT)
    await admin.incremental_alter_configs({resource: [less]})
    while (now := await own(admin, resource))["cleanup.policy"] != "compact":
        assert now["segment.bytes"] == "2000000"


async def test_synonyms_and_documentation(admin: Admin, topic: TopicFactory) -> None:
    resource = ConfigResource(TOPIC, topic())
    described = await admin.describe_configs(
        [resource], include_synonyms=True, include_documentation=True
    )
    entry = described[resource]["retention.ms"]
    assert entry.value == "604800000"
    assert entry.source in {ConfigSource.DEFAULT, ConfigSource.STATIC}
    assert entry.is_read_only is False
    assert [each.name for each in entry.synonyms] in (
        ["log.retention.ms"],
        ["log.retention.hours"],
        [],
    )
    if entry.documentation is not None:  # Kafka 2.6
        assert entry.type == "long"
        assert "retain" in entry.documentation


async def test_each_resource_fails_for_itself(
    admin: Admin, topic: TopicFactory
) -> None:
    good = ConfigResource(TOPIC, topic())
    missing = ConfigResource(TOPIC, f"no-such-{uuid4().hex}")
    with pytest.raises(UnknownTopicOrPartition) as caught:
        await admin.describe_configs([missing, good])
    assert caught.value.item == missing
    assert list(caught.value.results) == [good]
    with pytest.raises(AdminErrors, match="alter configs: 2 of 2 failed") as several:
        await admin.incremental_alter_configs(
            {
                good: [ConfigChange("retention.ms", "soon")],
                missing: [ConfigChange("retention.ms", "1")],
            }
        )
    codes = {
        error.item: error.code
        for error in several.value.exceptions
        if isinstance(error, BrokerError)
    }
    # Kafka 2.1 says INVALID_REQUEST.
    assert codes.pop(good) in {E.INVALID_CONFIG, E.INVALID_REQUEST}
    assert codes == {missing: E.UNKNOWN_TOPIC_OR_PARTITION}


async def test_configs_of_brokers(admin: Admin) -> None:
    node_id = min(admin._cluster.view.brokers)  # test-only look inside
    resource, everyone = (
        ConfigResource(BROKER, str(node_id)),
        ConfigResource(BROKER, ""),
    )
    described = await admin.describe_configs([resource, everyone])
    assert list(described) == [resource, everyone]
    assert described[resource]["broker.id"].is_read_only
    change = ConfigChange("log.cleaner.backoff.ms", "20000")
    await admin.incremental_alter_configs({everyone: [change]})
    while (await own(admin, everyone)).get("log.cleaner.backoff.ms") != "20000":
        pass
    # A change of another config keeps it, also where brokers replace all of them.
    second = ConfigChange("log.cleaner.delete.retention.ms", "70000")
    await admin.incremental_alter_configs({everyone: [second]})
    while second.name not in (now := await own(admin, everyone)):
        pass
    assert now[change.name] == "20000"
    deletions = [
        ConfigChange(each.name, None, ConfigChangeType.DELETE)
        for each in (change, second)
    ]
    await admin.incremental_alter_configs({everyone: deletions})


@pytest.mark.kafka_versions("newest")
async def test_what_has_configs(admin: Admin, topic: TopicFactory) -> None:
    name = topic()
    listed = await admin.list_config_resources()
    assert ConfigResource(TOPIC, name) in listed
    assert {each.type for each in listed} >= {TOPIC, BROKER}
    assert await admin.list_config_resources(["client metrics"]) == []


async def test_changes_that_cannot_be(admin: Admin) -> None:
    resource = ConfigResource(TOPIC, "t")
    twice = [ConfigChange("a", "1"), ConfigChange("a", "2")]
    with pytest.raises(ArgumentValueError, match="a occurs twice"):
        await admin.incremental_alter_configs({resource: twice})
    with pytest.raises(ArgumentValueError, match="a value belongs to every change"):
        await admin.incremental_alter_configs({resource: [ConfigChange("a", None)]})
    with pytest.raises(ArgumentValueError, match="its node id"):
        await admin.describe_configs([ConfigResource(BROKER, "one")])
    with pytest.raises(ArgumentValueError, match="did you mean 'topic'"):
        await admin.list_config_resources(["topics"])
    assert await admin.describe_configs([]) == {}
    assert await admin.incremental_alter_configs({}) == {}
