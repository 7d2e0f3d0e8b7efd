from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from kafkaio._config import ConsumerConfig
from kafkaio._consumer import Consumer
from kafkaio._consumer.fetch.targets import FetchChoice, FetchTargets
from kafkaio._runtime.clock import now
from tests.fakes.broker import FakeCluster
from tests.unit.consumer.fake_log import FakeLogs
from tests.virtual_loop import pytest_asyncio_loop_factories

__all__ = ["pytest_asyncio_loop_factories"]

MakeConsumer = Callable[..., Consumer]


@pytest.fixture
async def cluster() -> AsyncIterator[FakeCluster]:
    async with FakeCluster(nodes=3, topics={"orders": 3, "one": 1}) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def kept_choices_are_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare each choice of partitions that is used again with one made anew."""
    usual = FetchTargets.from_broker

    def compared(self: FetchTargets, node_id: int) -> FetchChoice:
        # Before the call: what it keeps and what it chooses anew are of one moment.
        anew = self._choose(node_id, self._inputs(), at=now())
        found = usual(self, node_id)
        assert found == anew
        assert list(found.targets) == list(anew.targets)
        return found

    monkeypatch.setattr(FetchTargets, "from_broker", compared)


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
