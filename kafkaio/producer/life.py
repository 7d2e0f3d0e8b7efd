"""What starts, ends and fails a producer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum, auto
from functools import partial
from threading import get_ident
from types import TracebackType
from typing import Self

import anyio

from kafkaio._dataclass import dataclass
from kafkaio._machines.accumulator import (
    Accumulator,
    AccumulatorStatistics,
    ProduceBatch,
    Receipt,
)
from kafkaio._machines.sequence import ProducerIdentity
from kafkaio._runtime.clock import now
from kafkaio._runtime.ending import Ending
from kafkaio._runtime.unclosed import Closeable, Home, weakly
from kafkaio.client.cluster import Cluster
from kafkaio.config import ProducerConfig
from kafkaio.errors import ClosedError, InternalError
from kafkaio.producer.arguments import RecordMaker
from kafkaio.producer.assembly import make_accumulator
from kafkaio.producer.delivery import Delivery, settled, waits_at
from kafkaio.producer.room import Room
from kafkaio.producer.sender import Sender
from kafkaio.types import TopicPartition

__all__ = ["ProducerLife", "ProducerStatistics", "State"]

#: Seconds in which tasks that were cancelled must have ended.
_GRACE = 0.1


class State(Enum):
    """Where a producer is in its life; only RUNNING takes records."""

    NEW = auto()
    STARTING = auto()
    RUNNING = auto()
    CLOSING = auto()
    CRASHED = auto()
    CLOSED = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerStatistics:
    """A producer at one moment.

    Attributes:
        state: ``NEW``, ``STARTING``, ``RUNNING``, ``CLOSING``, ``CRASHED`` or
            ``CLOSED``.
        producer_id: the id that makes it idempotent, -1 while it has none.
        producer_epoch: the epoch of that id, -1 while it has none.
        waiting_for_room: calls of ``enqueue`` that wait for buffer room.
        buffer: what is buffered and on the wire.
    """

    state: str
    producer_id: int
    producer_epoch: int
    waiting_for_room: int
    buffer: AccumulatorStatistics


class ProducerLife(Closeable):
    """The part of `Producer` that starts, closes and tells its state."""

    def _set_up(
        self, config: ProducerConfig, cluster: Cluster, *, owns_cluster: bool
    ) -> None:
        self.config = config
        self._cluster = cluster
        self._owns_cluster = owns_cluster
        self._state = State.NEW
        self._failure: Exception | None = None
        self._identity = ProducerIdentity() if config.enable_idempotence else None
        self._accumulator = make_accumulator(
            config, self._identity, partial(_lost, cluster)
        )
        self._room = Room(self._accumulator, config.max_block_ms / 1000)
        self._make = RecordMaker(config).make
        # With serializers, what is passed is not what is taken in.
        self._is_plain = not (config.key_serializer or config.value_serializer)
        self._lanes = self._accumulator.lanes
        self._largest = min(config.max_request_size, config.buffer_memory)
        self._take = self._lanes.take if self._is_plain else _take_nothing
        self._sender: Sender | None = None
        self._now = now
        self._undo: list[Callable[[], None]] = []
        self._ending = Ending(f"{config.client_id}: close")
        self._home: Home | None = None

    def __repr__(self) -> str:
        buffer = self._accumulator.statistics()
        identity = self._identity and self._identity.current
        who = f" id={identity.producer_id}/{identity.epoch}" if identity else ""
        return (
            f"<Producer {self.config.client_id!r} {self._state.name}{who} | "
            f"{buffer.topics} topics | {buffer.waiting_batches} batches waiting, "
            f"{buffer.batches_on_wire} on the wire, {buffer.used_bytes} bytes>"
        )

    def statistics(self) -> ProducerStatistics:
        """The producer as it is now."""
        identity = self._identity.current if self._identity is not None else None
        return ProducerStatistics(
            state=self._state.name,
            producer_id=-1 if identity is None else identity.producer_id,
            producer_epoch=-1 if identity is None else identity.epoch,
            waiting_for_room=len(self._room),
            buffer=self._accumulator.statistics(),
        )

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Whoever leaves by an exception wants to be gone: records are waited for no
        # longer than one attempt may take.
        attempt = self.config.request_timeout_ms / 1000
        await self.close(None if error is None else attempt)

    def _left_open(self) -> str | None:
        state = getattr(self, "_state", State.NEW)
        if state in {State.NEW, State.CLOSING, State.CLOSED}:
            return None
        if self._home is None or self._home.is_elsewhere:
            return None
        return f"the producer {self.config.client_id!r}"

    def _forgotten(self) -> None:
        if self._home is not None:
            parts = (self._undo, self._accumulator, self._sender, self._cluster)
            self._home.soon(partial(_stop, *parts))
            self._home.soon(partial(self._room.fail, self._why_closed()))
            if self._owns_cluster:
                self._home.soon(self._cluster.abandon)

    async def start(self, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Connect to the cluster; returns when it has answered.

        If it fails or is cancelled, the producer is closed.

        Args:
            timeout: seconds; ``default_api_timeout_ms`` by default.

        Raises:
            BrokerNotAvailable: no bootstrap server answered in time.
            ClosedError: the producer was started before, or a shared client is not
                running.
        """
        if self._state is not State.NEW:
            raise ClosedError(f"{self!r} cannot be started again")
        self._state = State.STARTING
        self._home = home = Home(f"the producer {self.config.client_id!r}")
        home.on_fork = self._lanes.clear  # what is taken in is not sent from there
        self._lanes.belong(get_ident, home.check)
        self._accumulator.wait = waits_at(home)
        cluster = self._cluster
        # Asked for once: finding the running loop would cost more than its time does.
        self._now = asyncio.get_running_loop().time
        try:
            if self._owns_cluster:
                await cluster.start(timeout)
            sender = Sender(
                cluster, self.config, self._accumulator, self._identity, self._room
            )
            sender.on_end = weakly(self._sender_ended)
            sender.start()
            self._sender = sender
            self._undo.append(cluster.add_metadata_listener(sender.metadata_changed))
            self._undo.append(cluster.add_crash_listener(weakly(self._crashed)))
            sender.metadata_changed(cluster.view)
            self._state = State.RUNNING
        except BaseException:
            await self.close(timeout=0)
            raise
        cluster.observer.started("producer", self.config.client_id)

    async def close(self, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Send what was enqueued, then end. May be called again, and by several.

        From the call on, nothing more is taken in. When it returns, every delivery
        is done and every connection of its own client is closed. If the call is
        cancelled, what is not acknowledged fails at once, and the rest ends in the
        background if the call is cancelled again; another call waits for that.

        Args:
            timeout: seconds to wait for acknowledgements; what has none by then
                fails with ClosedError, though it may have been written. By default
                ``delivery_timeout_ms`` is the limit, as for every record.
        """
        if self._state in {State.CLOSING, State.CLOSED}:
            await self._ending.wait()
            return
        flushes = self._state is State.RUNNING and timeout != 0
        deadline = None if timeout is None else now() + timeout
        self._state = State.CLOSING
        self._room.fail(self._why_closed())
        await self._ending.begin(
            partial(self._flush_within, timeout) if flushes else None,
            partial(self._end, deadline),
        )

    async def _flush_within(self, limit: float | None) -> None:
        with anyio.move_on_after(limit):
            await self._flush()

    async def _end(self, deadline: float | None) -> None:
        self._abandon()
        try:
            if self._sender is not None:
                with anyio.move_on_after(_GRACE):
                    await self._sender.stopped()
        finally:
            was_open = self._state is not State.CLOSED and self._home is not None
            self._state = State.CLOSED
            if self._owns_cluster:
                left = None if deadline is None else max(0.0, deadline - now())
                await self._cluster.close(left)
            if was_open:
                self._cluster.observer.closed("producer", self.config.client_id)

    def _abandon(self) -> None:
        """Fail what is left, and begin to end the tasks."""
        _stop(self._undo, self._accumulator, self._sender, self._cluster)

    def _crashed(self, cause: BaseException) -> None:
        if self._state not in {State.RUNNING, State.CLOSING}:
            return
        if isinstance(cause, ClosedError):  # it was ended, with its loop perhaps
            self._give_up(ClosedError(str(cause)))
            return
        error = InternalError(
            f"a background task of the producer {self.config.client_id!r} crashed: "
            f"{type(cause).__name__}: {cause}"
        )
        error.__cause__ = cause
        self._give_up(error)

    def _sender_ended(self) -> None:
        if self._state is State.RUNNING:
            self._give_up(ClosedError("the producer's client was closed"))

    def _give_up(self, error: Exception) -> None:
        if self._failure is None:
            self._failure = error
        if self._state is State.RUNNING:
            self._state = State.CRASHED
        self._room.fail(self._failure)
        self._accumulator.fail_all(lambda _: error)

    def _why_closed(self) -> Exception:
        if self._failure is not None:
            return self._failure
        if self._state is State.NEW:
            return ClosedError(
                "the producer is not started: use `async with` or start()"
            )
        return ClosedError(f"the producer {self.config.client_id!r} is closed")

    async def _flush(self) -> None:
        receipts = self._accumulator.seal()
        self._wake()
        await settled(receipts)

    def _check_running(self) -> None:
        if self._home is not None:
            self._home.check()
        if self._state is not State.RUNNING:
            raise self._why_closed()

    def _wake(self) -> None:
        if self._sender is not None:
            self._sender.wake()


# What follows takes parts of a producer, which may be gone already.


def _stop(
    undo: list[Callable[[], None]],
    accumulator: Accumulator,
    sender: Sender | None,
    cluster: Cluster,
) -> None:
    for step in undo:
        step()
    undo.clear()
    accumulator.fail_all(_not_sent)
    if sender is not None:
        sender.stop()
        cluster.watch_topics(sender, None)


def _not_sent(batch: ProduceBatch | None) -> Exception:
    if batch is None or not batch.attempts:
        how = "before the record was sent"
    else:
        how = "before the record was acknowledged; it may have been written"
    error = ClosedError(f"the producer was closed {how}")
    if batch is not None:
        error.__cause__ = batch.cause
    return error


def _lost(cluster: Cluster, receipt: Receipt, count: int) -> None:
    assert receipt.error is not None
    tp = TopicPartition(receipt.topic, receipt.partition)
    cluster.observer.delivery_lost(tp, receipt.error, count)


def _take_nothing(*_: object) -> Delivery | None:
    return None
