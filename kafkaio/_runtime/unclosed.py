"""A word to who forgets to close something, as transports of asyncio have it."""

from __future__ import annotations

import warnings
from collections.abc import Callable

__all__ = ["Closeable"]


class Closeable:
    """What must be closed; one that is forgotten while it is open says so.

    That may be while its loop runs, after it, or as the interpreter ends, and in any
    thread.
    """

    def __del__(self, _warn: Callable[..., None] = warnings.warn) -> None:
        what = self._left_open()
        if what is not None:
            self._abandon()
            _warn(
                f"{what} was started and never closed: use `async with`, or close()",
                ResourceWarning,
                source=self,
            )

    def _abandon(self) -> None:
        """End what would go on by itself, and wait for nothing."""

    def _left_open(self) -> str | None:
        """What is open, in words; None where nothing is, or if it is not even made."""
        raise NotImplementedError
