"""The logs of transactions are Kafka's own: each broker goes on with the other's.

A transaction is begun on one kind of broker. Its files, those of the partition and of
the coordinator, are put under a broker of the other kind, which ends it.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kafkaio._client import Client
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.testing import Broker
from kafkaio.testing.kafka._releases import find_release
from kafkaio.types import TopicPartition
from tests.support.java import Toolbox
from tests.support.kafka import Kafka
from tests.support.raw_transactions import (
    NEW,
    PASSING,
    Cluster,
    Ends,
    Identity,
    RawProducer,
    describe,
    ends,
    led,
    producers,
    stable,
    until,
)

pytestmark = [
    pytest.mark.kafka_versions("newest"),
    pytest.mark.not_embedded("is about both brokers in any case"),
    pytest.mark.timeout(120),
]

CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
TOOLS = Toolbox(find_release())
TP = TopicPartition("moved", 0)
ID = "billing"
#: As many as the other kind of broker has, so that an id has the same partition.
CONFIG = {"transaction.state.log.num.partitions": "4"}
TEN_MINUTES_MS = 600_000
#: What belongs to the broker that a directory is moved to.
KEPT = "partition.metadata"


async def begin(servers: str) -> Identity:
    """Commit, abort and commit a transaction, and leave a fourth one open."""
    async with Client(servers) as client:
        cluster = Cluster(client)
        await led(cluster, TP)
        raw = RawProducer(cluster, ID, NEW, timeout_ms=TEN_MINUTES_MS)
        await raw.start()
        for values, commit in (([b"a", b"b"], True), ([b"no"], False), ([b"c"], True)):
            await raw.send(TP, 0, values)
            await raw.finish(commit=commit)
        await raw.send(TP, 0, [b"d"])
        assert await ends(cluster, TP) == Ends(8, 7)
        return raw.who


async def make_room(servers: str) -> None:
    """Have the topics made that files are moved to."""
    async with Client(servers) as client:
        cluster = Cluster(client)
        await led(cluster, TP)
        await RawProducer(cluster, "other", NEW).start()


def move(source: Path, target: Path) -> None:
    """Put the files of one broker under another; neither runs."""
    moved = [*source.glob(f"{TP.topic}-*"), *source.glob("__transaction_state-*")]
    assert len(moved) > 1
    for directory in moved:
        place = target / directory.name
        place.mkdir(exist_ok=True)
        for file in place.iterdir():
            if file.name != KEPT:
                file.unlink()
        for file in directory.iterdir():
            if file.name != KEPT:
                shutil.copy(file, place)


async def go_on(servers: str, who: Identity) -> None:
    """End what is open, and go on with another producer of the id."""
    async with Client(servers) as client:
        cluster = Cluster(client)
        await led(cluster, TP)
        assert await ends(cluster, TP) == Ends(8, 7)
        (state,) = await producers(cluster, TP)
        assert (state.producer_id, state.producer_epoch) == who
        assert (state.last_sequence, state.current_txn_start_offset) == (0, 7)

        async def is_loaded() -> bool:
            return (await describe(cluster, ID)).error_code not in PASSING

        await until(is_loaded)
        found = await describe(cluster, ID)
        assert found.error_code == E.NONE
        assert (found.transaction_state, found.transaction_timeout_ms) == (
            *("Ongoing",),
            TEN_MINUTES_MS,
        )
        assert [(one.topic, one.partitions) for one in found.topics] == [("moved", [0])]
        raw = RawProducer(cluster, ID, NEW)
        raw.who = who
        assert await raw.write(TP, 2) == E.OUT_OF_ORDER_SEQUENCE_NUMBER
        await raw.finish(commit=True)
        await stable(cluster, TP)
        successor = RawProducer(cluster, ID, NEW)
        assert (await successor.start()).producer_id == who.producer_id
        assert successor.who.epoch > who.epoch
        assert await raw.write(TP, 1) == E.INVALID_PRODUCER_EPOCH
        await successor.send(TP, 0, [b"e"])
        await successor.finish(commit=True)
        await stable(cluster, TP)
    output = await TOOLS.run(
        CONSUMER,
        *("--bootstrap-server", servers, "--topic", TP.topic, "--from-beginning"),
        *("--isolation-level", "read_committed"),
        *("--max-messages", "5", "--timeout-ms", "20000"),
    )
    assert output.lines == ["a", "b", "c", "d", "e"], output.stderr


async def test_kafka_goes_on_with_our_logs(tmp_path: Path) -> None:
    topics = {TP.topic: 1}
    async with Broker(topics=topics, config=CONFIG, data_dir=tmp_path) as broker:
        who = await begin(broker.bootstrap_servers)
    async with Kafka(config=CONFIG) as kafka:
        await kafka.create_topic(TP.topic, 1, 1)
        await make_room(kafka.bootstrap_servers)
        await kafka.stop(1)
        move(tmp_path, kafka.engine.nodes[1].data)  # type: ignore[attr-defined]
        await kafka.start(1)
        await go_on(kafka.bootstrap_servers, who)


async def test_we_go_on_with_kafkas_logs(tmp_path: Path) -> None:
    topics = {TP.topic: 1}
    async with Broker(topics=topics, config=CONFIG, data_dir=tmp_path) as broker:
        await make_room(broker.bootstrap_servers)
    async with Kafka(config=CONFIG) as kafka:
        await kafka.create_topic(TP.topic, 1, 1)
        who = await begin(kafka.bootstrap_servers)
        await kafka.stop(1)
        move(kafka.engine.nodes[1].data, tmp_path)  # type: ignore[attr-defined]
    async with Broker(config=CONFIG, data_dir=tmp_path) as broker:
        await go_on(broker.bootstrap_servers, who)
