"""A snapshot of a consumer."""

from __future__ import annotations

from kafkaio._dataclass import dataclass

__all__ = ["ConsumerStatistics"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerStatistics:
    """A snapshot of a consumer.

    Attributes:
        state: ``new``, ``starting``, ``running``, ``failed``, ``closing`` or
            ``closed``.
        group: state of the membership in the group; None without a group.
        group_protocol: ``consumer`` (KIP-848) or ``classic``; None without a group.
        generation: the member epoch, or the generation in the classic protocol; -1
            while the consumer is no member.
        assigned: number of assigned partitions.
        paused: how many of these are paused.
        to_be_revoked: how many of these have a requested revocation.
        fetches_in_flight: number of fetch requests without an answer.
        buffered_bytes: bytes that were fetched and not handed out, without those of
            paused partitions.
        stale_answers: number of fetched partitions whose data was dropped because the
            position had changed, for example by a seek.
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
