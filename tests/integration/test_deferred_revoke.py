"""Partitions that are handed over while their owner still works on them (KIP-983)."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from kafkaio import PartitionLost, Revoked
from kafkaio._consumer import Consumer
from kafkaio._producer import Producer
from kafkaio.testing import Broker
from kafkaio.testing.kafka import Kafka
from kafkaio.types import TopicPartition
from tests.integration.groups import until
from tests.integration.keepers import BROKERS, COOPERATIVE, EAGER, Log, Member
from tests.support.patience import HANGS, NEVER_MS

COUNT = 6
pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.kafka("embedded", "real", partitions=COUNT),
]


@pytest.fixture(
    params=[
        pytest.param(BROKERS, marks=pytest.mark.kafka_versions("4.0+")),
        COOPERATIVE,
        EAGER,
    ]
)
def assignor(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@asynccontextmanager
async def traffic(kafka: Kafka | Broker, topic: str) -> AsyncIterator[Counter[int]]:
    """Send records to every partition all the while; counts those that were sent."""
    sent: Counter[int] = Counter()

    async def send() -> None:
        async with Producer(kafka.bootstrap_servers) as producer:
            while not is_over.is_set():
                for number in range(COUNT):
                    await producer.send(topic, b"%d" % sent[number], partition=number)
                    sent[number] += 1
                await asyncio.sleep(0.02)

    is_over = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(send())
        yield sent
        is_over.set()


def group() -> str:
    return f"group-{uuid.uuid4().hex[:8]}"


async def test_the_others_run_on_while_partitions_are_handed_over(
    kafka_broker: Kafka | Broker, kafka_topic: str, assignor: str
) -> None:
    """How fast they run is for `test_full_speed`."""
    log, name, gate = Log(), group(), asyncio.Event()
    one, two, three = (
        Member(who, kafka_broker, kafka_topic, assignor, log, group_id=name)
        for who in ("one", "two", "three")
    )
    owners = (one, two)
    everything = {TopicPartition(kafka_topic, n) for n in range(COUNT)}

    def shares(*members: Member) -> list[int]:
        return [len(member.consumer.assignment) for member in members]

    def others_run_on() -> bool:
        """Whether much has come of what nobody keeps, since the last hold began."""
        since = max(owner.since for owner in owners)
        read = Counter(tp for at, _, tp, _ in log.entries if at > since)
        return all(read[tp] > 20 for tp in everything - one.holding - two.holding)

    async def open_the_gate() -> None:
        await until(lambda: one.holding or two.holding)
        if assignor != EAGER:  # which keeps everything
            await until(others_run_on)
        gate.set()

    async with one.running(), two.running():
        await until(lambda: shares(one, two) == [3, 3])
        for owner in owners:
            owner.holds.clear()
            owner.gate = gate
        async with traffic(kafka_broker, kafka_topic) as sent:
            await until(lambda: len(log.entries) > 50)
            async with asyncio.TaskGroup() as tasks:
                # The third member has started when it is assigned something.
                tasks.create_task(open_the_gate())
                async with three.running():
                    await until(lambda: shares(one, two, three) == [2, 2, 2])
                    moved = three.consumer.assignment
                    await until(
                        lambda: all(log.of(tp)[-1][1] == "three" for tp in moved)
                    )
                    holds = [h for h in one.holds + two.holds if h[2] & moved]
        await until(lambda: len(log.entries) == sent.total())
    log.check(kafka_topic, COUNT, sent.total())
    assert frozenset().union(*(tps for *_, tps in holds)) >= moved
    assert not one.strays + two.strays
    for _, ended, held in holds:
        for tp in held & moved:
            (first, *_) = (at for at, who, _ in log.of(tp) if who == "three")
            assert first > ended  # its commit came before


async def work(
    consumer: Consumer, log: Log, name: str, seconds: float, delays: Counter[str]
) -> None:
    """The KIP's own loop: records are worked on beside it, and finish in any order."""
    loop = asyncio.get_running_loop()
    working: dict[TopicPartition, set[int]] = {}
    ends: dict[TopicPartition, int] = {}

    async def handle(tp: TopicPartition, offset: int) -> None:
        await asyncio.sleep(seconds * (1 + offset % 3))
        working[tp].discard(offset)

    committed: dict[TopicPartition, int] = {}

    def finished() -> dict[TopicPartition, int]:
        """What was not committed yet: nothing of what has been given up."""
        found = {tp: min(working[tp], default=end) for tp, end in ends.items()}
        return {tp: at for tp, at in found.items() if committed.get(tp, 0) < at}

    async with asyncio.TaskGroup() as tasks:
        while True:
            poll = await consumer.poll(timeout=0.1, max_records=50)
            for record in poll.records:
                tp, offset = record.topic_partition, record.offset
                log.entries.append((loop.time(), name, tp, offset))
                working.setdefault(tp, set()).add(offset)
                ends[tp] = offset + 1
                tasks.create_task(handle(tp, offset))
            done = finished()
            await consumer.commit(done)
            committed |= done
            # A record may have finished during that commit: it is not done before it
            # is committed.
            if busy := {
                tp for tp in poll.to_be_revoked if committed.get(tp) != ends.get(tp)
            }:
                assert consumer.delay_revoke(busy)
                delays[name] += 1
            assert not poll.lost
            for tp in ends.keys() - consumer.assignment:
                assert not working[tp]  # it stayed until all of it was done
                assert committed.pop(tp) == ends.pop(tp)
                del working[tp]


