"""Sticky: balanced, but all members release everything before each rebalance.

A member's user data has what it owned last, because it owns nothing when it joins. A
group changes from here to ``cooperative-sticky`` by two rolling restarts: one with both
names, one with the new name alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from itertools import groupby
from typing import ClassVar

from kafkaio._dataclass import dataclass, replace
from kafkaio._machines.membership.assignors.balance import balance
from kafkaio._machines.membership.layout import Layout
from kafkaio._machines.membership.subscription import Subscription
from kafkaio.errors import ProtocolError
from kafkaio.protocol import _codec as codec
from kafkaio.protocol._message import Data, Field
from kafkaio.protocol.messages import consumer_protocol_assignment as assignments
from kafkaio.types import TopicPartition


@dataclass(slots=True, kw_only=True)
class _StickyUserData(Data):
    # Kafka publishes no schema of it. Version 0 has no generation, and the data do not
    # tell their version.
    NAME: ClassVar[str] = "StickyUserData"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = None
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("previous", assignments.TopicPartition, (0, 1), array=True),
        Field("generation", "int32", (1, 1), default=-1, ignorable=True),
    )

    previous: list[assignments.TopicPartition] = field(default_factory=list)
    generation: int = -1


class StickyAssignor:
    """The assignor that Kafka calls ``sticky``."""

    name = "sticky"
    cooperative = False

    def user_data(self, subscription: Subscription) -> bytes | None:
        """The partitions that the member owned last, and in which generation."""
        previous = [
            assignments.TopicPartition(
                topic=topic, partitions=[tp.partition for tp in group]
            )
            for topic, group in groupby(sorted(subscription.owned), lambda tp: tp.topic)
        ]
        data = _StickyUserData(previous=previous, generation=subscription.generation)
        return codec.encode(data, data.MAX_VERSION)

    def assign(
        self, layout: Layout, members: Mapping[str, Subscription]
    ) -> dict[str, list[TopicPartition]]:
        """The partitions of each member."""
        members = {member: _with_previous(s) for member, s in members.items()}
        return {m: sorted(assigned) for m, assigned in balance(layout, members).items()}


def _with_previous(subscription: Subscription) -> Subscription:
    data = _read(subscription.user_data or b"")
    return replace(
        subscription,
        owned=frozenset(
            TopicPartition(entry.topic, number)
            for entry in data.previous
            for number in entry.partitions
        ),
        generation=data.generation,
    )


def _read(blob: bytes) -> _StickyUserData:
    for version in (1, 0):
        try:
            return codec.decode(_StickyUserData, version, blob)
        except ProtocolError:
            continue
    return _StickyUserData()  # a new member, or unknown data: it owned nothing
