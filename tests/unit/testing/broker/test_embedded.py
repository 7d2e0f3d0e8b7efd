import asyncio
import re
import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pytest

from kafkaio import Client, ClientConfig, testing
from kafkaio.errors import BrokerNotAvailable
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from kafkaio.protocol.messages.init_producer_id import InitProducerIdRequest
from kafkaio.protocol.messages.metadata import MetadataRequest
from kafkaio.testing import Broker
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._broker.versions import RELEASES
from kafkaio.testing._handlers import apis_of
from tests.unit.testing.broker.calls import (
    batch,
    connect,
    fetch,
    fetched,
    produced,
    started,
    with_producer,
)


def ask(name: str = "kafkaio", version: str = "1.0") -> ApiVersionsRequest:
    return ApiVersionsRequest(
        client_software_name=name, client_software_version=version
    )


@pytest.mark.parametrize("version", range(6))
async def test_versions_are_reported(version: int) -> None:
    async with started() as (_, caller):
        response = await caller.call(ask(), version)
        told = {k.api_key: (k.min_version, k.max_version) for k in response.api_keys}
        assert told[ApiKey.PRODUCE] == (0, 13)
        assert told[ApiKey.FETCH] == (4, 18)
        assert {
            api: told[api]
            for api in told
            if "TXN" in ApiKey(api).name or "TRANS" in ApiKey(api).name
        } == {
            ApiKey.ADD_PARTITIONS_TO_TXN: (0, 5),
            ApiKey.ADD_OFFSETS_TO_TXN: (0, 4),
            ApiKey.END_TXN: (0, 5),
            ApiKey.WRITE_TXN_MARKERS: (1, 2),
            ApiKey.TXN_OFFSET_COMMIT: (0, 6),
            ApiKey.DESCRIBE_TRANSACTIONS: (0, 0),
            ApiKey.LIST_TRANSACTIONS: (0, 2),
        }
        if version >= 3:
            levels = {f.name: f.max_version_level for f in response.finalized_features}
            assert levels == {
                "group.version": 1,
                "transaction.version": 2,
                "share.version": 2,
            }
            assert bool(response.supported_features) == (version >= 4)


async def test_a_level_that_changes_has_a_higher_epoch() -> None:
    async with started(features={"transaction.version": 1}) as (broker, caller):
        for level, epoch in [(1, 1), (2, 2), (0, 3)]:
            broker.control.set_feature("transaction.version", level)
            response = await caller.call(ask(), 4)
            assert response.finalized_features_epoch == epoch
            levels = {f.name: f.max_version_level for f in response.finalized_features}
            assert levels.get("transaction.version", 0) == level
        with pytest.raises(ValueError, match="must be 0 to 2"):
            broker.control.set_feature("transaction.version", 3)
        with pytest.raises(ValueError, match="is not one of"):
            broker.control.set_feature("metadata.version", 20)
    with pytest.raises(ValueError, match="has none"):
        Broker(as_version="3.9", features={"transaction.version": 1})


async def test_a_version_that_is_not_known_is_answered_in_version_zero() -> None:
    async with started(as_version="2.8") as (_, caller):
        response = await caller.api_versions(ask(), 4)
        assert isinstance(response, ApiVersionsResponse)
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
        (only,) = response.api_keys
        assert (only.api_key, only.max_version) == (ApiKey.API_VERSIONS, 3)
        assert (await caller.call(ask(), 3)).error_code == 0


async def test_a_client_that_wants_another_node_is_told() -> None:
    """As Kafka 4.4.0 (KIP-1242); both are named or neither is."""
    async with started() as (broker, caller):
        cluster_id = (await caller.call(MetadataRequest(), 9)).cluster_id
        node_id = min(broker.nodes)
        refused = ErrorCode.REBOOTSTRAP_REQUIRED
        for target, code in [
            ((None, -1), ErrorCode.NONE),
            ((cluster_id, node_id), ErrorCode.NONE),
            ((cluster_id, node_id + 1), refused),
            ((cluster_id, -2), refused),
            (("other", node_id), refused),
            (("", node_id), refused),
            ((cluster_id, -1), ErrorCode.INVALID_REQUEST),
            ((None, node_id), ErrorCode.INVALID_REQUEST),
        ]:
            request = ask()
            request.cluster_id, request.node_id = target
            response = await caller.call(request, 5)
            assert response.error_code == code
            assert bool(response.api_keys) is (not code)
            assert bool(response.finalized_features) is (not code)


@pytest.mark.parametrize("name", ["", "-x", "1.0-b+"])
async def test_software_names_that_kafka_refuses(name: str) -> None:
    async with started() as (_, caller):
        response = await caller.call(ask(name), 4)
        assert response.error_code == ErrorCode.INVALID_REQUEST


