"""A thousand admin calls while a cluster of three embedded brokers loses its parts.

Each call ends by its deadline with a result or a typed error, and nothing is left
running (see ``conftest.py``). `lag` takes as many requests for many groups as for few.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable

import anyio
import pytest

from kafkaio._config import ClientConfig
from kafkaio.admin import Admin, ConfigResource, ConfigResourceType, NewTopic
from kafkaio.errors import AdminErrors, KafkaError
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.testing import Broker
from kafkaio.types import TopicPartition

#: Seconds that each call has, and what it may take beyond: its last wait.
DEADLINE, MARGIN = 3.0, 0.5
CALLS = 1_000
T = [TopicPartition("t", number) for number in range(6)]


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(
        nodes=3, topics={"t": 6, "many": 50}, memory_transport=True
    ) as broker:
        yield broker


def admin_of(broker: Broker) -> Admin:
    config = ClientConfig(
        bootstrap_servers=tuple((it.host, it.port) for it in broker.nodes.values()),
        request_timeout_ms=1_000,
    )
    return Admin.from_config(config, dial=broker.dial)


def calls(admin: Admin) -> list[Callable[[int], Awaitable[object]]]:
    topic = ConfigResource(ConfigResourceType.TOPIC, "t")
    within = {"timeout": DEADLINE}
    return [
        lambda n: admin.create_topics([NewTopic(f"new-{n}", 1, 1)], **within),
        lambda n: admin.delete_topics([f"new-{n - 11}"], **within),
        lambda _: admin.describe_topics(["t"], **within),
        lambda _: admin.list_groups(**within),
        lambda n: admin.describe_consumer_groups([f"g{n % 7}"], **within),
        lambda n: admin.alter_consumer_group_offsets(f"g{n % 7}", {T[0]: 0}, **within),
        lambda _: admin.lag([f"g{number}" for number in range(7)], **within),
        lambda _: admin.list_offsets(dict.fromkeys(T, "latest"), **within),
        lambda _: admin.describe_configs([topic], **within),
        lambda _: admin.describe_log_dirs(**within),
    ]


async def trouble(broker: Broker) -> None:
    """Kill the controller, move a coordinator, pause a broker; and so on."""
    control = broker.control
    while True:
        await anyio.sleep(0.3)
        await control.stop(0)  # the controller
        await anyio.sleep(1)
        await control.restart(0)
        control.move_coordinator("g1", 2)
        control.pause(1)
        await anyio.sleep(3.5)
        control.resume(1)
        control.move_coordinator("g1", 1)
        await control.stop(2)
        await anyio.sleep(0.5)
        await control.restart(2)


async def test_a_cluster_that_loses_its_parts(broker: Broker) -> None:
    loop = asyncio.get_running_loop()
    ends: Counter[str] = Counter()
    late: list[tuple[int, float]] = []

    async def one(number: int, call: Callable[[int], Awaitable[object]]) -> None:
        begun = loop.time()
        try:
            await call(number)
            ends["results"] += 1
        except (KafkaError, AdminErrors) as error:
            ends[type(error).__name__] += 1
        if loop.time() - begun > DEADLINE + MARGIN:
            late.append((number, loop.time() - begun))

    async with admin_of(broker) as admin, anyio.create_task_group() as chaos:
        kinds = calls(admin)
        chaos.start_soon(trouble, broker)
        async with anyio.create_task_group() as group:
            for number in range(CALLS):
                group.start_soon(one, number, kinds[number % len(kinds)])
                await anyio.sleep(0.01)
        chaos.cancel_scope.cancel()
    assert not late
    assert sum(ends.values()) == CALLS
    assert ends["results"] > CALLS // 2
    assert ends["RequestTimeout"]  # the trouble was felt


async def test_the_lag_of_many_groups_takes_few_requests(broker: Broker) -> None:
    groups = [f"g{number}" for number in range(200)]
    partitions = {TopicPartition("many", number): number for number in range(50)}
    async with admin_of(broker) as admin:
        for group in groups:
            await admin.alter_consumer_group_offsets(group, partitions)
    async with admin_of(broker) as admin:
        await admin.list_topics()
        before = len(broker.requests)
        lags = await admin.lag(groups)
        asked = [request.api for request in list(broker.requests)[before:]]
    assert list(lags) == groups
    assert all(len(lag.partitions) == 50 for lag in lags.values())
    brokers = coordinators = 3
    counted = [api for api in asked if api != ApiKey.API_VERSIONS]
    assert len(counted) <= (brokers + coordinators) * 3
