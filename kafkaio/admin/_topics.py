"""The operations of `kafkaio.Admin` on topics.

The controller makes and deletes topics, and every broker learns of it a moment later.
`Topics.create_topics` can wait for that, because a program then uses the topic.

Brokers answer in any order, so that answers are matched by name or id.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias, TypeVar
from uuid import UUID

from kafkaio._arguments import (
    check_topic,
    topics_of,
    type_name,
)
from kafkaio._client.destinations import ANY, Broker, Controller
from kafkaio._client.fanout import Answer, Operation, Results, Terms
from kafkaio._dataclass import constructor
from kafkaio._machines.reactions import Reaction, reaction
from kafkaio.admin._asking import (
    all_brokers,
    ask,
    ask_one,
    final_at,
    need_brokers,
    outcome,
)
from kafkaio.admin._checks import distinct, items_of
from kafkaio.admin._subject import Subject
from kafkaio.admin._types import (
    ConfigEntry,
    ConfigSource,
    CreatedTopic,
    NewTopic,
    PartitionDescription,
    TopicDescription,
    TopicListing,
    operations_of,
)
from kafkaio.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    KafkaError,
    ProtocolError,
    RequestTimeout,
    UnsupportedVersion,
)
from kafkaio.protocol import _api_numbers as apis, messages
from kafkaio.protocol._broker_errors import broker_error
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import ZERO_UUID, Request, Response

_LONGEST_NAME = 249
_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")

AnswerT = TypeVar("AnswerT", bound=Response)

#: A topic by name or by id.
TopicId: TypeAlias = str | UUID

#: The first versions of requests that have the brokers' defaults for the numbers of
#: partitions and replicas (CreateTopics, KIP-464), and topics by their ids (KIP-516).
_WITH_DEFAULTS, _DELETE_BY_ID, _DESCRIBE_BY_ID = 4, 6, 12
#: The first version of Metadata with the operations that the client is allowed.
_WITH_OPERATIONS = 8
#: The most partitions in one page of a description: the broker's own default.
_PAGE = 2_000
#: The most topics in one request of Metadata, whose answer is not paged and may not be
#: too large to be received.
_TOPICS_AT_ONCE = 200
#: Final here: that a topic does not exist is the answer.
_MISSING = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})
_REACT = final_at(apis.METADATA, *_MISSING)


class Topics(Subject):
    """The operations on topics."""

    async def create_topics(
        self,
        topics: Iterable[NewTopic],
        *,
        validate_only: bool = False,
        wait: bool = True,
        timeout: float | None = None,
    ) -> dict[str, CreatedTopic]:
        """Create topics.

        The controller creates each topic for itself: one that it refuses keeps no other
        from being created. Brokers learn of a new topic a moment later; with ``wait``
        the call returns when every broker knows a leader of every partition, so that
        the topics can be used at once.

        A call that is repeated by itself, because its answer was lost, may report
        TOPIC_ALREADY_EXISTS for a topic that it has created; the error has a note.
        If the call is cancelled, topics may still be created.

        Args:
            topics: the topics. Names that are illegal are refused before anything is
                sent.
            validate_only: whether the controller only checks whether it would create
                them.
            wait: whether to wait until all brokers can use them. A topic that some
                broker cannot use in time fails with a RequestTimeout that says so; it
                was created.
            timeout: seconds.

        Returns:
            The created topics by name, in the order of ``topics``.

        Raises:
            InvalidTopic: a name is illegal.
            AuthorizationError: the client may not create a topic of that name.
            BrokerError: TOPIC_ALREADY_EXISTS, INVALID_PARTITIONS,
                INVALID_REPLICATION_FACTOR, INVALID_REPLICA_ASSIGNMENT, INVALID_CONFIG,
                POLICY_VIOLATION or another refusal.
            UnsupportedVersion: brokers before 2.4 need numbers of partitions and
                replicas.
            RequestTimeout: no answer arrived in time; topics may still be created.
            AdminErrors: several topics failed.
            ArgumentValueError: a name occurs twice.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        wanted = check_new(topics)
        need_brokers(self._cluster, "create topics")
        by_name = {topic.name: topic for topic in wanted}

        def build(items: Sequence[str], terms: Terms) -> messages.CreateTopicsRequest:
            return messages.CreateTopicsRequest(
                topics=[_creatable(by_name[name], terms.version) for name in items],
                timeout_ms=terms.timeout_ms,
                validate_only=validate_only,
            )

        operation: Operation[str, CreatedTopic, messages.CreateTopicsResponse] = (
            Operation(
                what="create topic",
                request=messages.CreateTopicsRequest,
                destination=lambda _: Controller,
                build=build,
                read=lambda response, _: (
                    Answer(it.name, _created(it), it.error_code, it.error_message)
                    for it in response.topics
                ),
                is_exact=True,
            )
        )
        # Older brokers fail only the topics that leave a number to their default.
        results = await ask(self._cluster, operation, by_name, deadline, "2.4")
        if validate_only:
            # The controller draws ids even if it only validates: no topic has them.
            results.found = {
                name: _without_id(created) for name, created in results.found.items()
            }
        elif wait and results.found:
            await self._fail_unled(results, deadline)
        return outcome("create topics", by_name, results)

    async def delete_topics(
        self,
        topics: Iterable[str | UUID],
        *,
        timeout: float | None = None,
    ) -> dict[str | UUID, None]:
        """Delete topics, with all of their records.

        Each topic is deleted for itself. Brokers delete the records a moment later. If
        the call is cancelled, topics may still be deleted.

        Args:
            topics: topics by name, or by id (Kafka 2.8).
            timeout: seconds.

        Returns:
            None by topic, in the order of ``topics``.

        Raises:
            UnknownTopicOrPartition: the topic does not exist.
            AuthorizationError: the client may not delete a topic.
            BrokerError: TOPIC_DELETION_DISABLED or another refusal.
            UnsupportedVersion: the brokers do not know topics by their ids.
            RequestTimeout: no answer arrived in time; topics may still be deleted.
            AdminErrors: several topics failed.
            ArgumentValueError: a topic occurs twice.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        wanted = check_ids(topics)
        need_brokers(self._cluster, "delete topics")
        operation: Operation[TopicId, None, messages.DeleteTopicsResponse] = Operation(
            what="delete topic",
            request=messages.DeleteTopicsRequest,
            destination=lambda _: Controller,
            build=_deletion,
            read=_read_deletion,
            react=final_at(apis.DELETE_TOPICS, *_MISSING),
            is_exact=True,
        )
        # Older brokers fail only the topics that are given by id.
        results = await ask(self._cluster, operation, wanted, deadline, "2.8")
        return outcome("delete topics", wanted, results)

    async def list_topics(
        self,
        *,
        internal: bool = False,
        timeout: float | None = None,
    ) -> dict[str, TopicListing]:
        """List the topics of the cluster.

        Topics that the client may not describe are left out: an empty list does not
        show that there are none.

        Args:
            internal: whether to list Kafka's own topics as well, such as
                ``__consumer_offsets``.
            timeout: seconds.

        Returns:
            The topics by name, sorted.

        Raises:
            RequestTimeout: no broker answered in time.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        need_brokers(self._cluster, "list topics")
        request = messages.MetadataRequest(topics=None, allow_auto_topic_creation=False)
        answer = await self._answer_of_any(request, "list topics", deadline, "2.1")
        listed = sorted(
            (
                TopicListing(
                    name=topic.name,
                    topic_id=_id_of(topic.topic_id),
                    is_internal=topic.is_internal,
                    partitions=len(topic.partitions),
                )
                for topic in answer.topics
                if topic.name is not None
            ),
            key=lambda each: each.name,
        )
        return {each.name: each for each in listed if internal or not each.is_internal}

    async def describe_topics(
        self,
        topics: Iterable[str | UUID],
        *,
        include_authorized_operations: bool = False,
        timeout: float | None = None,
    ) -> dict[str | UUID, TopicDescription]:
        """Describe topics: their partitions, and where the replicas of these are.

        Args:
            topics: topics by name, or by id (Kafka 3.1).
            include_authorized_operations: whether to ask what the client may do with
                each topic (Kafka 2.3).
            timeout: seconds.

        Returns:
            The descriptions by topic, in the order of ``topics``.

        Raises:
            UnknownTopicOrPartition: the topic does not exist.
            AuthorizationError: the client may not describe a topic.
            InvalidTopic: a name is illegal.
            UnsupportedVersion: the brokers do not know topics by their ids.
            RequestTimeout: no broker answered in time.
            AdminErrors: several topics failed.
            ArgumentValueError: a topic occurs twice.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        wanted = check_ids(topics)
        need_brokers(self._cluster, "describe topics")
        results = Results[TopicId, TopicDescription]()
        names = [topic for topic in wanted if isinstance(topic, str)]
        ids = [topic for topic in wanted if not isinstance(topic, str)]
        # Two requests: a broker that gets names and ids in one answers the ids only.
        for same in names, ids:
            if not same:
                continue
            results.add(
                await self._topics_by_metadata(
                    same, deadline, with_operations=include_authorized_operations
                )
            )
        await self._add_eligible_leaders(
            results, deadline, with_operations=include_authorized_operations
        )
        return outcome("describe topics", wanted, results)

    async def wait_for_topics(
        self,
        topics: str | Iterable[str],
        *,
        timeout: float | None = None,
    ) -> None:
        """Wait until every broker knows a leader of every partition of topics.

        Args:
            topics: the name of a topic, or several names.
            timeout: seconds.

        Raises:
            RequestTimeout: a broker did not know a leader in time, or not the topic.
            AdminErrors: several topics were not ready in time.
            ArgumentTypeError: an argument has the wrong type.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        names = topics_of(topics)
        if not names:
            return
        missing = await self._unled(names, deadline)
        ready = dict.fromkeys(name for name in names if name not in missing)
        outcome("wait for topics", names, Results(ready, dict(missing)))

    async def _fail_unled(
        self, results: Results[str, CreatedTopic], deadline: float
    ) -> None:
        """Fail the topics that some broker does not see led before the deadline."""
        missing = await self._unled(results.found, deadline)
        for name, why in missing.items():
            error = RequestTimeout(f"topic {name!r} was created, but {why}")
            error.__cause__ = why.__cause__
            results.failed[name] = error
            del results.found[name]

    async def _unled(
        self, names: Collection[str], deadline: float
    ) -> Mapping[str, KafkaError]:
        """Wait until every broker knows a leader of every partition of topics.

        Returns:
            Why a topic is not ready at the deadline, by the names of such topics.
        """
        last: dict[int, Mapping[str, str]] = {}

        def read(
            response: messages.MetadataResponse, items: Sequence[int]
        ) -> Iterator[Answer[int, None]]:
            (node_id,) = items
            found = last[node_id] = _unled(response, names)
            code = ErrorCode.LEADER_NOT_AVAILABLE if found else ErrorCode.NONE
            yield Answer(node_id, None, code, "; ".join(found.values()) or None)

        request = messages.MetadataRequest(
            topics=[messages.MetadataRequestTopic(name=name) for name in names],
            allow_auto_topic_creation=False,
        )
        operation: Operation[int, None, messages.MetadataResponse] = Operation(
            what="wait for the topics at broker",
            request=messages.MetadataRequest,
            destination=Broker,
            build=lambda _, __: request,
            read=read,
            # The broker may be behind. That does not make the client's own metadata out
            # of date, as the table has it for these codes.
            react=lambda code: Reaction(retry=True) if code else reaction(3, 0),
        )
        nodes = await all_brokers(self._cluster, deadline)
        results = await ask(self._cluster, operation, nodes, deadline, "2.1")
        # A broker that has left the cluster meanwhile leads nothing.
        failed = {
            node_id: error
            for node_id, error in results.failed.items()
            if node_id in self._cluster.view.brokers
        }
        missing: dict[str, KafkaError] = {}
        for node_id, error in failed.items():
            whys = last.get(node_id) or dict.fromkeys(names, str(error))
            for name, why in whys.items():
                missing[name] = RequestTimeout(f"broker {node_id}: {why}")
                missing[name].__cause__ = error
        return missing

    async def _add_eligible_leaders(
        self,
        results: Results[TopicId, TopicDescription],
        deadline: float,
        *,
        with_operations: bool,
    ) -> None:
        """Describe again, with the eligible leaders, the topics that may have any.

        Metadata has everything but these. They are replicas that are not in sync, so
        that only topics which have such replicas are asked for by
        DescribeTopicPartitions, which takes brokers several times as long.
        """
        behind = {
            item: found.name
            for item, found in results.found.items()
            if any(len(it.isr) < len(it.replicas) for it in found.partitions)
        }
        if not behind:
            return
        try:
            pages = await self._topics_by_pages(
                dict.fromkeys(behind.values()),
                deadline,
                with_operations=with_operations,
            )
        except UnsupportedVersion:
            return  # a broker before 3.7 has no eligible leaders
        except KafkaError as error:
            for item in behind:
                del results.found[item]
                results.failed[item] = error
            return
        for item, name in behind.items():
            found = pages.found.get(name)
            # Between the two requests the topic may have been deleted, and another one
            # created under its name.
            if found and found.topic_id == results.found[item].topic_id:
                results.found[item] = found

    async def _topics_by_pages(
        self, names: Collection[str], deadline: float, *, with_operations: bool
    ) -> Results[TopicId, TopicDescription]:
        """Describe topics by DescribeTopicPartitions (KIP-966)."""
        wanted = sorted(names)
        parts: dict[str, list[messages.DescribeTopicPartitionsResponseTopic]] = {}
        cursor: messages.DescribeTopicPartitionsRequestCursor | None = None
        while True:
            request = messages.DescribeTopicPartitionsRequest(
                topics=[
                    messages.DescribeTopicPartitionsRequestTopicRequest(name=name)
                    for name in wanted
                ],
                response_partition_limit=_PAGE,
                cursor=cursor,
            )
            page = await self._answer_of_any(
                request, "describe topics", deadline, "3.7"
            )
            for part in page.topics:
                parts.setdefault(part.name or "", []).append(part)
            following = page.next_cursor
            if following is None:
                break
            # A broker whose cursor does not move on would be asked for ever.
            at = (following.topic_name, following.partition_index)
            if cursor is not None and at <= (cursor.topic_name, cursor.partition_index):
                raise ProtocolError(
                    f"describe topics: the page from {cursor.topic_name!r} on leads "
                    f"back to {at[0]!r}"
                )
            cursor = messages.DescribeTopicPartitionsRequestCursor(
                topic_name=at[0], partition_index=at[1]
            )
            wanted = [name for name in wanted if name >= at[0]]
        return _sorted_pages(names, parts, with_operations=with_operations)

    async def _answer_of_any(
        self, request: Request[AnswerT], what: str, deadline: float, since: str
    ) -> AnswerT:
        """Ask any broker, and return its answer whatever error codes are in it."""
        # The client's own requests for metadata are repeated if no partition has a
        # leader. An administrator wants to see just that.
        verb, _, noun = what.partition(" ")
        return await ask_one(
            self._cluster,
            (verb, noun),
            type(request),
            lambda _: request,
            lambda _: (ErrorCode.NONE, None),
            to=ANY,
            deadline=deadline,
            since=since,
        )

    async def _topics_by_metadata(
        self, topics: Sequence[TopicId], deadline: float, *, with_operations: bool
    ) -> Results[TopicId, TopicDescription]:
        """Describe topics, all by their names or all by their ids."""

        def build(items: Sequence[TopicId], terms: Terms) -> messages.MetadataRequest:
            if terms.version < _DESCRIBE_BY_ID and not all(
                isinstance(item, str) for item in items
            ):
                raise UnsupportedVersion("the broker describes by names alone")
            return messages.MetadataRequest(
                topics=[
                    messages.MetadataRequestTopic(name=item)
                    if isinstance(item, str)
                    else messages.MetadataRequestTopic(topic_id=item, name=None)
                    for item in items
                ],
                allow_auto_topic_creation=False,
                include_topic_authorized_operations=with_operations
                and terms.version >= _WITH_OPERATIONS,
            )

        def read(
            response: messages.MetadataResponse, items: Sequence[TopicId]
        ) -> Iterator[Answer[TopicId, TopicDescription]]:
            wanted = frozenset(items)
            for it in response.topics:
                named = it.name is not None and it.name in wanted
                item: TopicId = it.name if named and it.name else it.topic_id
                described = _description(it, with_operations=with_operations)
                yield Answer(item, described, it.error_code)

        operation: Operation[TopicId, TopicDescription, messages.MetadataResponse] = (
            Operation(
                what="describe topic",
                request=messages.MetadataRequest,
                destination=lambda _: ANY,
                build=build,
                read=read,
                batch=lambda _: _TOPICS_AT_ONCE,
                react=_REACT,
                is_exact=True,
            )
        )
        return await ask(self._cluster, operation, topics, deadline, "3.1")


