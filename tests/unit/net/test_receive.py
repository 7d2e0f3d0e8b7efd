import struct

import pytest
from hypothesis import given, settings, strategies as st

from kafkaio._net.receive import SCRATCH_BYTES, FrameReceiver
from kafkaio.errors import ProtocolError
from kafkaio.protocol._message import Buffer

SIZES = st.one_of(
    st.integers(0, 40),
    st.sampled_from([
        SCRATCH_BYTES - 5, SCRATCH_BYTES - 4, SCRATCH_BYTES - 3, SCRATCH_BYTES,
        3 * SCRATCH_BYTES,
    ]),
)  # fmt: skip


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def payload(size: int, seed: int) -> bytes:
    return (bytes([seed % 251, size % 253, 7]) * (size // 3 + 1))[:size]


def feed(receiver: FrameReceiver, stream: bytes, cuts: list[int]) -> None:
    """Hand in the stream in pieces, as a socket would: at most the room there is."""
    view, turn = memoryview(stream), 0
    while view:
        room = receiver.space()
        assert room
        piece = cuts[turn % len(cuts)] if cuts else len(view)
        count = min(len(room), len(view), piece)
        room[:count] = view[:count]
        receiver.filled(count)
        view, turn = view[count:], turn + 1


@settings(max_examples=150)
@given(
    st.lists(SIZES, max_size=12),
    st.lists(st.integers(1, 2 * SCRATCH_BYTES) | st.integers(1, 9), max_size=5),
)
def test_any_cut_of_the_stream_gives_the_same_frames(
    sizes: list[int], cuts: list[int]
) -> None:
    if max(sizes, default=0) > 40:
        cuts = [max(cut, 2_000) for cut in cuts]  # else it takes for ever
    sent = [payload(size, index) for index, size in enumerate(sizes)]
    got: list[Buffer] = []
    receiver = FrameReceiver(10 * SCRATCH_BYTES, got.append)
    stream = b"".join(map(framed, sent))
    feed(receiver, stream, cuts)
    # Compared at the end: later bytes must not have changed earlier frames.
    assert [bytes(frame) for frame in got] == sent
    assert receiver.received == len(stream)


def test_a_large_frame_is_received_without_a_copy() -> None:
    got: list[Buffer] = []
    receiver = FrameReceiver(2**20, got.append)
    feed(receiver, framed(payload(SCRATCH_BYTES * 2, 1))[:100], [])
    # The room is now the frame's own buffer, up to its very end.
    assert len(receiver.space()) == SCRATCH_BYTES * 2 - 96
    feed(receiver, payload(SCRATCH_BYTES * 2, 1)[96:], [])
    [frame] = got
    assert isinstance(frame, memoryview)
    assert frame.readonly


@pytest.mark.parametrize("size", [-1, 1001, 2**31 - 1, -(2**31)])
def test_a_bad_length_is_refused_before_memory_is_set_aside(size: int) -> None:
    receiver = FrameReceiver(1000, pytest.fail)
    with pytest.raises(ProtocolError, match=str(size)):
        feed(receiver, struct.pack(">i", size), [])


def test_frames_before_a_bad_one_are_delivered() -> None:
    got: list[Buffer] = []
    receiver = FrameReceiver(1000, got.append)
    with pytest.raises(ProtocolError):
        feed(receiver, framed(b"good") + b"\xff" * 8, [])
    assert got == [b"good"]


def test_the_memory_of_a_large_frame_is_used_again_when_no_part_is_kept() -> None:
    got: list[Buffer] = []
    receiver = FrameReceiver(2**20, got.append)
    sent = [payload(SCRATCH_BYTES * 2, seed) for seed in range(6)]
    parts = []
    for seed, data in enumerate(sent):
        feed(receiver, framed(data), [])
        frame = got.pop()
        assert isinstance(frame, memoryview)
        if seed % 2:
            parts.append((data[1000:2000], frame[1000:2000]))
        del frame
    assert len({id(part.obj) for _, part in parts}) == 3
    assert all(part == data for data, part in parts)
