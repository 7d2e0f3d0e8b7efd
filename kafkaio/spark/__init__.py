"""Kafka as a data source of Spark, through PySpark: ``format("kafkaio")``.

``spark.read.format("kafkaio")`` works without any call where this package is installed:
Spark finds ``pyspark_kafkaio``. `register` makes the format known to a session that
started before. Options, columns and guarantees are in the guide (``docs/guide/spark``).

Names are loaded when they are first used.
"""

from kafkaio._public import lazy

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "kafkaio.spark._errors": (
            "DataLost",
            "DataSourceError",
        ),
        "kafkaio.spark._foreach": ("foreach_batch_writer",),
        "kafkaio.spark._markers": (
            "MarkedApp",
            "cleanup",
            "marked_apps",
        ),
        "kafkaio.spark._progress": (
            "LagListener",
            "lag",
            "source_metrics",
        ),
        "kafkaio.spark._source": (
            "KafkaSource",
            "register",
        ),
    },
)
