"""Rebalances of kafkaio's consumer, for a listener of aiokafka."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Collection
from typing import TypeAlias

from kafkaio import TopicPartition
from kafkaio.aiokafka.abc import ConsumerRebalanceListener
from kafkaio.aiokafka.consumer.subscription_state import SubscriptionState

_log = logging.getLogger(__name__)
_Method: TypeAlias = Callable[[set[TopicPartition]], Awaitable[None] | None]


class Listening:
    """Calls the listener of a subscription.

    As with aiokafka, each rebalance calls both of its methods: what is revoked first,
    which is nothing when the consumer joins. What they raise is logged.

    Args:
        subscription: has the listener.
        changed: called when the assignment has changed.
        has_group: whether there is a group: without one, no listener is called.
    """

    def __init__(
        self,
        subscription: SubscriptionState,
        changed: Callable[[], None],
        *,
        has_group: bool,
    ) -> None:
        self._subscription = subscription
        self._changed = changed
        self._has_group = has_group
        # Whether the listener knows of a revocation that no assignment has followed.
        self._was_revoked = False
        #: Whether the consumer stops: what it gives up then is not reported.
        self.is_stopping = False

    async def assigned(self, partitions: Collection[TopicPartition]) -> None:
        """Partitions were assigned, before anything of them is read."""
        self._subscription.assigned()
        self._changed()
        listener = self._listener
        if listener is None:
            return
        if not self._was_revoked:
            await _call(listener.on_partitions_revoked, ())
        self._was_revoked = False
        await _call(listener.on_partitions_assigned, partitions)

    async def revoked(self, partitions: Collection[TopicPartition]) -> None:
        """Partitions are about to be released, or are lost."""
        self._changed()
        listener = self._listener
        if listener is not None:
            self._was_revoked = True
            await _call(listener.on_partitions_revoked, partitions)

    @property
    def _listener(self) -> ConsumerRebalanceListener | None:
        if self.is_stopping or not self._has_group:
            return None
        return self._subscription.listener


async def _call(method: _Method, partitions: Collection[TopicPartition]) -> None:
    try:
        outcome = method({*partitions})
        if inspect.isawaitable(outcome):
            await outcome
    except Exception:  # noqa: BLE001 - logged: it must not end the rebalance
        _log.exception("the rebalance listener failed: %r", method)
