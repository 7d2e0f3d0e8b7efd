"""Share consumers on real brokers: who gets which record, and what becomes of it."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeAlias
from uuid import uuid4

import pytest

import kafkaio
from kafkaio.admin import Admin, ConfigChange, ConfigResource, ConfigResourceType
from kafkaio.errors import DeserializationError, UsageError
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from kafkaio.types import TopicPartition

pytestmark = [pytest.mark.timeout(60), pytest.mark.kafka_versions("newest")]

#: Makes a share consumer of the test's group.
Make: TypeAlias = Callable[..., kafkaio.ShareConsumer]
#: Seconds within which another member gets what was released.
SOON = 2.0


@pytest.fixture
async def admin(real_kafka: Kafka) -> AsyncIterator[Admin]:
    async with Admin(real_kafka.bootstrap_servers) as admin:
        yield admin


@pytest.fixture
async def group(admin: Admin) -> str:
    name = f"queue-{uuid4().hex[:12]}"
    await configure(admin, name, "share.auto.offset.reset", "earliest")
    return name


async def configure(admin: Admin, group: str, name: str, value: str) -> None:
    resource = ConfigResource(ConfigResourceType.GROUP, group)
    await admin.incremental_alter_configs({resource: [ConfigChange(name, value)]})


@pytest.fixture
def make(real_kafka: Kafka, group: str) -> Make:
    def make(topics: Any, **options: Any) -> kafkaio.ShareConsumer:
        servers = real_kafka.bootstrap_servers
        return kafkaio.ShareConsumer(
            servers, topics=topics, group_id=group, fetch_max_wait_ms=100, **options
        )

    return make


async def send(kafka: Kafka, topic: str, count: int, first: int = 0) -> list[bytes]:
    """Write so many records to partition 0, in one batch; return their values."""
    values = [b"%d" % number for number in range(first, first + count)]
    async with kafkaio.Producer(kafka.bootstrap_servers, linger_ms=200) as producer:
        records = [kafkaio.NewRecord(value, partition=0) for value in values]
        await producer.send_many(topic, records)
    return values


async def drain(
    share: kafkaio.ShareConsumer, quiet: float = SOON
) -> list[kafkaio.ShareRecord]:
    """Accept what there is, until nothing came for some time."""
    got: list[kafkaio.ShareRecord] = []
    while records := await share.poll(timeout=quiet):
        for record in records:
            record.ack()
        got += records
    await share.flush()
    return got


async def test_several_tasks_acknowledge(
    real_kafka: Kafka, topic: TopicFactory, make: Make
) -> None:
    name = topic()
    values = await send(real_kafka, name, 200)
    queue: asyncio.Queue[kafkaio.ShareRecord | None] = asyncio.Queue()
    done: list[bytes | None] = []

    async def work(number: int) -> None:
        while (record := await queue.get()) is not None:
            await asyncio.sleep(0)
            record.ack()
            if number == 0:
                await record.acked
            done.append(record.value)

    async with make(name) as share, asyncio.TaskGroup() as tasks:
        for number in range(4):
            tasks.create_task(work(number))
        taken = 0
        async for record in share:
            assert (record.delivery_count, record.is_lost) == (1, False)
            taken += 1
            if taken == len(values):
                break  # this one is released, for it is in nobody's hands
            queue.put_nowait(record)
        for _ in range(4):
            queue.put_nowait(None)
        last = await anext(iterator := aiter(share))
        assert (last.offset, last.delivery_count) == (record.offset, 2)
        last.ack()
        await last.acked
        await iterator.aclose()
    assert Counter([*done, last.value]) == Counter(values)
    async with make(name) as other:
        assert await drain(other, 1.0) == []


async def leave_by_break(share: kafkaio.ShareConsumer) -> None:
    async for record in share:
        if record.offset == 5:
            break
        record.ack()


async def leave_by_exception(share: kafkaio.ShareConsumer) -> None:
    async def work() -> None:
        async for record in share:
            if record.offset == 5:
                raise ZeroDivisionError
            record.ack()

    with pytest.raises(ZeroDivisionError):
        await work()


async def leave_by_cancellation(share: kafkaio.ShareConsumer) -> None:
    reached = asyncio.Event()

    async def work() -> None:
        async for record in share:
            if record.offset == 5:
                reached.set()
                await asyncio.sleep(60)
            record.ack()

    task = asyncio.create_task(work())
    await reached.wait()
    task.cancel()
    await asyncio.wait([task])


@pytest.mark.parametrize(
    "leave", [leave_by_break, leave_by_exception, leave_by_cancellation]
)
async def test_a_loop_that_is_left(
    real_kafka: Kafka,
    topic: TopicFactory,
    make: Make,
    leave: Callable[[kafkaio.ShareConsumer], Awaitable[None]],
) -> None:
    name = topic()
    await send(real_kafka, name, 20)
    async with make(name) as share, make(name) as other:
        await leave(share)
        await share.flush()
        # At once, and not when their locks end.
        found = await drain(other)
        assert sorted(record.offset for record in found) == [*range(5, 20)]
        assert {record.delivery_count for record in found} == {2}
        numbers = share.statistics()
        assert (numbers.accepted, numbers.released) == (5, 15)
        assert (numbers.in_flight, numbers.buffered) == (0, 0)


async def test_implicit_acknowledgement(
    real_kafka: Kafka, topic: TopicFactory, make: Make
) -> None:
    name = topic()
    await send(real_kafka, name, 20)
    async with make(name, acknowledgement="implicit") as share, make(name) as other:
        async for record in share:
            if record.offset == 2:
                record.reject()
            if record.offset == 5:
                break
        assert await share.commit() == {TopicPartition(name, 0): None}
        found = await drain(other)
        assert sorted(record.offset for record in found) == [*range(5, 20)]
        numbers = share.statistics()
        assert (numbers.accepted, numbers.rejected) == (4, 1)

        await send(real_kafka, name, 3)
        taken = await share.poll(timeout=10)
        while len(taken) < 3:
            taken += await share.poll(timeout=10)
        await share.commit()
        assert share.statistics().accepted == 7


async def test_what_was_fetched_ahead_of_the_last_poll_is_given_back(
    real_kafka: Kafka, topic: TopicFactory, make: Make
) -> None:
    name = topic()
    await send(real_kafka, name, 20)
    async with make(name) as share, make(name) as other:
        taken = await share.poll(timeout=10, max_records=5)
        assert [record.offset for record in taken] == [*range(5)]
        found = await drain(other)
        assert sorted(record.offset for record in found) == [*range(5, 20)]
        for record in taken:
            record.ack()
        await share.flush()


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
async def test_transactions_leave_no_locks(
    real_kafka: Kafka,
    topic: TopicFactory,
    make: Make,
    admin: Admin,
    group: str,
    isolation: str,
) -> None:
    # Markers are acquired at both levels, and aborted records at one. What gives no
    # record is acknowledged as a gap: else it would be locked and come again.
    name = topic()
    await configure(admin, group, "share.isolation.level", isolation)
    async with kafkaio.Producer(
        real_kafka.bootstrap_servers, transactional_id=f"t-{name}"
    ) as producer:
        for number in range(4):
            with suppress(ZeroDivisionError):
                async with producer.transaction() as tx:
                    for _ in range(3):
                        await tx.send(name, b"%d" % number)
                    _ = 1 // (number - 1)
    aborted = 0 if isolation == "read_committed" else 3
    async with make(name) as share:
        found = await drain(share)
        expected = Counter({b"0": 3, b"1": aborted, b"2": 3, b"3": 3})
        assert Counter(record.value for record in found) == +expected
        assert share.statistics().in_flight == 0
    # What was not acknowledged would come again.
    async with make(name) as other:
        assert await drain(other) == []
        numbers = other.statistics()
        assert (numbers.acquired, numbers.redelivered) == (0, 0)


async def test_one_batch_among_two_members(
    real_kafka: Kafka, topic: TopicFactory, make: Make
) -> None:
    name, most = topic(), 0
    await send(real_kafka, name, 1_000)
    options = {"acquire_mode": "record_limit", "max_in_flight": 10}
    seen = Counter[int]()

    async def consume(share: kafkaio.ShareConsumer) -> None:
        nonlocal most
        async for record in share:
            most = max(most, share.statistics().in_flight)
            seen[record.offset] += 1
            if seen.total() % 7 == 0:
                await asyncio.sleep(0.001)
            record.ack()
            if len(seen) == 1_000:
                break

    async with make(name, **options) as one, make(name, **options) as two:
        tasks = [asyncio.create_task(consume(share)) for share in (one, two)]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        shares = [share.statistics().acquired for share in (one, two)]
    assert set(seen.values()) == {1}
    assert most <= 10
    assert min(shares) > 50


async def test_batches(real_kafka: Kafka, topic: TopicFactory, make: Make) -> None:
    name = topic()
    values = await send(real_kafka, name, 100)
    async with make(name) as share:
        found: list[bytes | None] = []
        async for batch in share.batches(max_records=30, max_wait=0.1):
            found += batch.values()
            if batch.first_offset == 0:
                table = pytest.importorskip("pyarrow") and batch.to_arrow()
                assert table["value"].to_pylist() == values[:30]
                batch.reject(batch[:2])
                batch.release(batch.records[28:])
            batch.ack()
            if len(found) == 102:
                break
        await share.flush()
        numbers = share.statistics()
        counts = (numbers.accepted, numbers.rejected, numbers.released)
        assert counts == (98, 2, 2)
    assert Counter(found) == Counter([*values, *values[28:30]])


@pytest.mark.parametrize(("decision", "deliveries"), [("release", 5), ("reject", 1)])
async def test_a_value_that_cannot_be_deserialized(
    real_kafka: Kafka, topic: TopicFactory, make: Make, decision: str, deliveries: int
) -> None:
    name = topic()
    await send(real_kafka, name, 3)

    def parse(data: bytes) -> int:
        return int(data) if data != b"1" else int("no")

    errors, found = 0, set[object]()
    async with make(name, value_deserializer=parse, undeserializable=decision) as share:
        while errors < deliveries or len(found) < 2:
            try:
                async for record in share:
                    record.ack()
                    found.add(record.value)
            except DeserializationError as error:
                errors += (error.topic_partition, error.offset) == ((name, 0), 1)
        # It is archived, or rejected: never a loop without an end.
        assert await share.poll(timeout=1.5) == []
    assert (errors, found) == (deliveries, {0, 2})


async def test_a_shared_client_patterns_and_properties(
    real_kafka: Kafka, topic: TopicFactory, group: str
) -> None:
    name = topic()
    servers = real_kafka.bootstrap_servers
    await send(real_kafka, name, 4)
    async with kafkaio.Client(servers) as client:
        share = kafkaio.ShareConsumer(
            client, topics=re.compile(re.escape(name[:-1]) + "."), group_id=group
        )
        async with share:
            assert share.assignment == {TopicPartition(name, 0)}
            assert len(await drain(share)) == 4
        assert client.statistics().state == "running"
    await send(real_kafka, name, 4)
    by_names = kafkaio.ShareConsumer[bytes, str].from_properties(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "share.acknowledgement.mode": "implicit",
            "share.acquire.mode": "record_limit",
            "max.poll.records": "2",
        },
        topics=name,
        value_deserializer=bytes.decode,
    )
    async with by_names as share_of_text:
        assert [r.value for r in await share_of_text.poll(timeout=10)] == ["0", "1"]


async def test_what_is_refused(
    real_kafka: Kafka, topic: TopicFactory, make: Make
) -> None:
    name = topic()
    await send(real_kafka, name, 3)
    async with make(name) as share, make(name) as other:
        other.unsubscribe()
        with pytest.raises(UsageError, match="not subscribed"):
            await other.poll(timeout=1)
        record, second, third = await share.poll(timeout=10)
        record.ack()
        with pytest.raises(UsageError, match=rf"{name}-0 at offset 0 .* it was acce"):
            record.release()
        second.release()
    with pytest.raises(UsageError, match=rf"{name}-0 at offset 2 .* it was released"):
        third.ack()
    with pytest.raises(kafkaio.ClosedError):
        await share.poll(timeout=1)
