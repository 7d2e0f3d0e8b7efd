"""What members of both group protocols have in common: the user's side of the ledger.

A machine is told what happened and answers with effects. Each input changes what it
concerns, and then `_advance` does whatever is possible by now, so that no order of
inputs can get a member stuck between two states.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import ClassVar, Final, TypeAlias

from kafkaio._machines.membership import effects as fx
from kafkaio._machines.membership.heartbeat import PollTimer
from kafkaio._machines.membership.revoke_ledger import Claim, RevokeLedger
from kafkaio.types import TopicPartition

__all__ = ["NEVER", "Effects", "LedgerMember"]

Effects: TypeAlias = tuple[fx.Effect, ...]
NEVER: Final = float("inf")


class LedgerMember(ABC):
    """A member, the partitions it holds, and the user who reads them."""

    #: Name of the group protocol.
    PROTOCOL: ClassVar[str]

    __slots__ = ("_out", "_poll", "_tickets", "ledger", "member_id")

    def __init__(self, max_poll_interval: float) -> None:
        self.member_id = ""
        self.ledger = RevokeLedger()
        self._poll = PollTimer(max_poll_interval)
        self._tickets = 0
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
    def _advance(self, now: float) -> Effects:
        """Do what is possible by now."""

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
