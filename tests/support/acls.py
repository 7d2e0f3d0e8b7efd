"""Rights of users on a Kafka that checks them."""

from __future__ import annotations

from kafkaio import Client, messages
from kafkaio.client import Controller
from kafkaio.testing.kafka import Kafka

__all__ = ["DESCRIBE", "GROUP", "READ", "TOPIC", "TRANSACTIONAL_ID", "WRITE", "allow"]

TOPIC, GROUP, TRANSACTIONAL_ID = 2, 3, 5
READ, WRITE, DESCRIBE = 3, 4, 8
_LITERAL, _ALLOW = 3, 3


async def allow(kafka: Kafka, user: str, *rights: tuple[int, str, int]) -> None:
    """Let a user do something: type and name of a resource, and an operation."""
    creations = [
        messages.AclCreation(
            resource_type=kind,
            resource_name=name,
            resource_pattern_type=_LITERAL,
            principal=f"User:{user}",
            host="*",
            operation=operation,
            permission_type=_ALLOW,
        )
        for kind, name, operation in rights
    ]
    request = messages.CreateAclsRequest(creations=creations)
    async with Client(kafka.bootstrap_servers) as client:
        answer = await client.request(request, to=Controller)
    assert [result.error_code for result in answer.results] == [0] * len(rights)
