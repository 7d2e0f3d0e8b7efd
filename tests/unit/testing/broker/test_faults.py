import asyncio
from typing import Any

import pytest

from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._headers import decode_response, peek_correlation_id
from kafkaio.protocol.messages.api_versions import ApiVersionsRequest
from kafkaio.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kafkaio.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kafkaio.protocol.messages.delete_topics import DeleteTopicsRequest
from kafkaio.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kafkaio.protocol.messages.find_coordinator import FindCoordinatorRequest
from kafkaio.protocol.messages.init_producer_id import InitProducerIdRequest
from kafkaio.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafkaio.protocol.messages.produce import ProduceRequest
from kafkaio.testing import Broker
from kafkaio.testing._broker.faults import (
    Fault,
    Faults,
    corrupt_bytes,
    delay,
    disconnect_after_write,
    disconnect_before_write,
    drop,
    duplicate,
    error,
    half_frame,
    metadata_lag,
    reorder,
    throttle,
)
from tests.unit.testing.broker.calls import (
    batch,
    connect,
    fetch,
    fetched,
    produce,
    produced,
    started,
)

WANTED = MetadataRequestTopic(name="t")
SEVERAL = FindCoordinatorRequest(coordinator_keys=["g"])
NEW = CreatableTopic(name="new", num_partitions=1, replication_factor=1)
MORE = CreatePartitionsTopic(name="t", count=2, assignments=None)
OF_T = DescribeConfigsResource(
    resource_type=2, resource_name="t", configuration_keys=None
)


@pytest.mark.parametrize(
    ("fault", "appended"),
    [
        (disconnect_before_write(times=1), 0),
        (disconnect_after_write(times=1), 1),
        (half_frame(times=1), 1),
    ],
)
async def test_disconnects_before_and_after_the_effect(
    fault: Fault, appended: int
) -> None:
    async with started(topics={"t": 1}) as (broker, caller):
        rule = broker.faults.on("Produce", fault)
        caller.send(produce("t", 0, batch()), 12)
        with pytest.raises(ConnectionError):
            await caller.frame()
        assert rule.count == 1
        again = await connect(broker)
        assert (await produced(again, "t", 0, batch())).base_offset == appended


async def test_an_error_of_one_partition_spares_the_others() -> None:
    async with started(topics={"t": 2}) as (broker, caller):
        rule = broker.faults.on(
            "Fetch", error(ErrorCode.KAFKA_STORAGE_ERROR, times=1), partition=("t", 1)
        )
        assert [d.error_code for d in await fetched(caller, fetch("t", {0: 0}))] == [0]
        assert rule.count == 0
        both = fetch("t", {0: 0, 1: 0})
        assert [d.error_code for d in await fetched(caller, both)] == [0, 56]
        assert [d.error_code for d in await fetched(caller, both)] == [0, 0]
        assert rule.count == 1


async def test_an_error_of_every_partition_counts_once() -> None:
    async with started(topics={"t": 2}) as (broker, caller):
        rule = broker.faults.on("Fetch", error(ErrorCode.KAFKA_STORAGE_ERROR, times=1))
        both = fetch("t", {0: 0, 1: 0})
        assert [d.error_code for d in await fetched(caller, both)] == [56, 56]
        assert [d.error_code for d in await fetched(caller, both)] == [0, 0]
        assert rule.count == 1


async def test_a_fault_of_one_partition_applies_to_the_whole_request() -> None:
    async with started(topics={"t": 2, "u": 1}) as (broker, caller):
        loop = asyncio.get_running_loop()
        rule = broker.faults.on("Produce", delay(3), partition=("t", 1))
        broker.faults.on("Fetch", delay(3), partition=("t", 1))
        for topic, index, seconds in (("t", 0, 0), ("u", 0, 0), ("t", 1, 3)):
            since = loop.time()
            await produced(caller, topic, index, batch())
            assert loop.time() - since == seconds
        assert rule.count == 1
        began = loop.time()
        assert len(await fetched(caller, fetch("t", {0: 0, 1: 0}))) == 2
        assert loop.time() - began == 3


async def test_a_partition_of_a_fetch_session() -> None:
    async with started(topics={"t": 2}) as (broker, caller):
        first = await caller.call(fetch("t", {0: 0, 1: 0}, session_epoch=0), 12)
        rule = broker.faults.on("Fetch", delay(3, times=1), partition=("t", 1))
        again = fetch("t", {}, session_id=first.session_id, session_epoch=1)
        again.topics = []
        await caller.call(again, 12)
        assert rule.count == 1


