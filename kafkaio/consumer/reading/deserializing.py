"""Key and value of a record, as the user wants to have them."""

from __future__ import annotations

from collections.abc import Callable

from kafkaio._records.batch import converted
from kafkaio.config import ConsumerConfig, Deserializer
from kafkaio.types import Record

__all__ = ["deserializing"]


def deserializing(config: ConsumerConfig) -> Callable[[Record], Record] | None:
    """What deserializes a record: None where the options name no deserializer.

    It raises what a deserializer raises, with a note of the record's place.
    """
    of_key, of_value = config.key_deserializer, config.value_deserializer
    if of_key is None and of_value is None:
        return None

    def deserialize(record: Record) -> Record:
        key = _convert(of_key, record.key, record, "key")
        value = _convert(of_value, record.value, record, "value")
        return converted(record, key, value)

    return deserialize


def _convert(
    deserializer: Deserializer | None, data: bytes | None, record: Record, part: str
) -> object:
    if deserializer is None or data is None:
        return data
    try:
        return deserializer(data)
    except Exception as error:
        place = f"{record.topic}-{record.partition} at offset {record.offset}"
        error.add_note(f"deserializing the {part} of {place}")
        raise
