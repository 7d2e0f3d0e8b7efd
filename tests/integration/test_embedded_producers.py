"""One partition or broker fails, and a producer goes on with all others.

Each case fails one part of an embedded cluster of three nodes, and says what is written
nevertheless.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from kafkaio import ErrorCode, Producer
from kafkaio.testing import Broker, error
from kafkaio.types import RecordMetadata

#: Much longer than a healthy cluster takes, also on a busy machine.
SOON = 20.0


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(nodes=3, topics={"t": 6, "one": 1}, replication_factor=1) as it:
        yield it


async def fail(broker: Broker, how: str, topic: str, partition: int) -> None:
    """Let writes to a partition fail."""
    node = broker.control.leader((topic, partition))
    if how == "refused":
        code = error(ErrorCode.NOT_ENOUGH_REPLICAS)
        broker.faults.on("Produce", code, partition=(topic, partition))
    elif how == "hangs":
        broker.control.pause(node)
    else:
        await broker.control.kill(node)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(SOON):
        while not condition():  # noqa: ASYNC110 - whatever makes it true
            await asyncio.sleep(0.005)


async def in_time(work: Awaitable[RecordMetadata], limit: float = 2.0) -> int | None:
    """Return the partition of a record, None if it was not written in time."""
    try:
        async with asyncio.timeout(limit):
            return (await work).partition
    except TimeoutError:
        return None


HANGS: dict[str, Any] = {"partitioner_availability_timeout_ms": 200}


@pytest.mark.parametrize(
    ("how", "options"), [("refused", {}), ("gone", {}), ("hangs", HANGS)]
)
async def test_keyless_records_leave_a_partition_that_cannot_be_written(
    broker: Broker, how: str, options: dict[str, Any]
) -> None:
    async with Producer(broker.bootstrap_servers, **options) as producer:
        sticky = (await producer.send("t", b"first")).partition
        await fail(broker, how, "t", sticky)
        stuck = await producer.enqueue("t", b"stays")
        assert stuck.receipt().partition == sticky
        # As soon as the failure is noticed, records of all calls go elsewhere.
        written: list[int | None] = []
        async with asyncio.timeout(SOON):
            while len(written) < 4:
                found = await in_time(producer.send("t", b"x"), 0.3)
                written += [] if found is None else [found]
            many = await producer.send_many("t", [b"x"] * 20)
            delivery = producer.enqueue_nowait("t", b"x")
            written.append((await delivery).partition)
        assert sticky not in written
        assert sticky not in {place.partition for place in many}
        assert not stuck.is_done
        await producer.close(timeout=0)


@pytest.mark.parametrize("transactional_id", [None, "tx"])
async def test_a_partition_that_is_well_again_gets_what_stayed_and_new_records(
    broker: Broker, transactional_id: str | None
) -> None:
    async with (
        Producer(
            broker.bootstrap_servers,
            transactional_id=transactional_id,
            retry_backoff_ms=10,
            retry_backoff_max_ms=20,
        ) as producer,
        _sending(producer) as sending,
    ):
        sticky = (await sending.send("t", b"first")).partition
        refused = broker.faults.on(
            "Produce",
            error(ErrorCode.NOT_ENOUGH_REPLICAS),
            partition=("t", sticky),
        )
        stuck = await sending.enqueue("t", b"stays")
        assert stuck.receipt().partition == sticky
        await until(lambda: refused.count > 1)
        async with asyncio.timeout(SOON):
            assert (await sending.send("t", b"x" * 66_000)).partition != sticky
            broker.faults.remove(refused)
            assert (await stuck).partition == sticky
            while (await sending.send("t", b"x" * 66_000)).partition != sticky:
                pass


async def test_with_no_other_partition_records_stay_in_order(broker: Broker) -> None:
    async with Producer(
        broker.bootstrap_servers, retry_backoff_ms=10, retry_backoff_max_ms=20
    ) as producer:
        await producer.send("one", b"first")
        refused = broker.faults.on(
            "Produce", error(ErrorCode.NOT_ENOUGH_REPLICAS), partition=("one", 0)
        )
        deliveries = [await producer.enqueue("one", b"%d" % n) for n in range(20)]
        await until(lambda: refused.count > 1)
        deliveries += [await producer.enqueue("one", b"%d" % n) for n in range(20)]
        broker.faults.remove(refused)
        async with asyncio.timeout(SOON):
            places = [await delivery for delivery in deliveries]
    assert [place.offset for place in places] == list(range(1, 41))


async def test_with_all_partitions_stalled_the_first_one_that_is_well_is_used(
    broker: Broker,
) -> None:
    async with Producer(
        broker.bootstrap_servers, retry_backoff_ms=10, retry_backoff_max_ms=20
    ) as producer:
        await producer.send("t", b"first")
        rules = [
            broker.faults.on(
                "Produce", error(ErrorCode.NOT_ENOUGH_REPLICAS), partition=("t", n)
            )
            for n in range(6)
        ]
        deliveries = []
        while not all(rule.count for rule in rules):
            deliveries.append(await producer.enqueue("t", b"x" * 1000))
            await asyncio.sleep(0.001)
        broker.faults.remove(rules[4])
        async with asyncio.timeout(SOON):
            while (await in_time(producer.send("t", b"x"), 0.5)) != 4:
                pass
            broker.faults.clear()
            await asyncio.gather(*deliveries)


class _sending:
    """The transaction of a transactional producer; any other producer itself."""

    def __init__(self, producer: Producer) -> None:
        self._is_plain = producer.config.transactional_id is None
        self._producer = producer
        self._tx = None if self._is_plain else producer.transaction()

    async def __aenter__(self) -> Any:
        return self._producer if self._tx is None else await self._tx.__aenter__()

    async def __aexit__(self, *error: Any) -> None:
        if self._tx is not None:
            await self._tx.__aexit__(*error)
