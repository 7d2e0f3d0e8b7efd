"""Which source a test's Kafka comes from."""

import pytest

from kafkaio.testing.kafka import _source as source
from kafkaio.testing.kafka._cluster import JvmCluster
from kafkaio.testing.kafka._docker import DockerCluster
from kafkaio.testing.kafka._source import (
    BOOTSTRAP_VARIABLE,
    ExternalCluster,
    parse_bootstrap,
    real_kafka,
)


@pytest.fixture(autouse=True)
def _docker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(BOOTSTRAP_VARIABLE, raising=False)
    monkeypatch.setattr(source, "docker_answers", lambda: True)


def test_a_running_cluster_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BOOTSTRAP_VARIABLE, "a:1, b:2")
    kafka = real_kafka()
    assert isinstance(kafka.engine, ExternalCluster)
    assert kafka.bootstrap_servers == "a:1,b:2"
    with pytest.raises(KeyError):
        kafka.bootstrap("SASL")
    with pytest.raises(RuntimeError, match="tls=True"):
        _ = kafka.certificates
    kafka.engine.close()


@pytest.mark.parametrize("verb", ["kill", "stop", "start", "pause", "resume", "log"])
def test_a_running_cluster_is_not_ours_to_control(verb: str) -> None:
    cluster = ExternalCluster("a:1")
    with pytest.raises(RuntimeError, match="not ours"):
        getattr(cluster, verb)(1)


def test_docker_comes_second() -> None:
    assert isinstance(real_kafka().engine, DockerCluster)


def test_what_containers_cannot_be_runs_here() -> None:
    assert isinstance(real_kafka(sasl=True).engine, JvmCluster)
    assert isinstance(real_kafka(version="2.8").engine, JvmCluster)


def test_without_docker_it_runs_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "docker_answers", lambda: False)
    kafka = real_kafka(3)
    assert isinstance(kafka.engine, JvmCluster)
    assert kafka.options.brokers == 3
    assert kafka.node_ids == []


def test_addresses_are_host_and_port() -> None:
    assert parse_bootstrap("a.b:1,[::1]:2,") == [("a.b", 1), ("::1", 2)]


@pytest.mark.parametrize("text", ["", ",", "host", ":1", "host:", "host:x"])
def test_what_is_not_an_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="host:port"):
        parse_bootstrap(text)
