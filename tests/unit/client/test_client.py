"""From the constructor to the end: start, close, crashes, misuse."""

import asyncio
import os

import anyio
import pytest

from kafkaio._client import ALL_TOPICS, Client, CoordinatorKind
from kafkaio._net.connection_class import ConnectionClass
from kafkaio.errors import (
    AuthenticationError,
    BrokerNotAvailable,
    ClosedError,
    ConfigurationError,
    ConnectionLost,
    InternalError,
    RequestTimeout,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol.messages.list_groups import ListGroupsRequest
from tests.fakes.broker import HANG, FakeCluster
from tests.unit.client.support import client_of
from tests.virtual_loop import VirtualClockLoop


async def test_start_learns_the_cluster(cluster: FakeCluster) -> None:
    async with client_of(cluster) as client:
        assert set(client.cluster.brokers) == {0, 1, 2}
        assert client.cluster.cluster_id == "fake-cluster"
        assert client.cluster.topics == frozenset()
        stats = client.statistics()
        assert (stats.state, stats.brokers, stats.view_number) == ("running", 3, 1)
        name = client.config.client_id
        assert repr(client).startswith(f"<Client {name!r} running | fake-cluster, 3 b")
        assert "\n" not in repr(client)
    assert client.statistics().state == "closed"
    assert not client.statistics().connections


def test_the_constructor_needs_no_loop() -> None:
    client = Client(["a:1", "b:2"], client_id="me", request_timeout_ms=5)
    assert client.config.bootstrap_servers == (("a", 1), ("b", 2))
    assert " new " in repr(client)
    other = Client.from_properties({"bootstrap.servers": "a:1", "client.id": "you"})
    assert other.config.client_id == "you"
    with pytest.raises(ConfigurationError, match="client_id"):
        Client(clientid="x")  # type: ignore[call-arg]  # the point of the test


async def test_an_observer_hears_of_a_blocked_loop(cluster: FakeCluster) -> None:
    class Heard:
        def __init__(self) -> None:
            self.blocked: list[float] = []

        def loop_blocked(self, seconds: float, stack: str) -> None:
            self.blocked.append(seconds)

    heard = Heard()
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualClockLoop)
    async with client_of(cluster, heard):
        await anyio.sleep(1)
        assert not heard.blocked
        loop.pass_time(3.0)  # as code does that blocks
        await anyio.sleep(1)
        assert heard.blocked == [pytest.approx(3.0, abs=0.11)]
    loop.pass_time(3.0)
    await anyio.sleep(1)
    assert len(heard.blocked) == 1


async def test_starting_without_a_cluster_names_servers_steps_and_causes(
    cluster: FakeCluster,
) -> None:
    for node in cluster.nodes:
        cluster.stop(node)
    client = client_of(cluster)
    loop = asyncio.get_running_loop()
    begin = loop.time()
    with pytest.raises(BrokerNotAvailable) as raised:
        await client.start(timeout=5)
    assert loop.time() - begin == pytest.approx(5, abs=0.1)
    for server in ("broker0:9092", "broker1:9093", "broker2:9094"):
        assert f"{server}: connect: connection refused" in str(raised.value)
    assert isinstance(raised.value.__cause__, BrokerNotAvailable)
    assert client.statistics().state == "closed"


async def test_starting_goes_on_until_a_server_is_there(cluster: FakeCluster) -> None:
    for node in cluster.nodes:
        cluster.stop(node)
    client = client_of(cluster)
    async with anyio.create_task_group() as group:
        group.start_soon(client.start)
        await anyio.sleep(20)
        cluster.start(1)
    assert set(client.cluster.brokers) == {1}
    await client.close()


async def test_starting_when_servers_take_no_notice(cluster: FakeCluster) -> None:
    cluster.on(ApiKey.API_VERSIONS, HANG)
    with pytest.raises(BrokerNotAvailable, match="waits for a connection to broker"):
        await client_of(cluster).start(timeout=3)


async def test_a_refused_identity_is_told_at_once(cluster: FakeCluster) -> None:
    async def dial(*_: object) -> None:
        raise AuthenticationError("broker: TLS handshake: not you")

    client = Client.from_config(client_of(cluster).config, dial=dial)
    begin = asyncio.get_running_loop().time()
    with pytest.raises(AuthenticationError, match="not you"):
        await client.start()
    assert asyncio.get_running_loop().time() - begin < 5


async def test_a_cancelled_start_leaves_nothing(cluster: FakeCluster) -> None:
    cluster.on(ApiKey.METADATA, HANG)
    client = client_of(cluster)
    with anyio.move_on_after(1):
        await client.start()
    assert client.statistics().state == "closed"
    with pytest.raises(ClosedError):
        await client.start()


