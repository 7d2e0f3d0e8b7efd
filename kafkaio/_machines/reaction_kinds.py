"""The reactions to error codes; `kafkaio._machines.reactions` picks one."""

from __future__ import annotations

from enum import Enum, auto

from kafkaio._dataclass import dataclass


class ReactionStep(Enum):
    """The action of the owner of a request, besides retrying."""

    NONE = auto()
    #: Nothing is wrong: the effect of the request is there already.
    SUCCESS = auto()
    #: Start over from the bootstrap servers (KIP-1102).
    REBOOTSTRAP = auto()
    #: Fetch or share session: begin a new one.
    RESET_SESSION = auto()
    #: The position is outside the log: follow the reset policy.
    RESET_POSITION = auto()
    #: The batch is too large: split it, or fail its only record.
    SPLIT_BATCH = auto()
    #: A gap in the sequence numbers: wait for the batch that is missing, or bump the
    #: epoch.
    CHECK_SEQUENCE = auto()
    #: The open transaction can only be aborted.
    ABORT = auto()
    #: Take part in the rebalance, as the same member.
    REJOIN = auto()
    #: The generation has ended; the member id stays valid.
    RESET_GENERATION = auto()
    #: The coordinator no longer knows the member: everything is lost.
    RESET_MEMBER = auto()
    #: The member has a newer epoch: send the request again with it.
    REFRESH_MEMBER = auto()
    #: Another instance took over, or no retry can help: the owner ends.
    FATAL = auto()


class Harm(Enum):
    """The consequence of a failed record for its transaction."""

    #: It must be aborted.
    ABORT = auto()
    #: It must be aborted, and the next one needs another epoch: the sequence has a gap,
    #: or the record may still be written.
    BUMP = auto()
    #: The producer can no longer be used.
    FATAL = auto()


@dataclass(frozen=True, slots=True)
class Reaction:
    """The reaction to an error code.

    Attributes:
        retry: the same request may succeed later, after a back-off.
        refresh_metadata: the client's metadata is out of date.
        refind_coordinator: the coordinator has moved.
        reroute: the broker did nothing, because it is the wrong one, if only for the
            moment. The request can be repeated, perhaps elsewhere, without harm.
        step: the further action of the owner of the request.
    """

    retry: bool = False
    refresh_metadata: bool = False
    refind_coordinator: bool = False
    reroute: bool = False
    step: ReactionStep = ReactionStep.NONE