def check_new(topics: Iterable[NewTopic]) -> list[NewTopic]:
    """Check topics that are to be created.

    Raises:
        ArgumentTypeError: one is not a `NewTopic`, or a part of it has the wrong type.
        ArgumentValueError: a name occurs twice, or a topic has assignments and a
            number of partitions or replicas.
        InvalidTopic: a name is illegal.
    """
    found: list[object] = items_of("topics", topics)
    checked: list[NewTopic] = []
    for topic in found:
        if not isinstance(topic, NewTopic):
            raise ArgumentTypeError(
                f"topics must be a collection of NewTopic, not of {type_name(topic)}"
            )
        check_topic(topic.name)
        _check_name(topic.name)
        for name in ("partitions", "replication_factor"):
            number = getattr(topic, name)
            if number is None:
                continue
            if not isinstance(number, int) or isinstance(number, bool):
                raise ArgumentTypeError(
                    f"{name} of topic {topic.name!r} must be int, not "
                    f"{type_name(number)}"
                )
            if topic.assignments is not None:
                raise ArgumentValueError(
                    f"topic {topic.name!r} has assignments: they say the {name}"
                )
        checked.append(topic)
    distinct("topics", (topic.name for topic in checked))
    return checked


def check_ids(topics: Iterable[TopicId]) -> list[TopicId]:
    """Check topics that are given by name or id.

    Raises:
        ArgumentTypeError: one is neither.
        ArgumentValueError: one occurs twice, or a name is empty.
    """
    found = items_of("topics", topics)
    for topic in found:
        if not isinstance(topic, UUID):
            check_topic(topic)
    return distinct("topics", found)


