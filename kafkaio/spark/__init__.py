"""Kafka as a data source of Spark, through PySpark: ``format("kafkaio")``.

``spark.read.format("kafkaio")`` works without any call where this package is installed:
Spark finds ``pyspark_kafkaio``. `register` makes the format known to a session that
started before. Options, columns and guarantees are in the guide (``docs/guide/spark``).

Names are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kafkaio.spark.errors import DataLost, DataSourceError
    from kafkaio.spark.foreach import foreach_batch_writer
    from kafkaio.spark.markers import MarkedApp, cleanup, marked_apps
    from kafkaio.spark.progress import LagListener, lag, source_metrics
    from kafkaio.spark.source import KafkaSource

__all__ = [
    "DataLost",
    "DataSourceError",
    "KafkaSource",
    "LagListener",
    "MarkedApp",
    "cleanup",
    "foreach_batch_writer",
    "lag",
    "marked_apps",
    "register",
    "source_metrics",
]

_WHERE = {
    "DataLost": "kafkaio.spark.errors",
    "DataSourceError": "kafkaio.spark.errors",
    "KafkaSource": "kafkaio.spark.source",
    "LagListener": "kafkaio.spark.progress",
    "MarkedApp": "kafkaio.spark.markers",
    "cleanup": "kafkaio.spark.markers",
    "foreach_batch_writer": "kafkaio.spark.foreach",
    "lag": "kafkaio.spark.progress",
    "source_metrics": "kafkaio.spark.progress",
    "marked_apps": "kafkaio.spark.markers",
}


def register(spark: SparkSession) -> None:
    """Make the format ``kafkaio`` known to a Spark session.

    Args:
        spark: the session.
    """
    from kafkaio.spark.source import KafkaSource

    spark.dataSource.register(KafkaSource)


def __getattr__(name: str) -> object:
    if (module := _WHERE.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(module), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
