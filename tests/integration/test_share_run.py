"""``ShareConsumer.run`` on real brokers, and on the embedded one."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from time import monotonic
from typing import Any
from uuid import uuid4

import pytest

import kafkaio
from kafkaio.admin import Admin, ConfigChange, ConfigResource, ConfigResourceType
from kafkaio.errors import UsageError
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from tests.support.patience import HANGS

pytestmark = [pytest.mark.timeout(120), pytest.mark.kafka_versions("newest")]
#: Seconds of a lock that is to run out: the least that brokers allow.
LOCK = 1.0
#: Of one that is to be renewed in time on a busy machine, too.
RENEWED_LOCK = 3.0
#: Of one that is not to run out: the most that brokers allow by default.
LONG_LOCK = 60.0
POISON = frozenset(range(0, 1000, 200))


@pytest.fixture
def group() -> str:
    return f"run-{uuid4().hex[:12]}"


@pytest.fixture
async def admin(real_kafka: Kafka) -> AsyncIterator[Admin]:
    async with Admin(real_kafka.bootstrap_servers) as admin:
        yield admin


async def configured(admin: Admin, group: str, **configs: object) -> None:
    """Set configs of a group: it starts at the first record, with long locks."""
    chosen = {
        "share.auto.offset.reset": "earliest",
        "share.record.lock.duration.ms": int(LONG_LOCK * 1000),
        **{name.replace("_", "."): value for name, value in configs.items()},
    }
    resource = ConfigResource(ConfigResourceType.GROUP, group)
    changes = [ConfigChange(name, str(value)) for name, value in chosen.items()]
    await admin.incremental_alter_configs({resource: changes})


async def produced(kafka: Kafka, topic: str, count: int) -> None:
    """Produce numbered records."""
    async with kafkaio.Producer(kafka.bootstrap_servers, linger_ms=50) as producer:
        await producer.send_many(topic, [b"%d" % n for n in range(count)])


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(HANGS):
        while not condition():  # noqa: ASYNC110  (brokers and handlers of others)
            await asyncio.sleep(0.02)


class Jobs:
    """A handler that counts its records, and fails for some."""

    def __init__(self, poison: frozenset[int] = frozenset()) -> None:
        self.poison = poison
        self.begun: Counter[int] = Counter()
        self.done: Counter[int] = Counter()
        self.counts: dict[int, list[int]] = {}

    async def __call__(self, record: Any) -> None:
        number = int(record.value)
        self.begun[number] += 1
        self.counts.setdefault(number, []).append(record.delivery_count)
        await asyncio.sleep(0.001)
        if number in self.poison:
            raise ValueError(number)
        self.done[number] += 1

    def good_are_done(self) -> bool:
        return len(self.done) == 1000 - len(self.poison)


def share(kafka: Kafka, topic: str, group: str, **options: Any) -> Any:
    return kafkaio.ShareConsumer(
        kafka.bootstrap_servers, topics=[topic], group_id=group, **options
    )


async def test_poison_is_archived_at_the_limit_and_holds_up_nobody(
    real_kafka: Kafka, admin: Admin, topic: TopicFactory, group: str
) -> None:
    name = topic(partitions=2)
    # The least: each release waits twice as long as the one before.
    await configured(admin, group, share_delivery_count_limit=2)
    await produced(real_kafka, name, 1000)
    jobs = Jobs(POISON)
    async with share(real_kafka, name, group) as consumer:
        run = asyncio.ensure_future(consumer.run(jobs, concurrency=20))
        await until(
            lambda: jobs.good_are_done() and all(jobs.begun[n] == 2 for n in POISON)
        )
        # A record whose handler has failed is released after a wait.
        await until(lambda: not consumer.statistics().in_flight)
        it = consumer.statistics()
        assert (it.accepted, it.released, it.lost, it.in_flight) == (995, 10, 0, 0)
        await consumer.close(10)
        await run
    assert set(jobs.done.values()) == {1}
    assert {tuple(jobs.counts[number]) for number in POISON} == {(1, 2)}


async def test_poison_becomes_dead_letters(
    real_kafka: Kafka, admin: Admin, topic: TopicFactory, group: str
) -> None:
    name, dead = topic(partitions=2), topic(partitions=1)
    await configured(admin, group)
    await produced(real_kafka, name, 1000)
    jobs = Jobs(POISON)
    servers = real_kafka.bootstrap_servers
    async with (
        kafkaio.Producer(servers) as producer,
        share(real_kafka, name, group, value_deserializer=int) as consumer,
    ):
        letter = kafkaio.DeadLetter(producer, dead)
        run = asyncio.ensure_future(consumer.run(jobs, concurrency=20, on_error=letter))
        await until(lambda: consumer.statistics().accepted == 1000)
        await consumer.close(10)
        await run
    assert set(jobs.begun.values()) == {1}
    async with kafkaio.Consumer(
        servers, topics=[dead], group_id=group + "-dead", auto_offset_reset="earliest"
    ) as reader:
        letters = (await reader.poll(timeout=HANGS, max_records=10)).records
        while len(letters) < len(POISON):
            letters += (await reader.poll(timeout=HANGS, max_records=10)).records
    assert {int(each.value or b"") for each in letters} == POISON
    assert dict(letters[0].headers)["dead-letter-error"] == b"builtins.ValueError"


@pytest.mark.not_embedded("its brokers write no dead letters")
async def test_dead_letters_are_left_to_brokers_that_write_them(
    real_kafka: Kafka, admin: Admin, topic: TopicFactory, group: str
) -> None:
    level = (await admin.describe_features()).finalized.get("share.version")
    if level is None or level.max_level < 2:
        pytest.skip("brokers write dead letters from Kafka 4.4 on")
    name, own, theirs = topic(partitions=1), topic(partitions=1), f"dlq.{group}"
    await admin.create_topics(
        [
            kafkaio.NewTopic(
                theirs,
                partitions=1,
                replication_factor=1,
                configs={"errors.deadletterqueue.group.enable": "true"},
            )
        ]
    )
    try:
        await configured(
            admin,
            group,
            errors_deadletterqueue_topic_name=theirs,
            errors_deadletterqueue_copy_record_enable="true",
        )
        await produced(real_kafka, name, 10)
        jobs = Jobs(frozenset({3, 4}))
        servers = real_kafka.bootstrap_servers
        async with (
            kafkaio.Producer(servers) as producer,
            share(real_kafka, name, group) as consumer,
        ):
            letter = kafkaio.DeadLetter(producer, own)
            run = asyncio.ensure_future(consumer.run(jobs, on_error=letter))
            await until(lambda: consumer.statistics().rejected == 2)
            run.cancel()
        async with kafkaio.Consumer(
            servers,
            topics=[own, theirs],
            group_id=group + "-dead",
            auto_offset_reset="earliest",
        ) as reader:
            letters: list[kafkaio.Record] = []
            while len(letters) < 2:
                letters += (await reader.poll(timeout=HANGS)).records
        assert {each.topic for each in letters} == {theirs}
        assert {each.value for each in letters} == {b"3", b"4"}
    finally:
        await admin.delete_topics([theirs])


@pytest.mark.parametrize("renews", [True, False])
async def test_work_that_takes_three_locks(
    real_kafka: Kafka, admin: Admin, topic: TopicFactory, group: str, renews: bool
) -> None:
    name, lock = topic(partitions=1), RENEWED_LOCK if renews else LOCK
    await configured(admin, group, share_record_lock_duration_ms=int(lock * 1000))
    await produced(real_kafka, name, 2)
    counts: Counter[int] = Counter()
    cancelled: Counter[int] = Counter()

    async def handler(record: Any) -> None:
        counts[record.delivery_count] += 1
        try:
            await asyncio.sleep(3 * lock)
        except asyncio.CancelledError:
            assert record.is_lost
            cancelled[record.delivery_count] += 1
            raise

    async with share(real_kafka, name, group, renew_locks=renews) as consumer:
        run = asyncio.ensure_future(consumer.run(handler))
        if renews:
            await until(lambda: consumer.statistics().accepted == 2)
            assert consumer.statistics().renewed >= 2 * 2
            assert (counts, cancelled) == ({1: 2}, {})
        else:
            # Each was told, and came again.
            await until(lambda: cancelled[1] == 2 and counts[2] == 2)
            assert consumer.statistics().accepted == 0
            assert consumer.statistics().lost >= 2
        run.cancel()


async def test_locks_are_renewed_for_as_long_as_the_work_may_take(
    real_kafka: Kafka, admin: Admin, topic: TopicFactory, group: str
) -> None:
    name = topic(partitions=1)
    await configured(admin, group, share_record_lock_duration_ms=int(LOCK * 1000))
    await produced(real_kafka, name, 1)
    ended: list[tuple[int, float]] = []

    async def handler(record: Any) -> None:
        begun = monotonic()
        try:
            await asyncio.sleep(HANGS)
        finally:
            ended.append((record.delivery_count, monotonic() - begun))

    async with share(real_kafka, name, group) as consumer:
        run = asyncio.ensure_future(consumer.run(handler, max_processing_ms=2000))
        await until(lambda: ended)
        run.cancel()
    # It is delivered again, after that.
    count, seconds = ended[0]
    assert count == 1
    # The last renewal is within two seconds, and its lock lasts for one. If it were
    # renewed on and on, the handler would have gone on to its end.
    assert LOCK < seconds < HANGS


async def test_close_gives_back_at_once_what_is_not_finished(
    real_kafka: Kafka, admin: Admin, topic: TopicFactory, group: str
) -> None:
    name = topic(partitions=1)
    await configured(admin, group)
    await produced(real_kafka, name, 150)
    begun: set[int] = set()
    gate = asyncio.Event()

    async def handler(record: Any) -> None:
        begun.add(record.offset)
        await (gate if record.offset < 50 else asyncio.Event()).wait()

    acquired = monotonic()
    async with share(real_kafka, name, group) as consumer:
        run = asyncio.ensure_future(consumer.run(handler, concurrency=100))
        await until(lambda: len(begun) == 100)
        closing = asyncio.ensure_future(consumer.close(2.0))
        await asyncio.sleep(0)
        gate.set()
        async with asyncio.timeout(HANGS):
            await closing
        await run
    assert len(begun) == 100
    jobs = Jobs()
    async with share(real_kafka, name, group) as consumer:
        run = asyncio.ensure_future(consumer.run(jobs, concurrency=100))
        await until(lambda: len(jobs.done) == 100)
        # Before any of the locks could have ended.
        assert monotonic() - acquired < LONG_LOCK
        run.cancel()
    assert jobs.done.keys() == set(range(50, 150))
    counts = {number: counts[0] for number, counts in jobs.counts.items()}
    assert {counts[number] for number in range(50, 150) if number in begun} == {2}


async def test_cancelled_runs_lose_nothing_and_accept_nothing_unfinished(
    real_kafka: Kafka, admin: Admin, topic: TopicFactory, group: str
) -> None:
    name = topic(partitions=2)
    await configured(admin, group, share_delivery_count_limit=10)
    await produced(real_kafka, name, 1000)
    jobs = Jobs()
    async with share(
        real_kafka, name, group, acquire_mode="record_limit", max_in_flight=40
    ) as consumer:
        for turn in range(6):
            run = asyncio.ensure_future(consumer.run(jobs, concurrency=20))
            wanted = len(jobs.done) + 100
            await until(lambda wanted=wanted: len(jobs.done) >= wanted)
            run.cancel()
            await asyncio.wait([run])
            assert run.cancelled()
            del turn
        last = asyncio.ensure_future(consumer.run(jobs, concurrency=20))
        await until(jobs.good_are_done)
        last.cancel()
        await consumer.flush(HANGS)
        assert consumer.statistics().accepted == 1000
    # What was cancelled was begun again; nothing was finished twice.
    assert set(jobs.done.values()) == {1}
    assert sum(jobs.begun.values()) >= 1000


async def test_a_handler_must_not_close_the_consumer(
    real_kafka: Kafka, admin: Admin, topic: TopicFactory, group: str
) -> None:
    name = topic(partitions=1)
    await configured(admin, group)
    await produced(real_kafka, name, 1)
    errors: list[Exception] = []

    async with share(real_kafka, name, group) as consumer:

        async def handler(record: Any) -> None:
            try:
                await consumer.close()
            except UsageError as error:
                errors.append(error)

        run = asyncio.ensure_future(consumer.run(handler))
        await until(lambda: errors)
        run.cancel()
    assert "in a handler of run()" in str(errors[0])
