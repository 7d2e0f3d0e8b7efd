"""Whatever was acquired, and however it is read: no offset is forgotten, none twice."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from hypothesis import given, settings, strategies as st

from kafkaio._share.reading.iterators import Holder
from kafkaio.errors import CorruptRecord
from tests.unit.share.fake_engine import P0, World, batch_of, corrupt

STEPS = st.lists(
    st.sampled_from(["one", "short", "take", "batch", "lose", "leave", "finish"]),
    max_size=12,
)
KINDS = st.sampled_from(["plain", "plain", "plain", "control", "corrupt"])


class Piece(NamedTuple):
    """A batch of a log: its kind, its extent, and the offsets that have records."""

    kind: str
    first: int
    last: int
    offsets: tuple[int, ...]

    def encoded(self) -> bytes:
        control = self.kind == "control"
        batch = batch_of(self.first, self.offsets, self.last, control=control)
        return corrupt(batch) if self.kind == "corrupt" else batch


@st.composite
def logs(draw: st.DrawFn) -> list[Piece]:
    pieces, at = list[Piece](), 0
    for _ in range(draw(st.integers(1, 5))):
        first = at + draw(st.sampled_from([0, 0, 0, 2]))
        last = first + draw(st.integers(0, 6))
        kept = draw(st.lists(st.booleans(), min_size=last - first + 1, max_size=7))
        offsets = [first + n for n in range(last - first + 1) if kept[n % len(kept)]]
        pieces.append(Piece(draw(KINDS), first, last, tuple(offsets) or (last,)))
        at = last + 1
    return pieces


@st.composite
def acquired(draw: st.DrawFn, end: int) -> list[tuple[int, int]]:
    """Ranges up to an offset, sorted, with and without holes between them."""
    ranges, at = list[tuple[int, int]](), draw(st.integers(0, 3))
    while at < end and len(ranges) < 6:
        last = min(at + draw(st.integers(0, 9)), end - 1)
        ranges.append((at, last))
        at = last + 1 + draw(st.sampled_from([0, 0, 1, 3]))
    return ranges or [(0, end - 1)]


class Reading:
    """Takes the steps, and keeps what was handed out."""

    def __init__(self, w: World) -> None:
        self.w = w
        self.holder = Holder("test")
        self.handed: list[int] = []
        self.errors = 0
        w.reader.allowance = lambda: 3

    def note(self, records: Any) -> None:
        for record in records:
            assert record.value == b"%d" % record.offset
            self.handed.append(record.offset)
            if record.offset % 2:
                record.ack()

    def take(self, step: str) -> None:
        reader = self.w.reader
        if step == "lose":
            for part in self.w.ledger.ranges[::2]:
                part.lose(part.handed_to, part.last)
            return
        if step == "leave":
            reader.end(self.holder)
            return
        reader.step(self.holder)
        try:
            reader.check()
        except CorruptRecord:
            self.errors += 1
        if step == "one" and (record := reader.take_one()) is not None:
            self.note([record])
        elif step == "short":
            while (record := reader.handout.take()) is not None:
                self.note([record])
        elif step == "take":
            self.note(reader.take(3))
        elif step == "batch" and (batch := reader.take_batch(4)) is not None:
            assert len(batch) == len(batch.records)
            self.note(batch)


def expected(pieces: list[Piece], offset: int) -> str:
    """Return what must become of an acquired offset that is not handed out."""
    for number, piece in enumerate(pieces):
        begin = pieces[number - 1].last + 1 if number else 0
        if begin <= offset <= piece.last:
            # Nobody knows where a corrupt batch ends: up to the next one.
            after_corrupt = number and pieces[number - 1].kind == "corrupt"
            if piece.kind == "corrupt" or (after_corrupt and offset < piece.first):
                return "x"
            is_record = piece.kind == "plain" and offset in piece.offsets
            return "r" if is_record else "g"
    raise AssertionError(offset)


@settings(max_examples=60)
@given(st.data(), logs(), STEPS)
def test_no_offset_is_forgotten(
    data: st.DataObject, pieces: list[Piece], steps: list[str]
) -> None:
    ranges = data.draw(acquired(pieces[-1].last + 1))
    encoded = b"".join(piece.encoded() for piece in pieces)

    async def run() -> tuple[World, Reading]:
        w = World()
        reading = Reading(w)
        w.reader.step(reading.holder)
        w.fetch(encoded, *ranges)
        for step in steps:
            reading.take(step)
        reading.take("leave")
        await w.close()
        return w, reading

    w, reading = asyncio.run(run())
    states = w.ledger.states(P0)
    # A record is handed out at most once, and only if it was acquired.
    assert len(reading.handed) == len({*reading.handed})
    assert {*reading.handed} <= states.keys()
    for offset, state in states.items():
        if offset in reading.handed:
            assert expected(pieces, offset) == "r"
            assert state in {"a", "h", "r", "l"}
            assert (state == "a") == bool(offset % 2)
        else:
            # What was never opened is released as it came.
            assert state in {expected(pieces, offset), "r", "l"}, offset
    assert (w.reader.buffered, w.reader.buffered_bytes) == (0, 0)
