"""Makes ``format("kafkaio")`` known to Spark, which looks into every ``pyspark_*``."""

from kafkaio.spark._source import KafkaSource as DefaultSource

__all__ = ["DefaultSource"]
