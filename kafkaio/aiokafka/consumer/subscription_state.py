"""What a consumer is subscribed to, as programs and libraries look at it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection
from enum import Enum

from kafkaio import TopicPartition
from kafkaio.aiokafka import errors
from kafkaio.aiokafka.abc import ConsumerRebalanceListener

__all__ = ["Assignment", "Subscription", "SubscriptionState", "SubscriptionType"]


class SubscriptionType(Enum):
    """How a consumer gets its partitions."""

    NONE = 1
    AUTO_TOPICS = 2
    AUTO_PATTERN = 3
    USER_ASSIGNED = 4


class Assignment:
    """The partitions that a consumer has.

    Attributes:
        tps: the partitions.
    """

    def __init__(self, tps: Collection[TopicPartition]) -> None:
        self.tps: frozenset[TopicPartition] = frozenset(tps)


class Subscription:
    """What was subscribed to by one call.

    Args:
        topics: returns the topics.
        assigned: returns the partitions that the consumer has now.

    Attributes:
        active: whether it is in force.
        is_assigned: whether partitions were assigned for it once, even none.
    """

    def __init__(
        self,
        topics: Callable[[], frozenset[str]],
        assigned: Callable[[], frozenset[TopicPartition]],
    ) -> None:
        self._topics = topics
        self._assigned = assigned
        self.active = True
        self.is_assigned = False

    @property
    def topics(self) -> frozenset[str]:
        """The topics; with a pattern those that match it by now."""
        return self._topics()

    @property
    def assignment(self) -> Assignment | None:
        """The partitions; None before any were assigned."""
        return Assignment(self._assigned()) if self.is_assigned else None


class SubscriptionState:
    """The subscription of a consumer.

    Args:
        assigned: returns the partitions that the consumer has now.
        matching: returns the topics that a pattern matches by now.

    Attributes:
        changed: is set when partitions were assigned, or something else is to be read.
    """

    def __init__(
        self,
        assigned: Callable[[], frozenset[TopicPartition]],
        matching: Callable[[re.Pattern[str]], frozenset[str]],
    ) -> None:
        self._assigned = assigned
        self._matching = matching
        self._type = SubscriptionType.NONE
        self._subscription: Subscription | None = None
        self._pattern: re.Pattern[str] | None = None
        self._listener: ConsumerRebalanceListener | None = None
        self._waiters: list[asyncio.Future[None]] = []

    @property
    def subscription(self) -> Subscription | None:
        """The subscription; None without one."""
        return self._subscription

    @property
    def subscribed_pattern(self) -> re.Pattern[str] | None:
        """The pattern that was subscribed to."""
        return self._pattern

    @property
    def listener(self) -> ConsumerRebalanceListener | None:
        """The listener of the subscription."""
        return self._listener

    @property
    def topics(self) -> frozenset[str]:
        """The topics of the subscription; empty without one."""
        return frozenset() if self._subscription is None else self._subscription.topics

    def assigned_partitions(self) -> set[TopicPartition]:
        """Return the partitions that the consumer has now."""
        return set() if self._subscription is None else {*self._assigned()}

    def is_assigned(self, tp: TopicPartition) -> bool:
        """Whether the consumer has a partition now."""
        return self._subscription is not None and tp in self._assigned()

    def partitions_auto_assigned(self) -> bool:
        """Whether the consumer is subscribed to topics or to a pattern."""
        return self._type in (
            SubscriptionType.AUTO_TOPICS,
            SubscriptionType.AUTO_PATTERN,
        )

    def wait_for_assignment(self) -> asyncio.Future[None]:
        """Return a future that is done when partitions are assigned the next time."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        return waiter

    # ---- changes ---------------------------------------------------------------------

    def subscribe(
        self, topics: frozenset[str], listener: ConsumerRebalanceListener | None
    ) -> None:
        """Subscribe to topics.

        Raises:
            IllegalStateError: a pattern is subscribed to, or partitions are assigned.
        """
        self._begin(SubscriptionType.AUTO_TOPICS, lambda: topics)
        self._listener = listener

    def subscribe_pattern(
        self, pattern: re.Pattern[str], listener: ConsumerRebalanceListener | None
    ) -> None:
        """Subscribe to a pattern.

        Raises:
            IllegalStateError: topics are subscribed to, or partitions are assigned.
        """
        matching = self._matching
        self._begin(SubscriptionType.AUTO_PATTERN, lambda: matching(pattern))
        self._pattern, self._listener = pattern, listener

    def assign_from_user(self, partitions: Collection[TopicPartition]) -> None:
        """Take fixed partitions.

        Raises:
            IllegalStateError: something is subscribed to.
        """
        topics = frozenset(tp.topic for tp in partitions)
        self._begin(SubscriptionType.USER_ASSIGNED, lambda: topics)
        self.assigned()

    def unsubscribe(self) -> None:
        """End the subscription, or give up the fixed partitions."""
        if self._subscription is not None:
            self._subscription.active = False
        self._subscription = self._pattern = self._listener = None
        self._type = SubscriptionType.NONE

    def assigned(self) -> None:
        """Note that partitions were assigned."""
        if self._subscription is not None:
            self._subscription.is_assigned = True
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def check(self, kind: SubscriptionType) -> None:
        """Raise if the consumer gets its partitions in another way.

        Raises:
            IllegalStateError: it does.
        """
        if self._type not in (SubscriptionType.NONE, kind):
            raise errors.IllegalStateError(
                "Subscription to topics, partitions and pattern are mutually exclusive"
            )

    def _begin(
        self, kind: SubscriptionType, topics: Callable[[], frozenset[str]]
    ) -> None:
        self.check(kind)
        self._type = kind
        if self._subscription is not None:
            self._subscription.active = False
        self._subscription = Subscription(topics, self._assigned)