def _check_name(name: str) -> None:
    """Refuse a name that brokers would refuse.

    Raises:
        InvalidTopic: with the broker's reason.
    """
    why = ""
    if name in {".", ".."}:
        why = 'Topic name cannot be "." or ".."'
    elif len(name) > _LONGEST_NAME:
        why = (
            f"Topic name is illegal, it can't be longer than {_LONGEST_NAME} "
            f"characters, topic name: {name}"
        )
    elif not _LEGAL_NAME.fullmatch(name):
        why = (
            f'Topic name "{name}" is illegal, it contains a character other than ASCII'
            " alphanumerics, '.', '_' and '-'"
        )
    if why:
        raise broker_error(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"create topic {name}: {why}"
        )


def _creatable(topic: NewTopic, version: int) -> messages.CreatableTopic:
    if version < _WITH_DEFAULTS and topic.assignments is None:
        for name, value in (
            ("partitions", topic.partitions),
            ("replication_factor", topic.replication_factor),
        ):
            if value is None:
                raise UnsupportedVersion(
                    f"{name}: this broker has no default, and needs a number"
                )
    # -1 stands for the brokers' default, and for "see the assignments".
    partitions, factor = topic.partitions, topic.replication_factor
    return messages.CreatableTopic(
        name=topic.name,
        num_partitions=-1 if partitions is None else partitions,
        replication_factor=-1 if factor is None else factor,
        assignments=[
            messages.CreatableReplicaAssignment(
                partition_index=partition, broker_ids=list(replicas)
            )
            for partition, replicas in sorted((topic.assignments or {}).items())
        ],
        configs=[
            messages.CreatableTopicConfig(name=name, value=value)
            for name, value in (topic.configs or {}).items()
        ],
    )


