"""The engine of share consumers on real brokers, and on the embedded one."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from itertools import pairwise
from uuid import uuid4

import pytest
from anyio.to_thread import run_sync as to_thread

import kafkaio
from kafkaio._records.batch import ACCEPT, LOST, RELEASE
from kafkaio.admin import ConfigChange, ConfigResource, ConfigResourceType, NewTopic
from kafkaio.errors import (
    AcknowledgeFailed,
    ClosedError,
    GroupError,
    LockLost,
    UsageError,
)
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from kafkaio.types import TopicPartition
from tests.integration.groups import until
from tests.support.patience import HANGS
from tests.support.share import Engine, Held, engine

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(120),
    pytest.mark.kafka_versions("4.2+"),
]
#: Seconds of a lock that is to run out: the least that brokers allow.
LOCK = 1.0
#: Of one that is to be renewed in time on a busy machine, too.
RENEWED_LOCK = 3.0
#: Of one that is not to run out: the most that brokers allow by default.
LONG_LOCK = 60.0


@pytest.fixture
def group() -> str:
    return f"share-{uuid4().hex[:12]}"


async def configured(kafka: Kafka, group: str, **configs: object) -> None:
    """Set configs of a group: it starts at the first record, with long locks."""
    chosen = {
        "share.auto.offset.reset": "earliest",
        "share.record.lock.duration.ms": int(LONG_LOCK * 1000),
        **{name.replace("_", "."): value for name, value in configs.items()},
    }
    async with kafkaio.Admin(kafka.bootstrap_servers) as admin:
        resource = ConfigResource(ConfigResourceType.GROUP, group)
        changes = [ConfigChange(name, str(value)) for name, value in chosen.items()]
        await admin.incremental_alter_configs({resource: changes})


async def produced(kafka: Kafka, topic: str, count: int, partitions: int = 1) -> None:
    """Produce numbered records; those of one partition as one batch."""
    async with kafkaio.Producer(kafka.bootstrap_servers, linger_ms=50) as producer:
        sent = [
            await producer.enqueue(topic, b"%d" % n, partition=n % partitions)
            for n in range(count)
        ]
        for delivery in sent:
            await delivery


def places(records: list[Held]) -> set[tuple[int, int]]:
    return {each.place for each in records}


async def test_all_records_are_accepted_once(
    real_kafka: Kafka, topic: TopicFactory, group: str
) -> None:
    name = topic(partitions=3)
    await produced(real_kafka, name, 1000, 3)
    await configured(real_kafka, group)
    async with engine(real_kafka.bootstrap_servers, group, [name]) as share:
        assert share.assigned == {TopicPartition(name, n) for n in range(3)}
        taken = await share.accept(1000)
        assert len(places(taken)) == len(taken) == 1000
        assert {each.acquired.delivery_count for each in taken} == {1}
        await share.core.flush(HANGS)
        it = share.core.statistics()
        assert (it.accepted, it.in_flight, it.acquired) == (1000, 0, 1000)
    async with engine(real_kafka.bootstrap_servers, group, [name]) as share:
        await produced(real_kafka, name, 1)
        (last,) = await share.accept(1)
        assert last.place not in places(taken)


async def test_a_limit_of_records_is_exact(
    real_kafka: Kafka, topic: TopicFactory, group: str
) -> None:
    name = topic(partitions=1)
    await produced(real_kafka, name, 300)
    await configured(real_kafka, group)
    options = {"max_in_flight": 10, "acquire_mode": "record_limit"}
    servers = real_kafka.bootstrap_servers
    async with (
        engine(servers, group, [name], **options) as one,
        engine(servers, group, [name], **options) as two,
    ):
        mine = await one.take(10)
        assert len(mine) == 10
        # All that one may have is in its hands: the others are for the second.
        theirs = await two.accept(290)
        assert len(theirs) == 290
        assert places(mine).isdisjoint(places(theirs))
        assert one.core.ledger.locked == 10
        for each in mine:
            each.decide()
        await one.core.flush(HANGS)
        await two.core.flush(HANGS)
        assert one.core.statistics().acquired == 10


async def test_a_lock_is_renewed_while_a_record_is_worked_on(
    real_kafka: Kafka, topic: TopicFactory, group: str
) -> None:
    name = topic(partitions=1)
    await produced(real_kafka, name, 20)
    lock = RENEWED_LOCK
    await configured(real_kafka, group, share_record_lock_duration_ms=int(lock * 1000))
    async with engine(real_kafka.bootstrap_servers, group, [name]) as share:
        taken = await share.take(20)
        await asyncio.sleep(3 * lock)
        for each in taken:
            each.decide()
        await share.core.flush(HANGS)
        it = share.core.statistics()
        assert (it.accepted, it.acquired, it.lost) == (20, 20, 0)
        assert it.renewed >= 60


@pytest.mark.parametrize("how", ["option", "group"])
async def test_a_lock_that_is_not_renewed_is_lost(
    real_kafka: Kafka, topic: TopicFactory, group: str, how: str
) -> None:
    name = topic(partitions=1)
    await produced(real_kafka, name, 3)
    is_allowed = how == "option"
    await configured(
        real_kafka,
        group,
        share_record_lock_duration_ms=int(LOCK * 1000),
        share_renew_acknowledge_enable=str(is_allowed).lower(),
    )
    share = engine(
        real_kafka.bootstrap_servers,
        group,
        [name],
        renew_locks=not is_allowed,
        max_in_flight=3,
    )
    async with share as it:
        taken = await it.take(3)
        taken[0].decide()
        await it.core.flush(HANGS)
        waiting = asyncio.ensure_future(it.core.acked(taken[1].acquired, 1))
        await until(lambda: taken[1].state == LOST, limit=HANGS)
        with pytest.raises(LockLost, match="offsets 1 to 2: the lock has run out"):
            await asyncio.wait_for(waiting, HANGS)
        with pytest.raises(UsageError, match=r"offset 2 .*lock is gone"):
            taken[2].decide()
        again = await it.take(2)
        assert places(again) == {(0, 1), (0, 2)}
        assert {each.acquired.delivery_count for each in again} == {2}
        for each in again:
            each.decide()
        await it.core.flush(HANGS)
        assert it.core.statistics().lost == 2


async def test_a_lost_connection_frees_all_locks_at_once(
    real_kafka: Kafka, topic: TopicFactory, group: str
) -> None:
    name = topic(partitions=1)
    await produced(real_kafka, name, 10)
    await configured(real_kafka, group)
    async with engine(real_kafka.bootstrap_servers, group, [name]) as share:
        taken = await share.take(10)
        for each in taken[:5]:
            each.decide()
        await share.core.flush(HANGS)
        cut(share)
        await until(lambda: taken[5].state == LOST, limit=LONG_LOCK / 2)
        again = await share.accept(5, within=LONG_LOCK / 2)
        assert places(again) == places(taken[5:])
        assert {each.acquired.delivery_count for each in again} == {2}
        await share.core.flush(HANGS)


def cut(share: Engine) -> None:
    """Cut the connection to each leader."""
    for leader in share.core._leaders._leaders.values():
        assert leader._connection is not None
        leader._connection.close(ConnectionResetError("cut"))


async def test_what_was_decided_when_the_connection_was_cut_is_unknown(
    real_kafka: Kafka, topic: TopicFactory, group: str
) -> None:
    name = topic(partitions=1)
    await produced(real_kafka, name, 2)
    await configured(real_kafka, group)
    async with engine(real_kafka.bootstrap_servers, group, [name]) as share:
        taken = await share.take(2)
        for each in taken:
            each.decide()
        cut(share)
        with pytest.raises(AcknowledgeFailed, match=f"{name}-0"):
            await share.core.flush(HANGS)
        assert len(await share.accept(2)) == 2
        await share.core.flush(HANGS)  # the failure was raised already


async def test_closing_releases_what_is_held(
    real_kafka: Kafka, topic: TopicFactory, group: str
) -> None:
    name = topic(partitions=2)
    await produced(real_kafka, name, 40, 2)
    await configured(real_kafka, group)
    servers = real_kafka.bootstrap_servers
    async with engine(servers, group, [name]) as one:
        taken = await one.take(40)
        for each in taken[:10]:
            each.decide()
    with pytest.raises(ClosedError):
        one.core.check()
    async with engine(servers, group, [name]) as two:
        again = await two.accept(30, within=LONG_LOCK / 2)
        assert places(again) == places(taken[10:])
        assert {each.acquired.delivery_count for each in again} == {2}


async def test_nothing_is_locked_while_nobody_reads(
    real_kafka: Kafka, topic: TopicFactory, group: str
) -> None:
    name = topic(partitions=1)
    await configured(real_kafka, group)
    servers = real_kafka.bootstrap_servers
    async with engine(servers, group, [name]) as idle:
        idle.reader.stop()
        async with engine(servers, group, [name]) as busy:
            await produced(real_kafka, name, 50)
            assert len(await busy.accept(50)) == 50
        assert idle.core.statistics().in_flight == 0
        idle.reader.resume()
        await produced(real_kafka, name, 5)
        assert len(await idle.accept(5)) == 5


async def test_a_record_that_is_released_comes_again(
    real_kafka: Kafka, topic: TopicFactory, group: str
) -> None:
    name = topic(partitions=1)
    await produced(real_kafka, name, 1)
    await configured(real_kafka, group)
    async with engine(real_kafka.bootstrap_servers, group, [name]) as share:
        counts = []
        for _ in range(3):
            (held,) = await share.take(1)
            counts.append(held.acquired.delivery_count)
            held.decide(RELEASE)
            await share.core.acked(held.acquired, 0)
        assert counts == [1, 2, 3]
        (held,) = await share.take(1)
        held.decide(ACCEPT)
        results = await share.core.commit(HANGS)
        assert results == {TopicPartition(name, 0): None}


async def test_a_pattern_finds_topics_that_appear(
    real_kafka: Kafka, group: str
) -> None:
    prefix = f"pattern-{uuid4().hex[:8]}"
    await configured(real_kafka, group)
    servers = real_kafka.bootstrap_servers
    pattern = re.compile(f"{prefix}-[ab]")
    async with (
        kafkaio.Admin(servers) as admin,
        engine(servers, group, pattern, metadata_max_age_ms=500) as share,
    ):
        assert share.assigned == set()
        for letter in "abc":
            await admin.create_topics([NewTopic(f"{prefix}-{letter}", partitions=1)])
            await produced(real_kafka, f"{prefix}-{letter}", 1)
        taken = await share.accept(2)
        assert {each.record.topic for each in taken} == {f"{prefix}-a", f"{prefix}-b"}
        await share.core.flush(HANGS)
        await admin.delete_topics([f"{prefix}-a"])
        await until(lambda: {tp.topic for tp in share.assigned} == {f"{prefix}-b"})


async def test_a_group_of_another_kind_is_refused(
    real_kafka: Kafka, topic: TopicFactory, group: str
) -> None:
    name = topic(partitions=1)
    servers = real_kafka.bootstrap_servers
    async with kafkaio.Consumer(servers, topics=name, group_id=group):
        share = Engine(servers, group, [name])
        with pytest.raises(GroupError, match="not a share group"):
            await share.core.start(HANGS)
        assert share.core.state == "closed"


async def test_an_administrator_resets_offsets_after_the_end_on_a_shared_client(
    real_kafka: Kafka, topic: TopicFactory, group: str
) -> None:
    name = topic(partitions=1)
    tp = TopicPartition(name, 0)
    await produced(real_kafka, name, 10)
    await configured(real_kafka, group)
    async with kafkaio.Client(real_kafka.bootstrap_servers) as client:
        async with engine(client, group, [name]) as share:
            assert len(await share.accept(10)) == 10
            await share.core.flush(HANGS)
        async with kafkaio.Admin(client) as admin:
            await admin.alter_share_group_offsets(group, {tp: 4})
        async with engine(client, group, [name]) as share:
            again = await share.accept(6)
            assert places(again) == {(0, offset) for offset in range(4, 10)}


async def test_a_cancelled_close_still_ends_in_time(
    real_kafka: Kafka, topic: TopicFactory, group: str
) -> None:
    name = topic(partitions=1)
    await produced(real_kafka, name, 10)
    await configured(real_kafka, group)
    servers = real_kafka.bootstrap_servers
    share = Engine(servers, group, [name])
    await share.core.start(HANGS)
    await share.take(10)
    closing = asyncio.create_task(share.core.close(30))
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.wait([closing], timeout=LONG_LOCK / 2)
    assert closing.cancelled()
    assert share.core.state == "closed"
    async with engine(servers, group, [name]) as other:
        assert len(await other.accept(10, within=LONG_LOCK / 2)) == 10


async def test_a_leader_that_moves_hands_the_records_out_again(
    real_kafka_cluster: Kafka, cluster_topic: TopicFactory, group: str
) -> None:
    """What is held of its partitions is lost; the others go on."""
    kafka, name = real_kafka_cluster, cluster_topic(partitions=3, replication_factor=3)
    await produced(kafka, name, 60, 3)
    await configured(kafka, group)
    async with (
        kafkaio.Client(kafka.bootstrap_servers) as client,
        kafkaio.Admin(client) as admin,
        engine(kafka.bootstrap_servers, group, [name]) as share,
    ):
        taken = await share.take(60)
        before = share.core.cluster.view.leader(TopicPartition(name, 0))
        assert before is not None
        replicas = [node for node in client.cluster.brokers if node != before]
        moves = {TopicPartition(name, 0): [*replicas, before]}
        await admin.alter_partition_reassignments(moves)
        await admin.elect_leaders("preferred", moves)
        mine = [each for each in taken if each.record.partition == 0]
        assert mine
        await until(lambda: all(each.state == LOST for each in mine), limit=HANGS)
        again = await share.accept(len(mine))
        assert places(again) == places(mine)
        for each in taken:
            if each.record.partition:
                each.decide()
        await share.core.flush(HANGS)
        it = share.core.statistics()
        assert (it.accepted, it.lost) == (60, len(mine))


async def test_a_leader_that_dies_and_one_that_hangs(
    real_kafka_cluster: Kafka, cluster_topic: TopicFactory, group: str
) -> None:
    kafka, name = real_kafka_cluster, cluster_topic(partitions=6, replication_factor=3)
    await configured(kafka, group)
    await produced(kafka, name, 300, 6)
    servers, seen = kafka.bootstrap_servers, set[tuple[int, int]]()

    async def work(share: Engine) -> None:
        while len(seen) < 900:
            for held in await share.take(1, within=HANGS):
                held.decide()
                seen.add(held.place)
            share.reader.errors.clear()

    options = {"request_timeout_ms": 3_000, "retry_backoff_max_ms": 300}
    async with engine(servers, group, [name], **options) as share:
        task = asyncio.create_task(work(share))
        try:
            await until(lambda: len(seen) == 300, limit=HANGS)
            view = share.core.cluster.view
            victim = view.leader(TopicPartition(name, 0))
            assert victim is not None
            await to_thread(kafka.engine.kill, victim)
            await produced(kafka, name, 300, 6)
            await until(lambda: len(seen) == 600, limit=HANGS)
            await to_thread(kafka.engine.start, victim)
            other = share.core.cluster.view.leader(TopicPartition(name, 0))
            assert other is not None
            await to_thread(kafka.engine.pause, other)
            await produced(kafka, name, 300, 6)
            await until(lambda: len(seen) == 900, limit=HANGS)
            await task
        finally:
            task.cancel()


async def test_counts_of_deliveries_never_fall(
    real_kafka: Kafka, topic: TopicFactory, group: str
) -> None:
    """Three members take turns at losing, releasing and accepting."""
    name = topic(partitions=2)
    await produced(real_kafka, name, 60, 2)
    await configured(real_kafka, group, share_delivery_count_limit=10)
    servers = real_kafka.bootstrap_servers
    seen: dict[tuple[int, int], list[int]] = {}
    accepted: Counter[tuple[int, int]] = Counter()
    options = {"max_in_flight": 7, "acquire_mode": "record_limit"}

    async def work(share: Engine, turn: int) -> None:
        while len(accepted) < 60:
            for held in await share.take(1):
                seen.setdefault(held.place, []).append(held.acquired.delivery_count)
                turn += 1
                if turn % 3 or held.acquired.delivery_count > 5:
                    held.decide()
                    accepted[held.place] += 1
                else:
                    held.decide(RELEASE)
            if turn % 7 == 0:
                cut(share)

    async with (
        engine(servers, group, [name], **options) as one,
        engine(servers, group, [name], **options) as two,
    ):
        tasks = [asyncio.create_task(work(s, n)) for n, s in enumerate((one, two))]
        await until(lambda: len(accepted) == 60)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    assert all(a < b for counts in seen.values() for a, b in pairwise(counts))
