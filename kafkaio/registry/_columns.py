"""Whole batches of values as Arrow arrays, whatever their language."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from kafkaio.errors import SerializationError
from kafkaio.registry._serde import Read, SerdeCore
from kafkaio.registry._wire import PREFIX_BYTES

if TYPE_CHECKING:
    import pyarrow as pa


def read_rows(
    core: SerdeCore, data: Sequence[bytes | None], read: Callable[[Read, bytes], Any]
) -> list[Any] | None:
    """Read each value of a batch by the schema that it names.

    Args:
        core: finds the schemas.
        data: the bytes; None stays None.
        read: reads bytes with what the core compiled for their schema.

    Returns:
        the values; None if a schema is not cached.

    Raises:
        SerializationError: bytes cannot be read; the message says which.
        SchemaError: a schema is not valid.
    """
    rows: list[Any] = []
    readers: dict[bytes, Read] = {}
    for place, each in enumerate(data):
        if each is None:
            rows.append(None)
            continue
        try:
            reader = readers.get(each[:PREFIX_BYTES]) or core.known_reader(each)
            if reader is None:
                return None
            readers[each[:PREFIX_BYTES]] = reader
            rows.append(read(reader, each))
        except SerializationError as error:
            raise of_batch(place, error) from error
    return rows


def of_batch(place: int, error: SerializationError) -> SerializationError:
    """Return the error of one value, which says where it is in the batch."""
    return SerializationError(f"value {place} of the batch: {error}", field=error.field)


def to_array(rows: Sequence[Any], kind: pa.DataType, name: str) -> pa.Array:
    """Return values as an Arrow array.

    Raises:
        SerializationError: a value does not fit the type.
    """
    import pyarrow as pa

    try:
        return pa.array(rows, type=kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise SerializationError(
            f"values of {name} do not fit Arrow's types: {error}"
        ) from error
