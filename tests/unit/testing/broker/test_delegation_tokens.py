"""Delegation tokens and SCRAM credentials, as Kafka 4.3.1 answers the same requests."""

from __future__ import annotations

from base64 import b64encode

import pytest

from kafkaio.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kafkaio.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kafkaio.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from kafkaio.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from kafkaio.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
)
from kafkaio.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
)
from kafkaio.testing._security.config import SecurityConfig
from tests.unit.testing.broker.calls import Caller, connect
from tests.unit.testing.broker.logins import dialled, plain, scram, secured

DAY_MS = 86_400_000
SALTED = b"p" * 32


async def created(
    caller: Caller,
    life_ms: int = 60_000,
    *,
    renewer: tuple[str, str] | None = None,
    owner: tuple[str | None, str | None] = (None, None),
    version: int = 3,
) -> CreateDelegationTokenResponse:
    request = CreateDelegationTokenRequest(max_lifetime_ms=life_ms)
    if version >= 3:
        request.owner_principal_type, request.owner_principal_name = owner
    if renewer is not None:
        request.renewers = [
            CreatableRenewers(principal_type=renewer[0], principal_name=renewer[1])
        ]
    return await caller.call(request, version)


async def renewed(caller: Caller, secret: bytes, period: int = 1000) -> tuple[int, int]:
    request = RenewDelegationTokenRequest(hmac=secret, renew_period_ms=period)
    answer = await caller.call(request, 2)
    return answer.error_code, answer.expiry_timestamp_ms


async def expired(caller: Caller, secret: bytes, period: int) -> tuple[int, int]:
    request = ExpireDelegationTokenRequest(hmac=secret, expiry_time_period_ms=period)
    answer = await caller.call(request, 2)
    return answer.error_code, answer.expiry_timestamp_ms


async def described(caller: Caller, *owners: str, all_: bool = False) -> list[str]:
    asked = [
        DescribeDelegationTokenOwner(principal_type="User", principal_name=name)
        for name in owners
    ]
    request = DescribeDelegationTokenRequest(owners=None if all_ else asked)
    answer = await caller.call(request, 3)
    assert answer.error_code == 0
    return [token.token_id for token in answer.tokens]


