"""The events of rebalances, and holds, which delay a revocation.

A partition leaves a member in three steps. The group requests its revocation
(`RevokeRequested`): none of its records is handed out any more, but commits of it are
still accepted. When the user is done with it, it is released (`Revoked`): finished
records are committed, the callback is called, and another member may have it. If that
does not happen before the deadline, or the group goes on without this member, it is
`Lost`, and no commit of it is accepted any more.

A `Hold` keeps a partition in the first step. It is bound to one assignment (a *claim*:
the partition and the number of its assignment), so that a hold of an assignment that
has ended never affects a later assignment of the same partition. Any number of holds
may exist; a partition is released when the last one has ended. No hold puts the
deadline off.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import field
from types import TracebackType
from typing import Protocol, TypeAlias

from kafkaio._dataclass import dataclass
from kafkaio._machines.membership.ledger import Claim
from kafkaio._public import public
from kafkaio._runtime.caller import TaskReference, caller, refer
from kafkaio.errors import PartitionLost, UsageError
from kafkaio.types import TopicPartition


class HoldPort(Protocol):
    """The group member whose assignments are held."""

    def claims(self, partitions: Iterable[TopicPartition]) -> tuple[Claim, ...]:
        """The claims of those partitions that are assigned."""
        ...

    def hold(self, claims: Iterable[Claim]) -> tuple[Claim, ...]:
        """Hold these assignments; returns those that can still be held."""
        ...

    def unhold(self, claims: Iterable[Claim]) -> None:
        """End one hold of each of these assignments."""
        ...


@public("kafkaio")
class Hold:
    """Keeps partitions from being released, until it is left or they are lost.

    An async context manager. Entering it does not wait, and returns the partitions
    that are held. Leaving it, also by an exception or a cancellation, ends the hold. It
    applies to the assignments that existed when the hold was made: a partition that
    was released and assigned again since is not held. The hold also ends when the task
    that entered it closes the consumer.

    Args:
        member: the group member that owns the partitions.
        claims: the assignments to hold.
        entered: the holds that are entered now; this one is added and removed.
        before: a hold that this one replaces when it is entered.
    """

    __slots__ = (
        "__weakref__",
        "_before",
        "_claims",
        "_entered",
        "_held",
        "_member",
        "_task",
    )

    def __init__(
        self,
        member: HoldPort,
        claims: tuple[Claim, ...],
        entered: set[Hold],
        before: Hold | None = None,
    ) -> None:
        self._member = member
        self._claims = claims
        self._entered = entered
        self._before = before
        # The task that entered it.
        self._task: TaskReference = refer(None)
        # The claims that are held; None before `keep`, empty after `release`.
        self._held: tuple[Claim, ...] | None = None

    def __repr__(self) -> str:
        names = ", ".join(f"{tp.topic}-{tp.partition}" for tp, _ in self._claims)
        state = "not taken" if self._held is None else "held" if self._held else "over"
        return f"<Hold of {names} | {state}>"

    async def __aenter__(self) -> frozenset[TopicPartition]:
        return self.take()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def take(self) -> frozenset[TopicPartition]:
        """Hold those partitions that are still assigned, and return them.

        Raises:
            PartitionLost: all of them were lost or released.
            UsageError: the hold was entered before.
        """
        if self._held is not None:
            raise UsageError("a hold is entered once; make another one")
        held = self.keep()
        # Only now: without any hold in between the partitions could be released.
        if self._before is not None:
            self._before.release()
        if not held:
            raise PartitionLost("the partitions are not assigned to this consumer")
        self._task = refer(caller())
        self._entered.add(self)
        return held

    def is_of(self, task: asyncio.Task[object] | None) -> bool:
        """Whether that task has entered it."""
        return self._task() is task

    @property
    def is_held(self) -> bool:
        """Whether it holds anything now."""
        return bool(self._held)

    def keep(self) -> frozenset[TopicPartition]:
        """Hold those partitions that are still assigned, possibly none; return them."""
        self._held = self._member.hold(self._claims)
        return frozenset(claim.partition for claim in self._held)

    def release(self) -> None:
        """End the hold. Does nothing if it holds nothing."""
        held, self._held = self._held, ()
        self._entered.discard(self)
        if held:
            self._member.unhold(held)

    def another(self) -> Hold:
        """A hold of the same assignments; entering it ends this one."""
        return Hold(self._member, self._claims, self._entered, self)


@public("kafkaio")
@dataclass(frozen=True, slots=True)
class Assigned:
    """Partitions were assigned; records of them may follow.

    Attributes:
        partitions: the partitions that were added.
    """

    partitions: frozenset[TopicPartition]


@public("kafkaio")
@dataclass(frozen=True, slots=True)
class RevokeRequested:
    """The group requests the revocation of partitions (KIP-983).

    None of their records is handed out any more; commits of them are accepted until
    they are released. They stay assigned while somebody holds them, until the deadline
    at most.

    Attributes:
        partitions: the partitions that the group requests.
        deadline: when partitions that have not been released are lost, in seconds of
            the event loop's clock, as `asyncio.timeout_at` takes it. The group's own
            deadline is two heartbeat intervals later.
    """

    partitions: frozenset[TopicPartition]
    deadline: float
    # Holds the partitions while the event waits for its listener.
    _hold: Hold | None = field(default=None, kw_only=True, repr=False, compare=False)

    def hold(self) -> Hold:
        """Keep the partitions assigned while an ``async with`` block runs.

        The hold also ends if the block ends by an exception or a cancellation. Several
        holds may be made, one after the other or at once; all of them count. After the
        last one has ended, the partitions are released, if the reading task has asked
        for more records since the request, or waits for a record, or has read nothing
        yet; otherwise when it next asks for records. The deadline is not put off. A
        task that closes the consumer thereby leaves the holds that it has entered;
        `Consumer.close` waits for the holds of other tasks.

        Entering the hold raises `PartitionLost` if none of the partitions is assigned
        any more.

        Raises:
            UsageError: the event was not made by a consumer.
        """
        if self._hold is None:
            raise UsageError("only an event that came from a consumer can be held")
        return self._hold.another()


@public("kafkaio")
@dataclass(frozen=True, slots=True)
class Revoked:
    """Partitions were released: committed, and the callback was called for them.

    Attributes:
        partitions: the partitions that another member may read now.
    """

    partitions: frozenset[TopicPartition]


@public("kafkaio")
@dataclass(frozen=True, slots=True)
class Lost:
    """Partitions were lost without being released; no commit of them is accepted.

    Attributes:
        partitions: the partitions that are lost.
    """

    partitions: frozenset[TopicPartition]


#: The events of `Consumer.rebalances`.
Rebalance: TypeAlias = Assigned | RevokeRequested | Revoked | Lost
