"""Delegation tokens, against scripted brokers."""

import re
from datetime import UTC, datetime

import pytest

from kafkaio.admin import DelegationToken
from kafkaio.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    AuthorizationError,
    BrokerError,
    UnsupportedVersion,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.protocol.messages import (
    create_delegation_token as create_api,
    describe_delegation_token as describe_api,
    expire_delegation_token as expire_api,
    renew_delegation_token as renew_api,
)
from tests.fakes.broker import FakeCluster
from tests.unit.admin.support import admin_of


def at(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


TOKEN = DelegationToken(
    token_id="one",
    hmac=b"\x01\x02\xff",
    owner="User:alice",
    requester="User:bob",
    issue_time=at(1),
    expiry_time=at(2),
    max_time=at(3),
    renewers=("User:carol",),
)


async def test_a_token_is_made(cluster: FakeCluster) -> None:
    cluster.controller_id = 1
    answer = create_api.CreateDelegationTokenResponse(
        principal_type="User",
        principal_name="alice",
        token_requester_principal_type="User",
        token_requester_principal_name="bob",
        issue_timestamp_ms=1_000,
        expiry_timestamp_ms=2_000,
        max_timestamp_ms=3_000,
        token_id="one",
        hmac=b"\x01\x02\xff",
    )
    cluster.on(ApiKey.CREATE_DELEGATION_TOKEN, answer)
    async with admin_of(cluster) as admin:
        made = await admin.create_delegation_token(
            owner="User:alice", renewers=["User:carol"], max_lifetime=1.5
        )
        await admin.create_delegation_token()
    assert made == TOKEN
    assert made.password == "AQL/"
    for secret in ("\\x01", "AQL/", "hmac"):
        assert secret not in repr(made)
    first, second = cluster.requests(create_api.CreateDelegationTokenRequest)
    assert first == create_api.CreateDelegationTokenRequest(
        owner_principal_type="User",
        owner_principal_name="alice",
        renewers=[
            create_api.CreatableRenewers(principal_type="User", principal_name="carol")
        ],
        max_lifetime_ms=1_500,
    )
    assert (second.owner_principal_type, second.max_lifetime_ms) == (None, -1)
    asked = [it for it in cluster.log if it.api is ApiKey.CREATE_DELEGATION_TOKEN]
    assert {it.node_id for it in asked} == {1}


async def test_an_old_broker_makes_none_for_others(cluster: FakeCluster) -> None:
    for node in cluster.nodes.values():
        node.versions[ApiKey.CREATE_DELEGATION_TOKEN] = (1, 2)
    answer = create_api.CreateDelegationTokenResponse(
        principal_type="User", principal_name="alice"
    )
    cluster.on(ApiKey.CREATE_DELEGATION_TOKEN, answer)
    async with admin_of(cluster) as admin:
        with pytest.raises(
            UnsupportedVersion, match=r"needs Kafka 3\.3 or later: it makes"
        ):
            await admin.create_delegation_token(owner="User:alice")
        made = await admin.create_delegation_token()
    assert (made.owner, made.requester) == ("User:alice", None)
    (request,) = cluster.requests(create_api.CreateDelegationTokenRequest)
    assert request.owner_principal_type == ""


async def test_a_token_is_renewed_and_expires(cluster: FakeCluster) -> None:
    cluster.on(
        ApiKey.RENEW_DELEGATION_TOKEN,
        renew_api.RenewDelegationTokenResponse(expiry_timestamp_ms=5_000),
    )
    # A broker may mean "never" by a time that no calendar has.
    cluster.on(
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        expire_api.ExpireDelegationTokenResponse(expiry_timestamp_ms=2**63 - 1),
    )
    async with admin_of(cluster) as admin:
        assert await admin.renew_delegation_token(TOKEN, period=10) == at(5)
        await admin.renew_delegation_token(TOKEN.hmac)
        never = await admin.expire_delegation_token(TOKEN, period=0.0001)
        await admin.expire_delegation_token(TOKEN)
    assert never == datetime.max.replace(tzinfo=UTC)
    renewals = cluster.requests(renew_api.RenewDelegationTokenRequest)
    assert [(it.hmac, it.renew_period_ms) for it in renewals] == [
        (TOKEN.hmac, 10_000),
        (TOKEN.hmac, -1),
    ]
    ends = cluster.requests(expire_api.ExpireDelegationTokenRequest)
    assert [it.expiry_time_period_ms for it in ends] == [1, -1]


async def test_tokens_are_described_the_oldest_first(cluster: FakeCluster) -> None:
    def token(name: str, issued: int) -> describe_api.DescribedDelegationToken:
        return describe_api.DescribedDelegationToken(
            principal_type="User",
            principal_name="alice",
            token_requester_principal_type="User",
            token_requester_principal_name="bob",
            issue_timestamp=issued,
            expiry_timestamp=2_000,
            max_timestamp=3_000,
            token_id=name,
            hmac=b"\x01\x02\xff",
            renewers=[
                describe_api.DescribedDelegationTokenRenewer(
                    principal_type="User", principal_name="carol"
                )
            ],
        )

    cluster.on(
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        describe_api.DescribeDelegationTokenResponse(
            tokens=[token("two", 1_500), token("one", 1_000)]
        ),
    )
    async with admin_of(cluster) as admin:
        found = await admin.describe_delegation_token()
        await admin.describe_delegation_token(["User:alice"])
        assert await admin.describe_delegation_token([]) == []
    assert found[0] == TOKEN
    assert found[1].token_id == "two"
    everybody, alices = cluster.requests(describe_api.DescribeDelegationTokenRequest)
    assert everybody.owners is None
    assert alices.owners == [
        describe_api.DescribeDelegationTokenOwner(
            principal_type="User", principal_name="alice"
        )
    ]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, "came without a login (PLAINTEXT"),
        (E.DELEGATION_TOKEN_AUTH_DISABLED, "have no delegation.token.secret.key"),
        (E.DELEGATION_TOKEN_NOT_FOUND, "no token has that hmac"),
        (E.DELEGATION_TOKEN_OWNER_MISMATCH, "only the owner of the token"),
        (E.DELEGATION_TOKEN_EXPIRED, "the token has expired"),
        (E.INVALID_PRINCIPAL_TYPE, "principals of type User"),
        (4711, "renew a delegation token [UNKNOWN_SERVER_ERROR, code 4711]"),
    ],
)
async def test_refusals_are_explained(
    cluster: FakeCluster, code: int, message: str
) -> None:
    cluster.on(
        ApiKey.RENEW_DELEGATION_TOKEN,
        renew_api.RenewDelegationTokenResponse(error_code=code),
    )
    async with admin_of(cluster) as admin:
        with pytest.raises(BrokerError, match=re.escape(message)) as caught:
            await admin.renew_delegation_token(TOKEN)
    assert caught.value.code == code


