"""What the tests of lanes and of ``run`` have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from kafkaio._consumer import Consumer
from kafkaio._records.batch import encode_batch
from kafkaio.types import TopicPartition
from tests.unit.consumer.fake_log import FakeLogs
from tests.unit.consumer.group_fakes import FakeGroup

ORDERS = [TopicPartition("orders", n) for n in range(3)]
MEMBER: Final = {
    "topics": "orders",
    "group_id": "g",
    "auto_offset_reset": "earliest",
    "heartbeat_interval_ms": 1000,
    "session_timeout_ms": 10_000,
    "max_poll_interval_ms": 60_000,
}


def fill(logs: FakeLogs, tp: TopicPartition, *keys: bytes | None) -> None:
    """Append records with these keys, each with its offset as value."""
    log = logs.log(*tp)
    base = log.end
    records = [(1000, key, b"%d" % (base + n), ()) for n, key in enumerate(keys)]
    log.raw(encode_batch(records, base_offset=base, leader_epoch=0), len(records))
    logs.grow()


async def eventually(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(300):
        while not condition():  # noqa: ASYNC110  (the clock jumps)
            await asyncio.sleep(0.1)


def committed(group: FakeGroup, tp: TopicPartition) -> int | None:
    at = group.offsets.get(tp)
    return None if at is None else at.offset


async def rest(*consumers: Consumer) -> None:
    """Wait until every partition has one owner, and none is on its way."""
    await eventually(
        lambda: (
            sorted(tp for each in consumers for tp in each.assignment) == ORDERS
            and not any(each.to_be_revoked for each in consumers)
        )
    )
