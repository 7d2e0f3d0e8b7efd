"""Requests to coordinators: sent once, or the same one until it is answered."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from kafkaio import Broker as BrokerNode
from kafkaio._client import Client, CoordinatorKind
from kafkaio._client.cluster import Cluster
from kafkaio._client.coordination import CoordinatorRpc
from kafkaio._client.retry import Attempts
from kafkaio._config import ClientConfig
from kafkaio._net.connection_class import ConnectionClass
from kafkaio.errors import (
    AuthorizationError,
    BrokerError,
    ConnectionLost,
    RequestTimeout,
    UnsupportedVersion,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.protocol.messages.describe_cluster import DescribeClusterRequest
from kafkaio.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kafkaio.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kafkaio.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkaio.protocol.messages.list_groups import ListGroupsRequest
from kafkaio.testing import Broker, drop, throttle
from tests.fakes.broker import DISCONNECT, HANG, FakeCluster
from tests.unit.client.support import client_of
from tests.unit.consumer.group_fakes import virtual

TRANSACTION, GROUP = CoordinatorKind.TRANSACTION, CoordinatorKind.GROUP
REQUEST = EndTxnRequest(
    transactional_id="t", producer_id=7, producer_epoch=3, committed=True
)


def now() -> float:
    return asyncio.get_running_loop().time()


def code(answer: EndTxnResponse) -> int:
    return answer.error_code


def answer(number: int = 0) -> EndTxnResponse:
    return EndTxnResponse(error_code=number)


@asynccontextmanager
async def started(cluster: FakeCluster, **options: object) -> AsyncIterator[Cluster]:
    """A client's cluster; transactional id "t" is coordinated by node 1."""
    cluster.move_coordinator("t", 1, TRANSACTION)
    async with client_of(cluster, **options) as client:
        yield client._cluster


def attempts_of(cluster: Cluster, seconds: float = 10.0) -> Attempts:
    return Attempts("end the transaction", cluster.retry_policy, seconds)


def nodes_of(cluster: FakeCluster) -> list[int]:
    return [entry.node_id for entry in cluster.logged(ApiKey.END_TXN)]


@pytest.mark.parametrize("final", [E.NONE, E.INVALID_TXN_STATE, E.PRODUCER_FENCED])
async def test_an_answer_that_no_repetition_changes_is_returned(
    cluster: FakeCluster, final: E
) -> None:
    cluster.on(ApiKey.END_TXN, answer(final))
    cluster.on(ApiKey.END_TXN, answer(E.COORDINATOR_LOAD_IN_PROGRESS), times=2)
    async with started(cluster) as client:
        rpc = CoordinatorRpc(client, TRANSACTION, "t")
        reply = await rpc.repeat(REQUEST, attempts_of(client), timeout=5, code=code)
        assert reply.error_code == final
        assert rpc.node_id == 1
    sent = cluster.requests(EndTxnRequest)
    assert len(sent) == 3
    assert all(request == REQUEST for request in sent)
    assert len(cluster.requests(FindCoordinatorRequest)) == 1


@pytest.mark.parametrize("number", [E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE])
async def test_a_coordinator_that_moved_is_looked_up(
    cluster: FakeCluster, number: E
) -> None:
    cluster.on(ApiKey.END_TXN, answer())
    cluster.on(ApiKey.END_TXN, answer(number), node=1)
    async with started(cluster) as client:
        rpc = CoordinatorRpc(client, TRANSACTION, "t")
        assert await client.coordinator(TRANSACTION, "t") == 1
        cluster.move_coordinator("t", 2, TRANSACTION)
        await rpc.repeat(REQUEST, attempts_of(client), timeout=5, code=code)
        assert rpc.node_id == 2
    assert nodes_of(cluster) == [1, 2]


async def test_a_coordinator_that_hangs_up_is_forgotten(cluster: FakeCluster) -> None:
    cluster.on(ApiKey.END_TXN, answer())
    cluster.on(ApiKey.END_TXN, DISCONNECT, node=1)
    async with started(cluster) as client:
        rpc = CoordinatorRpc(client, TRANSACTION, "t")
        await client.coordinator(TRANSACTION, "t")
        cluster.move_coordinator("t", 2, TRANSACTION)
        await rpc.repeat(REQUEST, attempts_of(client), timeout=5, code=code)
    assert nodes_of(cluster) == [1, 2]


