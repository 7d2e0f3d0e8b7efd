"""The view of the cluster: when it is fetched, what it says, where it starts over."""

import asyncio
import socket
from collections.abc import Collection
from dataclasses import replace

import anyio
import pytest

from kafkaio._client import ALL_TOPICS, Client, ClusterView
from kafkaio._config import ClientConfig
from kafkaio._net.transport import Dial, DialOptions, FrameSinkPort, TransportPort
from kafkaio.errors import (
    AuthorizationError,
    BrokerError,
    BrokerNotAvailable,
    InvalidTopic,
    RequestTimeout,
    UnknownTopicOrPartition,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kafkaio.protocol.messages.produce import NodeEndpoint
from kafkaio.types import Broker, TopicPartition
from tests.fakes.broker import HANG, FakeCluster, FakeNode, FakePartition
from tests.unit.client.support import client_of

T0 = TopicPartition("t", 0)


def now() -> float:
    return asyncio.get_running_loop().time()


def asked(cluster: FakeCluster) -> list[set[str | None] | None]:
    """The topics that each Metadata request was about."""
    return [
        None if r.topics is None else {t.name for t in r.topics}
        for r in cluster.requests(MetadataRequest)
    ]


async def test_a_new_topic_is_fetched_at_once_and_alone(cluster: FakeCluster) -> None:
    cluster.add_topic("u", 2)
    async with client_of(cluster) as client:
        client._cluster.watch_topics("me", ["t"])
        view = await client._cluster.wait_for_topics(["t"])
        assert view.partition_count("t") == 6
        client._cluster.watch_topics("me", ["t", "u"])
        await client._cluster.wait_for_topics(["u"])
        assert now() < 0.05
        assert asked(cluster) == [set(), {"t"}, {"u"}]
        assert client.cluster.topics == {"t", "u"}
        client._cluster.watch_topics("me", ["u"])
        client._cluster.request_refresh()
        await client._cluster.wait_for_update()
        # "t" was waited for, so it stays a while.
        assert client.cluster.topics == {"t", "u"}


async def test_metadata_ages(cluster: FakeCluster) -> None:
    async with client_of(cluster, metadata_max_age_ms=60_000) as client:
        await anyio.sleep(200)
        assert len(asked(cluster)) == 4
        assert client.cluster.number == 4


async def test_all_topics(cluster: FakeCluster) -> None:
    cluster.add_topic("u")
    async with client_of(cluster) as client:
        client._cluster.watch_topics("me", ALL_TOPICS)
        await client._cluster.wait_for_update()
        assert client.cluster.topics == {"t", "u"}
        assert asked(cluster) == [set(), None]
        cluster.add_topic("v")
        client._cluster.request_refresh()
        await client._cluster.wait_for_update()
        assert "v" in client.cluster.topics


async def test_a_refresh_at_once(cluster: FakeCluster) -> None:
    async with client_of(cluster) as client:
        client._cluster.watch_topics("me", ALL_TOPICS)
        assert await client._cluster.refresh(1.0)
        assert await client._cluster.refresh(1.0)
        count = len(asked(cluster))
        assert count == 2  # the second one was as good as the first
        await anyio.sleep(5)
        cluster.add_topic("v")
        start = now()
        assert await client._cluster.refresh(1.0)
        assert "v" in client.cluster.topics
        assert now() - start < 0.1
        await anyio.sleep(5)
        cluster.on(ApiKey.METADATA, lambda *_: HANG)
        assert not await client._cluster.refresh(2.0)
        assert now() - start == pytest.approx(5 + 2, abs=0.2)
        cluster.reset(ApiKey.METADATA)
        for node in cluster.nodes:
            cluster.stop(node)
        stopped = now()
        assert not await client._cluster.refresh(60.0)
        assert now() - stopped < 10  # the first attempt that fails is the answer


async def test_refreshes_have_a_back_off_that_grows(cluster: FakeCluster) -> None:
    async with client_of(cluster) as client:
        begin = now()
        while now() < begin + 30:
            client._cluster.request_refresh()
            await anyio.sleep(0.01)
        assert 25 <= len(asked(cluster)) <= 45


async def test_an_unknown_topic_is_asked_for_until_it_is_there(
    cluster: FakeCluster,
) -> None:
    async with client_of(cluster) as client:
        with pytest.raises(UnknownTopicOrPartition, match="'new'"):
            await client._cluster.wait_for_topics(["t", "new"], timeout=2)
        async with anyio.create_task_group() as group:
            group.start_soon(client._cluster.wait_for_topics, ["new"])
            await anyio.sleep(5)
            cluster.add_topic("new")
        assert client.cluster.partition_count("new") == 1


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (E.TOPIC_AUTHORIZATION_FAILED, AuthorizationError),
        (E.INVALID_TOPIC_EXCEPTION, InvalidTopic),
    ],
)
async def test_a_topic_that_never_will_be_described_is_told_at_once(
    cluster: FakeCluster, code: E, kind: type[BrokerError]
) -> None:
    cluster.topics["t"].error = code
    async with client_of(cluster) as client:
        for _ in range(2):
            with pytest.raises(kind, match="'t'"):
                await client._cluster.wait_for_topics(["t"])
            assert now() < 0.5
        cluster.topics["t"].error = 0
        assert (await client._cluster.wait_for_topics(["t"])).partition_count("t") == 6


