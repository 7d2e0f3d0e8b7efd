"""Progress of a command that takes long: a line on stderr, at a terminal only."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress, TaskID


class ProgressBar:
    """Counts records or other items, and shows a bar; a context manager.

    Args:
        title: the text beside the bar.
        total: the number of items; None if it is unknown.
        unit: the name of the items.
        is_shown: whether to show the bar if stderr is a terminal.

    Attributes:
        done: the number of items done.
    """

    def __init__(
        self,
        title: str,
        total: int | None = None,
        *,
        unit: str = "records",
        is_shown: bool = True,
    ) -> None:
        self.done: int = 0
        self._unit = unit
        self._title = title
        self._total = total
        # stderr decides, because the bar is drawn there; stdout may be a file.
        self._is_shown = is_shown and sys.stderr.isatty()
        # None unless it is shown: rich is imported only for a bar.
        self._bar: RichProgress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        if self._is_shown:
            self._start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def add(self, count: int) -> None:
        """Count more items."""
        self.done += count
        if self._bar is not None and self._task is not None:
            said = f"{self.done:,} {self._unit}"
            self._bar.update(self._task, completed=self.done, said=said)

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress as RichProgress,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        self._bar = RichProgress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[said]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            # The bar disappears at the end, so results are not mixed with it.
            transient=True,
        )
        self._task = self._bar.add_task(self._title, total=self._total, said="")
        self._bar.start()
