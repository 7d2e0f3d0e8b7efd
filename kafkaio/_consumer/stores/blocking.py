"""Runs the blocking reads and writes of an offset store in threads.

A thread cannot be cancelled: the write of a caller that was cancelled goes on, or even
begins when later callers have written already. So each commit gets a number when it is
called for, and a write leaves out the partitions that a later commit has written.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from functools import partial
from itertools import count
from typing import TypeAlias

from kafkaio._runtime.own_thread import in_thread
from kafkaio.types import GroupMetadata, OffsetAndMetadata, TopicPartition

_Offsets: TypeAlias = dict[TopicPartition, OffsetAndMetadata]


class ThreadedStore:
    """Makes the calls of an `OffsetStore` by functions that block.

    Writes follow one another, and none writes over a later one of its partition.

    Args:
        read: reads the offsets of a group; called in a thread.
        write: writes the offsets of a group; called in a thread, one call at a time.
    """

    def __init__(
        self,
        read: Callable[[str, Collection[TopicPartition]], _Offsets],
        write: Callable[[str, _Offsets], None],
    ) -> None:
        self._read = read
        self._write = write
        self._lock = threading.Lock()
        self._numbers = count(1)
        # The number of the last commit that was written, by group and partition.
        self._written: dict[tuple[str, TopicPartition], int] = {}

    async def load(
        self, group: GroupMetadata, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """Read the offsets that there are.

        Raises:
            Exception: raised by reading.
        """
        chosen = tuple(partitions)
        read = partial(self._read, group.group_id, chosen)
        return await in_thread(read, "kafkaio reads offsets")

    async def commit(
        self, group: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None:
        """Write offsets, after those of earlier calls that were not cancelled.

        If the call is cancelled, they may still be written, but never over the offsets
        of a later call.

        Raises:
            Exception: raised by writing.
        """
        # Here, in the order of the calls: threads begin in any order.
        number = next(self._numbers)
        write = partial(self._write_newer, number, group.group_id, dict(offsets))
        await in_thread(write, "kafkaio writes offsets")

    def _write_newer(self, number: int, group_id: str, offsets: _Offsets) -> None:
        with self._lock:
            newer = {
                tp: at
                for tp, at in offsets.items()
                if self._written.get((group_id, tp), 0) < number
            }
            # Before the write, so that a write which fails halfway is not followed by
            # an older one.
            self._written |= {(group_id, tp): number for tp in newer}
            self._write(group_id, newer)
