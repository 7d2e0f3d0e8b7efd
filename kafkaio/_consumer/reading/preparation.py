"""Decompresses large batches before their turn, so that the event loop is not blocked.

A batch of up to some megabytes is decompressed when it is read. A larger one is set
aside: the other partitions are read meanwhile, and a task decompresses it in slices,
with a turn of the event loop after each. The task works on one batch at a time, so only
one batch that is not being read yet takes memory beyond its compressed size.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, TypeAlias

from kafkaio._consumer.reading.buffers import Buffers, PartitionBuffer
from kafkaio._fetching.parts import AT_ONCE, SLICE
from kafkaio._records.batch import Batch
from kafkaio._runtime.supervisor import Child
from kafkaio.errors import CorruptRecord, RecordTooLarge

#: Runs a task, under a name, until the consumer closes.
Spawn: TypeAlias = Callable[[Child, str], None]


class Preparation:
    """The batches that are decompressed in the background.

    Args:
        buffers: where the batches are.
        on_ready: called when a partition can be read again.
        on_failure: called with a partition's buffer and the reason why its first batch
            cannot be decompressed.

    Attributes:
        spawn: runs the task; None to decompress at once, without a task.
    """

    def __init__(
        self,
        buffers: Buffers[Any],
        on_ready: Callable[[], None],
        on_failure: Callable[
            [PartitionBuffer[Any], CorruptRecord | RecordTooLarge], None
        ],
    ) -> None:
        self.spawn: Spawn | None = None
        self._buffers = buffers
        self._on_ready = on_ready
        self._on_failure = on_failure
        self._waiting: deque[PartitionBuffer[Any]] = deque()
        self._is_running = False

    def is_ready(self, buffer: PartitionBuffer[Any]) -> bool:
        """Whether the first batch of a buffer can be read now.

        Otherwise the buffer was set aside.

        Raises:
            CorruptRecord: the batch cannot be decompressed.
            RecordTooLarge: it decompresses to more than the limit.
        """
        batch = buffer.batches[0][0]
        if batch.prepare(AT_ONCE) or self.spawn is None:
            return True
        self._buffers.set_aside(buffer)
        self._waiting.append(buffer)
        # The task ends when its queue is empty, so an idle consumer has none.
        if not self._is_running:
            self._is_running = True
            self.spawn(self._run, "decompress")
        return False

    async def _run(self) -> None:
        try:
            while self._waiting:
                await self._prepare(self._waiting.popleft())
        finally:
            # No await since the loop found the queue empty: no buffer is left behind.
            self._is_running = False

    async def _prepare(self, buffer: PartitionBuffer[Any]) -> None:
        batch = buffer.batches[0][0]
        try:
            while self._is_wanted(buffer, batch):
                if batch.prepare(SLICE):
                    break
                await asyncio.sleep(0)
        except (CorruptRecord, RecordTooLarge) as error:
            self._on_failure(buffer, error)
        self._buffers.bring_back(buffer)
        self._on_ready()

    def _is_wanted(self, buffer: PartitionBuffer[Any], batch: Batch) -> bool:
        # A seek or a revocation drops the buffer while other tasks run.
        is_kept = self._buffers.get(buffer.tp) is buffer
        return is_kept and buffer.batches[0][0] is batch
