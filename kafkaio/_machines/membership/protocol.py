"""What members of both group protocols have in common: the user's side of the ledger.

A machine is told what happened and answers with effects. Each input changes what it
concerns, and then `_advance` does whatever is possible by now, so that no order of
inputs can get a member stuck between two states.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from enum import Enum
from typing import ClassVar, Final, Generic, TypeAlias, TypeVar

from kafkaio._machines.membership import effects as fx
from kafkaio._machines.membership.heartbeat import PollTimer
from kafkaio._machines.membership.ledger import Claim, RevokeLedger
from kafkaio.errors import KafkaError
from kafkaio.types import TopicPartition

__all__ = ["NEVER", "Effects", "LedgerMember"]

Effects: TypeAlias = tuple[fx.Effect, ...]
NEVER: Final = float("inf")
StateT = TypeVar("StateT", bound=Enum)


class LedgerMember(ABC, Generic[StateT]):
    """A member, the partitions it holds, and the user who reads them."""

    #: Name of the group protocol.
    PROTOCOL: ClassVar[str]

    __slots__ = (
        "_closing_ticket",
        "_out",
        "_poll",
        "_tickets",
        "_withheld",
        "ledger",
        "member_id",
        "state",
    )

    #: Where the member stands.
    state: StateT

    def __init__(self, max_poll_interval: float) -> None:
        self.member_id = ""
        self.ledger = RevokeLedger()
        self._poll = PollTimer(max_poll_interval)
        self._tickets = 0
        # Ticket of the request that leaves the group for good, 0 for none.
        self._closing_ticket = 0
        # What nobody is to have until we say otherwise.
        self._withheld = frozenset[TopicPartition]()
        self._out: list[fx.Effect] = []

    @property
    @abstractmethod
    def patience(self) -> float:
        """How long a requested revoke may take, in seconds."""

    def step_taken(self, now: float) -> Effects:
        """The user asked for more: revokes that it was told of may complete."""
        if not self.ledger.pending:
            return ()  # called for every record, so this is all
        self.ledger.step()
        return self._advance(now)

    def idle(self, partitions: Collection[TopicPartition], now: float) -> Effects:
        """Nobody works on records of these: their revokes need no further step."""
        self.ledger.release(partitions)
        return self._advance(now)

    def unhold(self, claims: Collection[Claim], now: float) -> Effects:
        """A hold has ended: what nobody else holds may go."""
        self.ledger.unhold(claims)
        return self._advance(now)

    def abandon(self, now: float) -> Effects:
        """Wait no more for what is held: it is lost, so that we can leave."""
        self._lose()
        return self._advance(now)

    @abstractmethod
    def withhold(self, partitions: frozenset[TopicPartition], now: float) -> Effects:
        """See to it that nobody has these, from now until they are left out again.

        Whoever owns them is asked for them as for any others. When they are ``free``
        their offsets may be committed, and the next owners begin there.
        """

    @property
    @abstractmethod
    def free(self) -> Mapping[TopicPartition, int]:
        """Those that are withheld and that nobody has.

        With a number below 0, which is another when others may have had them since.
        """

    @property
    @abstractmethod
    def is_deaf(self) -> bool:
        """Whether whoever divides the partitions withholds none."""

    @abstractmethod
    def awaits(self, ticket: int) -> bool:
        """Whether the answer to that request still matters."""

    def leave_ended(self, ticket: int, now: float) -> Effects:
        """The request that leaves the group came back, or will not."""
        if ticket != self._closing_ticket:
            return ()
        self._left(now)
        return self._advance(now)

    def request_failed(
        self, ticket: int, error: KafkaError, now: float, roll: float
    ) -> Effects:
        """A request had no answer, or no coordinator was found for it."""
        if ticket == self._closing_ticket != 0:
            return self.leave_ended(ticket, now)
        if not self.awaits(ticket):
            return ()
        if error.retriable:
            self._emit(fx.ForgetCoordinator())
            self._unanswered(ticket, now, roll)
        else:
            self._refused(error, now)
        return self._advance(now)

    @abstractmethod
    def _left(self, now: float) -> None:
        """The member is out of the group, for good."""

    @abstractmethod
    def _unanswered(self, ticket: int, now: float, roll: float) -> None:
        """A request failed in a way that may pass."""

    @abstractmethod
    def _refused(self, error: KafkaError, now: float) -> None:
        """A request failed for good."""

    @abstractmethod
    def _proceed(self, now: float) -> None:
        """Do what the present state waits for, if nothing is in the way."""

    @abstractmethod
    def _speak(self, now: float) -> None:
        """Show the coordinator a sign of life if one is due."""

    def _advance(self, now: float) -> Effects:
        state: StateT | None = None
        while state is not self.state:
            state = self.state
            self._begin_revokes()
            self._proceed(now)
        self._speak(now)
        return self._taken()

    def _part(self, now: float) -> None:
        # What is asked for only now goes when those who listen have had their chance
        # to hold it: the shell says so.
        self.ledger.part()
        self._request(self.ledger.owned, now, is_parting=True)

    def _request(
        self,
        partitions: Collection[TopicPartition],
        now: float,
        *,
        is_parting: bool = False,
    ) -> None:
        deadline = now + self.patience
        if asked := self.ledger.request(partitions, deadline):
            self._emit(fx.RequestRevoke(asked, deadline, is_parting))

    def _begin_revokes(self) -> None:
        claims, deadline = self.ledger.begin()
        if claims:
            self._emit(fx.Revoke(claims, deadline))

    def _lose(self) -> None:
        if lost := self.ledger.lose():
            self._emit(fx.Lose(lost))

    def _new_ticket(self) -> int:
        self._tickets += 1
        return self._tickets

    def _emit(self, effect: fx.Effect) -> None:
        self._out.append(effect)

    def _taken(self) -> Effects:
        out = tuple(self._out)
        self._out.clear()
        return out
