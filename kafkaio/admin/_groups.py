"""The operations of `kafkaio.Admin` on groups and their offsets.

A group has one coordinator, which any broker names; groups of one coordinator go into
one request. No broker knows all groups, so that a list asks every one.

Groups of the protocol ``consumer`` (KIP-848) are described by an API of their own. The
older API is asked first: every broker knows it, and most groups are classic. It says
of the others that it does not know them, and these are asked for by the newer API then.
"""

from __future__ import annotations

from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from datetime import datetime, timedelta
from typing import Final, TypeVar

from kafkaio._arguments import type_name
from kafkaio._client.committed import fetch_operation
from kafkaio._client.destinations import Broker, GroupCoordinator
from kafkaio._client.fanout import Answer, Operation, Results, Terms
from kafkaio._client.offsets import EARLIEST, LATEST, OffsetLookup, time_of
from kafkaio._dataclass import constructor
from kafkaio._machines.membership.subscription import decode_assignment
from kafkaio._machines.reactions import BASE, Reaction
from kafkaio._runtime.clock import now, wall_ms
from kafkaio.admin._asking import AdminCluster, ask, brokers, final_at
from kafkaio.admin._types import (
    GroupDescription,
    GroupLag,
    GroupListing,
    GroupMember,
    GroupState,
    GroupType,
    OffsetReset,
    OffsetTarget,
    PartitionLag,
    operations_of,
)
from kafkaio.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    GroupError,
    ProtocolError,
    UnsupportedVersion,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import Request, Response
from kafkaio.protocol.messages import (
    consumer_group_describe as consumer_api,
    delete_groups as delete_api,
    describe_groups as classic_api,
    leave_group as leave_api,
    list_groups as list_api,
    offset_commit as commit_api,
    offset_delete as forget_api,
)
from kafkaio.types import OffsetAndMetadata, TopicPartition

ValueT = TypeVar("ValueT")
AnswerT = TypeVar("AnswerT", bound=Response)

#: The versions of ListGroups that have states, and types.
_WITH_STATES, _WITH_TYPES = 4, 5
#: The last version of OffsetCommit that has the names of topics.
_COMMIT_BY_NAME: Final = 9
#: From this version on LeaveGroup is about several members (Kafka 2.4).
_LEAVE_MANY: Final = 3
_CONSUMER: Final = "consumer"
#: The part of the time that coordinators get, before leaders are asked.
_SHARE: Final = 2 / 3
#: The generation of who commits without being a member.
_NO_GENERATION: Final = -1
_IN_USE: Final = (
    "the group is in use: offsets of other than its members are refused while it has "
    "any"
)


#: What ConsumerGroupDescribe says of a group that is none of KIP-848: the second where
#: the cluster has no such groups (``group.version`` is 0).
_NO_CONSUMER_GROUP: Final = frozenset(
    {ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION}
)
#: What a coordinator says to who commits and is no member while the group has some.
_REFUSED_TO_STRANGERS: Final = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.STALE_MEMBER_EPOCH,
    }
)


