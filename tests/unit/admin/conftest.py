import asyncio
from collections.abc import AsyncIterator, Callable, Mapping

import pytest

from tests.fakes.broker import FakeCluster
from tests.virtual_loop import VirtualClockLoop

__all__ = ["cluster", "nothing_left", "pytest_asyncio_loop_factories"]


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run tests on virtual time, but for those that wait for threads."""
    del config
    if item.path.name == "test_users.py":
        return {"real": asyncio.new_event_loop}
    return {"virtual": VirtualClockLoop}


@pytest.fixture
async def cluster() -> AsyncIterator[FakeCluster]:
    """Three brokers and a topic with six partitions, led in turn by 0, 1 and 2."""
    async with FakeCluster(nodes=3, topics={"t": 6}) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
async def nothing_left(cluster: FakeCluster) -> AsyncIterator[None]:
    """Every test leaves no connection and no task behind."""
    before = asyncio.all_tasks()
    yield
    for _ in range(3):
        await asyncio.sleep(0)
    assert not cluster.connections()
    assert not {task for task in asyncio.all_tasks() if task not in before} - {
        asyncio.current_task()
    }
