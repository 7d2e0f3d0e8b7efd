"""kafkaio, Java and confluent-kafka in one share group, whose members die.

The long form, through proxies that fail, is ``python -m tests.torture --scenario
share``; it runs at night.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkaio.testing.kafka import Kafka
from tests.support.share_peers import CLIENTS
from tests.torture.sharing import SharePlan, Sharing

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.kafka_versions("4.2+"),
    pytest.mark.not_embedded("of real brokers"),
]


async def test_members_of_three_clients_lose_nothing(
    real_kafka_cluster: Kafka, tmp_path: Path
) -> None:
    plan = SharePlan(
        records=1_200,
        seconds=5,
        members=1,
        fate_seconds=1.2,
        move_seconds=2,
        lock_seconds=1,
    )
    servers = real_kafka_cluster.bootstrap_servers
    run = Sharing(plan, servers, tmp_path, print)
    verdict = await run.run()
    assert not verdict.wrong, verdict
    assert verdict.counts["move"]
    assert sum(verdict.counts[fate] for fate in ("kill", "freeze", "leave"))
    for client in CLIENTS:
        assert verdict.counts[f"got by {client}"], verdict