class Groups:
    """The operations on groups, each until a time of the loop's clock.

    Args:
        cluster: performs them.
    """

    def __init__(self, cluster: AdminCluster) -> None:
        self._cluster = cluster

    # ---- list and describe -----------------------------------------------------------

    async def listed(
        self,
        states: Collection[GroupState],
        types: Collection[GroupType],
        deadline: float,
    ) -> Results[int, list[GroupListing]]:
        """Ask every broker for the groups that it coordinates."""
        operation: Operation[int, list[GroupListing], list_api.ListGroupsResponse] = (
            Operation(
                what="list the groups of broker",
                request=list_api.ListGroupsRequest,
                destination=Broker,
                build=lambda _, terms: _listing(states, types, terms.version),
                read=_read_listing,
                react=as_stranger,
            )
        )
        nodes = await brokers(self._cluster, deadline)
        results = await ask(self._cluster, operation, nodes, deadline, "2.6")
        if types:  # brokers before 3.8 have classic groups alone, and filter nothing
            results.found = {
                node_id: [each for each in found if each.type in types]
                for node_id, found in results.found.items()
            }
        return results

    async def described(
        self, groups: Sequence[str], deadline: float, *, with_operations: bool
    ) -> Results[str, GroupDescription]:
        """Describe groups of consumers, as `kafkaio.Admin` documents it."""
        results = await self.described_as_classic(
            groups, deadline, with_operations=with_operations
        )
        others = [
            group
            for group, error in results.failed.items()
            if isinstance(error, GroupError)
            and error.code == ErrorCode.GROUP_ID_NOT_FOUND
        ]
        asked = await self._by_consumer_api(others, deadline, with_operations)
        for group, found in asked.found.items():
            if found is not None:
                results.found[group] = found
                del results.failed[group]
        for group, error in asked.failed.items():
            if not isinstance(error, UnsupportedVersion):  # before Kafka 3.7
                results.failed[group] = error
        return results

    async def _by_consumer_api(
        self,
        groups: Sequence[str],
        deadline: float,
        with_operations: bool,  # noqa: FBT001
    ) -> Results[str, GroupDescription | None]:
        """Describe groups of KIP-848; None for those that are none."""
        operation: Operation[
            str, GroupDescription | None, consumer_api.ConsumerGroupDescribeResponse
        ] = description(
            consumer_api.ConsumerGroupDescribeRequest,
            lambda names, _: consumer_api.ConsumerGroupDescribeRequest(
                group_ids=names, include_authorized_operations=with_operations
            ),
            lambda response, coordinators: (
                Answer(it.group_id, None)
                if it.error_code in _NO_CONSUMER_GROUP
                else Answer(
                    it.group_id,
                    _consumer_group(it, coordinators.get(it.group_id, -1)),
                    it.error_code,
                    it.error_message,
                )
                for it in response.groups
            ),
        )
        return await ask(self._cluster, operation, groups, deadline, "3.7")

    async def described_as_classic(
        self, groups: Sequence[str], deadline: float, *, with_operations: bool
    ) -> Results[str, GroupDescription]:
        """Describe groups of the classic protocol, whatever their members are."""
        operation: Operation[
            str, GroupDescription, classic_api.DescribeGroupsResponse
        ] = description(
            classic_api.DescribeGroupsRequest,
            lambda names, terms: classic_api.DescribeGroupsRequest(
                groups=names,
                include_authorized_operations=with_operations
                and terms.version >= _LEAVE_MANY,
            ),
            lambda response, coordinators: (
                Answer(
                    it.group_id,
                    _classic_group(it, coordinators.get(it.group_id, -1)),
                    # Brokers before 3.9 say of an unknown group that it is dead.
                    it.error_code
                    or (
                        ErrorCode.GROUP_ID_NOT_FOUND
                        if it.group_state == GroupState.DEAD
                        else 0
                    ),
                    it.error_message,
                )
                for it in response.groups
            ),
        )
        return await ask(self._cluster, operation, groups, deadline, "2.1")

    # ---- delete, remove members ------------------------------------------------------

    async def deleted(
        self, groups: Sequence[str], deadline: float
    ) -> Results[str, None]:
        """Delete groups, with their offsets."""
        operation: Operation[str, None, delete_api.DeleteGroupsResponse] = Operation(
            what="delete group",
            request=delete_api.DeleteGroupsRequest,
            destination=GroupCoordinator,
            build=lambda items, _: delete_api.DeleteGroupsRequest(
                groups_names=list(items)
            ),
            read=lambda response, _: (
                Answer(it.group_id, None, it.error_code) for it in response.results
            ),
            react=as_stranger,
            is_exact=True,
        )
        return await ask(self._cluster, operation, groups, deadline, "2.1")

    async def removed(
        self,
        group: str,
        instance_ids: Sequence[str] | None,
        reason: str | None,
        deadline: float,
    ) -> Results[str, None]:
        """Remove members from a group: some static ones, or all."""
        members = {
            instance_id: leave_api.MemberIdentity(
                group_instance_id=instance_id, reason=reason
            )
            for instance_id in instance_ids or ()
        }
        if instance_ids is None:
            described = await self.described([group], deadline, with_operations=False)
            members = {
                member.member_id: leave_api.MemberIdentity(
                    member_id=member.member_id, reason=reason
                )
                for member in described.or_raise()[group].members
            }

        def build(items: Sequence[str], terms: Terms) -> leave_api.LeaveGroupRequest:
            if terms.version < _LEAVE_MANY:
                raise UnsupportedVersion("members of others need Kafka 2.4")
            return leave_api.LeaveGroupRequest(
                group_id=group, members=[members[item] for item in items]
            )

        def read(
            response: leave_api.LeaveGroupResponse, items: Sequence[str]
        ) -> Iterator[Answer[str, None]]:
            if response.error_code:
                yield from (Answer(it, None, response.error_code) for it in items)
                return
            for it in response.members:
                by_instance = it.group_instance_id in members
                item = it.group_instance_id if by_instance else it.member_id
                yield Answer(item or it.member_id, None, it.error_code)

        operation: Operation[str, None, leave_api.LeaveGroupResponse] = Operation(
            what=f"remove from group {group!r} the member",
            request=leave_api.LeaveGroupRequest,
            destination=lambda _: GroupCoordinator(group),
            build=build,
            read=read,
            react=as_stranger,
            is_exact=True,
        )
        return await ask(self._cluster, operation, members, deadline, "2.4")

    # ---- offsets ---------------------------------------------------------------------

    async def offsets(
        self,
        groups: Mapping[str, Collection[TopicPartition] | None],
        deadline: float,
        *,
        require_stable: bool,
    ) -> Results[str, dict[TopicPartition, OffsetAndMetadata | None]]:
        """Return the committed offsets of groups; None asks for all that they have."""
        operation = fetch_operation(groups, requires_stable=require_stable)
        return await ask(self._cluster, operation, groups, deadline, "2.1")

    async def altered(
        self,
        group: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        deadline: float,
    ) -> Results[TopicPartition, None]:
        """Commit offsets for a group without members."""

        def build(
            items: Sequence[TopicPartition], _: Terms
        ) -> commit_api.OffsetCommitRequest:
            topics: dict[str, commit_api.OffsetCommitRequestTopic] = {}
            for tp in items:
                topic = topics.setdefault(
                    tp.topic, commit_api.OffsetCommitRequestTopic(name=tp.topic)
                )
                topic.partitions.append(
                    commit_api.OffsetCommitRequestPartition(
                        partition_index=tp.partition,
                        committed_offset=offsets[tp].offset,
                        committed_leader_epoch=offsets[tp].leader_epoch,
                        committed_metadata=offsets[tp].metadata,
                    )
                )
            return commit_api.OffsetCommitRequest(
                group_id=group,
                generation_id_or_member_epoch=_NO_GENERATION,
                topics=list(topics.values()),
            )

        operation: Operation[TopicPartition, None, commit_api.OffsetCommitResponse] = (
            Operation(
                what=f"alter in group {group!r} the offset of",
                request=commit_api.OffsetCommitRequest,
                destination=lambda _: GroupCoordinator(group),
                build=build,
                read=lambda response, _: (
                    Answer(
                        TopicPartition(topic.name, it.partition_index),
                        None,
                        it.error_code,
                        _IN_USE if it.error_code in _REFUSED_TO_STRANGERS else None,
                    )
                    for topic in response.topics
                    for it in topic.partitions
                ),
                max_version=_COMMIT_BY_NAME,
                react=as_stranger,
                is_exact=True,
            )
        )
        return await ask(self._cluster, operation, offsets, deadline, "2.1")

    async def forgotten(
        self, group: str, partitions: Sequence[TopicPartition], deadline: float
    ) -> Results[TopicPartition, None]:
        """Delete committed offsets of a group (KIP-496)."""

        def build(
            items: Sequence[TopicPartition], _: Terms
        ) -> forget_api.OffsetDeleteRequest:
            topics: dict[str, forget_api.OffsetDeleteRequestTopic] = {}
            for tp in items:
                topic = topics.setdefault(
                    tp.topic, forget_api.OffsetDeleteRequestTopic(name=tp.topic)
                )
                topic.partitions.append(
                    forget_api.OffsetDeleteRequestPartition(
                        partition_index=tp.partition
                    )
                )
            return forget_api.OffsetDeleteRequest(
                group_id=group, topics=list(topics.values())
            )

        def read(
            response: forget_api.OffsetDeleteResponse, items: Sequence[TopicPartition]
        ) -> Iterator[Answer[TopicPartition, None]]:
            if response.error_code:
                yield from (Answer(it, None, response.error_code) for it in items)
                return
            for topic in response.topics:
                for it in topic.partitions:
                    tp = TopicPartition(topic.name, it.partition_index)
                    yield Answer(tp, None, it.error_code)

        operation: Operation[TopicPartition, None, forget_api.OffsetDeleteResponse] = (
            Operation(
                what=f"delete in group {group!r} the offset of",
                request=forget_api.OffsetDeleteRequest,
                destination=lambda _: GroupCoordinator(group),
                build=build,
                read=read,
                react=final_at(
                    ApiKey.OFFSET_DELETE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                ),
                is_exact=True,
            )
        )
        return await ask(self._cluster, operation, partitions, deadline, "2.4")

    # ---- lag and resets --------------------------------------------------------------

    async def lag(
        self, groups: Sequence[str], isolation_level: int, deadline: float
    ) -> Results[str, GroupLag]:
        """Compare what groups have committed with the ends of the logs.

        Each coordinator is asked once for all of its groups, and each leader once for
        all partitions.
        """
        # A coordinator that does not answer leaves time for the others' groups.
        early = now() + _SHARE * (deadline - now())
        committed = await self.offsets(
            dict.fromkeys(groups), early, require_stable=False
        )
        partitions = {tp for offsets in committed.found.values() for tp in offsets}
        lookup = OffsetLookup(self._cluster, isolation_level)
        ends = await lookup.each(
            dict.fromkeys(sorted(partitions), LATEST), within=deadline - now()
        )
        results = Results[str, GroupLag](failed=committed.failed)
        for group, offsets in committed.found.items():
            lags: dict[TopicPartition, PartitionLag] = {}
            for tp, offset in offsets.items():
                end = ends.found.get(tp)
                lags[tp] = PartitionLag(
                    committed=offset,
                    end=None if end is None else end.offset,
                    error=ends.failed.get(tp),
                )
            results.found[group] = GroupLag(lags)
        return results

    async def places(
        self,
        group: str,
        partitions: Collection[TopicPartition] | None,
        to: OffsetTarget | None,
        shift_by: int,
        deadline: float,
    ) -> dict[TopicPartition, OffsetReset]:
        """Compute where a reset of a group's offsets leads; changes nothing."""
        wanted = partitions
        if isinstance(to, Mapping):
            wanted = list(to)
        present = (
            await self.offsets({group: wanted}, deadline, require_stable=True)
        ).or_raise()[group]
        tps = sorted(present if wanted is None else wanted)
        lookup = OffsetLookup(self._cluster, 0)

        async def look_up(time: int) -> dict[TopicPartition, int | None]:
            found = await lookup.each(dict.fromkeys(tps, time), within=deadline - now())
            return {
                tp: None if place is None else place.offset
                for tp, place in found.or_raise().items()
            }

        begins, ends = await look_up(EARLIEST), await look_up(LATEST)
        times = await look_up(_time_of(to)) if _is_time(to) else {}
        resets: dict[TopicPartition, OffsetReset] = {}
        for tp in tps:
            begin, end = begins[tp] or 0, ends[tp] or 0
            before = present.get(tp)
            place = _place(tp, to, shift_by, before, (begin, end), times.get(tp))
            resets[tp] = OffsetReset(
                before=None if before is None else before.offset,
                after=min(max(place, begin), end),
            )
        return resets


