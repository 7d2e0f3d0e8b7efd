"""The operations of `kafkaio.Admin` on delegation tokens (KIP-48, KIP-373).

Brokers learn of a token a moment after it was made: a login with it fails until then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import TypeVar

from kafkaio._arguments import type_name
from kafkaio._client.destinations import ANY, Controller, Destination
from kafkaio._client.fanout import Terms
from kafkaio.admin._asking import AdminCluster, distinct, items_of, need_brokers
from kafkaio.admin._single import ask_one, principal_of, time_of
from kafkaio.admin._types import DelegationToken
from kafkaio.errors import ArgumentTypeError, ArgumentValueError, UnsupportedVersion
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import Request, Response
from kafkaio.protocol.messages import (
    create_delegation_token as create_api,
    describe_delegation_token as describe_api,
    expire_delegation_token as expire_api,
    renew_delegation_token as renew_api,
)

AnswerT = TypeVar("AnswerT", bound=Response)

_SINCE = "2.1"
#: The version that can make a token for somebody else.
_FOR_OTHERS = 3
#: What the codes mean, which have no text in answers.
_MEANINGS = {
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: (
        "the brokers have no delegation.token.secret.key, so that tokens are off"
    ),
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: (
        "brokers take it from no client that came without a login (PLAINTEXT, or TLS "
        "without a certificate), or that logged in with a token itself"
    ),
    ErrorCode.DELEGATION_TOKEN_NOT_FOUND: "there is no token of that hmac",
    ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH: (
        "only the owner of the token and its renewers may do that"
    ),
    ErrorCode.DELEGATION_TOKEN_EXPIRED: "the token has expired",
    ErrorCode.INVALID_PRINCIPAL_TYPE: "tokens are for principals of type User",
}


class Tokens:
    """The operations on delegation tokens, each until a time of the loop's clock.

    Args:
        cluster: performs them.
    """

    def __init__(self, cluster: AdminCluster) -> None:
        self._cluster = cluster

    async def create(
        self,
        owner: tuple[str, str] | None,
        renewers: Sequence[tuple[str, str]],
        max_lifetime_ms: int,
        deadline: float,
    ) -> DelegationToken:
        """Make a token, as `kafkaio.Admin` documents it."""

        def build(terms: Terms) -> create_api.CreateDelegationTokenRequest:
            if owner is not None and terms.version < _FOR_OTHERS:
                raise UnsupportedVersion("it makes no token for another owner")
            nobody = (None, None) if terms.version >= _FOR_OTHERS else ("", "")
            kind, name = owner or nobody
            return create_api.CreateDelegationTokenRequest(
                owner_principal_type=kind,
                owner_principal_name=name,
                renewers=[
                    create_api.CreatableRenewers(
                        principal_type=each[0], principal_name=each[1]
                    )
                    for each in renewers
                ],
                max_lifetime_ms=max_lifetime_ms,
            )

        it = await self._ask(
            ("create", "a delegation token"),
            create_api.CreateDelegationTokenRequest,
            build,
            lambda answer: answer.error_code,
            Controller,
            deadline,
            since=_SINCE if owner is None else "3.3",
        )
        return DelegationToken(
            token_id=it.token_id,
            hmac=it.hmac,
            owner=f"{it.principal_type}:{it.principal_name}",
            requester=_principal(
                it.token_requester_principal_type, it.token_requester_principal_name
            ),
            issue_time=time_of(it.issue_timestamp_ms),
            expiry_time=time_of(it.expiry_timestamp_ms),
            max_time=time_of(it.max_timestamp_ms),
            renewers=tuple(":".join(each) for each in renewers),
        )

    async def renew(self, hmac: bytes, period_ms: int, deadline: float) -> datetime:
        """Let a token live on; returns when it expires."""
        request = renew_api.RenewDelegationTokenRequest(
            hmac=hmac, renew_period_ms=period_ms
        )
        answer = await self._ask(
            ("renew", "a delegation token"),
            renew_api.RenewDelegationTokenRequest,
            lambda _: request,
            lambda answer: answer.error_code,
            Controller,
            deadline,
        )
        return time_of(answer.expiry_timestamp_ms)

    async def expire(self, hmac: bytes, period_ms: int, deadline: float) -> datetime:
        """Let a token expire sooner; returns when it expires."""
        request = expire_api.ExpireDelegationTokenRequest(
            hmac=hmac, expiry_time_period_ms=period_ms
        )
        answer = await self._ask(
            ("expire", "a delegation token"),
            expire_api.ExpireDelegationTokenRequest,
            lambda _: request,
            lambda answer: answer.error_code,
            Controller,
            deadline,
        )
        return time_of(answer.expiry_timestamp_ms)

    async def described(
        self, owners: Sequence[tuple[str, str]] | None, deadline: float
    ) -> list[DelegationToken]:
        """Return the tokens of some owners, or of all."""
        wanted = None
        if owners is not None:
            wanted = [
                describe_api.DescribeDelegationTokenOwner(
                    principal_type=kind, principal_name=name
                )
                for kind, name in owners
            ]
        request = describe_api.DescribeDelegationTokenRequest(owners=wanted)
        answer = await self._ask(
            ("describe", "delegation tokens"),
            describe_api.DescribeDelegationTokenRequest,
            lambda _: request,
            lambda answer: answer.error_code,
            ANY,
            deadline,
        )
        return sorted(
            map(_described, answer.tokens), key=lambda it: (it.issue_time, it.token_id)
        )

    async def _ask(  # noqa: PLR0913 - what an operation is
        self,
        what: tuple[str, str],
        request: type[Request[AnswerT]],
        build: Callable[[Terms], Request[AnswerT]],
        code: Callable[[AnswerT], int],
        to: Destination,
        deadline: float,
        *,
        since: str = _SINCE,
    ) -> AnswerT:
        need_brokers(self._cluster, " ".join(what))

        def read(answer: AnswerT) -> tuple[int, str | None]:
            found = code(answer)
            return found, _MEANINGS.get(ErrorCode(found))

        return await ask_one(
            self._cluster,
            what,
            request,
            build,
            read,
            to=to,
            deadline=deadline,
            since=since,
        )


def _described(it: describe_api.DescribedDelegationToken) -> DelegationToken:
    return DelegationToken(
        token_id=it.token_id,
        hmac=it.hmac,
        owner=f"{it.principal_type}:{it.principal_name}",
        requester=_principal(
            it.token_requester_principal_type, it.token_requester_principal_name
        ),
        issue_time=time_of(it.issue_timestamp),
        expiry_time=time_of(it.expiry_timestamp),
        max_time=time_of(it.max_timestamp),
        renewers=tuple(
            f"{each.principal_type}:{each.principal_name}" for each in it.renewers
        ),
    )


def _principal(kind: str, name: str) -> str | None:
    return f"{kind}:{name}" if kind else None


def check_principals(
    name: str, principals: Iterable[str] | None
) -> list[tuple[str, str]]:
    """Check principals, such as ``User:alice``, and take them apart.

    Raises:
        ArgumentTypeError: one is no str.
        ArgumentValueError: one has no type, or is there twice.
    """
    found = [] if principals is None else items_of(name, principals)
    return distinct(name, [principal_of(name, each) for each in found])


def secret_of(token: object) -> bytes:
    """Return the hmac of a token, which may be given itself.

    Raises:
        ArgumentTypeError: it is neither.
        ArgumentValueError: it is empty.
    """
    hmac = token.hmac if isinstance(token, DelegationToken) else token
    if not isinstance(hmac, bytes):
        raise ArgumentTypeError(
            f"token must be DelegationToken or its hmac, not {type_name(token)}"
        )
    if not hmac:
        raise ArgumentValueError("the hmac of a token must not be empty")
    return hmac
