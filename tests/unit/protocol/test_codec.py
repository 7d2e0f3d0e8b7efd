"""Every message at every version, and the rules of the codec one by one."""

from __future__ import annotations

from random import Random
from uuid import UUID

import pytest
from hypothesis import given, settings, strategies as st

from kafkaio.errors import ProtocolError, UnsupportedVersion
from kafkaio.protocol import _codec
from kafkaio.protocol._codec import decode, decode_from, encode, encode_parts
from kafkaio.protocol._decoder import compile_decoder
from kafkaio.protocol._message import Message
from kafkaio.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
)
from kafkaio.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeResponse,
)
from kafkaio.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kafkaio.protocol.messages.create_topics import CreateTopicsRequest
from kafkaio.protocol.messages.fetch import FetchRequest, FetchResponse, ReplicaState
from kafkaio.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kafkaio.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkaio.protocol.messages.init_producer_id import InitProducerIdRequest
from kafkaio.protocol.messages.join_group import JoinGroupRequest
from kafkaio.protocol.messages.list_groups import ListGroupsResponse
from kafkaio.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
)
from kafkaio.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkaio.protocol.messages.share_fetch import (
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchResponse,
)
from kafkaio.protocol.messages.sync_group import SyncGroupResponse
from tests.unit.protocol.populate import message_classes, populate, versions
from tests.unit.protocol.tiers import Tier, tier_of

pytestmark = pytest.mark.usefixtures("tier")


@pytest.mark.parametrize("kind", message_classes(), ids=lambda kind: kind.NAME)
@settings(max_examples=5)
@given(st.randoms(use_true_random=False))
def test_round_trip(kind: type[Message], random: Random) -> None:
    for version in versions(kind):
        message = populate(kind, version, random)
        data = encode(message, version)
        assert decode(kind, version, data) == message
        assert decode(kind, version, bytearray(data)) == message
        assert b"".join(encode_parts(message, version)) == data


@pytest.mark.parametrize("kind", message_classes(), ids=lambda kind: kind.NAME)
def test_defaults_round_trip(kind: type[Message]) -> None:
    for version in versions(kind):
        assert decode(kind, version, encode(kind(), version)) == kind()


@pytest.mark.parametrize("version", [-1, 3, 19])
def test_unknown_versions_are_refused(version: int) -> None:
    with pytest.raises(UnsupportedVersion, match=r"FetchRequest has versions 4 to 18"):
        encode(FetchRequest(), version)
    with pytest.raises(UnsupportedVersion, match=r"FetchResponse has versions 4 to 18"):
        decode(FetchResponse, version, b"")


def test_an_unstable_version_is_known_but_not_the_maximum() -> None:
    assert InitProducerIdRequest.MAX_VERSION == 5
    request = InitProducerIdRequest(transactional_id="t", enable_2pc=True)
    assert decode(InitProducerIdRequest, 6, encode(request, 6)) == request
    with pytest.raises(
        UnsupportedVersion, match=r"InitProducerIdRequest v5.*enable_2pc"
    ):
        encode(request, 5)


def test_a_field_that_the_version_lacks() -> None:
    request = HeartbeatRequest(group_id="g", group_instance_id="i")
    with pytest.raises(
        UnsupportedVersion, match=r"HeartbeatRequest v2 cannot carry.*group_instance_id"
    ):
        encode(request, 2)
    assert decode(HeartbeatRequest, 3, encode(request, 3)) == request


def test_a_list_that_the_version_lacks() -> None:
    with pytest.raises(UnsupportedVersion, match="coordinator_keys"):
        encode(FindCoordinatorRequest(coordinator_keys=["a"]), 3)


def test_an_ignorable_field_is_dropped() -> None:
    request = JoinGroupRequest(group_id="g", rebalance_timeout_ms=5, reason="why")
    old = decode(JoinGroupRequest, 5, encode(request, 5))
    assert old == JoinGroupRequest(group_id="g", rebalance_timeout_ms=5)


