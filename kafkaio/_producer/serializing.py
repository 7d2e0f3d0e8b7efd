"""Calls that wait for a serializer, and those behind them, in the order of the calls.

A serializer may return an awaitable, which is awaited in the task of the call. Records
of one topic are written in the order of the calls, so a later call for the same topic
waits until its turn has come, also if its record is serialized already. Calls for other
topics pass.

Invariant: while a call of a topic waits, no later record of the topic is taken in. So
every call with a record asks `SerializerWaits.waiting` first, and the gate's barrier
keeps records out of the open batches, which do not ask.

Invariant: a call that fails leaves the queue in the same step, also if its serializer
goes on, and each serializer has a limit. So a call that waits for its turn needs none:
the calls before it came earlier, and so have left earlier than its own limit.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Collection, Mapping
from functools import partial
from typing import Protocol, TypeVar

from kafkaio._machines.accumulator import Barrier
from kafkaio._records._layout import twin_of
from kafkaio._runtime.scopes import CancelScope
from kafkaio.errors import KafkaTimeout

T = TypeVar("T")


class GatePort(Protocol):
    """The gate of the accumulator."""

    def raise_barrier(self, barrier: Barrier) -> None:
        """Send all records through the accumulator until the barrier is removed."""

    def remove_barrier(self, barrier: Barrier) -> None:
        """Let batches be leased again, unless there is another barrier."""


class WaitingCall:
    """A call of which the record is not taken in yet."""

    __slots__ = ("deadline", "error", "has_left", "owner", "scope", "topic", "turn")

    def __init__(self, topic: str, owner: object, deadline: float) -> None:
        self.topic: str = topic
        self.owner: object = owner
        self.deadline: float = deadline
        #: Why it failed while it waited.
        self.error: Exception | None = None
        self.has_left: bool = False
        #: At most one of them is set: it waits for a serializer, or for its turn.
        self.scope: CancelScope | None = None
        self.turn: asyncio.Future[None] | None = None


class SerializerWaits:
    """The calls of one producer that wait for a serializer, or behind one that does.

    Args:
        gate: closed to records past the accumulator while calls wait.
        max_block: longest wait of one call, in seconds.

    Attributes:
        waiting: the topics for which calls wait, with these in their order.
    """

    __slots__ = ("_gate", "_max_block", "_queues", "waiting")

    def __init__(self, gate: GatePort, max_block: float) -> None:
        self._gate = gate
        self._max_block = max_block
        # Calls that have left behind the first one stay until they come to the front,
        # or each cancellation would cost as much as the queue is long. The first one
        # has not left, and no queue is empty.
        self._queues: dict[str, deque[WaitingCall]] = {}
        self.waiting: Mapping[str, Collection[WaitingCall]] = self._queues

    def enter(self, topic: str, owner: object) -> WaitingCall:
        """Let a call wait, behind those of its topic; it has to `leave` in the end.

        Args:
            topic: name of the topic.
            owner: for `fail_those_of`.
        """
        queue = self._queues.get(topic)
        if queue is None:
            if not self._queues:
                self._gate.raise_barrier(Barrier.SERIALIZER)
            queue = self._queues[topic] = deque()
        deadline = asyncio.get_running_loop().time() + self._max_block
        call = WaitingCall(topic, owner, deadline)
        queue.append(call)
        return call

    def leave(self, call: WaitingCall) -> None:
        """Let the next call of the topic have its turn."""
        if call.has_left:
            return
        call.has_left = True
        queue = self._queues[call.topic]
        if queue[0] is not call:
            return
        while queue and queue[0].has_left:
            queue.popleft()
        if queue:
            turn = queue[0].turn
            if turn is not None and not turn.done():
                turn.set_result(None)
            return
        del self._queues[call.topic]
        if not self._queues:
            self._gate.remove_barrier(Barrier.SERIALIZER)

    async def result(self, call: WaitingCall, awaited: Awaitable[T]) -> T:
        """Await a serializer for a call.

        Raises:
            KafkaTimeout: the call waits for longer than ``max_block_ms``.
            ClosedError: the producer was closed.
            KafkaError: the transaction of the call has ended.
            Exception: the serializer raised it.
        """
        with CancelScope() as scope:
            call.scope = scope
            timer = asyncio.get_running_loop().call_at(
                call.deadline, partial(self._time_out, call)
            )
            try:
                result = await awaited
            finally:
                timer.cancel()
                call.scope = None
            if call.error is None:
                return result
        # Or it has swallowed its cancellation: its turn is over all the same.
        assert call.error is not None
        raise call.error

    async def turn(self, call: WaitingCall) -> None:
        """Wait until the calls before have left, which were for the same topic.

        Raises:
            ClosedError: the producer was closed.
            KafkaError: the transaction of the call has ended.
        """
        if self._queues[call.topic][0] is call:
            return
        call.turn = asyncio.get_running_loop().create_future()
        try:
            await call.turn
        finally:
            call.turn = None

    async def passed(self, topics: Collection[str], owner: object) -> None:
        """Wait until the calls for some topics that wait now have left.

        Raises:
            KafkaError: as `turn`.
        """
        for topic in topics:
            if topic in self._queues:
                call = self.enter(topic, owner)
                try:
                    await self.turn(call)
                finally:
                    self.leave(call)

    def fail_those_of(self, owner: object, error: Exception) -> None:
        """Fail the calls of one owner, such as a transaction that has ended."""
        for queue in list(self._queues.values()):
            for call in [call for call in queue if call.owner is owner]:
                self._fail(call, twin_of(error))

    def fail_all(self, error: Exception) -> None:
        """Fail all calls that wait."""
        for queue in list(self._queues.values()):
            for call in list(queue):
                self._fail(call, twin_of(error))

    def _time_out(self, call: WaitingCall) -> None:
        limit = f"max_block_ms={self._max_block * 1000:g}"
        message = (
            f"a serializer of the topic {call.topic!r} was not done within {limit}"
        )
        self._fail(call, KafkaTimeout(message))

    def _fail(self, call: WaitingCall, error: Exception) -> None:
        if call.error is not None:
            return
        call.error = error
        self.leave(call)
        if call.scope is not None:
            call.scope.cancel()
        elif call.turn is not None and not call.turn.done():
            call.turn.set_exception(error)
