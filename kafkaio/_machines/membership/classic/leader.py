"""The leader of a classic group: it computes the assignment and watches the topics.

The coordinator names one member of each generation its leader, and tells it the
subscriptions of all members. A change of the metadata that the assignment was computed
from makes the leader ask for a rebalance.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import field
from typing import Final

from kafkaio._dataclass import dataclass
from kafkaio._machines.membership.layout import Layout
from kafkaio._machines.membership.subscription import (
    Assignor,
    Subscription,
    decode_subscription,
    encode_assignment,
)
from kafkaio.errors import MembershipError, ProtocolError
from kafkaio.protocol.messages.join_group import JoinGroupResponseMember
from kafkaio.types import TopicPartition

#: The most members of a group that one of them assigns for.
MAX_MEMBERS: Final = 10_000
#: The most topics and owned partitions in all subscriptions: the assignors take about
#: two seconds for them.
MAX_ENTRIES: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Leadership:
    """The knowledge of the leader of one generation.

    Attributes:
        members: subscriptions by member id.
        topics: all topics that a member subscribes to.
    """

    members: Mapping[str, Subscription]
    topics: frozenset[str]
    # The metadata that the assignment was computed from. The object is frozen, so the
    # one value stands in a list; it is written once, with the assignment.
    _basis: list[Layout] = field(default_factory=lambda: [Layout({})])
    # The members that have to release partitions by it; written then, too.
    _revoked: set[str] = field(default_factory=set)

    @classmethod
    def from_members(cls, members: Iterable[JoinGroupResponseMember]) -> Leadership:
        """Read the members' subscriptions.

        Raises:
            ProtocolError: one of them is malformed, or there is more than any group
                needs.
        """
        known: dict[str, Subscription] = {}
        entries = 0
        for member in members:
            subscription = decode_subscription(
                member.metadata, member.group_instance_id
            )
            known[member.member_id] = subscription
            entries += 1 + len(subscription.topics) + len(subscription.owned)
            if len(known) > MAX_MEMBERS or entries > MAX_ENTRIES:
                raise ProtocolError(
                    "the group is too large for an assignment by one of its members: "
                    f"at most {MAX_MEMBERS} members with {MAX_ENTRIES} subscribed "
                    "topics and owned partitions (use the KIP-848 protocol)"
                )
        topics = frozenset[str]().union(*(s.topics for s in known.values()))
        return cls(known, topics)

    def set_basis(self, layout: Layout) -> None:
        """Set the metadata that the assignment was computed from."""
        self._basis[:] = [layout.of(self.topics)]

    def assign(
        self, assignor: Assignor, layout: Layout
    ) -> tuple[tuple[str, bytes], ...]:
        """Compute the assignment of each member, encoded for SyncGroup.

        Unknown topics are left out. A partition that a member asks to be withheld is
        assigned to no member; the answer to that member lists those that no member
        owns any more.

        Raises:
            MembershipError: the assignor failed, or assigned a partition to one member
                before another had released it.
        """
        try:
            assignments = assignor.assign(layout.of(self.topics), self.members)
        except Exception as error:
            raise MembershipError(
                f"the assignor {assignor.name!r} failed: {error!r}"
            ) from error
        if assignor.cooperative:
            self._check_handover(assignor, assignments)
        self._revoked.update(
            member
            for member, subscription in self.members.items()
            if not subscription.owned <= frozenset(assignments.get(member, ()))
        )
        return self._encoded(assignments)

    def expect_revocations(self) -> None:
        """Assume that members have partitions to release: nothing is known of it."""
        self._revoked.update(self.members)

    @property
    def has_revocations(self) -> bool:
        """Whether a member has to release a partition that it owned when it joined.

        With a cooperative assignor it joins again as soon as it has released it.
        """
        return bool(self._revoked)

    def is_outdated(self, layout: Layout) -> bool:
        """Whether the partitions, or the racks that matter, have changed since.

        A new leader of a partition does not count: leaders move with every restart of a
        broker.
        """
        new, old = layout.of(self.topics), *self._basis
        uses_racks = any(s.rack is not None for s in self.members.values())
        return new.counts != old.counts or (uses_racks and new.has_racks_beyond(old))

    def _encoded(
        self, assignments: Mapping[str, Collection[TopicPartition]]
    ) -> tuple[tuple[str, bytes], ...]:
        # Sets that grow: a new one for each of many members takes quadratic time.
        withheld, owned = set[TopicPartition](), set[TopicPartition]()
        for subscription in self.members.values():
            withheld |= subscription.withheld
            owned |= subscription.owned
        return tuple(
            (
                member,
                encode_assignment(
                    frozenset(assignments.get(member, ())) - withheld,
                    subscription.withheld - owned if subscription.withheld else None,
                ),
            )
            for member, subscription in self.members.items()
        )

    def _check_handover(
        self, assignor: Assignor, assignments: Mapping[str, Collection[TopicPartition]]
    ) -> None:
        added, revoked = set[TopicPartition](), set[TopicPartition]()
        for member, subscription in self.members.items():
            assigned = frozenset(assignments.get(member, ()))
            added |= assigned - subscription.owned
            revoked |= subscription.owned - assigned
        if both := sorted(added & revoked):
            raise MembershipError(
                f"the cooperative assignor {assignor.name!r} assigned {both} to new "
                f"owners before the old ones had released them"
            )
