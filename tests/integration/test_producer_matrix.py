"""What a producer does while one part of a cluster of three nodes fails.

Each cell of the matrix fails a part, and says what goes on, and what is told by when.
Partition n of topic ``t`` is led by another node for each n. The part that fails is
partition 0, or what it needs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from kafkaio import Admin, AuthorizationError, ErrorCode, Producer
from kafkaio._machines.partitioner import key_partition
from kafkaio.testing import Broker, error, throttle
from tests.support import patience

TX = "matrix"
#: Much longer than a healthy cluster takes, also on a busy machine.
SOON = patience.HANGS
#: Seconds after which a record counts as waiting: it has no chance to be written.
WAITS = 0.4


@dataclass(frozen=True)
class Failure:
    """One part that fails.

    Attributes:
        name: what it is.
        begin: lets it fail.
        replicas: replicas of each partition.
        error: what a record for partition 0 fails with; None if it waits, or is
            written.
        is_written: whether records for partition 0 are written all the same.
        options: of the producer.
    """

    name: str
    begin: Callable[[Broker], Awaitable[object]]
    replicas: int = 1
    error: type[Exception] | None = None
    is_written: bool = False
    options: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        return self.name


def leader_of(broker: Broker) -> int:
    return broker.control.leader(("t", 0))


async def delete_topic(broker: Broker) -> None:
    async with Admin(broker.bootstrap_servers, log=False) as admin:
        await admin.delete_topics(["gone"])


async def kill_leader(broker: Broker) -> None:
    await broker.control.kill(leader_of(broker))


async def pause_leader(broker: Broker) -> None:
    broker.control.pause(leader_of(broker))


def refusing(code: ErrorCode) -> Callable[[Broker], Awaitable[None]]:
    async def begin(broker: Broker) -> None:
        broker.faults.on("Produce", error(code), partition=("t", 0))

    return begin


async def kill_coordinator(broker: Broker) -> None:
    await broker.control.kill(broker.control.transaction_coordinator(TX))


async def move_coordinator(broker: Broker) -> None:
    control = broker.control
    now = control.transaction_coordinator(TX)
    control.move_transaction_coordinator(TX, next(n for n in range(3) if n != now))


async def slow_down(broker: Broker) -> None:
    broker.faults.on("Produce", throttle(0.2), node=leader_of(broker))


LEADER_GONE = Failure("leader-gone", kill_leader)
HANGS = (("partitioner_availability_timeout_ms", 200),)
FAILURES = [
    LEADER_GONE,
    Failure("leader-moves", kill_leader, replicas=3, is_written=True),
    Failure("leader-hangs", pause_leader, options=HANGS),
    Failure("writes-refused", refusing(ErrorCode.NOT_ENOUGH_REPLICAS)),
    Failure(
        "rights-refused",
        refusing(ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        error=AuthorizationError,
    ),
    Failure("coordinator-gone", kill_coordinator, replicas=3, is_written=True),
    Failure("coordinator-moved", move_coordinator, replicas=3, is_written=True),
    Failure("throttled", slow_down, is_written=True),
]
EACH = pytest.mark.parametrize("failure", FAILURES, ids=str)


def key_of(partition: int) -> bytes:
    return next(
        key
        for key in (b"%d" % n for n in range(100))
        if key_partition(key, 3) == partition
    )


def cluster(replicas: int) -> Broker:
    topics = {"t": 3, "gone": 3}
    return Broker(nodes=3, topics=topics, replication_factor=replicas)


def producer_on(broker: Broker, failure: Failure, **options: Any) -> Producer:
    return Producer(
        broker.bootstrap_servers,
        log=False,
        allow_auto_create_topics=False,
        retry_backoff_max_ms=100,
        **dict(failure.options),
        **options,
    )


async def soon(work: Awaitable[Any]) -> Any:
    async with asyncio.timeout(SOON):
        return await work


async def meets(failure: Failure, work: Awaitable[Any]) -> None:
    """Check what becomes of a record for the partition that fails."""
    if failure.error is not None:
        with pytest.raises(failure.error):
            await soon(work)
    elif failure.is_written:
        await soon(work)
    else:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(WAITS):
                await work


@EACH
async def test_start(failure: Failure) -> None:
    async with cluster(failure.replicas) as broker:
        await failure.begin(broker)
        async with producer_on(broker, failure) as producer:
            await soon(producer.send("t", b"v", partition=1))
            await producer.close(timeout=0)


@EACH
async def test_send_with_a_key(failure: Failure) -> None:
    async with (
        cluster(failure.replicas) as broker,
        producer_on(broker, failure) as producer,
    ):
        for n in range(3):
            await soon(producer.send("t", b"v", partition=n))
        await failure.begin(broker)
        bad = asyncio.ensure_future(
            meets(failure, producer.send("t", b"v", key=key_of(0)))
        )
        for n in (1, 2):
            await soon(producer.send("t", b"v", key=key_of(n)))
        await bad
        for n in (1, 2):
            await soon(producer.send("t", b"v", key=key_of(n)))
        await producer.close(timeout=0)


@EACH
async def test_send_without_a_key(failure: Failure) -> None:
    async with (
        cluster(failure.replicas) as broker,
        producer_on(broker, failure) as producer,
    ):
        for n in range(3):
            await soon(producer.send("t", b"v", partition=n))
        await failure.begin(broker)
        written = 0
        async with asyncio.timeout(SOON):
            while written < 5:
                try:
                    async with asyncio.timeout(WAITS):
                        await producer.send("t", b"v")
                except (TimeoutError, AuthorizationError):
                    continue
                written += 1
                if failure.error is not None:
                    break
        await producer.close(timeout=0)


@EACH
async def test_transaction(failure: Failure) -> None:
    async with cluster(failure.replicas) as broker:
        producer = producer_on(broker, failure, transactional_id=TX)
        async with producer:
            at = broker.control.transaction_coordinator(TX)
            if failure.replicas == 1 and at == leader_of(broker):
                await move_coordinator(broker)

            async def one(partition: int) -> None:
                async with producer.transaction() as tx:
                    await tx.send("t", b"v", partition=partition)

            await soon(one(1))
            while broker.control.open_transactions():  # noqa: ASYNC110 - its markers
                await asyncio.sleep(0.01)
            await failure.begin(broker)
            for _ in range(2):
                for n in (1, 2):
                    await soon(one(n))
            await meets(failure, one(0))
            if failure.error is not None or failure.is_written:
                await soon(one(1))
            await producer.close(timeout=0)


@EACH
async def test_close(failure: Failure) -> None:
    async with (
        cluster(failure.replicas) as broker,
        producer_on(broker, failure) as producer,
    ):
        for n in range(3):
            await soon(producer.send("t", b"v", partition=n))
        await failure.begin(broker)
        deliveries = [await producer.enqueue("t", b"v", partition=n) for n in range(3)]
        await producer.close(timeout=2 if failure.is_written else WAITS)
        assert all(delivery.is_done for delivery in deliveries)
        for delivery in deliveries[1:]:
            assert delivery.exception() is None
        assert (deliveries[0].exception() is None) is failure.is_written


async def test_a_topic_that_is_gone_harms_no_other() -> None:
    failure = Failure("topic-gone", delete_topic)
    async with cluster(1) as broker, producer_on(broker, failure) as producer:
        for topic in ("t", "gone"):
            for n in range(3):
                await soon(producer.send(topic, b"v", partition=n))
        await failure.begin(broker)
        await meets(failure, producer.send("gone", b"v"))
        await meets(failure, producer.send("gone", b"v", partition=1))
        for n in range(3):
            await soon(producer.send("t", b"v", partition=n))
            await soon(producer.send("t", b"v"))
        await producer.close(timeout=0)
