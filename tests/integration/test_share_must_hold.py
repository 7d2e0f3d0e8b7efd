"""What a share consumer promises, on real brokers: short forms, of seconds each.

``tests/torture`` and the nightly sessions have the long ones, with members killed and
leaders moved.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection
from uuid import uuid4

import pytest

import kafkaio
from kafkaio import Client, ShareConsumer, ShareRecord, TopicPartition
from kafkaio.admin import (
    Admin,
    ConfigChange,
    ConfigResource,
    ConfigResourceType,
    FeatureUpdate,
    FeatureUpgradeType,
)
from kafkaio.errors import (
    DeserializationError,
    GroupError,
    LockLost,
    UnsupportedVersion,
    UsageError,
)
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from tests.support.patience import HANGS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(120),
    pytest.mark.kafka_versions("4.2+"),
]
#: The shortest lock that the brokers of the tests allow, in seconds.
LOCK = 1.0
#: Longer than any of these tests waits: a record that comes was not freed by its lock.
LONG_LOCK = 60.0


class Group:
    """A share group of its own that begins at the start of its topics."""

    def __init__(self, servers: str) -> None:
        self.servers = servers
        self.name = f"share-{uuid4().hex[:12]}"

    async def configure(self, **configs: object) -> None:
        """Set configs, with underscores for dots."""
        changes = [
            ConfigChange(name.replace("_", "."), str(value))
            for name, value in configs.items()
        ]
        group = ConfigResource(ConfigResourceType.GROUP, self.name)
        async with Admin(self.servers) as admin:
            await admin.incremental_alter_configs({group: changes})

    async def lock_for(self, seconds: float) -> None:
        await self.configure(share_record_lock_duration_ms=round(seconds * 1000))

    def worker(
        self,
        topic: str,
        *,
        to: str | Client | None = None,
        observer: object = None,
        **options: object,
    ) -> ShareConsumer:
        # A lock counts from when its fetch was sent, so a short one wants short waits.
        given: dict[str, object] = {"fetch_max_wait_ms": 100, **options}
        return ShareConsumer(
            to or self.servers,
            topics=topic,
            group_id=self.name,
            observer=observer,
            **given,  # type: ignore[arg-type]
        )

    async def finished(self, topic: str) -> None:
        """Wait until no record is left, neither locked nor to be delivered.

        The start offset that brokers tell trails behind; the lag does not.
        """
        async with Admin(self.servers) as admin, asyncio.timeout(LONG_LOCK / 2):
            while True:
                found = (await admin.list_share_group_offsets([self.name]))[self.name]
                places = [it for tp, it in found.items() if tp.topic == topic]
                if places and all(it is not None and it.lag == 0 for it in places):
                    return
                await asyncio.sleep(0.05)


@pytest.fixture
async def group(real_kafka: Kafka) -> Group:
    made = Group(real_kafka.bootstrap_servers)
    await made.configure(share_auto_offset_reset="earliest")
    return made


async def send(servers: str, topic: str, values: Collection[bytes]) -> None:
    """Write values, as few record batches as possible."""
    async with kafkaio.Producer(servers, linger_ms=50) as producer:
        await producer.send_many(topic, values)


def numbered(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


async def until(condition: Callable[[], object], seconds: float = 60) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - it is a state of many parts
            await asyncio.sleep(0.01)


async def take(share: ShareConsumer, count: int) -> list[ShareRecord]:
    """Take so many records and decide nothing about them."""
    found: list[ShareRecord] = []
    async with asyncio.timeout(60):
        while len(found) < count:
            found += await share.poll(timeout=1.0, max_records=count - len(found))
    return found


async def more_than(found: Counter[bytes], count: int) -> None:
    """Wait for so many different ones, or more in total."""
    await until(lambda: found.total() > count)


class Locks:
    """What is reported of locks."""

    def __init__(self) -> None:
        self.lost: list[LockLost] = []
        self.renewed = 0

    def lock_lost(
        self,
        group: str,
        partition: TopicPartition,
        first_offset: int,
        last_offset: int,
        error: LockLost,
    ) -> None:
        assert error.topic_partition == partition
        assert (error.first_offset, error.last_offset) == (first_offset, last_offset)
        self.lost.append(error)

    def locks_renewed(
        self, group: str, node_id: int, partition: TopicPartition, records: int
    ) -> None:
        self.renewed += records


# ---- locks ---------------------------------------------------------------------------


async def test_work_of_three_locks_keeps_its_record(
    group: Group, topic: TopicFactory
) -> None:
    jobs, locks = topic(partitions=1), Locks()
    lock = 3.0  # so that it is renewed in time on a busy machine, too
    await group.lock_for(lock)
    await send(group.servers, jobs, numbered(5))
    counts: list[int] = []
    others: list[ShareRecord] = []

    async def work(record: ShareRecord) -> None:
        began = time.monotonic()
        while time.monotonic() < began + 3 * lock:
            await asyncio.sleep(lock / 10)
            assert not record.is_lost
        assert record.lock_deadline > time.monotonic()
        counts.append(record.delivery_count)

    async with (
        group.worker(jobs, observer=locks) as share,
        group.worker(jobs) as idle,
        asyncio.TaskGroup() as tasks,
    ):
        running = tasks.create_task(share.run(work, concurrency=5))
        await until(lambda: share.statistics().in_flight == 5)
        while len(counts) < 5:
            others += await idle.poll(timeout=0.1)
            await asyncio.sleep(0)
        await share.flush()
        running.cancel()
    assert counts == [1] * 5
    assert others == []
    assert locks.renewed >= 5 * 4
    assert locks.lost == []
    await group.finished(jobs)


async def test_without_renewal_the_lock_is_lost_and_both_are_told(
    group: Group, topic: TopicFactory
) -> None:
    jobs, locks = topic(partitions=1), Locks()
    await group.lock_for(LOCK)
    await send(group.servers, jobs, numbered(1))
    async with (
        group.worker(jobs, observer=locks, renew_locks=False) as slow,
        group.worker(jobs) as other,
    ):
        [record] = await take(slow, 1)
        assert record.delivery_count == 1
        assert not record.is_lost
        [again] = await take(other, 1)
        await until(lambda: record.is_lost)
        # Once more if the slow one, which has polled just before, got it in between.
        assert again.delivery_count in {2, 3}
        with pytest.raises(UsageError, match=f"{jobs}-0 at offset 0 .*lock is gone"):
            record.ack()
        with pytest.raises(LockLost, match=f"{jobs}-0"):
            await record.acked
        again.ack()
        await again.acked
        assert await slow.commit() == {}
    assert locks.renewed == 0
    [lost] = locks.lost
    assert (lost.topic_partition, lost.first_offset) == ((jobs, 0), 0)


async def test_a_worker_whose_loop_was_blocked_sees_that_its_lock_is_gone(
    group: Group, topic: TopicFactory
) -> None:
    jobs = topic(partitions=1)
    await group.lock_for(LOCK)
    await send(group.servers, jobs, numbered(1))
    async with group.worker(jobs) as share:
        [record] = await take(share, 1)
        until_then = record.lock_deadline - time.monotonic()
        assert 0 < until_then <= LOCK
        assert not record.is_lost
        time.sleep(until_then + 0.1)  # noqa: ASYNC251 - code that blocks the loop
        # Nothing else has run meanwhile, and nobody renewed the lock.
        assert record.is_lost
        assert await asyncio.to_thread(lambda: record.is_lost)
        [again] = await take(share, 1)
        assert again.delivery_count == 2
        again.ack()
        await again.acked


# ---- poison --------------------------------------------------------------------------


async def test_poison_among_many_goes_to_the_dead_letter_and_holds_up_nothing(
    group: Group, topic: TopicFactory
) -> None:
    jobs, dead = topic(partitions=2), topic(partitions=1)
    await group.lock_for(LONG_LOCK)
    values = numbered(1000)
    poison = {*values[100::200]}
    await send(group.servers, jobs, values)
    done: Counter[bytes] = Counter()

    async def work(record: ShareRecord) -> None:
        await asyncio.sleep(0)
        assert record.value is not None
        if record.value in poison:
            raise ValueError("poison")
        done[record.value] += 1

    async with (
        kafkaio.Producer(group.servers) as producer,
        group.worker(jobs) as share,
        asyncio.TaskGroup() as tasks,
    ):
        letter = kafkaio.DeadLetter(producer, dead)
        running = tasks.create_task(share.run(work, concurrency=50, on_error=letter))
        # Nothing waits for a lock to end: that would take a minute.
        await until(lambda: done.total() == 995, LONG_LOCK / 2)
        await until(lambda: share.statistics().in_flight == 0, LONG_LOCK / 2)
        running.cancel()
    assert {*done} == {*values} - poison
    assert done.total() == 995
    async with kafkaio.Consumer(
        group.servers, topics=dead, auto_offset_reset="earliest"
    ) as consumer:
        letters = [await anext(consumer) for _ in poison]
    assert {letter.value for letter in letters} == poison


@pytest.mark.not_embedded("takes 25 s; test_share_run.py shows it sooner")
async def test_poison_that_is_released_is_archived_at_the_limit(
    group: Group, topic: TopicFactory
) -> None:
    jobs = topic(partitions=1)
    await group.lock_for(LONG_LOCK)
    await send(group.servers, jobs, numbered(50))
    done: Counter[bytes | None] = Counter()
    deliveries: list[int] = []

    async def work(record: ShareRecord) -> None:
        await asyncio.sleep(0)
        if record.value == b"20":
            deliveries.append(record.delivery_count)
            raise ValueError("poison")
        done[record.value] += 1

    async with group.worker(jobs) as share, asyncio.TaskGroup() as tasks:
        running = tasks.create_task(share.run(work, concurrency=10))
        await group.finished(jobs)
        running.cancel()
    assert deliveries == [1, 2, 3, 4, 5]
    assert done == Counter({*numbered(50)} - {b"20"})


# ---- cancellation and closing --------------------------------------------------------


@pytest.mark.kafka_versions("4.3+")  # the limit of a group
async def test_a_worker_cancelled_anywhere_loses_nothing(
    group: Group, topic: TopicFactory
) -> None:
    jobs = topic(partitions=1)
    await group.lock_for(LONG_LOCK)
    await group.configure(share_delivery_count_limit=10)
    count = 400
    await send(group.servers, jobs, numbered(count))
    finished: Counter[bytes] = Counter()

    async def read(share: ShareConsumer) -> None:
        async for record in share:
            await asyncio.sleep(0)
            assert record.value is not None
            await asyncio.sleep(0.001)
            finished[record.value] += 1
            record.ack()

    async def run(share: ShareConsumer) -> None:
        async def work(record: ShareRecord) -> None:
            await asyncio.sleep(0)
            assert record.value is not None
            await asyncio.sleep(0.001)
            finished[record.value] += 1

        await share.run(work, concurrency=3)

    options = {"max_in_flight": 5, "acquire_mode": "record_limit"}
    async with group.worker(jobs, **options) as share:
        for step in range(40):
            worker = asyncio.create_task((read, run)[step % 2](share))
            # Cancelled after one step of the loop more each time, at every one of its
            # awaits: first where it waits for records, then in the work.
            for _ in range(step * 3):
                await asyncio.sleep(0)
            if step > 20:
                await more_than(finished, min(finished.total(), count - 1))
            worker.cancel()
            with pytest.raises(asyncio.CancelledError):
                await worker
            # A record is archived after ten deliveries. So the five that were released
            # are finished before the next worker is cancelled with them in hand.
            between = asyncio.create_task(read(share))
            await more_than(finished, min(finished.total() + 5, count - 1))
            between.cancel()
            await asyncio.wait([between])
        rest = asyncio.create_task(read(share))
        await until(lambda: len(finished) == count, LONG_LOCK / 2)
        await share.flush()
        rest.cancel()
        await asyncio.wait([rest])
    # All were accepted, and nothing was that had not been finished.
    await group.finished(jobs)
    assert {*finished} == {*numbered(count)}


async def test_closing_amid_a_hundred_handlers_gives_their_records_to_others(
    group: Group, topic: TopicFactory
) -> None:
    jobs = topic(partitions=1)  # of which both are members
    await group.lock_for(LONG_LOCK)
    await send(group.servers, jobs, numbered(100))
    running: set[bytes | None] = set()
    stopped: set[bytes | None] = set()

    async def work(record: ShareRecord) -> None:
        running.add(record.value)
        try:
            await asyncio.Event().wait()
        finally:
            stopped.add(record.value)

    acquired = time.monotonic()
    async with group.worker(jobs) as other, group.worker(jobs) as closing:
        worker = asyncio.create_task(closing.run(work, concurrency=100))
        await until(lambda: len(running) == 100)
        async with asyncio.timeout(HANGS):
            await closing.close(timeout=2.0)
        await worker
        assert stopped == running
        again = await take(other, 100)
        # Before any of the locks could have ended.
        assert time.monotonic() - acquired < LONG_LOCK
        assert {record.value for record in again} == running
        assert {record.delivery_count for record in again} == {2}
        for record in again:
            record.ack()
        await other.flush()


# ---- bounds --------------------------------------------------------------------------


async def test_never_more_than_ten_of_a_batch_of_a_thousand(
    group: Group, topic: TopicFactory
) -> None:
    jobs = topic(partitions=1)
    await group.lock_for(LONG_LOCK)
    await send(group.servers, jobs, numbered(1000))
    done: Counter[bytes | None] = Counter()
    most = 0
    async with (
        group.worker(jobs, max_in_flight=10, acquire_mode="record_limit") as few,
        group.worker(jobs, max_in_flight=1000, acquire_mode="record_limit") as many,
    ):
        held = await take(few, 10)
        assert await few.poll(timeout=0.3) == []
        assert few.statistics().in_flight == 10
        rest = await take(many, 990)
        assert len({record.offset for record in (*held, *rest)}) == 1000
        for record in (*rest[10:], *held):
            record.ack()
        for record in rest[:10]:
            record.release()
        await asyncio.gather(few.flush(), many.flush())
        async with asyncio.timeout(LONG_LOCK / 2):
            async for record in few:
                most = max(most, few.statistics().in_flight)
                done[record.value] += 1
                record.ack()
                if done.total() == 10:
                    break
    assert most <= 10
    assert {*done} == {record.value for record in rest[:10]}


# ---- clusters and groups that cannot serve -------------------------------------------


async def test_a_group_of_another_kind(group: Group, topic: TopicFactory) -> None:
    jobs = topic(partitions=1)
    consumer = kafkaio.Consumer(group.servers, topics=jobs, group_id=group.name)
    async with consumer:
        share = group.worker(jobs)
        with pytest.raises(GroupError, match=group.name):
            await share.start()
        await share.close()


@pytest.fixture(scope="module")
def fresh(kafka_version: str) -> AsyncIterator[Kafka]:
    """A cluster that never had a share group."""
    with Kafka(brokers=1, version=kafka_version) as kafka:
        yield kafka


@pytest.mark.not_embedded("it makes no topic for the state of share groups")
async def test_a_fresh_cluster_is_waited_out_and_one_without_share_groups_refuses(
    fresh: Kafka,
) -> None:
    group = Group(fresh.bootstrap_servers)
    async with Admin(group.servers) as admin:
        await admin.create_topics([kafkaio.NewTopic("jobs", 1, 1)])
        await group.configure(share_auto_offset_reset="earliest")
        await send(group.servers, "jobs", numbered(3))
        async with group.worker("jobs") as share:
            records = await take(share, 3)
            assert [record.value for record in records] == numbered(3)
            for record in records:
                record.ack()
            await share.flush()
        off = FeatureUpdate(0, FeatureUpgradeType.UNSAFE_DOWNGRADE)
        await admin.update_features({"share.version": off})
        unserved = group.worker("jobs")
        with pytest.raises(UnsupportedVersion, match=r"share\.version"):
            await unserved.start()
        await unserved.close()


# ---- values that cannot be read ------------------------------------------------------


@pytest.mark.parametrize("decision", ["release", "reject"])
async def test_a_value_that_is_no_number(
    group: Group, topic: TopicFactory, decision: str
) -> None:
    jobs = topic(partitions=1)
    await group.lock_for(LONG_LOCK)
    await send(group.servers, jobs, [b"1", b"none", b"3"])
    found: list[object] = []
    failed: list[int | None] = []

    async def read(share: ShareConsumer) -> None:
        while True:
            try:
                async for record in share:
                    found.append(record.value)
                    record.ack()
            except DeserializationError as error:
                failed.append(error.offset)

    share = group.worker(jobs, value_deserializer=int, undeserializable=decision)
    async with share, asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(read(share))
        await group.finished(jobs)
        reading.cancel()
    assert found == [1, 3]
    assert failed == [1] * (1 if decision == "reject" else 5)


# ---- administration ------------------------------------------------------------------


async def test_offsets_are_reset_beside_a_shared_client(
    group: Group, topic: TopicFactory
) -> None:
    jobs = topic(partitions=1)
    await group.lock_for(LONG_LOCK)
    await send(group.servers, jobs, numbered(5))
    async with Client(group.servers) as client, Admin(client) as admin:
        for _ in range(2):
            async with group.worker(jobs, to=client) as share:
                records = await take(share, 5)
                assert [record.value for record in records] == numbered(5)
                for record in records:
                    record.ack()
                await share.flush()
            # The client, and its connections, go on; those of the worker are closed.
            place = TopicPartition(jobs, 0)
            await admin.alter_share_group_offsets(group.name, {place: 0})
