"""All brokers that the client knew are gone: it starts over (KIP-899)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio
import pytest

from kafkaio._client import Client, Leader
from kafkaio._config import ClientConfig
from kafkaio.protocol import messages
from kafkaio.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsTopic,
)
from kafkaio.testing.kafka import Kafka, real_kafka as choose
from kafkaio.testing.kafka._source import parse_bootstrap
from kafkaio.testing.pytest_plugin import TopicFactory
from kafkaio.types import Broker, TopicPartition

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


class Door:
    """A port that leads to a cluster, like a name in DNS or a load balancer."""

    def __init__(self) -> None:
        self.port = 0
        self.leads_to: tuple[str, int] | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            server.close()
            await server.wait_closed()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            assert self.leads_to is not None
            there, back = await asyncio.open_connection(*self.leads_to)
            try:
                async with anyio.create_task_group() as group:
                    group.start_soon(_pump, reader, back)
                    group.start_soon(_pump, there, writer)
            finally:
                back.close()
        except OSError:
            pass
        finally:
            writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()


async def test_a_cluster_that_was_replaced(
    real_kafka: Kafka, topic: TopicFactory
) -> None:
    name = topic(partitions=2)
    door = Door()
    async with door.open():
        async with choose() as first:
            (door.leads_to,) = parse_bootstrap(first.bootstrap_servers)
            await first.create_topic(name, partitions=1)
            client = Client(f"127.0.0.1:{door.port}")
            await client.start()
            client._cluster.watch_topics("me", [name])
            old = await client._cluster.wait_for_topics([name])
            assert old.partition_count(name) == 1
        (door.leads_to,) = parse_bootstrap(real_kafka.bootstrap_servers)
        while client.cluster.cluster_id == old.cluster_id:
            await client._cluster.wait_for_update(timeout=30)
        # What was watched still is, and it is the new cluster's.
        view = await client._cluster.wait_for_topics([name])
        assert view.partition_count(name) == 2
        assert view.topic_id(name) != old.topic_id(name)
        partition = ListOffsetsPartition(partition_index=1, timestamp=-1)
        request = messages.ListOffsetsRequest(
            topics=[ListOffsetsTopic(name=name, partitions=[partition])]
        )
        answer = await client.request(request, Leader(TopicPartition(name, 1)))
        assert answer.topics[0].partitions[0].offset == 0
        await client.close()


@pytest.mark.kafka_versions("4.4+")
@pytest.mark.parametrize("has_login", [False, True])
async def test_a_broker_refuses_who_expects_another_cluster(has_login: bool) -> None:
    users = {"alice": "a"}
    login = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_username": "alice",
        "sasl_password": "a",
    }
    lost: list[str] = []

    class Lost:
        def connection_lost(self, node: int, kind: str, cause: object) -> None:
            if cause is not None:
                lost.append(str(cause))

    async with choose(sasl=True, users=users) as kafka:
        config = ClientConfig.of(
            kafka.bootstrap("SASL") if has_login else kafka.bootstrap_servers,
            login if has_login else {},
        )
        async with Client.from_config(config, observer=Lost()) as client:
            [node] = client.cluster.brokers
            await client.request(messages.ListGroupsRequest(), Broker(node))
            right = client.cluster.cluster_id
            pool = client._cluster._pool
            pool._cluster_id = "AAAAAAAAAAAAAAAAAAAAAA"
            pool.close_node(node)
            await client.request(messages.ListGroupsRequest(), Broker(node))
            assert pool._cluster_id == right
    assert f"it is not broker {node} of cluster AAAA" in lost[0]
