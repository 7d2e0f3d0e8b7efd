"""Acquired records of share groups: each law on the pure and on the compiled twin."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import gc
import importlib
import operator
import pickle
import sys
import weakref
from collections.abc import Awaitable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, strategies as st

import kafkaio
from kafkaio._consumer.reading.iterators import PlainStream
from kafkaio._records import _acquired
from kafkaio._records._acquired import (
    ACCEPT,
    DONE,
    FAILED,
    GAP,
    HELD,
    LOST,
    REJECT,
    RELEASE,
    TAKEN,
)
from kafkaio._records._layout import DecodedColumns
from kafkaio.errors import CorruptRecord, UsageError
from kafkaio.types import Record, TimestampType
from tests.unit.records.conftest import compiled_codec
from tests.unit.records.strategies import MAX_INT64, origin, record
from tests.unit.records.test_codecs import law

BASE = 100


def pure_twin() -> SimpleNamespace:
    return SimpleNamespace(
        Acquired=_acquired.Acquired,
        AcquiredCursor=importlib.import_module(
            "kafkaio._records._cursor"
        ).AcquiredCursor,
        ColumnsBuilder=importlib.import_module(
            "kafkaio._records._columns"
        ).ColumnsBuilder,
        Handout=importlib.import_module("kafkaio._records._stream").Handout,
        Record=Record,
        RecordCursor=importlib.import_module("kafkaio._records._cursor").RecordCursor,
        RecordStream=PlainStream,
        ShareRecord=_acquired.ShareRecord,
        acquired_of=_acquired.acquired_of,
        converted=importlib.import_module("kafkaio._records._pure").converted,
    )


@pytest.fixture(params=["python", "compiled"])
def twin(request: pytest.FixtureRequest) -> Any:
    return pure_twin() if request.param == "python" else compiled_codec()


class Ledger:
    """Counts the calls that a listener gets."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.asked: list[tuple[Any, int]] = []
        self.ended: set[int] = set()

    def decided(self, acquired: Any) -> None:
        self.calls.append(acquired)

    def acked(self, acquired: Any, offset: int) -> Awaitable[None]:
        self.asked.append((acquired, offset))
        return asyncio.get_running_loop().create_future()

    def has_ended(self, acquired: Any, offset: int) -> bool:
        return offset in self.ended


def acquire(
    twin: Any, first: int, last: int, *, listener: Any = None, count: int = 1
) -> Any:
    return twin.Acquired("orders", 3, first, last, count, 7, listener or Ledger())


def cursor_over(twin: Any, deltas: list[int], *, end: int = 40, start: int = 0) -> Any:
    """A cursor over a batch of the offsets BASE + delta, which ends at BASE + end."""
    data = b"".join(
        record(offset_delta=delta, key=b"k%d" % delta, value=b"%d" % delta)
        for delta in deltas
    )
    place = origin(start_offset=start, base_offset=BASE, last_offset_delta=1000)
    return twin.RecordCursor(data, 0, len(deltas), place, BASE + end)


def share_records(twin: Any, deltas: list[int], ranges: list[Any], **how: int) -> Any:
    return twin.AcquiredCursor(cursor_over(twin, deltas, **how), ranges, BASE)


def offsets(records: Any) -> list[int]:
    return [each.offset for each in records]


# Ranges


def test_a_decision_is_a_byte_and_one_call_for_many(twin: Any) -> None:
    ledger = Ledger()
    acquired = acquire(twin, 5, 9, listener=ledger)
    assert (acquired.held, acquired.handed_to, acquired.is_queued) == (5, 5, False)
    acquired.decide(6, ACCEPT)
    acquired.decide(9, REJECT)
    assert acquired.decide_range(0, 7, RELEASE) == 2
    assert acquired.decide_range(0, 99, GAP) == 1
    assert acquired.decide_range(0, 99, ACCEPT) == 0
    assert bytes(acquired.states) == bytes((RELEASE, ACCEPT, RELEASE, GAP, REJECT))
    assert (acquired.held, acquired.is_queued) == (0, True)
    assert ledger.calls == [acquired]
    assert repr(acquired) == "<Acquired orders-3 5-9 | 0 held, delivery 1>"


