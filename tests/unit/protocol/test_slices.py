"""Decoding in slices: the same values, bounded memory, and turns in between."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Generator, Iterator
from random import Random
from typing import TypeVar

import pytest

from kafkaio.errors import ProtocolError, UnsupportedVersion
from kafkaio.protocol import _codec
from kafkaio.protocol._codec import decode, decode_in_slices, encode
from kafkaio.protocol._headers import decode_response_in_slices, encode_response
from kafkaio.protocol._interpreter import FILLED
from kafkaio.protocol._message import Message
from kafkaio.protocol._primitives import uvarint
from kafkaio.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kafkaio.protocol.messages.list_groups import ListedGroup, ListGroupsResponse
from kafkaio.protocol.messages.metadata import MetadataResponse
from tests.support.hostile import fetched_topics, groups, quotas, replicas
from tests.unit.protocol.populate import every_version, message_classes, populate
from tests.unit.protocol.tiers import unused

T = TypeVar("T")


def run(slices: Generator[None, None, T]) -> tuple[T, int]:
    """What the generator returns, and how often it yielded."""
    turns = 0
    while True:
        try:
            next(slices)
        except StopIteration as end:
            found: T = end.value
            return found, turns
        turns += 1


@pytest.fixture
def _first() -> Iterator[None]:
    """Decode as in a process that has not done so before."""
    with unused():
        yield


#: Of each test that is not one of both tiers.
first = pytest.mark.usefixtures("_first")


@pytest.mark.usefixtures("tier")
@pytest.mark.parametrize("kind", message_classes(), ids=lambda kind: kind.NAME)
def test_it_finds_what_the_whole_decoder_finds(kind: type[Message]) -> None:
    random = Random(kind.NAME)
    for version in [v for known, v in every_version() if known is kind]:
        for _ in range(3):
            data = encode(populate(kind, version, random), version)
            slices = decode_in_slices(kind, version, data, 0, max_memory=1 << 40)
            found, _ = run(slices)
            assert encode(found, version) == encode(
                decode(kind, version, data), version
            )
            for size in range(0, len(data), max(1, len(data) // 20)):
                slices = decode_in_slices(
                    kind, version, data[:size], 0, max_memory=1 << 40
                )
                with pytest.raises(ProtocolError):
                    run(slices)


@first
@pytest.mark.parametrize(
    ("kind", "version", "body"),
    [
        (ListGroupsResponse, 5, groups(200_000)),
        (MetadataResponse, 12, replicas(250_000)),
    ],
)
def test_a_long_message_yields_often(
    kind: type[Message], version: int, body: bytes
) -> None:
    slices = decode_in_slices(kind, version, body, 0, max_memory=20 * len(body))
    found, turns = run(slices)
    assert turns >= len(body) // 10_000
    assert encode(found, version) == body


@first
@pytest.mark.parametrize("count", [1, 1_000, 100_000])
def test_a_message_that_takes_too_much_memory_is_refused(count: int) -> None:
    for number, body in enumerate((quotas(count), fetched_topics(count))):
        kind = (_quotas(), FetchResponse)[number]
        version = (1, 12)[number]
        slices = decode_in_slices(kind, version, body, 0, max_memory=19 * count)
        with pytest.raises(ProtocolError, match="too much memory"):
            run(slices)


def _quotas() -> type[Message]:
    from kafkaio.protocol.messages.describe_client_quotas import (
        DescribeClientQuotasResponse,
    )

    return DescribeClientQuotasResponse


@first
def test_nothing_is_compiled_for_a_few_large_values() -> None:
    parts = [PartitionData(partition_index=n, records=bytes(100_000)) for n in range(5)]
    topic = FetchableTopicResponse(topic="t", partitions=parts)
    data = encode(FetchResponse(responses=[topic]), 12)
    for _ in range(5):
        found, turns = run(
            decode_in_slices(FetchResponse, 12, data, 0, max_memory=1 << 40)
        )
        assert (encode(found, 12), turns) == (data, 0)
    assert not _codec._SLICED
    # In the end it pays.
    for _ in range(50):
        run(decode_in_slices(FetchResponse, 12, data, 0, max_memory=1 << 40))
    assert _codec._SLICED


@first
@pytest.mark.parametrize(
    ("kind", "version", "body"),
    [
        (ListGroupsResponse, 5, groups(20_000)),
        (ListGroupsResponse, 5, groups(100)),
        (MetadataResponse, 12, replicas(8_000)),
        (MetadataResponse, 12, replicas(8_500)),
        (MetadataResponse, 12, replicas(1_000_000)),
        (FetchResponse, 12, fetched_topics(20_000)),
        (FetchResponse, 12, fetched_topics(170)),
    ],
)
def test_the_memory_that_is_filled_before_anything_is_compiled_is_bounded(
    kind: type[Message], version: int, body: bytes
) -> None:
    tracemalloc.start()
    try:
        found = _codec._interpret(kind, version, body, 0, 1 << 40)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < FILLED + len(body)
    if found is not None:
        assert encode(found[0], version) == body


@first
def test_tagged_fields_count_and_yield() -> None:
    # The tag of Fetch's node endpoints, again and again: each replaces the one before.
    endpoint = struct.pack(">i", 1) + b"\2h" + struct.pack(">i", 9) + b"\0" + b"\0"
    size = 1000
    endpoints = uvarint(size + 1) + endpoint * size
    tag = b"\0" + uvarint(len(endpoints)) + endpoints
    count = 20
    body = struct.pack(">ihi", 0, 0, 0) + b"\1" + uvarint(count) + tag * count
    found, turns = run(decode_in_slices(FetchResponse, 16, body, 0, max_memory=1 << 40))
    assert len(found.node_endpoints) == size
    assert turns > count
    slices = decode_in_slices(FetchResponse, 16, body, 0, max_memory=10_000)
    with pytest.raises(ProtocolError, match="too much memory"):
        run(slices)
    many = struct.pack(">ihi", 0, 0, 0) + b"\1" + uvarint(1001) + b"\7\0" * 1001
    with pytest.raises(ProtocolError, match="1001"):
        decode(FetchResponse, 16, many)


@first
def test_bytes_that_are_left_over_are_refused() -> None:
    body = groups(1) + b"x"
    slices = decode_in_slices(ListGroupsResponse, 5, body, 0, max_memory=10_000)
    with pytest.raises(ProtocolError, match="1 bytes are left over"):
        run(slices)


@first
def test_a_version_that_does_not_exist_is_refused() -> None:
    slices = decode_in_slices(ListGroupsResponse, 99, b"", 0, max_memory=10_000)
    with pytest.raises(UnsupportedVersion):
        run(slices)


@first
@pytest.mark.parametrize("version", [0, 5])
def test_a_frame_is_read_with_its_header(version: int) -> None:
    response = ListGroupsResponse(groups=[ListedGroup(group_id="g")])
    frame = encode_response(response, version, 7)[4:]
    slices = decode_response_in_slices(
        ListGroupsResponse, version, frame, max_memory=10_000
    )
    assert run(slices)[0].groups[0].group_id == "g"
