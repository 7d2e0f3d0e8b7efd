"""`AIOKafkaAdminClient` answers as aiokafka's does: the same calls, on one broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from types import ModuleType
from typing import Any

import pytest

import kafkaio
import kafkaio.aiokafka.admin
from kafkaio import TopicPartition
from kafkaio.aiokafka import errors
from kafkaio.aiokafka.admin import (
    AIOKafkaAdminClient,
    NewPartitions,
    NewTopic,
    RecordsToDelete,
)
from kafkaio.aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from kafkaio.testing import Broker

theirs: Any = pytest.importorskip("aiokafka")
pytest.importorskip("aiokafka.admin")
pytest.importorskip("aiokafka.admin.config_resource")

BOTH = [theirs, kafkaio.aiokafka]


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(topics={"orders": 3}) as broker:
        async with kafkaio.Producer(broker.bootstrap_servers) as producer:
            for number in range(5):
                await producer.send("orders", b"%d" % number, partition=0)
        yield broker


@pytest.fixture
async def admin(broker: Broker) -> AsyncIterator[AIOKafkaAdminClient]:
    admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    await admin.start()
    yield admin
    await admin.close()


def plain(answer: Any) -> Any:
    """An answer without its class, so that those of both can be compared."""
    if hasattr(answer, "to_object"):
        return answer.to_object()
    if isinstance(answer, list):
        return [plain(each) for each in answer]
    return answer


async def results(package: ModuleType, broker: Broker, call: Any) -> Any:
    """What a call brings, or the class of what it raises."""
    admin = package.admin.AIOKafkaAdminClient(
        bootstrap_servers=broker.bootstrap_servers
    )
    await admin.start()
    try:
        return plain(await call(package.admin, admin))
    except package.errors.KafkaError as error:
        return type(error).__name__
    finally:
        await admin.close()


TP = TopicPartition("orders", 0)
#: A call each; ``a`` is the module ``admin`` of either package, ``c`` its client.
CALLS: dict[str, Callable[[Any, Any], Awaitable[Any]]] = {
    "create a topic": lambda a, c: c.create_topics([a.NewTopic("new", 2, 1)]),
    "create topics, of which some fail": lambda a, c: c.create_topics(
        [a.NewTopic("orders", 1, 1), a.NewTopic("bad/name", 1, 1)]
    ),
    "create a topic with replicas and configs": lambda a, c: c.create_topics(
        [a.NewTopic("new", -1, -1, {0: [0], 1: [0]}, {"retention.ms": "5000"})]
    ),
    "only check a topic": lambda a, c: c.create_topics(
        [a.NewTopic("new", 2, 1)], timeout_ms=5_000, validate_only=True
    ),
    "delete topics": lambda a, c: c.delete_topics(["orders", "missing"], 5_000),
    "list topics": lambda a, c: c.list_topics(),
    "describe topics": lambda a, c: c.describe_topics(["orders"]),
    "describe all topics": lambda a, c: c.describe_topics(),
    "describe the cluster": lambda a, c: c.describe_cluster(),
    "describe configs": lambda a, c: c.describe_configs(
        [a.config_resource.ConfigResource("topic", "orders")]
    ),
    "describe one config with its places": lambda a, c: c.describe_configs(
        [a.config_resource.ConfigResource("topic", "orders", {"retention.ms": ""})],
        include_synonyms=True,
    ),
    "describe configs of a broker and a topic": lambda a, c: c.describe_configs(
        [
            a.config_resource.ConfigResource("topic", "orders", {"retention.ms": ""}),
            a.config_resource.ConfigResource(
                a.config_resource.ConfigResourceType.BROKER, 0, {"node.id": ""}
            ),
        ]
    ),
    "describe configs of a missing broker": lambda a, c: c.describe_configs(
        [a.config_resource.ConfigResource("broker", 7)]
    ),
    "alter configs": lambda a, c: c.alter_configs(
        [a.config_resource.ConfigResource("topic", "orders", {"retention.ms": "7"})]
    ),
    "create partitions": lambda a, c: c.create_partitions(
        {"orders": a.NewPartitions(5)}
    ),
    "create partitions with replicas": lambda a, c: c.create_partitions(
        {"orders": a.NewPartitions(5, [[0], [0]])}, validate_only=True
    ),
    "create fewer partitions": lambda a, c: c.create_partitions(
        {"orders": a.NewPartitions(1)}
    ),
    "create partitions of a missing topic": lambda a, c: c.create_partitions(
        {"missing": a.NewPartitions(3)}
    ),
    "describe a missing group": lambda a, c: c.describe_consumer_groups(["missing"]),
    "find a coordinator": lambda a, c: c.find_coordinator("g"),
    "find one of transactions": lambda a, c: c.find_coordinator("t", 1),
    "offsets of a missing group": lambda a, c: c.list_consumer_group_offsets("missing"),
    "list groups": lambda a, c: c.list_consumer_groups(),
    "list groups of a missing broker": lambda a, c: c.list_consumer_groups([7]),
    "delete records": lambda a, c: c.delete_records({TP: a.RecordsToDelete(2)}),
    "delete all records": lambda a, c: c.delete_records({TP: a.RecordsToDelete(-1)}),
    "delete records beyond the end": lambda a, c: c.delete_records(
        {TP: a.RecordsToDelete(99)}
    ),
}


@pytest.mark.parametrize("name", CALLS)
async def test_the_same_calls_bring_the_same(name: str) -> None:
    found = []
    for package in BOTH:
        async with Broker(topics={"orders": 3}) as broker:
            async with kafkaio.Producer(broker.bootstrap_servers) as producer:
                for number in range(5):
                    await producer.send("orders", b"%d" % number, partition=0)
            answer = await results(package, broker, CALLS[name])
            found.append(without_addresses(answer))
    assert found[0] == found[1]


def without_addresses(answer: Any) -> Any:
    """An answer without what differs from broker to broker."""
    if isinstance(answer, dict):
        return {
            key: without_addresses(value)
            for key, value in answer.items()
            if key not in {"port", "cluster_id"}
        }
    return [*map(without_addresses, answer)] if isinstance(answer, list) else answer


async def test_groups_and_their_offsets(
    admin: AIOKafkaAdminClient, broker: Broker
) -> None:
    other = theirs.admin.AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    await other.start()
    async with kafkaio.Consumer(
        broker.bootstrap_servers,
        topics="orders",
        group_id="g",
        client_id="me",
        group_protocol="classic",
        auto_offset_reset="earliest",
    ) as consumer:
        await consumer.commit({TP: kafkaio.OffsetAndMetadata(3, "text")})
        found, expected = [
            (await each.describe_consumer_groups(["g"]))[0].groups[0]
            for each in (admin, other)
        ]
        assert tuple(found) == tuple(expected)
        assert (found.group, found.state, len(found.members)) == ("g", "Stable", 1)
        error_code, group, *_ = found
        assert (error_code, group) == (0, "g")
        assert found.members[0].client_id == "me"
        (row,) = (await admin.describe_consumer_groups(["g"], 0, True))[0].groups
        assert row.authorized_operations > 0
        for given in (None, [TP], [TP, TopicPartition("orders", 1)]):
            assert await admin.list_consumer_group_offsets(
                "g", partitions=given
            ) == await other.list_consumer_group_offsets("g", partitions=given)
        assert await admin.list_consumer_groups() == [("g", "consumer")]
        assert await admin.list_consumer_groups([0]) == [("g", "consumer")]
    await other.close()


# ---- its life, and what its values check ---------------------------------------------


async def test_before_start_and_after_close(broker: Broker) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    with pytest.raises(errors.NodeNotReadyError):
        await admin.list_topics()
    with pytest.raises(errors.NodeNotReadyError):
        await admin.delete_records({})
    await admin.close()
    await admin.start()
    await admin.start()
    assert await admin.list_topics() == ["orders"]
    await admin.close()
    await admin.close()
    with pytest.raises(errors.NodeNotReadyError):
        await admin.describe_cluster()


def test_no_loop_runs() -> None:
    with pytest.raises(RuntimeError, match="async function"):
        AIOKafkaAdminClient()


async def test_old_brokers() -> None:
    async with Broker(as_version="2.1", topics={"orders": 1}) as broker:
        admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        await admin.start()
        assert await admin.find_coordinator("g") == 0
        answer = await admin.delete_topics(["orders"])
        assert answer.topic_error_codes == [("orders", 0)]
        await admin.close()


@pytest.mark.parametrize(
    ("numbers", "replicas"),
    [((1, 1), {0: [0]}), ((-1, 1), None), ((1, -1), None), ((-1, -1), None)],
)
def test_topics_are_described_in_one_way(
    numbers: tuple[int, int], replicas: dict[int, list[int]] | None
) -> None:
    for package, kind in ((theirs.errors, theirs.admin.NewTopic), (errors, NewTopic)):
        with pytest.raises(package.IllegalArgumentError):
            kind("t", *numbers, replicas)


def test_kinds_of_resources() -> None:
    assert ConfigResource("broker", 1).resource_type is ConfigResourceType.BROKER
    assert ConfigResource("TOPIC", "t").resource_type is ConfigResourceType.TOPIC
    with pytest.raises(KeyError):
        ConfigResource("group", "g")


def test_values_keep_what_they_were_given() -> None:
    assert NewPartitions(3, [[1]]).new_assignments == [[1]]
    assert RecordsToDelete(5).before_offset == 5


async def test_answers_are_rows_and_plain_values(admin: AIOKafkaAdminClient) -> None:
    answer = await admin.create_topics([NewTopic("z", 1, 1), NewTopic("a", 1, 1)])
    assert [each.topic for each in answer.topic_errors] == ["z", "a"]
    topic, code, message = answer.topic_errors[0]
    assert (topic, code, message) == ("z", 0, None)
    assert answer.to_object() == {
        "throttle_time_ms": 0,
        "topic_errors": [
            {"topic": "z", "error_code": 0, "error_message": None},
            {"topic": "a", "error_code": 0, "error_message": None},
        ],
    }


async def test_brokers_know_what_was_created_and_deleted() -> None:
    async with Broker(nodes=3, metadata_delay=0.2) as broker:
        admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        await admin.start()
        await admin.create_topics([NewTopic("new", 3, 1)])
        for _ in range(6):  # any broker is asked
            assert await admin.list_topics() == ["new"]
        await admin.delete_topics(["new"])
        for _ in range(6):
            assert await admin.list_topics() == []
        await admin.close()


async def test_row_describing_a_topic_creates_none(
    admin: AIOKafkaAdminClient, broker: Broker
) -> None:
    """``describe_topics`` of a topic that is not there does not create it."""
    (found,) = await admin.describe_topics(["missing"])
    assert (found["error_code"], found["partitions"]) == (3, [])
    await asyncio.sleep(0)
    assert await admin.list_topics() == ["orders"]


async def test_row_records_of_an_unknown_partition(admin: AIOKafkaAdminClient) -> None:
    """``delete_records`` of an unknown partition raises UnknownTopicOrPartitionError.

    aiokafka raises NotLeaderForPartitionError.
    """
    unknown = {
        TopicPartition(name, 7): RecordsToDelete(1) for name in ("orders", "missing")
    }
    with pytest.raises(errors.UnknownTopicOrPartitionError):
        await admin.delete_records(unknown)
