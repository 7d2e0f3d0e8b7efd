"""SASL on the embedded broker, as Kafka 4.3.1 answers the same bytes."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from dataclasses import replace

import pytest

from kafkaio.protocol._headers import decode_response, peek_correlation_id
from kafkaio.protocol.messages.api_versions import ApiVersionsRequest
from kafkaio.protocol.messages.metadata import MetadataRequest
from kafkaio.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kafkaio.protocol.messages.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kafkaio.testing import Broker
from kafkaio.testing._security.config import SecurityConfig
from kafkaio.testing._security.oauthbearer import TokenClaims
from tests.unit.testing.broker.calls import Caller, connect
from tests.unit.testing.broker.logins import (
    PLAIN,
    authenticate,
    bearer,
    dialled,
    handshake,
    plain,
    scram,
    secured,
    token,
)

GENERAL = "Authentication failed during authentication due to invalid credentials with"


def delay(since: float) -> float:
    return round(asyncio.get_running_loop().time() - since, 3)


async def ended(caller: Caller) -> bool:
    """Whether nothing comes any more."""
    return await caller.frames.get() is None


async def test_who_has_not_logged_in_may_want_any_node() -> None:
    """As Kafka 4.4.0: it compares cluster and node after the login (KIP-1242)."""
    async with secured() as (broker, caller):
        elsewhere = ApiVersionsRequest(
            client_software_name="kafkaio",
            client_software_version="1",
            cluster_id="another",
            node_id=0,
        )
        half = replace(elsewhere, node_id=-1)
        assert (await (await dialled(broker)).call(half, 5)).error_code == 42
        assert (await caller.call(elsewhere, 5)).error_code == 0
        assert (await plain(caller)).error_code == 0
        assert (await caller.call(elsewhere, 5)).error_code == 129


async def test_the_order_of_kafka_and_the_principal() -> None:
    async with secured(topics={"t": 1}) as (broker, caller):
        caller.send(ApiVersionsRequest(), 0)
        await caller.frame()
        said = await handshake(caller, "PLAIN")
        assert said.mechanisms == [
            "PLAIN", "SCRAM-SHA-512", "SCRAM-SHA-256", "OAUTHBEARER"
        ]  # fmt: skip
        (connection,) = broker.nodes[0].connections
        assert connection.principal == "User:ANONYMOUS"
        answer = await authenticate(caller, PLAIN)
        assert (answer.error_code, answer.auth_bytes, answer.session_lifetime_ms) == (
            0,
            b"",
            0,
        )
        assert connection.principal == "User:alice"
        metadata = await caller.call(MetadataRequest(topics=None), 12)
        assert [topic.name for topic in metadata.topics] == ["t"]
        (peer,) = metadata.brokers
        assert f"{peer.host}:{peer.port}" == broker.bootstrap("SASL")
        assert broker.security.authentications.first == {"PLAIN": 1}


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (b"\0alice\0no", "Authentication failed: Invalid username or password"),
        (b"\0eve\0no", "Authentication failed: Invalid username or password"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"\0\0x", "Authentication failed: username not specified"),
        (b"alice\0x", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (
            b"bob" + PLAIN,
            "Authentication failed: Client requested an authorization id that is"
            " different from username",
        ),
    ],
)
async def test_a_refusal_of_plain_is_late_and_the_last(
    message: bytes, text: str
) -> None:
    async with secured() as (broker, caller):
        before = asyncio.get_running_loop().time()
        answer = await plain(caller, message)
        assert (answer.error_code, answer.error_message) == (58, text)
        assert delay(before) == 0.3
        assert await ended(caller)
        assert broker.security.authentications.failed == {"PLAIN": 1}
        assert not broker.nodes[0].connections


@pytest.mark.parametrize("name", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_scram(name: str) -> None:
    async with secured(security=SecurityConfig(iterations=5000)) as (broker, caller):
        assert (await scram(caller, "alice", "alice-secret", name=name)).error_code == 0
        wrong = await scram(await dialled(broker), "alice", "no", name=name)
        unknown = await scram(await dialled(broker), "eve", "no", name=name)
        text = f"{GENERAL} SASL mechanism {name}"
        assert [wrong.error_code, wrong.error_message] == [58, text]
        assert [unknown.error_code, unknown.error_message] == [58, text]
        counts = broker.security.authentications
        assert (counts.first, counts.failed) == ({name: 1}, {name: 2})


@pytest.mark.parametrize(
    "first",
    [
        b"y,,n=alice,r=abc",
        b"p=tls-unique,,n=alice,r=abc",
        b"n,a=bob,n=alice,r=abc",
        b"n,,n=\xff,r=abc",
        b"garbage",
        b"n,,n=alice,r=abc,tokenauth=true",
    ],
)
async def test_first_messages_of_scram_that_are_refused(first: bytes) -> None:
    async with secured() as (_, caller):
        await handshake(caller, "SCRAM-SHA-256")
        assert (await authenticate(caller, first)).error_code == 58
        assert await ended(caller)


@pytest.mark.parametrize(
    "final", ["garbage", "c=biws,r=other,p=AAAA", "c=biws,r={nonce},p=AAA"]
)
async def test_last_messages_of_scram_that_are_refused(final: str) -> None:
    async with secured() as (_, caller):
        await handshake(caller, "SCRAM-SHA-256")
        first = await authenticate(caller, b"n,,n=alice,r=abc")
        nonce = first.auth_bytes.decode().split(",")[0][2:]
        answer = await authenticate(caller, final.format(nonce=nonce).encode())
        assert answer.error_code == 58


async def test_a_proof_of_another_hash_closes_without_an_answer() -> None:
    async with secured() as (broker, caller):
        await handshake(caller, "SCRAM-SHA-256")
        first = await authenticate(caller, b"n,,n=alice,r=abc")
        nonce = first.auth_bytes.split(b",")[0]
        proof = b64encode(bytes(64))
        with pytest.raises(ConnectionError):
            await authenticate(caller, b"c=biws,%b,p=%b" % (nonce, proof))
        assert broker.security.authentications.failed == {"SCRAM-SHA-256": 1}


async def test_a_user_comes_and_goes_while_the_broker_runs() -> None:
    async with secured() as (broker, caller):
        users = broker.security.credentials
        users.add_user("carl", "one", iterations=6000)
        assert (await scram(caller, "carl", "one")).error_code == 0
        users.add_user("carl", "two")
        refused = await plain(await dialled(broker), b"\0carl\0one")
        assert refused.error_code == 58
        assert (await plain(await dialled(broker), b"\0carl\0two")).error_code == 0
        users.remove_user("carl")
        gone = await scram(await dialled(broker), "carl", "two")
        assert gone.error_code == 58
        # As in Kafka, what has authenticated stays.
        await caller.call(MetadataRequest(), 12)
        assert "two" not in repr(users)


async def test_oauthbearer() -> None:
    async with secured() as (broker, caller):
        await handshake(caller, "OAUTHBEARER")
        answer = await authenticate(caller, bearer(token(seconds=60)))
        assert answer.error_code == 0
        assert 58_000 < answer.session_lifetime_ms <= 60_000
        (connection,) = broker.nodes[0].connections
        assert connection.principal == "User:alice"


@pytest.mark.parametrize(
    "value",
    [
        token(seconds=-1),
        "abc",
        token(subject=""),
        token(exp="soon"),
        "W10.W10.",
        "e30.e30.",
    ],
    ids=["expired", "not-three-parts", "no-subject", "no-end", "lists", "empty"],
)
async def test_a_bad_token_is_told_by_json_first(value: str) -> None:
    async with secured() as (_, caller):
        await handshake(caller, "OAUTHBEARER")
        answer = await authenticate(caller, bearer(value))
        assert (answer.error_code, answer.auth_bytes) == (
            0,
            b'{"status":"invalid_token"}',
        )
        refused = await authenticate(caller, b"\1")
        assert (refused.error_code, refused.error_message) == (
            58,
            '{"status":"invalid_token"}',
        )
        assert await ended(caller)


@pytest.mark.parametrize(
    "message",
    [
        b"garbage",
        b"n,,\x01auth=Basic x\x01\x01",
        bearer(token(seconds=100_000), header="n,a=bob,"),
    ],
    ids=["garbage", "basic", "another-user"],
)
async def test_a_bad_message_of_oauthbearer_is_refused_at_once(message: bytes) -> None:
    async with secured() as (_, caller):
        await handshake(caller, "OAUTHBEARER")
        assert (await authenticate(caller, message)).error_code == 58


async def test_tokens_are_verified_by_the_function_of_the_test() -> None:
    def verify(value: str) -> TokenClaims:
        if value != "good":
            raise ValueError("bad")
        return TokenClaims("dora", 1 << 60)

    async with secured(security=SecurityConfig(verify_token=verify)) as (
        broker,
        caller,
    ):
        await handshake(caller, "OAUTHBEARER")
        assert (await authenticate(caller, bearer("good"))).error_code == 0
        (connection,) = broker.nodes[0].connections
        assert connection.principal == "User:dora"


async def test_a_mechanism_that_is_off_is_refused_with_those_that_are_on() -> None:
    only = SecurityConfig(mechanisms=("SCRAM-SHA-512",), refusal_delay=0.1)
    async with secured(security=only) as (_, caller):
        before = asyncio.get_running_loop().time()
        answer = await handshake(caller, "PLAIN")
        assert (answer.error_code, answer.mechanisms) == (33, ["SCRAM-SHA-512"])
        assert delay(before) == 0.1
        assert await ended(caller)


def test_settings_that_make_no_sense() -> None:
    with pytest.raises(ValueError, match="'GSSAPI': must be one of PLAIN"):
        SecurityConfig(mechanisms=("GSSAPI",))
    with pytest.raises(ValueError, match="connections in memory have no TLS"):
        Broker(tls=True, memory_transport=True)


async def test_before_authentication_anything_else_is_closed_without_an_answer() -> (
    None
):
    async with secured() as (broker, caller):
        with pytest.raises(ConnectionError):
            await caller.call(MetadataRequest(), 12)
        with pytest.raises(ConnectionError):
            await authenticate(await dialled(broker), PLAIN)
        twice = await dialled(broker)
        twice.send(ApiVersionsRequest(), 0)
        await twice.frame()
        twice.send(ApiVersionsRequest(), 0)
        assert await ended(twice)
        assert not broker.requests or broker.requests[-1].api == 18


async def test_another_request_between_handshake_and_authenticate() -> None:
    async with secured() as (broker, caller):
        await handshake(caller, "PLAIN")
        before = asyncio.get_running_loop().time()
        answer = await handshake(caller, "PLAIN")
        assert answer == SaslHandshakeResponse(error_code=34)
        assert delay(before) == 0.3
        assert await ended(caller)
        other = await dialled(broker)
        await handshake(other, "PLAIN")
        assert (await other.call(MetadataRequest(), 1)).brokers == []
        assert await ended(other)


async def test_a_large_request_before_authentication_closes() -> None:
    async with secured(topics={"t": 1}) as (_, caller):
        await handshake(caller, "PLAIN")
        with pytest.raises(ConnectionError):
            await authenticate(caller, bytes(524_288))


async def test_after_authentication_sasl_requests_are_answered_with_34() -> None:
    async with secured() as (broker, caller):
        await plain(caller)
        answer = await authenticate(caller, PLAIN)
        assert (answer.error_code, answer.error_message) == (
            34,
            "SaslAuthenticate request received after successful authentication",
        )
        assert (await handshake(caller, "PLAIN")).error_code == 34
        await caller.call(MetadataRequest(), 12)
        unsecured = await connect(broker)
        assert (await handshake(unsecured, "PLAIN")).error_code == 34
        assert (await authenticate(unsecured, PLAIN)).error_code == 34


async def test_tokens_without_a_header_after_the_old_handshake() -> None:
    async with secured() as (broker, caller):
        await handshake(caller, "PLAIN", 0)
        assert caller.transport is not None
        caller.transport.write([len(PLAIN).to_bytes(4, "big") + PLAIN])
        assert await caller.frame() == b""
        await caller.call(MetadataRequest(), 12)
        wrong = await dialled(broker)
        await handshake(wrong, "PLAIN", 0)
        assert wrong.transport is not None
        wrong.transport.write([b"\0\0\0\1x"])
        assert await ended(wrong)
        broken = await dialled(broker)
        await handshake(broken, "SCRAM-SHA-256", 0)
        assert broken.transport is not None
        first = b"n,,n=alice,r=abc"
        broken.transport.write([len(first).to_bytes(4, "big") + first])
        nonce = bytes(await broken.frame()).split(b",")[0]
        last = b"c=biws,%b,p=%b" % (nonce, b64encode(bytes(64)))
        broken.transport.write([len(last).to_bytes(4, "big") + last])
        assert await ended(broken)


# ---- authenticating again (KIP-368) ------------------------------------------------


async def test_a_session_ends_at_the_next_request_and_not_before() -> None:
    async with secured(reauth_ms=2000) as (broker, caller):
        assert (await plain(caller)).session_lifetime_ms == 2000
        await asyncio.sleep(1.9)
        await caller.call(MetadataRequest(), 12)
        await asyncio.sleep(10)
        assert not caller.lost
        with pytest.raises(ConnectionError):
            await caller.call(MetadataRequest(), 12)
        assert broker.security.authentications.killed == 1


async def test_authenticating_after_the_end_revives_the_session() -> None:
    async with secured(reauth_ms={"PLAIN": 2000}) as (broker, caller):
        await plain(caller)
        await asyncio.sleep(5)
        assert (await plain(caller)).session_lifetime_ms == 2000
        await caller.call(MetadataRequest(), 12)
        counts = broker.security.authentications
        assert (counts.first, counts.again) == ({"PLAIN": 1}, {"PLAIN": 1})


async def test_requests_around_an_authentication_are_pipelined() -> None:
    async with secured(reauth_ms=2000) as (_, caller):
        await plain(caller)

        caller.send(MetadataRequest(), 12, 1)
        caller.send(SaslHandshakeRequest(mechanism="PLAIN"), 1, 2)
        caller.send(SaslAuthenticateRequest(auth_bytes=PLAIN), 2, 3)
        caller.send(MetadataRequest(), 12, 4)
        frames = [await caller.frame() for _ in range(4)]
        answer = decode_response(SaslAuthenticateResponse, 2, frames[2])
        assert (answer.error_code, answer.session_lifetime_ms) == (0, 2000)


async def test_not_twice_within_a_second() -> None:
    async with secured(reauth_ms=2000) as (_, caller):
        await plain(caller)
        await plain(caller)  # the first time does not count
        assert (await handshake(caller, "PLAIN")).error_code == 34
        await asyncio.sleep(1)
        assert (await plain(caller)).error_code == 0


async def test_requests_are_answered_until_a_further_login_is_refused() -> None:
    """As Kafka 4.3: the refusal comes 0.3 s later, after answers to what is behind."""
    async with secured(reauth_ms=2000) as (_, caller):
        await plain(caller)
        other = b"\0bob\0bob-secret"
        caller.send(SaslHandshakeRequest(mechanism="PLAIN"), 1, 1)
        caller.send(SaslAuthenticateRequest(auth_bytes=other), 2, 2)
        caller.send(MetadataRequest(), 12, 3)
        seen = [peek_correlation_id(await caller.frame()) for _ in range(2)]
        caller.send(MetadataRequest(), 12, 4)
        seen += [peek_correlation_id(await caller.frame()) for _ in range(2)]
        assert seen == [1, 3, 4, 2]
        assert await ended(caller)


async def test_a_login_while_a_further_one_is_refused_ends_at_once() -> None:
    async with secured(reauth_ms=2000) as (_, caller):
        await plain(caller)
        caller.send(SaslHandshakeRequest(mechanism="PLAIN"), 1, 1)
        caller.send(SaslAuthenticateRequest(auth_bytes=b"\0alice\0no"), 2, 2)
        caller.send(SaslHandshakeRequest(mechanism="PLAIN"), 1, 3)
        assert peek_correlation_id(await caller.frame()) == 1
        assert await ended(caller)


async def test_who_authenticates_again_is_the_same_by_the_same_mechanism() -> None:
    async with secured(reauth_ms=2000) as (broker, caller):
        await plain(caller)
        answer = await plain(caller, b"\0bob\0bob-secret")
        assert (answer.error_code, answer.error_message) == (
            58,
            "Cannot change principals during re-authentication from User.alice:"
            " User.bob",
        )
        assert await ended(caller)
        other = await dialled(broker)
        await plain(other)
        assert (await handshake(other, "SCRAM-SHA-256")).error_code == 0
        with pytest.raises(ConnectionError):
            await authenticate(other, b"n,,n=alice,r=abc")
        unknown = await dialled(broker)
        await plain(unknown)
        with pytest.raises(ConnectionError):
            await handshake(unknown, "FOO")
        wrong = await dialled(broker)
        await scram(wrong, "alice", "alice-secret")
        refused = await scram(wrong, "alice", "no")
        assert refused.error_message == (
            "Authentication failed during re-authentication due to invalid credentials"
            " with SASL mechanism SCRAM-SHA-256"
        )


async def test_limits_by_listener_and_mechanism_and_old_versions() -> None:
    limits = {"SASL": 9000, "SCRAM-SHA-256": 8000, "SASL.PLAIN": 7000}
    async with secured(reauth_ms=limits) as (broker, caller):
        assert (await plain(caller)).session_lifetime_ms == 7000
        answer = await scram(await dialled(broker), "alice", "alice-secret")
        assert answer.session_lifetime_ms == 8000
        answer = await scram(
            await dialled(broker), "alice", "alice-secret", name="SCRAM-SHA-512"
        )
        assert answer.session_lifetime_ms == 9000
        old = await dialled(broker)
        await handshake(old, "PLAIN")
        assert (await authenticate(old, PLAIN, 0)).session_lifetime_ms == 0
        short = await dialled(broker)
        await handshake(short, "OAUTHBEARER")
        answer = await authenticate(short, bearer(token(seconds=5)))
        assert 4000 < answer.session_lifetime_ms <= 5000
    async with secured(reauth_ms={"SSL": 1}) as (_, caller):
        assert (await plain(caller)).session_lifetime_ms == 0