async def test_a_coordinator_that_is_silent_is_forgotten(cluster: FakeCluster) -> None:
    cluster.on(ApiKey.END_TXN, answer())
    cluster.on(ApiKey.END_TXN, HANG, node=1)
    async with started(cluster) as client:
        rpc = CoordinatorRpc(client, TRANSACTION, "t")
        await client.coordinator(TRANSACTION, "t")
        cluster.move_coordinator("t", 2, TRANSACTION)
        begun = now()
        await rpc.repeat(REQUEST, attempts_of(client), timeout=3, code=code)
        assert 3 <= now() - begun < 4
    assert nodes_of(cluster) == [1, 2]


async def test_a_code_that_never_passes_ends_with_an_error_that_names_all(
    cluster: FakeCluster,
) -> None:
    cluster.on(ApiKey.END_TXN, answer(E.CONCURRENT_TRANSACTIONS))
    async with started(cluster) as client:
        rpc = CoordinatorRpc(client, TRANSACTION, "t")
        begun = now()
        with pytest.raises(RequestTimeout) as raised:
            await rpc.repeat(
                REQUEST,
                attempts_of(client, 1.0),
                timeout=5,
                code=code,
                pace=lambda number: 0.02 if number == 51 else None,
            )
        assert now() - begun == pytest.approx(1.0, abs=0.03)
    assert str(raised.value).startswith(
        "transactional id 't' (coordinator: broker 1): end the transaction did not "
        "succeed within 1 s; the last failure: "
    )
    cause = raised.value.__cause__
    assert isinstance(cause, BrokerError)
    assert cause.code == E.CONCURRENT_TRANSACTIONS
    assert 40 <= len(nodes_of(cluster)) <= 50


async def test_the_pace_is_for_its_codes_and_does_not_grow_the_back_off(
    cluster: FakeCluster,
) -> None:
    at: list[float] = []

    def reply(*_: object) -> EndTxnResponse:
        at.append(now())
        if len(at) <= 10:
            return answer(E.CONCURRENT_TRANSACTIONS)
        return answer(E.COORDINATOR_LOAD_IN_PROGRESS if len(at) == 11 else 0)

    cluster.on(ApiKey.END_TXN, reply)
    async with started(cluster, retry_backoff_ms=100) as client:
        rpc = CoordinatorRpc(client, TRANSACTION, "t")
        await rpc.repeat(
            REQUEST,
            attempts_of(client),
            timeout=5,
            code=code,
            pace=lambda number: 0.02 if number == 51 else None,
        )
    assert at[10] - at[0] == pytest.approx(0.2, abs=0.02)
    assert at[11] - at[10] == pytest.approx(0.1, abs=0.021)


async def test_time_runs_out_before_any_failure(cluster: FakeCluster) -> None:
    cluster.on(ApiKey.END_TXN, HANG)
    async with started(cluster) as client:
        rpc = CoordinatorRpc(client, TRANSACTION, "t")
        with pytest.raises(RequestTimeout, match=r"broker 1\).* waits for the answer"):
            await rpc.repeat(REQUEST, attempts_of(client, 2), timeout=5, code=code)


async def test_time_runs_out_without_a_coordinator(cluster: FakeCluster) -> None:
    async with started(cluster) as client:
        cluster.move_coordinator("t", -1, TRANSACTION)
        rpc = CoordinatorRpc(client, TRANSACTION, "t")
        with pytest.raises(RequestTimeout) as raised:
            await rpc.repeat(REQUEST, attempts_of(client, 2), timeout=1, code=code)
    assert "(coordinator: unknown)" in str(raised.value)
    assert raised.value.__cause__ is not None


async def test_an_error_that_the_caller_wants_is_raised_as_it_is(
    cluster: FakeCluster,
) -> None:
    cluster.on(ApiKey.END_TXN, answer(E.CONCURRENT_TRANSACTIONS))
    async with started(cluster) as client:
        rpc = CoordinatorRpc(client, TRANSACTION, "t")
        attempts = Attempts("x", client.retry_policy, 1, surfaced=(BrokerError,))
        with pytest.raises(BrokerError, match="CONCURRENT_TRANSACTIONS"):
            await rpc.repeat(REQUEST, attempts, timeout=5, code=code)


