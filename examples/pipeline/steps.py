"""The steps of the pipeline: functions from data frame to data frame.

None of them knows whether its rows come from a stream or a batch. `run.py` makes both
of them, and ``declarative/`` a declarative pipeline.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession, functions as f

WINDOW = "15 minutes"
WATERMARK = "1 hour"
ORDER = "number BIGINT, at TIMESTAMP, cents BIGINT"
#: The columns of the topic of orders that are read: what is not named is not decoded.
INPUT = "key STRING, value STRING, timestamp TIMESTAMP"


def parsed(records: DataFrame) -> DataFrame:
    """Return orders of records; a value that is no order is left out.

    In a stream, orders that come an hour later than others are too late to be counted
    (see `revenue`). In a batch there is no watermark.
    """
    order = f.from_json("value", ORDER).alias("order")
    customer = f.col("key").cast("BIGINT").alias("customer")
    return (
        records.select(customer, f.col("timestamp").alias("received"), order)
        .select("customer", "received", "order.*")
        .where("number IS NOT NULL AND at IS NOT NULL AND cents IS NOT NULL")
        .withWatermark("at", WATERMARK)
    )


def current(changes: DataFrame) -> DataFrame:
    """Return the last state of each customer, from all changes of a compacted topic."""
    last = f.max_by("value", "offset").alias("value")
    # A customer whose last record has no value has left.
    return (
        changes.groupBy(f.col("key").cast("BIGINT").alias("customer"))
        .agg(last)
        .where("value IS NOT NULL")
        .select("customer", f.get_json_object("value", "$.region").alias("region"))
    )


def joined(orders: DataFrame, customers: DataFrame) -> DataFrame:
    """Return orders with their customer's region."""
    region = f.coalesce("region", f.lit("unknown")).alias("region")
    return orders.join(customers, "customer", "left").select(
        "number", "customer", "at", "received", "cents", region
    )


def revenue(orders: DataFrame) -> DataFrame:
    """Return the number of orders and the revenue of each window and region.

    In a stream, a window is written when the watermark has passed its end.
    """
    return (
        orders.groupBy(f.window("at", WINDOW), "region")
        .agg(f.count("*").alias("orders"), f.sum("cents").alias("cents"))
        .select(
            f.unix_millis("window.start").alias("window"), "region", "orders", "cents"
        )
    )


def records(totals: DataFrame) -> DataFrame:
    """Return records for Kafka: a key and JSON."""
    key = f.concat_ws("/", f.col("window").cast("STRING"), "region").alias("key")
    return totals.select(key, f.to_json(f.struct("*")).alias("value"))


def pin(changes: DataFrame, path: str) -> None:
    """Write the customers down as they are now, unless they are there already.

    A micro-batch that is repeated after a crash must join the same customers, or it
    would not have the same rows. So they are written beside the checkpoint once.
    """
    current(changes).write.mode("ignore").parquet(path)


def pinned(spark: SparkSession, path: str) -> DataFrame:
    """Return the customers that `pin` has written."""
    return spark.read.schema("customer BIGINT, region STRING").parquet(path)
