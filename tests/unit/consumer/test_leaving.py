"""Leaving the group while something is wrong with its coordinator.

Whatever it is, `close()` leaves within its time: a member that goes without a word
keeps its partitions from the others until its session ends.
"""

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
from kafkaio.errors import AuthorizationError, BrokerError, InternalError, KafkaError
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing import Broker, delay, disconnect_before_write, error, throttle
from tests.unit.consumer.group_fakes import until, virtual

E = ErrorCode
CLASSIC: dict[str, Any] = {
    "group_protocol": "classic",
    "heartbeat_interval_ms": 1_000,
}
PROTOCOLS: dict[str, dict[str, Any]] = {
    "consumer": {"group_protocol": "consumer"},
    "cooperative": CLASSIC | {"partition_assignment_strategy": "cooperative-sticky"},
    "eager": CLASSIC | {"partition_assignment_strategy": "range"},
}
LEAVES = {
    "consumer": "ConsumerGroupHeartbeat",
    "cooperative": "LeaveGroup",
    "eager": "LeaveGroup",
}
protocols = pytest.mark.parametrize("protocol", PROTOCOLS)


@asynccontextmanager
async def group_of_one(
    protocol: str, **options: Any
) -> AsyncIterator[tuple[Broker, Consumer]]:
    """A cluster of three, and a member that has all partitions."""
    async with Broker(nodes=3, topics={"t": 4}, memory_transport=True) as broker:
        config = ClientConfig.of(broker.bootstrap_servers, {})
        async with Client.from_config(config, dial=broker.dial) as client:
            consumer = Consumer(
                client,
                topics="t",
                group_id="g",
                enable_auto_commit=False,
                **PROTOCOLS[protocol],
                **options,
            )
            await consumer.start()
            await consumer.poll(timeout=0.1)
            assert len(consumer.assignment) == 4
            try:
                yield broker, consumer
            finally:
                await consumer.close(5.0)


def elsewhere(broker: Broker) -> int:
    """Another node than the coordinator."""
    return (broker.control.coordinator("g") + 1) % 3


def moved(broker: Broker, leave: str) -> None:
    del leave
    broker.control.move_coordinator("g", elsewhere(broker))


def gone(broker: Broker, leave: str) -> None:
    old = broker.control.coordinator("g")
    moved(broker, leave)
    broker.control.pause(old)


def hangs(broker: Broker, leave: str) -> None:
    # Its successor is there later, as in a real cluster.
    del leave
    old, new = broker.control.coordinator("g"), elsewhere(broker)
    broker.control.pause(old)
    asyncio.get_running_loop().call_later(
        9.0, broker.control.move_coordinator, "g", new
    )


def hangs_up(broker: Broker, leave: str) -> None:
    broker.faults.on(leave, disconnect_before_write(times=2))


def loads(broker: Broker, leave: str) -> None:
    broker.faults.on(leave, error(E.COORDINATOR_LOAD_IN_PROGRESS, times=4))


def unavailable(broker: Broker, leave: str) -> None:
    broker.faults.on(leave, error(E.COORDINATOR_NOT_AVAILABLE, times=2))


def unknown(broker: Broker, leave: str) -> None:
    moved(broker, leave)
    broker.faults.on("FindCoordinator", error(E.COORDINATOR_NOT_AVAILABLE, times=6))


def throttles(broker: Broker, leave: str) -> None:
    broker.faults.on(leave, throttle(40.0, times=1))


TROUBLES = [
    moved,
    gone,
    hangs,
    hangs_up,
    loads,
    unavailable,
    unknown,
    throttles,
]


@virtual
@protocols
@pytest.mark.parametrize("trouble", TROUBLES)
async def test_close_leaves(
    protocol: str, trouble: Callable[[Broker, str], None]
) -> None:
    async with group_of_one(protocol) as (broker, consumer):
        trouble(broker, LEAVES[protocol])
        begun = now()
        await consumer.close()
        assert not broker.control.members("g")
        assert now() - begun < 30


@virtual
@protocols
async def test_close_leaves_on_another_connection_if_its_own_is_throttled(
    protocol: str,
) -> None:
    async with group_of_one(protocol) as (broker, consumer):
        api = "ConsumerGroupHeartbeat" if protocol == "consumer" else "OffsetCommit"
        broker.faults.on(api, throttle(40.0, times=1))
        if protocol == "consumer":
            await until(lambda: bool(throttled(consumer)))
        else:
            await consumer.commit({("t", 0): 0})
        assert throttled(consumer)
        begun = now()
        await consumer.close()
        assert not broker.control.members("g")
        assert now() - begun < 30