def test_the_ledger_is_called_again_once_it_has_taken_the_decisions(twin: Any) -> None:
    ledger = Ledger()
    acquired = acquire(twin, 5, 9, listener=ledger)
    acquired.decide(6, ACCEPT)
    assert acquired.take_decisions(10) == [(6, 6, ACCEPT)]
    acquired.decide(7, ACCEPT)
    acquired.decide(8, RELEASE)
    assert ledger.calls == [acquired] * 2
    assert acquired.take_decisions(1) == [(7, 7, ACCEPT)]
    assert acquired.is_queued
    acquired.decide(5, ACCEPT)
    assert ledger.calls == [acquired] * 2
    assert acquired.take_decisions(9) == [(5, 5, ACCEPT), (8, 8, RELEASE)]
    acquired.confirm(5, 6)
    acquired.fail(7, 7)
    assert acquired.held_runs(0, 99) == [(9, 9)]
    acquired.lose(0, 99)
    assert list(acquired.states) == [ACCEPT + DONE, ACCEPT + DONE, FAILED, LOST, LOST]
    assert acquired.held == 0


@pytest.mark.parametrize("offset", [4, 10, -1, -(2**63), MAX_INT64])
def test_offsets_outside_of_the_range(twin: Any, offset: int) -> None:
    acquired = acquire(twin, 5, 9)
    with pytest.raises(UsageError, match="the range has the offsets 5 to 9"):
        acquired.decide(offset, ACCEPT)
    assert not acquired.is_held(offset)
    assert not acquired.is_lost(offset)
    assert acquired.decide_range(offset, offset, ACCEPT) == 0
    assert bytes(acquired.states) == bytes(5)


@law
@given(
    steps=st.lists(
        st.tuples(
            st.integers(-3, 15), st.integers(-3, 15), st.sampled_from([1, 2, 3, 5])
        ),
        max_size=12,
    )
)
def test_ranges_of_both_twins_agree(steps: list[tuple[int, int, int]]) -> None:
    twins = [pure_twin(), compiled_codec()]
    ranges = [acquire(each, 2, 11) for each in twins]
    for first, last, decision in steps:
        outcomes = []
        for acquired in ranges:
            if first == last:
                try:
                    acquired.decide(first, decision)
                except UsageError as error:
                    outcomes.append(str(error))
            else:
                outcomes.append(acquired.decide_range(first, last, decision))
            held = [acquired.is_held(offset) for offset in range(-3, 15)]
            outcomes.append((held, acquired.held, bytes(acquired.states)))
        half = len(outcomes) // 2
        assert outcomes[:half] == outcomes[half:]
    assert ranges[0].held == ranges[0].states.count(HELD)


# Records


def handed_out(twin: Any, *, count: int = 1, ledger: Ledger | None = None) -> Any:
    acquired = acquire(twin, BASE, BASE + 4, listener=ledger, count=count)
    (made,) = share_records(twin, [2], [acquired], end=5).take(9)
    return made


def test_a_share_record_is_a_record(twin: Any) -> None:
    made = handed_out(twin, count=3)
    plain = next(cursor_over(twin, [2]))
    assert type(plain) is twin.Record
    assert isinstance(made, twin.Record)
    assert isinstance(made, twin.ShareRecord)
    assert isinstance(made, _acquired.ShareRecord)
    assert (made == plain, plain == made, hash(made)) == (True, True, hash(plain))
    assert repr(made) == f"Share{repr(plain)[:-1]}, delivery_count=3)"
    assert dataclasses.asdict(made) == dataclasses.asdict(plain)
    match made:
        case twin.ShareRecord(topic, 3, value=b"2"):
            assert topic == "orders"
        case _:
            pytest.fail("it did not match")
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.offset = 5
    with pytest.raises(AttributeError):
        made.colour = "red"


def test_records_of_both_twins_are_equal() -> None:
    pure, compiled = (handed_out(each) for each in (pure_twin(), compiled_codec()))
    assert pure == compiled
    assert compiled == pure
    assert (hash(pure), repr(pure)) == (hash(compiled), repr(compiled))


