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

    from kafkaio.spark._errors import DataLost, DataSourceError
    from kafkaio.spark._foreach import foreach_batch_writer
    from kafkaio.spark._markers import MarkedApp, cleanup, marked_apps
    from kafkaio.spark._progress import LagListener, lag, source_metrics
    from kafkaio.spark._source import KafkaSource

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
    "DataLost": "kafkaio.spark._errors",
    "DataSourceError": "kafkaio.spark._errors",
    "KafkaSource": "kafkaio.spark._source",
    "LagListener": "kafkaio.spark._progress",
    "MarkedApp": "kafkaio.spark._markers",
    "cleanup": "kafkaio.spark._markers",
    "foreach_batch_writer": "kafkaio.spark._foreach",
    "lag": "kafkaio.spark._progress",
    "source_metrics": "kafkaio.spark._progress",
    "marked_apps": "kafkaio.spark._markers",
}


def register(spark: SparkSession) -> None:
    """Make the format ``kafkaio`` known to a Spark session.

    Args:
        spark: the session.
    """
    from kafkaio.spark._source import KafkaSource

    spark.dataSource.register(KafkaSource)


def __getattr__(name: str) -> object:
    if (module := _WHERE.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(module), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
