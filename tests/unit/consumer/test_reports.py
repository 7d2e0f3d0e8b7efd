"""What a consumer reports of itself to observers and the log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection

import pytest

from kafkaio.errors import KafkaError, RequestTimeout
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.types import TopicPartition
from tests.fakes.broker import HANG, FakeCluster
from tests.unit.consumer.conftest import MakeConsumer
from tests.unit.consumer.fake_log import FakeLogs
from tests.unit.consumer.group_fakes import FakeGroup
from tests.virtual_loop import VirtualClockLoop

ONE = TopicPartition("one", 0)
ORDERS = {TopicPartition("orders", p) for p in range(3)}
GROUP = {"assign": [ONE], "group_id": "g", "auto_offset_reset": "earliest"}


class Told:
    def __init__(self) -> None:
        self.failed: list[tuple[str, BaseException]] = []
        self.changes: list[tuple[set[TopicPartition], set[TopicPartition]]] = []
        self.life: list[tuple[str, str, str]] = []

    def commit_failed(self, group: str, error: BaseException) -> None:
        self.failed.append((group, error))

    def assignment_changed(
        self,
        assigned: Collection[TopicPartition],
        revoked: Collection[TopicPartition],
    ) -> None:
        self.changes.append((set(assigned), set(revoked)))

    def started(self, kind: str, name: str, source: object) -> None:
        self.life.append(("started", kind, name))

    def closed(self, kind: str, name: str, source: object) -> None:
        self.life.append(("closed", kind, name))


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]


async def test_an_automatic_commit_that_failed(
    cluster: FakeCluster,
    logs: FakeLogs,
    make: MakeConsumer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    logs.append("one", 0, b"a", b"b")
    told = Told()
    # A request without an answer keeps its connection until the request timeout.
    options = {**GROUP, "auto_commit_interval_ms": 1000, "request_timeout_ms": 2000}
    async with make(told, **options) as consumer:
        await anext(consumer)
        await anext(consumer)
        cluster.on(ApiKey.OFFSET_COMMIT, HANG)
        await asyncio.sleep(10)
        assert {group for group, _ in told.failed} == {"g"}
        assert len(told.failed) > 2
        assert all(isinstance(error, RequestTimeout) for _, error in told.failed)
        cluster.on(ApiKey.OFFSET_COMMIT, logs.commit)
    [text] = warned(caplog)  # the others are left out
    assert text.startswith("[kafkaio-consumer-g-")
    assert "] a commit of group 'g' failed: " in text
    assert logs.committed["one", 0] == 1


async def test_the_last_commit_is_refused_where_nobody_reads_on(
    cluster: FakeCluster,
    logs: FakeLogs,
    make: MakeConsumer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    logs.append("one", 0, b"a", b"b")
    told = Told()
    consumer = make(told, **GROUP)
    await consumer.start()
    await anext(consumer)
    await anext(consumer)
    cluster.on(ApiKey.OFFSET_COMMIT, HANG)
    await consumer.close(timeout=5)
    [(_, error)] = told.failed
    assert isinstance(error, KafkaError)
    assert len(warned(caplog)) == 1


async def test_what_is_read_without_a_group(logs: FakeLogs, make: MakeConsumer) -> None:
    told = Told()
    async with make(told, topics="orders"):
        pass
    assert told.changes == [(ORDERS, set())]
    told = Told()
    async with make(told, assign=[ONE]) as consumer:
        consumer.assign([ONE])  # no change
        consumer.assign(ORDERS)
        consumer.unsubscribe()
    assert told.changes == [({ONE}, set()), (ORDERS, {ONE}), (set(), ORDERS)]


async def test_a_life_is_told_once(logs: FakeLogs, make: MakeConsumer) -> None:
    told = Told()
    consumer = make(told, assign=[ONE], client_id="me")
    await consumer.close()
    assert told.life == []
    consumer = make(told, assign=[ONE], client_id="me")
    await consumer.start()
    await consumer.close()
    await consumer.close()
    assert told.life == [
        ("started", "client", "me"),
        ("started", "consumer", "me"),
        ("closed", "client", "me"),
        ("closed", "consumer", "me"),
    ]


@pytest.mark.parametrize(("seconds", "count"), [(5.0, 1), (0.9, 0)])
async def test_a_blocked_loop_is_logged_without_a_thread(
    seconds: float,
    count: int,
    make: MakeConsumer,
    logs: FakeLogs,
    caplog: pytest.LogCaptureFixture,
) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualClockLoop)
    async with make(assign=[ONE]):
        await asyncio.sleep(2.5)
        loop.pass_time(seconds)  # as a blocking call does
        await asyncio.sleep(2.5)
    found = warned(caplog)
    assert len(found) == count
    assert all("the event loop was blocked for 4." in text for text in found)


async def test_an_observer_of_blocked_loops_hears_each_once(
    make: MakeConsumer, logs: FakeLogs
) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualClockLoop)
    heard: list[float] = []

    class Mine:
        def loop_blocked(self, seconds: float, stack: str) -> None:
            heard.append(seconds)

    async with make(Mine(), assign=[ONE]):
        await asyncio.sleep(2.5)
        loop.pass_time(5.0)
        await asyncio.sleep(2.5)
    assert len(heard) == 1


async def test_partitions_that_were_lost_are_a_warning(
    cluster: FakeCluster,
    logs: FakeLogs,
    make: MakeConsumer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "kafkaio")
    group = FakeGroup(cluster)
    options = {"group_protocol": "classic", "session_timeout_ms": 6000}
    async with make(topics="one", group_id="g", **options) as consumer:
        assert consumer.assignment == {ONE}
        text = "] partitions assigned: one-0"
        assert any(line.endswith(text) for line in caplog.messages)
        assert warned(caplog) == []
        group.forget(consumer.group_metadata.member_id)
        await asyncio.sleep(20)
        lost = "partitions lost, others may own them already: one-0"
        assert any(lost in text for text in warned(caplog))
    group.close()
