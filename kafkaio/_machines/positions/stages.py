"""The stages of a partition's position, and what leads from one to the other.

The theory is told in `kafkaio._machines.positions.positions`.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final, NamedTuple

from kafkaio._dataclass import dataclass
from kafkaio.config.configs import iso_duration_ms
from kafkaio.types import TopicPartition

__all__ = [
    "SOUGHT",
    "TRANSITIONS",
    "Cut",
    "Event",
    "FetchPoint",
    "PartitionPosition",
    "Reset",
    "ResetTo",
    "Stage",
    "Token",
    "Unproven",
]


class Stage(Enum):
    """What has to happen next with a partition."""

    UNPOSITIONED = auto()  #: look for a committed offset
    RESETTING = auto()  #: look up the offset that the reset asks for
    VALIDATING = auto()  #: ask the leader whether its log has what was read
    FETCHING = auto()  #: there is a position
    STRANDED = auto()  #: no position and no policy: only a seek helps


class Event(Enum):
    """What moves a partition from stage to stage."""

    COMMITTED = auto()
    UNCOMMITTED = auto()
    FOUND = auto()
    OUT_OF_RANGE = auto()
    UNPROVEN = auto()
    PROVEN = auto()
    CUT = auto()
    NO_POLICY = auto()
    SEEK = auto()
    RESET_ASKED = auto()


TRANSITIONS: Final = {
    (Stage.UNPOSITIONED, Event.COMMITTED): Stage.FETCHING,
    (Stage.UNPOSITIONED, Event.UNCOMMITTED): Stage.RESETTING,
    (Stage.UNPOSITIONED, Event.NO_POLICY): Stage.STRANDED,
    (Stage.RESETTING, Event.FOUND): Stage.FETCHING,
    (Stage.FETCHING, Event.OUT_OF_RANGE): Stage.RESETTING,
    (Stage.FETCHING, Event.NO_POLICY): Stage.STRANDED,
    (Stage.FETCHING, Event.UNPROVEN): Stage.VALIDATING,
    (Stage.VALIDATING, Event.PROVEN): Stage.FETCHING,
    (Stage.VALIDATING, Event.CUT): Stage.FETCHING,
    (Stage.VALIDATING, Event.OUT_OF_RANGE): Stage.RESETTING,
    (Stage.VALIDATING, Event.NO_POLICY): Stage.STRANDED,
    **{(stage, Event.SEEK): Stage.FETCHING for stage in Stage},
    **{(stage, Event.RESET_ASKED): Stage.RESETTING for stage in Stage},
}


#: Stages with a look-up to do.
SOUGHT: Final = (Stage.UNPOSITIONED, Stage.RESETTING, Stage.VALIDATING)


class ResetTo(Enum):
    """What a reset looks for."""

    EARLIEST = auto()
    LATEST = auto()
    DURATION = auto()


@dataclass(frozen=True, slots=True)
class Reset:
    """Where a reset leads: the log's start, its end, or a time before now.

    Attributes:
        to: what to look for.
        duration_ms: how far back, for ``DURATION``.
    """

    to: ResetTo
    duration_ms: int = 0

    @classmethod
    def of(cls, policy: str) -> Reset | None:
        """Read ``auto_offset_reset``; None is ``none``."""
        kind, _, duration = policy.partition(":")
        if kind == "by_duration":
            return cls(ResetTo.DURATION, iso_duration_ms(duration) or 0)
        resets = {"earliest": ResetTo.EARLIEST, "latest": ResetTo.LATEST}
        return cls(resets[kind]) if kind in resets else None


class Token(NamedTuple):
    """What a look-up or a fetch was started for."""

    number: int
    era: int


class FetchPoint(NamedTuple):
    """A partition to fetch, and from where."""

    tp: TopicPartition
    offset: int
    token: Token


class Unproven(NamedTuple):
    """A position to validate: what was read before it, and under which epoch."""

    token: Token
    offset: int
    epoch: int


class Cut(NamedTuple):
    """A log that lacks what was read (KIP-320).

    Attributes:
        position: up to where it was read.
        end: the offset up to which the log may still agree, -1 if unknown.
    """

    position: int
    end: int


@dataclass(slots=True)
class PartitionPosition:
    """The state of one partition. Only `Positions` changes it."""

    number: int
    reset: Reset | None
    stage: Stage = Stage.UNPOSITIONED
    era: int = 0
    position: int = -1
    position_epoch: int = -1
    fetch_offset: int = -1
    leader_epoch: int = -1
    cut: Cut | None = None
    #: The position that turned out to be outside the log.
    outside: int = -1
    is_paused: bool = False
    is_revoking: bool = False
    retry_at: float = 0.0
    attempts: int = 0
    #: What was made of this for the last fetch.
    point: FetchPoint | None = None

    @property
    def token(self) -> Token:
        """What a look-up or a fetch that starts now must carry."""
        return Token(self.number, self.era)

    def fetch_point(self, tp: TopicPartition) -> FetchPoint:
        """Where a fetch that starts now reads; the same object while that is the same.

        Of many partitions few move from one fetch to the next.
        """
        point = self.point
        if (
            point is None
            or point.offset != self.fetch_offset
            or point.token.era != self.era
        ):
            point = self.point = FetchPoint(tp, self.fetch_offset, self.token)
        return point
