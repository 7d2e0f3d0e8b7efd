"""A snapshot of a consumer."""

from __future__ import annotations

from collections.abc import Mapping

from kafkaio._dataclass import dataclass
from kafkaio._public import public
from kafkaio.types import TopicPartition


@public("kafkaio")
@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatistics:
    """The position of a consumer in one assigned partition.

    Records that are handed out one by one count when their batch is finished, or when
    they are committed.

    Attributes:
        position: offset of the next record; -1 while it is unknown.
        lag: offsets between the position and the end that the last fetch reported (with
            ``read_committed``, the last stable offset); None while it is unknown.
        lead: offsets between the first record that the log keeps and the position; None
            while it is unknown. Near 0, records may be deleted before they are read.
    """

    position: int
    lag: int | None = None
    lead: int | None = None


@public("kafkaio")
@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerStatistics:
    """A snapshot of a consumer.

    Attributes:
        state: ``new``, ``starting``, ``running``, ``failed``, ``closing`` or
            ``closed``.
        group: state of the membership in the group; None without a group.
        group_protocol: ``consumer`` (KIP-848) or ``classic``; None without a group.
        generation: the member epoch, or the generation in the classic protocol; -1
            while the consumer is not a member.
        assigned: number of assigned partitions.
        paused: how many of these are paused.
        to_be_revoked: how many of these have a requested revocation.
        fetches_in_flight: number of fetch requests without an answer.
        buffered_bytes: bytes that were fetched and not handed out, without those of
            paused partitions.
        stale_answers: number of fetched partitions whose data was dropped because the
            position had changed, for example by a seek.
        idle_seconds: the total time that reads have waited for records. Its growth per
            second is the part of the time in which the consumer was idle. With
            ``run()`` and lanes it also grows while handlers work.
        partitions: the position in each assigned partition.
        unavailable_topics: the topics subscribed to by name that the cluster does not
            describe, each with the name of the broker's error, such as
            ``UNKNOWN_TOPIC_OR_PARTITION`` for one that does not exist. The consumer
            reads the other topics all the same.
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
    idle_seconds: float
    partitions: Mapping[TopicPartition, PartitionStatistics]
    unavailable_topics: Mapping[str, str]
