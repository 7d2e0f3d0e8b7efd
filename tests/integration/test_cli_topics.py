"""``kafkaio topics``, on the embedded broker and on real ones."""

from __future__ import annotations

import pytest

from kafkaio.testing.kafka import Kafka
from tests.support.cli import run_beside, terminal

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


async def test_topics_are_listed(real_kafka: Kafka) -> None:
    servers = ("-b", real_kafka.bootstrap_servers)
    listed = (await run_beside("topics", "list", *servers)).check()
    assert listed.rows[0] == ["NAME", "PARTITIONS"]
    document = (await run_beside("topics", "list", "--json", *servers)).check().document
    assert [each["name"] for each in document["topics"]] == [
        row[0] for row in listed.rows[1:]
    ]


async def test_in_a_terminal(real_kafka: Kafka) -> None:
    async with terminal("topics", "list", "-b", real_kafka.bootstrap_servers) as shown:
        assert await shown.ended() == 0
        assert "PARTITIONS" in shown.text
        assert "\x1b[" in shown.raw
