"""Which partitions have waited too long for a position, and when to report them.

A partition normally passes through the stages to its position within milliseconds. If
its leader is gone or hangs, it stays in one stage. It is *overdue* after `PATIENCE`
seconds there: reads do not wait for it alone any more, and it is reported, repeatedly
and with growing pauses, until it finds its position.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafkaio._dataclass import dataclass
from kafkaio._machines.positions.stages import PositionToken
from kafkaio.types import TopicPartition

#: Seconds in one stage after which a partition is overdue. The election of a leader
#: takes less, and so does the look-up at a broker that is merely busy.
PATIENCE: Final = 5.0
#: Most seconds between two reports of the same partition.
_LONGEST_PAUSE: Final = 300.0


@dataclass(slots=True)
class _Wait:
    token: PositionToken
    next_report: float
    pause: float = PATIENCE
    is_overdue: bool = False


class Overdue:
    """The partitions that wait for a position, with the time since when they wait."""

    __slots__ = ("_waits",)

    def __init__(self) -> None:
        self._waits: dict[TopicPartition, _Wait] = {}

    def update(
        self, waiting: Mapping[TopicPartition, PositionToken], now: float
    ) -> list[TopicPartition]:
        """Take the partitions that wait now; return those to report now.

        Args:
            waiting: all partitions that wait, each with the token of its stage. A
                partition with a new token has made progress, and begins to wait anew.
            now: the time.
        """
        before, self._waits = self._waits, {}
        reported: list[TopicPartition] = []
        for tp, token in waiting.items():
            wait = before.get(tp)
            if wait is None or wait.token != token:
                wait = _Wait(token, now + PATIENCE)
            elif wait.next_report <= now:
                wait.is_overdue = True
                wait.pause = min(2 * wait.pause, _LONGEST_PAUSE)
                wait.next_report = now + wait.pause
                reported.append(tp)
            self._waits[tp] = wait
        return reported

    def has(self, waiting: Mapping[TopicPartition, PositionToken]) -> bool:
        """Whether each of the partitions is overdue in the stage of its token."""
        waits = self._waits
        return all(
            tp in waits and waits[tp].is_overdue and waits[tp].token == token
            for tp, token in waiting.items()
        )

    @property
    def next_report(self) -> float | None:
        """When the next partition is to be reported; None while none waits."""
        return min((wait.next_report for wait in self._waits.values()), default=None)