@pytest.mark.parametrize(
    ("name", "decision", "word"),
    [
        ("ack", ACCEPT, "it was accepted"),
        ("release", RELEASE, "it was released"),
        ("reject", REJECT, "it was rejected"),
    ],
)
def test_each_decision_is_taken_once(
    twin: Any, name: str, decision: int, word: str
) -> None:
    ledger = Ledger()
    made = handed_out(twin, ledger=ledger)
    assert getattr(made, name)() is None
    acquired = twin.acquired_of(made)
    assert acquired.states[2] == decision
    assert (acquired.held, ledger.calls) == (0, [acquired])
    for sent in (0, TAKEN, DONE):
        acquired.states[2] = decision + sent
        for again in (made.ack, made.release, made.reject):
            with pytest.raises(UsageError, match=f"offset 102 cannot be .*: {word}"):
                again()
    assert not made.is_lost


def test_a_lock_that_has_ended_by_the_clock_is_gone_before_anybody_noted_it(
    twin: Any,
) -> None:
    ledger = Ledger()
    made = handed_out(twin, ledger=ledger)
    assert not made.is_lost
    ledger.ended.add(made.offset)
    assert made.is_lost
    # Only while there is no decision: what was decided is told by its answer.
    made.ack()
    assert not made.is_lost
    assert not twin.acquired_of(made).is_lost(BASE + 99)


def test_lost_and_failed_records_say_why(twin: Any) -> None:
    made = handed_out(twin)
    acquired = twin.acquired_of(made)
    acquired.lose(BASE, BASE + 4)
    acquired.lost_because = "the leader has moved"
    assert made.is_lost
    with pytest.raises(UsageError, match="its lock is gone: the leader has moved"):
        made.ack()
    acquired.states[2] = FAILED
    assert not made.is_lost
    with pytest.raises(UsageError, match="the leader did not confirm"):
        made.release()
    assert made.value == b"2"


def test_what_the_lock_says(twin: Any) -> None:
    made = handed_out(twin, count=4)
    assert made.delivery_count == 4
    twin.acquired_of(made).deadline = 12.5
    assert made.lock_deadline == 12.5


async def test_acked_asks_the_listener(twin: Any) -> None:
    ledger = Ledger()
    made = handed_out(twin, ledger=ledger)
    waiting = made.acked
    assert ledger.asked == [(twin.acquired_of(made), 102)]
    assert not waiting.done()
    waiting.cancel()


def copies(made: Any) -> list[Any]:
    return [
        copy.copy(made),
        copy.deepcopy(made),
        *(
            pickle.loads(pickle.dumps(made, protocol))
            for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)
        ),
    ]


def test_copies_have_no_lock(twin: Any) -> None:
    ledger = Ledger()
    made = handed_out(twin, count=3, ledger=ledger)
    twin.acquired_of(made).deadline = 12.5
    for other in copies(made):
        assert type(other) is kafkaio.ShareRecord
        assert other == made
        assert (other.delivery_count, other.lock_deadline) == (3, 12.5)
        assert not other.is_lost
        with pytest.raises(UsageError, match="this is a copy without a lock"):
            other.ack()
        with pytest.raises(UsageError, match="this is a copy without a lock"):
            _ = other.acked
    assert twin.acquired_of(made).held == 1
    made.ack()
    assert copies(made)[0] == made


FIELDS = {
    "topic": "orders",
    "partition": 3,
    "offset": 2**40,
    "timestamp": 1_700_000_000_000,
    "key": b"key",
    "value": b"value",
    "headers": (("name", b"1"), ("other", None)),
    "timestamp_type": TimestampType.LOG_APPEND,
    "leader_epoch": 7,
}


def test_made_by_hand(twin: Any) -> None:
    made = twin.ShareRecord(**FIELDS, delivery_count=2)
    assert {name: getattr(made, name) for name in FIELDS} == FIELDS
    assert made == twin.Record(**FIELDS)
    assert (made.delivery_count, made.lock_deadline, made.is_lost) == (2, 0.0, False)
    assert twin.ShareRecord("orders", 3, 5, -1, None, None).delivery_count == 1
    with pytest.raises(UsageError, match="orders-3 at offset 1099511627776 cannot be"):
        made.reject()
    with pytest.raises(TypeError):
        twin.ShareRecord("orders", 3, 5)


