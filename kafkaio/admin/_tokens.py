"""The operations of `kafkaio.Admin` on delegation tokens (KIP-48, KIP-373).

A broker gets a new token a moment later; until then a login with it is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TypeVar

from kafkaio._arguments import (
    type_name,
)
from kafkaio._client.destinations import ANY, Controller, Destination
from kafkaio._client.fanout import Terms
from kafkaio.admin._asking import ask_one, need_brokers, time_of
from kafkaio.admin._checks import distinct, items_of, milliseconds, principal_of
from kafkaio.admin._subject import Subject
from kafkaio.admin._types import (
    DelegationToken,
)
from kafkaio.errors import ArgumentTypeError, ArgumentValueError, UnsupportedVersion
from kafkaio.protocol import messages
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import Request, Response

AnswerT = TypeVar("AnswerT", bound=Response)

_SINCE = "2.1"
#: The first version of CreateDelegationToken for another owner (KIP-373).
_FOR_OTHERS = 3
#: The meanings of the codes: these answers have no message.
_MEANINGS = {
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: (
        "the brokers have no delegation.token.secret.key, so that tokens are off"
    ),
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: (
        "brokers take it from no client that came without a login (PLAINTEXT, or TLS "
        "without a certificate), or that logged in with a token itself"
    ),
    ErrorCode.DELEGATION_TOKEN_NOT_FOUND: "no token has that hmac",
    ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH: (
        "only the owner of the token and its renewers may do that"
    ),
    ErrorCode.DELEGATION_TOKEN_EXPIRED: "the token has expired",
    ErrorCode.INVALID_PRINCIPAL_TYPE: "tokens are for principals of type User",
}


class Tokens(Subject):
    """The operations on delegation tokens."""

    async def create_delegation_token(
        self,
        *,
        renewers: Iterable[str] = (),
        owner: str | None = None,
        max_lifetime: float | None = None,
        timeout: float | None = None,
    ) -> DelegationToken:
        """Make a token with which other clients can log in as its owner (KIP-48).

        Brokers learn of it a moment later: a login with it is refused until then. If
        the call is cancelled or repeated by itself, because an answer was lost, there
        may be a token that nobody uses; it expires.

        Args:
            renewers: who may renew and expire it besides the owner, such as
                ``User:alice``.
            owner: whom it is for; the client's own user by default. Another needs
                Kafka 3.3 and the right to create tokens for that user (KIP-373).
            max_lifetime: seconds after which it expires although it is renewed; the
                brokers' ``delegation.token.max.lifetime.ms`` by default.
            timeout: seconds.

        Raises:
            BrokerError: DELEGATION_TOKEN_AUTH_DISABLED; or
                DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, if the client came without a
                login or logged in with a token; or another refusal.
            AuthorizationError: the client may make no token for the owner.
            ArgumentTypeError: an argument has the wrong type.
            ArgumentValueError: a principal has no type, or a time is impossible.
            UnsupportedVersion: the broker knows no tokens for others.
            RequestTimeout: no answer arrived in time.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        lifetime = (
            -1 if max_lifetime is None else milliseconds("max_lifetime", max_lifetime)
        )
        for_other = None if owner is None else principal_of("owner", owner)
        who = check_principals("renewers", renewers)

        def build(terms: Terms) -> messages.CreateDelegationTokenRequest:
            if for_other is not None and terms.version < _FOR_OTHERS:
                raise UnsupportedVersion("it makes no token for another owner")
            # The token is for the client's own user. Older versions have no field for
            # that; it must keep its default.
            nobody = (None, None) if terms.version >= _FOR_OTHERS else ("", "")
            kind, name = for_other or nobody
            return messages.CreateDelegationTokenRequest(
                owner_principal_type=kind,
                owner_principal_name=name,
                renewers=[
                    messages.CreatableRenewers(
                        principal_type=each[0], principal_name=each[1]
                    )
                    for each in who
                ],
                max_lifetime_ms=lifetime,
            )

        it = await self._ask_about_token(
            ("create", "a delegation token"),
            messages.CreateDelegationTokenRequest,
            build,
            lambda answer: answer.error_code,
            Controller,
            deadline,
            since=_SINCE if for_other is None else "3.3",
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
            renewers=tuple(":".join(each) for each in who),
        )

    async def renew_delegation_token(
        self,
        token: DelegationToken | bytes,
        *,
        period: float | None = None,
        timeout: float | None = None,
    ) -> datetime:
        """Let a token live on (KIP-48).

        Args:
            token: the token, or its hmac.
            period: seconds from now after which it expires; the brokers'
                ``delegation.token.expiry.time.ms`` by default.
            timeout: seconds.

        Returns:
            When it expires; not after its ``max_time``.

        Raises:
            BrokerError: DELEGATION_TOKEN_AUTH_DISABLED; or
                DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, if the client came without a
                login or logged in with a token; or another refusal.
            ArgumentTypeError: an argument has the wrong type.
            ArgumentValueError: a time is impossible.
            RequestTimeout: no answer arrived in time; it may be renewed.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        after = -1 if period is None else milliseconds("period", period)
        hmac = secret_of(token)
        request = messages.RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=after)
        answer = await self._ask_about_token(
            ("renew", "a delegation token"),
            messages.RenewDelegationTokenRequest,
            lambda _: request,
            lambda answer: answer.error_code,
            Controller,
            deadline,
        )
        return time_of(answer.expiry_timestamp_ms)

    async def expire_delegation_token(
        self,
        token: DelegationToken | bytes,
        *,
        period: float | None = None,
        timeout: float | None = None,
    ) -> datetime:
        """Let a token expire at once, or soon (KIP-48).

        Connections that were made with it stay open until they have to log in again.

        Args:
            token: the token, or its hmac.
            period: seconds from now after which it expires; None deletes it now.
            timeout: seconds.

        Returns:
            When it expires.

        Raises:
            BrokerError: DELEGATION_TOKEN_AUTH_DISABLED; or
                DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, if the client came without a
                login or logged in with a token; or another refusal.
            ArgumentTypeError: an argument has the wrong type.
            ArgumentValueError: a time is impossible.
            RequestTimeout: no answer arrived in time; it may have expired.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        after = -1 if period is None else milliseconds("period", period)
        hmac = secret_of(token)
        request = messages.ExpireDelegationTokenRequest(
            hmac=hmac, expiry_time_period_ms=after
        )
        answer = await self._ask_about_token(
            ("expire", "a delegation token"),
            messages.ExpireDelegationTokenRequest,
            lambda _: request,
            lambda answer: answer.error_code,
            Controller,
            deadline,
        )
        return time_of(answer.expiry_timestamp_ms)

    async def describe_delegation_token(
        self,
        owners: Iterable[str] | None = None,
        *,
        timeout: float | None = None,
    ) -> list[DelegationToken]:
        """Return the tokens that the client may see (KIP-48).

        It sees those that it owns or may renew, and those that it has the right to
        describe. Brokers learn of a token a moment after it was made.

        Args:
            owners: whose tokens, such as ``User:alice``: those that they own, or may
                renew. None for everybody's.
            timeout: seconds.

        Returns:
            The tokens, the oldest first.

        Raises:
            BrokerError: DELEGATION_TOKEN_AUTH_DISABLED; or
                DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, if the client came without a
                login or logged in with a token; or another refusal.
            ArgumentTypeError: an owner is not a str.
            ArgumentValueError: an owner has no type, or occurs twice.
            RequestTimeout: no broker answered in time.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        wanted = None if owners is None else check_principals("owners", owners)
        if wanted is not None and not wanted:
            return []
        request = messages.DescribeDelegationTokenRequest(
            owners=None
            if wanted is None
            else [
                messages.DescribeDelegationTokenOwner(
                    principal_type=kind, principal_name=name
                )
                for kind, name in wanted
            ]
        )
        answer = await self._ask_about_token(
            ("describe", "delegation tokens"),
            messages.DescribeDelegationTokenRequest,
            lambda _: request,
            lambda answer: answer.error_code,
            ANY,
            deadline,
        )
        return sorted(
            map(_described, answer.tokens), key=lambda it: (it.issue_time, it.token_id)
        )

    async def _ask_about_token(  # noqa: PLR0913 - what an operation is
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


def _described(it: messages.DescribedDelegationToken) -> DelegationToken:
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
        ArgumentTypeError: one is not a str.
        ArgumentValueError: one has no type, or occurs twice.
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
