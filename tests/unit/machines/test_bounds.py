"""The numbers that brokers say: each has a decision, and the decisions hold."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import pytest

from kafkaio._machines import bounds
from kafkaio._machines.bounds import (
    ADDRESSES,
    OBEYED,
    REFUSED,
    SHOWN,
    check,
    check_in_slices,
    seconds,
    why_unreachable,
)
from kafkaio.errors import ProtocolError
from kafkaio.protocol import messages
from kafkaio.protocol._message import Message, Response, Struct
from kafkaio.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from kafkaio.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)
from kafkaio.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorResponse,
)
from kafkaio.protocol.messages.init_producer_id import InitProducerIdResponse
from kafkaio.protocol.messages.join_group import JoinGroupResponse
from kafkaio.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafkaio.protocol.messages.produce import (
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)

NUMBERS = {"int8", "int16", "uint16", "int32", "uint32", "int64", "float64"}


def responses() -> Iterator[type[Response]]:
    for module in pkgutil.iter_modules(messages.__path__):
        found = importlib.import_module(f"{messages.__name__}.{module.name}")
        for each in vars(found).values():
            is_answer = isinstance(each, type) and issubclass(each, Response)
            if is_answer and "NAME" in vars(each):
                yield each


def numbers(kind: type[Struct]) -> Iterator[str]:
    for field in kind.SCHEMA:
        if isinstance(field.type, type):
            yield from numbers(field.type)
        elif field.type in NUMBERS:
            yield field.name


def test_each_number_of_each_answer_has_one_decision() -> None:
    names = {name for kind in responses() for name in numbers(kind)}
    general = {name for name in REFUSED if "." not in name}
    kinds = (general, set(OBEYED), set(ADDRESSES), set(SHOWN))
    undecided = {
        name
        for name in names
        if not any(name in kind for kind in kinds)
        and any(
            name in set(numbers(kind)) and f"{kind.NAME}.{name}" not in REFUSED
            for kind in responses()
        )
    }
    assert not undecided
    for index, kind in enumerate(kinds):
        for other in kinds[index + 1 :]:
            assert not kind & other
    assert set().union(*kinds) <= names


def test_each_exception_is_a_field() -> None:
    known = {f"{kind.NAME}.{name}" for kind in responses() for name in numbers(kind)}
    assert {name for name in REFUSED if "." in name} <= known


def metadata(node_id: int = 0, partition: int = 0) -> MetadataResponse:
    parts = [MetadataResponsePartition(partition_index=partition)]
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=node_id, host="h", port=-7)],
        topics=[MetadataResponseTopic(name="t", partitions=parts)],
    )


def produced(offset: int, node_id: int = 0, index: int = 0) -> ProduceResponse:
    part = PartitionProduceResponse(index=index, base_offset=offset)
    return ProduceResponse(
        responses=[TopicProduceResponse(name="t", partition_responses=[part])],
        node_endpoints=[NodeEndpoint(node_id=node_id)],
    )


def assigned(*partitions: int) -> ConsumerGroupHeartbeatResponse:
    topics = [
        ConsumerGroupHeartbeatResponseTopicPartitions(partitions=list(partitions))
    ]
    return ConsumerGroupHeartbeatResponse(
        member_epoch=1, assignment=Assignment(topic_partitions=topics)
    )


def announced(low: int, high: int) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        api_keys=[ApiVersion(api_key=3, min_version=low, max_version=high)]
    )


@pytest.mark.parametrize(
    "answer",
    [
        metadata(),
        produced(-1),
        produced(2**62),
        assigned(0, 7),
        ConsumerGroupHeartbeatResponse(member_epoch=-2),
        JoinGroupResponse(error_code=27),  # placeholders beside an error
        InitProducerIdResponse(error_code=51),
        FindCoordinatorResponse(coordinators=[Coordinator(node_id=-1, port=-1)]),
        announced(0, 13),
        announced(-1, -1),
    ],
)
def test_what_brokers_say_passes(answer: Message) -> None:
    check(answer)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (metadata(node_id=-1), "node_id -1"),
        (metadata(partition=-1), "partition_index -1"),
        (produced(-2), "base_offset -2"),
        (produced(2**63 - 1), "base_offset 9223372036854775807"),
        (produced(0, node_id=-5), "node_id -5"),
        (produced(0, index=-1), "index -1"),
        (assigned(0, -1), "partitions -1"),
        (ConsumerGroupHeartbeatResponse(member_epoch=-(2**31)), "member_epoch"),
        (JoinGroupResponse(generation_id=-1), "generation_id -1"),
        (InitProducerIdResponse(producer_id=-1), "producer_id -1"),
        (InitProducerIdResponse(producer_id=1, producer_epoch=-1), "producer_epoch"),
        (announced(-2, 3), "min_version -2"),
        (ApiVersionsResponse(finalized_features_epoch=2**63 - 1), "features_epoch"),
    ],
)
def test_what_no_broker_says_is_refused(answer: Message, why: str) -> None:
    with pytest.raises(ProtocolError, match=why):
        check(answer)


def test_a_large_answer_is_checked_in_slices() -> None:
    parts = [MetadataResponsePartition(partition_index=n) for n in range(10_000)]
    answer = MetadataResponse(
        topics=[MetadataResponseTopic(name="t", partitions=parts)]
    )
    assert sum(1 for _ in check_in_slices(answer)) == 10
    parts[-1].partition_index = -1
    with pytest.raises(ProtocolError):
        list(check_in_slices(answer))


@pytest.mark.parametrize(
    ("name", "said", "kept"),
    [
        ("heartbeat_interval_ms", 5_000, 5.0),
        ("heartbeat_interval_ms", 0, 0.01),
        ("heartbeat_interval_ms", -1, 0.01),
        ("heartbeat_interval_ms", 2**31 - 1, 15.0),
        ("push_interval_ms", 1, 0.1),
        ("push_interval_ms", 2**31 - 1, 86_400.0),
        ("session_lifetime_ms", -1, 0.0),
        ("session_lifetime_ms", 2**63 - 1, 86_400.0),
    ],
)
def test_times_are_obeyed_within_bounds(name: str, said: int, kept: float) -> None:
    assert seconds(name, said) == kept


def test_addresses_that_are_none() -> None:
    assert why_unreachable("h", 9092) is None
    assert why_unreachable("h", 65_535) is None
    for port in (0, -1, 65_536, 2**31 - 1, -(2**31)):
        assert f"port {port} is not" in (why_unreachable("h", port) or "")
    assert why_unreachable("", 9092) == "a host of 0 characters"
    assert why_unreachable("h" * 255, 9092) == "a host of 255 characters"
    for name in ("a\0b", "two\nlines", "a b", "\x1b[31m"):
        assert why_unreachable(name, 9092) == "no host has such a name"
    for name in ("h" * 254, "::1", "fe80::1%eth0", "büro.example", "kafka.example."):
        assert why_unreachable(name, 9092) is None


def test_most_answers_have_nothing_to_check() -> None:
    checked = {kind.NAME for kind in responses() if bounds._plans_of(kind)}
    assert "HeartbeatResponse" not in checked
    assert "FetchResponse" in checked