def test_replaced(twin: Any) -> None:
    made = twin.ShareRecord(**FIELDS, delivery_count=2, lock_deadline=1.5)
    changed = made.__replace__(value=b"x")
    assert changed == twin.Record(**FIELDS | {"value": b"x"})
    assert type(changed) is twin.ShareRecord
    assert (changed.delivery_count, changed.lock_deadline) == (2, 1.5)
    assert dataclasses.replace(made, offset=1).offset == 1
    if sys.version_info >= (3, 13):
        assert copy.replace(made, delivery_count=9).delivery_count == 9


def test_converted(twin: Any) -> None:
    ledger = Ledger()
    made = handed_out(twin, count=2, ledger=ledger)
    changed = twin.converted(made, "key", {"a": 1})
    assert (changed.key, changed.value) == ("key", {"a": 1})
    assert isinstance(changed, twin.ShareRecord)
    assert type(changed).__qualname__ == "ShareRecord"
    assert changed.delivery_count == 2
    assert changed != made
    for other in copies(changed):
        assert other == changed
        assert (other.delivery_count, isinstance(other, kafkaio.ShareRecord)) == (
            2,
            True,
        )
    assert twin.acquired_of(changed) is twin.acquired_of(made)
    changed.ack()
    with pytest.raises(UsageError, match="it was accepted"):
        made.ack()
    assert twin.converted(changed, made.key, made.value) == made
    with pytest.raises(dataclasses.FrozenInstanceError):
        changed.value = 1


class Thing:
    """What a deserializer may return."""


def test_cycles_are_collected(twin: Any) -> None:
    thing, ledger = Thing(), Ledger()
    thing.record = twin.converted(handed_out(twin), None, thing)  # type: ignore[attr-defined]
    acquired = acquire(twin, BASE, BASE + 4, listener=ledger)
    acquired.decide(BASE, ACCEPT)  # the ledger refers to the range
    cursor = share_records(twin, [2], [acquired])
    ledger.calls.append(cursor)
    gone = [weakref.ref(thing), weakref.ref(ledger)]
    del thing, ledger, acquired, cursor
    gc.collect()
    assert [each() for each in gone] == [None, None]


def test_a_compiled_record_is_small_and_not_tracked() -> None:
    made = handed_out(compiled_codec())
    assert not gc.is_tracked(made)
    assert sys.getsizeof(made) <= 88


# Cursors


def test_hands_out_what_is_acquired_and_held(twin: Any) -> None:
    one, other = acquire(twin, 90, 102), acquire(twin, 105, 107)
    cursor = share_records(twin, [*range(10)], [one, other], end=10)
    assert (cursor.remaining, cursor.next_offset) == (6, 100)
    assert operator.length_hint(cursor) == 6
    assert repr(cursor) == "<AcquiredCursor at 100 | 6 remaining>"
    assert next(cursor).offset == 100
    assert (cursor.remaining, cursor.next_offset) == (5, 101)
    assert (one.handed_to, other.handed_to) == (101, 105)
    # A copy looks ahead.
    assert offsets(cursor.copy().take(9)) == [101, 102, 105, 106, 107]
    assert (one.handed_to, other.handed_to) == (101, 105)
    one.decide(101, RELEASE)
    other.lose(107, 107)
    assert offsets(cursor.take(2)) == [102, 105]
    assert (cursor.remaining, cursor.next_offset) == (2, 106)
    assert offsets(cursor) == [106]
    assert (cursor.remaining, cursor.next_offset) == (0, 110)
    assert (one.handed_to, other.handed_to) == (103, 107)
    assert next(cursor, None) is None
    assert cursor.take(5) == []
    # Nothing is a gap: the batch has all of its records.
    assert GAP not in one.states + other.states


def test_gaps_are_decided_when_the_batch_is_opened(twin: Any) -> None:
    ledger = Ledger()
    one = acquire(twin, 90, 104, listener=ledger)
    other = acquire(twin, 107, 120, listener=ledger)
    cursor = twin.AcquiredCursor(cursor_over(twin, [2, 3, 8], end=12), [one, other], 95)
    gaps = [90 + n for n, state in enumerate(one.states) if state == GAP]
    assert gaps == [95, 96, 97, 98, 99, 100, 101, 104]
    gaps = [107 + n for n, state in enumerate(other.states) if state == GAP]
    assert gaps == [107, 109, 110, 111]
    assert ledger.calls == [one, other]
    assert offsets(cursor) == [102, 103, 108]
    assert one.held == 15 - 8


