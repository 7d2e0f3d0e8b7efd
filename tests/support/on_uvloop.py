"""A plugin that runs asynchronous tests on uvloop.

``pytest -p tests.support.on_uvloop`` loads it. A conftest.py that chooses
loops itself decides for its own tests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest

from tests.support.loops import REAL_LOOPS


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run every test on uvloop alone."""
    del config, item
    return {"uvloop": REAL_LOOPS["uvloop"]}
