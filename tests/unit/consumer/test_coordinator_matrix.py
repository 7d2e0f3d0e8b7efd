"""Whatever is wrong with the coordinator: a rebalance and a revocation come to an end.

`test_starting` and `test_leaving` have the same for the start and the end of a member.
Three nodes, two members; the trouble begins before the second one joins, or while the
first one holds a partition that it is to release, and lasts for a while.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from kafkaio._client.client import Client
from kafkaio._config import ClientConfig
from kafkaio._consumer import Consumer
from kafkaio._runtime.clock import now
from kafkaio.errors import AuthorizationError
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing import Broker, error, throttle
from tests.unit.consumer.group_fakes import virtual

E = ErrorCode
CLASSIC: dict[str, Any] = {
    "group_protocol": "classic",
    "heartbeat_interval_ms": 1_000,
    "session_timeout_ms": 30_000,
}
PROTOCOLS: dict[str, dict[str, Any]] = {
    "consumer": {"group_protocol": "consumer"},
    "cooperative": CLASSIC | {"partition_assignment_strategy": "cooperative-sticky"},
    "eager": CLASSIC | {"partition_assignment_strategy": "range"},
}
protocols = pytest.mark.parametrize("protocol", PROTOCOLS)
#: All that a member sends to its coordinator.
APIS = [
    "JoinGroup",
    "SyncGroup",
    "Heartbeat",
    "ConsumerGroupHeartbeat",
    "OffsetCommit",
    "OffsetFetch",
]
#: Seconds that a trouble lasts.
LASTS = 12.0


class Members:
    """Consumers that poll all the time, and what they own."""

    def __init__(self, broker: Broker, protocol: str) -> None:
        self.broker = broker
        self.consumers: list[Consumer] = []
        self.denied = 0
        self._options = PROTOCOLS[protocol]
        self._stack = AsyncExitStack()
        self._tasks: list[asyncio.Task[None]] = []

    async def add(self) -> Consumer:
        config = ClientConfig.of(self.broker.bootstrap_servers, {})
        client = Client.from_config(config, dial=self.broker.dial)
        await self._stack.enter_async_context(client)
        consumer = Consumer(
            client,
            topics="t",
            group_id="g",
            auto_offset_reset="earliest",
            **self._options,
        )
        while True:
            try:
                await consumer.start()
                break
            except AuthorizationError:
                self.denied += 1
                await asyncio.sleep(1)
                return await self.add()
        self.consumers.append(consumer)
        self._tasks.append(asyncio.create_task(self._poll(consumer)))
        return consumer

    async def _poll(self, consumer: Consumer) -> None:
        while True:
            try:
                await consumer.poll(timeout=0.2)
            except AuthorizationError:
                self.denied += 1

    async def shared(self, within: float) -> None:
        """Wait until each has its part."""
        async with asyncio.timeout(within):
            while [len(each.assignment) for each in self.consumers] != [2, 2]:  # noqa: ASYNC110
                await asyncio.sleep(0.2)

    async def aclose(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for consumer in self.consumers:
            await consumer.close(5.0)
        await self._stack.aclose()


@asynccontextmanager
async def one_member(protocol: str) -> AsyncIterator[tuple[Broker, Members]]:
    async with Broker(nodes=3, topics={"t": 4}, memory_transport=True) as broker:
        members = Members(broker, protocol)
        try:
            await members.add()
            yield broker, members
        finally:
            broker.faults.clear()
            await members.aclose()


def later(step: Callable[..., object], *args: object) -> None:
    asyncio.get_running_loop().call_later(LASTS, step, *args)


def moved(broker: Broker) -> None:
    node = (broker.control.coordinator("g") + 1) % 3
    broker.control.move_coordinator("g", node)


def moves_twice(broker: Broker) -> None:
    moved(broker)
    asyncio.get_running_loop().call_later(1.5, moved, broker)


def gone(broker: Broker) -> None:
    """Its connections break; its successor is there at once."""
    old = broker.control.coordinator("g")
    moved(broker)
    broker.control.pause(old)
    later(broker.control.resume, old)


def hangs(broker: Broker) -> None:
    """Its successor is there later."""
    broker.control.pause(broker.control.coordinator("g"))
    later(moved, broker)


def unknown(broker: Broker) -> None:
    moved(broker)
    broker.faults.on("FindCoordinator", error(E.COORDINATOR_NOT_AVAILABLE))
    later(broker.faults.clear)


def loads(broker: Broker) -> None:
    for api in APIS:
        broker.faults.on(api, error(E.COORDINATOR_LOAD_IN_PROGRESS))
    later(broker.faults.clear)


def denied(broker: Broker) -> None:
    for api in ("JoinGroup", "SyncGroup", "Heartbeat", "ConsumerGroupHeartbeat"):
        broker.faults.on(api, error(E.GROUP_AUTHORIZATION_FAILED))
    later(broker.faults.clear)


def throttled(broker: Broker) -> None:
    for api in APIS:
        broker.faults.on(api, throttle(3.0, times=3))


TROUBLES = [moved, moves_twice, gone, hangs, unknown, loads, denied, throttled]


@virtual
@protocols
@pytest.mark.parametrize("trouble", TROUBLES)
async def test_a_rebalance_comes_to_an_end(
    protocol: str, trouble: Callable[[Broker], None]
) -> None:
    async with one_member(protocol) as (broker, members):
        trouble(broker)
        begun = now()
        await members.add()
        await members.shared(LASTS + 60)
        assert now() - begun < LASTS + 50
        assert bool(members.denied) == (trouble is denied)
        assert len(broker.control.members("g")) == 2


@virtual
@protocols
@pytest.mark.parametrize("trouble", TROUBLES)
async def test_a_revocation_comes_to_an_end(
    protocol: str, trouble: Callable[[Broker], None]
) -> None:
    async with one_member(protocol) as (broker, members):
        (one,) = members.consumers
        events = one.rebalances()
        adding = asyncio.create_task(members.add())
        requested = await anext(events)
        async with requested.hold():
            trouble(broker)
            await asyncio.sleep(LASTS / 2)
            # A trouble of the coordinator's takes nothing that is held.
            assert requested.partitions <= one.assignment
        await events.aclose()
        await adding
        await members.shared(LASTS + 60)
        assert len(broker.control.members("g")) == 2
