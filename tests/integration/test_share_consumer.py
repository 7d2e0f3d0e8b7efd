"""Share consumers on real brokers: who gets which record, and what becomes of it."""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeAlias
from uuid import uuid4

import pytest

import kafkaio
from kafkaio.admin import Admin, ConfigChange, ConfigResource, ConfigResourceType
from kafkaio.errors import BrokerError, DeserializationError, UsageError
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from kafkaio.types import TopicPartition

pytestmark = [pytest.mark.timeout(60), pytest.mark.kafka_versions("newest")]

#: In this loop, and in a thread of its own.
THREADED = pytest.mark.parametrize("io_thread", [False, True])
#: Makes a share consumer of the test's group.
Make: TypeAlias = Callable[..., kafkaio.ShareConsumer]
#: Seconds in which nothing more comes.
QUIET = 0.4


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


async def drain(share: kafkaio.ShareConsumer, count: int) -> list[kafkaio.ShareRecord]:
    """Accept so many records; no more may come."""
    got: list[kafkaio.ShareRecord] = []
    while records := await share.poll(timeout=10 if len(got) < count else QUIET):
        for record in records:
            record.ack()
        got += records
    await share.flush()
    assert len(got) == count
    return got


@THREADED
async def test_several_tasks_acknowledge(
    real_kafka: Kafka, topic: TopicFactory, make: Make, io_thread: bool
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

    share = make(name, io_thread=io_thread)
    async with share, asyncio.TaskGroup() as tasks:
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
        await drain(other, 0)


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


@THREADED
@pytest.mark.parametrize(
    "leave", [leave_by_break, leave_by_exception, leave_by_cancellation]
)
async def test_a_loop_that_is_left(
    real_kafka: Kafka,
    topic: TopicFactory,
    make: Make,
    leave: Callable[[kafkaio.ShareConsumer], Awaitable[None]],
    io_thread: bool,
) -> None:
    name = topic()
    await send(real_kafka, name, 20)
    async with make(name, io_thread=io_thread) as share, make(name) as other:
        await leave(share)
        await share.flush()
        # At once, and not when their locks end.
        found = await drain(other, 15)
        assert sorted(record.offset for record in found) == [*range(5, 20)]
        assert {record.delivery_count for record in found} == {2}
        numbers = share.statistics()
        assert (numbers.accepted, numbers.released) == (5, 15)
        assert (numbers.in_flight, numbers.buffered) == (0, 0)


@THREADED
async def test_implicit_acknowledgement(
    real_kafka: Kafka, topic: TopicFactory, make: Make, io_thread: bool
) -> None:
    name = topic()
    await send(real_kafka, name, 20)
    share = make(name, acknowledgement="implicit", io_thread=io_thread)
    async with share, make(name) as other:
        async for record in share:
            if record.offset == 2:
                record.reject()
            if record.offset == 5:
                break
        assert await share.commit() == {TopicPartition(name, 0): None}
        found = await drain(other, 15)
        assert sorted(record.offset for record in found) == [*range(5, 20)]
        numbers = share.statistics()
        assert (numbers.accepted, numbers.rejected) == (4, 1)

        await send(real_kafka, name, 3)
        taken = await share.poll(timeout=10)
        while len(taken) < 3:
            taken += await share.poll(timeout=10)
        await share.commit()
        assert share.statistics().accepted == 7


@THREADED
async def test_what_was_fetched_ahead_of_the_last_poll_is_given_back(
    real_kafka: Kafka, topic: TopicFactory, make: Make, io_thread: bool
) -> None:
    name = topic()
    await send(real_kafka, name, 20)
    async with make(name, io_thread=io_thread) as share, make(name) as other:
        taken = await share.poll(timeout=10, max_records=5)
        assert [record.offset for record in taken] == [*range(5)]
        found = await drain(other, 15)
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
        found = await drain(share, 9 + aborted)
        expected = Counter({b"0": 3, b"1": aborted, b"2": 3, b"3": 3})
        assert Counter(record.value for record in found) == +expected
        assert share.statistics().in_flight == 0
    # What was not acknowledged would come again.
    async with make(name) as other:
        await drain(other, 0)
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


@THREADED
async def test_batches(
    real_kafka: Kafka, topic: TopicFactory, make: Make, io_thread: bool
) -> None:
    name = topic()
    values = await send(real_kafka, name, 100)
    async with make(name, io_thread=io_thread) as share:
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
        assert await share.poll(timeout=QUIET) == []
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
            await drain(share, 4)
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


async def test_handlers_run_in_the_users_loop(
    real_kafka: Kafka, topic: TopicFactory, make: Make
) -> None:
    name = topic()
    await send(real_kafka, name, 60)
    here, tries = asyncio.get_running_loop(), Counter[int]()
    done = asyncio.Event()

    async def handle(record: kafkaio.ShareRecord) -> None:
        assert asyncio.get_running_loop() is here
        tries[record.offset] += 1
        if tries.total() == 62:
            done.set()
        await asyncio.sleep(0)
        if record.offset == 7 and record.delivery_count < 3:
            raise ValueError("again")
        if record.offset == 9:
            raise kafkaio.Reject("never")

    async with make(name, io_thread=True) as share:
        run = asyncio.create_task(share.run(handle, concurrency=5))
        await done.wait()
        with pytest.raises(UsageError, match="another task is reading"):
            await share.poll(timeout=1)
    await run
    numbers = share.statistics()
    assert (numbers.accepted, numbers.rejected, numbers.released) == (59, 1, 2)
    assert tries == {n: 3 if n == 7 else 1 for n in range(60)}


@pytest.mark.slow
async def test_a_blocked_loop_keeps_its_locks(
    real_kafka: Kafka, topic: TopicFactory, make: Make, admin: Admin, group: str
) -> None:
    name, lock = topic(), 1
    try:
        await configure(admin, group, "share.record.lock.duration.ms", "1000")
    except BrokerError:  # the least that brokers allow by default
        lock = 15
        await configure(admin, group, "share.record.lock.duration.ms", "15000")
    await send(real_kafka, name, 3)
    async with make(name, io_thread=True) as share:
        first, second, third = await share.poll(timeout=10)
        time.sleep(2.5 * lock)  # noqa: ASYNC251  (what it is about)
        first.ack()
        await first.acked
        before = second.lock_deadline
        await asyncio.sleep(lock)
        assert second.lock_deadline > before
        assert not second.is_lost
        for record in (second, third):
            record.ack()
        assert await share.commit() == {TopicPartition(name, 0): None}
        assert share.statistics().lost == 0


async def test_what_closing_releases_is_told_in_the_users_thread(
    real_kafka: Kafka, topic: TopicFactory, make: Make
) -> None:
    name = topic()
    await send(real_kafka, name, 3)
    share = make(name, io_thread=True)
    async with share:
        first, second, _ = await share.poll(timeout=10)
        first.ack()
        await first.acked
    # Closing has released what had no decision.
    with pytest.raises(UsageError, match="it was released"):
        second.ack()
    assert not second.is_lost
