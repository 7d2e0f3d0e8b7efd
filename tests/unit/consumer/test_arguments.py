"""What the calls that hand out records refuse, before they wait for anything."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaio.consumer.arguments import most_of, seconds_of
from kafkaio.errors import UsageError
from kafkaio.types import TopicPartition
from tests.unit.consumer.conftest import MakeConsumer

ORDERS = [TopicPartition("orders", 0)]

WRONG = [
    ({"max_records": 0}, UsageError),
    ({"max_records": True}, TypeError),
    ({"max_records": 1.5}, TypeError),
    ({"max_wait": -1}, UsageError),
    ({"max_wait": float("nan")}, UsageError),
    ({"max_wait": True}, TypeError),
    ({"max_wait": "1"}, TypeError),
]


@pytest.mark.parametrize(("arguments", "error"), WRONG)
async def test_no_batches_without_sense(
    make: MakeConsumer, arguments: dict[str, Any], error: type[Exception]
) -> None:
    async with make(assign=ORDERS) as consumer:
        for batches in (consumer.batches, consumer.arrow_batches):
            with pytest.raises(error, match=next(iter(arguments))):
                batches(**arguments)
        lane = await anext(aiter(consumer.partitions()))
        with pytest.raises(error, match=next(iter(arguments))):
            lane.batches(**arguments)


@pytest.mark.parametrize("seconds", [-1, float("nan"), "1"])
async def test_no_poll_without_sense(make: MakeConsumer, seconds: Any) -> None:
    async with make(assign=ORDERS) as consumer:
        with pytest.raises((UsageError, TypeError), match="timeout"):
            await consumer.poll(timeout=seconds)
        with pytest.raises(UsageError, match="max_records"):
            await consumer.poll(max_records=0)


def test_what_makes_sense() -> None:
    assert most_of(None, 500) == 500
    assert most_of(1, 500) == 1
    assert seconds_of("max_wait", 0) == 0
    assert seconds_of("max_wait", float("inf")) == float("inf")
