"""`BatchBuilder`: records that a program puts together and sends as one."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import kafkaio
from kafkaio._named_tuple import NamedTuple

__all__ = ["AppendedRecord", "BatchBuilder"]

#: Bytes of the header of a record batch, format 2.
_HEADER_BYTES = 61
#: What a key and a value may be.
_BYTES_LIKE = (bytes, bytearray, memoryview)


class AppendedRecord(NamedTuple):
    """What `BatchBuilder.append` returns for a record that the batch has taken.

    Attributes:
        offset: its place in the batch; the first is 0.
        size: its bytes in the batch, before compression.
        timestamp: its timestamp in milliseconds since the Unix epoch.
        crc: always None: records of format 2 have no checksum of their own.
    """

    offset: int
    size: int
    timestamp: int
    crc: None = None


class BatchBuilder:
    """Records for one partition, up to ``max_batch_size``.

    Made by `AIOKafkaProducer.create_batch`, and sent by `AIOKafkaProducer.send_batch`,
    which says what holds for its records.

    Args:
        batch_size: most bytes, before compression. The first record is always taken.
        compression_type: not used; the producer compresses what it sends.
        is_transactional: not used; the producer knows whether it is.
        key_serializer: turns keys into bytes; None if they are bytes.
        value_serializer: turns values into bytes; None if they are bytes.
    """

    def __init__(
        self,
        batch_size: int,
        compression_type: object,
        *,
        is_transactional: object = 0,
        key_serializer: Callable[..., object] | None = None,
        value_serializer: Callable[..., object] | None = None,
    ) -> None:
        self._limit = batch_size
        self._size = _HEADER_BYTES
        self._records: list[kafkaio.NewRecord[bytes, bytes]] = []
        self._first_timestamp = 0
        self._closed = False
        self._key_serializer = key_serializer
        self._value_serializer = value_serializer

    def append(
        self,
        *,
        timestamp: float | None,
        key: object,
        value: object,
        headers: Sequence[tuple[str, bytes | None]] | None = (),
    ) -> AppendedRecord | None:
        """Add a record.

        Args:
            timestamp: milliseconds since the Unix epoch; None for now.
            key: the key: bytes, None, or what the ``key_serializer`` takes.
            value: the value, likewise.
            headers: pairs of name and value.

        Returns:
            The record's place, size and timestamp; None if the batch is closed, or has
            no room for it, which closes the batch.

        Raises:
            TypeError: an argument has the wrong type; the batch has not changed.
            Exception: a serializer raised it; the batch has not changed.
        """
        if self._closed:
            return None
        key_bytes = _plain("key", _serialized(self._key_serializer, key))
        value_bytes = _plain("value", _serialized(self._value_serializer, value))
        at = timestamp_of(timestamp)
        if at is None:
            # As producers stamp records: with the time of the calendar.
            at = time.time_ns() // 1_000_000
        pairs = [(name, _plain("header", each)) for name, each in headers or ()]
        count = len(self._records)
        size = _record_size(
            count,
            at - self._first_timestamp if count else 0,
            key_bytes,
            value_bytes,
            pairs,
        )
        if count and self._size + size >= self._limit:
            self.close()
            return None
        if not count:
            self._first_timestamp = at
        self._size += size
        self._records.append(kafkaio.NewRecord(value_bytes, key_bytes, pairs, at))
        return AppendedRecord(count, size, at)

    def close(self) -> None:
        """Take no more records. `AIOKafkaProducer.send_batch` closes a batch, too."""
        self._closed = True

    def size(self) -> int:
        """Return the size of the batch in bytes, before compression."""
        return self._size

    def record_count(self) -> int:
        """Return the number of records in the batch."""
        return len(self._records)

    def closed(self) -> bool:
        """Return whether the batch takes no more records."""
        return self._closed


def records_of(batch: BatchBuilder) -> Sequence[kafkaio.NewRecord[bytes, bytes]]:
    """Close a batch and return its records, for the producer."""
    batch.close()
    return batch._records


def timestamp_of(given: float | None) -> int | None:
    """Return whole milliseconds: programs pass ``time.time() * 1000``.

    Raises:
        TypeError: it is not a number.
    """
    if given is None or type(given) is int:
        return given
    if isinstance(given, int | float):
        return int(given)
    raise kafkaio.ArgumentTypeError(
        f"timestamp must be milliseconds or None, not {type(given).__name__}"
    )


def _serialized(serialize: Callable[..., object] | None, given: object) -> object:
    # None as well: a serializer of aiokafka may write something for it.
    return given if serialize is None else serialize(given)


def _plain(what: str, given: object) -> bytes | None:
    if given is None or type(given) is bytes:
        return given
    if not isinstance(given, _BYTES_LIKE):
        raise kafkaio.ArgumentTypeError(
            f"Not supported type for {what}: {type(given).__name__}; it must be bytes, "
            "bytearray, memoryview or None"
        )
    return bytes(given)


def _record_size(
    number: int,
    timestamp_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]],
) -> int:
    """Return the bytes of a record in a batch of format 2."""
    size = 1 + _varint_size(timestamp_delta) + _varint_size(number)
    size += _field_size(key) + _field_size(value) + _varint_size(len(headers))
    for name, each in headers:
        size += _field_size(name.encode()) + _field_size(each)
    return size + _varint_size(size)


def _field_size(field: bytes | None) -> int:
    if field is None:
        return 1  # the length -1
    return _varint_size(len(field)) + len(field)


def _varint_size(number: int) -> int:
    # Zigzag: the sign is the lowest bit. Seven bits go into each byte.
    zigzag = number << 1 if number >= 0 else ~(number << 1)
    return max(1, -(-zigzag.bit_length() // 7))