def _created(topic: messages.CreatableTopicResult) -> CreatedTopic:
    # A client that may create a topic but not describe its configs gets an error code
    # in their place (KIP-525). The topic was created all the same.
    hides = topic.topic_config_error_code != ErrorCode.NONE
    return CreatedTopic(
        name=topic.name,
        topic_id=_id_of(topic.topic_id),
        partitions=topic.num_partitions if topic.num_partitions >= 0 else None,
        replication_factor=(
            topic.replication_factor if topic.replication_factor >= 0 else None
        ),
        configs=None
        if hides or not topic.configs
        else {
            config.name: ConfigEntry(
                name=config.name,
                value=config.value,
                source=ConfigSource.of(config.config_source),
                is_read_only=config.read_only,
                is_sensitive=config.is_sensitive,
            )
            for config in topic.configs
        },
    )


def _without_id(created: CreatedTopic) -> CreatedTopic:
    return CreatedTopic(
        name=created.name,
        topic_id=None,
        partitions=created.partitions,
        replication_factor=created.replication_factor,
        configs=created.configs,
    )


def _unled(
    response: messages.MetadataResponse, names: Collection[str]
) -> dict[str, str]:
    """Return why topics cannot be used at a broker yet, by name."""
    seen = {topic.name: topic for topic in response.topics}
    missing: dict[str, str] = {}
    for name in names:
        topic = seen.get(name)
        # Some errors of a topic come with its partitions, which then say more.
        if topic is None or (topic.error_code and not topic.partitions):
            missing[name] = "it does not know the topic yet"
            continue
        for partition in topic.partitions:
            if partition.leader_id < 0:
                missing[name] = f"partition {partition.partition_index} has no leader"
                break
    return missing