def throttled(consumer: Consumer) -> list[float]:
    pool = consumer._core.cluster._pool
    return [each.throttled for each in pool.statistics() if each.throttled]


@virtual
@protocols
@pytest.mark.parametrize("within", [0.0, 0.2, 3.0])
async def test_close_is_over_in_its_time_if_there_is_no_coordinator(
    protocol: str, within: float
) -> None:
    async with group_of_one(protocol) as (broker, consumer):
        moved(broker, "")
        broker.faults.on("FindCoordinator", error(E.COORDINATOR_NOT_AVAILABLE))
        begun = now()
        await consumer.close(within)
        assert now() - begun <= within + 0.6


@virtual
@protocols
async def test_who_has_no_time_leaves_a_coordinator_that_has_moved(
    protocol: str,
) -> None:
    async with group_of_one(protocol) as (broker, consumer):
        moved(broker, "")
        begun = now()
        await consumer.close(0)
        assert not broker.control.members("g")
        assert now() - begun < 0.2


@virtual
@protocols
async def test_who_is_cancelled_leaves_a_coordinator_that_has_moved(
    protocol: str,
) -> None:
    async with group_of_one(protocol) as (broker, consumer):
        moved(broker, "")
        closing = asyncio.create_task(consumer.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert not broker.control.members("g")


@virtual
@protocols
async def test_a_slow_answer_is_waited_for(protocol: str) -> None:
    async with group_of_one(protocol) as (broker, consumer):
        broker.faults.on(LEAVES[protocol], delay(5.0, times=1))
        await consumer.close()
        assert not broker.control.members("g")


@virtual
@protocols
async def test_unsubscribing_leaves_a_coordinator_that_has_moved(protocol: str) -> None:
    async with group_of_one(protocol) as (broker, consumer):
        moved(broker, "")
        consumer.unsubscribe()
        await until(lambda: not broker.control.members("g"), limit=5)
        consumer.subscribe("t")
        await consumer.poll(timeout=10)
        await until(lambda: len(consumer.assignment) == 4, limit=30)


@virtual
async def test_who_joins_again_is_not_removed_by_its_own_leave() -> None:
    # A member of KIP-848 has the same id then.
    async with group_of_one("consumer") as (broker, consumer):
        moved(broker, "")
        broker.faults.on("FindCoordinator", error(E.COORDINATOR_NOT_AVAILABLE, times=3))
        consumer.unsubscribe()
        await asyncio.sleep(0.1)
        consumer.subscribe("t")
        await until(lambda: len(consumer.assignment) == 4, limit=60)
        generation = consumer.group_metadata.generation
        await asyncio.sleep(60)
        assert len(consumer.assignment) == 4
        assert consumer.group_metadata.generation == generation


@virtual
@protocols
async def test_who_does_not_poll_leaves_a_coordinator_that_has_moved(
    protocol: str,
) -> None:
    async with group_of_one(protocol, max_poll_interval_ms=20_000) as (broker, one):
        if protocol != "consumer":
            broker.faults.on("LeaveGroup", error(E.NOT_COORDINATOR, times=3))
        await until(lambda: one.statistics().group == "STALLED", limit=60)
        await until(lambda: not broker.control.members("g"), limit=10)


# ---- what ends the membership, and what does not -------------------------------------

BEATS = {
    "consumer": "ConsumerGroupHeartbeat",
    "cooperative": "Heartbeat",
    "eager": "Heartbeat",
}
DENIED = E.GROUP_AUTHORIZATION_FAILED


async def failure(consumer: Consumer, within: float) -> KafkaError:
    """The first error of polls, within so many seconds."""
    async with asyncio.timeout(within):
        while True:
            try:
                await consumer.poll(timeout=0.5)
            except KafkaError as error:
                return error


async def denials(consumer: Consumer, seconds: float) -> int:
    """How many polls raise that a right is missing, within so many seconds."""
    until, count = now() + seconds, 0
    while now() < until:
        try:
            await consumer.poll(timeout=0.5)
        except AuthorizationError:
            count += 1
    return count


@virtual
@protocols
async def test_a_right_that_is_missing_for_seconds_costs_nothing(protocol: str) -> None:
    async with group_of_one(protocol) as (broker, consumer):
        identity = consumer.group_metadata
        broker.faults.on(BEATS[protocol], error(DENIED))
        assert await denials(consumer, 20.0) > 3  # each refusal is told
        broker.faults.clear()
        await denials(consumer, 2.0)
        assert await denials(consumer, 60.0) == 0
        assert consumer.group_metadata == identity
        await consumer.close()
        assert not broker.control.members("g")


@virtual
@protocols
async def test_who_lacks_it_for_a_session_joins_again_when_it_is_back(
    protocol: str,
) -> None:
    async with group_of_one(protocol) as (broker, consumer):
        for api in (BEATS[protocol], "JoinGroup", "FindCoordinator"):
            broker.faults.on(api, error(DENIED))
        begun = now()
        while consumer.assignment:
            await denials(consumer, 1.0)
        # Others may own the partitions then: a session is 45 s.
        assert 40 < now() - begun < 50
        assert not broker.control.members("g")
        assert await denials(consumer, 30.0) > 10
        broker.faults.clear()
        await until(lambda: len(consumer.assignment) == 4, limit=10)
        await denials(consumer, 2.0)
        assert await denials(consumer, 60.0) == 0


@virtual
@pytest.mark.parametrize("api", ["JoinGroup", "SyncGroup"])
@pytest.mark.parametrize("protocol", ["cooperative", "eager"])
@pytest.mark.parametrize("code", [DENIED, E.UNKNOWN_SERVER_ERROR])
async def test_a_refused_rebalance_is_told_and_made_again(
    protocol: str, api: str, code: E
) -> None:
    async with group_of_one(protocol) as (broker, consumer):
        broker.faults.on(api, error(code, times=3))
        broker.control.force_rebalance("g")
        assert "'g' was refused" in str(await failure(consumer, 30))
        generation = consumer.group_metadata.generation
        told = 0
        while consumer.group_metadata.generation == generation or told < 2:
            try:
                await consumer.poll(timeout=0.5)
            except KafkaError:
                told += 1
            assert now() < 60
        await until(lambda: len(consumer.assignment) == 4, limit=30)


FINAL = {
    "consumer": E.UNSUPPORTED_ASSIGNOR,
    "cooperative": E.INVALID_GROUP_ID,
    "eager": E.INVALID_GROUP_ID,
}


@virtual
@protocols
async def test_who_has_failed_leaves_at_once(protocol: str) -> None:
    async with group_of_one(protocol) as (broker, consumer):
        rule = broker.faults.on(BEATS[protocol], error(FINAL[protocol]))
        last = await failure(consumer, 30)
        assert isinstance(last, BrokerError)
        # One such answer to a member that was accepted may be an accident.
        assert consumer.statistics().state == "running"
        while consumer.statistics().state != "failed":
            last = await failure(consumer, 30)
        if protocol != "consumer":  # there the refused heartbeat is also what leaves
            # The failure itself sends the request, and does not wait for the answer.
            await until(lambda: not broker.control.members("g"), limit=1)
        broker.faults.remove(rule)
        assert await failure(consumer, 1) is last
        begun = now()
        await consumer.close()
        assert now() - begun < 1
        assert not broker.control.members("g")


@virtual
@protocols
async def test_who_has_failed_leaves_in_close_if_that_did_not_arrive(
    protocol: str,
) -> None:
    async with group_of_one(protocol) as (broker, consumer):
        refusal = broker.faults.on(BEATS[protocol], error(FINAL[protocol]))
        broker.faults.on("LeaveGroup", error(E.NOT_COORDINATOR, times=2))
        while consumer.statistics().state != "failed":
            assert isinstance(await failure(consumer, 30), BrokerError)
        broker.faults.remove(refusal)
        if protocol == "consumer":  # its leave is a heartbeat, too
            broker.faults.on(BEATS[protocol], error(E.NOT_COORDINATOR, times=1))
        await asyncio.sleep(5)
        assert broker.control.members("g")
        await consumer.close()
        assert not broker.control.members("g")


@virtual
@protocols
async def test_a_crash_leaves(protocol: str) -> None:
    async with group_of_one(protocol) as (broker, consumer):
        broker.faults.on("LeaveGroup", error(E.NOT_COORDINATOR, times=2))
        consumer._core._supervisor.start_soon(crash, "crash")
        with pytest.raises(InternalError):
            await consumer.poll(timeout=30)
        await consumer.close()
        assert not broker.control.members("g")


async def crash() -> None:
    raise RuntimeError("a bug")
