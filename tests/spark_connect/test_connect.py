"""Reading and writing through Spark Connect, whose server knows the format by name."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import kafkaio
from kafkaio.testing import Broker


@pytest.mark.timeout(600)
async def test_reading_and_writing(remote: SparkSession, tmp_path: Path) -> None:
    async with Broker(topics={"in": 3, "out": 2}) as broker:
        servers = broker.bootstrap_servers
        async with kafkaio.Producer(servers) as producer:
            await producer.send_many("in", [b"%d" % n for n in range(500)])
        await asyncio.to_thread(jobs, remote, servers, str(tmp_path / "checkpoint"))


def jobs(spark: SparkSession, servers: str, checkpoint: str) -> None:
    where = {"kafka.bootstrap.servers": servers}
    once = {**where, "topic": "out", "exactlyOnce": "true"}
    source = {**where, "subscribe": "in", "startingOffsets": "earliest"}
    rows = spark.read.format("kafkaio").schema("value string").options(**source)
    assert rows.load().count() == 500
    for _ in range(2):  # the second time, it is known to be done
        rows.load().write.format("kafkaio").mode("append").options(
            **once, txnAppId="connect", txnVersion="1"
        ).save()
    stream = spark.readStream.format("kafkaio").options(**source).load()
    query = (
        stream.select("value")
        .writeStream.format("kafkaio")
        .options(**once, checkpointLocation=checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    out = (
        spark.read.format("kafkaio")
        .schema("value string")
        .options(**where, subscribe="out")
        .option("kafka.isolation.level", "read_committed")
        .load()
    )
    counted = out.groupBy("value").count().collect()
    counts = {int(row["value"]): row["count"] for row in counted}
    assert counts == dict.fromkeys(range(500), 2)  # by the batch and by the stream
