"""Commits merged into one request stand as if each had been sent by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import given, strategies as st

from kafkaio._machines.commits import CallOutcome, CommitAnswer, CommitQueue, Merge
from kafkaio.types import OffsetAndMetadata, TopicPartition

A, B, C = (TopicPartition("t", number) for number in range(3))
COMMITTED, RETRY, REFUSED, INVALID, UNKNOWN = CommitAnswer
_MUCH = 1 << 20


def at(offset: int, metadata: str = "") -> OffsetAndMetadata:
    return OffsetAndMetadata(offset, metadata)


def queue(*calls: dict[TopicPartition, OffsetAndMetadata]) -> CommitQueue:
    """A queue with these calls, numbered from 0."""
    made = CommitQueue(_MUCH)
    assert [made.add(call) for call in calls] == list(range(len(calls)))
    return made


def test_of_each_partition_goes_out_what_the_last_call_wants() -> None:
    late = OffsetAndMetadata(2, "late", 4)
    waiting = queue({A: at(5), B: at(5)}, {A: late})
    merge = waiting.merge()
    assert merge == Merge({A: late, B: at(5)}, {A: 1, B: 0}, (0, 1))
    assert waiting.answered(merge, {A: COMMITTED, B: COMMITTED}) == [
        CallOutcome(0, (A, B), has_ended=True),
        CallOutcome(1, (A,), has_ended=True),
    ]
    assert repr(waiting) == "<CommitQueue 0 calls>"


def test_what_was_taken_is_not_sent_again() -> None:
    waiting = queue({A: at(1), B: at(1), C: at(1)})
    outcomes = waiting.answered(waiting.merge(), {A: COMMITTED, B: RETRY, C: RETRY})
    assert outcomes == [CallOutcome(0, (A,), waits=(B, C))]
    assert waiting.merge().offsets == {B: at(1), C: at(1)}


def test_a_refusal_meets_who_named_the_partition() -> None:
    waiting = queue({A: at(1), B: at(1)}, {A: at(2)}, {B: at(3)})
    outcomes = waiting.answered(waiting.merge(), {A: REFUSED, B: COMMITTED})
    assert outcomes == [
        CallOutcome(0, (B,), (A,), has_ended=True),
        CallOutcome(1, (), (A,), has_ended=True),
        CallOutcome(2, (B,), has_ended=True),
    ]


def test_a_refusal_keeps_no_other_partition_from_being_committed() -> None:
    waiting = queue({A: at(1), B: at(1), C: at(1)})
    outcomes = waiting.answered(waiting.merge(), {A: REFUSED, B: RETRY, C: COMMITTED})
    assert outcomes == [CallOutcome(0, (C,), (A,), (B,))]
    assert waiting.answered(waiting.merge(), {B: COMMITTED}) == [
        CallOutcome(0, (B,), has_ended=True)
    ]


def test_each_call_gives_up_an_unknown_topic_in_its_own_time() -> None:
    waiting = queue({A: at(1), B: at(1)}, {A: at(2)})
    answers = {A: UNKNOWN, B: COMMITTED}
    assert waiting.answered(waiting.merge(), answers, {0}) == [
        CallOutcome(0, (B,), (A,), has_ended=True),
        CallOutcome(1, (), waits=(A,)),
    ]
    assert waiting.answered(waiting.merge(), {A: UNKNOWN}, {1}) == [
        CallOutcome(1, (), (A,), has_ended=True)
    ]


def test_part_of_a_call_is_sent_again_and_changes_no_earlier_request() -> None:
    waiting = queue({A: at(1), B: at(2)})
    before = waiting.merge()
    waiting.answered(before, {A: COMMITTED, B: RETRY})
    assert before.offsets == {A: at(1), B: at(2)}
    assert waiting.merge() == Merge({B: at(2)}, {}, (0,))


def test_what_another_was_unfit_for_is_sent_without_it() -> None:
    waiting = queue({A: at(1)}, {A: at(2, "much")})
    assert waiting.answered(waiting.merge(), {A: INVALID}) == [
        CallOutcome(0),
        CallOutcome(1, (), (A,), has_ended=True),
    ]
    assert waiting.merge().offsets == {A: at(1)}


def test_a_call_that_failed_commits_what_another_stood_before() -> None:
    waiting = queue({A: at(1), B: at(1)}, {A: at(2, "much")})
    outcomes = waiting.answered(waiting.merge(), {A: INVALID, B: REFUSED})
    assert outcomes[0] == CallOutcome(0, (), (B,))
    assert waiting.merge().offsets == {A: at(1)}


def test_who_goes_leaves_what_others_want() -> None:
    waiting = queue({A: at(1)}, {A: at(2), B: at(2)})
    waiting.withdraw(1)
    assert waiting.merge().offsets == {A: at(1)}
    assert list(waiting.calls) == [0]


def test_who_goes_while_a_request_is_on_its_way_hears_nothing() -> None:
    waiting = queue({A: at(1)}, {A: at(2)})
    merge = waiting.merge()
    waiting.withdraw(1)
    assert waiting.answered(merge, {A: COMMITTED}) == [
        CallOutcome(0, (A,), has_ended=True)
    ]


def test_a_request_carries_no_more_than_the_broker_takes_at_once() -> None:
    waiting = CommitQueue(1000)
    for tp in (A, B, C):
        waiting.add({tp: at(1, "m" * 2000)})
    assert waiting.merge().calls == (0,)  # too much by itself, as it was asked for
    waiting.withdraw(0)
    waiting.withdraw(1)
    waiting.withdraw(2)
    for offset in range(1000):
        waiting.add({A: at(offset, "m" * 500)})
    merge = waiting.merge()
    assert len(merge.calls) == 1000  # what is not sent counts for nothing
    waiting.add({B: at(1, "m" * 500)})
    assert waiting.merge() == merge


class Coordinator:
    """Takes what it is sent, but for some partitions and some offsets."""

    def __init__(self, forbidden: set[TopicPartition], unfit: set[int]) -> None:
        self.forbidden = forbidden
        self.unfit = unfit
        self.stands = dict[TopicPartition, OffsetAndMetadata]()

    def says(self, tp: TopicPartition, to: OffsetAndMetadata) -> CommitAnswer:
        if tp in self.forbidden:
            return REFUSED
        return INVALID if to.offset in self.unfit else COMMITTED

    def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> dict[TopicPartition, CommitAnswer]:
        answers = {tp: self.says(tp, to) for tp, to in offsets.items()}
        self.stands |= {tp: offsets[tp] for tp in answers if answers[tp] is COMMITTED}
        return answers


_OFFSETS = st.dictionaries(
    st.sampled_from([A, B, C]), st.integers(0, 9).map(at), min_size=1
)
_CALLS = st.lists(_OFFSETS, min_size=1, max_size=6)


@given(
    _CALLS,
    st.sets(st.sampled_from([A, B, C])),
    st.sets(st.integers(0, 9)),
    st.integers(100, 400),
    st.data(),
)
def test_what_stands_is_what_the_calls_one_by_one_would_leave(
    calls: list[dict[TopicPartition, OffsetAndMetadata]],
    forbidden: set[TopicPartition],
    unfit: set[int],
    limit: int,
    data: Any,
) -> None:
    one_by_one = Coordinator(forbidden, unfit)
    alone = [set(one_by_one.commit(call).values()) for call in calls]
    merged = Coordinator(forbidden, unfit)
    waiting = CommitQueue(limit)
    coming = list(calls)
    failed, ended = set[int](), set[int]()
    while coming or waiting.calls:
        for _ in range(data.draw(st.integers(not waiting.calls, len(coming)))):
            waiting.add(coming.pop(0))
        merge = waiting.merge()
        if data.draw(st.booleans()):
            waiting.answered(merge, dict.fromkeys(merge.offsets, RETRY))
            continue
        for outcome in waiting.answered(merge, merged.commit(merge.offsets)):
            assert outcome.call not in ended
            if outcome.refused:
                failed.add(outcome.call)
            if outcome.has_ended:
                ended.add(outcome.call)
    assert merged.stands == one_by_one.stands
    assert ended == set(range(len(calls)))
    assert {n for n, said in enumerate(alone) if REFUSED in said} <= failed
    # What a call alone is unfit for may have been merged over by a later one.
    assert failed <= {n for n, said in enumerate(alone) if said != {COMMITTED}}


@given(_CALLS, st.data())
def test_every_call_ends_once_unless_it_was_withdrawn(
    calls: list[dict[TopicPartition, OffsetAndMetadata]], data: Any
) -> None:
    waiting = queue(*calls)
    left = set(range(len(calls)))
    merge = waiting.merge()
    for gone in data.draw(st.sets(st.sampled_from(sorted(left)))):
        waiting.withdraw(gone)
        left.discard(gone)
    answers = {tp: data.draw(st.sampled_from(CommitAnswer)) for tp in merge.offsets}
    outcomes = [*waiting.answered(merge, answers)]
    ended = [outcome.call for outcome in outcomes if outcome.has_ended]
    rest = waiting.merge()
    assert set(rest.calls) == left - set(ended)
    last = waiting.answered(rest, dict.fromkeys(rest.offsets, COMMITTED))
    assert all(outcome.has_ended for outcome in last)
    assert sorted(ended + [outcome.call for outcome in last]) == sorted(left)


@given(_CALLS, st.data())
def test_an_answer_without_a_refusal_means_the_same_in_short(
    calls: list[dict[TopicPartition, OffsetAndMetadata]], data: Any
) -> None:
    waiting, twin = queue(*calls), queue(*calls)
    merge, same = waiting.merge(), twin.merge()
    for gone in data.draw(st.sets(st.sampled_from(range(len(calls))))):
        waiting.withdraw(gone)
        twin.withdraw(gone)
    outcomes = twin.answered(same, dict.fromkeys(same.offsets, COMMITTED))
    assert [
        CallOutcome(call, tuple(sorted(taken)), has_ended=True)
        for call in merge.calls
        if (taken := waiting.committed(call)) is not None
    ] == outcomes
    assert not waiting.calls
