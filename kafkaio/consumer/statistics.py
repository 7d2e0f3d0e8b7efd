"""What a consumer tells about itself."""

from __future__ import annotations

from kafkaio._dataclass import dataclass

__all__ = ["ConsumerStatistics"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerStatistics:
    """A snapshot of a consumer.

    Attributes:
        state: ``new``, ``starting``, ``running``, ``failed``, ``closing``, ``closed``.
        group: name of the member's state in the group, None without a group.
        group_protocol: ``consumer`` (KIP-848) or ``classic``, None without a group.
        generation: the member's epoch, or in the classic protocol the group's
            generation; -1 while it is no member.
        assigned: partitions assigned.
        paused: of these, those paused.
        to_be_revoked: of these, those that the group asked back.
        fetches_in_flight: fetch requests without an answer.
        buffered_bytes: bytes fetched and not handed out, without paused partitions.
        stale_answers: fetched data that was dropped because of a seek or the like.
    """

    state: str
    group: str | None
    group_protocol: str | None
    generation: int
    assigned: int
    paused: int
    to_be_revoked: int
    fetches_in_flight: int
    buffered_bytes: int
    stale_answers: int
