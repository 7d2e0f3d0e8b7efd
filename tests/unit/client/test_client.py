from kafkaio.client import ANY, Broker, Client, Controller, GroupCoordinator, Leader
from kafkaio.config import ClientConfig
from kafkaio.protocol.api_keys import ApiKey
from kafkaio.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kafkaio.types import TopicPartition
from tests.fakes.broker import FakeCluster


async def test_start_learns_the_cluster():
    async with FakeCluster(nodes=3, topics={"t": 6}) as cluster:
        config = ClientConfig(bootstrap_servers=cluster.bootstrap_servers)
        async with Client.from_config(config, dial=cluster.dial) as client:
            assert set(client.cluster.brokers) == {0, 1, 2}
            assert client.cluster.cluster_id == "fake-cluster"
            view = await client.wait_for_topics(["t"])
            assert view.partition_count("t") == 6


async def test_destinations():
    async with FakeCluster(nodes=3, topics={"t": 6}) as cluster:
        cluster.on(ApiKey.LIST_GROUPS, lambda *_: ListGroupsResponse())
        config = ClientConfig(bootstrap_servers=cluster.bootstrap_servers)
        async with Client.from_config(config, dial=cluster.dial) as client:
            for to in (
                ANY,
                Broker(2),
                Controller,
                Leader(TopicPartition("t", 1)),
                GroupCoordinator("g"),
            ):
                await client.request(ListGroupsRequest(), to)
            nodes = [e.node_id for e in cluster.logged(ApiKey.LIST_GROUPS)]
            assert nodes[1:] == [2, 0, 1, cluster.coordinator("g")]
