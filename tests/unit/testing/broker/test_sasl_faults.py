"""Faults of handshakes: cut at any byte, and lies of SaslAuthenticate."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from kafkaio.protocol._headers import encode_response, peek_correlation_id
from kafkaio.protocol.messages.metadata import MetadataRequest
from kafkaio.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kafkaio.protocol.messages.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kafkaio.testing._broker.cut import Cut
from kafkaio.testing._broker.faults import (
    Fault,
    close_at,
    delay,
    endless_challenges,
    foreign_nonce,
    garbage,
    invert_at,
    iteration_count,
    stall_at,
    wrong_correlation_id,
    wrong_signature,
)
from tests.unit.testing.broker.logins import (
    authenticate,
    dialled,
    handshake,
    plain,
    scram,
    secured,
)

HANDSHAKE = encode_response(
    SaslHandshakeResponse(
        mechanisms=["PLAIN", "SCRAM-SHA-512", "SCRAM-SHA-256", "OAUTHBEARER"]
    ),
    1,
    7,
)


@pytest.mark.parametrize("make", [close_at, stall_at, invert_at])
@pytest.mark.parametrize("chunks", [(10,), (3, 7), (1,) * 10])
@pytest.mark.parametrize("position", range(11))
def test_a_stream_is_cut_at_a_byte(
    make: Callable[[int], Fault], chunks: tuple[int, ...], position: int
) -> None:
    whole = bytes(range(10))
    cut, out, start = Cut(make(position)), b"", 0
    for size in chunks:
        out += cut.cut(whole[start : start + size])
        start += size
    if make is invert_at:
        assert [i for i in range(10) if out[i] != whole[i]] == [position][
            : position < 10
        ]
        assert len(out) == 10
        return
    assert out == whole[:position]
    assert cut.is_closed == (make is close_at)
    assert cut.is_stalled == (make is stall_at)
    assert cut.cut(b"more") == b""


@pytest.mark.parametrize("position", [0, 1, 4, 8, 20, len(HANDSHAKE) - 1])
async def test_an_answer_is_closed_or_stalled_at_a_byte(position: int) -> None:
    async with secured() as (broker, caller):
        rule = broker.faults.on("SaslHandshake", close_at(position, times=1))
        with pytest.raises(ConnectionError):
            await handshake(caller, "PLAIN")
        assert rule.count == 1
        assert caller.transport is not None
        assert caller.transport.received == position
        broker.faults.on("SaslHandshake", stall_at(position, times=1))
        stalled = await dialled(broker)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(60):
                await handshake(stalled, "PLAIN")
        assert stalled.transport is not None
        assert (stalled.lost, stalled.transport.received) == (False, position)
        assert (await plain(await dialled(broker))).error_code == 0


async def test_wrong_bytes() -> None:
    async with secured() as (broker, caller):
        faults = broker.faults
        faults.on("SaslHandshake", wrong_correlation_id(times=1))
        caller.send(SaslHandshakeRequest(mechanism="PLAIN"), 1, 7)
        assert peek_correlation_id(await caller.frame()) == 7 ^ 0x55555555
        faults.on("SaslAuthenticate", garbage(b"\0\0\0\5HTTP/", times=1))
        caller.send(SaslAuthenticateRequest(), 2)
        assert await caller.frame() == b"HTTP/"
        other = await dialled(broker)
        faults.on("SaslHandshake", invert_at(9, times=1))
        assert (await handshake(other, "PLAIN")).error_code == 0xFF


async def test_lies_of_scram_count_when_they_are_told() -> None:
    async with secured() as (broker, caller):
        nonce = broker.faults.on("SaslAuthenticate", foreign_nonce(times=1))
        count = broker.faults.on("SaslAuthenticate", iteration_count(9, times=1))
        signature = broker.faults.on("SaslAuthenticate", wrong_signature(times=1))
        await handshake(caller, "SCRAM-SHA-256")
        first = await authenticate(caller, b"n,,n=alice,r=abcdef")
        assert not first.auth_bytes.startswith(b"r=abcdef")
        assert (nonce.count, count.count, signature.count) == (1, 0, 0)
        second = await dialled(broker)
        await handshake(second, "SCRAM-SHA-256")
        first = await authenticate(second, b"n,,n=alice,r=abcdef")
        assert first.auth_bytes.endswith(b",i=9")
        assert (nonce.count, count.count, signature.count) == (1, 1, 0)
        with pytest.raises(AssertionError):
            await scram(await dialled(broker), "alice", "alice-secret")
        assert (nonce.count, count.count, signature.count) == (1, 1, 1)
        answer = await scram(await dialled(broker), "alice", "alice-secret")
        assert answer.error_code == 0


async def test_endless_challenges() -> None:
    async with secured() as (broker, caller):
        rule = broker.faults.on("SaslAuthenticate", endless_challenges(b"again"))
        await handshake(caller, "PLAIN")
        for _ in range(20):
            answer = await authenticate(caller, b"x")
            assert (answer.error_code, answer.auth_bytes) == (0, b"again")
        assert rule.count == 20
        broker.faults.remove(rule)
        assert (await plain(await dialled(broker))).error_code == 0


async def test_a_connection_is_cut_at_a_byte_of_all_that_is_sent() -> None:
    async with secured() as (broker, _):
        faults = broker.faults
        rule = faults.on_connection(
            close_at(len(HANDSHAKE) + 5, times=1), listener="SASL"
        )
        plaintext = await dialled(broker, "PLAINTEXT")
        await plaintext.call(MetadataRequest(), 12)
        caller = await dialled(broker)
        assert (await handshake(caller, "PLAIN")).error_code == 0
        with pytest.raises(ConnectionError):
            await authenticate(caller, b"\0alice\0alice-secret")
        assert caller.transport is not None
        assert (rule.count, caller.transport.received) == (1, len(HANDSHAKE) + 5)
        assert (await plain(await dialled(broker))).error_code == 0
        faults.on_connection(stall_at(7), node=0)
        stalled = await dialled(broker)
        # What is refused later does not close it, either.
        stalled.send(SaslHandshakeRequest(mechanism="FOO"), 1)
        await asyncio.sleep(5)
        assert stalled.transport is not None
        assert (stalled.lost, stalled.transport.received) == (False, 7)


async def test_faults_that_make_no_sense() -> None:
    async with secured() as (broker, _):
        faults = broker.faults
        with pytest.raises(ValueError, match="is for SaslAuthenticate, not METADATA"):
            faults.on("Metadata", wrong_signature())
        with pytest.raises(ValueError, match="'delay' is for requests"):
            faults.on_connection(delay(1))
        with pytest.raises(ValueError, match="node 7 does not exist"):
            faults.on_connection(close_at(1), node=7)