async def test_a_request_about_a_topic_concerns_its_partitions() -> None:
    async with started(topics={"t": 2}) as (broker, caller):
        rule = broker.faults.on("Metadata", delay(3), partition=("t", 1))
        await caller.call(MetadataRequest(topics=[WANTED]), 9)
        assert rule.count == 1
        await caller.call(MetadataRequest(topics=[]), 9)
        assert rule.count == 1


async def test_a_request_is_served_twice() -> None:
    async with started(topics={"t": 1}) as (broker, caller):
        broker.faults.on("Produce", duplicate(times=1))
        assert (await produced(caller, "t", 0, batch())).base_offset == 0
        assert (await produced(caller, "t", 0, batch())).base_offset == 2
        assert caller.frames.empty()


async def test_a_request_is_overtaken_by_the_next() -> None:
    async with started(topics={"t": 1}) as (broker, caller):
        broker.faults.on("Produce", reorder(times=1))
        caller.send(produce("t", 0, batch([b"first"])), 12, 1)
        caller.send(produce("t", 0, batch([b"second"])), 12, 2)
        kind = ProduceRequest.response_type()
        frames = [await caller.frame() for _ in range(2)]
        answers = [decode_response(kind, 12, frame) for frame in frames]
        assert [
            (
                peek_correlation_id(frame),
                answer.responses[0].partition_responses[0].base_offset,
            )
            for frame, answer in zip(frames, answers, strict=True)
        ] == [(1, 1), (2, 0)]


async def test_no_request_comes_that_could_overtake() -> None:
    async with started(topics={"t": 1}) as (broker, caller):
        loop = asyncio.get_running_loop()
        broker.faults.on("Produce", reorder(times=1, seconds=2))
        began = loop.time()
        assert (await produced(caller, "t", 0, batch())).base_offset == 0
        assert loop.time() - began == 2


async def test_an_error_of_the_whole_answer() -> None:
    async with started() as (broker, caller):
        broker.faults.on(
            ApiKey.INIT_PRODUCER_ID,
            error(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, times=2),
            client_id="caller",
        )
        request = InitProducerIdRequest(transactional_id=None)
        codes = [(await caller.call(request, 4)).error_code for _ in range(3)]
        assert codes == [14, 14, 0]


async def test_only_on_one_node_and_to_one_client() -> None:
    async with started(nodes=2) as (broker, caller):
        code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        broker.faults.on("InitProducerId", error(code), node=1)
        broker.faults.on("InitProducerId", error(code), client_id="other")
        request = InitProducerIdRequest(transactional_id=None)
        assert (await caller.call(request, 4)).error_code == 0
        second = await connect(broker, 1)
        assert (await second.call(request, 4)).error_code == code
        broker.faults.clear()
        assert (await second.call(request, 4)).error_code == 0


async def test_delay_and_throttle() -> None:
    async with started() as (broker, caller):
        loop = asyncio.get_running_loop()
        request = InitProducerIdRequest(transactional_id=None)
        broker.faults.on("InitProducerId", delay(3, times=1))
        began = loop.time()
        assert (await caller.call(request, 4)).throttle_time_ms == 0
        assert loop.time() - began == pytest.approx(3)
        broker.faults.on("InitProducerId", throttle(2, times=1))
        began = loop.time()
        assert (await caller.call(request, 4)).throttle_time_ms == 2_000
        assert loop.time() == began
        await caller.call(request, 4)
        assert loop.time() - began == pytest.approx(2)


async def test_a_dropped_answer_never_comes() -> None:
    async with started(topics={"t": 1}) as (broker, caller):
        broker.faults.on("Produce", drop(times=1))
        caller.send(produce("t", 0, batch()), 12)
        caller.send(produce("t", 0, batch()), 12)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1000):
                await caller.frame()
        other = await connect(broker)
        assert (await produced(other, "t", 0, batch())).base_offset == 1


async def test_corrupt_bytes() -> None:
    async with started(topics={"t": 1}) as (broker, caller):
        await produced(caller, "t", 0, batch([bytes(1000)]))
        (good,) = await fetched(caller, fetch("t", {0: 0}))
        broker.faults.on("Fetch", corrupt_bytes(times=1))
        (bad,) = await fetched(caller, fetch("t", {0: 0}))
        pairs = zip(bytes(good.records or b""), bytes(bad.records or b""), strict=True)
        assert sum(a != b for a, b in pairs) == 1


