"""The queue of calls that a member makes to its consumer: assign, revoke, lose.

A member's machine decides at once, but the consumer may take its time: it commits, and
it awaits the user's callbacks. `CallbackQueue` makes the calls one after another, in
the order of the machine's decisions, in a task beside the heartbeats.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol, TypeAlias

from kafkaio._machines.membership import effects as fx
from kafkaio._machines.membership.protocol import Effects, Membership
from kafkaio._runtime.broadcast import Broadcast
from kafkaio._runtime.clock import now
from kafkaio._runtime.scopes import CancelScope
from kafkaio._runtime.wakeup import Wakeup
from kafkaio.errors import KafkaError
from kafkaio.types import TopicPartition

_Call: TypeAlias = fx.Revoke | fx.Assign | fx.Lose


class AssignmentPort(Protocol):
    """The consumer whose partitions the group assigns and revokes.

    The synchronous methods are called as soon as the machine has decided. The others
    are awaited in the order of its decisions.
    """

    def revoke_requested(
        self, partitions: frozenset[TopicPartition], deadline: float
    ) -> None:
        """The group requests these: stop handing them out; commits stay valid."""
        ...

    def stop_handing_out(self, partitions: frozenset[TopicPartition]) -> None:
        """These are lost, and `lost` will follow: stop handing them out now."""
        ...

    def idle(self, partitions: frozenset[TopicPartition]) -> frozenset[TopicPartition]:
        """Those of these that can be released without a further step of the user."""
        ...

    def failed(self, error: KafkaError) -> None:
        """Raise this from the user's next call; the membership goes on."""
        ...

    async def revoking(self, partitions: frozenset[TopicPartition]) -> None:
        """Commit finished records of these and call back; then they are released."""
        ...

    async def lost(self, partitions: frozenset[TopicPartition]) -> None:
        """These are lost; call back."""
        ...

    async def assigned(
        self, added: frozenset[TopicPartition], owned: frozenset[TopicPartition]
    ) -> None:
        """``added`` are new among ``owned``: start with them, and call back."""
        ...


class CallbackQueue:
    """Calls the listener in order, and reports to the machine when a revoke has ended.

    Args:
        listener: the consumer.
        member: the machine whose decisions are carried out.
        feed: performs the effects of the machine.
        joined: called when an assignment was taken over, callback included.
        drained: called when every call has been made.
    """

    def __init__(
        self,
        listener: AssignmentPort,
        member: Membership,
        feed: Callable[[Effects], None],
        *,
        joined: Callable[[], None],
        drained: Callable[[], None],
    ) -> None:
        self._listener = listener
        #: The machine; a fallback to the other protocol replaces it before it has
        #: decided anything.
        self.member = member
        self._feed = feed
        self._joined = joined
        self._on_drained = drained
        self._calls: deque[_Call] = deque()
        self._wakeup = Wakeup()
        self._drained = Broadcast()
        self._is_calling = False
        # Ends the revoke that is under way.
        self._revoking: CancelScope | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a call is under way or queued."""
        return self._is_calling or bool(self._calls)

    def put(self, call: _Call) -> None:
        """Make this call after all that were put before."""
        self._calls.append(call)
        self._wakeup.notify()

    def cancel_revoke(self) -> None:
        """Cancel the revoke that is under way, if one is."""
        if self._revoking is not None:
            self._revoking.cancel()

    async def drained(self) -> None:
        """Wait until every call has been made."""
        while self.is_busy:
            await self._drained.wait()

    async def run(self) -> None:
        """Make the calls, until cancelled."""
        while True:
            while self._calls:
                # A call that has left the queue counts until it has ended: a member
                # that leaves waits for it.
                self._is_calling = True
                try:
                    await self._perform(self._calls.popleft())
                finally:
                    self._is_calling = False
            self._on_drained()
            self._drained.notify_all()
            await self._wakeup.wait(None)

    async def _perform(self, call: _Call) -> None:
        match call:
            case fx.Revoke():
                await self._revoke(call)
            case fx.Assign(added, owned):
                await self._listener.assigned(added, owned)
                self._joined()
            case fx.Lose(partitions):
                await self._listener.lost(partitions)

    async def _revoke(self, call: fx.Revoke) -> None:
        # Partitions that were lost while this call was queued must not be committed.
        numbers = self.member.ledger.numbers
        still = frozenset(tp for tp, n in call.claims if numbers.get(tp) == n)
        scope = self._revoking = CancelScope(deadline=call.deadline)
        if still:
            with scope:
                await self._listener.revoking(still)
        in_time = not scope.cancelled_caught
        self._feed(self.member.revoke_ended(call.claims, now(), in_time=in_time))