async def test_a_bootstrap_server_without_an_address_is_told_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unknown(*_: object) -> asyncio.Future[None]:  # no thread: time is virtual
        found: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        found.set_exception(OSError(-2, "Name or service not known"))
        return found

    class Hears:
        def __init__(self) -> None:
            self.lost: list[tuple[float, str]] = []
            self.retried: list[tuple[float, str]] = []

        def connection_lost(
            self, node_id: int, connection_class: str, cause: BaseException | None
        ) -> None:
            self.lost.append((now(), str(cause)))

        def retrying(
            self, what: str, attempt: int, delay: float, cause: BaseException
        ) -> None:
            assert what == "metadata"
            self.retried.append((now(), str(cause)))

    monkeypatch.setattr("kafkaio._net.resolver.start_thread", unknown)
    heard, start = Hears(), now()
    config = ClientConfig(bootstrap_servers=(("no-such-host.invalid", 9092),))
    client = Client.from_config(config, observer=heard)
    with pytest.raises(BrokerNotAvailable, match="no-such-host"):
        await client.start(timeout=5)
    for told in heard.lost, heard.retried:
        at, why = told[0]
        assert at == start
        assert "no-such-host.invalid:9092: resolve name" in why
        assert "not known" in why


def unresolved(cluster: FakeCluster, hosts: Collection[str]) -> Dial:
    """A dial for which these hosts have no address."""

    async def dial(
        host: str, port: int, sink: FrameSinkPort, options: DialOptions
    ) -> TransportPort:
        if host in hosts:
            cause = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
            raise BrokerNotAvailable(f"{host}: resolve name: {cause}") from cause
        return await cluster.dial(host, port, sink, options)

    return dial


@pytest.mark.parametrize(("limit", "within"), [(0, ""), (2_000, " within 2 s")])
async def test_names_stay_unresolved_for_so_long(
    cluster: FakeCluster, limit: int, within: str
) -> None:
    config = ClientConfig(
        bootstrap_servers=(("nowhere", 1), ("neither", 1)),
        bootstrap_resolve_timeout_ms=limit,
    )
    dial = unresolved(cluster, {"nowhere", "neither"})
    client, began = Client.from_config(config, dial=dial), now()
    with pytest.raises(
        BrokerNotAvailable, match=f"could be resolved{within} .*neither"
    ):
        await client.start()
    assert now() - began == pytest.approx(limit / 1000, abs=0.01)


async def test_the_time_of_start_goes_before_names(cluster: FakeCluster) -> None:
    config = ClientConfig(
        bootstrap_servers=(("nowhere", 1),), bootstrap_resolve_timeout_ms=60_000
    )
    client = Client.from_config(config, dial=unresolved(cluster, {"nowhere"}))
    with pytest.raises(BrokerNotAvailable, match=r"did not answer: .*nowhere"):
        await client.start(timeout=3)
    assert now() == pytest.approx(3, abs=0.01)


async def test_one_name_that_is_resolved_is_enough(cluster: FakeCluster) -> None:
    cluster.stop(0)
    config = ClientConfig(
        bootstrap_servers=(("nowhere", 1), *cluster.bootstrap_servers[:1])
    )
    client = Client.from_config(config, dial=unresolved(cluster, {"nowhere"}))
    starting = asyncio.create_task(client.start())
    await anyio.sleep(5)
    cluster.start(0)
    await starting
    await client.close()


