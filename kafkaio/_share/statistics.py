"""A snapshot of a share consumer."""

from __future__ import annotations

from kafkaio._dataclass import dataclass
from kafkaio._public import public


@public("kafkaio")
@dataclass(frozen=True, slots=True, kw_only=True)
class ShareConsumerStatistics:
    """A share consumer at one moment. Counts begin when it starts.

    Attributes:
        state: ``new``, ``starting``, ``running``, ``failed``, ``closing`` or
            ``closed``.
        group: the state of the member: ``UNJOINED``, ``JOINING``, ``STABLE``,
            ``FENCED``, ``LEAVING`` or ``ENDED``.
        member_id: the id of the member, which it keeps for life.
        member_epoch: its epoch, 0 while it has none.
        coordinator: node id of the group coordinator, None while it is unknown.
        assigned: number of partitions assigned.
        leaders: number of brokers with which a share session is open.
        in_flight: number of records locked for this consumer: handed out and not
            acknowledged, or fetched and not handed out. ``max_in_flight`` bounds it.
        buffered: number of records fetched and not handed out.
        buffered_bytes: their size in bytes.
        fetches_in_flight: number of fetches that have no answer yet.
        acquired: number of records that were locked for this consumer.
        redelivered: how many of these were delivered before, to any member.
        accepted: number of records of which the leader confirmed that they are
            accepted.
        released: the same for released ones.
        rejected: the same for rejected ones.
        failed: number of records whose acknowledgement did not count, or may not have.
        lost: number of records whose lock was gone before a decision.
        renewed: number of renewals of locks, by record.
        idle_seconds: the total time that reads have waited for records. With ``run()``
            it also grows while handlers work.
    """

    state: str
    group: str
    member_id: str
    member_epoch: int
    coordinator: int | None
    assigned: int
    leaders: int
    in_flight: int
    buffered: int
    buffered_bytes: int
    fetches_in_flight: int
    acquired: int
    redelivered: int
    accepted: int
    released: int
    rejected: int
    failed: int
    lost: int
    renewed: int
    idle_seconds: float
