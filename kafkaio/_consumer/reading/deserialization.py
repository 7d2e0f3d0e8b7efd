"""Deserializes the records that are handed out, and lets a partition wait for it.

Most records are deserialized when they are handed out. If a deserializer returns a
coroutine, the partition is set aside, and the other partitions are read meanwhile. A
task awaits the coroutine, and goes on with the records that follow as long as these
need a coroutine as well: so a deserializer whose method is a coroutine function costs a
task for many records, and a partition has one look-up at a time, in order. What the
task has made waits in its `Ahead` until reading comes to it.

Whatever ends the reading of these records (a seek, a revocation, another subscription)
drops the partition's buffer, and with it the task and what it has made.

A record that cannot be deserialized is the next of its partition until the partition is
moved: its error is raised, the other partitions are read, and then it is tried again.
After an error that says nothing about the record, the partition is set aside for a
back-off first.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final
from weakref import ref

from kafkaio._config import ConsumerConfig, ShareConsumerConfig
from kafkaio._consumer.reading.buffers import Buffers, PartitionBuffer
from kafkaio._consumer.reading.deserializers import Deserializers, Pending, is_passing
from kafkaio._consumer.reading.preparation import Spawn
from kafkaio._machines.backoff import Backoff
from kafkaio._records.batch import RecordCursor
from kafkaio._runtime.clock import now, roll
from kafkaio._runtime.scopes import CancelScope
from kafkaio._runtime.time_slice import SLICE
from kafkaio.types import Record, TopicPartition

#: Most records of a partition, and most bytes of them, that are made ahead.
_MOST_RECORDS: Final = 256
_MOST_BYTES: Final = 2**20


class Ahead:
    """What is done for one partition while it waits, and the records made ahead.

    Args:
        buffer: the partition's buffer.

    Attributes:
        made: records that were made and not handed out, in order.
        pending: the record behind `made` that the task works on; None for none.
        failure: the offset of the record behind `made` that cannot be deserialized,
            and why; None without one.
        cursor: the records behind; None during a back-off.
        scope: cancels the task.
    """

    __slots__ = ("buffer", "cursor", "failure", "made", "owner", "pending", "scope")

    def __init__(self, owner: Deserialization, buffer: PartitionBuffer[Any]) -> None:
        self.owner: Deserialization = owner
        self.buffer: PartitionBuffer[Any] = buffer
        self.made: deque[Record] = deque()
        self.pending: Pending | None = None
        self.failure: tuple[int, Exception] | None = None
        self.cursor: RecordCursor | None = None
        self.scope: CancelScope = CancelScope()

    @property
    def at(self) -> int:
        """Offset of the record that the task works on; -1 for none."""
        return -1 if self.pending is None else self.pending.record.offset

    @property
    def is_current(self) -> bool:
        """Whether it was not dropped."""
        return self.buffer.ahead is self

    def detach(self) -> None:
        """Copy the bytes of the records behind, and release their fetch response."""
        if self.cursor is not None:
            self.cursor.detach()

    def drop(self) -> None:
        """End the task, and drop what it has made."""
        self.owner.forget(self)
        self.scope.cancel()
        if self.pending is not None:
            self.pending.close()  # unless the task is awaiting it, which ends by itself


class Deserialization:
    """Deserializes the records of a consumer as they are handed out.

    Args:
        config: the consumer's options.
        buffers: where the records are.
        interrupt: called when the next step must be a read by the core.
        on_ready: called when a partition can be read again.

    Attributes:
        deserializers: what is called for a record.
        backoff: the waits after errors that say nothing about a record.
        spawn: runs tasks.
    """

    def __init__(
        self,
        config: ConsumerConfig | ShareConsumerConfig,
        buffers: Buffers[Any],
        interrupt: Callable[[], None],
        on_ready: Callable[[], None],
    ) -> None:
        self.deserializers: Deserializers = Deserializers(config)
        self.spawn: Spawn | None = None
        self._buffers = buffers
        self._interrupt = interrupt
        self._on_ready = on_ready
        self._aheads: dict[TopicPartition, Ahead] = {}
        self.backoff: Backoff = Backoff(
            config.retry_backoff_ms,
            max(config.retry_backoff_ms, config.retry_backoff_max_ms),
        )
        # By partition: the offset of a record, and how often in a row it has failed for
        # a reason that passes.
        self._failed: dict[TopicPartition, tuple[int, int]] = {}
        # The last of these errors, the number of the attempt, and the back-off.
        self._last: tuple[Callable[[], BaseException | None], int, float] = (
            _nothing,
            0,
            0.0,
        )

    @property
    def convert(self) -> Callable[[Record], Record | None] | None:
        """What `Handout.convert` is to be; None if records stay as they are."""
        if self.deserializers.deserialize is None:
            return None
        return self.deserializers.without_waiting(self._refuse) or self._convert

    def start_over(self) -> None:
        """Drop what was made or failed: other deserializers are in use from now on."""
        for ahead in [*self._aheads.values()]:
            ahead.drop()
            self._buffers.bring_back(ahead.buffer)
        for buffer in self._buffers.ready:
            buffer.undeserialized = None
        self._failed.clear()
        self._on_ready()

    def forget(self, ahead: Ahead) -> None:
        """Drop what was made ahead; its task must not go on."""
        buffer = ahead.buffer
        if buffer.ahead is ahead:
            buffer.ahead = None
        if self._aheads.get(buffer.tp) is ahead:
            del self._aheads[buffer.tp]

    def forget_partition(self, tp: TopicPartition) -> None:
        """Note that a partition is not assigned any more."""
        self._failed.pop(tp, None)

    def raised(self, buffer: PartitionBuffer[Any], error: Exception) -> None:
        """Note that the error of a buffer's next record is being raised.

        If it says nothing about the record, the partition waits for a back-off.
        """
        tp = buffer.tp
        if not is_passing(error) or buffer.chunk is None or self.spawn is None:
            self._failed.pop(tp, None)
            return
        offset = buffer.chunk.next_offset
        before, count = self._failed.get(tp, (-1, 0))
        count = count + 1 if before == offset else 1
        self._failed[tp] = offset, count
        delay = self.backoff.delay(count - 1, roll())
        self._last = ref(error), count, delay

        async def wait() -> None:
            with ahead.scope:
                await asyncio.sleep(delay)
                self._bring_back(ahead)
                self.forget(ahead)

        ahead = self._set_aside(buffer)
        # The wait may be long: it must not keep a response of other partitions.
        self._buffers.detach(buffer)
        self.spawn(wait, "deserializer back-off")

    def passing(self, error: BaseException) -> tuple[int, float] | None:
        """Return what is known of an error that reading has raised.

        Returns:
            If it said nothing about its record: how many attempts have failed in a row,
            and the seconds before the next one. None for any other error.
        """
        raised, count, delay = self._last
        return (count, delay) if raised() is error else None

    # One record

    def _convert(self, record: Record) -> Record | None:
        # For `Handout.convert`: None if the record cannot be handed out now. Its buffer
        # was set aside then, or has an error to raise.
        if self._aheads:
            ahead = self._aheads.get(record.topic_partition)
            if ahead is not None and self._is_ahead(ahead, record.offset):
                return self._take_made(ahead, record)
        deserialize = self.deserializers.deserialize
        if deserialize is None:  # another subscription since
            return record
        try:
            made = deserialize(record)
        except Exception as error:  # noqa: BLE001  (raised when it is its turn)
            self._refuse(record, error)
            return None
        if type(made) is Pending:
            self._wait_for(made)
            return None
        return made  # type: ignore[return-value]  # a record

    def _is_ahead(self, ahead: Ahead, offset: int) -> bool:
        made = ahead.made
        while made and made[0].offset < offset:
            made.popleft()  # another way of reading took its record
        if made or ahead.at == offset:
            return True
        if ahead.failure is not None and ahead.failure[0] == offset:
            return True
        ahead.drop()
        return False

    def _take_made(self, ahead: Ahead, record: Record) -> Record | None:
        made = ahead.made
        if made:
            found = made.popleft()
            if not made and ahead.pending is None and ahead.failure is None:
                self.forget(ahead)
            return found
        if ahead.failure is not None:
            self.forget(ahead)
            self._refuse(record, ahead.failure[1])
            return None
        self._buffers.set_aside(ahead.buffer)
        self._interrupt()
        return None

    def _refuse(self, record: Record, error: Exception) -> None:
        buffer = self._buffers.get(record.topic_partition)
        if buffer is not None:  # else the deserializer itself has moved the partition
            buffer.undeserialized = error
        self._interrupt()

    # Waiting

    def _set_aside(self, buffer: PartitionBuffer[Any]) -> Ahead:
        ahead = self._aheads[buffer.tp] = buffer.ahead = Ahead(self, buffer)
        self._buffers.set_aside(buffer)
        self._interrupt()
        return ahead

    def _bring_back(self, ahead: Ahead) -> None:
        # Not if it was dropped: the buffer may wait for something else by now.
        if ahead.is_current and ahead.buffer.is_aside:
            self._buffers.bring_back(ahead.buffer)
            self._on_ready()

    def _wait_for(self, pending: Pending) -> None:
        buffer = self._buffers.get(pending.record.topic_partition)
        if buffer is None or buffer.chunk is None:
            pending.close()  # the deserializer itself has moved the partition
            self._interrupt()
            return
        assert self.spawn is not None, "who reads has a loop"
        ahead = self._set_aside(buffer)
        ahead.pending = pending
        ahead.cursor = buffer.chunk.copy()

        async def work() -> None:
            try:
                with ahead.scope:
                    if ahead.is_current:  # else it was dropped before it began
                        await self._make_ahead(ahead)
            finally:
                if ahead.pending is not None:
                    ahead.pending.close()

        try:
            self.spawn(work, "deserialize")
        except BaseException:
            pending.close()
            raise

    async def _make_ahead(self, ahead: Ahead) -> None:
        # One scope for all records: a scope costs as much as a coroutine.
        with CancelScope() as limit:
            await self._make_each(ahead, limit)
        late = ahead.pending
        if limit.cancelled_caught and late is not None:
            ahead.failure, ahead.pending = (late.record.offset, late.too_late()), None
        self._bring_back(ahead)
        if not ahead.made and ahead.failure is None:
            self.forget(ahead)

    async def _make_each(self, ahead: Ahead, limit: CancelScope) -> None:
        size, until, timeout = 0, now() + SLICE, self.deserializers.timeout
        while (pending := ahead.pending) is not None:
            record = pending.record
            moment = now()
            limit.deadline = moment + timeout
            if moment >= until:
                await asyncio.sleep(0)
                until = now() + SLICE
            try:
                made = await pending.unlimited()
            except Exception as error:  # noqa: BLE001  (raised when it is its turn)
                ahead.failure, ahead.pending = (record.offset, error), None
                return
            # The next one is known before anybody can ask for it.
            ahead.made.append(made)
            size += len(record.key or b"") + len(record.value or b"")
            ahead.pending = self._next_pending(ahead, record.offset, size)
            self._bring_back(ahead)

    def _next_pending(self, ahead: Ahead, offset: int, size: int) -> Pending | None:
        # Deserialize the next record; None if no coroutine is to be awaited for it.
        if len(ahead.made) >= _MOST_RECORDS or size >= _MOST_BYTES:
            return None
        if not ahead.is_current:
            return None
        deserialize, cursor = self.deserializers.deserialize, ahead.cursor
        record = None if cursor is None else next(cursor, None)
        while record is not None and record.offset <= offset:
            assert cursor is not None
            record = next(cursor, None)
        if record is None or deserialize is None:
            return None
        try:
            made = deserialize(record)
        except Exception as error:  # noqa: BLE001  (raised when it is its turn)
            ahead.failure = record.offset, error
            return None
        if type(made) is Pending:
            return made
        ahead.made.append(made)  # type: ignore[arg-type]  # a record
        return None


def _nothing() -> None:
    """Stand for an error that does not exist."""
