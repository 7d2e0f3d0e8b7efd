"""What sidecars add to the properties of brokers, and what they need."""

from pathlib import Path
from typing import Any

import pytest

from kafkaio.testing.kafka import ClusterOptions, KafkaNotStarted
from kafkaio.testing.kafka._cluster import JvmCluster
from kafkaio.testing.kafka._properties import Plan, server_properties
from kafkaio.testing.kafka._releases import find_release
from tests.support.kafka import Kafka, sidecars_of
from tests.support.kafka.kdc import KerberosService, kerberos_properties
from tests.support.kafka.oidc import TokenRules, token_properties
from tests.support.kafka.zookeeper import forget_after, zookeeper_properties

KRAFT = find_release()
DATA = Path("data")


def test_only_a_release_before_kraft_gets_a_zookeeper() -> None:
    assert sidecars_of(ClusterOptions(version="3.9")) == []
    assert len(sidecars_of(ClusterOptions(version="2.8"))) == 1


def test_without_a_zookeeper_an_old_release_says_what_to_use() -> None:
    cluster = JvmCluster(ClusterOptions(version="2.1"))
    with pytest.raises(KafkaNotStarted, match=r"2\.1 keeps its metadata in ZooKeeper"):
        cluster.open()


def test_zookeeper_listens_on_loopback_only() -> None:
    found = zookeeper_properties(5, DATA)
    assert (found["clientPort"], found["clientPortAddress"]) == (5, "127.0.0.1")


def test_zookeeper_forgets_after_the_session_timeout() -> None:
    assert forget_after({"zookeeper.session.timeout.ms": 2000}) == 3
    assert forget_after({}) == 19


def test_signed_tokens() -> None:
    rules = TokenRules(keys=Path("/k/keys.json"), issuer="i", audience="a")
    found = server_properties(Plan(release=KRAFT, users={}), 1, {"SASL": 2}, DATA)
    assert found.keys() >= {"listener.name.sasl.oauthbearer.sasl.jaas.config"}
    found |= token_properties(["SASL"], rules)
    prefix = "listener.name.sasl.oauthbearer.sasl"
    assert found[f"{prefix}.oauthbearer.jwks.endpoint.url"] == "file:///k/keys.json"
    assert found[f"{prefix}.oauthbearer.expected.issuer"] == "i"
    assert found[f"{prefix}.oauthbearer.expected.audience"] == "a"
    assert "Validator" in str(found[f"{prefix}.server.callback.handler.class"])
    assert "unsecured" not in str(found[f"{prefix}.jaas.config"])


def test_gssapi_is_one_more_mechanism_of_sasl_listeners() -> None:
    service = KerberosService(principal="kafka/127.0.0.1@R", keytab=Path("/k"))
    ports = {"PLAINTEXT": 1, "SASL": 2, "SASL_SSL": 3}
    plan = Plan(release=KRAFT, users={"alice": "s"})
    plain = server_properties(plan, 1, ports, DATA)
    found = kerberos_properties(plain, ["SASL", "SASL_SSL"], service)
    assert found["sasl.kerberos.service.name"] == "kafka"
    for listener in ("sasl", "sasl_ssl"):
        prefix = f"listener.name.{listener}."
        key = f"{prefix}sasl.enabled.mechanisms"
        assert found[key] == f"{plain[key]},GSSAPI"
        login = str(found[f"{prefix}gssapi.sasl.jaas.config"])
        assert 'keyTab="/k" principal="kafka/127.0.0.1@R";' in login
    assert not any("gssapi" in name or "kerberos" in name for name in plain)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"oidc": True}, "oidc needs sasl=True"),
        (
            {"oidc": True, "sasl": True, "version": "2.8"},
            "oidc needs Kafka 3.9, not 2.8.2",
        ),
        ({"gssapi": True}, "gssapi needs sasl=True"),
    ],
)
def test_security_that_cannot_be(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Kafka(**options)
