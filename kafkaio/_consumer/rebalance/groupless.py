"""Assigns every partition of the topics that are read without a group.

A partition that appears while the consumer reads is new: it begins where
``auto_offset_reset_new_partitions`` says, at its start by default, so that nothing that
is written to it is missed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kafkaio._client.cluster import Cluster
from kafkaio._config import ConsumerConfig
from kafkaio._consumer.reading.reader import Reader
from kafkaio._consumer.rebalance.assignment import PartitionAssignment
from kafkaio._consumer.wanted import ReadSelection
from kafkaio._machines.refresh import ALL_TOPICS
from kafkaio._runtime.scopes import CancelScope
from kafkaio._runtime.wakeup import Wakeup
from kafkaio.errors import KafkaError
from kafkaio.protocol.messages.metadata import MetadataRequest
from kafkaio.types import TopicPartition


class GrouplessAssigner:
    """Assigns the partitions of topics for a consumer without a group.

    Topics are discovered, and all their partitions assigned. Fixed partitions are
    assigned already: here an error is raised for those that the cluster does not have,
    or that may not be described to this client.

    Args:
        wanted: returns the selection of the user.
        assignment: the assignment to change.
        reader: hands the records out.
        cluster: discovers the topics.
        config: the consumer's options.
    """

    def __init__(
        self,
        wanted: Callable[[], ReadSelection],
        assignment: PartitionAssignment,
        reader: Reader,
        cluster: Cluster,
        config: ConsumerConfig,
    ) -> None:
        self._wanted = wanted
        self._assignment = assignment
        self._reader = reader
        self._cluster = cluster
        self._config = config
        self._wakeup = Wakeup()
        # The selection for which partitions were assigned last: a partition that
        # appears in it afterwards is new.
        self._done_for: ReadSelection | None = None
        # The partitions of the topics subscribed to; and those that were dropped with
        # an earlier subscription and are not reported to the user yet.
        self._of_topics = frozenset[TopicPartition]()
        self._gone = frozenset[TopicPartition]()
        # A wait that ends as soon as something else is wanted than this.
        self._wait: tuple[ReadSelection, CancelScope] | None = None

    def wake(self) -> None:
        """Update the assignment: the selection or the cluster has changed."""
        self._wakeup.notify()
        if self._wait is not None and self._wait[0] != self._wanted():
            self._wait[1].cancel()

    def start_over(self) -> None:
        """Forget the selection: the next one is new, even if it is the same."""
        self._done_for = None
        self._gone |= self._of_topics
        self._of_topics = frozenset()

    async def run(self) -> None:
        """Assign the partitions that exist, whenever they change."""
        pause = self._config.retry_backoff_max_ms / 1000
        while True:
            await self._wakeup.wait()
            wanted = self._wanted()
            try:
                await self.update(self._config.default_api_timeout_ms / 1000)
            except KafkaError as error:
                self._reader.fail(error)
                # The metadata that led to this error woke this task as well. Without a
                # pause the error would be reported again at once.
                with self._waiting(wanted):
                    await asyncio.sleep(pause)
                self.wake()

    async def update(self, within: float) -> None:
        """Assign the partitions that exist now, once they are known.

        Args:
            within: seconds to wait for topics and partitions.

        Raises:
            UnknownTopicOrPartition: a topic wanted by name, or a partition, did not
                appear in time.
            AuthorizationError: a topic may not be described to this client.
        """
        gone, self._gone = self._gone, frozenset()
        await self._assignment.announce_unsubscribed(gone)
        wanted = self._wanted()
        if wanted.is_subscription and self._config.group_id is not None:
            self._done_for = None
            return
        is_new = self._done_for != wanted
        if is_new:
            with self._waiting(wanted) as scope:
                await self._discover(wanted, within)
            if scope.cancelled_caught or self._wanted() != wanted:
                return  # the call that changed the selection has woken this task
            self._done_for = wanted
        if wanted.is_subscription:
            there = wanted.partitions_in(
                self._cluster.view,
                with_internal=not self._config.exclude_internal_topics,
            )
            await self._assign(frozenset(there), are_new=not is_new)

    async def _assign(
        self, partitions: frozenset[TopicPartition], *, are_new: bool
    ) -> None:
        """Read exactly these partitions, all of the topics wanted; none has commits.

        Args:
            partitions: every partition there is.
            are_new: whether those added came after the subscription.
        """
        reader = self._reader
        gone = frozenset(tp for tp in reader.positions if tp not in partitions)
        added = frozenset(tp for tp in partitions if tp not in reader.positions)
        self._of_topics = partitions
        self._assignment.drop(gone)
        for tp in sorted(added):
            reader.assign(tp, has_commits=False, is_new=are_new)
        await self._assignment.announce(added, gone)

    @contextmanager
    def _waiting(self, wanted: ReadSelection) -> Iterator[CancelScope]:
        # Whoever wants something else need not wait until this is found.
        with CancelScope() as scope:
            self._wait = wanted, scope
            try:
                yield scope
            finally:
                self._wait = None

    async def _discover(self, wanted: ReadSelection, within: float) -> None:
        cluster = self._cluster
        if wanted.partitions is not None:
            await cluster.wait_for_partitions(wanted.partitions, within)
            return
        names = wanted.topics
        if wanted.pattern is not None:
            answer = await cluster.request(MetadataRequest(topics=None), timeout=within)
            hides_internal = self._config.exclude_internal_topics
            names = frozenset(
                topic.name
                for topic in answer.topics
                if topic.name is not None
                and wanted.matches(topic.name)
                and not (topic.is_internal and hides_internal)
            )
        self._assignment.watch_topics(ALL_TOPICS if wanted.pattern else names)
        await cluster.wait_for_topics(names or (), within)
