"""Chooses the implementation of the loops over records: compiled, or pure Python.

The environment variable ``KAFKAIO_CODEC`` decides: ``auto`` (the default) uses the
compiled codec if it was built, ``compiled`` requires it, ``python`` ignores it. Both
behave in the same way. Only the chosen one is imported.
"""

from __future__ import annotations

import copyreg
import importlib.util
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kafkaio._public import public
from kafkaio._records._acquired import AnyShareRecord, ShareRecord as TypedShareRecord
from kafkaio.errors import ConfigurationError
from kafkaio.types import AnyRecord, Record as TypedRecord

_COMPILED = "kafkaio._records._speedups"


def _is_compiled_wanted(wanted: str, *, is_built: bool) -> bool:
    if wanted not in {"auto", "compiled", "python"}:
        raise ConfigurationError(
            f"KAFKAIO_CODEC is {wanted!r}; it must be auto, compiled or python"
        )
    if wanted == "compiled" and not is_built:
        raise ConfigurationError(
            "KAFKAIO_CODEC is 'compiled', but kafkaio was installed without its "
            "compiled codec; install it on a machine with a C compiler"
        )
    return is_built and wanted != "python"


#: Whether the compiled codec is used.
accelerated: bool = _is_compiled_wanted(
    os.environ.get("KAFKAIO_CODEC", "auto"),
    is_built=importlib.util.find_spec(_COMPILED) is not None,
)


if TYPE_CHECKING or not accelerated:
    from kafkaio._records._acquired import (
        Acquired as Acquired,
        ShareRecord as ShareRecord,
        acquired_of as acquired_of,
        settle as settle,
    )
    from kafkaio._records._append import (
        OpenBatches as OpenBatches,
        RowReceipts as RowReceipts,
        open_batch_first as open_batch_first,
    )
    from kafkaio._records._columns import (
        ColumnsBuilder as ColumnsBuilder,
        Rows as Rows,
        column_partitions as column_partitions,
    )
    from kafkaio._records._crc import crc32c as crc32c, crc32c_over as crc32c_over
    from kafkaio._records._cursor import (
        AcquiredCursor as AcquiredCursor,
        RecordCursor as RecordCursor,
    )
    from kafkaio._records._frame import batch_header as batch_header
    from kafkaio._records._header import BatchHeader as BatchHeader
    from kafkaio._records._murmur2 import (
        key_partition as key_partition,
        murmur2 as murmur2,
    )
    from kafkaio._records._pure import (
        Record as Record,
        RecordWriter as RecordWriter,
        converted as converted,
        decode_keys as decode_keys,
        decode_records as decode_records,
        decode_values as decode_values,
    )
    from kafkaio._records._receipts import (
        Delivery as Delivery,
        Receipt as Receipt,
        metadata_run as metadata_run,
    )
    from kafkaio._records._stream import Handout as Handout
else:
    from kafkaio._records._speedups import (
        Acquired as Acquired,
        AcquiredCursor as AcquiredCursor,
        BatchHeader as BatchHeader,
        ColumnsBuilder as ColumnsBuilder,
        Delivery as Delivery,
        Handout as Handout,
        OpenBatches as OpenBatches,
        Receipt as Receipt,
        Record as Record,
        RecordCursor as RecordCursor,
        RecordStream as RecordStream,  # for kafkaio._consumer.reading.iterators
        RecordWriter as RecordWriter,
        RowReceipts as RowReceipts,
        Rows as Rows,
        ShareRecord as ShareRecord,
        acquired_of as acquired_of,
        batch_header as batch_header,
        column_partitions as column_partitions,
        converted as converted,
        crc32c as crc32c,
        crc32c_over as crc32c_over,
        decode_keys as decode_keys,
        decode_records as decode_records,
        decode_values as decode_values,
        key_partition as key_partition,
        metadata_run as metadata_run,
        murmur2 as murmur2,
        open_batch_first as open_batch_first,
        settle as settle,
    )


#: Number of the fields of a record.
_FIELDS = 9


@public("kafkaio")
def _restore_record(*fields: Any) -> AnyRecord:
    """Make a record from its fields: what pickles and copies of a record call.

    The record is of the class that this process has for records, compiled or not,
    whichever of them was pickled.
    """
    if len(fields) <= _FIELDS:
        topic, partition, offset, timestamp, key, value, *rest = fields
        if isinstance(key, bytes | None) and isinstance(value, bytes | None):
            return Record(*fields)
        sizes = (-1, -1)  # a pickle of an older version
    else:
        topic, partition, offset, timestamp, key, value, *rest, sizes = fields
    # The compiled class takes only bytes; `converted` sets deserialized objects.
    record = Record(topic, partition, offset, timestamp, None, None, *rest)
    return converted(record, key, value, sizes)


def _reduced(
    record: AnyRecord,
) -> tuple[Callable[..., AnyRecord], tuple[object, ...]]:
    fields = tuple([getattr(record, name) for name in TypedRecord.__match_args__])
    return _restore_record, (*fields, *_sizes_apart(record))


def _sizes_apart(record: AnyRecord) -> tuple[tuple[int, int], ...]:
    # The sizes in bytes, unless the key and the value tell them.
    if isinstance(record.key, bytes | None) and isinstance(record.value, bytes | None):
        return ()
    return ((record.serialized_key_size, record.serialized_value_size),)


@public("kafkaio")
def _restore_share_record(*fields: Any) -> AnyShareRecord:
    """Make a share record without a lock: what pickles and copies of one call."""
    *plain, delivery_count, lock_deadline = fields
    lock = {"delivery_count": delivery_count, "lock_deadline": lock_deadline}
    sizes = plain.pop() if len(plain) > _FIELDS else None
    topic, partition, offset, timestamp, key, value, *rest = plain
    if sizes is None and all(isinstance(each, bytes | None) for each in (key, value)):
        return ShareRecord(*plain, **lock)
    place = (topic, partition, offset, timestamp)
    record: AnyShareRecord = ShareRecord(*place, None, None, *rest, **lock)
    return converted(record, key, value, sizes or (-1, -1))  # type: ignore[return-value]  # of its class


def _reduced_share(
    record: AnyShareRecord,
) -> tuple[Callable[..., AnyShareRecord], tuple[object, ...]]:
    _, fields = _reduced(record)
    lock = (record.delivery_count, record.lock_deadline)
    return _restore_share_record, (*fields, *lock)


# Registered here, because neither class may import the module that chooses between
# them. The compiled class uses the function of its pure twin.
copyreg.pickle(TypedRecord, _reduced)
copyreg.pickle(TypedShareRecord, _reduced_share)
if not accelerated:
    # Here the two are one class. The compiled one is given this path where it is made.
    public("kafkaio")(TypedRecord)
