"""Finds which partitions without a committed offset are new.

With ``auto_offset_reset="latest"`` a group that has read nothing begins at the end of
the log. A partition that is added later is discovered by the producers first. If the
consumer began at its end, it would skip everything written in between. So new
partitions have a policy of their own, ``auto_offset_reset_new_partitions`` (KIP-1327),
which reads them from their start by default.

`NewPartitionDetector` finds the partitions that were added since the subscription. For
the others the committed offsets decide: if the group has committed offsets for a topic,
partitions with higher numbers were added while the group was down.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING

from kafkaio._config import ConsumerConfig
from kafkaio._consumer.wanted import ReadSelection
from kafkaio._machines.backoff import Backoff
from kafkaio._machines.metadata import ClusterView
from kafkaio._machines.positions import (
    KnownTopic,
    NewPartitionDetector,
    follows_committed,
)
from kafkaio._runtime.clock import roll
from kafkaio.errors import KafkaError
from kafkaio.protocol._message import ZERO_UUID
from kafkaio.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponseTopic,
)
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    from kafkaio._client.ports import ClusterPort

#: Returns the partitions with a committed offset among some, within some seconds.
WithOffsets = Callable[
    [Collection[TopicPartition], float], Awaitable[Collection[TopicPartition]]
]


class NewcomerLookup:
    """Finds which partitions are new to this consumer, or to its group.

    Args:
        cluster: has the metadata, and lists the topics.
        config: the consumer's options.
        with_offsets: finds the partitions with committed offsets; None without a group.
    """

    def __init__(
        self,
        cluster: ClusterPort,
        config: ConsumerConfig,
        with_offsets: WithOffsets | None,
    ) -> None:
        self._cluster = cluster
        self._with_offsets = with_offsets
        self._timeout = config.request_timeout_ms / 1000
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms)
        policy = config.auto_offset_reset
        # With equal policies it makes no difference whether a partition is new.
        self._matters = policy != config.auto_offset_reset_new_partitions
        # With "none" the user asks for an error for every missing offset. An inference
        # from other offsets must not suppress it.
        self._infers = policy != "none"
        self._machine = NewPartitionDetector()
        # The subscription that the machine has, to recognize a repeated one.
        self._subscribed: ReadSelection | None = None

    def subscribe(self, wanted: ReadSelection) -> bool:
        """Remember the topics of a subscription as they are now.

        Returns:
            Whether the topics have to be listed (`list_topics`).
        """
        if not self._matters or wanted == self._subscribed:
            return False
        self._subscribed = wanted
        self._machine.subscribed(
            wanted.matches, wanted.topics or (), self._cluster.view
        )
        return wanted.pattern is not None

    def described(self, view: ClusterView) -> None:
        """Take new metadata."""
        self._machine.described(view)

    async def list_topics(self) -> None:
        """List the topics that match the pattern, until that succeeds."""
        wanted, attempts = self._subscribed, 0
        # Another subscription, which may come during any await, has a list of its own.
        while wanted is not None and wanted == self._subscribed:
            try:
                answer = await self._cluster.request(
                    MetadataRequest(topics=None), timeout=self._timeout
                )
            except KafkaError as error:
                delay = self._backoff.delay(attempts, roll())
                attempts += 1
                self._cluster.observer.retrying(
                    "list the topics", attempts, delay, error
                )
                await asyncio.sleep(delay)
                continue
            if wanted == self._subscribed:
                self._machine.listed(
                    {
                        topic.name: _known(topic)
                        for topic in answer.topics
                        if topic.name is not None and wanted.matches(topic.name)
                    }
                )
            return

    def is_created_again(self, tp: TopicPartition) -> bool:
        """Whether a partition's topic was deleted and created again meanwhile."""
        return self._machine.is_created_again(tp.topic, self._cluster.view)

    async def among(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, bool]:
        """Return for each partition without a committed offset whether it is new.

        Partitions for which this is not known yet are left out: ask again.

        Raises:
            KafkaError: the group's offsets could not be looked up.
        """
        wanted = self._subscribed
        if not self._matters or wanted is None:
            return dict.fromkeys(partitions, False)
        found, old = dict[TopicPartition, bool](), list[TopicPartition]()
        for tp in partitions:
            # Assigned by hand, or not subscribed to any more.
            if not wanted.matches(tp.topic):
                found[tp] = False
            elif (is_new := self._machine.is_new(tp, self._cluster.view)) is not None:
                found[tp] = is_new
                if not is_new:
                    old.append(tp)
        if self._infers:
            found |= dict.fromkeys(await self._added_while_down(old, partitions), True)
        if new := [tp for tp, is_new in found.items() if is_new]:
            self._cluster.observer.new_partitions(new)
        return found

    async def _added_while_down(
        self,
        partitions: Collection[TopicPartition],
        uncommitted: Collection[TopicPartition],
    ) -> frozenset[TopicPartition]:
        # Compare with other partitions that existed at the subscription: the group has
        # read the topic if it has an offset of one of these.
        sisters = frozenset[TopicPartition]().union(
            *(self._machine.sisters(topic) for topic in {tp.topic for tp in partitions})
        )
        others = sisters.difference(uncommitted)
        if not others or self._with_offsets is None:
            return frozenset()
        committed = await self._with_offsets(others, self._timeout)
        return follows_committed(partitions, committed)


def _known(topic: MetadataResponseTopic) -> KnownTopic | None:
    if topic.error_code:
        return None
    topic_id = None if topic.topic_id == ZERO_UUID else topic.topic_id
    return KnownTopic(topic_id, len(topic.partitions))
