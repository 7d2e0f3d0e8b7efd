"""What a producer is put together from, by its options."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kafkaio._machines.accumulator import Accumulator, Chooser, Limits, Receipt
from kafkaio._machines.sequence import ProducerIdentity
from kafkaio._records._impl import Lanes
from kafkaio._records.batch import BatchBuilder, Compression
from kafkaio._records.compression import Compressor
from kafkaio._runtime.clock import roll, wall_clock
from kafkaio.config import ProducerConfig

__all__ = ["make_accumulator"]


def make_accumulator(
    config: ProducerConfig,
    identity: ProducerIdentity | None,
    on_lost: Callable[[Receipt, int], None],
) -> Accumulator:
    """Make the accumulator that a producer's options ask for."""
    codec = Compression[config.compression_type.upper()]
    compressor = Compressor(codec, config.compression_level)

    limits = Limits(
        batch_size=min(config.batch_size, config.max_request_size),
        buffer_memory=config.buffer_memory,
        max_request_size=config.max_request_size,
        linger=config.linger_ms / 1000,
        delivery_timeout=config.delivery_timeout_ms / 1000,
        max_block=config.max_block_ms / 1000,
        max_in_flight=config.max_in_flight_requests_per_connection,
        availability_timeout=config.partitioner_availability_timeout_ms / 1000,
    )
    chooser = Chooser(
        roll,
        custom=config.partitioner,
        ignore_keys=config.partitioner_ignore_keys,
        adaptive=config.partitioner_adaptive_partitioning_enable,
    )
    new_builder = partial(BatchBuilder, compressor=compressor)
    accumulator = Accumulator(limits, chooser, identity, new_builder, on_lost)
    accumulator.lanes = Lanes(
        wall_clock(),
        min(config.max_request_size, config.buffer_memory),
        ignore_keys=config.partitioner_ignore_keys,
    )
    return accumulator
