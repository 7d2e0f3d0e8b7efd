"""Every way in which a login to a real broker can end, as the broker counts them.

The listener renews sessions after two seconds, so that a credential that ends while a
client runs is noticed at the next re-authentication (KIP-368).
"""

from __future__ import annotations

import asyncio
import base64
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio

from kafkaio import (
    Admin,
    AuthenticationError,
    Client,
    Consumer,
    KafkaError,
    Producer,
)
from kafkaio.security import ClientCredentials
from kafkaio.types import Token
from tests.support.foreign_clients import (
    COUNT,
    confluent_config,
    java_properties,
    round_trip,
    with_java,
)
from tests.support.kafka import Kafka, run_tool
from tests.support.listener_counts import ListenerCounts
from tests.support.patience import HANGS, NEVER_MS

pytestmark = [
    pytest.mark.kafka_versions("newest"),
    pytest.mark.not_embedded("the logins of a real broker"),
    pytest.mark.timeout(180),
    pytest.mark.asyncio(loop_scope="module"),
]

PASSWORD = "alice-secret"
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
SESSION_MS = 2_000
#: Seconds in which a client is watched after its credentials have ended.
WATCHED = 8.0
QUICK = {
    "default_api_timeout_ms": 3_000,
    "request_timeout_ms": 2_000,
    "delivery_timeout_ms": 3_000,
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def guarded() -> AsyncIterator[Kafka]:
    options: dict[str, Any] = {
        "reauth_ms": SESSION_MS,
        "delegation_tokens": True,
        "config": {"listener.name.sasl_ssl.sasl.enabled.mechanisms": "PLAIN"},
    }
    async with Kafka(sasl=True, tls=True, oidc=True, jmx=True, **options) as kafka:
        await kafka.create_topic("t", 2)
        yield kafka


class Fixed:
    """A provider of one token after another; the last one again and again."""

    def __init__(self, *tokens: Token) -> None:
        self.tokens = list(tokens)

    async def __call__(self) -> Token:
        await asyncio.sleep(0)
        return self.tokens.pop(0) if len(self.tokens) > 1 else self.tokens[0]


def trusted(token: Token) -> Token:
    """The token, said to last, so that the broker is the one to judge it."""
    return Token(value=token.value, expires=time.time() + 3_600)


def login(kafka: Kafka, mechanism: str, **given: Any) -> dict[str, Any]:
    credentials: dict[str, Any] = {"sasl_username": "alice", "sasl_password": PASSWORD}
    if mechanism == "OAUTHBEARER":
        credentials = {"sasl_oauth_token_provider": Fixed(kafka.issuer.token("alice"))}
    return {
        "bootstrap_servers": kafka.bootstrap("SASL"),
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        **credentials,
        **given,
    }


# ---- refused at once -----------------------------------------------------------------


async def delegation_token(kafka: Kafka, life_ms: int = 60_000) -> dict[str, Any]:
    """Make a delegation token of alice; return how to log in with it."""
    async with Admin(**login(kafka, "PLAIN")) as admin:
        made = await admin.create_delegation_token(max_lifetime=life_ms / 1000)
        await until_listed(admin, made.token_id, is_there=True)
    return {
        "sasl_username": made.token_id,
        "sasl_password": made.password,
        "sasl_delegation_token": True,
    }


async def until_listed(admin: Admin, token_id: str, *, is_there: bool) -> None:
    """Wait until the broker knows a delegation token, or knows it no more."""

    async def is_so() -> bool:
        found = await admin.describe_delegation_token(["User:alice"])
        return is_there == (token_id in {token.token_id for token in found})

    await until(is_so)


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(HANGS):
        while not await condition():  # noqa: ASYNC110 - a broker tells nothing
            await asyncio.sleep(0.05)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


async def _wrong(kafka: Kafka) -> dict[str, Any]:
    del kafka
    return {"sasl_password": "wrong-secret"}


async def _unknown(kafka: Kafka) -> dict[str, Any]:
    del kafka
    return {"sasl_username": "eve"}


async def _foreign(kafka: Kafka) -> dict[str, Any]:
    token = kafka.issuer.foreign_token("alice")
    return {"sasl_oauth_token_provider": Fixed(token)}


async def _other_audience(kafka: Kafka) -> dict[str, Any]:
    token = kafka.issuer.token("alice", aud="another")
    return {"sasl_oauth_token_provider": Fixed(token)}


async def _ended(kafka: Kafka) -> dict[str, Any]:
    # The broker's clock may be 30 s away (sasl.oauthbearer.clock.skew.seconds).
    token = trusted(kafka.issuer.token("alice", lifetime=-60))
    return {"sasl_oauth_token_provider": Fixed(token)}


async def _wrong_token(kafka: Kafka) -> dict[str, Any]:
    return await delegation_token(kafka) | {"sasl_password": _base64(b"secret")}


async def _unknown_token(kafka: Kafka) -> dict[str, Any]:
    return await delegation_token(kafka) | {"sasl_username": "no-such-token"}


async def _token_as_user(kafka: Kafka) -> dict[str, Any]:
    return await delegation_token(kafka) | {"sasl_delegation_token": False}


async def _ended_token(kafka: Kafka) -> dict[str, Any]:
    made = await delegation_token(kafka, 1_000)
    async with Admin(**login(kafka, "PLAIN")) as admin:
        await until_listed(admin, made["sasl_username"], is_there=False)
    return made


async def _disabled(kafka: Kafka) -> dict[str, Any]:
    return {
        "bootstrap_servers": kafka.bootstrap("SASL_SSL"),
        "security_protocol": "SASL_SSL",
        "ssl_context": kafka.certificates.client_context(),
    }


NO_USER = "Invalid username or password"
NO_CREDENTIAL = "invalid credentials with SASL mechanism"
Given = Callable[[Kafka], Awaitable[dict[str, Any]]]


@pytest.mark.parametrize(
    ("mechanism", "given", "reason"),
    [
        ("PLAIN", _wrong, NO_USER),
        ("PLAIN", _unknown, NO_USER),
        *[(name, case, NO_CREDENTIAL) for name in SCRAM for case in (_wrong, _unknown)],
        ("OAUTHBEARER", _foreign, "invalid_token"),
        ("OAUTHBEARER", _other_audience, "invalid_token"),
        ("OAUTHBEARER", _ended, "invalid_token"),
        ("SCRAM-SHA-256", _wrong_token, NO_CREDENTIAL),
        ("SCRAM-SHA-512", _unknown_token, NO_CREDENTIAL),
        ("SCRAM-SHA-256", _token_as_user, NO_CREDENTIAL),
        ("SCRAM-SHA-256", _ended_token, NO_CREDENTIAL),
    ],
)
async def test_a_refusal_is_told_at_once_and_counted_once(
    guarded: Kafka,
    mechanism: str,
    given: Given,
    reason: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    options = login(guarded, mechanism) | await given(guarded)
    options["default_api_timeout_ms"] = NEVER_MS
    with caplog.at_level(logging.DEBUG, "kafkaio"):
        async with ListenerCounts(guarded) as counts:
            with pytest.raises(AuthenticationError) as caught:
                async with asyncio.timeout(HANGS), Client(**options):
                    pass
    error = caught.value
    assert reason in error.reason
    assert (error.mechanism, error.step) == (mechanism, "SaslAuthenticate")
    # Nothing asks the broker again, though there is time.
    assert counts.refused == 1
    for text in (str(error), repr(error), caplog.text):
        for secret in ("secret", options.get("sasl_password", "secret")):
            assert secret not in text


async def test_a_token_that_has_just_ended(guarded: Kafka) -> None:
    """The broker allows for clocks that differ, and ends the session at once."""
    token = trusted(guarded.issuer.token("alice", lifetime=-3))
    options = login(guarded, "OAUTHBEARER", sasl_oauth_token_provider=Fixed(token))
    options["default_api_timeout_ms"] = NEVER_MS
    with pytest.raises(AuthenticationError, match="ended by the broker's clock"):
        async with asyncio.timeout(HANGS), Client(**options):
            pass


@pytest.mark.parametrize("mechanism", [*SCRAM, "OAUTHBEARER"])
async def test_a_mechanism_that_is_off(guarded: Kafka, mechanism: str) -> None:
    options = login(guarded, mechanism) | await _disabled(guarded)
    options["default_api_timeout_ms"] = NEVER_MS
    with pytest.raises(AuthenticationError, match="PLAIN") as caught:
        async with asyncio.timeout(HANGS), Client(**options):
            pass
    assert (caught.value.mechanism, caught.value.step) == (mechanism, "SaslHandshake")


# ---- ended while a client runs -------------------------------------------------------


class Lost:
    """Why connections were lost."""

    def __init__(self) -> None:
        self.causes: list[object] = []

    def connection_lost(self, node: int, kind: str, cause: object) -> None:
        del node, kind
        if cause is not None:
            self.causes.append(cause)


async def keep_sending(producer: Producer, seconds: float) -> list[KafkaError | None]:
    """Send a record each 50 ms; the outcome of each."""
    found: list[KafkaError | None] = []

    async def send(number: int) -> None:
        try:
            await producer.send("t", b"%d" % number)
        except KafkaError as error:
            found.append(error)
        else:
            found.append(None)

    until, number = time.monotonic() + seconds, 0
    async with asyncio.TaskGroup() as tasks:
        while time.monotonic() < until:
            tasks.create_task(send(number))
            number += 1
            await asyncio.sleep(0.05)
    assert len(found) == number
    return found


async def scram(kafka: Kafka, user: str, password: str | None) -> None:
    """Give a user a password for both mechanisms, or take the credentials away."""
    args = ("--bootstrap-server", kafka.bootstrap_servers, "--alter")
    named = ("--entity-type", "users", "--entity-name", user)
    for name in SCRAM:
        change = ("--delete-config", name)
        if password is not None:
            change = ("--add-config", f"{name}=[iterations=4096,password={password}]")
        done = await run_tool(
            kafka, "org.apache.kafka.tools.ConfigCommand", *args, *named, *change
        )
        assert done.returncode == 0, done.stderr


async def until_it_works(options: dict[str, Any]) -> None:
    """Wait until a new client may log in."""

    async def is_let_in() -> bool:
        try:
            async with Client(**options):
                return True
        except AuthenticationError:
            return False

    await until(is_let_in)


@pytest.mark.parametrize("mechanism", SCRAM)
@pytest.mark.parametrize("password", [None, "another-secret"], ids=["gone", "changed"])
async def test_a_user_that_is_revoked_and_comes_back(
    guarded: Kafka, mechanism: str, password: str | None
) -> None:
    user = {"sasl_username": "carol", "sasl_password": "carol-secret"}
    options = login(guarded, mechanism, **user, **QUICK)
    right = login(guarded, mechanism, **user)
    await scram(guarded, "carol", "carol-secret")
    await until_it_works(right)
    heard = Lost()
    async with Producer(observer=heard, **options) as made:
        assert set(await keep_sending(made, 1)) == {None}
        await scram(guarded, "carol", password)
        async with ListenerCounts(guarded) as counts:
            outcomes = await keep_sending(made, WATCHED)
        errors = [error for error in outcomes if error is not None]
        assert errors
        assert any(NO_CREDENTIAL in str(error) for error in errors)
        assert any(
            isinstance(cause, AuthenticationError) and NO_CREDENTIAL in cause.reason
            for cause in heard.causes
        )
        # Each of two connections: at the re-authentication, at once, after 1, 2, 4 s.
        # Records that wait ask for no login of their own.
        assert 1 <= counts.refused <= 10
        for text in map(str, [*errors, *heard.causes]):
            assert "secret" not in text
        await scram(guarded, "carol", "carol-secret")
        await until_it_works(right)
        async with asyncio.timeout(HANGS):
            while None not in await keep_sending(made, 0.2):
                pass


async def test_a_delegation_token_that_is_revoked(guarded: Kafka) -> None:
    given = await delegation_token(guarded)
    options = login(guarded, "SCRAM-SHA-256", **QUICK, **given)
    heard = Lost()
    async with Producer(observer=heard, **options) as made:
        assert set(await keep_sending(made, 1)) == {None}
        async with Admin(**login(guarded, "PLAIN")) as admin:
            hmac = base64.b64decode(given["sasl_password"])
            await admin.expire_delegation_token(hmac)
        async with ListenerCounts(guarded) as counts:
            outcomes = await keep_sending(made, WATCHED)
    errors = [error for error in outcomes if error is not None]
    assert any(NO_CREDENTIAL in str(error) for error in errors)
    assert 1 <= counts.refused <= 10
    for text in map(str, [*errors, *heard.causes]):
        assert given["sasl_password"] not in text


async def test_another_principal_at_the_next_login(guarded: Kafka) -> None:
    """The connection ends, and the client goes on as the other one: nothing is lost."""
    value = guarded.issuer.token("alice").value
    heard = Lost()
    async with ListenerCounts(guarded) as counts:
        # The client is told that the first token ends soon, and the broker that it
        # lasts. Made now: the counts may take longer to begin than it lasts.
        alice = Token(value=value, expires=time.time() + 2.5)
        tokens = Fixed(alice, guarded.issuer.token("bob"))
        options = login(guarded, "OAUTHBEARER", sasl_oauth_token_provider=tokens)
        async with Producer(observer=heard, **options) as made:
            assert set(await keep_sending(made, WATCHED)) == {None}
    assert any("change principals" in str(cause) for cause in heard.causes)
    assert counts.refused == len(heard.causes) <= 2


async def test_an_endpoint_that_refuses_its_client(guarded: Kafka) -> None:
    """Connections live on until their token ends; then the error names the endpoint."""
    with guarded.issuer.endpoint({"orders": "orders-secret"}, lifetime=5) as endpoint:
        provider = ClientCredentials(endpoint.url, "orders", "orders-secret")
        options = login(
            guarded,
            "OAUTHBEARER",
            sasl_oauth_token_provider=provider,
            **QUICK,
        )
        heard = Lost()
        async with Producer(observer=heard, **options) as made:
            assert set(await keep_sending(made, 1)) == {None}
            endpoint.revoke("orders")
            before = endpoint.asked
            # The token has some three seconds left.
            assert set(await keep_sending(made, 1.5)) == {None}
            async with ListenerCounts(guarded) as counts:
                outcomes = await keep_sending(made, WATCHED)
    errors = [error for error in outcomes if error is not None]
    assert any("invalid_client" in str(error) for error in errors)
    # What the client cannot prove, it does not try at the broker.
    assert counts.refused == 0
    assert endpoint.asked - before <= WATCHED + 2
    for text in map(str, [*errors, *heard.causes]):
        assert "orders-secret" not in text


# ---- beside other clients ------------------------------------------------------------


async def with_kafkaio(options: dict[str, Any], topic: str) -> None:
    async with Producer(**options) as producer:
        await producer.send_many(topic, [b"%d" % number for number in range(COUNT)])
    placed = options | {"auto_offset_reset": "earliest", "group_id": "kafkaio"}
    found: list[bytes | None] = []
    async with Consumer(topics=topic, **placed) as consumer, asyncio.timeout(HANGS):
        while len(found) < COUNT:
            found += [r.value for r in (await consumer.poll(timeout=1)).records]
    assert len(found) == COUNT


@pytest.mark.parametrize("mechanism", ["PLAIN", *SCRAM])
async def test_the_same_credentials_from_three_clients(
    guarded: Kafka, mechanism: str, tmp_path: Any
) -> None:
    name = mechanism.lower()
    topics = [await guarded.create_topic(f"{who}-{name}") for who in ("j", "c", "k")]
    config = tmp_path / "client.properties"
    config.write_text(java_properties(guarded, "SASL", mechanism))
    confluent = confluent_config(guarded, "SASL", mechanism)
    async with ListenerCounts(guarded) as counts, asyncio.TaskGroup() as tasks:
        tasks.create_task(with_java(guarded, "SASL", config, topics[0]))
        tasks.create_task(asyncio.to_thread(round_trip, confluent, topic=topics[1]))
        tasks.create_task(with_kafkaio(login(guarded, mechanism), topics[2]))
    assert counts.refused == 0


async def test_tokens_of_one_endpoint_from_three_clients(
    guarded: Kafka, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenID Connect: each client asks the endpoint for itself."""
    topics = [await guarded.create_topic(f"{who}-oidc") for who in ("j", "c", "k")]
    with guarded.issuer.endpoint({"orders": "orders-secret"}) as endpoint:
        java = tmp_path / "client.properties"
        module = "org.apache.kafka.common.security.oauthbearer"
        java.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
            f"sasl.oauthbearer.token.endpoint.url={endpoint.url}\n"
            "sasl.oauthbearer.client.credentials.client.id=orders\n"
            "sasl.oauthbearer.client.credentials.client.secret=orders-secret\n"
            "sasl.login.callback.handler.class="
            f"{module}.OAuthBearerLoginCallbackHandler\n"
            f"sasl.jaas.config={module}.OAuthBearerLoginModule required;\n"
        )
        urls = "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls="
        monkeypatch.setenv("JAVA_TOOL_OPTIONS", urls + endpoint.url)
        confluent = confluent_config(guarded, "SASL", "") | {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": "orders",
            "sasl.oauthbearer.client.secret": "orders-secret",
            "sasl.oauthbearer.token.endpoint.url": endpoint.url,
        }
        provider = ClientCredentials(endpoint.url, "orders", "orders-secret")
        options = login(guarded, "OAUTHBEARER", sasl_oauth_token_provider=provider)
        async with ListenerCounts(guarded) as counts, asyncio.TaskGroup() as tasks:
            tasks.create_task(with_java(guarded, "SASL", java, topics[0]))
            tasks.create_task(asyncio.to_thread(round_trip, confluent, topic=topics[1]))
            tasks.create_task(with_kafkaio(options, topics[2]))
        assert endpoint.asked >= 3
    assert counts.refused == 0
