"""What `start()` of a group's member waits for, and for how long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kafkaio._client.client import Client
from kafkaio._config import ClientConfig
from kafkaio._consumer import Consumer
from kafkaio._runtime.clock import now
from kafkaio._runtime.observer import Observer
from kafkaio.errors import RequestTimeout
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing import Broker, disconnect_before_write, drop, error, throttle
from tests.unit.consumer.group_fakes import virtual

E = ErrorCode
PROTOCOLS: dict[str, dict[str, Any]] = {
    "consumer": {"group_protocol": "consumer"},
    "cooperative": {
        "group_protocol": "classic",
        "partition_assignment_strategy": "cooperative-sticky",
    },
    "eager": {
        "group_protocol": "classic",
        "partition_assignment_strategy": "range",
    },
}
#: Seconds; less than the time that a broker takes for a request is no realistic limit.
LIMIT = 20.0
#: Seconds that closing takes after a start that failed.
CLOSING = 1.1


@asynccontextmanager
async def not_started(
    broker: Broker, protocol: str, observer: Observer | None = None, **options: Any
) -> AsyncIterator[Consumer]:
    limits = {
        "default_api_timeout_ms": int(LIMIT * 1000),
        "request_timeout_ms": 5_000,
        "allow_auto_create_topics": False,
    }
    config = ClientConfig.of(broker.bootstrap_servers, limits)
    async with Client.from_config(
        config, observer=observer, dial=broker.dial
    ) as client:
        settings = {"topics": "t"} | PROTOCOLS[protocol] | options
        consumer = Consumer(client, group_id="g", **settings)
        try:
            yield consumer
        finally:
            await consumer.close(1.0)


def no_coordinator(broker: Broker) -> str:
    broker.faults.on("FindCoordinator", error(E.COORDINATOR_NOT_AVAILABLE))
    return "COORDINATOR_NOT_AVAILABLE"


def never_loaded(broker: Broker) -> str:
    for api in ("JoinGroup", "ConsumerGroupHeartbeat"):
        broker.faults.on(api, error(E.COORDINATOR_LOAD_IN_PROGRESS))
    return "COORDINATOR_LOAD_IN_PROGRESS"


def always_elsewhere(broker: Broker) -> str:
    for api in ("JoinGroup", "ConsumerGroupHeartbeat"):
        broker.faults.on(api, error(E.NOT_COORDINATOR))
    return "NOT_COORDINATOR"


def unknown_member(broker: Broker) -> str:
    for api in ("SyncGroup", "ConsumerGroupHeartbeat"):
        broker.faults.on(api, error(E.UNKNOWN_MEMBER_ID))
    return "UNKNOWN_MEMBER_ID"


def hangs_up(broker: Broker) -> str:
    for api in ("JoinGroup", "ConsumerGroupHeartbeat"):
        broker.faults.on(api, disconnect_before_write())
    return "broker"


def is_silent(broker: Broker) -> str:
    broker.faults.on("FindCoordinator", drop())
    return "FindCoordinator"


def throttles(broker: Broker) -> str:
    for api in ("JoinGroup", "ConsumerGroupHeartbeat"):
        broker.faults.on(api, throttle(3600.0))
        broker.faults.on(api, error(E.COORDINATOR_LOAD_IN_PROGRESS))
    return ""


TROUBLES = [
    no_coordinator,
    never_loaded,
    always_elsewhere,
    hangs_up,
    is_silent,
    throttles,
]


@virtual
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("within", [None, 7.0])
async def test_who_finds_no_coordinator_gives_up_in_time(
    protocol: str, trouble: Callable[[Broker], str], within: float | None
) -> None:
    async with (
        Broker(nodes=3, topics={"t": 4}, memory_transport=True) as broker,
        not_started(broker, protocol) as consumer,
    ):
        cause = trouble(broker)
        begun, limit = now(), LIMIT if within is None else within
        with pytest.raises(RequestTimeout, match=rf"in {limit:g} s; .*{cause}"):
            await consumer.start(timeout=within)
        assert limit <= now() - begun < limit + CLOSING


@virtual
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_coordinator_that_comes_in_time_is_enough(protocol: str) -> None:
    async with (
        Broker(nodes=3, topics={"t": 4}, memory_transport=True) as broker,
        not_started(broker, protocol) as consumer,
    ):
        broker.faults.on("FindCoordinator", error(E.COORDINATOR_NOT_AVAILABLE))
        asyncio.get_running_loop().call_later(LIMIT - 3, broker.faults.clear)
        await consumer.start()
        assert len(consumer.assignment) == 4


@virtual
async def test_a_rebalance_may_take_longer() -> None:
    async with (
        Broker(nodes=3, topics={"t": 4}, memory_transport=True) as broker,
        not_started(broker, "eager") as one,
        not_started(broker, "eager") as two,
    ):
        await one.start()
        events = one.rebalances()
        joining = asyncio.ensure_future(two.start())
        requested = await anext(events)
        async with requested.hold():
            await asyncio.sleep(3 * LIMIT)
            assert not joining.done()
        await events.aclose()
        await joining


@virtual
async def test_a_limit_of_the_users_tells_that_others_keep_it_waiting() -> None:
    async with (
        Broker(nodes=3, topics={"t": 4}, memory_transport=True) as broker,
        not_started(broker, "eager") as one,
        not_started(broker, "eager") as two,
    ):
        await one.start()
        events = one.rebalances()
        joining = asyncio.ensure_future(two.start(timeout=30))
        requested = await anext(events)
        async with requested.hold():
            with pytest.raises(RequestTimeout, match="waits for other members"):
                await joining
        await events.aclose()


@virtual
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_misspelt_topic_is_told_again_and_again(protocol: str) -> None:
    told = list[float]()

    class Listener(Observer):
        def topic_unavailable(self, topic: str, cause: BaseException) -> None:
            told.append(now())

    async with (
        Broker(topics={"orders": 4}, memory_transport=True) as broker,
        not_started(broker, protocol, Listener(), topics="order") as consumer,
    ):
        await consumer.start()
        assert consumer.statistics().unavailable_topics == {
            "order": "UNKNOWN_TOPIC_OR_PARTITION"
        }
        end = now() + 250
        while now() < end:
            await consumer.poll(timeout=5)
        assert len(told) == 4
        broker.create_topic("order", 2)
        await consumer.poll(timeout=60)
        async with asyncio.timeout(60):
            while len(consumer.assignment) < 2:
                await consumer.poll(timeout=1)
        assert consumer.statistics().unavailable_topics == {}
