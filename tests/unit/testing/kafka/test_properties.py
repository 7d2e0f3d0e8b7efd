"""server.properties as a value."""

from pathlib import Path
from typing import Any

import pytest

from kafkaio.testing.kafka._options import ClusterOptions
from kafkaio.testing.kafka._properties import (
    FAST,
    BrokerTlsFiles,
    Plan,
    server_properties,
    spell,
)
from kafkaio.testing.kafka._releases import find_release

KRAFT = find_release()
OLD = find_release("2.8")
DATA = Path("data")
TLS = BrokerTlsFiles(keystore=Path("k"), truststore=Path("t"), password="p")


def test_a_kraft_node_is_broker_and_controller() -> None:
    plan = Plan(release=KRAFT).with_voters({1: 5, 2: 6})
    found = server_properties(plan, 2, {"CONTROLLER": 6, "PLAINTEXT": 7}, DATA)
    assert found["process.roles"] == "broker,controller"
    assert found["controller.quorum.voters"] == "1@127.0.0.1:5,2@127.0.0.1:6"
    assert found["listeners"] == "CONTROLLER://127.0.0.1:6,PLAINTEXT://127.0.0.1:7"
    assert found["advertised.listeners"] == "PLAINTEXT://127.0.0.1:7"
    assert found["broker.rack"] == "r2"
    assert found["log.dirs"] == DATA
    assert "zookeeper.connect" not in found


def test_voters_that_can_change_are_not_named() -> None:
    plan = Plan(release=KRAFT, dynamic_voters=True).with_voters({1: 5, 2: 6})
    found = server_properties(plan, 2, {"CONTROLLER": 6, "PLAINTEXT": 7}, DATA)
    addresses = found["controller.quorum.bootstrap.servers"]
    assert addresses == "127.0.0.1:5,127.0.0.1:6"
    assert "controller.quorum.voters" not in found
    with pytest.raises(ValueError, match=r"dynamic_voters needs Kafka 3\.9"):
        ClusterOptions(version="2.8", dynamic_voters=True)


def test_an_old_node_is_no_controller() -> None:
    plan = Plan(release=OLD)
    found = server_properties(plan, 1, {"PLAINTEXT": 7}, DATA)
    assert found["broker.id"] == 1
    assert "process.roles" not in found
    assert "controller.listener.names" not in found


def test_replication_follows_the_number_of_brokers() -> None:
    def factor(brokers: int) -> tuple[object, object]:
        plan = Plan(release=KRAFT, brokers=brokers)
        found = server_properties(plan, 1, {}, DATA)
        return found["offsets.topic.replication.factor"], found["min.insync.replicas"]

    assert [factor(n) for n in (1, 2, 3, 5)] == [(1, 1), (2, 1), (3, 2), (3, 2)]


def test_what_is_asked_for_wins() -> None:
    plan = Plan(release=KRAFT, config={"num.io.threads": 9, "broker.rack": "x"})
    found = server_properties(plan, 1, {}, DATA)
    assert (found["num.io.threads"], found["broker.rack"]) == (9, "x")


def test_the_brokers_defaults_are_left_alone_when_not_fast() -> None:
    plan = Plan(release=KRAFT, fast=False, rack=False)
    found = server_properties(plan, 1, {}, DATA)
    assert not FAST.keys() & found.keys()
    assert "broker.rack" not in found


def test_listeners_follow_what_is_asked_for() -> None:
    users = {"bob": "w"}
    assert Plan(release=KRAFT).listeners == ["PLAINTEXT"]
    assert Plan(release=KRAFT, users=users).listeners == ["PLAINTEXT", "SASL"]
    assert Plan(release=KRAFT, tls=TLS).listeners == ["PLAINTEXT", "SSL", "MTLS"]
    both = Plan(release=KRAFT, users=users, tls=TLS).listeners
    assert both == ["PLAINTEXT", "SASL", "SSL", "MTLS", "SASL_SSL"]


def test_one_sasl_listener_serves_four_mechanisms() -> None:
    plan = Plan(release=KRAFT, users={"bob": "w", "eve": "v"})
    found = server_properties(plan, 1, {"PLAINTEXT": 1, "SASL": 2}, DATA)
    prefix = "listener.name.sasl."
    enabled = str(found[f"{prefix}sasl.enabled.mechanisms"]).split(",")
    assert enabled == ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
    plain = str(found[f"{prefix}plain.sasl.jaas.config"])
    assert plain.endswith('PlainLoginModule required user_bob="w" user_eve="v";')
    for mechanism in enabled:
        assert f"{prefix}{mechanism.lower()}.sasl.jaas.config" in found
    assert found["listener.security.protocol.map"] == (
        "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT"
    )


def test_only_one_listener_demands_client_certificates() -> None:
    plan = Plan(release=KRAFT, tls=TLS)
    found = server_properties(plan, 1, {"SSL": 1, "MTLS": 2}, DATA)
    demands = {key for key in found if key.endswith("ssl.client.auth")}
    assert demands == {"listener.name.mtls.ssl.client.auth"}
    assert found["ssl.keystore.location"] == Path("k")


def test_spelling_is_javas() -> None:
    assert spell({"a": True, "b": 1, "c": "x\\y\nz"}) == "a=true\nb=1\nc=x\\\\y\\nz\n"


def test_options_fill_in_users_and_feature_levels() -> None:
    options = ClusterOptions(features={"group.version": 0})
    assert options.accounts == {"alice": "alice-secret"}
    assert ClusterOptions(users={"a": "b"}).accounts == {"a": "b"}
    assert options.levels["group.version"] == 0
    assert options.levels["metadata.version"] == 33
    assert options.release.features["group.version"] == 1


def test_sessions_rights_and_delegation_tokens() -> None:
    plan = Plan(release=KRAFT, reauth_ms=2000, acls=True, delegation_tokens=True)
    found = server_properties(plan, 1, {}, DATA)
    assert found["connections.max.reauth.ms"] == 2000
    assert str(found["authorizer.class.name"]).endswith("StandardAuthorizer")
    assert found["super.users"] == "User:ANONYMOUS"
    assert found["delegation.token.secret.key"]
    for release, authorizer in (
        ("2.8", "authorizer.AclAuthorizer"),
        ("2.1", "SimpleAclAuthorizer"),
    ):
        old = Plan(release=find_release(release), acls=True)
        name = server_properties(old, 1, {}, DATA)["authorizer.class.name"]
        assert str(name).endswith(authorizer)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"reauth_ms": 2000}, "reauth_ms needs sasl=True"),
        ({"reauth_ms": 0, "sasl": True}, "reauth_ms must be at least 1, not 0"),
        (
            {"reauth_ms": 2000, "sasl": True, "version": "2.1"},
            "reauth_ms needs Kafka 2.2, not 2.1.1",
        ),
        ({"delegation_tokens": True}, "delegation_tokens needs sasl or tls=True"),
    ],
)
def test_security_that_cannot_be(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        ClusterOptions(**options)
