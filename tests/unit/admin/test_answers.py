"""What `Admin` makes of brokers that fail, answer late, or answer something else."""

import asyncio
from collections.abc import AsyncIterator
from uuid import UUID

import anyio
import pytest

from kafkaio._config import ClientConfig
from kafkaio.admin import (
    Admin,
    ConfigResource,
    ConfigResourceType,
    GroupState,
    GroupType,
    NewTopic,
    RaftEndpoint,
    settled,
)
from kafkaio.errors import (
    AdminErrors,
    ArgumentTypeError,
    ArgumentValueError,
    BrokerError,
    ClosedError,
    GroupError,
    ProtocolError,
    RequestTimeout,
    UnsupportedVersion,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.protocol.messages import (
    add_raft_voter as add_api,
    consumer_group_describe as consumer_api,
    create_topics as create_api,
    delete_groups as groups_api,
    delete_topics as delete_api,
    describe_groups as classic_api,
    describe_log_dirs as log_dirs_api,
    list_groups as list_api,
)
from kafkaio.types import TopicPartition
from tests.fakes.broker import DISCONNECT, HANG, FakeCluster, FakeNode
from tests.unit.admin.support import admin_of


@pytest.fixture
async def admin(cluster: FakeCluster) -> AsyncIterator[Admin]:
    config = ClientConfig(
        bootstrap_servers=cluster.bootstrap_servers, request_timeout_ms=5_000
    )
    async with Admin.from_config(config, dial=cluster.dial) as admin:
        yield admin


def created(name: str, code: int = 0) -> create_api.CreatableTopicResult:
    return create_api.CreatableTopicResult(
        name=name, error_code=code, error_message=None
    )


def answer(
    *topics: create_api.CreatableTopicResult,
) -> create_api.CreateTopicsResponse:
    return create_api.CreateTopicsResponse(topics=list(topics))


async def test_an_item_that_the_answer_leaves_out(
    cluster: FakeCluster, admin: Admin
) -> None:
    cluster.on(ApiKey.CREATE_TOPICS, lambda *_: answer(created("a")))
    with pytest.raises(ProtocolError, match="create topic: the answer leaves b out"):
        await admin.create_topics([NewTopic("a"), NewTopic("b")], wait=False)


async def test_an_item_that_was_not_asked_for(
    cluster: FakeCluster, admin: Admin
) -> None:
    cluster.on(ApiKey.CREATE_TOPICS, lambda *_: answer(created("a"), created("c")))
    with pytest.raises(ProtocolError, match="the answer has c, which was not asked"):
        await admin.create_topics([NewTopic("a")], wait=False)


async def test_answers_are_matched_by_name(cluster: FakeCluster, admin: Admin) -> None:
    cluster.on(
        ApiKey.CREATE_TOPICS,
        lambda *_: answer(created("b", E.POLICY_VIOLATION), created("a")),
    )
    found = await settled(
        admin.create_topics([NewTopic("a"), NewTopic("b")], wait=False)
    )
    assert list(found.found) == ["a"]
    assert list(found.failed) == ["b"]
    assert isinstance(found.failed["b"], BrokerError)


async def test_a_code_that_nobody_knows_keeps_its_number(
    cluster: FakeCluster, admin: Admin
) -> None:
    cluster.on(ApiKey.CREATE_TOPICS, lambda *_: answer(created("a", 9_999)))
    with pytest.raises(BrokerError) as caught:
        await admin.create_topics([NewTopic("a")], wait=False)
    assert caught.value.code == 9_999


async def test_only_what_may_succeed_is_asked_again(
    cluster: FakeCluster, admin: Admin
) -> None:
    asked: list[list[str]] = []

    def create(
        _: FakeNode, __: object, request: create_api.CreateTopicsRequest
    ) -> create_api.CreateTopicsResponse:
        names = [topic.name for topic in request.topics]
        asked.append(names)
        code = E.THROTTLING_QUOTA_EXCEEDED if len(asked) == 1 else 0
        codes = {"quota": code, "policy": E.POLICY_VIOLATION}
        return answer(*(created(name, codes.get(name, 0)) for name in names))

    cluster.on(ApiKey.CREATE_TOPICS, create)
    wanted = [NewTopic(name) for name in ("good", "quota", "policy")]
    with pytest.raises(BrokerError) as caught:
        await admin.create_topics(wanted, wait=False)
    assert caught.value.item == "policy"
    assert list(caught.value.results) == ["good", "quota"]
    assert asked == [["good", "quota", "policy"], ["quota"]]


async def test_a_lost_answer_is_told_in_a_note(
    cluster: FakeCluster, admin: Admin
) -> None:
    exists = answer(created("a", E.TOPIC_ALREADY_EXISTS))
    cluster.on(ApiKey.CREATE_TOPICS, lambda *_: exists)
    cluster.on(ApiKey.CREATE_TOPICS, DISCONNECT, times=1)
    with pytest.raises(BrokerError) as caught:
        await admin.create_topics([NewTopic("a")], wait=False)
    assert caught.value.code == E.TOPIC_ALREADY_EXISTS
    (note,) = caught.value.__notes__
    assert "which may have taken effect" in note


async def test_a_controller_that_does_not_answer(
    cluster: FakeCluster, admin: Admin
) -> None:
    cluster.on(ApiKey.CREATE_TOPICS, HANG)
    begun = asyncio.get_running_loop().time()
    with pytest.raises(AdminErrors) as caught:
        await admin.create_topics([NewTopic("a"), NewTopic("b")], timeout=3)
    assert asyncio.get_running_loop().time() - begun < 4
    assert [type(each) for each in caught.value.exceptions] == [RequestTimeout] * 2
    assert [each.item for each in caught.value.exceptions] == ["a", "b"]


async def test_a_call_that_is_cancelled_leaves_nothing(
    cluster: FakeCluster, admin: Admin
) -> None:
    cluster.on(ApiKey.DELETE_TOPICS, HANG)
    with anyio.move_on_after(1) as scope:
        await admin.delete_topics(["t"])
    assert scope.cancelled_caught
    cluster.reset(ApiKey.DELETE_TOPICS)
    cluster.on(
        ApiKey.DELETE_TOPICS,
        lambda *_: delete_api.DeleteTopicsResponse(
            responses=[delete_api.DeletableTopicResult(name="t")]
        ),
    )
    assert await admin.delete_topics(["t"]) == {"t": None}


async def test_a_topic_that_no_broker_leads_in_time(
    cluster: FakeCluster, admin: Admin
) -> None:
    cluster.on(ApiKey.CREATE_TOPICS, lambda *_: answer(created("slow")))
    with pytest.raises(RequestTimeout, match="'slow' was created, but broker") as error:
        await admin.create_topics([NewTopic("slow")], timeout=2)
    assert error.value.item == "slow"


async def test_a_broker_that_is_lost_in_a_fan_out(
    cluster: FakeCluster, admin: Admin
) -> None:
    def listed(node: FakeNode, *_: object) -> list_api.ListGroupsResponse:
        group = list_api.ListedGroup(
            group_id=f"of-{node.node_id}", protocol_type="consumer", group_state="Empty"
        )
        return list_api.ListGroupsResponse(groups=[group])

    cluster.on(ApiKey.LIST_GROUPS, listed)
    assert list(await admin.list_groups()) == ["of-0", "of-1", "of-2"]
    cluster.on(ApiKey.LIST_GROUPS, HANG, node=1)
    with pytest.raises(RequestTimeout, match="broker 1") as caught:
        await admin.list_groups(timeout=2)
    assert caught.value.item == 1
    assert list(caught.value.results) == [0, 2]


async def test_groups_of_one_coordinator_share_a_request(
    cluster: FakeCluster, admin: Admin
) -> None:
    def delete(
        _: FakeNode, __: object, request: groups_api.DeleteGroupsRequest
    ) -> groups_api.DeleteGroupsResponse:
        return groups_api.DeleteGroupsResponse(
            results=[
                groups_api.DeletableGroupResult(group_id=name)
                for name in reversed(request.groups_names)
            ]
        )

    cluster.on(ApiKey.DELETE_GROUPS, delete)
    names = [f"g{number}" for number in range(100)]
    assert list(await admin.delete_consumer_groups(names)) == names
    assert len(cluster.logged(ApiKey.DELETE_GROUPS)) == 3
    assert len(cluster.logged(ApiKey.FIND_COORDINATOR)) <= 2


async def test_the_coordinator_says_why_a_group_stays(
    cluster: FakeCluster, admin: Admin
) -> None:
    refused = groups_api.DeletableGroupResult(
        group_id="g", error_code=E.GROUP_DELETION_FAILED, error_message="it is a pity"
    )
    cluster.on(ApiKey.DELETE_GROUPS, groups_api.DeleteGroupsResponse(results=[refused]))
    with pytest.raises(GroupError, match="delete group g: it is a pity"):
        await admin.delete_consumer_groups(["g"])
    cluster.limit_version(ApiKey.DELETE_GROUPS, 2)  # without the message
    cluster.drop_connections()
    with pytest.raises(GroupError, match="delete group g") as caught:
        await admin.delete_consumer_groups(["g"])
    assert "pity" not in str(caught.value)


async def test_an_old_broker_is_named(cluster: FakeCluster, admin: Admin) -> None:
    cluster.limit_version(ApiKey.CREATE_TOPICS, 3)
    cluster.drop_connections()
    with pytest.raises(UnsupportedVersion, match=r"needs Kafka 2\.4"):
        await admin.create_topics([NewTopic("a")])
    assert not cluster.logged(ApiKey.CREATE_TOPICS)


async def test_topics_that_an_old_broker_knows_do_not_fail_with_others(
    cluster: FakeCluster, admin: Admin
) -> None:
    def delete(
        _: FakeNode, __: object, request: delete_api.DeleteTopicsRequest
    ) -> delete_api.DeleteTopicsResponse:
        return delete_api.DeleteTopicsResponse(
            responses=[
                delete_api.DeletableTopicResult(name=name)
                for name in request.topic_names
            ]
        )

    cluster.limit_version(ApiKey.DELETE_TOPICS, 5)
    cluster.drop_connections()
    cluster.on(ApiKey.DELETE_TOPICS, delete)
    topic_id = UUID(int=7)
    with pytest.raises(UnsupportedVersion, match=r"needs Kafka 2\.8") as caught:
        await admin.delete_topics(["a", topic_id, "b"])
    assert caught.value.item == topic_id
    assert dict(caught.value.results) == {"a": None, "b": None}
    (entry,) = cluster.logged(ApiKey.DELETE_TOPICS)
    assert entry.request.topic_names == ["a", "b"]


async def test_wrong_arguments_send_nothing(cluster: FakeCluster, admin: Admin) -> None:
    before = len(cluster.logged(ApiKey.METADATA))
    for call, error in (
        (admin.create_topics("abc"), ArgumentTypeError),  # type: ignore[arg-type]
        (admin.create_topics(["a"]), ArgumentTypeError),  # type: ignore[list-item]
        (admin.create_topics([NewTopic("a"), NewTopic("a")]), ArgumentValueError),
        (admin.create_topics([NewTopic("a", "3")]), ArgumentTypeError),  # type: ignore[arg-type]
        (admin.create_topics([NewTopic("a", 1, assignments={})]), ArgumentValueError),
        (admin.delete_topics(["a", "a"]), ArgumentValueError),
        (admin.delete_topics([""]), ArgumentValueError),
        (admin.create_partitions({"a": "3"}), ArgumentTypeError),  # type: ignore[dict-item]
        (admin.delete_records({TopicPartition("a", 0): "end"}), ArgumentTypeError),  # type: ignore[dict-item]
        (admin.describe_configs(["a"]), ArgumentTypeError),  # type: ignore[list-item]
        (admin.list_offsets({TopicPartition("a", 0): "first"}), ArgumentValueError),  # type: ignore[dict-item]
        (admin.reset_offsets("g", "earliest", shift_by=1), ArgumentValueError),
        (admin.describe_topics(["a"], timeout=-1), ArgumentValueError),
    ):
        with pytest.raises(error):
            await call
    assert len(cluster.logged(ApiKey.METADATA)) == before


async def test_after_its_end_nothing_can_be_asked(
    cluster: FakeCluster, admin: Admin
) -> None:
    await admin.close()
    resource = ConfigResource(ConfigResourceType.TOPIC, "t")
    for call in (
        admin.create_topics([NewTopic("a")]),
        admin.describe_configs([resource]),
        admin.list_groups(),
        admin.lag(["g"]),
    ):
        with pytest.raises(ClosedError):
            await call


async def test_old_brokers_tell_no_authorized_operations(cluster: FakeCluster) -> None:
    for node in cluster.nodes.values():
        node.versions[ApiKey.METADATA] = (0, 7)
        del node.versions[ApiKey.DESCRIBE_TOPIC_PARTITIONS]
    async with admin_of(cluster) as admin:
        found = await admin.describe_topics(["t"], include_authorized_operations=True)
    assert found["t"].authorized_operations is None
    assert len(found["t"].partitions) == 6


async def test_a_cluster_without_groups_of_kip_848(
    cluster: FakeCluster, admin: Admin
) -> None:
    """With ``group.version`` 0 the API is there, and refuses all groups.

    Groups that the older API knows are not asked for by it at all.
    """
    asked: list[list[str]] = []

    def refuse(
        _: FakeNode, __: object, request: consumer_api.ConsumerGroupDescribeRequest
    ) -> consumer_api.ConsumerGroupDescribeResponse:
        asked.append(request.group_ids)
        return consumer_api.ConsumerGroupDescribeResponse(
            groups=[
                consumer_api.DescribedGroup(
                    group_id=name, error_code=E.UNSUPPORTED_VERSION
                )
                for name in request.group_ids
            ]
        )

    def describe(
        _: FakeNode, __: object, request: classic_api.DescribeGroupsRequest
    ) -> classic_api.DescribeGroupsResponse:
        states = {"a": "Stable", "b": "Empty", "c": "Dead"}
        return classic_api.DescribeGroupsResponse(
            groups=[
                classic_api.DescribedGroup(group_id=name, group_state=states[name])
                for name in request.groups
            ]
        )

    cluster.on(ApiKey.CONSUMER_GROUP_DESCRIBE, refuse)
    cluster.on(ApiKey.DESCRIBE_GROUPS, describe)
    found = await admin.describe_consumer_groups(["a", "b"])
    assert [it.state for it in found.values()] == [GroupState.STABLE, GroupState.EMPTY]
    assert {it.type for it in found.values()} == {GroupType.CLASSIC}
    assert asked == []
    with pytest.raises(BrokerError) as caught:
        await admin.describe_consumer_groups(["a", "c"])
    assert asked == [["c"]]
    assert caught.value.code == E.GROUP_ID_NOT_FOUND
    assert list(caught.value.results) == ["a"]


async def test_a_directory_that_is_offline_is_an_entry(
    cluster: FakeCluster, admin: Admin
) -> None:
    answer = log_dirs_api.DescribeLogDirsResponse(
        results=[
            log_dirs_api.DescribeLogDirsResult(log_dir="/good"),
            log_dirs_api.DescribeLogDirsResult(
                error_code=E.KAFKA_STORAGE_ERROR, log_dir="/gone"
            ),
        ]
    )
    cluster.on(ApiKey.DESCRIBE_LOG_DIRS, answer)
    found = (await admin.describe_log_dirs([1]))[1]
    assert found["/good"].error is None
    assert found["/gone"].error is not None
    assert found["/gone"].error.code == E.KAFKA_STORAGE_ERROR


async def test_a_voter_that_is_there_already(
    cluster: FakeCluster, admin: Admin
) -> None:
    answer = add_api.AddRaftVoterResponse(
        error_code=E.DUPLICATE_VOTER, error_message="it is a voter"
    )
    cluster.on(ApiKey.ADD_RAFT_VOTER, answer)
    with pytest.raises(BrokerError, match="it is a voter") as caught:
        await admin.add_raft_voter(
            3, UUID(int=1), [RaftEndpoint("CONTROLLER", "c1", 9093)]
        )
    assert caught.value.code == E.DUPLICATE_VOTER


async def test_a_topic_that_was_not_made_in_time(
    cluster: FakeCluster, admin: Admin
) -> None:
    """The controller may make it later: who asks again may find that it exists."""
    late = answer(created("a", E.REQUEST_TIMED_OUT), created("b"))
    exists = answer(created("a", E.TOPIC_ALREADY_EXISTS))
    cluster.on(ApiKey.CREATE_TOPICS, lambda *_: exists)
    cluster.on(ApiKey.CREATE_TOPICS, late, times=1)
    with pytest.raises(BrokerError) as caught:
        await admin.create_topics([NewTopic("a"), NewTopic("b")], wait=False)
    assert caught.value.code == E.TOPIC_ALREADY_EXISTS
    assert list(caught.value.results) == ["b"]
    (note,) = caught.value.__notes__
    assert "which may have taken effect" in note
