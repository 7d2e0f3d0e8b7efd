"""The columns that a read produces, and their types.

The default is that of Spark's own connector, with its types and nulls. A user's schema
(``.schema("value string, offset bigint")``) chooses columns, in any order; the others
are not decoded. Spark itself does not prune columns of Python data sources.

`projection` turns Spark's schema into `ReadColumn` values, which need neither Spark nor
pyarrow and travel to the executors. `arrow_schemas` turns them into the schema for
`kafkaio.arrow.read_ranges` and the one that Spark expects. Both have the same types
column by column, so nothing is converted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kafkaio._named_tuple import NamedTuple
from kafkaio.errors import ConfigurationError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructField, StructType

_HEADERS = "array<struct<key:string,value:binary>>"
#: The types that each column can have, the default one first.
_TYPES: Mapping[str, tuple[str, ...]] = {
    "key": ("binary", "string"),
    "value": ("binary", "string"),
    "topic": ("string",),
    "partition": ("int",),
    "offset": ("bigint",),
    "timestamp": ("timestamp",),
    "timestampType": ("int",),
    "headers": (_HEADERS,),
}
_BY_FOLDED = {name.lower(): name for name in _TYPES}
#: Columns that have nulls.
_NULLABLE = frozenset({"key", "value", "headers"})


class ReadColumn(NamedTuple):
    """A column of a read.

    Attributes:
        name: as the user wrote it; letter case may differ.
        source: the column of Spark's connector.
        form: Spark's simple name of the type.
        is_nullable: whether Spark may see nulls.
    """

    name: str
    source: str
    form: str
    is_nullable: bool = True


def default_schema(*, includes_headers: bool) -> str:
    """Return the schema of Spark's own connector, as Spark's DDL.

    Args:
        includes_headers: whether the column ``headers`` is among them.
    """
    ddl = ", ".join(f"{n} {t[0]}" for n, t in _TYPES.items() if n != "headers")
    return f"{ddl}, headers {_HEADERS}" if includes_headers else ddl


def projection(schema: StructType) -> tuple[ReadColumn, ...]:
    """Return the columns of a schema, checked.

    Raises:
        ConfigurationError: there is none, or one has an unknown name or another type;
            the message lists the possible columns.
    """
    found = tuple(map(_column, schema.fields))
    # Arrow has columns by name: the same source twice would be ambiguous.
    sources = [column.source for column in found]
    if not found or len(set(sources)) < len(sources):
        what = "names a column twice" if found else "names no column"
        raise ConfigurationError(f"the schema {what}; {_possible()}")
    return found


def _column(field: StructField) -> ReadColumn:
    source = _BY_FOLDED.get(field.name.lower())
    if source is None:
        # Loaded for mistakes alone.
        from kafkaio._config.unknown import nearest

        near = nearest(field.name, _TYPES, 0.6)
        did = f" (did you mean {near!r}?)" if near else ""
        raise ConfigurationError(f"no column {field.name!r}{did}; {_possible()}")
    form = field.dataType.simpleString()
    if form not in _TYPES[source]:
        how = "; cast it on the DataFrame"
        if source == "timestamp":
            how += (
                ": Spark has microseconds, and records have milliseconds; "
                "unix_millis(timestamp) makes a number of it"
            )
        raise ConfigurationError(
            f"column {field.name!r} cannot be {form}; {_possible()}{how}"
        )
    # Spark trusts NOT NULL: its optimizer removes the checks for null.
    if not field.nullable and source in _NULLABLE:
        raise ConfigurationError(
            f"column {field.name!r} cannot be NOT NULL: records can lack it"
        )
    return ReadColumn(field.name, source, form, field.nullable)


def _possible() -> str:
    columns = (f"{name} {' or '.join(types)}" for name, types in _TYPES.items())
    return f"a schema can have any of these columns: {', '.join(columns)}"


def arrow_schemas(columns: Sequence[ReadColumn]) -> tuple[pa.Schema, pa.Schema]:
    """Return the schema to read with, and the one that Spark expects."""
    import pyarrow as pa

    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    types = {
        "binary": pa.binary(),
        "string": pa.string(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        _HEADERS: pa.list_(header),
    }
    read = [
        ("timestamp_type" if c.source == "timestampType" else c.source, types[c.form])
        for c in columns
    ]
    wanted = [pa.field(c.name, types[c.form], nullable=c.is_nullable) for c in columns]
    return pa.schema(read), pa.schema(wanted)
