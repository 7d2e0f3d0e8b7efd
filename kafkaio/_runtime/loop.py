"""The running event loop; where none of asyncio runs, an error that says what does."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress

from kafkaio.errors import UsageError


def running_loop() -> asyncio.AbstractEventLoop:
    """Return the running event loop of asyncio.

    Raises:
        UsageError: none runs, for example because trio does.
    """
    with suppress(RuntimeError):
        return asyncio.get_running_loop()
    if _is_in_trio():
        raise UsageError(
            "kafkaio runs on asyncio, and trio runs here: use asyncio.run(...), or "
            "anyio.run(...) with backend='asyncio'"
        )
    raise UsageError("kafkaio runs on asyncio, and no event loop of asyncio runs here")


def _is_in_trio() -> bool:
    trio = sys.modules.get("trio")
    if trio is None:
        return False
    try:
        trio.lowlevel.current_task()
    except (AttributeError, RuntimeError):
        return False
    return True
