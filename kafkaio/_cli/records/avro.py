"""Avro for the command line: bytes to what JSON shows, and JSON to bytes.

Values are written as people type them: a union is its value, a decimal a string, bytes
text or ``{"base64": ...}``, times ISO 8601. Values of a union may also have the name of
their type, as Avro's own JSON has them: ``{"string": "a"}``.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from io import BytesIO
from typing import Any, Final
from uuid import UUID

from kafkaio._cli.records.decoded import tree_of
from kafkaio.errors import SerializationError
from kafkaio.registry import Schema
from kafkaio.registry._avro_guard import check_data
from kafkaio.registry._avro_schema import ParsedAvro, fastavro, load, parse

Convert = Callable[[Any], Any]


def avro_reader(
    schema: Schema, references: Mapping[str, Schema]
) -> Callable[[bytes, int], object]:
    """Return a function that reads bytes from a place on, as JSON shows them."""
    parsed = parse(load(schema.text), references)
    read = fastavro().schemaless_reader

    def reader(data: bytes, start: int) -> object:
        if parsed.needs_guard:
            check_data(parsed, data, start)
        stream = BytesIO(data)
        stream.seek(start)
        try:
            value = read(stream, parsed.schema, None)
        except Exception as error:
            # fastavro raises what it meets: EOFError, IndexError, UnicodeDecodeError.
            detail = f"{type(error).__name__}: {error}"
            raise SerializationError(
                f"the bytes are not of their schema: {detail}"
            ) from error
        left = len(data) - stream.tell()
        if left:
            raise SerializationError(f"{left} bytes are left after the value")
        return tree_of(value)

    return reader


def avro_writer(
    schema: Schema, references: Mapping[str, Schema]
) -> Callable[[object], bytes]:
    """Return a function that writes what JSON read; numbers with a point as Decimal."""
    parsed = parse(load(schema.text), references)
    convert = _Converters(parsed).of(parsed.schema)
    write = fastavro().schemaless_writer

    def writer(tree: object) -> bytes:
        datum = convert(tree)
        stream = BytesIO()
        try:
            write(stream, parsed.schema, datum)
        except Exception as error:
            # fastavro raises what it meets.
            raise SerializationError(f"{type(error).__name__}: {error}") from error
        return stream.getvalue()

    return writer