async def test_the_loop_of_the_kip(
    kafka_broker: Kafka | Broker, kafka_topic: str, assignor: str
) -> None:
    log, name, delays = Log(), group(), Counter[str]()
    members = [
        Member(who, kafka_broker, kafka_topic, assignor, log, group_id=name)
        for who in ("one", "two", "three")
    ]

    async def be(member: Member) -> None:
        async with member.consumer as consumer:
            await work(consumer, log, member.name, 0.2, delays)

    async with asyncio.TaskGroup() as tasks, asyncio.timeout(HANGS):
        running = [tasks.create_task(be(member)) for member in members[:2]]
        async with traffic(kafka_broker, kafka_topic) as sent:
            await until(lambda: {"one", "two"} <= {who for _, who, *_ in log.entries})
            running.append(tasks.create_task(be(members[2])))
            await until(lambda: any(who == "three" for _, who, *_ in log.entries))
        await until(lambda: len(log.entries) >= sent.total())
        for task in running:
            task.cancel()
    log.check(kafka_topic, COUNT, sent.total())
    assert delays


async def test_past_the_deadline_only_what_was_kept_is_lost(
    kafka_broker: Kafka | Broker, kafka_topic: str, assignor: str
) -> None:
    log, name = Log(), group()
    options: dict[str, object] = {"group_id": name, "max_poll_interval_ms": 6000}
    one, two = (
        Member(who, kafka_broker, kafka_topic, assignor, log, **options)
        for who in ("one", "two")
    )
    async with asyncio.TaskGroup() as tasks, asyncio.timeout(HANGS), one.consumer:
        first = one.consumer
        reading = tasks.create_task(one.read())
        starting = tasks.create_task(two.consumer.start())
        async with first.wait_for_revoke() as event:
            await until(lambda: one.lost)
            assert one.lost == [event.partitions]
            assert asyncio.get_running_loop().time() >= event.deadline
            with pytest.raises(PartitionLost):
                await first.commit(dict.fromkeys(event.partitions, 0))
        assert not first.delay_revoke(event.partitions)
        kept = first.assignment
        if assignor != EAGER:
            # The deadline was kept to, so that the others did not go as well.
            assert len(kept) == COUNT - len(event.partitions)
        await starting
        reading_too = tasks.create_task(two.read())
        await until(lambda: len(first.assignment | two.consumer.assignment) == COUNT)
        await until(lambda: len(first.assignment) == len(two.consumer.assignment) == 3)
        assert kept & first.assignment == kept
        reading.cancel()
        reading_too.cancel()
        await two.consumer.close()


