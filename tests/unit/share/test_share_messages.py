"""Requests and answers of share consumers."""

from __future__ import annotations

from uuid import UUID

import pytest

from kafkaio._config import ShareConsumerConfig
from kafkaio._machines.share.ledger import AckRange, AcquiredRange
from kafkaio._machines.share.membership import SendShareHeartbeat
from kafkaio._machines.share.room import Grant
from kafkaio._machines.share.session import SessionPlan, TopicIdPartition
from kafkaio._share.messages import (
    acknowledge_request,
    acknowledged,
    assignment_of,
    fetch_request,
    fetched,
    heartbeat_request,
    lock_of,
)
from kafkaio.errors import ProtocolError
from kafkaio.protocol.messages import (
    share_acknowledge as ack,
    share_fetch as fetch,
    share_group_heartbeat as beat,
)

ONE, TWO = UUID(int=1), UUID(int=2)
A, B, C = TopicIdPartition(ONE, 0), TopicIdPartition(ONE, 1), TopicIdPartition(TWO, 0)


def config(**options: object) -> ShareConsumerConfig:
    return ShareConsumerConfig.of("localhost", {"group_id": "workers", **options})


@pytest.mark.parametrize(
    ("mode", "number"), [("batch_optimized", 0), ("record_limit", 1)]
)
def test_a_fetch_has_what_is_added_and_what_is_acknowledged(
    mode: str, number: int
) -> None:
    request = fetch_request(
        config(acquire_mode=mode, fetch_min_bytes=7),
        "me",
        SessionPlan(3, (A, C), (B,)),
        {A: [AckRange(0, 4, 1), AckRange(5, 5, 2)], C: [AckRange(9, 9, 0)]},
        Grant(40, 5000, is_scarce=False),
        0.25,
    )
    assert (request.group_id, request.member_id) == ("workers", "me")
    assert (request.share_session_epoch, request.max_wait_ms) == (3, 250)
    assert (request.min_bytes, request.max_bytes) == (7, 5000)
    assert (request.max_records, request.batch_size) == (40, 40)
    assert (request.share_acquire_mode, request.is_renew_ack) == (number, False)
    batch = fetch.AcknowledgementBatch
    assert request.topics == [
        fetch.FetchTopic(
            topic_id=ONE,
            partitions=[
                fetch.FetchPartition(
                    partition_index=0,
                    acknowledgement_batches=[
                        batch(
                            first_offset=0,
                            last_offset=5,
                            acknowledge_types=[1, 1, 1, 1, 1, 2],
                        )
                    ],
                )
            ],
        ),
        fetch.FetchTopic(
            topic_id=TWO,
            partitions=[
                fetch.FetchPartition(
                    partition_index=0,
                    acknowledgement_batches=[
                        batch(first_offset=9, last_offset=9, acknowledge_types=[0])
                    ],
                )
            ],
        ),
    ]
    assert request.forgotten_topics_data == [
        fetch.ForgottenTopic(topic_id=ONE, partitions=[1])
    ]


def test_a_fetch_that_only_opens_a_session_asks_for_nothing() -> None:
    request = fetch_request(config(), "me", SessionPlan(0, (), ()), {}, None, 0.0)
    assert request.topics == []
    sizes = request.max_wait_ms, request.min_bytes, request.max_bytes
    assert (*sizes, request.max_records, request.batch_size) == (0, 0, 0, 0, 0)


def test_an_acknowledgement_says_whether_it_renews() -> None:
    acks = {B: [AckRange(0, 9, 4)], A: [AckRange(3, 3, 1)]}
    request = acknowledge_request(
        "workers", "me", SessionPlan(-1, (), ()), acks, renews=True
    )
    assert (request.share_session_epoch, request.is_renew_ack) == (-1, True)
    (topic,) = request.topics
    assert [part.partition_index for part in topic.partitions] == [1, 0]
    (run,) = topic.partitions[0].acknowledgement_batches
    assert (run.first_offset, run.last_offset, run.acknowledge_types) == (0, 9, [4])


def test_a_heartbeat() -> None:
    joins = SendShareHeartbeat(1, "me", 0, ("jobs", "more"), 5.0)
    request = heartbeat_request("workers", "rack-1", joins)
    assert request == beat.ShareGroupHeartbeatRequest(
        group_id="workers",
        member_id="me",
        member_epoch=0,
        rack_id="rack-1",
        subscribed_topic_names=["jobs", "more"],
    )
    stays = SendShareHeartbeat(2, "me", 4, None, 5.0)
    assert heartbeat_request("workers", None, stays).subscribed_topic_names is None


def assigned(*topics: tuple[UUID, list[int]]) -> beat.ShareGroupHeartbeatResponse:
    return beat.ShareGroupHeartbeatResponse(
        member_epoch=1,
        assignment=beat.Assignment(
            topic_partitions=[
                beat.TopicPartitions(topic_id=topic_id, partitions=numbers)
                for topic_id, numbers in topics
            ]
        ),
    )


def test_assignments() -> None:
    assert assignment_of(assigned((ONE, [0, 1]), (TWO, [0]))) == frozenset({A, B, C})
    assert assignment_of(assigned()) == frozenset()
    assert assignment_of(beat.ShareGroupHeartbeatResponse()) is None
    failed = assigned((ONE, [0]))
    failed.error_code = 25
    assert assignment_of(failed) is None
    with pytest.raises(ProtocolError, match="too large"):
        assignment_of(assigned((ONE, [0] * 1_000_001)))


def answered(*parts: fetch.PartitionData) -> fetch.ShareFetchResponse:
    return fetch.ShareFetchResponse(
        responses=[
            fetch.ShareFetchableTopicResponse(topic_id=ONE, partitions=list(parts))
        ]
    )


def test_an_answer_by_partition() -> None:
    part = fetch.PartitionData(
        partition_index=1,
        error_code=6,
        error_message="moved",
        acknowledge_error_code=121,
        acknowledge_error_message="not locked",
        current_leader=fetch.LeaderIdAndEpoch(leader_id=2, leader_epoch=9),
        records=b"abc",
        acquired_records=[
            fetch.AcquiredRecords(first_offset=4, last_offset=6, delivery_count=2)
        ],
    )
    found = fetched(answered(part))
    assert list(found) == [B]
    it = found[B]
    assert (it.code, it.message, it.leader) == (6, "moved", (2, 9))
    assert (it.ack_code, it.ack_message) == (121, "not locked")
    assert it.acquired == (AcquiredRange(4, 6, 2),)
    assert bytes(it.data) == b"abc"
    with pytest.raises(ProtocolError, match="occurs twice"):
        fetched(answered(part, part))


def test_an_answer_to_acknowledgements() -> None:
    part = ack.PartitionData(partition_index=0, error_code=121, error_message="no")
    answer = ack.ShareAcknowledgeResponse(
        responses=[ack.ShareAcknowledgeTopicResponse(topic_id=ONE, partitions=[part])]
    )
    it = acknowledged(answer)[A]
    assert (it.code, it.ack_code, it.ack_message) == (0, 121, "no")
    answer.responses *= 2
    with pytest.raises(ProtocolError, match="occurs twice"):
        acknowledged(answer)


def test_the_duration_of_locks_has_bounds() -> None:
    assert lock_of(30_000) == 30.0
    assert lock_of(0) == lock_of(-1) == 0.0
    assert lock_of(1) == 0.1
    assert lock_of(2**31 - 1) == 3600.0
