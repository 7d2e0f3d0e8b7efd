"""The programs in the guide's page on producing run as they are printed there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

import kafkaio
from kafkaio.testing import Broker
from tests.pages import python_blocks, run_block
from tests.support.patience import HANGS

LOCAL = "localhost:9092"


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(topics={"orders": 1}) as broker, asyncio.timeout(HANGS):
        yield broker


def program(word: str, broker: Broker) -> str:
    """The block that has a word of its own."""
    blocks = python_blocks("guide/produce.md", {LOCAL: broker.bootstrap_servers})
    (found,) = [block for block in blocks if word in block]
    return found


async def read(broker: Broker, count: int) -> list[kafkaio.Record]:
    async with kafkaio.Consumer(
        broker.bootstrap_servers, topics="orders", auto_offset_reset="earliest"
    ) as consumer:
        return [await anext(consumer) for _ in range(count)]


async def test_a_serializer_with_a_context(
    broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    await run_block(program("content-type", broker))
    assert capsys.readouterr().out == "orders 0\n"
    [record] = await read(broker, 1)
    assert record.value == b'{"id": 1}'
    assert record.headers == (("content-type", b"application/json"),)


async def test_a_serializer_that_is_awaited(broker: Broker) -> None:
    await run_block(program("class Sealed", broker))
    records = await read(broker, 2)
    assert [record.value for record in records] == [b"first!", b"second"]


async def test_a_function_that_is_called_with_the_outcome(
    broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    async with kafkaio.Producer(broker.bootstrap_servers) as producer:
        names = {"kafkaio": kafkaio, "producer": producer}
        found = await run_block(program("def report", broker), names)
        await found["delivery"]
        await asyncio.sleep(0)
    assert capsys.readouterr().out.startswith("written: RecordMetadata(topic='orders'")
