"""kafkaio's own clients on the secured listeners of the broker, over TCP."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import kafkaio
from kafkaio import messages
from kafkaio.testing import Broker, SecurityConfig
from kafkaio.testing._security.principals import NoPrincipal, PrincipalRules

OF_SASL = {
    "sasl_mechanism": "SCRAM-SHA-512",
    "sasl_username": "alice",
    "sasl_password": "alice-secret",
}
PROTOCOLS = {
    "PLAINTEXT": "PLAINTEXT",
    "SASL": "SASL_PLAINTEXT",
    "SSL": "SSL",
    "MTLS": "SSL",
    "SASL_SSL": "SASL_SSL",
}


def options(broker: Broker, listener: str) -> dict[str, Any]:
    found: dict[str, Any] = {"security_protocol": PROTOCOLS[listener]}
    if "SSL" in PROTOCOLS[listener]:
        user = "alice" if listener == "MTLS" else None
        found["ssl_context"] = broker.certificates.client_context(user)
    return found | (OF_SASL if listener.startswith("SASL") else {})


@pytest.mark.parametrize("listener", PROTOCOLS)
async def test_every_node_is_found_on_the_listener_that_was_asked(
    listener: str,
) -> None:
    rules = SecurityConfig(principal_rules=r"RULE:^CN=(.*?),.*$/$1/L,DEFAULT")
    async with (
        asyncio.timeout(60),
        Broker(nodes=3, topics={"t": 3}, sasl=True, tls=True, security=rules) as broker,
    ):
        servers, given = broker.bootstrap(listener), options(broker, listener)
        async with kafkaio.Producer(servers, **given) as producer:
            for number in range(9):
                await producer.send("t", b"v" * 100_000, partition=number % 3)
        async with kafkaio.Consumer(
            servers, topics="t", group_id="g", auto_offset_reset="earliest", **given
        ) as consumer:
            count = 0
            async for record in consumer:
                assert len(record.value or b"") == 100_000
                count += 1
                if count == 9:
                    break
            connected = [
                one for node in broker.nodes.values() for one in node.connections
            ]
            name = "ANONYMOUS" if listener in {"PLAINTEXT", "SSL"} else "alice"
            assert {one.principal for one in connected} == {f"User:{name}"}
            assert {one.peer.listener for one in connected} == {listener}
        async with kafkaio.Client(servers, **given) as client:
            cluster = await client.request(messages.DescribeClusterRequest())
            named = {f"{one.host}:{one.port}" for one in cluster.brokers}
            assert named == set(servers.split(","))
            found = await client.request(
                messages.FindCoordinatorRequest(coordinator_keys=["g"])
            )
            (one,) = found.coordinators
            assert f"{one.host}:{one.port}" in named


async def test_files_of_tls_exist_while_the_broker_runs() -> None:
    broker = Broker(tls=True, users={"bob": "x"})
    with pytest.raises(RuntimeError, match="while the broker runs"):
        _ = broker.certificates
    async with broker:
        authority = broker.certificates.authority
        assert authority.exists()
        assert list(broker.certificates.clients) == ["bob"]
        with pytest.raises(KeyError):
            broker.bootstrap("SASL")
    assert not authority.exists()
    with pytest.raises(RuntimeError, match="tls=True"):
        _ = Broker().certificates


async def test_a_restarted_node_keeps_its_ports() -> None:
    async with Broker(sasl=True, tls=True) as broker:
        before = [broker.bootstrap(name) for name in PROTOCOLS]
        await broker.control.restart(0)
        assert [broker.bootstrap(name) for name in PROTOCOLS] == before
        async with kafkaio.Client(
            broker.bootstrap("SASL_SSL"), **options(broker, "SASL_SSL")
        ) as client:
            await client.request(messages.MetadataRequest())


async def test_a_connection_in_a_handshake_ends_with_its_node() -> None:
    async with Broker(tls=True) as broker:
        host, _, port = broker.bootstrap("SSL").rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        await asyncio.sleep(0.01)
        await broker.control.stop(0)
        assert await reader.read() == b""
        writer.close()


async def test_no_tls_is_refused_by_an_alert() -> None:
    async with Broker(tls=True) as broker:
        host, _, port = broker.bootstrap("SSL").rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"\0\0\0\x0d\0\x12\0\0\0\0\0\1\0\3abc")
        # As Java's, with the same bytes.
        assert await reader.read() == b"\x15\x03\x03\0\2\2\x50"
        writer.close()


async def test_a_subject_that_no_rule_fits_is_closed() -> None:
    rules = SecurityConfig(principal_rules="RULE:^O=(.*)$/$1/")
    unhandled: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: unhandled.append(context))
    async with Broker(tls=True, security=rules) as broker:
        client = kafkaio.Client(broker.bootstrap("MTLS"), **options(broker, "MTLS"))
        with pytest.raises(kafkaio.NetworkError):
            await client.start(timeout=0.5)
        await client.close()
    assert not unhandled


SUBJECT = "CN=Alice,OU=People,O=Acme"


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        ("DEFAULT", SUBJECT),
        ("RULE:^CN=(.*?),.*$/$1/", "Alice"),
        ("RULE:^CN=(.*?),.*$/$1/L", "alice"),
        ("RULE:^CN=(.*?),.*$/$1/U, DEFAULT", "ALICE"),
        ("RULE:^O=x$/x/,RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/,DEFAULT", "Alice@People"),
        ("RULE:^O=x$/x/,DEFAULT", SUBJECT),
    ],
)
def test_rules_for_principals(rules: str, name: str) -> None:
    assert PrincipalRules(rules).name(SUBJECT) == name


def test_a_subject_that_no_rule_fits() -> None:
    with pytest.raises(NoPrincipal, match="no rule fits the subject 'CN=Alice"):
        PrincipalRules("RULE:^O=x$/x/").name(SUBJECT)


def test_rules_that_cannot_be_read() -> None:
    for rules in ("RULE:^CN=(.*)$", "default", "RULE:a/b/X"):
        with pytest.raises(ValueError, match="cannot be read"):
            PrincipalRules(rules)
