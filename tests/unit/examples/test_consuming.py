"""The programs in the guide's page on consuming run as they are printed there."""

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
    blocks = python_blocks("guide/consume.md", {LOCAL: broker.bootstrap_servers})
    (found,) = [block for block in blocks if word in block]
    return found


async def test_a_deserializer_with_a_context(
    broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    async with kafkaio.Producer(broker.bootstrap_servers) as producer:
        headers = [("content-type", b"application/json")]
        await producer.send("orders", b'{"id": 1}', headers=headers)
    await run_block(program("content-type", broker))
    assert capsys.readouterr().out == "{'id': 1}\n"


async def test_a_deserializer_that_is_awaited(
    broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    async with kafkaio.Producer(broker.bootstrap_servers) as producer:
        await producer.send_many("orders", [b"first!", b"second!"])
    await run_block(program("class Sealed", broker))
    assert capsys.readouterr().out == "[b'first', b'second']\n"