async def test_a_refused_look_up_is_raised_at_once(cluster: FakeCluster) -> None:
    def refuse(*_: object) -> FindCoordinatorResponse:
        number = E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        refused = Coordinator(key="t", error_code=number)
        return FindCoordinatorResponse(coordinators=[refused])

    cluster.on(ApiKey.FIND_COORDINATOR, refuse)
    sent: list[bool] = []
    async with started(cluster) as client:
        rpc = CoordinatorRpc(client, TRANSACTION, "t")
        with pytest.raises(AuthorizationError, match="'t'"):
            await rpc.repeat(
                REQUEST,
                attempts_of(client),
                timeout=5,
                code=code,
                on_sent=lambda: sent.append(True),
            )
    assert not sent


async def test_a_version_that_the_coordinator_lacks(cluster: FakeCluster) -> None:
    cluster.limit_version(ApiKey.END_TXN, 4)
    sent: list[bool] = []
    async with started(cluster) as client:
        rpc = CoordinatorRpc(client, TRANSACTION, "t")
        with pytest.raises(UnsupportedVersion, match=r"'t'.* 5; .*broker 1, .* 4$"):
            await rpc.repeat(
                REQUEST,
                attempts_of(client),
                timeout=5,
                code=code,
                min_version=5,
                on_sent=lambda: sent.append(True),
            )
    assert not sent
    assert not nodes_of(cluster)


async def test_the_version_stays_in_its_limits(cluster: FakeCluster) -> None:
    cluster.on(ApiKey.END_TXN, answer())
    async with started(cluster) as client:
        rpc = CoordinatorRpc(client, TRANSACTION, "t")
        await rpc.repeat(
            REQUEST, attempts_of(client), timeout=5, code=code, max_version=3
        )
    assert [entry.version for entry in cluster.logged(ApiKey.END_TXN)] == [3]


async def test_the_caller_hears_of_each_time_it_was_sent(cluster: FakeCluster) -> None:
    cluster.on(ApiKey.END_TXN, DISCONNECT, times=2)
    cluster.on(ApiKey.END_TXN, HANG)
    cluster.on(ApiKey.END_TXN, DISCONNECT, times=2)
    sent: list[float] = []
    async with started(cluster) as client:
        rpc = CoordinatorRpc(client, TRANSACTION, "t")
        with pytest.raises(RequestTimeout):
            await rpc.repeat(
                REQUEST,
                attempts_of(client, 4),
                timeout=10,
                code=code,
                on_sent=lambda: sent.append(now()),
            )
    assert len(sent) == len(nodes_of(cluster)) == 3


async def test_what_a_closed_connection_refuses_was_not_sent(
    cluster: FakeCluster,
) -> None:
    sent: list[bool] = []
    async with started(cluster) as client:
        rpc = CoordinatorRpc(client, TRANSACTION, "t")
        connection = await rpc.connection(ConnectionClass.SHARED, now() + 5)
        cluster.drop_connections(1)
        await anyio.sleep(1)
        with pytest.raises(ConnectionLost):
            await rpc.call_on(
                connection, REQUEST, timeout=5, on_sent=lambda: sent.append(True)
            )
    assert not sent


async def test_each_call_ends_at_its_own_deadline(cluster: FakeCluster) -> None:
    cluster.on(ApiKey.END_TXN, HANG)
    ended: list[float] = []
    async with started(cluster) as client:
        rpc = CoordinatorRpc(client, TRANSACTION, "t")
        connection = await rpc.connection(ConnectionClass.SHARED, now() + 5)
        began = now()

        async def call(seconds: float) -> None:
            with pytest.raises(RequestTimeout, match="has not answered EndTxn"):
                await rpc.call_on(
                    connection, REQUEST, timeout=50, deadline=began + seconds
                )
            ended.append(round(now() - began, 2))

        # The timer is set, set for an earlier one, and fires for each in turn.
        await asyncio.gather(call(3), call(1), call(2))
        assert ended == [1, 2, 3]
        # And it is set anew by the next call after all have ended.
        await call(4)
    assert ended == [1, 2, 3, 4]


async def test_one_who_is_cancelled_knows_that_it_was_sent(
    cluster: FakeCluster,
) -> None:
    cluster.on(ApiKey.END_TXN, HANG)
    sent: list[bool] = []
    async with started(cluster) as client:
        rpc = CoordinatorRpc(client, TRANSACTION, "t")
        with anyio.move_on_after(1) as scope:
            await rpc.repeat(
                REQUEST,
                attempts_of(client),
                timeout=5,
                code=code,
                on_sent=lambda: sent.append(True),
            )
        assert scope.cancelled_caught
    assert sent == [True]


