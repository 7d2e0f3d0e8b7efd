"""Run the pipeline, from the orders to the proof of its output.

    python examples/pipeline/run.py                            # an embedded broker
    python examples/pipeline/run.py --kafka localhost:9092
    python examples/pipeline/run.py --kafka host:9092 --master spark://host:7077

It generates orders and customers, streams orders to revenue by window and region (to
Kafka, exactly once) and to orders with regions (to Parquet), computes the revenue of an
hour again from the topic, and checks all of it. A step that has crashed is repeated:

    python examples/pipeline/run.py --kafka HOST --directory out --name first stream
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.from_thread
import orders
import pyarrow as pa
from check import problems

import kafkaio
from kafkaio.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig
from kafkaio.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STEPS = ("generate", "stream", "backfill", "check")
PARTITIONS = 4
#: Micro-batches of the stream.
BATCHES = 5


@dataclass(frozen=True)
class Settings:
    kafka: str
    master: str
    directory: Path
    name: str
    count: int
    seed: int

    def topic(self, what: str) -> str:
        return f"{self.name}.{what}"


# ---- generate ------------------------------------------------------------------------


async def generate(to: Settings) -> None:
    """Make the topics, and write orders and customers to them."""
    async with kafkaio.Client(to.kafka) as client:
        await make_topics(client, to)
        async with kafkaio.Producer(client) as producer:
            changes = orders.customers(to.seed)
            table = pa.table(
                {
                    "key": [str(number) for number, _ in changes],
                    "value": pa.array([value for _, value in changes], pa.string()),
                }
            )
            await producer.send_table(to.topic("customers"), table, key="key")
            made = orders.orders(to.seed, to.count)
            table = pa.table(
                {
                    "customer": [str(order.customer) for order in made],
                    "value": [order.value for order in made],
                    "received": [order.received for order in made],
                }
            )
            deliveries = [
                await producer.enqueue_table(
                    to.topic("orders"), part, key="customer", timestamp="received"
                )
                for part in table.to_batches(max_chunksize=1_000)
            ]
            for delivery in deliveries:
                await delivery


async def make_topics(client: kafkaio.Client, to: Settings) -> None:
    kept = {"retention.ms": "-1"}  # the orders are older than brokers keep records
    wanted = {
        "orders": (PARTITIONS, kept),
        "customers": (2, {"cleanup.policy": "compact"}),
        "revenue": (2, kept),
        "backfill": (2, kept),
    }
    topics = [
        CreatableTopic(
            name=to.topic(what),
            num_partitions=count,
            replication_factor=1,
            configs=[CreatableTopicConfig(name=n, value=v) for n, v in configs.items()],
        )
        for what, (count, configs) in wanted.items()
    ]
    reply = await client.request(
        kafkaio.messages.CreateTopicsRequest(topics=topics, timeout_ms=30_000),
        to=kafkaio.Controller,
    )
    for topic in reply.topics:
        if topic.error_code:
            raise SystemExit(f"cannot create {topic.name}: {topic.error_message}")


# ---- stream and backfill -------------------------------------------------------------


def session(to: Settings):  # type: ignore[no-untyped-def]  # imported where it is used
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.driver.memory": "1g",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        # Repeated work must put the same rows into the same task.
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.warehouse.dir": str(to.directory / "warehouse"),
    }
    builder = SparkSession.builder.master(to.master).appName(f"pipeline {to.name}")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def stop() -> None:
    """Stop the session, if a step has made one."""
    if "pyspark" not in sys.modules:
        return
    from pyspark.sql import SparkSession

    spark = SparkSession.getActiveSession()
    if spark is not None:
        spark.stop()


def stream(to: Settings) -> None:
    """Stream all orders that there are, in several micro-batches."""
    import steps

    spark = session(to)
    source = {"kafka.bootstrap.servers": to.kafka, "startingOffsets": "earliest"}
    changes = (
        spark.read.format("kafkaio")
        .schema("key STRING, value STRING, offset BIGINT")
        .options(**source, subscribe=to.topic("customers"))
        .load()
    )
    customers = str(to.directory / "customers")
    steps.pin(changes, customers)

    def known() -> DataFrame:
        # Each query has a data frame of its own. Spark runs each in a thread, and the
        # plans of two queries from one data frame share mutable objects: one such run
        # ended with "Task not serializable" (Spark 4.3).
        incoming = (
            spark.readStream.format("kafkaio")
            .schema(steps.INPUT)
            .options(**source, subscribe=to.topic("orders"))
            .option("maxOffsetsPerTrigger", str(to.count // BATCHES))
            .load()
        )
        return steps.joined(steps.parsed(incoming), steps.pinned(spark, customers))

    queries = [
        steps.records(steps.revenue(known()))
        .writeStream.format("kafkaio")
        .queryName("revenue")
        .option("kafka.bootstrap.servers", to.kafka)
        .option("topic", to.topic("revenue"))
        .option("exactlyOnce", "true")
        .option("checkpointLocation", str(to.directory / "checkpoints" / "revenue"))
        .trigger(availableNow=True)
        .start(),
        known()
        .writeStream.format("parquet")
        .queryName("orders")
        .option("path", str(to.directory / "orders"))
        .option("checkpointLocation", str(to.directory / "checkpoints" / "orders"))
        .trigger(availableNow=True)
        .start(),
    ]
    for query in queries:
        query.awaitTermination()


def backfill(to: Settings) -> None:
    """Compute the revenue of the second hour's orders again, as a batch."""
    import steps

    spark = session(to)
    begin, end = orders.BACKFILL
    customers = spark.read.parquet(str(to.directory / "customers"))
    incoming = (
        spark.read.format("kafkaio")
        .schema(steps.INPUT)
        .option("kafka.bootstrap.servers", to.kafka)
        .option("subscribe", to.topic("orders"))
        .option("startingTimestamp", str(begin))
        .option("endingTimestamp", str(end))
        .option("startingOffsetsByTimestampStrategy", "latest")
        .load()
    )
    known = steps.joined(steps.parsed(incoming), customers)
    (
        steps.records(steps.revenue(known))
        .write.format("kafkaio")
        .mode("append")
        .option("kafka.bootstrap.servers", to.kafka)
        .option("topic", to.topic("backfill"))
        .option("exactlyOnce", "true")
        # Run twice, it writes once.
        .option("txnAppId", f"{to.name}-backfill")
        .option("txnVersion", str(begin))
        .save()
    )
    known.write.mode("overwrite").parquet(str(to.directory / "backfill"))


