"""Bytes from a peer that lies: always ProtocolError, never much memory."""

from __future__ import annotations

import tracemalloc
from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from kafkaio.errors import ProtocolError
from kafkaio.protocol._codec import decode, encode
from kafkaio.protocol._message import Field, Message, Struct
from kafkaio.protocol._primitives import uvarint
from kafkaio.protocol._schema import minimum_size
from kafkaio.protocol.messages.fetch import FetchResponse
from kafkaio.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.unit.protocol.populate import message_classes, populate, versions

pytestmark = pytest.mark.usefixtures("tier")

#: Positions tried in one message; longer ones are sampled.
POSITIONS = 120


def positions(size: int, random: Random) -> list[int]:
    if size <= POSITIONS:
        return list(range(size))
    return sorted(random.sample(range(size), POSITIONS))


@pytest.mark.parametrize("kind", message_classes(), ids=lambda kind: kind.NAME)
def test_every_truncation(kind: type[Message]) -> None:
    random = Random(kind.NAME)
    for version in versions(kind):
        data = encode(populate(kind, version, random), version)
        for size in positions(len(data), random):
            with pytest.raises(ProtocolError):
                decode(kind, version, data[:size])


@pytest.mark.parametrize("kind", message_classes(), ids=lambda kind: kind.NAME)
def test_every_byte_flipped(kind: type[Message]) -> None:
    random = Random(kind.NAME)
    outcomes = set()
    for version in versions(kind):
        data = bytearray(encode(populate(kind, version, random), version))
        for position in positions(len(data), random):
            honest = data[position]
            for lie in (honest ^ 0xFF, 0xFF, 0x7F, 0x80, 0):
                data[position] = lie
                outcomes.add(outcome(kind, version, data))
            data[position] = honest
    assert outcomes <= {"decoded", "refused"}


def outcome(kind: type[Message], version: int, data: bytes | bytearray) -> str:
    try:
        decode(kind, version, data)
    except ProtocolError as error:
        named = str(error).startswith(f"{kind.NAME} v{version}")
        return "refused" if named else f"badly named: {error}"
    return "decoded"


@settings(max_examples=300)
@given(st.data(), st.binary(max_size=100))
def test_noise(draw: st.DataObject, noise: bytes) -> None:
    kind = draw.draw(st.sampled_from(message_classes()))
    version = draw.draw(st.sampled_from(versions(kind)))
    assert outcome(kind, version, noise) in {"decoded", "refused"}


BILLION = 0x7FFFFFFF


@pytest.mark.parametrize(
    ("kind", "version", "data"),
    [
        # an array of structs, classic and compact
        (MetadataRequest, 1, BILLION.to_bytes(4)),
        (MetadataRequest, 9, uvarint(BILLION)),
        (MetadataRequest, 9, uvarint(0xFFFFFFFF)),
        # an array of int32 behind honest fields
        (
            MetadataResponse,
            1,
            bytes(4) + bytes(4) + b"\0\0\0\1" + b"\0\0" + b"\0\0" + b"\0"
            + b"\0\0\0\1" + b"\0\0" + bytes(4) + bytes(4) + BILLION.to_bytes(4),
        ),
        # records
        (
            FetchResponse,
            4,
            bytes(4) + b"\0\0\0\1" + b"\0\0" + b"\0\0\0\1" + bytes(22)
            + b"\xff\xff\xff\xff" + BILLION.to_bytes(4),
        ),
        # a section of a billion tagged fields
        (MetadataRequest, 9, b"\0" + b"\0\0\0" + uvarint(BILLION)),
    ],
)  # fmt: skip
def test_announced_lengths_cost_no_memory(
    kind: type[Message], version: int, data: bytes
) -> None:
    outcome(kind, version, data)  # compiles the decoder
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError):
            decode(kind, version, data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 64_000


def test_memory_is_in_proportion_to_the_frame() -> None:
    # The cheapest elements on the wire are the dearest ones in memory.
    size = 100_000
    data = bytes(4) + b"\1\0" + bytes(4) + uvarint(size + 1) + bytes(size)
    tracemalloc.start()
    try:
        outcome(MetadataResponse, 9, data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 30 * size


class Empty(Struct):
    __slots__ = ()


class Old(Struct):
    __slots__ = ()
    SCHEMA = (
        Field("gone", "int64", (0, 1)),
        Field("tag", "int8", (0, 9), tag=0, tagged=(0, 9)),
    )


@pytest.mark.parametrize("kind", [Empty, Old])
def test_an_element_of_no_bytes_counts_as_one(kind: type[Struct]) -> None:
    field = Field("items", kind, (0, 9), array=True)
    assert minimum_size(field, 2, flexible=False) == 1
    assert minimum_size(field, 2, flexible=True) == 1
