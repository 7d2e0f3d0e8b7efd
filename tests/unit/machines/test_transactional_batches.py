"""Batches of a transactional producer: what is dropped, expires and is numbered."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from kafkaio._machines.accumulator import (
    Accumulator,
    Chooser,
    ProduceBatch,
    Receipt,
)
from kafkaio._machines.sequence import (
    MAX_UNDER_WAY,
    IdAndEpoch,
    ProducerIdentity,
)
from kafkaio._records._impl import OpenBatches
from kafkaio._records.batch import BatchBuilder
from kafkaio.errors import BufferFull
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.types import TopicPartition
from tests.unit.machines.test_accumulator import (
    LIMITS,
    Harness,
    append,
    record,
    values,
    view,
)


def aborted(batch: ProduceBatch | None) -> Exception:
    del batch
    return ValueError("aborted")


# ---- records without a partition -----------------------------------------------------


def test_records_that_fail_are_reported_once_the_others_have_their_partition() -> None:
    def odd(topic: str, key: Any, value: Any, count: int) -> int:
        return 9 if value == b"bad" else 0

    h = Harness(custom=odd)
    receipts = [
        h.put(None, b"before", topic="new"),
        h.put(None, b"bad", topic="new"),
        h.put(7, b"later", topic="new"),
        h.put(None, b"after", topic="new"),
        h.put(0, b"denied", topic="denied"),
    ]
    reported: list[Exception] = []
    dropped: list[Receipt] = []

    def failed(error: Exception) -> None:
        # As a transaction does that cannot be committed any more.
        reported.append(error)
        dropped.extend(h.acc.drop_unsent(aborted))

    h.acc.placement.on_failed = failed
    h.acc.placement.learn(
        view({"new": [0]}, denied=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    )
    assert reported == [receipts[1].error, receipts[4].error]
    assert sum(receipt.count for receipt in dropped) == 3
    assert all(last_of(receipt).error is not None for receipt in receipts)
    assert h.acc.backlog.is_empty
    assert h.used() == 0


def last_of(receipt: Receipt) -> Receipt:
    while receipt.moved is not None:
        receipt = receipt.moved[0][0]
    return receipt


# ---- the end of the transaction's time -----------------------------------------------


def test_the_deadline_holds_for_batches_that_begin_after_an_idle_time() -> None:
    h = Harness(is_idempotent=True)
    h.acc.expire_at(20.0)
    h.put(0, b"first")
    h.acc.completion.acknowledged(h.take(), 0, -1)
    assert h.acc.outbox.outlook(1.0).wake_at == float("inf")
    receipt = h.put(0, b"second", now=15.0)
    batch = h.take(now=15.0)
    assert values(batch) == [b"second"]
    assert h.acc.outbox.outlook(15.0).wake_at == 20.0
    assert h.acc.expire(19.0) == []
    assert h.acc.backlog.expires_at == 20.0
    assert h.acc.expire(20.0) == [receipt]
    assert "before the end of its transaction" in str(receipt.error)
    assert not h.acc.backlog.is_empty
    h.acc.completion.acknowledged(batch, 1, -1)
    assert h.acc.backlog.is_empty


# ---- laws ----------------------------------------------------------------------------


class Log:
    """A partition's log, which checks sequence numbers as brokers do.

    Args:
        checks_first: whether the first number of a producer must be 0 (TV2).
    """

    def __init__(self, *, checks_first: bool) -> None:
        self._checks_first = checks_first
        self._epoch = -1
        self._known: list[tuple[int, int]] = []
        self.records: list[int] = []

    def append(self, batch: ProduceBatch) -> str:
        assert batch.identity is not None
        epoch, first = batch.identity.epoch, batch.base_sequence
        last = first + batch.count - 1
        assert epoch >= self._epoch, "a batch of a transaction that has ended"
        if (first, last) in self._known and epoch == self._epoch:
            return "acknowledged"
        known = self._known if epoch == self._epoch else []
        expected = known[-1][1] + 1 if known else 0
        is_unknown = self._epoch < 0 and not self._checks_first
        if first != expected and not is_unknown:
            return "gap"
        self._epoch = epoch
        self._known = [*known, (first, last)][-MAX_UNDER_WAY:]
        self.records += numbers(batch)
        return "acknowledged"

    def forget(self) -> None:
        """Lose what is known of producers."""
        self._epoch, self._known = -1, []

    def end(self, epoch: int) -> None:
        """Write the marker of a transaction; in TV2 it has the next epoch."""
        if self._epoch not in {-1, epoch}:
            self._epoch, self._known = epoch, []


def numbers(batch: ProduceBatch) -> list[int]:
    return [int(value[:8]) for value in values(batch) if value]


class World:
    """Does to a transactional producer whatever may happen, and keeps the books.

    It treats the accumulator as the sender and the transaction manager do: a failed
    record that fails leaves only an abort, which drops what was never sent.
    """

    def __init__(self, *, is_tv2: bool) -> None:
        self.is_tv2 = is_tv2
        self.identity = ProducerIdentity(is_transactional=True)
        self.identity.is_first_checked = is_tv2
        self.given = IdAndEpoch(1, 0)
        self.identity.obtained(self.given)
        self.limits = replace(
            LIMITS, buffer_memory=1_500, batch_size=100, delivery_timeout=30
        )
        self.acc = Accumulator(
            self.limits,
            Chooser(lambda: 0.0),
            self.identity,
            lambda size: BatchBuilder(target_size=size, transactional=True),
            OpenBatches(lambda: 0, 1_000),
        )
        self.acc.placement.learn(view({"t": [0, 0]}))
        self.logs = [Log(checks_first=is_tv2) for _ in range(2)]
        self.now = 0.0
        self.number = 0
        # Requests on the wire, oldest first, and what the broker has said to them.
        self.wire: deque[tuple[ProduceBatch, str]] = deque()
        self.accepted: list[tuple[int, int, Receipt, int]] = []
        self.begin()

    # The transaction manager

    def begin(self) -> None:
        self.is_open = True
        self.has_harm = False
        self.admitted: set[TopicPartition] = set()
        if not self.is_tv2:
            self.acc.gate.admitted = self.admitted
        self.acc.expire_at(self.now + 60)

    def failed(self) -> None:
        self.has_harm = True
        if self.is_open:
            self.abort(0)

    def abort(self, number: int) -> None:
        def error(batch: ProduceBatch | None) -> Exception:
            self.has_harm |= batch is not None and batch.identity is not None
            return aborted(batch)

        self.is_open = False
        uncertain = [batch for batch in self.waiting() if batch.is_uncertain]
        dropped = self.acc.drop_unsent(error)
        assert all(receipt.error is not None for receipt in dropped)
        assert self.waiting() == uncertain

    def waiting(self) -> list[ProduceBatch]:
        queues = self.acc.backlog.active.values()
        return [batch for queue in queues for batch in queue.waiting]

    def batches_ended(self) -> None:
        if self.identity.has_gap:
            self.identity.has_gap = False
            self.failed()
        if not self.is_open:
            self.abort(0)
        if not self.is_open and self.acc.backlog.is_empty:
            assert not self.wire
            self.end()

    def end(self) -> None:
        current = self.identity.current
        assert current is not None
        if self.is_tv2 or self.has_harm:
            current = IdAndEpoch(1, current.epoch + 1)
            self.identity.obtained(current)
        self.given = current
        if self.is_tv2:
            for log in self.logs:
                log.end(current.epoch)
        self.begin()

    # Steps

    def put(self, number: int) -> None:
        if not self.is_open:
            return
        value = b"%08d" % self.number + b"x" * (number * 9)
        partition = number % 2
        try:
            receipt = append(self.acc, "t", partition, record(value), self.now)
        except BufferFull:
            return
        self.accepted.append((self.number, partition, receipt, receipt.count - 1))
        self.number += 1

    def admit(self, number: int) -> None:
        wanted = self.acc.outbox.partitions_to_add()
        assert not (self.is_tv2 and wanted)
        if self.is_open:
            self.admitted.update(wanted[: 1 + number % 2])

    def drain(self, number: int) -> None:
        for batch in self.acc.outbox.drain(0, self.now):
            assert batch.identity == self.given
            assert self.is_tv2 or batch.partition in self.admitted
            self.wire.append((batch, ""))
            queue = self.acc.backlog.active[batch.partition]
            assert queue.sequence is not None
            assert len(queue.sequence.under_way) <= MAX_UNDER_WAY

    def serve(self, number: int) -> None:
        self.say("")

    def refuse(self, number: int) -> None:
        self.say("refused")

    def reject(self, number: int) -> None:
        self.say("failed")

    def say(self, said: str) -> None:
        for at, (batch, before) in enumerate(self.wire):
            if not before:
                log = self.logs[batch.partition.partition]
                self.wire[at] = (batch, said or log.append(batch))
                return

    def hear(self, number: int) -> None:
        if not self.wire or not self.wire[0][1]:
            return
        batch, said = self.wire.popleft()
        completion, cause = self.acc.completion, ValueError(said)
        if said == "acknowledged":
            completion.acknowledged(batch, 0, -1)
        elif said == "refused":
            completion.refused(batch, cause, self.now + number)
        elif said == "gap":
            completion.out_of_order(batch, cause, self.now + number)
        else:
            completion.failed(batch, cause)
            self.failed()
        self.batches_ended()

    def forget(self, number: int) -> None:
        # What is sent a second time could be written a second time.
        if not self.wire and not any(batch.is_uncertain for batch in self.waiting()):
            self.logs[number % 2].forget()

    def cut(self, number: int) -> None:
        while self.wire:
            batch, _ = self.wire.popleft()
            self.acc.completion.lost(batch, ValueError("lost"), self.now + number)
        self.batches_ended()

    def expire(self, number: int) -> None:
        self.now += number * 5
        if self.acc.expire(self.now):
            self.failed()
        self.batches_ended()

    # The end

    def settle(self, rounds: int = 60) -> None:
        """Without further faults, everything is answered long before it expires."""
        for _ in range(rounds):
            self.now += 0.1
            self.admit(1)
            self.drain(0)
            self.serve(0)
            self.hear(0)
            self.batches_ended()

    def finish(self) -> None:
        self.now += 10  # the back-off of what was refused
        self.settle()
        if self.is_open:
            self.abort(0)
            self.settle(1)
        assert self.is_open, "the abort has not ended"
        # Both partitions can be written to in the next transaction.
        first = self.number
        self.put(0)
        self.put(1)
        self.settle()
        assert self.is_open
        assert self.acc.backlog.is_empty
        assert self.acc.statistics().used_bytes == 0
        written: tuple[list[int], list[int]] = ([], [])
        for number, partition, receipt, index in self.accepted:
            while receipt.moved is not None:
                receipt, index = receipt.moved[index]
            assert receipt.is_settled
            if receipt.error is None:
                written[partition].append(number)
            else:
                assert number < first
        for log, acknowledged in zip(self.logs, written, strict=True):
            assert log.records == sorted(set(log.records))
            assert set(acknowledged) <= set(log.records)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["put"] * 4
            + ["admit", "drain", "drain", "serve", "serve", "hear", "hear"]
            + ["refuse", "reject", "forget", "cut", "expire", "abort"]
        ),
        st.integers(0, 7),
    ),
    # Without a lower limit most examples have about five steps.
    min_size=60,
    max_size=120,
)


@pytest.mark.parametrize("is_tv2", [False, True])
@settings(max_examples=100)
@given(steps=STEPS)
def test_transactions_lose_and_repeat_nothing_and_end(
    is_tv2: bool, steps: list[tuple[str, int]]
) -> None:
    world = World(is_tv2=is_tv2)
    for step, number in steps:
        world.now += 0.1
        getattr(world, step)(number)
    world.finish()


@pytest.mark.parametrize("is_tv2", [False, True])
def test_five_go_at_once_where_brokers_check_the_first_number(is_tv2: bool) -> None:
    world = World(is_tv2=is_tv2)
    for _ in range(7):
        world.put(4)  # one batch each
    for _ in range(7):
        world.admit(1)
        world.drain(0)
    assert len(world.wire) == (MAX_UNDER_WAY if is_tv2 else 1)
    world.settle()
    assert world.logs[0].records == list(range(7))


def test_a_gap_is_reported_and_nothing_is_numbered_until_there_is_an_identity() -> None:
    world = World(is_tv2=True)
    world.put(4)
    world.put(4)
    world.drain(0)
    world.drain(0)
    first, _ = world.wire.popleft()
    second, _ = world.wire.popleft()
    completion = world.acc.completion
    completion.failed(first, ValueError("failed"))
    completion.out_of_order(second, ValueError("gap"), 0.0)
    world.drain(0)
    assert not world.wire
    assert world.identity.has_gap
    assert world.identity.current == IdAndEpoch(1, 0)
    world.given = IdAndEpoch(1, 1)
    world.identity.obtained(world.given)
    assert not world.identity.has_gap
    world.drain(0)
    assert [batch for batch, _ in world.wire] == [second]
    assert (second.identity, second.base_sequence) == (IdAndEpoch(1, 1), 0)