async def test_a_name_that_is_resolved_later(cluster: FakeCluster) -> None:
    hosts = {node.host for node in cluster.nodes.values()}
    config = ClientConfig(
        bootstrap_servers=cluster.bootstrap_servers,
        bootstrap_resolve_timeout_ms=10_000,
    )
    client = Client.from_config(config, dial=unresolved(cluster, hosts))
    starting = asyncio.create_task(client.start())
    await anyio.sleep(5)
    hosts.clear()
    await starting
    await client.close()


async def test_waiting_for_a_topic_without_brokers(cluster: FakeCluster) -> None:
    async with client_of(cluster) as client:
        for node in cluster.nodes:
            cluster.stop(node)
        with pytest.raises(Exception, match="connection refused"):
            await client._cluster.wait_for_topics(["t"], timeout=3)


@pytest.mark.parametrize("version", [0, 1, 3, 4, 8, 9, 12])
async def test_brokers_of_all_ages(cluster: FakeCluster, version: int) -> None:
    cluster.limit_version(ApiKey.METADATA, version)
    async with client_of(cluster, allow_auto_create_topics=False) as client:
        view = await client._cluster.wait_for_topics(["t"])
        assert view.leader(TopicPartition("t", 1)) == 1
        found = view.partition(T0)
        assert found is not None
        assert found.leader_epoch == (0 if version >= 9 else -1)
        assert (view.topic_id("t") is not None) == (version >= 10)
        creates = {
            r.allow_auto_topic_creation for r in cluster.requests(MetadataRequest)
        }
        assert creates == {version < 4}


async def test_listeners_hear_of_every_view(cluster: FakeCluster) -> None:
    heard: list[ClusterView] = []
    async with client_of(cluster) as client:
        remove = client._cluster.add_metadata_listener(heard.append)
        await client._cluster.wait_for_topics(["t"])
        assert heard == [client.cluster]
        remove()
        remove()
        client._cluster.request_refresh()
        await client._cluster.wait_for_update()
        assert len(heard) == 1


async def test_an_epoch_seen_elsewhere_asks_until_metadata_has_it(
    cluster: FakeCluster,
) -> None:
    async with client_of(cluster) as client:
        await client._cluster.wait_for_topics(["t"])
        assert not client._cluster.learned_epoch(T0, 0)
        assert not client._cluster.learned_epoch(TopicPartition("?", 0), 5)
        assert client._cluster.learned_epoch(T0, 1)
        await anyio.sleep(3)
        assert len(asked(cluster)) >= 4
        assert client.cluster.leader(T0) == 0
        cluster.move_leader("t", 0, 2)
        await anyio.sleep(2)
        assert client.cluster.leader(T0) == 2
        settled = len(asked(cluster))
        await anyio.sleep(60)
        assert len(asked(cluster)) == settled


async def test_leader_hints(cluster: FakeCluster) -> None:
    async with client_of(cluster) as client:
        await client._cluster.wait_for_topics(["t"])
        assert not client._cluster.apply_leader_hint(T0, 1, 0)
        node = cluster.nodes[0]
        cluster.nodes[7] = FakeNode(7, "broker7", 9099, versions=node.versions)
        cluster.start(7)
        cluster.move_leader("t", 0, 7)
        endpoints = [NodeEndpoint(node_id=7, host="broker7", port=9099)]
        assert client._cluster.apply_leader_hint(T0, 7, 1, endpoints)
        assert client.cluster.leader(T0) == 7
        assert client.cluster.brokers[7] == Broker(7, "broker7", 9099)
        await client._cluster.wait_for_update()
        assert client.cluster.leader(T0) == 7


async def test_an_answer_without_brokers_is_a_failure(cluster: FakeCluster) -> None:
    async with client_of(cluster) as client:
        cluster.on(ApiKey.METADATA, MetadataResponse(), times=3)
        client._cluster.request_refresh()
        view = await client._cluster.wait_for_update()
        assert len(view.brokers) == 3
        assert len(asked(cluster)) == 5


async def test_an_answer_with_an_error_is_a_failure(cluster: FakeCluster) -> None:
    async with client_of(cluster) as client:
        cluster.on(ApiKey.METADATA, MetadataResponse(error_code=31))
        client._cluster.request_refresh()
        with pytest.raises(RequestTimeout, match="CLUSTER_AUTHORIZATION_FAILED"):
            await client._cluster.wait_for_update(timeout=3)


async def test_a_broker_that_hangs_holds_nobody_up_for_ever(
    cluster: FakeCluster,
) -> None:
    async with client_of(cluster, request_timeout_ms=1_000) as client:
        cluster.on(ApiKey.METADATA, HANG, times=1)
        client._cluster.request_refresh()
        await client._cluster.wait_for_update(timeout=3)