def test_a_tagged_struct_that_the_version_lacks() -> None:
    request = FetchRequest(replica_state=ReplicaState(replica_id=1))
    with pytest.raises(UnsupportedVersion, match="replica_state"):
        encode(request, 14)


def test_null_in_an_answer_is_the_empty_value() -> None:
    # As librdkafka's mock cluster answers with an error.
    synced = decode(SyncGroupResponse, 3, bytes(4) + b"\0\x1b" + b"\xff\xff\xff\xff")
    assert synced == SyncGroupResponse(error_code=27, assignment=b"")
    # throttle, error, message, node, host, port, tags
    found = bytes(4) + b"\0\x0f" + b"\0" + bytes(4) + b"\0" + bytes(4) + b"\0"
    assert decode(FindCoordinatorResponse, 3, found) == FindCoordinatorResponse(
        error_code=15, error_message=None, host=""
    )
    assert decode(ListGroupsResponse, 4, bytes(8)).groups == []
    # throttle, one group: error, message, id, state, epochs, assignor, one member: id,
    # instance, rack, epoch, client, host, two topics, two empty assignments; the rest
    group = bytes(3) + b"\2g\1" + bytes(8) + b"\1"
    member = b"\2m" + bytes(2) + bytes(4) + b"\1\1" + b"\3\0\2t" + b"\0\1\0\1\0\0"
    body = bytes(4) + b"\2" + group + b"\2" + member + bytes(4) + bytes(2)
    described = decode(ConsumerGroupDescribeResponse, 0, body)
    assert described.groups[0].members[0].subscribed_topic_names == ["", "t"]
    with pytest.raises(ProtocolError, match="assignment is null"):
        decode(SyncGroupResponse, 3, bytes(6) + b"\xff\xff\xff\xfe")


def test_an_empty_section_of_tags_may_be_written_twice() -> None:
    answer = HeartbeatResponse(error_code=27)
    whole = encode(answer, 4)
    assert decode(HeartbeatResponse, 4, whole + b"\0") == answer
    for rest in (b"\1", b"\0\0", b"\0\1"):
        with pytest.raises(ProtocolError, match="left over"):
            decode(HeartbeatResponse, 4, whole + rest)
    with pytest.raises(ProtocolError, match="left over"):  # has no tags
        decode(HeartbeatResponse, 3, encode(answer, 3) + b"\0")
    request = HeartbeatRequest(group_id="g")
    with pytest.raises(ProtocolError, match="left over"):
        decode(HeartbeatRequest, 4, encode(request, 4) + b"\0")


def test_null_only_where_the_version_has_it() -> None:
    assert decode(MetadataRequest, 1, encode(MetadataRequest(topics=None), 1)) == (
        MetadataRequest(topics=None)
    )
    with pytest.raises(UnsupportedVersion, match=r"MetadataRequest v0.*topics"):
        encode(MetadataRequest(topics=None), 0)
    with pytest.raises(ProtocolError, match="topics is null"):
        decode(MetadataRequest, 0, b"\xff\xff\xff\xff")
    with pytest.raises(ProtocolError, match="group_id is null"):
        decode(HeartbeatRequest, 4, b"\0" + bytes(8))


@pytest.mark.parametrize(
    "request_",
    [
        HeartbeatRequest(group_id=None),  # type: ignore[arg-type] # the point of it
        HeartbeatRequest(group_id=5),  # type: ignore[arg-type] # the point of it
        HeartbeatRequest(generation_id=1 << 31),
        HeartbeatRequest(generation_id="1"),  # type: ignore[arg-type] # as above
        HeartbeatRequest(group_id="\ud800"),
        HeartbeatRequest(group_id="x" * 40_000),
        CreateTopicsRequest(topics=None),  # type: ignore[arg-type] # the point of it
    ],
    ids=["null", "type", "range", "number", "surrogate", "length", "list"],
)
@pytest.mark.parametrize("version", [3, 4])
def test_values_that_do_not_fit(request_: Message, version: int) -> None:
    with pytest.raises(ProtocolError):
        encode(request_, version)


