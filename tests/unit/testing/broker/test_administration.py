from typing import Any

import pytest

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.alter_configs import (
    AlterableConfig as PlainConfig,
    AlterConfigsRequest,
    AlterConfigsResource as PlainResource,
)
from kafkaio.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kafkaio.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kafkaio.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kafkaio.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicState,
)
from kafkaio.protocol.messages.describe_cluster import DescribeClusterRequest
from kafkaio.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kafkaio.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from kafkaio.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    TopicRequest,
)
from kafkaio.protocol.messages.find_coordinator import FindCoordinatorRequest
from kafkaio.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkaio.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from kafkaio.testing._broker.cluster import java_hash
from tests.unit.testing.broker.calls import (
    Caller,
    batch,
    connect,
    fetch,
    fetched,
    produced,
    started,
)


async def create(caller: Caller, **fields: Any) -> ErrorCode:
    request = CreateTopicsRequest(
        topics=[CreatableTopic(name="t", num_partitions=2, replication_factor=1)]
    )
    for name, value in fields.items():
        setattr(request.topics[0], name, value)
    (answer,) = (await caller.call(request, 7)).topics
    return ErrorCode(answer.error_code)


async def metadata(
    caller: Caller, *names: str, version: int = 13, create: bool = False
) -> MetadataResponse:
    topics = [MetadataRequestTopic(name=name) for name in names]
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=create)
    return await caller.call(request, version)


@pytest.mark.parametrize("version", range(14))
async def test_metadata(version: int) -> None:
    async with started(topics={"t": 3}, nodes=3) as (broker, caller):
        response = await metadata(caller, "t", version=version, create=True)
        assert [b.node_id for b in response.brokers] == [0, 1, 2]
        assert [b.port for b in response.brokers] == [
            node.port for node in broker.nodes.values()
        ]
        (topic,) = response.topics
        assert [p.leader_id for p in topic.partitions] == [0, 1, 2]
        assert topic.partitions[1].replica_nodes == [1, 2, 0]
        everything = await caller.call(
            MetadataRequest(topics=[] if version == 0 else None), version
        )
        assert [topic.name for topic in everything.topics] == ["t"]


async def test_metadata_by_id() -> None:
    async with started(topics={"t": 1}) as (broker, caller):
        topic_id = broker.topics["t"].topic_id
        asked = [MetadataRequestTopic(name=None, topic_id=topic_id)]
        response = await caller.call(MetadataRequest(topics=asked), 12)
        assert response.topics[0].name == "t"
        broker.topics["t"].partitions[0].elect(-1)
        (partition,) = (await metadata(caller, "t")).topics[0].partitions
        assert partition.error_code == ErrorCode.LEADER_NOT_AVAILABLE
        await caller.call(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]), 6)
        response = await caller.call(MetadataRequest(topics=asked), 12)
        assert response.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


async def test_a_new_topic_can_be_used_when_its_creation_is_answered() -> None:
    async with started(metadata_delay=5.0, nodes=2) as (broker, caller):
        assert await create(caller) == ErrorCode.NONE
        for node_id in (0, 1):
            other = await connect(broker, node_id)
            (topic,) = (await metadata(other, "t")).topics
            assert (topic.error_code, len(topic.partitions)) == (0, 2)
            (led,) = (one for one in topic.partitions if one.leader_id == node_id)
            answer = await produced(other, "t", led.partition_index, batch())
            assert answer.error_code == ErrorCode.NONE


