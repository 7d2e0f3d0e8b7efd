"""The operations on transactions, against scripted brokers."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import pytest

from kafkaio._config import ClientConfig
from kafkaio.admin import (
    Admin,
    HangingTransaction,
    ProducerIdAndEpoch,
    ProducerState,
    TransactionDescription,
    TransactionListing,
    TransactionState,
    settled,
)
from kafkaio.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    AuthorizationError,
    BrokerError,
    KafkaError,
    RequestTimeout,
    UnknownTopicOrPartition,
    UnsupportedVersion,
    UsageError,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.protocol.messages import (
    describe_producers as producers_api,
    describe_transactions as transactions_api,
    list_transactions as list_api,
    write_txn_markers as markers_api,
)
from kafkaio.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kafkaio.protocol.messages.metadata import MetadataRequest
from kafkaio.types import TopicPartition
from tests.fakes.broker import DISCONNECT, HANG, FakeCluster, FakeNode

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
OLD_MS = int(time.time() * 1000) - 3_600_000


@dataclass
class Transactional:
    """What the scripted brokers know of producers and transactions."""

    cluster: FakeCluster
    #: By partition.
    producers: dict[TopicPartition, list[producers_api.ProducerState]] = field(
        default_factory=dict
    )
    #: By transactional id.
    known: dict[str, transactions_api.TransactionState] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cluster.on(ApiKey.LIST_TRANSACTIONS, self.list)
        self.cluster.on(ApiKey.DESCRIBE_TRANSACTIONS, self.describe)
        self.cluster.on(ApiKey.DESCRIBE_PRODUCERS, self.describe_producers)
        self.cluster.on(ApiKey.WRITE_TXN_MARKERS, self.write_markers)

    def add(
        self,
        transactional_id: str,
        producer_id: int,
        state: str,
        partitions: Iterable[TopicPartition] = (),
        epoch: int = 4,
    ) -> None:
        topics = [
            transactions_api.TopicData(topic=tp.topic, partitions=[tp.partition])
            for tp in partitions
        ]
        self.known[transactional_id] = transactions_api.TransactionState(
            transactional_id=transactional_id,
            producer_id=producer_id,
            producer_epoch=epoch,
            transaction_state=state,
            transaction_timeout_ms=60_000,
            transaction_start_time_ms=OLD_MS if topics else -1,
            topics=topics,
        )

    def open(
        self,
        tp: TopicPartition,
        producer_id: int = 7,
        start: int = 5,
        *,
        coordinator_epoch: int = 2,
        at: int = OLD_MS,
    ) -> None:
        state = producers_api.ProducerState(
            producer_id=producer_id,
            producer_epoch=3,
            last_sequence=11,
            last_timestamp=at,
            coordinator_epoch=coordinator_epoch,
            current_txn_start_offset=start,
        )
        self.producers.setdefault(tp, []).append(state)

    def list(
        self, node: FakeNode, header: object, request: list_api.ListTransactionsRequest
    ) -> list_api.ListTransactionsResponse:
        del header
        names = set(map(str, TransactionState))
        return list_api.ListTransactionsResponse(
            unknown_state_filters=sorted(set(request.state_filters) - names),
            transaction_states=[
                list_api.TransactionState(
                    transactional_id=key,
                    producer_id=it.producer_id,
                    transaction_state=it.transaction_state,
                )
                for key, it in self.known.items()
                if self.cluster.coordinator(key, 1) == node.node_id
                and it.producer_id in (request.producer_id_filters or [it.producer_id])
            ],
        )

    def describe(
        self,
        node: FakeNode,
        header: object,
        request: transactions_api.DescribeTransactionsRequest,
    ) -> transactions_api.DescribeTransactionsResponse:
        del header
        found = []
        for key in request.transactional_ids:
            assert self.cluster.coordinator(key, 1) == node.node_id
            missing = transactions_api.TransactionState(
                transactional_id=key, error_code=E.TRANSACTIONAL_ID_NOT_FOUND
            )
            found.append(self.known.get(key, missing))
        return transactions_api.DescribeTransactionsResponse(transaction_states=found)

    def describe_producers(
        self,
        node: FakeNode,
        header: object,
        request: producers_api.DescribeProducersRequest,
    ) -> producers_api.DescribeProducersResponse:
        del header
        topics = []
        for topic in request.topics:
            answers = []
            for number in topic.partition_indexes:
                tp = TopicPartition(topic.name, number)
                is_leader = self.cluster.leader(*tp) == node.node_id
                answers.append(
                    producers_api.PartitionResponse(
                        partition_index=number,
                        error_code=0 if is_leader else E.NOT_LEADER_OR_FOLLOWER,
                        active_producers=self.producers.get(tp, []),
                    )
                )
            topics.append(
                producers_api.TopicResponse(name=topic.name, partitions=answers)
            )
        return producers_api.DescribeProducersResponse(topics=topics)

    def write_markers(
        self,
        node: FakeNode,
        header: object,
        request: markers_api.WriteTxnMarkersRequest,
    ) -> markers_api.WriteTxnMarkersResponse:
        del header
        (marker,) = request.markers
        (topic,) = marker.topics
        (number,) = topic.partition_indexes
        tp = TopicPartition(topic.name, number)
        (state,) = self.producers[tp]
        code = E.NONE
        if self.cluster.leader(*tp) != node.node_id:
            code = E.NOT_LEADER_OR_FOLLOWER
        elif marker.coordinator_epoch < state.coordinator_epoch:
            code = E.TRANSACTION_COORDINATOR_FENCED
        else:
            state.current_txn_start_offset = -1
        return marker_answer(tp, marker.producer_id, code)


def marker_answer(
    tp: TopicPartition, producer_id: int, code: int
) -> markers_api.WriteTxnMarkersResponse:
    result = markers_api.WritableTxnMarkerPartitionResult(
        partition_index=tp.partition, error_code=code
    )
    topic = markers_api.WritableTxnMarkerTopicResult(name=tp.topic, partitions=[result])
    return markers_api.WriteTxnMarkersResponse(
        markers=[
            markers_api.WritableTxnMarkerResult(producer_id=producer_id, topics=[topic])
        ]
    )


@pytest.fixture
def world(cluster: FakeCluster) -> Transactional:
    return Transactional(cluster)


@asynccontextmanager
async def admin_of(cluster: FakeCluster, **options: object) -> AsyncIterator[Admin]:
    config = ClientConfig(
        bootstrap_servers=cluster.bootstrap_servers,
        **options,  # type: ignore[arg-type]  # checked when made
    )
    async with Admin.from_config(config, dial=cluster.dial) as admin:
        yield admin


# ---- list_transactions ---------------------------------------------------------------


async def test_every_broker_is_asked_for_its_transactions(
    cluster: FakeCluster, world: Transactional
) -> None:
    for node, name in enumerate("cab"):
        cluster.move_coordinator(name, node, 1)
        world.add(name, 10 + node, "Ongoing" if node else "SomethingNew")
    async with admin_of(cluster) as admin:
        found = await admin.list_transactions()
    assert found == [
        TransactionListing("a", 11, TransactionState.ONGOING, 1),
        TransactionListing("b", 12, TransactionState.ONGOING, 2),
        TransactionListing("c", 10, TransactionState.UNKNOWN, 0),
    ]
    assert str(found[0].state) == "Ongoing"
    assert len(cluster.logged(ApiKey.LIST_TRANSACTIONS)) == 3


async def test_a_broker_that_has_just_joined_is_asked_too(
    cluster: FakeCluster, world: Transactional
) -> None:
    cluster.move_coordinator("a", 2, 1)
    world.add("a", 1, "Ongoing")
    cluster.stop(2)
    async with admin_of(cluster) as admin:
        assert admin.statistics().brokers == 2
        cluster.start(2)
        await anyio.sleep(1)
        (found,) = await admin.list_transactions()
    assert found.coordinator == 2


async def test_the_filters_go_to_the_brokers(
    cluster: FakeCluster, world: Transactional
) -> None:
    async with admin_of(cluster) as admin:
        await admin.list_transactions(
            states=[TransactionState.PREPARE_ABORT, "Ongoing"],
            producer_ids=[9, 3, 9],
            duration_ms=1000,
            pattern="billing-.*",
        )
        await admin.list_transactions()
    filtered = list_api.ListTransactionsRequest(
        state_filters=["Ongoing", "PrepareAbort"],
        producer_id_filters=[3, 9],
        duration_filter=1000,
        transactional_id_pattern="billing-.*",
    )
    sent = cluster.requests(list_api.ListTransactionsRequest)
    assert sent == [filtered] * 3 + [list_api.ListTransactionsRequest()] * 3


@pytest.mark.parametrize(
    ("highest", "filters", "needed"),
    [
        (1, {"pattern": "a.*"}, "needs Kafka 4.1 or later"),
        (0, {"duration_ms": 5}, "needs Kafka 3.8 or later"),
        (0, {"duration_ms": 5, "pattern": "a.*"}, "needs Kafka 4.1 or later"),
        (-1, {}, "needs Kafka 3.0 or later"),
    ],
)
async def test_a_filter_that_brokers_are_too_old_for(
    cluster: FakeCluster,
    world: Transactional,
    highest: int,
    filters: dict[str, object],
    needed: str,
) -> None:
    cluster.limit_version(ApiKey.LIST_TRANSACTIONS, highest)
    cluster.drop_connections()
    async with admin_of(cluster) as admin:
        with pytest.raises(UnsupportedVersion, match=needed):
            await admin.list_transactions(**filters)  # type: ignore[arg-type]
        if highest >= 0:
            assert await admin.list_transactions() == []


async def test_filters_that_can_never_be(
    cluster: FakeCluster, world: Transactional
) -> None:
    async with admin_of(cluster) as admin:
        with pytest.raises(ArgumentValueError, match="do not know Nowhere"):
            await admin.list_transactions(states=["Nowhere", "Ongoing"])
        with pytest.raises(ArgumentValueError, match="duration_ms"):
            await admin.list_transactions(duration_ms=-1)
        with pytest.raises(ArgumentValueError, match="timeout"):
            await admin.list_transactions(timeout=-1)


async def test_a_broker_that_does_not_answer_is_not_passed_over(
    cluster: FakeCluster, world: Transactional
) -> None:
    cluster.on(ApiKey.LIST_TRANSACTIONS, HANG, node=1)
    async with admin_of(cluster) as admin:
        with pytest.raises(RequestTimeout, match="transactions of broker 1"):
            await admin.list_transactions(timeout=3)


async def test_a_coordinator_that_loads_is_asked_again(
    cluster: FakeCluster, world: Transactional
) -> None:
    loading = list_api.ListTransactionsResponse(
        error_code=E.COORDINATOR_LOAD_IN_PROGRESS
    )
    cluster.on(ApiKey.LIST_TRANSACTIONS, loading, node=1, times=2)
    async with admin_of(cluster) as admin:
        assert await admin.list_transactions() == []
    assert len(cluster.logged(ApiKey.LIST_TRANSACTIONS)) == 5


async def test_brokers_that_cannot_be_found(
    cluster: FakeCluster, world: Transactional
) -> None:
    async with admin_of(cluster) as admin:
        await anyio.sleep(1)
        for node in cluster.nodes:
            cluster.stop(node)
        with pytest.raises(RequestTimeout, match="find all brokers"):
            await admin.list_transactions(timeout=2)


# ---- describe_transactions and describe_producers ------------------------------------


async def test_coordinators_describe_their_transactions(
    cluster: FakeCluster, world: Transactional
) -> None:
    cluster.move_coordinator("a", 1, 1)
    cluster.move_coordinator("b", 2, 1)
    world.add("a", 7, "Ongoing", [T0, T1])
    world.add("b", 8, "CompleteCommit")
    world.known["b"].transaction_start_time_ms = OLD_MS
    async with admin_of(cluster) as admin:
        found = await admin.describe_transactions(["b", "a", "b"])
        assert await admin.describe_transactions([]) == {}
    assert list(found) == ["b", "a"]
    assert found["a"] == TransactionDescription(
        transactional_id="a",
        coordinator=1,
        state=TransactionState.ONGOING,
        producer_id=7,
        producer_epoch=4,
        timeout_ms=60_000,
        start_time_ms=OLD_MS,
        partitions=frozenset({T0, T1}),
    )
    assert found["b"].start_time_ms is None
    assert found["b"].coordinator == 2
    assert not found["b"].state.is_open


async def test_errors_are_raised_grouped_or_returned(
    cluster: FakeCluster, world: Transactional
) -> None:
    world.add("a", 7, "Ongoing")
    async with admin_of(cluster) as admin:
        with pytest.raises(BrokerError, match=r"of 'x'.*TRANSACTIONAL_ID_NOT_FOUND"):
            await admin.describe_transactions(["a", "x"])
        with pytest.raises(ExceptionGroup, match="2 of 3 failed") as raised:
            await admin.describe_transactions(["y", "a", "x"])
        found = await settled(admin.describe_transactions(["y", "a"]))
    assert all(isinstance(each, BrokerError) for each in raised.value.exceptions)
    assert isinstance(found.failed["y"], BrokerError)
    assert isinstance(found.found["a"], TransactionDescription)


async def test_what_is_no_list_of_ids(
    cluster: FakeCluster, world: Transactional
) -> None:
    async with admin_of(cluster) as admin:
        with pytest.raises(ArgumentTypeError, match="not one string"):
            await admin.describe_transactions("billing")
        with pytest.raises(ArgumentTypeError, match="must be a string: 3"):
            await admin.fence_producers([3])  # type: ignore[list-item]
        with pytest.raises(ArgumentValueError, match="empty"):
            await admin.fence_producers([""])


async def test_leaders_describe_producers(
    cluster: FakeCluster, world: Transactional
) -> None:
    world.open(T0)
    world.open(T1, coordinator_epoch=-1, start=-1)
    async with admin_of(cluster) as admin:
        found = await admin.describe_producers([T1, T0])
    assert found == {
        T1: (ProducerState(7, 3, 11, OLD_MS, None, None),),
        T0: (ProducerState(7, 3, 11, OLD_MS, 2, 5),),
    }
    assert len(cluster.logged(ApiKey.DESCRIBE_PRODUCERS)) == 2


async def test_a_broker_that_is_named_is_asked_once_whatever_it_has(
    cluster: FakeCluster, world: Transactional
) -> None:
    world.open(T0)
    leader = cluster.leader(*T0)
    other = next(node for node in (1, 2) if node != leader)
    async with admin_of(cluster) as admin:
        found = await admin.describe_producers([T0], broker=leader)
        assert found == {T0: (ProducerState(7, 3, 11, OLD_MS, 2, 5),)}
        with pytest.raises(BrokerError) as caught:
            await admin.describe_producers([T0], broker=other)
    assert caught.value.code == E.NOT_LEADER_OR_FOLLOWER
    assert len(cluster.logged(ApiKey.DESCRIBE_PRODUCERS)) == 2


async def test_a_leader_that_moved_is_found(
    cluster: FakeCluster, world: Transactional
) -> None:
    world.open(T0)
    async with admin_of(cluster) as admin:
        await admin.describe_producers([T0])
        cluster.move_leader("t", 0, 2)
        assert (await settled(admin.describe_producers([T0]))).found
    assert [e.node_id for e in cluster.logged(ApiKey.DESCRIBE_PRODUCERS)] == [0, 0, 2]


async def test_partitions_without_an_answer(
    cluster: FakeCluster, world: Transactional
) -> None:
    cluster.limit_version(ApiKey.DESCRIBE_PRODUCERS, -1, node=1)
    cluster.drop_connections()
    async with admin_of(cluster) as admin:
        with pytest.raises(UnsupportedVersion, match=r"needs Kafka 2.8"):
            await admin.describe_producers([T0, T1])
        with pytest.raises(UnknownTopicOrPartition):
            await admin.describe_producers([TopicPartition("none", 0)], timeout=2)
    # A topic is not created by looking for it.
    asked = [
        request.allow_auto_topic_creation
        for request in cluster.requests(MetadataRequest)
        if any(topic.name == "none" for topic in request.topics or ())
    ]
    assert asked
    assert not any(asked)


# ---- find_hanging_transactions -------------------------------------------------------


async def test_what_no_coordinator_has_hangs(
    cluster: FakeCluster, world: Transactional
) -> None:
    world.open(T0, producer_id=7, start=5)
    async with admin_of(cluster) as admin:
        found = await admin.find_hanging_transactions()
    assert found == [HangingTransaction(T0, 5, 7, 3, OLD_MS, None)]


@pytest.mark.parametrize(
    ("state", "partitions", "hangs"),
    [
        ("Ongoing", [T0], False),
        ("PrepareCommit", [T0, T1], False),
        ("PrepareAbort", [T0], False),
        ("SomethingNew", [T0], False),
        ("Ongoing", [T1], True),
        ("Empty", [], True),
        ("CompleteAbort", [T0], True),
        ("CompleteCommit", [], True),
    ],
)
async def test_what_its_coordinator_will_end_does_not_hang(
    cluster: FakeCluster,
    world: Transactional,
    state: str,
    partitions: list[TopicPartition],
    *,
    hangs: bool,
) -> None:
    world.open(T0)
    world.add("a", 7, state, partitions)
    async with admin_of(cluster) as admin:
        found = await admin.find_hanging_transactions(topics="t")
    assert [each.transactional_id for each in found] == (["a"] if hangs else [])


async def test_what_is_young_or_closed_is_passed_over(
    cluster: FakeCluster, world: Transactional
) -> None:
    recent = int(time.time() * 1000) - 600_000
    world.open(T0, at=recent)
    world.open(T1, start=-1)
    async with admin_of(cluster) as admin:
        assert await admin.find_hanging_transactions() == []
        # The coordinators are asked only if there is something to ask.
        assert not cluster.logged(ApiKey.LIST_TRANSACTIONS)
        (found,) = await admin.find_hanging_transactions(
            max_transaction_timeout_ms=60_000
        )
        assert found.partition == T0
        with pytest.raises(ArgumentValueError, match="max_transaction_timeout_ms"):
            await admin.find_hanging_transactions(max_transaction_timeout_ms=-1)


async def test_where_to_look(cluster: FakeCluster, world: Transactional) -> None:
    cluster.add_topic("u", 1)
    u0 = TopicPartition("u", 0)
    for tp in (T0, T1, u0):
        world.open(tp)

    async with admin_of(cluster) as admin:

        async def found(
            broker: int | None = None, topics: list[str] | None = None
        ) -> list[TopicPartition]:
            hanging = await admin.find_hanging_transactions(
                broker=broker, topics=topics
            )
            return [each.partition for each in hanging]

        assert await found() == [T0, T1, u0]
        assert await found(broker=0) == [T0, u0]
        assert await found(topics=["u"]) == [u0]
        assert await found(1, ["u"]) == []


async def test_what_ended_while_coordinators_were_asked(
    cluster: FakeCluster, world: Transactional
) -> None:
    world.open(T0)
    listed = world.list

    def ends(node: FakeNode, header: object, request: object) -> object:
        world.producers[T0][0].current_txn_start_offset = 20
        return listed(node, header, request)  # type: ignore[arg-type]

    cluster.on(ApiKey.LIST_TRANSACTIONS, ends)  # type: ignore[arg-type]  # a response
    async with admin_of(cluster) as admin:
        assert await admin.find_hanging_transactions() == []


async def test_an_id_that_expires_while_it_is_described(
    cluster: FakeCluster, world: Transactional
) -> None:
    world.open(T0)
    world.add("a", 7, "Ongoing", [T0])
    listed = world.list

    def expires(node: FakeNode, header: object, request: object) -> object:
        answer = listed(node, header, request)  # type: ignore[arg-type]
        if answer.transaction_states:
            del world.known["a"]
        return answer

    cluster.on(ApiKey.LIST_TRANSACTIONS, expires)  # type: ignore[arg-type]
    async with admin_of(cluster) as admin:
        (found,) = await admin.find_hanging_transactions()
    assert found.transactional_id is None


async def test_a_coordinator_that_refuses_hides_nothing(
    cluster: FakeCluster, world: Transactional
) -> None:
    world.open(T0)
    world.add("a", 7, "Ongoing", [T0])
    world.known["a"].error_code = E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    async with admin_of(cluster) as admin:
        with pytest.raises(AuthorizationError, match="'a'"):
            await admin.find_hanging_transactions()


async def test_a_coordinator_that_is_silent_hides_nothing(
    cluster: FakeCluster, world: Transactional
) -> None:
    world.open(T0)
    world.add("a", 7, "Ongoing", [T0])
    cluster.on(ApiKey.DESCRIBE_TRANSACTIONS, HANG)
    async with admin_of(cluster) as admin:
        with pytest.raises(RequestTimeout, match="describe the transaction of 'a'"):
            await admin.find_hanging_transactions(timeout=3)
        with pytest.raises(RequestTimeout):
            await admin.abort_transaction(T0, 5, timeout=3)
    assert not cluster.logged(ApiKey.WRITE_TXN_MARKERS)


async def test_old_brokers_cannot_tell_what_hangs(
    cluster: FakeCluster, world: Transactional
) -> None:
    world.open(T0)
    cluster.limit_version(ApiKey.LIST_TRANSACTIONS, -1)
    cluster.drop_connections()
    async with admin_of(cluster) as admin:
        with pytest.raises(UnsupportedVersion, match=r"needs Kafka 3.0"):
            await admin.find_hanging_transactions()


# ---- abort_transaction ---------------------------------------------------------------


@pytest.mark.parametrize(("described", "sent"), [(2, 2), (0, 0), (-1, 0)])
async def test_the_marker_has_the_epochs_as_described(
    cluster: FakeCluster, world: Transactional, described: int, sent: int
) -> None:
    world.open(T1, coordinator_epoch=described)
    async with admin_of(cluster) as admin:
        await admin.abort_transaction(T1, 5)
        (state,) = (await admin.describe_producers([T1]))[T1]
    assert state.transaction_start_offset is None
    (entry,) = cluster.logged(ApiKey.WRITE_TXN_MARKERS)
    assert (entry.node_id, entry.version) == (1, 1)
    (marker,) = entry.request.markers
    assert (marker.producer_id, marker.producer_epoch) == (7, 3)
    assert marker.coordinator_epoch == sent
    assert marker.transaction_result is False


async def test_the_marker_follows_the_leader(
    cluster: FakeCluster, world: Transactional
) -> None:
    world.open(T1)
    moved = marker_answer(T1, 7, E.NOT_LEADER_OR_FOLLOWER)
    cluster.on(ApiKey.WRITE_TXN_MARKERS, moved, times=1)
    cluster.on(ApiKey.WRITE_TXN_MARKERS, DISCONNECT, times=1)
    async with admin_of(cluster) as admin:
        await admin.abort_transaction(T1, 5)
    assert len(cluster.logged(ApiKey.WRITE_TXN_MARKERS)) == 3


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (E.TRANSACTION_COORDINATOR_FENCED, BrokerError),
        (E.CLUSTER_AUTHORIZATION_FAILED, AuthorizationError),
    ],
)
async def test_a_marker_that_is_refused(
    cluster: FakeCluster, world: Transactional, code: E, kind: type[KafkaError]
) -> None:
    world.open(T1)
    cluster.on(ApiKey.WRITE_TXN_MARKERS, marker_answer(T1, 7, code))
    async with admin_of(cluster) as admin:
        with pytest.raises(kind, match=f"abort the transaction in t-1.*{code.name}"):
            await admin.abort_transaction(T1, 5)
    assert len(cluster.logged(ApiKey.WRITE_TXN_MARKERS)) == 1


@pytest.mark.parametrize("state", ["Ongoing", "PrepareCommit"])
async def test_what_the_coordinator_has_is_not_aborted(
    cluster: FakeCluster, world: Transactional, state: str
) -> None:
    world.open(T1)
    cluster.move_coordinator("a", 2, 1)
    world.add("a", 7, state, [T0, T1])
    async with admin_of(cluster) as admin:
        with pytest.raises(UsageError) as raised:
            await admin.abort_transaction(T1, 5)
        assert not cluster.logged(ApiKey.WRITE_TXN_MARKERS)
        await admin.abort_transaction(T1, 5, force=True)
    assert len(cluster.logged(ApiKey.WRITE_TXN_MARKERS)) == 1
    for part in ("t-1", "broker 2", "'a'", state, "fence_producers(['a'])", "force="):
        assert part in str(raised.value)


async def test_what_the_coordinator_has_elsewhere_is_aborted(
    cluster: FakeCluster, world: Transactional
) -> None:
    world.open(T1)
    world.add("a", 7, "Ongoing", [T0])
    async with admin_of(cluster) as admin:
        await admin.abort_transaction(T1, 5)
    assert len(cluster.logged(ApiKey.WRITE_TXN_MARKERS)) == 1


@pytest.mark.parametrize("state", ["PrepareCommit", "CompleteCommit"])
@pytest.mark.parametrize("bumps", [0, 1])
async def test_what_may_be_committed_is_not_aborted(
    cluster: FakeCluster, world: Transactional, state: str, bumps: int
) -> None:
    """The broker may have lost the marker of this partition (Kafka 4.3.1)."""
    world.open(T1)
    cluster.move_coordinator("a", 2, 1)
    world.add("a", 7, state, [T0], epoch=3 + bumps)
    async with admin_of(cluster) as admin:
        with pytest.raises(UsageError) as raised:
            await admin.abort_transaction(T1, 5)
        assert not cluster.logged(ApiKey.WRITE_TXN_MARKERS)
        await admin.abort_transaction(T1, 5, force=True)
    assert len(cluster.logged(ApiKey.WRITE_TXN_MARKERS)) == 1
    for part in ("t-1 may be committed", "broker 2", "'a'", state, "force=True"):
        assert part in str(raised.value)


@pytest.mark.parametrize(
    ("state", "epoch"), [("CompleteCommit", 5), ("CompleteAbort", 3), ("Ongoing", 3)]
)
async def test_what_cannot_be_the_committed_one_is_aborted(
    cluster: FakeCluster, world: Transactional, state: str, epoch: int
) -> None:
    world.open(T1)
    world.add("a", 7, state, [], epoch=epoch)
    async with admin_of(cluster) as admin:
        await admin.abort_transaction(T1, 5)
    assert len(cluster.logged(ApiKey.WRITE_TXN_MARKERS)) == 1


async def test_no_transaction_begins_there(
    cluster: FakeCluster, world: Transactional
) -> None:
    world.open(T1)
    async with admin_of(cluster) as admin:
        with pytest.raises(UsageError, match=r"t-1 has no open .* at offset 6"):
            await admin.abort_transaction(T1, 6, force=True)
    assert not cluster.logged(ApiKey.WRITE_TXN_MARKERS)


async def test_old_brokers_need_force(
    cluster: FakeCluster, world: Transactional
) -> None:
    world.open(T1)
    cluster.limit_version(ApiKey.LIST_TRANSACTIONS, -1)
    cluster.drop_connections()
    async with admin_of(cluster) as admin:
        with pytest.raises(UnsupportedVersion, match="force=True"):
            await admin.abort_transaction(T1, 5)
        assert not cluster.logged(ApiKey.WRITE_TXN_MARKERS)
        await admin.abort_transaction(T1, 5, force=True)
    assert len(cluster.logged(ApiKey.WRITE_TXN_MARKERS)) == 1


# ---- fence_producers -----------------------------------------------------------------


def identity(epoch: int = 0, code: int = 0) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        error_code=code, producer_id=-1 if code else 7, producer_epoch=epoch
    )


async def test_fencing(cluster: FakeCluster) -> None:
    cluster.move_coordinator("a", 1, 1)
    cluster.move_coordinator("b", 2, 1)
    cluster.on(ApiKey.INIT_PRODUCER_ID, identity(9))
    again = (E.CONCURRENT_TRANSACTIONS, E.COORDINATOR_LOAD_IN_PROGRESS)
    for code in again:
        cluster.on(ApiKey.INIT_PRODUCER_ID, identity(code=code), node=1, times=2)
    async with admin_of(cluster) as admin:
        found = await admin.fence_producers(["b", "a"], timeout=20)
        assert await admin.force_terminate_transaction("a") is None
    assert found == {"b": ProducerIdAndEpoch(7, 9), "a": ProducerIdAndEpoch(7, 9)}
    assert list(found) == ["b", "a"]
    *first, last = cluster.requests(InitProducerIdRequest)
    assert len(first) == 6
    assert {(r.producer_id, r.producer_epoch) for r in (*first, last)} == {(-1, -1)}
    # The coordinator uses it for its own write: the call's timeout, not 1 ms.
    assert all(19_000 < r.transaction_timeout_ms <= 20_000 for r in first)
    assert 59_000 < last.transaction_timeout_ms <= 60_000
    nodes = {
        (entry.node_id, entry.request.transactional_id)
        for entry in cluster.logged(ApiKey.INIT_PRODUCER_ID)
    }
    assert nodes == {(1, "a"), (2, "b")}


async def test_a_coordinator_that_never_gets_done(cluster: FakeCluster) -> None:
    cluster.on(ApiKey.INIT_PRODUCER_ID, identity(code=E.CONCURRENT_TRANSACTIONS))
    async with admin_of(cluster) as admin:
        with pytest.raises(RequestTimeout, match=r"'a'.*CONCURRENT_TRANSACTIONS"):
            await admin.fence_producers(["a"], timeout=3)
        found = await settled(admin.fence_producers(["a"], timeout=1))
    assert isinstance(found.failed["a"], RequestTimeout)


async def test_an_id_that_may_not_be_written_with(cluster: FakeCluster) -> None:
    refused = identity(code=E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    cluster.on(ApiKey.INIT_PRODUCER_ID, refused)
    async with admin_of(cluster) as admin:
        with pytest.raises(AuthorizationError, match="'a'"):
            await admin.force_terminate_transaction("a")


# ---- cancellation --------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda admin: admin.list_transactions(),
        lambda admin: admin.describe_transactions(["a", "b"]),
        lambda admin: admin.describe_producers([T0, T1]),
        lambda admin: admin.find_hanging_transactions(),
        lambda admin: admin.abort_transaction(T0, 5),
        lambda admin: admin.fence_producers(["a", "b"]),
    ],
    ids=["list", "describe", "producers", "find", "abort", "fence"],
)
async def test_a_call_that_is_cancelled_leaves_nothing_running(
    cluster: FakeCluster,
    world: Transactional,
    call: Callable[[Admin], Coroutine[object, object, object]],
) -> None:
    world.add("a", 8, "Ongoing", [T1])
    world.add("b", 9, "Empty")
    cluster.on(ApiKey.INIT_PRODUCER_ID, identity(9))
    async with admin_of(cluster) as admin:
        # Connections stay: to open them is a matter of the client.
        await admin.list_transactions()
        await anyio.sleep(1)
        before = asyncio.all_tasks()
        turns, is_done = 0, False
        while not is_done:
            world.producers.clear()
            world.open(T0)
            task = asyncio.create_task(call(admin))
            for _ in range(turns):
                await asyncio.sleep(0)
            is_done = task.done()
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled() is not is_done
            assert asyncio.all_tasks() == before
            await anyio.sleep(1)
            turns += 1
        assert turns > 3
