from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from kafkaio._config import ProducerConfig
from kafkaio._producer import Producer
from tests.fakes.broker import FakeCluster
from tests.unit.producer.broker_log import Logs
from tests.virtual_loop import pytest_asyncio_loop_factories

__all__ = ["pytest_asyncio_loop_factories"]

MakeProducer = Callable[..., Producer]


@pytest.fixture
async def cluster() -> AsyncIterator[FakeCluster]:
    async with FakeCluster(nodes=3, topics={"orders": 3, "one": 1}) as cluster:
        yield cluster


@pytest.fixture
def logs(cluster: FakeCluster) -> Logs:
    return Logs(cluster)


@pytest.fixture
async def make(cluster: FakeCluster, logs: Logs) -> AsyncIterator[MakeProducer]:
    made: list[Producer] = []

    def make(observer: object | None = None, **options: Any) -> Producer:
        config = ProducerConfig.of(cluster.bootstrap, options)
        made.append(Producer.from_config(config, observer=observer, dial=cluster.dial))
        return made[-1]

    yield make
    for producer in made:
        await producer.close(timeout=0)
