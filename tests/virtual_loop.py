"""Tests on virtual time: see `tests.sim.loop`.

To opt in, a conftest.py imports ``pytest_asyncio_loop_factories`` from here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest

from tests.sim.loop import VirtualClockLoop

__all__ = ["VirtualClockLoop", "pytest_asyncio_loop_factories"]


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run every asynchronous test below the importing conftest.py on virtual time."""
    del config, item
    return {"virtual": VirtualClockLoop}
