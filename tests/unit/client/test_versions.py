"""Services that do not understand what kafkaio asks first, or what they announce."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kafkaio._client import Client
from kafkaio._config import ClientConfig, ConsumerConfig
from kafkaio._consumer import Consumer
from kafkaio.errors import ConfigurationError, RequestTimeout, UnsupportedVersion
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kafkaio.testing import Broker as EmbeddedBroker
from kafkaio.types import Broker
from tests.fakes.broker import DEFAULT, DISCONNECT, FakeCluster, Outcome
from tests.unit.client.support import client_of


def hang_up_above(cluster: FakeCluster, version: int) -> None:
    def answer(node: Any, header: Any, request: Any) -> Outcome:
        too_new = header.request_api_version > version
        return DISCONNECT if too_new else DEFAULT

    cluster.on(ApiKey.API_VERSIONS, answer)


def asked(cluster: FakeCluster, node: int) -> list[int]:
    return [entry.version for entry in cluster.logged(ApiKey.API_VERSIONS, node)]


@pytest.mark.parametrize(("known", "steps"), [(3, [4, 4, 3]), (0, [4, 4, 3, 0])])
async def test_a_service_that_hangs_up_on_new_versions(
    cluster: FakeCluster, known: int, steps: list[int]
) -> None:
    hang_up_above(cluster, known)
    cluster.on(ApiKey.LIST_GROUPS, ListGroupsResponse())
    servers = cluster.bootstrap_servers[:1]
    async with client_of(cluster, bootstrap_servers=servers) as client:
        await client.request(ListGroupsRequest(), timeout=5)
        assert asyncio.get_running_loop().time() < 3
        assert asked(cluster, 0)[: len(steps)] == steps
        # The next connection to the same address begins where this one ended.
        assert set(asked(cluster, 0)[len(steps) :]) <= {known}


async def test_one_reset_changes_no_version(cluster: FakeCluster) -> None:
    cluster.on(ApiKey.API_VERSIONS, DISCONNECT, times=1)
    servers = cluster.bootstrap_servers[:1]
    async with client_of(cluster, bootstrap_servers=servers):
        assert asked(cluster, 0)[:2] == [4, 4]


async def test_versions_are_limited(cluster: FakeCluster) -> None:
    cluster.on(ApiKey.LIST_GROUPS, ListGroupsResponse())
    limits = {"ListGroups": 2, "Metadata": 7, "ApiVersions": 1}
    async with client_of(cluster, max_versions=limits) as client:
        await client.request(ListGroupsRequest())
        with pytest.raises(UnsupportedVersion):
            await client.request(ListGroupsRequest(states_filter=["Stable"]))
    assert {it.version for it in cluster.logged(ApiKey.LIST_GROUPS)} == {2}
    assert {it.version for it in cluster.logged(ApiKey.METADATA)} == {7}
    assert {it.version for it in cluster.logged(ApiKey.API_VERSIONS)} == {1}


async def test_a_limit_below_what_the_broker_knows(cluster: FakeCluster) -> None:
    for node in cluster.nodes.values():
        node.versions[ApiKey.LIST_GROUPS] = (3, 5)
    why = "the broker knows 3 to 2, kafkaio 0 to 5, and max_versions allows 2"
    async with client_of(cluster, max_versions="ListGroups:2") as client:
        with pytest.raises(UnsupportedVersion, match=why):
            await client.request(ListGroupsRequest())


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"JoinGruop": 5}, "'JoinGruop' is not an API; did you mean 'JoinGroup'"),
        ({"": 5}, "must be versions by the names of APIs"),
        ({"JoinGroup": -1}, "must be versions"),
        ({"JoinGroup": True}, "must be versions"),
        ({11: 5}, "must be versions"),
        (["JoinGroup"], "must be versions"),
        ("JoinGroup", "must be versions"),
        ("JoinGroup:x", "must be versions"),
    ],
)
def test_limits_that_make_no_sense(given: Any, why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        Client.from_config(ClientConfig.of("a:1", {"max_versions": given}))


def test_limits_as_a_property() -> None:
    text = "JoinGroup:5, sync_group:3"
    properties = {"bootstrap.servers": "a:1", "max.versions": text}
    client = Client.from_properties(properties)
    assert client._cluster._pool._settings.max_versions == {11: 5, 14: 3}


@pytest.mark.parametrize(
    ("limits", "protocol"), [({}, "consumer"), ({"Metadata": 11}, "classic")]
)
async def test_the_group_protocol_follows_the_limits(
    limits: dict[str, int], protocol: str
) -> None:
    async with EmbeddedBroker(topics={"t": 1}, memory_transport=True) as broker:
        options = {"group_id": "g", "max_versions": limits}
        config = ConsumerConfig.of(broker.bootstrap_servers, options)
        consumer = Consumer.from_config(config, dial=broker.dial, topics=["t"])
        async with consumer:
            assert consumer.statistics().group_protocol == protocol


def named(cluster: FakeCluster, node: int) -> list[tuple[int, str | None, int]]:
    """Version, cluster id and node id of each question to a broker for its versions."""
    return [
        (entry.version, entry.request.cluster_id, entry.request.node_id)
        for entry in cluster.logged(ApiKey.API_VERSIONS, node)
    ]


async def test_a_known_broker_is_told_who_it_has_to_be(cluster: FakeCluster) -> None:
    cluster.on(ApiKey.LIST_GROUPS, ListGroupsResponse())
    servers = cluster.bootstrap_servers[:1]
    async with client_of(cluster, bootstrap_servers=servers) as client:
        for node in cluster.nodes:
            await client.request(ListGroupsRequest(), Broker(node))
    for node in cluster.nodes:
        told = (5, cluster.cluster_id, node)
        assert named(cluster, node) == [*[(4, None, -1)][node:], told]


async def test_older_brokers_cost_no_round_trip_more(cluster: FakeCluster) -> None:
    cluster.limit_version(ApiKey.API_VERSIONS, 4)
    cluster.on(ApiKey.LIST_GROUPS, ListGroupsResponse())
    servers = cluster.bootstrap_servers[:1]
    async with client_of(cluster, bootstrap_servers=servers) as client:
        for node in cluster.nodes:
            await client.request(ListGroupsRequest(), Broker(node))
    for node in cluster.nodes:
        assert asked(cluster, node) == [4]


@pytest.mark.parametrize(
    "options",
    [
        {"metadata_cluster_check_enable": False},
        {"metadata_recovery_strategy": "none"},
    ],
)
async def test_no_broker_is_told_who_it_has_to_be(
    cluster: FakeCluster, options: dict[str, object]
) -> None:
    cluster.on(ApiKey.LIST_GROUPS, ListGroupsResponse())
    async with client_of(cluster, **options) as client:
        for node in cluster.nodes:
            await client.request(ListGroupsRequest(), Broker(node))
    for node in cluster.nodes:
        assert {entry[1:] for entry in named(cluster, node)} == {(None, -1)}


async def test_another_cluster_at_the_same_addresses(cluster: FakeCluster) -> None:
    cluster.on(ApiKey.LIST_GROUPS, ListGroupsResponse())
    async with client_of(cluster) as client:
        await client.request(ListGroupsRequest(), Broker(1))
        before = client.cluster
        cluster.cluster_id = "another"
        cluster.drop_connections()
        await client.request(ListGroupsRequest(), Broker(1), timeout=5)
        assert client.cluster.cluster_id == "another"
        assert client.cluster.brokers == before.brokers
        assert named(cluster, 1)[-1] == (5, "another", 1)


async def test_an_address_of_another_broker(cluster: FakeCluster) -> None:
    cluster.on(ApiKey.LIST_GROUPS, ListGroupsResponse())
    wrong = Broker(1, cluster.nodes[2].host, cluster.nodes[2].port)

    def metadata(node: Any, header: Any, request: Any) -> Outcome:
        answer = cluster._metadata(node, header, request)
        answer.brokers[1].host, answer.brokers[1].port = wrong.host, wrong.port
        return answer

    cluster.on(ApiKey.METADATA, metadata)
    async with client_of(cluster) as client:
        await client.request(ListGroupsRequest(), Broker(2))
        with pytest.raises(RequestTimeout) as caught:
            await client.request(ListGroupsRequest(), Broker(1), timeout=8)
        assert f"it is not broker 1 of cluster {cluster.cluster_id}" in str(
            caught.value
        )
        # All connections were closed once, and not with each further attempt.
        assert cluster.connections_accepted < 25
        opened = named(cluster, 2).count((5, cluster.cluster_id, 2))
        await client.request(ListGroupsRequest(), Broker(2))
        assert named(cluster, 2).count((5, cluster.cluster_id, 2)) <= opened + 1
