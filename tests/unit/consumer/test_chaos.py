"""Whatever happens to brokers and leaders: every record once, in order."""

from __future__ import annotations

import asyncio
import random

import pytest

from kafkaio._consumer import Consumer
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.types import Record, TopicPartition
from tests.fakes.broker import FakeCluster
from tests.unit.consumer.conftest import MakeConsumer
from tests.unit.consumer.fake_log import FakeLogs

ORDERS = [TopicPartition("orders", n) for n in range(3)]
PASSING = [
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.UNKNOWN_TOPIC_ID,
]


class Chaos:
    """Deals with a cluster, its logs and its reader as the dice say."""

    def __init__(
        self, seed: int, cluster: FakeCluster, logs: FakeLogs, consumer: Consumer
    ) -> None:
        self.dice = random.Random(seed)
        self.cluster = cluster
        self.logs = logs
        self.consumer = consumer
        self.got: dict[TopicPartition, list[int]] = {tp: [] for tp in ORDERS}

    def write(self) -> None:
        tp = self.dice.choice(ORDERS)
        values = [b"x" * self.dice.randrange(300)] * self.dice.randrange(1, 5)
        self.logs.append(*tp, *values)

    def fail(self) -> None:
        tp = self.dice.choice(ORDERS)
        self.logs.fail(*tp, self.dice.choice(PASSING))

    def disconnect(self) -> None:
        self.cluster.drop_connections(self.dice.choice([None, 0, 1, 2]))

    def move(self) -> None:
        tp = self.dice.choice(ORDERS)
        self.cluster.move_leader(*tp, self.dice.randrange(3))

    def lose_sessions(self) -> None:
        self.logs.sessions.clear()

    def deny_sessions(self) -> None:
        self.logs.grants_sessions = not self.logs.grants_sessions

    def pause(self) -> None:
        self.consumer.pause(self.dice.choice(ORDERS))

    def resume(self) -> None:
        self.consumer.resume(*ORDERS)

    def seek_where_we_are(self) -> None:
        tp = self.dice.choice(ORDERS)
        self.consumer.seek(tp, len(self.got[tp]))

    def note(self, records: list[Record]) -> None:
        for record in records:
            mine = self.got[record.topic_partition]
            assert record.offset == len(mine)
            mine.append(record.offset)

    async def read(self) -> None:
        consumer, dice = self.consumer, self.dice
        patience = dice.choice([0.0, 0.01, 0.5])
        if dice.random() < 0.3:
            try:
                async with asyncio.timeout(patience):
                    self.note([await anext(consumer)])
            except TimeoutError:
                return
        else:
            poll = await consumer.poll(
                timeout=patience, max_records=dice.randrange(1, 9)
            )
            self.note(poll.records)


@pytest.mark.parametrize("seed", range(12))
async def test_every_record_once_and_in_order(
    seed: int, cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    consumer = make(
        assign=ORDERS,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=600,
        fetch_buffer_bytes=2000,
    )
    async with consumer:
        chaos = Chaos(seed, cluster, logs, consumer)
        for _ in range(250):
            act = chaos.dice.choice(
                [
                    *[chaos.write] * 6,
                    chaos.fail,
                    chaos.disconnect,
                    chaos.move,
                    chaos.lose_sessions,
                    chaos.deny_sessions,
                    chaos.pause,
                    chaos.resume,
                    chaos.seek_where_we_are,
                ]
            )
            act()
            await chaos.read()
        chaos.resume()
        wanted = {tp: list(range(logs.log(*tp).end)) for tp in ORDERS}
        async with asyncio.timeout(300):
            while chaos.got != wanted:
                await chaos.read()
