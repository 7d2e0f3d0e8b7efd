"""Configs: what old brokers are asked, and what is not asked at all."""

from __future__ import annotations

import pytest

from kafkaio.admin import (
    ConfigChange,
    ConfigChangeType,
    ConfigResource,
    ConfigResourceType,
)
from kafkaio.errors import ArgumentTypeError, BrokerError, UnsupportedVersion
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.protocol.messages import (
    alter_configs as replace_api,
    describe_configs as describe_api,
    incremental_alter_configs as alter_api,
)
from tests.fakes.broker import FakeCluster, FakeNode
from tests.unit.admin.support import admin_of

TOPIC, BROKER = ConfigResourceType.TOPIC, ConfigResourceType.BROKER
#: On the wire: the source of what is set for all brokers.
FOR_ALL = 3


def describe(
    _: FakeNode, __: object, request: describe_api.DescribeConfigsRequest
) -> describe_api.DescribeConfigsResponse:
    """A broker's secret is set for all of them; topics have no secrets."""
    return describe_api.DescribeConfigsResponse(
        results=[
            describe_api.DescribeConfigsResult(
                resource_type=it.resource_type,
                resource_name=it.resource_name,
                configs=[
                    describe_api.DescribeConfigsResourceResult(
                        name="ssl.key.password",
                        is_sensitive=True,
                        config_source=FOR_ALL,
                    )
                ]
                if it.resource_type == 4
                else [],
            )
            for it in request.resources
        ]
    )


def replace(
    _: FakeNode, __: object, request: replace_api.AlterConfigsRequest
) -> replace_api.AlterConfigsResponse:
    return replace_api.AlterConfigsResponse(
        responses=[
            replace_api.AlterConfigsResourceResponse(
                resource_type=it.resource_type, resource_name=it.resource_name
            )
            for it in request.resources
        ]
    )


@pytest.fixture
def old(cluster: FakeCluster) -> FakeCluster:
    """Brokers of Kafka 2.2, which replace all configs of a resource."""
    cluster.limit_version(ApiKey.INCREMENTAL_ALTER_CONFIGS, -1)
    cluster.drop_connections()
    cluster.on(ApiKey.DESCRIBE_CONFIGS, describe)
    cluster.on(ApiKey.ALTER_CONFIGS, replace)
    return cluster


def replaced(cluster: FakeCluster) -> list[tuple[str, dict[str, str | None]]]:
    """What was written, by the name of the resource."""
    return [
        (it.resource_name, {each.name: each.value for each in it.configs})
        for request in cluster.requests(replace_api.AlterConfigsRequest)
        for it in request.resources
    ]


async def test_a_secret_fails_its_own_resource_alone(old: FakeCluster) -> None:
    topic, brokers = ConfigResource(TOPIC, "t"), ConfigResource(BROKER, "")
    change = ConfigChange("retention.ms", "1")
    async with admin_of(old) as admin:
        with pytest.raises(BrokerError, match="cannot be read") as caught:
            await admin.incremental_alter_configs({brokers: [change], topic: [change]})
    assert caught.value.code == E.INVALID_CONFIG
    assert caught.value.item == brokers
    assert dict(caught.value.results) == {topic: None}
    assert replaced(old) == [("t", {"retention.ms": "1"})]


@pytest.mark.parametrize(
    ("value", "written"), [("new", {"ssl.key.password": "new"}), (None, {})]
)
async def test_a_secret_that_is_replaced_need_not_be_read(
    old: FakeCluster, value: str | None, written: dict[str, str]
) -> None:
    brokers = ConfigResource(BROKER, "")
    kind = ConfigChangeType.DELETE if value is None else ConfigChangeType.SET
    change = ConfigChange("ssl.key.password", value, kind)
    async with admin_of(old) as admin:
        await admin.incremental_alter_configs({brokers: [change]})
    assert replaced(old) == [("", written)]


async def test_a_resource_without_changes_is_in_the_result(
    cluster: FakeCluster,
) -> None:
    cluster.on(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        lambda _, __, request: alter_api.IncrementalAlterConfigsResponse(
            responses=[
                alter_api.AlterConfigsResourceResponse(
                    resource_type=it.resource_type, resource_name=it.resource_name
                )
                for it in request.resources
            ]
        ),
    )
    idle, busy = ConfigResource(TOPIC, "idle"), ConfigResource(TOPIC, "busy")
    change = ConfigChange("retention.ms", "1")
    async with admin_of(cluster) as admin:
        found = await admin.incremental_alter_configs({idle: [], busy: [change]})
    assert list(found) == [idle, busy]


async def test_old_brokers_write_nothing_where_nothing_changes(
    old: FakeCluster,
) -> None:
    idle = ConfigResource(TOPIC, "idle")
    async with admin_of(old) as admin:
        assert await admin.incremental_alter_configs({idle: []}) == {idle: None}
    assert replaced(old) == []


async def test_no_types_of_resources_to_list(cluster: FakeCluster) -> None:
    async with admin_of(cluster) as admin:
        assert await admin.list_config_resources([]) == []
        with pytest.raises(ArgumentTypeError, match="types must be a collection"):
            await admin.list_config_resources("topic")
    assert not cluster.logged(ApiKey.LIST_CONFIG_RESOURCES)


@pytest.mark.parametrize(
    ("kind", "highest", "release"),
    [("client metrics", -1, "3.7"), ("topic", -1, "4.1"), ("topic", 0, "4.1")],
)
async def test_the_release_that_lists_a_type(
    cluster: FakeCluster, kind: str, highest: int, release: str
) -> None:
    cluster.limit_version(ApiKey.LIST_CONFIG_RESOURCES, highest)
    cluster.drop_connections()
    async with admin_of(cluster) as admin:
        with pytest.raises(UnsupportedVersion, match=f"needs Kafka {release}"):
            await admin.list_config_resources([kind])
