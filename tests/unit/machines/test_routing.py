import pytest
from hypothesis import given, strategies as st

from kafkaio._machines.routing import NodeLoad, least_loaded_first, misrouted
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.protocol._message import Response
from kafkaio.protocol.messages import (
    add_partitions_to_txn as add,
    list_offsets as lists,
    offset_fetch as fetch,
)
from kafkaio.protocol.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsResponse,
)
from kafkaio.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsResponse,
)
from kafkaio.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorResponse,
)
from kafkaio.protocol.messages.heartbeat import HeartbeatResponse
from kafkaio.protocol.messages.list_groups import ListGroupsResponse
from kafkaio.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic

loads = st.lists(
    st.builds(
        NodeLoad,
        st.integers(0, 9),
        st.none() | st.integers(0, 5),
        st.sampled_from([0.0, 0.5]),
        st.booleans(),
    ),
    unique_by=lambda load: load.node_id,
)
rolls = st.floats(0, 1, exclude_max=True)


@given(loads, rolls)
def test_every_node_stands_in_the_order_once(nodes: list[NodeLoad], roll: float):
    order = least_loaded_first(nodes, roll)
    assert sorted(order) == sorted(n.node_id for n in nodes)
    by_id = {n.node_id: n for n in nodes}
    busy = [by_id[n] for n in order if by_id[n].in_flight]
    assert busy == sorted(
        busy, key=lambda n: (not n.is_new or n.wait > 0, n.wait, n.in_flight)
    )
    idle = [n for n in nodes if n.in_flight == 0 and not n.wait]
    assert {n.node_id for n in idle} == set(order[: len(idle)])


def test_connected_and_idle_comes_first() -> None:
    nodes = [NodeLoad(0, None, 1.0), NodeLoad(1, 3), NodeLoad(2, 0), NodeLoad(3, None)]
    assert least_loaded_first(nodes, 0.0) == [2, 3, 1, 0]
    throttled = [NodeLoad(0, 0, 2.0), NodeLoad(1, 5)]
    assert least_loaded_first(throttled, 0.0) == [1, 0]


def test_busy_brokers_share_the_work_when_there_are_a_few() -> None:
    nodes = [NodeLoad(0, 2), NodeLoad(1, 1), NodeLoad(2, 3), NodeLoad(3, None)]
    assert least_loaded_first(nodes, 0.0) == [1, 0, 2, 3]
    assert least_loaded_first(nodes[1:], 0.0) == [3, 1, 2]


def test_a_new_connection_takes_what_follows_its_first_request() -> None:
    nodes = [NodeLoad(0, 2, is_new=True), NodeLoad(1, None), NodeLoad(2, 1)]
    assert least_loaded_first(nodes, 0.0) == [0, 1, 2]
    throttled = [NodeLoad(0, 2, 0.5, is_new=True), NodeLoad(1, None)]
    assert least_loaded_first(throttled, 0.0) == [1, 0]


def test_equals_take_turns() -> None:
    nodes = [NodeLoad(n, None) for n in range(4)]
    firsts = {least_loaded_first(nodes, roll)[0] for roll in (0.0, 0.3, 0.6, 0.9)}
    assert firsts == {0, 1, 2, 3}


def topics(*codes: E) -> CreateTopicsResponse:
    results = [CreatableTopicResult(name=str(c), error_code=c) for c in codes]
    return CreateTopicsResponse(topics=results)


def offsets(*codes: E) -> lists.ListOffsetsResponse:
    partitions = [
        lists.ListOffsetsPartitionResponse(partition_index=i, error_code=code)
        for i, code in enumerate(codes)
    ]
    topic = lists.ListOffsetsTopicResponse(name="t", partitions=partitions)
    return lists.ListOffsetsResponse(topics=[topic])


def committed(group: E, *codes: E) -> fetch.OffsetFetchResponse:
    partitions = [fetch.OffsetFetchResponsePartitions(error_code=c) for c in codes]
    topic = fetch.OffsetFetchResponseTopics(name="t", partitions=partitions)
    answer = fetch.OffsetFetchResponseGroup(
        group_id="g", error_code=group, topics=[topic] if codes else []
    )
    return fetch.OffsetFetchResponse(groups=[answer])


def added(code: E) -> Response:
    result = add.AddPartitionsToTxnPartitionResult(partition_error_code=code)
    topic = add.AddPartitionsToTxnTopicResult(name="t", results_by_partition=[result])
    return add.AddPartitionsToTxnResponse(results_by_topic_v3_and_below=[topic])


@pytest.mark.parametrize(
    ("response", "code"),
    [
        (HeartbeatResponse(), None),
        (HeartbeatResponse(error_code=E.NOT_COORDINATOR), E.NOT_COORDINATOR),
        (HeartbeatResponse(error_code=E.REBALANCE_IN_PROGRESS), None),
        (HeartbeatResponse(error_code=31_000), None),
        (ListGroupsResponse(), None),
        (
            ListGroupsResponse(error_code=E.COORDINATOR_LOAD_IN_PROGRESS),
            E.COORDINATOR_LOAD_IN_PROGRESS,
        ),
        (topics(E.NOT_CONTROLLER), E.NOT_CONTROLLER),
        (topics(E.NOT_CONTROLLER, E.NOT_CONTROLLER), E.NOT_CONTROLLER),
        (topics(E.NONE, E.NOT_CONTROLLER), None),
        (topics(E.NOT_CONTROLLER, E.NONE), None),
        (topics(E.NOT_CONTROLLER, E.TOPIC_ALREADY_EXISTS), None),
        (topics(), None),
        (offsets(E.NOT_LEADER_OR_FOLLOWER), E.NOT_LEADER_OR_FOLLOWER),
        (offsets(E.FENCED_LEADER_EPOCH, E.UNKNOWN_LEADER_EPOCH), E.FENCED_LEADER_EPOCH),
        (offsets(E.NOT_LEADER_OR_FOLLOWER, E.NONE), None),
        (committed(E.NOT_COORDINATOR), E.NOT_COORDINATOR),
        (committed(E.NONE, E.NONE), None),
        (committed(E.NONE, E.UNSTABLE_OFFSET_COMMIT), None),
        (committed(E.NONE), None),
        (fetch.OffsetFetchResponse(error_code=E.NOT_COORDINATOR), E.NOT_COORDINATOR),
        (added(E.NOT_COORDINATOR), E.NOT_COORDINATOR),
        (added(E.OPERATION_NOT_ATTEMPTED), None),
        (
            DescribeGroupsResponse(groups=[DescribedGroup(error_code=16)]),
            E.NOT_COORDINATOR,
        ),
        (
            FindCoordinatorResponse(coordinators=[Coordinator(key="g", error_code=15)]),
            E.COORDINATOR_NOT_AVAILABLE,
        ),
        # Metadata describes, whatever it says of a topic.
        (
            MetadataResponse(
                topics=[MetadataResponseTopic(error_code=E.LEADER_NOT_AVAILABLE)]
            ),
            None,
        ),
    ],
)
def test_misrouted(response: Response, code: E | None) -> None:
    assert misrouted(response) == code
