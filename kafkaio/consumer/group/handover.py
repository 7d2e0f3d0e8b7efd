"""What a membership has its consumer do, one thing after another.

The consumer may take its time: it commits, and it awaits the user's callbacks. It is
given its calls in the order in which the machine decided them, beside the heartbeats.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol, TypeAlias

import anyio

from kafkaio._machines.membership import effects as fx
from kafkaio._machines.membership.protocol import Effects, Membership
from kafkaio._runtime.clock import now
from kafkaio._runtime.wakeup import Wakeup
from kafkaio.client.broadcast import Broadcast
from kafkaio.errors import KafkaError
from kafkaio.types import TopicPartition

__all__ = ["CallbackQueue", "GroupHost"]

_Call: TypeAlias = fx.Revoke | fx.Assign | fx.Lose


class GroupHost(Protocol):
    """The consumer whose partitions a group decides about."""

    def revoke_requested(
        self, partitions: frozenset[TopicPartition], deadline: float
    ) -> None:
        """The group asks for these: hand out no more; their commits stay valid."""
        ...

    def stop_handing_out(self, partitions: frozenset[TopicPartition]) -> None:
        """These are gone, as will be told later: hand out no more."""
        ...

    def idle(self, partitions: frozenset[TopicPartition]) -> frozenset[TopicPartition]:
        """Those of these that need no further step of the user to be given up."""
        ...

    def failed(self, error: KafkaError) -> None:
        """Raise this where the user calls next; the membership goes on."""
        ...

    async def revoking(self, partitions: frozenset[TopicPartition]) -> None:
        """Commit what is finished of these and call back; then they are given up."""
        ...

    async def lost(self, partitions: frozenset[TopicPartition]) -> None:
        """These are gone; call back."""
        ...

    async def assigned(
        self, added: frozenset[TopicPartition], owned: frozenset[TopicPartition]
    ) -> None:
        """Start with the added ones, out of all that are owned now; call back."""
        ...


class CallbackQueue:
    """Calls the host in order, and tells the machine when a revoke has ended."""

    def __init__(
        self,
        host: GroupHost,
        member: Membership,
        feed: Callable[[Effects], None],
        joined: Callable[[], None],
    ) -> None:
        self._host = host
        #: Whose decisions are carried out; replaced before it has made any.
        self.member = member
        self._feed = feed
        self._joined = joined
        self._calls: deque[_Call] = deque()
        self._wakeup = Wakeup()
        self._drained = Broadcast()
        self._is_calling = False
        self._revoking: anyio.CancelScope | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a call is under way or waits for its turn."""
        return self._is_calling or bool(self._calls)

    def put(self, call: _Call) -> None:
        """Have this done after all that was put before."""
        self._calls.append(call)
        self._wakeup.notify()

    def hurry(self) -> None:
        """Cut short a revoke that is under way."""
        if self._revoking is not None:
            self._revoking.cancel()

    async def drained(self) -> None:
        """Wait until everything is done."""
        while self.is_busy:
            await self._drained.wait()

    async def run(self) -> None:
        """Do what there is to do, for ever."""
        while True:
            while self._calls:
                self._is_calling = True
                try:
                    await self._perform(self._calls.popleft())
                finally:
                    self._is_calling = False
            self._drained.tell()
            await self._wakeup.wait(None)

    async def _perform(self, call: _Call) -> None:
        match call:
            case fx.Revoke():
                await self._revoke(call)
            case fx.Assign(added, owned):
                await self._host.assigned(added, owned)
                self._joined()
            case fx.Lose(partitions):
                await self._host.lost(partitions)

    async def _revoke(self, call: fx.Revoke) -> None:
        # What was lost while this waited for its turn is not ours to commit.
        numbers = self.member.ledger.numbers
        still = frozenset(tp for tp, n in call.claims if numbers.get(tp) == n)
        scope = self._revoking = anyio.CancelScope(deadline=call.deadline)
        if still:
            with scope:
                await self._host.revoking(still)
        in_time = not scope.cancelled_caught
        self._feed(self.member.revoke_ended(call.claims, now(), in_time=in_time))
