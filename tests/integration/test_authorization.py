"""What a client is told that lacks a right: which one, and on what."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
import pytest_asyncio

from kafkaio import (
    Admin,
    AuthorizationError,
    BrokerError,
    Consumer,
    Producer,
    UnsupportedVersion,
)
from tests.support.acls import (
    DESCRIBE,
    GROUP,
    READ,
    TOPIC,
    TRANSACTIONAL_ID,
    WRITE,
    allow,
    forbid,
)
from tests.support.kafka import Kafka

pytestmark = [
    pytest.mark.kafka_versions("newest"),
    pytest.mark.timeout(120),
    pytest.mark.asyncio(loop_scope="module"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def guarded() -> AsyncIterator[Kafka]:
    """A Kafka where bob may do something, and alice nothing."""
    users = {"alice": "a", "bob": "b"}
    async with Kafka(tls=True, acls=True, users=users) as kafka:
        for name in ("granted", "seen", "closed"):
            await kafka.create_topic(name)
        await allow(
            kafka,
            "bob",
            (TOPIC, "granted", WRITE),
            (TOPIC, "granted", READ),
            (TOPIC, "seen", DESCRIBE),
            (GROUP, "seen", DESCRIBE),
            (TRANSACTIONAL_ID, "seen", DESCRIBE),
        )
        yield kafka


def secured(kafka: Kafka, user: str) -> dict[str, Any]:
    return {
        "bootstrap_servers": kafka.bootstrap("MTLS"),
        "security_protocol": "SSL",
        "ssl_context": kafka.certificates.client_context(user),
        "default_api_timeout_ms": 20_000,
    }


#: Calls about everything there is, whose requests have no list of items.
EVERYTHING: dict[str, Callable[[Admin], Awaitable[object]]] = {
    "users": lambda it: it.describe_user_scram_credentials(),
    "acls": lambda it: it.describe_acls(),
    "quotas": lambda it: it.describe_client_quotas(),
    "reassignments": lambda it: it.list_partition_reassignments(),
    "elections": lambda it: it.elect_leaders("preferred"),
    "tokens": lambda it: it.describe_delegation_token(),
    "directories": lambda it: it.describe_log_dirs(),
    "quorum": lambda it: it.describe_metadata_quorum(),
    "config resources": lambda it: it.list_config_resources(),
    "groups": lambda it: it.list_groups(),
    "transactions": lambda it: it.list_transactions(),
    "topics": lambda it: it.list_topics(),
}


@pytest.mark.parametrize("name", EVERYTHING)
async def test_a_question_about_everything_is_answered_or_refused(
    guarded: Kafka, name: str
) -> None:
    async with Admin(**secured(guarded, "alice")) as admin:
        # Not a RequestTimeout: Kafka fails to refuse some requests, and never answers.
        with suppress(BrokerError, UnsupportedVersion):
            async with asyncio.timeout(10):
                await EVERYTHING[name](admin)


@pytest.mark.parametrize(
    ("user", "topic", "right", "text"),
    [
        # The id is refused, too (31); the topic is what a user can do something about.
        ("alice", "closed", "DESCRIBE", "there is no topic 'closed', or"),
        ("alice", "missing", "DESCRIBE", "there is no topic 'missing', or"),
        ("bob", "seen", "WRITE", "needs WRITE on topic 'seen'"),
    ],
)
async def test_who_may_not_produce(
    guarded: Kafka, user: str, topic: str, right: str, text: str
) -> None:
    async with Producer(**secured(guarded, user)) as producer:
        with pytest.raises(AuthorizationError, match=text) as caught:
            await producer.send(topic, b"v")
    found = caught.value
    assert (found.resource_type, found.resource) == ("topic", topic)
    assert found.operation == right


async def test_who_may_only_see_a_topic_gets_no_id(guarded: Kafka) -> None:
    await allow(guarded, "alice", (TOPIC, "seen", DESCRIBE))
    async with Producer(**secured(guarded, "alice")) as producer:
        text = "needs WRITE on a topic, or IDEMPOTENT_WRITE on the cluster"
        with pytest.raises(AuthorizationError, match=text) as caught:
            await producer.send("seen", b"v")
    assert caught.value.resource_type == "cluster"


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize(("group", "right"), [("closed", "DESCRIBE"), ("seen", "READ")])
async def test_who_may_not_join_a_group(
    guarded: Kafka, protocol: str, group: str, right: str
) -> None:
    options = secured(guarded, "bob") | {"group_protocol": protocol}
    text = f"needs {right} on group '{group}'"
    with pytest.raises(AuthorizationError, match=text) as caught:
        async with Consumer(**options, group_id=group, topics="granted"):
            pass
    assert (caught.value.resource_type, caught.value.resource) == ("group", group)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_a_right_on_the_group_that_is_taken_away_and_given_back(
    guarded: Kafka, protocol: str
) -> None:
    right = (GROUP, f"passing-{protocol}", READ)
    await allow(guarded, "bob", right)
    options = secured(guarded, "bob") | {
        "group_protocol": protocol,
        "group_id": right[1],
        "topics": "granted",
        "enable_auto_commit": False,
    }
    if protocol == "classic":
        options["heartbeat_interval_ms"] = 500
    async with Consumer(**options) as consumer:
        identity = consumer.group_metadata
        await forbid(guarded, "bob", right)
        told = good = 0
        while good < 3:
            try:
                await consumer.poll(timeout=2)
                good += bool(told)
            except AuthorizationError:
                if not told:
                    await allow(guarded, "bob", right)
                told, good = told + 1, 0
        assert consumer.group_metadata == identity
        assert len(consumer.assignment) == 1
    async with Admin(guarded.bootstrap_servers) as admin:
        found = await admin.describe_consumer_groups([right[1]])
    assert not found[right[1]].members


async def test_who_may_not_read_a_topic(guarded: Kafka) -> None:
    options = secured(guarded, "bob") | {"auto_offset_reset": "earliest"}
    async with Consumer(**options, assign=[("seen", 0)]) as consumer:
        with pytest.raises(AuthorizationError, match="needs READ on topic 'seen'"):
            await consumer.poll(timeout=10)


@pytest.mark.parametrize(("name", "right"), [("closed", "DESCRIBE"), ("seen", "WRITE")])
async def test_who_may_not_use_a_transactional_id(
    guarded: Kafka, name: str, right: str
) -> None:
    options = secured(guarded, "bob") | {"transactional_id": name}
    text = f"needs {right} on transactional id '{name}'"
    with pytest.raises(AuthorizationError, match=text) as caught:
        async with Producer(**options) as producer, producer.transaction() as tx:
            await tx.send("granted", b"v")
    assert caught.value.resource_type == "transactional id"