async def test_a_malformed_request_closes_the_connection() -> None:
    async with started(as_version="2.1") as (broker, _):
        for frame in (b"\0\0\0\1x", b"\0\0\0\x08\0\0\0\x0b\0\0\0\0"):
            caller = await connect(broker)
            assert caller.transport is not None
            caller.transport.write([frame])
            with pytest.raises(ConnectionError):
                await caller.frame()
        too_new = await connect(broker)
        too_new.send(InitProducerIdRequest(transactional_id=None), 4)
        with pytest.raises(ConnectionError):
            await too_new.frame()


async def test_bytes_after_a_request_are_ignored() -> None:
    async with started() as (_, caller):
        assert caller.transport is not None
        request = b"\0\x16\0\x04\0\0\0\7\0\1x\0\0\0\0\0\x01" + b"\xff" * 8
        request += b"\xff\xff\0left over"
        caller.transport.write([len(request).to_bytes(4, "big"), request])
        assert bytes((await caller.frame())[:4]) == b"\0\0\0\7"


@pytest.mark.parametrize("release", RELEASES)
def test_every_release_serves_what_clients_need(release: str) -> None:
    apis = apis_of(release)
    assert {ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.METADATA} <= set(apis)
    versions = [api.versions for api in apis.values()]
    assert all(0 <= v.advertised_lowest <= v.lowest <= v.highest for v in versions)
    assert (ApiKey.DESCRIBE_CLUSTER in apis) == (release != "2.1")


def test_a_release_that_is_not_known() -> None:
    with pytest.raises(ValueError, match=r"must be one of 2\.1, 2\.8"):
        Broker(as_version="0.9")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="nodes=0"):
        Broker(nodes=0)


async def test_a_node_that_is_down_cannot_be_dialled() -> None:
    async with started(nodes=2) as (broker, caller):
        await broker.control.kill(0)
        await broker.control.kill(0)
        with pytest.raises(ConnectionError):
            await caller.frame()
        with pytest.raises(BrokerNotAvailable):
            await connect(broker, 0)
        await broker.control.restart(0)
        await connect(broker, 0)
        assert "2 of 2 nodes up" in repr(broker)


async def test_disconnecting_leaves_a_node_up() -> None:
    async with started() as (broker, caller):
        broker.control.disconnect(0)
        with pytest.raises(ConnectionError):
            await caller.frame()
        assert broker.nodes[0].is_up
        assert not broker.nodes[0].connections


async def test_control_of_unknown_nodes_and_partitions() -> None:
    async with started(topics={"t": 1}, nodes=2) as (broker, _):
        await broker.control.stop(1)
        with pytest.raises(ValueError, match="node 1 is not up"):
            broker.control.move_leader(("t", 0), 1)
        with pytest.raises(ValueError, match="partition t-1 does not exist"):
            broker.control.leader(("t", 1))
        with pytest.raises(ValueError, match="node 7 does not exist"):
            broker.control.disconnect(7)


async def test_leaders_go_to_replicas_in_sync() -> None:
    async with started(nodes=3) as (broker, _):
        broker.create_topic("t", 3, 2)
        assert [broker.control.leader(("t", i)) for i in range(3)] == [0, 1, 2]
        await broker.control.stop(1)
        assert [broker.control.leader(("t", i)) for i in range(3)] == [0, 2, 2]
        partition = broker.topics["t"].partitions[0]
        assert (partition.replicas, partition.isr) == ([0, 1], [0])
        await broker.control.restart(1)
        assert partition.isr == [0, 1]


async def test_the_client_dials_in_memory() -> None:
    broker = Broker(nodes=2, topics={"t": 1}, memory_transport=True)
    async with broker:
        config = ClientConfig.of(broker.bootstrap_servers, {})
        async with Client.from_config(config, dial=broker.dial) as client:
            del client
        assert broker.requests[0].api == ApiKey.API_VERSIONS
    assert not any(node.is_up for node in broker.nodes.values())


async def test_a_broker_that_cannot_start_leaves_nothing() -> None:
    broker = Broker(topics={"no/name": 1}, memory_transport=True)
    with pytest.raises(Refusal, match="INVALID_TOPIC_EXCEPTION"):
        async with broker:
            pytest.fail("it has started")
    assert not broker.nodes[0].is_up
    with pytest.raises(BrokerNotAvailable):
        await connect(broker)


@pytest.mark.parametrize("name", testing.__all__)
def test_public_names(name: str) -> None:
    assert callable(getattr(testing, name))
    with pytest.raises(AttributeError, match="no attribute 'Kafka'"):
        _ = testing.Kafka  # type: ignore[attr-defined]


async def test_dial_is_for_memory() -> None:
    with pytest.raises(RuntimeError, match="memory_transport"):
        await connect(Broker())


