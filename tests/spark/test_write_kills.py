"""SIGKILL of a Python worker, of an executor and of a driver, on a cluster."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from tests.spark.standalone import Standalone
from tests.spark.torture_job import Job
from tests.spark.torture_protocol import Cluster, read
from tests.spark.torture_sink import numbered

BATCHES, ROWS, PARTITIONS = 3, 200, 2
LIMIT = 280.0

#: With every change, test_write_faults.py has what killed tasks leave behind, and
#: tests/unit/spark any order of their deaths.
pytestmark = [pytest.mark.timeout(900), pytest.mark.nightly]


@pytest.mark.parametrize(
    "victim",
    ["worker", "executor", "driver"],
)
def test_every_row_once_although_one_is_killed(
    standalone: Standalone,
    real_kafka: Kafka,
    topic: TopicFactory,
    tmp_path: Path,
    victim: str,
) -> None:
    name = topic(partitions=PARTITIONS)
    wanted = numbered(tmp_path / "in", BATCHES, ROWS)
    options: dict[str, Any] = {
        "kafka.bootstrap.servers": real_kafka.bootstrap_servers,
        "topic": name,
        "exactlyOnce": "true",
        "test.fault": victim,
    }
    with Job(standalone.url, tmp_path, speculates=False, **options) as job:
        ended = job.wait(LIMIT)
    assert (tmp_path / victim).exists()
    assert ended == (-9 if victim == "driver" else 0)
    if victim == "driver":
        with Job(standalone.url, tmp_path, speculates=False, **options) as job:
            assert job.wait(LIMIT) == 0
    events = (tmp_path / "events").read_text().splitlines()
    assert any(event.startswith("attempt of 1-1-") for event in events)
    cluster = Cluster(real_kafka.bootstrap_servers)
    found = Counter(asyncio.run(read(cluster, name, PARTITIONS, "read_committed")))
    assert found == Counter(wanted)
    # The killed worker had written to the log. One whose executor or driver is killed
    # outlives it for a moment, and may commit: then its success is what was lost.
    logged = asyncio.run(read(cluster, name, PARTITIONS, "read_uncommitted"))
    assert len(logged) > len(wanted) or victim != "worker"
