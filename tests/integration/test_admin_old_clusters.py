"""What `kafkaio.Admin` asks of clusters of any age, and what old ones cannot do."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from kafkaio.admin import Admin, ScramDeletion, ScramMechanism
from kafkaio.errors import BrokerError, UnsupportedVersion
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.testing.kafka import Kafka

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


@pytest.fixture
async def admin(real_kafka: Kafka) -> AsyncIterator[Admin]:
    async with Admin(real_kafka.bootstrap_servers) as admin:
        yield admin


async def test_the_cluster_is_described(admin: Admin, real_kafka: Kafka) -> None:
    found = await admin.describe_cluster(include_authorized_operations=True)
    assert [it.node_id for it in found.brokers] == real_kafka.node_ids
    assert found.controller in real_kafka.node_ids
    assert found.cluster_id == admin.statistics().cluster_id


async def test_a_broker_that_checks_no_rights(admin: Admin) -> None:
    with pytest.raises(BrokerError) as caught:
        await admin.describe_acls()
    assert caught.value.code == E.SECURITY_DISABLED


async def test_a_broker_without_tokens(admin: Admin) -> None:
    with pytest.raises(
        BrokerError, match=r"secret\.key|came without a login"
    ) as caught:
        await admin.create_delegation_token()
    assert caught.value.code in {
        E.DELEGATION_TOKEN_AUTH_DISABLED,
        E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
    }


@pytest.mark.kafka_versions("2.1")
async def test_what_the_oldest_brokers_cannot_do(admin: Admin) -> None:
    deletion = ScramDeletion("x", ScramMechanism.SCRAM_SHA_256)
    for asked, since in (
        (admin.describe_client_quotas(), "2.6"),
        (admin.describe_user_scram_credentials(), "2.7"),
        (admin.alter_user_scram_credentials([deletion]), "2.7"),
        (admin.describe_features(), "2.7"),
        (admin.describe_metadata_quorum(), "3.3"),
        (admin.unregister_broker(99), "2.8"),
        (admin.unregister_controller(99), "4.4"),
        (admin.describe_cluster(include_fenced_brokers=True), "4.0"),
    ):
        with pytest.raises(UnsupportedVersion, match=f"needs Kafka {since}"):
            await asked
