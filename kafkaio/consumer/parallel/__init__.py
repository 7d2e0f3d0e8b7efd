"""Working on many records at a time: a handler for each, or a lane per partition."""

from kafkaio.consumer.parallel.dead_letter import DeadLetter

__all__ = ["DeadLetter"]
