"""The operations of `kafkaio.Admin` on partitions, their replicas and their records.

The controller adds partitions, elects leaders and moves replicas; a move goes on for as
long as it takes after the call has returned. A broker knows its own log directories,
and the leader of a partition deletes its records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal

from kafkaio._arguments import partition_of, type_name
from kafkaio._client.destinations import Broker, Controller, Leader
from kafkaio._client.fanout import Answer, Operation, Results, Terms
from kafkaio._runtime.clock import now
from kafkaio.admin._asking import (
    AdminCluster,
    ask,
    brokers,
    distinct,
    final_at,
    items_of,
)
from kafkaio.admin._types import (
    ElectionType,
    LogDirectory,
    NewPartitions,
    PartitionReassignment,
    ReplicaDirectories,
    ReplicaOnDisk,
)
from kafkaio.errors import ArgumentTypeError, ArgumentValueError, UnsupportedVersion
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._broker_errors import broker_error
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages import (
    alter_partition_reassignments as move_api,
    alter_replica_log_dirs as directory_api,
    create_partitions as create_api,
    delete_records as delete_api,
    describe_log_dirs as log_dirs_api,
    elect_leaders as elect_api,
    list_partition_reassignments as list_api,
)
from kafkaio.types import TopicPartition

_ELECTIONS: Final = {ElectionType.PREFERRED: 0, ElectionType.UNCLEAN: 1}
_ELECTIONS_SINCE: Final = {ElectionType.PREFERRED: "2.2", ElectionType.UNCLEAN: "2.4"}
#: From this version on there are elections of other than preferred leaders.
_UNCLEAN: Final = 1
#: The controller knows every partition, and a broker all of its replicas.
_MISSING: Final = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.REPLICA_NOT_AVAILABLE,
)
#: No replica can become the leader: an answer, and nothing to wait for.
_NO_LEADERS: Final = (
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
)
#: The end of a log, as DeleteRecords has it.
_HIGH_WATERMARK: Final = -1
_ALL: Final = "the partitions of the cluster"


class Partitions:
    """The operations on partitions, each until a time of the loop's clock.

    Args:
        cluster: performs them.
    """

    def __init__(self, cluster: AdminCluster) -> None:
        self._cluster = cluster

    # ---- more partitions -------------------------------------------------------------

    async def created(
        self,
        counts: Mapping[str, NewPartitions],
        deadline: float,
        *,
        validate_only: bool,
    ) -> Results[str, None]:
        """Add partitions to topics, as `kafkaio.Admin` documents it."""

        def build(
            items: Sequence[str], terms: Terms
        ) -> create_api.CreatePartitionsRequest:
            return create_api.CreatePartitionsRequest(
                topics=[_more(name, counts[name]) for name in items],
                timeout_ms=terms.timeout_ms,
                validate_only=validate_only,
            )

        operation: Operation[str, None, create_api.CreatePartitionsResponse] = (
            Operation(
                what="add partitions to topic",
                request=create_api.CreatePartitionsRequest,
                destination=lambda _: Controller,
                build=build,
                read=lambda response, _: (
                    Answer(it.name, None, it.error_code, it.error_message)
                    for it in response.results
                ),
                react=final_at(ApiKey.CREATE_PARTITIONS, *_MISSING),
                is_exact=True,
            )
        )
        return await ask(self._cluster, operation, counts, deadline, "2.1")

    # ---- leaders ---------------------------------------------------------------------

    async def elected(
        self,
        election: ElectionType,
        partitions: Collection[TopicPartition] | None,
        deadline: float,
    ) -> Results[TopicPartition, bool]:
        """Elect leaders, as `kafkaio.Admin` documents it.

        Returns:
            Whether a leader was elected: False if it is the leader already.
        """
        if partitions is None:
            return await self._elected_everywhere(election, deadline)
        operation: Operation[TopicPartition, bool, elect_api.ElectLeadersResponse] = (
            Operation(
                what="elect the leader of",
                request=elect_api.ElectLeadersRequest,
                destination=lambda _: Controller,
                build=lambda items, terms: _election(election, items, terms),
                read=_read_election,
                react=final_at(ApiKey.ELECT_LEADERS, *_MISSING, *_NO_LEADERS),
                is_exact=True,
            )
        )
        since = _ELECTIONS_SINCE[election]
        return await ask(self._cluster, operation, partitions, deadline, since)

    async def _elected_everywhere(
        self, election: ElectionType, deadline: float
    ) -> Results[TopicPartition, bool]:
        def read(
            response: elect_api.ElectLeadersResponse, _: object
        ) -> Iterator[Answer[str, Results[TopicPartition, bool]]]:
            results = Results[TopicPartition, bool]()
            for tp, elected, code, message in _read_election(response, ()):
                if code == ErrorCode.NONE:
                    results.found[tp] = elected
                else:
                    what = f"elect the leader of {tp.topic}-{tp.partition}"
                    detail = f"{what}: {message}" if message else what
                    results.failed[tp] = broker_error(code, detail, topic=tp.topic)
            yield Answer(_ALL, results, response.error_code)

        operation: Operation[
            str, Results[TopicPartition, bool], elect_api.ElectLeadersResponse
        ] = Operation(
            what="elect the leaders of",
            request=elect_api.ElectLeadersRequest,
            destination=lambda _: Controller,
            build=lambda _, terms: _election(election, None, terms),
            read=read,
        )
        since = _ELECTIONS_SINCE[election]
        asked = await ask(self._cluster, operation, [_ALL], deadline, since)
        return asked.or_raise()[_ALL]

    # ---- replicas that move ----------------------------------------------------------

    async def reassigned(
        self,
        replicas: Mapping[TopicPartition, Sequence[int] | None],
        deadline: float,
        *,
        allow_replication_factor_change: bool,
    ) -> Results[TopicPartition, None]:
        """Move replicas, as `kafkaio.Admin` documents it."""

        def build(
            items: Sequence[TopicPartition], terms: Terms
        ) -> move_api.AlterPartitionReassignmentsRequest:
            if not allow_replication_factor_change and terms.version < 1:
                raise UnsupportedVersion(
                    "the broker does not know allow_replication_factor_change=False"
                )
            return move_api.AlterPartitionReassignmentsRequest(
                timeout_ms=terms.timeout_ms,
                allow_replication_factor_change=allow_replication_factor_change,
                topics=[
                    move_api.ReassignableTopic(
                        name=topic,
                        partitions=[
                            move_api.ReassignablePartition(
                                partition_index=tp.partition,
                                replicas=None if wanted is None else list(wanted),
                            )
                            for tp in tps
                            for wanted in [replicas[tp]]
                        ],
                    )
                    for topic, tps in _by_topic(items).items()
                ],
            )

        operation: Operation[
            TopicPartition, None, move_api.AlterPartitionReassignmentsResponse
        ] = Operation(
            what="move the replicas of",
            request=move_api.AlterPartitionReassignmentsRequest,
            destination=lambda _: Controller,
            build=build,
            read=_read_moves,
            react=final_at(ApiKey.ALTER_PARTITION_REASSIGNMENTS, *_MISSING),
            is_exact=True,
        )
        since = "2.4" if allow_replication_factor_change else "4.1"
        return await ask(self._cluster, operation, replicas, deadline, since)

    async def moving(
        self, partitions: Collection[TopicPartition] | None, deadline: float
    ) -> dict[TopicPartition, PartitionReassignment]:
        """List the replicas that are being moved."""

        def build(
            _: object, terms: Terms
        ) -> list_api.ListPartitionReassignmentsRequest:
            return list_api.ListPartitionReassignmentsRequest(
                timeout_ms=terms.timeout_ms,
                topics=None
                if partitions is None
                else [
                    list_api.ListPartitionReassignmentsTopics(
                        name=topic, partition_indexes=[tp.partition for tp in tps]
                    )
                    for topic, tps in _by_topic(partitions).items()
                ],
            )

        operation: Operation[
            str,
            dict[TopicPartition, PartitionReassignment],
            list_api.ListPartitionReassignmentsResponse,
        ] = Operation(
            what="list the moves of",
            request=list_api.ListPartitionReassignmentsRequest,
            destination=lambda _: Controller,
            build=build,
            read=lambda response, _: [
                Answer(
                    _ALL,
                    {
                        TopicPartition(topic.name, it.partition_index): (
                            PartitionReassignment(
                                replicas=tuple(it.replicas),
                                adding_replicas=tuple(it.adding_replicas),
                                removing_replicas=tuple(it.removing_replicas),
                            )
                        )
                        for topic in response.topics
                        for it in topic.partitions
                    },
                    response.error_code,
                    response.error_message,
                )
            ],
        )
        results = await ask(self._cluster, operation, [_ALL], deadline, "2.4")
        return dict(sorted(results.or_raise()[_ALL].items()))

    # ---- log directories -------------------------------------------------------------

    async def directories(
        self, node_ids: Collection[int] | None, deadline: float
    ) -> tuple[Sequence[int], Results[int, dict[str, LogDirectory]]]:
        """Describe the log directories of brokers, of all of them by default."""
        nodes = await brokers(self._cluster, deadline) if node_ids is None else node_ids

        def read(
            response: log_dirs_api.DescribeLogDirsResponse, items: Sequence[int]
        ) -> Iterator[Answer[int, dict[str, LogDirectory]]]:
            (node_id,) = items
            found = {it.log_dir: _directory(it) for it in response.results}
            yield Answer(node_id, found, _code_of_directories(response))

        operation: Operation[
            int, dict[str, LogDirectory], log_dirs_api.DescribeLogDirsResponse
        ] = Operation(
            what="describe the log directories of broker",
            request=log_dirs_api.DescribeLogDirsRequest,
            destination=Broker,
            build=lambda _, __: log_dirs_api.DescribeLogDirsRequest(topics=None),
            read=read,
        )
        return list(nodes), await ask(self._cluster, operation, nodes, deadline, "2.1")

    async def placed(
        self, replicas: Collection[tuple[TopicPartition, int]], deadline: float
    ) -> Results[tuple[TopicPartition, int], ReplicaDirectories]:
        """Tell in which log directories replicas are."""

        def read(
            response: log_dirs_api.DescribeLogDirsResponse,
            items: Sequence[tuple[TopicPartition, int]],
        ) -> Iterator[Answer[tuple[TopicPartition, int], ReplicaDirectories]]:
            code = _code_of_directories(response)
            directories = [_directory(it) for it in response.results]
            for item in items:
                yield Answer(item, _place(item[0], directories), code)

        operation: Operation[
            tuple[TopicPartition, int],
            ReplicaDirectories,
            log_dirs_api.DescribeLogDirsResponse,
        ] = Operation(
            what="find the log directory of",
            request=log_dirs_api.DescribeLogDirsRequest,
            destination=lambda item: Broker(item[1]),
            build=lambda items, _: log_dirs_api.DescribeLogDirsRequest(
                topics=[
                    log_dirs_api.DescribableLogDirTopic(
                        topic=topic, partitions=[tp.partition for tp in tps]
                    )
                    for topic, tps in _by_topic(tp for tp, _ in items).items()
                ]
            ),
            read=read,
            name=_replica_name,
        )
        return await ask(self._cluster, operation, replicas, deadline, "2.1")

    async def put_into(
        self, directories: Mapping[tuple[TopicPartition, int], str], deadline: float
    ) -> Results[tuple[TopicPartition, int], None]:
        """Move replicas on a broker to another log directory."""

        def build(
            items: Sequence[tuple[TopicPartition, int]], terms: Terms
        ) -> directory_api.AlterReplicaLogDirsRequest:
            del terms
            by_path: dict[str, list[TopicPartition]] = defaultdict(list)
            for item in items:
                by_path[directories[item]].append(item[0])
            return directory_api.AlterReplicaLogDirsRequest(
                dirs=[
                    directory_api.AlterReplicaLogDir(
                        path=path,
                        topics=[
                            directory_api.AlterReplicaLogDirTopic(
                                name=topic, partitions=[tp.partition for tp in tps]
                            )
                            for topic, tps in _by_topic(found).items()
                        ],
                    )
                    for path, found in by_path.items()
                ]
            )

        def read(
            response: directory_api.AlterReplicaLogDirsResponse,
            items: Sequence[tuple[TopicPartition, int]],
        ) -> Iterator[Answer[tuple[TopicPartition, int], None]]:
            node_id = items[0][1]
            for topic in response.results:
                for it in topic.partitions:
                    tp = TopicPartition(topic.topic_name, it.partition_index)
                    yield Answer((tp, node_id), None, it.error_code)

        operation: Operation[
            tuple[TopicPartition, int], None, directory_api.AlterReplicaLogDirsResponse
        ] = Operation(
            what="move the replica of",
            request=directory_api.AlterReplicaLogDirsRequest,
            destination=lambda item: Broker(item[1]),
            build=build,
            read=read,
            name=_replica_name,
            # The directory is offline, and stays so until the broker is restarted.
            react=final_at(
                ApiKey.ALTER_REPLICA_LOG_DIRS,
                *_MISSING,
                ErrorCode.KAFKA_STORAGE_ERROR,
            ),
            is_exact=True,
        )
        return await ask(self._cluster, operation, directories, deadline, "2.1")

    # ---- records ---------------------------------------------------------------------

    async def deleted(
        self, offsets: Mapping[TopicPartition, int], deadline: float
    ) -> Results[TopicPartition, int]:
        """Delete the records before offsets; returns where each log begins then."""

        def build(
            items: Sequence[TopicPartition], terms: Terms
        ) -> delete_api.DeleteRecordsRequest:
            return delete_api.DeleteRecordsRequest(
                topics=[
                    delete_api.DeleteRecordsTopic(
                        name=topic,
                        partitions=[
                            delete_api.DeleteRecordsPartition(
                                partition_index=tp.partition, offset=offsets[tp]
                            )
                            for tp in tps
                        ],
                    )
                    for topic, tps in _by_topic(items).items()
                ],
                timeout_ms=terms.timeout_ms,
            )

        operation: Operation[TopicPartition, int, delete_api.DeleteRecordsResponse] = (
            Operation(
                what="delete the records of",
                request=delete_api.DeleteRecordsRequest,
                destination=Leader,
                build=build,
                read=lambda response, _: (
                    Answer(
                        TopicPartition(topic.name, it.partition_index),
                        it.low_watermark,
                        it.error_code,
                    )
                    for topic in response.topics
                    for it in topic.partitions
                ),
                is_exact=True,
            )
        )
        missing = await self._cluster.missing_partitions(offsets, deadline - now())
        there = [tp for tp in offsets if tp not in missing]
        results = await ask(self._cluster, operation, there, deadline, "2.1")
        results.failed |= missing
        return results


def _more(name: str, wanted: NewPartitions) -> create_api.CreatePartitionsTopic:
    return create_api.CreatePartitionsTopic(
        name=name,
        count=wanted.count,
        assignments=None
        if wanted.assignments is None
        else [
            create_api.CreatePartitionsAssignment(broker_ids=list(replicas))
            for replicas in wanted.assignments
        ],
    )


def _election(
    election: ElectionType, partitions: Iterable[TopicPartition] | None, terms: Terms
) -> elect_api.ElectLeadersRequest:
    if election is not ElectionType.PREFERRED and terms.version < _UNCLEAN:
        raise UnsupportedVersion("the broker does not know unclean elections")
    return elect_api.ElectLeadersRequest(
        election_type=_ELECTIONS[election],
        topic_partitions=None
        if partitions is None
        else [
            elect_api.TopicPartitions(
                topic=topic, partitions=[tp.partition for tp in tps]
            )
            for topic, tps in _by_topic(partitions).items()
        ],
        timeout_ms=terms.timeout_ms,
    )


def _read_election(
    response: elect_api.ElectLeadersResponse, items: Sequence[TopicPartition]
) -> Iterator[Answer[TopicPartition, bool]]:
    if response.error_code:
        for tp in items:
            yield Answer(tp, value=False, code=response.error_code)
        return
    for topic in response.replica_election_results:
        for it in topic.partition_result:
            tp = TopicPartition(topic.topic, it.partition_id)
            code = it.error_code
            if code == ErrorCode.ELECTION_NOT_NEEDED:
                yield Answer(tp, value=False)
            else:
                yield Answer(tp, code == ErrorCode.NONE, code, it.error_message)


def _read_moves(
    response: move_api.AlterPartitionReassignmentsResponse,
    items: Sequence[TopicPartition],
) -> Iterator[Answer[TopicPartition, None]]:
    if response.error_code:
        for tp in items:
            yield Answer(tp, None, response.error_code, response.error_message)
        return
    for topic in response.responses:
        for it in topic.partitions:
            tp = TopicPartition(topic.name, it.partition_index)
            yield Answer(tp, None, it.error_code, it.error_message)


def _code_of_directories(response: log_dirs_api.DescribeLogDirsResponse) -> int:
    if not response.error_code and not response.results:
        # What a broker before 3.2 answers whoever may not describe it.
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return response.error_code


def _replica_name(item: tuple[TopicPartition, int]) -> str:
    tp, node_id = item
    return f"{tp.topic}-{tp.partition} on {node_id}"


def _place(
    tp: TopicPartition, directories: Iterable[LogDirectory]
) -> ReplicaDirectories:
    place = ReplicaDirectories()
    for directory in directories:
        replica = directory.replicas.get(tp)
        if replica is None:
            continue
        path, lag = directory.path, replica.offset_lag
        place = (
            replace(place, future=path, future_offset_lag=lag)
            if replica.is_future
            else replace(place, current=path, current_offset_lag=lag)
        )
    return place


def _directory(it: log_dirs_api.DescribeLogDirsResult) -> LogDirectory:
    return LogDirectory(
        path=it.log_dir,
        error=broker_error(it.error_code, f"log directory {it.log_dir}")
        if it.error_code
        else None,
        replicas={
            TopicPartition(topic.name, replica.partition_index): ReplicaOnDisk(
                size=replica.partition_size,
                offset_lag=replica.offset_lag,
                is_future=replica.is_future_key,
            )
            for topic in it.topics
            for replica in topic.partitions
        },
        total_bytes=it.total_bytes if it.total_bytes >= 0 else None,
        usable_bytes=it.usable_bytes if it.usable_bytes >= 0 else None,
        is_cordoned=it.is_cordoned,
    )


def _by_topic(
    partitions: Iterable[TopicPartition],
) -> dict[str, list[TopicPartition]]:
    found: dict[str, list[TopicPartition]] = defaultdict(list)
    for tp in partitions:
        found[tp.topic].append(tp)
    return found


# ---- arguments -----------------------------------------------------------------------


def check_counts(
    counts: Mapping[str, int | NewPartitions],
) -> dict[str, NewPartitions]:
    """Check how many partitions topics are to have.

    Raises:
        ArgumentTypeError: a value is no number and no `NewPartitions`.
        ArgumentValueError: a number is less than one.
    """
    _check_mapping("counts", counts)
    checked: dict[str, NewPartitions] = {}
    for name, wanted in counts.items():
        found = wanted if isinstance(wanted, NewPartitions) else NewPartitions(wanted)
        count: object = found.count
        if not isinstance(count, int) or isinstance(count, bool):
            raise ArgumentTypeError(
                f"the number of partitions of {name!r} must be int, not "
                f"{type_name(count)}"
            )
        if count < 1:
            raise ArgumentValueError(
                f"the number of partitions of {name!r} must be positive: {found.count}"
            )
        checked[name] = found
    return checked


def check_replicas(
    replicas: Mapping[TopicPartition, Sequence[int] | None],
) -> dict[TopicPartition, tuple[int, ...] | None]:
    """Check where replicas are to be.

    Raises:
        ArgumentTypeError: a key is no partition, or a value no sequence of node ids.
    """
    _check_mapping("replicas", replicas)
    return {
        partition_of(tp): None
        if wanted is None
        else tuple(items_of("replicas", wanted))
        for tp, wanted in replicas.items()
    }


def check_places(
    replicas: Iterable[tuple[TopicPartition, int]],
) -> list[tuple[TopicPartition, int]]:
    """Check replicas, each given by its partition and the node id of its broker.

    Raises:
        ArgumentTypeError: one is no pair of a partition and a node id.
        ArgumentValueError: one is there twice.
    """
    checked: list[tuple[TopicPartition, int]] = []
    for each in items_of("replicas", replicas):
        if not isinstance(each, tuple) or len(each) != 2:
            raise ArgumentTypeError(
                f"replicas must be (TopicPartition, node id), not {each!r}"
            )
        tp, node_id = each
        if not isinstance(node_id, int) or isinstance(node_id, bool):
            raise ArgumentTypeError(f"a node id must be int, not {type_name(node_id)}")
        checked.append((partition_of(tp), node_id))
    return distinct("replicas", checked)


def check_ends(
    offsets: Mapping[TopicPartition, int | Literal["latest"]],
) -> dict[TopicPartition, int]:
    """Check where the records that are kept begin.

    Raises:
        ArgumentTypeError: a key is no partition, or a value no offset.
        ArgumentValueError: an offset is negative, or a word is unknown.
    """
    _check_mapping("offsets", offsets)
    return {partition_of(tp): _end_of(end) for tp, end in offsets.items()}


def _check_mapping(name: str, value: object) -> None:
    if not isinstance(value, Mapping):
        raise ArgumentTypeError(f"{name} must be a mapping, not {type_name(value)}")


def _end_of(end: object) -> int:
    if end == "latest":
        return _HIGH_WATERMARK
    if not isinstance(end, int) or isinstance(end, bool):
        raise ArgumentTypeError(
            f"an offset must be int or 'latest', not {type_name(end)}"
        )
    if end < 0:
        raise ArgumentValueError(f"an offset must not be negative: {end}")
    return end
