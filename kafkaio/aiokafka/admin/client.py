"""`AIOKafkaAdminClient`."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from typing import TypeVar

import kafkaio
from kafkaio import TopicPartition, messages
from kafkaio._public import public
from kafkaio.aiokafka import errors
from kafkaio.aiokafka._translation import translated, translating
from kafkaio.aiokafka.abc import AbstractTokenProvider
from kafkaio.aiokafka.admin import responses
from kafkaio.aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from kafkaio.aiokafka.admin.new_partitions import NewPartitions
from kafkaio.aiokafka.admin.new_topic import NewTopic
from kafkaio.aiokafka.admin.records_to_delete import RecordsToDelete
from kafkaio.aiokafka.client import AIOKafkaClient
from kafkaio.aiokafka.structs import OffsetAndMetadata

__all__ = ["AIOKafkaAdminClient"]

#: A row of an answer that is about a topic.
NamedT = TypeVar("NamedT", messages.CreatableTopicResult, messages.DeletableTopicResult)
#: Seconds to wait for the brokers to learn what the controller did, and between looks.
_SETTLING = 5.0
_POLL = 0.02
#: Newer brokers say it of a group; older ones describe one without members.
_GROUP_ID_NOT_FOUND = 69


@public("kafkaio.aiokafka.admin")
class AIOKafkaAdminClient:
    """Administers a cluster.

    `start` connects, and `close` has to be called in the end.

    Args:
        loop: the event loop; the running one by default.
        bootstrap_servers: see `AIOKafkaClient`, as for the other options.
        client_id: name that brokers see.
        request_timeout_ms: longest time for one call, and for what the cluster may take
            for it.
        connections_max_idle_ms: an unused connection is closed after this time.
        retry_backoff_ms: first pause between retries.
        metadata_max_age_ms: metadata is fetched again after this time.
        security_protocol: how connections are secured.
        ssl_context: TLS settings.
        api_version: has no effect, and is deprecated.
        sasl_mechanism: how to log in.
        sasl_plain_username: user for PLAIN and SCRAM.
        sasl_plain_password: password for PLAIN and SCRAM.
        sasl_kerberos_service_name: name of the brokers' principal, for GSSAPI.
        sasl_kerberos_domain_name: not supported.
        sasl_oauth_token_provider: returns the tokens, for OAUTHBEARER.

    Raises:
        ValueError: an option is impossible, or not supported.
        RuntimeError: no event loop is running, and none was given.
    """

    def __init__(  # noqa: PLR0913 - the options of aiokafka
        self,
        *,
        loop: asyncio.AbstractEventLoop | None = None,
        bootstrap_servers: str | Sequence[str] = "localhost",
        client_id: str = "aiokafka-0.14.0",
        request_timeout_ms: int = 40_000,
        connections_max_idle_ms: int | None = 540_000,
        retry_backoff_ms: int = 100,
        metadata_max_age_ms: int = 300_000,
        security_protocol: str = "PLAINTEXT",
        ssl_context: ssl.SSLContext | None = None,
        api_version: str | None = None,
        sasl_mechanism: str = "PLAIN",
        sasl_plain_username: str | None = None,
        sasl_plain_password: str | None = None,
        sasl_kerberos_service_name: str = "kafka",
        sasl_kerberos_domain_name: str | None = None,
        sasl_oauth_token_provider: AbstractTokenProvider | None = None,
    ) -> None:
        self._request_timeout_ms = request_timeout_ms
        self._client = AIOKafkaClient(
            loop=loop,
            bootstrap_servers=bootstrap_servers,
            client_id=client_id,
            metadata_max_age_ms=metadata_max_age_ms,
            request_timeout_ms=request_timeout_ms,
            retry_backoff_ms=retry_backoff_ms,
            ssl_context=ssl_context,
            security_protocol=security_protocol,
            api_version=api_version,
            connections_max_idle_ms=connections_max_idle_ms,
            sasl_mechanism=sasl_mechanism,
            sasl_plain_username=sasl_plain_username,
            sasl_plain_password=sasl_plain_password,
            sasl_kerberos_service_name=sasl_kerberos_service_name,
            sasl_kerberos_domain_name=sasl_kerberos_domain_name,
            sasl_oauth_token_provider=sasl_oauth_token_provider,
        )
        self._admin: kafkaio.Admin | None = None

    async def start(self) -> None:
        """Connect to the cluster. Has no effect if that is done.

        Raises:
            KafkaConnectionError: no bootstrap server answered within
                ``request_timeout_ms``.
        """
        if self._admin is not None:
            return
        await self._client.bootstrap()
        admin = kafkaio.Admin(self._native())
        await admin.start()
        self._admin = admin

    async def close(self) -> None:
        """Close all connections. May be called again, and before `start`."""
        admin, self._admin = self._admin, None
        if admin is not None:
            await admin.close()
        await self._client.close()

    def _native(self) -> kafkaio.Client:
        if self._client.native is None:
            raise errors.NodeNotReadyError("the admin client is not started")
        return self._client.native

    def _to(self, broker: int | None) -> kafkaio.Destination:
        """Return a broker as a destination; any for None."""
        if broker is None:
            return kafkaio.ANY
        if broker not in self._native().cluster.brokers:
            raise errors.NodeNotReadyError(f"the cluster has no broker {broker}")
        return kafkaio.Broker(broker)

    def _seconds(self, timeout_ms: int | None) -> float:
        """Return the time limit of a call: what the cluster may take has to fit."""
        return max(self._request_timeout_ms, timeout_ms or 0) / 1000

    # ---- topics ----------------------------------------------------------------------

    async def create_topics(
        self,
        new_topics: Iterable[NewTopic],
        timeout_ms: int | None = None,
        validate_only: bool = False,  # noqa: FBT001,FBT002 - as aiokafka has it
    ) -> responses.CreateTopicsResponse:
        """Create topics.

        If the connection is lost meanwhile, the request is sent again, and may then
        report ``TOPIC_ALREADY_EXISTS`` for a topic that it has created. The call waits
        for five seconds at most until every broker knows the topics.

        Args:
            new_topics: the topics.
            timeout_ms: how long the cluster may take; ``request_timeout_ms`` by
                default.
            validate_only: check the request, and create nothing.

        Returns:
            What came of each topic: ``topic_errors``. An error of a topic is not
            raised.

        Raises:
            KafkaError: the controller did not answer, or refuses the request.
        """
        wanted = [*new_topics]
        request = messages.CreateTopicsRequest(
            topics=[_creatable(each) for each in wanted],
            timeout_ms=timeout_ms or self._request_timeout_ms,
            validate_only=validate_only,
        )
        with translating():
            answer = await self._native().request(
                request, kafkaio.Controller, timeout=self._seconds(timeout_ms)
            )
        if not validate_only:
            await self._seen(
                [each.name for each in answer.topics if not each.error_code]
            )
        return responses.CreateTopicsResponse(
            answer.throttle_time_ms,
            [
                responses.TopicError(each.name, each.error_code, each.error_message)
                for each in _in_order(answer.topics, [each.name for each in wanted])
            ],
        )

    async def delete_topics(
        self, topics: Iterable[str], timeout_ms: int | None = None
    ) -> responses.DeleteTopicsResponse:
        """Delete topics.

        The call waits for five seconds at most until every broker has forgotten them.

        Args:
            topics: their names.
            timeout_ms: how long the cluster may take; ``request_timeout_ms`` by
                default.

        Returns:
            What came of each topic: ``topic_error_codes``. An error of a topic is not
            raised.

        Raises:
            KafkaError: the controller did not answer, or refuses the request.
        """
        names = [*topics]
        within = timeout_ms or self._request_timeout_ms
        newest = messages.DeleteTopicsRequest(
            topics=[messages.DeleteTopicState(name=name) for name in names],
            timeout_ms=within,
        )
        # Brokers before 2.8 take names alone.
        older = messages.DeleteTopicsRequest(topic_names=names, timeout_ms=within)
        client, seconds = self._native(), self._seconds(timeout_ms)
        with translating():
            try:
                answer = await client.request(
                    newest, kafkaio.Controller, timeout=seconds
                )
            except kafkaio.UnsupportedVersion:
                answer = await client.request(
                    older, kafkaio.Controller, timeout=seconds
                )
        await self._gone(
            {each.name or "" for each in answer.responses if not each.error_code}
        )
        return responses.DeleteTopicsResponse(
            answer.throttle_time_ms,
            [
                responses.TopicErrorCode(each.name or "", each.error_code)
                for each in _in_order(answer.responses, names)
            ],
        )

    async def _seen(self, names: Sequence[str]) -> None:
        """Wait until every broker knows new topics, for a while."""
        with suppress(kafkaio.KafkaError, kafkaio.AdminErrors):
            await self._started().wait_for_topics(names, timeout=_SETTLING)

    async def _gone(self, names: Collection[str]) -> None:
        """Wait until no broker knows topics that were deleted, for a while."""
        request = messages.MetadataRequest(
            topics=[messages.MetadataRequestTopic(name=name) for name in names],
            allow_auto_topic_creation=False,
        )
        client = self._native()
        with suppress(kafkaio.KafkaError, TimeoutError):
            async with asyncio.timeout(_SETTLING):
                for broker in [*client.cluster.brokers] if names else ():
                    is_gone = False
                    while not is_gone:
                        answer = await client.request(request, kafkaio.Broker(broker))
                        is_gone = all(each.error_code for each in answer.topics)
                        await asyncio.sleep(0 if is_gone else _POLL)

    async def create_partitions(
        self,
        topic_partitions: dict[str, NewPartitions],
        timeout_ms: int | None = None,
        validate_only: bool = False,  # noqa: FBT001,FBT002 - as aiokafka has it
    ) -> responses.CreatePartitionsResponse:
        """Give topics more partitions.

        Args:
            topic_partitions: how many, by the name of the topic.
            timeout_ms: how long the cluster may take; ``request_timeout_ms`` by
                default.
            validate_only: check the request, and create nothing.

        Raises:
            KafkaError: a topic cannot have them, or the controller did not answer.
                Other topics may have got theirs.
        """
        request = messages.CreatePartitionsRequest(
            topics=[
                messages.CreatePartitionsTopic(
                    name=name,
                    count=each.total_count,
                    assignments=None
                    if each.new_assignments is None
                    else [
                        messages.CreatePartitionsAssignment(broker_ids=[*brokers])
                        for brokers in each.new_assignments
                    ],
                )
                for name, each in topic_partitions.items()
            ],
            timeout_ms=timeout_ms or self._request_timeout_ms,
            validate_only=validate_only,
        )
        with translating():
            answer = await self._native().request(
                request, kafkaio.Controller, timeout=self._seconds(timeout_ms)
            )
        found = [
            responses.TopicError(each.name, each.error_code, each.error_message)
            for each in answer.results
        ]
        for topic, code, message in found:
            if code:
                raise errors.for_code(code)(f"topic {topic!r}: {message}")
        return responses.CreatePartitionsResponse(answer.throttle_time_ms, found)

    async def list_topics(self) -> list[str]:
        """Return the names of all topics, Kafka's own included.

        Raises:
            KafkaError: no broker answered.
        """
        answer = await self._get_cluster_metadata()
        return [each.name or "" for each in answer.topics]

    async def describe_topics(
        self, topics: Iterable[str] | None = None
    ) -> list[responses.TopicDescription]:
        """Return topics with their partitions; creates none.

        Args:
            topics: their names; None for all.

        Returns:
            One dict for each: ``error_code``, ``topic``, ``is_internal``, and
            ``partitions`` with ``error_code``, ``partition``, ``leader``, ``replicas``,
            ``isr`` and ``offline_replicas``.

        Raises:
            KafkaError: no broker answered. An error of a topic is in its dict.
        """
        answer = await self._get_cluster_metadata(topics)
        return [
            {
                "error_code": topic.error_code,
                "topic": topic.name or "",
                "is_internal": topic.is_internal,
                "partitions": [
                    {
                        "error_code": each.error_code,
                        "partition": each.partition_index,
                        "leader": each.leader_id,
                        "replicas": [*each.replica_nodes],
                        "isr": [*each.isr_nodes],
                        "offline_replicas": [*each.offline_replicas],
                    }
                    for each in topic.partitions
                ],
            }
            for topic in answer.topics
        ]

    async def describe_cluster(self) -> responses.ClusterDescription:
        """Return the brokers, the id of the cluster and that of the controller.

        Raises:
            KafkaError: no broker answered.
        """
        answer = await self._get_cluster_metadata()
        return {
            "throttle_time_ms": answer.throttle_time_ms,
            "brokers": [
                {
                    "node_id": each.node_id,
                    "host": each.host,
                    "port": each.port,
                    "rack": each.rack,
                }
                for each in answer.brokers
            ],
            "cluster_id": answer.cluster_id,
            "controller_id": answer.controller_id,
        }

    async def _get_cluster_metadata(
        self, topics: Iterable[str] | None = None
    ) -> messages.MetadataResponse:
        request = messages.MetadataRequest(
            topics=None
            if topics is None
            else [messages.MetadataRequestTopic(name=name) for name in topics],
            allow_auto_topic_creation=False,
        )
        with translating():
            return await self._native().request(request, timeout=self._seconds(None))

    # ---- configs ---------------------------------------------------------------------

    async def describe_configs(
        self,
        config_resources: Iterable[ConfigResource],
        include_synonyms: bool = False,  # noqa: FBT001,FBT002 - as aiokafka has it
    ) -> list[responses.DescribeConfigsResponse]:
        """Return configs of topics and brokers.

        Args:
            config_resources: the topics and brokers; the names in their ``configs`` are
                those asked for, and none stands for all.
            include_synonyms: tell where values may come from.

        Returns:
            One answer for each broker that is named, then one for the topics. An error
            of a resource is in the answer.

        Raises:
            KafkaError: a broker did not answer.
        """
        brokers, topics = _by_broker(config_resources)
        asked = [*brokers.items(), *([(None, topics)] if topics else [])]
        found = []
        for broker, resources in asked:
            request = messages.DescribeConfigsRequest(
                resources=[
                    messages.DescribeConfigsResource(
                        resource_type=int(each.resource_type),
                        resource_name=str(each.name),
                        configuration_keys=[*each.configs] if each.configs else None,
                    )
                    for each in resources
                ],
                include_synonyms=include_synonyms,
            )
            with translating():
                answer = await self._native().request(
                    request, self._to(broker), timeout=self._seconds(None)
                )
            found.append(_described(answer))
        return found

    async def alter_configs(
        self, config_resources: Iterable[ConfigResource]
    ) -> list[responses.AlterConfigsResponse]:
        """Replace the configs of topics and brokers.

        Configs that are not named lose their values: `kafkaio.Admin` has
        ``incremental_alter_configs``, which leaves them.

        Args:
            config_resources: the topics and brokers with their configs.

        Returns:
            One answer for the topics, then one for each broker that is named. An error
            of a resource is in the answer.

        Raises:
            KafkaError: a broker did not answer.
        """
        brokers, topics = _by_broker(config_resources)
        found = []
        for broker, resources in [(None, topics), *brokers.items()]:
            request = messages.AlterConfigsRequest(
                resources=[
                    messages.AlterConfigsRequestAlterConfigsResource(
                        resource_type=int(each.resource_type),
                        resource_name=str(each.name),
                        configs=[
                            messages.AlterConfigsRequestAlterableConfig(
                                name=name, value=value
                            )
                            for name, value in (each.configs or {}).items()
                        ],
                    )
                    for each in resources
                ]
            )
            with translating():
                answer = await self._native().request(
                    request, self._to(broker), timeout=self._seconds(None)
                )
            rows = [
                responses.AlteredResource(
                    each.error_code,
                    each.error_message,
                    each.resource_type,
                    each.resource_name,
                )
                for each in answer.responses
            ]
            found.append(responses.AlterConfigsResponse(answer.throttle_time_ms, rows))
        return found

    # ---- groups ----------------------------------------------------------------------

    async def describe_consumer_groups(
        self,
        group_ids: Iterable[str],
        group_coordinator_id: int | None = None,
        include_authorized_operations: bool = False,  # noqa: FBT001,FBT002
    ) -> list[responses.DescribeGroupsResponse]:
        """Return groups of the classic protocol with their members.

        Args:
            group_ids: the names of the groups.
            group_coordinator_id: the broker that coordinates all of them; None to look
                each up.
            include_authorized_operations: tell the rights on each.

        Returns:
            One answer for each coordinator. An error of a group is in the answer; one
            that is not there has the state ``Dead``.

        Raises:
            KafkaError: a coordinator was not found, or did not answer.
        """
        by_broker: dict[int, list[str]] = {}
        for group in group_ids:
            broker = group_coordinator_id
            if broker is None:
                broker = await self.find_coordinator(group)
            by_broker.setdefault(broker, []).append(group)
        found = []
        for broker, groups in by_broker.items():
            request = messages.DescribeGroupsRequest(
                groups=groups,
                include_authorized_operations=include_authorized_operations,
            )
            with translating():
                answer = await self._native().request(
                    request, self._to(broker), timeout=self._seconds(None)
                )
            found.append(
                responses.DescribeGroupsResponse(
                    answer.throttle_time_ms, [_group(each) for each in answer.groups]
                )
            )
        return found

    async def list_consumer_groups(
        self, broker_ids: Iterable[int] | None = None
    ) -> list[tuple[str, str]]:
        """Return the names of all groups, each with its kind: ``consumer``, mostly.

        Args:
            broker_ids: the brokers to ask; None for all.

        Raises:
            KafkaError: a broker did not answer, or cannot tell yet.
        """
        if broker_ids is None:
            answer = await self._get_cluster_metadata([])
            broker_ids = [each.node_id for each in answer.brokers]
        found: dict[tuple[str, str], None] = {}
        for broker in broker_ids:
            with translating():
                listed = await self._native().request(
                    messages.ListGroupsRequest(),
                    self._to(broker),
                    timeout=self._seconds(None),
                )
            if listed.error_code:
                raise errors.for_code(listed.error_code)(
                    f"broker {broker} cannot list its groups"
                )
            for each in listed.groups:
                found[each.group_id, each.protocol_type] = None
        return [*found]

    async def find_coordinator(self, group_id: str, coordinator_type: int = 0) -> int:
        """Return the id of the broker that coordinates a group.

        Args:
            group_id: the group, or the transactional id.
            coordinator_type: 0 for a group, 1 for a transactional id.

        Raises:
            KafkaError: it was not found, or the principal may not know it.
        """
        return await self._client.coordinator_lookup(coordinator_type, group_id)

    async def list_consumer_group_offsets(
        self,
        group_id: str,
        group_coordinator_id: int | None = None,
        partitions: Iterable[TopicPartition] | None = None,
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offsets that a group has committed.

        Args:
            group_id: the group.
            group_coordinator_id: has no effect: the coordinator is looked up.
            partitions: the partitions; None, or none, for all that it has committed.

        Returns:
            Offsets by partition; -1 for a partition that was asked for and has none.

        Raises:
            KafkaError: the coordinator did not answer, or refuses.
        """
        del group_coordinator_id
        wanted = None if partitions is None else [*partitions]
        with translating():
            found = await self._started().list_consumer_group_offsets(
                {group_id: wanted or None}, timeout=self._seconds(None)
            )
        return {
            tp: OffsetAndMetadata(each.offset, each.metadata)
            if each is not None
            else OffsetAndMetadata(-1, "")
            for tp, each in found[group_id].items()
        }

    async def delete_records(
        self,
        records_to_delete: dict[TopicPartition, RecordsToDelete],
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, int]:
        """Delete records from the beginning of partitions.

        Args:
            records_to_delete: up to which offset, by partition.
            timeout_ms: how long the cluster may take; ``request_timeout_ms`` by
                default.

        Returns:
            The first offset that each partition has afterwards.

        Raises:
            KafkaError: a partition failed, or a leader did not answer. Records of other
                partitions may be deleted.
        """
        offsets: dict[TopicPartition, int] = {
            tp: each.before_offset for tp, each in records_to_delete.items()
        }
        try:
            with translating():
                return await self._started().delete_records(
                    {tp: "latest" if n == -1 else n for tp, n in offsets.items()},
                    timeout=self._seconds(timeout_ms),
                )
        except kafkaio.AdminErrors as several:
            # aiokafka raises the first one.
            raise translated(several.exceptions[0]) from several

    def _started(self) -> kafkaio.Admin:
        if self._admin is None:
            raise errors.NodeNotReadyError("the admin client is not started")
        return self._admin