def test_left_over_bytes() -> None:
    data = encode(HeartbeatResponse(error_code=3), 4) + b"xy"
    with pytest.raises(ProtocolError, match="2 bytes are left over"):
        decode(HeartbeatResponse, 4, data)
    message = decode(HeartbeatResponse, 4, data, exact=False)
    assert message == HeartbeatResponse(error_code=3)


def test_decode_from_a_position() -> None:
    data = b"head" + encode(HeartbeatResponse(error_code=3), 4) + b"tail"
    message, position = decode_from(HeartbeatResponse, 4, data, 4)
    assert message.error_code == 3
    assert data[position:] == b"tail"


def test_tagged_fields_equal_to_their_default_are_not_written() -> None:
    assert encode(ApiVersionsResponse(), 3).hex() == "0000" + "01" + "00000000" + "00"
    epoch = encode(ApiVersionsResponse(finalized_features_epoch=1), 3)
    assert epoch.hex() == "0000" + "01" + "00000000" + "01" + "0108" + "00" * 7 + "01"


def test_unknown_tagged_fields_are_skipped() -> None:
    known = ApiVersionsResponse(
        finalized_features=[FinalizedFeatureKey(name="f", max_version_level=2)]
    )
    data = bytearray(encode(known, 3))
    start = 2 + 1 + 4
    assert data[start] == 1
    data[start] = 3
    data += bytes.fromhex("64 02 abcd") + bytes.fromhex("c801 00")
    assert decode(ApiVersionsResponse, 3, data) == known
    # ... and in a struct that has no tagged fields at all.
    plain = encode(HeartbeatResponse(), 4)
    more = plain[:-1] + bytes.fromhex("01 07 01 ff")
    assert decode(HeartbeatResponse, 4, more) == HeartbeatResponse()


@pytest.mark.parametrize("kind", message_classes(), ids=lambda kind: kind.NAME)
def test_every_message_takes_tags_from_the_future(kind: type[Message]) -> None:
    flexible = [version for version in versions(kind) if kind.is_flexible(version)]
    for version in flexible:
        data = encode(kind(), version)
        assert data[-1] == 0
        future = data[:-1] + bytes.fromhex("02 e707 03 616263 e807 00")
        assert decode(kind, version, future) == kind()


@pytest.mark.parametrize("size", [7, 9])
def test_a_tagged_field_of_the_wrong_size(size: int) -> None:
    data = bytes.fromhex("0000 01 00000000 01 01") + bytes([size]) + bytes(size)
    with pytest.raises(ProtocolError):
        decode(ApiVersionsResponse, 3, data)


def test_a_nullable_struct() -> None:
    empty = ConsumerGroupHeartbeatResponse()
    assert empty.assignment is None
    data = encode(empty, 0)
    assert data[-2:] == b"\xff\0"
    assert decode(ConsumerGroupHeartbeatResponse, 0, data) == empty


def test_null_and_empty_lists_differ() -> None:
    for topics in (None, [], ["a"]):
        request = ConsumerGroupHeartbeatRequest(subscribed_topic_names=topics)
        data = encode(request, 0)
        assert decode(ConsumerGroupHeartbeatRequest, 0, data) == request


def test_kafka_defaults() -> None:
    request = FetchRequest()
    assert request.replica_id == -1
    assert request.max_bytes == 0x7FFFFFFF
    assert request.cluster_id is None
    assert CreateTopicsRequest().timeout_ms == 60_000
    assert MetadataRequest().allow_auto_topic_creation is True
    assert MetadataRequestTopic().topic_id == UUID(int=0)


def test_absent_fields_are_set_to_their_defaults() -> None:
    old = decode(FetchRequest, 4, encode(FetchRequest(), 4))
    assert old.replica_state == ReplicaState()
    assert old.topics is not old.forgotten_topics_data
    first, second = (decode(FetchRequest, 4, encode(FetchRequest(), 4)) for _ in "ab")
    first.forgotten_topics_data.append(None)  # type: ignore[arg-type] # is it shared?
    first.replica_state.replica_id = 9
    assert second == FetchRequest()


