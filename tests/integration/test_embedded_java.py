"""Kafka's own tools against the embedded broker, as against any Kafka."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest

from kafkaio import NewRecord, Producer
from kafkaio.testing import Broker
from kafkaio.testing.kafka._releases import find_release
from tests.support.java import Toolbox, ToolOutput

# The version of a real Kafka means nothing here, so once is enough.
pytestmark = [
    pytest.mark.kafka_versions("newest"),
    pytest.mark.not_embedded("runs on embedded brokers of its own in any case"),
    pytest.mark.timeout(180),
]

TOOLS = Toolbox(find_release())
CONFIGS = "org.apache.kafka.tools.ConfigCommand"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
TOPICS = "org.apache.kafka.tools.TopicCommand"


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(nodes=3, topics={"t": 3}) as broker:
        yield broker


async def run(broker: Broker, tool: str, *args: str, stdin: str = "") -> ToolOutput:
    """Run a tool that must end well."""
    servers = ("--bootstrap-server", broker.bootstrap_servers)
    output = await TOOLS.run(tool, *servers, *args, stdin=stdin)
    assert output.returncode == 0, output.stdout + output.stderr
    return output


async def fill(broker: Broker, count: int) -> None:
    """Write records to the three partitions of topic t by turns."""
    async with Producer(broker.bootstrap_servers) as producer:
        for number in range(count):
            record = NewRecord(str(number).encode(), partition=number % 3)
            await producer.send_many("t", [record])


def table(output: ToolOutput) -> list[dict[str, str]]:
    """The rows of what a tool prints, by the names of the columns."""
    lines = [line.split() for line in output.lines if line.strip()]
    start = next(i for i, line in enumerate(lines) if line[0] == "GROUP")
    names = lines[start]
    return [dict(zip(names, line, strict=False)) for line in lines[start + 1 :]]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_console_producer_and_consumer(broker: Broker, protocol: str) -> None:
    lines = [f"key-{n}\tvalue {n}" for n in range(50)]
    await run(
        broker,
        PRODUCER,
        *("--topic", "t", "--reader-property", "parse.key=true"),
        stdin="\n".join(lines) + "\n",
    )
    output = await run(
        broker,
        CONSUMER,
        *("--topic", "t", "--from-beginning", "--group", "console"),
        *("--max-messages", "50", "--timeout-ms", "30000"),
        *("--formatter-property", "print.key=true"),
        *("--command-property", f"group.protocol={protocol}"),
    )
    assert sorted(output.lines) == sorted(lines)
    (group,) = table(await run(broker, GROUPS, "--list", "--state", "--type"))
    assert group == {"GROUP": "console", "TYPE": protocol.title(), "STATE": "Empty"}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_consumer_groups(broker: Broker, protocol: str) -> None:
    await fill(broker, 30)
    ask = ("--group", "g")
    async with await TOOLS.start(
        CONSUMER,
        *("--bootstrap-server", broker.bootstrap_servers, "--topic", "t"),
        *("--from-beginning", "--group", "g"),
        *("--command-property", f"group.protocol={protocol}"),
        *("--command-property", "auto.commit.interval.ms=100"),
    ) as consumer:
        seen = {await consumer.readline() for _ in range(30)}
        assert seen == {str(number) for number in range(30)}

        listed = await run(broker, GROUPS, "--list")
        assert listed.lines == ["g"]
        (member,) = table(await run(broker, GROUPS, "--describe", *ask, "--members"))
        assert (member["CLIENT-ID"], member["#PARTITIONS"]) == ("console-consumer", "3")
        state = await run(broker, GROUPS, "--describe", *ask, "--state")
        assert "Stable" in state.stdout
        refused = await run(broker, GROUPS, "--delete", *ask)
        assert "GroupNotEmptyException" in refused.stdout
        consumer.terminate()
        await consumer.wait()

    rows = table(await run(broker, GROUPS, "--describe", *ask))
    assert {row["PARTITION"]: row["CURRENT-OFFSET"] for row in rows} == dict.fromkeys(
        "012", "10"
    )
    assert {row["LAG"] for row in rows} == {"0"}
    reset = await run(
        broker,
        GROUPS,
        *("--reset-offsets", *ask, "--topic", "t:0,1", "--shift-by", "-4", "--execute"),
    )
    assert [row["NEW-OFFSET"] for row in table(reset)] == ["6", "6"]
    earliest = ("--reset-offsets", *ask, "--topic", "t:2", "--to-earliest")
    await run(broker, GROUPS, *earliest, "--execute")
    rows = table(await run(broker, GROUPS, "--describe", *ask))
    assert {row["PARTITION"]: row["LAG"] for row in rows} == {
        "0": "4",
        "1": "4",
        "2": "10",
    }
    await run(broker, GROUPS, "--delete-offsets", *ask, "--topic", "t:2")
    rows = table(await run(broker, GROUPS, "--describe", *ask))
    assert {row["PARTITION"] for row in rows} == {"0", "1"}
    deleted = await run(broker, GROUPS, "--delete", *ask)
    assert "successful" in deleted.stdout
    assert (await run(broker, GROUPS, "--list")).stdout.strip() == ""


async def test_topics_and_configs(broker: Broker) -> None:
    made = ("--topic", "made", "--partitions", "2", "--replication-factor", "2")
    await run(broker, TOPICS, "--create", *made, "--config", "retention.ms=1000")
    assert (await run(broker, TOPICS, "--list")).lines == ["made", "t"]
    await run(broker, TOPICS, "--alter", "--topic", "made", "--partitions", "5")
    described = (await run(broker, TOPICS, "--describe", "--topic", "made")).stdout
    assert re.search(r"PartitionCount: 5\s+ReplicationFactor: 2", described)
    assert "retention.ms=1000" in described
    assert described.count("Isr: ") == 5

    entity = ("--entity-type", "topics", "--entity-name", "made")
    added = "max.message.bytes=2000,cleanup.policy=compact"
    await run(broker, CONFIGS, "--alter", *entity, "--add-config", added)
    await run(broker, CONFIGS, "--alter", *entity, "--delete-config", "retention.ms")
    shown = (await run(broker, CONFIGS, "--describe", *entity)).stdout
    assert "max.message.bytes=2000" in shown
    assert "cleanup.policy=compact" in shown
    assert "retention.ms" not in shown

    await run(broker, TOPICS, "--delete", "--topic", "made")
    assert (await run(broker, TOPICS, "--list")).lines == ["t"]


async def test_performance_tools(broker: Broker) -> None:
    count = 50_000
    produced = await TOOLS.run(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", "t", "--num-records", str(count), "--record-size", "100"),
        *("--throughput", "-1", "--command-property"),
        f"bootstrap.servers={broker.bootstrap_servers}",
    )
    assert produced.returncode == 0, produced.stderr
    assert f"{count} records sent" in produced.lines[-1]
    consumed = await run(
        broker,
        "org.apache.kafka.tools.ConsumerPerformance",
        *("--topic", "t", "--num-records", str(count), "--timeout", "30000"),
    )
    columns, values = (line.split(", ") for line in consumed.lines[-2:])
    found = dict(zip(columns, values, strict=True))
    assert int(found["data.consumed.in.nMsg"]) == count
