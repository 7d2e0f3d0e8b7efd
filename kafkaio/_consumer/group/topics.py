"""The topics of a member: which it reads, their partitions, their names.

The coordinator matches a pattern where it can. Otherwise the client matches it, against
the names of all topics, each time it has new metadata.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kafkaio._client.metadata import undescribed
from kafkaio._config import ConsumerConfig
from kafkaio._machines.membership import effects as fx
from kafkaio._machines.membership.layout import Layout
from kafkaio._machines.membership.protocol import Effects, Membership
from kafkaio._machines.metadata import ClusterView
from kafkaio._machines.reactions import reaction
from kafkaio._machines.refresh import ALL_TOPICS, Topics
from kafkaio._runtime.clock import now, roll
from kafkaio.errors import KafkaError
from kafkaio.protocol import _api_numbers as apis
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    from kafkaio._client.ports import ClusterPort


class GroupTopics:
    """Passes topics to a member's machine: the selection, and the metadata.

    Args:
        cluster: has the metadata.
        config: the consumer's options.
        member: the machine.
    """

    def __init__(
        self, cluster: ClusterPort, config: ConsumerConfig, member: Membership
    ) -> None:
        self._cluster = cluster
        self._config = config
        #: The machine.
        self.member: Membership = member
        #: The user's pattern, None where topics are named.
        self.pattern: re.Pattern[str] | None = None
        # Whether the client matches the pattern.
        self._matches_here = False
        self._watched: Topics | None = None
        # Topics that the user named and the brokers refuse to describe, once reported.
        self._refused = set[str]()

    def subscribe(self, topics: frozenset[str] | re.Pattern[str]) -> Effects:
        """Read these topics, or all whose name the pattern matches."""
        self._match(is_here=False)
        self._refused.clear()
        if isinstance(topics, frozenset):
            self.pattern = None
            if any(map(self._cluster.view.topic_error, topics)):
                self._cluster.request_refresh()  # the error may be gone by now
            return self.member.subscribe(topics, now())
        self.pattern = topics
        effects = self.member.subscribe_pattern(
            topics, now(), exclude_internal=self._config.exclude_internal_topics
        )
        if effects is None:
            self.match_here()
            return ()
        return effects

    def unsubscribe(self) -> Effects:
        """Read nothing."""
        self.pattern = None
        self._match(is_here=False)
        return self.member.unsubscribe(now())

    def match_here(self) -> None:
        """Match the pattern on the client, with this metadata and all later."""
        self._match(is_here=True)
        self._cluster.request_refresh()

    def _match(self, *, is_here: bool) -> None:
        self._matches_here = is_here
        self.member.matches_on_client = is_here

    def hand_over(self, member: Membership) -> Effects:
        """Pass topics to another machine from now on, and this subscription first."""
        before, self.member = self.member, member
        if self.pattern is not None:
            return self.subscribe(self.pattern)
        return () if before.topics is None else self.subscribe(before.topics)

    def watch(self) -> None:
        """Keep the metadata fresh that the member needs."""
        named = self.member.topics or frozenset()
        named |= self.member.group_topics
        topics: Topics = ALL_TOPICS if self._matches_here else named
        if topics != self._watched:
            self._watched = topics
            self._cluster.watch_topics(self, topics or None)

    def unwatch(self) -> None:
        """The member needs no metadata any longer."""
        self._cluster.watch_topics(self, None)

    def updated(self, view: ClusterView) -> Effects:
        """There is new metadata."""
        effects: Effects = ()
        if self._matches_here:
            effects = self.member.subscribe(self._matching(view), now())
        else:
            effects = tuple(self._refusals(view))
        if self.member.is_leader:
            layout = _layout(self.member.group_topics, view)
            effects += self.member.metadata_changed(layout, now())
        return effects

    async def perform(
        self, effect: fx.ResolveTopics | fx.RefreshTopics | fx.NameTopics
    ) -> Effects:
        """Find the topics that the machine asks for.

        Returns:
            The effects that the machine decides.
        """
        match effect:
            case fx.ResolveTopics():
                return await self.resolve(effect)
            case fx.RefreshTopics():
                return await self.refresh(effect)
            case fx.NameTopics():
                return await self.name(effect)

    async def refresh(self, effect: fx.RefreshTopics) -> Effects:
        """Fetch metadata, so that JoinGroup carries every topic that matches now.

        `updated` is called with the new metadata and subscribes to them. Without an
        answer the member joins with what is known.
        """
        member = self.member
        try:
            await self._cluster.refresh(effect.timeout)
        except KafkaError as error:
            self._cluster.observer.retrying("group topics", 1, 0.0, error)
        return member.topics_refreshed(effect.ticket, now())

    async def resolve(self, effect: fx.ResolveTopics) -> Effects:
        """Find the partitions of the group's topics, and where they are."""
        member = self.member
        self.watch()
        unknown = (
            effect.topics - _layout(effect.topics, self._cluster.view).counts.keys()
        )
        if unknown:
            # One attempt: a topic that does not exist yet makes the group rebalance
            # when it is created. Heartbeats go on, but the other members wait for the
            # assignment, which this member computes.
            self._cluster.request_refresh(*unknown)
            limit = min(self._config.session_timeout_ms, 15_000) / 3000
            try:
                await self._cluster.wait_for_update(limit)
            except KafkaError as error:
                self._cluster.observer.retrying("group topics", 1, 0.0, error)
        layout = _layout(effect.topics, self._cluster.view)
        return member.topics_resolved(effect.ticket, layout, now())

    async def name(self, effect: fx.NameTopics) -> Effects:
        """Find the names of topics."""
        member = self.member
        limit = self._config.request_timeout_ms / 1000
        try:
            found = await self._cluster.topic_names(effect.topic_ids, limit)
        except KafkaError as error:
            if not error.retriable:
                raise
            self._cluster.observer.retrying("topic names", 1, 0.0, error)
            found = {}
        return member.topics_named(found, now(), roll())

    def _refusals(self, view: ClusterView) -> Iterator[fx.ReportError]:
        # A missing topic may be created. A refusal is reported to the user, once.
        for topic in sorted(self.member.topics or ()):
            error = view.topic_error(topic)
            if not error or reaction(apis.METADATA, error).retry:
                self._refused.discard(topic)
            elif topic not in self._refused:
                self._refused.add(topic)
                yield fx.ReportError(undescribed(topic, error))

    def _matching(self, view: ClusterView) -> frozenset[str]:
        assert self.pattern is not None
        hides = self._config.exclude_internal_topics
        return frozenset(
            name
            for name in view.topics
            if self.pattern.fullmatch(name)
            and view.partition_count(name) is not None
            and not (hides and view.is_internal(name))
        )


def _layout(topics: Iterable[str], view: ClusterView) -> Layout:
    parts = {topic: p for topic in topics if (p := view.partitions(topic))}
    partitions = {
        TopicPartition(topic, p.partition): p for topic in parts for p in parts[topic]
    }
    rack_of = {node: b.rack for node, b in view.brokers.items() if b.rack is not None}
    return Layout(
        {topic: len(found) for topic, found in parts.items()},
        {tp: p.leader for tp, p in partitions.items() if p.leader >= 0},
        {
            tp: frozenset(rack_of[node] for node in p.replicas if node in rack_of)
            for tp, p in partitions.items()
            if rack_of
        },
    )
