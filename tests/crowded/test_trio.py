"""On trio, each public class says that kafkaio runs on asyncio."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest
import trio

import kafkaio
from kafkaio.testing import Broker

ENTRIES: list[Callable[[], Any]] = [
    lambda: kafkaio.Client("localhost:9092"),
    lambda: kafkaio.Producer("localhost:9092"),
    lambda: kafkaio.Consumer("localhost:9092", topics="t"),
    lambda: kafkaio.Consumer("localhost:9092", topics="t", io_thread=True),
    lambda: kafkaio.Admin("localhost:9092"),
    Broker,
]


@pytest.mark.parametrize("make", ENTRIES)
def test_it_says_what_it_needs(make: Callable[[], Any]) -> None:
    async def enter() -> None:
        async with make():
            pass

    for run in (lambda: trio.run(enter), lambda: anyio.run(enter, backend="trio")):
        with pytest.raises(kafkaio.UsageError, match="asyncio, and trio runs here"):
            run()
