"""No object, log line, event or figure of a client shows its secrets."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from kafkaio import Consumer, KafkaError, Producer
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.testing import Broker, SecurityConfig
from kafkaio.testing._broker.faults import garbage
from kafkaio.types import Token
from tests.unit.testing.broker.logins import token

PASSWORD = "alice-secret"
WAYS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


class Tokens:
    """A provider whose tokens can be found again."""

    def __init__(self) -> None:
        self.made: list[str] = []

    async def __call__(self) -> Token:
        value = token(seconds=2_000)
        self.made.append(value)
        return Token(value=value, expires=2e9)


class Events:
    """An observer that keeps all that it is told, as text."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *facts, **more: self.heard.append(f"{name} {facts} {more}")


def objects() -> Iterator[str]:
    """The text of every object of kafkaio that was made since `gc.freeze`."""
    for each in gc.get_objects():
        if type(each).__module__.startswith("kafkaio.") and not isinstance(
            each, Broker
        ):
            yield repr(each)


@pytest.fixture(autouse=True)
def only_new_objects() -> None:
    """Keep the objects of other tests out of `objects`."""
    gc.collect()
    gc.freeze()


@pytest.mark.parametrize("fault", [None, "refused", "lies"])
@pytest.mark.parametrize("mechanism", WAYS)
async def test_nothing_shows_a_secret(
    mechanism: str, fault: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    events, tokens = Events(), Tokens()
    credentials: dict[str, Any] = {"sasl_username": "alice", "sasl_password": PASSWORD}
    if mechanism == "OAUTHBEARER":
        credentials = {"sasl_oauth_token_provider": tokens}
    shown: list[str] = []
    with caplog.at_level(logging.DEBUG):
        async with Broker(
            topics={"t": 1},
            sasl=True,
            reauth_ms=1_400,
            users={"alice": "another" if fault == "refused" else PASSWORD},
            security=SecurityConfig(refusal_delay=0.0),
        ) as broker:
            if fault == "lies":
                lie = garbage(b"x" * 40)
                broker.faults.on(ApiKey.SASL_AUTHENTICATE, lie)
            options = {
                "bootstrap_servers": broker.bootstrap("SASL"),
                "security_protocol": "SASL_PLAINTEXT",
                "sasl_mechanism": mechanism,
                "observer": events,
                "default_api_timeout_ms": 2_000,
                **credentials,
            }
            producer = Producer(**options)
            consumer = Consumer(topics="t", group_id="g", **options)
            for each in (producer, consumer):
                try:
                    await each.start()
                except KafkaError as error:
                    shown += [str(error), repr(error), repr(vars(error))]
            if fault is None:
                await producer.send("t", b"v")
                assert len((await consumer.poll(timeout=5)).records) <= 1
            shown += objects()
            shown += [repr(each.statistics()) for each in (producer, consumer)]
            await consumer.close()
            await producer.close()
    assert len(shown) > 10
    assert events.heard or fault
    texts = [*shown, *events.heard, caplog.text]
    for secret in (PASSWORD, *tokens.made):
        assert [text for text in texts if secret in text] == []
