"""The requests of classic members in a KIP-848 group.

While the members of a group change from one protocol to the other, one by one, it is a
KIP-848 group: the broker assigns. A classic member learns from the answers to JoinGroup
and SyncGroup what the others learn from their heartbeats. It is never the leader, and
its requests do not wait for those of others. Its generation is its member epoch.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from math import inf
from uuid import UUID

from kafkaio.errors import ProtocolError
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
)
from kafkaio.protocol.messages.join_group import JoinGroupResponse
from kafkaio.protocol.messages.sync_group import SyncGroupResponse
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._groups.classic_member import JoinRequest, SyncRequest
from kafkaio.testing._groups.embedded_protocol import (
    CONSUMER,
    read_subscription,
    slots_of,
    write_assignment,
)
from kafkaio.testing._groups.kip848 import Downgrade, Kip848Group
from kafkaio.testing._groups.kip848_member import (
    ClassicMetadata,
    Kip848Member,
    MemberState,
)


def join(group: Kip848Group, joining: JoinRequest, now: float) -> JoinGroupResponse:
    """Handle a JoinGroup: a member's subscription and the partitions that it owns.

    If a static member replaces the last KIP-848 member, the group becomes classic.

    Raises:
        Refusal: the member may not join.
    """
    _check(group, joining)
    if joining.member_id or joining.instance_id is not None:
        member_id = joining.member_id
    else:
        member_id = _fresh_id(joining)
        if joining.knows_member_id_required:
            return JoinGroupResponse(
                error_code=ErrorCode.MEMBER_ID_REQUIRED,
                protocol_name=None,
                member_id=member_id,
            )
    old = _predecessor(group, joining)
    # The static member that joins replaces the only KIP-848 member that is left.
    is_last = old is not None and old.classic is None and group.can_downgrade([old])
    subscription = _subscription(joining)
    if old is None:
        old = group.members.get(member_id)
    member = _place_of(group, joining, old, member_id)
    before = member.subscription
    _update_member(member, joining, subscription)
    # The generation of the classic group, if this ends in a downgrade: a change of the
    # subscription below raises the epoch of the KIP-848 group only.
    epoch = group.epoch
    is_changed = group.update_subscription(member, before, now)
    is_stale = group.target_epoch < group.epoch
    if not is_last:
        group.assign(member, now)
    if not (is_last and is_stale):
        topics = ((one.topic, one.partitions) for one in subscription.owned_partitions)
        owned = frozenset(slots_of(topics, group.cluster))
        group.reconcile(member, owned, now, is_changed=is_changed)
    if is_last:
        group.epoch = epoch
        # Without a change, the members of the classic group keep what they have.
        group.downgrade = Downgrade.REBALANCE if is_stale else Downgrade.KEEP
    else:
        member.session_deadline = now + joining.session_timeout
        member.join_deadline = inf
        member.sync_deadline = now + joining.rebalance_timeout
    return JoinGroupResponse(
        generation_id=member.epoch,
        protocol_type=CONSUMER,
        protocol_name=joining.protocols[0][0],
        member_id=member.id,
    )


def _check(group: Kip848Group, joining: JoinRequest) -> None:
    if group.config.migration_policy == "disabled":
        raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    # Members come back in each rebalance; they have their place.
    if group.is_full and joining.member_id not in group.members:
        raise Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED)
    common = {name for name, _ in joining.protocols}
    for one in group.members.values():
        if one.classic is not None:
            common &= {name for name, _ in one.classic.protocols}
    if joining.protocol_type != CONSUMER or not common:
        raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def _fresh_id(joining: JoinRequest) -> str:
    """Return a new member id in the notation of Kafka's ``Uuid``."""
    return urlsafe_b64encode(UUID(joining.new_id).bytes).decode().rstrip("=")


def _subscription(joining: JoinRequest) -> ConsumerProtocolSubscription:
    """Read a member's subscription, which is the same for every protocol."""
    try:
        return read_subscription(joining.protocols[0][1])
    except ProtocolError:
        # As Kafka, which has no other error for it.
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR) from None


