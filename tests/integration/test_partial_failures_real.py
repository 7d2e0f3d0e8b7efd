"""A part of the matrix of test_partial_failures.py on a real cluster of three brokers.

One broker leads the topic that is struck, another the topic that must go on; the group
and the transactional id are coordinated elsewhere than where the failure is.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import uuid4

import anyio
import pytest

import kafkaio
from kafkaio import NewTopic, TopicPartition, messages
from kafkaio.testing.kafka import Kafka
from tests.integration.groups import reading, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.kafka_versions("newest"),
    pytest.mark.not_embedded("the matrix itself runs on the embedded broker"),
]
GROUP, TRANSACTION = 0, 1


@dataclass
class Scene:
    """A topic that fails, one that goes on, one of both, and who coordinates what."""

    kafka: Kafka
    struck_leader: int
    struck: TopicPartition
    spared: list[TopicPartition]
    mixed: str
    group: str
    transactional_id: str

    @property
    def options(self) -> dict[str, object]:
        return {
            "bootstrap_servers": self.kafka.bootstrap_servers,
            "request_timeout_ms": 3_000,
            "default_api_timeout_ms": 10_000,
            "metadata_max_age_ms": 2_000,
            "allow_auto_create_topics": False,
        }

    def consumer(self) -> kafkaio.Consumer:
        return kafkaio.Consumer(
            **self.options,  # type: ignore[arg-type]  # options by name
            topics=[self.struck.topic, self.spared[0].topic],
            group_id=self.group,
            auto_offset_reset="earliest",
            auto_commit_interval_ms=60_000,
        )

    def producer(self, **options: object) -> kafkaio.Producer:
        return kafkaio.Producer(
            **self.options,  # type: ignore[arg-type]  # options by name
            **({"delivery_timeout_ms": 20_000} | options),  # type: ignore[arg-type]
            partitioner_availability_timeout_ms=1_000,
        )

    async def break_it(self, fault: str) -> None:
        engine = self.kafka.engine
        if fault == "topic gone":
            async with kafkaio.Admin(self.kafka.bootstrap_servers) as admin:
                await admin.delete_topics([self.struck.topic])
        elif fault == "leader gone":
            await anyio.to_thread.run_sync(engine.kill, self.struck_leader)
        else:
            await anyio.to_thread.run_sync(engine.pause, self.struck_leader)


async def name_elsewhere(client: kafkaio.Client, kind: int, struck_leader: int) -> str:
    """A new group or transactional id that the struck broker does not coordinate."""
    while True:
        name = f"partial-{uuid4().hex[:8]}"
        answer = await client.request(
            messages.FindCoordinatorRequest(key_type=kind, coordinator_keys=[name])
        )
        found = answer.coordinators[0]
        if found.error_code == 0 and found.node_id != struck_leader:
            return name
        await asyncio.sleep(0.02)


@asynccontextmanager
async def scene(kafka: Kafka) -> AsyncIterator[Scene]:
    struck_leader, leader = sorted(kafka.engine.node_ids)[:2]
    stem = uuid4().hex[:8]
    placed = {
        f"struck-{stem}": {0: [struck_leader]},
        f"spared-{stem}": {0: [leader], 1: [leader]},
        f"mixed-{stem}": {0: [struck_leader], 1: [leader], 2: [leader]},
    }
    struck, spared, mixed = placed
    async with (
        kafkaio.Client(kafka.bootstrap_servers) as client,
        kafkaio.Admin(kafka.bootstrap_servers) as admin,
    ):
        await admin.create_topics(
            [NewTopic(name, assignments=where) for name, where in placed.items()]
        )
        yield Scene(
            kafka,
            struck_leader,
            TopicPartition(struck, 0),
            [TopicPartition(spared, 0), TopicPartition(spared, 1)],
            mixed,
            await name_elsewhere(client, GROUP, struck_leader),
            await name_elsewhere(client, TRANSACTION, struck_leader),
        )


async def within(seconds: float, act: Awaitable[object]) -> BaseException | None:
    """Await an act; returns its error, and fails if it takes longer."""
    async with asyncio.timeout(seconds):
        try:
            await act
        except (kafkaio.KafkaError, ExceptionGroup) as error:
            return error
    return None


def _named(tp: TopicPartition) -> str:
    return f"{tp.topic}-{tp.partition}"


async def keyless_go_elsewhere(at: Scene, producer: kafkaio.Producer) -> None:
    written = 0
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        while written < 12:
            send = tasks.create_task(producer.send(at.mixed, b"x" * 100))
            done, _ = await asyncio.wait({send}, timeout=2.0)
            written += len(done)
            if not done:
                send.cancel()


async def a_member_comes_and_goes(at: Scene, first: kafkaio.Consumer) -> None:
    second = at.consumer()
    assert await within(30, second.start()) is None
    async with reading(second):
        await until(lambda: second.assignment and first.assignment, limit=30)
        await until(lambda: not second.assignment & first.assignment, limit=30)
    assert await within(10, second.close()) is None
    await until(lambda: {*at.spared} <= first.assignment, limit=30)


async def items_of_others_are_answered(at: Scene, fault: str) -> None:
    async with kafkaio.Admin(**at.options) as admin:  # type: ignore[arg-type]
        wanted = dict.fromkeys((at.struck, *at.spared), "latest")
        error = await within(20, admin.list_offsets(wanted))
        assert isinstance(error, kafkaio.KafkaError), fault
        assert _named(at.struck) in str(error)
        assert {*at.spared} <= set(error.results)


@pytest.mark.parametrize("fault", ["topic gone", "leader gone", "leader hangs"])
async def test_the_rest_goes_on(real_kafka_cluster: Kafka, fault: str) -> None:
    async with scene(real_kafka_cluster) as at:
        producer = at.producer()
        copier = at.producer(transactional_id=at.transactional_id)
        async with producer, copier, at.consumer() as first:
            for tp in (at.struck, *at.spared):
                await producer.send(tp.topic, b"before", partition=tp.partition)
            for number in range(3):
                await producer.send(at.mixed, b"before", partition=number)
            seen = 0
            while seen < 3:
                seen += len((await first.poll(timeout=1)).records)
            await at.break_it(fault)
            async with reading(first) as values:
                for number in range(20):
                    await producer.send(at.spared[0].topic, b"%d" % number, key=b"k")
                await until(lambda: len(values) >= 20, limit=20)
                error = await within(15, first.commit())
                # None as well if the topic has left the assignment by now.
                if error is not None:
                    assert fault == "topic gone"
                    assert _named(at.struck) in str(error)
                await keyless_go_elsewhere(at, producer)
                await a_member_comes_and_goes(at, first)
                async with asyncio.timeout(20), copier.transaction() as run:
                    await run.send(at.spared[0].topic, b"in a transaction")
                await items_of_others_are_answered(at, fault)
            assert await within(10, first.close()) is None
            assert await within(10, producer.close(timeout=5)) is None
        await everything_is_committed(at)


async def everything_is_committed(at: Scene) -> None:
    async with kafkaio.Admin(**at.options) as admin:  # type: ignore[arg-type]
        offsets = (await admin.list_consumer_group_offsets([at.group]))[at.group]
        assert sum(offsets[tp].offset for tp in at.spared) >= 22
        described = await admin.describe_consumer_groups([at.group])
        assert not described[at.group].members
