"""Operations on many items: what goes where, what goes again, how they end."""

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import anyio
import pytest

from kafkaio._client import (
    ANY,
    Broker,
    Controller,
    CoordinatorKind,
    Destination,
    GroupCoordinator,
    Leader,
)
from kafkaio._client.cluster import Cluster
from kafkaio._client.fanout import (
    Answer,
    ItemProgress,
    Operation,
    Results,
    Terms,
    sort_answers,
)
from kafkaio._config import ClientConfig
from kafkaio._machines.backoff import Backoff
from kafkaio._machines.reactions import Reaction, ReactionStep, reaction
from kafkaio._net.connection_class import ConnectionClass
from kafkaio.errors import (
    AuthorizationError,
    BrokerError,
    BrokerNotAvailable,
    ClosedError,
    ConnectionLost,
    KafkaError,
    NetworkError,
    RequestTimeout,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from kafkaio.protocol.messages.find_coordinator import FindCoordinatorRequest
from kafkaio.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kafkaio.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from kafkaio.types import TopicPartition
from tests.fakes.broker import DISCONNECT, HANG, FakeCluster
from tests.unit.client.test_retry import Heard

T = [TopicPartition("t", number) for number in range(6)]


def now() -> float:
    return asyncio.get_running_loop().time()


# ---- operations ----------------------------------------------------------------------


def build_offsets(items: Sequence[TopicPartition], terms: Terms) -> ListOffsetsRequest:
    topics: dict[str, ListOffsetsTopic] = {}
    for tp in items:
        topic = topics.setdefault(tp.topic, ListOffsetsTopic(name=tp.topic))
        topic.partitions.append(ListOffsetsPartition(partition_index=tp.partition))
    return ListOffsetsRequest(topics=list(topics.values()), timeout_ms=terms.timeout_ms)


def read_offsets(
    response: ListOffsetsResponse, items: Sequence[TopicPartition]
) -> Iterable[Answer[TopicPartition, int | None]]:
    for topic in response.topics:
        for item in topic.partitions:
            tp = TopicPartition(topic.name, item.partition_index)
            yield Answer(tp, item.offset, item.error_code)


OFFSETS = Operation(
    what="look up the offset of",
    request=ListOffsetsRequest,
    destination=Leader,
    build=build_offsets,
    read=read_offsets,
)
DELETION = Operation(
    what="delete group",
    request=DeleteGroupsRequest,
    destination=GroupCoordinator,
    build=lambda items, _: DeleteGroupsRequest(groups_names=list(items)),
    read=lambda response, _: [
        Answer(it.group_id, True, it.error_code) for it in response.results
    ],
)


def list_groups(
    to: Callable[[int], Destination],
) -> Operation[int, list[str], ListGroupsResponse]:
    return Operation(
        what="list groups of",
        request=ListGroupsRequest,
        destination=to,
        build=lambda items, _: ListGroupsRequest(),
        read=lambda response, items: [
            Answer(item, [g.group_id for g in response.groups], response.error_code)
            for item in items
        ],
    )


# ---- brokers -------------------------------------------------------------------------


class Log:
    """Answers ListOffsets: 100 for each partition, or the error set for it."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.errors: dict[TopicPartition, list[E]] = {}
        self.silent: set[TopicPartition] = set()
        self._cluster = cluster
        cluster.on(ApiKey.LIST_OFFSETS, self.answer)

    def answer(self, node, header, request: ListOffsetsRequest) -> ListOffsetsResponse:
        topics = []
        for topic in request.topics:
            partitions = []
            for asked in topic.partitions:
                tp = TopicPartition(topic.name, asked.partition_index)
                if tp in self.silent:
                    continue
                codes = self.errors.get(tp)
                code = codes.pop(0) if codes else E.NONE
                if self._cluster.leader(*tp) != node.node_id:
                    code = E.NOT_LEADER_OR_FOLLOWER
                partitions.append(
                    ListOffsetsPartitionResponse(
                        partition_index=tp.partition, offset=100, error_code=code
                    )
                )
            topics.append(
                ListOffsetsTopicResponse(name=topic.name, partitions=partitions[::-1])
            )
        return ListOffsetsResponse(topics=topics)

    def asked(self) -> list[tuple[int, list[int]]]:
        """Each request: the broker, and the partitions that it names."""
        return [
            (
                entry.node_id,
                [p.partition_index for t in entry.request.topics for p in t.partitions],
            )
            for entry in self._cluster.logged(ApiKey.LIST_OFFSETS)
        ]


@pytest.fixture
def log(cluster: FakeCluster) -> Log:
    return Log(cluster)


@pytest.fixture
def heard() -> Heard:
    return Heard()


class Started:
    """A started cluster: the client's half, that is asked."""

    def __init__(self, fake: FakeCluster, heard: Heard, **options: int) -> None:
        config = ClientConfig(bootstrap_servers=fake.bootstrap_servers, **options)  # type: ignore[arg-type]
        self.cluster = Cluster(config, heard, fake.dial)

    async def __aenter__(self) -> Cluster:
        await self.cluster.start()
        await self.cluster.wait_for_topics(["t"])
        return self.cluster

    async def __aexit__(self, *_: object) -> None:
        await self.cluster.close()


# ---- where to ------------------------------------------------------------------------


@pytest.mark.parametrize("once", [False, True])
async def test_one_request_to_each_leader(
    cluster: FakeCluster, log: Log, heard: Heard, once: bool
) -> None:
    async with Started(cluster, heard) as asker:
        if once:
            results = await asker.ask_once(OFFSETS, T, 5)
        else:
            results = await asker.ask(OFFSETS, [*T, *T], 5)
    assert results == Results(found=dict.fromkeys(T, 100))
    assert sorted(log.asked()) == [(0, [0, 3]), (1, [1, 4]), (2, [2, 5])]
    assert list(results.or_raise().values()) == [100] * 6
    if not once:
        assert list(results.found) == T
    assert heard.retries == []


async def test_nothing_to_ask_for(cluster: FakeCluster, heard: Heard) -> None:
    async with Started(cluster, heard) as asker:
        assert await asker.ask(OFFSETS, [], 5) == Results()
        assert await asker.ask_once(OFFSETS, [], 5) == Results()


@pytest.mark.parametrize("once", [False, True])
async def test_one_request_to_each_coordinator(
    cluster: FakeCluster, heard: Heard, once: bool
) -> None:
    def delete(node, header, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
        return DeleteGroupsResponse(
            results=[
                DeletableGroupResult(group_id=name) for name in request.groups_names
            ]
        )

    cluster.on(ApiKey.DELETE_GROUPS, delete)
    groups = list("abcdef")
    async with Started(cluster, heard) as asker:
        ask = asker.ask_once if once else asker.ask
        results = await ask(DELETION, groups, 5)
        assert results.found == dict.fromkeys(groups, True)
        # Known by now.
        assert (await ask(DELETION, ["a"], 5)).found == {"a": True}
    # The coordinators are found by one request (KIP-699).
    assert len(cluster.requests(FindCoordinatorRequest)) == 1
    asked = {e.node_id: e.request for e in cluster.logged(ApiKey.DELETE_GROUPS)[:3]}
    assert len(asked) == 3
    for node, request in asked.items():
        assert {cluster.coordinator(name) for name in request.groups_names} == {node}


async def test_all_brokers_the_controller_and_any(
    cluster: FakeCluster, heard: Heard
) -> None:
    cluster.on(ApiKey.LIST_GROUPS, ListGroupsResponse())
    cluster.controller_id = 2
    async with Started(cluster, heard) as asker:
        nodes = list(asker.view.brokers)
        results = await asker.ask(list_groups(Broker), nodes, 5)
        assert results.found == {0: [], 1: [], 2: []}
        await asker.ask(list_groups(lambda _: Controller), [7], 5)
        await asker.ask_once(list_groups(lambda _: ANY), [7, 8], 5)
    asked = [entry.node_id for entry in cluster.logged(ApiKey.LIST_GROUPS)]
    assert sorted(asked[:3]) == [0, 1, 2]
    assert asked[3] == 2
    assert len(asked) == 5


async def test_a_request_carries_no_more_than_it_can(
    cluster: FakeCluster, log: Log, heard: Heard
) -> None:
    single = Operation(
        what="look up the offset of",
        request=ListOffsetsRequest,
        destination=Leader,
        build=build_offsets,
        read=read_offsets,
        batch=lambda version: 1,
        max_version=5,
    )
    async with Started(cluster, heard) as asker:
        assert len((await asker.ask(single, T, 5)).found) == 6
        assert len((await asker.ask_once(single, T, 5)).found) == 6
    assert sorted(log.asked()) == sorted([(n % 3, [n]) for n in range(6)] * 2)
    assert {e.version for e in cluster.logged(ApiKey.LIST_OFFSETS)} == {5}


async def test_one_request_in_flight_for_each_broker(
    cluster: FakeCluster, log: Log, heard: Heard
) -> None:
    gate = cluster.hold(ApiKey.LIST_OFFSETS, node=1)
    async with Started(cluster, heard) as asker, anyio.create_task_group() as group:
        group.start_soon(asker.ask, OFFSETS, T, 30)
        await cluster.received(ApiKey.LIST_OFFSETS, 3)
        # What moves to a busy broker waits there, and goes in one request.
        await anyio.sleep(5)
        assert gate.waiting == 1
        gate.release()
    assert len(log.asked()) == 3


async def test_one_broker_is_asked_without_a_task_of_its_own(
    cluster: FakeCluster, heard: Heard
) -> None:
    tasks: list[int] = []

    def answer(*_: object) -> ListGroupsResponse:
        tasks.append(len(asyncio.all_tasks()))
        # The first failure waits for a back-off, the second for newer metadata.
        codes = [E.COORDINATOR_LOAD_IN_PROGRESS, E.NOT_CONTROLLER, 0]
        return ListGroupsResponse(error_code=codes[len(tasks) - 1])

    cluster.on(ApiKey.LIST_GROUPS, answer)
    async with Started(cluster, heard) as asker:
        before = len(asyncio.all_tasks())
        results = await asker.ask(list_groups(lambda _: Controller), [7], 5)
    assert results == Results(found={7: []})
    assert tasks[0] == before
    assert len(tasks) == 3


# ---- what goes again -----------------------------------------------------------------


async def test_only_what_may_pass_is_asked_for_again(
    cluster: FakeCluster, log: Log, heard: Heard
) -> None:
    log.errors = {
        T[0]: [E.OFFSET_NOT_AVAILABLE],
        T[3]: [E.OFFSET_NOT_AVAILABLE],
        T[1]: [E.TOPIC_AUTHORIZATION_FAILED],
    }
    async with Started(cluster, heard) as asker:
        results = await asker.ask(OFFSETS, T, 5)
    assert list(results.found) == [T[0], *T[2:]]
    assert isinstance(results.failed[T[1]], AuthorizationError)
    assert "look up the offset of t-1" in str(results.failed[T[1]])
    assert results.again == {}
    assert log.asked()[3:] == [(0, [0, 3])]
    ((what, attempt, delay, cause),) = heard.retries
    assert what == "look up the offset of t-0 and 1 more"
    assert attempt == 1
    assert now() == pytest.approx(delay)
    assert isinstance(cause, BrokerError)
    with pytest.raises(AuthorizationError):
        results.or_raise()


async def test_one_round_tells_what_to_ask_for_again(
    cluster: FakeCluster, log: Log, heard: Heard
) -> None:
    log.errors = {T[0]: [E.OFFSET_NOT_AVAILABLE], T[1]: [E.INVALID_REQUEST]}
    log.silent = {T[5]}
    cluster.move_leader("t", 2, -1)
    async with Started(cluster, heard) as asker:
        results = await asker.ask_once(OFFSETS, T, 5)
        with pytest.raises(BrokerError) as raised:
            results.or_raise()
    assert results.found == {T[3]: 100, T[4]: 100}
    assert list(results.failed) == [T[1]]
    assert set(results.again) == {T[0], T[2], T[5]}
    assert str(results.again[T[2]]) == (
        "t-2 has no leader now [LEADER_NOT_AVAILABLE, code 5]"
    )
    assert str(results.again[T[5]]) == "the answer leaves t-5 out"
    assert raised.value.__notes__ == ["3 others failed, too"]
    assert len(log.asked()) == 3
    assert now() == 0


async def test_a_leader_that_moved(
    cluster: FakeCluster, log: Log, heard: Heard
) -> None:
    async with Started(cluster, heard) as asker:
        cluster.move_leader("t", 1, 2)
        results = await asker.ask(OFFSETS, T[:3], 5)
    assert len(results.found) == 3
    assert log.asked()[3:] == [(2, [1])]
    assert now() < 0.5
    assert [(n, delay) for _, n, delay, _ in heard.retries] == [(1, 0.0)]


async def test_a_leader_that_is_not_known_yet(
    cluster: FakeCluster, log: Log, heard: Heard
) -> None:
    new = TopicPartition("new", 0)
    async with Started(cluster, heard) as asker, anyio.create_task_group() as group:
        found: list[Results[TopicPartition, int | None]] = []

        async def ask() -> None:
            found.append(await asker.ask(OFFSETS, [new, T[5]], 30))

        cluster.move_leader("t", 5, -1)
        asker.request_refresh()
        await asker.wait_for_update()
        group.start_soon(ask)
        await anyio.sleep(3)
        assert log.asked() == []
        cluster.add_topic("new")
        cluster.move_leader("t", 5, 1)
    assert found == [Results(found={new: 100, T[5]: 100})]
    assert now() < 5


async def test_partitions_without_a_leader_wait_together(
    cluster: FakeCluster, heard: Heard, log: Log
) -> None:
    cluster.add_topic("u", 2)
    wanted = [*T, TopicPartition("u", 0), TopicPartition("u", 1)]
    for tp in wanted[1:]:
        cluster.move_leader(tp.topic, tp.partition, -1)
    async with Started(cluster, heard) as client:
        results = await client.ask(OFFSETS, wanted, 3)
    assert list(results.found) == [T[0]]
    assert list(results.failed) == wanted[1:]
    assert {str(error.__cause__) for error in results.failed.values()} == {
        f"{tp.topic}-{tp.partition} has no leader now [LEADER_NOT_AVAILABLE, code 5]"
        for tp in wanted[1:]
    }
    # One report for all of them, as soon as both topics are in the metadata.
    first, *others = [what for what, *_ in heard.retries]
    assert first == "look up the offset of t-1 and 4 more"
    assert set(others) == {"look up the offset of t-1 and 6 more"}


async def test_a_coordinator_that_moved(cluster: FakeCluster, heard: Heard) -> None:
    def delete(node, header, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
        code = E.NONE if node.node_id == 2 else E.NOT_COORDINATOR
        return DeleteGroupsResponse(
            results=[
                DeletableGroupResult(group_id=g, error_code=code)
                for g in request.groups_names
            ]
        )

    cluster.on(ApiKey.DELETE_GROUPS, delete)
    cluster.move_coordinator("g", 1)
    async with Started(cluster, heard) as asker:
        assert await asker.coordinator(CoordinatorKind.GROUP, "g") == 1
        cluster.move_coordinator("g", 2)
        results = await asker.ask(DELETION, ["g"], 5)
    assert results.found == {"g": True}
    assert [e.node_id for e in cluster.logged(ApiKey.DELETE_GROUPS)] == [1, 2]


async def test_a_coordinator_that_cannot_be_found_yet(
    cluster: FakeCluster, heard: Heard
) -> None:
    cluster.move_coordinator("g", -1)
    async with Started(cluster, heard) as asker:
        results = await asker.ask_once(DELETION, ["g"], 5)
        assert isinstance(results.again["g"], BrokerError)
        results = await asker.ask(DELETION, ["g"], 2)
    error = results.failed["g"]
    assert isinstance(error, RequestTimeout)
    assert str(error).startswith("delete group g did not succeed within 2 s; the last ")
    assert isinstance(error.__cause__, BrokerError)
    assert len(heard.retries) >= 3


async def test_a_broker_that_is_silent_delays_its_own_items_alone(
    cluster: FakeCluster, log: Log, heard: Heard
) -> None:
    cluster.on(ApiKey.LIST_OFFSETS, HANG, node=1, times=1)
    log.errors = {T[0]: [E.OFFSET_NOT_AVAILABLE] * 4}
    async with Started(cluster, heard, request_timeout_ms=5_000) as asker:
        results = await asker.ask(OFFSETS, T, 30)
    assert len(results.found) == 6
    # Broker 0 was asked five times before broker 1 had its request timeout.
    asked = [entry.node_id for entry in cluster.logged(ApiKey.LIST_OFFSETS)]
    assert sorted(asked[:3]) == [0, 1, 2]
    assert asked[3:] == [0, 0, 0, 0, 1]
    assert 5 < now() < 6


async def test_connections_that_break(
    cluster: FakeCluster, log: Log, heard: Heard
) -> None:
    cluster.on(ApiKey.LIST_OFFSETS, DISCONNECT, node=1, times=2)
    async with Started(cluster, heard) as asker:
        results = await asker.ask_once(OFFSETS, T[:3], 5)
        assert isinstance(results.again[T[1]], ConnectionLost)
        results = await asker.ask(OFFSETS, T[:3], 5)
    assert len(results.found) == 3
    retried = [h for h in heard.retries if h[0].startswith("look")]
    assert [(h[0], h[1]) for h in retried] == [("look up the offset of t-1", 1)]


async def test_one_round_has_a_deadline(
    cluster: FakeCluster, log: Log, heard: Heard
) -> None:
    cluster.on(ApiKey.LIST_OFFSETS, HANG, node=1)
    async with Started(cluster, heard, request_timeout_ms=3_000) as asker:
        results = await asker.ask_once(OFFSETS, T, 2)
        assert now() == pytest.approx(2)
        assert len(results.found) == 4
        assert isinstance(results.again[T[1]], RequestTimeout)
        assert str(results.again[T[4]]) == "broker 1 did not answer within 2 s"
        # Nobody else lost the connection by that.
        assert asker.ready_connection(1, ConnectionClass.SHARED) is not None


async def test_a_broker_that_cannot_be_connected_to(
    cluster: FakeCluster, log: Log, heard: Heard
) -> None:
    async with Started(cluster, heard, request_timeout_ms=3_000) as asker:
        cluster.on(ApiKey.API_VERSIONS, HANG)
        results = await asker.ask_once(OFFSETS, T, 9)
        assert now() == pytest.approx(3)
    # One broker was connected to before.
    assert len(results.found) == 2
    for tp, error in results.again.items():
        leader = cluster.leader(*tp)
        assert str(error) == (
            f"broker {leader} was not asked: there was no connection to it within 3 s"
        )


async def test_an_error_says_how_far_it_has_come(
    cluster: FakeCluster, log: Log, heard: Heard
) -> None:
    async with Started(cluster, heard) as asker:
        cluster.on(ApiKey.LIST_OFFSETS, HANG)
        told = [
            str(error) for error in (await asker.ask(OFFSETS, T, 2)).failed.values()
        ]
        assert len(told) == len(T)
        for text in told:
            assert re.search(r"within 2 s; broker \d has not answered$", text)
    async with Started(cluster, heard) as asker:
        cluster.on(ApiKey.API_VERSIONS, HANG)
        told = [
            str(error) for error in (await asker.ask(OFFSETS, T, 2)).failed.values()
        ]
        # The one broker that was connected to before hangs as above.
        unasked = [text for text in told if "was not asked" in text]
        assert len(unasked) == len(T) - 2
        assert all("there is no connection to it yet" in text for text in unasked)


async def test_what_a_broker_cannot_do(
    cluster: FakeCluster, log: Log, heard: Heard
) -> None:
    cluster.limit_version(ApiKey.LIST_OFFSETS, -1, node=2)
    async with Started(cluster, heard) as asker:
        results = await asker.ask(OFFSETS, T[:3], 5)
    assert list(results.found) == T[:2]
    assert isinstance(results.failed[T[2]], UnsupportedVersion)


@pytest.mark.parametrize("once", [False, True])
async def test_what_a_version_cannot_carry_fails_alone(
    cluster: FakeCluster, log: Log, heard: Heard, once: bool
) -> None:
    def build(items: Sequence[TopicPartition], terms: Terms) -> ListOffsetsRequest:
        for tp in items:
            if tp in {T[0], T[1]}:
                raise UnsupportedVersion(f"no {tp.partition}")
        return build_offsets(items, terms)

    operation = replace(OFFSETS, build=build)
    async with Started(cluster, heard) as asker:
        ask = asker.ask_once if once else asker.ask
        results = await ask(operation, T, 5)
    assert sorted(results.found) == T[2:]
    failed = {tp: str(error) for tp, error in results.failed.items()}
    assert failed == {T[0]: "no 0", T[1]: "no 1"}
    assert not results.again
    # Nothing was sent for them.
    assert sorted(log.asked()) == [(0, [3]), (1, [4]), (2, [2, 5])]


async def test_what_no_version_carries_together(
    cluster: FakeCluster, log: Log, heard: Heard
) -> None:
    def build(items: Sequence[TopicPartition], terms: Terms) -> ListOffsetsRequest:
        if len(items) > 1:
            raise UnsupportedVersion("one at a time")
        return build_offsets(items, terms)

    async with Started(cluster, heard) as asker:
        results = await asker.ask(replace(OFFSETS, build=build), T, 5)
    assert list(results.failed) == T
    assert log.asked() == []


async def test_an_answer_that_fails_as_a_whole(
    cluster: FakeCluster, heard: Heard
) -> None:
    def refuse(response: ListGroupsResponse, items: object) -> list[Answer[str, int]]:
        raise UnsupportedVersion("not with this version")

    operation = Operation(
        what="list groups of",
        request=ListGroupsRequest,
        destination=lambda item: Broker(1),
        build=lambda items, terms: ListGroupsRequest(),
        read=refuse,
    )
    cluster.on(ApiKey.LIST_GROUPS, ListGroupsResponse())
    async with Started(cluster, heard) as asker:
        results = await asker.ask(operation, ["x"], 5)
    assert str(results.failed["x"]) == "not with this version"


# ---- how it ends ---------------------------------------------------------------------


async def test_the_deadline_leaves_each_item_its_last_failure(
    cluster: FakeCluster, log: Log, heard: Heard
) -> None:
    cluster.on(ApiKey.LIST_OFFSETS, HANG, node=1)
    cluster.move_leader("t", 2, -1)
    log.errors = {T[0]: [E.OFFSET_NOT_AVAILABLE] * 99}
    nowhere = TopicPartition("nowhere", 0)
    async with Started(cluster, heard) as asker:
        results = await asker.ask(OFFSETS, [nowhere, T[1], T[0], T[3], T[2]], 4)
        assert now() == pytest.approx(4)
    assert results.found == {T[3]: 100}
    assert list(results.failed) == [nowhere, T[1], T[0], T[2]]
    assert {type(error) for error in results.failed.values()} == {RequestTimeout}
    causes = [type(error.__cause__) for error in results.failed.values()]
    assert causes == [UnknownTopicOrPartition, type(None), BrokerError, BrokerError]
    assert str(results.failed[T[1]]) == (
        "look up the offset of t-1 did not succeed within 4 s; "
        "broker 1 has not answered"
    )


async def test_it_ends_when_another_attempt_would_come_too_late(
    cluster: FakeCluster, log: Log, heard: Heard
) -> None:
    log.errors = {T[0]: [E.OFFSET_NOT_AVAILABLE] * 99}
    async with Started(cluster, heard, retry_backoff_ms=900) as asker:
        results = await asker.ask(OFFSETS, [T[0]], 1.5)
    assert isinstance(results.failed[T[0]], RequestTimeout)
    assert now() < 1.5
    assert len(log.asked()) == 2


async def test_the_first_failure_may_end_it(
    cluster: FakeCluster, log: Log, heard: Heard
) -> None:
    cluster.on(ApiKey.LIST_OFFSETS, HANG, node=1)
    log.errors = {T[0]: [E.TOPIC_AUTHORIZATION_FAILED]}
    async with Started(cluster, heard) as asker:
        results = await asker.ask(OFFSETS, T[:2], 9, stops_at_failure=True)
    assert isinstance(results.failed[T[0]], AuthorizationError)
    assert isinstance(results.failed[T[1]], RequestTimeout)
    assert now() == 0


async def test_a_client_that_is_closed_meanwhile(
    cluster: FakeCluster, log: Log, heard: Heard
) -> None:
    cluster.move_leader("t", 2, -1)
    log.errors = {T[0]: [E.OFFSET_NOT_AVAILABLE] * 99}
    cluster.on(ApiKey.LIST_OFFSETS, HANG, node=1)
    found: list[Results[TopicPartition, int | None]] = []
    async with anyio.create_task_group() as group, Started(cluster, heard) as asker:

        async def ask() -> None:
            found.append(await asker.ask(OFFSETS, T[:3], 60))

        group.start_soon(ask)
        await anyio.sleep(2)
    assert {type(error) for error in found[0].failed.values()} == {ClosedError}
    assert now() < 4
    with pytest.raises(ClosedError):
        await asker.ask(OFFSETS, T, 5)
    with pytest.raises(ClosedError):
        await asker.ask_once(OFFSETS, T, 5)


async def test_a_cancelled_call_leaves_nothing(
    cluster: FakeCluster, log: Log, heard: Heard
) -> None:
    cluster.on(ApiKey.LIST_OFFSETS, HANG, node=1, times=1)
    async with Started(cluster, heard) as asker:
        for _ in range(2):
            with anyio.move_on_after(1):
                await asker.ask(OFFSETS, [T[1], TopicPartition("nowhere", 0)], 60)
        with anyio.move_on_after(1):
            await asker.ask_once(OFFSETS, T, 60)
        assert (await asker.ask(OFFSETS, [T[2]], 5)).found == {T[2]: 100}


async def test_a_lookup_of_a_coordinator_that_hangs(
    cluster: FakeCluster, heard: Heard
) -> None:
    cluster.on(ApiKey.FIND_COORDINATOR, HANG)
    async with Started(cluster, heard) as asker:
        results = await asker.ask_once(DELETION, ["g"], 2)
        assert now() == pytest.approx(2)
        assert isinstance(results.again["g"], RequestTimeout)
        results = await asker.ask(DELETION, ["g"], 2)
        assert re.fullmatch(
            "delete group g did not succeed within 2 s; it waits for the broker to be "
            r"found: broker \d \(broker\d:909\d\) has not answered FindCoordinator",
            str(results.failed["g"]),
        )


async def test_a_topic_that_may_not_be_described(
    cluster: FakeCluster, log: Log, heard: Heard
) -> None:
    cluster.add_topic("secret", error=E.TOPIC_AUTHORIZATION_FAILED)
    cluster.topics["secret"].partitions.clear()
    async with Started(cluster, heard) as asker:
        secret = TopicPartition("secret", 0)
        results = await asker.ask(OFFSETS, [secret, T[0]], 60)
    assert isinstance(results.failed[secret], AuthorizationError)
    assert results.found == {T[0]: 100}
    assert now() < 1


# ---- the decisions -------------------------------------------------------------------

BACKOFF = Backoff(100, 400)
LOST = NetworkError("lost")


def test_progress_takes_what_is_due() -> None:
    progress = ItemProgress[str, int]("abc", BACKOFF, 10)
    assert progress.take_due(0) == ["a", "b", "c"]
    assert progress.take_due(9) == []
    assert not progress.is_over
    assert not progress.is_too_late
    progress.decide(Results({"a": 1}, {"b": LOST}))
    assert progress.postpone({"c": LOST}, 1, 0.5) == (1, 0.1)
    assert progress.next_due == 1.1
    assert progress.take_due(1) == []
    assert progress.take_due(1.1) == ["c"]
    progress.decide(Results({"c": 3}))
    assert progress.is_over
    assert progress.next_due == float("inf")
    assert progress.results == Results({"a": 1, "c": 3}, {"b": LOST})


def test_progress_waits_longer_after_each_failure() -> None:
    progress = ItemProgress[str, int]("ab", BACKOFF, 10)
    waits = []
    for attempt in range(1, 5):
        count, delay = progress.postpone({"a": LOST}, 0, 0.5)
        assert count == attempt
        waits.append(delay)
    assert waits == [0.1, 0.2, 0.4, 0.4]
    assert progress.postpone({"a": LOST, "b": LOST}, 0, 0.5) == (5, 0.4)


def test_progress_suspends_and_releases() -> None:
    progress = ItemProgress[str, int]("ab", BACKOFF, 10)
    progress.take_due(0)
    assert progress.suspend({"a": LOST}) == 1
    assert progress.suspend({"b": LOST}, counts=False) == 0
    assert progress.next_due == float("inf")
    progress.release("b", 4)
    assert progress.take_due(4) == ["b"]
    assert progress.suspend({"a": LOST}) == 2


def test_progress_knows_when_it_is_too_late() -> None:
    progress = ItemProgress[str, int]("ab", BACKOFF, 10)
    progress.take_due(0)
    progress.postpone({"a": LOST}, 9.95, 0.5)
    assert not progress.is_too_late  # b is in flight
    progress.postpone({"b": LOST}, 9.9, 0.5)
    assert progress.is_too_late
    asked: list[tuple[str, KafkaError | None]] = []

    def why(item: str, last: KafkaError | None) -> KafkaError:
        asked.append((item, last))
        return BrokerNotAvailable(item)

    results = progress.expire(why)
    assert asked == [("a", LOST), ("b", LOST)]
    assert list(results.failed) == ["a", "b"]
    assert progress.is_over


def test_results_come_in_the_order_asked_for() -> None:
    progress = ItemProgress[str, int]("abcd", BACKOFF, 10)
    progress.take_due(0)
    progress.decide(Results({"d": 4, "b": 2}, {"c": LOST}))
    results = progress.expire(lambda item, _: BrokerNotAvailable(item))
    assert list(results.found) == ["b", "d"]
    assert list(results.failed) == ["a", "c"]


def test_sorting_answers() -> None:
    answers = [
        Answer(T[1], 1, E.NONE),
        Answer(T[0], 0, E.UNSUPPORTED_FOR_MESSAGE_FORMAT),
        Answer(T[2], 2, E.NOT_LEADER_OR_FOLLOWER, "ask another"),
        Answer(T[3], 3, E.INVALID_REQUEST),
        Answer(T[5], 5, E.NONE),
    ]
    results, reactions = sort_answers(OFFSETS, T[:5], answers)
    assert results.found == {T[0]: 0, T[1]: 1}  # the table takes it for a success
    assert list(results.again) == [T[2], T[4]]
    assert "t-2: ask another" in str(results.again[T[2]])
    assert list(results.failed) == [T[3]]
    assert reactions == {
        T[2]: reaction(ApiKey.LIST_OFFSETS, E.NOT_LEADER_OR_FOLLOWER),
        T[3]: reaction(ApiKey.LIST_OFFSETS, E.INVALID_REQUEST),
    }
    assert T[0] in results
    assert T[5] not in results


def test_an_operation_may_have_reactions_of_its_own() -> None:
    operation = Operation(
        what="elect",
        request=DeleteGroupsRequest,
        destination=GroupCoordinator,
        build=lambda items, _: DeleteGroupsRequest(),
        read=lambda response, items: (),
        react=lambda code: Reaction(step=ReactionStep.SUCCESS),
    )
    results, _ = sort_answers(operation, ["g"], [Answer("g", 1, E.GROUP_ID_NOT_FOUND)])
    assert results.found == {"g": 1}


def test_what_a_request_has_left() -> None:
    # The answer has to arrive as well.
    assert Terms(3, 1.5, 0).timeout_ms == 1_350
    assert Terms(3, 60.0, 0).timeout_ms == 59_500
    assert Terms(3, 0.0001, 0).timeout_ms == 1
