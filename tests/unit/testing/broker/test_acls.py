"""What the embedded broker answers to clients that lack a right.

``tests/integration/test_acls.py`` compares all of it with a real Kafka; here is what
each right is for.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kafkaio._runtime.clock import wall_ms
from kafkaio.protocol import messages as m
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import Request, Response, Struct
from kafkaio.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnTopic
from kafkaio.protocol.messages.alter_user_scram_credentials import (
    ScramCredentialDeletion,
)
from kafkaio.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
)
from kafkaio.protocol.messages.create_partitions import CreatePartitionsTopic
from kafkaio.protocol.messages.create_topics import CreatableTopic
from kafkaio.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsTopic,
)
from kafkaio.protocol.messages.delete_topics import DeleteTopicState
from kafkaio.protocol.messages.describe_configs import DescribeConfigsResource
from kafkaio.protocol.messages.describe_producers import TopicRequest
from kafkaio.protocol.messages.describe_user_scram_credentials import UserName
from kafkaio.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
)
from kafkaio.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsTopic,
)
from kafkaio.protocol.messages.metadata import MetadataRequestTopic
from kafkaio.protocol.messages.offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkaio.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kafkaio.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kafkaio.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kafkaio.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
)
from kafkaio.testing import Broker
from kafkaio.testing._broker.faults import error
from kafkaio.testing._broker.versions import NEWEST, Release
from kafkaio.testing._security.acls import (
    CLUSTER_NAME,
    Acl,
    Operation,
    Permission,
    ResourceType,
)
from kafkaio.testing._security.config import SecurityConfig
from tests.unit.testing.broker.calls import Caller, batch, fetch, produce, started

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
CLUSTER, TXN = ResourceType.CLUSTER, ResourceType.TRANSACTIONAL_ID
ANONYMOUS = "User:ANONYMOUS"
NAMES = {TOPIC: "t", GROUP: "g", CLUSTER: CLUSTER_NAME, TXN: "x"}
FAILED = {
    TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    TXN: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
Right = tuple[ResourceType, Operation]


@asynccontextmanager
async def guarded(
    *rights: Right, as_version: Release = NEWEST
) -> AsyncIterator[tuple[Broker, Caller]]:
    """A broker, and a connection of somebody who may do only this."""
    security = SecurityConfig(super_users=())
    options: dict[str, Any] = {"topics": {"t": 1}, "acls": True, "security": security}
    options["as_version"] = as_version
    async with started(**options) as (broker, caller):
        for right in rights:
            grant(broker, right)
        yield broker, caller


def grant(
    broker: Broker, right: Right, permission: Permission = Permission.ALLOW
) -> None:
    kind, operation = right
    assert broker.security.acls is not None
    broker.security.acls.add(
        Acl(
            resource_type=kind,
            name=NAMES[kind],
            principal=ANONYMOUS,
            operation=operation,
            permission=permission,
        )
    )


def codes(answer: Struct) -> Iterator[int]:
    """All error codes of an answer."""
    for field in answer.SCHEMA:
        value = getattr(answer, field.name)
        if field.name in {"error_code", "partition_error_code"}:
            yield value
        for one in value if isinstance(value, list) else ():
            if isinstance(one, Struct):
                yield from codes(one)


def own_topics() -> list[AddPartitionsToTxnTopic]:
    return [AddPartitionsToTxnTopic(name="t", partitions=[0])]


PLACE = [OffsetCommitRequestPartition(partition_index=0, committed_offset=1)]
WHO: Any = {"group_id": "g", "member_id": "m"}
#: What each right is for: the request, its version, the right that is missing, and
#: those that it needs beside it.
CASES: list[tuple[Request[Response], int, Right, tuple[Right, ...]]] = [
    (
        m.MetadataRequest(topics=[MetadataRequestTopic(name="t")]),
        12,
        (TOPIC, Operation.DESCRIBE),
        (),
    ),
    (produce("t", 0, batch(timestamp=wall_ms())), 12, (TOPIC, Operation.WRITE), ()),
    (fetch("t", {0: 0}), 12, (TOPIC, Operation.READ), ()),
    (
        m.ListOffsetsRequest(
            topics=[
                ListOffsetsTopic(
                    name="t", partitions=[ListOffsetsPartition(timestamp=-1)]
                )
            ]
        ),
        10,
        (TOPIC, Operation.DESCRIBE),
        (),
    ),
    (
        m.OffsetForLeaderEpochRequest(
            topics=[
                OffsetForLeaderTopic(topic="t", partitions=[OffsetForLeaderPartition()])
            ]
        ),
        4,
        (TOPIC, Operation.DESCRIBE),
        (),
    ),
    (
        m.DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition()])]
        ),
        2,
        (TOPIC, Operation.DELETE),
        (),
    ),
    (
        m.DescribeProducersRequest(
            topics=[TopicRequest(name="t", partition_indexes=[0])]
        ),
        0,
        (TOPIC, Operation.READ),
        (),
    ),
    (
        m.FindCoordinatorRequest(coordinator_keys=["g"]),
        6,
        (GROUP, Operation.DESCRIBE),
        (),
    ),
    (m.FindCoordinatorRequest(key="g"), 3, (GROUP, Operation.DESCRIBE), ()),
    (
        m.FindCoordinatorRequest(key_type=1, coordinator_keys=["x"]),
        6,
        (TXN, Operation.DESCRIBE),
        (),
    ),
    (m.JoinGroupRequest(**WHO, session_timeout_ms=1), 9, (GROUP, Operation.READ), ()),
    (
        m.SyncGroupRequest(**WHO, protocol_type="consumer", protocol_name="range"),
        5,
        (GROUP, Operation.READ),
        (),
    ),
    (m.HeartbeatRequest(**WHO), 4, (GROUP, Operation.READ), ()),
    (m.LeaveGroupRequest(**WHO), 2, (GROUP, Operation.READ), ()),
    (
        ConsumerGroupHeartbeatRequest(**WHO, member_epoch=3),
        1,
        (GROUP, Operation.READ),
        (),
    ),
    (
        ConsumerGroupHeartbeatRequest(
            **WHO, member_epoch=3, subscribed_topic_names=["t"]
        ),
        1,
        (TOPIC, Operation.DESCRIBE),
        ((GROUP, Operation.READ),),
    ),
    (
        m.OffsetCommitRequest(
            group_id="g", topics=[OffsetCommitRequestTopic(name="t", partitions=PLACE)]
        ),
        9,
        (GROUP, Operation.READ),
        ((TOPIC, Operation.READ),),
    ),
    (
        m.OffsetCommitRequest(
            group_id="g", topics=[OffsetCommitRequestTopic(name="t", partitions=PLACE)]
        ),
        9,
        (TOPIC, Operation.READ),
        ((GROUP, Operation.READ),),
    ),
    (
        m.OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g")]),
        9,
        (GROUP, Operation.DESCRIBE),
        (),
    ),
    (
        m.OffsetFetchRequest(
            groups=[
                OffsetFetchRequestGroup(
                    group_id="g",
                    topics=[OffsetFetchRequestTopics(name="t", partition_indexes=[0])],
                )
            ]
        ),
        9,
        (TOPIC, Operation.DESCRIBE),
        ((GROUP, Operation.DESCRIBE),),
    ),
    (m.OffsetDeleteRequest(group_id="g"), 0, (GROUP, Operation.DELETE), ()),
    (m.DeleteGroupsRequest(groups_names=["g"]), 2, (GROUP, Operation.DELETE), ()),
    (m.DescribeGroupsRequest(groups=["g"]), 6, (GROUP, Operation.DESCRIBE), ()),
    (
        m.ConsumerGroupDescribeRequest(group_ids=["g"]),
        1,
        (GROUP, Operation.DESCRIBE),
        (),
    ),
    (
        m.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000),
        5,
        (TXN, Operation.WRITE),
        (),
    ),
    (
        m.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="x", v3_and_below_topics=own_topics()
        ),
        3,
        (TXN, Operation.WRITE),
        ((TOPIC, Operation.WRITE),),
    ),
    (
        m.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="x", v3_and_below_topics=own_topics()
        ),
        3,
        (TOPIC, Operation.WRITE),
        ((TXN, Operation.WRITE),),
    ),
    (
        m.AddPartitionsToTxnRequest(transactions=[]),
        5,
        (CLUSTER, Operation.CLUSTER_ACTION),
        (),
    ),
    (
        m.AddOffsetsToTxnRequest(transactional_id="x", group_id="g"),
        4,
        (TXN, Operation.WRITE),
        ((GROUP, Operation.READ),),
    ),
    (
        m.AddOffsetsToTxnRequest(transactional_id="x", group_id="g"),
        4,
        (GROUP, Operation.READ),
        ((TXN, Operation.WRITE),),
    ),
    (
        m.TxnOffsetCommitRequest(
            transactional_id="x",
            group_id="g",
            topics=[
                TxnOffsetCommitRequestTopic(
                    name="t", partitions=[TxnOffsetCommitRequestPartition()]
                )
            ],
        ),
        4,
        (TOPIC, Operation.READ),
        ((TXN, Operation.WRITE), (GROUP, Operation.READ)),
    ),
    (m.EndTxnRequest(transactional_id="x"), 4, (TXN, Operation.WRITE), ()),
    (
        m.WriteTxnMarkersRequest(
            markers=[
                WritableTxnMarker(
                    topics=[WritableTxnMarkerTopic(name="t", partition_indexes=[0])]
                )
            ]
        ),
        1,
        (CLUSTER, Operation.CLUSTER_ACTION),
        (),
    ),
    (
        m.DescribeTransactionsRequest(transactional_ids=["x"]),
        0,
        (TXN, Operation.DESCRIBE),
        (),
    ),
    (
        m.CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="t", count=1)]),
        3,
        (TOPIC, Operation.ALTER),
        (),
    ),
    (
        m.DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]),
        6,
        (TOPIC, Operation.DELETE),
        (),
    ),
    (
        m.DescribeConfigsRequest(
            resources=[DescribeConfigsResource(resource_type=2, resource_name="t")]
        ),
        4,
        (TOPIC, Operation.DESCRIBE_CONFIGS),
        (),
    ),
    (
        m.DescribeConfigsRequest(
            resources=[DescribeConfigsResource(resource_type=4, resource_name="0")]
        ),
        4,
        (CLUSTER, Operation.DESCRIBE_CONFIGS),
        (),
    ),
    (
        m.DescribeConfigsRequest(
            resources=[DescribeConfigsResource(resource_type=32, resource_name="g")]
        ),
        4,
        (GROUP, Operation.DESCRIBE_CONFIGS),
        (),
    ),
    (
        m.IncrementalAlterConfigsRequest(
            resources=[
                AlterConfigsResource(
                    resource_type=2,
                    resource_name="t",
                    configs=[AlterableConfig(name="retention.ms", value="1")],
                )
            ]
        ),
        1,
        (TOPIC, Operation.ALTER_CONFIGS),
        (),
    ),
    (m.DescribeLogDirsRequest(topics=None), 4, (CLUSTER, Operation.DESCRIBE), ()),
    (
        m.DescribeUserScramCredentialsRequest(users=[UserName(name="u")]),
        0,
        (CLUSTER, Operation.DESCRIBE),
        (),
    ),
    (
        m.AlterUserScramCredentialsRequest(
            deletions=[ScramCredentialDeletion(name="u", mechanism=1)]
        ),
        0,
        (CLUSTER, Operation.ALTER),
        (),
    ),
    (
        m.DescribeAclsRequest(resource_type_filter=1, operation=1, permission_type=1),
        3,
        (CLUSTER, Operation.DESCRIBE),
        (),
    ),
    (
        m.CreateAclsRequest(creations=[m.AclCreation()]),
        3,
        (CLUSTER, Operation.ALTER),
        (),
    ),
]


@pytest.mark.parametrize(
    ("request_", "version", "missing", "others"),
    CASES,
    ids=lambda one: type(one).__name__ if isinstance(one, Request) else None,
)
async def test_a_right_is_needed(
    request_: Request[Response], version: int, missing: Right, others: tuple[Right, ...]
) -> None:
    refusal = FAILED[missing[0]]
    async with guarded(*others) as (broker, caller):
        denied = list(codes(await caller.call(request_, version)))
        assert refusal in denied
        assert set(denied) <= {refusal, 0}
        grant(broker, missing)
        allowed = set(codes(await caller.call(request_, version)))
        assert allowed.isdisjoint(FAILED.values())


@pytest.mark.parametrize(("release", "code"), [("4.3", 42), ("4.4", 31)])
async def test_who_may_not_change_configs_is_not_told_what_is_wrong_with_them(
    release: Release, code: int
) -> None:
    """As Kafka: 4.3 checks the configs of brokers first, 4.4 the right."""
    async with guarded(as_version=release) as (_, caller):
        for name, operation in (("0", 0), ("0", 9), ("7", 0)):
            config = AlterableConfig(
                name="background.threads", config_operation=operation, value="soon"
            )
            wrong = AlterConfigsResource(
                resource_type=4, resource_name=name, configs=[config]
            )
            request = m.IncrementalAlterConfigsRequest(resources=[wrong])
            assert list(codes(await caller.call(request, 1))) == [code]


async def test_what_is_hidden_is_not_told() -> None:
    async with guarded((GROUP, Operation.ALL)) as (broker, caller):
        join = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id="m",
            rebalance_timeout_ms=1000,
            subscribed_topic_names=[],
            topic_partitions=[],
        )
        assert (await caller.call(join, 1)).error_code == 0
        for names, expected in ((None, []), (["t", "none"], [29, 29])):
            topics = None
            if names is not None:
                topics = [MetadataRequestTopic(name=name) for name in names]
            answer = await caller.call(m.MetadataRequest(topics=topics), 12)
            assert [one.error_code for one in answer.topics] == expected
            assert not any(one.topic_id.int for one in answer.topics)
        assert "none" not in broker.topics
        listed = await caller.call(m.ListGroupsRequest(), 5)
        assert [one.group_id for one in listed.groups] == ["g"]
        grant(broker, (GROUP, Operation.ALL), Permission.DENY)
        assert (await caller.call(m.ListGroupsRequest(), 5)).groups == []


async def test_the_operations_that_are_told_are_those_of_the_client() -> None:
    rights = (TOPIC, Operation.WRITE), (CLUSTER, Operation.ALTER)
    async with guarded(*rights) as (_, caller):
        asked = m.MetadataRequest(
            topics=[MetadataRequestTopic(name="t")],
            include_topic_authorized_operations=True,
        )
        (topic,) = (await caller.call(asked, 12)).topics
        assert topic.topic_authorized_operations == 1 << 4 | 1 << 8
        cluster = m.DescribeClusterRequest(include_cluster_authorized_operations=True)
        answer = await caller.call(cluster, 1)
        assert answer.cluster_authorized_operations == 1 << 7 | 1 << 8


@pytest.mark.parametrize(
    ("release", "right", "code"),
    [
        (NEWEST, (TOPIC, Operation.WRITE), 0),
        (NEWEST, (CLUSTER, Operation.IDEMPOTENT_WRITE), 0),
        (NEWEST, (TOPIC, Operation.READ), 31),
        # Before KIP-679, whoever could only write got no id.
        ("2.1", (TOPIC, Operation.WRITE), 31),
        ("2.1", (CLUSTER, Operation.IDEMPOTENT_WRITE), 0),
    ],
)
async def test_who_gets_a_producer_id(release: str, right: Right, code: int) -> None:
    security = SecurityConfig(super_users=())
    async with started(acls=True, security=security, as_version=release) as (
        broker,
        caller,
    ):
        grant(broker, right)
        answer = await caller.call(m.InitProducerIdRequest(transactional_id=None), 1)
        assert answer.error_code == code


async def test_a_refused_partition_has_the_others_not_attempted() -> None:
    rights = (TOPIC, Operation.WRITE), (TXN, Operation.WRITE)
    async with guarded(*rights) as (_, caller):
        topics = own_topics()
        topics.append(AddPartitionsToTxnTopic(name="u", partitions=[0]))
        asked = m.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="x", v3_and_below_topics=topics
        )
        assert list(codes(await caller.call(asked, 3))) == [0, 55, 29]


async def test_a_new_topic_is_described_to_whom_may_see_its_configs() -> None:
    new = [CreatableTopic(name="new", num_partitions=1, replication_factor=1)]
    asked = m.CreateTopicsRequest(topics=new, timeout_ms=1000, validate_only=True)
    async with guarded() as (broker, caller):
        (refused,) = (await caller.call(asked, 7)).topics
        assert refused.error_code == 29
        grant(broker, (CLUSTER, Operation.CREATE))
        (made,) = (await caller.call(asked, 7)).topics
        assert (made.error_code, made.topic_config_error_code) == (0, 29)
        assert (made.num_partitions, made.configs) == (-1, [])


async def test_acls_are_off_by_default() -> None:
    async with started(topics={"t": 1}) as (_, caller):
        every: dict[str, Any] = {
            "resource_type_filter": 1,
            "operation": 1,
            "permission_type": 1,
        }
        described = await caller.call(m.DescribeAclsRequest(**every), 3)
        assert described.error_code == ErrorCode.SECURITY_DISABLED
        creation = m.CreateAclsRequest(creations=[m.AclCreation()])
        (made,) = (await caller.call(creation, 3)).results
        assert made.error_code == ErrorCode.SECURITY_DISABLED
        answer = await caller.call(m.MetadataRequest(topics=None), 12)
        assert [one.error_code for one in answer.topics] == [0]


async def test_whoever_does_not_log_in_is_a_super_user_by_default() -> None:
    async with started(topics={"t": 1}, acls=True) as (broker, caller):
        grant(broker, (TOPIC, Operation.ALL), Permission.DENY)
        answer = await caller.call(m.MetadataRequest(topics=None), 12)
        assert [one.name for one in answer.topics] == ["t"]


async def test_acls_are_made_described_and_deleted() -> None:
    creation = m.AclCreation(
        resource_type=2,
        resource_name="orders-",
        resource_pattern_type=4,
        principal="User:bob",
        host="*",
        operation=3,
        permission_type=3,
    )
    asked: dict[str, Any] = {
        "resource_type_filter": 1,
        "operation": 1,
        "permission_type": 1,
    }
    any_name: dict[str, Any] = {"resource_name_filter": None, "pattern_type_filter": 1}
    any_one: dict[str, Any] = {"principal_filter": None, "host_filter": None}
    every = asked | any_name | any_one
    matching = every | {"resource_name_filter": "orders-1", "pattern_type_filter": 2}
    async with started(acls=True) as (_, caller):
        made = await caller.call(m.CreateAclsRequest(creations=[creation] * 2), 3)
        assert [one.error_code for one in made.results] == [0, 0]
        (found,) = (await caller.call(m.DescribeAclsRequest(**matching), 3)).resources
        assert (found.resource_name, len(found.acls)) == ("orders-", 1)
        filters = [m.DeleteAclsFilter(**matching), m.DeleteAclsFilter(**asked)]
        first, second = (
            await caller.call(m.DeleteAclsRequest(filters=filters), 3)
        ).filter_results
        assert [one.principal for one in first.matching_acls] == ["User:bob"]
        assert second.matching_acls == []
        left = await caller.call(m.DescribeAclsRequest(**every), 3)
        assert left.resources == []


async def test_faults_apply_to_acls() -> None:
    right: dict[str, Any] = {"resource_type": 2, "principal": "User:b", "host": "*"}
    right |= {"operation": 3, "permission_type": 3}
    creations = [m.AclCreation(resource_name=name, **right) for name in ("a", "b")]
    every: dict[str, Any] = {
        "resource_type_filter": 1,
        "operation": 1,
        "permission_type": 1,
    }
    every |= {"principal_filter": None, "host_filter": None}
    filters = [
        m.DeleteAclsFilter(resource_name_filter=name, **every) for name in ("a", "b")
    ]
    async with started(acls=True) as (broker, caller):
        late, moved = ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_CONTROLLER
        broker.faults.on(ApiKey.CREATE_ACLS, error(late, times=1))
        broker.faults.on(ApiKey.DELETE_ACLS, error(moved, times=1))
        for code, count in ((7, 0), (0, 2)):
            made = await caller.call(m.CreateAclsRequest(creations=creations), 3)
            assert [one.error_code for one in made.results] == [code, code]
            assert len(broker.security.acls or ()) == count
        for code, count in ((41, 2), (0, 0)):
            gone = await caller.call(m.DeleteAclsRequest(filters=filters), 3)
            assert [one.error_code for one in gone.filter_results] == [code, code]
            assert len(broker.security.acls or ()) == count


async def test_what_delete_acls_does_not_know_closes_the_connection() -> None:
    async with started(acls=True) as (_, caller):
        unknown = m.DeleteAclsFilter(resource_type_filter=99)
        with pytest.raises(ConnectionError):
            await caller.call(m.DeleteAclsRequest(filters=[unknown]), 3)