def check_reset(to: object, shift_by: object) -> None:
    """Check where a reset is to lead.

    Raises:
        ArgumentTypeError: one has the wrong type.
        ArgumentValueError: none or both are given, a word is unknown, or a datetime has
            no time zone or is before 1970.
    """
    if not isinstance(shift_by, int) or isinstance(shift_by, bool):
        raise ArgumentTypeError(f"shift_by must be int, not {type_name(shift_by)}")
    if (to is None) != (shift_by != 0):
        raise ArgumentValueError("give either to or shift_by")
    if isinstance(to, str) and to not in {"earliest", "latest"}:
        raise ArgumentValueError(f"to must be 'earliest' or 'latest', not {to!r}")
    if not isinstance(to, str | datetime | timedelta | Mapping | None):
        raise ArgumentTypeError(
            "to must be 'earliest', 'latest', a datetime, a timedelta or a mapping, not"
            f" {type_name(to)}"
        )
    if isinstance(to, datetime):
        time_of(to)


def _place(
    tp: TopicPartition,
    to: OffsetTarget | None,
    shift_by: int,
    before: OffsetAndMetadata | None,
    limits: tuple[int, int],
    at_time: int | None,
) -> int:
    begin, end = limits
    if to is None:
        if before is None:
            raise ArgumentValueError(
                f"shift_by: the group has no offset of {tp.topic}-{tp.partition}"
            )
        return before.offset + shift_by
    if isinstance(to, Mapping):
        return to[tp]
    if to == "earliest":
        return begin
    if to == "latest" or at_time is None:  # no record is that new
        return end
    return at_time


