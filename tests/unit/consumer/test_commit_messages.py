"""The bytes of a request that is sent again are those of a request made anew."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from kafkaio._consumer.commits.messages import MAX_VERSION, CommitRequests
from kafkaio.errors import ProtocolError
from kafkaio.protocol._codec import decode, encode
from kafkaio.protocol.messages.offset_commit import OffsetCommitRequest
from kafkaio.types import GroupMetadata, OffsetAndMetadata, TopicPartition

ME = GroupMetadata(
    group_id="g", generation=3, member_id="m", topics=frozenset({"t", "u"})
)
OTHER = GroupMetadata(
    group_id="g", generation=4, member_id="m", topics=frozenset({"t", "u"})
)
PLACES = st.builds(
    OffsetAndMetadata,
    st.integers(0, 2**63 - 1),
    st.sampled_from(["", "", "", "note", "ü" * 200]),
    st.integers(-1, 2**31 - 1),
)
PARTITIONS = st.sampled_from(
    [TopicPartition(topic, number) for topic in "tu" for number in (0, 1, 2**31 - 1)]
)
OFFSETS = st.dictionaries(PARTITIONS, PLACES, min_size=1, max_size=4)
A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def sent(
    requests: CommitRequests,
    identity: GroupMetadata,
    offsets: dict[TopicPartition, OffsetAndMetadata],
    version: int,
) -> bytes:
    return encode(requests.make(identity, offsets), version)


@given(
    st.lists(st.tuples(st.sampled_from([ME, ME, OTHER]), OFFSETS), max_size=4),
    st.lists(st.lists(PLACES, min_size=4, max_size=4), max_size=4),
    st.integers(OffsetCommitRequest.MIN_VERSION, MAX_VERSION),
)
def test_bytes_are_those_of_a_request_made_anew(
    commits: list[tuple[GroupMetadata, dict[TopicPartition, OffsetAndMetadata]]],
    again: list[list[OffsetAndMetadata]],
    version: int,
) -> None:
    requests = CommitRequests()
    for identity, offsets in commits:
        followed = [dict(zip(offsets, places, strict=False)) for places in again]
        for each in (offsets, *followed):
            found = sent(requests, identity, each, version)
            assert found == sent(CommitRequests(), identity, each, version)


def test_a_broker_of_another_version_gets_its_own_bytes() -> None:
    requests = CommitRequests()
    for number in range(12):
        offsets = {A: OffsetAndMetadata(number, "", 1), B: OffsetAndMetadata(7)}
        version = (9, 6, 2)[number % 3]
        found = sent(requests, ME, offsets, version)
        assert found == sent(CommitRequests(), ME, offsets, version)
        back = decode(OffsetCommitRequest, version, found)
        (topic,) = back.topics
        assert [each.committed_offset for each in topic.partitions] == [number, 7]


def test_many_partitions_are_encoded_each_time() -> None:
    requests = CommitRequests()
    for number in range(4):
        offsets = {
            TopicPartition("t", each): OffsetAndMetadata(number) for each in range(101)
        }
        found = sent(requests, ME, offsets, 9)
        assert found == sent(CommitRequests(), ME, offsets, 9)


def test_a_number_that_does_not_fit_is_refused_as_ever() -> None:
    requests = CommitRequests()
    for number in (1, 2, 3, 2**63):
        made = requests.make(ME, {A: OffsetAndMetadata(number)})
        if number < 2**63:
            encode(made, 9)
            continue
        with pytest.raises(ProtocolError, match="OffsetCommitRequest v9"):
            encode(made, 9)
