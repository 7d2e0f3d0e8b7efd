"""The classic protocol as members of a group of the consumer protocol speak it.

While a group changes from one protocol to the other, member by member, it is of the
consumer protocol: the broker assigns, and the answers of JoinGroup and SyncGroup tell
a classic member of it what the others learn from their heartbeats. Nobody leads, and
no request waits for another. A member's generation is its epoch.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from math import inf
from uuid import UUID

from kafkaio.errors import ProtocolError
from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.protocol.messages.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
)
from kafkaio.protocol.messages.join_group import JoinGroupResponse
from kafkaio.protocol.messages.sync_group import SyncGroupResponse
from kafkaio.testing.broker.refusal import Refusal
from kafkaio.testing.groups.classic_member import Joining, Syncing
from kafkaio.testing.groups.embedded_protocol import (
    CONSUMER,
    read_subscription,
    slots_of,
    write_assignment,
)
from kafkaio.testing.groups.kip848 import ConsumerGroup, Downgrade
from kafkaio.testing.groups.kip848_member import (
    ClassicSide,
    ConsumerMember,
    MemberState,
)

__all__ = ["heartbeat", "join", "sync"]


def join(group: ConsumerGroup, joining: Joining, now: float) -> JoinGroupResponse:
    """Take a JoinGroup in, which says what a member reads and what it still has.

    A static member that takes the place of the last one of the consumer protocol
    makes the group a classic one.

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
    is_last = old is not None and old.classic is None and group.can_downgrade([old])
    said = _subscription(joining)
    if old is None:
        old = group.members.get(member_id)
    member = _seat(group, joining, old, member_id)
    before = member.subscription
    _take_in(member, joining, said)
    epoch = group.epoch
    is_changed = group.notice(member, before, now)
    is_stale = group.target_epoch < group.epoch
    if not is_last:
        group.assign(member, now)
    if not (is_last and is_stale):
        topics = ((one.topic, one.partitions) for one in said.owned_partitions)
        owned = frozenset(slots_of(topics, group.home))
        group.reconcile(member, owned, now, is_changed=is_changed)
    if is_last:
        group.epoch = epoch
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


def _check(group: ConsumerGroup, joining: Joining) -> None:
    if group.config.migration_policy == "disabled":
        raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if group.is_full and joining.member_id not in group.members:
        raise Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED)
    common = {name for name, _ in joining.protocols}
    for one in group.members.values():
        if one.classic is not None:
            common &= {name for name, _ in one.classic.protocols}
    if joining.protocol_type != CONSUMER or not common:
        raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def _fresh_id(joining: Joining) -> str:
    """Return a member id as Kafka writes its own kind of UUID."""
    return urlsafe_b64encode(UUID(joining.new_id).bytes).decode().rstrip("=")


def _subscription(joining: Joining) -> ConsumerProtocolSubscription:
    """Read what a member reads, which it says under every protocol alike."""
    try:
        return read_subscription(joining.protocols[0][1])
    except ProtocolError:
        # As Kafka, which has no better answer either.
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR) from None


def _predecessor(group: ConsumerGroup, joining: Joining) -> ConsumerMember | None:
    """Return the static member whose place this one takes, or keeps."""
    if joining.instance_id is None:
        return None
    if joining.member_id:
        return _find(group, joining.member_id, joining.instance_id)
    known = group.static.get(joining.instance_id)
    return None if known is None else group.members[known]


def _seat(
    group: ConsumerGroup,
    joining: Joining,
    old: ConsumerMember | None,
    member_id: str,
) -> ConsumerMember:
    if old is None:
        member_id = member_id or _fresh_id(joining)
        old = ConsumerMember(id=member_id, instance_id=joining.instance_id)
        group.enter(old)
    elif not member_id:
        return group.succeed(old, _fresh_id(joining))
    return old


def _take_in(
    member: ConsumerMember, joining: Joining, said: ConsumerProtocolSubscription
) -> None:
    member.client_id, member.client_host = joining.client_id, joining.client_host
    member.rebalance_timeout = joining.rebalance_timeout
    member.rack = said.rack_id or member.rack
    member.names, member.regex = frozenset(said.topics), None
    member.classic = ClassicSide(joining.session_timeout, joining.protocols)


def sync(group: ConsumerGroup, syncing: Syncing, now: float) -> SyncGroupResponse:
    """Tell a classic member its partitions, unless it has to join again first.

    Raises:
        Refusal: the member may not ask, or is to join again.
    """
    member = _find(group, syncing.member_id, syncing.instance_id)
    classic = _classic_side(member, syncing.generation)
    protocol, subscription = classic.protocols[0]
    if not syncing.agrees(CONSUMER, protocol):
        raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    # Who still has to give something up has joined already, and is to do that first.
    is_behind = member.epoch < group.target_epoch
    if is_behind and member.state is not MemberState.UNREVOKED:
        _has_to_join(member, now)
        raise Refusal(ErrorCode.REBALANCE_IN_PROGRESS)
    member.sync_deadline = inf
    member.session_deadline = now + classic.session_timeout
    return SyncGroupResponse(
        protocol_type=syncing.protocol_type,
        protocol_name=syncing.protocol,
        assignment=write_assignment(member.assigned, subscription, group.home),
    )


def heartbeat(
    group: ConsumerGroup,
    member_id: str,
    instance_id: str | None,
    generation: int,
    now: float,
) -> ErrorCode:
    """Start a classic member's session anew; say whether it has to join again.

    It has to if there is a newer target, if it is to give partitions up, and if those
    that it waited for are free.

    Raises:
        Refusal: it is no such member.
    """
    member = _find(group, member_id, instance_id)
    classic = _classic_side(member, generation)
    member.session_deadline = now + classic.session_timeout
    waits = member.state is MemberState.UNRELEASED
    if waits:
        target = group.target.get(member.id, frozenset())
        waits = bool((target - member.assigned.keys()) & group.taken(member))
    if member.epoch < group.target_epoch or (
        member.state is not MemberState.STABLE and not waits
    ):
        _has_to_join(member, now)
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def _has_to_join(member: ConsumerMember, now: float) -> None:
    member.join_deadline = min(member.join_deadline, now + member.rebalance_timeout)


def _find(
    group: ConsumerGroup, member_id: str, instance_id: str | None
) -> ConsumerMember:
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


def _classic_side(member: ConsumerMember, generation: int) -> ClassicSide:
    if member.classic is None:
        raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID)
    if generation != member.epoch:
        raise Refusal(ErrorCode.ILLEGAL_GENERATION)
    return member.classic
