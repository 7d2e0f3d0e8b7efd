from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from kafkaio._config import ConsumerConfig
from kafkaio._consumer import Consumer
from tests.fakes.broker import FakeCluster
from tests.unit.consumer.fake_log import FakeLogs
from tests.virtual_loop import pytest_asyncio_loop_factories

__all__ = ["pytest_asyncio_loop_factories"]

MakeConsumer = Callable[..., Consumer]


@pytest.fixture
async def cluster() -> AsyncIterator[FakeCluster]:
    async with FakeCluster(nodes=3, topics={"orders": 3, "one": 1}) as cluster:
        yield cluster


@pytest.fixture
def logs(cluster: FakeCluster) -> FakeLogs:
    return FakeLogs(cluster)


@pytest.fixture
async def make(cluster: FakeCluster, logs: FakeLogs) -> AsyncIterator[MakeConsumer]:
    made: list[Consumer] = []

    def make(observer: object | None = None, **options: Any) -> Consumer:
        own = {
            name: options.pop(name)
            for name in ("topics", "assign", "on_assigned", "on_revoked", "on_lost")
            if name in options
        }
        config = ConsumerConfig.of(cluster.bootstrap, options)
        made.append(
            Consumer.from_config(config, observer=observer, dial=cluster.dial, **own)
        )
        return made[-1]

    yield make
    for consumer in made:
        await consumer.close(timeout=1.0)