@pytest.mark.parametrize(
    ("api", "request_", "version", "path"),
    [
        ("Metadata", MetadataRequest(topics=None), 9, "topics"),
        ("Metadata", MetadataRequest(topics=[WANTED]), 13, "topics"),
        ("FindCoordinator", FindCoordinatorRequest(key="g"), 3, ""),
        ("FindCoordinator", SEVERAL, 4, "coordinators"),
        ("CreateTopics", CreateTopicsRequest(topics=[NEW]), 7, "topics"),
        ("DeleteTopics", DeleteTopicsRequest(topic_names=["t"]), 5, "responses"),
        ("CreatePartitions", CreatePartitionsRequest(topics=[MORE]), 3, "results"),
        ("DescribeConfigs", DescribeConfigsRequest(resources=[OF_T]), 4, "results"),
    ],
)
async def test_errors_of_other_parts_than_partitions(
    api: str, request_: Any, version: int, path: str
) -> None:
    async with started(topics={"t": 1}) as (broker, caller):
        rule = broker.faults.on(api, error(ErrorCode.POLICY_VIOLATION, times=1))
        for code in (ErrorCode.POLICY_VIOLATION, ErrorCode.NONE):
            response = await caller.call(request_, version)
            (part,) = getattr(response, path) if path else (response,)
            assert part.error_code == code
        assert rule.count == 1


async def test_an_api_without_error_codes_is_refused() -> None:
    async with started() as (broker, _):
        with pytest.raises(
            ValueError, match="answer of DESCRIBE_TOPIC_PARTITIONS has no error code"
        ):
            broker.faults.on("DescribeTopicPartitions", error(ErrorCode.NOT_CONTROLLER))


@pytest.mark.parametrize("code", ["NOT_CONTROLLER", None])
def test_an_error_code_that_does_not_exist(code: Any) -> None:
    with pytest.raises(ValueError, match="is not a valid ErrorCode"):
        error(code)


def strikes(faults: Faults, count: int) -> list[bool]:
    return [bool(faults.matching(0, 0, None, lambda *_: True)) for _ in range(count)]


def test_a_seeded_rate_repeats_itself() -> None:
    runs = []
    for seed in (1, 1, 2):
        faults = Faults()
        faults.on("Produce", disconnect_after_write(rate=0.3, seed=seed))
        runs.append(strikes(faults, 300))
    assert runs[0] == runs[1] != runs[2]
    assert 50 < sum(runs[0]) < 130


def test_once_n_times_and_always() -> None:
    for times, expected in [(1, 1), (3, 3), (None, 5)]:
        faults = Faults()
        rule = faults.on("Produce", drop(times=times))
        assert strikes(faults, 5) == [n < expected for n in range(5)]
        assert rule.count == expected


def test_rules_come_and_go() -> None:
    faults = Faults()
    rule = faults.on("produce", drop())
    assert strikes(faults, 2) == [True, True]
    faults.remove(rule)
    faults.remove(rule)
    assert strikes(faults, 1) == [False]


def test_faults_that_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown API 'Produse'"):
        Faults().on("Produse", drop())
    with pytest.raises(ValueError, match="node 17 does not exist: the nodes are 0, 1"):
        Broker(nodes=2).faults.on("Produce", drop(), node=17)


async def test_the_effect_stays_when_versions_are_reported() -> None:
    async with started() as (broker, caller):
        broker.faults.on("ApiVersions", error(ErrorCode.UNSUPPORTED_VERSION, times=1))
        request = ApiVersionsRequest(
            client_software_name="a", client_software_version="1"
        )
        first = await caller.call(request, 3)
        assert (first.error_code, first.api_keys) == (35, [])
        assert (await caller.call(request, 3)).error_code == 0


async def test_nodes_learn_late_of_a_new_topic() -> None:
    wish = CreateTopicsRequest(topics=[NEW])
    asked = MetadataRequest(topics=[MetadataRequestTopic(name="new")])
    async with started() as (broker, caller):
        rule = broker.faults.on("CreateTopics", metadata_lag(5.0, times=1))
        for code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            (made,) = (await caller.call(wish, 7)).topics
            assert made.error_code == code
            (topic,) = (await caller.call(asked, 12)).topics
            assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert rule.count == 1
        broker.control.skip_time(5.0)
        (topic,) = (await caller.call(asked, 12)).topics
        assert topic.error_code == ErrorCode.NONE
        with pytest.raises(ValueError, match="metadata_lag is for CreateTopics"):
            broker.faults.on("DeleteTopics", metadata_lag(1.0))