def test_a_batch_without_acquired_records(twin: Any) -> None:
    far = acquire(twin, 500, 510)
    for ranges in ([], [far]):
        cursor = share_records(twin, [0, 1], ranges, end=2)
        assert (cursor.remaining, cursor.next_offset, cursor.take(9)) == (0, 102, [])
        assert cursor.acquired == ()
        assert cursor.decide_rest(RELEASE) == 0


def test_a_batch_without_records(twin: Any) -> None:
    acquired = acquire(twin, 90, 120)
    cursor = share_records(twin, [], [acquired], end=10)
    assert (cursor.remaining, cursor.take(9)) == (0, [])
    assert acquired.held == 21


def test_records_that_are_not_in_order_are_corrupt(twin: Any) -> None:
    for deltas in ([0, 2, 1], [0, 1, 1]):
        acquired = acquire(twin, 90, 120)
        with pytest.raises(
            CorruptRecord, match="the record at offset 101 follows the one at offset 10"
        ):
            share_records(twin, deltas, [acquired])
        assert acquired.held == 31


def test_rests_and_pieces_are_decided_without_records(twin: Any) -> None:
    acquired = acquire(twin, 90, 120)
    cursor = share_records(twin, [*range(10)], [acquired], end=10)
    piece = cursor.cut(4)
    assert (piece.remaining, cursor.remaining, acquired.handed_to) == (4, 6, 104)
    piece.copy().take(1)[0].reject()
    assert piece.decide_rest(ACCEPT) == 3
    assert piece.decide_rest(ACCEPT) == 0
    # It was handed out: it has the records that it had, whatever became of them.
    acquired.lose(103, 103)
    assert (piece.remaining, offsets(piece.copy())) == (4, [100, 101, 102, 103])
    cursor.stop()
    assert cursor.decide_rest(RELEASE) == 0
    assert bytes(acquired.states[10:20]) == bytes(
        [REJECT, *[ACCEPT] * 2, LOST, *[HELD] * 6]
    )


def test_stop_and_detach_release_the_buffer(twin: Any) -> None:
    data = b"".join(record(offset_delta=delta) for delta in range(3))
    buffer = bytearray(data)
    plain = twin.RecordCursor(
        data, 0, 3, origin(base_offset=BASE, last_offset_delta=2), BASE + 3
    )
    del buffer
    cursor = twin.AcquiredCursor(plain, [acquire(twin, BASE, BASE + 2)], BASE)
    cursor.detach()
    plain.stop()
    assert offsets(cursor.copy()) == [100, 101, 102]
    cursor.stop()
    assert (cursor.remaining, cursor.take(3), list(cursor)) == (0, [], [])


@st.composite
def partitions_of_a_batch(draw: st.DrawFn) -> tuple[list[int], list[tuple[int, int]]]:
    deltas = sorted(draw(st.sets(st.integers(0, 30), max_size=31)))
    bounds = sorted(draw(st.sets(st.integers(-10, 50), max_size=8)))
    pairs = zip(bounds[::2], bounds[1::2], strict=False)
    return deltas, [(BASE + low, BASE + high - 1) for low, high in pairs]


operations = st.lists(
    st.tuples(
        st.sampled_from(
            [
                *("next", "take", "keys", "values", "skip", "cut", "copy"),
                *("columns", "lose", "decide", "decide_rest"),
            ]
        ),
        st.integers(-1, 45),
    ),
    max_size=15,
)


class Model:
    """A cursor as a list of offsets, the states of which it looks up."""

    def __init__(self, deltas: list[int], ranges: list[Any], end: int) -> None:
        self.ranges = ranges
        self.end = BASE + end
        self.left = [BASE + delta for delta in deltas if self.range_of(BASE + delta)]
        self.next_offset = self.left[0] if self.left else self.end

    def range_of(self, offset: int) -> Any:
        for each in self.ranges:
            if each.first <= offset <= each.last:
                return each
        return None

    def take(self, limit: int) -> list[int]:
        found: list[int] = []
        while self.left and len(found) < limit:
            offset = self.left.pop(0)
            self.next_offset = offset + 1 if self.left else self.end
            if self.range_of(offset).is_held(offset):
                found.append(offset)
        return found