async def test_a_change_of_a_topic_is_known_to_all_nodes_when_it_is_answered() -> None:
    async with started(metadata_delay=5.0, topics={"t": 1}) as (_, caller):
        more = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name="t", count=2)]
        )
        assert (await caller.call(more, 3)).results[0].error_code == ErrorCode.NONE
        (topic,) = (await metadata(caller, "t")).topics
        assert len(topic.partitions) == 2
        assert (await produced(caller, "t", 1, batch())).error_code == ErrorCode.NONE
        await caller.call(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]), 6)
        (topic,) = (await metadata(caller, "t")).topics
        assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("release", "code"),
    [
        ("2.1", ErrorCode.LEADER_NOT_AVAILABLE),
        ("2.8", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
async def test_metadata_of_a_topic_that_the_request_creates(
    release: str, code: ErrorCode
) -> None:
    async with started(metadata_delay=1.0, as_version=release) as (broker, caller):
        for _ in range(2):
            response = await metadata(caller, "new", create=True, version=7)
            assert response.topics[0].error_code == code
        broker.control.skip_time(1)
        assert (await metadata(caller, "new", version=7)).topics[0].error_code == 0


@pytest.mark.parametrize("allowed", [True, False])
async def test_metadata_creates_a_topic_if_client_and_broker_allow_it(
    allowed: bool,
) -> None:
    async with started(metadata_delay=0.0, auto_create_topics=allowed) as (_, caller):
        for wish in (False, True):
            await metadata(caller, "new", create=wish)
            (topic,) = (await metadata(caller, "new", create=wish)).topics
            is_there = topic.error_code == ErrorCode.NONE
            assert is_there == (allowed and wish)
        (topic,) = (await metadata(caller, "no/name", create=True)).topics
        assert topic.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


async def test_create_topics_errors() -> None:
    async with started(nodes=2) as (_, caller):
        one = CreatableReplicaAssignment(partition_index=0, broker_ids=[0])
        other = CreatableReplicaAssignment(partition_index=2, broker_ids=[0])
        bad = CreatableTopicConfig(name="retention.ms", value="soon")
        free: dict[str, Any] = {"num_partitions": -1, "replication_factor": -1}
        strange = CreatableReplicaAssignment(partition_index=0, broker_ids=[7])
        wrong: list[tuple[ErrorCode, dict[str, Any]]] = [
            (ErrorCode.INVALID_TOPIC_EXCEPTION, {"name": ""}),
            (ErrorCode.INVALID_TOPIC_EXCEPTION, {"name": ".."}),
            (ErrorCode.INVALID_PARTITIONS, {"num_partitions": 0}),
            (ErrorCode.INVALID_REPLICATION_FACTOR, {"replication_factor": 3}),
            (ErrorCode.INVALID_CONFIG, {"configs": [bad]}),
            (ErrorCode.INVALID_REQUEST, {"assignments": [one]}),
            (ErrorCode.INVALID_REPLICA_ASSIGNMENT, free | {"assignments": [other]}),
            (ErrorCode.INVALID_REPLICA_ASSIGNMENT, free | {"assignments": [strange]}),
            (ErrorCode.NONE, free | {"assignments": [one]}),
        ]
        for code, fields in wrong:
            assert await create(caller, **fields) == code, fields
        twice = [CreatableTopic(name="x"), CreatableTopic(name="x")]
        (answer,) = (await caller.call(CreateTopicsRequest(topics=twice), 7)).topics
        assert answer.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", range(2, 8))
async def test_create_with_validate_only(version: int) -> None:
    async with started() as (broker, caller):
        topic = CreatableTopic(name="t", num_partitions=-1, replication_factor=-1)
        request = CreateTopicsRequest(topics=[topic], validate_only=True)
        (answer,) = (await caller.call(request, version)).topics
        assert answer.error_code == 0
        if version >= 5:
            assert answer.num_partitions == 1
            told = {config.name: config.value for config in answer.configs or ()}
            assert told["retention.ms"] == "604800000"
        assert not broker.topics


@pytest.mark.parametrize("version", range(1, 7))
async def test_delete(version: int) -> None:
    async with started(topics={"t": 1}) as (broker, caller):
        request = DeleteTopicsRequest(topic_names=["t", "none"])
        if version >= 6:
            topic_id = broker.topics["t"].topic_id
            gone = [
                DeleteTopicState(name=None, topic_id=topic_id),
                DeleteTopicState(name="none"),
            ]
            request = DeleteTopicsRequest(topics=gone)
        answers = (await caller.call(request, version)).responses
        assert [a.error_code for a in answers] == [
            0,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]
        assert not broker.topics


async def test_more_partitions() -> None:
    async with started(topics={"t": 1}, nodes=2) as (broker, caller):
        placed = [CreatePartitionsAssignment(broker_ids=[1, 0])]
        alone = [CreatePartitionsAssignment(broker_ids=[1])]
        for code, name, count, assignments in [
            (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "none", 2, None),
            (ErrorCode.INVALID_PARTITIONS, "t", 1, None),
            (ErrorCode.INVALID_REPLICA_ASSIGNMENT, "t", 3, placed),
            (ErrorCode.INVALID_REPLICA_ASSIGNMENT, "t", 2, alone),
            (ErrorCode.NONE, "t", 2, placed),
            (ErrorCode.NONE, "t", 4, None),
        ]:
            topic = CreatePartitionsTopic(
                name=name, count=count, assignments=assignments
            )
            request = CreatePartitionsRequest(topics=[topic])
            (answer,) = (await caller.call(request, 3)).results
            assert answer.error_code == code, (name, count)
        assert len(broker.topics["t"].partitions) == 4
        assert broker.topics["t"].partitions[1].replicas == [1, 0]


async def test_delete_records() -> None:
    async with started(topics={"t": 1}) as (_, caller):
        await produced(caller, "t", 0, batch([b"a", b"b", b"c"]))
        for offset, code, low in [
            (1, 0, 1),
            (9, ErrorCode.OFFSET_OUT_OF_RANGE, -1),
            (0, 0, 1),
            (-1, 0, 3),
        ]:
            partition = DeleteRecordsPartition(partition_index=0, offset=offset)
            topic = DeleteRecordsTopic(name="t", partitions=[partition])
            request = DeleteRecordsRequest(topics=[topic])
            (answer,) = (await caller.call(request, 2)).topics[0].partitions
            assert (answer.error_code, answer.low_watermark) == (code, low), offset
        (data,) = await fetched(caller, fetch("t", {0: 2}))
        assert data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


async def configs(caller: Caller, kind: int, name: str, *keys: str) -> dict[str, Any]:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=list(keys) or None
    )
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    (answer,) = (await caller.call(request, 4)).results
    if answer.error_code:
        return {"error": ErrorCode(answer.error_code)}
    return {one.name: (one.value, one.config_source) for one in answer.configs}


async def test_configs() -> None:
    async with started(topics={"t": 1}) as (broker, caller):
        assert (await configs(caller, 2, "t"))["max.message.bytes"] == ("1048588", 5)
        assert await configs(caller, 2, "none") == {
            "error": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        }
        assert await configs(caller, 9, "t") == {"error": ErrorCode.INVALID_REQUEST}
        assert await configs(caller, 4, "7") == {"error": ErrorCode.INVALID_REQUEST}
        assert await configs(caller, 4, "0", "num.partitions") == {
            "num.partitions": ("1", 5)
        }
        for operation, name, value, code in [
            (0, "max.message.bytes", "100", 0),
            (0, "max.message.bytes", "many", ErrorCode.INVALID_CONFIG),
            (0, "no.such", "1", ErrorCode.INVALID_CONFIG),
            (0, "retention.ms", None, ErrorCode.INVALID_REQUEST),
            (2, "cleanup.policy", "compact", 0),
            (3, "cleanup.policy", "delete", 0),
            (2, "retention.ms", "5", ErrorCode.INVALID_CONFIG),
            (7, "retention.ms", "5", ErrorCode.UNKNOWN_SERVER_ERROR),
            (1, "retention.ms", None, 0),
        ]:
            change = AlterableConfig(name=name, config_operation=operation, value=value)
            resource = AlterConfigsResource(
                resource_type=2, resource_name="t", configs=[change]
            )
            request = IncrementalAlterConfigsRequest(resources=[resource])
            (answer,) = (await caller.call(request, 1)).responses
            assert answer.error_code == code, (operation, name, value)
        found = await configs(caller, 2, "t", "max.message.bytes", "cleanup.policy")
        assert found == {
            "max.message.bytes": ("100", 1),
            "cleanup.policy": ("compact", 1),
        }
        large = await produced(caller, "t", 0, batch([bytes(100)], key=b"k"))
        assert large.error_code == ErrorCode.MESSAGE_TOO_LARGE
        for name, code in [("no.such", ErrorCode.INVALID_CONFIG), ("retention.ms", 0)]:
            plain = PlainResource(
                resource_type=2,
                resource_name="t",
                configs=[PlainConfig(name=name, value="7")],
            )
            replacing = AlterConfigsRequest(resources=[plain])
            (replaced,) = (await caller.call(replacing, 2)).responses
            assert replaced.error_code == code
        assert broker.topics["t"].settings.values == {"retention.ms": "7"}
        assert (await produced(caller, "t", 0, batch([bytes(100)]))).error_code == 0


async def test_the_cluster() -> None:
    async with started(nodes=3, racks=["a", "b"]) as (broker, caller):
        await broker.control.stop(1)
        answer = await caller.call(DescribeClusterRequest(), 2)
        assert [(b.broker_id, b.rack) for b in answer.brokers] == [(0, "a"), (2, None)]
        assert answer.controller_id == 0
        answer = await caller.call(
            DescribeClusterRequest(include_fenced_brokers=True), 2
        )
        assert [b.is_fenced for b in answer.brokers] == [False, True, False]
        wrong = await caller.call(DescribeClusterRequest(endpoint_type=2), 2)
        assert wrong.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE
        wrong = await caller.call(DescribeClusterRequest(endpoint_type=7), 2)
        assert wrong.error_code == ErrorCode.UNSUPPORTED_ENDPOINT_TYPE


async def test_authorized_operations_are_returned_on_request() -> None:
    async with started(topics={"t": 1}) as (_, caller):
        untold = -(2**31)
        for asked in (False, True):
            request = DescribeClusterRequest(
                include_cluster_authorized_operations=asked
            )
            cluster = await caller.call(request, 2)
            on_cluster = 8096 if asked else untold
            assert cluster.cluster_authorized_operations == on_cluster
            everything = MetadataRequest(
                # A topic that is named twice is answered once.
                topics=[MetadataRequestTopic(name="t") for _ in range(2)],
                include_topic_authorized_operations=asked,
                include_cluster_authorized_operations=asked,
            )
            told = await caller.call(everything, 9)
            assert told.cluster_authorized_operations == on_cluster
            (topic,) = told.topics
            on_topic = 3576 if asked else untold
            assert topic.topic_authorized_operations == on_topic


@pytest.mark.parametrize("version", range(1, 6))
async def test_log_dirs(version: int) -> None:
    async with started(nodes=2) as (broker, caller):
        broker.create_topic("t", 3, 1)
        broker.create_topic("other", 1, 2)
        data = batch()
        await produced(caller, "t", 0, data)
        answer = await caller.call(DescribeLogDirsRequest(topics=None), version)
        (directory,) = answer.results
        assert {
            (topic.name, part.partition_index): part.partition_size
            for topic in directory.topics
            for part in topic.partitions
        } == {("t", 0): len(data), ("t", 2): 0, ("other", 0): 0}
        asked = [DescribableLogDirTopic(topic="t", partitions=[1, 2])]
        answer = await caller.call(DescribeLogDirsRequest(topics=asked), version)
        (topic,) = answer.results[0].topics
        assert [part.partition_index for part in topic.partitions] == [2]


async def test_topics_page_by_page() -> None:
    async with started(topics={"a": 2, "b": 3}) as (_, caller):
        seen: list[tuple[str | None, int]] = []
        cursor = None
        for _ in range(9):
            request = DescribeTopicPartitionsRequest(
                response_partition_limit=2, cursor=cursor
            )
            answer = await caller.call(request, 0)
            seen += [
                (topic.name, part.partition_index)
                for topic in answer.topics
                for part in topic.partitions
            ]
            if answer.next_cursor is None:
                break
            cursor = DescribeTopicPartitionsRequestCursor(
                topic_name=answer.next_cursor.topic_name,
                partition_index=answer.next_cursor.partition_index,
            )
        assert seen == [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 2)]
        for wrong in [("b", -1), ("c", 0)]:
            cursor = DescribeTopicPartitionsRequestCursor(
                topic_name=wrong[0], partition_index=wrong[1]
            )
            request = DescribeTopicPartitionsRequest(
                topics=[TopicRequest(name="b"), TopicRequest(name="a")], cursor=cursor
            )
            answer = await caller.call(request, 0)
            assert [topic.error_code for topic in answer.topics] == [
                ErrorCode.INVALID_REQUEST
            ] * 2
        asked = [TopicRequest(name="none"), TopicRequest(name="!")]
        answer = await caller.call(DescribeTopicPartitionsRequest(topics=asked), 0)
        assert [topic.error_code for topic in answer.topics] == [
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]


