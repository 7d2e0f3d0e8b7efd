"""The clusters that tests share: what every other integration test stands on."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from kafkaio.testing.kafka import Kafka, TopicNotCreated
from kafkaio.testing.kafka._source import parse_bootstrap
from kafkaio.testing.kafka._wire import metadata
from kafkaio.testing.pytest_plugin import TopicFactory

pytestmark = [pytest.mark.kafka_versions("newest"), pytest.mark.timeout(120)]


async def wait_until(condition: Callable[[], bool]) -> None:
    def poll() -> None:
        end = time.monotonic() + 20
        while True:
            with suppress(OSError):
                if condition():
                    return
            assert time.monotonic() < end, "it did not happen"
            time.sleep(0.02)

    await asyncio.to_thread(poll)


def broker_ids(address: tuple[str, int]) -> set[int]:
    return set(metadata(address).brokers)


def test_a_shared_broker_answers(real_kafka: Kafka) -> None:
    (address,) = parse_bootstrap(real_kafka.bootstrap_servers)
    assert broker_ids(address) == {1}


async def test_topics_have_leaders_once_created(
    real_kafka: Kafka, topic: TopicFactory
) -> None:
    name = topic(partitions=3, config={"retention.ms": "1000"})
    (address,) = parse_bootstrap(real_kafka.bootstrap_servers)
    found = metadata(address, (name,)).topics[name]
    assert [partition.leader for partition in found] == [1, 1, 1]
    with pytest.raises(TopicNotCreated) as caught:
        await real_kafka.create_topic(name)
    assert caught.value.code == 36


async def test_a_cluster_survives_each_fault(real_kafka_cluster: Kafka) -> None:
    kafka = real_kafka_cluster
    first, second, third = parse_bootstrap(kafka.bootstrap_servers)
    assert broker_ids(first) == broker_ids(third) == {1, 2, 3}
    await kafka.kill(2)
    await wait_until(lambda: broker_ids(first) == {1, 3})
    await kafka.start(2)
    assert broker_ids(second) == {1, 2, 3}
    await kafka.stop(3)
    await wait_until(lambda: broker_ids(first) == {1, 2})
    await kafka.start(3)
    assert broker_ids(third) == {1, 2, 3}


async def test_leaders_move_away_from_a_paused_node(
    real_kafka_cluster: Kafka, cluster_topic: TopicFactory
) -> None:
    kafka = real_kafka_cluster
    name = cluster_topic(partitions=6)
    first, *_ = parse_bootstrap(kafka.bootstrap_servers)
    await kafka.pause(3)
    await wait_until(
        lambda: all(p.leader in {1, 2} for p in metadata(first, (name,)).topics[name])
    )


async def test_the_fixture_repaired_the_cluster(real_kafka_cluster: Kafka) -> None:
    for address in parse_bootstrap(real_kafka_cluster.bootstrap_servers):
        assert broker_ids(address) == {1, 2, 3}
