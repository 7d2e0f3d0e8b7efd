"""What is kept counts for as long as it is in memory, and no longer."""

from __future__ import annotations

from functools import partial

from hypothesis import given, strategies as st

from kafkaio._consumer.batch import Frame
from kafkaio._consumer.reading.buffers import Buffers, Failure, Fetched
from kafkaio._machines.positions import FetchPoint, PositionToken
from kafkaio._machines.read_committed import ReadUncommitted
from kafkaio._records.batch import Decompressor, RecordBatch, encode_batch
from kafkaio.errors import CorruptRecord
from kafkaio.types import TopicPartition

PARTITIONS = [TopicPartition("t", number) for number in range(3)]
FAILURE = Failure(
    CorruptRecord("bad"), FetchPoint(PARTITIONS[0], 0, PositionToken(0, 0))
)
STEPS = ["answer", "read", "refuse", "pause", "resume", "drop", "forget", "compact"]
STEPS += ["wait", "back", "extend"]
ENCODED = encode_batch([(0, None, b"v" * 50, ())])


class Ahead:
    """What is done for a partition that waits."""

    def __init__(self) -> None:
        self.is_dropped = False

    def detach(self) -> None:
        assert not self.is_dropped

    def drop(self) -> None:
        assert not self.is_dropped
        self.is_dropped = True


def wait_or_go_on(buffers: Buffers, tp: TopicPartition, *, waits: bool) -> None:
    """What a deserializer does that has to wait, and has waited."""
    buffer = buffers.get(tp)
    if buffer is None or buffer.is_aside is waits or not (waits or buffer.ahead):
        return
    if waits and buffer.is_queued:
        buffer.ahead = Ahead()
        buffers.set_aside(buffer)
        assert buffer not in buffers.ready
    elif not waits:
        buffer.ahead = None
        buffers.bring_back(buffer)
        assert buffer.is_queued is (buffer in buffers.ready)


def drop(buffers: Buffers, tp: TopicPartition, how: str) -> None:
    """What a seek or a revocation does."""
    buffer = buffers.get(tp)
    getattr(buffers, how)(tp)
    if buffer is not None and buffer.ahead is not None:
        assert isinstance(buffer.ahead, Ahead)
        assert buffer.ahead.is_dropped


def fetched(count: int, frame: Frame) -> Fetched:
    view = memoryview(bytearray(ENCODED))
    batches = [RecordBatch(view, Decompressor()) for _ in range(count)]
    return Fetched([*batches], ReadUncommitted(), frame)


def read_on(buffers: Buffers, tp: TopicPartition) -> None:
    """What a reader does when it comes to the end of a chunk."""
    buffer = buffers.get(tp)
    if buffer is None or buffer not in buffers.ready:
        return
    buffers.clear_chunk(buffer)
    if buffer.batches:
        batch, _, _ = buffer.batches[0]
        buffers.pop_batch(buffer)
        buffer.open_chunk(batch.iterate("t", 0), -1)
    buffers.drop_if_empty(buffer)


def extend(buffers: Buffers, tp: TopicPartition) -> None:
    """What a reader does with small batches that follow its chunk."""
    read_on(buffers, tp)
    buffer = buffers.get(tp)
    if buffer is None or buffer.frame is None or buffer.chunk is None:
        return
    frames = [frame for _, _, frame in buffer.batches]
    count = next(
        (n for n, frame in enumerate(frames) if frame is not buffer.frame), len(frames)
    )
    handed = buffer.handed
    buffers.extend_chunk(buffer, count)
    assert buffer.handed == handed + count
    buffer.count -= count  # the cursor is that of the first one alone


def refuse(buffers: Buffers, tp: TopicPartition) -> None:
    """What a reader does when it comes to a corrupt batch."""
    buffer = buffers.get(tp)
    if buffer is not None and buffer in buffers.ready:
        buffers.refuse(buffer, FAILURE)
        assert buffer.is_queued
        assert (buffer.at_hand, buffer.failure) == (0, FAILURE)


def check(buffers: Buffers, held: set[TopicPartition], frames: list[Frame]) -> None:
    found = [buffers.get(tp) for tp in PARTITIONS]
    size = unread = 0
    in_use: list[Frame] = []
    for tp, buffer in zip(PARTITIONS, found, strict=True):
        if buffer is None:
            continue
        assert buffer.size == len(buffer.batches) * len(ENCODED)
        assert buffer.waiting == len(buffer.batches)
        frames_here = [frame for _, _, frame in buffer.batches] + [buffer.frame]
        if tp in held:
            assert frames_here == [None] * len(frames_here)
            assert all(type(batch._data) is bytes for batch, _, _ in buffer.batches)
            continue
        unread += buffer.size
        size += sum(len(ENCODED) for _, _, frame in buffer.batches if frame is None)
        in_use += [frame for frame in frames_here if frame is not None]
    assert buffers.unread == unread
    assert buffers.size == size + sum(frame.size for frame in {*in_use})
    assert [frame.in_use for frame in frames] == [in_use.count(f) for f in frames]


FUNCTIONS = {
    "read": read_on,
    "extend": extend,
    "refuse": refuse,
    "wait": partial(wait_or_go_on, waits=True),
    "back": partial(wait_or_go_on, waits=False),
}


@given(
    st.lists(
        st.tuples(
            st.sampled_from(STEPS),
            st.integers(0, 2),
            st.integers(0, 3),
        ),
        max_size=40,
    )
)
def test_a_frame_counts_while_anything_in_it_is_kept(
    steps: list[tuple[str, int, int]],
) -> None:
    buffers = Buffers()
    held: set[TopicPartition] = set()
    frames: list[Frame] = []
    for what, which, count in steps:
        tp = PARTITIONS[which]
        match what:
            case "answer":
                frame = Frame(1000 * (len(frames) + 1))
                frames.append(frame)
                for other in PARTITIONS[which:]:
                    buffers.add(other, fetched(count, frame))
            case "read" | "extend" | "refuse" | "wait" | "back":
                FUNCTIONS[what](buffers, tp)
            case "pause":
                buffers.pause(tp)
                held.add(tp)
            case "resume":
                buffers.resume(tp)
                held.discard(tp)
            case "drop" | "forget":
                drop(buffers, tp, what)
                held -= {tp} if what == "forget" else set()
            case "compact":
                before = buffers.size
                assert buffers.compact() == (before > 2 * buffers.unread)
                assert buffers.size in {before, buffers.unread}
        check(buffers, held, frames)
    for tp in PARTITIONS:
        buffers.forget(tp)
    assert buffers.size == buffers.unread == 0
