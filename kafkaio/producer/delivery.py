"""Waiting for records on their way; the handle itself is made by the codec."""

from __future__ import annotations

import asyncio
from collections.abc import Generator

from kafkaio._machines.accumulator import Receipt
from kafkaio._records._impl import Delivery
from kafkaio.types import RecordMetadata

__all__ = ["Delivery", "settled", "until_done"]


def until_done(delivery: Delivery) -> Generator[object, None, RecordMetadata]:
    """Wait until a record is acknowledged; what ``await delivery`` runs if it is not.

    Returns:
        Where it was written.

    Raises:
        KafkaError: the record failed; see `Delivery`.
    """
    receipt = delivery.receipt()
    while not receipt.is_settled:
        yield from _wait(receipt)
        receipt = delivery.receipt()
    return delivery.result()


def _wait(receipt: Receipt) -> Generator[object, None, None]:
    # A future of its own for each waiter: cancelling a shared one would cancel all.
    waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    receipt.when_settled(waiter)
    try:
        yield from waiter
    except BaseException:
        receipt.forget(waiter)
        raise


async def settled(receipts: list[Receipt]) -> None:
    """Wait until all of ``receipts`` are settled, whatever became of the records."""
    pending = list(receipts)
    while pending:
        receipt = pending.pop()
        if not receipt.is_settled:
            await _Settled(receipt)
        if receipt.moved is not None:
            pending += {part for part, _ in receipt.moved}


class _Settled:
    __slots__ = ("_receipt",)

    def __init__(self, receipt: Receipt) -> None:
        self._receipt = receipt

    def __await__(self) -> Generator[object, None, None]:
        return _wait(self._receipt)
