"""Functions that are called when a delivery is done, for both codecs.

They are kept where tasks that await the delivery wait: among the waiters of its
receipt. So a delivery without them is as small as before, and costs what it did.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context, copy_context
from functools import partial
from typing import Any, Protocol, TypeAlias

from kafkaio.errors import UsageError

#: Gets the delivery.
DoneCallback: TypeAlias = Callable[[Any], object]


class LoopPort(Protocol):
    """The event loop of a producer."""

    def check(self) -> None:
        """Raise ClosedError unless that loop runs, in its process."""

    def call_soon(
        self, function: DoneCallback, delivery: object, context: Context
    ) -> None:
        """Call a function in the loop's next turn; must not raise."""


class WaiterPort(Protocol):
    """Waits for a receipt to be settled; a future is one."""

    def done(self) -> bool:
        """Return whether it has stopped waiting."""

    def set_result(self, result: None, /) -> None:
        """Notify it that the receipt is settled; must not raise."""


class ReceiptPort(Protocol):
    """The outcome of the records of a batch."""

    @property
    def is_settled(self) -> bool:
        """Whether it is known."""

    def when_settled(self, waiter: WaiterPort) -> None:
        """Notify a waiter when it is settled."""

    def waiter_like(self, waiter: WaiterPort) -> WaiterPort | None:
        """Return the waiter that is equal to one."""


class DeliveryPort(Protocol):
    """The delivery of one record."""

    def receipt(self) -> ReceiptPort:
        """Return its present receipt."""


class DoneCallbacks:
    """The functions to call when one delivery is done: a waiter of its receipts.

    Two of them are equal if they are of the same delivery, so that those of a record
    are found among all waiters of its batch without a search.

    Args:
        delivery: whose outcome is waited for.
        loop: calls the functions; None for one that is only compared.
        unsettled: returns a receipt that the delivery waits for; None if it is done.
    """

    __slots__ = ("_calls", "_delivery", "_is_waiting", "_loop", "_unsettled")

    def __init__(
        self,
        delivery: object,
        loop: LoopPort | None,
        unsettled: Callable[[], ReceiptPort | None],
    ) -> None:
        self._delivery = delivery
        self._loop = loop
        self._unsettled = unsettled
        self._calls: list[tuple[DoneCallback, Context]] = []
        self._is_waiting = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DoneCallbacks) and other._delivery is self._delivery

    def __hash__(self) -> int:
        return id(self._delivery)

    def add(self, function: DoneCallback, context: Context | None) -> None:
        """Call a function, once for each time that it is added.

        Args:
            function: gets the delivery.
            context: in which context; None for a copy of the present one.
        """
        self._calls.append((function, copy_context() if context is None else context))
        if not self._is_waiting:
            self.set_result(None)

    def remove(self, function: DoneCallback) -> int:
        """Do not call a function; return how often it was there."""
        kept = [call for call in self._calls if call[0] != function]
        removed = len(self._calls) - len(kept)
        self._calls[:] = kept
        return removed

    def done(self) -> bool:
        """Return False: it waits, even if there is nothing to call at present."""
        return False

    def set_result(self, result: None, /) -> None:
        """Call the functions, or wait for the next receipt.

        There is one if the record has moved to another batch, and if the delivery is
        that of a table.
        """
        del result
        receipt = self._unsettled()
        self._is_waiting = receipt is not None
        if receipt is not None:
            receipt.when_settled(self)
            return
        calls, self._calls = self._calls, []
        assert self._loop is not None
        for function, context in calls:
            self._loop.call_soon(function, self._delivery, context)


def add_done_callback(
    delivery: DeliveryPort,
    loop: LoopPort | None,
    function: DoneCallback,
    context: Context | None,
) -> None:
    """Call a function with the delivery of a record, soon after it is done.

    Args:
        delivery: the delivery.
        loop: the event loop of its producer; None if there is none.
        function: called by the event loop.
        context: in which context; None for a copy of the present one.

    Raises:
        UsageError: the delivery belongs to no event loop.
        ClosedError: another event loop runs, or another process.
    """
    if loop is None:
        raise UsageError("this delivery belongs to no event loop")
    loop.check()
    made = DoneCallbacks(delivery, loop, partial(_unsettled, delivery))
    found = delivery.receipt().waiter_like(made)
    (found if isinstance(found, DoneCallbacks) else made).add(function, context)


def remove_done_callback(delivery: DeliveryPort, function: DoneCallback) -> int:
    """Do not call a function with a record's delivery; return how often it was there.

    Args:
        delivery: the delivery.
        function: the function.
    """
    sought = DoneCallbacks(delivery, None, partial(_unsettled, delivery))
    found = delivery.receipt().waiter_like(sought)
    return found.remove(function) if isinstance(found, DoneCallbacks) else 0


def _unsettled(delivery: DeliveryPort) -> ReceiptPort | None:
    receipt = delivery.receipt()
    return None if receipt.is_settled else receipt
