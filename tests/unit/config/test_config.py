import ssl
from dataclasses import fields
from typing import get_type_hints

import pytest

from kafkaio.config import (
    ClientConfig,
    ClientOptions,
    ConsumerConfig,
    ConsumerOptions,
    ProducerConfig,
    ProducerOptions,
    options,
    parse_servers,
)
from kafkaio.errors import ConfigurationError

CONFIGS = [
    (ClientConfig, ClientOptions),
    (ProducerConfig, ProducerOptions),
    (ConsumerConfig, ConsumerOptions),
]


@pytest.mark.parametrize(("config", "keywords"), CONFIGS)
def test_keyword_types_name_every_option(config: type, keywords: type) -> None:
    options.__dict__["ssl"] = ssl  # a name that only type checkers see
    try:
        names = set(get_type_hints(keywords))
    finally:
        del options.__dict__["ssl"]
    assert names == {f.name for f in fields(config)} - {"bootstrap_servers"}


@pytest.mark.parametrize(
    ("text", "servers"),
    [
        ("a", (("a", 9092),)),
        ("a:1,b:2", (("a", 1), ("b", 2))),
        ("a:1, b", (("a", 1), ("b", 9092))),
        ("[::1]:7", (("::1", 7),)),
        ("[fe80::1]", (("fe80::1", 9092),)),
        ("PLAINTEXT://broker:9", (("broker", 9),)),
        (["a:1", "b"], (("a", 1), ("b", 9092))),
    ],
)
def test_servers(text: str, servers: tuple[tuple[str, int], ...]) -> None:
    assert parse_servers(text) == servers


@pytest.mark.parametrize("text", ["", " , ", "a:0", "a:65536", "a:b", "a b:1", [], [1]])
def test_servers_that_make_no_sense(text: str) -> None:
    with pytest.raises(ConfigurationError, match="server"):
        parse_servers(text)


def test_defaults_are_those_of_the_java_client() -> None:
    producer = ProducerConfig.of("a", {})
    assert producer.required_acks == -1
    assert producer.enable_idempotence is True
    assert producer.linger_ms == 5
    assert producer.batch_size == 1_000_000  # Java has 16,384: ADR 15
    assert producer.delivery_timeout_ms == 120_000
    consumer = ConsumerConfig.of("a", {})
    assert consumer.session_timeout_ms == 45_000
    assert consumer.auto_offset_reset == "latest"


@pytest.mark.parametrize(
    ("config", "given", "message"),
    [
        (ProducerConfig, {"lingr_ms": 1}, "unknown option 'lingr_ms'.*'linger_ms'"),
        (ProducerConfig, {"zzz": 1}, "unknown option 'zzz'$"),
        (ProducerConfig, {"linger_ms": -1}, "linger_ms=-1 is not within"),
        (ProducerConfig, {"linger_ms": True}, "linger_ms=True has the wrong type"),
        (ProducerConfig, {"linger_ms": "5"}, "wrong type"),
        (ProducerConfig, {"acks": 2}, "acks=2 is none of"),
        (ProducerConfig, {"acks": True}, "acks=True is none of"),
        (ProducerConfig, {"compression_type": "lz"}, "did you mean 'lz4'"),
        (ProducerConfig, {"compression_lz4_level": "9"}, "wrong type"),
        (ProducerConfig, {"compression_lz4_level": 99}, "not within 1 to 16"),
        (ProducerConfig, {"delivery_timeout_ms": 1}, "less than linger_ms"),
        (ProducerConfig, {"acks": 1, "enable_idempotence": True}, "wants acks='all'"),
        (ProducerConfig, {"retries": 0, "enable_idempotence": True}, "retries > 0"),
        (
            ProducerConfig,
            {"max_in_flight_requests_per_connection": 6, "enable_idempotence": True},
            "<= 5",
        ),
        (ProducerConfig, {"enable_idempotence": 1}, "wrong type"),
        (ConsumerConfig, {"group_id": ""}, "group_id is empty"),
        (ConsumerConfig, {"group_id": 5}, "wrong type"),
        (ConsumerConfig, {"group_instance_id": "a"}, "wants a group_id"),
        (ConsumerConfig, {"auto_offset_reset": "eariest"}, "use latest, earliest"),
        (ConsumerConfig, {"auto_offset_reset": "by_duration:P"}, "ISO 8601"),
        (ConsumerConfig, {"heartbeat_interval_ms": 45_000}, "must be less than"),
        (ConsumerConfig, {"partition_assignment_strategy": ()}, "no assignor"),
        (ClientConfig, {"security_protocol": "SASL"}, "none of PLAINTEXT, SSL"),
    ],
)
def test_impossible_options(
    config: type[ClientConfig], given: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        config.of("a", given)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    "given",
    [
        {"acks": 1},
        {"acks": 0},
        {"retries": 0},
        {"max_in_flight_requests_per_connection": 6},
    ],
)
def test_idempotence_gives_way_unless_it_was_asked_for(
    given: dict[str, object],
) -> None:
    assert ProducerConfig.of("a", given).enable_idempotence is False


def test_properties_of_java_and_librdkafka() -> None:
    config = ConsumerConfig.from_properties(
        {
            "bootstrap.servers": "x:1",
            "session.timeout.ms": "6000",
            "enable.auto.commit": "false",
            "group.id": "g",
            "partition.assignment.strategy": "range, roundrobin",
            "auto.offset.reset": "by_duration:P1DT1H30M2.5S",
            "fetch.message.max.bytes": "17",
        }
    )
    assert config.bootstrap_servers == (("x", 1),)
    assert (config.session_timeout_ms, config.enable_auto_commit) == (6000, False)
    assert config.partition_assignment_strategy == ("range", "roundrobin")
    assert config.reset_duration_ms() == ((25 * 60 + 30) * 60) * 1000 + 2500
    assert config.max_partition_fetch_bytes == 17
    producer = ProducerConfig.from_properties(
        {
            "metadata.broker.list": ["x"],
            "acks": "1",
            "linger.ms": "0.5",
            "enable.idempotence": "false",
            "compression.zstd.level": "7",
            "compression.type": "zstd",
        }
    )
    assert (producer.required_acks, producer.linger_ms) == (1, 0.5)
    assert producer.compression_level == 7


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"linger.ms": 5}, "bootstrap.servers is missing"),
        ({"bootstrap.servers": "x", "linger.sm": 5}, "did you mean 'linger.ms'"),
        ({"bootstrap.servers": "x", "linger.ms": "soon"}, "linger_ms='soon'"),
        ({"bootstrap.servers": "x", "acks": "most"}, "acks='most'"),
    ],
)
def test_impossible_properties(given: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        ProducerConfig.from_properties(given)


def test_level_of_the_codec_in_use() -> None:
    assert (
        ProducerConfig.of("a", {"compression_gzip_level": 3}).compression_level is None
    )
    given = {"compression_type": "gzip", "compression_gzip_level": 3}
    assert ProducerConfig.of("a", given).compression_level == 3
