"""Rights of users on a Kafka that checks them."""

from __future__ import annotations

from kafkaio import AclBinding, AclBindingFilter, AclOperation, AclResourceType, Admin
from kafkaio.testing.kafka import Kafka

__all__ = [
    "DESCRIBE",
    "GROUP",
    "READ",
    "TOPIC",
    "TRANSACTIONAL_ID",
    "WRITE",
    "allow",
    "forbid",
]

TOPIC = AclResourceType.TOPIC
GROUP = AclResourceType.GROUP
TRANSACTIONAL_ID = AclResourceType.TRANSACTIONAL_ID
READ, WRITE = AclOperation.READ, AclOperation.WRITE
DESCRIBE = AclOperation.DESCRIBE


async def allow(
    kafka: Kafka, user: str, *rights: tuple[AclResourceType, str, AclOperation]
) -> None:
    """Let a user do something: type and name of a resource, and an operation."""
    bindings = [
        AclBinding(kind, name, f"User:{user}", operation)
        for kind, name, operation in rights
    ]
    async with Admin(kafka.bootstrap_servers) as admin:
        await admin.create_acls(bindings)


async def forbid(
    kafka: Kafka, user: str, *rights: tuple[AclResourceType, str, AclOperation]
) -> None:
    """Take back what `allow` has given."""
    async with Admin(kafka.bootstrap_servers) as admin:
        for kind, name, operation in rights:
            await admin.delete_acls(
                [
                    AclBindingFilter(
                        resource_type=kind,
                        resource_name=name,
                        principal=f"User:{user}",
                        operation=operation,
                    )
                ]
            )
