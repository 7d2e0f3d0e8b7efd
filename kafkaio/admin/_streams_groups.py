"""The operations of `kafkaio.Admin` on groups of Kafka Streams (KIP-1071).

A streams group is listed and deleted as any other group is, and its committed offsets
are those of a group of consumers (see `kafkaio.admin._groups`). What it has of its own
are a topology and tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from kafkaio._client.fanout import Answer, Operation, Results
from kafkaio.admin._asking import AdminCluster, ask
from kafkaio.admin._groups import description
from kafkaio.admin._types import (
    GroupState,
    StreamsGroupDescription,
    StreamsGroupMember,
    StreamsSubtopology,
    StreamsTasks,
    StreamsTopic,
    operations_of,
)
from kafkaio.protocol.messages import streams_group_describe as describe_api

_SINCE: Final = "4.1"


class StreamsGroups:
    """The operations on streams groups, each until a time of the loop's clock.

    Args:
        cluster: performs them.
    """

    def __init__(self, cluster: AdminCluster) -> None:
        self._cluster = cluster

    async def described(
        self, groups: Sequence[str], deadline: float, *, with_operations: bool
    ) -> Results[str, StreamsGroupDescription]:
        """Describe streams groups, as `kafkaio.Admin` documents it."""
        operation: Operation[
            str, StreamsGroupDescription, describe_api.StreamsGroupDescribeResponse
        ] = description(
            describe_api.StreamsGroupDescribeRequest,
            lambda names, _: describe_api.StreamsGroupDescribeRequest(
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


def _group(
    it: describe_api.DescribedGroup, coordinator: int
) -> StreamsGroupDescription:
    topology = it.topology
    return StreamsGroupDescription(
        group_id=it.group_id,
        state=GroupState(it.group_state),
        coordinator=coordinator,
        members=tuple(map(_member, it.members)),
        group_epoch=it.group_epoch,
        assignment_epoch=it.assignment_epoch,
        topology_epoch=None if topology is None else topology.epoch,
        subtopologies=()
        if topology is None
        else tuple(map(_subtopology, topology.subtopologies or ())),
        authorized_operations=operations_of(it.authorized_operations),
    )


def _member(it: describe_api.Member) -> StreamsGroupMember:
    endpoint = it.user_endpoint
    return StreamsGroupMember(
        member_id=it.member_id,
        instance_id=it.instance_id,
        client_id=it.client_id,
        host=it.client_host,
        rack=it.rack_id,
        member_epoch=it.member_epoch,
        topology_epoch=it.topology_epoch,
        process_id=it.process_id,
        endpoint=None if endpoint is None else (endpoint.host, endpoint.port),
        client_tags={tag.key: tag.value for tag in it.client_tags},
        task_offsets=_task_offsets(it.task_offsets),
        task_end_offsets=_task_offsets(it.task_end_offsets),
        assignment=_tasks(it.assignment),
        target_assignment=_tasks(it.target_assignment),
        is_classic=it.is_classic,
    )


def _task_offsets(
    offsets: Iterable[describe_api.TaskOffset],
) -> dict[tuple[str, int], int]:
    return {(it.subtopology_id, it.partition): it.offset for it in offsets}


def _tasks(it: describe_api.Assignment) -> StreamsTasks:
    return StreamsTasks(
        active=_by_subtopology(it.active_tasks),
        standby=_by_subtopology(it.standby_tasks),
        warmup=_by_subtopology(it.warmup_tasks),
    )


def _by_subtopology(
    tasks: Iterable[describe_api.TaskIds],
) -> dict[str, tuple[int, ...]]:
    return {it.subtopology_id: tuple(sorted(it.partitions)) for it in tasks}


def _subtopology(it: describe_api.Subtopology) -> StreamsSubtopology:
    return StreamsSubtopology(
        subtopology_id=it.subtopology_id,
        source_topics=tuple(it.source_topics),
        repartition_sink_topics=tuple(it.repartition_sink_topics),
        state_changelog_topics=_topics(it.state_changelog_topics),
        repartition_source_topics=_topics(it.repartition_source_topics),
    )


def _topics(topics: Iterable[describe_api.TopicInfo]) -> dict[str, StreamsTopic]:
    return {
        it.name: StreamsTopic(
            partitions=it.partitions,
            replication_factor=it.replication_factor,
            configs={config.key: config.value for config in it.topic_configs},
        )
        for it in topics
    }
