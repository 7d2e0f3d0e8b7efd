"""The loops over records in pure Python: the reference.

The compiled twin must agree with this module on every input, errors included.

Some code is less readable than it could be, to save time for each record. The
optimisations, each of them measured:

- varints of one and two bytes are read in place; `long_varint` reads longer ones;
- the varints that are written most often are looked up in a table;
- `Record` is frozen, so its ``__init__`` needs nine calls of ``object.__setattr__``.
  Instead, a draft with the same slots is filled, and then its class is changed to
  `Record`. That takes a quarter of the time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkaio._generic import Generic, K_co, V_co
from kafkaio._records._acquired import ShareRecord, acquired_of, share_record
from kafkaio._records._layout import (
    BATCH_HEADER_SIZE,
    MAX_HEADERS,
    MIN_RECORD_SIZE,
    Origin,
    encode_varint,
)
from kafkaio.errors import CorruptRecord, UsageError
from kafkaio.types import (
    AnyRecord,
    Header,
    Headers,
    Record as Record,
    Sizes,
    TimestampType,
    sizes_of,
)

_MIN_INT64 = -(2**63)
_MAX_INT64 = 2**63 - 1
# A base timestamp within +-2**62 plus a delta of one or two bytes fits in 64 bits.
_SAFE_BASE = 2**62
# The greatest raw value of a varint of two bytes.
_TWO_BYTES = 2**14 - 1


class _Draft(Sizes, Generic[K_co, V_co]):
    """A `Record` whose fields can be set; its class is changed to `Record` then.

    Python allows that between classes of the same slots and the same base.
    """

    __slots__ = (
        "headers",
        "key",
        "leader_epoch",
        "offset",
        "partition",
        "timestamp",
        "timestamp_type",
        "topic",
        "value",
    )

    def __init__(  # noqa: PLR0913 - the fields of a record, set in the hottest loop
        self,
        topic: str,
        partition: int,
        offset: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: tuple[Header, ...],
        timestamp_type: TimestampType,
        leader_epoch: int,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self.headers = headers
        self.timestamp_type = timestamp_type
        self.leader_epoch = leader_epoch


def decode_records(
    data: bytes, position: int, count: int, origin: Origin
) -> list[Record]:
    """Decode ``count`` records that fill ``data`` from ``position`` to its end.

    Records before ``origin.start_offset`` are skipped: only their lengths and their two
    deltas are read.

    Raises:
        CorruptRecord: a length, a count, a varint, an offset or a timestamp is
            impossible, or the records do not end where the data does.
    """
    if not 0 <= count <= (len(data) - position) // MIN_RECORD_SIZE:
        raise CorruptRecord(
            f"a batch claims {count} records in {len(data) - position} bytes"
        )
    drafts: list[_Draft] = []
    try:
        is_wide = _decode_drafts(data, position, count, (origin, drafts))
    except IndexError:
        raise CorruptRecord("a record ends past the end of its batch") from None
    if origin.log_append_time is not None:
        for draft in drafts:
            draft.timestamp = origin.log_append_time
    # Sums of usual numbers fit in 64 bits, so most batches need no second loop.
    elif is_wide or not -_SAFE_BASE < origin.base_timestamp < _SAFE_BASE:
        _check_timestamps(drafts)
    for draft in drafts:
        draft.__class__ = Record  # type: ignore[assignment] # see the module's theory
    return drafts  # type: ignore[return-value] # they are records now


def decode_keys(
    data: bytes, position: int, count: int, origin: Origin
) -> list[bytes | None]:
    """Decode the keys of records only; raises what `decode_records` raises."""
    return [record.key for record in decode_records(data, position, count, origin)]


def decode_values(
    data: bytes, position: int, count: int, origin: Origin
) -> list[bytes | None]:
    """Decode the values of records only; raises what `decode_records` raises."""
    return [record.value for record in decode_records(data, position, count, origin)]


def converted(
    record: AnyRecord,
    key: object,
    value: object,
    sizes: tuple[int, int] | None = None,
) -> AnyRecord:
    """Return a record with another key and value, which can be any objects.

    That of a `ShareRecord` can be acknowledged in its place.

    Args:
        record: the record.
        key: its key.
        value: its value.
        sizes: their sizes in bytes; those of the record by default.
    """
    if isinstance(record, ShareRecord):
        return share_record(record, acquired_of(record), key, value, sizes)
    draft: Any = _Draft(
        record.topic,
        record.partition,
        record.offset,
        record.timestamp,
        None,
        None,
        record.headers,
        record.timestamp_type,
        record.leader_epoch,
    )
    draft.key = key
    draft.value = value
    draft._sizes = sizes_of(record) if sizes is None else sizes
    draft.__class__ = Record
    made: AnyRecord = draft
    return made


def _decode_drafts(  # noqa: C901, PLR0912, PLR0915 - the hottest loop has few calls
    data: bytes, position: int, count: int, target: tuple[Origin, list[_Draft]]
) -> bool:
    # Returns whether a timestamp delta was so large that the sum can exceed 64 bits.
    #
    # Bounds need no checks of their own. A read of one byte past the end raises
    # IndexError. A slice past the end is too short, and then the position differs from
    # the end that the record's length says. Each record is compared with its length,
    # and the end of the last one with the end of the data.
    origin, drafts = target
    topic, number, start_offset, base_offset, last_delta = origin[:5]
    base_timestamp = origin.base_timestamp
    kind, epoch = origin.timestamp_type, origin.leader_epoch
    add, draft = drafts.append, _Draft
    last_raw = last_delta << 1
    is_wide = False
    for _ in range(count):
        # 1. The length of the rest; an odd zigzag number is negative.
        raw = data[position]
        position += 1
        if raw > 127:
            raw += (data[position] << 7) - 128
            position += 1
            if raw > _TWO_BYTES:
                raw, position = long_varint(data, position - 2)
        if raw & 1:
            raise CorruptRecord(f"a record has the length {_unzigzag(raw)}")
        end = position + (raw >> 1)
        # 2. Attributes, which have no meaning yet, and the timestamp delta.
        raw = data[position + 1]
        position += 2
        if raw > 127:
            raw += (data[position] << 7) - 128
            position += 1
            if raw > _TWO_BYTES:
                raw, position = long_varint(data, position - 2)
                is_wide |= raw >> 62 > 0
        timestamp = base_timestamp + ((raw >> 1) ^ -(raw & 1))
        # 3. The offset delta, which decides whether the record is skipped.
        raw = data[position]
        position += 1
        if raw > 127:
            raw += (data[position] << 7) - 128
            position += 1
            if raw > _TWO_BYTES:
                raw, position = long_varint(data, position - 2)
        if raw & 1 or raw > last_raw:
            raise CorruptRecord(f"a record has the offset delta {_unzigzag(raw)}")
        offset = base_offset + (raw >> 1)
        if offset < start_offset:
            position = _skipped(position, end)
            continue
        key, value, headers, position = read_fields(data, position)
        if position != end:
            raise CorruptRecord(f"a record ends {position - end} bytes off its length")
        add(draft(topic, number, offset, timestamp, key, value, headers, kind, epoch))
    if position != len(data):
        raise CorruptRecord(f"{len(data) - position} bytes follow the last record")
    return is_wide


def _skipped(position: int, end: int) -> int:
    if position > end:
        raise CorruptRecord("a record is longer than it says")
    return end


def read_fields(  # noqa: C901 - a call for each field would cost as much as reading it
    data: bytes, position: int
) -> tuple[bytes | None, bytes | None, tuple[Header, ...], int]:
    """Read the key, the value and the headers of a record.

    Returns:
        The three, and the next position.

    Raises:
        CorruptRecord: a length, a count or a varint is impossible.
        IndexError: the data ends before they do.
    """
    key: bytes | None = None
    value: bytes | None = None
    raw = data[position]
    position += 1
    if raw != 1:
        if raw > 127:
            raw, position = long_varint(data, position - 1)
        if not raw & 1:
            after = position + (raw >> 1)
            key = data[position:after]
            position = after
        elif raw != 1:  # null, in more bytes than it needs
            raise CorruptRecord(f"a key has the length {_unzigzag(raw)}")
    raw = data[position]
    position += 1
    if raw != 1:
        if raw > 127:
            raw += (data[position] << 7) - 128
            position += 1
            if raw > _TWO_BYTES:
                raw, position = long_varint(data, position - 2)
        if not raw & 1:
            after = position + (raw >> 1)
            value = data[position:after]
            position = after
        elif raw != 1:  # null, in more bytes than it needs
            raise CorruptRecord(f"a value has the length {_unzigzag(raw)}")
    if data[position]:
        headers, position = _decode_headers(data, position)
        return key, value, headers, position
    return key, value, (), position + 1


def _decode_headers(data: bytes, position: int) -> tuple[tuple[Header, ...], int]:
    raw, position = long_varint(data, position)
    count = raw >> 1
    # A header has two bytes at least: a count cannot make us allocate more than that.
    if raw & 1 or count > min(MAX_HEADERS, (len(data) - position) // 2):
        raise CorruptRecord(f"a record claims {_unzigzag(raw)} headers")
    headers: list[Header] = []
    value: bytes | None
    for _ in range(count):
        raw = data[position]
        position += 1
        if raw > 127:
            raw, position = long_varint(data, position - 1)
        if raw & 1:
            raise CorruptRecord(f"a header name has the length {_unzigzag(raw)}")
        after = position + (raw >> 1)
        # As in Java: a name that is not UTF-8 is decoded with U+FFFD, not refused.
        name = data[position:after].decode("utf-8", "replace")
        raw = data[after]
        position = after + 1
        if raw > 127:
            raw, position = long_varint(data, after)
        if raw == 1:
            value = None
        else:
            if raw & 1:
                raise CorruptRecord(f"a header value has the length {_unzigzag(raw)}")
            after = position + (raw >> 1)
            value = data[position:after]
            position = after
        headers.append((name, value))
    return tuple(headers), position


def long_varint(data: bytes, position: int) -> tuple[int, int]:
    """Read a varint of any length.

    Returns:
        The raw number, before zigzag decoding, and the next position.

    Raises:
        CorruptRecord: it has more than 64 bits.
        IndexError: the data ends before it does.
    """
    result = data[position]
    position += 1
    if result < 128:
        return result, position
    result &= 127
    # Ten bytes at most: the last one may have only the 64th bit.
    for shift in range(7, 70, 7):
        byte = data[position]
        position += 1
        if byte < 128:
            result |= byte << shift
            if result >> 64:
                break
            return result, position
        result |= (byte & 127) << shift
    raise CorruptRecord("a varint has more than 64 bits")


def _unzigzag(raw: int) -> int:
    return (raw >> 1) ^ -(raw & 1)


def _check_timestamps(drafts: list[_Draft]) -> None:
    for draft in drafts:
        if not _MIN_INT64 <= draft.timestamp <= _MAX_INT64:
            raise CorruptRecord(f"a record has the timestamp {draft.timestamp}")


# The varints of all numbers that are not negative and take one or two bytes.
_VARINTS = tuple(encode_varint(number) for number in range(8192))
_COUNT = len(_VARINTS)
_NULL = encode_varint(-1)


class RecordWriter:
    """The records of one batch; each is encoded when it is appended.

    Args:
        target_size: the most bytes of the batch, header included. Only the first record
            can exceed it.

    Attributes:
        count: number of records so far.
        size_bytes: size of the batch, header included, before compression.
        first_timestamp: timestamp of the first record, to which the deltas of the
            others are relative; -1 in an empty batch.
        max_timestamp: the greatest timestamp; -1 in an empty batch.
    """

    __slots__ = (
        "_section",
        "_target_size",
        "count",
        "first_timestamp",
        "max_timestamp",
        "size_bytes",
    )

    def __init__(self, target_size: int) -> None:
        self.count: int = 0
        self.size_bytes: int = BATCH_HEADER_SIZE
        self.first_timestamp: int = -1
        self.max_timestamp: int = -1
        self._target_size = target_size
        self._section = bytearray()

    def try_append(
        self,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = (),
    ) -> int:
        """Append a record, unless the batch would exceed its target size.

        Returns:
            The index of the record in the batch, -1 if it does not fit. The first
            record always fits.

        Raises:
            UsageError: the timestamp is below -1 or not below 2**63 - 1, or a header's
                name cannot be encoded in UTF-8. Nothing was appended.
            TypeError: key or value is neither bytes nor None, or a header is not a pair
                of str and one of these. Nothing was appended.
        """
        index = self.count
        delta = timestamp - self.first_timestamp if index else 0
        if timestamp < -1 or timestamp >= _MAX_INT64:
            raise UsageError(f"a record cannot have the timestamp {timestamp}")
        body = b"".join(
            (
                b"\0",
                _VARINTS[delta] if 0 <= delta < _COUNT else encode_varint(delta),
                _VARINTS[index] if index < _COUNT else encode_varint(index),
                _NULL if key is None else _encode_size(key, "key"),
                key or b"",
                _NULL if value is None else _encode_size(value, "value"),
                value or b"",
                _encode_headers(headers) if headers else b"\0",
            )
        )
        # The body first: its length stands before it.
        size = len(body)
        prefix = _VARINTS[size] if size < _COUNT else encode_varint(size)
        new_size = self.size_bytes + size + len(prefix)
        # The first record always fits: a record larger than the target size has a batch
        # of its own. `close` sets the target to 0, and then there is a first record.
        if index:
            if new_size > self._target_size:
                return -1
        else:
            self.first_timestamp = timestamp
        # All checks are over: a record that raises has changed nothing.
        section = self._section
        section += prefix
        section += body
        self.size_bytes = new_size
        self.count = index + 1
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        return index

    def promise(self, size: int) -> None:
        """Limit the memory that is allocated ahead of the records.

        Up to ``size``, memory grows by doubling, or faster; beyond it, it grows only a
        little ahead of what the records need. Memory beyond ``size`` that they do not
        need is freed. The default is the target size.

        This pure codec has no use for it: a bytearray grows by an eighth at most.

        Args:
            size: bytes of the batch, header included; 0 for nothing ahead.
        """

    def append_values(
        self, timestamp: int, values: list[bytes | None], start: int = 0
    ) -> int:
        """Append values without keys and headers until the batch is full.

        Args:
            timestamp: the timestamp of all records, in milliseconds since the epoch.
            values: the values.
            start: index of the first value to append.

        Returns:
            The number of values appended, from ``start`` on.

        Raises:
            UsageError: the timestamp is impossible. Nothing was appended.
            TypeError: a value is neither bytes nor None. Those before it were
                appended.
        """
        if start < 0:
            raise IndexError(f"there is no value before the first, such as {start}")
        if timestamp < -1 or timestamp >= _MAX_INT64:
            raise UsageError(f"a record cannot have the timestamp {timestamp}")
        appended = 0
        for index in range(start, len(values)):
            if self.try_append(timestamp, None, values[index]) < 0:
                break
            appended += 1
        return appended

    def close(self) -> None:
        """Close the batch: every later `try_append` returns -1.

        Raises:
            UsageError: the batch has no record.
        """
        if not self.count:
            raise UsageError("a batch without records cannot be closed")
        self._target_size = 0

    def section(self) -> bytes:
        """Return the encoded records, without the batch's header."""
        return bytes(self._section)

    def view(self) -> memoryview:
        """Return the encoded records of a closed batch, without a copy.

        Raises:
            BufferError: the batch is not closed.
        """
        if not self.count or self._target_size:
            raise BufferError("only the records of a closed batch can be viewed")
        return memoryview(self._section).toreadonly()


def _encode_size(field: bytes, what: str) -> bytes:
    if not isinstance(field, bytes):
        raise TypeError(f"a {what} is bytes or None, not {type(field).__name__}")
    size = len(field)
    return _VARINTS[size] if size < _COUNT else encode_varint(size)


def _encode_headers(headers: Headers) -> bytes:
    # Lists and tuples first: isinstance with an ABC such as Mapping takes far longer.
    if not isinstance(headers, (tuple, list)) and isinstance(headers, Mapping):
        headers = tuple(headers.items())
    count = len(headers)
    parts = [_VARINTS[count] if count < _COUNT else encode_varint(count)]
    for name, value in headers:
        if not isinstance(name, str):
            raise TypeError(f"a header's name is str, not {type(name).__name__}")
        try:
            encoded = name.encode()
        except UnicodeEncodeError:
            raise UsageError(f"the header name {name!r} is not Unicode text") from None
        size = len(encoded)
        parts += (
            _VARINTS[size] if size < _COUNT else encode_varint(size),
            encoded,
            _NULL if value is None else _encode_size(value, "header value"),
            value or b"",
        )
    return b"".join(parts)
