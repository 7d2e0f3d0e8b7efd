"""Waiting for deliveries: until one record, or all of many, is settled.

`Delivery` itself is part of the codec, which makes one for every record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextvars import Context
from typing import Any

from kafkaio._machines.accumulator import Receipt
from kafkaio._records._impl import Delivery as Delivery
from kafkaio._runtime.lifecycle import Lifecycle
from kafkaio.types import RecordMetadata


def waiting_for(
    life: Lifecycle,
) -> Callable[[Delivery], Generator[object, None, RecordMetadata]]:
    """Return what ``await delivery`` runs while the record is not settled.

    Args:
        life: has the loop and process in which the producer was started.
    """

    def until_done(delivery: Delivery) -> Generator[object, None, RecordMetadata]:
        """Wait until a record is acknowledged.

        Returns:
            Where it was written.

        Raises:
            KafkaError: the record failed; see `Delivery`.
            ClosedError: another event loop runs, or another process; the record may
                still be written.
        """
        loop, home = asyncio.get_running_loop(), life.home
        assert home is not None
        if loop is not home.loop or home.is_elsewhere:  # saves the call
            home.check()
        receipt = delivery.receipt()
        while not receipt.is_settled:
            yield from _wait(receipt, loop)
            receipt = delivery.receipt()
        return delivery.result()

    # A function and not an object with these: calling an object costs more.
    until_done.loop = CallbackLoop(life)  # type: ignore[attr-defined]
    return until_done


class CallbackLoop:
    """Calls what was added to deliveries, in the loop of their producer.

    Args:
        life: has the loop and the process.
    """

    __slots__ = ("_life",)

    def __init__(self, life: Lifecycle) -> None:
        self._life = life

    def check(self) -> None:
        """Raise unless that loop runs, in its process.

        Raises:
            ClosedError: it does not.
        """
        home = self._life.home
        assert home is not None
        home.check()

    def call_soon(
        self, function: Callable[[Any], object], delivery: object, context: Context
    ) -> None:
        """Call a function with a delivery in the loop's next turn, if there is one."""
        home = self._life.home
        assert home is not None
        # In a forked process the loop is that of the parent; a closed one refuses.
        if home.is_elsewhere or home.loop.is_closed():
            return
        try:
            home.loop.call_soon(function, delivery, context=context)
        except Exception as error:  # noqa: BLE001 - it would fail the whole producer
            # A loop in debug mode refuses coroutine functions and what is no function.
            text = "a done callback of a delivery cannot be called"
            report = {"message": text, "exception": error, "callback": function}
            home.loop.call_exception_handler(report)


def _wait(
    receipt: Receipt, loop: asyncio.AbstractEventLoop
) -> Generator[object, None, None]:
    # Each waiter has its own future: cancelling a shared one would cancel all waiters.
    waiter: asyncio.Future[None] = loop.create_future()
    receipt.when_settled(waiter)
    try:
        yield from waiter
    except BaseException:
        receipt.forget(waiter)
        raise


async def settled(receipts: list[Receipt]) -> None:
    """Wait until all of ``receipts`` are settled, by success or failure."""
    pending = list(receipts)
    while pending:
        receipt = pending.pop()
        if not receipt.is_settled:
            await _Settled(receipt)
        if receipt.moved is not None:
            pending += {part for part, _ in receipt.moved}


def unsettled(receipts: list[Receipt]) -> Receipt | None:
    """Return a receipt that is not settled; None if all of ``receipts`` are."""
    pending = list(receipts)
    while pending:
        receipt = pending.pop()
        if not receipt.is_settled:
            return receipt
        if receipt.moved is not None:
            pending += {part for part, _ in receipt.moved}
    return None


class _Settled:
    __slots__ = ("_receipt",)

    def __init__(self, receipt: Receipt) -> None:
        self._receipt = receipt

    def __await__(self) -> Generator[object, None, None]:
        return _wait(self._receipt, asyncio.get_running_loop())
