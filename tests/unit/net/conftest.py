"""Connections are tested on the in-memory network under a clock that jumps."""

import asyncio
from collections.abc import Callable, Mapping

import pytest

from tests.fakes.virtual_loop import VirtualClockLoop


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    if item.path.name == "test_transport.py":  # has real sockets
        return {"real": asyncio.new_event_loop}
    return {"virtual": VirtualClockLoop}
