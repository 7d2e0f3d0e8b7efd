"""Groups that change their protocol while they have members (KIP-848)."""

from __future__ import annotations

from kafkaio.errors import ProtocolError
from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.testing.broker.refusal import Refusal
from kafkaio.testing.groups.assignors import Slot
from kafkaio.testing.groups.classic import ClassicGroup
from kafkaio.testing.groups.classic_member import Member, State
from kafkaio.testing.groups.config import GroupConfig
from kafkaio.testing.groups.embedded_protocol import (
    CONSUMER,
    read_assignment,
    read_subscription,
    slots_of,
    write_assignment,
)
from kafkaio.testing.groups.home import Home
from kafkaio.testing.groups.kip848 import ConsumerGroup
from kafkaio.testing.groups.kip848_member import ClassicSide, ConsumerMember

__all__ = ["downgraded", "upgraded"]


def upgraded(
    group: ClassicGroup, config: GroupConfig, home: Home, now: float
) -> ConsumerGroup:
    """Return a classic group as one of the consumer protocol; it is left as it is.

    Its generation becomes the epoch of the group, of the target and of every member,
    and what the leader gave out last becomes the target.

    Raises:
        Refusal: GROUP_ID_NOT_FOUND if the policy forbids it, and of members that do not
            say intelligibly what they read and have, or whose assignor needs more;
            UNKNOWN_SERVER_ERROR if they cannot be understood at all.
    """
    if not config.allows_upgrade:
        raise _impossible(group, "online upgrade is disabled")
    if group.protocol_type != CONSUMER:
        raise _impossible(
            group, "the group does not use the consumer embedded protocol"
        )
    found = ConsumerGroup(group.id, config, home)
    found.epoch = found.target_epoch = group.generation
    for one in group.members.values():
        member = _as_consumer(group, one, home)
        member.session_deadline = now + one.session_timeout
        if found.taken(member) & member.assigned.keys():
            # As Kafka, which takes two owners of a partition for its own fault.
            raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
        found.enter(member)
        found.target[member.id] = frozenset(member.assigned)
    found.subscriptions.look(found.members.values())
    return found


def _impossible(group: ClassicGroup, reason: str) -> Refusal:
    return Refusal(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {group.id} to consumer group because {reason}.",
    )


def _as_consumer(group: ClassicGroup, member: Member, home: Home) -> ConsumerMember:
    if group.protocol not in dict(member.protocols):
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
    try:
        assignment = read_assignment(member.assignment)
        said = read_subscription(member.metadata(group.protocol))
    except ProtocolError:
        reason = "the embedded consumer protocol is malformed"
        raise _impossible(group, reason) from None
    if assignment.user_data:
        raise _impossible(group, "an unsupported custom assignor is in use")
    topics = ((one.topic, one.partitions) for one in assignment.assigned_partitions)
    slots: list[Slot] = slots_of(topics, home)
    return ConsumerMember(
        id=member.id,
        instance_id=member.instance_id,
        rack=said.rack_id or None,
        client_id=member.client_id,
        client_host=member.client_host,
        epoch=group.generation,
        previous_epoch=group.generation,
        rebalance_timeout=member.rebalance_timeout,
        names=frozenset(said.topics),
        classic=ClassicSide(member.session_timeout, member.protocols),
        assigned=dict.fromkeys(slots, group.generation),
    )


def downgraded(group: ConsumerGroup, now: float, now_ms: int) -> ClassicGroup:
    """Return a group that only classic members are left in as a classic one.

    Members have what was meant for them, whether or not they have fetched it.
    """
    found = ClassicGroup(group.id, group.config, now_ms)
    found.protocol_type, found.generation = CONSUMER, group.epoch
    found.state = State.STABLE
    found.changes = 1
    for one in group.members.values():
        assert one.classic is not None
        found.members[one.id] = Member(
            id=one.id,
            instance_id=one.instance_id,
            client_id=one.client_id,
            client_host=one.client_host,
            session_timeout=one.classic.session_timeout,
            rebalance_timeout=one.rebalance_timeout,
            protocols=one.classic.protocols,
        )
    found.static = dict(group.static)
    found.leader = next(iter(found.members))
    found.protocol = found.select()
    for member in found.members.values():
        target = group.target.get(member.id, frozenset())
        said = member.metadata(found.protocol)
        member.assignment = write_assignment(target, said, group.home)
        member.heard(now)
    return found
