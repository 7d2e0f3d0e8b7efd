"""The operations of `kafkaio.Admin` on partitions, their replicas and their records.

The controller adds partitions, elects leaders and moves replicas; a move goes on after
the call has returned. Each broker describes its own log directories, and the leader of
a partition deletes its records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal

from kafkaio._arguments import (
    level_of,
    partition_of,
    partitions_of,
    type_name,
)
from kafkaio._client.destinations import Broker, Controller, Leader
from kafkaio._client.fanout import Answer, Operation, Results, Terms
from kafkaio._client.offsets import OffsetLookup, places_of
from kafkaio._dataclass import replace
from kafkaio._runtime.clock import now
from kafkaio.admin._asking import all_brokers, ask, final_at, outcome
from kafkaio.admin._checks import distinct, items_of, member_of
from kafkaio.admin._subject import Subject
from kafkaio.admin._types import (
    ElectionName,
    ElectionType,
    LogDirectory,
    NewPartitions,
    PartitionReassignment,
    ReplicaDirectories,
    ReplicaOnDisk,
)
from kafkaio.errors import ArgumentTypeError, ArgumentValueError, UnsupportedVersion
from kafkaio.protocol import _api_numbers as apis, messages
from kafkaio.protocol._broker_errors import broker_error
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.types import OffsetAndTimestamp, TopicPartition

if TYPE_CHECKING:
    from kafkaio._client.offsets import AdminMoment

_ELECTIONS: Final = {ElectionType.PREFERRED: 0, ElectionType.UNCLEAN: 1}
_ELECTIONS_SINCE: Final = {ElectionType.PREFERRED: "2.2", ElectionType.UNCLEAN: "2.4"}
#: The first version of ElectLeaders that has unclean elections (KIP-460).
_UNCLEAN: Final = 1
#: Final here: the controller knows every partition, and a broker all of its replicas.
_MISSING: Final = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.REPLICA_NOT_AVAILABLE,
)
#: Final here: no replica can become the leader, and waiting would not change that.
_NO_LEADERS: Final = (
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
)
#: The end of a log in DeleteRecords: the high watermark.
_HIGH_WATERMARK: Final = -1
_ALL: Final = "the partitions of the cluster"


class Partitions(Subject):
    """The operations on partitions, their replicas and their records."""

    async def create_partitions(
        self,
        counts: Mapping[str, int | NewPartitions],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> dict[str, None]:
        """Add partitions to topics.

        The records of a key go to another partition from then on. If the call is
        cancelled, partitions may still be added.

        Args:
            counts: how many partitions each topic is to have afterwards.
            validate_only: whether the controller only checks whether it would add them.
            timeout: seconds.

        Returns:
            None by topic, in the order of ``counts``.

        Raises:
            UnknownTopicOrPartition: the topic does not exist.
            AuthorizationError: the client may not alter a topic.
            BrokerError: INVALID_PARTITIONS if a topic has as many already, or more;
                INVALID_REPLICA_ASSIGNMENT or another refusal.
            RequestTimeout: no answer arrived in time; partitions may be added.
            AdminErrors: several topics failed.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        wanted = check_counts(counts)

        def build(
            items: Sequence[str], terms: Terms
        ) -> messages.CreatePartitionsRequest:
            return messages.CreatePartitionsRequest(
                topics=[_more(name, wanted[name]) for name in items],
                timeout_ms=terms.timeout_ms,
                validate_only=validate_only,
            )

        operation: Operation[str, None, messages.CreatePartitionsResponse] = Operation(
            what="add partitions to topic",
            request=messages.CreatePartitionsRequest,
            destination=lambda _: Controller,
            build=build,
            read=lambda response, _: (
                Answer(it.name, None, it.error_code, it.error_message)
                for it in response.results
            ),
            react=final_at(apis.CREATE_PARTITIONS, *_MISSING),
            is_exact=True,
        )
        results = await ask(self._cluster, operation, wanted, deadline, "2.1")
        return outcome("add partitions", wanted, results)

    async def elect_leaders(
        self,
        election: ElectionType | ElectionName = "preferred",
        partitions: Iterable[TopicPartition] | None = None,
        *,
        timeout: float | None = None,
    ) -> dict[TopicPartition, bool]:
        """Elect the leaders of partitions (KIP-183, KIP-460, Kafka 2.2).

        Args:
            election: ``preferred``: the first replica becomes the leader, if it is in
                sync. ``unclean`` (Kafka 2.4): any replica that is alive may, where no
                replica in sync is; records can be lost by that.
            partitions: the partitions; all of the cluster by default.
            timeout: seconds.

        Returns:
            By partition whether a leader was elected; False where there was nothing to
            do. For all partitions of the cluster only those where a leader was elected
            may be named.

        Raises:
            UnknownTopicOrPartition: the partition does not exist.
            AuthorizationError: the client may not alter the cluster.
            BrokerError: PREFERRED_LEADER_NOT_AVAILABLE or
                ELIGIBLE_LEADERS_NOT_AVAILABLE if no replica can become the leader.
            UnsupportedVersion: the brokers are too old.
            RequestTimeout: no answer arrived in time.
            AdminErrors: several partitions failed.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        kind = member_of("election", ElectionType, election)
        wanted = None if partitions is None else partitions_of(partitions)
        if wanted is None:
            # The answer says which partitions there are; the request names none.
            results = await self._elected_everywhere(kind, deadline)
            wanted = [*results.found, *results.failed]
            return outcome("elect leaders", wanted, results)
        operation: Operation[TopicPartition, bool, messages.ElectLeadersResponse] = (
            Operation(
                what="elect the leader of",
                request=messages.ElectLeadersRequest,
                destination=lambda _: Controller,
                build=lambda items, terms: _election(kind, items, terms),
                read=_read_election,
                react=final_at(apis.ELECT_LEADERS, *_MISSING, *_NO_LEADERS),
                is_exact=True,
            )
        )
        since = _ELECTIONS_SINCE[kind]
        results = await ask(self._cluster, operation, wanted, deadline, since)
        return outcome("elect leaders", wanted, results)

    async def alter_partition_reassignments(
        self,
        replicas: Mapping[TopicPartition, Sequence[int] | None],
        *,
        allow_replication_factor_change: bool = True,
        timeout: float | None = None,
    ) -> dict[TopicPartition, None]:
        """Move replicas to other brokers (KIP-455, Kafka 2.4).

        The call returns when the controller has begun; `list_partition_reassignments`
        tells what is still being moved.

        Args:
            replicas: the node ids of the replicas that a partition is to have, the
                preferred leader first; None to stop moving them.
            allow_replication_factor_change: whether a partition may get more or fewer
                replicas than it has; False needs Kafka 4.1.
            timeout: seconds.

        Returns:
            None by partition, in the order of ``replicas``.

        Raises:
            UnknownTopicOrPartition: the partition does not exist.
            AuthorizationError: the client may not alter the cluster.
            BrokerError: INVALID_REPLICA_ASSIGNMENT; NO_REASSIGNMENT_IN_PROGRESS if
                there is none to stop; or another refusal.
            UnsupportedVersion: the brokers are too old.
            RequestTimeout: no answer arrived in time; replicas may be moved.
            AdminErrors: several partitions failed.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        wanted = check_replicas(replicas)

        def build(
            items: Sequence[TopicPartition], terms: Terms
        ) -> messages.AlterPartitionReassignmentsRequest:
            # Version 0 has no such field, and would change the number of replicas.
            if not allow_replication_factor_change and terms.version < 1:
                raise UnsupportedVersion(
                    "the broker does not know allow_replication_factor_change=False"
                )
            return messages.AlterPartitionReassignmentsRequest(
                timeout_ms=terms.timeout_ms,
                allow_replication_factor_change=allow_replication_factor_change,
                topics=[
                    messages.ReassignableTopic(
                        name=topic,
                        partitions=[
                            messages.ReassignablePartition(
                                partition_index=tp.partition,
                                replicas=None if nodes is None else list(nodes),
                            )
                            for tp in tps
                            for nodes in [wanted[tp]]
                        ],
                    )
                    for topic, tps in _by_topic(items).items()
                ],
            )

        operation: Operation[
            TopicPartition, None, messages.AlterPartitionReassignmentsResponse
        ] = Operation(
            what="move the replicas of",
            request=messages.AlterPartitionReassignmentsRequest,
            destination=lambda _: Controller,
            build=build,
            read=_read_moves,
            react=final_at(apis.ALTER_PARTITION_REASSIGNMENTS, *_MISSING),
            is_exact=True,
        )
        since = "2.4" if allow_replication_factor_change else "4.1"
        results = await ask(self._cluster, operation, wanted, deadline, since)
        return outcome("move replicas", wanted, results)

    async def list_partition_reassignments(
        self,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        timeout: float | None = None,
    ) -> dict[TopicPartition, PartitionReassignment]:
        """List the replicas that are being moved (KIP-455, Kafka 2.4).

        Args:
            partitions: the partitions to look at; all of the cluster by default.
            timeout: seconds.

        Returns:
            The moves by partition, sorted. A partition whose replicas stay where they
            are is left out.

        Raises:
            AuthorizationError: the client may not describe the cluster.
            UnsupportedVersion: the brokers are too old.
            RequestTimeout: no answer arrived in time.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        wanted = None if partitions is None else partitions_of(partitions)
        if wanted == []:
            return {}

        def build(
            _: object, terms: Terms
        ) -> messages.ListPartitionReassignmentsRequest:
            return messages.ListPartitionReassignmentsRequest(
                timeout_ms=terms.timeout_ms,
                topics=None
                if wanted is None
                else [
                    messages.ListPartitionReassignmentsTopics(
                        name=topic, partition_indexes=[tp.partition for tp in tps]
                    )
                    for topic, tps in _by_topic(wanted).items()
                ],
            )

        operation: Operation[
            str,
            dict[TopicPartition, PartitionReassignment],
            messages.ListPartitionReassignmentsResponse,
        ] = Operation(
            what="list the moves of",
            request=messages.ListPartitionReassignmentsRequest,
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

    async def describe_log_dirs(
        self,
        brokers: Iterable[int] | None = None,
        *,
        timeout: float | None = None,
    ) -> dict[int, dict[str, LogDirectory]]:
        """Describe the log directories of brokers, and the replicas in them.

        Args:
            brokers: node ids; all brokers of the cluster by default.
            timeout: seconds.

        Returns:
            By node id the log directories by path.

        Raises:
            AuthorizationError: the client may not describe the cluster.
            RequestTimeout: a broker did not answer in time, or does not exist.
            AdminErrors: several brokers failed.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        nodes: list[int]
        if brokers is None:
            nodes = await all_brokers(self._cluster, deadline)
        else:
            nodes = list(dict.fromkeys(items_of("brokers", brokers)))

        def read(
            response: messages.DescribeLogDirsResponse, items: Sequence[int]
        ) -> Iterator[Answer[int, dict[str, LogDirectory]]]:
            (node_id,) = items
            found = {it.log_dir: _directory(it) for it in response.results}
            yield Answer(node_id, found, _code_of_directories(response))

        operation: Operation[
            int, dict[str, LogDirectory], messages.DescribeLogDirsResponse
        ] = Operation(
            what="describe the log directories of broker",
            request=messages.DescribeLogDirsRequest,
            destination=Broker,
            build=lambda _, __: messages.DescribeLogDirsRequest(topics=None),
            read=read,
        )
        results = await ask(self._cluster, operation, nodes, deadline, "2.1")
        return outcome("describe log directories", nodes, results)

    async def describe_replica_log_dirs(
        self,
        replicas: Iterable[tuple[TopicPartition, int]],
        *,
        timeout: float | None = None,
    ) -> dict[tuple[TopicPartition, int], ReplicaDirectories]:
        """Tell in which log directories replicas are, with one request per broker.

        `describe_log_dirs` tells what is in the directories.

        Args:
            replicas: each by its partition and the node id of its broker.
            timeout: seconds.

        Returns:
            The directories by replica, in the order of ``replicas``. A broker that has
            no such replica tells none.

        Raises:
            AuthorizationError: the client may not describe the cluster.
            RequestTimeout: a broker did not answer in time, or does not exist.
            AdminErrors: several replicas failed.
            ArgumentValueError: a replica occurs twice.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        wanted = check_places(replicas)

        def read(
            response: messages.DescribeLogDirsResponse,
            items: Sequence[tuple[TopicPartition, int]],
        ) -> Iterator[Answer[tuple[TopicPartition, int], ReplicaDirectories]]:
            code = _code_of_directories(response)
            directories = [_directory(it) for it in response.results]
            for item in items:
                yield Answer(item, _place(item[0], directories), code)

        operation: Operation[
            tuple[TopicPartition, int],
            ReplicaDirectories,
            messages.DescribeLogDirsResponse,
        ] = Operation(
            what="find the log directory of",
            request=messages.DescribeLogDirsRequest,
            destination=lambda item: Broker(item[1]),
            build=lambda items, _: messages.DescribeLogDirsRequest(
                topics=[
                    messages.DescribableLogDirTopic(
                        topic=topic, partitions=[tp.partition for tp in tps]
                    )
                    for topic, tps in _by_topic(tp for tp, _ in items).items()
                ]
            ),
            read=read,
            name=_replica_name,
        )
        results = await ask(self._cluster, operation, wanted, deadline, "2.1")
        return outcome("find replicas", wanted, results)

    async def alter_replica_log_dirs(
        self,
        directories: Mapping[tuple[TopicPartition, int], str],
        *,
        timeout: float | None = None,
    ) -> dict[tuple[TopicPartition, int], None]:
        """Move replicas to another log directory of their broker (KIP-113).

        The call returns when the broker has begun; `describe_log_dirs` shows the
        replica in both directories until it is moved.

        Args:
            directories: the path on the broker, by partition and node id.
            timeout: seconds.

        Returns:
            None by replica, in the order of ``directories``.

        Raises:
            BrokerError: LOG_DIR_NOT_FOUND; KAFKA_STORAGE_ERROR, if the directory is
                offline; REPLICA_NOT_AVAILABLE, if the broker has no such replica: it
                makes one there when it gets it; or another refusal.
            AuthorizationError: the client may not alter the cluster.
            RequestTimeout: a broker did not answer in time.
            AdminErrors: several replicas failed.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)

        def read(
            response: messages.AlterReplicaLogDirsResponse,
            items: Sequence[tuple[TopicPartition, int]],
        ) -> Iterator[Answer[tuple[TopicPartition, int], None]]:
            node_id = items[0][1]
            for topic in response.results:
                for it in topic.partitions:
                    tp = TopicPartition(topic.topic_name, it.partition_index)
                    yield Answer((tp, node_id), None, it.error_code)

        operation: Operation[
            tuple[TopicPartition, int], None, messages.AlterReplicaLogDirsResponse
        ] = Operation(
            what="move the replica of",
            request=messages.AlterReplicaLogDirsRequest,
            destination=lambda item: Broker(item[1]),
            build=lambda items, _: _moves_into(directories, items),
            read=read,
            name=_replica_name,
            # KAFKA_STORAGE_ERROR is retriable elsewhere; a log directory that is
            # offline stays so until the broker is restarted.
            react=final_at(
                apis.ALTER_REPLICA_LOG_DIRS,
                *_MISSING,
                ErrorCode.KAFKA_STORAGE_ERROR,
            ),
            is_exact=True,
        )
        results = await ask(self._cluster, operation, directories, deadline, "2.1")
        return outcome("move replicas", directories, results)

    async def list_offsets(
        self,
        partitions: Mapping[TopicPartition, AdminMoment],
        *,
        isolation_level: Literal[
            "read_uncommitted", "read_committed"
        ] = "read_uncommitted",
        timeout: float | None = None,
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Look up offsets in the logs of partitions, with one request per leader.

        It is `kafkaio.Client.offsets` with places that only administrators ask for.

        Args:
            partitions: what to look up, by partition: ``"earliest"``, ``"latest"``, a
                datetime or milliseconds as for `kafkaio.Client.offsets`, and
                ``"max_timestamp"``: the record with the highest timestamp (Kafka 3.0);
                ``"earliest_local"``: the first that is on the broker's own disk (3.6);
                ``"latest_tiered"``: the last that is in remote storage (3.9);
                ``"earliest_pending_upload"``: the first that is not there yet (4.2).
            isolation_level: what ``"latest"`` means.
            timeout: seconds.

        Returns:
            An entry for each partition, in the order given; None if the log has no such
            record.

        Raises:
            UnknownTopicOrPartition: the topic or partition does not exist.
            AuthorizationError: the client may not describe a topic.
            UnsupportedVersion: a leader does not know such a place.
            RequestTimeout: a leader did not answer in time.
            AdminErrors: several partitions failed.
            ArgumentValueError: a word is unknown, a time is before 1970, or a datetime
                has no time zone.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        times = places_of(partitions)
        lookup = OffsetLookup(self._cluster, level_of(isolation_level))
        results = await lookup.each(times, within=deadline - now())
        return outcome("list offsets", times, results)

    async def delete_records(
        self,
        offsets: Mapping[TopicPartition, int | Literal["latest"]],
        *,
        timeout: float | None = None,
    ) -> dict[TopicPartition, int]:
        """Delete the records of partitions before some offsets (KIP-204).

        Args:
            offsets: the offset of the first record to keep, by partition; ``"latest"``
                deletes all records that are there.
            timeout: seconds.

        Returns:
            By partition the offset at which its log begins now, in the order given.

        Raises:
            UnknownTopicOrPartition: the partition does not exist.
            AuthorizationError: the client may not delete from a topic.
            OffsetOutOfRange: the log does not reach that far.
            BrokerError: POLICY_VIOLATION if the topic is only compacted, or another
                refusal.
            RequestTimeout: a leader did not answer in time; records may be deleted.
            AdminErrors: several partitions failed.
            ArgumentValueError: an offset is negative.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        wanted = check_ends(offsets)

        def build(
            items: Sequence[TopicPartition], terms: Terms
        ) -> messages.DeleteRecordsRequest:
            return messages.DeleteRecordsRequest(
                topics=[
                    messages.DeleteRecordsTopic(
                        name=topic,
                        partitions=[
                            messages.DeleteRecordsPartition(
                                partition_index=tp.partition, offset=wanted[tp]
                            )
                            for tp in tps
                        ],
                    )
                    for topic, tps in _by_topic(items).items()
                ],
                timeout_ms=terms.timeout_ms,
            )

        operation: Operation[TopicPartition, int, messages.DeleteRecordsResponse] = (
            Operation(
                what="delete the records of",
                request=messages.DeleteRecordsRequest,
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
        # A partition that does not exist has no leader to wait for. And to look for its
        # leader could create the topic, on a shared client that creates topics.
        missing = await self._cluster.missing_partitions(wanted, deadline - now())
        there = [tp for tp in wanted if tp not in missing]
        results = await ask(self._cluster, operation, there, deadline, "2.1")
        results.failed |= missing
        return outcome("delete records", wanted, results)

    async def _elected_everywhere(
        self, election: ElectionType, deadline: float
    ) -> Results[TopicPartition, bool]:
        def read(
            response: messages.ElectLeadersResponse, _: object
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
            str, Results[TopicPartition, bool], messages.ElectLeadersResponse
        ] = Operation(
            what="elect the leaders of",
            request=messages.ElectLeadersRequest,
            destination=lambda _: Controller,
            build=lambda _, terms: _election(election, None, terms),
            read=read,
        )
        since = _ELECTIONS_SINCE[election]
        asked = await ask(self._cluster, operation, [_ALL], deadline, since)
        return asked.or_raise()[_ALL]


def _more(name: str, wanted: NewPartitions) -> messages.CreatePartitionsTopic:
    return messages.CreatePartitionsTopic(
        name=name,
        count=wanted.count,
        assignments=None
        if wanted.assignments is None
        else [
            messages.CreatePartitionsAssignment(broker_ids=list(replicas))
            for replicas in wanted.assignments
        ],
    )


def _election(
    election: ElectionType, partitions: Iterable[TopicPartition] | None, terms: Terms
) -> messages.ElectLeadersRequest:
    # Version 0 has no type of election: it would elect the preferred leaders.
    if election is not ElectionType.PREFERRED and terms.version < _UNCLEAN:
        raise UnsupportedVersion("the broker does not know unclean elections")
    return messages.ElectLeadersRequest(
        election_type=_ELECTIONS[election],
        topic_partitions=None
        if partitions is None
        else [
            messages.ElectLeadersRequestTopicPartitions(
                topic=topic, partitions=[tp.partition for tp in tps]
            )
            for topic, tps in _by_topic(partitions).items()
        ],
        timeout_ms=terms.timeout_ms,
    )


def _read_election(
    response: messages.ElectLeadersResponse, items: Sequence[TopicPartition]
) -> Iterator[Answer[TopicPartition, bool]]:
    # If the controller refuses the request as a whole, the answer has no partitions.
    if response.error_code:
        for tp in items:
            yield Answer(tp, value=False, code=response.error_code)
        return
    for topic in response.replica_election_results:
        for it in topic.partition_result:
            tp = TopicPartition(topic.topic, it.partition_id)
            code = it.error_code
            # Not a failure for the caller: the leader is the one wanted.
            if code == ErrorCode.ELECTION_NOT_NEEDED:
                yield Answer(tp, value=False)
            else:
                yield Answer(tp, code == ErrorCode.NONE, code, it.error_message)


def _read_moves(
    response: messages.AlterPartitionReassignmentsResponse,
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


def _code_of_directories(response: messages.DescribeLogDirsResponse) -> int:
    if not response.error_code and not response.results:
        # A broker before 3.2 has no error code here. To a client that may not describe
        # the cluster it sends an empty list; a broker always has a log directory.
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return response.error_code


def _moves_into(
    directories: Mapping[tuple[TopicPartition, int], str],
    items: Iterable[tuple[TopicPartition, int]],
) -> messages.AlterReplicaLogDirsRequest:
    by_path: dict[str, list[TopicPartition]] = defaultdict(list)
    for item in items:
        by_path[directories[item]].append(item[0])
    return messages.AlterReplicaLogDirsRequest(
        dirs=[
            messages.AlterReplicaLogDir(
                path=path,
                topics=[
                    messages.AlterReplicaLogDirTopic(
                        name=topic, partitions=[tp.partition for tp in tps]
                    )
                    for topic, tps in _by_topic(found).items()
                ],
            )
            for path, found in by_path.items()
        ]
    )


def _replica_name(item: tuple[TopicPartition, int]) -> str:
    tp, node_id = item
    return f"{tp.topic}-{tp.partition} on {node_id}"


def _place(
    tp: TopicPartition, directories: Iterable[LogDirectory]
) -> ReplicaDirectories:
    # While a replica is moved it is in two directories: in one as the future replica,
    # which takes the place of the current one when it has caught up (KIP-113).
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


def _directory(it: messages.DescribeLogDirsResult) -> LogDirectory:
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
        ArgumentTypeError: a value is neither an int nor `NewPartitions`.
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
        ArgumentTypeError: a key is not a partition, or a value not a sequence of
            node ids.
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
        ArgumentTypeError: one is not a pair of a partition and a node id.
        ArgumentValueError: one occurs twice.
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
        ArgumentTypeError: a key is not a partition, or a value not an offset.
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