def produce(records: object) -> ProduceRequest:
    partition = PartitionProduceData(index=1, records=records)  # type: ignore[arg-type] # any buffer
    topic = TopicProduceData(name="t", partition_data=[partition])
    return ProduceRequest(topic_data=[topic])


def records_of(request: ProduceRequest) -> object:
    return request.topic_data[0].partition_data[0].records


@pytest.mark.parametrize("version", [3, 9])
def test_large_records_are_not_copied(version: int) -> None:
    large, small = bytes(10_000), b"small"
    parts = encode_parts(produce([large, small]), version)
    assert any(part is large for part in parts)
    assert b"".join(parts) == encode(produce(large + small), version)
    assert len(encode_parts(produce(small), version)) == 1


@pytest.mark.parametrize("version", [3, 9])
def test_decoded_records_share_the_memory_of_the_frame(version: int) -> None:
    frame = bytearray(encode(produce(b"records!"), version))
    records = records_of(decode(ProduceRequest, version, frame))
    assert isinstance(records, memoryview)
    assert records == b"records!"
    frame[frame.index(b"records!")] = ord("R")
    assert records == b"Records!"


@pytest.mark.parametrize("version", [3, 9])
@pytest.mark.parametrize("records", [None, b"", (), [b"a", memoryview(b"b")]])
def test_records_of_every_form(records: object, version: int) -> None:
    decoded = records_of(
        decode(ProduceRequest, version, encode(produce(records), version))
    )
    if records is None:
        assert decoded is None
    else:
        whole = records if isinstance(records, bytes) else b"".join(records)  # type: ignore[arg-type] # parts
        assert decoded == whole


def test_records_that_may_not_be_null() -> None:
    topic = ShareFetchableTopicResponse(partitions=[PartitionData(records=b"")])
    response = ShareFetchResponse(responses=[topic])
    assert decode(ShareFetchResponse, 1, encode(response, 1)) == response
    topic.partitions[0].records = None  # type: ignore[assignment] # the point of it
    with pytest.raises(ProtocolError):
        encode(response, 1)


def test_bytes_are_copied() -> None:
    frame = bytearray(encode(SyncGroupResponse(assignment=b"abc"), 3))
    response = decode(SyncGroupResponse, 3, frame)
    frame[:] = bytes(len(frame))
    assert response.assignment == b"abc"
    assert type(response.assignment) is bytes


def test_software_names_are_written_as_text() -> None:
    request = ApiVersionsRequest(client_software_name="kafkaio")
    assert encode(request, 3).hex() == "08" + b"kafkaio".hex() + "01" + "00"


def test_versions_that_do_not_differ_share_a_decoder() -> None:
    answer = ApiVersionsResponse(
        api_keys=[ApiVersion(api_key=3, max_version=13)],
        finalized_features_epoch=5,
    )
    with tier_of(Tier.COMPILED):
        for version in range(6):
            decoded = decode(ApiVersionsResponse, version, encode(answer, version))
            assert decoded.api_keys == answer.api_keys
            assert decoded.finalized_features_epoch == (5 if version >= 3 else -1)
        found = [_codec._DECODERS[ApiVersionsResponse, v] for v in range(6)]
    assert found[1] is found[2]
    assert found[3] is found[4] is found[5]
    assert len({*found}) == 3  # without throttle time, with it, with features


def test_a_part_that_is_rarely_there_is_compiled_when_it_is() -> None:
    names: dict[str, object] = compile_decoder(ApiVersionsResponse, 3).__globals__  # type: ignore[attr-defined]
    (part,) = (name for name in names if name.startswith("tags"))
    before = names[part]
    empty = encode(ApiVersionsResponse(), 3)
    names["decode"](empty, 0, len(empty))  # type: ignore[operator]
    assert names[part] is before
    full = encode(ApiVersionsResponse(zk_migration_ready=True), 3)
    decoded, _ = names["decode"](full, 0, len(full))  # type: ignore[operator]
    assert decoded.zk_migration_ready
    assert names[part] is not before