@pytest.mark.parametrize("version", range(7))
async def test_find_coordinator(version: int) -> None:
    async with started(nodes=3) as (broker, caller):
        broker.control.move_coordinator("g", 2)
        if version < 4:
            found = await caller.call(FindCoordinatorRequest(key="g"), version)
            assert (found.error_code, found.node_id) == (0, 2)
            return
        request = FindCoordinatorRequest(coordinator_keys=["g", "h"])
        answers = (await caller.call(request, version)).coordinators
        assert [answer.node_id for answer in answers] == [
            2,
            broker.control.coordinator("h"),
        ]
        request.key_type = 1
        answers = (await caller.call(request, version)).coordinators
        assert [answer.node_id for answer in answers] == [
            broker.control.transaction_coordinator(name) for name in ("g", "h")
        ]
        request.key_type = 9
        (answer, _) = (await caller.call(request, version)).coordinators
        assert answer.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("hello", 99162322),
        ("polygenelubricants", -(2**31)),
        ("ü\U0001f600", 2015071),
    ],
)
def test_java_hash(text: str, value: int) -> None:
    assert java_hash(text) == value


async def test_a_node_that_comes_back_leads_its_partitions_again() -> None:
    async with started(nodes=2) as (broker, caller):
        broker.create_topic("t", 2, 1)
        await produced(caller, "t", 0, batch())
        await broker.control.kill(0)
        assert broker.control.leader(("t", 0)) == -1
        other = await connect(broker, 1)
        assert (await metadata(other, "t")).controller_id == 1
        await broker.control.restart(0)
        assert broker.control.leader(("t", 0)) == 0
        again = await connect(broker, 0)
        assert (await produced(again, "t", 0, batch())).base_offset == 1