async def test_no_right_to_make_a_token(cluster: FakeCluster) -> None:
    code = E.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    cluster.on(
        ApiKey.CREATE_DELEGATION_TOKEN,
        create_api.CreateDelegationTokenResponse(error_code=code),
    )
    async with admin_of(cluster) as admin:
        with pytest.raises(AuthorizationError) as caught:
            await admin.create_delegation_token(owner="User:alice")
    assert caught.value.resource_type == "delegation token"


async def test_arguments_of_the_wrong_kind(cluster: FakeCluster) -> None:
    async with admin_of(cluster) as admin:
        with pytest.raises(ArgumentValueError, match="owner='alice' must have"):
            await admin.create_delegation_token(owner="alice")
        with pytest.raises(ArgumentTypeError, match="renewers must be a collection"):
            await admin.create_delegation_token(renewers="User:alice")
        with pytest.raises(ArgumentValueError, match="occurs twice"):
            await admin.create_delegation_token(renewers=["User:a", "User:a"])
        for wrong in (0, -1.0, float("inf"), float("nan")):
            with pytest.raises(ArgumentValueError, match="max_lifetime"):
                await admin.create_delegation_token(max_lifetime=wrong)
        with pytest.raises(ArgumentTypeError, match="period must be a number"):
            await admin.renew_delegation_token(TOKEN, period="1")  # type: ignore[arg-type]
        with pytest.raises(ArgumentTypeError, match="DelegationToken or its hmac"):
            await admin.expire_delegation_token("AQL/")  # type: ignore[arg-type]
        with pytest.raises(ArgumentValueError, match="hmac of a token must not be"):
            await admin.expire_delegation_token(b"")
        with pytest.raises(ArgumentTypeError, match="owners must be a collection"):
            await admin.describe_delegation_token("User:alice")
    assert not [it for it in cluster.log if "TOKEN" in it.api.name]
