import pytest
from hypothesis import given, strategies as st

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing._broker.producers import ProducerBatch, ProducerStates
from kafkaio.testing._broker.refusal import Refusal


def accept(
    states: ProducerStates,
    sequence: int,
    count: int = 1,
    offset: int = 0,
    epoch: int = 0,
) -> None:
    batch = ProducerBatch(1, epoch, sequence, count)
    states.check(batch)
    states.appended(batch, offset, -1)


def refused(states: ProducerStates, batch: ProducerBatch) -> ErrorCode:
    with pytest.raises(Refusal) as caught:
        states.check(batch)
    return caught.value.code


def test_an_unknown_producer_may_begin_anywhere() -> None:
    accept(ProducerStates(), 41)


def test_a_gap_or_an_older_sequence_is_out_of_order() -> None:
    states = ProducerStates()
    accept(states, 0, count=3)
    for sequence in (0, 2, 4):
        batch = ProducerBatch(1, 0, sequence, 9)
        assert refused(states, batch) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    accept(states, 3)


def test_the_last_five_batches_are_recognised() -> None:
    states = ProducerStates()
    for sequence in range(7):
        accept(states, sequence, offset=100 + sequence)
    found = [states.find_duplicate(ProducerBatch(1, 0, s, 1)) for s in range(7)]
    assert found == [None, None, *((100 + s, -1) for s in range(2, 7))]
    assert states.find_duplicate(ProducerBatch(1, 0, 6, 2)) is None
    assert states.find_duplicate(ProducerBatch(1, 1, 6, 1)) is None


def test_a_new_epoch_begins_at_zero_and_fences_the_old() -> None:
    states = ProducerStates()
    accept(states, 0)
    later = ProducerBatch(1, 1, 1, 1)
    assert refused(states, later) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    accept(states, 0, epoch=1)
    older = ProducerBatch(1, 0, 1, 1)
    assert refused(states, older) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_fence_refuses_the_old_epoch() -> None:
    fenced: dict[int, int] = {}
    states = ProducerStates(fenced)
    accept(states, 0)
    assert states.epochs == {1: 0}
    fenced[1] = fenced[2] = 5
    for producer, sequence in ((1, 0), (1, 1), (2, 0)):
        batch = ProducerBatch(producer, 4 * producer - 4, sequence, 1)
        assert states.find_duplicate(batch) is None
        assert refused(states, batch) == ErrorCode.INVALID_PRODUCER_EPOCH
    accept(states, 0, epoch=5)


@given(
    st.lists(st.integers(1, 2**30), min_size=1, max_size=8), st.integers(0, 2**31 - 1)
)
def test_sequences_continue_after_they_wrap(counts: list[int], first: int) -> None:
    states = ProducerStates()
    sequence = first
    for count in counts:
        accept(states, sequence, count)
        sequence = (sequence + count) % 2**31
    wrong = ProducerBatch(1, 0, (sequence + 1) % 2**31, 1)
    assert refused(states, wrong) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_idle_producers_are_forgotten_unless_a_transaction_is_open() -> None:
    states = ProducerStates()
    states.appended(ProducerBatch(1, 0, 0, 1, timestamp=1_000), 0, -1)
    states.appended(ProducerBatch(2, 0, 0, 1, timestamp=1_001), 1, -1)
    open_one = ProducerBatch(3, 0, 0, 1, is_transactional=True, timestamp=1_000)
    states.appended(open_one, 2, -1)
    states.expire(999)
    assert states.epochs == {1: 0, 2: 0, 3: 0}
    states.expire(1_000)
    assert states.epochs == {2: 0, 3: 0}
    assert states.open_transactions == {3: 2}
    states.check(ProducerBatch(1, 0, 7, 1))  # it may begin anywhere again
