"""Produce requests with one batch, and answers that are not decoded."""

from uuid import UUID

import pytest
from hypothesis import given, strategies as st

from kafkaio._machines.accumulator.exchange import Acknowledgement, Exchange
from kafkaio.protocol._headers import decode_response, encode_response
from kafkaio.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from kafkaio.types import TopicPartition

TP = TopicPartition("t", 3)
ID = UUID(int=2**127 + 5)
VERSIONS = range(ProduceResponse.MIN_VERSION, ProduceResponse.MAX_VERSION + 1)
BY_ID = 13
OFFSETS = st.integers(-1, 2**62)
TIMES = st.integers(-1, 2**63 - 1)


def answer(
    version: int,
    offset: int = 7,
    time: int = -1,
    *,
    index: int = 3,
    start: int = 0,
    throttle_ms: int = 0,
    topic: str = "t",
    topic_id: UUID = ID,
    code: int = 0,
) -> ProduceResponse:
    written = PartitionProduceResponse(
        index=index,
        error_code=code,
        base_offset=offset,
        log_append_time_ms=time,
        log_start_offset=start if version >= 5 else -1,
    )
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name="" if version >= BY_ID else topic,
                topic_id=topic_id if version >= BY_ID else UUID(int=0),
                partition_responses=[written],
            )
        ],
        throttle_time_ms=throttle_ms,
    )


def frame(response: ProduceResponse, version: int, number: int = 1) -> bytes:
    return encode_response(response, version, number)[4:]


def keeping(response: ProduceResponse, version: int) -> Acknowledgement:
    """What is known after a first answer."""
    known = Acknowledgement(TP, ID)
    first = frame(response, version)
    assert known.repeated(version, first) is None
    known.keep(version, first, decode_response(ProduceResponse, version, first))
    return known


@pytest.mark.parametrize("version", VERSIONS)
@given(first=st.tuples(OFFSETS, TIMES), then=st.lists(st.tuples(OFFSETS, TIMES)))
def test_answers_that_differ_in_what_was_written_are_read_as_they_are_decoded(
    version: int, first: tuple[int, int], then: list[tuple[int, int]]
) -> None:
    known = keeping(answer(version, *first), version)
    for number, written in enumerate([*then, first]):
        came = frame(answer(version, *written), version, number)
        response = known.repeated(version, came)
        assert response is known.response
        assert response == decode_response(ProduceResponse, version, came)
        said = known.written.base_offset, known.written.log_append_time_ms
        assert said == written


@pytest.mark.parametrize("version", VERSIONS)
def test_any_other_answer_is_decoded(version: int) -> None:
    known = keeping(answer(version), version)
    others = [
        answer(version, throttle_ms=1),
        answer(version, index=4),
        answer(version, topic="u", topic_id=UUID(int=1)),
        answer(version, code=6),
        ProduceResponse(),
        ProduceResponse(responses=answer(version).responses * 2),
    ]
    if version >= 5:
        others.append(answer(version, start=1))
    for other in others:
        assert known.repeated(version, frame(other, version)) is None
    whole = frame(answer(version), version)
    for size in range(len(whole)):
        assert known.repeated(version, whole[:size]) is None
    assert known.repeated(version, whole + b"\0") is None
    assert known.repeated(version - 1, whole) is None
    assert known.repeated(version, whole) == answer(version)


@pytest.mark.parametrize("offset", [-2, 2**62 + 1])
def test_an_offset_out_of_bounds_is_left_to_the_check_of_every_answer(
    offset: int,
) -> None:
    known = keeping(answer(BY_ID), BY_ID)
    assert known.repeated(BY_ID, frame(answer(BY_ID, offset), BY_ID)) is None


def with_details() -> ProduceResponse:
    response = answer(BY_ID)
    (written,) = response.responses[0].partition_responses
    written.record_errors = [BatchIndexAndErrorMessage(batch_index=0)]
    written.current_leader = LeaderIdAndEpoch(leader_id=1, leader_epoch=2)
    return response


def test_fields_that_are_seldom_set_do_not_move_the_place() -> None:
    known = keeping(with_details(), BY_ID)
    later = with_details()
    later.responses[0].partition_responses[0].base_offset = 8
    assert known.repeated(BY_ID, frame(later, BY_ID)) == later


@pytest.mark.parametrize(
    "response",
    [
        answer(BY_ID, code=6),
        answer(BY_ID, index=4),
        answer(BY_ID, topic_id=UUID(int=1)),
        ProduceResponse(),
        ProduceResponse(responses=answer(BY_ID).responses * 2),
        ProduceResponse(
            responses=[
                TopicProduceResponse(
                    topic_id=ID,
                    partition_responses=2
                    * answer(BY_ID).responses[0].partition_responses,
                )
            ]
        ),
    ],
    ids=["error", "partition", "topic", "nothing", "topics", "partitions"],
)
def test_what_is_no_acknowledgement_of_the_partition_is_not_kept(
    response: ProduceResponse,
) -> None:
    known = keeping(answer(BY_ID), BY_ID)
    came = frame(response, BY_ID)
    known.keep(BY_ID, came, decode_response(ProduceResponse, BY_ID, came))
    assert known.response is None
    assert known.repeated(BY_ID, came) is None
    assert known.repeated(BY_ID, frame(answer(BY_ID), BY_ID)) is None


def test_numbers_that_stand_elsewhere_first_are_not_taken_for_the_place() -> None:
    # The id of the topic has the bytes of the offset and the time.
    topic_id = UUID(bytes=(7).to_bytes(8, "big") + (9).to_bytes(8, "big"))
    known = Acknowledgement(TP, topic_id)
    known.keep(
        BY_ID,
        frame(answer(BY_ID, 7, 9, topic_id=topic_id), BY_ID),
        answer(BY_ID, 7, 9, topic_id=topic_id),
    )
    later = answer(BY_ID, 8, 9, topic_id=topic_id)
    assert known.repeated(BY_ID, frame(later, BY_ID)) == later


def test_an_answer_whose_numbers_stand_nowhere_is_not_kept() -> None:
    known = Acknowledgement(TP, ID)
    known.keep(BY_ID, frame(answer(BY_ID, 7), BY_ID), answer(BY_ID, 8))
    assert known.response is None


def places(exchange: Exchange) -> list[tuple[str, int, object]]:
    return [
        (topic.name, data.index, data.records)
        for topic in exchange.request.topic_data
        for data in topic.partition_data
    ]


def test_a_request_with_one_batch_takes_one_after_the_other() -> None:
    exchange = Exchange.of_one(TP, ID, -1, 30_000)
    for records in (b"one", b"two"):
        assert places(exchange) == [("t", 3, None)]
        exchange.last.records = records
        assert places(exchange) == [("t", 3, records)]
        exchange.clear()
    assert (exchange.request.acks, exchange.request.timeout_ms) == (-1, 30_000)
    assert exchange.names == {ID.int: "t"}
    assert exchange.max_version is None
    assert exchange.answer is not None


def test_a_request_with_several_batches_groups_them_by_topic() -> None:
    exchange = Exchange(1, 0)
    exchange.add(TP, ID, b"t3")
    exchange.add(TopicPartition("u", 0), None, b"u0")
    exchange.add(TopicPartition("t", 5), ID, b"t5")
    assert places(exchange) == [("t", 3, b"t3"), ("t", 5, b"t5"), ("u", 0, b"u0")]
    assert exchange.names == {ID.int: "t"}
    assert exchange.max_version == BY_ID - 1  # "u" has no id
    assert exchange.answer is None
    exchange.clear()
    assert [records for *_, records in places(exchange)] == [None, None, None]
