"""The options of Java's clients: ours have their names and defaults, or a reason."""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any, Final

import pytest

from kafkaio._config.configs import ClientConfig, ConsumerConfig, ProducerConfig
from kafkaio._config.declaration import option_of
from kafkaio.errors import ConfigurationError
from kafkaio.testing.kafka._releases import find_release
from tests.support.java import Toolbox

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(60),
    pytest.mark.kafka_versions("newest"),
    pytest.mark.not_embedded("it asks Java's classes, and no broker"),
]

PROGRAM = Path(__file__).parents[1] / "java" / "config" / "ClientConfigs.java"
KINDS: Final[dict[str, type[ClientConfig]]] = {
    "producer": ProducerConfig,
    "consumer": ConsumerConfig,
    "admin": ClientConfig,
}
#: Options with another default on purpose; None there and null in Java is the same.
OTHER_DEFAULTS: Final = frozenset(
    {
        "batch.size",  # ADR 15
        "bootstrap.controllers",
        "bootstrap.resolve.timeout.ms",  # a service may start before its brokers' names
        "bootstrap.servers",
        "client.id",
        *("compression.gzip.level", "compression.lz4.level", "compression.zstd.level"),
        "connections.max.idle.ms",  # one for all kinds of client
        "enable.idempotence",  # None: unless other options forbid it
        "enable.metrics.push",
        "group.protocol",
        *("key.deserializer", "key.serializer"),
        "partition.assignment.strategy",
        *("receive.buffer.bytes", "send.buffer.bytes"),  # the system's
        "sasl.kerberos.service.name",
        "sasl.mechanism",
        *("ssl.keystore.type", "ssl.truststore.type"),  # Java's own format
        *("value.deserializer", "value.serializer"),
    }
)
#: Options of the JVM, of Java's classes or for its tests, which say nothing here.
OF_JAVA: Final = (
    "client.dns.lookup",
    "config.providers",
    "internal.",
    "metrics.recording.level",
    "retries",  # of an admin client: it has a time limit
    "sasl.kerberos.kinit.",
    "sasl.kerberos.min.time.",
    "sasl.kerberos.ticket.",
    "sasl.login.",
    "security.providers",
    "share.",  # of a share consumer
    "ssl.engine.",
    "ssl.keymanager.",
    "ssl.provider",
    "ssl.secure.random.",
    "ssl.trustmanager.",
)
#: How an option that is refused is explained.
REASONS: Final = ("unknown option", "has no meaning here", "is a broker's", "jaas")


async def test_each_option_of_java_is_here_or_explained() -> None:
    output = await Toolbox(find_release()).program(PROGRAM).run()
    assert output.returncode == 0, output.stderr
    rows = [tuple(line.split("\t")) for line in output.lines]
    assert {kind for kind, _, _ in rows} == set(KINDS)
    for kind, name, default in rows:
        config = KINDS[kind]
        ours = known(config)
        if name in ours:
            assert name in OTHER_DEFAULTS or is_same(ours[name], default), name
            continue
        given = {"bootstrap.servers": "a:1", name: default or "x"}
        with pytest.raises(ConfigurationError) as caught:
            config.from_properties(given)
        why = str(caught.value)
        if not name.startswith(OF_JAVA):
            assert any(reason in why for reason in REASONS), why
            assert why != f"unknown option {name!r}"
    missed = OTHER_DEFAULTS - {name for _, name, _ in rows}
    assert not missed


def known(config: type[ClientConfig]) -> dict[str, Field[Any]]:
    """The options of a config by the names that properties have."""
    ours = {each.name.replace("_", "."): each for each in fields(config)}
    return ours | {
        alias: each for each in fields(config) for alias in option_of(each).aliases
    }


def is_same(option: Field[Any], default: str) -> bool:
    assert option.default is not MISSING
    ours = "null" if option.default is None else str(option.default)
    return ours.lower() == default.lower()
