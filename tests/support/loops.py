"""The event loops that kafkaio runs on, for tests on the real clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec

__all__ = ["REAL_LOOPS"]

REAL_LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop
}
if find_spec("uvloop") is not None:  # an optional dependency
    REAL_LOOPS["uvloop"] = import_module("uvloop").new_event_loop
