"""Laws of a share partition, whatever its members do."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._share.inflight import Delivery, RecordState
from kafkaio.testing._share.partition import (
    AckBatch,
    AckType,
    Acquire,
    Fetched,
    ShareImage,
    ShareLimits,
    SharePartition,
)

MEMBERS = ("a", "b", "c")
DURATION = 10.0
FINAL = {RecordState.ACKNOWLEDGED, RecordState.ARCHIVED}

members = st.sampled_from(MEMBERS)
types = st.sampled_from([0, 1, 2, 3, 4])


class Group(RuleBasedStateMachine):
    """Members of a group at one partition, and what they know."""

    @initialize(
        limit=st.integers(2, 6),
        locks=st.integers(4, 30),
        start=st.integers(0, 5),
    )
    def begin(self, limit: int, locks: int, start: int) -> None:
        self.limits = ShareLimits(DURATION, limit, locks)
        self.machine = SharePartition(ShareImage(start), self.limits)
        self.log: list[tuple[int, int]] = []
        self.first = self.end = start
        self.now = 0.0
        #: Holder, deadline and number of deliveries of each offset that is locked.
        self.locked: dict[int, tuple[str, float, int]] = {}
        #: The number of deliveries of each offset, and those that are done with.
        self.counts: dict[int, int] = {}
        self.done: set[int] = set()

    # ---- what happens ------------------------------------------------------------

    @rule(count=st.integers(1, 8))
    def append(self, count: int) -> None:
        self.log.append((self.end, self.end + count - 1))
        self.end += count

    @rule(
        member=members,
        most=st.integers(1, 12),
        size=st.integers(1, 6),
        exact=st.booleans(),
        batches=st.integers(1, 4),
    )
    def acquire(
        self, member: str, most: int, size: int, exact: bool, batches: int
    ) -> None:
        machine = self.machine
        offset = machine.next_offset
        read = [one for one in self.log if one[1] >= offset][:batches]
        could = machine.can_acquire
        before = {
            offset
            for first, last, _ in machine.states()
            for offset in range(first, last + 1)
        }
        ask = Acquire(member=member, max_records=most, batch_size=size, is_exact=exact)
        ranges = machine.acquire(ask, Fetched(offset, read), self.now)
        taken = [n for first, last, _ in ranges for n in range(first, last + 1)]
        assert taken == sorted(set(taken))
        for first, last, count in ranges:
            for number in range(first, last + 1):
                assert number not in self.done
                # Never two live locks on one offset.
                assert number not in self.locked
                # One more delivery each time, and never more than allowed.
                assert (
                    count
                    == self.counts.get(number, 0) + 1
                    <= self.limits.delivery_limit
                )
                self.counts[number] = count
                self.locked[number] = (member, self.now + DURATION, count)
        if exact:
            assert len(taken) <= most
        elif taken:
            # A batch is never divided: it overshoots by less than the last one.
            largest = max(last - first + 1 for first, last in [*read, (0, 0)])
            assert len(taken) < most + max(largest, 30)
        new = [n for n in taken if n not in before]
        if new and exact:
            assert machine.frontier - machine.start <= self.limits.max_locks + max(
                last - first for first, last in read
            )
        if taken:
            assert could
        # Whoever asks gets something, if there is something.
        if read and could:
            assert taken

    @rule(
        member=members,
        data=st.lists(
            st.tuples(st.integers(0, 40), st.integers(0, 5), types), max_size=4
        ),
        each=st.booleans(),
    )
    def acknowledge(
        self, member: str, data: list[tuple[int, int, int]], each: bool
    ) -> None:
        acks: list[AckBatch] = []
        for first, length, kind in sorted(data):
            if not acks or first > acks[-1].last:
                count = length + 1 if each else 1
                acks.append(AckBatch(first, first + length, (kind,) * count))
        self._acknowledge(member, acks)

    @precondition(lambda self: self.locked)
    @rule(data=st.data(), kind=types)
    def acknowledge_what_is_held(self, data: st.DataObject, kind: int) -> None:
        number = data.draw(st.sampled_from(sorted(self.locked)))
        member = self.locked[number][0]
        last = number
        while self.locked.get(last + 1, ("",))[0] == member and data.draw(
            st.booleans()
        ):
            last += 1
        self._acknowledge(member, [AckBatch(number, last, (kind,))])

    def _acknowledge(self, member: str, acks: list[AckBatch]) -> None:
        meant = [
            (number, ack.type_of(number))
            for ack in acks
            for number in range(ack.first, ack.last + 1)
            if number >= self.machine.start
        ]
        try:
            self.machine.acknowledge(member, acks, self.now)
        except Refusal:
            assert any(
                self.locked.get(number, ("",))[0] != member for number, _ in meant
            )
            # All or nothing, but for renewals, which may be done.
            for number, kind in meant:
                if kind is AckType.RENEW and number in self.locked:
                    holder, deadline, count = self.locked[number]
                    found = next(
                        one.deadline
                        for first, last, one in self.machine.states()
                        if first <= number <= last
                    )
                    assert found in {deadline, self.now + DURATION}
                    self.locked[number] = (holder, found, count)
            return
        for number, kind in meant:
            holder, _, count = self.locked[number]
            assert holder == member
            if kind is AckType.RENEW:
                self.locked[number] = (holder, self.now + DURATION, count)
                continue
            del self.locked[number]
            if kind is not AckType.RELEASE or count == self.limits.delivery_limit:
                self.done.add(number)

    @rule(seconds=st.sampled_from([1.0, 5.0, 10.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        ended = [n for n, (_, until, _) in self.locked.items() if until <= self.now]
        assert self.machine.expire(self.now) == bool(ended)
        for number in ended:
            self._free(number)

    @rule(member=members)
    def disconnect(self, member: str) -> None:
        held = [n for n, (holder, _, _) in self.locked.items() if holder == member]
        assert self.machine.release(member) == bool(held)
        for number in held:
            self._free(number)

    def _free(self, number: int) -> None:
        count = self.locked.pop(number)[2]
        if count == self.limits.delivery_limit:
            self.done.add(number)

    @rule()
    def move_the_leader(self) -> None:
        """The next leader knows what was kept: locks are gone, and not counted."""
        kept = self.machine.kept
        self.machine = SharePartition(kept, self.limits)
        for number in list(self.locked):
            del self.locked[number]
            self.counts[number] -= 1

    # ---- what holds --------------------------------------------------------------

    @invariant()
    def it_knows_what_the_members_know(self) -> None:
        states = dict(self._states())
        for number, (holder, deadline, count) in self.locked.items():
            one = states[number]
            assert (one.state, one.member) == (RecordState.ACQUIRED, holder)
            assert (one.deadline, one.count) == (deadline, count)
        for number, one in states.items():
            if one.state is RecordState.AVAILABLE:
                assert number not in self.done
                assert one.count == self.counts.get(number, 0)
                assert one.count < self.limits.delivery_limit
            elif one.state in FINAL:
                assert number in self.done

    @invariant()
    def the_start_is_the_first_that_is_not_done_with(self) -> None:
        start = self.machine.start
        assert start not in self.done
        assert all(n in self.done for n in range(self.first, start))
        assert self.machine.frontier >= start

    @invariant()
    def the_deadline_is_the_next_end_of_a_lock(self) -> None:
        deadlines = [until for _, until, _ in self.locked.values()]
        assert self.machine.deadline == min(deadlines, default=float("inf"))

    def _states(self) -> Iterator[tuple[int, Delivery]]:
        for first, last, one in self.machine.states():
            for number in range(first, last + 1):
                yield number, one

    def teardown(self) -> None:
        """Whatever happened, a member that accepts everything gets to the end."""
        if not hasattr(self, "machine"):
            return
        for member in MEMBERS:
            self.disconnect(member)
        for _ in range(20 * (self.end - self.first + 1)):
            if self.machine.start == self.end:
                break
            self.acquire("a", 100, 100, False, 100)
            held = sorted(self.locked)
            self._acknowledge("a", [AckBatch(n, n, (1,)) for n in held])
        assert self.machine.start == self.machine.frontier == self.end
        assert self.done == set(range(self.first, self.end))


def test_the_laws_hold() -> None:
    run_state_machine_as_test(
        Group, settings=settings(max_examples=60, stateful_step_count=30)
    )
