"""The stages of a partition's position, as one table.

`kafkaio._machines.positions.positions` explains them.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from kafkaio._config.configs import iso_duration_ms
from kafkaio._dataclass import dataclass
from kafkaio._named_tuple import NamedTuple
from kafkaio.types import TopicPartition


class PositionStage(Enum):
    """The step that a partition needs next."""

    UNPOSITIONED = auto()  #: look up the committed offset
    RESETTING = auto()  #: look up the offset that the reset leads to
    VALIDATING = (
        auto()
    )  #: ask the leader whether its log has the records that were read
    FETCHING = auto()  #: there is a position
    NO_OFFSET = auto()  #: no usable offset and no reset policy: only a seek helps


class PositionEvent(Enum):
    """An event that moves a partition from stage to stage."""

    COMMITTED = auto()  #: a committed offset was found
    UNCOMMITTED = auto()  #: there is no committed offset
    FOUND = auto()  #: the offset of a reset was found
    OUT_OF_RANGE = auto()  #: the position is outside the log
    UNVALIDATED = auto()  #: the leader has not confirmed the position yet
    VALIDATED = auto()  #: the leader's log has everything that was read
    TRUNCATED = auto()  #: it lacks records, and the end of the common part is known
    NO_POLICY = auto()  #: an offset is missing, and there is no reset policy
    SEEK = auto()  #: to an offset
    RESET_REQUESTED = auto()  #: a seek to the beginning, the end or a time
    REWOUND = auto()  #: back to the committed offset, after an aborted transaction


#: Where each event leads from each stage. A pair that is not listed is a bug in
#: kafkaio: late replies are dropped by their token before they become events.
TRANSITIONS: Final = {
    (PositionStage.UNPOSITIONED, PositionEvent.COMMITTED): PositionStage.FETCHING,
    (PositionStage.UNPOSITIONED, PositionEvent.UNCOMMITTED): PositionStage.RESETTING,
    (PositionStage.UNPOSITIONED, PositionEvent.NO_POLICY): PositionStage.NO_OFFSET,
    (PositionStage.RESETTING, PositionEvent.FOUND): PositionStage.FETCHING,
    (PositionStage.FETCHING, PositionEvent.OUT_OF_RANGE): PositionStage.RESETTING,
    (PositionStage.FETCHING, PositionEvent.NO_POLICY): PositionStage.NO_OFFSET,
    (PositionStage.FETCHING, PositionEvent.UNVALIDATED): PositionStage.VALIDATING,
    (PositionStage.VALIDATING, PositionEvent.VALIDATED): PositionStage.FETCHING,
    (PositionStage.VALIDATING, PositionEvent.TRUNCATED): PositionStage.FETCHING,
    (PositionStage.VALIDATING, PositionEvent.OUT_OF_RANGE): PositionStage.RESETTING,
    (PositionStage.VALIDATING, PositionEvent.NO_POLICY): PositionStage.NO_OFFSET,
    **{(stage, PositionEvent.SEEK): PositionStage.FETCHING for stage in PositionStage},
    **{
        (stage, PositionEvent.RESET_REQUESTED): PositionStage.RESETTING
        for stage in PositionStage
    },
    **{
        (stage, PositionEvent.REWOUND): PositionStage.UNPOSITIONED
        for stage in PositionStage
    },
}


#: Stages that wait for a look-up.
LOOKING_UP: Final = (
    PositionStage.UNPOSITIONED,
    PositionStage.RESETTING,
    PositionStage.VALIDATING,
)


class ResetTo(Enum):
    """Where a reset leads."""

    EARLIEST = auto()
    LATEST = auto()
    DURATION = auto()


@dataclass(frozen=True, slots=True)
class Reset:
    """Where a reset leads: the log's start, its end, or a time before now.

    Attributes:
        to: where it leads.
        duration_ms: how far back from now, for ``DURATION``.
    """

    to: ResetTo
    duration_ms: int = 0

    @classmethod
    def of(cls, policy: str) -> Reset | None:
        """Parse ``auto_offset_reset``; None for ``none``."""
        kind, _, duration = policy.partition(":")
        if kind == "by_duration":
            return cls(ResetTo.DURATION, iso_duration_ms(duration) or 0)
        resets = {"earliest": ResetTo.EARLIEST, "latest": ResetTo.LATEST}
        return cls(resets[kind]) if kind in resets else None


class PositionToken(NamedTuple):
    """The assignment and the era in which a look-up or a fetch began."""

    number: int
    era: int


class FetchPoint(NamedTuple):
    """A partition to fetch, and from where."""

    tp: TopicPartition
    offset: int
    token: PositionToken


class Unvalidated(NamedTuple):
    """A position to validate, and the leader epoch of the record before it."""

    token: PositionToken
    offset: int
    epoch: int


class Truncation(NamedTuple):
    """A log that lacks records that were read (KIP-320).

    Attributes:
        position: the offset up to which records were read.
        end: the offset up to which the log may still agree, -1 if unknown.
    """

    position: int
    end: int


@dataclass(slots=True)
class PartitionPosition:
    """The state of one partition. Only `Positions` changes it."""

    number: int
    reset: Reset | None
    stage: PositionStage = PositionStage.UNPOSITIONED
    era: int = 0
    position: int = -1
    position_epoch: int = -1
    fetch_offset: int = -1
    leader_epoch: int = -1
    truncation: Truncation | None = None
    #: The position that was outside the log, -1 for none.
    outside: int = -1
    is_paused: bool = False
    is_revoking: bool = False
    retry_at: float = 0.0
    attempts: int = 0
    #: The fetch point of the last fetch.
    point: FetchPoint | None = None

    @property
    def token(self) -> PositionToken:
        """The token of a look-up or a fetch that begins now."""
        return PositionToken(self.number, self.era)

    def fetch_point(self, tp: TopicPartition) -> FetchPoint:
        """Where a fetch that begins now reads.

        It is the same object as before unless the position has moved: of many
        partitions few move from one fetch to the next.
        """
        point = self.point
        if (
            point is None
            or point.offset != self.fetch_offset
            or point.token.era != self.era
        ):
            point = self.point = FetchPoint(tp, self.fetch_offset, self.token)
        return point