class Run:
    """Takes the same steps with a cursor and with a model of it."""

    def __init__(self, twin: Any, cursor: Any, model: Model) -> None:
        self.twin = twin
        self.cursor = cursor
        self.model = model
        self.pieces: list[tuple[Any, list[int]]] = []

    def step(self, name: str, number: int) -> Any:
        """Take a step; return what has become of the ranges."""
        getattr(self, name)(number)
        assert self.cursor.remaining == len(self.model.left)
        assert self.cursor.next_offset == self.model.next_offset
        assert self.cursor.bytes_left >= 0
        for piece, expected in self.pieces:
            # It was handed out, whatever became of its records since.
            assert piece.remaining == len(expected)
            assert offsets(piece.copy()) == expected
            assert self.columns_of(piece) == expected
            assert offsets(piece.copy().cut(2)) == expected[:2]
        return [(bytes(each.states), each.handed_to) for each in self.model.ranges]

    def rest(self) -> list[int]:
        model = copy.copy(self.model)
        model.left = model.left[:]
        return model.take(99)

    def next(self, _: int) -> None:
        made = next(self.cursor, None)
        assert ([] if made is None else [made.offset]) == self.model.take(1)

    def take(self, number: int) -> None:
        made = self.cursor.take(number)
        assert offsets(made) == self.model.take(number)
        for each in made:
            assert type(each) is self.twin.ShareRecord
            range_of_it = self.model.range_of(each.offset)
            assert self.twin.acquired_of(each) is range_of_it

    def keys(self, number: int) -> None:
        expected = [b"k%d" % (each - BASE) for each in self.model.take(number)]
        assert self.cursor.take_keys(number) == expected

    def values(self, number: int) -> None:
        expected = [b"%d" % (each - BASE) for each in self.model.take(number)]
        assert self.cursor.take_values(number) == expected

    def skip(self, number: int) -> None:
        self.cursor.skip(number)
        self.model.take(number)

    def cut(self, number: int) -> None:
        self.pieces.append((self.cursor.cut(number), self.model.take(number)))

    def copy(self, _: int) -> None:
        assert offsets(self.cursor.copy()) == self.rest()

    def columns(self, number: int) -> None:
        assert self.columns_of(self.cursor, headers=number % 2 == 0) == self.rest()

    def columns_of(self, cursor: Any, *, headers: bool = False) -> list[int]:
        builder = self.twin.ColumnsBuilder(DecodedColumns(headers=headers))
        assert builder.add_cursor(cursor)
        columns = builder.finish()
        found: list[int] = memoryview(columns.offsets).cast("q").tolist()
        assert columns.length == len(found)
        return found

    def lose(self, number: int) -> None:
        for each in self.model.ranges:
            each.lose(BASE + number, BASE + number + 2)

    def decide(self, number: int) -> None:
        for each in self.model.ranges:
            each.decide_range(BASE + number, BASE + number + 1, ACCEPT)

    def decide_rest(self, _: int) -> None:
        held = [
            each for each in self.model.left if self.model.range_of(each).is_held(each)
        ]
        assert self.cursor.decide_rest(RELEASE) == len(held)


