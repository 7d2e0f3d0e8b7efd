"""A mechanism and a login for tests, and the broker's side of SASL on a `FakeCluster`.

The mechanism exchanges any number of rounds: ``round 1 of SECRET`` and so on. It proves
nothing, so tests of connections can use it with scripted answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Any

import anyio

from kafkaio._machines.sasl.mechanism import MechanismPort, Outcome
from kafkaio.errors import AuthenticationError
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from kafkaio.protocol.messages.sasl_handshake import SaslHandshakeResponse
from tests.fakes.broker import (
    DEFAULT,
    DISCONNECT,
    FakeCluster,
    FakeNode,
    Outcome as Answer,
)

__all__ = ["Peer", "Rounds", "ScriptedLogin"]


@dataclass
class Rounds:
    """A mechanism of ``rounds`` messages; with ``in_thread`` each is a `Work`."""

    name: str = "ROUNDS"
    rounds: int = 1
    secret: str = "hunter2"
    in_thread: bool = False
    #: Wraps the computation of each message that runs in a thread.
    compute: Callable[[bytes], bytes] = field(default=lambda message: message)
    sent: int = 0

    @property
    def is_single(self) -> bool:
        return self.rounds == 1

    def begin(self) -> Outcome:
        return self._next()

    def receive(self, challenge: bytes) -> Outcome:
        if challenge == b"lie":
            raise AuthenticationError("the broker does not know the secret")
        return None if self.sent == self.rounds else self._next()

    def _next(self) -> Outcome:
        self.sent += 1
        message = f"round {self.sent} of {self.secret}".encode()
        return (lambda: self.compute(message)) if self.in_thread else message


@dataclass
class ScriptedLogin:
    """Makes a mechanism for each authentication; a `LoginPort`."""

    make: Callable[[], MechanismPort] = Rounds
    mechanism: str = "ROUNDS"
    hosts: list[str] = field(default_factory=list)
    #: Seconds until the credentials are there; why there are none.
    delay: float = 0.0
    failure: Exception | None = None
    is_closed: bool = False

    async def begin(self, host: str) -> MechanismPort:
        self.hosts.append(host)
        await (anyio.sleep_forever() if self.delay == inf else anyio.sleep(self.delay))
        if self.failure is not None:
            raise self.failure
        return self.make()

    async def aclose(self) -> None:
        self.is_closed = True


class Peer:
    """Lets a `FakeCluster` demand SASL.

    It checks what a real broker checks: the order of the requests of each connection,
    the end of the session, a second authentication within a second.

    Args:
        cluster: its brokers answer SASL from now on.
        clock: returns the time.
        rounds: the messages of one authentication.
        lifetime_ms: the lifetime of sessions; 0 for none.
    """

    def __init__(
        self,
        cluster: FakeCluster,
        clock: Callable[[], float],
        *,
        rounds: int = 1,
        lifetime_ms: int = 0,
    ) -> None:
        self.rounds = rounds
        self.lifetime_ms = lifetime_ms
        self.mechanisms = ["ROUNDS"]
        self.secret = "hunter2"
        #: Authentications that succeeded, by connection.
        self.authenticated: dict[int, list[float]] = {}
        #: What was refused, and what broke the rules.
        self.refused: list[str] = []
        self.violations: list[str] = []
        self._clock = clock
        self._cluster = cluster
        # Messages that are still due, by connection.
        self._due: dict[int, int] = {}
        for api in ApiKey:
            if api is not ApiKey.API_VERSIONS:
                self.guard(api)
        cluster.on(ApiKey.SASL_HANDSHAKE, self._handshake)
        cluster.on(ApiKey.SASL_AUTHENTICATE, self._authenticate)

    def guard(self, api: ApiKey) -> None:
        """Check requests of an API before the handlers that were set so far."""
        self._cluster.on(api, self._check)

    # ---- what the broker answers ---------------------------------------------------

    def _number(self) -> int:
        return self._cluster.log[-1].connection

    def _check(self, node: FakeNode, header: Any, request: Any) -> Answer:
        del node, request
        number = self._number()
        done = self.authenticated.get(number)
        api = ApiKey(header.request_api_key).name
        if self._due.get(number):
            return self._violated(f"{api} within an authentication")
        if not done:
            return self._violated(f"{api} before the authentication")
        if self.lifetime_ms and self._clock() > done[-1] + self.lifetime_ms / 1000:
            return self._violated(f"{api} after the end of the session")
        return DEFAULT

    def _violated(self, what: str) -> Answer:
        self.violations.append(what)
        return DISCONNECT

    def _handshake(self, node: FakeNode, header: Any, request: Any) -> Answer:
        del node, header
        number = self._number()
        done = self.authenticated.get(number)
        if done and self._clock() < done[-1] + 1.0:
            self.violations.append("two authentications within a second")
            return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
        if request.mechanism not in self.mechanisms:
            self.refused.append(request.mechanism)
            return SaslHandshakeResponse(
                error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM,
                mechanisms=self.mechanisms,
            )
        self._due[number] = self.rounds
        return SaslHandshakeResponse(mechanisms=self.mechanisms)

    def _authenticate(self, node: FakeNode, header: Any, request: Any) -> Answer:
        del node, header
        number = self._number()
        if not self._due.get(number):
            return self._violated("SaslAuthenticate without SaslHandshake")
        message = bytes(request.auth_bytes).decode()
        if not message.endswith((f" of {self.secret}", f"\0{self.secret}")):
            self.refused.append("credentials")
            return SaslAuthenticateResponse(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED,
                error_message="Authentication failed: Invalid username or password",
            )
        self._due[number] -= 1
        if self._due[number]:
            return SaslAuthenticateResponse(auth_bytes=b"go on")
        self.authenticated.setdefault(number, []).append(self._clock())
        return SaslAuthenticateResponse(session_lifetime_ms=self.lifetime_ms)