def _deletion(items: Sequence[TopicId], terms: Terms) -> messages.DeleteTopicsRequest:
    names = [item for item in items if isinstance(item, str)]
    if terms.version < _DELETE_BY_ID:
        if len(names) < len(items):
            raise UnsupportedVersion("the broker deletes topics by their names alone")
        return messages.DeleteTopicsRequest(
            topic_names=names, timeout_ms=terms.timeout_ms
        )
    return messages.DeleteTopicsRequest(
        topics=[
            messages.DeleteTopicState(name=item)
            if isinstance(item, str)
            else messages.DeleteTopicState(topic_id=item)
            for item in items
        ],
        timeout_ms=terms.timeout_ms,
    )


def _read_deletion(
    response: messages.DeleteTopicsResponse, items: Sequence[TopicId]
) -> Iterator[Answer[TopicId, None]]:
    # In versions with ids, an item is either a name or an id; the answer has both.
    wanted = frozenset(items)
    for it in response.responses:
        item: TopicId = it.topic_id if it.topic_id in wanted else it.name or it.topic_id
        yield Answer(item, None, it.error_code, it.error_message)


def _sorted_pages(
    names: Collection[str],
    parts: Mapping[str, Sequence[messages.DescribeTopicPartitionsResponseTopic]],
    *,
    with_operations: bool,
) -> Results[TopicId, TopicDescription]:
    wanted = frozenset(names)
    for name in parts:
        if name not in wanted:
            raise ProtocolError(
                f"describe topics: the answer has {name!r}, which was not asked for"
            )
    results = Results[TopicId, TopicDescription]()
    for name in names:
        found = parts.get(name)
        if found is None:
            results.failed[name] = ProtocolError(
                f"describe topic {name}: the answer leaves it out"
            )
        elif found[0].error_code:
            results.failed[name] = broker_error(
                found[0].error_code,
                f"describe topic {name}",
                api=apis.DESCRIBE_TOPIC_PARTITIONS,
                topic=name,
            )
        else:
            results.found[name] = _from_pages(found, with_operations=with_operations)
    return results


