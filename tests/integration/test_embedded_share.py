"""Share consumers of Java and of confluent-kafka on the embedded broker.

franz-go's runs in ``tests/franz_go``.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import anyio.to_thread
import pytest

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing import Broker, error
from kafkaio.testing.kafka._releases import find_release
from tests.support import share_workers
from tests.support.java import Toolbox

# The version of a real Kafka means nothing here, so once is enough.
pytestmark = [
    pytest.mark.kafka_versions("newest"),
    pytest.mark.not_embedded("runs on embedded brokers of its own in any case"),
    pytest.mark.timeout(180),
]

_SOURCES = Path(__file__).parent.parent / "java" / "group"
JAVA = Toolbox(find_release()).program(_SOURCES, "ShareWorker")


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    # As a member hears of its partitions with a heartbeat.
    config = {
        "group.share.min.heartbeat.interval.ms": 100,
        "group.share.heartbeat.interval.ms": 200,
    }
    topics = {share_workers.TOPIC: share_workers.PARTITIONS}
    async with Broker(nodes=3, topics=topics, config=config) as broker:
        yield broker


async def test_java(broker: Broker) -> None:
    command = await anyio.to_thread.run_sync(JAVA.command)
    await share_workers.check_work(command, broker)


async def test_confluent(broker: Broker) -> None:
    pytest.importorskip("confluent_kafka", "2.16")
    command = [sys.executable, "-m", "tests.support.share_worker"]
    await share_workers.check_work(command, broker)


async def test_a_fresh_cluster_is_waited_for(broker: Broker) -> None:
    pytest.importorskip("confluent_kafka", "2.16")
    # As Kafka answers while it makes the topic of the states.
    for code in (ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
        broker.faults.on("ShareFetch", error(code, times=2))
    await share_workers.prepare(broker)
    await share_workers.produce(broker, "good-0")
    command = [sys.executable, "-m", "tests.support.share_worker"]
    async with share_workers.working(command, broker) as worker:
        assert await worker.did() == ["good-0 1"]
        await worker.leave()
