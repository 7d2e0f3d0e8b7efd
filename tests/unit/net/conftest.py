"""Connections are tested on the in-memory network under a clock that jumps."""

import asyncio
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec

import pytest

from tests.virtual_loop import VirtualClockLoop

REAL_LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop
}
if find_spec("uvloop") is not None:  # an optional dependency
    REAL_LOOPS["uvloop"] = import_module("uvloop").new_event_loop


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    if item.path.name.startswith("test_transport"):  # has real sockets
        return REAL_LOOPS
    if item.path.name == "test_hostile.py":  # measures real time
        return {"asyncio": asyncio.new_event_loop}
    return {"virtual": VirtualClockLoop}
