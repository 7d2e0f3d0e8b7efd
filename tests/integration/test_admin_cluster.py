"""Rights, quotas, users, tokens and the cluster by `kafkaio.Admin`, on real brokers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime, timedelta, timezone
from typing import Any, TypeVar
from uuid import uuid4

import anyio
import pytest
import pytest_asyncio

import kafkaio
from kafkaio.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPatternType,
    AclPermission,
    AclResourceType,
    Admin,
    FeatureUpdate,
    FeatureUpgradeType,
    NewTopic,
    QuotaEntity,
    QuotaFilter,
    QuotaName,
    RaftEndpoint,
    ScramCredential,
    ScramDeletion,
    ScramMechanism,
    ScramUpsertion,
)
from kafkaio.errors import (
    AdminErrors,
    AuthorizationError,
    BrokerError,
    ConfigurationError,
    UnsupportedVersion,
)
from kafkaio.protocol.error_codes import ErrorCode as E
from kafkaio.testing.kafka import Kafka

pytestmark = [
    pytest.mark.kafka_versions("4.3"),
    pytest.mark.timeout(120),
    pytest.mark.asyncio(loop_scope="module"),
]

T = TypeVar("T")
ALICE = "User:CN=alice"


async def until(
    ask: Callable[[], Awaitable[T]], holds: Callable[[T], object], limit: float = 20
) -> T:
    """Ask until it holds: brokers learn of changes a moment later."""
    with anyio.fail_after(limit):
        while not holds(found := await ask()):
            await anyio.sleep(0.02)
    return found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def guarded() -> AsyncIterator[Kafka]:
    """A Kafka that checks rights, and makes tokens."""
    users = {"alice": "a", "bob": "b"}
    async with Kafka(
        tls=True, acls=True, sasl=["SCRAM-SHA-256"], users=users, delegation_tokens=True
    ) as kafka:
        yield kafka


@pytest_asyncio.fixture(loop_scope="module")
async def admin(guarded: Kafka) -> AsyncIterator[Admin]:
    async with Admin(guarded.bootstrap_servers) as admin:
        yield admin


def by_password(kafka: Kafka, user: str, password: str) -> dict[str, Any]:
    return {
        "bootstrap_servers": kafka.bootstrap("SASL"),
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_username": user,
        "sasl_password": password,
        "default_api_timeout_ms": 20_000,
    }


async def test_play(guarded: Kafka, admin: Admin) -> None:
    b = AclBinding(AclResourceType.TOPIC, "x", "User:alice", AclOperation.READ)
    print(await admin.create_acls([b]))
    print(await admin.describe_acls())
    try:
        await admin.create_acls([AclBinding(AclResourceType.CLUSTER, "nope", "User:alice", AclOperation.READ)])
    except BrokerError as e:
        print(repr(e))
    print(await admin.delete_acls([AclBindingFilter()]))
    print(await admin.alter_client_quotas({QuotaEntity(user="alice"): {"producer_byte_rate": 1000.0}, QuotaEntity(ip=QuotaName.DEFAULT): {"connection_creation_rate": 7}}))
    print(await until(admin.describe_client_quotas, lambda x: len(x) == 2))
    try:
        await admin.alter_client_quotas({QuotaEntity(user="alice"): {"nope": 1000.0}, QuotaEntity(user="alice", ip="1.2.3.4"): {"producer_byte_rate":1}})
    except AdminErrors as e:
        print(repr(e))
    print(await admin.describe_user_scram_credentials())
    print(await admin.alter_user_scram_credentials([ScramUpsertion("new", ScramMechanism.SCRAM_SHA_256, "pw", 4096)]))
    print(await admin.describe_cluster(include_authorized_operations=True, include_fenced_brokers=True))
    print(await admin.describe_features())
    print(await admin.describe_metadata_quorum())
    for c in (lambda: admin.create_delegation_token(), lambda: admin.unregister_broker(99), lambda: admin.add_raft_voter(9, uuid4(), [RaftEndpoint("CONTROLLER","h",1)]), lambda: admin.remove_raft_voter(9, uuid4()),
        lambda: admin.update_features({"nope": FeatureUpdate(3), "metadata.version": FeatureUpdate(7)}), lambda: admin.describe_user_scram_credentials(["x","y"])):
        try:
            print(await c())
        except (BrokerError,AdminErrors) as e:
            print(repr(e))
    async with Admin(**by_password(guarded, "alice", "a")) as alice:
        t = await alice.create_delegation_token(renewers=["User:bob"], max_lifetime=3600)
        print(t)
        print(await until(alice.describe_delegation_token, len))
        for c in (alice.describe_acls, lambda: alice.create_acls([b])):
            try:
                print(await c())
            except BrokerError as e:
                print(repr(e))
    async with Admin(bootstrap_controllers=guarded.bootstrap_controllers) as ctl:
        print(ctl)
        print(await ctl.describe_cluster(include_authorized_operations=True))
        print(await ctl.describe_features())
        print(await ctl.describe_metadata_quorum())
        for c in (ctl.list_topics, ctl.describe_acls, lambda: ctl.create_topics([NewTopic("x",1,1)]), lambda: ctl.describe_topics(["x"]), ctl.describe_client_quotas, ctl.describe_user_scram_credentials, ctl.describe_delegation_token, lambda: ctl.unregister_broker(99), lambda: ctl.describe_transactions(["x"]), ctl.list_transactions,
            lambda: ctl.create_acls([b]),lambda: ctl.alter_client_quotas({QuotaEntity(user="alice"): {"producer_byte_rate": 1000.0}}), lambda: ctl.update_features({"nope": FeatureUpdate(3)}), lambda: ctl.wait_for_topics(["x"])):
            try:
                print("OK", await c())
            except Exception as e:
                print(repr(e))
    for kw in ({"bootstrap_controllers": guarded.bootstrap_servers}, {"bootstrap_servers": guarded.bootstrap_controllers}):
        try:
            async with Admin(**kw): pass
        except Exception as e:
            print(repr(e))
    assert 0
