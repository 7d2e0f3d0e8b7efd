"""A cluster in containers, on an engine that only keeps books."""

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kafkaio.testing.kafka import _docker as docker
from kafkaio.testing.kafka._docker import (
    DockerCluster,
    can_contain,
    docker_answers,
    environment,
    environment_name,
)
from kafkaio.testing.kafka._options import ClusterOptions
from kafkaio.testing.kafka._properties import Plan
from kafkaio.testing.kafka._releases import KafkaNotStarted, find_release
from kafkaio.testing.kafka._wire import Address, WireMetadata


@dataclass
class FakeContainer:
    image: str
    alias: str
    port: int
    environment: Mapping[str, str]
    calls: list[str] = field(default_factory=list)

    def start(self) -> None:
        self.calls.append("start")

    def kill(self) -> None:
        self.calls.append("kill")

    def stop(self) -> None:
        self.calls.append("stop")

    def pause(self) -> None:
        self.calls.append("pause")

    def resume(self) -> None:
        self.calls.append("resume")

    def log(self) -> str:
        return f"the log of {self.alias}"

    def remove(self) -> None:
        self.calls.append("remove")

    @property
    def is_up(self) -> bool:
        return self.calls[-1] in {"start", "pause", "resume"}


class FakeDocker:
    """Brokers know one another while they run; `silent` ones never answer."""

    host = "127.0.0.1"

    def __init__(self) -> None:
        self.containers: list[FakeContainer] = []
        self.silent: set[int] = set()
        self.closed = 0

    def container(
        self, image: str, alias: str, port: int, environment: Mapping[str, str]
    ) -> FakeContainer:
        made = FakeContainer(image, alias, port, environment)
        self.containers.append(made)
        return made

    def close(self) -> None:
        self.closed += 1

    def metadata(self, address: Address) -> WireMetadata:
        up = {n: c for n, c in enumerate(self.containers, 1) if c.is_up}
        (node_id,) = [n for n, c in up.items() if c.port == address[1]]
        if node_id in self.silent:
            raise ConnectionRefusedError
        return WireMetadata({n: (self.host, c.port) for n, c in up.items()}, 1, {})


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> FakeDocker:
    found = FakeDocker()
    monkeypatch.setattr(docker, "metadata", found.metadata)
    return found


def cluster(engine: FakeDocker, brokers: int = 3, **more: float) -> DockerCluster:
    options = ClusterOptions(brokers=brokers, start_timeout=more.get("timeout", 5))
    return DockerCluster(options, lambda: engine)


def test_each_broker_has_a_container_at_its_own_port(engine: FakeDocker) -> None:
    kafka = cluster(engine)
    kafka.open()
    assert kafka.node_ids == [1, 2, 3]
    assert [c.alias for c in engine.containers] == ["kafka-1", "kafka-2", "kafka-3"]
    assert {c.image for c in engine.containers} == {"apache/kafka:4.4.0"}
    ports = [("127.0.0.1", c.port) for c in engine.containers]
    assert kafka.addresses("PLAINTEXT") == ports
    assert len({c.environment["CLUSTER_ID"] for c in engine.containers}) == 1
    with pytest.raises(KeyError):
        kafka.addresses("SASL")
    kafka.close()
    kafka.close()
    assert [c.calls for c in engine.containers] == [["start", "remove"]] * 3
    assert engine.closed == 1


def test_nodes_are_controlled_one_by_one(engine: FakeDocker) -> None:
    kafka = cluster(engine)
    kafka.open()
    kafka.kill(2)
    kafka.start(2)
    kafka.stop(3)
    kafka.start(3, wait=False)
    kafka.pause(1)
    kafka.resume(1)
    first, second, third = (c.calls for c in engine.containers)
    assert first == ["start", "pause", "resume"]
    assert second == ["start", "kill", "start"]
    assert third == ["start", "stop", "start"]
    assert kafka.log(2) == "the log of kafka-2"


def test_a_broker_that_stays_silent_fails_the_start(engine: FakeDocker) -> None:
    engine.silent.add(1)
    kafka = cluster(engine, timeout=0.0)
    with pytest.raises(KafkaNotStarted, match="the log of kafka-1"):
        kafka.open()


def test_nothing_starts_once_closed(engine: FakeDocker) -> None:
    kafka = cluster(engine)
    kafka.close()
    with pytest.raises(KafkaNotStarted, match="closed"):
        kafka.open()
    assert engine.containers == []


def test_properties_become_variables_of_the_image() -> None:
    assert environment_name("log.dirs") == "KAFKA_LOG_DIRS"
    assert environment_name("a_b-c.d") == "KAFKA_A__B___C_D"


def test_brokers_meet_inside_and_clients_come_from_outside() -> None:
    plan = Plan(release=find_release(), brokers=2)
    found = environment(plan, 2, ("docker.test", 25000))
    assert found["KAFKA_NODE_ID"] == "2"
    assert found["KAFKA_CONTROLLER_QUORUM_VOTERS"] == "1@kafka-1:9093,2@kafka-2:9093"
    assert found["KAFKA_ADVERTISED_LISTENERS"] == (
        "PLAINTEXT://docker.test:25000,INTERNAL://kafka-2:19092"
    )
    assert "PLAINTEXT://:25000" in found["KAFKA_LISTENERS"]
    assert found["KAFKA_INTER_BROKER_LISTENER_NAME"] == "INTERNAL"


@pytest.mark.parametrize(
    "options",
    [
        ClusterOptions(sasl=True),
        ClusterOptions(tls=True),
        ClusterOptions(acls=True),
        ClusterOptions(features={"group.version": 0}),
        ClusterOptions(version="2.8"),
    ],
)
def test_what_containers_cannot_be_is_refused(options: ClusterOptions) -> None:
    assert not can_contain(options)
    with pytest.raises(ValueError, match="containers have no"):
        DockerCluster(options)


def test_without_an_engine_docker_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "docker.sock"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
    assert not docker_answers()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))  # bound, and nobody listens
        assert not docker_answers()
    assert os.environ["DOCKER_HOST"] == f"unix://{path}"
