"""Admin against the quorum of controllers alone (KIP-919), which are scripted."""

from __future__ import annotations

import pytest

from kafkaio import Client, Consumer, Producer
from kafkaio._client.destinations import ANY, GroupCoordinator, Leader
from kafkaio._config import ClientConfig, ConsumerConfig, ProducerConfig
from kafkaio.admin import AclBindingFilter, Admin, NewTopic, QuotaEntity
from kafkaio.errors import BrokerError, ConfigurationError, UnsupportedVersion
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsResponse,
)
from kafkaio.protocol.messages.describe_acls import DescribeAclsResponse
from kafkaio.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kafkaio.protocol.messages.metadata import MetadataRequest
from kafkaio.protocol.messages.unregister_broker import UnregisterBrokerResponse
from kafkaio.types import TopicPartition
from tests.fakes.broker import FakeCluster, FakeNode, Outcome
from tests.unit.admin.support import admin_of

CONTROLLERS = {ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.LIST_TRANSACTIONS}


@pytest.fixture
def quorum(cluster: FakeCluster) -> FakeCluster:
    """Three controllers, of which 2 is active; they know no Metadata."""
    cluster.controller_id = 2
    cluster.cluster_id = "quorum"

    def describe(
        node: FakeNode, header: object, request: DescribeClusterRequest
    ) -> Outcome:
        del header, node
        if request.endpoint_type != 2:
            return DescribeClusterResponse(error_code=E.MISMATCHED_ENDPOINT_TYPE)
        return DescribeClusterResponse(
            endpoint_type=2,
            cluster_id="quorum",
            controller_id=cluster.controller_id,
            brokers=[
                DescribeClusterBroker(broker_id=it.node_id, host=it.host, port=it.port)
                for it in cluster.nodes.values()
            ],
        )

    cluster.on(ApiKey.DESCRIBE_CLUSTER, describe)
    for node in cluster.nodes.values():
        for api in CONTROLLERS:
            del node.versions[api]
    return cluster


def options(quorum: FakeCluster) -> dict[str, object]:
    return {
        "bootstrap_servers": (),
        "bootstrap_controllers": quorum.bootstrap_servers,
        "retry_backoff_ms": 10,
    }


async def test_the_active_controller_is_asked(quorum: FakeCluster) -> None:
    quorum.on(ApiKey.DESCRIBE_ACLS, DescribeAclsResponse())
    quorum.on(
        ApiKey.DELETE_ACLS,
        DeleteAclsResponse(filter_results=[DeleteAclsFilterResult()]),
    )
    everything = AclBindingFilter()
    async with admin_of(quorum, **options(quorum)) as admin:
        assert repr(admin).startswith("<Admin 'kafkaio-admin-")
        assert repr(admin).endswith("' running | quorum, 3 brokers>")
        assert await admin.describe_acls() == []
        assert await admin.delete_acls([everything]) == {everything: ()}
        found = await admin.describe_cluster()
    assert found.controller == 2
    assert [it.node_id for it in found.brokers] == [0, 1, 2]
    asked = [it for it in quorum.log if "ACLS" in it.api.name]
    assert [it.node_id for it in asked] == [2, 2]
    assert {it.endpoint_type for it in quorum.requests(DescribeClusterRequest)} == {2}
    assert not quorum.requests(MetadataRequest)


async def test_another_controller_becomes_active(quorum: FakeCluster) -> None:
    def unregister(node: FakeNode, *_: object) -> Outcome:
        if node.node_id == 2:
            quorum.controller_id = 1
            return UnregisterBrokerResponse(error_code=E.NOT_CONTROLLER)
        return UnregisterBrokerResponse()

    quorum.on(ApiKey.UNREGISTER_BROKER, unregister)
    async with admin_of(quorum, **options(quorum)) as admin:
        await admin.unregister_broker(7)
    asked = [it for it in quorum.log if it.api is ApiKey.UNREGISTER_BROKER]
    assert [it.node_id for it in asked] == [2, 1]


async def test_there_is_no_active_controller_for_a_while(quorum: FakeCluster) -> None:
    quorum.on(ApiKey.DESCRIBE_ACLS, DescribeAclsResponse())
    quorum.controller_id = -1
    async with admin_of(quorum, **options(quorum)) as admin:
        before = len(quorum.requests(DescribeClusterRequest))

        def elected(*_: object) -> Outcome:
            quorum.controller_id = 0
            return DescribeClusterResponse(
                cluster_id="quorum",
                brokers=[DescribeClusterBroker(broker_id=0, host="broker0", port=9092)],
                controller_id=0,
            )

        quorum.on(ApiKey.DESCRIBE_CLUSTER, elected)
        assert await admin.describe_acls() == []
    assert len(quorum.requests(DescribeClusterRequest)) > before


