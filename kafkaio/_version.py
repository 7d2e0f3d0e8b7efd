"""The version of kafkaio: the one place that it is written in."""

__version__ = "0.1.0.dev0"