async def test_a_data_directory_outlives_the_broker(tmp_path: Path) -> None:
    async with started(topics={"t": 2}, data_dir=tmp_path) as (broker, caller):
        new = await caller.call(InitProducerIdRequest(transactional_id=None), 4)
        data = with_producer(batch([b"a", b"b"]), new.producer_id, 0, 0)
        assert (await produced(caller, "t", 0, data)).base_offset == 0
        topic_id = broker.topics["t"].topic_id
        cluster_id = broker._cluster.cluster_id
    async with started(topics={"t": 2}, data_dir=tmp_path) as (broker, caller):
        assert broker.topics["t"].topic_id == topic_id
        assert broker._cluster.cluster_id == cluster_id
        assert broker.topics["t"].partitions[0].leader_epoch == 1
        (found,) = await fetched(caller, fetch("t", {0: 0}))
        assert found.high_watermark == 2
        # The producer's state is restored, and no producer id is handed out twice.
        assert (await produced(caller, "t", 0, data)).base_offset == 0
        other = await caller.call(InitProducerIdRequest(transactional_id=None), 4)
        assert other.producer_id > new.producer_id
        assert (tmp_path / "t-0" / f"{0:020}.log").exists()


async def test_a_topic_may_be_given_its_id(tmp_path: Path) -> None:
    topic_id = UUID(int=7)
    async with started(data_dir=tmp_path) as (broker, caller):
        broker.create_topic("t", topic_id=topic_id)
        await produced(caller, "t", 0, batch())
    async with started(data_dir=tmp_path) as (broker, _):
        assert broker.topics["t"].topic_id == topic_id
        assert broker.topics["t"].partitions[0].topic_id == topic_id


async def test_a_deleted_topic_leaves_nothing(tmp_path: Path) -> None:
    async with started(topics={"t": 1}, data_dir=tmp_path) as (broker, caller):
        await produced(caller, "t", 0, batch())
        broker._cluster.delete_topic(broker.topics["t"])
        assert not (tmp_path / "t-0").exists()


async def test_old_records_are_deleted() -> None:
    async with started() as (broker, caller):
        broker.create_topic("t", configs={"retention.ms": "1", "segment.ms": "1"})
        await produced(caller, "t", 0, batch(timestamp=1))
        broker.control.tidy()
        partition = broker.topics["t"].partitions[0]
        assert (partition.start_offset, partition.high_watermark) == (1, 1)


async def test_logs_are_cleaned_regularly() -> None:
    async with started() as (broker, caller):
        broker.create_topic("t", configs={"retention.ms": "1", "segment.ms": "1"})
        await produced(caller, "t", 0, batch(timestamp=1))
        partition = broker.topics["t"].partitions[0]
        await asyncio.sleep(20)
        assert partition.start_offset == 0
        await asyncio.sleep(11)
        assert partition.start_offset == 1


async def test_node_ids_may_count_from_one() -> None:
    async with Broker(
        nodes=2, topics={"t": 2}, racks=["a"], first_node_id=1, memory_transport=True
    ) as broker:
        assert [(n.node_id, n.rack) for n in broker.nodes.values()] == [
            (1, "a"),
            (2, None),
        ]
        caller = await connect(broker, 2)
        assert (await produced(caller, "t", 1, batch())).error_code == 0


async def test_a_bug_closes_one_connection_and_is_reported() -> None:
    told = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: told.append(context["exception"]))
    async with started() as (broker, caller):
        broker._cluster.new_producer_id = None  # type: ignore[method-assign, assignment]
        caller.send(InitProducerIdRequest(transactional_id=None), 4)
        with pytest.raises(ConnectionError):
            await caller.frame()
        assert [type(error) for error in told] == [TypeError]
        assert (await (await connect(broker)).call(ask(), 3)).error_code == 0


def test_handlers_serve_the_versions_in_their_docstrings() -> None:
    for api in apis_of(RELEASES[-1]).values():
        told = sys.modules[api.handler.__module__].__doc__ or ""
        found = re.match(r"\w+, versions? (\d+)(?: (?:to|and) (\d+))?", told)
        assert found is not None, api
        lowest, highest = found[1], found[2] or found[1]
        assert (api.versions.lowest, api.versions.highest) == (
            int(lowest),
            int(highest),
        )


def test_a_broker_starts_without_importing_handlers() -> None:
    code = (
        "import asyncio, sys\n"
        "from kafkaio.testing import Broker\n"
        "async def start():\n"
        "    async with Broker(topics={'t': 1}): pass\n"
        "asyncio.run(start())\n"
        "names = [n for n in sys.modules if n.startswith('kafkaio.testing.')]\n"
        "assert not [n for n in names if '._handlers.' in n or n.endswith('ordinator')]"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
