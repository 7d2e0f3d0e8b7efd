"""However a stream is cut, its frames are the same."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from kafkaio.errors import ProtocolError
from kafkaio.protocol._framing import FrameBuffer, frame_size

MAX = 1000


def framed(frames: list[bytes]) -> bytes:
    return b"".join(len(frame).to_bytes(4) + frame for frame in frames)


@given(
    st.lists(st.binary(max_size=20), max_size=8),
    st.lists(st.integers(0, 200), max_size=12),
    st.binary(max_size=3),
)
def test_any_split_gives_the_same_frames(
    frames: list[bytes], cuts: list[int], rest: bytes
) -> None:
    stream = framed(frames) + rest
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    buffer = FrameBuffer(MAX)
    found = []
    for start, stop in pairwise(edges):
        found += buffer.feed(stream[start:stop])
    assert found == frames
    assert len(buffer) == len(rest)


@given(st.lists(st.binary(max_size=20), max_size=8))
def test_byte_by_byte(frames: list[bytes]) -> None:
    buffer = FrameBuffer(MAX)
    found = [frame for byte in framed(frames) for frame in buffer.feed(bytes([byte]))]
    assert found == frames


def test_frames_are_copies() -> None:
    data = bytearray(framed([b"abc"]) + b"\0\0")
    buffer = FrameBuffer(MAX)
    frames = buffer.feed(data)
    data[:] = b"x" * len(data)
    assert frames == [b"abc"]
    (second,) = buffer.feed(b"\0\2hi" + framed([b"next"])[:6])
    buffer.feed(framed([b"next"])[6:])
    assert second == b"hi"


@pytest.mark.parametrize("size", [-1, -(2**31), MAX + 1, 2**31 - 1])
@pytest.mark.parametrize("cut", [1, 2, 3, 4])
def test_impossible_lengths(size: int, cut: int) -> None:
    length = size.to_bytes(4, signed=True)
    buffer = FrameBuffer(MAX)
    with pytest.raises(ProtocolError, match=f"announces {size} bytes; at most {MAX}"):
        buffer.feed(length)
    buffer = FrameBuffer(MAX)
    buffer.feed(framed([b"fine"]) + length[: cut - 1])
    with pytest.raises(ProtocolError, match="announces"):
        buffer.feed(length[cut - 1 :])


def test_the_largest_frame() -> None:
    frame = bytes(MAX)
    assert FrameBuffer(MAX).feed(framed([frame])) == [frame]


def test_an_announced_length_costs_no_memory() -> None:
    buffer = FrameBuffer(1 << 30)
    tracemalloc.start()
    try:
        assert buffer.feed((1 << 30).to_bytes(4) + b"abc") == []
        assert tracemalloc.get_traced_memory()[1] < 10_000
    finally:
        tracemalloc.stop()
    assert len(buffer) == 7


def test_frame_size_at_a_position() -> None:
    assert frame_size(b"xx\0\0\0\5", 2, 5) == 5
    with pytest.raises(ProtocolError):
        frame_size(b"xx\0\0\0\5", 2, 4)
