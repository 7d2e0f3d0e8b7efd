"""Other people's clients log in to the embedded broker, as to any Kafka."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from kafkaio.testing import Broker
from kafkaio.testing.kafka.releases import find_release
from tests.support.java import Toolbox

# The version of a real Kafka means nothing here, so once is enough.
pytestmark = [
    pytest.mark.kafka_versions("4.3"),
    pytest.mark.not_embedded("runs on embedded brokers of its own in any case"),
    pytest.mark.timeout(180),
]

TOOLS = Toolbox(find_release("4.3"))
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
TOKENS = "org.apache.kafka.tools.DelegationTokenCommand"
CONFIGS = "kafka.admin.ConfigCommand"
COUNT = 30
USER, PASSWORD = "alice", "alice-secret"
LOGIN = "org.apache.kafka.common.security"
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
PROTOCOLS = {"SASL": "SASL_PLAINTEXT", "MTLS": "SSL"}


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


def unsigned(_: str) -> tuple[str, float]:
    """A token without a signature, and when it ends."""
    now = time.time()
    claims = {"sub": USER, "iat": now, "exp": now + 3600}
    parts = (json.dumps(part).encode() for part in ({"alg": "none"}, claims))
    encoded = (base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)
    return ".".join(encoded) + ".", now + 3600


# ---- librdkafka ---------------------------------------------------------------------


def confluent_config(broker: Broker, listener: str, mechanism: str) -> dict[str, Any]:
    config: dict[str, Any] = {
        "bootstrap.servers": broker.bootstrap(listener),
        "security.protocol": PROTOCOLS.get(listener, listener),
        "log_level": 0,
    }
    if "SSL" in config["security.protocol"]:
        config["ssl.ca.location"] = str(broker.certificates.authority)
    if listener == "MTLS":
        pair = str(broker.certificates.clients[USER])
        config |= {"ssl.certificate.location": pair, "ssl.key.location": pair}
    if mechanism:
        config["sasl.mechanism"] = mechanism
    if mechanism == "OAUTHBEARER":
        config["oauth_cb"] = unsigned
    elif mechanism:
        config |= {"sasl.username": USER, "sasl.password": PASSWORD}
    return config


def round_trip(config: Mapping[str, Any], seconds: float = 0.0) -> list[bytes]:
    """Write for some seconds, at least COUNT records; read them all."""
    import confluent_kafka

    failed: list[Any] = []
    producer = confluent_kafka.Producer(dict(config) | {"enable.idempotence": True})
    told: Callable[[Any, Any], None] = lambda err, _: failed.append(err)  # noqa: E731
    until, number = time.monotonic() + seconds, 0
    while number < COUNT or time.monotonic() < until:
        producer.produce("t", b"%d" % number, on_delivery=told)
        number += 1
        if number > COUNT:
            producer.poll(0.02)
    assert producer.flush(30) == 0
    assert failed == [None] * number
    consumer = confluent_kafka.Consumer(
        dict(config) | {"group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["t"])
    found: list[bytes] = []
    deadline = time.monotonic() + 30
    while len(found) < number and time.monotonic() < deadline:
        for message in consumer.consume(number, 0.5):
            assert message.error() is None
            found.append(message.value())
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        assert consumer.consume(1, 0.2) == []
    consumer.close()
    assert sorted(found, key=int) == [b"%d" % one for one in range(number)]
    return found


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


async def with_aiokafka(broker: Broker, listener: str, mechanism: str) -> list[bytes]:
    import aiokafka
    from aiokafka.abc import AbstractTokenProvider

    class Tokens(AbstractTokenProvider):  # type: ignore[misc]  # has no types
        async def token(self) -> str:
            return unsigned("")[0]

    options: dict[str, Any] = {
        "bootstrap_servers": broker.bootstrap(listener),
        "security_protocol": PROTOCOLS.get(listener, listener),
    }
    if "SSL" in options["security_protocol"]:
        user = USER if listener == "MTLS" else None
        options["ssl_context"] = broker.certificates.client_context(user)
    if mechanism:
        options["sasl_mechanism"] = mechanism
    if mechanism == "OAUTHBEARER":
        options["sasl_oauth_token_provider"] = Tokens()
    elif mechanism:
        options |= {"sasl_plain_username": USER, "sasl_plain_password": PASSWORD}
    producer = aiokafka.AIOKafkaProducer(**options)
    await producer.start()
    for number in range(COUNT):
        await producer.send("t", b"%d" % number)
    await producer.stop()
    consumer = aiokafka.AIOKafkaConsumer(
        "t", group_id="g", auto_offset_reset="earliest", **options
    )
    await consumer.start()
    found: list[bytes] = []
    async with asyncio.timeout(30):
        while len(found) < COUNT:
            batches = await consumer.getmany(timeout_ms=500)
            found += [record.value for some in batches.values() for record in some]
    await consumer.stop()
    return found


@pytest.mark.parametrize(("listener", "mechanism"), WAYS)
async def test_aiokafka(broker: Broker, listener: str, mechanism: str) -> None:
    pytest.importorskip("aiokafka")
    found = await with_aiokafka(broker, listener, mechanism)
    assert sorted(found, key=int) == [b"%d" % number for number in range(COUNT)]
    check(broker, mechanism)


# ---- Java ---------------------------------------------------------------------------


def java_properties(
    broker: Broker,
    listener: str,
    mechanism: str,
    *,
    login: str = f'username="{USER}" password="{PASSWORD}"',
) -> str:
    found = {"security.protocol": PROTOCOLS.get(listener, listener)}
    if "SSL" in found["security.protocol"]:
        found["ssl.truststore.type"] = "PEM"
        found["ssl.truststore.location"] = str(broker.certificates.authority)
    if listener == "MTLS":
        found["ssl.keystore.type"] = "PEM"
        found["ssl.keystore.location"] = str(broker.certificates.clients[USER])
    module = {
        "PLAIN": f"{LOGIN}.plain.PlainLoginModule required {login};",
        "OAUTHBEARER": (
            f"{LOGIN}.oauthbearer.OAuthBearerLoginModule required"
            f' unsecuredLoginStringClaim_sub="{USER}";'
        ),
    }
    if mechanism:
        found["sasl.mechanism"] = mechanism
        found["sasl.jaas.config"] = module.get(
            mechanism, f"{LOGIN}.scram.ScramLoginModule required {login};"
        )
    return "".join(f"{name}={value}\n" for name, value in found.items())


async def with_java(broker: Broker, listener: str, config: Path, topic: str) -> None:
    """Write and read with Kafka's console tools."""
    servers = ("--bootstrap-server", broker.bootstrap(listener), "--topic", topic)
    lines = [f"{topic} {number}" for number in range(COUNT)]
    produced = await TOOLS.run(
        PRODUCER,
        *servers,
        *("--command-config", str(config)),
        stdin="\n".join(lines) + "\n",
        timeout=90,
    )
    assert produced.returncode == 0, produced.stdout + produced.stderr
    consumed = await TOOLS.run(
        CONSUMER,
        *servers,
        *("--command-config", str(config), "--from-beginning", "--group", "g"),
        *("--max-messages", str(COUNT), "--timeout-ms", "30000"),
        timeout=90,
    )
    assert sorted(consumed.lines) == sorted(lines), consumed.stderr


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
    made = await TOOLS.run(
        TOKENS, *common, "--create", "--max-life-time-period", "-1", timeout=90
    )
    assert made.returncode == 0, made.stdout + made.stderr
    (row,) = [line.split() for line in made.lines if "User:alice" in line]
    login = f'username="{row[0]}" password="{row[1]}" tokenauth="true"'
    config.write_text(java_properties(broker, "SASL", "SCRAM-SHA-256", login=login))
    await with_java(broker, "SASL", config, "t")
    config.write_text(java_properties(broker, "SASL", "PLAIN"))
    entity = ("--entity-type", "users", "--entity-name", "carl")
    added = "SCRAM-SHA-512=[iterations=8192,password=carl-secret]"
    altered = await TOOLS.run(
        CONFIGS, *common, "--alter", *entity, "--add-config", added, timeout=90
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
