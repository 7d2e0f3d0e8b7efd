"""Half a minute of what ``python -m tests.torture`` does for as long as one likes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from kafkaio.testing.kafka import ClusterOptions, Kafka
from kafkaio.testing.kafka._properties import Value
from tests.torture.chaos import ProxiedCluster
from tests.torture.director import Director
from tests.torture.exactly_once import CopyDirector
from tests.torture.plan import Plan

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.not_embedded("kills nodes of a real Kafka"),
]

#: A transaction that is left open ends soon.
BROKERS: Final[dict[str, Value]] = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000,
}
PLAN: Final = Plan(members=6, partitions=12, seconds=10, pace=0.8, processes=3)


@pytest.mark.kafka_versions("4.0+")
async def test_who_only_comes_and_goes_repeats_nothing(
    real_kafka_cluster: Kafka, tmp_path: Path
) -> None:
    plan = replace(PLAN, protocol="consumer", deaths=False, kill_brokers=True)
    verdict = await Director(plan, real_kafka_cluster, tmp_path).run()
    assert not verdict.wrong, str(verdict)
    assert not verdict.duplicates


async def test_nothing_is_left_out_whoever_dies(
    real_kafka_cluster: Kafka, tmp_path: Path
) -> None:
    plan = replace(PLAN, protocol="classic", deaths=True)
    verdict = await Director(plan, real_kafka_cluster, tmp_path).run()
    assert not verdict.wrong, str(verdict)


@pytest.mark.kafka_versions("newest")
async def test_what_is_copied_in_transactions_is_there_once(tmp_path: Path) -> None:
    options = ClusterOptions(brokers=3, config=BROKERS)
    cluster = ProxiedCluster(options)
    plan = Plan(members=3, partitions=12, seconds=10)
    async with Kafka.on(cluster, options) as kafka:
        verdict = await CopyDirector(plan, kafka, cluster, tmp_path).run()
    assert not verdict.wrong, str(verdict)
