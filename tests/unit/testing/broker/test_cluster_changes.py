"""Quotas, features, controllers and brokers of the embedded broker, by `Admin`.

What each answer has to be is compared with a real Kafka by the differential test
``cluster_changes``; here are several nodes, and restarts.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kafkaio._config import ClientConfig
from kafkaio.admin import (
    Admin,
    FeatureUpdate,
    FeatureUpgradeType,
    QuotaEntity,
    QuotaFilter,
    QuotaName,
    settled,
)
from kafkaio.errors import BrokerError
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.testing import Broker
from kafkaio.types import TopicPartition

DOWN = FeatureUpgradeType.SAFE_DOWNGRADE


def admin_of(broker: Broker) -> Admin:
    servers = tuple((node.host, node.port) for node in broker.nodes.values())
    config = ClientConfig(bootstrap_servers=servers)
    return Admin.from_config(config, dial=broker.dial)


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(
        nodes=3, topics={"t": 3}, memory_transport=True, metadata_delay=0.0
    ) as broker:
        yield broker


async def test_quotas_outlive_the_broker(tmp_path: Path) -> None:
    alice, everybody = QuotaEntity(user="alice"), QuotaEntity(user=QuotaName.DEFAULT)
    async with (
        Broker(data_dir=tmp_path, memory_transport=True) as broker,
        admin_of(broker) as admin,
    ):
        await admin.alter_client_quotas(
            {
                alice: {"producer_byte_rate": 10.0, "request_percentage": 1.5},
                everybody: {"producer_byte_rate": 1.0},
            }
        )
        with pytest.raises(BrokerError) as caught:
            await admin.alter_client_quotas(
                {alice: {"no_such_quota": 1.0}, everybody: {"producer_byte_rate": 2.0}}
            )
        assert caught.value.code == E.INVALID_REQUEST
        assert caught.value.item == alice
    async with (
        Broker(data_dir=tmp_path, memory_transport=True) as broker,
        admin_of(broker) as admin,
    ):
        found = await admin.describe_client_quotas(QuotaFilter(user=QuotaName.ANY))
        assert found == {
            alice: {"producer_byte_rate": 10.0, "request_percentage": 1.5},
            everybody: {"producer_byte_rate": 2.0},
        }
        await admin.alter_client_quotas({alice: dict.fromkeys(found[alice])})
        assert list(await admin.describe_client_quotas()) == [everybody]


async def test_features(broker: Broker) -> None:
    async with admin_of(broker) as admin:
        described = await admin.describe_features()
        assert described.finalized["group.version"].max_level == 1
        epoch = described.finalized_epoch
        await admin.update_features(
            {
                "group.version": FeatureUpdate(0, DOWN),
                "transaction.version": FeatureUpdate(0, DOWN),
            }
        )
        described = await admin.describe_features()
        assert "group.version" not in described.finalized
        assert "transaction.version" not in described.finalized
        await admin.update_features({"transaction.version": FeatureUpdate(2)})
        assert described.finalized_epoch != epoch
        with pytest.raises(BrokerError, match="without setting the upgrade type"):
            await admin.update_features({"transaction.version": FeatureUpdate(1)})
        with pytest.raises(BrokerError) as caught:
            await admin.describe_consumer_groups(["g"])
        # What DescribeGroups says: the other API refuses all groups now.
        assert caught.value.code == E.GROUP_ID_NOT_FOUND


async def test_controllers(broker: Broker) -> None:
    async with admin_of(broker) as admin:
        quorum = await admin.describe_metadata_quorum()
        assert [voter.node_id for voter in quorum.voters] == [0, 1, 2]
        assert quorum.leader == 0
        await broker.control.stop(0)
        later = await admin.describe_metadata_quorum()
    assert later.leader == 1
    assert later.high_watermark > quorum.high_watermark


async def test_a_broker_that_is_gone_for_good(broker: Broker) -> None:
    async with admin_of(broker) as admin:
        await broker.control.stop(2)
        found = await admin.describe_cluster(include_fenced_brokers=True)
        assert found.fenced == {2}
        await admin.unregister_broker(2)
        found = await admin.describe_cluster(include_fenced_brokers=True)
        assert [it.node_id for it in found.brokers] == [0, 1]
        with pytest.raises(BrokerError) as caught:
            await admin.unregister_broker(2)
        assert caught.value.code == E.BROKER_ID_NOT_REGISTERED
        await broker.control.restart(2)
        found = await admin.describe_cluster(include_fenced_brokers=True)
        assert [it.node_id for it in found.brokers] == [0, 1, 2]


async def test_replicas_have_one_directory(broker: Broker) -> None:
    async with admin_of(broker) as admin:
        tp = TopicPartition("t", 0)
        described = await admin.describe_topics(["t"])
        node = described["t"].partitions[0].replicas[0]
        other = (node + 1) % 3
        await admin.alter_partition_reassignments({tp: [node]})
        places = await admin.describe_replica_log_dirs([(tp, node), (tp, other)])
        path = places[tp, node].current
        assert path is not None
        assert places[tp, other].current is None
        assert await admin.alter_replica_log_dirs({(tp, node): path}) == {
            (tp, node): None
        }
        results = await settled(
            admin.alter_replica_log_dirs(
                {
                    (tp, other): f"embedded-{other}",
                    (tp, node): "/no/such/directory",
                    (TopicPartition("no", 0), node): path,
                },
            )
        )
    assert [
        error.code
        for error in results.failed.values()
        if isinstance(error, BrokerError)
    ] == [E.REPLICA_NOT_AVAILABLE, E.LOG_DIR_NOT_FOUND, E.UNKNOWN_TOPIC_OR_PARTITION]
