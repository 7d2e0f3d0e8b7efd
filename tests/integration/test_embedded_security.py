"""Other people's clients log in to the embedded broker, as to any Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kafkaio.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclResourceType,
    Admin,
    ScramCredential,
    ScramMechanism,
    ScramUpsertion,
)
from kafkaio.testing import Broker
from kafkaio.testing._security.acls import CLUSTER_NAME, AclFilter
from tests.support.foreign_clients import (
    CONSUMER,
    COUNT,
    PRODUCER,
    TOOLS,
    confluent_config,
    java_properties,
    round_trip,
    with_aiokafka,
    with_java,
)

# The version of a real Kafka means nothing here, so once is enough.
pytestmark = [
    pytest.mark.kafka_versions("newest"),
    pytest.mark.not_embedded("runs on embedded brokers of its own in any case"),
    pytest.mark.timeout(180),
]

TOKENS = "org.apache.kafka.tools.DelegationTokenCommand"
ACLS = "org.apache.kafka.tools.AclCommand"
CONFIGS = "org.apache.kafka.tools.ConfigCommand"
BY_PASSWORD = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
#: Listener, mechanism; "" for none.
WAYS = [
    *[("SASL", name) for name in (*BY_PASSWORD, "OAUTHBEARER")],
    ("SSL", ""),
    ("MTLS", ""),
    ("SASL_SSL", "PLAIN"),
    ("SASL_SSL", "SCRAM-SHA-512"),
    ("SASL_SSL", "OAUTHBEARER"),
]


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(nodes=2, topics={"t": 2}, sasl=True, tls=True) as broker:
        yield broker


def check(broker: Broker, mechanism: str, again: int = 0) -> None:
    """Whether clients have logged in, and nobody was refused or cut off."""
    counts = broker.security.authentications
    assert (counts.failed, counts.killed) == ({}, 0)
    assert set(counts.first) == ({mechanism} if mechanism else set())
    assert counts.again[mechanism] >= again


# ---- librdkafka ---------------------------------------------------------------------


@pytest.mark.parametrize(("listener", "mechanism"), WAYS)
async def test_confluent(broker: Broker, listener: str, mechanism: str) -> None:
    pytest.importorskip("confluent_kafka")
    config = confluent_config(broker, listener, mechanism)
    await asyncio.to_thread(round_trip, config)
    check(broker, mechanism)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "OAUTHBEARER"])
async def test_confluent_authenticates_again(mechanism: str) -> None:
    pytest.importorskip("confluent_kafka")
    async with Broker(topics={"t": 2}, sasl=True, reauth_ms=2000) as broker:
        config = confluent_config(broker, "SASL", mechanism)
        await asyncio.to_thread(round_trip, config, 4.0)
        check(broker, mechanism, again=3)


# ---- aiokafka -----------------------------------------------------------------------


@pytest.mark.parametrize(("listener", "mechanism"), WAYS)
async def test_aiokafka(broker: Broker, listener: str, mechanism: str) -> None:
    pytest.importorskip("aiokafka")
    found = await with_aiokafka(broker, listener, mechanism)
    assert sorted(found, key=int) == [b"%d" % number for number in range(COUNT)]
    check(broker, mechanism)


# ---- Java ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("listener", "mechanism"),
    [
        ("SASL", "PLAIN"),
        ("SASL", "SCRAM-SHA-256"),
        ("SASL_SSL", "SCRAM-SHA-512"),
        ("SASL_SSL", "OAUTHBEARER"),
        ("MTLS", ""),
    ],
)
async def test_java(
    broker: Broker, listener: str, mechanism: str, tmp_path: Path
) -> None:
    config = tmp_path / "client.properties"
    config.write_text(java_properties(broker, listener, mechanism))
    await with_java(broker, listener, config, "t")
    check(broker, mechanism)


async def test_java_authenticates_again(tmp_path: Path) -> None:
    async with Broker(topics={"t": 1}, sasl=True, reauth_ms=2000) as broker:
        config = tmp_path / "client.properties"
        config.write_text(java_properties(broker, "SASL", "SCRAM-SHA-256"))
        servers = ("--bootstrap-server", broker.bootstrap("SASL"), "--topic", "t")
        async with (
            await TOOLS.start(
                PRODUCER, *servers, "--command-config", str(config)
            ) as producer,
            await TOOLS.start(
                CONSUMER,
                *servers,
                *("--command-config", str(config), "--from-beginning", "--group", "g"),
            ) as consumer,
        ):
            for number in range(24):
                await producer.write(f"{number}\n")
                assert await consumer.readline(60) == str(number)
                await asyncio.sleep(0.25)
            await producer.close_input()
            await producer.wait()
            consumer.terminate()
            await consumer.wait()
        check(broker, "SCRAM-SHA-256", again=4)


async def test_java_tools_make_tokens_and_users(broker: Broker, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text(java_properties(broker, "SASL", "PLAIN"))
    servers = ("--bootstrap-server", broker.bootstrap("SASL"))
    common = (*servers, "--command-config", str(config))
    made = await TOOLS.run(TOKENS, *common, "--create", "--max-life-time-period", "-1")
    assert made.returncode == 0, made.stdout + made.stderr
    (row,) = [line.split() for line in made.lines if "User:alice" in line]
    login = f'username="{row[0]}" password="{row[1]}" tokenauth="true"'
    config.write_text(java_properties(broker, "SASL", "SCRAM-SHA-256", login=login))
    await with_java(broker, "SASL", config, "t")
    config.write_text(java_properties(broker, "SASL", "PLAIN"))
    entity = ("--entity-type", "users", "--entity-name", "carl")
    added = "SCRAM-SHA-512=[iterations=8192,password=carl-secret]"
    altered = await TOOLS.run(
        CONFIGS, *common, "--alter", *entity, "--add-config", added
    )
    assert altered.returncode == 0, altered.stdout + altered.stderr
    config.write_text(
        java_properties(
            broker,
            "SASL",
            "SCRAM-SHA-512",
            login='username="carl" password="carl-secret"',
        )
    )
    topic = "carls"
    broker.create_topic(topic)
    await with_java(broker, "SASL", config, topic)
    counts = broker.security.authentications
    assert (counts.failed, counts.killed) == ({}, 0)
    assert counts.first["SCRAM-SHA-512"] > 0


async def test_java_tools_add_list_and_remove_acls(tmp_path: Path) -> None:
    async with Broker(topics={"t": 1}, sasl=True, acls=True) as broker:
        config = tmp_path / "client.properties"
        config.write_text(java_properties(broker, "SASL", "PLAIN"))
        as_alice = ("--bootstrap-server", broker.bootstrap("SASL"))
        as_alice = (*as_alice, "--command-config", str(config))
        as_root = ("--bootstrap-server", broker.bootstrap_servers)
        refused = await TOOLS.run(ACLS, *as_alice, "--list")
        assert "ClusterAuthorizationException" in refused.stdout + refused.stderr
        alice = ("--allow-principal", "User:alice")
        reader = ("--consumer", "--topic", "t", "--group", "g")
        reader = (*reader, "--resource-pattern-type", "prefixed")
        await acl_command(*as_root, "--add", *alice, "--cluster", "--operation", "All")
        # From here on, alice may do it herself.
        await acl_command(*as_alice, "--add", *alice, *reader)
        assert acls_of(broker) == {
            ("CLUSTER", CLUSTER_NAME, "LITERAL", "ALL"),
            ("TOPIC", "t", "PREFIXED", "READ"),
            ("TOPIC", "t", "PREFIXED", "DESCRIBE"),
            ("GROUP", "g", "PREFIXED", "READ"),
        }
        matching = ("--resource-pattern-type", "match", "--topic", "table")
        listed = await acl_command(*as_alice, "--list", *matching)
        assert "resourceType=TOPIC, name=t, patternType=PREFIXED" in listed
        assert "principal=User:alice, host=*, operation=READ" in listed
        await acl_command(*as_alice, "--remove", "--force", *alice, *reader)
        assert {kind for kind, *_ in acls_of(broker)} == {"CLUSTER"}


async def acl_command(*arguments: str) -> str:
    done = await TOOLS.run(ACLS, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Error" not in done.stdout
    return done.stdout


def acls_of(broker: Broker) -> set[tuple[str, str, str, str]]:
    assert broker.security.acls is not None
    return {
        (acl.resource_type.name, acl.name, acl.pattern.name, acl.operation.name)
        for acl in broker.security.acls.find(AclFilter())
    }


# ---- kafkaio's own Admin -------------------------------------------------------------


async def test_admin_changes_rights_users_and_tokens() -> None:
    sha = ScramMechanism.SCRAM_SHA_256
    reads = AclBinding(AclResourceType.TOPIC, "t", "User:heidi", AclOperation.READ)
    everything = AclBindingFilter()
    async with Broker(sasl=True, acls=True) as broker:
        async with Admin(broker.bootstrap_servers) as admin:
            assert await admin.create_acls([reads]) == {reads: None}
            assert await admin.describe_acls() == [reads]
            assert await admin.delete_acls([everything]) == {everything: (reads,)}
            assert await admin.describe_acls() == []
            await admin.alter_user_scram_credentials(
                [ScramUpsertion("heidi", sha, "pencil", 4_096)]
            )
            found = await admin.describe_user_scram_credentials(["heidi"])
            assert found == {"heidi": (ScramCredential(sha, 4_096),)}
        async with Admin(
            broker.bootstrap("SASL"),
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="SCRAM-SHA-256",
            sasl_username="heidi",
            sasl_password="pencil",
        ) as heidi:
            token = await heidi.create_delegation_token(renewers=["User:bob"])
            assert (token.owner, token.renewers) == ("User:heidi", ("User:bob",))
            assert await heidi.describe_delegation_token() == [token]
            await heidi.expire_delegation_token(token)
            assert await heidi.describe_delegation_token() == []
