"""Connections are tested on the in-memory network under a clock that jumps."""

import asyncio
from collections.abc import Callable, Mapping

import pytest

from tests.support.loops import REAL_LOOPS
from tests.virtual_loop import VirtualClockLoop


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    if item.path.name.startswith("test_transport"):  # has real sockets
        return REAL_LOOPS
    if item.path.name == "test_hostile.py":  # measures real time
        return {"asyncio": asyncio.new_event_loop}
    return {"virtual": VirtualClockLoop}
