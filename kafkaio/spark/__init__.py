"""Kafka as a data source of Spark, through PySpark."""
