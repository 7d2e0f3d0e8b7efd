"""Progress of a stream of records: a line on stderr, at a terminal only."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

__all__ = ["Progress"]


class Progress:
    """Counts records, and shows them if a person looks at stderr; for ``with``.

    Args:
        title: what is done.
        total: records to come; None if nobody knows.
        is_shown: whether to show it at all, at a terminal.

    Attributes:
        records: records so far.
        size: their bytes so far.
    """

    def __init__(
        self, title: str, total: int | None = None, *, is_shown: bool = True
    ) -> None:
        self.records: int = 0
        self.size: int = 0
        self._title = title
        self._total = total
        self._is_shown = is_shown and sys.stderr.isatty()
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

    def add(self, records: int, size: int = 0) -> None:
        """Count records."""
        self.records += records
        self.size += size
        if self._bar is not None and self._task is not None:
            said = f"{self.records:,} records"
            self._bar.update(self._task, completed=self.records, said=said)

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as RichProgress

        self._bar = RichProgress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[said]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(self._title, total=self._total, said="")
        self._bar.start()
