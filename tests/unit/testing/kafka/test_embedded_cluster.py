"""The embedded broker in a real Kafka's place."""

import socket
import struct

import pytest

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._headers import decode_response, encode_request
from kafkaio.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from kafkaio.testing.kafka import KafkaNotStarted, TopicNotCreated, real_kafka
from kafkaio.testing.kafka._source import KAFKA_VARIABLE
from kafkaio.testing.kafka._wire import metadata


@pytest.fixture(autouse=True)
def _embedded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KAFKA_VARIABLE, "embedded")


def test_it_lives_in_a_thread_and_obeys() -> None:
    with real_kafka(2, "2.8") as kafka:
        assert kafka.node_ids == [1, 2]
        first, second = kafka.engine.addresses("PLAINTEXT")
        kafka.create_topic_blocking("t", partitions=2)
        with pytest.raises(TopicNotCreated):
            kafka.create_topic_blocking("t")
        kafka.engine.kill(1)
        with pytest.raises(OSError, match="refused"):
            metadata(first, timeout=10)
        kafka.engine.start(1)
        kafka.engine.start(1)
        assert kafka.engine.addresses("PLAINTEXT") == [first, second]
        kafka.engine.pause(1)
        with pytest.raises(TimeoutError):
            metadata(first, timeout=0.1)
        kafka.engine.resume(1)
        metadata(first, timeout=10)
        assert "METADATA" in kafka.engine.log(1)
        kafka.engine.stop(2)
        with pytest.raises(KeyError):
            kafka.engine.addresses("SSL")
    with pytest.raises(OSError, match="refused"):
        metadata(first, timeout=10)


def test_a_start_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: object) -> int:
        raise OSError("no port")

    monkeypatch.setattr("kafkaio.testing._broker.listener.TcpListener.open", refuse)
    with pytest.raises(OSError, match="no port"), real_kafka():
        pass


def test_what_it_does_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KafkaNotStarted, match="no such options"):
        real_kafka(config={"broker.rack": "r"})
    monkeypatch.setenv(KAFKA_VARIABLE, "redis")
    with pytest.raises(KafkaNotStarted, match="it can be 'embedded'"):
        real_kafka()


def test_it_has_the_listeners_of_a_real_kafka() -> None:
    with real_kafka(sasl=True, tls=True, users={"bob": "bob-secret"}) as kafka:
        listeners = ("PLAINTEXT", "SASL", "SSL", "MTLS", "SASL_SSL")
        assert len({kafka.bootstrap(name) for name in listeners}) == len(listeners)
        assert kafka.certificates.authority.exists()
        assert set(kafka.certificates.clients) == {"bob"}


def test_it_checks_rights() -> None:
    with real_kafka(tls=True, acls=True, users={"bob": "b"}) as kafka:
        # Whoever comes by PLAINTEXT may do everything, bob may see nothing.
        kafka.create_topic_blocking("t")
        asked = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
        host, _, port = kafka.bootstrap("MTLS").rpartition(":")
        context = kafka.certificates.client_context("bob")
        with (
            socket.create_connection((host, int(port)), 10) as plain,
            context.wrap_socket(plain, server_hostname=host) as secured,
            secured.makefile("rb") as answers,
        ):
            secured.sendall(encode_request(asked, 12, 7, "bob"))
            (length,) = struct.unpack(">i", answers.read(4))
            frame = answers.read(length)
        (found,) = decode_response(MetadataResponse, 12, frame).topics
        assert found.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