async def test_what_is_finished_is_committed_before_it_is_lost(
    kafka_broker: Kafka | Broker, kafka_topic: str, assignor: str
) -> None:
    """With the automatic commits far apart; the partition is held past its deadline."""
    log, name = Log(), group()
    options: dict[str, object] = {
        "group_id": name,
        "max_poll_interval_ms": 6000,
        "enable_auto_commit": True,
        "auto_commit_interval_ms": 60_000,
    }
    one, two = (
        Member(who, kafka_broker, kafka_topic, assignor, log, **options)
        for who in ("one", "two")
    )
    async with Producer(kafka_broker.bootstrap_servers) as producer:
        for number in range(10 * COUNT):
            await producer.send(kafka_topic, b"x", partition=number % COUNT)
    async with asyncio.TaskGroup() as tasks, asyncio.timeout(HANGS), one.consumer:
        reading = tasks.create_task(one.read())
        await until(lambda: len(log.entries) == 10 * COUNT)
        starting = tasks.create_task(two.consumer.start())
        async with one.consumer.wait_for_revoke() as event:
            before = await one.consumer.committed(event.partitions)
            assert set(before.values()) == {None}
            await until(lambda: one.lost)
            after = await two.consumer.committed(event.partitions)
            assert {at and at.offset for at in after.values()} == {10}
        await starting
        reading.cancel()
        await two.consumer.close()


async def test_finished_records_are_committed_before_they_move(
    kafka_broker: Kafka | Broker, kafka_topic: str, assignor: str
) -> None:
    """Rule 8, with the automatic commits far apart; and nobody holds anything."""
    log, name = Log(), group()
    options: dict[str, object] = {
        "group_id": name,
        "enable_auto_commit": True,
        "auto_commit_interval_ms": 60_000,
    }
    one, two = (
        Member(who, kafka_broker, kafka_topic, assignor, log, **options)
        for who in ("one", "two")
    )
    async with asyncio.TaskGroup() as tasks, one.consumer:
        reading = [tasks.create_task(one.read())]
        async with traffic(kafka_broker, kafka_topic) as sent:
            await until(lambda: len(log.entries) > 50)
            async with two.consumer:
                reading.append(tasks.create_task(two.read()))
                await until(lambda: len(two.consumer.assignment) == 3)
                moved = two.consumer.assignment
                await until(lambda: all(log.of(tp)[-1][1] == "two" for tp in moved))
                # Who leaves hands its finished records over as well.
                reading.pop().cancel()
                await asyncio.sleep(0.5)
                await finish(two)
        await until(lambda: len(log.entries) >= sent.total())
        for task in reading:
            task.cancel()
    log.check(kafka_topic, COUNT, sent.total())
    assert all({who for _, who, _ in log.of(tp)} == {"one", "two"} for tp in moved)


async def finish(member: Member) -> None:
    """Ask for one step more, so that what was handed out last is finished."""
    loop = asyncio.get_running_loop()
    member.consumer.pause(*member.consumer.assignment)
    poll = await member.consumer.poll(timeout=0.1)
    for record in poll.records:
        tp, offset = record.topic_partition, record.offset
        member.log.entries.append((loop.time(), member.name, tp, offset))


async def test_closing_hands_over_what_is_held(
    kafka_broker: Kafka | Broker, kafka_topic: str, assignor: str
) -> None:
    log, name = Log(), group()
    one, two = (
        Member(who, kafka_broker, kafka_topic, assignor, log, group_id=name)
        for who in ("one", "two")
    )
    one.keeps = 1.0
    async with traffic(kafka_broker, kafka_topic) as sent:
        async with one.running():
            await until(lambda: len(log.entries) > 50)
        assert one.holds
        assert isinstance(one.events[-1], Revoked)
    async with two.running():
        await until(lambda: len(log.entries) >= sent.total())
    log.check(kafka_topic, COUNT, sent.total())


@pytest.mark.parametrize("where", ["a hold", "a lane"])
async def test_closing_does_not_wait_for_what_its_own_task_is_in(
    kafka_broker: Kafka | Broker, kafka_topic: str, assignor: str, where: str
) -> None:
    loop = asyncio.get_running_loop()
    options: dict[str, object] = {"group_id": group()}
    if assignor != BROKERS:
        # So that nobody gets anything of a member that has not left.
        options["session_timeout_ms"] = NEVER_MS
    one, two = (
        Member(who, kafka_broker, kafka_topic, assignor, Log(), **options).consumer
        for who in ("one", "two")
    )
    await one.start()
    await until(lambda: len(one.assignment) == COUNT)
    if where == "a hold":
        loop.call_later(0.1, one.unsubscribe)
        async with one.wait_for_revoke() as event:
            assert len(event.partitions) == COUNT
            await one.close(NEVER_MS / 1000)
    else:
        async for lane in one.partitions():
            async with lane:
                await one.close(NEVER_MS / 1000)
    async with two:  # which nobody keeps out any longer
        await until(lambda: len(two.assignment) == COUNT)
