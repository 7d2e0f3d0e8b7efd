"""Records of other versions in the offsets topic are read, too."""

from __future__ import annotations

import struct
from uuid import UUID

import pytest

from kafkaio.testing._groups.offsets import Committed
from kafkaio.testing._groups.records import (
    GroupImage,
    group_value,
    offset_value,
    read_group,
    read_offset,
)

TOPIC_ID = UUID(int=5)


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def compact(value: bytes) -> bytes:
    return bytes([len(value) + 1]) + value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            struct.pack(">hq", 0, 7) + text("m") + struct.pack(">q", 9),
            Committed(7, -1, "m", 9),
        ),
        (
            struct.pack(">hq", 1, 7) + text("m") + struct.pack(">qq", 9, 11),
            Committed(7, -1, "m", 9, 11),
        ),
        (
            struct.pack(">hq", 1, 7) + text("m") + struct.pack(">qq", 9, -1),
            Committed(7, -1, "m", 9),
        ),
        (
            struct.pack(">hq", 2, 7) + text("m") + struct.pack(">q", 9),
            Committed(7, -1, "m", 9),
        ),
        (
            struct.pack(">hqi", 3, 7, 4) + text("m") + struct.pack(">q", 9),
            Committed(7, 4, "m", 9),
        ),
        (
            struct.pack(">hqi", 4, 7, 4) + compact(b"m") + struct.pack(">q", 9) + b"\0",
            Committed(7, 4, "m", 9),
        ),
        (
            struct.pack(">hqi", 4, 7, 4)
            + compact(b"m" * 3)
            + struct.pack(">q", 9)
            + bytes([1, 0, 16])
            + TOPIC_ID.bytes,
            Committed(7, 4, "mmm", 9, None, TOPIC_ID),
        ),
    ],
)
def test_offsets_of_every_version(value: bytes, expected: Committed) -> None:
    assert read_offset(value) == expected


def test_a_long_text_of_a_compact_version() -> None:
    length = bytes([0x80 | 201 & 0x7F, 201 >> 7])
    value = struct.pack(">hqi", 4, 7, 4) + length + b"m" * 200
    assert read_offset(value + struct.pack(">q", 9) + b"\0").metadata == "m" * 200


def test_an_offset_as_it_is_written() -> None:
    committed = Committed(7, 4, "m", 9)
    assert read_offset(offset_value(committed)) == committed


@pytest.mark.parametrize("version", range(5))
def test_groups_of_every_version(version: int) -> None:
    def string(value: str) -> bytes:
        return compact(value.encode()) if version == 4 else text(value)

    def blob(value: bytes) -> bytes:
        if version == 4:
            return compact(value)
        return struct.pack(">i", len(value)) + value

    value = struct.pack(">h", version) + string("consumer") + struct.pack(">i", 3)
    value += string("range") + string("a")
    value += struct.pack(">q", 9) if version >= 2 else b""
    value += b"\x02" if version == 4 else struct.pack(">i", 1)
    value += string("a") + (string("i") if version >= 3 else b"")
    value += string("c") + string("/h")
    value += struct.pack(">i", 60_000) if version else b""
    value += struct.pack(">i", 10_000) + blob(b"sub") + blob(b"assigned")
    value += b"\0\0" if version == 4 else b""
    image = read_group(value)
    assert (image.protocol_type, image.generation, image.protocol) == (
        "consumer",
        3,
        "range",
    )
    assert (image.leader, image.timestamp_ms) == ("a", 9 if version >= 2 else -1)
    (member,) = image.members
    assert member.instance_id == ("i" if version >= 3 else None)
    assert member.rebalance_timeout == (60.0 if version else 10.0)
    assert (member.metadata("range"), member.assignment) == (b"sub", b"assigned")


def test_a_group_as_it_is_written() -> None:
    image = GroupImage("consumer", 3, None, None, 9, ())
    assert read_group(group_value(image)) == image


def test_versions_that_nobody_wrote() -> None:
    for read in (read_offset, read_group):
        with pytest.raises(ValueError, match="version 5"):
            read(struct.pack(">h", 5))
