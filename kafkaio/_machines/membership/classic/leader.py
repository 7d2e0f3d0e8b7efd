"""What the leader of a classic group does for it: divide, and watch the topics."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import field

from kafkaio._dataclass import dataclass
from kafkaio._machines.membership.layout import Layout
from kafkaio._machines.membership.subscription import (
    Assignor,
    Subscription,
    decode_subscription,
    encode_assignment,
)
from kafkaio.errors import MembershipError
from kafkaio.protocol.messages.join_group import JoinGroupResponseMember
from kafkaio.types import TopicPartition

__all__ = ["Leadership"]


@dataclass(frozen=True, slots=True)
class Leadership:
    """The members of one generation, as told to its leader.

    Attributes:
        members: subscriptions by member id.
        topics: everything that anybody in the group reads.
    """

    members: Mapping[str, Subscription]
    topics: frozenset[str]
    # What the assignment was made from; written once, when it is made.
    _basis: list[Layout] = field(default_factory=lambda: [Layout({})])
    # Who has to give partitions up by it; written then, too.
    _revoked: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, members: Iterable[JoinGroupResponseMember]) -> Leadership:
        """Read the members' subscriptions.

        Raises:
            ProtocolError: one of them is malformed.
        """
        known = {
            member.member_id: decode_subscription(
                member.metadata, member.group_instance_id
            )
            for member in members
        }
        topics = frozenset[str]().union(*(s.topics for s in known.values()))
        return cls(known, topics)

    def note(self, layout: Layout) -> None:
        """This is what the assignment rests on."""
        self._basis[:] = [layout.of(self.topics)]

    def assign(
        self, assignor: Assignor, layout: Layout
    ) -> tuple[tuple[str, bytes], ...]:
        """Everybody's share, encoded; an unknown topic is left out.

        What a member asks to be withheld is in no share, and whoever asked is told
        what of it nobody owns any more.

        Raises:
            MembershipError: the assignor failed, or gave a partition to one member
                before another had given it up.
        """
        try:
            shares = assignor.assign(layout.of(self.topics), self.members)
        except Exception as error:
            raise MembershipError(
                f"the assignor {assignor.name!r} failed: {error!r}"
            ) from error
        if assignor.cooperative:
            self._check_handover(assignor, shares)
        self._revoked.update(
            member
            for member, subscription in self.members.items()
            if not subscription.owned <= frozenset(shares.get(member, ()))
        )
        return self._encoded(shares)

    @property
    def takes_any(self) -> bool:
        """Whether a member has to give up a partition that it owned when it joined.

        With a cooperative assignor it joins again as soon as it has done so.
        """
        return bool(self._revoked)

    def is_outdated(self, layout: Layout) -> bool:
        """Whether the assignment would rest on other partitions or racks by now.

        A new leader of a partition is no reason to rebalance: leaders move with every
        restart of a broker.
        """
        new, old = layout.of(self.topics), *self._basis
        uses_racks = any(s.rack is not None for s in self.members.values())
        return new.counts != old.counts or (uses_racks and new.has_racks_beyond(old))

    def _encoded(
        self, shares: Mapping[str, Collection[TopicPartition]]
    ) -> tuple[tuple[str, bytes], ...]:
        withheld, owned = frozenset[TopicPartition](), frozenset[TopicPartition]()
        for subscription in self.members.values():
            withheld |= subscription.withheld
            owned |= subscription.owned
        return tuple(
            (
                member,
                encode_assignment(
                    frozenset(shares.get(member, ())) - withheld,
                    subscription.withheld - owned if subscription.withheld else None,
                ),
            )
            for member, subscription in self.members.items()
        )

    def _check_handover(
        self, assignor: Assignor, shares: Mapping[str, Collection[TopicPartition]]
    ) -> None:
        added, revoked = set[TopicPartition](), set[TopicPartition]()
        for member, subscription in self.members.items():
            share = frozenset(shares.get(member, ()))
            added |= share - subscription.owned
            revoked |= subscription.owned - share
        if both := sorted(added & revoked):
            raise MembershipError(
                f"the cooperative assignor {assignor.name!r} gave {both} to new owners "
                f"before the old ones had given them up"
            )
