"""Requests: where they go, when they go again, and what they end with."""

import asyncio

import anyio
import pytest

from kafkaio._client import (
    ANY,
    Broker,
    Client,
    Controller,
    CoordinatorKind,
    Destination,
    GroupCoordinator,
    Leader,
    TransactionCoordinator,
)
from kafkaio._net.connection_class import ConnectionClass
from kafkaio.errors import (
    AuthorizationError,
    BrokerError,
    BrokerNotAvailable,
    ConnectionLost,
    ProtocolError,
    RequestTimeout,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.protocol.messages.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from kafkaio.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafkaio.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kafkaio.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkaio.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kafkaio.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kafkaio.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kafkaio.protocol.messages.produce import ProduceRequest, ProduceResponse
from kafkaio.types import TopicPartition
from tests.fakes.broker import DISCONNECT, HANG, FakeCluster, Raw
from tests.unit.client.support import client_of

GROUP, TRANSACTION, SHARE = CoordinatorKind
T1 = TopicPartition("t", 1)


def now() -> float:
    return asyncio.get_running_loop().time()


def nodes_of(cluster: FakeCluster, api: ApiKey) -> list[int]:
    return [entry.node_id for entry in cluster.logged(api)]


class Retries:
    """Notes what is tried again, and why."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, int, BaseException]] = []

    def retrying(
        self, what: str, attempt: int, delay: float, cause: BaseException
    ) -> None:
        self.heard.append((what, attempt, cause))


@pytest.mark.parametrize(
    ("to", "node"),
    [
        (Broker(2), 2),
        (Broker(1, "elsewhere", 1), 1),
        (Controller, 0),
        (Leader(T1), 1),
        (GroupCoordinator("g"), 1),
        (TransactionCoordinator("g"), 2),
    ],
)
async def test_destinations(cluster: FakeCluster, to: Destination, node: int) -> None:
    cluster.on(ApiKey.LIST_GROUPS, ListGroupsResponse())
    cluster.move_coordinator("g", 1, GROUP)
    cluster.move_coordinator("g", 2, TRANSACTION)
    async with client_of(cluster) as client:
        assert await client.request(ListGroupsRequest(), to) == ListGroupsResponse()
        await client.request(ListGroupsRequest(), to=to)
    assert nodes_of(cluster, ApiKey.LIST_GROUPS) == [node, node]


async def test_any_spreads_concurrent_requests(cluster: FakeCluster) -> None:
    cluster.on(ApiKey.LIST_GROUPS, ListGroupsResponse())
    cluster.delay(ApiKey.LIST_GROUPS, 1)
    async with client_of(cluster) as client, anyio.create_task_group() as group:
        for _ in range(9):
            group.start_soon(client.request, ListGroupsRequest(), ANY)
            await anyio.sleep(0.05)
    nodes = nodes_of(cluster, ApiKey.LIST_GROUPS)
    assert {nodes.count(n) for n in (0, 1, 2)} == {3}
    assert now() < 3.5


async def test_connection_classes(cluster: FakeCluster) -> None:
    cluster.on(ApiKey.JOIN_GROUP, JoinGroupResponse(generation_id=1))
    cluster.on(ApiKey.PRODUCE, ProduceResponse())
    async with client_of(cluster) as client:
        await client.request(JoinGroupRequest(), ANY)
        await client.request(ProduceRequest(acks=1), ANY)
        classes = {c.connection_class for c in client.statistics().connections}
        assert classes == {
            ConnectionClass.SHARED,
            ConnectionClass.COORDINATOR,
            ConnectionClass.PRODUCE,
        }


async def test_a_lost_answer_is_asked_for_again(cluster: FakeCluster) -> None:
    cluster.on(ApiKey.LIST_GROUPS, ListGroupsResponse())
    cluster.on(ApiKey.LIST_GROUPS, DISCONNECT, times=3)
    retries = Retries()
    async with client_of(cluster, retries) as client:
        assert await client.request(ListGroupsRequest()) == ListGroupsResponse()
    heard = [h for h in retries.heard if h[0] == "ListGroups to any broker"]
    assert [attempt for _, attempt, _ in heard] == [1, 2, 3]
    assert all(isinstance(cause, ConnectionLost) for _, _, cause in heard)
    assert 0.5 < now() < 1.5


async def test_one_attempt_has_the_request_timeout(cluster: FakeCluster) -> None:
    cluster.on(ApiKey.LIST_GROUPS, ListGroupsResponse())
    cluster.on(ApiKey.LIST_GROUPS, HANG, times=1)
    async with client_of(cluster, request_timeout_ms=2_000) as client:
        await client.request(ListGroupsRequest(), Broker(1))
        assert 2 < now() < 2.5


@pytest.mark.parametrize(
    "code", [E.NOT_COORDINATOR, E.COORDINATOR_LOAD_IN_PROGRESS, E.NOT_CONTROLLER]
)
async def test_a_broker_that_was_named_has_the_last_word(
    cluster: FakeCluster, code: E
) -> None:
    cluster.on(ApiKey.HEARTBEAT, HeartbeatResponse(error_code=code))
    async with client_of(cluster) as client:
        began = now()
        answer = await client.request(HeartbeatRequest(group_id="g"), Broker(1))
        assert answer.error_code == code
        assert now() == began
    assert nodes_of(cluster, ApiKey.HEARTBEAT) == [1]


async def test_a_leader_that_was_named_by_its_id_has_the_last_word(
    cluster: FakeCluster,
) -> None:
    answer = ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name="t",
                partitions=[
                    ListOffsetsPartitionResponse(
                        partition_index=0, error_code=E.NOT_LEADER_OR_FOLLOWER
                    )
                ],
            )
        ]
    )
    cluster.on(ApiKey.LIST_OFFSETS, answer)
    async with client_of(cluster) as client:
        assert await client.request(ListOffsetsRequest(), Broker(2)) == answer
    assert nodes_of(cluster, ApiKey.LIST_OFFSETS) == [2]


async def test_all_attempts_together_have_the_timeout(cluster: FakeCluster) -> None:
    cluster.on(ApiKey.LIST_GROUPS, DISCONNECT)
    async with client_of(cluster, default_api_timeout_ms=4_000) as client:
        with pytest.raises(RequestTimeout, match="ListGroups to broker 1 did not") as e:
            await client.request(ListGroupsRequest(), Broker(1))
        assert now() == pytest.approx(4)
        assert isinstance(e.value.__cause__, ConnectionLost)
        assert str(e.value.__cause__) in str(e.value)
        with pytest.raises(RequestTimeout):
            await client.request(ListGroupsRequest(), Broker(1), timeout=1)
        assert now() == pytest.approx(5)


async def test_a_timeout_while_the_first_attempt_hangs(cluster: FakeCluster) -> None:
    cluster.on(ApiKey.LIST_GROUPS, HANG)
    async with client_of(cluster) as client:
        with pytest.raises(
            RequestTimeout, match="waits for the answer of broker1:9093"
        ):
            await client.request(ListGroupsRequest(), Broker(1), timeout=1)
        # Nobody else lost the connection by that.
        assert client._cluster.ready_connection(1, ConnectionClass.SHARED) is not None


async def test_a_cancelled_request_leaves_nothing(cluster: FakeCluster) -> None:
    cluster.on(ApiKey.LIST_GROUPS, HANG, times=1)
    cluster.on(ApiKey.HEARTBEAT, HeartbeatResponse())
    async with client_of(cluster) as client:
        for to in (Broker(1), Broker(9), Leader(TopicPartition("?", 0))):
            with anyio.move_on_after(0.5) as scope:
                await client.request(ListGroupsRequest(), to)
            assert scope.cancelled_caught
        await client.request(HeartbeatRequest(), Broker(2))


@pytest.mark.parametrize(
    ("to", "text", "cause"),
    [
        (Broker(9), "broker 9 is not in the cluster; its brokers are 0, 1, 2",
         BrokerNotAvailable),
        (Leader(TopicPartition("?", 0)), r"topic '\?' cannot be described",
         UnknownTopicOrPartition),
        (Leader(TopicPartition("t", 6)), "topic 't' has 6 partitions, no 6",
         UnknownTopicOrPartition),
        (Leader(TopicPartition("t", 5)), "t-5 has no leader now", BrokerError),
        (Controller, "the cluster has no controller now", BrokerNotAvailable),
        (GroupCoordinator("g"), "group 'g': find its coordinator", BrokerError),
    ],
)  # fmt: skip
async def test_nowhere_to_go(
    cluster: FakeCluster, to: Destination, text: str, cause: type[Exception]
) -> None:
    cluster.move_leader("t", 5, -1)
    cluster.move_coordinator("g", -1)
    cluster.controller_id = -1
    async with client_of(cluster) as client:
        with pytest.raises(RequestTimeout, match=text) as raised:
            await client.request(ListGroupsRequest(), to, timeout=5)
        assert type(raised.value.__cause__) is cause
        assert now() == pytest.approx(5)


async def test_a_broker_that_comes_back(cluster: FakeCluster) -> None:
    cluster.on(ApiKey.LIST_GROUPS, ListGroupsResponse())
    async with client_of(cluster) as client, anyio.create_task_group() as group:
        cluster.stop(2)
        client._cluster.request_refresh()
        await client._cluster.wait_for_update()
        group.start_soon(client.request, ListGroupsRequest(), Broker(2))
        await anyio.sleep(3)
        cluster.start(2)
    assert nodes_of(cluster, ApiKey.LIST_GROUPS) == [2]


async def test_a_controller_that_moved(cluster: FakeCluster) -> None:
    def create(node, *_: object) -> CreateTopicsResponse:
        code = E.NONE if node.node_id == 2 else E.NOT_CONTROLLER
        result = CreatableTopicResult(name="n", error_code=code)
        return CreateTopicsResponse(topics=[result])

    cluster.on(ApiKey.CREATE_TOPICS, create)
    request = CreateTopicsRequest(topics=[CreatableTopic(name="n")])
    async with client_of(cluster) as client:
        cluster.controller_id = 2
        response = await client.request(request, Controller)
        assert response.topics[0].error_code == 0
    assert nodes_of(cluster, ApiKey.CREATE_TOPICS) == [0, 2]
    assert now() < 1


def offsets(*codes: E) -> ListOffsetsResponse:
    partitions = [ListOffsetsPartitionResponse(error_code=code) for code in codes]
    topic = ListOffsetsTopicResponse(name="t", partitions=partitions)
    return ListOffsetsResponse(topics=[topic])


async def test_a_leader_that_moved(cluster: FakeCluster) -> None:
    cluster.on(ApiKey.LIST_OFFSETS, offsets(E.NONE))
    cluster.on(ApiKey.LIST_OFFSETS, offsets(E.NOT_LEADER_OR_FOLLOWER), node=1)
    async with client_of(cluster) as client:
        await client._cluster.wait_for_topics(["t"])
        cluster.move_leader("t", 1, 2)
        response = await client.request(ListOffsetsRequest(), Leader(T1))
        assert response == offsets(E.NONE)
    assert nodes_of(cluster, ApiKey.LIST_OFFSETS) == [1, 2]


async def test_a_leader_that_died(cluster: FakeCluster) -> None:
    cluster.on(ApiKey.LIST_OFFSETS, offsets(E.NONE))
    async with client_of(cluster) as client:
        await client.request(ListOffsetsRequest(), Leader(T1))
        cluster.stop(1)
        async with anyio.create_task_group() as group:
            group.start_soon(client.request, ListOffsetsRequest(), Leader(T1))
            await anyio.sleep(2)
            cluster.move_leader("t", 1, 0)
    assert nodes_of(cluster, ApiKey.LIST_OFFSETS) == [1, 0]


async def test_an_answer_that_did_something_is_not_repeated(
    cluster: FakeCluster,
) -> None:
    mixed = offsets(E.NONE, E.NOT_LEADER_OR_FOLLOWER)
    cluster.on(ApiKey.LIST_OFFSETS, mixed)
    async with client_of(cluster) as client:
        assert await client.request(ListOffsetsRequest(), Leader(T1)) == mixed
    assert len(nodes_of(cluster, ApiKey.LIST_OFFSETS)) == 1


async def test_other_errors_come_back_as_they_are(cluster: FakeCluster) -> None:
    rebalancing = HeartbeatResponse(error_code=E.REBALANCE_IN_PROGRESS)
    cluster.on(ApiKey.HEARTBEAT, rebalancing)
    async with client_of(cluster) as client:
        answer = await client.request(HeartbeatRequest(), GroupCoordinator("g"))
        assert answer == rebalancing


async def test_what_the_broker_cannot_do(cluster: FakeCluster) -> None:
    cluster.limit_version(ApiKey.LIST_GROUPS, -1)
    async with client_of(cluster) as client:
        with pytest.raises(UnsupportedVersion, match="ListGroups"):
            await client.request(ListGroupsRequest())


async def test_an_answer_that_makes_no_sense(cluster: FakeCluster) -> None:
    cluster.on(ApiKey.LIST_GROUPS, Raw(b"\x00\x00\x00\x04\x7f\xff\x00\x00"))
    async with client_of(cluster) as client:
        with pytest.raises((ProtocolError, RequestTimeout)):
            await client.request(ListGroupsRequest(), timeout=1)


async def test_produce_without_acknowledgement(cluster: FakeCluster) -> None:
    cluster.on(ApiKey.PRODUCE, ProduceResponse())
    async with client_of(cluster) as client:
        answer = await client.request(ProduceRequest(acks=0), Leader(T1))
        assert answer == ProduceResponse()
        await cluster.received(ApiKey.PRODUCE)


async def test_a_join_may_take_as_long_as_a_rebalance(cluster: FakeCluster) -> None:
    cluster.on(ApiKey.JOIN_GROUP, JoinGroupResponse(generation_id=1))
    cluster.delay(ApiKey.JOIN_GROUP, 50)
    request = JoinGroupRequest(session_timeout_ms=10_000, rebalance_timeout_ms=50_000)
    async with client_of(cluster) as client:
        await client.request(request, GroupCoordinator("g"))
    assert len(nodes_of(cluster, ApiKey.JOIN_GROUP)) == 1


async def test_a_broker_that_cannot_be_dialled_holds_nothing_up(
    cluster: FakeCluster,
) -> None:
    cluster.on(ApiKey.LIST_GROUPS, ListGroupsResponse())
    cluster.on(ApiKey.API_VERSIONS, HANG, node=0)
    cluster.on(ApiKey.API_VERSIONS, HANG, node=1)
    async with client_of(cluster) as client:
        await client.request(ListGroupsRequest())
        # Two that hang among the bootstrap servers, and again among the brokers.
        assert now() < 2.1


# ---- coordinators ------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 3, 4, 6])
async def test_finding_coordinators(cluster: FakeCluster, version: int) -> None:
    cluster.limit_version(ApiKey.FIND_COORDINATOR, version)
    async with client_of(cluster) as client:
        found: dict[str, int] = {}

        async def find(key: str) -> None:
            found[key] = await client._cluster.coordinator(GROUP, key, timeout=5)

        async with anyio.create_task_group() as group:
            for key in "abcdef":
                group.start_soon(find, key)
        assert found == {key: cluster.coordinator(key) for key in "abcdef"}
        lookups = cluster.requests(FindCoordinatorRequest)
        assert len(lookups) == (1 if version >= 4 else 6)
        await client._cluster.coordinator(GROUP, "a", timeout=5)
        assert len(cluster.requests(FindCoordinatorRequest)) == len(lookups)


async def test_keys_that_come_during_a_lookup_share_the_next(
    cluster: FakeCluster,
) -> None:
    gate = cluster.hold(ApiKey.FIND_COORDINATOR)
    async with client_of(cluster) as client, anyio.create_task_group() as group:
        group.start_soon(lambda: client._cluster.coordinator(GROUP, "a"))
        await cluster.received(ApiKey.FIND_COORDINATOR)
        for key in "bcd":
            group.start_soon(lambda key=key: client._cluster.coordinator(GROUP, key))
        group.start_soon(lambda: client._cluster.coordinator(TRANSACTION, "e"))
        with anyio.move_on_after(1):
            await client._cluster.coordinator(GROUP, "gone")
        for count in (2, 3):
            gate.release()
            await cluster.received(ApiKey.FIND_COORDINATOR, count)
        gate.release()
    asked = [r.coordinator_keys for r in cluster.requests(FindCoordinatorRequest)]
    assert asked == [["a"], ["b", "c", "d"], ["e"]]


@pytest.mark.parametrize("code", [E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE])
async def test_a_coordinator_that_moved(cluster: FakeCluster, code: E) -> None:
    cluster.move_coordinator("g", 1)
    cluster.on(ApiKey.HEARTBEAT, HeartbeatResponse())
    cluster.on(ApiKey.HEARTBEAT, HeartbeatResponse(error_code=code), node=1)
    async with client_of(cluster) as client:
        await client._cluster.coordinator(GROUP, "g")
        cluster.move_coordinator("g", 2)
        answer = await client.request(HeartbeatRequest(), GroupCoordinator("g"))
        assert answer.error_code == 0
    assert nodes_of(cluster, ApiKey.HEARTBEAT) == [1, 2]


async def test_a_coordinator_that_loads_is_waited_for(cluster: FakeCluster) -> None:
    loading = HeartbeatResponse(error_code=E.COORDINATOR_LOAD_IN_PROGRESS)
    cluster.on(ApiKey.HEARTBEAT, HeartbeatResponse())
    cluster.on(ApiKey.HEARTBEAT, loading, times=4)
    async with client_of(cluster) as client:
        await client.request(HeartbeatRequest(), GroupCoordinator("g"))
    assert len(set(nodes_of(cluster, ApiKey.HEARTBEAT))) == 1
    assert len(cluster.requests(FindCoordinatorRequest)) == 1


async def test_a_coordinator_that_died_is_found_anew(cluster: FakeCluster) -> None:
    cluster.move_coordinator("g", 1)
    cluster.on(ApiKey.HEARTBEAT, HeartbeatResponse())
    async with client_of(cluster) as client:
        await client.request(HeartbeatRequest(), GroupCoordinator("g"))
        cluster.stop(1)
        cluster.move_coordinator("g", 0)
        await client.request(HeartbeatRequest(), GroupCoordinator("g"))
        assert await client._cluster.coordinator(GROUP, "g") == 0
    assert nodes_of(cluster, ApiKey.HEARTBEAT) == [1, 0]
    assert now() < 1


async def test_a_coordinator_no_longer_listed_is_forgotten(
    cluster: FakeCluster,
) -> None:
    cluster.move_coordinator("g", 1)
    async with client_of(cluster) as client:
        await client._cluster.coordinator(GROUP, "g")
        assert client.statistics().coordinators == 1
        cluster.stop(1)
        client._cluster.request_refresh()
        await client._cluster.wait_for_update()
        assert client.statistics().coordinators == 0


async def test_forgetting(cluster: FakeCluster) -> None:
    cluster.move_coordinator("g", 1)
    async with client_of(cluster) as client:
        assert await client._cluster.coordinator(GROUP, "g") == 1
        cluster.move_coordinator("g", 2)
        client._cluster.forget_coordinator(GROUP, "g", 0)
        assert await client._cluster.coordinator(GROUP, "g") == 1
        client._cluster.forget_coordinator(GROUP, "g", 1)
        assert await client._cluster.coordinator(GROUP, "g") == 2


async def test_who_may_not_know_is_told_at_once(cluster: FakeCluster) -> None:
    refused = Coordinator(key="g", error_code=30, error_message="no")
    answer = FindCoordinatorResponse(coordinators=[refused])
    cluster.on(ApiKey.FIND_COORDINATOR, answer)
    async with client_of(cluster) as client:
        with pytest.raises(AuthorizationError, match=r"group 'g'.*: no"):
            await client._cluster.coordinator(GROUP, "g")
        with pytest.raises(AuthorizationError):
            await client.request(HeartbeatRequest(), GroupCoordinator("g"))


async def test_brokers_without_such_coordinators(cluster: FakeCluster) -> None:
    cluster.limit_version(ApiKey.FIND_COORDINATOR, 5)
    async with client_of(cluster) as client:
        with pytest.raises(UnsupportedVersion, match="share"):
            await client._cluster.coordinator(SHARE, "g")


async def test_a_coordinator_that_is_not_found_in_time(cluster: FakeCluster) -> None:
    cluster.on(ApiKey.FIND_COORDINATOR, DISCONNECT)
    async with client_of(cluster) as client:
        with pytest.raises(RequestTimeout, match="coordinator of group 'g'") as raised:
            await client._cluster.coordinator(GROUP, "g", timeout=2)
        assert isinstance(raised.value.__cause__, ConnectionLost)


async def test_a_coordinator_that_metadata_does_not_list_yet(
    cluster: FakeCluster,
) -> None:
    cluster.on(ApiKey.HEARTBEAT, HeartbeatResponse())
    cluster.stop(2)
    async with client_of(cluster) as client:
        assert set(client.cluster.brokers) == {0, 1}
        cluster.start(2)
        cluster.move_coordinator("g", 2)
        await client.request(HeartbeatRequest(), GroupCoordinator("g"))
        await client._cluster.wait_for_update()
        assert set(client.cluster.brokers) == {0, 1, 2}
    assert nodes_of(cluster, ApiKey.HEARTBEAT) == [2]


async def test_connections_for_upper_layers(cluster: FakeCluster) -> None:
    async with client_of(cluster) as client:
        assert client._cluster.ready_connection(1, ConnectionClass.FETCH) is None
        connection = await client._cluster.connection(1, ConnectionClass.FETCH)
        assert client._cluster.ready_connection(1, ConnectionClass.FETCH) is connection
        with pytest.raises(BrokerNotAvailable):
            await client._cluster.connection(9, ConnectionClass.FETCH)


def test_clients_say_what_they_are_of() -> None:
    assert repr(Leader(T1)) == (
        "Leader(partition=TopicPartition(topic='t', partition=1))"
    )
    client = Client("a:1")
    assert client.config.client_id in repr(client)


# ---- throttles -------------------------------------------------------------------


async def test_a_throttled_call_ends_in_time_and_says_why(
    cluster: FakeCluster,
) -> None:
    throttled = ListGroupsResponse(throttle_time_ms=2**31 - 1)
    cluster.on(ApiKey.LIST_GROUPS, ListGroupsResponse())
    cluster.on(ApiKey.LIST_GROUPS, throttled, times=1)
    async with client_of(cluster) as client:
        assert await client.request(ListGroupsRequest(), Broker(1)) == throttled
        began = now()
        why = (
            r"ListGroups to broker 1 did not succeed within 5 s; broker 1 "
            r"\(broker1:9093\) throttles this client: nothing is sent to it for "
            r"another 55\.0 s"
        )
        with pytest.raises(RequestTimeout, match=why):
            await client.request(ListGroupsRequest(), Broker(1), timeout=5)
        assert now() == pytest.approx(began + 5)
        # Others are not concerned, and the broker itself is asked when it is over.
        await client.request(ListGroupsRequest(), Broker(2), timeout=1)
        await client.request(ListGroupsRequest(), Broker(1))
        assert now() == pytest.approx(began + 60, abs=2)
    assert nodes_of(cluster, ApiKey.LIST_GROUPS) == [1, 2, 1]


async def test_the_limit_of_a_throttle_is_an_option(cluster: FakeCluster) -> None:
    cluster.on(ApiKey.LIST_GROUPS, ListGroupsResponse(throttle_time_ms=2**31 - 1))
    async with client_of(cluster, max_throttle_ms=1_500) as client:
        for _ in range(3):
            await client.request(ListGroupsRequest(), Broker(1))
        assert now() == pytest.approx(3, abs=0.5)
    async with client_of(cluster, max_throttle_ms=0) as client:
        began = now()
        for _ in range(3):
            await client.request(ListGroupsRequest(), Broker(1))
        assert now() == pytest.approx(began, abs=0.5)


async def test_a_throttle_at_the_start_is_named(cluster: FakeCluster) -> None:
    def throttled(*_: object) -> ApiVersionsResponse:
        found = cluster._api_versions(cluster.nodes[0], None, ApiVersionsRequest())
        found.throttle_time_ms = 20_000
        return found

    cluster.on(ApiKey.API_VERSIONS, throttled)
    client = client_of(cluster)
    with pytest.raises(BrokerNotAvailable, match="throttles this client"):
        await client.start(3)
    async with client_of(cluster) as client:
        assert now() == pytest.approx(23, abs=1)
