"""What the leader of a classic group does for it: divide, and watch the topics."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

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
    _counts: dict[str, int] = field(default_factory=dict)

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

    def note(self, counts: Mapping[str, int]) -> None:
        """These are the partition counts that the assignment rests on."""
        self._counts.update(self._of_group(counts))

    def assign(
        self, assignor: Assignor, counts: Mapping[str, int]
    ) -> tuple[tuple[str, bytes], ...]:
        """Everybody's share, encoded; a topic without a count is left out.

        Raises:
            MembershipError: the assignor failed, or gave a partition to one member
                before another had given it up.
        """
        try:
            shares = assignor.assign(self._of_group(counts), self.members)
        except Exception as error:
            raise MembershipError(
                f"the assignor {assignor.name!r} failed: {error!r}"
            ) from error
        if assignor.cooperative:
            self._check_handover(assignor, shares)
        return tuple(
            (member, encode_assignment(shares.get(member, ())))
            for member in self.members
        )

    def is_outdated(self, counts: Mapping[str, int]) -> bool:
        """Whether the assignment would come out of other partition counts by now."""
        return self._of_group(counts) != self._counts

    def _of_group(self, counts: Mapping[str, int]) -> dict[str, int]:
        return {topic: n for topic, n in counts.items() if topic in self.topics}

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
