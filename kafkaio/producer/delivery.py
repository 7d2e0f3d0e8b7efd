"""Waiting for records on their way; the handle itself is made by the codec."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator

from kafkaio._machines.accumulator import Receipt
from kafkaio._records._impl import Delivery
from kafkaio._runtime.unclosed import Home
from kafkaio.types import RecordMetadata

__all__ = ["Delivery", "settled", "waits_at"]


def waits_at(
    home: Home,
) -> Callable[[Delivery], Generator[object, None, RecordMetadata]]:
    """What ``await delivery`` runs if the record is not acknowledged yet.

    Args:
        home: where the producer was started.
    """

    def until_done(delivery: Delivery) -> Generator[object, None, RecordMetadata]:
        """Wait until a record is acknowledged.

        Returns:
            Where it was written.

        Raises:
            KafkaError: the record failed; see `Delivery`.
            ClosedError: the wrong event loop runs; the record may still be written.
        """
        loop = asyncio.get_running_loop()
        if loop is not home.loop or home.is_elsewhere:  # what `check` does, in line
            home.check()
        receipt = delivery.receipt()
        while not receipt.is_settled:
            yield from _wait(receipt, loop)
            receipt = delivery.receipt()
        return delivery.result()

    return until_done


def _wait(
    receipt: Receipt, loop: asyncio.AbstractEventLoop
) -> Generator[object, None, None]:
    # A future of its own for each waiter: cancelling a shared one would cancel all.
    waiter: asyncio.Future[None] = loop.create_future()
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
        return _wait(self._receipt, asyncio.get_running_loop())
