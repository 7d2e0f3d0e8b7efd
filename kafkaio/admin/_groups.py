"""The operations of `kafkaio.Admin` on groups and their offsets.

Each group has one coordinator, which any broker names; groups of one coordinator go
into one request. No broker knows all groups, so that listing them asks every broker.

Groups of the protocol ``consumer`` (KIP-848) are described by an API of their own. The
older API comes first: every broker has it, and most groups are classic. For the other
groups it answers GROUP_ID_NOT_FOUND, and these are described by the newer API.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, Literal, TypeVar

from kafkaio._arguments import (
    check_group,
    level_of,
    offset_of,
    partition_of,
    partitions_of,
    type_name,
)
from kafkaio._client.destinations import Broker, GroupCoordinator
from kafkaio._client.fanout import Answer, Operation, Results, Terms
from kafkaio._client.offsets import EARLIEST, LATEST, OffsetLookup, time_of
from kafkaio._dataclass import constructor
from kafkaio._machines.reaction_table import BASE
from kafkaio._machines.reactions import Reaction
from kafkaio._runtime.clock import now, wall_ms
from kafkaio.admin._asking import all_brokers, ask, final_at, outcome, reason
from kafkaio.admin._checks import member_of, names_of, partitions_by_group
from kafkaio.admin._subject import Subject
from kafkaio.admin._types import (
    GroupDescription,
    GroupLag,
    GroupListing,
    GroupMember,
    GroupState,
    GroupStateName,
    GroupType,
    GroupTypeName,
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
from kafkaio.protocol import _api_numbers as apis, messages
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import Request, Response
from kafkaio.types import OffsetAndMetadata, TopicPartition

ValueT = TypeVar("ValueT")
AnswerT = TypeVar("AnswerT", bound=Response)

#: The first versions of ListGroups that filter by state (2.6), and by type (3.8).
_WITH_STATES, _WITH_TYPES = 4, 5
#: The last version of OffsetCommit with names of topics; later ones have topic ids.
_COMMIT_BY_NAME: Final = 9
#: The first version of LeaveGroup for several members (Kafka 2.4). Before it, a member
#: can only name itself.
_LEAVE_MANY: Final = 3
#: The first version of DescribeGroups that tells authorized operations (Kafka 2.3).
_WITH_OPERATIONS: Final = 3
_CONSUMER: Final = "consumer"
#: The part of the time that coordinators get for the first of two questions.
_SHARE: Final = 2 / 3
#: The generation in a commit of a client that is not a member.
_NO_GENERATION: Final = -1
_IN_USE: Final = (
    "the group is in use: while it has members, it takes offsets from them alone"
)
#: The answers of ConsumerGroupDescribe for a group of another protocol: the second if
#: the cluster has KIP-848 switched off (``group.version`` is 0).
_NO_CONSUMER_GROUP: Final = frozenset(
    {ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION}
)
#: The answers to a commit of a client that is not a member, while there are members.
_REFUSED_TO_STRANGERS: Final = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.STALE_MEMBER_EPOCH,
    }
)


class Groups(Subject):
    """The operations on groups and their offsets."""

    async def list_groups(
        self,
        *,
        states: Iterable[GroupState | GroupStateName] | None = None,
        types: Iterable[GroupType | GroupTypeName] | None = None,
        timeout: float | None = None,
    ) -> dict[str, GroupListing]:
        """List the groups of the cluster, of all coordinators.

        Groups that the client may not describe are left out: an empty list does not
        show that there are none.

        Args:
            states: only groups in these states (Kafka 2.6); in any by default.
            types: only groups of these types (Kafka 3.8; older brokers have classic
                ones alone); of any by default.
            timeout: seconds.

        Returns:
            The groups by name, sorted.

        Raises:
            KafkaError: a broker did not answer in time, or refused. ``results`` has the
                groups of the others, by node id.
            AdminErrors: several brokers did not; likewise.
            UnsupportedVersion: a broker is too old for the filter.
            ArgumentValueError: a state or a type is unknown.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        in_states = [member_of("states", GroupState, each) for each in states or ()]
        of_types = [member_of("types", GroupType, each) for each in types or ()]
        operation: Operation[int, list[GroupListing], messages.ListGroupsResponse] = (
            Operation(
                what="list the groups of broker",
                request=messages.ListGroupsRequest,
                destination=Broker,
                build=lambda _, terms: _listing(in_states, of_types, terms.version),
                read=lambda response, items: _read_listing(response, items, of_types),
                react=as_stranger,
            )
        )
        # A group is listed by its coordinator alone, and any broker may be one.
        nodes = await all_brokers(self._cluster, deadline)
        results = await ask(self._cluster, operation, nodes, deadline, "2.6")
        if results.failed:
            outcome("list groups", [*results.found, *results.failed], results)
        groups: dict[str, GroupListing] = {}
        for listed in results.found.values():
            groups |= {each.group_id: each for each in listed}
        return dict(sorted(groups.items()))

    async def describe_consumer_groups(
        self,
        groups: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        timeout: float | None = None,
    ) -> dict[str, GroupDescription]:
        """Describe groups of consumers, of the classic protocol and of KIP-848.

        Args:
            groups: their names.
            include_authorized_operations: whether to ask what the client may do with
                each group (Kafka 2.3).
            timeout: seconds.

        Returns:
            The descriptions by name, in the order of ``groups``.

        Raises:
            GroupError: the group does not exist (GROUP_ID_NOT_FOUND).
            AuthorizationError: the client may not describe a group.
            RequestTimeout: a coordinator did not answer in time.
            AdminErrors: several groups failed.
            ArgumentValueError: a group occurs twice, or a name is empty.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        wanted = names_of("groups", groups)
        results = await self._described_groups(
            wanted, deadline, with_operations=include_authorized_operations
        )
        return outcome("describe groups", wanted, results)

    async def describe_classic_groups(
        self,
        groups: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        timeout: float | None = None,
    ) -> dict[str, GroupDescription]:
        """Describe groups of the classic protocol, whatever their members are.

        `describe_consumer_groups` describes such groups of consumers as well, beside
        those of KIP-848. Others, for example of Kafka Connect, are described here: the
        ``protocol_type`` tells what they are, and their members have no partitions.

        Args:
            groups: their names.
            include_authorized_operations: whether to ask what the client may do with
                each group (Kafka 2.3).
            timeout: seconds.

        Returns:
            The descriptions by name, in the order of ``groups``.

        Raises:
            GroupError: no classic group has that name (GROUP_ID_NOT_FOUND).
            AuthorizationError: the client may not describe a group.
            RequestTimeout: a coordinator did not answer in time.
            AdminErrors: several groups failed.
            ArgumentValueError: a group occurs twice, or a name is empty.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        wanted = names_of("groups", groups)
        results = await self._described_as_classic(
            wanted, deadline, with_operations=include_authorized_operations
        )
        return outcome("describe groups", wanted, results)

    async def delete_consumer_groups(
        self,
        groups: Iterable[str],
        *,
        timeout: float | None = None,
    ) -> dict[str, None]:
        """Delete groups that have no members, with their committed offsets.

        Args:
            groups: their names.
            timeout: seconds.

        Returns:
            None by name, in the order of ``groups``.

        Raises:
            GroupError: a group has members (NON_EMPTY_GROUP), does not exist
                (GROUP_ID_NOT_FOUND), or could not be deleted for a reason that the
                message has (GROUP_DELETION_FAILED; Kafka 4.4).
            AuthorizationError: the client may not delete a group.
            RequestTimeout: a coordinator did not answer in time.
            AdminErrors: several groups failed.
            ArgumentValueError: a group occurs twice, or a name is empty.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        wanted = names_of("groups", groups)
        operation: Operation[str, None, messages.DeleteGroupsResponse] = Operation(
            what="delete group",
            request=messages.DeleteGroupsRequest,
            destination=GroupCoordinator,
            build=lambda items, _: messages.DeleteGroupsRequest(
                groups_names=list(items)
            ),
            read=lambda response, _: (
                Answer(
                    it.group_id,
                    None,
                    it.error_code,
                    reason(it.error_code, it.error_message),
                )
                for it in response.results
            ),
            react=as_stranger,
            is_exact=True,
        )
        results = await ask(self._cluster, operation, wanted, deadline, "2.1")
        return outcome("delete groups", wanted, results)

    async def remove_members_from_consumer_group(
        self,
        group: str,
        instance_ids: Iterable[str] | None = None,
        *,
        reason: str | None = None,
        timeout: float | None = None,
    ) -> dict[str, None]:
        """Remove members from a group; it rebalances without them (KIP-345, Kafka 2.4).

        A member that is removed and still runs joins again.

        Args:
            group: the name of the group.
            instance_ids: the ``group_instance_id`` of static members; None removes all
                members, of whatever kind.
            reason: why, for the log of the broker (Kafka 3.2).
            timeout: seconds.

        Returns:
            None by instance id, or by member id if all are removed.

        Raises:
            GroupError: the group has no such member (UNKNOWN_MEMBER_ID), or the group
                does not exist.
            AuthorizationError: the client may not read the group.
            UnsupportedVersion: the coordinator is too old.
            RequestTimeout: the coordinator did not answer in time.
            AdminErrors: several members failed.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        check_group(group)
        ids = None if instance_ids is None else names_of("instance_ids", instance_ids)
        members = await self._leaving(group, ids, reason, deadline)

        def build(items: Sequence[str], terms: Terms) -> messages.LeaveGroupRequest:
            if terms.version < _LEAVE_MANY:
                raise UnsupportedVersion("members of others need Kafka 2.4")
            return messages.LeaveGroupRequest(
                group_id=group, members=[members[item] for item in items]
            )

        def read(
            response: messages.LeaveGroupResponse, items: Sequence[str]
        ) -> Iterator[Answer[str, None]]:
            if response.error_code:
                yield from (Answer(it, None, response.error_code) for it in items)
                return
            # The answer has both ids of a static member; the item is the one asked by.
            for it in response.members:
                by_instance = it.group_instance_id in members
                item = it.group_instance_id if by_instance else it.member_id
                yield Answer(item or it.member_id, None, it.error_code)

        operation: Operation[str, None, messages.LeaveGroupResponse] = Operation(
            what=f"remove from group {group!r} the member",
            request=messages.LeaveGroupRequest,
            destination=lambda _: GroupCoordinator(group),
            build=build,
            read=read,
            react=as_stranger,
            is_exact=True,
        )
        results = await ask(self._cluster, operation, members, deadline, "2.4")
        items = [*results.found, *results.failed] if ids is None else ids
        return outcome("remove members", items, results)

    async def list_consumer_group_offsets(
        self,
        groups: Iterable[str] | Mapping[str, Iterable[TopicPartition] | None],
        *,
        require_stable: bool = False,
        timeout: float | None = None,
    ) -> dict[str, dict[TopicPartition, OffsetAndMetadata | None]]:
        """Return what groups have committed: one request per coordinator (KIP-709).

        Args:
            groups: the names of groups, for all partitions that have an offset; or the
                partitions by group, where None stands for all.
            require_stable: whether to wait for transactions that have committed offsets
                and have not ended (KIP-447).
            timeout: seconds.

        Returns:
            By group the offsets by partition, sorted; None where nothing is committed.
            A group that does not exist has committed nothing.

        Raises:
            AuthorizationError: the client may not describe a group.
            RequestTimeout: a coordinator did not answer in time; the cause is a
                BrokerError UNSTABLE_OFFSET_COMMIT if a transaction is still open.
            AdminErrors: several groups failed.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        wanted = partitions_by_group(groups)
        results = await self._committed(wanted, deadline, require_stable=require_stable)
        return outcome("fetch offsets", wanted, results)

    async def alter_consumer_group_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        *,
        timeout: float | None = None,
    ) -> dict[TopicPartition, None]:
        """Commit offsets for a group that has no members.

        Args:
            group: the name of the group, which need not exist.
            offsets: the offset of the next record to read, by partition.
            timeout: seconds.

        Returns:
            None by partition, in the order of ``offsets``.

        Raises:
            GroupError: the group has members, which alone may commit.
            UnknownTopicOrPartition: the partition does not exist.
            AuthorizationError: the client may not read the group or a topic.
            RequestTimeout: the coordinator did not answer in time.
            AdminErrors: several partitions failed.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        check_group(group)
        wanted = {partition_of(tp): offset_of(it) for tp, it in offsets.items()}
        results = await self._commit_offsets(group, wanted, deadline)
        return outcome("alter offsets", wanted, results)

    async def delete_consumer_group_offsets(
        self,
        group: str,
        partitions: Iterable[TopicPartition],
        *,
        timeout: float | None = None,
    ) -> dict[TopicPartition, None]:
        """Delete committed offsets of topics that no member reads (KIP-496, Kafka 2.4).

        Args:
            group: the name of the group.
            partitions: the partitions.
            timeout: seconds.

        Returns:
            None by partition, in the order of ``partitions``.

        Raises:
            GroupError: a member subscribes to the topic (GROUP_SUBSCRIBED_TO_TOPIC), or
                the group does not exist.
            UnknownTopicOrPartition: the partition does not exist.
            UnsupportedVersion: the coordinator is too old.
            RequestTimeout: the coordinator did not answer in time.
            AdminErrors: several partitions failed.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        check_group(group)
        wanted = partitions_of(partitions)

        def build(
            items: Sequence[TopicPartition], _: Terms
        ) -> messages.OffsetDeleteRequest:
            topics: dict[str, messages.OffsetDeleteRequestTopic] = {}
            for tp in items:
                topic = topics.setdefault(
                    tp.topic, messages.OffsetDeleteRequestTopic(name=tp.topic)
                )
                topic.partitions.append(
                    messages.OffsetDeleteRequestPartition(partition_index=tp.partition)
                )
            return messages.OffsetDeleteRequest(
                group_id=group, topics=list(topics.values())
            )

        def read(
            response: messages.OffsetDeleteResponse, items: Sequence[TopicPartition]
        ) -> Iterator[Answer[TopicPartition, None]]:
            if response.error_code:
                yield from (Answer(it, None, response.error_code) for it in items)
                return
            for topic in response.topics:
                for it in topic.partitions:
                    tp = TopicPartition(topic.name, it.partition_index)
                    yield Answer(tp, None, it.error_code)

        operation: Operation[TopicPartition, None, messages.OffsetDeleteResponse] = (
            Operation(
                what=f"delete in group {group!r} the offset of",
                request=messages.OffsetDeleteRequest,
                destination=lambda _: GroupCoordinator(group),
                build=build,
                read=read,
                react=final_at(
                    apis.OFFSET_DELETE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                ),
                is_exact=True,
            )
        )
        results = await ask(self._cluster, operation, wanted, deadline, "2.4")
        return outcome("delete offsets", wanted, results)

    async def lag(
        self,
        groups: Iterable[str],
        *,
        isolation_level: Literal[
            "read_uncommitted", "read_committed"
        ] = "read_uncommitted",
        timeout: float | None = None,
    ) -> dict[str, GroupLag]:
        """Tell how far groups are behind the ends of the logs.

        Each coordinator gets one request for all of its groups, and each leader one for
        all partitions. The two are not from the same moment.

        Args:
            groups: their names.
            isolation_level: what the end of a log is; with ``read_committed`` the last
                stable offset.
            timeout: seconds.

        Returns:
            The lag by group, in the order of ``groups``. A partition whose end is not
            known, because its topic was deleted for example, has its error.

        Raises:
            AuthorizationError: the client may not describe a group.
            RequestTimeout: a coordinator did not answer in time.
            AdminErrors: several groups failed.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        wanted = names_of("groups", groups)
        level = level_of(isolation_level)
        # A coordinator that does not answer must leave time to look up the ends of the
        # logs for the groups of the others.
        early = now() + _SHARE * (deadline - now())
        committed = await self._committed(
            dict.fromkeys(wanted), early, require_stable=False
        )
        # Groups often read the same topics: each end is looked up once.
        partitions = {tp for offsets in committed.found.values() for tp in offsets}
        lookup = OffsetLookup(self._cluster, level)
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
        return outcome("look up the lag", wanted, results)

    async def reset_offsets(
        self,
        group: str,
        to: OffsetTarget | None = None,
        *,
        shift_by: int = 0,
        partitions: Iterable[TopicPartition] | None = None,
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> dict[TopicPartition, OffsetReset]:
        """Set the committed offsets of a group that has no members.

        An offset outside the log becomes the nearest one that the log has.

        Args:
            group: the name of the group.
            to: ``"earliest"`` or ``"latest"``; a datetime: the first record with that
                timestamp or a later one; a timedelta: as long ago; or an offset by
                partition. None, with ``shift_by``.
            shift_by: how many offsets forward, or backward if it is negative.
            partitions: the partitions; all that have a committed offset by default.
            dry_run: whether to change nothing, and only tell what would be.
            timeout: seconds.

        Returns:
            The offset before and after by partition, sorted.

        Raises:
            GroupError: the group has members, which alone may commit.
            UnknownTopicOrPartition: the partition does not exist.
            AuthorizationError: the client may not read the group or a topic.
            RequestTimeout: a broker did not answer in time.
            AdminErrors: several partitions failed.
            ArgumentValueError: none, or both, of ``to`` and ``shift_by`` are given; a
                datetime has no time zone or is before 1970; or the group has no
                offset to shift.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        check_group(group)
        check_reset(to, shift_by)
        wanted = None if partitions is None else partitions_of(partitions)
        resets = await self._resets(group, wanted, to, shift_by, deadline)
        if dry_run:
            return resets
        offsets = {tp: OffsetAndMetadata(it.after) for tp, it in resets.items()}
        altered = await self._commit_offsets(group, offsets, deadline)
        done = {tp: resets[tp] for tp in altered.found}
        return outcome("reset offsets", offsets, Results(done, altered.failed))

    async def _leaving(
        self,
        group: str,
        instance_ids: Iterable[str] | None,
        reason: str | None,
        deadline: float,
    ) -> dict[str, messages.MemberIdentity]:
        """Return the members to remove, by instance id or, for all, by member id."""
        if instance_ids is not None:
            return {
                instance_id: messages.MemberIdentity(
                    group_instance_id=instance_id, reason=reason
                )
                for instance_id in instance_ids
            }
        # LeaveGroup cannot name all members: one that joins after this step stays.
        described = await self._described_groups(
            [group], deadline, with_operations=False
        )
        return {
            member.member_id: messages.MemberIdentity(
                member_id=member.member_id, reason=reason
            )
            for member in described.or_raise()[group].members
        }

    async def _described_groups(
        self, groups: Sequence[str], deadline: float, *, with_operations: bool
    ) -> Results[str, GroupDescription]:
        """Describe groups of either protocol, by the API that knows them."""
        early = deadline
        if len(groups) > 1:
            # A coordinator that does not answer must leave time to ask about the groups
            # of KIP-848 of the others.
            early = now() + _SHARE * (deadline - now())
        results = await self._described_as_classic(
            groups, early, with_operations=with_operations
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
            # Brokers before 3.7 have no groups of KIP-848: the first answer stands.
            if not isinstance(error, UnsupportedVersion):
                results.failed[group] = error
        return results

    async def _by_consumer_api(
        self,
        groups: Sequence[str],
        deadline: float,
        with_operations: bool,  # noqa: FBT001
    ) -> Results[str, GroupDescription | None]:
        """Describe groups of KIP-848; None for groups of other protocols."""
        operation: Operation[
            str, GroupDescription | None, messages.ConsumerGroupDescribeResponse
        ] = description(
            messages.ConsumerGroupDescribeRequest,
            lambda names, _: messages.ConsumerGroupDescribeRequest(
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

    async def _described_as_classic(
        self, groups: Sequence[str], deadline: float, *, with_operations: bool
    ) -> Results[str, GroupDescription]:
        """Describe groups of the classic protocol, whatever their members are."""
        operation: Operation[str, GroupDescription, messages.DescribeGroupsResponse] = (
            description(
                messages.DescribeGroupsRequest,
                lambda names, terms: messages.DescribeGroupsRequest(
                    groups=names,
                    include_authorized_operations=with_operations
                    and terms.version >= _WITH_OPERATIONS,
                ),
                lambda response, coordinators: (
                    Answer(
                        it.group_id,
                        _classic_group(it, coordinators.get(it.group_id, -1)),
                        # Brokers before 3.9 report an unknown group as dead (KIP-1043).
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
        )
        return await ask(self._cluster, operation, groups, deadline, "2.1")

    async def _committed(
        self,
        groups: Mapping[str, Collection[TopicPartition] | None],
        deadline: float,
        *,
        require_stable: bool,
    ) -> Results[str, dict[TopicPartition, OffsetAndMetadata | None]]:
        """Return the committed offsets of groups; None asks for all that they have."""
        from kafkaio._client.committed import fetch_operation

        operation = fetch_operation(groups, requires_stable=require_stable)
        return await ask(self._cluster, operation, groups, deadline, "2.1")

    async def _commit_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        deadline: float,
    ) -> Results[TopicPartition, None]:
        """Commit offsets for a group without members."""

        def build(
            items: Sequence[TopicPartition], _: Terms
        ) -> messages.OffsetCommitRequest:
            topics: dict[str, messages.OffsetCommitRequestTopic] = {}
            for tp in items:
                topic = topics.setdefault(
                    tp.topic, messages.OffsetCommitRequestTopic(name=tp.topic)
                )
                topic.partitions.append(
                    messages.OffsetCommitRequestPartition(
                        partition_index=tp.partition,
                        committed_offset=offsets[tp].offset,
                        committed_leader_epoch=offsets[tp].leader_epoch,
                        committed_metadata=offsets[tp].metadata,
                    )
                )
            return messages.OffsetCommitRequest(
                group_id=group,
                generation_id_or_member_epoch=_NO_GENERATION,
                topics=list(topics.values()),
            )

        operation: Operation[TopicPartition, None, messages.OffsetCommitResponse] = (
            Operation(
                what=f"alter in group {group!r} the offset of",
                request=messages.OffsetCommitRequest,
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

    async def _resets(
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
        # Stable offsets alone: a transaction that is open now could commit its own
        # offsets over those of the reset.
        present = (
            await self._committed({group: wanted}, deadline, require_stable=True)
        ).or_raise()[group]
        tps = sorted(present if wanted is None else wanted)
        lookup = OffsetLookup(self._cluster, 0)

        async def look_up(time: int) -> dict[TopicPartition, int | None]:
            found = await lookup.each(dict.fromkeys(tps, time), within=deadline - now())
            return {
                tp: None if place is None else place.offset
                for tp, place in found.or_raise().items()
            }

        begins = _known(await look_up(EARLIEST), "begin")
        ends = _known(await look_up(LATEST), "end")
        times = await look_up(_time_of(to)) if _is_time(to) else {}
        resets: dict[TopicPartition, OffsetReset] = {}
        for tp in tps:
            begin, end = begins[tp], ends[tp]
            before = present.get(tp)
            place = _place(tp, to, shift_by, before, (begin, end), times.get(tp))
            resets[tp] = OffsetReset(
                before=None if before is None else before.offset,
                # As Java's tools do: an offset outside the log would let the consumers
                # follow their auto_offset_reset instead.
                after=min(max(place, begin), end),
            )
        return resets


def _known(
    offsets: Mapping[TopicPartition, int | None], what: str
) -> dict[TopicPartition, int]:
    known: dict[TopicPartition, int] = {}
    for tp, offset in offsets.items():
        if offset is None:
            # Taken for 0, it would lead the group back to the first record.
            name = f"{tp.topic}-{tp.partition}"
            raise ProtocolError(f"reset offsets: the leader of {name} tells no {what}")
        known[tp] = offset
    return known


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
    # Without a record of that time or later, the group goes on with the next record.
    if to == "latest" or at_time is None:
        return end
    return at_time


def _is_time(to: OffsetTarget | None) -> bool:
    return isinstance(to, datetime | timedelta)


def _time_of(to: object) -> int:
    """The time that a datetime or a timedelta means, for ListOffsets."""
    if isinstance(to, timedelta):
        # `time_of` refuses times below 0, which have other meanings in ListOffsets.
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
    # The answer does not name the broker. The request that went there last is the one
    # that is answered: the fan-out has one in flight for each group.
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
    """Return the reaction to a code for a client that is not a member of the group."""
    # The tables of the group APIs let a member join again. An administrator has nothing
    # to join: UNKNOWN_MEMBER_ID and the like are answers.
    return BASE[ErrorCode(code)]


def _listing(
    states: Collection[GroupState], types: Collection[GroupType], version: int
) -> messages.ListGroupsRequest:
    if states and version < _WITH_STATES:
        raise UnsupportedVersion("the states of groups are listed from Kafka 2.6 on")
    with_types = version >= _WITH_TYPES
    if not with_types and types and set(types) != {GroupType.CLASSIC}:
        raise UnsupportedVersion("the types of groups are listed from Kafka 3.8 on")
    return messages.ListGroupsRequest(
        states_filter=sorted(states),
        types_filter=sorted(types) if with_types else [],
    )


def _read_listing(
    response: messages.ListGroupsResponse,
    items: Sequence[int],
    types: Collection[GroupType],
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
    if types:  # brokers before 3.8 have classic groups alone, and filter nothing
        found = [each for each in found if each.type in types]
    yield Answer(node_id, found, response.error_code)


def _consumer_group(
    it: messages.ConsumerGroupDescribeResponseDescribedGroup, coordinator: int
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


def _partitions(
    assignment: messages.ConsumerGroupDescribeResponseAssignment,
) -> frozenset[TopicPartition]:
    return frozenset(
        TopicPartition(topic.topic_name, number)
        for topic in assignment.topic_partitions
        for number in topic.partitions
    )


def _classic_group(
    it: messages.DescribeGroupsResponseDescribedGroup, coordinator: int
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
    from kafkaio._machines.membership.subscription import decode_assignment

    try:
        return decode_assignment(blob)
    except ProtocolError:
        # The blob belongs to the members, and a client in another language may encode
        # it in its own way. The rest of the description is still right.
        return frozenset()
