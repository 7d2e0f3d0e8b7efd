"""``from_properties`` takes the words that Java and librdkafka take, in any case."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from kafkaio import ConfigurationError
from kafkaio._config import ClientConfig, ConsumerConfig, ProducerConfig
from kafkaio._config.declaration import option_of

JAVA = "org.apache.kafka.clients.consumer"


def read(config: type[ClientConfig], **properties: object) -> Any:
    dotted = {name.replace("_", "."): value for name, value in properties.items()}
    return config.from_properties({"bootstrap.servers": "b:1", **dotted})


def choices() -> list[Any]:
    """Every word of every option that has a few, with what it depends on."""
    found = []
    for config in (ClientConfig, ProducerConfig, ConsumerConfig):
        for declared in fields(config):
            if declared.name in config.__annotations__:
                words = [c for c in option_of(declared).choices if isinstance(c, str)]
                found += [(config, declared.name, word) for word in words if word]
    return found


LOGIN = {"sasl_username": "u", "sasl_password": "p", "security_protocol": "SASL_SSL"}
BESIDE: dict[str, dict[str, object]] = {
    "SASL_PLAINTEXT": {**LOGIN, "sasl_mechanism": "PLAIN"},
    "SASL_SSL": {**LOGIN, "sasl_mechanism": "PLAIN"},
    "PLAIN": LOGIN,
    "SCRAM-SHA-256": LOGIN,
    "SCRAM-SHA-512": LOGIN,
    "GSSAPI": {"security_protocol": "SASL_SSL"},
    "OAUTHBEARER": {
        "security_protocol": "SASL_SSL",
        "sasl_oauthbearer_token_endpoint_url": "https://idp.test/token",
        "sasl_oauthbearer_client_credentials_client_id": "i",
        "sasl_oauthbearer_client_credentials_client_secret": "s",
    },
}


@pytest.mark.parametrize(("config", "name", "word"), choices())
def test_each_word_in_any_case(config: Any, name: str, word: str) -> None:
    wanted = read(config, **{**BESIDE.get(word, {}), name: word})
    for text in (word.lower(), word.upper(), f" {word.title()} "):
        made = read(config, **{**BESIDE.get(word, {}), name: text})
        assert getattr(made, name) == getattr(wanted, name)


@pytest.mark.parametrize(
    ("text", "reset"),
    [
        ("smallest", "earliest"),
        ("beginning", "earliest"),
        ("EARLIEST", "earliest"),
        ("largest", "latest"),
        ("end", "latest"),
        ("Latest", "latest"),
        ("error", "none"),
        ("NONE", "none"),
        ("by_duration:PT1H", "by_duration:PT1H"),
        ("BY_DURATION:p1dt2h", "by_duration:P1DT2H"),
    ],
)
def test_where_to_start_in_words_of_other_clients(text: str, reset: str) -> None:
    assert read(ConsumerConfig, auto_offset_reset=text).auto_offset_reset == reset


@pytest.mark.parametrize(
    ("given", "strategy"),
    [
        (f"{JAVA}.RangeAssignor", ("range",)),
        (f"{JAVA}.RoundRobinAssignor", ("roundrobin",)),
        (f"{JAVA}.StickyAssignor", ("sticky",)),
        (f"{JAVA}.CooperativeStickyAssignor", ("cooperative-sticky",)),
        (
            f"{JAVA}.CooperativeStickyAssignor, {JAVA}.RangeAssignor",
            ("cooperative-sticky", "range"),
        ),
        ([f"{JAVA}.StickyAssignor", "Range"], ("sticky", "range")),
        ("RANGE,RoundRobin", ("range", "roundrobin")),
    ],
)
def test_assignors_by_their_class_in_java(given: object, strategy: object) -> None:
    made = read(ConsumerConfig, group_id="g", partition_assignment_strategy=given)
    assert made.partition_assignment_strategy == strategy


def test_objects_stay_what_they_are() -> None:
    own = object()
    made = read(ConsumerConfig, group_id="g", partition_assignment_strategy=[own])
    assert made.partition_assignment_strategy == (own,)


@pytest.mark.parametrize(
    ("text", "flag"),
    [
        ("true", True),
        ("TRUE", True),
        ("1", True),
        ("t", True),
        ("0", False),
        ("F", False),
    ],
)
def test_flags_of_librdkafka(text: str, flag: bool) -> None:
    assert read(ConsumerConfig, enable_auto_commit=text).enable_auto_commit is flag


def test_the_partitioner_of_java_by_librdkafkas_name() -> None:
    assert read(ProducerConfig, partitioner="Murmur2_random").partitioner is None
    with pytest.raises(ConfigurationError, match="is not a function"):
        read(ProducerConfig, partitioner="fnv1a")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("auto_offset_reset", "newest"),
        ("auto_offset_reset", "earliest:PT1H"),
        ("auto_offset_reset", "by_duration"),
        ("group_protocol", "raft"),
        ("enable_auto_commit", "yes"),
    ],
)
def test_what_nobody_takes(name: str, text: str) -> None:
    with pytest.raises(ConfigurationError, match=name):
        read(ConsumerConfig, **{name: text})
