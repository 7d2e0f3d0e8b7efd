"""The operations of `kafkaio.Admin` on share groups and their offsets (KIP-932).

The offset of a share group in a partition is where its unfinished records begin; the
coordinator of the group keeps it. A share group is listed and deleted as any other
group is (see `kafkaio.admin._groups`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from kafkaio._arguments import partition_of, type_name
from kafkaio._client.destinations import GroupCoordinator
from kafkaio._client.fanout import Answer, Operation, Results, Terms
from kafkaio.admin._asking import AdminCluster, ask, final_at
from kafkaio.admin._groups import description
from kafkaio.admin._types import (
    GroupState,
    ShareGroupDescription,
    ShareGroupMember,
    ShareOffset,
    operations_of,
)
from kafkaio.errors import ArgumentTypeError, ArgumentValueError
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages import (
    alter_share_group_offsets as alter_api,
    delete_share_group_offsets as delete_api,
    describe_share_group_offsets as offsets_api,
    share_group_describe as describe_api,
)
from kafkaio.types import TopicPartition

_Offsets: TypeAlias = dict[TopicPartition, ShareOffset | None]

_SINCE: Final = "4.1"
#: The coordinator knows every topic: that it does not exist is an answer.
_MISSING: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


class ShareGroups:
    """The operations on share groups, each until a time of the loop's clock.

    Args:
        cluster: performs them.
    """

    def __init__(self, cluster: AdminCluster) -> None:
        self._cluster = cluster

    async def described(
        self, groups: Sequence[str], deadline: float, *, with_operations: bool
    ) -> Results[str, ShareGroupDescription]:
        """Describe share groups, as `kafkaio.Admin` documents it."""
        operation: Operation[
            str, ShareGroupDescription, describe_api.ShareGroupDescribeResponse
        ] = description(
            describe_api.ShareGroupDescribeRequest,
            lambda names, _: describe_api.ShareGroupDescribeRequest(
                group_ids=names, include_authorized_operations=with_operations
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
        return await ask(self._cluster, operation, groups, deadline, _SINCE)

    async def offsets(
        self,
        groups: Mapping[str, Collection[TopicPartition] | None],
        deadline: float,
    ) -> Results[str, _Offsets]:
        """Return the offsets of groups; None asks for all that they have."""

        def build(
            items: Sequence[str], _: Terms
        ) -> offsets_api.DescribeShareGroupOffsetsRequest:
            return offsets_api.DescribeShareGroupOffsetsRequest(
                groups=[_wanted(name, groups[name]) for name in items]
            )

        operation: Operation[
            str, _Offsets, offsets_api.DescribeShareGroupOffsetsResponse
        ] = Operation(
            what="list the offsets of share group",
            request=offsets_api.DescribeShareGroupOffsetsRequest,
            destination=GroupCoordinator,
            build=build,
            read=lambda response, _: (
                _offsets(it, groups.get(it.group_id)) for it in response.groups
            ),
            react=final_at(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, *_MISSING),
            is_exact=True,
        )
        return await ask(self._cluster, operation, groups, deadline, _SINCE)

    async def altered(
        self, group: str, starts: Mapping[TopicPartition, int], deadline: float
    ) -> Results[TopicPartition, None]:
        """Set where the records of a group without members begin."""

        def build(
            items: Sequence[TopicPartition], _: Terms
        ) -> alter_api.AlterShareGroupOffsetsRequest:
            topics: dict[str, alter_api.AlterShareGroupOffsetsRequestTopic] = {}
            for tp in items:
                topic = topics.setdefault(
                    tp.topic,
                    alter_api.AlterShareGroupOffsetsRequestTopic(topic_name=tp.topic),
                )
                topic.partitions.append(
                    alter_api.AlterShareGroupOffsetsRequestPartition(
                        partition_index=tp.partition, start_offset=starts[tp]
                    )
                )
            return alter_api.AlterShareGroupOffsetsRequest(
                group_id=group, topics=list(topics.values())
            )

        operation: Operation[
            TopicPartition, None, alter_api.AlterShareGroupOffsetsResponse
        ] = Operation(
            what=f"alter in share group {group!r} the offset of",
            request=alter_api.AlterShareGroupOffsetsRequest,
            destination=lambda _: GroupCoordinator(group),
            build=build,
            read=_read_alteration,
            react=final_at(ApiKey.ALTER_SHARE_GROUP_OFFSETS, *_MISSING),
            is_exact=True,
        )
        return await ask(self._cluster, operation, starts, deadline, _SINCE)

    async def forgotten(
        self, group: str, topics: Sequence[str], deadline: float
    ) -> Results[str, None]:
        """Delete the offsets of a group without members in topics."""

        def read(
            response: delete_api.DeleteShareGroupOffsetsResponse, items: Sequence[str]
        ) -> Iterator[Answer[str, None]]:
            code, message = response.error_code, response.error_message
            if code:
                yield from (Answer(item, None, code, message) for item in items)
                return
            for it in response.responses:
                yield Answer(it.topic_name, None, it.error_code, it.error_message)

        operation: Operation[str, None, delete_api.DeleteShareGroupOffsetsResponse] = (
            Operation(
                what=f"delete in share group {group!r} the offsets of topic",
                request=delete_api.DeleteShareGroupOffsetsRequest,
                destination=lambda _: GroupCoordinator(group),
                build=lambda items, _: delete_api.DeleteShareGroupOffsetsRequest(
                    group_id=group,
                    topics=[
                        delete_api.DeleteShareGroupOffsetsRequestTopic(topic_name=name)
                        for name in items
                    ],
                ),
                read=read,
                react=final_at(ApiKey.DELETE_SHARE_GROUP_OFFSETS, *_MISSING),
                is_exact=True,
            )
        )
        return await ask(self._cluster, operation, topics, deadline, _SINCE)


def _group(it: describe_api.DescribedGroup, coordinator: int) -> ShareGroupDescription:
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
) -> offsets_api.DescribeShareGroupOffsetsRequestGroup:
    if partitions is None:
        return offsets_api.DescribeShareGroupOffsetsRequestGroup(
            group_id=group, topics=None
        )
    topics: dict[str, offsets_api.DescribeShareGroupOffsetsRequestTopic] = {}
    for tp in partitions:
        topics.setdefault(
            tp.topic,
            offsets_api.DescribeShareGroupOffsetsRequestTopic(topic_name=tp.topic),
        ).partitions.append(tp.partition)
    return offsets_api.DescribeShareGroupOffsetsRequestGroup(
        group_id=group, topics=list(topics.values())
    )


def _offsets(
    it: offsets_api.DescribeShareGroupOffsetsResponseGroup,
    wanted: Collection[TopicPartition] | None,
) -> Answer[str, _Offsets]:
    code, message = it.error_code, it.error_message
    found: _Offsets = dict.fromkeys(wanted or ())
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
    partition: offsets_api.DescribeShareGroupOffsetsResponsePartition,
) -> ShareOffset:
    epoch, lag = partition.leader_epoch, partition.lag
    return ShareOffset(
        start_offset=partition.start_offset,
        leader_epoch=epoch if epoch >= 0 else None,
        lag=lag if lag >= 0 else None,
    )


def _read_alteration(
    response: alter_api.AlterShareGroupOffsetsResponse, items: Sequence[TopicPartition]
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
        ArgumentTypeError: they are no mapping from TopicPartition to int.
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