def _is_time(to: OffsetTarget | None) -> bool:
    return isinstance(to, datetime | timedelta)


def _time_of(to: object) -> int:
    """The time that a datetime or a timedelta means, for ListOffsets."""
    if isinstance(to, timedelta):
        # Milliseconds below 0 have meanings of their own to a broker.
        return time_of(wall_ms() - int(to / timedelta(milliseconds=1)))
    return time_of(to)


def description(
    request: type[Request[AnswerT]],
    build: Callable[[list[str], Terms], Request[AnswerT]],
    read: Callable[[AnswerT, Mapping[str, int]], Iterable[Answer[str, ValueT]]],
) -> Operation[str, ValueT, AnswerT]:
    """Return the operation that describes groups by one of the APIs for it.

    Args:
        request: the class of its requests.
        build: makes the request for groups of one coordinator.
        read: reads an answer, given the coordinators of the groups.
    """
    coordinators: dict[str, int] = {}

    def note(items: Sequence[str], terms: Terms) -> Request[AnswerT]:
        coordinators.update(dict.fromkeys(items, terms.node_id))
        return build(list(items), terms)

    return Operation(
        what="describe group",
        request=request,
        destination=GroupCoordinator,
        build=note,
        read=lambda response, _: read(response, coordinators),
        react=as_stranger,
        is_exact=True,
    )


