"""The accumulator, case by case and by its laws, without a loop or a clock."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import accumulate, chain, groupby, pairwise
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from kafkaio._machines.accumulator import (
    Accumulator,
    Barrier,
    Chooser,
    Limits,
    PlainRecord,
    ProduceBatch,
    Receipt,
)
from kafkaio._machines.accumulator.gate import Gate
from kafkaio._machines.accumulator.queue import PartitionQueue, TopicQueues
from kafkaio._machines.metadata import ClusterView, PartitionView, TopicView
from kafkaio._machines.partitioner import STICKY_BYTES, StickyPartition
from kafkaio._machines.sequence import IdAndEpoch, ProducerIdentity
from kafkaio._records._impl import OpenBatches
from kafkaio._records.batch import BatchBuilder, RecordBatch, read_batches
from kafkaio.errors import (
    AuthenticationError,
    AuthorizationError,
    BrokerError,
    BufferFull,
    DeliveryTimeout,
    RecordTooLarge,
    RequestTimeout,
    TransactionAborted,
    UnknownTopicOrPartition,
)
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.types import Broker, TopicPartition

LIMITS = Limits(
    batch_size=200,
    buffer_memory=10_000,
    max_request_size=1_000,
    linger=1.0,
    delivery_timeout=100.0,
    max_block=50.0,
)

LARGE = replace(LIMITS, max_request_size=1_048_576, buffer_memory=10_000_000)


def view(
    leaders: dict[str, list[int]],
    epoch: int = 0,
    racks: dict[int, str | None] | None = None,
    **errors: int,
) -> ClusterView:
    topics = {
        name: TopicView(
            name,
            partitions={
                index: PartitionView(name, index, leader, epoch)
                for index, leader in enumerate(nodes)
            },
        )
        for name, nodes in leaders.items()
    }
    for name, code in errors.items():
        topics[name] = TopicView(name, error=ErrorCode(code))
    brokers = {n: Broker(n, "h", 1, rack) for n, rack in (racks or {}).items()}
    return ClusterView(brokers=brokers, by_name=topics, number=1)


def record(value: bytes | None = b"v", key: bytes | None = None) -> PlainRecord:
    return 1, key, value, ()


def append(
    acc: Accumulator, topic: str, partition: int | None, taken: PlainRecord, now: float
) -> Receipt:
    """Reserve the bytes of a record and take it in; raise BufferFull without them."""
    size = acc.budget.size_of(taken)
    if not acc.budget.reserve(size):
        raise BufferFull(f"{acc.budget.used} bytes are used, and {size} are needed")
    return acc.placement.append_reserved(topic, partition, taken, now, size)


class Harness:
    """An accumulator whose dice and time the test holds."""

    def __init__(
        self,
        leaders: dict[str, list[int]] | None = None,
        limits: Limits = LIMITS,
        *,
        is_idempotent: bool = False,
        racks: dict[int, str | None] | None = None,
        **chooser: Any,
    ) -> None:
        self.rolls: Iterator[float] = iter([])
        self.identity = ProducerIdentity() if is_idempotent else None
        self.lost: list[tuple[Receipt, int]] = []
        self.acc = Accumulator(
            limits,
            Chooser(lambda: next(self.rolls, 0.0), **chooser),
            self.identity,
            lambda size: BatchBuilder(target_size=size),
            OpenBatches(lambda: 0, min(limits.max_request_size, limits.buffer_memory)),
            partial(
                Receipt,
                on_lost=lambda receipt, count: self.lost.append((receipt, count)),
            ),
        )
        self.acc.placement.learn(view(leaders or {"t": [0, 0, 1]}, racks=racks))
        if self.identity is not None:
            self.identity.obtained(IdAndEpoch(1, 0))

    def put(
        self,
        partition: int | None = 0,
        value: bytes | None = b"v",
        *,
        topic: str = "t",
        now: float = 0.0,
        key: bytes | None = None,
    ) -> Receipt:
        return append(self.acc, topic, partition, record(value, key), now)

    def take(self, node: int = 0, now: float = 0.0) -> ProduceBatch:
        (batch,) = self.acc.outbox.drain(node, now)
        return batch

    def answer(self, now: float, node: int = 0) -> None:
        state = self.acc.availability.node(node)
        state.answered(now, state.latest)

    def used(self) -> int:
        return self.acc.statistics().used_bytes


def values(batch: ProduceBatch) -> list[bytes | None]:
    return [value for _, _, value, _ in batch.builder.records()]


# ---- taking in -----------------------------------------------------------------------


def test_records_gather_in_one_batch_per_partition() -> None:
    h = Harness()
    first, second, other = h.put(0), h.put(0), h.put(1)
    assert first is second
    assert first is not other
    assert first.count == 2
    batches = h.acc.outbox.drain(0, 0.0)
    assert [b.partition.partition for b in batches] == [0, 1]
    (encoded,) = read_batches(batches[0].encode())
    assert isinstance(encoded, RecordBatch)
    assert (encoded.producer_id, encoded.base_sequence) == (-1, -1)
    assert [b.receipt for b in batches] == [first, other]
    assert "t-0 on the wire | 2 records" in repr(batches[0])


def test_a_full_batch_is_followed_by_another() -> None:
    h = Harness()
    receipts = [h.put(0, b"x" * 100) for _ in range(4)]
    assert len(set(map(id, receipts))) == 4
    assert h.acc.statistics().waiting_batches == 4
    assert "waiting" in repr(h.acc.backlog.active["t", 0].waiting[0])  # type: ignore[index]


def test_a_record_that_cannot_fit_is_refused() -> None:
    h = Harness()
    with pytest.raises(RecordTooLarge, match="max_request_size=1000"):
        h.put(0, b"x" * 1_000)
    assert h.used() == 0


def test_a_full_buffer_refuses() -> None:
    h = Harness(limits=replace(LIMITS, buffer_memory=500))
    h.put(0, b"x" * 300)
    with pytest.raises(BufferFull):
        h.put(0, b"x" * 300)
    assert not h.acc.budget.reserve(500)
    assert h.acc.budget.reserve(10)
    h.acc.budget.release(10)


def test_news_are_told_when_a_batch_begins_not_when_it_grows() -> None:
    h = Harness()
    h.acc.backlog.has_news = False
    h.put(0)
    assert h.acc.backlog.has_news
    assert h.acc.budget.open_batches.taken == h.used() > 0
    h.acc.backlog.has_news = False
    h.put(0)
    assert not h.acc.backlog.has_news


def test_keyless_records_stick_and_then_move_on() -> None:
    h = Harness({"t": [0, 0, 0]}, limits=replace(LIMITS, batch_size=300))
    h.rolls = iter([0.4, 0.99, 0.0])
    partitions = [h.put(None, b"x" * 100).partition for _ in range(12)]
    assert partitions[0] == 1
    assert partitions[-1] != 1
    changes = sum(a != b for a, b in pairwise(partitions))
    assert changes == 2


def test_keyless_records_leave_a_partition_before_a_large_batch_is_full() -> None:
    limits = replace(LARGE, batch_size=1_000_000)
    h = Harness({"t": [0, 0]}, limits)
    h.rolls = iter(number % 2 / 2 for number in range(100))
    runs: list[list[int]] = []
    for number in range(600):
        partition = h.put(None, b"x" * 1_000, now=number / 10_000).partition
        if not runs or runs[-1][0] != partition:
            runs.append([partition, 0])
        runs[-1][1] += 1
    assert {size for _, size in runs[:-1]} == {-(-2 * STICKY_BYTES // 1_011)}
    assert h.acc.statistics().waiting_batches == 2
    # One that comes seldom, and leaves at once, moves on after half of that.
    h = Harness({"t": [0, 0]}, limits)
    h.rolls = iter([0.0, 0.5])
    alone = []
    while (receipt := h.put(None, b"x" * 1_000)).partition == 0:
        alone.append(receipt)
        h.acc.completion.acknowledged(h.take(), 0, -1)
    assert STICKY_BYTES // 1_100 < len(alone) <= STICKY_BYTES // 1_000


def test_keyless_records_that_come_fast_fill_a_batch_before_they_move_on() -> None:
    h = Harness({"t": [0, 0]}, replace(LARGE, batch_size=1_000_000))
    h.rolls = iter(number % 2 / 2 for number in range(100))
    partitions = [h.put(None, b"x" * 1_000).partition for _ in range(6_000)]
    runs = [len(list(run)) for _, run in groupby(partitions)]
    assert runs[0] == -(-2 * STICKY_BYTES // 1_011)
    assert runs[1:3] == [2 * runs[0], 4 * runs[0]]
    assert set(runs[4:-1]) <= {990, 991}  # whole batches


def test_requests_to_a_distant_broker_follow_at_intervals() -> None:
    limits = replace(
        LARGE, batch_size=1_000_000, buffer_memory=40_000_000, may_grow=True
    )
    h = Harness({"t": [0] * 7}, limits)
    h.put(0)
    h.acc.completion.acknowledged(h.take(), 0, -1)
    state = h.acc.availability.node(0)
    state.met(0.05)
    h.answer(0.05)
    assert state.request_size == 5_000_000
    h.put(0, b"x" * 900_000)
    # Nothing is in flight: there is no reason to wait. A second one does not, either.
    assert h.acc.outbox.outlook(0.06).nodes == (0,)
    h.take(now=0.06)
    h.put(6, b"x" * 900_000)
    h.put(6, b"x" * 900_000)
    assert h.acc.outbox.outlook(0.06).nodes == (0,)
    h.take(now=0.06)
    h.put(1, b"x" * 900_000)
    h.put(1, b"x" * 900_000)
    outlook = h.acc.outbox.outlook(0.065)
    assert outlook.nodes == ()
    assert outlook.wake_at == pytest.approx(0.07)
    assert h.acc.outbox.outlook(0.0701).nodes == (0,)
    # A request that is full does not wait.
    for partition in range(2, 6):
        assert h.acc.outbox.outlook(0.066).nodes == ()
        h.put(partition, b"x" * 900_000)
    assert h.acc.outbox.outlook(0.066).nodes == (0,)
    assert len(h.acc.outbox.drain(0, 0.066)) == 5


def test_requests_to_a_near_broker_do_not_wait_for_each_other() -> None:
    h = Harness({"t": [0] * 6}, replace(LARGE, batch_size=1_000_000, may_grow=True))
    h.acc.availability.node(0).met(0.001)
    h.put(0, b"x" * 900_000)
    h.take()
    h.put(1, b"x" * 900_000)
    h.put(1, b"x" * 900_000)
    assert h.acc.outbox.outlook(0.0).nodes == (0,)


def test_a_long_queue_is_one_of_many_bytes() -> None:
    limits = replace(LARGE, batch_size=1_000_000)
    h = Harness({"t": [0, 0]}, limits)
    for _ in range(3 * STICKY_BYTES // 1_000):  # in one batch
        h.put(0, b"x" * 1_000)
    h.put(1)
    assert h.acc.statistics().waiting_batches == 2
    h.rolls = iter([0.3])  # of weights 1 : 4
    assert h.put(None).partition == 1


def test_longer_queues_get_less_once_all_have_one() -> None:
    h = Harness({"t": [0, 0]}, limits=replace(LIMITS, batch_size=100))
    for _ in range(3):
        h.put(0, b"x" * 60)
    h.put(1, b"x" * 60)
    h.rolls = iter([0.3])  # of weights 1 : 3
    assert h.put(None).partition == 1
    h = Harness({"t": [0, 0]}, limits=replace(LIMITS, batch_size=100), adaptive=False)
    for _ in range(3):
        h.put(0, b"x" * 60)
    h.put(1, b"x" * 60)
    h.rolls = iter([0.3])
    assert h.put(None).partition == 0


def test_keyless_records_avoid_partitions_without_a_leader() -> None:
    h = Harness({"t": [-1, 0]})
    assert h.put(None).partition == 1
    h = Harness({"t": [-1, -1]})
    assert h.put(None).partition == 0


def test_keyless_records_avoid_leaders_that_take_nothing() -> None:
    limits = replace(LIMITS, availability_timeout=2.0)
    h = Harness({"t": [0, 1]}, limits)
    h.put(0, now=0.0)
    assert h.acc.outbox.outlook(0.0).nodes == (0,)
    assert h.acc.outbox.outlook(1.0).nodes == (0,)
    assert h.put(None, now=3.0).partition == 1
    # With nobody else left, a slow leader is better than none.
    h = Harness({"t": [0]}, limits)
    h.put(0, now=0.0)
    h.acc.outbox.outlook(0.0)
    assert h.put(None, now=3.0).partition == 0


def test_keys_can_be_ignored() -> None:
    h = Harness({"t": [0, 0, 0]}, ignore_keys=True)
    assert h.put(None, key=b"21").partition == 0
    h = Harness({"t": [0, 0, 0]})
    assert h.put(None, key=b"21").partition == (-973932308 & 0x7FFFFFFF) % 3


def test_a_custom_partitioner() -> None:
    h = Harness(custom=lambda topic, key, value, count: count - 1)
    assert h.put(None).partition == 2
    h = Harness(custom=lambda *_: -1)
    with pytest.raises(ValueError, match="returned -1"):
        h.put(None)
    assert h.used() == 0


# ---- metadata ------------------------------------------------------------------------


def test_records_wait_for_metadata_in_order() -> None:
    h = Harness()
    receipts = [h.put(None, b"%d" % i, topic="new") for i in range(3)]
    assert h.acc.backlog.unknown_topics() == ["new"]
    assert h.acc.backlog.has_new_topic
    assert h.acc.statistics().undesignated_records == 3
    assert h.acc.outbox.outlook(0.0).nodes == ()
    h.acc.placement.learn(view({"new": [0]}))
    assert h.acc.backlog.unknown_topics() == []
    batch = h.take()
    assert values(batch) == [b"0", b"1", b"2"]
    assert [r.moved for r in receipts] == [[(batch.receipt, i)] for i in range(3)]


def test_a_missing_partition_waits_without_holding_up_others() -> None:
    h = Harness()
    missing = h.put(5)
    assert h.put(0).partition == 0
    h.acc.placement.learn(view({"t": [0, 0, 1]}))
    assert not missing.is_settled
    h.acc.placement.learn(view({"t": [0] * 6}))
    assert missing.moved is not None
    assert missing.moved[0][0].partition == 5


def test_a_record_that_waited_keeps_its_age_in_a_younger_batch() -> None:
    h = Harness()
    h.put(5, now=0.0)
    h.acc.placement.learn(view({"t": [0] * 6}))
    h.put(5, now=9.0)
    assert h.take().created == 0.0


def test_a_partitioner_that_fails_later_fails_that_record() -> None:
    def odd(topic: str, key: Any, value: Any, count: int) -> int:
        return 9 if value == b"bad" else 0

    h = Harness(custom=odd)
    bad, good = h.put(None, b"bad", topic="new"), h.put(None, topic="new")
    h.acc.placement.learn(view({"new": [0]}))
    assert isinstance(bad.error, ValueError)
    assert good.moved is not None


def test_topics_that_cannot_be_written_fail_at_once_others_wait() -> None:
    h = Harness()
    no, later = h.put(topic="no"), h.put(topic="later")
    gone, silent = h.put(topic="gone"), h.put(topic="silent")
    codes = {
        "no": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        "later": ErrorCode.LEADER_NOT_AVAILABLE,
        "gone": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    h.acc.placement.learn(view({}, **codes))
    assert isinstance(no.error, AuthorizationError)
    assert not later.is_settled
    assert h.acc.expire(49.0) == []
    assert h.acc.outbox.outlook(49.0).wake_at == 50.0
    assert set(h.acc.expire(50.0)) == {later, gone, silent}
    # Each says what the brokers said, if they said anything.
    assert isinstance(later.error, BrokerError)
    assert later.error.code == ErrorCode.LEADER_NOT_AVAILABLE
    assert "'later' cannot be written, also after 50 s (max_blo" in str(later.error)
    assert isinstance(gone.error, UnknownTopicOrPartition)
    assert "'gone' is not known to the cluster" in str(gone.error)
    assert isinstance(silent.error, RequestTimeout)
    assert "no broker described topic 'silent' within 50 s" in str(silent.error)
    missing = h.put(3, topic="t", now=50.0)
    h.acc.placement.learn(view({"t": [0]}))
    h.acc.expire(100.0)
    assert "'t' has no partition 3, only 0 to 0" in str(missing.error)
    assert h.used() == 0


def test_topics_in_use() -> None:
    h = Harness()
    h.put(0, topic="t", now=1.0)
    h.put(0, topic="new", now=1.0)
    assert h.acc.backlog.topics_in_use(5.0) == {"t", "new"}
    h.acc.completion.acknowledged(h.take(), 0, -1)
    assert h.acc.backlog.topics_in_use(5.0) == {"new"}
    assert h.acc.backlog.topics_in_use(0.5) == {"t", "new"}


def test_a_partition_that_the_metadata_leaves_out_has_no_leader() -> None:
    h = Harness()
    known = view({"t": [0, 0, 0]})
    partitions = dict(known.by_name["t"].partitions)
    del partitions[1]
    partitions[3] = replace(partitions[2], partition=3)
    h.acc.placement.learn(
        ClusterView(by_name={"t": TopicView("t", partitions=partitions)})
    )
    h.put(1)
    assert h.acc.outbox.outlook(0.0).is_leaderless


def test_a_topic_that_vanishes_has_no_leaders() -> None:
    h = Harness()
    h.put(0)
    h.acc.placement.learn(view({}))
    assert h.acc.outbox.outlook(0.0).is_leaderless
    assert h.acc.outbox.outlook(0.0).nodes == ()


# ---- when to send --------------------------------------------------------------------


def test_a_batch_leaves_at_once_while_nothing_is_in_flight() -> None:
    h = Harness()
    h.put(0)
    assert h.acc.outbox.outlook(0.0).nodes == (0,)


def test_a_batch_lingers_while_something_is_in_flight() -> None:
    h = Harness()
    h.put(0)
    first = h.take()
    h.put(1, now=2.0)
    outlook = h.acc.outbox.outlook(2.5)
    assert (outlook.nodes, outlook.wake_at) == ((), 3.0)
    assert h.acc.outbox.outlook(3.0).nodes == (0,)
    h.acc.outbox.is_urgent = True
    assert h.acc.outbox.outlook(2.5).nodes == (0,)
    h.acc.outbox.is_urgent = False
    h.acc.completion.acknowledged(first, 0, -1)
    h.answer(0.0)
    assert h.acc.outbox.outlook(2.5).nodes == (0,)


def test_a_full_batch_never_lingers() -> None:
    h = Harness()
    h.put(0)
    h.take()
    for _ in range(3):
        h.put(1, b"x" * 150, now=2.0)
    assert h.acc.outbox.outlook(2.0).nodes == (0,)


def test_a_node_takes_only_so_many_requests() -> None:
    h = Harness(limits=replace(LIMITS, max_in_flight=1))
    h.put(0)
    h.take()
    h.put(1, b"x" * 150)
    h.put(1, b"x" * 150)
    assert h.acc.outbox.outlook(0.0).nodes == ()
    h.answer(0.0)
    assert h.acc.outbox.outlook(0.0).nodes == (0,)


def test_records_without_a_key_are_leased_up_to_the_end_of_the_buffer() -> None:
    limits = replace(LARGE, batch_size=1_000_000, buffer_memory=4_000_000)
    h = Harness({"t": [0] * 4}, limits=limits)
    for partition in range(4):
        h.put(partition)  # a lease for each
    size = 0
    through = 0
    while True:
        if h.acc.budget.open_batches.take("t", bytes(1_000), None, (), None, None):
            size += 1_000
            continue
        try:
            h.put(None, bytes(1_000))
        except BufferFull:
            break
        through += 1
    assert size > 3_900_000 - through * 1_000
    assert h.acc.budget.used <= limits.buffer_memory
    # One for each share of a partition and for each batch, and a few at the very end.
    assert through < 120


def test_partitions_take_turns_when_a_request_is_full() -> None:
    h = Harness({"t": [0] * 4}, limits=replace(LIMITS, max_request_size=400))
    for partition in range(4):
        for _ in range(2):
            h.put(partition, b"x" * 100)
    order = []
    while batches := h.acc.outbox.drain(0, 0.0):
        assert len(batches) <= 2
        order.append([b.partition.partition for b in batches])
        for batch in batches:
            h.acc.completion.acknowledged(batch, 0, -1)
    assert order[:2] == [[0, 1], [2, 3]]
    assert sum(map(len, order)) == 8


def test_partitions_take_turns_while_others_are_on_the_wire() -> None:
    h = Harness({"t": [0] * 6}, limits=replace(LIMITS, max_request_size=400))
    for partition in range(6):
        h.put(partition, b"x" * 100)
    order = [
        [b.partition.partition for b in h.acc.outbox.drain(0, 0.0)] for _ in range(3)
    ]
    assert order == [[0, 1], [2, 3], [4, 5]]  # none is passed over


def test_the_first_batch_goes_whatever_its_size() -> None:
    h = Harness(limits=replace(LIMITS, max_request_size=200, batch_size=900))
    for _ in range(5):
        h.put(0, b"x" * 80)
    assert h.take().count == 5


def test_without_numbers_one_batch_of_a_partition_at_a_time() -> None:
    h = Harness()
    h.put(0, b"x" * 150)
    h.put(0, b"x" * 150)
    h.take()
    assert h.acc.outbox.drain(0, 0.0) == []
    assert h.acc.outbox.outlook(0.0).nodes == ()


def test_with_numbers_several() -> None:
    h = Harness(is_idempotent=True)
    for i in range(4):
        h.put(0, b"%d" % i * 150)
    first = h.take()
    assert h.acc.outbox.drain(0, 0.0) == []
    h.acc.completion.acknowledged(first, 0, -1)
    batches = [h.take() for _ in range(3)]
    assert [b.base_sequence for b in batches] == [1, 2, 3]
    (encoded,) = read_batches(batches[0].encode())
    assert isinstance(encoded, RecordBatch)
    assert (encoded.producer_id, encoded.producer_epoch) == (1, 0)
    assert encoded.base_sequence == 1


class Told:
    """Somebody who waits for a receipt."""

    def __init__(self, called: list[int], number: int) -> None:
        self.called, self.number = called, number

    def done(self) -> bool:
        return False

    def set_result(self, result: None, /) -> None:
        self.called.append(self.number)


# ---- what became of it ---------------------------------------------------------------


@pytest.mark.parametrize("is_idempotent", [False, True])
def test_acknowledged(is_idempotent: bool) -> None:
    h = Harness(is_idempotent=is_idempotent)
    receipt = h.put(0)
    called: list[int] = []
    forgotten = Told(called, 2)
    receipt.when_settled(Told(called, 1))
    receipt.when_settled(forgotten)
    receipt.forget(forgotten)
    h.acc.completion.acknowledged(h.take(), 17, 99)
    receipt.forget(forgotten)
    assert receipt.is_settled
    assert (receipt.base_offset, receipt.log_append_time) == (17, 99)
    assert called == [1]
    assert h.used() == 0
    assert h.acc.backlog.is_empty


@pytest.mark.parametrize("is_idempotent", [False, True])
@pytest.mark.parametrize("how", ["refused", "lost", "out_of_order", "forgotten"])
def test_sent_again(is_idempotent: bool, how: str) -> None:
    h = Harness(is_idempotent=is_idempotent)
    h.put(0)
    batch = h.take()
    cause = ValueError("no")
    h.answer(0.0)
    getattr(h.acc.completion, how)(batch, cause, 5.0)
    assert batch.cause is cause
    assert h.acc.outbox.outlook(4.0).wake_at == 5.0
    assert h.acc.outbox.drain(0, 4.0) == []
    assert h.acc.outbox.outlook(5.0).nodes == (0,)
    assert h.take(now=5.0) is batch
    assert batch.attempts == 2
    assert not batch.receipt.is_settled


def test_what_goes_again_stands_before_what_is_on_the_wire_already() -> None:
    h = Harness(is_idempotent=True)
    h.put(0, b"0" * 150)
    h.acc.completion.acknowledged(h.take(), 0, -1)
    for i in range(1, 3):
        h.put(0, b"%d" % i * 150)
    one, two = h.take(), h.take()
    h.acc.completion.refused(one, ValueError(), 0.0)
    assert h.take() is one
    h.acc.completion.acknowledged(two, 2, -1)
    h.acc.completion.refused(one, ValueError(), 0.0)
    assert h.take() is one
    assert h.acc.expire(1_000.0) == [one.receipt]


def test_retries_go_in_their_order_before_new_ones() -> None:
    h = Harness(is_idempotent=True)
    h.put(0, b"0" * 150)
    h.acc.completion.acknowledged(h.take(), 0, -1)
    for i in range(1, 4):
        h.put(0, b"%d" % i * 150)
    one, two = h.take(), h.take()
    h.acc.completion.refused(two, ValueError(), 0.0)
    h.acc.completion.refused(one, ValueError(), 0.0)
    assert h.take() is one
    assert h.acc.outbox.drain(0, 0.0) == []
    h.acc.completion.acknowledged(one, 1, -1)
    assert h.take() is two


def test_a_new_leader_makes_waiting_needless() -> None:
    h = Harness()
    h.put(0)
    batch = h.take()
    h.acc.completion.refused(batch, ValueError(), 50.0)
    h.acc.placement.learn(view({"t": [0, 0, 1]}))  # the same leader in the same epoch
    assert h.acc.outbox.outlook(1.0).nodes == ()
    h.acc.placement.learn(view({"t": [-1, 0, 1]}, epoch=1))
    assert h.acc.outbox.outlook(1.0).is_leaderless
    h.acc.placement.learn(view({"t": [1, 0, 1]}, epoch=2))
    assert h.acc.outbox.outlook(1.0).nodes == (1,)
    # Known before the answer came: likewise.
    batch = h.take(1)
    h.acc.placement.learn(view({"t": [0, 0, 1]}, epoch=3))
    h.acc.completion.refused(batch, ValueError(), 50.0)
    assert h.acc.outbox.outlook(1.0).nodes == (0,)


@pytest.mark.parametrize("is_idempotent", [False, True])
def test_failed(is_idempotent: bool) -> None:
    h = Harness(is_idempotent=is_idempotent)
    receipt = h.put(0)
    error = ValueError("no")
    h.acc.completion.failed(h.take(), error)
    assert receipt.error is error
    assert h.used() == 0
    del receipt
    ((lost, count),) = h.lost
    assert (lost.error, count) == (error, 1)


def test_an_error_that_was_seen_is_not_lost() -> None:
    h = Harness()
    receipt = h.put(0)
    h.put(0)
    h.acc.completion.failed(h.take(), ValueError())
    receipt.see(0)
    receipt.see(0)
    receipt.see(1)
    del receipt
    assert h.lost == []
    Receipt("t", 0, count=1).fail(ValueError())  # nobody listens


@pytest.mark.parametrize("is_idempotent", [False, True])
def test_a_batch_that_is_too_large_is_split(is_idempotent: bool) -> None:
    h = Harness(is_idempotent=is_idempotent, limits=replace(LIMITS, batch_size=900))
    receipt = h.put(0, b"0" * 10)
    for i in range(1, 9):
        h.put(0, b"%d" % i * 90)
    before = h.used()
    batch = h.take()
    h.acc.completion.split(batch, ValueError("large"))
    assert h.used() <= before
    parts = []
    while batches := h.acc.outbox.drain(0, 0.0):
        parts += batches
        h.acc.completion.acknowledged(batches[0], 100, -1)
    assert len(parts) > 1
    assert [p.attempts for p in parts] == [1] * len(parts)
    assert list(chain.from_iterable(map(values, parts))) == values(batch)
    if is_idempotent:
        ends = accumulate((p.count for p in parts), initial=0)
        assert [p.base_sequence for p in parts] == list(ends)[:-1]
    assert receipt.moved is not None
    assert [(r.partition, i) for r, i in receipt.moved] == [
        (0, i) for p in parts for i in range(p.count)
    ]
    assert h.used() == 0


@pytest.mark.parametrize("is_idempotent", [False, True])
def test_bad_records_fail_alone(is_idempotent: bool) -> None:
    h = Harness(is_idempotent=is_idempotent)
    receipt = h.put(0, b"0")
    for i in range(1, 4):
        h.put(0, b"%d" % i)
    batch = h.take()
    bad: dict[int, Exception] = {1: ValueError("one"), 3: ValueError("three")}
    h.acc.completion.fail_records(batch, bad, ValueError("batch"))
    again = h.take()
    assert values(again) == [b"0", b"2"]
    if is_idempotent:
        assert again.identity == IdAndEpoch(1, 1)
    h.acc.completion.acknowledged(again, 5, -1)
    assert receipt.moved is not None
    fates = [(r.error or r.base_offset + i) for r, i in receipt.moved]
    assert fates == [5, bad[1], 6, bad[3]]
    assert h.used() == 0


def test_a_batch_of_bad_records_only_is_gone() -> None:
    h = Harness(is_idempotent=True)
    receipt = h.put(0)
    h.acc.completion.fail_records(h.take(), {0: ValueError()}, ValueError())
    assert receipt.moved is not None
    assert receipt.moved[0][0].error is not None
    assert h.acc.backlog.is_empty
    h.put(0)
    assert h.take().identity == IdAndEpoch(1, 1)


# ---- time ----------------------------------------------------------------------------


@pytest.mark.parametrize("is_idempotent", [False, True])
def test_what_waits_too_long_fails(is_idempotent: bool) -> None:
    h = Harness(is_idempotent=is_idempotent)
    receipt = h.put(0, now=1.0)
    h.acc.outbox.note_cause(0, OSError("dead"))
    h.acc.outbox.note_cause(1, OSError("not this one"))
    assert h.acc.expire(100.9) == []
    assert h.acc.outbox.outlook(100.9).wake_at == 101.0
    assert h.acc.expire(101.0) == [receipt]
    assert isinstance(receipt.error, DeliveryTimeout)
    assert "never sent; last cause: dead" in str(receipt.error)
    assert isinstance(receipt.error.__cause__, OSError)
    assert h.used() == 0


@pytest.mark.parametrize("is_idempotent", [False, True])
def test_what_waits_to_be_sent_again_too_long_fails(is_idempotent: bool) -> None:
    h = Harness(is_idempotent=is_idempotent)
    receipt = h.put(0)
    h.acc.completion.lost(h.take(), ValueError("cut"), 0.0)
    h.acc.outbox.note_cause(None, ValueError("all dead"))
    assert h.acc.expire(100.0) == [receipt]
    assert "sent 1 times; last cause: all dead" in str(receipt.error)
    assert h.used() == 0


@pytest.mark.parametrize("is_idempotent", [False, True])
@pytest.mark.parametrize("end", ["acknowledged", "failed", "lost", "split"])
def test_what_expires_on_the_wire_counts_until_its_attempt_ends(
    is_idempotent: bool, end: str
) -> None:
    h = Harness(is_idempotent=is_idempotent)
    receipt = h.put(0)
    batch = h.take()
    assert h.acc.expire(1.0) == []
    assert h.acc.outbox.outlook(1.0).wake_at == 100.0
    assert h.acc.expire(100.0) == [receipt]
    assert h.acc.expire(101.0) == []
    assert h.acc.outbox.outlook(101.0).wake_at == float("inf")
    assert "without an answer yet" in str(receipt.error)
    assert h.used() > 0
    if end == "acknowledged":
        h.acc.completion.acknowledged(batch, 0, -1)
    elif end == "failed":
        h.acc.completion.failed(batch, ValueError())
    elif end == "lost":
        h.acc.completion.lost(batch, ValueError(), 0.0)
    else:
        h.acc.completion.split(batch, ValueError())
    assert isinstance(receipt.error, DeliveryTimeout)
    assert h.used() == 0
    assert h.acc.backlog.is_empty


def test_sealing_lets_everything_leave() -> None:
    h = Harness()
    one = h.put(0)
    h.take()
    two, three = h.put(1), h.put(topic="new")
    expired = h.put(2, now=-200.0)
    (gone,) = h.acc.outbox.drain(1, 0.0)
    h.acc.expire(0.0)
    assert gone.receipt is expired
    assert h.acc.outbox.outlook(0.0).nodes == ()
    assert {id(r) for r in h.acc.seal()} == {id(one), id(two), id(three)}
    assert h.acc.outbox.outlook(0.0).nodes == (0,)
    assert h.put(1) is not two


def test_failing_all() -> None:
    h = Harness(is_idempotent=True)
    h.put(0)
    on_wire = h.take()
    expired = h.put(2, now=-200.0)
    h.acc.outbox.drain(1, 0.0)
    h.acc.expire(0.0)
    waiting, unknown = h.put(1), h.put(topic="new")
    seen: list[ProduceBatch | None] = []

    def error(batch: ProduceBatch | None) -> Exception:
        seen.append(batch)
        return ValueError("the end")

    failed = h.acc.fail_all(error)
    assert {id(r) for r in failed} == {
        id(on_wire.receipt),
        id(waiting),
        id(unknown),
    }
    assert all(isinstance(r.error, ValueError) for r in failed)
    assert isinstance(expired.error, DeliveryTimeout)
    assert None in seen
    assert h.acc.statistics().waiting_batches == 0
    h.acc.completion.failed(on_wire, ValueError())
    assert not h.acc.backlog.is_empty  # the expired one is still on the wire


# ---- growing -------------------------------------------------------------------------


@pytest.mark.parametrize("is_idempotent", [False, True])
def test_a_batch_grows_while_all_requests_are_out(is_idempotent: bool) -> None:
    limits = replace(LIMITS, batch_size=900, max_in_flight=2, linger=0.0)
    h = Harness({"t": [0]}, limits, is_idempotent=is_idempotent)
    h.put(0)
    h.acc.completion.acknowledged(
        h.take(), 0, -1
    )  # from now on several may be under way
    h.answer(0.0)
    h.put(0)
    on_wire = [h.take()]
    if is_idempotent:
        h.put(0)
        on_wire.append(h.take())
    sent = [batch.encode() for batch in on_wire]
    receipts = [h.put(0, b"x" * 40) for _ in range(10)]
    assert not is_idempotent or h.acc.outbox.outlook(0.0).nodes == ()
    assert len({id(receipt) for receipt in receipts}) == 1
    assert h.acc.statistics().waiting_batches == 1
    h.acc.completion.acknowledged(on_wire[0], 1, -1)
    h.answer(0.0)
    assert h.acc.outbox.outlook(0.0).nodes == (0,)
    assert h.take().count == 10
    assert [batch.encode() for batch in on_wire] == sent


def test_a_batch_takes_records_for_a_tenth_of_their_time() -> None:
    h = Harness({"t": [-1]})
    first = h.put(0, now=0.0)
    assert h.put(0, now=9.9) is first
    assert h.acc.expire(9.9) == []
    assert h.acc.outbox.outlook(9.9).wake_at == 10.0
    assert h.acc.expire(10.0) == []
    assert take_directly(h) is None
    last = h.put(0, now=10.0)
    assert last is not first
    assert h.acc.expire(100.0) == [first]
    assert last.error is None
    # Not less than it lingers.
    h = Harness({"t": [-1]}, replace(LIMITS, linger=40.0))
    first = h.put(0, now=0.0)
    h.acc.expire(30.0)
    assert h.put(0, now=30.0) is first


def test_after_a_refusal_for_their_size_batches_are_smaller() -> None:
    h = Harness({"t": [0], "u": [0]}, replace(LIMITS, batch_size=900))
    for _ in range(8):
        h.put(0, b"x" * 80)
    batch = h.take()
    size = batch.builder.size_bytes
    h.acc.completion.split(batch, ValueError("large"))
    largest = {"t": 0, "u": 0}
    for topic in largest:
        for _ in range(20):
            h.put(0, b"x" * 80, topic=topic)
        queue = h.acc.backlog.topics[topic].queues[0]
        largest[topic] = max(b.builder.size_bytes for b in queue.waiting)
    assert largest["t"] <= size // 2
    assert largest["u"] > 800


@settings(max_examples=100)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["put"] * 6 + ["send", "ack"]), st.integers(0, 3)),
        max_size=200,
    ),
    size=st.integers(300, 4_000),
)
def test_growing_keeps_to_its_limits(steps: list[tuple[str, int]], size: int) -> None:
    limits = replace(LIMITS, batch_size=size, buffer_memory=20_000, max_in_flight=3)
    h = Harness({"t": [0] * 4}, limits, is_idempotent=True)
    on_wire: deque[tuple[ProduceBatch, bytes]] = deque()
    for step, number in steps:
        if step == "put":
            # What an open batch takes is charged already.
            if (
                h.acc.budget.open_batches.take("t", b"x" * 90, None, (), 1, number)
                is None
            ):
                with contextlib.suppress(BufferFull):
                    h.put(number, b"x" * 90)
        elif step == "send" and len(on_wire) < 3 * 4:
            on_wire += [(b, b.encode()) for b in h.acc.outbox.drain(0, 0.0)]
        elif on_wire:
            batch, sent = on_wire.popleft()
            assert batch.encode() == sent
            h.acc.completion.acknowledged(batch, 0, -1)
        queues = h.acc.backlog.topics["t"].queues if "t" in h.acc.backlog.topics else {}
        batches = [batch for queue in queues.values() for batch in queue.waiting]
        batches += [batch for batch, _ in on_wire]
        sizes = [batch.builder.size_bytes for batch in batches]
        assert all(each <= size for each in sizes)
        assert h.used() == sum(sizes)
        assert (
            h.used() <= h.acc.budget.used == sum(b.charged for b in batches) <= 20_000
        )


# ---- laws ----------------------------------------------------------------------------

STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["put"] * 4
            + ["drain", "ack", "refuse", "lose", "fail", "split", "bad"]
            + ["expire", "move", "seal"]
        ),
        st.integers(0, 7),
    ),
    max_size=80,
)


@pytest.mark.parametrize("is_idempotent", [False, True])
@settings(max_examples=60)
@given(steps=STEPS)
def test_order_bytes_and_memory(
    is_idempotent: bool, steps: list[tuple[str, int]]
) -> None:
    limits = replace(LIMITS, buffer_memory=1_500, batch_size=150, delivery_timeout=30)
    h = Harness({"t": [0, 1]}, limits, is_idempotent=is_idempotent)
    world = World(h)
    for step, number in steps:
        world.now += 1
        getattr(world, step)(number)
        assert h.used() <= limits.buffer_memory
        world.check()
    world.finish()


class World:
    """Does to an accumulator whatever may happen, and keeps the books."""

    def __init__(self, harness: Harness) -> None:
        self.h = harness
        self.now = 0.0
        self.epoch = 0
        self.number = 0
        self.wire: list[ProduceBatch] = []
        # Values in the order in which they were acknowledged.
        self.written: dict[int, deque[int]] = {0: deque(), 1: deque()}
        self.accepted: list[tuple[int, Receipt, int]] = []
        self.settled: dict[int, int] = {}

    def put(self, number: int) -> None:
        value = b"%08d" % self.number + b"x" * (number * 9)
        try:
            receipt = self.h.put(number % 2, value, now=self.now)
        except BufferFull:
            return
        self.accepted.append((self.number, receipt, receipt.count - 1))
        self.number += 1

    def drain(self, number: int) -> None:
        self.wire += self.h.acc.outbox.drain(number % 2, self.now)

    def completion(self, number: int) -> ProduceBatch | None:
        return self.wire.pop(number % len(self.wire)) if self.wire else None

    def ack(self, number: int) -> None:
        batch = self.completion(number)
        if batch is not None:
            self.h.acc.completion.acknowledged(batch, 0, -1)
            if not batch.is_expired:
                log = self.written[batch.partition.partition]
                log.extend(int(value[:8]) for value in values(batch) if value)

    def refuse(self, number: int) -> None:
        self.again(number, self.h.acc.completion.refused)

    def lose(self, number: int) -> None:
        self.again(number, self.h.acc.completion.lost)

    def again(
        self, number: int, how: Callable[[ProduceBatch, Exception, float], None]
    ) -> None:
        batch = self.completion(number)
        if batch is not None:
            how(batch, ValueError("again"), self.now + number)

    def fail(self, number: int) -> None:
        batch = self.completion(number)
        if batch is not None:
            self.h.acc.completion.failed(batch, ValueError("fail"))

    def split(self, number: int) -> None:
        batch = self.completion(number)
        if batch is not None and batch.count > 1:
            self.h.acc.completion.split(batch, ValueError("large"))
        elif batch is not None:
            self.h.acc.completion.failed(batch, ValueError("large"))

    def bad(self, number: int) -> None:
        batch = self.completion(number)
        if batch is not None:
            index = number % batch.count
            self.h.acc.completion.fail_records(
                batch, {index: ValueError("bad")}, ValueError("batch")
            )

    def expire(self, number: int) -> None:
        self.now += number * 5
        self.h.acc.expire(self.now)

    def move(self, number: int) -> None:
        self.epoch += 1
        leaders = [number & 1, number >> 1 & 1]
        self.h.acc.placement.learn(view({"t": leaders}, epoch=self.epoch))

    def seal(self, number: int) -> None:
        self.h.acc.seal()

    def check(self) -> None:
        for batch in self.wire:
            assert batch.is_on_wire
        if self.h.identity is None:
            where = [b.partition for b in self.wire]
            assert len(where) == len(set(where))

    def finish(self) -> None:
        for _ in range(500):
            self.now += 1
            self.drain(0)
            self.drain(1)
            if not self.wire:
                if self.h.acc.backlog.is_empty:
                    break
                continue
            self.ack(0)
        assert self.h.used() == 0
        acked = []
        for number, receipt, index in self.accepted:
            while receipt.moved is not None:
                receipt, index = receipt.moved[index]
            assert receipt.is_settled
            if receipt.error is None:
                acked.append(number)
        for log in self.written.values():
            assert len(log) == len(set(log))
            if self.h.identity is None:
                assert list(log) == sorted(log)
        assert sorted([*self.written[0], *self.written[1]]) == acked


def test_the_next_deadline_is_that_of_the_oldest_on_any_wire() -> None:
    h = Harness()
    for partition, created in ((0, 1.0), (1, 2.0)):
        h.put(partition, now=created)
        h.take(now=created)
    assert h.acc.expire(50.0) == []
    assert h.acc.outbox.outlook(50.0).wake_at == 101.0


def test_a_deadline_of_what_was_answered_is_forgotten_once_it_has_passed() -> None:
    h = Harness()
    h.put(0, now=0.0)
    first = h.take()
    h.put(1, now=5.0)
    second = h.take()
    assert h.acc.expire(6.0) == []
    h.acc.completion.acknowledged(first, 0, -1)
    assert h.acc.backlog.expires_at == 100.0
    assert h.acc.expire(100.0) == []
    assert h.acc.backlog.expires_at == 105.0
    h.acc.completion.acknowledged(second, 0, -1)
    assert h.acc.outbox.outlook(101.0).wake_at == float("inf")


# ---- leases --------------------------------------------------------------------------


def take_directly(h: Harness, value: object = b"v", key: bytes | None = None) -> Any:
    return h.acc.budget.open_batches.take("t", value, key, (), 1, None)


def test_records_go_into_the_open_batch_by_themselves() -> None:
    h = Harness()
    assert take_directly(h) is None  # the first record of a batch asks
    first = h.put(None)
    used = h.used()
    delivery = take_directly(h, b"w")
    assert delivery.place()[:2] == (first, 1)
    assert first.count == 2
    assert h.used() > used  # what is charged in advance is not told
    assert h.acc.budget.open_batches.taken == h.used()
    batch = h.take()
    assert values(batch) == [b"v", b"w"]
    assert batch.charged == batch.builder.size_bytes == h.used()
    assert take_directly(h) is None  # it is on the wire
    h.acc.completion.acknowledged(batch, 10, -1)
    assert delivery.result().offset == 11
    assert h.used() == 0


def test_direct_keyless_records_end_where_the_partition_has_had_its_share() -> None:
    h = Harness(limits=replace(LIMITS, batch_size=1_000))
    h.acc.backlog.topics.clear()
    h.put(None)
    sticky = h.acc.backlog.topics["t"].sticky
    sticky.left = 1  # as if other batches had brought them
    h.put(None)
    assert sticky.left <= 0
    assert take_directly(h) is None
    h.rolls = iter([0.5])
    assert h.put(None).partition == 1


def test_bytes_taken_directly_count_for_the_share_of_a_partition() -> None:
    h = Harness(limits=replace(LIMITS, batch_size=1_000))
    first = h.put(None)
    h.rolls = iter([0.99])
    while take_directly(h, b"v" * 90) is not None:
        assert first.partition == 0
    assert h.put(None, b"v" * 90).partition == 2  # it had a batch's worth


def test_keyless_records_leave_no_part_of_a_batch_behind() -> None:
    h = Harness(limits=replace(LIMITS, batch_size=1_000, buffer_memory=100_000))
    h.rolls = iter(number / 97 for number in range(97))
    for number in range(700):
        if take_directly(h, b"v" * (number % 50)) is None:
            h.put(None, b"v" * (number % 50))
    batches = [batch for q in h.acc.backlog.active.values() for batch in q.waiting]
    full = [batch.builder.size_bytes for batch in batches if batch.is_sealed]
    assert len(batches) == len(full) + 1  # the one that fills now
    assert len(full) > 20
    assert min(full) > 1_000 - 80


def test_a_batch_that_left_early_does_not_end_the_share_of_its_partition() -> None:
    h = Harness(limits=replace(LIMITS, batch_size=1_000))
    first = h.put(None, b"v" * 400)
    h.take()
    assert h.put(None, b"v" * 100).partition == first.partition


def test_a_lease_ends_when_the_batch_is_sealed_given_up_or_expired() -> None:
    h = Harness()
    h.put(None)
    h.acc.seal()
    assert take_directly(h) is None
    h.put(None)
    assert h.acc.budget.open_batches.take("t", b"v", None, (), None, None) is not None
    h.acc.expire(100.0)
    assert take_directly(h) is None
    assert h.used() == 0
    h.put(None)
    h.acc.fail_all(lambda _: ValueError())
    assert take_directly(h) is None
    assert h.used() == 0


def test_a_key_goes_where_new_metadata_says() -> None:
    h = Harness({"t": [0]})
    h.put(None, key=b"k")
    assert take_directly(h, key=b"k").place()[0].partition == 0
    h.acc.placement.learn(view({"t": [0] * 7}))
    assert take_directly(h, key=b"k") is None
    where = h.put(None, key=b"k").partition
    assert where == take_directly(h, key=b"k").place()[0].partition != 0


def test_many_partitions_share_the_room() -> None:
    limits = replace(LIMITS, batch_size=8_000, buffer_memory=200_000)
    h = Harness({"t": [0] * 50}, limits)
    for partition in range(50):
        h.put(partition)
    for partition in range(50):
        assert (
            h.acc.budget.open_batches.take("t", b"w", None, (), 1, partition)
            is not None
        )
    assert h.acc.budget.used <= 200_000
    taken = 2
    while h.acc.budget.open_batches.take("t", b"v" * 20, None, (), 1, 7) is not None:
        taken += 1
    batch = h.acc.backlog.topics["t"].queues[7].waiting[0]
    assert batch.builder.size_bytes <= batch.charged < 4_100  # its share is used up
    assert h.put(7, b"v" * 20).count == taken + 1
    assert (
        h.acc.budget.open_batches.take("t", b"v" * 20, None, (), 1, 7) is not None
    )  # the next one
    h.acc.budget.end_leases()
    assert h.acc.budget.used == h.used()


def test_records_without_a_key_need_no_room_for_the_other_partitions() -> None:
    limits = replace(LIMITS, batch_size=8_000, buffer_memory=200_000)
    h = Harness({"t": [0] * 1_000}, limits)
    h.put(None)
    sticky = h.acc.backlog.topics["t"].sticky.partition
    batch = h.acc.backlog.topics["t"].queues[sticky].waiting[0]
    assert batch.charged == 8_000
    other = (sticky + 1) % 1_000
    h.put(other)  # the other 999 may follow
    assert h.acc.budget.open_batches.take("t", b"w", None, (), 1, other) is None


def test_a_share_that_is_too_small_is_not_leased() -> None:
    h = Harness(limits=replace(LIMITS, batch_size=4_000, buffer_memory=4_000))
    h.put(None)
    assert take_directly(h) is not None
    h.put(1, b"v" * 900)
    h.put(2, b"v" * 900)
    assert h.acc.budget.open_batches.take("t", b"v", None, (), 1, 2) is None
    h.put(1, b"v" * 900)  # needs what was set aside for the first
    assert take_directly(h) is None
    h.put(2, b"v" * 900)
    with pytest.raises(BufferFull):
        h.put(2, b"v" * 900)
    assert h.used() <= 4_000


def test_nothing_is_leased_while_there_is_a_barrier() -> None:
    h = Harness()
    h.put(None)
    h.acc.gate.raise_barrier(Barrier.BACKPRESSURE)
    assert take_directly(h) is None
    h.put(None)
    assert take_directly(h) is None
    h.acc.gate.remove_barrier(Barrier.BACKPRESSURE)
    h.put(None)
    assert take_directly(h) is not None


def test_a_gate_is_open_while_there_is_no_barrier() -> None:
    gate = Gate()
    assert gate.may_lease()
    gate.raise_barrier(Barrier.CLOSED)
    gate.raise_barrier(Barrier.BACKPRESSURE)
    gate.remove_barrier(Barrier.BACKPRESSURE)
    assert not gate.may_lease()
    gate.remove_barrier(Barrier.CLOSED)
    assert gate.may_lease()
    gate.is_lone = True
    assert not gate.may_lease()


def test_each_barrier_keeps_records_out_of_open_batches() -> None:
    h = Harness()
    h.put(None)
    assert take_directly(h) is not None
    for barrier in Barrier:
        h.acc.gate.raise_barrier(barrier)
        assert take_directly(h) is None
    for barrier in Barrier:
        h.put(None)
        assert take_directly(h) is None
        h.acc.gate.remove_barrier(barrier)
    h.put(None)
    assert take_directly(h) is not None


def test_a_batch_that_leaves_before_others_can_join_it_is_not_leased() -> None:
    h = Harness()
    h.acc.gate.is_lone = True
    h.put(None)
    assert take_directly(h) is None
    h.acc.gate.is_lone = False
    h.put(None)
    assert take_directly(h) is not None


def test_a_custom_partitioner_is_asked_about_every_record() -> None:
    h = Harness(custom=lambda *_: 1)
    h.put(None)
    assert take_directly(h) is None


def test_all_is_sent_when_nothing_waits() -> None:
    h = Harness()
    assert h.acc.backlog.is_all_sent
    h.put(None)
    assert not h.acc.backlog.is_all_sent
    h.take()
    assert h.acc.backlog.is_all_sent
    h.put(None, topic="unknown")
    assert not h.acc.backlog.is_all_sent


def test_a_topic_is_in_use_as_long_as_open_batches_take_records() -> None:
    h = Harness()
    h.put(None, now=1.0)
    assert take_directly(h) is not None  # some time later
    h.acc.completion.acknowledged(h.take(now=9.0), 0, -1)
    assert h.acc.backlog.topics_in_use(8.0) == {"t"}


def drained(h: Harness) -> list[ProduceBatch]:
    batches = h.acc.outbox.drain(0, 0.0) + h.acc.outbox.drain(1, 0.0)
    for batch in batches:
        h.acc.completion.acknowledged(batch, 0, -1)
    return batches


@given(
    script=st.lists(
        st.tuples(
            st.sampled_from(
                ["put", "direct", "direct", "direct", "take", "seal", "tight"]
            ),
            st.none() | st.binary(max_size=3),
            st.integers(0, 120),
        ),
        max_size=60,
    )
)
def test_leases_lose_no_byte_and_no_record(script: list[tuple]) -> None:
    h = Harness(limits=replace(LIMITS, buffer_memory=600), is_idempotent=False)
    taken: list[bytes] = []
    batches: list[ProduceBatch] = []
    for number, (what, key, size) in enumerate(script):
        value = b"%d:" % number + b"v" * size
        if what == "put":
            try:
                h.put(None, value, key=key)
            except BufferFull:
                continue
            taken.append(value)
        elif what == "direct" and take_directly(h, value, key) is not None:
            taken.append(value)
        elif what == "take":
            batches += drained(h)
        elif what == "seal":
            h.acc.seal()
        elif what == "tight" and h.acc.budget.reserve(500):
            h.acc.budget.release(500)
        assert h.acc.budget.used <= 600
        waiting = [b for q in h.acc.backlog.active.values() for b in q.waiting]
        assert h.used() == sum(b.builder.size_bytes for b in waiting)
    while left := drained(h):
        batches += left
    written = [value for batch in batches for value in values(batch)]
    assert sorted(written) == sorted(taken)
    assert all(b.receipt.count == b.builder.count for b in batches)
    assert h.used() == 0


# ---- transactions


T0, T1, T2 = (TopicPartition("t", number) for number in range(3))


def aborted(batch: ProduceBatch | None) -> Exception:
    del batch
    return TransactionAborted("aborted")


def test_only_partitions_of_the_transaction_are_sent_to() -> None:
    h = Harness(is_idempotent=True)
    assert h.acc.outbox.partitions_to_add() == []
    h.acc.gate.admitted = frozenset()
    h.put(0)
    h.put(1)
    h.put(2)
    assert h.acc.outbox.outlook(0.0).nodes == ()
    assert h.acc.outbox.drain(0, 0.0) == []
    assert h.acc.outbox.partitions_to_add() == [T0, T1, T2]
    h.acc.gate.admitted = frozenset({T1})
    assert h.take().partition == T1
    assert h.acc.outbox.partitions_to_add() == [T0, T2]
    h.acc.gate.admitted = None
    assert h.acc.outbox.partitions_to_add() == []
    assert h.take().partition == T0


def test_what_was_sent_goes_on_whatever_is_admitted() -> None:
    h = Harness(is_idempotent=True)
    h.put(0)
    batch = h.take()
    h.acc.gate.admitted = frozenset()
    (queue,) = h.acc.backlog.active.values()
    assert not h.acc.gate.must_wait(queue)
    h.acc.completion.lost(batch, ValueError(), 0.0)
    assert not h.acc.gate.must_wait(queue)
    assert h.take() is batch


def test_an_abort_drops_what_cannot_be_in_the_log() -> None:
    h = Harness({"t": [0, 0, 0]}, is_idempotent=True)
    on_wire, lost, refused = h.put(0), h.put(1), h.put(2)
    batches = {batch.partition: batch for batch in h.acc.outbox.drain(0, 0.0)}
    h.acc.completion.lost(batches[T1], ValueError(), 5.0)
    h.acc.completion.refused(batches[T2], ValueError(), 5.0)
    waiting, unknown = h.put(0), h.put(0, topic="unknown")
    dropped = h.acc.drop_unsent(aborted)
    assert set(map(id, dropped)) == {id(refused), id(waiting), id(unknown)}
    for receipt in dropped:
        assert isinstance(receipt.error, TransactionAborted)
    assert on_wire.error is None
    assert lost.error is None
    assert not h.acc.backlog.is_empty
    h.acc.completion.acknowledged(batches[T0], 0, -1)
    again = h.take(now=5.0)
    assert again is batches[T1]
    h.acc.completion.acknowledged(again, 0, -1)
    assert h.acc.backlog.is_empty
    assert h.used() == 0
    assert h.acc.drop_unsent(aborted) == []


def test_a_broker_that_refuses_the_client_fails_what_only_it_would_get() -> None:
    h = Harness({"t": [0, 1]}, is_idempotent=True)
    sent = h.put(0)
    batch = h.take()
    waiting, other = h.put(0), h.put(1)
    refusal = AuthenticationError("wrong password")
    assert h.acc.refuse(0, refusal) == [waiting]
    assert waiting.error is refusal
    assert sent.error is other.error is None
    h.acc.completion.acknowledged(batch, 0, -1)
    assert h.take(1).partition == T1
    assert h.put(0).error is None


def test_batches_expire_at_the_end_of_the_transaction() -> None:
    h = Harness(is_idempotent=True)
    receipt = h.put(0, now=0.0)
    h.acc.expire_at(10.0)
    assert h.acc.backlog.expires_at <= 10.0
    h.acc.expire(9.9)
    assert receipt.error is None
    assert h.acc.expire(10.0) == [receipt]
    assert isinstance(receipt.error, DeliveryTimeout)
    h.acc.expire_at(float("inf"))
    later = h.put(0, now=11.0)
    h.acc.expire(50.0)
    assert later.error is None
    assert h.acc.expire(111.0) == [later]


@given(
    st.lists(
        st.tuples(st.sampled_from(["put", "send", "admit", "abort"]), st.integers(0, 2))
    )
)
def test_what_is_not_admitted_never_leaves(steps: list[tuple[str, int]]) -> None:
    h = Harness({"t": [0, 0, 0]}, is_idempotent=True)
    admitted: set[TopicPartition] = set()
    h.acc.gate.admitted = frozenset()
    taken = 0
    for step, number in steps:
        if step == "put":
            with contextlib.suppress(BufferFull):
                h.put(number)
        elif step == "admit":
            admitted.add(TopicPartition("t", number))
            h.acc.gate.admitted = frozenset(admitted)
        elif step == "send":
            for batch in h.acc.outbox.drain(0, 0.0):
                taken += 1
                assert batch.partition in admitted
                h.acc.completion.acknowledged(batch, taken, -1)
                h.answer(0.0)
        else:
            h.acc.drop_unsent(aborted)
            assert h.acc.backlog.is_empty
            assert h.used() == 0
        wanted = set(h.acc.outbox.partitions_to_add())
        assert not wanted & admitted


def test_a_transaction_learns_of_a_topic_that_cannot_be_written() -> None:
    h = Harness()
    seen: list[Exception] = []
    h.acc.placement.on_failed = seen.append
    receipt = h.put(None, topic="secret")
    refused = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    h.acc.placement.learn(view({"t": [0]}, secret=refused))
    assert seen == [receipt.error]
    assert isinstance(seen[0], AuthorizationError)


# ---- availability --------------------------------------------------------------------


def test_keyless_records_leave_a_partition_that_refuses_until_it_accepts() -> None:
    h = Harness({"t": [0, 1]}, LARGE)
    assert h.put(None).partition == 0
    batch = h.take()
    h.put(None)  # it stays in the partition, behind the batch
    h.acc.completion.refused(batch, RuntimeError("too few replicas"), 1.0)
    assert h.put(None).partition == 1
    again = h.take(now=1.0)
    assert again is batch
    h.acc.completion.acknowledged(again, 0, -1)
    assert h.acc.availability.usable(h.acc.backlog.topics["t"]) == (0, 1)


def test_a_partition_that_has_nothing_left_is_tried_again() -> None:
    h = Harness({"t": [0, 1]}, LARGE)
    h.put(0)
    h.acc.completion.refused(h.take(), RuntimeError("too few replicas"), 1.0)
    topic = h.acc.backlog.topics["t"]
    assert h.acc.availability.usable(topic) == (1,)
    h.acc.expire(200.0)
    assert h.acc.availability.usable(topic) == (0, 1)


def test_keyless_records_stay_where_all_partitions_refuse() -> None:
    h = Harness({"t": [0, 1]}, LARGE)
    for partition in (0, 1):
        h.put(partition)
        h.acc.completion.refused(h.take(partition), RuntimeError("no"), 1.0)
    assert [h.put(None).partition for _ in range(5)] == [0] * 5


def test_a_leader_that_is_busy_with_markers_keeps_its_records() -> None:
    h = Harness({"t": [0, 1]}, LARGE)
    h.put(None)
    h.acc.completion.refused(h.take(), RuntimeError("markers"), 1.0, is_busy=True)
    assert h.put(None).partition == 0


def test_keyless_records_avoid_a_broker_that_fails_while_something_waits_for_it() -> (
    None
):
    h = Harness({"t": [0, 0, 1]}, LARGE)
    h.put(0)
    h.acc.availability.node_failed(0)
    topic = h.acc.backlog.topics["t"]
    assert h.acc.availability.usable(topic) == (2,)
    assert h.put(None).partition == 2
    h.acc.expire(200.0)  # nobody would find out any more
    assert h.acc.availability.usable(topic) == (0, 1, 2)
    h.put(0)
    h.acc.availability.node_answered(0)
    assert h.acc.availability.usable(topic) == (0, 1, 2)


def test_keyless_records_leave_a_leader_that_does_not_answer() -> None:
    h = Harness({"t": [0, 1]}, replace(LARGE, availability_timeout=2.0))
    assert h.put(None, now=0.0).partition == 0
    h.take()
    assert h.acc.outbox.outlook(0.0).wake_at == 2.0
    assert h.put(None, now=1.0).partition == 0
    h.acc.outbox.outlook(2.0)
    assert h.put(None, now=2.0).partition == 1
    h.answer(2.5)
    h.acc.outbox.outlook(2.5)
    assert h.acc.availability.usable(h.acc.backlog.topics["t"]) == (0, 1)


# ---- racks (KIP-1123) ----------------------------------------------------------------

RACKS: dict[int, str | None] = {0: "a", 1: "b", 2: None, 3: "a"}


def test_keyless_records_stay_in_the_rack() -> None:
    h = Harness({"t": [0, 1, 2, 3]}, racks=RACKS, rack="a")
    h.rolls = iter([0.0, 0.4, 0.6, 0.99])
    found = [h.put(None, b"x" * 500).partition for _ in range(4)]
    assert found == [0, 0, 3, 3]
    # Keys and named partitions go where they did.
    plain = Harness({"t": [0, 1, 2, 3]})
    for key in (b"a", b"b", b"c", b"d", b"e"):
        assert h.put(None, key=key).partition == plain.put(None, key=key).partition
    assert h.put(1).partition == 1


def test_keyless_records_leave_the_rack_if_none_there_can_be_written() -> None:
    h = Harness({"t": [0, 1, 3]}, LARGE, racks=RACKS, rack="a")
    topic = "t"
    usable = h.acc.availability.usable
    h.put(0)
    topics = h.acc.backlog.topics
    h.acc.completion.refused(h.take(), RuntimeError("no"), 1.0)
    assert usable(topics[topic]) == (2,)
    h.put(2)
    h.acc.completion.refused(h.take(3), RuntimeError("no"), 1.0)
    assert usable(topics[topic]) == (1,)
    assert h.put(None).partition == 1
    h.put(1)
    h.acc.completion.refused(h.take(1), RuntimeError("no"), 1.0)
    assert usable(topics[topic]) == (0, 2)  # all refuse: those in the rack
    h.acc.placement.learn(view({"t": [-1, 1, -1]}, 1, RACKS))
    assert usable(topics[topic]) == (1,)  # no leader is left there
    h.acc.placement.learn(view({"t": [-1, 1, 3]}, 2, RACKS))
    assert usable(topics[topic]) == (2,)


def test_longer_queues_in_the_rack_get_less() -> None:
    limits = replace(LIMITS, batch_size=100)
    h = Harness({"t": [0, 1, 3]}, limits, racks=RACKS, rack="a")
    for _ in range(3):
        h.put(0, b"x" * 60)
    h.put(2, b"x" * 60)
    h.rolls = iter([0.3])  # of weights 1 : 3, though nothing waits for partition 1
    assert h.put(None).partition == 2


def test_rows_of_tables_stay_in_the_rack() -> None:
    h = Harness({"t": [0, 1, 2, 3]}, LARGE, racks=RACKS, rack="a")
    assert turns(h, 4) == [0, 3, 0, 3]


@given(
    leaders=st.lists(st.integers(-1, 3), min_size=1, max_size=8),
    racks=st.lists(st.sampled_from(["a", "b", None]), min_size=4, max_size=4),
    failed=st.sets(st.integers(0, 7)),
)
def test_a_rack_only_narrows_the_choice(
    leaders: list[int], racks: list[str | None], failed: set[int]
) -> None:
    given_racks = dict(enumerate(racks))
    plain = Harness({"t": leaders}, LARGE, racks=given_racks)
    aware = Harness({"t": leaders}, LARGE, racks=given_racks, rack="a")
    for h in (plain, aware):
        h.put(None)
        for number in failed & set(range(len(leaders))):
            h.put(number)
            queue = h.acc.backlog.topics["t"].queues[number]
            h.acc.availability.attempt_failed(queue)
    before, after = (
        h.acc.availability.usable(h.acc.backlog.topics["t"]) for h in (plain, aware)
    )
    near = [n for n in before if leaders[n] >= 0 and racks[leaders[n]] == "a"]
    assert list(after) == (near or list(before))


# ---- rows of tables ------------------------------------------------------------------


def turns(h: Harness, count: int, **wanted: int) -> list[int]:
    """Return the partitions that get turns, and a record each."""
    found = []
    for _ in range(count):
        h.acc.placement.turn("t", wanted.get("size", 50_000), wanted.get("runs", 2))
        found.append(h.put(None).partition)
    h.acc.placement.end_turn("t")
    return found


def test_partitions_take_turns_with_rows() -> None:
    h = Harness({"t": [0, 0, 1, 1]}, LARGE)
    h.rolls = iter([0.6])
    assert turns(h, 6) == [2, 3, 0, 1, 2, 3]
    assert turns(h, 2) == [0, 1]


def test_records_go_on_where_they_were_before_the_rows() -> None:
    h = Harness({"t": [0] * 4}, LARGE)
    h.rolls = iter([0.3, 0.6])
    assert h.put(None).partition == 1
    sticky = h.acc.backlog.topics["t"].sticky
    left = sticky.left
    assert turns(h, 3) == [2, 3, 0]
    assert sticky.left == left
    assert h.put(None).partition == 1


def test_a_turn_that_ends_before_it_began_is_nothing() -> None:
    h = Harness({"t": [0, 0]}, LARGE)
    h.acc.placement.end_turn("t")
    h.acc.placement.end_turn("u")
    assert h.acc.placement.turn("u", 10_000_000) == 1  # no metadata yet
    assert h.put(None, topic="u").partition == -1


def test_small_tables_share_a_turn() -> None:
    h = Harness({"t": [0] * 3}, LARGE)
    found = [turns(h, 1, size=6_000, runs=0) for _ in range(5)]
    assert found == [[0], [0], [1], [1], [2]]


def test_a_custom_partitioner_chooses_for_rows() -> None:
    h = Harness({"t": [0] * 3}, LARGE, custom=lambda *_: 2)
    assert h.acc.placement.turn("t", 10_000_000) == 1
    assert turns(h, 3) == [2, 2, 2]


def test_a_partition_that_holds_more_than_its_part_is_passed_over() -> None:
    h = Harness({"t": [0] * 4}, replace(LARGE, buffer_memory=100_000))
    for _ in range(3):
        h.put(1, b"x" * 10_000)
    assert turns(h, 6) == [0, 2, 3, 0, 2, 3]
    h = Harness({"t": [0] * 4}, replace(LARGE, buffer_memory=100_000), adaptive=False)
    for _ in range(3):
        h.put(1, b"x" * 10_000)
    assert turns(h, 4) == [0, 1, 2, 3]


def test_rows_leave_a_partition_that_refuses_in_the_middle_of_its_turn() -> None:
    h = Harness({"t": [0, 0, 1]}, LARGE)
    h.acc.placement.turn("t", 50_000, 3)
    assert h.put(None).partition == 0
    queue = h.acc.backlog.topics["t"].queues[0]
    h.acc.availability.attempt_failed(queue)
    h.rolls = iter([0.9])
    assert h.put(None).partition == 2
    h.acc.placement.turn("t", 50_000, 3)
    assert h.put(None).partition == 1
    h.acc.placement.turn("t", 50_000, 3)
    h.acc.placement.turn("t", 50_000, 3)
    assert h.put(None).partition == 1
    h.acc.placement.end_turn("t")


# ---- the share of partitions without progress ----------------------------------------


def stalled(leaders: list[int]) -> Harness:
    """A producer that has written to all partitions; those with leader -1 stall."""
    h = Harness({"t": [0] * len(leaders)}, replace(LIMITS, buffer_memory=2_000))
    for partition in range(len(leaders)):
        h.put(partition)
    for batch in h.acc.outbox.drain(0, 0.0):
        h.acc.completion.acknowledged(batch, 0, -1)
    h.answer(0.0)
    h.acc.placement.learn(view({"t": leaders}, epoch=1))
    return h


def fill(h: Harness, partition: int, topic: str = "t") -> int:
    """Put records into a partition as long as none has to wait; return the bytes."""
    place, before = TopicPartition(topic, partition), h.acc.budget.used
    for _ in range(40):
        if h.acc.share.must_wait(place, 100, 0.0) or h.acc.budget.used > 1_800:
            break
        h.acc.share.took(place, 100, 0.0)
        h.put(partition, bytes(30), topic=topic)
    return h.acc.budget.used - before


def test_partitions_without_progress_share_a_part_of_the_buffer() -> None:
    h = stalled([-1, -1, 0])
    assert 500 <= fill(h, 0) <= 1_000
    fill(h, 1)
    assert h.acc.budget.used <= 1_100
    fill(h, 2)
    assert 1_600 < h.acc.budget.used <= 1_800
    assert h.acc.share.is_tight(0.0)
    assert "t-1 makes no progress" in h.acc.share.why(TopicPartition("t", 1), 0.0)


def test_without_others_the_whole_buffer_is_used() -> None:
    assert fill(stalled([-1]), 0) > 1_700


def test_a_topic_that_is_not_known_takes_a_share_at_most() -> None:
    h = stalled([0])
    assert 500 <= fill(h, 0, topic="missing") <= 1_100
    assert "topic 'missing' makes" in h.acc.share.why(
        TopicPartition("missing", -1), 0.0
    )
    h.acc.expire(50.0)
    assert h.acc.backlog.undesignated_bytes == 0
    assert fill(h, 0, topic="missing") >= 500
    h.acc.placement.learn(view({"t": [0], "missing": [0]}, epoch=2))
    assert h.acc.backlog.undesignated_bytes == 0


def test_a_slow_partition_is_not_limited() -> None:
    h = stalled([0, 0])
    assert fill(h, 0) > 1_500
    h.acc.outbox.drain(0, 0.0)
    assert not h.acc.share.must_wait(TopicPartition("t", 0), 10, 0.9)


def test_the_last_eighth_is_for_partitions_that_hold_little() -> None:
    h = stalled([0, 0, 1])
    fill(h, 0)
    full, other = TopicPartition("t", 0), TopicPartition("t", 2)
    assert h.acc.share.must_wait(full, 200, 0.0)
    assert "t-0 holds much of the" in h.acc.share.why(full, 0.0)
    assert not h.acc.share.must_wait(other, 200, 0.0)
    h.put(2, bytes(30))
    assert h.acc.share.must_wait(other, 200, 0.0)
    assert h.acc.share.is_tight(0.0)


def test_a_broker_that_is_silent_counts_as_no_progress() -> None:
    h = stalled([0, 1])
    h.put(0)
    h.take()
    for _ in range(15):
        h.put(0, bytes(30))
    place = TopicPartition("t", 0)
    assert not h.acc.share.must_wait(place, 500, 0.5)
    assert h.acc.share.must_wait(place, 500, 1.5)
    h.answer(1.6)
    assert not h.acc.share.must_wait(place, 500, 1.7)


def test_no_record_passes_one_that_is_held_back() -> None:
    h = Harness({"t": [0, 0]}, LARGE)
    h.put(0)
    assert h.acc.budget.open_batches.take("t", b"v", None, (), 1, 0) is not None
    h.acc.share.hold_back(TopicPartition("t", 0))
    assert h.acc.budget.open_batches.take("t", b"v", None, (), 1, 0) is None
    h.put(0)
    assert h.acc.budget.open_batches.take("t", b"v", None, (), 1, 0) is None
    h.acc.share.let_in(TopicPartition("t", 0))
    h.put(0)
    assert h.acc.budget.open_batches.take("t", b"v", None, (), 1, 0) is not None


def test_the_destination_of_a_record_is_found_before_it_is_taken_in() -> None:
    h = Harness({"t": [0, -1]})
    where = h.acc.placement.destination
    assert where("t", 1, record()) == (1, TopicPartition("t", 1))
    assert where("t", 7, record()) == (7, TopicPartition("t", 7))
    assert where("t", None, record()) == (None, None)
    key = record(key=b"21")
    assert where("t", None, key) == (None, TopicPartition("t", h_of(h, key)))
    assert where("new", None, key) == (None, TopicPartition("new", -1))
    h.put(None)
    assert where("t", None, record()) == (None, None)
    h.acc.placement.learn(view({"t": [-1, -1]}, epoch=1))
    assert where("t", None, record()) == (None, TopicPartition("t", -1))
    h.acc.placement.learn(view({"t": [-1, 0]}, epoch=2))
    assert where("t", None, record()) == (None, None)
    one = Harness({"t": [0]}).acc.placement.destination
    assert one("t", None, record()) == (None, TopicPartition("t", 0))


def h_of(h: Harness, key: PlainRecord) -> int:
    return append(h.acc, "t", None, key, 0.0).partition


def test_a_custom_partitioner_is_called_once_for_each_record() -> None:
    calls: list[str] = []
    h = Harness(
        {"t": [0, 0, 0]}, custom=lambda topic, *_: len(calls.append(topic) or calls)
    )
    named, place = h.acc.placement.destination("t", None, record())
    assert (named, place) == (1, TopicPartition("t", 1))
    assert append(h.acc, "t", named, record(), 0.0).partition == 1
    assert len(calls) == 1


def test_larger_requests_are_tried_again_after_a_while() -> None:
    h = Harness({"t": [0, 0, 0]})
    for partition in range(3):
        h.put(partition, bytes(100))
    h.acc.availability.node(0).limit_to(300, 0.0)
    assert len(h.acc.outbox.drain(0, 1.0)) == 1
    assert len(h.acc.outbox.drain(0, 601.0)) == 2


def test_a_draw_walks_the_shorter_of_the_two_lists_of_queues() -> None:
    def queue(topic: str, number: int, *, waits: bool) -> PartitionQueue:
        made = PartitionQueue(TopicPartition(topic, number), None)
        if waits:
            builder = BatchBuilder(1_000)
            builder.try_append(0, None, b"v" * 500, ())
            receipt = Receipt(topic, number, count=1)
            made.waiting.append(
                ProduceBatch(made.partition, (0,), builder, receipt, 0.0)
            )
        return made

    topic = TopicQueues("t", StickyPartition(100), 200, partition_count=2)
    topic.queues = {n: queue("t", n, waits=n == 0) for n in range(2)}
    others = [queue("u", n, waits=True) for n in range(5)]
    waiting = [topic.queues[0]]
    chooser = Chooser(lambda: 0.2)

    # Partition 0 has the larger load. Without loads, 0.2 would draw it.
    assert chooser.draw(topic, range(2), waiting) == 1
    assert chooser.draw(topic, range(2), waiting + others) == 1
    assert chooser.draw(topic, range(2), []) == 0

    class Unwalked(list[PartitionQueue]):
        def __iter__(self) -> Iterator[PartitionQueue]:
            pytest.fail("the queues of all topics were walked")

    assert chooser.draw(topic, range(2), Unwalked(waiting + others)) == 1


# ---- a batch that is the only one ----------------------------------------------------


def alone(**options: Any) -> Harness:
    """An accumulator whose brokers have each answered one request."""
    h = Harness(**options)
    for partition, node in ((0, 0), (2, 1)):
        h.put(partition)
        batch = h.take(node)
        h.answer(0.1, node)
        h.acc.completion.acknowledged(batch, 0, -1)
    h.acc.gate.is_lone = True
    return h


def test_the_only_batch_is_taken_as_it_would_be_drained() -> None:
    h, other = alone(is_idempotent=True), alone(is_idempotent=True)
    for each in (h, other):
        each.put(0, now=1.0)
    queue = h.acc.outbox.lone_queue()
    assert queue is not None
    batch, drained = h.acc.outbox.take(queue, 1.0), other.take(0, 1.0)
    assert batch.encode() == drained.encode()
    assert (batch.attempts, batch.sent_to) == (drained.attempts, drained.sent_to)
    assert batch.is_on_wire
    assert batch.is_sealed
    node, same = h.acc.availability.node(0), other.acc.availability.node(0)
    assert (node.in_flight, node.latest) == (same.in_flight, same.latest)
    assert queue.on_wire == [batch]
    assert h.acc.outbox.lone_queue() is None


def test_no_batch_is_lone_beside_others() -> None:
    h = alone()
    assert h.acc.outbox.lone_queue() is None  # there is none
    h.put(0)
    assert h.acc.outbox.lone_queue() is not None
    h.put(1)
    assert h.acc.outbox.lone_queue() is None


def test_a_batch_is_not_lone_while_its_broker_is_busy() -> None:
    h = alone()
    h.put(0)
    batch = h.take()
    h.put(0)
    assert h.acc.outbox.lone_queue() is None
    h.acc.completion.acknowledged(batch, 0, -1)
    assert h.acc.outbox.lone_queue() is None  # the request has no answer yet
    h.answer(0.1)
    assert h.acc.outbox.lone_queue() is not None


def test_a_batch_that_is_sent_again_is_not_lone() -> None:
    h = alone()
    h.put(0)
    batch = h.take()
    h.answer(0.1)
    h.acc.completion.refused(batch, RequestTimeout("late"), 5.0)
    assert h.acc.outbox.lone_queue() is None


@pytest.mark.parametrize("change", ["leader", "trouble", "lease", "transaction", "id"])
def test_a_batch_is_not_lone_where_more_is_to_be_decided(change: str) -> None:
    h = alone(is_idempotent=True)
    if change == "lease":
        h.acc.gate.is_lone = False
    h.put(0)
    if change == "leader":
        h.acc.placement.learn(view({"t": [-1, 0, 1]}, 1))
    elif change == "trouble":
        h.acc.availability.node_failed(1)
    elif change == "transaction":
        h.acc.gate.admitted = frozenset()
    elif change == "id":
        assert h.identity is not None
        h.identity.current = None
    assert h.acc.outbox.lone_queue() is None
