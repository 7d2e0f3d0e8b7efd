"""Other people's transactions against the embedded broker, and Java reads its files."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kafkaio import Consumer, Producer, TopicPartition
from kafkaio.testing import Broker
from kafkaio.testing._broker.versions import NEWEST
from kafkaio.testing.kafka._releases import find_release
from tests.support.java import Toolbox
from tests.support.patience import HANGS

# The version of a real Kafka means nothing here, so once is enough.
pytestmark = [
    pytest.mark.kafka_versions("newest"),
    pytest.mark.not_embedded("runs on embedded brokers of its own in any case"),
    pytest.mark.timeout(180),
]

TOOLS = Toolbox(find_release())
COPY = TOOLS.program(Path("tests/java/transactions/CopyOnce.java"))
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
DUMP = "org.apache.kafka.tools.DumpLogSegments"
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
COUNT = 200
VALUES = sorted(b"%d" % number for number in range(COUNT))
#: The markers of a busy cluster: each transaction meets those of the one before.
LATE = 0.015


@asynccontextmanager
async def filled(**options: Any) -> AsyncIterator[Broker]:
    """A broker with records in the topic "in"."""
    async with Broker(topics={"in": 2, "out": 2}, **options) as broker:
        broker.control.delay_markers(LATE)
        async with Producer(broker.bootstrap_servers) as producer:
            for number in range(COUNT):
                await producer.enqueue("in", b"%d" % number, partition=number % 2)
        yield broker


async def committed_values(broker: Broker, count: int) -> list[bytes]:
    """What a read_committed consumer of ours finds in the topic "out"."""
    found: list[bytes] = []
    async with (
        asyncio.timeout(HANGS),
        Consumer(
            broker.bootstrap_servers,
            assign=[TopicPartition("out", index) for index in range(2)],
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        ) as consumer,
    ):
        async for record in consumer:
            found.append(record.value or b"")
            if len(found) == count:
                return sorted(found)
    raise AssertionError


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("level", [2, 1])
async def test_java_copies_exactly_once(
    protocol: str, level: int, tmp_path: Path
) -> None:
    features = {"transaction.version": level}
    async with filled(features=features, nodes=3, data_dir=tmp_path) as broker:
        output = await COPY.run(
            *(broker.bootstrap_servers, "in", "out", str(COUNT), protocol)
        )
        assert output.returncode == 0, output.stderr
        assert output.lines[-2:] == [f"committed {COUNT}", "fenced"]
        expected = sorted([*VALUES, b"last"])
        assert await committed_values(broker, COUNT + 1) == expected
        for index in range(2):
            assert broker.control.committed("g", ("in", index)) == COUNT // 2
        assert broker.control.open_transactions() == []
        servers = ("--bootstrap-server", broker.bootstrap_servers)
        console = await TOOLS.run(
            CONSUMER,
            *(*servers, "--topic", "out", "--from-beginning"),
            *("--isolation-level", "read_committed"),
            *("--max-messages", str(COUNT + 1), "--timeout-ms", "20000"),
        )
        assert sorted(line.encode() for line in console.lines) == expected
        listed = await TOOLS.run(TRANSACTIONS, *servers, "list")
        assert re.search(r"copy\s+\d+\s+\d+\s+CompleteCommit", listed.stdout)
    await dump(tmp_path, level)


def files_of(directory: Path, pattern: str) -> list[tuple[str, int]]:
    """The files that are not empty, and their sizes."""
    found = [(str(one), one.stat().st_size) for one in directory.glob(pattern)]
    return sorted(one for one in found if one[1])


async def dump(directory: Path, level: int) -> None:
    """Have Kafka's log dump read the files of transactions."""

    async def lines_of(*args: str) -> list[str]:
        output = await TOOLS.run(DUMP, *args)
        assert output.returncode == 0, output.stderr
        return output.lines

    ((log, _),) = files_of(directory, "__transaction_state-*/*.log")
    found = await lines_of("--transaction-log-decoder", "--files", log)
    payloads = [line.replace(" ", "") for line in found if "payload" in line]
    assert payloads
    assert all("copy" in line for line in payloads)
    assert f'"version":"{min(level, 1)}"' in payloads[0]
    assert '"transactionStatus":4' in payloads[-1]
    assert ('"clientTransactionVersion":2' in payloads[-1]) == (level == 2)
    indexes = files_of(directory, "out-*/*.txnindex")
    assert indexes
    for index, size in indexes:
        found = await lines_of("--files", index)
        assert len([line for line in found if "producerId" in line]) == size // 34
    for snapshot, _ in files_of(directory, "out-*/*.snapshot"):
        found = await lines_of("--files", snapshot)
        assert any("producerId" in line for line in found)
    for log, _ in files_of(directory, "out-*/*.log"):
        found = await lines_of("--deep-iteration", "--files", log)
        markers = [line for line in found if "endTxnMarker" in line]
        assert [line.split("endTxnMarker: ")[1] for line in markers[:2]] == [
            "ABORT coordinatorEpoch: 0",
            "COMMIT coordinatorEpoch: 0",
        ]


