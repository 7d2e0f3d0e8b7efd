"""One answer with numbers that no broker says, and what works after it."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from typing import Any

import pytest

from kafkaio import testing
from kafkaio._client import Broker, Client, Leader
from kafkaio._config import ClientConfig, ConsumerConfig, ProducerConfig
from kafkaio._consumer import Consumer
from kafkaio._machines import bounds
from kafkaio._machines.connection import machine
from kafkaio._net.dialling import TcpDial
from kafkaio._net.transport import DialOptions, FrameSinkPort, TransportPort
from kafkaio._producer import Producer
from kafkaio.errors import BrokerNotAvailable, KafkaError, ProtocolError
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._message import Response
from kafkaio.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kafkaio.protocol.messages.metadata import MetadataResponse, MetadataResponseBroker
from kafkaio.types import TopicPartition
from tests.fakes.broker import FakeCluster, Raw
from tests.unit.client.support import client_of

T0 = TopicPartition("t", 0)
Change = Callable[[MetadataResponse], None]


def lie(cluster: FakeCluster, change: Change, times: int) -> None:
    """Change the next answers to Metadata."""

    def answer(node: Any, header: Any, request: Any) -> MetadataResponse:
        answered = cluster._metadata(node, header, request)
        change(answered)
        return answered

    cluster.on(ApiKey.METADATA, answer, times=times)


def port(number: int) -> Change:
    def change(answer: MetadataResponse) -> None:
        for broker in answer.brokers:
            broker.port = number

    return change


def host(name: str) -> Change:
    def change(answer: MetadataResponse) -> None:
        for broker in answer.brokers:
            broker.host = name

    return change


def ids(answer: MetadataResponse) -> None:
    for broker in answer.brokers:
        broker.node_id = -1 - broker.node_id


def partitions(answer: MetadataResponse) -> None:
    for topic in answer.topics:
        for part in topic.partitions:
            part.partition_index = -1 - part.partition_index


def epochs(answer: MetadataResponse) -> None:
    for topic in answer.topics:
        for part in topic.partitions:
            part.leader_epoch, part.leader_id = 2**31 - 1, 99


def throttle(answer: MetadataResponse) -> None:
    answer.throttle_time_ms = 2**31 - 1


LIES: dict[str, Change] = {
    **{f"port {n}": port(n) for n in (0, -1, 65_536, 2**31 - 1, -(2**31))},
    **{f"host {n[:9]!a}": host(n) for n in ("", "\0", "a\nb", "a." * 5_000)},
    "ids": ids,
    "partitions": partitions,
    "epochs": epochs,
    "throttle": throttle,
}


class Dialler:
    """Dials the fake cluster, and for all that is not in it the real network."""

    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster
        self._known = set(cluster.bootstrap_servers)

    async def __call__(
        self, host: str, port: int, sink: FrameSinkPort, options: DialOptions
    ) -> TransportPort:
        if (host, port) in self._known:
            return await self._cluster.dial(host, port, sink, options)
        return await TcpDial()(host, port, sink, options)


@pytest.mark.parametrize("name", LIES)
@pytest.mark.parametrize("times", [1, 2])
async def test_a_lie_is_over_when_the_answers_are_right_again(
    cluster: FakeCluster, name: str, times: int
) -> None:
    cluster.on(ApiKey.LIST_GROUPS, ListGroupsResponse())
    lie(cluster, LIES[name], times)
    servers = cluster.bootstrap_servers
    config = ClientConfig(bootstrap_servers=servers, default_api_timeout_ms=90_000)
    client = Client.from_config(config, dial=Dialler(cluster))
    async with client:
        for partition in range(3):
            to = Leader(TopicPartition("t", partition))
            await client.request(ListGroupsRequest(), to)
            await client.request(ListGroupsRequest(), Broker(partition))
    assert len(cluster.logged(ApiKey.LIST_GROUPS)) == 6


async def test_one_broker_with_an_impossible_address_harms_no_other(
    cluster: FakeCluster,
) -> None:
    def change(answer: MetadataResponse) -> None:
        answer.brokers[1].port = 70_000

    class Heard:
        def __init__(self) -> None:
            self.lost: list[str] = []

        def connection_lost(self, node_id: int, kind: str, cause: object) -> None:
            if node_id == 1:
                self.lost.append(str(cause))

    heard = Heard()
    lie(cluster, change, 10_000)
    cluster.on(ApiKey.LIST_GROUPS, ListGroupsResponse())
    async with client_of(cluster, heard) as client:
        for node_id in (0, 2):
            await client.request(ListGroupsRequest(), Broker(node_id))
        what = "broker 1 is said to be at broker1:70000: port 70000 is not within 1 to"
        with pytest.raises(KafkaError, match=what):
            await client.request(ListGroupsRequest(), Broker(1), timeout=5)
    assert len(heard.lost) == 1  # told once, not with each attempt
    assert what in heard.lost[0]


@pytest.mark.parametrize(
    "failure",
    [OverflowError("port"), ValueError("null byte"), UnicodeError("idna"), OSError(99)],
)
async def test_what_dialling_raises_is_a_broker_that_is_not_available(
    cluster: FakeCluster, failure: Exception
) -> None:
    async def dial(*_: object) -> TransportPort:
        raise failure

    config = ClientConfig(bootstrap_servers=cluster.bootstrap_servers)
    client = Client.from_config(config, dial=dial)
    with pytest.raises(BrokerNotAvailable, match="connect: "):
        await client.start(2)
    await client.close()
    assert asyncio.get_running_loop().time() < 3


@pytest.mark.parametrize("hangs", [False, True])
async def test_thousands_of_brokers_that_are_none(
    cluster: FakeCluster, *, hangs: bool
) -> None:
    def change(answer: MetadataResponse) -> None:
        answer.brokers = [
            MetadataResponseBroker(node_id=n, host=f"none{n}", port=9092)
            for n in range(9_000)
        ]

    dialled: list[str] = []

    async def dial(
        host: str, port: int, sink: FrameSinkPort, options: DialOptions
    ) -> TransportPort:
        if host.startswith("none"):
            dialled.append(host)
            await asyncio.sleep(20 if hangs else 0)
            raise BrokerNotAvailable(f"{host}: refused")
        return await cluster.dial(host, port, sink, options)

    lie(cluster, change, times=1)
    cluster.on(ApiKey.LIST_GROUPS, ListGroupsResponse())
    config = ClientConfig(bootstrap_servers=cluster.bootstrap_servers)
    async with Client.from_config(config, dial=dial) as client:
        began = asyncio.get_running_loop().time()
        await client.request(ListGroupsRequest(), Broker(2))
        # The bootstrap servers are asked again long before all were tried.
        assert asyncio.get_running_loop().time() < began + 20
        assert len(dialled) < 20
        assert len(client.cluster.brokers) == 3


# ---- one answer that makes no sense ----------------------------------------------


async def test_an_answer_that_makes_no_sense_is_asked_for_again(
    cluster: FakeCluster,
) -> None:
    cluster.on(ApiKey.LIST_GROUPS, ListGroupsResponse())
    cluster.on(ApiKey.LIST_GROUPS, garbage, times=2)
    async with client_of(cluster) as client:
        await client.request(ListGroupsRequest(), Broker(1))
        cluster.on(ApiKey.LIST_GROUPS, garbage)
        with pytest.raises(ProtocolError, match="the last 3 connections ended with"):
            await client.request(ListGroupsRequest(), Broker(1))
    assert asyncio.get_running_loop().time() < 10


def garbage(node: Any, header: Any, request: Any) -> Raw:
    frame = struct.pack(">i", header.correlation_id) + b"\xff" * 9
    return Raw(struct.pack(">i", len(frame)) + frame)


class Refusing:
    """Refuses the numbers of the first answer of an API."""

    def __init__(self, api: ApiKey) -> None:
        self._api = api
        self.refused = 0

    def __call__(self, answer: Response) -> None:
        if self._api == answer.API_KEY and not self.refused:
            self.refused += 1
            raise ProtocolError("a number that no broker says")
        bounds.check(answer)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize(
    "api",
    [
        *(ApiKey.FIND_COORDINATOR, ApiKey.METADATA, ApiKey.LIST_OFFSETS, ApiKey.FETCH),
        *(ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT),
        *(ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.OFFSET_FETCH, ApiKey.OFFSET_COMMIT),
        *(ApiKey.PRODUCE, ApiKey.INIT_PRODUCER_ID),
    ],
)
async def test_one_answer_ends_no_consumer_and_no_producer(
    monkeypatch: pytest.MonkeyPatch, api: ApiKey, protocol: str
) -> None:
    refusing = Refusing(api)
    monkeypatch.setattr(machine, "check", refusing)
    async with testing.Broker(topics={"t": 1}, memory_transport=True) as broker:
        servers = broker.bootstrap_servers
        producer = Producer.from_config(
            ProducerConfig.of(servers, {}), dial=broker.dial
        )
        async with producer:
            for number in range(3):
                await producer.send("t", b"%d" % number)
        options = {"group_id": "g", "group_protocol": protocol}
        config = ConsumerConfig.of(
            servers, {**options, "auto_offset_reset": "earliest"}
        )
        consumer = Consumer.from_config(config, dial=broker.dial, topics=["t"])
        async with consumer:
            found = [(await anext(consumer)).value for _ in range(3)]
            await consumer.commit()
            await asyncio.sleep(20)  # heartbeats
            assert consumer.assignment
        assert found == [b"0", b"1", b"2"]
    of_protocol = {
        "classic": {ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT},
        "consumer": {ApiKey.CONSUMER_GROUP_HEARTBEAT},
    }
    other = of_protocol["consumer" if protocol == "classic" else "classic"]
    assert refusing.refused == (api not in other)


@pytest.mark.parametrize(
    "api", [ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.END_TXN]
)
async def test_one_answer_ends_no_transactional_producer(
    monkeypatch: pytest.MonkeyPatch, api: ApiKey
) -> None:
    refusing = Refusing(api)
    monkeypatch.setattr(machine, "check", refusing)
    made = testing.Broker(topics={"t": 1}, as_version="3.9", memory_transport=True)
    async with made as broker:
        config = ProducerConfig.of(broker.bootstrap_servers, {"transactional_id": "x"})
        async with Producer.from_config(config, dial=broker.dial) as producer:
            for number in range(2):
                async with producer.transaction() as transaction:
                    await transaction.send("t", b"%d" % number)
    assert refusing.refused == 1


@pytest.mark.parametrize("epoch", [-2, -1, 0])
async def test_a_member_without_an_epoch_asks_again(
    monkeypatch: pytest.MonkeyPatch, epoch: int
) -> None:
    lies = [epoch] * 2

    def lie_once(answer: Any) -> None:
        if ApiKey.CONSUMER_GROUP_HEARTBEAT == answer.API_KEY and lies:
            answer.member_epoch = lies.pop()
        bounds.check(answer)

    monkeypatch.setattr(machine, "check", lie_once)
    async with testing.Broker(topics={"t": 1}, memory_transport=True) as broker:
        options = {"group_id": "g", "group_protocol": "consumer"}
        config = ConsumerConfig.of(broker.bootstrap_servers, options)
        consumer = Consumer.from_config(config, dial=broker.dial, topics=["t"])
        async with consumer:
            await asyncio.sleep(20)
            assert consumer.assignment
            assert consumer.statistics().generation > 0
    assert not lies
