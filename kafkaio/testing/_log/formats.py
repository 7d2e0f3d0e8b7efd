"""Kafka's other files of a log: producer snapshots, aborted transactions."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence

from kafkaio._named_tuple import NamedTuple
from kafkaio._records._impl import crc32c

_SNAPSHOT = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_PRODUCER = struct.Struct(">qhiqiqiq")
_ABORTED = struct.Struct(">hqqqq")
_SNAPSHOT_VERSION = 1
_ABORTED_VERSION = 0


class ProducerEntry(NamedTuple):
    """The state of one producer at a snapshot's offset.

    Attributes:
        producer_id: id of the producer.
        producer_epoch: its epoch.
        last_sequence: sequence number of its last record.
        last_offset: offset of that record, -1 if none.
        offset_delta: number of records in its last batch, minus one.
        timestamp: timestamp of its last batch.
        coordinator_epoch: epoch of the last transaction coordinator that wrote.
        first_offset: where its open transaction begins, -1 if there is none.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    first_offset: int


class AbortedTransaction(NamedTuple):
    """One aborted transaction in a segment.

    Attributes:
        producer_id: id of the producer.
        first_offset: its first offset.
        last_offset: the offset of its control record.
        stable_offset: the last stable offset after its end.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    stable_offset: int


def read_producer_snapshot(data: bytes) -> list[ProducerEntry]:
    """Read a ``.snapshot`` file.

    Raises:
        ValueError: its version is unknown, or its checksum or size is wrong.
    """
    try:
        version, checksum = _SNAPSHOT.unpack_from(data)
        (count,) = _COUNT.unpack_from(data, _SNAPSHOT.size)
    except struct.error:
        raise ValueError("a producer snapshot is truncated") from None
    if version != _SNAPSHOT_VERSION:
        raise ValueError(f"a producer snapshot has version {version}")
    # Over all that follows the checksum, the count included.
    actual = crc32c(memoryview(data)[_SNAPSHOT.size :])
    if actual != checksum:
        raise ValueError(
            f"the checksum of a producer snapshot is {actual:#010x}, not "
            f"{checksum:#010x} as written"
        )
    entries = data[_SNAPSHOT.size + _COUNT.size :]
    if len(entries) != count * _PRODUCER.size:
        raise ValueError(f"a producer snapshot does not have {count} entries")
    return [ProducerEntry._make(row) for row in _PRODUCER.iter_unpack(entries)]


def read_transaction_index(data: bytes) -> Iterator[AbortedTransaction]:
    """Yield the entries of a ``.txnindex`` file.

    Raises:
        ValueError: the next one is truncated or of an unknown version.
    """
    # Entries have one size; a rest was cut off by a crash.
    if len(data) % _ABORTED.size:
        raise ValueError("a transaction index is truncated")
    for version, *fields in _ABORTED.iter_unpack(data):
        if version != _ABORTED_VERSION:
            raise ValueError(f"a transaction index has version {version}")
        yield AbortedTransaction._make(fields)


def encode_producer_snapshot(entries: Sequence[ProducerEntry]) -> bytes:
    """Return the content of a ``.snapshot`` file."""
    rows = b"".join(_PRODUCER.pack(*entry) for entry in entries)
    body = _COUNT.pack(len(entries)) + rows
    return _SNAPSHOT.pack(_SNAPSHOT_VERSION, crc32c(memoryview(body))) + body


def encode_transaction_index(entries: Iterable[AbortedTransaction]) -> bytes:
    """Return the content of a ``.txnindex`` file, or a part of it."""
    return b"".join(_ABORTED.pack(_ABORTED_VERSION, *entry) for entry in entries)