def _creatable(topic: NewTopic) -> messages.CreatableTopic:
    return messages.CreatableTopic(
        name=topic.name,
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=[
            messages.CreatableReplicaAssignment(
                partition_index=number, broker_ids=[*brokers]
            )
            for number, brokers in topic.replica_assignments.items()
        ],
        configs=[
            messages.CreatableTopicConfig(name=name, value=value)
            for name, value in topic.topic_configs.items()
        ],
    )


def _in_order(found: Iterable[NamedT], names: Sequence[str]) -> list[NamedT]:
    """Return the rows of an answer in the order of the request; brokers mix them."""
    places = {name: place for place, name in enumerate(names)}
    return sorted(found, key=lambda each: places.get(each.name or "", len(places)))


def _by_broker(
    resources: Iterable[ConfigResource],
) -> tuple[dict[int | None, list[ConfigResource]], list[ConfigResource]]:
    """Return the brokers' resources by broker, and those that any broker knows."""
    brokers: dict[int | None, list[ConfigResource]] = {}
    others = []
    for each in resources:
        if each.resource_type is ConfigResourceType.BROKER:
            brokers.setdefault(int(each.name), []).append(each)
        else:
            others.append(each)
    return brokers, others


def _described(
    answer: messages.DescribeConfigsResponse,
) -> responses.DescribeConfigsResponse:
    return responses.DescribeConfigsResponse(
        answer.throttle_time_ms,
        [
            responses.DescribedResource(
                each.error_code,
                each.error_message,
                each.resource_type,
                each.resource_name,
                [_entry(config) for config in each.configs],
            )
            for each in answer.results
        ],
    )


def _entry(config: messages.DescribeConfigsResourceResult) -> responses.ConfigEntry:
    return responses.ConfigEntry(
        config.name,
        config.value,
        config.read_only,
        config.config_source,
        config.is_sensitive,
        [
            responses.ConfigSynonym(each.name, each.value, each.source)
            for each in config.synonyms
        ],
    )


def _group(
    group: messages.DescribeGroupsResponseDescribedGroup,
) -> responses.DescribedGroup:
    is_missing = group.error_code == _GROUP_ID_NOT_FOUND
    found = responses.DescribedGroup(
        0 if is_missing else group.error_code,
        group.group_id,
        "Dead" if is_missing else group.group_state,
        group.protocol_type,
        group.protocol_data,
        [
            responses.GroupMember(
                each.member_id,
                each.client_id,
                each.client_host,
                each.member_metadata,
                each.member_assignment,
            )
            for each in group.members
        ],
    )
    found.authorized_operations = group.authorized_operations
    return found