@pytest.mark.parametrize("name", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_a_token_logs_in_as_its_owner(name: str) -> None:
    async with secured() as (broker, alice):
        await plain(alice)
        token = await created(alice)
        password = b64encode(token.hmac).decode()
        by_token = await dialled(broker)
        answer = await scram(
            by_token,
            token.token_id,
            password,
            name=name,
            extensions=",tokenauth=true",
        )
        assert answer.error_code == 0
        assert 50_000 < answer.session_lifetime_ms <= 60_000
        assert [one.principal for one in broker.nodes[0].connections][
            -1
        ] == "User:alice"
        # Whoever logged in by a token cannot ask for tokens.
        assert (await created(by_token)).error_code == 64
        assert (await renewed(by_token, token.hmac)) == (64, -1)
        plain_name = await dialled(broker)
        answer = await scram(plain_name, token.token_id, password, name=name)
        assert answer.error_code == 58
        assert (await expired(alice, token.hmac, -1))[0] == 0
        gone = await scram(
            await dialled(broker),
            token.token_id,
            password,
            name=name,
            extensions=",tokenauth=true",
        )
        assert gone.error_code == 58


async def test_times_of_a_token() -> None:
    limits = SecurityConfig(token_max_life_ms=3 * DAY_MS, token_expiry_ms=DAY_MS)
    async with secured(security=limits) as (broker, alice):
        await plain(alice)
        token = await created(alice, 60_000)
        for life, expires, latest in (
            (60_000, 60_000, 60_000),
            (-1, DAY_MS, 3 * DAY_MS),
            (0, DAY_MS, 3 * DAY_MS),
            (10**14, DAY_MS, 3 * DAY_MS),
        ):
            token = await created(alice, life)
            assert token.expiry_timestamp_ms - token.issue_timestamp_ms == expires
            assert token.max_timestamp_ms - token.issue_timestamp_ms == latest
        broker.control.skip_time(2.5 * 86_400)
        assert (await renewed(alice, token.hmac))[0] == 66
        assert (await expired(alice, token.hmac, 5))[0] == 66
        assert await described(alice, all_=True) == []


async def test_renewing_and_expiring() -> None:
    async with secured() as (broker, alice):
        bob = await dialled(broker)
        await plain(alice)
        await plain(bob, b"\0bob\0bob-secret")
        own = await created(alice, 600_000)
        shared = await created(alice, 600_000, renewer=("User", "bob"))
        assert await renewed(bob, own.hmac) == (63, 0)
        assert await expired(bob, own.hmac, 1) == (63, 0)
        assert await renewed(bob, b"x") == (62, 0)
        assert await expired(bob, b"x", -1) == (62, 0)
        code, ends = await renewed(bob, shared.hmac, 30_000)
        assert code == 0
        assert 25_000 < ends - shared.issue_timestamp_ms < 60_000
        code, ends = await renewed(bob, shared.hmac, -1)
        assert (code, ends) == (0, shared.max_timestamp_ms)
        code, ends = await expired(bob, shared.hmac, 5_000)
        assert code == 0
        assert ends < shared.max_timestamp_ms
        broker.control.skip_time(6)
        assert await renewed(alice, shared.hmac) == (66, 0)


async def test_who_has_which_token() -> None:
    async with secured() as (_, alice):
        await plain(alice)
        first = await created(alice, renewer=("User", "bob"))
        second = await created(alice, owner=("User", "carl"))
        third = await created(alice, owner=("", ""))
        assert (second.principal_name, second.token_requester_principal_name) == (
            "carl",
            "alice",
        )
        ids = [one.token_id for one in (first, second, third)]
        assert await described(alice, all_=True) == ids
        assert await described(alice) == []
        assert await described(alice, "bob") == [ids[0]]
        assert await described(alice, "alice", "carl") == ids
        answer = await alice.call(DescribeDelegationTokenRequest(owners=None), 1)
        assert answer.tokens[0].renewers[0].principal_name == "bob"
        assert (await created(alice, version=1)).error_code == 0
        assert (await created(alice, renewer=("Group", "g"))).error_code == 67


async def test_connections_that_may_not_ask() -> None:
    off = SecurityConfig(delegation_tokens=False)
    async with secured(security=off) as (broker, alice):
        await plain(alice)
        assert (await created(alice)).error_code == 61
        anonymous = await connect(broker)
        answer = await created(anonymous)
        assert (answer.error_code, answer.issue_timestamp_ms) == (64, -1)
        assert await expired(anonymous, b"x", 1) == (64, -1)
        request = DescribeDelegationTokenRequest(owners=None)
        assert (await anonymous.call(request, 3)).error_code == 64


# ---- SCRAM credentials (KIP-554) -----------------------------------------------------


async def scram_users(caller: Caller, *names: str) -> dict[str, tuple[int, object]]:
    request = DescribeUserScramCredentialsRequest(
        users=[UserName(name=name) for name in names] or None
    )
    answer = await caller.call(request, 0)
    return {
        one.user: (
            one.error_code,
            [(info.mechanism, info.iterations) for info in one.credential_infos],
        )
        for one in answer.results
    }


def upsert(
    name: str, mechanism: int = 1, count: int = 4096
) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(
        name=name,
        mechanism=mechanism,
        iterations=count,
        salt=b"salt",
        salted_password=SALTED,
    )


def delete(name: str, mechanism: int = 1) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


async def altered(
    caller: Caller, *changes: ScramCredentialUpsertion | ScramCredentialDeletion
) -> list[tuple[str, int, str | None]]:
    request = AlterUserScramCredentialsRequest(
        deletions=[one for one in changes if isinstance(one, ScramCredentialDeletion)],
        upsertions=[
            one for one in changes if isinstance(one, ScramCredentialUpsertion)
        ],
    )
    answer = await caller.call(request, 0)
    return [(one.user, one.error_code, one.error_message) for one in answer.results]


async def test_credentials_are_listed_set_and_deleted() -> None:
    async with secured() as (_, caller):
        await plain(caller)
        both = [(1, 4096), (2, 4096)]
        assert await scram_users(caller) == {"alice": (0, both), "bob": (0, both)}
        assert await scram_users(caller, "bob", "eve") == {
            "bob": (0, both),
            "eve": (91, []),
        }
        assert await scram_users(caller, "bob", "bob") == {"bob": (92, [])}
        assert await altered(caller, upsert("carl", 2, 16384)) == [("carl", 0, None)]
        assert await scram_users(caller, "carl") == {"carl": (0, [(2, 16384)])}
        assert await altered(caller, delete("bob"), upsert("dora")) == [
            ("bob", 0, None),
            ("dora", 0, None),
        ]
        assert await scram_users(caller, "bob") == {"bob": (0, [(2, 4096)])}


@pytest.mark.parametrize(
    ("changes", "code", "text"),
    [
        ([upsert("x", count=4095)], 93, "Too few iterations"),
        ([upsert("x", count=16385)], 93, "Too many iterations"),
        ([upsert("x", 7)], 33, "Unknown SCRAM mechanism"),
        ([upsert("")], 93, "Username must not be empty"),
        ([delete("x")], 91, "Attempt to delete a user credential that does not exist"),
        (
            [upsert("x"), delete("x", 2)],
            92,
            "A user credential cannot be altered twice in the same request",
        ),
    ],
)
async def test_credentials_that_are_refused(
    changes: list[ScramCredentialUpsertion | ScramCredentialDeletion],
    code: int,
    text: str,
) -> None:
    async with secured() as (_, caller):
        await plain(caller)
        assert await altered(caller, *changes) == [(changes[0].name, code, text)]
        assert "x" not in await scram_users(caller)


async def test_a_credential_without_a_password() -> None:
    async with secured() as (_, caller):
        await plain(caller)
        empty = ScramCredentialUpsertion(name="x", mechanism=1, iterations=4096)
        assert await altered(caller, empty) == [("x", -1, None)]