def as_stranger(code: int) -> Reaction:
    """What to do about a code, for who is no member of the group."""
    return BASE[ErrorCode(code)]


def _listing(
    states: Collection[GroupState], types: Collection[GroupType], version: int
) -> list_api.ListGroupsRequest:
    if states and version < _WITH_STATES:
        raise UnsupportedVersion("the states of groups are listed from Kafka 2.6 on")
    with_types = version >= _WITH_TYPES
    if not with_types and types and set(types) != {GroupType.CLASSIC}:
        raise UnsupportedVersion("the types of groups are listed from Kafka 3.8 on")
    return list_api.ListGroupsRequest(
        states_filter=sorted(states),
        types_filter=sorted(types) if with_types else [],
    )


def _read_listing(
    response: list_api.ListGroupsResponse, items: Sequence[int]
) -> Iterator[Answer[int, list[GroupListing]]]:
    (node_id,) = items
    found = [
        GroupListing(
            group_id=it.group_id,
            type=GroupType(it.group_type) if it.group_type else GroupType.CLASSIC,
            protocol_type=it.protocol_type,
            state=GroupState(it.group_state) if it.group_state else None,
            coordinator=node_id,
        )
        for it in response.groups
    ]
    yield Answer(node_id, found, response.error_code)


def _consumer_group(
    it: consumer_api.DescribedGroup, coordinator: int
) -> GroupDescription:
    return GroupDescription(
        group_id=it.group_id,
        type=GroupType.CONSUMER,
        protocol_type=_CONSUMER,
        state=GroupState(it.group_state),
        coordinator=coordinator,
        assignor=it.assignor_name,
        members=tuple(
            GroupMember(
                member_id=member.member_id,
                instance_id=member.instance_id,
                client_id=member.client_id,
                host=member.client_host,
                rack=member.rack_id,
                assignment=_partitions(member.assignment),
                target_assignment=_partitions(member.target_assignment),
                member_epoch=member.member_epoch,
                is_classic=member.member_type == 0 if member.member_type >= 0 else None,
            )
            for member in it.members
        ),
        group_epoch=it.group_epoch,
        assignment_epoch=it.assignment_epoch,
        authorized_operations=operations_of(it.authorized_operations),
    )


def _partitions(assignment: consumer_api.Assignment) -> frozenset[TopicPartition]:
    return frozenset(
        TopicPartition(topic.topic_name, number)
        for topic in assignment.topic_partitions
        for number in topic.partitions
    )


def _classic_group(
    it: classic_api.DescribedGroup, coordinator: int
) -> GroupDescription:
    return constructor(GroupDescription)(
        group_id=it.group_id,
        type=GroupType.CLASSIC,
        protocol_type=it.protocol_type,
        state=GroupState(it.group_state),
        coordinator=coordinator,
        assignor=it.protocol_data,
        members=tuple(
            GroupMember(
                member_id=member.member_id,
                instance_id=member.group_instance_id,
                client_id=member.client_id,
                host=member.client_host,
                rack=None,
                assignment=_assigned(it.protocol_type, member.member_assignment),
            )
            for member in it.members
        ),
        authorized_operations=operations_of(it.authorized_operations),
    )


def _assigned(protocol_type: str, blob: bytes) -> frozenset[TopicPartition]:
    """The partitions of a member; empty if it has none, or consumes no topics."""
    if protocol_type != _CONSUMER or not blob:
        return frozenset()
    try:
        return decode_assignment(blob)
    except ProtocolError:  # another client wrote what nobody else can read
        return frozenset()