@law
@given(
    batch=partitions_of_a_batch(),
    lost=st.sets(st.integers(-5, 45), max_size=12),
    slack=st.integers(0, 6),
    first=st.integers(-12, 0),
    steps=operations,
)
def test_cursors_of_both_twins_do_what_a_list_does(
    batch: tuple[list[int], list[tuple[int, int]]],
    lost: set[int],
    slack: int,
    first: int,
    steps: list[tuple[str, int]],
) -> None:
    deltas, spans = batch
    end = (deltas[-1] if deltas else 0) + 1 + slack
    stories: list[list[Any]] = []
    for twin in (pure_twin(), compiled_codec()):
        ranges = [acquire(twin, *span) for span in spans]
        for each in ranges:
            for offset in lost:
                each.lose(BASE + offset, BASE + offset)
        plain = cursor_over(twin, deltas, end=end)
        cursor = twin.AcquiredCursor(plain, ranges, BASE + first)
        for each in ranges:
            for offset in range(each.first, each.last + 1):
                is_gap = offset not in {BASE + delta for delta in deltas} and (
                    BASE + first <= offset < BASE + end
                )
                is_lost = offset - BASE in lost
                state = each.states[offset - each.first]
                assert state == (LOST if is_lost else GAP if is_gap else HELD)
        model = Model(deltas, ranges, end)
        assert (cursor.remaining, cursor.next_offset) == (
            len(model.left),
            model.next_offset,
        )
        run = Run(twin, cursor, model)
        stories.append([run.step(*step) for step in steps])
    assert stories[0] == stories[1]


# Handing out


class Owner:
    """What a reader does for its handout: new cursors while there are any."""

    def __init__(self, twin: Any, cursors: list[Any], convert: Any = None) -> None:
        self.cursors = cursors
        self.handout = twin.Handout(self.refill, convert)
        self.refills = 0

    def refill(self) -> bool:
        self.refills += 1
        self.handout.credit = 1000
        cursor = self.handout.cursor
        if cursor is not None and cursor.remaining:
            return True
        if not self.cursors:
            return False
        self.handout.cursor = self.cursors.pop(0)
        return True


def test_a_handout_passes_over_batches_whose_records_were_lost(twin: Any) -> None:
    ranges = [acquire(twin, BASE, BASE + 2) for _ in range(3)]
    cursors = [share_records(twin, [0, 1, 2], [each], end=3) for each in ranges]
    owner = Owner(twin, cursors)
    assert owner.handout.take().offset == 100
    ranges[0].lose(BASE, BASE + 9)
    ranges[1].lose(BASE, BASE + 9)
    taken = owner.handout.take()
    assert (taken.offset, twin.acquired_of(taken)) == (100, ranges[2])
    assert offsets(owner.handout.take_run(5)) == [101, 102]
    assert owner.handout.take() is None
    # One for each batch, and the last that found none.
    assert owner.refills == 4


def test_a_handout_converts_share_records(twin: Any) -> None:
    acquired = acquire(twin, BASE, BASE + 4)

    def convert(made: Any) -> Any:
        if made.value == b"3":
            raise ValueError(made.value)
        return None if made.value == b"4" else twin.converted(made, None, 5)

    cursor = share_records(twin, [*range(5)], [acquired], end=5)
    owner = Owner(twin, [cursor], convert)
    first = owner.handout.take()
    assert (first.offset, first.value, type(first).__qualname__) == (
        100,
        5,
        "ShareRecord",
    )
    first.ack()
    acquired.lose(BASE + 2, BASE + 2)
    assert offsets(owner.handout.take_run(9)) == [101]
    for _ in range(2):  # the same record again
        with pytest.raises(ValueError, match="3"):
            owner.handout.take()
    acquired.decide(BASE + 3, REJECT)
    assert owner.handout.take() is None  # it has to wait
    assert cursor.remaining == 3  # a bound: it has not moved
    acquired.lose(BASE, BASE + 9)
    assert owner.handout.take() is None
    assert (cursor.remaining, owner.handout.take_run(3)) == (0, [])


async def test_a_stream_of_share_records(twin: Any) -> None:
    ranges = [acquire(twin, BASE, BASE + 2) for _ in range(2)]
    cursors = [share_records(twin, [0, 1, 2], [each], end=3) for each in ranges]
    owner = Owner(twin, cursors)

    async def wait() -> Any:
        raise StopAsyncIteration

    seen = []
    async for made in twin.RecordStream(owner.handout, wait):
        made.ack()
        seen.append(made.offset)
        if len(seen) == 2:
            ranges[0].lose(BASE + 2, BASE + 2)
    assert seen == [100, 101, 100, 101, 102]
    assert [bytes(each.states) for each in ranges] == [
        bytes([LOST if n == 2 else ACCEPT for n in range(3)]),
        bytes([ACCEPT] * 3),
    ]
