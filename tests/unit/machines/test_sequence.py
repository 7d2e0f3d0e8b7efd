"""Sequence numbers: case by case, and against a model of the broker."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
)

from kafkaio._machines.sequence import (
    MAX_UNDER_WAY,
    UNNUMBERED,
    IdAndEpoch,
    PartitionSequence,
    ProducerIdentity,
    advance,
)


class Batch:
    def __init__(self, count: int = 1, label: int = 0) -> None:
        self.identity: IdAndEpoch | None = None
        self.base_sequence = UNNUMBERED
        self.is_on_wire = False
        self.is_uncertain = False
        self._count = count
        self.label = label

    @property
    def count(self) -> int:
        return self._count

    @property
    def numbers(self) -> tuple[int, int]:
        assert self.identity is not None
        return self.identity.epoch, self.base_sequence


def started(epoch: int = 0) -> tuple[ProducerIdentity, PartitionSequence[Batch]]:
    producer = ProducerIdentity()
    producer.obtained(IdAndEpoch(7, epoch))
    return producer, PartitionSequence(producer)


def known() -> tuple[ProducerIdentity, PartitionSequence[Batch]]:
    """After one batch of 10 was acknowledged."""
    producer, sequence = started()
    send_new(sequence, Batch(10))
    sequence.acked(sequence.under_way[0])
    return producer, sequence


def send_new(sequence: PartitionSequence[Batch], *batches: Batch) -> None:
    for batch in batches:
        assert sequence.sendable(batch) is batch
        sequence.sent(batch)


def test_numbers_wrap_at_two_to_the_31() -> None:
    assert advance(2**31 - 2, 1) == 2**31 - 1
    assert advance(2**31 - 2, 3) == 1


def test_nothing_goes_without_an_identity() -> None:
    producer = ProducerIdentity()
    sequence: PartitionSequence[Batch] = PartitionSequence(producer)
    batch = Batch()
    assert sequence.sendable(batch) is None
    assert producer.bump() is None
    producer.obtained(IdAndEpoch(7, 3))
    assert sequence.sendable(batch) is batch
    assert sequence.sendable(None) is None


def test_the_first_batch_of_a_numbering_goes_alone() -> None:
    _, sequence = started()
    first, second = Batch(3), Batch(2)
    send_new(sequence, first)
    assert sequence.sendable(second) is None
    sequence.acked(first)
    send_new(sequence, second)
    assert first.numbers == (0, 0)
    assert second.numbers == (0, 3)


def test_at_most_five_are_under_way() -> None:
    _, sequence = known()
    send_new(sequence, *(Batch() for _ in range(MAX_UNDER_WAY)))
    assert sequence.sendable(Batch()) is None
    assert [b.base_sequence for b in sequence.under_way] == [10, 11, 12, 13, 14]


def test_only_the_lowest_goes_again() -> None:
    _, sequence = known()
    one, two, three = Batch(), Batch(), Batch()
    send_new(sequence, one, two, three)
    sequence.refused(one)
    sequence.refused(two)
    assert sequence.sendable(one) is one
    sequence.sent(one)
    assert one.numbers == (0, 10)
    assert sequence.sendable(two) is None
    sequence.acked(one)
    assert sequence.sendable(two) is two


def test_a_gap_before_a_later_batch_is_waited_for() -> None:
    _, sequence = known()
    one, two = Batch(), Batch()
    send_new(sequence, one, two)
    sequence.lost(one)
    sequence.out_of_order(two)
    assert not sequence.is_settling
    assert sequence.sendable(one) is one


def test_a_gap_before_the_next_batch_takes_a_new_epoch() -> None:
    producer, sequence = known()
    one, two, three = Batch(2), Batch(3), Batch(4)
    send_new(sequence, one, two)
    sequence.out_of_order(one)
    assert sequence.sendable(one) is None  # two is still on the wire
    sequence.out_of_order(two)
    assert sequence.sendable(one) is one
    assert (one.numbers, two.numbers) == ((1, 0), (1, 2))
    assert producer.current == IdAndEpoch(7, 1)
    sequence.sent(one)
    assert sequence.sendable(three) is None
    sequence.acked(one)
    assert sequence.sendable(two) is two
    assert producer.current == IdAndEpoch(7, 1)


def test_a_failed_batch_takes_a_new_epoch_for_those_behind_it() -> None:
    _, sequence = known()
    one, two = Batch(2), Batch(3)
    send_new(sequence, one, two)
    sequence.failed(one)
    assert sequence.sendable(Batch()) is None
    sequence.out_of_order(two)
    assert sequence.sendable(two) is two
    assert two.numbers == (1, 0)


def test_an_uncertain_batch_is_asked_about_before_it_gets_new_numbers() -> None:
    _, sequence = known()
    one, two = Batch(2), Batch(3)
    send_new(sequence, one, two)
    sequence.failed(one)
    sequence.lost(two)
    assert sequence.sendable(two) is two
    assert two.numbers == (0, 12)
    sequence.sent(two)
    assert sequence.sendable(None) is None
    sequence.acked(two)  # it had been written
    new = Batch()
    send_new(sequence, new)
    # Nothing is missing between what was acknowledged and the next number.
    assert new.numbers == (0, 15)


def test_a_batch_that_expired_on_the_wire_may_turn_out_written() -> None:
    producer, sequence = known()
    one = Batch(2)
    send_new(sequence, one)
    sequence.expired(one)
    assert sequence.sendable(Batch()) is None
    sequence.acked(one)
    new = Batch()
    send_new(sequence, new)
    assert new.numbers == (0, 12)
    assert producer.current == IdAndEpoch(7, 0)


def test_a_batch_that_expired_and_failed_takes_a_new_epoch() -> None:
    _, sequence = known()
    one = Batch(2)
    send_new(sequence, one)
    sequence.expired(one)
    sequence.failed(one)
    new = Batch()
    send_new(sequence, new)
    assert new.numbers == (1, 0)


def test_parts_of_the_same_count_take_over_the_numbers() -> None:
    _, sequence = known()
    one, two = Batch(5), Batch(1)
    send_new(sequence, one, two)
    parts = [Batch(2), Batch(3)]
    sequence.replaced(one, parts)
    assert [p.numbers for p in parts] == [(0, 10), (0, 12)]
    assert not sequence.is_settling
    assert sequence.sendable(parts[0]) is parts[0]
    assert sequence.under_way == [*parts, two]


def test_parts_of_a_smaller_count_are_numbered_anew_in_their_place() -> None:
    _, sequence = known()
    one, two = Batch(5), Batch(1)
    send_new(sequence, one, two)
    part = Batch(4)
    sequence.replaced(one, [part])
    assert sequence.sendable(part) is None
    sequence.out_of_order(two)
    assert sequence.sendable(part) is part
    assert (part.numbers, two.numbers) == ((1, 0), (1, 4))


def test_what_a_broker_forgot_is_numbered_anew_without_asking() -> None:
    _, sequence = known()
    one, two = Batch(2), Batch(3)
    send_new(sequence, one, two)
    sequence.lost(two)
    sequence.forgotten(one)
    assert sequence.sendable(one) is one
    assert (one.numbers, two.numbers) == ((1, 0), (1, 2))


def test_a_batch_before_what_was_acknowledged_cannot_be_waited_for() -> None:
    # The broker lost its state, took the second batch as a first, and the first one
    # can never follow under this numbering.
    _, sequence = known()
    one, two = Batch(2), Batch(3)
    send_new(sequence, one, two)
    sequence.lost(one)
    sequence.acked(two)
    assert sequence.sendable(one) is one
    sequence.sent(one)
    sequence.out_of_order(one)
    assert sequence.sendable(one) is one
    assert one.numbers == (1, 0)


def test_partitions_share_a_new_epoch_and_take_it_when_they_are_idle() -> None:
    producer, first = known()
    second: PartitionSequence[Batch] = PartitionSequence(producer)
    third: PartitionSequence[Batch] = PartitionSequence(producer)
    others = [Batch(4), Batch(4)]
    for sequence, batch in zip((second, third), others, strict=True):
        send_new(sequence, batch)
    broken = Batch()
    send_new(first, broken)
    first.failed(broken)
    assert first.sendable(Batch()) is not None
    assert producer.current == IdAndEpoch(7, 1)
    # One fails too, and there is a new epoch already; the other goes on as it is.
    second.failed(others[0])
    third.acked(others[1])
    new = [Batch(), Batch()]
    for sequence, batch in zip((second, third), new, strict=True):
        send_new(sequence, batch)
    assert [b.numbers for b in new] == [(1, 0), (1, 0)]
    assert producer.current == IdAndEpoch(7, 1)


def test_an_idle_partition_waits_for_the_new_id() -> None:
    producer, sequence = known()
    producer.current = None
    assert sequence.sendable(Batch()) is None


def test_a_partition_under_way_keeps_its_epoch() -> None:
    producer, sequence = known()
    one = Batch()
    send_new(sequence, one)
    producer.bump()
    two = Batch()
    send_new(sequence, two)
    assert two.numbers == (0, 11)


def test_used_up_epochs_need_a_new_id() -> None:
    producer, sequence = started(epoch=32767)
    one = Batch(2)
    send_new(sequence, one)
    sequence.acked(one)
    two, three = Batch(), Batch()
    send_new(sequence, two, three)
    sequence.failed(two)
    sequence.out_of_order(three)
    assert sequence.sendable(three) is None
    assert producer.current is None
    other: PartitionSequence[Batch] = PartitionSequence(producer)
    assert other.sendable(Batch()) is None
    producer.obtained(IdAndEpoch(8, 0))
    assert sequence.sendable(three) is three
    assert three.identity == IdAndEpoch(8, 0)
    assert three.base_sequence == 0


class Broker:
    """Five batches remembered per producer and partition, as Kafka does it."""

    def __init__(self) -> None:
        self.log: list[int] = []
        self.state: dict[int, tuple[int, list[tuple[int, int]]]] = {}

    def append(self, batch: Batch) -> str:
        assert batch.identity is not None
        producer, epoch = batch.identity.producer_id, batch.identity.epoch
        first, last = batch.base_sequence, advance(batch.base_sequence, batch.count - 1)
        known_epoch, known = self.state.get(producer, (-1, []))
        if epoch < known_epoch:
            return "fenced"
        if epoch > known_epoch:
            if known_epoch >= 0 and first != 0:
                return "gap"
            known = []
        elif (first, last) in known:
            return "duplicate"
        elif known and advance(known[-1][1], 1) != first:
            return "gap"
        self.state[producer] = epoch, [*known, (first, last)][-5:]
        self.log.append(batch.label)
        return "done"


class Schedule(RuleBasedStateMachine):
    """Any order of sending, answering, losing and giving up."""

    def __init__(self) -> None:
        super().__init__()
        self.producer = ProducerIdentity()
        # Close to where ids and numbers wrap.
        self.producer.obtained(IdAndEpoch(1, 32766))
        self.sequence: PartitionSequence[Batch] = PartitionSequence(self.producer)
        self.broker = Broker()
        self.waiting: list[Batch] = []
        # Requests on the wire, and what the broker said to those it has served.
        self.wire: list[tuple[Batch, str | None]] = []
        self.given_up: set[int] = set()
        self.acked: list[int] = []
        self.labels = 0

    # Numbers wrap around, but never within the five batches that a broker remembers.
    @rule(count=st.integers(1, 2**31 // 6))
    def append(self, count: int) -> None:
        self.labels += 1
        self.waiting.append(Batch(count, self.labels))

    @rule()
    def send(self) -> None:
        if self.producer.current is None:
            self.producer.obtained(IdAndEpoch(self.labels + 2, 0))
        batch = self.sequence.sendable(self.waiting[0] if self.waiting else None)
        if batch is None:
            return
        self.waiting.remove(batch)
        self.sequence.sent(batch)
        self.wire.append((batch, None))

    @precondition(lambda self: self.wire)
    @rule()
    def serve(self) -> None:
        for at, (batch, said) in enumerate(self.wire):
            if said is None:
                self.wire[at] = (batch, self.broker.append(batch))
                return

    @precondition(lambda self: self.wire)
    @rule()
    def refuse(self) -> None:
        for at, (batch, said) in enumerate(self.wire):
            if said is None:
                self.wire[at] = (batch, "refused")
                return

    @precondition(lambda self: self.wire and self.wire[0][1] is not None)
    @rule(gives_up=st.booleans())
    def hear(self, gives_up: bool) -> None:
        batch, said = self.wire.pop(0)
        assert said != "fenced"
        if said in {"done", "duplicate"}:
            self.sequence.acked(batch)
            self.acked.append(batch.label)
        elif batch.label in self.given_up or (gives_up and said == "refused"):
            self.given_up.add(batch.label)
            self.sequence.failed(batch)
        else:
            answer = self.sequence.out_of_order
            (answer if said == "gap" else self.sequence.refused)(batch)
            self.put_back(batch)

    @precondition(lambda self: self.wire)
    @rule()
    def cut(self) -> None:
        cut, self.wire = self.wire, []
        for batch, _ in cut:
            if batch.label in self.given_up:
                self.sequence.failed(batch)
            else:
                self.sequence.lost(batch)
                self.put_back(batch)

    @precondition(lambda self: self.wire)
    @rule(at=st.integers(0, 4))
    def expire_on_the_wire(self, at: int) -> None:
        batch, _ = self.wire[at % len(self.wire)]
        self.given_up.add(batch.label)
        self.sequence.expired(batch)

    @precondition(lambda self: self.waiting)
    @rule()
    def expire_waiting(self) -> None:
        batch = self.waiting.pop(0)
        self.given_up.add(batch.label)
        if batch.identity is not None:
            self.sequence.failed(batch)

    def put_back(self, batch: Batch) -> None:
        self.waiting = sorted([*self.waiting, batch], key=lambda b: b.label)

    @invariant()
    def nothing_is_repeated_or_reordered(self) -> None:
        assert self.broker.log == sorted(set(self.broker.log))

    @invariant()
    def at_most_five_are_under_way(self) -> None:
        assert len(self.sequence.under_way) <= MAX_UNDER_WAY

    def teardown(self) -> None:
        # With the faults over, everything that was not given up is written.
        for _ in range(200):
            if not self.wire and not self.waiting:
                break
            self.send()
            self.serve()
            if self.wire:
                self.hear(gives_up=False)
        assert not self.wire
        assert not self.waiting
        assert not self.sequence.under_way
        wanted = set(range(1, self.labels + 1)) - self.given_up
        assert wanted <= set(self.acked) <= set(self.broker.log)


TestSchedule = Schedule.TestCase
TestSchedule.settings = settings(max_examples=40)


def test_an_early_answer_to_a_later_batch_is_not_taken_back() -> None:
    _, sequence = known()
    first, second = Batch(2), Batch(3)
    send_new(sequence, first, second)
    sequence.acked(second)
    assert sequence.expected == 15
    sequence.acked(first)
    assert sequence.expected == 15
    assert not sequence.under_way


# ---- the identity of a transactional producer


def transactional() -> tuple[ProducerIdentity, PartitionSequence[Batch]]:
    producer = ProducerIdentity(is_transactional=True)
    producer.obtained(IdAndEpoch(7, 0))
    return producer, PartitionSequence(producer)


def test_a_transactional_producer_reports_a_gap_and_takes_no_epoch() -> None:
    producer, sequence = transactional()
    lost, behind = Batch(label=1), Batch(label=2)
    send_new(sequence, lost)
    sequence.failed(lost)
    assert not producer.has_gap
    assert sequence.sendable(behind) is None
    assert producer.has_gap
    assert producer.current == IdAndEpoch(7, 0)
    assert behind.identity is None
    producer.obtained(IdAndEpoch(7, 1))  # from the coordinator
    assert not producer.has_gap
    send_new(sequence, behind)
    assert behind.numbers == (1, 0)


def test_a_gap_that_closes_is_not_reported() -> None:
    producer, sequence = transactional()
    batch = Batch()
    send_new(sequence, batch)
    sequence.expired(batch)
    sequence.acked(batch)
    assert sequence.sendable(None) is None
    assert not producer.has_gap
    assert not sequence.is_settling


def test_several_go_from_the_beginning_where_the_first_number_is_checked() -> None:
    producer, sequence = transactional()
    producer.is_first_checked = True
    send_new(sequence, *(Batch() for _ in range(MAX_UNDER_WAY)))
    assert sequence.sendable(Batch()) is None
    for batch in list(sequence.under_way):
        sequence.acked(batch)
    producer.obtained(IdAndEpoch(7, 1))
    again = [Batch() for _ in range(MAX_UNDER_WAY)]
    send_new(sequence, *again)
    assert [batch.numbers for batch in again] == [(1, n) for n in range(5)]


@given(
    st.lists(st.sampled_from(["send", "ack", "fail", "refuse", "next"]), max_size=60),
    st.booleans(),
)
def test_epochs_of_a_transactional_producer_are_the_coordinators(
    steps: list[str], is_first_checked: bool
) -> None:
    """No batch has another identity, and in each epoch numbers begin at 0."""
    producer, sequence = transactional()
    producer.is_first_checked = is_first_checked
    given_out, numbers = (
        {IdAndEpoch(7, 0)},
        dict[IdAndEpoch, list[int]](),
    )
    for step in steps:
        head = next((b for b in sequence.under_way if not b.is_on_wire), None)
        if step == "send":
            batch = sequence.sendable(head or Batch())
            if batch is not None:
                sequence.sent(batch)
                assert batch.identity in given_out
                numbers.setdefault(batch.identity, []).append(batch.base_sequence)
        elif step == "next" and not sequence.under_way:
            producer.obtained(IdAndEpoch(7, len(given_out)))
            given_out.add(IdAndEpoch(7, len(given_out)))
        elif sequence.under_way and sequence.under_way[0].is_on_wire:
            first = sequence.under_way[0]
            {"ack": sequence.acked, "fail": sequence.failed}.get(
                step, sequence.refused
            )(first)
        assert producer.current is not None
        assert producer.current.epoch == len(given_out) - 1
    for seen in numbers.values():
        assert sorted(set(seen)) == list(range(len(set(seen))))


def test_which_identity_may_follow() -> None:
    old = IdAndEpoch(7, 3)
    assert IdAndEpoch(7, 4).may_follow(old)
    assert IdAndEpoch(7, 5).may_follow(old)
    assert IdAndEpoch(8, 0).may_follow(old)
    for other in [(7, 3), (7, 2), (7, -1), (7, 6), (8, 4), (-1, -1), (-1, 0), (8, -1)]:
        assert not IdAndEpoch(*other).may_follow(old)
