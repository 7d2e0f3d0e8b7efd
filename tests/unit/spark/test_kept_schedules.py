"""Every row once, with workers that keep their producers from batch to batch."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from kafkaio.testing import Broker
from tests.spark.torture_protocol import Cluster, Plan, Verdict, run
from tests.virtual_loop import VirtualClockLoop


def verdict_of(seed: int, level: int, plan: Plan) -> Verdict:
    async def main() -> Verdict:
        options = {"transaction.version": level}
        topics = {"out": plan.partitions}
        async with (
            asyncio.timeout(36_000),
            Broker(memory_transport=True, topics=topics, features=options) as broker,
        ):
            cluster = Cluster(broker.bootstrap_servers, broker.dial)
            return await run(cluster, "out", seed, plan=plan)

    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        return runner.run(main())


@pytest.mark.parametrize(
    ("level", "store"),
    [
        (1, "topic"),
        (2, "groups"),
        pytest.param(1, "groups", marks=pytest.mark.nightly),
        pytest.param(2, "topic", marks=pytest.mark.nightly),
    ],
)
def test_every_row_once_with_producers_that_are_kept(level: int, store: str) -> None:
    plan = Plan(
        batches=16, tasks=(2,), rows=10, dies=0.15, keeps=0.8, restarts=0.1, store=store
    )
    events: Counter[str] = Counter()
    for seed in range(2):
        found = verdict_of(seed, level, plan)
        assert (found.duplicates, found.missing) == (0, 0), f"seed {seed}: {found}"
        events += found.events
    assert events["kept"] > 10, events
    assert events["died"], events
