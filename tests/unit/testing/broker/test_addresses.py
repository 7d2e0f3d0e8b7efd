"""Where an embedded broker listens, and which addresses it tells to clients."""

import socket

import pytest

import kafkaio
from kafkaio.admin import ConfigResource, ConfigResourceType
from kafkaio.protocol.messages.describe_cluster import DescribeClusterRequest
from kafkaio.protocol.messages.find_coordinator import FindCoordinatorRequest
from kafkaio.protocol.messages.metadata import MetadataRequest
from kafkaio.testing import Broker


def has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


async def told(servers: str) -> set[str]:
    """The hosts that a client is told by all APIs that name some."""
    async with kafkaio.Client(servers) as client:
        metadata = await client.request(MetadataRequest(topics=None))
        cluster = await client.request(DescribeClusterRequest())
        asked = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
        (found,) = (await client.request(asked)).coordinators
    hosts = {node.host for node in metadata.brokers}
    return hosts | {node.host for node in cluster.brokers} | {found.host}


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
async def test_ipv6_addresses_are_in_brackets() -> None:
    async with Broker(nodes=2, host="::1", topics={"t": 1}) as broker:
        first, second = broker.bootstrap_servers.split(",")
        assert first == f"[::1]:{broker.nodes[0].port}"
        assert second == f"[::1]:{broker.nodes[1].port}"
        assert broker.bound() == broker.bootstrap_servers
        assert f"[::1]:{broker.nodes[0].port}" in repr(broker.nodes[0])
        assert await told(broker.bootstrap_servers) == {"::1"}
        async with kafkaio.Producer(broker.bootstrap_servers) as producer:
            assert (await producer.send("t", b"v")).offset == 0
        async with kafkaio.Admin(broker.bootstrap_servers) as admin:
            node = ConfigResource(ConfigResourceType.BROKER, "0")
            found = (await admin.describe_configs([node]))[node]
        assert found["advertised.listeners"].value == f"PLAINTEXT://{first}"


@pytest.mark.parametrize("host", ["", "0.0.0.0"])
async def test_on_all_interfaces_each_client_is_told_the_address_it_came_by(
    host: str,
) -> None:
    async with Broker(nodes=2, host=host, topics={"t": 1}) as broker:
        port = broker.nodes[0].port
        assert broker.bound().startswith(f"0.0.0.0:{port},")
        assert broker.bootstrap_servers.startswith(f"localhost:{port},")
        # Every address of the network 127/8 is this machine.
        assert await told(f"127.0.0.1:{port}") == {"127.0.0.1"}
        assert await told(f"127.0.0.2:{port}") == {"127.0.0.2"}
        async with kafkaio.Producer(f"127.0.0.2:{port}") as producer:
            assert (await producer.send("t", b"v")).offset == 0


async def test_an_advertised_address_stays_what_it_is() -> None:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    config = {
        "listeners": f"PLAINTEXT://:{port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.3:{port}",
    }
    async with Broker(config=config) as broker:
        assert broker.bound() == f"0.0.0.0:{port}"
        assert broker.bootstrap_servers == f"127.0.0.3:{port}"
        assert await told(f"127.0.0.1:{port}") == {"127.0.0.3"}


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]"])
def test_nobody_is_led_to_all_interfaces(host: str) -> None:
    config = {"advertised.listeners": f"PLAINTEXT://{host}:9092"}
    with pytest.raises(ValueError, match="no client can connect to"):
        Broker(config=config)


def test_ports_above_the_last_one_are_refused() -> None:
    with pytest.raises(ValueError, match="4 listeners from port 65533"):
        Broker(nodes=2, sasl=True, port=65533)


async def test_tls_is_valid_for_the_address_that_clients_came_by() -> None:
    async with (
        Broker(host="127.0.0.2", tls=True, topics={"t": 1}) as broker,
        kafkaio.Producer(
            broker.bootstrap("SSL"),
            security_protocol="SSL",
            ssl_context=broker.certificates.client_context(),
        ) as producer,
    ):
        assert (await producer.send("t", b"v")).offset == 0


@pytest.mark.parametrize(
    ("config", "allowed"),
    [
        ({}, False),
        ({"super.users": "User:bob; User:alice"}, True),
        ({"super.users": "User:bob"}, False),
        ({"allow.everyone.if.no.acl.found": "true"}, True),
    ],
)
async def test_the_authorizer_has_its_configs(
    config: dict[str, str], allowed: bool
) -> None:
    name = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    given = config | {"authorizer.class.name": name}
    async with (
        Broker(sasl=True, config=given, topics={"t": 1}) as broker,
        kafkaio.Producer(
            broker.bootstrap("SASL"),
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="PLAIN",
            sasl_username="alice",
            sasl_password="alice-secret",
        ) as producer,
    ):
        if allowed:
            assert (await producer.send("t", b"v")).offset == 0
        else:
            with pytest.raises(kafkaio.AuthorizationError):
                await producer.send("t", b"v")


@pytest.mark.parametrize(
    "config",
    [{"super.users": "alice"}, {"allow.everyone.if.no.acl.found": "perhaps"}],
)
def test_values_that_the_authorizer_does_not_take(config: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=next(iter(config))):
        Broker(config=config)
