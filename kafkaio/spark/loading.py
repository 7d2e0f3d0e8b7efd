"""Modules loaded without garbage collections.

A process that Spark starts has tens of thousands of objects before any of ours, and
loading modules makes enough new ones to set off several collections of all of them.
Those take longer than the modules do, and find nothing.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["loading"]


@contextmanager
def loading() -> Iterator[None]:
    """Collect no garbage while the block imports."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
