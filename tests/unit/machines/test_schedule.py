"""The schedule against a model that remembers everything."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kafkaio._machines.schedule import FirstUnfinished, Job, Ordering, Schedule
from kafkaio.errors import UsageError
from kafkaio.types import Record, TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def record(
    offset: int, key: bytes | None = None, tp: TopicPartition = A, epoch: int = 0
) -> Record:
    return Record(*tp, offset, 0, key, b"", leader_epoch=epoch)


def opened(
    ordering: Ordering = "key", limit: int = 100, tps: Iterable[TopicPartition] = (A,)
) -> Schedule:
    schedule = Schedule(ordering, limit)
    for tp in tps:
        schedule.open(tp)
    return schedule


def begin(schedule: Schedule) -> Job:
    job = schedule.next()
    assert job is not None
    return job


def begin_all(schedule: Schedule) -> list[Job]:
    return [begin(schedule) for _ in range(schedule.ready)]


def offsets(jobs: Iterable[Job]) -> list[int]:
    return [job.record.offset for job in jobs]


def test_what_waited_for_a_key_comes_before_other_ready_records() -> None:
    schedule = opened()
    schedule.add(A, [record(n, key) for n, key in enumerate((b"a", b"b", b"a"))])
    schedule.finished(begin(schedule))
    assert offsets(begin_all(schedule)) == [2, 1]


def test_records_of_a_key_run_one_after_the_other() -> None:
    schedule = opened()
    keys = [b"a", b"b", b"a", None, b"a", None]
    schedule.add(A, [record(n, key) for n, key in enumerate(keys)])
    jobs = begin_all(schedule)
    assert offsets(jobs) == [0, 1, 3, 5]
    assert schedule.next() is None
    schedule.finished(jobs[0])
    second = begin(schedule)
    assert second.record.offset == 2
    assert schedule.next() is None
    schedule.finished(second)
    assert begin(schedule).record.offset == 4


def test_a_partition_may_run_as_one_or_as_many() -> None:
    one = opened("partition", tps=[A, B])
    many = opened("none", tps=[A, B])
    for schedule in (one, many):
        for tp in (A, B):
            schedule.add(tp, [record(n, b"k", tp) for n in range(3)])
    assert [(j.record.partition, j.record.offset) for j in begin_all(one)] == [
        (0, 0),
        (1, 0),
    ]
    assert len(begin_all(many)) == 6


def test_partitions_take_turns() -> None:
    schedule = opened("none", tps=[A, B])
    schedule.add(A, [record(n) for n in range(4)])
    schedule.add(B, [record(n, tp=B) for n in range(2)])
    assert [j.record.partition for j in begin_all(schedule)] == [0, 1, 0, 1, 0, 0]


def test_commits_stop_at_the_first_unfinished() -> None:
    schedule = opened("none")
    assert schedule.first_unfinished(A) is None
    schedule.add(A, [record(7, epoch=1), record(9, epoch=2), record(30, epoch=2)])
    jobs = begin_all(schedule)
    schedule.finished(jobs[1])
    assert schedule.first_unfinished(A) == FirstUnfinished(7, -1)
    schedule.finished(jobs[0])
    assert schedule.first_unfinished(A) == FirstUnfinished(30, 2)
    schedule.finished(jobs[2])
    assert schedule.first_unfinished(A) is None
    assert schedule.first_unfinished(B) is None
    assert schedule.in_hand == schedule.running == 0


def test_a_retry_keeps_its_place() -> None:
    schedule = opened()
    schedule.add(A, [record(0, b"a"), record(1, b"a"), record(2, b"b")])
    first, other = begin(schedule), begin(schedule)
    assert schedule.next_wake() is None
    schedule.retry(first, at=5.0)
    schedule.finished(other)
    assert schedule.next_wake() == 5.0
    schedule.wake(4.9)
    assert schedule.next() is None  # the one behind it waits too
    schedule.wake(5.0)
    again = begin(schedule)
    assert again is first
    assert again.attempts == 2
    schedule.finished(again)
    assert begin(schedule).record.offset == 1
    assert "1 in hand" in repr(schedule)


def test_room_comes_by_the_run() -> None:
    schedule = opened("none", limit=20, tps=[A, B])
    assert schedule.capacity(A) == schedule.capacity(B) == 10
    assert schedule.capacity(TopicPartition("u", 0)) == 0
    schedule.add(A, [record(n) for n in range(10)])
    assert schedule.capacity(A) == 0
    assert schedule.capacity(B) == 10
    jobs = begin_all(schedule)
    assert [schedule.finished(job) for job in jobs[:5]] == [False] * 4 + [True]
    assert schedule.capacity(A) == 5
    schedule.close(B)
    assert schedule.partitions == [A]
    assert schedule.capacity(A) == 15


def test_draining_ends_with_the_last_that_was_begun() -> None:
    schedule = opened(tps=[A, B])
    keys = [b"a", b"a", b"b", b"a", b"c", None]
    schedule.add(A, [record(n, key) for n, key in enumerate(keys)])
    schedule.add(B, [record(0, b"a", B)])
    zero, of_b, two = begin(schedule), begin(schedule), begin(schedule)
    assert offsets([zero, two]) == [0, 2]
    schedule.drain(A)
    schedule.drain(TopicPartition("u", 0))
    assert schedule.capacity(A) == 0
    assert schedule.next() is None
    assert not schedule.is_drained(A)
    schedule.retry(zero, at=1.0)  # what was begun is tried again all the same
    schedule.finished(two)
    schedule.wake(1.0)
    assert begin(schedule) is zero
    schedule.finished(zero)
    one = begin(schedule)
    assert one.record.offset == 1
    assert not schedule.is_drained(A)
    assert not schedule.finished(one)
    assert schedule.next() is None
    assert schedule.is_drained(A)
    assert schedule.first_unfinished(A) == FirstUnfinished(3, 0)
    assert not schedule.is_drained(B)
    schedule.finished(of_b)
    schedule.drain(B)
    assert schedule.is_drained(B)
    assert schedule.is_drained(TopicPartition("u", 0))
    assert schedule.ready == schedule.in_hand == 0


@pytest.mark.parametrize("is_before", [True, False])
def test_draining_does_not_wait_for_what_is_parked_until_a_time(
    is_before: bool,
) -> None:
    # As while a registry is down: it would be parked again and again.
    schedule = opened(ordering="none", tps=[A])
    schedule.add(A, [record(n, b"a") for n in range(5)])
    jobs = [begin(schedule) for _ in range(4)]
    schedule.finished(jobs[3])
    if is_before:
        schedule.drain(A)
    schedule.park(jobs[1], 1.0)
    schedule.retry(jobs[2], 1.0)
    if not is_before:
        schedule.drain(A)
    assert not schedule.is_drained(A)
    schedule.wake(1.0)
    assert begin(schedule) is jobs[2]  # a handler has begun it
    assert schedule.next() is None
    schedule.finished(jobs[2])
    assert not schedule.is_drained(A)
    schedule.finished(jobs[0])
    assert schedule.is_drained(A)
    assert schedule.first_unfinished(A) == FirstUnfinished(1, 0)


def test_draining_what_was_not_begun_ends_at_once() -> None:
    schedule = opened("none")
    schedule.add(A, [record(0), record(1)])
    schedule.drain(A)
    assert schedule.is_drained(A)
    assert schedule.next() is None
    assert schedule.first_unfinished(A) == FirstUnfinished(0, -1)


def test_what_is_held_back_waits_and_keeps_its_order() -> None:
    schedule = opened(limit=100)
    keys = [b"a", b"a", b"b", b"a", b"b"]
    schedule.add(A, [record(n, key) for n, key in enumerate(keys)])
    first = begin(schedule)
    schedule.hold_back()
    assert schedule.ready == 0
    assert schedule.in_hand == 1
    assert schedule.capacity(A) == 0
    schedule.finished(first)
    assert schedule.is_drained(A)
    assert schedule.first_unfinished(A) == FirstUnfinished(1, 0)
    assert schedule.is_holding_back
    assert schedule.go_on() == 4
    assert not schedule.is_holding_back
    assert offsets(begin_all(schedule)) == [1, 2]
    assert not schedule.is_drained(A)
    assert schedule.go_on() == 0


def test_what_is_held_back_goes_with_its_partition() -> None:
    schedule = opened()
    schedule.add(A, [record(n) for n in range(3)])
    schedule.stop_adding()
    assert schedule.ready == 3
    schedule.hold_back()
    schedule.drain(A)
    assert schedule.go_on() == 0
    assert schedule.is_drained(A)


def test_what_is_left_of_an_old_assignment_touches_no_later_one() -> None:
    schedule = opened()
    schedule.add(A, [record(0, b"a"), record(1, b"a"), record(2)])
    old = begin(schedule)
    schedule.open(A)
    assert not schedule.is_current(old)
    schedule.add(A, [record(0, b"a"), record(1, b"a")])
    schedule.finished(old)
    assert schedule.first_unfinished(A) == FirstUnfinished(0, -1)
    job = begin(schedule)
    assert schedule.is_current(job)
    assert schedule.next() is None
    schedule.abandoned(job)
    assert schedule.running == 0
    assert schedule.first_unfinished(A) == FirstUnfinished(0, -1)
    schedule.add(A, [record(2)])
    schedule.retry(begin(schedule), at=1.0)
    schedule.close(A)
    assert not schedule.is_current(job)
    schedule.wake(1.0)
    schedule.retry(job, at=2.0)
    assert schedule.next_wake() is None
    assert schedule.next() is None


def test_going_back_begins_anew() -> None:
    schedule = opened()
    schedule.add(A, [record(n) for n in (5, 6, 7)])
    old = begin_all(schedule)
    schedule.add(A, [record(6), record(7)])
    for job in old:
        schedule.finished(job)
    assert schedule.first_unfinished(A) == FirstUnfinished(6, -1)
    assert offsets(begin_all(schedule)) == [6, 7]


def test_memory_is_bounded_by_what_is_in_hand() -> None:
    schedule = opened("none", limit=10)
    schedule.add(A, [record(0)])
    stuck = begin(schedule)
    for n in range(1, 5000):
        schedule.add(A, [record(n)])
        schedule.finished(begin(schedule))
    assert schedule.in_hand == 1
    assert len(stuck.assignment.unfinished) == 1
    assert schedule.first_unfinished(A) == FirstUnfinished(0, -1)


def test_an_ordering_that_is_none() -> None:
    with pytest.raises(UsageError, match="ordering='keys' is none of key, partition"):
        Schedule("keys", 10)  # type: ignore[arg-type]


class Model(RuleBasedStateMachine):
    """All interleavings: what the schedule says is what a full record would say."""

    def __init__(self) -> None:
        super().__init__()
        self.ordering: Ordering = "key"
        self.schedule = opened(limit=12, tps=[A, B])
        self.next_offset = {A: 0, B: 0}
        self.handed: dict[TopicPartition, list[int]] = {A: [], B: []}
        self.done: dict[TopicPartition, set[int]] = {A: set(), B: set()}
        self.running: list[Job] = []
        self.parked: list[Job] = []
        # When those are due that wait for a time, and which of them are parked.
        self.due: dict[Job, float] = {}
        self.put_off: set[Job] = set()
        # Jobs that were parked once: beginning them again is no further attempt.
        self.again: set[Job] = set()
        self.draining: set[TopicPartition] = set()
        self.last_begun = {A: -1, B: -1}
        self.dropped: dict[TopicPartition, set[int]] = {A: set(), B: set()}
        self.begun: dict[tuple[TopicPartition, object], list[int]] = {}
        self.now = 0.0
        # Partitions that take nothing until `go_on`, and what is held back of each.
        self.stopped: set[TopicPartition] = set()
        self.waiting: dict[TopicPartition, set[int]] = {A: set(), B: set()}

    @rule(
        tp=st.sampled_from([A, B]),
        gaps=st.lists(st.integers(1, 3), max_size=5),
        key=st.sampled_from([None, b"x", b"y"]),
    )
    def add(self, tp: TopicPartition, gaps: list[int], key: bytes | None) -> None:
        room = self.schedule.capacity(tp)
        assert room <= 6
        for gap in gaps[:room]:
            offset = self.next_offset[tp] + gap
            self.next_offset[tp] = offset
            self.handed[tp].append(offset)
            self.schedule.add(tp, [record(offset, key, tp)])

    @precondition(lambda self: self.schedule.ready)
    @rule()
    def begin(self) -> None:
        job = begin(self.schedule)
        tp, key = job.assignment.tp, job.strand
        assert job.record.offset not in self.dropped[tp] | self.waiting[tp]
        if tp in self.draining:
            assert job.record.offset <= self.last_begun[tp]
        self.last_begun[tp] = max(self.last_begun[tp], job.record.offset)
        if key is not None:
            assert all(
                j.strand != key or j.assignment is not job.assignment
                for j in self.running
            )
            begun = self.begun.setdefault((tp, key), [])
            assert not any(
                j.strand == key and j.assignment is job.assignment for j in self.parked
            )
            if job.attempts == 1 and job not in self.again:
                assert all(offset < job.record.offset for offset in begun[-1:])
                begun.append(job.record.offset)
            assert begun[-1] == job.record.offset
        self.running.append(job)

    def take(self, index: int) -> Job:
        return self.running.pop(index % len(self.running))

    @precondition(lambda self: self.running)
    @rule(index=st.integers(0, 99))
    def finish(self, index: int) -> None:
        job = self.take(index)
        self.schedule.finished(job)
        if self.schedule.is_current(job):
            self.done[job.assignment.tp].add(job.record.offset)

    @precondition(lambda self: self.running)
    @rule(index=st.integers(0, 99), delay=st.integers(0, 3))
    def fail(self, index: int, delay: int) -> None:
        job = self.take(index)
        self.schedule.retry(job, self.now + delay)
        self.due[job] = self.now + delay

    @precondition(lambda self: self.running)
    @rule(index=st.integers(0, 99), delay=st.none() | st.integers(0, 3))
    def park(self, index: int, delay: int | None) -> None:
        job = self.take(index)
        attempts = job.attempts
        self.schedule.park(job, None if delay is None else self.now + delay)
        assert job.attempts == attempts - 1
        self.again.add(job)
        if delay is None:
            self.parked.append(job)
            return
        self.due[job] = self.now + delay
        self.put_off.add(job)
        if self.schedule.is_current(job) and job.assignment.tp in self.draining:
            self.give_back(job.assignment.tp)

    def give_back(self, tp: TopicPartition) -> None:
        """Drop what is put off, and all behind that nobody has begun."""
        mine = [
            job
            for job in self.put_off
            if job.assignment.tp == tp and self.schedule.is_current(job)
        ]
        if not mine:
            return
        first = min(job.record.offset for job in mine)
        self.put_off -= set(mine)
        busy = {
            job.record.offset
            for job in (*self.running, *self.parked, *(self.due.keys() - set(mine)))
            if job.assignment.tp == tp and self.schedule.is_current(job)
        }
        self.dropped[tp] |= {job.record.offset for job in mine}
        self.dropped[tp] |= {
            n
            for n in self.handed[tp]
            if n >= first and n not in self.done[tp] and n not in busy
        }
        for job in mine:
            del self.due[job]

    @precondition(lambda self: self.parked)
    @rule(index=st.integers(0, 99))
    def unpark(self, index: int) -> None:
        self.schedule.unpark(self.parked.pop(index % len(self.parked)))

    @rule(seconds=st.integers(0, 3))
    def wake(self, seconds: int) -> None:
        self.now += seconds
        self.schedule.wake(self.now)
        for job in [job for job, at in self.due.items() if at <= self.now]:
            del self.due[job]
            self.put_off.discard(job)
        due = self.schedule.next_wake()
        assert due is None or due > self.now

    @rule(tp=st.sampled_from([A, B]))
    def drain(self, tp: TopicPartition) -> None:
        self.schedule.drain(tp)
        self.draining.add(tp)
        self.stopped.discard(tp)
        self.waiting[tp].clear()
        last = self.last_begun[tp]
        self.dropped[tp] |= {n for n in self.handed[tp] if n > last}
        self.give_back(tp)

    @rule()
    def stop_adding(self) -> None:
        self.schedule.stop_adding()
        self.stopped |= {A, B} - self.draining

    @rule()
    def hold_back(self) -> None:
        self.schedule.hold_back()
        self.stopped |= {A, B} - self.draining
        for tp in self.stopped:
            last = self.last_begun[tp]
            self.waiting[tp] |= {n for n in self.handed[tp] if n > last}

    @rule()
    def go_on(self) -> None:
        waiting = sum(map(len, self.waiting.values()))
        assert self.schedule.is_holding_back == bool(waiting)
        assert self.schedule.go_on() == waiting
        self.stopped.clear()
        for held in self.waiting.values():
            held.clear()

    @rule(tp=st.sampled_from([A, B]))
    def assign_again(self, tp: TopicPartition) -> None:
        place = self.schedule.first_unfinished(tp)
        self.schedule.open(tp)
        self.draining.discard(tp)
        self.stopped.discard(tp)
        self.waiting[tp].clear()
        if place is not None:  # what a new owner reads from
            self.next_offset[tp] = place.offset - 1
        self.handed[tp].clear()
        self.done[tp].clear()
        self.dropped[tp].clear()
        self.last_begun[tp] = -1
        self.begun = {k: v for k, v in self.begun.items() if k[0] != tp}

    @invariant()
    def commits_cover_finished_records_alone(self) -> None:
        for tp in (A, B):
            left = [n for n in self.handed[tp] if n not in self.done[tp]]
            place = self.schedule.first_unfinished(tp)
            assert (place.offset if place else None) == (left[0] if left else None)

    @invariant()
    def counts_agree(self) -> None:
        current = [job for job in self.running if self.schedule.is_current(job)]
        assert self.schedule.running == len(current)
        left = {
            tp: {*self.handed[tp]} - self.done[tp] - self.dropped[tp] - self.waiting[tp]
            for tp in (A, B)
        }
        assert self.schedule.in_hand == sum(map(len, left.values()))
        assert self.schedule.in_hand <= 12
        for tp in (A, B):
            drained = tp in self.draining | self.stopped and not left[tp]
            assert self.schedule.is_drained(tp) == drained

    def teardown(self) -> None:
        # Whatever happened, everything up to the last that was begun gets done.
        for job in self.running:
            self.schedule.finished(job)
        for job in self.parked:
            self.schedule.unpark(job)
        self.schedule.go_on()
        self.schedule.wake(self.now + 10)
        while (job := self.schedule.next()) is not None:
            self.schedule.finished(job)
        for tp in (A, B):
            place = self.schedule.first_unfinished(tp)
            assert (place is None) == (not self.dropped[tp])
            assert place is None or place.offset == min(self.dropped[tp])


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=40, stateful_step_count=30)


@pytest.mark.parametrize("ordering", ["key", "partition", "none"])
def test_every_ordering_gets_everything_done(ordering: Ordering) -> None:
    schedule = opened(ordering, limit=9, tps=[A, B])
    pending = {tp: [record(n, b"%d" % (n % 3), tp) for n in range(50)] for tp in (A, B)}
    done = 0
    while done < 100:
        for tp, left in pending.items():
            room = schedule.capacity(tp)
            schedule.add(tp, left[:room])
            del left[:room]
        jobs = begin_all(schedule)
        assert jobs
        for job in reversed(jobs):
            schedule.finished(job)
        done += len(jobs)
    assert schedule.in_hand == 0
