"""Plans of the machines to requests, and answers to what the machines take.

Requests name topics by their ids, and everything else in this package by their names:
`Names` knows both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar
from uuid import UUID

from kafkaio._config import ShareConsumerConfig
from kafkaio._machines.bounds import seconds
from kafkaio._machines.share.acks import AckRange, batches
from kafkaio._machines.share.ledger import AcquiredRange
from kafkaio._machines.share.membership import SendShareHeartbeat
from kafkaio._machines.share.room import Grant
from kafkaio._machines.share.session import SessionPlan, TopicIdPartition
from kafkaio._named_tuple import NamedTuple
from kafkaio.errors import ProtocolError
from kafkaio.protocol._message import Buffer
from kafkaio.protocol.messages import share_acknowledge as ack, share_fetch as fetch
from kafkaio.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

PartT = TypeVar("PartT", fetch.PartitionData, ack.PartitionData)

#: Kafka's numbers of the acquire modes.
_MODES: Final = {"batch_optimized": 0, "record_limit": 1}
#: The most partitions of an assignment that are believed.
_MOST_PARTITIONS: Final = 1_000_000


class Answered(NamedTuple):
    """What an answer says of one partition.

    Attributes:
        code: the error of the fetch, or of the acknowledgement in an answer to a
            ShareAcknowledge.
        message: the broker's words for it.
        ack_code: the error of the acknowledgements.
        ack_message: the broker's words for it.
        leader: the id of the leader and its epoch, if the broker names them.
        acquired: the ranges that were acquired.
        data: record batches.
    """

    code: int
    message: str | None
    ack_code: int
    ack_message: str | None
    leader: tuple[int, int]
    acquired: tuple[AcquiredRange, ...] = ()
    data: Buffer = b""


def heartbeat_request(
    group_id: str, rack: str | None, effect: SendShareHeartbeat
) -> ShareGroupHeartbeatRequest:
    """Make the request of a heartbeat."""
    topics = effect.topics
    return ShareGroupHeartbeatRequest(
        group_id=group_id,
        member_id=effect.member_id,
        member_epoch=effect.member_epoch,
        rack_id=rack,
        subscribed_topic_names=None if topics is None else list(topics),
    )


def assignment_of(
    answer: ShareGroupHeartbeatResponse,
) -> frozenset[TopicIdPartition] | None:
    """Read the assignment of an answer; None if it is unchanged.

    Raises:
        ProtocolError: it is larger than any group is.
    """
    if answer.error_code or answer.assignment is None:
        return None
    topics = answer.assignment.topic_partitions
    if sum(len(topic.partitions) for topic in topics) > _MOST_PARTITIONS:
        raise ProtocolError("the assignment of a share group is too large")
    return frozenset(
        TopicIdPartition(topic.topic_id, number)
        for topic in topics
        for number in topic.partitions
    )


def fetch_request(
    config: ShareConsumerConfig,
    member_id: str,
    session: SessionPlan,
    acks: Mapping[TopicIdPartition, Sequence[AckRange]],
    grant: Grant | None,
    wait: float,
) -> fetch.ShareFetchRequest:
    """Make a ShareFetch.

    Args:
        config: the consumer's options.
        member_id: the member.
        session: what it says of the session.
        acks: acknowledgements that go with it.
        grant: what it may bring; None for nothing.
        wait: seconds that the leader may wait for records.
    """
    named = dict.fromkeys((*session.added, *acks))
    return fetch.ShareFetchRequest(
        group_id=config.group_id,
        member_id=member_id,
        share_session_epoch=session.epoch,
        max_wait_ms=round(wait * 1000),
        min_bytes=config.fetch_min_bytes if grant is not None else 0,
        max_bytes=grant.size if grant is not None else 0,
        max_records=grant.records if grant is not None else 0,
        batch_size=grant.records if grant is not None else 0,
        share_acquire_mode=_MODES[config.acquire_mode],
        topics=[
            fetch.FetchTopic(
                topic_id=topic_id,
                partitions=[
                    fetch.FetchPartition(
                        partition_index=each.partition,
                        acknowledgement_batches=[
                            fetch.AcknowledgementBatch(
                                first_offset=run.first,
                                last_offset=run.last,
                                acknowledge_types=list(run.kinds),
                            )
                            for run in batches(acks.get(each, ()))
                        ],
                    )
                    for each in parts
                ],
            )
            for topic_id, parts in _by_topic(named)
        ],
        forgotten_topics_data=[
            fetch.ForgottenTopic(
                topic_id=topic_id, partitions=[each.partition for each in parts]
            )
            for topic_id, parts in _by_topic(session.forgotten)
        ],
    )


def acknowledge_request(
    group_id: str,
    member_id: str,
    session: SessionPlan,
    acks: Mapping[TopicIdPartition, Sequence[AckRange]],
    *,
    renews: bool,
) -> ack.ShareAcknowledgeRequest:
    """Make a ShareAcknowledge."""
    return ack.ShareAcknowledgeRequest(
        group_id=group_id,
        member_id=member_id,
        share_session_epoch=session.epoch,
        is_renew_ack=renews,
        topics=[
            ack.AcknowledgeTopic(
                topic_id=topic_id,
                partitions=[
                    ack.AcknowledgePartition(
                        partition_index=each.partition,
                        acknowledgement_batches=[
                            ack.AcknowledgementBatch(
                                first_offset=run.first,
                                last_offset=run.last,
                                acknowledge_types=list(run.kinds),
                            )
                            for run in batches(acks[each])
                        ],
                    )
                    for each in parts
                ],
            )
            for topic_id, parts in _by_topic(acks)
        ],
    )


def fetched(
    answer: fetch.ShareFetchResponse,
) -> dict[TopicIdPartition, Answered]:
    """Read the answer to a ShareFetch, by partition.

    Raises:
        ProtocolError: a partition occurs twice.
    """
    found = dict[TopicIdPartition, Answered]()
    for topic in answer.responses:
        for part in topic.partitions:
            each = TopicIdPartition(topic.topic_id, part.partition_index)
            _add(
                found,
                each,
                Answered(
                    part.error_code,
                    part.error_message,
                    part.acknowledge_error_code,
                    part.acknowledge_error_message,
                    (part.current_leader.leader_id, part.current_leader.leader_epoch),
                    tuple(
                        AcquiredRange(
                            run.first_offset, run.last_offset, run.delivery_count
                        )
                        for run in part.acquired_records
                    ),
                    part.records or b"",
                ),
            )
    return found


def acknowledged(
    answer: ack.ShareAcknowledgeResponse,
) -> dict[TopicIdPartition, Answered]:
    """Read the answer to a ShareAcknowledge, by partition.

    Raises:
        ProtocolError: a partition occurs twice.
    """
    found = dict[TopicIdPartition, Answered]()
    for topic in answer.responses:
        for part in topic.partitions:
            each = TopicIdPartition(topic.topic_id, part.partition_index)
            leader = part.current_leader.leader_id, part.current_leader.leader_epoch
            _add(
                found,
                each,
                Answered(0, None, part.error_code, part.error_message, leader),
            )
    return found


def lock_of(milliseconds: int) -> float:
    """Return the duration of locks in seconds; 0 if the answer does not say it."""
    if milliseconds <= 0:
        return 0.0
    return seconds("acquisition_lock_timeout_ms", milliseconds)


def _add(
    found: dict[TopicIdPartition, Answered], each: TopicIdPartition, part: Answered
) -> None:
    if each in found:
        raise ProtocolError(
            f"partition {each.partition} of topic {each.topic_id} occurs twice in one "
            "answer"
        )
    found[each] = part


def _by_topic(
    partitions: Iterable[TopicIdPartition],
) -> Iterator[tuple[UUID, list[TopicIdPartition]]]:
    found = dict[UUID, list[TopicIdPartition]]()
    for each in partitions:
        found.setdefault(each.topic_id, []).append(each)
    yield from found.items()
