"""Elections, moves of replicas and config resources, as Kafka 4.3.1 answers them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

import kafkaio
from kafkaio import messages
from kafkaio.protocol.messages.alter_partition_reassignments import (
    ReassignablePartition,
    ReassignableTopic,
)
from kafkaio.protocol.messages.elect_leaders import TopicPartitions
from kafkaio.testing import Broker

NOT_NEEDED = "Leader election not needed for topic partition."


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(nodes=3, topics={"t": 2}) as broker:
        yield broker


@pytest.fixture
async def client(broker: Broker) -> AsyncIterator[kafkaio.Client]:
    async with kafkaio.Client(broker.bootstrap_servers) as client:
        yield client


async def elect(
    client: kafkaio.Client, kind: int, partitions: dict[str, list[int]] | None
) -> tuple[int, dict[tuple[str, int], tuple[int, str | None]]]:
    request = messages.ElectLeadersRequest(
        election_type=kind,
        topic_partitions=None
        if partitions is None
        else [
            TopicPartitions(topic=topic, partitions=numbers)
            for topic, numbers in partitions.items()
        ],
    )
    answer = await client.request(request, to=kafkaio.Controller)
    return answer.error_code, {
        (topic.topic, it.partition_id): (it.error_code, it.error_message)
        for topic in answer.replica_election_results
        for it in topic.partition_result
    }


async def move(
    client: kafkaio.Client, topic: str, number: int, replicas: list[int] | None
) -> tuple[int, str | None]:
    one = ReassignablePartition(partition_index=number, replicas=replicas)
    request = messages.AlterPartitionReassignmentsRequest(
        allow_replication_factor_change=False,
        topics=[ReassignableTopic(name=topic, partitions=[one])],
    )
    answer = await client.request(request, to=kafkaio.Controller)
    (found,) = answer.responses[0].partitions
    return found.error_code, found.error_message


@pytest.mark.parametrize("kind", [0, 1])
async def test_elections_that_are_not_needed(client: kafkaio.Client, kind: int) -> None:
    assert await elect(client, kind, {"t": [0, 9], "no": [0]}) == (
        0,
        {
            ("t", 0): (84, NOT_NEEDED),
            ("t", 9): (3, "No such partition as t-9"),
            ("no", 0): (3, "No such topic as no"),
        },
    )
    # Of all partitions, those that need none are left out.
    assert await elect(client, kind, None) == (0, {})
    assert await elect(client, kind, {}) == (0, {})


async def test_an_election_of_another_kind(client: kafkaio.Client) -> None:
    text = "Unknown election type 7"
    assert await elect(client, 7, {"t": [0]}) == (42, {("t", 0): (42, text)})
    assert await elect(client, 7, None) == (42, {})


async def test_preferred_leaders_come_back(
    broker: Broker, client: kafkaio.Client
) -> None:
    async with kafkaio.Admin(client) as admin:
        await admin.create_topics([kafkaio.NewTopic("r", 1, 3)])
        (partition,) = (await admin.describe_topics(["r"]))["r"].partitions
        preferred, other = partition.replicas[:2]
        broker.control.move_leader(("r", 0), other)
        assert await elect(client, 0, {"r": [0]}) == (0, {("r", 0): (0, None)})
        assert broker.control.leader(("r", 0)) == preferred


async def test_replicas_are_moved(client: kafkaio.Client) -> None:
    nodes = sorted(client.cluster.brokers)
    assert await move(client, "t", 0, None) == (85, None)
    for replicas, problem in (
        ([], "an empty replica list"),
        ([99], "broker 99, but no such broker is registered"),
        ([nodes[0]] * 2, f"the broker {nodes[0]} more than once"),
    ):
        text = f"The manual partition assignment includes {problem}."
        assert await move(client, "t", 0, replicas) == (39, text)
    assert await move(client, "no", 0, nodes[:1]) == (
        3,
        "Unable to find a topic named no.",
    )
    assert await move(client, "t", 9, nodes[:1]) == (3, "Unable to find partition t:9.")
    async with kafkaio.Admin(client) as admin:
        await admin.create_topics([kafkaio.NewTopic("s", 1, 1)])
        (before,) = (await admin.describe_topics(["s"]))["s"].partitions
        target = next(node for node in nodes if node not in before.replicas)
        changed = "The replication factor is changed from 1 to 2"
        assert await move(client, "s", 0, nodes[:2]) == (38, changed)
        assert await move(client, "s", 0, [target]) == (0, None)
        after = before
        while after.leader != target:  # nodes learn of it a moment later
            (after,) = (await admin.describe_topics(["s"]))["s"].partitions
    assert (after.leader, after.replicas, after.isr) == (target, (target,), (target,))


async def test_what_has_configs(client: kafkaio.Client) -> None:
    async def listed(*types: int) -> tuple[int, list[tuple[int, str]]]:
        request = messages.ListConfigResourcesRequest(resource_types=list(types))
        answer = await client.request(request)
        return answer.error_code, [
            (it.resource_type, it.resource_name) for it in answer.config_resources
        ]

    nodes = [str(node) for node in sorted(client.cluster.brokers)]
    assert await listed(2) == (0, [(2, "t")])
    assert await listed(4) == (0, [(4, node) for node in nodes])
    assert await listed(16) == await listed(32) == (0, [])
    assert await listed(99) == (35, [])
    assert await listed() == (
        0,
        [(2, "t"), *((kind, node) for kind in (4, 8) for node in nodes)],
    )
