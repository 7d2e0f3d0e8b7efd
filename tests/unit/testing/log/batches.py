"""Batches for logs, and the records of a log."""

from __future__ import annotations

from collections.abc import Sequence

from kafkaio._records.batch import Compression, encode_batch, read_batches
from kafkaio.testing._log import Log
from kafkaio.types import Record

NOW = 1_700_000_000_000


def batch(
    *values: bytes | None,
    key: bytes | None = None,
    timestamp: int = NOW,
    compression: Compression = Compression.NONE,
) -> bytes:
    records = [(timestamp, key, value, ()) for value in values or (b"v",)]
    return encode_batch(records, compression=compression)


def keyed(
    pairs: Sequence[tuple[bytes, bytes | None]],
    timestamp: int = NOW,
    compression: Compression = Compression.NONE,
) -> bytes:
    rows = [(timestamp, key, value, (("h", b"x"),)) for key, value in pairs]
    return encode_batch(rows, compression=compression)


def records(data: bytes) -> list[Record]:
    return [r for one in read_batches(data) for r in one.decode("", 0)]


def contents(log: Log) -> list[Record]:
    """All records that can be read, from the start on."""
    found: list[Record] = []
    offset = log.start_offset
    while data := log.read(offset, 10_000):
        batches = list(read_batches(data))
        for one in batches:
            found += one.decode("", 0, offset)
        offset = batches[-1].next_offset
    return found


def values(log: Log) -> list[tuple[int, bytes | None]]:
    return [(record.offset, record.value) for record in contents(log)]
