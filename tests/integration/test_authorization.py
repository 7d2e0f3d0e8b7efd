"""What a client is told that lacks a right: which one, and on what."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from kafkaio import (
    AuthorizationError,
    Client,
    Consumer,
    Producer,
    messages,
)
from kafkaio.client import Controller
from kafkaio.testing.kafka import Kafka

pytestmark = [
    pytest.mark.kafka_versions("4.3"),
    pytest.mark.not_embedded("the authorizer is that of a real broker"),
    pytest.mark.timeout(120),
    pytest.mark.asyncio(loop_scope="module"),
]

_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_TOPIC, _GROUP, _TRANSACTIONAL_ID = 2, 3, 5
_READ, _WRITE, _DESCRIBE = 3, 4, 8


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def guarded() -> AsyncIterator[Kafka]:
    """A Kafka where bob may do something, and alice nothing."""
    config = {
        "authorizer.class.name": _AUTHORIZER,
        "super.users": "User:ANONYMOUS",  # who comes by the plain listener
        "ssl.principal.mapping.rules": "RULE:^CN=(.*?),.*$/$1/,DEFAULT",
    }
    users = {"alice": "a", "bob": "b"}
    async with Kafka(tls=True, users=users, config=config) as kafka:
        for name in ("granted", "seen", "closed"):
            await kafka.create_topic(name)
        await allow(
            kafka,
            "bob",
            (_TOPIC, "granted", _WRITE),
            (_TOPIC, "granted", _READ),
            (_TOPIC, "seen", _DESCRIBE),
            (_GROUP, "seen", _DESCRIBE),
            (_TRANSACTIONAL_ID, "seen", _DESCRIBE),
        )
        yield kafka


async def allow(kafka: Kafka, user: str, *rights: tuple[int, str, int]) -> None:
    creations = [
        messages.AclCreation(
            resource_type=kind,
            resource_name=name,
            resource_pattern_type=3,
            principal=f"User:{user}",
            host="*",
            operation=operation,
            permission_type=3,
        )
        for kind, name, operation in rights
    ]
    request = messages.CreateAclsRequest(creations=creations)
    async with Client(kafka.bootstrap_servers) as client:
        answer = await client.request(request, to=Controller)
    assert [result.error_code for result in answer.results] == [0] * len(rights)


def secured(kafka: Kafka, user: str) -> dict[str, Any]:
    return {
        "bootstrap_servers": kafka.bootstrap("MTLS"),
        "security_protocol": "SSL",
        "ssl_context": kafka.certificates.client_context(user),
        "default_api_timeout_ms": 20_000,
    }


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
    await allow(guarded, "alice", (_TOPIC, "seen", _DESCRIBE))
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