def _predecessor(group: Kip848Group, joining: JoinRequest) -> Kip848Member | None:
    """Return the static member that this one replaces or continues."""
    if joining.instance_id is None:
        return None
    if joining.member_id:
        return _find(group, joining.member_id, joining.instance_id)
    known = group.static.get(joining.instance_id)
    return None if known is None else group.members[known]


def _place_of(
    group: Kip848Group,
    joining: JoinRequest,
    old: Kip848Member | None,
    member_id: str,
) -> Kip848Member:
    if old is None:
        member_id = member_id or _fresh_id(joining)
        old = Kip848Member(id=member_id, instance_id=joining.instance_id)
        group.add(old)
    elif not member_id:
        return group.replace_static(old, _fresh_id(joining))
    return old


def _update_member(
    member: Kip848Member,
    joining: JoinRequest,
    subscription: ConsumerProtocolSubscription,
) -> None:
    member.client_id, member.client_host = joining.client_id, joining.client_host
    member.rebalance_timeout = joining.rebalance_timeout
    member.rack = subscription.rack_id or member.rack
    member.names, member.regex = frozenset(subscription.topics), None
    member.classic = ClassicMetadata(joining.session_timeout, joining.protocols)


def sync(group: Kip848Group, syncing: SyncRequest, now: float) -> SyncGroupResponse:
    """Return a classic member's partitions, unless it has to join again first.

    Raises:
        Refusal: REBALANCE_IN_PROGRESS if it has to join again; or it is not a classic
            member of this generation.
    """
    member = _find(group, syncing.member_id, syncing.instance_id)
    classic = _classic_metadata(member, syncing.generation)
    protocol, subscription = classic.protocols[0]
    if not syncing.agrees(CONSUMER, protocol):
        raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    # A member that still has to revoke has joined already; it gets its partitions, and
    # revokes before it joins again.
    is_behind = member.epoch < group.target_epoch
    if is_behind and member.state is not MemberState.UNREVOKED:
        _has_to_join(member, now)
        raise Refusal(ErrorCode.REBALANCE_IN_PROGRESS)
    member.sync_deadline = inf
    member.session_deadline = now + classic.session_timeout
    return SyncGroupResponse(
        protocol_type=syncing.protocol_type,
        protocol_name=syncing.protocol,
        assignment=write_assignment(member.assigned, subscription, group.cluster),
    )


def heartbeat(
    group: Kip848Group,
    member_id: str,
    instance_id: str | None,
    generation: int,
    now: float,
) -> ErrorCode:
    """Renew a classic member's session; REBALANCE_IN_PROGRESS makes it join again.

    It has to if there is a newer target, if it has to revoke partitions, or if a
    partition that it waits for is free.

    Raises:
        Refusal: it is not a classic member of this generation.
    """
    member = _find(group, member_id, instance_id)
    classic = _classic_metadata(member, generation)
    member.session_deadline = now + classic.session_timeout
    # Joining again would not help it while another member has the partition.
    waits = member.state is MemberState.UNRELEASED
    if waits:
        target = group.target.get(member.id, frozenset())
        waits = bool((target - member.assigned.keys()) & group.owned_by_others(member))
    if member.epoch < group.target_epoch or (
        member.state is not MemberState.STABLE and not waits
    ):
        _has_to_join(member, now)
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def _has_to_join(member: Kip848Member, now: float) -> None:
    # Each heartbeat says so again; the deadline is that of the first.
    member.join_deadline = min(member.join_deadline, now + member.rebalance_timeout)


def _find(group: Kip848Group, member_id: str, instance_id: str | None) -> Kip848Member:
    if instance_id is not None:
        known = group.static.get(instance_id)
        if known is None:
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID)
        if known != member_id:
            raise Refusal(ErrorCode.FENCED_INSTANCE_ID)
    member = group.members.get(member_id)
    if member is None:
        raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID)
    return member


def _classic_metadata(member: Kip848Member, generation: int) -> ClassicMetadata:
    if member.classic is None:
        raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID)
    if generation != member.epoch:
        raise Refusal(ErrorCode.ILLEGAL_GENERATION)
    return member.classic