# ---- the command ---------------------------------------------------------------------


def check(to: Settings) -> None:
    """Raise SystemExit unless the output is what the input demands."""
    found = asyncio.run(problems(to.kafka, to.name, to.directory, to.seed, to.count))
    if found:
        raise SystemExit("\n".join(found))
    print("the output is what the input demands", flush=True)


@contextmanager
def embedded() -> Iterator[str]:
    """Run an embedded broker on a thread of its own; give its address."""
    with (
        anyio.from_thread.start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Broker()) as broker,
    ):
        yield broker.bootstrap_servers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("steps", nargs="*", help=f"some of: {', '.join(STEPS)}")
    parser.add_argument("--kafka", help="address of a running Kafka")
    parser.add_argument("--master", default="local[2,4]", help="Spark's master")
    parser.add_argument("--directory", type=Path, help="for checkpoints and output")
    parser.add_argument("--name", default="pipeline", help="begins the topics' names")
    parser.add_argument("--orders", type=int, default=4_000)
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()
    if unknown := set(args.steps) - set(STEPS):
        parser.error(f"no such step: {', '.join(sorted(unknown))}")
    if args.kafka is None:
        with embedded() as servers:
            run(args, servers)
    else:
        run(args, args.kafka)


def run(args: argparse.Namespace, servers: str) -> None:
    directory = args.directory or Path(tempfile.mkdtemp(prefix="pipeline-"))
    to = Settings(
        servers, args.master, directory.absolute(), args.name, args.orders, args.seed
    )
    try:
        for step in args.steps or STEPS:
            print(f"{step} ({to.directory})", flush=True)
            if step == "generate":
                asyncio.run(generate(to))
            else:
                {"stream": stream, "backfill": backfill, "check": check}[step](to)
    finally:
        stop()


if __name__ == "__main__":
    main()
