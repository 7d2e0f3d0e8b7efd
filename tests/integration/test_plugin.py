"""The fixtures of the pytest plugin, on the embedded broker and on a real Kafka."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from kafkaio import Consumer, Producer
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.kafka._source import BOOTSTRAP_VARIABLE, KAFKA_VARIABLE
from kafkaio.testing.pytest_plugin import TopicFactory
from tests.support.patience import HANGS

pytest_plugins = ("pytester",)


@pytest.mark.kafka("embedded", "real", partitions=3)
async def test_a_round_trip(
    kafka_producer: Producer,
    kafka_consumer: Consumer,
    kafka_topic: str,
    kafka_topics: TopicFactory,
) -> None:
    for index in range(3):
        await kafka_producer.send(kafka_topic, b"%d" % index, partition=index)
    async with asyncio.timeout(HANGS):
        found = {(await anext(kafka_consumer)).value for _ in range(3)}
    assert found == {b"0", b"1", b"2"}
    other = kafka_topics(config={"cleanup.policy": "compact"})
    assert (await kafka_producer.send(other, b"v", key=b"k")).offset == 0


LEAVES_TOPICS = """
import pytest

@pytest.mark.kafka("real")
@pytest.mark.parametrize("number", range(4))
def test_leaves_{stem}(kafka_topic, number):
    assert number % 2
"""


def test_each_worker_deletes_its_topics(
    real_kafka: Kafka, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(KAFKA_VARIABLE, raising=False)
    monkeypatch.setenv(BOOTSTRAP_VARIABLE, real_kafka.bootstrap_servers)
    stem = uuid4().hex[:8]
    pytester.makepyfile(LEAVES_TOPICS.format(stem=stem))
    result = pytester.runpytest_subprocess(
        *("-p", "kafkaio.testing.pytest_plugin", "-n", "2", "-W", "error"),
        *("-o", "asyncio_default_fixture_loop_scope=function"),
    )
    result.assert_outcomes(passed=2, failed=2)

    async def names() -> frozenset[str]:
        async with Consumer(real_kafka.bootstrap_servers, assign=[]) as consumer:
            return await consumer.topics()

    assert not [name for name in asyncio.run(names()) if stem in name]
