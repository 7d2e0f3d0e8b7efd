"""Batches of a transactional producer: what is dropped, expires and is numbered."""

from __future__ import annotations

from typing import Any

from kafkaio._machines.accumulator import ProduceBatch, Receipt
from kafkaio.protocol.error_codes import ErrorCode
from tests.unit.machines.test_accumulator import Harness, values, view


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
    assert h.acc.is_drained
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
    h.acc.landing.acknowledged(h.take(), 0, -1)
    assert h.acc.outbox.outlook(1.0).wake_at == float("inf")
    receipt = h.put(0, b"second", now=15.0)
    batch = h.take(now=15.0)
    assert values(batch) == [b"second"]
    assert h.acc.outbox.outlook(15.0).wake_at == 20.0
    assert h.acc.expire(19.0) == []
    assert h.acc.backlog.expires_at == 20.0
    assert h.acc.expire(20.0) == [receipt]
    assert "before the end of its transaction" in str(receipt.error)
    assert not h.acc.is_drained
    h.acc.landing.acknowledged(batch, 1, -1)
    assert h.acc.is_drained
