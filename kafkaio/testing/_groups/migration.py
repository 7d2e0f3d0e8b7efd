"""Groups that change their protocol while they have members (KIP-848).

A classic group becomes a KIP-848 group with the first KIP-848 member (`upgraded`), and
a classic group again when the last one has left (`downgraded`).
"""

from __future__ import annotations

from kafkaio.errors import ProtocolError
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing._broker.group_config import GroupConfig
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._groups.assignors import Slot
from kafkaio.testing._groups.classic import ClassicGroup
from kafkaio.testing._groups.classic_member import ClassicGroupState, ClassicMember
from kafkaio.testing._groups.cluster_port import ClusterPort
from kafkaio.testing._groups.embedded_protocol import (
    CONSUMER,
    read_assignment,
    read_subscription,
    slots_of,
    write_assignment,
)
from kafkaio.testing._groups.kip848 import Kip848Group
from kafkaio.testing._groups.kip848_member import ClassicMetadata, Kip848Member


def upgraded(
    group: ClassicGroup, config: GroupConfig, cluster: ClusterPort, now: float
) -> Kip848Group:
    """Return a new KIP-848 group with the members of a classic group.

    Its generation becomes the epoch of the group, of the target and of every member,
    and the leader's last assignment becomes the target. The classic group does not
    change.

    Raises:
        Refusal: GROUP_ID_NOT_FOUND if the policy forbids it, if a subscription or an
            assignment is malformed, or if the assignor uses data of its own;
            UNKNOWN_SERVER_ERROR if a member does not support the group's protocol, or
            two members own one partition.
    """
    if not config.allows_upgrade:
        raise _impossible(group, "online upgrade is disabled")
    if group.protocol_type != CONSUMER:
        raise _impossible(
            group, "the group does not use the consumer embedded protocol"
        )
    found = Kip848Group(group.id, config, cluster)
    # All are in one epoch, so that no member has to do anything until the first change.
    found.epoch = found.target_epoch = group.generation
    for one in group.members.values():
        member = _as_kip848(group, one, cluster)
        member.session_deadline = now + one.session_timeout
        if found.owned_by_others(member) & member.assigned.keys():
            # As Kafka, which treats two owners of a partition as its own error.
            raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
        found.add(member)
        found.target[member.id] = frozenset(member.assigned)
    found.subscriptions.refresh_topics(found.members.values())
    return found


def _impossible(group: ClassicGroup, reason: str) -> Refusal:
    return Refusal(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {group.id} to consumer group because {reason}.",
    )


def _as_kip848(
    group: ClassicGroup, member: ClassicMember, cluster: ClusterPort
) -> Kip848Member:
    if group.protocol not in dict(member.protocols):
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
    try:
        assignment = read_assignment(member.assignment)
        subscription = read_subscription(member.metadata(group.protocol))
    except ProtocolError:
        reason = "the embedded consumer protocol is malformed"
        raise _impossible(group, reason) from None
    # The assignor would not find its own data in assignments that this coordinator
    # computes.
    if assignment.user_data:
        raise _impossible(group, "an unsupported custom assignor is in use")
    topics = ((one.topic, one.partitions) for one in assignment.assigned_partitions)
    slots: list[Slot] = slots_of(topics, cluster)
    return Kip848Member(
        id=member.id,
        instance_id=member.instance_id,
        rack=subscription.rack_id or None,
        client_id=member.client_id,
        client_host=member.client_host,
        epoch=group.generation,
        previous_epoch=group.generation,
        rebalance_timeout=member.rebalance_timeout,
        names=frozenset(subscription.topics),
        classic=ClassicMetadata(member.session_timeout, member.protocols),
        assigned=dict.fromkeys(slots, group.generation),
    )


def downgraded(group: Kip848Group, now: float, now_ms: int) -> ClassicGroup:
    """Return a new classic group with the members of a KIP-848 group, all classic.

    Each member's target becomes its assignment, whether it has reached it or not.
    """
    found = ClassicGroup(group.id, group.config, now_ms)
    found.protocol_type, found.generation = CONSUMER, group.epoch
    found.state = ClassicGroupState.STABLE
    # The classic group differs from what is in the log, so it is written.
    found.changes = 1
    for one in group.members.values():
        assert one.classic is not None
        found.members[one.id] = ClassicMember(
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
        subscription = member.metadata(found.protocol)
        member.assignment = write_assignment(target, subscription, group.cluster)
        # Sessions of classic members have a timeout of their own; they begin anew.
        member.renew_session(now)
    return found
