"""What the thread knows of what the user has taken."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
from hypothesis import given

from kafkaio._consumer.reading.progress import HandedOut
from kafkaio._consumer.threaded.handoff import Handoff
from kafkaio._machines.offsets import OffsetLedger
from kafkaio.types import Record, TopicPartition

TPS = [TopicPartition("t", n) for n in range(3)]


def record(tp: TopicPartition, offset: int) -> Record:
    return Record(
        topic=tp.topic,
        partition=tp.partition,
        offset=offset,
        timestamp=0,
        key=None,
        value=b"",
        headers=(),
    )


class Desk:
    """An engine that hands out one record after the other, and takes them back."""

    def __init__(self) -> None:
        self.ledger = OffsetLedger()
        self.positions = dict.fromkeys(TPS, 0)
        self.reader = self
        self.has_word = False
        for number, tp in enumerate(TPS):
            self.ledger.open(tp, number)
            self.ledger.positioned(tp, 0, committed=True)

    def read(self, places: list[int]) -> list[Record]:
        self.ledger.finish()
        out = []
        for place in places:
            tp = TPS[place]
            out.append(record(tp, self.positions[tp]))
            self.positions[tp] += 1
            self.ledger.handed(tp, self.positions[tp])
        return out

    def sync(self) -> None:
        """It tells the ledger at once."""

    def take_back(self, tp: TopicPartition) -> None:
        if (place := self.ledger.unfinished_from(tp)) is not None:
            self.positions[tp] = place.offset
            self.ledger.positioned(tp, place.offset, committed=False)

    def finished(self) -> dict[TopicPartition, int]:
        return {
            tp: self.positions[tp] if at is None else at.offset
            for tp in TPS
            for at in [self.ledger.unfinished_from(tp)]
        }


STEPS = st.one_of(
    st.lists(st.integers(0, 2), min_size=1, max_size=6),
    st.just("take"),
    st.just("take"),
    st.just("sync"),
    st.just("settle"),
    st.just("commit"),
    st.just("acknowledge"),
)


@given(st.lists(STEPS, max_size=40))
def test_each_record_once_and_only_what_is_done_is_finished(steps: list[Any]) -> None:
    desk = Desk()
    handoff = Handoff(desk, lambda: desk.has_word)
    taken: list[Record] = []
    at_work: list[Record] = []
    # A commit that was called for and has not arrived yet, and what it is of.
    called: tuple[HandedOut, list[Record]] = handoff.mark(), []
    done: list[Record] = []
    for step in steps:
        if step == "take":
            if (got := handoff.take()) is not None:
                taken.append(got)
                done, at_work = done + at_work, [got]
        elif step == "commit":
            called = handoff.mark(), list(taken)
        elif step == "sync" or step == "acknowledge":
            handoff.sync()
            if step == "acknowledge":
                moment, handed = called
                handoff.acknowledge(moment, [*desk.ledger.unfinished])
                done += [got for got in handed if got not in done]
            at = desk.finished()
            for got in taken:
                assert (at[got.topic_partition] > got.offset) is (got in done)
        else:
            done += at_work
            handoff.settle()
            at_work = []
            if step != "settle":
                handoff.fill(desk.read(step))
        assert handoff.progress == len(taken)
    for tp in TPS:
        offsets = [r.offset for r in taken if r.topic_partition == tp]
        assert offsets == list(range(len(offsets)))
        ahead = handoff.next_offset(tp)
        assert (desk.positions[tp] if ahead is None else ahead) == len(offsets)


def test_nothing_is_taken_while_there_is_word() -> None:
    desk: Any = Desk()
    handoff = Handoff(desk, lambda: desk.has_word)
    handoff.fill(desk.read([0, 0]))
    desk.has_word = True
    assert handoff.take() is None
    desk.has_word = False
    assert handoff.take() is not None


def test_what_is_not_ours_any_more_is_let_go() -> None:
    desk: Any = Desk()
    handoff = Handoff(desk, lambda: desk.has_word)
    handoff.fill(desk.read([0, 1, 1]))
    assert handoff.take() is not None
    desk.ledger.close(TPS[1])
    del desk.positions[TPS[1]]
    handoff.settle()
    assert handoff.take() is None
    desk.ledger.close(TPS[0])
    handoff.sync()


def test_what_is_on_its_way_is_not_handed_out() -> None:
    desk: Any = Desk()
    handoff = Handoff(desk, lambda: desk.has_word)
    desk.read([0, 1])
    transfer = handoff.send(TPS[:2])
    before = handoff.mark()
    handoff.acknowledge(before, TPS)
    assert desk.finished() == dict.fromkeys(TPS, 0)
    handoff.receive(transfer)
    handoff.acknowledge(before, TPS)  # it came after the call
    assert desk.finished() == dict.fromkeys(TPS, 0)
    handoff.acknowledge(handoff.mark(), TPS[:1])
    assert desk.finished() == {TPS[0]: 1, TPS[1]: 0, TPS[2]: 0}


def test_what_turned_back_is_handed_out_another_way() -> None:
    desk: Any = Desk()
    handoff = Handoff(desk, lambda: desk.has_word)
    desk.read([0])
    transfer = handoff.send(TPS[:1])
    handoff.turn_back(transfer)
    desk.take_back(TPS[0])
    handoff.fill(desk.read([0, 0]))
    assert handoff.take() is not None
    handoff.acknowledge(handoff.mark(), TPS)
    assert desk.finished()[TPS[0]] == 1
