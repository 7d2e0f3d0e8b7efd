"""The former place of `Home`, `weakly` and `Closeable`: see `lifecycle`."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from kafkaio._runtime.lifecycle import Home, weakly

__all__ = ["Closeable", "Home", "weakly"]


class Closeable:
    """What must be closed; one that is forgotten while it is open says so.

    That may be while its loop runs, after it, or as the interpreter ends, and in any
    thread. Nothing that its loop runs may lead to it, or it would never be collected:
    background tasks hold its parts, and its methods by `weakly` alone.
    """

    def __del__(self, _warn: Callable[..., None] = warnings.warn) -> None:
        what = self._left_open()
        if what is not None:
            self._forgotten()
            _warn(
                f"{what} was started and never closed: use `async with`, or close()",
                ResourceWarning,
                source=self,
            )

    def _forgotten(self) -> None:
        """Have what would go on by itself end soon: see `Home.soon`."""

    def _left_open(self) -> str | None:
        """What is open, in words; None where nothing is, or if it is not even made."""
        raise NotImplementedError
