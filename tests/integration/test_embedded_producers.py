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
from kafkaio.errors import BufferFull, KafkaTimeout
from kafkaio.testing import Broker, error
from kafkaio.types import RecordMetadata, TopicPartition
from tests.support import patience

#: Much longer than a healthy cluster takes, also on a busy machine.
SOON = patience.HANGS


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


# ---- the buffer ----------------------------------------------------------------------


SMALL: dict[str, Any] = {"buffer_memory": 400_000, "batch_size": 50_000}


async def flood(producer: Producer, topic: str, partition: int) -> list[Any]:
    """Begin more sends to a partition than the buffer can hold."""
    tasks = [
        asyncio.create_task(producer.send(topic, bytes(1_000), partition=partition))
        for _ in range(600)
    ]
    await until(lambda: producer.statistics().waiting_for_room)
    return tasks


async def drop(tasks: list[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("how", ["refused", "gone"])
async def test_a_partition_that_cannot_be_written_leaves_room_for_others(
    broker: Broker, how: str
) -> None:
    async with Producer(
        broker.bootstrap_servers, max_block_ms=300, log=False, **SMALL
    ) as producer:
        for partition in range(6):
            await producer.send("t", b"x", partition=partition)
        await fail(broker, how, "t", 0)
        first = await producer.enqueue("t", b"x", partition=0)
        at = broker.control.leader(("t", 0))
        well = next(n for n in range(6) if broker.control.leader(("t", n)) != at)
        place = TopicPartition("t", 0)
        share = producer._accumulator.share
        await until(lambda: share.is_stalled(place, asyncio.get_running_loop().time()))
        waiting = await flood(producer, "t", 0)
        for _ in range(5):
            async with asyncio.timeout(SOON):
                await producer.send("t", bytes(20_000), partition=well)
                await producer.send("t", bytes(20_000))
        with pytest.raises(BufferFull, match=r"t-0 makes no progress.*percent=50"):
            producer.enqueue_nowait("t", bytes(1_000), partition=0)
        producer.enqueue_nowait("t", bytes(1_000), partition=well)
        assert producer.statistics().buffer.used_bytes < 300_000
        with pytest.raises(KafkaTimeout, match="max_block_ms=300: t-0 makes no progr"):
            await producer.enqueue("t", bytes(1_000), partition=0)
        assert not first.is_done
        await producer.close(timeout=0)
        await drop(waiting)


async def test_a_leader_that_hangs_leaves_room_for_others_at_once(
    broker: Broker,
) -> None:
    async with Producer(broker.bootstrap_servers, log=False, **SMALL) as producer:
        for partition in range(6):
            await producer.send("t", b"x", partition=partition)
        at = broker.control.leader(("t", 0))
        others = [n for n in range(6) if broker.control.leader(("t", n)) != at]
        broker.control.pause(at)
        waiting = await flood(producer, "t", 0)
        for number in range(20):  # nobody knows yet that it hangs
            async with asyncio.timeout(SOON):
                await producer.send(
                    "t", bytes(20_000), partition=others[number % len(others)]
                )
        # More than a partition may have that is known to hang. On a machine where the
        # loop stood still for a second meanwhile, that is known.
        now = asyncio.get_running_loop().time()
        assert (
            producer.statistics().buffer.used_bytes > 300_000
            or producer._accumulator.share.is_stalled(TopicPartition("t", 0), now)
        )
        await producer.close(timeout=0)
        await drop(waiting)


async def test_what_was_held_back_is_written_in_order_once_the_partition_is_well(
    broker: Broker,
) -> None:
    async with Producer(
        broker.bootstrap_servers, retry_backoff_ms=10, retry_backoff_max_ms=20, **SMALL
    ) as producer:
        await producer.send("one", b"x")
        for partition in range(6):
            await producer.send("t", b"x", partition=partition)
        refused = broker.faults.on(
            "Produce", error(ErrorCode.NOT_ENOUGH_REPLICAS), partition=("one", 0)
        )
        await producer.enqueue("one", b"x")
        await until(lambda: refused.count > 1)
        waiting = await flood(producer, "one", 0)
        broker.faults.remove(refused)
        async with asyncio.timeout(SOON):
            places = await asyncio.gather(*waiting)
        assert [place.offset for place in places] == list(range(2, 602))
        assert producer.statistics().waiting_for_room == 0
        delivery = producer.enqueue_nowait("one", b"x")
        assert (await delivery).offset == 602


async def test_a_topic_that_is_missing_leaves_room_for_others(broker: Broker) -> None:
    async with Producer(
        broker.bootstrap_servers, max_block_ms=patience.NEVER_MS, log=False, **SMALL
    ) as producer:
        await producer.send("one", b"x")
        waiting = await flood(producer, "t", 99)
        async with asyncio.timeout(SOON):
            await producer.send("one", bytes(100_000))
        with pytest.raises(BufferFull, match="t-99 makes no progress"):
            producer.enqueue_nowait("t", b"x", partition=99)
        await producer.close(timeout=0)
        await drop(waiting)


async def test_a_call_that_is_held_back_can_be_cancelled(broker: Broker) -> None:
    async with Producer(broker.bootstrap_servers, log=False, **SMALL) as producer:
        await producer.send("one", b"x")
        waiting = await flood(producer, "t", 99)
        held = producer.statistics().waiting_for_room
        one = asyncio.create_task(producer.enqueue("t", bytes(1_000), partition=99))
        await until(lambda: producer.statistics().waiting_for_room == held + 1)
        one.cancel()
        with pytest.raises(asyncio.CancelledError):
            await one
        assert producer.statistics().waiting_for_room == held
        await drop(waiting)
        assert producer.statistics().waiting_for_room == 0
        await producer.close(timeout=0)


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
