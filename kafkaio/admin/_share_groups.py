"""The operations of `kafkaio.Admin` on share groups and their offsets (KIP-932).

The offset of a share group in a partition is the first record that is not finished;
the coordinator of the group keeps it. A share group is listed and deleted like any
other group (see `kafkaio.admin._groups`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from kafkaio._arguments import (
    check_group,
    partition_of,
    type_name,
)
from kafkaio._client.destinations import GroupCoordinator
from kafkaio._client.fanout import Answer, Operation, Terms
from kafkaio.admin._asking import ask, final_at, outcome
from kafkaio.admin._checks import names_of, partitions_by_group
from kafkaio.admin._groups import Groups, description
from kafkaio.admin._types import (
    GroupState,
    ShareGroupDescription,
    ShareGroupMember,
    ShareOffset,
    operations_of,
)
from kafkaio.errors import ArgumentTypeError, ArgumentValueError
from kafkaio.protocol import _api_numbers as apis, messages
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.types import TopicPartition

_Offsets: TypeAlias = dict[TopicPartition, ShareOffset | None]

_SINCE: Final = "4.1"
#: Final here: the coordinator knows every topic.
_MISSING: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


class ShareGroups(Groups):
    """The operations on share groups, beside those on groups of any kind."""

    async def describe_share_groups(
        self,
        groups: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        timeout: float | None = None,
    ) -> dict[str, ShareGroupDescription]:
        """Describe share groups (KIP-932, Kafka 4.1).

        Args:
            groups: their names.
            include_authorized_operations: whether to ask what the client may do with
                each group.
            timeout: seconds.

        Returns:
            The descriptions by name, in the order of ``groups``.

        Raises:
            GroupError: no share group has that name (GROUP_ID_NOT_FOUND).
            AuthorizationError: the client may not describe a group.
            UnsupportedVersion: a coordinator is older than 4.1.
            RequestTimeout: a coordinator did not answer in time.
            AdminErrors: several groups failed.
            ArgumentValueError: a group occurs twice, or a name is empty.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        wanted = names_of("groups", groups)
        operation: Operation[
            str, ShareGroupDescription, messages.ShareGroupDescribeResponse
        ] = description(
            messages.ShareGroupDescribeRequest,
            lambda names, _: messages.ShareGroupDescribeRequest(
                group_ids=names,
                include_authorized_operations=include_authorized_operations,
            ),
            lambda response, coordinators: (
                Answer(
                    it.group_id,
                    _group(it, coordinators.get(it.group_id, -1)),
                    it.error_code,
                    it.error_message,
                )
                for it in response.groups
            ),
        )
        results = await ask(self._cluster, operation, wanted, deadline, _SINCE)
        return outcome("describe groups", wanted, results)

    async def delete_share_groups(
        self,
        groups: Iterable[str],
        *,
        timeout: float | None = None,
    ) -> dict[str, None]:
        """Delete share groups that have no members, with their offsets.

        Brokers delete groups of any kind by one request: `delete_consumer_groups` and
        `delete_streams_groups` do the same.

        Args:
            groups: their names.
            timeout: seconds.

        Returns:
            None by name, in the order of ``groups``.

        Raises:
            GroupError: a group has members (NON_EMPTY_GROUP), or does not exist
                (GROUP_ID_NOT_FOUND).
            AuthorizationError: the client may not delete a group.
            RequestTimeout: a coordinator did not answer in time.
            AdminErrors: several groups failed.
            ArgumentValueError: a group occurs twice, or a name is empty.
            ClosedError: the admin client is closed, or not started.
        """
        return await self.delete_consumer_groups(groups, timeout=timeout)

    async def list_share_group_offsets(
        self,
        groups: Iterable[str] | Mapping[str, Iterable[TopicPartition] | None],
        *,
        timeout: float | None = None,
    ) -> dict[str, dict[TopicPartition, ShareOffset | None]]:
        """Return how far share groups are: one request per coordinator (Kafka 4.1).

        The numbers lag behind: a coordinator learns a moment later what was finished.

        Args:
            groups: the names of groups, for all partitions that have an offset; or the
                partitions by group, where None stands for all.
            timeout: seconds.

        Returns:
            By group the offsets by partition, sorted; None where nothing was delivered
            yet. A group that does not exist, or is not a share group, has none.

        Raises:
            AuthorizationError: the client may not describe a group or a topic.
            UnsupportedVersion: a coordinator is older than 4.1.
            RequestTimeout: a coordinator did not answer in time.
            AdminErrors: several groups failed.
            ArgumentValueError: a group occurs twice, or a name is empty.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        wanted = partitions_by_group(groups)

        def build(
            items: Sequence[str], _: Terms
        ) -> messages.DescribeShareGroupOffsetsRequest:
            return messages.DescribeShareGroupOffsetsRequest(
                groups=[_wanted(name, wanted[name]) for name in items]
            )

        operation: Operation[
            str, _Offsets, messages.DescribeShareGroupOffsetsResponse
        ] = Operation(
            what="list the offsets of share group",
            request=messages.DescribeShareGroupOffsetsRequest,
            destination=GroupCoordinator,
            build=build,
            read=lambda response, _: (
                _offsets(it, wanted.get(it.group_id)) for it in response.groups
            ),
            react=final_at(apis.DESCRIBE_SHARE_GROUP_OFFSETS, *_MISSING),
            is_exact=True,
        )
        results = await ask(self._cluster, operation, wanted, deadline, _SINCE)
        return outcome("list offsets", wanted, results)

    async def alter_share_group_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, int],
        *,
        timeout: float | None = None,
    ) -> dict[TopicPartition, None]:
        """Set where a share group without members goes on (KIP-932, Kafka 4.1).

        All records from there on are delivered again, finished or not. The change has
        no effect on a partition while a connection is open by which a member got
        records of it: end the consumers, and their clients, first.

        Args:
            group: the name of the group, which need not exist.
            offsets: the first offset to deliver, by partition.
            timeout: seconds.

        Returns:
            None by partition, in the order of ``offsets``.

        Raises:
            GroupError: the group has members (NON_EMPTY_GROUP), or is not a share
                group (GROUP_ID_NOT_FOUND).
            UnknownTopicOrPartition: the partition does not exist.
            AuthorizationError: the client may not read the group or a topic.
            UnsupportedVersion: the coordinator is older than 4.1.
            RequestTimeout: the coordinator did not answer in time; offsets may be
                altered.
            AdminErrors: several partitions failed.
            ArgumentValueError: an offset is negative.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        check_group(group)
        wanted = check_starts(offsets)

        def build(
            items: Sequence[TopicPartition], _: Terms
        ) -> messages.AlterShareGroupOffsetsRequest:
            topics: dict[str, messages.AlterShareGroupOffsetsRequestTopic] = {}
            for tp in items:
                topic = topics.setdefault(
                    tp.topic,
                    messages.AlterShareGroupOffsetsRequestTopic(topic_name=tp.topic),
                )
                topic.partitions.append(
                    messages.AlterShareGroupOffsetsRequestPartition(
                        partition_index=tp.partition, start_offset=wanted[tp]
                    )
                )
            return messages.AlterShareGroupOffsetsRequest(
                group_id=group, topics=list(topics.values())
            )

        operation: Operation[
            TopicPartition, None, messages.AlterShareGroupOffsetsResponse
        ] = Operation(
            what=f"alter in share group {group!r} the offset of",
            request=messages.AlterShareGroupOffsetsRequest,
            destination=lambda _: GroupCoordinator(group),
            build=build,
            read=_read_alteration,
            react=final_at(apis.ALTER_SHARE_GROUP_OFFSETS, *_MISSING),
            is_exact=True,
        )
        results = await ask(self._cluster, operation, wanted, deadline, _SINCE)
        return outcome("alter offsets", wanted, results)

    async def delete_share_group_offsets(
        self,
        group: str,
        topics: Iterable[str],
        *,
        timeout: float | None = None,
    ) -> dict[str, None]:
        """Delete the offsets of a share group without members in topics (Kafka 4.1).

        Args:
            group: the name of the group.
            topics: the names of the topics.
            timeout: seconds.

        Returns:
            None by topic, in the order of ``topics``.

        Raises:
            GroupError: the group has members (NON_EMPTY_GROUP), or is not a share
                group (GROUP_ID_NOT_FOUND).
            UnknownTopicOrPartition: the topic does not exist, or the group has no
                offset in it.
            AuthorizationError: the client may not delete the group or read a topic.
            UnsupportedVersion: the coordinator is older than 4.1.
            RequestTimeout: the coordinator did not answer in time.
            AdminErrors: several topics failed.
            ArgumentValueError: a topic occurs twice, or a name is empty.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        check_group(group)
        wanted = names_of("topics", topics)

        def read(
            response: messages.DeleteShareGroupOffsetsResponse, items: Sequence[str]
        ) -> Iterator[Answer[str, None]]:
            code, message = response.error_code, response.error_message
            if code:
                yield from (Answer(item, None, code, message) for item in items)
                return
            for it in response.responses:
                yield Answer(it.topic_name, None, it.error_code, it.error_message)

        operation: Operation[str, None, messages.DeleteShareGroupOffsetsResponse] = (
            Operation(
                what=f"delete in share group {group!r} the offsets of topic",
                request=messages.DeleteShareGroupOffsetsRequest,
                destination=lambda _: GroupCoordinator(group),
                build=lambda items, _: messages.DeleteShareGroupOffsetsRequest(
                    group_id=group,
                    topics=[
                        messages.DeleteShareGroupOffsetsRequestTopic(topic_name=name)
                        for name in items
                    ],
                ),
                read=read,
                react=final_at(apis.DELETE_SHARE_GROUP_OFFSETS, *_MISSING),
                is_exact=True,
            )
        )
        results = await ask(self._cluster, operation, wanted, deadline, _SINCE)
        return outcome("delete offsets", wanted, results)


def _group(
    it: messages.ShareGroupDescribeResponseDescribedGroup, coordinator: int
) -> ShareGroupDescription:
    return ShareGroupDescription(
        group_id=it.group_id,
        state=GroupState(it.group_state),
        coordinator=coordinator,
        assignor=it.assignor_name,
        members=tuple(
            ShareGroupMember(
                member_id=member.member_id,
                client_id=member.client_id,
                host=member.client_host,
                rack=member.rack_id,
                member_epoch=member.member_epoch,
                subscription=frozenset(member.subscribed_topic_names),
                assignment=frozenset(
                    TopicPartition(topic.topic_name, number)
                    for topic in member.assignment.topic_partitions
                    for number in topic.partitions
                ),
            )
            for member in it.members
        ),
        group_epoch=it.group_epoch,
        assignment_epoch=it.assignment_epoch,
        authorized_operations=operations_of(it.authorized_operations),
    )


def _wanted(
    group: str, partitions: Collection[TopicPartition] | None
) -> messages.DescribeShareGroupOffsetsRequestGroup:
    if partitions is None:
        return messages.DescribeShareGroupOffsetsRequestGroup(
            group_id=group, topics=None
        )
    topics: dict[str, messages.DescribeShareGroupOffsetsRequestTopic] = {}
    for tp in partitions:
        topics.setdefault(
            tp.topic,
            messages.DescribeShareGroupOffsetsRequestTopic(topic_name=tp.topic),
        ).partitions.append(tp.partition)
    return messages.DescribeShareGroupOffsetsRequestGroup(
        group_id=group, topics=list(topics.values())
    )


def _offsets(
    it: messages.DescribeShareGroupOffsetsResponseGroup,
    wanted: Collection[TopicPartition] | None,
) -> Answer[str, _Offsets]:
    code, message = it.error_code, it.error_message
    # A partition without an offset may be left out of the answer: it was asked for.
    found: _Offsets = dict.fromkeys(wanted or ())
    # The error of a partition becomes that of its group: the caller asked for groups,
    # and a dict with some of the offsets would look complete.
    for topic in it.topics:
        for partition in topic.partitions:
            tp = TopicPartition(topic.topic_name, partition.partition_index)
            if partition.error_code and not code:
                what = partition.error_message or "refused"
                code, message = (
                    partition.error_code,
                    f"{tp.topic}-{tp.partition}: {what}",
                )
            found[tp] = None if partition.start_offset < 0 else _offset(partition)
    return Answer(it.group_id, {tp: found[tp] for tp in sorted(found)}, code, message)


def _offset(
    partition: messages.DescribeShareGroupOffsetsResponsePartition,
) -> ShareOffset:
    epoch, lag = partition.leader_epoch, partition.lag
    return ShareOffset(
        start_offset=partition.start_offset,
        leader_epoch=epoch if epoch >= 0 else None,
        lag=lag if lag >= 0 else None,
    )


def _read_alteration(
    response: messages.AlterShareGroupOffsetsResponse, items: Sequence[TopicPartition]
) -> Iterator[Answer[TopicPartition, None]]:
    code, message = response.error_code, response.error_message
    if code:
        yield from (Answer(item, None, code, message) for item in items)
        return
    for topic in response.responses:
        for it in topic.partitions:
            tp = TopicPartition(topic.topic_name, it.partition_index)
            yield Answer(tp, None, it.error_code, it.error_message)


def check_starts(offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Check where the records of a share group are to begin.

    Raises:
        ArgumentTypeError: it is not a mapping from TopicPartition to int.
        ArgumentValueError: an offset is negative.
    """
    if not isinstance(offsets, Mapping):
        raise ArgumentTypeError(f"offsets must be a mapping, not {type_name(offsets)}")
    checked: dict[TopicPartition, int] = {}
    for tp, start in offsets.items():
        offset: object = start
        if not isinstance(offset, int) or isinstance(offset, bool):
            raise ArgumentTypeError(f"an offset must be int, not {type_name(offset)}")
        if offset < 0:
            raise ArgumentValueError(f"an offset must not be negative: {offset}")
        checked[partition_of(tp)] = offset
    return checked
