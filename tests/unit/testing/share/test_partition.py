"""Single rules of a share partition, as Kafka 4.4.0 was seen to follow them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._share.inflight import RecordState
from kafkaio.testing._share.partition import (
    AckBatch,
    Acquire,
    Fetched,
    ShareImage,
    ShareLimits,
    SharePartition,
)

Range = tuple[int, int, int]


def partition(start: int = 0, *, limit: int = 5, locks: int = 2000) -> SharePartition:
    return SharePartition(ShareImage(start), ShareLimits(10.0, limit, locks))


def take(
    machine: SharePartition,
    *batches: tuple[int, int],
    most: int = 1000,
    size: int = 1000,
    exact: bool = False,
    member: str = "m",
    aborted: Sequence[tuple[int, int]] = (),
) -> list[Range]:
    """Acquire from batches, as they are read from the next offset."""
    ask = Acquire(member=member, max_records=most, batch_size=size, is_exact=exact)
    read = [one for one in batches if one[1] >= machine.next_offset]
    fetched = Fetched(machine.next_offset, read, aborted)
    return [(one[0], one[1], one[2]) for one in machine.acquire(ask, fetched, 0.0)]


def answer(machine: SharePartition, first: int, last: int, *types: int) -> None:
    machine.acknowledge("m", [AckBatch(first, last, types)], 0.0)


def test_large_ranges_are_divided_at_the_borders_of_batches() -> None:
    machine = partition()
    batches = [(0, 3), (4, 5), (6, 9), (10, 10)]
    assert take(machine, *batches, size=5) == [(0, 5, 1), (6, 10, 1)]
    # Each is a range of its own: released, it comes again as it was.
    answer(machine, 0, 10, 2)
    assert take(machine, *batches, size=1) == [(0, 5, 2), (6, 10, 2)]


def test_a_batch_of_an_aborted_transaction_is_archived_and_left_out() -> None:
    machine = partition()
    batches = [(0, 2), (3, 3), (4, 6), (7, 7), (8, 11)]
    assert take(machine, *batches, aborted=[(4, 6)]) == [(0, 3, 1), (7, 11, 1)]
    with pytest.raises(Refusal, match="not acquired"):
        answer(machine, 4, 4, 1)
    answer(machine, 0, 3, 1)
    assert machine.start == 7


def test_fewer_records_come_at_once_from_half_the_limit_on() -> None:
    machine = partition(limit=6)
    for count in (1, 2, 3):
        assert take(machine, (0, 15)) == [(0, 15, count)]
        answer(machine, 0, 15, 2)
    # Half, a quarter, then one by one.
    assert take(machine, (0, 15)) == [(0, 7, 4)]
    answer(machine, 0, 7, 2)
    assert take(machine, (0, 15)) == [(0, 3, 5)]
    answer(machine, 0, 3, 2)
    assert take(machine, (0, 15)) == [(0, 0, 6)]
    answer(machine, 0, 0, 2)
    assert machine.start == 1
    assert take(machine, (0, 15)) == [(1, 1, 6)]


def test_what_others_hold_does_not_slow_a_delivery_down() -> None:
    machine = partition(limit=2)
    batches = [(0, 0), (1, 1), (2, 2)]
    for batch in batches:
        take(machine, batch, member="a")
    machine.release("a")
    assert take(machine, batches[0], batches[1], member="a") == [(0, 0, 2), (1, 1, 2)]
    # Both have been delivered as often as it is slowed down for.
    assert take(machine, *batches) == [(2, 2, 2)]


def test_the_next_leader_fills_what_was_never_answered() -> None:
    machine = partition()
    take(machine, (0, 9))
    answer(machine, 3, 4, 1)
    answer(machine, 8, 8, 2)
    successor = SharePartition(machine.kept, machine.limits)
    assert successor.next_offset == 0
    # 9 is after all that is known, and read as new.
    assert take(successor, (0, 9)) == [(0, 2, 1), (5, 7, 1), (8, 8, 2), (9, 9, 1)]
    answer(successor, 0, 2, 1)
    assert successor.start == 5


def test_batches_that_were_compacted_away_are_archived() -> None:
    machine = partition()
    assert take(machine, (0, 4), (5, 9)) == [(0, 9, 1)]
    answer(machine, 0, 9, 2)
    ask = Acquire(member="m", max_records=100)
    found = machine.acquire(ask, Fetched(0, [(5, 9)]), 0.0)
    assert [tuple(one) for one in found] == [(5, 9, 2)]
    states = {first: one.state for first, _, one in machine.states()}
    assert states[0] is RecordState.ARCHIVED


def test_what_is_deleted_from_the_log_is_skipped() -> None:
    machine = partition()
    take(machine, (0, 9))
    answer(machine, 0, 3, 2)
    machine.log_starts_at(6)
    assert (machine.start, machine.next_offset) == (6, 10)
    # Below the start nothing is refused; what is held from there on is as before.
    answer(machine, 4, 7, 1)
    machine.release("m")
    assert machine.start == 8
    assert take(machine, (6, 9), (10, 12)) == [(8, 9, 2), (10, 12, 1)]


def test_a_start_within_a_batch() -> None:
    machine = partition(7)
    assert take(machine, (5, 9), exact=True, most=2) == [(7, 8, 1)]
    answer(machine, 7, 8, 1)
    assert take(machine, (5, 9)) == [(9, 9, 1)]


@pytest.mark.parametrize(
    ("first", "last", "code"),
    [
        (3, 12, ErrorCode.INVALID_REQUEST),
        (12, 12, ErrorCode.INVALID_REQUEST),
        (0, 0, ErrorCode.INVALID_RECORD_STATE),
    ],
)
def test_what_was_not_acquired_is_refused(
    first: int, last: int, code: ErrorCode
) -> None:
    machine = partition()
    take(machine, (0, 9))
    answer(machine, 0, 0, 2)
    with pytest.raises(Refusal) as refused:
        answer(machine, first, last, 1)
    assert refused.value.code == code


def test_a_renewal_stands_also_where_the_rest_falls() -> None:
    machine = partition()
    take(machine, (0, 4))
    take(machine, (5, 9), member="other")
    acks = [AckBatch(0, 0, (4,)), AckBatch(1, 1, (1,)), AckBatch(5, 5, (1,))]
    with pytest.raises(Refusal, match="not the owner"):
        machine.acknowledge("m", acks, 5.0)
    deadlines = [one.deadline for _, _, one in machine.locks()]
    assert deadlines == [15.0, 10.0, 10.0, 10.0, 10.0, 10.0]