def _from_pages(
    parts: Sequence[messages.DescribeTopicPartitionsResponseTopic],
    *,
    with_operations: bool,
) -> TopicDescription:
    first = parts[0]
    describe = constructor(PartitionDescription)
    return TopicDescription(
        name=first.name or "",
        topic_id=_id_of(first.topic_id),
        is_internal=first.is_internal,
        partitions=tuple(
            [
                describe(
                    it.partition_index,
                    it.leader_id if it.leader_id >= 0 else None,
                    it.leader_epoch if it.leader_epoch >= 0 else None,
                    tuple(it.replica_nodes),
                    tuple(it.isr_nodes),
                    tuple(it.offline_replicas),
                    tuple(it.eligible_leader_replicas or ()),
                    tuple(it.last_known_elr or ()),
                )
                for part in parts
                for it in part.partitions
            ]
        ),
        authorized_operations=operations_of(first.topic_authorized_operations)
        if with_operations
        else None,
    )


def _description(
    topic: messages.MetadataResponseTopic, *, with_operations: bool
) -> TopicDescription:
    describe = constructor(PartitionDescription)
    return TopicDescription(
        name=topic.name or "",
        topic_id=_id_of(topic.topic_id),
        is_internal=topic.is_internal,
        partitions=tuple(
            describe(
                it.partition_index,
                it.leader_id if it.leader_id >= 0 else None,
                it.leader_epoch if it.leader_epoch >= 0 else None,
                tuple(it.replica_nodes),
                tuple(it.isr_nodes),
                tuple(it.offline_replicas),
            )
            # Brokers send them in any order.
            for it in sorted(topic.partitions, key=lambda each: each.partition_index)
        ),
        authorized_operations=operations_of(topic.topic_authorized_operations)
        if with_operations
        else None,
    )


def _id_of(topic_id: UUID) -> UUID | None:
    return topic_id if topic_id != ZERO_UUID else None
