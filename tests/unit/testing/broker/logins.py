"""A minimal client that authenticates by SASL, message by message."""

from __future__ import annotations

import hashlib
import hmac
import json
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kafkaio._runtime.clock import wall_ms
from kafkaio.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kafkaio.protocol.messages.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kafkaio.testing import Broker
from tests.unit.testing.broker.calls import OPTIONS, Caller

USERS = {"alice": "alice-secret", "bob": "bob-secret"}
PLAIN = b"\0alice\0alice-secret"


@asynccontextmanager
async def secured(**options: object) -> AsyncIterator[tuple[Broker, Caller]]:
    """A broker in memory with SASL, and a connection to its SASL listener."""
    options = {"memory_transport": True, "sasl": True, "users": USERS} | options
    broker = Broker(**options)  # type: ignore[arg-type]
    async with broker:
        yield broker, await dialled(broker)


async def dialled(broker: Broker, listener: str = "SASL") -> Caller:
    caller = Caller()
    host, _, port = broker.bootstrap(listener).partition(",")[0].rpartition(":")
    caller.transport = await broker.dial(host, int(port), caller, OPTIONS)
    return caller


async def handshake(
    caller: Caller, mechanism: str, version: int = 1
) -> SaslHandshakeResponse:
    return await caller.call(SaslHandshakeRequest(mechanism=mechanism), version)


async def authenticate(
    caller: Caller, message: bytes, version: int = 2
) -> SaslAuthenticateResponse:
    return await caller.call(SaslAuthenticateRequest(auth_bytes=message), version)


async def plain(caller: Caller, message: bytes = PLAIN) -> SaslAuthenticateResponse:
    assert (await handshake(caller, "PLAIN")).error_code == 0
    return await authenticate(caller, message)


async def scram(
    caller: Caller,
    user: str,
    password: str,
    *,
    name: str = "SCRAM-SHA-256",
    extensions: str = "",
) -> SaslAuthenticateResponse:
    """The last answer; its signature is checked if it is not an error."""
    algorithm = name.removeprefix("SCRAM-").replace("-", "").lower()
    assert (await handshake(caller, name)).error_code == 0
    bare = f"n={user},r=abcdef{extensions}"
    answer = await authenticate(caller, f"n,,{bare}".encode())
    if answer.error_code:
        return answer
    first = answer.auth_bytes.decode()
    nonce, salt, count = (part[2:] for part in first.split(","))
    assert nonce.startswith("abcdef")
    salted = hashlib.pbkdf2_hmac(
        algorithm, password.encode(), b64decode(salt), int(count)
    )
    said = f"{bare},{first},c=biws,r={nonce}".encode()
    key = hmac.digest(salted, b"Client Key", algorithm)
    stored = hashlib.new(algorithm, key).digest()
    signature = hmac.digest(stored, said, algorithm)
    proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
    final = f"c=biws,r={nonce},p={b64encode(proof).decode()}"
    answer = await authenticate(caller, final.encode())
    if answer.error_code == 0:
        own = hmac.digest(
            hmac.digest(salted, b"Server Key", algorithm), said, algorithm
        )
        assert answer.auth_bytes == b"v=" + b64encode(own)
    return answer


def token(subject: str = "alice", seconds: float = 60, **claims: object) -> str:
    """A token that nobody signed."""
    expires = wall_ms() / 1000 + seconds
    return unsigned(json.dumps({"sub": subject, "exp": expires} | claims))


def unsigned(claims: str) -> str:
    """A token with this text in place of its claims."""
    parts = ('{"alg": "none"}', claims, "")
    return ".".join(
        urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts
    )


def bearer(value: str, *, header: str = "n,,") -> bytes:
    return f"{header}\x01auth=Bearer {value}\x01\x01".encode()
