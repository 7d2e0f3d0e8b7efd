"""The fixtures of the pytest plugin under anyio's plugin, on both loops of asyncio."""

from __future__ import annotations

import asyncio
import importlib.util
from typing import Any

import pytest

import kafkaio
from tests.crowded.conftest import CROWD
from tests.support.patience import HANGS

BACKENDS = [
    pytest.param(("asyncio", {"use_uvloop": False}), id="asyncio"),
    pytest.param(("asyncio", {"use_uvloop": True}), id="uvloop"),
]


@pytest.fixture(params=BACKENDS)
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_the_crowd_is_there(request: pytest.FixtureRequest) -> None:
    assert [module.__name__ for module in CROWD] == [
        "httpx",
        "sniffio",
        "trio",
        "uvloop",
    ]
    assert importlib.util.find_spec("fastapi") is not None
    assert request.config.pluginmanager.hasplugin("anyio")


@pytest.mark.anyio
async def test_a_round_trip(
    anyio_backend: tuple[str, dict[str, bool]],
    kafka_producer: kafkaio.Producer,
    kafka_consumer: kafkaio.Consumer,
    kafka_topic: str,
) -> None:
    is_uvloop = type(asyncio.get_running_loop()).__module__.startswith("uvloop")
    assert is_uvloop is anyio_backend[1]["use_uvloop"]
    sent = await kafka_producer.send(kafka_topic, b"one")
    async with asyncio.timeout(HANGS):
        record = await anext(kafka_consumer)
    assert (record.value, record.offset) == (b"one", sent.offset)