def copy_with_confluent(servers: str) -> str:
    """Copy the topic "in" with aborts between; return how a zombie ends."""
    import confluent_kafka

    def producer() -> confluent_kafka.Producer:
        return confluent_kafka.Producer(
            {
                "bootstrap.servers": servers,
                "transactional.id": "copy",
                "log_level": 0,
            }
        )

    tx = producer()
    tx.init_transactions(20)
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe(["in"])
    copied = 0
    while copied < COUNT:
        records = consumer.consume(50, 0.5)
        if not records:
            continue
        for commits in (False, True):
            tx.begin_transaction()
            for record in records:
                tx.produce("out", record.value(), partition=record.partition())
            tx.send_offsets_to_transaction(
                consumer.position(consumer.assignment()),
                consumer.consumer_group_metadata(),
                20,
            )
            if commits:
                tx.commit_transaction(20)
            else:
                tx.abort_transaction(20)
        copied += len(records)
    consumer.close()
    tx.begin_transaction()
    tx.produce("out", b"never", partition=0)
    tx.flush(20)
    producer().init_transactions(20)
    try:
        tx.commit_transaction(20)
    except confluent_kafka.KafkaException as error:
        found = error.args[0]
        assert found.fatal()
        return str(found.name())
    return ""


@pytest.mark.parametrize("release", ["2.8", "3.9", NEWEST])
async def test_confluent_copies_exactly_once(release: str) -> None:
    pytest.importorskip("confluent_kafka")
    async with filled(as_version=release) as broker:
        ended = await asyncio.to_thread(copy_with_confluent, broker.bootstrap_servers)
        assert ended == "_FENCED"
        assert await committed_values(broker, COUNT) == VALUES
        for index in range(2):
            assert broker.control.committed("g", ("in", index)) == COUNT // 2


@pytest.mark.parametrize("release", ["2.8", NEWEST])
async def test_aiokafka_copies_exactly_once(release: str) -> None:
    aiokafka = pytest.importorskip("aiokafka")
    async with filled(as_version=release) as broker:
        servers = broker.bootstrap_servers
        tx = aiokafka.AIOKafkaProducer(
            bootstrap_servers=servers, transactional_id="copy"
        )
        consumer = aiokafka.AIOKafkaConsumer(
            "in",
            bootstrap_servers=servers,
            group_id="g",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
        )
        await tx.start()
        await consumer.start()
        copied = 0
        async with asyncio.timeout(HANGS):
            while copied < COUNT:
                found = await consumer.getmany(timeout_ms=500, max_records=50)
                for commits in (False, True):
                    if not found:
                        continue
                    await tx.begin_transaction()
                    for place, records in found.items():
                        for record in records:
                            await tx.send(
                                "out", record.value, partition=place.partition
                            )
                    await tx.send_offsets_to_transaction(
                        {tp: some[-1].offset + 1 for tp, some in found.items()}, "g"
                    )
                    if commits:
                        await tx.commit_transaction()
                    else:
                        await tx.abort_transaction()
                copied += sum(map(len, found.values()))
        await consumer.stop()
        await tx.stop()
        assert await committed_values(broker, COUNT) == VALUES
        for index in range(2):
            assert broker.control.committed("g", ("in", index)) == COUNT // 2
