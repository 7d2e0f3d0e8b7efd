"""``kafkaio acls``, ``users`` and ``tokens``: what they do to one embedded broker."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from kafkaio.admin import Admin
from kafkaio.testing import Broker
from tests.support.cli import Result, environment, run_beside, terminal

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(60)]

HEADS = [
    *("PRINCIPAL", "HOST", "PERMISSION", "OPERATION"),
    *("RESOURCE TYPE", "RESOURCE NAME", "PATTERN TYPE"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def broker() -> AsyncIterator[Broker]:
    people = {"alice": "a", "bob": "b"}
    async with Broker(sasl=True, acls=True, users=people) as broker:
        yield broker


@pytest.fixture
def servers(broker: Broker) -> tuple[str, str]:
    return "-b", broker.bootstrap_servers


@pytest.fixture
def logged_in(broker: Broker) -> Iterator[None]:
    """The commands of a test are those of alice."""
    with environment(
        KAFKAIO_BOOTSTRAP_SERVERS=broker.bootstrap("SASL"),
        KAFKAIO_SECURITY_PROTOCOL="SASL_PLAINTEXT",
        KAFKAIO_SASL_MECHANISM="SCRAM-SHA-256",
        KAFKAIO_SASL_USERNAME="alice",
        KAFKAIO_SASL_PASSWORD="a",
    ):
        yield


# ---- access control lists ------------------------------------------------------------


async def test_entries_come_are_listed_and_go(servers: tuple[str, str]) -> None:
    made = await run_beside(
        *("acls", "create", "--allow-principal", "carol", "--topic", "orders"),
        *("--topic", "bills", "--operation", "read", "--pattern", "prefixed"),
        *servers,
    )
    carol = ["User:carol", "*", "ALLOW", "READ", "TOPIC"]
    rows = [[*carol, "bills", "PREFIXED"], [*carol, "orders", "PREFIXED"]]
    assert made.check().rows == [HEADS, *rows]
    assert made.err == ""
    words = ("acls", "list", "--topic", "orders-eu", "--pattern", "match")
    assert (await run_beside(*words, *servers)).check().rows == [HEADS, rows[1]]
    listed = await run_beside(
        "acls", "list", "--principal", "carol", "--json", *servers
    )
    assert [dict(zip(_keys(), row, strict=True)) for row in rows] == (
        listed.check().document["acls"]
    )

    words = ("acls", "delete", "--principal", "carol", "--topic", "orders")
    refused = (await run_beside(*words, *servers)).check(2)
    assert refused.err.splitlines() == [
        "delete: User:carol from *: ALLOW READ on TOPIC orders (PREFIXED)",
        "kafkaio acls delete: nothing was done: confirm it with --yes",
    ]
    gone = await run_beside(*words, "--yes", *servers)
    assert gone.check().rows == [HEADS, rows[1]]
    nothing = await run_beside(*words, "--json", *servers)
    assert nothing.check().document == {"acls": [], "errors": []}


def _keys() -> list[str]:
    return [head.lower().replace(" ", "_") for head in HEADS]


async def test_what_a_consumer_needs_is_granted(servers: tuple[str, str]) -> None:
    words = ("acls", "create", "--allow-principal", "User:dan", "--consumer")
    made = await run_beside(*words, "--topic", "t", "--group", "g", "--json", *servers)
    granted = {
        (each["operation"], each["resource_type"], each["resource_name"])
        for each in made.check().document["acls"]
    }
    assert granted == {
        ("READ", "TOPIC", "t"),
        ("DESCRIBE", "TOPIC", "t"),
        ("READ", "GROUP", "g"),
    }


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["create", "--topic", "t"], "name a resource, an operation"),
        (
            ["create", "--topic", "t", "--operation", "reads"],
            "unknown operation 'reads'; did you mean READ?",
        ),
        (
            ["create", "--topic", "t", "--operation", "any", "--deny-principal", "a"],
            "--operation any is for filters; an entry names one",
        ),
        (["list", "--principal", ":a"], "':a' is not a principal such as User:alice"),
        (["delete", "--yes"], "name a resource, an operation or a principal"),
    ],
)
async def test_wrong_options_of_acls_are_refused(
    servers: tuple[str, str], words: list[str], reason: str
) -> None:
    refused = (await run_beside("acls", *words, *servers)).check(2)
    assert reason in refused.err
    assert len(refused.err.splitlines()) == 1


# ---- users ---------------------------------------------------------------------------


@pytest.fixture
def given_password() -> Iterator[None]:
    with environment(KAFKAIO_NEW_PASSWORD="open sesame"):
        yield


@pytest.mark.usefixtures("given_password")
async def test_the_life_of_a_user(broker: Broker, servers: tuple[str, str]) -> None:
    words = ("users", "set", "frank", "--iterations", "4096")
    made = await run_beside(*words, "--mechanism", "scram-sha-256", *servers)
    row = ["frank", "SCRAM-SHA-256", "4096"]
    heads = ["USER", "MECHANISM", "ITERATIONS"]
    assert made.check().rows == [heads, row]
    assert "sesame" not in made.out + made.err
    login = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_username": "frank",
        "sasl_password": "open sesame",
    }
    async with Admin(broker.bootstrap("SASL"), **login) as admin:  # type: ignore[arg-type]
        assert (await admin.describe_cluster()).cluster_id

    some = await run_beside("users", "list", "frank", "nobody", "--json", *servers)
    document = some.check(3).document
    assert document["users"] == [
        {"user": "frank", "mechanism": "SCRAM-SHA-256", "iterations": 4096}
    ]
    assert [each["item"] for each in document["errors"]] == ["nobody"]

    refused = (await run_beside("users", "delete", "frank", *servers)).check(2)
    assert refused.err.startswith("delete: SCRAM-SHA-256 password of frank\n")
    gone = await run_beside("users", "delete", "frank", "--yes", "--json", *servers)
    assert gone.check().document["users"] == [
        {"user": "frank", "mechanism": "SCRAM-SHA-256"}
    ]
    (await run_beside("users", "list", "frank", *servers)).check(1)


async def test_nobody_can_be_asked_for_a_password() -> None:
    assert "KAFKAIO_NEW_PASSWORD" not in os.environ
    refused = (await run_beside("users", "set", "gail")).check(2)
    assert refused.err == (
        "kafkaio users set: set KAFKAIO_NEW_PASSWORD: cannot ask for it, "
        "stdin is not a terminal\n"
    )


@pytest.mark.slow
async def test_a_password_is_typed_twice_and_not_shown(
    servers: tuple[str, str],
) -> None:
    async with terminal("users", "set", "heidi", *servers) as shown:
        await shown.until("new password of heidi")
        shown.type("pencil\n")
        await shown.until("Repeat for confirmation")
        shown.type("pencil\n")
        assert await shown.ended() == 0
        assert "SCRAM-SHA-512" in shown.text
        assert "pencil" not in shown.raw


# ---- tokens --------------------------------------------------------------------------


@pytest.mark.usefixtures("logged_in")
async def test_the_life_of_a_token() -> None:
    words = ("tokens", "create", "--renewer", "bob", "--max-lifetime", "1h", "--json")
    (made,) = (await run_beside(*words)).check().document["tokens"]
    assert (made["owner"], made["renewers"]) == ("User:alice", ["User:bob"])
    assert made["hmac"] == "[hidden]"
    name = made["token_id"]

    shown = await run_beside("tokens", "list", "--show-secrets", "--json")
    (secret,) = shown.check().document["tokens"]
    assert secret["token_id"] == name
    listed = (await run_beside("tokens", "list", "--owner", "alice")).check()
    assert listed.rows[1][0] == name
    assert secret["hmac"] not in listed.out

    renewed = await run_beside("tokens", "renew", name, "--period", "60s", "--json")
    (row,) = renewed.check().document["tokens"]
    assert row["expiry_time"] < made["expiry_time"]
    refused = (await run_beside("tokens", "expire", name)).check(2)
    assert refused.err.startswith(f"expire: token {name} of User:alice\n")
    (await run_beside("tokens", "expire", name, "--yes", "--json")).check()
    none = await run_beside("tokens", "renew", name)
    assert none.check(1).err == (
        f"kafkaio tokens renew: token '{name}' does not exist, or you may not see it\n"
    )


async def test_without_a_login_there_are_no_tokens(servers: tuple[str, str]) -> None:
    refused: Result = (await run_beside("tokens", "list", *servers)).check(1)
    assert "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED" in refused.err
    assert len(refused.err.splitlines()) == 1
