"""The operations of `kafkaio.Admin` on groups of Kafka Streams (KIP-1071).

A streams group is listed and deleted like any other group, and its committed offsets
are those of a group of consumers (see `kafkaio.admin._groups`). Only the topology and
the tasks are its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kafkaio._client.fanout import Answer, Operation
from kafkaio.admin._asking import ask, outcome
from kafkaio.admin._checks import names_of
from kafkaio.admin._groups import Groups, description
from kafkaio.admin._types import (
    GroupState,
    StreamsGroupDescription,
    StreamsGroupMember,
    StreamsSubtopology,
    StreamsTasks,
    StreamsTopic,
    operations_of,
)
from kafkaio.protocol import messages
from kafkaio.types import OffsetAndMetadata, TopicPartition

_SINCE: Final = "4.1"


class StreamsGroups(Groups):
    """The operations on groups of Kafka Streams, beside those on groups of any kind."""

    async def describe_streams_groups(
        self,
        groups: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        timeout: float | None = None,
    ) -> dict[str, StreamsGroupDescription]:
        """Describe groups of Kafka Streams: topology, members, tasks (KIP-1071).

        It needs Kafka 4.1. Applications that use the classic protocol are groups of
        consumers.

        Args:
            groups: their names.
            include_authorized_operations: whether to ask what the client may do with
                each group.
            timeout: seconds.

        Returns:
            The descriptions by name, in the order of ``groups``.

        Raises:
            GroupError: no streams group has that name (GROUP_ID_NOT_FOUND).
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
            str, StreamsGroupDescription, messages.StreamsGroupDescribeResponse
        ] = description(
            messages.StreamsGroupDescribeRequest,
            lambda names, _: messages.StreamsGroupDescribeRequest(
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

    async def delete_streams_groups(
        self,
        groups: Iterable[str],
        *,
        timeout: float | None = None,
    ) -> dict[str, None]:
        """Delete groups of Kafka Streams without members, with their offsets.

        Brokers delete groups of any kind by one request: `delete_consumer_groups` and
        `delete_share_groups` do the same. Internal topics of the application stay.

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

    async def list_streams_group_offsets(
        self,
        groups: Iterable[str] | Mapping[str, Iterable[TopicPartition] | None],
        *,
        require_stable: bool = False,
        timeout: float | None = None,
    ) -> dict[str, dict[TopicPartition, OffsetAndMetadata | None]]:
        """Return what groups of Kafka Streams have committed.

        Coordinators keep it as for consumers: `list_consumer_group_offsets` does the
        same, and documents it.

        Args:
            groups: the names of groups, or the partitions by group.
            require_stable: whether to wait for open transactions.
            timeout: seconds.

        Returns:
            By group the offsets by partition, sorted.

        Raises:
            KafkaError: as in `list_consumer_group_offsets`.
        """
        return await self.list_consumer_group_offsets(
            groups, require_stable=require_stable, timeout=timeout
        )

    async def alter_streams_group_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        *,
        timeout: float | None = None,
    ) -> dict[TopicPartition, None]:
        """Commit offsets for a group of Kafka Streams that has no members.

        Coordinators keep them as for consumers: `alter_consumer_group_offsets` does the
        same, and documents it.

        Args:
            group: the name of the group.
            offsets: the offset of the next record to read, by partition.
            timeout: seconds.

        Returns:
            None by partition, in the order of ``offsets``.

        Raises:
            KafkaError: as in `alter_consumer_group_offsets`.
        """
        return await self.alter_consumer_group_offsets(group, offsets, timeout=timeout)

    async def delete_streams_group_offsets(
        self,
        group: str,
        partitions: Iterable[TopicPartition],
        *,
        timeout: float | None = None,
    ) -> dict[TopicPartition, None]:
        """Delete offsets of a group of Kafka Streams in topics that no member reads.

        Coordinators keep them as for consumers: `delete_consumer_group_offsets` does
        the same, and documents it.

        Args:
            group: the name of the group.
            partitions: the partitions.
            timeout: seconds.

        Returns:
            None by partition, in the order of ``partitions``.

        Raises:
            KafkaError: as in `delete_consumer_group_offsets`.
        """
        return await self.delete_consumer_group_offsets(
            group, partitions, timeout=timeout
        )


def _group(
    it: messages.StreamsGroupDescribeResponseDescribedGroup, coordinator: int
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


def _member(it: messages.StreamsGroupDescribeResponseMember) -> StreamsGroupMember:
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
    offsets: Iterable[messages.StreamsGroupDescribeResponseTaskOffset],
) -> dict[tuple[str, int], int]:
    return {(it.subtopology_id, it.partition): it.offset for it in offsets}


def _tasks(it: messages.StreamsGroupDescribeResponseAssignment) -> StreamsTasks:
    return StreamsTasks(
        active=_by_subtopology(it.active_tasks),
        standby=_by_subtopology(it.standby_tasks),
        warmup=_by_subtopology(it.warmup_tasks),
    )


def _by_subtopology(
    tasks: Iterable[messages.TaskIds],
) -> dict[str, tuple[int, ...]]:
    return {it.subtopology_id: tuple(sorted(it.partitions)) for it in tasks}


def _subtopology(
    it: messages.StreamsGroupDescribeResponseSubtopology,
) -> StreamsSubtopology:
    return StreamsSubtopology(
        subtopology_id=it.subtopology_id,
        source_topics=tuple(it.source_topics),
        repartition_sink_topics=tuple(it.repartition_sink_topics),
        state_changelog_topics=_topics(it.state_changelog_topics),
        repartition_source_topics=_topics(it.repartition_source_topics),
    )


def _topics(
    topics: Iterable[messages.StreamsGroupDescribeResponseTopicInfo],
) -> dict[str, StreamsTopic]:
    return {
        it.name: StreamsTopic(
            partitions=it.partitions,
            replication_factor=it.replication_factor,
            configs={config.key: config.value for config in it.topic_configs},
        )
        for it in topics
    }