async def test_what_needs_brokers_is_refused(quorum: FakeCluster) -> None:
    async with admin_of(quorum, **options(quorum)) as admin:
        before = len(quorum.log)
        for refused in (
            admin.list_topics(),
            admin.create_topics([NewTopic("x", 1, 1)]),
            admin.delete_topics(["x"]),
            admin.describe_topics(["x"]),
            admin.wait_for_topics(["x"]),
            admin.list_transactions(),
            admin.describe_client_quotas(),
            admin.alter_client_quotas({QuotaEntity(user="x"): {"y": 1}}),
            admin.describe_user_scram_credentials(),
            admin.describe_user_scram_credentials(["x"]),
            admin.create_delegation_token(),
            admin.describe_delegation_token(),
            admin.describe_transactions(["x"]),
            admin.describe_producers([TopicPartition("x", 0)]),
        ):
            with pytest.raises(UnsupportedVersion, match="bootstrap_controllers"):
                await refused
        assert len(quorum.log) == before


async def test_a_client_of_controllers(quorum: FakeCluster) -> None:
    quorum.on(ApiKey.UNREGISTER_BROKER, UnregisterBrokerResponse())
    config = ClientConfig(**options(quorum))  # type: ignore[arg-type]
    async with Client.from_config(config, dial=quorum.dial) as client:
        answer = await client.request(DescribeClusterRequest(endpoint_type=2), to=ANY)
        assert answer.controller_id == 2
        for to in (Leader(TopicPartition("x", 0)), GroupCoordinator("g")):
            with pytest.raises(UnsupportedVersion, match="no records and no groups"):
                await client.request(DescribeClusterRequest(), to=to)
        async with Admin(client) as admin:
            with pytest.raises(UnsupportedVersion, match="describe no topics"):
                await admin.find_hanging_transactions(topics=["x"])
            assert admin.config.bootstrap_controllers == quorum.bootstrap_servers
            assert admin.config.bootstrap_servers == ()
            await admin.unregister_broker(7)
        for kind in (Producer, Consumer):
            with pytest.raises(ConfigurationError, match="needs brokers"):
                kind(client)


async def test_brokers_where_controllers_should_be(cluster: FakeCluster) -> None:
    wrong = DescribeClusterResponse(error_code=E.MISMATCHED_ENDPOINT_TYPE)
    cluster.on(ApiKey.DESCRIBE_CLUSTER, wrong)
    with pytest.raises(BrokerError, match="is a broker, not a controller: give it as"):
        async with admin_of(cluster, **options(cluster)):
            pytest.fail("it started")


async def test_controllers_where_brokers_should_be(quorum: FakeCluster) -> None:
    with pytest.raises(UnsupportedVersion, match="is a controller, not a broker"):
        async with admin_of(quorum):
            pytest.fail("it started")


async def test_controllers_that_are_too_old(quorum: FakeCluster) -> None:
    for node in quorum.nodes.values():
        node.versions[ApiKey.DESCRIBE_CLUSTER] = (0, 0)
    with pytest.raises(UnsupportedVersion, match=r"needs Kafka 3\.7"):
        async with admin_of(quorum, **options(quorum)):
            pytest.fail("it started")


def test_the_option() -> None:
    admin = Admin(bootstrap_controllers="c1:9093,c2:9093")
    assert admin.config.bootstrap_controllers == (("c1", 9093), ("c2", 9093))
    assert admin.config.bootstrap_servers == ()
    assert admin.config.addresses == ["c1:9093", "c2:9093"]
    assert admin.config.first_nodes == admin.config.bootstrap_controllers
    config = ClientConfig.from_properties({"bootstrap.controllers": "c1:9093"})
    assert config.bootstrap_controllers == (("c1", 9093),)
    both = {"bootstrap.servers": "b", "bootstrap.controllers": "c"}
    with pytest.raises(ConfigurationError, match="exclude each other"):
        ClientConfig.from_properties(both)
    with pytest.raises(ConfigurationError, match="exclude each other"):
        Client("b:9092", bootstrap_controllers="c:9093")
    with pytest.raises(ConfigurationError, match="bootstrap_controllers names no"):
        Client(bootstrap_controllers="")
    for kind, config_kind in (
        (Producer, ProducerConfig),
        (Consumer, ConsumerConfig),
    ):
        with pytest.raises(ConfigurationError, match="needs brokers"):
            kind(bootstrap_controllers="c1:9093")
        with pytest.raises(ConfigurationError, match="needs brokers"):
            config_kind.from_properties({"bootstrap.controllers": "c1:9093"})
