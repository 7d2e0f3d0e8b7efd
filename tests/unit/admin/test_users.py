"""Passwords of users, against scripted brokers."""

import hashlib
import threading

import pytest

import kafkaio.admin._users
from kafkaio._machines.sasl import scram
from kafkaio.admin import (
    ScramCredential,
    ScramDeletion,
    ScramMechanism,
    ScramUpsertion,
    settled,
)
from kafkaio.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    BrokerError,
    ProtocolError,
    RequestTimeout,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.protocol.messages import (
    alter_user_scram_credentials as alter_api,
    describe_user_scram_credentials as describe_api,
)
from tests.fakes.broker import FakeCluster
from tests.unit.admin.support import admin_of

SHA_256, SHA_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512


def altered(**codes: int) -> alter_api.AlterUserScramCredentialsResponse:
    return alter_api.AlterUserScramCredentialsResponse(
        results=[
            alter_api.AlterUserScramCredentialsResult(
                user=user, error_code=code, error_message="why" if code else None
            )
            for user, code in codes.items()
        ]
    )


async def test_a_password_is_sent_as_its_hash(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []
    real = scram.salted_password

    def noted(name: str, password: str, salt: bytes, iterations: int) -> bytes:
        threads.append(threading.current_thread())
        return real(name, password, salt, iterations)

    monkeypatch.setattr(scram, "salted_password", noted)
    cluster.on(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, altered(bob=0, alice=0))
    # What is asked for again is not hashed again.
    cluster.on(
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        altered(alice=E.NOT_CONTROLLER, bob=E.NOT_CONTROLLER),
        times=1,
    )
    async with admin_of(cluster) as admin:
        done = await admin.alter_user_scram_credentials(
            [
                ScramUpsertion("alice", SHA_256, "pencil", 4_096, b"salt"),
                ScramDeletion("alice", SHA_512),
                ScramUpsertion("bob", SHA_512, "pen"),
            ]
        )
        assert await admin.alter_user_scram_credentials([]) == {}
    assert done == {"alice": None, "bob": None}
    assert len(threads) == 2
    assert threading.main_thread() not in threads
    first, second = cluster.requests(alter_api.AlterUserScramCredentialsRequest)
    assert first == second
    alice, bob = first.upsertions
    assert (alice.name, alice.mechanism, alice.iterations) == ("alice", 1, 4_096)
    assert alice.salt == b"salt"
    assert alice.salted_password == hashlib.pbkdf2_hmac(
        "sha256", b"pencil", b"salt", 4_096
    )
    assert (bob.name, bob.mechanism, bob.iterations) == ("bob", 2, 8_192)
    assert len(bob.salt) >= 16
    assert bob.salted_password == hashlib.pbkdf2_hmac("sha512", b"pen", bob.salt, 8_192)
    assert first.deletions == [
        alter_api.ScramCredentialDeletion(name="alice", mechanism=2)
    ]


async def test_users_that_are_refused(cluster: FakeCluster) -> None:
    code = E.UNACCEPTABLE_CREDENTIAL
    cluster.on(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, altered(bob=0, alice=code))
    async with admin_of(cluster) as admin:
        with pytest.raises(BrokerError, match="user alice: why") as caught:
            await admin.alter_user_scram_credentials(
                [
                    ScramUpsertion("alice", SHA_256, "x", 1),
                    ScramDeletion("bob", SHA_256),
                ]
            )
    assert (caught.value.code, caught.value.results) == (code, {"bob": None})


async def test_hashing_ends_at_the_deadline(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = threading.Event()
    monkeypatch.setattr(kafkaio.admin._users, "_hash", lambda _: held.wait(60))
    async with admin_of(cluster) as admin:
        with pytest.raises(RequestTimeout, match="nothing was sent"):
            await admin.alter_user_scram_credentials(
                [ScramUpsertion("alice", SHA_256, "x")], timeout=0.01
            )
    held.set()
    assert not [it for it in cluster.log if "SCRAM" in it.api.name]


def test_no_repr_shows_a_secret() -> None:
    shown = repr(ScramUpsertion("alice", SHA_256, "pencil", 4_096, b"salt"))
    assert "alice" in shown
    assert "pencil" not in shown
    assert "salt" not in shown


def described(
    *users: tuple[str, int, list[tuple[int, int]]],
) -> describe_api.DescribeUserScramCredentialsResponse:
    return describe_api.DescribeUserScramCredentialsResponse(
        results=[
            describe_api.DescribeUserScramCredentialsResult(
                user=user,
                error_code=code,
                error_message="why" if code else None,
                credential_infos=[
                    describe_api.CredentialInfo(mechanism=number, iterations=iterations)
                    for number, iterations in found
                ],
            )
            for user, code, found in users
        ]
    )


async def test_users_are_described(cluster: FakeCluster) -> None:
    answer = described(
        ("bob", E.RESOURCE_NOT_FOUND, []), ("alice", 0, [(2, 8_192), (1, 4_096)])
    )
    cluster.on(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, answer)
    alices = (ScramCredential(SHA_256, 4_096), ScramCredential(SHA_512, 8_192))
    async with admin_of(cluster) as admin:
        found = await settled(admin.describe_user_scram_credentials(["alice", "bob"]))
        with pytest.raises(BrokerError, match="user bob: why") as caught:
            await admin.describe_user_scram_credentials()
        with pytest.raises(ProtocolError, match="has bob, which was not asked for"):
            await admin.describe_user_scram_credentials(["alice"])
        assert await admin.describe_user_scram_credentials([]) == {}
    assert found.found == {"alice": alices}
    assert isinstance(found.failed["bob"], BrokerError)
    assert caught.value.results == {"alice": alices}
    some, everything, _ = cluster.requests(
        describe_api.DescribeUserScramCredentialsRequest
    )
    assert [it.name for it in some.users or ()] == ["alice", "bob"]
    # Not None, which Kafka fails to refuse: it never answers then.
    assert everything.users == []


async def test_all_users_and_a_mechanism_that_is_newer(cluster: FakeCluster) -> None:
    answer = described(("z", 0, [(9, 5)]), ("a", 0, []))
    cluster.on(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, answer)
    async with admin_of(cluster) as admin:
        found = await admin.describe_user_scram_credentials()
    assert found == {"a": (), "z": (ScramCredential(ScramMechanism.UNKNOWN, 5),)}
    assert list(found) == ["a", "z"]


async def test_an_error_of_the_whole_answer(cluster: FakeCluster) -> None:
    cluster.on(
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        describe_api.DescribeUserScramCredentialsResponse(
            error_code=E.CLUSTER_AUTHORIZATION_FAILED
        ),
    )
    async with admin_of(cluster) as admin:
        for users in (None, ["alice"]):
            with pytest.raises(BrokerError, match="needs DESCRIBE on the cluster"):
                await admin.describe_user_scram_credentials(users)


@pytest.mark.parametrize(
    ("alteration", "error", "message"),
    [
        ("alice", ArgumentTypeError, "ScramUpsertion and ScramDeletion, not of str"),
        (ScramDeletion("", SHA_256), ArgumentValueError, "user must not be empty"),
        (ScramDeletion(1, SHA_256), ArgumentTypeError, "user must be str"),  # type: ignore[arg-type]
        (
            ScramDeletion("a", "SCRAM-SHA-265"),  # type: ignore[arg-type]
            ArgumentValueError,
            "did you mean 'SCRAM-SHA-256'",
        ),
        (ScramUpsertion("a", SHA_256, ""), ArgumentValueError, "password must not be"),
        (
            ScramUpsertion("a", SHA_256, b"secret"),  # type: ignore[arg-type]
            ArgumentTypeError,
            "password must be str, not bytes",
        ),
        (ScramUpsertion("a", SHA_256, "x", 0), ArgumentValueError, "between 1 and"),
        (
            ScramUpsertion("a", SHA_256, "x", "secret"),  # type: ignore[arg-type]
            ArgumentTypeError,
            "iterations must be int, not str",
        ),
        (ScramUpsertion("a", SHA_256, "x", 1, b""), ArgumentValueError, "salt must"),
        (
            ScramUpsertion("a", SHA_256, "x", 1, "secret"),  # type: ignore[arg-type]
            ArgumentTypeError,
            "salt must be bytes, not str",
        ),
    ],
)
async def test_alterations_that_are_impossible(
    cluster: FakeCluster, alteration: ScramDeletion, error: type, message: str
) -> None:
    async with admin_of(cluster) as admin:
        with pytest.raises(error, match=message) as caught:
            await admin.alter_user_scram_credentials([alteration])
    assert "secret" not in str(caught.value)
    assert not [it for it in cluster.log if "SCRAM" in it.api.name]


async def test_the_same_password_twice(cluster: FakeCluster) -> None:
    async with admin_of(cluster) as admin:
        with pytest.raises(ArgumentValueError, match="occurs twice"):
            await admin.alter_user_scram_credentials(
                [ScramDeletion("a", SHA_256), ScramUpsertion("a", SHA_256, "x")]
            )
        with pytest.raises(ArgumentValueError, match="'a' occurs twice"):
            await admin.describe_user_scram_credentials(["a", "a"])
        with pytest.raises(ArgumentTypeError, match="users must be a collection"):
            await admin.describe_user_scram_credentials("alice")