async def test_closing_in_no_time_leaves_no_task_behind(cluster: FakeCluster) -> None:
    client = client_of(cluster)
    await client.start()
    cluster.on(ApiKey.API_VERSIONS, HANG)
    async with anyio.create_task_group() as group:

        async def connect() -> None:
            with pytest.raises(ClosedError):
                await client._cluster.connection(2, ConnectionClass.FETCH)

        group.start_soon(connect)
        await anyio.sleep(1)
        await client.close(timeout=0)
    await anyio.sleep(1)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_closing_while_starting(cluster: FakeCluster) -> None:
    cluster.on(ApiKey.METADATA, HANG)
    client = client_of(cluster)
    async with anyio.create_task_group() as group:

        async def start() -> None:
            with pytest.raises(ClosedError):
                await client.start()

        group.start_soon(start)
        await cluster.received(ApiKey.METADATA)
        with anyio.fail_after(0.1):
            await client.close()


async def test_misuse(cluster: FakeCluster) -> None:
    client = client_of(cluster)
    with pytest.raises(ClosedError, match="not started"):
        await client.request(ListGroupsRequest())
    with pytest.raises(ClosedError):
        client._cluster.start_soon(asyncio.Event().wait, "x")  # type: ignore[arg-type]
    await client.close()
    await client.close()
    with pytest.raises(ClosedError, match="cannot be started"):
        await client.start()
    async with client_of(cluster) as client:
        with pytest.raises(ClosedError, match="cannot be started"):
            await client.start()
    for use in (
        client.request(ListGroupsRequest()),
        client._cluster.wait_for_update(),
        client._cluster.wait_for_topics(["t"]),
        client._cluster.coordinator(CoordinatorKind.GROUP, "g"),
        client._cluster.connection(0, ConnectionClass.SHARED),
    ):
        with pytest.raises(ClosedError, match="is closed"):
            await use


async def test_closing_fails_whoever_waits(cluster: FakeCluster) -> None:
    cluster.on(ApiKey.LIST_GROUPS, HANG)
    cluster.on(ApiKey.FIND_COORDINATOR, HANG)
    client = client_of(cluster)
    await client.start()

    async def fails(use) -> None:
        with pytest.raises(ClosedError):
            await use

    async with anyio.create_task_group() as group:
        group.start_soon(fails, client.request(ListGroupsRequest()))
        group.start_soon(fails, client._cluster.coordinator(CoordinatorKind.GROUP, "g"))
        await cluster.received(ApiKey.LIST_GROUPS)
        await cluster.received(ApiKey.FIND_COORDINATOR)
        # Last: a broker that hangs on this answers nothing behind it.
        cluster.on(ApiKey.METADATA, HANG)
        group.start_soon(fails, client._cluster.wait_for_update())
        group.start_soon(fails, client._cluster.wait_for_topics(["?"]))
        await cluster.received(ApiKey.METADATA, 2)
        with anyio.fail_after(0.1):
            await client.close()


async def test_closing_twice_at_once(cluster: FakeCluster) -> None:
    client = client_of(cluster)
    await client.start()
    async with anyio.create_task_group() as group:
        group.start_soon(client.close)
        group.start_soon(client.close)


async def test_closing_does_not_wait_for_ever(cluster: FakeCluster) -> None:
    stubborn = asyncio.Event()

    async def child() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await stubborn.wait()

    client = client_of(cluster)
    await client.start()
    client._cluster.start_soon(child, "stubborn")
    await anyio.sleep(0.1)
    begin = asyncio.get_running_loop().time()
    await client.close(timeout=3)
    assert asyncio.get_running_loop().time() - begin == pytest.approx(3)
    stubborn.set()
    await client.close()


async def test_a_crash_fails_waiters_with_its_cause(cluster: FakeCluster) -> None:
    cluster.on(ApiKey.LIST_GROUPS, HANG)
    client = client_of(cluster)
    await client.start()
    await anyio.sleep(1)  # else the two requests share the new connection
    cluster.on(ApiKey.METADATA, HANG)
    heard: list[BaseException] = []
    client._cluster.add_crash_listener(heard.append)
    client._cluster.add_crash_listener(heard.append)()
    bug = ZeroDivisionError("a bug")

    async def crash() -> None:
        raise bug

    async def fails(use) -> None:
        with pytest.raises(InternalError, match="ZeroDivisionError: a bug") as raised:
            await use
        assert raised.value.__cause__ is bug

    begin = asyncio.get_running_loop().time()
    async with anyio.create_task_group() as group:
        group.start_soon(fails, client._cluster.wait_for_update())
        group.start_soon(fails, client._cluster.wait_for_topics(["?"]))
        group.start_soon(fails, client.request(ListGroupsRequest()))
        await cluster.received(ApiKey.LIST_GROUPS)
        await cluster.received(ApiKey.METADATA, 2)
        client._cluster.start_soon(crash, "crash")
    assert asyncio.get_running_loop().time() - begin < 1
    assert heard == [bug]
    assert client.statistics().state == "failed"
    with pytest.raises(InternalError):
        await client.request(ListGroupsRequest())
    await client.close()
    assert client.statistics().state == "closed"
    with pytest.raises(InternalError):
        await client.request(ListGroupsRequest())


