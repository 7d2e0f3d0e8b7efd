"""Other people's clients, as they log in to a broker: librdkafka, aiokafka, Java's.

Each writes `COUNT` records to a topic and reads them in a group.
"""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from kafkaio.testing._security.files import Certificates
from kafkaio.testing.kafka._releases import find_release
from tests.support.java import Toolbox
from tests.support.patience import HANGS

__all__ = [
    "CONSUMER",
    "COUNT",
    "PASSWORD",
    "PRODUCER",
    "TOOLS",
    "USER",
    "Secured",
    "confluent_config",
    "java_properties",
    "round_trip",
    "with_aiokafka",
    "with_java",
]

TOOLS = Toolbox(find_release())
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
COUNT = 30
USER, PASSWORD = "alice", "alice-secret"
LOGIN = "org.apache.kafka.common.security"
PROTOCOLS = {"SASL": "SASL_PLAINTEXT", "MTLS": "SSL"}


class Secured(Protocol):
    """A broker with listeners that authenticate: embedded or real."""

    def bootstrap(self, listener: str) -> str: ...

    @property
    def certificates(self) -> Certificates: ...


def unsigned(_: str) -> tuple[str, float]:
    """A token without a signature, and when it ends."""
    now = time.time()
    claims = {"sub": USER, "iat": now, "exp": now + 3600}
    parts = (json.dumps(part).encode() for part in ({"alg": "none"}, claims))
    encoded = (base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)
    return ".".join(encoded) + ".", now + 3600


def confluent_config(broker: Secured, listener: str, mechanism: str) -> dict[str, Any]:
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


def round_trip(
    config: Mapping[str, Any], seconds: float = 0.0, topic: str = "t"
) -> list[bytes]:
    """Write for some seconds, at least COUNT records; read them all."""
    import confluent_kafka

    failed: list[Any] = []
    producer = confluent_kafka.Producer(dict(config) | {"enable.idempotence": True})
    told: Callable[[Any, Any], None] = lambda err, _: failed.append(err)  # noqa: E731
    until, number = time.monotonic() + seconds, 0
    while number < COUNT or time.monotonic() < until:
        producer.produce(topic, b"%d" % number, on_delivery=told)
        number += 1
        if number > COUNT:
            producer.poll(0.02)
    assert producer.flush(30) == 0
    assert failed == [None] * number
    consumer = confluent_kafka.Consumer(
        dict(config) | {"group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    found: list[bytes] = []
    deadline = time.monotonic() + 30
    while len(found) < number and time.monotonic() < deadline:
        for message in consumer.consume(number, 0.5):
            assert message.error() is None
            found.append(message.value() or b"")
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        assert consumer.consume(1, 0.2) == []
    consumer.close()
    assert sorted(found, key=int) == [b"%d" % one for one in range(number)]
    return found


async def with_aiokafka(broker: Secured, listener: str, mechanism: str) -> list[bytes]:
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
    async with asyncio.timeout(HANGS):
        while len(found) < COUNT:
            batches = await consumer.getmany(timeout_ms=500)
            found += [record.value for some in batches.values() for record in some]
    await consumer.stop()
    return found


def java_properties(
    broker: Secured,
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


async def with_java(broker: Secured, listener: str, config: Path, topic: str) -> None:
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
