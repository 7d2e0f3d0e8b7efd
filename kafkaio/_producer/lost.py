"""Lost records: records that failed, and whose deliveries were never awaited.

They are found one receipt at a time, and a record that waits for metadata has a receipt
of its own. Records that are lost in the same iteration are counted, and reported as one
event for each partition: the log limits its warnings, so the one that is written has to
name all records.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias

from kafkaio._machines.accumulator import Receipt
from kafkaio.types import TopicPartition

#: Reports records of a partition: the error of the first one, and how many they are.
_Report: TypeAlias = Callable[[TopicPartition, BaseException, int], object]


class LostRecords:
    """Counts lost records until the event loop's next iteration.

    Args:
        report: reports those of one partition.
    """

    __slots__ = ("_counts", "_is_held", "_report")

    def __init__(self, report: _Report) -> None:
        self._report = report
        self._counts: dict[TopicPartition, tuple[BaseException, int]] = {}
        # Whether a flush follows.
        self._is_held = False

    def add(self, receipt: Receipt, count: int) -> None:
        """Note records of a failed receipt. The garbage collector may call it."""
        assert receipt.error is not None
        tp = TopicPartition(receipt.topic, receipt.partition)
        error, before = self._counts.get(tp, (receipt.error, 0))
        self._counts[tp] = error, before + count
        if self._is_held:
            return
        try:
            asyncio.get_running_loop().call_soon(self.flush)
        except RuntimeError:  # no loop runs in this thread, or it is closed
            self.flush()
        else:
            self._is_held = True

    def hold(self) -> None:
        """Report nothing before the next `flush`."""
        self._is_held = True

    def flush(self) -> None:
        """Report what was counted."""
        self._is_held = False
        counts, self._counts = self._counts, {}
        for tp, (error, count) in counts.items():
            self._report(tp, error, count)