async def test_cancelled_from_outside(cluster: FakeCluster) -> None:
    client = client_of(cluster)
    await client.start()
    name = client.config.client_id
    host = next(t for t in asyncio.all_tasks() if t.get_name() == name)
    host.cancel()
    with pytest.raises(ClosedError, match="cancelled from outside"):
        await client._cluster.wait_for_update()
    await client.close()


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
async def test_a_fork_is_noticed(cluster: FakeCluster) -> None:
    async with client_of(cluster) as client:
        child = os.fork()
        if not child:
            os._exit(_uses_in_child(client))
        assert _exit_code(child) == 0
        await client._cluster.wait_for_topics([])  # in here it goes on


def _exit_code(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _uses_in_child(client: Client) -> int:
    """How many uses were not refused."""
    wrong = 0
    for use in (lambda: client.request(ListGroupsRequest()), client.close):
        try:
            use().send(None)
        except ClosedError as error:
            wrong += "after fork" not in str(error)
        except BaseException:  # noqa: BLE001  (nothing may get past the fork)
            wrong += 1
        else:
            wrong += 1
    return wrong


def test_another_loop_is_noticed() -> None:
    async def start() -> tuple[FakeCluster, Client]:
        cluster = FakeCluster()
        client = client_of(cluster)
        await client.start()
        return cluster, client

    async def finish(cluster: FakeCluster, client: Client) -> None:
        await client.close()
        await cluster.aclose()

    with asyncio.Runner() as first, asyncio.Runner() as second:
        cluster, client = first.run(start())
        with pytest.raises(ClosedError, match="another event loop"):
            second.run(client.request(ListGroupsRequest()))
        with pytest.raises(ClosedError, match="another event loop"):
            second.run(client.close())
        first.run(finish(cluster, client))


async def test_children_end_with_the_client(cluster: FakeCluster) -> None:
    ended = asyncio.Event()

    async def child() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    async with client_of(cluster) as client:
        client._cluster.start_soon(child, "child")
        await anyio.lowlevel.checkpoint()
    assert ended.is_set()


async def test_a_lost_connection_is_told(cluster: FakeCluster) -> None:
    class Observer:
        def __init__(self) -> None:
            self.lost: list[BaseException | None] = []
            self.updates = 0

        def connection_lost(
            self, node_id: int, connection_class: str, cause: BaseException | None
        ) -> None:
            self.lost.append(cause)

        def metadata_updated(self, brokers: int, topics: int) -> None:
            self.updates += 1

    observer = Observer()
    async with client_of(cluster, observer) as client:
        client._cluster.watch_topics(client, ALL_TOPICS)
        await client._cluster.wait_for_topics(["t"])
        cluster.drop_connections()
        await client._cluster.wait_for_update()
        assert any(isinstance(c, ConnectionLost) for c in observer.lost if c) or any(
            isinstance(c, ConnectionResetError) for c in observer.lost if c
        )
        assert observer.updates >= 3
    with pytest.raises(ClosedError):
        await client._cluster.wait_for_update()


async def test_waiting_for_an_update_in_vain(cluster: FakeCluster) -> None:
    async with client_of(cluster) as client:
        with pytest.raises(RequestTimeout, match=r"no metadata in time$"):
            await client._cluster.wait_for_update(timeout=1)
        for node in cluster.nodes:
            cluster.stop(node)
        client._cluster.request_refresh()
        with pytest.raises(RequestTimeout, match="connection refused") as raised:
            await client._cluster.wait_for_update(timeout=5)
        assert isinstance(raised.value.__cause__, BrokerNotAvailable)


async def test_the_level_of_a_feature_rises_with_a_new_connection(
    cluster: FakeCluster,
) -> None:
    name = "transaction.version"
    cluster.features, cluster.features_epoch = {name: 1}, 4
    async with client_of(cluster) as client:
        inside = client._cluster
        assert (inside.features.level(name), inside.features.epoch) == (1, 4)
        assert inside.features.level("no.such.feature") == 0
        cluster.features, cluster.features_epoch = {name: 2}, 5
        await inside.connection(1, ConnectionClass.FETCH)
        assert (inside.features.level(name), inside.features.epoch) == (2, 5)
        # A broker that lags behind, and one that does not know them.
        cluster.features, cluster.features_epoch = {name: 1}, 4
        await inside.connection(2, ConnectionClass.FETCH)
        cluster.features, cluster.features_epoch = {}, -1
        await inside.connection(0, ConnectionClass.PRODUCE)
        assert (inside.features.level(name), inside.features.epoch) == (2, 5)


async def test_features_of_a_cluster_that_has_none(cluster: FakeCluster) -> None:
    async with client_of(cluster) as client:
        assert client._cluster.features.level("transaction.version") == 0
        assert client._cluster.features.epoch == -1