@pytest.mark.parametrize("kind", [GROUP, TRANSACTION])
async def test_a_broken_connection_forgets_the_coordinator(
    cluster: FakeCluster, kind: CoordinatorKind
) -> None:
    cluster.move_coordinator("t", 1, kind)
    async with client_of(cluster) as client:
        rpc = CoordinatorRpc(client._cluster, kind, "t")
        await rpc.connection(ConnectionClass.SHARED, now() + 5)
        assert client.statistics().coordinators == 1
        cluster.drop_connections(1)
        await anyio.sleep(0.1)
        assert client.statistics().coordinators == 0
        cluster.move_coordinator("t", 2, kind)
        await rpc.connection(ConnectionClass.SHARED, now() + 5)
        assert rpc.node_id == 2


@pytest.mark.parametrize("kind", [GROUP, TRANSACTION])
async def test_metadata_without_the_broker_forgets_the_coordinator(
    cluster: FakeCluster, kind: CoordinatorKind
) -> None:
    cluster.move_coordinator("t", 1, kind)
    async with client_of(cluster) as client:
        rpc = CoordinatorRpc(client._cluster, kind, "t")
        # Found, and never connected to: metadata alone can tell that it is gone.
        assert await client._cluster.coordinator(kind, "t") == 1
        cluster.stop(1)
        cluster.move_coordinator("t", 2, kind)
        client._cluster.request_refresh()
        await client._cluster.wait_for_update()
        assert client.statistics().coordinators == 0
        await rpc.connection(ConnectionClass.SHARED, now() + 5)
        assert rpc.node_id == 2


@pytest.mark.parametrize("is_vital", [False, True])
async def test_one_request_that_gets_no_answer(
    cluster: FakeCluster, *, is_vital: bool
) -> None:
    cluster.move_coordinator("g", 1, GROUP)
    cluster.on(ApiKey.HEARTBEAT, HANG, times=1)
    cluster.on(ApiKey.HEARTBEAT, HeartbeatResponse(), times=1)
    own = ConnectionClass.COORDINATOR.of(object())
    async with client_of(cluster) as client:
        rpc = CoordinatorRpc(client._cluster, GROUP, "g")
        await rpc.connection(ConnectionClass.SHARED, now() + 5)
        await rpc.call(HeartbeatRequest(), own, timeout=2)
        assert rpc.ready(own) is not None
        with pytest.raises(RequestTimeout):
            await rpc.call(HeartbeatRequest(), own, timeout=2, is_vital=is_vital)
        assert rpc.node_id is None
        assert rpc.ready(own) is None
        shared = client._cluster.ready_connection(1, ConnectionClass.SHARED)
        assert (shared is None) is is_vital


async def test_a_coordinator_that_cannot_be_connected_to(cluster: FakeCluster) -> None:
    cluster.move_coordinator("g", 1, GROUP)
    servers = cluster.bootstrap_servers[:1]
    async with client_of(cluster, bootstrap_servers=servers) as client:
        rpc = CoordinatorRpc(client._cluster, GROUP, "g")
        rpc.forget()
        rpc.silent(RequestTimeout("nobody is known"))
        cluster.on(ApiKey.API_VERSIONS, HANG, node=1)
        with pytest.raises(RequestTimeout) as raised:
            await rpc.connection(ConnectionClass.SHARED, now() + 2)
        assert "group 'g': no connection to its coordinator 1" in str(raised.value)


@virtual
async def test_a_look_up_asks_another_broker_than_the_silent_one() -> None:
    async with Broker(nodes=3, memory_transport=True) as broker:
        config = ClientConfig.of(broker.bootstrap_servers, {})
        async with Client.from_config(config, dial=broker.dial) as client:
            # Two of the brokers throttle the client for a while, so that the third is
            # the best to ask; and that one does not answer.
            broker.faults.on("ListGroups", throttle(5.0))
            for node in (1, 2):
                await client.request(ListGroupsRequest(), to=BrokerNode(node))
            await client.request(DescribeClusterRequest(), to=BrokerNode(0))
            broker.faults.on("FindCoordinator", drop(), node=0)
            begun = now()
            found = await client._cluster.coordinator(GROUP, "g")
            assert found == broker.control.coordinator("g")
            assert now() - begun < 7
