"""The pipeline, declared: Spark decides what to run, and in which order.

A flow to a sink is a streaming query whose checkpoint Spark keeps in ``storage``.
"""

import os
import sys
from pathlib import Path

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

sys.path.insert(0, str(Path(__file__).parents[2]))
import steps

spark = SparkSession.active()
NAME = os.environ.get("NAME", "pipeline")
SOURCE = {
    "kafka.bootstrap.servers": os.environ["KAFKA"],
    "startingOffsets": "earliest",
}

dp.create_sink(
    name="revenue",
    format="kafkaio",
    options={
        "kafka.bootstrap.servers": os.environ["KAFKA"],
        "topic": f"{NAME}.revenue",
        "exactlyOnce": "true",
    },
)


@dp.materialized_view  # type: ignore[untyped-decorator]  # pyspark is not followed
def customers() -> DataFrame:
    changes = spark.read.format("kafkaio").options(**SOURCE)
    changes = changes.schema("key STRING, value STRING, offset BIGINT")
    return steps.current(changes.option("subscribe", f"{NAME}.customers").load())


def known() -> DataFrame:
    incoming = spark.readStream.format("kafkaio").options(**SOURCE)
    incoming = incoming.schema(steps.INPUT).option("subscribe", f"{NAME}.orders")
    incoming = incoming.option("maxOffsetsPerTrigger", "400")
    return steps.joined(steps.parsed(incoming.load()), spark.read.table("customers"))


@dp.table  # type: ignore[untyped-decorator]  # pyspark is not followed
def orders() -> DataFrame:
    return known()


# Not from the table `orders`: a table has no watermark, and Spark cannot put one on a
# table of the same pipeline.
@dp.append_flow(target="revenue")  # type: ignore[untyped-decorator]
def revenue() -> DataFrame:
    return steps.records(steps.revenue(known()))
