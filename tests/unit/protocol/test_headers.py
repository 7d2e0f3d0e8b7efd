"""Whole frames: what stands around a message."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, strategies as st

from kafkaio.errors import ProtocolError, UnsupportedVersion
from kafkaio.protocol import _headers as headers
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._codec import encode
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import Request, Response
from kafkaio.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from kafkaio.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkaio.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkaio.protocol.messages.request_header import RequestHeader
from kafkaio.protocol.messages.response_header import ResponseHeader
from tests.unit.protocol.populate import message_classes, populate, versions

REQUESTS = [kind for kind in message_classes() if issubclass(kind, Request)]


def unframed(frame: bytes) -> bytes:
    assert int.from_bytes(frame[:4]) == len(frame) - 4
    return frame[4:]


@pytest.mark.parametrize("kind", REQUESTS, ids=lambda kind: kind.NAME)
def test_request_and_response_round_trip(kind: type[Request[Response]]) -> None:
    random = Random(kind.NAME)
    answer = kind.response_type()
    for version in versions(kind):
        request = populate(kind, version, random)
        frame = unframed(headers.encode_request(request, version, 7, "me"))
        header, decoded = headers.decode_request(frame)
        assert decoded == request
        assert header == RequestHeader(
            request_api_key=kind.API_KEY,
            request_api_version=version,
            correlation_id=7,
            client_id="me",
        )
        response = populate(answer, version, random)
        frame = unframed(headers.encode_response(response, version, 8))
        assert headers.decode_response(answer, version, frame) == response
        assert headers.peek_correlation_id(frame) == 8


@given(st.none() | st.text(max_size=300))
def test_the_request_header_is_as_the_schema_says(client_id: str | None) -> None:
    for api_version, header_version in ((3, 1), (4, 2)):
        header = headers.encode_request_header(12, api_version, 99, client_id)
        schema = RequestHeader(
            request_api_key=12,
            request_api_version=api_version,
            correlation_id=99,
            client_id=client_id,
        )
        assert header == encode(schema, header_version)


def test_the_response_header_is_as_the_schema_says() -> None:
    for api_version, header_version in ((3, 0), (4, 1)):
        frame = headers.encode_response(HeartbeatResponse(), api_version, 99)
        header = encode(ResponseHeader(correlation_id=99), header_version)
        body = encode(HeartbeatResponse(), api_version)
        assert unframed(frame) == header + body


@pytest.mark.parametrize("version", versions(ApiVersionsResponse))
def test_api_versions_is_answered_without_header_tags(version: int) -> None:
    frame = headers.encode_response(ApiVersionsResponse(), version, 5)
    assert unframed(frame) == b"\0\0\0\5" + encode(ApiVersionsResponse(), version)


def test_known_request_bytes() -> None:
    request = ApiVersionsRequest(client_software_name="k", client_software_version="1")
    assert headers.encode_request(request, 3, 1, "c").hex() == (
        "00000011" + "0012" + "0003" + "00000001" + "000163" + "00" + "026b" + "023100"
    )
    assert headers.encode_request(request, 0, 1, None).hex() == (
        "0000000a" + "0012" + "0000" + "00000001" + "ffff"
    )


def test_parts_do_not_copy_records() -> None:
    records = bytes(100_000)
    partition = PartitionProduceData(index=1, records=records)
    topic = TopicProduceData(name="t", partition_data=[partition])
    request = ProduceRequest(topic_data=[topic])
    parts = headers.encode_request_parts(request, 9, 3, "c")
    assert any(part is records for part in parts)
    assert b"".join(parts) == headers.encode_request(request, 9, 3, "c")
    header, decoded = headers.decode_request(unframed(b"".join(parts)))
    assert header.correlation_id == 3
    assert decoded == request


def test_a_request_that_does_not_fit_leaves_its_kind_as_it_was() -> None:
    kind = headers.request_kind(HeartbeatRequest, 4, "c")
    with pytest.raises(ProtocolError, match="HeartbeatRequest v4: a value does not"):
        kind.encode(HeartbeatRequest(group_id="g", generation_id=2**40), 1)
    request = HeartbeatRequest(group_id="g", generation_id=7)
    parts = kind.encode(request, 2)
    header, decoded = headers.decode_request(unframed(b"".join(parts)))
    assert (header.correlation_id, header.client_id) == (2, "c")
    assert decoded == request


def test_a_kind_has_a_version_of_its_request() -> None:
    with pytest.raises(UnsupportedVersion, match="not 99"):
        headers.request_kind(HeartbeatRequest, 99, "c")


def test_a_kind_decodes_what_decode_response_does() -> None:
    kind = headers.request_kind(HeartbeatRequest, 4, "c")
    body = encode(HeartbeatResponse(error_code=1), 4)
    for frame in (b"\0\0\0\1\0" + body, b"\0\0\0\1" + b"\1\5\2ab" + body):
        for _ in range(3):
            assert kind.decode(frame) == HeartbeatResponse(error_code=1)
    for frame, match in (
        (b"\0\0\0\1", "cut off"),
        (b"\0\0\0\1\0" + body[:-1], "cannot be read"),
        (b"\0\0\0\1\0" + body + b"abc", "3 bytes are left over"),
    ):
        with pytest.raises(ProtocolError, match=match):
            kind.decode(frame)
    # One byte that says nothing, as some servers write it.
    assert kind.decode(b"\0\0\0\1\0" + body + b"\0").error_code == 1


def test_a_broker_that_does_not_know_our_api_versions() -> None:
    # 2.4 and later name the range of ApiVersions itself, older ones nothing at all.
    for keys in ([ApiVersion(api_key=18, min_version=0, max_version=4)], []):
        answer = ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=keys
        )
        frame = unframed(headers.encode_response(answer, 0, 1))
        assert headers.decode_api_versions(4, frame) == answer


@pytest.mark.parametrize("version", versions(ApiVersionsResponse))
def test_a_broker_that_knows_our_api_versions(version: int) -> None:
    answer = ApiVersionsResponse(api_keys=[ApiVersion(api_key=1, max_version=3)])
    frame = unframed(headers.encode_response(answer, version, 1))
    assert headers.decode_api_versions(version, frame) == answer


@pytest.mark.parametrize("size", range(6))
def test_an_answer_to_api_versions_that_is_cut_off(size: int) -> None:
    with pytest.raises(ProtocolError, match="not an answer to ApiVersions"):
        headers.decode_api_versions(3, bytes(size))


@pytest.mark.parametrize("size", range(4))
def test_a_response_without_header(size: int) -> None:
    with pytest.raises(ProtocolError, match="no header"):
        headers.peek_correlation_id(bytes(size))
    with pytest.raises(ProtocolError, match="cut off"):
        headers.decode_response(HeartbeatResponse, 4, bytes(size))
    with pytest.raises(ProtocolError, match="cannot be read"):
        headers.decode_response(HeartbeatResponse, 3, bytes(size))


def test_a_response_header_with_tags() -> None:
    body = encode(HeartbeatResponse(error_code=1), 4)
    frame = b"\0\0\0\1" + b"\1\5\2ab" + body
    assert headers.decode_response(HeartbeatResponse, 4, frame).error_code == 1
    with pytest.raises(ProtocolError, match="cut off"):
        headers.decode_response(HeartbeatResponse, 4, frame[:4])
    with pytest.raises(ProtocolError, match="cut off"):
        headers.decode_response(HeartbeatResponse, 4, frame[:8])


def test_left_over_bytes() -> None:
    frame = unframed(headers.encode_response(HeartbeatResponse(), 4, 1))
    with pytest.raises(ProtocolError, match="3 bytes are left over"):
        headers.decode_response(HeartbeatResponse, 4, frame + b"abc")


def test_a_request_of_an_unknown_version_still_has_a_header() -> None:
    frame = unframed(headers.encode_request(ApiVersionsRequest(), 3, 6, "c"))
    newer = frame[:2] + (77).to_bytes(2) + frame[4:]
    header, position = headers.decode_request_header(newer)
    assert (header.request_api_version, header.correlation_id) == (77, 6)
    assert newer[position:] == encode(ApiVersionsRequest(), 3)
    with pytest.raises(UnsupportedVersion):
        headers.decode_request(newer)


@pytest.mark.parametrize("key", [-1, 999, ApiKey.LEADER_AND_ISR])
def test_a_request_of_an_unknown_api(key: int) -> None:
    frame = key.to_bytes(2, signed=True) + bytes(20)
    with pytest.raises(ProtocolError, match="no request has API key"):
        headers.decode_request(frame)
    with pytest.raises(ProtocolError, match="no request has API key"):
        headers.encode_request_header(key, 0, 1, "c")


def test_a_request_that_is_cut_off() -> None:
    frame = unframed(headers.encode_request(HeartbeatRequest(group_id="g"), 4, 6, "me"))
    for size in range(len(frame)):
        with pytest.raises(ProtocolError):
            headers.decode_request(frame[:size])