# ---- starting over -----------------------------------------------------------------


def replace_all_brokers(cluster: FakeCluster) -> None:
    """The brokers known are gone; others answer, at the bootstrap address too."""
    for node in list(cluster.nodes):
        cluster.stop(node)
    new = FakeNode(10, "new", 1, versions=cluster.nodes[0].versions)
    cluster.nodes = {10: new}
    for partition in cluster.topics["t"].partitions:
        partition.leader, partition.epoch = 10, partition.epoch + 1
    cluster.start(10)
    cluster._listen(replace(new, host="boot", port=1))


def bootstrapped(cluster: FakeCluster, **options: object) -> Client:
    cluster._listen(replace(cluster.nodes[0], host="boot", port=1))
    return client_of(cluster, bootstrap_servers=(("boot", 1),), **options)


async def test_when_all_brokers_are_others_the_bootstrap_servers_help(
    cluster: FakeCluster,
) -> None:
    async with bootstrapped(cluster) as client:
        client._cluster.watch_topics("me", ["t"])
        await client._cluster.wait_for_topics(["t"])
        replace_all_brokers(cluster)
        view = await client._cluster.wait_for_update()
        assert set(view.brokers) == {10}
        assert view.leader(T0) == 10
        assert now() < 2


async def test_unless_that_is_not_wanted(cluster: FakeCluster) -> None:
    async with bootstrapped(cluster, metadata_recovery_strategy="none") as client:
        replace_all_brokers(cluster)
        client._cluster.request_refresh()
        with pytest.raises(RequestTimeout, match="no broker can be reached"):
            await client._cluster.wait_for_update(timeout=400)
        assert set(client.cluster.brokers) == {0, 1, 2}


async def test_starting_over_when_brokers_answer_nothing(cluster: FakeCluster) -> None:
    options = {"metadata_recovery_rebootstrap_trigger_ms": 10_000}
    async with bootstrapped(cluster, **options) as client:
        for node in cluster.nodes:
            cluster.on(ApiKey.METADATA, HANG, node=node)
        new = FakeNode(10, "new", 1, versions=cluster.nodes[0].versions)
        cluster.nodes[10] = new
        cluster.start(10)
        cluster._listen(replace(new, host="boot", port=1))
        begin = now()
        client._cluster.request_refresh()
        view = await client._cluster.wait_for_update()
        assert 10 in view.brokers
        assert now() - begin == pytest.approx(10, abs=0.5)


async def test_starting_over_when_a_broker_says_so(cluster: FakeCluster) -> None:
    async with bootstrapped(cluster) as client:
        accepted = cluster.connections_accepted
        refused = MetadataResponse(error_code=E.REBOOTSTRAP_REQUIRED)
        cluster.on(ApiKey.METADATA, refused, times=2)
        client._cluster.request_refresh()
        view = await client._cluster.wait_for_update()
        assert set(view.brokers) == {0, 1, 2}
        # Each time through the bootstrap address, each time after a pause.
        assert cluster.connections_accepted >= accepted + 2
        assert 0.2 < now() < 2


async def test_a_refresh_may_name_topics(cluster: FakeCluster) -> None:
    async with client_of(cluster, metadata_max_idle_ms=60_000) as client:
        client._cluster.request_refresh("t")
        assert (await client._cluster.wait_for_update()).partition_count("t") == 6
        await anyio.sleep(120)
        client._cluster.request_refresh()
        assert (await client._cluster.wait_for_update()).partition_count("t") is None


async def test_waiting_for_partitions(cluster: FakeCluster) -> None:
    async with client_of(cluster) as client:
        asker = client._cluster
        await asker.wait_for_partitions([TopicPartition("t", 5)], 5)
        before = len(asked(cluster))
        await asker.wait_for_partitions([TopicPartition("t", n) for n in range(6)])
        assert len(asked(cluster)) == before
        # A view that is older than a partition is refreshed before it is missing.
        cluster.topics["t"].partitions.append(FakePartition(0))
        await asker.wait_for_partitions([TopicPartition("t", 6)], 5)
        with pytest.raises(UnknownTopicOrPartition, match="'t' has no partition 7"):
            await asker.wait_for_partitions([TopicPartition("t", n) for n in (0, 7)], 5)
        with pytest.raises(UnknownTopicOrPartition, match="'absent'"):
            await asker.wait_for_partitions([TopicPartition("absent", 0)], 1)
        await asker.wait_for_partitions([], 5)
